"""Public tables that are sent: read as they were, and nothing unpacked that fills a memory."""

from __future__ import annotations

import base64
import datetime as dt
import json
import zlib
from typing import Any

import polars as pl
import pytest

from dither.errors import ArgumentError
from dither.session import _frames
from dither.session._frames import MOST_BYTES, frame_from, frame_to
from dither.session._recipe import from_plain, to_plain


def test_every_kind_comes_back() -> None:
    """Numbers that are none, moments and what is missing, too."""
    frame = pl.DataFrame(
        {
            "i": [1, None, -(2**62)],
            "r": [0.1, float("inf"), None],
            "t": ["é", None, ""],
            "f": [True, None, False],
            "d": [dt.date(2026, 1, 2), None, dt.date(1, 1, 1)],
            "m": [dt.datetime(2026, 1, 2, 3, 4, 5, 6), None, dt.datetime(1970, 1, 1)],
        }
    )
    assert frame_from(frame_to(frame)).equals(frame)
    assert from_plain(to_plain(frame)).equals(frame)
    enum = pl.DataFrame({"x": pl.Series(["a", "b"], dtype=pl.Categorical)})
    assert frame_from(frame_to(enum))["x"].to_list() == ["a", "b"]
    (nan,) = frame_from(frame_to(pl.DataFrame({"x": [float("nan")]})))["x"]
    assert nan != nan


def test_what_cannot_be_sent_is_named() -> None:
    """The column, and not what it holds."""
    with pytest.raises(ArgumentError, match="column 'x' holds List"):
        frame_to(pl.DataFrame({"x": [[1], [2]]}))


def test_a_large_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is sent."""
    monkeypatch.setattr(_frames, "MOST_BYTES", 1000)
    with pytest.raises(ArgumentError, match="too large"):
        frame_to(pl.DataFrame({"x": range(1000)}))


def packed(value: Any) -> str:
    """As a stranger packs it."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.b64encode(zlib.compress(raw)).decode()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(packed(b"[" + b"0," * MOST_BYTES), id="a bomb"),
        pytest.param(packed(b"[" * 100_000), id="nested"),
        pytest.param("A" * 40, id="no zlib"),
        pytest.param("é", id="no base64"),
        pytest.param(7, id="no text"),
        pytest.param(packed([["x", "integer", [2**70]]]), id="wide number"),
        pytest.param(packed([["x", "integer", ["1"]]]), id="text for a number"),
        pytest.param(packed([["x", "integer", [1]], ["x", "integer", [1]]]), id="twice"),
        pytest.param(packed([["x", "integer", [1]], ["y", "integer", [1, 2]]]), id="ragged"),
        pytest.param(packed([["x", "object", [1]]]), id="kind"),
        pytest.param(packed([["x", "date", ["<script>"]]]), id="script"),
        pytest.param(packed([["x"]]), id="short"),
        pytest.param(packed({"x": 1}), id="mapping"),
        pytest.param(packed([["x", "real", ["1e5"] * 3 + ["zzz"]]]), id="no real"),
        pytest.param(packed([["\ud800", "integer", [1]]]), id="surrogate"),
        pytest.param(base64.b64encode(zlib.compress(b"[]")[:-3]).decode(), id="cut off"),
    ],
)
def test_what_is_no_table_is_refused(sent: Any) -> None:
    """By one sentence, which has nothing of it."""
    with pytest.raises(ArgumentError, match="a table that cannot be read") as refused:
        from_plain({"frame": sent})
    assert "script" not in str(refused.value)

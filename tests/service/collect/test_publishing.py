"""Estimates on a schedule: once a period, whoever asks, and the same on the disk and over HTTP."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from dither.service.collect import publish_due
from dither.service.collect._publishing import newest
from service.collect.conftest import Made, Surveyed

NOON = dt.datetime(2024, 5, 2, 12, tzinfo=dt.UTC)


def test_estimates_are_published_once_a_period(
    survey: Surveyed, collector: Made, state: Any, tmp_path: Path
) -> None:
    """Of all reports so far, named by the period that is over; another process adds nothing."""
    flu = {"every": "day", "estimates": str(tmp_path / "out"), "postprocess": "norm_sub"}
    found, other = collector(state, flu=flu), collector(state, flu=flu)
    assert publish_due(found, NOON) == []
    found.take("flu", survey.posts(*[0] * 8, 1, 2)).result()
    (written,) = publish_due(found, NOON)
    assert written.name == "flu-2024-05-01.json"
    body = json.loads(written.read_text())
    assert (body["reports"], body["rejected"]) == (10, 0)
    assert body["configuration"] == survey.configuration.digest.hex()
    assert sum(row["share"] for row in body["estimates"]) == pytest.approx(1)
    found.take("flu", survey.posts(1)).result()
    assert publish_due(found, NOON) == publish_due(other, NOON) == []
    assert newest(other, "flu") == body
    (next_day,) = publish_due(other, NOON + dt.timedelta(days=1))
    assert json.loads(next_day.read_text())["reports"] == 11
    assert newest(found, "flu")["period"] == "2024-05-02"  # type: ignore[index]


def test_a_file_that_was_not_written_is_written_again(
    survey: Surveyed, collector: Made, tmp_path: Path
) -> None:
    """A process that died between its commit and its file is made up for."""
    found = collector(flu={"every": "week", "estimates": str(tmp_path / "out")})
    found.take("flu", survey.posts(0, 1)).result()
    (written,) = publish_due(found, NOON)
    before = written.read_bytes()
    written.unlink()
    found.take("flu", survey.posts(2)).result()
    assert publish_due(found, NOON) == [written]
    assert written.read_bytes() == before

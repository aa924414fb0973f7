"""What names a file names one of this machine; what lies elsewhere is said not to be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, PolicyError
from dither.ledger import Ledger

SECRET = "hospital/key=s3cr3t.parquet"
ADDRESSES = ("s3://", "https://", "http://", "gs://", "hf://", "az://", "abfss://", "ftp://")


def made(source: Any, ledger: str = "visits.ledger", **engine: str) -> dict[str, Any]:
    """A policy of one table."""
    table = {"columns": {"age": {"bounds": [0, 110]}}} | ({"source": source} if source else {})
    budget = {"epsilon": 1, "ledger": ledger}
    return {"budget": budget, "engine": engine, "tables": {"visits": table}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, with a table in it; this is another."""
    folder = tmp_path / "home"
    folder.mkdir()
    pl.DataFrame({"age": [30, 41]}).write_parquet(folder / "visits.parquet")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.mark.parametrize("scheme", ADDRESSES)
def test_an_address_is_no_file(scheme: str) -> None:
    """Wherever a policy or a caller names one, by its scheme alone: the rest may hold a key."""
    address = scheme + SECRET
    for policy, sources in (
        (made(address), {}),
        (made([address, "visits.parquet"]), {}),
        (made({"duckdb": address}), {}),
        (made(None), {"visits": address}),
        (made(None), {"visits": Path(address)}),
        (made("~/visits.parquet", address), {}),
        (made("~/visits.parquet", temp=address), {}),
    ):
        with pytest.raises(PolicyError, match=f"{scheme} and is not read.*nothing is fetched") as e:
            dt.open(policy, sources=sources)
        assert "key" not in str(e.value)
    for call in (lambda: dt.draft_policy(address), lambda: dt.open(address)):
        with pytest.raises(PolicyError, match="is not read"):
            call()
    with pytest.raises(ArgumentError, match="is not read"):
        Ledger.open(address)


def test_a_file_is_named_by_its_path() -> None:
    """And not as an address, which the message says."""
    with pytest.raises(PolicyError, match=r"begins with file://.*write the path alone"):
        dt.open(made("file:///data/visits.parquet"))


def test_the_own_folder_is_found(home: Path) -> None:
    """In sources, of a policy and given, in the ledger's name, and in those of policies."""
    for policy, sources in (
        (made("~/visits.parquet", "~/visits.ledger", temp="~/spill"), {}),
        (made(["~/visits.parquet"], "~/visits.ledger"), {}),
        (made(None, "~/visits.ledger"), {"visits": "~/visits.parquet"}),
        (made(None, "~/visits.ledger"), {"visits": Path("~/*.parquet")}),
    ):
        with dt.open(policy, sources=sources) as session:
            assert session.ledger.path == home / "visits.ledger"
            assert list(session.tables["visits"].columns) == ["age"]
    drafted = dt.draft_policy("~/visits.parquet")
    assert str(home / "visits.parquet") in drafted
    (home / "dither.toml").write_text(drafted)
    dt.open("~/dither.toml").close()


def test_a_folder_with_a_colon_is_a_folder(home: Path) -> None:
    """What is there is read, whatever it is called."""
    (folder := Path("s3:")).mkdir()
    (home / "visits.parquet").rename(folder / "visits.parquet")
    with dt.open(made("s3:/visits.parquet")) as session:
        assert list(session.tables["visits"].columns) == ["age"]
    with pytest.raises(PolicyError, match="no file '~nobody-of-that-name"):
        dt.open(made("~nobody-of-that-name/x.parquet"))

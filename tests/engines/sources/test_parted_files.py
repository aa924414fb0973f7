"""Files in folders that are named by the column of blocks: those of other blocks are not opened."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import dither
from dither.blocks._calendar import Calendar
from dither.engines.duckdb import DuckDBEngine, FileSource
from dither.errors import PolicyError
from dither.plan.lowering.lower import lower
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.sql import parse_query

KEY = b"sixteen bytes..."
JANUARY = "day >= '2024-01-01' AND day < '2024-02-01'"
FORMS = ("parquet", "csv", "jsonl")


def schema(unit: Kind) -> Schema:
    columns = {
        "day": ColumnFacts("day", Kind.DATE),
        "who": ColumnFacts("who", unit),
        "cost": ColumnFacts("cost", Kind.INTEGER, Fraction(0), Fraction(10)),
    }
    visits = Table(
        "visits",
        columns,
        unit="who",
        max_groups=3,
        max_rows=9,
        block=("day", Calendar(every="month")),
        unit_name="who",
    )
    return Schema({"visits": visits}, today=dt.date(2024, 11, 28))


def write(folder: Path, day: str, people, form: str, unit: Kind = Kind.INTEGER, name="0") -> Path:
    """The visits of one day in a file of its own."""
    place = folder / f"day={day}"
    place.mkdir(parents=True, exist_ok=True)
    who = [f"n{p}" if unit is Kind.TEXT else p for p in people]
    made = pl.DataFrame({"who": who, "cost": [1] * len(who)})
    file = place / f"{name}.{form}"
    {"parquet": made.write_parquet, "csv": made.write_csv, "jsonl": made.write_ndjson}[form](file)
    return file


def opened(folder: Path, form: str, unit: Kind = Kind.INTEGER, path=None) -> DuckDBEngine:
    columns = {"day": Kind.DATE, "who": Kind.TEXT if form == "jsonl" else unit, "cost": None}
    source = FileSource(path or folder, form, unit="who", columns=columns, block="day")
    return DuckDBEngine({"visits": source})


def counted(engine: DuckDBEngine, where: str, unit: Kind = Kind.INTEGER) -> list[int]:
    """Rows, as a release has them: a trial first."""
    known = schema(unit)
    plan = lower(parse_query(f"SELECT COUNT(*) AS n FROM visits WHERE {where}", known), known)
    engine.prepare(plan.job, known)
    return engine.run(plan.job, known, KEY).values[0].tolist()


CASES = [
    *((form, Kind.TEXT if form == "jsonl" else Kind.INTEGER) for form in FORMS),
    ("parquet", Kind.TEXT),
]


@pytest.mark.parametrize(("form", "unit"), CASES)
def test_what_is_wrong_in_another_block_does_not_show(tmp_path, form: str, unit: Kind) -> None:
    """No file, before, at and after the opening: neither one that is damaged nor its columns."""
    for day, people in (("2024-01-01", [1, 2]), ("2024-01-31", [3]), ("2024-02-01", [4])):
        write(tmp_path, day, people, form, unit)
    write(tmp_path, "__HIVE_DEFAULT_PARTITION__", [5], form, unit)
    write(tmp_path, "31.02.2024", [6], form, unit)
    damaged = write(tmp_path, "2023-12-01", [7], form, unit)
    damaged.write_bytes(b"\xff\x00 no file of this kind")
    other = tmp_path / "day=2024-03-01"
    other.mkdir()
    made = pl.DataFrame({"another": ["x"]})
    {"parquet": made.write_parquet, "csv": made.write_csv, "jsonl": made.write_ndjson}[form](
        other / f"0.{form}"
    )
    with opened(tmp_path, form, unit) as engine:
        assert counted(engine, JANUARY, unit) == [3]
        # What is no day is NULL, as it is in a column.
        assert counted(engine, "day IS NULL", unit) == [2]
        february = "day >= '2024-02-01' AND day < '2024-03-01'"
        assert counted(engine, february, unit) == [1]
        assert sum(counted(engine, "day = '2022-07-01'", unit)) == 0
        # Later: a file is gone, one is there, a folder has what is no file of this kind.
        (tmp_path / "day=2024-02-01" / f"0.{form}").unlink()
        write(tmp_path, "2024-04-01", [8], form, unit)
        (other / "notes.txt").write_text("who wrote this?")
        (tmp_path / "day=2023-12-01").chmod(0o000)
        assert counted(engine, JANUARY, unit) == [3]
        engine._drop()
        assert counted(engine, JANUARY, unit) == [3]
        (tmp_path / "day=2023-12-01").chmod(0o755)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_wrong_in_a_block_shows_where_it_is_read(tmp_path, form: str) -> None:
    """A file of January that changes is told before anything is charged."""
    unit = Kind.TEXT if form == "jsonl" else Kind.INTEGER
    write(tmp_path, "2024-01-01", [1, 2], form, unit)
    write(tmp_path, "2024-02-01", [4], form, unit)
    with opened(tmp_path, form, unit) as engine:
        assert counted(engine, JANUARY, unit) == [2]
        write(tmp_path, "2024-01-20", [9], form, unit)
        with pytest.raises(PolicyError, match="its files"):
            counted(engine, JANUARY, unit)


def test_a_pattern_is_parted_as_a_folder_is(tmp_path) -> None:
    """Names are looked at, and files of other blocks are not."""
    write(tmp_path, "2024-01-01", [1, 2], "parquet")
    write(tmp_path, "2024-02-01", [3], "parquet").write_bytes(b"")
    with opened(tmp_path, "parquet", path=tmp_path / "day=*" / "*.parquet") as engine:
        assert counted(engine, JANUARY) == [2]


def test_a_folder_by_another_key_is_read_whole(tmp_path) -> None:
    """Rows of blocks are left out all the same; files hold rows of any."""
    for region, days in (("x", ["2024-01-01", "2024-02-01"]), ("y", ["2024-01-02"])):
        place = tmp_path / f"region={region}"
        place.mkdir()
        made = pl.DataFrame(
            {"day": [dt.date.fromisoformat(d) for d in days], "who": [1] * len(days)}
        )
        made.with_columns(cost=1).write_parquet(place / "0.parquet")
    with opened(tmp_path, "parquet") as engine:
        assert counted(engine, JANUARY) == [2]


def test_arrow_files_are_not_parted(tmp_path) -> None:
    """They are read whole as they are opened, so that those of every block would show."""
    place = tmp_path / "day=2024-01-01"
    place.mkdir()
    pl.DataFrame({"who": [1]}).write_ipc(place / "0.arrow")
    with pytest.raises(PolicyError, match="write them as Parquet"):
        DuckDBEngine({"visits": FileSource(tmp_path, "arrow", block="day")})


def test_a_session_over_parted_files_is_charged_and_answers(tmp_path) -> None:
    """From the policy to the release, with a damaged month beside the one that is asked about."""
    for day in range(1, 20):
        write(tmp_path / "data", f"2024-01-{day:02}", [day, day + 1], "parquet")
    write(tmp_path / "data", "2024-02-01", [1], "parquet").write_bytes(b"PAR1")
    policy = {
        "budget": {"epsilon": 10**5, "per": "block", "ledger": str(tmp_path / "l.ledger")},
        "tables": {
            "visits": {
                "source": str(tmp_path / "data"),
                "unit": "who",
                "max_groups": 1,
                "max_rows": 5,
                "block": {"column": "day", "every": "month"},
                "columns": {"day": {"type": "date"}},
            }
        },
    }
    with dither.open(policy) as session:
        found = session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {JANUARY}").release(10**5)
        assert found.frame["n"].to_list() == [38]
        with pytest.raises(PolicyError):
            session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
        (entry,) = [e for e in session.ledger.entries() if e.kind == "charge"]
        assert entry.blocks.to_dict() == {"ranges": [[24288, 24288]], "named": []}

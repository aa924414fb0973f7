"""The same rows under another table's name have no fresh budget: refused, or said loudly."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import dither as dt
from dither.errors import PolicyError, PromiseError

ROWS = pl.DataFrame({"pid": [1, 2, 2, 3], "age": [30, 41, 42, 53]})
SAME = r"reads rows that this ledger has as table 'visits'.*fresh budget.*\[units\.NAME\]"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A table of four rows, in a folder of its own."""
    (tmp_path / "data").mkdir()
    ROWS.write_parquet(path := tmp_path / "data" / "visits.parquet")
    return path


def made(folder: Path, name: str, source: Any, **more: Any) -> dict[str, Any]:
    """A policy of one table, on the one ledger."""
    declared = {"columns": {"age": {"bounds": [0, 110]}}}
    if source is not None:
        declared["source"] = source if isinstance(source, dict | list) else str(source)
    table = {**declared, **more}
    budget = {"epsilon": 1, "ledger": str(folder / "one.ledger")}
    return {"budget": budget, "tables": {name: table}}


def ask(session: dt.Session, epsilon: str = "0.5") -> None:
    """Count the rows of the only table."""
    (name,) = session.tables
    session.sql(f"SELECT COUNT(*) AS n FROM {name}").release(epsilon)


def spent(folder: Path, file: Path) -> None:
    """Charge the file as the table "visits"."""
    with dt.open(made(folder, "visits", file)) as session:
        ask(session)


def hard(file: Path) -> Path:
    """Another name of the file itself."""
    os.link(file, other := file.with_name("other.parquet"))
    return other


def linked(file: Path) -> Path:
    """A link to it."""
    (other := file.with_name("link.parquet")).symlink_to(file)
    return other


NAMED: dict[str, Callable[[Path], Any]] = {
    "the same": lambda file: file,
    "a longer path": lambda file: file.parent / ".." / "data" / file.name,
    "a link": linked,
    "a hard link": hard,
    "a list": lambda file: [str(file)],
    "a pattern": lambda file: file.parent / "*.parquet",
    "its folder": lambda file: file.parent,
}


@pytest.mark.parametrize("way", NAMED)
def test_a_file_under_another_name_is_refused(tmp_path: Path, file: Path, way: str) -> None:
    """Before anything is charged, and whatever leads to the file; the table's own name serves."""
    spent(tmp_path, file)
    source = NAMED[way](file)
    for more in ({}, {"unit": "pid", "max_groups": 1, "max_rows": 2}):
        with pytest.raises(PromiseError, match=SAME):
            dt.open(made(tmp_path, "folk", source, **more))
    with dt.open(made(tmp_path, "visits", source)) as session:
        assert session.balance()[0].spent.epsilon == pytest.approx(0.5)


def test_what_is_given_counts_as_what_is_named(tmp_path: Path, file: Path) -> None:
    """A path in ``sources`` is the file that it names."""
    spent(tmp_path, file)
    with pytest.raises(PromiseError, match=SAME):
        dt.open(made(tmp_path, "folk", None), sources={"folk": file})


def test_the_first_charge_decides(tmp_path: Path, file: Path) -> None:
    """Two sessions of a new ledger: the second name is refused inside its transaction."""
    with (
        dt.open(made(tmp_path, "visits", file)) as first,
        dt.open(made(tmp_path, "folk", file)) as second,
    ):
        ask(first)
        with pytest.raises(PromiseError, match=SAME):
            ask(second)
        assert len([e for e in first.ledger.entries() if e.kind == "charge"]) == 1
        assert first.ledger.verify().ok


def test_one_unit_for_both_names_is_one_account(tmp_path: Path, file: Path) -> None:
    """What the message says to do: nothing is fresh, and nothing is refused."""
    unit = {"units": {"person": {"columns": {"visits": "pid"}}}}
    more = {"max_groups": 1, "max_rows": 2}
    with dt.open(made(tmp_path, "visits", file, **more) | unit) as session:
        ask(session)
    unit["units"]["person"]["columns"] = {"folk": "pid"}
    with dt.open(made(tmp_path, "folk", file, **more) | unit) as session:
        ask(session, "0.25")
        assert session.balance()[0].spent.epsilon == pytest.approx(0.75)


def test_other_files_are_other_tables(tmp_path: Path, file: Path) -> None:
    """One beside it, and a copy, which nothing tells from it: each has its own account."""
    spent(tmp_path, file)
    shutil.copyfile(file, copy := file.with_name("copy.parquet"))
    with dt.open(made(tmp_path, "folk", copy)) as session:
        ask(session)
        assert [b.spent.epsilon for b in session.balance()] == [pytest.approx(0.5)]
    with pytest.raises(PromiseError, match=SAME.replace("visits", "(visits|folk)")):
        dt.open(made(tmp_path, "more", file.parent / "*.parquet"))


def test_a_file_that_was_moved_is_said_to_be_doubtful(tmp_path: Path, file: Path) -> None:
    """It may be the one that was charged; once it has an account of its own, nothing is said."""
    spent(tmp_path, file)
    moved = file.rename(file.with_name("moved.parquet"))
    with pytest.warns(UserWarning, match="'folk'.*may hold the same rows as table 'visits'"):
        session = dt.open(made(tmp_path, "folk", moved))
    with session:
        ask(session)
    dt.open(made(tmp_path, "folk", moved)).close()


def test_frames_are_known_as_objects(tmp_path: Path) -> None:
    """The same frame is refused; of another, and of a file, nobody knows, and it is said."""
    with dt.open(made(tmp_path, "visits", None), sources={"visits": ROWS}) as session:
        ask(session)
    with pytest.raises(PromiseError, match=SAME):
        dt.open(made(tmp_path, "folk", None), sources={"folk": ROWS})
    for name, given in (("folk", ROWS.clone()), ("more", ROWS.to_pandas())):
        with pytest.warns(UserWarning, match=f"'{name}'.*may hold the same rows"):
            session = dt.open(made(tmp_path, name, None), sources={name: given})
        with session:
            ask(session)
    with dt.open(made(tmp_path, "visits", None), sources={"visits": ROWS.clone()}) as session:
        ask(session, "0.25")
        assert session.ledger.verify().ok
        assert set(session.ledger.sources()["visits"]) == {"frame"}


def test_frames_of_one_policy_are_not_doubted(tmp_path: Path) -> None:
    """Whoever opens two frames together knows what they hold."""
    policy = made(tmp_path, "visits", None)
    policy["tables"]["folk"] = policy["tables"]["visits"]
    with dt.open(policy, sources={"visits": ROWS, "folk": ROWS.clone()}) as session:
        for name in session.tables:
            session.sql(f"SELECT COUNT(*) AS n FROM {name}").release("0.5")


def test_a_view_is_the_table_below_it(tmp_path: Path) -> None:
    """In a DuckDB database: in one policy and in the next, by the view and by the table."""
    path = tmp_path / "all.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE visits (pid INTEGER, age INTEGER)")
        database.execute("CREATE TABLE labs (pid INTEGER, age INTEGER)")
        database.execute("INSERT INTO visits VALUES (1, 30), (2, 40)")
        database.execute("CREATE VIEW older AS SELECT pid, age FROM visits WHERE age > 35")
    with dt.open(made(tmp_path, "visits", path)) as session:
        ask(session)
    with pytest.raises(PromiseError, match=SAME):
        dt.open(made(tmp_path, "older", path))
    with dt.open(made(tmp_path, "labs", path)) as session:
        ask(session)
    both = made(tmp_path, "visits", path)
    both["tables"]["older"] = {**both["tables"]["visits"]}
    with pytest.raises(PolicyError, match="read the same rows for two units"):
        dt.open(both)


def test_a_ledger_from_before_is_read_and_doubted(tmp_path: Path, file: Path) -> None:
    """Of its tables nobody wrote down where they were: said once, then they are known."""
    from dither.accounting import BudgetFilter
    from dither.ledger import Ledger
    from dither.privacy import Charge, Promise

    row, half = Promise("row of visits"), Charge.pure("0.5")
    with Ledger.open(tmp_path / "one.ledger") as book:
        half = Charge.pure(BudgetFilter(1, 0).epsilon / 2, row)
        caps = {"dataset:row of visits": BudgetFilter(half.epsilon * 2, half.delta)}
        tables = {"visits": "each row"}
        book.charge(caps, half, token="t", request="ab" * 32, note={}, tables=tables)
        assert book.sources() == {"visits": {}}
        assert "sources" not in json.dumps(book._store.place.read_bytes().decode("latin-1"))
    with pytest.warns(UserWarning, match="'folk'.*may hold the same rows as table 'visits'"):
        dt.open(made(tmp_path, "folk", file)).close()
    with dt.open(made(tmp_path, "visits", file)) as session:
        ask(session, "0.25")
    with pytest.raises(PromiseError, match=SAME):
        dt.open(made(tmp_path, "folk", file))

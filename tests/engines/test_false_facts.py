"""No declared fact carries privacy: rows that break all of them move answers within the claims."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Iterator, Sequence
from fractions import Fraction as F
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlglot import exp

from dither.engines.duckdb import DuckDBEngine
from dither.engines.writer.dialect import Dialect
from dither.engines.writer.expressions import Emitter
from dither.engines.writer.forms import identifier
from dither.plan.answers import ExactAnswer
from dither.plan.lowering.lower import Plan, lower
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.sql import parse_query
from soundness.tables import moved, violations

KEY = b"the same key for two neighbours!"
FAR = 10**9

COLUMNS = {
    f.name: f
    for f in (
        ColumnFacts("z", Kind.INTEGER, F(0), F(1), nullable=False),
        ColumnFacts("y", Kind.INTEGER, F(0), F(FAR), nullable=False),
        ColumnFacts("v", Kind.INTEGER, values=(0, 1), nullable=False),
        ColumnFacts("x", Kind.REAL, F(0), F(1), F(1, 2), nullable=False),
        ColumnFacts("r", Kind.REAL, F(0), F(FAR), F(1), nullable=False),
        ColumnFacts("g", Kind.TEXT, values=("a", "b"), nullable=False),
        ColumnFacts("d", Kind.DATE, dt.date(2020, 1, 1), dt.date(2020, 6, 30), nullable=False),
        # In the file all three are text.
        ColumnFacts("ti", Kind.INTEGER, F(0), F(1), nullable=False),
        ColumnFacts("tr", Kind.REAL, F(0), F(1), F(1, 2), nullable=False),
        ColumnFacts("td", Kind.DATE, dt.date(2020, 1, 1), dt.date(2020, 1, 3), nullable=False),
    )
}
UNIT = {"u": ColumnFacts("u", Kind.INTEGER, nullable=False)}
GOOD = {
    **{"z": 1, "y": 1, "v": 1, "x": 0.5, "r": 1.0, "g": "a", "d": dt.date(2020, 2, 2)},
    **{"ti": "1", "tr": "0.5", "td": "2020-01-02"},
}
NAN, INF = float("nan"), float("inf")
BREAKS: dict[str, dict[str, Any]] = {
    "NULL": dict.fromkeys(GOOD),
    "NULL beside far values": {**dict.fromkeys(GOOD), "y": FAR, "r": float(FAR)},
    "far above": {**GOOD, "z": 2**62, "y": 2**63 - 1, "v": 9, "x": 1e300, "r": 1e308,
                  "ti": "9" * 18, "tr": "1e308", "g": "z", "d": dt.date(9999, 12, 31),
                  "td": "9999-12-31"},
    "far below": {**GOOD, "z": -(2**62), "y": -(2**63), "v": -9, "x": -1e300, "r": -1e308,
                  "ti": "-" + "9" * 18, "tr": "-1e308", "d": dt.date(1, 1, 1), "td": "0001-01-01"},
    "unreadable": {**dict.fromkeys(GOOD), "ti": "x", "tr": "1,5", "td": "yesterday", "y": FAR},
    "NaN": {**GOOD, "z": None, "x": NAN, "r": NAN, "tr": "nan", "y": FAR, "ti": None},
    "infinite": {**GOOD, "z": None, "x": INF, "r": -INF, "tr": "-inf", "y": FAR},
    "between the steps": {**GOOD, "x": 0.3, "r": 0.2, "tr": "0.7"},
}  # fmt: skip

OPERANDS = (
    *("z", "y", "v", "x", "r", "ti", "tr"),
    "LEAST(z, y)",
    "LEAST(v, y)",
    "LEAST(ti, y)",
    "LEAST(x, r)",
    "LEAST(tr, r)",
    "GREATEST(0 - y, z)",
    "COALESCE(z, y)",
    "COALESCE(x, r)",
    "CLAMP(y, 0, 2)",
    "CASE WHEN z IS NULL THEN y ELSE z END",
    "z * z",
    "z * y",
    "z - ti",
    "-z",
    "ABS(z)",
    "x * x",
    "x + tr",
    "r / (x + 1)",
    "y // (z + 1)",
    "y % (z + 1)",
    "FLOOR(r)",
    "CEIL(x)",
    "BIN(y, 0, 1, 2)",
    "YEAR(d)",
    "YEAR(td)",
    "MONTH(d)",
)
SINGLE = "COUNT({x}) AS n{i}, SUM({x}) AS s{i}, AVG({x}) AS m{i}, VARIANCE({x}) AS v{i}"
KEYS = ("g", "v", "z", "ti", "d", "td", "FLOOR(x)", "DATE_TRUNC('month', d)", "YEAR(td)")


def asked() -> Iterator[str]:
    """Every operand in every aggregate, and every key; several to a query, which is quicker."""
    for start in range(0, len(OPERANDS), 7):
        some = list(enumerate(OPERANDS[start : start + 7]))
        yield f"SELECT {', '.join(SINGLE.format(x=x, i=i) for i, x in some)} FROM {{t}}"
    for x in OPERANDS[::4]:
        yield f"SELECT COUNT(*) AS n, MEDIAN({x}) AS q FROM {{t}}"
    for key in KEYS:
        yield f"SELECT {key} AS k, COUNT(*) AS n, SUM(LEAST(z, y)) AS s FROM {{t}} GROUP BY k"


QUERIES = tuple(asked())


def schema(replace_one: bool) -> Schema:
    """Rows that are people, and rows of units, of which one counts in two groups."""
    tables = {
        "rows": Table("rows", COLUMNS),
        "visits": Table("visits", COLUMNS | UNIT, unit="u", max_groups=2, max_rows=2),
    }
    return Schema(tables, replace_one=replace_one)


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A Parquet file of the rows, each of a unit of its own but for the last two."""
    types = {"z": pl.Int64, "y": pl.Int64, "v": pl.Int64, "x": pl.Float64, "r": pl.Float64}
    kinds = {n: types.get(n, pl.Date if n == "d" else pl.String) for n in GOOD}
    frame = pl.DataFrame([[r[n] for n in GOOD] for r in rows], schema=kinds, orient="row")
    units = [min(i, len(rows) - 2) for i in range(len(rows))]
    frame.with_columns(u=pl.Series(units, dtype=pl.Int64)).write_parquet(path)
    return path


@cache
def planned(sql: str, replace_one: bool) -> Plan:
    """The plan of a query."""
    return lower(parse_query(sql, schema(replace_one)), schema(replace_one))


def answers(
    folder: Path, replace_one: bool, last: tuple[str, ...], queries: Sequence[str]
) -> list[ExactAnswer]:
    """Over three good rows and the named ones, of people and of one more unit: every answer."""
    known = schema(replace_one)
    rows = written(folder / "rows.parquet", [GOOD] * 3 + [_row(n) for n in last])
    visits = folder / "visits.parquet"
    written(visits, [GOOD] * 3 + [_row(n) for n in last for _ in range(2)])
    if not last:
        # Without it, the last two rows are still of two people.
        pl.read_parquet(visits).with_columns(u=pl.Series([0, 1, 2])).write_parquet(visits)
    with DuckDBEngine({"rows": rows, "visits": visits}, threads=1) as engine:
        return [
            engine.run(planned(sql.format(t=table), replace_one).job, known, KEY)
            for table in known.tables
            for sql in queries
        ]


def _row(name: str) -> dict[str, Any]:
    return GOOD if name == "good" else BREAKS[name]


@cache
def neighbours_answers(replace_one: bool, queries: tuple[str, ...]) -> list[ExactAnswer]:
    """Without the row that breaks what is declared: the same for all such rows, and so run once."""
    with tempfile.TemporaryDirectory() as folder:
        return answers(Path(folder), replace_one, ("good",) if replace_one else (), queries)


def broken(
    folder: Path, name: str, replace_one: bool, queries: Sequence[str] = QUERIES
) -> list[str]:
    """The queries that a breaking row moves by more than is claimed."""
    asked = [sql.format(t=table) for table in schema(replace_one).tables for sql in queries]
    ours = answers(folder, replace_one, (name,), queries)
    # What a planted fault answered is nobody else's.
    kept = queries is QUERIES
    neighbours = neighbours_answers if kept else neighbours_answers.__wrapped__
    theirs = neighbours(replace_one, tuple(queries))
    found = [
        (sql, violations(planned(sql, replace_one), one, other))
        for sql, one, other in zip(asked, ours, theirs, strict=True)
    ]
    return [f"{sql}: {faults}" for sql, faults in found if faults]


@pytest.mark.parametrize("name", BREAKS)
def test_a_row_that_breaks_what_is_declared_moves_no_more_than_is_claimed(tmp_path, name):
    """Bounds, lists, types, steps and NULL: each declaration false, in every form that uses it."""
    turn = list(BREAKS).index(name)
    assert broken(tmp_path, name, replace_one=turn % 2 == 1) == []


def test_the_claim_is_reached_where_a_null_was_declared_away(tmp_path):
    """LEAST(z, y) with a NULL z is y, and counts for what z could at most."""
    known = schema(False)
    plan = planned("SELECT SUM(LEAST(z, y)) AS s FROM rows", False)
    files = [written(tmp_path / "a.parquet", [GOOD, BREAKS["NULL beside far values"]])]
    files.append(written(tmp_path / "b.parquet", [GOOD]))
    answers = []
    for path in files:
        with DuckDBEngine({"rows": path, "visits": path}, threads=1) as engine:
            answers.append(engine.run(plan.job, known, KEY))
    assert [F(l1) for l1, _ in moved(plan.job, *answers)] == [s.l1 for s in plan.sensitivities]


# --- planted faults ----------------------------------------------------------------------------


def _trusting(self: Emitter, node: Any, step: F, lower: int, upper: int, shared: Any) -> Any:
    """A lattice that clamps nothing that the facts say is inside."""
    facts = self.facts(node)
    if facts.kind is Kind.INTEGER and step == 1:
        known = facts.range
        if known and lower <= known[0] and known[1] <= upper:
            return identifier(shared.name)
    return _LATTICE(self, node, step, lower, upper, shared)


_LATTICE = Emitter.lattice


def test_a_clamp_that_trusts_the_facts_is_caught(tmp_path, monkeypatch):
    """The planted fault: the clamp is skipped where the facts say that it does nothing."""
    monkeypatch.setattr(Emitter, "lattice", _trusting)
    asked = ["SELECT SUM(LEAST(z, y)) AS s FROM {t}", "SELECT SUM(x) AS s FROM {t}"]
    found = broken(tmp_path, "NULL beside far values", False, asked)
    assert len(found) == 2
    assert all("LEAST" in text for text in found)


def test_a_list_that_is_trusted_is_caught(tmp_path, monkeypatch):
    """The planted fault: values are summed without being held against their list."""
    monkeypatch.setattr(Emitter, "lattice", _trusting)
    monkeypatch.setattr(Dialect, "cleaned", lambda self, value, facts: _plain(value))
    assert broken(tmp_path, "far above", False, ["SELECT SUM(v) AS s FROM {t}"])


def _plain(value: exp.Expression) -> exp.Expression:
    return value

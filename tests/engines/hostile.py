"""Hostile tables, and the jobs that are asked of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import strategies as st

from dither.engines.duckdb import DuckDBEngine, FileSource
from dither.engines.duckdb.frames import to_arrow
from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.answers import ExactAnswer
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.values import Scope, infer
from dither.plan.job import GroupKey, Job, Leaves, Rows, Total, Units, Values
from dither.plan.relations import Filter, PublicJoin, Scan, UnitJoin
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from plan import calls

AGES = tuple(map(Fraction, (0, 18, 65, 110)))
GROUPS = ("a", "b", "NULL", "o'b")
LARGEST = 2**63 - 1
KEY = b"the same key for two neighbours!"

VISITS = Table(
    "visits",
    {
        f.name: f
        for f in (
            ColumnFacts("u", Kind.INTEGER),
            ColumnFacts("g", Kind.TEXT, values=GROUPS),
            ColumnFacts("h", Kind.INTEGER),
            ColumnFacts("x", Kind.REAL, Fraction(-10), Fraction(1000), Fraction(1, 100)),
            ColumnFacts("y", Kind.REAL),
            ColumnFacts("i", Kind.INTEGER, Fraction(0), Fraction(110)),
            ColumnFacts("d", Kind.DATE),
            ColumnFacts("e", Kind.DATE, dt.date(2000, 1, 1), dt.date(2020, 6, 30)),
            ColumnFacts("t", Kind.TIMESTAMP),
            ColumnFacts("b", Kind.BOOLEAN),
            ColumnFacts("w", Kind.TEXT),
        )
    },
    unit="u",
    max_groups=2,
    max_rows=3,
    max_join_rows=2,
)
DOCTORS = Table(
    "doctors",
    {
        "code": ColumnFacts("code", Kind.INTEGER),
        "label": ColumnFacts("label", Kind.TEXT, values=("x", "y")),
        "weight": ColumnFacts("weight", Kind.REAL, Fraction(0), Fraction(5), Fraction(1, 2)),
    },
    private=False,
    unique=frozenset({"code"}),
)
LABS = Table(
    "labs",
    {
        "u": ColumnFacts("u", Kind.INTEGER),
        "z": ColumnFacts("z", Kind.INTEGER, Fraction(-5), Fraction(5)),
    },
    unit="u",
    max_groups=2,
    max_rows=3,
    max_join_rows=2,
)
SCHEMA = Schema({"visits": VISITS, "doctors": DOCTORS, "labs": LABS})

TYPES = {
    Kind.INTEGER: pl.Int64,
    Kind.REAL: pl.Float64,
    Kind.TEXT: pl.String,
    Kind.BOOLEAN: pl.Boolean,
    Kind.DATE: pl.Date,
    Kind.TIMESTAMP: pl.Datetime("us"),
}

integers = st.one_of(
    st.sampled_from([0, 1, -1, LARGEST, -LARGEST - 1, 2**53 + 1, 110, 111]),
    st.integers(-200, 200),
    st.integers(-LARGEST - 1, LARGEST),
)
reals = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 0.005, 2.675, 1000.0, 999.995]),
    st.sampled_from([float("nan"), float("inf"), float("-inf")]),
    st.floats(-20, 1100),
    st.floats(),
)
words = st.one_of(
    st.text(st.sampled_from("aBz ,'\"\\é😀%_"), max_size=4),
    st.sampled_from([" 7 ", "-1.5e3", "9223372036854775808", "1e999", "nan", "0x7f", "+.5", "yes"]),
    st.sampled_from(
        ["2020-02-29", "2021-02-29", "0000-01-01", "1999-12-31T23:59:59.5", "0400-02-29"]
    ),
)
dates = st.one_of(
    st.sampled_from([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2000, 2, 29)]),
    st.dates(dt.date(1995, 1, 1), dt.date(2024, 1, 1)),
)
stamps = st.one_of(
    st.sampled_from([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(2030, 1, 1)),
)
VALUES = {
    Kind.INTEGER: integers,
    Kind.REAL: reals,
    Kind.TEXT: words,
    Kind.BOOLEAN: st.booleans(),
    Kind.DATE: dates,
    Kind.TIMESTAMP: stamps,
}


def _row(table: Table, units: int):
    fields = {name: st.none() | VALUES[f.kind] for name, f in table.columns.items()}
    if table.private:
        fields["u"] = st.one_of(st.none(), st.integers(0, units), st.just(LARGEST))
    if "g" in fields:
        fields["g"] = st.none() | st.sampled_from((*GROUPS, "", "A", "c")) | words
        fields["h"] = st.none() | st.sampled_from((0, 1, LARGEST, -LARGEST - 1))
    if "label" in fields:
        fields["label"] = st.sampled_from(("x", "y", "z")) | st.none()
    return st.fixed_dictionaries(fields)


@st.composite
def tables(draw, units: int = 4, rows: int = 12):
    """Rows of all three tables; the codes of the public one are unique."""
    doctors = draw(st.lists(_row(DOCTORS, units), max_size=3, unique_by=lambda r: r["code"]))
    codes = st.sampled_from([0, 1, 2, LARGEST])
    for row in doctors:
        row["code"] = draw(codes | st.none()) if row["code"] is not None else None
    seen: set[int | None] = set()
    doctors = [r for r in doctors if r["code"] not in seen and not seen.add(r["code"])]
    return {
        "visits": draw(st.lists(_row(VISITS, units), max_size=rows)),
        "doctors": doctors,
        "labs": draw(st.lists(_row(LABS, units), max_size=rows)),
    }


def frame(schema: Schema, table: str, rows) -> pl.DataFrame:
    """The rows of a table as a Polars frame."""
    types: dict[str, Any] = {n: TYPES[f.kind] for n, f in schema.table(table).columns.items()}
    types |= {n: pl.List(TYPES[f.kind]) for n, f in schema.table(table).lists.items()}
    return pl.DataFrame({name: [row[name] for row in rows] for name in types}, schema=types)


class _WritesOnce(DuckDBEngine):
    """An engine that writes a job once where it is told to keep what it wrote."""

    _kept: Any = None
    keeps = False

    def _written(self, job, schema, seeds, stored=None):
        if not self.keeps or stored is not None:
            return super()._written(job, schema, seeds, stored)
        if self._kept is None:
            self._kept = super()._written(job, schema, seeds, stored)
        return self._kept


class Bench:
    """One engine whose frames are exchanged between runs: opening one takes long."""

    def __init__(self, schema: Schema = SCHEMA) -> None:
        self.schema = schema
        empty = {name: frame(schema, name, []) for name in schema.tables}
        self.engine = _WritesOnce(empty, threads=2)

    def put(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Have the engine's tables hold these rows."""
        for name, content in rows.items():
            self.put_frame(name, frame(self.schema, name, content))

    def put_frame(self, name: str, content: pl.DataFrame) -> None:
        """Have one table hold this frame."""
        self.engine._open().register(self.engine._stored[name].view, to_arrow(content)[0])

    def run(self, job: Job, schema: Schema, rows, key: bytes = KEY) -> ExactAnswer:
        """The exact answer over these rows."""
        self.put(rows)
        return self.engine.run(job, schema, key)

    def both(self, job: Job, schema: Schema, first, second) -> tuple[ExactAnswer, ExactAnswer]:
        """The exact answers over two databases: how a job is asked does not hang on its rows."""
        self.engine.keeps = True
        try:
            return self.run(job, schema, first), self.run(job, schema, second)
        finally:
            self.engine.keeps, self.engine._kept = False, None

    def close(self) -> None:
        """Give back the engine."""
        self.engine.close()


def stored(folder: Path, name: str, rows, form: str):
    """The rows as a source of one of the forms."""
    made = frame(SCHEMA, name, rows)
    match form:
        case "polars":
            return made
        case "arrow":
            return made.to_arrow()
        case "pandas":
            return made.to_pandas(use_pyarrow_extension_array=True)
        case "parquet":
            made.write_parquet(folder / f"{name}.parquet")
            return folder / f"{name}.parquet"
        case "parts":
            half = len(made) // 2
            for number, part in enumerate((made[:half], made[half:])):
                part.write_parquet(folder / f"{name}-{number}.parquet")
            return folder / f"{name}-*.parquet"
        case "ipc":
            made.write_ipc(folder / f"{name}.arrow")
            return folder / f"{name}.arrow"
        case "csv":
            path = folder / f"{name}.csv"
            lines = [",".join(made.columns)]
            lines += [",".join(_cell(v) for v in row) for row in made.rows()]
            path.write_bytes(("\n".join(lines) + "\n").encode())
            return path
        case "duckdb":
            import duckdb

            path = folder / f"{name}.duckdb"
            path.unlink(missing_ok=True)
            with duckdb.connect(str(path)) as connection:
                connection.register("made", made.to_arrow())
                connection.execute("CREATE TABLE kept AS SELECT * FROM made")
            return FileSource(path, "duckdb", "kept")
    raise ValueError(form)


def _cell(value) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if isinstance(value, dt.date | dt.datetime):
        return value.isoformat()
    return repr(value)


# --- expressions --------------------------------------------------------------------------------


def _column(table: Table, alias: str, kinds) -> list[ex.Column]:
    return [ex.Column(alias, f.name) for f in table.columns.values() if f.kind in kinds]


V = {kind: _column(VISITS, "v", {kind}) for kind in Kind}

fractions = st.fractions(-50, 1200, max_denominator=100)
number_literals = st.one_of(
    st.sampled_from([0, 1, -1, 7]).map(ex.Literal), fractions.map(ex.Literal)
)


def _ordered(pair):
    return min(pair), max(pair)


# Strategies are made once: making one of a depth makes those of all lesser depths, which takes far
# longer than drawing from it.


@cache
def numbers(depth: int = 2):
    leaf = st.one_of(
        st.sampled_from(V[Kind.INTEGER] + V[Kind.REAL]).filter(lambda c: c.name != "u"),
        number_literals,
    )
    if depth == 0:
        return leaf
    inner = numbers(depth - 1)
    bounds = st.tuples(st.integers(-50, 50), st.integers(-50, 2000)).map(_ordered)
    edges = st.lists(
        st.fractions(-20, 1200, max_denominator=4), min_size=2, max_size=7, unique=True
    )
    return st.one_of(
        leaf,
        st.builds(ex.Arithmetic, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner, inner),
        st.builds(ex.Absolute, inner),
        st.builds(ex.Floor, inner),
        st.builds(ex.Ceil, inner),
        st.builds(lambda x, b: ex.Clamp(x, Fraction(b[0]), Fraction(b[1])), inner, bounds),
        st.builds(lambda x, e: ex.Bin(x, tuple(sorted(e))), inner, edges),
        st.builds(lambda *xs: ex.Least(xs), inner, inner),
        st.builds(lambda *xs: ex.Greatest(xs), inner, inner),
        st.builds(lambda *xs: ex.Coalesce(xs), inner, inner),
        st.builds(
            lambda c, a, b: ex.Case(((c, a),), b),
            truths(depth - 1),
            inner,
            inner | st.just(ex.Literal(None)),
        ),
        st.builds(
            ex.DatePart,
            st.sampled_from(list(ex.PARTS)),
            days(depth - 1),
        ),
        calls.calls(calls.NUMBERS, _operands(depth - 1)),
        calls.casts(Kind.INTEGER, _operands(depth - 1)),
        calls.casts(Kind.REAL, _operands(depth - 1)),
    )


@cache
def _operands(depth: int):
    return calls.operands(numbers(depth), texts(min(depth, 1)), days(min(depth, 1)))


@cache
def days(depth: int = 1):
    leaf = st.one_of(
        st.sampled_from(V[Kind.DATE] + V[Kind.TIMESTAMP]),
        dates.map(ex.Literal),
        stamps.map(ex.Literal),
    )
    if depth == 0:
        return leaf
    parts, inner = st.sampled_from(ex.TRUNCATIONS), days(depth - 1)
    drawn = calls.operands(number_literals, texts(0), inner)
    return st.one_of(
        leaf,
        st.builds(ex.DateTruncate, parts, inner),
        calls.calls(calls.DAYS, drawn),
        calls.casts(Kind.DATE, drawn),
        calls.casts(Kind.TIMESTAMP, drawn),
    )


@cache
def texts(depth: int = 1):
    leaf = st.one_of(st.sampled_from(V[Kind.TEXT]), words.map(ex.Literal))
    if depth == 0:
        return leaf
    inner = texts(depth - 1)
    return st.one_of(
        leaf,
        st.builds(ex.Lower, inner),
        st.builds(ex.Upper, inner),
        st.builds(ex.Substring, inner, st.integers(1, 3), st.sampled_from([0, 1, 2, 2**40])),
        calls.calls(calls.TEXTS, calls.operands(numbers(0), inner, days(0))),
        calls.casts(Kind.TEXT, calls.operands(numbers(0), inner, days(0))),
    )


def _few(values):
    return st.lists(values, min_size=1, max_size=3).map(tuple)


@cache
def truths(depth: int = 2):
    compare = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    leaf = st.sampled_from(V[Kind.BOOLEAN])
    if depth == 0:
        return leaf | st.just(ex.Literal(True))
    below = depth - 1
    pairs = [numbers(below), texts(below), days(below)]
    some = st.one_of(*pairs)
    return st.one_of(
        leaf,
        *(st.builds(ex.Compare, compare, kind, kind) for kind in pairs),
        *(st.builds(ex.Between, kind, kind, kind) for kind in pairs),
        st.builds(
            ex.InList, numbers(below), st.lists(fractions, min_size=1, max_size=3).map(tuple)
        ),
        st.builds(ex.InList, texts(below), st.lists(words, min_size=1, max_size=3).map(tuple)),
        st.builds(ex.IsNull, some),
        st.sampled_from([ex.Unreadable(column(name)) for name in "xgwdb"]),
        calls.calls(calls.TRUTHS, _operands(below)),
        calls.casts(Kind.BOOLEAN, _operands(below)),
        st.builds(ex.Not, truths(below)),
        st.builds(lambda *xs: ex.And(xs), truths(below), truths(below)),
        st.builds(lambda *xs: ex.Or(xs), truths(below), truths(below)),
    )


def admitted(node: ex.Expression, scope: Scope) -> bool:
    """Whether the type checker lets an expression through."""
    try:
        infer(node, scope)
    except QueryError:
        return False
    return True


# --- jobs -----------------------------------------------------------------------------------------

SCAN = Scan("visits", "v")
SCOPE = scope_of(SCAN, SCHEMA)


def column(name: str, alias: str = "v") -> ex.Column:
    return ex.Column(alias, name)


@cache
def _admitted(kind):
    return kind().filter(lambda node: admitted(node, SCOPE))


@cache
def _lattices():
    ends = st.tuples(st.integers(-2000, 2000), st.integers(-2000, 2000)).map(_ordered)
    steps = st.sampled_from(
        [Fraction(1), Fraction(1, 100), Fraction(1, 4), Fraction(5, 3), Fraction(2)]
    )
    return st.tuples(steps, ends, st.integers(-2000, 2000), st.integers(-10, 4000))


@st.composite
def measurements(draw, operands, leaves: bool = True):
    operand = draw(operands)
    step, (lower, upper), centre, square_centre = draw(_lattices())
    square, null_as_centre = draw(st.booleans()), draw(st.booleans())
    total = Total(
        operand,
        step,
        lower,
        upper,
        centre,
        square,
        square_centre if square else 0,
        null_as_centre,
        draw(st.sampled_from([1, 1, 2, 1024])),
    )
    width = draw(st.integers(1, 300))
    bins = (upper - lower) // width + 1
    choices = [Rows(), Units(), Values(operand), total]
    if leaves:
        choices.append(
            Leaves(operand, step, lower, upper, width, bins, draw(st.sampled_from([1, 3, 1024])))
        )
    return draw(st.sampled_from(choices))


@cache
def _keys():
    plain = [
        GroupKey("g", column("g"), Kind.TEXT, GROUPS),
        GroupKey("g", column("g"), Kind.TEXT, ("b", "o'b", "elsewhere")),
        GroupKey("g", column("g"), Kind.TEXT, None),
        GroupKey("h", column("h"), Kind.INTEGER, None),
        GroupKey("w", column("w"), Kind.TEXT, None),
        GroupKey("y", column("y"), Kind.REAL, None),
        GroupKey("b", column("b"), Kind.BOOLEAN, (False, True)),
        GroupKey("d", column("d"), Kind.DATE, None),
        GroupKey("t", column("t"), Kind.TIMESTAMP, None),
        GroupKey("x", column("x"), Kind.REAL, (Fraction(-10), Fraction(1000), Fraction(1, 200))),
        GroupKey(
            "i",
            ex.Bin(column("i"), tuple(map(Fraction, (0, 18, 65, 110)))),
            Kind.INTEGER,
            (0, 1, 2),
        ),
        GroupKey("s", ex.Upper(ex.Substring(column("w"), 1, 1)), Kind.TEXT, ("A", "B", "")),
    ]
    return st.lists(st.sampled_from(plain), max_size=2, unique_by=lambda k: k.name).map(tuple)


@st.composite
def jobs(draw, *, units: bool | None = None, most: int | None = None):
    """A job over the hostile tables; ``most`` sets both bounds so high that nothing is chosen."""
    relation: object = SCAN
    operands = _admitted(numbers)
    join = draw(st.sampled_from(["none", "none", "public", "unit"]))
    if join == "public":
        on = ((column("h"), ex.Column("p", "code")),)
        relation = PublicJoin(relation, Scan("doctors", "p"), on, draw(st.booleans()))
        operands = operands | st.just(ex.Column("p", "weight"))
    if join == "unit":
        relation = UnitJoin(relation, Scan("labs", "l"), column("u"), ex.Column("l", "u"))
        operands = operands | st.just(ex.Column("l", "z"))
    if draw(st.booleans()):
        relation = Filter(relation, draw(_admitted(truths)))
    keys = draw(_keys())
    if join == "public" and draw(st.booleans()):
        keys = (GroupKey("label", ex.Column("p", "label"), Kind.TEXT, ("y", "x")),)
    has_unit = (
        draw(st.booleans()) if units is None and join != "unit" else bool(units or join == "unit")
    )
    wanted = draw(st.lists(measurements(operands), min_size=1, max_size=4, unique=True))
    if not has_unit:
        return Job(relation, None, keys, tuple(wanted), 1, 1)
    groups = most or draw(st.integers(1, 2))
    return Job(relation, column("u"), keys, tuple(wanted), groups, most or draw(st.integers(1, 3)))

"""What cannot be answered is refused before the charge: requests, units, sources that change."""

from __future__ import annotations

import datetime as dt_
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dt
from dither.errors import ArgumentError, BoundsError, DitherError, PolicyError, QueryError
from dither.plan.schema import Kind
from dither.sql.parse import MOST_TOKENS

LONE = "caf\udce9"
ROWS = pl.DataFrame({"u": [1, 2, 3], "w": ["a", "b", "a"], "i": [1, 2, 3]})


def policy(folder, **table):
    """A policy over one table ``t``."""
    return {
        "budget": {"epsilon": 1000, "delta": "1e-3", "ledger": str(folder / "l")},
        "tables": {"t": table},
    }


def session(folder, source=ROWS, **table):
    """A session over one table ``t``."""
    return dt.open(policy(folder, **table), sources={"t": source})


def people(folder, source, kind=None):
    """A session whose units are the column ``u``."""
    columns = {"u": {"type": kind}} if kind else {}
    return session(folder, source, unit="u", max_groups=1, max_rows=1, columns=columns)


def spent(opened) -> object:
    """What the account has spent."""
    return opened.balance()[0].spent.epsilon


# --- requests ---------------------------------------------------------------------------------

REQUESTS = {
    "a literal that is not Unicode": lambda s: s.sql(
        f"SELECT COUNT(*) AS n FROM t WHERE w = '{LONE}'"
    ),
    "a name that is not Unicode": lambda s: s.sql(f'SELECT COUNT(*) AS "{LONE}" FROM t'),
    "a filter that is not Unicode": lambda s: (
        s.table("t").filter(f"w = '{LONE}'").agg(n=dt.count())
    ),
    "a key that is not Unicode": lambda s: s.table("t").group_by(**{LONE: "w"}).agg(n=dt.count()),
    "an output that is not Unicode": lambda s: s.table("t").agg(**{LONE: dt.count()}),
    "an output without a name": lambda s: s.table("t").agg(**{"": dt.count()}),
    "NUL in a name": lambda s: s.sql('SELECT COUNT(*) AS "a\x00b" FROM t'),
    "nothing to count": lambda s: s.sql("SELECT COUNT(DISTINCT) FROM t"),
    "thousands of conditions": lambda s: s.sql(
        "SELECT COUNT(*) AS n FROM t WHERE " + " AND ".join(["i <> 5"] * MOST_TOKENS)
    ),
    "thousands of values": lambda s: s.sql(
        f"SELECT COUNT(*) AS n FROM t WHERE i IN ({','.join(['5'] * MOST_TOKENS)})"
    ),
    "thousands of outputs": lambda s: s.table("t").agg(
        **{f"o{i}": dt.count() for i in range(1000)}
    ),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_request_that_cannot_be_written_costs_nothing(tmp_path, request_):
    """Each is an error of the query, and the account is as it was."""
    with session(tmp_path) as opened:
        with pytest.raises(QueryError):
            request_(opened).release(1)
        assert spent(opened) == 0


@pytest.mark.parametrize("text", [LONE, "a\x00b"])
@pytest.mark.parametrize("place", ["analyst", "unit", "value", "column"])
def test_a_policy_that_cannot_be_written_is_refused(tmp_path, text, place):
    """Names and labels of the policy stand in ledgers and releases, so they are read first."""
    made = policy(tmp_path, columns={"w": {"values": ["a", "b"]}})
    if place == "analyst":
        made["analysts"] = {text: {"epsilon": 1}}
    elif place == "column":
        made["tables"]["t"]["columns"][text] = {}
    else:
        made["tables"]["t"]["columns"]["w"] = (
            {"unit": text} if place == "unit" else {"values": [text]}
        )
    with pytest.raises(PolicyError, match="the policy's text"):
        dt.open(made, sources={"t": ROWS})


def test_numbers_beyond_all_use_are_refused(tmp_path):
    """Not an overflow, and not a machine that hangs."""
    with session(tmp_path) as opened:
        question = opened.sql("SELECT COUNT(*) AS n FROM t")
        for ask in (question.release, question.preview, question.explain):
            with pytest.raises(ArgumentError, match="epsilon must be at most"):
                ask(10**400)
        with pytest.raises(ArgumentError, match="half_width"):
            question.budget_for(10**400)
        assert spent(opened) == 0
    for section, fields in (("budget", {"epsilon": 10**400}), ("engine", {"threads": 2**31})):
        made = policy(tmp_path)
        made[section] = made.get(section, {}) | fields
        with pytest.raises(PolicyError, match=section):
            dt.open(made, sources={"t": ROWS})


def test_the_engine_rehearses_over_empty_tables(tmp_path, monkeypatch):
    """What the engine does not run fails before the charge, whatever the reason."""
    with session(tmp_path) as opened:
        question = opened.sql("SELECT COUNT(*) AS n FROM t WHERE i > 1")
        engine = opened._engine
        written = type(engine)._written

        def misspelt(self, *arguments, **named):
            query, sums, histograms = written(self, *arguments, **named)
            return query, sums.replace("COUNT", "COUNTS"), histograms

        monkeypatch.setattr(type(engine), "_written", misspelt)
        with pytest.raises(QueryError, match="nothing was charged"):
            question.release(1)
        assert spent(opened) == 0


def test_sums_of_doubles_are_refused_by_the_rehearsal(tmp_path, monkeypatch):
    """Were a sum not of whole numbers, the trial over empty tables would see it by its type."""
    from dither.engines.duckdb.dialect import DuckDBDialect

    with session(tmp_path, columns={"i": {"bounds": [0, 9]}}) as opened:
        monkeypatch.setattr(
            DuckDBDialect,
            "summed_of_size",
            lambda self, x, _: self.summed(self.cast(x, Kind.REAL)),
        )
        with pytest.raises(QueryError, match="whole numbers; nothing was charged"):
            opened.sql("SELECT SUM(i) AS s FROM t").release(1)
        assert spent(opened) == 0
        monkeypatch.undo()
        assert opened.sql("SELECT SUM(i) AS s FROM t").release(500).frame["s"][0] == 6


@pytest.mark.parametrize("sql", ["VAR_SAMP(x)", "STDDEV(x)", "VAR_POP(x * 0.5)"])
def test_squares_that_no_double_holds_are_refused(tmp_path, sql):
    """The message names the bounds and what would work."""
    wide = {"x": {"bounds": [-1e300, 1e300]}}
    frame = pl.DataFrame({"x": [1.0, 2.0]})
    with session(tmp_path, frame, columns=wide) as opened:
        with pytest.raises(BoundsError, match=r"e\+(300|299).* within ±1e150.*CLAMP"):
            opened.sql(f"SELECT {sql} AS v FROM t")
        for fits in ("SUM(x)", "AVG(x)", "MEDIAN(x)", "STDDEV(CLAMP(x, -9, 9))"):
            question = opened.sql(f"SELECT {fits} AS v FROM t")
            assert len(str(question.explain(1))) < 4000
            question.release(1)
    wide = {"x": {"bounds": [-1e150, 1e150]}}
    (tmp_path / "less").mkdir()
    with session(tmp_path / "less", frame, columns=wide) as opened:
        assert (
            opened.sql("SELECT VAR_SAMP(x) AS v, STDDEV(x) AS s FROM t").release(1).frame.height
            == 1
        )


# --- sources that change ------------------------------------------------------------------------


def test_columns_of_a_csv_file_are_those_that_were_opened(tmp_path):
    """Swapped in the file, another column would be the unit: refused before the charge."""
    path = tmp_path / "t.csv"
    path.write_text("u,i\n7,1\n8,2\n")
    made = policy(tmp_path, source=str(path), unit="u", max_groups=1, max_rows=1)
    with dt.open(made) as opened:
        question = opened.sql("SELECT COUNT(DISTINCT u) AS n FROM t")
        question.release(1)
        path.write_text("u,i\n7,1\n8,2\n9,3\n")
        question.release(1)
        for head in ("i,u\n", "u\n", "u,i,j\n", "", "u;i\n"):
            path.write_text(head + "1,7\n2,8\n")
            with pytest.raises(PolicyError, match="columns are not what they were"):
                question.release(1)
        assert spent(opened) == 2


def test_columns_of_a_parquet_file_are_those_that_were_opened(tmp_path):
    """Other names or types are refused before the charge; other rows are read."""
    path = tmp_path / "t.parquet"
    ROWS.write_parquet(path)
    made = policy(tmp_path, source=str(path), columns={"i": {"bounds": [0, 9]}})
    with dt.open(made) as opened:
        question = opened.sql("SELECT SUM(i) AS n FROM t")
        pl.concat([ROWS, ROWS]).write_parquet(path)
        assert question.release(500).frame["n"][0] == pytest.approx(12, abs=3)
        for other in (
            ROWS.rename({"i": "w", "w": "i"}),
            ROWS.with_columns(pl.col("i").cast(pl.String)),
            ROWS.with_columns(pl.col("i").cast(pl.Datetime("ms"))),
        ):
            other.write_parquet(path)
            with pytest.raises(PolicyError, match="columns are not what they were"):
                question.release(1)
        path.write_bytes(b"PAR1")
        with pytest.raises(PolicyError):
            question.release(1)
        assert spent(opened) == 500


def test_a_replay_says_what_it_is_of(tmp_path):
    """The stored answer comes back though its source is gone, and is dated."""
    path = tmp_path / "t.csv"
    path.write_text("u,i\n7,1\n")
    with dt.open(policy(tmp_path, source=str(path))) as opened:
        question = opened.sql("SELECT COUNT(*) AS n FROM t")
        first = question.release(1, token="monday")
        path.unlink()
        again = question.release(1, token="monday")
        assert again.frame.equals(first.frame)
        year = dt_.datetime.now(dt_.UTC).year
        (note,) = [n for n in again.notes if n not in first.notes]
        assert note.startswith(f"replayed: the answer of {year}-")
        assert "as they were then" in note
        assert note.split(",")[0] in again.summary().replace("\n", " ")
        assert spent(opened) == 1


# --- units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["7", "07", "7.4"], "integer"),
        (["7", "7.0"], "real"),
        (["12:00:00", "2020-01-01"], "date"),
        (["2020-01-01", "2020-01-01 00:00:00"], "timestamp"),
        (["1", "true"], "boolean"),
        ([0.0, -0.0], "text"),
        ([1, 2], "real"),
        ([1, 2], "boolean"),
        ([dt_.datetime(2020, 1, 1, 1), dt_.datetime(2020, 1, 1, 2)], "date"),
        ([dt_.date(2020, 1, 1)], "timestamp"),
        ([Decimal("1.25"), Decimal("1.3")], "real"),
        ([Decimal("1.25"), Decimal("1.3")], None),
        (pl.Series([2**63, 2**63 + 1], dtype=pl.UInt64), None),
    ],
)
def test_a_unit_is_compared_as_it_is_stored_or_refused(tmp_path, values, kind):
    """Read as another type two people could become one, or one two."""
    with pytest.raises(PolicyError, match="two people could become one"):
        people(tmp_path, pl.DataFrame({"u": values}), kind)


@pytest.mark.parametrize(
    ("values", "kind", "units"),
    [
        (["7", "07", "7.4", "7 ", "A", "a", "é", "e\u0301", "", "a\x00", None], None, 10),
        ([7, -7, 2**63 - 1], "text", 3),
        ([0.0, -0.0, 0.5, float("nan"), float("nan"), None], None, 2),
        ([Decimal("1.25"), Decimal("1.30")], "text", 2),
        (pl.Series([2**63, 2**63 + 1], dtype=pl.UInt64), "text", 2),
    ],
)
def test_units_that_differ_are_told_apart(tmp_path, values, kind, units):
    """Case, blanks and spelling count; both zeros are one number, and NaN is nobody."""
    with people(tmp_path, pl.DataFrame({"u": values}, strict=False), kind) as opened:
        answer = opened.sql("SELECT COUNT(DISTINCT u) AS n FROM t").release(500)
        assert answer.frame["n"][0] == units


def test_units_beyond_64_bits_are_people_or_refused(tmp_path):
    """Read in 64 bits they would be nobody; as text each is one."""
    source = tmp_path / "people.duckdb"
    with duckdb.connect(source) as made:
        made.execute(f"CREATE TABLE t AS SELECT UNNEST([{2**100}, {2**100 + 1}]::HUGEINT[]) AS u")

    def opened(column):
        unit = {"unit": "u", "max_groups": 1, "max_rows": 1}
        return dt.open(policy(tmp_path, **unit, columns={"u": column}), sources={"t": source})

    with pytest.raises(PolicyError, match=r"stored as HUGEINT.*some nobody; declare type = 'text'"):
        opened({})
    with opened({"type": "text"}) as session:
        found = session.sql("SELECT COUNT(DISTINCT u) AS n FROM t").release(500)
        assert found.frame["n"][0] == 2


@pytest.mark.parametrize("place", ["unit", "column", "typed"])
def test_a_type_that_is_not_read_is_refused_with_what_helps(tmp_path, place):
    """No declared type makes it readable, so none is advised."""
    wide = pl.DataFrame({"u": pl.Series([2**100, 7], dtype=pl.Int128)})
    declared = {"u": {"type": "integer"}} if place == "typed" else {"u": {}}
    table = {"unit": "u", "max_groups": 1, "max_rows": 1} if place == "unit" else {}
    with pytest.raises(PolicyError, match="store it as text, numbers of at most 64 bits") as caught:
        session(tmp_path, wide, **table, columns={} if place == "unit" else declared)
    assert "declare type" not in str(caught.value)
    told = wide.with_columns(pl.col("u").cast(pl.String))
    with people(tmp_path, told) as opened:
        assert opened.sql("SELECT COUNT(DISTINCT u) AS n FROM t").release(500).frame["n"][0] == 2


def test_units_of_two_stored_types_are_not_joined(tmp_path):
    """A file of text and one of numbers spell one person in two ways."""
    (tmp_path / "labs.csv").write_text("u,v\n7,1\n07,2\n")
    private = {"unit": "u", "max_groups": 1, "max_rows": 1, "max_join_rows": 1}
    made = policy(tmp_path, **private, columns={"u": {"type": "text"}})
    made["tables"]["labs"] = dict(private)
    made["units"] = {"person": {"columns": {"t": "u", "labs": "u"}}}
    with dt.open(made, sources={"t": ROWS, "labs": tmp_path / "labs.csv"}) as opened:
        with pytest.raises(PolicyError, match="stored as BIGINT and VARCHAR"):
            opened.sql("SELECT COUNT(*) AS n FROM t JOIN labs ON t.u = labs.u").release(1)
        assert spent(opened) == 0


# --- frames and files whose values are odd --------------------------------------------------------

ODD = (1, 1.5, True, b"x", None, pd.NA, pd.NaT, [1], {"a": 1}, object(), Decimal("sNaN"), 10**5000,
       complex(1), LONE, "\x00", dt_.date(2020, 1, 1), pd.Timestamp("2020-01-01"))  # fmt: skip


@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize("odd", ODD, ids=lambda v: type(v).__name__)
def test_one_odd_object_changes_no_schema_and_raises_nothing(tmp_path, odd, categories):
    """A pandas column of objects is text whatever it holds, and its other rows read as before."""
    series = pd.Series(["a", "b", odd], dtype=object)
    if categories:
        try:
            series = series.astype("category")
        except (TypeError, UnicodeEncodeError):
            pytest.skip("pandas has no such category")
    frame = pd.DataFrame({"w": series})
    made = policy(tmp_path, columns={"w": {"values": ["a", "b"]}})
    with dt.open(made, sources={"t": frame}) as opened:
        assert opened.tables["t"].column("w").kind.value == "text"
        answer = opened.sql("SELECT w, COUNT(*) AS n FROM t GROUP BY w").release(500).frame
        assert answer["n"].to_list() == [1, 1]


def test_objects_read_as_declared_and_units_as_text_alone(tmp_path):
    """Dates and numbers among objects are read as they print; a unit is never a number's text."""
    frame = pd.DataFrame(
        {
            "u": pd.Series(["7", 7, 7.0, "x"], dtype=object),
            "d": pd.Series([dt_.date(2020, 1, 1), "2020-01-01", 5, None], dtype=object),
        }
    )
    columns = {"d": {"type": "date"}}
    with session(tmp_path, frame, unit="u", max_groups=1, max_rows=9, columns=columns) as opened:
        answer = opened.sql("SELECT COUNT(DISTINCT u) AS n FROM t").release(500)
        assert answer.frame["n"][0] == 2
    (tmp_path / "rows").mkdir()
    with session(tmp_path / "rows", frame, columns=columns) as opened:
        answer = opened.sql("SELECT COUNT(*) AS n FROM t WHERE d = DATE '2020-01-01'")
        assert answer.release(200).frame["n"][0] == 2


def test_names_that_libraries_fail_on_are_refused(tmp_path):
    """NUL in a column's name is an error with a fix, not a panic."""
    name = "a\x00b"
    pq.write_table(pa.table({name: [1]}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(f"{name}\n1\n")
    sources = [
        pl.DataFrame({name: [1]}),
        pl.LazyFrame({name: [1]}),
        pd.DataFrame({name: [1]}),
        pa.table({name: [1]}),
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
    ]
    for source in sources:
        with pytest.raises(PolicyError, match="name of"):
            session(tmp_path, source)


@pytest.mark.parametrize("stored", ["ms", "us", "ns"])
@pytest.mark.parametrize("kind", ["frame", "parquet"])
@pytest.mark.parametrize("wanted", ["text", "timestamp", "date"])
def test_a_timestamp_beyond_all_years_raises_nothing(tmp_path, stored, kind, wanted):
    """Read as any kind it is NULL, and the other rows are as they were."""
    ticks = [0, 2**62, 2**63 - 1, -(2**63) + 1, -(2**63)]
    table = pa.table({"d": pa.array(ticks, pa.timestamp(stored)), "i": [1] * 5})
    source = table
    if kind == "parquet":
        source = tmp_path / "t.parquet"
        pq.write_table(table, source)
    with session(tmp_path, source, columns={"d": {"type": wanted}}) as opened:
        answer = opened.sql("SELECT COUNT(*) AS a, COUNT(d) AS b FROM t").release(500).frame
        assert answer["a"][0] == 5
        assert 1 <= answer["b"][0] <= 5


def test_a_table_that_fails_to_open_charges_nothing(tmp_path):
    """A file that is not a database, a lazy frame that cannot be computed: no value is shown."""
    (tmp_path / "t.duckdb").write_bytes(b"secret")
    lazy = pl.LazyFrame({"w": ["secret"]}).with_columns(pl.col("w").cast(pl.Int64))
    for source in (tmp_path / "t.duckdb", lazy):
        with pytest.raises(DitherError) as caught:
            session(tmp_path, source)
        assert "secret" not in str(caught.value)
    with duckdb.connect(str(tmp_path / "u.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT 1 AS i")
    with session(tmp_path, tmp_path / "u.duckdb") as opened:
        assert opened.sql("SELECT COUNT(*) AS n FROM t").release(500).frame["n"][0] == 1

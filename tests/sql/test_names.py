"""Names, joins and keys as the Python builder uses them, without SQL around."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from fractions import Fraction as F

import pytest

from dither.errors import QueryError, UnknownNameError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.expressions import PARTS, TRUNCATIONS
from dither.plan.relations import Filter, PublicJoin, Scan, UnitJoin
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.sql import Names, parse_expression
from dither.sql.dates import date_part, read_timestamp, truncation
from dither.sql.names import find_table, free_name, key_expression
from dither.sql.rows.joins import join, join_public, join_unit
from dither.sql.rows.sources import start
from sql.sql_tables import SCHEMA

VISITS = Scan("visits", "v")
CITY = ex.Column("v", "city")
PID = ex.Column("v", "pid")
JOINED = join_public(VISITS, Scan("cities", "c"), [(CITY, "id")], False, SCHEMA)


def test_names_of_one_table() -> None:
    """By name, alias and in any case; exactly where quoted."""
    names = Names(VISITS, SCHEMA)
    assert names.column("age") == names.column("AGE", "V") == ex.Column("v", "age")
    assert names.column("mixed case") == ex.Column("v", "Mixed Case")
    with pytest.raises(UnknownNameError, match="did you mean 'Mixed Case'"):
        names.column("mixed case", exact=True)
    with pytest.raises(UnknownNameError, match="unknown table 'V'"):
        names.column("age", "V", exact_table=True)
    with pytest.raises(UnknownNameError, match="in table 'visits'; did you mean 'age'"):
        names.column("agee", "v")


def test_spelling_decides_between_columns_that_differ_in_case() -> None:
    """The same spelling wins; another one is ambiguous."""
    columns = {n: ColumnFacts(n, Kind.INTEGER) for n in ("Age", "age")}
    schema = Schema({"t": Table("t", columns)})
    names = Names(Scan("t", "t"), schema)
    assert names.column("Age").name == "Age"
    assert names.column("age").name == "age"
    with pytest.raises(QueryError, match=r"ambiguous; write 't\.Age' or 't\.age'"):
        names.column("AGE")


def test_spelling_decides_between_tables_that_differ_in_case() -> None:
    """The same goes for tables."""
    schema = Schema({n: Table(n, {}) for n in ("T", "t")})
    assert find_table("T", schema).name == "T"
    two = Schema({n: Table(n, {}) for n in ("Tab", "tAB")})
    with pytest.raises(QueryError, match="could be 'Tab' and 'tAB'"):
        find_table("TAB", two)


def test_names_of_joined_tables() -> None:
    """A name in two tables is ambiguous, unless the join sets the two equal."""
    names = Names(JOINED, SCHEMA)
    assert names.column("name") == ex.Column("c", "name")
    with pytest.raises(QueryError, match=r"'region' is ambiguous; write 'v\.region' or 'c\.region"):
        names.column("region")
    equal = join_public(VISITS, Scan("cities", "c"), [(CITY, "city")], True, SCHEMA)
    assert Names(equal, SCHEMA).column("city") == CITY
    assert Names(Filter(equal, CITY), SCHEMA).column("city") == CITY


def test_start() -> None:
    """A query starts from a private table."""
    assert start("VISITS", None, SCHEMA) == Scan("visits", "visits")
    assert start("visits", "v", SCHEMA) == VISITS
    with pytest.raises(UnsupportedError, match="start FROM the private table"):
        start("cities", None, SCHEMA)


def test_join_goes_by_the_table() -> None:
    """Public tables and private ones join by different rules."""
    assert isinstance(
        join(VISITS, Scan("cities", "cities"), [(CITY, "id")], True, SCHEMA), PublicJoin
    )
    assert isinstance(join(VISITS, Scan("drugs", "drugs"), [(PID, "pid")], False, SCHEMA), UnitJoin)
    kept = join(VISITS, Scan("drugs", "drugs"), [(PID, "pid")], True, SCHEMA)
    assert isinstance(kept, UnitJoin)
    assert kept.keep_all


def test_public_join_needs_a_unique_column() -> None:
    """Without one a row could be multiplied; with several pairs one is enough."""
    region = ex.Column("v", "region")
    with pytest.raises(QueryError, match=r"fan out without a bound.*unique = \['region'\]"):
        join_public(VISITS, Scan("cities", "cities"), [(region, "region")], False, SCHEMA)
    with pytest.raises(QueryError, match="at least one"):
        join_public(VISITS, Scan("cities", "cities"), [], False, SCHEMA)
    with pytest.raises(UnknownNameError, match="'nothing'"):
        join_public(VISITS, Scan("cities", "cities"), [(CITY, "nothing")], False, SCHEMA)
    both = join_public(
        VISITS, Scan("cities", "c"), [(region, "region"), (CITY, "id")], False, SCHEMA
    )
    assert [c.name for _, c in both.on] == ["region", "id"]


def test_the_wrong_door_is_refused() -> None:
    """A private table is never joined as a public one, nor the other way round."""
    with pytest.raises(QueryError, match="'drugs' is private"):
        join_public(VISITS, Scan("drugs", "drugs"), [(PID, "pid")], False, SCHEMA)
    with pytest.raises(QueryError, match="'cities' is public"):
        join_unit(VISITS, Scan("cities", "cities"), [(PID, "id")], False, SCHEMA)


def test_unit_join_goes_by_both_units() -> None:
    """Before or after public joins, and never behind a filter."""
    after = join_unit(JOINED, Scan("drugs", "d"), [(PID, "pid")], False, SCHEMA)
    assert after == UnitJoin(JOINED, Scan("drugs", "d"), PID, ex.Column("d", "pid"))
    before = join_unit(VISITS, Scan("drugs", "drugs"), [(PID, "pid")], False, SCHEMA)
    assert isinstance(
        join(before, Scan("cities", "cities"), [(CITY, "id")], False, SCHEMA), PublicJoin
    )
    with pytest.raises(UnsupportedError, match="join first, then filter"):
        join_unit(Filter(VISITS, CITY), Scan("drugs", "drugs"), [(PID, "pid")], False, SCHEMA)
    with pytest.raises(QueryError, match=r"write ON v\.pid = drugs\.pid"):
        join_unit(VISITS, Scan("drugs", "drugs"), [(CITY, "pid")], False, SCHEMA)
    with pytest.raises(UnsupportedError, match="more than two private tables"):
        join_unit(before, Scan("scans", "scans"), [(PID, "pid")], False, SCHEMA)
    beside = join(before, Scan("cities", "c"), [(CITY, "id")], False, SCHEMA)
    with pytest.raises(UnsupportedError, match="more than two private tables"):
        join_unit(beside, Scan("scans", "scans"), [(PID, "pid")], False, SCHEMA)


def test_two_tables_of_one_name() -> None:
    """Aliases are told apart whatever their case."""
    with pytest.raises(QueryError, match="two tables go by the name 'V'"):
        join_public(VISITS, Scan("cities", "V"), [(CITY, "id")], False, SCHEMA)


def test_key_expression() -> None:
    """Edges cut a bare column; the unit and constants are not keys."""
    names = Names(VISITS, SCHEMA)
    age = ex.Column("v", "age")
    assert key_expression(age, names) == ex.Bin(age, (F(0), F(18), F(65), F(110)))
    assert key_expression(ex.Absolute(age), names) == ex.Absolute(age)
    with pytest.raises(QueryError, match="one person"):
        key_expression(PID, names)
    with pytest.raises(QueryError, match="constant"):
        key_expression(ex.Literal(1), names)


def test_free_name() -> None:
    """Case does not make a name another one."""
    assert free_name("n", ["N", "n_2"]) == "n_3"
    assert free_name("n", []) == "n"


def test_date_parts_are_those_of_the_plan() -> None:
    """Every part and truncation of the plan has its own name, and synonyms lead to them."""
    assert {date_part(p.upper()) for p in PARTS} == set(PARTS)
    assert {truncation(p.upper()) for p in TRUNCATIONS} == set(TRUNCATIONS)
    assert date_part("dow") == date_part("weekday") == "dayofweek"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2020-01-01", dt.datetime(2020, 1, 1)),
        ("2020-01-01T10:30", dt.datetime(2020, 1, 1, 10, 30)),
        ("2020-01-01 10:30:15.25", dt.datetime(2020, 1, 1, 10, 30, 15, 250000)),
        ("2020-01-01 10:30:15Z", dt.datetime(2020, 1, 1, 10, 30, 15)),
        ("2020-01-01 10:30:15 +05:30", dt.datetime(2020, 1, 1, 5, 0, 15)),
        ("2020-01-01 10:30-01", dt.datetime(2020, 1, 1, 11, 30)),
    ],
)
def test_timestamps_with_an_offset(text: str, value: dt.datetime) -> None:
    """All are in UTC."""
    assert read_timestamp(text, offset=True) == value


@pytest.mark.parametrize(
    "text", ["", "now", "2020", "20200101", "2020-1-1", "٢٠٢٠-٠١-٠١", "0001-01-01 00:00+23:00"]
)
def test_other_timestamps_are_refused(text: str) -> None:
    """One spelling, so that none is misread; and none before the year 1."""
    with pytest.raises(QueryError, match="HH:MM:SS"):
        read_timestamp(text, offset=True)


def test_dates_are_read_deep_inside() -> None:
    """Also below CASE and NOT, and on either side."""
    day = ex.Column("v", "day")
    read = parse_expression(
        "NOT CASE WHEN '2020-01-02' < day THEN day = '2020-01-03' ELSE TRUE END",
        Names(VISITS, SCHEMA),
    )
    first, last = (ex.Literal(dt.date(2020, 1, n)) for n in (2, 3))
    arm = ex.Compare("<", first, day), ex.Compare("=", day, last)
    assert read == ex.Not(ex.Case((arm,), ex.Literal(True)))
    switched = parse_expression("CASE day WHEN '2020-01-02' THEN 1 END", Names(VISITS, SCHEMA))
    assert switched.branches[0][0] == ex.Compare("=", day, first)


def test_this_room_does_not_load_sqlglot_until_it_reads() -> None:
    """What the builder shares is light."""
    code = (
        "import sys, dither.sql.rows.joins, dither.sql.names, dither.sql.dates\n"
        "assert 'sqlglot' not in sys.modules\n"
        "dither.sql.parse_query\n"
        "assert 'sqlglot' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

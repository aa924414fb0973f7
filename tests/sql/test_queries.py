"""What each construct of SQL is read as."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction as F

import pytest

from dither.errors import UnsupportedError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.relations import Filter, PublicJoin, Scan, UnitJoin
from dither.sql import Names, parse_expression, parse_query
from dither.sql.allow_list import AGGREGATE_NAMES, FUNCTION_NAMES
from sql.sql_tables import ACCEPTED, SCHEMA

VISITS = Scan("visits", "visits")
NAMES = Names(VISITS, SCHEMA)


def col(name: str, table: str = "visits") -> ex.Column:
    """A column of the visits."""
    return ex.Column(table, name)


def lit(value: object) -> ex.Literal:
    """A constant."""
    return ex.Literal(value)  # type: ignore[arg-type]


def read(text: str) -> ex.Expression:
    """Read an expression over the visits."""
    return parse_expression(text, NAMES)


AGE, COST, DAY, SEEN, REGION, SMOKER = map(col, ("age", "cost", "day", "seen", "region", "smoker"))

EXPRESSIONS = {
    "age": AGE,
    "AGE": AGE,
    '"age"': AGE,
    "visits.age": AGE,
    "Visits.Age": AGE,
    '"Mixed Case"': col("Mixed Case"),
    "12": lit(12),
    "007": lit(7),
    "0.01": lit(F(1, 100)),
    ".5": lit(F(1, 2)),
    "1.0": lit(F(1)),
    "1e3": lit(F(1000)),
    "1_000": lit(1000),
    "-5": lit(-5),
    "- -5": lit(5),
    "+5": lit(5),
    "-0.5": lit(F(-1, 2)),
    "1 / 3": lit(F(1, 3)),
    "1 / 0": ex.Arithmetic("/", lit(1), lit(0)),
    "'it''s'": lit("it's"),
    "TRUE": lit(True),
    "false": lit(False),
    "NULL": lit(None),
    "DATE '2020-02-29'": lit(dt.date(2020, 2, 29)),
    "CAST('2020-02-29' AS DATE)": lit(dt.date(2020, 2, 29)),
    "'2020-02-29'::DATE": lit(dt.date(2020, 2, 29)),
    "TIMESTAMP '2020-01-01 10:30:00.5'": lit(dt.datetime(2020, 1, 1, 10, 30, 0, 500000)),
    "TIMESTAMP '2020-01-01'": lit(dt.datetime(2020, 1, 1)),
    "TIMESTAMPTZ '2020-01-01 01:30:00+02:00'": lit(dt.datetime(2019, 12, 31, 23, 30)),
    "TIMESTAMPTZ '2020-01-01 01:30:00-02'": lit(dt.datetime(2020, 1, 1, 3, 30)),
    "age + 1 * 2": ex.Arithmetic("+", AGE, ex.Arithmetic("*", lit(1), lit(2))),
    "(age + 1) * 2": ex.Arithmetic("*", ex.Arithmetic("+", AGE, lit(1)), lit(2)),
    "age - 1 - 2": ex.Arithmetic("-", ex.Arithmetic("-", AGE, lit(1)), lit(2)),
    "cost / 100": ex.Arithmetic("/", COST, lit(100)),
    "age // 10": ex.Arithmetic("//", AGE, lit(10)),
    "age % 10": ex.Arithmetic("%", AGE, lit(10)),
    "MOD(age, 10)": ex.Arithmetic("%", AGE, lit(10)),
    "-age": ex.Arithmetic("-", lit(0), AGE),
    "age = 1": ex.Compare("=", AGE, lit(1)),
    "age == 1": ex.Compare("=", AGE, lit(1)),
    "age <> 1": ex.Compare("<>", AGE, lit(1)),
    "age != 1": ex.Compare("<>", AGE, lit(1)),
    "18 <= age": ex.Compare("<=", lit(18), AGE),
    "age BETWEEN 1 AND 2": ex.Between(AGE, lit(1), lit(2)),
    "age NOT BETWEEN 1 AND 2": ex.Not(ex.Between(AGE, lit(1), lit(2))),
    "age IN (1, -2, 3)": ex.InList(AGE, (1, -2, 3)),
    "age NOT IN (1)": ex.Not(ex.InList(AGE, (1,))),
    "age IS NULL": ex.IsNull(AGE),
    "age IS NOT NULL": ex.Not(ex.IsNull(AGE)),
    "smoker IS TRUE": ex.Coalesce((SMOKER, lit(False))),
    "smoker IS FALSE": ex.Coalesce((ex.Not(SMOKER), lit(False))),
    "smoker IS NOT TRUE": ex.Not(ex.Coalesce((SMOKER, lit(False)))),
    "NOT smoker AND age = 1": ex.And((ex.Not(SMOKER), ex.Compare("=", AGE, lit(1)))),
    "smoker AND (smoker AND smoker)": ex.And((SMOKER, SMOKER, SMOKER)),
    "smoker OR smoker AND smoker": ex.Or((SMOKER, ex.And((SMOKER, SMOKER)))),
    "(age = 1) = smoker": ex.Compare("=", ex.Compare("=", AGE, lit(1)), SMOKER),
    "CASE WHEN smoker THEN 1 END": ex.Case(((SMOKER, lit(1)),), lit(None)),
    "CASE age WHEN 1 THEN 'a' ELSE 'b' END": ex.Case(
        ((ex.Compare("=", AGE, lit(1)), lit("a")),), lit("b")
    ),
    "IF(smoker, 1, 2)": ex.Case(((SMOKER, lit(1)),), lit(2)),
    "NULLIF(age, 0)": ex.Case(((ex.Compare("=", AGE, lit(0)), lit(None)),), AGE),
    "COALESCE(age, 1)": ex.Coalesce((AGE, lit(1))),
    "IFNULL(age, 1)": ex.Coalesce((AGE, lit(1))),
    "ABS(age)": ex.Absolute(AGE),
    "FLOOR(cost)": ex.Floor(COST),
    "CEILING(cost)": ex.Ceil(COST),
    "LEAST(age, 1, 2)": ex.Least((AGE, lit(1), lit(2))),
    "GREATEST(age, 1)": ex.Greatest((AGE, lit(1))),
    "CLAMP(age, 0, 1.5)": ex.Clamp(AGE, F(0), F(3, 2)),
    "BIN(age, -1, 0, 0.5)": ex.Bin(AGE, (F(-1), F(0), F(1, 2))),
    "EXTRACT(YEAR FROM day)": ex.DatePart("year", DAY),
    "EXTRACT(dow FROM day)": ex.DatePart("dayofweek", DAY),
    "DATE_PART('quarter', day)": ex.DatePart("quarter", DAY),
    "DATEPART('hour', seen)": ex.DatePart("hour", SEEN),
    "MINUTE(seen)": ex.DatePart("minute", SEEN),
    "DAYOFWEEK(day)": ex.DatePart("dayofweek", DAY),
    "DATE_TRUNC('month', day)": ex.DateTruncate("month", DAY),
    "DATE_TRUNC('WEEK', seen)": ex.DateTruncate("week", SEEN),
    "LCASE(region)": ex.Lower(REGION),
    "UPPER(region)": ex.Upper(REGION),
    "SUBSTR(region, 2, 3)": ex.Substring(REGION, 2, 3),
    "SUBSTRING(region FROM 2 FOR 3)": ex.Substring(REGION, 2, 3),
    "LEFT(region, 3)": ex.Substring(REGION, 1, 3),
    "ROUND(cost, 2)": ex.Call("round", (COST,), (2,)),
    "ROUND(age)": ex.Call("round", (AGE,), (0,)),
    "SQRT(age)": ex.Call("sqrt", (AGE,)),
    "LN(age)": ex.Call("ln", (AGE,)),
    "LOG(age)": ex.Call("log", (AGE,), (F(10),)),
    "LOG10(age)": ex.Call("log", (AGE,), (F(10),)),
    "LOG(2, age)": ex.Call("log", (AGE,), (F(2),)),
    "EXP(age)": ex.Call("exp", (AGE,)),
    "POW(age, 2)": ex.Call("power", (AGE, lit(2))),
    "age ** 2": ex.Call("power", (AGE, lit(2))),
    "CHAR_LENGTH(region)": ex.Call("length", (REGION,)),
    "LEN(region)": ex.Call("length", (REGION,)),
    "TRIM(region)": ex.Call("trim", (REGION,), ("both", " ")),
    "TRIM(LEADING 'x' FROM region)": ex.Call("trim", (REGION,), ("leading", "x")),
    "RTRIM(region, 'ab')": ex.Call("trim", (REGION,), ("trailing", "ab")),
    "REPLACE(region, 'a', '')": ex.Call("replace", (REGION,), ("a", "")),
    "region || 'x'": ex.Call("concat", (REGION, lit("x"))),
    "CONCAT(region, 'x')": ex.Call("concat", (ex.Coalesce((REGION, lit(""))), lit("x"))),
    "CONTAINS(region, 'x')": ex.Call("contains", (REGION, lit("x"))),
    "PREFIX(region, 'x')": ex.Call("starts with", (REGION, lit("x"))),
    "region ^@ 'x'": ex.Call("starts with", (REGION, lit("x"))),
    "INSTR(region, 'x')": ex.Call("position", (lit("x"), REGION)),
    "region LIKE 'x%'": ex.Call("like", (REGION,), ("x%",)),
    "region NOT LIKE 'x%'": ex.Not(ex.Call("like", (REGION,), ("x%",))),
    "region LIKE 'x\\_'": ex.Call("like", (REGION,), ("x\\\\_",)),
    "region LIKE 'x!_' ESCAPE '!'": ex.Call("like", (REGION,), ("x\\_",)),
    "region LIKE '!!!x' ESCAPE '!'": ex.Call("like", (REGION,), ("!x",)),
    "region NOT LIKE '_!_' ESCAPE '!'": ex.Not(ex.Call("like", (REGION,), ("_\\_",))),
    "region ILIKE 'Éİ%'": ex.Call("like", (ex.Lower(REGION),), ("éİ%",)),
    "REGEXP_LIKE(region, '^x')": ex.Call("regular expression", (REGION,), ("^x",)),
    "REGEXP_CONTAINS(region, 'x')": ex.Call("regular expression", (REGION,), ("x",)),
    "REGEXP_FULL_MATCH(region, 'x|y')": ex.Call("regular expression", (REGION,), ("^(?:x|y)$",)),
    "CAST(age AS DOUBLE)": ex.Call("cast", (AGE,), ("real",)),
    "SAFE_CAST(region AS INT64)": ex.Call("cast", (REGION,), ("integer",)),
    "region::STRING": ex.Call("cast", (REGION,), ("text",)),
    "seen::DATE": ex.Call("cast", (SEEN,), ("date",)),
    "DATE_DIFF('month', day, seen)": ex.Call("date difference", (DAY, SEEN), ("month",)),
    "DATEDIFF('days', day, '2020-02-01')": ex.Call(
        "date difference", (DAY, lit(dt.date(2020, 2, 1))), ("day",)
    ),
    "seen::DATE - day": ex.Call(
        "date difference", (DAY, ex.Call("cast", (SEEN,), ("date",))), ("day",)
    ),
    "day + INTERVAL 2 WEEK": ex.Call("interval", (DAY,), (14, "day")),
    "INTERVAL '1' YEAR + day": ex.Call("interval", (DAY,), (12, "month")),
    "seen - INTERVAL '3 hours'": ex.Call("interval", (SEEN,), (-10800, "second")),
    "DATE_SUB(day, INTERVAL 1 DAY)": ex.Call("interval", (DAY,), (-1, "day")),
    "day + 5": ex.Call("interval", (DAY,), (5, "day")),
    "STRFTIME(day, '%Y')": ex.Call("format of time", (DAY,), ("%Y",)),
    "FORMAT_DATE('%Y', day)": ex.Call("format of time", (DAY,), ("%Y",)),
    "WEEK(day)": ex.DatePart("week", DAY),
    "EXTRACT(doy FROM day)": ex.DatePart("dayofyear", DAY),
    "SECOND(seen)": ex.DatePart("second", SEEN),
    "DATE_TRUNC('hour', seen)": ex.DateTruncate("hour", SEEN),
    "SUBSTRING(region, 2)": ex.Substring(REGION, 2, 2**31 - 1),
    "day > '2020-01-05'": ex.Compare(">", DAY, lit(dt.date(2020, 1, 5))),
    "'2020-01-05' > day": ex.Compare(">", lit(dt.date(2020, 1, 5)), DAY),
    "seen > '2020-01-05'": ex.Compare(">", SEEN, lit(dt.datetime(2020, 1, 5))),
    "day IN ('2020-01-05')": ex.InList(DAY, (dt.date(2020, 1, 5),)),
    "day BETWEEN '2020-01-05' AND DATE '2020-01-06'": ex.Between(
        DAY, lit(dt.date(2020, 1, 5)), lit(dt.date(2020, 1, 6))
    ),
    "DATE_TRUNC('month', seen) = '2020-01-01'": ex.Compare(
        "=", ex.DateTruncate("month", SEEN), lit(dt.date(2020, 1, 1))
    ),
    "region = '2020-01-05'": ex.Compare("=", REGION, lit("2020-01-05")),
    "age /* a comment */ = 1 -- and another": ex.Compare("=", AGE, lit(1)),
    "(((age)))": AGE,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression_is_read_as(text: str) -> None:
    """Each expression has one meaning, written here as a plan."""
    assert read(text) == EXPRESSIONS[text]
    found, wanted = read(text), EXPRESSIONS[text]
    if isinstance(wanted, ex.Literal):
        assert isinstance(found, ex.Literal)
        assert type(found.value) is type(wanted.value)


AGGREGATES = {
    "COUNT(*)": ("count", ag.Count()),
    "COUNT()": ("count", ag.Count()),
    "COUNT(1)": ("count", ag.Count()),
    "COUNT(age)": ("count_age", ag.CountValues(AGE)),
    "COUNT(DISTINCT pid)": ("units", ag.CountUnits()),
    "COUNT(DISTINCT age, cost)": ("distinct_age", ag.CountDistinct(AGE, (COST,))),
    "SUM(cost)": ("sum_cost", ag.Sum(COST)),
    "SUM(cost / 2)": ("sum", ag.Sum(ex.Arithmetic("/", COST, lit(2)))),
    "AVG(cost)": ("avg_cost", ag.Mean(COST)),
    "MEAN(cost)": ("avg_cost", ag.Mean(COST)),
    "(AVG(cost))": ("avg_cost", ag.Mean(COST)),
    "VARIANCE(cost)": ("var_cost", ag.Variance(COST)),
    "VAR_SAMP(cost)": ("var_cost", ag.Variance(COST)),
    "VAR_POP(cost)": ("var_cost", ag.Variance(COST, sample=False)),
    "STDDEV(cost)": ("stddev_cost", ag.Variance(COST, root=True)),
    "STDDEV_SAMP(cost)": ("stddev_cost", ag.Variance(COST, root=True)),
    "STDDEV_POP(cost)": ("stddev_cost", ag.Variance(COST, sample=False, root=True)),
    "MEDIAN(cost)": ("median_cost", ag.Quantile(COST, F(1, 2), "median")),
    "MIN(cost)": ("min_cost", ag.Quantile(COST, F(1, 200), "min")),
    "MAX(cost)": ("max_cost", ag.Quantile(COST, F(199, 200), "max")),
    "QUANTILE_CONT(cost, 0.9)": ("quantile_cost", ag.Quantile(COST, F(9, 10))),
    "QUANTILE(cost, 0.9)": ("quantile_cost", ag.Quantile(COST, F(9, 10))),
    "PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY cost)": (
        "quantile_cost",
        ag.Quantile(COST, F(1, 10)),
    ),
    "PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY cost DESC)": (
        "quantile_cost",
        ag.Quantile(COST, F(9, 10)),
    ),
    "SUM(cost) / COUNT(*)": ("ratio", ag.Ratio(ag.Sum(COST), ag.Count())),
    "SUM(cost) / NULLIF(COUNT(*), 0)": ("ratio", ag.Ratio(ag.Sum(COST), ag.Count())),
    "COUNT(*) / COUNT(DISTINCT pid)": ("ratio", ag.Ratio(ag.Count(), ag.CountUnits())),
}


@pytest.mark.parametrize("text", AGGREGATES)
def test_aggregate_is_read_as(text: str) -> None:
    """Each aggregate has one meaning, and a name where the query gives none."""
    name, aggregate = AGGREGATES[text]
    query = parse_query(f"SELECT {text} FROM visits", SCHEMA)
    assert query == ag.Query(VISITS, (), (ag.Output(name, aggregate),))


def test_every_offered_function_is_read_somewhere() -> None:
    """What messages offer is what the accepted queries use."""
    used = " ".join(ACCEPTED).upper()
    assert [f for f in (*FUNCTION_NAMES, *AGGREGATE_NAMES) if f"{f}(" not in used] == []


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted_queries_are_read(text: str) -> None:
    """The corpus that other tests mutate is accepted as it stands."""
    assert parse_query(text, SCHEMA).outputs


def keys(text: str) -> tuple[ag.Key, ...]:
    """The keys of a query over the visits."""
    return parse_query(f"SELECT {text}", SCHEMA).keys


@pytest.mark.parametrize(
    "text",
    [
        "region, COUNT(*) FROM visits GROUP BY region",
        "region, COUNT(*) FROM visits GROUP BY REGION",
        "region, COUNT(*) FROM visits GROUP BY 1",
        "region, COUNT(*) FROM visits GROUP BY visits.region",
        "region, COUNT(*) FROM visits GROUP BY ALL",
        "COUNT(*), region FROM visits GROUP BY 2, region",
    ],
)
def test_ways_to_group_by_a_column(text: str) -> None:
    """By name, position or ALL: the same key."""
    assert keys(text) == (ag.Key("region", REGION),)


def test_group_by_prefers_a_column_to_an_alias() -> None:
    """As in DuckDB, a name in GROUP BY is a column first, so this SELECT item is not a key."""
    lower = ex.Lower(REGION)
    assert keys("LOWER(region) AS low, COUNT(*) FROM visits GROUP BY low") == (
        ag.Key("low", lower),
    )
    with pytest.raises(Exception, match="raw columns"):
        keys("LOWER(region) AS region, COUNT(*) FROM visits GROUP BY region")


def test_declared_edges_cut_a_bare_column_into_bins() -> None:
    """The key keeps the column's name; an expression over the column is left alone."""
    edges = (F(0), F(18), F(65), F(110))
    assert keys("age, COUNT(*) FROM visits GROUP BY age") == (ag.Key("age", ex.Bin(AGE, edges)),)
    assert keys("age // 10, COUNT(*) FROM visits GROUP BY 1") == (
        ag.Key("age_key", ex.Arithmetic("//", AGE, lit(10))),
    )


def test_key_names_where_none_is_given() -> None:
    """Dates name their part; a repeated name gets a number."""
    found = keys(
        "DATE_TRUNC('month', day), YEAR(day), UPPER(region), COUNT(*) FROM visits GROUP BY ALL"
    )
    assert [k.name for k in found] == ["day_month", "day_year", "region_key"]
    query = parse_query("SELECT SUM(cost), SUM(cost * 2), SUM(cost * 3) FROM visits", SCHEMA)
    assert [o.name for o in query.outputs] == ["sum_cost", "sum", "sum_2"]
    query = parse_query("SELECT COUNT(*), SUM(cost) AS count FROM visits", SCHEMA)
    assert [o.name for o in query.outputs] == ["count_2", "count"]


def test_order_and_limit() -> None:
    """By name, position or the expression itself; True is falling."""
    query = parse_query(
        "SELECT region AS r, COUNT(*) AS n, SUM(cost) FROM visits GROUP BY r "
        "ORDER BY n DESC, 1, SUM(cost) ASC, REGION DESC LIMIT 7",
        SCHEMA,
    )
    assert query.order == (("n", True), ("r", False), ("sum_cost", False), ("r", True))
    assert query.limit == 7


def test_where_is_a_filter() -> None:
    """The predicate stands above the table."""
    query = parse_query("SELECT COUNT(*) FROM visits v WHERE v.smoker", SCHEMA)
    assert query.relation == Filter(Scan("visits", "v"), col("smoker", "v"))


def test_public_join() -> None:
    """On a unique column, inner or left, with several equalities and a chain of tables."""
    query = parse_query(
        "SELECT COUNT(*) FROM visits v JOIN cities c ON c.id = v.city AND v.region = c.region "
        "LEFT JOIN countries USING (country)",
        SCHEMA,
    )
    first = PublicJoin(
        Scan("visits", "v"),
        Scan("cities", "c"),
        ((col("city", "v"), col("id", "c")), (col("region", "v"), col("region", "c"))),
        keep_all=False,
    )
    assert query.relation == PublicJoin(
        first,
        Scan("countries", "countries"),
        ((col("country", "c"), col("country", "countries")),),
        keep_all=True,
    )


def test_public_join_on_an_expression() -> None:
    """The private side may be any expression."""
    query = parse_query("SELECT COUNT(*) FROM visits JOIN cities ON age + 1 = id", SCHEMA)
    assert isinstance(query.relation, PublicJoin)
    assert query.relation.on == ((ex.Arithmetic("+", AGE, lit(1)), col("id", "cities")),)


@pytest.mark.parametrize(
    "on", ["ON visits.pid = drugs.pid", "ON drugs.pid = visits.pid", "USING (pid)"]
)
def test_unit_join(on: str) -> None:
    """Two private tables on both units."""
    query = parse_query(f"SELECT COUNT(DISTINCT drugs.pid) FROM visits JOIN drugs {on}", SCHEMA)
    assert query.relation == UnitJoin(
        VISITS, Scan("drugs", "drugs"), col("pid"), col("pid", "drugs")
    )
    assert query.outputs[0].aggregate == ag.CountUnits()


def test_a_byte_order_mark_before_a_query_says_nothing() -> None:
    """Some editors begin a file with one; elsewhere it is a sign like any other."""
    marked = "\ufeff" + ACCEPTED[0]
    assert parse_query(marked, SCHEMA) == parse_query(ACCEPTED[0], SCHEMA)
    assert parse_expression("\ufeffcost", NAMES) == parse_expression("cost", NAMES)
    with pytest.raises(UnsupportedError, match="cannot start"):
        parse_query("\ufeff" + marked, SCHEMA)


def test_long_flat_queries_are_read() -> None:
    """Long lists and long chains of AND or OR are no deep nesting."""
    chain = " OR ".join(f"age = {i}" for i in range(500))
    found = read(f"age IN ({', '.join(map(str, range(2000)))}) AND ({chain})")
    assert isinstance(found, ex.And)
    assert isinstance(found.operands[1], ex.Or)
    assert len(found.operands[1].operands) == 500

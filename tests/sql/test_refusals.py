"""Every refusal: its class, the part of the query that it names, and the fix."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace

import pytest

from dither.errors import (
    ArgumentError,
    BoundsError,
    DitherError,
    QueryError,
    UnknownNameError,
    UnsupportedError,
)
from dither.plan import expressions as ex
from dither.plan.lowering.lower import lower
from dither.plan.relations import Scan
from dither.sql import Names, parse_expression, parse_query
from sql.sql_tables import SCHEMA

Q, N, U, B = QueryError, UnknownNameError, UnsupportedError, BoundsError

# After SELECT COUNT(*) FROM visits.
TAILS: list[tuple[str, type[DitherError], tuple[str, ...]]] = [
    ("HAVING cost > 2", Q, ("HAVING", "raw columns cannot be released ('cost')")),
    ("HAVING RANK() OVER (ORDER BY n, 1", Q, ("cannot be read",)),
    ("QUALIFY age > 2", U, ("QUALIFY", "ORDER BY x DESC LIMIT n")),
    ("WINDOW w AS (ORDER BY age)", U, ("WINDOW",)),
    ("OFFSET -3", Q, ("OFFSET takes a whole number",)),
    ("LIMIT 10%", U, ("LIMIT", "PERCENT")),
    ("LIMIT ALL", Q, ("LIMIT", "whole number")),
    ("LIMIT 1.5", Q, ("LIMIT", "whole number")),
    ("LIMIT -1", Q, ("LIMIT", "whole number")),
    ("FETCH FIRST 3 ROWS ONLY", U, ("FETCH FIRST", "LIMIT")),
    ("FOR UPDATE", U, ("FOR UPDATE",)),
    ("TABLESAMPLE 10%", U, ("TABLESAMPLE", "every row is read")),
    ("USING SAMPLE 10", U, ("TABLESAMPLE",)),
    ("PIVOT (SUM(cost) FOR region IN ('north'))", U, ("PIVOT",)),
    ("UNION SELECT COUNT(*) FROM visits", U, ("UNION",)),
    ("INTERSECT SELECT COUNT(*) FROM visits", U, ("INTERSECT",)),
    ("EXCEPT SELECT COUNT(*) FROM visits", U, ("EXCEPT",)),
    ("AS v(a, b)", U, ("FROM", "renaming columns")),
    (", cities", U, ("comma", "JOIN ... ON")),
    (", LATERAL (SELECT 1)", U, ("LATERAL",)),
    ("CROSS JOIN cities", U, ("CROSS JOIN", "JOIN")),
    ("JOIN cities", U, ("JOIN without ON",)),
    ("RIGHT JOIN cities ON visits.city = id", U, ("RIGHT JOIN", "LEFT JOIN")),
    ("FULL OUTER JOIN cities ON visits.city = id", U, ("FULL OUTER JOIN",)),
    ("NATURAL JOIN cities", U, ("NATURAL JOIN",)),
    ("ASOF JOIN cities ON visits.city = id", U, ("ASOF JOIN",)),
    ("POSITIONAL JOIN cities", U, ("POSITIONAL JOIN",)),
    ("SEMI JOIN cities ON visits.city = id", U, ("SEMI JOIN",)),
    ("ANTI JOIN cities ON visits.city = id", U, ("ANTI JOIN",)),
    ("JOIN cities ON visits.city < id", U, ("ON", "only equalities", "WHERE")),
    ("JOIN cities ON TRUE", U, ("ON", "only equalities")),
    ("JOIN cities ON visits.city = id OR visits.city = 1", U, ("ON", "only equalities")),
    ("JOIN cities ON visits.city = id AND id = 3", U, ("ON", "WHERE")),
    ("JOIN cities ON visits.city = age", U, ("ON", "'cities'")),
    ("JOIN cities ON visits.city = id + 1", U, ("ON", "'cities'")),
    ("JOIN cities ON visits.city = id = smoker", Q, ("ON", "parentheses")),
    ("JOIN cities ON visits.region = id", Q, ("'id'", "integer", "text", "one kind")),
    ("JOIN cities USING (nothing)", N, ("'nothing'",)),
    ("JOIN cities ON visits.region = cities.region", Q, ("fan out", "unique", "'region'")),
    ("JOIN tally USING (city)", Q, ("fan out", "unique = ['city']", "'tally'")),
    ("JOIN (SELECT 1) AS x ON age = 1", Q, ("in the query 'x'", "no FROM")),
    ("JOIN cities ON visits.city = id JOIN cities ON age = id", Q, ("'cities'", "AS")),
    ("JOIN unbound USING (pid)", Q, ("fan out", "max_join_rows", "'unbound'")),
    ("JOIN people USING (pid)", U, ("'people'", "person")),
    ("LEFT JOIN unbound USING (pid)", Q, ("LEFT JOIN unbound", "max_join_rows")),
    ("JOIN letters USING (pid)", Q, ("'pid'", "text", "integer")),
    ("JOIN drugs ON visits.region = drugs.region", Q, ("units", "visits.pid = drugs.pid")),
    ("JOIN drugs USING (region)", Q, ("units", "visits.pid = drugs.pid")),
    ("JOIN drugs USING (pid) JOIN drugs AS d USING (pid)", U, ("more than two",)),
    ("JOIN drugs ON visits.pid = drugs.pid AND age = drugs.region", Q, ("text", "integer")),
    ("JOIN drugs USING (pid) JOIN scans ON visits.pid = scans.pid", U, ("more than two",)),
    ("JOIN nowhere USING (pid)", N, ("'nowhere'", "known")),
    ("JOIN citys USING (city)", N, ("'citys'", "did you mean 'cities'")),
    ("JOIN drugs USING (pid) WHERE region = 'x'", Q, ("'region'", "visits.region", "drugs.region")),
    ("WHERE 1 < CEIL(cost", Q, ("bracket '(' is not closed", "line 1, column 43")),
    ("WHERE 1 < EXTRACT(YEAR FROM day", Q, ("bracket '(' is not closed",)),
    ("WHERE SUBSTRING(region, 1, 1 = 'a'", Q, ("bracket '(' is not closed",)),
    ("GROUP BY ROLLUP (region)", Q, ("GROUP BY", "missing from SELECT")),
    ("GROUP BY CUBE (region, age, cost, day, seen, smoker, city)", Q, ("CUBE", "GROUPING SETS")),
    ("GROUP BY GROUPING SETS ((pid), ())", Q, ("GROUP BY pid", "one person")),
    ("GROUP BY region", Q, ("GROUP BY", "missing from SELECT")),
    ("GROUP BY pid", Q, ("GROUP BY pid", "one person")),
    ("GROUP BY 'x'", Q, ("GROUP BY", "constant")),
    ("GROUP BY 1", Q, ("GROUP BY", "aggregate")),
    ("GROUP BY 2", Q, ("GROUP BY 2", "1 to 1")),
    ("GROUP BY SUM(age)", Q, ("GROUP BY", "SUM")),
    ("GROUP BY (region, age)", U, ("GROUP BY",)),
    ("GROUP BY nothing", N, ("'nothing'",)),
    ("ORDER BY 1 NULLS FIRST", U, ("ORDER BY", "NULLS FIRST")),
    ("ORDER BY 2", Q, ("ORDER BY 2", "1 to 1")),
    ("ORDER BY ALL", U, ("ORDER BY", "ALL")),
    ("ORDER BY age", Q, ("ORDER BY", "raw columns cannot be released ('age')")),
    ("ORDER BY kount", N, ("ORDER BY", "'kount'", "did you mean 'count'")),
    ("ORDER BY 1 COLLATE nocase", U, ("ORDER BY", "COLLATE")),
    ("WHERE SUM(age) > 2", Q, ("WHERE", "SUM", "SELECT")),
    ("WHERE MEAN(age) > 2", Q, ("WHERE", "MEAN")),
    ("WHERE region = \"north\"", N, ("'north'", "single quotes")),
    ("WHERE v.age = 1", N, ("'v'",)),
    ("WHERE a.b.c.age = 1", U, ("WHERE",)),
    ("WHERE rowid = 1", N, ("'rowid'",)),
    ("WHERE visits = 1", N, ("'visits'",)),
    ("WHERE day = 'tomorrow'", Q, ("day", "'YYYY-MM-DD'")),
    ("WHERE day = '2021-02-29'", Q, ("day", "'YYYY-MM-DD'")),
    ("WHERE day IN ('soon')", Q, ("day", "'YYYY-MM-DD'")),
    ("WHERE seen BETWEEN 'a' AND 'b'", Q, ("seen", "HH:MM:SS")),
]  # fmt: skip

# In place of X in SELECT X FROM visits.
ITEMS: list[tuple[str, type[DitherError], tuple[str, ...]]] = [
    ("*", Q, ("SELECT *", "raw columns", "COUNT(*)")),
    ("visits.*", Q, ("SELECT *", "raw columns")),
    ("* EXCLUDE (age)", Q, ("SELECT *", "raw columns")),
    ("COLUMNS('x')", U, ("SELECT", "COLUMNS")),
    ("age", Q, ("raw columns", "'age'", "GROUP BY")),
    ("age, COUNT(*)", Q, ("raw columns", "'age'")),
    ("1, COUNT(*)", U, ("SELECT", "constant")),
    ("COUNT(*) AS n, SUM(cost) AS N", Q, ("'N'", "AS")),
    ('COUNT(*) AS ""', Q, ("AS", "empty")),
    ("DISTINCT region", U, ("SELECT DISTINCT", "GROUP BY")),
    ("DISTINCT ON (region) region", U, ("SELECT DISTINCT",)),
    ("COUNT(visits.*)", U, ("SELECT", "*")),
    ("COUNT(NULL)", Q, ("COUNT(NULL)",)),
    ("COUNT(age, cost)", U, ("SELECT", "several columns")),
    ("COUNT(DISTINCT (pid, age))", U, ("COUNT(DISTINCT",)),
    ("COUNT(age ORDER BY cost)", U, ("COUNT", "ORDER BY", "order of rows")),
    ("SUM(DISTINCT cost)", U, ("SUM", "DISTINCT")),
    ("SUM(cost) OVER ()", U, ("window", "RANK")),
    ("ROW_NUMBER() OVER ()", Q, ("ROW_NUMBER() OVER needs ORDER BY",)),
    ("RANK() OVER (PARTITION BY COUNT(*) ORDER BY COUNT(*))", U, ("PARTITION BY takes keys",)),
    ("SUM(AVG(cost))", Q, ("SUM", "AVG", "value of a row")),
    ("SUM(cost) IGNORE NULLS", U, ("IGNORE NULLS",)),
    ("SUM(*)", U, ("SUM", "*")),
    ("MIN(cost, 3)", U, ("MIN(x, n)",)),
    ("MAX(cost, 3)", U, ("MAX(x, n)",)),
    ("QUANTILE_CONT(cost, 1)", Q, ("quantile", "MAX")),
    ("QUANTILE_CONT(cost, age)", Q, ("quantile", "constant number")),
    ("QUANTILE_CONT(cost)", Q, ("QUANTILE_CONT(x, 0.9)",)),
    ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost, age)", U, ("WITHIN GROUP",)),
    ("MODE(DISTINCT cost)", U, ("DISTINCT",)),
    ("LIST(cost)", U, ("LIST", "values of single people")),
    ("STRING_AGG(region, ',')", U, ("STRING_AGG", "single people")),
    ("ANY_VALUE(cost)", U, ("ANY_VALUE", "single people")),
    ("FIRST(cost)", U, ("FIRST", "single people")),
    ("ARG_MAX(cost, age)", U, ("ARG_MAX", "single people")),
    ("APPROX_COUNT_DISTINCT(pid)", U, ("APPROX_COUNT_DISTINCT", "write COUNT(DISTINCT x)")),
    ("APPROX_QUANTILE(cost, 0.5)", U, ("APPROX_QUANTILE",)),
    ("AVGG(cost)", N, ("'AVGG'", "did you mean 'AVG'")),
    ("MEAN(cost, age)", Q, ("MEAN",)),
    ("COUNT(DISTINCT age, 1)", Q, ("a constant has one value",)),
    ("COUNT(DISTINCT 1)", Q, ("a constant has one value",)),
    ("2 * QUANTILE_CONT(cost, [0.1, 0.2])", U, ("a list [...]",)),
    ("REGR_SXX(cost, age)", U, ("REGR_SXX",)),
    ("SUM(cost) + age", Q, ("raw columns cannot be released ('age')", "into an aggregate")),
    ("SIN(SUM(cost))", U, ("SIN", "released frame")),
    ("SUM(cost) % 2", U, ("of a released value", "released frame")),
    ("LOG(3, SUM(cost))", U, ("base 2 and 10",)),
    ("ROUND(AVG(cost), 0.5)", Q, ("the second operand of ROUND", "whole number")),
    ("ROUND(AVG(cost), COUNT(*))", Q, ("the second operand of ROUND",)),
    ("POWER(2, AVG(cost))", Q, ("the second operand of POWER",)),
    ("SUM(cost)::TEXT", U, ("cast to INTEGER", "ROUND(x, digits)")),
    ("COUNT(*) IS TRUE", U, ("IS is offered with NULL",)),
    ("CASE WHEN COUNT(*) > 3 THEN region END", Q, ("raw columns", "region")),
    ("CLAMP(SUM(cost), 0, 1)", U, ("CLAMP", "released frame")),
    ("(SELECT 1)", U, ("subquery",)),
    ("COUNT(*), (SELECT COUNT(*) FROM visits)", U, ("subquery",)),
]  # fmt: skip

# In an expression over the visits.
PARTS: list[tuple[str, type[DitherError], tuple[str, ...]]] = [
    ("ages", N, ("'ages'", "did you mean 'age'")),
    ('"AGE"', N, ("'AGE'", "did you mean 'age'")),
    ("foo(age)", N, ("'foo'",)),
    ("flor(age)", N, ("'flor'", "did you mean 'FLOOR'")),
    ("FLOOR(cost, 1)", U, ("FLOOR",)),
    ("ROUND(cost, age)", Q, ("the places of ROUND", "constant number")),
    ("ROUND(cost, 99)", Q, ("ROUND", "from -15 to 15")),
    ("ROUND(cost, 0.5)", Q, ("ROUND", "whole number")),
    ("LOG(1, cost)", Q, ("base of LOG", "not 1")),
    ("LOG(age, cost)", Q, ("base of LOG", "constant number")),
    ("TRUNC(cost)", U, ("TRUNC",)),
    ("SIGN(cost)", U, ("SIGN",)),
    ("SQRTT(cost)", N, ("'SQRTT'", "did you mean 'SQRT'")),
    ("STRLEN(region)", N, ("'STRLEN'",)),
    ("REPLACE(region, '', 'x')", Q, ("REPLACE", "not empty")),
    ("REPLACE(region, region, 'x')", Q, ("REPLACE", "constant text")),
    ("TRIM(region, region)", Q, ("TRIM", "constant text")),
    ("region LIKE region", Q, ("pattern of LIKE", "constant text")),
    ("region LIKE 'a!' ESCAPE '!'", Q, ("ends with its escape",)),
    ("region LIKE 'a' ESCAPE '!!'", Q, ("ESCAPE takes one character",)),
    ("region LIKE 'a' ESCAPE '%'", Q, ("ESCAPE takes one character",)),
    ("REGEXP_MATCHES(region, region)", Q, ("regular expression", "constant text")),
    ("REGEXP_MATCHES(region, '(a')", Q, ("'(a'", "'(' is not closed")),
    ("REGEXP_MATCHES(region, 'a)')", Q, ("')' closes nothing",)),
    ("REGEXP_MATCHES(region, '[a')", Q, ("'[' is not closed",)),
    ("REGEXP_MATCHES(region, '*a')", Q, ("repeats nothing",)),
    ("REGEXP_MATCHES(region, 'a{2')", Q, ("{m,n}",)),
    ("REGEXP_MATCHES(region, '(a{900}){900}')", Q, ("1,000 parts",)),
    ("REGEXP_MATCHES(region, '(a)\\1')", U, ("\\1", "not offered")),
    ("REGEXP_MATCHES(region, '(?=a)')", U, ("(?", "not offered")),
    ("REGEXP_MATCHES(region, '\\bx')", U, ("\\b", "not offered")),
    ("REGEXP_MATCHES(region, 'a++')", U, ("repetition of a repetition",)),
    ("REGEXP_MATCHES(region, 'a', 'i')", U, ("REGEXP_MATCHES", "FLAG")),
    ("REGEXP_EXTRACT(region, 'a')", U, ("REGEXP_EXTRACT",)),
    ("CAST(age AS DECIMAL(10, 2))", U, ("CAST", "ROUND(x, 2)")),
    ("CAST(age AS BLOB)", U, ("CAST", "BIGINT")),
    ("CAST(region AS VARCHAR(3))", U, ("'3'", "not understood")),
    ("STRFTIME(day, '%Q')", U, ("'%Q'", "%Y")),
    ("STRFTIME(day, region)", Q, ("STRFTIME", "constant text")),
    ("DATE_DIFF(seen, day, DAY)", Q, ("DATE_DIFF('day', start, end)",)),
    ("DATE_DIFF('fortnight', day, seen)", Q, ("DATE_DIFF('day', start, end)",)),
    ("seen - day", Q, ("DATE_DIFF", "INTERVAL 3 DAY")),
    ("day + age", Q, ("INTERVAL 3 DAY",)),
    ("day + INTERVAL age DAY", Q, ("INTERVAL 3 DAY",)),
    ("day + INTERVAL 1 FORTNIGHT", Q, ("INTERVAL 3 DAY",)),
    ("day + INTERVAL 999999 YEAR", Q, ("longer than the years",)),
    ("DATE_ADD(day, 3)", Q, ("DATE_ADD(x, INTERVAL 3 DAY)",)),
    ("INTERVAL 1 DAY", U, ("INTERVAL", "x + INTERVAL 3 DAY")),
    ("EXTRACT(millisecond FROM seen)", U, ("'millisecond'", "second")),
    ("RANDOM()", U, ("expression",)),
    ("CURRENT_DATE", U, ("CURRENT_DATE", "DATE 'YYYY-MM-DD'")),
    ("NOW()", N, ("'NOW'", "TIMESTAMP 'YYYY-MM-DD HH:MM:SS'")),
    ("AGE(day)", N, ("'AGE'", "DATE_DIFF('day', start, end)")),
    ("TIMESTAMPDIFF(day, seen, seen)", U, ("DATE_DIFF('day', start, end)",)),
    ("LIST_CONTAINS(tags, 'a')", U, ("UNNEST(x) AS u(y)",)),
    ("seen AT TIME ZONE 'Europe/Paris'", U, ("AT TIME ZONE", "UTC", "INTERVAL")),
    ("CURRENT_TIMESTAMP", U, ("CURRENT_TIMESTAMP", "TIMESTAMP")),
    ("WIDTH_BUCKET(age, 0, 1, 3)", U, ("WIDTH_BUCKET", "BIN")),
    ("CLAMP(age, 1)", Q, ("CLAMP(x, lower, upper)",)),
    ("CLAMP(age, 2, 1)", Q, ("CLAMP", "above")),
    ("CLAMP(age, cost, 1)", Q, ("CLAMP", "constant number")),
    ("BIN(age, 1)", Q, ("BIN(x, edge, edge, ...)",)),
    ("BIN(age, 2, 1)", Q, ("BIN", "increase")),
    ("BIN(age, 0, TRUE)", Q, ("BIN", "constant number")),
    ("FLOOR()", Q, ("argument",)),
    ("SUBSTRING(region, 0, 2)", Q, ("SUBSTRING", "1 or later")),
    ("SUBSTRING(region, age, 2)", Q, ("SUBSTRING", "constant number")),
    ("region[1:2]", U, ("expression",)),
    ("EXTRACT(yeer FROM day)", U, ("'yeer'", "did you mean 'year'")),
    ("DATE_PART(day, day)", U, ("expression",)),
    ("DATE_PART('day')", Q, ("DATE_PART('year', x)",)),
    ("WEEKDAY()", N, ("WEEKDAY",)),
    ("DATE_TRUNC('month', seen, 'UTC')", U, ("'UTC'", "not understood")),
    ("seen AT TIME ZONE 'UTC'", U, ("TIME ZONE",)),
    ("DATE '2020-13-01'", Q, ("'YYYY-MM-DD'",)),
    ("TIME '10:00'", U, ("CAST",)),
    ("TIMESTAMP '2020-01-01 10:00+01:00'", Q, ("HH:MM:SS",)),
    ("region SIMILAR TO 'x'", U, ("SIMILAR TO", "REGEXP_MATCHES")),
    ("region ~ 'x'", U, ("regular expression",)),
    ("region GLOB 'x'", U, ("GLOB",)),
    ("'a' 'b'", U, ("joining text",)),
    ("region COLLATE nocase = 'x'", U, ("COLLATE",)),
    ("age & 1", U, (": & is not",)),
    ("age | 1", U, (": | is not",)),
    ("age << 1", U, (": << is not",)),
    ("~age", U, (": ~ is not",)),
    ("age[1]", U, ("x[...]",)),
    ("age -> 'a'", U, ("-> on JSON",)),
    ("age IS DISTINCT FROM 1", U, ("IS DISTINCT FROM",)),
    ("age IS NOT DISTINCT FROM 1", U, ("IS NOT DISTINCT FROM",)),
    ("age = NULL", Q, ("NULL", "IS NULL")),
    ("NULL <> age", Q, ("NULL", "IS NULL")),
    ("CASE age WHEN NULL THEN 1 END", Q, ("NULL", "IS NULL")),
    ("age IN ()", Q, ("IN", "at least one")),
    ("age IN (NULL)", Q, ("NULL", "IS NULL")),
    ("age IN (1, cost)", U, ("IN", "constants")),
    ("age IN cost", U, ("IN", "constants")),
    ("age IN (SELECT 1)", U, ("subquery",)),
    ("age = ANY (SELECT 1)", U, ("ANY", "IN")),
    ("EXISTS (SELECT 1)", U, ("EXISTS", "JOIN (SELECT DISTINCT unit FROM t", "IN (SELECT key")),
    ("REGEXP_MATCHES(\"group\", '(?i)a')", U, ("LOWER(x)",)),
    ("REGEXP_MATCHES(\"group\", '\\p{L}')", U, ("[A-Za-z0-9]",)),
    ("age = (SELECT 1)", U, ("subquery",)),
    ("(age, cost) = (1, 2)", U, ("parentheses",)),
    ("age BETWEEN SYMMETRIC 2 AND 1", U, ("SYMMETRIC",)),
    ("1 < age < 3", Q, ("parentheses", "a < b AND b < c")),
    ("age = 1 = smoker", Q, ("parentheses",)),
    ("age + NOT smoker", Q, ("parentheses",)),
    ("$1", U, ("placeholder",)),
    ("age = ?", U, ("placeholder",)),
    ("E'x'", U, ("E'...'",)),
    ("$$x$$", U, ("$$...$$",)),
    ("[1, 2]", U, ("a list [...]",)),
    ("{'a': 1}", U, ("a struct {...}",)),
    ("x -> x + 1", U, ("expression",)),
    ("age.abs()", U, ("x.y.z",)),
    ("UNNEST(age)", U, ("UNNEST",)),
    ("1e999999999999", Q, ("digits",)),
    ("1" * 60, Q, ("digits",)),
    ("1 / " + "9" * 40 + " / " + "9" * 40, Q, ("digits",)),
    ("1e", Q, ("not a number",)),
    ("COUNT(*)", Q, ("COUNT", "aggregates stand in SELECT")),
    ("SUM(age) > 1", Q, ("SUM",)),
    ("age; age", U, ("several statements",)),
    ("", Q, ("empty",)),
    ("-- nothing", Q, ("empty",)),
    ("age AS b", Q, ("cannot be read", "'AS'", "line 1, column 5")),
    ("age, cost", Q, ("cannot be read", "','")),
    ("age) OR (1 = 1", Q, ("cannot be read", "')'")),
    ("SELECT age", U, ("cannot start with 'SELECT'", "age >= 18")),
    ("age = 'x", Q, ("not closed",)),
    ("age FROM people", Q, ("cannot be read", "'FROM'")),
]  # fmt: skip

# Whole texts.
TEXTS: list[tuple[str, type[DitherError], tuple[str, ...]]] = [
    ("", Q, ("empty",)),
    (" ;; ", Q, ("empty",)),
    ("/* nothing */", Q, ("empty",)),
    ("SELECT", Q, ("SELECT", "COUNT(*)")),
    ("SELECT FROM visits", Q, ("SELECT names nothing", "COUNT(*)")),
    ("SELECT 1", Q, ("no FROM",)),
    ("FROM visits", Q, ("SELECT *",)),
    ("VALUES (1)", U, ("VALUES", "FROM")),
    ("(SELECT COUNT(*) FROM visits)", U, ("subquery",)),
    ("WITH x AS (SELECT 1) SELECT COUNT(*) FROM visits", Q, ("in the query 'x'", "no FROM")),
    ("SELECT COUNT(*) FROM visits; SELECT 1", U, ("several statements",)),
    ("SELECT region FROM visits GROUP BY region", Q, ("no aggregate", "COUNT(*)")),
    ("SELECT region, region AS r, COUNT(*) FROM visits GROUP BY region", Q, ("twice",)),
    ("SELECT COUNT(*) FROM cities", U, ("FROM cities", "public", "JOIN")),
    ("SELECT COUNT(*) FROM nowhere", N, ("'nowhere'", "known")),
    ("SELECT COUNT(*) FROM visit", N, ("'visit'", "did you mean 'visits'")),
    ("SELECT COUNT(*) FROM (visits)", U, ("FROM",)),
    ("SELECT COUNT(*) FROM (SELECT * FROM cities)", U, ("FROM", "public")),
    ("SELECT COUNT(*) FROM visits v WHERE visits.age = 1", N, ("'visits'", "'v'")),
    ("SELECT COUNT(*) FROM people JOIN drugs USING (pid)", U, ("'people'", "person")),
    ("SELECT COUNT(*) FROM unbound JOIN drugs USING (pid)", Q, ("max_join_rows", "'unbound'")),
    ("SELECT COUNT(*) FROM visits WHERE", Q, ("something is missing", "'WHERE'", "column 29")),
    ("SELECT COUNT(* FROM visits", Q, ("expected )", "'FROM'")),
    ("SELECT COUNT(*) FORM visits x", Q, ("unexpected", "'visits'", "column 22")),
    ("SELECT COUNT(*)\nFROM visits\nWHERE )", Q, ("line 3",)),
    ("SELECT 'abc", Q, ("not closed",)),
    ("SELECT /* abc", Q, ("not closed",)),
    ("hello", U, ("cannot start with 'hello'", "SELECT")),
    ("SELECT AS STRUCT 1 FROM visits", U, ("SELECT AS STRUCT",)),
    ("SELECT COUNT(*) INTO x FROM visits", U, ("SELECT INTO",)),
    ("SELECT COUNT(*) FROM visits JOIN drugs ON visits.pid = drugs.pid WHERE pid = dose + day2",
     N, ("'day2'",)),
]  # fmt: skip


def _check(error: pytest.ExceptionInfo[DitherError], kind: type[DitherError], says: object) -> None:
    message = str(error.value)
    assert type(error.value) is kind, message
    assert isinstance(says, tuple)
    for part in says:
        assert part in message
    assert len(message) < 500
    assert "\x1b" not in message
    assert "sqlglot" not in message


@pytest.mark.parametrize(("tail", "kind", "says"), TAILS)
def test_clause_is_refused(tail: str, kind: type[DitherError], says: tuple[str, ...]) -> None:
    """A clause that is not offered is refused by its name."""
    with pytest.raises(DitherError) as error:
        parse_query(f"SELECT COUNT(*) FROM visits {tail}", SCHEMA)
    _check(error, kind, says)


@pytest.mark.parametrize(("item", "kind", "says"), ITEMS)
def test_select_item_is_refused(item: str, kind: type[DitherError], says: tuple[str, ...]) -> None:
    """What SELECT may not name is refused by its name."""
    with pytest.raises(DitherError) as error:
        parse_query(f"SELECT {item} FROM visits", SCHEMA)
    _check(error, kind, says)


WRITTEN = (
    *("random()", "to_char(day, 'YYYY')", "trunc(cost)", "list_value(1)", "epoch(seen)", "today()"),
    *("split_part(region, 'a', 1)", "Reverse(region)", "lpad(region, 3, 'x')", "Cbrt(age)"),
    *("string_agg(region)", "group_concat(region)", "max_by(age, cost)", "bool_or(smoker)"),
    *("to_timestamp(age)", "gen_random_uuid()", "make_date(1, 2, 3)", "Sign(age)", "now()"),
    *("histogram(age)", "first(age)", "degrees(age)", "unnest(age)"),
    *("list_contains([1], age)", "approx_count_distinct(age)", "quantile_foo(age, 0.5)"),
    *("Dayname(day)", "any_value(age)", "sin(age)", "Last_day(day)"),
)


@pytest.mark.parametrize("text", WRITTEN)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits WHERE {} = 1",
        "SELECT SUM(1 + {}) FROM visits",
        "SELECT {} FROM visits",
    ],
)
def test_functions_are_called_as_they_were_written(sql: str, text: str) -> None:
    """A message names the function that stands in the query, not the parser's word for it."""
    name = text.partition("(")[0]
    with pytest.raises(DitherError) as error:
        parse_query(sql.format(text), SCHEMA)
    message = str(error.value)
    assert re.search(f"function '?{name}\\b", message) or "a condition stands" in message


@pytest.mark.parametrize("word", ["Avg", "var_samp", "mean", "MEAN", "stddev", "Median"])
def test_aggregates_are_called_as_they_were_written(word: str) -> None:
    """The same inside an aggregate, and where one stands in the wrong place."""
    with pytest.raises(UnsupportedError, match=f"SELECT, in {word}: DISTINCT"):
        parse_query(f"SELECT {word}(DISTINCT age) FROM visits", SCHEMA)
    with pytest.raises(QueryError, match=f"the aggregate {word} stands"):
        parse_query(f"SELECT COUNT(*) FROM visits WHERE {word}(age) > 1", SCHEMA)


@pytest.mark.parametrize(("text", "kind", "says"), PARTS)
def test_expression_is_refused(text: str, kind: type[DitherError], says: tuple[str, ...]) -> None:
    """What an expression may not hold is refused by its name."""
    with pytest.raises(DitherError) as error:
        parse_expression(text, Names(Scan("visits", "visits"), SCHEMA))
    _check(error, kind, says)


WITHIN = (
    ("SELECT SUM(cost) AS s FROM visits", Q, ("would mix people", "GROUP BY pid")),
    ("SELECT region, SUM(cost) AS s FROM visits GROUP BY region", Q, ("GROUP BY pid, region",)),
    ("SELECT DISTINCT region FROM visits", Q, ("GROUP BY pid, region",)),
    ("SELECT height, COUNT(*) AS n FROM people GROUP BY height", Q, ("'people'", "outer query")),
    ("SELECT pid, cost FROM visits GROUP BY pid", Q, ("'cost'", "neither a key")),
    ("SELECT pid, SUM(city) + cost AS c FROM visits GROUP BY pid", Q, ("'cost'", "neither")),
    ("SELECT pid, AVG(smoker) AS a FROM visits GROUP BY pid", Q, ("AVG of smoker", "number")),
    ("SELECT pid, MAX(smoker) AS a FROM visits GROUP BY pid", Q, ("MAX of smoker",)),
    ("SELECT pid, STDDEV(cost) AS a FROM visits GROUP BY pid", U, ("SELECT", "COUNT(DISTINCT x)")),
    ("SELECT pid, MEDIAN(cost) AS a FROM visits GROUP BY pid", U, ("MIN and MAX",)),
    ("SELECT pid, SUM(1 / cost) AS a FROM visits GROUP BY pid", B, ("lattice", "CLAMP(1 / cost")),
    ("SELECT pid, COUNT(DISTINCT age, city) AS n FROM visits GROUP BY pid", U, ("several",)),
    ("SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid HAVING n + 1", Q, ("HAVING", "not a")),
    ("SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid HAVING COUNT(*)", Q, ("HAVING", "not a")),
    ("SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid LIMIT 3", U, ("LIMIT", "another's")),
    ("SELECT pid, cost FROM visits ORDER BY cost", U, ("ORDER BY", "leave it out")),
    ("SELECT cost * 2 FROM visits", Q, ("needs a name", "AS")),
    ("SELECT cost, age AS Cost FROM visits", Q, ("'cost'", "AS")),
    ("SELECT NULL AS x FROM visits", Q, ("x is NULL",)),
    ("SELECT * FROM visits WHERE cost", Q, ("WHERE", "not a condition")),
    ("SELECT * FROM visits JOIN drugs USING (pid)", Q, ("'region'",)),
    ("SELECT SUM(cost) OVER () AS s FROM visits", U, ("SELECT", "window")),
    ("SELECT pid FROM visits UNION SELECT pid FROM drugs", U, ("write UNION ALL",)),
    ("SELECT pid FROM visits EXCEPT SELECT pid FROM drugs", U, ("EXCEPT",)),
    ("SELECT pid FROM visits UNION ALL SELECT pid, dose FROM drugs", Q, ("1 columns", "has 2")),
    ("SELECT pid, age AS a FROM visits UNION ALL SELECT pid, region FROM drugs", Q, ("a", "mixes")),
    ("SELECT pid FROM people UNION ALL SELECT pid FROM people", Q, ("'people'", "twice")),
    ("SELECT pid FROM visits UNION ALL SELECT pid FROM letters", Q, ("integer and text",)),
    ("SELECT pid FROM visits UNION ALL SELECT id FROM cities", U, ("public",)),
)
"""Queries in the FROM."""


@pytest.mark.parametrize(("text", "kind", "says"), WITHIN)
def test_query_in_the_from_is_refused(
    text: str, kind: type[DitherError], says: tuple[str, ...]
) -> None:
    """In brackets and as a query of a WITH; the message names the query."""
    for whole in (
        f"SELECT COUNT(*) FROM ({text}) AS q",
        f"WITH q AS ({text}) SELECT COUNT(*) FROM q",
    ):
        with pytest.raises(DitherError) as error:
            lower(parse_query(whole, SCHEMA), SCHEMA)
        _check(error, kind, ("in the query 'q'", *says))


def test_a_list_that_a_query_does_not_hand_on() -> None:
    """The message says where it is unnested, and that is taken."""
    told = (
        r"hands no list on; unnest where the table is read: FROM visits, UNNEST\(tags\) AS t\(x\)"
    )
    with pytest.raises(QueryError, match=told):
        parse_query("SELECT COUNT(*) FROM (SELECT * FROM visits) q, UNNEST(q.tags) AS t(x)", SCHEMA)
    inner = "SELECT pid, x FROM visits, UNNEST(tags) AS t(x)"
    assert parse_query(f"SELECT COUNT(x) FROM ({inner}) q", SCHEMA)


def test_a_private_table_in_a_list_of_keys_and_what_is_written_instead() -> None:
    """Those of its units that are wanted are joined, each once, as the message says."""
    with pytest.raises(
        QueryError, match=r"JOIN \(SELECT DISTINCT unit FROM drugs WHERE ...\) AS q"
    ):
        parse_query("SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM drugs)", SCHEMA)
    kept = "(SELECT DISTINCT pid FROM drugs WHERE dose > 1) AS q ON visits.pid = q.pid"
    assert parse_query(f"SELECT COUNT(*) FROM visits JOIN {kept}", SCHEMA)


OVER = (
    ("total", Q, ("raw columns",)),
    ("AVG(cost)", N, ("'cost'",)),
    ("AVG(v.total)", N, ("'v'", "before a column")),
    ("AVG(visits.total)", N, ("'visits'",)),
    ("AVG(n)", B, ("n needs bounds", "declare bounds = [lower, upper] of city", "CLAMP(n,")),
    ("AVG(n + 1)", B, ("declare bounds = [lower, upper] of city",)),
)


@pytest.mark.parametrize(("item", "kind", "says"), OVER)
def test_what_is_asked_of_a_query_is_refused(
    item: str, kind: type[DitherError], says: tuple[str, ...]
) -> None:
    """Only its own columns are in scope, and what has no bounds below has none above."""
    inner = "SELECT pid, SUM(cost) AS total, SUM(city) AS n FROM visits AS v GROUP BY pid"
    with pytest.raises(DitherError) as error:
        lower(parse_query(f"SELECT {item} FROM ({inner}) AS q", SCHEMA), SCHEMA)
    _check(error, kind, says)


def test_the_unit_of_a_query_is_no_key_of_groups() -> None:
    """By whatever name the column that says who is protected goes."""
    inner = "SELECT pid AS p, COUNT(*) AS n FROM visits GROUP BY pid"
    with pytest.raises(QueryError, match="every group would be one person"):
        parse_query(f"SELECT p, COUNT(*) FROM ({inner}) AS q GROUP BY p", SCHEMA)


def test_queries_that_name_each_other_stay_small() -> None:
    """What doubles at each step is refused before it is large."""
    steps = ["q0 AS (SELECT pid FROM visits)"]
    steps += [
        f"q{i} AS (SELECT * FROM q{i - 1} UNION ALL SELECT * FROM q{i - 1})" for i in range(1, 40)
    ]
    with pytest.raises(QueryError, match="more than 64 tables"):
        parse_query(f"WITH {', '.join(steps)} SELECT COUNT(*) FROM q39", SCHEMA)
    steps = ["q0 AS (SELECT pid FROM visits)"]
    steps += [f"q{i} AS (SELECT * FROM q{i - 1})" for i in range(1, 400)]
    with pytest.raises(QueryError, match="16 deep"):
        parse_query(f"WITH {', '.join(steps)} SELECT COUNT(*) FROM q399", SCHEMA)


@pytest.mark.parametrize(("text", "kind", "says"), TEXTS)
def test_text_is_refused(text: str, kind: type[DitherError], says: tuple[str, ...]) -> None:
    """A text that is not a query is refused with the reason."""
    with pytest.raises(DitherError) as error:
        parse_query(text, SCHEMA)
    _check(error, kind, says)


DEEP = {
    "parentheses": lambda n: "(" * n + "age" + ")" * n,
    "functions": lambda n: "abs(" * n + "age" + ")" * n,
    "NOT": lambda n: "NOT " * n + "smoker",
    "minus": lambda n: "- " * n + "age",
    "mixed prefixes": lambda n: "- NOT " * n + "age",
    "CASE": lambda n: "CASE WHEN smoker THEN " * n + "1" + " END" * n,
    "sums": lambda n: "age" + " + age" * n,
    "casts": lambda n: "age" + "::int" * n,
    "subqueries": lambda n: "(SELECT " * n + "1" + ")" * n,
    "brackets": lambda n: "[" * n + "1" + "]" * n,
    "intervals": lambda n: "INTERVAL " * n + "'1'",
    "arrows": lambda n: "x -> " * n + "x",
    "fields": lambda n: "age" + ".x" * n,
    "IS": lambda n: "age" + " IS NULL" * n,
    "powers": lambda n: "age" + " ** age" * n,
    "open only": lambda n: "(" * n,
    "alternating": lambda n: "(smoker OR (smoker AND " * n + "smoker" + "))" * n,
}


@pytest.mark.parametrize("shape", DEEP)
@pytest.mark.parametrize("n", [40, 200, 3000])
def test_deep_nesting_is_refused(shape: str, n: int) -> None:
    """However deep and of whatever, a DitherError comes out and no RecursionError."""
    text = DEEP[shape](n)
    names = Names(Scan("visits", "visits"), SCHEMA)
    if n > 40:
        with pytest.raises(QueryError):
            parse_expression(text, names)
        with pytest.raises(QueryError):
            parse_query(f"SELECT SUM({text}) FROM visits", SCHEMA)
    else:
        with contextlib.suppress(QueryError):
            parse_expression(text, names)


def test_nesting_up_to_the_limit_is_read() -> None:
    """What people write is far from the limits."""
    names = Names(Scan("visits", "visits"), SCHEMA)
    assert parse_expression("(" * 20 + "age" + ")" * 20, names)
    assert parse_expression("age" + " + age" * 60, names)


def test_long_text_is_refused() -> None:
    """A text is not parsed at all beyond its limit."""
    with pytest.raises(QueryError, match="longer than"):
        parse_query("SELECT COUNT(*) FROM visits --" + " " * 100_000, SCHEMA)


@pytest.mark.parametrize("given", [None, b"SELECT 1", 3])
def test_what_is_no_text_is_refused(given: object) -> None:
    """Named by its type, and not read."""
    with pytest.raises(ArgumentError, match=f"must be a text; got {type(given).__name__}"):
        parse_query(given, SCHEMA)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT SUM(( Age+Cost ) *2) FROM visits WHERE smoker", None),
        ("SELECT AVG(region) FROM visits WHERE Age+1 > 'x'", "Age+1 > 'x': mixes"),
        ("SELECT COUNT(*) FROM visits WHERE NOT(Age  +  1)", "NOT(Age + 1): Age + 1 is not a cond"),
        ("SELECT COUNT(*) FROM visits WHERE (age+1)*2 AND smoker", "(age+1)*2 is not a condition"),
        ("SELECT COUNT(*) FROM visits WHERE Region in ( 'nord' )", "Region in ( 'nord' ): 'nord'"),
        (
            "SELECT AVG(CASE when Smoker then 'a' end) FROM visits",
            "AVG of CASE when Smoker then 'a'",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE ( smoker is null ) = 3",
            "( smoker is null ) = 3: mixes",
        ),
        ("SELECT COUNT(*) FROM visits WHERE abs( Region ) > 1", "abs( Region ): region is not"),
        ("SELECT AVG(1 + Ceil( region )) FROM visits", "Ceil( region ): region is not"),
        ("SELECT COUNT(*), Cost*2 FROM visits GROUP BY Cost*2", "GROUP BY Cost*2: a real has too"),
    ],
)
def test_meaning_is_refused_in_the_words_that_were_written(text: str, said: str | None) -> None:
    """Not in the canonical text, which nobody has typed."""
    if said is None:
        lower(parse_query(text, SCHEMA), SCHEMA)
        return
    with pytest.raises(DitherError) as error:
        lower(parse_query(text, SCHEMA), SCHEMA)
    assert said in str(error.value)


def test_words_that_cannot_be_told_are_the_canonical_ones() -> None:
    """A quotation is shown where reading it gives the same part again, and nowhere else."""
    text = "SELECT COUNT(*) FROM visits WHERE age + (SELECT 1) > 2"
    with pytest.raises(DitherError):
        parse_query(text, SCHEMA)
    query = parse_query("SELECT SUM(-(-age)) AS s FROM visits", SCHEMA)
    assert query.words is not None
    operand = query.outputs[0].aggregate.operand
    assert query.words(operand) == "-(-age)"
    assert query.words(ex.Column("visits", "age")) is None
    assert query.words(ex.Not(operand)) is None


@pytest.mark.parametrize("call", ["TRIM(region, '{}')", "REPLACE(region, '{}', 'b')"])
def test_what_is_looked_for_in_a_text_is_short(call: str) -> None:
    """In a text of any length an engine tries each place anew."""
    asked = f"SELECT COUNT(*) FROM visits WHERE {call} = 'b'"
    parse_query(asked.format("a" * 1000), SCHEMA)
    with pytest.raises(QueryError, match="at most 1,000 characters"):
        parse_query(asked.format("a" * 1001), SCHEMA)


def test_pairs_of_rows_that_would_be_too_many_are_refused() -> None:
    """Whatever a policy lets a unit have on either side, before anything is charged."""
    joined = "SELECT COUNT(*) FROM visits JOIN drugs USING (pid)"
    for ours, theirs, refused in ((1000, 1000, False), (1001, 1000, True), (10**6, 2, True)):
        both = {
            name: replace(SCHEMA.table(name), max_join_rows=most)
            for name, most in (("visits", ours), ("drugs", theirs))
        }
        schema = replace(SCHEMA, tables=SCHEMA.tables | both)
        if not refused:
            parse_query(joined, schema)
            continue
        with pytest.raises(DitherError, match=r"more than 1,000,000; lower max_join_rows"):
            parse_query(joined, schema)
        once = "(SELECT pid, MAX(age) AS m FROM visits GROUP BY pid) v"
        parse_query(f"SELECT COUNT(*) FROM {once} JOIN drugs ON v.pid = drugs.pid", schema)

"""The tables that the tests of this package ask about."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction as F

from dither.plan.aggregates import Query
from dither.plan.schema import ColumnFacts, Kind, Schema, Table


def _columns(*columns: ColumnFacts) -> dict[str, ColumnFacts]:
    return {c.name: c for c in columns}


VISITS = Table(
    "visits",
    _columns(
        ColumnFacts("pid", Kind.INTEGER),
        ColumnFacts("region", Kind.TEXT, values=("north", "south")),
        ColumnFacts("city", Kind.INTEGER),
        ColumnFacts(
            "age", Kind.INTEGER, lower=F(0), upper=F(110), edges=(F(0), F(18), F(65), F(110))
        ),
        ColumnFacts("cost", Kind.REAL, lower=F(0), upper=F(5000), step=F(1, 100)),
        ColumnFacts("day", Kind.DATE, lower=dt.date(2020, 1, 1), upper=dt.date(2021, 1, 1)),
        ColumnFacts("seen", Kind.TIMESTAMP),
        ColumnFacts("smoker", Kind.BOOLEAN),
        ColumnFacts("Mixed Case", Kind.INTEGER, lower=F(0), upper=F(1)),
        ColumnFacts("group", Kind.TEXT),
    ),
    lists={
        "tags": ColumnFacts("tags", Kind.TEXT, values=("a", "b")),
        "Marks": ColumnFacts("Marks", Kind.INTEGER, lower=F(0), upper=F(9)),
    },
    unit="pid",
    unit_name="patient",
    max_groups=3,
    max_rows=5,
    max_join_rows=4,
)
DRUGS = Table(
    "drugs",
    _columns(
        ColumnFacts("pid", Kind.INTEGER),
        ColumnFacts("dose", Kind.REAL, lower=F(0), upper=F(9)),
        ColumnFacts("region", Kind.TEXT),
    ),
    unit="pid",
    unit_name="patient",
    max_join_rows=2,
)
SCANS = Table(
    "scans",
    _columns(ColumnFacts("pid", Kind.INTEGER)),
    unit="pid",
    max_join_rows=2,
    unit_name="patient",
)
UNBOUND = Table(
    "unbound", _columns(ColumnFacts("pid", Kind.INTEGER)), unit="pid", unit_name="patient"
)
LETTERS = Table(
    "letters",
    _columns(ColumnFacts("pid", Kind.TEXT)),
    unit="pid",
    max_join_rows=2,
    unit_name="patient",
)
PEOPLE = Table(
    "people",
    _columns(ColumnFacts("pid", Kind.INTEGER), ColumnFacts("height", Kind.REAL)),
)
CITIES = Table(
    "cities",
    _columns(
        ColumnFacts("id", Kind.INTEGER),
        ColumnFacts("name", Kind.TEXT),
        ColumnFacts("city", Kind.INTEGER),
        ColumnFacts("region", Kind.TEXT),
        ColumnFacts("country", Kind.INTEGER),
    ),
    private=False,
    unique=frozenset({"id", "city"}),
)
COUNTRIES = Table(
    "countries",
    _columns(ColumnFacts("country", Kind.INTEGER), ColumnFacts("continent", Kind.TEXT)),
    private=False,
    unique=frozenset({"country"}),
)
TALLY = Table("tally", _columns(ColumnFacts("city", Kind.INTEGER)), private=False)
ODD = Table("odd name", _columns(ColumnFacts("x", Kind.INTEGER, lower=F(0), upper=F(1))))

SCHEMA = Schema(
    {
        table.name: table
        for table in (
            *(VISITS, DRUGS, SCANS, UNBOUND, LETTERS, PEOPLE),
            *(CITIES, COUNTRIES, TALLY, ODD),
        )
    }
)

ACCEPTED = (
    "SELECT COUNT(*) FROM visits",
    "SELECT region, COUNT(*) AS n FROM visits AS v WHERE v.age >= 18 AND NOT smoker "
    "GROUP BY region ORDER BY n DESC, 1 LIMIT 3",
    "SELECT Region r, count(DISTINCT pid), SUM(cost) / NULLIF(COUNT(*), 0) FROM visits GROUP BY r",
    "SELECT age, AVG(cost), MEAN(cost), COUNT(cost), COUNT(1) FROM visits GROUP BY age",
    "SELECT STDDEV(cost), STDDEV_POP(cost), STDDEV_SAMP(cost), VARIANCE(cost), VAR_SAMP(cost), "
    "VAR_POP(cost) FROM visits",
    "SELECT MEDIAN(cost), MIN(cost), MAX(cost), QUANTILE_CONT(cost, 0.9), QUANTILE(cost, 1 / 3), "
    "PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY cost DESC) FROM visits",
    "SELECT BIN(cost, 0, 10.5, 100) AS b, DATE_TRUNC('month', day), EXTRACT(dow FROM day), "
    "YEAR(seen), QUARTER(day), MONTH(day), DAY(day), DAYOFMONTH(seen), DAYOFWEEK(seen), "
    "HOUR(seen), MINUTE(seen), WEEKDAY('2020-01-01'::DATE) + age, DATE_PART('year', day), "
    "COUNT(*) FROM visits GROUP BY ALL",
    "SELECT COUNT(*) FROM visits WHERE day >= '2020-01-05' AND seen < '2020-01-05 10:00' "
    "AND day BETWEEN '2020-01-01' AND DATE '2020-02-01' AND day IN ('2020-01-01') "
    "AND seen > TIMESTAMP '2020-01-01 10:00:00' AND DATE_TRUNC('week', seen) <> '2020-01-06'",
    "SELECT COUNT(*) FROM visits v JOIN cities c ON v.city = c.id AND v.region = c.region "
    "LEFT JOIN countries USING (country) WHERE name = 'it''s' AND v.\"Mixed Case\" = 1",
    "SELECT SUM(dose) AS s, COUNT(*) FROM visits JOIN drugs ON (visits.pid = drugs.pid)",
    "SELECT SUM(CASE region WHEN 'north' THEN 1 ELSE 2.50 END), "
    "AVG(CASE WHEN smoker THEN cost END), SUM(IF(smoker, 1, 0)), AVG(COALESCE(age, -cost, -1)), "
    "SUM(CLAMP(cost * 2, 0, 100.5)), SUM(LEAST(cost, 1e3)), SUM(GREATEST(ABS(age - 1), 2)), "
    "SUM(age // 10 % 3 - (1 - 2)), SUM(FLOOR(cost / 3 / 2) + CEIL(cost)) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE smoker IS TRUE OR smoker IS NOT FALSE OR (age IS NULL) "
    "OR region NOT IN ('north') OR (age = 1) = smoker OR smoker = TRUE OR age IS NOT NULL",
    "SELECT SUBSTRING(region, 1, 1) AS s, LEFT(region, 2), UPPER(region) u, COUNT(*) FROM visits "
    "WHERE LOWER(region) = 'north' AND NULLIF(age, 1) < 9 GROUP BY 1, SUBSTRING(region, 1, 2), u "
    "ORDER BY s ASC NULLS LAST, COUNT(*)",
    "SELECT COUNT(*) FROM visits WHERE \"group\" LIKE 'a!%_%' ESCAPE '!' OR region NOT ILIKE 'N%' "
    "OR REGEXP_MATCHES(\"group\", '^[a-c]{2,}x?$') OR REGEXP_FULL_MATCH(region, 'a|b') "
    "OR CONTAINS(region, 'a') OR STARTS_WITH(region, 'a') OR ENDS_WITH(region, 'b') "
    "OR POSITION('a' IN region) = STRPOS(region, 'b') OR LENGTH(TRIM(region)) > 3 "
    "OR RTRIM(region, 'ab') = 'c'",
    "SELECT COUNT_IF(UNREADABLE(age)) AS n, AVG(CAST(UNREADABLE(cost) AS INT)) FROM visits "
    "WHERE UNREADABLE(region) IS NOT NULL",
    "SELECT CONCAT(region, '-', REPLACE(region, 'o', '0')) AS a, LTRIM(region) || 'x' AS b, "
    "STRFTIME(day, '%Y-%m') AS c, CAST(age AS VARCHAR) AS d, seen::DATE AS e, COUNT(*) "
    "FROM visits GROUP BY ALL",
    "SELECT SUM(ROUND(cost, 1) + ROUND(age, -1)), AVG(SQRT(cost)), SUM(CLAMP(LN(cost), 0, 9)), "
    "SUM(CLAMP(LOG(2, cost) + LOG10(cost) - LOG2(cost) + EXP(-age), 0, 9)), "
    "SUM(POWER(age, 2) + age ** 2), "
    'SUM(CLAMP(TRY_CAST("group" AS DOUBLE), 0, 1)), SUM(CAST(smoker AS INT)) FROM visits',
    "SELECT AVG(DATE_DIFF('week', day, '2020-06-01')), SUM(WEEK(day) + DAYOFYEAR(day)), "
    "SUM(DATE '2021-01-01' - day), SUM(ISODOW(day) + SECOND(seen)) FROM visits "
    "WHERE day + INTERVAL 3 MONTH > '2020-06-01' AND seen - INTERVAL '90' MINUTE < day "
    "AND DATE_ADD(day, INTERVAL 1 WEEK) > DATE_SUB(day + 5, INTERVAL 1 DAY) "
    "AND DATE_TRUNC('hour', seen) <> '2020-01-06'",
    'SELECT "group", COUNT(*) FROM visits GROUP BY "group"',
    'SELECT COUNT(*) FROM "odd name" AS "a ""b" WHERE "a ""b".x = 1',
    "SELECT region, COUNT(*) AS n, 100 * AVG(cost) / n, ROUND(AVG(cost), 1), -SUM(age) + 2 - n, "
    "CASE region WHEN 'north' THEN COALESCE(AVG(cost), 0) ELSE ABS(n) END, SQRT(n), LN(n), LOG(n), "
    "LOG2(n), EXP(n), POWER(n, 2), FLOOR(n), CEIL(n), LEAST(n, 2), GREATEST(n, 3), NULLIF(n, 0), "
    "IF(n > 1 AND NOT n = 2 OR n IS NULL, 1, 2), CAST(AVG(cost) AS BIGINT), n::DOUBLE, "
    "RANK() OVER (PARTITION BY region ORDER BY n DESC, AVG(cost)), DENSE_RANK() OVER (ORDER BY n), "
    "ROW_NUMBER() OVER (ORDER BY n) FROM visits GROUP BY region "
    "HAVING n BETWEEN 1 AND 9 OR n IN (11, 12) OR SUM(cost) <> 4 ORDER BY 2 * n, SUM(age) "
    "LIMIT 3 OFFSET 1 OPTIONS (max_groups_contributed = 2)",
    "SELECT COUNT(DISTINCT city), COUNT(DISTINCT region) FILTER (WHERE smoker), COUNT_IF(age > 3), "
    "COUNT(DISTINCT pid) FILTER (WHERE age > 3), COUNT(*) FILTER (WHERE smoker), SUM(smoker), "
    "AVG(cost) FILTER (WHERE smoker), CORR(cost, age), COVAR_POP(cost, age), "
    "COVAR_SAMP(cost, age), "
    "REGR_SLOPE(cost, age), REGR_INTERCEPT(cost, age), REGR_R2(cost, age), REGR_COUNT(cost, age), "
    "REGR_AVGX(cost, age), REGR_AVGY(cost, age), QUANTILE_CONT(cost, [0.25, 0.5]) AS q, "
    "QUANTILE_DISC(cost, 0.5), PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY cost DESC) FROM visits",
    "SELECT region, MODE(smoker) AS m, MODE(region) FILTER (WHERE age > 3), MODE() WITHIN GROUP "
    "(ORDER BY age DESC), CASE WHEN MODE(region) = 'north' THEN 1 END FROM visits GROUP BY region "
    "HAVING MODE(age) > 3 ORDER BY m",
    "SELECT tag, SUM(m), COUNT(*) FROM visits v, UNNEST(v.tags) AS t(tag) CROSS JOIN UNNEST(marks) "
    "AS m JOIN cities ON v.city = cities.id WHERE m > 1 GROUP BY tag",
    "SELECT COUNT(*) FROM (SELECT pid, x FROM visits, UNNEST(tags) x)",
    "FROM visits SELECT COUNT(*) -- DuckDB lets FROM come first",
    "SELECT COUNT(*) FROM visits WHERE city NOT IN (SELECT id FROM cities WHERE id > 2) AND "
    "(age > 1 OR smoker) AND NOT (city IN (SELECT DISTINCT id FROM cities))",
    "SELECT region, age, smoker s, GROUPING(region, s), GROUPING_ID(age) AS g, COUNT(*) "
    "FROM visits GROUP BY smoker, GROUPING SETS ((region, age), ROLLUP (region), CUBE (age)) "
    "ORDER BY g",
    "SELECT region, AVG(total), COUNT(*) FROM (SELECT pid, region, SUM(cost) AS total FROM visits "
    "GROUP BY pid, region) GROUP BY region",
    "WITH t AS (SELECT pid, COUNT(*) AS n, MIN(day) AS first FROM visits v WHERE age > 1 GROUP BY "
    "1 HAVING MAX(cost) > 2 AND n > 1) SELECT CLAMP(n, 1, 9), COUNT(DISTINCT pid), SUM(CLAMP(n, "
    "0, 99)) FROM t AS s WHERE first < '2020-06-01' GROUP BY CLAMP(n, 1, 9)",
    "SELECT COUNT(*), AVG(half), AVG(c) FROM (SELECT SUM(cost) / COUNT(*) / 2 AS half, AVG(age) AS "
    "c, COUNT(DISTINCT city) AS d, YEAR(day) + 1 AS y FROM visits GROUP BY pid, YEAR(day)) AS q "
    "WHERE d > 1 AND y = 2021",
    "SELECT SUM(x), COUNT(*) FROM (SELECT *, cost * 2 AS x FROM visits WHERE smoker) AS q JOIN "
    "cities ON q.city = cities.id",
    "SELECT kind, SUM(v) FROM (SELECT pid, cost AS v, 'visit' AS kind FROM visits UNION ALL "
    "SELECT pid, dose, 'drug' FROM drugs UNION ALL (SELECT d.pid, 1, 'none' FROM drugs d)) u "
    "GROUP BY kind",
    "SELECT COUNT(*), SUM(n) FROM visits v LEFT JOIN (SELECT pid, region, COUNT(*) AS n FROM drugs "
    "GROUP BY ALL) AS d ON v.pid = d.pid AND d.region = v.region WHERE n IS NULL OR n > v.age",
    "SELECT CLAMP(n, 1, 9) AS k, COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM (SELECT DISTINCT "
    "pid, region FROM visits) GROUP BY pid) GROUP BY k",
    "SELECT age, COUNT(*) FROM (SELECT visits.* FROM visits LEFT JOIN drugs USING (pid, region)) "
    "GROUP BY age",
)
"""Queries that are read, with every construct that is offered at least once."""


def unweighted(query: Query) -> Query:
    """A query with even weights: those of a list of quantiles have no word in SQL."""
    return replace(query, outputs=tuple(replace(o, weight=F(1)) for o in query.outputs))

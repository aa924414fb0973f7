"""Plans that every engine runs: each node, key, join and measurement at least once.

Nothing is chosen by hash in them, so that each has one right answer.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.job import Cells, GroupKey, History, Job, ListedCells, Sides
from dither.plan.lowering.lower import lower
from dither.plan.schema import Kind, Schema
from dither.sql import parse_query
from engines.hostile import LABS, SCHEMA, VISITS

MANY = {"unit_name": "person", "max_groups": 1000, "max_rows": 1000, "max_join_rows": 1000}

WIDE = Schema(
    {
        **SCHEMA.tables,
        "visits": replace(VISITS, **MANY),
        "labs": replace(LABS, **MANY),
    }
)
PEOPLE = Schema({**WIDE.tables, "visits": replace(VISITS, unit=None, max_groups=1, max_rows=1)})
"""In which a row of ``visits`` is a person. Plans that read ``people`` mean this."""

PLANS = {
    "tables of counts": "SELECT g, b, CLAMP(i, 0, 9) AS k, BIN(x, -10, 0, 5, 1000) AS m, "
    "DATE_TRUNC('year', e) AS j, COUNT(*) AS n FROM people GROUP BY g, b, k, m, j",
    "tables of counts by unit": "SELECT b, g, DATE_TRUNC('year', e) AS j, "
    "BIN(i, 0, 3, 110) AS m, CLAMP(i, 2, 4) AS k, COUNT(*) AS n FROM visits "
    "GROUP BY b, g, j, m, k",
    "listed cells": "SELECT g, b, CLAMP(i, 0, 9) AS k, BIN(x, -10, 0, 5, 1000) AS m, "
    "DATE_TRUNC('year', e) AS j, COUNT(*) AS n FROM people GROUP BY g, b, k, m, j",
    "listed cells by unit": "SELECT b, g, DATE_TRUNC('year', e) AS j, BIN(i, 0, 3, 110) AS m, "
    "COUNT(*) AS n FROM visits GROUP BY b, g, j, m",
    "histories": "SELECT b, g, CLAMP(i, 0, 9) AS k, COUNT(*) AS n FROM visits GROUP BY b, g, k",
    "rows": "SELECT COUNT(*) AS n FROM people",
    "rows by unit": "SELECT COUNT(*) AS n, COUNT(DISTINCT u) AS us FROM visits",
    "public keys": "SELECT g, COUNT(*) AS n FROM visits GROUP BY g",
    "keys that are found": "SELECT h, COUNT(*) AS n, SUM(i) AS s FROM visits GROUP BY h",
    "two keys": "SELECT g, b, COUNT(x) AS n, SUM(x) AS s FROM people GROUP BY g, b",
    "days as keys": "SELECT d, COUNT(*) AS n FROM people GROUP BY d",
    "text in parts": "SELECT UPPER(SUBSTRING(w, 1, 1)) AS k, COUNT(*) AS n FROM people GROUP BY k",
    "small letters": "SELECT LOWER(w) AS k, COUNT(*) AS n FROM visits GROUP BY k",
    "bins as keys": "SELECT BIN(x, -10, 0, 0.5, 1000) AS k, COUNT(*) AS n FROM people GROUP BY k",
    "months as keys": "SELECT DATE_TRUNC('month', e) AS k, COUNT(*) AS n FROM visits GROUP BY k",
    "weeks as keys": "SELECT DATE_TRUNC('week', t) AS k, COUNT(*) AS n FROM people GROUP BY k",
    "parts of days": "SELECT SUM(EXTRACT(MONTH FROM d)) AS m, SUM(EXTRACT(DOW FROM t)) AS w, "
    "SUM(EXTRACT(HOUR FROM t)) AS h, SUM(EXTRACT(QUARTER FROM e)) AS q FROM people",
    "sums of squares": "SELECT AVG(x) AS a, VARIANCE(i) AS v FROM visits",
    "a histogram": "SELECT MEDIAN(x) AS m FROM people",
    "a histogram by unit and group": "SELECT g, QUANTILE(i, 0.9) AS q FROM visits GROUP BY g",
    "integers that may not fit": "SELECT COUNT(i * i) AS a, COUNT(i + i) AS b, SUM(i - 1) AS c, "
    "SUM(-i) AS d, SUM(ABS(i)) AS e FROM people",
    "quotients": "SELECT SUM(i // 7) AS a, SUM(i % 7) AS b, SUM(7 // i) AS c, SUM(-7 % i) AS d "
    "FROM people",
    "reals that may be none": "SELECT SUM(x * x) AS a, SUM(x - x) AS b, SUM(x + x) AS c, "
    "SUM(x / 3) AS d, SUM(CLAMP(x / i, -9, 9)) AS e FROM people",
    "whole numbers of reals": "SELECT SUM(FLOOR(x)) AS a, SUM(CEIL(x / 7)) AS b FROM people",
    "extremes": "SELECT SUM(LEAST(i, x)) AS a, SUM(GREATEST(i, x, 3)) AS b FROM visits",
    "choices": "SELECT SUM(COALESCE(i, x, 7)) AS a, "
    "SUM(CASE WHEN b THEN i WHEN x > 1 THEN x ELSE 0 END) AS b FROM visits",
    "distinct values": "SELECT g, COUNT(DISTINCT w) AS a, COUNT(DISTINCT x) AS b, "
    "COUNT(DISTINCT i) FILTER (WHERE b) AS c, COUNT(DISTINCT d) AS e FROM visits GROUP BY g",
    "distinct rows of values": "SELECT g, COUNT(DISTINCT w, x, i) AS a, "
    "COUNT(DISTINCT d, b) FILTER (WHERE i > 0) AS c FROM visits GROUP BY g",
    "distinct rows of values of rows": "SELECT COUNT(DISTINCT x, w) AS a FROM people",
    "distinct values of rows": "SELECT COUNT(DISTINCT w) AS a, COUNT(DISTINCT x) AS b FROM people",
    "units with a row": "SELECT g, COUNT(DISTINCT u) FILTER (WHERE x > 1) AS n "
    "FROM visits GROUP BY g",
    "truth values": "SELECT SUM(b) AS s, AVG(x > 1) AS m, COUNT_IF(b) AS c FROM visits",
    "modes": "SELECT g, MODE(b) AS b, MODE(i) AS i, MODE(UPPER(g)) AS u, MODE(CLAMP(h, -2, 2)) "
    "AS h, MODE(BIN(y, -1, 0, 0.5)) AS y FROM visits GROUP BY g",
    "modes of rows": "SELECT MODE(g) AS g, MODE(e > DATE '2010-01-01') AS e, MODE(i) FILTER "
    "(WHERE b) AS i, MODE(MONTH(d)) AS m FROM people",
    "pairs": "SELECT g, CORR(x, i) AS r, REGR_SLOPE(x, i) AS s FROM visits GROUP BY g",
    "comparisons": "SELECT COUNT(*) AS n FROM people WHERE (y <= 0.5 OR h <> 1) AND NOT (i = 110)",
    "comparisons of text": "SELECT COUNT(*) AS n FROM people WHERE w >= 'B' AND w < 'é'",
    "comparisons of time": "SELECT COUNT(*) AS n FROM people WHERE d < t OR "
    "e BETWEEN DATE '2000-02-29' AND DATE '2010-01-01'",
    "lists": "SELECT COUNT(*) AS n FROM people WHERE h IN (0, 1, 9007199254740993) "
    "OR w IN ('', 'o''b') OR y IN (0, 0.5)",
    "unknown truth": "SELECT COUNT(*) AS n FROM visits WHERE (b OR x IS NULL) AND y = y",
    "a public table": "SELECT label, COUNT(*) AS n, SUM(weight) AS s FROM visits "
    "JOIN doctors ON visits.h = doctors.code GROUP BY label",
    "a public table beside all rows": "SELECT COUNT(weight) AS n, COUNT(*) AS r FROM people "
    "LEFT JOIN doctors ON people.h = doctors.code",
    "tenths as keys": "SELECT ROUND(y, 1) AS k, COUNT(*) AS n FROM people GROUP BY k",
    "rounded numbers": "SELECT ROUND(i, -1) AS k, SUM(ROUND(x, 1)) AS a, SUM(ROUND(x)) AS b, "
    "SUM(CLAMP(ROUND(y, -3), -9, 9)) AS c FROM people GROUP BY k",
    "roots and logarithms": "SELECT SUM(SQRT(i)) AS a, SUM(CLAMP(LN(x), -9, 9)) AS b, "
    "SUM(CLAMP(LOG10(y), -400, 400)) AS c, SUM(CLAMP(EXP(x), 0, 9)) AS d, "
    "SUM(CLAMP(POWER(x, i), -9, 9)) AS e FROM people",
    "lengths and places": "SELECT LENGTH(w) AS k, COUNT(*) AS n, "
    "SUM(CLAMP(STRPOS(w, 'z'), 0, 9)) AS p FROM people GROUP BY k",
    "texts out of texts": "SELECT TRIM(w, 'bo') || '-' || REPLACE(w, 'o', 'oo') AS k, "
    "COUNT(*) AS n FROM people GROUP BY k",
    "parts of texts": "SELECT SUM(CAST(CONTAINS(w, 'z') AS INT)) AS c, "
    "SUM(CAST(STARTS_WITH(w, 'o') AS INT)) AS s, SUM(CAST(ENDS_WITH(w, '''') AS INT)) AS e "
    "FROM people",
    "texts like a pattern": "SELECT SUM(CAST((w LIKE '_') AS INT)) AS a, "
    "SUM(CAST((w LIKE 'o%' OR w ILIKE 'b') AS INT)) AS b, "
    "SUM(CAST(REGEXP_MATCHES(w, '^[^ -~]$') AS INT)) AS c FROM people",
    "casts": "SELECT CAST(CAST(i AS VARCHAR) AS BIGINT) AS k, COUNT(TRY_CAST(w AS DOUBLE)) AS n, "
    "SUM(CAST(b AS INT)) AS s, COUNT(CAST(w AS BOOLEAN)) AS t FROM people GROUP BY k",
    "formats of time": "SELECT STRFTIME(t, '%Y-%m %H:%M') AS k, COUNT(*) AS n FROM people "
    "GROUP BY k",
    "intervals": "SELECT d + INTERVAL 1 MONTH AS k, COUNT(t + INTERVAL 90 MINUTE) AS n, "
    "SUM(CLAMP(DATE_DIFF('week', e, t), -999, 999)) AS w FROM people GROUP BY k",
    "times of day": "SELECT DATE_TRUNC('hour', t) AS k, SUM(EXTRACT(SECOND FROM t)) AS s, "
    "SUM(WEEK(d)) AS w, SUM(DAYOFYEAR(d)) AS y FROM people GROUP BY k",
    "units that count once": "SELECT COUNT(*) AS n, COUNT(x) AS k, SUM(x) AS s, SUM(i - 55) AS t, "
    "AVG(i) AS a FROM visits",
    "a grid of reals": "SELECT COUNT(*) AS n FROM visits",
    "a grid of whole numbers": "SELECT COUNT(*) AS n FROM people",
    "a grid of days": "SELECT COUNT(*) AS n FROM people",
    "a grid of times": "SELECT COUNT(*) AS n FROM visits",
    "sizes of units": "SELECT COUNT(*) AS n FROM visits",
    "sets of keys": "SELECT g, b, GROUPING(g, b) AS f, COUNT(*) AS n, SUM(x) AS s, MEDIAN(i) AS m "
    "FROM visits GROUP BY ROLLUP (g, b)",
    "sets of keys of rows": "SELECT g, BIN(i, 0, 50, 110) AS k, COUNT(*) AS n, AVG(x) AS a FROM "
    "people GROUP BY GROUPING SETS ((g, k), g, ())",
    "sets of keys that are discovered": "SELECT h, w, b, COUNT(*) AS n, COUNT(DISTINCT i) AS d, "
    "MEDIAN(x) AS m FROM visits GROUP BY CUBE (h, w), b",
    "sets of rows that are discovered": "SELECT w, ROUND(y, 1) AS k, COUNT(*) AS n, MEDIAN(i) AS m "
    "FROM people GROUP BY ROLLUP (w, k)",
    "a join on two columns": "SELECT label, COUNT(*) AS n, SUM(weight) AS s FROM visits JOIN "
    "doctors ON visits.h = doctors.code AND visits.i * 0 + 5 = doctors.weight GROUP BY label",
    "among public keys": "SELECT COUNT(*) AS n, SUM(x) AS s FROM visits WHERE h IN (SELECT code "
    "FROM doctors) AND x > 0",
    "not among public keys": "SELECT COUNT(*) AS n, SUM(x) AS s FROM visits WHERE h NOT IN "
    "(SELECT code FROM doctors WHERE code IS NOT NULL)",
    "not among texts": "SELECT g, COUNT(*) AS n FROM people WHERE LOWER(w) NOT IN (SELECT "
    "label FROM doctors WHERE weight > 4) GROUP BY g",
    "among no keys": "SELECT COUNT(*) AS n FROM people WHERE w NOT IN (SELECT label FROM doctors "
    "WHERE weight > 99)",
    "rows of a query": "SELECT k, COUNT(*) AS n, SUM(y2) AS s FROM (SELECT u, UPPER(g) AS k, "
    "CLAMP(y, -1, 1) * 2 AS y2, h FROM people WHERE i > 0) AS q WHERE h IS NOT NULL GROUP BY k",
    "rows of a query in a query": "SELECT COUNT(*) AS n, AVG(z) AS m FROM (SELECT a + i AS z FROM "
    "(SELECT i, x * 2 AS a FROM visits WHERE b OR b IS NULL) AS q WHERE a > -1) AS r",
    "sums within units": "SELECT g, COUNT(*) AS n, SUM(s) AS s, AVG(a) AS a, SUM(m) AS m FROM "
    "(SELECT u, g, SUM(x) AS s, AVG(x) AS a, MAX(x) AS m FROM visits GROUP BY u, g) AS q "
    "GROUP BY g",
    "counts within units": "SELECT CLAMP(n, 0, 4) AS n, COUNT(*) AS c, SUM(d) AS s, SUM(k) AS t "
    "FROM (SELECT u, COUNT(*) AS n, COUNT(DISTINCT w) AS d, COUNT(y) AS k FROM visits GROUP BY u) "
    "AS q GROUP BY 1",
    "whole sums within units": "SELECT SUM(s) AS s, AVG(a) AS a, SUM(CLAMP(t, -9, 9)) AS t, "
    "SUM(b) AS b FROM (SELECT u, SUM(i) AS s, AVG(i) AS a, SUM(-i) "
    "AS t, AVG(CLAMP(h, -7, 100)) AS b FROM visits GROUP BY u) AS q",
    "extremes within units": "SELECT k, YEAR(f) AS y, COUNT(*) AS n FROM (SELECT u, MIN(w) AS k, "
    "MAX(e) AS f, MIN(t) AS t FROM visits GROUP BY u) AS q WHERE t IS NOT NULL GROUP BY k, y",
    "keys of reals within units": "SELECT COUNT(*) AS n, SUM(c) AS s FROM (SELECT u, y, t, d, "
    "COUNT(*) AS c FROM visits GROUP BY u, y, t, d) AS q",
    "groups left out": "SELECT g, COUNT(*) AS n, SUM(r) AS r FROM (SELECT u, g, SUM(i) / COUNT(*) "
    "AS r FROM visits GROUP BY u, g HAVING COUNT(*) >= 1 AND MAX(i) > 0) AS q GROUP BY g",
    "distinct rows within units": "SELECT g, COUNT(*) AS n FROM (SELECT DISTINCT u, g, b FROM "
    "visits) AS q GROUP BY g",
    "several queries": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM (SELECT u, g AS k, x AS v FROM "
    "visits WHERE b UNION ALL SELECT u, 'labs', z FROM labs UNION ALL SELECT u, w, i FROM visits) "
    "AS q GROUP BY k",
    "groups of several queries": "SELECT AVG(n) AS n, SUM(m) AS m FROM (SELECT u, COUNT(*) AS n, "
    "MAX(v) AS m FROM (SELECT u, i AS v FROM visits UNION ALL SELECT u, z AS v FROM labs) AS q "
    "GROUP BY u) AS r",
    "a query of a join": "SELECT label, SUM(n) AS n FROM (SELECT u, label, COUNT(*) AS n FROM "
    "visits LEFT JOIN doctors ON visits.h = doctors.code GROUP BY u, label) AS q GROUP BY label",
    "a query beside a table": "SELECT SUM(i - least) AS s, COUNT(*) AS n FROM visits JOIN (SELECT "
    "u, MIN(z) AS least FROM labs GROUP BY u) AS l ON visits.u = l.u",
    "a table beside nothing": "SELECT COUNT(*) AS n, COUNT(z) AS z, SUM(x) AS s FROM visits LEFT "
    "JOIN labs ON visits.u = labs.u WHERE z IS NULL OR z > x",
    "tables of one unit and more": "SELECT SUM(z) AS s, COUNT(*) AS n FROM visits LEFT JOIN labs "
    "ON visits.u = labs.u AND visits.h = labs.z",
    "queries with names": "WITH a AS (SELECT u, i FROM visits), b AS (SELECT u, SUM(i) AS s FROM a "
    "GROUP BY u) SELECT SUM(s) AS s, COUNT(*) AS n FROM b AS c JOIN labs ON c.u = labs.u",
    "two tables of one unit": "SELECT SUM(z) AS s, COUNT(*) AS n FROM visits "
    "JOIN labs ON visits.u = labs.u WHERE z <> x",
}

_CHOICES: dict[str, tuple[Any, ...]] = {
    "u": (0, 1, 2, 2**63 - 1, None),
    "g": ("a", "b", "NULL", "o'b", "elsewhere", "", None),
    "h": (0, 1, 7, -7, 2**63 - 1, -(2**63), None),
    "x": (-10.0, 1000.0, 0.0, -0.0, 0.005, 2.675, float("nan"), float("inf"), None, 999.995),
    "y": (0.0, -0.0, 0.5, 5e-324, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), None),
    "i": (0, 110, 55, -1, 111, 2**63 - 1, None),
    "d": (dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2000, 2, 29), None),
    "e": (dt.date(2000, 1, 1), dt.date(2020, 6, 30), dt.date(1999, 12, 31), None),
    "t": (dt.datetime(2000, 2, 29, 12, 34, 56, 789012), dt.datetime(1969, 12, 31, 23), None),
    "b": (True, False, None),
    "w": ("", "a", "B", "é", "o'b", '"', "\\", "😀z", None),
    "z": (-5, 5, 0, 9, None),
}


@cache
def rows() -> dict[str, list[dict[str, Any]]]:
    """The same hostile rows for all plans."""
    source = random.Random(20)

    def drawn(table: str, number: int) -> list[dict[str, Any]]:
        names = WIDE.table(table).columns
        return [{n: source.choice(_CHOICES[n]) for n in names} for _ in range(number)]

    doctors = [
        {"code": 0, "label": "x", "weight": 5.0},
        {"code": 7, "label": "y", "weight": float("nan")},
        {"code": 2**63 - 1, "label": "z", "weight": 0.5},
        {"code": None, "label": "x", "weight": 1.0},
    ]
    return {
        "visits": drawn("visits", 40),
        "labs": drawn("labs", 12),
        "doctors": doctors,
    }


def schema(name: str) -> Schema:
    """What is public of the tables that a plan reads."""
    return PEOPLE if "people" in PLANS[name] else WIDE


UNITS = "units that count once"

GRIDDED: dict[str, tuple[ag.AggregateFunction, ...]] = {
    "a grid of reals": (ag.Magnitudes(ex.Column("visits", "y")),),
    "a grid of whole numbers": (ag.Magnitudes(ex.Column("visits", "h")),),
    "a grid of days": (ag.Magnitudes(ex.Column("visits", "d"), dt.date(2000, 2, 29)),),
    "a grid of times": (ag.Magnitudes(ex.Column("visits", "t"), dt.date(2000, 3, 1)),),
    "sizes of units": (
        ag.UnitSizes((), groups=False),
        ag.UnitSizes((ex.Column("visits", "g"), ex.Column("visits", "y")), groups=False),
        ag.UnitSizes((ex.Lower(ex.Column("visits", "w")),), groups=True),
    ),
}
"""Histograms on a grid, which no SQL asks for."""

TABLES = {
    "tables of counts": ((), (0,), (1, 2), (0, 3), (0, 1, 3), (2, 4)),
    "tables of counts by unit": ((), (0, 1, 2, 3), (4,)),
}
"""Tables of counts, by the places of their columns among the keys."""

LISTED = ("listed cells", "listed cells by unit")
"""Tables of counts of all keys, listed."""


HISTORIES = "histories"
"""Tables of counts of rows and of the rows before them, in an order with NULLs and ties."""


def with_history(made: Job) -> Job:
    """Keys of a history after a job's own: the number, the gap, and what two had before."""
    order = ex.Clamp(ex.Column("visits", "i"), Fraction(0), Fraction(100))
    within = (ex.Column("visits", "g"),)
    own = len(made.keys)

    def key(name: str, many: int) -> GroupKey:
        return GroupKey(name, order, Kind.INTEGER, tuple(range(many)))

    before = [(own + 2 + i, i) for i in range(2)]
    sizes = [len(made.keys[i].values or ()) + 1 for _, i in before]
    keys = (
        *made.keys,
        key("number", 3),
        key("gap", 4),
        *(key(f"before {i}", size) for i, size in enumerate(sizes)),
    )
    history = History(within, order, own, own + 1, (0, 1, 5, 20), tuple(before))
    axes = ((own,), (0, own + 1), (own, own + 2), (0, own + 2), (1, own + 3))
    tables = tuple(Cells.of(keys, one) for one in axes)
    return replace(made, keys=keys, measurements=tables, max_groups=1, history=history)


@cache
def job(name: str) -> Job:
    """The job of a plan; of units, with the products of their means."""
    query = parse_query(PLANS[name].replace("people", "visits"), schema(name))
    if name == UNITS:
        query = of_units(query)
    if name in GRIDDED:
        outputs = tuple(ag.Output(f"n{i}", a) for i, a in enumerate(GRIDDED[name]))
        query = ag.QueryOfUnits(query.relation, (), outputs)
    made = between(lower(query, schema(name)).job, 2)
    if name in TABLES:
        tables = tuple(Cells.of(made.keys, axes) for axes in TABLES[name])
        made = replace(made, measurements=tables, max_groups=1)
    if name == HISTORIES:
        made = with_history(made)
    if name in LISTED:
        every = ListedCells.of(made.keys, range(len(made.keys)))
        made = replace(made, measurements=(every, Cells.of(made.keys, (0,))), max_groups=1)
    return made


def between(made: Job, *edges: int) -> Job:
    """A job with these edges in the place of those that are found as it runs."""
    measurements = (
        m.between(*map(Fraction, edges)) if isinstance(m, Sides) else m for m in made.measurements
    )
    return replace(made, measurements=tuple(dict.fromkeys(measurements)))


def of_units(query: ag.Query) -> ag.QueryOfUnits:
    """A query in which units count once, with the products of all that it sums."""
    summed = [o.aggregate.operand for o in query.outputs if isinstance(o.aggregate, ag.Sum)]
    pairs = [(a, b) for i, a in enumerate(summed) for b in summed[i:]]
    products = [ag.Output(f"p{i}", ag.UnitProduct(*pair)) for i, pair in enumerate(pairs)]
    return ag.QueryOfUnits(query.relation, query.keys, (*query.outputs, *products))

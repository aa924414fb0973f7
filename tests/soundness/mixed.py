"""Questions with constructs inside one another: joins of unions of groups within a unit, of lists.

Every query in the FROM has the same five columns, ``u, k, m, v, f``: the unit, a text, a whole
number, a number and a truth value. So any may stand in the place of any other, to any depth.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dither.plan.schema import Schema
from engines.lists import BASKETS, basket
from soundness.tables import LARGEST, TARGET, drawn_pair, schema_of

__all__ = ["mixed", "neighbours", "schema"]

CONDITIONS = (
    *("v > 1", "m = m", "k IS NOT NULL", "f", "NOT f", "v IS NULL", "m BETWEEN 0 AND 3"),
    *("LENGTH(k) = 1", "100 / m > 3", "k IN (SELECT kind FROM wards)"),
    "m NOT IN (SELECT code FROM doctors WHERE code IS NOT NULL)",
)
LEAVES = (
    "SELECT u, g AS k, i AS m, x AS v, b AS f FROM visits",
    "SELECT u, UPPER(g) AS k, CLAMP(n, -3, 3) AS m, y AS v, x > 5 AS f FROM visits WHERE b",
    "SELECT u, w AS k, DAY(e) AS m, z * x AS v, b AS f FROM visits",
    "SELECT u, 'a' AS k, v AS m, v * 2 AS v, v > 0 AS f FROM labs",
    "SELECT u, g AS k, e AS m, x AS v, h AS f FROM baskets, UNNEST(whole) AS t(e), "
    "UNNEST(flags) AS s(h)",
    "SELECT u, e AS k, CLAMP(LENGTH(e), 0, 3) AS m, x AS v, x > 0 AS f FROM baskets "
    "CROSS JOIN UNNEST(kinds) AS t(e)",
    "SELECT visits.u, kind AS k, beds AS m, beds * x AS v, b AS f FROM visits "
    "LEFT JOIN wards ON i = place AND g = kind",
    "SELECT visits.u, label AS k, i AS m, weight AS v, b AS f FROM visits "
    "JOIN doctors ON i = doctors.code",
    "SELECT labs.u AS u, g AS k, v AS m, x AS v, b AS f FROM visits JOIN labs ON visits.u = labs.u",
)
OUTPUTS = (
    *("COUNT(*)", "COUNT(v)", "SUM(v)", "AVG(v)", "SUM(m)", "SUM(CLAMP(v, -7, 90))", "MEDIAN(m)"),
    *("VARIANCE(CLAMP(v, 0, 50))", "COUNT(DISTINCT q.u)", "COUNT(DISTINCT k)", "COUNT_IF(f)"),
    *("COUNT(DISTINCT m, k)", "AVG(f)", "MODE(CLAMP(m, 0, 3))", "MODE(f)", "SUM(v) / COUNT(*)"),
    *("CORR(CLAMP(m, 0, 9), CLAMP(v, -1, 5))", "QUANTILE_DISC(CLAMP(m, 0, 9), 0.9)"),
    *("COUNT(*) FILTER (WHERE f)", "SUM(CLAMP(v, -4, 4)) FILTER (WHERE m > 1)"),
    *("COUNT(DISTINCT q.u) FILTER (WHERE v > 0)", "COUNT(DISTINCT k) FILTER (WHERE f)"),
)
KEYS = (
    *("k", "CLAMP(m, 0, 4)", "f", "BIN(v, -10, 0, 5, 1000)"),
    "CASE WHEN k = 'x' THEN 'a' ELSE 'b' END",
)


def schema(**limits: Any) -> Schema:
    """The tables of ``schema_of``, and one that holds lists of the same units."""
    known = schema_of(**limits)
    visits = known.table("visits")
    lists = replace(
        BASKETS,
        unit_name=visits.unit_name,
        max_groups=visits.max_groups,
        max_rows=visits.max_rows,
        max_join_rows=visits.max_join_rows,
    )
    return replace(known, tables={**known.tables, "baskets": lists})


def _rows(source: random.Random, depth: int) -> str:
    """Rows of the five columns."""
    if depth <= 0 or source.random() < 0.15:
        return source.choice(LEAVES)
    one, other = (f"({_rows(source, depth - 1)})" for _ in range(2))
    outer = source.choice(("", "LEFT "))
    match source.choice(
        ("filter", "derive", "union", "within", "within", "join", "public", "once")
    ):
        case "filter":
            return f"SELECT * FROM {one} AS q WHERE {source.choice(CONDITIONS)}"
        case "derive":
            return (
                "SELECT u, CASE WHEN f THEN k ELSE 'b' END AS k, CLAMP(m, -2, 4) AS m, "
                f"CLAMP(v, -9, 500) / 3 AS v, v > m AS f FROM {one} AS q"
            )
        case "union":
            return " UNION ALL ".join(f"SELECT u, k, m, v, f FROM {x} AS q" for x in (one, other))
        case "once":
            return f"SELECT DISTINCT u, k, m, v, f FROM {one} AS q"
        case "within":
            return _within(source, one)
        case "join":
            more = source.choice(("", "", " AND a.k = b.k", " AND a.m = b.m"))
            chosen = (
                "a.k AS k, b.m AS m, b.v AS v, a.f AS f",
                "b.k AS k, a.m AS m, a.v AS v, b.f AS f",
            )
            return (
                f"SELECT a.u AS u, {source.choice(chosen)} FROM {one} AS a "
                f"{outer}JOIN {other} AS b ON a.u = b.u{more}"
            )
    public = (
        ("q.k AS k, beds AS m, q.v AS v", "wards ON q.m = place AND q.k = kind"),
        ("label AS k, q.m AS m, weight AS v", "doctors ON q.m = doctors.code"),
    )
    chosen, on = source.choice(public)
    return f"SELECT q.u AS u, {chosen}, q.f AS f FROM {one} AS q {outer}JOIN {on}"


def _within(source: random.Random, rows: str) -> str:
    """Groups within a unit."""
    keys = source.choice(("", ", k", ", k, f", ", f", ", m"))
    values = {
        "k": ("'a'",),
        "m": ("COUNT(*)", "COUNT(DISTINCT k)", "MAX(m)", "COUNT(v)", "CLAMP(SUM(m), -9, 90)"),
        "v": ("SUM(v)", "AVG(v)", "MIN(v)", "MAX(v) - MIN(v)", "SUM(v) / COUNT(*)"),
        "f": ("MAX(v) > 1", "COUNT(*) > 1", "SUM(v) IS NULL"),
    }
    chosen = [
        name if f", {name}" in keys else f"{source.choice(asked)} AS {name}"
        for name, asked in values.items()
    ]
    kept = source.choice(("", "", "COUNT(*) > 1", "MAX(v) > 5", "SUM(m) <> 0"))
    having = f" HAVING {kept}" if kept else ""
    return f"SELECT u, {', '.join(chosen)} FROM {rows} AS q GROUP BY u{keys}{having}"


def mixed(source: random.Random) -> str:
    """One question."""
    rows = _rows(source, source.choice((1, 2, 2, 3, 3, 4)))
    keys = source.sample(KEYS, source.choice((0, 1, 1, 2)))
    asked = source.sample(OUTPUTS, source.choice((1, 1, 2, 3)))
    chosen = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    chosen += [f"{output} AS o{i}" for i, output in enumerate(asked)]
    where = source.choice(("", *(f" WHERE {c}" for c in CONDITIONS)))
    listed = ", ".join(f"k{i}" for i in range(len(keys)))
    sets = (f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), k0, ())")
    by = source.choice((listed, listed, *sets))
    options = [
        f"max_{what}_contributed = {source.choice((1, 2, 7))}"
        for what in ("groups", "rows")
        if source.random() < 0.3
    ]
    if keys and by != listed and source.random() < 0.3:
        options.append("consistent = TRUE")
    return (
        f"SELECT {', '.join(chosen)} FROM ({rows}) AS q{where}"
        + (f" GROUP BY {by}" if keys else "")
        + (f" OPTIONS ({', '.join(options)})" if options else "")
    )


def neighbours(seed: int, *, replace_one: bool, most: int) -> list[Mapping[str, Any]]:
    """Two databases that differ in the rows of one unit, in all tables, lists of it among them."""
    pair = drawn_pair(seed, replace_one=replace_one, most=most)
    source = random.Random(seed)
    others = [
        basket(source, source.choice((0, 1, 2, LARGEST, None))) for _ in range(source.randrange(12))
    ]

    def own() -> list[dict[str, Any]]:
        made = [basket(source, TARGET) for _ in range(1 + source.randrange(min(most, 6)))]
        for row in made:
            for name, held in row.items():
                if isinstance(held, list):
                    row[name] = held * source.choice((1, 1, 20))
        return made

    return [
        {**pair.first, "baskets": [*others, *own()]},
        {**pair.second, "baskets": [*others, *(own() if replace_one else [])]},
    ]

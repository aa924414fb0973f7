"""Queries drawn from a grammar: every clause, aggregate and kind of key that is offered."""

from __future__ import annotations

from hypothesis import strategies as st

KEYS = (
    "g",
    "b",
    "i",
    "e",
    "UPPER(g)",
    "BIN(x, -10, 0, 5, 1000)",
    "BIN(i, 0, 18, 65, 110)",
    "BIN(y, -0.5, 0, 0.5)",
    "FLOOR(i / 25)",
    "i // 30",
    "FLOOR(y * 2)",
    "EXTRACT(MONTH FROM d)",
    "DATE_TRUNC('week', e)",
    "EXTRACT(HOUR FROM t)",
    "CASE WHEN x > 5 THEN 1 ELSE 0 END",
    "SUBSTRING(g, 1, 1)",
    "ROUND(i, -1)",
    "ROUND(y, 1)",
    "LENGTH(g || 'x')",
    "CONCAT(g, '-')",
    "REPLACE(TRIM(g), 'a', 'bb')",
    "STRFTIME(e, '%Y-%m')",
    "CAST(i AS VARCHAR)",
    "e + INTERVAL 1 MONTH",
    "WEEK(t)",
)
"""Public keys."""

FOUND = (
    *("w", "n", "d", "DATE_TRUNC('month', t)", "LOWER(w)", "SUBSTRING(w, 1, 1)", "YEAR(d)"),
    *("LENGTH(w)", "REPLACE(w, 'x', 'xx') || w", "DATE_TRUNC('hour', t)", "CAST(w AS BIGINT)"),
    *("STRFTIME(t, '%G-W%V %T')", "ROUND(r, 1)", "d - INTERVAL 1 YEAR", "CAST(t AS DATE)"),
)
"""Keys that are discovered."""

NUMBERS = (
    "x",
    "y",
    "z",
    "i",
    "j",
    "-x",
    "x * y",
    "i * i - 3 * i",
    "ABS(x - 500)",
    "x / 3",
    "100 / i",
    "z / (z + 1)",
    "CLAMP(n, -5, 5)",
    "CLAMP(r, 0, 10)",
    "CLAMP(x / y, -2, 2)",
    "CLAMP(CLAMP(r, -1e9, 1e9) / y, 0, 1000000)",
    "CLAMP(n, 0, 1000) % 7",
    "CLAMP(n, -1000, 1000) // CLAMP(n, -3, 3)",
    "CASE WHEN b THEN x ELSE -x END",
    "CASE WHEN n > 0 THEN y END",
    "LEAST(x, i)",
    "GREATEST(y, 0.25)",
    "COALESCE(x, y, 0)",
    "FLOOR(x / 7)",
    "CEIL(z * 3)",
    "EXTRACT(DAY FROM d)",
    "EXTRACT(YEAR FROM e)",
    "EXTRACT(DOW FROM t)",
    "BIN(x, 0, 1, 2)",
    "1",
    "0 * x",
    "NULLIF(i, 110)",
    "ROUND(x, 1)",
    "ROUND(x / 7)",
    "SQRT(i)",
    "CLAMP(LN(r), -10, 10)",
    "CLAMP(LOG10(j), 0, 12)",
    "CLAMP(EXP(r), 0, 5)",
    "POWER(y, 2)",
    "CLAMP(POWER(r, y), -5, 5)",
    "CLAMP(LENGTH(w), 0, 100)",
    "CLAMP(STRPOS(w, 'x'), 0, 9)",
    "CLAMP(TRY_CAST(w AS DOUBLE), -1, 9)",
    "CAST(b AS INT)",
    "CAST(x AS BIGINT)",
    "DATE_DIFF('day', e, e)",
    "CLAMP(DATE_DIFF('second', d, t), -1e6, 1e6)",
    "SECOND(t)",
    "DAYOFYEAR(d)",
)

CONDITIONS = (
    "x > 5",
    "y <> 0",
    "r = r",
    "n IN (0, 7, 9007199254740993)",
    "n BETWEEN -1 AND 1",
    "w = ''",
    "LOWER(w) = 'a'",
    "g IN ('a', 'b')",
    "g IS NOT NULL",
    "NOT b",
    "w LIKE '%x_' OR g ILIKE 'A%'",
    "REGEXP_MATCHES(w, '^[^a-z]{1,3}$')",
    "STARTS_WITH(w, 'x') OR ENDS_WITH(w, 'S') OR CONTAINS(w, ' ')",
    "CAST(w AS BOOLEAN)",
    "t + INTERVAL 36 HOUR > d",
    "b OR x IS NULL",
    "100 / i > 3",
    "1 / z < 0.5 AND i >= 1",
    "d >= DATE '2000-01-01'",
    "t < TIMESTAMP '2020-03-01 00:00:00'",
    "EXTRACT(DAY FROM t) = 29",
    "CLAMP(CLAMP(r, -1e300, 1e300) / y, -1000, 1000) > 1",
    "SUBSTRING(w, 1, 1) <> 'a'",
    "(CASE WHEN y = 0 THEN 0 ELSE CLAMP(1 / y, -9, 9) END) >= 0",
)

FOR_FILES = (
    "x <= 1",
    "r <= 1",
    "y BETWEEN 0 AND 1",
    "r IS NULL",
    "x IS NOT NULL",
    "NOT r > 1",
    "x IN (0, 0.5, 1000)",
    "i <= 110",
    "j < 1",
    "d <= DATE '9999-12-31'",
    "w >= 'a'",
    "b",
)
"""Conditions that the statistics of a file could seem to answer."""

FOR_LIES = (
    "LEAST(i, CLAMP(n, -9, 10000000000))",
    "GREATEST(i, CLAMP(n, -10000000000, 9))",
    "LEAST(z, y)",
    "GREATEST(z, i)",
    "LEAST(z, CLAMP(r, 0, 9))",
    "COALESCE(z, j)",
    "z * x",
)
"""Operands that would be wrong, were a declared fact believed."""

_ODD = "4194303"
TWINS = (
    ("i * 3", "i * 3.0"),
    ("CLAMP(n * 7, -9, 9)", "CLAMP(n * 7.0, -9, 9)"),
    *(
        tuple(f"CLAMP(ABS(j) * {k} + {at}, {at - wide}, {at + wide})" for k in (_ODD, f"{_ODD}.0"))
        for at, wide in ((2**61 + 256, 1), (2**60, 2**26))
    ),
)
"""Operands that differ in the kind of a constant alone, some where doubles lie far apart."""

AMONG = (
    "i IN (SELECT code FROM doctors)",
    "n NOT IN (SELECT code FROM doctors WHERE code IS NOT NULL)",
    "NOT LOWER(w) IN (SELECT label FROM doctors WHERE weight > 1)",
)
"""Lists of keys that are read from a public table, in which keys are NULL or occur twice."""

SINGLE = ("COUNT({x})", "SUM({x})", "AVG({x})", "VARIANCE({x})", "STDDEV_POP({x})")
ORDERED = ("MEDIAN({x})", "QUANTILE({x}, 0.9)", "MIN({x})", "MAX({x})")
CHOSEN = ("g", "i", "b", "UPPER(g)", "CLAMP(n, -3, 3)", "MONTH(d)", "BIN(y, -1, 0, 0.5)", "i // 9")
"""What modes are of: values that public facts list."""

PAIRED = ("COVAR_SAMP", "CORR", "REGR_SLOPE")


@st.composite
def aggregates(draw: st.DrawFn, numbers: tuple[str, ...], unit: str | None) -> str:
    """One output."""
    x, y = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
    forms = [
        *("COUNT(*)",) * 2,
        *(s.format(x=x) for s in SINGLE * 2),
        *(s.format(x=x) for s in ORDERED),
        f"SUM({x}) / COUNT(*)",
        f"SUM({x}) / COUNT({x})",
        f"SUM({x}) / SUM({y})",
    ]
    condition = draw(st.sampled_from(CONDITIONS))
    values = draw(st.sampled_from((x, "g", "w", "d", "n", "r", "b", "LOWER(w)")))
    forms += [
        *(f"COUNT(DISTINCT {values})",) * 4,
        *(f"COUNT(DISTINCT {values}, {y})", f"COUNT(DISTINCT b, {values}, {x})"),
        *(f"COUNT_IF({condition})", f"SUM({condition})", f"AVG({condition})"),
        f"{draw(st.sampled_from(SINGLE)).format(x=x)} FILTER (WHERE {condition})",
        f"COUNT(DISTINCT {values}) FILTER (WHERE {condition})",
        *(f"QUANTILE_DISC({x}, 0.9)", f"100 * AVG({x}) - COUNT(*)", f"SQRT(COUNT({x}))"),
        *(f"{word}({x}, {y})" for word in PAIRED),
        f"MODE({draw(st.sampled_from(CHOSEN))})",
        f"MODE(g) FILTER (WHERE {condition})",
    ]
    if unit:
        forms += [f"COUNT(DISTINCT {unit})"] * 2
        forms += [f"COUNT(DISTINCT {unit}) FILTER (WHERE {condition})"] * 2
    return draw(st.sampled_from(forms))


@st.composite
def queries(
    draw: st.DrawFn, tables: tuple[str, ...] = ("visits", "people"), *, hostile: bool = False
) -> str:
    """One query over ``soundness.tables``; ``hostile``: of files and of false declarations."""
    table = draw(st.sampled_from(tables))
    unit = "visits.u" if table == "visits" else None
    numbers, keys = NUMBERS + (FOR_LIES * 2 if hostile else ()), KEYS
    source = table
    joined = draw(st.sampled_from(("", "", "", "inner", "left", "labs", "wards", "left wards")))
    if joined == "labs" and unit:
        source += " JOIN labs ON visits.u = labs.u"
        numbers += ("v", "v", "v * i", "v + x")
        keys += ("v",)
    elif joined.endswith("wards"):
        source += f"{' LEFT' if joined[:4] == 'left' else ''} JOIN wards ON i = place AND g = kind"
        numbers += ("beds", "beds * x")
        keys += ("kind", "place")
    elif joined in ("inner", "left"):
        left = draw(st.sampled_from(("i", "n", "CLAMP(n, 0, 60)")))
        source += f"{' LEFT' if joined == 'left' else ''} JOIN doctors ON {left} = doctors.code"
        numbers += ("weight", "weight * x")
        keys += ("label", "label")
    grouped = draw(
        st.lists(st.sampled_from(keys), max_size=2, unique=True)
        | st.lists(st.sampled_from((*FOUND, *KEYS[:4])), min_size=1, max_size=2, unique=True)
    )
    outputs = draw(st.lists(aggregates(numbers, unit), min_size=1, max_size=3, unique=True))
    twins = draw(st.sampled_from(((),) * 3 * len(TWINS) + TWINS).flatmap(st.permutations))
    outputs += [f"{draw(st.sampled_from(('AVG', 'SUM', 'COUNT')))}({x})" for x in twins]
    chosen = [f"{k} AS k{i}" for i, k in enumerate(grouped)]
    chosen += [f"{a} AS o{i}" for i, a in enumerate(outputs)]
    offered = CONDITIONS + (FOR_FILES if hostile else ())
    conditions = draw(st.lists(st.sampled_from(offered), max_size=2, unique=True))
    conditions += draw(st.lists(st.sampled_from(AMONG), max_size=1)) if draw(st.booleans()) else []
    where = " WHERE " + " AND ".join(conditions) if conditions else ""
    by = f" GROUP BY {_by(draw, grouped)}" if grouped else ""
    limits = {
        f"max_{what}_contributed": draw(st.sampled_from((None, None, None, 1, 2, 7)))
        for what in ("groups", "rows")
    }
    given = ", ".join(f"{name} = {limit}" for name, limit in limits.items() if limit and unit)
    if "(" in by.partition(" k")[0] and draw(st.integers(0, 2)) == 0:
        given = ", ".join([*([given] if given else []), "consistent = TRUE"])
    options = f" OPTIONS ({given})" if given else ""
    return f"SELECT {', '.join(chosen)} FROM {source}{where}{by}{options}"


def _by(draw: st.DrawFn, grouped: list[str]) -> str:
    """The keys, or sets of them."""
    listed = ", ".join(f"k{i}" for i in range(len(grouped)))
    sets = (f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), k0, ())")
    return draw(st.sampled_from((listed,) * 3 + sets))


# --- queries in the FROM ------------------------------------------------------------------------

INNER_KEYS = ("g", "b", "i", "w", "y", "UPPER(g)", "EXTRACT(MONTH FROM d)", "BIN(x, -10, 0, 1000)")
"""Keys beside the unit."""

INNER_VALUES = (
    *("COUNT(*)", "COUNT({x})", "COUNT(DISTINCT w)", "COUNT(DISTINCT {x})"),
    *("SUM({x})", "AVG({x})", "MIN({x})", "MAX({x})", "SUM(n)", "MAX(r)"),
    *("SUM({x}) / COUNT(*)", "MAX({x}) - MIN({x})", "CLAMP(SUM({x}), -5, 5000)"),
)
"""Aggregates within a unit, and what is made of them."""

HAVING = ("COUNT(*) > 1", "MAX(x) > 5", "SUM(i) <> 0 OR b", "MIN(y) IS NULL", "AVG(z) < 4")


@st.composite
def _within(draw: st.DrawFn, source: str) -> tuple[str, list[str], list[str]]:
    """Groups within a unit: SQL, the names of its keys and those of its values."""
    keys = draw(st.lists(st.sampled_from(INNER_KEYS), max_size=2, unique=True))
    values = draw(st.lists(st.sampled_from(INNER_VALUES), min_size=1, max_size=3))
    chosen = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    for i, value in enumerate(values):
        chosen.append(f"{value.format(x=draw(st.sampled_from(NUMBERS)))} AS v{i}")
    where = draw(st.sampled_from(("", *(f" WHERE {c}" for c in CONDITIONS))))
    having = draw(st.sampled_from(("", "", *(f" HAVING {c}" for c in HAVING if "b" not in c))))
    by = ", ".join(["u", *(f"k{i}" for i in range(len(keys)))])
    unit = draw(st.sampled_from(("u, ", "")))
    sql = f"SELECT {unit}{', '.join(chosen)} FROM {source}{where} GROUP BY {by}{having}"
    return sql, [f"k{i}" for i in range(len(keys))], [f"v{i}" for i in range(len(values))]


@st.composite
def _rows(draw: st.DrawFn, source: str) -> tuple[str, list[str], list[str]]:
    """Rows with derived columns, or several queries one after another."""
    parts = []
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        key, number = draw(st.sampled_from(("g", "w", "UPPER(g)"))), draw(st.sampled_from(NUMBERS))
        where = draw(st.sampled_from(("", *(f" WHERE {c}" for c in CONDITIONS))))
        part = f"SELECT u, {key} AS k0, {number} AS v0, b AS v1 FROM {source}{where}"
        other = "SELECT u, 'a', v, v > 0 FROM labs"
        parts.append(other if parts and draw(st.booleans()) else part)
    return " UNION ALL ".join(parts), ["k0", "v1"], ["v0"]


OUTER = (
    *("COUNT(*)", "COUNT({v})", "SUM({v})", "AVG({v})", "SUM(CLAMP({v}, -7, 90))"),
    *("MEDIAN({v})", "VARIANCE(CLAMP({v}, 0, 50))", "AVG({v} * 2 - 1)"),
)


@st.composite
def nested(draw: st.DrawFn) -> str:
    """One query over queries in the FROM of ``visits`` and ``labs``."""
    source = "visits"
    if draw(st.sampled_from((False, False, True))):
        inner, keys, values = draw(_rows("visits"))
        sql = f"SELECT u, {keys[0]} AS g, v0 AS x, v0 AS i, b FROM (SELECT *, {keys[1]} AS b FROM "
        source = f"({sql}({inner}) AS one) AS two) AS visits"
        if draw(st.booleans()):
            inner, keys, values = f"SELECT u, g AS k0, x AS v0 FROM {source}", ["k0"], ["v0"]
        else:
            value = draw(st.sampled_from(("SUM", "AVG", "MAX", "COUNT")))
            inner = (
                f"SELECT u, g AS k0, {value}(x) AS v0, COUNT(*) AS v1 FROM {source} GROUP BY u, g"
            )
            keys, values = ["k0"], ["v0", "v1"]
    else:
        inner, keys, values = draw(st.one_of(_within(source), _within(source), _rows(source)))
    grouped = draw(st.lists(st.sampled_from((*keys, *values)), max_size=2, unique=True))
    outputs = [
        draw(st.sampled_from(OUTER)).format(v=draw(st.sampled_from(values)))
        for _ in range(draw(st.integers(1, 2)))
    ]
    joined = ""
    unit = inner.startswith("SELECT u,")
    if unit and draw(st.sampled_from((False, False, True))):
        side = draw(st.sampled_from(("", "LEFT ")))
        more = draw(st.sampled_from(("", f" AND q.{values[0]} = o.v")))
        right = draw(st.sampled_from(("labs", "(SELECT u, MIN(v) AS v FROM labs GROUP BY u)")))
        joined = f" {side}JOIN {right} AS o ON q.u = o.u{more}"
        outputs.append("SUM(CLAMP(o.v, -3, 3))")
    if unit and draw(st.booleans()):
        outputs.append("COUNT(DISTINCT q.u)")
    conditions = [f"{values[0]} > 1", f"{values[0]} IS NULL", f"{values[0]} = {values[0]}"]
    where = draw(st.sampled_from(("", *(f" WHERE {c}" for c in conditions))))
    # Where counts and sums within a unit end is not declared, and keys may not end there either.
    cut = {k: f"CLAMP(q.{k}, 0, 4)" if draw(st.booleans()) else f"q.{k}" for k in values}
    chosen = [f"{cut.get(k, f'q.{k}')} AS key{i}" for i, k in enumerate(grouped)]
    chosen += [f"{o} AS o{i}" for i, o in enumerate(outputs)]
    by = " GROUP BY " + ", ".join(f"key{i}" for i in range(len(grouped))) if grouped else ""
    return f"SELECT {', '.join(chosen)} FROM ({inner}) AS q{joined}{where}{by}"


# --- lists --------------------------------------------------------------------------------------

UNNESTED = {
    "words": ("COUNT({e})", "COUNT(DISTINCT {e})", "COUNT_IF({e} LIKE 'a%')"),
    "kinds": ("COUNT({e})", "MODE({e})", "SUM(CLAMP(LENGTH({e}), 0, 3))"),
    "whole": ("SUM({e})", "AVG({e})", "MEDIAN({e})", "SUM({e} * x)", "MODE({e} // 30)"),
    "reals": ("SUM({e})", "VARIANCE({e})", "SUM(x / {e})", "AVG(CLAMP({e} * 1e300, -1, 1))"),
    "flags": ("SUM({e})", "AVG({e})", "MODE({e})"),
    "days": ("COUNT(DISTINCT {e})", "SUM(MONTH({e}))"),
}
"""By column of lists in ``engines.lists``: what is asked of its elements."""


@st.composite
def unnested(draw: st.DrawFn, table: str = "baskets") -> str:
    """One query over the elements of one or two lists; of ``crates`` a row is a person."""
    columns = draw(st.lists(st.sampled_from(list(UNNESTED)), min_size=1, max_size=2))
    source = table + "".join(f", UNNEST({c}) AS t{i}(e{i})" for i, c in enumerate(columns))
    unit = table == "baskets"
    outputs = ["COUNT(*)", *(["COUNT(DISTINCT u)"] if unit else []), "SUM(x)"]
    for i, column in enumerate(columns):
        outputs += [form.format(e=f"e{i}") for form in UNNESTED[column] * 2]
    chosen = draw(st.lists(st.sampled_from(outputs), min_size=1, max_size=3, unique=True))
    keys = ["g", *(f"e{i}" for i, c in enumerate(columns) if c in ("words", "kinds", "flags"))]
    grouped = draw(st.lists(st.sampled_from(keys), max_size=2, unique=True))
    where = draw(st.sampled_from(("", " WHERE e0 IS NOT NULL", " WHERE x > 0 OR g = 'a'")))
    if unit and draw(st.sampled_from((False, False, True))):
        inner = f"SELECT u, e0 AS k, COUNT(*) AS n, SUM(x) AS s FROM {source}{where} GROUP BY u, k"
        return f"SELECT COUNT(*) AS c, SUM(n) AS n, AVG(s) AS s FROM ({inner}) AS q"
    named = [f"{k} AS k{i}" for i, k in enumerate(grouped)]
    named += [f"{a} AS o{i}" for i, a in enumerate(chosen)]
    by = " GROUP BY " + ", ".join(f"k{i}" for i in range(len(grouped))) if grouped else ""
    return f"SELECT {', '.join(named)} FROM {source}{where}{by}"

"""What lists become is public: elements of a list, rows of a unit, and what is asked before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.lowering.lower import lower
from dither.plan.lowering.unnested import conditions_first, items
from dither.plan.relations import (
    Elements,
    Filter,
    KeyFilter,
    PublicJoin,
    Relation,
    Scan,
    Unnest,
    visible,
)
from dither.plan.schema import MOST_UNNESTED, ColumnFacts, Kind, Schema, Table
from dither.sql import parse_query

LISTS = {n: ColumnFacts(n, Kind.INTEGER) for n in ("a", "b", "c", "d", "e")}
VISITS = Table(
    "visits",
    {n: ColumnFacts(n, Kind.INTEGER) for n in ("u", "age", "code")},
    unit="u",
    max_groups=2,
    max_rows=2,
    lists=LISTS | {"two": ColumnFacts("two", Kind.INTEGER, max_items=2)},
)
CODES = Table(
    "codes",
    {n: ColumnFacts(n, Kind.INTEGER) for n in ("code", "part")},
    private=False,
    unique=frozenset({"code"}),
)
SCHEMA = Schema({"visits": VISITS, "codes": CODES})


def read(sql: str, schema: Schema = SCHEMA) -> Relation:
    """The rows of a query."""
    return parse_query(f"SELECT COUNT(*) AS n FROM visits, {sql}", schema).relation


def steps(relation: Relation) -> str:
    """The steps of a FROM, the first one first."""
    match relation:
        case Scan(alias=alias):
            return alias
        case Filter(source=source, predicate=predicate):
            shown = "&".join(sorted({c.name for c in ex.columns(predicate)}))
            return f"{steps(source)} ?{shown}"
        case KeyFilter(source=source):
            return f"{steps(source)} in"
        case PublicJoin(source=source, public=public):
            return f"{steps(source)} +{public.alias}"
        case Unnest(source=source, elements=elements):
            return f"{steps(source)} *{elements.alias}"
    raise TypeError


@pytest.mark.parametrize(
    ("lists", "counted"),
    [
        (["a"], [MOST_UNNESTED]),
        (["a", "b"], [100, 100]),
        (["a", "a", "b"], [21, 21, 21]),
        (["a", "b", "c", "d"], [10] * 4),
        (["two"], [2]),
        (["two", "a"], [2, 5000]),
        (["two"] * 13, [2] * 13),
    ],
)
def test_lists_share_what_a_row_may_become(lists, counted):
    """Declared ones count as declared, and the others equally: the product is never above."""
    rows = read(", ".join(f"UNNEST({name}) t{i}(x{i})" for i, name in enumerate(lists)))
    found = items(rows, SCHEMA)
    assert [found[f"t{i}"] for i in range(len(lists))] == counted
    assert items(Scan("visits", "visits"), SCHEMA) == {}


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        (
            ["a", "b", "c", "d", "e"],
            "UNNEST of 5 lists .* 10,000 of these count, .*max_unnest_rows",
        ),
        (["two"] * 14, "2 times .* rows, more than 10,000"),
        (["two"] * 11 + ["a"], "declare max_items"),
    ],
)
def test_what_could_become_too_much_is_refused(lists, said):
    """Before anything is charged, and by both doors' own check and the plan's."""
    listed = ", ".join(f"UNNEST({name}) t{i}(x{i})" for i, name in enumerate(lists))
    with pytest.raises(QueryError, match=said):
        read(listed)
    query = parse_query("SELECT COUNT(*) AS n FROM visits", SCHEMA)
    rows: Relation = query.relation
    for i, name in enumerate(lists):
        most = VISITS.lists[name].max_items
        rows = Unnest(rows, Elements("visits", name, f"t{i}", f"x{i}", most))
    with pytest.raises(QueryError, match=said):
        lower(replace(query, relation=rows), SCHEMA)


def test_limits_are_no_more_than_a_unit_s_rows_of_lists():
    """What is enforced is what noise is for: a unit with three rows moves no sum by four."""
    schema = Schema({"visits": replace(VISITS, max_rows=50, max_groups=50, max_unnest_rows=3)})
    sql = "SELECT code, COUNT(*) AS n FROM {} WHERE age > 3 GROUP BY code"
    listed, plain = (
        lower(parse_query(sql.format(rows), schema), schema)
        for rows in ("visits, UNNEST(a) t(x)", "visits")
    )
    assert (plain.job.max_groups, plain.job.max_rows) == (50, 50)
    assert (listed.job.max_groups, listed.job.max_rows) == (3, 3)
    assert listed.sensitivities[0].l1 < plain.sensitivities[0].l1
    both = "SELECT COUNT(*) AS n FROM (SELECT u, x FROM visits, UNNEST(a) t(x) UNION ALL {}) AS q"
    for other, most in (
        ("SELECT u, y FROM visits, UNNEST(b) t(y)", 6),
        ("SELECT u, age FROM visits", 50),
    ):
        assert lower(parse_query(both.format(other), schema), schema).job.max_rows == most


@pytest.mark.parametrize("most", [1, 150, 10**6])
def test_a_policy_says_how_much(most):
    """Up to a million rows of one unit; with few, lists of few elements are what was asked for."""
    schema = Schema({"visits": replace(VISITS, max_unnest_rows=most), "codes": CODES})
    found = items(read("UNNEST(a) t(x), UNNEST(b) s(y)", schema), schema)
    assert found == dict.fromkeys("ts", int(most**0.5))


@pytest.mark.parametrize(
    ("sql", "order"),
    [
        ("UNNEST(a) t(x) WHERE age = 57", "visits ?age *t"),
        ("UNNEST(a) t(x), UNNEST(b) s(y) WHERE y = 1 AND age = 57", "visits ?age *t *s ?y"),
        ("UNNEST(a) t(x), UNNEST(b) s(y) WHERE x = 1 AND y = x", "visits *t ?x *s ?x&y"),
        ("UNNEST(a) t(x) WHERE age = 57 OR x = 1", "visits *t ?age&x"),
        ("UNNEST(a) t(x) WHERE (age = 57 AND x > age) AND code = 1", "visits ?age&code *t ?age&x"),
        (
            "UNNEST(a) t(x) JOIN codes c ON visits.code = c.code WHERE c.part = 1 AND x = 2",
            "visits +c ?part *t ?x",
        ),
        ("UNNEST(a) t(x) JOIN codes c ON x = c.code WHERE c.part = 1", "visits *t +c ?part"),
        (
            "UNNEST(a) t(x) LEFT JOIN codes c ON x = c.code WHERE c.part IS NULL AND age = 57",
            "visits ?age *t +c ?part",
        ),
        ("UNNEST(a) t(x) WHERE age IN (SELECT code FROM codes)", "visits in *t"),
        ("UNNEST(a) t(x) WHERE x IN (SELECT code FROM codes) AND age = 1", "visits ?age *t in"),
        ("UNNEST(a) t(x) WHERE 1 = age AND x = x + age AND u = 3", "visits ?age&u *t ?age&x"),
    ],
)
def test_what_is_asked_of_a_row_stands_below_its_lists(sql, order):
    """Conditions and public joins as early as the columns that they name, lists as they stand."""
    rows = read(sql)
    found = conditions_first(rows)
    assert steps(found) == order
    assert conditions_first(found) == found
    assert {one.alias for one in visible(found)} == {one.alias for one in visible(rows)}


def test_without_lists_nothing_is_moved():
    """The very same rows."""
    rows = parse_query("SELECT COUNT(*) AS n FROM visits WHERE age = 1 AND u > 2", SCHEMA).relation
    assert conditions_first(rows) is rows


def test_conditions_that_are_moved_are_one_condition():
    """However many there are, none stands in a query of its own."""
    text = " AND ".join(f"age <> {i}" for i in range(300))
    found = conditions_first(read(f"UNNEST(a) t(x) WHERE x > 0 AND {text}"))
    assert steps(found) == "visits ?age *t ?x"

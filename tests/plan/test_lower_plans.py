"""From queries to measurements: what is shared, how the budget is split, what is refused."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction as F

import pytest

from dither.errors import BoundsError, QueryError, UnsupportedError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.job import Leaves, Rows, Total, Units, Values
from dither.plan.lowering.lower import lower
from dither.plan.lowering.recipes import (
    Linear,
    MeanRecipe,
    QuantileRecipe,
    RatioRecipe,
    VarianceRecipe,
)
from dither.plan.relations import Filter, PublicJoin, Scan
from dither.plan.schema import ColumnFacts, Kind, Schema, Table


def columns(*facts: ColumnFacts) -> dict[str, ColumnFacts]:
    return {f.name: f for f in facts}


BASE = columns(
    ColumnFacts("pid", Kind.INTEGER),
    ColumnFacts("region", Kind.TEXT, values=("north", "south"), nullable=False),
    ColumnFacts("city", Kind.TEXT),
    ColumnFacts("age", Kind.INTEGER, F(0), F(110), nullable=False),
    ColumnFacts("dose", Kind.INTEGER, F(-5), F(5), nullable=False),
    ColumnFacts("cost", Kind.REAL, F(0), F(5000), step=F(1, 100)),
    ColumnFacts("fee", Kind.REAL, F(0), F(5000), step=F(1, 100), nullable=False),
    ColumnFacts("raw", Kind.REAL, F(0), F(1), nullable=False),
    ColumnFacts("free", Kind.REAL),
    ColumnFacts("day", Kind.DATE, dt.date(2020, 1, 1), dt.date(2023, 1, 1)),
    ColumnFacts("seen", Kind.TIMESTAMP),
    ColumnFacts("wide", Kind.INTEGER, F(0), F(2**40), nullable=False),
)
VISITS = Table("visits", BASE, unit="pid", max_groups=3, max_rows=5)
PEOPLE = Table("people", BASE)
PLACES = Table(
    "places",
    columns(ColumnFacts("city", Kind.TEXT), ColumnFacts("id", Kind.REAL)),
    private=False,
    unique=frozenset(("city", "id")),
)
SCHEMA = Schema({"visits": VISITS, "people": PEOPLE, "places": PLACES})
REPLACE = Schema({"visits": VISITS, "people": PEOPLE}, replace_one=True)


def c(name: str, table: str = "visits") -> ex.Column:
    return ex.Column(table, name)


def plan_of(*aggregates, keys=(), table="visits", schema=SCHEMA, relation=None, **more):
    outputs = tuple(
        a if isinstance(a, ag.Output) else ag.Output(f"o{i}", a) for i, a in enumerate(aggregates)
    )
    named = tuple(ag.Key(f"k{i}", key) for i, key in enumerate(keys))
    return lower(ag.Query(relation or Scan(table, table), named, outputs, **more), schema)


# --- sharing ----------------------------------------------------------------------------------


def test_means_without_null_share_one_count():
    """Two means and a count need two totals and one count."""
    plan = plan_of(ag.Count(), ag.Mean(c("age")), ag.Mean(c("fee")))
    kinds = [type(m) for m in plan.job.measurements]
    assert kinds == [Rows, Total, Total]
    assert [r.count for r in plan.recipes[1:]] == [0, 0]


def test_a_mean_with_null_counts_its_own_values():
    """A nullable operand has a count of its own, shared with COUNT of it."""
    plan = plan_of(ag.Mean(c("cost")), ag.CountValues(c("cost")), ag.Count())
    assert [type(m) for m in plan.job.measurements] == [Total, Values, Rows]
    assert plan.recipes[1] == Linear(((1, F(1)),), F(0))


def test_a_sum_beside_a_mean_costs_nothing_more():
    """The sum is the centred total plus the centre times the count."""
    plan = plan_of(ag.Mean(c("age")), ag.Sum(c("age")))
    assert len(plan.job.measurements) == 2
    mean, total = plan.recipes
    assert isinstance(mean, MeanRecipe)
    assert total == Linear(((0, F(1, 512)), (1, F(55))), F(0))


def test_a_mean_beside_a_variance_uses_its_lattice():
    """Mean, variance and deviation of a column need a total, a square and a count."""
    both = plan_of(ag.Mean(c("fee")), ag.Variance(c("fee")), ag.Variance(c("fee"), root=True))
    assert [type(m) for m in both.job.measurements] == [Total, Rows, Total]
    assert both.recipes[1].root is False
    assert both.recipes[2].root is True


def test_all_quantiles_of_an_expression_read_one_histogram():
    """Median, minimum and maximum share the leaves."""
    plan = plan_of(
        ag.Quantile(c("age"), F(1, 2)), ag.Quantile(c("age"), F(0)), ag.Quantile(c("dose"), F(1))
    )
    first, second = plan.job.measurements
    assert isinstance(first, Leaves)
    assert isinstance(second, Leaves)
    assert (first.bins, first.width, second.bins) == (111, 1, 11)
    assert [r.leaves for r in plan.recipes] == [0, 0, 1]


def test_a_sum_over_its_count_is_its_mean():
    """The ratio of a sum and the count of the same values is measured as the better mean."""
    assert isinstance(plan_of(ag.Ratio(ag.Sum(c("age")), ag.Count())).recipes[0], MeanRecipe)
    nullable = plan_of(ag.Ratio(ag.Sum(c("cost")), ag.CountValues(c("cost"))))
    assert isinstance(nullable.recipes[0], MeanRecipe)
    other = plan_of(ag.Ratio(ag.Sum(c("cost")), ag.Count())).recipes[0]
    assert isinstance(other, RatioRecipe)


# --- weights ----------------------------------------------------------------------------------


def test_weights_sum_to_one_and_follow_the_outputs():
    """An output of thrice the weight gets thrice the share."""
    plan = plan_of(ag.Output("a", ag.Count(), F(1)), ag.Output("b", ag.Sum(c("dose")), F(3)))
    assert plan.weights == (F(1, 4), F(3, 4))
    many = plan_of(ag.Count(), ag.Mean(c("cost")), ag.Quantile(c("age"), F(1, 2)))
    assert sum(many.weights) == 1


def test_discovered_keys_need_a_count_of_units():
    """Discovery adds a count of distinct units, or uses the one that is there."""
    plan = plan_of(ag.Mean(c("age")), keys=[c("city")])
    assert plan.discovered
    assert plan.public_keys is None
    assert plan.job.measurements[-1] == Units()
    assert len(plan_of(ag.CountUnits(), keys=[c("city")]).job.measurements) == 1
    rows = plan_of(ag.Count(), keys=[c("city", "people")], table="people")
    assert rows.job.measurements == (Rows(),)


def test_the_size_of_a_table_is_public_where_one_replaces_one():
    """Without filter and keys its rows cost nothing; with either they do."""
    plan = plan_of(ag.Count(), ag.Mean(c("age", "people")), table="people", schema=REPLACE)
    assert plan.public_size
    assert plan.weights[plan.job.measurements.index(Rows())] == 0
    assert "costs nothing" in plan.notes[0]
    filtered = Filter(Scan("people", "people"), ex.IsNull(c("cost", "people")))
    for other in (
        plan_of(ag.Count(), table="people"),
        plan_of(ag.Count(), relation=filtered, schema=REPLACE),
        plan_of(ag.Count(), keys=[c("region", "people")], table="people", schema=REPLACE),
        plan_of(ag.Count(), schema=REPLACE),
    ):
        assert not other.public_size
        assert other.weights == (F(1),)


# --- groups -----------------------------------------------------------------------------------


def test_groups_of_a_unit_are_no_more_than_there_are():
    """max_groups is cut to the number of public keys, and to 1 without keys."""
    assert plan_of(ag.Count()).job.max_groups == 1
    assert plan_of(ag.Count(), keys=[c("region")]).job.max_groups == 2
    assert plan_of(ag.Count(), keys=[c("age")]).job.max_groups == 3
    assert plan_of(ag.Count(), keys=[c("age", "people")], table="people").job.max_groups == 1


def test_keys_follow_from_public_facts():
    """Lists, short ranges, truncated dates and bins are public; free text is not."""
    keys = [c("region"), ex.Bin(c("age"), (F(0), F(18), F(110))), ex.DateTruncate("year", c("day"))]
    plan = plan_of(ag.Count(), keys=keys)
    assert plan.public_keys == 2 * 2 * 4
    assert plan.notes == (
        "rows in which k0 is NULL or not one of these keys belong to no group",
        "rows in which age is NULL or outside 0 to 110 belong to no group",
        "rows in which k2 is NULL or not one of these keys belong to no group",
    )
    assert plan_of(ag.Count(), keys=keys, discover=True).discovered
    assert plan_of(ag.Count(), keys=[c("region"), c("city")]).discovered


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (c("fee"), r"real has too many values; cut it with BIN"),
        (c("seen"), "timestamp has too many values; cut it with DATE_TRUNC"),
        (ex.Literal(None), "NULL is not a key"),
    ],
)
def test_keys_with_too_many_values_are_refused(key, words):
    """The message says how to cut them."""
    with pytest.raises(QueryError, match=words):
        plan_of(ag.Count(), keys=[key])


def test_too_many_public_keys_are_refused():
    """The product of the lists is the size of the release."""
    with pytest.raises(QueryError, match=r"1,217,670 public combinations, more than 1,000,000"):
        plan_of(ag.Count(), keys=[c("day"), c("age"), ex.Clamp(c("wide"), F(0), F(9))])


# --- lattices ---------------------------------------------------------------------------------


def test_sums_are_on_the_declared_lattice():
    """A declared step is kept; notes say what is rounded."""
    plan = plan_of(ag.Sum(c("cost")))
    assert plan.job.measurements[0] == Total(c("cost"), F(1, 100), 0, 500_000)
    assert plan.notes == ()
    rough = plan_of(ag.Sum(c("raw")))
    assert rough.job.measurements[0].step == F(1, 2**20)
    assert rough.notes == (f"raw is rounded to multiples of {2.0**-20}",)
    wide = plan_of(ag.Sum(c("wide"))).job.measurements[0]
    assert wide.step == 2**13
    assert (wide.upper - wide.lower) < 2**28


def test_the_lattice_covers_the_bounds():
    """Bounds between two lattice points are widened, never cut."""
    node = ex.Clamp(c("raw"), F(1, 3), F(2, 3))
    total = plan_of(ag.Sum(node)).job.measurements[0]
    assert total.lower * total.step <= F(1, 3)
    assert total.upper * total.step >= F(2, 3)
    assert total.step <= F(1, 3) / 2**20


def test_wide_ranges_are_cut_in_two_steps():
    """512 stretches or fewer, then bins inside; both cover every lattice point once."""
    plan = plan_of(ag.Quantile(c("fee"), F(1, 2)))
    recipe = plan.recipes[0]
    assert isinstance(recipe, QuantileRecipe)
    top, below = plan.job.measurements
    assert recipe.leaves == 0
    assert recipe.below == 1
    assert top.bins <= 512
    assert top.width == below.width * below.within
    assert recipe.width == below.width * below.step
    for leaves in (top, below):
        cells = leaves.upper - leaves.lower + 1
        assert (leaves.bins - 1) * leaves.width < cells <= leaves.bins * leaves.width
    assert plan.weights == (F(4, 5), F(1, 5))


def test_constant_operands_are_summed_too():
    """A sum of a constant, zero included, has a lattice."""
    assert plan_of(ag.Sum(ex.Literal(3))).job.measurements[0].ends == (3, 3)
    zero = plan_of(ag.Sum(ex.Literal(F(0))))
    assert zero.job.measurements[0].step == 1
    assert zero.notes == ()


def test_sums_that_may_be_scaled_down_are_counted_in_parts():
    """One yes of six rows is not rounded away; a row that is a person needs no parts."""
    yes = ex.Case(
        ((ex.Compare("=", c("region"), ex.Literal("north")), ex.Literal(1)),), ex.Literal(0)
    )
    total = plan_of(ag.Sum(yes)).job.measurements[0]
    assert (total.lower, total.upper, total.parts) == (0, 1, 2**15)
    assert plan_of(ag.Sum(c("age"))).job.measurements[0].parts == 256
    assert plan_of(ag.Sum(c("fee"))).job.measurements[0].parts == 1
    whole = plan_of(ag.Sum(c("age", "people")), table="people").job.measurements[0]
    assert whole.parts == 1


# --- refusals ---------------------------------------------------------------------------------


def test_an_empty_query_is_refused():
    """At least one aggregate."""
    with pytest.raises(QueryError, match="add an aggregate"):
        plan_of()


@pytest.mark.parametrize(
    ("aggregate", "error", "words"),
    [
        (ag.Sum(c("free")), BoundsError, r"SUM of free needs bounds.*CLAMP\(free"),
        (ag.Mean(c("free")), BoundsError, "AVG of free needs bounds"),
        (ag.Variance(c("free")), BoundsError, "needs bounds"),
        (ag.Quantile(c("free"), F(1, 2)), BoundsError, "a quantile of free needs bounds"),
        (ag.Sum(c("region")), QueryError, "SUM of region: not a number; if it holds numbers"),
        (ag.Mean(c("day")), QueryError, r"AVG of day: not a number; .*YEAR\(day\)"),
        (
            ag.Quantile(ex.IsNull(c("city")), F(1, 2)),
            QueryError,
            "write CASE WHEN city IS NULL THEN 1 ELSE 0",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(aggregate, error, words):
    """Each names the part and the fix."""
    with pytest.raises(error, match=words):
        plan_of(aggregate)


@pytest.mark.parametrize(
    ("born", "error", "words"),
    [
        (lambda: ag.Quantile(c("age"), F(3, 2)), QueryError, r"\[0, 1\]"),
        (lambda: ag.Ratio(ag.Mean(c("age")), ag.Count()), UnsupportedError, "counts and sums"),
        (lambda: ag.Ratio(ag.Count(), ag.CountUnits()), None, ""),
        (lambda: ag.Output("x", ag.Count(), F(0)), QueryError, "weight of 'x' must be above 0"),
    ],
)
def test_aggregates_refuse_at_birth_what_has_no_shape(born, error, words):
    """No query can hold it, no matter who builds the query."""
    if error is None:
        born()
        return
    with pytest.raises(error, match=words):
        born()


@pytest.mark.parametrize(
    "outputs",
    [
        [ag.Output("n", ag.Count()), ag.Output("n", ag.CountUnits())],
        [ag.Output("n", ag.Count()), ag.Output("n_lower", ag.CountUnits())],
        [ag.Output("k0", ag.Count())],
    ],
)
def test_two_columns_of_one_name_are_refused(outputs):
    """Also where the clash is with the ends of an interval, which every output brings along."""
    with pytest.raises(QueryError, match="use AS to tell them apart"):
        plan_of(*outputs, keys=[c("region")])


def test_an_order_by_nothing_is_refused():
    """ORDER BY names a key, an output or an end of its interval."""
    with pytest.raises(QueryError, match="ORDER BY z"):
        plan_of(ag.Count(), order=(("z", False),))
    plan_of(ag.Count(), order=(("o0_lower", True),))


def test_a_public_table_is_no_place_to_start():
    """There is nothing to protect."""
    with pytest.raises(QueryError, match="'places' is public"):
        plan_of(ag.Count(), table="places")


def test_filters_and_joins_are_checked():
    """A filter is a condition; a join sets equal two values of one kind, or two numbers."""
    scan = Scan("visits", "visits")
    with pytest.raises(QueryError, match="WHERE age is not a condition"):
        plan_of(ag.Count(), relation=Filter(scan, c("age")))
    unlike = PublicJoin(
        scan, Scan("places", "places"), ((c("age"), ex.Column("places", "city")),), False
    )
    with pytest.raises(QueryError, match="age = city: mixes integer and text"):
        plan_of(ag.Count(), relation=unlike)
    numbers = PublicJoin(
        scan, Scan("places", "places"), ((c("age"), ex.Column("places", "id")),), False
    )
    assert plan_of(ag.Count(), relation=numbers).job.measurements == (Rows(),)


def test_variance_parts():
    """Total, square about its middle, and count."""
    plan = plan_of(ag.Variance(c("age"), sample=False))
    recipe = plan.recipes[0]
    assert isinstance(recipe, VarianceRecipe)
    square = plan.job.measurements[recipe.square]
    assert (square.centre, square.square, square.square_centre) == (55, True, 55 * 55 // 2)
    assert square.parts == 512**2
    assert square.ends == (-1512 * 512**2, 1513 * 512**2)
    assert recipe.sample is False

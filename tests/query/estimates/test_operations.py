"""Operations on released values: whatever lies in the operands' intervals stays in the result's.

The reference is plain Python on one group: every operation on points, with None for NULL. Trees are
drawn at random, each leaf with an interval and a true point inside of it, or NULL where it may be.
"""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dither.errors import QueryError
from dither.plan.expressions import Column
from dither.plan.job import Distinct, Rows, Total, Values
from dither.plan.lowering.calculations import combined, of_rows
from dither.plan.lowering.recipes import (
    Applied,
    KeyRead,
    Known,
    Linear,
    QuantileRecipe,
    Ranked,
    RatioRecipe,
    claims,
)
from dither.plan.released import COMPARISONS, Constant, apply
from dither.plan.schema import Kind
from dither.query.estimates import _calculated, _operations
from dither.query.estimates._calculated import Calculation, post_columns
from dither.query.estimates._operations import places, possible_places
from dither.query.estimates._values import GroupEstimates

# --- the reference ------------------------------------------------------------------------------


BEYOND: list[str] = []
"""Operations whose last result no double holds."""


def reference(op, xs):
    """An operation on points; None is NULL."""
    if op == "CASE":
        for condition, value in zip(xs[:-1:2], xs[1:-1:2], strict=True):
            if condition:
                return value
        return xs[-1]
    if op == "COALESCE":
        return next((x for x in xs if x is not None), None)
    if op == "IS NULL":
        return xs[0] is None
    if op in ("LEAST", "GREATEST"):
        known = [x for x in xs if x is not None]
        return (min if op == "LEAST" else max)(known) if known else None
    if op == "AND":
        return False if any(x is not None and not x for x in xs) else None if None in xs else True
    if op == "OR":
        return True if any(xs) else None if None in xs else False
    if None in xs:
        return None
    x, *rest = xs
    if op == "CLIP":
        return min(max(x, rest[0]), rest[1])
    if op == "BESSEL":
        return max(x, 2) / (max(x, 2) - 1)
    try:
        match op:
            case "+":
                return x + rest[0]
            case "-":
                return x - rest[0]
            case "*":
                return x * rest[0]
            case "/":
                return None if rest[0] == 0 else x / rest[0]
            case "NOT":
                return not x
            case "ABS":
                return abs(x)
            case "FLOOR" | "CEIL":
                return float((math.floor if op == "FLOOR" else math.ceil)(x))
            case "SQRT":
                return math.sqrt(x)
            case "LN" | "LOG10" | "LOG2":
                return {"LN": math.log, "LOG10": math.log10, "LOG2": math.log2}[op](x)
            case "EXP":
                return math.exp(x)
            case "ROUND":
                scale = F(10) ** (rest[0] if rest else 0)
                away = math.floor(abs(F(x)) * scale + F(1, 2)) / scale
                return math.copysign(float(away), x)
            case "POWER":
                found = x ** rest[0]
                return None if isinstance(found, complex) else found
    except OverflowError:
        BEYOND.append(op)
        return None
    except (ValueError, ZeroDivisionError):
        return None
    return {
        "=": x == rest[0], "<>": x != rest[0], "<": x < rest[0],
        "<=": x <= rest[0], ">": x > rest[0], ">=": x >= rest[0],
    }[op]  # fmt: skip


def true_value(recipe, points):
    """The value of a tree where its leaves have these values."""
    if isinstance(recipe, Known):
        value = recipe.constant.value
        return float(value) if isinstance(value, F) else value
    if isinstance(recipe, Applied):
        xs = [true_value(x, points) for x in recipe.operands]
        return reference(recipe.op, xs)
    return points[recipe]


# --- trees --------------------------------------------------------------------------------------

ENDS = st.one_of(
    st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.5, 3.0, 100.0]),
    st.floats(-1e6, 1e6, allow_nan=False),
)


def leaf(i, nullable):
    """A recipe that stands for an aggregate."""
    if not nullable:
        return Linear(((i, F(1)),))
    one = F(1)
    return QuantileRecipe(i, None, F(1, 2), one, one, one, one, 1, exact=True)


@st.composite
def worlds(draw):
    """Leaves with an interval, a noisy value and a true one."""
    found = {}
    for i in range(3):
        low, high = sorted((draw(ENDS), draw(ENDS)))
        nullable = draw(st.booleans())
        share = draw(st.sampled_from([0.0, 0.3, 1.0]))
        point = min(max(low + share * (high - low), low), high)
        true = None if nullable and draw(st.booleans()) else point
        noisy = draw(st.sampled_from([low, high, (low + high) / 2, math.nan]))
        wide = draw(st.sampled_from([False, False, False, True]))
        ends = (-math.inf, math.inf) if wide else (low, high)
        found[leaf(i, nullable)] = (noisy, ends, true)
    return found


CONSTANTS = [None, 0, 1, -1, 2, F(1, 2), 100, F(-7, 4)]


@st.composite
def numbers(draw, leaves, depth):
    """A tree that is a number."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        constants = st.sampled_from(CONSTANTS).map(lambda v: Known(Constant(v)))
        return draw(st.sampled_from(leaves) | constants)
    inner = numbers(leaves, depth - 1)
    signs = ("+", "-", "*", "/", "LEAST", "GREATEST", "COALESCE", "CASE", "ROUND", "POWER")
    functions = ("ABS", "FLOOR", "CEIL", "SQRT", "LN", "LOG10", "LOG2", "EXP", "BESSEL", "CLIP")
    op = draw(st.sampled_from((*signs, *functions)))
    if op in ("+", "-", "*", "/"):
        return Applied(op, (draw(inner), draw(inner)))
    if op in ("LEAST", "GREATEST", "COALESCE"):
        return Applied(op, tuple(draw(st.lists(inner, min_size=1, max_size=3))))
    if op == "CASE":
        return Applied(op, (draw(truths(leaves, depth - 1)), draw(inner), draw(inner)))
    if op in ("ROUND", "POWER"):
        options = [-2, -1, 0, 1, 2, 3] + ([F(1, 2), F(-1, 2)] if op == "POWER" else [])
        return Applied(op, (draw(inner), Known(Constant(draw(st.sampled_from(options))))))
    if op == "CLIP":
        return Applied(op, (draw(inner), Known(Constant(-1)), Known(Constant(F(1, 2)))))
    return Applied(op, (draw(inner),))


@st.composite
def truths(draw, leaves, depth):
    """A tree that is true or false."""
    inner = numbers(leaves, max(depth - 1, 0))
    if depth > 0 and draw(st.booleans()):
        below = truths(leaves, depth - 1)
        op = draw(st.sampled_from(["AND", "OR", "NOT", "CASE"]))
        size = {"NOT": 1, "CASE": 3}.get(op, 2)
        return Applied(op, tuple(draw(below) for _ in range(size)))
    op = draw(st.sampled_from([*COMPARISONS, "IS NULL"]))
    return Applied(op, tuple(draw(inner) for _ in range(1 if op == "IS NULL" else 2)))


def calculated(world, recipe):
    """What is released of a tree in one group."""

    def estimates(one, confidence):
        noisy, (low, high), _ = world[one]
        return GroupEstimates(*(np.array([v]) for v in (noisy, low, high)))

    return Calculation(1, (), estimates, np.arange(1))(recipe, 0.9)


def check_number(world, recipe):
    """The released value is the reference's at the noisy values, and the true one is held."""
    post = calculated(world, recipe)
    true = true_value(recipe, {k: v[2] for k, v in world.items()})
    noisy = true_value(recipe, {k: None if math.isnan(v[0]) else v[0] for k, v in world.items()})
    if isinstance(noisy, complex):
        return
    if noisy is None:
        assert not np.isfinite(post.value[0])
    elif math.isfinite(noisy) and math.isfinite(post.value[0]):
        assert post.value[0] == pytest.approx(noisy, rel=1e-9, abs=1e-9)
    if true is None:
        assert post.null[0] or not math.isfinite(post.upper[0]) or not math.isfinite(post.lower[0])
    elif math.isfinite(true):
        # What the reference itself rounds by.
        slack = 1e-12 * abs(true)
        assert post.lower[0] - slack <= true <= post.upper[0] + slack, (recipe, true, post)


@settings(max_examples=600, deadline=None)
@given(st.data(), worlds())
def test_what_lies_in_the_box_stays_in_the_interval(data, world):
    """Every operation on numbers, to three deep, with NULL and with unbounded operands."""
    check_number(world, data.draw(numbers(list(world), 3)))


@settings(max_examples=300, deadline=None)
@given(st.data(), worlds())
def test_what_may_be_true_is_not_ruled_out(data, world):
    """Comparisons and conditions: surely true is true, and what is true is possible."""
    recipe = data.draw(truths(list(world), 3))
    post = calculated(world, recipe)
    BEYOND.clear()
    true = true_value(recipe, {k: v[2] for k, v in world.items()})
    # What no double holds is known all the same to differ from what one does.
    assume(not BEYOND)
    surely = post.lower[0] == 1 and not post.null[0]
    if true:
        assert post.upper[0] == 1
    else:
        assert not surely
    if true is None:
        assert post.null[0]


def careless_quotient(op, a, b):
    """Division by an interval as if it never held 0."""
    if op != "/":
        return whole(op, a, b)
    ends = [x / y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    return _operations.PostProcessed(
        a.value / b.value, np.min(ends, axis=0), np.max(ends, axis=0), a.null
    )


def careless_case(xs):
    """CASE as if the noisy condition were the true one."""
    chosen = np.array([bool(xs[0].value[0] == 1)])
    return _operations.PostProcessed(*(np.where(chosen, getattr(xs[1], f), getattr(xs[2], f))
                              for f in ("value", "lower", "upper", "null")))  # fmt: skip


def careless_bounds(x):
    """|x| as if it were rising."""
    return _operations.PostProcessed(np.abs(x.value), np.abs(x.lower), np.abs(x.upper), x.null)


whole = _operations._arithmetic


@pytest.mark.parametrize(
    ("name", "mutant", "recipe"),
    [
        ("_arithmetic", careless_quotient, ("/", "a", "b")),
        ("_case", careless_case, ("CASE", ("<", "a", "b"), "a", "b")),
        ("_absolute", careless_bounds, ("ABS", "b")),
    ],
)
def test_a_careless_operation_is_caught(monkeypatch, name, mutant, recipe):
    """The same check refutes an operation that is planted wrong."""
    a, b = leaf(0, nullable=False), leaf(1, nullable=False)
    world = {a: (2.0, (1.0, 3.0), 3.0), b: (2.5, (-1.0, 2.5), -0.5)}

    def tree(x):
        return {"a": a, "b": b}[x] if isinstance(x, str) else Applied(x[0], tuple(map(tree, x[1:])))

    found = tree(recipe)
    check_number(world, found)
    monkeypatch.setattr(_operations, name, mutant)
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        check_number(world, found)


def test_the_error_is_shared_among_the_intervals():
    """k aggregates at 1 - (1 - c)/k each; a rank among G groups shares it among all of them."""
    asked = []

    def estimates(one, confidence):
        asked.append((one, round(1 - confidence, 12)))
        return GroupEstimates(*(np.arange(4.0) + d for d in (0, -1, 1)))

    a, b, c = (leaf(i, nullable=False) for i in range(3))
    whole = Applied("+", (Applied("*", (a, b)), Applied("EXP", (a,))))
    calculation = Calculation(4, (), estimates, np.arange(4))
    calculation(whole, 0.9)
    assert claims(whole) == (a, b)
    assert asked == [(a, 0.05), (b, 0.05)]
    asked.clear()
    ranked = Ranked("RANK", ((Applied("+", (a, b)), True),), ())
    calculation(Applied("+", (ranked, c)), 0.9)
    assert dict(asked) == {a: 0.05 / 8, b: 0.05 / 8, c: 0.05}


# --- ranks --------------------------------------------------------------------------------------


def rank_of(word, values, row):
    """A rank by its definition."""
    above = [v for v in values if v < values[row]]
    return 1 + (len(set(above)) if word == "DENSE_RANK" else len(above))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.sampled_from([0, 1])), min_size=1),
    st.sampled_from(["RANK", "DENSE_RANK"]),
)
def test_ranks_hold_the_true_one(found, word):
    """Whatever the true values inside their intervals are; and the released one is SQL's."""
    low = np.array([float(a) for a, _, _ in found])
    high = low + np.array([float(w) for _, w, _ in found])
    never = np.zeros(len(found), dtype=bool)
    least, most = possible_places(word, low, high, never, tied=False)
    for share in (0, 1):
        true = [(h if e == share else a) for a, h, (_, _, e) in zip(low, high, found, strict=True)]
        ranks = [rank_of(word, true, i) for i in range(len(true))]
        assert all(a <= r <= b for a, r, b in zip(least, ranks, most, strict=True))
        assert places(word, [np.array(true)]).tolist() == ranks
    numbers_ = places("ROW_NUMBER", [low])
    assert sorted(numbers_) == list(range(1, len(found) + 1))
    least, most = possible_places("ROW_NUMBER", low, high, never, tied=True)
    assert (least <= numbers_).all()
    assert (numbers_ <= most).all()


# --- recipes and columns ------------------------------------------------------------------------


def test_sums_of_counts_are_one_recipe():
    """Linear where that is exact, a ratio of two, and nothing that could lose an operand."""
    a, b = Linear(((0, F(1)),), F(0)), Linear(((1, F(2)),), F(0))
    two, none = Known(Constant(2)), Known(Constant(None))
    assert combined("+", (a, two)) == Linear(((0, F(1)),), F(2), F(2))
    assert combined("-", (two, a)) == Linear(((0, F(-1)),), None, F(2), F(2))
    assert combined("-", (a, b)) == Linear(((0, F(1)), (1, F(-2))), None)
    assert combined("*", (two, b)) == Linear(((1, F(4)),), F(0))
    assert combined("/", (b, two)) == Linear(((1, F(1)),), F(0))
    ratio = combined("/", (combined("*", (Known(Constant(100)), a)), b))
    assert ratio.numerator == Linear(((0, F(100)),), F(0))
    assert ratio.lower == 0
    assert combined("/", (two, combined("-", (a, b)))).lower is None
    for op, xs in (("*", (a, b)), ("+", (a, none))):
        assert combined(op, xs) == Applied(op, xs)
    for op, xs in (
        ("-", (a, a)),
        ("/", (a, a)),
        ("+", (a, combined("*", (Known(Constant(-1)), a)))),
    ):
        with pytest.raises(QueryError, match="whatever the rows hold"):
            combined(op, xs)
    with pytest.raises(QueryError, match="over 0 has no value"):
        combined("/", (a, Known(Constant(0))))
    assert combined("*", (a, Known(Constant(True)))) == Applied("*", (a, Known(Constant(True))))


def test_both_ends_of_what_is_possible_follow():
    """Of differences and multiples, also below 0, and of nothing that has no such end."""
    a, b = Linear(((0, F(1)),), F(0), upper=F(4)), Linear(((1, F(2)),), F(1), upper=F(3))
    two, free = Known(Constant(2)), Linear(((2, F(1)),), F(0))
    for op, xs, ends in (
        ("+", (a, b), (1, 7)),
        ("-", (a, b), (-3, 3)),
        ("-", (two, a), (-2, 2)),
        ("*", (a, Known(Constant(-3))), (-12, 0)),
        ("/", (b, two), (F(1, 2), F(3, 2))),
        ("+", (a, free), (0, None)),
        ("-", (a, free), (None, 4)),
        ("-", (free, a), (-4, None)),
    ):
        found = combined(op, xs)
        assert (found.lower, found.upper) == ends, (op, xs)


def test_a_share_of_the_rows_ends_at_all_of_them():
    """Of counts alone: of a sum, of what is not the rows, and after a constant nothing is known."""
    x = Column("t", "x")
    measured = (Rows(), Values(x), Distinct(x), Total(x, F(1), 0, 9))
    rows, values, distinct, total = (Linear(((i, F(1)),), F(0)) for i in range(4))
    two = Known(Constant(2))
    for over, under, most in (
        (values, rows, 1),
        (rows, rows, 1),
        (combined("+", (values, distinct)), rows, 2),
        (combined("*", (two, values)), rows, 2),
        (values, combined("*", (two, rows)), F(1, 2)),
        (total, rows, None),
        (values, distinct, None),
        (combined("+", (values, two)), rows, None),
        (combined("-", (values, distinct)), rows, None),
        (values, combined("+", (rows, two)), None),
        (values, combined("+", (rows, distinct)), None),
    ):
        found = of_rows(RatioRecipe(over, under, F(0)), measured)
        assert found.upper == most
    assert of_rows(values, measured) == values
    assert of_rows(RatioRecipe(values, rows, F(0), F(1, 3)), measured).upper == F(1, 3)


def test_an_end_that_was_not_rounded_stays():
    """What is left of a whole share is 0, and no less; a product may have been rounded to 0."""

    def post(low, high):
        ends = np.array([low]), np.array([high])
        return _operations.PostProcessed(ends[0], *ends, np.array([False]))

    def ends(op, *xs):
        with np.errstate(all="ignore"):
            found = _operations.applied(op, list(xs))
        return found.lower[0], found.upper[0]

    share, one = post(0.0, 1.0), post(1.0, 1.0)
    assert ends("-", one, share)[0] == 0 == ends("-", share, one)[1]
    assert ends("*", post(100.0, 100.0), share)[0] == 0
    assert ends("/", share, post(1.0, math.inf))[0] == 0
    assert ends("SQRT", share)[0] == 0 == ends("LN", post(1.0, 2.0))[0]
    small = post(-1e-200, 1e-200)
    low, high = ends("*", small, post(1e-200, 1e-200))
    assert low < 0 < high
    assert ends("POWER", small, post(3.0, 3.0))[0] < 0
    assert ends("EXP", post(-1000.0, -1000.0))[1] > 0


def test_operations_refuse_what_they_are_not_for():
    """Digits that are not constant, and powers that nobody needs."""
    one = Constant(1)
    for op, second in (("ROUND", F(1, 2)), ("ROUND", 16), ("POWER", 65), ("POWER", True)):
        with pytest.raises(QueryError, match="second operand"):
            apply(op, one, Constant(second))
    with pytest.raises(QueryError, match="too few or too many"):
        apply("SQRT", one, one)


def test_columns_of_every_kind():
    """Numbers, truth values and texts, with what is unknown as None."""
    post = _operations.PostProcessed(
        np.array([1.0, math.nan, 3.0]),
        np.array([0.0, math.inf, 3.0]),
        np.array([math.inf, -math.inf, 3.0]),
        np.array([False, True, False]),
    )
    kinds = {k: post_columns(("v", "l", "u"), post, k) for k in (Kind.REAL, Kind.INTEGER)}
    assert [c["values"] for c in kinds[Kind.REAL]] == [[1, None, 3], [0, None, 3], ["inf", None, 3]]
    assert {c["kind"] for c in kinds[Kind.INTEGER]} == {"real"}
    truth = _operations.PostProcessed(
        *(np.array(v) for v in ([1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [False, False]))
    )
    shown = post_columns(("v", "l", "u"), truth, Kind.BOOLEAN)
    assert [c["values"] for c in shown] == [[True, False], [False, False], [True, False]]
    recipe = Applied("CASE", (Applied("<", (leaf(0, nullable=False), Known(Constant(0)))),
                              Known(Constant("a")), KeyRead(0)))  # fmt: skip
    ends = GroupEstimates(np.array([-1.0, 1.0]), np.array([-2.0, 0.5]), np.array([3.0, 2.0]))
    found = Calculation(2, [["x", "y"]], lambda *_: ends, np.arange(2))(recipe, 0.9)
    texts = post_columns(("v", "l", "u"), found, Kind.TEXT)
    assert [c["values"] for c in texts] == [["a", "y"], [None, "y"], [None, "y"]]
    assert _calculated.encoded(-math.inf) == "-inf"

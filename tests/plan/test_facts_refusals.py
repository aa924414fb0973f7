"""What makes no sense is refused by name, with the fix."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction as F

import pytest

from dither.errors import BoundsError, QueryError, UnknownNameError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.facts.values import LONGEST_LIST, Facts, Scope, infer, listed_values, why_unbounded
from dither.plan.schema import ColumnFacts, Kind, Table

TABLE = Table(
    "visits",
    {
        "age": ColumnFacts("age", Kind.INTEGER, F(0), F(110)),
        "big": ColumnFacts("big", Kind.INTEGER, F(0), F(2**62)),
        "huge": ColumnFacts("huge", Kind.REAL, F(0), F(10) ** 200),
        "cost": ColumnFacts("cost", Kind.REAL),
        "region": ColumnFacts("region", Kind.TEXT, values=("north", "south")),
        "day": ColumnFacts("day", Kind.DATE),
        "seen": ColumnFacts("seen", Kind.TIMESTAMP),
        "smoker": ColumnFacts("smoker", Kind.BOOLEAN),
    },
)
SCOPE = Scope({"visits": (TABLE, False)})


def c(name: str) -> ex.Column:
    return ex.Column("visits", name)


ONE = ex.Literal(1)


@pytest.mark.parametrize(
    ("node", "error", "words"),
    [
        (c("ages"), UnknownNameError, "unknown column 'ages'.*did you mean 'age'"),
        (ex.Column("visit", "age"), UnknownNameError, "unknown table 'visit'.*'visits'"),
        (ex.Arithmetic("+", c("region"), ONE), QueryError, "region is not a number"),
        (ex.Arithmetic("+", c("age"), ex.Literal(None)), QueryError, "NULL is not a number"),
        (ex.Arithmetic("//", c("age"), ex.Literal(F(1, 2))), QueryError, "FLOOR"),
        (ex.Literal(2**63), BoundsError, "not a whole number of 64 bits"),
        (ex.Literal(-(2**63) - 1), BoundsError, "not a whole number of 64 bits"),
        (ex.Clamp(c("cost"), F(0), F(10) ** 400), BoundsError, "reaches beyond ±1e300"),
        (ex.Clamp(c("age"), F(1, 2), F(9)), BoundsError, "whole bounds"),
        (ex.Bin(c("region"), (F(0), F(1))), QueryError, "not a number"),
        (ex.Compare("=", c("region"), c("age")), QueryError, "integer and text; .* or CAST one"),
        (
            ex.Compare("=", c("smoker"), c("age")),
            QueryError,
            "boolean and integer; write b or NOT b",
        ),
        (
            ex.Compare("=", c("region"), ex.Literal("nort")),
            QueryError,
            "'nort' is not a declared value of 'region'; did you mean 'north'",
        ),
        (ex.InList(c("region"), ("north", "zzz")), QueryError, "'zzz' is not a declared value"),
        (ex.And((c("age"), c("smoker"))), QueryError, "age is not a condition"),
        (ex.Not(c("age")), QueryError, "age is not a condition"),
        (ex.Case(((c("age"), ONE),), ONE), QueryError, "age is not a condition"),
        (ex.Case(((c("smoker"), ONE),), ex.Literal("a")), QueryError, "mixes integer and text"),
        (ex.Greatest((c("day"),)), QueryError, "not a number"),
        (ex.DatePart("hour", c("day")), QueryError, "a date has no hour"),
        (ex.DatePart("year", c("age")), QueryError, "not a date"),
        (ex.Lower(c("age")), QueryError, "age is not text"),
        (ex.Expression(), UnsupportedError, "not an expression"),
    ],
)
def test_nonsense_is_refused_by_name(node, error, words):
    """The message names the part and what would work."""
    with pytest.raises(error, match=words):
        infer(node, SCOPE)


@pytest.mark.parametrize(
    ("born", "error", "words"),
    [
        (lambda: ex.Arithmetic("^", c("age"), ONE), UnsupportedError, r"operator '\^'"),
        (lambda: ex.Compare("~", c("age"), ONE), UnsupportedError, "operator '~'"),
        (lambda: ex.InList(c("age"), ()), QueryError, "at least one value"),
        (lambda: ex.Case((), ONE), QueryError, "at least one WHEN"),
        (lambda: ex.Coalesce(()), QueryError, "COALESCE needs at least one"),
        (lambda: ex.Least(()), QueryError, "LEAST needs at least one"),
        (lambda: ex.Greatest(()), QueryError, "GREATEST needs at least one"),
        (lambda: ex.Clamp(c("cost"), F(2), F(1)), QueryError, "lower bound of CLAMP is above"),
        (lambda: ex.Bin(c("age"), (F(0),)), QueryError, "at least two edges"),
        (lambda: ex.Bin(c("age"), (F(1), F(1))), QueryError, "which increase"),
        (lambda: ex.DatePart("yer", c("day")), QueryError, "date part 'yer'; did you mean 'year'"),
        (
            lambda: ex.DateTruncate("decade", c("seen")),
            QueryError,
            "unknown truncation 'decade'.*known",
        ),
        (lambda: ex.Call("sqr", (c("age"),)), QueryError, "did you mean 'sqrt'"),
        (lambda: ex.Call("sqrt", ()), QueryError, "SQRT takes 1 arguments"),
        (lambda: ex.Call("sqrt", (c("age"),), (1,)), QueryError, "takes no constants"),
        (lambda: ex.Call("round", (c("age"),), (16,)), QueryError, "from -15 to 15"),
        (lambda: ex.Call("like", (c("region"),), ("a\\",)), QueryError, "ends with the character"),
        (lambda: ex.Call("interval", (c("day"),), (10**9, "day")), QueryError, "longer than"),
        (lambda: ex.Call("cast", (c("age"),), ("blob",)), QueryError, "needs a type"),
        (lambda: ex.Substring(c("region"), 0, 2), QueryError, "starts at 1"),
        (lambda: ex.Substring(c("region"), 1, -1), QueryError, "length of 0 or more"),
    ],
)
def test_a_node_refuses_at_birth_what_has_no_shape(born, error, words):
    """No tree can hold it, no matter who builds the tree."""
    with pytest.raises(error, match=words):
        born()


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (ex.Arithmetic("+", c("cost"), ONE), r"declare bounds = \[lower, upper\] of cost"),
        (ex.Floor(ex.Arithmetic("*", c("cost"), c("age"))), "of cost in the policy, learn"),
        (ex.Absolute(c("cost")), "of cost in the policy"),
        (ex.Arithmetic("+", c("big"), c("big")), r"big \+ big can reach beyond 2\^62"),
        (ex.Arithmetic("*", c("huge"), c("huge")), "beyond 1e300"),
        (ex.Arithmetic("/", ONE, c("huge")), "divisor huge can be as near to 0"),
        (ex.DatePart("year", c("day")), "declare bounds of day"),
        (ex.Coalesce((c("cost"), ONE)), "of cost in the policy"),
    ],
)
def test_arithmetic_needs_no_bounds_until_it_is_summed(node, words):
    """Its facts have none, and NULL is possible; what lacks them is named for who needs them."""
    facts = infer(node, SCOPE)
    assert facts.range is None
    assert facts.nullable or isinstance(node, ex.Coalesce)
    assert re.search(words, why_unbounded(node, SCOPE))


def test_unbounded_dates_have_parts_and_periods():
    """Without bounds a month is still known, a year is not."""
    assert infer(ex.DatePart("month", c("day")), SCOPE).range == (1, 12)
    assert infer(ex.DatePart("year", c("day")), SCOPE).range is None
    assert infer(ex.DatePart("hour", c("seen")), SCOPE).range == (0, 23)
    assert infer(ex.DateTruncate("month", c("day")), SCOPE).domain is None


def test_only_short_ranges_are_listed():
    """A list of keys follows from bounds up to 4096 values."""
    assert len(listed_values(Facts(Kind.INTEGER, F(1), F(LONGEST_LIST))) or ()) == LONGEST_LIST
    assert listed_values(Facts(Kind.INTEGER, F(0), F(LONGEST_LIST))) is None
    hundreds = ex.Arithmetic(
        "*", ex.Floor(ex.Arithmetic("/", c("age"), ex.Literal(100))), ex.Literal(100)
    )
    assert listed_values(infer(hundreds, SCOPE)) == (0, 100)
    assert listed_values(Facts(Kind.INTEGER, F(-25), F(25), step=F(10))) == (-20, -10, 0, 10, 20)
    first = dt.date(2020, 1, 1)
    days = Facts(Kind.DATE, first, first + dt.timedelta(days=LONGEST_LIST - 1))
    assert len(listed_values(days) or ()) == LONGEST_LIST
    assert listed_values(Facts(Kind.DATE, first, first + dt.timedelta(days=LONGEST_LIST))) is None
    assert listed_values(Facts(Kind.BOOLEAN)) == (False, True)
    assert listed_values(Facts(Kind.REAL, F(0), F(1))) is None


def test_letters_outside_ascii_are_not_listed():
    """Case changes of other letters differ between engines, so the keys are not known."""
    table = Table("t", {"w": ColumnFacts("w", Kind.TEXT, values=("straße",))})
    scope = Scope({"t": (table, False)})
    assert infer(ex.Upper(ex.Column("t", "w")), scope).domain is None
    assert infer(ex.Upper(c("region")), SCOPE).domain == ("NORTH", "SOUTH")

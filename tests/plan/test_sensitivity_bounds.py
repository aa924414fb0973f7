"""Sensitivities against every pair of neighbours that small limits allow."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product

import pytest

from dither.plan.expressions import Column
from dither.plan.job import (
    Leaves,
    Rows,
    Sides,
    Total,
    UnitProducts,
    Units,
    UnitSizeHistogram,
    Values,
)
from dither.plan.lowering.sensitivity import sensitivity

X = Column("t", "x")


def vectors(measurement, groups, max_groups, max_rows):
    """Every vector over groups (and leaves) that one unit can contribute."""
    match measurement:
        case Units():
            one = [(0,), (1,)]
        case Rows() | Values():
            one = [(n,) for n in range(max_rows + 1)]
        case Total():
            low, high = measurement.ends
            one = [(n,) for n in range(min(0, low * max_rows), max(0, high * max_rows) + 1)]
        case UnitProducts(left=left, right=right, centre=centre):
            ones, others = (
                range(min(0, t.ends[0] * max_rows), max(0, t.ends[1] * max_rows) + 1)
                for t in (left, right)
            )
            pairs = zip(ones, ones, strict=True) if left == right else product(ones, others)
            one = sorted({(0,), *((v * w - centre,) for v, w in pairs)})
        case Leaves():
            most = max_rows * measurement.parts
            ranges = [range(most + 1)] * measurement.bins
            one = [v for v in product(*ranges) if sum(v) <= most]
    for parts in product(one, repeat=groups):
        if sum(any(part) for part in parts) <= max_groups:
            yield tuple(n for part in parts for n in part)


MEASUREMENTS = [
    Units(),
    Rows(),
    Values(X),
    Total(X, F(1), 0, 2),
    Total(X, F(1), -2, -1),
    Total(X, F(1), -1, 2),
    Total(X, F(1), 0, 3, centre=1),
    Total(X, F(1), 0, 2, centre=1, parts=3),
    Total(X, F(1), -1, 1, square=True, square_centre=1),
    UnitProducts(Total(X, F(1), -1, 1), Total(X, F(1), -1, 1), 1),
    UnitProducts(Total(X, F(1), -1, 2), Total(X, F(1), -1, 2)),
    UnitProducts(Total(X, F(1), -1, 1), Total(X, F(1), -2, 2)),
    Leaves(X, F(1), 0, 1, 1, 2),
    Leaves(X, F(1), 0, 1, 1, 2, parts=2),
]


@pytest.mark.parametrize("measurement", MEASUREMENTS)
@pytest.mark.parametrize("replace_one", [False, True])
@pytest.mark.parametrize(
    ("groups", "max_groups", "max_rows"), [(1, 1, 1), (1, 1, 2), (2, 1, 2), (3, 2, 1)]
)
def test_the_claim_is_the_largest_difference(
    measurement, replace_one, groups, max_groups, max_rows
):
    """No pair of neighbours differs by more, in either norm, and l1 is met."""
    claimed = sensitivity(
        measurement,
        max_groups=max_groups,
        max_rows=max_rows,
        replace_one=replace_one,
        one_group=groups == 1,
    )
    found = list(vectors(measurement, groups, max_groups, max_rows))
    nothing = (0,) * len(found[0])
    others = found if replace_one else [nothing]
    pairs = list(product(found, others))
    l1 = max(sum(abs(a - b) for a, b in zip(u, v, strict=True)) for u, v in pairs)
    l2 = max(sum((a - b) ** 2 for a, b in zip(u, v, strict=True)) for u, v in pairs)
    assert l1 <= claimed.l1
    assert l2 <= claimed.l2_squared
    if not replace_one:
        assert (l1, l2) == (claimed.l1, claimed.l2_squared)
    elif 2 * max_groups <= groups:  # u and v may miss each other
        assert l1 == claimed.l1


def test_ends_of_a_total():
    """The smallest and largest integers that a row contributes, squares and centres included."""
    assert Total(X, F(1), 0, 110, centre=55).ends == (-55, 55)
    assert Total(X, F(1), -3, 2, square=True, square_centre=4).ends == (-4, 5)
    assert Total(X, F(1), 2, 3, square=True).ends == (4, 9)
    assert Total(X, F(1), -7, -2).magnitude == 7
    assert Total(X, F(1), 2, 9).width == 9
    assert Total(X, F(1), -1, 9).width == 10


def test_the_outside_of_a_histogram_moves_as_the_histogram_does():
    """Both of a replaced unit's cells change, also where there is a single group."""
    leaves = Leaves(X, F(1), 0, 9, 1, 10, parts=4)
    for measurement in (leaves, UnitSizeHistogram((), False, (1, 2, 4))):
        for limits in product((1, 3), (1, 5), (False, True), (False, True)):
            named = zip(("max_groups", "max_rows", "replace_one", "one_group"), limits, strict=True)
            given = dict(named)
            assert sensitivity(Sides(measurement), **given) == sensitivity(measurement, **given)
    one = sensitivity(Sides(leaves), max_groups=1, max_rows=3, replace_one=True, one_group=True)
    assert (one.l1, one.l2_squared) == (24, 288)

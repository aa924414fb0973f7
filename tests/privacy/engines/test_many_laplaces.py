"""The closed form of several equal Laplaces, by adding one more and integrating over its loss."""

import math

import mpmath
import pytest

from dither import privacy
from dither.privacy._side import side
from dither.privacy.engines.balls.closed import LaplacesProfile
from dither.privacy.engines.closed import LaplaceProfile
from dither.privacy.engines.contour import Contour


def middle(profile, epsilon):
    low, high = profile.bounds(float(epsilon))
    return mpmath.exp((mpmath.mpf(low) + mpmath.mpf(high)) / 2) if high > -math.inf else 0


def one_more(e, count, epsilon):
    """delta of count + 1 from delta of count, for atoms at e and -e and the density between."""
    profile = LaplacesProfile(e, count, 1.0)
    whole = middle(profile, epsilon - e) / 2 + middle(profile, epsilon + e) * math.exp(-e) / 2
    cuts = {-e, e, *(epsilon - (count - 2 * j) * e for j in range(count + 1))}
    cuts = sorted(x for x in cuts if -e <= x <= e)
    return whole + mpmath.quad(
        lambda x: middle(profile, epsilon - x) * mpmath.exp((x - e) / 2) / 4, cuts
    )


@pytest.mark.parametrize("e", [0.05, 0.7, 3.0])
def test_one_is_the_plain_closed_form(e):
    """Of one loss, at every sign of epsilon."""
    for part in (-0.9, -0.3, 0.0, 0.2, 0.8, 0.999):
        plain, found = (
            LaplaceProfile(e).bounds(part * e),
            LaplacesProfile(e, 1, 1.0).bounds(part * e),
        )
        assert plain[0] <= found[1]
        assert found[0] <= plain[1]
        assert found[1] - found[0] <= 1e-14 * (1 + abs(found[1]))


@pytest.mark.parametrize(("e", "count"), [(0.7, 1), (0.05, 2), (3.0, 2), (0.7, 5), (1.3, 16)])
def test_one_more_is_an_integral_over_its_loss(e, count):
    """So that every count follows from one; a residue left out would show in the next count."""
    with mpmath.workdps(15):
        for part in (0.0, 0.13, 0.5, 0.9):
            epsilon = part * (count + 1) * e
            truth = one_more(e, count, epsilon)
            low, high = LaplacesProfile(e, count + 1, 1.0).bounds(epsilon)
            assert math.exp(low) <= truth * (1 + 1e-9)
            assert truth <= math.exp(high) * (1 + 1e-9)
            assert high - low <= 1e-12 * (1 + abs(high))


@pytest.mark.parametrize("count", [2, 10, 30])
def test_within_the_contour(count):
    """A contour quadrature in doubles holds the same numbers, and the whole loss answers by it."""
    loss = count * privacy.laplace(2.0)
    terms = side(loss.parts, True).upper_terms
    for epsilon in (0.3, 1.0, 0.2 * count):
        contour = Contour(terms, log_delta=None, epsilon=epsilon, smoothed=True)
        low, high = contour.bounds(epsilon) if contour.certified else (-math.inf, 0.0)
        found = LaplacesProfile(0.5, count, 1.0).bounds(epsilon)
        assert low <= found[1]
        assert found[0] <= high
    found = loss.epsilon(1e-6)
    assert found.method == "closed form (Laplace)"
    assert found.width <= 1e-11 * found.upper


def test_trade_off():
    """The dual of the profile is as narrow as the profile."""
    found = (10 * privacy.laplace(2)).tpr(0.1)
    assert found.lower <= 0.575913763322 <= found.upper
    assert found.width <= 1e-10


def test_at_its_top_nothing_is_left():
    """Beyond the sum of all epsilons delta is 0, and just below it is positive."""
    profile = LaplacesProfile(0.25, 4, 1.0)
    assert profile.bounds(1.0) == (-math.inf, -math.inf)
    low, high = profile.bounds(math.nextafter(1.0, 0.0))
    # 2^-4·(1 - e^-x) for x = 2^-53.
    assert low <= math.log(2.0**-57) <= high
    assert high - low <= 1e-9

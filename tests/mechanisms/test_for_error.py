"""From a wanted error back to a mechanism: it is met, and with a little less epsilon it is not."""

from fractions import Fraction as F

import pytest

from dither.errors import ArgumentError
from dither.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    MaxNorm,
    Peeling,
    ProposeTestRelease,
    SmoothMedian,
    Staircase,
    TopK,
    Tulap,
)

LESS = F(97, 100)
SMALL = F(1, 10**6)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("width", [1, 20, 3000])
def test_noises(width, confidence):
    """Laplace and Gaussian: the largest parameter of three digits with the half-width."""
    laplace = DiscreteLaplace.for_half_width(width, confidence=confidence)
    assert laplace.half_width(confidence) <= width
    assert DiscreteLaplace(laplace.scale * F(102, 100)).half_width(confidence) > width
    gaussian = DiscreteGaussian.for_half_width(width, confidence=confidence)
    assert gaussian.half_width(confidence) <= width
    assert DiscreteGaussian(gaussian.sigma2 * F(102, 100)).half_width(confidence) > width


@pytest.mark.parametrize("width", [5, 40, 2500])
def test_staircase(width):
    """A staircase of least epsilon for its half-width; it needs no more than Laplace noise does."""
    made = Staircase.for_half_width(width, sensitivity=50, confidence=0.95)
    assert made.half_width(0.95) <= width
    assert made.loss(sensitivity=50).charge.epsilon == made.epsilon
    less = Staircase.for_loss(made.epsilon * LESS, sensitivity=50)
    assert less.half_width(0.95) > width
    pure = DiscreteLaplace.for_half_width(width, confidence=0.95).loss(l1=50).charge.epsilon
    assert made.epsilon <= pure * F(11, 10)


def test_tulap():
    """Canonical noise of least epsilon at a given delta."""
    made = Tulap.for_half_width(8, SMALL, confidence=0.95)
    assert (made.half_width(0.95) <= 8, made.delta) == (True, SMALL)
    assert Tulap(made.epsilon * F(90, 100), SMALL).half_width(0.95) > 8


@pytest.mark.heavy("test_noises")
def test_largest_norm():
    """All coordinates at once within the half-width."""
    made = MaxNorm.for_half_width(30, linf=2, dimension=7, confidence=0.9)
    assert made.half_width(0.9) <= 30
    epsilon = made.loss(linf=2).charge.epsilon
    less = MaxNorm.for_loss(epsilon * LESS, linf=2, dimension=7)
    assert less.half_width(0.9) > 30
    assert MaxNorm.for_half_width(2**30, linf=1, dimension=2**20, confidence=0.9).dimension == 2**20


def test_propose_test_release():
    """The value's half-width alone, and with a distance at which tables must get an answer."""
    made = ProposeTestRelease.for_half_width(20, SMALL, bound=3, confidence=0.95)
    assert made.half_width(0.95) <= 20
    epsilon = made.loss(bound=3).charge.epsilon
    less = ProposeTestRelease.for_loss(epsilon * LESS, SMALL, bound=3)
    assert less.half_width(0.95) > 20
    near = ProposeTestRelease.for_half_width(20, SMALL, bound=3, confidence=0.95, distance=15)
    assert near.miss_probability(15) <= 0.05
    assert near.loss(bound=3).charge.epsilon > epsilon
    less = ProposeTestRelease.for_loss(near.loss(bound=3).charge.epsilon * LESS, SMALL, bound=3)
    assert less.miss_probability(15) > 0.05


def test_smooth_median():
    """The half-width at a public smooth sensitivity."""
    made = SmoothMedian.for_half_width(
        100, SMALL, lower=0, upper=1000, smooth=F(7, 2), confidence=0.95
    )
    assert made.half_width(F(7, 2), 0.95) <= 100
    less = SmoothMedian.for_loss(made.epsilon * LESS, SMALL, lower=0, upper=1000)
    assert less.half_width(F(7, 2), 0.95) > 100


def test_peeling():
    """Values within the half-width; the whole cost reads back; picks tell their shortfall."""
    made = Peeling.for_half_width(12, k=3, sensitivity=2, confidence=0.95)
    assert made.half_width(0.95) <= 12
    epsilon = made.loss(sensitivity=2).charge.epsilon
    less = Peeling.for_loss(epsilon * LESS, k=3, sensitivity=2)
    assert less.half_width(0.95) > 12
    assert Peeling.for_loss(F(7, 3), k=3, sensitivity=2).loss(sensitivity=2).charge.epsilon == F(
        7, 3
    )
    race = TopK(made.selection.rate, 3)
    assert made.shortfall(40, 0.95) == race.shortfall(40, 0.95)


def test_top_k():
    """The least rate for a shortfall, as for a single pick."""
    made = TopK.for_shortfall(15, k=4, candidates=200, confidence=0.95)
    assert made.shortfall(200, 0.95) <= 15
    assert TopK(made.rate * LESS, 4).shortfall(200, 0.95) > 15


def test_refusals():
    """What cannot be reached, and arguments out of range, are refused by name."""
    for width in (-1, float("nan"), "wide", None, True):
        for ask in (
            lambda w: DiscreteLaplace.for_half_width(w, confidence=0.9),
            lambda w: DiscreteGaussian.for_half_width(w, confidence=0.9),
            lambda w: Staircase.for_half_width(w, sensitivity=1, confidence=0.9),
            lambda w: Tulap.for_half_width(w, SMALL, confidence=0.9),
            lambda w: MaxNorm.for_half_width(w, linf=1, dimension=2, confidence=0.9),
            lambda w: Peeling.for_half_width(w, k=1, sensitivity=1, confidence=0.9),
            lambda w: ProposeTestRelease.for_half_width(w, SMALL, bound=1, confidence=0.9),
        ):
            with pytest.raises(ArgumentError, match="half_width"):
                ask(width)
    for confidence in (0, 1, "high"):
        with pytest.raises(ArgumentError, match="confidence"):
            Tulap.for_half_width(3, SMALL, confidence=confidence)
        with pytest.raises(ArgumentError, match="confidence"):
            ProposeTestRelease.for_half_width(3, SMALL, bound=1, confidence=confidence)
    with pytest.raises(ArgumentError, match="shortfall"):
        TopK.for_shortfall(-1, k=1, candidates=5, confidence=0.9)
    with pytest.raises(ArgumentError, match="value_share"):
        Peeling.for_loss(F(1), k=1, sensitivity=1, value_share=F(1))

"""Half-widths of sums of many noises: never below the exact quantile, and a few per cent above."""

import itertools
from fractions import Fraction as F

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.mechanisms import BinaryTree, DiscreteGaussian, DiscreteLaplace
from dither.mechanisms._inversion import sum_half_width

NOISES = [
    DiscreteLaplace(F(1, 2)),
    DiscreteLaplace(F(3)),
    DiscreteLaplace(F(25)),
    DiscreteGaussian(F(1, 2)),
    DiscreteGaussian(F(3)),
    DiscreteGaussian(F(400)),
]


def pmf(noise):
    """The law on -reach..reach, all but 1e-15 of it."""
    if isinstance(noise, DiscreteLaplace):
        reach = int(36 * noise.scale) + 2
        weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(noise.scale))
    else:
        reach = int(8.5 * float(noise.sigma2) ** 0.5) + 2
        weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(noise.sigma2)))
    return weights / weights.sum()


def exact_outside(counts, noise):
    """Pr[|Σ c·Z| > q] as a function of q, by convolution; coefficients c are integers."""
    law = np.ones(1)
    for c, n in counts.items():
        one = pmf(noise)
        wide = np.zeros((one.size - 1) * c + 1)
        wide[::c] = one
        for _ in range(n):
            law = np.convolve(law, wide)
    reach = law.size // 2
    far = np.abs(np.arange(-reach, reach + 1))

    def outside(q):
        return float(law[far > q * (1 + 1e-12)].sum())

    return outside, law, far


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("counts", [{1: 2}, {2: 1, 1: 2}, {3: 3, 1: 4}, {5: 1, 2: 2, 1: 1}])
def test_covers_and_is_tight(noise, counts):
    """By exact convolution the chance outside is as allowed, and 3 % less would not do."""
    outside, _, _ = exact_outside(counts, noise)
    deviation = (noise.variance * sum(n * c * c for c, n in counts.items())) ** 0.5
    for confidence in (0.5, 0.9, 0.95, 0.999):
        terms = tuple((float(c), n) for c, n in counts.items())
        q = sum_half_width(terms, noise, confidence)
        assert outside(q) <= 1 - confidence
        if deviation > 2:  # on a coarse lattice the quantile itself jumps
            assert outside(0.97 * q - 0.05 * deviation) > 1 - confidence


@pytest.mark.parametrize("noise", [DiscreteLaplace(F(4)), DiscreteGaussian(F(20))])
def test_tree_intervals_cover_by_exact_sums(noise):
    """The estimate's own error, convolved from its coefficients, stays within the half-width."""
    tree = BinaryTree(7, noise)
    # After 7 steps: tiles of heights 2, 1, 0 with estimates of variance shares 4/7, 2/3, 1.
    weights = {F(4, 7): 1, F(3, 7) * F(2, 3): 2, F(3, 7) * F(1, 3): 4}
    weights |= {F(2, 3): 1, F(1, 3): 2, F(1): 1}
    assert sum(n * c * c for c, n in weights.items()) * F(noise.variance) == pytest.approx(
        tree.variance(7)
    )
    counts = {int(c * 21): n for c, n in weights.items()}
    outside, _, _ = exact_outside(counts, noise)
    for confidence in (0.5, 0.9, 0.99):
        width = tree.half_width(7, confidence)
        assert outside(21 * width) <= 1 - confidence
        assert outside(21 * width * 0.95) > 1 - confidence


def test_narrower_is_caught():
    """The mutant that takes all noises for one normal of their variance fails at 0.999."""
    noise, counts = DiscreteLaplace(F(3)), {4: 1, 1: 3}
    outside, _, _ = exact_outside(counts, noise)
    deviation = (noise.variance * 19) ** 0.5
    assert outside(3.2905 * deviation) > 0.001
    assert outside(sum_half_width(((4.0, 1), (1.0, 3)), noise, 0.999)) <= 0.001


def test_scales_and_confidences():
    """Widths grow with confidence and follow the scale; beyond 1 - 1e-7 is refused."""
    widths = [
        sum_half_width(((1.0, 3),), DiscreteLaplace(F(2) ** 30), c) for c in (0.5, 0.9, 0.9999)
    ]
    assert all(a < b for a, b in itertools.pairwise(widths))
    small = sum_half_width(((1.0, 3),), DiscreteLaplace(F(1000)), 0.9)
    assert widths[1] / small == pytest.approx(2**30 / 1000, rel=1e-3)
    assert sum_half_width(((1.0, 9),), DiscreteLaplace(F(1, 10_000)), 0.9) == 0
    with pytest.raises(ArgumentError, match="confidence"):
        sum_half_width(((1.0, 2),), DiscreteLaplace(F(1)), 1 - 1e-9)

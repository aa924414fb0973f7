"""Noise by the largest norm: its realised law, exact loss, errors, audit and mutants."""

import itertools
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.mechanisms import DiscreteLaplace, MaxNorm, choose
from dither.mechanisms.counts import max_norm
from mechanisms.realised import MP, fraction, realised_law, refuted


def radius_law(scale, d, reach):
    """Pr[K = k] for k up to reach, and of more."""
    g = 1 / fraction(scale)
    weights = [(2 * k + 1) ** d * mpmath.exp(-k * g) for k in range(4 * reach + 200)]
    total = mpmath.fsum(weights)
    return [w / total for w in weights[: reach + 1]]


@pytest.mark.parametrize(("scale", "d"), [(F(1), 1), (F(2, 3), 3), (F(1, 4), 2), (F(1, 2), 9)])
def test_radius_is_drawn_exactly(monkeypatch, scale, d):
    """The realised law of the radius is the formula, up to the paths that were cut."""
    hat = max_norm._hat(scale, d)
    law, lost = realised_law(monkeypatch, hat.draw, floor=1e-5, reach=40)
    assert lost < 0.05
    for k, p in enumerate(radius_law(scale, d, 60)):
        found = law.get(k, MP(0))
        assert found <= p + 1e-12
        assert p <= found + lost
        if p > 0.02:
            assert abs(found - p) < 0.1 * p


@settings(deadline=None, max_examples=40)
@given(st.fractions(F(1, 200), 300, max_denominator=200), st.integers(1, 300), st.data())
def test_hat_dominates(scale, d, data):
    """At any radius the acceptance is a probability without being cut, and its bounds are close."""
    hat = max_norm._hat(scale, d)
    k = data.draw(st.integers(0, int(4 * d * scale) + 40))
    part = 0 if k <= hat.left else 2 if k >= hat.right else 1
    low, high = hat._keep(k, part, 80)
    assert 0 <= low <= high <= 1
    assert high - low <= F(1, 2**60)
    assert hat._keep(hat.mode, 1, 80)[0] > F(1, 2)


def test_loss_of_the_law():
    """Built from the radius, the law is exp(-max|z|/s): its worst ratio is linf/s, attained."""
    scale, d, linf = F(3, 2), 2, 2
    radii = radius_law(scale, d, 60)
    tails = [
        mpmath.fsum(p / (2 * k + 1) ** d for k, p in enumerate(radii) if k >= m) for m in range(12)
    ]

    def p(z):
        return tails[max(map(abs, z))]

    box = list(itertools.product(range(-8, 9), repeat=d))
    worst = MP(0)
    for change in itertools.product((-linf, 0, linf), repeat=d):
        for z in box:
            moved = tuple(a + b for a, b in zip(z, change, strict=True))
            worst = max(worst, abs(mpmath.log(p(z) / p(moved))))
    claimed = MaxNorm(scale, d).loss(linf=linf).charge.epsilon
    assert claimed == F(4, 3)
    assert abs(worst - fraction(claimed)) < 1e-10


def test_black_box_audit():
    """All coordinates moved by one: the claim is not refuted (1e-7), half the scale is."""
    honest = MaxNorm.for_loss(F(2), linf=1, dimension=3)

    def outcomes(mechanism, n=1500):
        # The loss-optimal statistic: how the largest norms about the two centres compare.
        return [
            (np.abs(z).max(axis=1) - np.abs(z - 1).max(axis=1)).tolist()
            for z in (mechanism.draw(n), 1 + mechanism.draw(n))
        ]

    assert not refuted(*outcomes(honest), 2.0)
    assert refuted(*outcomes(MaxNorm(honest.scale / 4, 3)), 2.0)


@pytest.mark.parametrize(("scale", "d"), [(F(1), 1), (F(2), 3), (F(1, 2), 12)])
def test_error_of_the_law(scale, d):
    """Variance and simultaneous half-widths are those of the law, summed."""
    mechanism = MaxNorm(scale, d)
    radii = radius_law(scale, d, 400)
    variance = mpmath.fsum(p * k * (k + 1) for k, p in enumerate(radii)) / 3
    assert mechanism.variance == pytest.approx(float(variance), rel=1e-9)
    if d == 1:
        assert mechanism.variance == pytest.approx(DiscreteLaplace(scale).variance)
    for confidence in (0.5, 0.95):
        width = mechanism.half_width(confidence)

        def inside(w):
            return mpmath.fsum(
                p * min(MP(1), (MP(2 * w + 1) / (2 * k + 1)) ** d) for k, p in enumerate(radii)
            )

        assert inside(width) >= confidence > inside(width - 1)


def test_many_dimensions():
    """A thousand coordinates and coarse or fine scales draw; the chooser knows when it is best."""
    for scale in (F(1, 1000), F(1, 10), F(10**6)):
        draws = MaxNorm(scale, 1000).draw(3)
        assert draws.shape == (3, 1000)
        assert np.abs(draws).max() < 1100 * scale + 50
    pure = choose(linf=1, dimension=50, epsilon=F(1))
    assert isinstance(pure.mechanism, MaxNorm)
    assert pure.charge.epsilon == 1
    sparse = choose(linf=1, l1=1, dimension=50, epsilon=F(1))
    assert isinstance(sparse.mechanism, DiscreteLaplace)


def test_refusals():
    """Parameters that are not numbers or out of range are refused by name."""
    for scale in (0, -1, -0.5, float("inf"), 2**60):
        with pytest.raises(ArgumentError, match="scale"):
            MaxNorm(scale, 2)
    with pytest.raises(ArgumentError, match="dimension"):
        MaxNorm(F(1), 0)
    with pytest.raises(ArgumentError, match="linf"):
        MaxNorm.for_loss(F(1), linf=0, dimension=2)
    with pytest.raises(ArgumentError, match="size"):
        MaxNorm(F(1), 2).draw(0)

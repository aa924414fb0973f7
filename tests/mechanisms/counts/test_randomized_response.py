"""Randomised response: its realised law, both losses, its errors, and mutants."""

from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.mechanisms import RandomizedResponse
from dither.mechanisms import _coins as coins
from mechanisms.realised import fraction, realised_law, refuted, renyi, worst_ratio


def report(mechanism, truth):
    """One report, as an int."""
    return int(mechanism.draw([truth])[0])


def laws(monkeypatch, mechanism):
    """The realised law of each truth."""
    return [
        realised_law(monkeypatch, lambda t=t: report(mechanism, t), floor=1e-30)[0]
        for t in range(mechanism.categories)
    ]


@pytest.mark.parametrize(("epsilon", "k"), [(F(1, 2), 2), (F(3), 2), (F(1), 3), (F(2), 5)])
def test_realised_law(monkeypatch, epsilon, k):
    """The sampler's law is the formula; its worst ratio is exp(epsilon), exactly."""
    mechanism = RandomizedResponse(epsilon, k)
    found = laws(monkeypatch, mechanism)
    whole = mpmath.exp(fraction(epsilon)) + k - 1
    for truth, law in enumerate(found):
        for said in range(k):
            expected = (mpmath.exp(fraction(epsilon)) if said == truth else 1) / whole
            assert abs(law[said] - expected) < 1e-14
    assert abs(worst_ratio(found[0], found[1]) - fraction(mechanism.loss().charge.epsilon)) < 1e-12


@settings(deadline=None, max_examples=60)
@given(st.fractions(F(1, 100), 12, max_denominator=100), st.floats(1.0001, 60))
def test_zcdp_of_the_law(epsilon, alpha):
    """No Rényi divergence of the binary law exceeds alpha·rho, and rho is the least such."""
    with mpmath.workdps(40):
        e = mpmath.exp(fraction(epsilon))
        p, q = {0: e / (1 + e), 1: 1 / (1 + e)}, {0: 1 / (1 + e), 1: e / (1 + e)}
        rho = fraction(RandomizedResponse(epsilon).loss().charge.rho)
        assert renyi(p, q, mpmath.mpf(alpha)) <= alpha * rho
        kl = fraction(epsilon) * mpmath.tanh(fraction(epsilon) / 2)
        assert kl <= rho <= kl + mpmath.mpf(2) ** -60


@settings(deadline=None, max_examples=30)
@given(st.fractions(F(1, 10), 6, max_denominator=50), st.integers(3, 40), st.floats(1.001, 40))
def test_zcdp_of_more_categories(epsilon, k, alpha):
    """The bound of two categories holds for more."""
    with mpmath.workdps(40):
        e = mpmath.exp(fraction(epsilon))
        whole = e + k - 1
        p = {0: e / whole, 1: 1 / whole, 2: (k - 2) / whole}
        q = {0: 1 / whole, 1: e / whole, 2: (k - 2) / whole}
        rho = fraction(RandomizedResponse(epsilon, k).loss().charge.rho)
        assert renyi(p, q, mpmath.mpf(alpha)) <= alpha * rho


def test_swapped_probabilities_and_half_the_noise_are_caught(monkeypatch):
    """A coin of the wrong sense, and one of twice the epsilon, break the law and the audit."""
    epsilon, n = F(1), 20_000
    honest = RandomizedResponse(epsilon)

    def audit(mechanism):
        return refuted(*(mechanism.draw([t] * n).tolist() for t in (0, 1)), float(epsilon))

    assert not audit(honest)
    assert audit(RandomizedResponse(2 * epsilon))
    shares = [(honest.draw([t] * n) == t).mean() for t in (0, 1)]
    true = honest.probabilities[0]
    assert max(abs(s - true) for s in shares) < 6 * np.sqrt(true * (1 - true) / n)
    real = coins.real_coins
    monkeypatch.setattr(coins, "real_coins", lambda bounds, size: ~real(bounds, size))
    assert (honest.draw([0] * n) == 0).mean() < 0.5


@pytest.mark.parametrize("k", [2, 4])
def test_error_of_the_law(k):
    """The estimate is unbiased, and its variance is the formula, by the law itself."""
    mechanism = RandomizedResponse(F(3, 2), k)
    p, q = mechanism.probabilities
    assert p + (k - 1) * q == pytest.approx(1)
    truths = np.array([0, 0, 1, 0, 1, 0, 0, 0, 0, 1])
    share = (truths == 0).mean()
    # The sum of ten independent coins, convolved.
    law = np.array([1.0])
    for t in truths:
        law = np.convolve(law, [1 - (p if t == 0 else q), p if t == 0 else q])
    estimates = (np.arange(11) / 10 - q) / (p - q)
    assert law @ estimates == pytest.approx(share)
    assert law @ (estimates - share) ** 2 == pytest.approx(mechanism.deviation(10, share) ** 2)
    assert mechanism.deviation(10) >= mechanism.deviation(10, share)
    assert mechanism.half_width(10, 0.95) == pytest.approx(
        1.95996 * mechanism.deviation(10), rel=1e-4
    )
    reports = [0, 1, 1, 0]
    assert mechanism.estimate(reports).sum() == pytest.approx(1)
    assert mechanism.estimate(reports)[0] == pytest.approx((0.5 - q) / (p - q))


def test_calibration():
    """The least epsilon for a deviation meets it, and a percent less does not."""
    mechanism = RandomizedResponse.for_deviation(0.01, reports=20_000, categories=3)
    assert mechanism.deviation(20_000) <= 0.01
    assert RandomizedResponse(mechanism.epsilon * F(99, 100), 3).deviation(20_000) > 0.01
    assert RandomizedResponse.for_loss(F(2), categories=3) == RandomizedResponse(F(2), 3)


def test_refusals():
    """Parameters and truths out of range are refused by name, without the truth."""
    for epsilon in (0, F(-1), -0.5, float("inf"), True):
        with pytest.raises(ArgumentError, match="epsilon"):
            RandomizedResponse(epsilon)
    for categories in (1, 0, 2.0):
        with pytest.raises(ArgumentError, match="categories"):
            RandomizedResponse(F(1), categories)
    mechanism = RandomizedResponse(F(1), 3)
    for truths in ([], [3], [-1], [0.0], [True], [2**70]):
        with pytest.raises(ArgumentError, match="truths"):
            mechanism.draw(truths)
    with pytest.raises(ArgumentError, match="reports"):
        mechanism.estimate([0, 7])
    with pytest.raises(ArgumentError, match="share"):
        mechanism.deviation(10, 1.5)
    with pytest.raises(ArgumentError, match="deviation"):
        RandomizedResponse.for_deviation(0.0, reports=10)
    with pytest.raises(ArgumentError, match="deviation"):
        RandomizedResponse.for_deviation(1e-30, reports=10)

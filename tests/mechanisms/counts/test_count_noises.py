"""Staircase and Tulap noise: realised laws, tight losses, errors, audits and mutants."""

import math
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.mechanisms import AdditiveNoise, DiscreteLaplace, Geometric, Staircase, Tulap
from mechanisms.realised import MP, divergence, fraction, realised_law, refuted

STAIRCASES = [Staircase(F(1), 3, 2), Staircase(F(2), 5, 1), Staircase(F(3), 1, 1)]
TULAPS = [
    Tulap(F(1), F(1, 100)),
    Tulap(F(1, 2), F(1, 10)),
    Tulap(F(3), F(1, 10**5)),
    # The scale exceeds the reach.
    Tulap(F(1, 20), F(1, 4)),
]


def law_of(mechanism, reach=None):
    """{z: Pr[Z = z]} by the formula of the docstring."""
    b = mpmath.exp(-fraction(mechanism.epsilon))
    if isinstance(mechanism, Staircase):
        d, r = mechanism.sensitivity, mechanism.step
        reach = reach or int(d * (60 / float(mechanism.epsilon) + 2))
        a = 1 / (2 * r - 1 + 2 * d * b / (1 - b))
        return {z: a * b ** ((abs(z) + d - r) // d) for z in range(-reach, reach + 1)}
    m, delta = mechanism.reach, fraction(mechanism.delta)
    h = delta * (1 + b) / (1 - b + 2 * delta * b)
    w = (1 - h * b ** (1 - m)) / (1 - b)
    assert 0 <= w <= 1
    weights = {z: b ** abs(z) * (w if abs(z) == m else 1) for z in range(-m, m + 1)}
    total = mpmath.fsum(weights.values())
    return {z: x / total for z, x in weights.items()}


def shifted(law, by):
    """The law of Z + by."""
    return {z + by: p for z, p in law.items()}


@pytest.mark.parametrize("mechanism", [*STAIRCASES, *TULAPS])
def test_realised_law(monkeypatch, mechanism):
    """The sampler's law is the formula of the docstring, to what was not enumerated."""
    law, lost = realised_law(monkeypatch, lambda: int(mechanism.draw(1)[0]), floor=3e-5, reach=16)
    assert lost < 0.05
    for z, p in law_of(mechanism).items():
        found = law.get(z, MP(0))
        assert found <= p + 1e-12
        assert p <= found + lost + 1e-12
        if p > 0.01:
            assert abs(found - p) < 0.1 * p


@settings(deadline=None, max_examples=40)
@given(st.fractions(F(1, 10), 6, max_denominator=20), st.integers(1, 12), st.data())
def test_staircase_loses_exactly_epsilon(epsilon, d, data):
    """Shifts up to D keep epsilon and attain it; D + 1 costs twice, as the loss says."""
    step = data.draw(st.integers(1, d))
    mechanism = Staircase(epsilon, d, step)
    law = law_of(mechanism, reach=4 * d)
    for shift in range(1, d + 2):
        moved = shifted(law, shift)
        worst = max(abs(mpmath.log(p / moved[z])) for z, p in law.items() if z in moved)
        claimed = fraction(mechanism.loss(sensitivity=shift).charge.epsilon)
        assert worst <= claimed + 1e-10
        if shift == d:
            assert abs(worst - fraction(epsilon)) < 1e-10
    assert mechanism.loss(sensitivity=d + 1).charge.epsilon == 2 * epsilon
    assert mechanism.loss(sensitivity=d, coordinates=3).charge.epsilon == 3 * epsilon
    assert mechanism.loss(sensitivity=0).charge.epsilon == 0


@settings(deadline=None, max_examples=60)
@given(st.fractions(F(1, 20), 6, max_denominator=30), st.fractions(F(1, 10**8), F(99, 100)))
def test_tulap_loses_exactly_delta(epsilon, delta):
    """At epsilon the law and its shift differ by delta, no more and no less."""
    if delta == 0:
        return
    with mpmath.workdps(40):
        law = law_of(Tulap(epsilon, delta))
        found = divergence(law, shifted(law, 1), epsilon)
        assert abs(found - fraction(delta)) < mpmath.mpf(10) ** -25


@pytest.mark.parametrize("mechanism", [*STAIRCASES, *TULAPS, Staircase(F(1, 2), 7, 3)])
def test_error_of_the_law(mechanism):
    """Variance, tails and half-widths are those of the law, summed term by term."""
    assert isinstance(mechanism, AdditiveNoise)
    law = law_of(mechanism)
    variance = mpmath.fsum(z * z * p for z, p in law.items())
    assert mechanism.variance == pytest.approx(float(variance), rel=1e-10)
    above, upper = {}, MP(0)
    for z in sorted(law, reverse=True):
        upper += law[z]
        above[z] = upper
    for t in (-3, 0, 1, 2, 3, 5, 8, 13):
        exact = above.get(t, MP(t < 0))
        assert mechanism.survival(t) == pytest.approx(float(exact), rel=1e-9, abs=1e-15)
        bound = fraction(mechanism.upper_tail(t))
        assert bound >= exact * (1 - MP(10) ** -13)
        if t >= 1:
            assert bound <= exact * (1 + MP(10) ** -10) + MP(10) ** -30
            assert fraction(mechanism.tail(t)) == min(1, 2 * bound)
    for confidence in (0.01, 0.5, 0.9, 0.999):
        width = 0
        while 2 * above.get(width + 1, MP(0)) > 1 - confidence:
            width += 1
        assert mechanism.half_width(confidence) == width


def test_staircase_step_is_the_best():
    """The chosen step has the least variance of all, and never more than discrete Laplace noise."""
    for epsilon in (F(1, 10), F(1), F(4), F(9)):
        for d in (1, 2, 7, 600, 2000):
            chosen = Staircase.for_loss(epsilon, sensitivity=d)
            stride = max(1, d // 300)
            others = [Staircase(epsilon, d, r).variance for r in range(1, d + 1, stride)]
            assert chosen.variance <= min(others) * (1 + 1e-9)
            assert chosen.variance <= DiscreteLaplace.for_loss(epsilon, l1=d).variance * (1 + 1e-9)


def test_staircase_of_sensitivity_one_is_discrete_laplace():
    """For D = 1 the staircase is the geometric law, and Geometric is DiscreteLaplace."""
    law = law_of(Staircase(F(3, 4), 1, 1))
    r = mpmath.exp(-MP(3) / 4)
    assert max(abs(p - (1 - r) / (1 + r) * r ** abs(z)) for z, p in law.items()) < 1e-14
    assert Geometric is DiscreteLaplace


def test_tulap_beats_laplace_and_inverts_nothing():
    """Its variance is below that of pure noise of the same epsilon, and the loss reads back."""
    for mechanism in TULAPS:
        assert mechanism.variance < DiscreteLaplace.for_loss(mechanism.epsilon, l1=1).variance
        loss = mechanism.loss().charge
        assert (loss.epsilon, loss.delta) == (mechanism.epsilon, mechanism.delta)
        assert (loss.rho, loss.rho_delta) == (mechanism.epsilon**2 / 2, mechanism.delta)
        assert Tulap.for_loss(mechanism.epsilon, mechanism.delta) == mechanism


@pytest.mark.parametrize(
    ("honest", "mutant", "shift", "delta"),
    [
        (Staircase(F(1), 4, 2), Staircase(F(2), 4, 2), 4, 0.0),
        (Staircase(F(1), 4, 2), Staircase(F(1), 1, 1), 4, 0.0),
        (Tulap(F(1), F(1, 100)), Tulap(F(2), F(1, 100)), 1, 0.01),
        (Tulap(F(1), F(1, 100)), Tulap(F(1), F(1, 10)), 1, 0.01),
    ],
)
def test_black_box_audit(honest, mutant, shift, delta):
    """Samples do not refute the claim (false alarm 1e-7); too little noise is refuted."""

    def outputs(mechanism, n=40_000):
        return mechanism.draw(n).tolist(), (shift + mechanism.draw(n)).tolist()

    assert not refuted(*outputs(honest), 1.0, delta)
    assert refuted(*outputs(mutant), 1.0, delta)


def test_extremes_draw():
    """Very small and very large parameters still draw, within their reach."""
    draws = Staircase.for_loss(F(20), sensitivity=10**9).draw((2, 50))
    assert draws.shape == (2, 50)
    assert Staircase.for_loss(F(1, 1000), sensitivity=10**6).draw(20).dtype == np.int64
    small = Tulap(F(1, 1000), F(1, 10**9))
    assert np.abs(small.draw(200)).max() <= small.reach
    assert small.variance == pytest.approx(2 * 10**6, rel=0.01)


def test_refusals():
    """Parameters that are not numbers or out of range are refused by name."""
    for epsilon in (0, F(-1), -0.5, float("inf"), True):
        with pytest.raises(ArgumentError, match="epsilon"):
            Staircase(epsilon, 1, 1)
        with pytest.raises(ArgumentError, match="epsilon"):
            Tulap(epsilon, F(1, 9))
    for delta in (0, 1, F(-1), -1e-6):
        with pytest.raises(ArgumentError, match="delta"):
            Tulap(F(1), delta)
    with pytest.raises(ArgumentError, match="epsilon"):
        Tulap(F(1, 2**50), F(1, 9))
    for sensitivity in (0, -1, 1.5, 2**60, float("inf")):
        with pytest.raises(ArgumentError, match="sensitivity"):
            Staircase.for_loss(F(1), sensitivity=sensitivity)
    with pytest.raises(ArgumentError, match="step"):
        Staircase(F(1), 2, 3)


def test_sizes_have_ends():
    """A lattice too fine and more draws than memory holds are refused by name."""
    with pytest.raises(ArgumentError, match="sensitivity"):
        Staircase.for_loss(F(1), sensitivity=10**400)
    for mechanism in (Staircase(F(1), 1, 1), Tulap(F(1), F(1, 100))):
        with pytest.raises(ArgumentError, match="in parts"):
            mechanism.draw((10**6, 10**6))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(F(1, 10**6), F(1, 2)), (F(1, 10**6), F(1, 10**6)), (F(1, 2**40), F(1, 10**9))],
)
def test_canonical_noise_of_a_scale_far_beyond_its_reach(epsilon, delta):
    """Draws come at once, within the reach, of the stated variance (5 deviations: 1 in 10**6)."""
    mechanism = Tulap(epsilon, delta)
    drawn = mechanism.draw(500).astype(float)
    assert np.abs(drawn).max() <= mechanism.reach
    # z² of a nearly uniform z has a fourth moment below 9/5 of its square.
    assert abs((drawn**2).mean() / mechanism.variance - 1) < 5 * math.sqrt(1 / 500)


def test_variance_beyond_a_million_meets_the_sum(monkeypatch):
    """The integral and the sum agree where both can be taken."""
    for epsilon, delta in ((F(1, 10**5), F(1, 10**4)), (F(1, 10**5), F(1, 10**9))):
        mechanism = Tulap(epsilon, delta)
        exact = mechanism.variance
        monkeypatch.setattr("dither.mechanisms.counts.tulap._SUMMED", 1)
        assert mechanism.variance == pytest.approx(exact, rel=1e-3)
        monkeypatch.undo()

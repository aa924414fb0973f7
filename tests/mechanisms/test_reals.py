"""Laplace and Gaussian noise for real answers: the discrete law held against what is claimed."""

import math
from decimal import Decimal
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import noise as samplers
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dither.mechanisms import _reals as reals
from dither.mechanisms.counts import _analytic as analytic
from dither.numeric import SimulatedWords
from mechanisms.realised import MP, divergence, fraction, laplace_options, refuted

TABLE = [
    (F(1, 10), F(1, 10**6), "36.304690426195785"),
    (F(1), F(1, 10**5), "3.7306316348159418"),
    (F(1), F(1, 10**6), "4.2246788893268353"),
    (F(10), F(1, 10**5), "0.49988861970900851"),
]


def normal_delta(epsilon, mu):
    """Balle and Wang's delta in mpmath."""
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    tail = [mpmath.erfc(x / mpmath.sqrt(2)) / 2 for x in (a, b)]
    return tail[0] - mpmath.exp(epsilon) * tail[1]


def gaussian_law(sigma2, shift=0, reach=None):
    """The discrete Gaussian law about an integer."""
    s2 = 2 * fraction(sigma2)
    reach = reach or int(16 * math.sqrt(sigma2)) + 12
    weights = {z: mpmath.exp(-z * z / s2) for z in range(-reach, reach + 1)}
    total = mpmath.fsum(weights.values())
    return {z + shift: w / total for z, w in weights.items()}


@settings(deadline=None, max_examples=60)
@given(st.fractions(-40, 40, max_denominator=1000))
def test_normal_tail_is_enclosed(x):
    """The bounds hold the normal tail of 400 digits, and are close."""
    with mpmath.workdps(400):
        low, high = (fraction(b) for b in analytic.normal_tail(x))
        exact = mpmath.erfc(fraction(x) / mpmath.sqrt(2)) / 2
        assert low <= exact <= high
        assert high - low <= exact * MP(2) ** -105


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), TABLE)
def test_continuous_calibration_is_the_reference(epsilon, delta, sigma):
    """1/mu is the analytic sigma to 13 digits, on the safe side; and a hair less noise is not."""
    mu = analytic.gaussian_mu(epsilon, delta)
    assert 1 / mu == pytest.approx(float(sigma), rel=1e-13)
    with mpmath.workdps(60):
        assert normal_delta(fraction(epsilon), fraction(mu)) <= fraction(delta)
        more = fraction(mu) * (1 + MP(2) ** -40)
        assert normal_delta(fraction(epsilon), more) > fraction(delta)


@settings(deadline=None, max_examples=60)
@given(
    st.fractions(F(1, 1000), 12, max_denominator=1000),
    st.fractions(F(1, 50), 6, max_denominator=60),
)
def test_continuous_delta_is_tight(epsilon, mu):
    """The rational is above the exact delta, by less than 1e-25 of it.

    Beyond exp(-2**17) exponentials are bounded and not tight; it is still above.
    """
    with mpmath.workdps(90):
        exact = normal_delta(fraction(epsilon), fraction(mu))
        found = fraction(analytic.gaussian_delta(epsilon, mu))
        assert exact <= found
        if epsilon / mu < 400:
            assert found <= exact * (1 + MP(10) ** -25)


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), TABLE)
@pytest.mark.parametrize("dimension", [1, 100])
def test_gaussian_meets_the_reference_on_its_lattice(epsilon, delta, sigma, dimension):
    """The default lattice costs less than 1e-5 of the analytic sigma, for a vector too."""
    made = Gaussian.for_loss(epsilon, delta, l2=F(7, 3), dimension=dimension)
    assert 0 <= made.sigma / (7 / 3 * float(sigma)) - 1 < 1e-5
    cost = made.loss(l2=F(7, 3), dimension=dimension, epsilon=epsilon).charge
    assert cost.epsilon == epsilon
    assert cost.delta <= delta
    assert cost.delta >= delta * F(999, 1000)


@settings(deadline=None, max_examples=40)
@given(st.fractions(F(1, 5), 9, max_denominator=20), st.integers(1, 6), st.floats(0.0, 7))
def test_delta_of_one_coordinate_is_exact(sigma2, shift, epsilon):
    """The claimed delta is what the law loses, rounded up by less than 1e-20 of it."""
    at = F(epsilon)
    with mpmath.workdps(80):
        law = gaussian_law(sigma2, reach=int(26 * math.sqrt(sigma2)) + 30)
        exact = divergence(law, {z + shift: p for z, p in law.items()}, at)
        found = DiscreteGaussian(sigma2).delta(at, l2_squared=shift**2, coordinates=1)
        assert fraction(found) >= exact * (1 - MP(10) ** -25)
        if exact > MP(10) ** -60:
            assert fraction(found) <= exact * (1 + MP(10) ** -20)


@pytest.mark.parametrize("change", [(1, 1), (2, 1), (1, 1, 1), (2, 2, 1)])
@pytest.mark.parametrize("sigma2", [F(2), F(9), F(25)])
def test_delta_of_vectors_covers_the_law(change, sigma2):
    """For integer vectors the claim covers the joint law, summed over <z, v>."""
    square = sum(c * c for c in change)
    line = {0: MP(1)}
    for c in change:
        step = {}
        for a, p in line.items():
            for z, q in gaussian_law(sigma2, reach=int(9 * math.sqrt(sigma2)) + 4).items():
                step[a + c * z] = step.get(a + c * z, MP(0)) + p * q
        line = step
    mechanism = DiscreteGaussian(sigma2)
    for epsilon in (F(0), F(1, 2), F(1), F(3)):
        # Under the first law the loss at z is (|v|² + 2<z, v>)/(2σ²).
        exact = mpmath.fsum(
            p
            * max(0, 1 - mpmath.exp(fraction(epsilon) - (square + 2 * a) / (2 * fraction(sigma2))))
            for a, p in line.items()
        )
        claimed = fraction(mechanism.delta(epsilon, l2_squared=square, coordinates=len(change)))
        assert claimed >= exact
        half = DiscreteGaussian(sigma2 * 4)
        if exact > MP(10) ** -9:  # the claim of twice the noise does not cover this law
            assert fraction(half.delta(epsilon, l2_squared=square)) < exact


def test_calibration_beats_zcdp_and_holds():
    """For one number and for vectors, (epsilon, delta) holds and no less noise is found by zCDP."""
    for epsilon, delta in ((F(1), F(1, 10**6)), (F(4), F(1, 10**5)), (F(1, 10), F(1, 100))):
        for square, moved in ((1, 1), (9, 1), (2, 2), (50, 50), (10**6, 1000), (10**6, 1)):
            made = DiscreteGaussian.for_epsilon(
                epsilon, delta, l2_squared=square, coordinates=moved
            )
            assert made.delta(epsilon, l2_squared=square, coordinates=moved) <= delta
            assert made.sigma2 <= square / (2 * rho_of_epsilon(epsilon, delta)) * (1 + F(1, 10**9))
    wide = DiscreteGaussian.for_epsilon(F(1), F(1, 10**6), l2_squared=500)
    assert math.sqrt(wide.sigma2 / 500) == pytest.approx(4.22468, rel=1e-3)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.fractions(-20, 20, max_denominator=64), min_size=1, max_size=5),
    st.fractions(F(1, 20), 3, max_denominator=40),
    st.data(),
)
def test_rounding_is_within_the_sensitivity_in_steps(answer, step, data):
    """However two answers lie to the lattice, their points differ by no more than is charged."""
    other = [a + data.draw(st.fractions(-3, 3, max_denominator=64)) for a in answer]
    silent = type("Silent", (), {"draw": staticmethod(lambda n: np.zeros(n, dtype=np.int64))})()
    moved = [
        (x - y) / step
        for x, y in zip(
            reals.released(answer, step, silent), reals.released(other, step, silent), strict=True
        )
    ]
    l1 = sum(abs(a - b) for a, b in zip(answer, other, strict=True))
    l2 = F(math.isqrt(int(sum((a - b) ** 2 for a, b in zip(answer, other, strict=True)) * 10**12)))
    d = len(answer)
    assert sum(map(abs, moved)) <= reals.steps_l1(l1, step, d)
    assert sum(m * m for m in moved) <= reals.steps_l2_squared((l2 + 1) / 10**6, step, d)


def test_rounding_adds_nothing_to_whole_steps():
    """One number whose sensitivity is a whole number of steps pays nothing, halves included."""
    assert reals.steps_l1(F(3), F(1, 2), 1) == 6
    assert reals.steps_l2_squared(F(3), F(1, 2), 1) == 36
    assert reals.steps_l1(F(3), F(1, 2), 4) == 9
    silent = type("Silent", (), {"draw": staticmethod(lambda n: np.zeros(n, dtype=np.int64))})()
    assert [reals.released(F(2 * k + 1, 2), F(1), silent) for k in (-2, -1, 0, 1)] == [-1, 0, 1, 2]


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_realised_law_keeps_the_claim(kind):
    """The released point's law on the worst neighbours is within the claim; half the noise is not.

    Answers 0.49 and 0.49 + 1.3 on a lattice of 1/2, whose points are 3 steps apart.
    """
    epsilon, delta, step = F(1), F(1, 1000), F(1, 2)
    if kind is Laplace:
        made = Laplace.for_loss(epsilon, l1=F(13, 10), step=step)
        assert made.loss(l1=F(13, 10)).charge.epsilon == epsilon
    else:
        made = Gaussian.for_loss(epsilon, delta, l2=F(13, 10), step=step)
    silent = type("Silent", (), {"draw": staticmethod(lambda n: np.zeros(n, dtype=np.int64))})()
    here, there = (reals.released(a, step, silent) / step for a in (F(49, 100), F(179, 100)))
    assert there - here == 3

    def laws(mechanism):
        if kind is Laplace:
            base = dict(laplace_options(mechanism.noise.scale, 300)[0])
        else:
            base = gaussian_law(mechanism.noise.sigma2)
        return ({z + int(at): p for z, p in base.items()} for at in (here, there))

    allowed = MP(0) if kind is Laplace else fraction(delta)
    assert divergence(*laws(made), epsilon) <= allowed + MP(10) ** -13
    mutant = Laplace(made.scale / 2, step) if kind is Laplace else Gaussian(made.sigma2 / 4, step)
    assert divergence(*laws(mutant), epsilon) > allowed + MP(10) ** -4
    # The mutant that forgets rounding charges 13/10 for a change of 3 steps of 1/2.
    forgot = Laplace(F(13, 10), step) if kind is Laplace else None
    if forgot:
        assert divergence(*laws(forgot), epsilon) > MP(10) ** -4


def test_draw_uses_the_parameter_that_is_charged(monkeypatch):
    """The sampler gets the very rational that the loss is computed from, in steps."""
    seen = []

    def record(parameter, size):
        seen.append(parameter)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(samplers, "discrete_laplace", record)
    monkeypatch.setattr(samplers, "discrete_gaussian", record)
    assert Laplace(F(22, 7), F(1, 3)).release([1, F(2, 3)]) == (1, F(2, 3))
    assert Gaussian(F(25, 4), F(1, 2)).release(Decimal("0.5")) == F(1, 2)
    assert seen == [F(66, 7), F(25)]


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_black_box_audit(monkeypatch, kind):
    """20,000 releases do not refute the claim (false alarm 1e-7); a third of the noise is."""
    words = SimulatedWords(77)
    for name in ("discrete_laplace", "discrete_gaussian"):
        sampler = getattr(samplers, name)
        monkeypatch.setattr(samplers, name, lambda p, n, s=sampler: s(p, n, words=words))
    step, delta = F(1, 4), 0.0 if kind is Laplace else 0.01
    if kind is Laplace:
        made, mutant = Laplace.for_loss(F(1), l1=1, step=step), Laplace(F(1, 3), step)
    else:
        made = Gaussian.for_loss(F(1), F(1, 100), l2=1, step=step)
        mutant = Gaussian(made.sigma2 / 9, step)

    def outputs(mechanism):
        return [mechanism.release(np.full(20_000, q)).tolist() for q in (0.3, 1.3)]

    assert not refuted(*outputs(made), 1.0, delta)
    assert refuted(*outputs(mutant), 1.0, delta)


@pytest.mark.parametrize("make", [lambda s: Laplace(F(5), s), lambda s: Gaussian(F(25), s)])
@pytest.mark.parametrize("step", [F(1, 10), F(2)])
def test_error_includes_the_rounding(make, step):
    """Variance, half-width and tail are the law's in the answer's units, plus half a step."""
    made = make(step)
    inner = made.noise
    assert isinstance(inner, DiscreteLaplace | DiscreteGaussian)
    assert made.variance == pytest.approx(inner.variance * float(step) ** 2)
    width = made.half_width(0.95)
    assert width == pytest.approx((inner.half_width(0.95) + 0.5) * float(step))
    far = F(width).limit_denominator(1000) + step
    assert made.tail(far) <= F(1, 20)
    # Any answer: an error of t needs noise of at least t less half a step.
    assert made.tail(3 * step) == inner.tail(3)
    assert made.tail(0) == 1


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_half_width_inverts(kind):
    """The largest noise of three digits meets the half-width, and a percent more does not."""
    made = kind.for_half_width(12.5, confidence=0.95, step=F(1, 100))
    assert made.half_width(0.95) <= 12.5
    first = made.scale if kind is Laplace else made.sigma2
    assert kind(first * F(102, 100), F(1, 100)).half_width(0.95) > 12.5


def test_kinds_of_answers():
    """Numbers, sequences and arrays come back in kind, on the lattice."""
    made = Laplace(F(1, 1000), F(1, 4))
    assert made.release(2) == made.release(np.int64(2)) == made.release(np.float32(2)) == 2
    assert made.release(0.3) == F(1, 4)
    assert made.release("1/3") == F(1, 4)
    assert made.release([0.1, Decimal("0.9")]) == (0, 1)
    array = made.release(np.array([[0.3, 1.0], [2.0, -0.3]]))
    assert array.tolist() == [[0.25, 1.0], [2.0, -0.25]]
    assert made.draw((2, 3)).shape == (2, 3)
    assert F(made.parameters()["scale"]) == F(1, 1000)
    assert F(Gaussian(F(2), F(1)).parameters()["sigma2"]) == 2


def test_refusals():
    """Parameters and answers that are infinite or out of range are refused by name."""
    for bad in (0, -1, -0.5, float("inf"), True):
        with pytest.raises(ArgumentError, match="scale"):
            Laplace(bad, F(1))
        with pytest.raises(ArgumentError, match="step"):
            Gaussian(F(1), bad)
        with pytest.raises(ArgumentError, match="l1"):
            Laplace.for_loss(F(1), l1=bad)
        with pytest.raises(ArgumentError, match="l2"):
            Gaussian.for_loss(F(1), F(1, 9), l2=bad)
        with pytest.raises(ArgumentError, match="epsilon"):
            Gaussian.for_loss(bad, F(1, 9), l2=1)
    for delta in (0, 1, F(-1), -0.5):
        with pytest.raises(ArgumentError, match="delta"):
            Gaussian.for_loss(F(1), delta, l2=1)
    with pytest.raises(ArgumentError, match="dimension"):
        Laplace.for_loss(F(1), l1=1, dimension=0)
    with pytest.raises(ArgumentError, match="scale"):
        Laplace(F(1), F(1, 2**60))
    for answer in ([], None, np.array([]), np.array(["a"]), float("nan"), [float("inf")], True):
        with pytest.raises(ArgumentError, match="answer"):
            Laplace(F(1), F(1)).release(answer)
    for width in (-1, "wide", True):
        with pytest.raises(ArgumentError, match="half_width"):
            Laplace.for_half_width(width, confidence=0.9, step=1)
    with pytest.raises(ArgumentError, match="half_width"):
        Gaussian.for_half_width(0.1, confidence=0.9, step=1)
    with pytest.raises(ArgumentError, match="coordinates"):
        DiscreteGaussian(F(1)).delta(F(1), l2_squared=1, coordinates=0)
    with pytest.raises(ArgumentError, match="l2_squared"):
        DiscreteGaussian.for_epsilon(F(1), F(1, 9), l2_squared=F(1, 2))

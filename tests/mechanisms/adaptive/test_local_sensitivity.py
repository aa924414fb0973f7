"""Propose-test-release, the smooth median, subsample-and-aggregate: laws, bounds, mutants."""

import itertools
from fractions import Fraction as F

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.mechanisms import (
    DiscreteLaplace,
    ProposeTestRelease,
    SmoothMedian,
    SubsampleAggregate,
)
from mechanisms.realised import MP, divergence, fraction, realised_law, refuted


def laplace(scale, z):
    """The discrete Laplace law."""
    r = mpmath.exp(-1 / fraction(scale))
    return (1 - r) / (1 + r) * r ** abs(z)


def above(scale, t):
    """Pr[Z >= t] of the discrete Laplace law."""
    r = mpmath.exp(-1 / fraction(scale))
    return r**t / (1 + r) if t >= 1 else 1 - r ** (1 - t) / (1 + r)


def proposed(mechanism, value, distance, tau=None, reach=150):
    """The law of propose-test-release."""
    passes = above(mechanism.test_scale, (mechanism.tau if tau is None else tau) - distance)
    law = {value + z: passes * laplace(mechanism.value_scale, z) for z in range(-reach, reach + 1)}
    return law | {None: 1 - passes}


def test_ptr_realised_law(monkeypatch):
    """The sampler's law is the formula."""
    mechanism = ProposeTestRelease(F(1), F(1), F(1, 20))
    law, lost = realised_law(
        monkeypatch, lambda: mechanism.release(3, distance=2), floor=1e-8, reach=10
    )
    expected = proposed(mechanism, 3, 2)
    assert lost < 1e-3
    for o, p in law.items():
        assert p <= expected[o] + 1e-12
        assert expected[o] <= p + lost


@pytest.mark.parametrize("delta", [F(1, 10), F(1, 10**4)])
@pytest.mark.parametrize("epsilon", [F(1, 2), F(2)])
def test_ptr_keeps_its_loss(epsilon, delta):
    """Far and near tables: the law stays within (epsilon, delta); less does not.

    The mutants: a lower threshold, and a quarter of the value's scale.
    """
    mechanism = ProposeTestRelease.for_loss(epsilon, delta, bound=3)
    assert mechanism.loss(bound=3).charge.epsilon == epsilon
    assert above(mechanism.test_scale, mechanism.tau) <= fraction(delta)
    assert above(mechanism.test_scale, mechanism.tau - 1) > fraction(delta)
    for one, two in (((0, 0), (3, 1)), ((0, 4), (3, 5)), ((0, 1), (-3, 0)), ((0, 0), (1000, 0))):
        found = divergence(proposed(mechanism, *one), proposed(mechanism, *two), epsilon)
        assert found <= fraction(delta) + MP(10) ** -10
    for tau in (mechanism.tau - 1, 1):
        sides = (proposed(mechanism, v, 0, tau=tau) for v in (0, 1000))
        assert divergence(*sides, epsilon) > fraction(delta)
    loud = ProposeTestRelease(mechanism.test_scale, mechanism.value_scale / 4, delta)
    assert divergence(proposed(loud, 0, 50), proposed(loud, 3, 51), epsilon) > fraction(delta)


def test_ptr_audit():
    """Near and far tables do not refute (epsilon, delta) at 1e-7; a tenth of the noise does.

    The mutant on the far pair has too little noise on its value; on the near pair its test passes
    where a neighbour's answer is a thousand away.
    """
    epsilon, delta = F(1), F(1, 50)
    honest = ProposeTestRelease.for_loss(epsilon, delta, bound=3)

    def said(mechanism, value, distance, n=3000):
        found = [mechanism.release(value, distance=distance) for _ in range(n)]
        return [-9 if y is None else int(y >= 2) + int(y >= 500) for y in found]

    for one, two in (((0, 40), (3, 41)), ((0, 0), (1000, 0))):
        assert not refuted(said(honest, *one), said(honest, *two), 1.0, 0.02)
    loud = ProposeTestRelease(honest.test_scale, honest.value_scale / 10, delta)
    assert refuted(said(loud, 0, 40), said(loud, 3, 41), 1.0, 0.02)
    eager = ProposeTestRelease(honest.test_scale, honest.value_scale, delta)
    object.__setattr__(eager, "tau", 1)
    assert refuted(said(eager, 0, 0), said(eager, 1000, 0), 1.0, 0.02)


def test_subsample_realised_law(monkeypatch):
    """Two rows in two blocks, walked: the claim holds for the whole law, and no half the noise."""

    def law(scale, rows):
        method = SubsampleAggregate(2, 0, 2, DiscreteLaplace(scale))
        return realised_law(
            monkeypatch,
            lambda: method.release(rows, lambda block: 2 * max(block, default=0)),
            floor=1e-12,
            reach=30,
        )[0]

    def lost(scale):
        return divergence(law(scale, [0, 0]), law(scale, [0, 1]), F(1))

    assert SubsampleAggregate(2, 0, 2, DiscreteLaplace(F(2))).loss().charge.epsilon == 1
    assert lost(F(2)) < 1e-5
    assert lost(F(1)) > 1e-2


def test_ptr_error():
    """How often nothing is said, and how far a value may be off."""
    mechanism = ProposeTestRelease.for_loss(F(1), F(1, 10**6), bound=2)
    for far in (0, 10, 60):
        exact = 1 - above(mechanism.test_scale, mechanism.tau - far)
        assert mechanism.miss_probability(far) == pytest.approx(float(exact), abs=1e-12)
    assert mechanism.half_width(0.95) == DiscreteLaplace(F(4)).half_width(0.95)


def local(values, low, high):
    """The local sensitivity of the lower median, by trying every replacement."""
    m = (len(values) + 1) // 2 - 1
    here = sorted(values)[m]
    return max(
        abs(sorted([*values[:i], v, *values[i + 1 :]])[m] - here)
        for i in range(len(values))
        for v in range(low, high + 1)
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_smooth_sensitivity_is_smooth_and_above_local(n):
    """On every table over 0..4: S bounds the local sensitivity, and moves by at most 1/q."""
    median = SmoothMedian(0, 4, F(1), F(3, 5), F(2))
    known = {
        t: median.smooth_sensitivity(t)
        for t in itertools.combinations_with_replacement(range(5), n)
    }
    for table, smooth in known.items():
        assert smooth >= local(list(table), 0, 4)
        for i in range(n):
            for v in range(5):
                other = known[tuple(sorted([*table[:i], v, *table[i + 1 :]]))]
                assert smooth <= other / median.falloff


@settings(deadline=None, max_examples=50)
@given(
    st.fractions(F(1, 10), 4, max_denominator=20),
    st.fractions(F(1, 10**8), F(1, 10), max_denominator=10**8),
)
def test_smooth_median_loss_covers_the_continuous_law(epsilon, delta):
    """The delta claimed is at least that of the two worst Laplace laws, by quadrature."""
    if delta == 0:
        return
    median = SmoothMedian.for_loss(epsilon, delta, lower=0, upper=10)
    claimed = median.loss().charge
    assert claimed.epsilon == epsilon
    assert claimed.delta <= delta
    q, alpha = fraction(median.falloff), fraction(median.alpha)
    factor = mpmath.exp(fraction(epsilon))
    # The wide law (scale 1/(q·alpha)) against the narrow one, a whole S' = 1 away.
    for wide, narrow in ((1 / (q * alpha), 1 / alpha), (1 / alpha, 1 / (q * alpha))):

        def excess(y, s=wide, t=narrow):
            p = mpmath.exp(-abs(y) / s) / (2 * s)
            return max(MP(0), p - factor * mpmath.exp(-abs(y - 1) / t) / (2 * t))

        # Both laws are exponential beyond 0 and 1: the excess has its edges where they cross.
        edges = [0, 1]
        for side in (-1, 1):
            # log p - epsilon - log p' is linear in y beyond both centres.
            slope = side * (1 / narrow - 1 / wide)
            level = mpmath.log(narrow / wide) - fraction(epsilon)
            offset = level - side / narrow if side > 0 else level + 1 / narrow
            if slope != 0:
                edges.append(-offset / slope)
        marks = sorted({-4000 / alpha, *edges, 4000 / alpha})
        found = mpmath.quad(excess, [m for m in marks if abs(m) <= 4000 / alpha])
        assert found <= fraction(claimed.delta) * (1 + MP(10) ** -6) + MP(10) ** -12


def test_smooth_median_realised_law(monkeypatch):
    """What is released is the rounded continuous Laplace law around the median, clamped."""
    median = SmoothMedian(0, 20, F(1), F(1, 2), F(2))
    values = [10, 10, 10, 11, 9, 10, 10, 10, 10, 10, 10]
    scale = fraction(median.smooth_sensitivity(values) / median.alpha)
    law, lost = realised_law(monkeypatch, lambda: median.release(values), floor=1e-7, reach=20)
    assert lost < 1e-3

    def cdf(x):
        return mpmath.exp(x / scale) / 2 if x < 0 else 1 - mpmath.exp(-x / scale) / 2

    for y in range(21):
        low = -mpmath.inf if y == 0 else y - 10 - MP(1) / 2
        high = mpmath.inf if y == 20 else y - 10 + MP(1) / 2
        assert abs(law.get(y, 0) - (cdf(high) - cdf(low))) <= lost + 1e-9


def test_smooth_median_audit_and_mutant():
    """Two neighbouring tables do not refute the claim (1e-7); noise fitted to A_0 alone does.

    Ten zeros and ten hundreds: moving one zero to a hundred moves the median. A table with all its
    values at zero but for one has local sensitivity 0 nearby, which the mutant's noise tells.
    """
    median = SmoothMedian.for_loss(F(2), F(1, 100), lower=0, upper=100)
    here, there = [0] * 11 + [100] * 10, [0] * 10 + [100] * 11

    def outcomes(mechanism, tables, n=1500):
        return [[mechanism.release(t) // 10 for _ in range(n)] for t in tables]

    assert not refuted(*outcomes(median, (here, there)), 2.0, 0.01)
    fitted = SmoothMedian(0, 100, F(40), F(1, 2**20), F(60))
    assert refuted(*outcomes(fitted, (here, there)), 2.0, 0.01)


def test_smooth_median_error():
    """A concentrated table gets little noise, and the half-width is that of its law."""
    median = SmoothMedian.for_loss(F(1), F(1, 10**6), lower=0, upper=10**6)
    close = [500_000 + i for i in range(-1000, 1001)]
    smooth = median.smooth_sensitivity(close)
    assert 1 <= smooth < 40
    width = median.half_width(smooth, 0.95)
    outside = mpmath.exp(-(width + MP(1) / 2) * fraction(median.alpha / smooth))
    assert outside <= 0.0500001
    assert mpmath.exp(-(width - MP(1) / 2) * fraction(median.alpha / smooth)) > 0.05
    assert abs(median.release(close) - 500_000) < 10_000
    assert median.smooth_sensitivity([0]) > 10**5


def test_subsample_puts_each_row_in_one_block():
    """Every row is seen once; one row changes one result; failures are the lower bound."""
    method = SubsampleAggregate(5, 0, 1000, DiscreteLaplace(F(1, 10_000)))
    seen = []
    released = method.release(list(range(40)), lambda block: seen.extend(block) or len(block))
    assert sorted(seen) == list(range(40))
    assert released == 8  # 40 rows over 5 blocks, no noise
    assert method.release([1, 2, 3], lambda block: 1 // 0) == 0
    assert method.release([1, 2, 3], lambda block: 0.5) == 0
    assert method.release([1, 2, 3], lambda block: 10**9) == 1000


def test_no_exit_shows_that_a_record_is_there():
    """Whatever an estimator raises, exits and cancellations too, its block counts as the lowest."""
    method = SubsampleAggregate(5, 0, 1000, DiscreteLaplace(F(1, 10_000)))

    class Ended(BaseException):
        """Of nobody's tree."""

    def estimator(block, what):
        if 13 in block:
            raise what
        return 0

    for what in (SystemExit(3), GeneratorExit(), Ended(), MemoryError(), RecursionError()):
        assert method.release([1, 13], lambda block, what=what: estimator(block, what)) == 0
    # Anyone who sits at the keyboard can stop it.
    with pytest.raises(KeyboardInterrupt):
        method.release([13], lambda block: estimator(block, KeyboardInterrupt()))


def test_subsample_loss_and_audit():
    """One row moves one result by the whole range: the claim holds; the mutant's noise fails.

    The mutant takes the mean of m results to move by 1/m of what it does.
    """
    honest = SubsampleAggregate.mean(F(1), blocks=4, lower=0, upper=3)
    assert honest.loss().charge.epsilon == 1
    assert honest.half_width(0.9) == DiscreteLaplace(F(3)).half_width(0.9) / 4
    mutant = SubsampleAggregate(4, 0, 3, DiscreteLaplace(F(3, 4)))

    def outcomes(method, rows, n=1200):
        return [float(method.release(rows, lambda b: 3 * max(b, default=0))) for _ in range(n)]

    tables = ([0] * 8, [0] * 7 + [1])
    assert not refuted(*(outcomes(honest, t) for t in tables), 1.0)
    assert refuted(*(outcomes(mutant, t) for t in tables), 1.0)


def test_subsample_median_and_calibration():
    """The median's loss is its own, and a half-width is met by the least epsilon."""
    method = SubsampleAggregate.median(F(1), F(1, 10**6), blocks=400, lower=0, upper=100)
    assert method.loss().charge.epsilon == 1
    assert method.loss().charge.delta <= F(1, 10**6)
    assert 0 <= method.release([50] * 4000, lambda b: 50) <= 100
    made = SubsampleAggregate.for_half_width(0.5, blocks=100, lower=0, upper=20, confidence=0.9)
    assert made.half_width(0.9) <= 0.5
    with pytest.raises(ArgumentError, match="median"):
        method.half_width(0.9)


def test_refusals():
    """Parameters out of range are refused by name."""
    for delta in (0, 1, -0.1):
        with pytest.raises(ArgumentError, match="delta"):
            ProposeTestRelease(F(1), F(1), delta)
        with pytest.raises(ArgumentError, match="delta"):
            SmoothMedian.for_loss(F(1), delta, lower=0, upper=1)
    with pytest.raises(ArgumentError, match="test_scale"):
        ProposeTestRelease(0, F(1), F(1, 9))
    with pytest.raises(ArgumentError, match="bound"):
        ProposeTestRelease.for_loss(F(1), F(1, 9), bound=0)
    with pytest.raises(ArgumentError, match="test_share"):
        ProposeTestRelease.for_loss(F(1), F(1, 9), bound=1, test_share=F(1))
    mechanism = ProposeTestRelease(F(1), F(1), F(1, 9))
    for value, distance, name in ((0.5, 1, "value"), (1, 0.5, "distance"), (1, -1, "distance")):
        with pytest.raises(ArgumentError, match=name):
            mechanism.release(value, distance=distance)
    for low, high in ((0, 0), (1, 0), (0, 2**61), (0.0, 1)):
        with pytest.raises(ArgumentError, match="lower"):
            SmoothMedian(low, high, F(1), F(1, 2), F(2))
        with pytest.raises(ArgumentError, match="lower"):
            SubsampleAggregate.median(F(1), F(1, 9), blocks=3, lower=low, upper=high)
    with pytest.raises(ArgumentError, match="falloff"):
        SmoothMedian(0, 1, F(1), F(1), F(2))
    with pytest.raises(ArgumentError, match="epsilon"):
        SmoothMedian(0, 1, F(1), F(1, 2), F(1))
    with pytest.raises(ArgumentError, match="share"):
        SmoothMedian.for_loss(F(1), F(1, 9), lower=0, upper=1, share=F(1))
    with pytest.raises(ArgumentError, match="values"):
        SmoothMedian(0, 1, F(1), F(1, 2), F(2)).release([])
    with pytest.raises(ArgumentError, match="blocks"):
        SubsampleAggregate.mean(F(1), blocks=0, lower=0, upper=1)
    with pytest.raises(ArgumentError, match="aggregator"):
        SubsampleAggregate(3, 0, 1, F(1))
    with pytest.raises(ArgumentError, match="aggregator"):
        SubsampleAggregate(3, 0, 9, SmoothMedian(0, 1, F(1), F(1, 2), F(2)))

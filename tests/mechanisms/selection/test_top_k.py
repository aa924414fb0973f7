"""Top-k and peeling: realised laws against the formula and the claims, audits, mutants."""

import itertools
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    NoisyMax,
    Peeling,
    TopK,
)
from mechanisms.realised import divergence, fraction, realised_law, refuted, renyi, worst_ratio


def race(rate, utilities, k):
    """The law of the k largest of u_i + Gumbel noise: exponential weights without replacement."""
    law = {}
    for order in itertools.permutations(range(len(utilities)), k):
        left, p = set(range(len(utilities))), mpmath.mpf(1)
        for i in order:
            p *= mpmath.exp(rate * utilities[i])
            p /= sum(mpmath.exp(rate * utilities[j]) for j in left)
            left.remove(i)
        law[order] = p
    return law


def test_realised_law_is_the_race(monkeypatch):
    """The order picked has the law of the Gumbel race, for every order."""
    law, lost = realised_law(monkeypatch, lambda: TopK(F(1, 2), 2).draw([0, 1, 3, 1]), floor=1e-30)
    expected = race(mpmath.mpf(1) / 2, [0, 1, 3, 1], 2)
    assert lost < 1e-25
    assert law.keys() == expected.keys()
    assert max(abs(law[o] - p) for o, p in expected.items()) < 1e-14


@pytest.mark.parametrize("monotone", [False, True])
def test_loss_of_the_law(monotone):
    """Pure k·e and k·e²/8 by Rényi divergence hold for the law; half the scale breaks both."""
    k, rho = 3, F(1, 4)
    mechanism = TopK.for_rho(rho, k=k, sensitivity=1, monotone=monotone)
    loss = mechanism.loss(sensitivity=1, monotone=monotone).charge
    assert loss.rho <= rho
    assert loss.rho == pytest.approx(rho, rel=1e-12)
    pure = TopK.for_loss(F(2), k=k, sensitivity=1, monotone=monotone)
    assert pure.loss(sensitivity=1, monotone=monotone).charge.epsilon == 2
    here, there = [0, 0, 0, 9, 0], [1, 1, 1, 9 if monotone else 8, 0]
    broken_pure = broken_rho = False
    for factor in (1, 2):
        p, q = (race(fraction(pure.rate) * factor, u, k) for u in (here, there))
        if factor == 1:
            assert worst_ratio(p, q) <= 2
        else:
            broken_pure = worst_ratio(p, q) > 2
        p, q = (race(fraction(mechanism.rate) * factor, u, k) for u in (here, there))
        for alpha in (mpmath.mpf("1.01"), 2, 8, 30):
            found = max(renyi(p, q, alpha), renyi(q, p, alpha))
            if factor == 1:
                assert found <= alpha * fraction(loss.rho)
            broken_rho = broken_rho or found > alpha * fraction(loss.rho)
    assert broken_pure
    assert broken_rho


def test_black_box_audit():
    """Picks of 2 from 3 do not refute the loss (false alarm 1e-7); four times the rate does."""
    honest = TopK.for_loss(F(1), k=2, sensitivity=1)

    def picks(rate):
        mechanism = TopK(rate, 2)
        return [[mechanism.draw(u) for _ in range(1000)] for u in ([2, 1, 0], [0, 1, 2])]

    assert not refuted(*picks(honest.rate), 2.0)  # these tables are two steps apart
    assert refuted(*picks(8 * honest.rate), 2.0)


def test_shortfall_of_the_law():
    """The race's exact chance of a pick far below the k-th best is within the bound."""
    utilities = [9, 7, 7, 2, 1, 0]
    mechanism = TopK(F(1), 2)
    width = mechanism.shortfall(len(utilities), 0.9)
    law = race(mpmath.mpf(1), utilities, 2)
    far = sum(p for o, p in law.items() if min(utilities[i] for i in o) < 7 - width)
    assert far <= 0.1
    assert mechanism.miss_probability(width + 1, 6) <= 0.1 < mechanism.miss_probability(width, 6)


def peeled(monkeypatch, mechanism, values):
    """The realised law of a peeling."""
    return realised_law(monkeypatch, lambda: mechanism.release(values), floor=1e-9, reach=9)


@pytest.mark.parametrize(
    "noise",
    [DiscreteLaplace.for_loss(F(1), l1=1), DiscreteGaussian.for_loss(F(1, 2), l2_squared=1)],
)
def test_peeling_keeps_its_loss_in_law(monkeypatch, noise):
    """The joint law of pick and noisy value keeps the claimed loss; without fresh noise it fails.

    The mutant's value carries the noise of a tenth of the scale.
    """
    epsilon = F(1)
    pick = Exponential.for_loss(epsilon, sensitivity=1)
    mechanism = Peeling(pick, 1, noise)
    (p, lost_p), (q, lost_q) = (peeled(monkeypatch, mechanism, v) for v in ([3, -3], [2, -4]))
    loss = mechanism.loss(sensitivity=1).charge
    lost = lost_p + lost_q
    if isinstance(noise, DiscreteLaplace):
        assert loss.epsilon == 2
        assert divergence(p, q, F(2)) <= lost * mpmath.exp(2) + 1e-9
    else:
        assert loss.rho == F(1, 8) + F(1, 2)
        common = {o: x for o, x in p.items() if o in q}
        assert renyi(common, q, 2) <= 2 * fraction(loss.rho) + 1e-6
    tiny = DiscreteLaplace(F(1, 10)) if isinstance(noise, DiscreteLaplace) else None
    if tiny:
        p, q = (peeled(monkeypatch, Peeling(pick, 1, tiny), v)[0] for v in ([3, -3], [2, -4]))
        assert divergence(p, q, F(2)) > 0.1


def test_peeling_audit():
    """Picks with values do not refute epsilon (1e-7); a value with its pick's own noise does.

    The mutant is one race of Laplace noise that also says its winner's noisy value, at the rate of
    the pick: three level counts all rise by one, and the value moves with all three noises.
    """
    honest = Peeling.for_loss(F(2), k=1, sensitivity=1)
    assert honest.loss(sensitivity=1).charge.epsilon == 2

    def said(values, n=4000):
        found = [honest.release(values) for _ in range(n)]
        return [(where[0], int(noisy[0] >= 1)) for where, noisy in found]

    assert not refuted(said([0, 0, 0]), said([1, 1, 1]), 2.0)
    assert not refuted(said([1, -1]), said([0, -2]), 2.0)
    rate = F(2)  # a monotone race that costs 2 by its pick alone

    def reused(shift, n=30_000):
        noisy = DiscreteLaplace(1 / rate).draw((n, 3)) + shift
        where, top = noisy.argmax(axis=1), noisy.max(axis=1)
        return [(int(i), int(y >= 1)) for i, y in zip(where, top, strict=True)]

    assert refuted(reused(0), reused(1), 2.0)


def test_peeling_sums_its_parts():
    """k selections and the values at k times the sensitivity, in both currencies."""
    pick = NoisyMax.for_loss(F(1, 4), sensitivity=3, kind="laplace")
    mechanism = Peeling(pick, 4, DiscreteLaplace.for_loss(F(1), l1=12))
    assert mechanism.loss(sensitivity=3).charge.epsilon == 2
    assert mechanism.half_width(0.95) == DiscreteLaplace(F(12)).half_width(0.95)
    gumbel = Peeling(
        Exponential.for_loss(F(1, 4), sensitivity=3),
        4,
        DiscreteGaussian.for_loss(F(1, 32), l2_squared=36),
    )
    loss = gumbel.loss(sensitivity=3).charge
    assert (loss.epsilon, loss.rho) == (None, F(1, 32) + F(1, 32))


def test_peeling_finds_the_large():
    """Large coordinates of either sign are picked, and their own values come back."""
    mechanism = Peeling(Exponential(F(1)), 2, DiscreteLaplace(F(1, 100)))
    where, values = mechanism.release(np.array([1, -500, 2, 900, 0]))
    assert dict(zip(where, values, strict=True)) == {1: -500, 3: 900}


def test_refusals():
    """Sizes, floats and foreign parts are refused by name."""
    for k in (0, -1, 1.5, True):
        with pytest.raises(ArgumentError, match="k must"):
            TopK(F(1), k)
        with pytest.raises(ArgumentError, match="k must"):
            Peeling(Exponential(F(1)), k, DiscreteLaplace(F(1)))
    with pytest.raises(ArgumentError, match="rate"):
        TopK(-0.5, 1)
    with pytest.raises(ArgumentError, match="utilities"):
        TopK(F(1), 3).draw([1, 2])
    with pytest.raises(ArgumentError, match="sensitivity"):
        TopK.for_loss(F(1), k=1, sensitivity=0)
    with pytest.raises(ArgumentError, match="values"):
        Peeling(Exponential(F(1)), 3, DiscreteLaplace(F(1))).release([1, 2])
    with pytest.raises(ArgumentError, match="selection"):
        Peeling(TopK(F(1), 2), 3, DiscreteLaplace(F(1)))
    with pytest.raises(ArgumentError, match="noise"):
        Peeling(Exponential(F(1)), 3, F(1))

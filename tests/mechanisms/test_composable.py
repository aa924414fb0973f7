"""Every mechanism's composable loss covers its law on the worst neighbours, and no mutant's law.

Laws are computed: from the formula of the docstring where another test holds the sampler to it,
else by walking the sampler's own decisions.
"""

import itertools
import math
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest

from dither import privacy
from dither.mechanisms import (
    BinaryTree,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    KeyThreshold,
    Laplace,
    MaxNorm,
    NoisyMax,
    Peeling,
    PermuteAndFlip,
    ProposeTestRelease,
    RandomizedResponse,
    SmoothMedian,
    SparseVector,
    Staircase,
    SubsampleAggregate,
    TopK,
    Tulap,
    choose,
)
from dither.mechanisms import _composable as composable
from dither.privacy import Neighbours
from mechanisms.adaptive.test_local_sensitivity import proposed
from mechanisms.adaptive.test_sparse_vector import law as sparse_law
from mechanisms.counts.test_count_noises import law_of, shifted
from mechanisms.realised import (
    MP,
    fraction,
    gaussian_options,
    laplace_options,
    realised_law,
)
from mechanisms.selection.test_top_k import race

EPSILONS = [F(0), F(1, 2), F(1), F(2), F(4)]


def noise_law(noise, reach=None):
    """The law of discrete Laplace or Gaussian noise."""
    if isinstance(noise, DiscreteLaplace):
        options = laplace_options(noise.scale, reach or int(35 * noise.scale) + 20)[0]
    else:
        options = gaussian_options(noise.sigma2, reach or int(9 * noise.sigma2**0.5) + 12)[0]
    return {z: float(p) for z, p in options}


def moved(noise, change, reach=None):
    """The laws of independent noises, and of the same about ``change``."""
    one = noise_law(noise, reach)
    here, there = {(): 1.0}, {(): 1.0}
    for c in change:
        here = {(*o, z): p * q for o, p in here.items() for z, q in one.items()}
        there = {(*o, z + c): p * q for o, p in there.items() for z, q in one.items()}
    return here, there


def divergence(one, other, epsilon):
    """The larger hockey-stick divergence of two laws, in doubles."""
    factor = math.exp(epsilon)
    sides = []
    for p, q in ((one, other), (other, one)):
        sides.append(sum(max(0.0, float(x) - factor * float(q.get(o, 0))) for o, x in p.items()))
    return max(sides)


def covered(loss, laws):
    """Whether loss.delta is at least the divergence of the laws at every epsilon, less 1e-7."""
    return all(loss.delta(float(e)) >= divergence(*laws, e) - 1e-7 for e in EPSILONS)


def laplace(scale):
    """One number moved by 3, and two by 2 and 1."""
    noise = DiscreteLaplace(scale)
    return DiscreteLaplace(F(2)).loss(l1=3), [moved(noise, (3,)), moved(noise, (2, 1), 42)]


def gaussian(sigma2):
    """One number moved by 2: the pair itself."""
    loss = DiscreteGaussian(F(5)).loss(l2_squared=4, coordinates=1)
    return loss, [moved(DiscreteGaussian(sigma2), (2,)), moved(DiscreteGaussian(sigma2), (-1,))]


def gaussian_vector(sigma2):
    """Two numbers moved by 1, on a coarse lattice: zCDP."""
    loss = DiscreteGaussian(F(5)).loss(l2_squared=2)
    return loss, [moved(DiscreteGaussian(sigma2), (1, 1))]


def fine_gaussian(sigma2):
    """A lattice fine enough for the continuous pair; 90 steps are a deviation."""
    loss = DiscreteGaussian(F(8200)).loss(l2_squared=90**2, coordinates=7)
    return loss, [moved(DiscreteGaussian(sigma2), (90,))]


def real_laplace(scale):
    """An answer that moves by 13/10 on a lattice of 1/2: three steps."""
    loss = Laplace(F(2), F(1, 2)).loss(l1=F(13, 10))
    return loss, [moved(Laplace(scale, F(1, 2)).noise, (3,))]


def real_gaussian(sigma2):
    """The same with Gaussian noise."""
    loss = Gaussian(F(2), F(1, 2)).loss(l2=F(13, 10))
    return loss, [moved(Gaussian(sigma2, F(1, 2)).noise, (3,))]


def staircase(epsilon):
    """All shifts up to the sensitivity."""
    law = law_of(Staircase(epsilon, 3, 2))
    loss = Staircase(F(1), 3, 2).loss(sensitivity=3)
    return loss, [(law, shifted(law, by)) for by in (1, 2, 3)]


def tulap(epsilon):
    """A count that moves by one."""
    law = law_of(Tulap(epsilon, F(1, 50)))
    return Tulap(F(1), F(1, 50)).loss(), [(law, shifted(law, 1))]


def largest_norm(scale):
    """Two coordinates, both moved."""
    weights = {
        z: mpmath.exp(-max(map(abs, z)) / fraction(scale))
        for z in itertools.product(range(-25, 26), repeat=2)
    }
    total = mpmath.fsum(weights.values())
    law = {z: w / total for z, w in weights.items()}
    there = {(a + 1, b - 1): p for (a, b), p in law.items()}
    return MaxNorm(F(1), 2).loss(linf=1), [(law, there)]


def binary_tree(scale):
    """Two steps: an event more in the first moves its leaf and the root."""
    loss = BinaryTree(2, DiscreteLaplace(F(1))).loss(sensitivity=1)
    return loss, [moved(DiscreteLaplace(scale), (1, 1))]


def gaussian_tree(sigma2):
    """The same with Gaussian noise."""
    loss = BinaryTree(2, DiscreteGaussian(F(2))).loss(sensitivity=1)
    return loss, [moved(DiscreteGaussian(sigma2), (1, 1))]


def fast_tree(sigma2):
    """Three events more at once: bounded by the norm of all levels."""
    loss = BinaryTree(2, DiscreteGaussian(F(12))).loss(sensitivity=3)
    return loss, [moved(DiscreteGaussian(sigma2), (3, 3))]


def sparse(scale):
    """Every sequence of answers, on streams moved up, down and both ways."""
    mechanism = SparseVector(scale, 2 * scale)
    loss = SparseVector(F(2), F(4)).loss(sensitivity=1)
    pairs = [((0,) * 4, (1,) * 4), ((0,) * 4, (-1, -1, -1, 1)), ((0,), (-1,))]
    return loss, [tuple(sparse_law(mechanism, q) for q in pair) for pair in pairs]


def bare_threshold(flaw):
    """The variant without noise on the threshold, as a mutant of the whole."""
    mechanism = SparseVector(F(2), F(4))
    loss = mechanism.loss(sensitivity=1)
    pair = ((0,) * 12, (1,) * 12)
    return loss, [tuple(sparse_law(mechanism, q, threshold_noise=not flaw) for q in pair)]


def sparse_values(scale):
    """Two answers, the first above with a value; the value's noise is the mutant's."""
    loss = SparseVector(F(2), F(4), 1, F(2)).loss(sensitivity=1)
    mechanism = SparseVector(F(2), F(4))
    found = []
    for q in ((0, 0), (1, 1)):
        law = {}
        for path, p in sparse_law(mechanism, q).items():
            where = path.find("1")
            values = noise_law(DiscreteLaplace(scale)) if where >= 0 else {None: MP(1)}
            for z, w in values.items():
                law[path, None if z is None else z + q[where]] = p * w
        found.append(law)
    return loss, [tuple(found)]


def test_release(scale):
    """Tables near and far, for propose-test-release."""
    honest = ProposeTestRelease(F(2), F(6), F(1, 50))
    mechanism = ProposeTestRelease(F(2), scale, F(1, 50))
    pairs = [((0, 4), (3, 5)), ((0, 0), (1000, 0)), ((0, 1), (-3, 0))]
    laws = [tuple(proposed(mechanism, *side) for side in pair) for pair in pairs]
    return honest.loss(bound=3), laws


test_release.__test__ = False


def subsample(scale):
    """One block's result moves by the whole range."""
    honest = SubsampleAggregate(4, 0, 3, DiscreteLaplace(F(3)))
    return honest.loss(), [moved(DiscreteLaplace(scale), (3,))]


def top_k(rate):
    """Two of four, all utilities moved against one."""
    loss = TopK(F(1, 4), 2).loss(sensitivity=1)
    laws = tuple(race(fraction(rate), u, 2) for u in ([0, 0, 1, 9], [1, 1, 0, 8]))
    return loss, [laws]


def response(epsilon):
    """Two truths among four."""
    e = mpmath.exp(fraction(epsilon))
    laws = tuple({i: (e if i == t else 1) / (e + 3) for i in range(4)} for t in (0, 1))
    return RandomizedResponse(F(1), 4).loss(), [laws]


def keys(delta):
    """A unit more: one group's count rises, and a group of its own may show."""
    noise = DiscreteLaplace(F(1))
    rule, mutant = (KeyThreshold(noise, 2, d) for d in (F(1, 50), delta))
    loss = rule.loss() + noise.loss(l1=1)
    one = noise_law(noise)
    here = {(z, None): p for z, p in one.items()}
    there = {}
    for z, p in one.items():
        for w, q in one.items():
            shown = 1 + w if 1 + w >= mutant.tau else None
            there[z + 1, shown] = there.get((z + 1, shown), MP(0)) + p * q
    return loss, [(here, there)]


def chosen(sigma2):
    """What the chooser gives for one count with delta: canonical noise; the mutant's is smaller."""
    choice = choose(l1=1, dimension=1, epsilon=F(1), delta=F(1, 10))
    law = law_of(Tulap(sigma2, F(1, 10)))
    return choice.loss(), [(law, shifted(law, 1))]


def gumbel(rate):
    """Report-noisy-max with Gumbel noise."""
    return NoisyMax(rate, "gumbel")


CASES = [
    (laplace, F(2), F(1)),
    (gaussian, F(5), F(5, 4)),
    (gaussian_vector, F(5), F(5, 4)),
    (fine_gaussian, F(8200), F(2050)),
    (real_laplace, F(2), F(1)),
    (real_gaussian, F(2), F(1, 2)),
    (staircase, F(1), F(2)),
    (tulap, F(1), F(2)),
    (largest_norm, F(1), F(1, 2)),
    (binary_tree, F(1), F(1, 2)),
    (gaussian_tree, F(2), F(1, 2)),
    (fast_tree, F(12), F(3)),
    (sparse, F(2), F(1, 2)),
    (bare_threshold, 0, 1),
    (sparse_values, F(2), F(1, 2)),
    (test_release, F(6), F(2)),
    (subsample, F(3), F(3, 4)),
    (top_k, F(1, 4), F(1)),
    (response, F(1), F(2)),
    (keys, F(1, 50), F(1, 4)),
    (chosen, F(1), F(2)),
]


@pytest.mark.parametrize(("case", "honest", "mutant"), CASES)
def test_loss_covers_the_law(case, honest, mutant):
    """The honest parameter's laws are covered; with less noise, or none, at least one is not."""
    loss, laws = case(honest)
    assert all(covered(loss, pair) for pair in laws)
    _, broken = case(mutant)
    assert not all(covered(loss, pair) for pair in broken)


@pytest.mark.parametrize("make", [Exponential, PermuteAndFlip, NoisyMax, gumbel])
def test_selections(monkeypatch, make):
    """The sampler's own decisions, walked: the loss covers its law, and not that of four times."""

    def laws(rate):
        return tuple(
            realised_law(monkeypatch, lambda u=u: make(rate).draw(u), floor=1e-11)[0]
            for u in ([0, 0, 1], [1, 1, 0])
        )

    loss = make(F(1, 2)).loss(sensitivity=1)
    assert covered(loss, laws(F(1, 2)))
    assert not covered(loss, laws(F(2)))


def test_laplace_race():
    """Two candidates under Laplace noise: the law of the difference decides."""
    loss = NoisyMax(F(1, 2), "laplace").loss(sensitivity=1)

    def laws(rate):
        one = noise_law(DiscreteLaplace(1 / rate))
        found = []
        for u, v in ((0, 1), (1, 0)):
            wins = mpmath.fsum(
                p * q * (1 if u + a > v + b else F(1, 2) if u + a == v + b else 0)
                for a, p in one.items()
                for b, q in one.items()
            )
            found.append({0: wins, 1: 1 - wins})
        return tuple(found)

    assert covered(loss, laws(F(1, 2)))
    assert not covered(loss, laws(F(2)))


def test_peeling(monkeypatch):
    """A pick and its value, walked; the mutant's value has a quarter of the noise."""
    pick = Exponential(F(1, 2))

    def laws(scale):
        mechanism = Peeling(pick, 1, DiscreteLaplace(scale))
        return tuple(
            realised_law(monkeypatch, lambda v=v: mechanism.release(v), floor=1e-9, reach=25)[0]
            for v in ([2, -2], [1, -3])
        )

    loss = Peeling(pick, 1, DiscreteLaplace(F(1))).loss(sensitivity=1)
    assert covered(loss, laws(F(1)))
    assert not covered(loss, laws(F(1, 4)))
    many = Peeling(pick, 5, DiscreteGaussian(F(9))).loss(sensitivity=1)
    assert many.epsilon(1e-6) < (5 * privacy.pure(1.0) + 5 * privacy.zcdp(1 / 18)).epsilon(1e-6)


def test_smooth_median():
    """Two tables that differ in one value: the rounded law; noise of a twentieth fails."""
    tables = [5] * 6 + [6] * 5, [5] * 5 + [6] * 6

    def law(mechanism, table):
        scale = fraction(mechanism.smooth_sensitivity(table) / mechanism.alpha)
        middle = sorted(table)[5]

        def below(x):
            return mpmath.exp(x / scale) / 2 if x < 0 else 1 - mpmath.exp(-x / scale) / 2

        edges = [MP(0), *(below(y - middle + MP(1) / 2) for y in range(12)), MP(1)]
        return {y: b - a for y, (a, b) in enumerate(itertools.pairwise(edges))}

    def laws(mechanism):
        return tuple(law(mechanism, table) for table in tables)

    honest = SmoothMedian(0, 12, F(1), F(1, 2), F(2))
    loss = honest.loss()
    assert covered(loss, laws(honest))
    assert not covered(loss, laws(SmoothMedian(0, 12, F(20), F(1, 2**30), F(50))))


def test_fine_lattices_are_covered_by_coarse_ones(monkeypatch):
    """With few atoms allowed the pair is one of a coarser lattice, and still covers the law."""
    monkeypatch.setattr(composable, "_ATOMS", 4)
    noise = DiscreteLaplace(F(7))
    loss = noise.loss(l1=10)
    assert loss.parts[0][0].sensitivity <= 4
    assert covered(loss, moved(noise, (10,)))
    assert not covered(loss, moved(DiscreteLaplace(F(7, 2)), (10,)))
    exact = privacy.discrete_laplace(7.0, sensitivity=10)
    assert loss.delta(0.5) == pytest.approx(float(exact.delta(0.5)), rel=0.1)


def test_fine_lattices_stay_tight():
    """A million steps cost no more than a thousandth over the lattice itself."""
    loss = Laplace.for_loss(F(1), l1=1).loss(l1=1)
    assert 1 <= loss.epsilon(0) < 1.001
    smooth = Gaussian.for_loss(F(1), F(1, 10**6), l2=1, dimension=9)
    assert smooth.loss(l2=1, dimension=9).epsilon(1e-6) == pytest.approx(1, rel=1e-4)


def test_one_coordinate_is_the_worst_of_laplace_noise():
    """Every split of an L1 norm has divergences of at most the whole on one coordinate."""
    noise = DiscreteLaplace(F(3, 2))
    whole = [divergence(*moved(noise, (4,), 35), e) for e in EPSILONS]
    for change in ((3, 1), (2, 2), (1, -3)):
        split = [divergence(*moved(noise, change, 35), e) for e in EPSILONS]
        assert all(s <= w + 1e-8 for s, w in zip(split, whole, strict=True))


def test_neighbours_and_nothing():
    """The relation is passed on, and what does not move costs nothing."""
    found = [
        DiscreteLaplace(F(1)).loss(l1=1, neighbours=Neighbours.REPLACE),
        DiscreteGaussian(F(1)).loss(l2_squared=1, neighbours=Neighbours.REPLACE),
        MaxNorm(F(1), 2).loss(linf=1, neighbours=Neighbours.REPLACE),
        Tulap(F(1), F(1, 9)).loss(neighbours=Neighbours.REPLACE),
        Peeling.for_loss(F(1), k=2, sensitivity=1).loss(
            sensitivity=1, neighbours=Neighbours.REPLACE
        ),
        BinaryTree.for_loss(F(1), horizon=9, sensitivity=1).loss(
            sensitivity=1, neighbours=Neighbours.REPLACE
        ),
    ]
    assert all(loss.neighbours is Neighbours.REPLACE for loss in found)
    still = [
        DiscreteLaplace(F(1)).loss(l1=0),
        DiscreteGaussian(F(1)).loss(l2_squared=0),
        MaxNorm(F(1), 2).loss(linf=0),
        Peeling.for_loss(F(1), k=2, sensitivity=1).loss(sensitivity=0),
    ]
    assert all(np.isclose(loss.delta(0.0), 0, atol=1e-11) for loss in still)

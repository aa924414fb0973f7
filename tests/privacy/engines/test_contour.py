"""The smoothed contour, for laws whose generating function never fades.

The oracle adds up every outcome of a product of mass functions, as exact fractions.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.privacy.engines.choice import Chernoff
from dither.privacy.engines.contour import Contour
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.discrete_gaussian import DiscreteGaussianLaw
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm

mpf = mpmath.mpf
MASSES = st.lists(st.integers(1, 40), min_size=3, max_size=4)


def atoms(p, q, count):
    """The pair's term."""
    losses = np.array([math.log(a / b) for a, b in zip(p, q, strict=True)])
    order = np.argsort(losses)
    return AtomTerm(losses[order], np.array([float(a) for a in p])[order], count)


def brute(p, q, k, e):
    """The hockey-stick divergence of k-fold products, outcome by outcome up to order."""
    total = mpf(0)
    for outcome in itertools.combinations_with_replacement(range(len(p)), k):
        ways = math.factorial(k)
        for i in range(len(p)):
            ways //= math.factorial(outcome.count(i))
        a = ways * math.prod((p[i] for i in outcome), start=Fraction(1))
        b = ways * math.prod((q[i] for i in outcome), start=Fraction(1))
        gap = mpf(a.numerator) / a.denominator - mpmath.exp(e) * b.numerator / b.denominator
        total += max(mpf(0), gap)
    return total


@settings(deadline=None, max_examples=40)
@given(MASSES, st.permutations([0, 1, 2, 3]), st.integers(1, 9), st.floats(0.05, 0.8))
def test_atoms(masses, order, k, part):
    """A few atoms a few times, where nothing at all fades: inside, and narrow."""
    other = [masses[i] for i in order if i < len(masses)]
    p = [Fraction(x, sum(masses)) for x in masses]
    q = [Fraction(x, sum(other)) for x in other]
    top = k * math.log(max(a / b for a, b in zip(p, q, strict=True)))
    epsilon = part * top
    if top < 0.1:
        return
    with mpmath.workdps(40):
        truth = brute(p, q, k, mpf(epsilon))
        if truth < 1e-12:
            return
        found = Contour([atoms(p, q, k)], log_delta=None, epsilon=epsilon, smoothed=True)
        assume(found.certified)
        low, high = found.bounds(epsilon)
        assert math.exp(low) <= truth * (1 + mpf(10) ** -12)
        assert truth <= math.exp(high) * (1 + mpf(10) ** -12)
        # An atom may lie at epsilon itself; then the smoothing shows to first order.
        assert high - low < 0.05


def test_at_an_atom(monkeypatch):
    """Asked exactly at an atom, and with the price of smoothing left out, which must show."""
    p, q = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)], [Fraction(1, 4)] * 2 + [Fraction(1, 2)]
    epsilon = 3 * math.log(2)
    with mpmath.workdps(40):
        truth = float(brute(p, q, 5, mpf(epsilon)))
    found = Contour([atoms(p, q, 5)], log_delta=None, epsilon=epsilon, smoothed=True)
    low, high = found.bounds(epsilon)
    assert math.exp(low) <= truth <= math.exp(high)
    monkeypatch.setattr(Contour, "_price", lambda *_: 0.0)
    low, _ = found.bounds(epsilon)
    assert math.exp(low) > truth


def test_a_tilt_that_is_known():
    """What is found with another's tilt is what would have been found with its own."""
    terms = [SampledGaussianTerm(1.3, 0.01, True, 3000)]
    bound = Chernoff(terms, log_delta=None, epsilon=0.8)
    ends = [
        Contour(terms, log_delta=None, epsilon=0.8, tilt=t).bounds(0.8) for t in (None, bound.tilt)
    ]
    assert ends[0] == ends[1]
    # Any other is as sound, if it is one at all.
    low, high = Contour(terms, log_delta=None, epsilon=0.8, tilt=(bound.c / 2, ends[0][0])).bounds(
        0.8
    )
    assert low <= ends[0][1]
    assert ends[0][0] <= high


def test_a_quick_bound_of_what_is_cut(monkeypatch):
    """Many repetitions take the quick bound alone, and few the closer one too."""
    asked = []
    close = SampledGaussianTerm.fade_of_shift

    def spy(self, c, u, moment):
        asked.append(self.count)
        return close(self, c, u, moment)

    monkeypatch.setattr(SampledGaussianTerm, "fade_of_shift", spy)
    for count, epsilon in ((10_000, 3.0), (20, 0.1)):
        term = SampledGaussianTerm(1.6, 0.01, True, count)
        Contour([term], log_delta=None, epsilon=epsilon)
    assert asked == [20]


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.3, 0.9])
def test_few_laplaces(k, epsilon):
    """Few Laplace losses keep atoms: held against the same loss on two fine grids."""
    from dither.privacy.engines.grid import Grid

    terms = [LaplaceTerm(np.array([1.0]), np.array([float(k)]))]
    found = Contour(terms, log_delta=None, epsilon=epsilon, smoothed=True)
    low, high = found.bounds(epsilon)
    below, above = Grid(terms, log_delta=None, epsilon=epsilon).bounds(epsilon)
    assert low <= above
    assert below <= high
    assert high - low < 1e-7
    if k == 1:
        truth = math.log(-math.expm1((epsilon - 1.0) / 2))
        assert low <= truth <= high


@pytest.mark.parametrize(
    "total",
    [
        1000 * privacy.randomized_response(1, 4).poisson(0.01),
        1000 * privacy.pair([0.5, 0.3, 0.2], [0.48, 0.31, 0.21]),
        10 * privacy.laplace(1) + 5 * privacy.laplace(2),
        100_000 * privacy.gaussian(1).poisson(1e-5),
        1000 * privacy.gaussian(0.7).poisson(1e-3),
    ],
    ids=["response", "pair", "laplace", "sparse", "rare"],
)
def test_narrow(total):
    """Settings that used to be wide are known to better than a millionth."""
    found = total.epsilon(1e-6)
    assert found.upper - found.lower <= 1e-6 * found.upper


@pytest.mark.parametrize(("sigma", "shift"), [(2.1, 1), (3.0, 2), (5.0, 7)])
def test_discrete_gaussians_by_their_theta_function(sigma, shift):
    """The generating function is the Gaussian's as far as is said, and a sum of atoms beyond."""
    term = DiscreteGaussianLaw(sigma, shift).term(5)
    c, edge = 3.0, math.pi * sigma**2 / (2 * shift)
    with mpmath.workdps(120):
        v = mpmath.mpf(sigma) ** 2
        xs = range(-300, 300)
        mass = [mpmath.exp(-(x**2) / (2 * v)) for x in xs]
        losses = [(shift**2 - 2 * shift * x) / (2 * v) for x in xs]

        def moment(t):
            return sum(m * mpmath.exp(t * y) for m, y in zip(mass, losses, strict=True)) / sum(mass)

        for u in (np.linspace(0, edge, 5) * (1 - 1e-12), np.linspace(0, 1.9 * edge, 5)):
            base, value, slack = term.along(c, u)
            exact = [5 * mpmath.log(moment(c + 1j * mpmath.mpf(x))) for x in u.tolist()]
            for found, wrong, truth in zip(base + value, slack, exact, strict=True):
                gap = complex(mpmath.exp(truth - mpmath.mpc(found)))
                assert abs(gap - 1) <= math.expm1(wrong)
                assert wrong < 1e-12 or u[-1] > edge
    assert term.cost(c, edge / 2) == 1.0 < term.cost(c, 2 * edge)
    plain = AtomTerm(term.losses, term.probabilities, 5)
    assert term.log_moment(np.array([c])) == pytest.approx(plain.log_moment(np.array([c])))

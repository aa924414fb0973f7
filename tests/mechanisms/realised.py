"""The law that a sampler realises, computed: every path of its random decisions, each weighed.

While `realised_law` runs a sampler, the sources of randomness that mechanisms use are replaced by
one that takes a given branch and notes the others with their probabilities. The sampler is run
again for each branch until all paths above ``floor`` are walked. What was cut is added up: each
probability in the answer is a lower bound, short by at most ``lost`` in all.
"""

from collections import defaultdict
from contextlib import suppress
from functools import lru_cache
from itertools import permutations

import mpmath
import numpy as np

from dither import noise
from dither.mechanisms import _coins as coins

MP = mpmath.mpf


class Cut(Exception):
    """The path became too improbable."""


def fraction(value):
    """A rational in mpmath."""
    return MP(value.numerator) / value.denominator


class Walk:
    """One walk through the tree of decisions: a given prefix, then the first branch each time."""

    def __init__(self, prefix, floor, reach):
        self.prefix, self.floor, self.reach = prefix, floor, reach
        self.taken, self.weight = [], MP(1)
        self.waiting, self.lost = [], MP(0)

    def take(self, options, rest=0):
        """Decide among (value, probability) pairs; ``rest`` is what the options leave out."""
        depth = len(self.taken)
        if depth < len(self.prefix):
            branch = self.prefix[depth]
        else:
            options = sorted(options, key=lambda o: -o[1])
            branch = 0
            self.lost += self.weight * rest
            for i, (_, p) in enumerate(options[1:], start=1):
                if self.weight * p >= self.floor:
                    self.waiting.append([*self.taken, i])
                else:
                    self.lost += self.weight * p
        if depth < len(self.prefix):
            options = sorted(options, key=lambda o: -o[1])
        value, p = options[branch]
        self.taken.append(branch)
        if self.weight * p < self.floor:
            self.lost += self.weight * p
            raise Cut
        self.weight *= p
        return value

    def coin(self, p):
        return self.take([(True, p), (False, 1 - p)])

    def bernoulli_exp(self, gamma, *, words=None):
        return self.coin(mpmath.exp(-fraction(gamma)))

    def bernoulli(self, p, size, *, words=None):
        return np.array([self.coin(fraction(p)) for _ in range(size)], dtype=bool)

    def below(self, n, size, *, words=None):
        each = [(i, MP(1) / n) for i in range(n)]
        return np.array([self.take(each) for _ in range(size)], dtype=np.int64)

    def choose(self, weights, size, *, words=None):
        total = sum(int(w) for w in weights)
        each = [(i, MP(int(w)) / total) for i, w in enumerate(weights)]
        return np.array([self.take(each) for _ in range(size)], dtype=np.int64)

    def permutation(self, n, *, words=None):
        orders = list(permutations(range(n)))
        return np.array(self.take([(o, MP(1) / len(orders)) for o in orders]))

    def discrete_laplace(self, scale, size, *, words=None):
        options, rest = laplace_options(scale, self.reach)
        return np.array([self.take(options, rest) for _ in range(size)], dtype=np.int64)

    def discrete_laplace_one(self, scale):
        return int(self.discrete_laplace(scale, 1)[0])

    def discrete_gaussian(self, sigma2, size, *, words=None):
        options, rest = gaussian_options(sigma2, self.reach)
        return np.array([self.take(options, rest) for _ in range(size)], dtype=np.int64)

    def real_coins(self, bounds, size):
        low, high = bounds(160)
        assert high - low < 2.0**-150
        p = fraction((low + high) / 2)
        return np.array([self.coin(p) for _ in range(size)], dtype=bool)


@lru_cache
def laplace_options(scale, reach):
    """[(z, Pr[Z = z])] for |z| <= reach, and what is left."""
    r = mpmath.exp(-1 / fraction(scale))
    options = [(z, (1 - r) / (1 + r) * r ** abs(z)) for z in range(-reach, reach + 1)]
    return options, 2 * r ** (reach + 1) / (1 + r)


@lru_cache
def gaussian_options(sigma2, reach):
    """[(z, Pr[Z = z])] for |z| <= reach, and what is left."""
    s2 = 2 * fraction(sigma2)
    wide = range(-reach - 60, reach + 61)
    total = mpmath.fsum(mpmath.exp(-z * z / s2) for z in wide)
    options = [(z, mpmath.exp(-z * z / s2) / total) for z in range(-reach, reach + 1)]
    return options, 1 - mpmath.fsum(p for _, p in options)


def realised_law(monkeypatch, run, *, floor=1e-12, reach=12):
    """({outcome: probability}, lost) of a sampler ``run`` without arguments."""
    law, lost, waiting = defaultdict(MP), MP(0), [[]]
    with monkeypatch.context() as patch:
        while waiting:
            walk = Walk(waiting.pop(), floor, reach)
            for name in (
                "bernoulli",
                "bernoulli_exp",
                "below",
                "choose",
                "permutation",
                "discrete_laplace",
                "discrete_laplace_one",
                "discrete_gaussian",
            ):
                patch.setattr(noise, name, getattr(walk, name))
            patch.setattr(coins, "real_coins", walk.real_coins)
            with suppress(Cut):
                law[run()] += walk.weight
            lost += walk.lost
            waiting += walk.waiting
    assert abs(mpmath.fsum(law.values()) + lost - 1) < 1e-13
    return dict(law), lost


def divergence(one, other, epsilon):
    """The larger hockey-stick divergence, at epsilon, of two laws, in either direction."""
    factor = mpmath.exp(fraction(epsilon))
    outcomes = one.keys() | other.keys()
    return max(
        mpmath.fsum(max(MP(0), p.get(o, MP(0)) - factor * q.get(o, MP(0))) for o in outcomes)
        for p, q in ((one, other), (other, one))
    )


def worst_ratio(one, other):
    """The largest |log ratio| of two laws over the outcomes that both have."""
    return max(abs(mpmath.log(one[o] / other[o])) for o in one.keys() & other.keys())


def renyi(one, other, alpha):
    """The Rényi divergence of order alpha."""
    return mpmath.log(mpmath.fsum(p**alpha * other[o] ** (1 - alpha) for o, p in one.items())) / (
        alpha - 1
    )


def refuted(here, there, epsilon, delta=0.0, level=1e-7):
    """Whether samples of outcomes on two neighbours refute (epsilon, delta): a black-box audit.

    The events (each outcome, and for delta > 0 their upper sets) are those of the sample space seen
    in the first half of each sample; the second halves are counted, with Clopper-Pearson bounds at
    a joint level. A true claim is refuted with probability at most ``level``.
    """
    from math import exp

    from scipy.stats import beta

    half = len(here) // 2
    events = sorted(set(here[:half]) | set(there[:half]))
    share = level / (8 * len(events))
    one, two = (
        np.array([events.index(o) if o in events else -1 for o in s[half:]]) for s in (here, there)
    )
    for a, b in ((one, two), (two, one)):
        for e in range(len(events)):
            for p, q in ((a == e, b == e), (a >= e, b >= e)):
                x, y = int(p.sum()), int(q.sum())
                low = beta.ppf(share, x, p.size - x + 1) if x else 0.0
                high = beta.ppf(1 - share, y + 1, q.size - y) if y < q.size else 1.0
                if low > exp(epsilon) * high + delta:
                    return True
    return False

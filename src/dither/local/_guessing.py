"""The best guess from a report: by its likelihoods, or in closed form where it has many forms.

Closed forms are of bits, hashed buckets and subsets. A report of bits gives value v the weight
w_v = pi_v·L_v(bit of v), or L_v without a prior. Given that x is held, the bits of the others are
independent, so with t the weight of x, a_v = Pr[w_v < t] and b_v = Pr[w_v = t]::

    Pr[guess = x] = E[no w_v above t; 1/(1 + number of ties)] = integral over u in [0, 1] of
                    the product over v of (a_v + b_v·u)

a polynomial in u, which Gauss and Legendre's rule integrates exactly; where its degree is large,
the rule is applied on intervals that halve towards 1. A hashed report says y, and then supports
each other value by a chance of its own, as an ideal hash does: bits again. Of a subset the others'
bits are drawn without replacement, which is hypergeometric.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

Array = npt.NDArray[np.float64]

_TIE = 1e-12
"""A part within which likelihoods are the same, and a guess among their values is fair."""
_CERTAIN = 1e300
_EXACT = 256
# The last interval is 2^-48 long, and no chance is above 1: no more of the integral lies there.
_HALVINGS = 48
_MAX_WORK = 1 << 28


def best_guesses(weights: Array) -> npt.NDArray[np.bool_]:
    """Which values are best guesses for each report, shape (k, reports); rounding makes no ties."""
    top = weights.max(axis=0)
    return np.asarray((weights >= top * (1 - _TIE)) & (top > 0))


def guessed_from(reports: npt.NDArray[np.bool_], own: float, others: Array, prior: Array) -> Array:
    """What reports that are values themselves add to the success of the best guess, shape (k,).

    A report y is sent by the holders of y with chance `own`, and by those of another value x with
    chance `others[x]`, whichever report it is; `own` is the largest. So besides y itself only the
    values of largest weight can be best guesses, and no matrix is needed.

    Parameters
    ----------
    reports : array of bool, shape (k,)
        Which reports are counted.
    own : float
    others : array of float, shape (k,)
    prior : array of float, shape (k,)
        Weights of the values; ones without a prior.
    """
    mine, theirs = own * prior, others * prior
    top = float(theirs.max())
    rivals = (theirs >= top * (1 - _TIE)) & (top > 0)
    itself = (mine >= top * (1 - _TIE)) & (mine > 0)
    beaten = mine <= top * (1 + _TIE)
    number = itself + np.where(beaten, rivals.sum() - rivals, 0)
    shared = np.where(reports & (number > 0), 1 / np.maximum(number, 1), 0.0)
    elsewhere = np.where(beaten, shared, 0.0)
    return np.asarray(own * itself * shared + rivals * others * (elsewhere.sum() - elsewhere))


def bit_guesses(own: Array, ones: Array, prior: Array | None) -> Array:
    """Success of the best guess on the holders of each value, shape (k,).

    `own`, shape (k, 2), holds Pr[own bit is 0] and Pr[own bit is 1] of a holder, which may sum to
    less than 1, to be summed over several forms of reports; `ones`, shape (k,), Pr[the bit of v is
    1] of those who do not hold v. Refused where too many values are all different.
    """
    chance = np.column_stack([1 - ones, ones])
    odds = np.divide(own, chance, out=np.full(own.shape, _CERTAIN), where=chance > 0)
    weights = odds if prior is None else odds * prior[:, None]
    rows = np.column_stack([own, ones, weights])
    if (rows == rows[0]).all():
        kinds, which, sizes = rows[:1], np.zeros(len(rows), np.intp), np.array([len(rows)])
    else:
        kinds, which, sizes = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    own, weights = kinds[:, :2], kinds[:, 3:]
    chance = np.column_stack([1 - kinds[:, 2], kinds[:, 2]])
    found = np.zeros(sizes.size)
    for g in range(sizes.size):
        others = sizes - (np.arange(sizes.size) == g)
        for bit in (0, 1):
            t = weights[g, bit]
            if t <= 0 or own[g, bit] <= 0:
                continue
            less = (chance * (weights < t * (1 - _TIE))).sum(axis=1)
            tied = (chance * (np.abs(weights - t) <= t * _TIE)).sum(axis=1)
            u, du = _nodes(int(others[tied > 0].sum()))
            if sizes.size**2 * u.size > _MAX_WORK:
                raise ArgumentError(
                    "too many values have chances or shares of their own for a closed form; "
                    "use simulate_attack"
                )
            value = (less[:, None] + tied[:, None] * u) ** others[:, None]
            found[g] += own[g, bit] * (value.prod(axis=0) @ du)
    return np.asarray(found[which.ravel()])


def bit_class_laws(own: Array, one: float, h: int, k: int) -> tuple[Array, Array]:
    """Laws of (1-bits among h high values, among the k - h low) under a high and a low value.

    Where bits are alike and the values of a class equally frequent, these two numbers carry all
    that the report says about the class. `own` is of one value, shape (2,), as for `bit_guesses`.
    """
    base = np.outer(_binomial(h, one), _binomial(k - h, one))
    chance = np.array([1 - one, one])
    odds = np.divide(own, chance, out=np.zeros(2), where=chance > 0)
    a, b = np.arange(h + 1)[:, None], np.arange(k - h + 1)[None, :]
    high = base * (a * odds[1] + (h - a) * odds[0]) / h
    low = base * (b * odds[1] + (k - h - b) * odds[0]) / (k - h)
    return high.ravel(), low.ravel()


def subset_guesses(k: int, size: int, held: float, prior: Array | None) -> Array:
    """Success of the best guess, shape (k,), from a set of `size` of k values with the true one by
    `held`.

    Another value beats x if its share is above t, and it is in the set; or if its share times
    `fade`, the odds of being outside, is. Both at once is certain defeat; so some must be outside
    the set, some tie if they are in it, and the rest may be anywhere.
    """
    pi = np.ones(k) if prior is None else prior
    fade = (1 - held) / held * size / (k - size)
    found = np.zeros(k)
    for share in np.unique(pi).tolist():
        alike = pi == share
        for bit, chance in ((1, held), (0, 1 - held)):
            t, drawn = share * (1.0 if bit else fade), size - bit
            if t <= 0 or (pi * fade > t * (1 + _TIE)).any():
                continue
            me = alike & (np.cumsum(alike) == 1)
            must_out = (pi > t * (1 + _TIE)) & ~me
            beside = int((must_out & (pi * fade >= t * (1 - _TIE))).sum())
            tied = int((~must_out & ~me & (pi >= t * (1 - _TIE))).sum())
            free = k - 1 - int(must_out.sum()) - tied
            ways = [
                comb(tied, i) * comb(free, drawn - i) / comb(k - 1, drawn)
                for i in range(min(tied, drawn) + 1)
            ]
            expected = sum(w / (1 + i + beside) for i, w in enumerate(ways))
            found[alike] += chance * expected
    return found


def subset_class_laws(k: int, size: int, held: float, h: int) -> tuple[Array, Array]:
    """Laws of how many members of the set are high, under a high and under a low value."""
    most, all_sets = min(h, size), comb(k, size)
    base = np.array([comb(h, a) * comb(k - h, size - a) / all_sets for a in range(most + 1)])
    inside, outside = held * k / size, (1 - held) * k / (k - size)
    a = np.arange(most + 1)
    high = base * (a * inside + (h - a) * outside) / h
    low = base * ((size - a) * inside + (k - h - size + a) * outside) / (k - h)
    return high, low


def _binomial(n: int, p: float) -> Array:
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    i = np.arange(n + 1)
    if p <= 0 or p >= 1:
        # A sure coin: its logarithm is infinite.
        return np.asarray((i == n * p).astype(np.float64))
    exponent = logs[n] - logs[i] - logs[n - i] + i * np.log(p) + (n - i) * np.log1p(-p)
    return np.asarray(np.exp(exponent))


@lru_cache(maxsize=64)
def _nodes(degree: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1]: exact for the degree, or to rounding where it is large."""
    # So many nodes are exact up to twice their number, less 1.
    nodes, weights = np.polynomial.legendre.leggauss(min(degree, _EXACT) // 2 + 1)
    nodes, weights = (nodes + 1) / 2, weights / 2
    if degree <= _EXACT:
        return nodes, weights
    ends = 1 - 0.5 ** np.arange(_HALVINGS + 1.0)
    ends[-1] = 1.0
    lengths = np.diff(ends)
    found = (ends[:-1, None] + lengths[:, None] * nodes).ravel()
    return found, (lengths[:, None] * weights).ravel()

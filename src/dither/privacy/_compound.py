"""Makers of compound losses: noisy running sums, and teachers' votes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dither import _checks as check
from dither.errors import ArgumentError
from dither.numeric import sqrt_lower
from dither.numeric._balls import Ball, library, precision, up
from dither.privacy._charge import Charge
from dither.privacy._loss import Loss
from dither.privacy._makers import Relation, gaussian, renyi
from dither.privacy._promise import Neighbours

__all__ = ["ORDERS", "noisy_votes", "tree_aggregation", "votes_at"]


ORDERS = np.concatenate([1 + np.geomspace(1e-2, 1, 24)[:-1], np.geomspace(2, 4096, 80)])
"""Where Rényi bounds are taken; between them log-moments are convex, and so chords hold."""

_MOST_STEPS = 10**15


def tree_aggregation(
    noise_multiplier: float,
    steps: int | Sequence[int],
    *,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Loss:
    """Running sums by a binary tree of Gaussian sums; a unit takes part in one step.

    Parameters
    ----------
    noise_multiplier : float
        Of each node: deviation of its noise over the L2 sensitivity of one step.
    steps : int or sequence of int
        How many steps each tree has; several trees where the tree is started anew.

    Raises
    ------
    ArgumentError
        An argument is out of range, or there is no tree.

    Notes
    -----
    Nodes are released when they are full, so the step that lies in most nodes lies in
    floor(log2(n)) + 1 of a tree of n steps, and moves each by at most one sensitivity: one
    Gaussian release of noise_multiplier/sqrt(that). A unit in several epochs, each with trees of
    its own, composes: ``epochs * tree_aggregation(...)``.

    References
    ----------
    Kairouz and others, "Practical and private (deep) learning without sampling or shuffling",
    ICML 2021, appendix B.

    Examples
    --------
    >>> round(tree_aggregation(4.0, 1000).epsilon(1e-6), 6)
    3.747218
    """
    listed = list(steps) if isinstance(steps, list | tuple) else [steps]
    if not listed:
        raise ArgumentError("steps must name at least one tree")
    most = max(check.count("steps", n, 1, _MOST_STEPS) for n in listed)
    # Numbers whose squares, and sums of squares, are doubles.
    exact = check.exact("noise_multiplier", noise_multiplier, above=1e-100, below=1e100)
    # floor(log2(n)) + 1: the most full nodes that one step lies in.
    nodes = most.bit_length()
    loss = gaussian(sqrt_lower(exact**2 / nodes), neighbours=neighbours)
    return loss.with_charge(Charge.concentrated(nodes / (2 * exact**2)))


def noisy_votes(
    sigma: float,
    *,
    votes: Sequence[float] | None = None,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Loss:
    """GNMax: the label with most of the teachers' votes, each count with Gaussian noise.

    Parameters
    ----------
    sigma : float
        Deviation of the noise of each count.
    votes : sequence of float, optional
        The counts of one query. With them the loss is that of *these* votes, and at most the loss
        without.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Notes
    -----
    Guarantee: a unit is in the data of one teacher, which may change its vote: two counts by 1
    each, so an L2 sensitivity of sqrt(2) and the loss of `gaussian` at sigma/sqrt(2).

    **With votes the loss depends on the data and is itself private**: it must not be published as
    it is, nor may a stopping rule read it; release a smooth-sensitivity estimate of it, or use the
    loss without votes. It compares these votes with any neighbour's, and does not cover a
    neighbour's own loss. It is a Rényi bound: with q the chance that another label wins and
    (b, e_b), (b', e_b') two points of the data-independent bound a/sigma², theorem 6 of [1]_.

    References
    ----------
    .. [1] Papernot and others, "Scalable private learning with PATE", ICLR 2018.

    Examples
    --------
    >>> safe = 100 * noisy_votes(40.0)
    >>> clear = 100 * noisy_votes(40.0, votes=[240, 5, 5])
    >>> round(safe.epsilon(1e-6), 3), clear.epsilon(1e-6) < safe.epsilon(1e-6) / 2
    (1.544, True)
    """
    # Numbers whose squares are doubles.
    exact = check.exact("sigma", sigma, above=1e-100, below=1e100)
    if votes is None:
        loss = gaussian(sqrt_lower(exact**2 / 2), neighbours=neighbours)
        return loss.with_charge(Charge.concentrated(1 / exact**2))
    try:
        listed = list(votes)
    except TypeError as error:
        raise ArgumentError("votes must be a sequence of counts") from error
    counts = sorted((check.exact("votes", v, least=0, below=1e15) for v in listed), reverse=True)
    if len(counts) < 2:
        raise ArgumentError("votes must hold a count for each of at least 2 labels")
    with precision(128):
        s = _ball(exact)
        away = [(_ball(counts[0] - v) / (2 * s)).erfc() for v in counts[1:]]
        # A union bound of the chance that another label wins, upwards.
        q = up(sum(away[1:], away[0]) / 2)
        bounds = {a: votes_at(a, s, q) for a in ORDERS.tolist()}
    return renyi(bounds, neighbours=neighbours)


def _ball(x: Fraction) -> Ball:
    flint = library()
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


def votes_at(order: float, sigma: Ball, q: float) -> float:
    """The smaller of the bound with votes and a/sigma²; any pair of orders gives a true one.

    A pair is chosen in doubles, and balls prove what it gives.
    """
    plain, best, pair = up(library().arb(order) / sigma**2), math.inf, None
    if q >= 1:
        return plain
    s, log_q = float(sigma), math.log(q)
    # The pair that the theorem's authors use, and larger ones for larger orders.
    middle = max(s * math.sqrt(-log_q), 1 + 1e-6)
    for second in (middle, *(middle * np.geomspace(0.5, 2, 9)).tolist()):
        for first in (second + 1, max(second + 1, order)):
            value = _votes_by(order, first, second, s, q, log_q)
            if value < best:
                best, pair = value, (first, second)
    if pair is None or best >= plain:
        return plain
    return min(plain, _votes_proved(order, *pair, sigma, q))


def _votes_by(
    order: float, first: float, second: float, sigma: float, q: float, log_q: float
) -> float:
    """Theorem 6 at a pair of orders, about; inf where it does not hold."""
    if second <= 1 or first < order:
        return math.inf
    e1, e2 = first / sigma**2, second / sigma**2
    limit = (second - 1) * e2
    limit -= second * (math.log(first / (first - 1)) + math.log(second / (second - 1)))
    inner = (second - 1) / second * (log_q + e2)
    if log_q > limit or inner >= 0:
        return math.inf
    log_a = math.log1p(-q) - math.log(-math.expm1(inner))
    log_b = e1 - log_q / (first - 1)
    value = np.logaddexp(math.log1p(-q) + (order - 1) * log_a, log_q + (order - 1) * log_b)
    return max(0.0, float(value) / (order - 1))


def _votes_proved(order: float, first: float, second: float, sigma: Ball, chance: float) -> float:
    """Theorem 6 at a pair of orders, rounded up; inf where balls do not prove that it holds."""
    arb = library().arb
    a, b, c, q = (arb(x) for x in (order, first, second, chance))
    e1, e2, log_q = b / sigma**2, c / sigma**2, q.log()
    limit = (c - 1) * e2 - c * ((b / (b - 1)).log() + (c / (c - 1)).log())
    inner = (c - 1) / c * (log_q + e2)
    # Balls have to prove the theorem's conditions, too: in doubles they might hold by rounding.
    if not (log_q <= limit and inner < 0 and q < 1):
        return math.inf
    log_a = (1 - q).log() - (-inner.expm1()).log()
    log_b = e1 - log_q / (b - 1)
    value = (1 - q) * ((a - 1) * log_a).exp() + q * ((a - 1) * log_b).exp()
    return max(0.0, up(value.log() / (a - 1)))

"""Makers of compound losses: noisy running sums, the best of many runs, teachers' votes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dither import _checks as check
from dither._stats import bisect
from dither.errors import ArgumentError
from dither.numeric import sqrt_lower
from dither.privacy._charge import Charge
from dither.privacy._loss import Loss
from dither.privacy._makers import Relation, gaussian, renyi
from dither.privacy._promise import Neighbours

__all__ = ["noisy_votes", "repeat_and_select", "tree_aggregation"]


_ORDERS = np.concatenate([1 + np.geomspace(1e-2, 1, 24)[:-1], np.geomspace(2, 4096, 80)])
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
    exact = check.exact("noise_multiplier", noise_multiplier, above=1e-100, below=1e100)
    nodes = most.bit_length()
    loss = gaussian(sqrt_lower(exact**2 / nodes), neighbours=neighbours)
    return loss.with_charge(Charge.concentrated(nodes / (2 * exact**2)))


def repeat_and_select(loss: Loss, *, mean: float, shape: float | None = 1.0) -> Loss:
    """The best of a random number of runs, such as a search over hyperparameters.

    Parameters
    ----------
    loss : Loss
        Of one run, its score included; only the run of best score is released.
    mean : float
        The expected number of runs, at least 1.
    shape : float or None
        eta > -1 of the truncated negative binomial number of runs (1 geometric, 0 logarithmic), or
        None for a Poisson number, which may be 0.

    Raises
    ------
    ArgumentError
        An argument is out of range, or the loss has no Rényi divergences (it may fail).

    Notes
    -----
    Guarantee: for the neighbours of ``loss``, by Rényi bounds at some hundred orders; only an upper
    end is known. With D the divergences of one run and gamma the number's parameter, at any order
    b >= 1 ::

        D'(a) <= D(a) + (1 + eta)·((1 - 1/b)·D(b) + log(1/gamma)/b) + log(mean)/(a - 1)

    and for a Poisson number, where (e, d)-DP of one run with e <= log(1 + 1/(a - 1)),
    D'(a) <= D(a) + mean·d + log(mean)/(a - 1). The number of runs is drawn independently of the
    data and never shown.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022,
    theorems 2 and 6.

    Examples
    --------
    >>> one = gaussian(4.0)
    >>> repeat_and_select(one, mean=10.0).epsilon(1e-6) < 3 * one.epsilon(1e-6)
    True
    """
    if not isinstance(loss, Loss):
        raise ArgumentError("loss must be a loss, such as privacy.gaussian(4)")
    runs = check.number("mean", mean, least=1, below=1e15)
    known = {}
    for order in _ORDERS.tolist():
        try:
            known[order] = loss.renyi(order).upper
        except ArgumentError:
            if not known:
                raise
            break
    orders = np.array(list(known))
    values = np.array(list(known.values()))
    tail = math.log(runs) / (orders - 1)
    if shape is None:
        small = [loss.delta(math.log1p(1 / (a - 1)) * (1 - 1e-15)).upper for a in orders.tolist()]
        found = values + runs * np.array(small) + tail
    else:
        eta = check.number("shape", shape, above=-1, below=1e6)
        gamma = _gamma(runs, eta)
        other = (1 - 1 / orders) * values - math.log(gamma) / orders
        # At order 1, where D is multiplied by 0, what is left is log(1/gamma).
        best = min(float(other.min()), -math.log(gamma))
        found = values + (1 + eta) * best + tail
    bounds = dict(zip(orders.tolist(), (found * (1 + 1e-13)).tolist(), strict=True))
    return replace(renyi(bounds, neighbours=loss.neighbours), unit=loss.unit)


def _gamma(mean: float, eta: float) -> float:
    """The parameter in (0, 1) whose number of runs has at least this mean, rounded down."""

    def expected(gamma: float) -> float:
        if eta == 0:
            return (1 / gamma - 1) / -math.log(gamma)
        # eta·(1 - gamma)/(gamma·(1 - gamma^eta))
        return eta / -math.expm1(eta * math.log(gamma)) * (1 / gamma - 1)

    low, high = math.log(1e-300), math.log1p(-1e-9)
    if expected(math.exp(high)) >= mean:
        return math.exp(high)
    return math.exp(bisect(lambda x: expected(math.exp(x)) < mean, low, high, steps=200)[0])


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
    s = check.number("sigma", sigma, above=1e-100, below=1e100)
    if votes is None:
        exact = check.exact("sigma", sigma)
        loss = gaussian(sqrt_lower(exact**2 / 2), neighbours=neighbours)
        return loss.with_charge(Charge.concentrated(1 / exact**2))
    try:
        listed = list(votes)
    except TypeError as error:
        raise ArgumentError("votes must be a sequence of counts") from error
    counts = sorted((check.number("votes", v, least=0, below=1e15) for v in listed), reverse=True)
    if len(counts) < 2:
        raise ArgumentError("votes must hold a count for each of at least 2 labels")
    # erfc at z, which rounds three times and was read once, errs by 8·z²·2^-53 of itself and its
    # last place: at z < 26.5, where it is above 0, by 6.3e-13.
    q = 0.5 * math.fsum(math.erfc((counts[0] - v) / (2 * s)) for v in counts[1:]) * (1 + 1e-12)
    q += 1e-300
    bounds = {a: _votes_at(a, s, q) for a in _ORDERS.tolist()}
    return renyi(bounds, neighbours=neighbours)


def _votes_at(order: float, sigma: float, q: float) -> float:
    """The smaller of the bound with votes and a/sigma²; any pair of orders gives a true one."""
    plain = order / sigma**2
    best = plain
    if q >= 1:
        return best * (1 + 1e-13)
    log_q = math.log(q)
    # The pair that the theorem's authors use, and larger ones for larger orders.
    middle = max(sigma * math.sqrt(-log_q), 1 + 1e-6)
    for second in (middle, *(middle * np.geomspace(0.5, 2, 9)).tolist()):
        for first in (second + 1, max(second + 1, order)):
            if second <= 1 or first < order:
                continue
            e1, e2 = first / sigma**2, second / sigma**2
            limit = (second - 1) * e2 - second * (
                math.log(first / (first - 1)) + math.log(second / (second - 1))
            )
            inner = (second - 1) / second * (log_q + e2)
            if log_q > limit or inner >= 0 or q >= 1:
                continue
            log_a = math.log1p(-q) - math.log(-math.expm1(inner))
            log_b = e1 - log_q / (first - 1)
            value = np.logaddexp(math.log1p(-q) + (order - 1) * log_a, log_q + (order - 1) * log_b)
            best = min(best, float(value) / (order - 1) + 1e-12 * (1 + plain))
    return max(best, 0.0) * (1 + 1e-13)

"""What the best of a random number of runs loses: a search over hyper-parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._search import bisect
from dither.errors import ArgumentError
from dither.numeric import log_upper, shortened, sqrt_upper
from dither.privacy._charge import Charge
from dither.privacy._compound import ORDERS
from dither.privacy._loss import Loss
from dither.privacy._makers import approximate, renyi
from dither.privacy.laws.classes import PureProfile, RenyiProfile
from dither.privacy.laws.rationals import printing_at_least
from dither.privacy.laws.term import EPS

__all__ = ["repeat_and_select"]

Floats = npt.NDArray[np.float64]

_LARGEST = 500
"""Epsilons that a class takes: they are below it."""


def repeat_and_select(
    loss: Loss | Sequence[Loss], *, mean: Number, shape: Number | None = 1.0
) -> Loss:
    """The best of a random number of runs, such as a search over hyper-parameters.

    Parameters
    ----------
    loss : Loss or sequence of Loss
        Of one run, its score included; only the run of best score is released. Several where what
        is run is drawn among candidates, or touches one of several disjoint sets of units: the
        largest of them counts, order by order.
    mean : number
        The expected number of runs, at least 1.
    shape : number or None
        eta > -1 of the truncated negative binomial number of runs (1 geometric, 0 logarithmic), or
        None for a Poisson number, which may be 0.

    Raises
    ------
    ArgumentError
        An argument is out of range; the losses are stated for different neighbours or units; or
        one has neither Rényi divergences nor an epsilon.

    Notes
    -----
    Guarantee: for the neighbours of ``loss``, by Rényi bounds at some hundred orders; only an upper
    end is known. With D the divergences of one run and gamma the number's parameter, at any order
    b >= 1 ::

        D'(a) <= D(a) + (1 + eta)·((1 - 1/b)·D(b) + log(1/gamma)/b) + log(mean)/(a - 1)

    and for a Poisson number, where (e, d)-DP of one run with e <= log(1 + 1/(a - 1)),
    D'(a) <= D(a) + mean·d + log(mean)/(a - 1). The number of runs is drawn independently of the
    data and never shown.

    *Several losses.* A candidate that is drawn without looking at the data, and named with the
    result, makes of the runs one mechanism whose moments are means of theirs: at most the largest.

    *Pure.* If each run is epsilon-DP then the whole is (2 + eta)·epsilon-DP: let a and b grow
    without end. If it is (epsilon, delta)-DP, the whole is ((2 + eta)·epsilon, mean·delta)-DP:
    both laws of a run are mixtures, with weight delta, of something arbitrary and else of a pair
    that is epsilon-DP. That no run is arbitrary has one chance g(1 - delta) on both tables, g the
    generating function of the number, and that is at least 1 - mean·delta; and given that, the
    number is of the same shape with 1 - gamma made smaller, whatever the mean then is.

    *Concentrated.* Where D(a) <= a·rho, for all t > 0 and b >= 1 the whole is rho'-zCDP with ::

        rho' = rho·(1 + t) + log(mean)/t + (1 + eta)·((b - 1)·rho + log(1/gamma)/b).

    At a > 1 + t the bound above is at most rho·a + (rho' - rho·(1 + t)) <= a·rho', and below it
    divergences are at most that at 1 + t, which is at most rho'.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022,
    theorems 2 and 6; Liu and Talwar, "Private selection from private candidates", STOC 2019.

    Examples
    --------
    >>> from dither import privacy
    >>> one = privacy.gaussian(4.0)
    >>> repeat_and_select(one, mean=10.0).epsilon(1e-6) < 3 * one.epsilon(1e-6)
    True
    >>> repeat_and_select(privacy.pure(0.5), mean=10).charge.epsilon
    Fraction(3, 2)
    """
    losses = _agreeing(loss)
    # A float stands for the number that was printed, and a double for one that is no smaller.
    exact = check.exact("mean", mean, least=1, below=1e15)
    runs = float(exact)
    if Fraction(runs) < exact or runs != int(runs):
        runs = math.nextafter(runs, math.inf)
    eta = None if shape is None else check.exact("shape", shape, above=-1, below=1e6)
    if all(one.free for one in losses):
        # Nothing depends on the data.
        return losses[0]
    charge = losses[0].charge.amounts
    for other in losses[1:]:
        # Which of the losses counts may depend on the candidate: field by field the larger one
        # holds.
        charge = _larger(charge, other.charge.amounts)
    lost = None if eta is None else _log_inverse_gamma(runs, float(eta))
    whole = _charged(charge, exact, eta, lost)
    try:
        orders, values = _profile(losses)
    except ArgumentError:
        if whole.epsilon is None or not whole.delta or whole.epsilon >= _LARGEST:
            raise
        if whole.delta >= 1:
            raise ArgumentError("mean must be below 1/delta of one run") from None
        known = approximate(whole.epsilon, whole.delta, neighbours=losses[0].neighbours)
        return replace(known, unit=losses[0].unit)
    tail = math.log(runs) / (orders - 1)
    if lost is None:
        # A quotient, half of EPS; log1p, which makes that no larger and adds EPS; and a product.
        ends = [math.log1p(1 / (a - 1)) * (1 - 4 * EPS) for a in orders.tolist()]
        small = [max(one.delta(end).upper for one in losses) for end in ends]
        found = values + runs * np.array(small) + tail
        off = EPS * 16
    else:
        assert eta is not None
        other_order = (1 - 1 / orders) * values + lost / orders
        # At order 1, where D is multiplied by 0, what is left is log(1/gamma).
        # Any order b gives a true bound: the least over those listed.
        best = min(float(other_order.min()), lost)
        found = values + (1 + float(eta)) * best + tail
        # All summands are at least 0. eta is off by half of EPS of itself, so that 1 + eta is off
        # by EPS/(1 + eta) of itself; the rest are some 12 operations, and a logarithm.
        off = EPS * (16 + 2 / (1 + float(eta)))
    bounds = dict(zip(orders.tolist(), (found * (1 + off)).tolist(), strict=True))
    made = renyi(bounds, neighbours=losses[0].neighbours)
    if whole.epsilon is not None and not whole.delta and 0 < whole.epsilon < _LARGEST:
        ((profile, _),) = made.parts
        assert isinstance(profile, RenyiProfile)
        part = PureProfile(profile.orders, profile.values, printing_at_least(whole.epsilon))
        made = replace(made, parts=((part, 1),))
    return replace(made, unit=losses[0].unit).with_charge(whole)


def _agreeing(loss: Loss | Sequence[Loss]) -> list[Loss]:
    """The losses, of one relation and one unit."""
    losses = [loss] if isinstance(loss, Loss) else check.listed("loss", loss, "losses")
    if not all(isinstance(one, Loss) for one in losses):
        raise ArgumentError("loss must be a loss, such as privacy.gaussian(4), or several")
    if len({(one.neighbours, one.unit) for one in losses}) > 1:
        raise ArgumentError("loss must be stated for the same neighbours and unit in all runs")
    return list(dict.fromkeys(losses))


def _profile(losses: Sequence[Loss]) -> tuple[Floats, Floats]:
    """Orders, and the largest of the divergences at each."""
    known: dict[float, float] = {}
    for order in ORDERS.tolist():
        try:
            known[order] = max(one.renyi(order).upper for one in losses)
        except ArgumentError:
            if not known:
                raise
            break
    return np.array(list(known)), np.array(list(known.values()))


def _larger(a: Charge, b: Charge) -> Charge:
    """Amounts that are true of either."""

    def most(x: Fraction | None, y: Fraction | None) -> Fraction | None:
        return None if x is None or y is None else max(x, y)

    return Charge(
        most(a.epsilon, b.epsilon),
        max(a.delta, b.delta),
        most(a.rho, b.rho),
        max(a.rho_delta, b.rho_delta),
    )


def _charged(one: Charge, mean: Fraction, eta: Fraction | None, lost: float | None) -> Charge:
    """What is charged for the whole, by the rules above; nothing finite of a Poisson number."""
    if eta is None or lost is None:
        return Charge.unknown()
    epsilon = None if one.epsilon is None else (2 + eta) * one.epsilon
    delta = Fraction(0) if epsilon is None else min(Fraction(1), mean * one.delta)
    rhos = []
    if epsilon is not None and not delta:
        # A pure loss is zCDP by itself; the least of both is charged.
        rhos.append(epsilon * epsilon / 2)
    if one.rho and not one.rho_delta:
        # Any t and b give a true bound; these are the best ones, in doubles.
        rho, length, log_mean = one.rho, Fraction(lost), log_upper(mean)
        b = max(Fraction(1), _rough_root(length / rho))
        found = rho + (1 + eta) * ((b - 1) * rho + length / b)
        if log_mean > 0:
            t = _rough_root(log_mean / rho)
            found += rho * t + log_mean / t
        rhos.append(found)
    if rhos:
        return Charge(epsilon, delta, shortened(min(rhos), 64, up=True))
    if epsilon is not None and delta:
        return Charge.approximate(epsilon, delta)
    return Charge(epsilon, delta, None)


def _rough_root(x: Fraction) -> Fraction:
    """About the square root, of numbers beyond the doubles too."""
    try:
        return Fraction(math.sqrt(x))
    except OverflowError:
        return sqrt_upper(x)


def _log_inverse_gamma(mean: float, eta: float) -> float:
    """log(1/gamma) of the parameter whose number of runs has this mean, rounded up.

    With x = log(1/gamma) and w = |eta| the mean is w·(1 - e^-x)/(1 - e^(-w·x)), times e^x or, where
    eta < 0, e^(x·(1 + eta)); w/(1 - e^(-w·x)) is 1/x at eta = 0. It rises from 1 with x. Each
    factor keeps its digits: 3 functions with a unit in their last places and some operations, and
    the exponent, of which 1 + eta is off by EPS/(1 + eta) of itself.
    """
    least = min(1.0, 1 + eta)

    def reaches(x: float) -> bool:
        w = abs(eta)
        # For a w that is nothing to 1/x, the limit.
        rest = w / -math.expm1(-w * x) if w > 1e-200 else 1 / x
        off = EPS * (16 + x * least * (2 + 1 / least))
        return math.exp(min(x * least, 700.0)) * -math.expm1(-x) * rest * (1 - off) >= mean

    top = 100 / least
    if not reaches(top):
        raise ArgumentError("shape is too close to -1 for so many runs")
    # The mean rises from 1, where x is 0; what is returned reaches it.
    return bisect(reaches, 1e-16, top, steps=200)[1]

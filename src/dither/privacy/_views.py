"""What a loss says: epsilon, delta, the trade-off of an attacker's errors, Rényi and the rest.

Everything is taken from certified bounds of delta(epsilon) in each direction. For negative epsilon
the identity delta_PQ(-e) = 1 - e^{-e} + e^{-e}·delta_QP(e) leads to the swapped pair.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.numeric import sqrt_lower
from dither.privacy._bound import Bound
from dither.privacy._concentration import concentration
from dither.privacy._dual import dual, section, smallest
from dither.privacy._side import Side, side
from dither.privacy.engines.grid import Grid, moment_ends
from dither.privacy.engines.search import invert
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.gaussian import GaussianNoise
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.rationals import Amount, root, told_down, told_up
from dither.privacy.laws.term import EPS

if TYPE_CHECKING:
    from dither.privacy._loss import Loss

__all__ = [
    "advantage",
    "delta",
    "distribution",
    "epsilon",
    "gdp",
    "mean",
    "profile",
    "renyi",
    "tpr",
    "zcdp",
]


_FAR = 700.0
"""Thresholds beyond which e^epsilon leaves the doubles."""


def sides(loss: Loss) -> list[Side]:
    """Removal and addition, or one of them where both are the same."""
    both = (True,) if all(part.symmetric for part, _ in loss.parts) else (True, False)
    return [side(loss.parts, removal) for removal in both]


def other(loss: Loss, this: Side) -> Side:
    """The swapped direction."""
    if all(part.symmetric for part, _ in loss.parts):
        return this
    return side(loss.parts, not this.removal)


def _slacked(loss: Loss, epsilon: float) -> float:
    if loss.slack == 0:
        return 0.0
    return loss.slack * (1 + math.exp(epsilon)) if epsilon < 709 else math.inf


def one_delta(
    loss: Loss, this: Side, at: float, *, near: float | None = None
) -> tuple[float, float, str]:
    """Bounds of one direction's delta at any real epsilon.

    They may come from an engine made for an epsilon near by: as sound, and less tight.
    """
    if at < 0:
        swapped = None if near is None else -near
        low, high, method = one_delta(loss, other(loss, this), -at, near=swapped)
        rest, scale = -math.expm1(at), math.exp(at)
        low, high = rest + scale * low, rest + scale * high
        return max(0.0, low * (1 - 1e-14)), min(1.0, high * (1 + 1e-14)), method
    found = this.answer(None, at if near is None else max(near, 0.0))
    low, high = min(found.lower(at), 0.0), min(found.upper(at), 0.0)
    extra = _slacked(loss, at)
    lower = math.exp(low) * (1 - EPS * (4 + abs(low))) - extra if low > -745 else -extra
    if at >= this.top:
        # Only what is infinite is left; it is as stated, not a logarithm's exponential.
        upper, lower = this.infinite, max(lower, this.infinite_lower - extra)
    elif high > -745:
        upper = math.exp(high) * (1 + EPS * (4 + abs(high)))
    else:
        upper = 5e-324 if high > -math.inf else 0.0
    if extra > 0:
        upper = (upper + extra) * (1 + 2 * EPS)
    return min(max(0.0, lower), upper, 1.0), min(upper, 1.0), found.method


def delta(loss: Loss, at: float) -> Bound:
    """The worse direction's delta."""
    answers: list[tuple[float, float, str]] = []
    for this in sides(loss):
        # Removal is first, and most often the worse: then a bound of the other is enough.
        least = answers[0][0] if answers and loss.slack == 0 else 0.0
        if least == 0 or not this.below(at, math.log(least) - 4 * EPS):
            answers.append(one_delta(loss, this, at))
    return _worst(loss, answers)


_APART = 0.25
"""How far apart the epsilons are that engines of a profile are made for."""

_CLOSE = 1e-6
"""A relative width beyond which a point of a profile is given an engine of its own."""


def profile(loss: Loss, epsilons: list[float]) -> tuple[Bound, ...]:
    """The worse direction's delta at each epsilon, by engines that neighbours share."""
    ends: dict[float, tuple[float, float, str]] = {}
    for at in sorted(set(epsilons)):
        answers = []
        for this in sides(loss):
            # A bound of moments is only good where it was made, and takes little to make.
            near = _APART * round(at / _APART) if this.exact else None
            low, high, method = one_delta(loss, this, at, near=near)
            if near is not None and high - low > _CLOSE * high:
                low, high, method = one_delta(loss, this, at)
            answers.append((low, high, method))
        found = _worst(loss, answers)
        ends[at] = (found.lower, found.upper, found.method)
    # A profile falls: no upper end exceeds one to its left, and no lower end one to its right.
    order = sorted(ends)
    tops = np.minimum.accumulate([ends[e][1] for e in order])
    bottoms = np.maximum.accumulate([ends[e][0] for e in reversed(order)])[::-1]
    told = {
        e: Bound(min(low, high), high, ends[e][2], one_sided=loss.one_sided)
        for e, low, high in zip(order, bottoms.tolist(), tops.tolist(), strict=True)
    }
    return tuple(told[e] for e in epsilons)


def epsilon(loss: Loss, target: float) -> Bound:
    """The worse direction's epsilon."""
    answers: list[tuple[float, float, str]] = []
    for this in sides(loss):
        asked = bool(answers) and loss.slack == 0 and target > 0
        if not asked or not this.below(answers[0][0], math.log(target) - 4 * EPS):
            answers.append(_one_epsilon(loss, this, target))
    return _worst(loss, answers)


def _worst(loss: Loss, answers: list[tuple[float, float, str]]) -> Bound:
    return Bound(
        max(a[0] for a in answers),
        max(a[1] for a in answers),
        max(answers, key=lambda a: a[1])[2],
        one_sided=loss.one_sided,
    )


def _one_epsilon(loss: Loss, this: Side, target: float) -> tuple[float, float, str]:
    ceiling = this.top
    if target == 0 and math.isfinite(ceiling) and not this.infinite and not loss.slack:
        return max(0.0, this.top_lower), max(0.0, ceiling), "largest loss"
    if target == 0 or target < this.infinite + 2 * loss.slack:
        raise ArgumentError(_too_small(loss, this))
    log_target = math.log(target)
    found = this.answer(log_target, None)

    def upper(e: float) -> float:
        value = found.upper(e)
        extra = _slacked(loss, e)
        return float(np.logaddexp(value, math.log(extra))) if extra > 0 else value

    def lower(e: float) -> float:
        value, extra = found.lower(e), _slacked(loss, e)
        rest = math.exp(value) - extra if extra > 0 else 1.0
        if extra > 0:
            return math.log(rest) if rest > 0 else -math.inf
        return value

    # At the largest finite loss, delta is what is infinite.
    reached = math.isfinite(ceiling) and this.infinite + _slacked(loss, ceiling) <= target
    start = min(found.start, ceiling)
    high = invert(upper, log_target, start, above=True, tiny=2e-14)
    if reached:
        high = min(high, ceiling)
    if not math.isfinite(high):
        raise ArgumentError(
            "delta is too small for any finite epsilon that could be certified; ask for a larger "
            "delta" + (" or truncate less" if loss.slack > 0 else "")
        )
    low = invert(lower, log_target, high, above=False, tiny=2e-14)
    return min(low * (1 - 4e-16), high), high, found.method


def _too_small(loss: Loss, this: Side) -> str:
    """Which delta would do, and why no smaller one."""
    least = this.infinite + 2 * loss.slack
    said = "delta is too small for any finite epsilon: "
    if loss.slack > 0:
        said += f"a sample is cut with a chance of up to {loss.slack:.3g}, and "
        if least >= 1:
            return said + "no delta below 1 covers that: truncate less"
        return said + f"that takes a delta above {_above(least)}: truncate less, or allow more"
    if this.infinite >= 1:
        return said + "the loss is infinite whatever comes out"
    if this.infinite > 0:
        return said + f"it must be at least {_above(least)}, the chance of an infinite loss"
    return said + "it must be above 0"


def _above(value: float) -> str:
    """The shortest decimal that is at least the value and close to it."""
    for digits in range(6, 17):
        text = f"{value:.{digits}g}"
        if value <= float(text) <= value * (1 + 1e-9):
            return text
    return repr(value)


def tpr(loss: Loss, fpr: float, starts: dict[bool, float] | None = None) -> Bound:
    """The largest Pr[reject | P] of a test with Pr[reject | Q] <= fpr, in the worse direction.

    ``starts`` keeps, a direction, where the best test's threshold was, for the next loss like it.
    """
    known = {} if starts is None else starts
    return _worst(loss, [_one_tpr(loss, s, fpr, known) for s in sides(loss)])


def _one_tpr(
    loss: Loss, this: Side, fpr: float, starts: dict[bool, float]
) -> tuple[float, float, str]:
    """min over y = e^e > 0 of f(y) = delta(e) + y·fpr, which is convex in y; see `dual`."""
    if fpr == 0:
        # No false alarm at all: only what the other law never gives tells.
        return max(0.0, this.infinite_lower), min(1.0, this.infinite), "the chance of infinite loss"
    seen: list[tuple[float, float, float]] = [(0.0, 1.0, 1.0)]

    def value(e: float, near: float) -> float:
        low, high, _ = one_delta(loss, this, e, near=near)
        more = math.exp(e) * fpr
        seen.append((math.exp(e), low + more * (1 - 1e-15), high + more * (1 + 1e-15)))
        return seen[-1][2]

    def bounds() -> tuple[float, float]:
        low, high = dual(seen, fpr)
        high = min(1.0, high)
        return max(0.0, min(low, high), this.infinite_lower), high

    top = min(this.top + 1.0, 1.0 - math.log(fpr), _FAR)
    near, best = smallest(value, top, starts.get(this.removal, 0.0))
    starts[this.removal] = best
    for width in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5):
        value(best - width, near)
        value(best + width, near)
    # Beyond the last of these f, which is at least y·fpr, exceeds what was found.
    far = math.log(min(row[2] for row in seen)) - math.log(fpr) + 1e-9
    for e in np.linspace(best, min(far, _FAR), 9)[1:].tolist():
        value(e, near)
    low, high = bounds()
    # The gap that the engine's own width leaves is closed by no further point.
    own = min(row[2] - row[1] for row in sorted(seen, key=lambda row: row[2])[:3])
    if high - low > max(1e-10 * high, 3 * own):
        # An atom makes a kink there; sections close in on it, with what was made for nearby.
        section(lambda e: value(e, near), best - 0.01, best + 0.01, 70)
        low, high = bounds()
    if high - low > max(1e-9 * high, 3 * own) and near != best:
        section(lambda e: value(e, best), best - 0.01, best + 0.01, 70)
        low, high = bounds()
    return low, high, "dual of the profile"


def advantage(loss: Loss) -> Bound:
    """delta(0), the total variation."""
    return delta(loss, 0.0)


def _moment_bounds(this: Side, c: float) -> tuple[float, float]:
    at = np.array([c])
    low = high = 0.0
    exact = this.exact
    for term in this.lower_terms:
        a, b = moment_ends(term, at)
        low += a
        high += b
    if not exact:
        if this.moments is None:
            return low, math.inf
        high = sum(moment_ends(term, at)[1] for term in this.moments)
    return low, high


def renyi(loss: Loss, order: float) -> Bound:
    """D_order in the worse direction."""
    _no_failure(loss, "a Rényi divergence")
    c = order - 1
    ends = [_moment_bounds(s, c) for s in sides(loss)]
    if not math.isfinite(max(e[1] for e in ends)):
        raise ArgumentError(
            f"no Rényi divergence of order {order:g} is known for this loss; "
            "ask for a lower order, or for epsilon(delta)"
        )
    return Bound(
        max(0.0, max(e[0] for e in ends) / c),
        max(e[1] for e in ends) / c,
        "generating function",
        one_sided=loss.one_sided,
    )


def zcdp(loss: Loss) -> Bound:
    """A rho with D_a <= rho·a at every order a: upper from the parts, lower from some orders.

    Sampling does not lower it. With rate g, e^L >= g·e^x, x the base's loss, so D_a of a sampled
    Gaussian is at least a·mu²/2 + a·log(g)/(a - 1): its ratio to a tends to mu²/2 as a grows.
    """
    _no_failure(loss, "a zCDP bound")
    parts = loss.parts
    high = _told(sum(count * part.rho() for part, count in parts))
    # Gaussians have the same ratio at every order, so what is left adds to it.
    bounded = tuple((part, count) for part, count in parts if part.tail() < part.rho())
    found = [concentration(side(bounded, s.removal)) for s in sides(loss)] if bounded else []
    known = [ends for ends in found if ends is not None]
    low = told_down(_tail(loss) / 2)
    if known and len(known) == len(found):
        others = sum(k * part.rho() for part, k in parts if part.tail() >= part.rho())
        high = min(high, _told(Fraction(max(ends[1] for ends in known)) + others))
        # Gaussians have the same ratio at every order.
        flat = [k * part.rho() for part, k in parts if isinstance(part, GaussianNoise)]
        low = max(low, told_down(Fraction(max(ends[0] for ends in known)) + sum(flat)))
    if not math.isfinite(high):
        raise ArgumentError("no finite rho is known for this loss; ask for epsilon(delta) instead")
    if low >= high * (1 - 1e-11):
        return Bound(min(low, high), high, "exact: the sum over parts, reached at large orders")
    if known and len(known) == len(found) and low >= high * (1 - 1e-6):
        return Bound(min(low, high), high, "the largest of all orders", one_sided=loss.one_sided)
    for s in sides(loss):
        orders = [1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 30.0]
        if all(isinstance(t, AtomTerm | LaplaceTerm) for t in s.lower_terms):
            orders = np.geomspace(1e-3, 1e2, 120).tolist()
        for c in orders:
            low = max(low, _moment_bounds(s, c)[0] / (c * (c + 1)))
        if s.exact:
            low = max(low, sum(t.mean() for t in s.lower_terms) * (1 - 1e-12))
    return Bound(
        min(low, high),
        high,
        "upper bound: sum over parts; lower: the tail and some orders",
        one_sided=loss.one_sided,
    )


def _tail(loss: Loss) -> Fraction:
    return sum((count * part.tail() for part, count in loss.parts), Fraction(0))


def _told(amount: Amount) -> float:
    return told_up(Fraction(amount)) if math.isfinite(amount) else math.inf


def gdp(loss: Loss) -> Bound:
    """A mu such that the total is mu-GDP: upper from the parts, lower from tail and variation.

    Sampling does not lower it. A total of Gaussians on samples of rates g_i has
    Pr[L > s] >= Π g_i·Pr[N(mu²/2, mu²) > s - Σ log g_i] with mu² the unsampled total, and so
    exceeds the tail of every Gaussian of a smaller mu from some s on; no smaller mu holds at all
    errors. What sampling buys shows in epsilon(delta) and in tradeoff(fpr).
    """
    _no_failure(loss, "a Gaussian bound")
    square = sum(count * part.gdp() ** 2 for part, count in loss.parts)
    if not math.isfinite(square):
        raise ArgumentError("no finite mu is known for this loss; ask for tradeoff(fpr) instead")
    high, low = _told(root(square)), told_down(sqrt_lower(_tail(loss)))
    if all(isinstance(part, GaussianNoise) for part, _ in loss.parts):
        return Bound(min(low, high), high, "closed form (Gaussian)")
    if low >= high * (1 - 1e-11):
        return Bound(min(low, high), high, "exact: the unsampled total, whose tail a sample keeps")
    from statistics import NormalDist

    seen = min(delta(loss, 0.0).lower, 1 - 1e-15)
    low = max(low, 2 * NormalDist().inv_cdf((1 + seen) / 2) * (1 - 1e-7))
    method = "upper bound: sum over parts; lower: the tail and the total variation"
    return Bound(max(0.0, min(low, high)), high, method, one_sided=loss.one_sided)


def mean(loss: Loss) -> float:
    """The worse direction's KL divergence, E[L]."""
    if any(not part.exact for part, _ in loss.parts):
        raise ArgumentError("the mean loss is known only where every part's pair is")
    _no_failure(loss, "a mean loss")
    return max(sum(t.mean() for t in s.lower_terms) for s in sides(loss))


def _no_failure(loss: Loss, what: str) -> None:
    if loss.slack > 0 or any(s.fails for s in sides(loss)):
        raise ArgumentError(
            f"{what} does not exist: the loss is infinite with positive probability; "
            "ask for epsilon(delta)"
        )


def distribution(
    loss: Loss, *, removal: bool = True
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Points and masses of the composed loss under P, for pictures; none where it is infinite."""
    if any(not part.exact for part, _ in loss.parts):
        raise ArgumentError("the law of the loss is known only where every part's pair is")
    this = side(loss.parts, removal)
    if not loss.parts:
        return np.zeros(1), np.ones(1)
    if this.infinite >= 1:
        return np.zeros(0), np.zeros(0)
    grid = Grid(
        this.lower_terms,
        log_delta=None,
        epsilon=0.0,
        points=1 << 13,
        tilt=1e-9,
    )
    losses, masses = grid.upper.law()
    kept = masses > 1e-14
    return losses[kept], masses[kept]

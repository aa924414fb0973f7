"""What a run costs, settled before any row is read.

Steps are Gaussian mechanisms on samples, with parameters that are fixed in advance: what all of
them cost together is computed, and not bounded by adding up. A run that ends early has cost as much
as was planned, for when it ends may depend on what was seen: the bound for fewer steps holds only
of runs that were to have fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from dither import _checks as check
from dither import privacy
from dither._format import cost_text, loss_text
from dither.accounting import calibrate
from dither.errors import ArgumentError
from dither.privacy import Charge, Loss, Neighbours

__all__ = ["Cost", "cost_of", "counting_noise", "whole_run"]

_LEAST, _MOST = Fraction(1, 1000), Fraction(10**6)
_COUNTED = 20
"""The noise multiplier of the count of rows where no epsilon is named."""


@dataclass(frozen=True)
class Cost:
    """The noise of a run and what it costs.

    Parameters
    ----------
    noise_multiplier : Fraction
    each, once : Loss
        Of one step, and of what is released beside the steps.
    steps : int or None
        How many are planned.
    epsilon, delta : Fraction or None
        What was promised of all of them.
    """

    noise_multiplier: Fraction
    each: Loss
    once: Loss
    steps: int | None
    epsilon: Fraction | None
    delta: Fraction | None

    def of(self, steps: int) -> Loss:
        """Of so many steps, had they been planned."""
        return steps * self.each + self.once if steps else self.once

    @property
    def planned(self) -> Loss:
        """Of all steps that are planned."""
        assert self.steps is not None
        found = self.of(self.steps)
        if self.epsilon is None or self.delta is None:
            return found
        return found.with_charge(Charge(self.epsilon, self.delta, found.charge.rho))


@dataclass(frozen=True)
class WholeRun(Cost):
    """One Gaussian mechanism for all steps, however many of them are taken."""

    def of(self, steps: int) -> Loss:
        """Of the run, or of what is released before its first step."""
        return self.each + self.once if steps else self.once


def whole_run(cost: Cost, steps: int) -> WholeRun:
    """The cost of one release, as that of a run of so many steps."""
    return WholeRun(cost.noise_multiplier, cost.each, cost.once, steps, cost.epsilon, cost.delta)


def cost_of(
    each: Callable[[Fraction], Loss],
    once: Loss,
    *,
    epsilon: Any,
    delta: Any,
    noise_multiplier: Any,
    steps: int | None,
    rate: Fraction = Fraction(1),
) -> Cost:
    """The noise that was asked for, or the least that keeps the promise.

    Parameters
    ----------
    each : callable
        What a step costs, from its noise multiplier.
    once : Loss
    epsilon, delta, noise_multiplier : number or None
        As `dither.learn.train` takes them.
    steps : int or None
    rate : Fraction
        Of the sampling: where the search for the noise begins, and nothing else.

    Raises
    ------
    ArgumentError
        Neither is given, or both are and the steps cost more than epsilon, or no noise will do.
    """
    wanted = None if epsilon is None else check.positive("epsilon", epsilon)
    allowed = None if delta is None else check.exact("delta", delta, above=0, below=1)
    if wanted is not None and (allowed is None or steps is None):
        raise ArgumentError("epsilon needs a delta, and the number of steps, to be promised")
    if noise_multiplier is not None:
        noise = check.exact("noise_multiplier", noise_multiplier, least=_LEAST, most=_MOST)
        found = Cost(noise, each(noise), once, steps, wanted, allowed)
        if wanted is not None and allowed is not None and steps is not None:
            _check_reached(found, wanted, allowed, steps)
        return found
    if wanted is None or allowed is None or steps is None:
        raise ArgumentError("name the noise_multiplier, or the epsilon and delta to keep")
    noise = _least_noise(lambda z: steps * each(z) + once, wanted, allowed, steps, rate)
    return Cost(noise, each(noise), once, steps, wanted, allowed)


def _least_noise(
    loss: Callable[[Fraction], Loss], epsilon: Fraction, delta: Fraction, steps: int, rate: Fraction
) -> Fraction:
    """The least noise multiplier of five digits that is proved to keep the promise.

    The search begins where all steps together would be one Gaussian of mu = rate·√(steps·(exp(1/z²)
    - 1)), and twice as far where rows are replaced; it goes by sqrt(-log delta), nearly linear in
    log(z). What it returns is proved by itself. Where z is beyond `_MOST` the limit is right to
    five digits, for no row then moves the logarithm of a ratio by more than rate/z of a standard
    normal number: what would need twice that is refused before the search.
    """
    at = check.number("epsilon", epsilon, above=0, rounding="down")
    target = math.sqrt(-math.log(delta))
    once = float(calibrate(privacy.gaussian, epsilon=at, delta=float(delta), start=2.0))
    reach = float(rate) * math.sqrt(steps)
    begin = math.log1p(min(1 / (once * max(reach, 1e-99)), 1e99) ** 2) ** -0.5
    if loss(Fraction(2)).neighbours is Neighbours.REPLACE:
        begin *= 2

    def over(noise: Fraction) -> float:
        """At most 0 where the promise is proved to be kept."""
        try:
            found = loss(noise).delta(at).upper
        except ArgumentError:
            return math.inf
        gap = target - math.sqrt(-math.log(min(max(found, 1e-300), 1.0)))
        return min(gap, 0.0) if found <= delta else max(gap, 5e-324)

    slope = -(at * once + 0.5 / once) / math.sqrt(2)
    found = None if begin > 2 * _MOST else _crossed(over, begin, slope)
    if found is None:
        reached = privacy.gaussian(float(_MOST) / reach).epsilon(float(delta)).upper
        raise ArgumentError(
            f"{cost_text(epsilon, delta)} cannot be reached in {steps:,} steps by any noise that "
            f"could be told from none: allow more than epsilon={loss_text(reached)}, or fewer steps"
        )
    return found


def _crossed(over: Callable[[Fraction], float], begin: float, slope: float) -> Fraction | None:
    """The least number of five digits where ``over`` is at most 0, from a slope in log(noise).

    None where not even the most noise is enough.
    """
    good: Fraction | None = None
    bad: Fraction | None = None
    last: tuple[float, float] | None = None
    z, step = _short(begin), 0.0
    while good is None or bad is None or good - bad > _digit(bad):
        f, x = over(z), math.log(z)
        if f <= 0:
            good = z
            if z == _LEAST:
                break
        else:
            bad = z
            if z == _MOST:
                return None
        if last is not None and math.isfinite(f) and (f - last[1]) * (x - last[0]) < 0:
            slope = (f - last[1]) / (x - last[0])
        last = (x, f) if math.isfinite(f) else last
        # A little beyond the root, so that both its sides become known; further where it was not.
        aim = 1.02 * abs(f / slope) if math.isfinite(f) else math.log(2)
        step = max(aim, 2 * step) if good is None or bad is None else aim
        if f <= 0:
            z = max(min(_short(math.exp(x - step)), z - _digit(z)), _LEAST)
        else:
            z = max(_short(math.exp(x + step)), min(z + _digit(z), _MOST))
        if good is not None and bad is not None and not bad < z < good:
            z = min(_short(math.sqrt(good * bad)), good - _digit(bad))
    return good


def _short(z: float) -> Fraction:
    """Five digits, rounded up: what is printed is then what is charged."""
    digits = Context(prec=5, rounding=ROUND_CEILING).create_decimal_from_float(z)
    return min(max(Fraction(digits), _LEAST), Fraction(_MOST))


def _digit(z: Fraction) -> Fraction:
    """One in the fifth digit."""
    return Fraction(10) ** (Decimal(str(float(z))).adjusted() - 4)


def _check_reached(cost: Cost, epsilon: Fraction, delta: Fraction, steps: int) -> None:
    def kept(k: int) -> bool:
        return cost.of(k).delta(float(epsilon)).upper <= delta

    if kept(steps):
        return
    low, high = 0, steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if kept(middle) else (low, middle)
    needed = cost.planned.epsilon(float(delta))
    enough = f"epsilon={loss_text(needed.upper)} would do" + (f", or steps={low:,}" if low else "")
    raise ArgumentError(
        f"epsilon={loss_text(epsilon)} cannot be reached in {steps:,} steps with this "
        f"noise_multiplier: {enough}; or leave noise_multiplier out"
    )


def counting_noise(epsilon: Any, delta: Any) -> Fraction:
    """The noise multiplier of a count of rows beside a run: a hundredth of the squared loss."""
    if epsilon is None or delta is None:
        return Fraction(_COUNTED)
    wanted = float(check.positive("epsilon", epsilon))
    allowed = float(check.exact("delta", delta, above=0, below=1))
    found = 10 * float(calibrate(privacy.gaussian, epsilon=wanted, delta=allowed, start=2.0))
    short = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(found)
    return min(Fraction(short), Fraction(_MOST))

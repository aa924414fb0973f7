"""What a run costs, settled before any row is read.

Steps are Gaussian mechanisms on samples, with parameters that are fixed in advance: what all of
them cost together is computed, and not bounded by adding up. A run that ends early has cost as much
as was planned, for when it ends may depend on what was seen: the bound for fewer steps holds only
of runs that were to have fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any

from dither import _checks as check
from dither import privacy
from dither._format import cost_text, loss_text
from dither.accounting import calibrate
from dither.errors import ArgumentError
from dither.privacy import Charge, Loss

__all__ = ["Cost", "cost_of", "counting_noise", "whole_run"]

_LEAST, _MOST = Fraction(1, 1000), 10**6
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
        """Of the run, or nothing."""
        return self.each if steps else self.once


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
    try:
        least = calibrate(
            lambda z: steps * each(Fraction(repr(z))) + once,
            epsilon=float(wanted),
            delta=float(allowed),
            start=2.0,
        )
    except ArgumentError as error:
        raise ArgumentError(
            f"{cost_text(wanted, allowed)} cannot be reached in {steps:,} steps by any noise that "
            f"could be told from none: allow a larger epsilon, or fewer steps ({error})"
        ) from None
    # Five digits are enough, and what is printed is then what was charged.
    short = Context(prec=5, rounding=ROUND_CEILING).create_decimal_from_float(float(least))
    noise = check.exact("noise_multiplier", str(short), least=_LEAST, most=_MOST)
    return Cost(noise, each(noise), once, steps, wanted, allowed)


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

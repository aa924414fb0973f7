"""A mix of mechanisms under one promise: each component's part, by every theorem side by side.

The parts may be stated as (epsilon_i, delta_i), which some theorem adds up, or as noise, which is
composed as such. The errors are variances, so that all can be compared in one table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dither import _checks as check
from dither._format import Printable, loss_text, remaining
from dither._search import false_position
from dither.errors import ArgumentError, nearest
from dither.privacy import Loss, gaussian, laplace, randomized_response
from dither.privacy._conversion import rho_of_epsilon
from dither.privacy.division._division import divide_groups
from dither.privacy.division._noise_division import split_groups
from dither.privacy.laws.term import EPS

__all__ = ["Component", "EveryDivision", "Share", "Shares", "divide_by_every_theorem"]


KINDS = ("gaussian", "laplace", "randomized_response")


@dataclass(frozen=True, slots=True)
class Component:
    """Mechanisms of one kind, whose noise is wanted.

    Parameters
    ----------
    kind : {"laplace", "gaussian", "randomized_response"}
        Randomised response has two answers and its scale is 1/epsilon.
    count : int
        How many, at least 1; all get the same.
    sensitivity : float
        Above 0 and below 1e50: L1 for Laplace, L2 for Gaussian noise; the noise grows with it.
    weight : float
        How much the variance of one matters: above 0 and below 1e50.

    Raises
    ------
    ArgumentError
        The kind is unknown, or a number out of range.

    Examples
    --------
    >>> Component("laplace", count=3, sensitivity=2).describe()
    '3 * laplace(sensitivity=2)'
    """

    kind: str
    count: int = 1
    sensitivity: float = 1.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ArgumentError(
                f"kind must be one of {', '.join(KINDS)}" + nearest(str(self.kind), KINDS)
            )
        check.count("count", self.count)
        check.number("sensitivity", self.sensitivity, above=0, below=1e50)
        check.number("weight", self.weight, above=0, below=1e50)

    def describe(self) -> str:
        """The part as it is written in an expression."""
        options = [
            f"{name}={value:g}"
            for name, value in (("sensitivity", self.sensitivity), ("weight", self.weight))
            if value != 1
        ]
        name = self.kind + (f"({', '.join(options)})" if options else "")
        return name if self.count == 1 else f"{self.count} * {name}"

    def error(self, scale: float) -> float:
        """The weighted variance of one, at noise ``scale`` for sensitivity 1."""
        if self.kind == "randomized_response":
            # Of the unbiased count of one report: e^ε/(e^ε - 1)².
            variance = 0.25 / math.sinh(0.5 / scale) ** 2 if scale > 1e-3 else 1e-300
        else:
            variance = scale * scale * (2.0 if self.kind == "laplace" else 1.0)
        return self.weight * self.sensitivity**2 * variance

    def make(self, scale: float) -> Loss:
        """The loss of one at noise ``scale`` for sensitivity 1."""
        if self.kind == "gaussian":
            return gaussian(scale)
        return laplace(scale) if self.kind == "laplace" else randomized_response(1 / scale)

    def scale(self, epsilon: float, delta: float) -> float:
        """The least noise that is (epsilon, delta)-DP alone, for sensitivity 1."""
        return analytic_scale(epsilon, delta) if self.kind == "gaussian" else 1 / epsilon

    def error_of(self, epsilon: float, delta: float) -> float:
        """The error at that noise."""
        return self.error(self.scale(epsilon, delta))


@dataclass(frozen=True, slots=True)
class Share:
    """What each mechanism of a part may have.

    ``scale`` is its noise, sensitivity included; epsilon and delta are None where the theorem
    composes noise and not promises.
    """

    epsilon: float | None
    delta: float | None
    scale: float


@dataclass(frozen=True, slots=True)
class Shares:
    """One theorem's answer: a share for each part, the slack that it spends, the total error."""

    theorem: str
    error: float | None
    shares: tuple[Share, ...]
    slack: float | None
    note: str
    seconds: float


@dataclass(frozen=True, slots=True)
class EveryDivision(Printable):
    """A table of `Shares`; ``print`` it or ``plot`` it."""

    parts: tuple[Component, ...]
    epsilon: float
    delta: float
    rows: tuple[Shares, ...]

    @property
    def title(self) -> str:
        """What was divided."""
        return f"epsilon {self.epsilon:g}, delta {self.delta:g} divided for the least total error"

    def best(self) -> Shares:
        """The row of least error."""
        known = [row for row in self.rows if row.error is not None]
        return min(known, key=lambda row: row.error or 0.0)

    def summary(self) -> str:
        """The division as a table."""
        width = max(len(row.theorem) for row in self.rows)
        names = [part.describe() for part in self.parts]
        wide = max(len(name) for name in names)
        lines = [self.title]
        for row in self.rows:
            if row.error is None:
                lines.append(f"  {row.theorem:<{width}}  {'-':>12}  {row.note}")
                continue
            slack = f"  slack delta {loss_text(row.slack, 2)}" if row.slack else ""
            lines.append(
                f"  {row.theorem:<{width}}  total error {row.error:<12.6g}"
                f" {1e3 * row.seconds:>7.1f} ms{slack}"
            )
            for name, share in zip(names, row.shares, strict=True):
                part_text = ""
                if share.epsilon is not None:
                    part_text = f"   epsilon {remaining(share.epsilon, 6)}"
                    part_text += f", delta {remaining(share.delta, 3)}" if share.delta else ""
                line = f"  {'':<{width}}    {name:<{wide}}  scale {share.scale:<10.6g}{part_text}"
                lines.append(line.rstrip())
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw every theorem's total error, and the noise that each part gets by it."""
        from dither.plots._theorems import draw_division

        return draw_division(self, path)


def divide_by_every_theorem(
    parts: Sequence[Component], *, epsilon: float, delta: float
) -> EveryDivision:
    """The noise of least total weighted variance that keeps a promise, by every theorem.

    Parameters
    ----------
    parts : sequence of Component
        What is to run on the same data.
    epsilon, delta : float
        The promise for everything together: in (0, 500) and in [0, 1).

    Returns
    -------
    EveryDivision
        Rows, from the sharpest: "numeric" composes the noise itself (`split`); "zCDP" its rho;
        "optimal", "advanced" and "basic" each divide epsilon, delta and a slack (`divide`) and give
        every mechanism the noise that its own part needs. Each row keeps the promise.

    Examples
    --------
    >>> mix = [Component("laplace", sensitivity=2.0), Component("gaussian", count=3)]
    >>> table = divide_by_every_theorem(mix, epsilon=1.0, delta=1e-6)
    >>> [row.theorem for row in table.rows], table.best().theorem
    (['numeric', 'zCDP', 'optimal', 'advanced', 'basic'], 'numeric')
    """
    given = tuple(check.listed("parts", parts, "Component"))
    if not all(isinstance(part, Component) for part in given):
        raise ArgumentError("parts must hold at least one Component, and nothing else")
    e = check.number("epsilon", epsilon, above=0, below=500, rounding="down")
    d = check.number("delta", delta, least=0, below=1, rounding="down")
    if d == 0 and any(part.kind == "gaussian" for part in given):
        raise ArgumentError("delta must be above 0 for Gaussian noise; try 1e-6, or Laplace noise")
    works: dict[str, Callable[[], tuple[Any, ...]]] = {
        "numeric": partial(_numeric, given, e, d),
        "zCDP": partial(_zcdp, given, e, d),
        **{name: partial(_divided, given, e, d, name) for name in ("optimal", "advanced", "basic")},
    }
    rows = []
    for name, work in works.items():
        begun = time.perf_counter()
        try:
            found, shares, slack = work()
        except ArgumentError as refused:
            note = str(refused).split(":")[0].split(";")[0]
            rows.append(Shares(name, None, (), None, note, time.perf_counter() - begun))
        else:
            rows.append(Shares(name, found, shares, slack, "", time.perf_counter() - begun))
    return EveryDivision(given, e, d, tuple(rows))


Answer = tuple[float, tuple[Share, ...], float | None]


def _numeric(parts: tuple[Component, ...], epsilon: float, delta: float) -> Answer:
    scales, error, _ = split_groups(
        [part.make for part in parts],
        [part.error for part in parts],
        [part.count for part in parts],
        epsilon=epsilon,
        delta=delta,
    )
    pairs = zip(parts, scales, strict=True)
    return error, tuple(Share(None, None, s * p.sensitivity) for p, s in pairs), None


def _zcdp(parts: tuple[Component, ...], epsilon: float, delta: float) -> Answer:
    """rho = 1/(2·scale²) for every kind: scale_i ∝ (its error at scale 1)^{-1/4}."""
    if delta == 0:
        raise ArgumentError("delta must be above 0")
    if any(part.kind == "randomized_response" for part in parts):
        raise ArgumentError("randomised response has no error in proportion to 1/rho")
    rho = float(rho_of_epsilon(epsilon, delta))
    ratios = [part.error(1.0) ** -0.25 for part in parts]
    spent = math.fsum(0.5 * p.count / r**2 for p, r in zip(parts, ratios, strict=True))
    # Squares, quotients and a sum in `spent`, and rho itself, have 6 roundings of half of EPS,
    # whose root has half; the root, and the products below, have 4 more.
    scale = math.sqrt(spent / rho) * (1 + 8 * EPS)
    error = math.fsum(p.count * p.error(scale * r) for p, r in zip(parts, ratios, strict=True))
    pairs = zip(parts, ratios, strict=True)
    return error, tuple(Share(None, None, scale * r * p.sensitivity) for p, r in pairs), None


def _divided(parts: tuple[Component, ...], epsilon: float, delta: float, theorem: str) -> Answer:
    found = divide_groups(
        [part.error_of for part in parts],
        [part.count for part in parts],
        epsilon=epsilon,
        delta=delta,
        theorem=theorem,
    )
    shares, error = [], []
    for part, e, d in zip(parts, found.epsilons, found.deltas, strict=True):
        scale = part.scale(e, d)
        # The search's scale is good to some digits; the loss itself says when it keeps its part. (A
        # delta of 0 is kept where one is below 1e-300: pure noise has none but for rounding.)
        step = 1e-15
        while part.make(scale).delta(e).upper > max(d, 1e-300):
            scale, step = scale * (1 + step), 4 * step
        shares.append(Share(e, d, scale * part.sensitivity))
        error.append(part.count * part.error(scale))
    return math.fsum(error), tuple(shares), found.slack


def analytic_scale(epsilon: float, delta: float) -> float:
    """sigma of Gaussian noise that is (epsilon, delta)-DP at sensitivity 1, in plain doubles.

    The root of Phi(1/(2σ) - εσ) - e^ε·Phi(-1/(2σ) - εσ) = delta (Balle and Wang, 2018).
    """
    if delta <= 0:
        return math.inf
    goal = math.log(delta)

    def over(log_sigma: float) -> float:
        s = math.exp(log_sigma)
        a, b = 0.5 / s - epsilon * s, 0.5 / s + epsilon * s
        value = 0.5 * math.erfc(-a / math.sqrt(2))
        tail = 0.5 * math.erfc(b / math.sqrt(2))
        value -= math.exp(epsilon + math.log(tail)) if tail > 0 else 0.0
        return math.log(max(value, 1e-320)) - goal

    low, high = math.log(1e-3), math.log(2 * math.sqrt(2 * max(1.0, 1 - goal)) / epsilon + 10)
    # As close as doubles tell two logarithms apart.
    ends = over(low), over(high)
    return math.exp(false_position(over, low, high, ends, absolute=1e-15, relative=EPS)[1])

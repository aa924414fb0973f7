"""The same total by every theorem, side by side: what each gives, and how long it took."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dither import _checks as check
from dither._format import Printable, argument_text, remaining
from dither.errors import ArgumentError
from dither.numeric import float_down, float_up, sqrt_lower
from dither.privacy import Bound, Loss, approximate, gdp
from dither.privacy._conversion import epsilon_of_rho
from dither.privacy._side import sides
from dither.privacy._terms import merged
from dither.privacy.engines.choice import Chernoff
from dither.privacy.engines.search import invert
from dither.privacy.laws.rationals import printed, printing_at_least, printing_at_most
from dither.privacy.laws.term import EPS
from dither.privacy.theorems import advanced, advanced_of_groups, corollary_share, share

__all__ = ["EveryTheorem", "Row", "by_every_theorem", "shares_by_every_theorem"]


_EQUAL = 1e-9
"""A part by which two theorems' answers differ that are shown as equal."""


@dataclass(frozen=True, slots=True)
class Row:
    """One theorem's answer.

    Parameters
    ----------
    theorem : str
        Its name.
    value : float or None
        An epsilon (or a share), rounded to caution; None where the theorem gives nothing.
    note : str
        The method behind a number, or why there is none.
    seconds : float
        Wall time.
    """

    theorem: str
    value: float | None
    note: str
    seconds: float


@dataclass(frozen=True, slots=True)
class EveryTheorem(Printable):
    """A table of rows; ``print`` it or ``plot`` it.

    Parameters
    ----------
    title : str
        What was asked.
    rows : tuple of Row
    more : bool
        Whether more is better: of a share, not of an epsilon.
    """

    title: str
    rows: tuple[Row, ...]
    more: bool = False

    def summary(self) -> str:
        """Every theorem's answer in a line of its own."""
        width = max(len(row.theorem) for row in self.rows)
        # What it costs is rounded up, what each may have down.
        text = remaining if self.more else argument_text
        values = ["-" if row.value is None else text(row.value, 15) for row in self.rows]
        longest = max(len(value) for value in values)
        lines = [self.title]
        for row, value in zip(self.rows, values, strict=True):
            time = f"{1e3 * row.seconds:.1f} ms"
            line = f"  {row.theorem:<{width}}  {value:>{longest}}  {time:>9}  {row.note}"
            lines.append(line.rstrip())
        return "\n".join(lines)

    def best(self) -> Row:
        """The row to quote: the least epsilon, or the largest share."""
        known = [row for row in self.rows if row.value is not None]
        if not known:
            raise ArgumentError("no theorem gives a number here; " + self.rows[0].note)
        # Rows are listed from the sharpest; one that differs by its rounding is not sharper.
        best = known[0]
        for row in known[1:]:
            old, new = best.value or 0.0, row.value or 0.0
            if new > old * (1 + _EQUAL) if self.more else new < old * (1 - _EQUAL):
                best = row
        return best

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the rows as bars."""
        from dither.plots._theorems import draw_theorems

        return draw_theorems(self, path)


def _row(theorem: str, compute: Callable[[], tuple[float, str]]) -> Row:
    start = time.perf_counter()
    try:
        value, note = compute()
    except ArgumentError as error:
        return Row(theorem, None, str(error).split(";")[0], time.perf_counter() - start)
    return Row(theorem, value, note, time.perf_counter() - start)


def by_every_theorem(loss: Loss, delta: float) -> EveryTheorem:
    """epsilon at a delta by numeric composition and by every theorem that applies.

    Parameters
    ----------
    loss : Loss
        The total.
    delta : float
        In (0, 1).

    Returns
    -------
    EveryTheorem
        A row for each theorem; one that does not apply has no value, and its note gives the reason.

    Raises
    ------
    ArgumentError
        delta is not in (0, 1).

    Examples
    --------
    >>> from dither import privacy
    >>> table = by_every_theorem(10_000 * privacy.pure(0.01), 1e-5)
    >>> [row.theorem for row in table.rows]
    ['numeric', 'Rényi', 'zCDP', 'Gaussian DP', 'advanced, tanh form', 'advanced, exponential form',
     'basic']
    >>> table.best().theorem
    'numeric'
    """
    if not isinstance(loss, Loss):
        raise ArgumentError("loss must be a Loss, such as privacy.gaussian(1.0)")
    d = check.number("delta", delta, above=0, below=1)
    if not loss.parts:
        raise ArgumentError("loss must have at least one part")
    pures = _pures(loss)

    def numeric() -> tuple[float, str]:
        bound = loss.epsilon(d)
        return bound.upper, bound.describe()

    def renyi() -> tuple[float, str]:
        if loss.slack:
            raise ArgumentError("a truncated sample has no Rényi divergence")
        ends = []
        for side in sides(loss):
            if side.moments is None:
                raise ArgumentError("no closed form of a part's Rényi divergence")
            engine = Chernoff(side.moments, log_delta=math.log(d), epsilon=None)
            # Moments say nothing of what fails: that alone takes all of delta.
            if side.infinite_of_moments >= d:
                raise ArgumentError("delta is below the chance of failure")
            # Two roundings, of an argument and of a logarithm of up to 745; the search's width is
            # none of them, as what it returns is proved.
            target = math.log(d - side.infinite_of_moments) - EPS * (2 + 745)
            ends.append(
                invert(
                    lambda e, engine=engine: engine.bounds(e)[1],  # type: ignore[misc]
                    target,
                    engine.start,
                    above=True,
                    tiny=1e-12,
                )
            )
        return max(ends), "optimal order and conversion"

    def zcdp() -> tuple[float, str]:
        rho = loss.zcdp().upper
        return float_up(epsilon_of_rho(rho, d)), f"rho {argument_text(rho)}"

    def gaussian() -> tuple[float, str]:
        mu = loss.gdp().upper
        return gdp(mu).epsilon(d).upper, f"mu {argument_text(mu)}"

    def by_form(form: str) -> tuple[float, str]:
        if pures is None:
            raise ArgumentError("needs pure mechanisms")
        if len(pures) == 1:
            return advanced(pures[0][0], pures[0][1], d, form=form), ""
        if form == "exponential":
            raise ArgumentError("stated for equal mechanisms")
        bound = advanced_of_groups([(e, 0.0, k) for e, k in pures], d)
        return bound.upper, bound.method

    def basic() -> tuple[float, str]:
        if pures is None:
            raise ArgumentError("needs pure mechanisms")
        return printing_at_least(sum((k * printed(e) for e, k in pures), Fraction(0))), "delta 0"

    return EveryTheorem(
        f"epsilon of {loss.describe()} at delta {d:g}",
        (
            _row("numeric", numeric),
            _row("Rényi", renyi),
            _row("zCDP", zcdp),
            _row("Gaussian DP", gaussian),
            _row("advanced, tanh form", lambda: by_form("tanh")),
            _row("advanced, exponential form", lambda: by_form("exponential")),
            _row("basic", basic),
        ),
    )


def _pures(loss: Loss) -> list[tuple[float, int]] | None:
    """Each part's own pure epsilon and count; None where one has none."""
    if loss.slack:
        return None
    found: list[tuple[float, int]] = []
    for part, count in merged(loss.parts):
        try:
            # Each part by itself at delta 0: the theorems take pure mechanisms.
            bound: Bound = Loss(((part, 1),), loss.neighbours).epsilon(0.0)
        except ArgumentError:
            return None
        found.append((bound.upper, count))
    return found


def shares_by_every_theorem(
    epsilon: float, k: int, delta: float, *, each_delta: float = 0.0
) -> EveryTheorem:
    """What each of k mechanisms may have, so that all together keep (epsilon, delta).

    The question of a lifetime budget over k databases, answered by every theorem side by side.

    Parameters
    ----------
    epsilon, delta : float
        The promise: above 0, and in (0, 1).
    k : int
        Mechanisms, at least 1.
    each_delta : float
        Each is (share, each_delta)-DP; k·each_delta must be below delta. The rest is the slack
        delta' of the theorems that have one.

    Returns
    -------
    EveryTheorem
        Largest epsilons of each mechanism, rounded down.

    Raises
    ------
    ArgumentError
        An argument is out of range, or k·each_delta is not below delta.

    Examples
    --------
    >>> table = shares_by_every_theorem(1.0, 10_000, 1.2664165549094176e-14)
    >>> {row.theorem: round(row.value, 7) for row in table.rows}
    {'optimal': 0.0013976, 'zCDP': 0.0013488, 'advanced, tanh form': 0.0012404,
     'advanced, exponential form': 0.001231, 'corollary 3.21': 0.000625, 'basic': 0.0001}
    >>> table.best().theorem
    'optimal'
    """
    from dither.privacy._calibration import calibrate
    from dither.privacy._conversion import rho_of_epsilon

    e = check.number("epsilon", epsilon, above=0, below=500, rounding="down")
    d = check.number("delta", delta, above=0, below=1, rounding="down")
    k = check.count("k", k)
    each = check.number("each_delta", each_delta, least=0, below=1)
    # Exactly: a slack of a rounding would be no slack.
    rest = Fraction(d) - k * Fraction(each)
    if rest <= 0:
        raise ArgumentError("each_delta must be below delta/k: the deltas alone add up to more")
    slack = float_down(rest)

    def optimal() -> tuple[float, str]:
        start = min(e / math.sqrt(k), 100.0)
        bound = calibrate(
            lambda x: k * approximate(min(x, 499.0), each), epsilon=e, delta=d, start=start
        )
        return float(bound), f"at most {argument_text(bound.upper, 15)}"

    def zcdp() -> tuple[float, str]:
        if each:
            raise ArgumentError("needs pure mechanisms")
        rho = rho_of_epsilon(e, d)
        return float_down(sqrt_lower(2 * rho / k)), f"rho {remaining(rho, 6)} in all"

    beside = f", each with delta {each:g}" if each else ""
    return EveryTheorem(
        f"share of each of {k:,} mechanisms in epsilon {e:g}, delta {d:g}{beside}",
        (
            _row("optimal", optimal),
            _row("zCDP", zcdp),
            _row("advanced, tanh form", lambda: (share(e, k, slack), "")),
            _row(
                "advanced, exponential form",
                lambda: (share(e, k, slack, form="exponential"), ""),
            ),
            _row("corollary 3.21", lambda: (corollary_share(e, k, slack), "")),
            _row("basic", lambda: (printing_at_most(printed(e) / k), "no slack")),
        ),
        more=True,
    )

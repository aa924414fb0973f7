"""What an audit found: a verdict, a certified bound, and the event that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dither._format import Printable, at_least, level
from dither.lab._verdicts import Outcome, paragraph
from dither.lab.audit._claims import Claim
from dither.lab.audit._events import Event

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Audit"]


@dataclass(frozen=True, slots=True)
class Audit(Printable):
    """The result of `audit`.

    Attributes
    ----------
    verdict : Outcome
        *violated* or *not refuted*; never *verified*. *Inconclusive* where nothing was audited:
        every call failed, no difference was seen, nor between scores, or both datasets are the
        same.
    lower : float
        The certified lower bound of epsilon at the claimed delta; 0 where nothing is certified.
    delta : float
        The certified lower bound of delta at the claimed epsilon; 0 where nothing is certified.
    mu : float
        The certified lower bound of mu, as Gaussian differential privacy measures it.
    event : Event
        The event that certifies most, or a simpler one that certifies nearly as much; described
        without any value of an output.
    events : tuple of Event
        All that were certified; every bound of every one of them holds at once.
    claimed : Claim
        What was claimed.
    samples : int
        Outputs drawn from each of the two datasets; half of them certify.
    confidence : float
        The probability that no bound is wrong, if draws are independent. A true claim is *violated*
        with probability at most a fiftieth of the rest.
    seconds : float
        What it took.
    distance : int
        How many neighbours apart the datasets are; what is certified is of one.
    within : float or None
        The certified lower bound of epsilon if the mechanism is of the family that was given.
    reuse : str or None
        How the mechanism's noise is not fresh, where that was seen.
    independent : bool
        Whether draws looked independent; where they did not, nothing is certified.
    notes : tuple of str
        What else should be known.

    Examples
    --------
    >>> from dither.lab.audit import audit
    >>> found = audit(lambda data: len(data), [], ["Ann"], epsilon=1, samples=2000)
    >>> print(found.verdict, found.lower > 1)
    violated True
    """

    verdict: Outcome
    lower: float
    delta: float
    mu: float
    event: Event | None
    events: tuple[Event, ...]
    claimed: Claim
    samples: int
    confidence: float
    seconds: float
    distance: int = 1
    within: float | None = None
    reuse: str | None = None
    independent: bool = True
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """The result in a paragraph for people, which says what it does not say."""
        if self.claimed.mu is not None:
            certified = f"μ >= {at_least(self.mu)}"
        elif self.claimed.delta:
            certified = (
                f"ε >= {at_least(self.lower)} at this δ, δ >= {at_least(self.delta, 4)} at this ε,"
            )
        else:
            certified = f"ε >= {at_least(self.lower)}"
        confident = f"at {level(self.confidence)} confidence"
        lines = [
            f"{self.verdict.upper()}: claimed {self.claimed}; certified {certified} {confident}."
        ]
        if self.within is not None:
            lines.append(f"Within the family: ε >= {at_least(self.within)}.")
        if self.reuse:
            lines.append(f"Reused noise: {self.reuse}.")
        if self.event is not None:
            lines.append(f"Event: {self.event}.")
        lines += [f"Note: {note}." for note in self.notes]
        if self.distance > 1:
            lines.append(
                f"Datasets: {self.distance:,} neighbours apart; what is certified is of one."
            )
        lines.append(f"{self.samples:,} outputs of each dataset, {self.seconds:.1f} s.")
        if self.verdict in (Outcome.NOT_REFUTED, Outcome.INCONCLUSIVE):
            lines.append(self.verdict.sentence)
        return paragraph(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the certified events against what the claim allows.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._alarms import draw_audit

        return draw_audit(self, path)

"""Verdicts: what an attack reached, what it may reach at most, and what may be said of it.

Three things can be said, and none of them is "safe":

- *violated*: the success is beyond what the stated loss lets any attack reach. It rests on an exact
  tail (see `dither.attack.intervals`), corrected for the two that are tried.
- *consistent*: the attack works on the bare truth, fails on a stranger's release, and stays within
  the bound here. Another attack may do better.
- *uninformative (weak attack)*: a control failed or was not played, so a failure here would say
  nothing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from dither.attack.intervals import binomial_tail, hoeffding_tail, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Outcome", "Score", "Verdict", "judge", "plot_verdicts"]


class Outcome(StrEnum):
    """What may be said. No attack that fails shows that a release is safe."""

    VIOLATED = "violated"
    CONSISTENT = "consistent"
    UNINFORMATIVE = "uninformative (weak attack)"


@dataclass(frozen=True, slots=True)
class Score:
    """Hits and targets of every run.

    Examples
    --------
    >>> Score((9, 8), (10, 10)).share
    0.85
    """

    hits: tuple[int, ...]
    targets: tuple[int, ...]

    @staticmethod
    def of(plays: Iterable[tuple[int, int]]) -> Score:
        """From pairs of hits and targets."""
        hits, targets = zip(*plays, strict=True)
        return Score(tuple(map(int, hits)), tuple(map(int, targets)))

    @property
    def share(self) -> float:
        """Hits of all targets."""
        return sum(self.hits) / sum(self.targets)

    def interval(self, confidence: float) -> tuple[float, float]:
        """The nominal interval of the success."""
        return interval(self.hits, self.targets, confidence)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of an experiment.

    Attributes
    ----------
    outcome : Outcome
    game, release, attack : str
        What was played.
    score : Score
        Of the attack against the release.
    low, high : float
        The nominal interval of its success.
    prior : float
        The success of the best blind guess.
    bound : float
        What the release's loss lets any attack reach; 1 where nothing is promised.
    control, null : Score or None
        Against the bare truth, and against a stranger's release.
    epsilon : float or None
        The pure epsilon of the release.
    predicted : float or None
        The success that theory predicts of this attack.
    promised : float or None
        The success that a theorem promises the attacker, at the least.
    confidence : float
    reason : str
        Why the outcome is what it is.
    """

    outcome: Outcome
    game: str
    release: str
    attack: str
    score: Score
    low: float
    high: float
    prior: float
    bound: float
    control: Score | None
    null: Score | None
    epsilon: float | None
    predicted: float | None
    promised: float | None
    confidence: float
    reason: str

    @property
    def success(self) -> float:
        """The share of targets that were guessed right."""
        return self.score.share

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """The verdict in a paragraph for people.

        Returns
        -------
        str
        """
        runs = len(self.score.hits)
        lines = [
            f"{self.outcome.upper()}: {self.attack} against {self.release}.",
            f"Guessed right: {_percent(self.success)} "
            f"[{_percent(self.low)}, {_percent(self.high)}] of {sum(self.score.targets):,} "
            f"targets in {runs} run{'s' * (runs > 1)}; blindly {_percent(self.prior)}.",
        ]
        if self.predicted is not None:
            lines.append(f"Theory predicts {_percent(self.predicted)}.")
        if self.promised is not None:
            lines.append(f"A theorem promises the attacker at least {_percent(self.promised)}.")
        if self.bound < 1.0 or self.epsilon is not None:
            lines.append(f"The loss lets no attack exceed {_percent(self.bound)} on average.")
        else:
            lines.append("The release promises nothing.")
        if self.control is not None and self.null is not None:
            lines.append(
                f"Controls: {_percent(self.control.share)} of the bare truth, "
                f"{_percent(self.null.share)} from a stranger's release."
            )
        lines.append(self.reason)
        return "\n".join(part for line in lines for part in textwrap.wrap(line, 88))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the success beside prior, control, prediction and bound.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return plot_verdicts([self], path)


def plot_verdicts(
    verdicts: Sequence[Verdict], path: str | Path | None = None, *, title: str | None = None
) -> Figure:
    """Draw verdicts: success against epsilon where every release has one, else side by side.

    Parameters
    ----------
    verdicts : sequence of Verdict
        At least one.
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    from dither.plots.attack import draw_verdicts

    return draw_verdicts(verdicts, path, title=title)


def judge(
    *,
    game: str,
    release: str,
    attack: str,
    score: Score,
    control: Score | None,
    null: Score | None,
    prior: float,
    bound: float,
    pure: float | None,
    epsilon: float | None,
    predicted: float | None = None,
    promised: float | None = None,
    confidence: float = 0.99,
) -> Verdict:
    """Weigh the scores of an experiment.

    Parameters
    ----------
    game, release, attack : str
        Names.
    score, control, null : Score
        Against the release, the bare truth, and a stranger's release.
    prior, bound : float
        Success of a blind guess, and the most that the loss allows on average.
    pure : float or None
        Where the loss is pure: what it lets a guess reach given all other targets.
    epsilon, predicted, promised : float or None
        Facts that the verdict carries.
    confidence : float
        The chance that *violated* is not said wrongly, whatever the attack.

    Returns
    -------
    Verdict
    """
    low, high = score.interval(confidence)
    beyond = _beyond(score, bound, pure) < 1.0 - confidence
    if beyond:
        outcome = Outcome.VIOLATED
        reason = "No release of the stated loss could be guessed so well."
    elif control is None or null is None:
        outcome, reason = Outcome.UNINFORMATIVE, "No controls were played."
    elif control.interval(confidence)[0] <= prior:
        outcome = Outcome.UNINFORMATIVE
        reason = "The attack fails even on the bare truth, so its failure here says nothing."
    # A control that cheats does so grossly; luck alone must not spoil a verdict.
    elif _beyond(null, prior, prior) < 1e-3 * (1.0 - confidence):
        outcome = Outcome.UNINFORMATIVE
        reason = "The attack succeeds on a stranger's release: it knows more than it should."
    else:
        outcome = Outcome.CONSISTENT
        reason = (
            "Within what the loss allows. Another attack may do better, none beyond the bound."
            if bound < 1.0
            else "Nothing was promised that the attack could break; the success is what it is."
        )
    return Verdict(
        outcome=outcome,
        game=game,
        release=release,
        attack=attack,
        score=score,
        low=low,
        high=high,
        prior=prior,
        bound=bound,
        control=control,
        null=null,
        epsilon=epsilon,
        predicted=predicted,
        promised=promised,
        confidence=confidence,
        reason=reason,
    )


def _beyond(score: Score, bound: float, pure: float | None) -> float:
    """How likely so good a score is under the bound, at most; twice over, for two tails tried."""
    tails = [hoeffding_tail(score.share, bound, len(score.hits))]
    if pure is not None:
        tails.append(binomial_tail(sum(score.targets), sum(score.hits), pure))
    return min(1.0, len(tails) * min(tails))


def _percent(share: float) -> str:
    text = f"{100 * share:.1f}"
    # A share that is not whole must not look so.
    if text == "100.0" and share < 1.0:
        text = "> 99.9"
    return f"{text} %" if text != "100.0" else "100 %"

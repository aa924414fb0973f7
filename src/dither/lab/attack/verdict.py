"""Verdicts: what an attack reached, what it may reach at most, and what may be said of it.

Four things can be said, and none of them is "safe":

- *violated*: the success is beyond what the stated loss lets any attack reach. It rests on an exact
  tail (see `dither.lab.attack.intervals`), corrected for all that are tried.
- *above the bound, unproven*: an interval that is shown lies above what the loss allows, and no
  tail proves it yet. More runs decide.
- *consistent*: the attack works (here, or on the bare truth), fails on a stranger's release, and no
  interval lies above the bound. Another attack may do better.
- *uninformative (weak attack)*: the attack fails here, and a control failed or was not played, so
  that its failure says nothing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from dither._format import percent
from dither.lab.attack.intervals import binomial_tail, hoeffding_tail, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Outcome", "Score", "Verdict", "judge", "plot_verdicts"]


class Outcome(StrEnum):
    """What may be said. No attack that fails shows that a release is safe."""

    VIOLATED = "violated"
    UNPROVEN = "above the bound, unproven"
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
    bare : str
        What the undefended control was played on.
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
    bare: str = "the bare truth"

    @property
    def success(self) -> float:
        """The share of targets that were guessed right."""
        return self.score.share

    @property
    def bounded(self) -> bool:
        """Whether the release promises anything that an attack could break."""
        return self.bound < 1.0 or self.epsilon is not None

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
            f"Guessed right: {percent(self.success)} "
            f"[{percent(self.low)}, {percent(self.high)}] of {sum(self.score.targets):,} "
            f"targets in {runs} run{'s' * (runs > 1)}; blindly {percent(self.prior)}.",
        ]
        if self.predicted is not None:
            lines.append(f"Theory predicts {percent(self.predicted)}.")
        if self.promised is not None:
            lines.append(f"A theorem promises the attacker at least {percent(self.promised)}.")
        if self.bounded:
            lines.append(f"The loss lets no attack exceed {percent(self.bound)} on average.")
        else:
            lines.append("The release promises nothing.")
        if told := self.controls():
            lines.append(told)
        lines.append(self.reason)
        return "\n".join(part for line in lines for part in textwrap.wrap(line, 88))

    def controls(self) -> str:
        """How the controls that were played went, in a sentence; empty where none was."""
        said = []
        if self.control is not None:
            said.append(f"{percent(self.control.share)} of {self.bare}")
        if self.null is not None:
            said.append(f"{percent(self.null.share)} from a stranger's release")
        return f"Control{'s' * (len(said) > 1)}: {', '.join(said)}." if said else ""

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
    refuted: str | None = None,
    above: str | None = None,
    bare: str = "the bare truth",
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
        What the loss lets a guess reach whatever became of the others, where it bounds that.
    epsilon, predicted, promised : float or None
        Facts that the verdict carries.
    confidence : float
        The chance that *violated* is not said wrongly, whatever the attack.
    refuted : str, optional
        A sentence on what refutes the loss, where the caller tested that, at ``1 - confidence`` in
        all; empty where nothing did. The scores themselves are then not tested again.
    above : str, optional
        What else is shown whose interval lies above what the loss allows, as a subject: "the area".
    bare : str
        What the undefended control was played on.

    Returns
    -------
    Verdict
    """
    low, high = score.interval(confidence)
    if refuted is None:
        beyond = _beyond(score, bound, pure) < 1.0 - confidence
        refuted = "No release of the stated loss could be guessed so well." if beyond else ""
    if low > bound:
        above = "the success"
    # A control that cheats does so grossly; luck alone must not spoil a verdict.
    if null is not None and _beyond(null, prior, prior) < 1e-3 * (1.0 - confidence):
        outcome = Outcome.UNINFORMATIVE
        reason = "The attack succeeds on a stranger's release: it knows more than it should."
    elif refuted:
        outcome, reason = Outcome.VIOLATED, refuted
    elif above:
        outcome = Outcome.UNPROVEN
        reason = (
            f"The interval of {above} lies above what the loss allows. It is nominal, and nothing "
            f"proves a violation at {100 * confidence:g} %: play more."
        )
    elif prior >= 1.0:
        outcome = Outcome.UNINFORMATIVE
        reason = "A blind guess is always right here, so no attack has anything to learn."
    elif null is None or (control is None and low <= prior):
        outcome, reason = Outcome.UNINFORMATIVE, _unplayed(control, null)
    elif low <= prior and control is not None and control.interval(confidence)[0] <= prior:
        outcome, reason = Outcome.UNINFORMATIVE, _failed(control, prior, bare)
    else:
        outcome, reason = Outcome.CONSISTENT, _consistent(bound, high)
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
        bare=bare,
    )


def _unplayed(control: Score | None, null: Score | None) -> str:
    if control is None and null is None:
        return "No controls were played."
    if null is None:
        return "It was not played against a stranger's release."
    return (
        "The attack is not seen to beat a blind guess, and was not played against the bare truth, "
        "so this failure says nothing: give undefended=."
    )


def _failed(control: Score, prior: float, bare: str) -> str:
    if control.share <= prior:
        return f"The attack fails even on {bare}, so its failure here says nothing."
    return (
        f"Even on {bare} the attack is not seen to beat a blind guess: "
        f"{sum(control.hits):,} of {sum(control.targets):,} may be luck, so nothing is said."
    )


def _consistent(bound: float, high: float) -> str:
    if bound >= 1.0:
        return "Nothing was promised that the attack could break; the success is what it is."
    if high > bound:
        return (
            "The interval holds the bound: nothing shows that more was lost than the loss allows."
        )
    return "Within what the loss allows. Another attack may do better, none beyond the bound."


def _beyond(score: Score, bound: float, pure: float | None) -> float:
    """How likely so good a score is under the bound, at most; twice over, for two tails tried."""
    tails = [hoeffding_tail(score.share, bound, len(score.hits))]
    if pure is not None:
        tails.append(binomial_tail(sum(score.targets), sum(score.hits), pure))
    return min(1.0, len(tails) * min(tails))

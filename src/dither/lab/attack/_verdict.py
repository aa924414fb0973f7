"""Verdicts of attacks: what one reached, what it may reach at most, and what may be said of it.

A run scores ``hits`` of ``targets``. Runs are independent; targets of one run share its release.

*Interval*: Student's over the runs' shares, and never narrower than Clopper and Pearson's over all
targets, so that runs that agree by luck do not look certain. It is nominal.

*Tails*, which alone say *violated*: sound for any dependence inside a run. With X_r in [0, 1] the
share of run r and E[X_r] <= p, Hoeffding's Pr[mean >= x] <= exp(-runs·KL(x, p)). And where each
guess is right with probability at most p *whatever the other targets are*, the hits are dominated
by a binomial.

Source. Clopper and Pearson, 1934; Hoeffding, 1963, theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._format import Printable, count_text, percent
from dither._format import level as level_text
from dither._stats import binomial_tail_above, clopper_pearson, hoeffding_tail, student_reach
from dither.errors import ArgumentError
from dither.lab._verdicts import Outcome, paragraph
from dither.privacy import Loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Score",
    "Verdict",
    "judge",
    "most_certain",
    "most_right",
    "plot_verdicts",
    "pure_epsilon",
]

BARE = "the bare truth"


@dataclass(frozen=True, slots=True)
class Score:
    """Hits and targets of every run.

    Examples
    --------
    >>> Score((9, 8), (10, 10)).share
    0.85
    >>> low, high = Score((9, 10, 8), (10, 10, 10)).interval(0.95)
    >>> 0.6 < low < 0.75, high > 0.97
    (True, True)
    """

    hits: tuple[int, ...]
    targets: tuple[int, ...]

    @staticmethod
    def of(plays: Iterable[tuple[int, int]]) -> Score:
        """From pairs of hits and targets."""
        hits, targets = zip(*plays, strict=True)
        return Score(tuple(map(int, hits)), tuple(map(int, targets)))

    @staticmethod
    def of_guesses(guesses: Any, truth: Any) -> Score:
        """One run: of arrays of guesses, how many are right."""
        return Score((int((guesses == truth).sum()),), (len(truth),))

    @property
    def share(self) -> float:
        """Hits of all targets."""
        return sum(self.hits) / sum(self.targets)

    def interval(self, confidence: float) -> tuple[float, float]:
        """The nominal interval of the success, as the head of this module says."""
        low, high = clopper_pearson(sum(self.hits), sum(self.targets), confidence)
        runs = len(self.hits)
        if runs > 1:
            shares = np.asarray(self.hits) / np.asarray(self.targets)
            half = student_reach(runs - 1, confidence) * float(shares.std(ddof=1)) / runs**0.5
            low, high = min(low, self.share - half), max(high, self.share + half)
        return max(0.0, low), min(1.0, high)


@dataclass(frozen=True, slots=True)
class Verdict(Printable):
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
    bare: str = BARE

    @property
    def success(self) -> float:
        """The share of targets that were guessed right."""
        return self.score.share

    @property
    def bounded(self) -> bool:
        """Whether the release promises anything that an attack could break."""
        return self.bound < 1.0 or self.epsilon is not None

    def summary(self) -> str:
        """The verdict in a paragraph for people."""
        runs = len(self.score.hits)
        low, high = percent(self.low, turn=math.floor), percent(self.high, turn=math.ceil)
        lines = [
            f"{self.outcome.upper()}: {self.attack} against {self.release}.",
            f"Guessed right: {percent(self.success)} [{low}, {high}] of "
            f"{sum(self.score.targets):,} targets in {count_text(runs, 'run')}; blindly "
            f"{percent(self.prior)}.",
        ]
        if self.predicted is not None:
            lines.append(f"Theory predicts {percent(self.predicted)}.")
        if self.promised is not None:
            least = percent(self.promised, turn=math.floor)
            lines.append(f"A theorem promises the attacker at least {least}.")
        if self.bounded:
            most = percent(self.bound, turn=math.ceil)
            lines.append(f"The loss lets no attack exceed {most} on average.")
        else:
            lines.append("The release promises nothing.")
        return paragraph([*lines, self.controls(), self.reason])

    def controls(self) -> str:
        """How the controls that were played went, in a sentence; empty where none was."""
        said = []
        if self.control is not None:
            said.append(f"{percent(self.control.share)} of {self.bare}")
        if self.null is not None:
            said.append(f"{percent(self.null.share)} from a stranger's release")
        return f"Control{'s' * (len(said) > 1)}: {', '.join(said)}." if said else ""

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the success beside prior, control, prediction and bound; see `plot_verdicts`."""
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
    """
    from dither.plots.lab._attack import draw_verdicts

    return draw_verdicts(verdicts, path, title=title)


def most_right(loss: Loss | None, prior: float = 0.5) -> float:
    """The most that a loss lets anybody be right, on average; 1 where there is none."""
    return 1.0 if loss is None else 1.0 - float(loss.bayes_risk(prior).lower)


def most_certain(epsilon: float, prior: float) -> float:
    """How sure anybody can be of one of two things after a pure release, who held it at ``prior``.

    Of posterior odds: a release multiplies the odds of two neighbouring tables by at most
    e^epsilon, whatever else is known. It is attained where the loss is exact.

    Examples
    --------
    >>> round(most_certain(1.0, 0.5), 4), round(most_certain(1.0, 0.01), 4), most_certain(0.0, 0.3)
    (0.7311, 0.0267, 0.3)
    """
    # By the smaller of two odds: beyond e^700 there is no double, and nothing left to hide.
    against = (1.0 - prior) / prior * math.exp(-min(epsilon, 700.0))
    return 1.0 / (1.0 + against)


def pure_epsilon(loss: Loss | None) -> float | None:
    """The pure epsilon of a loss; None where it has none."""
    try:
        return None if loss is None else float(loss.epsilon(0.0))
    except ArgumentError:
        return None


def judge(
    *,
    game: str,
    release: str,
    attack: str,
    score: Score,
    control: Score | None,
    null: Score | None,
    prior: float,
    bound: float = 1.0,
    pure: float | None = None,
    epsilon: float | None = None,
    predicted: float | None = None,
    promised: float | None = None,
    confidence: float = 0.99,
    refuted: str | None = None,
    above: str | None = None,
    bare: str = BARE,
) -> Verdict:
    """Weigh the scores of an experiment; other arguments are as of `Verdict`.

    Parameters
    ----------
    pure : float, optional
        What the loss lets a guess reach whatever became of the others, where it bounds that.
    confidence : float
        The chance that *violated* is not said wrongly, whatever the attack.
    refuted : str, optional
        A sentence on what refutes the loss, where the caller tested that, at ``1 - confidence`` in
        all; empty where nothing did. The scores themselves are then not tested again.
    above : str, optional
        What else is shown whose interval lies above what the loss allows, as a subject: "the area".
    """
    low, high = score.interval(confidence)
    if refuted is None:
        beyond = _beyond(score, bound, pure) < 1.0 - confidence
        refuted = "No release of the stated loss could be guessed so well." if beyond else ""
    if low > bound:
        above = "the success"
    # A control that cheats does so grossly; luck alone must not spoil a verdict.
    if null is not None and _beyond(null, prior, prior) < 1e-3 * (1.0 - confidence):
        outcome = Outcome.INCONCLUSIVE
        reason = "The attack succeeds on a stranger's release: it knows more than it should."
    elif refuted:
        outcome, reason = Outcome.VIOLATED, refuted
    elif above:
        outcome = Outcome.UNPROVEN
        reason = (
            f"The interval of {above} lies above what the loss allows. It is nominal, and nothing "
            f"proves a violation at {level_text(confidence)}: play more."
        )
    elif prior >= 1.0:
        outcome = Outcome.INCONCLUSIVE
        reason = "A blind guess is always right here, so no attack has anything to learn."
    elif null is None or (control is None and low <= prior):
        outcome, reason = Outcome.INCONCLUSIVE, _unplayed(control, null)
    elif low <= prior and control is not None and control.interval(confidence)[0] <= prior:
        outcome, reason = Outcome.INCONCLUSIVE, _failed(control, prior, bare)
    else:
        outcome, reason = Outcome.CONSISTENT, _consistent(bound, high)
    return Verdict(
        outcome, game, release, attack, score, low, high, prior, bound, control, null, epsilon,
        predicted, promised, confidence, reason, bare,
    )  # fmt: skip


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
        tails.append(binomial_tail_above(sum(score.targets), sum(score.hits), pure))
    return min(1.0, len(tails) * min(tails))

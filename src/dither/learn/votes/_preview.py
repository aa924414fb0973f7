"""What to expect of votes: who is heard above the noise, from public numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dither import _checks as check
from dither._format import cost_text, count_text, number_text, percent
from dither._notebook import Shown
from dither.learn.votes._ballot import TeacherVote
from dither.mechanisms import DiscreteGaussian

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VotesPreview"]

_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class VotesPreview(Shown):
    """What to expect of a plan, from public numbers alone.

    Parameters
    ----------
    ballot : TeacherVote
        The mechanism, with its noise.
    teachers, labels, answers, queries : int
    epsilon, delta : Fraction
        What all of it costs.
    """

    ballot: TeacherVote
    teachers: int
    labels: int
    answers: int
    queries: int
    epsilon: Fraction
    delta: Fraction

    def chances(self, agreement: float) -> tuple[float, float]:
        """Where that share of the teachers agrees, and the rest are even.

        Returns
        -------
        (float, float)
            The chance of an answer, and a lower bound of the chance that it names their label.
        """
        share = check.number("agreement", agreement, least=0, most=1)
        return self.ballot.chances(round(share * self.teachers), self.teachers, self.labels)

    def expected_answers(self, agreement: float) -> float:
        """How many of the questions are answered, on average, if all have that agreement."""
        return min(float(self.answers), self.queries * self.chances(agreement)[0])

    def __str__(self) -> str:
        ballot = self.ballot
        if isinstance(ballot.answer, DiscreteGaussian):
            noise = f"noise of {number_text(float(ballot.answer.sigma2) ** 0.5, 3)} on each count"
        else:
            noise = f"{ballot.answer.title} at rate {number_text(ballot.answer.rate, 3)}"
        lines = [
            f"{count_text(self.teachers, 'teacher')}, {count_text(self.labels, 'label')}: at most "
            f"{count_text(self.answers, 'answer')} for {cost_text(self.epsilon, self.delta)}",
            noise,
        ]
        if ballot.check is not None:
            lines[1] += (
                f"; {number_text(float(ballot.check.sigma2) ** 0.5, 3)} where the threshold of "
                f"{count_text(ballot.threshold or 0, 'vote')} is checked, at most "
                f"{count_text(self.queries, 'time')}"
            )
        lines.append(
            f"{'teachers that agree':<20}{'answered':>10}{'right, at least':>17}{'answers':>9}"
        )
        for share in _SHARES:
            answered, right = self.chances(share)
            lines.append(
                f"{percent(share, 0):<20}{percent(answered, 0):>10}{percent(right, 0):>17}"
                f"{self.expected_answers(share):>9.0f}"
            )
        # Half-way between a guess and certainty.
        if self.chances(1.0)[1] < (1 + 1 / self.labels) / 2 or self.expected_answers(1.0) < 1:
            lines.append(
                "Even teachers who all agree are not heard above this noise: take more teachers, "
                "fewer answers, or a larger epsilon."
            )
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the chances over the share of teachers that agree.

        Parameters
        ----------
        path : str or Path, optional
            Where to write the picture.

        Returns
        -------
        Figure
        """
        from dither.plots.learn._votes import draw_votes

        return draw_votes(self, path)

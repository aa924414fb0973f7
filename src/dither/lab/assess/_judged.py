"""From hits to words: is somebody who was in the table found more often than somebody who was not?

Of n people who were in the table an attacker hit a, of as many who were not b. If the release says
nothing of who was in, then given all that was released and all hits, who of the 2n was in is a lot:
a has the hypergeometric law, whatever hits have to do with one another. So *Fisher's exact test*,
one-sided, holds without any assumption on attacks, if the control was drawn by lot from the same
people. All tests of an assessment together say *found* wrongly with probability at most
1 - confidence, by Bonferroni's bound: each is made at (1 - confidence)/tests.

The *intervals* are simultaneous in the same way: those of all differences hold together, and so do
those of all shares (`dither.lab.assess._difference`). They take people as drawn from a population,
and hits as independent given the release. Where the test does not tell the difference from luck,
the interval is widened to hold 0.

Source. Fisher, "The design of experiments", 1935.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dither.lab.assess._difference import difference, share_ends

__all__ = [
    "Judged",
    "Said",
    "Tally",
    "TriedAttack",
    "chance_of_lot",
    "count_hits",
    "fewest",
    "told",
]

_SLACK = 1e-9
"""The relative error of a sum of log-gammas, many times over: chances are rounded up by it."""
_LEAST = 1e-300
"""What smaller chances are said to be: their sum may be too small for doubles."""


class Said(StrEnum):
    """What an assessment says.

    Attributes
    ----------
    FOUND
        People who were in the table are hit more often than people who were not, beyond luck.
    BEYOND
        And so often that no release of the claimed loss could let it be.
    NOT_SEEN
        The attack works on the table itself, and on the release no difference is told from luck.
    CANNOT_SAY
        Nothing was tried that could have decided.

    Examples
    --------
    >>> print(Said.NOT_SEEN)
    not seen
    """

    FOUND = "found"
    BEYOND = "beyond the claim"
    NOT_SEEN = "not seen"
    CANNOT_SAY = "cannot be said"


@dataclass(frozen=True, slots=True)
class Tally:
    """Hits of as many people who were in the table as of people who were not.

    Examples
    --------
    >>> Tally(9, 1, 10).share, Tally(9, 1, 10).control
    (0.9, 0.1)
    """

    hits: int
    control_hits: int
    people: int

    @property
    def share(self) -> float:
        """Of those who were in the table."""
        return self.hits / self.people

    @property
    def control(self) -> float:
        """Of those who were not."""
        return self.control_hits / self.people

    @property
    def more(self) -> float:
        """The difference."""
        return (self.hits - self.control_hits) / self.people


@dataclass(frozen=True, slots=True)
class TriedAttack:
    """One attack of an assessment.

    Attributes
    ----------
    criterion : {'singling out', 'linkability', 'inference'}
    attacker : str
        Its name in words.
    about : str
        What it does, in a sentence.
    secret : str
        The column that was guessed, or empty.
    said : Said
    why : str
        The reason, in a sentence.
    people : int
        How many who were in the table were attacked, and as many who were not.
    hits, control_hits : int or None
        Of either; None where it takes a control, or there is none.
    share, low_share, high_share : float or None
        The share of hits, with its interval.
    control, low_control, high_control : float or None
        The same of the control.
    more, low, high : float or None
        The difference of shares, with its interval.
    chance : float or None
        Of so large a difference by luck alone, for this attack by itself.
    allowed : float or None
        What the claimed epsilon lets the share be at most, at the upper end of the control's.
    epsilon : float or None
        At least this epsilon, of replacing one person, is needed for the ends of both intervals.
    works : bool or None
        Whether the attack finds people in the table itself; None where it was not tried.
    bare, bare_control : float or None
        The shares of hits there.
    """

    criterion: str
    attacker: str
    about: str
    secret: str
    said: Said
    why: str
    people: int
    hits: int | None = None
    control_hits: int | None = None
    share: float | None = None
    low_share: float | None = None
    high_share: float | None = None
    control: float | None = None
    low_control: float | None = None
    high_control: float | None = None
    more: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    allowed: float | None = None
    epsilon: float | None = None
    works: bool | None = None
    bare: float | None = None
    bare_control: float | None = None


def chance_of_lot(hits: int, control_hits: int, people: int) -> float:
    """The chance of so many hits or more of those who were in, if that is a lot; rounded up.

    Parameters
    ----------
    hits, control_hits : int
        Of ``people`` each, at least 1.

    Examples
    --------
    >>> round(chance_of_lot(3, 0, 3), 6), chance_of_lot(1, 1, 3)
    (0.05, 0.8...)
    """
    total = hits + control_hits
    top = min(total, people)
    if hits <= max(0, total - people):
        return 1.0
    every = _log_choices(2 * people, total)
    k = range(hits, top + 1)
    logs = [_log_choices(people, i) + _log_choices(people, total - i) - every for i in k]
    chance = math.fsum(map(math.exp, logs)) * (1.0 + _SLACK * (1 + total))
    return min(1.0, max(chance, _LEAST))


def _log_choices(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def fewest(level: float) -> int:
    """The fewest people of whom all hits and no other could be told from luck at a level.

    Examples
    --------
    >>> fewest(0.06), fewest(0.001)
    (3, 7)
    """
    people = 1
    while chance_of_lot(people, 0, people) > level:
        people += 1
    return people


@dataclass(frozen=True, slots=True)
class Judged:
    """A tally with all that is computed of it.

    Attributes
    ----------
    found : bool
        Whether the difference is told from luck.
    chance : float
        Of so large a one by luck.
    ends, control : tuple of float
        The intervals of both shares.
    low, high : float
        That of the difference.
    """

    found: bool
    chance: float
    ends: tuple[float, float]
    control: tuple[float, float]
    low: float
    high: float


def told(tally: Tally, level: float) -> Judged:
    """Whether the difference is told from luck at a level, and its interval.

    The test has one side and the interval two, so what is just found may have one that holds 0.
    """
    seen = (tally.hits, tally.control_hits, tally.people)
    chance = chance_of_lot(*seen)
    ends, control = share_ends(*seen, level)
    low, high = difference(*seen, level)
    found = chance <= level
    if not found:
        low, high = min(low, 0.0), max(high, 0.0)
    return Judged(found, chance, ends, control, low, high)


def count_hits(
    hits: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    member: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
) -> Tally:
    """Hits of those who were in, and of the others."""
    return Tally(int(hits[member].sum()), int(hits[~member].sum()), int(member.sum()))

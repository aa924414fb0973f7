"""Similarity: where all of a class gave answers that mean the same, each is known well enough.

Two answers in a class are not certainty, and may be no protection: gastritis and an ulcer are both
of the stomach, and salaries of 3,000 and 3,100 are one salary to a creditor. The secret is the
*group* of a person's answer in a hierarchy, or the answer to within a distance; the attacker knows
the class and says what covers most of it. Blindly one says what covers most people. Controls: every
row a class of its own, and the answers of strangers.

Source. Li, Li and Venkatasubramanian, "t-closeness", 2007, section 3, the similarity attack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import confidence as check_confidence
from dither._format import Printable, count_text, number_text
from dither.errors import ArgumentError
from dither.lab._grouping import Ints
from dither.lab._simulation import SimulatedWorld
from dither.lab._verdicts import paragraph
from dither.lab.attack._verdict import Score, Verdict, judge
from dither.lab.attack.disclosure._classes import ClassCounts, commonest_answer, in_classes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Similarity", "similarity"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Similarity(Printable):
    """The result of `similarity`.

    Attributes
    ----------
    classes : ClassCounts
        Of the answers themselves. Not for release where the table is not.
    known_as : str
        What is told of a person: "the group of illness", "salary to within 500".
    given_away : int
        People of whom it is certain, as it is the same for all of their class.
    in_groups : int
        Of these, those who are not alone in their class.
    several : int
        Of these, those in whose class not all gave one answer: `homogeneity` does not see them.
    verdict : Verdict
    """

    classes: ClassCounts
    known_as: str
    given_away: int
    in_groups: int
    several: int
    verdict: Verdict

    @property
    def share(self) -> float:
        """Of all people, those given away."""
        return self.given_away / self.classes.people

    def summary(self) -> str:
        """What was found, and the verdict."""
        text = (
            f"Given away, as all of their class share {self.known_as}: {self.given_away:,} of "
            f"{count_text(self.classes.people, 'person', 'people')}. Not alone in that class: "
            f"{self.in_groups:,}; in one with several answers: {self.several:,}."
        )
        return f"{paragraph([text])}\n{self.verdict.summary()}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw classes by size and by how much of them gave the same answer.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._attack_tables import draw_classes

        return draw_classes(self.classes, self.verdict, path)


def similarity(
    table: object,
    quasi: Sequence[str] | None = None,
    sensitive: str | None = None,
    *,
    groups: Mapping[Any, Any] | None = None,
    within: float | None = None,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Similarity:
    """Of whom the answer is nearly certain, because all of their class gave one like it.

    Parameters
    ----------
    table, quasi, sensitive, name, seed, confidence
        As of `homogeneity`.
    groups : mapping, optional
        From each answer to its group, as a level of a hierarchy says: ``{"ulcer": "stomach",
        "gastritis": "stomach"}``. An answer that is not named is a group of its own.
    within : float, optional
        In place of groups, for numbers: answers that lie in some interval of this length, above 0,
        are alike. NULL is like NULL alone.

    Returns
    -------
    Similarity

    Raises
    ------
    ArgumentError
        For neither or both of ``groups`` and ``within``, an answer that is no number under
        ``within``, or what `homogeneity` refuses.

    Examples
    --------
    >>> import polars as pl
    >>> wards = pl.DataFrame({"zip": ["130**"] * 3 + ["148**"] * 3, "pay": [3, 4, 5, 3, 7, 9]})
    >>> found = similarity(wards, ["zip"], "pay", within=2)
    >>> found.given_away, found.several
    (3, 3)
    """
    confidence = check_confidence(confidence)
    if (groups is None) == (within is None):
        raise ArgumentError("give groups, of answers that mean the same, or within, of numbers")
    found = in_classes(table, quasi, sensitive, name)
    generator = SimulatedWorld.of(seed)
    if groups is not None:
        return _by_groups(found, groups, generator, confidence)
    assert within is not None
    return _by_distance(found, check.number("within", within, above=0), generator, confidence)


def _result(
    found: ClassCounts, known_as: str, certain: npt.NDArray[np.bool_], verdict: Verdict
) -> Similarity:
    sizes, answers = found.sizes, (found.counts > 0).sum(axis=1)
    return Similarity(
        found,
        known_as,
        int(sizes[certain].sum()),
        int(sizes[certain & (sizes > 1)].sum()),
        int(sizes[certain & (answers > 1)].sum()),
        verdict,
    )


def _by_groups(
    found: ClassCounts,
    groups: Mapping[Any, Any],
    generator: np.random.Generator,
    confidence: float,
) -> Similarity:
    if not isinstance(groups, Mapping):
        raise ArgumentError('groups must be a mapping, such as {"ulcer": "stomach"}')
    try:
        named = [("of", groups[v]) if v in groups else ("itself", v) for v in found.values]
        places = {group: i for i, group in enumerate(dict.fromkeys(named))}
    except TypeError:
        raise ArgumentError(
            "groups must have texts, numbers or dates, as answers and as their groups"
        ) from None
    group = np.array([places[one] for one in named], dtype=np.int64)
    counts = np.zeros((len(found.counts), len(places)), dtype=np.int64)
    np.add.at(counts.T, group, found.counts.T)
    known_as = f"the group of {found.sensitive}"
    coarse = replace(
        found, answers=group[found.answers], values=list(places), counts=counts, sensitive=known_as
    )
    guesses = counts.argmax(axis=1)[found.of]
    verdict = commonest_answer(
        coarse, "", "the class", guesses, coarse.answers, generator, confidence
    )
    return _result(found, known_as, (counts > 0).sum(axis=1) == 1, verdict)


def _by_distance(
    found: ClassCounts, within: float, generator: np.random.Generator, confidence: float
) -> Similarity:
    if not all(v is None or _is_number(v) for v in found.values):
        raise ArgumentError("within goes with a sensitive column of numbers; give groups")
    at = np.array([np.nan if v is None else float(v) for v in found.values])
    starts = np.array([_window(at, counts, within) for counts in found.counts])
    blind = _window(at, found.overall, within)
    mine = at[found.answers]
    right = _inside(mine, starts[found.of], within)
    stranger = generator.permutation(mine)
    low = np.where(found.counts > 0, at, np.inf).min(axis=1, initial=np.inf)
    high = np.where(found.counts > 0, at, -np.inf).max(axis=1, initial=-np.inf)
    known_as = f"{found.sensitive} to within {number_text(within)}"
    missing = (found.counts[:, np.isnan(at)] > 0).any(axis=1)
    all_missing = (found.counts[:, ~np.isnan(at)] == 0).all(axis=1)
    certain = np.where(missing, all_missing, high - low <= within)
    n = (found.people,)
    verdict = judge(
        game=f"what {known_as} is, by class",
        release=found.name,
        attack=f"the interval of length {number_text(within)} that holds most of the class",
        score=Score((int(right.sum()),), n),
        control=Score(n, n),
        null=Score((int(_inside(stranger, starts[found.of], within).sum()),), n),
        prior=float(_inside(mine, np.full(found.people, blind), within).mean()),
        confidence=confidence,
    )
    return _result(found, known_as, certain, verdict)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _window(at: Floats, counts: Ints, within: float) -> float:
    """Where an interval of this length begins that holds most answers; NaN: most are missing."""
    there = counts > 0
    held = there & ~np.isnan(at)
    missing = int(counts[np.isnan(at)].sum())
    if not held.any():
        return float("nan")
    order = np.argsort(at[held])
    places, many = at[held][order], counts[held][order]
    total = np.concatenate([[0], np.cumsum(many)])
    ends = np.searchsorted(places, places + within, side="right")
    inside = total[ends] - total[:-1]
    best = int(inside.argmax())
    return float("nan") if missing > inside[best] else float(places[best])


def _inside(answers: Floats, starts: Floats, within: float) -> npt.NDArray[np.bool_]:
    """Whether each answer lies in the interval that was guessed, or is missing as was guessed."""
    with np.errstate(invalid="ignore"):
        held = (answers >= starts) & (answers <= starts + within)
    return np.asarray(held | (np.isnan(answers) & np.isnan(starts)))

"""Snapshots: a table published twice gives away who came or left in between.

Each of two releases may be harmless by itself. Their difference has only those people in it who
joined, or left, and they are few: whoever knows that somebody joined takes the class's answers of
the second release, strikes out those of the first, and reads hers among what is left. Where all
that is left is one answer, it is certain, however many people hide in either release.

The game: the secret is the answer of a person who came or left; a blind guess says the commonest
answer of all who did. Controls: every row a class of its own, and the answers of strangers.

Source. Xiao and Tao, "m-invariance", 2007; Byun, Sohn, Bertino and Li, "Secure anonymization for
incremental datasets", 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dither._checks import confidence as check_confidence
from dither._format import Printable, count_text
from dither.errors import ArgumentError
from dither.lab._frames import columns_of, names, released, texts
from dither.lab._grouping import Ints
from dither.lab._simulation import SimulatedWorld
from dither.lab._verdicts import paragraph
from dither.lab.attack._verdict import Score, Verdict, judge, plot_verdicts
from dither.lab.attack.disclosure._classes import ClassCounts, in_classes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Snapshots", "snapshots"]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshots(Printable):
    """The result of `snapshots`.

    Attributes
    ----------
    classes : ClassCounts
        Of both releases together.
    came, left : int
        Rows that are in one release and not in the other, class by class and answer by answer.
    given_away : int
        Of these, rows whose answer is certain for whoever knows their class: all that came to it,
        and nobody left it, have one answer; or the other way round.
    smallest : int
        Rows of the smallest class in which one of these is published; 0 where none is given away.
    verdict : Verdict or None
        None where nobody came or left.
    """

    classes: ClassCounts = field(repr=False)
    came: int
    left: int
    given_away: int
    smallest: int
    verdict: Verdict | None

    def summary(self) -> str:
        """What was found, and the verdict."""
        text = (
            f"{count_text(self.came, 'row')} came and {self.left:,} left. Given away, as all that "
            f"changed in their class has one {self.classes.sensitive}: {self.given_away:,}"
        )
        text += f", each in a class of {self.smallest:,} or more." if self.given_away else "."
        shown = paragraph([text])
        return shown if self.verdict is None else f"{shown}\n{self.verdict.summary()}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the success beside its controls.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.

        Raises
        ------
        ArgumentError
            Where nobody came or left.
        """
        if self.verdict is None:
            raise ArgumentError("nobody came or left between the two: there is nothing to draw")
        return plot_verdicts([self.verdict], path)


def snapshots(
    before: object,
    after: object,
    quasi: Sequence[str] | None = None,
    sensitive: str | None = None,
    *,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Snapshots:
    """Read the answers of people who came or left from two releases of a table.

    Parameters
    ----------
    before, after : frame, or a release of `dither.lab.anonymize`
        What was published, earlier and later: a row a person.
    quasi : sequence of str
        What the attacker knows of people; by default what ``after`` names. Classes are rows with
        equal values of these, in both releases: made coarse in the same way.
    sensitive, name, seed, confidence
        As of `homogeneity`.

    Returns
    -------
    Snapshots

    Raises
    ------
    ArgumentError
        For unknown columns, or more than one sensitive column.

    Notes
    -----
    Where a person left and another of the same class and answer came, neither is seen.

    Examples
    --------
    >>> import polars as pl
    >>> may = pl.DataFrame({"zip": ["130**"] * 4, "illness": ["flu", "flu", "cold", "cold"]})
    >>> june = may.vstack(pl.DataFrame({"zip": ["130**"], "illness": ["hiv"]}))
    >>> found = snapshots(may, june, ["zip"], "illness")
    >>> found.came, found.given_away, found.smallest
    (1, 1, 5)
    """
    confidence = check_confidence(confidence)
    first, second = released(before, "before"), released(after, "after")
    by = columns_of("quasi", quasi, second, after)
    wanted = columns_of("sensitive", sensitive, second, after)
    names("quasi", by, first)
    names("sensitive", wanted, first)
    columns = list(dict.fromkeys([*by, *wanted]))
    both = pl.concat([_as_texts(first, columns, second), _as_texts(second, columns, first)])
    found = in_classes(both, by, wanted, name)
    shape = found.counts.shape
    sides = [
        np.bincount(found.of[rows] * shape[1] + found.answers[rows], minlength=shape[0] * shape[1])
        for rows in (slice(0, first.height), slice(first.height, None))
    ]
    earlier, later = (side.reshape(shape).astype(np.int64) for side in sides)
    return _judged(found, earlier, later, SimulatedWorld.of(seed), confidence)


def _as_texts(frame: pl.DataFrame, columns: Sequence[str], other: pl.DataFrame) -> pl.DataFrame:
    """The columns, as texts where the two releases hold them in different types."""
    return pl.DataFrame(
        [
            frame[c] if frame.schema[c] == other.schema[c] else texts(frame[c]).alias(c)
            for c in columns
        ]
    )


def _judged(
    found: ClassCounts,
    earlier: Ints,
    later: Ints,
    generator: np.random.Generator,
    confidence: float,
) -> Snapshots:
    change = later - earlier
    came, left = np.maximum(change, 0), np.maximum(-change, 0)
    moved = came + left
    certain = (moved > 0).sum(axis=1) == 1
    many = int(moved.sum())
    given = int(moved[certain].sum())
    # Of the release that shows them.
    sizes = np.where(came.any(axis=1), later.sum(axis=1), earlier.sum(axis=1))
    verdict = None
    if many:
        # Who came is guessed among those who came, who left among those who left.
        guesses, answers = [], []
        for part in (came, left):
            of, answer = (np.repeat(x, part.ravel()) for x in np.indices(part.shape).reshape(2, -1))
            guesses.append(part.argmax(axis=1)[of])
            answers.append(answer)
        guess, truth = np.concatenate(guesses), np.concatenate(answers)
        verdict = judge(
            game=f"what {found.sensitive} is of who came or left, by class",
            release=f"two snapshots of {found.name}",
            attack="the commonest answer of what changed in the class",
            score=Score.of_guesses(guess, truth),
            control=Score.of_guesses(truth, truth),
            null=Score.of_guesses(guess, generator.permutation(truth)),
            prior=float(np.bincount(truth).max() / many),
            confidence=confidence,
        )
    return Snapshots(
        found,
        int(came.sum()),
        int(left.sum()),
        given,
        int(sizes[certain].min()) if given else 0,
        verdict,
    )

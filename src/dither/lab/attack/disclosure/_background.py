"""Background knowledge: who is given away to somebody who knows a few others of the class.

The attacker knows the answers of j others of the class, or answers that the person did not give.
Both are struck from the class; where one answer is left, it is the person's. With c of n in a class
sharing the person's answer, striking j others drawn at random leaves it certain if all n - c who
differ are among them, so with probability

    C(c - 1, j - (n - c)) / C(n - 1, j)

which is exact here. At j = n - 1 everybody is given away: against the adversary of differential
privacy, who knows everybody else, a k-anonymous release protects nobody. Controls: all others
known, and answers of strangers.

Source. Martin, Kifer, Machanavajjhala, Gehrke and Halpern, "Worst-case background knowledge", 2007.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither._format import Printable, count_text, percent
from dither.errors import ArgumentError
from dither.lab._grouping import Ints
from dither.lab._simulation import SimulatedWorld
from dither.lab._verdicts import paragraph
from dither.lab.attack._verdict import Verdict
from dither.lab.attack.disclosure._classes import (
    ClassCounts,
    commonest_answer,
    in_classes,
    number_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Background", "KnownOthers", "background"]


@dataclass(frozen=True, slots=True)
class KnownOthers:
    """What is given away to somebody who knows so many others.

    Attributes
    ----------
    companions : int
        Others of the class whose answers are known; all of them where there are fewer.
    certain : float
        The expected share of people whose answer is certain, exactly.
    verdict : Verdict
        Of the guess that is commonest among those left.
    """

    companions: int
    certain: float
    verdict: Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Background(Printable):
    """The result of `background`.

    Attributes
    ----------
    classes : ClassCounts
    known : tuple of KnownOthers
        One for each number of companions.
    excluded : tuple
        Answers that the person is known not to have given.
    ruled_out : int or None
        People who gave none of ``excluded``, and whose class has one answer besides; None where
        nothing is excluded.
    concerned : int or None
        People who gave none of ``excluded``.
    """

    classes: ClassCounts
    known: tuple[KnownOthers, ...]
    excluded: tuple[Any, ...]
    ruled_out: int | None
    concerned: int | None

    def summary(self) -> str:
        """A line for each amount of knowledge."""
        c = self.classes
        classes = count_text(len(c.counts), "class", "classes")
        lines = [f"{count_text(c.people, 'person', 'people')} in {classes}; their {c.sensitive}:"]
        lines += [
            f"{one.companions:>3} others known: {percent(one.certain):>7} certain; guessed "
            f"right {percent(one.verdict.success)} (blindly {percent(c.prior)})"
            for one in self.known
        ]
        if self.ruled_out is not None:
            lines.append(
                f"{count_text(len(self.excluded), 'answer')} ruled out: of {self.concerned:,} "
                f"people who gave none of them, given away: {self.ruled_out:,}"
            )
        return paragraph(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what is certain, and what is guessed right, against what is known.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._attack_tables import draw_background

        return draw_background(self, path)


def background(
    table: object,
    quasi: Sequence[str] | None = None,
    sensitive: str | None = None,
    *,
    companions: Iterable[int] = (0, 1, 2, 4, 8),
    excluded: Iterable[Any] = (),
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Background:
    """Whose answer is certain to somebody who knows a few others, or rules answers out.

    Parameters
    ----------
    table, quasi, sensitive, name, seed, confidence
        As of `homogeneity`.
    companions : iterable of int
        Numbers of others of the class whose answers are known, drawn at random.
    excluded : iterable
        Answers that the attacker knows a person did not give. It concerns those who did not.

    Raises
    ------
    ArgumentError
        For unknown columns, a value that the sensitive column lacks, or numbers below 0.

    Examples
    --------
    >>> import polars as pl
    >>> wards = pl.DataFrame({"zip": [1] * 4, "illness": ["heart", "heart", "flu", "flu"]})
    >>> found = background(wards, ["zip"], "illness", companions=[1, 2, 3], excluded=["heart"])
    >>> [round(one.certain, 3) for one in found.known], found.ruled_out
    ([0.0, 0.333, 1.0], 2)
    """
    confidence = check_confidence(confidence)
    found = in_classes(table, quasi, sensitive, name)
    if not isinstance(companions, Iterable) or isinstance(excluded, str):
        raise ArgumentError("companions and excluded must be lists: [0, 4, 8], ['flu']")
    amounts = sorted({whole("companions", j, 0) for j in companions})
    barred = [number_of(found.values, value, "excluded") for value in excluded]
    if len(barred) >= len(found.values):
        raise ArgumentError("excluded must leave at least one value")
    generator = SimulatedWorld.of(seed)
    ruled_out = concerned = None
    if barred:
        left = np.delete(found.counts, barred, axis=1)
        concerned = int(left.sum())
        ruled_out = int(left[(left > 0).sum(axis=1) == 1].sum())
    known = tuple(
        KnownOthers(j, _certain(found, j), _of_those_left(found, j, generator, confidence))
        for j in amounts
    )
    return Background(found, known, tuple(found.values[i] for i in barred), ruled_out, concerned)


def _certain(found: ClassCounts, j: int) -> float:
    """The expected share of people who are certain, over the companions that are known."""
    total = 0.0
    pairs, weights = np.unique(
        np.stack([np.repeat(found.sizes, found.counts.shape[1]), found.counts.ravel()]),
        axis=1,
        return_counts=True,
    )
    for (n, c), many in zip(pairs.T.tolist(), weights.tolist(), strict=True):
        if c:
            struck = min(j, n - 1)
            others = n - c
            if struck >= others:
                chance = math.comb(c - 1, struck - others) / math.comb(n - 1, struck)
                total += many * c * chance
    return total / found.people


def _left(found: ClassCounts, j: int, generator: np.random.Generator) -> Ints:
    """Of each person: the counts of the class without j random others."""
    counts = found.counts[found.of].copy()
    others = counts.copy()
    others[np.arange(found.people), found.answers] -= 1
    rest = others.sum(axis=1)
    draw = np.minimum(j, rest)
    for value in range(counts.shape[1]):
        rest = rest - others[:, value]
        struck = generator.hypergeometric(others[:, value], rest, draw)
        counts[:, value] -= struck
        draw = draw - struck
    return counts


def _of_those_left(
    found: ClassCounts, j: int, generator: np.random.Generator, confidence: float
) -> Verdict:
    guesses, bare = (
        _left(found, many, generator).argmax(axis=1) for many in (j, int(found.sizes.max()))
    )
    return commonest_answer(
        found, f" and {j} others", "those left", guesses, bare, generator, confidence
    )

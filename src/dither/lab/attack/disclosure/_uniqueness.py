"""Uniqueness: how many people a few harmless columns single out.

Nobody is looked up and nothing is guessed: for every choice of m columns, the share of people whose
values in them nobody else shares. Anyone who knows those m facts of such a person finds the row.

Source. Sweeney, "Simple demographics often identify people uniquely", 2000.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._checks import whole
from dither._format import Printable, count_text, percent, wrapped
from dither.errors import ArgumentError
from dither.lab._frames import columns_of, released, sorted_codes
from dither.lab._grouping import Ints, grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Uniqueness", "UniquenessByColumns", "uniqueness"]

MOST = 20_000
"""Choices of columns that are tried at most, over all sizes."""


@dataclass(frozen=True, slots=True)
class UniquenessByColumns:
    """What m columns give away: over all choices of them, and by the worst.

    Attributes
    ----------
    columns : int
        m.
    least, mean, most : float
        The share of people alone, over all choices of m columns.
    worst : tuple of str
        The choice that singles out most.
    """

    columns: int
    least: float
    mean: float
    most: float
    worst: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Uniqueness(Printable):
    """The result of `uniqueness`.

    Attributes
    ----------
    people : int
    quasi : tuple of str
    sizes : tuple of UniquenessByColumns
        One for each number of columns.
    """

    people: int
    quasi: tuple[str, ...]
    sizes: tuple[UniquenessByColumns, ...]

    def summary(self) -> str:
        """A line for each number of columns."""
        people = count_text(self.people, "person", "people")
        lines = [f"Share of {people} whom nobody shares all values with:"]
        for one in self.sizes:
            worst = ", ".join(one.worst)
            plural = "s" if one.columns > 1 else " "
            lines.append(
                f"{one.columns} column{plural}  {percent(one.least)} to {percent(one.most)}, "
                f"mean {percent(one.mean)}; most by {worst}"
            )
        indent = "           "
        return "\n".join(part for line in lines for part in wrapped(line, indent, first=""))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the share that is alone against the number of columns.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._attack_tables import draw_uniqueness

        return draw_uniqueness(self, path)


def uniqueness(
    frame: object, quasi: Sequence[str] | None = None, sizes: Iterable[int] | None = None
) -> Uniqueness:
    """The share of people who are alone with their values in a few columns.

    Parameters
    ----------
    frame : Polars or pandas DataFrame, pyarrow Table, or a release with a frame
        A row is a person.
    quasi : sequence of str
        The columns that somebody may know; by default those that the release names.
    sizes : iterable of int, optional
        Numbers of columns; by default 3 to 8, as far as there are so many.

    Raises
    ------
    ArgumentError
        For unknown columns, sizes beyond them, or more choices of columns than can be tried.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [30, 30, 40], "sex": ["f", "m", "f"]})
    >>> [round(one.most, 3) for one in uniqueness(people, ["age", "sex"], [1, 2]).sizes]
    [0.333, 1.0]
    """
    table = released(frame, "frame")
    known = columns_of("quasi", quasi, table, frame)
    asked = range(3, 9) if sizes is None else sizes
    wanted = [whole("sizes", m, 1) for m in asked if sizes is not None or m <= len(known)]
    if not wanted or max(wanted) > len(known):
        raise ArgumentError(
            f"sizes must be from 1 to {len(known)}, as many columns as quasi names"
            + (": name at least 3, or give sizes" if sizes is None else "")
        )
    tries = sum(math.comb(len(known), m) for m in wanted)
    if tries > MOST:
        raise ArgumentError(
            f"sizes: {tries:,} choices of columns are more than {MOST:,}: name fewer columns in "
            "quasi or fewer sizes"
        )
    coded = {name: sorted_codes(table[name])[0] for name in known}
    return Uniqueness(
        table.height,
        tuple(known),
        tuple(_alone(coded, m, table.height) for m in sorted(set(wanted))),
    )


def _alone(coded: dict[str, Ints], m: int, people: int) -> UniquenessByColumns:
    shares = {}
    for chosen in itertools.combinations(coded, m):
        sizes = np.bincount(grouped(coded[name] for name in chosen))
        shares[chosen] = int((sizes == 1).sum()) / people
    worst = max(shares, key=lambda c: shares[c])
    values = list(shares.values())
    return UniquenessByColumns(m, min(values), sum(values) / len(values), shares[worst], worst)

"""How often an attacker who looks for a person finds the right row.

With ``f_j`` rows in class j of the release, ``F_j`` people of the same class in a population table
and n rows:

- the **prosecutor** knows that the target is in the release: success ``1/f_j``;
- the **journalist** does not, and uses the population table: success ``1/F_j``;
- the **marketer** links everybody and counts the rows linked rightly: ``(1/n) sum f_j/F_j``, which
  is classes per row where the release itself is the population.

All assume an attacker who knows the quasi-identifiers and nothing else, and who links at random
within a class.

Source: El Emam, *Guide to the De-Identification of Personal Health Information* (2013), chapter 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from dither.errors import ArgumentError
from dither.lab._frames import encode
from dither.lab._grouping import Classes, Ints, combine, label

__all__ = ["Attacker", "Risk", "classify", "of_classes", "population_risk"]


@dataclass(frozen=True, slots=True)
class Attacker:
    """One attacker's odds.

    Attributes
    ----------
    highest : float
        Against the person who is easiest to find.
    average : float
        Over the rows.
    exposed : float
        The share of rows for which they exceed the threshold.
    """

    highest: float
    average: float
    exposed: float


@dataclass(frozen=True, slots=True)
class Risk:
    """What re-identification succeeds with.

    Attributes
    ----------
    prosecutor : Attacker
    journalist : Attacker or None
        Only against a population table.
    marketer : float
        The share of all rows that are linked rightly.
    unique : int
        Rows alone in their class.
    threshold : float
        Above which a row counts as exposed.
    """

    prosecutor: Attacker
    journalist: Attacker | None
    marketer: float
    unique: int
    threshold: float


def of_classes(sizes: Ints, threshold: float) -> Risk:
    """Risk where the release is all that the attacker has.

    Examples
    --------
    >>> of_classes(np.array([1, 4, 5]), 0.2).prosecutor
    Attacker(highest=1.0, average=0.3, exposed=0.5)
    """
    rows = int(sizes.sum())
    exposed = float(sizes[1 / sizes > threshold].sum()) / rows
    average = len(sizes) / rows
    prosecutor = Attacker(1 / int(sizes.min()), average, exposed)
    return Risk(prosecutor, None, average, int((sizes == 1).sum()), threshold)


def classify(table: pl.DataFrame, quasi: Sequence[str]) -> Classes:
    """The classes of rows that agree on all quasi-identifiers."""
    coded = [encode(table[name]) for name in quasi]
    return label(*combine([(c.codes, c.size) for c in coded], table.height))


def population_risk(
    table: pl.DataFrame,
    classes: Classes,
    population: pl.DataFrame,
    quasi: Sequence[str],
    threshold: float,
) -> Risk:
    """Risk against a population table, whose classes are those of the release.

    Raises
    ------
    ArgumentError
        Where the population lacks a column, or has fewer people of a class than the release.
    """
    missing = [name for name in quasi if name not in population.columns]
    if missing:
        raise ArgumentError(f"population lacks the column {missing[0]!r}")
    first = table.select(quasi)[classes.first]
    try:
        both = pl.concat([first, population.select(quasi)], how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        raise ArgumentError(
            "population must have quasi columns of the same types as frame"
        ) from None
    together = classify(both, quasi)
    people = np.bincount(together.of, minlength=len(together.first))
    people = people[together.of[: len(classes.first)]] - 1
    short = int((people < classes.weight).sum())
    if short:
        raise ArgumentError(
            f"population must hold everybody in frame: it has fewer people in {short:,} of "
            f"{len(people):,} classes. Are its columns generalised alike?"
        )
    return _against(classes.weight, people, threshold)


def _against(sizes: Ints, people: Ints, threshold: float) -> Risk:
    """Risk from the rows of each class in the release and in the population, which has no fewer."""
    rows = int(sizes.sum())
    alone = of_classes(sizes, threshold)
    linked = float((sizes / people).sum()) / rows
    exposed = float(sizes[1 / people > threshold].sum()) / rows
    average = max(len(sizes) / int(people.sum()), linked)
    journalist = Attacker(1 / int(people.min()), average, exposed)
    return Risk(alone.prosecutor, journalist, linked, alone.unique, threshold)

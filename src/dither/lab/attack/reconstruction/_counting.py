"""How many databases remain after a release that answers nothing exactly.

A private release rules nothing out, but says how far off its answers are likely to be. Databases
whose true answers lie so near are counted by drawing databases evenly, up to order, from all that
there could be: multisets of N of the K kinds of people are the N-subsets of N + K - 1 places.

Source. Feller, "An introduction to probability theory and its applications", volume 1, II.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dither._checks import whole
from dither._stats import clopper_pearson
from dither.errors import ArgumentError, nearest
from dither.lab._simulation import SimulatedWorld
from dither.lab.attack.reconstruction._statistics import (
    Condition,
    Person,
    PublishedRow,
    Statistics,
    meets,
)

__all__ = ["RemainingDatabases", "blurred", "remaining", "true_answers"]

Ints = npt.NDArray[np.int64]

_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class RemainingDatabases:
    """An estimate of how many databases agree with a release.

    Attributes
    ----------
    estimate, low, high : float
        Databases, and the ends of Clopper and Pearson's 99 % interval.
    hits, draws : int
        Of the databases drawn, how many agree.
    space : int
        How many there are.
    """

    estimate: float
    low: float
    high: float
    hits: int
    draws: int
    space: int

    @property
    def share(self) -> float:
        """Of all databases."""
        return self.hits / self.draws


def true_answers(statistics: Statistics, people: tuple[Person, ...]) -> dict[str, int]:
    """The exact counts, and sums where a mean or a median was published, of a database.

    Parameters
    ----------
    statistics : Statistics
    people : tuple of Person
        Such as a solution of `reconstruct_table`.

    Returns
    -------
    dict of str to int
        ``"2A"`` is the count of row 2A, ``"2A.age"`` the sum of its ages.

    Examples
    --------
    >>> from dither import attack
    >>> found = attack.reconstruct_table(attack.census(note=True))
    >>> answers = true_answers(found.statistics, found.solutions[0])
    >>> answers["2A"], answers["2A.age"]
    (4, 134)
    """
    answers = {}
    for row in statistics.rows:
        group = [p for p in people if meets(p, row.where)]
        answers[row.name] = len(group)
        for at in sorted({a for a, _, _ in (*row.total, *row.doubled)}):
            answers[f"{row.name}.{statistics.attributes[at].name}"] = sum(p[at] for p in group)
    return answers


def blurred(
    statistics: Statistics, released: Mapping[str, float], within: Mapping[str, float]
) -> Statistics:
    """The statistics that a noisy release leaves: every answer is within so much of the truth.

    Parameters
    ----------
    statistics : Statistics
        Whose rows were asked for; what they published is forgotten, and rules are kept.
    released : mapping of str to number
        By the names of `true_answers`.
    within : mapping of str to number
        How far an answer may be off; the same names.

    Raises
    ------
    ArgumentError
        A name is unknown or missing.

    Examples
    --------
    >>> from dither import attack
    >>> block = attack.census().only("2B")
    >>> blurred(block, {"2B": 4.2}, {"2B": 1.5}).rows[0].count
    (3, 5)
    """
    places = {a.name: i for i, a in enumerate(statistics.attributes)}
    rows = {r.name: r for r in statistics.rows}
    known = {*rows, *(f"{r}.{a}" for r in rows for a in places)}
    for name in released:
        if name not in known:
            raise ArgumentError(f"released: unknown answer {name!r}{nearest(name, known)}")
        if name not in within:
            raise ArgumentError(f"within must say how far {name!r} may be off")
    kept: list[PublishedRow] = []
    for row in statistics.rows:
        count, total = (0, statistics.people), []
        if row.name in released:
            low, high = _ends(released[row.name], within[row.name])
            count = (max(0, low), min(statistics.people, high))
        for attribute, at in places.items():
            name = f"{row.name}.{attribute}"
            if name in released:
                total.append((at, *_ends(released[name], within[name])))
        kept.append(replace(row, count=count, doubled=(), total=tuple(total), suppressed=False))
    return replace(statistics, rows=tuple(kept))


def remaining(
    statistics: Statistics, *, draws: int = 100_000, seed: int | np.random.Generator = 0
) -> RemainingDatabases:
    """Estimate how many databases agree with statistics, where they are far too many to list.

    Parameters
    ----------
    statistics : Statistics
    draws : int
        Databases to draw; more of them narrow the interval.
    seed : int or numpy.random.Generator

    Returns
    -------
    RemainingDatabases
        Where no draw agrees, only the upper end says something: list them instead, by
        `reconstruct_table`.

    Examples
    --------
    >>> from dither import attack
    >>> left = remaining(attack.census().only("2D"), draws=2000)
    >>> left.hits, left.high < 0.004 * left.space
    (0, True)
    """
    size = whole("draws", draws, 1)
    rng = SimulatedWorld.of(seed)
    places = statistics.cells + statistics.people - 1
    if places >= 2**62:
        raise ArgumentError("there are too many kinds of people; narrow the bounds of attributes")
    hits = done = 0
    while done < size:
        tables = np.sort(rng.integers(0, places, (_BATCH, statistics.people)), axis=1)
        tables = tables[(np.diff(tables, axis=1) > 0).all(axis=1)][: size - done]
        if not len(tables):
            raise ArgumentError("there are too few kinds of people to draw from; list them instead")
        hits += int(_agree(statistics, tables - np.arange(statistics.people)).sum())
        done += len(tables)
    low, high = clopper_pearson(hits, size, 0.99)
    space = statistics.space
    return RemainingDatabases(hits / size * space, low * space, high * space, hits, size, space)


def _agree(statistics: Statistics, kinds: Ints) -> npt.NDArray[np.bool_]:
    """Which of the databases, a row of kinds of people each, agree with everything."""
    values, rest = [], kinds
    for a in reversed(statistics.attributes):
        values.append(rest % a.size + a.low)
        rest = rest // a.size
    values.reverse()

    def within(conditions: tuple[Condition, ...]) -> npt.NDArray[np.bool_]:
        inside = np.ones(kinds.shape, dtype=bool)
        for c in conditions:
            a = statistics.attributes[c.attribute]
            chosen = np.zeros(a.size, dtype=bool)
            chosen[[v - a.low for v in c.values]] = True
            inside &= chosen[values[c.attribute] - a.low]
        return inside

    good = np.ones(len(kinds), dtype=bool)
    for rule in statistics.rules:
        good &= (~within(rule.when) | within(rule.then)).all(axis=1)
    for row in statistics.rows:
        group = within(row.where)
        count = group.sum(axis=1)
        good &= (row.count[0] <= count) & (count <= row.count[1])
        for at, low, high in row.total:
            total = np.where(group, values[at], 0).sum(axis=1)
            good &= (low <= total) & (total <= high)
        for at, low, high in row.doubled:
            # Members first, in order; a published median has a certain count.
            far = statistics.attributes[at].high + 1
            ordered = np.sort(np.where(group, values[at], far), axis=1)
            k = row.count[0]
            twice = ordered[:, (k - 1) // 2] + ordered[:, k // 2]
            good &= (low <= twice) & (twice <= high)
    return good


def _ends(answer: float, within: float) -> tuple[int, int]:
    return int(np.ceil(answer - within)), int(np.floor(answer + within))

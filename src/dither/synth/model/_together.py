"""Which columns an analysis takes together, and whether a model ever measured them so.

A function of a frame does not say what it reads. But if the values of one column are permuted among
the rows, all that is left of it is its own distribution: an estimate that changes rests on how this
column goes with others, and one that does not change has no use for that. So columns are permuted,
many at once and then fewer of those that mattered, until it is known of each estimate which ones
do. The same permutation of whole rows must change nothing; an estimate that it does change, as one
of random numbers or of the order of rows, is taken to rest on all columns.

A change counts beyond `CHANGED` of the estimate's standard error: sums in another order give other
last digits, and permuted people another estimate by about as much as other people would.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl

__all__ = ["apart", "in_pairs", "taken_together"]

CHANGED = 1e-6
"""Of a standard error: what no rounding of doubles reaches, and every permutation does."""

UNSTEADY = 1e-3
"""Of a standard error: beyond it the order of rows matters to an estimate."""

Estimates = Callable[["pl.DataFrame"], Mapping[str, float] | None]


def taken_together(
    estimates: Estimates,
    frame: pl.DataFrame,
    deviations: Mapping[str, float],
    rng: np.random.Generator,
) -> dict[str, frozenset[str]]:
    """By estimate the columns whose going together it rests on; none, of one of single columns.

    Parameters
    ----------
    estimates : callable
        From a frame to the estimates by name, or None where it fails.
    frame : polars.DataFrame
        Rows of the model.
    deviations : mapping of str to float
        Of each estimate.
    rng : numpy.random.Generator
    """
    every = tuple(frame.columns)
    n = frame.height
    base = estimates(frame)
    turned = estimates(frame[rng.permutation(n)])
    if base is None or turned is None:
        return dict.fromkeys(deviations, frozenset(every))
    moved = {name: _moved(base, turned, name, deviations) for name in deviations}
    found = {name: set(every) for name, by in moved.items() if by > UNSTEADY}
    steady = [name for name in deviations if name not in found]
    found |= {name: set() for name in steady}

    def search(columns: Sequence[str], names: Collection[str]) -> None:
        """Which of the columns matter to which of the estimates."""
        if not names or not columns:
            return
        # Each by a permutation of its own, so that they go apart from one another, too.
        mixed = frame.with_columns(frame[c].gather(rng.permutation(n)) for c in columns)
        seen = estimates(mixed)
        changed = [
            name
            for name in names
            if seen is None or _moved(base, seen, name, deviations) > max(CHANGED, 10 * moved[name])
        ]
        if len(columns) == 1:
            for name in changed:
                found[name].add(columns[0])
            return
        half = len(columns) // 2
        search(columns[:half], changed)
        search(columns[half:], changed)

    if n > 1:
        search(every, steady)
    return {name: frozenset(columns) for name, columns in found.items()}


def _moved(
    base: Mapping[str, float],
    other: Mapping[str, float],
    name: str,
    deviations: Mapping[str, float],
) -> float:
    """By how many standard errors an estimate moved; infinite where it is no number any more."""
    if name not in other:
        return np.inf
    by = abs(other[name] - base[name])
    # Where all data sets gave one number, a change of its last digits is none.
    scale = deviations[name] or abs(base[name]) or 1.0
    return float(by / scale) if np.isfinite(by) else np.inf


def apart(
    columns: Collection[str], measured: Sequence[Collection[str]]
) -> tuple[tuple[str, ...], ...]:
    """What of some columns no measured table has together: pairs, or all of them.

    Parameters
    ----------
    columns : collection of str
    measured : sequence of collection of str
        The columns of each measured table.

    Examples
    --------
    >>> apart(["a", "b", "c"], [("a", "b"), ("b", "c")])
    (('a', 'c'),)
    >>> apart(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    (('a', 'b', 'c'),)
    >>> apart(["a", "b"], [("a", "b", "c")])
    ()
    """
    held = [set(table) for table in measured]
    asked = set(columns)
    if len(asked) < 2 or any(asked <= table for table in held):
        return ()
    pairs = tuple(
        pair
        for pair in combinations(sorted(asked), 2)
        if not any(set(pair) <= table for table in held)
    )
    return pairs or (tuple(sorted(asked)),)


def in_pairs(lack: Sequence[Collection[str]]) -> bool:
    """Whether what `apart` found is one set whose pairs were all measured.

    Examples
    --------
    >>> in_pairs((("a", "b", "c"),)), in_pairs((("a", "c"),)), in_pairs(())
    (True, False, False)
    """
    return len(lack) == 1 and len(lack[0]) > 2

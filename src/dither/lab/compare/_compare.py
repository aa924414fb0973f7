"""``compare``: a synthetic table held against the real one, by what people would do with it.

- *Tables of counts* of one, two and three columns: total variation, beside what as many rows drawn
  from the real table would have.
- *A classifier* that is shown real and synthetic rows, and guesses which others are.
- *A column guessed from the others*, by what is learned of synthetic rows and of real ones.
- *The nearest real row* of synthetic ones, beside a control: rows that were held out, where there
  are some, else real rows among themselves.
- *An attack* on membership, where rows were held out; it has its own controls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither._stats import clopper_pearson
from dither.errors import ArgumentError, nearest
from dither.lab._cells import Bins, CodedColumn, alike, coded, distances_of
from dither.lab._grouping import Ints
from dither.lab._nearest import nearest_rows
from dither.lab._simulation import SimulatedWorld
from dither.lab.attack import Membership, closest_record
from dither.lab.attack._roc import Rate, Roc
from dither.lab.compare._distances import ComparedTables, Distance, distances, many
from dither.lab.compare._result import Accuracy, Nearness, Pair, TableComparison
from dither.lab.compare._trees import boosted

__all__ = ["compare"]

_LEARNED = 10_000
"""Rows of each kind that a classifier is shown, and as many that it guesses."""
_ASKED, _AMONG = 1_000, 40_000
"""Rows whose nearest neighbour is looked for, and rows among which."""
_CLASSES = 64


def compare(
    real: object,
    synthetic: object,
    *,
    target: str | None = None,
    holdout: object | None = None,
    columns: Sequence[str] | None = None,
    ways: int = 3,
    bins: Bins = 32,
    most: int = 5_000,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> TableComparison:
    """Hold a synthetic table against the real one.

    It reads the real table without noise. Nothing that it gives is protected, its pictures and its
    errors included: it is for the owner of the table alone.

    Parameters
    ----------
    real, synthetic : DataFrame
        Polars, pandas or pyarrow; the synthetic one may also be something that has a ``frame``.
    target : str, optional
        A column to guess from the others.
    holdout : DataFrame, optional
        Real rows that the synthetic ones were *not* made of, and that are not in ``real``. With
        them there is a control of distances, an attack, and a fair test of ``target``.
    columns : sequence of str, optional
        Those to compare; by default all, which must be the same in both tables.
    ways : {1, 2, 3}
        Columns of the largest tables of counts.
    bins : int, None or mapping of str to those or to rising edges
        Numbers and times of more values are cut into so many parts, of as many real rows each; None
        takes every value for itself.
    most : int
        Tables of each order, at most; beyond that, they are drawn.
    seed : int or numpy.random.Generator
        Of rows and tables that are drawn.
    confidence : float
        Of the intervals, in (0, 1).

    Returns
    -------
    TableComparison

    Raises
    ------
    ArgumentError
        For tables without rows, other columns or other types, or an unknown target.

    Examples
    --------
    >>> import polars as pl
    >>> real = pl.DataFrame({"sex": ["f", "m"] * 50, "tall": [False, True] * 50})
    >>> apart = pl.DataFrame({"sex": ["f", "m"] * 50, "tall": [False, False, True, True] * 25})
    >>> found = compare(real, apart)
    >>> found.by_order.select("order", "mean", "which").rows()
    [(1, 0.0, ['sex']), (2, 0.5, ['sex', 'tall'])]
    """
    ways = whole("ways", ways, 1, 3)
    most = whole("most", most, 1)
    confidence = check_confidence(confidence)
    rng = SimulatedWorld.of(seed)
    given = {"real": real, "synthetic": synthetic}
    frames = alike(given if holdout is None else given | {"holdout": holdout}, columns)
    names = frames[0].columns
    if target is not None and target not in names:
        close = nearest(target, names) if isinstance(target, str) else ""
        raise ArgumentError(f"target is an unknown column {target!r}{close}")
    cells = coded(frames, bins)
    real_rows, synthetic_rows = frames[0].height, frames[1].height
    both = real_rows + synthetic_rows
    tables = ComparedTables(
        tuple(CodedColumn(c.name, c.codes[:both], c.size, c.place, c.labels) for c in cells),
        real_rows, synthetic_rows,
    )  # fmt: skip
    orders = range(1, min(ways, len(cells)) + 1)
    found = [d for order in orders for d in distances(tables, order, most, rng)]
    ours, theirs = np.arange(real_rows), np.arange(real_rows, both)
    unseen = None if holdout is None else np.arange(both, both + frames[2].height)
    return TableComparison(
        real_rows,
        synthetic_rows,
        _table(found, names),
        _by_order(found, names),
        _told_apart(cells, ours, theirs, rng, confidence),
        None if target is None else _guessed(cells, target, ours, theirs, unseen, rng, confidence),
        _near(cells, ours, theirs, unseen, rng, confidence),
        None if holdout is None else _attacked(frames, rng, confidence),
        _worst_pair(found, tables),
    )


# --- tables of counts -----------------------------------------------------------------------------


def _table(found: Sequence[Distance], names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "order": [len(d.columns) for d in found],
            "columns": [[names[i] for i in d.columns] for d in found],
            # Of many columns with many values there are more cells than a machine word counts.
            "cells": [float(d.cells) for d in found],
            "distance": [d.value for d in found],
            "chance": [d.chance for d in found],
        }
    )


def _by_order(found: Sequence[Distance], names: Sequence[str]) -> pl.DataFrame:
    rows = []
    for order in sorted({len(d.columns) for d in found}):
        some = [d for d in found if len(d.columns) == order]
        worst = max(some, key=lambda d: d.value)
        rows.append(
            {
                "order": order,
                "tables": len(some),
                "possible": many(len(names), order),
                "mean": float(np.mean([d.value for d in some])),
                "chance": float(np.mean([d.chance for d in some])),
                "worst": worst.value,
                "which": [names[i] for i in worst.columns],
            }
        )
    return pl.DataFrame(rows)


def _worst_pair(found: Sequence[Distance], tables: ComparedTables) -> Pair | None:
    pairs = [d for d in found if len(d.columns) == 2]
    if not pairs:
        return None
    first, second = (tables.columns[i] for i in max(pairs, key=lambda d: d.value).columns)
    rows = slice(0, tables.real), slice(tables.real, None)
    # What a picture can show: the commonest values, and the others together.
    (a, one), (b, two) = _shown(first), _shown(second)
    shares = []
    for part in rows:
        key = a[part] * len(two) + b[part]
        counts = np.bincount(key, minlength=len(one) * len(two)).reshape(len(one), len(two))
        shares.append(tuple(tuple(map(float, row)) for row in counts / max(1, counts.sum())))
    return Pair((first.name, second.name), (one, two), shares[0], shares[1])


def _shown(column: CodedColumn, most: int = 24) -> tuple[Ints, tuple[str, ...]]:
    """Codes and labels of at most so many cells: where there are more, the last are all others."""
    if column.size <= most:
        return column.codes, column.labels
    counts = np.bincount(column.codes, minlength=column.size)
    kept = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
    place = np.full(column.size, most - 1)
    place[kept] = np.arange(most - 1)
    return place[column.codes], (*(column.labels[i] for i in kept), "others")


# --- classifiers ----------------------------------------------------------------------------------


def _drawn(rows: Ints, many: int, rng: np.random.Generator) -> Ints:
    return np.asarray(rng.permutation(rows)[:many])


def _halves(rows: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Rows to learn of, and others to guess; the same one twice where there is only one."""
    mixed = _drawn(rows, 2 * _LEARNED, rng)
    half = len(mixed) // 2
    return (mixed[:half], mixed[half:]) if half else (mixed, mixed)


def _codes(cells: Sequence[CodedColumn], rows: Ints) -> list[Ints]:
    return [c.codes[rows] for c in cells]


def _told_apart(
    cells: Sequence[CodedColumn],
    ours: Ints,
    theirs: Ints,
    rng: np.random.Generator,
    confidence: float,
) -> Rate:
    learn, test = zip(_halves(ours, rng), _halves(theirs, rng), strict=True)
    rows = np.concatenate(learn)
    label = np.repeat([0, 1], [len(learn[0]), len(learn[1])])
    model = boosted(_codes(cells, rows), [c.size for c in cells], label, 2)
    real, synthetic = (model.scores(_codes(cells, part))[:, 1] for part in test)
    if min(len(real), len(synthetic)) < 2:
        return Rate(0.5, 0.0, 1.0)
    return Roc(synthetic, real, confidence).auc()


def _guessed(
    cells: Sequence[CodedColumn],
    target: str,
    ours: Ints,
    theirs: Ints,
    unseen: Ints | None,
    rng: np.random.Generator,
    confidence: float,
) -> Accuracy:
    wanted = next(c for c in cells if c.name == target)
    rest = [c for c in cells if c.name != target]
    if not rest:
        raise ArgumentError("target needs another column to be guessed from")
    if wanted.size > _CLASSES:
        raise ArgumentError(
            f"target must have at most {_CLASSES} values: bins= cuts numbers and times"
        )
    learn, test = _halves(ours, rng)
    if unseen is not None:
        learn, test = _drawn(ours, _LEARNED, rng), _drawn(unseen, _LEARNED, rng)
    truth = wanted.codes[test]

    def right(rows: Ints) -> Rate:
        model = boosted(_codes(rest, rows), [c.size for c in rest], wanted.codes[rows], wanted.size)
        guess = model.scores(_codes(rest, test)).argmax(axis=1)
        return _rate(int((guess == truth).sum()), len(test), confidence)

    alike = min(len(learn), len(theirs))
    blind = float(np.bincount(truth).max() / len(truth))
    return Accuracy(
        target, right(_drawn(theirs, alike, rng)), right(learn[:alike]), blind, len(test)
    )


def _rate(hits: int, of: int, confidence: float) -> Rate:
    return Rate(hits / of, *clopper_pearson(hits, of, confidence))


# --- nearness -------------------------------------------------------------------------------------


def _near(
    cells: Sequence[CodedColumn],
    ours: Ints,
    theirs: Ints,
    unseen: Ints | None,
    rng: np.random.Generator,
    confidence: float,
) -> Nearness:
    columns = distances_of(cells)
    asked = _drawn(theirs, _ASKED, rng)
    alike = min(len(ours), _AMONG if unseen is None else min(_AMONG, len(unseen)))
    among = _drawn(ours, alike, rng)
    found = nearest_rows(columns, asked, among)
    nearer = None
    if unseen is not None:
        control = nearest_rows(columns, asked, _drawn(unseen, alike, rng))
        # A tie is decided by a coin, so that hits are whole and the share of ties does not matter.
        ties = (found == control) & (rng.random(len(found)) < 0.5)
        nearer = _rate(int(((found < control) | ties).sum()), len(found), confidence)
    elif alike > 1:
        control = nearest_rows(columns, among[:_ASKED], among, but_itself=True)
    else:
        control = np.ones(1)
    return Nearness(
        unseen is not None, _quantiles(found), _quantiles(control),
        float((found == 0).mean()), float((control == 0).mean()), nearer,
    )  # fmt: skip


def _quantiles(distance: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    low, middle, high = np.quantile(distance, (0.05, 0.5, 0.95)).tolist()
    return low, middle, high


def _attacked(
    frames: tuple[pl.DataFrame, ...], rng: np.random.Generator, confidence: float
) -> Membership | None:
    real, synthetic, unseen = frames
    if min(real.height, unseen.height) < 4:
        return None
    made, ours, others = (
        table[_drawn(np.arange(table.height), most, rng)]
        for table, most in ((synthetic, _AMONG), (real, _ASKED), (unseen, _ASKED))
    )
    return closest_record(made, ours, others, seed=rng, confidence=confidence)

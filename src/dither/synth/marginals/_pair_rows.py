"""Rows whose pairs of columns come near to given tables, without a model of all columns.

Tables of pairs that agree where they overlap need not be those of any rows, and whether they are
cannot be told for many columns. So rows are begun on a tree of pairs, whose tables they have but
for rounding, and then improved pair by pair. Of a pair's cells some hold too many rows and others
too few; as the single columns are right, both differ by the same in every row and every column of
the table. So rows in crowded cells get another value of one of the two columns, drawn from the
cells that lack rows and have the same value of the other. Tables of the changed column with third
ones move by chance, and are improved in their turn; after each sweep the single columns are put
right.

Pairs of which the answers say no more than noise would are left out: rows that followed noise would
be further from the truth than independent columns.

What is guaranteed is the single columns: every value has one of the two whole numbers of rows next
to what was expected. How near the pairs came is measured against the tables themselves, which costs
no privacy, and is returned with the rows. Of tables of three columns nothing is said.

Source. The tree is that of Chow and Liu (1968). Moving rows between cells: Zhang et al., "PrivSyn:
differentially private data synthesis", USENIX Security 2021, section 5, which copies rows as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dither.synth._rows import _filled, rounded
from dither.synth.marginals._nonnegative import Nonnegative

__all__ = ["distances", "rows_near"]

Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Pairs = dict[tuple[int, int], Floats]

_SWEEPS = 12
_PART = 0.7
"""Of what a pair lacks, how much is moved at once in the first sweep."""


def rows_near(
    tables: Nonnegative, sizes: Sequence[int], n: int, rng: np.random.Generator
) -> tuple[Whole, dict[tuple[int, int], float]]:
    """Rows, and how far each pair's table is from its target, as a total variation.

    Parameters
    ----------
    tables : Nonnegative
    sizes : sequence of int
    n : int
        Rows.
    rng : numpy.random.Generator

    Returns
    -------
    (array of int of shape (n, columns), dict of pair to float)
        Of the pairs that say more than noise.
    """
    targets: Pairs = {}
    for pair in sorted(tables.told):
        table = tables.table(pair)
        targets[pair[0], pair[1]] = _scaled(table, n)
    singles = [
        _scaled(tables.table((i,)), n) if (i,) in tables else np.full(k, n / k)
        for i, k in enumerate(sizes)
    ]
    rows = _on_a_tree(targets, singles, n, rng)
    rows = rows[rng.permutation(n)]
    counts = [rounded(s[None, :], np.array([n]), rng)[0] for s in singles]
    _settle(rows, counts, rng)
    if not n:
        return rows, dict.fromkeys(targets, 0.0)
    best, kept = rows.copy(), distances(rows, targets)
    for sweep in range(_SWEEPS):
        rows = rows[rng.permutation(n)]
        for place in rng.permutation(len(targets)).tolist():
            pair = list(targets)[place]
            _improve(rows, pair, targets[pair], _PART * 0.8**sweep, rng)
        _settle(rows, counts, rng)
        found = distances(rows, targets)
        if sum(found.values()) < sum(kept.values()):
            best, kept = rows.copy(), found
        elif sweep > 2:
            break
    return best, kept


def distances(rows: Whole, targets: Pairs) -> dict[tuple[int, int], float]:
    """The total variation between each pair's table of the rows and its target."""
    n = max(1, len(rows))
    return {
        pair: float(np.abs(_counted(rows, pair, target) - target).sum()) / (2 * n)
        for pair, target in targets.items()
    }


def _scaled(table: Floats, n: int) -> Floats:
    total = table.sum()
    found: Floats = table * (n / total) if total > 0 else np.full(table.shape, n / table.size)
    return found


def _counted(rows: Whole, pair: tuple[int, int], target: Floats) -> Whole:
    at = rows[:, pair[0]] * target.shape[1] + rows[:, pair[1]]
    return np.bincount(at, minlength=target.size).reshape(target.shape)


def _information(table: Floats) -> float:
    """Mutual information of a pair."""
    p = table / table.sum()
    apart = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    held = p > 0
    return float((p[held] * np.log(p[held] / apart[held])).sum())


def _on_a_tree(
    targets: Pairs, singles: Sequence[Floats], n: int, rng: np.random.Generator
) -> Whole:
    """Rows whose pairs on the tree of largest information are right."""
    rows = np.zeros((n, len(singles)), np.int64)
    if not n:
        return rows
    beside = _tree(len(singles), {pair: _information(t) for pair, t in targets.items()})
    left = list(range(len(singles)))
    while left:
        # From each root to those beside it, and on from those.
        waiting = [(-1, left[0])]
        for u, v in waiting:
            left.remove(v)
            waiting += [(v, w) for w in beside[v] if w != u]
            group = rows[:, u] if u >= 0 else np.zeros(n, np.int64)
            if u >= 0:
                chances = targets[u, v] if u < v else targets[v, u].T
            else:
                chances = singles[v][None, :]
            rows[:, v] = _filled(group, chances, rng)
    return rows


def _tree(size: int, weights: Mapping[tuple[int, int], float]) -> list[list[int]]:
    """Whom each is beside on the tree of largest weight, or on trees where some have no edge.

    Kruskal's: the heaviest edge that joins what was not joined before; the first of equal ones.

    Examples
    --------
    >>> _tree(4, {(0, 1): 0.5, (0, 2): 0.1, (1, 2): 0.2})
    [[1], [0, 2], [1], []]
    """
    part = list(range(size))
    beside: list[list[int]] = [[] for _ in part]
    for (u, v), _ in sorted(weights.items(), key=lambda one: (-one[1], one[0])):
        old, new = part[v], part[u]
        if old != new:
            part = [new if p == old else p for p in part]
            beside[u].append(v)
            beside[v].append(u)
    return [sorted(others) for others in beside]


def _improve(
    rows: Whole, pair: tuple[int, int], target: Floats, part: float, rng: np.random.Generator
) -> None:
    """Move rows of crowded cells to cells that lack rows, in one of the pair's columns."""
    fixed, moved = pair if rng.random() < 0.5 else pair[::-1]
    excess = _counted(rows, pair, target) - target
    if fixed != pair[0]:
        excess = excess.T
    much, little = np.maximum(excess, 0.0) * part, np.maximum(-excess, 0.0)
    # For each value of the fixed column so many rows leave its crowded cells as others lack.
    leave = np.minimum(np.floor(much + rng.random(much.shape)), np.ceil(np.maximum(excess, 0.0)))
    leave = leave.astype(np.int64)
    totals = leave.sum(axis=1)
    lacking = little.sum(axis=1, keepdims=True)
    known = (lacking[:, 0] > 0) & (totals > 0)
    if not known.any():
        return
    arrive = np.zeros_like(leave)
    arrive[known] = rounded(
        little[known] / lacking[known] * totals[known, None], totals[known], rng
    )
    leave[~known] = 0
    columns = excess.shape[1]
    order, held = _by_cell(rows[:, fixed] * columns + rows[:, moved], excess.size, rng)
    starts = np.cumsum(held) - held
    wanted = np.minimum(leave.ravel(), held)
    if (wanted != leave.ravel()).any():
        return
    first = np.repeat(starts, wanted)
    inside = np.arange(wanted.sum()) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    chosen = order[first + inside]
    # Both lists run through the fixed column's values in the same order.
    values = np.repeat(np.tile(np.arange(columns), len(arrive)), arrive.ravel())
    shuffled = rng.random(len(values))
    own = np.repeat(np.arange(len(arrive)), arrive.sum(axis=1))
    rows[chosen, moved] = values[np.lexsort((shuffled, own))]


def _settle(rows: Whole, counts: Sequence[Whole], rng: np.random.Generator) -> None:
    """Give every value of every column its number of rows; which rows change is chance."""
    for v, wanted in enumerate(counts):
        more = np.bincount(rows[:, v], minlength=len(wanted)) - wanted
        order, held = _by_cell(rows[:, v], len(wanted), rng)
        starts, many = np.cumsum(held) - held, np.maximum(more, 0)
        inside = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        chosen = order[np.repeat(starts, many) + inside]
        rows[chosen, v] = rng.permutation(np.repeat(np.arange(len(wanted)), np.maximum(-more, 0)))


def _by_cell(cells: Whole, many: int, rng: np.random.Generator) -> tuple[Whole, Whole]:
    """Rows by cell, from a random place on; and how many each cell has.

    Rows were shuffled, so which come first in a cell is chance.
    """
    start = int(rng.integers(len(cells))) if len(cells) else 0
    kind = np.uint16 if many <= 1 << 16 else np.int64
    turned = np.roll(cells.astype(kind), -start)
    order = np.argsort(turned, kind="stable") + start
    order[order >= len(cells)] -= len(cells)
    return order, np.bincount(cells, minlength=many)

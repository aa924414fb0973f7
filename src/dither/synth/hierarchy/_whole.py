"""Whole numbers of at least 0 that add up at every level of a spine, near given estimates.

Top down. First how many each place has: a root has its estimate, rounded; the places inside of one
have the nearest numbers of at least 0 that add up to its number, rounded. Then in which cells: of a
root, as its places; of the places inside of one, a table X of places by cells whose rows add up to
the places' numbers r and whose columns to the parent's cells c, which are whole by then.

The nearest table. Least squares to the estimates Y over X >= 0 with these margins. With multipliers
a_i, b_j it is X_ij = max(0, Y_ij + a_i + b_j), where the convex dual ::

    D(a, b) = Σ max(0, Y_ij + a_i + b_j)²/2 - Σ a_i·r_i - Σ b_j·c_j

is least. Newton's method finds it; its matrix has the numbers of positive entries on the diagonal
and their pattern beside it, and is solved on the shorter side of the table.

Controlled rounding. The places are halved again and again. What a half has in each cell is rounded
such that no cell has more than both halves together and the half has what its rows add up to:
largest remainders go up. So all margins hold by construction, in a time that grows with the table's
size times the logarithm of its rows; most entries end within 1 of X.

All of it is computed from noisy numbers, so it costs no privacy. It is not unbiased: what was below
0 is raised, and the rest lowered to make up for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dither.synth.hierarchy._spine import Spine

__all__ = ["nearest_table", "rounded_table", "simplex", "whole", "whole_counts"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_STEPS = 60
"""Newton steps; some ten are usual."""


def whole_counts(
    spine: Spine,
    totals: Sequence[Floats],
    cells: Sequence[Floats],
    fixed: Sequence[Integers | None],
) -> list[Integers]:
    """Whole numbers of at least 0 that add up, by level, shape (places, cells).

    Parameters
    ----------
    spine : Spine
    totals : sequence of array, shape (places,)
        By level: how many each place has, by estimate.
    cells : sequence of array, shape (places, cells)
        By level: in each cell.
    fixed : sequence of (array of int64, shape (places,), or None)
        By level: how many each place has, where that is public. Then it is of every level above.
    """
    known = fixed[0]
    number = np.rint(np.maximum(totals[0], 0.0)).astype(np.int64) if known is None else known
    table = whole(simplex(cells[0].T, number), number).T
    found = [table]
    for level in range(1, spine.depth):
        below = np.zeros(cells[level].shape, dtype=np.int64)
        inside = np.zeros(len(below), dtype=np.int64)
        known = fixed[level]
        for place in range(spine.sizes[level - 1]):
            own = spine.inside(level - 1, place)
            if known is None:
                sums = number[place : place + 1]
                inside[own] = whole(simplex(totals[level][own][:, None], sums), sums)[:, 0]
            else:
                inside[own] = known[own]
            below[own] = _table(cells[level][own], inside[own], table[place])
        number, table = inside, below
        found.append(table)
    return found


def simplex(values: Floats, totals: npt.ArrayLike) -> Floats:
    """The nearest numbers of at least 0 with these sums, column by column.

    Parameters
    ----------
    values : array, shape (n, columns)
    totals : array, shape (columns,)
        At least 0.

    Examples
    --------
    >>> simplex(np.array([[3.0], [-1.0], [2.0]]), [4]).ravel().tolist()
    [2.5, 0.0, 1.5]
    """
    sums = np.asarray(totals, dtype=np.float64)
    falling = -np.sort(-values, axis=0)
    excess = np.cumsum(falling, axis=0) - sums
    count = np.arange(1, len(values) + 1)[:, None]
    held = np.maximum((falling * count > excess).sum(axis=0), 1)
    lowered = np.take_along_axis(excess, held[None, :] - 1, axis=0)[0] / held
    return np.asarray(np.where(sums > 0, np.maximum(values - lowered, 0.0), 0.0))


def whole(values: Floats, totals: Integers, most: Integers | None = None) -> Integers:
    """Whole numbers of at least 0 next to these with these sums, column by column.

    Largest remainders go up. Where ``values`` do not have these sums, what is missing or too much
    is spread as evenly as it can be.

    Parameters
    ----------
    values : array, shape (n, columns)
        At least 0.
    totals : array of int64, shape (columns,)
        At least 0.
    most : array of int64, shape (n, columns), optional
        No number is above; they can hold the sums.

    Examples
    --------
    >>> whole(np.array([[2.5], [0.0], [1.5]]), np.array([4])).ravel().tolist()
    [3, 0, 1]
    """
    # What roundings left just below a whole number is that number.
    found = np.floor(values + 1e-7).astype(np.int64)
    if most is not None:
        found = np.minimum(found, most)
    while True:
        missing = totals - found.sum(axis=0)
        if not missing.any():
            return found
        up = missing > 0
        # Those that may move, the farthest from where they should be first; of equals the first.
        off = np.where(up, values - found, found - values)
        may = found > 0 if most is None else np.where(up, found < most, found > 0)
        may = np.where(up, True, may) if most is None else may
        order = np.argsort(np.where(may, -off, np.inf), axis=0, kind="stable")
        rank = np.argsort(order, axis=0, kind="stable")
        # Far from the sum, all that may move by as much as brings it near.
        step = np.maximum(np.abs(missing) // np.maximum(may.sum(axis=0), 1), 1)
        room = np.where(up, step if most is None else most - found, found)
        moved = np.minimum(np.minimum(room, step), np.abs(missing))
        each = np.where(may & (rank < np.abs(missing) // step), moved, 0)
        found = found + np.where(up, each, -each)


def _table(values: Floats, rows: Integers, columns: Integers) -> Integers:
    """A table of whole numbers of at least 0 near these, with exactly these margins."""
    found = np.zeros(values.shape, dtype=np.int64)
    held, across = rows > 0, columns > 0
    if held.any():
        near = nearest_table(values[np.ix_(held, across)], rows[held], columns[across])
        found[np.ix_(held, across)] = rounded_table(near, rows[held], columns[across])
    return found


def nearest_table(values: Floats, rows: Integers, columns: Integers) -> Floats:
    """The table of numbers of at least 0 with these margins that is nearest in least squares.

    Margins are above 0 and have one sum; they hold up to rounding errors.
    """
    if values.shape[0] > values.shape[1]:
        return nearest_table(values.T, columns, rows).T
    n, m = values.shape
    r, c = rows.astype(np.float64), columns.astype(np.float64)
    scale = float(r.sum())
    # Where no entry were cut at 0, this would be the solution.
    a = (r - values.sum(axis=1)) / m
    b = (c - values.sum(axis=0) - a.sum()) / n

    def dual(a: Floats, b: Floats) -> tuple[float, Floats]:
        x = np.maximum(values + a[:, None] + b, 0.0)
        return float((x * x).sum() / 2 - a @ r - b @ c), x

    level, x = dual(a, b)
    for _ in range(_STEPS):
        over, across = x.sum(axis=1) - r, x.sum(axis=0) - c
        worst = max(float(np.abs(over).max()), float(np.abs(across).max()))
        # `rounded_table` makes the margins exact, whatever is left.
        if worst <= 1e-9 * scale:
            break
        held = (x > 0).astype(np.float64)
        # Adding to a what is taken from b changes nothing, so the matrix alone is singular.
        ridge = 1e-9 + min(1.0, worst / scale) * 1e-3
        thin = held / (held.sum(axis=0) + ridge)
        schur = np.diag(held.sum(axis=1) + 2 * ridge) - _product(thin, held)
        da = np.linalg.solve(schur, thin @ across - over)
        db = -(across + held.T @ da) / (held.sum(axis=0) + ridge)
        slope, step = float(over @ da + across @ db), 1.0
        tried, moved = dual(a + da, b + db)
        # It leads downwards, so that some step is low enough; 20 halvings are, but for rounding.
        while tried > level + 1e-4 * step * slope and step > 1e-6:
            step /= 2
            tried, moved = dual(a + step * da, b + step * db)
        a, b, level, x = a + step * da, b + step * db, tried, moved
    return x


def _product(one: Floats, two: Floats) -> Floats:
    """one·twoᵀ; small ones without the threads that would have to be woken for each."""
    if len(one) * two.size < 10**7:
        return np.asarray(np.einsum("ik,jk->ij", one, two))
    return np.asarray(one @ two.T)


def rounded_table(values: Floats, rows: Integers, columns: Integers) -> Integers:
    """A table of whole numbers of at least 0 near these, with exactly these margins."""
    found = np.zeros(values.shape, dtype=np.int64)
    below = np.vstack([np.zeros(values.shape[1]), np.cumsum(values, axis=0)])
    ends = np.concatenate([[0], np.cumsum(rows)])
    parts = [(0, len(rows), columns)]
    while parts:
        first, last, held = parts.pop()
        if last - first == 1:
            found[first] = held
            continue
        middle = (first + last) // 2
        own, both = below[middle] - below[first], below[last] - below[first]
        # Where both halves have nothing but what rounding left, `whole` spreads the sum by itself.
        wanted = own * np.divide(held, both, out=np.zeros_like(own), where=both > 1e-9)
        sums = ends[middle : middle + 1] - ends[first]
        half = whole(wanted[:, None], sums, held[:, None])[:, 0]
        parts += [(first, middle, half), (middle, last, held - half)]
    return found

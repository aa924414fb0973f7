"""Rows of a distribution: whole numbers of them, whose marginals are its own but for rounding.

Columns are filled along the junction tree, each given the columns of its clique that are filled
already. Rows that agree on those are a group, and of a group's m rows each value gets m·p, rounded
to a whole number next to it so that the numbers add up to m: systematic sampling, which moves no
count by 1 or more, where independent draws would move it by the root of m·p.

Which rows of the group get which value must have nothing to do with the columns that are filled
already and not given: were values laid out in the order of another column, two columns filled from
the same group would go up together, and pairs that no clique holds would come out wrong although
every measured marginal is right. Nor need it be left to chance alone. Rows are sorted by those
columns, and a value's c places are spread over the group: one in each c-th part of it, anywhere in
that part. The sequence then begins at a row of chance, so that each row gets each value with the
probability that the value has in the group, whatever its other columns are: no table is biased.
And as rows that are alike lie side by side, each value has nearly its share among them, so that
tables that no clique holds are off by less than draws would leave them (stratified sampling).

Everything here follows from what was released already; it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dither.synth.model._graph import GraphModel

__all__ = ["rounded", "rows_of"]

Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ROOM = 2**62


def rows_of(model: GraphModel, n: int, rng: np.random.Generator) -> Whole:
    """That many rows of a model, shape (n, attributes).

    Parameters
    ----------
    model : GraphModel
    n : int
        At least 0.
    rng : numpy.random.Generator
        Decides how numbers are rounded and which rows get which value.
    """
    tree = model.tree
    found = np.zeros((n, len(tree.sizes)), dtype=np.int64)
    filled: set[int] = set()
    for i in tree.order:
        clique = tree.cliques[i]
        for v in clique:
            if v in filled:
                continue
            given = tuple(u for u in clique if u in filled)
            both = tuple(sorted((*given, v)))
            chances = np.moveaxis(model.marginal(both), both.index(v), -1)
            shape = tree.shape(given)
            group = np.zeros(n, dtype=np.int64)
            if given:
                group = np.ravel_multi_index(tuple(found[:, u] for u in given), shape)
            beside = [(found[:, u], tree.sizes[u]) for u in sorted(filled - set(given))]
            found[:, v] = _filled(group, chances.reshape(-1, tree.sizes[v]), rng, beside)
            filled.add(v)
    return found


def _filled(
    group: Whole,
    chances: Floats,
    rng: np.random.Generator,
    beside: Sequence[tuple[Whole, int]] = (),
) -> Whole:
    """A value for each row, given its group; row g of ``chances`` is that of group g.

    ``beside`` has the columns whose tables with this one should be even, and how many values each
    has.
    """
    held, at, sizes = np.unique(group, return_inverse=True, return_counts=True)
    counts = rounded(_shares(chances[held]) * sizes[:, None], sizes, rng)
    order = rng.permutation(group.size)
    order = order[np.argsort(_key(at, held.size, beside, rng)[order], kind="stable")]
    values = np.tile(np.arange(chances.shape[1]), held.size)
    values = np.repeat(values, counts.ravel())[_spread(counts, sizes, rng)]
    # From a start of chance.
    turn = np.floor(rng.random(held.size) * sizes).astype(np.int64)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    inside = np.arange(group.size) - first + np.repeat(turn, sizes)
    found = np.empty(group.size, dtype=np.int64)
    found[order] = values[first + inside % np.repeat(sizes, sizes)]
    return found


def _spread(counts: Whole, sizes: Whole, rng: np.random.Generator) -> Whole:
    """An order in which, of a value's c places in a group, one lies in each c-th part of it."""
    each = counts.ravel()
    n = int(each.sum())
    inside = np.arange(n) - np.repeat(np.cumsum(each) - each, each)
    place = (inside + rng.random(n)) / np.repeat(each, each)
    return np.argsort(np.repeat(np.arange(len(sizes)), sizes) + place)


def _key(
    group: Whole, groups: int, beside: Sequence[tuple[Whole, int]], rng: np.random.Generator
) -> Whole:
    """What rows are sorted by: their group, then as many other columns as a number has room for."""
    key, room = group.astype(np.int64), _ROOM // max(groups, 1)
    for i in rng.permutation(len(beside)).tolist():
        column, size = beside[i]
        if size > room:
            break
        key, room = key * size + column, room // size
    return key


def _shares(weights: Floats) -> Floats:
    """Rows that sum to 1; even ones where a group has no weight at all."""
    total = weights.sum(axis=1, keepdims=True)
    even = np.full_like(weights, 1 / weights.shape[1])
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), even)


def rounded(expected: Floats, totals: Whole, rng: np.random.Generator) -> Whole:
    """Whole numbers next to expected ones, each row adding up to its total.

    Systematic sampling (Madow, 1949): the fractions are laid end to end from a uniform start, and
    one is added wherever a whole number is passed. The expectation of each is what was expected.

    Parameters
    ----------
    expected : array of float, shape (groups, k)
        At least 0; rows sum to the totals, but for what doubles are off.
    totals : array of int, shape (groups,)
    rng : numpy.random.Generator

    Returns
    -------
    array of int, shape (groups, k)

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> found = rounded(np.array([[1.5, 0.25, 0.25]]), np.array([2]), rng)
    >>> int(found.sum()), int(found[0, 0]) in (1, 2)
    (2, True)
    """
    whole = np.floor(expected).astype(np.int64)
    left = totals - whole.sum(axis=1)
    part = expected - whole
    # In an order of chance: else neighbouring values would never be rounded up together.
    order = np.argsort(rng.random(part.shape), axis=1)
    ends = np.cumsum(np.take_along_axis(part, order, axis=1), axis=1)
    # The fractions of a row sum to what is left; doubles may be off by a little.
    ends *= np.where(
        ends[:, -1:] > 0, left[:, None] / np.where(ends[:, -1:] > 0, ends[:, -1:], 1), 1
    )
    ends[:, -1] = left
    passed = np.floor(ends + rng.random((len(part), 1)))
    more = np.diff(passed, axis=1, prepend=0.0).astype(np.int64)
    found = whole.copy()
    np.put_along_axis(found, order, np.take_along_axis(whole, order, axis=1) + more, axis=1)
    return found

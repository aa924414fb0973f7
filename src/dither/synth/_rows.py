"""Rows of a distribution: whole numbers of them, whose marginals are its own but for rounding.

Columns are filled along the junction tree, each given the columns of its clique that are filled
already. Rows that agree on those are a group, and of a group's m rows each value gets m·p, rounded
to a whole number next to it so that the numbers add up to m: systematic sampling, which moves no
count by 1 or more, where independent draws would move it by the root of m·p. Which rows of the
group get which value is then decided by chance. Were rows left in the order that earlier columns
gave them, two columns filled from the same group would go up together, and pairs that no clique
holds would come out wrong although every measured marginal is right.

Everything here follows from what was released already; it costs no privacy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dither.synth._graph import GraphModel

__all__ = ["rounded", "rows_of"]

Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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
            found[:, v] = _filled(group, chances.reshape(-1, tree.sizes[v]), rng)
            filled.add(v)
    return found


def _filled(group: Whole, chances: Floats, rng: np.random.Generator) -> Whole:
    """A value for each row, given its group; row g of ``chances`` is that of group g."""
    # In each group in an order of chance.
    order = np.lexsort((rng.random(group.size), group))
    held, sizes = np.unique(group, return_counts=True)
    counts = rounded(_shares(chances[held]) * sizes[:, None], sizes, rng)
    values = np.tile(np.arange(chances.shape[1]), held.size)
    found = np.empty(group.size, dtype=np.int64)
    found[order] = np.repeat(values, counts.ravel())
    return found


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

"""Rows of a graphical model beside given columns, however many different ones there are: exact.

A clique of the junction tree has the distribution of its columns given those that it shares with
its parent. A sweep from the leaves sums out what is not given, for every different combination of
given columns *below* a clique alone, of which there are few; a sweep from the root then draws what
is left of each clique. So rows that are given alike are drawn together, as `_rows` draws them, and
each from the model's distribution of such rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from dither.synth._rows import _filled
from dither.synth.model._graph import GraphModel

__all__ = ["GivenRows"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

AT_ONCE = 2**22
"""Numbers that are held at a time for each clique."""


class GivenRows:
    """A model that rows are drawn from beside columns that are given.

    Parameters
    ----------
    model : GraphModel
    """

    def __init__(self, model: GraphModel) -> None:
        self.tree = model.tree
        self._chances: list[Floats] = []
        for i, clique in enumerate(self.tree.cliques):
            belief = model.beliefs[i]
            shared = self.tree.separator(i)
            axes = tuple(k for k, v in enumerate(clique) if v not in shared)
            under = belief.sum(axis=axes, keepdims=True)
            self._chances.append(np.where(under > 0, belief / np.where(under > 0, under, 1), 0.0))

    def rows(
        self, held: Mapping[int, Integers], n: int, rng: np.random.Generator
    ) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """That many rows of cells, shape (n, attributes), and which of them can be at all.

        Parameters
        ----------
        held : mapping of int to array of int, shape (n,)
            The cells of columns that are given.
        n : int
        rng : numpy.random.Generator
        """
        tree = self.tree
        found = np.zeros((n, len(tree.sizes)), dtype=np.int64)
        good = np.ones(n, dtype=bool)
        if not n:
            return found, good
        for v, cells in held.items():
            found[:, v] = cells
        below: dict[int, list[int]] = {i: [] for i in range(len(tree.cliques))}
        for i in tree.order[1:]:
            below[tree.parents[i]].append(i)
        messages: dict[int, Floats] = {}
        kinds: dict[int, Integers] = {}
        for i in reversed(tree.order):
            kinds[i], first = self._kinds(i, held, found, [kinds[j] for j in below[i]])
            if i != tree.order[0]:
                messages[i] = self._message(i, held, found, first, below[i], messages, kinds)
        filled = set(held)
        for i in tree.order:
            clique = tree.cliques[i]
            free = [v for v in clique if v not in filled]
            if not free:
                good &= self._chances[i][tuple(found[:, v] for v in clique)] > 0
                continue
            # Rows alike in all that this clique's draw rests on are one group.
            given = [v for v in clique if v in filled]
            group, first = _grouped([found[:, v] for v in given] + [kinds[j] for j in below[i]], n)
            size = prod(tree.sizes[v] for v in free)
            at_once = max(1, AT_ONCE // size)
            order = np.argsort(group, kind="stable")
            starts = np.searchsorted(group[order], np.arange(0, len(first) + 1))
            for low in range(0, len(first), at_once):
                high = min(low + at_once, len(first))
                weights = self._weights(
                    i, given, free, found, first[low:high], below[i], messages, kinds, set(held)
                )
                weights = weights.reshape(high - low, size)
                rows = order[starts[low] : starts[high]]
                some = weights.sum(axis=1) > 0
                good[rows] &= some[group[rows] - low]
                beside = [(found[rows, u], tree.sizes[u]) for u in sorted(filled - set(given))[:4]]
                drawn = _filled(group[rows] - low, weights, rng, beside)
                each = np.unravel_index(drawn, [tree.sizes[v] for v in free])
                for v, cells in zip(free, each, strict=True):
                    found[rows, v] = cells
            filled |= set(free)
        return found, good

    def _kinds(
        self, i: int, held: Mapping[int, Integers], found: Integers, below: list[Integers]
    ) -> tuple[Integers, Integers]:
        """Which rows are given alike in a clique and below, and the first row of each kind."""
        mine = [found[:, v] for v in self.tree.cliques[i] if v in held]
        return _grouped([*mine, *below], len(found))

    def _message(
        self,
        i: int,
        held: Mapping[int, Integers],
        found: Integers,
        first: Integers,
        below: list[int],
        messages: dict[int, Floats],
        kinds: dict[int, Integers],
    ) -> Floats:
        """Of each kind of rows the chance of what is given below, by what is shared above."""
        clique, shared = self.tree.cliques[i], self.tree.separator(i)
        given = [v for v in clique if v in held]
        free = [v for v in clique if v not in held]
        size = prod(self.tree.sizes[v] for v in free)
        at_once = max(1, AT_ONCE // size)
        summed = tuple(1 + k for k, v in enumerate(free) if v not in shared)
        parts = []
        for low in range(0, len(first), at_once):
            some = first[low : low + at_once]
            weights = self._weights(i, given, free, found, some, below, messages, kinds, set(held))
            parts.append(weights.sum(axis=summed))
        made = np.concatenate(parts)
        # Only proportions matter; and long chains must not underflow.
        top = made.reshape(len(made), -1).max(axis=1)
        made /= np.where(top > 0, top, 1.0).reshape(-1, *[1] * (made.ndim - 1))
        return made

    def _weights(
        self,
        i: int,
        given: list[int],
        free: list[int],
        found: Integers,
        rows: Integers,
        below: list[int],
        messages: dict[int, Floats],
        kinds: dict[int, Integers],
        held: set[int],
    ) -> Floats:
        """A clique's chances of its free columns beside each of some rows, with all from below."""
        clique, sizes = self.tree.cliques[i], self.tree.sizes
        table = np.transpose(
            self._chances[i], [clique.index(v) for v in given] + [clique.index(v) for v in free]
        )
        weights = (
            table[tuple(found[rows, v] for v in given)]
            if given
            else np.broadcast_to(table, (len(rows), *table.shape))
        )
        weights = weights.copy()
        for j in below:
            # A message is over what is shared and not held; of that some may be filled by now.
            over = [v for v in self.tree.separator(j) if v not in held]
            part = messages[j][kinds[j][rows]]
            known = [v for v in over if v in given]
            for v in known:
                axis = 1 + [u for u in over if u not in known[: known.index(v)]].index(v)
                part = np.take_along_axis(
                    part, found[rows, v].reshape(-1, *[1] * (part.ndim - 1)), axis
                ).squeeze(axis)
            left = [v for v in over if v not in known]
            shape = [len(rows), *(sizes[v] if v in left else 1 for v in free)]
            weights *= part.reshape(shape)
        return weights


def _grouped(columns: list[Integers], n: int) -> tuple[Integers, Integers]:
    """Rows alike in all columns as groups 0, 1, ...; and the first row of each."""
    group = np.zeros(n, dtype=np.int64)
    for column in columns:
        key = group * (int(column.max()) + 1) + column
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        group = group.reshape(-1)
    if not columns:
        return group, np.zeros(1, dtype=np.int64)
    return group, first

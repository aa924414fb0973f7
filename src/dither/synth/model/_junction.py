"""Junction trees: cliques of attributes, joined so that messages between them reach all.

A product of functions, each of few attributes, has marginals that two sweeps of messages over such
a tree give exactly. What that costs is the cells of its cliques, which are known before anything is
computed: attributes are eliminated one by one, each time the one whose neighbours make the fewest
cells. (The least possible cost is NP-hard to find; this order is the one that is commonly near it.)

Source. Lauritzen and Spiegelhalter, "Local computations with probabilities on graphical structures
and their application to expert systems", JRSS B 1988.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

__all__ = ["Clique", "JunctionTree", "cells_beside", "cells_of", "maximal"]

Clique = tuple[int, ...]
"""Attributes by their places, rising."""


def maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Those that no other holds, each once, the largest first.

    Examples
    --------
    >>> maximal([(0,), (0, 2), (1,), (0, 2)])
    ((0, 2), (1,))
    """
    found: list[Clique] = []
    for clique in sorted(set(cliques), key=lambda c: (-len(c), c)):
        if not any(set(clique) <= set(other) for other in found):
            found.append(clique)
    return tuple(found)


def cells_of(sizes: Sequence[int], cliques: Iterable[Clique]) -> int:
    """The cells of the junction tree of some cliques, all together.

    Examples
    --------
    A cycle of four is triangulated: two cliques of three attributes.

    >>> cells_of([2, 3, 4, 5], [(0, 1), (1, 2), (2, 3), (0, 3)])
    64
    """
    cells = _cells_by(tuple(sizes))
    return sum(cells[mask] for mask in _eliminated(cells, _neighbours(cliques)))


def cells_beside(sizes: Sequence[int], cliques: Iterable[Clique]) -> Callable[[Clique], int]:
    """`cells_of` some cliques and one more, for many of which it is to be asked.

    Examples
    --------
    >>> beside = cells_beside([2, 3, 4, 5], [(0, 1), (1, 2), (2, 3)])
    >>> beside((0, 3)), beside((1, 2))
    (64, 38)
    """
    cells, near = _cells_by(tuple(sizes)), _neighbours(cliques)

    def found(clique: Clique) -> int:
        mask = sum(1 << v for v in clique)
        wider = near | {v: near.get(v, 0) | mask for v in clique}
        return sum(cells[one] for one in _eliminated(cells, wider))

    return found


@dataclass(frozen=True)
class JunctionTree:
    """A tree of cliques: those that hold an attribute are connected among themselves.

    Parameters
    ----------
    sizes : tuple of int
        How many values each attribute has.
    cliques : tuple of Clique
    parents : tuple of int
        By clique, its neighbour towards the first one, whose own is -1.
    order : tuple of int
        All cliques, each after its parent.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], cliques: Iterable[Clique]) -> JunctionTree:
        """The tree over all attributes, those that no clique holds among them.

        Examples
        --------
        >>> tree = JunctionTree.of([2, 3, 4], [(0, 1), (1, 2)])
        >>> tree.cliques, tree.parents, tree.separator(1)
        (((0, 1), (1, 2)), (-1, 0), (1,))
        """
        alone = [(v,) for v in range(len(sizes))]
        masks = _eliminated(_cells_by(tuple(sizes)), _neighbours([*cliques, *alone]))
        found = tuple(sorted(_members(mask) for mask in masks))
        held = [set(clique) for clique in found]
        # Of all spanning trees those of the largest separators are junction trees.
        parents, order = [-1] * len(found), [0]
        best = {i: (len(held[i] & held[0]), 0) for i in range(1, len(found))}
        while best:
            new = max(best, key=lambda i: (best[i][0], -i))
            parents[new] = best.pop(new)[1]
            order.append(new)
            for i, (shared, _) in best.items():
                common = len(held[i] & held[new])
                if common > shared:
                    best[i] = (common, new)
        return cls(tuple(sizes), found, tuple(parents), tuple(order))

    @property
    def cells(self) -> int:
        """Of all cliques together."""
        return sum(self.cells_in(clique) for clique in self.cliques)

    def cells_in(self, clique: Clique) -> int:
        """How many combinations of values a clique has."""
        return prod(self.sizes[v] for v in clique)

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """How many values each attribute of a clique has."""
        return tuple(self.sizes[v] for v in clique)

    def separator(self, i: int) -> Clique:
        """What a clique shares with its parent."""
        shared = set(self.cliques[i]) & set(self.cliques[self.parents[i]])
        return tuple(sorted(shared)) if self.parents[i] >= 0 else ()

    def holding(self, clique: Clique) -> int | None:
        """The smallest clique of the tree that holds another; ``None`` where none does."""
        wanted = set(clique)
        found = [i for i, c in enumerate(self.cliques) if wanted <= set(c)]
        return min(found, key=lambda i: self.cells_in(self.cliques[i]), default=None)


class _Cells(dict[int, int]):
    """How many cells the attributes have that are set in a number's bits."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self._sizes = sizes

    def __missing__(self, mask: int) -> int:
        found = self[mask] = prod(self._sizes[v] for v in _members(mask))
        return found


@lru_cache(maxsize=16)
def _cells_by(sizes: tuple[int, ...]) -> _Cells:
    return _Cells(sizes)


def _neighbours(cliques: Iterable[Clique]) -> dict[int, int]:
    """By attribute those that it stands in a clique with, itself among them, as bits."""
    near: dict[int, int] = {}
    for clique in cliques:
        mask = sum(1 << v for v in clique)
        for v in clique:
            near[v] = near.get(v, 0) | mask
    return near


def _eliminated(cells: _Cells, near: dict[int, int]) -> list[int]:
    """Maximal cliques of the triangulated graph, each as bits; ``near`` is used up.

    What a clique leaves, without the attribute that is eliminated, lies in the clique of the next
    of its attributes that is. So a clique lies in an earlier one where it is what one left, and
    nowhere else.
    """
    found: list[int] = []
    lefts: set[int] = set()
    costs = {v: (cells[mask], v) for v, mask in near.items()}
    while costs:
        v = min(costs.values())[1]
        del costs[v]
        mask = near[v]
        if mask not in lefts:
            found.append(mask)
        rest = mask & ~(1 << v)
        lefts.add(rest)
        for u in _members(rest):
            near[u] = wider = (near[u] | rest) & ~(1 << v)
            costs[u] = (cells[wider], u)
    return found


@lru_cache(maxsize=1 << 16)
def _members(mask: int) -> Clique:
    return tuple(v for v in range(mask.bit_length()) if mask >> v & 1)

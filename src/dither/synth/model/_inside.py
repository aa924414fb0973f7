"""Where numbers lie inside their bins, by a private tree of finer ones.

A model knows in which bin a number lies and no more; inside, numbers are spread evenly unless
something else is known. Each column's bins are cut into finer ones by public facts (`cut_finer`),
and a tree over these is counted with noise (`RangeTree`). Least squares over its levels say how
many lie in each run of fine bins, with an exact variance. A bin's numbers are then divided between
its halves as these say, and so on downwards, for as long as a part's count is clear of its noise;
below, they are spread evenly.

*Guarantee.* A level of the tree is the table of fine bins with cells summed by a public map, so
what a `ZCDPBudget` proves of its measurements holds of it: the trees of all columns together are
rho-zCDP. What is made of them costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.query.tables._domain import Attribute, cut_finer
from dither.synth._rows import rounded
from dither.synth._spending import Counts, ZCDPBudget
from dither.synth.model._junction import Clique
from dither.synth.ranges._tree import RangeTree

__all__ = ["INSIDE", "FinerBins", "finer_of", "measured_inside"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

INSIDE = Fraction(1, 10)
"""The part of the budget that goes into trees, where they are asked for."""
MOST_PARTS, MOST_FINER = 64, 1024
"""Into so many a bin is cut at most, and a column altogether."""
CLEAR = 4.0
"""A part is divided where its count is so many deviations above 0."""


@dataclass(frozen=True, eq=False)
class FinerBins:
    """Of one column: finer bins, and what each has of the bin that it lies in.

    Parameters
    ----------
    attribute : Attribute
        With the finer bins' edges.
    first : array of int, shape (bins + 1,)
        Of each bin the first of its finer ones; then how many there are.
    shares : array of float
        By finer bin; those of one bin add up to 1.
    """

    attribute: Attribute
    first: Integers
    shares: Floats

    def placed(self, cells: Integers, rng: np.random.Generator) -> Integers:
        """A finer bin for each of some bins, as many of each as its share; NULL stays beyond."""
        bins = len(self.first) - 1
        found = np.full(len(cells), self.attribute.inner, dtype=np.int64)
        order = rng.permutation(len(cells))
        for cell in np.unique(cells[cells < bins]).tolist():
            own = order[cells[order] == cell]
            parts = np.arange(self.first[cell], self.first[cell + 1])
            wanted = self.shares[parts] * len(own)
            found[own] = np.repeat(parts, rounded(wanted[None, :], np.array([len(own)]), rng)[0])
        return found

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        edges = self.attribute.edges or ()
        return {"edges": [str(e) for e in edges], "shares": self.shares.tolist()}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any], coarse: Attribute) -> FinerBins:
        """What ``to_dict`` wrote, of a column with these bins."""
        edges = tuple(map(Fraction, found["edges"]))
        return cls(_with(coarse, edges), _first(coarse, edges), np.array(found["shares"]))


def _with(coarse: Attribute, edges: tuple[Fraction, ...]) -> Attribute:
    return Attribute(
        coarse.name,
        coarse.kind,
        None,
        edges,
        coarse.bounds,
        None,
        coarse.step,
        coarse.missing,
    )


def _first(coarse: Attribute, edges: tuple[Fraction, ...]) -> Integers:
    at = {edge: i for i, edge in enumerate(edges)}
    return np.array([at[edge] for edge in coarse.edges or ()], dtype=np.int64)


def finer_of(attributes: Sequence[Attribute]) -> dict[int, Attribute]:
    """By place the columns whose bins can be cut, with their finer bins."""
    found = {}
    for place, attribute in enumerate(attributes):
        if attribute.edges is not None:
            parts = max(2, min(MOST_PARTS, MOST_FINER // max(attribute.inner, 1)))
            finer = cut_finer(attribute, parts)
            if finer.inner > attribute.inner:
                found[place] = finer
    return found


def measured_inside(
    counts: Counts,
    rho: Fraction,
    bounds: tuple[int, int],
    coarse: Sequence[Attribute],
    finer: Mapping[int, Attribute],
    places: Mapping[int, int],
) -> dict[int, FinerBins]:
    """Count a tree of each column, and say how its bins' numbers lie inside.

    Parameters
    ----------
    counts : callable
        The oracle of exact tables.
    rho : Fraction
        What all of it costs.
    bounds : (l1, l2_squared)
        By how much neighbours move any one table.
    coarse : sequence of Attribute
        All columns.
    finer : mapping of int to Attribute
        By column, its finer bins.
    places : mapping of int to int
        By column, where the oracle has the finer one.
    """
    spending = ZCDPBudget(_once(counts), rho, *bounds)
    found = {}
    for v, fine in finer.items():
        tree = RangeTree.choose(fine.inner, "gaussian")
        levels, variances = [], []
        for size, share in zip(tree.sizes, tree.shares, strict=True):
            nodes = -(-fine.inner // size)
            map_ = np.arange(fine.size) // size
            # What is NULL is in no node.
            map_[fine.inner :] = nodes
            spending.merge({places[v]: map_})
            measured = spending.measure((places[v],), rho / len(finer) * share)
            level = np.zeros(math.prod(tree.branchings) // size)
            level[:nodes] = measured.values[:nodes]
            levels.append(level)
            variances.append(measured.deviation**2)
        assert fine.edges is not None
        first = _first(coarse[v], fine.edges)
        below = tree.cumulative(levels, variances)
        widths = _widths(fine)
        shares = np.zeros(fine.inner)
        for low, high in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
            _divide(shares, low, high, 1.0, below, widths, tree, variances)
        found[v] = FinerBins(_with(fine, fine.edges), first, shares)
    return found


def _once(counts: Counts) -> Counts:
    """An oracle that counts each table once, however often it is asked for."""
    held: dict[Clique, Integers] = {}

    def found(cliques: Sequence[Clique]) -> dict[Clique, Integers]:
        new = [c for c in cliques if c not in held]
        if new:
            held.update(counts(new))
        return {c: held[c] for c in cliques}

    return found


def _divide(
    shares: Floats,
    low: int,
    high: int,
    weight: float,
    below: Floats,
    widths: Floats,
    tree: RangeTree,
    variances: Sequence[float],
) -> None:
    """Divide a weight over the finer bins ``low`` .. ``high`` - 1."""
    inside = float(below[high] - below[low])
    clear = inside > CLEAR * math.sqrt(float(tree.variance(low, high, variances)))
    if high - low == 1 or not clear:
        shares[low:high] = weight * widths[low:high] / widths[low:high].sum()
        return
    middle = (low + high) // 2
    left, right = (max(float(below[j] - below[i]), 0.0) for i, j in ((low, middle), (middle, high)))
    # Not 0/0: together they are at least what lies inside, which is clear of 0.
    part = left / (left + right)
    _divide(shares, low, middle, weight * part, below, widths, tree, variances)
    _divide(shares, middle, high, weight * (1 - part), below, widths, tree, variances)


def _widths(fine: Attribute) -> Floats:
    """How much of the line each bin holds: of whole numbers and multiples of a step how many."""
    assert fine.edges is not None
    grain = Fraction(1) if fine.kind.value == "integer" else fine.step
    edges = [e if grain is None else Fraction(math.ceil(e / grain)) for e in fine.edges]
    found = np.diff(np.array([float(e) for e in edges]))
    # A bin that holds no multiple of the step still divides a weight that is all its own, so no sum
    # of widths may be 0. Beside others it draws less than one row in 10^12.
    return np.maximum(found, 1e-12 * max(float(found.sum()), 1.0))

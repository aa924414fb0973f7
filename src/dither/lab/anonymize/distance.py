"""How far a class's distribution is from the table's: the earth mover's distance of t-closeness.

What it costs to move mass from one value to another is the user's choice, and the number means
nothing without it:

- *equal*: 1 between any two values. The distance is half of ``sum |q - p|``.
- *ordered*: ``|i - j| / (m - 1)`` between the i-th and the j-th of m values. The distance is
  ``sum_i |Q_i - P_i| / (m - 1)`` over the cumulative shares.
- *hierarchical*: ``level / H`` where the values first meet at a level of a hierarchy of height H.
  This is the metric of a tree with edges of ``1/(2H)``, so that the distance is the sum over edges
  of the mass that must cross them: the mean, over the levels below the top, of the equal distance
  between the generalised distributions.

Source: Li, Li, Venkatasubramanian, *t-closeness* (2007). The mean over levels equals their
recursion, since both are the optimal flow on the tree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dither.lab.anonymize.pairs import Floats, Pairs, pair
from dither.lab.anonymize.tally import Ints

__all__ = ["equal", "hierarchical", "ordered"]


def equal(pairs: Pairs) -> Floats:
    """Total variation; every class's, in [0, 1]."""
    # Half of the sum of |q - p| is the sum over the values where q exceeds p, all of them present.
    excess = np.maximum(pairs.share - pairs.reference[pairs.value], 0.0)
    return pairs.per_class(excess)


def ordered(pairs: Pairs, rank: NDArray[np.integer]) -> Floats:
    """The distance along an order.

    Parameters
    ----------
    pairs : Pairs
    rank : array of int, shape (values,)
        The place of each value. Values that the table lacks take no place.

    Notes
    -----
    Between two values that a class has, its cumulative share ``c`` is constant and the table's
    grows, so ``sum |c - P_i|`` over the gap splits where P passes c, and both parts are read off
    running sums of P: the work is that of the pairs, not of classes times values.
    """
    there = np.flatnonzero(pairs.whole > 0)
    there = there[np.argsort(rank[there], kind="stable")]
    m = len(there)
    if m < 2:
        return np.zeros(len(pairs.sizes))
    place = np.zeros(len(pairs.whole), dtype=np.int64)
    place[there] = np.arange(m)
    cumulative = np.cumsum(pairs.reference[there])
    running = np.concatenate([[0.0], np.cumsum(cumulative)])

    at = place[pairs.value]
    order = np.lexsort((at, pairs.owner))
    owner, at, count = pairs.owner[order], at[order], pairs.count[order]
    total = np.cumsum(count)
    before = np.concatenate([[0], total])[pairs.starts]
    level = (total - before[owner]) / pairs.sizes[owner]
    last = np.append(owner[1:] != owner[:-1], True)
    end = np.where(last, m, np.append(at[1:], m))
    sums = _gap(level, at, end, cumulative, running)
    # Before its first value the class's share is zero and the table's is not.
    first = at[pairs.starts]
    found: Floats = (np.bincount(owner, weights=sums) + running[first]) / (m - 1)
    return found


def _gap(level: Floats, start: Ints, end: Ints, cumulative: Floats, running: Floats) -> Floats:
    """``sum |level - P_i|`` for i from start up to end."""
    cut = np.clip(np.searchsorted(cumulative, level), start, end)
    below = level * (cut - start) - (running[cut] - running[start])
    above = (running[end] - running[cut]) - level * (end - cut)
    found: Floats = below + above
    return found


def hierarchical(pairs: Pairs, maps: Sequence[NDArray[np.integer]]) -> Floats:
    """The distance along a hierarchy.

    Parameters
    ----------
    pairs : Pairs
    maps : sequence of array of int, shape (values,)
        The node of each value at each level; the last level has one node.
    """
    height = len(maps) - 1
    if height < 1:
        return np.zeros(len(pairs.sizes))
    found = np.zeros(len(pairs.sizes))
    for level in maps[:-1]:
        nodes = level[pairs.value]
        size = int(level.max()) + 1
        merged = pair(pairs.owner, pairs.sizes, nodes, size, pairs.count)
        whole = np.bincount(level, weights=pairs.whole, minlength=size).astype(np.int64)
        one = type(pairs)(merged.owner, merged.value, merged.count, pairs.sizes, whole)
        found += equal(one)
    return found / height

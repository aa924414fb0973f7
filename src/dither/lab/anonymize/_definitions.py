"""What the definitions say of every class: diversity, closeness, likeness.

All of it is computed from one table of pairs: a row for each class and sensitive value that it has,
so that no table of classes times values is made. With counts ``r_1 >= r_2 >= ... >= r_m`` of a
class's values, ``n`` its rows, ``q`` a value's share of the class and ``p`` of the table:

- *l-diversity*. Distinct: ``m``; entropy: ``exp(H)`` with ``H = -sum (r_i/n) log (r_i/n)``;
  recursive: ``r_1 / (r_l + ... + r_m)``, which a class of (c,l)-diversity keeps below ``c``.
- *(α,k)-anonymity*: ``r_1 / n``.
- *t-closeness*: the earth mover's distance of the class from the table. What it costs to move mass
  from one value to another is the user's choice, and the number means nothing without it. *Equal*:
  1 between any two values, so half of ``sum |q - p|``. *Ordered*: ``|i - j| / (m - 1)`` between the
  i-th and the j-th of m values, so ``sum_i |Q_i - P_i| / (m - 1)`` over cumulative shares.
  *Hierarchical*: ``level / H`` where the values first meet at a level of a hierarchy of height H:
  the metric of a tree with edges of ``1/(2H)``, so the distance is the mass that must cross each
  edge, summed: the mean, over the levels below the top, of the equal distance between the
  generalised distributions. It equals the source's recursion, since both are the optimal flow on
  the tree.
- *δ-disclosure* bounds ``|log(q/p)|`` for *every* value of the table. A value that the class lacks
  has ``q = 0``, and so no finite δ.
- *β-likeness*. Basic: bounds ``(q - p)/p`` where ``q > p``. Enhanced: bounds it by ``min(β, -log
  p)``; no β mends a class where ``(q - p)/p`` exceeds ``-log p``, and it counts as infinite.

Source. Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam, *l-diversity* (2007); Wong, Li, Fu,
Wang, *(α,k)-anonymity* (2006); Li, Li, Venkatasubramanian, *t-closeness* (2007); Brickell,
Shmatikov, *The cost of privacy* (2008); Cao, Karras, *Publishing microdata with a robust privacy
guarantee* (2012).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither.lab._grouping import Ints, combine, tally

__all__ = [
    "Context",
    "Floats",
    "Pairs",
    "Truths",
    "alpha",
    "beta",
    "closeness",
    "delta",
    "delta_of_present",
    "distinct",
    "effective",
    "enhanced_beta",
    "pair",
    "recursive",
]

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The pairs, ordered by class and then by value.

    Attributes
    ----------
    owner, value, count : array of int64, shape (pairs,)
        Class, value and rows of each pair; every count is at least 1.
    sizes : array of int64, shape (classes,)
        Rows of each class.
    whole : array of int64, shape (values,)
        Rows of each value in the table that classes are held against.
    """

    owner: Ints
    value: Ints
    count: Ints
    sizes: Ints
    whole: Ints

    @property
    def starts(self) -> Ints:
        """The first pair of each class."""
        return np.searchsorted(self.owner, np.arange(len(self.sizes)))

    @property
    def share(self) -> Floats:
        """The value's share of its class, one for each pair."""
        found: Floats = self.count / self.sizes[self.owner]
        return found

    @property
    def reference(self) -> Floats:
        """Each value's share of the whole table."""
        found: Floats = self.whole / max(int(self.whole.sum()), 1)
        return found

    def per_class(self, amounts: Floats) -> Floats:
        """Sums over the pairs of each class."""
        summed = np.bincount(self.owner, weights=amounts, minlength=len(self.sizes))
        return summed.astype(np.float64)

    def largest(self, amounts: Floats) -> Floats:
        """The largest over the pairs of each class."""
        found: Floats = np.maximum.reduceat(amounts, self.starts)
        return found

    def only(self, kept: Truths) -> Pairs:
        """The pairs of some classes, which are then all that there is."""
        there = kept[self.owner]
        number = np.cumsum(kept) - 1
        value, count = self.value[there], self.count[there]
        whole = np.bincount(value, weights=count, minlength=len(self.whole)).astype(np.int64)
        return Pairs(number[self.owner[there]], value, count, self.sizes[kept], whole)


def pair(
    classes: NDArray[np.integer],
    sizes: Ints,
    values: NDArray[np.integer],
    count: int,
    weight: Ints | None = None,
) -> Pairs:
    """Pairs from the class and the value of each row.

    ``sizes`` are the rows of each class, ``count`` the number of values, and ``weight`` says how
    many rows each row stands for.
    """
    key, size = combine([(classes, len(sizes)), (values, count)], len(classes))
    first, counted = tally(key, size, weight)
    owner, value = classes[first].astype(np.int64), values[first].astype(np.int64)
    whole = np.bincount(value, weights=counted, minlength=count).astype(np.int64)
    return Pairs(owner, value, counted, sizes, whole)


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What a sensitive column has besides counts.

    Attributes
    ----------
    rank : array of int or None
        The place of each value in the column's order, where it has one.
    maps : tuple of array of int or None
        The node of each value at each level of the column's hierarchy, where there is one.
    """

    rank: NDArray[np.int64] | None = None
    maps: tuple[NDArray[np.int32], ...] | None = None


def distinct(pairs: Pairs) -> Floats:
    """How many values each class has."""
    return np.bincount(pairs.owner, minlength=len(pairs.sizes)).astype(np.float64)


def effective(pairs: Pairs) -> Floats:
    """``exp(H)``: how many equally common values would be as mixed."""
    share = pairs.share
    return np.exp(-pairs.per_class(share * np.log(share)))


def recursive(pairs: Pairs, values: int) -> Floats:
    """``r_1 / (r_l + ... + r_m)``; infinite where a class has fewer than l values."""
    order = np.lexsort((-pairs.count, pairs.owner))
    counts = pairs.count[order].astype(np.float64)
    place = np.arange(len(counts)) - pairs.starts[pairs.owner]
    tail = np.bincount(
        pairs.owner, weights=np.where(place >= values - 1, counts, 0.0), minlength=len(pairs.sizes)
    )
    with np.errstate(divide="ignore"):
        found: Floats = counts[pairs.starts] / tail
    return found


def alpha(pairs: Pairs) -> Floats:
    """The share of the commonest value."""
    return pairs.largest(pairs.share)


def closeness(pairs: Pairs, ground: str, context: Context) -> Floats:
    """The earth mover's distance of every class, by the distance chosen."""
    if ground == "ordered" and context.rank is not None:
        return _ordered(pairs, context.rank)
    if ground == "hierarchical" and context.maps is not None:
        return _hierarchical(pairs, context.maps)
    assert ground == "equal", "a context is made for the distance chosen"
    return _equal(pairs)


def _equal(pairs: Pairs) -> Floats:
    """Total variation; every class's, in [0, 1]."""
    # Half of the sum of |q - p| is the sum over the values where q exceeds p, all of them present.
    excess = np.maximum(pairs.share - pairs.reference[pairs.value], 0.0)
    return pairs.per_class(excess)


def _ordered(pairs: Pairs, rank: NDArray[np.integer]) -> Floats:
    """The distance along an order; values that the table lacks take no place in it.

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


def _hierarchical(pairs: Pairs, maps: Sequence[NDArray[np.integer]]) -> Floats:
    """The distance along a hierarchy: by level the node of each value; the last has one node."""
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
        found += _equal(one)
    return found / height


def delta_of_present(pairs: Pairs) -> Floats:
    """The largest ``|log(q/p)|`` over the values that a class has."""
    ratio = pairs.share / pairs.reference[pairs.value]
    return pairs.largest(np.abs(np.log(ratio)))


def delta(pairs: Pairs) -> Floats:
    """The largest ``|log(q/p)|`` over the values of the table; infinite where one is absent."""
    has = np.bincount(pairs.owner, minlength=len(pairs.sizes))
    needed = int((pairs.whole > 0).sum())
    return np.where(has < needed, np.inf, delta_of_present(pairs))


def beta(pairs: Pairs) -> Floats:
    """The largest gain ``(q - p)/p`` of a value in each class, at least 0."""
    return np.maximum(pairs.largest(_gain(pairs)), 0.0)


def enhanced_beta(pairs: Pairs) -> Floats:
    """The least β for which the class is enhanced β-like; infinite where none is."""
    gain = _gain(pairs)
    limit = -np.log(pairs.reference[pairs.value])
    # A gain of exactly zero meets the limit of a value that everybody has.
    broken = pairs.largest(np.where(gain > np.maximum(limit, 0.0) + 1e-12, 1.0, 0.0)) > 0
    return np.where(broken, np.inf, beta(pairs))


def _gain(pairs: Pairs) -> Floats:
    p = pairs.reference[pairs.value]
    found: Floats = (pairs.share - p) / p
    return found

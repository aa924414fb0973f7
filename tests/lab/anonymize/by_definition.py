"""The definitions as the papers write them: dictionaries, fractions, loops over everything."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

Row = Mapping[str, Hashable]


def classes(rows: Sequence[Row], quasi: Sequence[str]) -> dict[tuple[Hashable, ...], list[Row]]:
    """Rows by their quasi-identifiers."""
    found: dict[tuple[Hashable, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in quasi)].append(row)
    return dict(found)


def shares(rows: Sequence[Row], name: str) -> dict[Hashable, Fraction]:
    """Each value's share."""
    return {v: Fraction(n, len(rows)) for v, n in Counter(row[name] for row in rows).items()}


def entropy_l(rows: Sequence[Row], name: str) -> float:
    """exp of the entropy."""
    return math.exp(-sum(float(p) * math.log(p) for p in shares(rows, name).values()))


def recursive_c(rows: Sequence[Row], name: str, values: int) -> float:
    """r_1 / (r_l + ... + r_m)."""
    r = sorted(Counter(row[name] for row in rows).values(), reverse=True)
    tail = sum(r[values - 1 :])
    return r[0] / tail if tail else math.inf


def transport(q: Mapping[Hashable, Fraction], p: Mapping[Hashable, Fraction], cost) -> float:
    """The earth mover's distance, as the linear programme that defines it."""
    places = list(p)
    m = len(places)
    if m == 1:
        return 0.0
    costs = [cost(a, b) for a in places for b in places]
    left = np.zeros((2 * m, m * m))
    for i, j in itertools.product(range(m), range(m)):
        left[i, i * m + j] = left[m + j, i * m + j] = 1
    right = [float(q.get(a, 0)) for a in places] + [float(p[b]) for b in places]
    # One of the equations follows from the others.
    return float(linprog(costs, A_eq=left[:-1], b_eq=right[:-1], method="highs").fun)


def ordered_cost(values: Sequence[Hashable]) -> Callable[[Hashable, Hashable], float]:
    """|i - j| / (m - 1)."""
    place = {v: i for i, v in enumerate(values)}
    return lambda a, b: abs(place[a] - place[b]) / max(len(values) - 1, 1)


def tree_cost(above: Mapping[Hashable, Sequence[str]]) -> Callable[[Hashable, Hashable], float]:
    """The level where two values first meet, over the height."""

    def cost(a: Hashable, b: Hashable) -> float:
        if a == b:
            return 0.0
        height = len(above[a])
        meet = next(i for i in range(height) if above[a][i] == above[b][i])
        return (meet + 1) / height

    return cost


def delta(q: Mapping[Hashable, Fraction], p: Mapping[Hashable, Fraction]) -> float:
    """max |log q/p| over every value of the table."""
    return max(math.inf if not q.get(v) else abs(math.log(q[v] / p[v])) for v in p)


def beta(q: Mapping[Hashable, Fraction], p: Mapping[Hashable, Fraction]) -> float:
    """max (q - p)/p, at least 0."""
    return max(0.0, *(float((q.get(v, 0) - p[v]) / p[v]) for v in p))


def enhanced(q: Mapping[Hashable, Fraction], p: Mapping[Hashable, Fraction], b: float) -> bool:
    """Whether (q - p)/p <= min(b, -log p) for every value."""
    return all(float((q.get(v, 0) - p[v]) / p[v]) <= min(b, -math.log(p[v])) + 1e-12 for v in p)


Meets = Callable[[Sequence[Row], Sequence[Row]], bool]
"""From a class and all that is released to whether the class may be released."""


def best(
    rows: Sequence[Row],
    above: Mapping[str, Mapping[Hashable, Sequence[str]]],
    k: int,
    allowed: int,
    meets: Sequence[Meets] = (),
) -> tuple[float, set[tuple[int, ...]]]:
    """The least loss over every node of the lattice, and the nodes that reach it."""
    quasi = list(above)
    heights = [len(next(iter(above[name].values()))) for name in quasi]
    found: dict[tuple[int, ...], float] = {}
    for node in itertools.product(*(range(h + 1) for h in heights)):

        def at(row: Row, node: tuple[int, ...] = node) -> dict[str, Hashable]:
            new = dict(row)
            for name, level in zip(quasi, node, strict=True):
                if level:
                    new[name] = above[name][row[name]][level - 1]
            return new

        kept = [c for c in classes([at(r) for r in rows], quasi).values() if len(c) >= k]
        while True:
            released = [row for c in kept for row in c]
            fine = [c for c in kept if all(meet(c, released) for meet in meets)]
            if len(fine) == len(kept):
                break
            kept = fine
        released = [row for c in kept for row in c]
        if not released or len(rows) - len(released) > allowed:
            continue
        cost = len(rows) - len(released) + sum(_cost(r, above, node) for r in released)
        found[node] = float(Fraction(cost) / len(rows))
    if not found:
        return math.inf, set()
    least = min(found.values())
    return least, {node for node, loss in found.items() if loss <= least + 1e-12}


def _cost(row: Row, above, node: tuple[int, ...]) -> Fraction:
    total = Fraction(0)
    for (name, tree), level in zip(above.items(), node, strict=True):
        if not level:
            continue
        # A generalised value stands for every leaf with the same label.
        leaves = sum(path[level - 1] == row[name] for path in tree.values())
        total += Fraction(leaves - 1, max(len(tree) - 1, 1))
    return total / len(above)

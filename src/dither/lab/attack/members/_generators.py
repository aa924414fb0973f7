"""Synthetic rows as people make them without noise: they look private, and promise nothing.

`pairs_kept` fits the best tree of pairs (Chow and Liu, 1968): columns are joined by the tree whose
pairs share most information, and rows are drawn along it from the shares that were counted. No row
is copied, and every figure of it is exact. That is what a private generator of marginals does,
without what makes it private.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from dither._checks import whole
from dither.lab._frames import encode, read
from dither.lab._simulation import SimulatedWorld

__all__ = ["drawn_again", "pairs_kept"]

Ints = npt.NDArray[np.int64]
Generator = Callable[[object], pl.DataFrame]


def drawn_again(n: int | None = None, *, seed: int | np.random.Generator = 0) -> Generator:
    """A generator that draws rows of the table, with replacement: each is a copy of somebody.

    Examples
    --------
    >>> drawn_again()(pl.DataFrame({"a": [1, 1, 1]})).to_series().to_list()
    [1, 1, 1]
    """
    rng, many = SimulatedWorld.of(seed), None if n is None else whole("n", n, 1)

    def generate(rows: object) -> pl.DataFrame:
        table = read(rows, "rows")
        return table[rng.integers(0, table.height, table.height if many is None else many)]

    return generate


def pairs_kept(n: int | None = None, *, seed: int | np.random.Generator = 0) -> Generator:
    """A generator that keeps each column and the pairs of a tree, without noise.

    Parameters
    ----------
    n : int, optional
        Rows to draw; by default as many as the table has, which tells how many those are.
    seed : int or numpy.random.Generator
        Of the rows that are drawn.

    Returns
    -------
    callable
        From a table to synthetic rows.

    Examples
    --------
    >>> table = pl.DataFrame({"a": [0, 0, 1, 1], "b": ["x", "x", "y", "y"]})
    >>> made = pairs_kept()(table)
    >>> ((made["a"] == 0) == (made["b"] == "x")).all()
    True
    """
    rng, many = SimulatedWorld.of(seed), None if n is None else whole("n", n, 1)

    def generate(rows: object) -> pl.DataFrame:
        table = read(rows, "rows")
        codes, values = zip(*(_in_order(table[name]) for name in table.columns), strict=True)
        sizes = [len(v) for v in values]
        parents = _tree(codes, sizes)
        drawn = table.height if many is None else many
        made: dict[int, Ints] = {}
        for column, parent in parents:
            given = made[parent] if parent >= 0 else np.zeros(drawn, dtype=np.int64)
            of = codes[parent] if parent >= 0 else np.zeros(table.height, dtype=np.int64)
            groups = sizes[parent] if parent >= 0 else 1
            made[column] = _along(of, codes[column], groups, sizes[column], given, rng)
        return pl.DataFrame(
            {name: values[i].gather(made[i]) for i, name in enumerate(table.columns)}
        )

    return generate


def _in_order(column: pl.Series) -> tuple[Ints, pl.Series]:
    """Codes in the order of values, so that the same seed draws the same rows in any process."""
    coded = encode(column)
    order = np.arange(coded.size)
    if not column.dtype.is_nested():
        order = coded.values.arg_sort().to_numpy()
    rank = np.empty(coded.size, dtype=np.int64)
    rank[order] = np.arange(coded.size)
    return rank[coded.codes], coded.values.gather(order)


def _tree(codes: Sequence[Ints], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Columns in an order, each with the earlier one that it is drawn from; -1 for the first."""
    near = np.full(len(codes), -np.inf)
    best = np.full(len(codes), -1)
    found: list[tuple[int, int]] = []
    left = set(range(len(codes)))
    here = 0
    while True:
        left.discard(here)
        found.append((here, int(best[here])))
        if not left:
            return found
        for other in left:
            shared = _information(codes[here], codes[other], sizes[here], sizes[other])
            if shared > near[other]:
                near[other], best[other] = shared, here
        here = max(left, key=lambda i: float(near[i]))


def _information(a: Ints, b: Ints, m: int, n: int) -> float:
    """Mutual information, in nats."""
    joint = np.bincount(a * n + b, minlength=m * n).reshape(m, n) / len(a)
    alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / alone[there])).sum())


def _along(
    of: Ints, codes: Ints, groups: int, size: int, given: Ints, rng: np.random.Generator
) -> Ints:
    """A value for each row, by the counted shares of the group that it is in."""
    counts = np.bincount(of * size + codes, minlength=groups * size).reshape(groups, size)
    ends = np.cumsum(counts, axis=1)
    drawn = rng.integers(0, ends[given, -1])
    return np.asarray((drawn[:, None] >= ends[given]).sum(axis=1), dtype=np.int64)

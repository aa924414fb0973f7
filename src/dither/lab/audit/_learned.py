"""Scores that are learned of many coordinates, and of the neighbourhood of one value.

*Many coordinates.* Each gives three numbers about its median: itself over its spread, cut off; its
sign, which is what Laplace noise leaves of a small shift; and its distance, which tells a spread.
Logistic regression weighs them, once for each coordinate, and once alike for all: where every
coordinate leaks a little, few samples know each weight, and many know the common ones.

*One value.* A fault may give nearly the same value, once in a thousand calls. Of each dataset the
window is sought in which outcomes crowd; the score is how much nearer an outcome is to the middle
of the second's than to that of the first's.

All are fitted to one part of the samples and then are fixed functions of an outcome.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dither.lab.audit._outcomes import Feature, Floats, Outcomes

__all__ = ["gram", "weighed_coordinates", "windows"]

Mask = npt.NDArray[np.bool_]

_BLOCK = 200_000
_ITEMS = 8_000_000
_FEATURES = 400
_RIDGE = 20.0
_STEPS = 4
_SMALLEST, _LOOKED_AT = 5, 8
_SIMPLE = 200
"""A column of fewer values has atoms, and needs no windows."""


def weighed_coordinates(
    outcomes: Outcomes, second: Mask, fit: Mask
) -> Iterator[tuple[str, Floats]]:
    """Two learned scores of all coordinates, where there are several: names and values."""
    table = outcomes.wide
    width = table.shape[1]
    if width < 2:
        return
    kinds = 3 if 3 * width <= _FEATURES else 1
    rows = np.flatnonzero(fit)
    most = max(1, _ITEMS // (kinds * width) // 2)
    rows = np.concatenate([rows[~second[rows]][:most], rows[second[rows]][:most]])
    label = second[rows].astype(np.float64)
    known = np.where(np.isfinite(table[rows]), table[rows], np.nan)
    alive = np.flatnonzero(np.isfinite(known).any(axis=0))
    if not alive.size or not 0 < label.sum() < label.size:
        return
    low, middle, high = np.nanquantile(known[:, alive], [0.1, 0.5, 0.9], axis=0)
    spread = np.maximum((high - low) / 2, 1e-12)

    def features(part: Floats) -> Floats:
        """Rows, kinds, coordinates."""
        with np.errstate(all="ignore"):
            off = np.clip((part[:, alive] - middle) / spread, -5.0, 5.0)
        off = np.where(np.isnan(off), 0.0, off)
        return np.stack([off, np.sign(off), np.abs(off)][:kinds], axis=1)

    x = features(table[rows])
    each = _logistic(x.reshape(len(rows), -1), label).reshape(-1)
    alike = _logistic(x.sum(axis=2), label)
    del x
    found = np.empty((2, len(table)))
    step = max(1, _ITEMS // (4 * kinds * width))
    for i in range(0, len(table), step):
        part = features(table[i : i + step])
        flat = part.reshape(len(part), -1)
        found[0, i : i + step] = np.einsum("ij,j->i", flat, each[1:])
        found[1, i : i + step] = np.einsum("ij,j->i", part.sum(axis=2), alike[1:])
    yield f"a learned score of {width} coordinates", found[0]
    yield f"a learned score of {width} coordinates, alike in all", found[1]


def _logistic(x: Floats, label: Floats) -> Floats:
    """Ridge logistic regression by Newton steps, the intercept first; one where little is seen."""
    x = np.column_stack([np.ones(len(x)), x])
    weights = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        weighed = np.einsum("ij,j->i", x, weights)
        chance = 1.0 / (1.0 + np.exp(-np.clip(weighed, -30, 30)))
        curve = gram(x, chance * (1 - chance)) + _RIDGE * np.eye(x.shape[1])
        slope = np.einsum("ij,i->j", x, label - chance)
        change = np.linalg.solve(curve, slope - _RIDGE * weights)
        weights += change
        # Where no outcome is told apart by more, a further step changes the order of few.
        if np.abs(np.einsum("ij,j->i", x, change)).max() < 1.5:
            break
    return weights


def gram(x: Floats, weight: Floats) -> Floats:
    """XᵀWX by small blocks: large ones are shared among threads, which wait on a busy machine."""
    rows = max(1, _BLOCK // x.shape[1] ** 2)
    out = np.zeros((x.shape[1], x.shape[1]))
    for i in range(0, len(x), rows):
        part = x[i : i + rows]
        out += (part * weight[i : i + rows, None]).T @ part
    return out


def windows(columns: tuple[Feature, ...], second: Mask, fit: Mask) -> Iterator[tuple[str, Floats]]:
    """Of the first columns, how near each is to values around which one dataset is likelier."""
    for column in [c for c in columns if not c.binary and c.statements is None][:_LOOKED_AT]:
        kept = fit & np.isfinite(column.values)
        order = np.argsort(column.values[kept], kind="stable")
        values, label = column.values[kept][order], second[kept][order]
        if (
            min(label.sum(), (~label).sum()) < 30 * _SMALLEST
            or np.count_nonzero(np.diff(values)) < _SIMPLE
        ):
            continue
        middles = [_cluster(values[~label], values[label]), _cluster(values[label], values[~label])]
        with np.errstate(all="ignore"):
            off = [np.log(np.abs(column.values - middle)) for middle in middles]
            near = off[0] - off[1]  # of what is infinitely far from both, not a number
        yield f"how near {column.name} is to one of two values", near


def _cluster(values: Floats, others: Floats) -> float:
    """The middle of the window in which sorted values crowd most, and the other dataset's do not.

    Labels alone would not do: among so many windows some of few outcomes have one label by luck.
    Against the rate in a window of three times the outcomes, luck gives no such deviance.
    """
    most, middle, size = -np.inf, 0.0, _SMALLEST
    # Larger windows, and those near an end, see how the density itself falls.
    while size <= max(_SMALLEST, values.size // 100):
        first = np.arange(10 * size, values.size - 11 * size, max(1, size // 3))
        ends = [values[first], values[first + size]]
        around = [values[first - size], values[first + 2 * size]]
        with np.errstate(all="ignore"):
            share = (ends[1] - ends[0]) / (around[1] - around[0])
            gain = _crowding(values, ends, around, share) - _crowding(others, ends, around, share)
        i = int(np.where(np.isfinite(gain), gain, -np.inf).argmax())
        if gain[i] > most:
            most, middle = float(gain[i]), float(values[first[i] + size // 2])
        size *= 2
    return middle


def _crowding(values: Floats, ends: list[Floats], around: list[Floats], share: Floats) -> Floats:
    """Poisson's deviance of how many lie between two ends, where there are too many."""
    count, all_around = (
        np.searchsorted(values, high, side="right") - np.searchsorted(values, low, side="left")
        for low, high in (ends, around)
    )
    expected = np.maximum(all_around * share, 1e-9)
    found = np.maximum(count, expected)
    return np.asarray(found * np.log(found / expected) - (found - expected))

"""Scores that separate two samples: every event of an audit is a score beyond a threshold.

A score is a column as it is, the smoothed log-likelihood ratio of an atom, or what a small
classifier says: logistic regression by Newton steps, and boosting of one-column histograms;
`dither.lab.audit._learned` has those of all coordinates, and of windows. All are fitted to one part
of the samples and then are fixed functions of an outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither.lab.audit._learned import gram, weighed_coordinates, windows
from dither.lab.audit._outcomes import Atoms, Feature, Floats, Outcomes

__all__ = ["EventScore", "every_score"]

Mask = npt.NDArray[np.bool_]

_ROWS = 30_000
_LINEAR = 12_000
_COLUMNS = 64
_BINS = 32
_ROUNDS = 40
_ITEMS = 1_000_000


@dataclass(frozen=True, slots=True)
class EventScore:
    """A number of each outcome, NaN where it has none, and what it is of.

    ``kind`` is as an `Event`'s. ``statements`` are a `Feature`'s.
    """

    name: str
    kind: str
    values: Floats
    atoms: Atoms | None = None
    statements: tuple[str, str] | None = None


def every_score(outcomes: Outcomes, second: Mask, fit: Mask) -> Iterator[EventScore]:
    """All scores of the outcomes of both datasets, fitted to the part ``fit``.

    ``second`` says which outcomes are of the second dataset; it is read in that part alone.
    """
    for column in outcomes.columns:
        kind = "binary" if column.binary else "column"
        yield EventScore(column.name, kind, column.values, statements=column.statements)
    for atoms in outcomes.atoms:
        yield EventScore(atoms.name, "atoms", _ratio(atoms, second, fit), atoms)
    for name, values in windows(outcomes.columns, second, fit):
        yield EventScore(name, "window", values)
    for name, values in weighed_coordinates(outcomes, second, fit):
        yield EventScore(name, "classifier", values)
    columns = outcomes.columns[:_COLUMNS]
    if not columns:
        return
    rows = np.flatnonzero(fit)
    # Rows are in random order within each dataset, so that any prefix of each is a sample.
    most = min(_ROWS, _ITEMS // len(columns)) // 2
    rows = np.concatenate([rows[~second[rows]][:most], rows[second[rows]][:most]])
    label = second[rows].astype(np.float64)
    yield _boosted(columns, rows, label)
    if len(columns) > 1:
        found = _logistic(columns, rows, label)
        if found is not None:
            yield found


def _ratio(atoms: Atoms, second: Mask, fit: Mask) -> Floats:
    """log((n1 + 1/2)/(n0 + 1/2)) of each atom's counts; 0 for those not seen."""
    size = int(atoms.codes.max()) + 1
    here = np.bincount(atoms.codes[fit & ~second], minlength=size)
    there = np.bincount(atoms.codes[fit & second], minlength=size)
    ratio = np.log((there + 0.5) / (here + 0.5))
    return np.asarray(ratio[atoms.codes])


def _boosted(
    columns: tuple[Feature, ...], rows: npt.NDArray[np.int64], label: Floats
) -> EventScore:
    """Σ of functions of one column each, constant on bins, every one fitted to what is left."""
    edges = [_edges(c.values[rows]) for c in columns]
    width = _BINS + 2
    binned = np.empty((len(columns), rows.size), dtype=np.int64)
    for i, column in enumerate(columns):
        binned[i] = _bin(column.values[rows], edges[i]) + i * width
    flat, total = binned.ravel(), len(columns) * width
    table = np.zeros((len(columns), width))
    score = np.zeros(rows.size)
    for _ in range(_ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-score))
        slope = np.bincount(flat, np.tile(label - chance, len(columns)), total)
        curve = np.bincount(flat, np.tile(chance * (1.0 - chance), len(columns)), total)
        # A ridge, so that bins of few rows are not believed at once.
        step = (slope / (curve + 5.0)).reshape(len(columns), width)
        gain = (slope.reshape(step.shape) * step).sum(axis=1)
        best = int(gain.argmax())
        table[best] += 0.5 * step[best]
        score += 0.5 * step[best][binned[best] - best * width]
    values = np.zeros(columns[0].values.size)
    for i in np.flatnonzero(np.any(table != 0, axis=1)).tolist():
        values += table[i][_bin(columns[i].values, edges[i])]
    return EventScore(_counted("a learned score (sum of steps)", columns), "classifier", values)


def _edges(values: Floats) -> Floats:
    known = values[~np.isnan(values)]
    if not known.size:
        return np.zeros(0)
    distinct = np.unique(known)
    if distinct.size <= _BINS:
        return distinct[1:]
    cuts = np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1], method="nearest")
    return np.unique(cuts)


def _bin(values: Floats, edges: Floats) -> npt.NDArray[np.int64]:
    """The bin of each value, the first of them for NaN."""
    found = np.searchsorted(edges, values, side="right") + 1
    return np.where(np.isnan(values), 0, found).astype(np.int64)


def _logistic(
    columns: tuple[Feature, ...], rows: npt.NDArray[np.int64], label: Floats
) -> EventScore | None:
    """Ridge logistic regression on columns, each scaled by its spread and cut at five of it."""
    parts = [rows[label == side][: _LINEAR // 2] for side in (0, 1)]
    few, goal = np.concatenate(parts), np.repeat([0.0, 1.0], [p.size for p in parts])
    scaled: list[tuple[Feature, float, float]] = []
    for column in columns:
        known = column.values[few]
        known = known[np.isfinite(known)]
        if known.size:
            low, middle, high = np.quantile(known, [0.1, 0.5, 0.9])
            scaled.append((column, float(middle), max(float(high / 2 - low / 2), 1e-12)))
    if not scaled:
        return None
    x = np.column_stack([np.ones(few.size), *(_scaled(c.values[few], m, s) for c, m, s in scaled)])
    weights = np.zeros(x.shape[1])
    for _ in range(6):
        weighed = np.einsum("ij,j->i", x, weights)
        chance = 1.0 / (1.0 + np.exp(-np.clip(weighed, -30, 30)))
        curve = gram(x, chance * (1 - chance)) + 5.0 * np.eye(x.shape[1])
        slope = np.einsum("ij,i->j", x, goal - chance)
        weights += np.linalg.solve(curve, slope - 5.0 * weights)
    values = np.full(columns[0].values.size, weights[0])
    for weight, (column, middle, spread) in zip(weights[1:].tolist(), scaled, strict=True):
        values += weight * _scaled(column.values, middle, spread)
    return EventScore(_counted("a learned score (linear)", columns), "classifier", values)


def _scaled(values: Floats, middle: float, spread: float) -> Floats:
    with np.errstate(all="ignore"):
        found = np.clip((values - middle) / spread, -5, 5)
    return np.where(np.isfinite(values), found, 0.0)


def _counted(what: str, columns: tuple[Feature, ...]) -> str:
    return f"{what} of {len(columns)} feature{'' if len(columns) == 1 else 's'}"

"""Tables without negative counts that still agree: the nearest ones to noisy residuals.

Of all residuals those are found that lie nearest to the noisy ones, each distance in units of its
noise, among those of which no table of the workload has a cell below 0. Tables made of residuals
agree wherever they overlap, so the result is locally consistent, with no model of all columns at
once: what is held grows with the tables that were asked for, and not with what joins them.

The number of rows is kept, then single columns are found, and then the rest given those. Found all
at once, thousands of empty cells, each of whose noise is cut off from below, would together pull
up the number of rows, which is known far better than any of them says.

Dual. With multipliers lambda_W >= 0 on the cells of the tables the least is at ::

    alpha_A = r_A + sigma_A²·H_A Σ_W (sums of lambda_W over W less A) / Π n_j,

and the dual's slope in lambda_W is the table itself, so that negative cells push. Ascent is
accelerated, and begins afresh where it overshoots (Beck and Teboulle; O'Donoghue and Candes). A
step is at most 1 over the largest eigenvalue of the map from multipliers to tables, which is
sigma_A²·Σ_W 1/Π n_j for some residual A, since on A's part of a table the map is a number.

Stopping. What is still below 0 in the end is put right exactly: all tables are moved by the same
small part towards even ones of the same number of rows, and so still agree.

Source. Mullins, Fuentes, Xiao, Kifer, Musco and Sheldon, "Efficient and private marginal
reconstruction with local non-negativity", NeurIPS 2024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from dither.synth.hierarchy._sparse import Adder
from dither.synth.marginals._planner import real, subsets
from dither.synth.marginals._residuals import centred, maximal
from dither.synth.model._junction import Clique

__all__ = ["Nonnegative", "nearest"]

Floats = npt.NDArray[np.float64]
Shape = tuple[int, ...]
Groups = dict[Shape, Floats]

_ROUNDS = 2_000
_NEAR = 0.01
"""Of a cell's deviation: how far below 0 a cell may be before it is put right."""


class Nonnegative:
    """Tables of counts of at least 0 that agree where they overlap.

    Parameters
    ----------
    tables : dict of Clique to array
        The largest of the workload.
    rows : float
        What each sums to.
    rounds : int
        Steps that it took.
    moved : float
        The part by which tables were moved towards even ones in the end.
    told : set of Clique, optional
        Pairs of columns that say more of one another than noise would; all where left out.
    """

    def __init__(
        self,
        tables: dict[Clique, Floats],
        rows: float,
        rounds: int,
        moved: float,
        told: set[Clique] | None = None,
    ) -> None:
        self.tables, self.rows, self.rounds, self.moved = tables, rows, rounds, moved
        self._told = told
        self._holders: dict[Clique, Clique] = {}
        for table in tables:
            for a in subsets(table):
                self._holders.setdefault(a, table)

    def __contains__(self, clique: Clique) -> bool:
        return clique in self._holders

    def table(self, clique: Clique) -> Floats:
        """The table of some columns that a table of the workload holds."""
        whole = self._holders[clique]
        axes = tuple(p for p, i in enumerate(whole) if i not in clique)
        found: Floats = self.tables[whole].sum(axis=axes)
        return found

    @property
    def pairs(self) -> list[Clique]:
        """All pairs of columns that some table holds."""
        return [c for c in self._holders if len(c) == 2]

    @property
    def told(self) -> list[Clique]:
        """Those of them that say more than noise."""
        return [c for c in self.pairs if self._told is None or c in self._told]


class _Layout:
    """Tables and residuals of one shape each held as one array."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[Clique]) -> None:
        self.sizes = sizes
        self.tables: dict[Shape, list[Clique]] = {}
        self.residuals: dict[Shape, list[Clique]] = {}
        places: dict[Clique, int] = {}
        for table in tables:
            self.tables.setdefault(self.shape(table), []).append(table)
            for a in subsets(table):
                if a not in places:
                    same = self.residuals.setdefault(self.shape(a), [])
                    places[a] = len(same)
                    same.append(a)
        # Of each group of tables and each choice of axes: which residuals, and who adds to whom.
        self.links: list[tuple[Shape, tuple[int, ...], Shape, npt.NDArray[np.int64], Adder]]
        self.links = []
        for shape, group in self.tables.items():
            for r in range(len(shape) + 1):
                for axes in combinations(range(len(shape)), r):
                    inner = tuple(shape[p] for p in axes)
                    at = np.array([places[tuple(t[p] for p in axes)] for t in group])
                    self.links.append((shape, axes, inner, at, Adder(at)))

    def shape(self, clique: Clique) -> Shape:
        return tuple(self.sizes[i] for i in clique)

    def spread(self, residuals: Groups) -> Groups:
        """Tables of residuals."""
        found = {s: np.zeros((len(group), *s)) for s, group in self.tables.items()}
        for shape, axes, inner, at, _ in self.links:
            part = residuals[inner][at]
            kept = [n if p in axes else 1 for p, n in enumerate(shape)]
            found[shape] += part.reshape(len(at), *kept) / (prod(shape) / prod(inner))
        return found

    def gathered(self, tables: Groups) -> Groups:
        """The transposed map: sums of tables, over what each cell of a residual is spread to."""
        found = {s: np.zeros((len(group), *s)) for s, group in self.residuals.items()}
        for shape, axes, inner, at, adds in self.links:
            others = tuple(p + 1 for p in range(len(shape)) if p not in axes)
            sums = tables[shape].sum(axis=others) / (prod(shape) / prod(inner))
            adds.add(found[inner], sums.reshape(len(at), *inner))
        for values in found.values():
            for axis in range(1, values.ndim):
                values -= values.mean(axis=axis, keepdims=True)
        return found

    def longest(self, variances: Groups) -> float:
        """The largest eigenvalue of spread · variances · gathered."""
        each = {s: np.zeros(len(group)) for s, group in self.residuals.items()}
        for shape, _, inner, at, _ in self.links:
            np.add.at(each[inner], at, prod(inner) / prod(shape))
        return max(float((each[s] * variances[s].ravel()).max()) for s in each)


def nearest(
    residuals: Mapping[Clique, npt.NDArray[np.generic]],
    variances: Mapping[Clique, float],
    sizes: Sequence[int],
    tables: Sequence[Clique],
    *,
    rounds: int = _ROUNDS,
) -> Nonnegative:
    """The non-negative tables nearest to noisy residuals.

    Parameters
    ----------
    residuals : mapping of Clique to array
        As differences, of all subsets of the tables.
    variances : mapping of Clique to float
        Of the noise of a cell of each residual; 0 where it is exact.
    sizes : sequence of int
    tables : sequence of Clique
    rounds : int
        Steps at most.
    """
    wanted = maximal(real(t, sizes) for t in tables)
    layout = _Layout(sizes, wanted)
    start = {
        s: np.stack([centred(residuals[a]) for a in group]) for s, group in layout.residuals.items()
    }
    spans: Groups = {
        s: np.array([variances[a] for a in group]).reshape(-1, *[1] * len(s))
        for s, group in layout.residuals.items()
    }
    start[()][0] = max(0.0, float(start[()][0]))
    singles = [s for s in start if len(s) == 1]
    # Nothing is fixed that more columns could not meet: single columns go with any number of rows,
    # and tables of more with any single columns, as those of independent ones do.
    first = _Layout(sizes, [a for s in singles for a in layout.residuals[s]] or [()])
    found, steps = _ascent(first, {s: start[s] for s in ((), *singles)}, _free(spans, 1), rounds)
    found, more = _ascent(layout, start | found, _free(spans, 2), rounds)
    steps += more
    total = max(0.0, float(found[()][0]))
    found[()][0] = total
    cells = layout.spread(found)
    moved = 0.0
    for shape, values in cells.items():
        lowest = -float(values.min(initial=0.0))
        even = total / prod(shape)
        # A part m towards even tables leaves -(1 - m)·lowest + m·even, which is 0 at this m.
        moved = max(moved, 1.0 if lowest and not even else lowest / (lowest + even or 1.0))
    made: dict[Clique, Floats] = {}
    for shape, group in layout.tables.items():
        # One part for all tables, or they would no longer agree.
        values = cells[shape] * (1 - moved) + moved * total / prod(shape)
        made |= dict(zip(group, np.maximum(values, 0.0), strict=True))
    whole = {table: _with_axes(made, table, sizes, wanted) for table in maximal(tables)}
    made_of = Nonnegative(whole, total, steps, moved)
    told = {
        pair
        for pair in made_of.pairs
        if pair in residuals and _stands_out(made_of, residuals[pair], variances[pair], pair)
    }
    return Nonnegative(whole, total, steps, moved, told)


def _stands_out(
    found: Nonnegative, residual: npt.NDArray[np.generic], variance: float, pair: Clique
) -> bool:
    """Whether a pair is further from independent columns than its noise alone would take it.

    Three deviations of the noise's squared length beyond its mean.
    """
    free = residual.size
    first, second = found.table(pair[:1]), found.table(pair[1:])
    apart = np.outer(first - first.mean(), second - second.mean()) / (found.rows or 1.0)
    square = float(((centred(residual) - apart) ** 2).sum())
    # Noise alone would be a chi-square of so many degrees: its mean, and three of its deviations.
    return square > variance * (free + 3 * math.sqrt(2 * free))


def _free(spans: Groups, order: int) -> Groups:
    """Variances of which those of residuals of fewer columns are 0: they stay as they are."""
    return {s: v if len(s) >= order else np.zeros_like(v) for s, v in spans.items()}


def _with_axes(
    made: Mapping[Clique, Floats], table: Clique, sizes: Sequence[int], wanted: Sequence[Clique]
) -> Floats:
    """A table with its axes of one value, from one that holds it."""
    kept = real(table, sizes)
    holder = kept if kept in made else next(w for w in wanted if set(kept) <= set(w))
    axes = tuple(p for p, i in enumerate(holder) if i not in kept)
    found: Floats = made[holder].sum(axis=axes).reshape([sizes[i] for i in table])
    return found


def _ascent(layout: _Layout, start: Groups, spans: Groups, rounds: int) -> tuple[Groups, int]:
    step = 1 / (layout.longest(spans) or 1.0)
    # A cell's variance: what is small beside it is nothing.
    deviations = {}
    each: Groups = {s: spans[s] * prod(1 - 1 / n for n in s) for s in layout.residuals}
    for shape, group in layout.tables.items():
        total = np.zeros(len(group))
        for own, _, inner, at, _ in layout.links:
            if own == shape:
                total += each[inner].ravel()[at] * (prod(inner) / prod(shape)) ** 2
        deviations[shape] = np.sqrt(total).reshape(-1, *[1] * len(shape))
    push = {s: np.zeros((len(group), *s)) for s, group in layout.tables.items()}
    ahead = {s: v.copy() for s, v in push.items()}
    momentum = 1.0
    found = {s: start[s] for s in layout.residuals}
    for count in range(1, rounds + 1):
        pulled = layout.gathered(ahead)
        found = {s: start[s] + spans[s] * pulled[s] for s in pulled}
        cells = layout.spread(found)
        if all((v >= -_NEAR * deviations[s]).all() for s, v in cells.items()) and _slack(
            ahead, cells, deviations
        ):
            return found, count
        then = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        turned = 0.0
        for shape, values in cells.items():
            new = np.maximum(0.0, ahead[shape] - step * values)
            turned += float(np.vdot(ahead[shape] - new, new - push[shape]))
            ahead[shape] = np.maximum(0.0, new + (momentum - 1) / then * (new - push[shape]))
            push[shape] = new
        momentum = 1.0 if turned > 0 else float(then)
    return found, rounds


def _slack(push: Groups, cells: Groups, deviations: Groups) -> bool:
    """Whether cells that are pushed are at 0, on the whole: then no others are nearer."""
    wide = sum(float(np.vdot(push[s], np.maximum(cells[s], 0.0))) for s in push)
    scale = sum(float((push[s] * deviations[s]).sum()) for s in push)
    return wide <= _NEAR * scale or scale == 0

"""The distribution of a run's measurements, over the values that the policy has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.synth._rows import rounded, rows_of
from dither.synth.model._conditional import GivenRows
from dither.synth.model._graph import GraphModel, NoisyMarginal
from dither.synth.model._junction import Clique
from dither.synth.model._plans import Measurements, as_merged, total_of

__all__ = ["FittedModel"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TOLERANCE = 0.05
"""The gap at which the last fit stops, in halves of the measured cells."""

STEPS = 300
"""Steps of the last fit, at most; what more of them change is far below the noise."""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A graphical model over cells, some of which stand for several values.

    Parameters
    ----------
    sizes : tuple of int
        Values of each attribute.
    graph : GraphModel
        Over merged cells.
    found : Measurements
    public : tuple
        The number of rows where it is public, tables that are, and whether nothing else counts.
    """

    sizes: tuple[int, ...]
    graph: GraphModel
    found: Measurements
    public: tuple[float | None, tuple[NoisyMarginal, ...], bool] = (None, (), False)

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        found: Measurements,
        *,
        total: float | None = None,
        known: Sequence[NoisyMarginal] = (),
        forbidden: Mapping[Clique, npt.NDArray[np.bool_]] | None = None,
        uniform: bool = False,
    ) -> FittedModel:
        """Fit what was measured; ``uniform`` takes no notice of anything but the total."""
        if uniform:
            # Nor of which values are rare.
            found = Measurements(found.measured, method=found.method)
        merged = found.merged
        cells = tuple(int(merged[v].max()) + 1 if v in merged else n for v, n in enumerate(sizes))
        rows = total if total is not None else total_of(found.measured)[0]
        parts = [] if uniform else [as_merged(m, found, cells) for m in found.measured]
        parts += known
        public = total, tuple(known), uniform
        graph = GraphModel(cells, [p.clique for p in parts], max(rows, 1.0), forbidden)
        if parts:
            graph.fit(parts, most=STEPS, tolerance=TOLERANCE)
        graph.raked(known)
        return cls(tuple(sizes), graph, found, public)

    def refitted(self, found: Measurements) -> FittedModel:
        """The model of the same tables measured again, fitted from the start.

        Going on from this one's fit would take longer: a cell that has next to nothing there, and a
        count here, comes back slowly.
        """
        total, known, uniform = self.public
        forbidden = self.graph.forbidden
        return FittedModel.of(
            self.sizes, found, total=total, known=known, forbidden=forbidden, uniform=uniform
        )

    @property
    def total(self) -> float:
        """Rows."""
        return self.graph.total

    def marginal(self, clique: Clique) -> Floats:
        """The table of some attributes over their values, summing to ``total``."""
        found = self.graph.marginal(clique)
        for axis, v in enumerate(clique):
            if v in self.found.merged:
                shape = [1] * len(clique)
                shape[axis] = -1
                spread = np.take(found, self.found.merged[v], axis=axis)
                found = spread * self.found.shares[v].reshape(shape)
        return found

    def rows(self, n: int, rng: np.random.Generator) -> Integers:
        """That many rows, shape (n, attributes)."""
        return self.apart(rows_of(self.graph, n, rng), rng)

    def rows_beside(self, held: Mapping[int, Integers], rng: np.random.Generator) -> Integers:
        """A row beside each of some rows of which some attributes are given.

        Rows that are given alike are filled together, from the distribution of such rows.

        Raises
        ------
        ArgumentError
            Where no row can be as one of them is.
        """
        merged = self.found.merged
        cells = {v: merged[v][at] if v in merged else at for v, at in held.items()}
        n = len(next(iter(held.values())))
        found, good = self._given.rows(cells, n, rng)
        if not good.all():
            raise ArgumentError("given: a row that the model's public rules forbid")
        found = self.apart(found, rng)
        for v, given in held.items():
            found[:, v] = given
        return found

    @cached_property
    def _given(self) -> GivenRows:
        return GivenRows(self.graph)

    def apart(self, found: Integers, rng: np.random.Generator) -> Integers:
        """Values in place of cells that stand for several."""
        for v, places in self.found.merged.items():
            shares = self.found.shares[v]
            column = found[:, v].copy()
            for cell in range(int(places.max()) + 1):
                values = np.flatnonzero(places == cell)
                at = np.flatnonzero(column == cell)
                if len(values) == 1:
                    found[at, v] = values[0]
                    continue
                chances = shares[values] / shares[values].sum() * len(at)
                each = rounded(chances[None, :], np.array([len(at)]), rng)[0]
                found[rng.permutation(at), v] = np.repeat(values, each)
        return found

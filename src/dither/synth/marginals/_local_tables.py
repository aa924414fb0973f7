"""Non-negative tables, and rows, of a release of marginals: for columns too many for a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._format import Printable, number_text, wrapped
from dither.errors import ArgumentError
from dither.query.tables._domain import CellDomain
from dither.synth._frames import Floats, column_values, laid_out
from dither.synth._values import values_of
from dither.synth.marginals._nonnegative import Nonnegative
from dither.synth.marginals._pair_rows import rows_near
from dither.synth.model._result import SimulatedRows

if TYPE_CHECKING:
    import polars as pl

Integers = npt.NDArray[np.int64]

__all__ = ["LocalTables", "SimulatedTable"]

_LARGEST = 10**8


class LocalTables(Printable):
    """Tables of counts of at least 0 that agree with one another.

    Made by `ReleasedMarginals.nonnegative`, at no cost: what was released is only read again. They
    are nearer to the truth than the noisy ones where many cells are empty, and no longer unbiased.

    Parameters
    ----------
    domain : CellDomain
    found : Nonnegative
    """

    def __init__(self, domain: CellDomain, found: Nonnegative) -> None:
        self.domain, self._found = domain, found

    @property
    def rows(self) -> float:
        """What every table sums to."""
        return self._found.rows

    def estimate(self, columns: Sequence[str]) -> Floats:
        """The counts of a table; as of `ReleasedMarginals.estimate`."""
        clique = self.domain.clique(columns)
        if clique not in self._found:
            raise ArgumentError(f"columns: {', '.join(columns)} were not asked for together")
        return self._found.table(clique)

    def frame(self, columns: Sequence[str]) -> pl.DataFrame:
        """A table as a Polars frame: its columns, and ``count``."""
        clique = self.domain.clique(columns)
        return laid_out(self.domain, clique, {"count": self.estimate(columns)})

    def sample(self, n: int | None = None, *, seed: int | None = None) -> SimulatedTable:
        """Rows whose pairs of columns come near to these tables.

        Parameters
        ----------
        n : int, optional
            How many; as many as the tables sum to where left out.
        seed : int, optional
            The same one gives the same rows.

        Returns
        -------
        SimulatedTable
            With how near each pair came.

        Notes
        -----
        Single columns have their counts, to the next whole number. Pairs that were asked for, and
        of which the answers say more than noise would, are as near as is measured. Nothing is said
        of other pairs, nor of three columns.
        """
        number = round(self.rows) if n is None else check.whole("n", n, 0, _LARGEST)
        return SimulatedTable.near(self.domain, self._found, number, seed)

    def summary(self) -> str:
        """How many tables there are, and what was done to them."""
        found = self._found
        text = (
            f"{len(found.tables):,} tables of counts of at least 0, which agree and sum to "
            f"{number_text(found.rows, 6)} rows; moved by {number_text(100 * found.moved, 2)} % "
            "towards even ones to have nothing below 0. They are not unbiased."
        )
        return "\n".join(wrapped(text))


class SimulatedTable(Printable):
    """Rows, and how near their pairs are to the tables that they were made of.

    Parameters
    ----------
    domain : CellDomain
    cells : array of int, shape (n, columns)
    far : dict of pair to float
        Of the pairs that say more than noise would.
    pairs : int
        How many were asked for.
    seed : int
        Decides where values lie inside their cells.
    """

    def __init__(
        self,
        domain: CellDomain,
        cells: Integers,
        far: dict[tuple[int, int], float],
        pairs: int,
        seed: int,
    ) -> None:
        self.domain, self.cells, self._far, self._pairs = domain, cells, far, pairs
        self._seed = seed

    @classmethod
    def near(
        cls, domain: CellDomain, tables: Nonnegative, n: int, seed: int | None
    ) -> SimulatedTable:
        """So many rows near some tables; the same seed gives the same rows."""
        rng = SimulatedRows.of(seed)
        rows, far = rows_near(tables, domain.sizes, n, rng)
        return cls(domain, rows, far, len(tables.pairs), int(rng.integers(2**63)))

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A Polars frame in the policy's own types, as `SyntheticModel.sample` gives.

        Numbers are spread evenly inside their bins, on the policy's step where it has one, and
        dates inside their periods. What is missing is null.
        """
        import polars as pl

        rng = SimulatedRows.of(self._seed)
        each = enumerate(self.domain.attributes)
        return pl.DataFrame([values_of(a, self.cells[:, v], rng) for v, a in each])

    @property
    def cell_frame(self) -> pl.DataFrame:
        """A Polars frame of the cells as `LocalTables.frame` names them: bins as text."""
        import polars as pl

        each = enumerate(self.domain.attributes)
        return pl.DataFrame([column_values(a).gather(self.cells[:, v]) for v, a in each])

    @property
    def distances(self) -> pl.DataFrame:
        """A Polars frame: ``first``, ``second`` and ``distance``, the total variation of a pair."""
        import polars as pl

        names = self.domain.names
        return pl.DataFrame(
            {
                "first": [names[a] for a, _ in self._far],
                "second": [names[b] for _, b in self._far],
                "distance": list(self._far.values()),
            },
            schema={"first": pl.String, "second": pl.String, "distance": pl.Float64},
        )

    def summary(self) -> str:
        """How many rows, and how near their pairs came."""
        far = list(self._far.values())
        if far:
            near = (
                f"{len(far):,} of {self._pairs:,} pairs say more than noise, and are within a "
                f"total variation of {number_text(float(np.mean(far)), 2)} of the tables on "
                f"average, {number_text(max(far), 2)} at most"
            )
        else:
            near = "no pair of columns says more than noise: columns are independent"
        text = f"{len(self.cells):,} rows; {near}. Nothing is said of three columns together."
        return "\n".join(wrapped(text))

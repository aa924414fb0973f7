"""What a hierarchy releases: counts that add up, and unbiased estimates with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._display import table as shown_table
from dither._format import Printable, cost_text, count_text, interval, level, sentence, wrapped
from dither.errors import ArgumentError, nearest
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.query.tables._domain import CellDomain
from dither.session._certificate import Certificate
from dither.session._request import AnsweredRequest
from dither.synth.hierarchy._hierarchy import HierarchyPlan, LevelNoise, MeasuredLevels
from dither.synth.hierarchy._spine import Spine
from dither.synth.marginals._marginals import unpacked

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

    from dither.privacy import Loss

__all__ = ["HierarchyCounts"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SHOWN = 8


class HierarchyCounts(Printable):
    """Counts of every level, as they were released.

    Of each place and cell there are a ``count`` and an ``estimate``. Estimates are the best
    unbiased ones of all that was measured, add up, and may be below 0 or broken; their intervals
    hold the truth at the stated confidence, over the noise. Counts are whole numbers of at least 0
    near them that add up at every level. They are not unbiased, and what is said of each, from
    ``count_lower`` to ``count_upper``, is the estimate's interval cut to whole numbers of at least
    0, and stretched to hold the count.

    ``plan`` says how each level was counted. Made by `HierarchyQuestion.release`; everything that
    it answers follows from what was released, and costs nothing more.
    """

    def __init__(
        self,
        spine: Spine,
        cells: CellDomain,
        known: Sequence[Integers | None],
        released: AnsweredRequest,
        loss: Loss,
    ) -> None:
        self._spine, self._domain = spine, cells
        self._content, self.replayed = released.content, released.replayed
        self.loss = loss
        size = cells.cells_in(tuple(range(len(cells.sizes))))
        noises = tuple(_read(stored) for stored in self._content["levels"])
        self.plan = HierarchyPlan(spine, size, noises, tuple(known), loss)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels, the widest first."""
        return self._spine.levels

    @property
    def places(self) -> tuple[tuple[Any, ...], ...]:
        """The places of each level."""
        return self._spine.places

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that each place is counted by."""
        return self._domain.names

    @property
    def certificate(self) -> Certificate:
        """What the release promises, and where the ledger has it."""
        return Certificate(self._content["certificate"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the counts should know."""
        return tuple(self._content["notes"])

    @cached_property
    def _counts(self) -> list[Integers]:
        stored = unpacked(self._content["counts"], (self._spine.sizes[-1], self.plan.cells))
        # As they are stored, small types might not hold their sums.
        return self._spine.sums(stored.astype(np.int64))

    @cached_property
    def _estimates(self) -> list[Floats]:
        c = self.plan.cells
        sizes = self._spine.sizes
        cells = [unpacked(x, (n, c)) for x, n in zip(self._content["cells"], sizes, strict=True)]
        totals = [
            None if x is None else unpacked(x, (n,))
            for x, n in zip(self._content["totals"], sizes, strict=True)
        ]
        return self.plan.estimates(MeasuredLevels(cells, totals))[1]

    def frame(
        self, level: str, by: Sequence[str] | None = None, confidence: float = 0.95
    ) -> pl.DataFrame:
        """The counts of a level as a Polars frame: a row for each place and cell.

        Parameters
        ----------
        level : str
        by : sequence of str, optional
            Some of the columns that were counted by, the others added up; all where left out, and
            how many each place has with ``[]``.
        confidence : float
            Of each interval by itself.

        Returns
        -------
        polars.DataFrame
            The place and those that it lies in, the columns, ``count``, ``count_lower``,
            ``count_upper``, ``estimate``, ``lower``, ``upper``. Of the two intervals only the
            second is of something unbiased.

        Raises
        ------
        ArgumentError
            There is no such level or column.
        """
        import polars as pl

        at, inside = self._level(level), check.confidence(confidence)
        clique = tuple(range(len(self.by))) if by is None else self._domain.clique(by, "by")
        count, estimate = (
            self._summed(values[at], clique) for values in (self._counts, self._estimates)
        )
        of = self.plan.cells // max(1, count.shape[1])
        width = self.plan.half_widths(at, inside, of)[:, None]
        lower, upper = estimate - width, estimate + width
        # The truth is whole and at least 0. Of an exact count the width is 0, and its estimate is
        # made of sums over places and cells. An addition is off by at most 2^-53 of all rows, so
        # the margin bears 2^13 in a row that all go one way, and far more that do not.
        margin = 1e-6 + 2.0**-40 * np.abs(estimate).sum()
        first = np.maximum(np.ceil(lower - margin), 0).astype(np.int64)
        last = np.maximum(np.floor(upper + margin), 0).astype(np.int64)
        places, cells = count.shape
        columns: dict[str, Any] = {}
        for depth, own in enumerate(self._spine.ancestors(at)):
            values = pl.Series(list(self._spine.places[depth]))
            columns[self.levels[depth]] = values.gather(np.repeat(own, cells))
        shape = self._domain.shape(clique)
        for place, v in enumerate(clique):
            attribute = self._domain.attributes[v]
            known = attribute.cells if attribute.values is not None else attribute.labels
            held = [None if c is None else k for c, k in zip(attribute.cells, known, strict=True)]
            index = np.unravel_index(np.arange(cells), shape)[place]
            columns[attribute.name] = pl.Series(held).gather(np.tile(index, places))
        numbers = {
            "count": count,
            "count_lower": np.minimum(first, count),
            "count_upper": np.maximum(last, count),
            "estimate": estimate,
            "lower": lower,
            "upper": upper,
        }
        return pl.DataFrame(columns | {name: values.ravel() for name, values in numbers.items()})

    def _level(self, name: str) -> int:
        if name not in self.levels:
            raise ArgumentError(f"level: no level {name!r}" + nearest(str(name), self.levels))
        return self.levels.index(name)

    def _summed(self, values: npt.NDArray[Any], clique: tuple[int, ...]) -> npt.NDArray[Any]:
        """Cells added up to those of some columns, shape (places, cells)."""
        shaped = values.reshape(len(values), *self._domain.sizes)
        others = tuple(1 + v for v in range(len(self.by)) if v not in clique)
        return np.asarray(shaped.sum(axis=others).reshape(len(values), -1))

    def summary(self) -> str:
        """A few lines for people: the levels, the first places, the cost, what is not protected."""
        cells = count_text(prod(self._domain.sizes), "cell")
        by = f" by {', '.join(self.by)}, {cells}" if self.by else ""
        lines = wrapped(f"{self._spine.describe()}{by}")
        rows = []
        for at, name in enumerate(self.levels):
            width = float(self.plan.half_widths(at, 0.95).max())
            total = float(self.plan.half_widths(at, 0.95, self.plan.cells).max())
            counted = int(self._counts[at].sum())
            rows.append(
                [name, f"{self._spine.sizes[at]:,}", f"{counted:,}", _wide(total), _wide(width)]
            )
        heads = ["level", "places", "counted", "± a place", "± a cell"]
        lines += shown_table(heads, rows, left=1)
        frame = self.frame(self.levels[0], by=[])
        for row in frame.head(_SHOWN).iter_rows(named=True):
            shown = interval(row["estimate"], row["lower"], row["upper"])
            says = f"estimate {shown} at {level(0.95)}"
            if self.plan.known[0] is not None:
                says = "public"
            name = row[self.levels[0]]
            lines += wrapped(f"{self.levels[0]} {name}: {row['count']:,}; {says}", "  ", first="")
        if len(frame) > _SHOWN:
            lines.append(f"... and {len(frame) - _SHOWN:,} more")
        charge = self.loss.charge
        cost = cost_text(charge.epsilon, charge.delta)
        entry = self._content["certificate"]["ledger"]["entry"]
        lines.append(f"Cost: {cost}. Ledger entry {entry}.")
        for note in self.notes:
            lines += wrapped(sentence(f"note: {note}"), "  ", first="")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the first level that has places to compare, and how wide the levels' intervals are.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.tables._hierarchy import draw_hierarchy

        return draw_hierarchy(self, path)


def _wide(width: float) -> str:
    return f"{width:,.3g}" if width < 1000 else f"{width:,.0f}"


def _read(stored: Mapping[str, Any]) -> LevelNoise:
    """A level's noise from plain data."""
    made = DiscreteGaussian if stored["family"] == "gaussian" else DiscreteLaplace
    cells, total = (
        None if stored[name] is None else made(Fraction(stored[name]))
        for name in ("cells", "total")
    )
    assert cells is not None
    return LevelNoise(stored["name"], Fraction(stored["share"]), cells, total)

"""What an anonymisation gives back: a release in a secret order, measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dither._format import Printable, count_text
from dither.lab._frames import Coded, as_given, in_rows, secret_order
from dither.lab._grouping import Classes, Ints
from dither.lab.anonymize._demands import PreparedTable, SensitiveColumn, unprotected
from dither.lab.anonymize._measures import Copied, Measures, from_classes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Anonymized", "Covers", "released"]

Covers = Mapping[str, Mapping[str | None, tuple[Any, ...]]]
"""By column and label, the values that the label stands for."""


@dataclass(frozen=True, slots=True, eq=False)
class Anonymized(Copied, Printable):
    """A release, and what is known of it.

    Attributes
    ----------
    frame : frame of the kind that was given
        What may be released: the rows kept, with their quasi-identifiers generalised, in an order
        drawn by the operating system's randomness. A pandas index is not kept.
    quasi, sensitive : tuple of str
    k : int
        What was asked for; ``measures.k`` is what was reached.
    required : tuple of str
        What else was asked of every class.
    method : str
        ``"lattice"`` or ``"mondrian"``.
    levels, heights : mapping of str to int
        The level of each quasi-identifier, and its coarsest. Empty for Mondrian.
    suppressed : int
        Rows left out.
    rows : array of int64
        Of each row of ``frame``, which row of the data it was. Not for release: it undoes the
        secret order.
    classes : array of int64
        The class of each row of ``frame``.
    measures : Measures
        Of ``frame``.
    loss : float
        In [0, 1], also known as NCP: how much of its domain a cell could be on average, where a
        cell left out counts 1. For the lattice (leaves under a label - 1) / (leaves - 1), of the
        hierarchy's table or, by a rule, of the values at hand; for Mondrian the width of the box
        over that of the data.
    precision : float or None
        1 - the mean of level/height.
    complete : bool
        False where the search was stopped: the release meets what was asked, and a better one may
        exist.
    tried, nodes : int
        Generalisations tried, and how many there are.
    covers : mapping of str to mapping of str to tuple
        By generalised column, the data's values under each label. Not for release.
    """

    frame: Any = field(repr=False)
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    k: int
    required: tuple[str, ...]
    method: str
    levels: Mapping[str, int]
    heights: Mapping[str, int]
    suppressed: int
    rows: Ints = field(repr=False)
    measures: Measures = field(repr=False)
    loss: float
    precision: float | None
    complete: bool
    tried: int
    nodes: int
    meaning: Callable[[], Covers] = field(repr=False, compare=False)

    @property
    def classes(self) -> Ints:
        """The class of each row of ``frame``."""
        return self.measures.class_of

    @property
    def covers(self) -> Covers:
        """By generalised column, the data's values under each label: what labels stand for.

        With it `dt.attack.linkage` reads labels whose texts do not say it. It tells which
        values the data have, so it is not part of the release.
        """
        return self.meaning()

    @property
    def untouched(self) -> tuple[str, ...]:
        """The other columns of ``frame``, released as they are: names and numbers of people too."""
        columns = getattr(self.frame, "column_names", None) or self.frame.columns
        return tuple(
            str(name) for name in columns if str(name) not in {*self.quasi, *self.sensitive}
        )

    @property
    def unprotected(self) -> str:
        """What this release does not protect, in one line."""
        return self.measures.unprotected

    def summary(self) -> str:
        """What was done, what it cost, and what it does not protect."""
        total = len(self.rows) + self.suppressed
        asked = ", ".join((f"{self.k}-anonymity", *self.required))
        lines = [f"{asked} by {self._how()}"]
        if self.levels:
            lines += [
                f"  {name}: level {level} of {self.heights[name]}"
                for name, level in self.levels.items()
            ]
        lines.append(
            f"left out {self.suppressed:,} of {count_text(total, 'row')}; loss {self.loss:.4f}"
        )
        if self.precision is not None:
            lines[-1] += f", precision {self.precision:.4f}"
        if self.untouched:
            lines.append(f"released as they are: {', '.join(self.untouched)}")
        if not self.complete:
            lines.append("stopped early: what was asked is met, and a better release may exist")
        return "\n".join([*lines, self.measures.summary()])

    def _how(self) -> str:
        if self.method == "mondrian":
            return "strict multidimensional partitioning"
        return f"full-domain generalisation, {self.tried:,} of {self.nodes:,} nodes tried"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw how far each column was generalised, how large classes are, and what remains.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._anonymize import draw_anonymized

        return draw_anonymized(self, path)


def released(
    prepared: PreparedTable,
    columns: Mapping[str, pl.Series | Coded],
    class_of: Ints,
    *,
    method: str,
    loss: float,
    complete: bool,
    tried: int,
    meaning: Callable[[], Covers],
    levels: Mapping[str, int] = MappingProxyType({}),
    heights: Mapping[str, int] = MappingProxyType({}),
    precision: float | None = None,
    nodes: int = 0,
) -> Anonymized:
    """Put generalised columns into the table, deal its rows in a secret order, and measure.

    ``columns`` are the quasi-identifiers; ``class_of`` is the class of each row, -1 where it is
    left out. Every class has a row.
    """
    kept = np.flatnonzero(class_of >= 0)
    # In the order of the data row i would be person i.
    rows = kept[secret_order(len(kept))]
    classes = class_of[rows]
    sizes = np.bincount(classes)
    first = np.empty(len(sizes), dtype=np.int64)
    first[classes] = np.arange(len(rows))
    required = [r for _, r in prepared.demand.requirements]
    suppressed = prepared.table.height - len(rows)
    measures = from_classes(
        prepared.quasi,
        Classes(first, sizes, classes),
        [SensitiveColumn(c.name, c.codes[rows], c.size, c.context) for c in prepared.columns],
        prepared.distances,
        suppressed=suppressed,
        blind=unprotected(required, diverse=False) if required else None,
    )
    table = prepared.table
    dealt = [in_rows(name, columns.get(name, table[name]), rows) for name in table.columns]
    return Anonymized(
        frame=as_given(pl.DataFrame(dealt), prepared.given),
        quasi=tuple(prepared.quasi),
        sensitive=tuple(c.name for c in prepared.columns),
        k=prepared.demand.k,
        required=tuple(dict.fromkeys(map(str, required))),
        method=method,
        levels=MappingProxyType(dict(levels)),
        heights=MappingProxyType(dict(heights)),
        suppressed=suppressed,
        rows=rows,
        measures=measures,
        loss=loss,
        precision=precision,
        complete=complete,
        tried=tried,
        nodes=nodes,
        meaning=meaning,
    )

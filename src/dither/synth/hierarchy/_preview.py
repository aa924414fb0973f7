"""How wide a hierarchy's intervals will be, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dither._display import table as shown_table
from dither._format import count_text, number_text, wrapped
from dither._format import level as level_text
from dither._notebook import Shown

if TYPE_CHECKING:
    import polars as pl

__all__ = ["HierarchyPreview", "LevelPreview"]


@dataclass(frozen=True, slots=True)
class LevelPreview:
    """Half-widths of one level: of the place where they are largest.

    Parameters
    ----------
    name : str
    places : int
    cell, total : float
        Of one cell, and of all cells of a place together.
    cell_alone, total_alone : float
        What they would be by the level's own noisy cells, without the other levels.
    """

    name: str
    places: int
    cell: float
    total: float
    cell_alone: float
    total_alone: float


@dataclass(frozen=True)
class HierarchyPreview(Shown):
    """How wide the intervals will be.

    Parameters
    ----------
    levels : tuple of LevelPreview
    cells : int
        In how many cells each place is counted.
    confidence : float
    cost : str
    """

    levels: tuple[LevelPreview, ...]
    cells: int
    confidence: float
    cost: str

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: a row for each level, half-widths of a cell and of a place."""
        import polars as pl

        names = LevelPreview.__slots__
        rows = [[getattr(level, name) for name in names] for level in self.levels]
        return pl.DataFrame(rows, schema=["level", *names[1:]], orient="row")

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return str(self)


def _lines(preview: HierarchyPreview) -> list[str]:
    """The table of half-widths, and what it is of."""
    heads = ["level", "places", "a cell", "a place", "a cell alone", "a place alone"]
    rows = [
        [
            level.name,
            f"{level.places:,}",
            *(
                f"± {number_text(w, 3)}"
                for w in (level.cell, level.total, level.cell_alone, level.total_alone)
            ),
        ]
        for level in preview.levels
    ]
    words = (
        f"intervals of the unbiased estimates at {level_text(preview.confidence)}, about the "
        f"noise; {count_text(preview.cells, 'cell')} in each place. Alone: from the level's own "
        "cells"
    )
    return [f"at {preview.cost}", *shown_table(heads, rows, left=1), *wrapped(words)]

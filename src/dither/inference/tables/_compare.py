"""Questions about a table side by side, by what each would reach and cost: free of charge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dither._display import table
from dither._format import Printable, cost_text, display_text, level, number_text, percent, wrapped
from dither.errors import ArgumentError
from dither.inference.engine._tabulated import Tabulated
from dither.inference.tables._described import DescriptionQuestion
from dither.inference.tables._question import InferencePreview, InferenceQuestion
from dither.numeric import float_up
from dither.query.tables._question import CellQuestion

if TYPE_CHECKING:
    import polars as pl

__all__ = ["QuestionComparison", "compared"]


@dataclass(frozen=True, eq=False)
class QuestionComparison(Tabulated, Printable):
    """What several questions would reach with so many people.

    Parameters
    ----------
    previews : mapping from names to InferencePreview
        In the order in which they were given, each of one size.
    """

    previews: Mapping[str, InferencePreview]

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: way, reaches, noise, enough, epsilon, delta."""
        import polars as pl

        return pl.DataFrame(
            [
                (n, p.widths[0], p.shares[0], p.enough[0], float_up(p.epsilon), float_up(p.delta))
                for n, p in self.previews.items()
            ],
            schema={
                "way": pl.String,
                "reaches": pl.Float64,
                "noise": pl.Float64,
                "enough": pl.Boolean,
                "epsilon": pl.Float64,
                "delta": pl.Float64,
            },
            orient="row",
        )

    def summary(self) -> str:
        """A line for each way."""
        first = next(iter(self.previews.values()))
        all_enough = all(p.enough[0] for p in self.previews.values())
        rows = [
            [
                display_text(name),
                p.reaches,
                number_text(p.widths[0], 3),
                "" if p.shares[0] != p.shares[0] else percent(p.shares[0], 0),
                cost_text(p.epsilon, p.delta),
                *([] if all_enough else ["" if p.enough[0] else "too few"]),
            ]
            for name, p in self.previews.items()
        ]
        heads = ["", "what", "reaches", "noise's share", "cost", *([] if all_enough else [""])]
        lines = table(heads, rows, left=2)
        lines += wrapped(
            f"{first.sizes[0]:,} people; intervals at {level(first.confidence)}, sampling and "
            "noise; values are taken to be spread evenly over their bounds"
        )
        return "\n".join(lines)


def compared(ways: Any, people: int, confidence: float) -> QuestionComparison:
    """The previews of some questions."""
    if not isinstance(ways, Mapping) or not ways:
        raise ArgumentError("ways must be a mapping from names to questions, with at least one")
    for name, way in ways.items():
        described = isinstance(way, DescriptionQuestion)
        if isinstance(name, str) and isinstance(way, CellQuestion) and not described:
            raise ArgumentError(
                f"ways: the preview of {name!r}, a {way._noun}, is not a width to set beside "
                "others; preview it by itself"
            )
        if not isinstance(name, str) or not (described or isinstance(way, InferenceQuestion)):
            raise ArgumentError(
                "ways must be a mapping from names (texts) to questions that are not released yet, "
                "such as those of .mean(x), .kaplan_meier(time, event) or .describe()"
            )
    return QuestionComparison(
        {name: way.preview([people], confidence=confidence) for name, way in ways.items()}
    )

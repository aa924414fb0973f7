"""An inference about a table that may be explained, previewed and released, and its preview."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither import _checks as check
from dither._display import table as shown_table
from dither._format import cost_text, number_text, percent, wrapped
from dither._format import level as level_text
from dither._notebook import Shown
from dither.inference.engine._result import PrivateEstimate, PrivateResult, PrivateTest
from dither.inference.engine._tabulated import Tabulated
from dither.privacy import Loss
from dither.query._explain import UNCOUNTED
from dither.query.tables import _statistics as st
from dither.session._request import (
    AnsweredRequest,
    PricedQuestion,
    Progress,
    Request,
    sizes_of,
)

if TYPE_CHECKING:
    import polars as pl

    from dither.query._explain import Explanation
    from dither.query._question import Question

__all__ = ["EstimatorDesign", "InferencePreview", "InferenceQuestion", "Laws"]

Laws = Mapping[str, st.SumNoise]

_COUNTED = (
    "intervals and p-values count who was sampled and the noise: not how the sample was drawn, nor "
    "what the result's assumptions say"
)


@dataclass(frozen=True)
class EstimatorDesign:
    """How a question's sums are read.

    Parameters
    ----------
    read : callable
        Of sums, laws and loss: the result. It must not raise, whatever the sums are.
    expected : callable
        Of a number of people: sums without noise that they might give.
    least_rows : callable
        Of the laws: the people with whom noise matters little.
    least : float
        The part of them below which it is too wide.
    reaches : str
    reach : callable
        Of n, laws, loss and confidence: what is reached, and the noise's share.
    """

    read: Callable[[st.Sums, Laws, Loss], PrivateResult]
    expected: Callable[[int], st.Sums]
    least_rows: Callable[[Laws], float]
    least: float
    reaches: str
    reach: Callable[[int, Laws, Loss, float], tuple[float, float]]


class InferenceQuestion(PricedQuestion[Any]):
    """One inference about a table: explained and previewed free of charge, released at its price.

    Made by the methods of `Inference`. `release` charges the ledger once and gives the result, a
    `PrivateEstimate` or `PrivateTest`, whose errors, intervals and p-values cost nothing more.
    """

    _noun = "inference"
    _gives = (PrivateEstimate, PrivateTest)

    def __init__(
        self,
        title: str,
        question: Question,
        scales: Mapping[str, Fraction],
        epsilon: Fraction,
        delta: Any,
        design: EstimatorDesign,
    ) -> None:
        self.title = title
        self.epsilon, self.delta = epsilon, delta
        self._question, self._scales, self._design = question, scales, design
        self._laws = st.laws(question, scales, epsilon, delta)
        # What could fail fails here, on numbers that were made up.
        design.read(design.expected(100), self._laws, self.loss)

    @property
    def sql(self) -> str:
        """The sums that are released, as SQL.

        ``RANKS(x, bins)`` stands for how many values lie below each edge of a grid: quantiles are
        read from that, and it is asked for in no other way.
        """
        return self._question.sql

    @property
    def loss(self) -> Loss:
        """What a release would lose."""
        return self._question.loss(self.epsilon, self.delta)

    def explain(self) -> Explanation:
        """Who is protected, how far one unit moves each sum, the noise and the cost."""
        found = self._question.explain(self.epsilon, self.delta)
        children = tuple(
            replace(part, facts=(("intervals", _COUNTED),)) if part.title == UNCOUNTED else part
            for part in found.root.children
        )
        return replace(found, root=replace(found.root, children=children))

    def preview(
        self, sizes: Sequence[int] = (100, 1_000, 10_000), *, confidence: float = 0.95
    ) -> InferencePreview:
        """What so many people would tell, before anything is spent or read.

        Parameters
        ----------
        sizes : sequence of int
            Numbers of people, in all groups together.
        confidence : float
            Of the intervals.

        Returns
        -------
        InferencePreview
            Of an estimate the half-width of its interval, sampling and noise; of a test the
            smallest effect that it would see. It says which sizes are too small for the epsilon.

        Notes
        -----
        Values are taken to be spread evenly over their bounds, groups to be of equal size.
        """
        inside, found = check.confidence(confidence), sizes_of(sizes, "people")
        reached, shares = [], []
        for n in found:
            width, share = self._design.reach(n, self._laws, self.loss, inside)
            reached.append(width)
            shares.append(share)
        return InferencePreview(
            self.title,
            self.epsilon,
            self.loss.charge.delta or Fraction(0),
            inside,
            self._design.reaches,
            tuple(found),
            tuple(reached),
            tuple(shares),
            self._design.least_rows(self._laws),
            self._design.least,
        )

    @property
    def _about(self) -> str:
        return self.title

    def _request(self, tell: Progress) -> Request:
        return self._question._request(self.epsilon, self.delta, 0.95)

    def _read(self, answered: AnsweredRequest) -> Any:
        released = self._question._read(answered)
        found = self._design.read(st.sums_of(released, self._scales), self._laws, self.loss)
        people = self._question._plan.table.unit is not None
        return replace(
            found, certificate=released.certificate, people=people, released=released.frame
        )


@dataclass(frozen=True)
class InferencePreview(Tabulated, Shown):
    """What so many people would tell.

    Parameters
    ----------
    title : str
    epsilon, delta : Fraction
        What it would cost.
    confidence : float
        Of the intervals.
    reaches : str
        What is said of each size.
    sizes : tuple of int
        People.
    widths : tuple of float
        The half-width of the interval, or the smallest effect; inf where there is none.
    shares : tuple of float
        How much of the variance of the error is the noise's; NaN of tests.
    least_rows : float
        With so many people the noise matters little.
    least : float
        The part of ``least_rows`` below which the noise is too wide for any answer.
    """

    title: str
    epsilon: Fraction
    delta: Fraction
    confidence: float
    reaches: str
    sizes: tuple[int, ...]
    widths: tuple[float, ...]
    shares: tuple[float, ...]
    least_rows: float
    least: float

    @property
    def enough(self) -> tuple[bool, ...]:
        """By size: whether the epsilon is large enough for it."""
        return tuple(n >= self.least * self.least_rows for n in self.sizes)

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: ``people``, ``reaches``, ``noise`` and ``enough``."""
        import polars as pl

        return pl.DataFrame(
            {
                "people": list(self.sizes),
                "reaches": list(self.widths),
                "noise": list(self.shares),
                "enough": list(self.enough),
            }
        )

    def __str__(self) -> str:
        heads = ["people", self.reaches]
        rows = [[f"{n:,}", number_text(w, 3)] for n, w in zip(self.sizes, self.widths, strict=True)]
        if not all(map(math.isnan, self.shares)):
            heads.append("noise's share")
            for row, share in zip(rows, self.shares, strict=True):
                row.append("unknown" if math.isnan(share) else percent(share, 0))
        heads.append("")
        for row, enough in zip(rows, self.enough, strict=True):
            row.append("" if enough else "too few")
        lines = [f"{self.title}, at {cost_text(self.epsilon, self.delta)}"]
        lines += shown_table(heads, rows)
        for n, enough in zip(self.sizes, self.enough, strict=True):
            if not enough:
                larger = float(self.epsilon) * self.least_rows / n
                lines += wrapped(
                    f"{n:,} people are too few for this epsilon: about "
                    f"{number_text(math.ceil(self.least_rows), 2)} people would do, or epsilon "
                    f"{number_text(larger, 2)}"
                )
        if "half-width" in self.reaches:
            lines += wrapped(
                f"intervals at {level_text(self.confidence)}, sampling and noise; values are taken "
                "to be spread evenly over their bounds"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def plot(self, path: str | None = None) -> Any:
        """Draw what is reached against the number of people."""
        from dither.plots._inference import draw_inference_preview

        return draw_inference_preview(self, path)

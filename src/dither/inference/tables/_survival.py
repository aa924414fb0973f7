"""Survival curves and the log-rank test on protected tables.

Each row's arm, event and time become one whole number, its code, and what leaves is how many lie
below each code: the noisy tree of a grid that quantiles are read from, too (`RANKS`). So the counts
of `dither.inference.survival` pass the plan, the engine, the noise, the ledger and the certificate
of every query. Where a column says whose a row is, each person counts once, and shares over the
codes of their rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither.errors import QueryError
from dither.inference.engine._errors import DRAWS
from dither.inference.engine._inputs import Bounds, Floats
from dither.inference.engine._result import MEASURED, PrivateResult
from dither.inference.engine._simulation import SimulatedDraws
from dither.inference.estimates._quantiles import FINE, rank_deviation
from dither.inference.survival._counts import CENSORED, SurvivalCounts, edges_of
from dither.inference.survival._curves import check_bins, curves_of
from dither.inference.survival._logrank import logrank_of, smallest_ratio
from dither.inference.survival._survival import BINS, assumed_of
from dither.inference.tables import _sums as model
from dither.inference.tables._question import EstimatorDesign, InferenceQuestion, Laws
from dither.privacy import Loss
from dither.query.tables import _events as ev
from dither.query.tables import _statistics as st

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["SurvivalQuestions"]


class SurvivalQuestions:
    """Methods of `Inference` about times to an event."""

    _rows: TableQuery
    _epsilon: Fraction
    _delta: Any
    _assumed: Callable[..., tuple[str, ...]]

    def kaplan_meier(
        self,
        time: str,
        event: str,
        by: str | None = None,
        *,
        bins: int = BINS,
        censored: str = "spread",
        null: float = 0.5,
    ) -> InferenceQuestion:
        """Kaplan-Meier curves, one an arm, with pointwise intervals and bands for whole curves.

        Parameters
        ----------
        time : str
            A number with declared bounds: when each row had the event, or was last seen. Watching
            begins at the lower bound; who is watched to the upper one is censored there.
        event : str
            A condition, or a column declared to be 0 or 1: whether it was the event.
        by : str, optional
            A column with declared values, or a condition: the arms.
        bins : int
            Into how many equal bins time is cut, from 2 to 500: the curve is known at their ends.
        censored : {"spread", "end"}
            Whether censorings are spread over a bin, as continuous times are, or lie at its end,
            after its events, as times in whole bins do.
        null : float
            In (0, 1): the survival that ``pvalue`` tests.

        Raises
        ------
        QueryError, BoundsError
            Time has no bounds, the event is no condition, or arms have no declared values.
        """
        against = check.number("null", null, above=0, below=1)
        title = f"Kaplan-Meier survival, {event} by {time}"
        asked = self._timed(time, event, by, bins, censored)
        question, scales, counts, arms, edges, assumed = asked

        def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
            return curves_of(counts(sums, laws), arms, edges, loss, assumed, title, against)

        def reach(n: int, laws: Laws, loss: Loss, confidence: float) -> tuple[float, float]:
            found: Any = read(expected(n), laws, loss).simulated(draws=1000)  # type: ignore[attr-defined]
            ends = found.errors.interval(confidence)
            return float((ends[:, 1] - ends[:, 0]).max() / 2), found._share

        expected = partial(_expected, len(arms or [""]), len(edges) - 1)
        least = partial(_least_rows, question, self._epsilon, self._delta, len(arms or [""]))
        design = EstimatorDesign(read, expected, least, 0.2, "half-width of the widest", reach)
        return InferenceQuestion(title, question, scales, self._epsilon, self._delta, design)

    def logrank_test(
        self,
        time: str,
        event: str,
        by: str,
        *,
        bins: int = BINS,
        censored: str = "spread",
        draws: int = DRAWS,
    ) -> InferenceQuestion:
        """The log-rank test that survival is the same in all arms.

        Parameters
        ----------
        time, event, by : str
            As of `kaplan_meier`.
        bins : int
            Into how many equal bins time is cut, from 2 to 500.
        censored : {"spread", "end"}
            As of `kaplan_meier`.
        draws : int
            Simulated releases under the null, 100 to 10**6.
        """
        draws = check.draws(draws)
        title = f"log-rank test of {event} by {time}, over {by}"
        question, scales, counts, arms, edges, assumed = self._timed(
            time, event, by, bins, censored
        )

        def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
            rng = SimulatedDraws.of_released(sums.values["below"])
            return logrank_of(counts(sums, laws), loss, assumed, title, rng, draws)

        def reach(n: int, laws: Laws, loss: Loss, confidence: float) -> tuple[float, float]:
            return smallest_ratio(counts(expected(n), laws), SimulatedDraws.of(None)), math.nan

        expected = partial(_expected, len(arms or [""]), len(edges) - 1)
        least = partial(_least_rows, question, self._epsilon, self._delta, len(arms or [""]))
        reaches = "smallest hazard ratio seen (power 0.8)"
        design = EstimatorDesign(read, expected, least, 0.2, reaches, reach)
        return InferenceQuestion(title, question, scales, self._epsilon, self._delta, design)

    def _timed(
        self, time: str, event: str, by: str | None, bins: int, censored: str
    ) -> tuple[Any, Any, Any, Sequence[Any] | None, Floats, tuple[str, ...]]:
        """The question, its scales, the counts of its sums, arms, edges and assumptions."""
        spread = check.choice("censored", censored, CENSORED) == "spread"
        rows = self._rows
        times, seen = st.Variable.of(rows, time), ev.condition(rows, event)
        ends = Bounds(*times.ends)
        arms: tuple[Any, ...] | None = None
        asked = [times, seen]
        if by is not None:
            group = st.Variable.of(rows, by)
            rows, arms = ev.arms_of(rows, group)
            asked.append(group)
        size = check_bins(bins, len(arms or [""]))
        edges = edges_of(ends, size)
        if len(set(edges.tolist())) <= size:
            raise QueryError(f"{time} has bounds too narrow for {size} bins: ask for fewer")
        cells = len(arms or [""]) * (2 * size + 1)

        def ranks(variables: Sequence[st.Variable]) -> dict[str, st.Request]:
            when, happened, *rest = variables
            arm = rest[0] if rest else None
            code = ev.event_code(when, happened, arm, arms or (), edges.tolist())
            return {"below": (st.SumTerm.ranks(code, cells), Fraction(1))}

        question, scales = st.ask(rows, asked, ranks)
        grid = st.grid(question, self._epsilon, self._delta)
        assert len(grid.edges) == cells + 1

        def counts(sums: st.Sums, laws: Laws) -> SurvivalCounts:
            draw = partial(model.drawn, laws["below"])
            below = np.asarray(sums.values["below"], dtype=np.float64)
            return SurvivalCounts(grid.tree, draw, below, len(arms or [""]), size, spread)

        assumed = (*self._assumed("its rows with equal weight"), MEASURED)
        return question, scales, counts, arms, edges, (*assumed, *assumed_of(edges, spread))


def _expected(arms: int, bins: int, n: int) -> st.Sums:
    """What n people would give of whom half have the event by the end, at one hazard."""
    stays = 0.5 ** (np.arange(bins + 1) / bins)
    events = -np.diff(stays)
    gone = np.append(np.zeros(bins), stays[-1])
    one = np.concatenate([gone, events]) * n / arms
    return st.Sums({"below": np.concatenate([[0.0], np.cumsum(np.tile(one, arms))])})


def _least_rows(question: Any, epsilon: Any, delta: Any, arms: int, laws: Laws) -> float:
    tree = st.grid(question, epsilon, delta).tree
    return arms * rank_deviation(tree, laws["below"].deviation) / FINE

"""Rates, standardised rates and ratios over strata on protected tables.

Events and person-time leave as sums by declared strata and groups, counts of a Mantel-Haenszel
table as a grouped count; `dither.inference.rates` reads them, with the noise that the plan gave
each. A person at both bounds moves Σ events, Σ time and their products by all that each can move,
so that dividing epsilon among them costs what one joint release does (`rates._sums`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither.errors import QueryError
from dither.inference.engine._inputs import Floats
from dither.inference.engine._result import MEASURED, PrivateResult
from dither.inference.estimates._quantiles import FINE
from dither.inference.rates._mantel_haenszel import MEASURES, StrataModel, ratio_over_strata
from dither.inference.rates._models import FAMILIES
from dither.inference.rates._rates import RateQuestion, one_of, weights_of
from dither.inference.rates._sums import RateSums, weights_named
from dither.inference.tables import _sums as model
from dither.inference.tables._question import EstimatorDesign, InferenceQuestion, Laws
from dither.privacy import Loss
from dither.query.tables import _events as ev
from dither.query.tables import _statistics as st

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["RateQuestions"]

_GROUPED = "in one of its groups, with the average of its rows there"


class RateQuestions:
    """Methods of `Inference` about rates and strata."""

    _rows: TableQuery
    _epsilon: Fraction
    _delta: Any
    _assumed: Callable[..., tuple[str, ...]]
    _two: Callable[..., tuple[TableQuery, tuple[Any, ...]]]

    def rate(
        self,
        events: str,
        time: str,
        by: str | None = None,
        *,
        family: str = "poisson",
        per: float = 1.0,
        null: float = 0.0,
    ) -> InferenceQuestion:
        """Events over person-time: the rate of all, or of each group.

        Parameters
        ----------
        events : str
            A number with declared bounds from 0 on, or a condition.
        time : str
            The time that a row was watched, the offset: a number with declared bounds from 0 on.
        by : str, optional
            A column with declared values or bins, or a condition.
        family : {"poisson", "negative-binomial"}
            Whether events scatter as Poisson's law says, or by the variance that the rows show.
        per : float
            Of how much time the rate is: 1000, of a thousand person-years.
        null : float
            What ``pvalue`` tests.
        """
        scale = check.number("per", per, above=0)
        groups = None if by is None else ev.labels_of(st.Variable.of(self._rows, by))
        question = RateQuestion(
            f"rate of {events} over {time}" + ("" if by is None else f", by {by}"),
            np.array([scale]),
            None if groups is None else tuple(map(_said, groups)),
            check.choice("family", family, FAMILIES),
            null=check.number("null", null, least=0),
        )
        return self._rated(question, self._rows, events, time, [by] if by is not None else [])

    def rate_ratio(
        self,
        events: str,
        time: str,
        by: str,
        *,
        levels: Sequence[Any] | None = None,
        family: str = "poisson",
        null: float = 1.0,
    ) -> InferenceQuestion:
        """The rate of the second of two groups over that of the first.

        Parameters
        ----------
        events, time : str
            As of `rate`.
        by : str
            What tells the groups apart: a column with declared values, bins, or a condition.
        levels : (first, second), optional
            The two groups, where there are more; by default in declared order, and false comes
            before true.
        family : {"poisson", "negative-binomial"}
            As of `rate`.
        null : float
            Above 0: the ratio that ``pvalue`` tests.
        """
        rows, pair = self._two(by, levels)
        question = RateQuestion(
            f"rate of {events} over {time}, {by} = {_said(pair[1])} over {_said(pair[0])}",
            np.ones(1),
            None,
            check.choice("family", family, FAMILIES),
            ratio=True,
            null=check.number("null", null, above=0),
        )
        return self._rated(question, rows, events, time, [by], pair if levels is not None else None)

    def standardised_rate(
        self,
        events: str,
        time: str,
        strata: str,
        weights: Mapping[Any, float],
        by: str | None = None,
        *,
        family: str = "poisson",
        per: float = 1.0,
        null: float = 0.0,
    ) -> InferenceQuestion:
        """The directly standardised rate: what a public population would have at these rates.

        Parameters
        ----------
        events, time : str
            As of `rate`.
        strata : str
            A column with declared values or bins, such as age bands, or a condition.
        weights : mapping of level to number
            Of the standard population: one number above 0 for every stratum, scaled to add up
            to 1. Bins are named by their ranges, such as "[0, 40)".
        by : str, optional
            A column with declared values or bins, or a condition: a rate for each.
        family : {"poisson", "negative-binomial"}
            As of `rate`.
        per : float
            Of how much time the rate is.
        null : float
            What ``pvalue`` tests.
        """
        scale = check.number("per", per, above=0)
        bands = ev.labels_of(st.Variable.of(self._rows, strata))
        groups = None if by is None else ev.labels_of(st.Variable.of(self._rows, by))
        question = RateQuestion(
            f"rate of {events} over {time}, standardised by {strata}",
            weights_of("weights", weights, bands, shares=True) * scale,
            None if groups is None else tuple(map(_said, groups)),
            check.choice("family", family, FAMILIES),
            null=check.number("null", null, least=0),
        )
        keys = [strata] if by is None else [strata, by]
        return self._rated(question, self._rows, events, time, keys)

    def standardised_ratio(
        self,
        events: str,
        time: str,
        strata: str,
        *,
        reference: Mapping[Any, float] | None = None,
        weights: Mapping[Any, float] | None = None,
        by: str | None = None,
        family: str = "poisson",
        null: float = 1.0,
    ) -> InferenceQuestion:
        """A standardised ratio: observed over expected (SMR), or of two standardised rates.

        Parameters
        ----------
        events, time, strata : str
            As of `standardised_rate`.
        reference : mapping of level to number, optional
            The reference's rate in every stratum: what is asked is Σ events over Σ rate·time, of
            all or of each group. Times the reference's crude rate it is the indirectly
            standardised rate.
        weights : mapping of level to number, optional
            Instead: of a standard population. What is asked is the rate of the second of two groups
            over that of the first, both standardised to it.
        by : str, optional
            The groups; of two with ``weights``.
        family : {"poisson", "negative-binomial"}
            As of `rate`.
        null : float
            Above 0: the ratio that ``pvalue`` tests.
        """
        direct = one_of(reference, weights)
        bands = ev.labels_of(st.Variable.of(self._rows, strata))
        groups = None if by is None else ev.labels_of(st.Variable.of(self._rows, by))
        if direct and (groups is None or len(groups) != 2):
            raise QueryError("by must be a column of two groups, or a condition, with weights")
        name, given = ("weights", weights) if direct else ("reference", reference)
        title = f"{events} over {time}, observed over expected by {strata}"
        if direct and groups is not None:
            title = (
                f"rate of {events} over {time}, standardised by {strata}, "
                f"{by} = {_said(groups[1])} over {_said(groups[0])}"
            )
        question = RateQuestion(
            title,
            weights_of(name, given, bands, shares=direct),
            None if direct or groups is None else tuple(map(_said, groups)),
            check.choice("family", family, FAMILIES),
            ratio=direct,
            expected=not direct,
            null=check.number("null", null, above=0),
        )
        keys = [strata] if by is None else [strata, by]
        return self._rated(question, self._rows, events, time, keys)

    def mantel_haenszel(
        self,
        outcome: str,
        exposed: str,
        strata: str,
        *,
        measure: str = "odds",
        null: float = 1.0,
    ) -> InferenceQuestion:
        """Mantel and Haenszel's ratio of the exposed to the others, over strata.

        Parameters
        ----------
        outcome, exposed : str
            Conditions, or columns declared to be 0 or 1.
        strata : str
            A column with declared values or bins, or a condition.
        measure : {"odds", "risk"}
            The odds ratio, or the ratio of risks.
        null : float
            Above 0: the ratio that ``pvalue`` tests. At 1 that is the test of Cochran, Mantel and
            Haenszel.
        """
        odds = check.choice("measure", measure, MEASURES) == "odds"
        against = check.number("null", null, above=0)
        rows = self._rows
        yes, held = ev.condition(rows, outcome), ev.condition(rows, exposed)
        band = st.Variable.of(rows, strata)
        size = len(band.levels)
        keys = [strata, held.text, yes.text]
        question, scales = st.ask(
            rows, [band, held, yes], lambda _: {"n": (st.SumTerm.count(), Fraction(1))}, keys
        )
        title = f"Mantel-Haenszel {measure} ratio of {outcome} by {exposed}, over {strata}"
        assumed = (*self._assumed("in one of its groups"), MEASURED)

        def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
            table = np.asarray(sums.values["n"], dtype=np.float64).reshape(size, 2, 2)
            law = laws["n"]
            over = StrataModel(table, partial(model.drawn, law), law.deviation, odds)
            return ratio_over_strata(over, loss, assumed, title, against)

        def expected(n: int) -> st.Sums:
            return st.Sums({"n": np.full(4 * size, n / (4 * size))})

        def least_rows(laws: Laws) -> float:
            return 20 * 4 * size * laws["n"].deviation

        return self._asked(
            title,
            question,
            scales,
            EstimatorDesign(read, expected, least_rows, 0.25, _HALF, _reach_of(read, expected)),
        )

    # --- what they share --------------------------------------------------------------------------

    def _rated(
        self,
        question: RateQuestion,
        rows: TableQuery,
        events: str,
        time: str,
        keys: Sequence[str],
        levels: tuple[Any, ...] | None = None,
    ) -> InferenceQuestion:
        """The question of the sums of some rates."""
        count, watched = _counted(rows, events), st.Variable.of(rows, time)
        ends = [ev.from_zero(count)[1], ev.from_zero(watched)[1]]
        weights = weights_named(question.dispersed)

        def terms(variables: Sequence[st.Variable]) -> dict[str, st.Request]:
            y, t = variables[:2]
            pairs = {"y": (y,), "t": (t,), "yy": (y, y), "yt": (y, t), "tt": (t, t)}
            return {name: (ev.plain_product(*pairs[name]), w) for name, w in weights.items()}

        grouped = [st.Variable.of(rows, key) for key in keys]
        asked, scales = st.ask(rows, [count, watched, *grouped], terms, keys, levels)
        people = 0
        m, t = (float(end) for end in ends)

        def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
            values = {name: np.asarray(sums.values[name], dtype=np.float64) for name in weights}
            size = values["y"].size

            deviations = {name: laws[name].deviation for name in weights}
            held = self._assumed(_GROUPED) if keys else self._assumed()
            draw = partial(_noise_of, {name: laws[name] for name in weights}, size)
            released = RateSums(values, draw, deviations, people, m)
            return question.read(released, loss, held)

        cells = len(question.weights) * question.groups
        means = {"y": m / 2, "t": t / 2, "yy": m * m / 3, "yt": m * t / 4, "tt": t * t / 3}

        def expected(n: int) -> st.Sums:
            return st.Sums({name: np.full(cells, n * means[name] / cells) for name in weights})

        def least_rows(laws: Laws) -> float:
            return 2 * laws["y"].deviation * math.sqrt(cells) / FINE / m

        reach = _reach_of(read, expected)
        design = EstimatorDesign(read, expected, least_rows, 0.2, _HALF, reach)
        return self._asked(question.title, asked, scales, design)

    def _asked(
        self, title: str, question: Any, scales: Mapping[str, Fraction], design: EstimatorDesign
    ) -> InferenceQuestion:
        return InferenceQuestion(title, question, scales, self._epsilon, self._delta, design)


_HALF = "half-width"


def _counted(rows: TableQuery, events: str) -> st.Variable:
    """A number of events; a condition as 1 where it is true, and 0 where it is false."""
    found = st.Variable.of(rows, events)
    if found.facts.kind is not None and found.facts.kind.numeric:
        return found
    happened = ev.condition(rows, events).part
    # A row of which it is unknown has neither an event nor time to have one in: it is left out.
    return st.Variable.of(rows, f"CASE WHEN {happened} THEN 1 WHEN NOT ({happened}) THEN 0 END")


def _noise_of(laws: Laws, size: int, rng: np.random.Generator, draws: int) -> Mapping[str, Floats]:
    return {name: model.drawn(law, rng, (draws, size)) for name, law in laws.items()}


def _said(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reach_of(read: Any, expected: Any) -> Callable[[int, Laws, Loss, float], tuple[float, float]]:
    def reach(n: int, laws: Laws, loss: Loss, confidence: float) -> tuple[float, float]:
        found: Any = read(expected(n), laws, loss).simulated(draws=1000)
        ends = np.atleast_2d(np.asarray(found.interval(confidence)))
        return float((ends[:, 1] - ends[:, 0]).max() / 2), found._share

    return reach

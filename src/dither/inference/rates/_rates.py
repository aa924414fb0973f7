"""Rates over person-time and their ratios, plain and standardised, of rows in memory.

Layer 1 is `dither.inference.rates._sums`, layers 2 and 3 are `dither.inference.rates._models`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import number_text
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import DRAWS
from dither.inference.engine._inputs import Floats, column, target
from dither.inference.engine._result import MEASURED, PrivateEstimate
from dither.inference.engine._simulation import Seed
from dither.inference.hypothesis._contingency import codes, levels_of
from dither.inference.rates._models import FAMILIES, RateModel
from dither.inference.rates._sums import RatesRelease, RateSums
from dither.privacy import Loss, Neighbours

__all__ = [
    "RateEstimate",
    "RateQuestion",
    "rate",
    "rate_ratio",
    "standardised_rate",
    "standardised_ratio",
    "weights_of",
]


_CLEAR = 6.0
"""Deviations of noise that person-time must be to divide well; it promises nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class RateEstimate(PrivateEstimate):
    """Rates, or a ratio of them, with errors of sampling and noise.

    Parameters
    ----------
    events, time : float
        All that were counted, with noise. ``rows`` is the number of rows where it is public, else
        0: it is not measured.
    """

    events: float = field(kw_only=True)
    time: float = field(kw_only=True)

    def _counted(self, rows: int) -> str:
        return f"{self.events:,.0f} events in {number_text(self.time, 3)} of time (with noise)"


@dataclass(frozen=True, eq=False)
class RateQuestion:
    """What is asked of the sums of rates: of rows in memory, or of a table's.

    Parameters
    ----------
    title : str
    weights : array of float, shape (S,)
        Of the strata.
    names : tuple of str or None
        Of the groups; None where one number is asked for.
    family : str
    ratio : bool
        Whether two groups are compared.
    expected : bool
        Whether events are held against those that the reference's rates expect.
    null : float
    """

    title: str
    weights: Floats
    names: tuple[str, ...] | None
    family: str
    ratio: bool = False
    expected: bool = False
    null: float = 0.0

    @property
    def dispersed(self) -> bool:
        """Whether squares are asked for."""
        return self.family != FAMILIES[0]

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return 2 if self.ratio else len(self.names or ("",))

    def model(self, sums: RateSums) -> RateModel:
        """Layer 2."""
        return RateModel(sums, len(self.weights), self.groups, self.weights, self.expected)

    def read(self, sums: RateSums, loss: Loss, assumptions: tuple[str, ...]) -> PrivateEstimate:
        """The estimate."""
        model, notes = self.model(sums), []
        events, noise = float(sums.values["y"].sum()), sums.deviations["y"]
        if events < 4 * noise * np.sqrt(sums.values["y"].size):
            notes.append(
                "the noise is much of the number of events: more rows, a larger epsilon, smaller "
                "bounds or fewer cells would help"
            )
        if float(np.min(sums.values["t"], initial=np.inf)) < _CLEAR * sums.deviations["t"]:
            notes.append(
                "the person-time of a cell is little more than its noise, which widens the "
                "interval: fewer strata or more rows would help"
            )
        law = "Poisson" if not self.dispersed else "of the variance that the rows show"
        held: tuple[str, ...] = (*assumptions, f"events are {law}, given person-time")
        held += ("events and person-time are those clamped to their bounds",)
        if len(self.weights) > 1 and not self.expected:
            held += ("the weights of the strata are public",)
        return RateEstimate(
            self.title,
            loss,
            held,
            tuple(notes),
            None if self.ratio else self.names,
            np.array([model.ratio]) if self.ratio else np.maximum(model.values, 0.0),
            sums.rows,
            model.errors_of_ratio if self.ratio else model.errors,
            self.null,
            events=max(0.0, events),
            time=max(0.0, float(sums.values["t"].sum())),
        )


def weights_of(name: str, given: Any, strata: Sequence[Any], *, shares: bool) -> Floats:
    """A number for each stratum; scaled to add up to 1 where they are shares.

    Strata may be written as text, as a terminal and files of numbers by names do.

    Examples
    --------
    >>> weights_of("weights", {"young": 3, "old": 1}, ["young", "old"], shares=True).tolist()
    [0.75, 0.25]
    >>> weights_of("weights", {"0": 3, "1": 1}, [0, 1], shares=True).tolist()
    [0.75, 0.25]
    """
    if isinstance(given, Mapping) and all(isinstance(key, str) for key in given):
        named = {str(s).lower() if isinstance(s, bool) else str(s): s for s in strata}
        given = {named.get(key, key): value for key, value in given.items()}
    if not isinstance(given, Mapping) or set(given) != set(strata):
        wanted = ", ".join(map(repr, strata))
        raise ArgumentError(f"{name} must be one number above 0 for each stratum: {wanted}")
    found = np.array([check.number(name, given[s], above=0) for s in strata])
    return found / found.sum() if shares else found


def _groups(by: Any, levels: Any, pair: bool) -> tuple[list[Any] | None, Any]:
    """The declared groups, and the place of each row among them."""
    if by is None:
        if levels is not None or pair:
            raise ArgumentError("by must be given with levels: one group a row")
        return None, None
    known = levels_of("levels", levels)
    if pair and len(known) != 2:
        raise ArgumentError("levels must be two groups, (first, second)")
    return known, codes("by", by, known)


def _asked(
    question: RateQuestion,
    events: Any,
    time: Any,
    stratum: Any,
    group: Any,
    most: tuple[Number, Number],
    cost: tuple[Number, Number, Neighbours | str],
    simulation: tuple[int, Seed],
) -> PrivateEstimate:
    """Release the sums of a question, and read them."""
    asked = target(*cost)
    draws, seed = simulation
    y, t = column("events", events), column("time", time)
    ends = [check.positive(n, v) for n, v in zip(("most_events", "most_time"), most, strict=True)]
    for name, end in zip(("most_events", "most_time"), ends, strict=True):
        # Their squares, and those over weights, then are within doubles.
        if not 1e-150 < float(end) < 1e150:
            raise ArgumentError(f"{name} must be from 1e-150 to 1e150: squares are taken of it")
    zeros = np.zeros(len(y), dtype=np.int64)
    places = [zeros if place is None else place for place in (stratum, group)]
    if len({len(part) for part in (y, t, *places)}) > 1:
        raise ArgumentError("events, time and what rows are grouped by must be equally long")
    held = np.all([place >= 0 for place in places], axis=0)
    cells = np.where(held, places[0] * question.groups + places[1], -1)
    size = len(question.weights) * question.groups
    design = RatesRelease(ends[0], ends[1], size, question.dispersed, asked)
    sums = design.release((y, t, cells), len(y) if asked.replace else 0)
    known = "the number of rows is public" if asked.replace else MEASURED
    assumptions = ("rows are an independent sample", known)
    return question.read(sums, design.loss, assumptions).simulated(draws=draws, seed=seed)


def _names(levels: Sequence[Any] | None) -> tuple[str, ...] | None:
    return None if levels is None else tuple(map(str, levels))


@documented
def rate(
    events: Any,
    time: Any,
    *,
    most_events: Number = 1,
    most_time: Number,
    by: Any = None,
    levels: Sequence[Any] | None = None,
    family: str = "poisson",
    per: float = 1.0,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 0.0,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateEstimate:
    """Events over person-time: the rate of all, or of each group.

    Parameters
    ----------
    events, time : sequence of float
        Of each row, its number of events and the time that it was watched: the offset. Both are
        clamped: to [0, ``most_events``] and [0, ``most_time``]. A row is who is protected.
    most_events, most_time : number
        Public bounds, above 0.
    by : sequence, optional
        One group a row.
    levels : sequence, optional
        The groups that there can be, known without looking at the data.
    family : {"poisson", "negative-binomial"}
        Whether events scatter as Poisson's law says, or by the variance that the rows show: three
        more sums then leave, and noise is half as wide again.
    per : float
        Of how much time the rate is: 1000, of a thousand person-years.
    {costs}
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected.
    null : float
        What ``pvalue`` tests.
    {simulation}

    Returns
    -------
    PrivateEstimate
        One rate, or one a group.

    {raises}

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row with its group being the unit. A row
    that misses something, or has an undeclared group, is left out.

    References
    ----------
    `dither.inference.rates._sums` proves the sensitivity.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(5)
    >>> years = rng.uniform(0, 10, 20_000)
    >>> falls = rng.poisson(0.03 * years)
    >>> found = inference.rate(falls, years, most_events=5, most_time=10, per=1000, epsilon=1)
    >>> lower, upper = found.interval(0.999)
    >>> lower < 30 < upper < 40
    True
    """
    known, group = _groups(by, levels, False)
    scale = check.number("per", per, above=0)
    question = RateQuestion(
        "rate" if known is None else "rates",
        np.array([scale]),
        _names(known),
        check.choice("family", family, FAMILIES),
        null=check.number("null", null, least=0),
    )
    most, cost = (most_events, most_time), (epsilon, delta, neighbours)
    return _asked(question, events, time, None, group, most, cost, (draws, seed))


@documented
def rate_ratio(
    events: Any,
    time: Any,
    by: Any,
    *,
    levels: Sequence[Any],
    most_events: Number = 1,
    most_time: Number,
    family: str = "poisson",
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 1.0,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateEstimate:
    """The rate of the second of two groups over that of the first.

    Parameters
    ----------
    events, time, by
        As of `rate`.
    levels : (first, second)
        The two groups.
    most_events, most_time, family
        As of `rate`.
    {costs}
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected.
    null : float
        Above 0: the ratio that ``pvalue`` tests.
    {simulation}

    Returns
    -------
    PrivateEstimate
        Where the noise leaves the ratio open, its interval ends at 0 or infinity.

    {raises}

    Notes
    -----
    *Guarantee.* As of `rate`; groups are as private as events.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(5)
    >>> years, treated = rng.uniform(0, 10, 20_000), rng.random(20_000) < 0.5
    >>> falls = rng.poisson(0.03 * years * np.where(treated, 0.5, 1))
    >>> found = inference.rate_ratio(
    ...     falls, years, treated, levels=[False, True], most_events=5, most_time=10, epsilon=1)
    >>> lower, upper = found.interval(0.999)
    >>> lower < 0.5 < upper, found.pvalue < 0.01
    (True, True)
    """
    known, group = _groups(by, levels, True)
    assert known is not None
    question = RateQuestion(
        f"rate of {known[1]} over that of {known[0]}",
        np.ones(1),
        None,
        check.choice("family", family, FAMILIES),
        ratio=True,
        null=check.number("null", null, above=0),
    )
    most, cost = (most_events, most_time), (epsilon, delta, neighbours)
    return _asked(question, events, time, None, group, most, cost, (draws, seed))


@documented
def standardised_rate(
    events: Any,
    time: Any,
    strata: Any,
    *,
    weights: Mapping[Any, float],
    most_events: Number = 1,
    most_time: Number,
    by: Any = None,
    levels: Sequence[Any] | None = None,
    family: str = "poisson",
    per: float = 1.0,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 0.0,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateEstimate:
    """The directly standardised rate: what a public population would have at these strata's rates.

    Parameters
    ----------
    events, time
        As of `rate`.
    strata : sequence
        One stratum a row, such as an age band.
    weights : mapping of stratum to number
        Of the standard population: one number above 0 for every stratum that there can be, scaled
        to add up to 1.
    most_events, most_time, by, levels, family, per
        As of `rate`.
    {costs}
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected.
    null : float
        What ``pvalue`` tests.
    {simulation}

    Returns
    -------
    PrivateEstimate
        One rate, or one a group.

    {raises}

    Notes
    -----
    *Guarantee.* As of `rate`; strata are as private as events.

    References
    ----------
    Breslow and Day, "Statistical methods in cancer research II", 1987, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(5)
    >>> years, old = rng.uniform(0, 10, 20_000), rng.random(20_000) < 0.2
    >>> falls = rng.poisson(years * np.where(old, 0.06, 0.02))
    >>> found = inference.standardised_rate(
    ...     falls, years, old, weights={False: 50, True: 50}, most_events=5, most_time=10,
    ...     per=1000, epsilon=1)
    >>> lower, upper = found.interval(0.999)
    >>> lower < 40 < upper < 60
    True
    """
    known, group = _groups(by, levels, False)
    bands = levels_of("weights", weights)
    scale = check.number("per", per, above=0)
    question = RateQuestion(
        "standardised rate" if known is None else "standardised rates",
        weights_of("weights", weights, bands, shares=True) * scale,
        _names(known),
        check.choice("family", family, FAMILIES),
        null=check.number("null", null, least=0),
    )
    most, cost = (most_events, most_time), (epsilon, delta, neighbours)
    stratum = codes("strata", strata, bands)
    return _asked(question, events, time, stratum, group, most, cost, (draws, seed))


@documented
def standardised_ratio(
    events: Any,
    time: Any,
    strata: Any,
    *,
    reference: Mapping[Any, float] | None = None,
    weights: Mapping[Any, float] | None = None,
    most_events: Number = 1,
    most_time: Number,
    by: Any = None,
    levels: Sequence[Any] | None = None,
    family: str = "poisson",
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 1.0,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateEstimate:
    """A standardised ratio: observed over expected events (SMR), or of two standardised rates.

    Parameters
    ----------
    events, time, strata
        As of `standardised_rate`.
    reference : mapping of stratum to number
        The reference's rate in every stratum, above 0: what is asked is Σ events over Σ rate·time,
        the indirectly standardised ratio, of all or of each group. Times the reference's crude rate
        it is the indirectly standardised rate.
    weights : mapping of stratum to number
        Instead: of a standard population, as of `standardised_rate`. What is asked is the rate of
        the second of two groups over that of the first, both standardised to it.
    most_events, most_time, by, levels, family
        As of `rate`; two groups with ``weights``.
    {costs}
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected.
    null : float
        Above 0: the ratio that ``pvalue`` tests.
    {simulation}

    Returns
    -------
    PrivateEstimate

    {raises}

    Notes
    -----
    *Guarantee.* As of `standardised_rate`.

    References
    ----------
    Breslow and Day, "Statistical methods in cancer research II", 1987, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(5)
    >>> years, old = rng.uniform(0, 10, 20_000), rng.random(20_000) < 0.2
    >>> falls = rng.poisson(years * np.where(old, 0.06, 0.02))
    >>> found = inference.standardised_ratio(
    ...     falls, years, old, reference={False: 0.01, True: 0.03}, most_events=5, most_time=10,
    ...     epsilon=1)
    >>> lower, upper = found.interval(0.999)
    >>> lower < 2 < upper < 3
    True
    """
    direct = one_of(reference, weights)
    bands = levels_of(*(("weights", weights) if direct else ("reference", reference)))
    known, group = _groups(by, levels, direct)
    name, given = ("weights", weights) if direct else ("reference", reference)
    title = "standardised ratio, observed over expected"
    if direct and known is not None:
        title = f"standardised rate of {known[1]} over that of {known[0]}"
    question = RateQuestion(
        title,
        weights_of(name, given, bands, shares=direct),
        None if direct else _names(known),
        check.choice("family", family, FAMILIES),
        ratio=direct,
        expected=not direct,
        null=check.number("null", null, above=0),
    )
    most, cost = (most_events, most_time), (epsilon, delta, neighbours)
    stratum = codes("strata", strata, bands)
    return _asked(question, events, time, stratum, group, most, cost, (draws, seed))


def one_of(reference: Any, weights: Any) -> bool:
    """Whether weights are given, and not rates of a reference; one of the two must be."""
    if (reference is None) == (weights is None):
        raise ArgumentError(
            "reference must be given, the rates of a reference (observed over expected events), "
            "or weights, of a standard population (the ratio of two groups' rates): one of the two"
        )
    return weights is not None

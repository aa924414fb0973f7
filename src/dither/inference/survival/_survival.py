"""Survival curves and the log-rank test of rows in memory.

Layers 1 and 2 are `dither.inference.survival._counts`; 3 are `_curves` and `_logrank`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import DRAWS
from dither.inference.engine._inputs import Bounds, Floats, bounds_of, column, target
from dither.inference.engine._result import MEASURED, PrivateTest
from dither.inference.engine._simulation import Seed, SimulatedDraws
from dither.inference.estimates._quantiles import noise_drawn
from dither.inference.hypothesis._contingency import codes, levels_of
from dither.inference.rates._mantel_haenszel import yes_or_no
from dither.inference.survival._counts import (
    CENSORED,
    SurvivalCounts,
    SurvivalRelease,
    codes_of,
    edges_of,
)
from dither.inference.survival._curves import SurvivalEstimate, check_bins, curves_of
from dither.inference.survival._logrank import logrank_of
from dither.privacy import Loss, Neighbours

__all__ = ["BINS", "assumed_of", "kaplan_meier", "logrank_test"]

BINS = 20
"""Of time, where it is not said."""


def _counted(
    time: Any,
    event: Any,
    by: Any,
    levels: Any,
    bounds: Any,
    bins: int,
    censored: str,
    cost: tuple[Number, Number, Neighbours | str],
) -> tuple[SurvivalCounts, list[Any] | None, Floats, Loss, tuple[str, ...]]:
    """Release the counts of times."""
    asked, ends = target(*cost), bounds_of("bounds", bounds)
    spread = check.choice("censored", censored, CENSORED) == "spread"
    if (by is None) != (levels is None):
        raise ArgumentError("by and levels go together: one group a row, and all there can be")
    arms = None if by is None else levels_of("levels", levels)
    size = check_bins(bins, len(arms or [""]))
    times, seen = column("time", time), yes_or_no("event", event)
    arm = np.zeros(len(times), dtype=np.int64) if arms is None else codes("by", by, arms)
    if len({len(part) for part in (times, seen, arm)}) > 1:
        raise ArgumentError("time, event and by must have equally many rows")
    code, each = codes_of(times, seen, ends, size), 2 * size + 1
    cells = len(arms or [""]) * each
    design = SurvivalRelease(Bounds(Fraction(0), Fraction(cells)), cells, asked)
    noisy = design.release(np.where((code >= 0) & (arm >= 0), arm * each + code, -1).astype(float))
    counts = SurvivalCounts(
        design.tree,
        partial(noise_drawn, design.noise),
        design.tree.cumulative(noisy)[0],
        len(arms or [""]),
        size,
        spread,
    )
    edges = edges_of(ends, size)
    assumptions = ("rows are an independent sample", MEASURED, *assumed_of(edges, spread))
    return counts, arms, edges, design.loss, assumptions


def assumed_of(edges: Floats, spread: bool) -> tuple[str, ...]:
    """What is assumed of times."""
    where = "spread over a bin" if spread else "at the ends of bins"
    return (
        f"times are known to bins of {edges[1] - edges[0]:g}, censorings lie {where}",
        "censoring tells nothing of the event",
    )


@documented
def kaplan_meier(
    time: Any,
    event: Any,
    *,
    by: Any = None,
    levels: Sequence[Any] | None = None,
    bounds: Any = None,
    bins: int = BINS,
    censored: str = "spread",
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 0.5,
    draws: int = DRAWS,
    seed: Seed = None,
) -> SurvivalEstimate:
    """Kaplan-Meier curves, one an arm, with pointwise intervals and bands for whole curves.

    Parameters
    ----------
    time : sequence of float
        When each row had the event, or was last seen. A row is who is protected.
    event : sequence of bool or number
        Whether it was the event; anything but 0 is a yes.
    by : sequence, optional
        One arm a row.
    levels : sequence, optional
        The arms that there can be, known without looking at the data.
    bounds : (number, number)
        When watching begins, and ends: who is watched to the end or beyond is censored there.
    bins : int
        Into how many equal bins time is cut, from 2 to 500: the curve is known at their ends.
    censored : {"spread", "end"}
        Whether censorings are spread over a bin, as continuous times are, or lie at its end, after
        its events, as times in whole bins do.
    {costs}
    neighbours : {"replace", "add-remove"}
        Whether a row is replaced, or added or removed; numbers of rows are measured either way.
    null : float
        In (0, 1): the survival that ``pvalue`` tests at each end of a bin.
    {simulation}

    Returns
    -------
    SurvivalEstimate

    {raises}

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row with its arm, time and event being
    the unit. A row that misses something, or has an undeclared arm, is left out. All curves, bands
    and medians come from one release.

    References
    ----------
    Kaplan and Meier, JASA 1958; Nair, Technometrics 1984. `dither.inference.survival._curves` says
    what intervals are.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(2)
    >>> death, left = rng.exponential(5, 5_000), rng.uniform(0, 20, 5_000)
    >>> found = inference.kaplan_meier(
    ...     np.minimum(death, left), death <= left, bounds=(0, 20), epsilon=1)
    >>> band = found.band(0.9999)[0]
    >>> truth = np.exp(-found.edges[1:] / 5)
    >>> bool(np.all((band[:, 0] <= truth) & (truth <= band[:, 1])))
    True
    """
    against = check.number("null", null, above=0, below=1)
    cost = (epsilon, delta, neighbours)
    counts, arms, edges, loss, assumed = _counted(
        time, event, by, levels, bounds, bins, censored, cost
    )
    found = curves_of(counts, arms, edges, loss, assumed, "Kaplan-Meier survival", against)
    return found.simulated(draws=draws, seed=seed)  # type: ignore[return-value]


@documented
def logrank_test(
    time: Any,
    event: Any,
    by: Any,
    *,
    levels: Sequence[Any],
    bounds: Any = None,
    bins: int = BINS,
    censored: str = "spread",
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """The log-rank test that survival is the same in all arms.

    Parameters
    ----------
    time, event : sequence
        When each row had the event, or was last seen; and whether it was the event.
    by, levels : sequence
        One arm a row, and the arms that there can be, known without looking at the data.
    bounds : (number, number)
        When watching begins, and ends: who is watched to the end or beyond is censored there.
    bins : int
        Into how many equal bins time is cut, from 2 to 500.
    censored : {"spread", "end"}
        Whether censorings are spread over a bin, or lie at its end, as of `kaplan_meier`.
    {costs}
    neighbours : {"replace", "add-remove"}
        Whether a row is replaced, or added or removed.
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* As of `kaplan_meier`.

    *Level.* Numbers at risk, censoring and the common hazard are fitted to the noisy counts, so
    that the p-value is that of a parametric bootstrap.

    References
    ----------
    Mantel, Cancer Chemotherapy Reports 1966.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(2)
    >>> drug, left = rng.random(5_000) < 0.5, rng.uniform(0, 20, 5_000)
    >>> death = rng.exponential(np.where(drug, 6, 4))
    >>> found = inference.logrank_test(
    ...     np.minimum(death, left), death <= left, drug, levels=[False, True], bounds=(0, 20),
    ...     epsilon=1)
    >>> found.pvalue < 0.01
    True
    """
    check.draws(draws)
    if levels is None or by is None:
        raise ArgumentError("by and levels must be given: one arm a row, and all there can be")
    cost = (epsilon, delta, neighbours)
    counts, _, _, loss, assumed = _counted(time, event, by, levels, bounds, bins, censored, cost)
    rng = SimulatedDraws.fresh(seed)
    return logrank_of(counts, loss, assumed, "log-rank test", rng, draws)

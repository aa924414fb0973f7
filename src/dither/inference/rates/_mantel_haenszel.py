"""Mantel and Haenszel's common odds ratio, or risk ratio, over strata, with interval and test.

Release. Each row is in one cell of stratum, exposure and outcome, or in none: the counts leave as
those of `TableRelease` do. A row that is added or removed moves one of them by 1, one that is
replaced two.

Model. With a, b the exposed with and without the outcome, c, d the others, and N all in a stratum,
at the odds ratio ψ

    T(ψ) = Σ (a·d - ψ·b·c)/N,    of a risk ratio    T(θ) = Σ (a·(c + d) - θ·c·(a + b))/N,

have the middle 0. The noises of the four counts are independent, so that each product of two of
them is as far off on either side as the other: noise moves no middle, but for what is in N, which
is a weight alone and is kept above a few deviations of its noise.

Infer. At each value the chances of a stratum are those that give its margins, exposed and outcomes,
as they were released; binomial numbers of them with fresh noise give T, among which the released
one is placed (`dither.inference.engine._inverted`). The null of 1 is the test of Cochran, Mantel
and Haenszel, with the noise in statistic and null alike.

Source. Mantel and Haenszel, "Statistical aspects of the analysis of data from retrospective studies
of disease", JNCI 1959; Robins, Breslow and Greenland, Biometrics 1986, for the form of T.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference.engine._errors import DRAWS, Errors
from dither.inference.engine._inputs import Floats, column, target
from dither.inference.engine._inverted import InvertedErrors, count_drawn
from dither.inference.engine._result import MEASURED, PrivateEstimate, too_few_rows
from dither.inference.engine._simulation import Seed
from dither.inference.hypothesis._contingency import TableRelease, codes, levels_of
from dither.privacy import Loss, Neighbours

__all__ = ["MEASURES", "StrataModel", "mantel_haenszel", "ratio_over_strata"]

MEASURES = ("odds", "risk")
"""What may be asked for."""

_FEW = 3.0
"""Deviations of noise below which the number of a stratum is no weight; it promises nothing."""


@dataclass(frozen=True, eq=False)
class StrataModel:
    """Layers 2 and 3: a ratio from noisy counts of (stratum, exposed, outcome).

    Parameters
    ----------
    table : array of float, shape (S, 2, 2)
        As released: no and yes of either.
    draw : callable
        Of a generator and a shape, simulated noise of a count.
    deviation : float
        Of that noise.
    odds : bool
        Whether it is of odds; else of risks.
    """

    table: Floats
    draw: Callable[[np.random.Generator, tuple[int, ...]], Floats]
    deviation: float
    odds: bool

    def parts(self, tables: Floats) -> tuple[Floats, Floats]:
        """What the two sums of T are made of, for tables of shape (..., S, 2, 2)."""
        d, c = tables[..., 0, 0], tables[..., 0, 1]
        b, a = tables[..., 1, 0], tables[..., 1, 1]
        whole = np.maximum(a + b + c + d, max(1.0, 2 * _FEW * self.deviation))
        if self.odds:
            return (a * d / whole).sum(axis=-1), (b * c / whole).sum(axis=-1)
        return (a * (c + d) / whole).sum(axis=-1), (c * (a + b) / whole).sum(axis=-1)

    @cached_property
    def sums(self) -> tuple[float, float]:
        """Those of what was released."""
        upper, lower = self.parts(self.table)
        return float(upper), float(lower)

    @property
    def value(self) -> float:
        """The estimate: 0, or as large as is looked at, where one sum is drowned."""
        upper, lower = self.sums
        if upper <= 0:
            return 1.0 if lower <= 0 else 0.0
        return upper / lower if lower > 0 else math.inf

    @property
    def rows(self) -> float:
        """All that were counted."""
        return max(1.0, float(self.table.sum()))

    @cached_property
    def _margins(self) -> tuple[Floats, Floats, Floats]:
        """Others, exposed and outcomes of each stratum, as far as they can be."""
        sizes = np.maximum(self.table.sum(axis=2), 1.0)
        whole = sizes.sum(axis=1)
        found = np.clip(self.table[:, :, 1].sum(axis=1), 0.5, whole - 0.5)
        # The less the noise leaves of a stratum's own share, the more it is that of all.
        own = found / whole
        share = float(found.sum() / whole.sum())
        noise = 2 * self.deviation**2 / whole**2
        spread = max(1e-12, float(np.average((own - share) ** 2 - noise, weights=whole)))
        trust = spread / (spread + noise)
        return sizes[:, 0], sizes[:, 1], np.asarray(whole * (share + trust * (own - share)))

    def chances(self, value: float) -> tuple[Floats, Floats]:
        """Of an outcome among others and exposed, with this ratio and the margins, shape (S,)."""
        others, exposed, yes = self._margins
        if not self.odds:
            low = yes / (value * exposed + others)
            low = np.minimum(low, 1.0 / max(value, 1.0))
            return low, value * low
        # Of a·(others - yes + a) = ψ·(exposed - a)·(yes - a) the root that lies within the margins.
        line = others - yes + value * (exposed + yes)
        root = np.sqrt(np.maximum(line**2 + 4 * (1 - value) * value * exposed * yes, 0.0))
        both = np.clip(2 * value * exposed * yes / (line + root), 0.0, np.minimum(exposed, yes))
        return np.clip((yes - both) / others, 0.0, 1.0), np.clip(both / exposed, 0.0, 1.0)

    def errors(self, rng: np.random.Generator, size: int) -> Errors:
        """By simulated tests."""
        strata = len(self.table)
        z = rng.standard_normal((size, strata, 2))
        noise = self.draw(rng, (size, strata, 2, 2))
        sizes = np.stack(self._margins[:2], axis=1)
        _, lower = self.sums
        # Where the noise drowns the lower sum, that of the fitted chances, which is above 0.
        low, high = self.chances(1.0)
        mean = sizes * np.stack([low, high], axis=1)
        least = float(self.parts(np.stack([sizes - mean, mean], axis=-1))[1])
        slope = max(lower, 0.01 * least, 1e-9)
        simulated = partial(self._simulated, z, noise)
        return InvertedErrors(self.value, self._observed, simulated, slope=slope)

    def _observed(self, value: float) -> float:
        upper, lower = self.sums
        return upper - value * lower

    def _simulated(self, z: Floats, noise: Floats, value: float, noisy: bool) -> Floats:
        sizes = np.stack(self._margins[:2], axis=1)
        p = np.stack(self.chances(value), axis=1)
        yes = count_drawn(sizes * p, sizes * p * (1 - p), z, 1 - 2 * p)
        yes = np.minimum(yes, sizes)
        upper, lower = self.parts(np.stack([sizes - yes, yes], axis=-1) + (noise if noisy else 0.0))
        return np.asarray(upper - value * lower)


def ratio_over_strata(
    model: StrataModel, loss: Loss, assumptions: tuple[str, ...], title: str, null: float
) -> PrivateEstimate:
    """The estimate, of counts of rows in memory or of a table's."""
    notes = []
    needed = 20 * model.table.size * model.deviation
    if model.rows < needed / 4:
        notes.append(too_few_rows("the noise of a cell is much of its count", needed))
    return PrivateEstimate(
        title,
        loss,
        (*assumptions, f"the {'odds' if model.odds else 'risk'} ratio is the same in all strata"),
        tuple(notes),
        None,
        np.array([model.value]),
        round(model.rows),
        model.errors,
        null,
    )


def mantel_haenszel(
    outcome: Any,
    exposed: Any,
    strata: Any,
    *,
    categories: Sequence[Any],
    measure: str = "odds",
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 1.0,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateEstimate:
    """Mantel and Haenszel's ratio of the exposed to the others, over strata.

    Parameters
    ----------
    outcome, exposed : sequence of bool or number
        One answer a row; anything but 0 is a yes. A row is who is protected.
    strata : sequence
        One category a row.
    categories : sequence
        All strata that there can be, at least two, known without looking at the data.
    measure : {"odds", "risk"}
        The odds ratio, or the ratio of risks.
    epsilon : number
        What the release may cost; no delta is spent.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected.
    null : float
        Above 0: the ratio that ``pvalue`` tests. At 1 that is the test of Cochran, Mantel and
        Haenszel.
    draws : int
        Simulated releases, 100 to 10**6.
    seed : int, numpy.random.Generator or None
        Of the simulation.

    Returns
    -------
    PrivateEstimate
        Where the noise leaves a ratio open, its interval ends at 0 or infinity.

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row with its stratum, exposure and outcome being
    the unit. A row in which one is missing or not declared is left out.

    References
    ----------
    Mantel and Haenszel, JNCI 1959.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(3)
    >>> old, smokes = rng.random((2, 20_000)) < 0.4
    >>> ill = rng.random(20_000) < 0.1 + 0.1 * smokes + 0.2 * old
    >>> found = inference.mantel_haenszel(
    ...     ill, smokes, old, categories=[False, True], measure="risk", epsilon=1)
    >>> lower, upper = found.interval(0.999)
    >>> lower < 1.6 < upper, found.pvalue < 0.01
    (True, True)
    """
    asked = target(epsilon, 0, neighbours)
    odds = check.choice("measure", measure, MEASURES) == "odds"
    against = check.number("null", null, above=0)
    levels = levels_of("categories", categories)
    places = [codes("strata", strata, levels), yes_or_no("exposed", exposed)]
    places.append(yes_or_no("outcome", outcome))
    if len({len(place) for place in places}) > 1:
        raise ArgumentError("outcome, exposed and strata must have equally many rows")
    design = TableRelease((len(levels), 2, 2), asked)
    model = StrataModel(
        design.release(places), design.drawn, math.sqrt(design.noise.variance), odds
    )
    assumptions = ("rows are an independent sample", MEASURED)
    title = f"Mantel-Haenszel {measure} ratio"
    return ratio_over_strata(model, design.loss, assumptions, title, against).simulated(
        draws=draws, seed=seed
    )


def yes_or_no(name: str, values: Any) -> Any:
    """1 of a yes, 0 of a no, -1 of what is missing.

    Examples
    --------
    >>> yes_or_no("event", [True, 0, None, 2.5])
    array([ 1,  0, -1,  1])
    """
    found = column(name, values)
    return np.where(np.isnan(found), -1, (found != 0).astype(np.int64))

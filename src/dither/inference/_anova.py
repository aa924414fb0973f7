"""Analysis of variance: whether several groups have one mean, through sums of clamped values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference._clamped_models import GroupMeans
from dither.inference._clamped_sums import (
    LEAST,
    GroupMomentsRelease,
    law_of,
    points_of,
    result_of_moments,
)
from dither.inference._documented import documented
from dither.inference._errors import DRAWS
from dither.inference._groups import pooled
from dither.inference._inputs import bounds_of, target
from dither.inference._result import PrivateTest
from dither.inference._simulation import Seed, SimulatedDraws
from dither.privacy import Neighbours

__all__ = ["f_oneway"]


@documented
def f_oneway(
    *samples: Any,
    bounds: tuple[Number, Number],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Analysis of variance: whether several groups of one variance have one mean.

    Parameters
    ----------
    *samples : sequence of number
        The values of each group, at least 2 groups.
    bounds : (number, number)
        What values are clamped to, known without looking at the data.
    {pure_cost}
    {neighbours_of_groups}
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row with its group being the unit. `kruskal`
    needs no bounds and has more power.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> groups = [rng.normal(mean, 1, 900) for mean in (0, 0, 0.5)]
    >>> inference.f_oneway(*groups, bounds=(-3, 3), epsilon=1).pvalue < 0.01
    True
    """
    if len(samples) < 2:
        raise ArgumentError("samples must be at least two groups, one sequence of values each")
    asked, draws = target(epsilon, 0, neighbours), check.whole("draws", draws, 100)
    ends, k = bounds_of("bounds", bounds), len(samples)
    values, places = pooled([f"samples[{g}]" for g in range(k)], samples, asked)
    design = GroupMomentsRelease(asked, k)
    found = design.release((points_of(values, ends), places))
    counted = np.maximum(found[0::3], 1.0)
    n = max(2 * k, values.size if asked.replace else round(float(counted.sum())))
    sizes = np.maximum(2, np.rint(counted * n / counted.sum())).astype(int)
    mean = float(np.clip(found[1::3].sum() / n, -1, 1))
    between = float(np.sum(sizes * (np.clip(found[1::3] / sizes, -1, 1) - mean) ** 2)) / n
    null = law_of(mean, float(np.clip(found[2::3].sum() / n + 0.5 - between, 0, 1)))
    model, rng = GroupMeans(design), SimulatedDraws.fresh(seed)
    drawn = model.draw(rng, [null] * k, sizes, draws)
    chance = math.sqrt(n / k * max(null.moments(2)[1] - null.moments(1)[0] ** 2, LEAST))
    return result_of_moments(
        "analysis of variance",
        "all groups have one mean",
        design,
        model.statistic,
        found,
        drawn,
        chance,
        float(design.deviations[1]),
        n,
        "greater",
        ("values are normal, of one variance, before they are clamped",),
    )

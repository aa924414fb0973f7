"""Analysis of variance: whether several groups have one mean; `_means`."""

from __future__ import annotations

from typing import Any

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import DRAWS
from dither.inference.engine._inputs import bounds_of, column, target
from dither.inference.engine._result import PrivateTest
from dither.inference.engine._simulation import Seed, SimulatedDraws
from dither.inference.estimates._mean import SHAPES, Shape
from dither.inference.hypothesis._means import equal_means, errors_of_groups, on_rows
from dither.privacy import Neighbours

__all__ = ["f_oneway"]


@documented
def f_oneway(
    *samples: Any,
    bounds: tuple[Number, Number],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    shape: Shape = "any",
    equal_var: bool = True,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Analysis of variance: whether clamped values of several groups have one mean.

    Parameters
    ----------
    *samples : sequence of number
        The values of each group, at least 2 groups.
    bounds : (number, number)
        What values are clamped to, known without looking at the data.
    {pure_cost}
    {neighbours_of_groups}
    {shape}
    equal_var : bool
        Whether the groups have one variance. If not, it is Welch's analysis of variance, at the
        same price; where values are taken as normal it always is.
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row with its group being the unit. `kruskal`
    needs no bounds and has more power.

    *Level.* That of the same test of the clamped values, or less: conservative where the noise
    hides their variance.

    References
    ----------
    Welch, "On the comparison of several mean values: an alternative approach", Biometrika 1951.
    Swanberg, Globus-Harris, Griffith, Ritz, Groce and Bray, "Improved differentially private
    analysis of variance", PoPETs 2019, for the problem.

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
    asked, draws = target(epsilon, 0, neighbours), check.draws(draws)
    ends = bounds_of("bounds", bounds)
    check.choice("shape", shape, SHAPES)
    pooled = check.flag("equal_var", equal_var) and shape == "any"
    groups = [column(f"samples[{g}]", sample) for g, sample in enumerate(samples)]
    errors, loss, read, notes, n = errors_of_groups(
        groups, ends, asked, shape, pooled, SimulatedDraws.fresh(seed), draws
    )
    return equal_means(
        "analysis of variance" if equal_var else "Welch's analysis of variance",
        loss,
        errors,
        ("rows are an independent sample", read, on_rows(asked)),
        notes,
        n,
    )

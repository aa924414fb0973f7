"""Linear regression by formula, from moments that are released once.

The three layers: `MomentsRelease` (release), `LinearModel` (model and infer), and here what people
call and get. The functional mechanism is the same with other weights and another estimate.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.inference.engine._inputs import Floats, Target, target
from dither.inference.regression._boosted import BoostedModel, BoostedRelease
from dither.inference.regression._coefficients import RegressionEstimate, errors_of
from dither.inference.regression._formula import FormulaDesign, read_design
from dither.inference.regression._linear_models import LinearModel
from dither.inference.regression._moments import MomentsRelease
from dither.privacy import Neighbours

if TYPE_CHECKING:
    from dither.privacy import Loss

__all__ = [
    "estimate_of",
    "linear_regression",
    "moments_of",
    "regression_of",
]

_ASSUMED = (
    "rows are an independent sample",
    "residuals have one variance",
    "columns are those clamped to their bounds",
)


def squared_radius(terms: int, radius: Fraction | None, deviations: int = 3) -> Fraction:
    """The squared length that rows (1, z) are weighed down to, with S terms: q of `_moments`.

    Of S numbers that are spread evenly between their bounds the squared length has mean 1 + S/3 and
    variance 4·S/45. Without a radius q is so many deviations above that mean: with three hardly any
    such row weighs less than 1, with one few do, and less noise is needed.

    Examples
    --------
    >>> [round(float(squared_radius(s, None)), 2) for s in (1, 5, 10, 30)]
    [2.23, 4.67, 7.16, 15.9]
    """
    if radius is not None:
        return radius**2 * (terms + 1)
    # Squares of numbers spread evenly: 1/3 in the mean, 4/45 their variance, √S·2/(3·√5) of S.
    spread = Fraction(math.isqrt((terms << 40) // 5), 1 << 20)
    return 1 + Fraction(terms, 3) + Fraction(2 * deviations, 3) * spread


def length_of(terms: int, radius: Fraction | None) -> Fraction:
    """The same where noise is added again and again: without a radius the root mean square.

    Examples
    --------
    >>> [round(float(length_of(s, None)) ** 2, 3) for s in (1, 5, 10, 30)]
    [1.333, 2.667, 4.333, 11.0]
    """
    square = 1 + Fraction(terms, 3) if radius is None else squared_radius(terms, radius)
    return Fraction(math.isqrt(math.floor(square * (1 << 40))), 1 << 20)  # rounded down


def moments_of(
    design: FormulaDesign,
    asked: Target,
    *,
    functional: bool = False,
    radius: Fraction | None = None,
) -> MomentsRelease:
    """The release that a formula asks for: from public facts alone."""
    columns = design.columns
    zero = frozenset(
        (i, j)
        for i in range(len(columns))
        for j in range(i + 1, len(columns))
        if columns[i].excludes(columns[j])
    )
    numbers = len(design.terms) - design.factors
    return moments_for(
        len(columns), numbers, design.factors, zero, asked, functional=functional, radius=radius
    )


def moments_for(
    size: int,
    numbers: int,
    factors: int,
    zero: frozenset[tuple[int, int]],
    asked: Target,
    *,
    functional: bool = False,
    radius: Fraction | None = None,
) -> MomentsRelease:
    """The same for so many columns; arguments as of `MomentsRelease`."""
    # To replace a row moves sums further than to add one: more noise, and so shorter rows.
    longest = squared_radius(numbers + factors, radius, 1 if asked.replace else 3)
    made = MomentsRelease(size, numbers, factors, zero, asked, functional, longest)
    if radius is not None or not made.weighing:
        return made
    # With few terms the sharper bounds of rows that all weigh 1, and their weight, are worth more.
    plain = replace(made, longest=None)
    return made if made.noise.variance < 0.75 * plain.noise.variance else plain


def coefficients(design: FormulaDesign) -> tuple[Floats, Floats, Floats]:
    """Of slopes in units of the lattice: combinations, scales and offsets that are coefficients."""
    half, middle = float(design.response.half), float(design.response.middle)
    d = len(design.columns)
    ways, scale, offset = np.eye(d + 1), np.full(d + 1, half), np.zeros(d + 1)
    offset[0] = middle
    for j, c in enumerate(design.columns, 1):
        scale[j] = half / float(c.bounds.half)
        ways[0, j] = -float(c.bounds.middle) / float(c.bounds.half)
    return ways, scale, offset


def regression_of(
    design: FormulaDesign,
    released: Floats,
    loss: Loss,
    asked: Target,
    rows: int | None,
    *,
    functional: bool = False,
    radius: Fraction | None = None,
) -> RegressionEstimate:
    """Layers 2 and 3, from a release of `moments_of`: of rows in memory, or of an engine's sums.

    Parameters
    ----------
    design : FormulaDesign
    released : array of float
    loss : Loss
    asked : Target
    rows : int or None
        The public n, or None where it was measured.
    functional : bool
        Whether the release, and so the estimate, is that of the functional mechanism.
    radius : Fraction, optional
        That of `linear_regression`.
    """
    moments = moments_of(design, asked, functional=functional, radius=radius)
    model = LinearModel(moments, released, rows)
    assumptions = (
        *_ASSUMED,
        "n is as measured" if rows is None else "no value is missing",
        *(("the response is linear in the columns: long rows weigh less",) * moments.weighing),
    )
    title = f"linear regression {design.formula}" + (", functional mechanism" if functional else "")
    return estimate_of(design, model, loss, assumptions, title)


def estimate_of(
    design: FormulaDesign, model: LinearModel, loss: Loss, assumptions: tuple[str, ...], title: str
) -> RegressionEstimate:
    """The result of a model, whose columns have the bounds of the design."""
    ways, scale, offset = coefficients(design)
    offset = offset + ways @ model.at * scale

    determined = (model.n if model.rows is None else model.rows) > len(ways)
    notes = []
    if model.design.functional:
        notes.append(
            "the functional mechanism pulls every slope towards 0, the more so the fewer rows "
            "there are; intervals are those of what it released, and reach as far as the estimate"
        )
    elif model.drowned:
        notes.append(
            f"in {model.drowned} of {len(ways)} directions the regressors vary no more than the "
            "noise: estimates there are pulled towards 0, and their intervals are wide, or "
            "infinite where nothing released tells how large they are. More rows, a larger "
            "epsilon, tighter bounds or fewer terms would help."
        )
    return RegressionEstimate(
        title,
        loss,
        assumptions,
        tuple(notes),
        design.names,
        ways @ model.slopes * scale + offset,
        round(model.n) if model.rows is None else model.rows,
        partial(errors_of, model, ways, scale, offset),
        design=design,
        model=model,
        rsquared=model.rsquared if determined else math.nan,
        scale=model.variance * float(design.response.half) ** 2 if determined else math.nan,
    )


def linear_regression(
    formula: str,
    frame: Any,
    *,
    bounds: Any,
    epsilon: Number,
    delta: Number = 0,
    levels: Any = None,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    method: str = "moments",
    radius: Number | None = None,
) -> RegressionEstimate:
    """Linear regression by formula, with intervals that count sampling, noise and weak data.

    Parameters
    ----------
    formula : str
        Such as ``"cost ~ age + C(region)"``, as statsmodels takes it: sums, ``*``, ``:`` and
        functions of single values. What looks at the data (center, scale, poly, splines) is
        refused.
    frame : frame or mapping from names to columns
        A row is who is protected.
    bounds : mapping from names to (lower, upper)
        Public ends of every number; values beyond are clamped. They must not come from the data.
    epsilon, delta : number
        What the release may cost. Of Laplace and Gaussian noise the better one is used.
    levels : mapping from names to lists, optional
        Public values of every factor, the first as reference.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected and bought with noise.
    method : {"moments", "boosted", "functional"}
        "moments" releases sums of products once, jointly. "boosted" releases those of regressors,
        and then takes four steps along what each left of the response, cut to a quarter of its
        bounds: with many terms and few rows it explains more; delta must be above 0, and residuals
        beyond the cut must be as likely on either side.
        "functional" is the functional mechanism: Laplace noise on the coefficients of the sum of
        squared residuals, a ridge, and no direction that is not convex. It spends no delta. It is
        there for comparison: its error is larger.
    radius : number, optional
        In (0, 1]: rows whose regressors are longer than this share of the longest possible one
        weigh less, so that less noise is needed; the functional mechanism has no such weights.
        Without it, a length that rows of numbers that are spread evenly between their bounds
        hardly exceed, or few where rows are replaced, if that makes noise less; for "boosted", the
        root mean square of such lengths. Weights move no coefficient where the response is linear
        in the columns.

    Returns
    -------
    RegressionEstimate
        With ``params``, ``bse``, ``conf_int()``, ``pvalues``, ``rsquared`` and ``predict``.

    Raises
    ------
    ArgumentError
        The formula cannot be read or names what is not in the frame, a column has neither bounds
        nor levels, or an argument is out of range. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. A row
    that misses a value, or has a level that was not declared, counts as a row of middles and
    reference levels where rows are replaced and all weigh 1, and is left out elsewhere.

    *Errors.* The interval of a coefficient holds what the released moments do not reject, noise in
    the regressors included. A constant or collinear column has an infinite one. ``se`` is half the
    length of the 68 % interval, ``se_sampling`` that of least squares on the same rows.

    *Choice of weights.* The radius follows from the number of terms, and the weights of the moments
    from the longest row, never from the data. The constants in these rules were settled with public
    data sets in sight, on which ``benchmarks/inference/regression.py`` reports.

    *The functional mechanism* here has the sensitivity of numbers between bounds, computed for the
    formula: it is below the 2·(1 + 2d + d²) of the paper, d counting the intercept, and a guarantee
    does not rest on rows being scaled to norm 1 beforehand.

    References
    ----------
    Wang, "Revisiting differentially private linear regression", UAI 2018; Anderson and Rubin, 1949;
    Tang et al., "Improved differentially private regression via gradient boosting", SaTML 2024;
    Zhang, Zhang, Xiao, Yang and Winslett, "Functional mechanism", VLDB 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> age = rng.uniform(20, 90, 20_000)
    >>> cost = 100 + 5 * age + rng.normal(0, 60, 20_000)
    >>> found = inference.linear_regression(
    ...     "cost ~ age", {"age": age, "cost": cost},
    ...     bounds={"age": (0, 100), "cost": (0, 1000)}, epsilon=1)
    >>> lower, upper = found.conf_int(1e-6)["age"]
    >>> lower < 5 < upper, 0.5 < found.rsquared < 1, found.loss.charge.epsilon
    (True, True, Fraction(1, 1))
    """
    asked = target(epsilon, delta, neighbours)
    check.choice("method", method, ("moments", "boosted", "functional"))
    design = read_design(formula, bounds, levels)
    points = design.rows(frame)
    share = None if radius is None else check.exact("radius", radius, above=0, most=1)
    rows = len(points) if asked.replace else None
    if method == "boosted":
        reach = length_of(len(design.terms), share)
        made = BoostedRelease(len(design.columns), asked, reach)
        model = BoostedModel(made.release(points), rows)
        assumptions = (
            *_ASSUMED,
            "the response is linear in the columns: long rows weigh less",
            "residuals beyond a quarter of the bounds are as likely on either side",
        )
        title = f"linear regression {design.formula}, boosted"
        return estimate_of(design, model, made.loss, assumptions, title)
    more: dict[str, Any] = {"functional": method == "functional", "radius": share}
    released = moments_of(design, asked, **more).release(points)
    return regression_of(design, released.values, released.loss, asked, rows, **more)

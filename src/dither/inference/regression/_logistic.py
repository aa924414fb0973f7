"""Logistic regression by formula: coefficients with intervals, and predictions.

Layer 1 is `DescentRelease` or `ObjectiveRelease`, layers 2 and 3 are `ScoreModel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.inference.engine._inputs import Bounds, Floats, target
from dither.inference.regression._coefficients import Coefficients, errors_of
from dither.inference.regression._descent import DescentRelease
from dither.inference.regression._formula import MISSING, FormulaDesign, read_design
from dither.inference.regression._linear_regression import coefficients, length_of
from dither.inference.regression._objective import ObjectiveRelease
from dither.inference.regression._scores import ScoreModel
from dither.privacy import Loss, Neighbours

__all__ = ["LogisticEstimate", "logistic_of", "logistic_regression"]

_NAMED = 8


@dataclass(frozen=True, eq=False, repr=False)
class LogisticEstimate(Coefficients):
    """Coefficients of the log odds with errors of sampling and noise, and predictions from them.

    ``estimate``, ``se``, ``interval()`` and ``pvalue`` are arrays in the order of ``names``;
    ``params`` and ``bse`` are the same by name.

    Parameters
    ----------
    design : FormulaDesign
        The formula, with the bounds and levels that it was read with.
    model : object
        Layer 2: what simulates the release.
    rows : int
        The public n; 0 where it is not public, since it is not measured.
    """

    def predict(self, frame: Any) -> Floats:
        """The probability of a yes for each row of a frame; costs nothing.

        Parameters
        ----------
        frame : frame or mapping
            With the columns of the regressors. A row that misses something is taken to be one of
            middles and reference levels.
        """
        points = self.design.points(frame)
        points = np.where(points == MISSING, 0, points)
        slopes = self.model.at + self.model.slopes
        margin = slopes[0] + points @ slopes[1:] / Bounds.steps
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(margin, -700.0, 700.0))))

    @property
    def valid(self) -> dict[str, bool]:
        """By name, whether 95 % intervals and p-values hold as often as they say.

        They do not where the curve of the log likelihood changes too much between where it was
        measured and the ends of the interval: where noise is large, and the more so the steeper a
        slope is. Known from what was released, it costs nothing.
        """
        held = self.model.valid(coefficients(self.design)[0])
        return {n: bool(v) for n, v in zip(self._labels, held, strict=True)}

    @property
    def _head(self) -> str:
        public = self.loss.neighbours is Neighbours.REPLACE
        return super()._head if public else f"{self.title}; the number of rows is not measured."


def logistic_regression(
    formula: str,
    frame: Any,
    *,
    bounds: Any,
    epsilon: Number,
    delta: Number,
    levels: Any = None,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    method: str = "descent",
    radius: Number | None = None,
) -> LogisticEstimate:
    """Logistic regression by formula: coefficients with intervals, and predictions.

    Parameters
    ----------
    formula : str
        Such as ``"ill ~ age + C(region)"``: as `linear_regression` takes it. The response is a
        column of yes and no: anything but 0 is a yes.
    frame : frame or mapping from names to columns
        A row is who is protected.
    bounds : mapping from names to (lower, upper)
        Public ends of every number among the regressors.
    epsilon, delta : number
        What all that is released may cost together; delta above 0.
    levels : mapping from names to lists, optional
        Public values of every factor, the first as reference.
    neighbours : {"replace", "add-remove"}
    method : {"descent", "objective"}
        "descent" takes a few steps along noisy gradients, preconditioned by a noisy Gram matrix.
        "objective" minimises a loss to which a random slope and a ridge are added, once.
    radius : number, optional
        In (0, 1]: rows whose regressors are longer than this share of the longest possible one
        weigh less, so that less noise is needed. Without it, √((1 + S/3)/(1 + S)) for S terms: the
        length of a row of numbers that are spread evenly between their bounds.

    Returns
    -------
    LogisticEstimate
        With ``params``, ``bse``, ``conf_int()``, ``pvalues`` and ``predict``.

    Raises
    ------
    ArgumentError
        As of `linear_regression`. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. A row that misses a
    value adds nothing.

    *Errors.* Intervals count sampling and the noise of everything that was released. They are
    infinite where the noise drowns what the rows tell. They rest on the curve of the log likelihood
    near the estimate. Where they reach further than that curve can be taken to hold, because noise
    is large or answers turn from nearly never to nearly always within the bounds, ``valid`` and a
    note say that they are not valid.

    *Weights* depend on regressors alone and so move no coefficient where the log odds are linear.

    References
    ----------
    Song, Chaudhuri and Sarwate, "Stochastic gradient descent with differentially private updates",
    2013; Kifer, Smith and Thakurta, "Private convex empirical risk minimization", COLT 2012;
    Redberg, Koskela and Wang, "Improving the privacy and practicality of objective perturbation",
    NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(7)
    >>> age = rng.uniform(20, 90, 20_000)
    >>> ill = rng.random(20_000) < 1 / (1 + np.exp(-(age - 60) / 8))
    >>> found = inference.logistic_regression(
    ...     "ill ~ age", {"age": age, "ill": ill}, bounds={"age": (0, 100)}, epsilon=1, delta=1e-6)
    >>> low, high = found.predict({"age": [40, 80]})
    >>> bool(low < 0.3), bool(high > 0.7), found.loss.charge.epsilon
    (True, True, Fraction(1, 1))
    >>> lower, upper = found.conf_int()["age"]
    >>> bool(0.1 < lower < upper < 0.15), all(found.valid.values())
    (True, True)
    """
    asked = target(epsilon, delta, neighbours)
    check.choice("method", method, ("descent", "objective"))
    design = read_design(formula, bounds, levels, binary=True)
    share = None if radius is None else check.exact("radius", radius, above=0, most=1)
    terms = len(design.terms)
    reach = length_of(terms, share)
    kind = DescentRelease if method == "descent" else ObjectiveRelease
    release = kind(len(design.columns), terms, asked, reach)
    points = design.rows(frame)
    title = f"logistic regression {design.formula}" + ("" if method == "descent" else f", {method}")
    return logistic_of(
        design,
        ScoreModel(release.release(points)),
        release.loss,
        title,
        len(points) if asked.replace else 0,
    )


def logistic_of(
    design: FormulaDesign, model: ScoreModel, loss: Loss, title: str, rows: int
) -> LogisticEstimate:
    """Layers 2 and 3, of what a release told of rows in memory, or of an engine's."""
    ways, scale, offset = coefficients(design)
    base = ways @ model.at * scale + offset

    notes = []
    if model.drowned:
        notes.append(
            f"in {model.drowned} of {len(ways)} directions the rows tell no more than the noise: "
            "intervals there are wide, or infinite. More rows, a larger epsilon, tighter bounds or "
            "fewer terms would help."
        )
    doubtful = [n for n, v in zip(design.names, model.valid(ways), strict=True) if not v]
    if doubtful:
        notes.append(
            f"the intervals and p-values of {_listed(doubtful)} are not valid: they reach further "
            "than the curve of the likelihood that was measured can be taken to hold. More rows, "
            "a larger epsilon, tighter bounds or fewer terms would help."
        )
    assumptions = (
        "rows are an independent sample",
        "log odds are linear in the columns",
        "columns are those clamped to their bounds",
        "no value is missing",
    )
    return LogisticEstimate(
        title,
        loss,
        assumptions,
        tuple(notes),
        design.names,
        ways @ model.slopes * scale + base,
        rows,
        partial(errors_of, model, ways, scale, base),
        design=design,
        model=model,
    )


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")

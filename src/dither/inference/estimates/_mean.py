"""The mean of one number per row, and how two readings of clamped values are told.

What is released, how far a row moves it, and how an interval follows: of values of whatever law
`_group_sums` and `_free_means`, of normal ones `_normal_mean`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import number_text
from dither.inference.engine._documented import documented
from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._inputs import Bounds, Floats, bounds_of, column, target
from dither.inference.engine._result import MEASURED, PrivateEstimate, too_few_rows
from dither.inference.estimates._free_means import FreeMeans
from dither.inference.estimates._normal_mean import MeanModel, MeanRelease
from dither.privacy import Loss, Neighbours

__all__ = [
    "SHAPES",
    "WIDE",
    "Shape",
    "mean",
    "noisy_means",
    "normal_notes",
    "of_clamped",
    "of_normal",
]

Shape = Literal["any", "normal"]

SHAPES = ("any", "normal")
"""What may be assumed of values."""

WIDE, _WANTED = 0.25, 0.05
"""Half-ranges: deviations of the noise in a mean that are much, and that are little."""

NOT_MISSING = "no value is missing (one that is counts as the middle of the bounds)"


@documented
def mean(
    x: Any,
    *,
    bounds: Any = None,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    shape: Shape = "any",
    null: float = 0.0,
) -> PrivateEstimate:
    """The mean of one number per row, with an interval that counts sampling and noise.

    Parameters
    ----------
    x : sequence of float
        One value a row; a row is who is protected.
    bounds : (number, number)
        Public ends; values beyond are clamped. They must not come from the data.
    epsilon, delta : number
        What the release may cost. Of Laplace and Gaussian noise the better one is used, so that a
        delta may go unspent.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected and bought with noise.
    {shape}
    null : float
        What ``pvalue`` tests.

    Returns
    -------
    PrivateEstimate

    Raises
    ------
    ArgumentError
        Bounds are missing or the wrong way round, or an argument is out of range. No value of the
        data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. Missing values count
    as the middle of the bounds where rows are replaced, and are left out where they are added or
    removed.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> cost = np.random.default_rng(1).normal(4, 2, 2000)
    >>> found = inference.mean(cost, bounds=(0, 9), epsilon=1)
    >>> lower, upper = found.interval(0.999999)
    >>> lower < 4 < upper, found.loss.charge.epsilon
    (True, Fraction(1, 1))
    """
    ends, asked = bounds_of("bounds", bounds), target(epsilon, delta, neighbours)
    check.choice("shape", shape, SHAPES)
    against = check.number("null", null)
    values = column("x", x)
    rows = len(values) if asked.replace else None
    if shape == "normal":
        normal = MeanRelease(ends, asked)
        seen = normal.release(values)
        return _normal(MeanModel(normal, seen.values, rows), seen.loss, against)
    design = GroupSumsRelease(ends, asked)
    released = design.release([values])
    model = FreeMeans(design.moments(released.values, [len(values)]), design.drawn)
    at = model.clipped[0] * float(ends.half) + float(ends.middle)
    return PrivateEstimate(
        "mean",
        released.loss,
        (
            "rows are an independent sample",
            of_clamped(ends),
            MEASURED if rows is None else NOT_MISSING,
        ),
        noisy_means(model.noise_of_means, model.n),
        None,
        np.array([at]),
        round(float(model.n[0])) if rows is None else rows,
        partial(model.errors, bounds=ends),
        against,
    )


def of_clamped(bounds: Bounds, what: str = "the mean is that") -> str:
    """What is estimated where nothing is assumed of the shape.

    Examples
    --------
    >>> of_clamped(bounds_of("bounds", (0, 9)))
    'the mean is that of values clamped to [0, 9]'
    """
    return f"{what} of values clamped to [{number_text(bounds.lower)}, {number_text(bounds.upper)}]"


def noisy_means(noise: Floats, rows: Floats, where: str = "") -> tuple[str, ...]:
    """The note that the noise of a mean, in half-ranges, spans much of its bounds.

    Parameters
    ----------
    noise, rows : array of float, shape (k,)
        Deviations of the noise of each group's mean, and numbers of rows.
    where : str
        Such as "in a group ".
    """
    worst = int(np.argmax(noise))
    if noise[worst] <= WIDE:
        return ()
    times = float(noise[worst]) / _WANTED
    reason = f"{where}the noise spans much of the bounds"
    return (too_few_rows(reason, float(rows[worst]) * times, times),)


def of_normal(model: MeanModel) -> str:
    """What a reading of normal values assumes, once it was checked."""
    bounds, cut = model.design.bounds, model.law.cut
    ends = (number_text(bounds.lower), number_text(bounds.upper))
    if not any(cut):
        return of_clamped(bounds)
    sides = {(True, True): f"{ends[0]} and {ends[1]}", (True, False): ends[0]}
    return f"values are normal before they are clamped at {sides.get(cut, ends[1])}"


def normal_notes(models: list[MeanModel]) -> tuple[str, ...]:
    """What was released that speaks against normal values, or for other bounds."""
    notes = []
    for model in models:
        ends = (number_text(model.design.bounds.lower), number_text(model.design.bounds.upper))
        if model.law.cut != (True, True):
            held = zip(ends, model.law.cut, strict=True)
            natural = " and ".join(end for end, cut in held if not cut)
            notes.append(
                f"far fewer values lie beyond {natural} than a normal law would have there: "
                "nothing is taken to be cut off on that side."
            )
        elif not model.reach[0] <= model.law.mean <= model.reach[1]:
            notes.append(_NOT_SEEN)
        elif model.unseen:
            notes.append(_HIDDEN)
    if not models:
        return ()
    noise = np.array([model.noise_of_mean for model in models])
    wide = noisy_means(noise, np.array([model.n for model in models]))
    if not wide and any(model.influence is None for model in models):
        wide = (
            "nearly all values lie beyond a bound: what was released does not say where the mean "
            "is. Declare wider bounds.",
        )
    return (*dict.fromkeys(notes), *wide)


_HIDDEN = (
    "the noise hides whether as many values lie beyond the bounds as a normal law has there: what "
    "is given back for clamping rests on that law alone."
)
_NOT_SEEN = (
    "a normal law would have its mean beyond the bounds, where no values are seen to lie: the mean "
    'is taken to lie within them. shape="any" asks for that of the clamped values.'
)


def _normal(model: MeanModel, loss: Loss, null: float) -> PrivateEstimate:
    return PrivateEstimate(
        "mean",
        loss,
        (
            "rows are an independent sample",
            of_normal(model),
            MEASURED if model.rows is None else NOT_MISSING,
        ),
        normal_notes([model]),
        None,
        np.array([model.at]),
        round(model.n) if model.rows is None else model.rows,
        model.errors,
        null,
    )

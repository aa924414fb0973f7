"""Describe rows that a caller holds: ``inference.describe(frame, by="arm", ...)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError, nearest
from dither.inference.engine._inputs import Bounds, bounds_of, column, target
from dither.inference.engine._result import MEASURED
from dither.inference.hypothesis._contingency import codes, levels_of
from dither.inference.paper._described import (
    ALL,
    CategoryFacts,
    DescribedRows,
    NumberFacts,
    PrivateDescription,
    described,
)
from dither.inference.paper._release import DescriptionRelease, exact_description
from dither.privacy import Neighbours

__all__ = ["BINS", "describe", "facts_of_number", "level_names"]

BINS = 256
"""Into how many bins a number falls for its quartiles, where it is not said."""


def describe(
    frame: Any,
    *,
    epsilon: Number,
    by: str | None = None,
    bounds: Mapping[str, tuple[Number, Number]] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    bins: int = BINS,
) -> PrivateDescription:
    """ "Table 1" of a paper in one charge: who was studied, by group and in all.

    Of each number the mean, the standard deviation, the median and the quartiles; of each category
    counts and shares; with groups, standardised differences from the first one.

    Parameters
    ----------
    frame : frame, or mapping from names to columns
        A row is who is protected.
    epsilon, delta : number
        What the release may cost, in all. A delta buys much where there are many columns.
    by : str, optional
        The column of the groups, with its ``levels``. Who is in which group is private.
    bounds : mapping of str to (number, number), optional
        The columns that are numbers, each with public ends that values are clamped to.
    levels : mapping of str to sequence, optional
        The columns that are categories, each with its public levels.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public. How many are in each group never is.
    bins : int
        Into how many equal parts bounds are divided for quartiles: no quartile is finer. From 2 to
        4,096.

    Returns
    -------
    PrivateDescription
        A table in a terminal and in notebooks; `to_frame`, `to_latex`, `to_html` and `plot`.

    Raises
    ------
    ArgumentError
        A column is not there, has neither bounds nor levels, or an argument is out of range. No
        value of the data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit; epsilon-DP where
    delta is 0. The sensitivity is proved in `dither.inference.paper._release`.

    *How the charge is split.* The moments of a number, its ranks, and the counts of a category
    weigh alike; sizes of groups half as much. So a number costs what two categories do.

    *Intervals* of means, deviations, quartiles, shares and differences count who was sampled and
    the noise; those of counts and sizes are about the noise. ``intervals(simultaneous=True)`` gives
    intervals that hold together. What is missing in a column is left out of that column alone; what
    is not among the levels of ``by`` is left out of all.

    References
    ----------
    Austin, "Balance diagnostics for comparing the distribution of baseline covariates", Statistics
    in Medicine 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> arm = rng.choice(["placebo", "drug"], 4000)
    >>> frame = {"arm": arm, "age": rng.normal(50, 10, 4000), "sex": rng.choice(["f", "m"], 4000)}
    >>> found = inference.describe(
    ...     frame, by="arm", bounds={"age": (0, 100)},
    ...     levels={"arm": ["placebo", "drug"], "sex": ["f", "m"]}, epsilon=1)
    >>> mean, lower, upper = found.number("age", "mean", group="drug")
    >>> lower < mean < upper, 47 < mean < 53
    (True, True)
    """
    asked, size = target(epsilon, delta, neighbours), check.whole("bins", bins, 2, 4096)
    ends = {n: bounds_of(f"bounds[{n!r}]", pair) for n, pair in _named("bounds", bounds).items()}
    listed = {
        n: levels_of(f"levels[{n!r}]", given) for n, given in _named("levels", levels).items()
    }
    if both := sorted(set(ends) & set(listed)):
        raise ArgumentError(f"{both[0]!r} has both bounds and levels: a column has one of them")
    if by is not None and not isinstance(by, str):
        raise ArgumentError("by must be the name of a column")
    if by is not None and by not in listed:
        raise ArgumentError(f"levels must name the groups: levels={{{by!r}: [...]}}")
    names = _columns_of(frame)
    for name in [*ends, *listed]:
        if name not in names:
            raise ArgumentError(f"frame: no column {name!r}" + nearest(str(name), names))
    shown = [n for n in names if n != by and (n in ends or n in listed)]
    if not shown:
        raise ArgumentError("give bounds= or levels= of at least one column to describe")
    read: dict[str, Any] = {
        n: column(f"column {n!r} of frame", frame[n])
        if n in ends
        else codes(f"column {n!r} of frame", frame[n], listed[n])
        for n in [*shown, *([] if by is None else [by])]
    }
    if len({len(values) for values in read.values()}) > 1:
        raise ArgumentError("frame must have columns of one length")
    n = len(read[shown[0]])
    where = np.zeros(n, dtype=np.int64) if by is None else read[by]
    groups = (ALL,) if by is None else level_names(listed[by])
    design = DescriptionRelease(
        len(groups),
        tuple(size for name in shown if name in ends),
        tuple(len(listed[name]) for name in shown if name in listed),
        asked,
        sized=by is not None or not asked.replace,
    )
    exact = exact_description(
        where,
        len(groups),
        [(read[name], ends[name], size) for name in shown if name in ends],
        [(read[name], len(listed[name])) for name in shown if name in listed],
    )
    facts = [
        facts_of_number(name, ends[name], size)
        if name in ends
        else CategoryFacts(name, level_names(listed[name]))
        for name in shown
    ]
    assumptions = ["rows are an independent sample"]
    if not asked.replace or by is not None:
        assumptions.append(MEASURED)
    return described(
        DescribedRows(by, groups, tuple(facts)),
        design,
        design.release(exact).values,
        tuple(assumptions),
        None if design.sized else n,
    )


def facts_of_number(name: str, bounds: Bounds, bins: int) -> NumberFacts:
    """What is public of a number between bounds, in equal bins."""
    low, high = float(bounds.lower), float(bounds.upper)
    edges = tuple(float(edge) for edge in np.linspace(low, high, bins + 1))
    return NumberFacts(name, float(bounds.middle), float(bounds.half), edges)


def level_names(levels: Sequence[Any]) -> tuple[str, ...]:
    """Levels as they are shown, each in its own words.

    Examples
    --------
    >>> level_names([False, 1, "1"])
    ('false', '1', "'1'")
    """
    told = [str(v).lower() if isinstance(v, bool) else str(v) for v in levels]
    return tuple(
        t if told.count(t) == 1 or not isinstance(v, str) else repr(v)
        for t, v in zip(told, levels, strict=True)
    )


def _named(argument: str, given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ArgumentError(f"{argument} must be a mapping from names of columns")
    return dict(given)


def _columns_of(frame: Any) -> list[str]:
    if isinstance(frame, Mapping):
        names = list(frame)
    elif hasattr(frame, "columns") and hasattr(frame, "shape"):
        names = list(getattr(frame, "column_names", None) or frame.columns)
    else:
        raise ArgumentError("frame must be a frame, or a mapping from names to columns")
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError("frame must have columns, named by texts")
    return names

"""Several results in one picture: a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._format import level
from dither.errors import ArgumentError
from dither.inference.engine._result import PrivateEstimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["estimates_in", "forest_plot"]


def forest_plot(
    results: Mapping[str, PrivateEstimate] | Sequence[PrivateEstimate] | PrivateEstimate,
    *,
    confidence: float = 0.95,
    null: float | None = 0.0,
    log: bool = False,
    title: str = "",
    axis: str = "",
    path: str | Path | None = None,
) -> Figure:
    """Draw several estimates below one another, with their intervals and numbers: a forest plot.

    Parameters
    ----------
    results : mapping of str to PrivateEstimate, sequence of PrivateEstimate, or PrivateEstimate
        By the names that are shown; each result's own title, and the names of its numbers, stand
        where there are none.
    confidence : float
        In (0, 1), of the intervals: each by itself.
    null : float or None
        Where a line says that there is no effect; 1 for ratios.
    log : bool
        Whether they are ratios, on a scale of logarithms.
    title, axis : str
        What stands above, and below.
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ArgumentError
        There is nothing to draw, or something that is no estimate.

    Notes
    -----
    It is post-processing, and costs nothing. The sum of what the results cost stands below.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> found = {
    ...     name: inference.difference(
    ...         rng.normal(0, 1, 500), rng.normal(0.2, 1, 500), bounds=(-4, 4), epsilon=1)
    ...     for name in ("north", "south")
    ... }
    >>> len(inference.forest_plot(found, title="difference of means").axes)
    1
    """
    inside = check.confidence(confidence)
    at = None if null is None else check.number("null", null)
    if check.flag("log", log) and at is not None and at <= 0:
        raise ArgumentError("null must be above 0 on a scale of logarithms, such as 1; or None")
    for name, text in (("title", title), ("axis", axis)):
        if not isinstance(text, str):
            raise ArgumentError(f"{name} must be a text")
    read = estimates_in(results)
    names, told = [], []
    for name, result in read:
        ends = result.errors.interval(inside)
        for j, value in enumerate(np.reshape(result.values, -1)):
            part = "" if result.names is None else result.names[j]
            names.append(": ".join(text for text in (name, part) if text))
            told.append((float(value), float(ends[j, 0]), float(ends[j, 1])))
    from dither.plots._forest import draw_forest

    costs = dict.fromkeys(result.cost for _, result in read)
    each = "each " if len(costs) == 1 and len(read) > 1 else ""
    foot = f"bars are {level(inside)} intervals; {each}{'; '.join(list(costs)[:3])}"
    return draw_forest(
        names, told, title=title or "estimates", foot=foot, null=at, log=log, axis=axis, path=path
    )


def estimates_in(results: Any) -> list[tuple[str, PrivateEstimate]]:
    """Estimates by name.

    Raises
    ------
    ArgumentError
        There is none, or something else.
    """
    if isinstance(results, PrivateEstimate):
        results = {"" if results.names else results.title: results}
    if isinstance(results, Sequence) and not isinstance(results, str | bytes):
        results = list(results)
        if all(isinstance(one, PrivateEstimate) for one in results):
            results = [(one.title, one) for one in results]
    elif isinstance(results, Mapping):
        results = list(results.items())
    else:
        results = []
    for pair in results:
        if not (isinstance(pair, tuple) and isinstance(pair[0], str)):
            results = []
            break
        if not isinstance(pair[1], PrivateEstimate):
            raise ArgumentError(
                "results must be estimates: a test has no interval, and a question has to be "
                "released first"
            )
    if not results:
        raise ArgumentError("results must be estimates by name, such as {'north': found}")
    return list(results)

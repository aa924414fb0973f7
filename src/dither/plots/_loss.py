"""A privacy loss in three pictures: its profile, the attacker's trade-off, its law."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.plots._canvas import COLOURS, MUTED, WIDTH, finish, heading, new_figure, tidy
from dither.plots._theorems import bars_of_theorems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.accounting import EveryTheorem
    from dither.privacy import Bound, Loss

__all__ = ["draw_loss"]

_POINTS = 49

_SEEN = 0.01
"""A relative width that shows in a picture."""

_LEAST = 1e-16
"""Deltas below are drawn here: no picture shows the difference."""

Floats = npt.NDArray[np.float64]


def draw_loss(
    loss: Loss, path: str | Path | None = None, *, table: EveryTheorem | None = None
) -> Figure:
    """Draw delta against epsilon, misses against false alarms, and the law of the loss.

    Parameters
    ----------
    loss : Loss
        What is drawn.
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.
    table : EveryTheorem, optional
        The loss's epsilon by every theorem, drawn below.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if table is None:
        figure = new_figure(WIDTH * 1.4, 4.0)
        left, middle, right = figure.subplots(1, 3)
    else:
        rows = sum(row.value is not None for row in table.rows)
        low = 0.9 + 0.3 * rows
        figure = new_figure(WIDTH * 1.4, 4.0 + low)
        grid = figure.add_gridspec(2, 3, height_ratios=[3.4, low])
        left, middle, right = (figure.add_subplot(grid[0, i]) for i in range(3))
        below = figure.add_subplot(grid[1, :])
        bars_of_theorems(below, table)
        heading(below, "epsilon by every method" + _at(table))
    top = float(loss.epsilon(1e-9)) if _reaches(loss, 1e-9) else 10.0
    epsilons = np.linspace(0.0, max(top, 1e-3), _POINTS)
    found = loss.profile(epsilons.tolist())
    _profile(left, loss, epsilons, found)
    _tradeoff(middle, loss, epsilons, found)
    _law(right, loss)
    foot = f"{loss.describe()}; neighbours: {loss.neighbours.value}"
    if loss.one_sided:
        foot += ". Dashed: a bound that is proved from one side only; less may be lost"
    elif any(bound.width > _SEEN * bound.upper for bound in found):
        foot += ". Shaded: between the bounds, where the loss lies"
    return finish(figure, title="What the loss reveals", foot=foot, path=path)


def _at(table: EveryTheorem) -> str:
    return ", at" + table.title.rpartition(" at")[2]


def _profile(axes: Axes, loss: Loss, epsilons: Floats, found: Sequence[Bound]) -> None:
    upper = [max(bound.upper, _LEAST) for bound in found]
    floor = min(upper) / 10 if loss.one_sided else _LEAST
    lower = [min(max(bound.lower, floor), high) for bound, high in zip(found, upper, strict=True)]
    axes.set_yscale("log")
    _curve(axes, epsilons, upper, lower, COLOURS[0], loss)
    tidy(axes, values="x")
    axes.set_xlabel("epsilon")
    heading(axes, "privacy profile: delta" + (", at most" if loss.one_sided else ""))


def _tradeoff(axes: Axes, loss: Loss, epsilons: Floats, found: Sequence[Bound]) -> None:
    fpr = np.linspace(0.0, 1.0, 201)
    least = 1 - _caught(fpr, epsilons, np.array([bound.upper for bound in found]))
    most = 1 - _caught(fpr, epsilons, np.array([bound.lower for bound in found]))
    axes.plot(fpr, 1 - fpr, color=MUTED, linewidth=1, linestyle=":")
    _curve(axes, fpr, least, most, COLOURS[1], loss)
    tidy(axes, values="x")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("false alarms")
    heading(axes, "least misses of any attacker" + (", at least" if loss.one_sided else ""))


def _caught(fpr: Floats, epsilons: Floats, deltas: Floats) -> Floats:
    """The most true alarms that a profile allows: the least of all its tests' lines.

    The line of -epsilon is that of epsilon with the two laws exchanged, and so are its errors.
    """
    grow, shrink = np.exp(epsilons)[:, None], np.exp(-epsilons)[:, None]
    known = deltas[:, None] + grow * fpr
    swapped = 1 - shrink + shrink * (deltas[:, None] + fpr)
    best: Floats = np.minimum(known.min(axis=0), swapped.min(axis=0))
    return np.minimum(best, 1.0)


def _curve(
    axes: Axes, x: Floats, proved: Sequence[float] | Floats, other: Any, colour: str, loss: Loss
) -> None:
    """The end that a guarantee quotes, and how far away the truth may be.

    Of a loss that is only bounded from above nothing is known to come near that end: the line is
    dashed then, and what it leaves open is shaded up to where an attack that learns nothing lies.
    """
    if not loss.one_sided:
        axes.fill_between(x, proved, other, color=colour, alpha=0.18, linewidth=0)
        axes.plot(x, proved, color=colour, linewidth=2)
        return
    axes.fill_between(x, proved, other, color=colour, alpha=0.1, linewidth=0)
    axes.plot(x, proved, color=colour, linewidth=2, linestyle=(0, (4, 2)))


def _law(axes: Axes, loss: Loss) -> None:
    tidy(axes, values="x")
    heading(axes, "law of the privacy loss")
    points = masses = np.zeros(1)
    message = "infinite: the output reveals all"
    if loss.advantage().lower < 1 - 1e-9:
        try:
            points, masses = loss.loss_distribution()
        except ArgumentError:
            message = "only bounded, not known"
    if not masses.sum() > 0:
        axes.text(0.5, 0.5, message, ha="center", transform=axes.transAxes)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    mean = float((points * masses).sum() / masses.sum())
    spread = math.sqrt(max(float(((points - mean) ** 2 * masses).sum()), 1e-12))
    seen = points[masses > 1e-9]
    low = max(mean - 5 * spread, float(np.min(seen)) - 0.1 * spread)
    high = min(mean + 5 * spread, float(np.max(seen)) + 0.1 * spread)
    edges = np.linspace(low, high, 61)
    heights, _ = np.histogram(points, edges, weights=masses)
    axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=COLOURS[2])
    axes.axvline(mean, color=MUTED, linewidth=1)
    axes.set_xlabel("loss")


def _reaches(loss: Loss, delta: float) -> bool:
    try:
        loss.epsilon(delta)
    except ArgumentError:
        return False
    return True

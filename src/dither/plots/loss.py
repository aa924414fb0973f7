"""A privacy loss in three pictures: its profile, the attacker's trade-off, its law."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither.errors import ArgumentError
from dither.plots.canvas import COLOURS, MUTED, WIDTH, finish, heading, new_figure, tidy
from dither.plots.theorems import bars_of_theorems
from dither.privacy.views import one_delta, sides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.accounting import EveryTheorem
    from dither.privacy import Loss

__all__ = ["draw_loss"]

_POINTS = 33


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
    _profile(left, loss)
    _tradeoff(middle, loss)
    _law(right, loss)
    foot = f"{loss.describe()}; neighbours: {loss.neighbours.value}"
    return finish(figure, title="What the loss reveals", foot=foot, path=path)


def _at(table: EveryTheorem) -> str:
    return ", at" + table.title.rpartition(" at")[2]


def _profile(axes: object, loss: Loss) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    top = float(loss.epsilon(1e-9)) if _reaches(loss, 1e-9) else 10.0
    epsilons = np.linspace(0.0, max(top, 1e-3), _POINTS)
    deltas = [max(_delta(loss, float(e)), 1e-16) for e in epsilons]
    # It cannot grow: a rough point is bettered by the one before.
    deltas = np.minimum.accumulate(deltas).tolist()
    axes.plot(epsilons, deltas, color=COLOURS[0], linewidth=2)
    tidy(axes, values="x")
    axes.set_yscale("log")
    axes.set_xlabel("epsilon")
    heading(axes, "privacy profile: delta")


def _tradeoff(axes: object, loss: Loss) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    epsilons = np.linspace(-8.0, 8.0, 65)
    fpr = np.linspace(0.0, 1.0, 201)
    caught = np.ones_like(fpr)
    values = {abs(e): _delta(loss, abs(float(e))) for e in epsilons}
    for e in epsilons.tolist():
        d = values[abs(e)] if e >= 0 else -math.expm1(e) + math.exp(e) * values[abs(e)]
        caught = np.minimum(caught, d + math.exp(e) * fpr)
    axes.plot(fpr, 1 - fpr, color=MUTED, linewidth=1, linestyle=":")
    axes.plot(fpr, 1 - caught, color=COLOURS[1], linewidth=2)
    tidy(axes, values="x")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("false alarms")
    heading(axes, "least misses of any attacker")


def _law(axes: object, loss: Loss) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    tidy(axes, values="x")
    heading(axes, "law of the privacy loss")
    points = masses = np.zeros(1)
    told = "infinite: the output tells all"
    if loss.advantage().lower < 1 - 1e-9:
        try:
            points, masses = loss.loss_distribution()
        except ArgumentError:
            told = "only bounded, not known"
    if not masses.sum() > 0:
        axes.text(0.5, 0.5, told, ha="center", transform=axes.transAxes)
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


def _delta(loss: Loss, epsilon: float) -> float:
    """A sound delta from engines that neighbouring points share, which is close enough to draw."""
    worst = 0.0
    for side in sides(loss):
        if epsilon >= side.top * (1 + 1e-9) and not loss.slack:
            worst = max(worst, side.infinite)
        else:
            worst = max(worst, one_delta(loss, side, epsilon, near=round(4 * epsilon) / 4)[1])
    return worst


def _reaches(loss: Loss, delta: float) -> bool:
    try:
        loss.epsilon(delta)
    except ArgumentError:
        return False
    return True

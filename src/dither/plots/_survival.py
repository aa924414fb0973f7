"""Pictures of survival: curves as steps, each with the band that holds it whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither.plots._canvas import COLOURS, WIDTH, finish, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.inference.survival._curves import SurvivalEstimate

__all__ = ["draw_survival"]

_MOST = 6


def draw_survival(result: SurvivalEstimate, path: str | Path | None) -> Figure:
    """Survival against time: a curve an arm, and its band at 95 %."""
    figure = new_figure(WIDTH, 3.8)
    axes = figure.add_subplot()
    tidy(axes, values="y")
    edges, band = result.edges, result.band(0.95)
    curves = result.values.reshape(band.shape[:2])
    shown = list(zip(result.arms, curves, band, strict=True))[:_MOST]
    for j, (arm, curve, ends) in enumerate(shown):
        colour = COLOURS[j % len(COLOURS)]
        # Known at the ends of bins, from which on it is drawn until the next.
        whole = np.concatenate([[1.0], curve])
        lower, upper = (np.concatenate([[1.0], part]) for part in ends.T)
        axes.fill_between(edges, lower, upper, step="post", color=colour, alpha=0.18, linewidth=0)
        axes.step(edges, whole, where="post", color=colour, linewidth=2, label=str(arm))
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("time")
    axes.set_ylabel("surviving")
    if len(shown) > 1:
        axes.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    foot = f"{result.cost}; each band holds whole curves, all at once, at 95 %"
    return finish(figure, title=result.title, foot=foot, path=path)

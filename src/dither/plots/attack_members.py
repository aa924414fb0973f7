"""Pictures of membership inference: ROC curves on logarithmic axes, with what a loss allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither.plots.canvas import COLOURS, INK, MUTED, WIDTH, finish, new_figure, short, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.lab.attack.membership import Membership

__all__ = ["draw_membership"]

LOWEST = 1e-3


def draw_membership(
    found: Sequence[Membership],
    path: str | Path | None = None,
    *,
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw true alarms against false alarms; the bound of each release in its colour, dashed.

    Parameters
    ----------
    found : sequence of Membership
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.
    labels : sequence of str, optional
        By default what each release is called.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(WIDTH * 0.72, 5.0)
    axes = figure.subplots()
    rates = np.geomspace(LOWEST, 1.0, 200)
    axes.plot(rates, rates, color=MUTED, linewidth=1, linestyle=":", label="guessing blindly")
    played = next((one for one in found if one.control is not None), None)
    if played is not None and played.control is not None:
        axes.plot(
            *np.array(played.control.curve()),
            color=MUTED,
            linewidth=1.2,
            linestyle="-.",
            label=f"control: {played.verdict.bare}",
        )
    said = labels or [one.verdict.release for one in found]
    for i, (one, label) in enumerate(zip(found, said, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(*one.roc.curve(), color=colour, linewidth=2, label=label)
        if one.allowed is not None:
            axes.plot(rates, one.allowed.tpr(rates), color=colour, linewidth=1.4, linestyle="--")
    if any(one.loss is not None for one in found):
        axes.plot(
            [], [], color=INK, linewidth=1.4, linestyle="--", label="the most its loss allows"
        )
    tidy(axes, values="y")
    axes.spines["left"].set_visible(True)
    axes.set(xscale="log", yscale="log", xlim=(LOWEST, 1.0), ylim=(LOWEST, 1.15))
    axes.tick_params(which="both", length=0, pad=6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{short(100 * value)} %")
        axis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel("others who are accused")
    axes.set_ylabel("members who are found")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    areas = "; ".join(f"{one.auc.value:.3f}" for one in found)
    foot = (
        f"Area under the curve{'s, in this order' * (len(found) > 1)}: {areas} (blindly 0.5). "
        f"Prior: one in two is a member."
    )
    return finish(figure, title=title or "Who was in the data?", foot=foot, path=path)

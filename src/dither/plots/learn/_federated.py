"""Pictures of federated learning: accuracy over rounds, and what the server learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dither.plots._canvas import (
    MARKERS,
    MUTED,
    apart,
    finish,
    label_text,
    new_figure,
    percents,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_drop_outs", "draw_rounds"]


def draw_rounds(
    curves: Mapping[str, Sequence[float]],
    path: str | Path | None = None,
    *,
    level: tuple[str, float] | None = None,
    title: str = "",
    foot: str = "",
) -> Figure:
    """How often a federated model is right after each round.

    Parameters
    ----------
    curves : mapping of str to sequence of float
        By name: the share that is right after round 1, 2, ..., of rows that are public.
    path : str or Path, optional
    level : (str, float), optional
        A line to compare with, such as a model without noise.
    title, foot : str
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(7.0, 4.0)
    axes = figure.add_subplot(1, 1, 1)
    tidy(axes, values="y")
    for k, (name, values) in enumerate(curves.items()):
        rounds = range(1, len(values) + 1)
        axes.plot(rounds, values, color=apart(k), linewidth=1.8, label=label_text(name))
    if level is not None:
        axes.axhline(level[1], color=MUTED, linewidth=1, linestyle=":")
        axes.annotate(
            label_text(level[0]), (1, level[1]), (0, 3), textcoords="offset points",
            fontsize=8, color=MUTED,
        )  # fmt: skip
    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    percents(axes.yaxis)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return finish(figure, title=title or "Right after each round", foot=foot, path=path)


def draw_drop_outs(
    shares: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    path: str | Path | None = None,
    *,
    title: str = "",
    foot: str = "",
) -> Figure:
    """What is lost where clients do not come, and take their share of the noise with them.

    Parameters
    ----------
    shares : sequence of float
        Of the clients that drop out, at most, in [0, 1).
    curves : mapping of str to sequence of float
        By name: the epsilon at each of them.
    path : str or Path, optional
    title, foot : str
    """
    figure = new_figure(7.0, 4.0)
    axes = figure.add_subplot(1, 1, 1)
    tidy(axes, values="y")
    for k, (name, values) in enumerate(curves.items()):
        axes.plot(
            shares, values, color=apart(k), marker=MARKERS[k % len(MARKERS)], markersize=5,
            linewidth=1.8, label=label_text(name),
        )  # fmt: skip
    axes.set_ylim(0, 1.3 * max(max(values) for values in curves.values()))
    axes.set_xlabel("clients that may drop out of a round")
    axes.set_ylabel("epsilon")
    percents(axes.xaxis)
    axes.legend(frameon=False, fontsize=9, loc="upper left", ncols=len(curves))
    return finish(figure, title=title or "Noise that does not come", foot=foot, path=path)

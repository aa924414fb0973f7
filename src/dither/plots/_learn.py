"""Pictures of models: the scores of an additive model over its columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._format import cost_text
from dither.plots._canvas import (
    COLOURS,
    HAIR,
    INK,
    apart,
    finish,
    heading,
    label_text,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.learn._additive import AdditiveModel
    from dither.learn._boosting import Term

__all__ = ["draw_terms"]

_PANELS, _ACROSS, _LISTED = 6, 3, 8


def draw_terms(model: AdditiveModel, path: str | Path | None) -> Figure:
    """The six columns that say most: steps over numbers, bars over categories."""
    terms = sorted(model.terms_, key=lambda term: -term.importance)[:_PANELS]
    across = min(_ACROSS, len(terms))
    down = -(-len(terms) // across)
    figure = new_figure(3.3 * across + 0.4, 2.7 * down + 0.9)
    for k, term in enumerate(terms):
        axes = figure.add_subplot(down, across, k + 1)
        heading(axes, label_text(term.column.name))
        if term.column.categories is None:
            _steps(axes, term)
        else:
            _bars(axes, term)
    many = len(model.outputs_) > 1
    if many:
        _legend(figure, model.outputs_)
    what = "of each class" if many else f"for {label_text(model.outputs_[0])}"
    charge = model.loss_.charge
    foot = f"{cost_text(charge.epsilon, charge.delta)}; above 0 speaks for it, below 0 against it"
    return finish(figure, title=f"What each column adds to the score {what}", foot=foot, path=path)


def _legend(figure: Figure, names: list[str]) -> None:
    for k, name in enumerate(names[: len(COLOURS)]):
        figure.axes[0].plot([], [], color=apart(k), linewidth=2, label=label_text(name))
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=len(COLOURS))


def _steps(axes: Axes, term: Term) -> None:
    tidy(axes, values="y")
    edges = term.column.edges()
    ends = [edges[0]]
    groups = [k for k in range(len(term.rows)) if (term.joined[:-1] == k).any()]
    ends += [edges[np.flatnonzero(term.joined[:-1] == k)[-1] + 1] for k in groups]
    axes.axhline(0, color=HAIR, linewidth=1.2)
    for output in range(min(term.scores.shape[1], len(COLOURS))):
        axes.stairs(
            term.scores[groups, output], ends, baseline=None, color=apart(output), linewidth=1.8
        )
    axes.set_xlim(ends[0], ends[-1])


def _bars(axes: Axes, term: Term) -> None:
    tidy(axes, values="x")
    common = np.sort(np.argsort(-term.rows[:-1])[:_LISTED])
    outputs = min(term.scores.shape[1], len(COLOURS))
    height = 0.8 / outputs
    for output in range(outputs):
        places = np.arange(len(common)) + (output - (outputs - 1) / 2) * height
        axes.barh(places, term.scores[common, output], height=0.85 * height, color=apart(output))
    axes.axvline(0, color=INK, linewidth=0.8)
    names = term.labels()
    axes.set_yticks(np.arange(len(common)), [label_text(names[i])[:18] for i in common])
    axes.tick_params(axis="y", labelsize=8)
    axes.set_ylim(len(common) - 0.4, -0.6)

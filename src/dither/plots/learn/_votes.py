"""Pictures of private predictions and of searches: who is heard, and what choosing costs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._format import cost_text, number_text
from dither.plots._canvas import (
    INK,
    MUTED,
    apart,
    finish,
    heading,
    new_figure,
    percents,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.learn.tuning._search import SearchResult
    from dither.learn.votes._preview import VotesPreview

__all__ = ["draw_search", "draw_votes"]

_DELTAS = tuple(10.0**-k for k in range(3, 13))
_ALL = 0.999


def draw_votes(preview: VotesPreview, path: str | Path | None) -> Figure:
    """Two curves over the share of teachers that agree."""
    figure = new_figure(6.4, 4.0)
    axes = figure.add_subplot()
    tidy(axes, values="y")
    teachers = preview.teachers
    agreeing = np.unique(np.linspace(teachers // preview.labels, teachers, 200).astype(int))
    pairs = [preview.ballot.chances(int(n), teachers, preview.labels) for n in agreeing]
    shares = agreeing / teachers
    for k, name in enumerate(("answered", "if answered, right at least")):
        line = [pair[k] for pair in pairs]
        if k == 0 and preview.ballot.check is None:
            continue
        style = "-" if k == 0 else "--"
        axes.plot(shares, line, style, color=apart(k), linewidth=1.8, label=name)
    if preview.ballot.threshold is not None:
        at = preview.ballot.threshold / teachers
        axes.axvline(at, color=MUTED, linewidth=0.8, linestyle=":")
        axes.annotate(
            "threshold", (at, 0.02), xytext=(4, 0), textcoords="offset points", color=MUTED, size=9
        )
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("teachers that agree, the others being even", color=INK)
    axes.set_ylabel("chance", color=INK)
    percents(axes.xaxis, axes.yaxis)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    foot = (
        f"{cost_text(preview.epsilon, preview.delta)} for {preview.answers:,} answers of "
        f"{teachers:,} teachers"
    )
    title = "How many teachers must agree to be heard"
    return finish(figure, title=title, foot=foot, path=path)


def draw_search(found: SearchResult, path: str | Path | None) -> Figure:
    """Epsilon over delta, charged and naive; and the law of the number of runs."""
    figure = new_figure(8.4, 3.8)
    left, right = figure.subplots(1, 2)
    tidy(left, values="y")
    heading(left, "epsilon over delta")
    pairs = [(delta, *found.costs(delta)) for delta in _DELTAS]
    for k, name in enumerate(("charged for the search", "one run: what forgetting would claim")):
        line = [(p[0], p[1 + k]) for p in pairs if math.isfinite(p[1 + k])]
        if line:
            style = "-" if k == 0 else "--"
            left.plot(*zip(*line, strict=True), style, color=apart(k), linewidth=1.8, label=name)
    left.set_xscale("log")
    left.set_ylim(bottom=0)
    left.set_xlabel("delta", color=INK)
    left.legend(frameon=False, fontsize=9, loc="lower left")
    tidy(right, values="y")
    heading(right, "chance of so many runs (the number stays secret)")
    numbers, chances, total = [], [], 0.0
    for k, chance in found.runs.chances():
        numbers.append(k)
        chances.append(chance)
        total += chance
        if total > _ALL:
            break
    right.fill_between(numbers, chances, step="mid", color=apart(0), alpha=0.25, linewidth=0)
    right.step(numbers, chances, where="mid", color=apart(0), linewidth=1.4)
    right.set_ylim(bottom=0)
    right.set_xlabel("runs", color=INK)
    percents(right.yaxis)
    true, naive = found.costs()
    foot = f"{number_text(found.runs.mean, 3)} runs on average"
    if found.delta:
        foot += f"; {cost_text(true, found.delta)}, one run alone ε = {number_text(naive, 3)}"
    return finish(figure, title="What choosing costs", foot=foot, path=path)

"""Attacks as pictures: success against epsilon or side by side, and reconstructed tables."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._format import count_text, level
from dither.errors import ArgumentError
from dither.lab._verdicts import Outcome
from dither.plots._canvas import (
    COLOURS,
    INK,
    MARKERS,
    MUTED,
    WIDTH,
    apart,
    finish,
    new_figure,
    percents,
    short,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.lab.attack import Reconstruction, Verdict

__all__ = ["draw_by_queries", "draw_reconstruction", "draw_verdicts"]

_SHOWN = 40
"""Solutions that fit on a picture."""

_LABELLED = 12
"""Up to so many, people carry their number, and those who differ a ring."""

_LOOKS = {
    Outcome.VIOLATED: (COLOURS[5], "D"),
    Outcome.UNPROVEN: (COLOURS[5], "s"),
    Outcome.CONSISTENT: (COLOURS[0], "o"),
    Outcome.INCONCLUSIVE: (MUTED, "s"),
}


def draw_verdicts(
    verdicts: Sequence[Verdict], path: str | Path | None = None, *, title: str | None = None
) -> Figure:
    """Draw success against epsilon where every release has one, else release by release."""
    shown = list(verdicts)
    if not shown:
        raise ArgumentError("verdicts must hold at least one")
    by_epsilon = all(v.epsilon is not None and v.epsilon > 0 for v in shown)
    height = 4.4 if by_epsilon else 1.9 + 0.46 * len(shown)
    figure = new_figure(WIDTH, height)
    axes = figure.subplots()
    (_against_epsilon if by_epsilon else _side_by_side)(axes, shown)
    runs, targets = len(shown[0].score.hits), sum(shown[0].score.targets)
    foot = (
        f"Guessed: {shown[0].game}. {count_text(targets, 'target')} in {count_text(runs, 'run')} "
        f"a point; bars are nominal {level(shown[0].confidence)} intervals."
    )
    said = title or (shown[0].summary().split("\n")[0] if len(shown) == 1 else None)
    return finish(
        figure, title=said or f"{_shared(shown)}: how much was guessed right", foot=foot, path=path
    )


def _shared(verdicts: Sequence[Verdict]) -> str:
    names = {v.attack for v in verdicts}
    return names.pop().capitalize() if len(names) == 1 else "Attacks"


def _against_epsilon(axes: Axes, shown: list[Verdict]) -> None:
    shown = sorted(shown, key=lambda v: v.epsilon or 0.0)
    x = np.array([v.epsilon for v in shown], dtype=float)
    span = np.geomspace(x[0] / 2, x[-1] * 2, 200)
    prior = shown[0].prior
    odds = np.exp(np.minimum(span, 700)) * prior / (1 - prior)
    axes.fill_between(span, prior, odds / (1 + odds), color=COLOURS[0], alpha=0.10)
    axes.plot(span, odds / (1 + odds), color=COLOURS[0], linewidth=1.5, label="bound of pure ε")
    axes.plot(
        x, [v.bound for v in shown], "_", color=COLOURS[0], markersize=14, label="bound of the loss"
    )
    predicted = [(a, v.predicted) for a, v in zip(x, shown, strict=True) if v.predicted is not None]
    if predicted:
        axes.plot(
            *zip(*predicted, strict=True),
            color=COLOURS[2],
            linewidth=1.2,
            linestyle="--",
            label="predicted",
        )
    for outcome, (colour, marker) in _LOOKS.items():
        some = [(a, v) for a, v in zip(x, shown, strict=True) if v.outcome == outcome]
        if some:
            _points(axes, some, colour, marker, f"measured: {outcome}", upright=True)
    _levels(axes, shown, axes.axhline)
    tidy(axes, values="y")
    axes.set(xscale="log", xlim=(span[0], span[-1]), ylim=(min(0.0, 1), 1.04))
    axes.tick_params(which="both", length=0)
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    percents(axes.yaxis)
    axes.set_ylim(min(0.4, *(v.low - 0.02 for v in shown)), 1.03)
    axes.set_xlabel("ε of the whole release", color=INK)
    axes.set_ylabel("guessed right", color=INK)
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _side_by_side(axes: Axes, shown: list[Verdict]) -> None:
    places = np.arange(len(shown))[::-1]
    for outcome, (colour, marker) in _LOOKS.items():
        some = [(float(p), v) for p, v in zip(places, shown, strict=True) if v.outcome == outcome]
        if some:
            _points(axes, some, colour, marker, f"measured: {outcome}", upright=False)
    for name, colour, marker in (
        ("predicted", COLOURS[2], "d"),
        ("promised", COLOURS[3], "<"),
        ("bound", COLOURS[0], "|"),
    ):
        some_x = [getattr(v, name) for v in shown]
        at = [
            (x, p)
            for x, p in zip(some_x, places, strict=True)
            if x is not None and (name != "bound" or x < 1.0)
        ]
        if at:
            label = {"promised": "promised by a theorem, at least"}.get(name, name)
            axes.plot(
                *zip(*at, strict=True),
                marker,
                color=colour,
                markersize=11 if name == "bound" else 7,
                markerfacecolor="none",
                label=label,
                zorder=4,
            )
    _levels(axes, shown, axes.axvline)
    tidy(axes, values="x")
    axes.set_yticks(places, ["\n".join(textwrap.wrap(v.release, 30)) for v in shown])
    low = min(0.4, *(v.low - 0.02 for v in shown), *(v.success - 0.02 for v in shown))
    axes.set(xlim=(max(low, -0.03), 1.03), ylim=(-0.6, len(shown) - 0.4))
    percents(axes.xaxis)
    axes.set_xlabel("guessed right", color=INK)
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _points(axes: Axes, some: Any, colour: str, marker: str, label: str, *, upright: bool) -> None:
    at = [place for place, _ in some]
    success = np.array([v.success for _, v in some])
    ends = np.array([[v.success - v.low for _, v in some], [v.high - v.success for _, v in some]])
    x, y = (at, success) if upright else (success, at)
    axes.errorbar(
        x,
        y,
        **{"yerr" if upright else "xerr": np.maximum(ends, 0.0)},
        fmt=marker,
        color=colour,
        markersize=6,
        elinewidth=1.2,
        capsize=2,
        label=label,
        zorder=3,
    )


def _levels(axes: Axes, shown: list[Verdict], line: Any) -> None:
    """The prior and the two controls, which every picture of a success shows."""
    line(shown[0].prior, color=MUTED, linewidth=1, linestyle=":", label="prior: guessing blindly")
    bare = " or ".join(dict.fromkeys(v.bare for v in shown))
    for name, label, style, colour in (
        ("control", f"control: {bare}", "-.", COLOURS[1]),
        ("null", "control: a stranger's release", (0, (1, 3)), COLOURS[3]),
    ):
        scores = [getattr(v, name) for v in shown if getattr(v, name) is not None]
        if scores:
            mean = sum(s.share for s in scores) / len(scores)
            line(mean, color=colour, linewidth=1.3, linestyle=style, label=label)


def draw_by_queries(
    series: Mapping[str, Sequence[tuple[int, Verdict]]],
    path: str | Path | None = None,
    *,
    title: str | None = None,
    foot: str = "",
) -> Figure:
    """Draw success against the number of queries, a line for each kind of release.

    Parameters
    ----------
    series : mapping of str to sequence of (int, Verdict)
        By name: numbers of queries, and the verdict at each.
    path : str or Path, optional
    title, foot : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(WIDTH, 4.4)
    axes = figure.subplots()
    everything = [v for line in series.values() for _, v in line]
    for i, (name, line) in enumerate(series.items()):
        x = [m for m, _ in line]
        colour, marker = apart(i), MARKERS[i % 6]
        axes.fill_between(
            x, [v.low for _, v in line], [v.high for _, v in line], color=colour, alpha=0.12
        )
        axes.plot(
            x, [v.success for _, v in line], marker=marker, color=colour, linewidth=1.8, label=name
        )
        predicted = [(m, v.predicted) for m, v in line if v.predicted is not None]
        if predicted:
            axes.plot(*zip(*predicted, strict=True), color=colour, linewidth=1, linestyle="--")
    if any(v.predicted is not None for v in everything):
        axes.plot([], [], color=MUTED, linewidth=1, linestyle="--", label="predicted")
    _levels(axes, everything, axes.axhline)
    tidy(axes, values="y")
    axes.set(xscale="log", ylim=(min(0.4, *(v.low for v in everything)), 1.03))
    axes.tick_params(which="both", length=0)
    sizes = sorted({m for line in series.values() for m, _ in line})
    axes.set_xticks(sizes, [f"{m:,}" for m in sizes], minor=False)
    axes.set_xticks([], minor=True)
    percents(axes.yaxis)
    axes.set_xlabel("queries answered", color=INK)
    axes.set_ylabel("bits guessed right", color=INK)
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return finish(figure, title=title or "Success against queries", foot=foot, path=path)


def draw_reconstruction(found: Reconstruction, path: str | Path | None = None) -> Figure:
    """Draw the people of every solution along the first number that is known of them.

    Parameters
    ----------
    found : Reconstruction
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ArgumentError
        There is no solution, or no attribute is a number.
    """
    s = found.statistics
    numbers = [i for i, a in enumerate(s.attributes) if not a.labels]
    if not found.solutions:
        raise ArgumentError("there is no solution to draw; its conflict says why")
    if not numbers:
        raise ArgumentError("a picture needs an attribute that is a number")
    tables = found.solutions[:_SHOWN]
    figure = new_figure(WIDTH, 2.3 + min(0.75, 4.2 / len(tables)) * len(tables))
    axes = figure.subplots()
    listed = [i for i, a in enumerate(s.attributes) if a.labels]
    certain = set(found.certain)
    size = 10 if len(tables) <= _LABELLED else 6
    few = len(tables) <= _LABELLED
    crowd = max(max(Counter(p[numbers[0]] for p in t).values()) for t in tables)
    head = 0.7 / max(2, crowd - 1)
    for row, table in enumerate(tables):
        axes.axhline(row, color="#eeeeee", linewidth=1, zorder=0)
        before: Counter[int] = Counter()
        for p in table:
            x = p[numbers[0]]
            # People of the same age are stacked.
            y = row - head * before[x]
            before[x] += 1
            colour, marker, face = _look(p, listed)
            if few and found.count > 1 and p not in certain:
                axes.plot(x, y, "o", color="none", markeredgecolor=COLOURS[5],
                          markersize=2.0 * size, markeredgewidth=1.4)  # fmt: skip
            axes.plot(x, y, marker, color=colour, markersize=size, zorder=3,
                      markerfacecolor=colour if face else "white", markeredgewidth=1.6)  # fmt: skip
        for x, many in before.items() if few else ():
            axes.annotate(str(x), (x, row - head * (many - 1)), (0, 14), size=8, color=INK,
                          textcoords="offset points", ha="center")  # fmt: skip
    tidy(axes, values="x")
    axes.spines["left"].set_visible(False)
    step = max(1, math.ceil(len(tables) / 12))
    at = range(0, len(tables), step)
    axes.set_yticks(list(at), [f"solution {y + 1}" for y in at])
    axes.set_ylim(len(tables) - 0.4, -0.75)
    axes.set_xlabel(s.attributes[numbers[0]].name, color=INK)
    _key(axes, found, listed, certain, few)
    rest = f"; the first {len(tables)} are drawn" if found.count > len(tables) else ""
    plural = "s" if len(s.rows) != 1 else ""
    foot = f"{s.title}: {s.people} people, {len(s.rows)} published row{plural}{rest}."
    agree = "1 database agrees" if found.count == 1 else f"{found.count:,} databases agree"
    title = f"{'' if found.complete else 'At least '}{agree} with what was published"
    return finish(figure, title=title, foot=foot, path=path)


def _look(person: tuple[int, ...], listed: Sequence[int]) -> tuple[str, str, bool]:
    """Colour, marker and whether it is filled, by the first three lists of values."""
    values = [person[i] for i in listed[:3]] + [0] * 3
    colour = apart(values[1]) if listed else COLOURS[0]
    return colour, MARKERS[values[0] % 6], values[2] % 2 == 0


def _key(
    axes: Axes, found: Reconstruction, listed: Sequence[int], certain: Any, ringed: bool
) -> None:
    for place, i in enumerate(listed[:3]):
        attribute = found.statistics.attributes[i]
        for value, label in enumerate(attribute.labels[: 2 if place == 2 else 6]):
            colour = apart(value) if place == 1 else MUTED
            marker = MARKERS[value] if place == 0 else "o"
            face = "white" if place == 2 and value else colour
            axes.plot([], [], marker, color=colour, markerfacecolor=face, markersize=7, label=label)
    if ringed and found.count > 1 and len(certain) < found.statistics.people:
        axes.plot([], [], "o", color="none", markeredgecolor=COLOURS[5], markersize=12,
                  markeredgewidth=1.4, label="differs")  # fmt: skip
    if listed:
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))

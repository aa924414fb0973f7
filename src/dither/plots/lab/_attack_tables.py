"""Pictures of attacks on released tables: who is alone, who is found, what classes give away."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._format import percent
from dither.plots._canvas import (
    COLOURS,
    INK,
    MUTED,
    WIDTH,
    finish,
    new_figure,
    percents,
    short,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.lab.attack import (
        Background,
        ClassCounts,
        InexactLinkage,
        Linkage,
        Skewness,
        Uniqueness,
        Verdict,
    )

__all__ = [
    "draw_background",
    "draw_classes",
    "draw_inexact_linkage",
    "draw_linkage",
    "draw_skewness",
    "draw_uniqueness",
]


def draw_uniqueness(found: Uniqueness, path: str | Path | None = None) -> Figure:
    """Draw the share that is alone against the number of columns."""
    figure = new_figure(WIDTH * 0.85, 3.8)
    axes = figure.subplots()
    at = [one.columns for one in found.sizes]
    least, mean, most = (
        [getattr(one, name) for one in found.sizes] for name in ("least", "mean", "most")
    )
    axes.fill_between(at, least, most, color=COLOURS[0], alpha=0.15, linewidth=0)
    axes.plot(at, most, color=COLOURS[0], linewidth=1, linestyle="--")
    axes.plot(at, mean, color=COLOURS[0], linewidth=2, marker="o")
    for x, y in zip(at, mean, strict=True):
        axes.annotate(
            percent(y), (x, y), (-6, 6), textcoords="offset points", ha="right", size=9, color=INK
        )
    tidy(axes, values="y")
    percents(axes.yaxis)
    axes.set(ylim=(0, max(1.05 if max(most) > 0.8 else 1.18 * max(most), 0.01)))
    axes.set_xlim(min(at) - 0.45, max(at) + 0.25)
    axes.set_xticks(at, [str(m) for m in at])
    axes.set_xlabel("columns that are known")
    axes.set_ylabel("alone with their values")
    foot = (
        f"{found.people:,} people. Line: the mean over all choices of so many of "
        f"{len(found.quasi)} columns; band: from the choice that singles out least to the most."
    )
    title = "A few harmless facts single people out"
    return finish(figure, title=title, foot=foot, path=path)


def draw_linkage(found: Linkage, path: str | Path | None = None) -> Figure:
    """Draw how many rows fit how many people, and the success beside its controls."""
    figure = new_figure(WIDTH, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
    edges = np.array([0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10**12])
    labels = ["none", "1", "2", "3–4", "5–9", "10–19", "20–49", "50–99"]
    labels += ["100–199", "200–499", "500–999", "1,000+"]
    counts = np.histogram(found.candidates, edges)[0]
    used = np.flatnonzero(counts)
    shown = range(int(used.min()), int(used.max()) + 1)
    colours = [COLOURS[5] if labels[i] == "1" else COLOURS[0] for i in shown]
    bars = left.barh(range(len(shown)), [counts[i] for i in shown], color=colours, height=0.66)
    left.bar_label(bars, [f"{counts[i]:,}" for i in shown], padding=4, size=9, color=INK)
    tidy(left, values="x")
    left.set_yticks(range(len(shown)), [labels[i] for i in shown])
    left.invert_yaxis()
    left.margins(x=0.16)
    left.set_ylabel("rows that fit")
    left.set_xlabel("people")
    _success(right, found.verdict)
    foot = f"{found.people:,} people looked up in {found.rows:,} rows by {', '.join(found.keys)}."
    if found.verdict is not None:
        foot += f" A blind guess is right once in {found.rows:,} times."
    title = (
        f"{found.alone:,} people fit one row only"
        if found.alone
        else f"Everybody who fits, fits at least {_fewest(found):,} rows"
    )
    return finish(figure, title=title, foot=foot, path=path)


def draw_inexact_linkage(found: InexactLinkage, path: str | Path | None = None) -> Figure:
    """Draw by how much rows stand out for people, and the success beside its controls."""
    figure = new_figure(WIDTH, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
    width = max(found.eccentricity / 3, float(found.leads.max(initial=0.0)) / 24, 0.05)
    edges = width * np.arange(int(found.leads.max(initial=0.0) / width) + 2)
    counts, _ = np.histogram(found.leads, edges)
    claimed = edges[:-1] + 1e-9 >= found.eccentricity
    colours = [COLOURS[5] if one else COLOURS[0] for one in claimed]
    left.bar(edges[:-1] + width / 2, counts, width=0.88 * width, color=colours)
    left.axvline(found.eccentricity, color=INK, linewidth=1, linestyle=":")
    tidy(left, values="y")
    left.set_xlabel("lead of the best row, in deviations (dotted: claimed from here on)")
    left.set_ylabel("people")
    _success(right, found.verdict)
    foot = f"{found.people:,} people, roughly known, looked up in {found.rows:,} rows."
    if found.verdict is not None:
        foot += f" A blind guess is right once in {found.rows:,} times."
    title = f"A row stands out for {found.claimed:,} of {found.people:,} people"
    return finish(figure, title=title, foot=foot, path=path)


def draw_classes(classes: ClassCounts, verdict: Verdict, path: str | Path | None = None) -> Figure:
    """Draw classes by size and by the share of their commonest answer."""
    figure = new_figure(WIDTH, 3.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1.0))
    sizes = classes.sizes
    share = classes.counts.max(axis=1) / sizes
    pure = share == 1
    where, many = np.unique(np.stack([sizes, share]), axis=1, return_counts=True)
    dots = 14 + 10 * np.sqrt(many)
    left.axhline(classes.prior, color=MUTED, linewidth=1, linestyle=":")
    for mask, colour, label in (
        (where[1] < 1, COLOURS[0], "mixed"),
        (where[1] == 1, COLOURS[5], "all the same"),
    ):
        if mask.any():
            left.scatter(*where[:, mask], s=dots[mask], color=colour, alpha=0.6, lw=0, label=label)
    tidy(left, values="y")
    percents(left.yaxis)
    left.set(xscale="log", xlabel="people in the class")
    left.set_ylabel("who gave its commonest answer")
    left.xaxis.set_major_formatter(lambda value, _: short(value))
    left.tick_params(which="both", length=0)
    left.margins(y=0.14)
    if pure.any():
        left.legend(fontsize=9, loc="lower right", edgecolor="none", framealpha=0.85)
    _success(right, verdict)
    given = int(sizes[pure].sum())
    foot = (
        f"{classes.people:,} people in {len(sizes):,} classes; a dot is larger where more classes "
        f"fall together; dotted: the commonest answer overall ({percent(classes.prior, 0)})."
    )
    title = f"{given:,} people are given away by what their class has in common"
    return finish(figure, title=title, foot=foot, path=path)


def draw_skewness(found: Skewness, path: str | Path | None = None) -> Figure:
    """Draw how many people end at which probability, beside the prior."""
    figure = new_figure(WIDTH, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1.0))
    edges = np.arange(21) / 20
    counts, _ = np.histogram(found.posterior, edges)
    high = edges[:-1] >= 2 * found.prior
    left.bar(
        edges[:-1] + 0.025,
        counts,
        width=0.044,
        color=[COLOURS[5] if h else COLOURS[0] for h in high],
    )
    left.axvline(found.prior, color=INK, linewidth=1, linestyle=":")
    left.annotate(
        "everybody",
        (found.prior, 1.0),
        (5, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        size=9,
        va="top",
        color=INK,
    )
    tidy(left, values="y")
    percents(left.xaxis)
    left.set(xlim=(0, 1), xlabel="what the class makes of it", ylabel="people")
    left.margins(y=0.12)
    _success(right, found.verdict)
    foot = (
        f"{found.classes.people:,} people. {found.raised(2):,} of them end at twice the prior of "
        f"{percent(found.prior, 0)} or more; {found.reaching(0.9):,} at 90 % or more."
    )
    title = "What is believed of people, before and after"
    return finish(figure, title=title, foot=foot, path=path)


def draw_background(found: Background, path: str | Path | None = None) -> Figure:
    """Draw what is certain, and what is guessed right, against what is known."""
    figure = new_figure(WIDTH * 0.85, 3.8)
    axes = figure.subplots()
    at = [one.companions for one in found.known]
    certain = [one.certain for one in found.known]
    right = [one.verdict.success for one in found.known]
    prior = found.classes.prior
    axes.axhline(prior, color=MUTED, linewidth=1, linestyle=":")
    axes.plot(at, right, color=COLOURS[0], linewidth=2, marker="o", clip_on=False)
    axes.plot(at, certain, color=COLOURS[5], linewidth=2, marker="D", clip_on=False)
    ends = [(right[-1], "guessed right", COLOURS[0]), (certain[-1], "certain", COLOURS[5])]
    if min(abs(prior - certain[-1]), abs(prior - right[-1])) > 0.06:
        ends.append((prior, "blindly", MUTED))
    for height, text, colour in ends:
        where = (max(at), height)
        axes.annotate(
            text,
            where,
            (10, 0),
            textcoords="offset points",
            va="center",
            size=10,
            color=colour,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )
    tidy(axes, values="y")
    percents(axes.yaxis)
    axes.set(ylim=(0, 1.04), xlabel="others of the class whose answer is known", ylabel="people")
    axes.set_xlim(min(at), max(at) + 0.2 * (max(at) - min(at) + 1))
    axes.set_xticks([j for j in axes.get_xticks() if min(at) <= j <= max(at) and j == int(j)])
    foot = (
        f"{found.classes.people:,} people in {len(found.classes.counts):,} classes. Who knows all "
        "others of a class is certain of everybody in it."
    )
    title = "Every answer that is known gives another away"
    return finish(figure, title=title, foot=foot, path=path)


def _fewest(found: Linkage) -> int:
    some = found.candidates[found.candidates > 0]
    return int(some.min()) if len(some) else 0


def _success(axes: Axes, verdict: Verdict | None) -> None:
    """The attack beside what it must reach and must not."""
    if verdict is None:
        axes.set_axis_off()
        return
    rows = [("on strangers", verdict.null, MUTED), ("this release", verdict.score, COLOURS[5])]
    rows.append(("the bare truth", verdict.control, COLOURS[2]))
    names = [name for name, score, _ in rows if score is not None]
    shares = [score.share for _, score, _ in rows if score is not None]
    colours = [colour for _, score, colour in rows if score is not None]
    bars = axes.barh(range(len(names)), shares, color=colours, height=0.55)
    for label in axes.bar_label(bars, list(map(percent, shares)), padding=4, size=9):
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    axes.axvline(verdict.prior, color=INK, linewidth=1, linestyle=":", zorder=2.5)
    tidy(axes, values="x")
    axes.set_yticks(range(len(names)), names)
    percents(axes.xaxis)
    axes.set_xlim(0, 1.18)
    axes.set_xticks([0, 0.5, 1])
    axes.set_xlabel("guessed right (dotted: blindly)")

"""Pictures of local estimates: a distribution with what is known of it, means with their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._format import count_text, level, percent
from dither.errors import ArgumentError
from dither.plots._canvas import (
    COLOURS,
    DASHED,
    INK,
    MARKERS,
    MUTED,
    WIDTH,
    finish,
    label_text,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.local import Distribution, Estimate, KeyEstimate, MeanEstimate

__all__ = ["draw_distribution", "draw_keys", "draw_means", "draw_shares"]

_ROWS = 24

ANY = "A dashed line alone: every value is possible."


def draw_distribution(
    found: Distribution, path: str | Path | None = None, *, truth: Any = None
) -> Figure:
    """Shares as steps over the numbers with the mean, or as bars for the values of a list."""
    known = None if truth is None else np.asarray(truth, dtype=np.float64)
    if known is not None and known.shape != found.shares.shape:
        raise ArgumentError(f"truth must have one share for each of the {found.bins} bins")
    rule = "EM, smoothed" if found.smooth else "EM"
    foot = (
        f"{' + '.join(found.kinds)}, {count_text(found.n, 'report')}. {rule}: "
        f"{count_text(found.bins, 'bin')}, {count_text(found.iterations, 'round')}. "
        f"{found.caution}"
    )
    if found.interval is None:
        return _values(found, known, foot, path)
    figure = new_figure(WIDTH, 3.9)
    axes = figure.subplots()
    widths = np.diff(found.edges)
    if known is not None:
        axes.stairs(known / widths, found.edges, color=COLOURS[1], linewidth=1.6, label="truth")
    axes.stairs(found.shares / widths, found.edges, fill=True, color=COLOURS[0], alpha=0.35)
    axes.stairs(found.shares / widths, found.edges, color=COLOURS[0], linewidth=1.2, label=rule)
    axes.axvline(found.mean, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.annotate(
        f"mean {found.mean:.4g}".replace("-", "\N{MINUS SIGN}"),
        (found.mean, 1),
        (4, -4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        size=9,
        color=INK,
    )
    tidy(axes, values="y")
    axes.set_ylabel("share of people per unit")
    axes.margins(x=0, y=0.14)
    axes.set_ylim(bottom=0)
    if known is not None:
        axes.legend(frameon=False, fontsize=9, loc="upper right")
    return finish(figure, title="Estimated distribution", foot=foot, path=path)


def draw_means(
    found: Sequence[MeanEstimate],
    path: str | Path | None = None,
    *,
    names: Sequence[str] | None = None,
    truth: float | None = None,
) -> Figure:
    """One row an estimate: a point, with its interval where one is valid.

    Parameters
    ----------
    found : sequence of MeanEstimate
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.
    names : sequence of str, optional
        Of the rows; left out, the channels' kinds.
    truth : float, optional
        A line at the true mean, where a simulation knows it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if not found:
        raise ArgumentError("there must be at least one estimate to draw")
    labels = [one.kind for one in found] if names is None else list(names)
    figure = new_figure(WIDTH, 1.5 + 0.42 * len(found))
    axes = figure.subplots()
    places = list(range(len(found)))[::-1]
    for place, one in zip(places, found, strict=True):
        colour, marker = (COLOURS[5], MARKERS[2]) if one.biased else (COLOURS[0], MARKERS[0])
        if not one.biased:
            axes.hlines(place, *one.interval, color=colour, linewidth=2)
        axes.plot([one.possible_mean], [place], marker, color=colour, markersize=6)
        axes.annotate(
            f"{_digits(one)}{' (biased)' if one.biased else ''}",
            (one.possible_mean, place),
            (0, 8),
            textcoords="offset points",
            ha="center",
            size=9,
            color=INK,
        )
    if truth is not None:
        axes.axvline(truth, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    tidy(axes, values="x")
    axes.set_yticks(places, labels)
    axes.set_ylim(-0.6, len(found) - 0.3)
    axes.margins(x=0.15)
    axes.set_xlabel("mean of the values")
    foot = f"{count_text(found[0].n, 'report')}."
    if not all(one.biased for one in found):
        foot += f" Lines: {level(found[0].confidence)} intervals."
    if any(one.biased for one in found):
        foot += " A biased estimate has no valid interval."
    if any(one.possible_mean != one.mean for one in found):
        foot += " A mean outside its interval is drawn at the nearest value in it."
    foot += " Dashed: the truth." if truth is not None else ""
    return finish(figure, title="Estimated mean", foot=foot, path=path)


def draw_shares(found: Sequence[Estimate], path: str | Path | None = None) -> Figure:
    """One row a value, the most frequent first: its share, with its interval where one is valid.
    The estimates are one below the other.
    """
    sizes = [min(_ROWS, len(one.values)) for one in found]
    figure = new_figure(WIDTH, 1.5 + 0.3 * sum(sizes) + 0.7 * (len(found) - 1))
    several = figure.subplots(len(found), 1, squeeze=False, height_ratios=sizes, sharex=True)[:, 0]
    for axes, one in zip(several, found, strict=True):
        _rows_of_shares(axes, one, several=len(found) > 1)
    several[-1].set_xlabel("share of people")
    first = found[0]
    reports = count_text(sum(one.n for one in found), "report")
    foot = f"{reports}." if len(found) > 1 else f"{first.title}, {reports}."
    if any(np.isfinite(one.intervals).any() for one in found if one.unbiased):
        moved = any(_moved(one) for one in found)
        raw = ", which ticks mark" if moved else ""
        raw = f" of the raw shares{raw}" if any(one.postprocess != "none" for one in found) else ""
        foot += f" Lines: {level(first.confidence)} intervals{raw}."
        foot += f" {ANY}" if any(_says_nothing(one) for one in found) else ""
    if any((one.possible != one.shares).any() for one in found):
        foot += " A share outside 0 to 1 is drawn at the nearer of them."
    foot += "".join(f" {why}" for why in dict.fromkeys(w for one in found for w in one.bias))
    if len(found) == 1 and sizes[0] < len(first.values):
        foot += f" The {sizes[0]} largest of {len(first.values):,} values."
    return finish(figure, title="Estimated shares", foot=foot, path=path)


def _says_nothing(found: Estimate) -> bool:
    """Whether an interval leaves every share possible."""
    return found.unbiased and bool((np.diff(found.intervals, axis=1) >= 1).any())


def _moved(found: Estimate) -> bool:
    """Whether a rule has moved a share from its raw one."""
    return found.unbiased and bool((np.abs(found.shares - found.raw) > 1e-9).any())


def _rows_of_shares(axes: Any, found: Estimate, *, several: bool) -> None:
    order = np.argsort(-found.shares, kind="stable")[:_ROWS]
    places = np.arange(order.size)[::-1]
    lower, upper = found.intervals[order].T if found.unbiased else np.full((2, order.size), np.nan)
    # An interval from 0 to 1 says nothing of its share.
    says = ~((lower <= 0) & (upper >= 1))
    shown = found.possible[order]
    axes.plot(shown[says], places[says], MARKERS[0], color=COLOURS[0], markersize=6)
    if found.unbiased:
        axes.hlines(places[says], lower[says], upper[says], color=COLOURS[0], linewidth=2)
        axes.hlines(places[~says], 0, 1, color=MUTED, linewidth=1, linestyle=DASHED)
        if _moved(found):
            # A rule may have moved a share out of the interval, which is that of the raw one.
            known = np.isfinite(lower)
            ticks = np.clip(found.raw[order[known]], 0, 1)
            axes.plot(ticks, places[known], "|", color=COLOURS[0], markersize=11)
    tidy(axes, values="x")
    if axes.get_xlim()[0] < 0:
        axes.axvline(0, color=MUTED, linewidth=1.0)
        axes.spines["left"].set_visible(False)
    axes.set_yticks(places, [label_text(found.values[i], 24) for i in order])
    axes.set_ylim(-0.6, order.size - 0.4)
    if several:
        axes.set_title(label_text(found.title), loc="left", fontsize=10)


def draw_keys(found: KeyEstimate, path: str | Path | None = None) -> Figure:
    """One row a key, the most frequent first: the mean of its values with its interval."""
    order = np.argsort(-found.shares, kind="stable")[:_ROWS]
    places = np.arange(order.size)[::-1]
    figure = new_figure(WIDTH, 1.5 + 0.3 * order.size)
    axes = figure.subplots()
    normal = found.trusted[order]
    low, high = found.bounds
    ends = found.intervals[order]
    says = ~((ends[:, 0] <= low) & (ends[:, 1] >= high))
    axes.hlines(places[~says], low, high, color=MUTED, linewidth=1, linestyle=DASHED)
    for mask, colour, marker in (
        (normal & says, COLOURS[0], MARKERS[0]),
        (~normal & says, COLOURS[5], MARKERS[2]),
    ):
        lower, upper = found.intervals[order[mask]].T
        axes.hlines(places[mask], lower, upper, color=colour, linewidth=2)
        axes.plot(found.means[order[mask]], places[mask], marker, color=colour, markersize=6)
    tidy(axes, values="x")
    axes.set_xlim(*found.bounds)
    shares = [f"{label_text(found.values[i], 20)}  {percent(found.shares[i])}" for i in order]
    axes.set_yticks(places, shares)
    axes.set_ylim(-0.6, order.size - 0.4)
    axes.set_xlabel("mean of the values")
    foot = (
        f"{found.keys.title}, {found.n:,} reports. Lines: {level(found.keys.confidence)} intervals"
    )
    foot += "." if normal.all() else "; of few reports those that hold for any values."
    foot += "" if says.all() else f" {ANY}"
    foot += " Beside a key: the share of people who have it."
    return finish(figure, title="Estimated means by key", foot=foot, path=path)


def _digits(one: MeanEstimate) -> str:
    """The mean with as many decimals as its standard error has two digits in."""
    places = 0 if one.standard_error == 0 else 1 - math.floor(math.log10(one.standard_error))
    return f"{one.possible_mean:,.{min(max(places, 0), 12)}f}".replace("-", "\N{MINUS SIGN}")


def _values(found: Distribution, known: Any, foot: str, path: str | Path | None) -> Figure:
    order = np.argsort(-found.shares, kind="stable")[:_ROWS].tolist()
    figure = new_figure(WIDTH, 1.5 + 0.3 * len(order))
    axes = figure.subplots()
    places = list(range(len(order)))[::-1]
    axes.barh(places, found.shares[order], color=COLOURS[0], height=0.62)
    if known is not None:
        axes.plot(known[order], places, MARKERS[2], color=COLOURS[1], label="truth")
        axes.legend(frameon=False, fontsize=9, loc="lower right")
    tidy(axes, values="x")
    axes.set_yticks(places, [label_text(found.values[i], 24) for i in order])
    axes.set_xlabel("share of people")
    return finish(figure, title="Estimated shares", foot=foot, path=path)

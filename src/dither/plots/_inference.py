"""Pictures of inference: estimates with both errors, statistics among those of the null."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._format import cost_text, number_text
from dither.errors import ArgumentError
from dither.plots._canvas import COLOURS, INK, MUTED, WIDTH, finish, new_figure, tidy
from dither.plots.tables._preview import panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.inference.engine._result import PrivateEstimate, PrivateTest
    from dither.inference.estimates._ecdf import DistributionTest
    from dither.inference.planning._cost import CostOfPrivacy
    from dither.inference.tables._question import InferencePreview

__all__ = [
    "draw_cost",
    "draw_distributions",
    "draw_estimate",
    "draw_inference_preview",
    "draw_test",
]

_MOST = 40


def draw_estimate(result: PrivateEstimate, path: str | Path | None) -> Figure:
    """The estimates with their 95 % intervals: of sampling alone, and with the noise."""
    names = result.names or ("",)
    shown = min(len(names), _MOST)
    figure = new_figure(WIDTH, 1.9 + 0.3 * shown)
    axes = figure.add_subplot()
    tidy(axes, values="x")
    ends = result.errors.interval(0.95)[:shown]
    reach = 1.959964 * result.errors.se_sampling[:shown]
    values, places = result.values[:shown], np.arange(shown)
    for j, (at, half) in enumerate(zip(values, reach, strict=True)):
        # Where the interval is cut, or lies to one side, sampling alone reaches no further.
        axes.plot(
            np.clip([at - half, at + half], *ends[j]),
            [j, j],
            color=COLOURS[1],
            linewidth=6,
            alpha=0.55,
            solid_capstyle="butt",
            label="sampling alone" if not j else None,
        )
    axes.plot(values, places, "o", color=INK, markersize=5)
    axes.update_datalim([(x, 0) for x in ends.ravel() if np.isfinite(x)])
    axes.autoscale_view()
    edges = axes.get_xlim()
    for j, (low, high) in enumerate(ends):
        # An interval without an end runs to the edge, with an arrow there.
        across, label = np.clip([low, high], *edges), None if j else "with noise"
        axes.plot(across, [j, j], color=COLOURS[0], linewidth=2.2, zorder=1.5, label=label)
        for end, edge, mark in ((low, edges[0], "<"), (high, edges[1], ">")):
            if not np.isfinite(end):
                axes.plot([edge], [j], mark, color=COLOURS[0], clip_on=False)
    axes.set_xlim(edges)
    if result.names is None:
        axes.axvline(result.null, color=MUTED, linewidth=0.8, linestyle="--")
    axes.set_yticks(places, [names[j] for j in range(shown)])
    axes.set_ylim(shown - 0.4, -0.6)
    axes.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    foot = f"{result.cost}; bars are 95 % intervals"
    return finish(figure, title=result.title, foot=foot, path=path)


def draw_test(result: PrivateTest, path: str | Path | None) -> Figure:
    """A histogram of the simulated null, with the statistic as a line."""
    if result.simulated is None:
        raise ArgumentError("plot needs a simulated null; this p-value was computed, not simulated")
    figure = new_figure(WIDTH, 3.0)
    axes = figure.add_subplot()
    tidy(axes, values="y")
    axes.hist(result.simulated, bins=60, color=COLOURS[4], label="under the null, with noise")
    axes.axvline(result.statistic, color=COLOURS[5], linewidth=2, label="released")
    axes.set_yticks([])
    axes.set_xlabel("statistic")
    axes.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    foot = f"{result.cost}; null: {result.null}"
    return finish(figure, title=result.title, foot=foot, path=path)


def draw_distributions(result: DistributionTest, path: str | Path | None) -> Figure:
    """The noisy distribution functions: of two samples, or of one against what is expected."""
    from dither.inference.engine._result import p_text

    figure = new_figure(WIDTH, 3.6)
    axes = figure.add_subplot()
    tidy(axes, values="y")
    edges = result.edges
    if result.given:
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1.2, linestyle="--", label="the null's")
        axes.set_xlabel("share expected below")
    else:
        axes.set_xlabel("value")
    names = ("the sample",) if result.given else ("first sample", "second sample")
    for j, (name, ecdf) in enumerate(zip(names, result.ecdf, strict=True)):
        axes.plot(edges, ecdf, color=COLOURS[j], linewidth=2, marker="o", markersize=3, label=name)
    axes.set_ylabel("share found below")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    draws = None if result.simulated is None else result.simulated.size
    foot = f"{result.cost}; p {p_text(result.pvalue, draws)}; null: {result.null}"
    return finish(figure, title=result.title, foot=foot, path=path)


def draw_inference_preview(preview: InferencePreview, path: str | Path | None) -> Figure:
    """What is reached with so many people, and from how many on the noise matters little."""
    figure = new_figure(5.5, 3.6)
    axes = figure.add_subplot()
    order = sorted(range(len(preview.sizes)), key=lambda i: preview.sizes[i])
    sizes = [preview.sizes[i] for i in order]
    panel(axes, sizes, [preview.widths[i] for i in order], 0)
    axes.set_xticks(sizes)
    axes.set_xlabel("people")
    axes.set_ylabel(preview.reaches)
    low, high = axes.get_xlim()
    least = preview.least * preview.least_rows
    if least > low:
        axes.axvspan(low, min(least, high), color=MUTED, alpha=0.12, linewidth=0)
        axes.annotate(
            "too few",
            (low, 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            size=8.5,
            color=MUTED,
        )
        axes.set_xlim(low, high)
    foot = f"{cost_text(preview.epsilon, preview.delta)}; sampling and noise"
    return finish(figure, title=preview.title, foot=foot, path=path)


def draw_cost(cost: CostOfPrivacy, path: str | Path | None) -> Figure:
    """Errors against n, both axes logarithmic, and where privacy starts to cost."""
    figure = new_figure(WIDTH, 4.2)
    axes = figure.add_subplot()
    tidy(axes, values="y")
    axes.set_xscale("log")
    axes.set_yscale("log")
    n = cost.grid
    axes.plot(n, cost.sampling.at(n), color=INK, linewidth=1.4, label=cost.sampling.name)
    axes.plot(
        n,
        cost.lower.at(n),
        color=MUTED,
        linewidth=1.4,
        linestyle="--",
        label=f"{cost.lower.name} (constant {cost.lower.constant})",
    )
    for j, rate in enumerate(cost.methods):
        axes.plot(n, rate.at(n), color=COLOURS[j], linewidth=2, label=rate.name)
    if np.isfinite(cost.starts):
        axes.axvline(cost.starts, color=MUTED, linewidth=0.8, linestyle=":")
        axes.annotate(
            f"below {number_text(cost.starts, 2)} the error more than doubles",
            (cost.starts, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            va="top",
            size=8.5,
            color=MUTED,
        )
    axes.plot([cost.n], [cost.best.at(cost.n)], "o", color=INK, markersize=5)
    axes.set_xlabel("rows")
    axes.set_ylabel(cost.measure)
    axes.set_xlim(n[0], n[-1])
    axes.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(0, -0.16), ncols=2)
    of = f"d = {cost.d:,}" + (f", s = {cost.s:,}" if cost.s is not None else "")
    foot = f"{of}; {cost_text(cost.epsilon, cost.delta)}; the dot is at n = {cost.n:,}"
    return finish(figure, title=f"The cost of privacy: {cost.problem}", foot=foot, path=path)

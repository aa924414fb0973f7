"""Pictures of synthetic tables: the error by order, and two-way tables side by side."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._format import cost_text
from dither.errors import ArgumentError
from dither.plots._canvas import (
    INK,
    MARKERS,
    MUTED,
    WIDTH,
    apart,
    finish,
    heading,
    label_text,
    new_figure,
    percents,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.lab.compare import TableComparison
    from dither.synth._compared import MeasuredDistances
    from dither.synth.model._result import SyntheticModel

__all__ = ["draw_measured", "draw_orders", "draw_pair", "draw_spending"]

_WAYS = {1: "one-way", 2: "two-way", 3: "three-way"}
_LISTED = 20
_BAND = 0.7
"""Of the distance between two orders, what their tables take up."""


def draw_orders(
    found: Mapping[str, TableComparison],
    path: str | Path | None = None,
    *,
    title: str | None = None,
) -> Figure:
    """Draw the distance of every table of counts, by order, with the mean and what chance gives.

    Parameters
    ----------
    found : mapping of str to TableComparison
        By what is written beside their colour.
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(WIDTH, 4.4)
    axes = figure.subplots()
    orders = sorted({order for one in found.values() for order in one.by_order["order"]})
    wide = _BAND / len(found)
    highest = 0.0
    for i, (name, one) in enumerate(found.items()):
        colour, shape = apart(i), MARKERS[i % len(MARKERS)]
        for order in orders:
            some = one.tables.filter(order=order)
            if not some.height:
                continue
            left = order - _BAND / 2 + i * wide
            # In the order of their size, so that many tables are a curve and not a cloud.
            values = np.sort(some["distance"].to_numpy())
            places = left + wide * (np.arange(len(values)) + 0.5) / len(values)
            axes.plot(places, values, ".", color=colour, markersize=3, alpha=0.45)
            mean, chance = float(values.mean()), float(some["chance"].to_numpy().mean())
            middle = left + wide / 2
            axes.plot([left, left + wide], [mean, mean], color=colour, linewidth=1.4)
            axes.plot(
                middle, mean, shape, color=colour, markersize=7,
                label=name if order == orders[0] else None,
            )  # fmt: skip
            axes.plot([left, left + wide], [chance, chance], color=MUTED, linestyle=":")
            highest = max(highest, float(values[-1]))
            axes.annotate(
                f"{mean:.3f}", (middle, mean), (0, 8), textcoords="offset points", ha="center",
                fontsize=9, color=INK,
            )  # fmt: skip
    tidy(axes, values="y")
    axes.plot([], [], color=MUTED, linestyle=":", label="as many real rows, drawn again")
    axes.set_xticks(orders, [_WAYS[order] for order in orders])
    axes.set_ylabel("total variation")
    axes.set_ylim(0, min(1.0, 1.12 * highest) or 1.0)
    axes.set_xlim(orders[0] - 0.5, orders[-1] + 0.5)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    foot = (
        "A dot is a table of counts, its distance from the real one; a shape is the mean. "
        "Read from the real table without noise: it protects nobody."
    )
    return finish(figure, title=title or "Error by order", foot=foot, path=path)


def draw_pair(
    found: TableComparison, path: str | Path | None = None, *, title: str | None = None
) -> Figure:
    """Draw the worst two-way table of both tables side by side, and the difference.

    Raises
    ------
    ArgumentError
        Where there is only one column.
    """
    pair = found.worst_pair
    if pair is None:
        raise ArgumentError("there is no table of two columns: compare at least two, with ways=2")
    rows = len(pair.labels[0])
    figure = new_figure(WIDTH * 1.35, 2.4 + min(rows, 24) * 0.16)
    real, synthetic = np.array(pair.real), np.array(pair.synthetic)
    panels = figure.subplots(1, 3, sharey=True)
    # Shares span orders of magnitude; by their root small cells are seen beside large ones.
    top = float(np.sqrt(max(real.max(), synthetic.max())))
    most = float(np.abs(synthetic - real).max()) or 1.0
    for axes, values, name in zip(panels, (real, synthetic), ("real", "synthetic"), strict=False):
        drawn = axes.imshow(np.sqrt(values), cmap="cividis", vmin=0, vmax=top, aspect="auto")
        _grid(axes, pair.labels, name)
    bar = figure.colorbar(drawn, ax=panels[:2], shrink=0.8, pad=0.01)
    _percents(bar, [x * x for x in np.linspace(0, top, 5)], np.linspace(0, top, 5))
    last = panels[2].imshow(synthetic - real, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    _grid(panels[2], pair.labels, "synthetic less real")
    shown = np.linspace(-most, most, 5)
    _percents(figure.colorbar(last, ax=panels[2], shrink=0.8, pad=0.01), shown, shown)
    panels[0].set_ylabel(label_text(pair.columns[0]))
    for axes in panels:
        axes.set_xlabel(label_text(pair.columns[1]))
    order = found.by_order.filter(order=2)
    foot = (
        f"Of all pairs of columns the one that is farthest off: total variation "
        f"{order['worst'][0]:.3f}, of all pairs {order['mean'][0]:.3f} on average. "
        "Read from the real table without noise: it protects nobody."
    )
    names = " × ".join(label_text(name) for name in pair.columns)
    return finish(figure, title=title or f"{names}, side by side", foot=foot, path=path)


def _grid(axes: Axes, labels: tuple[tuple[str, ...], tuple[str, ...]], name: str) -> None:
    heading(axes, name)
    down, across = labels
    axes.set_yticks(range(len(down)), [label_text(x, 18) for x in down], fontsize=7)
    axes.set_xticks(range(len(across)), [label_text(x, 18) for x in across], fontsize=7)
    axes.tick_params(axis="x", rotation=90 if len(across) > 6 else 0, length=0)
    axes.tick_params(axis="y", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _percents(bar: object, values: object, places: object) -> None:
    """Ticks of a colour bar as shares."""
    said = [f"{100 * float(v):.2g} %".replace("-", "\N{MINUS SIGN}") for v in values]  # type: ignore[attr-defined]
    bar.set_ticks(places, labels=said)  # type: ignore[attr-defined]
    bar.ax.tick_params(labelsize=7, length=0)  # type: ignore[attr-defined]
    bar.outline.set_visible(False)  # type: ignore[attr-defined]


def draw_measured(found: MeasuredDistances, path: str | Path | None = None) -> Figure:
    """Draw measured distances with their intervals, the largest above."""
    shown = found.frame.head(_LISTED)
    figure = new_figure(WIDTH, 1.6 + 0.24 * shown.height)
    axes = figure.subplots()
    for place, (_, value, low, high) in enumerate(shown.iter_rows()):
        axes.plot([low, high], [place, place], color=apart(0), linewidth=2, alpha=0.5)
        axes.plot([value], [place], MARKERS[0], color=apart(0), markersize=5)
    tidy(axes, values="x")
    labels = [label_text(" × ".join(names), 50) for names in shown["columns"]]
    axes.set_yticks(range(shown.height), labels)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("total variation")
    more = len(found.columns) - shown.height
    value, low, high = found.mean()
    foot = (
        f"Measured with noise, {cost_text(Fraction(found.epsilon), Fraction(found.delta))}; each "
        f"interval holds at 95 %. The mean of all is {value:.4f} [{low:.4f}, {high:.4f}]."
        + (f" {more:,} more are nearer." if more else "")
    )
    return finish(figure, title="Distances from the real table", foot=foot, path=path)


def draw_spending(model: SyntheticModel, path: str | Path | None = None) -> Figure:
    """Draw where the budget went: what each measured table got of it, in the order of measuring.

    A measurement of sigma² costs rho = L2²/(2·sigma²), so shares are those of 1/sigma². What went
    into choosing tables is the rest.
    """
    tables = model.spending
    figure = new_figure(WIDTH, 4.2)
    axes = figure.subplots()
    orders = sorted({len(names) for names in tables["columns"]})
    values = tables["share"].to_numpy()
    for order in orders:
        here = np.flatnonzero(tables["columns"].list.len().to_numpy() == order)
        label = f"{_WAYS.get(order, f'{order}-way')}, {100 * float(values[here].sum()):.0f} %"
        axes.bar(here, values[here], color=apart(order - 1), width=0.9, label=label)
    rest = 1.0 - float(values.sum())
    if rest > 0.0005:
        axes.plot([], [], " ", label=f"choosing tables, {100 * rest:.0f} %")
    tidy(axes, values="y")
    percents(axes.yaxis)
    axes.set_ylabel("share of the budget")
    if len(values) <= _LISTED:
        names = [label_text(" × ".join(names), 36) for names in tables["columns"]]
        axes.set_xticks(range(len(values)), names, rotation=35, ha="right", fontsize=8)
    else:
        axes.set_xlabel("tables, in the order in which they were measured")
    axes.legend(frameon=False, fontsize=9)
    foot = (
        f"Method {model.method}: {len(values):,} tables were measured. A share of the budget is "
        "one of rho; twice of it halves the variance of the noise."
    )
    return finish(figure, title="Where the budget went", foot=foot, path=path)

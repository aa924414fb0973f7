"""Pictures of models: scores, coefficients, accuracy over epsilon, spending over steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._format import cost_text
from dither.plots._canvas import (
    COLOURS,
    HAIR,
    INK,
    MARKERS,
    MUTED,
    apart,
    finish,
    heading,
    label_text,
    new_figure,
    short,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.learn.tables._regression import FormulaModel
    from dither.learn.tabular._additive import AdditiveModel
    from dither.learn.tabular._bayes import GaussianNB
    from dither.learn.tabular._boosting import ColumnTerm
    from dither.learn.tabular.trees._forest import Forest

__all__ = [
    "draw_coefficients",
    "draw_laws",
    "draw_over_epsilon",
    "draw_shares",
    "draw_terms",
    "draw_training",
]

_PANELS, _ACROSS, _LISTED, _DRAWN = 6, 3, 8, 16


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
    number = model.kind == "regressor"
    means = "1 is half the distance of its bounds" if number else "above 0 speaks for it"
    foot = f"{cost_text(charge.epsilon, charge.delta)}; {means}"
    return finish(figure, title=f"What each column adds to the score {what}", foot=foot, path=path)


def _legend(figure: Figure, names: list[str]) -> None:
    for k, name in enumerate(names[: len(COLOURS)]):
        figure.axes[0].plot([], [], color=apart(k), linewidth=2, label=label_text(name))
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=len(COLOURS))


def _steps(axes: Axes, term: ColumnTerm) -> None:
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
    if term.column.dates:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        places: Any = AutoDateLocator
        words: Any = ConciseDateFormatter
        locator = places(minticks=2, maxticks=5)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(words(locator))
    axes.set_xlim(ends[0], ends[-1])


def _bars(axes: Axes, term: ColumnTerm) -> None:
    tidy(axes, values="x")
    common = np.sort(np.argsort(-term.rows[:-1])[:_LISTED])
    names = term.labels()
    _grouped(axes, term.scores[common, : len(COLOURS)].T, [names[i] for i in common])


def _grouped(axes: Axes, values: Any, names: Sequence[str]) -> None:
    """Bars of shape (groups, names), those of one name beside each other."""
    height = 0.8 / len(values)
    for k, found in enumerate(values):
        places = np.arange(len(names)) + (k - (len(values) - 1) / 2) * height
        axes.barh(places, found, height=0.85 * height, color=apart(k))
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(np.arange(len(names)), [label_text(name)[:18] for name in names])
    axes.tick_params(axis="y", labelsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)


def draw_shares(model: Forest, path: str | Path | None) -> Figure:
    """How much the trees of a forest ask about each column."""
    shares = model.feature_importances_
    order = np.argsort(-shares, kind="stable")[:_DRAWN]
    figure = new_figure(7.0, 0.36 * len(order) + 1.5)
    axes = figure.add_subplot(1, 1, 1)
    tidy(axes, values="x")
    axes.barh(np.arange(len(order)), 100 * shares[order], height=0.6, color=apart(0))
    names = [label_text(model.grown_.columns[k].name) for k in order]
    axes.set_yticks(np.arange(len(order)), names)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlabel("% of the rows' ways through the trees, by noisy counts")
    charge = model.loss_.charge
    foot = cost_text(charge.epsilon, charge.delta)
    return finish(figure, title="What the trees ask about", foot=foot, path=path)


def draw_laws(model: GaussianNB, path: str | Path | None) -> Figure:
    """Of the six columns that tell most: curves over numbers, bars over categories."""
    fitted, distances = model.fitted_, model.distances_
    ranked = sorted(distances, key=lambda name: -distances[name])[:_PANELS]
    across = min(_ACROSS, len(ranked))
    down = -(-len(ranked) // across)
    figure = new_figure(3.3 * across + 0.4, 2.7 * down + 0.9)
    names = [column.name for column in fitted.encoding.columns]
    classes = np.argsort(-fitted.rows, kind="stable")[: len(COLOURS)]
    for k, name in enumerate(ranked):
        place = names.index(name)
        column, start = fitted.encoding.columns[place], fitted.encoding.starts[place]
        axes = figure.add_subplot(down, across, k + 1)
        heading(axes, label_text(name))
        if column.bounds is None:
            cells = np.arange(column.cells - 1)
            held = np.exp(fitted.shares[:, start + cells]) * 100
            common = np.sort(np.argsort(-held.sum(axis=0), kind="stable")[:_LISTED])
            word = column.end if column.dates else column.label
            words = [word(int(i)) for i in common]
            tidy(axes, values="x")
            _grouped(axes, held[np.ix_(classes, common)], words)
            axes.set_xlabel("% of the class")
            continue
        low, high = column.bounds
        points = np.linspace(-1, 1, 400)
        tidy(axes, values="y")
        for output, label in enumerate(classes):
            mean, variance = fitted.mean[label, start], fitted.variance[label, start]
            law = np.exp(-((points - mean) ** 2) / variance / 2) / np.sqrt(variance)
            axes.plot((points + 1) / 2 * (high - low) + low, law, color=apart(output))
        axes.set_xlim(low, high)
        axes.set_ylim(0, None)
        axes.set_yticks([])
    _legend(figure, [str(label) for label in model.classes_[classes].tolist()])
    charge = model.loss_.charge
    foot = f"{cost_text(charge.epsilon, charge.delta)}; a normal law of each number"
    title = "What each class holds of the columns that tell most"
    return finish(figure, title=title, foot=foot, path=path)


def draw_coefficients(model: FormulaModel, path: str | Path | None) -> Figure:
    """What each column adds from one end of its bounds to the other, with intervals."""
    reach = model.reach
    values, ends = np.array([*model.params.values()][1:]) * reach, model.ends[1:] * reach[:, None]
    order = np.argsort(-np.abs(values))[:_DRAWN]
    figure = new_figure(7.0, 0.36 * len(order) + 1.5)
    axes = figure.add_subplot(1, 1, 1)
    tidy(axes, values="x")
    axes.axvline(0, color=INK, linewidth=0.8)
    places = np.arange(len(order))
    low, high = ends[order].T
    finite = np.isfinite(low) & np.isfinite(high)
    axes.hlines(places[finite], low[finite], high[finite], color=apart(0), linewidth=2.2, alpha=0.5)
    axes.plot(values[order], places, "o", color=apart(0), markersize=6)
    names = [label_text(model.names[1:][k]) for k in order]
    axes.set_yticks(places, [n if f else f"{n} (±∞)" for n, f in zip(names, finite, strict=True)])
    axes.set_ylim(len(order) - 0.4, -0.6)
    what = (
        model.design.answer if model.kind == "linear" else f"the log odds of {model.design.answer}"
    )
    charge = model.loss_.charge
    foot = (
        f"{cost_text(charge.epsilon, charge.delta)}; intervals at 95 %; of a number from its lower "
        "bound to its upper, of a level beside the reference"
    )
    return finish(figure, title=f"What each adds to {label_text(what)}", foot=foot, path=path)


def draw_over_epsilon(
    curves: Mapping[str, Sequence[Sequence[float]]],
    path: str | Path | None = None,
    *,
    measure: str = "accuracy",
    least: Mapping[str, float] | None = None,
    title: str = "",
    foot: str = "",
) -> Figure:
    """How good models are over what they cost.

    Parameters
    ----------
    curves : mapping
        By name: epsilons and values; or epsilons, lower ends, values and upper ends.
    path : str or Path, optional
    measure : str
        What is good.
    least : mapping of str to float, optional
        Levels that are drawn as lines, such as that of a model without noise.
    title, foot : str
    """
    figure = new_figure(7.0, 4.2)
    axes = figure.add_subplot(1, 1, 1)
    tidy(axes, values="y")
    for k, (name, curve) in enumerate(curves.items()):
        epsilons, *ends = curve
        values = ends[1] if len(ends) == 3 else ends[0]
        if len(ends) == 3:
            axes.fill_between(epsilons, ends[0], ends[2], color=apart(k), alpha=0.15, linewidth=0)
        axes.plot(
            epsilons,
            values,
            color=apart(k),
            marker=MARKERS[k % len(MARKERS)],
            markersize=5,
            linewidth=1.8,
            label=label_text(name),
        )
    axes.set_xscale("log")
    every = sorted({float(e) for curve in curves.values() for e in curve[0]})
    axes.set_xticks(every, [short(e) for e in every])
    axes.minorticks_off()
    for name, value in (least or {}).items():
        axes.axhline(value, color=MUTED, linewidth=1, linestyle=":")
        axes.annotate(
            label_text(name), (every[-1], value), (0, 3), textcoords="offset points",
            ha="right", fontsize=8, color=MUTED,
        )  # fmt: skip
    axes.set_xlabel("epsilon")
    axes.set_ylabel(measure)
    if len(curves) > 1:
        axes.legend(frameon=False, fontsize=9, loc="lower right")
    return finish(figure, title=title or f"{measure} over epsilon", foot=foot, path=path)


def draw_training(
    steps: Sequence[int],
    spent: Sequence[float],
    measured: Mapping[str, Sequence[float]] | None = None,
    *,
    title: str = "",
    foot: str = "",
    path: str | Path | None = None,
) -> Figure:
    """What training has spent after each step, and how good it was by then.

    Parameters
    ----------
    steps : sequence of int
    spent : sequence of float
        Epsilon after each of them.
    measured : mapping of str to sequence of float, optional
        Of rows that are public, or made with noise: the loss on protected rows is not protected.
    title, foot : str
    path : str or Path, optional
    """
    from matplotlib.ticker import MaxNLocator

    panels = 2 if measured else 1
    figure = new_figure(3.9 * panels + 0.6, 3.4)
    if measured:
        axes = figure.add_subplot(1, 2, 1)
        tidy(axes, values="y")
        for k, (name, values) in enumerate(measured.items()):
            axes.plot(steps, values, color=apart(k), linewidth=1.8, label=label_text(name))
        heading(axes, label_text(next(iter(measured))) if len(measured) == 1 else "measured")
        if len(measured) > 1:
            axes.legend(frameon=False, fontsize=9)
    axes = figure.add_subplot(1, panels, panels)
    tidy(axes, values="y")
    axes.plot(steps, spent, color=apart(panels - 1), linewidth=1.8)
    axes.set_ylim(0, None)
    heading(axes, "epsilon spent")
    for axes in figure.axes:
        axes.set_xlabel("step")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    return finish(figure, title=title or "Training, step by step", foot=foot, path=path)

"""The picture of a release: every output, group by group, with its error bars.

One key gives bars or points; ranges of a number give a histogram; two keys give colours, or one
panel for each level where there are too many; no key gives one line for each answer. Long lists
lie on their side, and past `MOST` groups the largest are shown and the picture says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dither._format import level
from dither.errors import ArgumentError, nearest
from dither.plots._canvas import (
    INK,
    MUTED,
    finish,
    foot_line,
    new_figure,
    short,
    tidy,
    with_unit,
)
from dither.plots._levels import KeyLevels, joined, levels_of
from dither.plots._panels import (
    Floats,
    Form,
    Panel,
    Series,
    draw,
    lay_out,
    limits,
    reads_as_line,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_release"]

MOST = 30
"""Groups that one picture shows."""

HUES = 5
"""Levels of a second key that colours can carry."""

PANELS = 9
"""Levels of a second key that panels can carry."""


def plot_release(
    frame: Any,
    keys: Sequence[str],
    outputs: Sequence[str],
    *,
    epsilon: Any,
    delta: Any = 0,
    neighbours: str | None = None,
    confidence: float = 0.95,
    units: Mapping[str, str | None] | None = None,
    binned: Collection[str] | None = None,
    bars: Collection[str] | None = None,
    ranges: Mapping[str, Sequence[float]] | None = None,
    title: str | None = None,
    output: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw a release.

    Parameters
    ----------
    frame : Polars or pandas frame, or mapping of str to sequence
        The key columns, and for each output ``name``, ``name_lower`` and ``name_upper``.
    keys, outputs : sequence of str
        Which columns are which.
    epsilon, delta : number
        What the release cost; the picture states it.
    neighbours : str, optional
        Who is protected and which tables are neighbours, in words.
    confidence : float
        Of the intervals, in (0, 1).
    units : mapping of str to str, optional
        Units of measurement, by output or key, for the axes.
    binned : collection of str, optional
        Keys whose texts are ranges of a number, such as ``"[0, 18)"``. Without it, a key is taken
        as ranges where all its texts read so.
    bars : collection of str, optional
        Outputs to draw as bars from zero, such as counts and sums; the others are points. Without
        it, an output is drawn as bars where zero lies near enough for that to waste no room.
    ranges : mapping of str to (float, float), optional
        By output: the least and the largest value that it can have, where both are known. Where
        an interval is all of that, the answer says nothing: a line is broken there, and in the
        place of a bar or point stands a dashed line.
    title : str, optional
    output : str, optional
        Draw this output alone.
    path : str or Path, optional
        Where to save it: PNG, SVG or PDF.

    Returns
    -------
    matplotlib.figure.Figure
        It opens no window and leaves matplotlib's global state alone.

    Raises
    ------
    MissingLibraryError
        Where matplotlib is not installed.
    ArgumentError
        Where a column is missing, or the path cannot be written.

    Notes
    -----
    Drawing is post-processing of released answers: it costs nothing and weakens no guarantee.

    Examples
    --------
    >>> figure = plot_release(
    ...     {"region": ["north", "south"], "n": [40, 61], "n_lower": [35, 56], "n_upper": [45, 66]},
    ...     keys=["region"], outputs=["n"], epsilon=0.5,
    ... )
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['n']
    """
    columns = _columns_of(frame, keys, outputs)
    shown = list(outputs) if output is None else [output]
    if output is not None and output not in outputs:
        raise ArgumentError(f"output {output!r} is not in the release" + nearest(output, outputs))
    if not shown:
        raise ArgumentError("outputs must name at least one column")
    named = {name: with_unit(name, units) for name in (*keys, *outputs)}
    covers = f"{level(confidence)} intervals cover noise only"
    foot = foot_line(epsilon, delta, neighbours, covers)
    if not keys:
        figure, remark = _single(columns, shown, named, ranges or {})
        return finish(figure, title=title, foot=". ".join([*remark, foot]), path=path)
    figure, remark = _grouped(columns, keys, shown, named, binned, bars, ranges or {})
    return finish(figure, title=title, foot=". ".join([*remark, foot]), path=path)


def _grouped(
    columns: Mapping[str, list[Any]],
    keys: Sequence[str],
    outputs: list[str],
    named: Mapping[str, str],
    binned: Collection[str] | None,
    bars: Collection[str] | None,
    ranges: Mapping[str, Sequence[float]],
) -> tuple[Figure, list[str]]:
    """Panels over the levels of the first key; the second key is colours, panels or both."""
    first, second = keys[:1], keys[1:]
    cut = binned is None or first[0] in binned
    main = levels_of(named[first[0]], columns[first[0]], cut)
    row_main = columns[first[0]]
    other: KeyLevels | None = None
    row_other: list[Any] = []
    if second:
        _, row_other = joined(second, [columns[k] for k in second])
        cut = binned is None or second[0] in binned
        other = levels_of(" · ".join(named[k] for k in second), row_other, cut)
        if len(other) > len(main):
            main, other, row_main, row_other = other, main, row_other, row_main
    remark = []
    if len(main) > MOST and main.places is None and main.edges is None:
        keep = _largest(main, row_main, _all_rows(columns, outputs[0]).value, MOST)
        remark.append(f"{MOST} of {len(main)} groups shown, those with the largest {outputs[0]}")
        main = main.kept(keep)
    facets = other if other is not None and len(other) > HUES else None
    hues = other if facets is None else None
    if facets is not None:
        if len(facets) > PANELS:
            remark.append(f"{PANELS} of {len(facets)} {facets.name} shown")
            facets = facets.kept(range(PANELS))
        if len(outputs) > 1:
            remark.append(f"output={outputs[0]!r} shown of {', '.join(outputs)}")
        outputs = outputs[:1]

    panels = []
    vague = moved = False
    for name in outputs:
        every = _all_rows(columns, name)
        if name in ranges:
            every, blank = _without_vague(every, ranges[name], line=reads_as_line(main))
            vague = vague or blank
        moved = moved or bool((every.moved & ~every.vague).any())
        if other is None:
            whole = _over_levels(every, named[name], main, row_main, [True] * len(row_main))
            panels.append(Panel(name, "", (whole,)))
            continue
        split = other if facets is None else facets
        series = tuple(
            _over_levels(every, label, main, row_main, [o == value for o in row_other])
            for value, label in zip(split.values, split.labels, strict=True)
        )
        if facets is None:
            panels.append(Panel(name, "", series))
        else:
            panels += [Panel(name, f"{facets.name}: {s.label}", (s,)) for s in series]
    if vague:
        how = "A line is broken" if reads_as_line(main) else "A dashed line stands alone"
        remark.append(f"{how} where the noise leaves every value possible")
    if moved:
        remark.append(
            "A cross marks an answer that noise made impossible; it is drawn at the nearest "
            "possible one"
        )
    return lay_out(panels, main, hues, named, bars), remark


def _single(
    columns: Mapping[str, list[Any]],
    outputs: list[str],
    named: Mapping[str, str],
    ranges: Mapping[str, Sequence[float]],
) -> tuple[Figure, list[str]]:
    """One strip for each answer, as each has its own scale."""
    blank = False
    figure = new_figure(6.5, 0.78 * len(outputs) + 0.7)
    grid = figure.subplots(len(outputs), 1, squeeze=False)
    for axes, name in zip(grid.flat, outputs, strict=True):
        one = _all_rows(columns, name)
        if name in ranges:
            one, vague = _without_vague(one, ranges[name], line=False)
            blank = blank or vague
        draw(axes, Form.POINTS, KeyLevels("", (0,), (named[name],)), [one], flat=True)
        tidy(axes, values="x")
        axes.grid(visible=False)
        low, high = limits([one], zero=False)
        middle, half = (low + high) / 2, (high - low) / 2
        axes.set_xlim(middle - 2 * half, middle + 2 * half)
        axes.spines["left"].set_visible(False)
        axes.spines["bottom"].set_visible(True)
        axes.tick_params(axis="x", labelsize=8, labelcolor=MUTED)
        axes.tick_params(axis="y", labelsize=10)
        axes.annotate(
            _answer_text(one, half),
            (1.03, 0.5),
            xycoords="axes fraction",
            va="center",
            size=10,
            weight="bold",
            color=INK,
        )
    return figure, ["The noise leaves every value possible where none is shown"] if blank else []


def _answer_text(one: Series, half: float) -> str:
    value = float(one.value[0]) if one.value.size else math.nan
    if one.vague.any():
        return "any value"
    return "no answer" if math.isnan(value) else short(_rounded(value, half))


def _rounded(value: float, half: float) -> float:
    """A value to the digits that its interval lets it claim."""
    if not half or not math.isfinite(half):
        return value
    return round(value, max(0, 1 - math.floor(math.log10(half))))


def _columns_of(frame: Any, keys: Sequence[str], outputs: Sequence[str]) -> dict[str, list[Any]]:
    """The columns that a picture needs, as lists.

    Raises
    ------
    ArgumentError
        Where one is missing.
    """
    wanted = [*keys, *(n + end for n in outputs for end in ("", "_lower", "_upper"))]
    there = list(frame) if isinstance(frame, Mapping) else list(frame.columns)
    for name in wanted:
        if name not in there:
            raise ArgumentError(f"frame has no column {name!r}" + nearest(name, there))
    return {name: list(frame[name]) for name in wanted}


def _all_rows(columns: Mapping[str, list[Any]], name: str) -> Series:
    """The answers of one output in the order of the rows.

    A noisy count may lie below 0, where its interval does not: it is drawn where its interval
    allows, with a mark.
    """
    value, lower, upper = (_floats(columns[name + end]) for end in ("", "_lower", "_upper"))
    shown = np.fmin(np.fmax(value, lower), upper)
    shown = np.where(np.isnan(value), np.nan, shown)
    moved = (shown != value) & ~np.isnan(value)
    return Series(name, shown, lower, upper, moved, np.zeros(value.size, dtype=np.bool_))


def _says_something(every: Series, possible: Sequence[float]) -> NDArray[np.bool_]:
    """Whether an interval leaves out any of what is possible."""
    low, high = possible
    slack = 1e-9 * (high - low)
    return np.asarray((every.lower > low + slack) | (every.upper < high - slack))


def _without_vague(every: Series, possible: Sequence[float], *, line: bool) -> tuple[Series, bool]:
    """Answers that leave no value out marked, of a line left out; and whether there are such."""
    vague = ~_says_something(every, possible) & np.isfinite(every.value)
    if line:
        return _only(every, ~vague), bool(vague.any())
    return replace(every, vague=vague), bool(vague.any())


def _only(every: Series, kept: NDArray[np.bool_]) -> Series:
    """The answers of the kept rows, and NaN elsewhere."""
    value, lower, upper = (
        np.where(kept, part, np.nan) for part in (every.value, every.lower, every.upper)
    )
    return Series(every.label, value, lower, upper, every.moved & kept, every.vague & kept)


def _over_levels(
    every: Series, label: str, main: KeyLevels, rows: Sequence[Any], kept: Sequence[bool]
) -> Series:
    """The answers of the kept rows, placed by the level of the main key; NaN elsewhere."""
    place = {value: i for i, value in enumerate(main.values)}
    value, lower, upper = (np.full(len(main), np.nan) for _ in range(3))
    moved, vague = np.zeros((2, len(main)), dtype=np.bool_)
    for row, key in enumerate(rows):
        if kept[row] and key in place:
            at = place[key]
            value[at], lower[at], upper[at] = every.value[row], every.lower[row], every.upper[row]
            moved[at], vague[at] = every.moved[row], every.vague[row]
    return Series(label, value, lower, upper, moved, vague)


def _largest(main: KeyLevels, rows: Sequence[Any], values: Floats, most: int) -> list[int]:
    """Where the levels with the largest values stand, largest first."""
    best = dict.fromkeys(main.values, -math.inf)
    for key, value in zip(rows, values, strict=True):
        if not math.isnan(value):
            best[key] = max(best[key], abs(float(value)))
    return sorted(range(len(main)), key=lambda i: -best[main.values[i]])[:most]


def _floats(column: Sequence[Any]) -> Floats:
    return np.array([math.nan if x is None else float(x) for x in column], dtype=np.float64)

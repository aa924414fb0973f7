"""What was rebuilt of clients' updates, and which labels were read, beside what is certified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._format import at_least, at_most, percent
from dither.plots._canvas import COLOURS, INK, MUTED, WIDTH, finish, new_figure, percents, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.lab.attack import Inversion, LabelLeak, Membership

__all__ = ["draw_inversions", "draw_label_leaks"]

_SHOWN = 8


def draw_inversions(
    found: Sequence[Inversion],
    path: str | Path | None = None,
    *,
    delta: float = 1e-5,
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw records above what was rebuilt of them, a row for each client.

    Parameters
    ----------
    found : sequence of Inversion
        Of the same records.
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.
    delta : float
        At which epsilon is certified and claimed.
    labels : sequence of str, optional
        By default what each update is called.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    first = found[0]
    many = min(_SHOWN, len(first.records))
    said = labels or [one.verdict.release for one in found]
    rows: list[tuple[str, Any]] = [("the records", first.records)]
    if first.bare is not None:
        rows.append(("rebuilt, no noise", first.bare))
    rows += [
        (f"{label}\n{_certified(one.which, delta)}", one.rebuilt)
        for one, label in zip(found, said, strict=True)
    ]
    figure = new_figure(WIDTH, 0.75 + 0.82 * len(rows))
    panels = figure.subplots(len(rows), many, squeeze=False)
    side = math.isqrt(first.records.shape[1])
    square = side * side == first.records.shape[1]
    for (label, values), line in zip(rows, panels, strict=True):
        for axes, value in zip(line, values, strict=False):
            axes.set(xticks=[], yticks=[])
            for spine in axes.spines.values():
                spine.set_visible(False)
            if square:
                axes.imshow(value.reshape(side, side), cmap="gray_r", interpolation="nearest")
            else:
                axes.plot(value, color=COLOURS[0], linewidth=1)
        line[0].set_ylabel(
            label, rotation=0, ha="right", va="center", fontsize=9, color=INK, labelpad=8
        )
    alike = ", ".join(f"{one.likeness.mean():.2f}" for one in found)
    bare = (
        "" if first.bare_likeness is None else f"{first.bare_likeness.mean():.2f} without noise, "
    )
    foot = (
        f"Correlation with the record, on average: {bare}then {alike}. Certified: what telling two "
        f"of the records apart proves to be lost, at δ = {delta:g}."
    )
    return finish(figure, title=title or "Rebuilt from one update", foot=foot, path=path)


def draw_label_leaks(
    found: Sequence[LabelLeak],
    path: str | Path | None = None,
    *,
    delta: float = 1e-5,
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the share of labels that was read from each client's update.

    Parameters
    ----------
    found : sequence of LabelLeak
    path, delta, labels, title
        As of `draw_inversions`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    first = found[0]
    said = list(labels or [one.verdict.release for one in found])
    shares, colours = [one.right for one in found], [COLOURS[0]] * len(found)
    names = [f"{n}\n{_certified(o.which, delta)}" for n, o in zip(said, found, strict=True)]
    if first.bare is not None:
        shares.insert(0, float((first.labels == first.bare).mean()))
        names.insert(0, "no noise")
        colours.insert(0, MUTED)
    figure = new_figure(WIDTH, 1.6 + 0.5 * len(shares))
    axes = figure.subplots()
    places = np.arange(len(shares))[::-1]
    axes.barh(places, shares, color=colours, height=0.6)
    for place, share in zip(places, shares, strict=True):
        axes.annotate(
            percent(share), (share, place), (4, 0), textcoords="offset points", va="center",
            size=9, color=INK,
        )  # fmt: skip
    axes.axvline(first.blind, color=MUTED, linewidth=1, linestyle=":")
    axes.set_yticks(places, names)
    axes.set_xlim(0, 1.08)
    tidy(axes, values="x")
    percents(axes.xaxis)
    axes.set_xlabel("labels that are read rightly")
    foot = (
        f"Blindly {percent(first.blind)}, dotted. Certified: what telling two labels of one "
        f"record apart proves to be lost, at δ = {delta:g}."
    )
    return finish(figure, title=title or "Labels read from one update", foot=foot, path=path)


def _certified(which: Membership, delta: float) -> str:
    lower = at_least(which.certified(delta), 2)
    if which.loss is None:
        return f"certified ε ≥ {lower}"
    return f"certified ε ≥ {lower} of {at_most(float(which.loss.epsilon(delta).upper), 2)}"

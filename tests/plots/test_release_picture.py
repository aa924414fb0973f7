"""Pictures of releases: what is on the axes, the bars and the intervals."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither.errors import ArgumentError, DitherError
from dither.plots import plot_release


def columns(name: str, values: list[float | None], half: float = 2.0) -> dict[str, list[Any]]:
    """The three columns of an output."""
    return {
        name: values,
        f"{name}_lower": [None if v is None else v - half for v in values],
        f"{name}_upper": [None if v is None else v + half for v in values],
    }


def spans(axes: Any, vertical: bool = True) -> list[tuple[float, float]]:
    """The ends of all intervals of a panel, in the order drawn."""
    axis = 1 if vertical else 0
    return [
        (float(segment[0][axis]), float(segment[1][axis]))
        for container in axes.containers
        if container.__class__.__name__ == "ErrorbarContainer"
        for lines in container.lines[2]
        for segment in lines.get_segments()
    ]


def heights(axes: Any) -> list[float]:
    """The bars of a panel."""
    return [float(bar.get_height()) for bar in axes.patches]


REGIONS = {
    "region": ["north", "south", "east"],
    **columns("n", [40.0, 61.0, 9.0]),
    **columns("cost", [310.0, 320.0, 305.0]),
}


def test_counts_are_bars_and_means_are_points_with_their_intervals() -> None:
    """Two outputs make two panels, and every interval reaches from lower to upper."""
    figure = plot_release(
        REGIONS,
        ["region"],
        ["n", "cost"],
        epsilon=0.5,
        units={"cost": "EUR"},
        title="Visits",
    )
    n, cost = figure.axes
    assert heights(n) == [40.0, 61.0, 9.0]
    assert spans(n) == [(38.0, 42.0), (59.0, 63.0), (7.0, 11.0)]
    assert heights(cost) == []
    assert spans(cost) == [(308.0, 312.0), (318.0, 322.0), (303.0, 307.0)]
    assert (n.get_ylabel(), cost.get_ylabel()) == ("n", "cost (EUR)")
    assert n.get_xlabel() == "region"
    assert [t.get_text() for t in n.get_xticklabels()] == REGIONS["region"]
    assert n.get_ylim()[0] == 0, "bars start at zero"
    assert figure.get_suptitle() == "Visits"


def test_bars_can_be_chosen() -> None:
    """The caller who knows the kinds of aggregate says which are bars."""
    figure = plot_release(REGIONS, ["region"], ["n", "cost"], epsilon=1, bars=["cost"])
    assert [len(axes.patches) for axes in figure.axes] == [0, 3]


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ({"epsilon": 0.5}, "ε = 0.5; 95 %"),
        ({"epsilon": Fraction(1, 3)}, "ε = 0.3334; "),
        ({"epsilon": 2, "delta": 1e-6}, "ε = 2, δ = 1e-6; "),
        ({"epsilon": 1, "neighbours": "one woman"}, "ε = 1; protects one woman; 95 %"),
        ({"epsilon": 1, "confidence": 0.9}, "90 % intervals cover noise only"),
    ],
)
def test_the_foot_states_the_guarantee(cost: dict[str, Any], said: str) -> None:
    """Cost rounded up, neighbours, and what the intervals cover are on every picture."""
    figure = plot_release(REGIONS, ["region"], ["n"], **cost)
    assert said in figure.get_supxlabel().replace("\n", " ")


def test_even_ranges_make_a_histogram_on_a_number_axis() -> None:
    """Bars touch, stand where their range lies, and the ticks are its edges."""
    frame = {"age": ["[0, 10)", "[10, 20)", "[20, 30]"], **columns("count", [5.0, 9.0, 2.0], 3.0)}
    (axes,) = plot_release(frame, ["age"], ["count"], epsilon=1, units={"age": "years"}).axes
    centres = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    assert centres == pytest.approx([5, 15, 25])
    assert axes.get_xlim() == (0.0, 30.0)
    assert all(bar.get_width() > 9 for bar in axes.patches)
    assert axes.get_xlabel() == "age (years)"
    assert spans(axes)[2] == (-1.0, 5.0), "an interval may reach below zero"


def test_texts_are_ranges_only_where_the_release_says_so() -> None:
    """The caller who knows which keys are ranges is believed over the look of their texts."""
    frame = {"code": ["1–2", "0–1"], **columns("n", [5.0, 9.0])}
    (axes,) = plot_release(frame, ["code"], ["n"], epsilon=1, binned=[]).axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["1–2", "0–1"]
    (axes,) = plot_release(frame, ["code"], ["n"], epsilon=1, binned=["code"]).axes
    assert axes.get_xlim() == (0.0, 2.0)


def test_uneven_ranges_keep_their_labels() -> None:
    """Ranges of different width would lie on a number axis, so each is named."""
    frame = {"age": ["[0, 18)", "[18, 65)"], **columns("count", [5.0, 9.0])}
    (axes,) = plot_release(frame, ["age"], ["count"], epsilon=1).axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["0–18", "18–65"]


def test_long_names_lie_on_their_side() -> None:
    """Labels that do not fit side by side go down the page, first on top."""
    names = [f"department of matters, number {i}" for i in range(9)]
    frame = {"where": names, **columns("n", [float(10 * i) for i in range(1, 10)])}
    (axes,) = plot_release(frame, ["where"], ["n"], epsilon=1).axes
    assert [t.get_text() for t in axes.get_yticklabels()] == names
    assert axes.get_yticks()[0] > axes.get_yticks()[-1]
    assert spans(axes, vertical=False)[0] == (8.0, 12.0)
    assert axes.get_xlabel() == "n"


def test_past_thirty_groups_the_largest_stay_and_the_picture_says_so() -> None:
    """A list that no page holds is cut by the first output, never silently."""
    frame = {
        "town": [f"town {i}" for i in range(50)],
        **columns("n", [float(i) for i in range(50)]),
    }
    figure = plot_release(frame, ["town"], ["n"], epsilon=1)
    (axes,) = figure.axes
    assert [t.get_text() for t in axes.get_yticklabels()] == [
        f"town {i}" for i in range(49, 19, -1)
    ]
    assert "30 of 50 groups shown, those with the largest n" in figure.get_supxlabel()


def test_a_long_run_of_days_is_a_line_with_a_band() -> None:
    """Many moments read better as a line; the band runs from lower to upper."""
    days = [dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(20)]
    frame = {"day": days, **columns("n", [100.0 + i for i in range(20)])}
    (axes,) = plot_release(frame, ["day"], ["n"], epsilon=1).axes
    (line,) = axes.lines
    assert list(np.asarray(line.get_ydata())) == frame["n"]
    (band,) = axes.collections
    extent = band.get_paths()[0].vertices[:, 1]
    assert (extent.min(), extent.max()) == (98.0, 121.0)


def test_a_second_key_is_colour_and_shape() -> None:
    """Each level of the second key is one series with its own entry in the legend."""
    frame = {
        "region": ["north", "north", "south", "south", "east", "east"],
        "sex": ["women", "men"] * 3,
        **columns("n", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.5),
    }
    figure = plot_release(frame, ["region", "sex"], ["n"], epsilon=1)
    (axes,) = figure.axes
    assert heights(axes) == [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["women", "men"]
    assert legend.get_title().get_text() == "sex"


def test_too_many_colours_become_panels_on_one_scale() -> None:
    """Past five levels each gets a panel, and all share their limits."""
    hours, days = range(8), [f"d{i}" for i in range(7)]
    frame = {
        "hour": [h for h in hours for _ in days],
        "day": [d for _ in hours for d in days],
        **columns("n", [float(i) for i in range(56)]),
        **columns("m", [float(i) for i in range(56)]),
    }
    figure = plot_release(frame, ["hour", "day"], ["n", "m"], epsilon=1)
    drawn = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title(loc="left") for axes in drawn] == [f"day: {d}" for d in days]
    assert len({axes.get_ylim() for axes in drawn}) == 1
    assert "output='n' shown of n, m" in figure.get_supxlabel()


def test_three_keys_are_drawn() -> None:
    """Keys past the first are joined, so that any release has a picture."""
    frame = {"a": ["x", "x", "y", "y"], "b": [1, 2, 1, 2], "c": [True] * 4}
    figure = plot_release(
        {**frame, **columns("n", [1.0, 2.0, 3.0, 4.0])}, ["a", "b", "c"], ["n"], epsilon=1
    )
    assert sorted(heights(figure.axes[0])) == [1.0, 2.0, 3.0, 4.0]


def test_without_keys_each_answer_is_a_line_of_its_own() -> None:
    """Answers of different size each get their own scale and their figure in text."""
    frame = {**columns("n", [6366.0], 30.0), **columns("age", [29.083], 0.04)}
    figure = plot_release(frame, [], ["n", "age"], epsilon=1, units={"age": "years"})
    assert [axes.get_yticklabels()[0].get_text() for axes in figure.axes] == ["n", "age (years)"]
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["6,366", "29.08"]
    assert spans(figure.axes[0], vertical=False) == [(6336.0, 6396.0)]


def test_missing_answers_leave_a_gap_and_open_intervals_reach_the_edge() -> None:
    """NULL, NaN and infinity in a release neither raise nor stretch the axis."""
    frame = {
        "g": ["a", "b", "c"],
        "m": [10.0, None, 12.0],
        "m_lower": [9.0, None, float("-inf")],
        "m_upper": [11.0, float("nan"), 13.0],
    }
    (axes,) = plot_release(frame, ["g"], ["m"], epsilon=1).axes
    low, high = axes.get_ylim()
    assert 8 < low < 9
    assert 13 < high < 14
    assert spans(axes) == [(9.0, 11.0), (low, 13.0)]


def test_an_empty_release_and_one_without_any_answer_are_drawn(tmp_path: Path) -> None:
    """A release of no discovered key is a picture too."""
    for values in ([], [None]):
        frame = {"g": ["a"] * len(values), **columns("n", list(values))}
        plot_release(frame, ["g"], ["n"], epsilon=1, path=tmp_path / "empty.png")
    plot_release(columns("n", [None]), [], ["n"], epsilon=1, path=tmp_path / "none.png")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_saved(tmp_path: Path, ending: str) -> None:
    """Each format is written; PNG is wide enough to be sharp in a README."""
    path = tmp_path / f"picture.{ending}"
    plot_release(pl.DataFrame(REGIONS), ["region"], ["n", "cost"], epsilon=1, path=path)
    head = path.read_bytes()[:24]
    assert head.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])
    if ending == "png":
        assert int.from_bytes(head[16:20], "big") == 1200


def test_bad_arguments_name_the_fix(tmp_path: Path) -> None:
    """Unknown columns and formats are named, with the nearest that exists."""
    with pytest.raises(ArgumentError, match="frame has no column 'm'"):
        plot_release(REGIONS, ["region"], ["m"], epsilon=1)
    with pytest.raises(ArgumentError, match="did you mean 'cost'"):
        plot_release(REGIONS, ["region"], ["n", "cost"], epsilon=1, output="costs")
    with pytest.raises(ArgumentError, match="must end in one of"):
        plot_release(REGIONS, ["region"], ["n"], epsilon=1, path=tmp_path / "picture.doc")
    with pytest.raises(ArgumentError, match="path cannot be written"):
        plot_release(REGIONS, ["region"], ["n"], epsilon=1, path=tmp_path / "no" / "p.png")
    with pytest.raises(ArgumentError, match="outputs must name"):
        plot_release(REGIONS, ["region"], [], epsilon=1)


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named, so that the fix can be pasted."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DitherError, match=r"pip install 'dither\[plots\]'"):
        plot_release(REGIONS, ["region"], ["n"], epsilon=1)


def test_no_global_state_is_touched() -> None:
    """Importing the room loads no matplotlib, and drawing loads no pyplot and no window."""
    code = (
        "import sys, dither.plots as p; assert 'matplotlib' not in sys.modules\n"
        "p.plot_release({'n': [1], 'n_lower': [0], 'n_upper': [2]}, [], ['n'], epsilon=1)\n"
        "assert 'matplotlib.pyplot' not in sys.modules and 'tkinter' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_an_impossible_answer_is_drawn_where_it_can_be_and_marked() -> None:
    """A count below zero stands at zero, in its interval, under a mark that the foot explains."""
    frame = {"region": ["a", "b"], "n": [-35, 40], "n_lower": [0, 30], "n_upper": [90, 50]}
    figure = plot_release(frame, ["region"], ["n"], epsilon=1, bars=["n"])
    (axes,) = figure.axes
    assert heights(axes) == [0.0, 40.0]
    marks = [line for line in axes.lines if line.get_marker() == "x"]
    assert [list(m.get_xydata()[0]) for m in marks] == [[0.0, 0.0]]
    foot = figure._supxlabel.get_text().replace("\n", " ")
    assert "A cross marks an answer that noise made impossible" in foot
    assert "x:" not in foot, "that would be about a column named x"
    plain = plot_release({**frame, "n": [35, 40]}, ["region"], ["n"], epsilon=1, bars=["n"])
    assert "impossible" not in plain._supxlabel.get_text()


def test_a_line_stays_in_its_band_and_breaks_where_a_group_is_missing() -> None:
    """No answer and no group are gaps; an impossible answer lies on the edge of its band."""
    months = [dt.date(2024, m, 1) for m in (1, 2, 3, 4, 5, 8, 9, 10, 11, 12)]
    value = [4.0, 5.0, -3.0, None, 6.0, 7.0, 7.0, 8.0, 9.0, 9.0]
    lower = [3.0, 4.0, 0.0, None, 5.0, 6.0, 6.0, 7.0, 8.0, 8.0]
    upper = [5.0, 6.0, 1.0, None, 7.0, 8.0, 8.0, 9.0, 10.0, 10.0]
    frame = {"month": months, "n": value, "n_lower": lower, "n_upper": upper}
    (axes,) = plot_release(frame, ["month"], ["n"], epsilon=1, bars=["n"]).axes
    lines = [line for line in axes.lines if line.get_marker() != "x"]
    assert [len(line.get_ydata()) for line in lines] == [3, 1, 5]
    assert list(lines[0].get_ydata()) == [4.0, 5.0, 0.0]


def test_a_line_breaks_where_the_noise_leaves_every_value_possible() -> None:
    """No mean is drawn of an empty month, nor a band of all there is; the axis keeps its ends."""
    months = [dt.date(2024, m, 1) for m in range(1, 13)]
    empty = {0, 4, 5}
    value = [0.4 if i in empty else 0.46 for i in range(12)]
    lower = [0.0 if i in empty else 0.45 for i in range(12)]
    upper = [1.0 if i in empty else 0.47 for i in range(12)]
    frame = {"month": months, "x": value, "x_lower": lower, "x_upper": upper}
    figure = plot_release(frame, ["month"], ["x"], epsilon=1, bars=[], ranges={"x": (0, 1)})
    (axes,) = figure.axes
    assert [len(line.get_ydata()) for line in axes.lines] == [3, 6]
    assert all(y < 0.5 for band in axes.collections for y in band.get_paths()[0].vertices[:, 1])
    assert axes.get_xlim()[0] < axes.convert_xunits(months[0])
    assert "A line is broken where the noise leaves every" in figure._supxlabel.get_text()
    (plain,) = plot_release(frame, ["month"], ["x"], epsilon=1, bars=[]).axes
    assert [len(line.get_ydata()) for line in plain.lines] == [12]


@pytest.mark.parametrize("bars", [["x"], []])
def test_an_answer_that_may_be_anything_is_neither_bar_nor_point(bars: list[str]) -> None:
    """In its place stands a dashed line, and the foot says why; the others are as they were."""
    frame = {"g": ["a", "b"], "x": [0.6, 0.5], "x_lower": [0.0, 0.4], "x_upper": [1.0, 0.6]}
    drawn = plot_release(frame, ["g"], ["x"], epsilon=1, bars=bars, ranges={"x": (0, 1)})
    (axes,) = drawn.axes
    if bars:
        assert heights(axes) == [0.5]
    else:
        assert [line.get_ydata().tolist() for line in axes.lines if line.get_marker() == "o"] == [
            [0.5]
        ]
    (dashed,) = [c for c in axes.collections if c.get_linestyle()[0][1] is not None]
    ((low, high),) = [segment[:, 1] for segment in dashed.get_segments()]
    assert (low, high) == pytest.approx(axes.get_ylim())
    assert spans(axes) == [(0.4, 0.6)]
    assert "A dashed line stands alone where the noise leaves every" in drawn._supxlabel.get_text()
    same = plot_release(frame, ["g"], ["x"], epsilon=1, bars=bars)
    assert "dashed" not in same._supxlabel.get_text()


def test_a_single_answer_that_may_be_anything_says_no_number() -> None:
    """The strip is dashed, and beside it stands that any value is possible."""
    frame = {"x": [0.6], "x_lower": [0.0], "x_upper": [1.0]}
    drawn = plot_release(frame, [], ["x"], epsilon=1, ranges={"x": (0, 1)})
    assert [t.get_text() for t in drawn.axes[0].texts] == ["any value"]
    assert "every value possible" in drawn._supxlabel.get_text()


def test_a_series_without_an_answer_keeps_its_place_in_the_legend() -> None:
    """Colours and names agree where all of a line is gaps."""
    months = [dt.date(2024, m, 1) for m in range(1, 7)] * 2
    low, high = [0.0] * 6 + [0.4] * 6, [1.0] * 6 + [0.6] * 6
    frame = {"m": months, "g": ["a"] * 6 + ["b"] * 6}
    frame |= {"x": [0.5] * 12, "x_lower": low, "x_upper": high}
    figure = plot_release(frame, ["m", "g"], ["x"], epsilon=1, bars=[], ranges={"x": (0, 1)})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    figure.canvas.draw()


def test_months_lie_on_an_axis_of_time() -> None:
    """Twelve months are not twelve bars."""
    months = [dt.date(2024, m, 1) for m in range(1, 13)]
    frame = {"month": months, **columns("n", [float(i) for i in range(12)])}
    (axes,) = plot_release(frame, ["month"], ["n"], epsilon=1, bars=["n"]).axes
    assert not axes.patches
    assert [len(line.get_ydata()) for line in axes.lines] == [12]


def test_every_panel_names_its_levels() -> None:
    """Below each panel of several rows stand the labels of its axis."""
    hours, days = ["early", "noon", "late"], [f"d{i}" for i in range(7)]
    frame = {
        "hour": [h for h in hours for _ in days] * 2,
        "day": days * 6,
        **columns("n", [float(i) for i in range(42)]),
    }
    wide = {**frame, "hour": [f"{h}{i // 21}" for i, h in enumerate(frame["hour"])]}
    figure = plot_release(wide, ["day", "hour"], ["n"], epsilon=1)
    figure.canvas.draw()
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) > 3
    for axes in panels:
        assert any(t.get_visible() and t.get_text() for t in axes.get_xticklabels())
        assert axes.xaxis.get_tick_params()["labelbottom"]

"""Several results in one picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.plots._forest import draw_forest


def estimates() -> dict[str, inference.PrivateEstimate]:
    """Two of one number, one of two."""
    rng = np.random.default_rng(1)
    x = rng.normal(0.3, 1, (400, 2))
    return {
        "north": inference.mean(x[:, 0], bounds=(-4, 4), epsilon=1),
        "$x_1$ </svg>": inference.mean(x[:, 1], bounds=(-4, 4), epsilon=1),
        "both": inference.means(x, radius=4, epsilon=1, names=("a", "b")),
    }


def test_every_number_has_a_row(tmp_path: Path) -> None:
    """With its name, its interval and its text; names are text and no formula."""
    figure = inference.forest_plot(estimates(), title="means", path=tmp_path / "forest.svg")
    (axes,) = figure.axes
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["north", r"\$x_1\$ </svg>", "both: a", "both: b"]
    assert len(axes.texts) == 4
    assert inference.forest_plot(list(estimates().values())[:1]).axes


def test_ratios_are_on_a_scale_of_logarithms() -> None:
    """An end at 0, or at infinity, runs to the edge."""
    ratio = inference.odds_ratio([True] * 3 + [False], [True, False] * 2, epsilon=1)
    (axes,) = inference.forest_plot({"ratio": ratio}, log=True, null=1).axes
    assert axes.get_xscale() == "log"
    assert np.isfinite(axes.get_xlim()).all()


def test_what_is_no_estimate_is_refused() -> None:
    """By what it is."""
    test = inference.sign_test([1.0, 2.0], epsilon=1)
    for given, why in (
        ({"t": test}, "a test has no interval"),
        ({}, "estimates by name"),
        ("x", "estimates by name"),
        ([3], "estimates by name"),
    ):
        with pytest.raises(ArgumentError, match=why):
            inference.forest_plot(given)  # type: ignore[arg-type]
    for name in ("title", "axis"):
        with pytest.raises(ArgumentError, match=f"{name} must be a text"):
            inference.forest_plot(estimates(), **{name: 3})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="null must be above 0"):
        inference.forest_plot(estimates(), log=True)


@pytest.mark.parametrize(
    ("ends", "ticks"),
    [
        ((0.45, 1.4), ["0.5", "0.7", "1"]),
        ((0.6, 0.9), ["0.6", "0.7", "0.8"]),
        ((0.02, 30.0), ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]),
        ((1e-9, 1e9), ["1e-09", "1e-06", "0.001", "1", "1,000", "1,000,000", "1e+09"]),
    ],
)
def test_ratios_are_written_out_at_round_places(
    ends: tuple[float, float], ticks: list[str]
) -> None:
    """No powers of ten with a multiplier, and not too many."""
    figure = draw_forest(["a"], [(1.0, *ends)], title="", foot="", null=1, log=True)
    figure.canvas.draw()
    (axes,) = figure.axes
    shown = [tick.get_text() for tick in axes.get_xticklabels()]
    assert 2 <= len(shown) <= 8
    assert set(shown) & set(ticks)
    assert all("10^" not in text for text in shown)
    assert not axes.get_xticklabels(minor=True)


def test_what_is_printed_holds_what_was_found() -> None:
    """Ends are rounded outwards, on the picture as in the tables."""
    rng = np.random.default_rng(3)
    found = inference.mean(rng.normal(0.3, 1, 400), bounds=(-4, 4), epsilon=1)
    low, high = found.interval()
    (axes,) = inference.forest_plot(found).axes
    told = axes.texts[0].get_text().replace("−", "-")
    first, last = (float(v) for v in told[told.index("[") + 1 : -1].split(", "))
    assert first <= low
    assert last >= high
    (row,) = found._printed(0.95)[1]
    first, last = (float(v) for v in row[2].split(" to "))
    assert first <= low
    assert last >= high
    assert "p against 0" in found.to_latex()

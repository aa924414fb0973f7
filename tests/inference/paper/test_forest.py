"""Several results in one picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError


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

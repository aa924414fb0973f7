"""Pictures of previews: half-width against group size."""

from __future__ import annotations

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.plots import plot_preview


def test_each_output_is_a_curve_over_the_sizes() -> None:
    """Points stand at the sizes asked, in rising order, each with its figure."""
    figure = plot_preview(
        [1000, 100],
        {"n": [7.5, 7.5], "cost": [5.2, 50.0]},
        epsilon=0.5,
        units={"cost": "EUR"},
    )
    n, cost = figure.axes
    assert [n.get_ylabel(), cost.get_ylabel()] == ["± n", "± cost (EUR)"]
    (line,) = cost.lines
    assert np.asarray(line.get_xydata()).tolist() == [[100.0, 50.0], [1000.0, 5.2]]
    assert [text.get_text() for text in cost.texts] == ["50", "5.2"]
    assert (cost.get_xscale(), cost.get_yscale()) == ("log", "log")
    assert "half of the 95 % interval, noise only" in figure.get_supxlabel()


def test_what_cannot_be_promised_is_left_out() -> None:
    """None, NaN and infinity are not points."""
    curve = [None, float("nan"), float("inf"), 2.0]
    figure = plot_preview([1, 10, 100, 1000], {"m": curve}, epsilon=1)
    (line,) = figure.axes[0].lines
    assert np.asarray(line.get_xydata()).tolist() == [[1000.0, 2.0]]
    plot_preview([10], {"m": [None]}, epsilon=1)


def test_one_output_can_be_chosen_and_bad_arguments_are_named() -> None:
    """Lengths, sizes and names are checked."""
    both = {"n": [1.0], "m": [2.0]}
    assert len(plot_preview([10], both, epsilon=1, output="m").axes) == 1
    with pytest.raises(ArgumentError, match="output 'nn' is not here"):
        plot_preview([10], both, epsilon=1, output="nn")
    with pytest.raises(ArgumentError, match="sizes must be"):
        plot_preview([0], both, epsilon=1)
    with pytest.raises(ArgumentError, match="one number for each"):
        plot_preview([10, 20], both, epsilon=1)

"""Pictures of local estimates show every share with its interval, and say what is biased."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dither import local

DRAWN = local.simulate(local.GRR(4, epsilon=2), [500, 300, 150, 50], np.random.default_rng(1))


def test_shares_are_drawn_in_order_with_their_intervals(tmp_path: Path) -> None:
    """One point a value, the most frequent at the top; lines are the estimate's own intervals."""
    found = DRAWN.estimate()
    figure = found.plot(tmp_path / "shares.svg")
    (axes,) = figure.axes
    points = axes.lines[0]
    order = np.argsort(-found.shares)
    assert points.get_xdata() == pytest.approx(found.shares[order])
    assert [label.get_text() for label in axes.get_yticklabels()] == [str(i) for i in order]
    drawn = np.array([segment[:, 0] for segment in axes.collections[0].get_segments()])
    assert drawn == pytest.approx(found.intervals[order])
    assert (tmp_path / "shares.svg").stat().st_size > 1000


def test_a_biased_estimate_says_so() -> None:
    """After a rule the foot tells that points are biased and whose intervals the lines are."""
    texts = " ".join(t.get_text() for t in DRAWN.estimate("norm_sub").plot().texts)
    assert "biased (postprocess: norm_sub)" in " ".join(texts.split())
    assert "of the raw shares" in " ".join(texts.split())

"""The picture of a loss: drawn for every kind, with and without the table of theorems."""

import pytest

from dither import privacy
from dither.accounting import by_every_theorem
from dither.plots._loss import draw_loss


@pytest.mark.parametrize(
    "loss",
    [
        privacy.gaussian(1.0),
        3 * privacy.laplace(2.0),
        privacy.pure(1.0),
        privacy.zcdp(0.1),
        privacy.approximate(0.5, 1e-5),
        privacy.pair([1.0, 0.0], [0.0, 1.0]),
        0 * privacy.pure(1.0),
    ],
    ids=lambda loss: loss.describe(),
)
def test_every_loss_is_drawn(loss):
    """Smooth, atomic, bounded, failing, hopeless and empty losses have three panels."""
    figure = draw_loss(loss)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title.split(" ")[0] for title in titles] == ["privacy", "least", "law"]


def test_the_table_is_drawn_below():
    """One bar a theorem that gives a number."""
    loss = 10 * privacy.pure(0.1)
    table = by_every_theorem(loss, 1e-6)
    below = draw_loss(loss, table=table).axes[-1]
    assert [text.get_text() for text in below.get_yticklabels()] == [
        row.theorem for row in table.rows if row.value is not None
    ]


def test_bounds_from_one_side_are_marked():
    """A loss of which only the upper end is known is dashed, and the titles and the foot say so."""
    for loss, one_sided in ((privacy.renyi({2.0: 0.1}), True), (privacy.zcdp(0.1), False)):
        left, middle, _ = (figure := draw_loss(loss)).axes
        for axes in (left, middle):
            assert axes.lines[-1].is_dashed() is one_sided
        assert ("at most" in left.get_title(loc="left")) is one_sided
        assert ("at least" in middle.get_title(loc="left")) is one_sided
        foot = " ".join(text.get_text() for text in figure.texts)
        assert ("one side only" in foot, "between the bounds" in foot) == (one_sided, not one_sided)


@pytest.mark.parametrize("loss", [privacy.gaussian(1.0), privacy.zcdp(0.1)])
def test_curves_are_the_bounds(loss):
    """The lines are the sound ends: delta from above, an attacker's misses from below."""
    left, middle, _ = draw_loss(loss).axes
    for epsilon, drawn in list(zip(*left.lines[-1].get_data(), strict=True))[::16]:
        assert drawn == pytest.approx(loss.delta(epsilon).upper, rel=1e-3)
    for fpr, drawn in list(zip(*middle.lines[-1].get_data(), strict=True))[10::60]:
        known = loss.tradeoff(fpr)
        assert drawn <= known.upper + 1e-9
        assert drawn == pytest.approx(known.lower, abs=0.01)

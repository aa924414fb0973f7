"""The picture of a loss: drawn for every kind, with and without the table of theorems."""

import pytest

from dither import privacy
from dither.accounting import by_every_theorem
from dither.plots.loss import draw_loss


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

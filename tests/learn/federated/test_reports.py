"""One locally private report of each client: what is asked, what it costs, and that it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dither import accounting, local
from dither.errors import ArgumentError
from dither.learn.federated import train_on_reports
from dither.numeric import SimulatedWords


def test_reports_train_and_cost_one_round() -> None:
    """A quadratic's minimum is found; each client is asked once, for one coordinate."""
    wanted, asked = np.array([0.5, -0.25]), []

    def gradients(parameters: Any, which: Any) -> Any:
        asked.extend(which.tolist())
        return np.tile(parameters - wanted, (len(which), 1))

    channel = local.Duchi(local.Interval(-1, 1), epsilon=3)
    fit = train_on_reports(
        gradients,
        channel,
        clients=60_000,
        rounds=6,
        rate=0.6,
        start=[0.0, 0.0],
        words=SimulatedWords(2),
    )
    # Six deviations of the last round's mean, and what six steps leave.
    assert np.abs(fit.parameters - wanted).max() < 6 * 0.6 * 1.2 / 5000**0.5 + 0.4**6
    assert len(asked) == len(set(asked)) == 60_000
    central = fit.loss(1e-6)
    assert central.neighbours.value == "replace"
    # Of any randomiser: a report hides among those of its own coordinate alone.
    assert float(fit.shuffled.epsilon(1e-6)) == float(accounting.shuffle(10_000, 3).epsilon(1e-6))
    assert float(fit.shuffled.epsilon(1e-6)) < 0.3


def test_hostile_gradients_and_bad_arguments() -> None:
    """NaN counts as 0, and what is beyond the bounds as the bound; shapes and counts are named."""
    channel = local.Duchi(local.Interval(-1, 1), epsilon=1)
    given: dict[str, Any] = {"clients": 40, "rounds": 2, "rate": 0.1, "start": [0.0]}
    fit = train_on_reports(
        lambda at, which: np.resize([np.nan, np.inf, -np.inf, 1e300], (len(which), 1)),
        channel,
        **given,
    )
    assert np.abs(fit.parameters).max() <= 0.2
    with pytest.raises(ArgumentError, match="gradients must be"):
        train_on_reports(lambda at, which: np.zeros((1, 2)), channel, **given)
    for name, wrong in (("clients", 1), ("rate", 0), ("start", [[0.0]]), ("rounds", 0)):
        with pytest.raises(ArgumentError, match=name):
            train_on_reports(lambda at, which: np.zeros((20, 1)), channel, **given | {name: wrong})
    with pytest.raises(ArgumentError, match="interval"):
        train_on_reports(lambda at, which: np.zeros((20, 1)), local.GRR(3, epsilon=1), **given)

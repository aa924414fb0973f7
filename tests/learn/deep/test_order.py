"""Rows in a fixed order: who takes part when, what noise is added, and what it costs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from dither import privacy  # noqa: E402
from dither.errors import ArgumentError  # noqa: E402
from dither.learn.deep import Adaptive, FixedOrder, PrivateOptimizer, train  # noqa: E402
from dither.learn.deep import _order as order_module  # noqa: E402
from dither.learn.deep._order import CorrelatedNoise, OrderedSampling  # noqa: E402
from dither.privacy import Neighbours  # noqa: E402

torch.set_num_threads(1)
X = torch.rand(23, 3, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > X[:, 1]).long()


def optimizer(order: FixedOrder, model: Any = None, **arguments: Any) -> PrivateOptimizer:
    """Of a linear model on the rows above."""
    model = model or torch.nn.Linear(3, 2)
    given = {"noise_multiplier": 1} | arguments
    sgd = torch.optim.SGD(model.parameters(), lr=0.5)
    return PrivateOptimizer(sgd, model, (X, Y), order=order, **given)


def run(private: PrivateOptimizer) -> None:
    """All steps."""
    while private.taken < (private.planned or 0):
        for rows in private.batches():
            private.backward(*rows)
        private.step()


@pytest.mark.parametrize(("batch", "epochs"), [(5, 1), (5, 3), (23, 2), (50, 2), (1, 2), (8, 4)])
def test_every_row_takes_part_as_often_and_as_far_apart_as_is_charged(
    batch: int, epochs: int
) -> None:
    """Once an epoch, in the same step of it; none is left out, also of a last smaller batch."""
    order = FixedOrder(batch, epochs)
    sampling = OrderedSampling(order, 23, Neighbours.ADD_REMOVE)
    steps: dict[int, list[int]] = {row: [] for row in range(23)}
    for step in range(order.steps(23)):
        places = sampling.batch(step).tolist()
        assert len(set(places)) == len(places) <= batch
        for row in places:
            steps[row].append(step)
    charged = order.factorization(23).participation
    assert charged.steps == order.steps(23)
    for taken in steps.values():
        assert len(taken) == epochs == charged.times
        assert set(np.diff(taken).tolist()) <= {charged.apart}


def test_the_order_is_dealt_at_random_and_once() -> None:
    """Two runs deal otherwise; epochs of one do not."""
    dealt = [OrderedSampling(FixedOrder(23), 23, Neighbours.REPLACE).batch(0) for _ in range(3)]
    assert len({tuple(one.tolist()) for one in dealt}) == 3


def test_without_noise_it_is_descent_along_clipped_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divided by the batch's size, also where fewer are left."""
    monkeypatch.setattr(
        order_module, "draw", lambda sigma2, size, words=None: np.zeros(size, dtype=np.int64)
    )
    torch.manual_seed(3)
    model = torch.nn.Linear(3, 2)
    weights, bias = model.weight.detach().clone(), model.bias.detach().clone()
    private = optimizer(FixedOrder(9, 2), model, clip=0.3)
    run(private)
    for step in range(6):
        sums = [torch.zeros(2, 3), torch.zeros(2)]
        for row in private.sampling.batch(step).tolist():
            back = torch.softmax(weights @ X[row] + bias, 0)
            back[Y[row]] -= 1
            length = float((back.norm() ** 2 * (X[row].norm() ** 2 + 1)) ** 0.5)
            factor = min(1.0, 0.3 / length)
            sums = [sums[0] + factor * torch.outer(back, X[row]), sums[1] + factor * back]
        weights, bias = weights - 0.5 * sums[0] / 9, bias - 0.5 * sums[1] / 9
    assert torch.allclose(model.weight, weights, atol=2e-4)
    assert torch.allclose(model.bias, bias, atol=2e-4)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("exact", [True, False])
def test_noise_is_what_is_charged(neighbours: str, exact: bool) -> None:
    """Multiplied by C, it is independent, of deviation z·sensitivity·clip, twice for a replacement.

    6 steps of 4,000 numbers: a variance errs by 6 % less than once in 10^10 such tests, and a
    correlation by 0.1.
    """
    model = torch.nn.Linear(2000, 2, bias=False)
    rows = (torch.zeros(12, 2000), torch.zeros(12, dtype=torch.int64))
    private = PrivateOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), model, rows, order=FixedOrder(4, 2),
        noise_multiplier="0.5", clip=3, neighbours=neighbours, exact=exact,
    )  # fmt: skip
    seen = []
    while private.taken < 6:
        with torch.no_grad():
            model.weight.zero_()
        for part in private.batches():
            private.backward(*part)
        private.step()
        seen.append(-model.weight.detach().double().numpy().ravel() * 4)
    assert private.correlated is not None
    made = private.correlated.made
    assert made.column is not None
    column = np.concatenate([made.column, np.zeros(6)])[:6]
    white = np.array([column[t::-1] @ np.array(seen)[: t + 1] for t in range(6)])
    expected = 0.5 * made.sensitivity * 3 * (2 if neighbours == "replace" else 1)
    assert white.std() == pytest.approx(expected, rel=0.03)
    assert np.abs(np.corrcoef(white) - np.eye(6)).max() < 0.1
    assert np.abs(np.corrcoef(np.array(seen)) - np.eye(6)).max() > 0.2
    variances = private.correlated.variance(Fraction(1, 2), 3) * (3 / 2**26) ** 2
    assert np.array(seen)[3].var() == pytest.approx(variances, rel=0.15)


def test_a_run_costs_one_gaussian() -> None:
    """Whatever its steps; epsilon is what `gaussian` says, and the noise is the least for it."""
    private = optimizer(FixedOrder(4, 5), noise_multiplier=None, epsilon=2, delta="1e-5")
    assert private.planned == 30
    z = private.noise_multiplier
    assert (
        privacy.gaussian(z).epsilon(1e-5)
        <= 2
        < privacy.gaussian(z * Fraction("0.99")).epsilon(1e-5)
    )
    assert private.loss.describe() == f"gaussian({float(z):g})"
    run(private)
    assert private.spent() == private.each
    with pytest.raises(ArgumentError, match="all 30 steps"):
        private.batches()


@pytest.mark.parametrize(("kind", "rate"), [("sgd", 0.5), ("adam", 0.3)])
def test_a_model_is_trained(kind: str, rate: float) -> None:
    """By the door: an easy problem, with Adam's variance taken out too."""
    torch.manual_seed(5)
    rows = torch.rand(600, 2)
    labels = (rows[:, 0] > rows[:, 1]).long()
    model = torch.nn.Linear(2, 2)
    fit = train(
        model,
        (rows, labels),
        epsilon=8,
        delta=1e-5,
        order=FixedOrder(100, 5),
        optimizer=kind,
        learning_rate=rate,
    )
    assert fit.steps == 30
    assert float((model(rows).argmax(1) == labels).float().mean()) > 0.85
    assert "fixed order" in fit.summary()


def test_what_has_no_meaning_is_refused() -> None:
    """Rates, steps, populations and clips that move."""
    for name, value in (("rate", "0.1"), ("steps", 3), ("population", 9)):
        with pytest.raises(ArgumentError, match=f"{name} has no meaning"):
            optimizer(FixedOrder(5), **{name: value})
    with pytest.raises(ArgumentError, match="clip must stay"):
        optimizer(FixedOrder(5), clip=Adaptive())
    with pytest.raises(ArgumentError, match="order must be"):
        optimizer("fixed")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="name the rate"):
        PrivateOptimizer(
            torch.optim.SGD((model := torch.nn.Linear(3, 2)).parameters(), lr=1.0), model, (X, Y),
            noise_multiplier=1,
        )  # fmt: skip
    for wrong in ({"batch": 0}, {"batch": 1, "epochs": 0}, {"batch": 1, "noise": "tree"}):
        with pytest.raises(ArgumentError):
            FixedOrder(**wrong)  # type: ignore[arg-type]


def test_noise_goes_on_from_its_state() -> None:
    """As it would have, and not from its start."""
    made = FixedOrder(4, 2).factorization(23)
    one, two = (CorrelatedNoise(made, Neighbours.ADD_REMOVE) for _ in range(2))
    for _ in range(3):
        one.stream.next(torch.ones(2))
    two.restore(one.state())
    assert torch.equal(one.stream.next(torch.ones(2)), two.stream.next(torch.ones(2)))

"""One step of private gradients, computed by hand on tables of one or two rows."""

# ruff: noqa: E402  what needs torch comes after the test whether it is there

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn

from dither.errors import ArgumentError, EngineError
from dither.learn.deep import Adaptive, Automatic, PerLayer, PrivateOptimizer, _sampling
from dither.learn.deep.rows._sums import UNIT

CLOSE = 2e-3  # of the clip: integers aim 2**-12 below it, and are cut towards 0


def slope(start: float = 0.0) -> nn.Linear:
    """A model of one number, w·x."""
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(start)
    return model


def pull(output: Any, target: Any) -> Any:
    """A loss whose gradient by w is -target·x, whatever w is."""
    return -(output * target).flatten(1).sum(1)


def stepped(rows: list[float], *, model: Any = None, steps: int = 1, **options: Any) -> Any:
    """The optimiser after steps of SGD at a learning rate of 1 over rows of gradients -rows."""
    model = model or slope()
    X = torch.ones(len(rows), 1)
    settings: dict[str, Any] = {"rate": 1, "noise_multiplier": 1, "population": 10, "loss": pull}
    optimizer = PrivateOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0),
        model,
        (X, torch.tensor(rows).reshape(-1, 1)),
        **settings | options,
    )
    for _ in range(steps):
        for batch in optimizer.batches():
            optimizer.backward(*batch)
        optimizer.step()
    return optimizer


def moved(optimizer: PrivateOptimizer) -> float:
    """How far w has gone from 0."""
    return float(optimizer.model.weight.detach())


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("ghost", [True, False])
def test_each_example_is_clipped(draws: Any, exact: bool, ghost: bool) -> None:
    """Sum of clipped gradients over the public number, not a clip of the batch's mean.

    Of gradients 100 and -100 the mean is 0, and of 100 and 0.5 it is 50: a clip of the mean would
    leave 1 of it.
    """
    for rows, wanted in [([100.0, -100.0], 0.0), ([100.0, 0.5], 1.5), ([0.25, 0.5], 0.75)]:
        found = moved(stepped(rows, exact=exact, ghost=ghost))
        assert found == pytest.approx(wanted / 10, abs=CLOSE / 10)


def test_one_row_moves_the_integers_by_a_clip_at_most(draws: Any) -> None:
    """With and without a row of any length exact sums differ by an integer of at most UNIT."""
    for length in (0.0, 1e-30, 0.3, 1.0, 1 + 1e-7, 7.0, 1e18):
        without = stepped([0.5, -0.7])._sums.total.clone()
        whole = stepped([0.5, -0.7, length])._sums.total
        change = (whole - without).double()
        assert change == change.round()
        assert float(change.abs()) <= UNIT
        if length >= 1:
            assert float(change.abs()) >= UNIT * (1 - 2.0**-11)


def test_last_batch_is_not_dropped(draws: Any) -> None:
    """Five rows in physical batches of two: the fifth counts as the first does."""
    for physical in (1, 2, 5, 100):
        found = stepped([1.0, 1.0, 1.0, 1.0, 1.0], physical=physical)
        assert moved(found) == pytest.approx(0.5, abs=CLOSE)
    alone = stepped([0.0, 0.0, 0.0, 0.0, 1.0], physical=2)
    assert moved(alone) == pytest.approx(0.1, abs=CLOSE)


def test_noise_is_drawn_once_a_step(draws: Any) -> None:
    """Whatever the physical batches, one draw a step, for each number, of z²·UNIT² + 96."""
    stepped([1.0] * 5, physical=1, steps=3, noise_multiplier="1.5")
    assert draws == [(Fraction(9, 4) * UNIT**2 + 96, 1)] * 3


def test_empty_sample_is_a_step(draws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any row there is a step of noise alone, and it is charged."""
    none = torch.zeros(0, dtype=torch.int64)
    monkeypatch.setattr(_sampling, "places_of", lambda rows, rate, words=None: none)
    found = stepped([1.0, 1.0], rate="1/2", steps=2)
    assert (len(draws), moved(found), found.taken) == (2, 0.0, 2)
    assert found.spent().describe() == "2 * gaussian(1).poisson(0.5)"


def test_no_rows_at_all(draws: Any) -> None:
    """An empty table is one like any other."""
    assert moved(stepped([], steps=2)) == 0.0


@pytest.mark.parametrize("rows", [6, 7, 8])
def test_denominator_says_nothing_of_the_rows(draws: Any, rows: int) -> None:
    """It is rate·population, a fraction: a size of batch that is cut to an integer would tell."""
    found = stepped([1.0] * rows, rate="1/3", population=7)
    assert found.sampling.denominator == pytest.approx(7 / 3)
    taken = found._sums.rows
    assert moved(found) == pytest.approx(taken * 3 / 7, abs=CLOSE)


def test_rows_are_counted_with_noise(draws: Any) -> None:
    """With no public number of rows the count leaves with noise, and is a part of the loss."""
    found = stepped([1.0] * 4, population=None, steps=1)
    assert draws[0] == (Fraction(400 + 96), 1)
    assert found.loss.describe() == "gaussian(1) + gaussian(20)"
    kept = stepped([1.0] * 4, population=None, neighbours="replace", rate="1/2")
    assert kept.sampling.denominator == 2.0
    assert "gaussian(20)" not in kept.loss.describe()


def test_samples_are_poisson_at_the_rate_that_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """One exact coin a row, all of the rate that the loss names; no weights change it."""
    asked: list[tuple[Any, int]] = []
    true = _sampling.bernoulli

    def bernoulli(p: Any, size: int, *, words: Any = None) -> Any:
        asked.append((p, size))
        return true(p, size, words=words)

    monkeypatch.setattr(_sampling, "bernoulli", bernoulli)
    found = stepped([1.0] * 9, rate="1/7", steps=5)
    assert asked == [(Fraction(1, 7), 9)] * 5
    assert found.each.describe() == "gaussian(1).poisson(0.142857)"


def test_sizes_of_samples_vary() -> None:
    """200 samples of 40 rows at 1/2: all of one size has a chance below 2**-500."""
    sizes = {len(_sampling.places_of(40, Fraction(1, 2))) for _ in range(200)}
    assert len(sizes) > 3


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("ghost", [True, False])
def test_gradients_that_are_not_finite_count_as_nothing(
    draws: Any, bad: float, exact: bool, ghost: bool
) -> None:
    """The others are as without that row; how many there were is for whoever has the rows."""
    found = stepped([0.5, bad, 0.25], exact=exact, ghost=ghost)
    assert moved(found) == pytest.approx(0.075, abs=CLOSE)
    assert found.unpublished == {"rows": 3, "not finite": 1}


def test_step_needs_fresh_gradients(draws: Any) -> None:
    """No step without a sample, none before all of it was used, and no second one of the same."""
    optimizer = stepped([1.0, 1.0], physical=1, steps=1)
    with pytest.raises(ArgumentError, match="fresh gradients"):
        optimizer.step()
    with pytest.raises(ArgumentError, match="batches"):
        optimizer.backward(torch.ones(1, 1), torch.ones(1, 1))
    batches = optimizer.batches()
    with pytest.raises(ArgumentError, match="must be used first"):
        optimizer.batches()
    one = next(batches)
    with pytest.raises(ArgumentError, match="fresh gradients"):
        optimizer.step()
    optimizer.backward(*one)
    with pytest.raises(ArgumentError, match="once"):
        optimizer.backward(*one)
    with pytest.raises(ArgumentError, match="fresh gradients"):
        optimizer.step()
    optimizer.backward(*next(batches))
    with pytest.raises(StopIteration):
        next(batches)
    optimizer.step()
    assert optimizer.taken == 2


def test_batches_must_be_used(draws: Any) -> None:
    """A physical batch that is passed over is an error, not a smaller sample."""
    optimizer = stepped([1.0, 1.0], physical=1, steps=0)
    with pytest.raises(ArgumentError, match="each physical batch"):
        list(optimizer.batches())


def test_no_more_steps_than_planned(draws: Any) -> None:
    """What was charged is not exceeded."""
    optimizer = stepped([1.0], steps=2, noise_multiplier=2)
    assert optimizer.loss.describe() == "2 * gaussian(2)"
    model = slope()
    planned = PrivateOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0),
        model,
        (torch.ones(2, 1), torch.ones(2, 1)),
        rate=1,
        noise_multiplier=2,
        steps=1,
        population=2,
        loss=pull,
    )
    assert planned.loss.describe() == "gaussian(2)"
    for rows in planned.batches():
        planned.backward(*rows)
    planned.step()
    with pytest.raises(ArgumentError, match="not charged"):
        planned.batches()


def test_failures_on_rows_say_nothing(draws: Any) -> None:
    """A loss that fails on some value gives one message, without that value."""

    def fails(output: Any, target: Any) -> Any:
        if float(target.sum()) > 5:
            raise ValueError("the secret is 7")
        return pull(output, target)

    with pytest.raises(EngineError, match="stays charged") as found:
        stepped([7.0], loss=fails)
    assert "secret" not in str(found.value)
    assert found.value.__suppress_context__


def test_adaptive_clip(draws: Any) -> None:
    """It goes where the quantile is; its count is a coordinate of the same mechanism."""
    clip = Adaptive(1.0, quantile=0.5, speed=0.2, part=0.02)
    found = stepped([100.0] * 10, clip=clip, steps=40)
    assert found.clip.norm > 30
    sigma2, size = draws[0]
    weight = int(UNIT * (0.02 / 0.98) ** 0.5)
    assert (sigma2, size) == (UNIT**2 + weight**2 + 96, 2)
    assert found.spent().describe() == "40 * gaussian(1)"
    assert stepped([1e-3] * 10, clip=clip, steps=40).clip.norm < 0.1


def test_kinds_of_clipping(draws: Any) -> None:
    """Automatic lengthens what is short; by layers each part has its share."""
    long = stepped([0.1], clip=Automatic(1.0, gamma=0.01))
    assert moved(long) == pytest.approx(0.1 / 0.11 / 10, abs=CLOSE)
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    with torch.no_grad():
        model[0].weight.fill_(1.0)
        model[1].weight.fill_(1000.0)
    stepped([1.0], model=model, clip=PerLayer(1.0, shares=(3, 1)))
    # Their gradients are 1000 and 1: a flat clip would leave nothing of the second.
    assert float(model[0].weight.detach()) - 1 == pytest.approx(0.75**0.5 / 10, abs=CLOSE)
    assert float(model[1].weight.detach()) - 1000 == pytest.approx(0.05, abs=CLOSE)
    with pytest.raises(ArgumentError, match="one a layer"):
        stepped([1.0], clip=PerLayer(1.0, shares=(1, 2)))


@pytest.mark.parametrize("make", [lambda p: torch.optim.Adam(p, lr=0.1)])
def test_any_optimizer_may_be_wrapped(draws: Any, make: Callable[[Any], Any]) -> None:
    """It sees one gradient a step, in each parameter's grad, and none afterwards."""
    model = slope()
    optimizer = PrivateOptimizer(
        make(model.parameters()),
        model,
        (torch.ones(2, 1), torch.ones(2, 1)),
        rate=1,
        noise_multiplier=1,
        population=2,
        loss=pull,
    )
    for rows in optimizer.batches():
        optimizer.backward(*rows)
    optimizer.step()
    assert float(model.weight.detach()) == pytest.approx(0.1, abs=1e-4)
    assert model.weight.grad is None

"""The mean that a first layer takes off the rows: what leaves, what it costs, when it is found."""

# ruff: noqa: E402  what needs torch comes after the test whether it is there

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn

from dither import privacy
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError
from dither.learn.deep import Centre, FixedOrder, PrivateOptimizer, _checkpoint, train, trained
from dither.learn.deep import _centre as centre_module
from dither.learn.deep._centre import RowsMean, noisy_mean
from dither.learn.deep.rows._sums import UNIT, ClippedSums
from dither.ledger import Ledger
from dither.privacy import Promise

X = 2 + torch.rand(50, 3, generator=torch.Generator().manual_seed(1))
Y = torch.arange(50) % 2
NAN, INF = float("nan"), float("inf")


def made(rows: Any = X, *, centre: Any = None, **how: Any) -> PrivateOptimizer:
    """An optimiser of a model that begins with a layer Centre."""
    model = nn.Sequential(centre or Centre(3), nn.Linear(3, 2))
    given: dict[str, Any] = {"noise_multiplier": 1, "steps": 3, "rate": 1, "population": 50} | how
    y = torch.zeros(len(rows), dtype=torch.int64)
    return PrivateOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model, (rows, y), **given)


def stepped(optimizer: PrivateOptimizer) -> None:
    """One step."""
    for batch in optimizer.batches():
        optimizer.backward(*batch)
    optimizer.step()


def layer(optimizer: PrivateOptimizer) -> Centre:
    """The first layer."""
    found: Centre = optimizer.model[0]
    return found


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("physical", [1, 2, 50])
def test_it_is_the_mean_of_clipped_rows_over_the_public_number(
    draws: Any, exact: bool, physical: int
) -> None:
    """A long row is shortened, one that is not finite counts as 0, and none is left out."""
    rows = torch.tensor([[3.0, 4.0, 0.0], [0.3, 0.0, 0.4], [NAN, 1.0, 1.0], [0.0, INF, 0.0]])
    given = rows.clone()
    optimizer = made(rows, centre=Centre(3, norm=1), population=8, exact=exact, physical=physical)
    assert not bool(layer(optimizer).found)
    stepped(optimizer)
    wanted = torch.tensor([0.9, 0.8, 0.4]) / 8
    assert torch.allclose(layer(optimizer).mean, wanted, atol=1e-3)
    assert torch.equal(rows.nan_to_num(), given.nan_to_num())
    assert torch.equal(optimizer.model[0](rows[:1]), rows[:1] - layer(optimizer).mean)
    assert draws[0] == (Fraction(20) ** 2 * UNIT**2 + 96, 3)
    assert len(draws) == 2


def test_no_rows_at_all(draws: Any) -> None:
    """An empty table is one like any other: its mean is noise."""
    optimizer = made(torch.zeros(0, 3))
    stepped(optimizer)
    assert layer(optimizer).mean.tolist() == [0.0, 0.0, 0.0]
    assert bool(layer(optimizer).found)


def test_one_row_moves_the_integers_by_the_norm_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """By each of many rows, sums of integers change by an integer vector no longer than UNIT."""
    totals: list[torch.Tensor] = []

    def keep(sums: ClippedSums, z: Fraction, words: Any = None) -> tuple[torch.Tensor, float]:
        totals.append(sums.total.clone())
        return sums.total.float(), 0.0

    monkeypatch.setattr(centre_module, "noisy", keep)
    others = torch.tensor([[0.5, -0.7], [1.0, 0.1]])
    lengths = (0.0, 1e-30, 0.3, 0.5, 0.5 * (1 + 1e-7), 7.0, 1e18, 1e38, INF, NAN)
    for length in lengths:
        for angle in torch.linspace(0, 6, 13).tolist():
            way = torch.tensor([[angle, 1.0]]).cos() * length
            for rows in (others, torch.cat([others, way])):
                noisy_mean(rows, 0.5, Fraction(1), 1.0, exact=True, physical=2)
            change = totals[-1] - totals[-2]
            assert torch.equal(change, change.round())
            assert float(change.square().sum()) <= UNIT**2


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "3 * gaussian(1).poisson(0.4) + gaussian(20)"),
        ({"population": None}, "3 * gaussian(1).poisson(0.4) + 2 * gaussian(20)"),
        ({"population": None, "neighbours": "replace"}, "+ gaussian(10)"),
        ({"steps": None}, "gaussian(20)"),
    ],
)
def test_it_is_charged(how: dict[str, Any], said: str) -> None:
    """As one Gaussian mechanism, of twice the sensitivity where a row is replaced."""
    assert said in made(**({"rate": "2/5"} | how)).loss.describe()


def test_it_is_charged_where_rows_have_an_order() -> None:
    """Beside the one mechanism of all steps; the number of rows is public."""
    optimizer = made(rate=None, steps=None, population=None, order=FixedOrder(25, 2))
    assert optimizer.loss.describe() == "gaussian(1) + gaussian(20)"
    stepped(optimizer)
    off = layer(optimizer).mean - X.mean(0) * (3**0.5 / X.norm(dim=1)).mean()
    # Noise of 20·√3/50 a number: beyond 20 deviations with a chance below 1e-80.
    assert float(off.abs().max()) < 20 * 20 * 3**0.5 / 50


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", [0.1, 3])
def test_what_was_promised_holds_of_both(epsilon: float, neighbours: str) -> None:
    """The mean takes its part of epsilon and delta; it is a small one."""
    how: dict[str, Any] = {"noise_multiplier": None, "delta": 1e-5, "neighbours": neighbours}
    optimizer = made(epsilon=epsilon, **how)
    assert optimizer.loss.epsilon(1e-5) <= epsilon
    model = nn.Linear(3, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    without = PrivateOptimizer(
        sgd, model, (X, Y), epsilon=epsilon, steps=3, rate=1, population=50, **how
    )
    assert 1 < optimizer.noise_multiplier / without.noise_multiplier < 1.05


def test_a_mean_that_is_known_is_free(draws: Any) -> None:
    """A public one, and one that an earlier run found: nothing is drawn for it."""
    public = made(centre=Centre(3, mean=[1, 2, 3]))
    assert public.loss.describe() == "3 * gaussian(1)"
    stepped(public)
    assert layer(public).mean.tolist() == [1.0, 2.0, 3.0]
    first = made()
    stepped(first)
    before = layer(first).mean.clone()
    again = made(X - 1, centre=layer(first))
    assert again.loss.describe() == "3 * gaussian(1)"
    stepped(again)
    assert torch.equal(layer(again).mean, before)
    copy = nn.Sequential(Centre(3), nn.Linear(3, 2))
    copy.load_state_dict(first.model.state_dict())
    assert bool(copy[0].found)
    assert torch.equal(copy[0].mean, before)


def test_a_layer_that_forgets_gets_the_same_again() -> None:
    """Fresh noise on the same rows was not charged."""
    optimizer = made()
    start = {name: value.clone() for name, value in optimizer.model.state_dict().items()}
    stepped(optimizer)
    first = layer(optimizer).mean.clone()
    optimizer.model.load_state_dict(start)
    assert not bool(layer(optimizer).found)
    stepped(optimizer)
    assert torch.equal(layer(optimizer).mean, first)


def test_nothing_is_found_before_it_is_charged(tmp_path: Path) -> None:
    """An account that cannot bear the run: the layer is as it was."""
    with Ledger.open(tmp_path / "a.ledger") as book:
        book.ensure_account("all", BudgetFilter(Fraction(1), Fraction(1, 10**4)), Promise("p"))
        model = nn.Sequential(Centre(3), nn.Linear(3, 2))
        how: dict[str, Any] = {
            "ledger": book,
            "accounts": "all",
            "unit": "p",
            "population": 50,
            "steps": 2,
        }
        with pytest.raises(BudgetError):
            train(model, (X, Y), epsilon=2, delta=1e-5, **how)
        assert not bool(model[0].found)
        fit = train(model, (X, Y), epsilon=1, delta=1e-5, **how)
        assert bool(model[0].found)
        assert book.balance("all").spent.epsilon == fit.loss.charge.epsilon == 1
    assert "mean of the rows: found with noise of" in fit.summary()


class Twice(nn.Module):
    """Its inner layer sees rows that were changed."""

    def __init__(self) -> None:
        super().__init__()
        self.centre, self.out = Centre(3), nn.Linear(3, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """What it gives for twice the rows."""
        return self.out(self.centre(2 * rows))


@pytest.mark.parametrize(
    ("model", "rows", "said"),
    [
        (nn.Sequential(Centre(4), nn.Linear(3, 2)), X, r"Centre\(3\)"),
        (nn.Sequential(Centre(1), nn.Linear(3, 2)), X, r"Centre\(3\)"),
        (nn.Sequential(Centre(3), Centre(3), nn.Linear(3, 2)), X, "one layer Centre at most"),
        (nn.Sequential(nn.Linear(3, 3), Centre(3)), X, "what rows meet first"),
        (Twice(), X, "what rows meet first"),
        (nn.Sequential(Centre(3), nn.Linear(4, 2)), X, "model fails on rows"),
        (nn.Sequential(Centre(3), nn.Embedding(4, 2)), X.long(), "have no mean"),
    ],
)
def test_layers_that_are_not_first_are_refused(
    model: Any, rows: Any, said: str, draws: Any
) -> None:
    """By what to write instead, and before anything is drawn."""
    with pytest.raises(ArgumentError, match=said):
        train(model, (rows, Y), noise_multiplier=1, steps=1, population=50)
    assert draws == []


def test_bad_arguments() -> None:
    """They are named."""
    for bad in ({"norm": 0}, {"norm": INF}, {"mean": "a"}, {"mean": [1, 2]}, {"mean": [1, 2, NAN]}):
        with pytest.raises(ArgumentError, match=next(iter(bad))):
            Centre(3, **bad)
    with pytest.raises(ArgumentError, match="shape"):
        Centre(0)
    assert repr(Centre(4, 4)) == "Centre(4, 4, norm=4)"


class Stopped(Exception):
    """What stands for a kill."""


@pytest.mark.parametrize("step", [0, 5])
def test_a_run_goes_on_with_its_mean(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before or after the first checkpoint that has it: bit for bit the same."""
    monkeypatch.setattr(_checkpoint, "fresh_key", lambda: bytes(range(32)))

    def run(name: str, stop: int | None) -> dict[str, torch.Tensor]:
        def told(now: Any) -> None:
            if stop is not None and now.step >= stop:
                raise Stopped

        torch.manual_seed(2)
        model = nn.Sequential(Centre(3), nn.Linear(3, 2))
        how: dict[str, Any] = {"noise_multiplier": 1, "steps": 12, "rate": 0.3, "every": 2}
        train(model, (X, Y), checkpoint=tmp_path / name, progress=told, **how)
        return dict(model.state_dict())

    whole = run("whole", None)
    with pytest.raises(Stopped):
        run("part", step)
    found = run("part", None)
    assert found.keys() == whole.keys() == {"0.mean", "0.found", "1.weight", "1.bias"}
    for name, value in found.items():
        assert torch.equal(value, whole[name])
    fresh = trained(nn.Sequential(Centre(3), nn.Linear(3, 2)), tmp_path / "part")
    assert all(torch.equal(value, whole[name]) for name, value in fresh.state_dict().items())
    with pytest.raises(ArgumentError, match="parameters of the one"):
        trained(nn.Sequential(nn.Identity(), nn.Linear(3, 2)), tmp_path / "part")


def test_its_subject_is_what_it_claims() -> None:
    """The audit's mechanism gives a Gaussian of twice the norm about one or two of it."""
    (subject,) = RowsMean.audit_subjects()
    found = subject.mechanism(subject.d1, 200)
    # The mean of 200 draws of deviation 1: beyond 6 deviations with a chance below 1e-8.
    assert abs(float(found.mean()) - 1) < 6 / 200**0.5
    assert float(subject.delta) == pytest.approx(privacy.gaussian(2).delta(1).upper)


def test_it_helps_where_rows_share_much() -> None:
    """Rows far from 0, told apart by a little: without the mean nothing is learned of them."""
    generator = torch.Generator().manual_seed(5)
    rows = 10 + 0.5 * torch.randn(3000, 20, generator=generator)
    labels = (rows[:, 0] > 10).long()
    right = []
    for first in (nn.Identity(), Centre(20, norm=50)):
        torch.manual_seed(3)
        model = nn.Sequential(first, nn.Linear(20, 2))
        how: dict[str, Any] = {"population": 3000, "steps": 40, "rate": 1, "clip": "automatic"}
        train(model, (rows, labels), epsilon=2, delta=1e-6, **how)
        right.append(float((model(rows).argmax(1) == labels).float().mean()))
    assert right[1] > 0.75
    assert right[0] < 0.7

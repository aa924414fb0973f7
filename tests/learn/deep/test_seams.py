"""Where private training meets a user's own code: what could slip past the clip and the noise.

Each test plants a mistake that a loop of torch makes easily, and sees that it is refused or that it
does no harm.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from dither.errors import ArgumentError, EngineError  # noqa: E402
from dither.learn.deep import PrivateOptimizer, train  # noqa: E402
from dither.learn.deep.rows._gradients import ByRows, ByVmap, cross_entropy  # noqa: E402
from dither.learn.deep.rows._model import check_rows_alone, made_up_rows  # noqa: E402
from dither.learn.deep.rows._rehearsal import engine_for  # noqa: E402

X = 7 * torch.rand(60, 3, generator=torch.Generator().manual_seed(1))
Y = torch.arange(60) % 2


def private(model: nn.Module, **given: Any) -> PrivateOptimizer:
    """Three steps, of all rows."""
    moved = [p for p in model.parameters() if p.requires_grad]
    how: dict[str, Any] = {
        "rate": 1, "noise_multiplier": 1, "steps": 3, "population": 60, "physical": 20
    } | given  # fmt: skip
    optimizer = how.pop("optimizer", None) or torch.optim.SGD(moved, lr=0.1)
    return PrivateOptimizer(optimizer, model, (X, Y), **how)


def one_step(optimizer: PrivateOptimizer) -> None:
    """As a loop of torch has it."""
    for rows in optimizer.batches():
        optimizer.backward(*rows)
    optimizer.step()


def frozen_normalisation() -> tuple[nn.Module, nn.BatchNorm1d]:
    """A model in training mode whose normalisation is not."""
    frozen = nn.BatchNorm1d(3, affine=False).eval()
    return nn.Sequential(frozen, nn.Linear(3, 2)), frozen


def test_watching_leaves_frozen_normalisation_frozen() -> None:
    """Else its averages, exact numbers about the rows, would be published with the model."""
    model, frozen = frozen_normalisation()
    train(model, (X, Y), noise_multiplier=1, steps=20, population=60, watch=(X[:5], Y[:5]))
    assert model.training
    assert not frozen.training
    assert frozen.running_mean.tolist() == [0.0, 0.0, 0.0]


def test_a_mode_that_mixes_rows_is_refused_when_it_comes() -> None:
    """``model.train()`` at the start of an epoch thaws what was frozen."""
    model, frozen = frozen_normalisation()
    optimizer = private(model)
    one_step(optimizer)
    model.train()
    with pytest.raises(ArgumentError, match="mixes the rows"):
        one_step(optimizer)
    assert frozen.running_mean.tolist() == [0.0, 0.0, 0.0]


def test_a_mode_that_keeps_rows_apart_may_come() -> None:
    """Evaluating between steps is what everybody does."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 2))
    optimizer = private(model)
    one_step(optimizer)
    model.eval()
    one_step(optimizer)
    model.train()
    one_step(optimizer)


def by_size(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A mean, by hand."""
    return cross_entropy(output, target) / len(target)


def centred(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """As in learning by contrast."""
    return (output - output.mean(0)).square().sum(1)


def balanced(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Rare classes weigh more, as the batch has them."""
    return cross_entropy(output, target) / torch.bincount(target, minlength=2)[target]


@pytest.mark.parametrize("loss", [by_size, centred, balanced])
def test_losses_that_mix_rows_are_refused(loss: Any) -> None:
    """They give one number a row, of which no row has its own gradient."""
    with pytest.raises(ArgumentError, match="loss mixes the rows"):
        private(nn.Linear(3, 2), loss=loss)


def test_losses_of_each_row_are_taken() -> None:
    """Of labels, numbers, and outputs that are not any number."""

    def likelihood(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.binary_cross_entropy(output[:, 0], target.float(), reduction="none")

    private(nn.Linear(3, 2), loss=lambda o, t: (o[:, 0] - t).abs())
    private(nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()), loss=likelihood)
    private(nn.Linear(3, 2), loss=lambda o, t: functional.cross_entropy(o, t, reduction="none"))


class BySize(nn.Module):
    """Divides by how many rows there are."""

    def forward(self, x: Any) -> Any:
        """Shape (b, 3)."""
        return x / len(x)


class Squeezed(nn.Module):
    """Has no first dimension where there is one row."""

    def forward(self, x: Any) -> Any:
        """Shape (b,)."""
        return x.sum(1).squeeze()


def test_models_that_look_at_how_many_rows_there_are() -> None:
    """Pairs of rows do not show it: how many are in a sample is private, too."""
    for model in (BySize(), nn.Sequential(nn.Dropout(0.5), BySize()), Squeezed()):
        with pytest.raises(ArgumentError, match="how many there are"):
            check_rows_alone(model, X)


class Fussy(nn.Module):
    """Fails on some rows."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        """Shape (b, 2)."""
        if bool((x > 6.9).any()):
            raise ValueError
        return self.inner(x)


def test_no_step_without_the_rows_that_failed() -> None:
    """Whoever catches the error would leave out all rows of a physical batch because of one."""
    assert bool((X > 6.9).any())
    model = Fussy()
    optimizer = private(model)
    failed = 0
    for rows in optimizer.batches():
        try:
            optimizer.backward(*rows)
        except EngineError:
            failed += 1
    assert failed
    before = model.inner.weight.clone()
    for go_on in (optimizer.step, optimizer.batches):
        with pytest.raises(ArgumentError):
            go_on()
    assert torch.equal(model.inner.weight, before)
    assert optimizer.taken == 0


def test_raw_gradients_of_thawed_layers_do_not_move_them() -> None:
    """Thawed on the way, a layer would move along gradients that nobody clipped."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    model[0].requires_grad_(False)
    optimizer = private(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    one_step(optimizer)
    before = model[0].weight.clone()
    model[0].requires_grad_(True)
    for rows in optimizer.batches():
        optimizer.backward(*rows)
    cross_entropy(model(X), Y).mean().backward()
    with pytest.raises(ArgumentError, match="without noise"):
        optimizer.step()
    assert torch.equal(model[0].weight, before)


def test_a_step_counts_once_its_noise_is_drawn() -> None:
    """Where the optimiser fails after it moved, the step was seen all the same."""

    class Failing(torch.optim.SGD):  # type: ignore[misc]
        def step(self, closure: Any = None) -> None:
            super().step()
            raise RuntimeError

    model = nn.Linear(3, 2)
    optimizer = private(model, optimizer=Failing(model.parameters(), lr=0.1))
    for taken in range(1, 4):
        with pytest.raises(RuntimeError):
            one_step(optimizer)
        assert optimizer.taken == taken
    with pytest.raises(ArgumentError, match="all 3 steps"):
        optimizer.batches()


class Killed(Exception):
    """What stands for a kill."""


def kept_run(place: Path, stopped: bool = False, **given: Any) -> torch.Tensor:
    """The weights after a run with dropout, or an error where it was stopped."""

    def told(now: Any) -> None:
        if stopped and now.step >= 5:
            raise Killed

    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    train(
        model, (X, Y), noise_multiplier=1, steps=10, every=2, population=60, checkpoint=place,
        progress=told, **given,
    )  # fmt: skip
    found: torch.Tensor = model[2].weight.detach()
    return found


@pytest.mark.parametrize("ghost", [True, False])
def test_dropout_is_repeated_as_it_was(
    ghost: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated step under the same noise must have the same gradients: their difference is bare.

    What a model drops is drawn by torch, and so must follow from the run's key.
    """
    from dither.learn.deep import _checkpoint

    monkeypatch.setattr(_checkpoint, "fresh_key", lambda: bytes(32))
    whole = kept_run(tmp_path / "whole", ghost=ghost)
    with pytest.raises(Killed):
        kept_run(tmp_path / "parts", stopped=True, ghost=ghost)
    assert torch.equal(kept_run(tmp_path / "parts", ghost=ghost), whole)


def test_another_loss_of_the_same_name_does_not_go_on(tmp_path: Path) -> None:
    """The noise of a step is of one gradient alone."""

    def weighted(by: float) -> Any:
        return lambda output, target: by * cross_entropy(output, target)

    with pytest.raises(Killed):
        kept_run(tmp_path / "run", stopped=True, loss=weighted(1))
    with pytest.raises(ArgumentError, match="checkpoint is of a run with another"):
        kept_run(tmp_path / "run", loss=weighted(2))


class ReadTwice(nn.Module):
    """A layer that is called once, and whose weights are read once more."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 3, bias=False), nn.Linear(3, 2, bias=False)

    def forward(self, x: Any) -> Any:
        """Shape (b, 2)."""
        h = self.first(x)
        return self.last(h + functional.linear(h, self.first.weight))


def test_weights_that_are_read_besides_are_seen() -> None:
    """On rows of zeros all its gradients are 0, and would agree with any: others are tried, too."""
    labels = Y[:2]
    assert isinstance(engine_for(ReadTwice(), cross_entropy, None, X[:2] * 0, labels), ByVmap)
    optimizer = private(ReadTwice())
    assert isinstance(optimizer._sums.engine, ByVmap)
    assert not torch.equal(*made_up_rows(X))


def strict(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A loss that mixes rows, and fails on all targets but 0: it knows one weight."""
    weights = torch.ones(1)
    return weights[target] * (output - output.mean(0) / 2).square().sum(1)


def of_shares(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A loss of outputs that add up to 1, and of no others."""
    if not torch.allclose(output.sum(1), torch.ones(len(output))):
        raise ValueError
    return -output.clamp(min=1e-9).log()[:, 0] * (1 + target)


def of_shares_together(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The same over the number of rows."""
    return of_shares(output, target) / len(output)


def of_counts(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A loss of whole numbers, in floats."""
    if bool((target != target.round()).any()):
        raise ValueError
    return output.exp()[:, 0] - target * output[:, 0]


def of_counts_together(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The same with targets less their mean."""
    return of_counts(output, target) + target.mean() * output[:, 0]


def test_a_loss_that_cannot_be_seen_runs_each_row_by_itself() -> None:
    """It mixes rows, and nobody sees it; alone, no row moves another's, whichever way they run."""
    for ghost in (None, False):
        optimizer = private(nn.Linear(3, 2), loss=strict, ghost=ghost)
        y = torch.zeros(60, dtype=torch.int64)
        parts = [optimizer._sums.engine.parts(X[:k], y[:k]) for k in (1, 60)]
        for one, many in zip(*parts, strict=True):
            for part, whole in zip(one.gradients(), many.gradients(), strict=True):
                assert torch.allclose(part[0], whole[0])


def test_a_loss_that_fails_on_one_row_is_refused_at_once() -> None:
    """And not after the charge, in the first step."""

    def of_two(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if len(output) != 2:
            raise ValueError("two")
        return output.sum(1)

    with pytest.raises(ArgumentError, match="a row by itself"):
        private(nn.Linear(3, 2), loss=of_two)


def test_a_loss_of_the_models_own_outputs_is_seen_on_them() -> None:
    """Made-up outputs are none of a softmax: what the model gives for made-up rows is."""
    model = nn.Sequential(nn.Linear(3, 2), nn.Softmax(1))
    # It looks at numbers before it goes on, which vmap does not show it.
    assert isinstance(private(model, loss=of_shares)._sums.engine, ByRows)
    with pytest.raises(ArgumentError, match="vmap can run"):
        private(model, loss=of_shares, ghost=True)
    with pytest.raises(ArgumentError, match="loss mixes the rows"):
        private(model, loss=of_shares_together)


def test_a_loss_of_counts_is_seen_on_counts() -> None:
    """Targets between 0 and 1 are none."""
    data = X, Y.float()
    for loss in (of_counts, of_counts_together):
        model = nn.Linear(3, 1)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        how: dict[str, Any] = {"rate": 1, "noise_multiplier": 1, "loss": loss}
        if loss is of_counts:
            engine = PrivateOptimizer(sgd, model, data, **how)._sums.engine
            assert isinstance(engine, ByRows)
        else:
            with pytest.raises(ArgumentError, match="loss mixes the rows"):
                PrivateOptimizer(sgd, model, data, **how)

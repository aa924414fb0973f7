"""A whole run: what it costs, when it ends, and what is refused."""

# ruff: noqa: E402  what needs torch comes after the test whether it is there

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from click.testing import CliRunner
from torch import nn

from dither import learn, privacy
from dither.cli import main
from dither.errors import ArgumentError
from dither.learn.deep import CorrectedAdam, PrivateOptimizer

X = torch.rand(300, 2, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > X[:, 1]).long()


def fitted(**options: Any) -> Any:
    """A run over rows that a line divides."""
    settings: dict[str, Any] = {"epsilon": 3, "delta": 1e-5, "steps": 20, "rate": 0.4}
    model = options.pop("model", None) or nn.Linear(2, 2)
    return learn.train(model, (X, Y), **settings | options)


def said_by_account(loss: Any, delta: str) -> float:
    """The epsilon that the command prints for the expression of a loss."""
    done = CliRunner().invoke(main, ["account", loss.describe(), "--delta", delta])
    assert done.exit_code == 0, done.output
    found = re.search(r"numeric\S*\s+([\d.]+)", done.output)
    assert found, done.output
    return float(found[1])


@pytest.mark.parametrize("options", [{}, {"population": 300}])
def test_loss_is_that_of_the_steps_taken(options: Any) -> None:
    """What a run's recorded steps cost is what ``dither account`` prints, and at most epsilon."""
    steps: list[int] = []
    fit = fitted(progress=lambda now: steps.append(now.step), **options)
    assert (fit.steps, steps) == (20, list(range(1, 21)))
    one = privacy.gaussian(fit.noise_multiplier).poisson(0.4)
    recorded = privacy.compose(*(one for _ in steps), fit.optimizer.cost.once)
    epsilon = recorded.epsilon(1e-5)
    assert epsilon == pytest.approx(float(fit.loss.epsilon(1e-5)))
    assert 2.9 < epsilon <= 3.0
    assert (fit.loss.charge.epsilon, fit.loss.charge.delta) == (3, Fraction(1, 10**5))
    assert said_by_account(fit.loss, "1e-5") == pytest.approx(float(epsilon), rel=1e-3)


def test_replaced_rows_cost_what_both_cost() -> None:
    """The loss is the sampled one for rows that are replaced, above that for rows added."""
    fit = fitted(neighbours="replace", epsilon=None, noise_multiplier=5, rate=1, steps=4)
    assert fit.loss.epsilon(1e-5) == pytest.approx(float((4 * privacy.gaussian(2.5)).epsilon(1e-5)))
    each = fitted(neighbours="replace", epsilon=None, noise_multiplier=5, steps=1).loss
    assert each.delta(1.0) > privacy.gaussian(5).poisson(0.4).delta(1.0)
    assert each.neighbours is privacy.Neighbours.REPLACE


def test_it_learns() -> None:
    """Eight of ten rows are told right; half would be by a model that learnt nothing."""
    torch.manual_seed(0)
    fit = fitted(steps=60)
    assert float((fit.model(X).argmax(1) == Y).float().mean()) > 0.8


def test_a_run_that_ends_early_has_cost_all() -> None:
    """When it ends may depend on rows: nothing comes back."""
    whole = fitted(noise_multiplier=3, epsilon=None)
    fit = fitted(noise_multiplier=3, epsilon=None, stop=lambda now: now.step >= 5)
    assert (fit.steps, whole.steps) == (5, 20)
    assert fit.loss.describe() == whole.loss.describe()
    assert "of 20 that were planned and charged" in fit.summary()


def test_promise_that_cannot_be_kept_says_what_would_do() -> None:
    """With too little noise the message names an epsilon and a number of steps that fit."""
    with pytest.raises(ArgumentError) as found:
        fitted(epsilon=1, noise_multiplier=3, population=300)
    said = re.search(r"epsilon=([\d.]+) would do, or steps=([\d,]+)", str(found.value))
    assert said
    each, fits = privacy.gaussian(3).poisson(0.4), int(said[2])
    assert (20 * each).epsilon(1e-5) <= float(said[1]) < 1.01 * (20 * each).epsilon(1e-5)
    assert (fits * each).epsilon(1e-5) <= 1 < ((fits + 1) * each).epsilon(1e-5)
    with pytest.raises(ArgumentError, match="would do; or leave"):
        fitted(epsilon=1, noise_multiplier=1)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"epsilon": None}, "name the noise_multiplier, or the epsilon"),
        ({"delta": None}, "epsilon needs a delta"),
        ({"delta": 0}, "delta must be above 0"),
        ({"rate": 0}, "rate"),
        ({"rate": 1.5}, "rate"),
        ({"steps": 0}, "steps"),
        ({"clip": 0}, "clip"),
        ({"clip": "flatter"}, "clip must be a number"),
        ({"optimizer": "sdg"}, "optimizer"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"loss": lambda out, y: out.mean()}, "one number for each example"),
        ({"loss": "entropy"}, "loss must be a function"),
        ({"population": 10, "neighbours": "replace"}, "population"),
        ({"physical": 0}, "physical"),
        ({"watch": X}, "pair"),
        ({"stop": 5}, "stop"),
        ({"model": nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4))}, "GroupNorm"),
        ({"model": nn.ReLU()}, "parameters to train"),
        ({"optimizer": lambda p: torch.optim.SGD(nn.Linear(2, 2).parameters(), 1)}, "of the model"),
        ({"optimizer": lambda p: torch.optim.LBFGS(p)}, "LBFGS"),
    ],
)
def test_bad_arguments(options: Any, wanted: str, draws: Any) -> None:
    """Each is named, before anything is drawn."""
    with pytest.raises(ArgumentError, match=wanted):
        fitted(**options)
    assert draws == []


@pytest.mark.parametrize(
    "data", [X, (X, Y[:5]), (X, [["a"]] * 300), ([["a"]], [0]), (X.to(torch.complex64), Y)]
)
def test_bad_data(data: Any) -> None:
    """Rows that are no numbers, or do not belong together."""
    with pytest.raises(ArgumentError, match=r"data|X|y"):
        learn.train(nn.Linear(2, 2), data, epsilon=1, delta=1e-5, steps=1)


@pytest.mark.parametrize("hidden", [0, 1])
def test_arrays_with_a_mask_are_refused(hidden: int) -> None:
    """What lies under a mask would be trained on as if it were known."""
    data = [np.ones((4, 2)), np.zeros(4, int)]
    data[hidden] = np.ma.array(data[hidden], mask=False)
    with pytest.raises(ArgumentError, match="must be a plain array"):
        learn.train(nn.Linear(2, 2), data, epsilon=1, delta=1e-5, steps=1)


def test_summary_and_watched() -> None:
    """The summary names the cost, whom it protects and the command that says so."""
    fit = fitted(watch=(X[:50], Y[:50]))
    text = fit.summary()
    assert "ε = 3, δ = 0.00001" in text
    assert "one row, added or removed" in text
    assert f'dither account "{fit.loss.describe()}" --delta 0.00001' in text
    assert "not protected" in text
    assert set(fit.watched[-1].watched) == {"loss", "accuracy"}
    last = float((fit.model(X[:50]).argmax(1) == Y[:50]).float().mean())
    assert fit.watched[-1].watched["accuracy"] == pytest.approx(last)


def test_plot(tmp_path: Path) -> None:
    """A panel of what was spent, and one of what was measured."""
    pytest.importorskip("matplotlib")
    fit = fitted(steps=4, watch=(X[:50], Y[:50]))
    assert len(fit.plot(tmp_path / "run.png").axes) == 2
    assert (tmp_path / "run.png").stat().st_size > 1000
    assert len(fitted(steps=4).plot().axes) == 1


def test_mean_of_the_later_half(draws: Any) -> None:
    """The parameters at the end are the means of those after each step of the later half."""
    seen: list[Any] = []
    model = nn.Linear(2, 2)

    class Watching(torch.optim.SGD):  # type: ignore[misc]
        def step(self, closure: Any = None) -> None:
            super().step(closure)
            seen.append(model.weight.detach().clone())

    fitted(model=model, steps=4, optimizer=lambda p: Watching(p, lr=0.5))
    torch.testing.assert_close(model.weight.detach(), (seen[2] + seen[3]) / 2)
    seen.clear()
    fitted(model=model, steps=4, optimizer=lambda p: Watching(p, lr=0.5), average=False)
    assert torch.equal(model.weight.detach(), seen[3])


def test_adam_takes_the_noise_out() -> None:
    """Where there is noise alone, its second moments are near 0 and not near the noise."""
    parameter = nn.Parameter(torch.zeros(20_000))
    adam = CorrectedAdam([parameter], lr=1.0, betas=(0.0, 0.9), floor=1e-9)
    adam.param_groups[0]["noise_variance"] = 4.0
    generator = torch.Generator().manual_seed(0)
    for _ in range(30):
        parameter.grad = 2 * torch.randn(20_000, generator=generator)
        adam.step()
    state = adam.state[parameter]
    assert float(state["square"].mean()) == pytest.approx(4 * (1 - 0.9**30), rel=0.03)
    assert state["noise"] == pytest.approx(4 * (1 - 0.9**30))


def test_adam_is_told_the_noise_of_a_mean(draws: Any) -> None:
    """One number of the noisy mean has a variance of (z·clip/(rate·population))²."""
    model = nn.Linear(2, 2)
    adam = CorrectedAdam(model.parameters())
    optimizer = PrivateOptimizer(
        adam, model, (X, Y), rate="1/2", noise_multiplier=3, population=100, clip=0.5
    )
    for rows in optimizer.batches():
        optimizer.backward(*rows)
    optimizer.step()
    assert adam.param_groups[0]["noise_variance"] == pytest.approx((3 * 0.5 / 50) ** 2)
    assert fitted(optimizer="adam", steps=3).steps == 3


def test_noise_is_of_the_stated_size() -> None:
    """Of 4,000 draws of a mean without rows; the chance of a false alarm is below 1e-8."""
    model = nn.Linear(999, 4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    none = torch.zeros(0, 999), torch.zeros(0, dtype=torch.int64)
    for exact in (True, False):
        optimizer = PrivateOptimizer(
            torch.optim.SGD(model.parameters(), lr=1.0),
            model,
            none,
            rate=1,
            noise_multiplier=2,
            population=10,
            clip=0.5,
            exact=exact,
        )
        before = torch.cat([p.detach().flatten() for p in model.parameters()])
        list(optimizer.batches())
        optimizer.step()
        change = torch.cat([p.detach().flatten() for p in model.parameters()]) - before
        assert float(change.std()) == pytest.approx(0.1, rel=0.07)


def test_losses_add_up() -> None:
    """Two runs cost twice, and a run is added to other losses."""
    fit = fitted(noise_multiplier=4, epsilon=None, population=300)
    assert (fit.loss + fit.loss).describe() == "40 * gaussian(4).poisson(0.4)"
    assert (fit.loss + privacy.pure(1)).epsilon(1e-5) > fit.loss.epsilon(1e-5)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A line in a terminal, where it is asked for; else nothing is written."""
    fitted(steps=2, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    fitted(steps=2)
    assert capsys.readouterr().err == ""


def test_room_is_light() -> None:
    """Torch is imported when a deep model is asked for, not before."""
    code = (
        "import sys; from dither import learn; assert 'torch' not in sys.modules; "
        "learn.train; assert 'torch' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_training_is_copied_without_its_rows_and_never_pickled() -> None:
    """A second optimiser would take the steps of one charge once more."""
    found = fitted()
    twin = copy.deepcopy(found)
    assert str(twin) == str(found)
    assert twin.model is not found.model
    assert twin.optimizer is found.optimizer
    for refused in (
        lambda: pickle.dumps(found),
        lambda: copy.deepcopy(found.optimizer),
        lambda: copy.copy(found.optimizer),
    ):
        with pytest.raises(copy.Error, match="keep the model and the loss of a training"):
            refused()

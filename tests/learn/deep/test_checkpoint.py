"""Checkpoints: a run goes on exactly, once, and under nothing else than it was begun with."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from dither.errors import ArgumentError, DitherError  # noqa: E402
from dither.learn.deep import FixedOrder, _checkpoint, train, trained  # noqa: E402
from dither.learn.deep._checkpoint import RunCheckpoint  # noqa: E402

torch.set_num_threads(1)
X = torch.rand(50, 3, generator=torch.Generator().manual_seed(1))
Y = torch.arange(50) % 2
HOW: list[dict[str, Any]] = [
    {"steps": 12, "rate": 0.3},
    {"steps": 12, "rate": 0.3, "clip": "adaptive", "optimizer": "adam"},
    {"order": FixedOrder(25, 6)},
]


class Stopped(Exception):
    """What stands for a kill."""


def stop_at(step: int) -> Callable[[Any], None]:
    """Progress that ends the process, so to speak."""

    def told(now: Any) -> None:
        if now.step >= step:
            raise Stopped

    return told


def one_run(place: Path, step: int | None = None, **how: Any) -> torch.Tensor:
    """The weights after a run, or None where it was stopped."""
    torch.manual_seed(2)
    model = how.pop("model", None) or torch.nn.Linear(3, 2)
    given: dict[str, Any] = {"noise_multiplier": 1, "every": 2, "data": (X, Y)} | how
    fit = train(
        model, given.pop("data"), checkpoint=place,
        progress=stop_at(step) if step else False, **given,
    )  # fmt: skip
    fitted: torch.Tensor = fit.model.weight.detach()
    return fitted


@pytest.mark.parametrize("how", HOW, ids=["sgd", "adam", "order"])
def test_a_run_goes_on_exactly(
    how: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped twice, between what was kept: bit for bit the same model; then its key is gone."""
    monkeypatch.setattr(_checkpoint, "fresh_key", lambda: bytes(range(32)))
    whole = one_run(tmp_path / "whole", **how)
    for step in (5, 9):
        with pytest.raises(Stopped):
            one_run(tmp_path / "run", step, **how)
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o600
        assert RunCheckpoint._found(tmp_path / "run").key
    assert torch.equal(one_run(tmp_path / "run", **how), whole)
    body = (tmp_path / "run").read_bytes()
    held = _checkpoint._read(tmp_path / "run")
    assert held is not None
    assert held.ended
    assert held.key == held.binding == b""
    assert bytes(range(32)) not in body
    assert torch.equal(trained(torch.nn.Linear(3, 2), tmp_path / "run").weight, whole)
    with pytest.raises(ArgumentError, match="has ended"):
        one_run(tmp_path / "run", **how)


def test_other_runs_have_other_keys(tmp_path: Path) -> None:
    """Noise of two runs differs."""
    first, second = (one_run(tmp_path / name, **HOW[0]) for name in ("a", "b"))
    assert not torch.equal(first, second)


def test_a_copy_is_not_resumed_a_second_time(tmp_path: Path) -> None:
    """Neither of a generation that was taken, nor of a run that has ended."""
    place, copy = tmp_path / "run", tmp_path / "copy"
    with pytest.raises(Stopped):
        one_run(place, 5, **HOW[0])
    shutil.copy(place, copy)
    with pytest.raises(Stopped):
        one_run(place, 9, **HOW[0])
    later = tmp_path / "later"
    shutil.copy(place, later)
    shutil.copy(copy, place)
    with pytest.raises(ArgumentError, match="resumed before"):
        one_run(place, **HOW[0])
    shutil.copy(later, place)
    one_run(place, **HOW[0])
    for old in (copy, later):
        shutil.copy(old, place)
        with pytest.raises(ArgumentError, match="resumed before"):
            one_run(place, **HOW[0])
    place.unlink()
    with pytest.raises(ArgumentError, match="choose another path"):
        one_run(place, **HOW[0])


def test_the_copies_are_seen_by_what_refuses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the file of used generations the same copy would be resumed."""
    place, copy = tmp_path / "run", tmp_path / "copy"
    with pytest.raises(Stopped):
        one_run(place, 5, **HOW[0])
    shutil.copy(place, copy)
    one_run(place, **HOW[0])
    shutil.copy(copy, place)
    monkeypatch.setattr(_checkpoint, "_used", lambda path: set())
    one_run(place, **HOW[0])


class Doubled(torch.nn.Linear):
    """Another function of the same parameters, whose text is the same."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Twice the outputs."""
        return 2 * super().forward(x)


Doubled.__name__ = Doubled.__qualname__ = "Linear"
OTHER: dict[str, dict[str, Any]] = {
    "a value": {"data": (X + torch.eye(50, 3) * 1e-3, Y)},
    "a label": {"data": (X, torch.where(torch.arange(50) == 7, 1 - Y, Y))},
    "a row less": {"data": (X[1:], Y[1:])},
    "clip": {"clip": 2},
    "noise": {"noise_multiplier": 2},
    "rate": {"rate": 0.4},
    "steps": {"steps": 13},
    "learning rate": {"learning_rate": 0.1},
    "momentum": {"momentum": 0.5},
    "physical batches": {"physical": 3},
    "neighbours": {"neighbours": "replace"},
    "order": {"steps": None, "rate": None, "order": FixedOrder(10, 6)},
    "model": {"model": torch.nn.Linear(3, 3)},
    "a function of the model": {"model": Doubled(3, 2)},
    "averages": {"average": False},
}


@pytest.mark.parametrize("other", OTHER.values(), ids=OTHER.keys())
def test_it_is_bound_to_rows_model_and_arguments(other: dict[str, Any], tmp_path: Path) -> None:
    """Anything else is refused before a step; the run itself goes on after that."""
    place = tmp_path / "run"
    with pytest.raises(Stopped):
        one_run(place, 5, **HOW[0])
    with pytest.raises(ArgumentError, match="checkpoint is of a run with"):
        one_run(place, **(HOW[0] | other))
    one_run(place, **HOW[0])


def test_a_death_between_claim_and_next_generation_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every replacement of a file, the last one too: the run goes on all the same."""
    real, left = _checkpoint._move, 0

    def dying(one: Path, other: Path) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Stopped
        real(one, other)

    for at in range(1, 9):
        place = tmp_path / f"run{at}"
        with pytest.raises(Stopped):
            one_run(place, 5, **HOW[0])
        monkeypatch.setattr(_checkpoint, "_move", dying)
        left = at
        with contextlib.suppress(Stopped):
            one_run(place, **HOW[0])
        monkeypatch.setattr(_checkpoint, "_move", real)
        if left > 0:
            break
        # A process that died at its very end has a model all the same.
        with contextlib.suppress(ArgumentError):
            one_run(place, **HOW[0])
        assert trained(torch.nn.Linear(3, 2), place).weight.shape == (2, 3)
    assert 4 < at < 8


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """The second is refused while the first has the file."""
    with (
        RunCheckpoint.opened(tmp_path / "run"),
        pytest.raises(ArgumentError, match="another process"),
    ):
        one_run(tmp_path / "run", **HOW[0])


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    """Damaged files, files of others, folders that are not there."""
    place = tmp_path / "run"
    with pytest.raises(Stopped):
        one_run(place, 5, **HOW[0])
    with pytest.raises(ArgumentError, match="has not ended"):
        trained(torch.nn.Linear(3, 2), place)
    body = bytearray(place.read_bytes())
    body[-9] ^= 1
    place.write_bytes(body)
    with pytest.raises(DitherError, match="was damaged"):
        one_run(place, **HOW[0])
    with pytest.raises(ArgumentError, match="folder that exists"):
        one_run(tmp_path / "none" / "run", **HOW[0])
    with pytest.raises(ArgumentError, match="there is none"):
        trained(torch.nn.Linear(3, 2), tmp_path / "nothing")
    one_run(tmp_path / "done", **HOW[0])
    with pytest.raises(ArgumentError, match="parameters of the one"):
        trained(torch.nn.Linear(4, 2), tmp_path / "done")
    with pytest.raises(ArgumentError, match="words are those"):
        one_run(tmp_path / "words", words=lambda purpose, step: None, **HOW[0])

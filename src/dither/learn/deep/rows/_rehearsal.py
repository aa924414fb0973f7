"""How a model's rows may be run: found out on rows that are made up, before anything is charged.

What is found out beforehand must be what happens afterwards. Under vmap it is: no number and no
size of a batch is visible to the model's code, so that with the same state it does for real rows,
operation for operation, what it did for made-up ones. What vmap does not see through is looked for,
and a model that has any of it is run row by row:

- Python's or numpy's generator, which draws once for all rows;
- a generator of its own, or a seed that is set inside: what a row draws would follow from its place
  in the batch, and so from who else is there;
- an operation or a function whose rule for batches is somebody's own, and may mix them;
- half precision, as of autocast, whose last digit is too coarse to follow from other rows.

A model that changes what it can reach is refused, for free; `_guard` holds every real run to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from dither.errors import ArgumentError
from dither.learn.deep.rows._gradients import (
    ByLayers,
    ByRows,
    ByVmap,
    GradientEngine,
    PerExampleLoss,
)
from dither.learn.deep.rows._model import Precision, check_loss_alone, keeps, unusual_rows
from dither.learn.deep.rows._plain import ByBatch, reads_rows_apart
from dither.learn.deep.state._draws import untouched
from dither.learn.deep.state._guard import StateChanged
from dither.learn.deep.state._state import quiet
from dither.numeric import KeyedWords

__all__ = ["engine_for"]

_OFTEN = 6
"""How often what is drawn must come again for a seed to be suspected."""


def engine_for(
    model: nn.Module,
    loss: PerExampleLoss,
    ghost: bool | None,
    x: torch.Tensor,
    y: torch.Tensor,
) -> GradientEngine:
    """The engine that was asked for, or the fastest that finds what each row gives by itself.

    Parameters
    ----------
    ghost : bool or None
        Whether to go layer by layer; None where that is possible.
    x, y : Tensor
        Two made-up rows.

    Raises
    ------
    ArgumentError
        The loss is not one number for each example, or depends on other examples; model or loss
        change what they can reach; or layer by layer was asked for and is not possible.
    """
    with torch.no_grad(), quiet():
        try:
            given = model(x)
            made = loss(given, y)
        except Exception as error:
            raise ArgumentError(
                f"loss fails on made-up rows: {type(error).__name__}: {error}"
            ) from error
    if not isinstance(made, torch.Tensor) or made.shape != (len(x),):
        raise ArgumentError(
            "loss must give one number for each example, shape (b,): in torch, reduction='none'"
        )
    check_loss_alone(loss, model, x, y)
    alone = ByRows(model, loss)
    trial = _Trial(alone, x, y)
    if ghost and alone.half:
        raise ArgumentError(
            "ghost=True needs float32: in half precision, as of autocast, each row is run by "
            "itself. Leave ghost out, or autocast"
        )
    if ghost is not False:
        kinds = [ByLayers]
        if reads_rows_apart(model, loss):
            kinds = [ByBatch, ByLayers]
        for kind in kinds:
            try:
                found = kind(model, loss)
            except ArgumentError:
                if ghost:
                    raise
                break
            if trial.apart(found) and trial.agrees(found):
                return found
        else:
            if ghost:
                raise ArgumentError(
                    "ghost=True needs layers that are used once each, whose parameters nothing "
                    "else reads, and a model that torch.func.vmap can run: leave it out"
                )
    by_vmap = ByVmap(model, loss)
    return by_vmap if trial.apart(by_vmap) else alone


class _Trial:
    """What rows that are made up give when each is run by itself, and whether an engine gives it.

    Raises
    ------
    ArgumentError
        A row cannot be run by itself, or leaves something behind.
    """

    def __init__(self, alone: ByRows, x: torch.Tensor, y: torch.Tensor) -> None:
        self.alone, self.x, self.y = alone, x, y
        self.far = unusual_rows(x)
        with _Drawn() as drawn:
            try:
                with Precision() as precision:
                    self.true = _under(alone, x, y)
            except StateChanged as changed:
                raise ArgumentError(keeps(changed.names)) from None
            except Exception as error:
                raise ArgumentError(
                    "loss fails on a row by itself, made up as it is: let it take any numbers, in "
                    f"batches of any size; {type(error).__name__}: {error}"
                ) from error
        self.drawn = bool(drawn.found)
        alone.half = precision.half
        alone.guard.generators = drawn.generators
        # What is far from other rows may be kept where others are not. It may fail, too.
        self.far_true: dict[str, torch.Tensor] | None
        try:
            self.far_true = _under(alone, self.far, self._wanted(len(self.far)))
        except StateChanged as changed:
            raise ArgumentError(keeps(changed.names)) from None
        except Exception:
            self.far_true = None

    def _wanted(self, rows: int) -> torch.Tensor:
        return self.y[:1].expand(rows, *self.y.shape[1:])

    def apart(self, engine: GradientEngine) -> bool:
        """Whether an engine can run the model, and keeps its rows' draws apart."""
        guard = self.alone.guard
        if self.alone.half or guard.generators or guard.watched.generators or _own_rules():
            return False
        rows = self.x[[0, 1, 0]]
        try:
            engine.ready(rows)
            with untouched() as kept:
                with _Drawn() as drawn, _Calls() as calls:
                    engine.parts(rows, self._wanted(3))
                if not kept() or calls.foreign or drawn.generators:
                    return False
            runs = []
            for _ in range(_OFTEN if drawn.found else 0):
                with _Drawn() as again:
                    engine.parts(rows, self._wanted(3))
                runs.append(again.found)
        except StateChanged as changed:
            raise ArgumentError(keeps(changed.names)) from None
        except Exception:
            return False
        return all(len(run) == len(drawn.found) for run in runs) and not any(
            _came_again(draws) for draws in zip(drawn.found, *runs, strict=True)
        )

    def agrees(self, engine: GradientEngine) -> bool:
        """Whether it finds of each row what torch finds of that row by itself."""
        x, y, true = self.x, self.y, self.true
        if self.drawn:
            # The same draws are had of one row alone.
            pairs = [(_under(self.alone, x[i : i + 1], y[:1]), x[i : i + 1]) for i in (0, 1)]
        elif self.far_true is None:
            pairs = [(true, x)]
        else:
            both = {name: torch.cat([made, self.far_true[name]]) for name, made in true.items()}
            pairs = [(both, torch.cat([x, self.far]))]
        for wanted, rows in pairs:
            try:
                found = _under(engine, rows, self._wanted(len(rows)))
            except Exception:
                return False
            for name, made in wanted.items():
                if name not in found or not _close(found[name], made):
                    return False
        return True


def _came_again(draws: tuple[torch.Tensor, ...]) -> bool:
    """Whether a draw was the same every time, though each time from another secret."""
    first = draws[0]
    return all(one.shape == first.shape and torch.equal(one, first) for one in draws[1:])


def _under(engine: GradientEngine, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradients of each row, by name, from draws that everybody knows."""
    words, engine.guard.words = engine.guard.words, KeyedWords(bytes(32), "rehearsal")
    try:
        parts = engine.parts(x, y)
    finally:
        engine.guard.words = words
    return {
        name: made
        for part in parts
        for name, made in zip(part.names, part.gradients(), strict=True)
    }


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Nearly equal, by the size of each row's own gradient."""
    if one.shape != other.shape:
        return False
    largest = other.abs().nan_to_num(0, 0, 0).flatten(1).amax(1).clamp(min=1.0)
    scale = largest.view(-1, *(1,) * (other.ndim - 1))
    return bool(torch.allclose(one / scale, other / scale, rtol=1e-3, atol=1e-5, equal_nan=True))


def _own_rules() -> bool:
    """Whether anybody has defined a function of torch with a rule for batches of its own."""
    return any(
        "vmap" in vars(kind) and not kind.__module__.startswith("torch.")
        for kind in _below(torch.autograd.Function)
    )


def _below(kind: type) -> Iterator[type]:
    below: list[type] = kind.__subclasses__()
    for one in below:
        yield one
        yield from _below(one)


class _Drawn(TorchDispatchMode):  # type: ignore[misc]
    """What is drawn by chance while it is on, and from which generators that were named."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[torch.Tensor] = []
        self.generators: list[torch.Generator] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags and not _never(func, args, kwargs):
            given = [*args, *(kwargs or {}).values()]
            self.generators += [one for one in given if isinstance(one, torch.Generator)]
            several = made if isinstance(made, tuple | list) else [made]
            self.found += [one.detach().clone() for one in several if isinstance(one, torch.Tensor)]
        return made


def _never(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether a dropout drops nothing, as in attention without any."""
    given = dict(zip((one.name for one in func._schema.arguments), args, strict=False))
    given |= kwargs or {}
    defaults = {one.name: one.default_value for one in func._schema.arguments}
    chances = [given.get(name, defaults[name]) for name in ("p", "dropout_p") if name in defaults]
    return bool(chances) and all(isinstance(p, float | int) and p == 0 for p in chances)


class _Calls(TorchFunctionMode):  # type: ignore[misc]
    """Whether an operation is called that is not torch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        known = getattr(func, "_qualified_op_name", None) or getattr(func, "namespace", None)
        if isinstance(known, str):
            self.foreign |= known.partition("::")[0] not in ("aten", "prims", "prim")
        return func(*args, **(kwargs or {}))

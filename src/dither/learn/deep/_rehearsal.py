"""How a model's rows may be run: found out on rows that are made up, before anything is charged.

What is found out beforehand must be what happens afterwards. Under vmap it is: no number and no
size of a batch is visible to the model's code, so that with the same state it does for real rows,
operation for operation, what it did for made-up ones. What vmap does not see through is looked for,
and a model that has any of it is run row by row:

- Python's or numpy's generator, which draws once for all rows;
- a generator of its own, or a seed that is set inside: what a row draws would follow from its place
  in the batch, and so from who else is there;
- an operation or a function whose rule for batches is somebody's own, and may mix them.

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
from dither.learn.deep._draws import untouched
from dither.learn.deep._gradients import (
    ByLayers,
    ByRows,
    ByVmap,
    GradientEngine,
    PerExampleLoss,
    Unknown,
)
from dither.learn.deep._guard import Changed
from dither.learn.deep._model import check_loss_alone, keeps, unusual_rows
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
    with torch.no_grad():
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
    _check_alone(alone, x, y)
    if ghost is not False:
        try:
            found = ByLayers(model, loss)
            if not _apart(found, alone, x, y) or not _agrees(found, alone, x, y):
                raise ArgumentError(
                    "ghost=True needs layers that are used once each, whose parameters nothing "
                    "else reads, and a model that torch.func.vmap can run: leave it out"
                )
            return found
        except ArgumentError:
            if ghost:
                raise
    by_vmap = ByVmap(model, loss)
    return by_vmap if _apart(by_vmap, alone, x, y) else alone


def _check_alone(alone: ByRows, x: torch.Tensor, y: torch.Tensor) -> None:
    """See that a row can be run by itself, and that no row leaves anything behind."""
    far = unusual_rows(x)
    with _Drawn() as drawn:
        try:
            alone.parts(x, y)
        except Changed as changed:
            raise ArgumentError(keeps(changed.names)) from None
        except Exception as error:
            raise ArgumentError(
                "loss fails on a row by itself, made up as it is: let it take any numbers, in "
                f"batches of any size; {type(error).__name__}: {error}"
            ) from error
        # What is far from other rows may be kept where others are not. It may fail, too.
        try:
            alone.parts(far, y[:1].expand(len(far), *y.shape[1:]))
        except Changed as changed:
            raise ArgumentError(keeps(changed.names)) from None
        except Exception:
            pass
    alone.guard.generators = [one for one in drawn.generators if one is not torch.default_generator]


def _apart(engine: GradientEngine, alone: ByRows, x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether vmap can run the model, and keeps its rows and their draws apart."""
    if alone.guard.generators or alone.guard.watched.generators or _own_rules():
        return False
    rows, wanted = x[[0, 1, 0]], y[[0, 1, 0]]
    drawn, calls = _Drawn(), _Calls()
    try:
        engine.ready(rows)
        with untouched() as kept:
            with drawn, calls:
                engine.parts(rows, wanted)
            if not kept() or calls.foreign or drawn.generators:
                return False
        runs = []
        for _ in range(_OFTEN if drawn.found else 0):
            with _Drawn() as again:
                engine.parts(rows, wanted)
            runs.append(again.found)
    except Changed as changed:
        raise ArgumentError(keeps(changed.names)) from None
    except Exception:
        return False
    return not any(_came_again(draws) for draws in zip(drawn.found, *runs, strict=False)) and all(
        len(run) == len(drawn.found) for run in runs
    )


def _came_again(draws: tuple[torch.Tensor, ...]) -> bool:
    """Whether a draw was the same every time, though each time from another secret."""
    first = draws[0]
    return all(one.shape == first.shape and torch.equal(one, first) for one in draws[1:])


def _agrees(engine: ByLayers, alone: ByRows, x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether each row's parts are the gradients that torch finds of that row by itself."""
    far = unusual_rows(x)
    batches = [(x[:1], y[:1]), (x[1:2], y[1:2])] + [(row[None], y[:1]) for row in far]
    with _Drawn() as drawn:
        engine.parts(x, y)
    if not drawn.found:
        batches.append((torch.cat([x, far]), y[:1].expand(2 + len(far), *y.shape[1:])))
    for number, (rows, wanted) in enumerate(batches):
        try:
            true = _under(alone, rows, wanted)
        except Exception:
            # It fails on what is far from other rows: of that nothing is known.
            if number < 2:
                return False
            continue
        try:
            found = _under(engine, rows, wanted)
        except (Unknown, RuntimeError, TypeError, AttributeError):
            return False
        for name, own in true.items():
            if name not in found or not _close(found[name], own):
                return False
    return True


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
    largest = other.abs().nan_to_num(0, 0, 0).max() if other.numel() else 0.0
    small = 1e-5 * max(1.0, float(largest))
    return one.shape == other.shape and bool(
        torch.allclose(one, other, rtol=1e-3, atol=small, equal_nan=True)
    )


def _own_rules() -> bool:
    """Whether anybody has defined a function of torch with a rule for batches of its own."""
    return any(
        "vmap" in vars(kind) and not kind.__module__.startswith("torch.")
        for kind in _below(torch.autograd.Function)
    )


def _below(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
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
        if torch.Tag.nondeterministic_seeded in func.tags:
            given = [*args, *(kwargs or {}).values()]
            self.generators += [one for one in given if isinstance(one, torch.Generator)]
            several = made if isinstance(made, tuple | list) else [made]
            self.found += [one.detach().clone() for one in several if isinstance(one, torch.Tensor)]
        return made


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

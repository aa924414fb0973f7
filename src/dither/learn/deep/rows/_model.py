"""What a model must be: it has parameters to train, and treats each row by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.utils._python_dispatch import TorchDispatchMode

from dither.errors import ArgumentError
from dither.learn.deep.state._draws import Sources
from dither.learn.deep.state._state import WatchedObjects, quiet
from dither.numeric import KeyedWords

__all__ = [
    "Precision",
    "check_loss_alone",
    "check_model",
    "check_rows_alone",
    "computed_in",
    "evaluating",
    "keeps",
    "made_up_rows",
    "modes_of",
    "trainable",
    "unusual_rows",
]


Run = Callable[..., Any]
"""From a batch of made-up rows, and a seed, to what the model gives."""


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are trained, by name: those with ``requires_grad``.

    Raises
    ------
    ArgumentError
        There are none, or one is not of real numbers.
    """
    if not isinstance(model, nn.Module):
        raise ArgumentError("model must be a torch.nn.Module")
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise ArgumentError(
            "model must have parameters to train; it has none with requires_grad=True"
        )
    for name, parameter in found.items():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise ArgumentError(
                f"parameter {name!r} has no shape yet, as in lazy layers: run the model once, "
                "on made-up rows of the shape of yours"
            )
        if parameter.dtype != torch.float32:
            raise ArgumentError(
                f"parameter {name!r} must be of float32: call model.float(); to compute in "
                "bfloat16 let forward do so, with torch.autocast"
            )
    if len({parameter.device for parameter in found.values()}) > 1:
        raise ArgumentError("model must be on one device: call model.to(device)")
    return found


def check_model(model: nn.Module) -> None:
    """Refuse layers that are known to mix the rows of a batch, naming what to take instead.

    Raises
    ------
    ArgumentError
        There is one. A layer of batch normalisation in ``eval`` mode uses fixed numbers, and may
        stay.
    """
    for name, layer in model.named_modules():
        kind = type(layer).__name__
        where = f"layer {name!r} ({kind})" if name else kind
        if isinstance(layer, _BatchNorm) and (layer.training or not layer.track_running_stats):
            width = layer.num_features
            raise ArgumentError(
                f"{where} mixes the rows of a batch, so that no row has a gradient of its own: "
                f"replace it by torch.nn.GroupNorm({_groups(width)}, {width}), or by "
                "torch.nn.Identity(); one that was trained on public data may stay in eval mode"
            )
        if isinstance(layer, _InstanceNorm) and layer.training and layer.track_running_stats:
            raise ArgumentError(
                f"{where} keeps averages of the rows, without noise: use track_running_stats=False"
            )
        if isinstance(layer, nn.RNNBase) and not layer.batch_first:
            raise ArgumentError(f"{where} takes rows in its second dimension: use batch_first=True")
        if isinstance(layer, nn.MultiheadAttention) and not layer.batch_first:
            raise ArgumentError(f"{where} takes rows in its second dimension: use batch_first=True")
        parametrized = getattr(layer, "parametrizations", None) or {}
        own = [type(one).__name__ for parts in parametrized.values() for one in parts]
        if layer.training:
            # The older one does so in training alone.
            own += [f"_{type(hook).__name__}" for hook in layer._forward_pre_hooks.values()]
        if "_SpectralNorm" in own:
            raise ArgumentError(
                f"{where} keeps what it saw of its weights between steps (spectral_norm): remove it"
            )


def _groups(width: int) -> int:
    return next(groups for groups in (32, 16, 8, 4, 2, 1) if width % groups == 0)


class _NoTensor(Exception):
    """A model gives something else; its name."""


def check_rows_alone(model: nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """Run the model on made-up rows, and see that none changes what another gives, nor how many.

    Parameters
    ----------
    rows : Tensor
        Its shape, type and device are those of the made-up rows; its values are not read.

    Returns
    -------
    Tensor, shape (2, ...)
        What the model gives for two of them.

    Raises
    ------
    ArgumentError
        The model fails on them, a row's output depends on other rows or on their number, or
        running the model changes what it can reach. It is then as it was.
    """
    one, two, three = (_made_up(rows, seed) for seed in range(3))
    begun, watched = WatchedObjects(model=model), WatchedObjects(model=model)
    begun.remember()
    sources = Sources(rows.device, begun.generators, everywhere=True)

    def run(batch: tuple[torch.Tensor, ...], seed: int = 0) -> Any:
        return _run(model, batch, seed, sources)

    try:
        with torch.no_grad(), quiet():
            # What is made once, when it is first needed, is made now; numbers stay as they are.
            with Precision() as precision:
                alone = run((one,))
            if not isinstance(alone, torch.Tensor):
                raise _NoTensor(type(alone).__name__)
            loose = precision.half
            numbers = begun.changed(numbers=True)
            begun.restore(numbers=True)
            watched.remember()
            found = [run(pair) for pair in ((one, two), (one, three), (two, one))]
            found.append(run((three, one)))
            sizes = _of_sizes(model, run, ((one, two), (one,), (one, two, three, two)))
            far = _far_apart(model, run, rows, loose=loose)
    except _NoTensor as other:
        begun.restore()
        raise ArgumentError(
            f"model must give a tensor with one output for each row, not a {other}: wrap it in a "
            "module whose forward gives, say, the logits of what it gives"
        ) from None
    except Exception as error:
        begun.restore()
        raise ArgumentError(
            f"model fails on rows of the shape {tuple(rows.shape[1:])} and type {rows.dtype}: "
            f"{type(error).__name__}: {error}"
        ) from error
    changed = numbers or watched.changed()
    if changed:
        begun.restore()
        raise ArgumentError(keeps(changed))
    if found[0].ndim == 0 or found[0].shape[0] != 2:
        raise ArgumentError("model must give one output for each row, in its first dimension")
    for first, second, row in ((found[0], found[1], 0), (found[2], found[3], 1)):
        if not _alike(first[row], second[row], loose=loose):
            raise ArgumentError(
                "model mixes the rows of a batch: what it gives for one depends on another. "
                "Use layers that treat each row by itself"
            )
    if any(other.shape[1:] != sizes[0].shape[1:] for other in (alone, *sizes)):
        raise ArgumentError(
            "model gives another shape for one row than for several, and rows are run one by one: "
            "let it keep its first dimension, as in squeeze(-1) or flatten(1)"
        )
    if not all(other.ndim and _alike(sizes[0][:1], other[:1], loose=loose) for other in sizes):
        raise ArgumentError(
            "model mixes the rows of a batch: what it gives for one depends on how many there are. "
            "Use layers that treat each row by itself"
        )
    if not far:
        raise ArgumentError(
            "model mixes the rows of a batch: of rows that are far apart, or unequally long, what "
            "it gives for one depends on others. Use layers that treat each row by itself"
        )
    return found[0]


def keeps(names: list[str]) -> str:
    """What is said of a model that keeps what it saw.

    Parameters
    ----------
    names : list of str
        Of what was changed.
    """
    own = next((name for name in names if name.startswith("model.")), names[0])
    own = ".".join(p for p in own.split(".") if p not in ("_buffers", "_modules", "_parameters"))
    return (
        f"running the model changes {own}, which would keep what it saw of the rows, without "
        "noise: let forward write nothing down, replace that layer, or put it into eval mode"
    )


def _far_apart(model: nn.Module, run: Run, rows: torch.Tensor, *, loose: bool) -> bool:
    """Whether rows of any size and length give what they give by themselves.

    True, too, where the model takes no such rows, or draws by chance.
    """
    given = tuple(unusual_rows(rows))
    try:
        if _steady(run, given):
            found = [run(batch) for batch in (given, *zip(given, strict=True))]
        else:
            with _drawing_nothing(model):
                if not _steady(run, given):
                    return True
                found = [run(batch) for batch in (given, *zip(given, strict=True))]
    except Exception:
        return True
    return all(_alike(found[0][i : i + 1], one, loose=loose) for i, one in enumerate(found[1:]))


def check_loss_alone(
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    model: nn.Module,
    rows: torch.Tensor,
    targets: torch.Tensor,
) -> bool:
    """See on made-up rows that the loss of a row depends neither on others nor on their number.

    Outputs are made up, and where the loss is of no such ones, they are the model's own of made-up
    rows; targets are numbers of 0 to 1, and where those are none, 0 and 1.

    Parameters
    ----------
    loss : callable
        From outputs and targets to one number for each row.
    model : torch.nn.Module
    rows, targets : Tensor
        Shapes and types of what is made up; no value is read.

    Returns
    -------
    bool
        Whether it was seen; False where the loss fails on all that was made up.

    Raises
    ------
    ArgumentError
        The loss of a row, or its gradient, depends on another row or on how many there are.
    """
    own = [_made_up(rows, seed) for seed in range(3)]
    with torch.no_grad():
        given = _run(model, tuple(own))
    outputs = [torch.stack([_made_up(given, seed) for seed in range(3)]), given]
    wanted = [torch.stack([_made_up(targets, seed) for seed in range(3)])]
    if targets.dtype.is_floating_point:
        wanted.append(torch.stack([_made_up(targets.long(), s).to(targets) for s in range(3)]))
    for out, to in itertools.product(outputs, wanted):
        found = _losses(loss, out, to)
        if found is None:
            continue
        for each, slopes in found[1:]:
            if not (_alike(each, found[0][0]) and _alike(slopes, found[0][1])):
                raise ArgumentError(
                    "loss mixes the rows of a batch: what it gives for one depends on the others, "
                    "or on how many there are. In torch take reduction='none', and divide by "
                    "nothing"
                )
        return True
    return False


def _losses(
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    outputs: torch.Tensor,
    targets: torch.Tensor,
) -> list[tuple[torch.Tensor, torch.Tensor]] | None:
    """What one row of three gives, and its gradient, beside others; None where the loss fails."""
    found = []
    try:
        for places, own in (([0, 1], 0), ([0, 2], 0), ([1, 0], 1), ([0], 0), ([0, 1, 2, 1], 0)):
            out = outputs[places].detach().requires_grad_()
            each = loss(out, targets[places])
            (slopes,) = torch.autograd.grad(each.sum(), out)
            found.append((each.detach()[own], slopes[own]))
    except Exception:
        return None
    return found


def modes_of(model: nn.Module) -> tuple[bool, ...]:
    """Which of its parts are in training mode."""
    return tuple(layer.training for layer in model.modules())


@contextmanager
def _drawing_nothing(model: nn.Module) -> Iterator[None]:
    """In eval mode, but as in training: without what torch's encoders do for a whole batch there.

    They leave out what all of its rows have as padding, so that shapes follow from the longest row.
    """
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with evaluating(model):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """All parts in eval mode; afterwards each is in its own again."""
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for layer, mode in modes:
            layer.training = mode


def computed_in(device: torch.device) -> tuple[bool, torch.dtype | None]:
    """Whether autocast is on about a model, and to which type."""
    if not torch.amp.is_autocast_available(device.type):
        return False, None
    on = bool(torch.is_autocast_enabled(device.type))
    return on, torch.get_autocast_dtype(device.type) if on else None


class Precision(TorchDispatchMode):  # type: ignore[misc]
    """Whether anything is computed in half precision while it is on, as under autocast."""

    half = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        several = made if isinstance(made, tuple | list) else [made]
        self.half |= any(
            isinstance(one, torch.Tensor) and one.is_floating_point() and one.element_size() < 4
            for one in several
        )
        return made


def _alike(one: torch.Tensor, other: torch.Tensor, *, loose: bool = False) -> bool:
    """Whether they are equal but for rounding, in half precision if ``loose``."""
    if one.shape != other.shape:
        return False
    share, small = (0.05, 0.05) if loose or one.element_size() < 4 else (1e-3, 1e-5)
    largest = float(one.detach().double().abs().nan_to_num(0, 0, 0).max()) if one.numel() else 0.0
    return bool(
        torch.allclose(
            one.double(), other.double(), rtol=share, atol=small * max(1, largest), equal_nan=True
        )
    )


def _of_sizes(model: nn.Module, run: Run, batches: tuple[tuple[torch.Tensor, ...], ...]) -> Any:
    """What the model gives for batches of different sizes, without what it draws by chance.

    Of a model that draws in eval mode, too, nothing is compared.
    """
    if _steady(run, batches[0]):
        return [run(batch) for batch in batches]
    with _drawing_nothing(model):
        if _steady(run, batches[0]):
            return [run(batch) for batch in batches]
    return [run(batches[0])]


def _steady(run: Run, batch: tuple[torch.Tensor, ...]) -> bool:
    return bool(torch.equal(run(batch), run(batch, 1)))


def made_up_rows(rows: torch.Tensor) -> torch.Tensor:
    """Two rows that differ, of the shape, type and device of these."""
    return torch.stack([_made_up(rows, seed) for seed in range(2)])


def unusual_rows(rows: torch.Tensor) -> torch.Tensor:
    """Four rows of unequal length, with zeros behind, of the shape, type and device of these.

    Real numbers are up to about 3,000, far from what rows usually hold.
    """
    made = []
    for seed, share in ((11, 1.0), (12, 0.25), (13, 0.6), (14, 0.4)):
        row = _made_up(rows, seed)
        if row.dtype.is_floating_point:
            generator = torch.Generator().manual_seed(seed)
            row = (1e3 * torch.randn(row.shape, generator=generator)).to(row)
        if row.ndim:
            row[max(1, round(share * len(row))) :] = 0
        made.append(row)
    return torch.stack(made)


def _made_up(rows: torch.Tensor, seed: int) -> torch.Tensor:
    shape = rows.shape[1:]
    if not rows.dtype.is_floating_point:
        # 0 and 1 are values that any embedding has, as good as; both, for 0 may stand for the end.
        count = max(1, shape.numel())
        bits = torch.arange(count) + torch.arange(count) // (2 + seed) + 1 + seed
        return (bits % 2).to(rows.dtype).reshape(shape).to(rows.device)
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator).to(rows)


def _run(
    model: nn.Module, batch: tuple[torch.Tensor, ...], seed: int = 0, sources: Sources | None = None
) -> Any:
    known = KeyedWords(bytes(32), "made up", seed)
    with (sources or Sources(batch[0].device)).seeded(known):
        return model(torch.stack(batch))

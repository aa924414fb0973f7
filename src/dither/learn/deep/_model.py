"""What a model must be: it has parameters to train, and treats each row by itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from dither.errors import ArgumentError

__all__ = ["check_model", "check_rows_alone", "trainable"]


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
        if parameter.dtype != torch.float32:
            raise ArgumentError(f"parameter {name!r} must be of float32: call model.float()")
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
        if getattr(layer, "parametrizations", None) is not None and any(
            type(one).__name__ == "_SpectralNorm"
            for parts in layer.parametrizations.values()
            for one in parts
        ):
            raise ArgumentError(
                f"{where} keeps what it saw of its weights between steps (spectral_norm): remove it"
            )


def _groups(width: int) -> int:
    return next(groups for groups in (32, 16, 8, 4, 2, 1) if width % groups == 0)


def check_rows_alone(model: nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """Run the model on made-up rows, and see that none changes what another gives.

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
        The model fails on them, a row's output depends on the other row, or running the model
        changes its buffers.
    """
    one, two, three = (_made_up(rows, seed) for seed in range(3))
    before = [buffer.clone() for buffer in model.buffers()]
    try:
        with torch.no_grad():
            found = [_run(model, pair) for pair in ((one, two), (one, three), (two, one))]
            found.append(_run(model, (three, one)))
    except Exception as error:
        raise ArgumentError(
            f"model fails on rows of the shape {tuple(rows.shape[1:])} and type {rows.dtype}: "
            f"{type(error).__name__}: {error}"
        ) from error
    changed = False
    for buffer, old in zip(model.buffers(), before, strict=True):
        if not torch.equal(buffer, old):
            changed = True
            buffer.copy_(old)
    if changed:
        raise ArgumentError(
            "model changes its buffers when it runs, and so keeps what it saw without noise: "
            "replace that layer, or put it into eval mode"
        )
    if found[0].ndim == 0 or found[0].shape[0] != 2:
        raise ArgumentError("model must give one output for each row, in its first dimension")
    for first, second, row in ((found[0], found[1], 0), (found[2], found[3], 1)):
        if not torch.allclose(first[row], second[row], rtol=1e-3, atol=1e-5, equal_nan=True):
            raise ArgumentError(
                "model mixes the rows of a batch: what it gives for one depends on another. "
                "Use layers that treat each row by itself"
            )
    return found[0]


def _made_up(rows: torch.Tensor, seed: int) -> torch.Tensor:
    shape = rows.shape[1:]
    if not rows.dtype.is_floating_point:
        # 0 and 1 are values that any embedding has, as good as.
        count = max(1, shape.numel())
        bits = torch.arange(count) + torch.arange(count) // (1 + seed) + seed
        return (bits % 2).to(rows.dtype).reshape(shape).to(rows.device)
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator).to(rows)


def _run(model: nn.Module, pair: tuple[torch.Tensor, torch.Tensor]) -> Any:
    devices = [pair[0].device] if pair[0].device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(0)
        return model(torch.stack(pair))

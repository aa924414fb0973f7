"""The rows to train on, as two tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dither._columns import array_of, is_masked
from dither.errors import ArgumentError

__all__ = ["as_pair"]


def as_pair(data: Any, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets, on a device; numbers are float32 and labels int64.

    Parameters
    ----------
    data : pair of (array, tensor, data frame or list)
        ``(X, y)``, equally long in their first dimension.

    Raises
    ------
    ArgumentError
        It is not such a pair, or an array has a mask. What the values are is not looked at.
    """
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ArgumentError("data must be a pair (X, y) of arrays or tensors")
    X, y = _tensor("X", data[0], device), _tensor("y", data[1], device)
    if X.ndim == 0 or y.ndim == 0 or len(X) != len(y):
        raise ArgumentError("X and y must have one row for each example, equally many")
    return X, y


def _tensor(name: str, values: Any, device: torch.device) -> torch.Tensor:
    if is_masked(values):
        raise ArgumentError(
            f"{name} must be a plain array: what lies under a mask would be trained on; leave "
            "masked rows out, or fill them"
        )
    if isinstance(values, torch.Tensor):
        found = values.detach()
    else:
        try:
            found = torch.from_numpy(np.array(_numbers(values)))
        except (TypeError, ValueError):
            raise ArgumentError(
                f"{name} must be an array or tensor of numbers; number categories beforehand"
            ) from None
    if found.is_complex():
        raise ArgumentError(f"{name} must hold real numbers")
    kind = torch.float32 if found.dtype.is_floating_point else torch.int64
    return found.to(device=device, dtype=kind)


def _numbers(values: Any) -> npt.NDArray[Any]:
    array = array_of(values)
    if array.dtype.kind == "O" and isinstance(values, list | tuple):
        array = np.asarray(values)  # rows of equally many numbers
    if array.dtype.kind not in "fiub":
        raise TypeError
    return array

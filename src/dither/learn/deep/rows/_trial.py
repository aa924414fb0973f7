"""A step on rows that are made up, before anything is charged.

What a run costs is spent before its first step. So that it is not spent on a model that cannot be
trained as it is, one whole step is tried first: rows of the real shapes and types forwards and
backwards, clipped and added up; a step of a copy of the optimiser along gradients of 0; and what is
measured of rows to watch. What fails there fails for its shapes, types or arguments, and would have
failed on every row. What is left to fail later is what some row's values lead to, a callback or an
optimiser of the caller's own, or the machine.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from dither.errors import ArgumentError, EngineError
from dither.learn.deep.rows._sums import ClippedSums

__all__ = ["check_optimizer", "try_optimizer", "try_sums"]

_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")


def check_optimizer(optimizer: Any, parameters: list[nn.Parameter]) -> None:
    """Refuse what does not step along the gradients of these parameters, once.

    Raises
    ------
    ArgumentError
        It is no optimiser of torch, holds others, or none, or looks at gradients again.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ArgumentError(
            "optimizer must be one of torch, such as torch.optim.SGD(model.parameters(), lr=0.1)"
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ArgumentError("optimizer must not look at gradients again, as LBFGS does: take SGD")
    known = {id(parameter) for parameter in parameters}
    held = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if not held or any(id(p) not in known for p in held):
        raise ArgumentError("optimizer must hold parameters of the model, and no others")


def try_sums(sums: ClippedSums, x: torch.Tensor, y: torch.Tensor, physical: int) -> None:
    """Add the clipped gradients of made-up rows, together and one by one, and forget them.

    Raises
    ------
    ArgumentError
        It fails.
    """
    try:
        for most in {1, min(physical, len(x))}:
            sums.start()
            for rows, wanted in zip(x.split(most), y.split(most), strict=True):
                _add(sums, rows, wanted)
    finally:
        sums.start()


def _add(sums: ClippedSums, x: torch.Tensor, y: torch.Tensor) -> None:
    try:
        sums.add(x, y)
    except EngineError:
        # On made-up rows, what it was may be said.
        try:
            sums.engine.parts(x, y)
        except Exception as error:
            raise ArgumentError(
                f"model or loss fails on {len(x)} made-up rows: {type(error).__name__}: {error}"
            ) from error
        raise


def try_optimizer(optimizer: torch.optim.Optimizer, sums: ClippedSums) -> None:
    """Let a copy of the optimiser step along gradients of 0, with copies of the parameters.

    One of somebody's own is not tried: what else it does in a step is not known.

    Raises
    ------
    ArgumentError
        It fails.
    """
    if not type(optimizer).__module__.startswith(("torch.optim.", "dither.")):
        return
    known = {id(p) for p in sums.engine.parameters.values()}
    held = [p for group in optimizer.param_groups for p in group["params"] if id(p) in known]
    memory: dict[int, Any] = {}
    # A scheduler has put its own step of the original there; hooks are the caller's.
    own = {k: v for k, v in vars(optimizer).items() if k != "step" and k not in _HOOKS}
    twin = object.__new__(type(optimizer))
    vars(twin).update(copy.deepcopy(own, memory))
    vars(twin).update({name: OrderedDict() for name in _HOOKS})
    for parameter in [copy.deepcopy(p, memory) for p in held]:
        parameter.grad = torch.zeros_like(parameter)
    try:
        type(optimizer).step(twin)
    except Exception as error:
        raise ArgumentError(
            "optimizer cannot step by itself along gradients of these parameters: "
            f"{type(error).__name__}: {error}"
        ) from error

"""Calling a mechanism many times on two datasets in turn; an exception is an outcome too."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.auditing.flattening import raised
from dither.errors import ArgumentError

__all__ = ["Draws", "draw_both", "is_vectorised", "joined"]

Outputs = Sequence[Any] | npt.NDArray[Any]
Progress = Callable[[int, int], None]

_CALLS = 500
"""Single calls on one dataset before the other has its turn."""

_BATCHES = 8
_LONGEST = 10_000
"""Items of a generator that are read."""

_TWICE = 256


@dataclass(frozen=True, slots=True)
class Draws:
    """As many outcomes of each dataset, in the order of the calls.

    ``again`` are the outcomes of two equal calls of a vectorised sampler, if there was one;
    ``stopped`` says that time or the user ended it early.
    """

    here: Outputs
    there: Outputs
    again: tuple[Outputs, Outputs] | None = None
    stopped: bool = False


def is_vectorised(mechanism: Callable[..., Any], told: bool | None) -> bool:
    """Whether a mechanism takes (data, size): as told, or if its second argument is ``size``."""
    if told is not None:
        return told
    try:
        names = list(inspect.signature(mechanism).parameters)
    except (TypeError, ValueError):
        return False
    return len(names) == 2 and names[1] == "size"


def draw_both(
    mechanism: Callable[..., Any],
    d0: Any,
    d1: Any,
    samples: int,
    *,
    vectorised: bool,
    time_limit: float | None,
    progress: Progress | None = None,
) -> Draws:
    """Draw outcomes of both datasets, a stretch of each in turn.

    Where time runs out or the user interrupts, what was drawn so far is returned.
    """
    until = None if time_limit is None else time.monotonic() + time_limit
    step = max(1, -(-samples // _BATCHES)) if vectorised else _CALLS
    found: tuple[list[Any], list[Any]] = ([], [])
    again = None
    stopped = False
    try:
        if vectorised:
            size = min(_TWICE, samples)
            again = (_batch(mechanism, d0, size), _batch(mechanism, d0, size))
        done = 0
        while done < samples:
            size = min(step, samples - done)
            pair = [
                _batch(mechanism, data, size) if vectorised else _calls(mechanism, data, size)
                for data in (d0, d1)
            ]
            for kept, new in zip(found, pair, strict=True):
                kept.append(new)
            done += size
            if progress is not None:
                progress(done, samples)
            if until is not None and time.monotonic() > until and done < samples:
                stopped = True
                break
    except KeyboardInterrupt:
        if not found[1]:
            raise
        stopped = True
    whole = min(len(found[0]), len(found[1]))
    here, there = (joined(parts[:whole]) for parts in found)
    return Draws(here, there, again, stopped)


def _calls(mechanism: Callable[[Any], Any], data: Any, size: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(size):
        try:
            found.append(_read(mechanism(data)))
        except Exception as error:  # failing may depend on the data, so it is part of what is seen
            found.append(raised(error))
    return found


def _read(output: Any) -> Any:
    """An output, with what a generator gives in its place: it can be read only once, now."""
    return tuple(islice(output, _LONGEST)) if isinstance(output, Iterator) else output


def _batch(mechanism: Callable[[Any, int], Any], data: Any, size: int) -> Outputs:
    try:
        batch = mechanism(data, size)
    except Exception as error:
        raise ArgumentError(
            f"mechanism failed as a vectorised sampler ({type(error).__name__}); pass one of a "
            "single output, of which failing is an outcome, or check its arguments (data, size)"
        ) from error
    if isinstance(batch, np.ma.MaskedArray):
        batch = batch.tolist()  # what is masked is None, and not what lies below
    outputs: Outputs = batch if isinstance(batch, np.ndarray) else _listed(batch)
    if len(outputs) != size:
        raise ArgumentError(
            f"mechanism must return size outputs for each call; {size:,} were asked of it and "
            f"{len(outputs):,} came"
        )
    return outputs


def _listed(batch: Any) -> list[Any]:
    try:
        return [_read(output) for output in batch]
    except TypeError:
        raise ArgumentError(
            "mechanism must return an array or a list of size outputs, as it is vectorised"
        ) from None


def joined(parts: Sequence[Outputs]) -> Outputs:
    """Stretches of outcomes one after the other, as one array where they are arrays alike."""
    arrays = [p for p in parts if isinstance(p, np.ndarray)]
    alike = len({(a.dtype, a.shape[1:]) for a in arrays}) == 1
    if len(arrays) == len(parts) and alike:
        return np.concatenate(arrays)
    out: list[Any] = []
    for part in parts:
        out += list(part)
    return out

"""Where data meets noise: exact integers in, noisy integers out, and nothing exact goes further."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.mechanisms import AdditiveNoise
from dither.plan.job import Answer, Leaves
from dither.plan.kinds import Value
from dither.query.pricing import Priced

__all__ = ["Noisy", "add_noise", "no_groups"]

KeyTuple = tuple[Value | float | None, ...]


@dataclass(frozen=True, slots=True)
class Noisy:
    """Noisy measurements of every released group.

    Parameters
    ----------
    keys : list of tuple
        The groups: all public ones in declared order, or the discovered ones in order of value.
    values : dict of int to array
        By measurement: noisy integers, shape (groups,). For ``Leaves``: a noisy tree, as
        ``mechanisms.quantile_tree`` gives it.
    """

    keys: list[KeyTuple]
    values: dict[int, Any]


def add_noise(priced: Priced, answer: Answer) -> Noisy:
    """Add each measurement's noise to its exact integers, over all public or all found groups."""
    plan = priced.plan
    if plan.discovered:
        keys = list(answer.keys)
        exact = dict(answer.values)
    else:
        lists = [key.values or () for key in plan.job.keys]
        keys = list(product(*lists))
        exact = _on_grid(keys, answer, plan.job.measurements)
    noisy: dict[int, Any] = {}
    if plan.discovered:
        assert priced.allocation is not None
        assert priced.allocation.keys is not None
        counts = _noised(exact[priced.units], priced.noises[priced.units])
        kept = np.flatnonzero(priced.allocation.keys.shown(counts))
        kept = np.array(sorted(kept, key=lambda i: _rank(keys[i])), dtype=np.int64)
        keys = [keys[i] for i in kept]
        exact = {i: values[kept] for i, values in exact.items()}
        noisy[priced.units] = counts[kept]
    for i, measurement in enumerate(plan.job.measurements):
        if i in noisy:
            continue
        if isinstance(measurement, Leaves):
            noise = priced.noises[i]
            assert noise is not None
            noisy[i] = priced.trees[i].measure(exact[i].astype(np.int64), noise)
        else:
            noisy[i] = _noised(exact[i], priced.noises[i])
    return Noisy(keys, noisy)


def no_groups(priced: Priced) -> Noisy:
    """What ``add_noise`` gives where there is no group at all; nothing is drawn."""
    values: dict[int, Any] = {}
    for i, measurement in enumerate(priced.plan.job.measurements):
        nothing = np.zeros((0,), dtype=np.int64)
        if isinstance(measurement, Leaves):
            noise = priced.noises[i]
            assert noise is not None
            nothing = np.zeros((0, measurement.bins), dtype=np.int64)
            values[i] = priced.trees[i].measure(nothing, noise)
        else:
            values[i] = nothing
    return Noisy([], values)


def _on_grid(
    keys: list[KeyTuple], answer: Answer, measurements: tuple[Any, ...]
) -> dict[int, npt.NDArray[Any]]:
    """Every public key a row, in declared order, with zeros where no unit has a row."""
    place = {key: i for i, key in enumerate(keys)}
    found = [(place[key], j) for j, key in enumerate(answer.keys) if key in place]
    to = np.array([i for i, _ in found], dtype=np.int64)
    of = np.array([j for _, j in found], dtype=np.int64)
    grid: dict[int, npt.NDArray[Any]] = {}
    for i, measurement in enumerate(measurements):
        values = answer.values[i]
        shape = (len(keys), measurement.bins) if isinstance(measurement, Leaves) else (len(keys),)
        grid[i] = np.zeros(shape, dtype=values.dtype)
        grid[i][to] = values[of]
    return grid


def _noised(exact: npt.NDArray[Any], noise: AdditiveNoise | None) -> npt.NDArray[Any]:
    """Exact integers plus fresh noise; a public measurement has none."""
    if noise is None:
        return exact
    drawn = noise.draw(exact.shape)
    # An int64 sum could only wrap where the engine has not proven a bound; it hands objects then.
    return np.asarray(exact + (drawn.astype(object) if exact.dtype == object else drawn))


def _rank(key: KeyTuple) -> tuple[tuple[bool, Any], ...]:
    """Order keys by value, NULL last, so that the engine's order of rows is not shown."""
    return tuple((part is None, 0 if part is None else part) for part in key)

"""Where data meets noise: exact integers in, noisy integers out, and nothing exact goes further."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.mechanisms import AdditiveNoise
from dither.mechanisms.refined_quantiles import Opened
from dither.plan.job import Answer, Histogram, Leaves
from dither.plan.kinds import Value
from dither.plan.recipes import QuantileRecipe
from dither.query.estimates import refined
from dither.query.pricing import Priced, quantiles_of

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
        ``mechanisms.quantile_tree`` gives it, or what was read below, as
        ``mechanisms.refined_quantiles`` does.
    """

    keys: list[KeyTuple]
    values: dict[int, Any]


def add_noise(priced: Priced, answer: Answer, confidence: float) -> Noisy:
    """Add each measurement's noise to its exact integers, over all public or all found groups.

    ``confidence`` is that of the intervals to come: it says where a wide range is read closely.
    """
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
    return Noisy(keys, _measured(priced, exact, noisy, confidence))


def _measured(
    priced: Priced, exact: dict[int, Any], noisy: dict[int, Any], confidence: float
) -> dict[int, Any]:
    """Each measurement with its noise, beside those that have theirs already."""
    # A histogram that is read in stretches comes after the one that says which.
    last = {r.below for r in priced.plan.recipes if isinstance(r, QuantileRecipe)}
    for i, measurement in sorted(
        enumerate(priced.plan.job.measurements), key=lambda m: m[0] in last
    ):
        if i in noisy:
            continue
        if i in last:
            noisy[i] = _opened(i, priced, noisy, exact[i], confidence)
        elif isinstance(measurement, Leaves):
            noise = priced.noises[i]
            assert noise is not None
            noisy[i] = priced.trees[i].measure(exact[i].dense(), noise)
        else:
            noisy[i] = _noised(exact[i], priced.noises[i])
    return noisy


def no_groups(priced: Priced, confidence: float) -> Noisy:
    """What ``add_noise`` gives where there is no group at all; nothing is drawn."""
    nothing = np.zeros((0,), dtype=np.int64)
    exact: dict[int, Any] = {
        i: Histogram(0, m.bins, nothing, nothing) if isinstance(m, Leaves) else nothing
        for i, m in enumerate(priced.plan.job.measurements)
    }
    return Noisy([], _measured(priced, exact, {}, confidence))


def _opened(
    place: int, priced: Priced, noisy: dict[int, Any], exact: Histogram, confidence: float
) -> Opened:
    recipes = quantiles_of(priced.plan, place)
    top, layout, noises = refined(recipes[0], priced)
    qs = [float(r.q) for r in recipes]
    return layout.measure(noisy[top], exact.stretches, qs, noises, confidence, recipes[0].parts)


def _on_grid(keys: list[KeyTuple], answer: Answer, measurements: tuple[Any, ...]) -> dict[int, Any]:
    """Every public key a row, in declared order, with zeros where no unit has a row."""
    place = {key: i for i, key in enumerate(keys)}
    found = [(place[key], j) for j, key in enumerate(answer.keys) if key in place]
    to = np.array([i for i, _ in found], dtype=np.int64)
    of = np.array([j for _, j in found], dtype=np.int64)
    grid: dict[int, Any] = {}
    for i, measurement in enumerate(measurements):
        values = answer.values[i]
        if isinstance(measurement, Leaves):
            moves = np.full(len(answer.keys), -1, dtype=np.int64)
            moves[of] = to
            grid[i] = values.moved(moves, len(keys))
            continue
        grid[i] = np.zeros(len(keys), dtype=values.dtype)
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

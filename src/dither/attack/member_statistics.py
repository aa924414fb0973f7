"""Membership in a released statistic: the strong adversary, who knows everybody but the target.

Shadow releases with and without the target are fitted by a Gaussian each, of one covariance; fresh
releases are scored by the likelihood ratio of the two (LiRA). Where the noise is Gaussian this is
the best test there is, by Neyman and Pearson, so it must meet the trade-off curve of the release
and may not pass it.

The *loss* attack knows less: it scores by how near the release lies to the target.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

__all__ = ["Played", "play_statistic"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Played = tuple[Floats, Mask, Mask]
"""Scores, who is a member, and who is guessed to be one."""


def play_statistic(
    statistic: Callable[..., Any],
    data: Floats,
    target: int,
    method: str,
    plays: int,
    generator: np.random.Generator,
) -> tuple[Played, Played, Played]:
    """Score fresh releases: of the statistic, of an exact mean, and of strangers' bits.

    Parameters
    ----------
    statistic : callable
        ``statistic(rows)``, or ``statistic(rows, size)`` for many at once.
    data : array, shape (rows, columns)
    target : int
        The row that is in or out.
    method : {"lira", "loss"}
    plays : int
        Fresh releases, each with the target in or out by a fair coin; and as many shadows of each.
    generator : numpy.random.Generator

    Returns
    -------
    (Played, Played, Played)
    """
    without = np.delete(data, target, axis=0)
    draw = _drawer(statistic)
    score = _scorer(method, data[target], draw(data, plays), draw(without, plays))
    member = generator.random(plays) < 0.5
    outputs = _mixed(draw, data, without, member)
    scores, guesses = score(outputs)
    stranger = generator.random(plays) < 0.5

    def exact(rows: Floats, size: int) -> Floats:
        return np.repeat(rows.mean(axis=0)[None, :], size, axis=0)

    bare = _scorer(method, data[target], exact(data, 8), exact(without, 8))
    found, told = bare(_mixed(exact, data, without, member))
    return (scores, member, guesses), (found, member, told), (scores, stranger, guesses)


Draw = Callable[[Floats, int], Floats]
Scorer = Callable[[Floats], tuple[Floats, Mask]]


def _drawer(statistic: Callable[..., Any]) -> Draw:
    """Many outputs as rows of numbers."""
    try:
        second = list(inspect.signature(statistic).parameters)[1:2]
    except (TypeError, ValueError):
        second = []
    many = second == ["size"]

    def draw(rows: Floats, size: int) -> Floats:
        made = statistic(rows, size) if many else [statistic(rows) for _ in range(size)]
        try:
            found = np.asarray(made, dtype=np.float64).reshape(size, -1)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                "model_or_statistic must return a number or a vector of numbers"
                + (", one a draw, where it takes size" if many else "")
            ) from error
        if not np.isfinite(found).all():
            raise ArgumentError("model_or_statistic must return finite numbers")
        return found

    return draw


def _mixed(draw: Draw, data: Floats, without: Floats, member: Mask) -> Floats:
    inside, outside = int(member.sum()), int((~member).sum())
    one = draw(data, inside) if inside else np.empty((0, 0))
    two = draw(without, outside) if outside else np.empty((0, 0))
    found = np.empty((len(member), max(one.shape[1], two.shape[1])))
    if inside:
        found[member] = one
    if outside:
        found[~member] = two
    return found


def _scorer(method: str, target: Floats, inside: Floats, outside: Floats) -> Scorer:
    if method == "loss":
        if inside.shape[1] != len(target):
            raise ArgumentError(
                'method "loss" needs a statistic with as many numbers as a row; use "lira"'
            )
        level = -(_distance(inside, target).mean() + _distance(outside, target).mean()) / 2.0

        def by_loss(outputs: Floats) -> tuple[Floats, Mask]:
            near = -_distance(outputs, target)
            return near, near > level

        return by_loss
    centre = (inside.mean(axis=0) + outside.mean(axis=0)) / 2.0
    apart = inside.mean(axis=0) - outside.mean(axis=0)
    residuals = np.concatenate([inside - inside.mean(axis=0), outside - outside.mean(axis=0)])
    if residuals.shape[1] * 20 <= len(residuals):
        covariance = residuals.T @ residuals / len(residuals)
    else:
        covariance = np.diag((residuals**2).mean(axis=0))
    # An exact statistic has no spread; then any direction that differs tells all.
    floor = max(1e-12 * float(np.trace(covariance)), 1e-18 * float(apart @ apart), 1e-300)
    weights = np.linalg.solve(covariance + floor * np.eye(len(apart)), apart)

    def by_ratio(outputs: Floats) -> tuple[Floats, Mask]:
        ratio = (outputs - centre) @ weights
        return ratio, ratio > 0.0

    return by_ratio


def _distance(outputs: Floats, target: Floats) -> Floats:
    found: Floats = ((outputs - target) ** 2).sum(axis=1)
    return found

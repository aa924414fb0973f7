"""Membership in a released statistic: the strong adversary, who knows everybody but the target.

Shadow releases with and without the target are fitted by a Gaussian each, of one covariance; fresh
releases are scored by the likelihood ratio of the two (LiRA). Where the noise is Gaussian this is
the best test there is, by Neyman and Pearson, so it must meet the trade-off curve of the release
and may not pass it.

The *loss* attack knows less: it scores by how near the release lies to the target.

The control is the same attack on the same statistic without its noise: what the caller gives as
such, else means of many releases, of which half set the attack up and the other half are attacked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

__all__ = ["Played", "Plays", "play_statistic"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Played = tuple[Floats, Mask, Mask]
"""Scores, who is a member, and who is guessed to be one."""

_MEANS = 200
"""Means of releases with the target, and as many without."""

_ALARMS = (*np.geomspace(1e-4, 0.5, 16).tolist(), *(1.0 - np.geomspace(0.4, 1e-3, 8)).tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Plays:
    """What was played.

    Attributes
    ----------
    played, control, null : Played
        Against the statistic, the statistic without its noise, and strangers' bits.
    bare : str
        What the control was played on.
    cuts : array of float64
        Thresholds, from shadows alone.
    """

    played: Played
    control: Played
    null: Played
    bare: str
    cuts: Floats


def play_statistic(
    statistic: Callable[..., Any],
    undefended: Callable[..., Any] | None,
    data: Floats,
    target: int,
    method: str,
    plays: int,
    generator: np.random.Generator,
) -> Plays:
    """Score fresh releases: of the statistic, of it without noise, and of strangers' bits.

    Parameters
    ----------
    statistic : callable
        ``statistic(rows)``, or ``statistic(rows, size)`` for many at once.
    undefended : callable, optional
        The statistic without its noise, of the same form.
    data : array, shape (rows, columns)
    target : int
        The row that is in or out.
    method : {"lira", "loss"}
    plays : int
        Fresh releases, each with the target in or out by a fair coin; and as many shadows of each.
    generator : numpy.random.Generator

    Returns
    -------
    Plays
    """
    without = np.delete(data, target, axis=0)
    draw = _drawer(statistic)
    inside, outside = draw(data, plays), draw(without, plays)
    score = _scorer(method, data[target], inside, outside)
    member = generator.random(plays) < 0.5
    scores, guesses = score(_mixed(draw, data, without, member))
    stranger = generator.random(plays) < 0.5
    if undefended is None:
        control, bare = _on_means(method, data[target], inside, outside)
    else:
        exact = _drawer(undefended, "undefended")
        tell = _scorer(method, data[target], exact(data, 8), exact(without, 8))
        found, told = tell(_mixed(exact, data, without, member[:_MEANS]))
        control, bare = (found, member[:_MEANS], told), "the bare truth"
    cuts = np.unique(np.quantile(score(outside)[0], 1.0 - np.array(_ALARMS)))
    return Plays((scores, member, guesses), control, (scores, stranger, guesses), bare, cuts)


def _on_means(method: str, target: Floats, inside: Floats, outside: Floats) -> tuple[Played, str]:
    """The attack on means of releases, in which noise is small."""
    many = min(_MEANS, len(inside) // 2)
    each = len(inside) // many
    one, two = (x[: many * each].reshape(many, each, -1).mean(axis=1) for x in (inside, outside))
    half = many // 2
    found, told = _scorer(method, target, one[:half], two[:half])(
        np.concatenate([one[half:], two[half:]])
    )
    member = np.repeat([True, False], many - half)
    return (found, member, told), f"means of {each:,} releases"


Draw = Callable[[Floats, int], Floats]
Scorer = Callable[[Floats], tuple[Floats, Mask]]


def _drawer(statistic: Callable[..., Any], name: str = "model_or_statistic") -> Draw:
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
                f"{name} must return a number or a vector of numbers"
                + (", one a draw, where it takes size" if many else "")
            ) from error
        if not np.isfinite(found).all():
            raise ArgumentError(f"{name} must return finite numbers")
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

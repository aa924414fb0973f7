"""Membership attacks by shadows: copies whose members are known show how to recognise members.

*Models.* N models are trained, each on a random half of the records, so that every record is in
about half of them. They are attacked in four folds, each with the models of the other three as
shadows: given those, the coins of a fold are fair and known to nobody, which a test of the guesses
rests on. Of a record (x, y) the attacker asks for the model's confidence p in y, as log(p/(1 - p)).

*LiRA* fits the confidences of this record, over the shadows, by a Gaussian where it was trained on
and by one where it was not, of one variance for all, and scores by their likelihood ratio. *Loss*
scores by the confidence itself, and takes the shadows' median threshold.

*A released statistic*, by the strong adversary, who knows everybody but the target. Shadow releases
with and without the target are fitted by a Gaussian each, of one covariance; fresh releases are
scored by the likelihood ratio of the two (LiRA). Where the noise is Gaussian this is the best test
there is, by Neyman and Pearson, so it must meet the trade-off curve of the release and may not pass
it.

The *loss* attack knows less: it scores by how near the release lies to the target.

The control is the same attack on the same statistic without its noise: what the caller gives as
such, else means of many releases, of which half set the attack up and the other half are attacked.

Source. Carlini, Chien, Nasr, Song, Terzis and Tramèr, "Membership inference attacks from first
principles", 2022; Yeom, Giacomelli, Fredrikson and Jha, 2018.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.lab._calls import answered
from dither.lab.attack._roc import Floats, Mask, Played
from dither.lab.attack._verdict import BARE

__all__ = [
    "FOLDS",
    "PlayedRounds",
    "attacked",
    "confidences",
    "folds",
    "play_statistic",
    "takes_size",
    "trained_on",
]

_CLIP = 1e-6

FOLDS = 4
"""Few, as each costs the others some of the confidence; not two, as shadows would be few."""


def trained_on(records: int, models: int, generator: np.random.Generator) -> Mask:
    """Which model is trained on which record: fair coins, shape (models, records)."""
    return np.asarray(generator.random((models, records)) < 0.5)


def confidences(
    model: Any,
    features: Any,
    labels: npt.NDArray[Any],
    member: Mask,
    generator: np.random.Generator,
) -> Floats:
    """Train a copy of the model on each half; the log-odds of the right label, for each record.

    ``member`` and the result have the shape (models, records). The model has ``fit`` and
    ``predict_proba``, as in scikit-learn, and stays as it is; the generator seeds every copy that
    takes a ``random_state``.

    Raises
    ------
    ArgumentError
        Where a half has too few labels to train on.
    """
    found = np.empty(member.shape)
    for i, inside in enumerate(member):
        one = copy.deepcopy(model)
        seeds = [n for n in one.get_params() if n.split("__")[-1] == "random_state"]
        one.set_params(**{n: int(generator.integers(2**31)) for n in seeds})
        if len(np.unique(labels[inside])) < 2:
            raise ArgumentError("data must have at least two labels in every half: give more rows")
        answered("the model's fit", one.fit, features[inside], labels[inside])
        answer = answered("the model's predict_proba", one.predict_proba, features)
        chances = np.asarray(answer, dtype=np.float64)
        place = np.searchsorted(one.classes_, labels)
        place = np.minimum(place, len(one.classes_) - 1)
        known = np.asarray(one.classes_)[place] == labels
        right = np.where(known, chances[np.arange(len(labels)), place], 0.0)
        # A model that is certain would have infinite log-odds.
        right = np.clip(right, _CLIP, 1.0 - _CLIP)
        found[i] = np.log(right) - np.log1p(-right)
    return found


def folds(models: int) -> list[npt.NDArray[np.int64]]:
    """The models of each fold."""
    return np.array_split(np.arange(models), FOLDS)


def attacked(confidence: Floats, member: Mask, method: str) -> tuple[Floats, Mask]:
    """Attack the models of each fold with those of the others as shadows: scores and guesses.

    All are of shape (models, records). Of a model attacked, no row of ``member`` in its fold is
    read.
    """
    scores, guesses = np.empty_like(confidence), np.empty_like(member)
    levels = [_threshold(c, m) for c, m in zip(confidence, member, strict=True)]
    for fold in folds(len(member)):
        shadows = np.ones(len(member), dtype=np.bool_)
        shadows[fold] = False
        if method == "loss":
            scores[fold] = confidence[fold]
            level = float(np.median(np.asarray(levels)[shadows]))
        else:
            scores[fold] = _ratio(confidence[fold], confidence[shadows], member[shadows])
            level = 0.0
        guesses[fold] = scores[fold] > level
    return scores, guesses


def _ratio(confidence: Floats, seen: Floats, inside: Mask) -> Floats:
    """The log-likelihood ratio of each record's confidence, by shadows."""
    high, low = _mean(seen, inside), _mean(seen, ~inside)
    spread = np.where(inside, seen - high, seen - low)
    variance = float((spread**2).mean()) + 1e-9
    found: Floats = (high - low) * (confidence - (high + low) / 2.0) / variance
    return found


def _mean(seen: Floats, of: Mask) -> Floats:
    """The mean of each record over some models; over all records where it is in none of them."""
    many = of.sum(axis=0)
    whole = float(seen[of].mean()) if of.any() else float(seen.mean())
    return np.where(many > 0, (seen * of).sum(axis=0) / np.maximum(many, 1), whole)


def _threshold(confidence: Floats, member: Mask) -> float:
    """The threshold that separates this model's own members best."""
    order = np.argsort(-confidence, kind="stable")
    gained = np.cumsum(np.where(member[order], 1, -1))
    ends = np.append(np.diff(confidence[order]) < 0, True)
    best = int(np.argmax(np.where(ends, gained, -len(order))))
    after = confidence[order[best + 1]] if best + 1 < len(order) else -np.inf
    return float(after)


_MEANS = 200
"""Means of releases with the target, and as many without."""

_ALARMS = (*np.geomspace(1e-4, 0.5, 16).tolist(), *(1.0 - np.geomspace(0.4, 1e-3, 8)).tolist())


@dataclass(frozen=True, slots=True, eq=False)
class PlayedRounds:
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
) -> PlayedRounds:
    """Score fresh releases: of the statistic, of it without noise, and of strangers' bits.

    Of the ``plays`` fresh releases each has the target in or out by a fair coin; there are as many
    shadows with it and as many without. The other arguments are those of `membership`.
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
        guess = _scorer(method, data[target], exact(data, 8), exact(without, 8))
        found, answer = guess(_mixed(exact, data, without, member[:_MEANS]))
        control, bare = (found, member[:_MEANS], answer), BARE
    alone = score(outside)[0]
    # The last is above all that was seen without the target: what is never seen then tells most.
    beyond = np.nextafter(alone.max(), np.inf)
    cuts = np.unique([*np.quantile(alone, 1.0 - np.array(_ALARMS)), beyond])
    return PlayedRounds((scores, member, guesses), control, (scores, stranger, guesses), bare, cuts)


def _on_means(method: str, target: Floats, inside: Floats, outside: Floats) -> tuple[Played, str]:
    """The attack on means of releases, in which noise is small."""
    many = min(_MEANS, len(inside) // 2)
    each = len(inside) // many
    one, two = (x[: many * each].reshape(many, each, -1).mean(axis=1) for x in (inside, outside))
    half = many // 2
    found, answer = _scorer(method, target, one[:half], two[:half])(
        np.concatenate([one[half:], two[half:]])
    )
    member = np.repeat([True, False], many - half)
    return (found, member, answer), f"means of {each:,} releases"


Draw = Callable[[Floats, int], Floats]
Scorer = Callable[[Floats], tuple[Floats, Mask]]


def takes_size(release: Callable[..., Any], place: int = 1) -> bool:
    """Whether the argument at a place is called ``size``: how many draws are wanted at once."""
    try:
        return list(inspect.signature(release).parameters)[place : place + 1] == ["size"]
    except (TypeError, ValueError):
        return False


def _drawer(statistic: Callable[..., Any], name: str = "model_or_statistic") -> Draw:
    """Many outputs as rows of numbers."""
    many = takes_size(statistic)

    def draw(rows: Floats, size: int) -> Floats:
        if many:
            made = answered(name, statistic, rows, size)
        else:
            made = [answered(name, statistic, rows) for _ in range(size)]
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
    # A full covariance is told by many more samples than it has columns; else by its diagonal
    # alone.
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

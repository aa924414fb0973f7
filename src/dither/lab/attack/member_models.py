"""Membership in a model's training data: shadow models, each in turn the one attacked.

N models are trained, each on a random half of the records, so that every record is in about half
of them. They are attacked in four folds, each with the models of the other three as shadows: given
those, the coins of a fold are fair and known to nobody, which a test of the guesses rests on. Of a
record (x, y) the attacker asks for the model's confidence p in y, as log(p/(1 - p)).

*LiRA* fits the confidences of this record, over the shadows, by a Gaussian where it was trained on
and by one where it was not, of one variance for all, and scores by their likelihood ratio. *Loss*
scores by the confidence itself, and takes the shadows' median threshold.

Source. Carlini, Chien, Nasr, Song, Terzis and Tramèr, "Membership inference attacks from first
principles", 2022; Yeom, Giacomelli, Fredrikson and Jha, 2018.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

__all__ = ["FOLDS", "attacked", "confidences", "folds", "trained_on"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

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

    Parameters
    ----------
    model : estimator
        With ``fit`` and ``predict_proba``, as in scikit-learn; it is copied and stays as it is.
    features : array, shape (records, columns)
    labels : array, shape (records,)
    member : array of bool, shape (models, records)
    generator : numpy.random.Generator
        Seeds every copy that takes a ``random_state``.

    Returns
    -------
    array of float64, shape (models, records)

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
        one.fit(features[inside], labels[inside])
        chances = np.asarray(one.predict_proba(features), dtype=np.float64)
        place = np.searchsorted(one.classes_, labels)
        place = np.minimum(place, len(one.classes_) - 1)
        known = np.asarray(one.classes_)[place] == labels
        right = np.where(known, chances[np.arange(len(labels)), place], 0.0)
        right = np.clip(right, _CLIP, 1.0 - _CLIP)
        found[i] = np.log(right) - np.log1p(-right)
    return found


def folds(models: int) -> list[npt.NDArray[np.int64]]:
    """The models of each fold."""
    return np.array_split(np.arange(models), FOLDS)


def attacked(confidence: Floats, member: Mask, method: str) -> tuple[Floats, Mask]:
    """Attack the models of each fold with those of the others as shadows.

    Parameters
    ----------
    confidence : array, shape (models, records)
    member : array of bool, shape (models, records)
        Of a model attacked, no row of its fold is read.
    method : {"lira", "loss"}

    Returns
    -------
    (array of float64, array of bool), both of shape (models, records)
        Scores and guesses.
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
    """The threshold that tells this model's own members best."""
    order = np.argsort(-confidence, kind="stable")
    gained = np.cumsum(np.where(member[order], 1, -1))
    ends = np.append(np.diff(confidence[order]) < 0, True)
    best = int(np.argmax(np.where(ends, gained, -len(order))))
    after = confidence[order[best + 1]] if best + 1 < len(order) else -np.inf
    return float(after)

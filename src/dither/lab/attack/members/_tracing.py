"""Tracing: who was in the data of many published means.

A mean of many columns hides each person in it n times over, column by column; but the small pulls
of one person on all columns point the same way, and add up. With the means q of the table, those r
of everybody, and s² the variances, a person x scores ::

    score(x) = Σ over columns  (x - r)(q - r) / s²

Without x in the data its expectation is 0 or less; with x it is larger by d/n for d columns and n
people, while its standard deviation is about √(d/n). So once there are more columns than people,
members stand out, whatever rounding or independent noise of less than the sampling error does. That
no accurate release of means escapes this is the fingerprinting lemma: n people protect their means
against it only if these err by about √d/n or more, which is what (ε, δ)-differential privacy adds.

The game: fair coins decide who is in the data of each play. Controls: the exact means, and members
of another play.

Source. Homer et al., "Resolving individuals contributing trace amounts of DNA", 2008; Dwork, Smith,
Steinke, Ullman and Vadhan, "Robust traceability from trace amounts", 2015; Bun, Ullman and Vadhan,
"Fingerprinting codes and the price of approximate differential privacy", 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither.errors import ArgumentError
from dither.lab._calls import answered
from dither.lab._simulation import SimulatedWorld
from dither.lab.attack.members._membership import Membership, numbers_of, of_runs
from dither.lab.attack.members._shadows import trained_on
from dither.privacy import Loss

__all__ = ["trace_score", "tracing"]

Floats = npt.NDArray[np.float64]


def tracing(
    means: Callable[[Any], Any],
    data: Any,
    *,
    loss: Loss | None = None,
    plays: int = 20,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Membership:
    """Tell who was in the data of published means.

    Parameters
    ----------
    means : callable
        ``means(rows)`` gives a published mean of each column, an array of shape (d,): exact,
        rounded, or with noise that it draws itself. It is called ``plays`` times.
    data : array of shape (people, d)
        Numbers, a person a row: those who may be in the data, whom the attacker knows.
    loss : Loss, optional
        What the means are said to lose under adding or removing one row.
    plays : int
        How many times means are published, each of a fresh half of the people; at least 1.
    name : str, optional
        What the release is called in the verdict.
    seed : int or numpy.random.Generator
        Of who is in.
    confidence : float
        In (0, 1).

    Returns
    -------
    Membership
        With the area under the curve of the scores, and the verdict on guesses that all who score
        above 0 were in.

    Raises
    ------
    ArgumentError
        For data that are no finite numbers, columns that are all constant, or means of another
        shape.

    Examples
    --------
    >>> import numpy as np
    >>> genes = np.random.default_rng(1).integers(0, 2, (60, 2000))
    >>> exact = tracing(lambda rows: rows.mean(axis=0), genes, plays=4)
    >>> exact.auc.value > 0.99
    True
    >>> rounded = tracing(lambda rows: rows.mean(axis=0).round(1), genes, plays=4)
    >>> rounded.auc.value > 0.95
    True
    """
    if not callable(means):
        raise ArgumentError("means must be a function of rows, such as lambda rows: rows.mean(0)")
    if loss is not None and not isinstance(loss, Loss):
        raise ArgumentError("loss must be a Loss, such as privacy.gaussian(1.0)")
    confidence = check_confidence(confidence)
    rows, plays = numbers_of(data), whole("plays", plays, 1)
    if not (rows != rows[0]).any():
        raise ArgumentError("data must have a column that is not the same for everybody")
    generator = SimulatedWorld.of(seed)
    member = _halves(len(rows), plays, generator)
    stranger = _halves(len(rows), plays, generator)
    scores = np.stack([trace_score(rows, _published(means, rows[m])) for m in member])
    exact = np.stack([trace_score(rows, rows[m].mean(axis=0)) for m in member])
    return of_runs(
        (scores, member, scores > 0),
        (exact, member, exact > 0),
        (scores, stranger, scores > 0),
        attack="tracing",
        name=name or "the published means",
        bare="the exact means",
        loss=loss,
        confidence=confidence,
    )


def trace_score(rows: Floats, published: Floats) -> Floats:
    """How much each person looks like a member, of arrays of shapes (people, d) and (d,).

    Examples
    --------
    >>> people = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    >>> trace_score(people, np.array([1.0, 0.0])).tolist()  # the mean of the first alone
    [2.0, -2.0, 0.0, 0.0]
    """
    variance = rows.var(axis=0)
    apart = variance > 0
    centred = rows[:, apart] - rows[:, apart].mean(axis=0)
    pull = (published[apart] - rows[:, apart].mean(axis=0)) / variance[apart]
    found: Floats = centred @ pull
    return found


def _halves(people: int, plays: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Who is in which play, by fair coins; drawn again where nobody is."""
    found = trained_on(people, plays, generator)
    while not found.any(axis=1).all():
        empty = ~found.any(axis=1)
        found[empty] = trained_on(people, int(empty.sum()), generator)
    return found


def _published(means: Callable[[Any], Any], rows: Floats) -> Floats:
    answer = answered("means", means, rows.copy())
    try:
        found = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != rows.shape[1:] or not np.isfinite(found).all():
        raise ArgumentError(
            f"means must give a finite number for each of {rows.shape[1]:,} columns"
        )
    return found

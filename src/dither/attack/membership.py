"""Membership inference: was this record in the data?

The game: a fair coin decides whether the target's record is in; the neighbour relation is to add
or remove it. The attacker scores and accuses above a threshold, so there is a curve: true alarms
against false ones. A loss bounds the whole of it: ``loss.tpr(fpr)``, its trade-off curve.

Against a *statistic* the adversary is the strong one, who knows all other records; against a
*model* the adversary has data like its own, and trains shadows. The second may fall far short of
the bound, and says then what such an attacker reaches, not what another might.

Controls: an exact mean, or a model that answers who was in it, must give members away; members of
another run must not be told from others.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither.attack.member_models import attacked, confidences, trained_on
from dither.attack.member_statistics import play_statistic
from dither.attack.roc import Rate, Roc, allowed_area
from dither.attack.verdict import Score, Verdict, judge
from dither.attack.worlds import SimulatedWorld, sure, whole
from dither.errors import ArgumentError
from dither.privacy import Loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Membership", "membership"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

METHODS = ("lira", "loss")


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """The result of `membership`.

    Attributes
    ----------
    method : str
    roc : Roc
        Scores of members and of others, over all plays.
    control : Roc
        The same of the undefended control.
    loss : Loss or None
        What the release is said to lose.
    verdict : Verdict
        Of guesses by the attack's own threshold.
    """

    method: str
    roc: Roc
    control: Roc
    loss: Loss | None
    verdict: Verdict

    @property
    def auc(self) -> Rate:
        """The area under the ROC curve; 0.5 is blind."""
        return self.roc.auc()

    def tpr(self, fpr: float = 0.01) -> Rate:
        """True alarms at a rate of false alarms."""
        return self.roc.tpr(fpr)

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Area, true alarms at 1 % of false alarms, what the loss allows, and the verdict."""
        lines = [
            f"area under the ROC curve   {self.auc}",
            f"true alarms at 1 % false   {self.tpr()}",
        ]
        if self.loss is not None:
            lines[0] += f"   allowed {allowed_area(self.loss):.4f}"
            lines[1] += f"   allowed {float(self.loss.tpr(0.01)):.4f}"
        return "\n".join([*lines, self.verdict.summary()])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the ROC curve on logarithmic axes, with control, prior and bound.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.attack_members import draw_membership

        return draw_membership([self], path)


def membership(
    model_or_statistic: Any,
    data: Any,
    method: str = "lira",
    *,
    loss: Loss | None = None,
    target: int | None = None,
    plays: int = 20_000,
    models: int = 32,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Membership:
    """Tell who was in the data of a released statistic, or of a model.

    Parameters
    ----------
    model_or_statistic : estimator or callable
        A classifier with ``fit`` and ``predict_proba``, which is copied and trained ``models``
        times; or ``statistic(rows)``, or ``statistic(rows, size)`` for many releases at once.
    data : array, or (features, labels)
        Records, one a row; for a model with their labels.
    method : {"lira", "loss"}
        Likelihood ratio by shadows, or the loss of the record alone.
    loss : Loss, optional
        What the release is said to lose under adding or removing one record.
    target : int, optional
        Of a statistic: the row that is in or out; by default the one farthest from the mean.
    plays : int
        Of a statistic: fresh releases that are scored.
    models : int
        Of a model: how many are trained and attacked, at least 4.
    name : str, optional
        What the release is called in the verdict.
    seed : int or numpy.random.Generator
        Of coins and shadows; a statistic draws its own noise.
    confidence : float
        In (0, 1).

    Returns
    -------
    Membership

    Raises
    ------
    ArgumentError
        For arguments that do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import privacy
    >>> rng = np.random.default_rng(1)
    >>> def noisy_sum(rows, size):  # rows are 0 or 1; one row changes the sum by 1
    ...     return rows.sum() + rng.normal(0, 1, size)
    >>> found = membership(noisy_sum, np.ones((50, 1)), loss=privacy.gaussian(1.0), plays=4000)
    >>> found.auc.low < 0.7602 < found.auc.high
    True
    """
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(map(repr, METHODS))}")
    if loss is not None and not isinstance(loss, Loss):
        raise ArgumentError("loss must be a Loss, such as privacy.gaussian(1.0)")
    confidence = sure(confidence)
    generator = SimulatedWorld.of(seed)
    if hasattr(model_or_statistic, "predict_proba"):
        features, labels = _labelled(data)
        count = whole("models", models, 4)
        member = trained_on(len(labels), count, generator)
        seen = confidences(model_or_statistic, features, labels, member, generator)
        scores, guesses = attacked(seen, member, method)
        bare, told = attacked(np.where(member, 1.0, -1.0), member, method)
        played = (scores, member, guesses)
        stranger = trained_on(len(labels), count, generator)
        control, null = (bare, member, told), (scores, stranger, guesses)
        called = f"{type(model_or_statistic).__name__} models"
    elif callable(model_or_statistic):
        rows = _rows(data)
        played, control, null = play_statistic(
            model_or_statistic,
            rows,
            _target(target, rows),
            method,
            whole("plays", plays, 100),
            generator,
        )
        called = "the released statistic"
    else:
        raise ArgumentError(
            "model_or_statistic must be a classifier with fit and predict_proba, or a function of "
            "rows"
        )
    return Membership(
        method,
        _roc(played, confidence),
        _roc(control, confidence),
        loss,
        _verdict(played, control, null, loss, method, name or called, confidence),
    )


def _roc(played: tuple[Floats, Mask, Mask], confidence: float) -> Roc:
    scores, member, _ = played
    return Roc(scores[member], scores[~member], confidence)


def _score(played: tuple[Floats, Mask, Mask]) -> Score:
    """Hits of each run: of each model, or of each release, which has one target."""
    _, member, guesses = played
    right = np.atleast_2d((guesses == member).T).T if member.ndim == 1 else guesses == member
    return Score(tuple(right.sum(axis=1).tolist()), (right.shape[1],) * len(right))


def _verdict(
    played: tuple[Floats, Mask, Mask],
    control: tuple[Floats, Mask, Mask],
    null: tuple[Floats, Mask, Mask],
    loss: Loss | None,
    method: str,
    name: str,
    confidence: float,
) -> Verdict:
    bound, epsilon, pure = 1.0, None, None
    if loss is not None:
        bound = 1.0 - float(loss.bayes_risk(0.5).lower)
        try:
            epsilon = float(loss.epsilon(0.0))
        except ArgumentError:
            epsilon = None
        pure = bound if played[1].ndim == 1 else None
    return judge(
        game="was the record in the data",
        release=name,
        attack={"lira": "likelihood ratio", "loss": "loss threshold"}[method],
        score=_score(played),
        control=_score(control),
        null=_score(null),
        prior=0.5,
        bound=bound,
        pure=pure,
        epsilon=epsilon,
        predicted=None,
        confidence=confidence,
    )


def _rows(data: Any) -> Floats:
    held = data.to_numpy() if hasattr(data, "to_numpy") else data
    try:
        found = np.asarray(held, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError("data must be numbers, one record a row") from error
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) < 2 or not np.isfinite(found).all():
        raise ArgumentError("data must be finite numbers, one record a row, at least two records")
    return found


def _labelled(data: Any) -> tuple[Floats, npt.NDArray[Any]]:
    if not isinstance(data, tuple) or len(data) != 2:
        raise ArgumentError("data must be (features, labels) for a model")
    features, labels = _rows(data[0]), np.asarray(data[1])
    if labels.shape != (len(features),):
        raise ArgumentError("data must have one label for each row of features")
    return features, labels


def _target(given: int | None, rows: Floats) -> int:
    if given is None:
        return int(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).argmax())
    return whole("target", given, 0, len(rows) - 1)

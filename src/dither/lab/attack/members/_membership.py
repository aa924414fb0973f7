"""Membership inference: was this record in the data?

The game: a fair coin decides whether the target's record is in; the neighbour relation is to add
or remove it. The attacker scores and accuses above a threshold, so there is a curve: true alarms
against false ones. A loss bounds the whole of it: ``loss.tpr(fpr)``, its trade-off curve.

Against a *statistic* the adversary is the strong one, who knows all other records; against a
*model* the adversary has data like its own, and trains shadows. The second may fall far short of
the bound, and says then what such an attacker reaches, not what another might.

Controls: the same statistic or model without its noise must give members away; members of another
run must not be distinguished from others. What refutes a loss is tested in `_roc`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._checks import confidence as check_confidence
from dither._checks import number, whole
from dither._format import Printable, at_least, at_most, number_text
from dither.errors import ArgumentError
from dither.lab._simulation import SimulatedWorld
from dither.lab.attack._roc import (
    Allowed,
    Floats,
    Mask,
    Played,
    Rate,
    Roc,
    certified,
    refuted_by_models,
    refuted_by_plays,
)
from dither.lab.attack._verdict import Score, Verdict, judge, most_right, pure_epsilon
from dither.lab.attack.members._shadows import (
    attacked,
    confidences,
    folds,
    play_statistic,
    takes_size,
    trained_on,
)
from dither.privacy import Loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Membership", "membership", "numbers_of", "of_runs", "of_scores", "of_two"]

METHODS = ("lira", "loss")


@dataclass(frozen=True, slots=True, eq=False)
class Membership(Printable):
    """The result of `membership`.

    Attributes
    ----------
    method : str
    roc : Roc
        Scores of members and of others, over all plays.
    control : Roc or None
        The same of the undefended control, where it was played.
    loss : Loss or None
        What the release is said to lose.
    allowed : Allowed or None
        The curve that its loss allows.
    verdict : Verdict
        Of guesses by the attack's own threshold. *Violated* where these, the area or the curve of a
        statistic, or guesses about the highest and lowest scores of models, are beyond the loss;
        all are tested at once, at ``1 - confidence``.
    cuts : array of float64 or None
        Thresholds of a statistic that were fixed before it was played.
    """

    method: str
    roc: Roc
    control: Roc | None
    loss: Loss | None
    allowed: Allowed | None
    verdict: Verdict
    cuts: Floats | None = field(default=None, repr=False)

    @property
    def auc(self) -> Rate:
        """The area under the ROC curve; 0.5 is blind."""
        return self.roc.auc()

    def tpr(self, fpr: float = 0.01) -> Rate:
        """True alarms at a rate of false alarms."""
        return self.roc.tpr(fpr)

    def certified(self, delta: float = 0.0) -> float:
        """The largest epsilon that the plays of a statistic prove to be lost, at this delta.

        No release that loses less has such a curve, but with probability ``1 - confidence``.

        Raises
        ------
        ArgumentError
            For models and for rows that were released, whose records are not played one by one, or
            delta outside [0, 1).
        """
        if self.cuts is None:
            raise ArgumentError("certified() is of a statistic, or of a generator of rows")
        delta = number("delta", delta, least=0, below=1)
        return certified(self.roc, self.cuts, 1.0 - self.verdict.confidence, delta)

    @property
    def _of_models(self) -> bool:
        return self.verdict.score.targets[0] > 1

    def summary(self) -> str:
        """Area, true alarms at 1 % of false alarms, what the loss allows, and the verdict."""
        lines = [
            f"area under the ROC curve   {self.auc}",
            f"true alarms at 1 % false   {self.tpr()}",
        ]
        if self.allowed is not None:
            lines[0] += f"   allowed {at_most(self.allowed.area, 4)}"
            lines[1] += f"   allowed {at_most(float(self.allowed.tpr(0.01)), 4)}"
            level = 1.0 - self.verdict.confidence
            what = "guesses of many thresholds" if self._of_models else "guesses, area and curve"
            lines.append(f"{what} are tested at once, at {number_text(100 * level, 3)} %")
        if self.cuts is not None:
            lines.append(f"certified                  ε ≥ {at_least(self.certified())}")
        return "\n".join([*lines, self.verdict.summary()])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the ROC curve on logarithmic axes, with control, prior and bound.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._alarms import draw_membership

        return draw_membership([self], path)


def membership(
    model_or_statistic: Any,
    data: Any,
    method: str = "lira",
    *,
    loss: Loss | None = None,
    target: int | None = None,
    undefended: Any = None,
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
    undefended : estimator or callable, optional
        The same model or statistic without its noise, for the control. Where none is given, that of
        a statistic is played on means of many releases; a model has none, so that where the attack
        fails the verdict is *inconclusive*.
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
    confidence = check_confidence(confidence)
    generator = SimulatedWorld.of(seed)
    if hasattr(model_or_statistic, "predict_proba"):
        return _of_model(
            model_or_statistic, undefended, _labelled(data), method, loss, models, name,
            generator, confidence,
        )  # fmt: skip
    if not callable(model_or_statistic):
        raise ArgumentError(
            "model_or_statistic must be a classifier with fit and predict_proba, or a function of "
            "rows"
        )
    if undefended is not None and not callable(undefended):
        raise ArgumentError("undefended must be a function of rows, as the statistic is")
    rows = numbers_of(data)
    plays = whole("plays", plays, 100)
    found = play_statistic(
        model_or_statistic, undefended, rows, _target(target, rows), method, plays, generator
    )
    refuted, allowed = None, None if loss is None else Allowed.of(loss)
    if loss is not None and allowed is not None:
        refuted = refuted_by_plays(found.played, found.cuts, loss, allowed, 1.0 - confidence)
    return _judged(
        found.played, found.control, found.null, refuted, loss, allowed, method,
        name or "the released statistic", found.bare, confidence, found.cuts,
    )  # fmt: skip


def _of_model(
    model: Any,
    undefended: Any,
    data: tuple[Floats, npt.NDArray[Any]],
    method: str,
    loss: Loss | None,
    models: int,
    name: str | None,
    generator: np.random.Generator,
    confidence: float,
) -> Membership:
    features, labels = data
    count = whole("models", models, 4)
    if undefended is not None and not hasattr(undefended, "predict_proba"):
        raise ArgumentError("undefended must be a classifier with fit and predict_proba")
    member = trained_on(len(labels), count, generator)
    played = _played(model, features, labels, member, method, generator)
    control = None
    if undefended is not None:
        control = _played(undefended, features, labels, member, method, generator)
    stranger = trained_on(len(labels), count, generator)
    refuted = None
    if loss is not None:
        parts = [(played[0][f], played[1][f], played[2][f]) for f in folds(count)]
        refuted = refuted_by_models(parts, loss, 1.0 - confidence)
    return _judged(
        played, control, (played[0], stranger, played[2]), refuted, loss,
        None if loss is None else Allowed.of(loss), method,
        name or f"{type(model).__name__} models", "the same without its noise", confidence,
    )  # fmt: skip


def _played(
    model: Any,
    features: Floats,
    labels: npt.NDArray[Any],
    member: Mask,
    method: str,
    generator: np.random.Generator,
) -> Played:
    seen = confidences(model, features, labels, member, generator)
    scores, guesses = attacked(seen, member, method)
    return scores, member, guesses


def _roc(played: Played, confidence: float) -> Roc:
    scores, member, _ = played
    return Roc(scores[member], scores[~member], confidence)


def _score(played: Played) -> Score:
    """Hits of each run: of each model, or of each release, which has one target."""
    _, member, guesses = played
    right = np.atleast_2d((guesses == member).T).T if member.ndim == 1 else guesses == member
    return Score(tuple(right.sum(axis=1).tolist()), (right.shape[1],) * len(right))


def _judged(
    played: Played,
    control: Played | None,
    null: Played,
    refuted: str | None,
    loss: Loss | None,
    allowed: Allowed | None,
    method: str,
    name: str,
    bare: str,
    confidence: float,
    cuts: Floats | None = None,
    game: str = "was the record in the data",
) -> Membership:
    above = None
    roc = _roc(played, confidence)
    if allowed is not None:
        # An area of 1 in n plays has no spread, and is not known better than to 1/n for it.
        known = 1.0 - 1.0 / min(len(roc.members), len(roc.others))
        if min(roc.auc().low, known) > allowed.area:
            above = "the area"
        elif roc.tpr(0.01).low > float(allowed.tpr(0.01)):
            above = "the true alarms"
    verdict = judge(
        game=game,
        release=name,
        attack={"lira": "likelihood ratio", "loss": "loss threshold"}.get(method, method),
        score=_score(played),
        control=None if control is None else _score(control),
        null=_score(null),
        prior=0.5,
        bound=most_right(loss),
        epsilon=pure_epsilon(loss),
        confidence=confidence,
        refuted=refuted,
        above=above,
        bare=bare,
    )
    bare_roc = None if control is None else _roc(control, confidence)
    return Membership(method, roc, bare_roc, loss, allowed, verdict, cuts)


def of_scores(
    played: Played, control: Played, null: Played, *, attack: str, name: str, bare: str,
    loss: Loss | None, confidence: float,
) -> Membership:  # fmt: skip
    """The result of scores of one release, of as many members as others who were held out by lot.

    Of people whose coins are fair it is one run with many canaries. Here m were in and m were not,
    as fair coins fall with probability C(2m, m)/4^m >= 1/(2√m): whatever has probability p by the
    coins has at most 2√m·p given that they fell so. The loss is tested at a level that is smaller
    by this factor.
    """
    # With at least this chance 2·n fair coins fall as n and n.
    even = 1.0 / (2.0 * math.sqrt(max(1, int(played[1].sum()))))
    one, other, none = ((x[None], m[None], g[None]) for x, m, g in (played, control, null))
    return _by_lot(one, other, none, even, attack, name, bare, loss, confidence)


def of_runs(
    played: Played, control: Played, null: Played, *, attack: str, name: str, bare: str,
    loss: Loss | None, confidence: float,
) -> Membership:  # fmt: skip
    """The result of scores of several runs, in each of which a fair coin decided who was in.

    Arrays are of shape (runs, people). In each run somebody was in, as is so of fair coins with
    probability 1 - 2^-people; the loss is tested at a level that is smaller by this factor.
    """
    runs, people = played[1].shape
    # With this chance fair coins put somebody into every run.
    somebody = (1.0 - 0.5**people) ** runs
    return _by_lot(played, control, null, somebody, attack, name, bare, loss, confidence)


def _by_lot(
    played: Played, control: Played, null: Played, chance: float, attack: str, name: str,
    bare: str, loss: Loss | None, confidence: float,
) -> Membership:  # fmt: skip
    """The result where lots fell so that whatever fair coins do is at most 1/chance as likely."""
    refuted, allowed = None, None if loss is None else Allowed.of(loss)
    if loss is not None:
        refuted = refuted_by_models([played], loss, (1.0 - confidence) * chance)
    return _judged(played, control, null, refuted, loss, allowed, attack, name, bare, confidence)


def of_two(
    release: Callable[..., Any], undefended: Callable[..., Any] | None, *, game: str, name: str,
    loss: Loss | None, plays: int, generator: np.random.Generator, confidence: float,
) -> Membership:  # fmt: skip
    """Which of two secrets a release was made of: ``release(second)``, or of (second, size).

    The adversary knows both, and sees a vector of numbers.
    """

    def of(one: Callable[..., Any]) -> Callable[..., Any]:
        if takes_size(one):
            return lambda rows, size: one(len(rows) == 2, size)
        return lambda rows: one(len(rows) == 2)

    found = play_statistic(
        of(release), None if undefended is None else of(undefended), np.array([[0.0], [1.0]]), 1,
        "lira", plays, generator,
    )  # fmt: skip
    allowed, refuted = None, None
    if loss is not None:
        allowed = Allowed.of(loss)
        refuted = refuted_by_plays(found.played, found.cuts, loss, allowed, 1.0 - confidence)
    return _judged(
        found.played, found.control, found.null, refuted, loss, allowed, "lira", name, found.bare,
        confidence, found.cuts, game,
    )  # fmt: skip


def numbers_of(data: Any) -> Floats:
    """Finite numbers, one record a row, two records at least."""
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
    features, labels = numbers_of(data[0]), np.asarray(data[1])
    if labels.shape != (len(features),):
        raise ArgumentError("data must have one label for each row of features")
    return features, labels


def _target(given: int | None, rows: Floats) -> int:
    if given is None:
        return int(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).argmax())
    return whole("target", given, 0, len(rows) - 1)

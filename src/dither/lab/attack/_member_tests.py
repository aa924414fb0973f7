"""Whether what a membership attack shows is more than a loss allows, at a stated level.

*A statistic.* Plays are independent, each with one coin, and scores are a fixed function of a
release. Three things that are shown are tested at once, with the level shared among them:

- guesses that are right: each is with probability at most 1 - R, where R is the least Bayes risk,
  so they are dominated by a binomial;
- the area A under the curve, of n members and m others: a mean over pairs whose expectation is at
  most the area under ``loss.tpr``. It is an average of averages of min(n, m) independent scores in
  [0, 1], so Pr[A >= x] <= exp(-min(n, m)·KL(x, area)) (Hoeffding, 1963, section 5);
- the curve: at thresholds that shadows fixed beforehand, Clopper and Pearson's bounds of true and
  false alarms must leave ``true <= loss.tpr(false)``.

*Models.* A model has a coin for each record. Models are attacked in folds, each with shadows of the
other folds, so given those the models of a fold are one run with many canaries, of which
`chance_of_guesses` tells how many guesses may be right, whatever depends on what. Guesses by
the attack's own threshold are tested, and those about the highest and lowest scores alone.

Source. Hoeffding, 1963; Steinke, Nasr and Jagielski, 2023.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dither._stats import binomial_tail, hoeffding_tail, lower_bound, upper_bound
from dither.errors import ArgumentError
from dither.lab.attack._roc import Allowed, Floats, Roc
from dither.lab.attack._shadows import Played
from dither.lab.attack._verdict import most_right
from dither.lab.audit import chance_of_guesses, guess_by_score
from dither.privacy import Loss

__all__ = ["refuted_by_models", "refuted_by_plays"]

_SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Of all records, those with the most telling scores that are guessed."""

_DELTAS = tuple(10.0**-k for k in range(2, 15, 2))


def refuted_by_plays(
    played: Played, cuts: Floats, loss: Loss, allowed: Allowed, level: float
) -> str:
    """What refutes a loss in plays of a statistic, as a sentence; empty where nothing does.

    Parameters
    ----------
    played : (array of float64, array of bool, array of bool), each of shape (plays,)
        Scores, members, and who is guessed to be one.
    cuts : array of float64
        Thresholds that were fixed without these plays.
    loss : Loss
    allowed : Allowed
        Its curve.
    level : float
        How likely a true loss is refuted, at most.
    """
    scores, member, guesses = played
    bound = most_right(loss)
    if binomial_tail(len(member), int((guesses == member).sum()), bound) <= level / 4.0:
        return "No release of the stated loss could be guessed so well."
    inside, outside = scores[member], scores[~member]
    least = min(len(inside), len(outside))
    if least < 2:
        return ""
    area = Roc(inside, outside).auc().value
    if area > bound and hoeffding_tail(area, allowed.area, least) <= level / 4.0:
        return "No release of the stated loss has a curve with so large an area."
    each = level / (4.0 * max(1, len(cuts)))
    for cut in cuts.tolist():
        p = lower_bound(int((inside >= cut).sum()), len(inside), each)
        q = upper_bound(int((outside >= cut).sum()), len(outside), each)
        if p > (most := float(allowed.tpr(q))):
            return (
                f"The curve is above what the loss allows: of members at least {100 * p:.2f} % are "
                f"found where of others at most {100 * q:.2f} % are accused, and {100 * most:.2f} "
                "% are allowed."
            )
    return ""


def refuted_by_models(folds: Sequence[Played], loss: Loss, level: float) -> str:
    """What refutes a loss in attacks on models, as a sentence; empty where nothing does.

    Parameters
    ----------
    folds : sequence of (array of float64, array of bool, array of bool)
        Each of shape (models, records): scores, members and guesses, of models whose shadows are
        of other folds.
    loss : Loss
        Of one model, for adding or removing one record.
    level : float
        How likely a true loss is refuted, at most.
    """
    claims = list(_claims(loss))
    bound = most_right(loss)
    each = level / (len(folds) * (2 + len(_SHARES)))
    for scores, member, guesses in folds:
        right = float((guesses == member).mean())
        if hoeffding_tail(right, bound, len(member)) <= each:
            return "No release of the stated loss could be guessed so well."
        coins = np.where(member.ravel(), 1, -1)
        told = [np.where(guesses.ravel(), 1, -1)]
        for share in _SHARES:
            most = int(share * coins.size / 2.0)
            told.append(guess_by_score(scores.ravel(), most, most))
        for one in told:
            r, v = int(np.count_nonzero(one)), int(np.count_nonzero(one == coins))
            # Each bounds the same chance, so the least of them does.
            if any(chance_of_guesses(coins.size, r, v, e, d) <= each for e, d in claims):
                return (
                    f"{v:,} of {r:,} guesses about {coins.size:,} coins of {len(member)} models "
                    "were right: no training of the stated loss could be guessed so well."
                )
    return ""


def _claims(loss: Loss) -> Iterator[tuple[float, float]]:
    """Pairs of epsilon and delta that the loss promises: the pure one alone, where there is one."""
    for delta in (0.0, *_DELTAS):
        try:
            epsilon = float(loss.epsilon(delta))
        except ArgumentError:
            continue
        yield epsilon, delta
        if delta == 0.0:
            return

"""The Bayesian adversary: who sees one report and guesses the value behind it, or its class.

For a report y and a prior pi the best guess is argmax_x Pr[y | x]·pi(x); without a prior it is
argmax_x Pr[y | x]. Ties are broken at random. Its success on holders of x is

    Pr[guess = x | x] = sum_y Pr[y | x]·[x is among the best guesses for y]/(number of them)

which is exact, from the matrix. The class guess ("is this person's value a sensitive one?") is the
same game between two mixtures of rows: the best accuracy, its advantage over guessing by the prior
alone, the total variation of the mixtures, and the area under the ROC curve.

Source. Chen et al., "SDLDP", 2025, section 3.5 (values); Gursoy et al., IEEE TIFS 2022. The class
game is not in the paper; it is where grading by sensitivity costs most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local.channel import Channel, checked_shares
from dither.local.domain import Value
from dither.local.finite import FiniteChannel

__all__ = ["Attack", "ClassGame", "attack", "simulate_attack"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClassGame:
    """How well one report tells whether its sender's value is among the high ones.

    Parameters
    ----------
    share : float
        Of people with a high value, by the prior.
    accuracy, baseline : float
        Of the best guess with the report, and without.
    total_variation : float
        Between the reports of the two classes: the largest true-positive rate minus
        false-positive rate of any test.
    auc : float
        Area under the ROC curve of the best test; 0.5 tells nothing.
    """

    share: float
    accuracy: float
    baseline: float
    total_variation: float
    auc: float


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """Success of the best guess from one report.

    Parameters
    ----------
    success : float
        Over people whose values follow the prior (the uniform one, if none was given).
    baseline : float
        Of the best guess without a report: the prior's largest share.
    per_value : array of float, shape (k,)
        Success on the holders of each value.
    per_class : dict
        Success on holders of "high" and "low" values, weighted by the prior; empty where the
        channel has no classes.
    who_is_high : ClassGame or None
        The class game, where there are classes.
    with_prior : bool
        Whether the adversary knows the prior.
    """

    success: float
    baseline: float
    per_value: Array
    per_class: dict[str, float]
    who_is_high: ClassGame | None
    with_prior: bool

    def summary(self) -> str:
        """A few lines for people."""
        known = "knowing the prior" if self.with_prior else "without a prior"
        lines = [f"one report, {known}: guessed right {self.success:.1%} of the time"]
        lines.append(f"without the report: {self.baseline:.1%}")
        lines += [f"  of holders of {name} values: {s:.1%}" for name, s in self.per_class.items()]
        if self.who_is_high is not None:
            game = self.who_is_high
            lines.append(
                f"whether the value is high: {game.accuracy:.1%} (without the report "
                f"{game.baseline:.1%}; area under the ROC curve {game.auc:.3f})"
            )
        return "\n".join(lines)


def attack(channel: Channel, prior: Any = None, *, high: Iterable[Value] | None = None) -> Attack:
    """Success of the best guess, in closed form; see `Channel.attack`."""
    if not isinstance(channel, FiniteChannel):
        raise ArgumentError(
            f"a {channel.kind} report has too many forms for a closed form; use simulate_attack"
        )
    matrix, k = channel.matrix, len(channel.domain)
    pi = np.full(k, 1 / k) if prior is None else checked_shares(prior, k, "prior")
    weights = matrix if prior is None else matrix * pi[:, None]
    best = _best(weights)
    per_value = (matrix * (best / best.sum(axis=0))).sum(axis=1)
    mask = _classes(channel, high)
    return Attack(
        success=float(pi @ per_value),
        baseline=float(pi.max()),
        per_value=per_value,
        per_class=_by_class(per_value, pi, mask),
        who_is_high=None if mask is None else _class_game(matrix, pi, mask),
        with_prior=prior is not None,
    )


def simulate_attack(
    channel: Channel,
    rng: np.random.Generator,
    prior: Any = None,
    *,
    people: int = 100_000,
    high: Iterable[Value] | None = None,
) -> Attack:
    """The same success, played: people drawn from the prior report, and are guessed at.

    Parameters
    ----------
    channel : Channel
        One that states `Channel.likelihoods`.
    rng : numpy.random.Generator
        Draws people, reports and ties; nobody is protected.
    prior : array of float, shape (k,), optional
        As for `Channel.attack`.
    people : int
        How many are drawn; the standard error of `success` is at most 0.5/sqrt(people).
    high : collection of values, optional
        As for `Channel.attack`. The class game is played in closed form only.

    Raises
    ------
    ArgumentError
        An argument is out of range, or the channel states no likelihoods.
    """
    from dither.numeric import SimulatedWords

    if not isinstance(people, int) or people < 1:
        raise ArgumentError("people must be a whole number of at least 1")
    k = len(channel.domain)
    pi = np.full(k, 1 / k) if prior is None else checked_shares(prior, k, "prior")
    truths = rng.choice(k, size=people, p=pi / pi.sum()).astype(np.int64)
    words = SimulatedWords(int(rng.integers(1 << 62)))
    right = np.zeros(people, dtype=np.bool_)
    step = max(1, (1 << 22) // k)
    for start in range(0, people, step):
        part = truths[start : start + step]
        weights = channel.likelihoods(channel.draw(part, words)).T
        best = _best(weights if prior is None else weights * pi[:, None])
        # The largest of independent uniforms among the best is a fair choice among them.
        guesses = (best * rng.random(best.shape)).argmax(axis=0)
        right[start : start + step] = guesses == part
    held = np.bincount(truths, minlength=k)
    hits = np.bincount(truths[right], minlength=k)
    per_value = np.divide(hits, held, out=np.full(k, np.nan), where=held > 0)
    mask = _classes(channel, high)
    return Attack(
        success=float(right.mean()),
        baseline=float(pi.max()),
        per_value=per_value,
        per_class=_by_class(np.nan_to_num(per_value), held / people, mask),
        who_is_high=None,
        with_prior=prior is not None,
    )


def _best(weights: Array) -> npt.NDArray[np.bool_]:
    """Which values are best guesses for each report, shape (k, reports); rounding makes no tie."""
    top = weights.max(axis=0)
    return np.asarray((weights >= top * (1 - 1e-12)) & (top > 0))


def _classes(channel: Channel, high: Iterable[Value] | None) -> npt.NDArray[np.bool_] | None:
    if high is not None:
        mask = channel.domain.subset(high, "high")
        if not mask.any() or mask.all():
            raise ArgumentError("high must hold at least one value of the domain, and not all")
        return mask
    graded = getattr(channel, "high", None)
    return None if graded is None else np.array(graded, dtype=np.bool_)


def _by_class(per_value: Array, pi: Array, mask: npt.NDArray[np.bool_] | None) -> dict[str, float]:
    if mask is None:
        return {}
    named = {"high": mask, "low": ~mask}
    return {
        name: float(pi[m] @ per_value[m] / pi[m].sum()) for name, m in named.items() if pi[m].sum()
    }


def _class_game(matrix: Array, pi: Array, mask: npt.NDArray[np.bool_]) -> ClassGame:
    share = float(pi[mask].sum())
    high = pi[mask] @ matrix[mask] / share if share else matrix[mask].mean(axis=0)
    low = pi[~mask] @ matrix[~mask] / (1 - share) if share < 1 else matrix[~mask].mean(axis=0)
    order = np.argsort(np.where(high + low > 0, low / np.maximum(high + low, 1e-300), 2))
    tpr = np.append(0, np.cumsum(high[order]))
    fpr = np.append(0, np.cumsum(low[order]))
    return ClassGame(
        share=share,
        accuracy=float(np.maximum(share * high, (1 - share) * low).sum()),
        baseline=max(share, 1 - share),
        total_variation=float(np.abs(high - low).sum() / 2),
        auc=float(np.trapezoid(tpr, fpr)),
    )

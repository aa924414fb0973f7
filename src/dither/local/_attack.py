"""The Bayesian adversary: who sees one report and guesses the value behind it, or its class.

For a report y and a prior pi the best guess is argmax_x Pr[y | x]·pi(x); without a prior it is
argmax_x Pr[y | x]. Ties are broken at random. Its success on holders of x is

    Pr[guess = x | x] = sum_y Pr[y | x]·[x is among the best guesses for y]/(number of them)

which is exact, from the matrix; reports of bits, of hashed buckets and of subsets have closed forms
of their own (`_guessing`), and every channel's game can be played. The class guess ("is this
person's value a sensitive one?") is the same game between two mixtures of rows: the best accuracy,
its advantage over guessing by the prior alone, the total variation of the mixtures, and the area
under the ROC curve.

Source. Chen et al., "SDLDP", 2025, section 3.5 (values); Gursoy et al., IEEE TIFS 2022. The class
game is not in the paper; it is where grading by sensitivity costs most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither._format import Printable, percent
from dither.errors import ArgumentError
from dither.local._domain import Value
from dither.local._guessing import best_guesses
from dither.local._limits import checked_shares
from dither.local._numbers.linear import point_bins
from dither.local._registry import about_numbers, checked_channel, has_matrix

if TYPE_CHECKING:
    from dither.local._channel import Channel
    from dither.local._numbers.numeric import NumericChannel
    from dither.local._oracles import FiniteChannel

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClassGame:
    """How well one report shows whether its sender's value is among the high ones.

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
        Area under the ROC curve of the best test; 0.5 is no better than chance.
    """

    share: float
    accuracy: float
    baseline: float
    total_variation: float
    auc: float


@dataclass(frozen=True, slots=True, eq=False)
class Attack(Printable):
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

    Examples
    --------
    >>> from dither import local
    >>> print(local.GRR(2, epsilon=1).attack([0.5, 0.5]))
    one report, knowing the prior: guessed right 73.1 % of the time
    without the report: 50.0 %
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
        lines = [f"one report, {known}: guessed right {percent(self.success)} of the time"]
        lines.append(f"without the report: {percent(self.baseline)}")
        held = self.per_class.items()
        lines += [f"  of holders of {name} values: {percent(share)}" for name, share in held]
        if self.who_is_high is not None:
            game = self.who_is_high
            lines.append(
                f"whether the value is high: {percent(game.accuracy)} (without the report "
                f"{percent(game.baseline)}; area under the ROC curve {game.auc:.3f})"
            )
        return "\n".join(lines)


def attack(
    channel: Channel,
    prior: Any = None,
    *,
    high: Iterable[Value] | None = None,
    bins: int | None = None,
) -> Attack:
    """Success of the best guess, in closed form; see `Channel.attack`."""
    k = len(channel.domain)
    if bins is not None:
        bins = _checks.whole("bins", bins, 1, k)
    pi = np.full(k, 1 / k) if prior is None else checked_shares(prior, k, "prior")
    mask = _classes(channel, high)
    game: ClassGame | None = None
    if has_matrix(channel):
        if mask is not None:
            game = _class_game(*_class_laws(channel, pi, mask), float(pi[mask].sum()))
        if about_numbers(channel):
            matrix = _rows(channel, pi, bins)
            pi, mask = _binned(channel, pi, mask, bins)
            best = best_guesses(matrix if prior is None else matrix * pi[:, None])
            per_value = (matrix * (best / np.maximum(best.sum(axis=0), 1))).sum(axis=1)
        else:
            _no_bins(bins)
            per_value = channel.guessed(None if prior is None else pi)
    else:
        _no_bins(bins)
        per_value = channel.guessed(None if prior is None else pi)
        # Shares that are meant to be equal, and were divided or summed in doubles.
        if mask is not None and all(np.ptp(pi[m]) <= 1e-12 for m in (mask, ~mask)):
            laws = channel.class_laws(int(mask.sum()))
            game = None if laws is None else _class_game(*laws, float(pi[mask].sum()))
    return Attack(
        success=float(pi @ per_value),
        baseline=float(pi.max()),
        per_value=per_value,
        per_class=_by_class(per_value, pi, mask),
        who_is_high=game,
        with_prior=prior is not None,
    )


def simulate_attack(
    channel: Channel,
    rng: np.random.Generator,
    prior: Any = None,
    *,
    people: int = 100_000,
    high: Iterable[Value] | None = None,
    bins: int | None = None,
) -> Attack:
    """The same success, played: people drawn from the prior report, and are guessed at.

    Parameters
    ----------
    channel : Channel
    rng : numpy.random.Generator
        Draws people, reports and ties; nobody is protected.
    prior : array of float, shape (k,), optional
        As for `Channel.attack`.
    people : int
        How many are drawn; the standard error of `success` is at most 0.5/sqrt(people).
    high, bins
        As for `Channel.attack`.

    Returns
    -------
    Attack
        As `Channel.attack` computes it, here by counting.

    Raises
    ------
    ArgumentError
        An argument is out of range, or the channel states no likelihoods.

    Examples
    --------
    >>> from dither import local
    >>> played = simulate_attack(local.OLH(50, epsilon=3), np.random.default_rng(1), people=2000)
    >>> 0.1 < played.success < 0.3
    True
    """
    from dither.numeric import SimulatedWords

    checked_channel(channel)
    people = _checks.whole("people", people, 1, 1 << 32)
    _checks.generator("rng", rng)
    k = len(channel.domain)
    pi = np.full(k, 1 / k) if prior is None else checked_shares(prior, k, "prior")
    mask = _classes(channel, high)
    truths = rng.choice(k, size=people, p=pi / pi.sum()).astype(np.int64)
    words = SimulatedWords(int(rng.integers(1 << 62)))
    likely = _likelihoods(channel, pi, bins)
    reports_of = truths
    if bins is not None and about_numbers(channel):
        truths = _bin_of(channel, bins)[truths]
        (pi, mask), k = _binned(channel, pi, mask, bins), bins
    right = np.zeros(people, dtype=np.bool_)
    scores = np.zeros(people)
    step = max(1, (1 << 22) // k)
    for start in range(0, people, step):
        part = slice(start, start + step)
        weights = likely(channel.draw(reports_of[part], words)).T
        best = best_guesses(weights if prior is None else weights * pi[:, None])
        # The largest of independent uniforms among the best is a fair choice among them.
        guesses = (best * rng.random(best.shape)).argmax(axis=0)
        right[part] = guesses == truths[part]
        if mask is not None:
            joint = weights * pi[:, None]
            scores[part] = joint[mask].sum(axis=0) / joint.sum(axis=0)
    held = np.bincount(truths, minlength=k)
    hits = np.bincount(truths[right], minlength=k)
    per_value = np.divide(hits, held, out=np.full(k, np.nan), where=held > 0)
    return Attack(
        success=float(right.mean()),
        baseline=float(pi.max()),
        per_value=per_value,
        per_class=_by_class(np.nan_to_num(per_value), held / people, mask),
        who_is_high=None if mask is None else _played(scores, mask[truths], float(pi[mask].sum())),
        with_prior=prior is not None,
    )


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


def _class_game(high: Array, low: Array, share: float) -> ClassGame:
    """The game between two laws of one report."""
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


def _played(scores: Array, is_high: npt.NDArray[np.bool_], share: float) -> ClassGame | None:
    """The same, from people's scores: how likely each report makes a high value."""
    high, low = np.sort(scores[is_high]), np.sort(scores[~is_high])
    if not high.size or not low.size:
        return None
    # Rounding makes no order among scores that are the same: quotients of sums of k products, a
    # few parts in 10^13 for a thousand values. A picture of an attack, and no bound of one.
    slack = 1e-12
    below = np.searchsorted(low, high * (1 - slack)) + np.searchsorted(low, high * (1 + slack))
    return ClassGame(
        share=share,
        accuracy=float(((scores > 0.5) == is_high).mean()),
        baseline=max(share, 1 - share),
        total_variation=float((high > share).mean() - (low > share).mean()),
        auc=float(below.mean() / (2 * low.size)),
    )


def _class_laws(
    channel: FiniteChannel, pi: Array, mask: npt.NDArray[np.bool_]
) -> tuple[Array, Array]:
    """The law of a report of a high value, and of a low one."""
    weights = [
        np.where(m, pi if pi[m].sum() else 1.0, 0.0) / (pi[m].sum() or m.sum())
        for m in (mask, ~mask)
    ]
    if about_numbers(channel):
        linear = channel.linear(len(channel.domain), None)
        return linear.forward(weights[0]), linear.forward(weights[1])
    return channel.forward(weights[0]), channel.forward(weights[1])


def _rows(channel: NumericChannel, pi: Array, bins: int | None) -> Array:
    """The law of the report for each point, or for each bin of points by the prior within it."""
    points = len(channel.domain)
    place, linear = _bin_of(channel, bins or points), channel.linear(points, None)
    rows = []
    for b in range(bins or points):
        within = np.where(place == b, pi, 0.0)
        if not within.any():
            within = (place == b).astype(np.float64)
        rows.append(linear.forward(within / within.sum()))
    return np.array(rows)


def _binned(
    channel: Channel, pi: Array, mask: npt.NDArray[np.bool_] | None, bins: int | None
) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    """Prior and classes of the bins; no classes where a bin holds values of both."""
    if bins is None or not about_numbers(channel):
        return pi, mask
    place = _bin_of(channel, bins)
    if mask is not None:
        share = np.bincount(place, weights=mask) / np.bincount(place)
        mask = np.asarray(share == 1) if np.isin(share, (0, 1)).all() else None
    return np.asarray(np.bincount(place, weights=pi, minlength=bins)), mask


def _bin_of(channel: NumericChannel, bins: int) -> npt.NDArray[np.int64]:
    starts = np.zeros(len(channel.domain), dtype=np.int64)
    starts[point_bins(channel, bins)[1:]] = 1
    return np.asarray(np.cumsum(starts))


def _likelihoods(
    channel: Channel, pi: Array, bins: int | None
) -> Callable[[npt.NDArray[Any]], Array]:
    if bins is None or not about_numbers(channel):
        _no_bins(bins)
        return channel.likelihoods
    table = _rows(channel, pi, bins)
    group = channel.linear(len(channel.domain), None).group
    width = group(np.ones(channel.outputs, dtype=np.int64))
    which = np.repeat(np.arange(width.size), width)
    return lambda reports: np.asarray(table.T[which[reports]])


def _no_bins(bins: int | None) -> None:
    if bins is not None:
        raise ArgumentError("bins are for channels for numbers; leave them out")

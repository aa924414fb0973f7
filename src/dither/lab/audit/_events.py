"""Choosing events on one part of the samples, and certifying them on the other.

An event is a score at or beyond a threshold. One part of the samples fits the scores, a second
chooses a few events among all thresholds, the last counts how often those few happen. Scores that
are not fitted are chosen by the first two parts.

An event is worth what the last part would certify if it happened there as often as it did here.
Where counts are few that hopes too much, so of the events some are chosen by what the counts seen
would certify themselves: the first finds rare events, the second is not misled by luck.

Only the last part carries the statement: given the others, the events are fixed, and each count is
binomial. Each event's two probabilities are bounded, and the odds of right guesses by it
(`dither.lab.audit._coins`), at levels that `SharedLevels` shares out: all bounds hold at once with
probability at least ``confidence``. A claim is refuted at a fiftieth of that level. A guess of both
datasets, each on an event of its own, is an event of the game with coins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither._stats import EPS, lower_bound, normal_quantile, upper_bound, wilson
from dither.lab.audit._claims import EVENTS, Claim, SharedLevels, epsilon_of, mu_of
from dither.lab.audit._coins import PlayedCoins, odds_of, trials_of
from dither.lab.audit._outcomes import Floats
from dither.lab.audit._scores import EventScore, Mask

__all__ = ["ChosenEvent", "Event", "certify", "choose_events"]

_CUTS = 400
_RARE = 0.002, 0.05
"""Rates below which events are of a kind: a common one beside a rare one is as good as alone."""

FITTED = frozenset({"atoms", "classifier", "window"})
"""Kinds of scores that are fitted to the first part."""


@dataclass(frozen=True, slots=True)
class Event:
    """A certified event.

    Parameters
    ----------
    description : str
        What it is, in terms of the outcome's structure and of quantiles; no value of an outcome.
    likelier : {"d0", "d1", "either"}
        The dataset on which it is likelier; *either* where both are guessed, each on a part of it.
    p_lower, q_upper : float
        It has at least probability ``p_lower`` there, and at most ``q_upper`` on the other. Where
        both are guessed of a dataset that a fair coin chose: the guess is right with the former
        probability at least, and wrong with the latter at most.
    epsilon : float
        What it certifies, given the claimed delta: at least 0. Their ratio is bounded by itself
        too, and is often known better than both.
    delta : float
        What it certifies, given the claimed epsilon: at least 0.
    mu : float
        What it certifies of Gaussian differential privacy: at least 0.
    kind : {"given", "column", "binary", "window", "atoms", "classifier"}
        What its score is: the caller's, a number, the exponent of a lowest bit, a distance from a
        value, a set of outcomes, a classifier.
    refutes : bool
        Whether it contradicts the claim at the level of verdicts, which is stricter than that of
        the bounds.
    """

    description: str
    likelier: str
    p_lower: float
    q_upper: float
    epsilon: float
    delta: float
    mu: float
    kind: str
    refutes: bool = False

    def shared(self, distance: int, claim: Claim) -> Event:
        """What it certifies of one neighbour, where the datasets are so many apart."""
        if distance == 1:
            return self
        # A group's delta is at most delta·Σ e^(j·epsilon) over its steps, each at most the last.
        reach = (distance - 1) * claim.epsilon
        delta = self.delta * math.exp(-min(reach, 700.0)) / distance if reach < 700.0 else 0.0
        return replace(
            self,
            epsilon=math.nextafter(self.epsilon / distance, 0.0),
            delta=math.nextafter(delta * (1 - EPS * (4 + reach)), 0.0),
            mu=math.nextafter(self.mu / distance, 0.0),
        )

    def __str__(self) -> str:
        if self.likelier == "either":
            return (
                f"{self.description}: right with probability at least "
                f"{_rate(self.p_lower, ROUND_FLOOR)}, wrong with at most "
                f"{_rate(self.q_upper, ROUND_CEILING)}"
            )
        other = "d0" if self.likelier == "d1" else "d1"
        return (
            f"{self.description}: probability at least {_rate(self.p_lower, ROUND_FLOOR)} on "
            f"{self.likelier}, at most {_rate(self.q_upper, ROUND_CEILING)} on {other}"
        )


@dataclass(frozen=True, slots=True)
class ChosenEvent:
    """An event that is chosen and not yet certified.

    ``p`` and ``q`` are how often it happened where it chose, on the dataset on which it is likelier
    and on the other. ``partner`` is an event apart from it, likelier on the other dataset, where
    both are guessed.
    """

    score: EventScore
    cut: float
    above: bool
    likelier: bool
    worth: float
    p: float = 0.0
    q: float = 0.0
    partner: ChosenEvent | None = None

    def happens(self) -> Mask:
        """Of every outcome, whether it is in the event; one without the score never is."""
        values = self.score.values
        return values >= self.cut if self.above else values <= self.cut

    def guesses(self) -> npt.NDArray[np.int8]:
        """Of every outcome, the dataset that is guessed: 1 the second, -1 the first, 0 none."""
        found = np.where(self.happens(), np.int8(1 if self.likelier else -1), np.int8(0))
        return found if self.partner is None else found + self.partner.guesses()


@dataclass(frozen=True, slots=True)
class _Worth:
    """What events are chosen for.

    ``of`` takes rates on both datasets, and their number; ``of_guess`` the sums of two events'.
    ``hoped`` says whether the number is that which certifies. ``pool`` are the best of each score.
    """

    of: Callable[[Floats, Floats, int], Floats]
    of_guess: Callable[[Floats, Floats, int], Floats]
    hoped: bool
    pool: list[ChosenEvent]


def choose_events(
    scores: Iterable[EventScore],
    second: Mask,
    parts: tuple[Mask, Mask, Mask],
    *,
    claim: Claim,
    level: float,
) -> list[ChosenEvent]:
    """The few events that promise to certify most: of epsilon, of delta if claimed, and of mu.

    ``second`` says which outcomes are of the second dataset. ``parts`` are those outcomes that
    fitted the scores, those that may choose besides, and those that certify, of which only the
    number is used here. Most events are chosen to refute the claim, when they are certified at
    ``level``, the probability that any bound fails. The first is hoped for most.
    """
    fit, choose, certifying = parts
    later = min(int((certifying & (second == side)).sum()) for side in (False, True))
    turns = _turns(claim, SharedLevels(level, claim))
    worths = {id(worth): worth for worth, _ in turns}.values()
    for score in scores:
        # What was not fitted may be chosen by what fitted the others.
        part = choose if score.kind in FITTED else fit | choose
        halves = (part & ~second, part & second)
        sizes = [int(half.sum()) for half in halves]
        here, there = (np.sort(_known(score.values[half])) for half in halves)
        if not here.size and not there.size:
            continue
        cuts = _cuts(here, there)
        # One row for each way to cut, and for each dataset on which it may be likelier.
        ways = [(above, likelier) for above in (True, False) for likelier in (False, True)]
        rates = [
            [_rates(x, cuts, n, above) for x, n in zip((here, there), sizes, strict=True)]
            for above in (True, False)
        ]
        p = np.stack([pair[side] for pair in rates for side in (0, 1)])
        q = np.stack([pair[side] for pair in rates for side in (1, 0)])
        bands = [p <= _RARE[0], (p > _RARE[0]) & (p <= _RARE[1]), p > _RARE[1]]
        for worth in worths:
            n = later if worth.hoped else min(sizes)
            found = worth.of(p, q, n)
            places = [np.where(band, found, -np.inf).argmax(axis=1).tolist() for band in bands]
            best = {
                (above, likelier): [
                    ChosenEvent(
                        score, float(cuts[at[row]]), above, likelier, float(found[row, at[row]]),
                        float(p[row, at[row]]), float(q[row, at[row]]),
                    )
                    for at in places
                ]
                for row, (above, likelier) in enumerate(ways)
            }  # fmt: skip
            worth.pool.extend(max(events, key=lambda e: e.worth) for events in best.values())
            # Those of a kind: of two common events or two rare ones.
            pairs = [
                (one, other)
                for likelier in (True, False)
                for one, other in zip(best[True, likelier], best[False, not likelier], strict=True)
                if one.cut > other.cut  # so that no outcome is in both
            ]
            if pairs:
                right, wrong = np.array([(a.p + b.p, a.q + b.q) for a, b in pairs]).T
                promised = worth.of_guess(right, wrong, n).tolist()
                worth.pool.extend(
                    replace(one, worth=found, partner=other)
                    for (one, other), found in zip(pairs, promised, strict=True)
                )
    chosen: list[ChosenEvent] = []
    seen: list[npt.NDArray[np.int8]] = []
    for worth, until in turns:
        for candidate in sorted(worth.pool, key=lambda c: -c.worth):
            if len(chosen) >= until or candidate.worth == -math.inf:
                break
            guesses = candidate.guesses()[fit | choose]
            if not any(np.array_equal(guesses, g) for g in seen):
                chosen.append(candidate)
                seen.append(guesses)
    return chosen


def _turns(claim: Claim, levels: SharedLevels) -> list[tuple[_Worth, int]]:
    """What chooses in turn, and how many events may be chosen by then."""
    z = -normal_quantile(levels.each)
    sure = -normal_quantile(levels.odds(0)) if levels.share else 0.0

    def both(p: Floats, q: Floats, n: int) -> Floats:
        least = _least(p, n, z) - claim.delta
        with np.errstate(all="ignore"):
            ratio = np.maximum(least, 1e-300) / _most(q, n, z)
            return np.where(least > 0, np.log(ratio), -np.inf)

    def odds(p: Floats, q: Floats, n: int, events: int) -> Floats:
        half = trials_of(n) / 2
        # What delta may add, with two deviations and two.
        may = half * events * claim.delta
        may += 2 * math.sqrt(may) + 2 if may else 0.0
        right, wrong = half * p - may, half * q
        with np.errstate(all="ignore"):
            share = _most(wrong / (right + wrong), right + wrong, sure)
            return np.where((right > 0) & (share < 1), np.log(1 / share - 1), -np.inf)

    def epsilon(p: Floats, q: Floats, n: int) -> Floats:
        found = both(p, q, n)
        return np.maximum(found, odds(p, q, n, 1)) if levels.share else found

    def epsilon_of_guess(p: Floats, q: Floats, n: int) -> Floats:
        found = both(p / 2, q / 2, trials_of(n))
        return np.maximum(found, odds(p, q, n, 2)) if levels.share else found

    def mu(p: Floats, q: Floats, n: int) -> Floats:
        return _normal_quantile(_least(p, n, z)) - _normal_quantile(_most(q, n, z))

    # Beyond e^709 doubles overflow, and at e^700 no event promises any delta already.
    def delta(p: Floats, q: Floats, n: int) -> Floats:
        return _least(p, n, z) - math.exp(min(claim.epsilon, 700.0)) * _most(q, n, z)

    def in_game(of: Callable[[Floats, Floats, int], Floats]) -> Callable[..., Floats]:
        return lambda p, q, n: of(p / 2, q / 2, trials_of(n))

    later, now = (_Worth(epsilon, epsilon_of_guess, hoped, []) for hoped in (True, False))
    likely = _Worth(mu, in_game(mu), False, [])
    if claim.mu is not None:
        return [
            (likely, 2), (_Worth(mu, in_game(mu), True, []), EVENTS - 2), (now, EVENTS)
        ]  # fmt: skip
    if claim.delta > 0:
        by_delta = [_Worth(delta, in_game(delta), hoped, []) for hoped in (False, True)]
        return [
            (later, 1), (by_delta[0], 2), (by_delta[1], 3), (later, EVENTS - 1), (likely, EVENTS)
        ]  # fmt: skip
    return [(later, 1), (now, 3), (later, EVENTS - 1), (likely, EVENTS)]


def certify(
    chosen: Iterable[ChosenEvent],
    second: Mask,
    certifying: Mask,
    *,
    claim: Claim,
    level: float,
    coins: PlayedCoins,
) -> list[Event]:
    """Count chosen events on samples that had no part in choosing, and bound their probabilities.

    The probability that any bound fails is at most ``level``.
    """
    levels = SharedLevels(level, claim)
    used = coins.used(second, certifying)
    found = []
    for place, event in enumerate(list(chosen)[:EVENTS]):
        guesses = event.guesses()
        truth = np.where(second, 1, -1)
        right = int((used & (guesses == truth)).sum())
        wrong = int((used & (guesses == -truth)).sum())
        if event.partner is not None and not coins.held:
            continue
        counts = [(right, coins.trials), (wrong, coins.trials)]
        if event.partner is None:
            sides = (certifying & (second == s) for s in (event.likelier, not event.likelier))
            counts = [(int((guesses[s] != 0).sum()), int(s.sum())) for s in sides]
        p = lower_bound(*counts[0], levels.each)
        q = upper_bound(*counts[1], levels.each)
        epsilon = epsilon_of(p, q, claim.delta)
        refutes = claim.refuted_by(p, q) and claim.refuted_by(
            lower_bound(*counts[0], levels.refuting), upper_bound(*counts[1], levels.refuting)
        )
        if coins.held and levels.share:
            odds = odds_of(
                right, wrong, coins.trials, levels.odds(place), claim.delta,
                both=event.partner is not None,
            )  # fmt: skip
            epsilon = max(epsilon, odds)
            refutes = refutes or odds > claim.epsilon
        # Where a delta is left e^epsilon·q is at most 1, and errs by 3 halves of EPS and by what
        # epsilon differs from the number that was printed; two differences by a half each.
        delta = p - math.exp(min(claim.epsilon, 700.0)) * q - EPS * (3 + claim.epsilon)
        found.append(
            Event(
                _describe_guess(event, certifying),
                "either" if event.partner is not None else "d1" if event.likelier else "d0",
                p,
                q,
                max(0.0, epsilon),
                max(0.0, delta),
                max(0.0, mu_of(p, q)),
                event.score.kind,
                refutes,
            )
        )
    return sorted(found, key=lambda e: -e.epsilon)


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _cuts(here: Floats, there: Floats) -> Floats:
    """Values to cut at: all where they are few, else quantiles that grow dense at both ends."""
    both = np.sort(np.concatenate([here, there]), kind="stable")  # of two sorted runs, a merge
    distinct: Floats = both[np.append(True, both[1:] != both[:-1])]
    if distinct.size <= _CUTS:
        return distinct
    tail = np.geomspace(1.0 / both.size, 0.2, _CUTS // 4)
    shares = np.concatenate([tail, np.linspace(0.2, 0.8, _CUTS // 2), 1.0 - tail])
    places = np.clip((shares * both.size).astype(np.int64), 0, both.size - 1)
    return np.unique(both[places])


def _rates(values: Floats, cuts: Floats, size: int, above: bool) -> Floats:
    """Shares of a sorted sample at or beyond each cut."""
    if above:
        hits = values.size - np.searchsorted(values, cuts, side="left")
    else:
        hits = np.searchsorted(values, cuts, side="right")
    return np.asarray(hits / max(size, 1))


def _least(rate: Floats, n: int, z: float) -> Floats:
    """Nearly Clopper and Pearson's lower bound of a rate: quick, and only for choosing."""
    k = rate * n
    with np.errstate(all="ignore"):
        # Wilson and Hilferty's, of a Poisson count: it is good where Wilson's is not.
        few = k * np.maximum(0.0, 1.0 - 1.0 / (9.0 * k) - z / (3.0 * np.sqrt(k))) ** 3 / n
    return np.maximum(np.where(k > 0, few, 0.0), np.where(rate > 0.1, wilson(rate, n, -z), 0.0))


def _most(rate: Floats, n: int | Floats, z: float) -> Floats:
    """Nearly the upper bound."""
    k = rate * n + 1.0
    few = k * (1.0 - 1.0 / (9.0 * k) + z / (3.0 * np.sqrt(k))) ** 3 / n
    return np.minimum(np.minimum(few, 1.0), np.where(rate > 0.1, wilson(rate, n, z), 1.0))


def _normal_quantile(p: Floats) -> Floats:
    """Φ⁻¹, from a table in the logit of p: quick, and only for choosing."""
    inner = np.clip(p, 1e-12, 1 - 1e-12)
    logits, quantiles = _table()
    return np.interp(np.log(inner / (1 - inner)), logits, quantiles)


@lru_cache(maxsize=1)
def _table() -> tuple[Floats, Floats]:
    logits = np.linspace(-28.0, 28.0, 561)
    return logits, np.array([normal_quantile(1 / (1 + math.exp(-x))) for x in logits])


def _describe_guess(event: ChosenEvent, part: Mask) -> str:
    """What the event is, or when which dataset is guessed."""
    if event.partner is None:
        return _describe(event, part)
    one, other = (event, event.partner) if event.likelier else (event.partner, event)
    return f"guess d1 where {_describe(one, part)}, and d0 where {_describe(other, part)}"


def _describe(event: ChosenEvent, part: Mask) -> str:
    """What the event is, without any value of an outcome."""
    score, side = event.score, "at or above" if event.above else "at or below"
    if score.kind == "atoms":
        return _describe_atoms(event, part)
    if score.kind == "binary":
        return f"{score.name} is {side} 2^{event.cut:.0f}"
    if score.statements is not None:
        return score.statements[(event.cut > 0.5) == event.above]
    known = _known(score.values[part])
    if known.size and event.above and event.cut >= known.max():
        return f"{score.name} takes its largest value"
    if known.size and not event.above and event.cut <= known.min():
        return f"{score.name} takes its smallest value"
    share = float(np.mean(known <= event.cut)) if known.size else 0.0
    return f"{score.name} is {side} its percentile {100 * share:.4g}"


def _describe_atoms(event: ChosenEvent, part: Mask) -> str:
    atoms = event.score.atoms
    assert atoms is not None
    codes = np.unique(atoms.codes[part & event.happens()])
    other, this = ("d0", "d1") if event.likelier else ("d1", "d0")
    if atoms.labels:
        names = ", ".join(atoms.labels[int(c)] for c in codes[:5])
        return f"{atoms.name} is {names or 'one not seen'}"
    which = "a value" if codes.size == 1 else f"one of {codes.size:,} values"
    return f"{atoms.name} is {which} likelier on {this} than on {other}"


def _rate(value: float, rounding: str) -> str:
    """A percentage to three digits, rounded so that the statement stays true."""
    kept = Context(prec=3, rounding=rounding).create_decimal(Decimal(value) * 100)
    return f"{float(kept):g} %"

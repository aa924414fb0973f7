"""Choosing events on one part of the samples, and certifying them on the other.

An event is a score at or beyond a threshold. One part of the samples fits the scores, a second
chooses a few events among all thresholds, the last counts how often those few happen. Scores that
are not fitted are chosen by the first two parts.

An event is worth what the last part would certify if it happened there as often as it did here.
Where counts are few that hopes too much, so of the events some are chosen by what the counts seen
would certify themselves: the first finds rare events, the second is not misled by luck.

Only the last part carries the statement: given the others, the events are fixed, and each count is
binomial. With E events, each probability is bounded at level (1 - confidence)/(2·E), so that all
bounds hold at once with probability at least ``confidence``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

import numpy as np

from dither._stats import EPS, lower_bound, normal_quantile, upper_bound, wilson
from dither.lab.audit._claims import EVENTS, Claim, epsilon_of, mu_of
from dither.lab.audit._outcomes import Floats
from dither.lab.audit._scores import EventScore, Mask

__all__ = ["ChosenEvent", "Event", "certify", "choose_events"]

_CUTS = 400
FITTED = frozenset({"atoms", "classifier"})
"""Kinds of scores that are fitted to the first part."""

Worth = Callable[[Floats, Floats, int], Floats]


@dataclass(frozen=True, slots=True)
class Event:
    """A certified event.

    Parameters
    ----------
    description : str
        What it is, in terms of the outcome's structure and of quantiles; no value of an outcome.
    likelier : {"d0", "d1"}
        The dataset on which it is likelier.
    p_lower, q_upper : float
        It has at least probability ``p_lower`` there, and at most ``q_upper`` on the other.
    epsilon : float
        What it certifies, given the claimed delta: at least 0.
    delta : float
        What it certifies, given the claimed epsilon: at least 0.
    mu : float
        What it certifies of Gaussian differential privacy: at least 0.
    kind : {"column", "binary", "atoms", "classifier"}
        What its score is: a number, the exponent of a lowest bit, a set of outcomes, a classifier.
    """

    description: str
    likelier: str
    p_lower: float
    q_upper: float
    epsilon: float
    delta: float
    mu: float
    kind: str

    def __str__(self) -> str:
        other = "d0" if self.likelier == "d1" else "d1"
        return (
            f"{self.description}: probability at least {_rate(self.p_lower, ROUND_FLOOR)} on "
            f"{self.likelier}, at most {_rate(self.q_upper, ROUND_CEILING)} on {other}"
        )


@dataclass(frozen=True, slots=True)
class ChosenEvent:
    """An event that is chosen and not yet certified."""

    score: EventScore
    cut: float
    above: bool
    likelier: bool
    worth: float

    def happens(self) -> Mask:
        """Of every outcome, whether it is in the event; one without the score never is."""
        values = self.score.values
        return values >= self.cut if self.above else values <= self.cut


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
    ``level``, the probability that any bound fails.
    """
    fit, choose, certifying = parts
    later = min(int((certifying & (second == side)).sum()) for side in (False, True))
    z = -normal_quantile(level / (2 * EVENTS))

    def epsilon(p: Floats, q: Floats, n: int) -> Floats:
        least = _least(p, n, z) - claim.delta
        with np.errstate(all="ignore"):
            ratio = np.maximum(least, 1e-300) / _most(q, n, z)
            return np.where(least > 0, np.log(ratio), -np.inf)

    def mu(p: Floats, q: Floats, n: int) -> Floats:
        return _normal_quantile(_least(p, n, z)) - _normal_quantile(_most(q, n, z))

    # Beyond e^709 doubles overflow, and at e^700 no event promises any delta already.
    def delta(p: Floats, q: Floats, n: int) -> Floats:
        return _least(p, n, z) - math.exp(min(claim.epsilon, 700.0)) * _most(q, n, z)

    # Worths in the order in which they choose: whether by the counts that certify, and how many
    # events may be chosen by then.
    worths: list[tuple[Worth, bool, int, list[ChosenEvent]]]
    if claim.mu is not None:
        worths = [(mu, False, 2, []), (mu, True, EVENTS - 2, []), (epsilon, False, EVENTS, [])]
    elif claim.delta > 0:
        worths = [
            (delta, False, 1, []),
            (delta, True, 3, []),
            (epsilon, True, EVENTS - 1, []),
            (mu, False, EVENTS, []),
        ]
    else:
        worths = [
            (epsilon, False, 2, []),
            (epsilon, True, EVENTS - 1, []),
            (mu, False, EVENTS, []),
        ]
    for score in scores:
        # What was not fitted may be chosen by what fitted the others.
        part = choose if score.kind in FITTED else fit | choose
        halves = (part & ~second, part & second)
        sizes = [int(half.sum()) for half in halves]
        here, there = (np.sort(_known(score.values[half])) for half in halves)
        if not here.size and not there.size:
            continue
        cuts = _cuts(here, there)
        for above in (True, False):
            a, b = (_rates(x, cuts, n, above) for x, n in zip((here, there), sizes, strict=True))
            for likelier, p, q in ((False, a, b), (True, b, a)):
                for worth, hoped, _, into in worths:
                    n = later if hoped else min(sizes)
                    into.append(_best(score, cuts, above, likelier, worth(p, q, n)))
    chosen: list[ChosenEvent] = []
    for _, _, most, pool in worths:
        for candidate in sorted(pool, key=lambda c: -c.worth):
            if len(chosen) >= most:
                break
            if candidate.worth > -math.inf and not _repeats(candidate, chosen, fit | choose):
                chosen.append(candidate)
    return chosen


def certify(
    chosen: Iterable[ChosenEvent], second: Mask, certifying: Mask, *, claim: Claim, level: float
) -> list[Event]:
    """Count chosen events on samples that had no part in choosing, and bound their probabilities.

    The probability that any bound fails is at most ``level``.
    """
    events = list(chosen)
    each = level / (2 * max(1, len(events)))
    found = []
    for event in events:
        happens = event.happens()
        this, other = (
            certifying & (second == side) for side in (event.likelier, not event.likelier)
        )
        p = lower_bound(int(happens[this].sum()), int(this.sum()), each)
        q = upper_bound(int(happens[other].sum()), int(other.sum()), each)
        # Where a delta is left e^epsilon·q is at most 1, and errs by 3 halves of EPS and by what
        # epsilon differs from the number that was printed; two differences by a half each.
        delta = p - math.exp(min(claim.epsilon, 700.0)) * q - EPS * (3 + claim.epsilon)
        found.append(
            Event(
                _describe(event, certifying),
                "d1" if event.likelier else "d0",
                p,
                q,
                max(0.0, epsilon_of(p, q, claim.delta)),
                max(0.0, delta),
                max(0.0, mu_of(p, q)),
                event.score.kind,
            )
        )
    return sorted(found, key=lambda e: -e.epsilon)


def _best(
    score: EventScore, cuts: Floats, above: bool, likelier: bool, worths: Floats
) -> ChosenEvent:
    i = int(worths.argmax())
    return ChosenEvent(score, float(cuts[i]), above, likelier, float(worths[i]))


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _cuts(here: Floats, there: Floats) -> Floats:
    """Values to cut at: all where they are few, else quantiles that grow dense at both ends."""
    both = np.sort(np.concatenate([here, there]))
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


def _most(rate: Floats, n: int, z: float) -> Floats:
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


def _repeats(candidate: ChosenEvent, chosen: list[ChosenEvent], part: Mask) -> bool:
    """Whether the same outcomes are in an event that is chosen already."""
    happens = candidate.happens()[part]
    return any(
        c.likelier == candidate.likelier and np.array_equal(happens, c.happens()[part])
        for c in chosen
    )


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

"""The auditor: a certified lower bound of epsilon for any mechanism, seen from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither._format import level
from dither.errors import ArgumentError
from dither.lab._calls import attempted
from dither.lab._verdicts import Outcome
from dither.lab.audit import _reuse as reuse
from dither.lab.audit._canaries import within_family
from dither.lab.audit._claims import (
    CERTIFYING,
    CERTIFYING_GIVEN,
    Claim,
    SharedLevels,
    certifying,
    check_samples,
)
from dither.lab.audit._coins import flip_coins, own_words
from dither.lab.audit._events import Event, certify, choose_events
from dither.lab.audit._flattening import Raised, read
from dither.lab.audit._given import given_score
from dither.lab.audit._outcomes import Outcomes, describe_outcomes, varies
from dither.lab.audit._result import Audit
from dither.lab.audit._sampling import Draws, draw_both, is_vectorised, joined
from dither.lab.audit._scores import EventScore, Mask, every_score
from dither.numeric import SimulatedWords
from dither.privacy import Loss

__all__ = ["audit"]

_PLAIN = ("given", "column", "binary", "window", "atoms", "classifier")
_FITTING = 0.2
"""The share of the samples that scores are fitted to."""


def audit(
    mechanism: Callable[..., Any],
    d0: Any,
    d1: Any,
    epsilon: float | Fraction = 1.0,
    delta: float | Fraction = 0.0,
    samples: int = 100_000,
    confidence: float = 0.99,
    *,
    mu: float | None = None,
    distance: int = 1,
    score: Callable[[Any], Any] | None = None,
    family: Callable[[Fraction], Loss] | None = None,
    vectorised: bool | None = None,
    words: SimulatedWords | None = None,
    time_limit: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Try to refute that a mechanism is (epsilon, delta)-differentially private.

    The mechanism is called on two neighbouring datasets. Half of the outputs find events that tell
    the datasets apart (thresholds of every coordinate and of simple statistics, sets of atoms by
    their likelihood ratio, distances from a value, learned scores of all coordinates, low-order
    bits of floats, types, lengths, orders of keys, warnings, exceptions and what they hold); the
    other half bounds the probabilities of the few best and the odds of guesses by them, by Clopper
    and Pearson.

    Parameters
    ----------
    mechanism : callable
        Of one dataset, returning one output of any type; or a vectorised sampler of (data, size).
        Its draws must be independent, and it must leave the dataset as it is.
        An exit is an outcome as any exception is. What ends the process, such as ``os._exit``, ends
        the audit and the program; ``dither audit`` asks a process of its own.
    d0, d1 : any
        Neighbours, in the sense of the claim: the auditor cannot check that they are.
    epsilon : float or Fraction
        Claimed, at least 0.
    delta : float or Fraction
        Claimed, in [0, 1).
    samples : int
        Outputs from each dataset.
    confidence : float
        In (0, 1): the probability that no certified bound is wrong. A verdict is surer.
    mu : float, optional
        Claimed mu of Gaussian differential privacy, in the place of epsilon and delta.
    distance : int
        How many neighbours apart d0 and d1 are, at least 1. The claim is then held to what it says
        of groups, and what is certified is of one neighbour. Small epsilons, and small shares of a
        large one, are seen with far fewer samples so: epsilon·distance near 2 is best for noise of
        a Laplace kind. Above 1 only for delta = 0, or mu.
    score : callable, optional
        Looks at events of this number alone: of one output, or where mechanism is vectorised of
        all outputs at once, one number each, NaN for none. It must look at each output by itself.
        A fifth of the outputs then chooses thresholds, and the rest certifies.
    family : callable, optional
        ``family(noise)`` gives the loss between d0 and d1 with so many times the noise. If the
        mechanism is of this family, ``within`` is a lower bound of its epsilon: events that are
        common bound that, too, where those that show it all are too rare to be seen. It has no part
        in the verdict.
    vectorised : bool, optional
        Whether mechanism takes (data, size) and returns as many outputs. By default, it does if
        its second argument is called ``size``.
    words : SimulatedWords, optional
        Splits the samples; the same words and outputs give the same result. The mechanism may draw
        from the same ones.
    time_limit : float, optional
        Seconds after which no call is begun; what was drawn is used. Ctrl-C does the same. How long
        a call takes must then not depend on what it returns, nor when you stop on what you saw.
    progress : callable, optional
        Called with (done, of) samples of each dataset.

    Returns
    -------
    Audit
        *Violated* if a certified event contradicts the claim, and would at a fiftieth of the level
        (99.98 % confidence in the place of 99 %), or noise is seen to be reused;
        *inconclusive* where every call failed, no difference was seen (nor between scores), or both
        datasets are the same, so that no claim could be refuted; else *not refuted*.

    Raises
    ------
    ArgumentError
        An argument is out of range, score fails, or no outcome of so few samples could refute the
        claim; says how many could.

    Notes
    -----
    Guarantee. If the mechanism's draws are independent and it satisfies the claim for all
    neighbours on a path of ``distance`` steps between these two datasets, then any certified bound
    is too high with probability at most 1 - confidence, and the verdict is *violated* with at most
    a fiftieth of that: (1 - confidence)/50, or /100 with mu (and a few 1e-9, for the tests of
    reuse). The events and their levels are fixed before the outcomes that certify are looked at,
    and one audit has one verdict: who audits until one accuses has another probability.

    References
    ----------
    Ding, Wang, Wang, Zhang and Kifer, "Detecting violations of differential privacy", CCS 2018;
    Bichsel, Steffen, Bogunovic and Vechev, "DP-Sniper", S&P 2021; Mironov, "On significance of
    the least significant bits for differential privacy", CCS 2012.

    Examples
    --------
    >>> from dither.noise import discrete_laplace
    >>> def count(rows, size):
    ...     return len(rows) + discrete_laplace(Fraction(1, 2), size)
    >>> found = audit(count, [1] * 10, [1] * 11, epsilon=1, samples=20_000)
    >>> found.verdict.value, found.lower > 1.5
    ('violated', True)

    Sensitivity 2 where a twentieth is claimed, 20 neighbours apart:

    >>> def total(rows, size):
    ...     return sum(rows) + discrete_laplace(Fraction(10), size)
    >>> found = audit(total, [], [2] * 20, Fraction(1, 10), distance=20, samples=5_000)
    >>> found.verdict.value, 0.1 < found.lower < 0.2
    ('violated', True)
    """
    claim = Claim.of(epsilon, delta, mu)
    confidence = check_confidence(confidence)
    samples = whole("samples", samples)
    if not callable(mechanism):
        raise ArgumentError("mechanism must be callable: of a dataset, or of (dataset, size)")
    for name, data in (("d0", d0), ("d1", d1)):
        if isinstance(data, Iterator):
            raise ArgumentError(f"{name} is an iterator, which one call uses up: pass a list of it")
    distance = whole("distance", distance, least=1)
    if score is not None and not callable(score):
        raise ArgumentError("score must be callable: of an output, or of all of a sampler's")
    if family is not None and distance > 1:
        raise ArgumentError("family goes with distance 1: it is of d0 and d1 as they are")
    group, share = claim.apart(distance), CERTIFYING if score is None else CERTIFYING_GIVEN
    check_samples(samples, group, confidence, share)
    start = time.perf_counter()
    many = is_vectorised(mechanism, vectorised)
    words = own_words(words or SimulatedWords(0))
    draws = draw_both(
        mechanism, d0, d1, samples, vectorised=many, time_limit=time_limit, progress=progress,
        words=words,
    )  # fmt: skip
    drawn = len(draws.here)
    check_samples(drawn, group, confidence, share)
    parts = _split(drawn, words, share)
    coins = flip_coins(certifying(drawn, share), words)
    second = np.repeat([False, True], drawn)
    outputs = joined([draws.here, draws.there])
    outcomes = describe_outcomes(outputs, parts[0] | parts[1], draws.warned, second, parts[0])
    reused, dependent = _reuse(outcomes, draws)
    events: list[Event] = []
    given = None if score is None else given_score(score, draws, vectorised=many)
    if dependent is None:
        scores = every_score(outcomes, second, parts[0]) if given is None else [given]
        total = 1 - confidence
        chosen = choose_events(scores, second, parts, claim=group, level=total)
        events = certify(chosen, second, parts[2], claim=group, level=total, coins=coins)
        events = [event.shared(distance, claim) for event in events]
    lower = max((e.epsilon for e in events), default=0.0)
    least_mu = max((e.mu for e in events), default=0.0)
    over = [
        e for e in events if (e.epsilon > claim.epsilon if claim.mu is None else e.mu > claim.mu)
    ]
    refuting = [e for e in over if e.refutes]
    violated = bool(refuting) or reused is not None
    idle = () if violated else _idle(outcomes, outputs, d0, d1, given, dependent)
    unrefuted = Outcome.INCONCLUSIVE if idle else Outcome.NOT_REFUTED
    return Audit(
        verdict=Outcome.VIOLATED if violated else unrefuted,
        lower=lower,
        delta=max((e.delta for e in events), default=0.0),
        mu=least_mu,
        event=None if idle else _shown(refuting or events, claim),
        events=tuple(events),
        claimed=claim,
        samples=drawn,
        confidence=confidence,
        seconds=time.perf_counter() - start,
        distance=distance,
        within=None if family is None else _within(family, events, claim),
        reuse=reused,
        independent=dependent is None,
        notes=(
            *idle,
            *_unsure(over, violated, SharedLevels(1 - confidence, group)),
            *_notes(outcomes, outputs, draws, samples, dependent is None),
        ),
    )


def _split(drawn: int, words: SimulatedWords, share: float) -> tuple[Mask, Mask, Mask]:
    """Which outcomes fit scores, choose events and certify: a random part of each dataset."""
    masks = tuple(np.zeros(2 * drawn, dtype=bool) for _ in range(3))
    choosing = round((1 - share) * drawn)
    fitting = min(round(_FITTING * drawn), choosing)
    for side in (0, 1):
        order = np.argsort(words.words(drawn), kind="stable") + side * drawn
        for mask, part in zip(
            masks, (order[:fitting], order[fitting:choosing], order[choosing:]), strict=True
        ):
            mask[part] = True
    return masks[0], masks[1], masks[2]


def _reuse(outcomes: Outcomes, draws: Draws) -> tuple[str | None, str | None]:
    """How noise is reused, if it is, and how draws depend on each other, if they do."""
    codes = outcomes.atoms[0].codes
    n = len(draws.here)
    here, there = codes[:n], codes[n:]
    found = reuse.fixed_output(here, there)
    if found is None and draws.again is not None:
        both = describe_outcomes(joined(draws.again), np.ones(2 * len(draws.again[0]), dtype=bool))
        twice = both.atoms[0].codes
        found = reuse.same_again(twice[: len(twice) // 2], twice[len(twice) // 2 :])
    if found is None:
        found = reuse.same_difference(outcomes.raw[:n], outcomes.raw[n:])
    # In the order of all calls, and in those of each dataset.
    orders: list[Any] = [slice(0, n), slice(n, None)]
    if draws.times is not None:
        orders.append(np.argsort(draws.times))
    late = [said for order in orders if (said := reuse.repeats_in_time(codes[order]))]
    if draws.times is not None and reuse.tells_the_last(codes, outcomes.raw, draws.times):
        late.append((reuse.KEEPS, False))
    columns = outcomes.raw.T if draws.times is None else outcomes.raw.T[:1]
    for place, values in enumerate(columns):
        alike = [seen for order in orders if (seen := reuse.alike_in_time(values[order]))]
        if not alike:
            continue
        if reuse.is_clock(values[orders[-1]] if draws.times is not None else values[:n]):
            # Of calls in random order a clock says nothing.
            late += [(reuse.CLOCK, False)] if draws.times is None else []
        else:
            late += [(alike[0], place == 0)]
    sure = [words for words, is_sure in late if is_sure]
    if sure:
        return found or sure[0], sure[0]
    return found, late[0][0] if late else None


def _within(family: Callable[[Fraction], Loss], events: list[Event], claim: Claim) -> float:
    """The epsilon of the least noise that any event refutes, at the claimed delta."""
    pairs = [(e.p_lower, e.q_upper) for e in events if e.p_lower > e.q_upper]
    refuted = lambda loss: any(p > float(loss.tpr(q).upper) for p, q in pairs)  # noqa: E731
    return within_family(family, refuted, claim.delta)


def _shown(events: list[Event], claim: Claim) -> Event | None:
    """The event that certifies most, or a simpler one that certifies nearly as much."""
    if not events:
        return None
    by_mu = claim.mu is not None
    worth = [e.mu if by_mu else e.epsilon for e in events]
    most, claimed = max(worth), claim.epsilon if claim.mu is None else claim.mu
    # A simpler one must refute where the best one does.
    least = max(most - 0.02 * max(1.0, most), claimed if most > claimed else 0.0)
    near = [e for e, w in zip(events, worth, strict=True) if w > least or w == most]
    return min(
        near,
        key=lambda e: (
            _PLAIN.index(e.kind), e.likelier == "either", -(e.mu if by_mu else e.epsilon)
        ),
    )  # fmt: skip


def _unsure(over: list[Event], violated: bool, levels: SharedLevels) -> tuple[str, ...]:
    """That more is certified than was claimed, and no verdict follows yet."""
    if violated or not over:
        return ()
    sure = level(1 - levels.verdict)
    return (
        f"what is certified is above the claim; a verdict is given at {sure} confidence: audit "
        "again, with more samples",
    )


def _idle(
    outcomes: Outcomes,
    outputs: Any,
    d0: Any,
    d1: Any,
    given: EventScore | None,
    dependent: str | None,
) -> tuple[str, ...]:
    """Why nothing could have been refuted."""
    if _same(d0, d1):
        return ("d0 and d1 are the same: give two neighbours that differ",)
    if not isinstance(outputs, np.ndarray) and all(isinstance(o, Raised) for o in outputs):
        return ("every call failed: call the mechanism yourself on d0 and on d1",)
    if not outcomes.varies:
        return ("no difference was seen between outcomes, of either dataset",)
    if given is not None and not varies(given.values):
        return ("the score is the same for every output",)
    return () if dependent is None else (dependent,)


def _same(d0: Any, d1: Any) -> bool:
    """Whether two datasets are the same in all that can be seen of them."""
    if d0 is d1:
        return True
    if type(d0) is not type(d1) or _differ(d0, d1):
        return False
    (one, _, held), (two, _, other) = read(d0), read(d1)
    seen = not held.blind and not other.blind
    return seen and one == two and held.orders == other.orders


def _differ(d0: Any, d1: Any) -> bool:
    """Whether they compare as different: large ones are then not looked into for nothing."""
    found, error = attempted(_compared, d0, d1)
    return error is None and found is True  # or it compares in a way of its own


def _compared(d0: Any, d1: Any) -> bool:
    if isinstance(d0, np.ndarray):
        return not np.array_equal(d0, d1, equal_nan=d0.dtype.kind in "fc")
    if callable(getattr(d0, "equals", None)):
        return not d0.equals(d1)
    return bool(d0 != d1)


def _notes(
    outcomes: Outcomes, outputs: Any, draws: Draws, asked: int, independent: bool
) -> tuple[str, ...]:
    notes = []
    if draws.stopped:
        notes.append(f"sampling was stopped before {asked:,}")
    if not independent:
        notes.append("its draws are not independent, so no probability is certified")
    if outcomes.blind:
        notes.append(
            f"it returns {', '.join(outcomes.blind[:3])}, which cannot be looked into: let it "
            "return what it holds, as numbers, texts or tuples"
        )
    kinds = [", ".join(sorted(kinds)) or "nothing" for kinds in draws.warns]
    if kinds[0] != kinds[1]:
        notes.append(
            f"it warns of {kinds[0]} on d0 and of {kinds[1]} on d1, which tells them apart"
        )
    if not isinstance(outputs, np.ndarray):
        failed = sorted({f"raises {one.kind}" for one in outputs if isinstance(one, Raised)})
        if failed:
            notes.append(f"the mechanism sometimes {', '.join(failed[:3])}; that is an outcome too")
    return tuple(notes)

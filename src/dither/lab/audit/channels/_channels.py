"""The auditor of local channels: a certified lower bound of epsilon over all inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dither._checks import confidence as check_confidence
from dither._checks import listed, whole
from dither._format import Printable, at_least, count_text, level
from dither._search import least_integer
from dither.errors import ArgumentError
from dither.lab._verdicts import Outcome, paragraph
from dither.lab.audit._audit import audit
from dither.lab.audit._claims import Claim
from dither.lab.audit._coins import own_words
from dither.lab.audit._outcomes import describe_outcomes
from dither.lab.audit._result import Audit
from dither.lab.audit._sampling import draw_mixed, is_vectorised
from dither.lab.audit.channels._evidence import every_evidence, suspects
from dither.lab.audit.channels._games import (
    RULES,
    GuessEvent,
    certify_guesses,
    choose_rules,
    game_epsilon,
)
from dither.numeric import SimulatedWords

__all__ = ["ChannelAudit", "audit_channel"]

_SCAN, _GAME = 0.3, 0.4
"""The shares of the outputs that look for what is wrong, and that guess inputs; the rest is of the
two inputs that look worst."""

_FITTING = 0.5
_OF_VERDICTS = 0.02
_MOST_INPUTS = 4096


@dataclass(frozen=True, slots=True)
class ChannelAudit(Printable):
    """The result of `audit_channel`.

    Attributes
    ----------
    verdict : Outcome
        As of an `Audit`.
    lower : float
        The certified lower bound of epsilon at the claimed delta; 0 where nothing is certified.
    claimed : Claim
    inputs : int
        How many inputs were audited at once.
    guesses : tuple of GuessEvent
        What guesses of inputs certified, the best first.
    pair : Audit
        The audit of the two inputs that looked worst, with outputs of its own.
    places : tuple of int
        Their places among the inputs.
    samples : int
        All outputs.
    confidence : float
        The probability that no bound is wrong, if draws are independent. A true claim is *violated*
        with probability at most a fiftieth of the rest.
    seconds : float
    notes : tuple of str

    Examples
    --------
    >>> from dither.lab.audit import audit_channel
    >>> found = audit_channel(lambda value: value, range(8), epsilon=1, samples=5000)
    >>> print(found.verdict, found.lower > 3)
    violated True
    """

    verdict: Outcome
    lower: float
    claimed: Claim
    inputs: int
    guesses: tuple[GuessEvent, ...]
    pair: Audit
    places: tuple[int, int]
    samples: int
    confidence: float
    seconds: float
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """The result in a paragraph for people, which says what it does not say."""
        first, second = self.places
        lines = [
            f"{self.verdict.upper()}: claimed {self.claimed}, of any two inputs; certified "
            f"ε >= {at_least(self.lower)} at {level(self.confidence)} confidence."
        ]
        if self.guesses:
            best = self.guesses[0]
            lines.append(f"Guesses: {best}, which certifies ε >= {at_least(best.epsilon)}.")
        lines.append(
            f"Inputs {first + 1:,} and {second + 1:,} of the list looked worst: certified "
            f"ε >= {at_least(self.pair.lower)}."
        )
        if self.pair.reuse:
            lines.append(f"Reused noise: {self.pair.reuse}.")
        if self.pair.event is not None:
            lines.append(f"Event of the two, first d0 and then d1: {self.pair.event}.")
        lines += [f"Note: {note}." for note in self.notes]
        lines.append(
            f"{self.samples:,} outputs of {count_text(self.inputs, 'input')}, {self.seconds:.1f} s."
        )
        if self.verdict in (Outcome.NOT_REFUTED, Outcome.INCONCLUSIVE):
            lines.append(self.verdict.sentence)
        return paragraph(lines)


def audit_channel(
    channel: Callable[..., Any],
    inputs: Sequence[Any],
    epsilon: float | Fraction = 1.0,
    delta: float | Fraction = 0.0,
    samples: int = 200_000,
    confidence: float = 0.99,
    *,
    score: Callable[[Any, Any], Any] | None = None,
    vectorised: bool | None = None,
    words: SimulatedWords | None = None,
) -> ChannelAudit:
    """Try to refute that a local channel is (epsilon, delta)-private, over all of its inputs.

    Of a channel any two inputs are neighbours, and a fault may be of one of them, or so small for
    each two that it shows in all together. A part of the outputs looks for both; a second part
    guesses inputs that a die chose, of all or of groups of them; the rest audits the two inputs
    that looked worst, as `audit` does.

    Parameters
    ----------
    channel : callable
        Of one input, returning one output of any type; or a vectorised sampler of (input, size).
        Its draws must be independent.
    inputs : sequence
        From 2 to 4,096 inputs, all different.
    epsilon : float or Fraction
        Claimed for any two inputs, at least 0.
    delta : float or Fraction
        Claimed, in [0, 1).
    samples : int
        Outputs, of all inputs together.
    confidence : float
        In (0, 1): the probability that no certified bound is wrong. A verdict is surer.
    score : callable, optional
        ``score(output, input)``, or ``score(outputs, input)`` where channel is vectorised: how much
        an output speaks for an input, one number each. By default: whether the output is the input,
        the output's coordinate of the input's place, and likelihoods that are learned. Hashed
        reports need it: whether the report supports the input.
    vectorised : bool, optional
        Whether channel takes (input, size). By default, it does if its second argument is called
        ``size``.
    words : SimulatedWords, optional
        Rolls the die and splits; the same words and outputs give the same result.

    Returns
    -------
    ChannelAudit
        *Violated* if guesses or the two inputs contradict the claim, at a fiftieth of the level;
        *inconclusive* where nothing could be refuted; else *not refuted*.

    Raises
    ------
    ArgumentError
        An argument is out of range, score fails, or so few samples could refute nothing; says how
        many could.

    Notes
    -----
    Guarantee. If draws are independent and the channel satisfies the claim for any two of the
    inputs, any certified bound is too high with probability at most 1 - confidence, and the verdict
    is *violated* with at most (1 - confidence)/50. Guesses and inputs are chosen before the outputs
    that certify are looked at.

    References
    ----------
    Arcolezi and Gambs, "Revealing the true cost of locally differentially private protocols: an
    auditing perspective", PETS 2024, guess inputs by their supports; here guesses are of many
    inputs at once, and abstain.

    Examples
    --------
    One in 250 reports of 256 values is the value itself, besides those that the claim allows:

    >>> rng = np.random.default_rng(1)
    >>> def response(value, size):
    ...     told = rng.random(size) < np.e / (np.e + 255) + 1 / 250
    ...     return np.where(told, value, (value + rng.integers(1, 256, size)) % 256)
    >>> found = audit_channel(response, range(256), epsilon=1, samples=100_000)
    >>> print(found.verdict, found.lower > 1)
    violated True
    """
    claim = Claim.of(epsilon, delta)
    confidence = check_confidence(confidence)
    samples = whole("samples", samples)
    if not callable(channel):
        raise ArgumentError("channel must be callable: of an input, or of (input, size)")
    known = listed("inputs", inputs, "inputs of the channel")
    if not 2 <= len(known) <= _MOST_INPUTS:
        raise ArgumentError(f"inputs must be from 2 to {_MOST_INPUTS:,}: a sample of many will do")
    if score is not None and not callable(score):
        raise ArgumentError("score must be callable: of an output, or of all, and an input")
    half = (1 - confidence) / 2
    _check_samples(samples, len(known), claim, half)
    start = time.perf_counter()
    many = is_vectorised(channel, vectorised)
    words = own_words(words or SimulatedWords(0))
    scanned, trials = round(_SCAN * samples), round(_GAME * samples)
    # Of the scan as many of each input as can be, and of the game what the die shows.
    truth = np.concatenate(
        [
            np.argsort(words.words(scanned), kind="stable") % len(known),
            (words.words(trials) % np.uint64(len(known))).astype(np.int64),
        ]
    )
    outputs = draw_mixed(channel, known, truth, scanned, vectorised=many)
    scan = np.arange(truth.size) < scanned
    fit = np.arange(truth.size) < _FITTING * scanned
    outcomes = describe_outcomes(outputs, scan)
    evidence = every_evidence(outputs, outcomes, known, truth, fit, score, vectorised=many)
    each, verdict = half / RULES, _OF_VERDICTS * half / RULES
    rules = choose_rules(
        evidence, truth, (fit, scan & ~fit), trials, inputs=len(known), level=verdict,
        delta=claim.delta, words=words,
    )  # fmt: skip
    places = suspects(outcomes, truth, scan, len(known))
    pair = audit(
        channel, known[places[0]], known[places[1]], epsilon, delta, _of_pair(samples), 1 - half,
        vectorised=many, words=words, score=_of_two(score, known, places, many),
    )  # fmt: skip
    guesses = (
        certify_guesses(
            rules, truth, ~scan, epsilon=claim.epsilon, delta=claim.delta, level=each,
            verdict=verdict,
        )
        if pair.independent and pair.reuse is None
        else []
    )  # fmt: skip
    lower = max((pair.lower, *(g.epsilon for g in guesses)))
    violated = pair.verdict is Outcome.VIOLATED or any(g.refutes for g in guesses)
    return ChannelAudit(
        verdict=Outcome.VIOLATED if violated else _unrefuted(pair, outcomes.varies),
        lower=lower,
        claimed=claim,
        inputs=len(known),
        guesses=tuple(guesses),
        pair=pair,
        places=places,
        samples=samples,
        confidence=confidence,
        seconds=time.perf_counter() - start,
        notes=(*_unsure(lower, claim, violated, half), *pair.notes),
    )


def _unrefuted(pair: Audit, varies: bool) -> Outcome:
    """Guesses of all inputs could refute a claim where the two give no difference."""
    idle = pair.verdict is Outcome.INCONCLUSIVE and not (varies and pair.independent)
    return Outcome.INCONCLUSIVE if idle else Outcome.NOT_REFUTED


def _unsure(lower: float, claim: Claim, violated: bool, half: float) -> tuple[str, ...]:
    if violated or lower <= claim.epsilon:
        return ()
    sure = level(1 - 2 * _OF_VERDICTS * half)
    return (
        f"what is certified is above the claim; a verdict is given at {sure} confidence: audit "
        "again, with more samples",
    )


def _of_pair(samples: int) -> int:
    """Outputs of each of the two inputs."""
    return (samples - round(_SCAN * samples) - round(_GAME * samples)) // 2


def _of_two(
    score: Callable[[Any, Any], Any] | None,
    inputs: Sequence[Any],
    places: tuple[int, int],
    many: bool,
) -> Callable[[Any], Any] | None:
    """How much more an output speaks for the second input than for the first."""
    if score is None:
        return None
    first, second = (inputs[place] for place in places)
    if many:
        return lambda outputs: np.subtract(score(outputs, second), score(outputs, first))
    return lambda output: float(score(output, second)) - float(score(output, first))


def _check_samples(samples: int, inputs: int, claim: Claim, half: float) -> None:
    """Refuse so few samples that no guesses could refute the claim, if all were right."""

    def suffices(samples: int) -> bool:
        n = round(_GAME * samples)
        certified = game_epsilon(n, n, n, inputs, _OF_VERDICTS * half / RULES, claim.delta)
        return certified > claim.epsilon and _of_pair(samples) >= 200

    if suffices(samples):
        return
    least = least_integer(suffices, 1000, step=1000, most=10**12)
    if least is None:
        raise ArgumentError("no number of samples can refute so weak a claim")
    raise ArgumentError(
        f"{samples:,} samples are too few for any verdict: not even outputs that give each input "
        f"away would refute the claim {claim}. The least is {least:,}, of all inputs together"
    )

"""A search that is fixed before any row is read: what is run, how often, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dither import noise, privacy
from dither._silence import silence
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.learn.tuning._runs import Runs
from dither.numeric import float_up, log_upper
from dither.privacy import Charge, Loss
from dither.privacy.laws.rationals import printing_at_most

__all__ = ["Search", "epsilon_of", "limited", "whole_loss"]

_MOST_CANDIDATES = 100_000


@dataclass(frozen=True)
class Search:
    """A search that is fixed before any row is read: what is run, how often, and what it costs.

    Parameters
    ----------
    run : callable
        From a candidate to a model and a score, larger is better.
    candidates : tuple
        One is drawn for each run, uniformly.
    each : tuple of Loss
        What a run may cost.
    runs : Runs
    loss : Loss
        What the search costs.
    public : bool
        Whether an `ArgumentError` of a run tells nothing of the rows, and may be shown.
    """

    run: Callable[[Any], tuple[Any, float]]
    candidates: tuple[Any, ...]
    each: tuple[Loss, ...]
    runs: Runs
    loss: Loss
    public: bool = False

    def best(self) -> tuple[Any, Any, float]:
        """Run it: the model, the candidate and the score of the best run.

        Ties go to the run that was first, which tells nothing, as runs are alike. A run that fails,
        or whose score is not a number, is the worst there is.
        """
        with silence():
            return self._best()

    def _best(self) -> tuple[Any, Any, float]:
        best: tuple[Any, Any, float] = (None, None, -math.inf)
        for place in range(self.runs.draw()):
            candidate = self.candidates[int(noise.below(len(self.candidates), 1)[0])]
            try:
                with silence():
                    model, score = self.run(candidate)
                    score = float(score)
            except Exception as error:
                if self.public and isinstance(error, ArgumentError):
                    raise
                model, score = None, math.nan
            if math.isnan(score):
                model, score = None, -math.inf
            if place == 0 or score > best[2]:
                best = (model, candidate, score)
        return best

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        each = privacy.pure(log_upper(Fraction(2)))
        for shape in (Fraction(1), Fraction(0)):
            runs = Runs(Fraction(5), shape)
            whole = privacy.repeat_and_select(each, mean=runs.mean, shape=shape)

            def answer(bit: int, size: int, *, runs: Runs = runs, whole: Loss = whole) -> list[int]:
                coins: list[bool] = []

                # A run tells the truth at odds of 2, and is the better the larger what it says.
                def run(_: Any) -> tuple[int, float]:
                    if not coins:
                        coins.extend(noise.bernoulli("1/3", 10_000).tolist())
                    said = 1 - bit if coins.pop() else bit
                    return said, float(said)

                made = cls(run, (0,), (each,), runs, whole)
                return [int(made.best()[0]) for _ in range(size)]

            word = "a search" if shape else "a search with a logarithmic number of runs"
            yield Subject(word, answer, 0, 1, whole.charge.epsilon or 0)


@lru_cache(maxsize=256)
def whole_loss(each: tuple[Loss, ...], runs: Runs, delta: Fraction | None) -> Loss:
    """The loss of a search; where a delta is named, charged by its epsilon there."""
    whole = privacy.repeat_and_select(each, mean=runs.mean, shape=runs.shape)
    if not delta:
        return whole
    found, known = epsilon_of(whole, printing_at_most(delta)), whole.charge.amounts
    if not math.isfinite(found):
        return whole
    exact = Fraction(found)
    if known.epsilon is not None and known.epsilon <= exact and known.delta <= delta:
        return whole
    stated = Charge.approximate(exact, delta)
    if known.rho is not None and not known.rho_delta:
        stated = replace(stated, rho=known.rho, rho_delta=Fraction(0))
    return whole.with_charge(stated)


def epsilon_of(loss: Loss, delta: float) -> float:
    """The least epsilon that is known: by the loss, or as it was proved for its charge."""
    charge = loss.charge
    known = charge.epsilon is not None and charge.delta <= Fraction(repr(delta))
    stated = float_up(charge.epsilon) if known and charge.epsilon is not None else math.inf
    try:
        return min(stated, loss.epsilon(delta).upper)
    except ArgumentError:
        return stated


def limited(candidates: int) -> None:
    """Refuse more candidates than a search may have."""
    if candidates > _MOST_CANDIDATES:
        raise ArgumentError(f"candidates must be at most {_MOST_CANDIDATES:,}")

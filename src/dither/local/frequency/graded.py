"""What SDGRR and URR share: values of two classes, each reported in truth with its own chance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local.chances import ONE, coins, exp_bounds, pick, threshold
from dither.local.channel import (
    Channel,
    Codes,
    DomainLike,
    Shares,
    checked_cells,
    checked_epsilon,
)
from dither.local.domain import Domain, Value
from dither.local.finite import FiniteChannel, guessed_from, worst_pair
from dither.local.guarantee import Guarantee
from dither.numeric import Words

__all__ = ["GradedResponse"]


@dataclass(frozen=True, slots=True, init=False)
class GradedResponse(FiniteChannel):
    """Randomised response with high and low values; a report is the code of a value."""

    domain: Domain
    epsilon: Fraction
    high: tuple[bool, ...]
    truth_high: int
    """Out of 2**64: how often a high value reports itself."""
    truth_low: int
    """Out of 2**64: how often a low value reports itself."""

    def __init__(self, domain: DomainLike, high: Iterable[Value], epsilon: Any) -> None:
        object.__setattr__(self, "domain", Domain(domain))
        object.__setattr__(self, "epsilon", checked_epsilon(epsilon))
        mask = self.domain.subset(high, "high")
        if not mask.any() or mask.all():
            raise ArgumentError(
                "high must hold at least one value of the domain and not all of them; "
                "where all are sensitive, use GRR"
            )
        object.__setattr__(self, "high", tuple(mask.tolist()))
        e, _ = exp_bounds(self.epsilon)
        truth_high, truth_low = self._truths(e, len(self.domain), int(mask.sum()))
        # Both rounded down: then no high value is likelier than e times any other's chance of it.
        object.__setattr__(self, "truth_high", threshold(truth_high))
        object.__setattr__(self, "truth_low", threshold(truth_low))

    @staticmethod
    @abstractmethod
    def _truths(e: Fraction, k: int, h: int) -> tuple[Fraction, Fraction]:
        """How often a high and a low value report themselves, of h high among k values."""

    def settings(self) -> dict[str, Any]:
        """Domain, epsilon, and the high values in the domain's order."""
        chosen = [v for v, h in zip(self.domain.values, self.high, strict=True) if h]
        return {**Channel.settings(self), "high": chosen}

    @property
    def outputs(self) -> int:
        """A report is the code of a value."""
        return len(self.domain)

    @property
    def _truth(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.truth_high, ONE), Fraction(self.truth_low, ONE)

    @property
    @abstractmethod
    def _onto_low(self) -> Fraction:
        """How often a high value is reported as each low one."""

    @property
    @abstractmethod
    def _chances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """(c1, c2 of a high value, c2 of a low one, c3), exactly as drawn."""

    @property
    def matrix(self) -> Shares:
        """The law in floating point, shape (k, k)."""
        k = len(self.domain)
        checked_cells(k, k)
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask = np.array(self.high)
        onto_low = np.where(mask, float(self._onto_low), 0.0)
        found = np.where(mask[None, :], np.where(mask, c2, c2_low)[:, None], onto_low[:, None])
        np.fill_diagonal(found, np.where(mask, c1, c3))
        return found

    def forward(self, frequencies: Shares) -> Shares:
        """Shares of the reports, class by class."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, f = np.array(self.high), frequencies
        high, low = float(f[mask].sum()), float(f[~mask].sum())
        on_high = f * c1 + (high - f) * c2 + low * c2_low
        return np.where(mask, on_high, f * c3 + high * float(self._onto_low))

    def guessed(self, prior: Shares | None) -> Shares:
        """In closed form, from high reports and from low ones."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask = np.array(self.high)
        pi = np.ones(mask.size) if prior is None else prior
        high = guessed_from(mask, c1, np.where(mask, c2, c2_low), pi)
        return high + guessed_from(~mask, c3, np.where(mask, float(self._onto_low), 0.0), pi)

    @property
    def guarantee(self) -> Guarantee:
        """The class matrix: values of a class are alike, so one pair of codes stands for all."""
        mask = np.array(self.high)
        codes = {"high": np.flatnonzero(mask)[:2], "low": np.flatnonzero(~mask)[:2]}
        pairs = {
            (a, b): worst_pair(self, codes[a], codes[b], self.epsilon) for a in codes for b in codes
        }
        return Guarantee(self.epsilon, ("high", "low"), pairs)

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """The code itself, or another: a high one for a low, what `_elsewhere` says for a high."""
        mask = np.array(self.high)
        highs = np.flatnonzero(mask)
        # Every person draws both, so that the time taken says nothing of the value.
        from_high = self._elsewhere(codes, words)
        from_low = highs[pick(highs.size, codes.size, words)]
        kept_high = coins(self.truth_high, codes.size, words)
        kept_low = coins(self.truth_low, codes.size, words)
        is_high = mask[codes]
        moved = np.where(is_high, from_high, from_low)
        return np.where(np.where(is_high, kept_high, kept_low), codes, moved)

    @abstractmethod
    def _elsewhere(self, codes: Codes, words: Words) -> Codes:
        """Another report for each high code; whatever for low ones."""

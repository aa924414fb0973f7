"""Several mechanisms on one sample: the pair of the whole is mixed, not that of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dither.errors import ArgumentError
from dither.privacy.parts import Approximate, AtMost, Part
from dither.privacy.parts.ends import Amount, Ends, root, told_up, total
from dither.privacy.parts.sampled import pure
from dither.privacy.terms import AtomTerm, Term
from dither.privacy.terms.base import EPS

__all__ = ["Together"]

_MOST = 20_000
_REPEATS = 5_000


@dataclass(frozen=True, slots=True)
class Together(Part):
    """Independent mechanisms with finite pairs, read as one mechanism with the product pair.

    Every part's `term` is an `AtomTerm`. Losses that agree to 1e-14 of the largest are merged, and
    that is charged as a position.
    """

    parts: tuple[tuple[Part, int], ...]

    @property
    def symmetric(self) -> bool:
        """Where all are."""
        return all(part.symmetric for part, _ in self.parts)

    @property
    def exact(self) -> bool:
        """Where all are."""
        return all(part.exact for part, _ in self.parts)

    @property
    def one_sided(self) -> bool:
        """Where one is."""
        return any(part.one_sided for part, _ in self.parts)

    def instance(self) -> Part | None:
        """Of instances; parts without one are left out."""
        found = [(part.instance(), count) for part, count in self.parts]
        known = tuple((part, count) for part, count in found if part is not None)
        return Together(known) if known else None

    def dominating(self) -> Part | None:
        """Of what dominates each."""
        found = [(part.dominating(), count) for part, count in self.parts]
        known = tuple((part, count) for part, count in found if part is not None)
        return Together(known) if len(known) == len(found) else None

    def moment(self, removal: bool, count: int) -> Term | None:
        """Of what dominates."""
        known = self.dominating()
        return None if known is None else known.term(removal, count)

    def term(self, removal: bool, count: int) -> AtomTerm:
        """The product law."""
        losses, masses, others = np.zeros(1), np.ones(1), np.ones(1)
        relative = position = kept = lost = 0.0
        unbounded = False
        for part, times in self.parts:
            if times > _REPEATS:
                raise ArgumentError(
                    f"at most {_REPEATS:,} repetitions share one sample; sample each by itself"
                )
            one = part.term(removal, 1)
            assert isinstance(one, AtomTerm)
            for _ in range(times):
                if len(losses) * len(one.losses) > 50 * _MOST:
                    raise ArgumentError(
                        "too many outcomes share one sample; sample fewer mechanisms together"
                    )
                losses = (losses[:, None] + one.losses[None, :]).ravel()
                masses = (masses[:, None] * one.probabilities[None, :]).ravel()
                others = (others[:, None] * one.under_q()[None, :]).ravel()
                order = np.argsort(losses, kind="stable")
                losses, masses, others = losses[order], masses[order], others[order]
                near = 1e-14 * max(1e-300, float(np.abs(losses).max()))
                key = np.floor(losses / near)
                starts = np.flatnonzero(np.concatenate([[True], np.diff(key) > 0]))
                losses = losses[starts]
                masses, others = (np.add.reduceat(part, starts) for part in (masses, others))
                relative += one.relative + EPS * (4 + len(one.losses))
                position += one.position + 4 * EPS * float(np.abs(losses).max()) + 2 * near
                kept += math.log1p(-one.infinite) if one.infinite < 1 else -math.inf
                lost += one.lost
                unbounded = unbounded or one.unbounded
        if len(losses) > _MOST:
            raise ArgumentError(
                "too many outcomes share one sample; sample fewer mechanisms together"
            )
        infinite = min(1.0, -math.expm1(kept) * (1 + 1e-14))
        return AtomTerm(
            losses,
            masses,
            count,
            infinite,
            relative=relative,
            position=position,
            lost=lost,
            others=others,
            unbounded=unbounded,
        )

    def top(self, removal: bool) -> Ends | None:
        """The sum."""
        return total(((part.top(removal), count) for part, count in self.parts))

    def grouped(self, size: int) -> Part:
        """By the pure epsilon of the whole, where there is one."""
        known = self.dominating()
        assert isinstance(known, Together)
        ends = [known.term(removal, 1) for removal in (True, False)]
        if not all(pure(end) for end in ends):
            raise ArgumentError("group of mechanisms on one sample needs pure mechanisms")
        tops = [known.top(removal) for removal in (True, False)]
        most = max((top[1] for top in tops if top is not None), default=Fraction(0))
        bound = Approximate(told_up(most), 0.0).grouped(size)
        return AtMost(bound, f"{self.describe()}.group({size})")

    def gdp(self) -> Amount:
        """Squares add up."""
        return root(sum(count * part.gdp() ** 2 for part, count in self.parts))

    def rho(self) -> Amount:
        """Adds up."""
        return sum(count * part.rho() for part, count in self.parts)

    def tail(self) -> Fraction:
        """Adds up."""
        return sum((count * part.tail() for part, count in self.parts), Fraction(0))

    def describe(self) -> str:
        """As written."""
        words = [p.describe() if k == 1 else f"{k} * {p.describe()}" for p, k in self.parts]
        return "(" + " + ".join(words) + ")"

"""By which rule of a filter a picture counts: that which leaves more room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from dither.privacy._charge import Charge
from dither.privacy.accounts._budget import BudgetFilter

__all__ = ["DrawnRule", "rule_of"]


@dataclass(frozen=True, slots=True)
class DrawnRule:
    """One of the two rules of a filter.

    Parameters
    ----------
    symbol : str
        ``"ε"`` or ``"ρ"``: what is added up.
    """

    symbol: str

    @property
    def words(self) -> str:
        """How it adds up, for people."""
        return "basic composition" if self.symbol == "ε" else "zCDP composition"

    @property
    def said(self) -> str:
        """What an axis of it shows."""
        return self.symbol

    def part(self, total: Charge, reserved: Charge) -> Fraction:
        """What of a total is what was reserved of it."""
        return self.of(reserved) or Fraction(0)

    def of(self, charge: Charge) -> Fraction | None:
        """What it adds up of a charge; ``None`` where that is infinite."""
        return charge.epsilon if self.symbol == "ε" else charge.rho

    def cap(self, caps: BudgetFilter) -> Fraction | None:
        """What may be spent by it; ``None`` where the filter does not offer it."""
        return caps.epsilon if self.symbol == "ε" else caps.rho

    def delta(self, charge: Charge) -> Fraction:
        """The delta that it adds up beside it."""
        return charge.delta if self.symbol == "ε" else charge.rho_delta

    def delta_cap(self, caps: BudgetFilter) -> Fraction:
        """What that may come to."""
        return caps.basic_delta if self.symbol == "ε" else caps.rho_delta

    def share(self, caps: BudgetFilter, charge: Charge) -> Fraction | None:
        """The share of the caps that a total uses; ``None`` where the rule has closed."""
        amount, cap = self.of(charge), self.cap(caps)
        if amount is None or cap is None:
            return None
        delta, most = self.delta(charge), self.delta_cap(caps)
        if delta > most:
            return None
        return max(amount / cap, delta / most if most else Fraction(0))


EPSILON, RHO = DrawnRule("ε"), DrawnRule("ρ")


@dataclass(frozen=True, slots=True)
class CapShares(DrawnRule):
    """For totals of which no one rule adds up all: what share of the caps each of them uses.

    Parameters
    ----------
    caps : BudgetFilter
        Each total is held against them by the rule that leaves it more room.
    """

    caps: BudgetFilter = field(kw_only=True)

    @property
    def words(self) -> str:
        return "whichever rule leaves a block more room"

    @property
    def said(self) -> str:
        return "share of the cap"

    def of(self, charge: Charge) -> Fraction | None:
        by = self._by(charge)
        return None if by is None else by.share(self.caps, charge)

    def part(self, total: Charge, reserved: Charge) -> Fraction:
        by = self._by(total)
        return (by and by.share(self.caps, reserved)) or Fraction(0)

    def cap(self, caps: BudgetFilter) -> Fraction | None:
        return Fraction(1)

    def share(self, caps: BudgetFilter, charge: Charge) -> Fraction | None:
        return self.of(charge)

    def _by(self, charge: Charge) -> DrawnRule | None:
        shares = [(rule.share(self.caps, charge), i) for i, rule in enumerate((EPSILON, RHO))]
        known = [(share, i) for share, i in shares if share is not None]
        return (EPSILON, RHO)[min(known)[1]] if known else None


def rule_of(caps: BudgetFilter, totals: Iterable[Charge]) -> DrawnRule:
    """The rule that all totals are drawn by: by which the fullest of them has more room."""
    found = list(totals)

    def fullest(rule: DrawnRule) -> tuple[int, Fraction]:
        shares = [rule.share(caps, total) for total in found]
        known = [share for share in shares if share is not None]
        return len(shares) - len(known), max(known, default=Fraction(0))

    return EPSILON if caps.rho is None or fullest(EPSILON) <= fullest(RHO) else RHO

"""What a ledger hands out: the receipt of a charge, and the state of an account."""

from __future__ import annotations

from dataclasses import dataclass

from dither._format import loss_text
from dither.ledger.budgets import Filter, Remaining
from dither.privacy.charge import Charge
from dither.privacy.promise import Promise

__all__ = ["Balance", "Charged"]


@dataclass(frozen=True, slots=True)
class Charged:
    """The receipt of a charge.

    Parameters
    ----------
    entry, hash : int, str
        Number and hash of the charge's entry: what a certificate quotes.
    replayed : bool
        The same request was charged before under this token: ``answer`` is its answer, and
        nothing was charged now.
    answer : str or None
        The stored answer of a replay.
    """

    entry: int
    hash: str
    replayed: bool
    answer: str | None


@dataclass(frozen=True, slots=True)
class Balance:
    """The state of an account.

    Parameters
    ----------
    name : str
        The account.
    promise : Promise
        The unit that it protects and its neighbours: what all its charges are stated for.
    caps : BudgetFilter
        What it may spend in all.
    spent : Charge
        What it has spent, exact and rounded up to `UNIT` charge by charge.
    remaining : object
        What fits beside it; ``remaining.describe()`` says it.
    """

    name: str
    promise: Promise
    caps: Filter
    spent: Charge
    remaining: Remaining

    def __str__(self) -> str:
        spent = ", ".join(
            f"{name} {loss_text(amount)}"
            for name, amount in (
                ("epsilon", self.spent.epsilon),
                ("delta", self.spent.delta),
                ("rho", self.spent.rho),
            )
            if amount
        )
        return f"{self.name}: spent {spent or 'nothing'}; left {self.remaining.describe()}"

    def __repr__(self) -> str:
        return f"<balance of {self}>"

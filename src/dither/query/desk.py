"""What a question needs of its session: where to charge, and what to run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dither.accounting.filters import BudgetFilter
from dither.ledger import Ledger

if TYPE_CHECKING:
    from dither.engines.base import Engine

__all__ = ["Desk"]


@dataclass(frozen=True, slots=True)
class Desk:
    """One session's engine, ledger and accounts.

    Parameters
    ----------
    engine : Engine
    ledger : Ledger
    accounts : mapping of str to BudgetFilter
        The accounts that every release is charged to, with their caps.
    delta : Fraction
        The budget's whole delta; 0 for a pure budget.
    release_delta : Fraction
        The delta of a release that names none.
    policy : str
        The digest of the policy.
    """

    engine: Engine
    ledger: Ledger
    accounts: Mapping[str, BudgetFilter]
    delta: Fraction
    release_delta: Fraction
    policy: str

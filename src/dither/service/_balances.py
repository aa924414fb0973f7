"""Balances as plain data, for whoever is far from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dither.blocks._sets import BlockSet
from dither.errors import LedgerError
from dither.ledger._accounts import Balance
from dither.ledger._block_budget import BlockBudget, BlockSpending
from dither.ledger._states import BlockState
from dither.ledger.quotas._caps import read_caps
from dither.privacy._charge import Charge
from dither.privacy._promise import Promise
from dither.privacy.accounts._budget import Remaining

__all__ = ["balance_from_dict", "balance_to_dict"]

AMOUNTS = ("epsilon", "delta", "rho", "rho_delta")


def balance_to_dict(balance: Balance) -> dict[str, Any]:
    """All of a balance, exact.

    Examples
    --------
    >>> from dither.accounting import BudgetFilter
    >>> whom = Promise("patient")
    >>> held = Balance.of("a", whom, BudgetFilter(1), Charge(promise=whom), None)
    >>> balance_from_dict(balance_to_dict(held)) == held
    True
    """
    found: dict[str, Any] = {
        "name": balance.name,
        "promise": balance.promise.to_dict(),
        "caps": dict(balance.caps.to_dict()),
        "spent": _amounts(balance.spent),
        "reserved": _amounts(balance.reserved),
        "remaining": _amounts(balance.remaining),
        "opened": balance.opened,
        "paced": None if balance.paced is None else list(balance.paced),
        "text": str(balance),
        "promised": balance.describe(),
    }
    if balance.window is not None:
        found["window"] = balance.window.to_dict()
    if balance.blocks is not None:
        found["blocks"] = {
            "state": balance.blocks.state.text(),
            "reserved": balance.blocks.reserved.text(),
            "total": _amounts(balance.blocks.total),
        }
    return found


def balance_from_dict(stored: Mapping[str, Any]) -> Balance:
    """Read back what `balance_to_dict` wrote.

    Raises
    ------
    LedgerError
        It is something else.
    """
    try:
        promise = Promise.from_dict(stored["promise"])
        caps = read_caps(stored["caps"])
        blocks = window = None
        if "window" in stored:
            window = BlockSet.from_dict(stored["window"])
        if "blocks" in stored and isinstance(caps, BlockBudget):
            held = stored["blocks"]
            blocks = BlockSpending(
                caps,
                BlockState.from_text(held["state"]),
                _charge(held["total"], promise),
                BlockState.from_text(held["reserved"]),
            )
        left = [_fraction(stored["remaining"][name]) for name in AMOUNTS]
        paced = stored["paced"]
        return Balance(
            stored["name"],
            promise,
            caps,
            _charge(stored["spent"], promise),
            Remaining(*left),
            blocks,
            window,
            stored["opened"],
            None if paced is None else (paced[0], paced[1]),
            _charge(stored["reserved"], promise),
        )
    except (ArithmeticError, AttributeError, KeyError, LookupError, TypeError, ValueError):
        raise LedgerError("a balance cannot be read: it is of another version of dither") from None


def _amounts(held: Charge | Remaining) -> dict[str, str | None]:
    values = {name: getattr(held, name) for name in AMOUNTS}
    return {name: None if value is None else str(value) for name, value in values.items()}


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _charge(held: Mapping[str, str | None], promise: Promise) -> Charge:
    epsilon, delta, rho, rho_delta = (_fraction(held[name]) for name in AMOUNTS)
    return Charge(epsilon, delta or Fraction(0), rho, rho_delta or Fraction(0), promise)

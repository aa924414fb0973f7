"""What a question costs, in words for people: what is left of each account, and what would be."""

from __future__ import annotations

from typing import Any

from dither._format import loss_text, remaining
from dither.ledger import Balance
from dither.session._pricing import MOST
from dither.session._request import Request

__all__ = ["account_key", "costs_of", "price_data"]


def costs_of(request: Request) -> dict[str, Any]:
    """Whom it protects, what it costs, what is left, and how many more like it there can be."""
    charge, price = request.price, price_data(request)
    balances = list(request.opened.balances([request.promise]))
    affordable = request.affordable(balances)
    return {
        "protects": price["protects"],
        "blocks": price.get("blocks"),
        "epsilon": None if charge.epsilon is None else loss_text(charge.epsilon),
        "rho": loss_text(charge.rho) if charge.epsilon is None and charge.rho is not None else None,
        "delta": loss_text(charge.delta) if charge.delta else None,
        "accounts": [_account(one, request) for one in balances],
        "times": f"{affordable.times:,}" if affordable.times < MOST else f"≥ {MOST:,}",
        "fits": affordable.times > 0,
        "instead": request.fits() if affordable.times == 0 else None,
        "tightest": account_key(affordable.tightest),
        "tables": list(request.tables),
        "price": price,
        "digest": request.data.digest,
    }


def account_key(name: str) -> str:
    """The word for an account, by whose it is."""
    kind = name.partition(":")[0]
    return kind if kind in ("dataset", "analyst", "group", "purpose") else "other"


def _after(after: Balance | None, plain: bool) -> str | None:
    if after is None:
        return None
    if not plain:
        return after._left
    left = after.remaining.epsilon
    return None if left is None else remaining(left, 6)


def _account(balance: Balance, request: Request) -> dict[str, Any]:
    """One account as it stands, and as it would stand."""
    left, after = balance.remaining, None
    if balance.admits(request.price, request.blocks):
        after = balance.after(request.price, request.blocks)
    plain = left.epsilon is not None
    return {
        "kind": account_key(balance.name),
        "name": balance.name,
        "left": remaining(left.epsilon, 6) if plain else balance._left,
        "after": _after(after, plain),
        "plain": plain,
    }


def price_data(request: Request) -> dict[str, Any]:
    """What a release would be charged, as plain data."""
    charge, calendar = request.price, request.opened.calendar(request.promise.unit)
    amounts = {"epsilon": charge.epsilon, "delta": charge.delta, "rho": charge.rho}
    found: dict[str, Any] = {
        name: None if held is None else str(held) for name, held in amounts.items()
    }
    found["protects"] = request.promise.describe()
    found["accounts"] = list(request.opened.accounts(request.promise.unit))
    if calendar is not None and request.blocks is not None:
        found["blocks"] = calendar.reading(request.blocks)
    return found

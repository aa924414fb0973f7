"""What accounts and tables are bound to, and the checks of what is charged to them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from dither.errors import ArgumentError, LedgerError, PromiseError
from dither.ledger import chain
from dither.ledger.budgets import Filter, say_budget
from dither.ledger.entries import Tables, canonical
from dither.privacy.promise import Promise

__all__ = [
    "bound_tables",
    "check_promise",
    "check_text",
    "checked_accounts",
    "checked_tables",
    "other_promise",
    "same_caps",
]


def same_caps(account: chain.Account | None, text: str, promise: Promise) -> bool:
    """Whether an account is there, with these caps and this promise; refuse it with others."""
    if account is None:
        return False
    if account.promise != promise:
        raise other_promise(account, promise)
    if account.budget_text == text:
        return True
    raise LedgerError(
        f"account {account.name!r} has the caps {say_budget(account.budget_text)} in the ledger, "
        f"and {say_budget(text)} was asked for. If the ledger is right, as after an amendment, "
        "write its caps into the policy; if it is not, change them on the record with "
        f"`dither ledger amend LEDGER --account {shlex.quote(account.name)} --epsilon ... "
        "--reason ...`"
    )


def other_promise(account: chain.Account, asked: Promise | None) -> PromiseError:
    """The refusal of a charge that an account's charges cannot be added to."""
    said = "nobody in particular" if asked is None else asked.describe()
    return PromiseError(
        f"account {account.name!r} protects {account.promise.describe()}, and this is stated for "
        f"{said}: such losses cannot be added. Keep to the account's unit and neighbours, convert "
        "the charge at its price (to_replace, to_group), or charge an account of its own"
    )


def bound_tables(known: Tables, read: Mapping[str, str], promise: Promise) -> Tables:
    """The tables charged so far with those read now, none of them under two promises."""
    for name, by in read.items():
        first, first_by = known.get(name, (promise, by))
        if first != promise:
            raise PromiseError(
                f"table {name!r} was charged for {first.describe()} before, and now for "
                f"{promise.describe()}: one account would miss what the other spent. Declare its "
                "unit and neighbours as they were, or begin a new ledger"
            )
        if first_by != by:
            raise PromiseError(
                f"table {name!r} told whose a row is by {first_by!r} before, and now by {by!r}: "
                f"then one {promise.unit} is not what it was. Declare its unit as it was, or begin "
                "a new ledger"
            )
    return {**known, **{name: (promise, by) for name, by in read.items()}}


def checked_accounts(accounts: Sequence[str] | Mapping[str, Filter]) -> list[str]:
    """The names of accounts, each once."""
    if isinstance(accounts, str) or not accounts:
        raise ArgumentError("accounts must be a list of at least one account's name")
    names = list(accounts)
    if len(set(names)) != len(names):
        raise ArgumentError("accounts must name each account once")
    for name in names:
        check_text("accounts", name)
    return names


def check_promise(promise: Promise) -> None:
    """Refuse what is not a promise."""
    if not isinstance(promise, Promise):
        raise ArgumentError("promise must be a Promise, such as Promise('patient')")


def checked_tables(tables: Mapping[str, str]) -> dict[str, str]:
    """Tables with how their units are told."""
    texts = [*tables.keys(), *tables.values()]
    if not all(isinstance(t, str) and t and len(t) <= 1000 for t in texts):
        raise ArgumentError("tables must map names of tables to how their units are told, as text")
    canonical(dict(tables), "tables")
    return dict(tables)


def check_text(name: str, value: str, limit: int = 200) -> None:
    """Refuse text that is empty, too long or not printable."""
    if not isinstance(value, str) or not value.strip() or len(value) > limit:
        raise ArgumentError(f"{name} must be text of 1 to {limit} characters")
    if not all(c.isprintable() or (c == "\n" and limit > 200) for c in value):
        raise ArgumentError(f"{name} must be of printable characters")

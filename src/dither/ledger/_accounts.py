"""Accounts: their caps, what they and tables are bound to, and the checks of a charge to them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._format import loss_text
from dither._notebook import html_table
from dither.blocks._sets import NO_BLOCKS, BlockSet
from dither.errors import ArgumentError, LedgerError, PromiseError
from dither.ledger._block_budget import BlockBudget, BlockSpending, Budget
from dither.ledger._entries import dated, reading
from dither.ledger._states import NO_SPENDING, BlockState, charge_of, grain, units_of
from dither.ledger.quotas._caps import (
    QuestionQuota,
    ReservedQuota,
    UnlockedQuota,
    by_clock,
    current,
    read_caps,
    say_quota,
)
from dither.ledger.quotas._forecast import Forecast, forecast
from dither.privacy._charge import Charge
from dither.privacy._promise import Neighbours, Promise
from dither.privacy.accounts._budget import BudgetFilter

if TYPE_CHECKING:
    from dither.ledger.quotas._reserved import Held
    from dither.privacy.accounts._budget import Remaining

__all__ = [
    "QUOTAS",
    "AccountState",
    "Balance",
    "Balances",
    "Charged",
    "check_promise",
    "check_text",
    "checked_accounts",
    "has_blocks",
    "is_quota",
    "other_promise",
    "quota_of",
    "read_budget",
    "same_caps",
    "same_rule",
    "say_budget",
]


NOTHING = Charge()

QUOTAS = ("analyst:", "group:", "purpose:", "everybody@", "reservation:")
"""How the names of accounts begin that are quotas."""


def is_quota(account: str) -> bool:
    """Whether an account limits what some may ask, such as one analyst, and promises nothing.

    What it adds up is what one analyst was charged. But they choose their questions by what
    colleagues tell them, and so their own entries may show as much as the colleagues' answers do:
    the promise is that of the account which bears the charges of all.
    """
    return account.startswith(QUOTAS)


def quota_of(account: str) -> str:
    """What a quota is called in a message: ``an analyst's quota``."""
    kind = next(kind for kind in QUOTAS if account.startswith(kind))[:-1]
    if kind == "everybody":
        return "a quota of all who ask"
    if kind == "reservation":
        return "a reservation"
    return f"{'an' if kind == 'analyst' else 'a'} {kind}'s quota"


@lru_cache(maxsize=1024)
def read_budget(text: str) -> Budget:
    """The caps that an entry holds as JSON."""
    return read_caps(json.loads(text))


def has_blocks(text: str) -> bool:
    """Whether the caps that an entry holds as JSON are for blocks."""
    return '"blocks"' in text and "blocks" in json.loads(text)


def say_budget(text: str) -> str:
    """Caps in a message: ``epsilon = 2, delta = 1/1000000``."""
    held = json.loads(text)
    if (quota := say_quota(held)) is not None:
        return quota
    if "blocks" not in held:
        return ", ".join(f"{name} = {value}" for name, value in held.items())
    (how, what), *_ = held["blocks"].items()
    said = f"every {what}" if how == "every" else f"{how} {', '.join(what)}"
    parts = [f"blocks of {said}, {say_budget(json.dumps(held['each']))} for each"]
    if held["lifetime"] is not None:
        parts.append(f"{say_budget(json.dumps(held['lifetime']))} in all")
    return " and ".join(parts)


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
    ledger : str
        The identity of the ledger that was charged.
    """

    entry: int
    hash: str
    replayed: bool
    answer: str | None
    ledger: str


@dataclass(frozen=True, slots=True)
class Balance:
    """The state of an account.

    Parameters
    ----------
    name : str
        The account.
    promise : Promise
        The unit and the neighbours that all its charges are stated for. It protects that unit,
        unless it is a quota.
    caps : BudgetFilter or BlockBudget
        What it may spend in all, or for each block.
    spent : Charge
        What it has spent, exact and rounded up to `UNIT` charge by charge; with blocks, in all.
    remaining : object
        What fits beside it; ``remaining.describe()`` says it. With blocks, what fits in one that
        has spent nothing.
    blocks : BlockSpending or None
        What each block has spent, and has left, where the caps are for blocks; of a rate, what
        each window of time has.
    window : BlockSet or None
        Of a rate: the window that a charge would be counted in now; ``remaining`` is what it has.
    opened : str
        Of a quota that is unlocked in parts: when it was opened.
    reserved : Charge
        What open reservations keep of it: ``remaining``, and what blocks have left, is beside that.
    paced : tuple of str or None
        The hours of its first charge and of now, as the ledger says them.
    """

    name: str
    promise: Promise
    caps: Budget
    spent: Charge
    remaining: Remaining
    blocks: BlockSpending | None = None
    window: BlockSet | None = None
    opened: str = ""
    paced: tuple[str, str] | None = None
    reserved: Charge = NOTHING

    @classmethod
    def of(
        cls,
        name: str,
        promise: Promise,
        caps: Budget,
        spent: Charge,
        state: BlockState | None,
        first: str = "",
        now: str = "",
        held: Sequence[Held] = (),
    ) -> Balance:
        """The balance of an account that has spent this.

        ``first`` and ``now`` are the times of the entry that opened it and of one that is written
        now; both are now where left out. ``held`` is what open reservations keep of it.
        """
        now = now or dated("")
        reserved = sum((charge_of(units, promise) for units, _ in held), Charge(promise=promise))
        gone = spent + reserved
        if isinstance(caps, UnlockedQuota):
            left = caps.at(first or now, now).remaining(gone)
            return cls(name, promise, caps, spent, left, opened=first or now, reserved=reserved)
        blocks = window = None
        left = caps.remaining(gone)
        if isinstance(caps, BlockBudget):
            if by_clock(caps):
                window = current(caps, now)
            state = NO_SPENDING if state is None else state
            kept = NO_SPENDING
            for units, read in held:
                where = window or read or NO_BLOCKS
                state, _ = state.plus(where, units)
                kept, _ = kept.plus(where, units)
            blocks = BlockSpending(caps, state, gone, kept)
            if window is not None:
                left = blocks.remaining(window)
        return cls(name, promise, caps, spent, left, blocks, window, reserved=reserved)

    def admits(self, charge: Charge, blocks: BlockSet | None = None) -> bool:
        """Whether it can bear a charge, of a set of blocks where its caps are for blocks."""
        caps, one = self.caps, charge.rounded_up(grain(blocks))
        if self.window is not None:
            blocks = self.window
        if self.blocks is not None:
            return self.blocks.admits(one, NO_BLOCKS if blocks is None else blocks)
        match caps:
            case QuestionQuota():
                return caps.each.admits(one)
            case UnlockedQuota():
                return caps.at(self.opened, dated(self.opened)).admits(self._gone + one)
        if isinstance(caps, ReservedQuota):
            return caps.bears(units_of(self.spent + one), dated(""))
        return isinstance(caps, BudgetFilter) and caps.admits(self._gone + one)

    def bears_each(self, charge: Charge, times: int, blocks: BlockSet | None = None) -> bool:
        """Whether it can bear so many charges of this, one after the other."""
        one = charge.rounded_up(grain(blocks))
        return self.admits(one if isinstance(self.caps, QuestionQuota) else times * one, blocks)

    def after(self, charge: Charge, blocks: BlockSet | None = None) -> Balance:
        """What it would be once it has borne a charge; whether it can is for `admits` to say."""
        one = charge.rounded_up(grain(blocks))
        spent = self.spent + one
        held, left = self.blocks, self.remaining
        if held is not None:
            read = blocks if self.window is None else self.window
            state, _ = held.state.plus(NO_BLOCKS if read is None else read, units_of(one))
            held = BlockSpending(held.budget, state, held.total + one, held.reserved)
            left = held.budget.remaining(held.total)
            if self.window is not None:
                left = held.remaining(self.window)
        elif isinstance(self.caps, BudgetFilter):
            left = self.caps.remaining(spent + self.reserved)
        return replace(self, spent=spent, blocks=held, remaining=left)

    def forecast(self) -> Forecast:
        """Until when it lasts if charges go on as they did since the first; it promises nothing."""
        return forecast(self)

    def plot(self, path: str | Path | None = None, *, title: str | None = None) -> Any:
        """Draw what is spent, reserved and left, of each block where the caps are for blocks.

        Blocks stand in the order of their calendar. One bar may stand for a stretch of blocks that
        have each spent the same, as all before the first one that has spent something else.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        title : str, optional
            By default the account's name.

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> balance = Balance.of(
        ...     "visits", Promise("patient"), BudgetFilter(1), Charge.pure(Fraction(1, 4)), None
        ... )
        >>> balance.plot().get_suptitle()
        'visits'
        """
        from dither.ledger.pictures._bars import draw

        return draw(self, path, title)

    def describe(self) -> str:
        """What is promised, in one line: per block where the caps are for blocks."""
        if self.quota:
            return f"{quota_of(self.name)}: it promises nothing by itself"
        caps = self.caps
        if isinstance(caps, BudgetFilter):
            return f"{self.promise.describe()}: {_caps_text(caps)} in all"
        return f"{self.promise.describe()}: {caps.describe()}"

    @property
    def _gone(self) -> Charge:
        return self.spent + self.reserved

    @property
    def quota(self) -> bool:
        """Whether it limits one analyst, and by itself promises nothing to anybody."""
        return is_quota(self.name)

    @property
    def _spent(self) -> str:
        return _said(self.spent)

    @property
    def _whom(self) -> str:
        return "nobody by itself: a quota" if self.quota else self.promise.describe()

    @property
    def _left(self) -> str:
        left = self.remaining.describe()
        if self.blocks is None:
            return left
        noun = self.blocks.budget.noun
        return f"{left} in {'a new' if self.window is None else 'this'} {noun}"

    def __str__(self) -> str:
        name = f"{self.name} (a quota)" if self.quota else self.name
        spent = self._spent if self.blocks is None else f"{self._spent} in all"
        if not self.reserved.free:
            spent += f"; reserved {_said(self.reserved)}"
        return f"{name}: spent {spent}; left {self._left}"

    def __repr__(self) -> str:
        return f"<balance of {self}>"

    def _repr_html_(self) -> str:
        return Balances([self])._repr_html_()


class Balances(list[Balance]):
    """Balances of several accounts: a list that shows itself line by line."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no account"

    def _repr_html_(self) -> str:
        rows = [[b.name, b._whom, b._spent, b._left] for b in self]
        return html_table(["account", "protects", "spent", "left"], rows, left=4)


@dataclass(frozen=True, slots=True)
class AccountState:
    """The state of an account, as its last entries say it."""

    name: str
    budget_text: str
    promise: Promise
    spent: Charge
    state: BlockState | None = None
    """Of one whose caps are for blocks."""
    time: str = ""
    """That of the last entry that touches it."""
    opened: str = ""
    """That of the entry that opened it, where its caps are unlocked from then on."""
    amends: str | None = None
    """The digest of the policy whose caps the newest amendment replaces, where it names one."""

    @property
    def shown(self) -> str:
        """Its name, and whom it protects."""
        whom = quota_of(self.name) if is_quota(self.name) else self.promise.describe()
        return f"account {self.name!r} ({whom})"

    @property
    def budget(self) -> Budget:
        """The caps in force."""
        with reading(f"account {self.name!r}"):
            return read_budget(self.budget_text)

    @property
    def balance(self) -> Balance:
        """What it has spent and has left."""
        return self.balance_at(dated(self.time))

    def balance_at(self, now: str, held: Sequence[Held] = ()) -> Balance:
        """The same at the hour of an entry that would be written now; ``held`` is reserved."""
        first = self.opened or now
        return Balance.of(
            self.name, self.promise, self.budget, self.spent, self.state, first, now, held
        )


def _said(charge: Charge) -> str:
    amounts = {"epsilon": charge.epsilon, "delta": charge.delta, "rho": charge.rho}
    shown = [f"{name} {loss_text(amount)}" for name, amount in amounts.items() if amount]
    return ", ".join(shown) or "nothing"


def _caps_text(caps: BudgetFilter) -> str:
    held = caps.to_dict()
    delta = Fraction(held["delta"])
    text = f"ε {loss_text(Fraction(held['epsilon']))}"
    return f"{text} and δ {loss_text(delta)}" if delta else text


def same_caps(
    account: AccountState | None, text: str, promise: Promise, policy: str | None = None
) -> bool:
    """Whether an account is there, with these caps and this promise; refuse it with others.

    Other caps are right where the newest amendment names the very policy that asks: it came after.
    """
    if account is None:
        return False
    if account.promise != promise:
        raise other_promise(account, promise)
    if account.budget_text == text:
        return True
    if policy is not None and account.amends == policy and same_rule(account.budget_text, text):
        return True
    if _calendar_of(account.budget_text) != _calendar_of(text):
        raise LedgerError(
            f"account {account.name!r} has the caps {say_budget(account.budget_text)} in the "
            f"ledger, and {say_budget(text)} was asked for: blocks cannot change unnoticed, since "
            "what was spent would be forgotten. Write the ledger's into the policy; or change them "
            "on the record with `dither ledger amend LEDGER --policy POLICY --reason ...`, which "
            "counts all that was spent so far in every block that has begun"
        )
    raise LedgerError(
        f"account {account.name!r} has the caps {say_budget(account.budget_text)} in the ledger, "
        f"and {say_budget(text)} was asked for. If the ledger is right, as after an amendment, "
        "write its caps into the policy; if it is not, change them on the record with "
        f"`dither ledger amend LEDGER --account {shlex.quote(account.name)} --epsilon ... "
        "--reason ...`"
    )


def same_rule(one: str, other: str) -> bool:
    """Whether two caps, as JSON, differ in amounts alone: not in blocks, windows or parts."""
    return bool(_without_amounts(json.loads(one)) == _without_amounts(json.loads(other)))


def _without_amounts(caps: Any) -> Any:
    if not isinstance(caps, Mapping):
        return caps
    if set(caps) == {"epsilon", "delta"}:
        return "amounts"
    return {n: _without_amounts(v) for n, v in caps.items() if n not in ("epsilon", "delta")}


def _calendar_of(text: str) -> object:
    return json.loads(text).get("blocks")


_WAYS = "to_replace, to_group"


def other_promise(account: AccountState, asked: Promise | None) -> PromiseError:
    """The refusal of a charge that an account's charges cannot be added to."""
    said = "nobody in particular" if asked is None else asked.describe()
    ways = "to_edge, to_node" if account.promise.neighbours in Neighbours.of_graphs() else _WAYS
    does = "adds up losses for" if is_quota(account.name) else "protects"
    return PromiseError(
        f"account {account.name!r} {does} {account.promise.describe()}, and this is stated for "
        f"{said}: such losses cannot be added. Keep to the account's unit and neighbours, convert "
        f"the charge at its price ({ways}), or charge an account of its own"
    )


def checked_accounts(accounts: Sequence[str] | Mapping[str, Budget]) -> list[str]:
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


def check_text(name: str, value: str, limit: int = 200) -> None:
    """Refuse text that is empty, too long or not printable."""
    if not isinstance(value, str) or not value.strip() or len(value) > limit:
        raise ArgumentError(f"{name} must be text of 1 to {limit} characters")
    if not all(c.isprintable() or (c == "\n" and limit > 200) for c in value):
        raise ArgumentError(f"{name} must be of printable characters")

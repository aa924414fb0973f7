"""Where private answers are charged: an account of a ledger, before anything leaves."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dither.errors import ArgumentError, TokenError
from dither.privacy import Loss, Promise

if TYPE_CHECKING:
    from dither.ledger import Ledger

__all__ = ["Spending", "digest_of"]

_ATTEMPTS = 1000


@dataclass(frozen=True)
class Spending:
    """An account that bears what is released, and what each charge is noted under.

    Parameters
    ----------
    ledger : Ledger
    accounts : str or sequence of str
        Each is charged in full.
    unit : str
        Whom the losses protect: what the account is bound to.
    token : str
        The caller's name of the work: the same question under the same name is charged once.
    tables : mapping of str to str
        The private tables that are read, each with what says whose a row is.
    """

    ledger: Ledger
    accounts: str | Sequence[str]
    unit: str
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    tables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from dither.ledger import Ledger

        if not isinstance(self.ledger, Ledger):
            raise ArgumentError("ledger must be a Ledger, such as Ledger.open('visits.ledger')")
        if not isinstance(self.unit, str) or not self.unit:
            raise ArgumentError("unit must name whom the account protects, such as 'patient'")
        if not isinstance(self.token, str) or not 1 <= len(self.token) <= 80:
            raise ArgumentError("token must be text of 1 to 80 characters")
        listed = [self.accounts] if isinstance(self.accounts, str) else list(self.accounts)
        object.__setattr__(self, "accounts", listed)

    def once(self, loss: Loss, what: str, *said: Any) -> int:
        """Charge something whose answer is not kept; the entry's number.

        Raises
        ------
        BudgetError
            An account cannot bear it; nothing was charged.
        PromiseError
            The account protects another unit or has other neighbours; nothing was charged.
        TokenError
            This work was charged before: its answer left then, and is not kept here.
        """
        return self._charge(loss, f"{self.token}/{what}", what, said)[0]

    def resumed(self, loss: Loss, what: str, *said: Any) -> int:
        """Charge something that goes on after a kill as it began; the entry's number.

        Where it was charged before under this token, by the same words, that entry covers it: what
        it shows must be one and the same, however often it is asked for. Errors as of `once`.
        """
        token = f"{self.token}/{what}"
        try:
            return self._charge(loss, token, what, said)[0]
        except TokenError:
            found = self.ledger.charged(token)
            same = found is not None and found.request == digest_of((what, *said))
            if found is None or not same or set(found.accounts) != set(self.accounts):
                raise
            return found.number

    def kept(self, loss: Loss, answer: Callable[[], str], what: str, *said: Any) -> str:
        """Charge, answer, and keep the answer in the ledger; the same question again is free.

        Where a process ended between a charge and its answer, that charge stays, and the question
        is charged anew. Errors as of `once`, less the last.
        """
        token = f"{self.token}/{what}/{digest_of(said)[:24]}"
        for attempt in range(_ATTEMPTS):
            try:
                entry, known = self._charge(loss, f"{token}/{attempt}", what, said)
            except TokenError:
                continue
            if known is None:
                known = answer()
                self.ledger.store_answer(entry, known)
            return known
        raise TokenError("this question was charged too often without an answer: take a new token")

    def _charge(
        self, loss: Loss, token: str, what: str, said: Sequence[Any]
    ) -> tuple[int, str | None]:
        promise = Promise(self.unit, loss.neighbours)
        charged = self.ledger.charge(
            list(self.accounts),
            loss.promising(promise),
            token=token,
            request=digest_of((what, *said)),
            note={"learn": what},
            tables=self.tables,
        )
        return charged.entry, charged.answer if charged.replayed else None


def digest_of(value: Any) -> str:
    """A digest of nested tuples, text, whole numbers, fractions, bytes and None, in one form."""
    text = json.dumps(_form(value), separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(b"dither learn 1\n" + text.encode()).hexdigest()


def _form(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_form(v) for v in value]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, str):
        return ["text", value]
    return None if value is None else ["number", str(value)]

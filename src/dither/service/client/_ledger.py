"""The ledger of a policy that is served, for its owner, whose key stays where it is."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from dither.errors import AmendmentError, ArgumentError, LedgerError, nearest
from dither.ledger import Balance
from dither.ledger._block_budget import Budget
from dither.ledger.amendments import AmendmentBase, SignedAmendment
from dither.service._balances import balance_from_dict
from dither.service.client._http import Calls, UnreachableServiceError

if TYPE_CHECKING:
    from dither.ledger import OwnerKey

__all__ = ["RemoteLedger"]

MOST_SIGNED = 20
"""How often an amendment is signed anew where others charge meanwhile."""


class RemoteLedger:
    """A ledger at a service: what its owner and its auditors may see and do from elsewhere.

    Parameters
    ----------
    calls : Calls
    policy : str
        The digest of the policy that is served, as it was when the session began.
    """

    def __init__(self, calls: Calls, policy: str) -> None:
        self._calls, self._policy = calls, policy

    def accounts(self) -> list[str]:
        """The names of all accounts."""
        return [balance.name for balance in self._balances()]

    def balance(self, name: str) -> Balance:
        """What an account has spent and has left.

        Raises
        ------
        LedgerError
            There is no such account.
        """
        found = {balance.name: balance for balance in self._balances()}
        if name not in found:
            raise LedgerError(f"no account {name!r}{nearest(name, list(found))}")
        return found[name]

    def _balances(self) -> list[Balance]:
        found = self._calls.get("/ledger", last=1)["balances"]
        return [balance_from_dict(one) for one in found]

    def amend(
        self,
        name: str,
        budget: Budget,
        reason: str,
        *,
        key: OwnerKey | None = None,
        read_until: dt.date | None = None,
    ) -> None:
        """Change the caps of an account, as `Ledger.amend` does: amounts alone.

        The entry is made and signed here; what is sent is the new caps, the reason and the
        signature. The policy that is served has the new caps from then on; write them into its
        file all the same before anything else of it changes.

        Parameters
        ----------
        name : str
        budget : BudgetFilter or BlockBudget
            Its new caps.
        reason : str
            Kept for good.
        key : OwnerKey
            The owner's. It is not sent.
        read_until : date, optional
            Left out: blocks change where the ledger is.

        Raises
        ------
        LedgerError
            There is no such account, or this is not the owner's key, or the ledger has no owner.
        AmendmentError
            More than amounts would change, the caps changed meanwhile, or the service has another
            policy than when the session began.
        UnreachableServiceError
            No answer came: look at the balance, and see whether it was changed.
        """
        if read_until is not None:
            raise ArgumentError("read_until must be left out: blocks change where the ledger is")
        if key is None:
            raise LedgerError(
                "the owner's signature alone changes caps from elsewhere: give the owner's key "
                "(--key OWNER.key); nothing was changed"
            )
        first = self._base(name)
        signed = SignedAmendment.made(first, budget, reason, self._policy, key)
        for left in reversed(range(MOST_SIGNED)):
            try:
                self._calls.post("/amendments", signed.to_dict(), again=False)
                return
            except AmendmentError:
                now = self._base(name)
                moved = (now.number, now.previous, now.time)
                if not left or moved == (signed.number, signed.previous, signed.time):
                    raise
            except UnreachableServiceError as error:
                raise UnreachableServiceError(
                    f"{error}. See by session.ledger.balance({name!r}) whether the caps changed"
                ) from None
            # Others were charged meanwhile; but what the owner decided on must be as it was.
            if (now.caps, now.promise, now.owner) != (first.caps, first.promise, first.owner):
                raise AmendmentError(
                    f"the caps of account {name!r} changed since you decided: look at them, and "
                    "decide again; this amendment changed nothing"
                )
            signed = SignedAmendment.made(now, budget, reason, self._policy, key)

    def _base(self, name: str) -> AmendmentBase:
        found: Any = self._calls.get("/amendments", account=name)
        if found["policy"] != self._policy:
            raise AmendmentError(
                "the service has another policy than when this session began: connect again, and "
                "see what it says; nothing was changed"
            )
        base = AmendmentBase.from_dict(found["base"])
        if base.account != name:
            raise AmendmentError("the service tells of another account; nothing was signed")
        return base

    def __repr__(self) -> str:
        return "<ledger at a service>"

"""The account that bears a run: charged in full before the first step, and once.

*Before.* The entry is on the ledger's disk before anything of the rows is drawn or seen: neither
their noisy number, nor a sample, nor a step. So a run that is killed, fails, or is stopped early
has been charged for all of its planned steps. Nothing is refunded: when a run ends may say
something of the rows, and what a killed process had shown by then nobody knows.

*Once.* A run with a checkpoint has a key, of which all its randomness is a function
(`_checkpoint`). Its charge is noted under the token and a request that holds a hash of that key, of
whom it protects, and of what it costs. Going on asks for the same: where the ledger holds a charge
of this token *and* this request, that one covers the run, and there is no other; where it holds
none, for the process before was killed between its checkpoint and its charge, it is charged now.
*Proof* that each model was paid for. Every process that takes a step has seen an entry of its
run's request. All that processes of one request show is one function of one key and one set of
rows, bound by the checkpoint, so that one charge covers it. Another run has another key, hence
another request, and under a token that was used the ledger refuses it. A run without a checkpoint
has a new key every time: its token is good for one run, whatever became of that.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dither.errors import ArgumentError
from dither.learn._spending import Spending
from dither.learn.deep._charge import Cost
from dither.privacy import Charge, Loss

if TYPE_CHECKING:
    from dither.ledger import Ledger

__all__ = ["Billing", "bill_of"]


@dataclass(frozen=True)
class Billing:
    """Who bears what a run costs.

    Parameters
    ----------
    spending : Spending
    run : str
        What stands for the run: the same for all processes that go on with it.
    """

    spending: Spending
    run: str

    def charge(self, cost: Cost) -> int:
        """Charge all planned steps, or find them charged to this very run; the entry's number.

        Raises
        ------
        BudgetError, PromiseError
            The ledger refuses; nothing was charged.
        TokenError
            The token was used for another run, or for one that cannot go on.
        """
        if cost.steps is None:
            raise ArgumentError("steps must be planned for an account to be charged for them")
        spending = self.spending
        tables = tuple(sorted(spending.tables.items()))
        said = (self.run, spending.unit, tables, cost.steps, cost.noise_multiplier)
        return spending.resumed(_stated(cost), "train", *said)


def bill_of(
    ledger: Ledger | None,
    accounts: str | Sequence[str],
    unit: str | None,
    token: str | None,
    tables: Mapping[str, str] | None,
    run: str | None = None,
) -> Billing | None:
    """The bill of a run, or None where no ledger is named.

    Parameters
    ----------
    ledger, accounts, unit, token, tables
        As `dither.learn.train` takes them.
    run : str, optional
        What stands for a run with a checkpoint; its token where none is given.

    Raises
    ------
    ArgumentError
        An argument is out of range, or names an account without a ledger.
    """
    if ledger is None:
        named = {"accounts": accounts, "unit": unit, "token": token, "tables": tables}
        given = [name for name, value in named.items() if value]
        if given:
            raise ArgumentError(f"{given[0]} is of a ledger: name it, as in ledger=Ledger.open(…)")
        return None
    if unit is None:
        raise ArgumentError("unit must name whom the account protects, such as 'patient'")
    own = run or secrets.token_hex(16)
    return Billing(Spending(ledger, accounts, unit, token or own, dict(tables or {})), own)


def _stated(cost: Cost) -> Loss:
    """What all planned steps cost, charged at the epsilon and delta of the run where it has any."""
    planned = cost.planned
    if cost.delta is None or cost.epsilon is not None:
        return planned
    epsilon = Fraction(planned.epsilon(float(cost.delta)).upper)
    return planned.with_charge(Charge(epsilon, cost.delta, planned.charge.rho))

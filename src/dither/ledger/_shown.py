"""What a ledger is at a prompt and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dither._notebook import html_lines
from dither.errors import LedgerError
from dither.ledger._accounts import Balances

if TYPE_CHECKING:
    from dither.ledger._accounts import Balance

__all__ = ["ShownLedger"]


class ShownLedger:
    """Shows its name, and in a notebook its accounts with what is left of them."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        def accounts(self) -> list[str]: ...
        def balance(self, name: str) -> Balance: ...

    def __repr__(self) -> str:
        return f"<ledger {self.name}>"

    def _repr_html_(self) -> str:
        try:
            return Balances(map(self.balance, self.accounts()))._repr_html_()
        except LedgerError as error:
            # A notebook shows the ledger after it was closed as well.
            return html_lines(f"ledger {self.name}", [str(error)])

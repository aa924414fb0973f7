"""What a ledger is at a prompt and in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._notebook import html_lines
from dither.errors import LedgerError
from dither.ledger._accounts import Balances

if TYPE_CHECKING:
    from dither.ledger._accounts import Balance
    from dither.ledger._entries import Entry

__all__ = ["ShownLedger"]


class ShownLedger:
    """Shows its name, and in a notebook its accounts with what is left of them."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        def accounts(self) -> list[str]: ...
        def balance(self, name: str) -> Balance: ...
        def entries(self, account: str | None = None, limit: int | None = None) -> list[Entry]: ...

    def plot(
        self,
        path: str | Path | None = None,
        *,
        account: str | None = None,
        title: str | None = None,
    ) -> Any:
        """Draw what was spent in all by date: of each data set, and beside it of its quotas.

        Caps are drawn as they were at each time. Where the account's charges so far say when it
        would be spent (`Balance.forecast`), the line goes on to that day, dashed; it promises
        nothing. Budgets of blocks and of windows begin anew with each, so their picture is that of
        `Balance.plot`, and here what was charged in all is held against the lifetime alone.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        account : str, optional
            Only this account.
        title : str, optional
            By default the ledger's name.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        LedgerError
            There is no such account.

        Examples
        --------
        >>> from tempfile import mkdtemp
        >>> from dither import accounting, privacy
        >>> from dither.ledger import Ledger
        >>> patient = privacy.Promise("patient")
        >>> ledger = Ledger.open(mkdtemp() + "/visits.ledger")
        >>> ledger.ensure_account("visits", accounting.BudgetFilter(1), patient)
        >>> ledger.plot().get_suptitle()
        'visits.ledger'
        """
        from dither.ledger.pictures._history import draw

        return draw(self, path, account, title)

    def __repr__(self) -> str:
        return f"<ledger {self.name}>"

    def _repr_html_(self) -> str:
        try:
            return Balances(map(self.balance, self.accounts()))._repr_html_()
        except LedgerError as error:
            # A notebook shows the ledger after it was closed as well.
            return html_lines(f"ledger {self.name}", [str(error)])

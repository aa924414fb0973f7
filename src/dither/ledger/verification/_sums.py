"""What charges that follow one another add up to, and how entries write it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from dither.ledger._entries import INFINITE
from dither.ledger._states import Units
from dither.ledger.verification._standing import AccountStanding

__all__ = ["RunningSums"]


class RunningSums:
    """What some charges add up to one after the other; accounts often have the same sums.

    Parameters
    ----------
    charges : sequence of Units
        One or more.
    """

    def __init__(self, charges: Sequence[Units]) -> None:
        self.charges = charges
        self._columns: list[tuple[int | None, ...]] = list(zip(*charges, strict=True))
        self._known: dict[tuple[int, int | None], tuple[int | None, str | list[str]]] = {}

    def after(self, account: AccountStanding) -> tuple[Units, list[str]]:
        """What an account has spent after the last, and its part of ``totals`` after each."""
        (epsilon, e), (delta, d), (rho, r), (rho_delta, rd) = (
            self._from(place, spent) for place, spent in enumerate(account.spent)
        )
        varying = [said for said in (d, e, r, rd) if isinstance(said, list)]
        d, e, r, rd = (said if isinstance(said, str) else "%s" for said in (d, e, r, rd))
        name = account.name.replace("%", "%%")
        text = f'{name}:{{"delta":"{d}","epsilon":"{e}","rho":"{r}","rho_delta":"{rd}"}}'
        rows = zip(*varying, strict=True) if varying else [()] * len(self.charges)
        assert delta is not None
        assert rho_delta is not None
        return (epsilon, delta, rho, rho_delta), [text % row for row in rows]

    def _from(self, place: int, start: int | None) -> tuple[int | None, str | list[str]]:
        """The last sum of one amount, and all of them as text: one text where all are alike."""
        found = self._known.get((place, start))
        if found is None:
            found = self._known[place, start] = self._summed(place, start)
        return found

    def _summed(self, place: int, start: int | None) -> tuple[int | None, str | list[str]]:
        column = self._columns[place]
        if start is None:
            return None, INFINITE
        if None in column:
            first = column.index(None)
            finite = [held for held in column[:first] if held is not None]
            said = list(map(str, accumulate(finite, initial=start)))[1:]
            return None, said + [INFINITE] * (len(column) - first)
        sums = list(accumulate(column, initial=start))
        # No charge is negative.
        return sums[-1], str(start) if sums[-1] == start else list(map(str, sums[1:]))

"""What limits leave out, shown on dummy rows: nothing of it is of anybody's."""

from __future__ import annotations

import tempfile
import tomllib
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from dither.errors import DitherError
from dither.policy._policy import Policy, read_policy
from dither.policy._publishing import DeclaredOwner
from dither.session._session import _of_owner, _opened

__all__ = ["LimitRow", "biases", "biases_of"]

ROWS = 3000

SEED = 1

LIMITS = (1, 2, 3, 4, 6, 8, 12, 16, 32)


@dataclass(frozen=True, slots=True)
class LimitRow:
    """What one limit does to a count of dummy rows.

    Parameters
    ----------
    max_rows : int
    counted : int
        Of `rows`: how many count.
    rows : int
    width : float or None
        Half of the 95 % interval of the count at ε = 1.
    chosen : bool
        Whether it is the limit that the policy has.
    """

    max_rows: int
    counted: int
    rows: int
    width: float | None
    chosen: bool

    @property
    def missing(self) -> float:
        """The share of rows that the count lacks."""
        return 1 - self.counted / self.rows


@lru_cache(maxsize=32)
def biases_of(folder: Path, text: str, stamp: tuple[Any, ...], table: str) -> list[LimitRow]:
    """As `biases`, of a text whose sources are as they were; see `PolicyDraft.state`."""
    read = read_policy(tomllib.loads(text, parse_float=Decimal), within=folder)
    return biases(read, table)


def biases(policy: Policy, table: str) -> list[LimitRow]:
    """What limits on a person's rows do to a count of all rows, on dummy rows of a table.

    Parameters
    ----------
    policy : Policy
    table : str
        A private one with a column that says whose a row is.

    Returns
    -------
    list of LimitRow
        Empty where no such session can be opened. The rows are those of `Session.dummy`: from names
        and types of columns and from what the policy declares, so that they tell nothing of how
        many rows somebody has.
    """
    declared = policy.tables[table]
    if declared.unit is None:
        return []
    with tempfile.TemporaryDirectory(prefix="dither-limits-") as folder:
        apart = replace(
            policy,
            ledger=Path(folder) / "limits.ledger",
            owner=DeclaredOwner(),
            tables={
                name: replace(one, max_rows_cap=None, max_groups_cap=None)
                for name, one in policy.tables.items()
            },
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                session = _opened(apart, _of_owner(apart), *[None] * 6)
        except DitherError:
            return []
        with session:
            held = session.dummy(table, ROWS, seed=SEED).frame[declared.unit]
            each = Counter(value for value in held.to_list() if value is not None)
            rows = sum(each.values())
            limits = sorted({*LIMITS, declared.max_rows})
            least = next((m for m in limits if m >= max(each.values())), limits[-1])
            found = []
            for most in limits:
                if most > max(least, declared.max_rows):
                    break
                counted = sum(min(number, most) for number in each.values())
                quoted = '"' + table.replace('"', '""') + '"'
                question = session.sql(f"SELECT COUNT(*) AS n FROM {quoted}")
                try:
                    shown = question.preview(1, sizes=[rows], max_rows=most)
                    width: float | None = float(shown.widths["n"][0])
                except DitherError:
                    width = None
                chosen = most == declared.max_rows
                found.append(LimitRow(most, counted, rows, width, chosen))
            return found

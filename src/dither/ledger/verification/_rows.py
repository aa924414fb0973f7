"""The rows of entries as they are walked along: their columns, and what their hashes cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from typing import Any

from dither.errors import ArgumentError
from dither.ledger._entries import (
    DOMAINS,
    FORMAT,
    HASHED,
    INFINITE,
    TEMPLATES,
    Amounts,
    Record,
    digest,
    written,
)
from dither.ledger._states import Units, charge_of

__all__ = [
    "AMOUNTS",
    "AMOUNTS_AT",
    "BLOCKS",
    "BUDGET",
    "COLUMNS",
    "HASH",
    "KIND",
    "NOTE",
    "NUMBER",
    "PREVIOUS",
    "PROMISE",
    "SIGNATURE",
    "TABLES",
    "TIME",
    "TOTALS",
    "AccountIndex",
    "dict_of",
    "hashed",
    "hashed_together",
    "of_amounts",
    "record_of",
    "units_of",
]

COLUMNS = (*HASHED[FORMAT], "hash", "answer", "signature")
"""The columns of a row as `Walk.step` takes them: those that are hashed first."""


@dataclass(frozen=True, slots=True)
class AccountIndex:
    """What the index of accounts has for some entries.

    Parameters
    ----------
    names : mapping of int to tuple of str
        By entry: the accounts that it touches.
    sets : mapping of int to set of str
        By entry: those of them whose caps it sets.
    """

    names: Mapping[int, tuple[str, ...]]
    sets: Mapping[int, set[str]]

    def of(self, number: int) -> dict[str, bool]:
        """By account that an entry touches: whether it sets its caps."""
        sets = self.sets.get(number, ())
        return {name: name in sets for name in self.names.get(number, ())}


_AT = {name: place for place, name in enumerate(COLUMNS)}
_PLACES = {form: [_AT[name] for name in names] for form, names in HASHED.items()}

TIME, BLOCKS, NOTE = _AT["time"], _AT["blocks"], _AT["note"]
NUMBER, KIND, PREVIOUS, HASH = (_AT[name] for name in ("number", "kind", "previous", "hash"))
SIGNATURE, TABLES, TOTALS = (_AT[name] for name in ("signature", "tables", "totals"))
BUDGET, PROMISE = (_AT[name] for name in ("budget", "promise"))
AMOUNTS = ("epsilon", "delta", "rho", "rho_delta")
AMOUNTS_AT = tuple(_AT[name] for name in AMOUNTS)
_ANSWER, _DIGEST = _AT["answer"], _AT["answer_digest"]


def hashed(row: Sequence[Any], form: int) -> bool:
    """Whether a row agrees with its own hash, the answer's text included."""
    return hashed_together([(held,) for held in row], form)


def hashed_together(columns: Sequence[Sequence[Any]], form: int) -> bool:
    """Whether rows agree with their own hashes, the texts of answers included.

    Parameters
    ----------
    columns : sequence of sequence
        ``COLUMNS`` of all of them: of each, its value in every row.
    form : int
        The format of the rows.
    """
    count = len(columns[NUMBER])
    if form != FORMAT and any(columns[place].count(None) != count for place in (BLOCKS, SIGNATURE)):
        return False
    constant: list[str] = []
    varying: list[Sequence[str]] = []
    try:
        for place in _PLACES[form]:
            column = columns[place]
            one = column[0]
            if (one is None or one.__class__ is str) and column.count(one) == count:
                constant.append(written(one).replace("%", "%%"))
            else:
                constant.append("%s")
                varying.append(_written(column))
        text = DOMAINS[form].decode() + TEMPLATES[form] % tuple(constant)
        rows = zip(*varying, strict=True) if varying else [()] * count
        hashes = [sha256((text % row).encode()).hexdigest() for row in rows]
        if hashes != list(columns[HASH]):
            return False
        answers, digests = columns[_ANSWER], columns[_DIGEST]
        if answers.count(None) == count:
            return digests.count(None) == count
        return digests == tuple(None if held is None else digest(held) for held in answers)
    except (ArgumentError, AttributeError, TypeError, UnicodeEncodeError):
        return False


def _written(column: Sequence[Any]) -> list[str]:
    """Values of a column in canonical JSON."""
    try:
        return list(map(encode_basestring_ascii, column))
    except TypeError:
        # Not all of them are texts.
        return list(map(str if set(map(type, column)) == {int} else written, column))


def record_of(row: Sequence[Any]) -> Record:
    """The record of a row."""
    return Record(**dict(zip(COLUMNS, row, strict=True)))


def units_of(amounts: Sequence[Any]) -> Units:
    """The amounts of a row, of which each is a whole number as text or ``"infinite"``.

    None is negative: what was spent never becomes less.

    Raises
    ------
    TypeError, ValueError
        They are something else.
    """
    epsilon, delta, rho, rho_delta = amounts
    return (
        None if epsilon == INFINITE else _whole(epsilon),
        _whole(delta),
        None if rho == INFINITE else _whole(rho),
        _whole(rho_delta),
    )


def _whole(text: Any) -> int:
    number = int(text)
    if number < 0 or str(number) != text:
        raise ValueError("an amount that the ledger never writes")
    return number


def dict_of(spent: Units) -> dict[str, str]:
    """What was spent, as entries write it."""
    return asdict(Amounts.of(charge_of(spent)))


def of_amounts(amounts: Amounts) -> Units:
    """Amounts that are written, in whole numbers of ``UNIT``."""
    return units_of((amounts.epsilon, amounts.delta, amounts.rho, amounts.rho_delta))

"""The rows of entries as they are walked along: their columns, and what their hashes cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any

from dither.errors import ArgumentError
from dither.ledger._entries import (
    FORMAT,
    HASHED,
    TEMPLATES,
    Amounts,
    Record,
    digest,
    hash_of,
    written,
)
from dither.ledger._states import Units, charge_of

__all__ = [
    "AMOUNTS",
    "BLOCKS",
    "BUDGET",
    "COLUMNS",
    "HASH",
    "KIND",
    "NUMBER",
    "PREVIOUS",
    "PROMISE",
    "SIGNATURE",
    "TABLES",
    "TIME",
    "TOTALS",
    "charged",
    "dict_of",
    "hashed",
    "of_amounts",
    "record_of",
    "units_of",
]

COLUMNS = (*HASHED[FORMAT], "hash", "answer", "signature")
"""The columns of a row as `Walk.step` takes them: those that are hashed first."""

_AT = {name: place for place, name in enumerate(COLUMNS)}
_HASHED = len(HASHED[FORMAT])

TIME, BLOCKS = _AT["time"], _AT["blocks"]
NUMBER, KIND, PREVIOUS, HASH = (_AT[name] for name in ("number", "kind", "previous", "hash"))
SIGNATURE, TABLES, TOTALS = (_AT[name] for name in ("signature", "tables", "totals"))
BUDGET, PROMISE = (_AT[name] for name in ("budget", "promise"))
AMOUNTS = ("epsilon", "delta", "rho", "rho_delta")
_ANSWER, _DIGEST = _AT["answer"], _AT["answer_digest"]


def hashed(row: Sequence[Any], form: int) -> bool:
    """Whether a row agrees with its own hash, the answer's text included."""
    try:
        if row[KIND] == "charge" and form == FORMAT:
            text = _charge_text(row)
            if text is not None:
                return bool(hash_of(text) == row[HASH])
        columns = [
            encode_basestring_ascii(held)
            if held.__class__ is str
            else "null"
            if held is None
            else written(held)
            for held in row[:_HASHED]
        ]
        if form != FORMAT:
            if row[BLOCKS] is not None or row[SIGNATURE] is not None:
                return False
            del columns[BLOCKS]
        answer = row[_ANSWER]
        return hash_of(TEMPLATES[form] % tuple(columns), form) == row[HASH] and (
            row[_DIGEST] is None if answer is None else digest(answer) == row[_DIGEST]
        )
    except (ArgumentError, AttributeError, TypeError, UnicodeEncodeError):
        return False


# Of a charge it is known what is text, and what is empty.
_EMPTY = ("answer_digest", "answers", "budget")
_empty = itemgetter(*(_AT[name] for name in (*_EMPTY, "answer")))
_texts = itemgetter(
    *(_AT[name] for name in HASHED[FORMAT] if name not in (*_EMPTY, "blocks", "number"))
)
_CHARGE = (
    "{"
    + ",".join(f'"{name}":{"null" if name in _EMPTY else "%s"}' for name in HASHED[FORMAT])
    + "}"
)
_BEFORE_NUMBER = sum(name < "number" for name in HASHED[FORMAT]) - sum(
    name < "number" for name in (*_EMPTY, "blocks")
)


def _charge_text(row: Sequence[Any]) -> str | None:
    """What a charge's hash covers, as ``Record.covered`` says it; ``None`` of an unusual one."""
    number, blocks = row[NUMBER], row[BLOCKS]
    if _empty(row) != (None, None, None, None) or number.__class__ is not int:
        return None
    try:
        texts = [*map(encode_basestring_ascii, _texts(row))]
        said = "null" if blocks is None else encode_basestring_ascii(blocks)
    except TypeError:
        return None
    return _CHARGE % (said, *texts[:_BEFORE_NUMBER], number, *texts[_BEFORE_NUMBER:])


def record_of(row: Sequence[Any]) -> Record:
    """The record of a row."""
    return Record(**dict(zip(COLUMNS, row, strict=True)))


_amounts = itemgetter(*(_AT[name] for name in AMOUNTS))


def charged(row: Sequence[Any]) -> Units:
    """What a row charges.

    Raises
    ------
    TypeError, ValueError
        Its columns hold something else than whole numbers.
    """
    return units_of(_amounts(row))


def units_of(amounts: Sequence[Any]) -> Units:
    """The amounts of a row, of which each is a whole number as text or ``"infinite"``.

    Raises
    ------
    TypeError, ValueError
        They are something else.
    """
    epsilon, delta, rho, rho_delta = amounts
    return (
        None if epsilon == "infinite" else int(epsilon),
        int(delta),
        None if rho == "infinite" else int(rho),
        int(rho_delta),
    )


def dict_of(spent: Units) -> dict[str, str]:
    """What was spent, as entries write it."""
    return asdict(Amounts.of(charge_of(spent)))


def of_amounts(amounts: Amounts) -> Units:
    """Amounts that are written, in whole numbers of ``UNIT``."""
    return units_of((amounts.epsilon, amounts.delta, amounts.rho, amounts.rho_delta))

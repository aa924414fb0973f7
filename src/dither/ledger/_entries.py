"""What one entry of the ledger is, how it is written, and how its hash is made.

An entry is one row. Its hash is SHA-256 over a canonical JSON text (sorted keys, no blanks, ASCII,
no floating-point number) of every column, the hash of the entry before it included. Three columns
stand outside: the hash itself; the text of an answer, whose own digest is hashed instead; and the
owner's signature, which covers what is hashed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, LedgerCorruptError
from dither.privacy._charge import Charge
from dither.privacy._promise import Promise

if TYPE_CHECKING:
    from dither.ledger._signing import OwnerKey

__all__ = [
    "FIRST",
    "FORMAT",
    "HASHED",
    "MORE",
    "MOST_SOURCES",
    "PURPOSE",
    "READABLE",
    "TEMPLATES",
    "UNIT",
    "Amounts",
    "BoundTable",
    "Entry",
    "Record",
    "Tables",
    "blocks_json",
    "canonical",
    "dated",
    "digest",
    "hash_of",
    "hour_of",
    "promise_of",
    "reading",
    "tables_json",
    "tables_of",
    "written",
]

UNIT = Fraction(1, 10**18)
"""The grain of the ledger: every amount is rounded up to a whole number of these."""

FIRST = "0" * 64
"""What stands for the hash before the first entry."""

FORMAT = 3
"""The version of what is stored; the store keeps it, and the first entry.

1. Accounts had caps alone.
2. Accounts are bound to a promise: a unit and its neighbours; and tables to theirs.
3. Budgets of blocks, and changes that the owner signs.
"""

READABLE = (2, 3)
"""The formats that can be read; only the newest is written."""

DOMAINS = {n: f"dither ledger entry {n}\n".encode() for n in READABLE}
"""By format: prefixed to what is hashed, so that no hash of an entry is that of anything else."""

PURPOSE = "ledger entry"
"""What the owner signs an entry as."""


@dataclass(frozen=True, slots=True)
class BoundTable:
    """What a table is bound to by its first charge, and where its rows were read.

    Parameters
    ----------
    promise : Promise
    by : str
        What says which unit a row belongs to.
    sources : mapping of str to str
        What its rows are known by, each with a mark that tells more of it and may change. Empty
        where that was never said; of the longest known `MOST_SOURCES` are kept, and `MORE`.
    """

    promise: Promise
    by: str
    sources: Mapping[str, str] = field(default_factory=dict)


Tables = Mapping[str, BoundTable]
"""By table: what it is bound to."""

MOST_SOURCES = 32
MORE = "others"
"""Stands for the sources of a table that were too many to keep."""

UNREADABLE = (
    ArgumentError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading a cell raises that holds something else than the ledger writes."""

INFINITE = "infinite"
_LARGEST = 10**1000


@dataclass(frozen=True, slots=True)
class Amounts:
    """A charge as the ledger writes it: whole numbers of ``UNIT``, as decimal text."""

    epsilon: str
    delta: str
    rho: str
    rho_delta: str

    @classmethod
    def of(cls, charge: Charge) -> Amounts:
        """Round a charge up to whole units and write it."""
        up = charge.rounded_up(UNIT)
        return cls(_units(up.epsilon), _units(up.delta), _units(up.rho), _units(up.rho_delta))

    def charge(self, promise: Promise | None) -> Charge:
        """The charge that these amounts say, under a promise.

        Raises
        ------
        ValueError
            A column holds something else than a whole number.
        """
        return Charge(
            _amount(self.epsilon),
            _finite(self.delta),
            _amount(self.rho),
            _finite(self.rho_delta),
            promise,
        )


@dataclass(frozen=True, slots=True)
class Record:
    """One row of the table ``entries``, column by column, as it is stored."""

    number: int
    time: str
    kind: str
    token: str | None
    request: str | None
    epsilon: str | None
    delta: str | None
    rho: str | None
    rho_delta: str | None
    totals: str
    promise: str | None
    tables: str
    budget: str | None
    note: str
    answers: int | None
    answer: str | None
    answer_digest: str | None
    previous: str
    hash: str
    blocks: str | None = None
    signature: str | None = None

    def covered(self, number: int | None = None, form: int = FORMAT) -> str:
        """What the hash and a signature cover: canonical JSON of the hashed columns.

        Raises
        ------
        ArgumentError
            A column holds a kind of value that the ledger never writes.
        """
        at = self.number if number is None else number
        columns = [at if name == "number" else getattr(self, name) for name in HASHED[form]]
        try:
            return TEMPLATES[form] % tuple(map(written, columns))
        except TypeError as error:
            raise ArgumentError("a column holds what the ledger never writes") from error

    def computed_hash(self, number: int | None = None, form: int = FORMAT) -> str:
        """The hash that the columns call for, at another place in the chain if one is given.

        Raises
        ------
        ArgumentError
            A column holds a kind of value that the ledger never writes.
        """
        return hash_of(self.covered(number, form), form)

    def sound(self, form: int | None = None) -> bool:
        """Whether the row is as it was when its hash was made, the answer's text included.

        Parameters
        ----------
        form : int, optional
            The format that it was written in; where left out, any that can be read.
        """
        try:
            answer = None if self.answer is None else digest(self.answer)
            forms = (FORMAT, *READABLE[:-1]) if form is None else (form,)
            return answer == self.answer_digest and any(
                self.computed_hash(form=form) == self.hash
                for form in forms
                if form == FORMAT or (self.blocks is None and self.signature is None)
            )
        except (ArgumentError, AttributeError, UnicodeEncodeError):
            return False

    def sealed(self) -> Record:
        """The same record with its hash."""
        return replace(self, hash=self.computed_hash())

    def signed(self, key: OwnerKey) -> Record:
        """The same record with its owner's signature."""
        return replace(self, signature=key.sign(PURPOSE, self.covered()))

    def amounts(self) -> Amounts | None:
        """What the entry charges; ``None`` where it is not a charge."""
        if self.kind != "charge":
            return None
        return Amounts(str(self.epsilon), str(self.delta), str(self.rho), str(self.rho_delta))

    def totals_after(self) -> dict[str, Amounts]:
        """What each account that the entry touches has spent, this entry included."""
        return {name: Amounts(**amounts) for name, amounts in _mapping(self.totals).items()}

    def entry(self) -> Entry:
        """The record as people read it."""
        with reading(f"entry {self.number}"):
            amounts = self.amounts()
            promise = promise_of(self.promise)
            return Entry(
                number=self.number,
                time=datetime.fromisoformat(self.time),
                kind=self.kind,
                accounts=tuple(_mapping(self.totals)),
                promise=promise,
                charge=None if amounts is None else amounts.charge(promise),
                note=_mapping(self.note),
                token=self.token,
                request=self.request,
                budget=None if self.budget is None else _mapping(self.budget),
                answers=self.answers,
                answer=self.answer,
                hash=self.hash,
                blocks=self.read_blocks(),
                signature=self.signature,
            )

    def read_blocks(self) -> BlockSet | None:
        """The blocks that a charge reads; ``None`` where its accounts have none."""
        held = {} if self.blocks is None else _mapping(self.blocks)
        return BlockSet.from_dict(held["read"]) if "read" in held else None

    def states(self) -> dict[str, str]:
        """By account that has blocks: the hash of what they have spent, this entry included."""
        # Last in the column; no text within it can hold this, since its quotes would be escaped.
        part = None if self.blocks is None else self.blocks.rpartition('"states":')[2]
        return {} if part is None else _mapping(part.removesuffix("}"))


HASHED = {
    form: sorted(
        f.name
        for f in fields(Record)
        if f.name not in ("hash", "answer", "signature") and (form > 2 or f.name != "blocks")
    )
    for form in READABLE
}
"""By format: the columns that an entry's hash covers, in their order there."""

TEMPLATES = {
    form: "{" + ",".join(f'"{name}":%s' for name in names) + "}" for form, names in HASHED.items()
}
"""By format: the canonical text that is hashed, without the values."""


def written(value: object) -> str:
    """A column's value in canonical JSON.

    Raises
    ------
    TypeError
        It is neither text nor a whole number nor ``None``.
    """
    if value is None:
        return "null"
    if type(value) is int:
        return str(value)
    # Text alone: for anything else this raises.
    return encode_basestring_ascii(value)  # type: ignore[arg-type]


def hash_of(text: str, form: int = FORMAT) -> str:
    """The hash of an entry, from the text that it covers."""
    return hashlib.sha256(DOMAINS[form] + text.encode()).hexdigest()


def blocks_json(read: BlockSet | None, states: Mapping[str, str]) -> str | None:
    """The column ``blocks``: what is read, and the hashes of what each account's have spent."""
    if not states:
        return None
    held: dict[str, Any] = {"states": dict(states)}
    if read is not None:
        held["read"] = read.to_dict()
    return json.dumps(held, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the ledger.

    Parameters
    ----------
    number : int
        Place in the chain, from 0.
    time : datetime
        The hour in which it was written, in UTC, by the clock of the machine that wrote it; of an
        answer, that of its charge. Entries written by earlier versions have it to the microsecond.
    kind : str
        ``"genesis"``, ``"account"``, ``"amend"``, ``"charge"``, ``"answer"``, ``"owner"`` or
        ``"upgrade"``.
    accounts : tuple of str
        The accounts that it touches.
    promise : Promise or None
        The unit and the neighbours of those accounts, and of what it charges.
    charge : Charge or None
        What it charges to each of them, rounded up to ``UNIT``.
    note : mapping
        What the writer noted.
    token, request : str or None
        The request's token and digest (of a charge).
    budget : mapping or None
        The caps that it sets (of an account and an amendment).
    answers, answer : int or None, str or None
        The number of the charge that it answers, and the answer.
    hash : str
        SHA-256 of the entry, chained to the one before.
    blocks : BlockSet or None
        The blocks that a charge reads, where its accounts have budgets for blocks.
    signature : str or None
        The owner's, of an entry that sets caps or names an owner.
    """

    number: int
    time: datetime
    kind: str
    accounts: tuple[str, ...]
    promise: Promise | None
    charge: Charge | None
    note: Mapping[str, Any]
    token: str | None
    request: str | None
    budget: Mapping[str, Any] | None
    answers: int | None
    answer: str | None
    hash: str
    blocks: BlockSet | None = None
    signature: str | None = None


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever a damaged cell makes of its reader into one sentence.

    Raises
    ------
    LedgerCorruptError
        What is read holds something that the ledger never writes.
    """
    try:
        yield
    except UNREADABLE as error:
        raise LedgerCorruptError(
            f"{what} of the ledger holds something that dither never writes: see `dither ledger "
            "verify`, and restore it from a copy"
        ) from error


def _mapping(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("no mapping")
    return found


def promise_of(text: str | None) -> Promise | None:
    """The promise that a column holds.

    Raises
    ------
    ArgumentError, ValueError
        It holds something else.
    """
    return None if text is None else Promise.from_dict(json.loads(text))


def tables_of(text: str) -> dict[str, BoundTable]:
    """The tables that have been charged so far, as the column ``tables`` holds them."""
    return {
        name: BoundTable(
            Promise.from_dict(held["promise"]),
            str(held["by"]),
            {str(source): str(mark) for source, mark in held.get("sources", {}).items()},
        )
        for name, held in _mapping(text).items()
    }


def tables_json(tables: Tables) -> str:
    """Tables as the column ``tables`` holds them; what is not known of one is left out."""
    return canonical(
        {
            name: {"promise": held.promise.to_dict(), "by": held.by}
            | ({"sources": dict(held.sources)} if held.sources else {})
            for name, held in tables.items()
        },
        "tables",
    )


def dated(before: str) -> str:
    """The time of an entry, of which a ledger keeps the hour: in UTC, and not before ``before``.

    To the second, the times of a charge and of its answer would say how long a question ran, which
    may depend on somebody's rows. ``before`` is the ledger's newest date: a clock that is behind,
    by however much, dates nothing before it, so that no window of time opens again and nothing
    that has lapsed holds again.
    """
    now = datetime.now(UTC)
    try:
        last = datetime.fromisoformat(before)
        behind = now < last
    except (TypeError, ValueError):
        behind = False
    return hour_of(last if behind else now)


def hour_of(moment: datetime) -> str:
    """The hour in which a moment with a time zone lies, as the ledger writes it."""
    utc = moment.astimezone(UTC)
    return utc.replace(minute=0, second=0, microsecond=0).isoformat()


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: object, name: str = "note") -> str:
    """The one JSON text of a value.

    Parameters
    ----------
    value : object
        Mappings with text keys, sequences, text, whole numbers, fractions (written ``"p/q"``),
        booleans and ``None``. No float: two programs may write the same one differently.
    name : str
        How an error names the value.

    Raises
    ------
    ArgumentError
        Something else is in it.

    Examples
    --------
    >>> canonical({"b": [1, Fraction(1, 3)], "a": None})
    '{"a":null,"b":[1,"1/3"]}'
    """
    return json.dumps(_plain(value, name), sort_keys=True, separators=(",", ":"), allow_nan=False)


def amounts_json(totals: Mapping[str, Amounts]) -> str:
    """Totals of accounts as the column ``totals`` holds them."""
    return canonical({name: asdict(amounts) for name, amounts in totals.items()})


def _plain(value: object, name: str) -> object:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ArgumentError(f"every key in {name} must be text")
        return {key: _plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_plain(item, f"{name}[{i}]") for i, item in enumerate(value)]
    raise ArgumentError(
        f"{name} is of type {type(value).__name__}; the ledger keeps text, whole numbers, "
        "fractions, booleans, None, and lists and mappings of them: give a number as text"
    )


def _units(amount: Fraction | None) -> str:
    if amount is None:
        return INFINITE
    if amount > _LARGEST:
        raise ArgumentError("an amount above 10^1000 cannot be written: claim None (infinite)")
    return str(int(amount / UNIT))


def _amount(text: str) -> Fraction | None:
    return None if text == INFINITE else _finite(text)


def _finite(text: str) -> Fraction:
    return int(text) * UNIT

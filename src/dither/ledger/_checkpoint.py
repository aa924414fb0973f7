"""Checkpoints: what a ledger held once, signed by its owner, to be published.

A chain shows what was changed within it. It cannot show that all of it was replaced by an older
copy, or by another chain made anew from some entry on. A checkpoint can, to whoever has it: the
ledger must hold an entry of that number and that hash, which covers all entries before, and its
accounts must have spent at least what they had then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dither._files import written
from dither.errors import ArgumentError, CheckpointError, LedgerCorruptError, LedgerError
from dither.ledger._signing import OwnerKey, PublicKey

if TYPE_CHECKING:
    from dither.ledger._ledger import Ledger
    from dither.privacy import Charge

__all__ = ["Checkpoint"]

FORMAT = 1
PURPOSE = "checkpoint"
AMOUNTS = ("epsilon", "delta", "rho", "rho_delta")

_TRIES = 100
"""How often a ledger that others charge meanwhile is read anew."""


@dataclass(frozen=True)
class Checkpoint:
    """What a ledger held; made by `Checkpoint.of`, or read by `Checkpoint.read`.

    Parameters
    ----------
    ledger : str
        The identity of the ledger.
    number, hash : int, str
        Its last entry.
    time : str
        The hour of that entry.
    totals : mapping of str to mapping
        What each account had spent, as exact text; None is infinite.
    signer : PublicKey
    signature : str

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from dither.accounting import BudgetFilter
    >>> from dither.ledger import Ledger
    >>> from dither.privacy import Promise
    >>> owner = OwnerKey.make()
    >>> place = Path(mkdtemp()) / "visits.ledger"
    >>> with Ledger.open(place) as ledger:
    ...     ledger.ensure_account("visits", BudgetFilter(Fraction(1), Fraction(0)), Promise("row"))
    ...     saved = Checkpoint.of(ledger, owner).save(place.parent / "checkpoint.json")
    >>> seen = Checkpoint.read(saved, owner.public)
    >>> seen.number
    1
    >>> Ledger.open(place, checkpoint=seen).accounts()
    ['visits']
    """

    ledger: str
    number: int
    hash: str
    time: str
    totals: Mapping[str, Mapping[str, str | None]]
    signer: PublicKey
    signature: str

    @classmethod
    def of(cls, ledger: Ledger, key: OwnerKey) -> Self:
        """Check the whole ledger, and sign what it holds. Costs O(n), as `Ledger.verify`.

        Raises
        ------
        LedgerCorruptError
            It does not hold: nothing is signed.
        LedgerError
            Others charge it without a pause.
        """
        found = ledger.verify()
        if not found.ok:
            raise LedgerCorruptError(
                f"the ledger does not hold, so it is not signed: {found.describe()}"
            )
        for _ in range(_TRIES):
            (last,) = ledger.entries(limit=1)
            totals = {
                name: {part: _text(amount) for part, amount in _amounts(ledger, name).items()}
                for name in ledger.accounts()
            }
            if ledger.entries(limit=1)[0].number == last.number:
                break
        else:
            raise LedgerError("the ledger is charged without a pause: try again later")
        if ledger.entry(found.entries - 1).hash != found.hash:
            raise LedgerCorruptError("the ledger changed while it was checked: nothing is signed")
        time = last.time.isoformat()
        body = _body(ledger.id, last.number, last.hash, time, totals, key.public)
        signature = key.sign(PURPOSE, _signed(body))
        return cls(ledger.id, last.number, last.hash, time, totals, key.public, signature)

    @classmethod
    def read(cls, source: str | Path | Mapping[str, Any], key: PublicKey) -> Self:
        """One that the owner signed, from its file or as plain data.

        Raises
        ------
        CheckpointError
            There is none, it is of another format, it was changed, or another key signed it.
        """
        body = _loaded(source)
        try:
            if body["format"] != FORMAT or isinstance(body["format"], bool):
                raise CheckpointError("the checkpoint's format is not one that this version reads")
            signer, signature = body["signer"], body["signature"]
            if signer != key.text:
                raise CheckpointError(
                    f"the checkpoint is signed by another key than {key.fingerprint}"
                )
            covered = {name: part for name, part in body.items() if name != "signature"}
            if not key.signed(PURPOSE, _signed(covered), signature):
                raise CheckpointError(
                    "the checkpoint was changed: the owner's signature is not of it"
                )
            found = cls(
                body["ledger"],
                body["number"],
                body["hash"],
                body["time"],
                body["totals"],
                key,
                signature,
            )
            found._spent()
            return found
        except (AttributeError, KeyError, TypeError, ValueError):
            raise CheckpointError(
                "the checkpoint lacks a field, or has it in another form"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """The checkpoint as plain data."""
        named = (self.ledger, self.number, self.hash, self.time, self.totals, self.signer)
        return {**_body(*named), "signature": self.signature}

    def save(self, path: str | Path) -> Path:
        """Write it to a file; all of it or nothing."""
        target = Path(path)
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        written(target, (text + "\n").encode("utf-8"))
        return target

    def check(self, ledger: Ledger) -> None:
        """See that a ledger is the one that this is of, and holds all that it held.

        Raises
        ------
        CheckpointError
            It is another ledger, older than this, forks from it, or an account has spent less than
            it had then.
        """
        if ledger.id != self.ledger:
            raise CheckpointError(
                f"{ledger.name} is another ledger than the checkpoint's: what that one had spent "
                "is not counted in it"
            )
        (last,) = ledger.entries(limit=1)
        if last.number < self.number:
            raise CheckpointError(
                f"{ledger.name} is older than the checkpoint: it ends with entry {last.number}, "
                f"and the checkpoint is of entry {self.number}; what was spent since is forgotten "
                "in it. Put the newest copy back"
            )
        if ledger.entry(self.number).hash != self.hash:
            raise CheckpointError(
                f"{ledger.name} forks from the checkpoint: its entry {self.number} is another. Put "
                "the newest copy of the ledger that was signed back"
            )
        accounts = set(ledger.accounts())
        for name, then in self._spent().items():
            now = _amounts(ledger, name) if name in accounts else dict.fromkeys(AMOUNTS, Fraction())
            for part in AMOUNTS:
                had, has = then[part], now[part]
                if has is not None and (had is None or has < had):
                    raise CheckpointError(
                        f"{ledger.name}: account {name!r} has spent less than it had at the "
                        "checkpoint; see `dither ledger verify`"
                    )

    def _spent(self) -> dict[str, dict[str, Fraction | None]]:
        return {
            name: {part: None if (t := held[part]) is None else Fraction(t) for part in AMOUNTS}
            for name, held in self.totals.items()
        }


def _amounts(ledger: Ledger, name: str) -> dict[str, Fraction | None]:
    spent: Charge = ledger.balance(name).spent
    return {part: getattr(spent, part) for part in AMOUNTS}


def _text(amount: Fraction | None) -> str | None:
    return None if amount is None else str(amount)


def _body(
    ledger: str,
    number: int,
    hash_: str,
    time: str,
    totals: Mapping[str, Mapping[str, str | None]],
    signer: PublicKey,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "ledger": ledger,
        "number": number,
        "hash": hash_,
        "time": time,
        "totals": {name: dict(held) for name, held in totals.items()},
        "signer": signer.text,
    }


def _signed(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _loaded(source: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(source, Mapping):
        return source
    if not isinstance(source, str | Path):
        raise ArgumentError("checkpoint must be a file, or a mapping")
    path = Path(source)
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise CheckpointError(f"no checkpoint can be read at {path.name}") from None
    except (ValueError, RecursionError):
        raise CheckpointError(f"{path.name} is not a checkpoint: it is not JSON") from None
    if not isinstance(body, dict):
        raise CheckpointError(f"{path.name} is not a checkpoint")
    return body

"""A signed checkpoint: an older ledger, a fork and another one are refused by it, and no other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dither as dt
from dither import privacy
from dither.accounting import BudgetFilter
from dither.errors import CheckpointError, LedgerCorruptError, LedgerError, PolicyError
from dither.ledger import Checkpoint, Ledger, OwnerKey
from dither.privacy import Promise

PATIENT = Promise("patient")
HALF = privacy.pure("1/2").promising(PATIENT)


def begun(place: Path, charges: int = 2) -> Ledger:
    """A ledger with an account and some charges."""
    ledger = Ledger.open(place)
    ledger.ensure_account("a", BudgetFilter(Fraction(100), Fraction(0)), PATIENT)
    for number in range(charges):
        charge(ledger, str(number))
    return ledger


def charge(ledger: Ledger, token: str) -> None:
    """One half."""
    ledger.charge(["a"], HALF, token=token, request="ab" * 32, note={})


@pytest.fixture
def key() -> OwnerKey:
    """The owner's."""
    return OwnerKey.make()


def test_a_checkpoint_is_written_read_and_held(tmp_path: Path, key: OwnerKey) -> None:
    """Number, hash and totals; the ledger that went on from it is opened, and so is the same."""
    ledger = begun(tmp_path / "a.ledger")
    made = Checkpoint.of(ledger, key)
    path = made.save(tmp_path / "c.json")
    for source in (path, str(path), made.to_dict()):
        assert Checkpoint.read(source, key.public) == made
    last = ledger.entries(limit=1)[0]
    assert (made.ledger, made.number, made.hash) == (ledger.id, last.number, last.hash)
    assert made.totals == {"a": {"epsilon": "1", "delta": "0", "rho": "1/4", "rho_delta": "0"}}
    Ledger.open(tmp_path / "a.ledger", checkpoint=made).close()
    charge(ledger, "more")
    ledger.amend("a", BudgetFilter(Fraction(200), Fraction(0)), "more")
    assert Ledger.open(tmp_path / "a.ledger", checkpoint=made).balance(
        "a"
    ).spent.epsilon == Fraction(3, 2)


def test_a_ledger_that_lacks_what_was_signed_is_refused(tmp_path: Path, key: OwnerKey) -> None:
    """An older copy, one that went on otherwise, another; none is begun where it is gone."""
    place = tmp_path / "a.ledger"
    ledger = begun(place)
    shutil.copy(place, tmp_path / "old.ledger")
    shutil.copy(place, tmp_path / "fork.ledger")
    charge(ledger, "more")
    signed = Checkpoint.of(ledger, key)
    path = signed.save(tmp_path / "c.json")
    ledger.close()
    begun(tmp_path / "other.ledger", 3).close()
    # Another process remembers nothing of the original, so nothing but the checkpoint refuses.
    script = f"""
import sys
from dither.errors import CheckpointError
from dither.ledger import Checkpoint, Ledger, PublicKey
from dither import privacy
from dither.privacy import Promise
half = privacy.pure("1/2").promising(Promise("patient"))
seen = Checkpoint.read({str(path)!r}, PublicKey({key.public.text!r}))
Ledger.open("fork.ledger").charge(["a"], half, token="x", request="cd" * 32, note={{}})
for name in ("old", "fork", "other"):
    try:
        Ledger.open(f"{{name}}.ledger", checkpoint=seen)
    except CheckpointError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    older, fork, other = done.stdout.splitlines()
    assert "old.ledger is older than the checkpoint: it ends with entry 3" in older
    assert "fork.ledger forks from the checkpoint: its entry 4 is another" in fork
    assert "other.ledger is another ledger than the checkpoint's" in other
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(tmp_path / "none.ledger", checkpoint=signed)
    assert not (tmp_path / "none.ledger").exists()


def test_totals_that_fell_are_refused(tmp_path: Path, key: OwnerKey, monkeypatch: Any) -> None:
    """As after an entry that something else than dither added with smaller ones."""
    ledger = begun(tmp_path / "a.ledger")
    signed = Checkpoint.of(ledger, key)
    real = Ledger.balance

    def less(book: Ledger, name: str) -> Any:
        found = real(book, name)
        object.__setattr__(found, "spent", privacy.Charge(Fraction(1, 2)))
        return found

    monkeypatch.setattr(Ledger, "balance", less)
    with pytest.raises(CheckpointError, match="account 'a' has spent less"):
        signed.check(ledger)
    monkeypatch.setattr(Ledger, "accounts", lambda _: [])
    with pytest.raises(CheckpointError, match="account 'a' has spent less"):
        signed.check(ledger)


def test_what_is_not_the_owners_checkpoint_is_refused(tmp_path: Path, key: OwnerKey) -> None:
    """Each field changed, taken out, another key, a certificate's signature, no JSON, no file."""
    body = Checkpoint.of(begun(tmp_path / "a.ledger"), key).to_dict()
    for name in body:
        for wrong in (None, 7, "x", {}, []):
            with pytest.raises(CheckpointError):
                Checkpoint.read({**body, name: wrong}, key.public)
        with pytest.raises(CheckpointError):
            Checkpoint.read({n: part for n, part in body.items() if n != name}, key.public)
    with pytest.raises(CheckpointError, match="signature is not of it"):
        Checkpoint.read({**body, "extra": 1}, key.public)
    with pytest.raises(CheckpointError, match="another key"):
        Checkpoint.read(body, OwnerKey.make().public)
    with pytest.raises(CheckpointError, match="format is not one"):
        Checkpoint.read({**body, "format": 2}, key.public)
    covered = {name: part for name, part in body.items() if name != "signature"}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    with pytest.raises(CheckpointError, match="signature is not of it"):
        Checkpoint.read({**body, "signature": key.sign("certificate", text)}, key.public)
    assert Checkpoint.read({**body, "signature": key.sign("checkpoint", text)}, key.public)
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(CheckpointError, match="not JSON"):
        Checkpoint.read(tmp_path / "c.json", key.public)
    with pytest.raises(CheckpointError, match="no checkpoint can be read"):
        Checkpoint.read(tmp_path / "none.json", key.public)


def test_a_ledger_that_does_not_hold_is_not_signed(
    tmp_path: Path, key: OwnerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner signs what was checked, and one state of it."""
    ledger = begun(tmp_path / "a.ledger")
    found = ledger.verify()
    with monkeypatch.context() as patch:
        bad = type(found)(False, 2, 2, "changed", found.hash)
        patch.setattr(Ledger, "verify", lambda _: bad)
        with pytest.raises(LedgerCorruptError, match="so it is not signed: entry 2: changed"):
            Checkpoint.of(ledger, key)
    with monkeypatch.context() as patch:
        other = type(found)(True, 2, None, None, "0" * 64)
        patch.setattr(Ledger, "verify", lambda _: other)
        with pytest.raises(LedgerCorruptError, match="changed while it was checked"):
            Checkpoint.of(ledger, key)
    real, count = Ledger.accounts, iter(range(10**6))

    def busy(book: Ledger) -> list[str]:
        charge(book, f"busy {next(count)}")
        return real(book)

    monkeypatch.setattr(Ledger, "accounts", busy)
    with pytest.raises(LedgerError, match="charged without a pause"):
        Checkpoint.of(ledger, key)


def test_a_policy_names_its_checkpoint(tmp_path: Path, key: OwnerKey) -> None:
    """Held whenever it is opened; it needs the key that it must be signed by, and no new digest."""
    frames = {"visits": pl.DataFrame({"age": [1, 2, 3]})}
    made = {
        "budget": {"epsilon": 8, "ledger": str(tmp_path / "v.ledger")},
        "owner": {"public": key.public.text},
        "tables": {"visits": {}},
    }

    def opened(**budget: Any) -> dt.Session:
        return dt.open(made | {"budget": made["budget"] | budget}, sources=frames)

    with opened() as session:
        digest = session.policy.digest
        session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
        path = Checkpoint.of(session.ledger, key).save(tmp_path / "c.json")
    with opened(checkpoint=str(path)) as session:
        assert session.policy.digest == digest
        session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
    with pytest.raises(CheckpointError, match="no checkpoint can be read"):
        opened(checkpoint=str(tmp_path / "none.json"))
    begun(tmp_path / "w.ledger", 0).close()
    with pytest.raises(CheckpointError, match="another ledger"):
        opened(checkpoint=str(path), ledger=str(tmp_path / "w.ledger"))
    del made["owner"]
    with pytest.raises(PolicyError, match=r"needs the owner's public key"):
        opened(checkpoint=str(path))

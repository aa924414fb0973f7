"""An owner's key signs for one purpose, and nothing shows it."""

import os
import stat
from pathlib import Path

import pytest

from dither.errors import ArgumentError, KeyFileError
from dither.ledger._signing import OwnerKey, PublicKey


def test_a_key_is_the_same_once_it_was_written_and_read(tmp_path: Path) -> None:
    key = OwnerKey.make()
    key.write(tmp_path / "owner.key")
    (tmp_path / "owner.pub").write_text(key.public.text + "\n")
    again = OwnerKey.read(tmp_path / "owner.key")
    public = PublicKey.read(tmp_path / "owner.pub")
    assert public == key.public
    assert public.signed("amendment", "ε = 2", again.sign("amendment", "ε = 2"))
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "owner.key").stat().st_mode) == 0o600


def test_a_signature_covers_purpose_and_text_and_key() -> None:
    key, other = OwnerKey.make(), OwnerKey.make()
    signature = key.sign("certificate", "text")
    assert key.public.signed("certificate", "text", signature)
    assert not key.public.signed("checkpoint", "text", signature)
    assert not key.public.signed("certificate", "text ", signature)
    assert not other.public.signed("certificate", "text", signature)
    for forged in ("", "ab", "ä" * 88, signature[:-4], "A" * 88):
        assert not key.public.signed("certificate", "text", forged)
    # Where a purpose ends is signed, too.
    assert not key.public.signed("certificatet", "ext", signature)


def test_a_password_is_needed_where_there_is_one_and_only_there(tmp_path: Path) -> None:
    key = OwnerKey.make()
    key.write(tmp_path / "owner.key", "swordfish")
    assert OwnerKey.read(tmp_path / "owner.key", "swordfish").public == key.public
    for wrong in (None, "wrong"):
        with pytest.raises(KeyFileError, match=r"owner\.key holds no key"):
            OwnerKey.read(tmp_path / "owner.key", wrong)
    key.write(tmp_path / "open.key")
    with pytest.raises(KeyFileError, match=r"open\.key holds no key"):
        OwnerKey.read(tmp_path / "open.key", "swordfish")


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="see that the file is there"):
        OwnerKey.read(tmp_path / "none.key")
    (tmp_path / "text.key").write_text("nothing")
    with pytest.raises(KeyFileError, match="holds no key"):
        OwnerKey.read(tmp_path / "text.key")
    with pytest.raises(KeyFileError, match="holds no key"):
        PublicKey.read(tmp_path / "text.key")
    for text in ("", "dither-owner-", "00" * 31, "zz" * 32):
        with pytest.raises(ArgumentError, match="64 hexadecimal digits"):
            PublicKey(text)


def test_a_key_is_never_written_over_nor_shown(tmp_path: Path) -> None:
    key = OwnerKey.make()
    key.write(tmp_path / "owner.key")
    before = (tmp_path / "owner.key").read_bytes()
    with pytest.raises(KeyFileError, match="never written over"):
        key.write(tmp_path / "owner.key")
    assert (tmp_path / "owner.key").read_bytes() == before
    with pytest.raises(KeyFileError, match="its folder"):
        key.write(tmp_path / "none" / "owner.key")
    assert repr(key) == f"<owner's key {key.public.fingerprint}>"

"""What a session signs with the owner's key: certificates, and with them the version of the data.

The version of a table's data is a keyed digest of the names, sizes and times of its files. Its key
follows from the owner's key and the ledger's identity, and is written down nowhere: whoever holds
certificates, or the ledger, learns whether two releases read the same files, and can test no guess
about a file's size, which one person's rows may change.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither._environment import PREFIX, secret
from dither.engines.identity import file_versions
from dither.errors import ArgumentError
from dither.ledger._signing import OwnerKey, PublicKey
from dither.session._code import UNKNOWN

__all__ = [
    "CERTIFICATE",
    "CHANGED",
    "WITHHELD",
    "Signer",
    "is_same_version",
    "public_key",
    "read_key",
    "same_versions",
    "signed_text",
]

CERTIFICATE = "certificate"
"""The purpose of a certificate's signature."""

WITHHELD = "withheld"
"""Stands for a version that the policy does not publish."""

CHANGED = "changed while it was read"

_KEY = "key of data versions"


@dataclass(frozen=True, slots=True)
class Signer:
    """The owner's key in a session.

    Parameters
    ----------
    key : OwnerKey
    data_version : bool
        Whether certificates say the data's version.
    """

    key: OwnerKey
    data_version: bool = True

    def versions(self, ledger: str, sources: Mapping[str, Iterable[str]]) -> dict[str, str]:
        """The version of each table's data now, as certificates of this ledger say it.

        Whatever a file system says, nothing is raised: what cannot be told is unknown.

        Parameters
        ----------
        ledger : str
            The identity of the ledger.
        sources : mapping of str to iterable of str
            By table: what its rows are known by.
        """
        if not self.data_version:
            return dict.fromkeys(sources, WITHHELD)
        # A signature of Ed25519 is a function of key and text, and this one is never published.
        key = hashlib.sha256(self.key.sign(_KEY, ledger).encode()).digest()
        return {table: _version(key, table, texts) for table, texts in sources.items()}

    def signature(self, body: Mapping[str, Any]) -> str:
        """Of a certificate without one."""
        return self.key.sign(CERTIFICATE, signed_text(body))


def _version(key: bytes, table: str, texts: Iterable[str]) -> str:
    try:
        files = file_versions(texts)
    except (OSError, ValueError):
        return UNKNOWN
    if files is None:
        return UNKNOWN
    text = json.dumps([table, files], separators=(",", ":"))
    return hmac.new(key, b"dither data 1\n" + text.encode(), hashlib.sha256).hexdigest()


def same_versions(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """What was read between two looks."""
    return {table: one if one == after[table] else CHANGED for table, one in before.items()}


def is_same_version(before: str | None, now: str | None) -> bool | None:
    """Whether two versions of a table are one; ``None`` where either says none."""
    if {before, now} & {None, UNKNOWN, WITHHELD, CHANGED}:
        return None
    return before == now


def signed_text(body: Mapping[str, Any]) -> str:
    """All that a certificate says, its words included, as its signature covers it."""
    covered = {name: part for name, part in body.items() if name != "signature"}
    return json.dumps(covered, sort_keys=True, separators=(",", ":"))


def read_key(
    given: OwnerKey | str | Path, password: str | None = None, where: str = "key"
) -> OwnerKey:
    """The owner's key from what a policy or a caller names.

    Parameters
    ----------
    given : OwnerKey, path, or text
        ``"env:NAME"`` names a variable of the environment that holds a path, or the key itself in
        the form of its file.
    password : str, optional
        As ``"env:NAME"``, or itself.
    where : str
        How messages call it.

    Raises
    ------
    KeyFileError
        There is none, or the password is missing or wrong.
    PolicyError
        The environment has no such variable.
    """
    if isinstance(given, OwnerKey):
        return given
    if not isinstance(given, str | Path):
        raise ArgumentError(f"{where} must be an owner's key, the file of one, or 'env:NAME'")
    hidden = None if password is None else secret(password, f"{where}'s password").reveal()
    text = str(given)
    if text.startswith(PREFIX):
        text = secret(text, where).reveal().strip()
        if text.startswith("-----BEGIN"):
            return OwnerKey.from_pem(text.encode(), hidden, str(given))
    return OwnerKey.read(Path(text).expanduser(), hidden)


def public_key(given: PublicKey | OwnerKey | str | Path, where: str = "key") -> PublicKey:
    """The owner's public key: itself, its text, or the file that holds it.

    Raises
    ------
    KeyFileError
        There is no such file, or it holds none.
    ArgumentError
        It is something else.
    """
    if isinstance(given, OwnerKey):
        return given.public
    if isinstance(given, PublicKey):
        return given
    if isinstance(given, str) and given.startswith("dither-owner-"):
        return PublicKey(given)
    if not isinstance(given, str | Path):
        raise ArgumentError(f"{where} must be an owner's public key, or the file of one")
    return PublicKey.read(Path(given).expanduser())

"""The owner's key: signs what only the owner of the data may say. Ed25519, by ``cryptography``.

A signature covers a *purpose* beside the text, so that what was signed as one thing is never taken
for another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dither.errors import ArgumentError, KeyFileError

__all__ = ["OwnerKey", "PublicKey"]

_DOMAIN = b"dither signature 1\n"
_BEGINS = "dither-owner-"
"""How the text of a public key begins."""


class PublicKey:
    """What tells whether the owner signed: 32 bytes that anybody may have.

    Parameters
    ----------
    text : str
        ``dither-owner-`` and 64 hexadecimal digits.

    Raises
    ------
    ArgumentError
        It is none.
    """

    __slots__ = ("_key", "text")

    def __init__(self, text: str) -> None:
        try:
            raw = bytes.fromhex(text.strip().removeprefix(_BEGINS))
            self._key = Ed25519PublicKey.from_public_bytes(raw)
        except (AttributeError, ValueError, UnsupportedAlgorithm):
            raise ArgumentError(
                f"an owner's public key is {_BEGINS} and 64 hexadecimal digits"
            ) from None
        self.text = _BEGINS + raw.hex()

    @classmethod
    def read(cls, path: str | Path) -> PublicKey:
        """The public key in a file.

        Raises
        ------
        KeyFileError
            There is no such file, or it holds none.
        """
        with _reading(path):
            return cls(Path(path).read_text(encoding="ascii"))

    def signed(self, purpose: str, text: str, signature: str) -> bool:
        """Whether the owner signed this text, for this purpose."""
        try:
            self._key.verify(base64.b64decode(signature, validate=True), _covered(purpose, text))
        except (InvalidSignature, binascii.Error, TypeError, ValueError):
            return False
        return True

    @property
    def fingerprint(self) -> str:
        """Eight bytes of it in hexadecimal, to be read out."""
        return hashlib.sha256(bytes.fromhex(self.text.removeprefix(_BEGINS))).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[type[PublicKey], tuple[str]]:
        return PublicKey, (self.text,)

    def __repr__(self) -> str:
        return f"<public key {self.fingerprint}>"


class OwnerKey:
    """The secret with which an owner signs; neither ``repr`` nor an error shows it.

    Examples
    --------
    >>> key = OwnerKey.make()
    >>> signature = key.sign("amendment", "epsilon = 2")
    >>> key.public.signed("amendment", "epsilon = 2", signature)
    True
    >>> key.public.signed("certificate", "epsilon = 2", signature)
    False
    """

    __slots__ = ("_key", "public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        raw = key.public_key().public_bytes(form.Encoding.Raw, form.PublicFormat.Raw)
        self.public = PublicKey(raw.hex())

    @classmethod
    def make(cls) -> OwnerKey:
        """A new key, from the randomness of the operating system."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def read(cls, path: str | Path, password: str | None = None) -> OwnerKey:
        """The key in a file.

        Raises
        ------
        KeyFileError
            There is no such file, it holds none, or the password is missing or wrong.
        """
        with _reading(path):
            body = Path(path).read_bytes()
        return cls.from_pem(body, password, Path(path).name)

    @classmethod
    def from_pem(cls, body: bytes, password: str | None = None, name: str = "it") -> OwnerKey:
        """The key that a text holds in the form of its file.

        Parameters
        ----------
        body : bytes
        password : str, optional
        name : str
            How an error calls the text.

        Raises
        ------
        KeyFileError
            It holds none, or the password is missing or wrong.
        """
        with _reading(name):
            secret = None if password is None else password.encode()
            key = form.load_pem_private_key(body, secret)
            if isinstance(key, Ed25519PrivateKey):
                return cls(key)
        raise KeyFileError(f"{name} holds a key of another kind: it must be Ed25519")

    def write(self, path: str | Path, password: str | None = None) -> None:
        """Write it to a new file that nobody else may read, under a password if one is given.

        Raises
        ------
        KeyFileError
            There is such a file, or none can be made there.
        """
        hidden: form.KeySerializationEncryption = form.NoEncryption()
        if password is not None:
            hidden = form.BestAvailableEncryption(password.encode())
        text = self._key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, hidden)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise KeyFileError(
                f"{Path(path).name} is there already, and a key is never written over: name "
                "another file"
            ) from None
        except OSError:
            raise KeyFileError(
                f"{Path(path).name} cannot be written: see that its folder is there and may be "
                "written"
            ) from None
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def sign(self, purpose: str, text: str) -> str:
        """A signature of this text for this purpose, in base64."""
        return base64.b64encode(self._key.sign(_covered(purpose, text))).decode()

    def __repr__(self) -> str:
        return f"<owner's key {self.public.fingerprint}>"


def _covered(purpose: str, text: str) -> bytes:
    # The length tells where the purpose ends.
    return _DOMAIN + f"{len(purpose)} {purpose}\n".encode() + hashlib.sha256(text.encode()).digest()


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    name = Path(path).name
    try:
        yield
    except OSError:
        raise KeyFileError(f"no key can be read at {name}: see that the file is there") from None
    except (ArgumentError, TypeError, ValueError, UnsupportedAlgorithm):
        # A TypeError says that a password is missing, or one too many.
        raise KeyFileError(
            f"{name} holds no key that can be read: see that it is the right file, and the right "
            "password where it was written under one"
        ) from None

"""A certificate that is renewed while it is served: connections begin with the newest that is good.

Those who renew certificates write the two files one after the other, and may write what cannot be
used. So a pair is tried out by itself, and takes the place of the one before as a whole.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Self

from dither._files import file_stamp
from dither.errors import ArgumentError

__all__ = ["RenewedContext", "tls_context"]

Stamp = tuple[tuple[int, int, int] | None, ...]


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """What a server speaks TLS with.

    Parameters
    ----------
    certificate, key : path
        As PEM.

    Raises
    ------
    ArgumentError
        It cannot be spoken with these.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a word, a key under a password would have the start wait at the terminal for one.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except PermissionError:
        raise ArgumentError(
            "certificate or key of TLS cannot be read: see that the user that runs this may read "
            "both"
        ) from None
    except (OSError, ValueError):
        raise ArgumentError(
            "certificate and key of TLS cannot be used: both must be PEM, the first the "
            "certificate (and those behind it), the second its own key, without a password"
        ) from None
    return context


class RenewedContext(ssl.SSLContext):
    """What a server speaks TLS with, as two files have it by now.

    Connections that have begun go on as they did.

    Parameters
    ----------
    certificate, key : path
        As PEM.

    Raises
    ------
    ArgumentError
        TLS cannot be spoken with these.
    """

    def __new__(cls, certificate: Path, key: Path) -> Self:
        """Of a server."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self._seen = self._stamp()
        self._newest = tls_context(certificate, key)

    def wrap_bio(self, *args: Any, **named: Any) -> ssl.SSLObject:
        """Begin a connection, with the newest pair."""
        return self._newest.wrap_bio(*args, **named)

    def take_up(self, changed_only: bool = False) -> bool:
        """Read both files again, and take both or neither.

        Parameters
        ----------
        changed_only : bool
            Look at the files' times first.

        Returns
        -------
        bool
            Whether they were read.

        Raises
        ------
        ArgumentError
            They cannot be used: the pair before is served on, until a file changes once more.
        """
        stamp = self._stamp()
        if changed_only and stamp == self._seen:
            return False
        self._seen = stamp
        self._newest = tls_context(*self._files)
        return True

    def _stamp(self) -> Stamp:
        found: list[tuple[int, int, int] | None] = []
        for path in self._files:
            try:
                found.append(file_stamp(path))
            except OSError:
                found.append(None)
        return tuple(found)

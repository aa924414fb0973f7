"""``dither.connect``, which loads what it needs when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dither._environment import PREFIX, secret
from dither._extras import check_library
from dither.errors import ArgumentError

if TYPE_CHECKING:
    from dither.service.client._remote import RemoteSession

__all__ = ["connect"]


def connect(
    address: str,
    *,
    key: str,
    purpose: str | None = None,
    verify: bool | str = True,
    progress: Callable[[float], None] | None = None,
    wait: float | None = None,
    transport: Any = None,
) -> RemoteSession:
    """Connect to a policy that a service serves.

    Parameters
    ----------
    address : str
        Of the service, with the policy's name at its end: ``"https://data.example.org/visits"``.
    key : str
        What the owner of the data gave you; or ``"env:NAME"``, the variable that holds it.
    purpose : str, optional
        What it is asked for. Needed where the policy has quotas of purposes.
    verify : bool or str
        Whether the server's certificate is checked, or the file of those that are trusted.
    progress : callable, optional
        Called with the share done, from 0 to 1, while a question runs.
    wait : float, optional
        Seconds to wait for an answer; without end where left out.
    transport : optional
        Of httpx, in place of a connection.

    Returns
    -------
    RemoteSession
        With the methods of `Session`. What it explains and previews is worked out here, from what
        the policy says publicly.

    Raises
    ------
    ArgumentError
        The address is none, or would send the key unprotected.
    UnreachableServiceError
        There is no such service, or the key does not hold.

    Notes
    -----
    *Guarantee.* That of the policy that the service serves: nothing is added to it here, and
    nothing of the data comes here but what was released.
    """
    check_library("httpx", "service", "asking a service needs")
    from dither.service.client._remote import connected

    if not isinstance(address, str) or not isinstance(key, str):
        raise ArgumentError("address and key must be texts")
    known = secret(key, "key").reveal() if key.startswith(PREFIX) else key
    if not known.isascii() or not known.isprintable():
        raise ArgumentError("key must be the text that you were given, which begins with dither_")
    return connected(address, known, purpose, verify, progress, wait, transport)

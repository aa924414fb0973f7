"""Calls of a service, and what becomes of its refusals."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import httpx

from dither import errors
from dither.errors import ArgumentError, DitherError, EngineError

__all__ = ["Calls", "UnreachableServiceError"]

TRIES = 4
"""Of a call that may be made again without changing anything."""

LONGEST_NAP = 2.0


class UnreachableServiceError(DitherError):
    """The service cannot be reached, or lets nobody in with this key; nothing was charged."""


class Calls:
    """Calls of one policy at one service.

    Parameters
    ----------
    address : str
        With the policy's name at its end.
    key : str
    verify : bool or path
        As of httpx: what certificates of servers are held against.
    transport : optional
        As of httpx; for tests.
    """

    def __init__(
        self,
        address: str,
        key: str,
        *,
        verify: Any = True,
        timeout: float = 120.0,
        transport: Any = None,
    ) -> None:
        base, _, policy = address.rstrip("/").rpartition("/")
        url = httpx.URL(base)
        local = url.host in ("localhost", "127.0.0.1", "::1")
        if url.scheme not in ("http", "https") or not url.host or not policy:
            raise ArgumentError(
                "address must be that of a policy at a service, as in 'https://host/visits'"
            )
        if url.scheme == "http" and not local and transport is None:
            raise ArgumentError(
                "address must begin with https: whoever is on the way would read the key and the "
                "answers"
            )
        self._client = httpx.Client(
            base_url=f"{base}/v1/{policy}",
            headers={"authorization": f"Bearer {key}"},
            verify=verify,
            timeout=timeout,
            transport=transport,
            follow_redirects=False,
        )

    def get(self, path: str, **query: Any) -> Any:
        """What is there."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._call("GET", path, params=given)

    def post(self, path: str, body: Mapping[str, Any], *, again: bool = True) -> Any:
        """Send a body; fields that are None are left out.

        Parameters
        ----------
        path : str
        body : mapping
        again : bool
            Whether it may be sent twice where no answer comes.
        """
        given = {name: value for name, value in body.items() if value is not None}
        return self._call("POST", path, again=again, json=given)

    def delete(self, path: str) -> Any:
        """Take away what is there."""
        return self._call("DELETE", path)

    def _call(self, method: str, path: str, *, again: bool = True, **given: Any) -> Any:
        nap = 0.1
        for left in reversed(range(TRIES if again else 1)):
            try:
                answered = self._client.request(method, path, **given)
            except httpx.TransportError as error:
                if not left:
                    raise UnreachableServiceError(
                        f"the service cannot be reached ({type(error).__name__}): see its address, "
                        "and ask again; a request with a token is charged once"
                    ) from None
            else:
                if answered.status_code not in (429, 503) or not left:
                    return _read(answered)
            time.sleep(nap)
            nap = min(LONGEST_NAP, 3 * nap)
        raise AssertionError  # the last try returns or raises

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()


def _read(answered: httpx.Response) -> Any:
    try:
        body = answered.json()
        if answered.is_success:
            return body
        found = body["error"]
        kind, message = str(found["kind"]), str(found["message"])
    except (ValueError, KeyError, TypeError):
        raise UnreachableServiceError(
            f"what answers at this address is no service of dither (status {answered.status_code})"
        ) from None
    raise refusal(kind, message)


def refusal(kind: str, message: str) -> DitherError:
    """The error that a service says, as it would have been raised here."""
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, DitherError):
        made: DitherError = found(message)
        return made
    if kind == "InternalError":
        return EngineError(message)
    return UnreachableServiceError(message)

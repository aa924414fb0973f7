"""Answering requests by endpoints: who asks, what they may, and how they are refused."""

from __future__ import annotations

import inspect
import json
import logging
import math
from collections.abc import Iterable
from typing import Any

import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dither import errors
from dither.service._callers import caller
from dither.service._desk import Desk
from dither.service._endpoints import Asked, Endpoint, NotFoundError, TooManyError, read_body
from dither.service._hall import Hall
from dither.service.access._entry import NOBODY, identity, proves_its_page
from dither.service.access._oidc import ProviderError, SignInError
from dither.service.access._people import Identity
from dither.service.access._roles import Role
from dither.service.web._guard import SLOW, RateLimit, TooLargeError, TooSlowError
from dither.service.web._metrics import Metrics
from dither.service.web._refusals import said, unknown

__all__ = ["FAILED", "Service", "of_texts", "parsed", "too_large", "too_slow"]

MOST_NESTED = 64
"""Lists and objects of a body, one in another."""

ANONYMOUS_RATE = 120
"""Requests a minute of one address without a key."""

FAILED = "the service failed; nothing was shown"

MANY = "too many requests; wait a minute"

log = logging.getLogger("dither.service")

STATUS: dict[type[Exception], int] = {
    NotFoundError: 404,
    TooManyError: 429,
    SignInError: 401,
    ProviderError: 503,
    errors.BudgetError: 409,
    errors.TokenError: 409,
    errors.AmendmentError: 409,
    errors.EngineError: 500,
    errors.LedgerLockedError: 503,
    errors.LedgerError: 503,
    errors.CertificateError: 422,
}
"""Of an error's class; 400 of every other that dither raises on purpose."""


class Service:
    """Answers requests by endpoints.

    Parameters
    ----------
    hall : Hall
    secure : bool
        Whether whoever comes does so over TLS, here or at a proxy.
    """

    def __init__(self, hall: Hall, secure: bool = False) -> None:
        self.hall, self.secure = hall, secure
        self.metrics = Metrics(hall)
        self._rates = {name: RateLimit(desk.settings.rate) for name, desk in hall.desks.items()}
        self._anonymous = RateLimit(ANONYMOUS_RATE)

    prefix = "/v1/{policy}"
    """What stands before an endpoint's path."""

    label = ""
    """What stands before it where requests are counted."""

    def route(self, endpoint: Endpoint) -> Route:
        """The route of an endpoint."""

        async def served(request: Request) -> Response:
            try:
                response = await self._served(endpoint, request)
            except errors.DitherError as error:
                response = self.said(request, _status(error), type(error).__name__, str(error))
            except TooLargeError as error:
                response = too_large(request, error)
            except TooSlowError as error:
                response = too_slow(request, error)
            except ClientDisconnect:
                raise
            except Exception as error:
                # Its words may hold data: its class alone is written down.
                log.error("%s %s: %s", endpoint.method, endpoint.path, type(error).__name__)
                response = self.said(request, 500, "InternalError", FAILED)
            self.metrics.answered(endpoint, response.status_code, self.label)
            if endpoint.changes or response.status_code >= 400:
                # By the endpoint's own pattern: what was sent may be anything.
                log.info(
                    "answered",
                    extra={
                        "said": {
                            "method": endpoint.method,
                            "path": endpoint.path,
                            "status": response.status_code,
                        }
                    },
                )
            return response

        return Route(f"{self.prefix}{endpoint.path}", served, methods=[endpoint.method])

    def said(self, request: Request, status: int, kind: str, message: str) -> Response:
        """How whoever asked is told that it is refused."""
        return said(status, kind, message)

    def unknown(self, request: Request) -> Response:
        """What whoever has no key that holds is told."""
        return unknown()

    async def finish(self, endpoint: Endpoint, asked: Asked, found: Any) -> Response:
        """What an endpoint found, as it goes out."""
        return JSONResponse(found, endpoint.status)

    async def _served(self, endpoint: Endpoint, request: Request) -> Response:
        desk = self.hall.desks.get(request.path_params["policy"])
        # A policy that is not there takes the same steps, so that its absence takes the same time.
        asked_at = desk or next(iter(self.hall.desks.values()), None)
        if asked_at is None:
            return self.unknown(request)
        who = await anyio.to_thread.run_sync(
            identity, request, asked_at.people, request.path_params["policy"], self.secure
        )
        opens = endpoint.open
        if who is None and opens and "authorization" not in request.headers:
            # A session that ended may begin again: browsers keep the cookie until it is replaced.
            who = NOBODY
        if desk is None and (who is not NOBODY or not opens):
            who = None
        if who is None or who is NOBODY:
            address = request.client.host if request.client else ""
            if not self._anonymous.admits(caller(address)):
                return self.said(request, 429, "TooMany", MANY)
        elif desk is not None:
            rate = self._rates[desk.name]
            rate.most = desk.settings.rate
            if not rate.admits(who.name):
                return self.said(request, 429, "TooMany", MANY)
        if who is None:
            return self.unknown(request)
        if desk is not None:
            refused = self._refused(endpoint, desk, who, request)
            if refused is not None:
                return refused
        body = await self._body(endpoint, request)
        if desk is None:
            await anyio.to_thread.run_sync(asked_at.people.by_key, body.get("key", ""))
            return self.unknown(request)
        path = {k: v for k, v in request.path_params.items() if k != "policy"}
        if any("\0" in part for part in path.values()):
            raise NotFoundError("there is nothing at this address")
        asked = Asked(self.hall, desk, who, body, path, request)
        if inspect.iscoroutinefunction(endpoint.does):
            found = await endpoint.does(asked)
        else:
            found = await anyio.to_thread.run_sync(endpoint.does, asked)
        if isinstance(found, Response):
            return found
        return await self.finish(endpoint, asked, found)

    def _refused(
        self, endpoint: Endpoint, desk: Desk, who: Identity, request: Request
    ) -> Response | None:
        allowed = who.role in endpoint.roles
        if who is NOBODY:
            if not allowed or (not endpoint.open and not desk.settings.public):
                return self.unknown(request)
        elif not allowed and not (Role.PUBLIC in endpoint.roles and desk.settings.public):
            return self.said(request, 403, "Forbidden", f"this is not for {who.role.value}s")
        if endpoint.changes and not proves_its_page(request, who):
            return self.said(
                request, 403, "Forbidden", "the request does not come from a page of this service"
            )
        return None

    async def _body(self, endpoint: Endpoint, request: Request) -> dict[str, Any]:
        if endpoint.method in ("GET", "DELETE"):
            pairs = request.query_params.multi_items()
            once = [n for n, _ in pairs if n in endpoint.takes and endpoint.takes[n].kind != "list"]
            if len(set(once)) < len(once):
                # As of a body: another reader might take the other one.
                raise errors.ArgumentError("the query names a field twice")
            return of_texts(endpoint, pairs)
        raw = await request.body()
        if not raw and not any(part.required for part in endpoint.takes.values()):
            return {}
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise errors.ArgumentError("the body must be JSON, and its type application/json")
        return read_body(endpoint.takes, parsed(raw))


def of_texts(endpoint: Endpoint, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The fields of a query or of a form, where all that is given is text.

    Raises
    ------
    ArgumentError
        As `read_body`.
    """
    given: dict[str, Any] = {}
    for name, value in pairs:
        part = endpoint.takes.get(name)
        if part is None and endpoint.lenient:
            continue
        if "\0" in value:
            raise errors.ArgumentError("the query has a character that no text has")
        digits = value.isascii() and value.isdigit() and len(value) < 12
        if part is not None and part.kind == "list":
            given.setdefault(name, []).append(value)
        elif part is not None and part.kind == "whole" and digits:
            given[name] = int(value)
        elif part is not None and part.kind == "flag" and value in ("true", "false"):
            given[name] = value == "true"
        else:
            given[name] = value
    return read_body(endpoint.takes, given)


def parsed(raw: bytes) -> Any:
    """The JSON of a body.

    Raises
    ------
    ArgumentError
        It is none; nothing of it is quoted.
    """
    try:
        found = json.loads(
            raw.decode("utf-8"),
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_once,
        )
        _look_through(found)
    except (ValueError, RecursionError):
        raise errors.ArgumentError("the body is not JSON that can be read") from None
    return found


def _no_constant(_: str) -> Any:
    raise ValueError


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, none of whose names stands twice: another reader might take the other one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _look_through(found: Any) -> None:
    """See that nothing nests too deep, and that every text can be written down."""
    left = [(found, 0)]
    while left:
        value, depth = left.pop()
        if depth > MOST_NESTED:
            raise ValueError
        if isinstance(value, str):
            if "\0" in value:
                raise ValueError
            value.encode("utf-8")  # half of a surrogate pair cannot be
        elif isinstance(value, list):
            left += [(one, depth + 1) for one in value]
        elif isinstance(value, dict):
            left += [(one, depth + 1) for pair in value.items() for one in pair]


def _status(error: errors.DitherError) -> int:
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 400)


def too_large(_: Request, error: Exception) -> Response:
    """What is said of a body that has more than it may."""
    found = said(413, "TooLarge", f"a body may have {error.args[0]:,} bytes")
    found.headers["connection"] = "close"
    return found


def too_slow(_: Request, error: Exception) -> Response:
    """What is said of a body that did not come in time."""
    found = said(408, "TooSlow", SLOW)
    found.headers["connection"] = "close"
    return found

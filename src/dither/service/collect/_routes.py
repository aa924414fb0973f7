"""The collector's routes: a survey's configuration, tokens, posts, and published estimates.

Nothing here logs, and no answer says more of a post than how many of its tokens were counted. An
error is ``{"error": {"kind", "message"}}``, whose message never quotes what was sent.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dither.errors import ArgumentError, LedgerError, UnknownNameError
from dither.service.collect._bodies import BINARY, JSON, OtherConfiguration, read_body, read_json
from dither.service.collect._collector import Collector
from dither.service.collect._intake import BusyCollector
from dither.service.collect._issuing import TokenRefused, TokenRequest
from dither.service.collect._publishing import newest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["app", "routes"]

FEW = 4
"""Signatures that are verified without handing them to another thread."""

Endpoint = Callable[[Request], Awaitable[Response]]


class _Refused(Exception):
    def __init__(self, status: int, kind: str, message: str, **headers: str) -> None:
        self.answer = _error(status, kind, message, headers)


def _error(status: int, kind: str, message: str, headers: Any = None) -> JSONResponse:
    body = {"error": {"kind": kind, "message": message}}
    return JSONResponse(body, status_code=status, headers=headers)


def routes(collector: Collector) -> list[Route]:
    """The routes of a collector, for an application to mount at its root.

    Parameters
    ----------
    collector : Collector

    Returns
    -------
    list of Route
        ``GET /collect/NAME/config``, ``POST /collect/NAME/tokens``, ``POST /collect/NAME`` and
        ``GET /collect/NAME/estimates``, each with the pages of ``origins`` let in.
    """
    origins = list(collector.settings.origins)
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["content-type"],
    )

    def route(path: str, method: str, answer: Callable[..., Awaitable[Response]]) -> Route:
        async def endpoint(request: Request) -> Response:
            return await _answered(collector, request, answer)

        methods = [method, "OPTIONS"] if origins else [method]
        within = [cors] if origins else []
        name = f"collect {answer.__name__.strip('_')}"
        return Route(path, endpoint, methods=methods, middleware=within, name=name)

    return [
        route("/collect/{name}/config", "GET", _config),
        route("/collect/{name}/estimates", "GET", _estimates),
        route("/collect/{name}/tokens", "POST", _tokens),
        route("/collect/{name}", "POST", _post),
    ]


def app(collector: Collector) -> Starlette:
    """An application of a collector alone; it closes the collector when it ends."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(collector.close)

    return Starlette(routes=routes(collector), lifespan=lifespan)


async def _answered(
    collector: Collector, request: Request, answer: Callable[..., Awaitable[Response]]
) -> Response:
    address = request.client.host if request.client else ""
    if not collector.rates.admits(address):
        return _error(
            429, "rate", "too many requests from this address; come again in a minute",
            {"retry-after": "60"},
        )  # fmt: skip
    try:
        name = request.path_params["name"]
        collector.survey(name)
        return await answer(collector, name, request)
    except _Refused as refused:
        return refused.answer
    except UnknownNameError:
        return _error(404, "survey", "there is no survey of this name")
    except OtherConfiguration:
        return _error(
            409, "configuration",
            "the reports are of another configuration than the survey has now: load it anew",
        )  # fmt: skip
    except ArgumentError as error:
        return _error(400, "body", str(error))
    except TokenRefused as error:
        return _error(403, "token", str(error))
    except BusyCollector:
        return _error(
            503, "busy", "more reports come than can be counted; send these again in a moment",
            {"retry-after": "1"},
        )  # fmt: skip
    except ClientDisconnect:
        return _error(400, "body", "the body was not sent whole")
    except LedgerError:
        return _error(500, "LedgerError", "the collector's state cannot be used")
    except Exception as error:
        # Whatever else fails tells its class alone: nothing was acknowledged.
        return _error(500, type(error).__name__, "the request failed; nothing was acknowledged")


async def _body(collector: Collector, request: Request) -> bytes:
    """The body, within its size and its time."""
    most, patience = collector.settings.body, collector.settings.patience
    too_large = _Refused(413, "size", f"a body may have {most:,} bytes", connection="close")
    said = request.headers.get("content-length", "0")
    # Before a byte of it is read, where it says so itself.
    if not said.isascii() or not said.isdigit() or len(said) > 12 or int(said) > most:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(patience):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise _Refused(
            408, "time", f"a body must be there in {patience} seconds", connection="close"
        ) from None
    return b"".join(parts)


def _kind(request: Request, *kinds: str) -> str:
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in kinds:
        raise _Refused(415, "type", f"the content-type must be {' or '.join(kinds)}")
    return found


async def _config(collector: Collector, name: str, _: Request) -> Response:
    body = collector.survey(name).configuration.to_dict()
    return JSONResponse(body, headers={"cache-control": "public, max-age=300"})


async def _tokens(collector: Collector, name: str, request: Request) -> Response:
    _kind(request, JSON)
    asked = TokenRequest.read(read_json(await _body(collector, request)))
    found = await run_in_threadpool(collector.issuer.issue, name, asked)
    signed = [base64.b64encode(one).decode() for one in found]
    return JSONResponse({"signed": signed}, headers={"cache-control": "no-store"})


async def _post(collector: Collector, name: str, request: Request) -> Response:
    kind = _kind(request, BINARY, JSON)
    body = await _body(collector, request)
    posts = read_body(body, kind, collector.survey(name).configuration)
    if len(posts) <= FEW:
        held = collector.holds(name, posts)
    else:
        held = await run_in_threadpool(collector.holds, name, posts)
    if not held:
        raise TokenRefused("a token is not of this survey; nothing was counted")
    found = await asyncio.wrap_future(collector.take(name, posts))
    return JSONResponse({"counted": found.counted, "spent": found.spent})


async def _estimates(collector: Collector, name: str, _: Request) -> Response:
    found = None
    if collector.survey(name).public:
        found = await run_in_threadpool(newest, collector, name)
    if found is None:
        return _error(404, "estimates", "no estimates of this survey are published here")
    return JSONResponse(found)

"""The service as a web application: routes from endpoints, and what stands around each call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from dither.service._desk import Desk
from dither.service._endpoints import Endpoint, every
from dither.service._hall import Hall
from dither.service._rounds import Rounds
from dither.service.page._pages import Pages
from dither.service.page._shown import made_ready
from dither.service.routes import amending, asking, auditing, jobs, owning, provider, signing
from dither.service.web._guard import RequestGuard, TooLargeError, TooSlowError
from dither.service.web._metrics import Metering
from dither.service.web._openapi import openapi
from dither.service.web._refusals import said
from dither.service.web._service import FAILED, Service, too_large, too_slow

__all__ = ["ENDPOINTS", "application"]

ENDPOINTS: list[Endpoint] = every(
    [
        asking.ENDPOINTS,
        jobs.ENDPOINTS,
        owning.ENDPOINTS,
        amending.ENDPOINTS,
        auditing.ENDPOINTS,
        signing.ENDPOINTS,
        provider.ENDPOINTS,
    ]
)

THREADS = 4
"""Calls of sessions at a time: of more the loop, on the same interpreter, would have no turn."""


def application(
    desks: Sequence[Desk],
    *,
    secure: bool = False,
    workers: int | None = None,
    hosts: Sequence[str] = (),
    more: Sequence[BaseRoute] = (),
    metrics: Metering = Metering.NEAR,
) -> Any:
    """The service of some policies, as an ASGI application.

    Parameters
    ----------
    desks : sequence of Desk
    secure : bool
        Whether whoever comes does so over TLS, here or at a proxy.
    workers : int, optional
        How many questions run at a time.
    hosts : sequence of str
        Names by which it may be called; all where empty.
    more : sequence of routes
        What else is served.
    metrics : Metering
        Who may read the counts at ``/metrics``.
    """
    rounds = Rounds(desks)
    hall = Hall(desks, workers, rounds)
    service = Service(hall, secure)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        await hall.start(made_ready)
        yield
        await hall.stop()

    document = openapi(ENDPOINTS)
    plain: list[tuple[str, Callable[[Request], Response]]] = [
        ("/health", lambda _: health(hall)),
        ("/metrics", lambda request: measured(service, metrics, request)),
        ("/openapi.json", lambda _: JSONResponse(document)),
    ]
    routes: list[BaseRoute] = [Route(path, does) for path, does in plain]
    routes += [service.route(endpoint) for endpoint in ENDPOINTS]
    page = Pages(service)
    routes += [*rounds.routes, *more, *page.routes()]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={
            404: page.nothing,
            405: page.nothing,
            TooLargeError: too_large,
            TooSlowError: too_slow,
            Exception: _broken,
        },
    )
    # Its answers would name the host that the request names, which is anybody's to write.
    app.router.redirect_slashes = False
    app.state.hall, app.state.secure = hall, secure
    most = max((desk.settings.body for desk in desks), default=2**20)
    large = {"/collect/": max((c.settings.body for c in rounds.collectors), default=most)}
    return RequestGuard(app, most, secure, hosts, large)


def measured(service: Service, metrics: Metering, request: Request) -> Response:
    """The counts, for whoever may read them."""
    if not metrics.allows(request.client.host if request.client else ""):
        return said(404, "NotFound", "there is nothing at this address")
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def health(hall: Hall) -> Response:
    """Whether questions can be asked: all can be read, and what is asked can be written down."""
    well = hall.ready and not hall.unwritten
    well = well and all(desk.healthy() for desk in hall.desks.values())
    return PlainTextResponse("ok" if well else "not ready", 200 if well else 503)


def _broken(_: Request, error: Exception) -> Response:
    return said(500, "InternalError", FAILED)

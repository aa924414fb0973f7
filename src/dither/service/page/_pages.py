"""The views as routes: the same rules of access as everything else, with HTML for people."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from dither import errors
from dither.service._endpoints import Asked, Endpoint, every, read_body
from dither.service.access._entry import NOBODY
from dither.service.access._people import Identity
from dither.service.access._roles import Role
from dither.service.page._shown import PageView, render
from dither.service.page._static import static
from dither.service.page.views import (
    answers,
    ask,
    budget,
    check,
    collect,
    forms,
    learn,
    ledger,
    owner,
    signing,
)
from dither.service.page.views.signing import key_form
from dither.service.web._refusals import said
from dither.service.web._service import Service, of_texts, parsed
from dither.service.work._jobs import State

__all__ = ["VIEWS", "Pages"]

VIEWS: list[Endpoint] = every(
    [
        signing.VIEWS,
        ask.VIEWS,
        answers.VIEWS,
        budget.VIEWS,
        ledger.VIEWS,
        check.VIEWS,
        learn.VIEWS,
        collect.VIEWS,
        forms.VIEWS,
        owner.VIEWS,
    ]
)
"""Every view. What one shows is below ``/p/POLICY``; what it takes comes as a form."""

FORM = "application/x-www-form-urlencoded"

MOST_FIELDS = 1000


class Pages(Service):
    """Answers browsers: refusals are HTML, and whoever is not signed in may sign in.

    Parameters
    ----------
    service : Service
        Whose rates and counts these are, too.
    """

    prefix = "/p/{policy}"

    label = "page "

    def __init__(self, service: Service) -> None:
        self.hall, self.secure, self.metrics = service.hall, service.secure, service.metrics
        self._rates, self._anonymous = service._rates, service._anonymous

    def said(self, request: Request, status: int, kind: str, message: str) -> Response:
        """A refusal, as a part of the view that asked or as a view of its own."""
        part = "hx-request" in request.headers
        shown = PageView(
            "_refused.html" if part else "refused.html",
            {"kind": kind, "message": message},
            status,
        )
        return render(shown, request, request.path_params["policy"], None, self.secure)

    def unknown(self, request: Request) -> Response:
        """The way in, which then leads to where somebody wanted to go.

        It is the same where there is no such policy.
        """
        policy = request.path_params["policy"]
        way_in = f"/p/{quote(policy, safe='')}/sign-in"
        if "hx-request" in request.headers:
            wanted = urlsplit(request.headers.get("hx-current-url", "")[:2000]).path
            address = f"{way_in}?then={quote(wanted)}"
            return Response("", 401, {"hx-redirect": address})
        if request.method == "GET" and request.url.path != way_in:
            return RedirectResponse(f"{way_in}?then={quote(request.url.path)}", 303)
        failed = request.method == "POST"
        wanted = request.query_params.get("then", "")
        shown = key_form(policy, wanted, failed=failed)
        return render(shown, request, policy, None, self.secure)

    async def finish(self, endpoint: Endpoint, asked: Asked, found: Any) -> Response:
        """What a view shows, as HTML."""
        # Whoever is nobody sees places only where the policy is public: else it would show that it
        # is there.
        hidden = asked.who is NOBODY and not asked.desk.settings.public
        who = None if hidden else asked.who
        return await to_thread.run_sync(self._rendered, found, asked, who)

    def _rendered(self, found: PageView, asked: Asked, who: Identity | None) -> Response:
        # An owner sees everywhere that somebody waits for them.
        owner = who is not None and who.role is Role.OWNER
        waiting = asked.desk.jobs.counted().get(State.WAITING.value, 0) if owner else 0
        return render(found, asked.http, asked.desk.name, who, self.secure, waiting)

    async def _body(self, endpoint: Endpoint, request: Request) -> dict[str, Any]:
        if endpoint.method in ("GET", "DELETE"):
            given = request.query_params.multi_items()
            return of_texts(endpoint, [(name, value) for name, value in given if value])
        raw = await request.body()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json":
            return read_body(endpoint.takes, parsed(raw))
        if raw and kind != FORM:
            raise errors.ArgumentError("the body must be a form")
        try:
            pairs = parse_qsl(
                raw.decode("utf-8"), errors="strict", max_num_fields=MOST_FIELDS
            )  # what was left empty is not given
        except ValueError:
            raise errors.ArgumentError("the body is not a form that can be read") from None
        return of_texts(endpoint, pairs)

    def nothing(self, request: Request, error: Exception) -> Response:
        """What is said of an address where there is nothing: in HTML where people look."""
        status = getattr(error, "status_code", 404)
        if request.url.path.startswith("/p/") and status == 404:
            return render(PageView("nothing.html", {}, 404), request, "dither", None, self.secure)
        return said(status, "NotFound", "there is nothing at this address")

    def root(self, request: Request) -> Response:
        """Ask which policy, and lead there: their names are told to nobody."""
        wanted = request.query_params.get("policy", "").strip()[:100]
        if wanted:
            return RedirectResponse(f"/p/{quote(wanted, safe='')}/", 303)
        return render(PageView("root.html"), request, "dither", None, self.secure)

    def routes(self) -> list[BaseRoute]:
        """Every view, and what views load."""
        return [
            Route("/", self.root),
            Route("/static/{name}", static),
            *[self.route(one) for one in VIEWS],
            # What programs connect to, typed into a browser.
            Route("/{policy}", lambda request: RedirectResponse(f"/p{request.url.path}/", 303)),
        ]

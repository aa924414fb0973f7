"""Signing in with a key, and out; and where somebody arrives."""

from __future__ import annotations

import re

from starlette.responses import RedirectResponse, Response

from dither.errors import ArgumentError
from dither.service._endpoints import (
    ANALYST,
    AUDITOR,
    OWNER,
    PUBLIC,
    Asked,
    Endpoint,
    Field,
    roles,
)
from dither.service.access._entry import (
    cookie_name,
    from_here,
    set_cookie,
    set_page_cookie,
    take_cookie,
)
from dither.service.access._people import SESSION_SECONDS
from dither.service.page._places import first_of
from dither.service.page._shown import PageView
from dither.service.routes.signing import secure

__all__ = ["VIEWS", "key_form", "place_after"]

PEOPLE = roles(ANALYST, OWNER, AUDITOR)


def place_after(policy: str, wanted: str) -> str:
    """Where somebody goes on to: a place of this policy's page alone, whatever was sent.

    >>> place_after("visits", "/p/visits/ask"), place_after("visits", "//elsewhere.example")
    ('/p/visits/ask', '/p/visits/')
    """
    home = f"/p/{policy}/"
    fine = wanted.startswith(home) and _PLAIN.fullmatch(wanted) and ".." not in wanted
    return wanted if fine else home


_PLAIN = re.compile(r"[A-Za-z0-9/._~-]*")


def key_form(policy: str, wanted: str, *, failed: bool, provider: bool = False) -> PageView:
    """The form that takes a key, and then leads on to where somebody wanted to go."""
    values = {"then": place_after(policy, wanted), "provider": provider, "failed": failed}
    return PageView("sign_in.html", values, 401 if failed else 200)


def _form(asked: Asked, failed: bool) -> PageView:
    wanted, provider = asked.body.get("then", ""), asked.desk.provider is not None
    return key_form(asked.desk.name, wanted, failed=failed, provider=provider)


def way_in(asked: Asked) -> PageView:
    """The form that takes a key."""
    return _form(asked, failed=False)


def come_in(asked: Asked) -> Response | PageView:
    """Begin a session."""
    if not from_here(asked.http):
        raise ArgumentError("sign in by the page of this service")
    found = asked.desk.people.by_key(asked.body.get("key", "").strip())
    if found is None:
        return _form(asked, failed=True)
    who, key = found
    session = asked.desk.people.sign_in(who, key)
    response = RedirectResponse(place_after(asked.desk.name, asked.body.get("then", "")), 303)
    name = asked.desk.name
    set_cookie(response, name, secure(asked), session, SESSION_SECONDS)
    set_page_cookie(response, name, secure(asked), session.csrf, SESSION_SECONDS)
    return response


def leave(asked: Asked) -> Response:
    """End the session."""
    cookie = asked.http.cookies.get(cookie_name(asked.desk.name, secure(asked)))
    if cookie is not None:
        asked.desk.people.sign_out(cookie)
    response = Response("", 200, {"hx-redirect": f"/p/{asked.desk.name}/sign-in"})
    take_cookie(response, asked.desk.name, secure(asked))
    return response


def home(asked: Asked) -> Response:
    """Lead somebody to their first place."""
    return RedirectResponse(f"/p/{asked.desk.name}/{first_of(asked.who)}", 303)


VIEWS = [
    Endpoint("GET", "/", roles(ANALYST, OWNER, AUDITOR, PUBLIC), home, "Where somebody arrives."),
    Endpoint(
        "GET",
        "/sign-in",
        roles(PUBLIC, ANALYST, OWNER, AUDITOR),
        way_in,
        "The way in.",
        {"then": Field("text", "where to go on to", most=2000)},
        lenient=True,
        open=True,
    ),
    Endpoint(
        "POST",
        "/sign-in",
        roles(PUBLIC, ANALYST, OWNER, AUDITOR),
        come_in,
        "Begin a browser's session with a key, and go on.",
        {
            "key": Field("text", "a key", most=200),
            "then": Field("text", "where to go on to", most=2000),
        },
        open=True,
    ),
    Endpoint("POST", "/sign-out", PEOPLE, leave, "End the browser's session."),
]

"""Signing in with a browser, and out."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

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
from dither.service.access._entry import cookie_name, set_cookie, take_cookie
from dither.service.access._people import SESSION_SECONDS
from dither.service.web._refusals import unknown

__all__ = ["ENDPOINTS"]

EVERYBODY = roles(ANALYST, OWNER, AUDITOR)


def secure(asked: Asked) -> bool:
    """Whether cookies may go over TLS alone."""
    return bool(asked.http.app.state.secure)


def sign_in(asked: Asked) -> Response:
    """Begin a session; the answer has what each change must bring along."""
    found = asked.desk.people.by_key(asked.body["key"])
    if found is None:
        return unknown()
    who, key = found
    session = asked.desk.people.sign_in(who, key)
    response = JSONResponse({"name": who.name, "role": who.role.value, "csrf": session.csrf})
    set_cookie(response, asked.desk.name, secure(asked), session, SESSION_SECONDS)
    return response


def sign_out(asked: Asked) -> Response:
    """End the session."""
    name = cookie_name(asked.desk.name, secure(asked))
    cookie = asked.http.cookies.get(name)
    if cookie is not None:
        asked.desk.people.sign_out(cookie)
    response = JSONResponse({})
    take_cookie(response, asked.desk.name, secure(asked))
    return response


def me(asked: Asked) -> dict[str, Any]:
    """Who asks."""
    return {"name": asked.who.name, "role": asked.who.role.value}


ENDPOINTS = [
    Endpoint(
        "POST",
        "/sign-in",
        roles(PUBLIC, ANALYST, OWNER, AUDITOR),
        sign_in,
        "Begin a browser's session with a key.",
        {"key": Field("text", "a key", True, 100)},
        open=True,
    ),
    Endpoint("POST", "/sign-out", EVERYBODY, sign_out, "End the session."),
    Endpoint("GET", "/me", EVERYBODY, me, "Who asks."),
]

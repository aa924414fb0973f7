"""Signing in at an OpenID Connect provider."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, RedirectResponse, Response

from dither.service._endpoints import (
    ANALYST,
    AUDITOR,
    OWNER,
    PUBLIC,
    Asked,
    Endpoint,
    Field,
    NotFoundError,
    roles,
)
from dither.service.access._entry import cookie_name, set_cookie, set_page_cookie
from dither.service.access._oidc import ATTEMPT_SECONDS, Provider, SignInError
from dither.service.access._people import SESSION_SECONDS, Identity
from dither.service.routes.signing import secure

__all__ = ["ENDPOINTS"]

EVERYBODY = roles(PUBLIC, ANALYST, OWNER, AUDITOR)


def _provider(asked: Asked) -> Provider:
    found = asked.desk.provider
    if found is None:
        raise NotFoundError("this policy has no provider to sign in at")
    return found


def _cookie(asked: Asked) -> dict[str, Any]:
    """What a browser keeps while somebody is away.

    It is lax where a session's cookie is strict: who comes back comes from another site.
    """
    return {
        "key": f"{cookie_name(asked.desk.name, secure(asked))}_oidc",
        "path": "/",
        "secure": secure(asked),
        "httponly": True,
        "samesite": "lax",
    }


def begin(asked: Asked) -> Response:
    """Lead a browser to the provider."""
    address, cookie = _provider(asked).begin()
    response = RedirectResponse(address, 303)
    response.set_cookie(value=cookie, max_age=ATTEMPT_SECONDS, **_cookie(asked))
    return response


def come_back(asked: Asked) -> Response:
    """Begin the session of whoever comes back, and lead them on, to one place alone."""
    people, place = asked.desk.people, _cookie(asked)
    name, role = _provider(asked).finish(asked.http.cookies.get(place["key"]), asked.body)
    if not people.come(name, role) or role is None:
        raise SignInError("the provider knows you, and this policy has no role for you")
    session = people.sign_in(Identity(name, role))
    # A page and no redirect: browsers would take a redirect for a part of the other site's, and
    # leave the new cookie at home.
    response = HTMLResponse(PAGE.format(policy=asked.desk.name))
    set_cookie(response, asked.desk.name, secure(asked), session, SESSION_SECONDS)
    set_page_cookie(response, asked.desk.name, secure(asked), session.csrf, SESSION_SECONDS)
    response.delete_cookie(**place)
    return response


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Signed in</title>
<meta http-equiv="refresh" content="0; url=/p/{policy}/"></head>
<body><p>You are signed in. <a href="/p/{policy}/">Go on.</a></p></body></html>
"""

ENDPOINTS = [
    Endpoint(
        "GET",
        "/oidc/begin",
        EVERYBODY,
        begin,
        "Begin to sign in at the policy's provider, which the answer leads to.",
        lenient=True,
        open=True,
        status=303,
    ),
    Endpoint(
        "GET",
        "/oidc/callback",
        EVERYBODY,
        come_back,
        "Come back from the provider, and begin a browser's session.",
        {
            "state": Field("text", "as it was sent to the provider", True, 200),
            "code": Field("text", "the provider's, used once", most=4000),
            "error": Field("text", "why the provider lets nobody in", most=200),
            "iss": Field("text", "the provider's issuer", most=1000),
        },
        lenient=True,
        open=True,
    ),
]

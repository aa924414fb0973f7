"""Who makes a request: by a key in its header, or by a browser's session."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from dither.service.access._people import Identity, People, SignedIn, hashed_key
from dither.service.access._roles import Role

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = [
    "NOBODY",
    "cookie_name",
    "from_here",
    "identity",
    "proves_its_page",
    "set_cookie",
    "set_page_cookie",
    "take_cookie",
]

NOBODY = Identity("", Role.PUBLIC)

CSRF_HEADER = "x-csrf-token"


def cookie_name(policy: str, secure: bool) -> str:
    """The name of a policy's cookie; with TLS browsers hold it to this host alone."""
    return f"{'__Host-' if secure else ''}dither_{policy}"


def identity(request: Request, people: People, policy: str, secure: bool) -> Identity | None:
    """Who makes a request: `NOBODY` without a key, None with one that does not hold."""
    given = request.headers.get("authorization")
    if given is not None:
        kind, _, key = given.partition(" ")
        found = people.by_key(key.strip()) if kind.lower() == "bearer" else None
        return None if found is None else found[0]
    cookie = request.cookies.get(cookie_name(policy, secure))
    return NOBODY if cookie is None else people.by_cookie(cookie)


def proves_its_page(request: Request, who: Identity) -> bool:
    """Whether a change comes from a page of this service, where a browser's session makes it.

    Another page can have the browser send the cookie, and cannot know what goes with it.
    """
    if who.csrf is None:
        return True
    if not from_here(request):
        return False
    given = request.headers.get(CSRF_HEADER, "")
    return hmac.compare_digest(hashed_key(given), who.csrf)


def from_here(request: Request) -> bool:
    """Whether a browser says that no other site's page makes the request; programs say nothing."""
    return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


def set_cookie(
    response: Response, policy: str, secure: bool, session: SignedIn, seconds: int
) -> None:
    """Hand a session's cookie to a browser."""
    response.set_cookie(
        cookie_name(policy, secure),
        session.cookie,
        max_age=seconds,
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def set_page_cookie(response: Response, policy: str, secure: bool, csrf: str, seconds: int) -> None:
    """Hand a browser what each change must bring along, for the service's own pages to read.

    A session that began at a provider began with a page, which cannot hand anything on.
    """
    response.set_cookie(
        f"{cookie_name(policy, secure)}_csrf",
        csrf,
        max_age=seconds,
        path="/",
        secure=secure,
        samesite="strict",
    )


def take_cookie(response: Response, policy: str, secure: bool) -> None:
    """Take it back."""
    response.delete_cookie(
        f"{cookie_name(policy, secure)}_csrf", path="/", secure=secure, samesite="strict"
    )
    response.delete_cookie(
        cookie_name(policy, secure), path="/", secure=secure, httponly=True, samesite="strict"
    )

"""How every endpoint refuses: JSON with a kind and a message, and nothing of what was sent."""

from __future__ import annotations

from starlette.responses import JSONResponse

__all__ = ["said", "unknown"]

LONGEST = 2000
"""Characters of a message."""


def said(status: int, kind: str, message: str) -> JSONResponse:
    """An error as every endpoint says it; what it names of a question may be long, and is cut."""
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]} ..."
    return JSONResponse({"error": {"kind": kind, "message": message}}, status)


def unknown() -> JSONResponse:
    """The same whether the policy is unknown or the key is."""
    found = said(401, "Unauthorized", "no such policy, or no key to it that holds")
    found.headers["www-authenticate"] = "Bearer"
    return found

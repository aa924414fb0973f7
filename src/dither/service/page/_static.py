"""What the page's views load: style, scripts and the editor, from this server alone."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

__all__ = ["address_names", "address_of", "static"]

FOLDER = Path(__file__).parent / "static"

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}

FOR_EVER = "public, max-age=31536000, immutable"
"""An address has the hash of what lies there: another content has another address."""


@cache
def _held(name: str) -> tuple[bytes, bytes, str] | None:
    """A file's bytes, the same compressed, and what they hash to; None where there is none."""
    known = {one.name: one for one in FOLDER.iterdir() if one.suffix in KINDS}
    if name not in known:
        return None
    raw = known[name].read_bytes()
    return raw, gzip.compress(raw, 9, mtime=0), hashlib.blake2b(raw, digest_size=8).hexdigest()


def address_of(name: str) -> str:
    """Where a file is served.

    Raises
    ------
    KeyError
        There is none of this name.
    """
    held = _held(name)
    if held is None:
        raise KeyError(name)
    return f"/static/{name}?v={held[2]}"


def address_names() -> list[str]:
    """The files that are served."""
    return sorted(one.name for one in FOLDER.iterdir() if one.suffix in KINDS)


def static(request: Request) -> Response:
    """One of the files."""
    name = request.path_params["name"]
    # Names that nobody wrote must not fill the cache.
    held = _held(name) if (FOLDER / "style.css").with_name(name[:60]).suffix in KINDS else None
    if held is None:
        return PlainTextResponse("there is nothing at this address", 404)
    raw, small, mark = held
    headers = {"vary": "accept-encoding"}
    if request.query_params.get("v") == mark:
        headers["cache-control"] = FOR_EVER
    kind = KINDS[Path(name).suffix]
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(small, headers=headers | {"content-encoding": "gzip"}, media_type=kind)
    return Response(raw, headers=headers, media_type=kind)

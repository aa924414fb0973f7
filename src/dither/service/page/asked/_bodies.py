"""A question as a form sends it, and as every endpoint of the service takes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from dither.errors import ArgumentError
from dither.service._endpoints import Field, read_body
from dither.service.routes.asking import QUESTION
from dither.service.web._service import parsed

__all__ = ["DRAFT", "SIZES", "body_of", "size_of", "token_of"]

DRAFT: Mapping[str, Field] = {
    "sql": Field("text", "a question in SQL", most=100_000),
    "calls": Field(
        "text", "the calls that make a question, as JSON, in place of sql", most=100_000
    ),
    "purpose": Field("text", "what it is asked for", most=200),
    "epsilon": Field("text", "what it may cost", most=100),
    "delta": Field("text", "what of delta it may cost", most=100),
    "confidence": Field("text", "of the intervals", most=100),
    "size": Field("text", "a public number of rows in a group", most=20),
    "draft": Field("text", "names the draft: one question of it is charged once", most=64),
}
"""What a form sends. While somebody types it is half of a number, which is told and not refused."""

SIZES = (100, 1_000, 10_000, 100_000)
"""Rows of a group that errors are shown for."""


def body_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """A form's fields as the body of a request, as `dither.service.routes.asking` takes it.

    Raises
    ------
    ArgumentError
        One is no number, or the calls cannot be read.
    """
    found: dict[str, Any] = {}
    if "sql" in given:
        # Forms that a browser sends by itself end lines in two characters.
        found["sql"] = given["sql"].replace("\r\n", "\n")
    if "calls" in given:
        found["ask"] = parsed(given["calls"].encode("utf-8", "replace"))
    for name in ("purpose", "epsilon", "delta", "confidence"):
        if name in given:
            found[name] = given[name].strip()
    return read_body(QUESTION, found)


def size_of(given: Mapping[str, Any]) -> int:
    """The rows in a group that errors are shown for.

    Raises
    ------
    ArgumentError
        It is none of those that are offered.
    """
    text = given.get("size", "1000")
    if text not in map(str, SIZES):
        raise ArgumentError(f"size must be one of {', '.join(map(str, SIZES))}")
    return int(text)


def token_of(draft: str, digest: str) -> str:
    """The token of one question of a draft: asked twice, by two clicks, it is one release.

    Another question of the same draft has another token.
    """
    return hashlib.blake2b(f"{draft}\n{digest}".encode(), digest_size=16).hexdigest()

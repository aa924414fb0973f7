"""Answers that are of dummy rows say so, whatever kind they are of.

An answer shows itself as its kind does. One of a rehearsal shows the notice before that, in a class
of its own that differs from the kind's in nothing else.
"""

from __future__ import annotations

import copyreg
import html
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from dither.policy.dummies import NOTICE

__all__ = ["DUMMY", "marked"]

DUMMY = "dummy"
"""The field of a certificate that says that what it certifies is of dummy rows."""

Answer = TypeVar("Answer")


def marked(found: Answer, certificate: Mapping[str, Any]) -> Answer:
    """The answer; where its certificate says that it is of dummy rows, so does all it shows.

    Examples
    --------
    >>> class Answer:
    ...     def __repr__(self):
    ...         return "41 people"
    >>> marked(Answer(), {"dummy": NOTICE})
    dummy rows: made from the policy's public facts; no row is real
    41 people
    >>> marked(Answer(), {})
    41 people
    """
    if DUMMY in certificate:
        # Frozen classes refuse it in their own words, and slots stay as they are.
        kind: Any = type(found)
        object.__setattr__(found, "__class__", _of_dummy_rows(kind))
    return found


@cache
def _of_dummy_rows(kind: Any) -> type:
    def with_notice(text: str) -> str:
        return text if NOTICE in " ".join(text.split()) else f"{NOTICE}\n{text}"

    def shown(self: Any) -> str:
        return with_notice(kind.__repr__(self))

    def told(self: Any) -> str:
        return with_notice(kind.__str__(self))

    def reduced(self: Any, protocol: Any) -> Any:
        # Pickled and copied as its kind: the class is made anew where it is read.
        made = object.__reduce_ex__(self, protocol)
        return _rebuilt, (kind, *made[1][1:]), *made[2:]

    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__repr__": shown,
        "__str__": told,
        "__reduce_ex__": reduced,
    }
    if callable(getattr(kind, "summary", None)):
        body["summary"] = lambda self, *args, **named: with_notice(
            kind.summary(self, *args, **named)
        )
    if hasattr(kind, "_repr_html_"):
        body["_repr_html_"] = lambda self: (
            f"<div><b>{html.escape(NOTICE)}</b>{kind._repr_html_(self)}</div>"
        )
    return type(kind.__name__, (kind,), body)


def _rebuilt(kind: type, *args: Any) -> Any:
    return copyreg.__newobj__(_of_dummy_rows(kind), *args)  # type: ignore[attr-defined]

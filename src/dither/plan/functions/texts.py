"""Functions of text, which is a sequence of code points: counts, places and pieces of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from dither.errors import QueryError
from dither.plan._ranges import Facts
from dither.plan.functions._signature import (
    Option,
    Signature,
    called,
    condition,
    nullable,
    quoted,
    text,
)
from dither.plan.functions.matchers import LIKE, REGEXP
from dither.plan.schema import Kind

__all__ = ["LONGEST", "TEXTS"]

LONGEST = 65_536
"""Code points that a text may have which is joined, or replaced by longer pieces. A text can be of
any length, and an engine fails on one that is too long for it; so what would be longer is NULL."""


def _count(parts: Sequence[Facts]) -> Facts:
    """No text has a longest: a count of its letters has bounds where its values are listed."""
    return Facts(Kind.INTEGER, step=Fraction(1), nullable=nullable(parts))


def _partial(parts: Sequence[Facts], *options: Option) -> Facts:
    return Facts(Kind.TEXT, nullable=True)


def _position(part: str, whole: str) -> int:
    return whole.find(part) + 1


def _concat(*parts: str) -> str | None:
    return "".join(parts) if sum(map(len, parts)) <= LONGEST else None


_SIDES: dict[str, tuple[str, Callable[[str, str], str]]] = {
    "both": ("TRIM", str.strip),
    "leading": ("LTRIM", str.lstrip),
    "trailing": ("RTRIM", str.rstrip),
}


def _trim(value: str, side: str, letters: str) -> str:
    return _SIDES[side][1](value, letters)


def _trim_words(operands: Sequence[str], side: str, letters: str) -> str:
    shown = "" if letters == " " else f", {quoted(letters)}"
    return f"{_SIDES[side][0]}({operands[0]}{shown})"


def _trim_check(name: str, options: tuple[Option, ...]) -> None:
    fits = len(options) == 2 and options[0] in _SIDES
    if not fits or not isinstance(options[1], str) or not options[1]:
        raise QueryError("TRIM takes the characters that it removes, as a constant text")


def _replace(value: str, old: str, new: str) -> str | None:
    if len(new) > len(old) and len(value) * len(new) > LONGEST * len(old):
        return None
    return value.replace(old, new)


def _replace_check(name: str, options: tuple[Option, ...]) -> None:
    if len(options) != 2 or not all(isinstance(option, str) for option in options):
        raise QueryError("REPLACE(x, old, new) takes two constant texts")
    if not options[0]:
        raise QueryError("REPLACE takes a text to replace that is not empty")


TEXTS = (
    Signature("length", ("text",), _count, len, called("LENGTH")),
    Signature("trim", ("text",), text, _trim, _trim_words, _trim_check),
    Signature("replace", ("text",), _partial, _replace, called("REPLACE"), _replace_check),
    Signature("concat", ("text", "text"), _partial, _concat, " || ".join, test=True, more=True),
    Signature("contains", ("text", "text"), condition, str.__contains__, called("CONTAINS")),
    Signature("starts with", ("text", "text"), condition, str.startswith, called("STARTS_WITH")),
    Signature("ends with", ("text", "text"), condition, str.endswith, called("ENDS_WITH")),
    Signature(
        "position", ("text", "text"), _count, _position, lambda xs: f"STRPOS({xs[1]}, {xs[0]})"
    ),
    LIKE,
    REGEXP,
)

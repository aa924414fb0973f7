"""Functions of text, which is a sequence of code points: counts, places and pieces of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from dither.errors import QueryError
from dither.plan.facts.ranges import Facts
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

__all__ = ["LONGEST", "LONGEST_PART", "TEXTS"]

LONGEST = 65_536
"""Code points that a text may have which is joined, or replaced by longer pieces. A text can be of
any length, and an engine fails on one that is too long for it; so what would be longer is NULL."""


LONGEST_PART = 1_000
"""Code points of what is looked for in a text, as of a pattern. Engines try each place anew, in a
time that is that of the text multiplied by that of the part: where both are as long as a row has
them, one row can keep a query busy for ever. So of a longer part the answer is NULL."""


def _count(parts: Sequence[Facts]) -> Facts:
    """No text has a longest: a count of its letters has bounds where its values are listed."""
    return Facts(Kind.INTEGER, step=Fraction(1), nullable=nullable(parts))


def _partial(parts: Sequence[Facts], *options: Option) -> Facts:
    return Facts(Kind.TEXT, nullable=True)


def _place(parts: Sequence[Facts]) -> Facts:
    found = nullable(parts) or not _is_short(parts[0])
    return Facts(Kind.INTEGER, step=Fraction(1), nullable=found)


def _truth(parts: Sequence[Facts]) -> Facts:
    return Facts(Kind.BOOLEAN, nullable=nullable(parts) or not _is_short(parts[1]))


def _is_short(part: Facts) -> bool:
    """Whether what is looked for is listed, and no longer than it may be."""
    listed = part.domain or ()
    return bool(listed) and all(len(str(value)) <= LONGEST_PART for value in listed)


def _position(part: str, whole: str) -> int | None:
    return whole.find(part) + 1 if len(part) <= LONGEST_PART else None


def _contains(whole: str, part: str) -> bool | None:
    return part in whole if len(part) <= LONGEST_PART else None


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
    if len(options[1]) > LONGEST_PART:
        raise QueryError(f"TRIM removes at most {LONGEST_PART:,} characters; name fewer")


def _replace(value: str, old: str, new: str) -> str | None:
    if len(new) > len(old) and len(value) * len(new) > LONGEST * len(old):
        return None
    return value.replace(old, new)


def _replace_check(name: str, options: tuple[Option, ...]) -> None:
    if len(options) != 2 or not all(isinstance(option, str) for option in options):
        raise QueryError("REPLACE(x, old, new) takes two constant texts")
    if not options[0]:
        raise QueryError("REPLACE takes a text to replace that is not empty")
    if len(str(options[0])) > LONGEST_PART:
        raise QueryError(f"REPLACE looks for a text of at most {LONGEST_PART:,} characters")


TEXTS = (
    Signature("length", ("text",), _count, len, called("LENGTH")),
    Signature("trim", ("text",), text, _trim, _trim_words, _trim_check),
    Signature("replace", ("text",), _partial, _replace, called("REPLACE"), _replace_check),
    Signature("concat", ("text", "text"), _partial, _concat, " || ".join, test=True, more=True),
    Signature("contains", ("text", "text"), _truth, _contains, called("CONTAINS")),
    Signature("starts with", ("text", "text"), condition, str.startswith, called("STARTS_WITH")),
    Signature("ends with", ("text", "text"), condition, str.endswith, called("ENDS_WITH")),
    Signature(
        "position", ("text", "text"), _place, _position, lambda xs: f"STRPOS({xs[1]}, {xs[0]})"
    ),
    LIKE,
    REGEXP,
)

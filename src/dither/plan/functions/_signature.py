"""What a function declares of itself, in one place: kinds, options, facts, meaning and words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

from dither.errors import QueryError
from dither.plan.facts.ranges import LONGEST_LIST, Facts, Range, listed_values, within_limits
from dither.plan.schema import Kind, Value

__all__ = [
    "Found",
    "Option",
    "Signature",
    "called",
    "condition",
    "in_64_bits",
    "mapped",
    "nullable",
    "number",
    "quoted",
    "text",
    "whole_option",
]

Option = int | str | Fraction
"""A public constant that belongs to the function itself, as the places do to ``ROUND``."""

Found = bool | int | float | Fraction | str | object | None


def _no_options(name: str, options: tuple[Option, ...]) -> None:
    if options:
        raise QueryError(f"{name} takes no constants")


@dataclass(frozen=True, slots=True)
class Signature:
    """One function of the values of a row.

    It is total: of any values of its kinds it has a value or NULL, and it is NULL where one of its
    operands is. ``tests/conformance`` holds every engine's SQL of it against ``meaning``.

    Parameters
    ----------
    name : str
        Its name in the form that is hashed, which never changes, and of its form in a dialect.
    takes : tuple of str
        The kinds of its operands: ``number``, ``real`` (a number, read as a real), ``text``,
        ``date`` (or a timestamp), ``any``.
    facts : callable
        What is known of its values, from the facts of its operands and the options.
    meaning : callable
        Its value, of operands that are not NULL and of the options. Reals are floats.
    check : callable
        Refuses options that it does not have, from its name and the options.
    words : callable
        Itself as SQL, from its operands as SQL and the options.
    test : bool
        Whether that is a test such as ``LIKE``, which binds more loosely than a function.
    more : bool
        Whether it takes more operands of the last kind.
    """

    name: str
    takes: tuple[str, ...]
    facts: Callable[..., Facts]
    meaning: Callable[..., Found]
    words: Callable[..., str]
    check: Callable[[str, tuple[Option, ...]], None] = _no_options
    test: bool = False
    more: bool = False

    def kinds(self, operands: int) -> tuple[str, ...] | None:
        """The kinds of so many operands, ``None`` where it does not take so many."""
        wanted = self.takes
        if self.more and operands > len(wanted):
            wanted += wanted[-1:] * (operands - len(wanted))
        return wanted if len(wanted) == operands else None


def called(word: str) -> Callable[..., str]:
    """``WORD(operands, options)``."""

    def words(operands: Sequence[str], *options: Option) -> str:
        shown = [quoted(o) if isinstance(o, str) else str(o) for o in options]
        return f"{word}({', '.join((*operands, *shown))})"

    return words


def quoted(value: str) -> str:
    """A text as SQL."""
    return "'" + value.replace("'", "''") + "'"


def whole_option(least: int, most: int) -> Callable[[str, tuple[Option, ...]], None]:
    """A check for one option, a whole number."""

    def check(name: str, options: tuple[Option, ...]) -> None:
        fits = len(options) == 1 and type(options[0]) is int and least <= options[0] <= most
        if not fits:
            raise QueryError(f"{name.upper()} takes a constant whole number from {least} to {most}")

    return check


# --- facts --------------------------------------------------------------------------------------


def nullable(parts: Sequence[Facts]) -> bool:
    """Whether a function that is NULL where an operand is can be NULL."""
    return any(part.nullable for part in parts)


def text(parts: Sequence[Facts], *options: Option) -> Facts:
    """Some text."""
    return Facts(Kind.TEXT, nullable=nullable(parts))


def condition(parts: Sequence[Facts], *options: Option) -> Facts:
    """True or false."""
    return Facts(Kind.BOOLEAN, nullable=nullable(parts))


def number(
    kind: Kind, ends: Range | None, *, step: Fraction | None = None, partial: bool = True
) -> Facts:
    """A number between the ends, where these are narrow enough to sum.

    ``partial``: the result can be NULL.
    """
    step = Fraction(1) if kind is Kind.INTEGER and step is None else step
    if ends is not None:
        found = Facts(kind, *ends, None, step, partial)
        if within_limits(found):
            return found
    return Facts(kind, step=step, nullable=partial if ends is None else True)


def in_64_bits(value: int) -> int | None:
    """An integer, or NULL where 64 bits do not hold it."""
    return value if -(2**63) <= value < 2**63 else None


def mapped(
    signature: Signature, parts: tuple[Facts, ...], options: tuple[Option, ...], found: Facts
) -> Facts:
    """The facts of a result, with the list of its values where those of the operands are short.

    Reals are left as they are: what engines compute of one may differ in its last digit.
    """
    if found.kind not in (Kind.TEXT, Kind.INTEGER, Kind.DATE) or found.domain is not None:
        return found
    listed = [listed_values(part) for part in parts]
    known = [values for values in listed if values is not None]
    if len(known) < len(parts) or math.prod(map(len, known)) > LONGEST_LIST:
        return found
    domain = _values(signature, tuple(known), options)
    if found.kind is not Kind.INTEGER or not domain:
        return replace(found, domain=domain)
    ends = [Fraction(v) for v in domain if isinstance(v, int)]
    narrow = replace(found, lower=min(ends), upper=max(ends), domain=domain)
    return narrow if within_limits(narrow) else found


@lru_cache(maxsize=256)
def _values(
    signature: Signature, listed: tuple[tuple[Value, ...], ...], options: tuple[Option, ...]
) -> tuple[Value, ...]:
    def read(value: Value, kind: str) -> Found:
        real = isinstance(value, Fraction) or kind == "real"
        return float(value) if real else value  # type: ignore[arg-type]

    made: dict[Value, None] = {}
    for values in product(*listed):
        kinds = signature.kinds(len(values)) or ()
        found = signature.meaning(*map(read, values, kinds), *options)
        if found is not None:
            made[found] = None  # type: ignore[index]
    return tuple(made)

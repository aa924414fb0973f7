"""Checks that the samplers share: exact ratios, sizes, and the source of randomness."""

from __future__ import annotations

import operator
from fractions import Fraction

from dither.errors import ArgumentError
from dither.numeric import Words, secure_words

__all__ = ["ratio", "rational", "source", "whole"]


def rational(value: Fraction | int, name: str) -> Fraction:
    """Return an exact rational.

    A float is refused: the number that is drawn with must be the number that is charged.
    """
    if type(value) is Fraction:
        return value
    if isinstance(value, Fraction | int) and not isinstance(value, bool):
        return Fraction(value)
    raise ArgumentError(
        f"{name} must be a Fraction or an int, got {type(value).__name__}; "
        "dither.numeric.exact makes one of a float or a text"
    )


def ratio(value: Fraction | int, name: str) -> Fraction:
    """Return an exact rational above 0."""
    number = rational(value, name)
    if number <= 0:
        raise ArgumentError(f"{name} must be above 0")
    return number


def whole(value: int, name: str, least: int = 0) -> int:
    """Return an integer of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be an integer, got {type(value).__name__}") from None
    if isinstance(value, bool) or number < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}")
    return number


def source(words: Words | None) -> Words:
    """Return the given source, or this thread's secure words."""
    return secure_words() if words is None else words

"""Exact rationals from what people write: 1, "0.1", "1/3", Decimal("0.05"), 0.1."""

from __future__ import annotations

import math
import operator
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dither.errors import ArgumentError

__all__ = ["exact", "positive"]

# "1e999999999" would be a gigabyte of digits; nothing that carries privacy is near this.
_MAX_EXPONENT = 4096
_EXPONENT = re.compile(r"[eE][+-]?([\d_]+)\s*$")

_WANTED = 'a finite number: int, Fraction, Decimal, float, or a text such as "0.1" or "1/3"'


def exact(value: Any, name: str) -> Fraction:
    """Read a number as the rational that its writer meant.

    A float is read through its shortest decimal form, so ``0.1`` is one tenth and not the binary
    number next to it.

    Parameters
    ----------
    value : int, Fraction, Decimal, float or str
        A finite number. A text may be a decimal or a ratio.
    name : str
        The argument's name, for the message.

    Returns
    -------
    Fraction
        The exact value.

    Raises
    ------
    ArgumentError
        If `value` is a bool, NaN, infinite, of another type, or has an exponent beyond 4096.

    Examples
    --------
    >>> exact(0.1, "epsilon") == exact("1/10", "epsilon") == Fraction(1, 10)
    True
    >>> exact(True, "epsilon")
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: epsilon must be a finite number: int, Fraction, ...
    """
    # numpy's float64 is a float whose repr is not a number, hence float.__repr__.
    if isinstance(value, Fraction):
        return Fraction(value)
    if isinstance(value, bool):
        raise _refused(name, value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ArgumentError(f"{name} must be finite")
        return Fraction(float.__repr__(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ArgumentError(f"{name} must be finite")
        if abs(value.adjusted()) > _MAX_EXPONENT or abs(_exponent(value)) > _MAX_EXPONENT:
            raise ArgumentError(f"{name} must have an exponent within ±{_MAX_EXPONENT}")
        return Fraction(value)
    if isinstance(value, str):
        return _parse(value, name)
    try:
        return Fraction(operator.index(value))
    except TypeError:
        raise _refused(name, value) from None


def positive(value: Any, name: str) -> Fraction:
    """Read a number as `exact` does, and refuse it unless it is above zero.

    Parameters
    ----------
    value : int, Fraction, Decimal, float or str
        A finite number above zero.
    name : str
        The argument's name, for the message.

    Returns
    -------
    Fraction
        The exact value, > 0.

    Raises
    ------
    ArgumentError
        As `exact`, and for zero or below.

    Examples
    --------
    >>> positive("0.25", "epsilon")
    Fraction(1, 4)
    >>> positive(0, "epsilon")
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: epsilon must be above 0
    """
    number = exact(value, name)
    if number <= 0:
        raise ArgumentError(f"{name} must be above 0")
    return number


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else _MAX_EXPONENT + 1


def _parse(text: str, name: str) -> Fraction:
    exponent = _EXPONENT.search(text)
    if exponent and int(exponent[1].replace("_", "")[:6] or "0") > _MAX_EXPONENT:
        raise ArgumentError(f"{name} must have an exponent within ±{_MAX_EXPONENT}")
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ArgumentError(f"{name} must be {_WANTED}") from None


def _refused(name: str, value: object) -> ArgumentError:
    return ArgumentError(f"{name} must be {_WANTED}; got {type(value).__name__}")

"""Arguments: the one place that reads a number, or refuses it under its argument's name.

Every check takes the argument's name first and its value second. One contract holds everywhere: a
float is read as it prints, so that ``0.1`` is one tenth; an int, a Fraction, a Decimal and a text
such as ``"1/3"`` are exact; a bool, NaN, an infinity, bytes and anything that holds several numbers
are refused. Bounds are named as they read: ``above`` and ``below`` exclude their number, ``least``
and ``most`` include it.

No message holds a number that was given: it may be data.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Collection, Iterable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal, TypeVar

from dither.errors import ArgumentError, nearest

__all__ = [
    "Number",
    "choice",
    "confidence",
    "count",
    "draws",
    "exact",
    "flag",
    "generator",
    "integers",
    "listed",
    "number",
    "positive",
    "whole",
]

Number = int | float | str | Fraction | Decimal
"""How a number may be written; each is read exactly."""

Limit = int | float | Fraction
Rounding = Literal["nearest", "down", "up"]
Real = TypeVar("Real", float, Fraction)
Given = TypeVar("Given", float, Decimal)

# "1e999999999" would be a gigabyte of digits; nothing that carries privacy is near this.
_MAX_EXPONENT = 4096
_EXPONENT = re.compile(r"[eE][+-]?([\d_]+)\s*$")
_COUNTED = 10**18
_NUMERIC = ("", "i", "u", "f")
_KINDS = 'int, Fraction, Decimal, float, or a text such as "0.1" or "1/3"'


def exact(
    name: str,
    value: Any,
    *,
    above: Limit | None = None,
    least: Limit | None = None,
    below: Limit | None = None,
    most: Limit | None = None,
) -> Fraction:
    """Read a number as the rational that its writer meant.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : int, Fraction, Decimal, float or str
        A finite number. A text may be a decimal or a ratio.
    above, least, below, most : number, optional
        What it must be above, at least, below, at most.

    Returns
    -------
    Fraction
        The exact value.

    Raises
    ------
    ArgumentError
        It is a bool, NaN, infinite, of another type, out of range, or its exponent is beyond 4096.

    Examples
    --------
    >>> exact("epsilon", 0.1) == exact("epsilon", "1/10") == Fraction(1, 10)
    True
    >>> exact("delta", 1, least=0, below=1)
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: delta must be at least 0 and below 1
    >>> exact("epsilon", True, above=0)
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: epsilon must be a finite number above 0: int, Fraction, ...
    """
    limits = (above, least, below, most)
    return _ranged(name, _read(name, value, limits), limits)


def positive(name: str, value: Any) -> Fraction:
    """Read a number above 0 exactly.

    Examples
    --------
    >>> positive("epsilon", "0.25")
    Fraction(1, 4)
    """
    return exact(name, value, above=0)


def number(
    name: str,
    value: Any,
    *,
    above: Limit | None = None,
    least: Limit | None = None,
    below: Limit | None = None,
    most: Limit | None = None,
    rounding: Rounding = "nearest",
) -> float:
    """Read a number as a double.

    Parameters
    ----------
    name, value, above, least, below, most
        As of `exact`.
    rounding : {'nearest', 'down', 'up'}
        Where a rational lies between two doubles: which one of them. A promise is rounded
        ``'down'`` and a cost ``'up'``, so that both stay true.

    Returns
    -------
    float
        Finite, and itself in the range.

    Raises
    ------
    ArgumentError
        As `exact`.

    Examples
    --------
    >>> number("rate", "1/8", above=0, most=1), number("rate", 0.1)
    (0.125, 0.1)
    >>> number("epsilon", Fraction(1, 3), rounding="down") < Fraction(1, 3)
    True
    """
    limits = (above, least, below, most)
    found = value if type(value) is float else _double(name, value, limits, rounding)
    return _ranged(name, _finite(name, found, limits), limits)


def whole(
    name: str, value: Any, least: int | None = 0, most: int | None = None, *, instead: str = ""
) -> int:
    """Read an integer; numpy's are taken, floats that happen to be whole are not.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : int
        What was given.
    least, most : int or None
        The range, ends included.
    instead : str
        The end of the message where it is above ``most``: what would work.

    Returns
    -------
    int

    Raises
    ------
    ArgumentError
        It is not an integer, or out of range.

    Examples
    --------
    >>> whole("k", 5, 1)
    5
    >>> whole("k", 0, 1)
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: k must be an integer of at least 1
    """
    if type(value) is int:
        found: int | None = value
    else:
        found = None if _not_a_number(value) else _index(value)
    if found is not None and most is not None and found > most:
        raise ArgumentError(f"{name} must be at most {_shown(most)}{instead}")
    if found is None or (least is not None and found < least):
        wanted = "an integer" if least is None else f"an integer of at least {_shown(least)}"
        end = "" if most is None else f" and at most {_shown(most)}"
        raise ArgumentError(f"{name} must be {wanted}{end}")
    return found


def count(name: str, value: Any, least: int = 1, most: int = _COUNTED, *, instead: str = "") -> int:
    """An integer that doubles can count with: as `whole`, and at most 10**18.

    Examples
    --------
    >>> count("k", 10**400)
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: k must be at most 10**18
    """
    return whole(name, value, least, most, instead=instead)


def draws(value: Any) -> int:
    """How many times something is simulated: 100 to a million, which memory holds.

    Examples
    --------
    >>> draws(2**70)
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: draws must be at most 1,000,000
    """
    return whole("draws", value, 100, 10**6)


def confidence(value: Any) -> float:
    """A level of confidence, strictly between 0 and 1.

    Examples
    --------
    >>> confidence(0.95)
    0.95
    >>> confidence(95)
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: confidence must be a number strictly between 0 and 1, such as 0.95
    """
    try:
        return number("confidence", value, above=0, below=1)
    except ArgumentError:
        raise ArgumentError(
            "confidence must be a number strictly between 0 and 1, such as 0.95"
        ) from None


def choice(name: str, value: Any, options: Collection[str]) -> str:
    """One of a few names, or an error that offers the nearest.

    Examples
    --------
    >>> choice("rule", "simplex", ["none", "simplex"])
    'simplex'
    >>> choice("rule", "simplx", ["none", "simplex"])
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: unknown rule 'simplx'; did you mean 'simplex'?
    """
    if isinstance(value, str):
        if value in options:
            return value
        raise ArgumentError(f"unknown {name} {value[:20]!r}{nearest(value[:40], options)}")
    raise ArgumentError(f"{name} must be one of {', '.join(map(repr, options))}")


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that only passes for it.

    Examples
    --------
    >>> flag("monotone", 1)
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: monotone must be True or False
    """
    if value is True or value is False:
        return value
    raise ArgumentError(f"{name} must be True or False")


def generator(name: str, value: Any) -> Any:
    """A numpy generator of random numbers, for simulation only.

    Examples
    --------
    >>> generator("rng", 1)
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: rng must be a numpy.random.Generator, such as default_rng(1)
    """
    import numpy as np

    if isinstance(value, np.random.Generator):
        return value
    raise ArgumentError(f"{name} must be a numpy.random.Generator, such as default_rng(1)")


def integers(name: str, values: Any) -> list[int]:
    """A flat sequence of at least one integer, as Python's own; floats are refused as inexact.

    Examples
    --------
    >>> integers("utilities", (3, 1, 2))
    [3, 1, 2]
    >>> integers("utilities", [0.5])
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: utilities must be a flat sequence of integers; put reals on a ...
    """
    wanted = f"{name} must be a flat sequence of integers; put reals on a public lattice first"
    if hasattr(values, "dtype") and hasattr(values, "ndim"):
        if _kind(values) not in ("i", "u") or values.ndim != 1:
            raise ArgumentError(wanted)
        found: list[int] = values.tolist()
    elif type(values) in (list, tuple) and set(map(type, values)) == {int}:
        # Python's own, which are what most have: no other type, a truth value neither, is among
        # them.
        found = list(values)
    else:
        if isinstance(values, str | bytes | bytearray | memoryview) or not isinstance(
            values, Iterable
        ):
            raise ArgumentError(wanted)
        read = [None if _not_a_number(v) else _index(v) for v in values]
        found = [v for v in read if v is not None]
        if len(found) < len(read):
            raise ArgumentError(wanted)
    if not found:
        raise ArgumentError(f"{name} must not be empty")
    return found


def listed(name: str, values: Any, of: str) -> list[Any]:
    """A sequence as a list of at least one item, of whatever kind.

    Examples
    --------
    >>> listed("errors", 3, "functions")
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: errors must be a sequence of functions
    """
    try:
        found = list(values)
    except TypeError:
        raise ArgumentError(f"{name} must be a sequence of {of}") from None
    if not found:
        raise ArgumentError(f"{name} must hold at least one: a sequence of {of}")
    return found


_Range = tuple[Limit | None, Limit | None, Limit | None, Limit | None]
"""What a number must be above, at least, below and at most."""


def _read(name: str, value: Any, limits: _Range) -> Fraction:
    # numpy's float64 is a float whose repr is not a number, hence float.__repr__.
    if type(value) is Fraction:
        return value
    if isinstance(value, float):
        return Fraction(float.__repr__(_finite(name, value, limits)))
    if isinstance(value, Decimal):
        _finite(name, value, limits)
        if abs(value.adjusted()) > _MAX_EXPONENT or abs(_exponent(value)) > _MAX_EXPONENT:
            raise ArgumentError(f"{name} must have an exponent within ±{_MAX_EXPONENT}")
        return Fraction(value)
    if isinstance(value, str):
        return _parse(name, value, limits)
    if _not_a_number(value):
        raise _refused(name, limits, value)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if _kind(value) == "f":
        # A shorter float, such as float32(0.1), prints the number that was meant.
        return Fraction(str(_finite(name, value, limits)))
    found = _index(value)
    if found is None:
        raise _refused(name, limits, value)
    return Fraction(found)


def _double(name: str, value: Any, limits: _Range, rounding: Rounding) -> float:
    if isinstance(value, float):
        return float(value)
    found = _read(name, value, limits)
    try:
        near = float(found)
    except OverflowError:
        raise ArgumentError(f"{name} must be {_range(limits)}, and within doubles") from None
    if rounding == "down" and near > found:
        return math.nextafter(near, -math.inf)
    if rounding == "up" and near < found:
        return math.nextafter(near, math.inf)
    return near


def _parse(name: str, text: str, limits: _Range) -> Fraction:
    exponent = _EXPONENT.search(text)
    if exponent and _beyond(exponent[1].replace("_", "")):
        raise ArgumentError(f"{name} must have an exponent within ±{_MAX_EXPONENT}")
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise _refused(name, limits) from None


def _beyond(digits: str) -> bool:
    """Whether an exponent is too large; Python reads no integer of some thousands of digits."""
    try:
        return int(digits or "0") > _MAX_EXPONENT
    except ValueError:
        return True


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else _MAX_EXPONENT + 1


def _index(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None


def _not_a_number(value: Any) -> bool:
    """What would pass for one: a truth value, a span of time, bytes, an array of one item."""
    return (
        isinstance(value, bool | bytes | bytearray | memoryview)
        or _kind(value) not in _NUMERIC
        or bool(getattr(value, "ndim", 0))
        # An array without dimensions holds one number, and may be given another.
        or (hasattr(value, "ndim") and hasattr(type(value), "__setitem__"))
    )


def _kind(value: Any) -> str:
    """What numpy calls the kind of a type of its own, and nothing for any other."""
    return str(getattr(getattr(value, "dtype", None), "kind", ""))


def _finite(name: str, value: Given, limits: _Range) -> Given:
    # A Decimal may be beyond doubles, or a NaN that cannot become one.
    if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        raise ArgumentError(f"{name} must be finite{_and(limits)}")
    return value


def _ranged(name: str, value: Real, limits: _Range) -> Real:
    above, least, below, most = limits
    if (
        (above is not None and not value > above)
        or (least is not None and not value >= least)
        or (below is not None and not value < below)
        or (most is not None and not value <= most)
    ):
        raise ArgumentError(f"{name} must be {_range(limits)}")
    return value


def _range(limits: _Range) -> str:
    words = zip(("above", "at least", "below", "at most"), limits, strict=True)
    return (
        " and ".join(f"{word} {_shown(end)}" for word, end in words if end is not None) or "finite"
    )


def _and(limits: _Range) -> str:
    return "" if limits == (None,) * 4 else f" and {_range(limits)}"


def _refused(name: str, limits: _Range, *value: object) -> ArgumentError:
    wanted = "" if limits == (None,) * 4 else f" {_range(limits)}"
    got = f"; got {type(value[0]).__name__}" if value else ""
    return ArgumentError(f"{name} must be a finite number{wanted}: {_KINDS}{got}")


def _shown(limit: Limit) -> str:
    if isinstance(limit, float):
        return f"{limit:g}"
    if isinstance(limit, int):
        digits = len(str(abs(limit)))
        return f"10**{digits - 1}" if limit == 10 ** (digits - 1) and digits > 7 else f"{limit:,}"
    return str(limit)

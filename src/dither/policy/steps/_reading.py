"""What somebody typed as an answer: as the policy will hold it, or refused with the reason."""

from __future__ import annotations

import csv
import datetime as dt
from decimal import Decimal, InvalidOperation
from typing import Any

from dither.errors import ArgumentError
from dither.plan.schema import Kind

__all__ = ["listed", "number", "pair", "whole"]

MOST = 10**9
"""The largest budget that a policy takes."""


def whole(name: str, text: str) -> int:
    """A whole number from 1.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) < 10**12:
        raise ArgumentError(f"{name} must be a whole number from 1")
    return int(text)


def number(name: str, text: str) -> int | Decimal:
    """A number that a question of this name takes.

    Raises
    ------
    ArgumentError
        It is none, or lies where a policy would refuse it.
    """
    found = _number(name, text)
    if name == "delta" and not 0 <= found < 1:
        raise ArgumentError("delta must lie in [0, 1), far below one over the people, such as 1e-6")
    if name == "step" and not found > 0:
        raise ArgumentError("step must be above 0, such as 0.01")
    if name in ("epsilon", "lifetime", "quota") and not 0 < found <= MOST:
        raise ArgumentError(f"{name} must be above 0, and at most {MOST:,}")
    return found


def pair(name: str, text: str, kind: Kind | None) -> Any:
    """A lower and an upper value.

    Raises
    ------
    ArgumentError
        They are not two, or not in order.
    """
    if text == "learned":
        return text
    found = [_scalar(name, part, kind) for part in _parts(text)]
    if len(found) != 2:
        raise ArgumentError(f"{name} must be two values with a comma between them, such as 0, 100")
    low, high = found
    try:
        ordered = low < high
    except TypeError:
        raise ArgumentError(f"{name} must be two dates, or two dates with hours") from None
    if not ordered:
        raise ArgumentError(f"{name} must be the lower value, then a higher one, such as 0, 100")
    return found


def listed(name: str, text: str, kind: Kind | None) -> list[Any] | None:
    """Values, each once.

    Raises
    ------
    ArgumentError
        One is none of the column's, or stands twice.
    """
    found = [_scalar(name, part, kind) for part in _parts(text)]
    if len(set(found)) < len(found):
        raise ArgumentError(f"{name} must be different: one stands there twice; leave it out once")
    return found or None


def _parts(text: str) -> list[str]:
    """Values between commas or on lines of their own; one that holds a comma stands in quotes."""
    lines = text.strip().removeprefix("[").removesuffix("]").splitlines()
    found = [part for row in csv.reader(lines, skipinitialspace=True) for part in row]
    return [part.strip() for part in found if part.strip()]


def _number(name: str, text: str) -> int | Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise ArgumentError(f"{name} must be a number, such as 0.5") from None
    if not found.is_finite() or len(text) > 60 or abs(found.adjusted()) > 400:
        raise ArgumentError(f"{name} must be a number, such as 0.5")
    is_whole = text.lstrip("+-").isdigit()
    return int(text) if is_whole else Decimal(text.lstrip("+"))


def _scalar(name: str, text: str, kind: Kind | None) -> Any:
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        try:
            return (
                dt.date.fromisoformat(text) if len(text) == 10 else dt.datetime.fromisoformat(text)
            )
        except ValueError:
            raise ArgumentError(f"{name} must be dates, such as 2024-01-31") from None
    if kind in (Kind.INTEGER, Kind.REAL):
        try:
            return _number(name, text)
        except ArgumentError:
            such = "such as 0, 100" if name == "bounds" else "such as 1, 2, 3"
            raise ArgumentError(
                f"{name} must be numbers with commas between them, {such}"
            ) from None
    if kind is Kind.BOOLEAN and text in ("true", "false"):
        return text == "true"
    return text

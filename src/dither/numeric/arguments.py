"""Checks of arguments that mean the same in every room."""

from __future__ import annotations

from dither.errors import ArgumentError

__all__ = ["check_confidence"]


def check_confidence(confidence: float) -> float:
    """A confidence level strictly between 0 and 1.

    Raises
    ------
    ArgumentError
        It is not a number, or not strictly between 0 and 1.

    Examples
    --------
    >>> check_confidence(0.95)
    0.95
    """
    if not (isinstance(confidence, int | float) and 0 < confidence < 1):
        raise ArgumentError("confidence must be a number strictly between 0 and 1, such as 0.95")
    return float(confidence)

"""Calling code that others wrote: whatever it raises is an answer, but for an interrupt.

A callable that is handed the data may let them decide how it ends. If an exit were let through,
the data would choose the exit code of the program, and a gate that asks for 0 would pass.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dither.errors import ArgumentError

__all__ = ["answered", "attempted"]


def attempted(call: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """What a callable returns and None, or None and what it raises, exits included."""
    home = os.getpid()
    try:
        return call(*arguments), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if os.getpid() != home:  # a process that the callable forked, and which means to end here
            raise
        return None, error


def answered(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """What a callable returns; its exceptions are passed on.

    Raises
    ------
    ArgumentError
        It raises what would end the program; the message names it.
    """
    found, error = attempted(call, *arguments)
    if error is None:
        return found
    if isinstance(error, Exception):
        raise error
    raise ArgumentError(
        f"{name} ended by {type(error).__name__}, which would end the program: let it return an "
        "answer, or raise an Exception"
    ) from error

"""How commands end: a code for each kind of end, and errors as text or as JSON.

==== =========================================================================================
code what it says
==== =========================================================================================
0    it is done
1    what was checked does not hold: a promise is broken, a ledger or a certificate was changed, a
     policy cannot be opened (``attack``, ``audit``, ``verify``, ``ledger verify``, ``check``)
2    the command line is wrong
3    nothing could be judged (``attack``, ``audit``)
4    the policy, a question or an argument is refused
5    an account cannot bear the charge
6    it is stated for another unit or other neighbours than the account
7    the ledger cannot be used
8    the engine failed; what was charged stays charged
9    anything else failed, such as writing a file
130  it was interrupted
==== =========================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, Any

import click

from dither.errors import (
    BudgetError,
    CertificateError,
    DitherError,
    EngineError,
    LedgerError,
    PromiseError,
)

__all__ = ["FAILED", "INTERRUPTED", "AsJson", "Ended", "Failed", "code_of", "wants_json"]

REFUSED, FAILED, INTERRUPTED = 4, 9, 130

CODES: tuple[tuple[type[DitherError], int], ...] = (
    (CertificateError, 1),
    (BudgetError, 5),
    (PromiseError, 6),
    (LedgerError, 7),
    (EngineError, 8),
    (DitherError, REFUSED),
)
"""The first class that an error is of decides."""


def code_of(error: DitherError) -> int:
    """The exit code of an error of dither.

    Examples
    --------
    >>> code_of(BudgetError("spent")), code_of(LedgerError("gone"))
    (5, 7)
    """
    return next(code for kind, code in CODES if isinstance(error, kind))


class Ended(click.ClickException):
    """The end of a command in a message, under the code of its kind."""

    def __init__(self, text: str, code: int = REFUSED, kind: str = "ArgumentError") -> None:
        super().__init__(text)
        self.exit_code = code  # type: ignore[misc]
        self.kind = kind


class Failed(Ended):
    """The end of a command that did what it was asked, and could not write it."""

    def __init__(self, text: str) -> None:
        super().__init__(text, FAILED, "OSError")


class AsJson(click.ClickException):
    """An error as one line of JSON on standard error."""

    def __init__(self, error: click.ClickException) -> None:
        super().__init__(error.format_message())
        self.exit_code = error.exit_code  # type: ignore[misc]
        self.kind = getattr(error, "kind", "UsageError")

    def show(self, file: IO[Any] | None = None) -> None:
        """Write it."""
        body = {"kind": self.kind, "code": self.exit_code, "message": self.message}
        click.echo(json.dumps({"error": body}, ensure_ascii=False), file=file, err=True)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, be it understood or not."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in before

"""How commands fail: one paragraph on standard error, an exit code, and never a data value."""

from __future__ import annotations

import os
from typing import Any

import click

from dither.errors import DitherError

__all__ = ["TRACE", "Careful"]

TRACE = "DITHER_TRACE"
"""Set to anything, unexpected errors come with their trace, which may show data."""


class Careful(click.Group):
    """A group whose commands end in a message instead of a trace.

    Exit codes: 1 where dither refuses or fails, 2 where the command line is wrong.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use, not of the alphabet."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what it raises into a message."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except DitherError as error:
            raise click.ClickException(" ".join(str(error).split())) from error
        except Exception as error:
            if os.environ.get(TRACE):
                raise
            # The text of a foreign error may quote the data, so only its kind is told.
            raise click.ClickException(
                f"unexpected {type(error).__name__}. Its text is withheld, as it may hold data; "
                f"to see it on your own screen, set {TRACE}=1. What was charged stays charged: "
                "see `dither ledger show`."
            ) from error

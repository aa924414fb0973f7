"""The command ``dither``: draft a policy, ask, release, verify, see what was spent.

Commands import what is heavy only when they run, so that ``dither --help`` is instant. They fail
with one paragraph on standard error and an exit code, and never show a data value.
"""

from __future__ import annotations

import os
from typing import Any

import click

from dither import __version__
from dither.cli._options import Group
from dither.cli.account_command import account
from dither.cli.anonymize_command import anonymize
from dither.cli.attack_command import attack
from dither.cli.audit_command import audit
from dither.cli.bounds_commands import bounds, check
from dither.cli.example_commands import demo
from dither.cli.hierarchy_command import hierarchy
from dither.cli.infer_command import infer
from dither.cli.init_command import init
from dither.cli.learn_command import learn
from dither.cli.ledger_commands import ledger, verify
from dither.cli.local_command import local
from dither.cli.owner_commands import owner
from dither.cli.query_commands import explain, preview, release
from dither.cli.synth_command import synth
from dither.errors import DitherError

__all__ = ["main"]

TRACE = "DITHER_TRACE"
"""Set to anything, unexpected errors come with their trace, which may show data."""


GATES = ("attack", "audit")
"""Commands whose exit code 1 says that a promise is broken; what they refuse exits with 2."""


class Commands(Group):
    """A group whose commands end in a message instead of a trace.

    Exit codes: 1 where dither refuses or fails, 2 where the command line is wrong, or where a gate
    refuses or fails. None ends with 0 but by its end: code of others may not leave with it.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what it raises into a message."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            # Where nobody reads the output any more, as after `head`, click ends without a word.
            raise
        except DitherError as error:
            raise _ending(ctx, " ".join(str(error).split())) from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, SystemExit) and isinstance(error.code, int) and error.code:
                raise
            if os.environ.get(TRACE) and not isinstance(error, SystemExit):
                raise
            # The text of a foreign error may quote the data, so only its kind is shown.
            raise _ending(
                ctx,
                f"unexpected {type(error).__name__}. Its text is withheld, as it may hold data; "
                f"to see it on your own screen, set {TRACE}=1. What was charged stays charged: "
                "see `dither ledger show`.",
            ) from error


class Ungated(click.ClickException):
    """A gate that could not be asked."""

    exit_code = 2


def _ending(ctx: click.Context, text: str) -> click.ClickException:
    return (Ungated if ctx.invoked_subcommand in GATES else click.ClickException)(text)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  dither demo                                see it all on a real survey
  dither init visits.parquet                 draft dither.toml; fill it in
  dither preview "SELECT ..." --epsilon 0.5  error bars, before spending
  dither release "SELECT ..." --epsilon 0.5  the answer, charged to the ledger
""",
)
@click.version_option(__version__, prog_name="dither", message="%(prog)s %(version)s")
def main() -> None:
    """Learn from sensitive data without learning about any one person in it."""


for command in (
    init,
    explain,
    preview,
    release,
    check,
    bounds,
    infer,
    synth,
    learn,
    hierarchy,
    verify,
    ledger,
    account,
    audit,
    attack,
    anonymize,
    local,
    owner,
    demo,
):
    main.add_command(command)

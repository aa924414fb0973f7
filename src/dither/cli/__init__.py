"""The command ``dither``: draft a policy, ask, release, verify, see what was spent.

Commands import what is heavy only when they run, so that ``dither --help`` is instant. They fail
with one paragraph on standard error and an exit code, and never show a data value.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import click

from dither import __version__
from dither.cli._endings import FAILED, INTERRUPTED, AsJson, Ended, code_of, wants_json
from dither.cli._options import Group
from dither.cli.account_command import account
from dither.cli.anonymize_command import anonymize
from dither.cli.attacks.assess_command import assess
from dither.cli.attacks.attack_command import attack
from dither.cli.audit_command import audit
from dither.cli.example_commands import demo
from dither.cli.policies.bounds_commands import bounds, check
from dither.cli.policies.dummy_command import dummy
from dither.cli.policies.init_command import init
from dither.cli.policies.ledger_commands import ledger, verify
from dither.cli.policies.owner_commands import owner
from dither.cli.policies.policy_command import policy_group
from dither.cli.policies.publish_command import publish
from dither.cli.policies.registry_command import registry
from dither.cli.policies.schedule_command import schedule
from dither.cli.questions.hierarchy_command import hierarchy
from dither.cli.questions.infer_command import infer
from dither.cli.questions.learn_command import learn
from dither.cli.questions.linked_command import synth_linked
from dither.cli.questions.query_commands import explain, preview, release
from dither.cli.questions.synth_command import synth
from dither.cli.serving.people_commands import people
from dither.cli.serving.serve_command import serve
from dither.cli.serving.service_commands import service
from dither.cli.surveys.local_command import local
from dither.errors import DitherError

__all__ = ["main"]

TRACE = "DITHER_TRACE"
"""Set to anything, unexpected errors come with their trace, which may show data."""


JSON = "dither.json"
"""Of a context: whether errors are wanted as JSON."""


class Commands(Group):
    """A group whose commands end in a message instead of a trace.

    ``dither.cli._endings`` says with which exit codes. None ends with 0 but by its end: code of
    others may not leave with it.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what it raises into a message, and that into JSON if asked."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say_warning
                return self._invoked(ctx)
        except click.ClickException as error:
            if ctx.meta.get(JSON):
                raise AsJson(error) from error
            raise

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command; whether errors are wanted as JSON stands before or after it."""
        ctx.meta[JSON] = ctx.meta.get(JSON) or wants_json(args)
        return super().resolve_command(ctx, args)

    def _invoked(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
            # Where nobody reads the output any more, as after `head`, click ends without a word.
            raise
        except DitherError as error:
            text = " ".join(str(error).split())
            raise Ended(text, code_of(error), type(error).__name__) from error
        except (KeyboardInterrupt, click.Abort) as error:
            text = "interrupted. What was charged stays charged: see `dither ledger show`."
            raise Ended(text, INTERRUPTED, "KeyboardInterrupt") from error
        except BaseException as error:
            if isinstance(error, SystemExit) and isinstance(error.code, int) and error.code:
                raise
            if os.environ.get(TRACE) and not isinstance(error, SystemExit):
                raise
            # The text of a foreign error may quote the data, so only its kind is shown.
            kind = type(error).__name__
            raise Ended(
                f"unexpected {kind}. Its text is withheld, as it may hold data; "
                f"to see it on your own screen, set {TRACE}=1. What was charged stays charged: "
                "see `dither ledger show`.",
                FAILED,
                kind,
            ) from error


def _wants_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[JSON] = value


def _say_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """A warning of dither as a sentence; those of others are for those who write programs."""
    if category is UserWarning:
        click.echo(f"Warning: {' '.join(str(message).split())}", err=True)


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
@click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_wants_json,
    help="Print errors as JSON, of any command.",
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
    dummy,
    bounds,
    infer,
    synth,
    synth_linked,
    learn,
    hierarchy,
    verify,
    registry,
    policy_group,
    publish,
    schedule,
    ledger,
    account,
    audit,
    attack,
    anonymize,
    assess,
    local,
    owner,
    people,
    serve,
    service,
    demo,
):
    main.add_command(command)

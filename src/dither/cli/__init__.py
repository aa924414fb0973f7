"""The command ``dither``: draft a policy, ask, release, verify, see what was spent.

Every subcommand has a module of its own. They import what is heavy only when they run, so that
``dither --help`` is instant.
"""

from __future__ import annotations

import click

from dither import __version__
from dither.cli.account_command import account
from dither.cli.anonymize_command import anonymize
from dither.cli.attack_command import attack
from dither.cli.audit_command import audit
from dither.cli.demo_command import demo
from dither.cli.explain_command import explain
from dither.cli.failing import Careful
from dither.cli.init_command import init
from dither.cli.ledger_command import ledger
from dither.cli.local_command import local
from dither.cli.preview_command import preview
from dither.cli.release_command import release
from dither.cli.verify_command import verify

__all__ = ["main"]


@click.group(
    cls=Careful,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  dither demo                                  see it all on a real survey
  dither init visits.parquet                   draft dither.toml; fill it in
  dither preview "SELECT ..." --epsilon 0.5    error bars, before spending
  dither release "SELECT ..." --epsilon 0.5    the answer, charged to the ledger
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
    verify,
    ledger,
    account,
    audit,
    attack,
    anonymize,
    local,
    demo,
):
    main.add_command(command)

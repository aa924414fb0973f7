"""Which role of a PostgreSQL database may do what with a ledger there."""

from __future__ import annotations

from pathlib import Path

import click

from dither.cli._options import FILE
from dither.cli.policies._opened_ledger import opened_ledger

__all__ = ["grants"]


@click.command(
    short_help="Print what lets a role of a database ask, or read.",
    epilog="""\b
Examples:
  dither ledger grants env:LEDGER_DSN ann --analyst ann
  dither ledger grants env:LEDGER_DSN notebooks --any-analyst
  dither ledger grants env:LEDGER_DSN auditor --as reader | psql "$LEDGER_DSN"
""",
)
@click.argument("path", metavar="LEDGER", type=FILE)
@click.argument("role")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["asker", "reader", "owner"]),
    default="asker",
    show_default=True,
    help="Whether it charges and answers, only looks, or changes caps as well.",
)
@click.option(
    "--analyst",
    help="Of an asker: whose quota every charge of it is charged to.  [default: the role's name]",
)
@click.option("--group", multiple=True, help="A group whose quota it is charged to as well.")
@click.option(
    "--any-analyst",
    is_flag=True,
    help="It asks for many analysts, and is trusted to say for whom.",
)
def grants(
    path: Path,
    role: str,
    kind: str,
    analyst: str | None,
    group: tuple[str, ...],
    any_analyst: bool,
) -> None:
    """Print the SQL that makes ROLE one that asks LEDGER; the owner of its tables runs it.

    A role that asks may read the ledger, and call the functions that charge it and keep an answer:
    they hold caps, blocks, promises and quotas by themselves. Nothing else is granted to it, and
    what it could do before is taken away. The role itself is yours to create.
    """
    from dither.ledger import _roles

    if kind != "asker" and (analyst or group or any_analyst):
        raise click.UsageError("--analyst, --group and --any-analyst are for --as asker")
    if any_analyst and (analyst or group):
        raise click.UsageError("--any-analyst names all quotas: leave out --analyst and --group")
    quotas = [f"analyst:{analyst or role}", *(f"group:{name}" for name in group)]
    if kind != "asker" or any_analyst:
        quotas = ["*"] if any_analyst else []
    with opened_ledger(path, None) as book:
        statements = _roles.grants(book, role, kind, quotas=quotas)
    click.echo("\n".join(statements))

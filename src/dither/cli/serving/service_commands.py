"""``dither service``: copies of what a service must not lose."""

from __future__ import annotations

from pathlib import Path

import click

from dither._extras import check_library
from dither.cli._options import Group, LocalPath, policy

__all__ = ["service"]

FOLDER = LocalPath(file_okay=False, path_type=Path)


@click.group(
    cls=Group,
    short_help="Back up a service, and put a back-up in its place.",
    epilog="""\b
Examples:
  dither service backup --to /backup/2026-11-28
  dither service restore --from /backup/2026-11-28
""",
)
def service() -> None:
    """Back up the ledger and the service's database, and put a back-up in their place.

    For the owner, on the machine of the service, and for ledgers that are files: one on PostgreSQL
    is copied with its server's tools.
    """


@service.command(
    short_help="Copy the ledger and the service's database while both are used.",
    epilog="Example: dither service backup --policy dither.toml --to /backup/monday",
)
@policy
@click.option("--to", "folder", type=FOLDER, required=True, help="Where to; it must not be there.")
def backup(policy: Path, folder: Path) -> None:
    """Copy the ledger and the service's database into a new folder. The service may go on."""
    check_library("starlette", "service", "a service needs")
    from dither.policy._policy import read_policy
    from dither.service._backup import back_up

    last = back_up(read_policy(policy), folder)
    click.echo(f"{folder}: up to entry {last} of the ledger")


@service.command(
    short_help="Put a back-up in their place.",
    epilog="Example: dither service restore --policy dither.toml --from /backup/monday",
)
@policy
@click.option("--from", "folder", type=FOLDER, required=True, help="As `backup` made it.")
def restore(policy: Path, folder: Path) -> None:
    """Put the copies of a folder where the policy's files were. Stop the service first.

    Nothing is written over, and a ledger that lacks what the policy's checkpoint has is refused.
    """
    check_library("starlette", "service", "a service needs")
    from dither.policy._policy import read_policy
    from dither.service._backup import put_back

    last = put_back(read_policy(policy), folder)
    click.echo(f"put back up to entry {last} of the ledger")
    click.echo(
        "What was spent since is forgotten, and keys that were revoked since hold again: revoke "
        "them, and see `dither ledger checkpoint`.",
        err=True,
    )

"""``dither people``: who may do what at a service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither._extras import check_library
from dither.cli._options import Group, policy

if TYPE_CHECKING:
    from dither.service.access._people import NewKey, People

__all__ = ["people"]

ROLES = ("owner", "analyst", "auditor")


@click.group(
    cls=Group,
    short_help="Who may do what at a service.",
    epilog="""\b
Examples:
  dither people add ana --role analyst
  dither people list
""",
)
def people() -> None:
    """Say who may ask, audit or decide at the service of a policy, and make their keys.

    For the owner, on the machine of the service: it writes the service's database, which need not
    run.
    """


@contextmanager
def _of(path: Path) -> Iterator[People]:
    check_library("starlette", "service", "a service needs")
    from dither.policy._policy import read_policy
    from dither.service._database import Database
    from dither.service._settings import read_settings
    from dither.service._tables import SERVICE
    from dither.service.access._people import People

    database = Database(read_settings(read_policy(path)).database, SERVICE)
    try:
        yield People(database)
    finally:
        database.close()


def _say(made: NewKey) -> None:
    until = "" if made.expires is None else f", until {_day(made.expires)}"
    click.echo(f"a key of {made.person}{until}; it is shown this once:", err=True)
    click.echo(made.key)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


@people.command(
    short_help="Add somebody, and make their first key.",
    epilog="Example: dither people add ana --role analyst",
)
@click.argument("name")
@policy
@click.option("--role", type=click.Choice(ROLES), required=True, help="What they may do.")
@click.option("--days", type=click.IntRange(0), default=90, show_default=True, help="0: for ever.")
def add(name: str, policy: Path, role: str, days: int) -> None:
    """Add NAME, or give them another role; prints a key."""
    with _of(policy) as found:
        from dither.service.access._roles import Role

        found.add(name, Role(role))
        _say(found.new_key(name, days or None))


@people.command(
    short_help="Make another key for somebody.",
    epilog="Example: dither people key ana --days 30",
)
@click.argument("name")
@policy
@click.option("--days", type=click.IntRange(0), default=90, show_default=True, help="0: for ever.")
def key(name: str, policy: Path, days: int) -> None:
    """Make another key for NAME; prints it."""
    with _of(policy) as found:
        _say(found.new_key(name, days or None))


@people.command(
    short_help="End a key.",
    epilog="Example: dither people revoke 6f1c2a9be07d4835",
)
@click.argument("key_id", metavar="ID")
@policy
def revoke(key_id: str, policy: Path) -> None:
    """End the key of this ID, as `dither people list` shows it."""
    with _of(policy) as found:
        found.revoke(key_id)


@people.command(
    short_help="Take every key from somebody.",
    epilog="Example: dither people disable ana",
)
@click.argument("name")
@policy
def disable(name: str, policy: Path) -> None:
    """Take every key and session from NAME; what they were charged for stays."""
    with _of(policy) as found:
        found.disable(name)


@people.command(
    "list",
    short_help="Everybody, and their keys.",
    epilog="Example: dither people list --json",
)
@policy
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def listed(policy: Path, as_json: bool) -> None:
    """Everybody, and the keys that they have, by their ids."""
    with _of(policy) as found:
        rows = found.listed()
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(f"{row['name']}  {row['role']}{'  (disabled)' if row['disabled'] else ''}")
        for one in row["keys"]:  # type: ignore[attr-defined]
            ends = "for ever" if one["expires"] is None else f"until {_day(one['expires'])}"
            click.echo(f"  key {one['id']}  {'revoked' if one['revoked'] else ends}")

"""``dither publish``: an answer that the ledger has becomes a table that other programs read."""

from __future__ import annotations

from pathlib import Path

import click

from dither.cli._options import FILE

__all__ = ["publish"]


@click.command(
    short_help="Publish an answer of the ledger as a table.",
    epilog="""\b
Examples:
  dither publish dither.toml --entry 12 --as visits_by_region
  dither publish dither.toml --entry 12 --as visits --to out.duckdb --history
  dither publish dither.toml --check visits
""",
)
@click.argument("policy", type=FILE, default=Path("dither.toml"))
@click.option("--entry", type=click.IntRange(0), help="The charge whose answer it is.")
@click.option("--as", "name", help="The table's name: a letter, then a to z, 0 to 9 and _.")
@click.option("--to", type=click.Path(path_type=Path), help="A DuckDB file or a folder.")
@click.option("--history", is_flag=True, help="Add the rows to those that are there.")
@click.option("--rows", type=click.IntRange(1), help="Of synthetic data: how many.")
@click.option("--key", type=FILE, help="The owner's key, where the policy names its owner.")
@click.option("--check", metavar="NAME", help="Hold a published table against its certificates.")
def publish(
    policy: Path,
    entry: int | None,
    name: str | None,
    to: Path | None,
    history: bool,
    rows: int | None,
    key: Path | None,
    check: str | None,
) -> None:
    """Publish an answer of POLICY's ledger where [publish] says, with intervals and certificate.

    Nothing is charged, and no data are read. The policy must say that answers are for everybody.
    """
    from dither.policy._policy import read_policy
    from dither.service import publish as room

    if check is not None:
        read = read_policy(policy)
        declared = room.read_publish(read.around.get("publish", {}), read.folder)
        place = to or (None if declared is None else declared.to)
        if place is None:
            raise click.UsageError("--check needs --to, or [publish] in the policy")
        for line in room.verify_published(place, check, ledger=read.ledger):
            click.echo(line)
        return
    if entry is None or name is None:
        raise click.UsageError("give --entry and --as: which answer, and the table's name")
    found = room.publish_entry(
        policy, entry, name, to=to, history=history or None, rows=rows, key=key
    )
    click.echo(str(found))

"""The commands ``dither owner``: for the data's owner alone, not private, nothing to publish."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dither.cli._options import FILE, Group, policy
from dither.cli._terminal import say_saved, waiting
from dither.cli.policies._opened_ledger import revealed

__all__ = ["owner"]


@click.group(
    cls=Group,
    short_help="For the data's owner alone: exact, not private.",
    epilog="""\b
Example:
  dither owner bias --not-for-publication
""",
)
def owner() -> None:
    """What the data's owner may see and nobody else: exact figures, which protect nobody."""


@owner.command(
    short_help="What is lost: unreadable, without a key, cut.",
    epilog="""\b
Examples:
  dither owner bias --not-for-publication
  dither owner bias --not-for-publication --out ~/private/bias.json
""",
)
@policy
@click.option(
    "--not-for-publication",
    "confirmed",
    is_flag=True,
    help="Required: you may see the data, and will publish nothing of what comes out.",
)
@click.option("--out", type=FILE, help="Write JSON; never beside a policy, ledger or certificate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bias(policy: Path, confirmed: bool, out: Path | None, as_json: bool) -> None:
    """Read the data, and say what is lost of it. NOT FOR PUBLICATION.

    By column and file: values that cannot be read, and those that match no key; lines of files that
    are left out; what bounds and limits cut. Where files of a table differ in their columns, the
    files and the columns are named.

    Exact figures without noise: for the owner of the data, to see whether the policy suits it.
    Nothing is charged, and the ledger is not written.
    """
    import dither as dt

    if not confirmed:
        raise click.UsageError(
            "this reads the data and prints exact figures, which protect nobody; where you own "
            "the data and will publish nothing of it, say --not-for-publication"
        )
    with waiting("reading the data"):
        found = dt.owner_bias(policy, not_for_publication=True)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        click.echo(found.summary())
    if out is not None:
        found.save(out)
        say_saved(out)


@owner.command(
    short_help="Make the key that signs what changes a ledger.",
    epilog="""\b
Examples:
  dither owner key owner.key
  dither owner key owner.key --password env:OWNER_PASSWORD
""",
)
@click.argument("file", metavar="OWNER.key", type=FILE)
@click.option("--password", help="env:NAME, the variable that holds a password for the file.")
def key(file: Path, password: str | None) -> None:
    """Write a new key to OWNER.key, and its public half to OWNER.pub beside it.

    Who has the key and its password changes caps: keep it away from the ledger. Anybody may have
    the public half, which tells whether the owner signed. A key is never written over.
    """
    from dither.errors import KeyFileError
    from dither.ledger import OwnerKey

    hidden = revealed(password)
    public = file.with_suffix(".pub")
    if public == file:
        raise click.UsageError("name the secret key's file: the public half is the one in .pub")
    if public.exists():
        raise KeyFileError(f"{public.name} is there already: name another file")
    made = OwnerKey.make()
    made.write(file, hidden)
    public.write_text(made.public.text + "\n", encoding="ascii")
    say_saved(file)
    say_saved(public)
    click.echo(f"{made.public.text}\nfingerprint {made.public.fingerprint}")

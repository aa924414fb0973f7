"""``dither ledger``: what was spent, by whom, on what; is the chain whole. And ``dither verify``:
does a certificate agree with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither.cli._endings import Ended
from dither.cli._files import check_targets
from dither.cli._options import FILE, Group, plot, policy, refuse_given
from dither.cli._terminal import say_saved, waiting
from dither.cli.policies._opened_ledger import opened_ledger
from dither.cli.policies._shown_ledger import as_json as json_of
from dither.cli.policies._shown_ledger import print_ledger
from dither.cli.policies.grants_command import grants
from dither.cli.policies.ledger_changes import amend, open_accounts, owner, upgrade
from dither.cli.policies.reserve_command import reserve
from dither.errors import LedgerCorruptError

if TYPE_CHECKING:
    from dither.ledger._place import LedgerSchema

__all__ = ["ledger", "verify"]

_policy = click.option(
    "--policy", type=FILE, help="The policy that names the ledger.  [default: dither.toml]"
)


@click.group(cls=Group, epilog="Example: dither ledger show visits.ledger")
def ledger() -> None:
    """See what was spent, and whether the ledger is whole.

    LEDGER is a file; or env:NAME, the variable of the environment that holds the connection string
    of a PostgreSQL database, with #SCHEMA after it unless the ledger's schema is 'dither'.
    """


@ledger.command(
    short_help="Show accounts and the newest entries.",
    epilog="""\b
Examples:
  dither ledger show visits.ledger
  dither ledger show --account dataset:patient --json
  dither ledger show visits.ledger --plot spent.png
  dither ledger show --account dataset:patient --plot blocks.svg
""",
)
@click.argument("path", metavar="[LEDGER]", type=FILE, required=False)
@_policy
@click.option("--account", help="Only this account and its entries.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    help="How many entries to show.  [default: 20, or 4 where blocks are shown]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with exact amounts.")
@plot("what was spent by date, or what the --account has left, block by block")
def show(
    path: Path | None,
    policy: Path | None,
    account: str | None,
    limit: int | None,
    as_json: bool,
    picture: Path | None,
) -> None:
    """Show accounts and the newest entries of LEDGER."""
    check_targets(picture=picture)
    with opened_ledger(path, policy) as book:
        names = book.accounts() if account is None else [account]
        balances = [book.balance(name) for name in names]
        if limit is None:
            # All of it on one screen.
            limit = 20 if as_json or all(b.blocks is None for b in balances) else 4
        entries = book.entries(account, limit)
        if as_json:
            click.echo(json.dumps(json_of(book, balances, entries), indent=2))
        else:
            print_ledger(book, balances, entries, whole=account is None)
        if picture is not None:
            (balances[0] if account is not None else book).plot(picture)
            say_saved(picture)


@ledger.command(
    "verify",
    short_help="Check that it is whole: every hash, total and cap.",
    epilog="Example: dither ledger verify visits.ledger",
)
@click.argument("path", metavar="[LEDGER]", type=FILE, required=False)
@_policy
def verify_chain(path: Path | None, policy: Path | None) -> None:
    """Check every hash, total and cap of LEDGER. Exit code 1 if something is wrong.

    A chain of hashes cannot show that the whole file was replaced: check your certificates against
    it with `dither verify`.
    """
    with _checked(), opened_ledger(path, policy) as book, _progress() as progress:
        found = book.verify(progress)
    click.echo(f"{book.name}: {found.describe()}")
    if not found.ok:
        sys.exit(1)


for command in (amend, grants, reserve, open_accounts, owner, upgrade):
    ledger.add_command(command)


@ledger.command(
    short_help="Sign what it holds now, to be published.",
    epilog="""\b
Examples:
  dither ledger checkpoint visits.ledger --key owner.key --out checkpoint.json
  dither ledger checkpoint env:LEDGER_DSN --key env:OWNER_KEY --out may.json
""",
)
@click.argument("path", metavar="LEDGER", type=FILE)
@click.option("--key", required=True, metavar="FILE", help="The owner's secret key, or env:NAME.")
@click.option("--password", metavar="env:NAME", help="The variable that holds its password.")
@click.option("--out", type=FILE, required=True, help="Where to write it.")
def checkpoint(path: Path, key: str, password: str | None, out: Path) -> None:
    """Sign what LEDGER holds now: its last entry, by number and hash, and what accounts have spent.

    The whole chain is checked first. Publish what comes out. A policy that names it in [budget]
    checkpoint opens no ledger that is older, or that went on otherwise from an earlier entry.
    """
    from dither.ledger import Checkpoint
    from dither.session._signer import read_key

    check_targets(other=out, option="--out")
    if password is not None and not password.startswith("env:"):
        raise click.UsageError("--password names a variable of the environment: env:NAME")
    owner = read_key(key, password, "--key")
    with _checked(), opened_ledger(path, None) as book, waiting("checking the chain"):
        made = Checkpoint.of(book, owner)
    made.save(out)
    click.echo(f"{book.name}: entry {made.number}, signed by {owner.public.fingerprint}")
    say_saved(out)


@click.command(
    short_help="Check a certificate: its signature, its answer, its ledger.",
    epilog="""\b
Examples:
  dither verify cost.cert.json
  dither verify cost.cert.json --ledger visits.ledger
  dither verify cost.cert.json --key owner.pub --answer cost.csv
""",
)
@click.argument("certificate", metavar="CERT", type=FILE)
@click.option("--ledger", type=FILE, help="The ledger.  [default: the one that the policy names]")
@click.option("--key", metavar="FILE", help="The owner's public key: no ledger is needed then.")
@click.option("--answer", type=FILE, help="The answer: CSV, Parquet or JSON, or a saved model.")
@policy
def verify(
    certificate: Path, ledger: Path | None, key: str | None, answer: Path | None, policy: Path
) -> None:
    """Check the certificate CERT. Exit code 1 if something disagrees.

    Against the ledger: that the certificate is unchanged, that the ledger's chain is whole, and
    that its entry charged what the certificate says. With --key: that the owner signed all of it;
    no ledger is opened unless --ledger names one. With --answer: that this is the answer that the
    certificate was issued for.
    """
    import dither as dt

    place: Path | LedgerSchema | None
    if ledger is not None:
        refuse_given(("policy",), "no --ledger: it names one itself")
        place = ledger
    elif key is not None:
        refuse_given(("policy",), "no --key: say --ledger to check against a ledger as well")
        place = None
    else:
        if not policy.is_file():
            raise click.UsageError(f"there is no policy {str(policy)!r}: name the --ledger")
        from dither.policy._policy import read_policy

        place = read_policy(policy).ledger
    with _checked(), waiting("checking the chain"):
        found = dt.verify(certificate, place, key=key, answer=answer)
    click.echo(found.text)
    if not found.ok:
        raise click.exceptions.Exit(1)


@contextmanager
def _checked() -> Iterator[None]:
    """A ledger that is checked and cannot be read does not hold, which is an answer."""
    try:
        yield
    except LedgerCorruptError as error:
        raise Ended(" ".join(str(error).split()), 1, type(error).__name__) from error


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("checking")
        yield lambda done, total: bar.update(task, completed=done, total=total)

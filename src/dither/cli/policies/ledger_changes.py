"""What changes a ledger: its accounts and their caps, its owner, and its format."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither.cli._options import FILE, Amount, LocalPath
from dither.cli._terminal import waiting
from dither.cli.policies._opened_ledger import key_options, opened_ledger, owner_key
from dither.cli.policies._shown_ledger import say_caps, say_remaining

if TYPE_CHECKING:
    from dither.ledger import Balance, Ledger, OwnerKey
    from dither.ledger._block_budget import Budget

__all__ = ["amend", "open_accounts", "owner", "upgrade"]


class _Place(LocalPath):
    """A ledger of this machine; or the address of a policy at a service, as text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Leave addresses as they are."""
        if isinstance(value, str) and value.startswith(("https://", "http://")):
            return value
        return super().convert(value, param, ctx)


@click.command(
    short_help="Change the caps of an account.",
    epilog="""\b
Examples:
  dither ledger amend visits.ledger --account dataset:patient --epsilon 3 \\
      --reason "board decision 12"
  dither ledger amend visits.ledger --policy dither.toml --reason "by month" \\
      --key owner.key
  dither ledger amend https://data.example.org/visits --access env:KEY \\
      --policy dither.toml --reason "second year" --key owner.key
""",
)
@click.argument("path", metavar="LEDGER", type=_Place(dir_okay=False, path_type=Path))
@click.option("--account", help="The account to change.")
@click.option(
    "--epsilon",
    type=Amount(),
    help="Its new cap, such as 2.5 or 5/2; that of each block where it has blocks.",
)
@click.option(
    "--delta",
    type=Amount(zero=True),
    help="Its new cap, such as 1e-6; left out, it stays as it is.",
)
@click.option(
    "--lifetime", type=Amount(), help="Epsilon of all blocks together; left out, it stays."
)
@click.option(
    "--policy", type=FILE, help="Instead of one account: all that the policy has, with its caps."
)
@click.option(
    "--read-until",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Where blocks are new: the last day of which rows may have been read.  [default: today]",
)
@click.option("--reason", required=True, help="Why; kept in the ledger for good.")
@click.option(
    "--access",
    metavar="env:NAME",
    help="Where LEDGER is at a service: the variable that holds your key to it.",
)
@key_options
def amend(
    path: Path | str,
    account: str | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    lifetime: Fraction | None,
    policy: Path | None,
    read_until: dt.datetime | None,
    reason: str,
    access: str | None,
    key: Path | None,
    password: str | None,
) -> None:
    """Change the caps of an account of LEDGER. What is spent stays spent.

    With --policy the accounts get the caps of a policy. Where it has other blocks than the ledger,
    all that was spent so far counts in every block that had begun.

    LEDGER may be the address of a policy at a service, whose owner you are: the change is signed
    here, and the owner's key is not sent.
    """
    if (account is None) == (policy is None) or (account is None) != (epsilon is None):
        raise click.UsageError("give --account and its --epsilon, or a --policy that says all caps")
    if policy is not None and (delta is not None or lifetime is not None):
        raise click.UsageError("--policy says all caps: leave out --delta and --lifetime")
    until = None if read_until is None else read_until.date()
    signs = owner_key(key, password)
    with _at(path, access) as book:
        if account is not None and epsilon is not None:
            caps = {account: _changed(book.balance(account), epsilon, delta, lifetime)}
        else:
            assert policy is not None
            caps = _differing(book, policy)
            if not caps:
                click.echo("the ledger has the caps of the policy already")
        for name, budget in caps.items():
            _amend(book, name, budget, reason, signs, until)


@contextmanager
def _at(place: Path | str, access: str | None) -> Iterator[Ledger]:
    """A ledger of this machine, or one at a service."""
    if isinstance(place, Path):
        if access is not None:
            raise click.UsageError("--access belongs to the address of a policy at a service")
        with opened_ledger(place, None) as book:
            yield book
        return
    if access is None or not access.startswith("env:"):
        raise click.UsageError(
            "--access names the variable that holds your key to the service, as in env:DITHER_KEY"
        )
    from dither import connect

    with connect(place, key=access) as session:
        yield session.ledger


def _amend(
    book: Ledger,
    name: str,
    budget: Budget,
    reason: str,
    key: OwnerKey | None,
    until: dt.date | None,
) -> None:
    before = book.balance(name)
    dated = until if hasattr(budget, "calendar") else None
    book.amend(name, budget, reason, key=key, read_until=dated)
    after = book.balance(name)
    said = f"{name}: {say_caps(before.caps.to_dict())} -> {say_caps(after.caps.to_dict())}"
    click.echo(f"{said}; remains {say_remaining(after)}".replace("\n", " "))


def _changed(
    now: Balance, epsilon: Fraction, delta: Fraction | None, lifetime: Fraction | None
) -> Budget:
    """Caps with another epsilon; what is not said stays as it is."""
    from dither.accounting import BudgetFilter
    from dither.ledger import BlockBudget

    caps = now.caps
    if not isinstance(caps, BlockBudget | BudgetFilter) or now.window is not None:
        raise click.UsageError("a quota of this kind changes with its policy: give --policy")
    if not isinstance(caps, BlockBudget):
        if lifetime is not None:
            raise click.UsageError("--lifetime is for accounts that have blocks")
        return BudgetFilter(epsilon, caps.delta if delta is None else delta)
    each = BudgetFilter(epsilon, caps.each.delta if delta is None else delta)
    whole = caps.lifetime
    if lifetime is not None:
        whole = BudgetFilter(lifetime, each.delta if whole is None else whole.delta)
    return BlockBudget(caps.calendar, each, whole)


def _differing(book: Ledger, policy: Path) -> dict[str, Budget]:
    """The accounts of a policy that have other caps in the ledger."""
    from dither.policy._policy import read_policy
    from dither.session._opened import accounts_of

    known = set(book.accounts())
    return {
        name: budget
        for accounts in accounts_of(read_policy(policy)).values()
        for name, budget in accounts.items()
        if name in known and book.balance(name).caps.to_dict() != budget.to_dict()
    }


@click.command(
    "open",
    short_help="Open the accounts of a policy, once for all who ask.",
    epilog="""\b
Example:
  dither ledger open dither.toml --key owner.key
""",
)
@click.argument("policy", type=FILE)
@key_options
def open_accounts(policy: Path, key: Path | None, password: str | None) -> None:
    """Open every account of POLICY in its ledger, under the owner's signature.

    In a ledger that has an owner nobody else opens accounts. A ledger that is not there is begun,
    and belongs to whoever owns the key.
    """
    from dither.ledger import Ledger
    from dither.policy._policy import read_policy
    from dither.session._opened import accounts_of

    read = read_policy(policy)
    signs = owner_key(key, password)
    with Ledger.open(read.ledger) as book:
        if signs is not None and book.owner is None and len(book.entries(limit=2)) == 1:
            book.set_owner(signs)
            click.echo(f"{book.name}: {_say_owner(book)}")
        for promise, accounts in accounts_of(read).items():
            new = book.open_accounts(accounts, promise, key=signs, policy=read.digest)
            for name in new:
                click.echo(f"{name}: {book.balance(name).describe()}")


@click.command(
    short_help="Say whose signature changes caps.",
    epilog="""\b
Examples:
  dither ledger owner visits.ledger --key owner.key
  dither ledger owner visits.ledger --key owner.key --to successor.pub
  dither ledger owner visits.ledger --key new.key --recovered "card lost"
""",
)
@click.argument("path", metavar="LEDGER", type=FILE)
@click.option("--to", type=FILE, help="The public key of the next owner, who gets the ledger.")
@click.option(
    "--recovered",
    metavar="REASON",
    help="The old key is lost, and why: kept and shown for good; caps may then only fall.",
)
@key_options
def owner(
    path: Path, to: Path | None, recovered: str | None, key: Path | None, password: str | None
) -> None:
    """Make LEDGER the owner's: from then on caps change under their signature alone.

    The first owner signs with their own key, and whoever has the ledger hands it over with --to.
    Where the key is lost, another one takes its place with --recovered: everybody who looks at the
    ledger sees it, and caps may only stay or fall until the old key signs again.
    """
    from dither.ledger import PublicKey

    signs = owner_key(key, password)
    with opened_ledger(path, None) as book:
        if signs is not None:
            new = signs if to is None else PublicKey.read(to)
            book.set_owner(new, key=signs, recovered=recovered)
        elif to is not None or recovered is not None:
            raise click.UsageError("give the --key that signs it")
        click.echo(f"{book.name}: {_say_owner(book)}")


def _say_owner(book: Ledger) -> str:
    now = book.owner
    return "no owner: whoever may write it changes caps" if now is None else now.describe()


@click.command(
    short_help="Bring a ledger of an earlier format to this one's.",
    epilog="Example: dither ledger upgrade visits.ledger",
)
@click.argument("path", metavar="LEDGER", type=FILE)
def upgrade(path: Path) -> None:
    """Bring LEDGER to the format of this version of dither, all or nothing.

    Entries, caps, spending and answers stay as they are, on the record; an entry says that it took
    place. A file is kept beside as it was, as LEDGER.format-2: it is a copy to look at, and must
    never be put back in use.
    """
    with opened_ledger(path, None) as book, waiting("checking the chain"):
        done = book.upgrade()
        found = book.verify()
    said = "upgraded" if done else "in this format already"
    click.echo(f"{book.name}: {said}; {found.describe()}")

"""``dither ledger``: what was spent, by whom, on what; is the chain whole. And ``dither verify``:
does a certificate agree with it."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._format import loss_text, remaining
from dither.cli._endings import Ended
from dither.cli._files import check_targets
from dither.cli._options import FILE, Amount, Group, policy, refuse_given
from dither.cli._terminal import READABLE, console, new_table, say_saved, waiting
from dither.errors import LedgerCorruptError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from dither.ledger import Balance, Entry, Ledger
    from dither.ledger._place import LedgerSchema
    from dither.privacy import Charge

__all__ = ["ledger", "verify"]

COLOURS = {"account": "cyan", "amend": "magenta", "charge": "yellow", "answer": "dim green"}


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
""",
)
@click.argument("path", metavar="[LEDGER]", type=FILE, required=False)
@_policy
@click.option("--account", help="Only this account and its entries.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="How many entries to show.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with exact amounts.")
def show(
    path: Path | None, policy: Path | None, account: str | None, limit: int, as_json: bool
) -> None:
    """Show accounts and the newest entries of LEDGER."""
    with _opened(path, policy) as book:
        names = book.accounts() if account is None else [account]
        balances = [book.balance(name) for name in names]
        entries = book.entries(account, limit)
        if as_json:
            click.echo(json.dumps(_as_json(book, balances, entries), indent=2))
        else:
            _print(book, balances, entries, whole=account is None)


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
    with _checked(), _opened(path, policy) as book, _progress() as progress:
        found = book.verify(progress)
    click.echo(f"{book.name}: {found.describe()}")
    if not found.ok:
        sys.exit(1)


@ledger.command(
    short_help="Change the caps of an account.",
    epilog="""\b
Example:
  dither ledger amend visits.ledger --account dataset:patient --epsilon 3 \\
      --reason "board decision 12"
""",
)
@click.argument("path", metavar="LEDGER", type=FILE)
@click.option("--account", required=True, help="The account to change.")
@click.option("--epsilon", type=Amount(), required=True, help="Its new cap, such as 2.5 or 5/2.")
@click.option(
    "--delta",
    type=Amount(zero=True),
    help="Its new cap, such as 1e-6; left out, it stays as it is.",
)
@click.option("--reason", required=True, help="Why; kept in the ledger for good.")
def amend(path: Path, account: str, epsilon: Fraction, delta: Fraction | None, reason: str) -> None:
    """Change the caps of an account of LEDGER. What is spent stays spent."""
    from dither.accounting import BudgetFilter

    with _opened(path, None) as book:
        now = book.balance(account)
        before = _caps(now)
        kept = getattr(now.caps, "delta", Fraction(0)) if delta is None else delta
        book.amend(account, BudgetFilter(epsilon, kept), reason)
        balance = book.balance(account)
    click.echo(
        f"{account}: {before} -> {_caps(balance)}; remains {_remains(balance)}".replace("\n", " ")
    )


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
    with _checked(), _opened(path, None) as book, waiting("checking the chain"):
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
def _opened(path: Path | None, policy: Path | None) -> Iterator[Ledger]:
    from dither.ledger import Ledger

    if path is not None and policy is not None:
        raise click.UsageError("give LEDGER or --policy, which names one; not both")
    with Ledger.open(path or _named_by(policy), create=False) as book:
        yield book


def _named_by(policy: Path | None) -> Path | LedgerSchema:
    """The ledger that a policy names; a file starts from the policy's own place."""
    from dither.ledger._place import read_place

    file = policy or Path("dither.toml")
    try:
        text = file.read_text(encoding="utf-8")
        place = read_place(tomllib.loads(text)["budget"]["ledger"], "budget.ledger")
        return file.parent / place if isinstance(place, Path) else place
    except FileNotFoundError as error:
        what = f"there is no policy {str(file)!r}"
        raise click.UsageError(f"{what}; name a LEDGER or a --policy") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise click.UsageError(
            f"{str(file)!r} names no ledger: under [budget], write ledger = 'FILE', or "
            "ledger = { postgres = 'env:NAME' }"
        ) from error


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("checking")
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print(book: Ledger, balances: list[Balance], entries: list[Entry], whole: bool) -> None:
    from rich.text import Text

    out = console(READABLE)
    out.print(Text(book.name, "bold").append(f"  {book.id[:8]}", "dim"))
    out.print()

    tables = book.tables()
    for promise in dict.fromkeys(b.promise for b in balances if not b.quota):
        # Spending adds up within a promise and never beyond it, so each has a table of its own.
        out.print(Text(f"protects {promise.describe()}"))
        _print_balances(out, [b for b in balances if b.promise == promise and not b.quota])
        held = [f"{name} ({by})" for name, (whose, by) in tables.items() if whose == promise]
        if held:
            out.print(Text("read so far: " + ", ".join(held), "dim"))
        out.print()
    quotas = [balance for balance in balances if balance.quota]
    if quotas:
        out.print(Text("quotas of analysts: they limit who asks, and promise nothing"))
        _print_balances(out, quotas)
        out.print()
    if not balances:
        out.print("No account yet.\n")

    _print_entries(out, entries)
    if entries and entries[0].number > 0 and whole:
        out.print(f"{entries[0].number} older entries: --limit shows more", style="dim")


def _print_balances(out: Console, balances: Iterable[Balance]) -> None:
    from rich.text import Text

    table = new_table()
    table.add_column("account", overflow="fold", style="cyan")
    table.add_column("caps", no_wrap=True)
    table.add_column("spent", no_wrap=True)
    table.add_column("used", no_wrap=True)
    table.add_column("remains", overflow="fold")
    for balance in balances:
        row = (_caps(balance), _amounts(balance.spent), _bar(balance), _remains(balance))
        table.add_row(Text(balance.name), *row)
    out.print(table)


def _print_entries(out: Console, entries: list[Entry]) -> None:
    """Two lines an entry: what it did to whom, and below it why."""
    from rich.text import Text

    width = len(str(entries[-1].number)) if entries else 1
    amounts = [_effect(entry) for entry in entries]
    broad = max(map(len, amounts), default=0)
    for entry, amount in zip(entries, amounts, strict=True):
        line = Text(f"{entry.number:>{width}}  {entry.time:%Y-%m-%d %H:%M}Z  ", "dim")
        line.append(f"{entry.kind:<7}", COLOURS.get(entry.kind, "dim"))
        line.append(f"  {amount:<{broad}}", "not dim")
        line.append("  " + ", ".join(entry.accounts), "not dim cyan")
        out.print(line, no_wrap=True, overflow="ellipsis")
        if note := _note(entry):
            out.print(Text(" " * (width + 2) + note), no_wrap=True, overflow="ellipsis")


def _effect(entry: Entry) -> str:
    """What an entry charges, sets or answers."""
    if entry.charge is not None:
        return _amounts(entry.charge)
    if entry.budget is not None:
        return _say_caps(entry.budget)
    return "" if entry.answers is None else f"to {entry.answers}"


def _amounts(charge: Charge) -> str:
    name, amount, delta = "ε", charge.epsilon, charge.delta
    if amount is None and charge.rho is not None:
        name, amount, delta = "ρ", charge.rho, charge.rho_delta
    return f"{name} {loss_text(amount)}" + (f", δ {loss_text(delta)}" if delta else "")


def _caps(balance: Balance) -> str:
    return _say_caps(balance.caps.to_dict())


def _say_caps(caps: Mapping[str, Any]) -> str:
    # Caps are a promise, so they are rounded up where they are longer than four digits.
    return f"ε {loss_text(Fraction(caps['epsilon']))}, δ {loss_text(Fraction(caps['delta']))}"


def _remains(balance: Balance) -> str:
    left = balance.remaining
    parts = []
    for name, amount, delta in (
        ("ε", left.epsilon, left.delta),
        ("ρ", left.rho, left.rho_delta),
    ):
        if amount is not None and delta is not None:
            text = f"{name} {remaining(amount)}"
            parts.append(text + (f", δ {remaining(delta)}" if delta else ""))
    return "\nor ".join(parts) or "nothing"


def _bar(balance: Balance) -> Text:
    """How much of the account is used, by the rule that leaves it more room."""
    from rich.text import Text

    spent, left = balance.spent, balance.remaining
    shares = [
        Fraction(used, used + rest) if used + rest else Fraction(0)
        for used, rest in ((spent.epsilon, left.epsilon), (spent.rho, left.rho))
        if used is not None and rest is not None
    ]
    share = min(shares, default=Fraction(1))
    filled = -(-8 * share.numerator // share.denominator)
    percent = -(-100 * share.numerator // share.denominator)
    colour = "red" if percent >= 90 else "yellow" if percent >= 60 else "green"
    return Text("█" * filled, colour).append("░" * (8 - filled), "dim").append(f" {percent}%")


def _note(entry: Entry) -> str:
    """The note of a charge, the reason of an amendment or an account's promise, in one line."""
    note = {} if entry.kind == "genesis" else entry.note
    if entry.kind == "account" and entry.promise is not None:
        return "a quota" if _of_quotas(entry) else f"protects {entry.promise.describe()}"
    # A question comes first and without its name; line breaks would tear the list.
    parts = [str(note[name]) for name in ("query", "reason") if name in note]
    parts += [
        f"{name} {_short(str(value))}"
        for name, value in note.items()
        if name not in ("query", "reason")
    ]
    return " ".join("; ".join(parts).split())


def _of_quotas(entry: Entry) -> bool:
    """Whether it opens or changes a quota, for which nothing is promised."""
    from dither.ledger._accounts import is_quota

    return entry.kind != "charge" and any(map(is_quota, entry.accounts))


def _short(text: str) -> str:
    """A hash by its first characters, which tell it from any other that a ledger holds."""
    return f"{text[:12]}…" if re.fullmatch("[0-9a-f]{64}", text) else text


def _as_json(book: Ledger, balances: list[Balance], entries: list[Entry]) -> dict[str, Any]:
    return {
        "ledger": book.name,
        "id": book.id,
        "accounts": [
            {
                "name": balance.name,
                "quota": balance.quota,
                "promise": None if balance.quota else balance.promise.to_dict(),
                "caps": dict(balance.caps.to_dict()),
                "spent": _exact(balance.spent),
                "remaining": _exact(balance.remaining),
            }
            for balance in balances
        ],
        "tables": {
            name: {"promise": promise.to_dict(), "by": by}
            for name, (promise, by) in book.tables().items()
        },
        "entries": [
            {
                "number": entry.number,
                "time": entry.time.isoformat(),
                "kind": entry.kind,
                "accounts": list(entry.accounts),
                "promise": None
                if entry.promise is None or _of_quotas(entry)
                else entry.promise.to_dict(),
                "charge": None if entry.charge is None else _exact(entry.charge),
                "note": entry.note,
                "budget": entry.budget,
                "request": entry.request,
                "answers": entry.answers,
                "hash": entry.hash,
            }
            for entry in entries
        ],
    }


def _exact(amounts: Any) -> dict[str, str | None]:
    names = ("epsilon", "delta", "rho", "rho_delta")
    values = {name: getattr(amounts, name) for name in names}
    return {name: None if value is None else str(value) for name, value in values.items()}

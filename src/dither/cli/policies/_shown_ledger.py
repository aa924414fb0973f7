"""What a ledger looks like on a screen, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither._format import loss_text, remaining
from dither.cli._terminal import READABLE, console, new_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from dither.ledger import Balance, BlockSpending, Entry, Ledger
    from dither.privacy import Charge
    from dither.privacy.accounts._budget import Remaining

__all__ = ["as_json", "print_ledger", "say_caps", "say_remaining"]

COLOURS = {
    "account": "cyan",
    "amend": "magenta",
    "charge": "yellow",
    "answer": "dim green",
    "owner": "bold magenta",
    "upgrade": "cyan",
}


def print_ledger(book: Ledger, balances: list[Balance], entries: list[Entry], whole: bool) -> None:
    """Print accounts, their blocks and entries; ``whole`` where they are all of the ledger."""
    from rich.text import Text

    out = console(READABLE)
    out.print(Text(book.name, "bold").append(f"  {book.id[:8]}", "dim"))
    owner = book.owner
    if owner is not None:
        out.print(Text(owner.describe(), "dim" if owner.before is None else "bold red"))
    out.print()

    tables = book.tables()
    for promise in dict.fromkeys(b.promise for b in balances if not b.quota):
        # Spending adds up within a promise and never beyond it, so each has a table of its own.
        out.print(Text(f"protects {promise.describe()}"))
        mine = [b for b in balances if b.promise == promise and not b.quota]
        _print_balances(out, mine)
        for balance in mine:
            _print_blocks(out, balance)
        held = [f"{name} ({by})" for name, (whose, by) in tables.items() if whose == promise]
        if held:
            out.print(Text("read so far: " + ", ".join(held), "dim"))
        out.print()
    quotas = [balance for balance in balances if balance.quota]
    if quotas:
        out.print(Text("quotas: they limit who asks, and promise nothing"))
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
        row = (_caps_cell(balance), _amounts(balance.spent), _bar(balance), say_remaining(balance))
        table.add_row(Text(balance.name), *row)
    out.print(table)


MOST = 120
"""So many blocks are shown one by one; of more, stretches that have spent the same."""


def _print_blocks(out: Console, balance: Balance) -> None:
    """What each block has spent, in as many columns as there is room for."""
    from rich.text import Text

    held = balance.blocks
    if held is None:
        return
    out.print(Text(f"{balance.name}: {held.budget.describe()}", "not dim"))
    cells = [
        (label, _share(charge, held.budget.each.remaining(charge)))
        for label, charge in _cells(held)
    ]
    if not cells:
        out.print(Text("no block has spent anything", "dim"))
        return
    if len(cells) > MOST:
        out.print(
            Text(f"{len(cells) - MOST} earlier stretches are left out: --json has all", "dim")
        )
        cells = cells[-MOST:]
    width = max(len(label) for label, _ in cells)
    columns = max(1, (out.width + 2) // (width + 12))
    rows = -(-len(cells) // columns)
    for row in range(rows):
        # Down first: a year stands in one column.
        line = Text()
        for label, share in cells[row::rows]:
            line.append(f"{label:<{width}} ", "cyan")
            line.append_text(_filled(share, 4))
            line.append(" " * (7 - len(_percent(share))))
        line.rstrip()
        out.print(line)


def _cells(held: BlockSpending) -> list[tuple[str, Charge]]:
    """Blocks, or stretches of them where there are many, each with what a block of it has spent."""
    from dither.blocks._sets import BlockSet, name_of
    from dither.ledger._states import charge_of

    calendar, bounds = held.budget.calendar, held.state.bounds
    single = bool(bounds) and bounds[-1] - bounds[0] <= MOST
    cells = []
    for (first, last), units in held.state.stretches():
        charge = charge_of(units)
        if first is None or last is None or not single:
            if not charge.free:
                cells.append((calendar.describe(BlockSet(((first, last),))), charge))
            continue
        cells += [(calendar.label(block), charge) for block in range(first, last + 1)]
    return cells + [(name_of(name), charge) for name, charge in sorted(held.named().items())]


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
        return say_caps(entry.budget)
    return "" if entry.answers is None else f"to {entry.answers}"


def _amounts(charge: Charge) -> str:
    name, amount, delta = "ε", charge.epsilon, charge.delta
    if amount is None and charge.rho is not None:
        name, amount, delta = "ρ", charge.rho, charge.rho_delta
    return f"{name} {loss_text(amount)}" + (f", δ {loss_text(delta)}" if delta else "")


def say_caps(caps: Mapping[str, Any]) -> str:
    """Caps in a few words."""
    from dither.ledger.quotas._caps import say_quota

    if quota := say_quota(caps):
        return quota
    if "blocks" in caps:
        each = say_caps(caps["each"]) + f" a {caps['blocks'].get('every', 'block')}"
        return each if caps["lifetime"] is None else f"{each}, {say_caps(caps['lifetime'])} in all"
    # Caps are a promise, so they are rounded up where they are longer than four digits.
    return f"ε {loss_text(Fraction(caps['epsilon']))}, δ {loss_text(Fraction(caps['delta']))}"


def _caps_cell(balance: Balance) -> str:
    caps = balance.caps.to_dict()
    return say_caps(caps).replace(", ε", ",\nε") if "blocks" in caps else say_caps(caps)


def say_remaining(balance: Balance) -> str:
    """What remains, by each rule; of an account with blocks, in one that has spent nothing."""
    left = balance.remaining
    parts = []
    for name, amount, delta in (
        ("ε", left.epsilon, left.delta),
        ("ρ", left.rho, left.rho_delta),
    ):
        if amount is not None and delta is not None:
            text = f"{name} {remaining(amount)}"
            parts.append(text + (f", δ {remaining(delta)}" if delta else ""))
    text = "\nor ".join(parts) or "nothing"
    if not balance.reserved.free:
        text += f"\nbeside {_amounts(balance.reserved)} reserved"
    if balance.blocks is not None:
        which = "a new" if balance.window is None else "this"
        text += f"\n{which} {balance.blocks.budget.noun}"
    forecast = balance.forecast()
    return text if forecast.until is None else f"{text}\n{forecast.describe()}"


def _bar(balance: Balance) -> Text:
    """How much of the account is used, by the rule that leaves it more room."""
    from rich.text import Text

    from dither.ledger.quotas._caps import QuestionQuota

    if isinstance(balance.caps, QuestionQuota):
        return Text("each anew", "dim")
    if balance.blocks is None:
        return _filled(_share(balance.spent, balance.remaining), 8)
    whole = balance.blocks.budget.lifetime
    if whole is not None:
        return _filled(_share(balance.spent, whole.remaining(balance.spent)), 8)
    # Of the fullest block.
    spent = [*(one for _, one in balance.blocks.stretches()), *balance.blocks.named().values()]
    each = balance.blocks.budget.each
    return _filled(max((_share(one, each.remaining(one)) for one in spent), default=Fraction(0)), 8)


def _share(spent: Charge, left: Remaining) -> Fraction:
    shares = [
        Fraction(used, used + rest) if used + rest else Fraction(0)
        for used, rest in ((spent.epsilon, left.epsilon), (spent.rho, left.rho))
        if used is not None and rest is not None
    ]
    return min(shares, default=Fraction(1))


def _percent(share: Fraction) -> str:
    return f"{-(-100 * share.numerator // share.denominator)}%"


def _filled(share: Fraction, width: int) -> Text:
    from rich.text import Text

    filled = -(-width * share.numerator // share.denominator)
    percent = -(-100 * share.numerator // share.denominator)
    colour = "red" if percent >= 90 else "yellow" if percent >= 60 else "green"
    return Text("█" * filled, colour).append("░" * (width - filled), "dim").append(f" {percent}%")


def _note(entry: Entry) -> str:
    """The note of a charge, the reason of an amendment or an account's promise, in one line."""
    note = {} if entry.kind == "genesis" else entry.note
    if entry.kind == "account" and entry.promise is not None:
        return "a quota" if _of_quotas(entry) else f"protects {entry.promise.describe()}"
    # Which role of a server asked, and its question, come first; line breaks would tear the list.
    first = ("role", "query", "reason")
    parts = [f"role {note['role']}"] if "role" in note else []
    parts += [str(note[name]) for name in first[1:] if name in note]
    parts += [f"{name} {_short(str(value))}" for name, value in note.items() if name not in first]
    return " ".join("; ".join(parts).split())


def _of_quotas(entry: Entry) -> bool:
    """Whether it opens or changes a quota, for which nothing is promised."""
    from dither.ledger._accounts import is_quota

    return entry.kind != "charge" and any(map(is_quota, entry.accounts))


def _short(text: str) -> str:
    """A hash by its first characters, which tell it from any other that a ledger holds."""
    return f"{text[:12]}…" if re.fullmatch("[0-9a-f]{64}", text) else text


def as_json(book: Ledger, balances: list[Balance], entries: list[Entry]) -> dict[str, Any]:
    """Accounts and entries as plain data, amounts exact."""
    return {
        "ledger": book.name,
        "id": book.id,
        "owner": None if (owner := book.owner) is None else owner.key.text,
        "recovered": None if owner is None or owner.before is None else owner.recovered,
        "accounts": [
            {
                "name": balance.name,
                "quota": balance.quota,
                "promise": None if balance.quota else balance.promise.to_dict(),
                "caps": dict(balance.caps.to_dict()),
                "spent": _exact(balance.spent),
                "remaining": _exact(balance.remaining),
                **({} if balance.blocks is None else {"blocks": balance.blocks.to_dict()}),
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
                "blocks": None if entry.blocks is None else entry.blocks.to_dict(),
                "signature": entry.signature,
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

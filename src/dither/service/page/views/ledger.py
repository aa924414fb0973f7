"""The ledger: its entries in parts, one of them in full, whether all of it holds, and its hash."""

from __future__ import annotations

import json
import re
from typing import Any

from dither.errors import ArgumentError, LedgerError
from dither.ledger import Entry
from dither.ledger.verification._walk import KINDS as EVERY_KIND
from dither.service._endpoints import AUDITOR, OWNER, Asked, Endpoint, Field, NotFoundError, roles
from dither.service.page._shown import PageView
from dither.service.page.views.budget import charge_text, question_of
from dither.service.routes.auditing import entry_data

__all__ = ["VIEWS"]

READERS = roles(OWNER, AUDITOR)

PART = 100
"""Entries that are shown at a time; more come as they scroll into sight."""

# Those of the chain's walk, which knows all that there are; the most asked for first.
KINDS = tuple(sorted(EVERY_KIND, key=lambda kind: (kind != "charge", kind != "answer")))

HASH = re.compile(r"[0-9a-f]{8,64}")

FILTER = {
    "account": Field("text", "of one account alone", most=300),
    "kind": Field("text", "of one kind alone", most=20),
    "before": Field("whole", "below this number", most=2**40),
}


def ledger(asked: Asked) -> PageView:
    """The newest entries, and what finds others."""
    book = asked.desk.session.ledger
    (last,) = book.entries(limit=1)
    return PageView(
        "ledger/ledger.html",
        {
            "accounts": book.accounts(),
            "kinds": KINDS,
            "id": book.id,
            "last": {"number": last.number, "hash": last.hash, "time": last.time},
            **_part(asked),
        },
    )


def part(asked: Asked) -> PageView:
    """A hundred more, and what asks for the next when it comes into sight."""
    return PageView("ledger/_part.html", _part(asked))


def _part(asked: Asked) -> dict[str, Any]:
    account, kind, before = (asked.body.get(name) for name in FILTER)
    if kind is not None and kind not in KINDS:
        raise ArgumentError(f"kind must be one of {', '.join(KINDS)}")
    book = asked.desk.session.ledger
    if account is not None and account not in book.accounts():
        raise ArgumentError("account must be one that the ledger has")
    found = book.entries(account, PART, kind=kind, before=before)
    rows = [_row(one) for one in reversed(found)]
    more = rows[-1]["number"] if len(rows) == PART and rows[-1]["number"] > 0 else None
    return {"rows": rows, "account": account, "kind": kind, "before": before, "more": more}


def _row(entry: Entry) -> dict[str, Any]:
    if entry.kind == "charge":
        about = question_of(entry)
    elif entry.answers is not None:
        about = ""
    else:
        about = ", ".join(entry.accounts)
    return {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "answers": entry.answers,
        "about": about if len(about) <= SHORT else about[:SHORT] + "…",
        "cost": "" if entry.charge is None else charge_text(entry.charge),
    }


SHORT = 140
"""Characters of a question in the list; all of it is in the entry."""


def entry(asked: Asked) -> PageView:
    """One entry in full, without its answer, which is for whom it was released to."""
    number = asked.path["number"]
    book = asked.desk.session.ledger
    try:
        if not number.isascii() or not number.isdigit() or len(number) > 12:
            raise LedgerError("no number")
        found = book.entry(int(number))
    except LedgerError:
        raise NotFoundError("the ledger has no such entry") from None
    data = entry_data(found)
    # In full, as it was noted; whatever stands in it is text.
    note = json.dumps(data["note"], indent=2, ensure_ascii=False, default=str)
    return PageView(
        "ledger/_entry.html",
        {
            "one": data,
            "time": found.time,
            "query": question_of(found) if found.kind == "charge" else "",
            "cost": "" if found.charge is None else charge_text(found.charge),
            "rho": None if found.charge is None else data["rho"],
            "note": note if data["note"] else "",
            "budget": None
            if found.budget is None
            else json.dumps(dict(found.budget), indent=2, ensure_ascii=False, default=str),
        },
    )


def verify(asked: Asked) -> PageView:
    """Check every hash, total and cap."""
    found = asked.desk.session.ledger.verify()
    return PageView("ledger/_verified.html", {"ok": found.ok, "text": found.describe()})


def compare(asked: Asked) -> PageView:
    """Hold a hash that somebody wrote down against the entry of its number."""
    written = asked.body["hash"].strip().lower()
    if not HASH.fullmatch(written):
        raise ArgumentError("hash must be 8 to 64 of the digits 0 to 9 and a to f")
    book = asked.desk.session.ledger
    number = asked.body["number"]
    try:
        held = book.entry(number).hash
    except LedgerError:
        # Damage is no answer to which hash it has: `verify` says what is wrong.
        return PageView("ledger/_compared.html", {"ok": False, "gone": True, "number": number})
    same = held.startswith(written)
    return PageView("ledger/_compared.html", {"ok": same, "gone": False, "number": number})


VIEWS = [
    Endpoint("GET", "/ledger", READERS, ledger, "The newest entries.", FILTER),
    Endpoint("GET", "/ledger/part", READERS, part, "Entries below a number.", FILTER),
    Endpoint("GET", "/ledger/entry/{number}", READERS, entry, "One entry in full."),
    Endpoint("GET", "/ledger/verify", READERS, verify, "Check the whole chain."),
    Endpoint(
        "GET",
        "/ledger/compare",
        READERS,
        compare,
        "Hold a hash that was written down against its entry.",
        {
            "number": Field("whole", "of the entry", True, 2**40),
            "hash": Field("text", "its hash, or the beginning of it", True, 100),
        },
    ),
]

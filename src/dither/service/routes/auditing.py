"""For auditors: the ledger, its verification, and certificates."""

from __future__ import annotations

from typing import Any

from dither.ledger import Entry
from dither.service._endpoints import ANALYST, AUDITOR, OWNER, Asked, Endpoint, Field, roles
from dither.service._shared import balance_data
from dither.session._verify import verify as verify_certificate

__all__ = ["ENDPOINTS"]

READERS = roles(AUDITOR, OWNER)


def entry_data(entry: Entry) -> dict[str, Any]:
    """An entry as auditors see it: no answer, which is for whom it was released to."""
    charge = entry.charge
    return {
        "number": entry.number,
        "time": entry.time.isoformat(),
        "kind": entry.kind,
        "accounts": list(entry.accounts),
        "protects": None if entry.promise is None else entry.promise.describe(),
        "epsilon": None if charge is None or charge.epsilon is None else str(charge.epsilon),
        "delta": None if charge is None else str(charge.delta),
        "rho": None if charge is None or charge.rho is None else str(charge.rho),
        "note": dict(entry.note),
        "answers": entry.answers,
        "hash": entry.hash,
        "blocks": None if entry.blocks is None else entry.blocks.to_dict(),
        "signature": entry.signature,
    }


def ledger(asked: Asked) -> dict[str, Any]:
    """The newest entries, and every account."""
    book = asked.desk.session.ledger
    found = book.entries(asked.body.get("account"), asked.body.get("last", 100))
    return {
        "id": book.id,
        "entries": [entry_data(one) for one in found],
        "balances": [balance_data(book.balance(name)) for name in book.accounts()],
    }


def verify(asked: Asked) -> dict[str, Any]:
    """Check the whole chain."""
    found = asked.desk.session.ledger.verify()
    return {"ok": found.ok, "text": found.describe()}


def check(asked: Asked) -> dict[str, Any]:
    """Check a certificate against the ledger."""
    found = verify_certificate(asked.body["certificate"], asked.desk.session.ledger)
    return {"ok": bool(found.ok), "text": str(found)}


ENDPOINTS = [
    Endpoint(
        "GET",
        "/ledger",
        READERS,
        ledger,
        "The newest entries, and every account.",
        {
            "account": Field("text", "of one account alone", most=300),
            "last": Field("whole", "how many, 100 where left out", most=10_000),
        },
    ),
    Endpoint("GET", "/ledger/verify", READERS, verify, "Check the whole chain."),
    Endpoint(
        "POST",
        "/verify",
        roles(AUDITOR, OWNER, ANALYST),
        check,
        "Check a certificate against the ledger.",
        {"certificate": Field("object", "the certificate", True)},
    ),
]

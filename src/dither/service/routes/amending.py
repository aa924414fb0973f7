"""For the owner: caps that change under their signature, made where their key is.

The key never comes here. Who has a key to this service and not the owner's own changes no cap, and
who has the owner's own and no key to this service is not heard.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from dither.errors import AmendmentError, DitherError
from dither.ledger.amendments import SignedAmendment, amend_by, base_of
from dither.service._endpoints import OWNER, Asked, Endpoint, Field, roles
from dither.service._shared import balance_data

__all__ = ["ENDPOINTS"]

OTHER = (
    "the amendment was signed for another policy than the one that is served: connect again, see "
    "what it says, and sign anew; nothing was changed"
)

ACCOUNT = Field("text", "the account", True, 300)


def base(asked: Asked) -> dict[str, Any]:
    """Where the ledger stands."""
    session = asked.desk.session
    found = base_of(session.ledger, asked.body["account"])
    return {"base": found.to_dict(), "policy": session.policy.digest}


def amend(asked: Asked) -> dict[str, Any]:
    """Change caps as they were signed; then look whether the policy's file has them by now."""
    session, body = asked.desk.session, asked.body
    if body["policy"] != session.policy.digest:
        raise AmendmentError(OTHER)
    signed = SignedAmendment(**body)
    number = amend_by(session.ledger, signed)
    asked.desk.people.note(asked.who.name, "caps amended", f"{signed.account} entry {number}")
    # Where the file has others, the policy that is served has the new caps by the ledger's entry.
    with suppress(DitherError):
        asked.desk.take_up()
    return {"entry": number, "balance": balance_data(session.ledger.balance(signed.account))}


ENDPOINTS = [
    Endpoint(
        "GET",
        "/amendments",
        roles(OWNER),
        base,
        "Where the ledger stands, for an amendment to be signed.",
        {"account": ACCOUNT},
    ),
    Endpoint(
        "POST",
        "/amendments",
        roles(OWNER),
        amend,
        "Change the caps of an account, under the signature of the ledger's owner.",
        {
            "account": ACCOUNT,
            "caps": Field("object", "the new ones, as entries hold them", True),
            "reason": Field("text", "why; kept in the ledger for good", True, 10_000),
            "policy": Field("text", "the digest of the policy whose caps they replace", True, 64),
            "number": Field("whole", "of the entry that is written", True, 10**15),
            "previous": Field("text", "the hash of the entry before it", True, 64),
            "time": Field("text", "its hour", True, 40),
            "signature": Field("text", "of the whole entry, in base64", True, 200),
        },
        status=201,
    ),
]

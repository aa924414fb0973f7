"""What lets a role of a PostgreSQL database ask, read or own a ledger there: statements to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import text

from dither.errors import ArgumentError, LedgerError
from dither.ledger._place import LedgerSchema

if TYPE_CHECKING:
    from dither.ledger._ledger import Ledger

__all__ = ["ROLES", "grants"]

ROLES = ("asker", "reader", "owner")
"""What a role may be to a ledger."""

_OWNER = text("""
SELECT pg_get_userbyid(c.relowner) FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname = 'entries'
""")


def grants(
    ledger: Ledger, role: str, kind: str = "asker", *, quotas: Sequence[str] = ()
) -> list[str]:
    """The statements that make a role one that asks, reads or owns; the owner of the tables runs
    them.

    What the role could do before is taken away first, an earlier version's rights to insert among
    them.

    Parameters
    ----------
    ledger : Ledger
        On a server.
    role : str
        Its name.
    kind : str
        One of ``ROLES``. An asker reads, and calls the functions that charge and keep an answer; an
        owner becomes a member of the role that owns the tables.
    quotas : sequence of str
        Of an asker: what it is charged to beside the data set, such as ``"analyst:ann"``; ``"*"``
        where it asks for many, and is trusted to say for whom.

    Raises
    ------
    LedgerError
        The ledger is a file.
    ArgumentError
        There can be no such role, or no such quota.
    """
    from dither.ledger.stores._askers import granted

    place = ledger.place
    if not isinstance(place, LedgerSchema):
        raise LedgerError(
            f"{ledger.name} is a file, which has no roles: whoever may write the file may charge "
            "it, and change it. Roles are for a ledger in a PostgreSQL database (env:NAME)"
        )
    if kind not in ROLES:
        raise ArgumentError(f"kind must be one of {', '.join(ROLES)}")
    if not role.isprintable() or not 0 < len(role.encode()) <= 63:
        raise ArgumentError("role must be the name of a role, of 1 to 63 bytes")
    for quota in quotas:
        whose, _, name = quota.partition(":")
        if quota != "*" and (whose not in ("analyst", "group") or not name.strip()):
            raise ArgumentError("quotas must be 'analyst:NAME', 'group:NAME' or '*'")
    if (kind == "asker") != bool(quotas):
        raise ArgumentError("quotas must be given of an asker, and left out of others")
    with ledger._store.read() as connection:
        owner = connection.execute(_OWNER, {"schema": place.schema}).scalar_one()
    if role == owner:
        raise ArgumentError(
            f"role {role!r} owns the ledger's tables, and may everything: whoever asks needs "
            "another role"
        )
    return granted(place.schema, role, kind, quotas, owner)

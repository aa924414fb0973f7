"""What roles that ask do to a ledger on a server, through Python and by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dither.accounting import BudgetFilter
from dither.ledger import Ledger
from dither.ledger._entries import canonical
from dither.ledger._place import LedgerSchema
from dither.ledger._roles import grants
from dither.privacy import Charge, Promise
from ledger.stores import administrator
from postgres_server import PASSWORD, literal

PATIENT, ROW = Promise("patient"), Promise("row of visits")
DATASET, ANN, BEN = "dataset:patient", "analyst:ann:patient", "analyst:ben:patient"
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
ONE = BudgetFilter(Fraction(1), Fraction(0))
LOOSE = BudgetFilter(Fraction(1), Fraction(1, 10**6))
REQUEST = "ab" * 32


def quoted(book: Ledger) -> str:
    """The schema of a ledger, as SQL writes it."""
    assert isinstance(book.place, LedgerSchema)
    return '"' + book.place.schema.replace('"', '""') + '"'


def let(book: Ledger, role: str, *quotas: str, kind: str = "asker") -> None:
    """Make a role, and run what is printed for it."""
    with administrator(book) as raw:
        if raw.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).rowcount == 0:
            raw.execute(f"CREATE ROLE {role} LOGIN PASSWORD {literal(PASSWORD)}")
        raw.execute(f"GRANT CONNECT, TEMPORARY ON DATABASE {raw.info.dbname} TO {role}")
        for statement in grants(book, role, kind, quotas=quotas):
            raw.execute(statement)


def opened_by(book: Ledger, role: str, timeout: float = 30.0) -> Ledger:
    """The same ledger, opened as a role."""
    assert isinstance(book.place, LedgerSchema)
    place = LedgerSchema(f"env:{role.upper()}_DSN", book.place.schema)
    return Ledger.open(place, create=False, timeout=timeout)


CHARGE = (
    "SELECT number FROM {s}.append_charge(%(accounts)s::pg_catalog.text[], %(epsilon)s, %(delta)s, "
    "%(rho)s, %(rho_delta)s, %(promise)s, %(tables)s, %(note)s, %(blocks)s, %(token)s, "
    "%(request)s, %(reservation)s)"
)


def arguments(**changes: Any) -> dict[str, Any]:
    """What a charge of ann's that is in order says to the server; with some of it changed."""
    given: dict[str, Any] = {
        "accounts": [DATASET, ANN],
        "epsilon": str(10**17),
        "delta": "0",
        "rho": str(5 * 10**15),
        "rho_delta": "0",
        "promise": canonical(PATIENT.to_dict()),
        "tables": "{}",
        "note": '{"query":"q","role":"ann"}',
        "blocks": None,
        "token": "raw",
        "request": REQUEST,
        "reservation": None,
    }
    return given | changes


def raw(book: Ledger, role: str) -> Any:
    """A session of a role that asks, which may say to the server whatever it likes."""
    import psycopg

    with administrator(book) as admin:
        dsn = admin.info.dsn
        info = psycopg.conninfo.conninfo_to_dict(dsn)
    info |= {"user": role, "password": PASSWORD}
    return psycopg.connect(psycopg.conninfo.make_conninfo(**info), autocommit=True)


def charged(session: Any, book: Ledger, **changes: Any) -> int:
    """The entry of a charge that was said to the server itself."""
    statement = CHARGE.replace("{s}", quoted(book).replace("%", "%%"))
    found: int = session.execute(statement, arguments(**changes)).fetchone()[0]
    return found

"""A ledger as dither wrote it in format 2: 10 entries of every kind, byte for byte."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from dither._postgres import quoted
from dither.ledger import Ledger
from dither.ledger._place import LedgerSchema
from dither.ledger.stores import _guards as guards
from dither.ledger.stores._functions import CALLED, HELPERS
from dither.ledger.stores._sqlite import APPLICATION
from ledger.stores import administrator

DUMP = Path(__file__).with_name("format_2.sql").read_text(encoding="utf-8")


def earlier(place: Path | LedgerSchema) -> None:
    """Put it where there is no ledger."""
    if isinstance(place, Path):
        raw = sqlite3.connect(place)
        raw.executescript(DUMP)
        raw.execute(f"PRAGMA application_id = {APPLICATION}")
        raw.execute("PRAGMA user_version = 2")
        raw.close()
        return
    # The tables of the newest format, taken back to what they were.
    with Ledger.open(place) as book, administrator(book) as to:
        schema = quoted(place.schema)
        to.execute("SET session_replication_role = replica")
        for function in reversed(["next_state", *HELPERS, *CALLED]):
            to.execute(f"DROP FUNCTION {function} CASCADE")
        to.execute("DROP TABLE states, caps, askers")
        for table in ("entries", "touches", "head"):
            to.execute(f"DELETE FROM {table}")
        for column in ("blocks", "signature"):
            to.execute(f"ALTER TABLE entries DROP COLUMN {column}")
        to.execute("DROP INDEX IF EXISTS owners, requests")
        to.execute("UPDATE ledger SET format = 2")
        for name, body in guards._bodies(place.schema, guards.EARLIER_FUNCTIONS).items():
            to.execute(
                f"CREATE OR REPLACE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql "
                f"SET search_path = pg_catalog AS $dither${body}$dither$".replace("%", "%%")
            )
        for line in re.findall(r"^INSERT INTO .*;$", DUMP, re.MULTILINE):
            text = line.replace("%", "%%")
            if '"touches"' in text:
                text = re.sub(r",([01])\);$", lambda m: f",{m[1] == '1'});", text)
            to.execute(text)

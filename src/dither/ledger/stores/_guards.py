"""What a schema of PostgreSQL holds a ledger with: tables, keys and triggers, and their check."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import Column, Connection, Integer, Table, select, text

from dither._postgres import quoted
from dither.errors import LedgerCorruptError
from dither.ledger._entries import FIRST
from dither.ledger._place import LedgerSchema
from dither.ledger.stores._askers import (
    askers,
    caps,
    fault_of_functions,
    in_dollars,
    keep_caps,
    make_functions,
)
from dither.ledger.stores._store import (
    FORMAT,
    entries,
    format_of,
    head,
    metadata,
    states,
)

__all__ = ["APPEND_ONLY", "RESTORE", "fault", "has_tables", "ledger", "make", "upgrade"]

RESTORE = "restore it from a backup"

ledger = Table("ledger", metadata, Column("format", Integer, nullable=False))
"""One row; what the header of a file says there."""

for _index in entries.indexes:
    _index.dialect_options["postgresql"]["where"] = _index.dialect_options["sqlite"]["where"]

APPEND_ONLY = "DTH01"
"""The SQLSTATE of what the triggers raise."""

_REFUSED = f"RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = '{APPEND_ONLY}';"

# Functions that the triggers call, by name; {schema} is quoted. Those of format 2.
EARLIER_FUNCTIONS = {
    "refuse": f"BEGIN {_REFUSED} END",
    "next_entry": (
        "BEGIN IF NOT EXISTS (SELECT FROM {schema}.head AS h WHERE h.id = 1 "
        "AND h.count = NEW.number AND h.hash = NEW.previous) "
        f"THEN {_REFUSED} END IF; RETURN NEW; END"
    ),
    "next_touch": (
        "BEGIN IF NOT EXISTS (SELECT FROM {schema}.head AS h WHERE h.id = 1 "
        "AND h.count = NEW.entry) "
        f"THEN {_REFUSED} END IF; RETURN NEW; END"
    ),
    "next_head": (
        "BEGIN IF NEW.id IS DISTINCT FROM 1 OR NEW.count IS DISTINCT FROM OLD.count + 1 "
        "OR NOT EXISTS (SELECT FROM {schema}.entries AS e "
        "WHERE e.number = OLD.count AND e.hash = NEW.hash) "
        f"THEN {_REFUSED} END IF; RETURN NEW; END"
    ),
}

# A state changes with the entry that is being written, which touches the account and holds its
# hash; and no entry is the last that holds the hash of another state than what is there.
# Whatever was granted: entries come from the owner, or from functions that run as the owner.
FUNCTIONS = EARLIER_FUNCTIONS | {
    "next_entry": (
        "BEGIN IF NOT EXISTS (SELECT FROM {schema}.head AS h WHERE h.id = 1 "
        "AND h.count = NEW.number AND h.hash = NEW.previous) OR NOT pg_has_role((SELECT c.relowner "
        "FROM pg_catalog.pg_class AS c WHERE c.oid = TG_RELID), 'USAGE') "
        f"THEN {_REFUSED} END IF; RETURN NEW; END"
    ),
    "next_state": (
        "BEGIN IF TG_OP = 'UPDATE' AND NEW.account IS DISTINCT FROM OLD.account "
        "OR NOT EXISTS (SELECT FROM {schema}.head AS h "
        "JOIN {schema}.entries AS e ON e.number = h.count "
        "JOIN {schema}.touches AS t ON t.entry = h.count AND t.account = NEW.account "
        "WHERE h.id = 1 AND h.count = NEW.entry "
        "AND e.blocks::jsonb -> 'states' ->> NEW.account "
        "= encode(sha256(convert_to(NEW.text, 'UTF8')), 'hex')) "
        f"THEN {_REFUSED} END IF; RETURN NEW; END"
    ),
    "next_head": (
        "BEGIN IF NEW.id IS DISTINCT FROM 1 OR NEW.count IS DISTINCT FROM OLD.count + 1 "
        "OR NOT EXISTS (SELECT FROM {schema}.entries AS e "
        "WHERE e.number = OLD.count AND e.hash = NEW.hash) "
        "OR EXISTS (SELECT FROM {schema}.entries AS e "
        "CROSS JOIN LATERAL jsonb_object_keys(e.blocks::jsonb -> 'states') AS k(account) "
        "WHERE e.number = OLD.count AND e.blocks IS NOT NULL AND NOT EXISTS (SELECT "
        "FROM {schema}.states AS s WHERE s.account = k.account AND s.entry = e.number)) "
        f"THEN {_REFUSED} END IF; RETURN NEW; END"
    ),
}

# By table: events and functions; the whole statement is refused, or each row looked at.
_REFUSE = ("STATEMENT", "refuse")
EARLIER_TRIGGERS = {
    ("entries", "INSERT"): ("ROW", "next_entry"),
    ("entries", "UPDATE OR DELETE OR TRUNCATE"): _REFUSE,
    ("touches", "INSERT"): ("ROW", "next_touch"),
    ("touches", "UPDATE OR DELETE OR TRUNCATE"): _REFUSE,
    ("head", "UPDATE"): ("ROW", "next_head"),
    ("head", "INSERT OR DELETE OR TRUNCATE"): _REFUSE,
    ("ledger", "INSERT OR UPDATE OR DELETE OR TRUNCATE"): _REFUSE,
}
TRIGGERS = EARLIER_TRIGGERS | {
    ("states", "INSERT OR UPDATE"): ("ROW", "next_state"),
    ("states", "DELETE OR TRUNCATE"): _REFUSE,
    ("caps", "UPDATE OR DELETE OR TRUNCATE"): _REFUSE,
}
_BITS = {"ROW": 1, "BEFORE": 2, "INSERT": 4, "DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}

# What `fault` holds against what was made: nothing else may guard the tables, or take from them.
_GUARDS = text("""
SELECT c.relname, t.tgtype, p.proname, p.prosrc, t.tgenabled, l.lanname, p.proconfig,
       t.tgqual IS NULL AND t.tgattr = '' AND p.pronamespace = c.relnamespace AS plain
FROM pg_trigger AS t
JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_language AS l ON l.oid = p.prolang
WHERE n.nspname = :schema AND NOT t.tgisinternal
""")
_TABLES = text("""
SELECT c.relname, c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relhasrules
       AND NOT c.relrowsecurity AND NOT c.relispartition
       AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE c.oid IN (i.inhparent, i.inhrelid))
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname = ANY(:names)
""")
_KEYS = text("""
SELECT c.relname, k.contype, array_to_string(ARRAY(
    SELECT a.attname FROM unnest(k.conkey) WITH ORDINALITY AS at(attnum, place)
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = at.attnum ORDER BY place), ' ')
FROM pg_constraint AS k
JOIN pg_class AS c ON c.oid = k.conrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND k.contype IN ('p', 'u') AND k.convalidated AND NOT k.condeferrable
""")
EARLIER_KEYS = {
    ("entries", "p", "number"),
    ("entries", "u", "token"),
    ("entries", "u", "answers"),
    ("touches", "p", "account entry"),
    ("head", "p", "id"),
}
KEYS = EARLIER_KEYS | {
    ("states", "p", "account"),
    ("caps", "p", "epsilon delta"),
    ("askers", "p", "role quota"),
}
EARLIER_NAMES = ["entries", "head", "ledger", "touches"]
NAMES = [*EARLIER_NAMES, "states", "caps", "askers"]


def has_tables(connection: Connection, place: LedgerSchema) -> bool:
    """Whether the tables of a ledger are there: all, or none.

    Raises
    ------
    LedgerCorruptError
        Some are.
    """
    rows = connection.execute(_TABLES, {"schema": place.schema, "names": NAMES})
    found = {row[0] for row in rows}
    if found and not found >= set(EARLIER_NAMES):
        raise LedgerCorruptError(
            f"{place} has some tables that are called as a ledger's, and not all of them: "
            f"{RESTORE}, or name another schema"
        )
    return bool(found)


def make(connection: Connection, schema: str) -> None:
    """Make all of it, the schema too where it is not there, inside the running transaction."""
    of = quoted(schema)
    there = text("SELECT FROM pg_namespace WHERE nspname = :schema")
    if connection.execute(there, {"schema": schema}).first() is None:
        _run(connection, f"CREATE SCHEMA {of}")
    metadata.create_all(connection, checkfirst=False)
    connection.execute(ledger.insert().values(format=FORMAT))
    connection.execute(head.insert().values(id=1, count=0, hash=FIRST))
    _guard(connection, schema, FUNCTIONS, TRIGGERS)


def upgrade(connection: Connection, schema: str) -> None:
    """Bring the tables of format 2 to the newest, inside the running transaction."""
    of = quoted(schema)
    for column in ("blocks", "signature"):
        _run(connection, f'ALTER TABLE {of}.entries ADD COLUMN {column} text COLLATE "C"')
    for index in entries.indexes:
        index.create(connection)
    for table in (states, caps, askers):
        table.create(connection)
    # The version is guarded as well; nobody else sees the table before the transaction ends.
    _run(connection, f"ALTER TABLE {of}.ledger DISABLE TRIGGER USER")
    connection.execute(ledger.update().values(format=FORMAT))
    _run(connection, f"ALTER TABLE {of}.ledger ENABLE TRIGGER USER")
    triggers = {key: held for key, held in TRIGGERS.items() if key not in EARLIER_TRIGGERS}
    _guard(connection, schema, FUNCTIONS, triggers)
    held = select(entries.c["budget"]).where(entries.c["budget"].is_not(None)).distinct()
    for budget in connection.execute(held).scalars():
        keep_caps(connection, json.loads(budget))


def _guard(
    connection: Connection,
    schema: str,
    functions: Mapping[str, str],
    triggers: Mapping[tuple[str, str], tuple[str, str]],
) -> None:
    of = quoted(schema)
    for name, body in _bodies(schema, functions).items():
        _run(
            connection,
            f"CREATE OR REPLACE FUNCTION {of}.{name}() RETURNS trigger LANGUAGE plpgsql "
            f"SET search_path = pg_catalog, pg_temp AS {in_dollars(body)}",
        )
    for (table, events), (row, name) in triggers.items():
        number = list(TRIGGERS).index((table, events))
        _run(
            connection,
            f"CREATE TRIGGER guard_{number} BEFORE {events} ON {of}.{table} "
            f"FOR EACH {row} EXECUTE FUNCTION {of}.{name}()",
        )
    make_functions(connection, of)


def _run(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement.replace("%", "%%"))


def _bodies(schema: str, functions: Mapping[str, str] = FUNCTIONS) -> Mapping[str, str]:
    of = quoted(schema)
    return {name: body.replace("{schema}", of) for name, body in functions.items()}


def _kind(row: str, events: str) -> int:
    """How PostgreSQL writes when a trigger fires: ``pg_trigger.tgtype``."""
    level = _BITS["ROW"] if row == "ROW" else 0
    return level + _BITS["BEFORE"] + sum(_BITS[name] for name in events.split(" OR "))


def fault(connection: Connection, schema: str) -> str | None:
    """Whether tables, keys and triggers are as they were made, and nothing stands between."""
    at = {"schema": schema}
    newest = format_of(connection) == FORMAT
    names = NAMES if newest else EARLIER_NAMES
    tables = {row[0]: row[1] for row in connection.execute(_TABLES, {**at, "names": NAMES})}
    if tables != dict.fromkeys(names, True):
        return "its tables were replaced, or rules, policies or other tables put over them"
    keys = {tuple(row) for row in connection.execute(_KEYS, at)}
    if not keys >= (KEYS if newest else EARLIER_KEYS):
        return "the keys that let in each number and each token once were dropped"
    bodies = _bodies(schema, FUNCTIONS if newest else EARLIER_FUNCTIONS)
    triggers = TRIGGERS if newest else EARLIER_TRIGGERS
    expected = sorted(
        (table, _kind(row, events), name, bodies[name], True)
        for (table, events), (row, name) in triggers.items()
    )
    path = ["search_path=pg_catalog, pg_temp"]
    found = sorted(
        (
            *row[:4],
            row.tgenabled in ("O", "A")
            and row.lanname == "plpgsql"
            and row.proconfig == (path if newest else ["search_path=pg_catalog"])
            and row.plain,
        )
        for row in connection.execute(_GUARDS, at)
    )
    if found != expected:
        return "the triggers that keep it append-only were changed"
    return fault_of_functions(connection, schema) if newest else None

"""What a table of a PostgreSQL database is, from its catalogue alone.

Read are ordinary, partitioned and inherited tables, materialized views as the rows that they hold,
and views of which each row is made of one row of a table (``views``). Refused are foreign tables,
also as parts of others: what another server or a file holds may fail on a value, and lies outside
of the transaction. So are tables whose rows are hidden from the role by row-level security: what
is hidden could depend on other people's rows, and an answer about a part would pass for one about
all.

Of columns those are left out that the role may not read, and those whose type is not read. What a
column is that the role may not read, and whether it changes, decides nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dither._postgres import quoted
from dither.engines.postgres.connection import Connection, Failure
from dither.engines.postgres.dialect import POSTGRES, READ_AS
from dither.engines.postgres.views import rowwise
from dither.engines.writer.rows import Stored
from dither.errors import PolicyError, nearest
from dither.plan.text import unwritable

__all__ = ["CatalogueTable", "find", "resolve"]

CHANGED = (
    "it is gone, or is not what it was when it was opened: its columns, their types, its view or "
    "the role's rights; open the policy anew"
)

RESOLVED = """
SELECT n.nspname::text, c.relname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = COALESCE(
    to_regclass(quote_ident($1)),
    to_regclass((SELECT string_agg(quote_ident(p), '.') FROM unnest(string_to_array($1, '.')) p))
)
"""
IN_SQL = """
SELECT n.nspname::text, c.relname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass($1)
"""

AS_LISTED = """
SELECT n.nspname::text, c.relname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' || c.relname = $1 AND c.relkind IN ('r', 'p', 'v', 'm')
"""

RELATION = """
SELECT c.oid::bigint, c.relkind::text, row_security_active(c.oid), pg_get_viewdef(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
"""

COLUMNS = """
WITH RECURSIVE typed AS (
    SELECT a.attnum, t.oid, t.typtype, t.typbasetype, a.atttypmod AS modifier, FALSE AS domain
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
    SELECT d.attnum, t.oid, t.typtype, t.typbasetype,
           CASE WHEN b.typtypmod >= 0 THEN b.typtypmod ELSE d.modifier END, TRUE
    FROM typed d JOIN pg_type b ON b.oid = d.oid JOIN pg_type t ON t.oid = d.typbasetype
    WHERE d.typtype = 'd'
)
SELECT a.attname::text, t.typtype::text, format_type(t.oid, t.modifier), y.typname::text,
       n.nspname::text, COALESCE(l.collisdeterministic, TRUE), a.attgenerated::text,
       has_column_privilege($1::bigint::oid, a.attnum, 'SELECT'), a.atttypid::bigint
FROM pg_attribute a
JOIN typed t ON t.attnum = a.attnum AND t.typtype <> 'd'
JOIN pg_type y ON y.oid = t.oid JOIN pg_namespace n ON n.oid = y.typnamespace
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

LABELS = """
SELECT a.attname::text, array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
FROM pg_attribute a JOIN pg_enum e ON e.enumtypid = a.atttypid
WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
GROUP BY a.attname
"""

PARTS = """
WITH RECURSIVE part AS (
    SELECT $1::bigint::oid AS oid
  UNION
    SELECT below.oid FROM part CROSS JOIN LATERAL (
        SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = part.oid
      UNION ALL
        SELECT d.refobjid FROM pg_rewrite r
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
            AND d.refclassid = 'pg_class'::regclass
        WHERE r.ev_class = part.oid
    ) below(oid)
)
SELECT part.oid::bigint, c.relkind::text FROM part JOIN pg_class c ON c.oid = part.oid
"""

NAMES = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1 LIMIT 1000
"""

ABOVE = """
WITH RECURSIVE up AS (
    SELECT t.oid AS part, t.oid AS oid FROM unnest($1::bigint[]) AS t(oid)
  UNION
    SELECT up.part, i.inhparent::bigint FROM up JOIN pg_inherits i ON i.inhrelid = up.oid::oid
)
SELECT up.part, n.nspname || '.' || c.relname,
       COALESCE(array_agg(up.oid) FILTER (WHERE up.oid <> up.part), '{}')
FROM up JOIN pg_class c ON c.oid = up.part::oid JOIN pg_namespace n ON n.oid = c.relnamespace
GROUP BY 1, 2 ORDER BY 2
"""

PLACE = "SELECT oid::bigint FROM pg_database WHERE datname = current_database()"
SYSTEM = "SELECT system_identifier FROM pg_control_system()"
STARTED = "SELECT extract(epoch FROM pg_postmaster_start_time())::text"

STAMP_DIGITS = re.compile(r"^timestamp\(\d+\) ")
KINDS = {"r": "table", "p": "table", "m": "materialized view", "v": "view"}


@dataclass(frozen=True, slots=True)
class CatalogueTable:
    """A table as its catalogue has it.

    Parameters
    ----------
    stored : Stored
        What the writer is told. Its ``layout`` is all of the catalogue that must stay as it is.
    rows : str
        The query that the view of ``stored`` stands for.
    none : str
        The same columns without any row, and without the table.
    places : frozenset
        The tables that its rows are in.
    sources : mapping of str to str
        What a ledger knows them by (``engines.identity``).
    """

    stored: Stored
    rows: str
    none: str
    places: frozenset[Hashable] = field(default=frozenset())
    sources: Mapping[str, str] = field(default_factory=dict)


def resolve(connection: Connection, name: str, shown: str) -> tuple[str, str]:
    """Schema and name of a table that a policy names, as they are or in the words of SQL.

    Raises
    ------
    PolicyError
        Where the role sees no such table; the nearest is offered.
    """
    # The first fails where the name has more than one dot, the second where it is none in SQL.
    found = connection.attempt(RESOLVED, [name]) or connection.attempt(IN_SQL, [name])
    found = found or connection.rows(AS_LISTED, [name])
    if len(found) > 1:
        raise PolicyError(f"{shown}: {name!r} may be several tables; quote its parts as SQL does")
    if not found:
        known = [row[0] for row in connection.rows(NAMES)]
        raise PolicyError(f"{shown}: no table {name!r} is seen by its role" + nearest(name, known))
    ((schema, table),) = found
    return schema, table


def find(connection: Connection, place: tuple[str, str], number: int, shown: str) -> CatalogueTable:
    """What has a name now; asked within a transaction.

    Parameters
    ----------
    connection : Connection
    place : tuple of str
        Its schema and name.
    number : int
        Gives the writer's name for its rows.
    shown : str
        How messages call the source.

    Raises
    ------
    PolicyError
        Where it is not read, or the role may not read it.
    Failure
        Where the server fails.
    """
    found = connection.rows(RELATION, list(place))
    if not found:
        raise PolicyError(f"{shown}: {CHANGED}")
    ((oid, kind, hidden, definition),) = found
    parts = connection.rows(PARTS, [oid])
    if any(of_kind == "f" for _, of_kind in parts):
        raise PolicyError(
            f"{shown}: it is a foreign table, or has one as a part: its rows are on another server "
            "or in a file, may fail as they are read, and change within a question; name the "
            "table where it is, or copy it"
        )
    if kind not in KINDS:
        raise PolicyError(f"{shown}: it is not a table or a view")
    if hidden:
        raise PolicyError(
            f"{shown}: row-level security hides rows of it from its role, and which they are may "
            "depend on other people's rows; name a role with BYPASSRLS, or a table without"
        )
    computed, filtered = frozenset[str](), False
    if kind == "v":
        computed, filtered = rowwise(connection, oid, shown)
    columns = connection.rows(COLUMNS, [oid])
    types: dict[str, str | None] = {}
    unread: dict[str, str] = {}
    goals: dict[str, str] = {}
    for position, column in enumerate(columns, start=1):
        title = column[0]
        fault = unwritable(title)
        if fault is not None and not column[7]:
            continue
        if fault is not None:
            raise PolicyError(f"{shown}: the name of its column {position} {fault}")
        types[title], why = _type_of(column)
        if why is not None:
            unread[title] = why
        elif (stored := types[title]) is not None:
            element = POSTGRES.element_of(stored)
            base = (element or stored).split("(")[0]
            goals[title] = READ_AS[base] + "[]" * bool(element) if base in READ_AS else stored
    source = f"{quoted(place[0])}.{quoted(place[1])}"
    read = [f"CAST({quoted(n)} AS {goal}) AS {quoted(n)}" for n, goal in goals.items()]
    nothing = [f"CAST(NULL AS {goal}) AS {quoted(n)}" for n, goal in goals.items()]
    rows, none = (", ".join(listed) or 'TRUE AS "none"' for listed in (read, nothing))
    _probe(connection, f"SELECT {rows} FROM {source} WHERE FALSE", shown, kind)
    described = Stored(
        view=f"source_{number}",
        types=types,
        unread=unread,
        computed=computed,
        complete=not filtered,
        layout=(kind, definition, *(tuple(column) for column in columns if column[7])),
        empty=f"empty_{number}",
        labels={
            name: tuple(labels) for name, labels in connection.rows(LABELS, [oid]) if name in goals
        },
    )
    tables = [part for part, of_kind in parts if of_kind not in ("v", "i", "S", "t")]
    return CatalogueTable(
        described,
        f"SELECT {rows} FROM {source}",
        f"SELECT {none} WHERE FALSE",
        _places(connection, tables),
        _sources(connection, tables),
    )


def _probe(connection: Connection, probe: str, shown: str, kind: str) -> None:
    """See that the role may read the table, without reading a row; it stays locked for readers."""
    failure = None
    try:
        connection.rows(probe)
    except Failure as found:
        failure = found
    if failure is None:
        return
    words = str(failure)
    if failure.code == "42501":
        words = f"its role may not SELECT from this {KINDS[kind]}"
        if kind == "v":
            words += ", or row-level security hides rows of the table below it"
    raise PolicyError(f"{shown}: {words}")


def _places(connection: Connection, tables: list[int]) -> frozenset[Hashable]:
    """The same for every name of a table, and every way to its server."""
    ((database,),) = connection.rows(PLACE)
    servers = [found[0][0] for sql in (SYSTEM, STARTED) if (found := connection.attempt(sql))]
    return frozenset((server, database, table) for server in servers for table in tables)


def _sources(connection: Connection, tables: list[int]) -> dict[str, str]:
    """The tables that rows lie in, but for parts of others of them: by name and by number."""
    ((database,),) = connection.rows(PLACE)
    servers = connection.attempt(SYSTEM) or [("unknown",)]
    found = connection.rows(ABOVE, [tables])
    return {
        f"postgres:{servers[0][0]}/{database}/{name}": "<".join(map(str, (oid, *above)))
        for oid, name, above in found
        if set(above).isdisjoint(tables)
    }


def _type_of(column: tuple[Any, ...]) -> tuple[str | None, str | None]:
    """The type as the dialect knows it, or why it is not read."""
    _, form, shown, base, schema, deterministic, generated, allowed, _ = column
    if not allowed:
        return None, "its role may not SELECT it; grant that, or leave the column out"
    if generated == "v":
        return None, "it is computed as it is read, which may fail on a value; store it"
    if form == "e":
        return "enum", None
    if base == "citext" and schema != "pg_catalog":
        return "citext", None
    shown = STAMP_DIGITS.sub("timestamp ", shown)
    if schema == "pg_catalog" and POSTGRES.element_of(shown):
        return shown, None
    if schema != "pg_catalog" or POSTGRES.kind_of_type(shown) is None:
        return None, None
    if not deterministic:
        return "text that is compared without case or accents", None
    return shown, None

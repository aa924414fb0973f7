"""Views of a PostgreSQL database, of which only what takes each row by itself is read.

A view may hide what no sensitivity accounts for: with a join, a window or a LIMIT one person's row
decides which rows of others are there, and with a cast or a function one value fails a whole
release. So a view is read only where its definition, as the server writes it, shows that each row
is made of one row of one table (or of such a view) by what can fail on no value: plain columns,
comparisons of a column with constants or columns of its own type, truth of these, ``CASE``,
``COALESCE``, and columns as text.

The view itself is then what is read, so that its owner's rights hold; its definition, and those of
the views below it, may not change while a policy is open. A security barrier changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from dither.engines.postgres.connection import Connection
from dither.errors import PolicyError

__all__ = ["rowwise"]

DEEPEST = 16
"""Views of views, at most."""

DEFINITION = """
SELECT pg_get_viewdef(oid), ARRAY(
    SELECT attname::text FROM pg_attribute WHERE attrelid = oid AND attnum > 0 ORDER BY attnum
) FROM pg_class WHERE oid = $1::bigint::oid
"""
BELOW = """
SELECT c.oid::bigint, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
"""
TYPES = """
SELECT attname::text, format_type(atttypid, -1) FROM pg_attribute
WHERE attrelid = $1::bigint::oid AND attnum > 0 AND NOT attisdropped
"""

FAMILIES = (
    {"smallint", "integer", "bigint"},
    {"text", "character varying"},
)
COMPARED = {
    *("smallint", "integer", "bigint", "numeric", "real", "double precision", "boolean"),
    *("text", "character varying", "character", "date", "uuid"),
    *("timestamp without time zone", "timestamp with time zone"),
}
"""Types whose comparisons fail on no value, and which are read as text without fail."""

SPELLINGS = {
    "INT": "integer", "BIGINT": "bigint", "SMALLINT": "smallint", "DECIMAL": "numeric",
    "FLOAT": "real", "DOUBLE": "double precision", "BOOLEAN": "boolean", "TEXT": "text",
    "VARCHAR": "character varying", "CHAR": "character", "BPCHAR": "character", "DATE": "date",
    "UUID": "uuid",
    "TIMESTAMP": "timestamp without time zone", "TIMESTAMPTZ": "timestamp with time zone",
}  # fmt: skip


def rowwise(
    connection: Connection, oid: int, shown: str, depth: int = 0
) -> tuple[frozenset[str], bool]:
    """The columns of a view that are computed, and whether it may leave rows out.

    Raises
    ------
    PolicyError
        Where it does not take each row by itself: says which part is in the way, and what to do.
    """

    def refusal(why: str) -> PolicyError:
        return PolicyError(
            f"{shown}: the view cannot be protected: {why}. A view is read only where each of its "
            "rows is made of one row of one table, by plain columns and conditions that cannot "
            "fail; name the table itself, and put conditions and expressions into the query"
        )

    if depth >= DEEPEST:
        raise refusal(f"it reads through more than {DEEPEST} other views")
    ((text, titles),) = connection.rows(DEFINITION, [oid])
    try:
        tree = sqlglot.parse_one(text, read="postgres")
    except Exception:
        tree = None
    if not isinstance(tree, exp.Select):
        raise refusal("it is not one plain SELECT")
    for part, value in tree.args.items():
        if value and part not in ("expressions", "from", "from_", "where"):
            raise refusal(f"it has {part.upper().rstrip('_')}")
    clause = tree.args.get("from") or tree.args.get("from_")
    table = clause.this if isinstance(clause, exp.From) else None
    if (
        not isinstance(table, exp.Table)
        or not isinstance(table.this, exp.Identifier)
        or any(v for p, v in table.args.items() if v and p not in ("this", "db", "alias"))
    ):
        raise refusal("it does not read one table, but a join, a query or a function")
    # Under the settings of a transaction every name is written with its schema.
    found = connection.rows(BELOW, [table.db or "pg_catalog", table.name])
    if len(found) != 1 or found[0][1] not in "rpvm":
        raise refusal("what it reads is not a table of its database")
    ((below, kind),) = found
    computed, filtered = frozenset[str](), False
    if kind == "v":
        computed, filtered = rowwise(connection, below, shown, depth + 1)
    types = dict(connection.rows(TYPES, [below]))
    made = set()
    try:
        for title, node in zip(titles, tree.expressions, strict=True):
            column = _column(node.unalias())
            if column is None:
                _type_of(node.unalias(), types)
            if column is None or column in computed:
                made.add(title)
        where = tree.args.get("where")
        if where is not None:
            _type_of(where.this, types)
    except _NotTotal as found_part:
        failing = str(found_part)
    except (RecursionError, ValueError):
        failing = "it is nested too deeply, or not understood"
    else:
        return frozenset(made), filtered or where is not None
    raise refusal(failing)


class _NotTotal(Exception):
    """An expression that is not known to fail on no value."""


def _column(node: exp.Expression) -> str | None:
    return node.name if isinstance(node, exp.Column) else None


def _type_of(node: exp.Expression, types: Mapping[str, str]) -> str | None:
    """The type of an expression that cannot fail; ``None`` for what has any, such as NULL."""
    match node:
        case exp.Paren():
            return _type_of(node.this, types)
        case exp.Column():
            return types.get(node.name, "unknown")
        case exp.Boolean():
            return "boolean"
        case exp.Null():
            return None
        case exp.Neg() if isinstance(node.this, exp.Literal):
            return _type_of(node.this, types)
        case exp.Literal():
            return "text" if node.is_string else "integer" if node.is_int else "numeric"
        case exp.Cast():
            return _cast(node, types)
        case exp.And() | exp.Or() | exp.Not() | exp.Is():
            for part in (node.this, node.args.get("expression")):
                if part is not None:
                    _type_of(part, types)
            return "boolean"
        case exp.Case() if node.this is None:
            branches = node.args["ifs"]
            for branch in branches:
                _type_of(branch.this, types)
            values = [branch.args["true"] for branch in branches]
            default = node.args.get("default")
            return _alike([*values, *([default] if default is not None else [])], types)
        case exp.Coalesce():
            return _alike([node.this, *node.expressions], types)
        case exp.Between():
            _compared([node.this, node.args["low"], node.args["high"]], types)
            return "boolean"
        case exp.In() if node.expressions:
            _compared([node.this, *node.expressions], types)
            return "boolean"
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            right = node.expression
            if isinstance(right, exp.Any | exp.All):
                listed = right.this.unnest()
                if isinstance(listed, exp.Cast):
                    listed = listed.this.unnest()
                if not isinstance(listed, exp.Array):
                    raise _NotTotal("it compares with a query or a column that is a list")
                _compared([node.this, *listed.expressions], types)
            else:
                _compared([node.this, right], types)
            return "boolean"
    raise _NotTotal(f"it has {type(node).__name__.upper()}")


def _cast(node: exp.Cast, types: Mapping[str, str]) -> str:
    goal = SPELLINGS.get(node.to.this.name, "unknown")
    inner = node.this.unnest()
    if isinstance(inner, exp.Literal | exp.Null) or (
        isinstance(inner, exp.Neg) and isinstance(inner.this, exp.Literal)
    ):
        # The server has seen this constant as its type already.
        return goal
    own = _type_of(inner, types)
    words = ("text", "character varying")
    if goal in words and not node.to.expressions and (own in COMPARED or own is None):
        return goal
    raise _NotTotal(f"it has a cast to {goal}")


def _alike(nodes: list[exp.Expression], types: Mapping[str, str]) -> str | None:
    """The one type of several expressions."""
    found = {kind for node in nodes if (kind := _type_of(node, types)) is not None}
    if len(found) <= 1:
        return next(iter(found), None)
    for family in FAMILIES:
        if found <= family:
            return max(found)
    raise _NotTotal("it brings two types together")


def _compared(nodes: list[exp.Expression], types: Mapping[str, str]) -> None:
    kind = _alike(nodes, types)
    if kind is not None and kind not in COMPARED:
        raise _NotTotal("it compares values of a type that is not read")

"""A whole query, or one expression: SQL text to plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from sqlglot import exp

from dither._depth import deep
from dither.errors import QueryError, UnknownNameError, UnsupportedError, nearest
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.aggregates import Key, Output, Query
from dither.plan.relations import Relation
from dither.plan.released import Constant, Grouping, ReleasedKey
from dither.plan.schema import Schema
from dither.plan.text import Words
from dither.sql.aggregates import quantiles
from dither.sql.allow_list import plain, refuse, take
from dither.sql.chosen import Item, grouping_nodes, item, ordinal
from dither.sql.expressions import at
from dither.sql.names import (
    Names,
    default_key_name,
    default_name,
    find,
    free_name,
    key_expression,
    suffix,
)
from dither.sql.options import limited
from dither.sql.parse import Reading, read_condition, read_statement
from dither.sql.released import Columns, ReleasedReader, as_key, bare_name, is_column, is_flag
from dither.sql.rows.derived import named_query, with_queries
from dither.sql.rows.membership import kept
from dither.sql.rows.sources import Tables, relation

__all__ = [
    "limit_of",
    "offset_of",
    "order_of",
    "parse_expression",
    "parse_order",
    "parse_query",
    "parse_released",
    "parse_where",
    "parse_written",
]


def parse_expression(text: str, names: Names) -> ex.Expression:
    """Read one expression over the columns of a relation.

    Parameters
    ----------
    text : str
        SQL, such as ``"age >= 18"`` or ``"cost / 100"``.
    names : Names
        The columns it may name.

    Returns
    -------
    Expression

    Raises
    ------
    UnknownNameError
        For an unknown column or function; the nearest is offered.
    UnsupportedError
        For anything in the text that is not offered, by name.
    QueryError
        Where the text cannot be read.

    Examples
    --------
    >>> from dither.plan.schema import Kind
    >>> from dither.plan.relations import Scan
    >>> from dither.plan.schema import ColumnFacts, Table
    >>> visits = Table("visits", {"age": ColumnFacts("age", Kind.INTEGER)})
    >>> parse_expression("age >= 18", Names(Scan("visits", "visits"), Schema({"visits": visits})))
    Compare(op='>=', left=Column(table='visits', name='age'), right=Literal(value=18))
    """
    return parse_written(text, names)[0]


@deep()
def parse_written(text: str, names: Names) -> tuple[ex.Expression, Words]:
    """``parse_expression``, and how each part of the expression was written."""
    reading = read_condition(text)
    found = at("the expression", names).read(reading.tree)
    reading.check()
    return found, _words(reading, names)


@deep()
def parse_where(text: str, names: Names) -> tuple[Relation, Words]:
    """The rows for which a condition is true, and how each part of it was written."""
    reading = read_condition(text)
    rows = kept(names.relation, reading.tree, at("the expression", names))
    reading.check()
    return rows, _words(reading, names)


def _words(reading: Reading, names: Names) -> Words:
    origins = names.origins

    def words(node: ex.Expression) -> str | None:
        origin = origins.get(node)
        return reading.words(origin) if isinstance(origin, exp.Expr) else None

    return words


@deep()
def parse_query(text: str, schema: Schema) -> Query:
    """Read a query; nothing in it is passed through unread.

    Parameters
    ----------
    text : str
        One SELECT, in the SQL of DuckDB.
    schema : Schema
        The tables it may name.

    Returns
    -------
    Query

    Raises
    ------
    UnknownNameError
        For an unknown table, column or function; the nearest is offered.
    UnsupportedError
        For anything in the text that is not offered, by name.
    QueryError
        Where the text cannot be read, or asks for raw rows.

    Examples
    --------
    >>> from dither.plan.schema import Kind
    >>> from dither.plan.schema import ColumnFacts, Table
    >>> visits = Table("visits", {"region": ColumnFacts("region", Kind.TEXT)})
    >>> query = parse_query(
    ...     "SELECT region, COUNT(*) AS n FROM visits GROUP BY region", Schema({"visits": visits})
    ... )
    >>> query.outputs
    (Output(name='n', aggregate=Count(), weight=Fraction(1, 1)),)
    """
    reading = read_statement(text)
    found = query(reading.tree, schema, reading)
    reading.check()
    return limited(found, reading.options, schema) if reading.options else found


def query(tree: exp.Expr, schema: Schema, reading: Reading | None = None) -> Query:
    """What ``parse_query`` makes of sqlglot's tree."""
    if not isinstance(tree, exp.Select):
        refuse(tree, "the query")
    items, source, joins, where, group, having, order, limit, offset, before = take(
        tree,
        "the query",
        *("expressions", "from", "joins", "where", "group", "having", "order", "limit", "offset"),
        "with",
    )
    if not items:
        raise QueryError("SELECT names nothing; name keys and aggregates, such as COUNT(*)")
    tables = Tables(schema, named_query)
    if before is not None:
        tables = with_queries(before, tables)
    rows = relation(source, joins or (), tables)
    names = tables.names(rows)
    if where is not None:
        (condition,) = take(where, "WHERE", "this")
        rows = kept(rows, condition, at("WHERE", names))
    chosen = [item(node) for node in items]
    grouped, sets = _grouping(group, chosen, names)
    keys, outputs, columns = _outputs(chosen, grouped, names)
    flags = dict(_flags(chosen, ReleasedReader(at("SELECT", names), columns, grouped)))
    columns = {**columns, **{name: Grouping(meant) for name, meant in flags.items()}}
    chosen_by = None
    if having is not None:
        (condition,) = take(having, "HAVING", "this")
        chosen_by = ReleasedReader(at("HAVING", names), columns, grouped).read(condition)
    places = {key.expression: i for i, key in enumerate(keys)}
    return Query(
        rows,
        tuple(keys),
        tuple(outputs),
        order_of(order, columns, grouped, names),
        limit_of(limit),
        having=chosen_by,
        offset=offset_of(offset),
        sets=_by_place(sets, places),
        flags=tuple((name, tuple(places[k] for k in meant)) for name, meant in flags.items()),
        words=None if reading is None else _words(reading, names),
    )


@deep()
def parse_released(
    text: str, names: Names, columns: Columns, grouped: Sequence[ex.Expression]
) -> tuple[ag.AggregateFunction, Words]:
    """Read one released value, such as ``"100 * AVG(cost)"`` or ``"n > 100"``, and its words.

    Parameters
    ----------
    text : str
    names : Names
        The columns of the table.
    columns : mapping
        The released columns that it may name.
    grouped : sequence of Expression
        The keys.
    """
    reading = read_condition(text)
    found = ReleasedReader(at("the expression", names), columns, grouped).read(reading.tree)
    reading.check()
    return found, _words(reading, names)


@deep()
def parse_order(
    text: str, names: Names, columns: Columns, grouped: Sequence[ex.Expression]
) -> tuple[tuple[str | ag.AggregateFunction, bool], ...]:
    """Read what stands behind ORDER BY; the parameters are those of ``parse_released``."""
    reading = read_statement(f"SELECT 1 ORDER BY {text}")
    if reading.options or not isinstance(reading.tree, exp.Select):
        raise QueryError("ORDER BY: write columns of the release, such as n DESC")
    _, order = take(reading.tree, "ORDER BY", "expressions", "order")
    found = order_of(order, columns, grouped, names)
    reading.check()
    return found


def _key(node: exp.Expr, where: str, names: Names) -> ex.Expression:
    return key_expression(at(where, names).read(node), names)


def _grouping(
    group: exp.Expr | None, chosen: Sequence[Item], names: Names
) -> tuple[list[ex.Expression], list[list[ex.Expression]]]:
    """The keys, each once, and the sets of them that are grouped by, where there are several."""
    if group is None:
        return [], []
    nodes, sets = grouping_nodes(group, chosen, names)
    found = dict.fromkeys(_key(node, "GROUP BY", names) for node in nodes)
    return list(found), [[_key(n, "GROUP BY", names) for n in one] for one in sets or ()]


def _by_place(
    sets: Sequence[Sequence[ex.Expression]], places: Mapping[ex.Expression, int]
) -> tuple[tuple[int, ...], ...]:
    """Sets of keys by their places, each set once; none where no set has a key."""
    if not places:
        return ()
    return tuple(dict.fromkeys(tuple(sorted({places[k] for k in one})) for one in sets))


def _flags(
    chosen: Sequence[Item], reader: ReleasedReader
) -> Iterator[tuple[str, tuple[ex.Expression, ...]]]:
    """``GROUPING(a, b)`` in a column of its own: its name, and its keys."""
    for node, alias in chosen:
        if is_flag(node):
            found = reader.flagged(node)
            yield alias or f"grouping_{default_key_name(found[0])}", found


def _outputs(
    chosen: Sequence[Item], grouped: Sequence[ex.Expression], names: Names
) -> tuple[list[Key], list[Output], Columns]:
    """Keys, outputs, and all columns in the order of SELECT."""
    given = [name for _, name in chosen if name is not None]
    taken: dict[str, ag.AggregateFunction | ex.Expression] = {}
    keys: list[Key] = []
    outputs: list[Output] = []
    reader = ReleasedReader(at("SELECT", names), taken, grouped)
    for node, alias in chosen:
        if is_flag(node):
            continue
        if listed := quantiles(plain(node)):
            each = [reader.read(one) for one in listed]
            base = alias or default_name(each[0])
            for found in each:
                name = _name(f"{base}_{suffix(found)}", "", taken, ())
                outputs.append(Output(name, found, Fraction(1, len(each))))
                taken[name] = found
        elif reader.calculates(node):
            found = reader.read(node)
            name = _name(alias, default_name(found), taken, given)
            outputs.append(Output(name, found))
            taken[name] = found
        else:
            key = _selected_key(node, grouped, names)
            if any(key == k.expression for k in keys):
                raise QueryError("SELECT: the same key is named twice; name it once")
            name = _name(alias, default_key_name(key), taken, given)
            keys.append(Key(name, key))
            taken[name] = key
    if len(keys) < len(grouped):
        raise QueryError(
            "GROUP BY: a key is missing from SELECT, so groups could not be "
            "distinguished; add it to "
            "SELECT"
        )
    if not outputs:
        raise QueryError(
            "SELECT has no aggregate, and the keys alone would be raw values; add COUNT(*)"
        )
    return keys, outputs, taken


def _selected_key(node: exp.Expr, grouped: Sequence[ex.Expression], names: Names) -> ex.Expression:
    value = at("SELECT", names).read(node)
    if not ex.columns(value):
        raise UnsupportedError("SELECT: a constant is not offered; add it to the released frame")
    key = as_key(value, names)
    if key not in grouped:
        used = ", ".join(dict.fromkeys(repr(c.name) for c in ex.columns(value)))
        raise QueryError(
            f"SELECT: raw columns cannot be released ({used}); put the expression into GROUP BY, "
            "or into an aggregate such as AVG"
        )
    return key


def _name(alias: str | None, default: str, taken: Iterable[str], given: Sequence[str]) -> str:
    if alias is None:
        return free_name(default, [*taken, *given])
    if find(alias, taken):
        raise QueryError(f"SELECT: two columns are named {alias!r}; give one another name with AS")
    return alias


def order_of(
    order: exp.Expr | None, columns: Columns, grouped: Sequence[ex.Expression], names: Names
) -> tuple[tuple[str | ag.AggregateFunction, bool], ...]:
    """What the released frame is sorted by: names or aggregates, and whether each falls."""
    if order is None:
        return ()
    (listed,) = take(order, "ORDER BY", "expressions")
    found: list[tuple[str | ag.AggregateFunction, bool]] = []
    reader = ReleasedReader(at("ORDER BY", names), columns, grouped)
    for node in listed:
        this, falling = take(node, "ORDER BY", "this", "desc")
        found.append((_ordered(plain(this), columns, reader), bool(falling)))
    return tuple(found)


def _ordered(
    node: exp.Expr, columns: Columns, reader: ReleasedReader
) -> str | ag.AggregateFunction:
    names = reader.place.names
    if isinstance(node, exp.Literal) and not node.is_string:
        return list(columns)[ordinal(node, "ORDER BY", len(columns))]
    written = bare_name(node, "ORDER BY")
    if written is not None:
        named = find(written[0], columns, exact=written[1])
        if len(named) == 1:
            return named[0]
        if not is_column(*written, names):
            raise UnknownNameError(
                f"ORDER BY: no released column is named {written[0]!r}"
                + nearest(written[0], columns)
            )
    wanted = reader.read(node)
    if isinstance(wanted, Constant):
        raise QueryError("ORDER BY a constant: name a column of the release, or its position")
    meant = wanted.expression if isinstance(wanted, ReleasedKey) else wanted
    for column, meaning in columns.items():
        if meaning == meant:
            return column
    return wanted


def offset_of(node: exp.Expr | None) -> int:
    """How many rows of the released frame are left out before those that are kept."""
    if node is None:
        return 0
    (value,) = take(node, "OFFSET", "expression")
    return _whole(value, "OFFSET")


def limit_of(node: exp.Expr | None) -> int | None:
    """How many rows of the released frame are kept."""
    if node is None:
        return None
    if not isinstance(node, exp.Limit):
        raise UnsupportedError("FETCH FIRST is not offered; write LIMIT and a whole number")
    (value,) = take(node, "LIMIT", "expression")
    return _whole(value, "LIMIT")


def _whole(value: exp.Expr, where: str) -> int:
    text = ""
    if isinstance(value, exp.Literal) and not value.is_string:
        take(value, where, "this")
        text = str(value.this)
    if not text.isdecimal() or len(text) > 12:
        raise QueryError(f"{where} takes a whole number")
    return int(text)

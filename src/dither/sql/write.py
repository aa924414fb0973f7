"""A plan as SQL that people read: the canonical text of a query, for plans and certificates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect

from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.facts.units import column_names, is_unit
from dither.plan.relations import (
    Derived,
    Filter,
    KeyFilter,
    Named,
    NamedExpression,
    PublicJoin,
    Relation,
    Scan,
    Union,
    UnitAggregate,
    UnitJoin,
    UnitValue,
    Unnest,
    base,
    scans,
    visible,
)
from dither.plan.schema import Schema
from dither.plan.text import AND, OR, SUM, ExpressionWriter, constant
from dither.sql.options import BY_BLOCK, CONSISTENT, GROUPS, ROWS

__all__ = ["to_sql"]


def to_sql(query: ag.Query, schema: Schema) -> str:
    """The canonical SQL of a query, in the SQL of DuckDB.

    Reading it back gives the same query. What SQL cannot say is left out: the weights of outputs,
    public keys declared for this query alone, and ``discover``. That units count once is said in a
    comment; such a query is not read back.

    Parameters
    ----------
    query : Query
    schema : Schema
        Names the protected unit.

    Returns
    -------
    str

    Examples
    --------
    >>> from dither.plan.schema import Table
    >>> query = ag.Query(Scan("visits", "visits"), (), (ag.Output("n", ag.Count()),))
    >>> to_sql(query, Schema({"visits": Table("visits", {})}))
    'SELECT COUNT(*) AS n FROM visits'
    """
    writer = _writer(query.relation)
    unit = _unit(query, schema)
    chosen = [_key(key, writer) for key in query.keys]
    for name, places in query.flags:
        flagged = ", ".join(writer.text(query.keys[i].expression) for i in places)
        chosen.append(f"GROUPING({flagged}) AS {_identifier(name)}")
    chosen += [
        f"{_aggregate(o.aggregate, unit, writer)} AS {_identifier(o.name)}" for o in query.outputs
    ]
    parts = [f"SELECT {', '.join(chosen)} {_rows(query.relation, schema, writer)}"]
    if query.keys:
        bare = (isinstance(key.expression, ex.Column) for key in query.keys)
        groups = [
            writer.text(key.expression) if named else str(i)
            for i, (key, named) in enumerate(zip(query.keys, bare, strict=True), start=1)
        ]
        parts.append(f"GROUP BY {_sets(query, groups) if query.sets else ', '.join(groups)}")
    if query.having is not None:
        parts.append(f"HAVING {_aggregate(query.having, unit, writer)}")
    if query.order:
        falls = (
            f"{_identifier(x) if isinstance(x, str) else _aggregate(x, unit, writer)}"
            f"{' DESC' if down else ''}"
            for x, down in query.order
        )
        parts.append(f"ORDER BY {', '.join(falls)}")
    if query.limit is not None:
        parts.append(f"LIMIT {query.limit}")
    if query.offset:
        parts.append(f"OFFSET {query.offset}")
    limits = {GROUPS: query.max_groups, ROWS: query.max_rows}
    given = [f"{name} = {limit}" for name, limit in limits.items() if limit is not None]
    given += [f"{CONSISTENT} = TRUE"] if query.consistent else []
    given += [] if query.by_block else [f"{BY_BLOCK} = FALSE"]
    if given:
        parts.append(f"OPTIONS ({', '.join(given)})")
    if isinstance(query, ag.QueryOfUnits):
        parts.append("/* each unit counts once, its rows alike */")
    return " ".join(parts)


@lru_cache(maxsize=4096)
def _identifier(name: str) -> str:
    """A name, quoted where it has to be."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        tokens = list(Dialect.get_or_raise("duckdb").tokenize(name))
        if len(tokens) == 1 and tokens[0].token_type is TokenType.VAR:
            return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _sets(query: ag.Query, groups: Sequence[str]) -> str:
    """The sets of keys of a GROUP BY."""
    sets = ("(" + ", ".join(groups[i] for i in one) + ")" for one in query.sets)
    return f"GROUPING SETS ({', '.join(sets)})"


def _writer(relation: Relation) -> ExpressionWriter:
    """Writes what stands above a relation: columns by their table where there are several."""
    qualified = len(visible(relation)) > 1

    def column(node: ex.Column) -> str:
        name = _identifier(node.name)
        return f"{_identifier(node.table)}.{name}" if qualified else name

    return ExpressionWriter(column)


def _rows(relation: Relation, schema: Schema, writer: ExpressionWriter) -> str:
    """FROM and WHERE."""
    source, joins, predicates = _flatten(relation)
    parts = [f"FROM {_named(source, schema)}"]
    parts += [_join(join, schema, writer) for join in joins]
    plain = [x for x in predicates if isinstance(x, ex.Expression)]
    among = [x for x in predicates if isinstance(x, KeyFilter)]
    conditions = [_among(x, schema, writer) for x in among]
    if plain:
        conditions.insert(0, writer.text(_conjunction(plain), AND if among else OR))
    if conditions:
        parts.append(f"WHERE {' AND '.join(conditions)}")
    return " ".join(parts)


def _unit(query: ag.Query, schema: Schema) -> ex.Column | None:
    """The column that counts units; one that says whose a row is need not be named by a query."""
    found = [
        ex.Column(named.alias, name)
        for named in visible(query.relation)
        for name in column_names(named, schema)
        if is_unit(ex.Column(named.alias, name), query.relation, schema)
    ]
    if found:
        return found[0]
    unit = schema.table(base(query.relation).table).unit
    return None if unit is None else ex.Column(visible(query.relation)[0].alias, unit)


def _flatten(
    relation: Relation,
) -> tuple[Named, list[PublicJoin | UnitJoin | Unnest], list[ex.Expression | KeyFilter]]:
    """The first table, the joins and the predicates.

    A filter below a public join can stand above it, since each row of the source matches at most
    one public row and stays or goes by itself. Below a join of two private tables none
    stands.
    """
    match relation:
        case Scan() | Derived() | UnitAggregate() | Union():
            return relation, [], []
        case Filter(source=source, predicate=predicate):
            first, joins, predicates = _flatten(source)
            return first, joins, [*predicates, predicate]
        case KeyFilter(source=source):
            first, joins, predicates = _flatten(source)
            return first, joins, [*predicates, relation]
        case PublicJoin(source=source) | Unnest(source=source):
            first, joins, predicates = _flatten(source)
            return first, [*joins, relation], predicates
        case UnitJoin(left=left):
            first, joins, predicates = _flatten(left)
            return first, [*joins, relation], predicates
    raise TypeError(type(relation).__name__)


def _among(among: KeyFilter, schema: Schema, writer: ExpressionWriter) -> str:
    """``x IN (SELECT key FROM public)``."""
    (scan,) = scans(among.keys)
    inner = _writer(among.keys)
    where = ""
    if isinstance(among.keys, Filter):
        where = f" WHERE {inner.text(among.keys.predicate)}"
    return (
        f"{writer.text(among.operand, SUM)} {'NOT ' if among.negated else ''}IN "
        f"(SELECT {inner.text(among.column)} FROM {_identifier(scan.table)}{where})"
    )


def _conjunction(predicates: Sequence[ex.Expression]) -> ex.Expression:
    parts = [x for p in predicates for x in (p.operands if isinstance(p, ex.And) else (p,))]
    return parts[0] if len(parts) == 1 else ex.And(tuple(parts))


def _named(named: Named, schema: Schema) -> str:
    """A table or a query in the FROM, with its alias."""
    if isinstance(named, Scan):
        alias = f" AS {_identifier(named.alias)}" if named.alias != named.table else ""
        return _identifier(named.table) + alias
    return f"({_query(named, schema)}) AS {_identifier(named.alias)}"


def _query(named: Relation, schema: Schema) -> str:
    """A query in the FROM, without its alias: a SELECT, or several."""
    match named:
        case Derived(source=source, columns=columns):
            writer = _writer(source)
            chosen = ", ".join(_column(column, writer) for column in columns)
            return f"SELECT {chosen} {_rows(source, schema, writer)}"
        case UnitAggregate(source=source, keys=keys, values=values):
            writer = _writer(source)
            chosen = ", ".join(
                [
                    *(_column(key, writer) for key in keys),
                    *(f"{unit_value(v, writer.text)} AS {_identifier(name)}" for name, v in values),
                ]
            )
            groups = ", ".join(
                writer.text(key) if isinstance(key, ex.Column) else str(i)
                for i, (_, key) in enumerate(keys, start=1)
            )
            return f"SELECT {chosen} {_rows(source, schema, writer)} GROUP BY {groups}"
        case Union(parts=parts):
            return " UNION ALL ".join(_part(part, schema) for part in parts)
    raise TypeError(type(named).__name__)


def _part(part: Relation, schema: Schema) -> str:
    text = _query(part, schema)
    return f"({text})" if isinstance(part, Union) else text


def _column(column: NamedExpression, writer: ExpressionWriter) -> str:
    name, node = column
    text = writer.text(node)
    plain = isinstance(node, ex.Column) and node.name == name
    return text if plain else f"{text} AS {_identifier(name)}"


def unit_value(value: UnitValue, show: Callable[[ex.Expression], str]) -> str:
    """An aggregate within a unit as SQL."""
    operand = "*" if value.operand is None else show(value.operand)
    if value.function == "count distinct":
        return f"COUNT(DISTINCT {operand})"
    name = {"mean": "AVG"}.get(value.function, value.function.upper())
    return f"{name}({operand})"


def _key(key: ag.Key, writer: ExpressionWriter) -> str:
    text = writer.text(key.expression)
    if isinstance(key.expression, ex.Column) and key.expression.name == key.name:
        return text
    return f"{text} AS {_identifier(key.name)}"


def _join(join: PublicJoin | UnitJoin | Unnest, schema: Schema, writer: ExpressionWriter) -> str:
    joined: Named
    match join:
        case Unnest(elements=elements):
            column = f"{_identifier(elements.table)}.{_identifier(elements.column)}"
            alias = f"{_identifier(elements.alias)}({_identifier(elements.name)})"
            return f"CROSS JOIN UNNEST({column}) AS {alias}"
        case PublicJoin(public=scan, on=pairs):
            joined = scan
        case UnitJoin(right=right, equal=pairs):
            joined = right
    on = " AND ".join(f"{writer.text(a, SUM)} = {writer.text(b)}" for a, b in pairs)
    return f"{'LEFT ' if join.keep_all else ''}JOIN {_named(joined, schema)} ON {on}"


def _aggregate(
    aggregate: ag.AggregateFunction, unit: ex.Column | None, writer: ExpressionWriter
) -> str:
    def quantile(node: ag.Quantile) -> str:
        if node.label in ("min", "max", "median"):
            return f"{node.label.upper()}({writer.text(node.operand)})"
        word = "QUANTILE_DISC" if node.label == "disc" else "QUANTILE_CONT"
        return f"{word}({writer.text(node.operand)}, {constant(node.q)[0]})"

    units = "COUNT(*)" if unit is None else f"COUNT(DISTINCT {writer.text(unit)})"
    return ag.sql_of(aggregate, writer.text, units, quantile)

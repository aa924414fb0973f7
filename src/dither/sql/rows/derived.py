"""A query in the FROM: rows of a table, groups within a unit, or several of them one after another.

What SQL says of it in one SELECT the plan says in steps: the rows, their groups within a unit, a
HAVING as a filter on those, and last the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlglot import exp

from dither.errors import QueryError, UnknownNameError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.values import Scope, infer
from dither.plan.relations import (
    Filter,
    Named,
    NamedExpression,
    Relation,
    UnitValue,
    base,
)
from dither.plan.schema import Kind
from dither.plan.within import derived, distinct_value, grouped_within, unit_value, united
from dither.sql.aggregates import aggregate, aggregates_in
from dither.sql.allow_list import AGGREGATE_NAMES, Place, identifier, plain, refuse, take
from dither.sql.chosen import Item, chosen_key, item
from dither.sql.expressions import at
from dither.sql.names import Names, default_name, find, free_name
from dither.sql.released import bare_name, is_column
from dither.sql.rows.membership import kept
from dither.sql.rows.sources import Tables, relation

__all__ = ["named_query", "with_queries"]


def with_queries(node: exp.Expr, tables: Tables) -> Tables:
    """The tables beside the queries that a WITH names, each of which may name those before it."""
    (listed,) = take(node, "WITH", "expressions")
    for one in listed:
        this, alias = take(one, "WITH", "this", "alias")
        (short,) = take(alias, "WITH", "this")
        name, _ = identifier(short, "WITH")
        if find(name, tables.queries):
            raise QueryError(f"WITH: two queries are named {name!r}; give one another name")
        tables = replace(tables, queries={**tables.queries, name: named_query(this, name, tables)})
    return tables


def named_query(tree: exp.Expr, alias: str | None, tables: Tables) -> Named:
    """A query in the FROM, under its alias; where it has none, under the name of its table.

    Raises
    ------
    QueryError
        Naming the query, and the part of it that cannot be asked.
    """
    try:
        return _query(tree, alias, tables)
    except QueryError as error:
        place = "a query in the FROM" if alias is None else f"the query {alias!r}"
        raise type(error)(f"in {place}: {error}") from None


def _query(tree: exp.Expr, alias: str | None, tables: Tables, *, unnamed: bool = False) -> Named:
    """``unnamed``: its columns need no names, since those of another query are theirs."""
    while isinstance(tree, exp.Subquery | exp.Paren):
        (tree,) = take(tree, "FROM", "this")
    if isinstance(tree, exp.Union):
        return _union(tree, alias, tables)
    if not isinstance(tree, exp.Select):
        refuse(tree, "FROM", "write SELECT, or SELECT ... UNION ALL SELECT ...")
    return _select(tree, alias, tables, unnamed)


def _union(tree: exp.Union, alias: str | None, tables: Tables) -> Named:
    left, right, distinct, before = take(
        tree, "UNION", "this", "expression", "distinct", "with", ignored=("by_name",)
    )
    if distinct:
        raise UnsupportedError(
            "UNION leaves out what one person's rows have alike with another's; write UNION ALL"
        )
    if tree.args.get("by_name"):
        raise UnsupportedError("UNION BY NAME is not offered; name columns in one order")
    if before is not None:
        tables = with_queries(before, tables)
    parts: list[Named] = []
    for side in _parts(left, right):
        found = _query(side, alias, tables, unnamed=bool(parts))
        alias = found.alias
        parts.append(found)
    return united(parts[0].alias, parts, tables.schema)


def _parts(left: exp.Expr, right: exp.Expr) -> Iterator[exp.Expr]:
    """The queries of a chain of UNION ALL, from left to right, without recursion."""
    found = [right]
    while (
        isinstance(left, exp.Union) and not left.args.get("distinct") and not left.args.get("with_")
    ):
        inner, last = take(left, "UNION", "this", "expression")
        found.append(last)
        left = inner
    yield left
    yield from reversed(found)


def _select(tree: exp.Select, alias: str | None, tables: Tables, unnamed: bool) -> Named:
    for part, advice in (
        ("order", "ORDER BY in a query in the FROM orders nothing; leave it out"),
        ("limit", "LIMIT in a query in the FROM would let one person's rows displace another's"),
        ("offset", "OFFSET in a query in the FROM would let one person's rows displace another's"),
    ):
        if tree.args.get(part) is not None:
            raise UnsupportedError(advice)
    items, source, joins, where, group, having, distinct, before = take(
        tree,
        "SELECT",
        *("expressions", "from", "joins", "where", "group", "having", "distinct", "with"),
    )
    if before is not None:
        tables = with_queries(before, tables)
    rows = relation(source, joins or (), tables)
    names = tables.names(rows)
    if where is not None:
        (node,) = take(where, "WHERE", "this")
        place = at("WHERE", names)
        rows = kept(rows, node, place, partial(_condition, place, rows=rows, tables=tables))
    alias = alias or base(rows).table
    if distinct is not None:
        take(distinct, "SELECT DISTINCT")
        if group is not None or having is not None:
            raise UnsupportedError("SELECT DISTINCT beside GROUP BY is not offered; leave it out")
    aggregated = [node for node in items or () if aggregates_in(node)]
    if distinct is None and group is None and having is None and not aggregated:
        return derived(rows, alias, _columns(items or (), names, unnamed), tables.schema)
    return _grouped(items or (), group, having, rows, alias, tables, unnamed)


def _condition(place: Place, node: exp.Expr, rows: Relation, tables: Tables) -> ex.Expression:
    """Read a condition, and refuse what is not one here, where the message can name the query."""
    found = place.read(node)
    if infer(found, scope_of(rows, tables.schema)).kind not in (Kind.BOOLEAN, None):
        raise QueryError(f"{place.where}: this is not a condition")
    return found


def _columns(items: Sequence[exp.Expr], names: Names, unnamed: bool) -> list[NamedExpression]:
    """The columns of a SELECT, a star among them."""
    found: list[NamedExpression] = []
    for node in items:
        bare = plain(node)
        if isinstance(bare, exp.Star):
            take(bare, "SELECT")
            found.extend((column.name, column) for column in names.columns)
        elif isinstance(bare, exp.Column) and isinstance(bare.this, exp.Star):
            star, table = take(bare, "SELECT", "this", "table")
            take(star, "SELECT")
            name, exact = identifier(table, "SELECT")
            of = names.table(name, exact=exact)
            found.extend((name, ex.Column(of, name)) for name in names.tables[of].columns)
        else:
            what, alias = item(node)
            value = at("SELECT", names).read(what)
            found.append((_named(alias, value, found, unnamed), value))
    return found


def _named(
    alias: str | None, value: ex.Expression, taken: Sequence[NamedExpression], unnamed: bool
) -> str:
    if alias is not None:
        return alias
    if isinstance(value, ex.Column):
        return value.name
    if unnamed:
        return free_name("column", [name for name, _ in taken])
    raise QueryError("SELECT: a derived column needs a name; write one after AS")


# --- groups within a unit ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupPlace(Place):
    """A part of a query whose rows are groups: it names keys and aggregates, and nothing else."""

    rows: Place
    aggregated: Mapping[int, ex.Column]
    keys: Mapping[ex.Expression, ex.Column]
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)

    def read(self, node: exp.Expr) -> ex.Expression:
        """Read a node: a key or an aggregate as its column, other parts by their rules."""
        bare = plain(node)
        if id(bare) in self.aggregated:
            return self.aggregated[id(bare)]
        written = bare_name(bare, self.where)
        if written is not None and not is_column(*written, self.rows.names):
            meant = find(written[0], self.aliases, exact=written[1])
            if meant:
                return replace(self, aliases={}).read(self.aliases[meant[0]])
        if not aggregates_in(bare):
            try:
                value = replace(self.rows, where=self.where).read(bare)
            except UnknownNameError:
                if not self.aliases or isinstance(bare, exp.Column):
                    raise
                return Place.read(self, bare)
            if value in self.keys:
                return self.keys[value]
            if not ex.columns(value):
                return value
            if isinstance(value, ex.Column):
                raise QueryError(
                    f"{self.where}: {value.name!r} is neither a key of GROUP BY nor inside an "
                    "aggregate"
                )
        return Place.read(self, bare)


def _grouped(
    items: Sequence[exp.Expr],
    group: exp.Expr | None,
    having: exp.Expr | None,
    rows: Relation,
    alias: str,
    tables: Tables,
    unnamed: bool,
) -> Named:
    names, schema = tables.names(rows), tables.schema
    scope = scope_of(rows, schema)
    chosen = [item(node) for node in items]
    place = at("SELECT", names)
    keys = _keys(_key_nodes(group, chosen, names), chosen, place)
    conditions = [] if having is None else list(take(having, "HAVING", "this"))
    values: dict[str, UnitValue] = {}
    aggregated: dict[int, ex.Column] = {}
    taken = [name for name, _ in keys] + [name for _, name in chosen if name is not None]
    for node, name in (*chosen, *((c, None) for c in conditions)):
        for part in _aggregates(node):
            made, default = _value(part, place, scope)
            same = [n for n, v in values.items() if v == made]
            if same and (part is not plain(node) or name is None):
                aggregated[id(part)] = ex.Column(alias, same[0])
                continue
            own = name if part is plain(node) else None
            own = own or free_name(default, [*taken, *values])
            values[own] = made
            aggregated[id(part)] = ex.Column(alias, own)
    groups = grouped_within(rows, alias, keys, list(values.items()), schema)
    above = GroupPlace(
        "SELECT",
        tables.names(groups),
        place.rules,
        place,
        aggregated,
        {node: ex.Column(alias, name) for name, node in keys},
    )
    read = [(name, above.read(node)) for node, name in chosen]
    columns: list[NamedExpression] = []
    for name, value in read:
        columns.append((_named(name, value, columns, unnamed), value))
    found: Relation = groups
    for node in conditions:
        # As in DuckDB, HAVING may name what SELECT has named.
        place = replace(above, where="HAVING", aliases={n: node for node, n in chosen if n})
        found = Filter(found, _condition(place, node, groups, tables))
    own_names = [*(name for name, _ in keys), *values]
    if found is groups and columns == [(n, ex.Column(alias, n)) for n in own_names]:
        return groups
    return derived(found, alias, columns, schema)


def _key_nodes(group: exp.Expr | None, chosen: Sequence[Item], names: Names) -> list[exp.Expr]:
    """What is grouped by: what is named, where nothing else is said (DISTINCT)."""
    everything, listed = True, None
    if group is not None:
        listed, everything = take(group, "GROUP BY", "expressions", "all")
        if everything and listed:
            raise QueryError("GROUP BY: ALL stands alone; leave it out, or the other keys")
    if everything:
        return [node for node, _ in chosen if not aggregates_in(node)]
    return [chosen_key(node, chosen, names) for node in listed or ()]


def _keys(nodes: Sequence[exp.Expr], chosen: Sequence[Item], place: Place) -> list[NamedExpression]:
    """The keys by their names in SELECT, in its order; those that it does not name after them."""
    wanted = list(dict.fromkeys(replace(place, where="GROUP BY").read(node) for node in nodes))
    named: dict[ex.Expression, str] = {}
    for node, name in chosen:
        if aggregates_in(node):
            continue
        value = place.read(node)
        if value in wanted and value not in named:
            named[value] = name or (value.name if isinstance(value, ex.Column) else "")
    taken = [name for name in named.values() if name]
    for value in sorted(wanted, key=lambda v: v not in named):
        if not named.get(value):
            default = value.name if isinstance(value, ex.Column) else "key"
            named[value] = free_name(default, taken)
            taken.append(named[value])
    return [(name, value) for value, name in named.items()]


_AGGREGATES = (exp.AggFunc, exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls)


def _aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost aggregates in a node."""
    bare = plain(node)
    named = isinstance(bare, exp.Anonymous) and bare.name.upper() in AGGREGATE_NAMES
    if named or isinstance(bare, _AGGREGATES):
        yield bare
        return
    for child in bare.iter_expressions():
        yield from _aggregates(child)


def _value(node: exp.Expr, place: Place, scope: Scope) -> tuple[UnitValue, str]:
    """An aggregate within a unit, and the name that it has where none is given."""
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
        take(node, place.where, "this", ignored=("big_int",))
        inside = place.inside("COUNT(DISTINCT ...)")
        (listed,) = take(node.this, inside.where, "expressions")
        if len(listed) != 1:
            raise UnsupportedError(f"{inside.where}: several columns are not offered; count one")
        return distinct_value(inside.read(listed[0]), scope), "count"
    found = aggregate(node, place)
    try:
        return unit_value(found, scope), default_name(found)
    except QueryError as error:
        raise type(error)(f"{place.where}: {error}") from None

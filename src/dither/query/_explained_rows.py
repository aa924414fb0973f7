"""Where the rows of a question come from, as a tree for people: what each step does to a unit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dither._display import Node
from dither.plan import relations as rel
from dither.plan.facts.units import is_unit_key, join_rows, unit_of, unnested_rows
from dither.plan.lowering.unnested import conditions_first, items
from dither.plan.schema import Schema, Table
from dither.plan.text import brief, show
from dither.sql import unit_value

__all__ = ["explained_rows"]


def explained_rows(
    relation: rel.Relation, schema: Schema, counted: Mapping[str, int] = MappingProxyType({})
) -> Node:
    """A relation, and below it what it is made of.

    ``counted``: how many elements count of the lists that the FROM around it unnests.
    """
    relation = conditions_first(relation)
    counted = counted or items(relation, schema)
    match relation:
        case rel.Scan(table=table):
            return _scan(schema.table(table))
        case rel.Filter(source=source, predicate=predicate):
            title = f"where {show(predicate)}"
            return Node(
                title,
                (("stability", "1: each row stays or goes by itself"),),
                (explained_rows(source, schema, counted),),
            )
        case rel.Unnest(source=source, elements=elements):
            which = "element" if elements.most is None else f"of the first {elements.most} elements"
            title = f"a row for each {which} of {elements.table}.{elements.column}"
            named = f"{elements.alias}.{elements.name}"
            if unit_of(source, schema) is None:
                stable = f"{elements.most}: the elements of a row that is a person"
            else:
                stable, named = (
                    "1: elements are of the unit whose row holds them",
                    f"{named}; limits count these rows",
                )
            unit, most = schema.table(rel.base(source).table).unit, counted[elements.alias]
            count = f"at most {most:,} elements of a list, its first ones"
            if unit is not None:
                count += f"; at most {unnested_rows(source, schema):,} rows of one {unit}"
            facts = (
                ("stability", stable),
                ("left out", "rows whose list is empty or NULL"),
                ("counted", count),
                ("named", named),
            )
            return Node(title, facts, (explained_rows(source, schema, counted),))
        case rel.KeyFilter(
            source=source, operand=operand, keys=keys, column=column, negated=negated
        ):
            (scan,) = rel.scans(keys)
            where = f" where {show(keys.predicate)}" if isinstance(keys, rel.Filter) else ""
            listed = f"{show(column)} of public {scan.table}{where}"
            fact = "1: each row stays or goes by itself, and no key multiplies it"
            return Node(
                f"where {show(operand)} is {'not ' if negated else ''}among {listed}",
                (("stability", fact),),
                (explained_rows(source, schema, counted),),
            )
        case rel.PublicJoin(source=source, public=public, on=on, keep_all=keep_all):
            pairs = " and ".join(f"{show(a)} = {public.alias}.{b.name}" for a, b in on)
            title = f"{'left ' if keep_all else ''}join public {public.table} on {pairs}"
            fact = "1: its key is unique, so a row meets at most one"
            return Node(title, (("stability", fact),), (explained_rows(source, schema, counted),))
        case rel.UnitJoin():
            return _unit_join(relation, schema)
        case rel.Derived(source=source, columns=columns):
            listed = ", ".join(f"{n} = {show(x)}" if show(x) != n else n for n, x in columns)
            return Node(
                f"rows of {listed}",
                (("stability", "1: each row gives one, of the same unit"),),
                (explained_rows(source, schema),),
            )
        case rel.UnitAggregate():
            return _within(relation, schema)
        case rel.Union(parts=parts):
            fact = "1: what one unit has in any of them is its own"
            return Node(
                "all rows of",
                (("stability", fact),),
                tuple(explained_rows(p, schema) for p in parts),
            )
    raise TypeError(type(relation).__name__)


def _unit_join(join: rel.UnitJoin, schema: Schema) -> Node:
    caps = [
        f"{join_rows(side, schema)} of {_called(side)}"
        for side in (*rel.visible(join.left), join.right)
        if schema.table(rel.base(side).table).private
    ]
    key = join.left_unit.name
    more = "".join(f" and {show(a)} = {b.table}.{b.name}" for a, b in join.on)
    side = "left join" if join.keep_all else "join"
    return Node(
        f"{side} private {_called(join.right)} on {key}{more}",
        (("stability", f"one {key} joins its own rows only, at most {' and '.join(caps)}"),),
        (explained_rows(join.left, schema), explained_rows(join.right, schema)),
    )


def _called(named: rel.Named) -> str:
    return named.table if isinstance(named, rel.Scan) else f"the query {named.alias}"


def _within(groups: rel.UnitAggregate, schema: Schema) -> Node:
    """Aggregates of one unit's own rows: no noise, no limit, and how they are taken."""
    who = str(schema.table(rel.base(groups.source).table).unit)
    keys = [name for name, node in groups.keys if not is_unit_key(node, groups, schema)]
    each = f" and {', '.join(keys)}" if keys else ""
    facts = [
        (
            "stability",
            f"1: each row is of one {who}, and follows from all of its rows alone",
        )
    ]
    for name, value in groups.values:
        text = unit_value(value, show)
        if value.lower is not None and value.upper is not None:
            ends = f"{brief(value.lower * value.step)} to {brief(value.upper * value.step)}"
            text += f", each value moved into {ends}"
            text += "" if value.step == 1 else f" and rounded to {brief(value.step)}"
        facts.append((name, text))
    return Node(
        f"one row for each {who}{each}", tuple(facts), (explained_rows(groups.source, schema),)
    )


def _scan(table: Table) -> Node:
    if not table.private:
        return Node(
            f"public table {table.name}", (("stability", "protects nobody, may be read freely"),)
        )
    if table.unit is None:
        return Node(f"private table {table.name}", (("stability", "1: every row is a person"),))
    facts = [("stability", f"1: one {table.unit} changes its own rows only")]
    if table.columns[table.unit].nullable:
        facts.append(("left out", f"rows whose {table.unit} is NULL"))
    return Node(f"private table {table.name}", tuple(facts))

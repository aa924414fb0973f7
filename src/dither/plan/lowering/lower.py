"""From a query to the integers that answer it: measurements, their sensitivities, and recipes.

What cannot be asked is refused here, before anything is built from it. The module is long because
the checks of rows, keys and limits and what is made of them are one step: apart, a question could
be built that no check has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod

from dither._depth import deep
from dither.blocks._sets import BlockSet
from dither.errors import BoundsError, QueryError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.facts.blocks import block_key, in_blocks
from dither.plan.facts.contradictions import contradiction
from dither.plan.facts.scopes import scope_of, value_facts
from dither.plan.facts.units import declared_limits, limit_caps, limits, rows_of_unit, unit_of
from dither.plan.facts.valueless import valueless, why_valueless
from dither.plan.facts.values import Facts, Scope, infer, is_assumed, listed_values
from dither.plan.job import GroupKey, Job, Rows, Units
from dither.plan.lowering.ballots import Ballot
from dither.plan.lowering.expanded import expanded
from dither.plan.lowering.levels import (
    MOST_KEYS,
    Levels,
    check_sums,
    levels_of,
    sensitivity_of_levels,
)
from dither.plan.lowering.measurements import PlannedMeasurements
from dither.plan.lowering.recipes import Recipe, sources
from dither.plan.lowering.sensitivity import MeasurementSensitivity, sensitivity
from dither.plan.lowering.unnested import items
from dither.plan.relations import (
    Derived,
    Filter,
    KeyFilter,
    PublicJoin,
    Relation,
    Scan,
    Union,
    UnitAggregate,
    UnitJoin,
    Unnest,
    base,
    scans,
)
from dither.plan.released import Grouping, Rank, ReleasedKey, kind_of
from dither.plan.schema import Kind, Schema, Table, Value
from dither.plan.text import brief, number, show

__all__ = [
    "Plan",
    "lower",
]

CHOSEN = (
    "HAVING chooses groups by their noisy values: near its limit a group is shown or left out by "
    "chance, and the intervals of the groups that are shown do not allow for the choice"
)

ADD_UP = (
    "counts and sums of all sets add up: limits hold of the groups by all keys, a row whose keys "
    "are not all public is in no set, and noisy values are made to agree by least squares"
)


@dataclass(frozen=True)
class Plan:
    """A query made ready: what is computed, by how much a unit can change it, what comes out.

    Parameters
    ----------
    query, schema : Query, Schema
    table : Table
        The private table that says who is protected.
    job : Job
    sensitivities : tuple of MeasurementSensitivity
        By measurement.
    weights : tuple of Fraction
        Each measurement's share of the budget; they sum to 1. A public one has share 0.
    recipes : tuple of Recipe
        By output.
    kinds : tuple of Kind or None
        By output; real where the recipe says more.
    having : Recipe or None
        Which groups are shown.
    order : tuple of (str or Recipe, bool)
        What they are sorted by, and whether it falls.
    public_keys : int or None
        How many keys the release has; ``None`` where they are discovered.
    public_size : bool
        The measurement ``Rows`` is the table's size, public under these neighbours.
    unit_rows : int
        The rows of one unit that are read, where no column says whose they are.
    levels : Levels or None
        The levels that are made to add up: what the job gives is then the whole table, of which
        they are sums.
    notes : tuple of str
        What the plan decided that its reader should know.
    blocks : BlockSet or None
        What is read of tables that lie in blocks; ``None`` where none does.
    """

    query: ag.Query
    schema: Schema
    table: Table
    job: Job
    sensitivities: tuple[MeasurementSensitivity, ...]
    weights: tuple[Fraction, ...]
    recipes: tuple[Recipe, ...]
    kinds: tuple[Kind | None, ...]
    having: Recipe | None
    order: tuple[tuple[str | Recipe, bool], ...]
    public_keys: int | None
    public_size: bool
    unit_rows: int
    levels: Levels | None
    notes: tuple[str, ...]
    blocks: BlockSet | None = None

    @cached_property
    def measured(self) -> tuple[Recipe, ...]:
        """The recipes of what is measured, each once, also inside of what is calculated."""
        ordered = (x for x, _ in self.order if isinstance(x, Recipe))
        having = () if self.having is None else (self.having,)
        every = (*self.recipes, *having, *ordered)
        return tuple(dict.fromkeys(one for recipe in every for one in sources(recipe)))

    @property
    def discovered(self) -> bool:
        """Whether keys are discovered, at a cost in delta."""
        return self.public_keys is None


@deep()
def lower(query: ag.Query, schema: Schema) -> Plan:
    """Make a query ready.

    Raises
    ------
    QueryError
        Of the kind and with the fix that fits; nothing has been spent.
    """
    scope = scope_of(query.relation, schema, query.words)
    table = schema.table(base(query.relation).table)
    if not table.private:
        raise QueryError(f"table {table.name!r} is public: start FROM a private table")
    notes: list[str] = []
    _check_rows(query.relation, schema, scope, notes)
    keys = tuple(_group_key(key, scope, notes, discover=query.discover) for key in query.keys)
    sizes = [_size(keys, one) for one in query.sets or (range(len(keys)),)]
    public_keys = None if None in sizes else sum(size or 0 for size in sizes)
    if public_keys is not None and public_keys > MOST_KEYS:
        raise QueryError(
            f"the keys {', '.join(k.name for k in keys)} have {public_keys:,} public combinations, "
            f"more than {MOST_KEYS:,}; group by fewer or coarser keys, or discover them"
        )
    if 0 in sizes:
        raise QueryError(_no_keys(keys))
    unit = unit_of(query.relation, schema)
    once = isinstance(query, ag.QueryOfUnits)
    groups, rows = _limits(query, table, schema)
    if once or not keys:
        groups = 1
    if once:
        rows = 1
    each, levels = 0, None
    if query.consistent:
        levels = levels_of(keys, query.sets)
        groups = min(groups, prod(levels.sizes))
        notes.append(ADD_UP)
    elif query.sets:
        # A unit counts in so many groups of every set, and in all of them together.
        each, groups = groups, sum(groups if size is None else min(groups, size) for size in sizes)
        notes.append(
            f"the {len(sizes)} sets of keys share one budget, so that each is noisier than alone"
        )
    elif public_keys is not None:
        groups = min(groups, public_keys)
    if once:
        notes.append(f"each {table.unit or 'row'} counts once, its rows with equal weight")
    beside = [x for x, _ in query.order if isinstance(x, ag.AggregateFunction)]
    if query.having is not None:
        beside.append(query.having)
    asked = [*(o.aggregate for o in query.outputs), *beside]
    if not query.sets and any(ag.contains(x, Grouping) for x in asked):
        raise QueryError(ag.ONE_SET)
    kinds = _kinds(query, keys, scope)
    beside = [expanded(x, scope) for x in beside]
    outputs = [replace(o, aggregate=expanded(o.aggregate, scope)) for o in query.outputs]
    made = PlannedMeasurements(
        scope, unit is not None, notes, outputs, beside, [key.expression for key in keys]
    )
    recipes = tuple(made.recipe(o.aggregate) for o in outputs)
    having = None if query.having is None else made.recipe_beside(beside.pop())
    others = iter(beside)
    order = tuple(
        (x if isinstance(x, str) else made.recipe_beside(next(others)), down)
        for x, down in query.order
    )
    if not made.weights:
        raise QueryError("the query asks for constants and keys alone: add an aggregate")
    if having is not None:
        notes.append(CHOSEN)
    if public_keys is None:
        # Whether a discovered key is shown is decided by the noisy number of units in its group.
        made.measure(Units() if unit is not None else Rows(), Fraction(1))
    sets = () if levels is not None else query.sets
    listed = [ex.InList(k.expression, k.values) for k in keys if k.values and not sets]
    relation, blocks = in_blocks(query.relation, schema, listed)
    key = None
    if unit is not None and query.by_block and not (once or query.sets):
        key = block_key(relation, schema, keys)
    if key is not None and blocks is not None and not blocks.endless and len(blocks) > 1:
        blocks = replace(blocks, parallel=True)
        inside = _size(keys, [i for i in range(len(keys)) if i != key])
        groups = groups if inside is None else min(groups, inside)
        one_group = inside == 1
    else:
        key, one_group = None, public_keys == 1
    job = Job(relation, unit, keys, tuple(made.weights), groups, rows, sets, each, key)
    if levels is not None:
        check_sums(job)
    # A row that is replaced is still a row: no neighbour has another number of them, as long as
    # neither a WHERE nor a group leaves any out.
    public_size = (
        schema.replace_one
        and table.complete
        and unit is None
        and not keys
        and isinstance(query.relation, Scan)
        # A row that is replaced may move to a block that is not read.
        and table.block is None
    )
    if public_size and Rows() in made.weights:
        made.weights[Rows()] = Fraction(0)
        notes.append("the number of rows is public under these neighbours and costs nothing")
    # A measurement without a share of the budget would be released without noise.
    if not all(w or (public_size and m == Rows()) for m, w in made.weights.items()):
        raise AssertionError("a measurement has no share of the budget")
    total = sum(made.weights.values()) or Fraction(1)
    return Plan(
        query=query,
        schema=schema,
        table=table,
        job=job,
        sensitivities=tuple(
            sensitivity(
                m,
                max_groups=groups,
                max_rows=job.max_rows,
                replace_one=schema.replace_one,
                one_group=one_group,
            )
            if levels is None
            else sensitivity_of_levels(
                m,
                levels,
                max_groups=groups,
                max_rows=job.max_rows,
                replace_one=schema.replace_one,
            )
            for m in job.measurements
        ),
        weights=tuple(w / total for w in made.weights.values()),
        recipes=recipes,
        kinds=kinds,
        having=having,
        order=order,
        public_keys=public_keys,
        public_size=public_size,
        unit_rows=rows_of_unit(query.relation, schema),
        levels=levels,
        notes=tuple(dict.fromkeys(notes)),
        blocks=blocks,
    )


def _kinds(query: ag.Query, keys: tuple[GroupKey, ...], scope: Scope) -> tuple[Kind | None, ...]:
    """The kinds of what is released, once every operation is seen to be on values it is for."""
    known = {k.expression: Kind.TEXT if isinstance(k.expression, ex.Bin) else k.kind for k in keys}

    def of_key(key: ReleasedKey) -> Kind:
        return known.get(key.expression, Kind.TEXT)

    def of_leaf(leaf: ag.AggregateFunction) -> Kind:
        return Ballot.of(leaf.operand, scope).kind if isinstance(leaf, ag.Mode) else Kind.REAL

    def kind(node: ag.AggregateFunction) -> Kind | None:
        return kind_of(node, of_key, of_leaf) if isinstance(node, ag.Released) else of_leaf(node)

    if query.having is not None and ag.contains(query.having, Rank):
        raise QueryError("HAVING: ranks are counted among the groups that it leaves")
    if query.having is not None and kind(query.having) is not Kind.BOOLEAN:
        raise QueryError("HAVING: what stands there is not a condition, such as COUNT(*) > 100")
    for node, _ in query.order:
        if isinstance(node, ag.AggregateFunction):
            kind(node)
    return tuple(kind(o.aggregate) for o in query.outputs)


def _limits(query: ag.Query, table: Table, schema: Schema) -> tuple[int, int]:
    """How many groups, and rows in each, of one unit count: the question's limits or the tables',
    and no more than a unit can have by the form of the question.

    Limits of any size protect a unit equally, since sensitivities are computed from those that the
    engine enforces: larger ones take more noise. A cap is what the data's owner wishes.
    """
    found = []
    declared = declared_limits(query.relation, schema)
    private = [t for s in scans(query.relation) if (t := schema.table(s.table)).private]
    caps = limit_caps(query.relation, schema)
    for name, own, cap in zip(("max_groups", "max_rows"), declared, caps, strict=True):
        asked = getattr(query, name)
        if asked is not None and (table.unit is None or isinstance(query, ag.QueryOfUnits)):
            why = "each unit counts once here"
            if table.unit is None:
                why = f"a row of {table.name} is the unit"
            raise QueryError(f"{name} has no meaning where {why}; leave it out")
        if asked is not None and cap is not None and asked > cap:
            tables = " and ".join(dict.fromkeys(t.name for t in private))
            raise QueryError(
                f"{name} = {asked:,} is above {cap:,}, the most that the policy lets one "
                f"question ask for ({name}_cap of {tables})"
            )
        found.append(own if asked is None else asked)
    expressions = [key.expression for key in query.keys]
    whole = (tuple(range(len(expressions))),)
    sets = whole if query.consistent else query.sets or whole
    every = [
        limits(query.relation, {expressions[i] for i in one}, found[0], found[1], schema)
        for one in sets
    ]
    return max(groups for groups, _ in every), max(rows for _, rows in every)


def _size(keys: Sequence[GroupKey], one: Iterable[int]) -> int | None:
    """How many public groups a set of keys has; ``None`` where any of its keys is discovered."""
    lists = [keys[i].values for i in one]
    return None if None in lists else prod(len(values or ()) for values in lists)


def _no_keys(keys: Sequence[GroupKey]) -> str:
    """What is said where no value that a key may have is left, so that there is no group at all."""
    none = next(key for key in keys if not key.values)
    return (
        f"GROUP BY {none.name}: no value that the policy declares gives a key, so there would be "
        "no groups; group by something else, or name the keys"
    )


def _check_rows(relation: Relation, schema: Schema, scope: Scope, notes: list[str]) -> None:
    """Every WHERE is a condition, and every join sets equal what can be; also in queries below."""
    match relation:
        case Filter(source=source, predicate=predicate):
            if infer(predicate, scope).kind not in (Kind.BOOLEAN, None):
                raise QueryError(f"WHERE {scope.show(predicate)} is not a condition")
            never = valueless(predicate, scope)
            if never is not None:
                raise QueryError(f"WHERE keeps no row: {why_valueless(never, scope)}")
            _check_some(relation, scope)
            _check_rows(source, schema, scope, notes)
        case Unnest(source=source):
            items(relation, schema)
            _check_rows(source, schema, scope, notes)
        case KeyFilter(source=source, operand=operand, keys=keys, column=column):
            inner = scope_of(keys, schema)
            kinds = infer(operand, scope).kind, infer(column, inner).kind
            if kinds[0] is not kinds[1] or kinds[0] is None:
                raise QueryError(
                    f"{scope.show(operand)} IN (SELECT ...): both sides must be of one kind"
                )
            _check_rows(source, schema, scope, notes)
            _check_rows(keys, schema, inner, notes)
        case PublicJoin(source=source, on=on):
            for left, right in on:
                infer(ex.Compare("=", left, right), scope)
            _check_rows(source, schema, scope, notes)
        case UnitJoin(left=source, right=right, on=on):
            for ours, theirs in on:
                infer(ex.Compare("=", ours, theirs), scope)
            _check_rows(source, schema, scope, notes)
            _check_rows(right, schema, scope, notes)
        case Derived(source=source) | UnitAggregate(source=source):
            below = scope_of(source, schema)
            _check_rows(source, schema, below, notes)
            if isinstance(relation, UnitAggregate):
                notes.extend(_reach(relation, schema, below))
        case Union(parts=parts):
            for part in parts:
                _check_rows(part, schema, scope_of(part, schema), notes)


def _check_some(kept: Filter, scope: Scope) -> None:
    """Conditions, one after the other, do not rule one another out."""
    conditions = [kept.predicate]
    below = kept.source
    while isinstance(below, Filter):
        conditions.append(below.predicate)
        below = below.source
    never = contradiction(reversed(conditions), scope)
    if never:
        together = " together" if len(never) > 1 else ""
        shown = " and ".join(scope.show(part) for part in never)
        raise QueryError(
            f"WHERE keeps no row: {shown} {'are' if together else 'is'} never true{together}; "
            "without rows the answer is known, and costs nothing"
        )


def _reach(groups: UnitAggregate, schema: Schema, scope: Scope) -> list[str]:
    """How far counts and sums within a unit are taken to reach."""
    most = declared_limits(groups.source, schema)[1]
    counted = [
        (name, value_facts(value, scope, most))
        for name, value in groups.values
        if value.function in ("count", "count distinct", "sum")
    ]
    return [
        f"{name} is taken to lie in {brief(facts.range[0])} to {brief(facts.range[1])}, that of "
        f"max_rows = {most} rows; where it is more, aggregates move it there: "
        f"CLAMP({name}, lower, upper) says otherwise"
        for name, facts in counted
        if facts.range is not None
    ]


def _group_key(key: ag.Key, scope: Scope, notes: list[str], *, discover: bool) -> GroupKey:
    """A grouping expression with its public values, where there are any and they are wanted.

    Raises
    ------
    QueryError
        For a kind that has too many values to be grouped by.
    """
    facts = infer(key.expression, scope)
    if facts.kind is None:
        raise QueryError(f"GROUP BY {scope.show(key.expression)}: NULL is not a key")
    never = valueless(key.expression, scope)
    if never is not None:
        raise QueryError(f"GROUP BY: {why_valueless(never, scope)}")
    # Of a column whose values are declared every other is NULL.
    few = isinstance(key.expression, ex.Column) and facts.domain is not None
    if facts.kind in (Kind.REAL, Kind.TIMESTAMP) and not (few or _is_cut(key.expression)):
        cut = (
            "BIN(x, e0, e1, ...), FLOOR(x) or ROUND(x, 1)"
            if facts.kind is Kind.REAL
            else "DATE_TRUNC"
        )
        raise QueryError(
            f"GROUP BY {scope.show(key.expression)}: a {facts.kind.value} has too many values; "
            f"cut it with {cut}, or declare bins in the policy"
        )
    values: tuple[Value, ...] | None = key.values
    if values is None and not discover:
        values = listed_values(facts)
        if values is not None and _as_declared(key.expression, scope):
            _check_reach(key, scope)
    if values is not None:
        values = tuple(dict.fromkeys(values))
        notes.extend(_left_out(key, facts, scope))
    return GroupKey(key.name, key.expression, facts.kind, values)


def _check_reach(key: ag.Key, scope: Scope) -> None:
    """Refuse a list of keys that ends where a unit is only taken to end.

    Aggregates move what lies beyond; a group would be missing, and nobody would see it.
    """
    if not is_assumed(key.expression, scope):
        return
    written = scope.show(key.expression)
    raise BoundsError(
        f"GROUP BY {written}: nobody declared how far it reaches, and whoever is beyond would be "
        f"in no group; write GROUP BY CLAMP({written}, lower, upper), or discover the keys"
    )


def _is_cut(node: ex.Expression) -> bool:
    """Whether many reals, or moments, have become one."""
    rounded = isinstance(node, ex.Call) and node.function == "round"
    return rounded or isinstance(node, ex.DateTruncate)


def _left_out(key: ag.Key, facts: Facts, scope: Scope) -> list[str]:
    """Which rows are in no public group, where there can be any."""
    if isinstance(key.expression, ex.Bin) and key.values is None:
        shown, edges = show(key.expression.operand), key.expression.edges
        ends = f"outside {number(edges[0])} to {number(edges[-1])}"
        return [f"rows in which {shown} is NULL or {ends} belong to no group"]
    if key.values is not None or _as_declared(key.expression, scope):
        return [f"rows in which {key.name} is NULL or not one of these keys belong to no group"]
    return [f"rows in which {key.name} is NULL belong to no group"] if facts.nullable else []


def _as_declared(node: ex.Expression, scope: Scope) -> bool:
    """Whether it rests on what is declared of a column that no other value can occur."""
    match node:
        case ex.DatePart(part=part) if ex.PARTS[part] is not None:
            return False
        case ex.Bin():
            return False
        case ex.Case(branches=branches, otherwise=other):
            return any(_as_declared(value, scope) for value in (*(v for _, v in branches), other))
    truth = infer(node, scope).kind is Kind.BOOLEAN
    return not truth and any(infer(c, scope).kind is not Kind.BOOLEAN for c in ex.columns(node))

"""From a query to the integers that answer it: measurements, their sensitivities, and recipes.

``checks`` refuses what cannot be asked, ``building`` makes the measurements and the recipes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from dither.errors import QueryError
from dither.plan import aggregates as ag
from dither.plan.building import Build
from dither.plan.checks import check_filters, check_names, group_key
from dither.plan.expressions import Column
from dither.plan.facts import Scope
from dither.plan.job import Job, Rows, Units
from dither.plan.recipes import Recipe
from dither.plan.relations import Relation, Scan, base
from dither.plan.schema import Schema, Table
from dither.plan.sensitivity import Sensitivity, sensitivity

__all__ = ["Plan", "lower"]

MOST_KEYS = 1_000_000
"""More public keys than this are refused: their product is the size of the release."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A query made ready: what is computed, by how much a unit can change it, what comes out.

    Parameters
    ----------
    query, schema : Query, Schema
    table : Table
        The private table that says who is protected.
    job : Job
    sensitivities : tuple of Sensitivity
        By measurement.
    weights : tuple of Fraction
        Each measurement's share of the budget; they sum to 1. A public one has share 0.
    recipes : tuple of Recipe
        By output.
    public_keys : int or None
        How many keys the release has; ``None`` where they are discovered.
    public_size : bool
        The measurement ``Rows`` is the table's size, public under these neighbours.
    notes : tuple of str
        What the plan decided that its reader should know.
    """

    query: ag.Query
    schema: Schema
    table: Table
    job: Job
    sensitivities: tuple[Sensitivity, ...]
    weights: tuple[Fraction, ...]
    recipes: tuple[Recipe, ...]
    public_keys: int | None
    public_size: bool
    notes: tuple[str, ...]

    @property
    def discovered(self) -> bool:
        """Whether keys are discovered, at a cost in delta."""
        return self.public_keys is None


def lower(query: ag.Query, schema: Schema) -> Plan:
    """Make a query ready.

    Raises
    ------
    QueryError
        Of the kind and with the fix that fits; nothing has been spent.
    """
    scope = Scope.of(query.relation, schema)
    table = schema.table(base(query.relation).table)
    if not table.private:
        raise QueryError(f"table {table.name!r} is public: start FROM a private table")
    check_names(query)
    check_filters(query.relation, scope)
    notes: list[str] = []
    keys = tuple(group_key(key, scope, notes, discover=query.discover) for key in query.keys)
    listed = [key.values for key in keys if key.values is not None]
    public_keys = prod(len(v) for v in listed) if len(listed) == len(keys) else None
    if public_keys is not None and public_keys > MOST_KEYS:
        raise QueryError(
            f"the keys {', '.join(k.name for k in keys)} have {public_keys:,} public combinations, "
            f"more than {MOST_KEYS:,}; group by fewer or coarser keys, or discover them"
        )
    unit = _unit(query.relation, table)
    groups = (table.max_groups if unit is not None else 1) if keys else 1
    if public_keys is not None:
        groups = min(groups, public_keys)
    build = Build(scope, unit is not None, notes, query.outputs)
    recipes = tuple(build.recipe(o.aggregate, o.weight) for o in query.outputs)
    if public_keys is None:
        build.measure(Units() if unit is not None else Rows(), Fraction(1))
    job = Job(query.relation, unit, keys, tuple(build.weights), groups, table.max_rows)
    public_size = (
        schema.replace_one
        and table.complete
        and unit is None
        and not keys
        and isinstance(query.relation, Scan)
    )
    if public_size and Rows() in build.weights:
        build.weights[Rows()] = Fraction(0)
        notes.append("the number of rows is public under these neighbours and costs nothing")
    total = sum(build.weights.values()) or Fraction(1)
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
                one_group=public_keys == 1,
            )
            for m in job.measurements
        ),
        weights=tuple(w / total for w in build.weights.values()),
        recipes=recipes,
        public_keys=public_keys,
        public_size=public_size,
        notes=tuple(dict.fromkeys(notes)),
    )


def _unit(relation: Relation, table: Table) -> Column | None:
    return None if table.unit is None else Column(base(relation).alias, table.unit)

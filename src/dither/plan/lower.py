"""From a query to the integers that answer it: measurements, their sensitivities, and recipes.

Equal measurements are made once: all means of columns without NULL share one count, a sum beside a
mean of the same expression uses the mean's two measurements, and all quantiles of an expression
read one histogram.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from dither.errors import BoundsError, QueryError, UnsupportedError
from dither.plan import aggregates as ag
from dither.plan.expressions import Column, Expression
from dither.plan.facts import Facts, Scope, infer, listed_values
from dither.plan.job import GroupKey, Job, Leaves, Measurement, Rows, Total, Units, Values
from dither.plan.kinds import Kind, Value
from dither.plan.recipes import (
    Linear,
    MeanRecipe,
    QuantileRecipe,
    RatioRecipe,
    Recipe,
    VarianceRecipe,
)
from dither.plan.relations import Filter, PublicJoin, Relation, Scan, UnitJoin, base
from dither.plan.schema import Schema, Table
from dither.plan.sensitivity import Sensitivity, sensitivity
from dither.plan.text import number, show

__all__ = ["Plan", "lower"]

MOST_KEYS = 1_000_000
"""More public keys than this are refused: their product is the size of the release."""

SUM_CELLS = 2**28
"""A sum's lattice has at most so many points between its bounds; its rounding is far below any
noise that protects it."""

SQUARE_CELLS = 2**16
QUANTILE_BINS = 4096
DEFAULT_CELLS = 2**20
"""A real expression without a declared step is rounded to about a millionth of its range."""


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
    if not query.outputs:
        raise QueryError("the query releases nothing: add an aggregate, such as COUNT(*)")
    _check_names(query)
    _check_filters(query.relation, scope)
    notes: list[str] = []
    keys = tuple(_group_key(key, query, scope, notes) for key in query.keys)
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
    build = _Build(scope, unit is not None, notes, query.outputs)
    recipes = tuple(build.recipe(o.aggregate, o.weight) for o in query.outputs)
    if public_keys is None:
        build.measure(Units() if unit is not None else Rows(), Fraction(1))
    job = Job(query.relation, unit, keys, tuple(build.weights), groups, table.max_rows)
    public_size = (
        schema.replace_one and unit is None and not keys and isinstance(query.relation, Scan)
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


def _check_names(query: ag.Query) -> None:
    names = [k.name for k in query.keys] + [o.name for o in query.outputs]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise QueryError(f"the name {twice[0]!r} is given twice; use AS to tell them apart")
    for output in query.outputs:
        if output.weight <= 0:
            raise QueryError(f"the weight of {output.name!r} must be above 0")
    for name, _ in query.order:
        if name not in names:
            raise QueryError(f"ORDER BY {name}: the release has no such column")


def _check_filters(relation: Relation, scope: Scope) -> None:
    match relation:
        case Filter(source=source, predicate=predicate):
            if infer(predicate, scope).kind not in (Kind.BOOLEAN, None):
                raise QueryError(f"WHERE {show(predicate)} is not a condition")
            _check_filters(source, scope)
        case PublicJoin(source=source, on=on):
            for left, right in on:
                kinds = {infer(left, scope).kind, infer(right, scope).kind}
                if len(kinds) > 1:
                    raise QueryError(f"JOIN ON {show(left)} = {show(right)}: unlike kinds of value")
            _check_filters(source, scope)
        case UnitJoin(left=left_source):
            _check_filters(left_source, scope)


def _unit(relation: Relation, table: Table) -> Column | None:
    return None if table.unit is None else Column(base(relation).alias, table.unit)


def _operands(outputs: Iterable[ag.Output], kind: type[ag.Mean | ag.Variance]) -> set[Expression]:
    return {o.aggregate.operand for o in outputs if isinstance(o.aggregate, kind)}


def _group_key(key: ag.Key, query: ag.Query, scope: Scope, notes: list[str]) -> GroupKey:
    facts = infer(key.expression, scope)
    if facts.kind is None:
        raise QueryError(f"GROUP BY {show(key.expression)}: NULL is no key")
    if facts.kind in (Kind.REAL, Kind.TIMESTAMP):
        cut = "BIN(x, e0, e1, ...) or FLOOR(x)" if facts.kind is Kind.REAL else "DATE_TRUNC"
        raise QueryError(
            f"GROUP BY {show(key.expression)}: a {facts.kind.value} has too many values; "
            f"cut it with {cut}, or declare bins in the policy"
        )
    values: tuple[Value, ...] | None = key.values
    if values is None and not query.discover:
        values = listed_values(facts)
    if values is not None:
        values = tuple(dict.fromkeys(values))
        if facts.nullable:
            notes.append(f"rows in which {key.name} is NULL belong to no group")
    return GroupKey(key.name, key.expression, facts.kind, values)


class _Build:
    """Collects measurements, each once, with the weight of all outputs that use it."""

    def __init__(
        self, scope: Scope, has_unit: bool, notes: list[str], outputs: tuple[ag.Output, ...]
    ) -> None:
        self.scope = scope
        self.has_unit = has_unit
        self.notes = notes
        self.squared = _operands(outputs, ag.Variance)
        self.centred = _operands(outputs, ag.Mean) | self.squared
        self.weights: dict[Measurement, Fraction] = {}

    def measure(self, measurement: Measurement, weight: Fraction) -> int:
        if isinstance(measurement, Units) and not self.has_unit:
            measurement = Rows()
        self.weights[measurement] = self.weights.get(measurement, Fraction(0)) + weight
        return list(self.weights).index(measurement)

    def recipe(self, aggregate: ag.Aggregate, weight: Fraction) -> Recipe:
        match aggregate:
            case ag.Mean(operand=operand):
                return self._mean(operand, weight)
            case ag.Variance():
                return self._variance(aggregate, weight)
            case ag.Quantile():
                return self._quantile(aggregate, weight)
            case ag.Ratio(numerator=ag.Sum(operand=operand), denominator=bottom) if self._counts(
                operand, bottom
            ):
                return self._mean(operand, weight)
            case ag.Ratio(numerator=top, denominator=bottom):
                return RatioRecipe(
                    self._linear(top, weight / 2, alone=True),
                    self._linear(bottom, weight / 2, alone=True),
                )
        return self._linear(aggregate, weight)

    def _counts(self, operand: Expression, bottom: ag.Aggregate) -> bool:
        """Whether a sum of the operand over this is its mean, which needs less noise."""
        if isinstance(bottom, ag.Count):
            return not infer(operand, self.scope).nullable
        return bottom == ag.CountValues(operand)

    def _linear(self, aggregate: ag.Aggregate, weight: Fraction, *, alone: bool = False) -> Linear:
        """A count or sum; ``alone``: of one measurement, as the interval of a ratio needs."""
        one = Fraction(1)
        match aggregate:
            case ag.Count():
                return Linear(((self.measure(Rows(), weight), one),), Fraction(0))
            case ag.CountUnits():
                return Linear(((self.measure(Units(), weight), one),), Fraction(0))
            case ag.CountValues(operand=operand):
                count = self._count(operand, infer(operand, self.scope), weight)
                return Linear(((count, one),), Fraction(0))
            case ag.Sum(operand=operand):
                return self._sum(operand, weight, alone)
        raise UnsupportedError(
            f"{type(aggregate).__name__} cannot stand in a ratio; use counts and sums"
        )

    def _count(self, operand: Expression, facts: Facts, weight: Fraction) -> int:
        return self.measure(Values(operand) if facts.nullable else Rows(), weight)

    def _sum(self, operand: Expression, weight: Fraction, alone: bool) -> Linear:
        facts, step, low, high = self._lattice(operand, "SUM", self._cells(operand))
        floor_ = Fraction(0) if low >= 0 else None
        if alone or operand not in self.centred:
            total = Total(operand, step, low, high)
            return Linear(((self.measure(total, weight), step),), floor_)
        centred = self._centred(operand, facts, step, low, high)
        total_at = self.measure(centred, weight / 2)
        count_at = self._count(operand, facts, weight / 2)
        return Linear(((total_at, step), (count_at, centred.centre * step)), floor_)

    def _mean(self, operand: Expression, weight: Fraction) -> MeanRecipe:
        facts, step, low, high = self._lattice(operand, "AVG", self._cells(operand))
        centred = self._centred(operand, facts, step, low, high)
        # Means mostly lie nearer the centre than the bounds, where the total's noise matters more.
        total = self.measure(centred, weight * 2 / 3)
        count = self._count(operand, facts, weight / 3)
        return MeanRecipe(total, count, step, centred.centre * step, low * step, high * step)

    def _variance(self, aggregate: ag.Variance, weight: Fraction) -> VarianceRecipe:
        facts, step, low, high = self._lattice(aggregate.operand, "VARIANCE", SQUARE_CELLS)
        plain = self._centred(aggregate.operand, facts, step, low, high)
        half = plain.magnitude
        square = replace(plain, square=True, square_centre=half * half // 2)
        return VarianceRecipe(
            total=self.measure(plain, weight / 4),
            square=self.measure(square, weight / 2),
            count=self._count(aggregate.operand, facts, weight / 4),
            step=step,
            square_centre=square.square_centre,
            half_width=half * step,
            sample=aggregate.sample,
            root=aggregate.root,
        )

    def _cells(self, operand: Expression) -> int:
        """A sum beside a variance is taken on the variance's lattice, so that they share it."""
        return SQUARE_CELLS if operand in self.squared else SUM_CELLS

    def _quantile(self, aggregate: ag.Quantile, weight: Fraction) -> QuantileRecipe:
        if not 0 <= aggregate.q <= 1:
            raise QueryError(f"a quantile must lie in [0, 1], got {number(aggregate.q)}")
        _, step, low, high = self._lattice(aggregate.operand, "a quantile", SUM_CELLS)
        cells = high - low + 1
        width = -(-cells // QUANTILE_BINS)
        leaves = Leaves(aggregate.operand, step, low, high, width, -(-cells // width))
        return QuantileRecipe(
            self.measure(leaves, weight), aggregate.q, low * step, width * step, high * step
        )

    def _centred(
        self, operand: Expression, facts: Facts, step: Fraction, low: int, high: int
    ) -> Total:
        return Total(operand, step, low, high, (low + high) // 2, null_as_centre=not facts.nullable)

    def _lattice(
        self, operand: Expression, what: str, cells: int
    ) -> tuple[Facts, Fraction, int, int]:
        facts = infer(operand, self.scope)
        if facts.kind is None or not facts.kind.numeric:
            raise QueryError(f"{what} of {show(operand)}: not a number")
        if facts.range is None:
            raise BoundsError(
                f"{what} of {show(operand)} needs bounds: declare bounds = [lower, upper] in the "
                f"policy, or write CLAMP({show(operand)}, lower, upper)"
            )
        low, high = facts.range
        declared = facts.step
        step = declared or _power_of_two((high - low) / DEFAULT_CELLS)
        if (high - low) / step >= cells:
            step *= _power_of_two_above((high - low) / step / (cells - 1))
        if step != declared:
            self.notes.append(f"{show(operand)} is rounded to multiples of {number(step)}")
        return facts, step, int(low // step), int(-(-high // step))


def _power_of_two(size: Fraction) -> Fraction:
    """The largest power of two that is at most ``size``; 1 where that is 0."""
    if size <= 0:
        return Fraction(1)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= size else power / 2


def _power_of_two_above(size: Fraction) -> Fraction:
    power = _power_of_two(size)
    return power if power == size else power * 2

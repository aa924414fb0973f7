"""What inference asks of a table: exact sums by declared levels, each with the law of its noise.

Bounds, levels and kinds come from the policy. Where a row is a person the question is ordinary SQL.
Where a column says whose a row is, each unit counts once, in one group and with the average of its
rows (`QueryOfUnits`): units are an independent sample, rows of one person are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither.errors import BoundsError, QueryError
from dither.mechanisms import AdditiveNoise
from dither.mechanisms.quantiles.quantile_tree import QuantileTree
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.units import rows_of_unit
from dither.plan.facts.values import (
    LARGEST_INTEGER,
    Facts,
    Scope,
    infer,
    listed_values,
    why_unbounded,
)
from dither.plan.lowering.recipes import Linear, RanksRecipe
from dither.plan.relations import Filter, base
from dither.plan.schema import Kind, Table
from dither.query._question import Question
from dither.query._release import Release

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = [
    "RankGrid",
    "SumNoise",
    "SumTerm",
    "Sums",
    "Variable",
    "ask",
    "facts_of",
    "grid",
    "laws",
    "sums_of",
    "unit_of",
]

Floats = npt.NDArray[np.float64]
Request = tuple["SumTerm", Fraction]


@dataclass(frozen=True)
class Variable:
    """An expression over a table's columns, with what is public about it.

    Parameters
    ----------
    rows : TableQuery
    text : str
        As it was written.
    expression : Expression
    facts : Facts
    """

    rows: TableQuery
    text: str
    expression: ex.Expression
    facts: Facts

    @classmethod
    def of(cls, rows: TableQuery, text: str) -> Variable:
        """Read an expression.

        Raises
        ------
        QueryError
            It cannot be read, or names what the table does not have.
        """
        expression = rows._read(text)
        return cls(rows, text, expression, infer(expression, _scope(rows)))

    @property
    def part(self) -> str:
        """The text as a part of a longer one."""
        return self.rows._part(self.text)

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The declared bounds of a number.

        Raises
        ------
        QueryError, BoundsError
            It is not a number, or has no bounds, or only one value.
        """
        kind, found = self.facts.kind, self.facts.range
        if kind is None or not kind.numeric:
            raise QueryError(f"{self.text} is not a number; its proportion or a test may be asked")
        if found is None:
            why = why_unbounded(self.expression, _scope(self.rows))
            raise BoundsError(
                f"{self.text} needs bounds: {why} write CLAMP({self.text}, lower, upper)"
            )
        if found[0] == found[1]:
            raise BoundsError(f"{self.text} can have one value only, by its declared bounds")
        return found

    @property
    def truth(self) -> ex.Expression:
        """The expression as a condition; of a number declared to be 0 or 1, whether it is not 0.

        Raises
        ------
        QueryError
            It is neither.
        """
        if self.facts.kind is Kind.BOOLEAN:
            return self.expression
        listed = self.facts.domain
        if listed is not None and set(listed) <= {0, 1}:
            return ex.Compare("<>", self.expression, ex.Literal(0))
        raise QueryError(
            f"{self.text} is neither true nor false: write a condition, such as "
            f'"{self.text} = \'value\'" or "{self.text} > 10"'
        )

    @property
    def levels(self) -> tuple[Any, ...]:
        """The public values by which rows can be grouped.

        Raises
        ------
        QueryError
            There are none, or fewer than two.
        """
        key = self.rows.group_by(self.text).keys[0]
        values = key.values or listed_values(infer(key.expression, _scope(self.rows)))
        if values is None:
            raise QueryError(
                f"{self.text} has no declared levels: give its values, bins or bounds in the policy"
            )
        if len(values) < 2:
            raise QueryError(f"{self.text} has a single level, so there is nothing to compare")
        return tuple(values)

    @property
    def measure(self) -> str | None:
        """The unit of measurement of a column, where the policy gives one."""
        node = self.expression
        return _scope(self.rows).column(node).unit if isinstance(node, ex.Column) else None


@dataclass(frozen=True)
class SumTerm:
    """One sum, as an aggregate; ``scale`` is what the released number is divided by."""

    aggregate: ag.AggregateFunction
    scale: Fraction = Fraction(1)

    @classmethod
    def count(cls) -> SumTerm:
        """Units that have a row; rows, where a row is the unit."""
        return cls(ag.CountUnits())

    @classmethod
    def total(cls, x: Variable) -> SumTerm:
        """Σ t, with t the value in half-ranges from the middle of its bounds."""
        return cls(ag.Sum(_centred(x)), _half(x))

    @classmethod
    def square(cls, x: Variable) -> SumTerm:
        """Σ (t² - 1/2); of units, of the averages of their rows."""
        factor, half = _factor(x)
        if x.rows.once:
            return cls(ag.UnitProduct(factor, factor), half**2)
        product = ex.Arithmetic("*", factor, factor)
        return cls(ag.Sum(ex.Arithmetic("-", product, _constant(half**2 / 2))), half**2)

    @classmethod
    def product(cls, x: Variable, y: Variable) -> SumTerm:
        """Σ s·t of two values; of units, of the averages of their rows."""
        (first, one), (second, other) = _factor(x), _factor(y)
        if x.rows.once:
            return cls(ag.UnitProduct(first, second), one * other)
        return cls(ag.Sum(ex.Arithmetic("*", first, second)), one * other)

    @classmethod
    def ranks(cls, x: Variable, bins: int) -> SumTerm:
        """How many values lie below each edge of a grid; of a unit's values, which share."""
        return cls(ag.Ranks(x.expression, bins))

    @classmethod
    def beyond(cls, x: Variable, side: str) -> SumTerm:
        """How many values lie below the lower bound, or above the upper one."""
        lower, upper = x.ends
        if side == "below":
            return cls(ag.Sum(_one_where(ex.Compare("<", x.expression, _constant(lower)))))
        return cls(ag.Sum(_one_where(ex.Compare(">", x.expression, _constant(upper)))))

    @classmethod
    def weighted(cls, weight: Variable, x: Variable) -> dict[str, SumTerm]:
        """Sums of u and u·t, and of u², u²·t and u²·t², by name: "n", "total" and three squares.

        u is the weight by its upper bound, t the value in half-ranges from the middle of its
        bounds; both are clamped. Of units, the averages of u and of u·t over their rows.
        """
        one, other = _share_of_most(weight), _in_half_ranges(x)
        both = ex.Arithmetic("*", one, other)
        found = {"n": cls(ag.Sum(one)), "total": cls(ag.Sum(both))}
        pairs = {"weights": (one, one), "across": (one, both), "square": (both, both)}
        for name, (first, second) in pairs.items():
            product = ex.Arithmetic("*", first, second)
            once = x.rows.once
            found[name] = cls(ag.UnitProduct(first, second) if once else ag.Sum(product))
        return found

    @classmethod
    def yes(cls, x: Variable) -> SumTerm:
        """How many are true."""
        return cls(ag.Sum(_one_where(x.truth)))


@dataclass(frozen=True)
class SumNoise:
    """The noise of one sum, after its scale: ``step`` times an integer draw, or none at all."""

    noise: AdditiveNoise | None
    step: float

    @property
    def deviation(self) -> float:
        """The standard deviation; 0 where the sum is public."""
        return 0.0 if self.noise is None else self.noise.variance**0.5 * self.step


@dataclass(frozen=True)
class RankGrid:
    """Where ranks are taken.

    Parameters
    ----------
    tree : QuantileTree
        How its bins are counted.
    edges : array of float, shape (bins + 1,)
    trim : float
        How far from an edge the nearest number is that can occur: 1/2 of whole numbers, else 0.
    """

    tree: QuantileTree
    edges: Floats
    trim: float


@dataclass(frozen=True)
class Sums:
    """Released sums: by name, one number for each group.

    Parameters
    ----------
    values : mapping of str to array of float, shape (groups,)
    """

    values: Mapping[str, Floats]

    def group(self, place: int) -> dict[str, float]:
        """The sums of one group."""
        return {name: float(values[place]) for name, values in self.values.items()}


def unit_of(rows: TableQuery) -> str | None:
    """The column that says whose a row is; None where a row is a person.

    Raises
    ------
    QueryError
        A person may have several rows and no column says whose they are.
    """
    table = _table(rows)
    if table.unit is None and rows_of_unit(rows.relation, rows.schema) > table.unit_rows:
        raise QueryError(
            f"a row of {table.name} is a person, and lists of it are unnested: no interval can "
            "count who was sampled; ask without UNNEST, or name the column that tells people apart "
            "(unit = ...) in the policy"
        )
    if table.unit_rows > 1:
        raise QueryError(
            f"one {table.unit_name} may have {table.unit_rows} rows of {table.name} and no column "
            "says whose they are, so no interval can count who was sampled: name the column "
            "(unit = ...) in the policy"
        )
    return table.unit


def complete(rows: TableQuery, *variables: Variable) -> TableQuery:
    """The rows in which none of the variables is missing; each unit once, where there are units."""
    relation = rows.relation
    for variable in variables:
        if variable.facts.nullable:
            known = ex.Not(ex.IsNull(variable.expression))
            relation = Filter(relation, known)
    return replace(rows, relation=relation, once=unit_of(rows) is not None)


def among(rows: TableQuery, variable: Variable, levels: Sequence[Any]) -> TableQuery:
    """The rows in which a variable has one of these levels, in this order where it is grouped by.

    Raises
    ------
    QueryError
        The variable is cut into bins, which have no values to name.
    """
    key = rows.group_by(variable.text).keys[0]
    if isinstance(key.expression, ex.Bin):
        raise QueryError(
            f"{variable.text} is cut into bins: filter its rows, so that two bins are left, or "
            "compare by a condition"
        )
    held = ex.InList(variable.expression, tuple(levels))
    return replace(rows, relation=Filter(rows.relation, held))


def ask(
    rows: TableQuery,
    variables: Sequence[Variable],
    terms: Callable[[Sequence[Variable]], Mapping[str, Request]],
    by: Sequence[str] = (),
    levels: tuple[Any, ...] | None = None,
) -> tuple[Question, dict[str, Fraction]]:
    """The question of some sums, and their scales.

    Parameters
    ----------
    rows : TableQuery
    variables : sequence of Variable
        Rows in which one is missing are left out.
    terms : callable
        Of the same variables over the rows that are left: by name, a sum and its weight.
    by : sequence of str
        What to group by.
    levels : tuple, optional
        The levels of the one variable to group by, where not all that are declared.
    """
    kept = complete(rows, *variables)
    found = terms([replace(v, rows=kept) for v in variables])
    outputs = [ag.Output(name, term.aggregate, weight) for name, (term, weight) in found.items()]
    grouped = kept.group_by(*by) if by else kept
    # Two conditions on one column would have one name, and a column may be named as a sum is.
    taken = [column for output in outputs for column in output.columns]
    called = [key.name for key in grouped.keys]
    if len({*called, *taken}) < len(called) + len(taken):
        apart = (replace(key, name=f"key_{i}") for i, key in enumerate(grouped.keys, 1))
        grouped = replace(grouped, keys=tuple(apart))
    if levels is not None:
        (key,) = grouped.keys
        grouped = replace(grouped, keys=(replace(key, values=levels),))
    return grouped.measure(outputs), {name: term.scale for name, (term, _) in found.items()}


def laws(
    question: Question, scales: Mapping[str, Fraction], epsilon: Any, delta: Any
) -> dict[str, SumNoise]:
    """The noise of each sum, before anything is spent or read."""
    noise_plan = question._noise_plan(epsilon, delta)
    found = {}
    for output, recipe in zip(question._plan.query.outputs, question._plan.recipes, strict=True):
        if isinstance(recipe, RanksRecipe):
            place, step = recipe.leaves, Fraction(1, recipe.parts)
        else:
            assert isinstance(recipe, Linear)
            ((place, step),) = recipe.terms
        scale = scales[output.name]
        found[output.name] = SumNoise(noise_plan.noises[place], float(step / scale))
    return found


def grid(question: Question, epsilon: Any, delta: Any) -> RankGrid:
    """Where the ranks of a question are taken, before anything is spent or read."""
    (recipe,) = question._plan.recipes
    assert isinstance(recipe, RanksRecipe)
    first = recipe.lower - recipe.step / 2
    edges = [first + i * recipe.width for i in range(recipe.bins)]
    edges.append(recipe.upper + recipe.step / 2)
    if not recipe.exact:
        edges[0], edges[-1] = recipe.lower, recipe.upper
    tree = question._noise_plan(epsilon, delta).trees[recipe.leaves]
    return RankGrid(tree, np.array([float(e) for e in edges]), 0.5 if recipe.exact else 0.0)


def public_size(question: Question) -> bool:
    """Whether the number of rows is public, so that it comes without noise."""
    return question._plan.public_size


def sums_of(release: Release, scales: Mapping[str, Fraction]) -> Sums:
    """What was released, in the scale of the models."""
    frame = release.frame
    return Sums(
        {
            name: frame[name].to_numpy().astype(np.float64) / float(scale)
            for name, scale in scales.items()
        }
    )


def facts_of(rows: TableQuery, expression: ex.Expression) -> Facts:
    """What is public about an expression over a table's columns."""
    return infer(expression, _scope(rows))


def _scope(rows: TableQuery) -> Scope:
    return scope_of(rows.relation, rows.schema, rows._written)


def _table(rows: TableQuery) -> Table:
    return rows.schema.table(base(rows.relation).table)


def _half(x: Variable) -> Fraction:
    lower, upper = x.ends
    return (upper - lower) / 2


def _centred(x: Variable) -> ex.Expression:
    lower, upper = x.ends
    middle = (lower + upper) / 2
    return ex.Arithmetic("-", x.expression, _constant(middle)) if middle else x.expression


def _factor(x: Variable) -> tuple[ex.Expression, Fraction]:
    """What is multiplied, and half its range: wide and narrow bounds by a power of two nearer 1.

    The square of what ends near 2^62, or near 1e300, is not a number that an engine has.
    """
    centred, half = _centred(x), _half(x)
    if Fraction(1, _PLAIN) <= half <= _PLAIN:
        return centred, half
    shift = half.numerator.bit_length() - half.denominator.bit_length()
    power = Fraction(2) ** shift
    return ex.Arithmetic("/", centred, _constant(power)), half / power


_PLAIN = 2**26


def _share_of_most(weight: Variable) -> ex.Expression:
    """A weight, clamped, by its upper bound: from 0 to 1."""
    lower, upper = weight.ends
    held = ex.Clamp(weight.expression, max(lower, Fraction(0)), upper)
    return ex.Arithmetic("/", held, _constant(upper)) if upper != 1 else held


def _in_half_ranges(x: Variable) -> ex.Expression:
    """A value, clamped, in half-ranges from the middle of its bounds: from -1 to 1."""
    (lower, upper), half = x.ends, _half(x)
    held: ex.Expression = ex.Clamp(x.expression, lower, upper)
    if lower + upper:
        held = ex.Arithmetic("-", held, _constant((lower + upper) / 2))
    return ex.Arithmetic("/", held, _constant(half)) if half != 1 else held


def _constant(value: Fraction) -> ex.Literal:
    whole = value.denominator == 1 and abs(value) <= LARGEST_INTEGER
    return ex.Literal(value.numerator if whole else value)


def _one_where(condition: ex.Expression) -> ex.Expression:
    return ex.Case(((condition, ex.Literal(1)),), ex.Literal(0))

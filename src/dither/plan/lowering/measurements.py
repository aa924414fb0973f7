"""From aggregates to measurements, and the recipes that lead back from noisy ones.

Equal measurements are made once: all means of columns without NULL share one count, a sum beside a
mean of the same expression uses the mean's two measurements, a variance's total serves its mean,
and all quantiles of an expression read one histogram.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from dither.errors import BoundsError, QueryError, UnsupportedError
from dither.plan import aggregates as ag
from dither.plan.expressions import Case, Column, Expression, Literal
from dither.plan.facts.ranges import SUM_CELLS, lattice_step, power_of_two
from dither.plan.facts.valueless import check_values, most_together
from dither.plan.facts.values import LARGEST_REAL, Facts, Scope, infer, why_unbounded
from dither.plan.job import (
    Distinct,
    Leaves,
    Measurement,
    Rows,
    Sides,
    Total,
    UnitProducts,
    Units,
    UnitSizeHistogram,
    Values,
    VoteHistogram,
)
from dither.plan.lowering.ballots import Ballot
from dither.plan.lowering.calculations import calculated, of_rows
from dither.plan.lowering.magnitudes import GRIDS, ORIGIN, SIZES, DayGrid, MagnitudeGrid
from dither.plan.lowering.recipes import (
    CellsRecipe,
    Linear,
    MeanRecipe,
    ModeRecipe,
    QuantileRecipe,
    RanksRecipe,
    RatioRecipe,
    Recipe,
    VarianceRecipe,
)
from dither.plan.schema import Kind
from dither.plan.text import brief, number, show

__all__ = ["PlannedMeasurements"]

# So few that squares of distances to the centre stay near 2^30, and their sums within 64 bits.
SQUARE_CELLS = 2**16
PARTS = 2**15
"""What a unit's rows add up to is cut to about one part in so many of the largest row."""

ONE_TREE = 4096
"""Up to so many leaves, a quantile is read from one tree."""

QUANTILE_BINS = 2**20
"""A quantile's range is cut into at most so many leaves ..."""

STRETCHES = 512
"""... above ``ONE_TREE`` in two steps: so many stretches, then the leaves of a few of them."""

BELOW = Fraction(1, 5)
"""The second step's share. Its counts matter where one stretch holds many rows, and there a good
deal of noise does no harm."""

OUTSIDE = Fraction(1, 4)
"""The share for counting what lies outside of the ends that the rest has found. Added up from the
cells outside, which are many, it would have the noise of all of them."""


class PlannedMeasurements:
    """The measurements of a query, each once, with the weight of all outputs that use it.

    Parameters
    ----------
    scope : Scope
    has_unit : bool
        Whether a column says whose a row is.
    notes : list of str
        Gets what a reader of the plan should know.
    outputs : sequence of Output
        An aggregate has the largest weight of the outputs that it stands in, each divided among
        the aggregates of its own.
    beside : sequence of AggregateFunction
        HAVING and ORDER BY, whose aggregates need not be released.
    keys : sequence of Expression
    """

    def __init__(
        self,
        scope: Scope,
        has_unit: bool,
        notes: list[str],
        outputs: Sequence[ag.Output],
        beside: Sequence[ag.AggregateFunction],
        keys: Sequence[Expression],
    ) -> None:
        self.scope = scope
        self.has_unit = has_unit
        self.notes = notes
        every = [leaf for x in (*(o.aggregate for o in outputs), *beside) for leaf in ag.leaves(x)]
        self.squared = _operands(every, ag.Variance)
        self.centred = _operands(every, ag.Mean) | self.squared
        self.weights: dict[Measurement, Fraction] = {}
        self._keys = tuple(keys)
        self._made: dict[ag.AggregateFunction, Recipe] = {}
        self._shares: dict[ag.AggregateFunction, Fraction] = {}
        for output in outputs:
            inside = ag.leaves(output.aggregate)
            for leaf in inside:
                share = output.weight / len(inside)
                self._shares[leaf] = max(self._shares.get(leaf, Fraction(0)), share)

    def recipe(self, node: ag.AggregateFunction) -> Recipe:
        """The recipe of an output, or of a part of one.

        Raises
        ------
        QueryError
            Where it names a key that is not grouped by.
        """
        if isinstance(node, ag.Released):
            return of_rows(calculated(node, self.recipe, self._keys), tuple(self.weights))
        if node not in self._made:
            self._made[node] = self._measured(node, self._shares[node])
        return self._made[node]

    def recipe_beside(self, node: ag.AggregateFunction) -> Recipe:
        """The recipe of HAVING or ORDER BY, whose aggregates need not be released.

        Where the outputs' measurements suffice, none is added and none gets another share.
        """
        for leaf in ag.leaves(node):
            if leaf not in self._made:
                free = self._measured(leaf, Fraction(0))
                if any(not weight for weight in self.weights.values()):
                    # Nothing may be measured without a share: it would be measured without noise.
                    free = self._measured(leaf, Fraction(1))
                self._made[leaf] = free
        return self.recipe(node)

    def measure(self, measurement: Measurement, weight: Fraction) -> int:
        """The place of a measurement, which is made where it is not there yet."""
        if isinstance(measurement, Units) and not self.has_unit:
            measurement = Rows()
        self.weights[measurement] = self.weights.get(measurement, Fraction(0)) + weight
        return list(self.weights).index(measurement)

    def _measured(self, aggregate: ag.AggregateFunction, weight: Fraction) -> Recipe:
        check_values(aggregate, self.scope)
        match aggregate:
            case ag.Mean(operand=operand):
                return self._mean(operand, weight)
            case ag.Variance():
                return self._variance(aggregate, weight)
            case ag.Quantile():
                return self._quantile(aggregate, weight)
            case ag.Mode(operand=operand):
                return self._mode(operand, weight)
            case ag.Ranks():
                return self._ranks(aggregate, weight)
            case ag.Magnitudes():
                return self._magnitudes(aggregate, weight)
            case ag.UnitSizes(by=by, groups=groups):
                return self._sizes(by, groups, weight)
            case ag.Ratio(numerator=ag.Sum(operand=operand), denominator=bottom) if self._counts(
                operand, bottom
            ):
                return self._mean(operand, weight)
            case ag.Ratio(numerator=top, denominator=bottom):
                over = self._linear(top, weight / 2, alone=True)
                under = self._linear(bottom, weight / 2, alone=True)
                # Rows with a value are some of the rows, and a unit has one at least.
                part = isinstance(bottom, ag.Count) and not isinstance(top, ag.Sum)
                positive = over.lower == 0 and under.lower == 0
                return RatioRecipe(
                    over, under, Fraction(0) if positive else None, Fraction(1) if part else None
                )
        return self._linear(aggregate, weight)

    def _counts(self, operand: Expression, bottom: ag.AggregateFunction) -> bool:
        """Whether a sum of the operand over this is its mean, which needs less noise."""
        if isinstance(bottom, ag.Count):
            return not infer(operand, self.scope).nullable
        return bottom == ag.CountValues(operand)

    def _linear(
        self, aggregate: ag.AggregateFunction, weight: Fraction, *, alone: bool = False
    ) -> Linear:
        """A count or sum; ``alone``: of one measurement, as the interval of a ratio needs."""
        one = Fraction(1)
        match aggregate:
            case ag.Count():
                return Linear(((self.measure(Rows(), weight), one),), Fraction(0))
            case ag.CountUnits(where=None):
                return Linear(((self.measure(Units(), weight), one),), Fraction(0))
            case ag.CountUnits(where=condition):
                assert condition is not None
                held = Case(((condition, Literal(1)),), Literal(None))
                infer(held, self.scope)
                place = self.measure(Values(held, once=self.has_unit), weight)
                return Linear(((place, one),), Fraction(0))
            case ag.CountDistinct(operand=operand, others=others):
                distinct = Distinct(operand, others)
                for part in distinct.operands:
                    infer(part, self.scope)
                most = most_together(distinct.operands, self.scope)
                return Linear(((self.measure(distinct, weight), one),), Fraction(0), upper=most)
            case ag.CountValues(operand=operand):
                count = self._count(operand, infer(operand, self.scope), weight)
                return Linear(((count, one),), Fraction(0))
            case ag.Sum(operand=operand):
                return self._sum(operand, weight, alone)
            case ag.UnitProduct(left=left, right=right):
                return self._products(left, right, weight)
        raise UnsupportedError(f"{type(aggregate).__name__} is not an aggregate of this version")

    def _count(self, operand: Expression, facts: Facts, weight: Fraction) -> int:
        return self.measure(Values(operand) if facts.nullable else Rows(), weight)

    def _sum(self, operand: Expression, weight: Fraction, alone: bool) -> Linear:
        facts, step, low, high = self._lattice(operand, "SUM", self._cells(operand))
        floor_ = Fraction(0) if low >= 0 else None
        if alone or operand not in self.centred:
            total = self._in_parts(Total(operand, step, low, high))
            return Linear(((self.measure(total, weight), step / total.parts),), floor_)
        centred = self._centred(operand, facts, step, low, high)
        total_at = self.measure(centred, weight / 2)
        count_at = self._count(operand, facts, weight / 2)
        return Linear(((total_at, step / centred.parts), (count_at, centred.centre * step)), floor_)

    def _products(self, left: Expression, right: Expression, weight: Fraction) -> Linear:
        if not self.has_unit:
            raise QueryError("products of units' means need a table whose unit is a column")
        totals = []
        for operand in (left, right):
            _, step, low, high = self._lattice(operand, "SUM", SQUARE_CELLS)
            totals.append(self._in_parts(Total(operand, step, low, high)))
        first, second = totals
        # A product with itself is never negative, and less its middle reaches half as far.
        centre = first.magnitude**2 // 2 if first == second else 0
        scale = first.step * second.step / (first.parts * second.parts)
        place = self.measure(UnitProducts(first, second, centre), weight)
        return Linear(((place, scale),))

    def _mean(self, operand: Expression, weight: Fraction) -> MeanRecipe:
        facts, step, low, high = self._lattice(operand, "AVG", self._cells(operand))
        centred = self._centred(operand, facts, step, low, high)
        # Means mostly lie nearer the centre than the bounds, where the total's noise matters more.
        total = self.measure(centred, weight * 2 / 3)
        count = self._count(operand, facts, weight / 3)
        return MeanRecipe(
            total, count, step / centred.parts, centred.centre * step, low * step, high * step
        )

    def _variance(self, aggregate: ag.Variance, weight: Fraction) -> VarianceRecipe:
        name = "STDDEV" if aggregate.root else "VARIANCE"
        facts, step, low, high = self._lattice(aggregate.operand, name, SQUARE_CELLS)
        ends = facts.range or ()
        if any(end * end > LARGEST_REAL for end in ends):
            shown = self.scope.show(aggregate.operand)
            raise BoundsError(
                f"{name} of {shown}: its bounds [{', '.join(map(brief, ends))}] are too wide, "
                "since their squares lie beyond 1e300; declare bounds within ±1e150, or write "
                f"CLAMP({shown}, lower, upper)"
            )
        plain = self._centred(aggregate.operand, facts, step, low, high)
        half, parts = plain.magnitude // plain.parts, plain.parts
        # Squares lie in [0, half²]: less half of that they reach half as far, for half the noise.
        square = replace(plain, square=True, square_centre=half * half // 2, parts=parts * parts)
        return VarianceRecipe(
            total=self.measure(plain, weight / 4),
            square=self.measure(square, weight / 2),
            count=self._count(aggregate.operand, facts, weight / 4),
            step=step / parts,
            square_centre=square.square_centre * square.parts,
            half_width=half * step,
            sample=aggregate.sample,
            root=aggregate.root,
        )

    def _cells(self, operand: Expression) -> int:
        """A sum beside a variance is taken on the variance's lattice, so that they share it."""
        return SQUARE_CELLS if operand in self.squared else SUM_CELLS

    def _quantile(self, aggregate: ag.Quantile, weight: Fraction) -> QuantileRecipe:
        if aggregate.label in ("min", "max"):
            self.notes.append(
                f"{aggregate.label.upper()} of {show(aggregate.operand)} is its "
                f"{number(100 * aggregate.q)} % quantile: the true extreme is one person's value"
            )
        facts, leaves = self._leaves(aggregate.operand, QUANTILE_BINS)
        step, low, high = leaves.step, leaves.lower, leaves.upper
        width, bins = leaves.width, leaves.bins
        if bins <= ONE_TREE:
            first, below = self.measure(leaves, weight), None
        else:
            # Rounded up: no more stretches than that.
            fine = replace(leaves, within=-(-bins // STRETCHES))
            first = self.measure(fine.above, weight * (1 - BELOW))
            below = self.measure(fine, weight * BELOW)
        return QuantileRecipe(
            leaves=first,
            below=below,
            q=aggregate.q,
            lower=low * step,
            upper=high * step,
            width=width * step,
            step=step,
            parts=leaves.parts,
            exact=facts.kind is Kind.INTEGER and step == 1,
            discrete=aggregate.label == "disc",
        )

    def _leaves(self, operand: Expression, most: int) -> tuple[Facts, Leaves]:
        """A histogram of at most so many leaves."""
        facts, step, low, high = self._lattice(operand, "a quantile", SUM_CELLS)
        cells = high - low + 1
        width = -(-cells // most)
        if width > 1:
            self.notes.append(
                f"quantiles of {show(operand)} are found in steps of {number(width * step)}, and "
                "no finer"
            )
        parts = PARTS if self.has_unit else 1
        return facts, Leaves(operand, step, low, high, width, -(-cells // width), parts)

    def _mode(self, operand: Expression, weight: Fraction) -> ModeRecipe:
        ballot, parts = Ballot.of(operand, self.scope), PARTS if self.has_unit else 1
        last, bins = ballot.first + len(ballot.values) - 1, len(ballot.values)
        votes = VoteHistogram(
            ballot.vote, Fraction(1), ballot.first, last, 1, bins, parts, choice=operand
        )
        return ModeRecipe(self.measure(votes, weight), ballot.values, ballot.kind, parts)

    def _ranks(self, aggregate: ag.Ranks, weight: Fraction) -> RanksRecipe:
        facts, leaves = self._leaves(aggregate.operand, aggregate.bins)
        return RanksRecipe(
            leaves=self.measure(leaves, weight),
            lower=leaves.lower * leaves.step,
            upper=leaves.upper * leaves.step,
            width=leaves.width * leaves.step,
            step=leaves.step,
            bins=leaves.bins,
            parts=leaves.parts,
            exact=facts.kind is Kind.INTEGER and leaves.step == 1,
        )

    def _magnitudes(self, aggregate: ag.Magnitudes, weight: Fraction) -> CellsRecipe:
        operand = aggregate.operand
        facts, shown = infer(operand, self.scope), self.scope.show(operand)
        if facts.kind is None or not (facts.kind.numeric or facts.kind.temporal):
            raise QueryError(f"{shown} is not a number, a date or a time, so it has no magnitude")
        if aggregate.origin is not None and not facts.kind.temporal:
            raise QueryError(f"{shown} is a number: its grid lies about 0, not about a day")
        grid: MagnitudeGrid | DayGrid
        if facts.kind.temporal:
            grid = DayGrid(aggregate.origin or ORIGIN, facts.kind is Kind.TIMESTAMP)
        else:
            grid = GRIDS[facts.kind]
        parts = PARTS if self.has_unit else 1
        last = grid.cells - 1
        leaves = Leaves(grid.cell_of(operand), Fraction(1), 0, last, 1, grid.cells, parts)
        own = isinstance(operand, Column) and self.scope.is_of_a_table(operand)
        return self._in_cells(leaves, parts, grid, weight, operand if own else None)

    def _sizes(self, by: tuple[Expression, ...], groups: bool, weight: Fraction) -> CellsRecipe:
        if not self.has_unit:
            raise QueryError("a unit has a size where a column says whose a row is")
        for key in by:
            infer(key, self.scope)
        return self._in_cells(UnitSizeHistogram(by, groups, SIZES), 1, None, weight)

    def _in_cells(
        self,
        found: Leaves | UnitSizeHistogram,
        parts: int,
        grid: MagnitudeGrid | DayGrid | None,
        weight: Fraction,
        own: Expression | None = None,
    ) -> CellsRecipe:
        cells = self.measure(found, weight * (1 - OUTSIDE))
        sides = Sides(found, own if isinstance(own, Column) else None)
        return CellsRecipe(cells, self.measure(sides, weight * OUTSIDE), parts, grid)

    def _centred(
        self, operand: Expression, facts: Facts, step: Fraction, low: int, high: int
    ) -> Total:
        # About the middle of its bounds a value reaches half as far, for half the noise.
        centre = (low + high) // 2
        return self._in_parts(
            Total(operand, step, low, high, centre, null_as_centre=not facts.nullable)
        )

    def _in_parts(self, total: Total) -> Total:
        """Where a unit's sum may be scaled down, on a lattice fine enough for it."""
        # A lattice that is fine already loses less than one part in `PARTS` where sums are cut.
        if not self.has_unit or not total.lower < total.upper or total.magnitude >= PARTS:
            return total
        return replace(total, parts=int(power_of_two(Fraction(PARTS, total.magnitude))))

    def _lattice(
        self, operand: Expression, what: str, cells: int
    ) -> tuple[Facts, Fraction, int, int]:
        facts = infer(operand, self.scope)
        if facts.kind is None or not facts.kind.numeric:
            shown = self.scope.show(operand)
            raise QueryError(f"{what} of {shown}: not a number{_as_number(shown, facts)}")
        if facts.range is None:
            shown = self.scope.show(operand)
            raise BoundsError(
                f"{what} of {shown} needs bounds: {why_unbounded(operand, self.scope)} write "
                f"CLAMP({shown}, lower, upper)"
            )
        low, high = facts.range
        declared = facts.step
        step = lattice_step(low, high, declared, cells)
        if step != declared and low < high:
            self.notes.append(f"{show(operand)} is rounded to multiples of {number(step)}")
        # Outwards, so that rounding moves no value that is within the bounds beyond these ends.
        return facts, step, int(low // step), int(-(-high // step))


def _as_number(shown: str, facts: Facts) -> str:
    """How it can become a number, for the error."""
    match facts.kind:
        case Kind.BOOLEAN:
            return f"; write CASE WHEN {shown} THEN 1 ELSE 0 END"
        case Kind.DATE | Kind.TIMESTAMP:
            start = "DATE '2000-01-01'"
            return (
                f"; count days, as DATE_DIFF('day', {start}, {shown}), take a part of it, such as "
                f"YEAR({shown}), or group by it"
            )
        case Kind.TEXT:
            return '; if it holds numbers, declare type = "integer" or "real" in the policy'
    return ""


def _operands(
    leaves: Iterable[ag.AggregateFunction], kind: type[ag.Mean | ag.Variance]
) -> set[Expression]:
    return {leaf.operand for leaf in leaves if isinstance(leaf, kind)}

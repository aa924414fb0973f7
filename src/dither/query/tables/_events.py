"""What times to events and rates ask of a table: codes of arm, event and time, and plain sums."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither.errors import BoundsError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.text import bin_labels
from dither.query.tables._regressors import declared, levels_of
from dither.query.tables._statistics import SumTerm, Variable, facts_of

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["arms_of", "condition", "event_code", "from_zero", "labels_of", "plain_product"]

_PLAIN = 2**26
"""Above it, numbers are divided by a power of two before they are multiplied."""


def condition(rows: TableQuery, text: str) -> Variable:
    """A variable that is true or false; a number declared to be 0 or 1 as whether it is not 0."""
    found = Variable.of(rows, text)
    truth = found.truth
    if truth is found.expression:
        return found
    return Variable(rows, f"({found.part}) <> 0", truth, facts_of(rows, truth))


def from_zero(variable: Variable, least: int = 0) -> tuple[Fraction, Fraction]:
    """The declared bounds of a number that is never below 0.

    Raises
    ------
    QueryError, BoundsError
        It is not a number, has no bounds, or may be below 0.
    """
    low, high = variable.ends
    if low < least:
        raise BoundsError(
            f"{variable.text} must have bounds from {least} on: it may be {float(low):g} by those "
            f"that are declared; write CLAMP({variable.text}, {least}, upper)"
        )
    return low, high


def labels_of(variable: Variable) -> tuple[Any, ...]:
    """The public groups of a variable, bins by their ranges as text."""
    levels = variable.levels
    key = variable.rows.group_by(variable.text).keys[0]
    if isinstance(key.expression, ex.Bin):
        return tuple(bin_labels(key.expression))
    return tuple(
        (int(v) if v.denominator == 1 else float(v)) if isinstance(v, Fraction) else v
        for v in levels
    )


def arms_of(rows: TableQuery, by: Variable) -> tuple[TableQuery, tuple[Any, ...]]:
    """The rows in which an arm is one of those that are declared, and these."""
    levels = levels_of(by)
    return declared(rows, by, levels), levels


def event_code(
    time: Variable,
    event: Variable,
    by: Variable | None,
    arms: Sequence[Any],
    edges: Sequence[float],
) -> Variable:
    """arm·(2·K + 1) + event·(K + 1) + bin of each row, as `dither.inference.survival` counts it.

    Bins are (e, e'], the first with its lower end; K is the place of who is watched to the last
    end, or beyond it.
    """
    bins = len(edges) - 1
    ends = [_number(Fraction(edge)) for edge in edges]

    def place(ahead: int, last: str) -> ex.Expression:
        signs = ["<="] * (bins - 1) + [last]
        tests = [ex.Compare(s, time.expression, e) for s, e in zip(signs, ends[1:], strict=True)]
        branches = tuple((test, ex.Literal(ahead + i)) for i, test in enumerate(tests))
        return ex.Case(branches, ex.Literal(bins))

    happened = ex.Case(((event.truth, place(bins + 1, "<=")),), place(0, "<"))
    code: ex.Expression = happened
    if by is not None:
        each = 2 * bins + 1
        branches = tuple(
            (_has(by.expression, arm), ex.Literal(i * each)) for i, arm in enumerate(arms[:-1])
        )
        arm = ex.Case(branches, ex.Literal((len(arms) - 1) * each))
        code = ex.Arithmetic("+", arm, happened)
    return Variable(time.rows, f"when {time.text} ended", code, facts_of(time.rows, code))


def plain_product(x: Variable, y: Variable | None = None) -> SumTerm:
    """Σ x, or Σ x·y, of numbers as they are; of units, of the averages of their rows."""
    if y is None:
        return SumTerm(ag.Sum(x.expression))
    (first, one), (second, other) = _shifted(x), _shifted(y)
    if x.rows.once:
        return SumTerm(ag.UnitProduct(first, second), 1 / (one * other))
    return SumTerm(ag.Sum(ex.Arithmetic("*", first, second)), 1 / (one * other))


def _shifted(x: Variable) -> tuple[ex.Expression, Fraction]:
    """A number over a power of two that makes its largest value one that can be squared."""
    largest = x.ends[1]
    if Fraction(1, _PLAIN) <= largest <= _PLAIN:
        return x.expression, Fraction(1)
    power = Fraction(2) ** (largest.numerator.bit_length() - largest.denominator.bit_length())
    return ex.Arithmetic("/", x.expression, _number(power)), power


def _has(column: ex.Expression, level: Any) -> ex.Expression:
    if isinstance(level, bool):
        return column if level else ex.Not(column)
    return ex.Compare("=", column, ex.Literal(level))


def _number(value: Fraction) -> ex.Literal:
    return ex.Literal(value.numerator if value.denominator == 1 else value)

"""Regressors of a table: what a formula makes of clamped columns, in exact arithmetic."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.relations import Filter
from dither.query.tables._statistics import Variable, facts_of

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["declared", "levels_of", "regressor"]


def declared(rows: TableQuery, factor: Variable, levels: tuple[Any, ...]) -> TableQuery:
    """The rows in which a factor has one of its declared values."""
    if all(isinstance(value, bool) for value in levels):
        return rows
    return replace(rows, relation=Filter(rows.relation, ex.InList(factor.expression, levels)))


def regressor(
    rows: TableQuery,
    label: str,
    factors: Sequence[ast.expr],
    tests: Sequence[tuple[Variable, Any]],
    columns: Mapping[str, Variable],
    bounds: Mapping[str, tuple[Fraction, Fraction]],
) -> Variable:
    """A product of expressions, 0 where a factor has another level than the one it must have.

    Raises
    ------
    QueryError
        An expression cannot be computed exactly.
    """
    node = _product([_translated(tree, columns, bounds, label) for tree in factors])
    if tests:
        held = tuple(_has(factor.expression, level) for factor, level in tests)
        test = held[0] if len(held) == 1 else ex.And(held)
        node = ex.Case(((test, node),), ex.Literal(0))
    return Variable(rows, label, node, facts_of(rows, node))


def levels_of(column: Variable) -> tuple[Any, ...]:
    """The declared values of a factor; bins have none to name."""
    key = column.rows.group_by(column.text).keys[0]
    if isinstance(key.expression, ex.Bin):
        raise QueryError(
            f"{column.text} has bins and no declared levels: give its values in the policy, or "
            "use it as a number"
        )
    return column.levels


def _has(column: ex.Expression, level: Any) -> ex.Expression:
    if isinstance(level, bool):
        return column if level else ex.Not(column)
    return ex.Compare("=", column, ex.Literal(level))


def _product(factors: list[ex.Expression]) -> ex.Expression:
    made: ex.Expression | None = None
    for factor in factors:
        made = factor if made is None else ex.Arithmetic("*", made, factor)
    return ex.Literal(1) if made is None else made


_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def _translated(
    tree: ast.expr,
    columns: Mapping[str, Variable],
    bounds: Mapping[str, tuple[Fraction, Fraction]],
    text: str,
) -> ex.Expression:
    """An expression of a formula in the plan's exact arithmetic, over clamped columns."""

    def inner(part: ast.expr) -> ex.Expression:
        return _translated(part, columns, bounds, text)

    match tree:
        case ast.Name(id=name):
            return ex.Clamp(columns[name].expression, *bounds[name])
        case ast.Constant(value=int() | float() as value):
            exact = Fraction(repr(value))
            return ex.Literal(exact.numerator if exact.denominator == 1 else exact)
        case ast.UnaryOp(op=ast.USub(), operand=part):
            return ex.Arithmetic("-", ex.Literal(0), inner(part))
        case ast.UnaryOp(op=ast.UAdd(), operand=part):
            return inner(part)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
            return _product([inner(left)] * power)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            return ex.Arithmetic(_SIGNS[type(op)], inner(left), inner(right))
        case ast.Call(args=[part]) if _function(tree) in ("I", "abs"):
            found = inner(part)
            return ex.Absolute(found) if _function(tree) == "abs" else found
    raise QueryError(
        f"{text} cannot be summed exactly: a formula for a table takes columns, C(name), I, abs, "
        "and + - * ** of them. inference.linear_regression takes more functions, in memory"
    )


def _function(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""

"""The expressions within a formula: what they may be worth, and what they are worth.

An expression is a function of the values of one row alone: arithmetic, whole powers, and functions
that rise. So its ends follow from those of its columns by interval arithmetic, and it is computed
value by value, and raises on none.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dither.errors import ArgumentError
from dither.inference.engine._inputs import Floats

__all__ = ["function_of", "names_of", "range_of", "times", "tree_of", "values_of"]

Interval = tuple[float, float]

_LINES = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0, "sqrt": -1e-300, "exp": -math.inf}
"""Rising functions of one number, with what it must be above."""


def range_of(tree: ast.expr, ranges: Mapping[str, Interval], text: str) -> Interval:
    """What an expression may be worth; refuses whatever is not a function of single values."""
    match tree:
        case ast.Name(id=name):
            return ranges[name]
        case ast.Constant(value=bool() | complex()):
            pass
        case ast.Constant(value=int() | float() as value):
            return float(value), float(value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            low, high = range_of(inner, ranges, text)
            return -high, -low
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return range_of(inner, ranges, text)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
            if not isinstance(power, bool) and 0 < power <= 16:
                low, high = range_of(left, ranges, text)
                ends = sorted((_power(low, power), _power(high, power)))
                return (0.0 if low < 0 < high and power % 2 == 0 else ends[0]), ends[1]
            raise ArgumentError(f"a power in formula must be a whole number from 1 to 16: {text}")
        case ast.BinOp(left=left, op=op, right=right):
            a, b = range_of(left, ranges, text), range_of(right, ranges, text)
            if isinstance(op, ast.Add):
                return a[0] + b[0], a[1] + b[1]
            if isinstance(op, ast.Sub):
                return a[0] - b[1], a[1] - b[0]
            if isinstance(op, ast.Mult):
                return times(a, b)
            if isinstance(op, ast.Div):
                if b[0] <= 0 <= b[1]:
                    raise ArgumentError(f"bounds must keep the divisor away from 0: {text}")
                return times(a, (1 / b[1], 1 / b[0]))
        case ast.Call(args=[inner], keywords=[]):
            name = function_of(tree)
            if name == "I":
                return range_of(inner, ranges, text)
            if name == "abs":
                low, high = range_of(inner, ranges, text)
                most = max(abs(low), abs(high))
                return (0.0 if low < 0 < high else min(abs(low), abs(high))), most
            if name in _LINES:
                low, high = range_of(inner, ranges, text)
                if low <= _LINES[name]:
                    raise ArgumentError(
                        f"bounds must keep what {name} is taken of above {_LINES[name]:g}: {text}"
                    )
                with np.errstate(over="ignore"):
                    return float(getattr(np, name)(low)), float(getattr(np, name)(high))
    raise ArgumentError(
        f"formula may not hold {text}: columns are names, C(name), and + - * / **, I, abs, exp, "
        "log, log2, log10, log1p and sqrt of them. What looks at the data, such as center, scale, "
        "poly and splines, would have to be paid for"
    )


def values_of(expression: str, raw: Mapping[str, Floats], n: int) -> Floats:
    """The values of an expression that `range_of` has taken."""
    with np.errstate(all="ignore"):
        found = _values(tree_of(expression), raw)
    return np.asarray(np.broadcast_to(found, (n,)), dtype=np.float64)


def _values(tree: ast.expr, raw: Mapping[str, Floats]) -> Any:
    match tree:
        case ast.Name(id=name):
            return raw[name]
        case ast.Constant(value=value):
            return float(value)  # type: ignore[arg-type]
        case ast.UnaryOp(op=op, operand=inner):
            found = _values(inner, raw)
            return -found if isinstance(op, ast.USub) else found
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
            base = found = _values(left, raw)
            for _ in range(power - 1):
                found = found * base
            return found
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_values(left, raw), _values(right, raw))
        case ast.Call(args=[inner]):
            name, found = function_of(tree), _values(inner, raw)
            return found if name == "I" else np.abs(found) if name == "abs" else _each(name, found)
    raise AssertionError(ast.dump(tree))


def _each(name: str, values: Any) -> Floats:
    """A function value by value: numpy's own may round a value otherwise at another place."""
    function = getattr(math, name)

    def one(value: float) -> float:
        try:
            return float(function(value))
        except OverflowError:  # of exp, whose quotient may have ends all the same
            return math.inf
        except ValueError:  # what rounding has put a last digit beyond the function's ends
            return math.nan

    return np.array([one(v) for v in np.atleast_1d(values).tolist()])


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}


def _power(value: float, power: int) -> float:
    try:
        return value**power
    except OverflowError:
        return math.inf


def times(a: Interval, b: Interval) -> Interval:
    """The ends of a product."""
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def tree_of(expression: str) -> ast.expr:
    """An expression of a formula as Python reads it."""
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        # A name in backquotes that is not one of Python's.
        return ast.Name(id=expression, ctx=ast.Load())


def names_of(expression: str) -> dict[str, None]:
    """The columns that an expression takes."""
    tree = tree_of(expression)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    called |= {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    found = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)
    return {n.id: None for n in found}


def function_of(call: ast.Call) -> str:
    """The name of what is called, with or without ``np.``."""
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=name):
            return name
    return ""

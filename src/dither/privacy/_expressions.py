"""Losses from text: a short expression, or a TOML document.

An expression is what one would write in Python, and nothing else is understood: the makers of
`dither.privacy`, ``+``, ``*`` by a whole number, and the methods of a loss that make another ::

    10000 * gaussian(1.0).poisson(0.01) + laplace(50)

A document lists mechanisms ::

    neighbours = "add-remove"

    [[mechanism]]
    kind = "gaussian"
    noise_multiplier = 1.0
    poisson = 0.01
    repeat = 10000
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

from dither import _checks as check
from dither import privacy
from dither.errors import ArgumentError, nearest
from dither.privacy import Loss, compose
from dither.privacy.division._every_division import Component

__all__ = ["loss_from_expression", "loss_from_toml", "mix_from_expression"]


_MAKERS = {
    name: maker
    for name in privacy.__all__
    if inspect.isfunction(maker := getattr(privacy, name)) and maker is not compose
}
_METHODS = ("poisson", "without_replacement", "random_allocation", "group")
_LONGEST = 20_000


def loss_from_expression(text: str) -> Loss:
    """Read a loss from an expression, without running it as code.

    Parameters
    ----------
    text : str
        Such as ``"100 * gaussian(10) + pure(0.1)"``.

    Returns
    -------
    Loss
        Of everything together.

    Raises
    ------
    ArgumentError
        Something else than makers, sums, whole multiples and samples is written.

    Examples
    --------
    >>> loss_from_expression("2 * pure(0.5).poisson(0.1) + gaussian(4)").describe()
    '2 * pure(0.5).poisson(0.1) + gaussian(4)'
    """
    example = "100 * gaussian(10) + pure(0.1)"
    try:
        found = _value(_parsed(text, example))
    except (RecursionError, OverflowError) as error:
        raise _unread(example) from error
    if not isinstance(found, Loss):
        raise ArgumentError("the expression must be a loss, such as gaussian(10)")
    return found


def mix_from_expression(text: str) -> tuple[Component, ...]:
    """Read a mix of mechanisms whose noise is wanted.

    Parameters
    ----------
    text : str
        Kinds, joined by + and repeated with \\*, each with a sensitivity and a weight if wanted.

    Returns
    -------
    tuple of Component
        For `divide_by_every_theorem`.

    Raises
    ------
    ArgumentError
        Something else is written.

    Examples
    --------
    >>> for part in mix_from_expression("laplace(sensitivity=2) + 3 * gaussian"):
    ...     print(part.describe())
    laplace(sensitivity=2)
    3 * gaussian
    """
    example = "laplace(sensitivity=2) + 3 * gaussian(weight=4)"
    try:
        return tuple(_mixed(_parsed(text, example), 1))
    except RecursionError as error:
        raise _unread(example) from error


def _unread(example: str) -> ArgumentError:
    return ArgumentError(f"the expression cannot be read; write for example {example}")


def _parsed(text: str, example: str) -> ast.expr:
    if not isinstance(text, str):
        raise ArgumentError("the expression must be text")
    if len(text) > _LONGEST:
        raise ArgumentError(f"the expression must be at most {_LONGEST} characters long")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _unread(example) from error


def _mixed(node: ast.expr, count: int) -> list[Component]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _mixed(node.left, count) + _mixed(node.right, count)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for times, inner in ((node.left, node.right), (node.right, node.left)):
            if isinstance(times, ast.Constant):
                return _mixed(inner, count * check.count("the number of repetitions", times.value))
    if isinstance(node, ast.Name):
        return [Component(node.id, count)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        names = [word.arg for word in node.keywords]
        if not node.args and set(names) <= {"sensitivity", "weight"}:
            named: dict[str, Any] = {str(w.arg): _value(w.value) for w in node.keywords}
            return [Component(node.func.id, count, **named)]
        raise ArgumentError(
            f"{node.func.id} takes sensitivity=... and weight=...; its noise is what is sought"
        )
    raise ArgumentError("a mix holds kinds of mechanisms, + and * by a whole number; nothing else")


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand)
        if isinstance(inner, int | float):
            return -inner
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        keys = [_value(key) for key in node.keys if key is not None]
        if len(keys) == len(node.values) and all(isinstance(key, int | float) for key in keys):
            return dict(zip(keys, map(_value, node.values), strict=True))
    if isinstance(node, ast.BinOp):
        return _operation(node)
    if isinstance(node, ast.Call):
        return _call(node)
    raise ArgumentError(
        "an expression holds makers, +, * by a whole number, poisson, without_replacement, "
        "random_allocation and group; nothing else is understood"
    )


def _operation(node: ast.BinOp) -> Any:
    left, right = _value(node.left), _value(node.right)
    losses = isinstance(left, Loss), isinstance(right, Loss)
    if isinstance(node.op, ast.Add) and all(losses):
        return left + right
    if isinstance(node.op, ast.Mult) and any(losses) and not all(losses):
        return left * right
    if not any(losses) and isinstance(left, int | float) and isinstance(right, int | float):
        if isinstance(node.op, ast.Div) and right:
            return left / right
        if isinstance(node.op, ast.Mult):
            return left * right
    raise ArgumentError("losses are added with + and repeated with * by a whole number")


def _call(node: ast.Call) -> Any:
    target = node.func
    if isinstance(target, ast.Name):
        if target.id not in _MAKERS:
            raise ArgumentError(f"unknown mechanism {target.id!r}" + nearest(target.id, _MAKERS))
        function = _MAKERS[target.id]
    elif isinstance(target, ast.Attribute):
        base = _value(target.value)
        if not isinstance(base, Loss) or target.attr not in _METHODS:
            raise ArgumentError(f"unknown method {target.attr!r}" + nearest(target.attr, _METHODS))
        function = getattr(base, target.attr)
    else:
        raise ArgumentError("only the makers of losses and their methods can be called")
    if any(word.arg is None for word in node.keywords):
        raise ArgumentError("arguments cannot be unpacked in an expression")
    arguments = [_value(item) for item in node.args]
    named = {word.arg: _value(word.value) for word in node.keywords if word.arg}
    return _called(function, arguments, named)


def _called(function: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
    name = getattr(function, "__name__", "mechanism")
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError as error:
        wanted = ", ".join(inspect.signature(function).parameters)
        raise ArgumentError(f"{name} takes: {wanted}") from error
    return function(*arguments, **named)


def loss_from_toml(text: str) -> Loss:
    """Read a loss from a TOML document; see the module.

    Parameters
    ----------
    text : str
        The document, not its path.

    Returns
    -------
    Loss
        Of everything together.

    Raises
    ------
    ArgumentError
        The document is not TOML, lists no mechanism, or names an unknown kind or key.

    Examples
    --------
    >>> loss_from_toml('''
    ... [[mechanism]]
    ... kind = "gaussian"
    ... noise_multiplier = 1.0
    ... poisson = 0.01
    ... repeat = 3
    ... ''').describe()
    '3 * gaussian(1).poisson(0.01)'
    """
    import tomllib

    if not isinstance(text, str):
        raise ArgumentError("the document must be text")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError("the document is not valid TOML") from error
    unknown = set(document) - {"mechanism", "neighbours"}
    if unknown:
        name = min(unknown)
        raise ArgumentError(f"unknown key {name!r}" + nearest(name, ["mechanism", "neighbours"]))
    rows = document.get("mechanism")
    if not isinstance(rows, list) or not rows:
        raise ArgumentError("the document must list mechanisms, each under [[mechanism]]")
    return compose(*(_mechanism(row, document.get("neighbours", "add-remove")) for row in rows))


def _order(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ArgumentError("orders must map numbers above 1, as in orders = {2 = 0.1}") from error


def _mechanism(row: Any, neighbours: str) -> Loss:
    if not isinstance(row, dict):
        raise ArgumentError("the document must list mechanisms, each under [[mechanism]]")
    rest = dict(row)
    kind = str(rest.pop("kind", ""))
    if kind not in _MAKERS:
        raise ArgumentError(f"unknown kind {kind!r}" + nearest(kind, _MAKERS))
    repeat = check.count("repeat", rest.pop("repeat", 1))
    samples = {name: rest.pop(name) for name in _METHODS if name in rest}
    if kind == "renyi" and isinstance(rest.get("orders"), dict):
        # Keys of a TOML table are text.
        rest["orders"] = {_order(name): value for name, value in rest["orders"].items()}
    loss = _called(_MAKERS[kind], [], {**rest, "neighbours": neighbours})
    for name in _METHODS:
        if name in samples:
            given = samples[name]
            arguments, named = ([], given) if isinstance(given, dict) else ([given], {})
            loss = _called(getattr(loss, name), arguments, named)
    result: Loss = repeat * loss
    return result

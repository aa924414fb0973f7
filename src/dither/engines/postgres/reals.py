"""Arithmetic on doubles that PostgreSQL would refuse: it raises where a result is too large or too
small, and these forms give the infinity or the zero that IEEE 754 has there.

With a constant on one side the values for which the server would raise lie beyond a threshold
that is found exactly, by the same operation. Without one both operands are named in a subquery,
since each is asked about several times; scaling by a power of 2 then tells the outcome, and is
exact where it is used. One result in doubt remains: of two factors below 1 whose product exceeds
2^-1075 by less than one part in 2^53, and is given as 0 instead of 2^-1074.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from dither.engines.writer.forms import all_of, binary, call, case, identifier, named

__all__ = ["once", "real_operation", "scaled_to"]

_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "*": operator.mul,
    "/": operator.truediv,
}
_LARGEST = 1.7976931348623157e308


def once(operands: Sequence[exp.Expression], use: Callable[..., exp.Expression]) -> exp.Expression:
    """What ``use`` makes of operands that it may name many times, and that are computed once."""
    if all(isinstance(node, exp.Column) or _counts(node) for node in operands):
        return use(*operands)
    names = [f"x{i}" for i in range(len(operands))]
    held = exp.select(*(named(o, n) for o, n in zip(operands, names, strict=True)), copy=False)
    # Without the OFFSET the planner would write the operands into each place that names them.
    rows = held.offset(0, copy=False).subquery(exp.to_identifier("operands", quoted=True))
    return exp.select(use(*map(identifier, names)), copy=False).from_(rows, copy=False).subquery()


def _counts(node: exp.Expression) -> bool:
    """Whether it is made of many rows, and would be made of one row in a query of its own."""
    named_sums = (n for n in node.find_all(exp.Anonymous) if str(n.this).upper() == "SUM")
    return node.find(exp.AggFunc) is not None or next(named_sums, None) is not None


def real_operation(
    op: str,
    left: exp.Expression,
    right: exp.Expression,
    real: Callable[[float], exp.Expression],
) -> exp.Expression:
    """``left op right`` of doubles, by IEEE 754. The divisor is not 0.

    Parameters
    ----------
    op : str
        ``+ - * /``.
    left, right : Expression
    real : callable
        A double as a constant.
    """
    held, given = left, constant(right)
    if given is None and op in "+*":
        held, given = right, constant(left)
    if given is not None:
        found = _with_constant(op, held, given, real)
        if found is not None:
            return found
    form = {"+": _added, "-": _added, "*": _multiplied, "/": _divided}[op]
    return once([left, right], lambda x, y: form(op, x, y, real))


def scaled_to(op: str, factor: float, whole: int) -> float | None:
    """A double that becomes a whole number where it is scaled and rounded, halves to even.

    ``None`` where none is found next to the quotient, where 53 bits do not hold the number, and
    where scaling makes sizes smaller, so that the server could find one too small.
    """
    if abs(whole) > 2**53 or (factor >= 1) is not (op == "*"):
        return None
    near = float(Fraction(whole) / Fraction(factor) if op == "*" else whole * Fraction(factor))
    for found in (near, math.nextafter(near, -math.inf), math.nextafter(near, math.inf)):
        # Python's round takes halves to even too, of the double that the server would have.
        if round(_OPERATIONS[op](found, factor)) == whole:
            return found
    return None


def constant(node: exp.Expression) -> float | None:
    """The double that a constant holds, also one that is tested not to be 0."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Case):
        tests = node.args["ifs"]
        if len(tests) == 1 and node.args.get("default") is None:
            found = constant(tests[0].args["true"])
            return found or None
        return None
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return float(node.this.this)
    return None


def _with_constant(
    op: str, value: exp.Expression, given: float, real: Callable[[float], exp.Expression]
) -> exp.Expression | None:
    """Where one side is a constant; ``None`` where that does not help."""
    size = abs(given)
    plain = binary(op, value, real(given))
    if op in "+-":
        # The largest double does not grow by less than half of its last digit.
        return plain if size < 2.0**969 or math.isinf(size) else None
    if not math.isfinite(given) or size in (0.0, 1.0):
        return plain if op == "*" or size == 1 else None
    if (size > 1) is (op == "*"):
        largest = _last(lambda x: _finite(op, x, size), 0.0, _LARGEST)
        infinite = real(math.copysign(math.inf, given))
        return once(
            [value],
            lambda x: case(
                (_within(x, largest, real), binary(op, x.copy(), real(given))),
                otherwise=binary("*", x.copy(), infinite),
            ),
        )
    # All values are moved to 0 that would become it: its sign is lost, which nothing shows.
    vanishing = _last(lambda x: _OPERATIONS[op](x, size) == 0, 0.0, 1.0)
    return once(
        [value],
        lambda x: case(
            (_within(x, vanishing, real), binary("*", x.copy(), real(0.0))),
            otherwise=binary(op, x.copy(), real(given)),
        ),
    )


def _within(
    value: exp.Expression, end: float, real: Callable[[float], exp.Expression]
) -> exp.Expression:
    return exp.Between(this=value.copy(), low=real(-end), high=real(end))


def _finite(op: str, value: float, size: float) -> bool:
    return math.isfinite(_OPERATIONS[op](value, size))


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The largest double in ``[low, high]`` of which something holds that holds of ``low``."""
    if holds(high):
        return high
    first, last = (struct.unpack("<q", struct.pack("<d", end))[0] for end in (low, high))
    while last - first > 1:
        middle = (first + last) // 2
        if holds(struct.unpack("<d", struct.pack("<q", middle))[0]):
            first = middle
        else:
            last = middle
    return float(struct.unpack("<d", struct.pack("<q", first))[0])


# --- two operands ------------------------------------------------------------------------------
#
# NaN is above everything, so that it passes for an infinity. Where one operand is NULL, whichever
# case is taken names it in its result, or asks about it.

_Real = Callable[[float], exp.Expression]


def _added(op: str, x: exp.Expression, y: exp.Expression, real: _Real) -> exp.Expression:
    plain = binary(op, x.copy(), y.copy())
    half = binary(op, binary("*", x.copy(), real(0.5)), binary("*", y.copy(), real(0.5)))
    return case(
        (all_of("AND", [_less(x, 2.0**1023, real), _less(y, 2.0**1023, real)]), plain),
        (all_of("OR", [_less(x, 2.0**969, real), _less(y, 2.0**969, real)]), plain.copy()),
        (all_of("OR", [_infinite(x, real), _infinite(y, real)]), plain.copy()),
        # Both are large, so that their halves are exact.
        (_less(half, 2.0**1023, real), plain.copy()),
        otherwise=binary(op, binary("*", x.copy(), real(math.inf)), y.copy()),
    )


def _multiplied(op: str, x: exp.Expression, y: exp.Expression, real: _Real) -> exp.Expression:
    def scaled(by: float) -> exp.Expression:
        factors = (binary("*", _size(v), real(by)) for v in (x, y))
        return binary("*", *factors)

    plain = binary("*", x.copy(), y.copy())
    large = [_at_least(v, 1.0, real) for v in (x, y)]
    return case(
        (all_of("OR", [_equal(x, 0.0, real), _equal(y, 0.0, real)]), plain),
        (all_of("OR", [_infinite(x, real), _infinite(y, real)]), plain.copy()),
        (all_of("AND", [_moderate(x, real), _moderate(y, real)]), plain.copy()),
        (
            all_of("AND", large),
            case(
                (_below(scaled(2.0**-512), 1.0, real), plain.copy()),
                otherwise=binary("*", binary("*", x.copy(), real(math.inf)), _sign(y)),
            ),
        ),
        (all_of("OR", [node.copy() for node in large]), plain.copy()),
        (
            all_of("AND", [_less(x, 2.0**-537, real), _less(y, 2.0**-538, real)]),
            real(0.0),
        ),
        (
            all_of("AND", [_less(y, 2.0**-537, real), _less(x, 2.0**-538, real)]),
            real(0.0),
        ),
        (binary(">", scaled(2.0**500), real(2.0**-75)), plain.copy()),
        otherwise=binary("*", binary("*", x.copy(), real(0.0)), binary("*", y.copy(), real(0.0))),
    )


def _divided(op: str, x: exp.Expression, y: exp.Expression, real: _Real) -> exp.Expression:
    plain = binary("/", x.copy(), y.copy())
    return case(
        (_equal(x, 0.0, real), plain),
        (all_of("OR", [_infinite(x, real), _equal(y, math.nan, real)]), plain.copy()),
        (_infinite(y, real), binary("*", x.copy(), real(0.0))),
        (all_of("AND", [_moderate(x, real), _moderate(y, real)]), plain.copy()),
        (
            _at_least(y, 1.0, real),
            case(
                (_at_least(x, 2.0**-50, real), plain.copy()),
                (
                    binary(
                        ">",
                        binary("*", _size(x), real(2.0**1000)),
                        binary("*", _size(y), real(2.0**-75)),
                    ),
                    plain.copy(),
                ),
                otherwise=binary("*", x.copy(), real(0.0)),
            ),
        ),
        (_less(x, 2.0**-51, real), plain.copy()),
        (
            binary(
                "<",
                binary("*", _size(x), real(0.5)),
                binary("*", _size(y), real(2.0**1023)),
            ),
            plain.copy(),
        ),
        otherwise=binary("*", binary("*", x.copy(), real(math.inf)), _sign(y)),
    )


def _size(value: exp.Expression) -> exp.Expression:
    return call("ABS", value.copy())


def _below(value: exp.Expression, end: float, real: _Real) -> exp.Expression:
    return binary("<", value, real(end))


def _less(value: exp.Expression, end: float, real: _Real) -> exp.Expression:
    return binary("<", _size(value), real(end))


def _at_least(value: exp.Expression, end: float, real: _Real) -> exp.Expression:
    return binary(">=", _size(value), real(end))


def _infinite(value: exp.Expression, real: _Real) -> exp.Expression:
    """Infinite, or NaN."""
    return _at_least(value, math.inf, real)


def _equal(value: exp.Expression, given: float, real: _Real) -> exp.Expression:
    return binary("=", value.copy(), real(given))


def _moderate(value: exp.Expression, real: _Real) -> exp.Expression:
    """Far from both ends: what two such give is finite and not 0."""
    return exp.Between(this=_size(value), low=real(2.0**-500), high=real(2.0**500))


def _sign(value: exp.Expression) -> exp.Expression:
    return call("SIGN", value.copy())

"""Operations on released values: what they make of a value, and of all that the true one can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.plan.released import COMPARISONS

__all__ = [
    "Floats",
    "PostProcessed",
    "Truths",
    "applied",
    "as_listed",
    "missing",
    "objects",
    "places",
    "possible_places",
    "surely",
]

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PostProcessed:
    """A released value in each group, with all that the true one can be.

    Parameters
    ----------
    value : array of float, shape (groups,), or of object
        NaN, or None, is NULL. A truth value is 0 or 1.
    lower, upper : array of float
        Of numbers, the ends of the interval: (∞, -∞) where the true one is surely NULL. Of truth
        values, ``lower`` is 1 where it is surely true, ``upper`` 0 where it surely is not.
    null : array of bool
        Where the true one may be NULL.
    certain : array of bool, optional
        Of texts and dates: where it is the true one.
    """

    value: npt.NDArray[Any]
    lower: Floats
    upper: Floats
    null: Truths
    certain: Truths | None = None


def missing(groups: int) -> PostProcessed:
    """NULL."""
    ends = np.full(groups, np.inf)
    return PostProcessed(np.full(groups, np.nan), ends, -ends, np.ones(groups, dtype=bool))


def objects(values: Sequence[Any]) -> PostProcessed:
    """Texts or dates that are known."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    null = np.array([v is None for v in values], dtype=bool)
    ends = np.full(len(values), np.nan)
    return PostProcessed(found, ends, ends, null, np.ones(len(values), dtype=bool))


def as_listed(values: npt.NDArray[Any]) -> list[Any]:
    """Values with None for NULL."""
    return [None if _is_none(v) else v for v in values.tolist()]


# --- operations ---------------------------------------------------------------------------------


def applied(op: str, xs: list[PostProcessed]) -> PostProcessed:
    """An operation of ``dither.plan.released`` on its operands."""
    match op:
        case "+" | "-" | "*" | "/":
            return reduce(lambda a, b: _arithmetic(op, a, b), xs)
        case "AND" | "OR":
            return _joined(op, xs)
        case "NOT":
            return _negated(xs[0])
        case "IS NULL":
            return _is_null(xs[0])
        case "CASE":
            return _case(xs)
        case "COALESCE":
            return _coalesce(xs)
        case "LEAST":
            return _least(xs)
        case "GREATEST":
            return _opposite(_least([_opposite(x) for x in xs]))
        case "CLIP":
            low, high = (float(x.value[0]) if len(x.value) else 0.0 for x in xs[1:])
            return _rising(xs[0], lambda v: np.clip(v, low, high), 0)
        case "ABS":
            return _absolute(xs[0])
        case "POWER":
            return _power(xs[0], float(xs[1].value[0]) if len(xs[1].value) else 1.0)
        case "ROUND":
            digits = int(xs[1].value[0]) if len(xs) > 1 and len(xs[1].value) else 0
            return _rising(xs[0], lambda v: _rounded(v, digits), 0)
        case "BESSEL":
            return _opposite(_rising(xs[0], lambda v: -_bessel(v), 1))
    if op in COMPARISONS:
        return _compared(op, *xs)
    function, least, ulps = _FUNCTIONS[op]
    return _rising(xs[0], function, ulps, least)


def _out(
    value: Any,
    lower: Any,
    upper: Any,
    null: Truths,
    empty: Any,
    ulps: int,
    exact: tuple[Any, Any] = (False, False),
) -> PostProcessed:
    """With ends moved outwards by what they may have been rounded, and none where all is NULL.

    ``exact`` says of which ends it is known that they were not: a share of 1 leaves 0, not less.
    """
    lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    for _ in range(ulps):
        lower = np.where(exact[0], lower, np.nextafter(lower, -np.inf))
        upper = np.where(exact[1], upper, np.nextafter(upper, np.inf))
    lower = np.where(np.isnan(lower), -np.inf, lower)
    upper = np.where(np.isnan(upper), np.inf, upper)
    gone = np.broadcast_to(empty, lower.shape)
    return PostProcessed(
        np.asarray(value, dtype=float),
        np.where(gone, np.inf, lower),
        np.where(gone, -np.inf, upper),
        null | gone,
    )


def _empty(*xs: PostProcessed) -> Truths:
    return np.asarray(reduce(np.logical_or, [x.lower > x.upper for x in xs]))


def _arithmetic(op: str, a: PostProcessed, b: PostProcessed) -> PostProcessed:
    null, empty = a.null | b.null, _empty(a, b)
    if op == "+":
        lower, upper = a.lower + b.lower, a.upper + b.upper
        # A sum of doubles that is 0 was not rounded.
        return _out(a.value + b.value, lower, upper, null, empty, 1, (lower == 0, upper == 0))
    if op == "-":
        return _arithmetic("+", a, _opposite(b))
    lows, highs = (b.lower, b.upper)
    value = a.value * b.value
    spans: Any = False
    if op == "/":
        spans = (b.lower <= 0) & (b.upper >= 0)
        lows, highs = 1 / b.upper, 1 / b.lower
        # Each reciprocal is rounded, and each product of it again; 0 is that of an infinite end.
        lows = np.where(lows == 0, lows, np.nextafter(lows, -np.inf))
        highs = np.where(highs == 0, highs, np.nextafter(highs, np.inf))
        value = np.where(b.value == 0, np.nan, a.value / b.value)
        null = null | spans
    pairs = [(x, y) for x in (a.lower, a.upper) for y in (lows, highs)]
    ends = [_product(x, y) for x, y in pairs]
    lower, upper = reduce(np.minimum, ends), reduce(np.maximum, ends)
    lower, upper = np.where(spans, -np.inf, lower), np.where(spans, np.inf, upper)
    # A product that is 0 was rounded where neither factor is.
    small = [(end == 0) & (x != 0) & (y != 0) for end, (x, y) in zip(ends, pairs, strict=True)]
    sure = ~reduce(np.logical_or, small)
    return _out(value, lower, upper, null, empty, 1, (sure & (lower == 0), sure & (upper == 0)))


def _product(x: Floats, y: Floats) -> Floats:
    """Of two ends: 0 times ∞ is 0, since no number is infinite."""
    return np.where((x == 0) | (y == 0), 0.0, x * y)


def _opposite(x: PostProcessed) -> PostProcessed:
    return PostProcessed(-x.value, -x.upper, -x.lower, x.null)


def _rising(
    x: PostProcessed, function: Callable[[Floats], Any], ulps: int, least: float = -np.inf
) -> PostProcessed:
    """A rising function; below ``least`` it is NULL, and at it too where it is infinite there."""
    open_ = bool(np.isneginf(function(np.array(least)))) and np.isfinite(least)
    outside = (x.value <= least) if open_ else (x.value < least)
    value = np.where(outside | np.isnan(x.value), np.nan, function(x.value))
    empty = _empty(x) | ((x.upper <= least) if open_ else (x.upper < least))
    null = x.null | ((x.lower <= least) if open_ else (x.lower < least))
    lower, upper = function(np.maximum(x.lower, least)), function(np.maximum(x.upper, least))
    # What rises to 0 from below is negative, and so is its 0 where it was rounded.
    return _out(value, lower, upper, null, empty, ulps, ((lower == 0) & ~np.signbit(lower), False))


_FUNCTIONS: Mapping[str, tuple[Callable[[Floats], Any], float, int]] = {
    "FLOOR": (np.floor, -np.inf, 0),
    "CEIL": (np.ceil, -np.inf, 0),
    "SQRT": (np.sqrt, 0.0, 1),
    "LN": (np.log, 0.0, 4),
    "LOG10": (np.log10, 0.0, 4),
    "LOG2": (np.log2, 0.0, 4),
    "EXP": (np.exp, -np.inf, 4),
}
"""Rising functions, where they begin, and by how many units of the last place they may be off."""


def _rounded(value: Floats, digits: int) -> Floats:
    """Half away from zero, as SQL has it; what has no digits to lose stays."""
    scale = 10.0 ** abs(digits)
    scaled = value * scale if digits >= 0 else value / scale
    whole = np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)
    found = whole / scale if digits >= 0 else whole * scale
    return np.where(np.abs(scaled) < 2.0**52, found, value)


def _bessel(n: Floats) -> Floats:
    """n/(n - 1), at most 2: falling."""
    n = np.maximum(n, 2.0)
    return np.where(np.isinf(n), 1.0, n / (n - 1))


def _absolute(x: PostProcessed) -> PostProcessed:
    ends = np.abs(x.lower), np.abs(x.upper)
    lower = np.where((x.lower <= 0) & (x.upper >= 0), 0.0, np.minimum(*ends))
    return _out(np.abs(x.value), lower, np.maximum(*ends), x.null, _empty(x), 0)


def _power(x: PostProcessed, exponent: float) -> PostProcessed:
    size = abs(exponent)
    if not size.is_integer():
        found = _rising(x, lambda v: v**size, 4, 0.0)
    elif size % 2:
        found = _rising(x, lambda v: v**size, 4)
    else:
        found = _rising(_absolute(x), lambda v: v**size, 4)
        found = PostProcessed(found.value, np.maximum(found.lower, 0.0), found.upper, found.null)
    if exponent >= 0:
        return found
    one = np.ones_like(found.value)
    return _arithmetic("/", PostProcessed(one, one, one, np.zeros(one.shape, dtype=bool)), found)


def _least(xs: list[PostProcessed]) -> PostProcessed:
    """Of those that are not NULL."""
    value = reduce(np.fmin, [x.value for x in xs])
    lower = reduce(np.minimum, [x.lower for x in xs])
    # What may be NULL bounds nothing from above, unless all may be.
    known = reduce(np.minimum, [np.where(x.null, np.inf, x.upper) for x in xs])
    widest = reduce(np.maximum, [x.upper for x in xs])
    upper = np.where(np.isposinf(known), widest, known)
    null = reduce(np.logical_and, [x.null for x in xs])
    empty = reduce(np.logical_and, [x.lower > x.upper for x in xs])
    return _out(value, lower, upper, null, empty, 0)


def _compared(op: str, a: PostProcessed, b: PostProcessed) -> PostProcessed:
    null = a.null | b.null
    if a.certain is not None or b.certain is not None:
        return _compared_objects(op, a, b, null)
    if op in (">", ">="):
        return _compared("<" if op == ">" else "<=", b, a)
    unknown = np.isnan(a.value) | np.isnan(b.value)
    match op:
        case "<":
            value, surely, maybe = a.value < b.value, a.upper < b.lower, a.lower < b.upper
        case "<=":
            value, surely, maybe = a.value <= b.value, a.upper <= b.lower, a.lower <= b.upper
        case _:
            value = a.value == b.value
            surely = (a.lower == a.upper) & (b.lower == b.upper) & (a.lower == b.lower)
            maybe = (a.lower <= b.upper) & (b.lower <= a.upper)
    maybe = maybe & ~_empty(a, b)
    found = _truths(np.where(unknown, np.nan, value), surely & ~null, maybe, null)
    return _negated(found) if op == "<>" else found


def _compared_objects(op: str, a: PostProcessed, b: PostProcessed, null: Truths) -> PostProcessed:
    """Texts and dates, which are keys, constants and what is chosen among them."""
    turns = {
        "=": lambda x, y: x == y,
        "<>": lambda x, y: x != y,
        "<": lambda x, y: x < y,
        "<=": lambda x, y: x <= y,
        ">": lambda x, y: x > y,
        ">=": lambda x, y: x >= y,
    }
    pairs = zip(a.value.tolist(), b.value.tolist(), strict=True)
    value = np.array(
        [np.nan if _is_none(x) or _is_none(y) else float(turns[op](x, y)) for x, y in pairs],
        dtype=float,
    )
    certain = np.logical_and(
        *(np.ones(x.null.shape, bool) if x.certain is None else x.certain for x in (a, b))
    )
    return _truths(value, certain & (value == 1) & ~null, ~certain | (value == 1), null)


def _is_none(value: Any) -> bool:
    return value is None or value != value


def _truths(value: Any, surely: Any, maybe: Any, null: Any) -> PostProcessed:
    return PostProcessed(
        np.asarray(value, dtype=float),
        np.asarray(surely, dtype=float),
        np.asarray(maybe, dtype=float),
        np.asarray(null, dtype=bool),
    )


def _negated(x: PostProcessed) -> PostProcessed:
    return _truths(1 - x.value, (x.upper < 1) & ~x.null, ~surely(x), x.null)


def surely(x: PostProcessed) -> Truths:
    """Where a truth value is true, and neither false nor NULL."""
    return np.asarray((x.lower == 1) & ~x.null)


def _joined(op: str, xs: list[PostProcessed]) -> PostProcessed:
    """AND and OR of three values: false, unknown, true."""
    both = op == "AND"
    turn = np.fmin if both else np.fmax
    held = np.logical_and if both else np.logical_or
    value = reduce(turn, [x.value for x in xs])
    unknown = reduce(np.logical_or, [np.isnan(x.value) for x in xs])
    decided = value == (0.0 if both else 1.0)
    null = reduce(np.logical_or, [x.null for x in xs])
    return _truths(
        np.where(unknown & ~decided, np.nan, value),
        reduce(held, [surely(x) for x in xs]),
        reduce(held, [x.upper == 1 for x in xs]),
        null,
    )


def _is_null(x: PostProcessed) -> PostProcessed:
    if x.certain is not None:
        value = np.array([v is None for v in x.value.tolist()], dtype=bool)
        return _truths(
            value, value & x.certain, value | ~x.certain, np.zeros(value.shape, dtype=bool)
        )
    value = np.isnan(x.value)
    gone = x.lower > x.upper
    return _truths(value, gone, x.null, np.zeros(value.shape, dtype=bool))


def _case(xs: list[PostProcessed]) -> PostProcessed:
    """Conditions and values in turn, then what stands behind ELSE."""
    arms: list[tuple[Any, Any, PostProcessed]] = []
    left = np.ones(xs[0].null.shape, dtype=bool)
    open_ = left.copy()
    for condition, chosen in zip(xs[:-1:2], xs[1:-1:2], strict=True):
        true = condition.value == 1
        arms.append((left & true, open_ & (condition.upper == 1), chosen))
        left, open_ = left & ~true, open_ & ~surely(condition)
    return _mixed([*arms, (left, open_, xs[-1])])


def _coalesce(xs: list[PostProcessed]) -> PostProcessed:
    arms: list[tuple[Any, Any, PostProcessed]] = []
    left = np.ones(xs[0].null.shape, dtype=bool)
    open_ = left.copy()
    for x in xs:
        known = np.array([not _is_none(v) for v in x.value.tolist()], dtype=bool)
        # That an earlier one is NULL is not the choice of NULL.
        never = np.zeros(x.null.shape, dtype=bool)
        arms.append(
            (left & known, open_, PostProcessed(x.value, x.lower, x.upper, never, x.certain))
        )
        left, open_ = left & ~known, open_ & x.null
    found = _mixed([*arms, (left, open_, missing(len(left)))])
    return PostProcessed(found.value, found.lower, found.upper, open_, found.certain)


def _mixed(arms: list[tuple[Any, Any, PostProcessed]]) -> PostProcessed:
    """Of arms (where it is chosen, where the true choice may be it, what it is)."""
    groups = len(arms[0][0])
    textual = any(x.certain is not None for _, _, x in arms)
    value: npt.NDArray[Any] = np.full(
        groups, None if textual else np.nan, dtype=object if textual else float
    )
    lower, upper = np.full(groups, np.inf), np.full(groups, -np.inf)
    null, certain = np.zeros(groups, dtype=bool), np.ones(groups, dtype=bool)
    several = sum(maybe.astype(int) for _, maybe, _ in arms) > 1
    for chosen, maybe, x in arms:
        if not textual or x.certain is not None:
            value[chosen] = x.value[chosen]
        lower = np.where(maybe, np.minimum(lower, x.lower), lower)
        upper = np.where(maybe, np.maximum(upper, x.upper), upper)
        null |= maybe & x.null
        certain &= ~maybe | chosen & (True if x.certain is None else x.certain)
    if textual:
        return PostProcessed(value, lower, upper, null, certain & ~several)
    return PostProcessed(value, lower, upper, null)


# --- ranks --------------------------------------------------------------------------------------


def places(word: str, columns: list[Floats]) -> Floats:
    """The rank of each row by the columns, rising; rows with NULL come last."""
    keys = [np.where(np.isnan(c), np.inf, c) for c in columns]
    order = np.lexsort(keys[::-1])
    new = np.ones(len(order), dtype=bool)
    if len(order) > 1:
        new[1:] = reduce(np.logical_or, [k[order][1:] != k[order][:-1] for k in keys])
    counted = np.arange(1, len(order) + 1)
    if word == "RANK":
        counted = np.maximum.accumulate(np.where(new, counted, 0))
    elif word == "DENSE_RANK":
        counted = np.cumsum(new)
    found = np.empty(len(order))
    found[order] = counted
    return found


def possible_places(
    word: str, lower: Floats, upper: Floats, null: Truths, tied: bool
) -> tuple[Floats, Floats]:
    """The least and the greatest rank of each row, given intervals of what is ranked by.

    Above a row are surely those whose interval ends before its own begins, and perhaps those whose
    interval begins before its own ends. Of dense ranks, which count values and not rows, as many
    are certain as disjoint intervals lie above one another. What may be NULL may come last.
    """
    count = len(lower)
    begins = np.where(lower > upper, np.inf, lower)
    ends = np.where(null, np.inf, upper)
    before = np.searchsorted(np.sort(ends), begins, side="left")
    side = "right" if tied else "left"
    maybe = np.searchsorted(np.sort(begins), ends, side=side)  # type: ignore[call-overload]
    own = begins <= ends if tied else begins < ends
    if word == "DENSE_RANK":
        before = _disjoint_above(begins, ends)
    most = np.minimum(1.0 + maybe - own, float(max(count, 1)))
    return np.asarray(1.0 + before, dtype=float), np.asarray(most, dtype=float)


def _disjoint_above(begins: Floats, ends: Floats) -> npt.NDArray[np.int64]:
    """For each interval, how many lie before it and apart from one another."""
    order = np.argsort(ends, kind="stable")
    taken: list[float] = []
    last = -np.inf
    for i in order:
        # The earliest end first: no choice has more.
        if begins[i] > last and np.isfinite(ends[i]):
            taken.append(float(ends[i]))
            last = float(ends[i])
    return np.searchsorted(np.array(taken), begins, side="left")

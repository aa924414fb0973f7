"""Numbers in cells that keep linear rules, as whole numbers of one unit.

*Unit.* Whole numbers, multiples of a step, listed numbers, days and microseconds are all multiples
of one rational; real numbers without a step are drawn as multiples of a power of two so small that
nobody sees it. So a rule is about whole numbers of 64 bits, it is kept exactly, and ``<`` is ``<=``
less one.

*Narrowing.* A column of a rule can be no further than what is left where all others are as low, or
as high, as they can be. Applied again and again this narrows the intervals of a row's cells. Of
rules that compare two columns (order, gaps) what is left is then exact: solutions of such rules
are closed under taking the lower, and the higher, of two columns by column, so the lowest ends are
themselves a solution, and so is whatever one goes on to by fixing a column inside its interval and
narrowing again. Of one sum it is exact as well. Of several sums that share columns it is not
always; what then fails is seen, and drawn again.

*Drawing.* Columns are drawn evenly in their cells, those that a sum fixes are computed, and rows
that break a rule are drawn again: of what the cells allow all is then as likely (rejection). Where
that takes too many tries, columns are drawn one after another in their narrowed intervals. A row
that fails even so takes the columns of one that did not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.query.tables._domain import Attribute
from dither.synth._values import after
from dither.synth.constraints._linear import LinearRule, number_of

__all__ = ["RuleLattice"]

Integers = npt.NDArray[np.int64]
Masks = npt.NDArray[np.bool_]

MOST_UNIT = 2**60
"""Sums stay below this, so that none leaves 64 bits."""

FINEST = 30
"""Real numbers without a step have so many binary digits within their bounds, at most."""

TRIES = 40
"""How often a row is drawn evenly before it is drawn column by column."""

_A_DAY = Fraction(1, 86_400_000_000)


@dataclass(frozen=True, eq=False)
class _Spans:
    """A column: the lowest and highest multiple of its step in each cell, in units."""

    low: Integers
    high: Integers
    step: int


@dataclass(frozen=True, eq=False)
class _Sum:
    """``weights @ x <= limit`` in units; ``at`` are places among the lattice's columns."""

    at: tuple[int, ...]
    weights: tuple[int, ...]
    limit: int


class RuleLattice:
    """Some columns and their linear rules.

    Parameters
    ----------
    attributes : mapping of int to Attribute
        By place.
    rules : sequence of LinearRule
        Of these columns.

    Raises
    ------
    ArgumentError
        Where numbers are so large beside their step that sums would leave 64 bits.
    """

    def __init__(self, attributes: Mapping[int, Attribute], rules: Sequence[LinearRule]) -> None:
        self.columns = tuple(sorted(attributes))
        self.rules, self._attributes = tuple(rules), dict(attributes)
        place = {v: i for i, v in enumerate(self.columns)}
        grains = {v: _grain(a) for v, a in attributes.items()}
        self.unit = Fraction(1, math.lcm(*(g.denominator for gs in grains.values() for g in gs)))
        self._spans = [_spans(attributes[v], self.unit) for v in self.columns]
        self._sums: list[_Sum] = []
        self.equalities: list[tuple[_Sum, int]] = []
        for rule in rules:
            # In units, times what makes every weight whole.
            scale = math.lcm(*(w.denominator for _, w in rule.weights))
            at = tuple(place[v] for v, _ in rule.weights)
            weights = tuple(int(w * scale) for _, w in rule.weights)
            exact = rule.limit * scale / self.unit
            limit = math.floor(exact)
            if rule.equal:
                # No sum of whole numbers is a fraction: then nothing is below and above it.
                self._sums.append(_Sum(at, weights, limit))
                self._sums.append(_Sum(at, tuple(-w for w in weights), -math.ceil(exact)))
                self._depend(at, weights, limit)
            else:
                limit -= 1 if rule.strict and limit == exact else 0
                self._sums.append(_Sum(at, weights, limit))
        self._check_size()

    def _depend(self, at: tuple[int, ...], weights: tuple[int, ...], limit: int) -> None:
        """The column that a sum fixes: one of weight 1 that no other sum fixes or uses."""
        used = {i for s, _ in self.equalities for i in s.at}
        free = [i for i, w in zip(at, weights, strict=True) if abs(w) == 1 and i not in used]
        if free:
            # Of a total and its parts the total has the other sign.
            signs = [w > 0 for w in weights]
            alone = [i for i in free if signs.count(weights[at.index(i)] > 0) == 1]
            self.equalities.append((_Sum(at, weights, limit), (alone or free)[0]))

    def _check_size(self) -> None:
        far = [
            max((abs(int(n)) for ends in (s.low, s.high) for n in ends), default=0) + s.step
            for s in self._spans
        ]
        for s in self._sums:
            total = sum(abs(w) * far[i] for i, w in zip(s.at, s.weights, strict=True))
            if total + abs(s.limit) >= MOST_UNIT:
                texts = " and ".join(repr(r.text) for r in self.rules)
                raise ArgumentError(
                    f"rules: {texts}: numbers are too large beside their steps to be added exactly"
                )

    # --- intervals --------------------------------------------------------------------------------

    def ends(self, cells: Integers) -> tuple[Integers, Integers, Masks]:
        """The intervals of cells, shape (n, columns), and which of them are NULL."""
        low, high = np.zeros_like(cells), np.zeros_like(cells)
        null = np.zeros(cells.shape, dtype=bool)
        for i, spans in enumerate(self._spans):
            null[:, i] = cells[:, i] >= len(spans.low)
            inner = np.where(null[:, i], 0, cells[:, i])
            low[:, i], high[:, i] = spans.low[inner], spans.high[inner]
        return low, high, null

    def narrowed(self, low: Integers, high: Integers, null: Masks) -> None:
        """Narrow intervals in place; one that is empty has its low end above the high one.

        A rule with a NULL in it is kept, as SQL's CHECK is.
        """
        for _ in range(2 * len(self.columns) + 2):
            moved = False
            for s in self._sums:
                at = list(s.at)
                on = ~null[:, at].any(axis=1)
                weights = np.array(s.weights, dtype=np.int64)
                least = np.minimum(low[:, at] * weights, high[:, at] * weights)
                room = s.limit - least.sum(axis=1)
                for j, (i, w) in enumerate(zip(s.at, s.weights, strict=True)):
                    step = self._spans[i].step
                    mine = room + least[:, j]
                    if w > 0:
                        most = np.floor_divide(mine, w) // step * step
                        new = np.where(on, np.minimum(high[:, i], most), high[:, i])
                        moved |= bool((new != high[:, i]).any())
                        high[:, i] = np.maximum(new, low[:, i] - step)
                    else:
                        fewest = -np.floor_divide(mine, -w)
                        fewest = -(-fewest // step) * step
                        new = np.where(on, np.maximum(low[:, i], fewest), low[:, i])
                        moved |= bool((new != low[:, i]).any())
                        low[:, i] = np.minimum(new, high[:, i] + step)
            if not moved or (low > high).any(axis=1).all():
                break

    def possible(self, cells: Integers) -> Masks:
        """Which rows of cells may hold numbers that keep all rules, as far as narrowing tells."""
        low, high, null = self.ends(cells)
        self.narrowed(low, high, null)
        found: Masks = np.logical_and.reduce((low <= high) | null, axis=1)
        return found

    def kept(self, values: Integers, null: Masks) -> Masks:
        """Which rows keep all rules; exact."""
        found: Masks = np.ones(len(values), dtype=bool)
        for s in self._sums:
            at = list(s.at)
            total = values[:, at] @ np.array(s.weights, dtype=np.int64)
            found = np.logical_and(found, (total <= s.limit) | null[:, at].any(axis=1))
        return found

    # --- numbers ----------------------------------------------------------------------------------

    def solved(self, rng: np.random.Generator) -> bool:
        """Whether numbers anywhere in their columns were found that keep all rules."""
        if not all(len(s.low) for s in self._spans):
            return False
        low = np.array([[s.low.min() for s in self._spans]], dtype=np.int64)
        high = np.array([[s.high.max() for s in self._spans]], dtype=np.int64)
        return bool(self.drawn(low, high, np.zeros(low.shape, dtype=bool), rng)[1].all())

    def drawn(
        self,
        low: Integers,
        high: Integers,
        null: Masks,
        rng: np.random.Generator,
    ) -> tuple[Integers, Masks]:
        """Numbers in intervals, and which rows of them keep all rules."""
        low, high = low.copy(), high.copy()
        self.narrowed(low, high, null)
        values = np.where(null, 0, low)
        good = np.zeros(len(low), dtype=bool)
        waiting = np.flatnonzero(((low <= high) | null).all(axis=1))
        for _ in range(TRIES):
            if not len(waiting):
                break
            made = self._evenly(low[waiting], high[waiting], rng)
            fits = self._computed(made, low[waiting], high[waiting], null[waiting])
            fits &= self.kept(made, null[waiting])
            values[waiting[fits]] = made[fits]
            good[waiting[fits]] = True
            waiting = waiting[~fits]
        if len(waiting):
            made = self._in_turn(low[waiting], high[waiting], null[waiting], rng)
            fits = self.kept(made, null[waiting])
            fits &= ((made >= low[waiting]) & (made <= high[waiting]) | null[waiting]).all(axis=1)
            values[waiting[fits]] = made[fits]
            good[waiting[fits]] = True
        return values, good

    def _evenly(self, low: Integers, high: Integers, rng: np.random.Generator) -> Integers:
        found = np.empty_like(low)
        for i, spans in enumerate(self._spans):
            many = np.maximum(high[:, i] - low[:, i], 0) // spans.step
            found[:, i] = low[:, i] + rng.integers(0, many, endpoint=True) * spans.step
        return found

    def _computed(self, made: Integers, low: Integers, high: Integers, null: Masks) -> Masks:
        """Put in what sums fix, in place; which rows it leaves inside their intervals."""
        fits = np.ones(len(made), dtype=bool)
        for s, fixed in self.equalities:
            at = list(s.at)
            on = ~null[:, at].any(axis=1)
            weight = s.weights[s.at.index(fixed)]
            others = made[:, at] @ np.array(s.weights, dtype=np.int64) - made[:, fixed] * weight
            new = (s.limit - others) * weight
            made[on, fixed] = new[on]
            inside = (new >= low[:, fixed]) & (new <= high[:, fixed])
            fits &= ~on | (inside & (new % self._spans[fixed].step == 0))
        return fits

    def _in_turn(
        self, low: Integers, high: Integers, null: Masks, rng: np.random.Generator
    ) -> Integers:
        """One column after another, each in what those before leave of its interval."""
        fixed = {i for _, i in self.equalities}
        first = [i for i in rng.permutation(len(self.columns)).tolist() if i not in fixed]
        low, high = low.copy(), high.copy()
        for i in [*first, *sorted(fixed)]:
            step = self._spans[i].step
            many = np.maximum(high[:, i] - low[:, i], 0) // step
            low[:, i] += rng.integers(0, many, endpoint=True) * step
            high[:, i] = low[:, i]
            self.narrowed(low, high, null)
        return low

    def spans_of(self, v: int, attribute: Attribute) -> tuple[Integers, Integers]:
        """The ends of other cells of a column, in units."""
        found = _spans(attribute, self.unit, _step(self._attributes[v]))
        return found.low, found.high

    def units(self, v: int, value: Any) -> int | None:
        """A value of a column in units; None where it is no multiple of its step."""
        exact = number_of(value) / self.unit
        step = self._spans[self.columns.index(v)].step
        return int(exact) if exact.denominator == 1 and int(exact) % step == 0 else None

    def step_text(self, v: int) -> str:
        """What a column's numbers are multiples of, in words."""
        attribute = self._attributes[v]
        if attribute.kind.value == "real" and attribute.step is None:
            return "a power of two, as sampled ones are"
        return str(_step(attribute))

    def as_values(self, attribute: Attribute, units: Integers, null: Masks) -> Any:
        """Numbers in the policy's type, as a Polars series."""
        import polars as pl

        whole = self.unit.denominator
        kind = attribute.kind.value
        if kind == "date":
            found: Any = pl.Series(attribute.name, (units // whole).astype("datetime64[D]"))
            found = found.cast(pl.Date)
        elif kind == "timestamp":
            each = int(_A_DAY / self.unit)
            found = pl.Series(attribute.name, (units // each).astype("datetime64[us]"))
        elif kind == "integer":
            found = pl.Series(attribute.name, units // whole)
        else:
            found = pl.Series(attribute.name, units / np.float64(whole))
        if null.any():
            kept = pl.Series(~null)
            found = pl.select(
                pl.when(kept).then(found).otherwise(None).alias(attribute.name)
            ).to_series()
        return found


def _grain(attribute: Attribute) -> list[Fraction]:
    """What a column's numbers are multiples of."""
    if attribute.kind.value == "timestamp":
        return [_A_DAY]
    if attribute.kind.value != "real":
        return [Fraction(1)]
    if attribute.values is not None:
        return [number_of(v) for v in attribute.values]
    return [_step(attribute)]


def _step(attribute: Attribute) -> Fraction:
    if attribute.kind.value == "timestamp":
        return _A_DAY
    if attribute.kind.value != "real":
        return Fraction(1)
    if attribute.step is not None:
        return attribute.step
    edges = attribute.edges or (Fraction(0), Fraction(1))
    wide = max(abs(edges[0]), abs(edges[-1]), edges[-1] - edges[0])
    return Fraction(2) ** (math.ceil(math.log2(wide)) - FINEST)


def _spans(attribute: Attribute, unit: Fraction, step: Fraction | None = None) -> _Spans:
    """The cells of a column, in units."""
    step = _step(attribute) if step is None else step
    each = int(step / unit)
    if attribute.edges is not None:
        edges = attribute.edges
        top = attribute.bounds[1] if attribute.bounds else edges[-1]
        low = [math.ceil(e / step) for e in edges[:-1]]
        high = [math.ceil(e / step) - 1 for e in edges[1:]]
        high[-1] = math.floor(min(edges[-1], top) / step)
        return _Spans(_whole(attribute, low, each), _whole(attribute, high, each), each)
    values = attribute.values or ()
    if attribute.period is None:
        listed = _whole(attribute, [int(number_of(v) / unit) for v in values], 1)
        return _Spans(listed, listed, 1)
    assert attribute.bounds is not None
    least, most = (number_of(b) for b in attribute.bounds)
    starts = [number_of(v) for v in values]
    ends = [*starts[1:], number_of(after(values[-1], attribute.period))]
    first = [math.ceil(max(s, least) / step) for s in starts]
    last = [math.floor(min(e - step, most) / step) for e in ends]
    last = [max(f, n) for f, n in zip(first, last, strict=True)]
    return _Spans(_whole(attribute, first, each), _whole(attribute, last, each), each)


def _whole(attribute: Attribute, numbers: Sequence[int], each: int) -> Integers:
    if any(abs(n * each) >= MOST_UNIT for n in numbers):
        raise ArgumentError(
            f"rules: numbers of {attribute.name} are too large beside the steps of the rules' "
            "columns to be added exactly"
        )
    return np.array(numbers, dtype=np.int64) * each

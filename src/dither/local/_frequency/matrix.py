"""Any matrix as a channel, and any public metric: whoever has a law of their own brings it here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Codes, DomainLike, Shares
from dither.local._coins import ONE, exp_bounds
from dither.local._domain import Domain, bind
from dither.local._guarantee import ClassPair, Guarantee
from dither.local._limits import MOST_EPSILON, checked_epsilon
from dither.local._oracles import FiniteChannel, log_ratio
from dither.numeric import Words
from dither.numeric import _directed as directed

Weights = tuple[tuple[int, ...], ...]
"""By value and report: how many of 2**64 words draw it."""

_MOST_CELLS = 1 << 20
_MOST_COMPARED = 1 << 22
_MOST_PLACES = 128
_CHUNK = 1 << 22
# Off by some 1e-38 of a weight: far less than the 2**-64 of a word.
_DECIMALS = Context(prec=40)
# Left for rounding weights to words, as a share of the budget.
_SLACK = 1 - Fraction(1, 1 << 16)
_ALL = ("all values", "all values")


class _Drawn(FiniteChannel):
    """A law in whole numbers of 2**-64, drawn by one word a person."""

    weights: Weights

    @property
    def outputs(self) -> int:
        """How many different reports there are; a report is a column's number."""
        return len(self.weights[0])

    def exact(self, x: int, y: int) -> Fraction:
        """The weight over 2**64."""
        return Fraction(self.weights[x][y], ONE)

    @cached_property
    def matrix(self) -> Shares:
        """The law in floating point, shape (k, outputs)."""
        return np.array([[w / ONE for w in row] for row in self.weights])

    @property
    def decoder(self) -> Shares:
        """The matrix's pseudo-inverse, transposed.

        Raises
        ------
        ArgumentError
            No estimate is unbiased: some values have laws that others' mix to.
        """
        law = self.matrix
        sizes = np.linalg.svd(law, compute_uv=False)
        # Below this a share's error would be some billions of what a report moves.
        if law.shape[1] < law.shape[0] or sizes[-1] < 1e-9 * sizes[0]:
            raise ArgumentError(
                "shares cannot be estimated from this channel's reports: the rows of its matrix "
                "depend on one another, so that different shares give the same reports"
            )
        return np.asarray(np.linalg.pinv(law).T)

    @property
    def largest_step(self) -> Shares:
        """The widest difference of the decoder's weights."""
        return np.asarray(np.ptp(self.decoder, axis=1))

    @cached_property
    def _thresholds(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """By value and report but the last: below which words draw it or one before, or all do."""
        sums = [list(accumulate(row[:-1])) for row in self.weights]
        whole = np.array([[one == ONE for one in row] for row in sums], dtype=bool)
        least = [[min(one, ONE - 1) for one in row] for row in sums]
        return np.array(least, dtype=np.uint64), whole

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """One word a person, held against every threshold, whatever the value."""
        least, whole = self._thresholds
        found = np.empty(codes.size, dtype=np.int64)
        step = max(1, _CHUNK // max(1, least.shape[1]))
        for start in range(0, codes.size, step):
            part = codes[start : start + step]
            drawn = words.words(part.size)
            beyond = (drawn[:, None] >= least[part]) & ~whole[part]
            found[start : start + step] = beyond.sum(axis=1)
        return found


@dataclass(frozen=True, init=False)
class MatrixChannel(_Drawn):
    """Any matrix of chances: its exact guarantee, its estimate and its attack.

    Parameters
    ----------
    matrix : sequence of sequence of number, shape (k, m)
        ``matrix[x][y]`` is the chance that the value x is reported as y. Rows sum to 1, within
        1e-9; numbers are read exactly, and each row is rounded to whole numbers of 2**-64 that sum
        to 1.
    domain : Domain, int or list, optional
        The k values in the rows' order; 0 to k - 1 where left out.
    epsilon : number, optional
        At which the guarantee is stated; the least pure epsilon of the matrix where left out.

    Raises
    ------
    ArgumentError
        The matrix is not one of chances: a row is too short, has a number below 0, or does not sum
        to 1. Or no pure epsilon holds, and none is given.

    Notes
    -----
    Law. The rounded matrix, exactly as drawn: `exact` gives it, and everything else is computed
    from it.

    Guarantee (local DP, two values of one person). Without `epsilon`: the largest log-ratio of two
    chances of one report, rounded up. With it: that, with delta the largest over all pairs of
    values of the hockey-stick divergence, rounded up.

    Error. Shares by the pseudo-inverse of the matrix are unbiased, and refused where its rows
    depend on one another.

    References
    ----------
    Kairouz, Oh and Viswanath, JMLR 2016 (any local randomiser is a matrix); Gursoy, Tamersoy,
    Truex, Wei and Liu, TDSC 2019 (condensed local DP, a matrix of a metric).

    Examples
    --------
    >>> from dither import local
    >>> channel = local.MatrixChannel([["0.7", "0.2", "0.1"], ["0.1", "0.2", "0.7"]], ["no", "yes"])
    >>> print(channel.guarantee)
    epsilon = 1.94592 between any two values
    >>> print(local.MatrixChannel([[1, 0], ["0.5", "0.5"]], epsilon=1).guarantee.delta)
    0.5
    """

    kind: ClassVar[str] = "matrix"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"matrix": [["0.7", "0.2", "0.1"], ["0.1", "0.2", "0.7"]]}),
    )

    weights: Weights

    def __init__(self, matrix: Any, domain: DomainLike | None = None, epsilon: Any = None) -> None:
        weights = _read(matrix)
        found = Domain(len(weights) if domain is None else domain)
        if len(found) != len(weights):
            raise ArgumentError(
                f"matrix must have one row for each of the {len(found)} values: it has "
                f"{len(weights)}"
            )
        bind(self, weights=weights, domain=found)
        least = self._least
        if epsilon is None and least == 0:
            raise ArgumentError("matrix must not have one law for all values: reports say nothing")
        if epsilon is None and not math.isfinite(least):
            raise ArgumentError(
                "matrix has a report that one value excludes and another does not, so no pure "
                "epsilon holds: give epsilon, at which the guarantee states its delta"
            )
        if epsilon is None and least > MOST_EPSILON:
            raise ArgumentError(
                f"matrix has chances so far apart that only an epsilon above {MOST_EPSILON} holds "
                "without a delta, which protects nothing: give epsilon, at which the guarantee "
                "states its delta"
            )
        bind(self, epsilon=checked_epsilon(Fraction(least) if epsilon is None else epsilon))
        _ = self.guarantee  # what cannot be computed is refused before anybody reports

    @property
    def _least(self) -> float:
        """The least pure epsilon, rounded up."""
        ends = {(max(column), min(column)) for column in zip(*self.weights, strict=True)}
        return max(log_ratio(Fraction(p), Fraction(q)) for p, q in ends if p > 0)

    def settings(self) -> dict[str, Any]:
        """The matrix as it is drawn, the domain, and epsilon."""
        rows = [[str(Fraction(w, ONE)) for w in row] for row in self.weights]
        return {"matrix": rows, "domain": self.domain.to_dict(), "epsilon": str(self.epsilon)}

    @cached_property
    def guarantee(self) -> Guarantee:
        """epsilon, and delta where it is below the least pure one."""
        least = self._least
        if least <= self.epsilon:
            return Guarantee.uniform(self.epsilon)
        delta = directed.float_up(_largest_delta(self.weights, self.epsilon))
        return Guarantee(self.epsilon, _ALL[:1], {_ALL: ClassPair(delta, least)})


def _read(matrix: Any) -> Weights:
    try:
        rows = [list(row) for row in matrix]
    except TypeError:
        raise ArgumentError("matrix must be a list of rows of numbers") from None
    if len(rows) < 2 or not rows[0] or len({len(row) for row in rows}) > 1:
        raise ArgumentError("matrix must have at least two rows, all of one length")
    if len(rows) * len(rows[0]) > _MOST_CELLS:
        raise ArgumentError(f"matrix must have at most {_MOST_CELLS:,} numbers")
    return tuple(_row(x, row) for x, row in enumerate(rows))


def _row(x: int, row: list[Any]) -> tuple[int, ...]:
    chances = [_checks.exact(f"matrix[{x}]", one) for one in row]
    total = sum(chances, Fraction(0))
    if min(chances) < 0:
        raise ArgumentError(f"matrix[{x}] must not have numbers below 0")
    # As far as floats that were divided by their sum may be from 1.
    if abs(total - 1) > Fraction(1, 10**9):
        raise ArgumentError(
            f"matrix[{x}] must sum to 1 within 1e-9: it is off by {float(total - 1):.3g}; divide "
            "each row by its sum, in doubles"
        )
    return _words([one / total for one in chances])


def _words(chances: Sequence[Fraction]) -> tuple[int, ...]:
    """Chances in whole numbers of 2**-64: rounded down, and what is left to the largest of them."""
    found = [math.floor(one * ONE) for one in chances]
    found[found.index(max(found))] += ONE - sum(found)
    return tuple(found)


def _largest_delta(weights: Weights, epsilon: Fraction) -> Fraction:
    """The largest hockey-stick divergence of two rows."""
    k, m = len(weights), len(weights[0])
    if k * k * m > _MOST_COMPARED:
        raise ArgumentError(
            f"matrix is too large for a delta: values squared times reports must be at most "
            f"{_MOST_COMPARED:,}; leave epsilon out where a pure one holds"
        )
    # A lower bound of e^epsilon takes less from p, so that delta is never too small.
    low, _ = exp_bounds(epsilon)
    a, b = low.numerator, low.denominator
    most = max(
        sum(max(0, b * p - a * q) for p, q in zip(one, other, strict=True))
        for one in weights
        for other in weights
    )
    return Fraction(most, b * ONE)


@dataclass(frozen=True, init=False)
class MetricChannel(_Drawn):
    """Values of any public metric: near ones look alike, far ones less so.

    Parameters
    ----------
    domain : Domain, int or list
        The k values, at most 128.
    distance : callable or sequence of sequence of number, shape (k, k)
        ``distance(a, b)`` of two values, or a matrix of distances in the domain's order: symmetric,
        0 from a value to itself and above 0 to others, and never longer by way of a third value.
        It is public. Of two directions that differ by a rounding, the shorter one counts.
    epsilon : number
        Of each unit of distance; times the largest distance at most 30.
    unit : str
        The unit's name, for reading.

    Raises
    ------
    ArgumentError
        The distances are no metric, and which values show it; or epsilon is out of range.

    Notes
    -----
    Law. Pr[y | x] = a(y)·exp(-epsilon·d(x, y)), with a(y) such that all rows sum to 1, where some
    a >= 0 does; else proportional to exp(-epsilon·d(x, y)/2). Both are rounded to whole numbers of
    2**-64, with 2**-16 of epsilon kept back for it.

    Guarantee (metric local DP). Between two values of one person at distance d the report's law
    changes by a factor of at most exp(epsilon·d): seen for all values and reports, in whole
    numbers, as the channel is made.

    Error. Shares by inverting the matrix are unbiased, but of great variance where `epsilon` is
    small; ``estimate(method="likelihood")`` is biased and far smoother.

    References
    ----------
    Chatzikokolakis, Andrés, Bordenabe and Palamidessi, PETS 2013 (metric privacy);
    Chatzikokolakis, ElSalamouny and Palamidessi, JCS 2017 (the first law, of tight constraints);
    Gursoy, Tamersoy, Truex, Wei and Liu, TDSC 2019 (the second, there condensed local DP).

    Examples
    --------
    >>> from dither import local
    >>> hours = local.MetricChannel(24, lambda a, b: min(abs(a - b), 24 - abs(a - b)), "0.5",
    ...     unit="hour")
    >>> print(hours.guarantee)
    epsilon = 0.5 for each hour between two values; 6 over all of them
    >>> hours.matrix[0, [0, 1, 12]].round(3)
    array([0.246, 0.149, 0.001])
    """

    kind: ClassVar[str] = "metric"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 3, "distance": [[0, 1, 1], [1, 0, 1], [1, 1, 0]], "epsilon": 1}),
    )

    epsilon: Fraction
    """Between the two values that are farthest from each other."""
    weights: Weights
    distances: tuple[tuple[Fraction, ...], ...]
    epsilon_per_unit: Fraction
    unit: str

    def __init__(
        self,
        domain: DomainLike,
        distance: Callable[[Any, Any], Any] | Sequence[Sequence[Any]],
        epsilon: Any,
        *,
        unit: str = "unit",
    ) -> None:
        found = Domain(domain)
        if len(found) > _MOST_PLACES:
            raise ArgumentError(f"domain must have at most {_MOST_PLACES} values")
        distances = _distances(found, distance)
        per_unit = _checks.positive("epsilon", epsilon)
        flat = [one for row in distances for one in row if one]
        if not per_unit * min(flat) >= Fraction(1, 1 << 10) or per_unit * max(flat) > 30:
            raise ArgumentError(
                "epsilon times the distance of two values must be from 2**-10 to 30"
            )
        bind(
            self,
            domain=found,
            epsilon=per_unit * max(flat),
            distances=distances,
            epsilon_per_unit=per_unit,
            unit=str(unit),
            weights=_metric_law(distances, per_unit),
        )

    def settings(self) -> dict[str, Any]:
        """The domain, all distances, and epsilon for each unit of them."""
        rows = [[str(one) for one in row] for row in self.distances]
        return {
            "domain": self.domain.to_dict(),
            "distance": rows,
            "epsilon": str(self.epsilon_per_unit),
            "unit": self.unit,
        }

    @property
    def guarantee(self) -> Guarantee:
        """epsilon for each unit of distance."""
        pairs = {_ALL: ClassPair(0.0, directed.float_up(self.epsilon))}
        return Guarantee(
            self.epsilon, _ALL[:1], pairs, per_unit=self.epsilon_per_unit, unit=self.unit
        )


def _distances(domain: Domain, distance: Any) -> tuple[tuple[Fraction, ...], ...]:
    """Distances, seen to be those of a metric."""
    values = list(domain.values)
    if callable(distance):
        try:
            rows = [[distance(a, b) for b in values] for a in values]
        except TypeError as error:
            raise ArgumentError("distance must be a function of two values") from error
    else:
        try:
            rows = [list(row) for row in distance]
        except TypeError:
            raise ArgumentError(
                "distance must be a function of two values, or a list of rows of numbers"
            ) from None
    if len(rows) != len(values) or any(len(row) != len(values) for row in rows):
        raise ArgumentError(f"distance must have {len(values)} rows of {len(values)} numbers")
    found = tuple(
        tuple(_checks.exact(f"distance[{x}][{y}]", one) for y, one in enumerate(row))
        for x, row in enumerate(rows)
    )
    for x, row in enumerate(found):
        for y, one in enumerate(row):
            if (one == 0) is not (x == y) or one < 0:
                raise ArgumentError(
                    f"distance must be 0 from a value to itself and above 0 to others: from "
                    f"{values[x]!r} to {values[y]!r} it is {float(one):.6g}"
                )
            # As far as formulas in floats may be from themselves turned round.
            if abs(one - found[y][x]) > Fraction(1, 10**9) * one:
                raise ArgumentError(
                    f"distance must be the same both ways: from {values[x]!r} to {values[y]!r} it "
                    f"is {float(one):.12g}, and back {float(found[y][x]):.12g}"
                )
    # The shorter of both ways promises more.
    found = tuple(
        tuple(min(one, found[y][x]) for y, one in enumerate(row)) for x, row in enumerate(found)
    )
    _see_triangles(values, found)
    return found


def _see_triangles(values: list[Any], found: tuple[tuple[Fraction, ...], ...]) -> None:
    """Refuse distances that are longer than a way round; roundings of floats are let pass."""
    approximate = np.array(found, dtype=np.float64)
    for z in range(len(values)):
        round_about = approximate[:, z, None] + approximate[None, z, :]
        worst = approximate - round_about * (1 + 1e-9)
        x, y = np.unravel_index(int(worst.argmax()), worst.shape)
        if worst[x, y] > 0:
            raise ArgumentError(
                f"distance must not be longer than a way round: from {values[x]!r} to "
                f"{values[y]!r} it is {approximate[x, y]:.6g}, and by way of {values[z]!r} "
                f"{round_about[x, y]:.6g}"
            )


@lru_cache(maxsize=16)
def _metric_law(distances: tuple[tuple[Fraction, ...], ...], per_unit: Fraction) -> Weights:
    """Weights that keep the promise, the tighter law first."""
    for made in (_tight, _halved):
        law = made(distances, per_unit * _SLACK)
        if law is not None:
            total = [sum(row, Decimal(0)) for row in law]
            rows = [
                [Fraction(p) / Fraction(t) for p in row] for row, t in zip(law, total, strict=True)
            ]
            weights = tuple(_words(row) for row in rows)
            if _keeps(weights, distances, per_unit):
                return weights
    raise ArgumentError(
        "epsilon is too large for distances so different from each other: the chance of a far "
        "value would be below what 64 bits can draw"
    )


def _nearness(distances: tuple[tuple[Fraction, ...], ...], rate: Fraction) -> list[list[Decimal]]:
    """exp(-rate·d). Decimal arithmetic rounds correctly, so every machine has the same."""
    known: dict[Fraction, Decimal] = {}
    for row in distances:
        for d in row:
            if d not in known:
                away = rate * d
                power = _DECIMALS.divide(Decimal(-away.numerator), Decimal(away.denominator))
                known[d] = _DECIMALS.exp(power)
    return [[known[d] for d in row] for row in distances]


def _halved(distances: tuple[tuple[Fraction, ...], ...], rate: Fraction) -> list[list[Decimal]]:
    """Proportional to exp(-rate·d/2): each row's sum may change by as much as its terms."""
    return _nearness(distances, rate / 2)


def _tight(
    distances: tuple[tuple[Fraction, ...], ...], rate: Fraction
) -> list[list[Decimal]] | None:
    """a(y)·exp(-rate·d), all rows of which sum to 1; None where that needs an a below 0."""
    near = _nearness(distances, rate)
    factors = _solved([[*row, Decimal(1)] for row in near])
    if factors is None or min(factors) < 0:
        return None
    return [[_DECIMALS.multiply(a, p) for a, p in zip(factors, row, strict=True)] for row in near]


def _solved(rows: list[list[Decimal]]) -> list[Decimal] | None:
    """The solution of linear equations, each a row that ends in its right side."""
    k, c = len(rows), _DECIMALS
    for i in range(k):
        pivot = max(range(i, k), key=lambda r: abs(rows[r][i]))
        if abs(rows[pivot][i]) < Decimal("1e-20"):
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        head = rows[i] = [c.divide(one, rows[i][i]) for one in rows[i]]
        for r in range(k):
            if r != i and rows[r][i]:
                times = rows[r][i]
                rows[r] = [
                    c.subtract(one, c.multiply(times, h))
                    for one, h in zip(rows[r], head, strict=True)
                ]
    return [row[-1] for row in rows]


def _keeps(
    weights: Weights, distances: tuple[tuple[Fraction, ...], ...], per_unit: Fraction
) -> bool:
    """Whether no report is likelier by more than exp(per_unit·d), in whole numbers."""
    bounds = {d: exp_bounds(per_unit * d)[0] for row in distances for d in row if d}
    for x, one in enumerate(weights):
        for other_x, other in enumerate(weights):
            if x != other_x:
                low = bounds[distances[x][other_x]]
                a, b = low.numerator, low.denominator
                if any(p * b > a * q for p, q in zip(one, other, strict=True)):
                    return False
    return True

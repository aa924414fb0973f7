"""d-privacy: values that are near each other are hidden from each other, far ones less."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Codes, DomainLike, Shares
from dither.local._coins import exp_bounds
from dither.local._domain import Domain, bind, column
from dither.local._guarantee import ClassPair, Guarantee
from dither.local._limits import checked_epsilon
from dither.local._oracles import FiniteChannel
from dither.noise._cells import WeightedOutcomes
from dither.numeric import Words
from dither.numeric import _directed as directed

_MAX_CELLS = 1 << 12
_MAX_REACH = 600
_BASE = 1 << 64
# The rest is left for cutting weights to integers: of the least budget of a cell, 2^-24.
_SLACK = 1 - Fraction(1, 1 << 16)
_LEAST = Fraction(1, 1 << 8)
# Off by some 1e-23 of a weight, far less than the 2^-31 that cutting takes.
_DECIMALS = Context(prec=24)
_ALL = ("all values", "all values")


class _Metric(FiniteChannel):
    """A square matrix of full rank, read by its inverse."""

    @property
    def outputs(self) -> int:
        """A report is the code of a value."""
        return len(self.domain)

    @property
    def decoder(self) -> Shares:
        """The inverse of the matrix, transposed."""
        return np.asarray(np.linalg.inv(self.matrix).T)

    @property
    def largest_step(self) -> Shares:
        """The widest difference of the decoder's weights."""
        return np.asarray(np.ptp(self.decoder, axis=1))

    def noise_variance(self, frequencies: Shares) -> Shares:
        """The diagonal of `noise_covariance`, without the rest of it."""
        return np.asarray(self.decoder**2 @ (frequencies @ self.matrix) - frequencies)


@dataclass(frozen=True, init=False)
class TruncatedGeometric(_Metric):
    """Ordered values, each hidden among its neighbours.

    Parameters
    ----------
    domain : Domain, int or list
        The k values in their order, at most 4,096.
    epsilon_per_step : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or too many, or `epsilon_per_step` is out of
        range.

    Notes
    -----
    Law. Noise Z on the integers, and x + Z is moved to the nearest value of the domain::

        Pr[y | x] proportional to  u(|y - x|) inside,   E(distance) at the two ends
        E(k-1) = 2**64,  E(j) = E(j+1) + u(j),  u(j) = min(floor((e-1)·E(j+1)), floor(e·u(j+1)))

    in integers, with e = e^epsilon_per_step rounded down.

    Guarantee (metric local DP). Between two values of one person that are d steps apart the
    report's law changes by a factor of at most e^(epsilon_per_step·d). By construction u(j) <=
    e·u(j+1), E(j) <= e·E(j+1), both decrease, and every row sums to u(0) + 2E(1): one step changes
    no chance by more than e.

    Error. Shares by inverting the matrix are unbiased, but of great variance where epsilon_per_step
    is small; ``estimate(method="likelihood")`` is biased and far smoother.

    References
    ----------
    Chatzikokolakis, Andrés, Bordenabe and Palamidessi, PETS 2013; Ghosh, Roughgarden and
    Sundararajan, STOC 2009.

    Examples
    --------
    >>> channel = TruncatedGeometric(["never", "rarely", "weekly", "daily"], epsilon_per_step=1)
    >>> print(channel.guarantee)
    epsilon = 1 for each step between two values; 3 over all of them
    >>> channel.matrix.round(3)[0]
    array([0.731, 0.17 , 0.063, 0.036])
    """

    kind: ClassVar[str] = "truncated-geometric"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 4, "epsilon_per_step": 1}),
    )

    epsilon: Fraction
    """Between the first value and the last."""
    epsilon_per_step: Fraction

    def __init__(self, domain: DomainLike, epsilon_per_step: Any) -> None:
        found, step = Domain(domain), checked_epsilon(epsilon_per_step, "epsilon_per_step")
        if len(found) > _MAX_CELLS:
            raise ArgumentError(f"domain must have at most {_MAX_CELLS:,} values")
        if step < Fraction(1, 1 << 20):
            raise ArgumentError("epsilon_per_step must be at least 2**-20")
        bind(self, domain=found, epsilon=step * (len(found) - 1), epsilon_per_step=step)

    @property
    def guarantee(self) -> Guarantee:
        """epsilon for each step between two values."""
        pairs = {_ALL: ClassPair(0.0, directed.float_up(self.epsilon))}
        return Guarantee(self.epsilon, _ALL[:1], pairs, per_unit=self.epsilon_per_step, unit="step")

    def exact(self, x: int, y: int) -> Fraction:
        """The law above: u inside, E at the ends."""
        inside, ends, _ = _steps(self.epsilon_per_step, len(self.domain))
        last = len(self.domain) - 1
        weight = ends[abs(y - x)] if y in (0, last) else inside[abs(y - x)]
        return Fraction(weight, inside[0] + 2 * ends[1])

    @property
    def matrix(self) -> Shares:
        """The law in floating point, shape (k, k)."""
        inside, ends, _ = _steps(self.epsilon_per_step, len(self.domain))
        total = inside[0] + 2 * ends[1]
        k = len(self.domain)
        away = np.abs(np.arange(k)[:, None] - np.arange(k))
        found: Shares = np.array([*(u / total for u in inside), 0.0])[away]
        at_ends = np.array([e / total for e in ends])
        found[:, 0], found[:, -1] = at_ends[away[:, 0]], at_ends[away[:, -1]]
        return found

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """The code plus noise, moved into the domain."""
        k = len(self.domain)
        _, _, noise = _steps(self.epsilon_per_step, k)
        moved = codes + noise.draw(codes.size, words) - (k - 1)
        return np.asarray(np.clip(moved, 0, k - 1))


@dataclass(frozen=True, init=False)
class GridPrivacy(_Metric):
    """Places on a public grid, each hidden among those around it.

    Parameters
    ----------
    rows, columns : int
        Of the grid, each at least 2; at most 4,096 cells in all. The value of a cell is
        row·columns + column.
    cell : number
        The side of a cell, in units of distance.
    epsilon_per_unit : number
        Of each unit of distance, such as ln(4) for 200 metres: 0.00693 a metre. Times `cell` it
        must be from 2**-8 to 40.
    unit : str
        The unit's name, for reading.

    Raises
    ------
    ArgumentError
        The grid is too small or too large, or a budget is out of range.

    Notes
    -----
    Law. Z is drawn from a square of cells, at most H in both directions, with integer weights w(z)
    = floor(2**S·e^(-c|z|)), and x + Z is moved to the nearest cell of the grid.

    Guarantee (metric local DP, geo-indistinguishability). Between two cells of one person whose
    centres are d units apart the report's law changes by a factor of at most
    e^(epsilon_per_unit·d). Places far apart are distinguished. Proof, in units of a cell's side,
    with budget b = epsilon_per_unit·cell and c = b(1 - 2**-16): let F be the places that move to y.
    Summed over the z in F within reach of both x and x', w(z - x) <= e^(c·d)(1+2**-28)·w(z - x').
    Those in reach of x only are farther than H - D from it (D the grid's longer side less 1), and
    together weigh at most 8·sum over m > H-D of m·e^(-cm), which H makes less than 2**-28·w(y - x).
    So the ratio is at most e^(c·d)·(1 + 2**-26), which b >= 2**-8 and d >= 1 keep below e^(b·d).

    Error. As for `TruncatedGeometric`, where `epsilon_per_unit`·`cell` is small.

    References
    ----------
    Chatzikokolakis, Andrés, Bordenabe and Palamidessi, PETS 2013; Andrés et al., CCS 2013 (planar
    Laplace, there with real coordinates and a correction for floats, here without either).

    Examples
    --------
    >>> channel = GridPrivacy(5, 8, cell="0.5", epsilon_per_unit=2, unit="km")
    >>> print(channel.guarantee)
    epsilon = 2 for each km between two values; 8.063 over all of them
    >>> channel.locate([0.2, 3.9], [0.2, 2.4]).tolist()
    [0, 39]
    """

    kind: ClassVar[str] = "grid-privacy"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"rows": 2, "columns": 2, "cell": 1, "epsilon_per_unit": 1}),
    )

    epsilon: Fraction
    """Between two corners that face each other, rounded up."""
    rows: int
    columns: int
    cell: Fraction
    epsilon_per_unit: Fraction
    unit: str

    def __init__(
        self, rows: int, columns: int, cell: Any, epsilon_per_unit: Any, *, unit: str = "unit"
    ) -> None:
        # Places along one line are ordered values, for TruncatedGeometric.
        _checks.whole("rows", rows, 2)
        _checks.whole("columns", columns, 2)
        if rows * columns > _MAX_CELLS:
            raise ArgumentError(f"the grid must have at most {_MAX_CELLS:,} cells")
        side = _checks.positive("cell", cell)
        per_unit = _checks.positive("epsilon_per_unit", epsilon_per_unit)
        if not _LEAST <= side * per_unit <= 40:
            raise ArgumentError("cell times epsilon_per_unit must be from 2**-8 to 40")
        diagonal = directed.sqrt_upper(Fraction((rows - 1) ** 2 + (columns - 1) ** 2))
        bind(
            self,
            domain=Domain(rows * columns),
            epsilon=diagonal * side * per_unit,
            rows=rows,
            columns=columns,
            cell=side,
            epsilon_per_unit=per_unit,
            unit=str(unit),
        )
        if self.reach > _MAX_REACH:
            raise ArgumentError(
                "the noise would reach too many cells: use larger cells, or fewer of them"
            )

    @property
    def reach(self) -> int:
        """H, how many cells the noise may go in either direction before it is moved back."""
        c = float(self.cell * self.epsilon_per_unit * _SLACK)
        longer = max(self.rows, self.columns) - 1
        room = -29 * math.log(2) - c * math.hypot(self.rows - 1, self.columns - 1) - math.log(8)
        r, m = math.exp(-c), 1
        while (m + 1) * -c + math.log((m + 1 - m * r) / (1 - r) ** 2) > room:
            m += 1
            if m > _MAX_REACH:
                break
        return longer + m

    @property
    def guarantee(self) -> Guarantee:
        """epsilon for each unit of distance."""
        pairs = {_ALL: ClassPair(0.0, directed.float_up(self.epsilon))}
        return Guarantee(
            self.epsilon, _ALL[:1], pairs, per_unit=self.epsilon_per_unit, unit=self.unit
        )

    def locate(self, across: Any, down: Any) -> Codes:
        """Values of the cells that hold some points.

        Parameters
        ----------
        across, down : array of float, shape (n,)
            Distances from the grid's first corner along its columns and its rows, in units.

        Raises
        ------
        ArgumentError
            A point is not on the grid, or is not a number. No point is shown.
        """
        side = float(self.cell)
        try:
            place = [np.floor(column(v).astype(np.float64) / side) for v in (down, across)]
        except (TypeError, ValueError):
            raise ArgumentError("across and down must be columns of numbers") from None
        if place[0].size != place[1].size:
            raise ArgumentError("across and down must be of one length")
        inside = (place[0] >= 0) & (place[0] < self.rows)
        inside &= (place[1] >= 0) & (place[1] < self.columns)
        if not inside.all():
            raise ArgumentError(
                f"points must be on the grid: {int((~inside).sum())} of {inside.size} are not"
            )
        return np.asarray(place[0] * self.columns + place[1]).astype(np.int64)

    def exact(self, x: int, y: int) -> Fraction:
        """The summed weights of the places that move to y, over the sum of all."""
        tables, total = self._law
        (a, b), (r, c) = divmod(x, self.columns), divmod(y, self.columns)
        down, across = _border(r, self.rows), _border(c, self.columns)
        return Fraction(tables[down, across][abs(r - a)][abs(c - b)], total)

    @property
    def matrix(self) -> Shares:
        """The law in floating point, shape (k, k)."""
        tables, total = self._law
        dense = {
            key: np.array([[w / total for w in row] for row in table])
            for key, table in tables.items()
        }
        r, c = np.divmod(np.arange(len(self.domain)), self.columns)
        down, across = np.abs(r[:, None] - r), np.abs(c[:, None] - c)
        found = np.empty(down.shape)
        kinds = [
            (_border(i, self.rows), _border(j, self.columns)) for i, j in zip(r, c, strict=True)
        ]
        for y, kind in enumerate(kinds):
            found[:, y] = dense[kind][down[:, y], across[:, y]]
        return found

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """The place plus noise, moved to the nearest cell of the grid."""
        *_, noise = _plane(self.cell * self.epsilon_per_unit, self.reach)
        places = noise.draw(codes.size, words)
        signs = words.words(codes.size)
        found = []
        for axis, size in enumerate((self.rows, self.columns)):
            code = (codes // self.columns, codes % self.columns)[axis]
            step = (places // (self.reach + 1), places % (self.reach + 1))[axis]
            negative = (signs >> np.uint64(axis)) & np.uint64(1) == 1
            found.append(np.clip(code + np.where(negative, -step, step), 0, size - 1))
        return np.asarray(found[0] * self.columns + found[1])

    @property
    def _law(self) -> tuple[dict[tuple[int, int], list[list[int]]], int]:
        return _folded(self.cell * self.epsilon_per_unit, self.reach, self.rows, self.columns)


@lru_cache(maxsize=16)
def _steps(epsilon: Fraction, k: int) -> tuple[list[int], list[int], WeightedOutcomes]:
    """u(0..k-2), E(0..k-1), and the noise's cells from -(k-1) to k-1."""
    e, _ = exp_bounds(epsilon)
    ends, inside = [_BASE], [math.floor((e - 1) * _BASE)]
    ends.append(ends[-1] + inside[-1])
    for _ in range(k - 2):
        # Rounded down, neither u nor E, to which it is added, grows by more than e^epsilon a step.
        inside.append(min(math.floor((e - 1) * ends[-1]), math.floor(e * inside[-1])))
        ends.append(ends[-1] + inside[-1])
    inside, ends = inside[::-1], ends[::-1]
    half = [*inside[1:], ends[-1]]
    return inside, ends, WeightedOutcomes([*half[::-1], inside[0], *half])


@lru_cache(maxsize=4)
def _plane(budget: Fraction, reach: int) -> tuple[list[list[int]], int, WeightedOutcomes]:
    """Weights of a quarter of the square, their sum over all of it, and its cells.

    Decimal arithmetic rounds correctly, so every machine has the same weights.
    """
    c = budget * _SLACK
    rate = _DECIMALS.divide(c.numerator, c.denominator)
    # The least weight is about 2^31, so that cutting it to an integer moves it by far less than
    # what the slack leaves: 2^-16 of 2^-8 at least, from one cell to the next.
    bits = math.ceil(float(c) * math.sqrt(2) * reach / math.log(2)) + 31
    scale = _DECIMALS.power(2, bits)
    table = [[0] * (reach + 1) for _ in range(reach + 1)]
    for i in range(reach + 1):
        for j in range(i + 1):
            away = _DECIMALS.sqrt(i * i + j * j)
            ideal = _DECIMALS.exp(-_DECIMALS.multiply(rate, away))
            table[i][j] = table[j][i] = int(_DECIMALS.multiply(ideal, scale))
    # Off the axes a weight stands for both signs.
    shares = [w << (i > 0) << (j > 0) for i, row in enumerate(table) for j, w in enumerate(row)]
    return table, sum(shares), WeightedOutcomes(shares)


@lru_cache(maxsize=4)
def _folded(
    budget: Fraction, reach: int, rows: int, columns: int
) -> tuple[dict[tuple[int, int], list[list[int]]], int]:
    """Weights by distance in rows and columns, for each kind of border that y may lie on.

    A kind is 0 inside and 1 at a border.
    """
    table, total, _ = _plane(budget, reach)
    wide = {kind: [_along(row, kind)[:columns] for row in table] for kind in (0, 1)}
    found = {}
    for across, lines in wide.items():
        turned = [list(line) for line in zip(*lines, strict=True)]
        for down in (0, 1):
            summed = [_along(line, down)[:rows] for line in turned]
            found[down, across] = [list(line) for line in zip(*summed, strict=True)]
    return found, total


def _along(weights: list[int], kind: int) -> list[int]:
    """For each distance: its weight, or that of all from it outwards."""
    if kind == 0:
        return weights
    outwards = list(weights)
    for i in range(len(outwards) - 2, -1, -1):
        outwards[i] += outwards[i + 1]
    return outwards


def _border(place: int, size: int) -> int:
    return int(place in (0, size - 1))

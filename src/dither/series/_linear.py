"""Series as they are released: sums of all units' vectors, seen through a public matrix.

With v_u the vector of unit u in steps of the lattice (`_readings`), what leaves is q = M·Σ v_u with
independent discrete noise of one law on every coordinate, for a matrix M of whole numbers:

- *windows*: sums of so many readings in a row, M of zeros and ones;
- *Fourier*: the first k coefficients of the real orthonormal basis of sines and cosines, times
  2**12 and the root of T, rounded (Rastogi and Nath, "Differentially private aggregation of
  distributed time-series with transformation and encryption", SIGMOD 2010). Their noise is k
  coordinates of Laplace noise for an L2 norm, which they bound by √k; what they take for complex
  numbers has two coordinates each, so real ones are counted here, k in all;
- *Haar*: in every node of a binary tree over time the left half minus the right one, and the sum of
  all (Xiao, Wang and Gehrke, "Differential privacy via wavelet transforms", TKDE 2011), times a
  weight for its size s. As sums with weights of 1, one law of noise on all of them is what theirs
  say; that is best for what is bounded in the L1 norm. Three weightings s^0, s^(-1/4), s^(-1/2) are
  held against each other before anything is read: which has the least mean variance of a stretch.

*Guarantee.* Neighbours move Σ v by a vector d that the level bounds: its support is at most w times
in a row, each |d_t| <= A, and where a unit is bounded, ‖d‖₁ <= B and ‖d‖₂ <= C. Then, with M_t the
columns of M, G = M·Mᵀ and λ the largest row sum of |G| (Gershgorin: no eigenvalue is above it)::

    l1   <= A·Σ_j Σ_t∈window |M_jt|,  B·max ‖M_t‖₁
    l2²  <= A²·Σ_j (Σ_t∈window |M_jt|)²,  B²·max ‖M_t‖₂²,  λ·A²·w,  λ·A·B,  λ·C²
    linf <= A·max_j Σ_t∈window |M_jt|,  B·max |M_jt|

in whole numbers, the worst window taken; the least of each holds, and `Sensitivity.of` tightens
them by one another. (λ·A·B, since ‖d‖₂² <= ‖d‖₁·max|d_t|.)

What is read of q is linear: x = M⁺·q, the orthogonal projection of Σ v on what M keeps. Its
interval is about the noise, and not about what M leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, cost_text, count_text, wrapped
from dither._stats import two_sided
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, Sensitivity
from dither.mechanisms._combination import (
    continuous_deviation,
    laplace_normal_factor,
)
from dither.mechanisms.chooser import ChosenNoise, additive_noise
from dither.privacy import Loss, Neighbours
from dither.privacy._promise import as_table_neighbours
from dither.series._promises import level_of, promise
from dither.series._readings import (
    Floats,
    Integers,
    Readings,
    charge_for,
    read_matrix,
    readings_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["SeriesDesign", "SeriesSums", "fourier", "haar", "window_sums"]

_SCALE = 1 << 12
_MOST_ENTRIES = 1 << 24
_POWERS = (0.0, 0.25, 0.5)
"""Of a wavelet's size, that its weight is divided by."""


@dataclass(frozen=True, eq=False)
class SeriesDesign:
    """A release, fixed before any reading is read.

    Parameters
    ----------
    matrix : array of int, shape (k, times)
    reading : array of float, shape (k, times)
        What each number of q gives to each time: the transposed pseudo-inverse.
    readings : Readings
    epsilon, delta : Fraction

    Attributes
    ----------
    chosen : ChosenNoise
    """

    matrix: Integers
    reading: Floats
    readings: Readings
    epsilon: Fraction
    delta: Fraction
    chosen: ChosenNoise = field(init=False)

    def __post_init__(self) -> None:
        chosen = additive_noise(self.sensitivity(self.readings), self.epsilon, self.delta)
        object.__setattr__(self, "chosen", chosen)

    @cached_property
    def _columns(self) -> tuple[int, int, int]:
        """max ‖M_t‖₁, max ‖M_t‖₂² and λ."""
        m = self.matrix
        # Entries are at most 2^13 and rows at most 2^20 long, so that sums of products are whole
        # numbers of at most 2^46, exact in doubles however they are added; 2^12 rows of them are
        # within 64 bits.
        doubles = m.astype(np.float64)
        spread = int(np.abs(doubles @ doubles.T).astype(np.int64).sum(axis=1).max())
        return int(np.abs(m).sum(axis=0).max()), int((m**2).sum(axis=0).max()), spread

    def sensitivity(self, readings: Readings) -> Sensitivity:
        """How far neighbours move q, as the module's text derives it."""
        m, w, each = np.abs(self.matrix), readings.wide, readings.each
        below = np.cumsum(np.pad(m, ((0, 0), (1, 0))), axis=1)
        # Of every window of w readings, the sum of each row.
        windows = below[:, w:] - below[:, :-w]
        if int(windows.max()) ** 2 * len(m) >= 1 << 62:
            windows = windows.astype(object)
        l1s = [each * int(windows.sum(axis=0).max())]
        squares = [each**2 * int((windows**2).sum(axis=0).max())]
        largest = [each * int(windows.max())]
        column, square, spread = self._columns
        squares.append(spread * each**2 * w)
        total, norm = readings.bound(readings.total), readings.bound(readings.norm)
        if total is not None:
            l1s.append(total * column)
            squares += [total**2 * square, spread * each * total]
            largest.append(total * int(m.max()))
        if norm is not None:
            squares.append(spread * norm**2)
        return Sensitivity.of(
            l1=min(l1s), l2_squared=min(squares), linf=min(largest), dimension=len(m)
        )

    def loss(self, readings: Readings, unit: str) -> Loss:
        """What the noise costs where these readings are protected."""
        known, noise = self.sensitivity(readings), self.chosen.mechanism
        whole = promise(readings.level, w=readings.w, unit=unit, neighbours=readings.neighbours)
        if readings == self.readings:
            found = self.chosen.loss(neighbours=readings.neighbours)
        elif isinstance(noise, DiscreteLaplace):
            found = noise.loss(l1=known.l1, neighbours=readings.neighbours)
        else:
            assert isinstance(noise, DiscreteGaussian)
            found = noise.loss(
                l2_squared=known.l2_squared,
                coordinates=known.changed,
                neighbours=readings.neighbours,
            )
        return found.promising(whole)

    def exact(self, values: Floats) -> Integers:
        """q without noise."""
        # |v| is at most 2^16, and a row's absolute values add up to at most 2^33: of fewer than
        # 2^13 units q is within 64 bits, and of more where what is added up here says so.
        summed = self.readings.summed(values)
        largest = max(1, int(np.abs(summed).max())) * int(np.abs(self.matrix).sum(axis=1).max())
        if largest >= 1 << 61:
            # What readings add up to decides how they are added, and never whether.
            return np.asarray(self.matrix.astype(object) @ summed.astype(object))
        return np.asarray(self.matrix @ summed)

    def release(self, values: Floats) -> Floats:
        """The one step that reads readings: q with its noise."""
        noise = self.chosen.mechanism
        assert isinstance(noise, DiscreteLaplace | DiscreteGaussian)
        return np.asarray((self.exact(values) + noise.draw(len(self.matrix))).astype(np.float64))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        public = Readings(
            4, Fraction(0), Fraction(1), "user", None, Neighbours.ADD_REMOVE, None, None
        )
        times = np.eye(4, dtype=np.int64)
        design = cls(times, times.astype(np.float64), public, Fraction(1), Fraction(0))
        noise = design.chosen.mechanism
        assert isinstance(noise, DiscreteLaplace)
        there = design.exact(np.ones((1, 4)))

        def run(exact: Integers, size: int) -> Floats:
            seen = exact + noise.draw((size, exact.size))
            return np.asarray((np.abs(seen) - np.abs(seen - there)).sum(axis=1).astype(float))

        yield Subject("series", run, np.zeros_like(there), there)


class SeriesSums(Printable):
    """The sum of all units' series, with noise, as it was released.

    Made by `window_sums`, `fourier` and `haar`. Whatever it answers costs nothing more.

    Attributes
    ----------
    released : array of float, shape (k,)
        q, in the units of readings times the matrix's scale.
    values : array of float, shape (times,)
        The sum of all units' readings at each time, as far as the matrix keeps it.
    loss : Loss
    """

    def __init__(
        self, what: str, design: SeriesDesign, noisy: Floats, loss: Loss, unit: str
    ) -> None:
        self.what, self.design, self.loss, self.unit = what, design, loss, unit
        self.step = float(design.readings.step)
        self.released = noisy * self.step
        self._reading = design.reading
        self.values: Floats = np.asarray(self._reading.T @ self.released)

    @property
    def length(self) -> int:
        """How many readings a unit has."""
        return self.design.readings.length

    def sum(
        self, start: int = 0, stop: int | None = None, confidence: float = 0.95
    ) -> tuple[float, float, float]:
        """All units' readings from one time to before another: estimate and interval's ends.

        Parameters
        ----------
        start, stop : int
            Times, as of a slice.
        confidence : float
            The interval is about the noise.

        Examples
        --------
        >>> import numpy as np
        >>> from dither import series
        >>> found = series.haar(np.ones((500, 8)), bounds=(0, 1), max_total=8, epsilon=2)
        >>> estimate, lower, upper = found.sum(0, 4)
        >>> lower < 2000 < upper
        True
        """
        end = self.length if stop is None else check.whole("stop", stop, 0, self.length)
        begin = check.whole("start", start, 0, end)
        weights = self._reading[:, begin:end].sum(axis=1)
        estimate = float(weights @ self.released)
        width = float(self._widths(weights[None, :], confidence)[0])
        return estimate, estimate - width, estimate + width

    def _widths(self, weights: Floats, confidence: float) -> Floats:
        """How far sums of the noise stray, of shape (sums, k) weights."""
        inside, noise = check.confidence(confidence), self.design.chosen.mechanism
        assert isinstance(noise, DiscreteLaplace | DiscreteGaussian)
        deviation = continuous_deviation(noise)
        square = (weights**2).sum(axis=1) * deviation**2
        if isinstance(noise, DiscreteLaplace):
            over = ((np.abs(weights) ** 3).sum(axis=1) * deviation**3) ** (2 / 3)
            share = np.divide(over, square, out=np.ones_like(square), where=square > 0)
            factor = laplace_normal_factor(np.minimum(share, 1.0), inside)
        else:
            factor = np.full(square.shape, two_sided(inside))
        # The discrete law's steps add half of the largest weight.
        rounded = np.abs(weights).max(axis=1) / 2
        return np.asarray((factor * np.sqrt(square) + rounded) * self.step)

    def frame(self, confidence: float = 0.95) -> pl.DataFrame:
        """A Polars frame with a row for each time: ``time``, ``estimate``, ``lower``, ``upper``."""
        import polars as pl

        width = self._widths(self._reading.T, confidence)
        return pl.DataFrame(
            {
                "time": np.arange(self.length),
                "estimate": self.values,
                "lower": self.values - width,
                "upper": self.values + width,
            }
        )

    def prices(self, w: int | None = None) -> dict[str, Loss]:
        """What the same noise costs for one reading, for ``w`` in a row, and for all of a unit's.

        Each is stated for a unit of its own, so that an account keeps them apart. Of a release
        whose units are bounded as a whole, only what a unit costs is known.

        Parameters
        ----------
        w : int, optional
            Without it there is no price of readings in a row.
        """
        own = self.design.readings
        if own.total is not None or own.norm is not None:
            return {"user": self.loss}
        found = {}
        for level in ("event", "w-event", "user"):
            if level == "w-event" and w is None:
                continue
            known, wide = level_of(level, w if level == "w-event" else None)
            asked = Readings(
                own.length, own.lower, own.upper, known, wide, own.neighbours, None, None
            )
            found[level] = self.design.loss(asked, self.unit)
        return found

    def summary(self) -> str:
        """A few lines for people."""
        width = self._widths(self._reading.T, 0.95)
        charge, whom = self.loss.charge, self.loss.promise
        lines = wrapped(
            f"{self.what} of {count_text(self.length, 'time')}, "
            f"{count_text(len(self.released), 'number')} with noise"
        )
        lines += wrapped(f"A time's sum of all units is known to ± {width.mean():.4g} in the mean.")
        about = "" if whom is None else f", {whom.describe()}"
        lines += wrapped(f"Cost: {cost_text(charge.epsilon, charge.delta)}{about}.")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the sum of all units at each time, with the interval of the noise.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.tables._records import draw_series

        return draw_series(self, path)


def _released(
    what: str,
    matrix: Integers,
    reading: Floats,
    values: Floats,
    readings: Any,
    public: Readings,
    epsilon: Any,
    delta: Any,
    unit: str,
) -> SeriesSums:
    design = SeriesDesign(
        matrix,
        reading,
        public,
        check.positive("epsilon", epsilon),
        check.exact("delta", delta, least=0, below=1),
    )
    return _charged(what, design, values, readings, unit)


def _charged(
    what: str, design: SeriesDesign, values: Floats, readings: Any, unit: str
) -> SeriesSums:
    """Charge the account that the readings may have; then add up their values."""
    loss = design.loss(design.readings, unit)
    said = (design.epsilon, design.delta, len(design.matrix), *design.readings.said)
    charge_for(readings, loss, what, *said)
    return SeriesSums(what, design, design.release(values), loss, unit)


def window_sums(
    readings: Any,
    *,
    bounds: tuple[Number, Number],
    window: int = 1,
    epsilon: Number,
    delta: Number = 0,
    max_total: Number | None = None,
    max_norm: Number | None = None,
    level: str = "user",
    w: int | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: str = "person",
) -> SeriesSums:
    """Sums of all units' readings over windows of so many in a row.

    Parameters
    ----------
    readings : array of float, shape (units, times)
        A unit is a row. What is missing counts as 0. With an account: `charged_to`.
    bounds : (number, number)
        Public ends of a reading; values beyond are clamped.
    window : int
        Readings of a window; 1 asks for every time by itself. The last window may be shorter.
    epsilon, delta : number
        What the release may cost.
    max_total, max_norm : number, optional
        A unit's readings in all, in absolute value, and as a vector's length: one that has more is
        scaled down. Public, and for level "user" alone; noise is as large as they are.
    level : {"user", "event", "w-event"}
        What is protected of a unit: all, one reading, or ``w`` in a row.
    w : int, optional
    neighbours : {"add-remove", "replace"}
    unit : str
        Whose the readings are, as a noun.

    Returns
    -------
    SeriesSums

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.
    BudgetError, PromiseError
        The account of the readings cannot bear it; nothing was charged or read.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for what ``level`` names; ``loss.promise`` says it in words.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import series
    >>> found = series.window_sums(np.ones((1000, 48)), bounds=(0, 2), window=24, max_total=60,
    ...     epsilon=1, unit="household")
    >>> estimate, lower, upper = found.sum(0, 24)
    >>> lower < 24_000 < upper, found.loss.promise.describe()
    (True, 'one household, added or removed')
    """
    values = read_matrix(readings)
    length = values.shape[1]
    long = check.whole("window", window, 1, length)
    many = -(-length // long)
    _check_size(many, length)
    matrix = (np.arange(length) // long == np.arange(many)[:, None]).astype(np.int64)
    public = readings_of(
        length, bounds, level, w, as_table_neighbours(neighbours), max_total, max_norm
    )
    what = f"sums of windows of {count_text(long, 'reading')}"
    # Of a window's sum each of its times is read as an even part.
    reading = matrix / matrix.sum(axis=1, keepdims=True)
    return _released(what, matrix, reading, values, readings, public, epsilon, delta, unit)


def fourier(
    readings: Any,
    *,
    bounds: tuple[Number, Number],
    coefficients: int,
    epsilon: Number,
    delta: Number = 0,
    max_total: Number | None = None,
    max_norm: Number | None = None,
    level: str = "user",
    w: int | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: str = "person",
) -> SeriesSums:
    """The sum of all units' series from its slowest waves, with noise on their coefficients.

    Parameters
    ----------
    readings : array of float, shape (units, times)
    bounds : (number, number)
    coefficients : int
        How many are kept: a constant, then a cosine and a sine of each frequency. Few are little
        noise and a smooth series; what they leave out is in no interval.
    epsilon, delta, max_total, max_norm, level, w, neighbours, unit
        As for `window_sums`.

    Returns
    -------
    SeriesSums

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.
    BudgetError, PromiseError
        The account of the readings cannot bear it; nothing was charged or read.

    Notes
    -----
    *Guarantee.* As of `window_sums`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import series
    >>> day = 1 + np.sin(np.arange(48) * np.pi / 12)
    >>> found = series.fourier(np.tile(day, (2000, 1)), bounds=(0, 2), coefficients=7,
    ...     max_norm=9, epsilon=1)
    >>> float(np.abs(found.values / 2000 - day).max()) < 0.1
    True
    """
    values = read_matrix(readings)
    length = values.shape[1]
    kept = check.whole("coefficients", coefficients, 1, length)
    _check_size(kept, length)
    public = readings_of(
        length, bounds, level, w, as_table_neighbours(neighbours), max_total, max_norm
    )
    matrix = fourier_matrix(length, kept)
    reading = np.linalg.pinv(matrix.astype(np.float64)).T
    what = f"{count_text(kept, 'Fourier coefficient')}"
    return _released(what, matrix, reading, values, readings, public, epsilon, delta, unit)


def haar(
    readings: Any,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number,
    delta: Number = 0,
    max_total: Number | None = None,
    max_norm: Number | None = None,
    level: str = "user",
    w: int | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: str = "person",
) -> SeriesSums:
    """The sum of all units' series by Haar wavelets: sums over any stretch of time are good.

    Parameters
    ----------
    readings : array of float, shape (units, times)
        At most 4,096 times.
    bounds : (number, number)
    epsilon, delta, max_total, max_norm, level, w, neighbours, unit
        As for `window_sums`.

    Returns
    -------
    SeriesSums

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.
    BudgetError, PromiseError
        The account of the readings cannot bear it; nothing was charged or read.

    Notes
    -----
    *Guarantee.* As of `window_sums`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import series
    >>> found = series.haar(np.ones((1000, 64)), bounds=(0, 1), level="event", epsilon=1)
    >>> estimate, lower, upper = found.sum(3, 45)
    >>> upper - lower < 100, found.loss.promise.describe()
    (True, 'one reading of a person, added or removed')
    """
    values = read_matrix(readings)
    length = values.shape[1]
    full = 1 << (length - 1).bit_length()
    _check_size(full, length)
    public = readings_of(
        length, bounds, level, w, as_table_neighbours(neighbours), max_total, max_norm
    )
    asked = check.positive("epsilon", epsilon), check.exact("delta", delta, least=0, below=1)
    whole = haar_matrix(full)
    kept = whole[np.abs(whole[:, :length]).sum(axis=1) > 0]
    sizes = (kept**2).sum(axis=1)
    plans = []
    for power in _POWERS:
        # Times 16 where a weight is to be rounded: it is off by a thirtieth at most.
        weights = np.rint(16 * (full / sizes) ** power) if power else np.ones(len(kept))
        matrix = kept * weights.astype(np.int64)[:, None]
        # Times beyond the last are 0 in the tree, which is read as a whole.
        reading = (kept / (weights * sizes)[:, None])[:, :length]
        design = SeriesDesign(matrix[:, :length], reading, public, *asked)
        ends = np.cumsum(np.pad(reading, ((0, 0), (1, 0))), axis=1)
        far = ((ends - ends.mean(axis=1, keepdims=True)) ** 2).sum(axis=0).mean()
        plans.append((far * design.chosen.mechanism.variance, design))
    _, best = min(plans, key=lambda plan: plan[0])
    return _charged("Haar wavelets", best, values, readings, unit)


def _check_size(rows: int, columns: int) -> None:
    if rows * columns > _MOST_ENTRIES:
        raise ArgumentError(
            f"readings must have fewer times here: {rows:,} numbers of {columns:,} times are too "
            "many; take longer windows, or fewer coefficients"
        )


def fourier_matrix(length: int, kept: int) -> Integers:
    """The first rows of the real orthonormal Fourier basis, times 2**12·√length, rounded."""
    at = np.arange(length)
    rows = []
    for j in range(kept):
        angle = 2 * math.pi * ((j + 1) // 2) * at / length
        last = length % 2 == 0 and j == length - 1
        scale = math.sqrt((1 if j == 0 or last else 2) / length)
        rows.append(scale * (np.cos(angle) if j % 2 or j == 0 else np.sin(angle)))
    return np.rint(_SCALE * math.sqrt(length) * np.array(rows)).astype(np.int64)


def haar_matrix(full: int) -> Integers:
    """Sums, and differences of halves, over a binary tree of times; a power of two of them.

    Examples
    --------
    >>> haar_matrix(4)
    array([[ 1,  1,  1,  1],
           [ 1,  1, -1, -1],
           [ 1, -1,  0,  0],
           [ 0,  0,  1, -1]])
    """
    rows = [np.ones(full, dtype=np.int64)]
    size = full
    while size > 1:
        for begin in range(0, full, size):
            row = np.zeros(full, dtype=np.int64)
            row[begin : begin + size // 2] = 1
            row[begin + size // 2 : begin + size] = -1
            rows.append(row)
        size //= 2
    return np.array(rows)

"""Subsample and aggregate: any statistic or fitted model made private, by its values on parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, cost_text, count_text, number_text
from dither._silence import silence
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.learn._spending import Spending
from dither.learn.votes._partition import each_anew, how_many, parts_of, rows_at
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential, SmoothMedian
from dither.mechanisms._base import AdditiveNoise
from dither.mechanisms._coins import exp_choice
from dither.noise import below as uniform
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._promise import as_table_neighbours

if TYPE_CHECKING:
    from dither.ledger import Ledger

__all__ = ["Aggregated", "SampleAndAggregate"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_STEPS = 1 << 16
"""Into how many steps the bounds of a value are divided."""
_PLACES = 1 << 10
"""Among how many values a median is picked, where delta is 0."""


@dataclass(frozen=True, eq=False, repr=False)
class Aggregated(Printable):
    """What was released.

    Parameters
    ----------
    value : array of float
        Of the shape of the statistic; within the bounds.
    half_width : array of float or None
        The half-width at 95 % of the noise alone; None of a median, whose noise depends on the
        data. How much the parts differ among each other is not in it.
    loss : Loss
    parts : int
    """

    value: Floats
    half_width: Floats | None
    loss: Loss
    parts: int

    def summary(self) -> str:
        """The values, their noise and what they cost.

        Returns
        -------
        str
        """
        charge = self.loss.charge
        wide = np.zeros(1) if self.half_width is None else np.ravel(self.half_width)
        values = [
            number_text(float(v))
            + ("" if self.half_width is None else f" ± {number_text(float(w), 2)}")
            for v, w in zip(
                np.ravel(self.value), np.broadcast_to(wide, self.value.size), strict=True
            )
        ]
        noise = "" if self.half_width is None else "; ± is the noise alone, at 95 %"
        return (
            f"aggregated from {count_text(self.parts, 'part')}: {', '.join(values)}\n"
            f"cost: {cost_text(charge.epsilon, charge.delta)}{noise}"
        )


class SampleAndAggregate:
    """A private version of any statistic, by its values on disjoint parts of the rows.

    The statistic may be anything that gives numbers: the coefficients of a fitted model, its
    predictions at some points, a quantile. It is computed on each part as it is; the values, moved
    into bounds, are aggregated by a private mean or median.

    Parameters
    ----------
    statistic : callable
        From the rows of a part (and their targets, where ``release`` is given some) to a number or
        an array of numbers. It sees one part at a time and must keep nothing between calls.
    bounds : pair of (float or array of float)
        The least and the largest possible value. Values beyond are moved to the ends. Declare them
        from what is known of the subject, never from the data.
    shape : int or tuple of int
        Of the statistic's array; that of the bounds where left out. What has another shape counts
        as having failed, and nothing is said of it: see that it fits with `try_on`.
    epsilon, delta : number
        What one release costs. With a delta of 0 the mean has Laplace noise, and the median is
        picked among 1,025 values of equal distance; else Gaussian noise, and the smooth median.
    parts : int
        How many, at least 2. More drown more noise, and see fewer rows each.
    how : str
        ``"mean"`` or ``"median"``, value by value; a median is not moved by parts that fail.
    default : float or array, optional
        What stands in, within the bounds, where the statistic fails or gives no number; their
        middle where left out. Nothing is said of whether it did.
    neighbours : Neighbours or str
        ``"add-remove"`` or ``"replace"``; the cost is the same.

    Attributes
    ----------
    loss : Loss
        What one release costs.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Guarantee.* Each release is as private as ``loss`` says, (epsilon, delta)-DP, for one row, or
    for all rows of one group. *Proof.* A row changes one part (`dither.learn.votes._partition`),
    and so the d values of one part, each by at most the steps between its bounds, which are 65,536.
    Sums of d values over the parts then move by at most 65,536·d in L1 norm and 65,536·sqrt(d) in
    L2 norm. A median of each value costs epsilon/d and delta/d. Of the one picked at delta 0, a
    value p has the utility -max(values below p, values above p), which one part moves by at most 1.

    Not covered: how long the statistic takes, which depends on the rows.

    References
    ----------
    Nissim, Raskhodnikova and Smith, "Smooth sensitivity and sampling in private data analysis",
    STOC 2007, section 4; Smith, "Privacy-preserving statistical estimation with optimal convergence
    rates", STOC 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> ages = np.repeat(np.arange(20, 80), 200)
    >>> private = learn.SampleAndAggregate(np.median, bounds=(0, 120), epsilon=1, parts=200)
    >>> 45 < float(private.release(ages).value) < 55
    True
    >>> private.loss.charge.epsilon
    Fraction(1, 1)
    """

    def __init__(
        self,
        statistic: Callable[..., Any],
        *,
        bounds: Any,
        shape: int | tuple[int, ...] | None = None,
        epsilon: Number,
        delta: Number = 0,
        parts: int = 100,
        how: str = "mean",
        default: Any = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        if not callable(statistic):
            raise ArgumentError("statistic must be a function from rows to numbers")
        self.statistic, self.how = statistic, check.choice("how", how, ("mean", "median"))
        self.parts = check.whole("parts", parts, 2, most=1_000_000)
        self.epsilon = check.positive("epsilon", epsilon)
        self.delta = check.exact("delta", delta, least=0, below=1)
        self.neighbours = as_table_neighbours(neighbours)
        self._low, self._high = _ends(bounds, shape)
        self._default = _default(default, self._low, self._high)
        self._aggregator = self._made()
        self.loss = self._cost()
        self._spending: Spending | None = None

    def __repr__(self) -> str:
        return f"<SampleAndAggregate: {self.how} of {self.parts:,} parts, at {self.loss!r} each>"

    def _cost(self) -> Loss:
        size, noise = self._low.size, self._aggregator
        if isinstance(noise, DiscreteLaplace):
            # A unit is in one part alone, whose values it may move from one end to the other.
            return noise.loss(l1=size * _STEPS, neighbours=self.neighbours)
        if isinstance(noise, DiscreteGaussian):
            square = size * _STEPS**2
            loss = noise.loss(l2_squared=square, coordinates=size, neighbours=self.neighbours)
            spent = noise.delta(self.epsilon, l2_squared=square, coordinates=size)
            return loss.with_charge(Charge(self.epsilon, spent, loss.charge.rho))
        if isinstance(noise, Exponential):
            return size * noise.loss(sensitivity=1, neighbours=self.neighbours)
        return size * noise.loss(neighbours=self.neighbours)

    def charge_to(
        self,
        ledger: Ledger,
        accounts: str | Sequence[str],
        *,
        unit: str,
        token: str | None = None,
        tables: Mapping[str, str] | None = None,
    ) -> Self:
        """Charge each release to an account of a ledger, before any row is read.

        Parameters
        ----------
        ledger : Ledger
        accounts : str or sequence of str
        unit : str
            Whom the account protects: whose row, or group of rows, it is.
        token : str, optional
            A name for the releases.
        tables : mapping of str to str, optional
            As of ``Ledger.charge``.

        Returns
        -------
        SampleAndAggregate
            This one.
        """
        named = {} if token is None else {"token": token}
        self._spending = Spending(ledger, accounts, unit, tables=dict(tables or {}), **named)
        self._released = 0
        return self

    def try_on(self, X: Any, y: Any = None) -> Floats:
        """The statistic on *public* or made-up rows, to see that it works and fits.

        Parameters
        ----------
        X, y
            As of `release`. What is wrong is said in full, so never try private rows.

        Returns
        -------
        array
            As it came: neither moved into the bounds nor protected.

        Raises
        ------
        ArgumentError
            The statistic does not give numbers of the declared shape. What it raises is raised.
        """
        try:
            found = np.asarray(self.statistic(*((X,) if y is None else (X, y))), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"statistic must give numbers; it says: {error}") from error
        if found.shape != self._low.shape:
            raise ArgumentError(
                f"statistic gives an array of shape {found.shape}, and {self._low.shape} was "
                f"declared: say shape={found.shape}"
            )
        return found

    def release(self, X: Any, y: Any = None, *, groups: Any = None) -> Aggregated:
        """Compute the statistic on each part, and release the aggregate with noise.

        Parameters
        ----------
        X : array, data frame or list, n rows
        y : array, shape (n,), optional
        groups : array, shape (n,), optional
            Whose each row is, where a person has several: they go to one part.

        Returns
        -------
        Aggregated

        Raises
        ------
        ArgumentError
            Lengths do not fit.
        BudgetError, PromiseError
            The ledger refuses; no row was read.
        """
        rows = how_many(X)
        if y is not None and how_many(y, "y") != rows:
            raise ArgumentError("y must have one value for each row of X")
        if self._spending is not None:
            what = f"aggregate {self._released}"
            self._spending.once(self.loss, what, self.how, self.parts, self.epsilon, self.delta)
            self._released += 1
        of = parts_of(rows, self.parts, groups)
        given = (X,) if y is None else (X, y if hasattr(y, "shape") else list(y))
        values = []
        with each_anew() as anew:
            for k in range(self.parts):
                mine = np.flatnonzero(of == k)
                anew()
                values.append(self._value(tuple(rows_at(table, mine) for table in given)))
        return self._aggregated(np.stack(values))

    def _made(self) -> DiscreteLaplace | DiscreteGaussian | Exponential | SmoothMedian:
        size = self._low.size
        if self.how == "median":
            each = self.epsilon / size
            if not self.delta:
                # One part moves how many values lie on either side of a place by 1 at most.
                return Exponential.for_loss(each, sensitivity=1)
            return SmoothMedian.for_loss(each, self.delta / size, lower=0, upper=_STEPS)
        if not self.delta:
            return DiscreteLaplace.for_loss(self.epsilon, l1=size * _STEPS)
        return DiscreteGaussian.for_epsilon(
            self.epsilon, self.delta, l2_squared=size * _STEPS**2, coordinates=size
        )

    def _value(self, rows: tuple[Any, ...]) -> Integers:
        """The statistic on one part, in steps; the default where there is none."""
        try:
            with silence():
                found = np.asarray(self.statistic(*rows), dtype=np.float64)
            fits = found.shape == self._low.shape
        except Exception:
            fits = False
        if not fits:
            found = self._default
        found = np.where(np.isnan(found), self._default, found)
        # In halves, so that the widest bounds do not overflow.
        near = np.clip(found, self._low, self._high)
        shares = (near / 2 - self._low / 2) / (self._high / 2 - self._low / 2)
        steps = np.clip(np.rint(shares * _STEPS), 0, _STEPS)
        return np.asarray(steps, dtype=np.int64).reshape(-1)

    def _aggregated(self, values: Integers) -> Aggregated:
        noise, half_width = self._aggregator, None
        if isinstance(noise, AdditiveNoise):
            steps = (values.sum(axis=0) + noise.draw(values.shape[1])) / self.parts
            half_width = noise.half_width(0.95) / self.parts / _STEPS * (self._high - self._low)
        elif isinstance(noise, Exponential):
            steps = np.array([_picked(noise, column) for column in values.T])
        else:
            steps = np.array([noise.release(column) for column in values.T])
        shares = np.clip(steps.reshape(self._low.shape) / _STEPS, 0, 1)
        found = self._low * (1 - shares) + self._high * shares
        return Aggregated(np.asarray(found), half_width, self.loss, self.parts)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        for how, delta in (("mean", 0), ("mean", "1/100"), ("median", 0), ("median", "1/100")):
            made = cls(max, bounds=(0, 1), epsilon=1, delta=delta, parts=3, how=how)
            word = f"sample and aggregate, {how}" + (" with a delta" if delta else "")

            def run(ends: list[int], *, made: SampleAndAggregate = made) -> float:
                return float(made._aggregated(_STEPS * np.array(ends)[:, None]).value)

            # What is aggregated of three parts, one of which is changed.
            yield Subject(word, run, [0, 0, 1], [0, 1, 1], 1, Fraction(delta))


def _picked(noise: Exponential, values: Integers) -> int:
    """A median among some values of equal distance, drawn exactly."""
    places = np.arange(_PLACES + 1) * (_STEPS // _PLACES)
    ordered = np.sort(values)
    below = np.searchsorted(ordered, places, side="left")
    above = len(values) - np.searchsorted(ordered, places, side="right")
    gaps, group, counts = np.unique(
        np.maximum(below, above), return_inverse=True, return_counts=True
    )
    # First how far from the middle, then which of the places that are as far.
    picked = exp_choice(gaps.tolist(), noise.rate, counts.tolist())
    alike = np.flatnonzero(group == picked)
    return int(places[alike[uniform(len(alike), 1)[0]]])


def _ends(bounds: Any, shape: Any) -> tuple[Floats, Floats]:
    try:
        low, high = (np.asarray(end, dtype=np.float64) for end in bounds)
        low, high = (np.array(end) for end in np.broadcast_arrays(low, high))
        if shape is not None:
            low, high = (np.array(np.broadcast_to(end, shape)) for end in (low, high))
    except (TypeError, ValueError):
        raise ArgumentError(
            "bounds must be a pair (low, high) of numbers, or of arrays of the given shape"
        ) from None
    good = np.isfinite(low) & np.isfinite(high) & (low < high)
    if not low.size or not good.all() or not (high / 2 - low / 2 > 0).all():
        raise ArgumentError("bounds must be finite numbers that rise, not too close to each other")
    if low.size > 100_000:
        raise ArgumentError("bounds must be of at most 100,000 values")
    return low, high


def _default(default: Any, low: Floats, high: Floats) -> Floats:
    if default is None:
        return low / 2 + high / 2
    try:
        found = np.broadcast_to(np.asarray(default, dtype=np.float64), low.shape)
    except (TypeError, ValueError):
        raise ArgumentError("default must be a number, or an array like the bounds") from None
    if not ((low <= found) & (found <= high)).all():
        raise ArgumentError("default must lie within the bounds")
    return found

"""Readings on a lattice, and what a unit may have of them.

A reading is clamped to public bounds and held as a whole number of steps, of which the larger bound
in absolute value has 2**16. One that is missing counts as 0 steps. A unit whose readings add up to
more than ``max_total`` in absolute value, or are longer than ``max_norm`` as a vector, is scaled
down to it, towards 0, in whole numbers: which factor is its own affair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._columns import array_of, check_numeric, numbers
from dither.errors import ArgumentError
from dither.privacy import Loss, Neighbours
from dither.series._promises import level_of

if TYPE_CHECKING:
    from dither.ledger import Ledger
    from dither.ledger._bindings import BearingAccount

__all__ = [
    "ChargedReadings",
    "Floats",
    "Integers",
    "Readings",
    "charge_for",
    "charged_to",
    "read_matrix",
    "readings_of",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_STEPS = 1 << 16
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Readings:
    """What is public of readings, and what may change between neighbours.

    Parameters
    ----------
    length : int
        Readings of a unit.
    lower, upper : Fraction
    level : str
    w : int or None
    neighbours : Neighbours
    total, norm : int or None
        Bounds of a unit's vector, in steps.
    """

    length: int
    lower: Fraction
    upper: Fraction
    level: str
    w: int | None
    neighbours: Neighbours
    total: int | None
    norm: int | None

    @property
    def said(self) -> tuple[object, ...]:
        """All of it, in numbers and names."""
        protected = (self.level, self.w, self.neighbours.value, self.total, self.norm)
        return (self.length, self.lower, self.upper, *protected)

    @property
    def step(self) -> Fraction:
        """Of the lattice."""
        return max(abs(self.lower), abs(self.upper)) / _STEPS

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps, outwards."""
        return math.floor(self.lower / self.step), math.ceil(self.upper / self.step)

    @property
    def each(self) -> int:
        """By how many steps one reading may change."""
        low, high = self.ends
        if self.neighbours is Neighbours.ADD_REMOVE:
            return max(-low, high)
        # Any two that are there, or one of them and nothing, which is 0.
        return max(high, 0) - min(low, 0)

    @property
    def wide(self) -> int:
        """How many readings in a row may change."""
        if self.level == "user":
            return self.length
        return 1 if self.level == "event" else min(self.w or 1, self.length)

    def bound(self, given: int | None) -> int | None:
        """How long the change of a bounded vector is at most: of two of them where units change."""
        if given is None:
            return None
        return 2 * given if self.neighbours is Neighbours.REPLACE else given

    def summed(self, values: Floats) -> Integers:
        """The sum of all units' vectors, each within its bounds."""
        return np.asarray(self.lattice(values).sum(axis=0))

    def lattice(self, values: Floats) -> Integers:
        """Each unit's vector in steps, within its bounds."""
        low, high = self.ends
        with np.errstate(all="ignore"):
            inside = np.clip(values, float(self.lower), float(self.upper)) / float(self.step)
        # Clipped before the cast, of which infinities and NaN have none.
        found = np.rint(np.nan_to_num(inside)).astype(np.int64).clip(low, high)
        found[np.isnan(values)] = 0
        if self.total is not None:
            found = _scaled(found, np.abs(found).sum(axis=1), self.total)
        if self.norm is not None:
            found = _scaled(found, _roots_up((found**2).sum(axis=1)), self.norm)
        return found


def _scaled(values: Integers, length: Integers, most: int) -> Integers:
    """Rows that are too long times most/length, towards 0, in whole numbers.

    Absolute values of at most 2^16 times a bound of at most 2^37 stay within 64 bits.
    """
    long = length > most
    rows = values[long]
    part = np.abs(rows) * most // length[long][:, None]
    found = values.copy()
    found[long] = np.sign(rows) * part
    return found


def _roots_up(squares: Integers) -> Integers:
    """Roots of whole numbers below 2^53, rounded up to whole ones."""
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    root = np.where(root * root > squares, root - 1, root)
    root = np.where((root + 1) ** 2 <= squares, root + 1, root)
    return np.where(root * root < squares, root + 1, root)


@dataclass(frozen=True, repr=False, eq=False)
class ChargedReadings:
    """Readings whose releases charge an account; it shows none of them.

    Made by `charged_to`.
    """

    matrix: Floats
    bearer: BearingAccount

    def __repr__(self) -> str:
        return "<readings of units, protected>"


def charged_to(
    readings: Any, ledger: Ledger, account: str, *, name: str = "readings"
) -> ChargedReadings:
    """Readings whose releases charge an account, before any of them is looked at.

    Parameters
    ----------
    readings : array of float, shape (units, times)
    ledger : Ledger
    account : str
        An account that is bound to what a release protects: `promise` of its level. A release of
        another level is refused, and costs nothing.
    name : str
        What the ledger calls these readings. Within a ledger they stay with the promise that they
        were first charged under.

    Returns
    -------
    ChargedReadings
        For `window_sums`, `fourier`, `haar` and `window_quantiles`, in place of the readings.

    Raises
    ------
    ArgumentError
        They are not rows of equally many numbers; it is no ledger, or no name.

    Examples
    --------
    >>> from dither import series
    >>> from dither.accounting import BudgetFilter
    >>> from dither.ledger import Ledger
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(pathlib.Path(folder.name) / "meters.ledger")
    >>> opened = ledger.open_accounts(
    ...     {"homes": BudgetFilter(1, 0)}, series.promise("user", unit="home"))
    >>> use = series.charged_to(np.ones((9, 4)), ledger, "homes")
    >>> found = series.window_sums(use, bounds=(0, 1), epsilon=0.25, unit="home")
    >>> ledger.balance("homes").spent.epsilon
    Fraction(1, 4)
    >>> ledger.close(); folder.cleanup()
    """
    from dither.ledger._bindings import BearingAccount

    bearer = BearingAccount(ledger, account, name, "readings", "row of readings")
    return ChargedReadings(read_matrix(readings), bearer)


def charge_for(readings: Any, loss: Loss, what: str, *said: object) -> None:
    """Charge what is about to be released, where the readings have an account.

    Raises
    ------
    BudgetError, PromiseError
        The account cannot bear it, or protects another unit; nothing was charged.
    """
    if isinstance(readings, ChargedReadings):
        readings.bearer.charge(loss, what, *said)


def read_matrix(values: Any) -> Floats:
    """Readings as doubles, shape (units, times), what is missing as NaN.

    Raises
    ------
    ArgumentError
        They are not rows of equally many numbers.
    """
    if isinstance(values, ChargedReadings):
        return values.matrix
    check_numeric("readings", values)
    try:
        if hasattr(values, "to_numpy") and hasattr(values, "columns"):
            found = np.asarray(values.to_numpy())
        elif isinstance(values, np.ndarray):
            found = array_of(values)
        else:
            rows = [array_of(row) for row in values]
            if len({row.shape for row in rows}) > 1:
                raise ArgumentError("readings must be rows of equally many numbers")
            found = np.stack(rows)
    except (TypeError, ValueError):
        raise ArgumentError("readings must be rows of equally many numbers") from None
    if found.ndim != 2 or not 1 <= found.shape[1] <= _LONGEST:
        raise ArgumentError(
            "readings must have shape (units, times): a row for each unit, a column for each time"
        )
    return numbers("readings", found)


def readings_of(
    length: int,
    bounds: Any,
    level: Any,
    w: Any,
    neighbours: Neighbours,
    max_total: Any = None,
    max_norm: Any = None,
) -> Readings:
    """What is public, checked.

    Raises
    ------
    ArgumentError
        An argument is out of range, or a bound of a unit's vector is asked for where only some of
        its readings are protected.
    """
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ArgumentError("bounds must be a pair of numbers, (lower, upper)") from None
    lower, upper = check.exact("bounds[0]", low), check.exact("bounds[1]", high)
    if lower >= upper:
        raise ArgumentError("bounds must be (lower, upper) with lower below upper")
    # Beyond these, doubles on the way to the lattice might be 0 or infinite.
    if not Fraction(1, 10**200) < max(abs(lower), abs(upper)) < 10**200:
        raise ArgumentError("bounds must be of sizes from 1e-200 to 1e200")
    known, wide = level_of(level, w)
    step = max(abs(lower), abs(upper)) / _STEPS
    limits: list[int | None] = []
    for name, given in (("max_total", max_total), ("max_norm", max_norm)):
        if given is None:
            limits.append(None)
            continue
        if known != "user":
            raise ArgumentError(
                f'{name} must be left out unless level is "user": it scales all readings of a '
                "unit by what they are together"
            )
        in_steps = math.floor(check.positive(name, given) / step)
        if in_steps < 1:
            raise ArgumentError(f"{name} must be at least {float(step):.4g}, a step of the lattice")
        limits.append(min(in_steps, length * _STEPS))
    return Readings(length, lower, upper, known, wide, neighbours, limits[0], limits[1])

"""What one release costs, in the two currencies that accounts add up."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.numeric import _directed as directed
from dither.privacy._promise import Neighbours, Promise

__all__ = ["Charge", "group_factor"]


Amount = Fraction | None
"""An exact amount; ``None`` stands for infinity."""

_REACH = Fraction(1 << 16)
"""Epsilons beyond which e^epsilon is not computed."""

_GRAIN = 2**64


@dataclass(frozen=True, slots=True)
class Charge:
    """The loss of a release, stated twice: both statements are true of it.

    Parameters
    ----------
    epsilon, delta : number or None, number
        Kept as exact Fractions, floats as they print.
        The release is (epsilon, delta)-differentially private. ``epsilon=None`` means that no
        finite epsilon is claimed.
    rho, rho_delta : number or None, number
        The release is rho_delta-approximate rho-zCDP [1]_. ``rho=None`` means that no finite rho is
        claimed.
    promise : Promise, optional
        The unit and the neighbours that both statements are about. A mechanism knows only the
        sensitivities that it is given, so its loss names no unit until its caller writes
        ``loss.promising(...)``. No ledger takes a charge without one.
    neighbours : Neighbours, optional
        The promise's; of a charge without one, those of the loss that it came from. A charge made
        of amounts alone states none.

    Raises
    ------
    ArgumentError
        An amount is not a finite number of at least 0; the neighbours are not the promise's; or
        charges of different promises or neighbours are added.

    Notes
    -----
    Charges of an adaptive sequence add up field by field: for (epsilon, delta) by basic
    composition, for approximate zCDP by its own composition. Both need one neighbour relation
    throughout, so charges of different promises or neighbours cannot be added; `to_replace` and
    `to_group` convert them, at their price.

    References
    ----------
    .. [1] Bun and Steinke, "Concentrated differential privacy", TCC 2016, definition 8.1.

    Examples
    --------
    >>> half = Charge.pure(Fraction(1, 2))
    >>> (half + half).epsilon, (half + half).rho
    (Fraction(1, 1), Fraction(1, 4))
    """

    epsilon: Amount = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Amount = Fraction(0)
    rho_delta: Fraction = Fraction(0)
    promise: Promise | None = None
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "rho", "rho_delta"):
            value = getattr(self, name)
            if type(value) is not Fraction or value < 0:
                # None is infinity: nothing finite is claimed.
                if value is None and name in ("epsilon", "rho"):
                    continue
                object.__setattr__(self, name, _read(name, value))
        if self.promise is not None and not isinstance(self.promise, Promise):
            raise ArgumentError("promise must be a Promise, such as Promise('patient')")
        if self.neighbours is not None and not isinstance(self.neighbours, Neighbours):
            raise ArgumentError("neighbours must be Neighbours.ADD_REMOVE or another of Neighbours")
        if self.promise is not None:
            if self.neighbours not in (None, self.promise.neighbours):
                raise ArgumentError("neighbours must be those of the promise, or left out")
            object.__setattr__(self, "neighbours", self.promise.neighbours)

    @classmethod
    def pure(cls, epsilon: Number, promise: Promise | None = None) -> Charge:
        """The charge of an epsilon-DP release: epsilon-DP implies (epsilon²/2)-zCDP."""
        epsilon = _read("epsilon", epsilon)
        return cls(epsilon=epsilon, rho=epsilon * epsilon / 2, promise=promise)

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number) -> Charge:
        """The charge of an (epsilon, delta)-DP release, which is delta-approximate epsilon²/2-zCDP.

        Bun and Steinke, TCC 2016, section 8.
        """
        epsilon, delta = _read("epsilon", epsilon), _read("delta", delta)
        return cls(epsilon, delta, epsilon * epsilon / 2, delta)

    @classmethod
    def concentrated(cls, rho: Number) -> Charge:
        """The charge of a rho-zCDP release, which claims no finite epsilon at a delta of 0."""
        rho = _read("rho", rho)
        return cls(epsilon=None, rho=rho) if rho else cls()

    @classmethod
    def bounded_range(cls, epsilon: Number) -> Charge:
        """The charge of an epsilon-bounded-range release: pure, and (epsilon²/8)-zCDP.

        Cesar and Rogers, "Bounding, concentrating, and truncating", ALT 2021, lemma 3.4.
        """
        epsilon = _read("epsilon", epsilon)
        return cls(epsilon=epsilon, rho=epsilon * epsilon / 8)

    @classmethod
    def response(cls, epsilon: Number) -> Charge:
        """The charge of randomised response: rho = epsilon·tanh(epsilon/2), rounded up to 2⁻⁶⁴."""
        epsilon = _read("epsilon", epsilon)
        # Rises with the exponential, so that its upper end gives an upper end.
        tanh = 1 - 2 / (directed.exp_upper(epsilon) + 1) if epsilon < _REACH else Fraction(1)
        rho = Fraction(math.ceil(epsilon * tanh * _GRAIN), _GRAIN)
        # Rounding up must not lose to the bound of any pure release.
        return cls(epsilon=epsilon, rho=min(rho, epsilon * epsilon / 2))

    @classmethod
    def unknown(cls) -> Charge:
        """The charge where nothing finite is claimed: no budget covers it."""
        return cls(epsilon=None, rho=None)

    def __add__(self, other: Charge) -> Charge:
        if not isinstance(other, Charge):
            return NotImplemented
        return Charge(
            _add(self.epsilon, other.epsilon),
            self.delta + other.delta,
            _add(self.rho, other.rho),
            self.rho_delta + other.rho_delta,
            *_common(self, other),
        )

    def __mul__(self, times: int) -> Charge:
        """What as many releases cost together."""
        if isinstance(times, bool) or not isinstance(times, int) or times < 0:
            raise ArgumentError("a charge is multiplied by an integer of at least 0")
        return Charge(
            None if self.epsilon is None and times else times * (self.epsilon or Fraction(0)),
            times * self.delta,
            None if self.rho is None and times else times * (self.rho or Fraction(0)),
            times * self.rho_delta,
            self.promise,
            self.neighbours,
        )

    __rmul__ = __mul__

    @property
    def free(self) -> bool:
        """Whether nothing is charged; then the charge is true of every promise."""
        return not any((self.epsilon != 0, self.delta, self.rho != 0, self.rho_delta))

    def promising(self, promise: Promise) -> Charge:
        """The same amounts, stated for a promise.

        Raises
        ------
        ArgumentError
            They were stated for another one, or for other neighbours: that takes `to_replace` or
            `to_group`.

        Examples
        --------
        >>> Charge.pure(Fraction(1)).promising(Promise("patient")).promise.describe()
        'one patient, added or removed'
        """
        if not isinstance(promise, Promise):
            raise ArgumentError("promise must be a Promise, such as Promise('patient')")
        other = self.promise not in (None, promise)
        if not self.free and (other or self.neighbours not in (None, promise.neighbours)):
            raise ArgumentError(
                f"this charge is stated for {self._stated_for()}; it says nothing of "
                f"{promise.describe()} unless it is converted (to_replace, to_group)"
            )
        return replace(self, promise=promise, neighbours=None)

    def to_replace(self) -> Charge:
        """What it costs where one unit is replaced: the price of two units, one out and one in.

        Returns
        -------
        Charge
            (2·epsilon, (1 + e^epsilon)·delta), and 4·rho.

        Raises
        ------
        ArgumentError
            It is not stated for a unit that is added or removed. Nothing follows the other way.

        Examples
        --------
        >>> Charge.pure(Fraction(1), Promise("patient")).to_replace().epsilon
        Fraction(2, 1)
        """
        unit = self._added("to_replace").unit
        return self.grouped(2).promising(Promise(unit, Neighbours.REPLACE))

    def to_group(self, unit: str, size: int) -> Charge:
        """What it costs for a larger unit that is made of at most ``size`` of these.

        Parameters
        ----------
        unit : str
            The larger unit: a patient, where this charge is stated for a row.
        size : int
            The most that one of the larger units can hold, at least 1. That no one holds more is
            the caller's to know: it is part of what is promised.

        Returns
        -------
        Charge
            With k = size: (k·epsilon, delta·(e^(k·epsilon) - 1)/(e^epsilon - 1)), and k²·rho.

        Raises
        ------
        ArgumentError
            The size is below 1, or the charge is not stated for a unit that is added or removed:
            replacing rows cannot turn a unit of three rows into one of two.

        Notes
        -----
        Group privacy along a chain of k neighbours. Pure zCDP costs k²·rho ([1]_, proposition 27
        with xi = 0). Approximate zCDP (``rho_delta`` above 0) has no such chain: the events that
        one step leaves out need not be those of the next. Then the group's (epsilon, delta) is
        restated as delta-approximate (epsilon²/2)-zCDP, or no rho is claimed.

        References
        ----------
        .. [1] Bun and Steinke, TCC 2016.

        Examples
        --------
        >>> row = Charge.pure(Fraction(1, 2), Promise("row of scans"))
        >>> row.to_group("patient", 3).epsilon, row.to_group("patient", 3).rho
        (Fraction(3, 2), Fraction(9, 8))
        """
        self._added("to_group")
        return self.grouped(size).promising(Promise(unit))

    def rounded_up(self, unit: Number) -> Charge:
        """Every amount rounded up to a whole multiple of ``unit``."""
        unit = check.positive("unit", unit)
        return Charge(
            _up(self.epsilon, unit),
            _up(self.delta, unit) or Fraction(0),
            _up(self.rho, unit),
            _up(self.rho_delta, unit) or Fraction(0),
            self.promise,
            self.neighbours,
        )

    @property
    def amounts(self) -> Charge:
        """The amounts alone, which state neither a promise nor neighbours."""
        return replace(self, promise=None, neighbours=None)

    def grouped(self, size: int) -> Charge:
        """The amounts of a group of ``size`` units, without a promise; see `to_group`."""
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ArgumentError("size must be a whole number of at least 1")
        if size == 1:
            return self.amounts
        epsilon = None if self.epsilon is None else size * self.epsilon
        delta = self.delta
        if delta:
            # Nothing is claimed of epsilon: a delta beside it means nothing, and stays as it is.
            wide = Fraction(1) if self.epsilon is None else group_factor(self.epsilon, size)
            delta = Fraction(1) if wide is None else min(Fraction(1), delta * wide)
        rho, rho_delta = None if self.rho is None else size * size * self.rho, Fraction(0)
        # Approximate zCDP has no group rule of its own: it is restated by (epsilon, delta).
        if self.rho_delta and self.rho is not None:
            rho = None if epsilon is None else epsilon * epsilon / 2
            rho_delta = Fraction(0) if epsilon is None else delta
        return Charge(epsilon, delta, rho, rho_delta)

    def sampled(self, rate: Number) -> Charge:
        """The amounts on a sample that takes each unit with a probability of ``rate``.

        Returns
        -------
        Charge
            (log(1 + rate·(e^epsilon - 1)), rate·delta), rounded up; and the lesser of rho itself
            and what that epsilon implies. No promise.

        Notes
        -----
        Balle, Barthe and Gaboardi (2018), theorems 8 and 9. A sample's pair is a mixture of pairs
        whose Rényi divergences are 0 and those of the whole, and divergences are quasi-convex in
        the pair; approximate zCDP has no such rule, and is restated by its (epsilon, delta).

        Examples
        --------
        >>> round(float(Charge.pure(Fraction(1)).sampled(Fraction(1, 10)).epsilon), 6)
        0.158565
        """
        rate = check.exact("rate", rate, above=0, most=1)
        if rate == 1:
            return self.amounts
        # Approximate zCDP has no rule for samples, pure zCDP keeps its rho.
        rho = None if self.rho_delta else self.rho
        if self.epsilon is None:
            return Charge(None, self.delta, rho)
        epsilon = self.epsilon
        if 0 < epsilon < _REACH:
            # Upwards inside and outside; and never more than without the sample.
            least = directed.log_upper(1 + rate * (directed.exp_upper(epsilon) - 1))
            epsilon = min(epsilon, least)
        whole = Charge.approximate(epsilon, rate * self.delta)
        if rho is None or (whole.rho is not None and not whole.delta and whole.rho <= rho):
            return whole
        return replace(whole, rho=rho, rho_delta=Fraction(0))

    def moved(self, distance: Number) -> Charge:
        """The amounts where both laws lie within a total variation of ``distance`` of these."""
        distance = _read("distance", distance)
        if not distance or self.epsilon is None:
            # Without an epsilon nothing is left to say: a rho does not survive the move.
            return self.amounts if not distance else Charge.unknown()
        grown = distance * (1 + directed.exp_upper(min(self.epsilon, _REACH)))
        return Charge.approximate(self.epsilon, min(Fraction(1), self.delta + grown))

    def _stated_for(self) -> str:
        if self.promise is not None:
            return self.promise.describe()
        if self.neighbours is not None:
            return f"{self.neighbours.value!r} neighbours"
        return "nobody in particular"

    def _added(self, what: str) -> Promise:
        if self.promise is None or self.promise.neighbours is not Neighbours.ADD_REMOVE:
            raise ArgumentError(
                f"{what} converts a charge that is stated for a unit that is added or removed: "
                "say so with loss.promising(Promise(unit))"
            )
        return self.promise


def group_factor(epsilon: Fraction, size: int) -> Fraction | None:
    """By how much a delta grows for a group: Σ_{i<size} e^(i·epsilon), rounded up.

    ``None`` where it is above e^65536.

    Examples
    --------
    >>> group_factor(Fraction(0), 3), round(float(group_factor(Fraction(1), 2)), 9)
    (Fraction(3, 1), 3.718281828)
    """
    if epsilon == 0 or size == 1:
        return Fraction(size)
    if size * epsilon > _REACH:
        return None
    # Each summand by itself, while that is quick: the closed form divides by what may be next to 0.
    if size <= 64:
        return sum((directed.exp_upper(i * epsilon) for i in range(size)), Fraction(0))
    steps = size * directed.exp_upper((size - 1) * epsilon)
    # A divisor from below; where that is 0, so many times the largest summand is the bound.
    below = directed.exp_lower(epsilon) - 1
    return min(steps, (directed.exp_upper(size * epsilon) - 1) / below) if below > 0 else steps


def _read(name: str, value: Number) -> Fraction:
    return check.exact(name, value, least=0)


def _common(a: Charge, b: Charge) -> tuple[Promise | None, Neighbours | None]:
    """What both charges are stated for; one that is free says nothing."""
    if (a.promise, a.neighbours) == (b.promise, b.neighbours) or b.free:
        stated = b if a.free and a.neighbours is None else a
    elif a.free:
        stated = b
    else:
        raise ArgumentError(
            f"a charge stated for {a._stated_for()} and one stated for {b._stated_for()} cannot be "
            "added: state both for one promise (promising), or convert one (to_replace, to_group)"
        )
    return stated.promise, stated.neighbours


def _add(a: Amount, b: Amount) -> Amount:
    return None if a is None or b is None else a + b


def _up(a: Amount, unit: Fraction) -> Amount:
    return None if a is None else -((-a) // unit) * unit

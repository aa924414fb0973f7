"""Filters and odometers for spending that depends on earlier answers, each with its theorem.

A *filter* fixes a promise and admits a next charge as long as the sums stay within it; whatever it
admits, chosen however, keeps the promise. An *odometer* fixes nothing and says, at any time, what
has been spent. Amounts are exact fractions, and every rounding is towards refusal.

* `PureFilter`: epsilons add up [1]_.
* `ZcdpFilter`: rhos add up [2]_, [3]_; the promise in (epsilon, delta) is the optimal conversion.
* `RenyiFilter`: at one fixed order divergences add up [2]_.
* `GdpFilter`: squares of mu add up, for Gaussian mechanisms and any mu-GDP one [4]_.
* `SqrtFilter`: for (epsilon_i, delta_i) charges, stops before
  sqrt(2·ln(1/delta')·Σ epsilon_i²) + Σ epsilon_i²/2 exceeds epsilon; the whole is
  (epsilon, delta' + delta'')-DP while Σ delta_i <= delta'' [3]_, theorem 2. The rate is that of
  advanced composition, with no price for adaptivity.

Notes
-----
*Setting.* The amounts' meaning is that of the charges, and all of them are about the same
neighbours: an amount may name them (``neighbours=``), a loss always does, the first that does fixes
the filter's, and one that names others is refused; likewise the unit of a loss. P and Q are the
laws of the whole view on two neighbouring tables. Given the view so far, the next mechanism and its
amount are fixed, so its loss L_i has the charge's guarantee; amounts are part of the view. L is
the sum.

*Sums of losses* (`PureFilter`). |L_i| <= epsilon_i, and the epsilons that are admitted add up to
at most the cap in every view, so |L| <= cap.

*Rényi and zCDP.* Let E[e^{c·L_i} | view] <= e^{c·d_i}, where d_i is the charge at order 1 + c (c
+ 1 times rho_i for zCDP). Then exp(c·L - c·Σ d_i), taken step by step under P, has conditional
mean at most 1 and so is a supermartingale. Stopped whenever the filter or the adversary stops,
its mean is at most 1, and Σ d_i <= cap always; so E[e^{cL}] <= e^{c·cap}.

*Gaussian* (`GdpFilter`). By Blackwell's theorem a mu-GDP answer is a random map of N(0, 1)
against N(mu, 1), hence of a Brownian path run for time mu² without drift against one with drift
1. One path serves all answers: each uses the next stretch, whose length the view so far fixes.
The lengths never exceed the cap together, so the view is a random map of the path up to time cap,
that is of N(0, cap) against N(cap, cap): sqrt(cap)-GDP. (For other trade-off curves adding up
along the view is not sound; only Gaussian ones have this path.)

*Square root* (`SqrtFilter`). An epsilon-DP answer is epsilon²/2-zCDP, so with S = Σ epsilon_i²
the process exp(c·L - c(c + 1)·S/2) is a supermartingale. By Ville's inequality it ever reaches
1/delta' with probability at most delta'; otherwise L <= ln(1/delta')/c + (c + 1)·S/2 at all
times. With s the largest S that is admitted and c = sqrt(2·ln(1/delta')/s) that is
sqrt(2·s·ln(1/delta')) + s/2, at most epsilon. An (epsilon_i, delta_i) answer is, on both tables,
a mixture with weight delta_i of something arbitrary and else epsilon_i-DP; the weights add up to
at most delta'' in every view.

References
----------
.. [1] Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters", NeurIPS 2016.
.. [2] Feldman and Zrnic, "Individual privacy accounting via a Rényi filter", NeurIPS 2021.
.. [3] Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy",
   ICML 2023.
.. [4] Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol, Self

from dither import _checks as check
from dither._format import remaining
from dither.errors import ArgumentError, BudgetError
from dither.numeric import float_up, log_upper, sqrt_upper
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._conversion import epsilon_of_rho
from dither.privacy._loss import as_charge

__all__ = [
    "Filter",
    "GdpFilter",
    "Odometer",
    "PureFilter",
    "RenyiFilter",
    "SqrtFilter",
    "ZcdpFilter",
]


ZERO = Fraction(0)


Amount = int | Fraction | Loss | Charge
"""What a filter is charged: the amount in its own currency, or a loss that knows it."""


class Filter(Protocol):
    """A frozen account: ``charge`` gives the next one, or refuses."""

    def admits(
        self, amount: Amount, delta: Fraction = ZERO, *, neighbours: Neighbours | None = None
    ) -> bool:
        """Whether the next charge keeps the promise."""
        ...

    def charge(
        self, amount: Amount, delta: Fraction = ZERO, *, neighbours: Neighbours | None = None
    ) -> Self:
        """The account after the charge."""
        ...


@dataclass(frozen=True, slots=True)
class _Asked:
    """A charge in a filter's currency (None is infinity), and what it is stated for."""

    amount: Fraction | None
    delta: Fraction
    neighbours: Neighbours | None
    unit: str | None = None


def _promised(loss: Loss | Charge) -> dict[str, Any]:
    """The neighbours and the unit that a loss is stated for."""
    if isinstance(loss, Loss):
        return {"neighbours": loss.neighbours, "unit": loss.unit}
    if loss.promise is None:
        return {}
    return {"neighbours": loss.promise.neighbours, "unit": loss.promise.unit}


@dataclass(frozen=True, slots=True)
class _Account:
    """Whom the sum of an account is about; what is charged as a loss must agree.

    Parameters
    ----------
    neighbours, unit : optional
        As the first charge that names them states them.
    """

    neighbours: Neighbours | None = field(default=None, kw_only=True)
    unit: str | None = field(default=None, kw_only=True)

    def _currency(self, loss: Loss | Charge) -> tuple[Fraction | None, Fraction]:
        """The amount and the delta of a loss, as this account adds them up."""
        charge = as_charge(loss)
        return charge.epsilon, charge.delta

    @property
    def _begun(self) -> bool:
        """Whether anything was charged."""
        raise NotImplementedError

    def _asked(self, amount: Amount, delta: Fraction, neighbours: Neighbours | None) -> _Asked:
        if not isinstance(amount, Loss | Charge):
            asked = _Asked(
                check.exact("amount", amount, least=0),
                check.exact("delta", delta, least=0),
                neighbours,
            )
        elif delta or neighbours is not None:
            raise ArgumentError("delta and neighbours are the loss's own: charge it by itself")
        else:
            asked = _Asked(*self._currency(amount), None)
            if not amount.free:
                asked = replace(asked, **_promised(amount))
        self._stated(asked)
        named = not isinstance(amount, Loss | Charge) or amount.free or asked.unit is not None
        if self.unit is not None and not named:
            raise ArgumentError(
                f"this account is about one {self.unit!r}, and the loss names no unit: say whom it "
                "is about with loss.promising(unit)"
            )
        return asked

    def _stated(self, asked: _Asked) -> dict[str, Any]:
        """The neighbours and the unit of the account after a charge that may state some.

        Raises
        ------
        ArgumentError
            They are others than the account's; or the account was charged before without any, so
            that nobody can say what its sum is about.
        """
        if asked.neighbours is not None and not isinstance(asked.neighbours, Neighbours):
            raise ArgumentError("neighbours must be Neighbours.ADD_REMOVE or Neighbours.REPLACE")
        agreed: dict[str, Any] = {}
        kinds = (("neighbours", "neighbours", "relation"), ("unit", "units", "unit"))
        for name, said, one in kinds:
            bound, stated = getattr(self, name), getattr(asked, name)
            if stated is None or stated == bound or (bound is None and not self._begun):
                agreed[name] = bound if stated is None else stated
                continue
            now, before = (
                "unstated" if x is None else repr(x.value if isinstance(x, Neighbours) else x)
                for x in (stated, bound)
            )
            raise ArgumentError(
                f"a loss for {now} {said} cannot be added to losses for {before} ones; state all "
                f"of them for one {one}"
            )
        return agreed


@dataclass(frozen=True, slots=True)
class _Sum(_Account):
    """A cap on one exact sum."""

    cap: Fraction
    spent: Fraction = ZERO

    def __post_init__(self) -> None:
        object.__setattr__(self, "cap", check.positive("cap", self.cap))
        object.__setattr__(self, "spent", check.exact("spent", self.spent, least=0))
        self._stated(_Asked(ZERO, ZERO, self.neighbours, self.unit))

    @property
    def _begun(self) -> bool:
        return self.spent > 0

    def _cost(self, amount: Fraction) -> Fraction:
        return amount

    def _fits(self, asked: _Asked) -> bool:
        return (
            asked.amount is not None
            and asked.delta == 0
            and self.spent + self._cost(asked.amount) <= self.cap
        )

    def admits(
        self, amount: Amount, delta: Fraction = ZERO, *, neighbours: Neighbours | None = None
    ) -> bool:
        """Whether the sum with the next amount stays within the cap; a delta never fits.

        Parameters
        ----------
        amount : Fraction, int, Loss or Charge
            In the filter's currency, or a loss, which says its own delta and neighbours.
        delta : Fraction
            Of an amount.
        neighbours : Neighbours, optional
            Of an amount.
        """
        return self._fits(self._asked(amount, delta, neighbours))

    def charge(
        self, amount: Amount, delta: Fraction = ZERO, *, neighbours: Neighbours | None = None
    ) -> Self:
        """The account after the charge; parameters as for `admits`.

        Raises
        ------
        BudgetError
            The charge does not fit; nothing is spent.
        ArgumentError
            It is stated for other neighbours or another unit than the charges before.
        """
        asked = self._asked(amount, delta, neighbours)
        if asked.amount is None or not self._fits(asked):
            raise BudgetError(
                f"the charge does not fit: {remaining(self.cap - self.spent, 6)} of the filter's "
                "sum is left"
            )
        return replace(self, spent=self.spent + self._cost(asked.amount), **self._stated(asked))


@dataclass(frozen=True, slots=True)
class PureFilter(_Sum):
    """The whole is cap-DP; charges are epsilons of pure mechanisms.

    Parameters
    ----------
    cap : Fraction
        The promise, above 0: epsilon of everything.
    spent : Fraction
        The sum so far, 0 at the start.

    Raises
    ------
    ArgumentError
        An amount is not an int or Fraction, or out of range.

    Notes
    -----
    Guarantee: of all answers that were admitted, however chosen, for the neighbours of the
    charges. The proof is in the module.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, NeurIPS 2016.

    Examples
    --------
    >>> account = PureFilter(Fraction(1)).charge(Fraction(2, 3))
    >>> account.admits(Fraction(1, 3)), account.admits(Fraction(1, 2))
    (True, False)
    """


@dataclass(frozen=True, slots=True)
class ZcdpFilter(_Sum):
    """The whole is cap-zCDP; charges are rhos.

    Parameters
    ----------
    cap : Fraction
        The promise, above 0: rho of everything.
    spent : Fraction
        The sum so far, 0 at the start.

    Raises
    ------
    ArgumentError
        An amount is not an int or Fraction, or out of range.

    Notes
    -----
    Guarantee: of all answers that were admitted, however chosen, for the neighbours of the
    charges. The proof is in the module.

    References
    ----------
    Feldman and Zrnic, NeurIPS 2021; Whitehouse, Ramdas, Rogers and Wu, ICML 2023.

    Examples
    --------
    >>> ZcdpFilter(Fraction(1, 2)).epsilon(Fraction(1, 10**6)) < 5.2216
    True
    """

    def _currency(self, loss: Loss | Charge) -> tuple[Fraction | None, Fraction]:
        charge = as_charge(loss)
        return charge.rho, charge.rho_delta

    def epsilon(self, delta: Fraction) -> Fraction:
        """The promise as an epsilon at a delta."""
        return epsilon_of_rho(self.cap, delta)


@dataclass(frozen=True, slots=True)
class RenyiFilter(_Sum):
    """The whole has Rényi divergence at most cap at one order; charges are divergences there.

    Parameters
    ----------
    order : Fraction
        Above 1, fixed before the first charge.

    Raises
    ------
    ArgumentError
        An amount is not an int or Fraction, or out of range.

    Notes
    -----
    Guarantee: of all answers that were admitted, however chosen, for the neighbours of the
    charges. The proof is in the module.

    References
    ----------
    Feldman and Zrnic, NeurIPS 2021.

    Examples
    --------
    >>> RenyiFilter(Fraction(1), order=Fraction(8)).admits(Fraction(2))
    False
    """

    order: Fraction = Fraction(2)

    def __post_init__(self) -> None:
        # Zero-argument super() does not work in a dataclass that is rebuilt for its slots.
        _Sum.__post_init__(self)
        object.__setattr__(self, "order", check.exact("order", self.order, above=1))

    def _currency(self, loss: Loss | Charge) -> tuple[Fraction | None, Fraction]:
        if isinstance(loss, Loss):
            # Divergences grow with the order, so that a rounded one errs upwards.
            return Fraction(loss.renyi(float_up(Fraction(self.order))).upper), ZERO
        return loss.rho and loss.rho * self.order, loss.rho_delta

    def epsilon(self, delta: Fraction) -> Fraction:
        """The promise as an epsilon: cap + log(1/(order·delta))/(order-1) + log(1 - 1/order)."""
        delta = check.exact("delta", delta, above=0, below=1)
        order = Fraction(self.order)
        value = self.cap + log_upper(1 / (order * delta)) / (order - 1) + log_upper(1 - 1 / order)
        return max(ZERO, value)


@dataclass(frozen=True, slots=True)
class GdpFilter(_Sum):
    """The whole is sqrt(cap)-GDP; charges are mus, whose squares add up.

    Parameters
    ----------
    cap : Fraction
        The promise, above 0: mu² of everything.
    spent : Fraction
        The sum so far, 0 at the start.

    Raises
    ------
    ArgumentError
        An amount is not an int or Fraction, or out of range.

    Notes
    -----
    Guarantee: of all answers that were admitted, however chosen, for the neighbours of the
    charges. The proof is in the module.

    References
    ----------
    Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.

    Examples
    --------
    >>> account = GdpFilter(Fraction(1)).charge(Fraction(3, 5))
    >>> account.admits(Fraction(4, 5)), account.admits(Fraction(5, 6))
    (True, False)
    """

    def _cost(self, amount: Fraction) -> Fraction:
        return amount * amount

    def _currency(self, loss: Loss | Charge) -> tuple[Fraction | None, Fraction]:
        if not isinstance(loss, Loss):
            raise ArgumentError("a charge says no mu: charge the loss itself")
        return check.exact("mu", loss.gdp().upper), ZERO


@dataclass(frozen=True, slots=True)
class SqrtFilter(_Account):
    """The whole is (epsilon, slack + delta)-DP at the rate of advanced composition.

    Parameters
    ----------
    epsilon : Fraction
        The promise, above 0.
    slack : Fraction
        delta' in (0, 1): what the square root costs.
    delta : Fraction
        delta'' in [0, 1): what the charges' own deltas may add up to.
    squares, deltas : Fraction
        Σ epsilon_i² and Σ delta_i so far.

    Raises
    ------
    ArgumentError
        An amount is not an int or Fraction, or out of range.

    Notes
    -----
    Guarantee: of all answers that were admitted, however chosen, for the neighbours of the
    charges. The proof is in the module.

    References
    ----------
    Whitehouse, Ramdas, Rogers and Wu, ICML 2023, theorem 2.

    Examples
    --------
    >>> account = SqrtFilter(Fraction(1), Fraction(1, 10**6))
    >>> count = 0
    >>> while account.admits(Fraction(1, 100)):
    ...     account, count = account.charge(Fraction(1, 100)), count + 1
    >>> count > 300
    True
    """

    epsilon: Fraction
    slack: Fraction
    delta: Fraction = ZERO
    squares: Fraction = ZERO
    deltas: Fraction = ZERO

    def __post_init__(self) -> None:
        for name in ("epsilon", "slack"):
            object.__setattr__(self, name, check.positive(name, getattr(self, name)))
        for name in ("delta", "squares", "deltas"):
            object.__setattr__(self, name, check.exact(name, getattr(self, name), least=0))
        if self.slack >= 1 or self.delta >= 1:
            raise ArgumentError("slack and delta must be below 1")

    def _after(self, squares: Fraction) -> Fraction:
        return sqrt_upper(2 * log_upper(1 / self.slack) * squares) + squares / 2

    def spent(self) -> Fraction:
        """An epsilon that holds for everything so far, at slack + Σ delta_i; rounded up."""
        return self._after(self.squares)

    @property
    def _begun(self) -> bool:
        return self.squares + self.deltas > 0

    def _fits(self, asked: _Asked) -> bool:
        return (
            asked.amount is not None
            and self._after(self.squares + asked.amount * asked.amount) <= self.epsilon
            and self.deltas + asked.delta <= self.delta
        )

    def admits(
        self, amount: Amount, delta: Fraction = ZERO, *, neighbours: Neighbours | None = None
    ) -> bool:
        """Whether an (amount, delta)-DP charge, or a loss, keeps the promise."""
        return self._fits(self._asked(amount, delta, neighbours))

    def charge(
        self, amount: Amount, delta: Fraction = ZERO, *, neighbours: Neighbours | None = None
    ) -> Self:
        """The account after the charge.

        Raises
        ------
        BudgetError
            The charge does not fit; nothing is spent.
        ArgumentError
            It is stated for other neighbours or another unit than the charges before.
        """
        asked = self._asked(amount, delta, neighbours)
        if asked.amount is None or not self._fits(asked):
            raise BudgetError("the charge does not fit the filter's square-root sum or its delta")
        return replace(
            self,
            squares=self.squares + asked.amount**2,
            deltas=self.deltas + asked.delta,
            **self._stated(asked),
        )


@dataclass(frozen=True, slots=True)
class Odometer(_Account):
    """What adaptive pure charges have cost, valid at every time at once.

    Parameters
    ----------
    delta : Fraction
        In (0, 1): the chance, over everything, that the loss ever exceeds the reading.
    rung : Fraction
        The first rung of Σ epsilon_i², above 0; later ones double.
    squares, total : Fraction
        Σ epsilon_i² and Σ epsilon_i so far.

    Notes
    -----
    *Claim.* With probability at least 1 - delta the privacy loss is at most `reading` at all times.

    *Proof.* Rung j = 0, 1, ... is the `SqrtFilter` that stops when Σ epsilon_i² would exceed
    rung·2^j, with slack delta/2^(j+1). By Ville's inequality, as in the module's notes, the loss
    exceeds that filter's epsilon at some time before it stops with probability at most its slack:
    that inequality holds at all times at once. The slacks add up to at most delta. At any time
    the first rung that has not stopped gives the reading; Σ epsilon_i bounds the loss surely.

    Examples
    --------
    >>> meter = Odometer(Fraction(1, 10**6), Fraction(1, 100))
    >>> for _ in range(100):
    ...     meter = meter.charge(Fraction(1, 100))
    >>> meter.reading() <= 1
    True
    """

    delta: Fraction
    rung: Fraction
    squares: Fraction = ZERO
    total: Fraction = ZERO

    def __post_init__(self) -> None:
        for name in ("delta", "rung"):
            object.__setattr__(self, name, check.positive(name, getattr(self, name)))
        if self.delta >= 1:
            raise ArgumentError("delta must be below 1")

    @property
    def _begun(self) -> bool:
        return self.total > 0

    def charge(self, amount: Amount, *, neighbours: Neighbours | None = None) -> Self:
        """The meter after a pure charge; an odometer refuses nothing else but other neighbours.

        Raises
        ------
        ArgumentError
            A loss is not pure, or is stated for other neighbours or another unit than before.
        """
        asked = self._asked(amount, ZERO, neighbours)
        if asked.amount is None or asked.delta:
            raise ArgumentError("an odometer reads pure losses: this one has a delta")
        return replace(
            self,
            squares=self.squares + asked.amount**2,
            total=self.total + asked.amount,
            **self._stated(asked),
        )

    def reading(self) -> Fraction:
        """An epsilon that the loss has not exceeded so far, rounded up."""
        if self.squares == 0:
            return ZERO
        step, cap = 0, self.rung
        while cap < self.squares:
            step, cap = step + 1, cap * 2
        log = log_upper(2 ** (step + 1) / self.delta)
        return min(self.total, sqrt_upper(2 * log * cap) + cap / 2)

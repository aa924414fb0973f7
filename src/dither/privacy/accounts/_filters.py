"""Filters and odometers: accounts for spending that depends on earlier answers.

A *filter* fixes a promise and admits a next charge as long as its sums stay within the promise;
whatever it admits, chosen however, keeps it. An *odometer* fixes nothing and says, at any time,
what has been spent. Amounts are exact, and every rounding is towards refusal. The proofs stand in
the classes; this is what they share.

*Setting.* Amounts are in the currency of the class, and all of them are about the same neighbours:
an amount may name them (``neighbours=``), a loss always does, the first that does fixes the
account's, and one that names others is refused; likewise the unit of a loss. P and Q are the laws
of the whole view on two neighbouring tables. Given the view so far, the next mechanism and its
amount are fixed, so its loss L_i has the guarantee that was charged; amounts are part of the view.
L is the sum.

*Supermartingale.* Let E[e^{c·L_i} | view] <= e^{c·d_i}, where d_i is the charge at order 1 + c (c
+ 1 times rho_i for zCDP). Then exp(c·L - c·Σ d_i), taken step by step under P, has conditional
mean at most 1. Stopped whenever the filter or the adversary stops, its mean is at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from dither import _checks as check
from dither._checks import Number
from dither._format import remaining
from dither.errors import ArgumentError
from dither.numeric import float_up, log_upper, sqrt_upper
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._conversion import epsilon_of_rho
from dither.privacy._loss import as_charge
from dither.privacy.accounts._account import ZERO, Account, Amount, AskedCharge, PrivacyFilter

__all__ = ["GdpFilter", "Odometer", "PureFilter", "RenyiFilter", "SqrtFilter", "ZcdpFilter"]


@dataclass(frozen=True, slots=True)
class _Sum(PrivacyFilter):
    """A cap on one exact sum; a delta never fits."""

    cap: Fraction
    spent: Fraction = ZERO

    def __post_init__(self) -> None:
        self._read(("cap",), ("spent",))

    @property
    def _begun(self) -> bool:
        return self.spent > 0

    def _cost(self, amount: Fraction) -> Fraction:
        return amount

    def _next(self, asked: AskedCharge) -> dict[str, Any] | None:
        # A sum of amounts says nothing of what happens with probability delta.
        if asked.amount is None or asked.delta:
            return None
        spent = self.spent + self._cost(asked.amount)
        # In rationals: no sum of roundings can creep above the cap.
        return {"spent": spent} if spent <= self.cap else None

    @property
    def _left(self) -> str:
        return f"{remaining(self.cap - self.spent, 6)} of the filter's sum is left"


@dataclass(frozen=True, slots=True)
class PureFilter(_Sum):
    """Epsilons add up, and the whole is cap-DP.

    Parameters
    ----------
    cap : Fraction
        The promise, above 0: epsilon of everything.
    spent : Fraction
        The sum so far, 0 at the start.

    Notes
    -----
    *Proof.* |L_i| <= epsilon_i, and the epsilons that are admitted add up to at most the cap in
    every view, so |L| <= cap.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters", NeurIPS 2016.

    Examples
    --------
    >>> account = PureFilter(1).charge("2/3")
    >>> account.admits("1/3"), account.admits(0.5)
    (True, False)
    """


@dataclass(frozen=True, slots=True)
class ZcdpFilter(_Sum):
    """Rhos add up, and the whole is cap-zCDP.

    Parameters
    ----------
    cap : Fraction
        The promise, above 0: rho of everything.
    spent : Fraction
        The sum so far, 0 at the start.

    Notes
    -----
    *Proof.* The supermartingale of the setting, at every c: Σ d_i <= (1 + c)·cap always, so
    E[e^{cL}] <= e^{c(c + 1)·cap}.

    References
    ----------
    Feldman and Zrnic, "Individual privacy accounting via a Rényi filter", NeurIPS 2021;
    Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy",
    ICML 2023.

    Examples
    --------
    >>> ZcdpFilter(0.5).epsilon(1e-6) < 5.2216
    True
    """

    def _currency(self, loss: Loss | Charge) -> tuple[Fraction | None, Fraction]:
        charge = as_charge(loss)
        # zCDP has a delta of its own; that of (epsilon, delta) is another statement.
        return charge.rho, charge.rho_delta

    def epsilon(self, delta: Number) -> Fraction:
        """The promise as an epsilon at a delta, by the optimal conversion."""
        return epsilon_of_rho(self.cap, delta)


@dataclass(frozen=True, slots=True)
class RenyiFilter(_Sum):
    """Rényi divergences at one order add up, and the whole has at most cap there.

    Parameters
    ----------
    cap : Fraction
        The promise, above 0: the divergence of everything.
    spent : Fraction
        The sum so far, 0 at the start.
    order : Fraction
        Above 1, fixed before the first charge.

    Notes
    -----
    *Proof.* The supermartingale of the setting, at c = order - 1: Σ d_i <= cap always, so
    E[e^{cL}] <= e^{c·cap}.

    References
    ----------
    Feldman and Zrnic, "Individual privacy accounting via a Rényi filter", NeurIPS 2021.

    Examples
    --------
    >>> RenyiFilter(1, order=8).admits(2)
    False
    """

    order: Fraction = Fraction(2)

    def __post_init__(self) -> None:
        self._read(("cap",), ("spent",))
        object.__setattr__(self, "order", check.exact("order", self.order, above=1))

    def _currency(self, loss: Loss | Charge) -> tuple[Fraction | None, Fraction]:
        if isinstance(loss, Loss):
            # Divergences grow with the order, so that a rounded one errs upwards.
            return Fraction(loss.renyi(float_up(self.order)).upper), ZERO
        # zCDP bounds the divergence at every order by the order times rho.
        return loss.rho and loss.rho * self.order, loss.rho_delta

    def epsilon(self, delta: Number) -> Fraction:
        """The promise as an epsilon: cap + log(1/(order·delta))/(order-1) + log(1 - 1/order)."""
        exact, order = check.exact("delta", delta, above=0, below=1), self.order
        # Each logarithm from above, as each is added.
        value = self.cap + log_upper(1 / (order * exact)) / (order - 1) + log_upper(1 - 1 / order)
        # The formula may go below 0; an epsilon of 0 is the least that is claimed.
        return max(ZERO, value)


@dataclass(frozen=True, slots=True)
class GdpFilter(_Sum):
    """Squares of mu add up, and the whole is sqrt(cap)-GDP.

    Charges are the mus of Gaussian mechanisms, or of any that are mu-GDP.

    Parameters
    ----------
    cap : Fraction
        The promise, above 0: mu² of everything.
    spent : Fraction
        The sum so far, 0 at the start.

    Notes
    -----
    *Proof.* By Blackwell's theorem a mu-GDP answer is a random map of N(0, 1) against N(mu, 1),
    hence of a Brownian path run for time mu² without drift against one with drift 1. One path
    serves all answers: each uses the next stretch, whose length the view so far fixes. The lengths
    never exceed the cap together, so the view is a random map of the path up to time cap, that is
    of N(0, cap) against N(cap, cap): sqrt(cap)-GDP. (Adding up other trade-off curves along the
    view is not sound; only Gaussian ones have this path.)

    References
    ----------
    Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.

    Examples
    --------
    >>> account = GdpFilter(1).charge(0.6)
    >>> account.admits(0.8), account.admits("5/6")
    (True, False)
    """

    def _cost(self, amount: Fraction) -> Fraction:
        # Squares of mu are lengths of path, which add up; mus themselves do not.
        return amount * amount

    def _currency(self, loss: Loss | Charge) -> tuple[Fraction | None, Fraction]:
        if not isinstance(loss, Loss):
            raise ArgumentError("a charge has no mu: charge the loss itself")
        # The upper end of mu: a path that is too long is charged too much.
        return check.exact("mu", loss.gdp().upper), ZERO


@dataclass(frozen=True, slots=True)
class SqrtFilter(PrivacyFilter):
    """(epsilon_i, delta_i) add up at the rate of advanced composition.

    It stops before sqrt(2·ln(1/slack)·Σ epsilon_i²) + Σ epsilon_i²/2 exceeds epsilon; the whole is
    (epsilon, slack + delta)-DP while Σ delta_i <= delta. Adaptivity has no price.

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

    Notes
    -----
    *Proof.* An epsilon-DP answer is epsilon²/2-zCDP, so with S = Σ epsilon_i² the process
    exp(c·L - c(c + 1)·S/2) is a supermartingale. By Ville's inequality it ever reaches 1/delta'
    with probability at most delta'; otherwise L <= ln(1/delta')/c + (c + 1)·S/2 at all times. With
    s the largest S that is admitted and c = sqrt(2·ln(1/delta')/s) that is
    sqrt(2·s·ln(1/delta')) + s/2, at most epsilon. An (epsilon_i, delta_i) answer is, on both
    tables, a mixture with weight delta_i of something arbitrary and else epsilon_i-DP; the weights
    add up to at most delta'' in every view.

    References
    ----------
    Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy",
    ICML 2023, theorem 2.

    Examples
    --------
    >>> account = SqrtFilter(1, 1e-6)
    >>> count = 0
    >>> while account.admits(0.01):
    ...     account, count = account.charge(0.01), count + 1
    >>> count > 300
    True
    """

    epsilon: Fraction
    slack: Fraction
    delta: Fraction = ZERO
    squares: Fraction = ZERO
    deltas: Fraction = ZERO

    def __post_init__(self) -> None:
        self._read(("epsilon", "slack"), ("delta", "squares", "deltas"))
        if self.slack >= 1 or self.delta >= 1:
            raise ArgumentError("slack and delta must be below 1")

    @property
    def _begun(self) -> bool:
        return self.squares + self.deltas > 0

    def _total(self, squares: Fraction) -> Fraction:
        return sqrt_upper(2 * log_upper(1 / self.slack) * squares) + squares / 2

    def spent(self) -> Fraction:
        """An epsilon that holds for everything so far, at slack + Σ delta_i; rounded up."""
        return self._total(self.squares)

    def _next(self, asked: AskedCharge) -> dict[str, Any] | None:
        if asked.amount is None:
            return None
        # Both sums at once, so that a refusal by either leaves both as they were.
        squares, deltas = self.squares + asked.amount**2, self.deltas + asked.delta
        kept = self._total(squares) <= self.epsilon and deltas <= self.delta
        return {"squares": squares, "deltas": deltas} if kept else None

    @property
    def _left(self) -> str:
        return "too little of the filter's square-root sum or of its delta is left"


@dataclass(frozen=True, slots=True)
class Odometer(Account):
    """What adaptive pure charges have cost, valid at every time at once.

    With probability at least 1 - delta the privacy loss is at most `reading` at all times.

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
    *Proof.* Rung j = 0, 1, ... is the `SqrtFilter` that stops when Σ epsilon_i² would exceed
    rung·2^j, with slack delta/2^(j+1). By Ville's inequality, which holds at all times at once, the
    loss exceeds that filter's epsilon at some time before it stops with probability at most its
    slack. The slacks add up to at most delta. At any time the first rung that has not stopped gives
    the reading; Σ epsilon_i bounds the loss with certainty.

    Examples
    --------
    >>> meter = Odometer(1e-6, 0.01)
    >>> for _ in range(100):
    ...     meter = meter.charge(0.01)
    >>> meter.reading() <= 1
    True
    """

    delta: Fraction
    rung: Fraction
    squares: Fraction = ZERO
    total: Fraction = ZERO

    def __post_init__(self) -> None:
        self._read(("delta", "rung"), ("squares", "total"))
        if self.delta >= 1:
            raise ArgumentError("delta must be below 1")

    @property
    def _begun(self) -> bool:
        return self.total > 0

    def charge(self, amount: Amount, *, neighbours: Neighbours | None = None) -> Self:
        """The meter after a pure charge, of whatever size.

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
        # The first rung that still holds; all rungs are true at once, as their slacks add up to
        # delta.
        while cap < self.squares:
            step, cap = step + 1, cap * 2
        # Rung j has the slack delta/2^(j+1).
        log = log_upper(2 ** (step + 1) / self.delta)
        # Σ epsilon_i holds with certainty, and is less while there are few charges.
        return min(self.total, sqrt_upper(2 * log * cap) + cap / 2)

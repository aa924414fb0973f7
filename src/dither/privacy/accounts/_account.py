"""What filters and odometers share: whom a sum is about, and how a charge is read and refused."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError, BudgetError
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._loss import as_charge

__all__ = ["ZERO", "Account", "Amount", "AskedCharge", "PrivacyFilter"]


ZERO = Fraction(0)


Amount = Number | Loss | Charge
"""What an account is charged: the amount in its own currency, or a loss that knows it."""


@dataclass(frozen=True, slots=True)
class AskedCharge:
    """A charge in an account's currency (None is infinity), and what it is stated for."""

    amount: Fraction | None
    delta: Fraction
    neighbours: Neighbours | None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the sum of an account is about; what is charged as a loss must agree.

    Parameters
    ----------
    neighbours, unit : optional
        As the first charge that names them states them.
    """

    neighbours: Neighbours | None = field(default=None, kw_only=True)
    unit: str | None = field(default=None, kw_only=True)

    def _read(self, positive: tuple[str, ...], least: tuple[str, ...]) -> None:
        """Hold the promise and the sums exactly: those above 0, and those of at least 0."""
        for name in positive:
            object.__setattr__(self, name, check.positive(name, getattr(self, name)))
        for name in least:
            object.__setattr__(self, name, check.exact(name, getattr(self, name), least=0))
        self._stated(AskedCharge(ZERO, ZERO, self.neighbours, self.unit))

    def _currency(self, loss: Loss | Charge) -> tuple[Fraction | None, Fraction]:
        """The amount and the delta of a loss, as this account adds them up."""
        charge = as_charge(loss)
        return charge.epsilon, charge.delta

    @property
    def _begun(self) -> bool:
        """Whether anything was charged."""
        raise NotImplementedError

    def _asked(self, amount: Amount, delta: Any, neighbours: Neighbours | None) -> AskedCharge:
        if not isinstance(amount, Loss | Charge):
            asked = AskedCharge(
                check.exact("amount", amount, least=0),
                check.exact("delta", delta, least=0),
                neighbours,
            )
        # A loss knows these itself: two statements of them might differ.
        elif delta or neighbours is not None:
            raise ArgumentError("delta and neighbours are the loss's own: charge it by itself")
        else:
            asked = AskedCharge(*self._currency(amount), None)
            # What costs nothing is true of every unit and relation, and must not fix the account's.
            if not amount.free:
                unit = None if amount.promise is None else amount.promise.unit
                asked = replace(asked, neighbours=amount.neighbours, unit=unit)
        self._stated(asked)
        # A number is the caller's own statement; a loss that names no unit may be about another
        # one.
        named = not isinstance(amount, Loss | Charge) or amount.free or asked.unit is not None
        if self.unit is not None and not named:
            raise ArgumentError(
                f"this account is about one {self.unit!r}, and the loss names no unit: say whom it "
                "is about with loss.promising(unit)"
            )
        return asked

    def _stated(self, asked: AskedCharge) -> dict[str, Any]:
        """The neighbours and the unit of the account after a charge that may state some.

        Raises
        ------
        ArgumentError
            They are others than the account's; or the account was charged before without any, so
            that it is unknown what its sum is about.
        """
        if asked.neighbours is not None and not isinstance(asked.neighbours, Neighbours):
            raise ArgumentError("neighbours must be Neighbours.ADD_REMOVE or Neighbours.REPLACE")
        agreed: dict[str, Any] = {}
        kinds = (("neighbours", "neighbours", "relation"), ("unit", "units", "unit"))
        for name, said, one in kinds:
            bound, stated = getattr(self, name), getattr(asked, name)
            # A relation may be fixed by a first charge; after charges that named none nobody knows
            # theirs.
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
class PrivacyFilter(Account):
    """A frozen account that keeps a promise: ``charge`` gives the next one, or refuses.

    Everything that it admits, chosen however, keeps the promise together, for the neighbours of the
    charges.
    """

    def _next(self, asked: AskedCharge) -> dict[str, Any] | None:
        """The sums with a charge; None where the promise would not be kept."""
        raise NotImplementedError

    @property
    def _left(self) -> str:
        """What is left, for the message of a refusal."""
        raise NotImplementedError

    def admits(
        self, amount: Amount, delta: Number = ZERO, *, neighbours: Neighbours | None = None
    ) -> bool:
        """Whether the promise is kept with the next charge.

        Parameters
        ----------
        amount : number, Loss or Charge
            At least 0, in the filter's currency; or a loss, which has its own delta and
            neighbours.
        delta : number
            Of an amount: at least 0.
        neighbours : Neighbours, optional
            Of an amount.

        Raises
        ------
        ArgumentError
            An amount is out of range, or stated for other neighbours or another unit than the
            charges before.
        """
        return self._next(self._asked(amount, delta, neighbours)) is not None

    def charge(
        self, amount: Amount, delta: Number = ZERO, *, neighbours: Neighbours | None = None
    ) -> Self:
        """The account after the charge; parameters and errors as of `admits`.

        Raises
        ------
        BudgetError
            The charge does not fit; nothing is spent.
        """
        asked = self._asked(amount, delta, neighbours)
        sums = self._next(asked)
        if sums is None:
            raise BudgetError(f"the charge does not fit: {self._left}")
        # A new account: whoever still holds the old one has spent nothing by it.
        return replace(self, **sums, **self._stated(asked))

"""What one release costs, in the two currencies that accounts add up."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dither.errors import ArgumentError

__all__ = ["Charge"]

Amount = Fraction | None
"""An exact amount; ``None`` stands for infinity."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The loss of a release, said twice: both statements are true of it.

    Parameters
    ----------
    epsilon, delta : Fraction or None, Fraction
        The release is (epsilon, delta)-differentially private. ``epsilon=None`` means that no
        finite epsilon is claimed.
    rho, rho_delta : Fraction or None, Fraction
        The release is rho_delta-approximate rho-zCDP [1]_.

    Notes
    -----
    Both statements are about the same neighbours, which the account fixes once. Charges of an
    adaptive sequence add up field by field: for (epsilon, delta) by basic composition, for
    approximate zCDP by its own composition.

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

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "rho", "rho_delta"):
            value = getattr(self, name)
            if value is None and name in ("epsilon", "rho"):
                continue
            if not isinstance(value, Fraction) or value < 0:
                raise ArgumentError(f"{name} must be a Fraction of at least 0")

    @classmethod
    def pure(cls, epsilon: Fraction) -> Charge:
        """The charge of an epsilon-DP release: epsilon-DP implies (epsilon²/2)-zCDP."""
        return cls(epsilon=epsilon, rho=epsilon * epsilon / 2)

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            _add(self.epsilon, other.epsilon),
            self.delta + other.delta,
            _add(self.rho, other.rho),
            self.rho_delta + other.rho_delta,
        )

    def rounded_up(self, unit: Fraction) -> Charge:
        """Every amount rounded up to a whole multiple of ``unit``."""
        return Charge(
            _up(self.epsilon, unit),
            _up(self.delta, unit) or Fraction(0),
            _up(self.rho, unit),
            _up(self.rho_delta, unit) or Fraction(0),
        )


def _add(a: Amount, b: Amount) -> Amount:
    return None if a is None or b is None else a + b


def _up(a: Amount, unit: Fraction) -> Amount:
    return None if a is None else -((-a) // unit) * unit

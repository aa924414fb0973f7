"""A number with provenance: an interval that holds the truth, used as its sound end."""

from __future__ import annotations

from dither._format import argument_text, remaining
from dither.errors import ArgumentError

__all__ = ["Bound"]


class Bound(float):
    """A float that is the sound end of an interval around the truth.

    Parameters
    ----------
    lower, upper : float
        The truth lies in [lower, upper], rounding included.
    method : str
        How the two ends were found.
    safe : {"upper", "lower"}
        Which end a guarantee quotes, and so the value as a float: the upper one of a loss, the
        lower one of an attacker's error.
    one_sided : bool
        Whether only the sound end is worth quoting: the other one holds too, but nothing is known
        to come near the sound end. Text then says "at most" or "at least".

    Examples
    --------
    >>> epsilon = Bound(0.99, 1.0, "by hand")
    >>> epsilon == 1.0, epsilon.lower, epsilon.upper, epsilon.method
    (True, 0.99, 1.0, 'by hand')
    >>> Bound(0.0, 1.0, "by hand", one_sided=True)
    at most 1.0
    """

    __slots__ = ("lower", "method", "one_sided", "safe", "upper")
    lower: float
    upper: float
    method: str
    safe: str
    one_sided: bool

    def __new__(
        cls,
        lower: float,
        upper: float,
        method: str,
        safe: str = "upper",
        *,
        one_sided: bool = False,
    ) -> Bound:
        # Not `lower > upper`: a nan has to be refused, too.
        if not lower <= upper:
            raise ArgumentError("lower must be at most upper, and both must be numbers")
        self = super().__new__(cls, upper if safe == "upper" else lower)
        object.__setattr__(self, "lower", float(lower))
        object.__setattr__(self, "upper", float(upper))
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "safe", safe)
        object.__setattr__(self, "one_sided", one_sided)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a bound is frozen")

    def __getnewargs_ex__(self) -> tuple[tuple[float, float, str, str], dict[str, bool]]:
        """What makes the same bound again, for pickling and copying."""
        return (self.lower, self.upper, self.method, self.safe), {"one_sided": self.one_sided}

    def __getstate__(self) -> None:
        """Everything is in the arguments above."""
        return

    def __repr__(self) -> str:
        """The number, and of a one-sided bound which side it is."""
        number = float.__repr__(self)
        if not self.one_sided:
            return number
        return f"{'at most' if self.safe == 'upper' else 'at least'} {number}"

    __str__ = __repr__

    def describe(self, digits: int = 15) -> str:
        """How it was found, and the other end where that is worth quoting, for people.

        Examples
        --------
        >>> Bound(0.99, 1.0, "by hand").describe()
        'by hand; at least 0.99'
        """
        if self.one_sided:
            return f"{self.method}; only an upper bound" if self.safe == "upper" else self.method
        if self.safe == "upper":
            return f"{self.method}; at least {remaining(self.lower, digits).replace(',', '')}"
        return f"{self.method}; at most {argument_text(self.upper, digits)}"

    @property
    def width(self) -> float:
        """upper - lower: how much is left open."""
        return self.upper - self.lower

"""A number with provenance: an interval that holds the truth, used as its sound end."""

from __future__ import annotations

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

    Examples
    --------
    >>> epsilon = Bound(0.99, 1.0, "by hand")
    >>> epsilon == 1.0, epsilon.lower, epsilon.upper, epsilon.method
    (True, 0.99, 1.0, 'by hand')
    """

    __slots__ = ("lower", "method", "upper")
    lower: float
    upper: float
    method: str

    def __new__(cls, lower: float, upper: float, method: str, safe: str = "upper") -> Bound:
        if not lower <= upper:
            raise ArgumentError("lower must be at most upper, and both must be numbers")
        self = super().__new__(cls, upper if safe == "upper" else lower)
        object.__setattr__(self, "lower", float(lower))
        object.__setattr__(self, "upper", float(upper))
        object.__setattr__(self, "method", method)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a bound is frozen")

    def __getnewargs__(self) -> tuple[float, float, str, str]:  # type: ignore[override]
        """What makes the same bound again, for pickling and copying."""
        return (self.lower, self.upper, self.method, "upper" if self == self.upper else "lower")

    def __getstate__(self) -> None:
        """Everything is in the arguments above."""
        return

    @property
    def width(self) -> float:
        """upper - lower: how much is left open."""
        return self.upper - self.lower

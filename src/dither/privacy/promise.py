"""Whom a loss protects and against which change: what two losses must share to be added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dither.errors import ArgumentError
from dither.privacy.neighbours import Neighbours

__all__ = ["Promise"]

LONGEST = 200


@dataclass(frozen=True, slots=True)
class Promise:
    """The unit and the neighbour relation that a loss is stated for.

    An (epsilon, delta) says nothing by itself: it bounds what follows from *one unit*, added,
    removed or replaced. Losses of different units or relations are never added.

    Parameters
    ----------
    unit : str
        Who is protected, as a noun: ``"patient"``, ``"row of visits"``. Two losses with the same
        unit are about the same people.
    neighbours : Neighbours
        What happens to one unit between neighbouring tables.

    Raises
    ------
    ArgumentError
        The unit is not printable text of 1 to 200 characters, or ``neighbours`` is something else.

    Examples
    --------
    >>> Promise("patient").describe()
    'one patient, added or removed'
    >>> Promise("patient") == Promise("patient", Neighbours.REPLACE)
    False
    """

    unit: str
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        unit = self.unit
        if not isinstance(unit, str) or not 0 < len(unit.strip()) <= len(unit) <= LONGEST:
            raise ArgumentError(f"unit must be text of 1 to {LONGEST} characters")
        if not unit.isprintable():
            raise ArgumentError("unit must be of printable characters")
        if not isinstance(self.neighbours, Neighbours):
            raise ArgumentError("neighbours must be Neighbours.ADD_REMOVE or Neighbours.REPLACE")

    def describe(self) -> str:
        """The change that stays hidden, in words."""
        replaced = self.neighbours is Neighbours.REPLACE
        return f"one {self.unit}, {'replaced' if replaced else 'added or removed'}"

    def to_dict(self) -> dict[str, str]:
        """The promise as text, for a ledger or a certificate.

        Examples
        --------
        >>> Promise("patient").to_dict()
        {'unit': 'patient', 'neighbours': 'add-remove'}
        """
        return {"unit": self.unit, "neighbours": self.neighbours.value}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Promise:
        """Read back what :meth:`to_dict` wrote."""
        try:
            return cls(stored["unit"], Neighbours(stored["neighbours"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                "a stored promise must hold 'unit' and 'neighbours', 'add-remove' or 'replace'"
            ) from error

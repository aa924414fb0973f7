"""Whom a loss protects and against which change: what two losses must share to be added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dither.errors import ArgumentError, nearest

__all__ = ["Neighbours", "Promise", "as_neighbours"]


class Neighbours(Enum):
    """The neighbour relation: what one unit may change, and so what stays hidden.

    Attributes
    ----------
    ADD_REMOVE
        One table has one unit more. The number of units is protected.
    REPLACE
        The tables have equally many units and differ in one of them. The number of units is public.

    Notes
    -----
    A replacement is a removal followed by an addition, so an (epsilon, delta) guarantee for
    ADD_REMOVE gives (2·epsilon, (1 + e^epsilon)·delta) for REPLACE. Neither relation implies the
    other at the same epsilon, so losses under different relations are never added.

    Examples
    --------
    >>> Neighbours("replace").meaning
    'Neighbouring tables hold equally many units (a public number) and differ in all rows of one.'
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"

    @property
    def meaning(self) -> str:
        """One sentence for people: what the guarantee compares."""
        return _MEANINGS[self]


def as_neighbours(given: Neighbours | str) -> Neighbours:
    """The relation that was named, or an error."""
    if isinstance(given, Neighbours):
        return given
    known = [n.value for n in Neighbours]
    if given not in known:
        raise ArgumentError(
            "neighbours must be 'add-remove' or 'replace'" + nearest(str(given), known)
        )
    return Neighbours(given)


_MEANINGS = {
    Neighbours.ADD_REMOVE: "Neighbouring tables differ by all rows of one unit, added or removed.",
    Neighbours.REPLACE: (
        "Neighbouring tables hold equally many units (a public number) "
        "and differ in all rows of one."
    ),
}


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

"""Which pairs of tables a guarantee compares."""

from __future__ import annotations

from enum import Enum

__all__ = ["Neighbours"]


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


_MEANINGS = {
    Neighbours.ADD_REMOVE: "Neighbouring tables differ by all rows of one unit, added or removed.",
    Neighbours.REPLACE: (
        "Neighbouring tables hold equally many units (a public number) "
        "and differ in all rows of one."
    ),
}

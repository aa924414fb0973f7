"""Which pairs of tables a guarantee compares."""

from __future__ import annotations

from enum import Enum

from dither.errors import ArgumentError, nearest

__all__ = ["Neighbours", "as_neighbours"]


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

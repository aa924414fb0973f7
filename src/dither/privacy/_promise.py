"""Whom a loss protects and against which change: what two losses must share to be added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dither.errors import ArgumentError, nearest

__all__ = [
    "Neighbours",
    "Promise",
    "as_graph_neighbours",
    "as_neighbours",
    "as_table_neighbours",
]


class Neighbours(Enum):
    """The neighbour relation: what one unit may change, and so what stays hidden.

    Attributes
    ----------
    ADD_REMOVE
        One table has one unit more. The number of units is protected.
    REPLACE
        The tables have equally many units and differ in one of them. The number of units is public.
    EDGE
        Of graphs: the same nodes, a public list, and one edge more. Who is tied to whom is
        protected, and not who is there, nor how many edges one has.
    NODE
        Of graphs: one node more, with all its edges. Where the list of nodes is public, one of them
        has all its edges or none.

    Notes
    -----
    A replacement is a removal followed by an addition, so an (epsilon, delta) guarantee for
    ADD_REMOVE gives (2·epsilon, (1 + e^epsilon)·delta) for REPLACE. Neither relation implies the
    other at the same epsilon, so losses under different relations are never added.

    A graph with an edge more is reached in two steps of NODE, out with one end and in again: a
    guarantee for NODE gives that of a group of two for EDGE (`Loss.to_edge`). The other way round a
    node of at most D edges, a public bound, is a group of D edges (`Loss.to_node`).

    Examples
    --------
    >>> Neighbours("replace").meaning
    'Neighbouring tables hold equally many units (a public number) and differ in all rows of one.'
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"
    EDGE = "edge"
    NODE = "node"

    @property
    def meaning(self) -> str:
        """One sentence for people: what the guarantee compares."""
        return _MEANINGS[self]

    @classmethod
    def of_tables(cls) -> tuple[Neighbours, Neighbours]:
        """The relations of tables: a unit's rows are added, removed or replaced."""
        return (cls.ADD_REMOVE, cls.REPLACE)

    @classmethod
    def of_graphs(cls) -> tuple[Neighbours, Neighbours]:
        """The relations of graphs: an edge, or a node with all its edges, is added or removed."""
        return (cls.EDGE, cls.NODE)


def as_neighbours(given: Neighbours | str) -> Neighbours:
    """The relation that was named, or an error."""
    return _among(given, tuple(Neighbours), "'add-remove' or 'replace', of graphs 'edge' or 'node'")


def as_table_neighbours(given: Neighbours | str) -> Neighbours:
    """The relation of tables that was named, or an error: what reads rows knows no edges."""
    return _among(given, Neighbours.of_tables(), "'add-remove' or 'replace'")


def as_graph_neighbours(given: Neighbours | str) -> Neighbours:
    """The relation of graphs that was named, or an error."""
    return _among(given, Neighbours.of_graphs(), "'edge' or 'node'")


def _among(given: Neighbours | str, known: tuple[Neighbours, ...], words: str) -> Neighbours:
    names = [n.value for n in known]
    if isinstance(given, Neighbours) and given in known:
        return given
    if not isinstance(given, str) or given not in names:
        shown = given.value if isinstance(given, Neighbours) else str(given)
        raise ArgumentError(f"neighbours must be {words}" + nearest(shown, names))
    return Neighbours(given)


_MEANINGS = {
    Neighbours.ADD_REMOVE: "Neighbouring tables differ by all rows of one unit, added or removed.",
    Neighbours.REPLACE: (
        "Neighbouring tables hold equally many units (a public number) "
        "and differ in all rows of one."
    ),
    Neighbours.EDGE: (
        "Neighbouring graphs have the same nodes (a public list) and differ in one edge."
    ),
    Neighbours.NODE: (
        "Neighbouring graphs differ by one node with all its edges, added or removed; "
        "where the list of nodes is public, by all edges of one of them."
    ),
}


_CHANGES = {
    Neighbours.ADD_REMOVE: ", added or removed",
    Neighbours.REPLACE: ", replaced",
    Neighbours.EDGE: " between two nodes, added or removed",
    Neighbours.NODE: " with all its edges, added or removed",
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
    >>> Promise("person", Neighbours.NODE).describe()
    'one person with all its edges, added or removed'
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
            raise ArgumentError("neighbours must be Neighbours.ADD_REMOVE or another of Neighbours")

    def describe(self) -> str:
        """The change that stays hidden, in words."""
        return f"one {self.unit}{_CHANGES[self.neighbours]}"

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
                "a stored promise must hold 'unit' and 'neighbours', 'add-remove' or 'replace', "
                "or of a graph 'edge' or 'node'"
            ) from error

"""Published statistics as values: attributes, rows of a table, rules between attributes.

A median or a mean is kept as the whole numbers that it can stand for once rounding is undone:
``doubled`` holds twice the median, ``total`` the sum. A count is the interval that it can lie in,
so a suppressed cell is one from 0 to one below the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dither.errors import ArgumentError, nearest

__all__ = ["Condition", "IntegerAttribute", "PublishedRow", "Rule", "Statistics"]

Person = tuple[int, ...]
"""A value of each attribute: the number itself, or the place in the list of values."""


@dataclass(frozen=True, slots=True)
class IntegerAttribute:
    """What is known of each person: a whole number from ``low`` to ``high``.

    ``labels`` are the values of a list, numbered from 0; there are none for a number.
    """

    name: str
    low: int
    high: int
    labels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many values it has."""
        return self.high - self.low + 1

    def show(self, value: int) -> str:
        """A value for people."""
        return self.labels[value] if self.labels else str(value)


@dataclass(frozen=True, slots=True)
class Condition:
    """An attribute, by its place among the attributes, takes one of some values."""

    attribute: int
    values: frozenset[int]


def meets(person: Person, where: Iterable[Condition]) -> bool:
    """Whether a person meets all conditions."""
    return all(person[c.attribute] in c.values for c in where)


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of the published table, or several facts about one group.

    Parameters
    ----------
    name, about : str
    where : tuple of Condition
        Who is in the group; everybody where empty.
    count : tuple of (int, int)
        The least and the most people that the published count can stand for.
    doubled, total : tuple of (int, int, int)
        (attribute, least, most) of twice the median and of the sum of the group's values.
    suppressed : bool
        Whether the count was withheld for being small.
    """

    name: str
    about: str
    where: tuple[Condition, ...]
    count: tuple[int, int]
    doubled: tuple[tuple[int, int, int], ...] = ()
    total: tuple[tuple[int, int, int], ...] = ()
    suppressed: bool = False

    def holds(self, people: Iterable[Person]) -> bool:
        """Whether a table agrees with the row: the definition, person by person."""
        group = [p for p in people if meets(p, self.where)]
        if not self.count[0] <= len(group) <= self.count[1]:
            return False
        for at, low, high in self.total:
            if not low <= sum(p[at] for p in group) <= high:
                return False
        for at, low, high in self.doubled:
            values = sorted(p[at] for p in group)
            k = len(values)
            if k == 0 or not low <= values[(k - 1) // 2] + values[k // 2] <= high:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint between attributes: anyone who meets ``when`` meets ``then``."""

    name: str
    about: str
    when: tuple[Condition, ...]
    then: tuple[Condition, ...]

    def holds(self, people: Iterable[Person]) -> bool:
        """Whether every person keeps it."""
        return all(meets(p, self.then) for p in people if meets(p, self.when))


@dataclass(frozen=True, slots=True)
class Statistics:
    """All that was published of one small population, and what is known without it.

    Make one with `read_statistics`, or take `census`.

    Parameters
    ----------
    title : str
    people : int
        How many there are.
    attributes : tuple of IntegerAttribute
    rows : tuple of PublishedRow
    rules : tuple of Rule
    """

    title: str
    people: int
    attributes: tuple[IntegerAttribute, ...]
    rows: tuple[PublishedRow, ...]
    rules: tuple[Rule, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Rows and rules by name."""
        return (*(r.name for r in self.rows), *(r.name for r in self.rules))

    @property
    def cells(self) -> int:
        """Different people that there could be."""
        return math.prod(a.size for a in self.attributes)

    @property
    def space(self) -> int:
        """Databases up to order, before any statistic: multisets of people.

        Examples
        --------
        >>> from dither import attack
        >>> f"{attack.census().space:,}"
        '214,201,054,316,023,632'
        """
        return math.comb(self.cells + self.people - 1, self.people)

    def without(self, *names: str) -> Statistics:
        """The same without some rows or rules; an unknown name is refused.

        Examples
        --------
        >>> from dither import attack
        >>> len(attack.census().without("1A", "2A").rows)
        12
        """
        for name in names:
            self._known(name)
        return replace(
            self,
            rows=tuple(r for r in self.rows if r.name not in names),
            rules=tuple(r for r in self.rules if r.name not in names),
        )

    def only(self, *names: str) -> Statistics:
        """The same with these rows and rules alone.

        Examples
        --------
        >>> from dither import attack
        >>> attack.census().only("2B").names
        ('2B',)
        """
        for name in names:
            self._known(name)
        return self.without(*(n for n in self.names if n not in names))

    def adding(self, *rows: PublishedRow) -> Statistics:
        """The same with more rows."""
        return replace(self, rows=self.rows + rows)

    def holds(self, people: Iterable[Person]) -> bool:
        """Whether a table agrees with everything."""
        table = list(people)
        if len(table) != self.people or not all(r.holds(table) for r in self.rows):
            return False
        return all(r.holds(table) for r in self.rules)

    def show(self, person: Person) -> Mapping[str, str]:
        """A person for people."""
        return {a.name: a.show(v) for a, v in zip(self.attributes, person, strict=True)}

    def _known(self, name: str) -> None:
        if name not in self.names:
            raise ArgumentError(f"unknown row or rule {name!r}{nearest(name, self.names)}")

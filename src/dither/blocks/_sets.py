"""A set of blocks: what a question reads and is charged for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dither.errors import ArgumentError

__all__ = ["NO_BLOCKS", "NULL", "OTHERS", "BlockSet", "name_of"]

NULL = "null"
"""The block of rows whose column is NULL."""

OTHERS = "others"
"""The block of values that are not among the declared ones."""

TABLE = "table "
"""Begins the names of blocks that are a whole table, one that has no column of blocks."""

Range = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class BlockSet:
    """A set of blocks: ranges of their numbers, and blocks that go by a name.

    Parameters
    ----------
    ranges : tuple of (int or None, int or None)
        First and last number of each, both inside; ``None`` is without end. Kept in order, apart
        from each other.
    named : frozenset of str
        ``NULL``, ``OTHERS``, and tables without a column of blocks.
    parallel : bool
        Each of them is read by itself (parallel composition): as many steps, of which each reads
        one, and bears its part of a charge. Then no range is without end.

    Examples
    --------
    >>> first = BlockSet.of_range(1, 3) | BlockSet.of_range(4, 9)
    >>> first.ranges
    ((1, 9),)
    >>> (first & BlockSet.of_range(8, None)).ranges, len(first)
    (((8, 9),), 9)
    """

    ranges: tuple[Range, ...] = ()
    named: frozenset[str] = frozenset()
    parallel: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranges", _joined(self.ranges))
        object.__setattr__(self, "named", frozenset(self.named))
        if self.parallel and self.endless:
            raise ArgumentError("blocks that are read in parallel must be finitely many")

    @classmethod
    def of_range(cls, first: int | None, last: int | None) -> BlockSet:
        """All blocks from one to another, both inside; ``None`` is without end."""
        return cls(((first, last),))

    @classmethod
    def of_names(cls, *names: str) -> BlockSet:
        """Blocks that go by a name."""
        return cls((), frozenset(names))

    @classmethod
    def of_table(cls, table: str) -> BlockSet:
        """The one block that a table without a column of blocks is."""
        return cls.of_names(TABLE + table)

    def __or__(self, other: BlockSet) -> BlockSet:
        return BlockSet(self.ranges + other.ranges, self.named | other.named)

    def __and__(self, other: BlockSet) -> BlockSet:
        found = []
        one = two = 0
        while one < len(self.ranges) and two < len(other.ranges):
            low = _later(self.ranges[one][0], other.ranges[two][0])
            ends = self.ranges[one][1], other.ranges[two][1]
            high = _earlier(*ends)
            if low is None or high is None or low <= high:
                found.append((low, high))
            # Whichever ends first meets nothing that comes later.
            if ends[1] is None or (ends[0] is not None and ends[0] <= ends[1]):
                one += 1
            else:
                two += 1
        return BlockSet(tuple(found), self.named & other.named)

    def __le__(self, other: BlockSet) -> bool:
        common = self & other
        return (common.ranges, common.named) == (self.ranges, self.named)

    def __bool__(self) -> bool:
        return bool(self.ranges or self.named)

    def __contains__(self, block: object) -> bool:
        if isinstance(block, str):
            return block in self.named
        return isinstance(block, int) and any(
            (low is None or low <= block) and (high is None or block <= high)
            for low, high in self.ranges
        )

    def __len__(self) -> int:
        """How many blocks; of those without end, how many an account tells apart: one each."""
        sizes = (1 if low is None or high is None else high - low + 1 for low, high in self.ranges)
        return sum(sizes) + len(self.named)

    @property
    def steps(self) -> int:
        """How many steps read it: one for each block where they are read in parallel, else one."""
        return len(self) or 1 if self.parallel else 1

    @property
    def endless(self) -> bool:
        """Whether a range is without end."""
        return any(None in held for held in self.ranges)

    def to_dict(self) -> dict[str, Any]:
        """As plain data: ``{"ranges": [[first, last], ...], "named": [...]}``.

        With ``"parallel": True`` where each is read by itself.
        """
        held = {"ranges": [list(held) for held in self.ranges], "named": sorted(self.named)}
        return held | ({"parallel": True} if self.parallel else {})

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> BlockSet:
        """Read back what `to_dict` wrote.

        Raises
        ------
        ArgumentError
            It is something else.
        """
        try:
            ranges = tuple((low, high) for low, high in stored["ranges"])
            named = frozenset(stored["named"])
            ends = {type(end) for held in ranges for end in held}
            parallel = stored.get("parallel", False)
            if (
                ends <= {int, type(None)}
                and all(isinstance(name, str) for name in named)
                and isinstance(parallel, bool)
            ):
                return cls(ranges, named, parallel)
        except (KeyError, TypeError, ValueError):
            pass
        raise ArgumentError("a stored set of blocks must hold 'ranges' and 'named'")


def _later(one: int | None, other: int | None) -> int | None:
    return max((end for end in (one, other) if end is not None), default=None)


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((end for end in (one, other) if end is not None), default=None)


def _joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Ranges in order, those that touch or overlap made one, empty ones left out."""
    held = [r for r in ranges if r[0] is None or r[1] is None or r[0] <= r[1]]
    held.sort(key=lambda r: (r[0] is not None, r[0] or 0))
    found: list[Range] = []
    for low, high in held:
        if found:
            first, last = found[-1]
            if last is None or low is None or low <= last + 1:
                found[-1] = (first, None if last is None or high is None else max(last, high))
                continue
        found.append((low, high))
    return tuple(found)


NO_BLOCKS = BlockSet()


def name_of(block: str) -> str:
    """How a block with a name is called."""
    if block.startswith(TABLE):
        return f"{block.removeprefix(TABLE)} (no blocks)"
    return {NULL: "NULL", OTHERS: "other values"}.get(block, block)

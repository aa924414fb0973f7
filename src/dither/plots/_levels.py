"""The levels of a key as a picture shows them: order, labels, and places on a number line."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dither.plots._canvas import label_text

__all__ = ["KeyLevels", "joined", "levels_of"]

NUMBER = r"[-\u2212]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE = re.compile(rf"^\s*[\[(]?\s*({NUMBER})\s*(?:,|;|\.\.|\u2013|to)\s*({NUMBER})\s*[\])]?\s*$")


@dataclass(frozen=True, slots=True)
class KeyLevels:
    """The distinct values of one key.

    Parameters
    ----------
    name : str
    values : tuple
        In the order they are drawn.
    labels : tuple of str
    edges : tuple of (float, float), optional
        Where every level is a range of numbers: from, to.
    places : tuple of float or datetime, optional
        Where every level is a number or a moment, so that distance has a meaning.
    """

    name: str
    values: tuple[Hashable, ...]
    labels: tuple[str, ...]
    edges: tuple[tuple[float, float], ...] | None = None
    places: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def even(self) -> bool:
        """Whether the ranges are equally wide and touch, so that a number axis can carry them."""
        if self.edges is None or len(self.edges) < 2:
            return False
        widths = [high - low for low, high in self.edges]
        touch = all(math.isclose(a[1], b[0]) for a, b in pairwise(self.edges))
        return touch and all(math.isclose(w, widths[0], rel_tol=1e-6) for w in widths)

    @property
    def dates(self) -> bool:
        """Whether every level is a day or a moment."""
        return self.places is not None and all(isinstance(p, dt.date) for p in self.places)

    def kept(self, wanted: Sequence[int]) -> KeyLevels:
        """The levels at these places only, in this order."""
        keep = list(wanted)
        return KeyLevels(
            self.name,
            tuple(self.values[i] for i in keep),
            tuple(self.labels[i] for i in keep),
            None if self.edges is None else tuple(self.edges[i] for i in keep),
            None if self.places is None else tuple(self.places[i] for i in keep),
        )


def levels_of(name: str, column: Sequence[Any], ranges: bool = True) -> KeyLevels:
    """The levels of a column: ranges, numbers and moments rise, other values stay in their order.

    NULL comes last. ``ranges`` allows texts such as ``"[0, 18)"`` to be read as ranges.

    Examples
    --------
    >>> levels_of("age", ["[18, 65)", "[0, 18)", "[18, 65)"]).labels
    ('0–18', '18–65')
    >>> levels_of("region", ["south", None, "north"]).labels
    ('south', 'north', 'NULL')
    """
    distinct = list(dict.fromkeys(column))
    known = [value for value in distinct if value is not None]
    read = {value: _range(value) for value in known} if ranges else {}
    if read and all(found is not None for found in read.values()):
        known.sort(key=lambda value: read[value] or (0.0, 0.0))
        edges = tuple(found for value in known if (found := read[value]) is not None)
        labels = [f"{_number(low)}–{_number(high)}" for low, high in edges]
        whole = len(known) == len(distinct)
        return _levels(name, known, labels, distinct, edges=edges if whole else None)
    if known and all(_measured(value) for value in known):
        known.sort()
        places = tuple(known) if len(known) == len(distinct) else None
        return _levels(
            name, known, [label_text(_value_text(v)) for v in known], distinct, places=places
        )
    if all(isinstance(value, bool) for value in known):
        known.sort()
    return _levels(name, known, [label_text(_value_text(value)) for value in known], distinct)


def joined(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    """Several keys as one, for pictures that have room for one."""
    if len(columns) == 1:
        return names[0], list(columns[0])
    rows = [" · ".join(map(_value_text, row)) for row in zip(*columns, strict=True)]
    return " · ".join(names), rows


def _levels(
    name: str,
    known: list[Any],
    labels: list[str],
    distinct: list[Any],
    *,
    edges: tuple[tuple[float, float], ...] | None = None,
    places: tuple[Any, ...] | None = None,
) -> KeyLevels:
    if len(known) < len(distinct):
        known, labels = [*known, None], [*labels, "NULL"]
    return KeyLevels(name, tuple(known), tuple(labels), edges, places)


def _range(value: Any) -> tuple[float, float] | None:
    if not isinstance(value, str) or (match := RANGE.match(value)) is None:
        return None
    low, high = (float(g.replace("\u2212", "-")) for g in match.groups())
    return (low, high) if low < high else None


def _measured(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, dt.date) or (isinstance(value, int | float) and math.isfinite(value))


def _value_text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float) and not isinstance(value, bool):
        return _number(value)
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    return str(value)


def _number(value: float) -> str:
    text = f"{value:.10g}"
    return text.replace("-", "\N{MINUS SIGN}", 1) if value < 0 else text

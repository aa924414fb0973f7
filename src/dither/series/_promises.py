"""Which part of a series is protected: one reading, some in a row, or all of a unit's.

The three promise different things, and none stands for another. Each is a unit of its own, so that
an account that was charged for one refuses the others:

- *event*: one reading of one unit is there or not, or is another. What the unit does at any one
  time is hidden; what it does all day is not.
- *w-event* (Kellaris, Papadopoulos, Xiao and Papadias, "Differentially private event sequences over
  infinite streams", VLDB 2014): any w readings in a row of one unit.
- *user*: all readings of one unit.

Noise for events of epsilon is w·epsilon for w in a row and T·epsilon for all T (group privacy);
what one release costs under each is computed from its own matrix, which is often less.
"""

from __future__ import annotations

from typing import Any

from dither import _checks as check
from dither.errors import ArgumentError
from dither.privacy import Neighbours, Promise
from dither.privacy._promise import as_table_neighbours

__all__ = ["LEVELS", "level_of", "promise"]

LEVELS = ("event", "w-event", "user")


def promise(
    level: str,
    *,
    w: int | None = None,
    unit: str = "person",
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> Promise:
    """Whom and what a release of series protects, as accounts know it.

    Parameters
    ----------
    level : {"event", "w-event", "user"}
        One reading, w of them in a row, or all.
    w : int, optional
        Readings in a row, for "w-event" alone.
    unit : str
        Whose they are, as a noun.
    neighbours : {"add-remove", "replace"}
        What may become of it.

    Returns
    -------
    Promise

    Raises
    ------
    ArgumentError
        There is no such level, w is missing or not wanted, or the neighbours are those of graphs.

    Examples
    --------
    >>> from dither import series
    >>> for level, w in (("event", None), ("w-event", 24), ("user", None)):
    ...     print(series.promise(level, w=w, unit="household").describe())
    one reading of a household, added or removed
    one run of 24 readings of a household, added or removed
    one household, added or removed
    """
    level, w = level_of(level, w)
    named = {
        "event": f"reading of a {unit}",
        "w-event": f"run of {w} readings of a {unit}",
        "user": unit,
    }
    return Promise(named[level], as_table_neighbours(neighbours))


def level_of(level: Any, w: Any) -> tuple[str, int | None]:
    """A level and its w, held to each other."""
    known = check.choice("level", level, LEVELS)
    if known != "w-event":
        if w is not None:
            raise ArgumentError('w must be left out unless level is "w-event"')
        return known, None
    if w is None:
        raise ArgumentError('w must be given for level "w-event": how many readings in a row')
    return known, check.whole("w", w, 1, 1 << 20)

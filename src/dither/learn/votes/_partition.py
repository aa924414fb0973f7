"""Rows into disjoint parts, each by a coin of its own.

The part of a row, or of all rows of a unit, is drawn uniformly and independently of every other's
and of all values. So a unit that is added, removed or replaced changes one part, and the others
keep the same law: given everybody's parts they hold the same rows on both tables. (Parts cut by
position do not do that: one row fewer would move a row out of each.) Whether the parts are known
does not matter to what is proved.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import noise
from dither._silence import silence
from dither.errors import ArgumentError

__all__ = ["apart", "each_anew", "how_many", "parts_of", "rows_at"]

Integers = npt.NDArray[np.int64]


def how_many(table: Any, name: str = "X") -> int:
    """The number of rows.

    Raises
    ------
    ArgumentError
        It is not a table, an array or a list.
    """
    try:
        return int(table.shape[0]) if hasattr(table, "shape") else len(table)
    except (TypeError, IndexError):
        raise ArgumentError(f"{name} must be a table, an array or a list of rows") from None


def parts_of(rows: int, parts: int, groups: Any = None) -> Integers:
    """The part of each row, drawn; rows of one group are in the same part.

    Parameters
    ----------
    rows, parts : int
    groups : sequence, optional
        Of each row whose it is; values that cannot be hashed are one group.

    Raises
    ------
    ArgumentError
        There is not one group for each row.
    """
    if groups is None:
        return noise.below(parts, rows)
    listed = groups.to_list() if hasattr(groups, "to_list") else list(groups)
    if len(listed) != rows:
        raise ArgumentError("groups must have one value for each row of X")
    places: dict[Hashable, int] = {}
    found = [places.setdefault(_key(group), len(places)) for group in listed]
    drawn = noise.below(parts, len(places))
    return np.asarray(drawn[np.array(found, dtype=np.int64)])


def _key(group: Any) -> Hashable:
    try:
        hash(group)
        # NaN is not itself, and pandas' NA says neither: all of them are one unit.
        return group if group == group else None
    except TypeError:
        return None


def rows_at(table: Any, places: Integers) -> Any:
    """Some rows of an array, a data frame, a series or a list, as the same kind of thing."""
    if hasattr(table, "iloc"):
        return table.iloc[places]
    if hasattr(table, "shape"):
        return table[places]
    listed: Sequence[Any] = table
    return [listed[i] for i in places.tolist()]


def apart(table: Any, rows: int) -> Any:
    """The same rows once more, for somebody who may write into them."""
    return rows_at(table, np.arange(rows))


@contextmanager
def each_anew() -> Iterator[Any]:
    """What begins each part: seeds of its own for the generators that all code shares.

    Python, numpy and torch have one each. What somebody's code draws from them for one part moves
    on what it draws for all later ones: under a seed that is known, one row more in the first part
    changes the values of many. Afterwards they stand where they stood before.

    Examples
    --------
    >>> import random
    >>> random.seed(0)
    >>> with each_anew() as anew:
    ...     anew()
    ...     drawn = random.random()
    >>> round(random.random(), 3), drawn == 0.8444218515250481
    (0.844, False)
    """
    # Those that are loaded: nobody draws from another.
    kinds = (
        ("random", "getstate", "setstate", "seed"),
        ("numpy.random", "get_state", "set_state", "seed"),
        ("torch.random", "get_rng_state", "set_rng_state", "manual_seed"),
    )
    loaded: list[tuple[Any, str, str, str]] = [
        (sys.modules[name], get, put, seed) for name, get, put, seed in kinds if name in sys.modules
    ]
    states = [getattr(module, get)() for module, get, _, _ in loaded]

    def anew() -> None:
        for module, _, _, seed in loaded:
            getattr(module, seed)(int(noise.below(1 << 32, 1)[0]))

    try:
        # Each part is silent by itself, which is cheaper where it is silent around all of them.
        with silence():
            yield anew
    finally:
        for (module, _, put, _), state in zip(loaded, states, strict=True):
            getattr(module, put)(state)

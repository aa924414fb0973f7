"""What an attacker works with: people of whom all is known, and a table in which they may be.

Each column is one of three kinds. *Values*: both have the same ones, which are equal or not.
*Numbers*, and times, which are also near or far. *Labels*: the table has ``[20, 30)``, ``130**`` or
``*`` where people have values; they fit or not. A column of the table that fits nobody's value is
left out.

Distances of numbers are shares of the range between the outer half-percents of all that is seen, so
that one number far away does not make all others equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dither.lab._cells import CodedColumn, coded, kind_of
from dither.lab._frames import sorted_codes, texts
from dither.lab._grouping import Ints
from dither.lab.attack.disclosure._labels import coverage

__all__ = ["CELLS", "Floats", "Mask", "SeenColumn", "World"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.float64] | None

CELLS = 8
"""Parts of a column of numbers where it is a condition or an answer."""
_TAIL = 0.005
_PAIRS = 4_000_000
"""Labels times values that are read, at most."""
_TRIED = 300
"""Labels by which it is seen whether a column has any."""


@dataclass(frozen=True, slots=True, eq=False)
class SeenColumn:
    """A column, of people and of the table.

    Attributes
    ----------
    name : str
    kind : {'value', 'number', 'label'}
    codes : array of int64
        Of people, and of the table's rows below them. Of labels each side has codes of its own.
    places : array or None
        As of `nearest_rows`; of labels, the distance of each value to each label.
    cells, size : array of int64, and int
        Coarser codes, which both sides share.
    missing : array of bool
        Where there is no value.
    """

    name: str
    kind: str
    codes: Ints = field(repr=False)
    places: Places = field(repr=False)
    cells: Ints = field(repr=False)
    size: int
    missing: Mask = field(repr=False)


@dataclass(eq=False)
class World:
    """People, and a table that is attacked.

    Parameters
    ----------
    people, table : pl.DataFrame
        With the same columns.
    covers : mapping, optional
        By column, what labels stand for.
    """

    people: pl.DataFrame = field(repr=False)
    table: pl.DataFrame = field(repr=False)
    covers: Any = field(default=None, repr=False)

    @cached_property
    def columns(self) -> tuple[SeenColumn, ...]:
        """Those that can be compared."""
        meant = self.covers if isinstance(self.covers, Mapping) else {}
        found = [
            _known(n, self.people[n], self.table[n], meant.get(n)) for n in self.people.columns
        ]
        return tuple(c for c in found if c is not None)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns in which nothing of the table fits any value."""
        names = {c.name for c in self.columns}
        return tuple(n for n in self.people.columns if n not in names)

    @property
    def persons(self) -> Ints:
        """The places of people's rows."""
        return np.arange(self.people.height)

    @property
    def rows(self) -> Ints:
        """The places of the table's rows."""
        return np.arange(self.people.height, self.people.height + self.table.height)

    def distances(
        self, columns: Sequence[SeenColumn], *, people: bool = False
    ) -> list[tuple[Ints, Places]]:
        """What `nearest_rows` measures along, from people to the table, or among people."""
        return [(c.codes, None if people and c.kind == "label" else c.places) for c in columns]

    def for_linkage(
        self, columns: Sequence[SeenColumn]
    ) -> tuple[pl.DataFrame, pl.DataFrame] | None:
        """The table and the people as `linkage` takes them; None where nothing of one can fit.

        Values that nobody of these people has are one value, so that few labels are left.
        """
        table, people = [], []
        for c in columns:
            if c.kind == "label":
                table.append(self.table[c.name])
                people.append(self.people[c.name])
                continue
            mine, theirs = c.codes[self.persons], c.codes[self.rows]
            held = np.isin(theirs, mine)
            if not held.any():
                return None
            table.append(pl.Series(c.name, np.where(held, theirs, -1)))
            people.append(pl.Series(c.name, mine))
        return pl.DataFrame(table), pl.DataFrame(people)

    def for_inexact(
        self, columns: Sequence[SeenColumn], roughly: bool
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The same for `inexact_linkage`: numbers as such where they are known roughly."""
        table, people = [], []
        for c in columns:
            if c.kind == "label":
                table.append(self.table[c.name])
                people.append(self.people[c.name])
                continue
            if roughly and c.kind == "number" and c.places is not None:
                numbers = np.round(c.places * _STEPS) / _STEPS
                both = pl.Series(c.name, numbers, nan_to_null=True)
            else:
                held = np.isin(c.codes, c.codes[self.persons])
                both = pl.Series(c.name, np.where(held, c.codes, -1)).cast(pl.String)
                both = pl.select(
                    pl.when(pl.Series(c.missing)).then(None).otherwise(both).alias(c.name)
                ).to_series()
            people.append(both[: self.people.height])
            table.append(both[self.people.height :])
        return pl.DataFrame(table), pl.DataFrame(people)


_STEPS = 200
"""Steps of a number that is known roughly: finer ones would change nothing."""


def _known(name: str, people: pl.Series, table: pl.Series, covers: Any) -> SeenColumn | None:
    kinds = [kind_of(part.dtype) for part in (people, table)]
    parts = [
        texts(p) if p.dtype.is_nested() or p.dtype == pl.Object else p for p in (people, table)
    ]
    missing = np.concatenate([_missing(part) for part in parts])
    if "null" in kinds:
        # A table without any value of it gives nothing away.
        return None
    if kinds[0] == kinds[1]:
        labelled = _labelled(name, parts, missing, covers) if kinds[0] == "text" else None
        return labelled or _valued(name, parts, missing)
    if (found := _labelled(name, parts, missing, covers)) is not None:
        return found
    read = _valued(name, [texts(part) for part in parts], missing)
    both = np.isin(read.codes[: len(people)], read.codes[len(people) :])
    return read if both.any() else None


def _missing(column: pl.Series) -> Mask:
    """NULL, and NaN."""
    empty = column.is_null().to_numpy()
    if column.dtype.is_float():
        empty = empty | column.is_nan().fill_null(False).to_numpy()
    return np.asarray(empty)


def _valued(name: str, parts: Sequence[pl.Series], missing: Mask) -> SeenColumn:
    frames = [pl.DataFrame([part.alias(name)]) for part in parts]
    fine: CodedColumn = coded(frames, None)[0]
    coarse = coded(frames, CELLS)[0] if fine.place is not None else fine
    places = None if fine.place is None else _spread(fine.place)
    kind = "value" if places is None else "number"
    return SeenColumn(name, kind, fine.codes, places, coarse.codes, coarse.size, missing)


def _spread(place: Floats) -> Floats:
    """Places between the outer half-percents of all, cut off beyond them; missing ones stay."""
    known = place[~np.isnan(place)]
    if not len(known):
        return place
    low, high = np.quantile(known, (_TAIL, 1.0 - _TAIL))
    if not high > low:
        low, high = known.min(), known.max()
    if not high > low:
        return np.where(np.isnan(place), np.nan, 0.0)
    return np.asarray(np.clip((place - low) / (high - low), 0.0, 1.0))


def _labelled(
    name: str, parts: Sequence[pl.Series], missing: Mask, covers: Any
) -> SeenColumn | None:
    """The column by labels; None where the table has none that fits a value that it is not."""
    (mine, values), (theirs, labels) = map(sorted_codes, parts)
    held = {v for v in values if isinstance(v, str)} if parts[0].dtype == pl.String else set()
    new = [i for i, label in enumerate(labels) if not (isinstance(label, str) and label in held)]
    if not new or not _some_fit([labels[i] for i in new], values, covers):
        return None
    if len(labels) * len(values) > _PAIRS:
        return None
    try:
        fits = coverage(labels, values, covers if isinstance(covers, Mapping) else None)
    except TypeError:  # what a label stands for is no list of values
        fits = coverage(labels, values)
    if not fits.any():
        return None
    # Where labels overlap, the first that fits stands for all.
    cell = np.where(fits.any(axis=0), fits.argmax(axis=0), len(labels))
    codes = np.concatenate([mine, theirs])
    cells = np.concatenate([cell[mine], theirs])
    apart = (~fits.T).astype(np.float64)
    return SeenColumn(name, "label", codes, apart, cells, len(labels) + 1, missing)


def _some_fit(labels: Sequence[Any], values: Sequence[Any], covers: Any) -> bool:
    """Whether one of them fits a value, tried on some of both."""
    step = max(1, len(labels) // _TRIED)
    some = labels[::step][:_TRIED]
    among = values[:: max(1, len(values) // 2_000)][:2_000]
    meant = covers if isinstance(covers, Mapping) else None
    try:
        return bool(coverage(some, among, meant).any())
    except TypeError:
        return bool(coverage(some, among).any())

"""Who is attacked: as many people of the table as of the control, in one pool, in no order.

A person is a row, or all rows of one unit. Of a person at most `ROWS_EACH` rows are attacked, drawn
by lot. The pool is mixed, so that no attack can tell by places who was in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from dither.errors import ArgumentError
from dither.lab._cells import alike, kind_of, under_one_another
from dither.lab._frames import encode, names, released, texts
from dither.lab._grouping import Ints

__all__ = ["ROWS_EACH", "AttackedPeople", "Given", "drawn_pool", "read_tables"]

Mask = npt.NDArray[np.bool_]

ROWS_EACH = 5
"""Rows of one person that are attacked, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """The tables as they were given, brought to the columns that can be compared.

    Attributes
    ----------
    original, control : pl.DataFrame
        With the shared columns; the control may be without rows, where there is none.
    release : pl.DataFrame
    before : pl.DataFrame or None
    columns : tuple of str
        Which original, control and release share, the unit left out.
    only_original, only_release : tuple of str
        Columns that the other has not.
    owners, control_owners : array of int64
        The person of each row.
    shared_people : int
        People of the control who were in the original too, and are left out.
    unit : str or None
    unit_released : bool
        Whether the release has the unit's column.
    covers : mapping
        What labels stand for, where the release says it.
    """

    original: pl.DataFrame = field(repr=False)
    control: pl.DataFrame = field(repr=False)
    release: pl.DataFrame = field(repr=False)
    before: pl.DataFrame | None = field(repr=False)
    columns: tuple[str, ...]
    only_original: tuple[str, ...]
    only_release: tuple[str, ...]
    owners: Ints = field(repr=False)
    control_owners: Ints = field(repr=False)
    shared_people: int
    unit: str | None
    unit_released: bool
    covers: object = field(repr=False)

    @property
    def people(self) -> int:
        """People of the original."""
        return len(np.unique(self.owners))

    @property
    def control_people(self) -> int:
        """People of the control who may be compared."""
        return len(np.unique(self.control_owners))


def read_tables(
    original: object,
    release: object,
    control: object | None,
    before: object | None,
    unit: str | None,
    columns: object | None,
) -> Given:
    """The tables, checked.

    Raises
    ------
    ArgumentError
        Where a table is empty or no frame, a column is not there, none is shared, or original and
        control hold other kinds of values in one.
    """
    real, made = released(original, "original"), released(release, "release")
    if unit is not None:
        if not isinstance(unit, str):
            raise ArgumentError("unit must be the name of a column")
        names("unit", unit, real)
    shared = [n for n in real.columns if n in made.columns and n != unit]
    if columns is not None:
        asked = names("columns", columns, real)
        lacking = [n for n in asked if n not in made.columns]
        if lacking:
            raise ArgumentError(f"release has no column {lacking[0]!r}, which columns names")
        if unit in asked:
            raise ArgumentError("columns must not name the unit: it says who somebody is")
        shared = asked
    if not shared:
        raise ArgumentError("release must share a column with original: no name is in both")
    kept = [*shared] if unit is None else [*shared, unit]
    given = {"original": real}
    if control is not None:
        given["control"] = released(control, "control")
    only_release = tuple(n for n in made.columns if n not in real.columns)
    unit_released = unit is not None and unit in made.columns
    only_original = tuple(n for n in real.columns if n not in made.columns and n != unit)
    tables = alike(given, kept)
    ours, theirs = tables[0], (tables[1] if control is not None else tables[0].clear())
    owners, strangers, both = _owners(ours, theirs, unit)
    earlier = None if before is None else released(before, "before")
    if earlier is not None:
        lacking = [n for n in shared if n not in earlier.columns]
        if lacking:
            raise ArgumentError(f"before has no column {lacking[0]!r}, which release has")
    keep = strangers >= 0
    if control is not None:
        _same_zones(ours, theirs, shared)
    ours, theirs, made, *others = _of_one_precision(
        [t.select(shared) for t in (ours, theirs, made, earlier) if t is not None]
    )
    return Given(
        ours,
        theirs.filter(pl.Series(keep)),
        made,
        others[0] if others else None,
        tuple(shared),
        only_original,
        only_release,
        owners,
        strangers[keep],
        both,
        unit,
        unit_released,
        getattr(release, "covers", None),
    )


def _same_zones(ours: pl.DataFrame, theirs: pl.DataFrame, columns: list[str]) -> None:
    """Moments with a zone beside moments without one would lie hours apart for that alone."""
    for name in columns:
        kinds = [t.schema[name] for t in (ours, theirs)]
        zones = [kind.time_zone is None for kind in kinds if isinstance(kind, pl.Datetime)]
        if zones in ([True, False], [False, True]):
            raise ArgumentError(
                f"column {name!r} has a time zone in one of original and control only: give both "
                "or neither one"
            )


def _of_one_precision(tables: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Single precision where one table has it: digits of 0.1 must not tell who was in which."""
    short = {n for t in tables for n, dtype in t.schema.items() if dtype == pl.Float32}
    return [
        t.with_columns(
            pl.col(n).cast(pl.Float32) for n in t.columns if n in short and t.schema[n].is_numeric()
        )
        for t in tables
    ]


def _owners(ours: pl.DataFrame, theirs: pl.DataFrame, unit: str | None) -> tuple[Ints, Ints, int]:
    """The person of each row; -1 in the control where the person is in the table too."""
    if unit is None:
        rows = ours.height
        return np.arange(rows), np.arange(rows, rows + theirs.height), 0
    parts = [ours[unit], theirs[unit]]
    if parts[0].dtype != parts[1].dtype or parts[0].dtype.is_nested():
        parts = [texts(part) for part in parts]
    codes = encode(pl.concat(parts)).codes.astype(np.int64)
    inside, outside = codes[: ours.height], codes[ours.height :]
    both = np.isin(outside, inside)
    return inside, np.where(both, -1, outside), len(np.unique(outside[both]))


@dataclass(frozen=True, slots=True, eq=False)
class AttackedPeople:
    """The people who are attacked.

    Attributes
    ----------
    frame : pl.DataFrame
        Their rows.
    owner : array of int64
        Of each row, the person, from 0.
    first : array of int64
        Of each person, one row.
    member : array of bool
        Of each person, whether they were in the table. No attack sees it.
    source : array of int64
        Of each row, its place in the original; -1 in the control.
    """

    frame: pl.DataFrame = field(repr=False)
    owner: Ints = field(repr=False)
    first: Ints = field(repr=False)
    member: Mask = field(repr=False)
    source: Ints = field(repr=False)

    @property
    def people(self) -> int:
        """How many, members and others."""
        return len(self.member)

    def of(self, chosen: Ints) -> AttackedPeople:
        """Some of them, in this order."""
        number = np.full(self.people, -1)
        number[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(number[self.owner] >= 0)
        owner = number[self.owner[rows]]
        first = np.zeros(len(chosen), dtype=np.int64)
        first[owner[::-1]] = np.arange(len(owner))[::-1]
        return AttackedPeople(
            self.frame[rows], owner, first, self.member[chosen], self.source[rows]
        )

    def any_row(self, hits: Mask) -> Mask:
        """Of each person, whether one of their rows was hit."""
        found = np.zeros(self.people, dtype=bool)
        np.logical_or.at(found, self.owner, hits)
        return found

    def best_row(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Of each person, the largest score of their rows."""
        found = np.full(self.people, -np.inf)
        np.maximum.at(found, self.owner, scores)
        return found


def drawn_pool(given: Given, most: int, rng: np.random.Generator) -> AttackedPeople:
    """As many people of the table as of the control; of the table alone where there is none."""
    with_control = given.control.height > 0
    many = min(given.people, given.control_people, most) if with_control else min(
        given.people, most
    )  # fmt: skip
    rows, owners = _some(given.owners, many, rng)
    others, strangers = (
        _some(given.control_owners, many, rng)
        if with_control
        else (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    )
    people = many * (1 + with_control)
    owner = np.concatenate([owners, strangers + many])
    member = np.arange(people) < many
    source = np.concatenate([rows, np.full(len(others), -1)])
    frame = _under(given.original[rows], given.control[others])
    # Nothing of an order may tell who was in.
    mixed, number = rng.permutation(len(owner)), rng.permutation(people)
    owner = number[owner][mixed]
    placed = np.zeros(people, dtype=bool)
    placed[number] = member
    first = np.zeros(people, dtype=np.int64)
    first[owner[::-1]] = np.arange(len(owner))[::-1]
    return AttackedPeople(frame[mixed], owner, first, placed, source[mixed])


def _under(ours: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Rows of the table, and of the control below them; the kinds of their columns are the same."""
    found = []
    for name in ours.columns:
        parts = [ours[name], theirs[name]]
        if kind_of(parts[0].dtype) == "text":
            parts = [part.cast(pl.String) for part in parts]
        elif parts[0].dtype.is_nested() or parts[0].dtype == pl.Object:
            parts = [texts(part) for part in parts]
        found.append(under_one_another(parts).alias(name))
    return pl.DataFrame(found)


def _some(owners: Ints, many: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Rows of so many people, a few of each, and whose they are, from 0."""
    people = np.unique(owners)
    chosen = rng.permutation(people)[:many]
    mixed = rng.permutation(len(owners))
    place = np.full(int(people.max(initial=0)) + 1, -1)
    place[chosen] = np.arange(len(chosen))
    whose = place[owners[mixed]]
    rows, whose = mixed[whose >= 0], whose[whose >= 0]
    order = np.argsort(whose, kind="stable")
    rows, whose = rows[order], whose[order]
    starts = np.flatnonzero(np.diff(whose, prepend=-1))
    rank = np.arange(len(whose)) - np.repeat(starts, np.diff(np.append(starts, len(whose))))
    keep = rank < ROWS_EACH
    return rows[keep], whose[keep]

"""Generalisation hierarchies: what a value may be replaced by, from fine to coarse.

A hierarchy is a table (one row a value, one column a level) or a rule that makes one for the values
at hand (`_rules`). Every level is a function of the level below, and the last one
distinguishes nothing; where a table stops short of that, a level ``*`` is added.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.lab._frames import Coded, encode, read, texts

__all__ = ["ANY", "FittedHierarchy", "Hierarchy", "LevelRule", "fit", "hierarchy"]

ANY = "*"


@runtime_checkable
class LevelRule(Protocol):
    """What makes a hierarchy of the values at hand."""

    def levels_of(self, name: str, values: pl.Series) -> pl.DataFrame:
        """Texts, one row a value and one column a level, finest first."""
        ...


class Hierarchy:
    """A table of generalisations.

    Parameters
    ----------
    table : polars.DataFrame
        Texts, one row a value, one column a level from fine to coarse.

    Raises
    ------
    ArgumentError
        Where a value stands twice, or a level is not a function of the level below it.

    Examples
    --------
    >>> tree = hierarchy({"nurse": ["care"], "surgeon": ["care"], "clerk": ["office"]})
    >>> tree.height, tree.values
    (2, 3)
    """

    __slots__ = ("_table",)

    def __init__(self, table: pl.DataFrame) -> None:
        self._table = _checked(table)

    @property
    def height(self) -> int:
        """Levels above the values themselves."""
        return self._table.width - 1

    @property
    def values(self) -> int:
        """How many values it covers."""
        return self._table.height

    @property
    def frame(self) -> pl.DataFrame:
        """The table, with the level that was added if one was."""
        return self._table

    def __repr__(self) -> str:
        return f"Hierarchy(values={self.values}, height={self.height})"


class FittedHierarchy:
    """A hierarchy laid over the distinct values of one column.

    Attributes
    ----------
    maps : tuple of array of int32, shape (values,)
        For each level, the node of each value.
    sizes : tuple of int
        For each level, how many nodes the column reaches.
    labels : tuple of polars.Series
        For each level, the text of each node; level 0 holds the values as they are.
    spread : tuple of array of float64, shape (values,)
        For each level, the share of the domain that a value could then be:
        (leaves under its node - 1) / (leaves - 1).
    """

    __slots__ = ("_steps", "labels", "maps", "sizes", "spread")

    def __init__(
        self,
        maps: tuple[NDArray[np.int32], ...],
        labels: tuple[pl.Series, ...],
        spread: tuple[NDArray[np.float64], ...],
    ) -> None:
        self.maps, self.labels, self.spread = maps, labels, spread
        self.sizes = tuple(len(level) for level in labels)
        self._steps: dict[tuple[int, int], NDArray[np.int32]] = {}

    @property
    def height(self) -> int:
        """The coarsest level."""
        return len(self.maps) - 1

    def step(self, low: int, high: int) -> NDArray[np.int32]:
        """From the nodes of one level to the nodes of a coarser one."""
        found = self._steps.get((low, high))
        if found is None:
            found = np.empty(self.sizes[low], dtype=np.int32)
            found[self.maps[low]] = self.maps[high]
            self._steps[low, high] = found
        return found


def hierarchy(source: object, *, separator: str = ";") -> Hierarchy:
    """Make a hierarchy.

    Parameters
    ----------
    source : path, mapping or frame
        A CSV file without header, one line a value, fine to coarse (the format of ARX); what holds
        a separator is in quotes. Or
        ``{value: [coarser, coarser still, ...]}``. Or a frame whose columns are the levels.
    separator : str
        Of the file.

    Returns
    -------
    Hierarchy
        For `hierarchies` of `generalize`.

    Raises
    ------
    ArgumentError
        Where it cannot be read, a value stands twice, or a level tells apart what a finer one
        does not.

    Examples
    --------
    >>> hierarchy({1: ["low"], 2: ["low"], 3: ["high"]})
    Hierarchy(values=3, height=2)
    """
    if isinstance(source, Hierarchy):
        return source
    if isinstance(source, str | Path):
        return Hierarchy(_read_csv(Path(source), separator))
    if isinstance(source, Mapping):
        return Hierarchy(_from_mapping(source))
    found = read(source, "hierarchy")
    return Hierarchy(found)


def _read_csv(path: Path, separator: str) -> pl.DataFrame:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(
            f"hierarchy cannot be read from {str(path)!r}: it must be a text file in UTF-8"
        ) from error
    try:
        lines = [
            line for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if line
        ]
    except (csv.Error, TypeError) as error:
        raise ArgumentError(
            f"hierarchy in {str(path)!r} cannot be read as CSV divided by {separator!r}, which "
            "must be one character"
        ) from error
    if not lines or len({len(line) for line in lines}) > 1:
        raise ArgumentError(
            f"hierarchy in {str(path)!r} must have the same number of levels, divided by "
            f"{separator!r}, on every line"
        )
    return _from_rows(lines)


def _from_mapping(source: Mapping[object, object]) -> pl.DataFrame:
    rows: list[list[object]] = []
    for value, above in source.items():
        if isinstance(above, str) or not isinstance(above, Sequence):
            above = [above]
        rows.append([value, *above])
    if not rows or len({len(row) for row in rows}) > 1:
        raise ArgumentError("hierarchy must give every value the same number of coarser levels")
    return _from_rows(rows)


def _from_rows(rows: Sequence[Sequence[object]]) -> pl.DataFrame:
    columns = zip(*rows, strict=True)
    return pl.DataFrame(
        [pl.Series(str(i), [_text(v) for v in c], dtype=pl.String) for i, c in enumerate(columns)]
    )


def _text(value: object) -> str | None:
    """As Polars writes the value in a CSV file, so that both meet."""
    if value is None or isinstance(value, str):
        return value
    return texts(pl.Series([value], strict=False)).item()  # type: ignore[no-any-return]


def _checked(table: pl.DataFrame) -> pl.DataFrame:
    if not table.height or not table.width:
        raise ArgumentError("hierarchy is empty: it needs a row for every value")
    found = pl.DataFrame([texts(c).alias(str(i)) for i, c in enumerate(table.get_columns())])
    twice = found.height - found["0"].n_unique()
    if twice:
        raise ArgumentError(f"hierarchy lists {twice} values more than once; list each once")
    for low in range(1, found.width - 1):
        below = found[str(low)].n_unique()
        both = found.select(str(low), str(low + 1)).unique().height
        if both > below:
            raise ArgumentError(
                f"hierarchy is not monotone: {both - below} labels of level {low} fall under "
                f"more than one label of level {low + 1}; give each label one parent"
            )
    if found[str(found.width - 1)].n_unique() > 1:
        found = found.with_columns(pl.lit(ANY).alias(str(found.width)))
    return found


def fit(name: str, source: object, column: Coded) -> FittedHierarchy:
    """Lay a hierarchy (or what makes one: a rule, a path, a mapping, a frame) over a column.

    Raises
    ------
    ArgumentError
        Where a value is not covered: says how many, never which.
    """
    values = column.values
    if isinstance(source, LevelRule):
        table = _checked(source.levels_of(name, values))
        leaf = np.arange(len(values))
    else:
        table = hierarchy(source).frame
        weight = np.bincount(column.codes, minlength=column.size)
        table, leaf = _covered(name, table, values, weight)
    maps, labels, spread = [], [], []
    for level in range(table.width):
        coded = encode(table[str(level)])
        leaves = np.bincount(coded.codes, minlength=coded.size)
        node = coded.codes[leaf]
        reached, compact = np.unique(node, return_inverse=True)
        maps.append(compact.astype(np.int32))
        labels.append(values if level == 0 else coded.values.gather(reached))
        spread.append((leaves[node] - 1) / max(table.height - 1, 1))
    # Level 0 is the value itself, whatever text it has.
    maps[0] = np.arange(len(values), dtype=np.int32)
    return FittedHierarchy(tuple(maps), tuple(labels), tuple(spread))


def _covered(
    name: str, table: pl.DataFrame, values: pl.Series, weight: NDArray[np.int64]
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """The row of the table for each value. A missing value gets a row of its own."""
    said = texts(values)
    leaf = _places(said, table["0"])
    if values.dtype.is_numeric() and (leaf < 0).any():
        # 1 and 1.0 are one number in two types.
        plain = [column.str.replace(r"^(-?\d+)\.0+$", "$1") for column in (said, table["0"])]
        leaf = np.where(leaf < 0, _places(*plain), leaf) if plain[1].is_unique().all() else leaf
    missing = values.is_null()
    if values.dtype.is_float():
        missing = missing | values.is_nan().fill_null(False)
    for place in np.flatnonzero((leaf < 0) & missing.to_numpy()):
        leaf[place] = table.height
        row = [said[int(place)]] * (table.width - 1) + [table[0, -1]]
        extra = pl.DataFrame({c: [v] for c, v in zip(table.columns, row, strict=True)})
        table = pl.concat([table, extra.cast(dict.fromkeys(table.columns, pl.String))])
    lost = leaf < 0
    if lost.any():
        raise ArgumentError(
            f"hierarchies[{name!r}] does not cover {int(lost.sum()):,} of {len(values):,} values "
            f"({int(weight[lost].sum()):,} of {int(weight.sum()):,} rows)"
            f"{_hint(said, table)}"
        )
    return table, leaf


def _places(said: pl.Series, leaves: pl.Series) -> NDArray[np.int64]:
    """The row of each text, or -1."""
    places = pl.DataFrame({"0": leaves}).with_row_index("row")
    found = pl.DataFrame({"0": said}).join(
        places, on="0", how="left", nulls_equal=True, maintain_order="left"
    )["row"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy().copy()


def _hint(said: pl.Series, table: pl.DataFrame) -> str:
    """What may be wrong with them; no text of the data is shown."""
    if said.str.strip_chars().is_in(table["0"].implode()).fill_null(True).all():
        return "; without the spaces around them they would be covered"
    return "; add a row for each"

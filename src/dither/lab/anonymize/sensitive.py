"""Sensitive columns made ready: codes, and the order or hierarchy that a distance needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dither.errors import ArgumentError, nearest
from dither.lab.anonymize.frames import Coded, encode, texts
from dither.lab.anonymize.hierarchy import fit
from dither.lab.anonymize.requirements import DISTANCES, Context

__all__ = ["Column", "chosen_distances", "prepare"]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A sensitive column."""

    name: str
    codes: NDArray[np.int32]
    size: int
    context: Context


def prepare(
    frame: pl.DataFrame,
    name: str,
    distances: Collection[str],
    order: Mapping[str, Sequence[object]] | None,
    hierarchies: Mapping[str, object] | None,
) -> Column:
    """Encode a column, and rank or nest its values where a distance needs that.

    Raises
    ------
    ArgumentError
        Where the ordered distance has no order, or the hierarchical one no hierarchy.
    """
    coded = encode(frame[name])
    rank = maps = None
    if "ordered" in distances:
        rank = _rank(frame[name], coded, (order or {}).get(name))
    if "hierarchical" in distances:
        if name not in (hierarchies or {}):
            raise ArgumentError(
                f"hierarchies must have one for {name!r}, as its distance is 'hierarchical'"
            )
        weight = np.bincount(coded.codes, minlength=coded.size)
        maps = fit(name, (hierarchies or {})[name], coded.values, weight).maps
    return Column(name, coded.codes, coded.size, Context(rank, maps))


def chosen_distances(
    distance: str | Mapping[str, str] | None, sensitive: Sequence[str]
) -> dict[str, str]:
    """The distance of each column, from one for all or one a column.

    Raises
    ------
    ArgumentError
        For an unknown distance or column.
    """
    if distance is None:
        return {}
    found = dict.fromkeys(sensitive, distance) if isinstance(distance, str) else dict(distance)
    for name, ground in found.items():
        if name not in sensitive:
            raise ArgumentError(
                f"distance names {name!r}, which is not sensitive{nearest(str(name), sensitive)}"
            )
        if ground not in DISTANCES:
            raise ArgumentError(f"distance is unknown{nearest(str(ground), DISTANCES)}")
    return found


def _rank(column: pl.Series, coded: Coded, order: Sequence[object] | None) -> NDArray[np.int64]:
    """The place of each value; a missing one comes last."""
    values = coded.values
    if order is not None:
        said = pl.Series([None if v is None else str(v) for v in order], dtype=pl.String)
        places = {text: i for i, text in reversed(list(enumerate(said.to_list())))}
        found = [places.get(text, -1) for text in texts(values).to_list()]
        missing = values.is_null().to_list()
        lost = sum(place < 0 and not gone for place, gone in zip(found, missing, strict=True))
        if lost:
            raise ArgumentError(
                f"order[{column.name!r}] lacks {lost} of the column's {len(values)} values; "
                "list every value from first to last"
            )
        return np.array([len(places) if p < 0 else p for p in found], dtype=np.int64)
    dtype = column.dtype
    if isinstance(dtype, pl.Enum):
        values = values.cast(dtype).to_physical()
    elif not (dtype.is_numeric() or dtype.is_temporal() or dtype in (pl.Boolean, pl.Null)):
        raise ArgumentError(
            f"order must list the values of {column.name!r} from first to last, as the "
            "alphabet is no order of texts"
        )
    if values.dtype == pl.Null:
        return np.zeros(len(values), dtype=np.int64)
    sort = values.to_frame("v").with_row_index("row").sort("v", nulls_last=True)["row"].to_numpy()
    rank = np.empty(len(values), dtype=np.int64)
    rank[sort] = np.arange(len(values))
    return rank

"""Cells of a domain as Polars columns, in the policy's types."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither.query.tables._domain import Attribute, CellDomain
from dither.synth.model._junction import Clique

if TYPE_CHECKING:
    import polars as pl

__all__ = ["column_values", "laid_out"]

Floats = npt.NDArray[np.float64]


def laid_out(domain: CellDomain, clique: Clique, counts: Mapping[str, Floats]) -> pl.DataFrame:
    """A row for each cell of a table: its columns, and arrays of the table's shape by name."""
    import polars as pl

    series: list[pl.Series] = []
    shape = domain.shape(clique)
    for axis, place in enumerate(clique):
        each = column_values(domain.attributes[place])
        before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
        series.append(each.gather(np.tile(np.repeat(np.arange(len(each)), after), before)))
    names = {s.name.casefold() for s in series}
    endings = ("", *(f"_{i}" for i in range(2, len(names) + 3)))
    ending = next(e for e in endings if not names & {title + e for title in counts})
    series += [pl.Series(title + ending, values.reshape(-1)) for title, values in counts.items()]
    return pl.DataFrame(series)


def column_values(attribute: Attribute) -> pl.Series:
    """The cells of a column in the policy's type; bins as text."""
    import polars as pl

    kinds: dict[str, Any] = {
        "text": pl.String,
        "integer": pl.Int64,
        "boolean": pl.Boolean,
        "date": pl.Date,
        "timestamp": pl.Datetime("us"),
        "real": pl.Float64,
    }
    if attribute.values is None:
        values: list[Any] = list(attribute.labels[: attribute.inner])
        kind: Any = pl.String
    else:
        kind = kinds[attribute.kind.value]
        as_double = attribute.kind.value == "real"
        values = [float(v) if as_double else v for v in attribute.values]  # type: ignore[arg-type]
        if attribute.kind.value == "integer":
            values = [int(v) for v in values]
    return pl.Series(attribute.name, [*values, *([None] if attribute.missing else [])], kind)

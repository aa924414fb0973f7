"""Values of cells in the policy's types: numbers drawn in their bins, dates in their periods."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.query.tables._domain import Attribute

__all__ = ["after", "values_of"]

Integers = npt.NDArray[np.int64]


def values_of(attribute: Attribute, cells: Integers, rng: np.random.Generator) -> Any:
    """The values of a column's cells, drawn inside them."""
    import polars as pl

    kind = attribute.kind.value
    missing = cells >= attribute.inner
    inner = np.where(missing, 0, cells)
    types: dict[str, Any] = {
        "text": pl.String,
        "integer": pl.Int64,
        "boolean": pl.Boolean,
        "date": pl.Date,
        "timestamp": pl.Datetime("us"),
        "real": pl.Float64,
    }
    if attribute.edges is not None:
        values: Any = _inside(attribute, inner, rng)
    elif attribute.period is not None:
        values = _within_periods(attribute, inner, rng)
    else:
        made: dict[str, Any] = {"real": float, "integer": int}
        given = [made.get(kind, lambda value: value)(v) for v in attribute.values or ()]
        listed = pl.Series(given, dtype=types[kind])
        values = listed.gather(pl.Series(inner, dtype=pl.UInt32))
    series = pl.Series(attribute.name, values).cast(types[kind])
    if missing.any():
        series = pl.select(
            pl.when(pl.Series(~missing)).then(series).otherwise(None).alias(attribute.name)
        ).to_series()
    return series


def _inside(attribute: Attribute, cells: Integers, rng: np.random.Generator) -> Any:
    """Numbers spread evenly inside bins."""
    edges = attribute.edges
    assert edges is not None
    if attribute.kind.value == "integer":
        # The whole numbers of a bin; the last also has its upper edge, where that is in bounds.
        top = attribute.bounds[1] if attribute.bounds else edges[-1]
        low = [math.ceil(e) for e in edges[:-1]]
        high = [math.ceil(e) - 1 for e in edges[1:-1]] + [math.floor(min(edges[-1], top))]
        first = np.array(low, dtype=np.int64)
        # A bin without a whole number stands for its lower edge.
        last = np.maximum(np.array(high, dtype=np.int64), first)
        return rng.integers(first[cells], last[cells], endpoint=True)
    ends = np.array([float(e) for e in edges])
    found = ends[cells] + rng.random(len(cells)) * (ends[cells + 1] - ends[cells])
    if attribute.step is not None:
        # The multiples of a bin, and not the nearest ones, which may lie in the next bin.
        step = attribute.step
        least = np.array([math.ceil(e / step) for e in edges[:-1]], dtype=np.int64)
        most = np.array([math.ceil(e / step) - 1 for e in edges[1:]], dtype=np.int64)
        most[-1] = math.floor(edges[-1] / step)
        drawn = rng.integers(least[cells], np.maximum(most, least)[cells], endpoint=True)
        digits = max(0, 15 - math.ceil(math.log10(max(abs(ends).max(), 1.0))))
        on = np.round(drawn * float(step), digits)
        # A bin without a multiple has its numbers anywhere inside.
        found = np.where((most >= least)[cells], on, found)
    return found


def _within_periods(attribute: Attribute, cells: Integers, rng: np.random.Generator) -> Any:
    """Days spread evenly inside periods and bounds; of timestamps, moments."""
    assert attribute.values is not None
    assert attribute.bounds is not None
    lower, upper = attribute.bounds
    moments = attribute.kind.value == "timestamp"
    kind = "datetime64[us]" if moments else "datetime64[D]"
    last = after(attribute.values[-1], attribute.period or "day")
    # As whole days, or microseconds, since 1970.
    edges = np.array([*attribute.values, last], dtype=kind).astype(np.int64)
    low, high = np.array([lower, upper], dtype=kind).astype(np.int64)
    starts = np.maximum(edges[:-1], low)
    ends = np.maximum(np.minimum(edges[1:] - 1, high), starts)
    return rng.integers(starts[cells], ends[cells], endpoint=True).astype(kind)


def after(start: Any, period: str) -> dt.date:
    """The first day after a period."""
    days = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[period]
    if dt.date.max.toordinal() - start.toordinal() < days:
        return dt.date.max
    day: dt.date = start + dt.timedelta(days=days)
    return day if period in ("day", "week") else day.replace(day=1)

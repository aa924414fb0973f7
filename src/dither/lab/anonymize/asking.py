"""What both anonymisers are asked, checked once: k, shares, and requirements of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import polars as pl

from dither.errors import ArgumentError, nearest
from dither.lab.anonymize.requirements import Requirement
from dither.lab.anonymize.sensitive import Column, prepare
from dither.lab.anonymize.table import Demand
from dither.numeric import exact

__all__ = ["Require", "allowance", "check_k", "check_seconds", "demanded", "hierarchies_of"]

Require = Requirement | Sequence[Requirement] | Mapping[str, Requirement | Sequence[Requirement]]


def check_k(k: object, rows: int) -> int:
    """k, which no table of fewer rows can have."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ArgumentError("k must be a whole number of at least 1")
    if k > rows:
        raise ArgumentError(
            f"k is {k:,} and the frame has only {rows:,} rows: no class can be that large; lower k"
        )
    return int(k)


def check_seconds(seconds: object) -> float | None:
    """How long a search may take."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise ArgumentError("seconds must be a number of at least 0, or None for no limit")
    return float(seconds)


def allowance(suppress: object, rows: int) -> int:
    """How many rows may be left out."""
    share = exact(suppress, "suppress")
    if not 0 <= share <= 1:
        raise ArgumentError("suppress must be a share from 0 to 1, such as 0.05")
    return int(Fraction(rows) * share)


def hierarchies_of(
    hierarchies: object, table: pl.DataFrame, quasi: Sequence[str], *, all_of: bool
) -> dict[str, object]:
    """A hierarchy for each column.

    Raises
    ------
    ArgumentError
        Where a name is unknown, or a quasi-identifier has none.
    """
    if not isinstance(hierarchies, Mapping):
        raise ArgumentError(
            "hierarchies must be a mapping from column to hierarchy, such as "
            "{'age': dt.anonymize.intervals([5, 10, 20])}"
        )
    for name in hierarchies:
        if name not in table.columns:
            raise ArgumentError(
                f"hierarchies has an unknown column {name!r}{nearest(str(name), table.columns)}"
            )
    missing = [name for name in quasi if name not in hierarchies]
    if missing and all_of:
        raise ArgumentError(
            f"hierarchies must have one for {missing[0]!r}: a table, intervals(), dates(), "
            "prefixes(), or suppression() to keep or drop its values"
        )
    return dict(hierarchies)


def demanded(
    table: pl.DataFrame,
    k: int,
    sensitive: Sequence[str],
    require: Require,
    distances: Mapping[str, str],
    order: Mapping[str, Sequence[object]] | None,
    hierarchies: Mapping[str, object],
) -> tuple[Demand, list[Column], dict[str, str]]:
    """What every class must meet, the sensitive columns, and the distances to report.

    Raises
    ------
    ArgumentError
        Where something is required of no column, or of one that is not sensitive.
    """
    wanted = _by_column(require, sensitive)
    chosen = dict(distances)
    columns, required = [], []
    for name in sensitive:
        grounds = {r.distance for r in wanted[name] if r.distance is not None}
        for ground in sorted(grounds):
            chosen.setdefault(name, ground)
        grounds |= {chosen[name]} if name in chosen else set()
        columns.append(prepare(table, name, grounds, order, hierarchies))
    used = [column for column in columns if wanted[column.name]]
    for i, column in enumerate(used):
        required += [(i, r) for r in wanted[column.name]]
    return Demand(k, tuple(used), tuple(required)), columns, chosen


def _by_column(require: Require, sensitive: Sequence[str]) -> dict[str, tuple[Requirement, ...]]:
    if isinstance(require, Mapping):
        for name in require:
            if name not in sensitive:
                raise ArgumentError(
                    f"require names {name!r}, which is not sensitive{nearest(name, sensitive)}"
                )
        return {name: _several(require.get(name, ())) for name in sensitive}
    found = _several(require)
    if found and not sensitive:
        raise ArgumentError(
            f"require asks for {found[0]!s}, so sensitive must name the columns that it is about"
        )
    return dict.fromkeys(sensitive, found)


def _several(require: object) -> tuple[Requirement, ...]:
    found = tuple(require) if isinstance(require, Sequence) else (require,)
    for one in found:
        if not hasattr(one, "met") or not hasattr(one, "monotone"):
            raise ArgumentError(
                "require must hold requirements, such as dt.anonymize.l_diversity(3) or "
                "dt.anonymize.t_closeness(0.2, distance='equal')"
            )
    return found

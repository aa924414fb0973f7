"""The tables that a synthesis is to have right: what may be asked for, as tables of the domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb

from dither import _checks as check
from dither.errors import ArgumentError
from dither.query.tables._domain import CellDomain, Clique

__all__ = ["MOST_CANDIDATES", "Workload", "workload_of"]

MOST_CANDIDATES = 10_000
"""More tables than this are too many to choose from in every round."""

WIDE = 30
"""Of more columns the workload is all pairs, and of fewer all triples, unless one is given."""

Workload = int | Sequence[Sequence[str]] | Mapping[tuple[str, ...], int]


def workload_of(given: Workload | None, domain: CellDomain) -> dict[Clique, int]:
    """The tables to be right, with their weights.

    Raises
    ------
    ArgumentError
        They name what is not there, or are too many.
    """
    columns = len(domain.sizes)
    if given is None:
        given = min(columns, 3 if columns <= WIDE else 2)
    if isinstance(given, int) and not isinstance(given, bool):
        order = check.whole("workload", given, 1)
        if order > columns:
            raise ArgumentError(f"workload: {order} columns are more than the {columns} there are")
        if comb(columns, order) > 20 * MOST_CANDIDATES:
            raise ArgumentError(
                f"workload: {comb(columns, order):,} tables of {order} columns are too many; name "
                "those that matter"
            )
        return dict.fromkeys(combinations(range(columns), order), 1)
    if isinstance(given, str) or not isinstance(given, Sequence | Mapping) or not given:
        raise ArgumentError(
            "workload must be a number of columns, such as 3, or a list of tables, such as "
            '[["age", "sex"]]'
        )
    pairs = given.items() if isinstance(given, Mapping) else ((t, 1) for t in given)
    found: dict[Clique, int] = {}
    for names, weight in pairs:
        clique = domain.clique(list(names) if isinstance(names, tuple) else names, "workload")
        if not clique:
            raise ArgumentError("workload: a table must name at least one column")
        found[clique] = found.get(clique, 0) + check.whole("workload: a weight", weight, 1)
    return found

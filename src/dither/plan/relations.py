"""Where the rows of a query come from: small frozen nodes."""

from __future__ import annotations

from dataclasses import dataclass

from dither.errors import UnsupportedError
from dither.plan.expressions import Column, Expression

__all__ = ["Filter", "PublicJoin", "Relation", "Scan", "UnitJoin", "base", "scans"]


@dataclass(frozen=True, slots=True)
class Relation:
    """The root of all relations."""


@dataclass(frozen=True, slots=True)
class Scan(Relation):
    """All rows of a table. ``alias`` is the name that columns use for it."""

    table: str
    alias: str


@dataclass(frozen=True, slots=True)
class Filter(Relation):
    """The rows for which the predicate is true (not false, not NULL)."""

    source: Relation
    predicate: Expression


@dataclass(frozen=True, slots=True)
class PublicJoin(Relation):
    """Rows of the source beside the one row of a public table whose unique key matches.

    Each row of the source matches at most one row, so stability is 1. ``keep_all`` keeps rows
    without a match, their public columns NULL (a left join).
    """

    source: Relation
    public: Scan
    on: tuple[tuple[Expression, Column], ...]
    keep_all: bool


@dataclass(frozen=True, slots=True)
class UnitJoin(Relation):
    """Pairs of rows of two private tables that belong to the same protected unit.

    Each unit's rows on either side are first cut to the table's ``max_join_rows``, chosen by a
    keyed hash of the unit's own rows alone. Filters come after the join, never inside ``left``, so
    that what is cut does not depend on them.
    """

    left: Relation
    right: Scan
    left_unit: Column
    right_unit: Column

    def __post_init__(self) -> None:
        if _filtered(self.left):
            raise UnsupportedError(
                f"JOIN {self.right.table}: rows are filtered before two private tables are "
                "joined; join first, then filter"
            )


def _filtered(relation: Relation) -> bool:
    return isinstance(relation, Filter) or (
        isinstance(relation, PublicJoin) and _filtered(relation.source)
    )


def scans(relation: Relation) -> tuple[Scan, ...]:
    """Every table that a relation reads, leftmost first."""
    match relation:
        case Scan():
            return (relation,)
        case Filter(source=source):
            return scans(source)
        case PublicJoin(source=source, public=public):
            return (*scans(source), public)
        case UnitJoin(left=left, right=right):
            return (*scans(left), right)
    raise TypeError(type(relation).__name__)


def base(relation: Relation) -> Scan:
    """The leftmost table: the private one that a query starts from."""
    return scans(relation)[0]

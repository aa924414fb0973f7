"""Where the rows of a query come from: small frozen nodes.

A ``Derived``, ``UnitAggregate`` or ``Union`` is a query in the FROM. It goes by an alias, as a
table does, and what is above it names its columns alone. So what is below it may use any alias
again. Beside its columns each of its rows keeps whose it is, under a name that no query can write:
that column is ``Column(alias, UNIT)``, where the tables below have a unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from dither.blocks._sets import BlockSet
from dither.errors import QueryError, UnsupportedError
from dither.plan.expressions import Column, Expression

__all__ = [
    "UNIT",
    "Derived",
    "Elements",
    "Filter",
    "KeyFilter",
    "Named",
    "NamedExpression",
    "PublicJoin",
    "Relation",
    "Scan",
    "Union",
    "UnitAggregate",
    "UnitJoin",
    "UnitValue",
    "Unnest",
    "base",
    "renamed",
    "scans",
    "visible",
]

UNIT = "\x00unit"
"""The column of a query in the FROM that says whose its rows are: no name may hold NUL."""

NamedExpression = tuple[str, Expression]


@dataclass(frozen=True, slots=True)
class Relation:
    """The root of all relations."""


@dataclass(frozen=True, slots=True)
class Scan(Relation):
    """All rows of a table. ``alias`` is the name that columns use for it.

    ``blocks``: of a table whose rows lie in blocks, those that are read. Rows of all others are not
    there, for whatever stands above: an engine leaves them out before it does anything else.
    ``dither.plan.facts.blocks`` finds them.
    """

    table: str
    alias: str
    blocks: BlockSet | None = None


@dataclass(frozen=True, slots=True)
class Filter(Relation):
    """The rows for which the predicate is true (not false, not NULL)."""

    source: Relation
    predicate: Expression


@dataclass(frozen=True, slots=True)
class KeyFilter(Relation):
    """The rows whose operand is among the keys of a public table, or is not where ``negated``.

    It is ``operand IN (SELECT column FROM keys)``, with the NULLs of SQL: a row stays where a key
    is equal. ``NOT IN`` keeps a row where no key is equal and neither the operand nor any key is
    NULL, or where there is no key at all.

    Each row stays or goes by itself and by what is public, and none is multiplied, however often a
    key occurs: stability is 1, as of a ``Filter``. ``keys`` is a public table, filtered or not,
    whose columns nothing else names.
    """

    source: Relation
    operand: Expression
    keys: Relation
    column: Expression
    negated: bool = False


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
class Elements(Relation):
    """``UNNEST(table.column) AS alias(name)``: the elements of a list that a row of a table holds.

    It stands beside the rows of that table alone, in an ``Unnest``; ``table`` is its alias there.
    ``most``: of each list the first so many elements, the others as if they were not there; where
    it is ``None``, as many as ``dither.plan.lowering.unnested.items`` says.
    """

    table: str
    column: str
    alias: str
    name: str
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Unnest(Relation):
    """Each row of the source beside each element of one of its lists, NULL elements among them.

    A row whose list is empty or NULL has no element, and is left out. An element's row belongs to
    whom the row belongs to, and follows from that one's rows and the key alone. So adding, removing
    or replacing a unit changes the rows of that unit and no others: stability is 1 in units,
    however long lists are. What bounds a unit is applied to the rows that come out: ``max_rows`` of
    them count in a group, in ``max_groups`` groups.

    How many rows come out is public before: ``dither.plan.lowering.unnested`` bounds elements of a
    list and rows of a unit, and no list is unnested beyond.

    A row that is a person of its own becomes several rows, and no column says whose they are. So
    ``elements.most`` is needed there: that person then has at most so many rows, or the product
    where lists stand beside each other, and of a replaced person as many rows at most become others
    or none. What is promised of one row of the result holds of that person as of a group of so
    many: ``dither.plan.facts.units.rows_of_unit``.
    """

    source: Relation
    elements: Elements


@dataclass(frozen=True, slots=True)
class Derived(Relation):
    """``(SELECT columns FROM source) AS alias``: for each row of the source one row, of its unit.

    Stability is 1, since a row depends on one row alone and belongs to whom that belongs to.
    """

    source: Relation
    alias: str
    columns: tuple[NamedExpression, ...]


@dataclass(frozen=True, slots=True)
class UnitValue:
    """What an aggregate within a unit gives: one value of all rows of one unit and inner group.

    ``function`` is one of

    - ``"count"``: of rows; with an operand, of rows in which it is not NULL;
    - ``"count distinct"``: of different values of the operand, NULL not among them;
    - ``"sum"``, ``"mean"``: of the operand where it is not NULL; NULL where it always is;
    - ``"min"``, ``"max"``: the extreme one of its values as they are; NULL where there is none.

    A sum or mean is taken of integers, whose sum does not depend on the order of rows: with
    ``lower`` and ``upper`` each value counts as the integer ``clamp(round(operand / step), lower,
    upper)``; without, as the integer that it is, and ``step`` is 1. With S the sum of these n
    integers, a sum is ``S`` where the operand is an integer and the double ``S * step`` where it is
    real, and a mean is the double ``S / n * step``. An S beyond 64 bits is NULL.
    """

    function: str
    operand: Expression | None = None
    step: Fraction = Fraction(1)
    lower: int | None = None
    upper: int | None = None


@dataclass(frozen=True, slots=True)
class UnitAggregate(Relation):
    """``(SELECT keys, values FROM source GROUP BY unit, keys) AS alias``: groups within a unit.

    The rows of each unit are grouped by the keys, NULL being a key like any other, and each group
    becomes one row of that unit. Rows of no unit are left out.

    A row of the result follows from the rows of one unit alone, so adding, removing or replacing a
    unit changes the rows of that unit and no others: stability is 1 in units. Therefore every row
    of a unit may be read, and any function of them that does not depend on their order may be
    taken; no limit applies here. What bounds a unit is applied to the rows that come out, as it is
    to those of a table. A unit has at most one row for each key, and one row without keys.
    """

    source: Relation
    alias: str
    unit: Column
    keys: tuple[NamedExpression, ...]
    values: tuple[tuple[str, UnitValue], ...]


@dataclass(frozen=True, slots=True)
class Union(Relation):
    """``(part UNION ALL part ...) AS alias``: the rows of all parts, columns matched by position.

    The parts' tables hold the same units, and a unit's rows are those that it has in any part. They
    change with that unit alone, so stability is 1 in units; limits apply to all of them together.
    Columns have the names of the first part.
    """

    alias: str
    parts: tuple[Relation, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise QueryError("UNION ALL takes two queries or more")


@dataclass(frozen=True, slots=True)
class UnitJoin(Relation):
    """Pairs of rows of two private sources that belong to the same protected unit.

    Each unit's rows on either side are first cut to the table's ``max_join_rows``, chosen by a
    keyed hash of the unit's own rows alone. Filters come after the join, never inside ``left``, so
    that what is cut does not depend on them; what a query in the FROM leaves out is not among the
    rows that are cut, nor are rows of blocks that are not read (``Scan.blocks``): the limit holds
    over all blocks that are read together. Where a side has at most so many rows of a unit by its
    form, none is cut.

    Of these pairs those are left in which also each pair of ``on`` is equal. ``keep_all`` keeps the
    rows on the left without a match, the columns of the right NULL (a left join). Either way what
    comes out of a unit's rows follows from them and the key alone.
    """

    left: Relation
    right: Named
    left_unit: Column
    right_unit: Column
    on: tuple[tuple[Expression, Column], ...] = ()
    keep_all: bool = False

    def __post_init__(self) -> None:
        if _filtered(self.left):
            name = self.right.table if isinstance(self.right, Scan) else self.right.alias
            raise UnsupportedError(
                f"JOIN {name}: rows are filtered before two private tables are joined; join first, "
                "then filter"
            )

    @property
    def equal(self) -> tuple[tuple[Expression, Column], ...]:
        """All pairs that are set equal, the units first."""
        return ((self.left_unit, self.right_unit), *self.on)


Named = Scan | Derived | UnitAggregate | Union | Elements
"""What stands in a FROM under a name of its own."""


def _filtered(relation: Relation) -> bool:
    return isinstance(relation, Filter | KeyFilter) or (
        isinstance(relation, PublicJoin) and _filtered(relation.source)
    )


def visible(relation: Relation) -> tuple[Named, ...]:
    """What the columns above a relation may name, leftmost first."""
    match relation:
        case Scan() | Derived() | UnitAggregate() | Union() | Elements():
            return (relation,)
        case Filter(source=source) | KeyFilter(source=source):
            return visible(source)
        case Unnest(source=source, elements=elements):
            return (*visible(source), elements)
        case PublicJoin(source=source, public=public):
            return (*visible(source), public)
        case UnitJoin(left=left, right=right):
            return (*visible(left), right)
    raise TypeError(type(relation).__name__)


def renamed(named: Named, alias: str) -> Named:
    """The same under another alias."""
    if isinstance(named, Union):
        parts = tuple(renamed(visible(part)[0], alias) for part in named.parts)
        return replace(named, alias=alias, parts=parts)
    return replace(named, alias=alias)


def scans(relation: Relation) -> tuple[Scan, ...]:
    """Every table that a relation reads, also within queries in the FROM, leftmost first."""
    return tuple(_scans(relation))


def _scans(relation: Relation) -> Iterator[Scan]:
    for named in visible(relation):
        match named:
            case Scan():
                yield named
            case Derived(source=source) | UnitAggregate(source=source):
                yield from _scans(source)
            case Union(parts=parts):
                for part in parts:
                    yield from _scans(part)
    for keys in _keys(relation):
        yield from _scans(keys)


def _keys(relation: Relation) -> Iterator[Relation]:
    """The public tables that rows are looked up in, in this FROM."""
    match relation:
        case (
            Filter(source=source)
            | PublicJoin(source=source)
            | Unnest(source=source)
            | UnitJoin(left=source)
        ):
            yield from _keys(source)
        case KeyFilter(source=source, keys=keys):
            yield from _keys(source)
            yield keys


def base(relation: Relation) -> Scan:
    """The leftmost table: the private one that a query starts from."""
    return next(_scans(relation))

"""What names in a query mean, and the names that keys and outputs get where it gives none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from dither.errors import ArgumentError, QueryError, UnknownNameError, nearest
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.expressions import Column, Expression
from dither.plan.facts.scopes import scope_of, tables_of
from dither.plan.facts.units import is_unit
from dither.plan.facts.values import infer
from dither.plan.relations import (
    Filter,
    KeyFilter,
    Named,
    PublicJoin,
    Relation,
    Scan,
    UnitJoin,
    Unnest,
    visible,
)
from dither.plan.released import Rank
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.plan.text import number

__all__ = [
    "Names",
    "default_key_name",
    "default_name",
    "find",
    "find_table",
    "free_name",
    "key_expression",
    "suffix",
]


def find(name: str, known: Iterable[str], *, exact: bool = False) -> tuple[str, ...]:
    """The known names that a written one can mean.

    The same spelling wins; otherwise upper and lower case are alike, unless ``exact``, which is how
    a quoted identifier is read.

    Examples
    --------
    >>> find("AGE", ["age", "cost"]), find("AGE", ["age", "cost"], exact=True)
    (('age',), ())
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"the name of a table or a column must be a text; got {type(name).__name__}"
        )
    options = tuple(known)
    if name in options:
        return (name,)
    if exact:
        return ()
    return tuple(o for o in options if o.casefold() == name.casefold())


def find_table(name: str, schema: Schema, *, exact: bool = False) -> Table:
    """The table that a written name means.

    Raises
    ------
    UnknownNameError
        Where there is none; the nearest is offered.
    QueryError
        Where several differ from it in upper and lower case alone.
    """
    found = find(name, schema.tables, exact=exact)
    if len(found) > 1:
        shown = " and ".join(repr(f) for f in found)
        raise QueryError(f"table {name!r} could be {shown}; write it as it is declared")
    return schema.table(found[0] if found else name)


@dataclass(frozen=True, slots=True)
class Names:
    """The columns that expressions over a relation may name.

    Parameters
    ----------
    relation : Relation
    schema : Schema
    beside : Relation, optional
        A table, or a query in the FROM, that is about to be joined and counts as in scope: for the
        condition of the join.

    Examples
    --------
    >>> from dither.plan.schema import ColumnFacts
    >>> visits = Table("visits", {"age": ColumnFacts("age", Kind.INTEGER)})
    >>> Names(Scan("visits", "v"), Schema({"visits": visits})).column("AGE")
    Column(table='v', name='age')
    """

    relation: Relation
    schema: Schema
    beside: Named | None = None
    origins: dict[Expression, object] = field(default_factory=dict, compare=False, repr=False)
    """From what each expression was read: anyone who reads notes it here, for messages."""
    _known: dict[str, Table] = field(default_factory=dict, compare=False, repr=False)

    @property
    def visible(self) -> tuple[Named, ...]:
        """What is in scope, leftmost first."""
        return visible(self.relation) + ((self.beside,) if self.beside is not None else ())

    @property
    def tables(self) -> dict[str, Table]:
        """What is in scope, with its columns, by alias."""
        if not self._known:
            for side in (self.relation, self.beside):
                self._known.update({} if side is None else tables_of(side, self.schema))
        return self._known

    def table(self, alias: str, *, exact: bool = False) -> str:
        """The alias in scope that a written name means.

        Raises
        ------
        UnknownNameError
            Where there is none; the nearest is offered.
        """
        found = find(alias, self.tables, exact=exact)
        if not found:
            hint = nearest(alias, self.tables)
            for scan in self.visible:
                if isinstance(scan, Scan) and find(alias, [scan.table], exact=exact):
                    hint = f"; in this query that table goes by {scan.alias!r}"
            raise UnknownNameError(f"unknown table {alias!r} before a column name{hint}")
        return found[0]

    def column(
        self, name: str, table: str | None = None, *, exact: bool = False, exact_table: bool = False
    ) -> Column:
        """The column that a written name means.

        Parameters
        ----------
        name : str
        table : str, optional
            The alias written before it.
        exact, exact_table : bool
            Whether upper and lower case matter, as in a quoted identifier.

        Raises
        ------
        UnknownNameError
            Where there is none; the nearest is offered.
        QueryError
            Where several tables have one. Columns that a join sets equal count as one, the
            leftmost.
        """
        among = tuple(self.tables) if table is None else (self.table(table, exact=exact_table),)
        found = [
            Column(alias, match)
            for alias in among
            for match in find(name, self.tables[alias].columns, exact=exact)
        ]
        equal = set(_equal(self.relation))
        kept = [c for i, c in enumerate(found) if not any((left, c) in equal for left in found[:i])]
        if len(kept) == 1:
            return kept[0]
        if kept:
            options = " or ".join(repr(f"{c.table}.{c.name}") for c in kept)
            raise QueryError(f"column {name!r} is ambiguous; write {options}")
        if table is not None:
            self.tables[among[0]].column(name)
        for alias in among:
            # A column that is there and cannot be read says why.
            held = self.tables[alias]
            for match in find(name, (*held.lists, *held.unread), exact=exact):
                self.tables[alias].column(match)
        hint = nearest(name, [c for alias in among for c in self.tables[alias].columns])
        if exact and len(among) == 1:
            hint += " (double quotes name a column; text stands in single quotes)"
        raise UnknownNameError(f"unknown column {name!r}{hint}")

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column in scope; those that a join sets equal to one on its left are left out."""
        equal = {right for left, right in _equal(self.relation) if isinstance(left, Column)}
        found = (Column(alias, name) for alias, t in self.tables.items() for name in t.columns)
        return tuple(column for column in found if column not in equal)

    def facts(self, column: Column) -> ColumnFacts:
        """The public facts of a column."""
        return self.tables[self.table(column.table, exact=True)].column(column.name)

    def is_unit(self, column: Column) -> bool:
        """Whether a column says who is protected."""
        return is_unit(column, self.relation, self.schema)

    def kind(self, expression: Expression) -> Kind | None:
        """The kind of an expression, ``None`` where its facts do not say."""
        try:
            return infer(expression, scope_of(self.relation, self.schema)).kind
        except QueryError:
            return None

    def temporal(self, expression: Expression) -> bool:
        """Whether an expression is a date or a timestamp."""
        # What is plainly a number is not asked, so that long sums stay quick.
        if isinstance(expression, ex.Arithmetic):
            return False
        kind = self.kind(expression)
        return kind is not None and kind.temporal


def _equal(relation: Relation) -> Iterator[tuple[Expression, Column]]:
    match relation:
        case Filter(source=source) | KeyFilter(source=source) | Unnest(source=source):
            yield from _equal(source)
        case PublicJoin(source=source, on=on):
            yield from _equal(source)
            yield from on
        case UnitJoin(left=left, left_unit=left_unit, right_unit=right_unit, on=on):
            yield from _equal(left)
            yield left_unit, right_unit
            yield from on


def key_expression(expression: ex.Expression, names: Names) -> ex.Expression:
    """What ``GROUP BY expression`` groups by.

    A bare column with declared ``edges`` is cut into those bins; anything else stays as it is.

    Raises
    ------
    QueryError
        For a constant, or for the column that says who is protected.
    """
    if not ex.columns(expression):
        raise QueryError("GROUP BY a constant: group by a column or an expression of columns")
    if not isinstance(expression, ex.Column):
        return expression
    if names.is_unit(expression):
        raise QueryError(
            f"GROUP BY {expression.name}: the column says who is protected, so every group would "
            "be one person; group by something that many people share"
        )
    edges = names.facts(expression).edges
    return expression if edges is None else ex.Bin(expression, edges)


def default_key_name(expression: ex.Expression) -> str:
    """The name of a key that the query gives none.

    Examples
    --------
    >>> default_key_name(ex.DatePart("year", ex.Column("visits", "day")))
    'day_year'
    """
    used = ex.columns(expression)
    if len(used) != 1:
        return "key"
    name = used[0].name
    match expression:
        case ex.Column() | ex.Bin(operand=ex.Column()):
            return name
        case ex.DatePart(part=part) | ex.DateTruncate(part=part):
            return f"{name}_{part}"
    return f"{name}_key"


def default_name(aggregate: ag.AggregateFunction) -> str:
    """The name of an output that the query gives none.

    Examples
    --------
    >>> default_name(ag.Mean(ex.Column("visits", "cost"))), default_name(ag.Count())
    ('avg_cost', 'count')
    """
    match aggregate:
        case ag.Count():
            return "count"
        case ag.CountUnits():
            return "units"
        case ag.CountValues(operand=x):
            return _of("count", x)
        case ag.CountDistinct(operand=x):
            return _of("distinct", x)
        case ag.Paired(word=word):
            return ag.PAIRED[word]
        case ag.Sum(operand=x):
            return _of("sum", x)
        case ag.Mean(operand=x):
            return _of("avg", x)
        case ag.Variance(operand=x, root=root):
            return _of("stddev" if root else "var", x)
        case ag.Quantile(operand=x, label=label):
            return _of(label, x)
        case ag.Mode(operand=x):
            return _of("mode", x)
        case ag.Ratio():
            return "ratio"
        case Rank(word=word):
            return word.lower()
        case ag.Released():
            return "value"
    raise TypeError(type(aggregate).__name__)


def suffix(aggregate: ag.AggregateFunction) -> str:
    """What tells the quantiles of one list apart: their per cent.

    Examples
    --------
    >>> from fractions import Fraction
    >>> suffix(ag.Quantile(ex.Column("visits", "cost"), Fraction(5, 200)))
    '2_5'
    """
    assert isinstance(aggregate, ag.Quantile)
    return number(100 * aggregate.q).replace(".", "_").replace("/", "_")


def _of(word: str, operand: ex.Expression) -> str:
    return f"{word}_{operand.name}" if isinstance(operand, ex.Column) else word


def free_name(name: str, taken: Collection[str]) -> str:
    """``name``, or the first of ``name_2``, ``name_3``, ... that is not taken.

    Examples
    --------
    >>> free_name("sum", ["sum", "sum_2"])
    'sum_3'
    """
    used = {t.casefold() for t in taken}
    options = (name if i == 1 else f"{name}_{i}" for i in range(1, len(used) + 2))
    return next(o for o in options if o.casefold() not in used)

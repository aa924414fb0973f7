"""Rows of a table, filtered, joined and grouped, before anything is asked of them.

Each step makes the same plan nodes as SQL does; it holds no data and spends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from dither.errors import ArgumentError, QueryError
from dither.plan import aggregates as ag
from dither.plan.expressions import Bin, Column, Expression
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.units import unit_of
from dither.plan.relations import (
    Derived,
    Filter,
    KeyFilter,
    Named,
    PublicJoin,
    Relation,
    Scan,
    Union,
    UnitAggregate,
    UnitJoin,
    Unnest,
    renamed,
    scans,
    visible,
)
from dither.plan.schema import Schema
from dither.plan.text import Words
from dither.plan.within import derived, grouped_within, unit_value, united
from dither.query._aggregates import AggregateRequest, Bins
from dither.query._question import Question
from dither.sql import Names, parse_where, parse_written, part_of
from dither.sql.chosen import named_sets
from dither.sql.names import default_key_name, key_expression
from dither.sql.rows.joins import beside, join, unnest

__all__ = ["TableRows"]

MOST_STEPS = 40
"""Filters and joins of one question, one after the other. What reads or writes them goes as deep:
the writer of SQL ten calls for each, and Python stops at a thousand."""

Ask = Callable[[ag.Query], Question]


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a table. Every step gives new ones, and `dither.query._builder` asks of them."""

    relation: Relation
    schema: Schema
    ask: Ask
    keys: tuple[ag.Key, ...] = ()
    discover: bool = False
    once: bool = False
    sets: tuple[tuple[int, ...], ...] = ()
    flags: tuple[tuple[str, tuple[int, ...]], ...] = ()
    consistent: bool = False
    words: list[Words] = field(default_factory=list, compare=False, repr=False)

    def _read(self, text: str) -> Expression:
        names = Names(self.relation, self.schema)
        if isinstance(text, str) and not text.isidentifier() and self._is_column(text):
            # A column that SQL would want in quotes: in Python its name is enough.
            return names.column(text, exact=True)
        found, words = parse_written(text, names)
        self.words.append(words)
        return found

    def _part(self, text: str) -> str:
        """The same as a part of a longer text: a column in quotes, an expression as far as it goes.

        It stands by itself there, as between WHEN and THEN, or gets brackets.
        """
        if not text.isidentifier() and self._is_column(text):
            return '"' + text.replace('"', '""') + '"'
        return part_of(text)

    def _check_steps(self) -> None:
        steps, inner = 0, self.relation
        while isinstance(inner, Filter | KeyFilter | PublicJoin | UnitJoin | Unnest):
            steps, inner = steps + 1, inner.left if isinstance(inner, UnitJoin) else inner.source
        if steps >= MOST_STEPS:
            raise QueryError(
                f"the query has more than {MOST_STEPS} filters and joins, one after the other; "
                "join conditions by AND in one filter"
            )

    def _written(self, node: Expression) -> str | None:
        """How an expression was written in any of the texts so far."""
        return next((text for words in self.words if (text := words(node)) is not None), None)

    def _is_column(self, text: str) -> bool:
        tables = Names(self.relation, self.schema).tables.values()
        return any(text in table.columns for table in tables)

    def filter(self, condition: str) -> Self:
        """Keep the rows for which a condition is true.

        Parameters
        ----------
        condition : str
            In SQL's expression language, such as ``"age >= 18 AND region IN ('north', 'east')"``.
            Keys may be those of a public table: ``"region IN (SELECT region FROM regions)"``.

        Raises
        ------
        QueryError
            Where it cannot be read, or is not a condition.
        """
        self._before_keys("filter")
        self._check_steps()
        if isinstance(condition, str) and self._is_column(condition):
            return replace(self, relation=Filter(self.relation, self._read(condition)))
        rows, words = parse_where(condition, Names(self.relation, self.schema))
        self.words.append(words)
        return replace(self, relation=rows)

    def select(self, *columns: str, **named: str) -> Self:
        """Rows of these columns alone, derived ones among them: a query in the FROM.

        Parameters
        ----------
        *columns, **named : str
            Columns, or expressions; a keyword gives one its name.

        Raises
        ------
        QueryError
            Where an expression has no name, or two columns have one.
        """
        self._before_keys("select")
        made = [self._column(None, text) for text in columns]
        made += [self._column(name, text) for name, text in named.items()]
        alias = visible(self.relation)[0].alias
        return replace(self, relation=derived(self.relation, alias, made, self.schema))

    def per_unit(self, *keys: str, **named: str | AggregateRequest) -> Self:
        """One row for each protected unit and key, with aggregates of that unit's rows alone.

        Nothing is released by it, so they take no noise and no budget: what is asked of these
        rows does.

        Parameters
        ----------
        *keys : str
            Columns or expressions beside the unit, which is always a key.
        **named : str, or ``dt.count()``, ``dt.sum("cost")``, ``dt.mean``, ``dt.min``, ``dt.max``
            Under its keyword's name: a key, or an aggregate.

        Raises
        ------
        QueryError
            Where a row is a person, or an aggregate is not one of these.

        Examples
        --------
        With ``visits = session.table("visits")``, ``visits.per_unit(total=dt.sum("cost"))`` are
        rows of which ``.agg(m=dt.mean("total"))`` asks for the mean over people.
        """
        self._before_keys("per_unit")
        unit = unit_of(self.relation, self.schema)
        names = Names(self.relation, self.schema)
        shown = [c for c in names.columns if names.is_unit(c)]
        first = [(shown[0].name, shown[0])] if unit is not None and shown else []
        read = [self._column(None, text) for text in keys]
        scope = scope_of(self.relation, self.schema, self._written)
        made = []
        for name, asked in named.items():
            if isinstance(asked, str):
                read.append(self._column(name, asked))
            elif isinstance(asked, AggregateRequest):
                made.append((name, unit_value(asked.make(self._read), scope)))
            else:
                raise ArgumentError(f"{name} must be a key or an aggregate such as dt.count()")
        alias = visible(self.relation)[0].alias
        every = [*first, *(pair for pair in read if pair not in first)]
        return replace(
            self, relation=grouped_within(self.relation, alias, every, made, self.schema)
        )

    def union_all(self, *others: TableRows) -> Self:
        """The rows of all of them, columns matched by position; their tables hold the same units.

        Raises
        ------
        QueryError
            Where they hold different units, or columns do not match.
        """
        parts = []
        for query in (self, *others):
            if not isinstance(query, TableRows):
                raise ArgumentError("union_all takes rows such as session.table('visits')")
            query._before_keys("union_all")
            rows = query.relation
            if not isinstance(rows, Derived | UnitAggregate | Union):
                names = Names(rows, self.schema)
                made = [(column.name, column) for column in names.columns]
                rows = derived(rows, visible(self.relation)[0].alias, made, self.schema)
            parts.append(renamed(rows, visible(self.relation)[0].alias))
        return replace(self, relation=united(parts[0].alias, parts, self.schema))

    def _column(self, name: str | None, text: str) -> tuple[str, Expression]:
        node = self._read(text)
        if name is None and not isinstance(node, Column):
            raise ArgumentError(f"a derived column needs a name: write name={text!r}")
        return name or node.name, node  # type: ignore[attr-defined]

    def join(
        self,
        table: str | TableRows,
        on: str | Sequence[str] | dict[str, str],
        *,
        how: str = "inner",
    ) -> Self:
        """Join a public table, or private rows on the protected unit's key.

        Parameters
        ----------
        table : str or rows
            Its name in the policy; or rows of a private table, such as those of ``per_unit``.
        on : str, list of str, or dict
            Columns of the same name on both sides, or ``{expression here: column there}``.
        how : {"inner", "left"}
            What happens to rows without a match: dropped, or kept with NULL.

        Raises
        ------
        QueryError
            Where the join could fan out without a bound.
        """
        self._before_keys("join")
        self._check_steps()
        if how not in ("inner", "left"):
            raise ArgumentError("how must be 'inner' or 'left'")
        if not isinstance(on, str | Iterable):
            raise ArgumentError("on must be a column, a list of columns, or a mapping")
        if not isinstance(on, dict):
            on = {name: name for name in ([on] if isinstance(on, str) else on)}
        other: Named
        if isinstance(table, TableRows):
            table._before_keys("join")
            rows = table.relation
            if not isinstance(rows, Scan | Derived | UnitAggregate | Union):
                raise QueryError("join rows that were selected: end them with select(...)")
            other = rows
        else:
            other = beside(self.relation, table, None, self.schema)
        there = Names(other, self.schema)
        pairs = [
            (self._read(ours), there.column(theirs, exact=True).name) for ours, theirs in on.items()
        ]
        joined = join(self.relation, other, pairs, how == "left", self.schema)
        return replace(self, relation=joined)

    def unnest(self, column: str, name: str) -> Self:
        """A row for each element of a column that holds lists: ``UNNEST(column) AS name``.

        Parameters
        ----------
        column : str
            What its policy declares of values and bounds is about the elements.
        name : str
            What the elements are called.

        Raises
        ------
        QueryError
            Where the column is not a list, or a row of the table is a person and the policy does
            not say how many elements count (``max_items``).

        Notes
        -----
        Rows whose list is empty or NULL are left out. ``max_rows`` counts the rows that come out,
        however long lists are. Of a column with ``max_items`` the first elements count.
        """
        self._before_keys("unnest")
        self._check_steps()
        made = unnest(self.relation, (column, None), name, name, self.schema, exact=True)
        return replace(self, relation=made)

    def group_by(
        self,
        *keys: str | Bins,
        discover: bool = False,
        sets: str | Sequence[Sequence[str]] | None = None,
        grouping: str | None = None,
        consistent: bool = False,
        **named: str | Bins,
    ) -> Self:
        """Group by columns or expressions.

        Parameters
        ----------
        *keys, **named : str or ``dt.bins(...)``
            Columns, expressions or binned numbers; a keyword gives the key its name.
        discover : bool
            Discover the keys that occur, at a cost in delta, even where public facts list them.
        sets : {"rollup", "cube"} or list of lists of keys' names, optional
            Group by each of these sets: all keys, all but the last, and so on to none; every
            subset; or those given. They share one budget. Keys that are not in a set are None in
            its rows.
        grouping : str, optional
            A column of this name says which keys are not in the set of a row, as ``GROUPING`` of
            all of them does: the bits of a whole number, that of the last key the lowest.
        consistent : bool
            Counts and sums of all sets add up; each unit is then limited once, in the finest
            groups, and the noisy values are made to agree by least squares.

        Raises
        ------
        QueryError
            Where a key cannot be read, or has too many values.
        """
        self._before_keys("group_by")
        if not keys and not named:
            raise ArgumentError("group_by needs at least one key; leave it out to have one group")
        names = Names(self.relation, self.schema)
        made = [self._key(None, key, names) for key in keys]
        made += [self._key(name, key, names) for name, key in named.items()]
        places = () if sets is None else named_sets([key.name for key in made], sets)
        flags = () if grouping is None else ((grouping, tuple(range(len(made)))),)
        return replace(
            self,
            keys=tuple(made),
            discover=discover,
            sets=places,
            flags=flags,
            consistent=consistent,
        )

    def _key(self, name: str | None, key: str | Bins, names: Names) -> ag.Key:
        expression: Expression
        if isinstance(key, Bins):
            expression = Bin(self._read(key.operand), key.edges)
        elif isinstance(key, str):
            expression = key_expression(self._read(key), names)
        else:
            raise ArgumentError("a key must be a column, an expression or dt.bins(...)")
        return ag.Key(name or default_key_name(expression), expression)

    def _before_keys(self, step: str) -> None:
        if self.keys:
            raise QueryError(f"{step} comes before group_by; after it comes agg")

    def __repr__(self) -> str:
        read = ", ".join(dict.fromkeys(scan.table for scan in scans(self.relation)))
        keys = ", ".join(k.name for k in self.keys)
        return f"<rows of {read}{' grouped by ' * bool(keys)}{keys}>"

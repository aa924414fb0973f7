"""Questions of tables of counts: charged once, then counted and measured, adaptively.

What is released is made by a function that its caller supplies. It is handed an oracle of exact
tables of counts, adds the noise that was charged for, and gives plain data. So one charge covers a
mechanism of many steps, whose later ones may depend on what the earlier ones released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._display import Node
from dither._format import count_text
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError
from dither.plan.aggregates import Count, Key, Output, Query
from dither.plan.answers import CellsInUse, Histogram
from dither.plan.job import Cells, History, Job, ListedCells
from dither.plan.lowering.sensitivity import sensitivity
from dither.plan.relations import Filter, KeyFilter, Scan
from dither.policy._canonical import form
from dither.policy._facts import used_by
from dither.privacy import Charge, Loss, Neighbours, Promise
from dither.privacy._charge import group_factor
from dither.query._explain import UNACCOUNTED, blocks_text, in_blocks, protected, protects
from dither.query._explained_rows import explained_rows
from dither.query._noise import promise_of, row_of
from dither.query._question import Question
from dither.query.tables._domain import Attribute, CellDomain, Clique
from dither.session._certificate import MeasurementRecord
from dither.session._request import Request, largest_that_fits

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["Budget", "Counts", "ExactTables", "TablesQuestion"]

Integers = npt.NDArray[np.int64]

Counts = Callable[[Sequence[Clique]], dict[Clique, Integers]]
"""Exact tables of counts by the places of their columns, rising: arrays of the domain's shape."""

MOST_CELLS = 2**27
"""Tables of more cells, all together, are not counted in one call."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a release may cost.

    Parameters
    ----------
    epsilon, delta : Fraction
        As asked for: what is charged.
    of_a_row : (Fraction, Fraction)
        What the mechanism itself may lose. The same, unless the policy counts the rows of a unit
        that no column names: then it is about one row, of a group of so many.
    """

    epsilon: Fraction
    delta: Fraction
    of_a_row: tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class ExactTables:
    """The oracle of one run: exact tables, all of the same rows. Called, it gives `Counts`.

    Parameters
    ----------
    counts : callable
    rows : callable
        Gives the cells of all columns together that are not empty, with their counts: all that the
        domain tells of the rows that count. What lies in no cell of a column has the place after
        its last value, also where the policy says that there is none.
    """

    counts: Counts
    rows: Callable[[], CellsInUse]

    def __call__(self, cliques: Sequence[Clique]) -> dict[Clique, Integers]:
        """Exact tables."""
        return self.counts(cliques)


class TablesQuestion:
    """Tables of counts of one table's rows, to be measured by some mechanism.

    Parameters
    ----------
    rows : TableQuery
        A private table, after filters and joins.
    domain : CellDomain
        Of these rows.
    max_rows : int, optional
        How many rows of one unit count, in place of the policy's ``max_rows``; never above its cap.
    also : sequence of Attribute
        The domain's columns cut otherwise, which tables may be of as well: their places come after
        the domain's.
    history : History, optional
        What gives some of the keys; only of rows that a unit has.

    Notes
    -----
    *Sensitivity.* Of each unit the same at most ``max_rows`` rows count in every table of a run,
    chosen by a keyed hash of the unit's own rows. So one unit that is added or removed changes any
    one table by a vector of whole numbers of one sign whose sum is at most ``max_rows``: `l1` and
    the root of `l2_squared` are that (`dither.plan.lowering.sensitivity` has the proof, and that
    for replacement).

    *Order.* The ledger commits before a row is read; nothing is refunded, and a run that is cut off
    stays charged and leaves nothing behind. A token that was answered is answered again from the
    ledger, free of charge.
    """

    def __init__(
        self,
        rows: TableQuery,
        domain: CellDomain,
        *,
        max_rows: int | None = None,
        also: Sequence[Attribute] = (),
        history: History | None = None,
    ) -> None:
        limit = None if max_rows is None else check.whole("max_rows", max_rows, 1)
        counted = (Output("n", Count()),)
        self._asked: Question = rows.ask(Query(rows.relation, (), counted, max_rows=limit))
        self._plan, self._opened = self._asked._plan, self._asked._opened
        self.domain = domain
        self._counted = CellDomain((*domain.attributes, *also))
        keys = tuple(a.key for a in self._counted.attributes if a.key is not None)
        if not keys or len(keys) < len(self._counted.attributes):
            raise ArgumentError("the domain must be one of these rows, made by domain_of(rows)")
        named = tuple(Key(f"k{i}", key.expression) for i, key in enumerate(keys))
        self._facts = used_by(
            Query(rows.relation, named, counted), self._opened.policy, self._opened.facts
        )
        self._job = Job(
            self._plan.job.relation,
            self._plan.job.unit,
            keys,
            (),
            1,
            self._plan.job.max_rows,
            history=history,
        )
        if history is not None and self._job.unit is None:
            raise ArgumentError("histories are of rows that a unit has; declare its column")

    # --- what is public ---------------------------------------------------------------------------

    @property
    def table(self) -> str:
        """The table that says who is protected."""
        return self._plan.table.name

    @property
    def max_rows(self) -> int:
        """How many rows of one unit count; 1 where a row is the unit."""
        return self._job.max_rows

    @property
    def unit(self) -> str | None:
        """The column that says whose a row is."""
        return self._plan.table.unit

    @property
    def public_size(self) -> bool:
        """Whether the number of rows is public: they are replaced, none is left out, one a unit."""
        return self._plan.public_size

    @property
    def declared_rules(self) -> Sequence[Any]:
        """What the policy says that every row of the table keeps; of rows that are made of them
        otherwise than by leaving some out, nothing.
        """
        relation: Any = self._plan.query.relation
        while isinstance(relation, Filter | KeyFilter):
            relation = relation.source
        if not isinstance(relation, Scan):
            return ()
        return self._opened.policy.tables[self.table].rules

    @cached_property
    def _sensitivity(self) -> Any:
        found = Cells((), ())
        replaced = self._plan.schema.replace_one
        return sensitivity(found, max_groups=1, max_rows=self.max_rows, replace_one=replaced)

    @property
    def l1(self) -> int:
        """By how much one unit changes the cells of one table, all together, at most."""
        return int(self._sensitivity.l1)

    @property
    def l2_squared(self) -> int:
        """By how much it changes one table, as the square of the Euclidean length."""
        return int(self._sensitivity.l2_squared)

    @property
    def neighbours(self) -> Neighbours:
        """What neighbouring tables differ by."""
        return self.promise.neighbours

    @property
    def promise(self) -> Promise:
        """Whom the charge protects."""
        return promise_of(self._plan)

    @property
    def protects(self) -> str:
        """Who is protected, and which tables are neighbours."""
        return protects(self._plan)

    def notes(self) -> list[str]:
        """What a reader should know of how rows are counted."""
        found = [note for note in self._plan.notes if "number of rows is public" not in note]
        if self.unit is not None:
            found.append(
                f"of each {self.unit} at most {self.max_rows} rows count, the same in every table; "
                "where it has more, the rest is left out by chance, so those with many rows weigh "
                "less than in the data"
            )
        for fact in self._facts:
            found += fact.cut(rows=self.max_rows)
        return [*found, *blocks_text(self._plan).values(), *self.domain.notes()]

    def nodes(self) -> tuple[Node, Node, Node]:
        """For an explanation: who is protected, what is read, and the cells of the columns."""
        who, neighbours = protected(self._plan)
        cells = tuple((a.name, count_text(a.size, "cell")) for a in self.domain.attributes)
        columns, them = count_text(len(cells), "column"), "it" if len(cells) == 1 else "them"
        facts = [("neighbours", neighbours), ("account", self.promise.unit)]
        facts += in_blocks(self._plan)
        if self.unit is not None:
            facts.append((f"one {self.unit}", f"counts with at most {self.max_rows} rows"))
        reads = explained_rows(self._plan.query.relation, self._plan.schema)
        return (
            Node(f"protects {who}", tuple(facts)),
            Node("reads", children=(reads,)),
            Node(f"{columns}, cut into cells by what is declared of {them}", cells),
        )

    def budget(self, epsilon: Any, delta: Any = None) -> Budget:
        """What is asked for, seen to be what the policy can bear in principle.

        Raises
        ------
        ArgumentError
            Where it is out of range.
        """
        asked, share = self._asked._budget(epsilon, delta)
        rows = self._plan.unit_rows
        if rows == 1:
            return Budget(asked, share, (asked, share))
        wide = group_factor(asked / rows, rows) if share else Fraction(1)
        if wide is None:
            raise ArgumentError("epsilon is too large for a unit of several rows")
        return Budget(asked, share, (asked / rows, share / wide))

    def promised(self, loss: Loss) -> Loss:
        """A loss stated for what the mechanism sees, as one about the policy's unit."""
        rows, promise = self._plan.unit_rows, self.promise
        if rows == 1:
            return loss.promising(promise)
        return loss.promising(row_of(self._plan)).to_group(promise.unit, rows)

    # --- the release ------------------------------------------------------------------------------

    def request(
        self,
        budget: Budget,
        loss: Loss,
        asked: Mapping[str, Any],
        measure: Callable[[ExactTables], Mapping[str, Any]],
        *,
        wanted: Iterable[Clique] = (),
        listed: bool = False,
        measurements: Sequence[Mapping[str, Any]] = (),
    ) -> Request:
        """The request that charges once, counts and measures, and keeps what came out.

        Parameters
        ----------
        budget : Budget
        loss : Loss
            Of the whole of ``measure``, as it sees rows or units; proved by the caller.
        asked : mapping
            What is asked for, as plain data without floats: it is hashed with the question.
        measure : callable
            From the oracle to plain data that may be published. It runs after the charge; whatever
            it raises becomes the one error that says nothing, since it may depend on data.
        wanted : iterable of Clique
            Some tables that will be counted: the engine tries them before anything is charged.
        listed : bool
            The rows of all columns will be listed instead.
        measurements : sequence of mapping
            What the certificate says of the mechanisms, as plain data.
        """
        full, title = self.promised(loss), self.title(asked)

        def run(secret: bytes) -> Mapping[str, Any]:
            return measure(
                ExactTables(partial(self._count, secret=secret), partial(self._list, secret))
            )

        return Request(
            self._opened,
            self._question(asked),
            {"epsilon": str(budget.epsilon), "delta": str(budget.delta)},
            full,
            self.promise,
            note=lambda: {"query": title},
            tables=self._asked._tables,
            record=lambda: self._record(title, measurements),
            run=run,
            fits=lambda: self._what_fits(budget, full.charge),
            facts=self._facts,
            jobs=lambda: [self._whole] if listed else self._jobs(list(wanted) or [(0,)]),
            schema=self._plan.schema,
            blocks=self._plan.blocks,
        )

    def _what_fits(self, budget: Budget, charge: Charge) -> str:
        """The cheapest change: the largest epsilon that every account would still bear."""
        delta, more = budget.delta, Fraction(1)
        if delta and charge.rho is not None:
            # Laws that were composed closely have more rho than zCDP's own conversion, and at
            # another epsilon somewhat more than here.
            more = charge.rho / rho_of_epsilon(budget.epsilon, delta)
            more = more if more <= 1 else more * Fraction(3, 2)

        def made(epsilon: Fraction) -> Charge:
            found = Charge.pure(epsilon)
            if delta:
                rho = None if charge.rho is None else rho_of_epsilon(epsilon, delta) * more
                found = Charge(epsilon=epsilon, delta=delta, rho=rho)
            return replace(found, promise=charge.promise)

        return largest_that_fits(
            self._opened, self.promise, budget.epsilon, [(made, "")], blocks=self._plan.blocks
        )

    def title(self, asked: Mapping[str, Any]) -> str:
        """The question in a line, for the ledger's note."""
        what = asked.get("what", "tables")
        return f"{what} of {self._plan.table.name}: {', '.join(self.domain.names)}"

    def _question(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        keys = [
            {
                "name": a.name,
                "reads": form(a.key.expression) if a.key else None,
                "cells": a.to_dict() | {"name": None},
            }
            for a in self._counted.attributes
        ]
        made = {
            "node": "tables",
            "relation": form(self._plan.query.relation),
            "columns": keys,
            "max_rows": str(self.max_rows),
            "asked": dict(asked),
        }
        history = self._job.history
        if history is not None:
            made["history"] = {
                "within": [form(node) for node in history.within],
                "order": form(history.order),
                "number": str(history.number),
                "gap": str(history.gap),
                "edges": [str(edge) for edge in history.edges],
                "before": [[str(key), str(of)] for key, of in history.before],
            }
        return made

    def _record(self, title: str, measurements: Sequence[Mapping[str, Any]]) -> MeasurementRecord:
        text = {
            "sql": title,
            "plan": Node("tables of counts", tuple(("", n) for n in self.notes())).to_dict(),
            "protects": protects(self._plan),
            **blocks_text(self._plan),
            "unaccounted": UNACCOUNTED,
        }
        return MeasurementRecord(
            measurements, text, rows=self._plan.unit_rows, max_rows=self.max_rows
        )

    # --- counting ---------------------------------------------------------------------------------

    def _jobs(self, cliques: Sequence[Clique]) -> list[Job]:
        """The tables as jobs of the engine, none of too many cells."""
        found: list[list[Cells]] = [[]]
        held = 0
        for clique in dict.fromkeys(cliques):
            table = Cells.of(self._job.keys, clique)
            if table.bins > MOST_CELLS:
                raise ArgumentError(
                    f"a table of {', '.join(self._counted.names[v] for v in clique)} has "
                    f"{table.bins:,} cells, more than {MOST_CELLS:,}"
                )
            if found[-1] and held + table.bins > MOST_CELLS:
                found.append([])
                held = 0
            found[-1].append(table)
            held += table.bins
        return [replace(self._job, measurements=tuple(tables)) for tables in found if tables]

    def _count(self, cliques: Sequence[Clique], secret: bytes) -> dict[Clique, Integers]:
        """The exact tables of a run; the same secret keeps the same rows in all of them."""
        found: dict[Clique, Integers] = {}
        for job in self._jobs(cliques):
            answer = self._opened.engine.run(job, self._plan.schema, secret)
            for place, table in enumerate(job.measurements):
                assert isinstance(table, Cells)
                found[table.axes] = self._placed(table, answer.values[place])
        return found

    @cached_property
    def _whole(self) -> Job:
        """The job of all columns together."""
        every = ListedCells.of(self._job.keys, range(len(self._job.keys)))
        return replace(self._job, measurements=(every,))

    def _list(self, secret: bytes) -> CellsInUse:
        """All columns of the rows of a run, which are those of its tables."""
        answer = self._opened.engine.run(self._whole, self._plan.schema, secret)
        found: CellsInUse = answer.values[0]
        return found

    def _placed(self, table: Cells, counted: Histogram) -> Integers:
        """A table in the domain's shape: what no cell is for is left out."""
        whole: Integers = counted.dense().reshape(table.shape)
        shape = self._counted.shape(table.axes)
        return whole[tuple(slice(0, size) for size in shape)].copy()

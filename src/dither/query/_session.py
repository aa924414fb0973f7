"""A session: one policy, its sources, its ledger, and questions asked of them."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dither import _checks as check
from dither._format import loss_text
from dither.errors import ArgumentError, LedgerError, PolicyError, nearest
from dither.ledger import Balance, Ledger
from dither.plan import aggregates as ag
from dither.plan.lower import lower
from dither.plan.relations import scans
from dither.plan.schema import Schema, Table
from dither.privacy._budget import BudgetFilter
from dither.query._builder import TableQuery
from dither.query._opened import OpenedPolicy
from dither.query._places import check_places, check_sources
from dither.query._policy import Policy, read_policy, schema_of
from dither.query._question import Question
from dither.query._sources import PublicKeys, connect
from dither.sql.joins import start

if TYPE_CHECKING:
    from dither.engines import Engine

__all__ = ["DATASET", "Session", "open"]

DATASET = "dataset"
"""Every release of a policy is charged to the account of its unit under this name."""


def open(  # noqa: A001 - as users write it: dt.open
    policy: str | Path | Mapping[str, Any],
    *,
    analyst: str | None = None,
    sources: Mapping[str, Any] | None = None,
    engines: Mapping[str, Any] | None = None,
) -> Session:
    """Open a policy: connect its sources, read their schemas, open its ledger.

    Parameters
    ----------
    policy : path or mapping
        The policy file, or a dictionary of the same shape.
    analyst : str, optional
        Who asks. Needed where the policy gives analysts caps of their own; both the analyst's and
        the dataset's account must then bear each charge.
    sources : mapping of str to frame, path or mapping, optional
        Tables given here instead of by the policy's ``source``: Polars, pandas, Arrow or Spark
        frames, paths, or what a policy could say, such as
        ``{"postgres": "env:DSN", "table": "visits"}``.
    engines : mapping of str to connection, optional
        Connections to use for engines that the policy names: ``{"spark": session}``. What is given
        stays open, and its settings stay as they are.

    Returns
    -------
    Session

    Raises
    ------
    PolicyError
        Where the policy is missing, contradictory or incomplete, or does not fit its sources.
    LedgerError
        Where the ledger cannot be used.
    """
    read = read_policy(policy)
    caps = {DATASET: read.budget}
    if analyst is not None and not read.analysts:
        raise ArgumentError(
            f"analyst: the policy caps no analysts; add [analysts.{analyst}] to it, or leave it out"
        )
    if read.analysts:
        if analyst is None:
            raise ArgumentError(
                "analyst must be given: the policy caps each analyst; one of "
                + ", ".join(repr(a) for a in read.analysts)
            )
        if analyst not in read.analysts:
            raise PolicyError(f"unknown analyst {analyst!r}" + nearest(analyst, read.analysts))
        caps[f"analyst:{analyst}"] = read.analysts[analyst]
    check_sources(read.tables, read.units, read.folder, sources)
    engine = connect(read, dict(sources or {}), dict(engines or {}))
    try:
        check_places(read.tables, read.units, engine)
        found = {name: engine.describe(name) for name in read.tables}
        incomplete = [name for name in read.tables if not engine.complete(name)]
        unread = {name: engine.unread(name) for name in read.tables}
        schema = schema_of(read, found, incomplete, unread)
        engine.check(schema)
        ledger = Ledger.open(read.ledger)
        try:
            session = Session(read, schema, engine, ledger, caps, analyst)
            session._opened.check_accounts()
        except BaseException:
            ledger.close()
            raise
    except BaseException:
        engine.close()
        raise
    return session


class Session:
    """Questions asked of one policy's tables; made by ``dither.open``.

    Nothing is charged and no private value is read until ``Question.release``.
    """

    def __init__(
        self,
        policy: Policy,
        schema: Schema,
        engine: Engine,
        ledger: Ledger,
        caps: Mapping[str, BudgetFilter],
        analyst: str | None,
    ) -> None:
        self.policy = policy
        self.schema = schema
        self.analyst = analyst
        self.ledger = ledger
        self._engine = engine
        self._opened = OpenedPolicy(policy, engine, ledger, caps)
        self.promises = self._opened.promises
        self._keys = PublicKeys(engine)

    @property
    def tables(self) -> Mapping[str, Table]:
        """What is public about each table."""
        return self.schema.tables

    def sql(
        self,
        text: str,
        *,
        weights: Mapping[str, float | str | Fraction] | None = None,
        discover: bool = False,
    ) -> Question:
        """Ask in SQL: one ``SELECT`` of keys and aggregates. ``docs/sql.md`` says what is read.

        Parameters
        ----------
        text : str
        weights : mapping of str to number, optional
            By output: its share of the budget relative to the others, which have 1.
        discover : bool
            Discover the keys that occur, at a cost in delta, even where public facts list them.

        Raises
        ------
        QueryError
            Naming the part that is not understood or not offered, and the fix.
        """
        from dither.sql import parse_query

        query = parse_query(text, self.schema)
        names = [output.name for output in query.outputs]
        given = {
            name: check.positive(f"weights[{name!r}]", w) for name, w in (weights or {}).items()
        }
        for name in given:
            if name not in names:
                raise ArgumentError(f"weights: no output {name!r}" + nearest(name, names))
        outputs = tuple(replace(o, weight=given.get(o.name, o.weight)) for o in query.outputs)
        return self._question(replace(query, outputs=outputs, discover=discover))

    def table(self, name: str) -> TableQuery:
        """Ask in Python: start from a private table."""
        return TableQuery(start(name, None, self.schema), self.schema, self._question)

    def balance(self) -> list[Balance]:
        """What each account may spend, has spent and has left: for each unit, the data set's and
        the analyst's.

        Raises
        ------
        ArgumentError
            Where the session is closed.
        """
        self._opened.check_open()
        return self._opened.balances(self.promises)

    def close(self) -> None:
        """Give back the engine and the ledger. Questions can still be explained and previewed."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        title, tables, accounts = self._listing()
        return "\n".join([title, *(f"  {line}" for line in (*tables, *accounts))])

    def _repr_html_(self) -> str:
        title, tables, accounts = self._listing()
        items = "".join(f"<li>{html.escape(line)}</li>" for line in (*tables, *accounts))
        return f"<div><b>{html.escape(title)}</b><ul>{items}</ul></div>"

    def _listing(self) -> tuple[str, list[str], list[str]]:
        """The session in a line; a line for each table; one for each account."""
        tables = []
        for name, table in self.tables.items():
            who = "public" if not table.private else f"protects {table.unit or 'each row'}"
            tables.append(f"table {name} ({who}): {', '.join(table.columns)}")
        if self._opened.closed:
            return "closed session", tables, []
        cap = self._opened.caps[DATASET]
        title = f"session under epsilon {loss_text(cap.epsilon)}, delta {loss_text(cap.delta)}"
        try:
            accounts = [f"account {balance}" for balance in self.balance()]
        except LedgerError:
            accounts = ["the ledger cannot be read"]
        return title, tables, accounts

    def _question(self, query: ag.Query) -> Question:
        self._engine.check_together(
            tuple(dict.fromkeys(scan.table for scan in scans(query.relation)))
        )
        return Question(lower(query, self._keys.listed(query, self.schema)), self._opened)

"""What was learned and paid for before: facts of the ledger that a policy may use.

A policy says ``bounds = "learned"`` where it would declare them. Then the newest answer in the
ledger stands for them that was learned for that table and column, read as the same kind, about the
same unit and neighbours. It was released, so it is as public as anything declared: to use it costs
nothing, and a question that does so names the entry that it comes from.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any, TypeVar

from dither._format import cost_text, count_text, percent
from dither.errors import PolicyError
from dither.ledger import Entry, Ledger
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan import relations as rel
from dither.plan.schema import ColumnFacts, Schema, Table
from dither.plan.text import brief, show_value
from dither.policy._policy import DeclaredTable, Policy

__all__ = [
    "Fact",
    "end_of",
    "end_text",
    "facts_in",
    "learned_of",
    "used_by",
    "with_facts",
    "with_unused",
    "without_facts",
]

NOTED = "learn"
"""The field of a charge's note that says what was learned."""


ENDS = ("lower", "upper")


@dataclass(frozen=True)
class Fact:
    """One thing that was learned.

    Parameters
    ----------
    kind : str
        ``"bounds"``, ``"limits"`` or ``"keys"``.
    table : str
    column : str or None
        ``None`` for limits, which are of a table.
    content : mapping
        As stored in the answer.
    entry : Entry
        The charge in the ledger.
    """

    kind: str
    table: str
    column: str | None
    content: Mapping[str, Any]
    entry: Entry

    @property
    def bounds(self) -> tuple[Fraction, Fraction] | tuple[dt.date, dt.date] | None:
        """The ends of a number, date or time; ``None`` where none were found, and for others."""
        if self.content.get("lower") is None or self.content.get("upper") is None:
            return None
        ends = (end_of(self.content[end], str(self.content["type"])) for end in ENDS)
        return tuple(ends)  # type: ignore[return-value]

    @property
    def values(self) -> tuple[Any, ...] | None:
        """The keys that were found."""
        found = self.content.get("values")
        if found is None:
            return None
        if self.content["type"] == "date":
            return tuple(dt.date.fromisoformat(v) for v in found)
        return tuple(found)

    def limit(self, name: str) -> int | None:
        """A limit, of ``"rows"`` or of ``"groups"``."""
        upper = (self.content.get(name) or {}).get("upper")
        return None if upper is None else int(upper)

    def cut(self, **limits: int) -> list[str]:
        """What is known to be cut by limits that a question uses as they were learned: the shares
        that learning them released, and nothing else.

        ``limits``: what the question uses, by ``rows`` and ``groups``.
        """
        told = []
        for name, used in limits.items():
            facts = self.content.get(name) or {}
            if self.limit(name) != used or facts.get("expected") is None:
                continue
            lost = (
                "" if facts.get("beyond") is None else f", {_about(facts['beyond'])} of all {name}"
            )
            told.append(
                f"{_about(facts['expected'])} of the units (at most "
                f"{percent(facts['most'], turn=ceil)}) have more than "
                f"{count_text(used, name.removesuffix('s'))}{lost}"
            )
        if not told:
            return []
        by = ", ".join(self.content.get("by") or ())
        return [
            f"what learned limits cut, by ledger entry {self.entry.number}"
            f"{f' (rows by {by})' if by else ''}: {'; '.join(told)}; grouped otherwise it may be "
            "more"
        ]

    @property
    def found(self) -> bool:
        """Whether anything was found."""
        limits = [self.limit(name) for name in ("rows", "groups")]
        return bool(self.bounds or self.values or any(limits))

    @property
    def text(self) -> str:
        """What was found, and where it comes from."""
        return f"{self.said}, from ledger entry {self.entry.number} ({self._cost})"

    @property
    def said(self) -> str:
        """What was found."""
        if self.kind == "limits":
            told = [f"max_{n} = {m}" for n in ("groups", "rows") if (m := self.limit(n))]
            return f"{' and '.join(told) or 'no limits'} of {self.table}"
        of = "the elements of " if self.content.get("elements") else ""
        name = f"{of}{self.column} of {self.table}"
        if self.kind == "bounds":
            ends = self.bounds
            return f"bounds of {name} [{', '.join(map(end_text, ends))}]" if ends else f"no {name}"
        listed = [show_value(v) for v in self.values or ()]
        shown = ", ".join(listed[:6]) + (f", ... ({len(listed)})" if len(listed) > 6 else "")
        return f"values of {name}: {shown}"

    @property
    def _cost(self) -> str:
        charge = self.entry.charge
        assert charge is not None
        return cost_text(charge.epsilon, charge.delta)

    def to_dict(self) -> dict[str, Any]:
        """The fact as requests and certificates name it: what it says, and its entry."""
        named: dict[str, Any] = {"kind": self.kind, "table": self.table}
        if self.column is not None:
            named["column"] = self.column
        ends = self.bounds
        if ends is not None:
            named["bounds"] = [self.content[end] for end in ENDS]
        if self.kind == "keys":
            named["values"] = list(self.content["values"])
        for name in ("rows", "groups"):
            if self.limit(name):
                named[f"max_{name}"] = str(self.limit(name))
        charge = self.entry.charge
        assert charge is not None
        return named | {
            "entry": self.entry.number,
            "hash": self.entry.hash,
            "epsilon": str(charge.epsilon),
            "delta": str(charge.delta),
        }


def _about(share: float) -> str:
    return f"about {percent(round(share, 3))}"


def end_of(text: str | None, kind: str) -> Fraction | dt.date | None:
    """A learned end, out of the text that the ledger has of it."""
    if text is None:
        return None
    if kind == "date":
        return dt.date.fromisoformat(text)
    return dt.datetime.fromisoformat(text) if kind == "timestamp" else Fraction(text)


def end_text(end: Fraction | dt.date) -> str:
    """A learned end as a policy writes it."""
    return brief(end) if isinstance(end, Fraction) else end.isoformat()


def facts_in(ledger: Ledger) -> list[Fact]:
    """All that was ever learned under a ledger, oldest first."""
    found = []
    for entry, answer in ledger.answered(NOTED):
        try:
            content = json.loads(answer)["learned"]
            found.append(
                Fact(content["kind"], content["table"], content.get("column"), content, entry)
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            # Somebody else's charge, with a note of the same name.
            continue
    return found


def learned_of(
    policy: Policy, facts: Iterable[Fact], schema: Schema
) -> dict[tuple[str, str], Fact]:
    """By table and field of the policy that says ``"learned"``: the newest fact that it stands for.

    A field of a column is named by the column; a limit by its own name.
    """
    found: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        declared = policy.tables.get(fact.table)
        if declared is None or not declared.private or not fact.found:
            continue
        if fact.entry.promise != policy.promise(policy.units[fact.table].name):
            continue
        for field in _fields(fact, declared, schema.table(fact.table)):
            found[fact.table, field] = fact
    return found


def with_unused(schema: Schema, policy: Policy, facts: Iterable[Fact]) -> Schema:
    """The schema in which tables name the columns whose bounds were learned, wanted or not."""
    tables = dict(schema.tables)
    for fact in facts:
        table, declared = tables.get(fact.table), policy.tables.get(fact.table)
        if fact.bounds is None or table is None or declared is None or not declared.private:
            continue
        promised = fact.entry.promise == policy.promise(policy.units[fact.table].name)
        column = _column(fact, table)
        if promised and column is not None:
            tables[fact.table] = replace(table, learned=table.learned | {column.name})
    return replace(schema, tables=tables)


def _column(fact: Fact, table: Table) -> ColumnFacts | None:
    """The column that a fact is of, or the elements of one, while it is read as it was."""
    known = table.lists if fact.content.get("elements") else table.columns
    column = known.get(fact.column or "")
    return column if column is not None and column.kind.value == fact.content.get("type") else None


def _fields(fact: Fact, declared: DeclaredTable, table: Table) -> list[str]:
    """The fields of a table that a fact can stand for."""
    if fact.kind == "limits":
        return [f"max_{n}" for n in ("rows", "groups") if fact.limit(n)]
    column = _column(fact, table)
    if column is None:
        return []
    wanted = {"bounds": "bounds", "keys": "values"}[fact.kind]
    body = declared.columns.get(column.name)
    return [column.name] if body is not None and body.learned == wanted else []


def with_facts(schema: Schema, policy: Policy, facts: Mapping[tuple[str, str], Fact]) -> Schema:
    """The schema with what was learned in the places where the policy asks for it.

    Raises
    ------
    PolicyError
        Where the policy's step is wider than learned bounds.
    """
    tables = dict(schema.tables)
    for name, declared in policy.tables.items():
        table = tables[name]
        columns, lists = dict(table.columns), dict(table.lists)
        for column, body in declared.columns.items():
            fact = facts.get((name, column)) if body.learned else None
            if fact is None:
                continue
            into = lists if column in lists else columns
            if fact.bounds is not None:
                lower, upper = fact.bounds
                if body.step is not None and body.step > upper - lower:  # type: ignore[operator]
                    raise PolicyError(
                        f"tables.{name}.columns.{column}.step is wider than the learned bounds "
                        f"[{end_text(lower)}, {end_text(upper)}]; declare a smaller step"
                    )
                into[column] = replace(into[column], lower=lower, upper=upper)
            else:
                into[column] = replace(into[column], values=fact.values)
        limits = {
            field: limit
            for field in declared.learned
            if (fact := facts.get((name, field)))
            and (limit := fact.limit(field.removeprefix("max_")))
        }
        tables[name] = replace(table, columns=columns, lists=lists, **limits)  # type: ignore[arg-type]
    return replace(schema, tables=tables)


def used_by(
    query: ag.Query, policy: Policy, facts: Mapping[tuple[str, str], Fact]
) -> tuple[Fact, ...]:
    """The facts that a question rests on: those of the columns that it names, and limits."""
    found: dict[int, Fact] = {}
    # The tables that keys are listed from come last, and may go by the name of another.
    names = {scan.alias: scan.table for scan in reversed(rel.scans(query.relation))}
    named = [*_found(query, ex.Column)]
    fields = [(names[c.table], c.name) for c in named if c.table in names]
    # Elements go by a name of their own, and what is declared of them by that of their column.
    lists = {(e.alias, e.name): (names[e.table], e.column) for e in _found(query, rel.Elements)}
    fields += [lists[c.table, c.name] for c in named if (c.table, c.name) in lists]
    if not isinstance(query, ag.QueryOfUnits):
        base = names[rel.base(query.relation).alias]
        fields += [(base, field) for field in policy.tables[base].learned]
    for field in fields:
        fact = facts.get(field)
        if fact is not None:
            found[fact.entry.number] = fact
    return tuple(found[number] for number in sorted(found))


def without_facts(
    query: ag.Query, policy: Policy, facts: Mapping[tuple[str, str], Fact]
) -> list[str]:
    """Limits that a question needs, does not set itself, and that nobody has learned yet."""
    if isinstance(query, ag.QueryOfUnits):
        return []
    name = rel.base(query.relation).table
    wanted = [f for f in policy.tables[name].learned if getattr(query, f) is None]
    return [field for field in wanted if (name, field) not in facts]


NODES = (
    *(ex.Expression, ag.AggregateFunction, ag.Output, ag.Key, ag.Query),
    *(rel.Relation, rel.UnitValue),
)

Wanted = TypeVar("Wanted", ex.Column, rel.Elements)


def _found(node: object, wanted: type[Wanted]) -> Iterable[Wanted]:
    """Every node of a kind, anywhere in a question."""
    if isinstance(node, wanted):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _found(part, wanted)
    elif isinstance(node, NODES):
        for name in node.__dataclass_fields__:
            yield from _found(getattr(node, name), wanted)

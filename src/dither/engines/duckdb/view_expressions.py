"""The expressions of a view that is read: written anew, and known never to fail on any value.

Types are followed, because an engine that compares a text with a number casts the text, and fails
on the first that is none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from dither.engines.duckdb.dialect import DUCKDB
from dither.engines.writer import forms
from dither.engines.writer.dialect import LARGEST
from dither.errors import PolicyError

__all__ = ["Columns", "Expressions"]

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_REAL = {"FLOAT", "DOUBLE"}
_TRIED = _WHOLE | _REAL | {"VARCHAR", "BOOLEAN", "DATE"}
"""Types between which TRY_CAST gives a value or NULL, and never fails."""

_SPELLINGS = {"TEXT": "VARCHAR", "INT": "INTEGER", "REAL": "FLOAT"}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_CONDITIONS = (exp.Not, exp.And, exp.Or, exp.Is, exp.In, exp.Between, *_COMPARISONS)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table or view.

    Parameters
    ----------
    types : mapping of str to str
        Their DuckDB types.
    computed : frozenset of str
        Those that are not columns of the base table, unchanged.
    """

    types: Mapping[str, str]
    computed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Made:
    """One column of a view; its kind is ``None`` where it is NULL throughout."""

    name: str
    node: exp.Expression
    kind: str | None
    plain: bool


class Expressions:
    """Writes expressions over a table's columns.

    Parameters
    ----------
    source : Columns
    alias : str
        The name that the table goes by.
    refuse : callable
        Makes the error from the reason, where an expression is not known to be total.
    """

    def __init__(self, source: Columns, alias: str, refuse: Callable[[str], PolicyError]) -> None:
        self._source = source
        self._alias = alias
        self._refuse = refuse

    def columns(self, node: exp.Expr) -> list[Made]:
        """What one item of a SELECT gives: a column, or with ``*`` many."""
        if isinstance(node, exp.Star):
            left_out = [n.name.casefold() for n in node.args.get("except_") or ()]
            for part, value in node.args.items():
                if value and part != "except_":
                    raise self._refuse(f"it has * with {part.strip('_').upper()}")
            return [
                Made(name, forms.identifier(name), kind, name not in self._source.computed)
                for name, kind in self._source.types.items()
                if name.casefold() not in left_out
            ]
        title = node.alias_or_name
        bare = node.this if isinstance(node, exp.Alias) else node
        made, kind = self._value(bare)
        if not title:
            raise self._refuse("one of its columns has no name; give it one with AS")
        plain = isinstance(bare, exp.Column) and made.name not in self._source.computed
        return [Made(title, made, kind, plain)]

    def _value(self, node: exp.Expr) -> tuple[exp.Expression, str | None]:
        """An expression that cannot fail, written anew, and its type; ``None`` for NULL."""
        match node:
            case exp.Paren():
                return self._value(node.this)
            case exp.Column():
                return self._named(node)
            case exp.Null():
                return DUCKDB.null(), None
            case exp.Boolean():
                return exp.Boolean(this=node.this), "BOOLEAN"
            case exp.Literal() | exp.Neg():
                return self._constant(node)
            case exp.TryCast():
                inner, kind = self._value(node.this)
                goal = node.to.sql(dialect="duckdb").upper()
                goal = _SPELLINGS.get(goal, goal)
                if {kind or "VARCHAR", goal} <= _TRIED:
                    return DUCKDB.tried(inner, goal), goal
            case exp.Cast():
                return self._day(node)
            case exp.Coalesce():
                return self._same([node.this, *node.expressions], "COALESCE")
            case exp.Case() if node.this is None:
                return self._case(node)
        if isinstance(node, _CONDITIONS):
            return self.condition(node), "BOOLEAN"
        raise self._refuse(f"it computes {_short(node)}, which is not known never to fail")

    def _named(self, node: exp.Column) -> tuple[exp.Expression, str]:
        if node.args.get("db") or (node.table and node.table.casefold() != self._alias.casefold()):
            raise self._refuse(f"{_short(node)} is not a column of its table")
        for name, kind in self._source.types.items():
            if name.casefold() == node.name.casefold():
                return forms.identifier(name), kind
        raise self._refuse(f"{_short(node)} is not a column of its table")

    def _constant(self, node: exp.Expr) -> tuple[exp.Expression, str]:
        negative = isinstance(node, exp.Neg)
        inner = node.this if negative else node
        if not isinstance(inner, exp.Literal):
            raise self._refuse(f"it computes {_short(node)}, which is not known never to fail")
        if inner.is_string:
            if negative:
                raise self._refuse("it negates a text")
            return DUCKDB.constant(inner.this), "VARCHAR"
        if inner.this.isdecimal():
            value = -int(inner.this) if negative else int(inner.this)
            if abs(value) > LARGEST:
                raise self._refuse("it holds a whole number beyond 64 bits")
            return DUCKDB.integer(value), "BIGINT"
        try:
            number = float(inner.this)
        except ValueError:
            raise self._refuse("it holds a number that is not understood") from None
        return DUCKDB.real(-number if negative else number), "DOUBLE"

    def _day(self, node: exp.Cast) -> tuple[exp.Expression, str]:
        """A date or timestamp that stands in the text: any other cast may fail on a value."""
        goal = node.to.sql(dialect="duckdb").upper()
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            try:
                if goal == "DATE":
                    return DUCKDB.constant(dt.date.fromisoformat(node.this.this)), goal
                if goal == "TIMESTAMP":
                    stamp = dt.datetime.fromisoformat(node.this.this)
                    return DUCKDB.constant(stamp.replace(tzinfo=None)), goal
            except ValueError:
                pass
        raise self._refuse(
            f"{_short(node)} fails on values that do not fit; declare the column's type in the "
            "policy, which reads such values as NULL"
        )

    def _same(self, nodes: list[exp.Expr], what: str) -> tuple[exp.Expression, str | None]:
        made = [self._value(node) for node in nodes]
        kind = self._one_kind([kind for _, kind in made], what)
        return forms.call("COALESCE", *(value for value, _ in made)), kind

    def _case(self, node: exp.Case) -> tuple[exp.Expression, str | None]:
        default = node.args.get("default")
        tests = [self.condition(branch.this) for branch in node.args["ifs"]]
        made = [self._value(branch.args["true"]) for branch in node.args["ifs"]]
        last = self._value(default) if default is not None else (None, None)
        kind = self._one_kind([kind for _, kind in (*made, last)], "CASE")
        values = [value for value, _ in made]
        return forms.case(*zip(tests, values, strict=True), otherwise=last[0]), kind

    def _one_kind(self, kinds: list[str | None], what: str) -> str | None:
        found = {kind for kind in kinds if kind is not None}
        if len(found) > 1 and found <= _WHOLE:
            return "BIGINT"
        if len(found) > 1:
            raise self._refuse(f"its {what} mixes types")
        return next(iter(found), None)

    # --- conditions -------------------------------------------------------------------------------

    def condition(self, node: exp.Expr) -> exp.Expression:
        """A condition that is true, false or NULL on every row."""
        match node:
            case exp.Paren():
                return exp.Paren(this=self.condition(node.this))
            case exp.Not():
                return exp.Not(this=exp.Paren(this=self.condition(node.this)))
            case exp.And() | exp.Or():
                op = "AND" if isinstance(node, exp.And) else "OR"
                return forms.binary(op, *(self.condition(n) for n in (node.left, node.right)))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return exp.Is(this=exp.Paren(this=self._value(node.this)[0]), expression=exp.Null())
            case exp.In() if node.expressions and not node.args.get("query"):
                return forms.all_of(
                    "OR", [self._compared(exp.EQ, node.this, n) for n in node.expressions]
                )
            case exp.Between() if not node.args.get("symmetric"):
                low, high = node.args["low"], node.args["high"]
                return forms.all_of(
                    "AND",
                    [
                        self._compared(exp.GTE, node.this, low),
                        self._compared(exp.LTE, node.this, high),
                    ],
                )
        if isinstance(node, _COMPARISONS):
            return self._compared(type(node), node.left, node.right)
        if isinstance(node, exp.Column | exp.Boolean):
            made, kind = self._value(node)
            if kind == "BOOLEAN":
                return made
        raise self._refuse(f"its condition {_short(node)} is not known never to fail")

    def _compared(self, op: Any, left: exp.Expr, right: exp.Expr) -> exp.Expression:
        (ours, one), (theirs, other) = self._value(left), self._value(right)
        if one is not None and other is not None and not _comparable(one, other):
            raise self._refuse(
                f"it compares {_short(left)} with {_short(right)}, which are of different types"
            )
        made: exp.Expression = exp.Paren(this=op(this=ours, expression=theirs))
        return made


def _comparable(one: str, other: str) -> bool:
    if one == other:
        return one in _TRIED | {"TIMESTAMP"}
    # A number with a point is compared with doubles alone: beside others the engine has its own
    # rules for how many digits count.
    return {one, other} <= _WHOLE or {one, other} <= _WHOLE | {"DOUBLE"}


def _short(node: exp.Expr) -> str:
    text = node.sql(dialect="duckdb")
    return repr(text if len(text) <= 40 else text[:37] + "...")

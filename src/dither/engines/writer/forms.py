"""Pieces of SQL that every engine writes alike, as sqlglot trees.

What has a type, and what engines disagree about, is the business of a ``Dialect``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

__all__ = [
    "all_of",
    "binary",
    "call",
    "case",
    "identifier",
    "is_not_null",
    "named",
    "named_table",
    "selected",
    "subquery",
]

_BINARY: dict[str, type[exp.Expression]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
    "//": exp.IntDiv,
    "%": exp.Mod,
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "AND": exp.And,
    "OR": exp.Or,
}


def call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """``name(arguments)``, passed on as it is."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def binary(op: str, left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """``(left op right)``."""
    return exp.Paren(this=_BINARY[op](this=left, expression=right))


def all_of(op: str, parts: Sequence[exp.Expression]) -> exp.Expression:
    """The parts joined by ``AND`` or ``OR``; of no parts, what leaves the others unchanged."""
    if not parts:
        return exp.Boolean(this=op == "AND")
    joined = parts[0]
    for part in parts[1:]:
        joined = _BINARY[op](this=joined, expression=part)
    return exp.Paren(this=joined)


def case(
    *branches: tuple[exp.Expression, exp.Expression], otherwise: exp.Expression | None = None
) -> exp.Expression:
    """``CASE WHEN ... THEN ... ELSE otherwise END``; NULL where nothing applies."""
    return exp.Case(ifs=[exp.If(this=c, true=v) for c, v in branches], default=otherwise)


def is_not_null(value: exp.Expression) -> exp.Expression:
    """``NOT value IS NULL``."""
    return exp.Not(this=exp.Is(this=value, expression=exp.Null()))


def identifier(name: str, table: str | None = None) -> exp.Expression:
    """A quoted column name."""
    return exp.column(_quoted(name), table=table and _quoted(table))


def named(node: exp.Expression, name: str) -> exp.Expression:
    """``node AS "name"``."""
    return exp.Alias(this=node, alias=_quoted(name))


def named_table(name: str) -> exp.Table:
    """A quoted table or view, to select from."""
    return exp.Table(this=_quoted(name))


def selected(columns: Sequence[exp.Expression], source: exp.Expression) -> exp.Select:
    """``SELECT columns FROM source``; neither may stand anywhere else."""
    # Left to itself sqlglot copies all that is below, at every level.
    return exp.select(*columns, copy=False).from_(source, copy=False)


def subquery(rows: exp.Query, name: str) -> exp.Subquery:
    """``(rows) AS "name"``: quoted, since what one engine reserves is a plain word to another."""
    return rows.subquery(_quoted(name), copy=False)


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)

"""The part of a query that is being read: how messages call it, its names, its allow-list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeGuard

from sqlglot import exp

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.kinds import Value
from dither.sql.names import Names
from dither.sql.refusal import refuse, take

__all__ = ["Place", "Rule", "Rules", "identifier", "is_number", "plain", "word"]

Rule = Callable[[Any, "Place"], ex.Expression]
"""Reads one type of node of sqlglot's tree."""

Rules = Mapping[type[exp.Expr], Rule]
"""The allow-list: what is not in it is refused by name."""


@dataclass(frozen=True, slots=True)
class Place:
    """The part of a query that is being read.

    Parameters
    ----------
    where : str
        What messages call it, such as ``WHERE``.
    names : Names
        The columns that it may name.
    rules : mapping
        The nodes that it may hold.
    """

    where: str
    names: Names
    rules: Rules

    def inside(self, part: str) -> Place:
        """A part of this part."""
        return replace(self, where=f"{self.where}, in {part}")

    def read(self, node: exp.Expr) -> ex.Expression:
        """Read a node and what is below it."""
        rule = self.rules.get(type(node))
        if rule is None:
            refuse(node, self.where)
        return rule(node, self)

    def operand(self, node: exp.Expr) -> ex.Expression:
        """Read an operand that must not be a bare condition.

        Databases disagree on how those bind without parentheses (``a = b IS NULL``).
        """
        if isinstance(node, _CONDITIONS) and not isinstance(node, exp.SubqueryPredicate):
            raise QueryError(
                f"{self.where}: a condition stands where a value is expected; put parentheses "
                "around it, or write a < b AND b < c for a < b < c"
            )
        return self.read(node)

    def sides(self, node: exp.Expr) -> tuple[ex.Expression, ex.Expression]:
        """Read both operands of a binary node."""
        left, right = take(node, self.where, "this", "expression")
        return self.operand(left), self.operand(right)

    def number(self, node: exp.Expr, what: str) -> int | Fraction:
        """Read a constant number, or refuse and say that ``what`` must be one."""
        value = self.read(node)
        if isinstance(value, ex.Literal) and is_number(value.value):
            return value.value
        raise QueryError(f"{self.where}: {what} must be a constant number")


_CONDITIONS = (exp.Predicate, exp.In, exp.Between, exp.Is, exp.Not, exp.And, exp.Or)


def is_number(value: Value | None) -> TypeGuard[int | Fraction]:
    """Whether a constant is a number; TRUE and FALSE are none."""
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def plain(node: exp.Expr) -> exp.Expr:
    """A node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        (node,) = take(node, "parentheses", "this")
    return node


def identifier(node: exp.Expr, where: str) -> tuple[str, bool]:
    """The text of an identifier, and whether it is quoted."""
    if not isinstance(node, exp.Identifier):
        refuse(node, where)
    name, quoted = take(node, where, "this", "quoted")
    return str(name), bool(quoted)


def word(node: exp.Expr, where: str) -> str:
    """A word of the grammar, such as the part of a date, bare or as text."""
    if not isinstance(node, exp.Var | exp.Literal):
        refuse(node, where)
    take(node, where, "this", "is_string")
    return node.name

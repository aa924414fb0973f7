"""The allow-list holds for every part of every node, also for those that sqlglot may add."""

from __future__ import annotations

import pytest
from sqlglot import exp

from dither.errors import DitherError
from dither.plan.relations import Scan
from dither.sql import Names
from dither.sql.aggregates import aggregate
from dither.sql.expressions import RULES, at
from dither.sql.parse import read_statement
from dither.sql.select import query
from sql.sql_tables import ACCEPTED, SCHEMA

# Set by sqlglot on what is plain SQL, or without meaning for what is read.
HARMLESS = {
    *(("Count", "big_int"), ("Least", "ignore_nulls"), ("Greatest", "ignore_nulls")),
    *(("Coalesce", "is_nvl"), ("Coalesce", "is_null")),
    # NULLS FIRST among the rows of a quantile: NULL is left out.
    ("Ordered", "nulls_first"),
    # Where the spelling is the same, quotes change nothing.
    ("Identifier", "quoted"),
    # COUNT of a constant is COUNT(*), whatever the constant.
    ("Literal", "is_string"),
    # CAST gives NULL where a value does not fit, whether it is called TRY_CAST or not.
    *(("Cast", "safe"), ("TryCast", "safe")),
    *(("DPipe", "safe"), ("Concat", "coalesce"), ("DateDiff", "date_part_boundary")),
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_a_part_that_nobody_knows_is_refused(text: str) -> None:
    """A part set on any node of an accepted query, under a name of the future, is refused."""
    tree = read_statement(text).tree
    for node in list(tree.walk()):
        node.args["brand_new"] = exp.Literal.number(1)
        with pytest.raises(DitherError, match=r"(?i)brand.new|of an aggregate|CAST"):
            query(tree, SCHEMA)
        del node.args["brand_new"]


@pytest.mark.parametrize("text", ACCEPTED)
def test_a_known_part_that_is_not_read_is_refused(text: str) -> None:
    """Any part that sqlglot knows and the query leaves out changes the plan or is refused."""
    tree = read_statement(text).tree
    plan = query(tree, SCHEMA)
    for node in list(tree.walk()):
        for part in node.arg_types:
            before = node.args.get(part)
            if before not in (None, False, []):
                continue
            node.args[part] = [exp.Literal.number(1)] if part.endswith("s") else exp.Var(this="x")
            try:
                changed = query(tree, SCHEMA)
            except (DitherError, AttributeError, TypeError):
                # The last two: a value of no type that sqlglot would put there.
                changed = None
            node.args[part] = before
            kind = type(node).__name__
            assert changed != plan or (kind, part) in HARMLESS, (kind, part)
    assert query(tree, SCHEMA) == plan


def _classes() -> list[type[exp.Expr]]:
    found = {c for c in vars(exp).values() if isinstance(c, type) and issubclass(c, exp.Expr)}
    return sorted(found, key=lambda c: c.__name__)


def test_there_are_many_more_nodes_than_are_read() -> None:
    """The next test is about something."""
    assert len(_classes()) > 10 * len(RULES)


def test_nodes_that_are_not_listed_are_refused() -> None:
    """No other node of sqlglot is read as an expression or as an aggregate."""
    place = at("WHERE", Names(Scan("visits", "visits"), SCHEMA))
    # COUNT() is COUNT(*); Func is abstract.
    for kind in set(_classes()) - set(RULES) - {exp.Count, exp.Func}:
        with pytest.raises(DitherError):
            place.read(kind())
        with pytest.raises(DitherError):
            aggregate(kind(), place)

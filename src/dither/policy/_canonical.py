"""Questions and policies as data: what requests and certificates hash.

The form is written down in ``docs/decisions/0010-hashed-data.md`` and has a version. It knows the
nodes of a plan by the names below, not by those of their classes, and no word that ``explain`` says
is in it. Every number stands as exact text, so that any program in any language reads the same.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dither import _checks as check
from dither.errors import ArgumentError
from dither.ledger._entries import canonical
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan import job as jb
from dither.plan import relations as rel
from dither.plan import released as rv
from dither.plan.schema import Value

__all__ = ["AROUND", "FORM", "form", "hashed", "policy_digest", "request_digest"]

AROUND = ("service", "collect", "publish", "schedule")
"""Sections of a policy's file that say how it is served, and nothing of what may be asked."""

FORM = 1
"""The version of the form. A change of what any question is written as takes a new one."""

QUERY = (
    *("relation", "keys", "outputs", "order", "limit", "discover"),
    *("max_groups", "max_rows", "having", "offset", "sets", "flags", "consistent", "by_block"),
)

NODES: dict[type, tuple[str, tuple[str, ...]]] = {
    rel.Scan: ("scan", ("table", "alias", "blocks")),
    rel.Filter: ("filter", ("source", "predicate")),
    rel.KeyFilter: ("among", ("source", "operand", "keys", "column", "negated")),
    rel.PublicJoin: ("public join", ("source", "public", "on", "keep_all")),
    rel.UnitJoin: (
        "unit join",
        ("left", "right", "left_unit", "right_unit", "on", "keep_all"),
    ),
    rel.Elements: ("elements", ("table", "column", "alias", "name", "most")),
    rel.Unnest: ("unnest", ("source", "elements")),
    rel.Derived: ("derived", ("source", "alias", "columns")),
    rel.UnitValue: ("unit value", ("function", "operand", "step", "lower", "upper")),
    rel.UnitAggregate: ("unit aggregate", ("source", "alias", "unit", "keys", "values")),
    rel.Union: ("union", ("alias", "parts")),
    ag.Count: ("count", ()),
    ag.CountValues: ("count values", ("operand",)),
    ag.CountUnits: ("count units", ("where",)),
    ag.CountDistinct: ("count distinct", ("operand", "others")),
    ag.Paired: ("paired", ("word", "y", "x")),
    ag.Sum: ("sum", ("operand",)),
    ag.Mean: ("mean", ("operand",)),
    ag.Variance: ("variance", ("operand", "sample", "root")),
    ag.UnitProduct: ("unit product", ("left", "right")),
    ag.Quantile: ("quantile", ("operand", "q", "label")),
    ag.Ranks: ("ranks", ("operand", "bins")),
    ag.Magnitudes: ("magnitudes", ("operand", "origin")),
    ag.UnitSizes: ("unit sizes", ("by", "groups")),
    ag.Mode: ("mode", ("operand",)),
    ag.Ratio: ("ratio", ("numerator", "denominator")),
    rv.Constant: ("constant", ("value",)),
    rv.ReleasedKey: ("key value", ("expression",)),
    rv.Grouping: ("grouping", ("keys",)),
    rv.Apply: ("apply", ("op", "operands")),
    rv.Rank: ("rank", ("word", "order", "by")),
    ag.Output: ("output", ("name", "aggregate", "weight")),
    ag.Key: ("key", ("name", "expression", "values")),
    ag.Query: ("query", QUERY),
    ag.QueryOfUnits: ("query of units", QUERY),
    jb.Rows: ("rows", ()),
    jb.Units: ("units", ()),
    jb.Values: ("values", ("operand", "once")),
    jb.Distinct: ("distinct", ("operand", "others")),
    jb.Total: (
        "total",
        (
            "operand",
            "step",
            "lower",
            "upper",
            "centre",
            "square",
            "square_centre",
            "null_as_centre",
            "parts",
        ),
    ),
    jb.UnitProducts: ("unit products", ("left", "right", "centre")),
    jb.UnitSizeHistogram: ("histogram of unit sizes", ("by", "groups", "edges")),
    jb.Sides: ("sides", ("of", "unreadable")),
    jb.Cells: ("table of counts", ("axes", "shape")),
    jb.ListedCells: ("listed table of counts", ("axes", "shape")),
    jb.Leaves: (
        "leaves",
        ("operand", "step", "lower", "upper", "width", "bins", "parts", "within"),
    ),
    jb.VoteHistogram: (
        "votes",
        ("operand", "step", "lower", "upper", "width", "bins", "parts", "within", "choice"),
    ),
}
"""By class: the node's name in the form, and its fields, all of them. Expressions say their own."""

CONSTANTS = {
    *(("literal", "value"), ("constant", "value"), ("in", "values"), ("key", "values")),
    ("call", "options"),
    ("magnitudes", "origin"),
}
"""Fields that hold public constants, which are written with their type."""

LATER: dict[tuple[str, str], Any] = {
    (query, field): before
    for query in ("query", "query of units")
    for field, before in (("max_groups", None), ("max_rows", None), ("having", None), ("offset", 0))
}
LATER |= {("count units", "where"): None, ("values", "once"): False}
LATER |= {("count distinct", "others"): (), ("distinct", "others"): ()}
LATER |= {("elements", "most"): None, ("magnitudes", "origin"): None}
LATER |= {("sides", "unreadable"): None}
LATER |= {("scan", "blocks"): None}
LATER |= {("unit join", "on"): (), ("unit join", "keep_all"): False}
LATER |= {(query, "consistent"): False for query in ("query", "query of units")}
LATER |= {(query, "by_block"): True for query in ("query", "query of units")}
LATER |= {
    (query, field): () for query in ("query", "query of units") for field in ("sets", "flags")
}
"""Fields that nodes got after the form was fixed, and what each was before: where a field is still
that, it is left out, so that a question keeps its hash."""


def form(node: Any) -> Any:
    """A question, or a part of one, as JSON without floats.

    Examples
    --------
    >>> form(ex.Compare("<", ex.Column("visits", "age"), ex.Literal(Fraction(1, 2))))["right"]
    {'node': 'literal', 'value': {'number': '1/2'}}
    """
    kind = NODES.get(type(node))
    if isinstance(node, ex.Expression):
        kind = node.form, tuple(field.name for field in fields(node))
    if kind is not None:
        name, parts = kind
        return {"node": name} | {
            part: _constants(getattr(node, part))
            if (name, part) in CONSTANTS
            else form(getattr(node, part))
            for part in parts
            if (name, part) not in LATER or getattr(node, part) != LATER[name, part]
        }
    if isinstance(node, tuple):
        return [form(part) for part in node]
    if node is None or isinstance(node, bool | str):
        return node
    if isinstance(node, int | Fraction):
        return str(node)
    raise TypeError(f"{type(node).__name__} has no canonical form")


def hashed(what: str, body: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a body, under a prefix that says what it is."""
    return hashlib.sha256(f"dither {what} {FORM}\n{canonical(body, what)}".encode()).hexdigest()


def request_digest(
    question: Any,
    *,
    requested: Mapping[str, str],
    promise: Mapping[str, str],
    policy: str,
    learned: Sequence[Mapping[str, Any]] = (),
    blocks: Mapping[str, Any] | None = None,
) -> str:
    """What a token stands for: a question in its form, its parameters, its promise, its policy.

    Facts that were ``learned`` stand there too, where it rests on any, and so do the blocks that it
    reads: the same text reads more of them once another month has begun.
    """
    rests: dict[str, Any] = {"learned": [dict(fact) for fact in learned]} if learned else {}
    if blocks is not None:
        rests["blocks"] = dict(blocks)
    return hashed(
        "request",
        rests
        | {
            "form": FORM,
            "question": question,
            "requested": dict(requested),
            "promise": dict(promise),
            "policy": policy,
        },
    )


def policy_digest(document: Mapping[str, Any]) -> str:
    """What stands for a policy: every field of it, whatever the order of its sections.

    Left out are ``[owner]``, ``[budget] checkpoint`` and what a service does with answers, in
    `AROUND`: they say who signs, what the ledger must hold and where answers go, change nothing of
    any answer, and are written anew now and then.
    """
    kept = {name: part for name, part in document.items() if name not in ("owner", *AROUND)}
    budget = kept.get("budget")
    if isinstance(budget, Mapping) and "checkpoint" in budget:
        kept["budget"] = {name: part for name, part in budget.items() if name != "checkpoint"}
    return hashed("policy", {"form": FORM, "policy": _document(kept)})


def _constants(value: Any) -> Any:
    return [_constant(v) for v in value] if isinstance(value, tuple) else _constant(value)


def _constant(value: Value | None) -> Any:
    match value:
        case None:
            return None
        case bool():
            return {"boolean": value}
        case int():
            return {"integer": str(value)}
        case Fraction():
            return {"number": str(value)}
        case str():
            return {"text": value}
        case dt.datetime():
            return {"timestamp": value.isoformat()}
        case dt.date():
            return {"date": value.isoformat()}
    raise TypeError(f"a constant of type {type(value).__name__} has no canonical form")


def _document(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _document(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_document(inner) for inner in value]
    if isinstance(value, int | float | Decimal | Fraction) and not isinstance(value, bool):
        try:
            return {"number": str(check.exact("value", value))}
        except ArgumentError:
            return {"number": str(value)}
    if value is None or isinstance(value, bool | str | dt.date):
        return _constant(value)
    # Times of day and whatever else a policy may hold that no field takes.
    return {type(value).__name__: str(value)}

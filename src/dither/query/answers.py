"""From noisy measurements to the columns of a release, as plain data that the ledger can keep."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dither.plan.aggregates import Aggregate, Count, CountUnits, CountValues, Variance
from dither.plan.expressions import Bin, Column, Expression
from dither.plan.facts import Scope
from dither.plan.job import GroupKey, Total
from dither.plan.kinds import Kind
from dither.plan.lower import Plan
from dither.plan.recipes import Linear
from dither.plan.text import number
from dither.query.certificate import Certificate
from dither.query.estimates import Estimate, Measured, estimate
from dither.query.noising import Noisy
from dither.query.pricing import Priced

__all__ = ["answer_of", "bin_labels", "decode"]

SELECTED = (
    "groups are shown because their noisy count is high enough, so the counts of small groups "
    "that are shown tend to be too high"
)

COUNTS = (Count, CountUnits, CountValues)


def answer_of(
    priced: Priced, noisy: Noisy, confidence: float, certificate: Certificate
) -> dict[str, Any]:
    """All that a release holds, as plain data for the ledger."""
    plan = priced.plan
    query = plan.query
    measured = Measured(noisy.values, priced.noises, priced.trees)
    made: list[dict[str, Any]] = []
    sortable: dict[str, list[Any]] = {}
    for at, key in enumerate(plan.job.keys):
        sortable[key.name] = [group[at] for group in noisy.keys]
        made.append(_key_column(key, sortable[key.name]))
    for output, recipe in zip(query.outputs, plan.recipes, strict=True):
        found = estimate(recipe, measured, confidence)
        whole = isinstance(recipe, Linear) and all(_whole(*term, plan) for term in recipe.terms)
        columns = _output_columns(output.name, found, whole)
        sortable |= {c["name"]: [decode(v, c["kind"]) for v in c["values"]] for c in columns}
        made.extend(columns)
    rows = _ordered(sortable, plan)
    for column in made:
        column["values"] = [column["values"][i] for i in rows]
    return {
        "columns": made,
        "keys": [key.name for key in plan.job.keys],
        "outputs": [output.name for output in query.outputs],
        "counts": [o.name for o in query.outputs if isinstance(o.aggregate, COUNTS)],
        "units": {k.name: _key_unit(k.expression, plan) for k in plan.job.keys}
        | {o.name: _unit(o.aggregate, plan) for o in query.outputs},
        "confidence": confidence,
        "notes": [*plan.notes, *([SELECTED] if plan.discovered else [])],
        "certificate": certificate.to_dict(),
    }


def _key_column(key: GroupKey, values: list[Any]) -> dict[str, Any]:
    kind = key.kind
    if isinstance(key.expression, Bin):
        labels = bin_labels(key.expression)
        return {
            "name": key.name,
            "kind": "text",
            "values": [None if v is None else labels[v] for v in values],
        }
    if kind is Kind.DATE:
        values = [None if v is None else v.isoformat() for v in values]
    return {"name": key.name, "kind": kind.value, "values": values}


def bin_labels(node: Bin) -> list[str]:
    """The ranges of a binned number as text.

    Examples
    --------
    >>> from fractions import Fraction
    >>> bin_labels(Bin(Column("visits", "age"), (Fraction(0), Fraction(18), Fraction(65))))
    ['[0, 18)', '[18, 65]']
    """
    ends = [number(e) for e in node.edges]
    last = len(ends) - 2
    return [f"[{ends[i]}, {ends[i + 1]}{']' if i == last else ')'}" for i in range(last + 1)]


def _output_columns(name: str, found: Estimate, whole: bool) -> list[dict[str, Any]]:
    titles = (name, f"{name}_lower", f"{name}_upper")
    parts = [np.asarray(values).tolist() for values in (found.value, found.lower, found.upper)]
    # What 64 bits cannot hold is shown as a real.
    whole = whole and all(abs(v) < 2**63 for values in parts for v in values)
    # An interval is rounded outwards, so that it holds what it held.
    turns: tuple[Callable[[float], int], ...] = (round, math.floor, math.ceil)
    return [
        {
            "name": title,
            "kind": "integer" if whole else "real",
            "values": [turn(v) if whole else _encode(v) for v in values],
        }
        for title, turn, values in zip(titles, turns, parts, strict=True)
    ]


def _whole(place: int, coefficient: Fraction, plan: Plan) -> bool:
    """Whether a term is of whole numbers: what a unit adds may be counted in parts of one."""
    measurement = plan.job.measurements[place]
    parts = measurement.parts if isinstance(measurement, Total) else 1
    return (coefficient * parts).denominator == 1


def _ordered(columns: Mapping[str, list[Any]], plan: Plan) -> list[int]:
    """The rows as ORDER BY and LIMIT want them: post-processing of released values."""
    rows = list(range(max((len(values) for values in columns.values()), default=0)))
    for name, descending in reversed(plan.query.order):
        values = columns[name]
        known = [i for i in rows if values[i] is not None]
        known.sort(key=values.__getitem__, reverse=descending)
        # NULL stands last in either direction, as in DuckDB.
        rows = known + [i for i in rows if values[i] is None]
    return rows if plan.query.limit is None else rows[: plan.query.limit]


def _key_unit(expression: Expression, plan: Plan) -> str | None:
    """The unit of a column, also where it is cut into bins."""
    node = expression.operand if isinstance(expression, Bin) else expression
    if not isinstance(node, Column):
        return None
    return Scope.of(plan.query.relation, plan.schema).column(node).unit


def _unit(aggregate: Aggregate, plan: Plan) -> str | None:
    operand = getattr(aggregate, "operand", None)
    if operand is None or isinstance(aggregate, COUNTS):
        return None
    unit = _key_unit(operand, plan)
    squared = isinstance(aggregate, Variance) and not aggregate.root
    return f"{unit}²" if unit and squared else unit


def _encode(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def decode(value: Any, kind: str) -> Any:
    """A stored value as the frame shows it."""
    if value is None:
        return None
    if kind == "date":
        return dt.date.fromisoformat(value)
    return float(value) if kind == "real" else value

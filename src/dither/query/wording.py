"""The words that plans, summaries and certificates share."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dither.plan import aggregates as ag
from dither.plan import job as jb
from dither.plan import relations as rel
from dither.plan.lower import Plan
from dither.plan.text import number, show

__all__ = [
    "UNACCOUNTED",
    "aggregate_text",
    "exact_text",
    "limits_text",
    "measurement_text",
    "protected",
    "protects",
]

UNACCOUNTED = (
    "intervals are about the noise: not about values moved to their bounds, nor about rows and "
    "groups left out so that one unit counts within its limits"
)


def protects(plan: Plan) -> str:
    """Who is protected, and which tables count as neighbours."""
    who, neighbours = protected(plan)
    return f"{who}; neighbours {neighbours}"


def protected(plan: Plan) -> tuple[str, str]:
    """Who is protected; what the neighbours of a table differ by."""
    if plan.table.unit_rows > 1:
        rows = f"at most {plan.table.unit_rows} rows"
        who = f"one {plan.table.unit_name}, with {rows} of {plan.table.name}"
        rows += f" of one {plan.table.unit_name}"
    elif plan.table.unit is None:
        who, rows = f"one row of {plan.table.name}", "one row"
    else:
        tables = [s.table for s in rel.scans(plan.query.relation)]
        private = [t for t in tables if plan.schema.table(t).private]
        who = f"one {plan.table.unit}, with all its rows of {' and '.join(private)}"
        rows = f"all rows of one {plan.table.unit}"
    if plan.schema.replace_one:
        return who, f"replace {rows} by any other (the number of units is public)"
    return who, f"add or remove {rows}"


def measurement_text(measurement: jb.Measurement, unit: str | None) -> str:
    """A measurement in a few words."""
    match measurement:
        case jb.Rows():
            return "count of rows"
        case jb.Units():
            return f"count of distinct {unit}"
        case jb.Values(operand=x):
            return f"count of rows where {show(x)} is not NULL"
        case jb.Total(operand=x, square=square):
            what = f"({show(x)} - {number(measurement.centre * measurement.step)})"
            plain = show(x) if measurement.centre == 0 else what
            return f"sum of {what}²" if square else f"sum of {plain}"
        case jb.Leaves(operand=x, bins=bins, within=0):
            return f"histogram of {show(x)} in {bins:,} bins, as a tree"
        case jb.Leaves(operand=x, bins=bins, within=within):
            return (
                f"histogram of {show(x)} in {bins:,} bins, as a tree over each {within:,} of them"
            )
    raise TypeError(type(measurement).__name__)


def limits_text(certificate: Mapping[str, Any]) -> str | None:
    """How much one unit can count in a release; nothing where a row is the unit."""
    columns = [by for by in certificate["tables"].values() if by.startswith("column ")]
    if not columns:
        return None
    groups, rows = certificate["max_groups"], certificate["max_rows"]
    in_groups = f"{groups} groups" if groups > 1 else "1 group"
    of_rows = f"{rows} rows" if rows > 1 else "1 row"
    each = " in each" if groups > 1 else ""
    unit = columns[0].removeprefix("column ")
    return (
        f"one {unit} counts in at most {in_groups}, with {of_rows}{each}: where it has more, "
        "counts and sums are too low, and its rows weigh less in means and quantiles"
    )


def aggregate_text(aggregate: ag.Aggregate) -> str:
    """An aggregate, close to how SQL writes it."""
    match aggregate:
        case ag.Count():
            return "COUNT(*)"
        case ag.CountUnits():
            return "count of units"
        case ag.CountValues(operand=x):
            return f"COUNT({show(x)})"
        case ag.Sum(operand=x):
            return f"SUM({show(x)})"
        case ag.Mean(operand=x):
            return f"AVG({show(x)})"
        case ag.Variance(operand=x, root=root, sample=sample):
            name = "STDDEV" if root else "VAR"
            return f"{name}{'' if sample else '_POP'}({show(x)})"
        case ag.Quantile(operand=x, q=q, label=label):
            share = f"{number(100 * q)} % quantile"
            if label == "quantile":
                return f"{share} of {show(x)}"
            stands = f", as the {share}" if label in ("min", "max") else ""
            return f"{label.upper()}({show(x)}){stands}"
        case ag.Ratio(numerator=top, denominator=bottom):
            return f"{aggregate_text(top)} / {aggregate_text(bottom)}"
    raise TypeError(type(aggregate).__name__)


def exact_text(value: Fraction | int) -> str:
    """A public number in full.

    Examples
    --------
    >>> exact_text(15625000), exact_text(Fraction(1, 8))
    ('15,625,000', '0.125')
    """
    exact = Fraction(value)
    return f"{exact.numerator:,}" if exact.denominator == 1 else number(exact)

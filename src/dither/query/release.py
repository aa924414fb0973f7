"""What comes out: values with intervals, a summary, a certificate, a picture."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.plan.aggregates import Aggregate, Count, CountUnits, CountValues, Variance
from dither.plan.expressions import Bin, Column
from dither.plan.facts import Scope
from dither.plan.job import GroupKey
from dither.plan.kinds import Kind
from dither.plan.lower import Plan
from dither.plan.recipes import Linear
from dither.plan.text import number
from dither.query.certificate import Certificate
from dither.query.estimates import Estimate, Measured, estimate
from dither.query.noising import Noisy
from dither.query.pricing import Priced
from dither.query.tables import paragraph, table
from dither.query.wording import UNACCOUNTED

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Release", "answer_of"]

LONGEST = 40
"""Rows that a summary shows."""

SELECTED = (
    "groups are shown because their noisy count is high enough, so the counts of small groups "
    "that are shown tend to be too high"
)

COUNTS = (Count, CountUnits, CountValues)


class Release:
    """A release: what may be published, and nothing else.

    Parameters
    ----------
    content : mapping
        As stored in the ledger.
    replayed : bool
        Whether it is an earlier answer, told again for nothing.
    """

    def __init__(self, content: Mapping[str, Any], *, replayed: bool = False) -> None:
        self._content = content
        self.replayed = replayed

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: the keys, then ``name``, ``name_lower``, ``name_upper`` per output."""
        import polars as pl

        kinds = {
            "text": pl.String,
            "integer": pl.Int64,
            "boolean": pl.Boolean,
            "date": pl.Date,
            "real": pl.Float64,
        }
        return pl.DataFrame(
            [
                pl.Series(c["name"], [_decode(v, c["kind"]) for v in c["values"]], kinds[c["kind"]])
                for c in self._content["columns"]
            ]
        )

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""
        return list(self._content["keys"])

    @property
    def outputs(self) -> list[str]:
        """The names of the released aggregates."""
        return list(self._content["outputs"])

    @property
    def units(self) -> dict[str, str | None]:
        """The unit of measurement of each output, where the policy gives one."""
        return dict(self._content["units"])

    @property
    def confidence(self) -> float:
        """The confidence of the intervals."""
        return float(self._content["confidence"])

    @property
    def certificate(self) -> Certificate:
        """What the release promises, and where the ledger has it."""
        return Certificate(self._content["certificate"])

    def summary(self) -> str:
        """The release as text: the answers, what they cost, and what the intervals leave out."""
        frame, body = self.frame, self._content["certificate"]
        columns = [[_key_text(v) for v in frame[key]] for key in self.keys]
        columns += [self._intervals(frame, name) for name in self.outputs]
        heads = [*self.keys, *(self._headed(name) for name in self.outputs)]
        rows = [list(row) for row in zip(*columns, strict=True)]
        loss = {k: None if v is None else float(Fraction(v)) for k, v in body["loss"].items()}
        cost = f"cost: ε = {loss['epsilon']:.4g}"
        if loss["delta"]:
            cost += f", δ = {loss['delta']:.3g}"
        replayed = " (replayed: nothing charged now)" if self.replayed else ""
        lines = table(heads, rows[:LONGEST], left=len(self.keys))
        if len(rows) > LONGEST:
            lines.append(f"... and {len(rows) - LONGEST:,} more rows")
        for text in (
            f"value ± half-width, or value [lower, upper], at {100 * self.confidence:g} %",
            f"{cost}; ledger entry {body['ledger']['entry']}{replayed}",
            f"protects {body['protects']}",
            UNACCOUNTED,
            *self._content["notes"],
        ):
            lines += paragraph(text)
        return "\n".join(lines)

    def plot(self, path: str | None = None, output: str | None = None) -> Any:
        """Draw the release; see ``dither.plots``.

        Parameters
        ----------
        path : str, optional
            Where to write a PNG, SVG or PDF.
        output : str, optional
            One output alone.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from dither.plots.release import plot_release

        body = self._content["certificate"]
        return plot_release(
            self.frame,
            keys=self.keys,
            outputs=[output] if output is not None else self.outputs,
            units=self.units,
            bars=list(self._content["counts"]),
            epsilon=float(Fraction(body["loss"]["epsilon"] or 0)),
            delta=float(Fraction(body["loss"]["delta"] or 0)),
            neighbours=body["protects"],
            confidence=self.confidence,
            path=path,
        )

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return self.frame._repr_html_()

    def _headed(self, name: str) -> str:
        unit = self.units.get(name)
        return f"{name} ({unit})" if unit else name

    def _intervals(self, frame: pl.DataFrame, name: str) -> list[str]:
        rows = zip(*(frame[c] for c in (name, f"{name}_lower", f"{name}_upper")), strict=True)
        return [_interval_text(*row) for row in rows]


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
        whole = isinstance(recipe, Linear) and all(c.denominator == 1 for _, c in recipe.terms)
        columns = _output_columns(output.name, found, whole)
        sortable |= {c["name"]: [_decode(v, c["kind"]) for v in c["values"]] for c in columns}
        made.extend(columns)
    rows = _ordered(sortable, plan)
    for column in made:
        column["values"] = [column["values"][i] for i in rows]
    return {
        "columns": made,
        "keys": [key.name for key in plan.job.keys],
        "outputs": [output.name for output in query.outputs],
        "counts": [o.name for o in query.outputs if isinstance(o.aggregate, COUNTS)],
        "units": {o.name: _unit(o.aggregate, plan) for o in query.outputs},
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
    return [
        {
            "name": title,
            "kind": "integer" if whole else "real",
            "values": [round(v) if whole else _encode(v) for v in values],
        }
        for title, values in zip(titles, parts, strict=True)
    ]


def _ordered(columns: Mapping[str, list[Any]], plan: Plan) -> list[int]:
    """The rows as ORDER BY and LIMIT want them: post-processing of released values."""
    rows = list(range(max((len(values) for values in columns.values()), default=0)))
    for name, descending in reversed(plan.query.order):
        values = columns[name]
        rows.sort(key=lambda i: _sortable(values[i]), reverse=descending)
    return rows if plan.query.limit is None else rows[: plan.query.limit]


def _sortable(value: Any) -> tuple[bool, Any]:
    """NULL last; first where the order descends."""
    return (True, 0) if value is None else (False, value)


def _unit(aggregate: Aggregate, plan: Plan) -> str | None:
    operand = getattr(aggregate, "operand", None)
    if not isinstance(operand, Column) or isinstance(aggregate, COUNTS):
        return None
    unit = Scope.of(plan.query.relation, plan.schema).column(operand).unit
    squared = isinstance(aggregate, Variance) and not aggregate.root
    return f"{unit}²" if unit and squared else unit


def _encode(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _decode(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "date":
        return dt.date.fromisoformat(value)
    return float(value) if kind == "real" else value


def _key_text(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _interval_text(value: float | None, lower: float, upper: float) -> str:
    if value is None:
        return "unknown"
    below, above = value - lower, upper - value
    if not math.isfinite(below) or not math.isfinite(above):
        return f"{_short(value)} [{_short(lower)}, {_short(upper)}]"
    if abs(below - above) <= 0.02 * (below + above):
        return f"{_near(value, above)} ± {_short(above)}"
    width = (below + above) / 2
    return f"{_near(value, width)} [{_near(lower, width)}, {_near(upper, width)}]"


def _near(value: float, width: float) -> str:
    """A value with the digits that its interval leaves meaningful."""
    if isinstance(value, int):
        return f"{value:,}"
    digits = 0 if width <= 0 or width >= 100 else max(0, 1 - math.floor(math.log10(width)))
    return f"{value:,.{min(digits, 12)}f}"


def _short(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.2g}"

"""What comes out: values with intervals, as data that the ledger keeps and as people see it."""

from __future__ import annotations

import datetime as dt
import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._display import ALL, table
from dither._format import display_text, interval, level, wrapped
from dither._notebook import html_table
from dither.plan.aggregates import (
    AggregateFunction,
    Count,
    CountDistinct,
    CountUnits,
    CountValues,
    Variance,
)
from dither.plan.expressions import Bin, Column, Expression
from dither.plan.facts.scopes import scope_of
from dither.plan.job import GroupKey, Total
from dither.plan.lowering.lower import Plan
from dither.plan.lowering.recipes import (
    Applied,
    KeyRead,
    KeysLeftOut,
    Known,
    Linear,
    MeanRecipe,
    ModeRecipe,
    QuantileRecipe,
    Ranked,
    RanksRecipe,
    RatioRecipe,
    Recipe,
    VarianceRecipe,
)
from dither.plan.schema import Kind
from dither.plan.text import bin_labels
from dither.query._explain import UNACCOUNTED, charged_text, limits_text
from dither.query._modes import mode_notes
from dither.query._noise import KeyTuple, NoisePlan, Noisy
from dither.query.estimates._calculated import Calculation, post_columns
from dither.query.estimates._operations import as_listed
from dither.query.estimates._values import GroupEstimates, encoded, estimate
from dither.session._certificate import Certificate

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Release",
    "answer_data",
    "decode",
    "is_whole",
    "key_column",
    "release_data",
]

SELECTED = (
    "groups are shown because their noisy count is high enough, so the counts of small groups "
    "that are shown tend to be too high"
)

COUNTS = (Count, CountDistinct, CountUnits, CountValues)


def release_data(noise_plan: NoisePlan, noisy: Noisy, confidence: float) -> dict[str, Any]:
    """All that a release holds but its certificate, as plain data for the ledger."""
    measured = noise_plan.measured(noisy.values)

    def leaf(recipe: Recipe, each: float) -> GroupEstimates:
        return estimate(recipe, measured, each)

    data = answer_data(noise_plan.plan, noisy.keys, leaf, confidence)
    data["notes"] += mode_notes(noise_plan, confidence) if noise_plan.choices else ()
    return data


def answer_data(
    plan: Plan,
    groups: Sequence[KeyTuple],
    leaf: Callable[[Recipe, float], GroupEstimates],
    confidence: float,
) -> dict[str, Any]:
    """What a release holds, from what is known of the groups.

    Parameters
    ----------
    plan : Plan
    groups : sequence of tuple
        Their keys.
    leaf : callable
        The estimates of a recipe that was measured, in all of them, at a confidence.
    confidence : float
    """
    query = plan.query
    made: list[dict[str, Any]] = []
    sortable: dict[str, list[Any]] = {}
    for at, key in enumerate(plan.job.keys):
        sortable[key.name] = [group[at] for group in groups]
        made.append(key_column(key, sortable[key.name]))
    shown = [[decode(v, c["kind"]) for v in c["values"]] for c in made]
    sets = [query.sets[at] for *_, at in groups] if query.sets else []  # type: ignore[index]
    for name, keys in query.flags:
        sortable[name] = [KeysLeftOut(keys).of(one) for one in sets]
        made.append({"name": name, "kind": "integer", "values": sortable[name], "grouping": True})

    every = np.arange(1 if isinstance(plan.recipes[0], RanksRecipe) else len(groups))
    calculated = Calculation(len(every), shown, leaf, every, sets)
    if plan.having is not None:
        kept = np.flatnonzero(calculated(plan.having, confidence).value == 1)
        calculated = replace(calculated, rows=kept)
    for output, recipe, kind in zip(query.outputs, plan.recipes, plan.kinds, strict=True):
        if isinstance(recipe, Applied | Known | KeyRead | KeysLeftOut | Ranked | ModeRecipe):
            columns = post_columns(output.columns, calculated(recipe, confidence), kind)
        else:
            found = leaf(recipe, confidence)
            columns = _output_columns(output.columns, found, is_whole(recipe, plan))
        sortable |= {c["name"]: [decode(v, c["kind"]) for v in c["values"]] for c in columns}
        made.extend(columns)
    by = [
        (
            sortable[x] if isinstance(x, str) else as_listed(calculated(x, confidence).value),
            down,
        )
        for x, down in plan.order
    ]
    size = max((len(c["values"]) for c in made), default=0)
    rows = list(range(size)) if plan.having is None else calculated.rows.tolist()
    rows = _ordered(rows, by)[query.offset :]
    rows = rows if query.limit is None else rows[: query.limit]
    for column in made:
        column["values"] = [column["values"][i] for i in rows]
    beside: dict[str, Any] = {}
    if query.sets:
        names = [key.name for key in plan.job.keys]
        beside["sets"] = [[names[key] for key in sets[i]] for i in rows]
    return beside | {
        "columns": made,
        "keys": [*(key.name for key in plan.job.keys), *(name for name, _ in query.flags)],
        "outputs": [output.name for output in query.outputs],
        "counts": [o.name for o in query.outputs if isinstance(o.aggregate, COUNTS)],
        "ranges": {
            output.name: ends
            for output, recipe in zip(query.outputs, plan.recipes, strict=True)
            if (ends := _possible(recipe)) is not None
        },
        "units": {k.name: _key_unit(k.expression, plan) for k in plan.job.keys}
        | {o.name: _unit(o.aggregate, plan) for o in query.outputs},
        "confidence": confidence,
        "notes": [
            *plan.notes,
            *([SELECTED] if plan.discovered else []),
        ],
    }


def _possible(recipe: Recipe) -> list[float] | None:
    """The least and the largest value of an output by the public bounds, where both are known."""
    match recipe:
        case VarianceRecipe(half_width=half, root=root):
            return [0.0, float(half if root else half**2)]
        case MeanRecipe(lower=low, upper=high) | QuantileRecipe(lower=low, upper=high):
            return [float(low), float(high)]
        case RatioRecipe(lower=low, upper=high) if low is not None and high is not None:
            return [float(low), float(high)]
    return None


def key_column(key: GroupKey, values: list[Any]) -> dict[str, Any]:
    """The values of a key in every group, as the ledger keeps them."""
    kind = key.kind
    if isinstance(key.expression, Bin):
        labels = bin_labels(key.expression)
        return {
            "name": key.name,
            "kind": "text",
            "values": [None if v is None else labels[v] for v in values],
        }
    if kind.temporal:
        values = [None if v is None else v.isoformat() for v in values]
    if kind is Kind.REAL:
        values = [None if v is None else encoded(float(v)) for v in values]
    return {"name": key.name, "kind": kind.value, "values": values}


def _output_columns(
    titles: Sequence[str], found: GroupEstimates, whole: bool
) -> list[dict[str, Any]]:
    parts = [np.asarray(values).tolist() for values in (found.value, found.lower, found.upper)]
    # What 64 bits cannot hold is shown as a real.
    whole = whole and all(abs(v) < 2**63 for values in parts for v in values)
    # An interval is rounded outwards, so that it holds what it held.
    turns: tuple[Callable[[float], int], ...] = (round, math.floor, math.ceil)
    return [
        {
            "name": title,
            "kind": "integer" if whole else "real",
            "values": [turn(v) if whole else encoded(v) for v in values],
        }
        for title, turn, values in zip(titles, turns, parts, strict=True)
    ]


def is_whole(recipe: Recipe, plan: Plan) -> bool:
    """Whether an output is a whole number: a count, or what is made of counts alone."""
    return (
        isinstance(recipe, Linear)
        and plan.levels is None
        and recipe.constant.denominator == 1
        and all(_whole(*term, plan) for term in recipe.terms)
    )


def _whole(place: int, coefficient: Fraction, plan: Plan) -> bool:
    """Whether a term is of whole numbers: what a unit adds may be counted in parts of one."""
    measurement = plan.job.measurements[place]
    parts = measurement.parts if isinstance(measurement, Total) else 1
    return (coefficient * parts).denominator == 1


def _ordered(rows: list[int], by: Sequence[tuple[list[Any], bool]]) -> list[int]:
    """The rows as ORDER BY wants them: post-processing of released values."""
    for values, descending in reversed(by):
        known = [i for i in rows if values[i] is not None]
        known.sort(key=values.__getitem__, reverse=descending)
        # NULL stands last in either direction, as in DuckDB.
        rows = known + [i for i in rows if values[i] is None]
    return rows


def _key_unit(expression: Expression, plan: Plan) -> str | None:
    """The unit of a column, also where it is cut into bins."""
    node = expression.operand if isinstance(expression, Bin) else expression
    if not isinstance(node, Column):
        return None
    return scope_of(plan.query.relation, plan.schema).column(node).unit


def _unit(aggregate: AggregateFunction, plan: Plan) -> str | None:
    operand = getattr(aggregate, "operand", None)
    if operand is None or isinstance(aggregate, COUNTS):
        return None
    unit = _key_unit(operand, plan)
    squared = isinstance(aggregate, Variance) and not aggregate.root
    return f"{unit}²" if unit and squared else unit


def decode(value: Any, kind: str) -> Any:
    """A stored value as the frame shows it."""
    if value is None:
        return None
    if kind == "date":
        return dt.date.fromisoformat(value)
    if kind == "timestamp":
        return dt.datetime.fromisoformat(value)
    return float(value) if kind == "real" else value


LONGEST = 40
"""Rows that a summary shows."""


class Release:
    """A release: what may be published, and nothing else.

    Parameters
    ----------
    content : mapping
        As stored in the ledger.
    replayed : datetime, optional
        When the answer was charged, where it is an earlier one, replayed free of charge.
    """

    def __init__(self, content: Mapping[str, Any], *, replayed: dt.datetime | None = None) -> None:
        self._content = content
        self._charged = replayed

    @property
    def replayed(self) -> bool:
        """Whether it is an earlier answer, replayed free of charge."""
        return self._charged is not None

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: the keys, then ``name``, ``name_lower``, ``name_upper`` per output.

        A count or a sum is the noisy one, without bias, so that sums over groups are right on
        average; noise can take it below 0, or a number of distinct values above those that there
        are, where its interval is not. Summaries and pictures show the nearest number that is
        possible.
        """
        import polars as pl

        kinds: dict[str, Any] = {
            "text": pl.String,
            "integer": pl.Int64,
            "boolean": pl.Boolean,
            "date": pl.Date,
            "timestamp": pl.Datetime("us"),
            "real": pl.Float64,
        }
        return pl.DataFrame(
            [
                pl.Series(c["name"], [decode(v, c["kind"]) for v in c["values"]], kinds[c["kind"]])
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
        """The unit of measurement of each key and output, where the policy gives one."""
        return dict(self._content["units"])

    @property
    def notes(self) -> list[str]:
        """What a reader should know: of the plan, such as a rounding, and of a replay."""
        notes = list(self._content["notes"])
        if self._charged is not None:
            notes.append(
                f"replayed: the answer of {self._charged:%Y-%m-%d %H:%M} UTC, from the sources as "
                "they were then"
            )
        return notes

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
        heads, rows = self.shown()
        lines = table(heads, rows[:LONGEST], left=len(self.keys))
        if len(rows) > LONGEST:
            lines.append(f"... and {len(rows) - LONGEST:,} more rows")
        lines += wrapped(self._covers())
        for text in self._remarks():
            lines += wrapped(text)
        return "\n".join(lines)

    def _remarks(self) -> list[str]:
        """What stands below the answers: cost, who is protected, what intervals leave out."""
        body = self._content["certificate"]
        replayed = " (replayed: nothing charged now)" if self.replayed else ""
        return [
            f"cost: {charged_text(body)}; ledger entry {body['ledger']['entry']}{replayed}",
            f"protects {body['text']['protects']}",
            *([limits] if (limits := limits_text(body)) else []),
            UNACCOUNTED,
            *self.notes,
        ]

    def plot(
        self, path: str | None = None, output: str | None = None, *, title: str | None = None
    ) -> Any:
        """Draw the release; see ``dither.plots``.

        Of several sets of keys the one with most keys is drawn, whose groups do not overlap.

        Parameters
        ----------
        path : str, optional
            Where to write a PNG, SVG or PDF.
        output : str, optional
            One output alone.
        title : str, optional
            What stands above the picture.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from dither.plots.tables._release import plot_release

        body = self._content["certificate"]
        frame, keys = self._drawn()
        return plot_release(
            frame,
            keys=keys,
            outputs=[output] if output is not None else self._numbers,
            units=self.units,
            bars=list(self._content["counts"]),
            # Releases of earlier versions, replayed, have none.
            ranges=self._content.get("ranges"),
            epsilon=self._loss[0],
            delta=self._loss[1],
            neighbours=body["text"]["protects"],
            confidence=self.confidence,
            title=title,
            path=path,
        )

    def _drawn(self) -> tuple[pl.DataFrame, list[str]]:
        """The rows and keys of a picture."""
        sets = self._content.get("sets")
        if not sets:
            return self.frame, self.keys
        drawn = max(sets, key=len)
        return self.frame.filter([one == drawn for one in sets]), drawn

    @property
    def _numbers(self) -> list[str]:
        """The outputs that can be drawn: texts and truth values cannot."""
        frame = self.frame
        return [name for name in self.outputs if frame[name].dtype.is_numeric()]

    @property
    def _loss(self) -> tuple[Fraction | None, Fraction | None]:
        """What was charged, exact."""
        loss = self._content["certificate"]["loss"]
        epsilon, delta = (
            loss[k] if loss[k] is None else Fraction(loss[k]) for k in ("epsilon", "delta")
        )
        return epsilon, delta

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        heads, rows = self.shown()
        left = len(self.keys)
        shown = html_table(heads, rows[:LONGEST], left=left)
        more = [f"... and {len(rows) - LONGEST:,} more rows"] if len(rows) > LONGEST else []
        texts = (*more, self._covers(), *self._remarks())
        below = "".join(f"<p>{html.escape(t)}</p>" for t in texts)
        return f"<div>{shown}{below}</div>"

    def shown(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows as text: each key, and each answer with its interval."""
        frame = self.frame
        columns = [[display_text(v) for v in frame[key]] for key in self.keys]
        kinds = {c["name"] for c in self._content["columns"] if c.get("grouping")}
        for row, one in enumerate(self._content.get("sets", ())):
            for key, shown in zip(self.keys, columns, strict=True):
                if key not in one and key not in kinds:
                    shown[row] = ALL
        columns += [self._intervals(frame, name) for name in self.outputs]
        heads = [*self.keys, *(self._headed(name) for name in self.outputs)]
        return heads, [list(row) for row in zip(*columns, strict=True)]

    def _covers(self) -> str:
        return f"value ± half-width, or value [lower, upper], at {level(self.confidence)}"

    def _headed(self, name: str) -> str:
        unit = self.units.get(name)
        return f"{name} ({unit})" if unit else name

    def _intervals(self, frame: pl.DataFrame, name: str) -> list[str]:
        rows = zip(*(frame[c] for c in (name, f"{name}_lower", f"{name}_upper")), strict=True)
        possible = (self._content.get("ranges") or {}).get(name)
        if not frame[name].dtype.is_numeric():
            return [_or_another(*row) for row in rows]
        return [interval(value, low, high, possible) for value, low, high in rows]


def _or_another(value: Any, lower: Any, upper: Any) -> str:
    """A text or a truth value, and whether noise may have made it of another."""
    if value is None:
        return "unknown"
    return display_text(value) if lower == upper == value else f"{display_text(value)} (uncertain)"

"""An answer by sums of a finer table that was released: post-processing, and free.

The cells of a finer table are added up to those of a coarser one. Of k cells, each with independent
noise, the sum has the noise of k draws, and its interval is that of this sum. Where released values
were rounded to whole numbers, each may be half of one off, and intervals are wider by k/2.

What comes out is a function of one answer that was released to the asker, and of the question. It
is not what the question asked directly would tell: limits held in the cells of the finer table, so
that other rows of somebody with many were left out, and rows whose other keys are not public are in
none of its cells.

It is long because each way in which a question does not follow is refused by its name.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither.errors import ArgumentError, DitherError, QueryError
from dither.mechanisms import half_width
from dither.mechanisms._combination import Noise, SummedNoise
from dither.plan import aggregates as ag
from dither.plan.job import Rows, Total, Values, public_groups
from dither.plan.lowering.lower import Plan, lower
from dither.plan.lowering.recipes import (
    Linear,
    MeanRecipe,
    RatioRecipe,
    Recipe,
    sources,
)
from dither.policy._canonical import form
from dither.policy._sources import PublicKeys
from dither.query._certificate import measurements_of
from dither.query._release import Release, answer_data, decode, key_column
from dither.query.estimates._values import (
    Floats,
    GroupEstimates,
    around_linear,
    around_ratio,
)
from dither.session._signer import is_same_version
from dither.session.dummies._marked import marked
from dither.sql import parse_query

if TYPE_CHECKING:
    from dither.query._noise import NoisePlan
    from dither.query._question import Question
    from dither.session._request import Request

__all__ = ["finer_published", "from_finer"]

SUMMABLE = (ag.Count, ag.CountValues, ag.Sum)
"""Aggregates that add up over groups: each row that counts is in one of them."""

_UNNAMED = re.compile("[0-9a-f]{32}")
"""A token that nobody chose."""

_ANOTHER = (
    "release must be an answer of this ledger to a question of this policy, as it is now, that you "
    "may see"
)


@dataclass(frozen=True)
class _Finer:
    """A table that was released, and what made it."""

    content: Mapping[str, Any]
    charged: dt.datetime
    question: Question
    noise_plan: NoisePlan
    confidence: float
    token: str | None = None

    @property
    def plan(self) -> Plan:
        return self.noise_plan.plan

    @property
    def entry(self) -> int:
        found: int = self.content["certificate"]["ledger"]["entry"]
        return found


@dataclass(frozen=True, slots=True)
class _Cells:
    """One output of the finer table, summed: its values, the noise of one cell, what it is a part
    of.

    ``times``: the coarser output is so many times it, beside its constant.
    """

    sums: Floats
    recipe: Linear
    rounded: bool
    times: Fraction = Fraction(1)


def from_finer(question: Question, release: Release, confidence: Any = None) -> Release:
    """The answer of `Question.from_finer`.

    Raises
    ------
    ArgumentError
        The release is none of this ledger, policy and asker.
    QueryError
        The question does not follow from it by sums.
    """
    if not isinstance(release, Release):
        raise ArgumentError("release must be what an earlier release gave")
    if _get(release._content, "certificate", "question", "node") != "query":
        raise QueryError(
            "only the answer to one question is added up, and this one was topped up, or is of "
            "another kind"
        )
    finer = _released(question, release._content["certificate"])
    if finer is None:
        raise ArgumentError(_ANOTHER)
    asked = finer.confidence if confidence is None else check.confidence(confidence)
    return _Sums(question._plan, finer).release(asked)


def finer_published(question: Question, request: Request) -> Release | None:
    """The answer by sums of an earlier one at this price that the asker may see, if there is one.

    Of several that of the fewest cells, whose noise is least, and of those the newest. The
    look-up reads what was asked, by whom and when, of the ledger alone.
    """
    opened, asked = question._opened, form(question._plan.query)
    made: list[tuple[int, int, _Sums]] = []
    for entry, answer in opened.seen(request.promise):
        body = json.loads(answer).get("certificate", {})
        if body.get("policy") != request.data.policy or body.get("requested") != dict(
            request.requested
        ):
            continue
        # The rows are the same, blocks included: what is read today may not have been there.
        if _get(body, "question", "relation") != asked["relation"] or _moved(question, body):
            continue
        finer = _released(question, body)
        if finer is None or not _same_blocks(finer.plan, question._plan):
            continue
        try:
            sums = _Sums(question._plan, finer)
        except QueryError:
            continue
        made.append((sums.number, -entry.number, sums))
    if not made:
        return None
    *_, best = min(made, key=lambda one: one[:2])
    return best.release(best.finer.confidence)


def _released(question: Question, body: Mapping[str, Any]) -> _Finer | None:
    """What the ledger has of an answer, and its question read back: none where it has another."""
    try:
        made = _read_back(question, body)
        epsilon, delta, confidence = (
            Fraction(body["requested"][name]) for name in ("epsilon", "delta", "confidence")
        )
        request = made._request(epsilon, delta, float(confidence))
        named = body["request"], body["ledger"]["hash"]
    except (DitherError, KeyError, TypeError, ValueError, AttributeError):
        return None
    if request.data.digest != named[0]:
        return None
    # What the ledger has counts, and not what a caller hands over.
    for entry, answer in question._opened.published(request.promise, request.data.digest):
        if entry.hash == named[1]:
            noise_plan = made._noise_plan(epsilon, delta)
            if json.loads(json.dumps(measurements_of(noise_plan))) != body["measurements"]:
                # Another version of the package divided the budget, and drew other noise.
                return None
            token = entry.token if question._opened.asker is None else None
            return _Finer(
                json.loads(answer), entry.time, made, noise_plan, float(confidence), token
            )
    return None


def _read_back(question: Question, body: Mapping[str, Any]) -> Question:
    """The question of a certificate, from its text, and from its data what is in no text.

    Whether it is that one is for its digest to say.
    """
    said, schema = body["question"], question._plan.schema
    query = parse_query(body["text"]["sql"], schema)
    weights = [Fraction(one["weight"]) for one in said["outputs"]]
    outputs = [replace(o, weight=w) for o, w in zip(query.outputs, weights, strict=True)]
    groups, rows = (
        None if (held := said.get(name)) is None else int(held)
        for name in ("max_groups", "max_rows")
    )
    query = replace(
        query,
        outputs=tuple(outputs),
        discover=bool(said["discover"]),
        max_groups=groups,
        max_rows=rows,
        by_block=bool(said.get("by_block", True)),
    )
    # Of declared keys nothing is read; those of a public table are read there.
    listed = PublicKeys(question._opened.engine).listed(query, schema)
    return question._beside(lower(query, listed))


def _moved(question: Question, body: Mapping[str, Any]) -> bool:
    """Whether the data are known to be of another version than the answer's."""
    before: Mapping[str, str] = body.get("data") or {}
    if not before:
        return False
    now = question._opened.versions(question._tables)
    return any(is_same_version(was, now.get(table)) is False for table, was in before.items())


class _Sums:
    """A coarser question, and the finer table whose cells it adds up.

    Raises
    ------
    QueryError
        It does not follow by sums.
    """

    def __init__(self, plan: Plan, finer: _Finer) -> None:
        self.plan, self.finer = plan, finer
        self._check_forms()
        self.places = self._places_of_keys()
        self.cells: dict[Recipe, tuple[_Cells, ...]] = {}
        self._match()

    def _check_forms(self) -> None:
        for which, plan in (("this question", self.plan), ("the finer table", self.finer.plan)):
            query = plan.query
            for shown, what in (
                (plan.discovered, "keys that are discovered, so that cells are left out by noise"),
                (query.sets or plan.levels is not None, "several sets of keys"),
                (type(query) is not ag.Query, "each person once, whatever groups they are in"),
            ):
                if shown:
                    raise QueryError(f"{which} has {what}: it is no sum of cells")
        query = self.finer.plan.query
        for left, what in (
            (query.having is not None, "HAVING"),
            (query.limit is not None or query.offset > 0, "LIMIT or OFFSET"),
        ):
            if left:
                raise QueryError(f"the finer table has {what}: cells of it are missing")
        mine, its = self.plan.query, query
        if _without_blocks(form(mine.relation)) != _without_blocks(form(its.relation)):
            raise QueryError(
                "the finer table is of other rows: FROM and WHERE of both must be the same"
            )
        for name in ("max_groups", "max_rows"):
            one, two = getattr(mine, name), getattr(its, name)
            if one != two:
                raise QueryError(
                    f"{name} of the finer table is {_limit(two)}, and {_limit(one)} here: other "
                    "rows are left out. Ask with the same limits"
                )

    def _places_of_keys(self) -> list[int]:
        """By key of the coarser question: its place among those of the finer table."""
        held = [(key.expression, key.values) for key in self.finer.plan.job.keys]
        found = []
        for key in self.plan.job.keys:
            if (key.expression, key.values) not in held:
                names = ", ".join(one.name for one in self.finer.plan.job.keys) or "nothing"
                raise QueryError(
                    f"the finer table is not grouped by {key.name}, with the same values: it is by "
                    f"{names}"
                )
            found.append(held.index((key.expression, key.values)))
        return found

    @cached_property
    def number(self) -> int:
        """How many cells are added up to one."""
        inside = [
            len(key.values or ())
            for place, key in enumerate(self.finer.plan.job.keys)
            if place not in self.places
        ]
        return math.prod(inside)

    @cached_property
    def groups(self) -> list[tuple[Any, ...]]:
        """The groups of the coarser question."""
        return public_groups(self.plan.job.keys, ())

    @cached_property
    def _rows(self) -> list[list[int]]:
        """By group: the rows of the finer table that are added up."""
        keys = self.finer.plan.job.keys
        every = public_groups(keys, ())
        stored = [
            key_column(key, [group[at] for group in every])["values"] for at, key in enumerate(keys)
        ]
        columns = {c["name"]: c["values"] for c in self.finer.content["columns"]}
        held = [columns[key.name] for key in keys]
        size = len(next(iter(columns.values())))
        row_of = {tuple(values[row] for values in held): row for row in range(size)}
        found: dict[tuple[Any, ...], list[int]] = {group: [] for group in self.groups}
        for at, group in enumerate(every):
            row = row_of[tuple(values[at] for values in stored)]
            found[tuple(group[place] for place in self.places)].append(row)
        return list(found.values())

    def _match(self) -> None:
        """Find what each output is made of, before anything is added up."""
        plan, query = self.plan, self.plan.query
        named = zip(query.outputs, plan.recipes, strict=True)
        asked: list[tuple[str, ag.AggregateFunction | None, Recipe]] = [
            (output.name, output.aggregate, recipe) for output, recipe in named
        ]
        asked += [("HAVING", None, plan.having)] if plan.having is not None else []
        asked += [("ORDER BY", None, by) for by, _ in plan.order if isinstance(by, Recipe)]
        for name, aggregate, recipe in asked:
            for part in sources(recipe):
                if part not in self.cells:
                    whole = aggregate if part == recipe else None
                    self.cells[part] = self._made_of(name, part, whole)

    def _made_of(self, name: str, recipe: Recipe, aggregate: Any) -> tuple[_Cells, ...]:
        """The output that a recipe sums, or the two whose sums it divides."""
        measurements = self.plan.job.measurements
        match recipe:
            case Linear():
                found = self._summed(recipe, aggregate)
                if found is not None:
                    return (found,)
                what = "its cells do not add up to it"
                kinds = {type(measurements[i]) for i, _ in recipe.terms}
                if kinds <= {Rows, Values, Total}:
                    what = "the finer table has no such count or sum"
                raise QueryError(
                    f"{name}: {what}. Counts of rows and of values, and sums, add up; numbers of "
                    "distinct people or values do not, since one of them may be in several cells"
                )
            case MeanRecipe(total=total, count=count):
                of = measurements[total]
                assert isinstance(of, Total)
                above = None if of.null_as_centre or of.square else self._output(ag.Sum(of.operand))
                below = self._summed(Linear(((count, Fraction(1)),)), None)
                if above is not None and below is not None:
                    return above, below
                raise QueryError(
                    f"{name}: a mean follows where both its sum and its count were released, as "
                    "SUM(x) and COUNT(x); means of cells do not add up"
                )
            case RatioRecipe(numerator=over, denominator=under):
                parts: tuple[Any, Any] = (None, None)
                if isinstance(aggregate, ag.Ratio):
                    parts = (aggregate.numerator, aggregate.denominator)
                both = self._summed(over, parts[0]), self._summed(under, parts[1])
                if both[0] is not None and both[1] is not None:
                    return both[0], both[1]
                raise QueryError(
                    f"{name}: a ratio follows where what is divided and what it is divided by were "
                    "both released"
                )
        raise QueryError(
            f"{name}: only counts, sums, and what follows from them follows from sums of cells; a "
            "median, a mode or a deviation does not"
        )

    def _output(self, aggregate: Any) -> _Cells | None:
        """The output of the finer table that is this aggregate."""
        query, recipes = self.finer.plan.query, self.finer.plan.recipes
        if not isinstance(aggregate, SUMMABLE):
            return None
        for output, recipe in zip(query.outputs, recipes, strict=True):
            if output.aggregate == aggregate and isinstance(recipe, Linear):
                return self._added(output.columns[0], recipe)
        return None

    def _summed(self, wanted: Linear, aggregate: Any) -> _Cells | None:
        """The output of the finer table whose cells add up to this, or to a part or multiple."""
        found = self._output(aggregate)
        if found is not None:
            return found
        mine, its = self.plan.job.measurements, self.finer.plan.job.measurements
        parts = {mine[i]: c for i, c in wanted.terms}
        if not parts or not all(isinstance(m, Rows | Values | Total) for m in parts):
            return None
        if any(isinstance(m, Values) and m.once for m in parts):
            return None
        query, recipes = self.finer.plan.query, self.finer.plan.recipes
        for output, recipe in zip(query.outputs, recipes, strict=True):
            if not isinstance(recipe, Linear):
                continue
            held = {its[i]: c for i, c in recipe.terms}
            if held.keys() != parts.keys() or not all(held.values()):
                continue
            times = {parts[m] / held[m] for m in parts}
            if len(times) == 1:
                return replace(self._added(output.columns[0], recipe), times=times.pop())
        return None

    def _added(self, title: str, recipe: Linear) -> _Cells:
        column = next(c for c in self.finer.content["columns"] if c["name"] == title)
        values = [decode(value, column["kind"]) for value in column["values"]]
        whole = (
            all(c.denominator == 1 for _, c in recipe.terms) and recipe.constant.denominator == 1
        )
        sums = [math.fsum(values[row] for row in rows) for rows in self._rows]
        rounded = column["kind"] == "integer" and not whole
        return _Cells(np.asarray(sums, dtype=float), recipe, rounded)

    def _noise(self, place: int) -> Noise | None:
        """That of one measurement, summed."""
        noise = self.finer.noise_plan.noises[place]
        if noise is None or self.number == 1:
            return noise
        return SummedNoise(noise, ((1.0, self.number),))

    def _estimate(self, recipe: Recipe, confidence: float) -> GroupEstimates:
        """What the sums say of a recipe, in every group."""
        if isinstance(recipe, Linear):
            (one,) = self.cells[recipe]
            value = self._value(one) + float(recipe.constant)
            noises = [(c, self._noise(i)) for i, c in one.recipe.terms]
            terms = [(float(c * one.times), noise) for c, noise in noises if noise is not None]
            width = float(half_width(terms, confidence)) if terms else 0.0
            return around_linear(replace(recipe, upper=None), value, width + self._slack(one))
        above, below = self.cells[recipe]
        if isinstance(recipe, MeanRecipe):
            count = Linear((), lower=Fraction(0))
            asked = RatioRecipe(Linear(()), count, recipe.lower, recipe.upper)
            top, bottom = self._value(above), self._value(below)
        else:
            assert isinstance(recipe, RatioRecipe)
            asked = recipe
            top = self._value(above) + float(recipe.numerator.constant)
            bottom = self._value(below) + float(recipe.denominator.constant)
        over = {i: c * above.times for i, c in above.recipe.terms}
        under = {i: c * below.times for i, c in below.recipe.terms}
        ratios = [
            (float(over.get(i, 0)), float(under.get(i, 0)), noise)
            for i in dict.fromkeys((*over, *under))
            if (noise := self._noise(i)) is not None
        ]
        slack = self._slack(above), self._slack(below)
        found = around_ratio(asked, top, bottom, ratios, confidence, slack=slack)
        if isinstance(recipe, MeanRecipe):
            # Where the noisy count is not above 0 nothing is known, as of any mean.
            middle = float(recipe.lower + recipe.upper) / 2
            found = replace(found, value=np.where(np.isnan(found.value), middle, found.value))
        return found

    def _value(self, one: _Cells) -> Floats:
        own = float(one.recipe.constant) * self.number
        return float(one.times) * (one.sums - own)

    def _slack(self, one: _Cells) -> float:
        """How far the sum of rounded values may be from that of what was measured."""
        return abs(float(one.times)) * self.number / 2 if one.rounded else 0.0

    def release(self, confidence: float) -> Release:
        """The answer, as a release that was charged before is replayed."""
        data = answer_data(self.plan, self.groups, self._estimate, confidence)
        notes = [*self.finer.content["notes"], *data["notes"], *self._notes()]
        certificate = self.finer.content["certificate"]
        content = {**data, "notes": list(dict.fromkeys(notes)), "certificate": certificate}
        content["sums_of"] = {"entry": self.finer.entry, "cells": self.number}
        return marked(Release(content, replayed=self.finer.charged), certificate)

    def _notes(self) -> list[str]:
        finer = self.finer.plan
        keys = [key.name for at, key in enumerate(finer.job.keys) if at not in self.places]
        each = f"each the sum of {self.number:,} cells" if self.number > 1 else "cell by cell"
        left = f", over {', '.join(keys)}" if keys else ""
        token = self.finer.token
        # Where analysts are told apart the ledger has the hash of a token, and else one of its own
        # where none was given.
        known = "" if token is None or _UNNAMED.fullmatch(token) else f" (token {token!r})"
        notes = [
            f"{each} of the table of ledger entry {self.finer.entry}{known} of "
            f"{self.finer.charged:%Y-%m-%d %H:%M} UTC{left}; the certificate is that of the table",
        ]
        if finer.job.unit is not None:
            unit, times = finer.table.unit, f"{finer.job.max_groups:,}"
            if finer.job.block_key is not None:
                times += " of each block"
            notes.append(
                f"limits are those of that table: one {unit} counts in at most {times} of its "
                f"cells, with at most {finer.job.max_rows:,} rows in each. Asked directly, this "
                "question leaves other rows out, and has other noise"
            )
        if not _same_blocks(finer, self.plan):
            notes.append("rows of other blocks than that table read are in no sum")
        return notes


def _same_blocks(one: Plan, other: Plan) -> bool:
    """Whether both read the same blocks, each by itself or all together."""
    if one.blocks is None or other.blocks is None:
        return one.blocks is other.blocks
    return one.blocks <= other.blocks and other.blocks <= one.blocks


def _without_blocks(data: Any) -> Any:
    """The rows that are asked for, whatever blocks they are read from: keys narrow these, too."""
    if isinstance(data, Mapping):
        return {name: _without_blocks(part) for name, part in data.items() if name != "blocks"}
    return [_without_blocks(part) for part in data] if isinstance(data, list) else data


def _limit(asked: int | None) -> str:
    return "the policy's" if asked is None else f"{asked:,}"


def _get(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, Mapping) else None
    return data

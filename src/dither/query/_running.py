"""One number over several blocks, each limited by itself: what a running count adds up.

A question of each block by itself limits what a unit counts for in each block. Here its exact
numbers are added up first, and noise is drawn once, of the same width: that of one block.

*Guarantee.* Let s be what one unit can change the number of one block by, and the noise
epsilon-differentially private for a change of s. Rows of a unit in m of the blocks change the sum
by at most m s, which is m changes of s one after another, so the loss for that unit is at most
m epsilon. Each block is charged epsilon, and the lifetime epsilon for each block that is read. Then
for every unit with rows in the blocks B the sum over all steps i, which read S_i, is at most::

    sum_i |B & S_i| epsilon_i  =  sum_(b in B) sum_(i: b in S_i) epsilon_i,

what the blocks of B have spent together. This holds of pure noise alone. By rho, m changes cost m^2
times one and not m, so such a charge has no rho: accounts that it is charged to add up epsilon.

Where a row is the unit it lies in one block, and where one block is read there is nothing to add
up: then it is the question that it was.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither.blocks._calendar import Calendar
from dither.errors import QueryError
from dither.mechanisms import half_width
from dither.mechanisms._combination import Noise, SummedNoise
from dither.plan import aggregates as ag
from dither.plan.expressions import Column, DateTruncate
from dither.plan.job import public_groups
from dither.plan.lowering.lower import Plan, lower
from dither.plan.lowering.recipes import Linear
from dither.plan.relations import Filter, KeyFilter, PublicJoin, Relation, Scan, base
from dither.policy._canonical import form
from dither.privacy import Charge, Loss, Promise
from dither.query._certificate import measurement_record
from dither.query._explain import Explanation
from dither.query._noise import NoisePlan, Noisy, noised, on_grid, plan_noise
from dither.query._question import Question
from dither.query._release import is_whole
from dither.session._certificate import MeasurementRecord
from dither.session._opened import OpenedPolicy
from dither.session._request import Request

__all__ = ["BLOCK_KEY", "SummedQuestion", "summed", "total_width"]

BLOCK_KEY = "block"
"""The name of the key that says in which block a row lies; nothing by that name is released."""


def summed(question: Question) -> Question:
    """A question of one number, with each of its blocks limited by itself.

    Parameters
    ----------
    question : Question
        Of one whole number, of rows of one table in stretches of time.

    Raises
    ------
    QueryError
        It is of something else, which cannot be added up.
    """
    plan, query = question._plan, question._plan.query
    simple = type(query) is ag.Query and not (
        query.keys or query.sets or query.order or query.having or query.offset or query.flags
    )
    if not simple or query.limit is not None or len(query.outputs) != 1:
        raise QueryError(
            "a running count adds up one number: ask for one COUNT or SUM, without GROUP BY, "
            "HAVING, ORDER BY or LIMIT"
        )
    (recipe,) = plan.recipes
    if not isinstance(recipe, Linear) or recipe.constant or not is_whole(recipe, plan):
        raise QueryError(
            "a running count adds up whole numbers: ask for COUNT(*), COUNT of a column, or SUM of "
            "a column of whole numbers"
        )
    if not isinstance(query.outputs[0].aggregate, ag.Count | ag.CountValues | ag.Sum):
        raise QueryError(
            "a running count adds up rows: distinct people or values of two days are not those of "
            "both together"
        )
    if plan.blocks is None or plan.blocks.endless or plan.blocks.named:
        raise QueryError("a running count is of finitely many stretches of time")
    if plan.job.unit is None or len(plan.blocks) == 1:
        return question
    table = plan.schema.table(base(query.relation).table)
    if table.block is None or table.block[1].every is None or not _of_one(query.relation):
        raise QueryError(
            "a running count is of one table whose rows lie in stretches of time, and of public "
            "tables beside it"
        )
    column, calendar = table.block
    key = DateTruncate(str(calendar.every), Column(base(query.relation).alias, column))
    days = tuple(_days(calendar, plan))
    apart = replace(query, keys=(ag.Key(BLOCK_KEY, key, days),), by_block=True)
    made = lower(apart, plan.schema)
    return SummedQuestion(plan, made, question._opened)


def _of_one(relation: Relation) -> bool:
    while isinstance(relation, Filter | KeyFilter | PublicJoin):
        relation = relation.source
    return isinstance(relation, Scan)


def _days(calendar: Calendar, plan: Plan) -> list[Any]:
    assert plan.blocks is not None
    found = [
        calendar.first(block)
        for low, high in plan.blocks.ranges
        for block in range(int(low or 0), int(high or 0) + 1)
    ]
    if None in found:
        raise QueryError("a running count is of stretches of time in the years 1 to 9999")
    return found


class SummedQuestion(Question):
    """One number over several blocks, each limited by itself; made by `summed`.

    Parameters
    ----------
    whole : Plan
        Without keys: what is released.
    apart : Plan
        By block: what is counted and charged.
    opened : OpenedPolicy
    """

    def __init__(self, whole: Plan, apart: Plan, opened: OpenedPolicy) -> None:
        super().__init__(whole, opened)
        blocks, own = apart.blocks, whole.blocks
        same = blocks is not None and own is not None and blocks.ranges == own.ranges
        if not same or blocks is None or not blocks.parallel or apart.job.block_key is None:
            raise QueryError("its blocks cannot be read each by itself")
        if apart.job.measurements != whole.job.measurements or apart.unit_rows != 1:
            raise QueryError("what it counts cannot be counted by block")
        self._apart = apart

    def explain(self, epsilon: Any = None, delta: Any = None, **limits: Any) -> Explanation:
        """As of the question of each block, which is what is charged."""
        return Question(self._apart, self._opened).explain(epsilon, delta, **limits)

    def loss(self, epsilon: Any, delta: Any = None) -> Loss:
        """What a release would lose: for somebody with rows in all of its blocks."""
        return self._loss(self._noise_plans(epsilon, delta)[1])

    def _noise_plans(self, epsilon: Any, delta: Any) -> tuple[NoisePlan, NoisePlan]:
        """Of what is released, and of what is charged: of one width, that of a step."""
        asked, share = self._budget(epsilon, delta)
        if share:
            raise QueryError("a running count needs noise without delta: give delta = 0")
        of_all = plan_noise(self._plan, asked, Fraction(0))
        of_each = plan_noise(self._apart, asked, Fraction(0))
        if of_all.noises != of_each.noises or of_each.choices or of_each.trees:
            raise QueryError("what it counts has no noise that blocks can share")
        return of_all, of_each

    def _loss(self, of_each: NoisePlan) -> Loss:
        steps, promise = of_each.steps, of_each.promise
        one = of_each.allocation
        charge = Charge() if one is None else one.charge
        if one is None or charge.epsilon is None or charge.delta:
            raise QueryError("what it counts has no noise without delta")
        part = Promise(f"{promise.unit}, in one block", promise.neighbours)
        loss = one.loss(neighbours=promise.neighbours).promising(part)
        many = loss.to_group(promise.unit, steps)
        return many.with_charge(Charge(charge.epsilon * steps, Fraction(0), None)).promising(
            promise
        )

    def _request(self, epsilon: Any, delta: Any, confidence: float) -> Request:
        of_all, of_each = self._noise_plans(epsilon, delta)
        asked = super()._request(epsilon, delta, confidence)
        return replace(
            asked,
            question={"summed": form(self._apart.query)},
            loss=self._loss(of_each),
            record=lambda: self._record(of_each),
            run=lambda secret: self._data(of_all, self._sum(of_all, secret), confidence),
            fits=lambda: "",
            jobs=lambda: (self._apart.job,),
            schema=self._apart.schema,
            blocks=self._apart.blocks,
        )

    def _record(self, of_each: NoisePlan) -> MeasurementRecord:
        made = measurement_record(of_each, self.sql, self._facts)
        return replace(made, beside={**made.beside, "summed": "over blocks, before the noise"})

    def _sum(self, of_all: NoisePlan, secret: bytes) -> Noisy:
        """The one step that sees exact numbers: they leave with noise."""
        job = self._apart.job
        answer = self._opened.engine.run(job, self._apart.schema, secret)
        exact = on_grid(public_groups(job.keys, job.sets), answer, job.measurements)
        sums = {i: np.array([sum(map(int, one))], dtype=object) for i, one in exact.items()}
        return Noisy([()], {i: noised(one, of_all.noises[i]) for i, one in sums.items()})


def total_width(question: Question, epsilon: Fraction, number: int, confidence: float) -> float:
    """Half the width of the interval of a sum of so many releases of a question's width.

    Parameters
    ----------
    question : Question
        One of them; all have noise of one width.
    epsilon : Fraction
        Of each.
    number : int
    confidence : float
    """
    plan = question._plan
    noises = plan_noise(plan, epsilon, Fraction(0)).noises
    (recipe,) = plan.recipes
    assert isinstance(recipe, Linear)
    terms: list[tuple[float, Noise]] = [
        (float(times), noise if number == 1 else SummedNoise(noise, ((1.0, number),)))
        for place, times in recipe.terms
        if (noise := noises[place]) is not None
    ]
    return float(half_width(terms, confidence)) if terms else 0.0

"""More precision for an answer that is out: an independent one, averaged with it.

Precision under Gaussian noise is linear in rho. An answer at rho_1 has variance s² / (2·rho_1); an
independent one at rho_2 - rho_1 has s² / (2·(rho_2 - rho_1)); their mean, weighted by inverse
variances, has s² / (2·rho_2), which is that of one answer at rho_2. So what was paid before is not
lost. The mean is post-processing of two releases, and the charge of the second is rho_2 - rho_1.

Not so under Laplace noise, whose precision grows with the square of epsilon: there the mean of two
answers is wider than one answer at the sum of what both cost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._display import Explanation
from dither._format import loss_text
from dither.errors import ArgumentError, QueryError
from dither.mechanisms import DiscreteGaussian
from dither.mechanisms._combination import half_width
from dither.plan.lowering.recipes import Linear
from dither.policy._canonical import form
from dither.privacy import Charge, Loss
from dither.privacy._conversion import epsilon_of_rho, rho_of_epsilon
from dither.query._certificate import measurement_record
from dither.query._explain import explain
from dither.query._noise import WIDEST_SCALE, NoisePlan, promise_of
from dither.query._preview import Preview, preview
from dither.query._release import Release, decode
from dither.query.estimates._values import around_linear, encoded
from dither.session._request import AnsweredRequest, PricedQuestion, Progress, Request
from dither.session._signer import is_same_version

if TYPE_CHECKING:
    from dither.query._question import Question

__all__ = ["TopUpQuestion"]

NODE = "top up"


@dataclass(frozen=True)
class _Earlier:
    """An answer of this ledger to this very question, and the noise that it has."""

    content: Mapping[str, Any]
    noise_plan: NoisePlan
    rho: Fraction
    delta: Fraction
    confidence: Fraction

    @property
    def certificate(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.content["certificate"]
        return found


class TopUpQuestion(PricedQuestion[Release]):
    """More precision for an answer: explained and previewed free of charge, released at its price.

    Parameters
    ----------
    question : Question
    release : Release
        An earlier answer to it.
    to_rho, epsilon, same_data
        As of `Question.top_up`.

    Raises
    ------
    ArgumentError
        The release is none of this question, ledger and asker, or was topped up before; the target
        is not above what it cost; its data moved since, or that cannot be told.
    QueryError
        Its noise is not Gaussian, or an output does not follow from sums alone.
    """

    _noun = "top up"
    _gives = (Release,)

    def __init__(
        self, question: Question, release: Release, to_rho: Any, epsilon: Any, same_data: bool
    ) -> None:
        self._question, self._opened = question, question._opened
        self._earlier = earlier = _earlier_answer(question, release)
        _check_outputs(question, earlier.noise_plan)
        self._target = target = _target(to_rho, epsilon, earlier)
        if target <= earlier.rho:
            raise ArgumentError(
                f"to_rho must be above what the answer has, rho = {loss_text(earlier.rho)}"
            )
        if self._opened.elsewhere is None:
            # Elsewhere the versions of the data are known, and here they are not.
            _check_data(question, earlier, same_data)
        # Wider in the proportion in which it costs less.
        self._noise_plan = _scaled(earlier.noise_plan, earlier.rho / (target - earlier.rho))
        named = {"to_rho": to_rho, "epsilon": epsilon, "same_data": same_data}
        self._recipe = question._as_asked.then("topping_up", (release,), named)

    @property
    def loss(self) -> Loss:
        """What the second answer loses."""
        return self._noise_plan.loss

    @property
    def _entry(self) -> int:
        found: int = self._earlier.certificate["ledger"]["entry"]
        return found

    @property
    def _about(self) -> str:
        return f"the answer of ledger entry {self._entry} to rho = {loss_text(self._target)}"

    def explain(self) -> Explanation:
        """Who is protected, and what the second answer measures and costs."""
        said = f"averaged with the answer of ledger entry {self._entry}, by inverse variances"
        return explain(self._question._plan, self._noise_plan, [said])

    def preview(
        self, *, sizes: Sequence[int] = (100, 1_000, 10_000), confidence: float = 0.95
    ) -> Preview:
        """How wide the intervals of the mean of both answers will be."""
        together = _scaled(self._earlier.noise_plan, self._earlier.rho / self._target)
        return preview(together, sizes, confidence)

    def _request(self, tell: Progress) -> Request:
        question, earlier, noise_plan = self._question, self._earlier, self._noise_plan
        tops_up = {
            "entry": self._entry,
            "hash": earlier.certificate["ledger"]["hash"],
            "rho": str(earlier.rho),
            "to_rho": str(self._target),
        }
        confidence = float(earlier.confidence)
        record = partial(measurement_record, noise_plan, question.sql, question._facts)

        def run(secret: bytes) -> dict[str, Any]:
            noisy = question._measured(noise_plan, confidence, secret)
            fresh = question._data(noise_plan, noisy, confidence)
            return _averaged(earlier, fresh, noise_plan, confidence)

        first = question._request(earlier.noise_plan.epsilon, earlier.noise_plan.delta, confidence)
        return replace(
            first,
            question={"node": NODE, "question": form(question._plan.query), "of": tops_up},
            requested={
                "to_rho": str(self._target),
                "delta": str(earlier.delta),
                "confidence": str(earlier.confidence),
            },
            loss=noise_plan.loss,
            note=lambda: question._note() | {"tops_up": self._entry},
            record=lambda: replace(made := record(), beside={**made.beside, "tops_up": tops_up}),
            run=run,
            fits=lambda: "Top up to less, or ask the data owner for a larger budget.",
            rehearsal=partial(question._without_groups, noise_plan, confidence),
        )

    def _read(self, answered: AnsweredRequest) -> Release:
        return self._question._read(answered)

    def _handed_over(self, answered: AnsweredRequest) -> Release:
        return self._read(answered)  # which says already of what rows it is


def _earlier_answer(question: Question, release: Release) -> _Earlier:
    if not isinstance(release, Release):
        raise ArgumentError("release must be what an earlier release of this question gave")
    body = release._content["certificate"]
    if isinstance(body["question"], Mapping) and body["question"].get("node") == NODE:
        raise ArgumentError(
            "this answer was topped up already: top up the first one, to the whole rho"
        )
    try:
        epsilon, delta, confidence = (
            Fraction(body["requested"][name]) for name in ("epsilon", "delta", "confidence")
        )
        request = question._request(epsilon, delta, float(confidence))
    except (KeyError, TypeError, ValueError):
        raise ArgumentError(_ANOTHER) from None
    if request.data.digest != body["request"]:
        raise ArgumentError(_ANOTHER)
    # What the ledger has counts, and not what a caller hands over.
    found = question._opened.published(request.promise, request.data.digest)
    stored = [answer for entry, answer in found if entry.hash == body["ledger"]["hash"]]
    if not stored:
        raise ArgumentError(_ANOTHER)
    noise_plan = question._noise_plan(epsilon, delta)
    rho = noise_plan.charge.rho
    if rho is None:
        raise QueryError(_NO_GAUSSIAN)
    return _Earlier(json.loads(stored[0]), noise_plan, rho, delta, confidence)


_ANOTHER = (
    "release must be an answer of this ledger to this very question, under this policy, that you "
    "may see: published() lists them"
)
_NO_GAUSSIAN = (
    "only answers with Gaussian noise are topped up, and this one has other noise: the mean of two "
    "answers with Laplace noise is wider than one that costs as much. Ask anew"
)


def _check_outputs(question: Question, noise_plan: NoisePlan) -> None:
    plan, query = question._plan, question._plan.query
    for shown, what in (
        (plan.discovered, "keys that are discovered"),
        (query.sets or plan.levels is not None, "several sets of keys"),
        (plan.having is not None, "HAVING"),
        (query.order, "ORDER BY"),
        (query.limit is not None or query.offset, "LIMIT and OFFSET"),
    ):
        if shown:
            raise QueryError(
                f"{what}: such an answer is not topped up, since its rows depend on its own noise; "
                "ask for all groups that the policy declares"
            )
    for output, recipe in zip(query.outputs, plan.recipes, strict=True):
        if not isinstance(recipe, Linear):
            raise QueryError(
                f"{output.name}: only counts and sums are topped up; a mean is their quotient"
            )
    noises = [noise for noise in noise_plan.noises.values() if noise is not None]
    if not noises or not all(isinstance(noise, DiscreteGaussian) for noise in noises):
        raise QueryError(_NO_GAUSSIAN)


def _target(to_rho: Any, epsilon: Any, earlier: _Earlier) -> Fraction:
    if (to_rho is None) == (epsilon is None):
        raise ArgumentError("give to_rho, or epsilon, which stands for the rho that it allows")
    if to_rho is not None:
        return check.positive("to_rho", to_rho)
    # As for a release: of one step, where there are several.
    one = rho_of_epsilon(check.positive("epsilon", epsilon), earlier.delta)
    return one * earlier.noise_plan.steps


def _check_data(question: Question, earlier: _Earlier, same_data: bool) -> None:
    """Refuse to average answers about different data; nothing of it is read."""
    before: Mapping[str, str] = earlier.certificate.get("data", {})
    now = question._opened.versions(question._tables)
    for table in question._tables:
        same = is_same_version(before.get(table), now.get(table))
        if same is None:
            if not same_data:
                raise ArgumentError(_unsaid(question, table))
        elif not same:
            raise ArgumentError(
                f"table {table!r} changed since the answer was released: these would be two "
                "answers to two questions. Ask anew"
            )


def _unsaid(question: Question, table: str) -> str:
    """Why nothing says whether a table is as it was, and what to do."""
    plan, opened = question._plan, question._opened
    rows, why = f"table {table!r} is as it was", ""
    calendar = opened.calendar(promise_of(plan).unit)
    if plan.blocks is not None and calendar is not None:
        rows = f"the rows of table {table!r} that this question reads are as they were"
        why = (
            f" It {calendar.reading(plan.blocks).partition(';')[0]}, and a certificate of some "
            "blocks holds no version of the table: that would tell whether others changed."
        )
    elif opened.signer is None:
        why = " Certificates hold the version of the data where they are made with the owner's key."
    return (
        f"nothing says whether {rows} when the answer was released: where you know it, say "
        f"same_data=True.{why} Rows that came or changed since would make these two answers to two "
        "questions, whose mean is of neither; what it costs and promises is the same"
    )


def _scaled(noise_plan: NoisePlan, ratio: Fraction) -> NoisePlan:
    """The same noise, its variances so many times as large, at the cost of that."""
    allocation = noise_plan.allocation
    assert allocation is not None
    shares, noises = [], dict(noise_plan.noises)
    for share in allocation.shares:
        assert isinstance(share.mechanism, DiscreteGaussian)
        assert share.charge.rho is not None
        noise = DiscreteGaussian(share.mechanism.sigma2 * ratio)
        if noise.variance > float(WIDEST_SCALE) ** 2:
            raise ArgumentError("to_rho is so little above what the answer has that nothing is won")
        charge = Charge.concentrated(share.charge.rho / ratio)
        shares.append(replace(share, mechanism=noise, charge=charge))
        noises[int(share.need.name)] = noise
    rho = sum((share.charge.rho or Fraction(0) for share in shares), Fraction(0))
    delta = allocation.delta_conversion
    whole = Charge(epsilon=epsilon_of_rho(rho, delta), delta=delta, rho=rho)
    made = replace(allocation, shares=tuple(shares), charge=whole)
    return replace(noise_plan, allocation=made, noises=noises)


def _averaged(
    earlier: _Earlier, fresh: Mapping[str, Any], noise_plan: NoisePlan, confidence: float
) -> dict[str, Any]:
    """The mean of both answers by inverse variances, with the intervals of its own noise."""
    plan = noise_plan.plan
    old, new = earlier.noise_plan.noises, noise_plan.noises
    held = {column["name"]: column for column in earlier.content["columns"]}
    keys = [column for column in fresh["columns"] if column["name"] in fresh["keys"]]
    if any(held[column["name"]]["values"] != column["values"] for column in keys):
        raise ValueError("other groups")
    # Of all outputs the same: each noise is wider in one proportion.
    place = next(i for i, noise in new.items() if noise is not None)
    first, second = (_sigma2(noises[place]) for noises in (old, new))
    share = second / (first + second)
    columns = list(keys)
    for output, recipe in zip(plan.query.outputs, plan.recipes, strict=True):
        assert isinstance(recipe, Linear)
        title = output.columns[0]
        both = (held[title], next(c for c in fresh["columns"] if c["name"] == title))
        one, two = ([decode(v, c["kind"]) for v in c["values"]] for c in both)
        terms = [
            (float(c * weight), noise)
            for noises, weight in ((old, share), (new, 1 - share))
            for i, c in recipe.terms
            if (noise := noises[i]) is not None
        ]
        width = float(half_width(terms, confidence)) if terms else 0.0
        values = [float(share) * a + float(1 - share) * b for a, b in zip(one, two, strict=True)]
        found = around_linear(recipe, np.asarray(values, dtype=float), width)
        parts = (found.value, found.lower, found.upper)
        columns += [
            {"name": name, "kind": "real", "values": [encoded(v) for v in part.tolist()]}
            for name, part in zip(output.columns, parts, strict=True)
        ]
    named = earlier.certificate["ledger"]["entry"]
    note = f"the mean, by inverse variances, of the answer of ledger entry {named} and of a new one"
    return {**fresh, "columns": columns, "notes": [*fresh["notes"], note]}


def _sigma2(noise: Any) -> Fraction:
    assert isinstance(noise, DiscreteGaussian)
    return noise.sigma2

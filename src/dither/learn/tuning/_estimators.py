"""Searches over estimators of learning: a run fits a copy on some rows, and scores it on others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither import noise, privacy
from dither._checks import Number
from dither._search import greatest_decimal
from dither.errors import ArgumentError
from dither.learn._columns import numbers, places_in
from dither.learn._estimator import Estimator, distinct, labels_of
from dither.learn.tuning._plan import Search, epsilon_of, limited, whole_loss
from dither.learn.tuning._runs import Runs
from dither.learn.votes._partition import how_many, rows_at
from dither.mechanisms import DiscreteLaplace
from dither.numeric import sqrt_lower
from dither.privacy import Loss
from dither.privacy.laws.rationals import printing_at_most

__all__ = ["UNIT", "Estimators", "Metric"]

Integers = npt.NDArray[np.int64]
Metric = Callable[[Any, Any], Any]

UNIT = 1 << 10
"""Units of one row's score, which lies in [0, 1]."""

_TRIED = 3
"""How often the epsilon of a run is sought, where candidates turn out to be dearer than others."""


def _grid(candidates: Any) -> list[dict[str, Any]]:
    """The candidates of an estimator, as mappings from parameters to values."""
    if isinstance(candidates, Mapping):
        values = [check.listed(f"candidates[{k!r}]", v, "values") for k, v in candidates.items()]
        if any(isinstance(v, str) for v in candidates.values()):
            raise ArgumentError("candidates must map each parameter to a list of values")
        limited(math.prod(map(len, values)))
        return [dict(zip(candidates, row, strict=True)) for row in itertools.product(*values)]
    found = check.listed("candidates", candidates, "mappings")
    limited(len(found))
    if not all(isinstance(one, Mapping) for one in found):
        raise ArgumentError('candidates must be mappings, such as {"rounds": [5, 10]}')
    return [dict(one) for one in found]


class Estimators:
    """Runs that fit copies of an estimator on some of the rows and score them on others."""

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        X: Any,
        y: Any,
        validation: Any,
        held: Number,
        score_epsilon: Number | None,
        metric: Metric | None,
    ) -> None:
        if not isinstance(estimator, Estimator):
            raise ArgumentError(
                "run must be an estimator of dither.learn: of others it is not known what they "
                "lose. Wrap one in a function, and say its loss"
            )
        if X is None or y is None:
            raise ArgumentError("X and y must be given, for an estimator to be fitted on")
        if how_many(X) != how_many(y, "y"):
            raise ArgumentError("y must have one value for each row of X")
        if not hasattr(estimator, "predict"):
            raise ArgumentError(
                f"run must be an estimator that predicts, and {type(estimator).__name__} does not: "
                "wrap it in a function that scores it, and say what a run costs"
            )
        if metric is None and not {"classes", "target_bounds"} & set(estimator.get_params()):
            raise ArgumentError(
                "metric must say how a row of this estimator is scored: a function from true and "
                "predicted values to one number a row, from 0 to 1"
            )
        if metric is not None and not callable(metric):
            raise ArgumentError("metric must be a function of true and predicted values")
        self.estimator, self.grid, self.metric = estimator, _grid(candidates), metric
        self.X = _table(X)
        self.y = y if hasattr(y, "shape") else list(y)
        self.held = check.exact("held", held, above=0, below=1)
        self.score_epsilon = score_epsilon
        self.public: tuple[Any, Any] | None = None
        if validation is not None:
            try:
                table, truth = validation
            except (TypeError, ValueError):
                raise ArgumentError("validation must be a pair: a table and its values") from None
            if score_epsilon is not None:
                raise ArgumentError("score_epsilon must be left out: public rows cost nothing")
            if not how_many(table, "validation") or how_many(table) != how_many(truth):
                raise ArgumentError("validation must have one value for each of its rows")
            self.public = (_table(table), truth if hasattr(truth, "shape") else list(truth))

    def search(self, runs: Runs, delta: Fraction, epsilon: Number | None) -> Search:
        """The search, at the estimator's epsilon or at the largest that the whole allows."""
        if epsilon is None:
            return self._made(runs, delta, None)
        if any("epsilon" in one for one in self.grid):
            raise ArgumentError("epsilon must not be a candidate where the whole has one")
        most, asked = check.positive("epsilon", epsilon), printing_at_most(delta)

        def whole(each: Fraction, candidates: Sequence[Mapping[str, Any]]) -> float:
            losses = self._losses([{**one, "epsilon": each} for one in candidates])
            found = privacy.repeat_and_select(losses, mean=runs.mean, shape=runs.shape)
            return epsilon_of(found, asked)

        # One decides, where all cost the same at the same epsilon; else one for each loss.
        decisive = self.grid[:1]

        def kept(each: Fraction) -> bool:
            return whole(each, decisive) <= most

        for _ in range(_TRIED):
            each = greatest_decimal(kept, most / 1000, most)
            if each is None:
                raise ArgumentError(
                    "epsilon is too small for so many runs: each would have less than a thousandth "
                    "of it; take a smaller mean, or a delta"
                )
            made = self._made(runs, delta, each)
            if epsilon_of(made.loss, asked) <= most:
                return made
            by_loss = {self._fitted({**one, "epsilon": each}).loss_: one for one in self.grid}
            decisive = list(by_loss.values())
        raise ArgumentError(
            "epsilon cannot be kept: the candidates do not cost the same. Search without it, at "
            "the estimator's own epsilon"
        )

    def _made(self, runs: Runs, delta: Fraction, epsilon: Fraction | None) -> Search:
        more = {} if epsilon is None else {"epsilon": epsilon}
        full = [{**one, **more} for one in self.grid]
        each = self._losses(full)
        if self.public is not None:
            # What does not fit is seen on public rows, before anything is charged.
            try:
                self._scored(self._fitted(full[0]), *self.public)
            except ArgumentError as error:
                raise ArgumentError(f"validation: {error}") from None
        elif self.metric is not None:
            self._check_metric(full[0])
        return Search(
            self._once, tuple(full), each, runs, whole_loss(each, runs, delta), public=True
        )

    def _check_metric(self, candidate: Mapping[str, Any]) -> None:
        """See on made-up values that a row's score depends on no other row, nor on their number."""
        model = self._copy(candidate)
        listed = getattr(model, "classes", None)
        ends = getattr(model, "target_bounds", None)
        if listed is not None:
            values = labels_of(distinct(listed))
        elif ends is not None:
            values = np.linspace(float(ends[0]), float(ends[1]), 4)
        else:
            values = np.arange(int(getattr(model, "n_clusters", 2)))
        places = np.arange(3 * len(values))
        truth, given = values[places % len(values)], values[places // 2 % len(values)]
        assert self.metric is not None
        try:
            together = numbers(self.metric(truth, given))
            alone = [numbers(self.metric(truth[i : i + 1], given[i : i + 1])) for i in places]
        except Exception:
            # Of these values it may be none; what fails on rows is the worst, and says nothing.
            return
        found = np.concatenate(alone)
        if together.shape != found.shape or not np.allclose(together, found, equal_nan=True):
            raise ArgumentError(
                "metric must score each row by itself: what it gives for one depends on others, or "
                "on how many there are, so that one row would move the scores of all"
            )

    def _losses(self, candidates: Sequence[Mapping[str, Any]]) -> tuple[Loss, ...]:
        """What a run may cost: a fit, or a noisy score."""
        fits = dict.fromkeys(self._fitted(one).loss_ for one in candidates)
        self._expected = set(fits)
        if self.public is not None:
            return tuple(fits)
        relations = {fit.neighbours for fit in fits}
        if len(relations) > 1:
            raise ArgumentError("neighbours must not be a candidate")
        if self.score_epsilon is None:
            cost = min(_like(fit) for fit in fits)
        else:
            cost = check.positive("score_epsilon", self.score_epsilon)
        # One row's score moves the sum by at most 1, whether it comes, goes or is replaced.
        self._noise = DiscreteLaplace.for_loss(cost, l1=UNIT)
        return (*fits, self._noise.loss(l1=UNIT, neighbours=relations.pop()))

    @property
    def _nothing(self) -> tuple[Any, Any]:
        """The columns without a row: what a fit costs is fixed before it reads one."""
        none = np.empty(0, np.int64)
        return rows_at(self.X, none), rows_at(self.y, none)

    def _fitted(self, candidate: Mapping[str, Any]) -> Any:
        """On no row at all."""
        return self._copy(candidate).fit(*self._nothing)

    def _copy(self, candidate: Mapping[str, Any]) -> Any:
        return type(self.estimator)(**self.estimator.get_params()).set_params(**candidate)

    def _dealt(self) -> tuple[Any, Any, Any, Any]:
        """Rows to train on and rows to score by, dealt once."""
        if not hasattr(self, "_rows"):
            if self.public is not None:
                self._rows = (self.X, self.y, *self.public)
            else:
                coins = noise.bernoulli(self.held, how_many(self.X))
                fitted, scored = np.flatnonzero(~coins), np.flatnonzero(coins)
                self._rows = (
                    *(rows_at(table, fitted) for table in (self.X, self.y)),
                    *(rows_at(table, scored) for table in (self.X, self.y)),
                )
        return self._rows

    def _once(self, candidate: Mapping[str, Any]) -> tuple[Any, float]:
        X, y, held, truth = self._dealt()
        model = self._copy(candidate).fit(X, y)
        if model.loss_ not in self._expected:
            raise ArgumentError(
                "the loss of this estimator depends on the number of rows: wrap its fit in a "
                "function, and say what a run costs"
            )
        rows = how_many(held)
        total = int(self._scored(model, held, truth).sum()) if rows else 0
        if self.public is not None:
            return model, total / (UNIT * rows)
        return model, (total + int(self._noise.draw(1)[0])) / UNIT

    def _scored(self, model: Any, table: Any, truth: Any) -> Integers:
        """The score of each row, in units."""
        given = model.predict(table)
        if self.metric is not None:
            found = numbers(self.metric(truth, given))
        elif hasattr(model, "classes_"):
            classes = list(model.classes_)
            places = places_in(classes, truth)
            found = (places == places_in(classes, given)) & (places < len(classes))
            found = found.astype(np.float64)
        else:
            low, high = (float(end) for end in model.target_bounds)
            apart = np.clip(numbers(truth), low, high) - np.clip(numbers(given), low, high)
            found = 1 - np.abs(apart) / (high - low)
        if len(found) != how_many(table):
            raise ArgumentError("metric must give one score a row")
        return np.floor(np.clip(np.nan_to_num(found), 0, 1) * UNIT).astype(np.int64)


def _table(given: Any) -> Any:
    """Rows that can be chosen from, of lists as well."""
    return np.asarray(given, object) if isinstance(given, list | tuple) else given


def _like(fit: Loss) -> Fraction:
    """An epsilon of which noise costs about what the fit costs, at most orders."""
    charge = fit.charge
    if charge.rho and not charge.rho_delta:
        return sqrt_lower(2 * charge.rho)
    if charge.epsilon is None:
        raise ArgumentError("score_epsilon must be given for this estimator")
    return charge.epsilon

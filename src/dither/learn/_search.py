"""Choosing hyper-parameters privately: the best of a random number of runs, and what that costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither import noise, privacy
from dither._checks import Number
from dither._format import loss_text, number_text
from dither._stats import greatest_decimal
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.learn._columns import numbers, places_in
from dither.learn._estimator import Estimator
from dither.learn._partition import how_many, rows_at
from dither.learn._runs import Runs
from dither.learn._spending import Spending
from dither.mechanisms import DiscreteLaplace
from dither.numeric import float_up, log_upper, sqrt_lower
from dither.privacy import Charge, Loss
from dither.privacy.laws.rationals import printing_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.ledger import Ledger

__all__ = ["Search", "SearchResult", "search"]

Integers = npt.NDArray[np.int64]
Metric = Callable[[Any, Any], Any]

UNIT = 1 << 10
"""Units of one row's score, which lies in [0, 1]."""

_MOST_CANDIDATES = 100_000
_TRIED = 3
"""How often the epsilon of a run is sought, where candidates turn out to be dearer than others."""


@dataclass(frozen=True)
class SearchResult:
    """The best run of a search. All of it may be published; how long the search took may not.

    Parameters
    ----------
    model : object or None
        Of the best run; None where no run gave one.
    candidate : object
        What it was made from.
    score : float
        Its score, as it was compared: with noise, unless it came from public rows.
    loss : Loss
        What the whole search costs.
    each : Loss
        What one run costs: what somebody would claim who forgets that searching costs.
    runs : Runs
        The law of the number of runs. The number itself is nowhere: it must stay secret.
    delta : Fraction or None
        Where ``loss`` was asked for its epsilon.
    """

    model: Any
    candidate: Any
    score: float
    loss: Loss
    each: Loss
    runs: Runs
    delta: Fraction | None = None

    def costs(self, delta: Number | None = None) -> tuple[float, float]:
        """The epsilon of the search, and of one run, at a delta.

        Parameters
        ----------
        delta : number, optional
            In [0, 1); that of the search where left out.

        Returns
        -------
        (float, float)
            What is charged, and what forgetting the search would claim. Infinity where no epsilon
            is known at this delta.
        """
        asked = self.delta or Fraction(0) if delta is None else delta
        at = printing_at_most(check.exact("delta", asked, least=0, below=1))
        return _epsilon(self.loss, at), _epsilon(self.each, at)

    def summary(self) -> str:
        """What was found, and what it cost beside what forgetting the search would claim.

        Returns
        -------
        str
        """
        true, naive = self.costs()
        found = "no run gave a model" if self.model is None else _shown(self.candidate)
        mean = number_text(self.runs.mean, 3)
        delta = f", δ = {loss_text(self.delta)}" if self.delta else ""
        return "\n".join(
            [
                f"best of a random number of runs, {mean} on average: {found}",
                f"score {number_text(self.score, 4)}",
                f"cost: ε = {loss_text(true)}{delta}; one run alone, ε = {loss_text(naive)}",
                "Model, candidate and score may be published. How long the search took may not: it "
                "tells how many runs there were.",
            ]
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the epsilon of the search beside that of one run, and the law of the runs.

        Parameters
        ----------
        path : str or Path, optional
            Where to write the picture.

        Returns
        -------
        Figure
        """
        from dither.plots._votes import draw_search

        return draw_search(self, path)


@dataclass(frozen=True)
class Search:
    """A search that is fixed before any row is read: what is run, how often, and what it costs.

    Parameters
    ----------
    run : callable
        From a candidate to a model and a score, larger is better.
    candidates : tuple
        One is drawn for each run, uniformly.
    each : tuple of Loss
        What a run may cost.
    runs : Runs
    loss : Loss
        What the search costs.
    public : bool
        Whether an `ArgumentError` of a run tells nothing of the rows, and may be shown.
    """

    run: Callable[[Any], tuple[Any, float]]
    candidates: tuple[Any, ...]
    each: tuple[Loss, ...]
    runs: Runs
    loss: Loss
    public: bool = False

    def best(self) -> tuple[Any, Any, float]:
        """Run it: the model, the candidate and the score of the best run.

        Ties go to the run that was first, which tells nothing, as runs are alike. A run that fails,
        or whose score is not a number, is the worst there is.
        """
        best: tuple[Any, Any, float] = (None, None, -math.inf)
        for place in range(self.runs.draw()):
            candidate = self.candidates[int(noise.below(len(self.candidates), 1)[0])]
            try:
                model, score = self.run(candidate)
                score = float(score)
            except Exception as error:
                if self.public and isinstance(error, ArgumentError):
                    raise
                model, score = None, math.nan
            if math.isnan(score):
                model, score = None, -math.inf
            if place == 0 or score > best[2]:
                best = (model, candidate, score)
        return best

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        each = privacy.pure(log_upper(Fraction(2)))
        for shape in (Fraction(1), Fraction(0)):
            runs = Runs(Fraction(5), shape)
            whole = privacy.repeat_and_select(each, mean=runs.mean, shape=shape)

            def answer(bit: int, size: int, *, runs: Runs = runs, whole: Loss = whole) -> list[int]:
                coins: list[bool] = []

                # A run tells the truth at odds of 2, and is the better the larger what it says.
                def run(_: Any) -> tuple[int, float]:
                    if not coins:
                        coins.extend(noise.bernoulli("1/3", 10_000).tolist())
                    said = 1 - bit if coins.pop() else bit
                    return said, float(said)

                made = cls(run, (0,), (each,), runs, whole)
                return [int(made.best()[0]) for _ in range(size)]

            word = "a search" if shape else "a search with a logarithmic number of runs"
            yield Subject(word, answer, 0, 1, whole.charge.epsilon or 0)


def search(
    run: Any,
    candidates: Mapping[str, Sequence[Any]] | Sequence[Any],
    X: Any = None,
    y: Any = None,
    *,
    loss: Loss | Callable[[Any], Loss] | None = None,
    mean: Number = 10,
    shape: Number | str | None = "geometric",
    epsilon: Number | None = None,
    delta: Number | None = None,
    validation: tuple[Any, Any] | None = None,
    held: Number = Fraction(1, 5),
    score_epsilon: Number | None = None,
    metric: Metric | None = None,
    ledger: Ledger | None = None,
    accounts: str | Sequence[str] = (),
    unit: str | None = None,
    token: str | None = None,
    tables: Mapping[str, str] | None = None,
) -> SearchResult:
    """Choose hyper-parameters privately: draw how often to run, and release the best run alone.

    A thousand private trainings of which the best is shown may give away what none of them does:
    the winner is chosen by looking at the rows. With a *random* number of runs that nobody learns,
    choosing costs two or three times one run, however many candidates there are.

    Parameters
    ----------
    run : estimator or callable
        An estimator of ``dither.learn``, whose copies are fitted with the parameters of a
        candidate; or a function from a candidate to a pair, model and score (larger is better).
    candidates : mapping or sequence
        Of an estimator: values by parameter, all of whose combinations are candidates, or a list of
        mappings. Of a function: a list of whatever it takes.
    X, y : array or data frame, shape (n, d), and array, shape (n,)
        Of an estimator: the private rows.
    loss : Loss or callable
        Of a function: what one run costs, its score included; or a function from a candidate to
        that. The largest counts.
    mean : number
        The expected number of runs, 1 to 10,000.
    shape : number, str or None
        The law of the number: ``"geometric"`` (1), ``"logarithmic"`` (0), another eta above -1 of a
        truncated negative binomial law, or ``"poisson"``. Smaller ones cost less and are less
        steady: with 0 the likeliest number is 1. A Poisson number may be 0, and then there is no
        model.
    epsilon : number, optional
        Of an estimator: what the whole search shall cost, at ``delta``. Each run gets what is then
        left for it, in place of the estimator's own epsilon.
    delta : number, optional
        Where the search's epsilon is stated and charged; that of an estimator where left out.
    validation : (table, array), optional
        Of an estimator: *public* rows to score by. Then scores are exact.
    held : number
        Without those: the chance of each private row to be held out for scoring, in (0, 1).
    score_epsilon : number, optional
        What the noise of such a score costs. Where left out, about what costs a run nothing more,
        since a row is either trained on or scored by.
    metric : callable, optional
        From true and predicted values to one score a row in [0, 1]. Where left out, 1 for the right
        class; for numbers, 1 less the error as a share of ``target_bounds``.
    ledger, accounts, unit, token, tables : optional
        The account that is charged before the first run; as of `Votes.charge_to`.

    Returns
    -------
    SearchResult

    Raises
    ------
    ArgumentError
        An argument is out of range, or nothing finite is known of a run's loss. What rows hold
        raises nothing: a run that fails is the worst.
    BudgetError, PromiseError
        The ledger refuses; nothing was run.

    Notes
    -----
    *Guarantee.* The result is as private as ``.loss`` says, for the neighbours of the runs.
    *Proof.* `dither.privacy.repeat_and_select`; the number of runs is drawn exactly
    (`dither.learn._runs`). A held-out row touches scores alone and a row that is trained on touches
    models alone, by a coin of its own, so that a run costs the larger of the two and not their sum.

    Not covered: the time that the search takes, which tells how many runs there were. The score
    that is shown is that of a winner: it flatters.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022; Liu
    and Talwar, "Private selection from private candidates", STOC 2019.

    Examples
    --------
    >>> from dither import learn, privacy
    >>> from dither.mechanisms import DiscreteLaplace
    >>> noise = DiscreteLaplace.for_loss("1/2", l1=1)
    >>> def run(width):
    ...     score = 100 - width + int(noise.draw(1)[0])  # a count of private rows, with noise
    ...     return f"model of width {width}", score
    >>> found = learn.search(run, [5, 90], loss=noise.loss(l1=1), mean=20)
    >>> found.loss.charge.epsilon, found.each.charge.epsilon
    (Fraction(3, 2), Fraction(1, 2))
    >>> found.candidate in (5, 90)
    True
    """
    runs = Runs.of(mean, shape)
    at = None if delta is None else check.exact("delta", delta, least=0, below=1)
    if hasattr(run, "get_params") and hasattr(run, "fit"):
        if loss is not None:
            raise ArgumentError("loss is an estimator's own: leave it out")
        plan = _Estimators(run, candidates, X, y, validation, held, score_epsilon, metric)
        if at is None:
            at = check.exact("delta", getattr(run, "delta", None) or 0, least=0, below=1)
        made = plan.search(runs, at, epsilon)
    else:
        if not callable(run):
            raise ArgumentError("run must be an estimator of dither.learn, or a function")
        given = (X, y, epsilon, validation, score_epsilon, metric)
        if any(argument is not None for argument in given):
            raise ArgumentError("X, y and how they are scored are for estimators: run gets none")
        listed = _limited(check.listed("candidates", candidates, "candidates"))
        costs = [loss(c) for c in listed] if callable(loss) else [loss]
        if not all(isinstance(one, Loss) for one in costs):
            raise ArgumentError("loss must say what one run costs: a Loss, or a function to one")
        each = tuple(dict.fromkeys(one for one in costs if isinstance(one, Loss)))
        made = Search(run, tuple(listed), each, runs, _whole(each, runs, at))
    if ledger is not None:
        if unit is None:
            raise ArgumentError("unit must name whom the account protects, such as 'patient'")
        named = {} if token is None else {"token": token}
        spending = Spending(ledger, accounts, unit, tables=dict(tables or {}), **named)
        spending.once(made.loss, "search", runs.mean, runs.shape, len(made.candidates))
    model, candidate, score = made.best()
    naive = max(made.each, key=lambda one: _epsilon(one, printing_at_most(at or Fraction(0))))
    return SearchResult(model, candidate, score, made.loss, naive, runs, at or None)


@lru_cache(maxsize=256)
def _whole(each: tuple[Loss, ...], runs: Runs, delta: Fraction | None) -> Loss:
    """The loss of a search; where a delta is named, charged by its epsilon there."""
    whole = privacy.repeat_and_select(each, mean=runs.mean, shape=runs.shape)
    if not delta:
        return whole
    found, known = _epsilon(whole, printing_at_most(delta)), whole.charge.amounts
    if not math.isfinite(found):
        return whole
    exact = Fraction(found)
    if known.epsilon is not None and known.epsilon <= exact and known.delta <= delta:
        return whole
    stated = Charge.approximate(exact, delta)
    if known.rho is not None and not known.rho_delta:
        stated = replace(stated, rho=known.rho, rho_delta=Fraction(0))
    return whole.with_charge(stated)


def _epsilon(loss: Loss, delta: float) -> float:
    """The least epsilon that is known: by the loss, or as it was proved for its charge."""
    charge = loss.charge
    known = charge.epsilon is not None and charge.delta <= Fraction(repr(delta))
    stated = float_up(charge.epsilon) if known and charge.epsilon is not None else math.inf
    try:
        return min(stated, loss.epsilon(delta).upper)
    except ArgumentError:
        return stated


def _limited(candidates: list[Any]) -> list[Any]:
    if len(candidates) > _MOST_CANDIDATES:
        raise ArgumentError(f"candidates must be at most {_MOST_CANDIDATES:,}")
    return candidates


def _grid(candidates: Any) -> list[dict[str, Any]]:
    """The candidates of an estimator, as mappings from parameters to values."""
    if isinstance(candidates, Mapping):
        values = [check.listed(f"candidates[{k!r}]", v, "values") for k, v in candidates.items()]
        if any(isinstance(v, str) for v in candidates.values()):
            raise ArgumentError("candidates must map each parameter to a list of values")
        if math.prod(map(len, values)) > _MOST_CANDIDATES:
            raise ArgumentError(f"candidates must be at most {_MOST_CANDIDATES:,}")
        return [dict(zip(candidates, row, strict=True)) for row in itertools.product(*values)]
    found = _limited(check.listed("candidates", candidates, "mappings"))
    if not all(isinstance(one, Mapping) for one in found):
        raise ArgumentError('candidates must be mappings, such as {"rounds": [5, 10]}')
    return [dict(one) for one in found]


class _Estimators:
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
            return _epsilon(found, asked)

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
            if _epsilon(made.loss, asked) <= most:
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
        return Search(self._once, tuple(full), each, runs, _whole(each, runs, delta), public=True)

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


def _shown(candidate: Any) -> str:
    if isinstance(candidate, Mapping):
        return ", ".join(f"{name}={_plain(value)}" for name, value in candidate.items())
    return _plain(candidate)


def _plain(value: Any) -> str:
    if isinstance(value, Fraction):
        return number_text(value)
    return repr(value)[:60]

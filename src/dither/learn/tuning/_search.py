"""Choosing hyper-parameters privately: the best of a random number of runs, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, loss_text, number_text
from dither.errors import ArgumentError
from dither.learn._spending import Spending
from dither.learn.tuning._estimators import Estimators, Metric
from dither.learn.tuning._plan import Search, epsilon_of, limited, whole_loss
from dither.learn.tuning._runs import Runs
from dither.privacy import Loss
from dither.privacy.laws.rationals import printing_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.ledger import Ledger

__all__ = ["SearchResult", "search"]


@dataclass(frozen=True)
class SearchResult(Printable):
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
        return epsilon_of(self.loss, at), epsilon_of(self.each, at)

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
        from dither.plots.learn._votes import draw_search

        return draw_search(self, path)


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
    (`dither.learn.tuning._runs`). A held-out row touches scores alone and a row that is trained on
    touches models alone, by a coin of its own, so that a run costs the larger of the two and not
    their sum.

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
        plan = Estimators(run, candidates, X, y, validation, held, score_epsilon, metric)
        if at is None:
            at = check.exact("delta", getattr(run, "delta", None) or 0, least=0, below=1)
        made = plan.search(runs, at, epsilon)
    else:
        if not callable(run):
            raise ArgumentError("run must be an estimator of dither.learn, or a function")
        given = (X, y, epsilon, validation, score_epsilon, metric)
        if any(argument is not None for argument in given):
            raise ArgumentError("X, y and how they are scored are for estimators: run gets none")
        listed = check.listed("candidates", candidates, "candidates")
        limited(len(listed))
        costs = [loss(c) for c in listed] if callable(loss) else [loss]
        if not all(isinstance(one, Loss) for one in costs):
            raise ArgumentError("loss must say what one run costs: a Loss, or a function to one")
        each = tuple(dict.fromkeys(one for one in costs if isinstance(one, Loss)))
        made = Search(run, tuple(listed), each, runs, whole_loss(each, runs, at))
    if ledger is not None:
        if unit is None:
            raise ArgumentError("unit must name whom the account protects, such as 'patient'")
        named = {} if token is None else {"token": token}
        spending = Spending(ledger, accounts, unit, tables=dict(tables or {}), **named)
        spending.once(made.loss, "search", runs.mean, runs.shape, len(made.candidates))
    model, candidate, score = made.best()
    naive = max(made.each, key=lambda one: epsilon_of(one, printing_at_most(at or Fraction(0))))
    return SearchResult(model, candidate, score, made.loss, naive, runs, at or None)


def _shown(candidate: Any) -> str:
    if isinstance(candidate, Mapping):
        return ", ".join(f"{name}={_plain(value)}" for name, value in candidate.items())
    return _plain(candidate)


def _plain(value: Any) -> str:
    if isinstance(value, Fraction):
        return number_text(value)
    return repr(value)[:60]

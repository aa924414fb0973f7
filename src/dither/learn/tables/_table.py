"""Learning from a protected table: ``session.table("visits").learn(epsilon=1)``.

A model may be explained and previewed free of charge; a release charges the ledger once, before a
row is read. What it reads is decided by the engine, on which the rows lie: of each unit at most
``max_rows`` rows, each as its cells of the columns that the model names
(`dither.query.tables._counts`). They stay in this process, and what leaves of them is what the
model's own proof counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dither import _checks as check
from dither.errors import ArgumentError
from dither.learn.tables._additive import AdditiveQuestion, additive_from
from dither.learn.tables._bayes import BayesQuestion, bayes_from
from dither.learn.tables._forest import ForestQuestion, forest_from
from dither.learn.tables._model import LearnedModel, damaged, read_content
from dither.learn.tables._regression import LinearQuestion, LogisticQuestion, regression_from

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["Learning", "load"]

_READERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "additive": additive_from,
    "forest": forest_from,
    "linear": regression_from,
    "logistic": regression_from,
    "naive_bayes": bayes_from,
}
"""By kind: how a model is made of plain data."""


def load(path: str | Path) -> LearnedModel:
    """Read a model that `LearnedModel.save` wrote.

    Nothing in the file is run: it is text. A file that was changed is refused; whether the model is
    the one that was paid for, ``dither verify`` says of its certificate.

    Parameters
    ----------
    path : path

    Raises
    ------
    ArgumentError
        Where there is no such file, or it is not a model.
    """
    content = read_content(path)
    try:
        found = LearnedModel(content, _READERS[content["kind"]])
        found.summary()
    except Exception:
        raise damaged(path) from None
    return found


class Learning:
    """What a table's rows may teach: each method gives a question, released at this price.

    Made by ``session.table("visits").learn(epsilon=1)``.

    Parameters
    ----------
    rows : TableQuery
        Of a private table, after filters and joins.
    epsilon, delta : number
        What each release may cost.
    max_rows : int, optional
        How many rows of one unit count.

    Notes
    -----
    *Guarantee.* Each release is (epsilon, delta)-differentially private for the policy's unit and
    neighbours. Columns, their bounds and their values are the policy's; one that has no public
    domain is refused, with what to declare.
    """

    _asks: ClassVar[frozenset[str]] = frozenset(
        {"additive", "forest", "naive_bayes", "linear", "logistic"}
    )
    """The methods that others may name (`dither.session._recipe`)."""

    def __init__(
        self, rows: TableQuery, epsilon: Any, delta: Any = None, max_rows: int | None = None
    ) -> None:
        self._rows, self._epsilon, self._delta = rows, check.positive("epsilon", epsilon), delta
        self._max_rows = None if max_rows is None else check.whole("max_rows", max_rows, 1)

    def additive(self, formula: str, *, bins: int = 32, rounds: int = 10) -> AdditiveQuestion:
        """A classifier or a regression that is a sum of one curve a column: the one to try first.

        Parameters
        ----------
        formula : str
            ``"readmitted ~ age + cost + region"``: the column that is predicted, and those that it
            is predicted from; ``"readmitted ~ ."`` for all others. What is predicted has declared
            values, or is a boolean, for classes; or is a number with bounds.
        bins : int
            Into how many ranges the values of a number are joined, about; 2 to 1024.
        rounds : int
            How often each column is fitted.

        Returns
        -------
        AdditiveQuestion
            Its ``explain`` and ``preview`` are free; its ``release`` is charged.

        Raises
        ------
        ArgumentError, BoundsError
            The formula cannot be read, or a column has no public domain. Nothing is spent.
        """
        return AdditiveQuestion(
            self._rows,
            self._epsilon,
            self._delta,
            formula,
            bins=bins,
            rounds=rounds,
            max_rows=self._max_rows,
        )

    def forest(
        self,
        formula: str,
        *,
        n_estimators: int = 16,
        max_depth: int = 5,
        max_features: int = 4,
        splits: str = "auto",
    ) -> ForestQuestion:
        """A random forest: for columns that tell only together.

        Parameters
        ----------
        formula : str
            As of `additive`: a classifier where what is predicted has declared values or is a
            boolean, a regression where it is a number with bounds.
        n_estimators, max_depth, max_features : int
        splits : {"auto", "drawn"}
            As of `RandomForestClassifier`.

        Returns
        -------
        ForestQuestion
            ``delta`` may be 0: then noise is of Laplace's law, and there is much more of it.

        Raises
        ------
        ArgumentError, BoundsError
            The formula cannot be read, or a column has no public domain. Nothing is spent.
        """
        return ForestQuestion(
            self._rows,
            self._epsilon,
            self._delta,
            formula,
            n_estimators=n_estimators,
            max_depth=max_depth,
            max_features=max_features,
            splits=splits,
            max_rows=self._max_rows,
        )

    def naive_bayes(self, formula: str) -> BayesQuestion:
        """Naive Bayes: counts, means and variances of each class, for a quick look at classes.

        Parameters
        ----------
        formula : str
            As of `additive`. What is predicted has declared values, or is a boolean. A number with
            bounds has a normal law in each class; a column of declared values or bins, or of dates,
            has shares of its cells.

        Returns
        -------
        BayesQuestion
            ``delta`` may be 0: then noise is of Laplace's law.

        Raises
        ------
        ArgumentError, BoundsError
            The formula cannot be read, a column has no public domain, or what is predicted is a
            number. Nothing is spent.
        """
        return BayesQuestion(
            self._rows, self._epsilon, self._delta, formula, max_rows=self._max_rows
        )

    def linear(self, formula: str) -> LinearQuestion:
        """Linear regression by formula, from exact sums in the engine: `Inference.regression`.

        Parameters
        ----------
        formula : str
            Such as ``"cost ~ age + C(region)"``.

        Returns
        -------
        LinearQuestion
            Of a unit with several rows the average of each column counts, and ``max_rows`` is the
            policy's.
        """
        if self._max_rows is not None:
            raise ArgumentError(
                "max_rows does not go with a linear regression: of a unit with several rows the "
                "average counts, within the policy's limits"
            )
        return LinearQuestion(self._rows, self._epsilon, self._delta, formula)

    def logistic(self, formula: str) -> LogisticQuestion:
        """Logistic regression by formula: a few noisy scores (`inference.logistic_regression`).

        Parameters
        ----------
        formula : str
            Such as ``"readmitted ~ age + C(region)"``. What is predicted is a boolean, or a number
            that is declared to be 0 or 1.

        Returns
        -------
        LogisticQuestion
        """
        return LogisticQuestion(
            self._rows, self._epsilon, self._delta, formula, max_rows=self._max_rows
        )

    def __repr__(self) -> str:
        kinds = ("additive", "forest", "naive_bayes", "logistic", "linear")
        return f"<learning from rows: {', '.join(f'.{kind}(formula)' for kind in kinds)}>"

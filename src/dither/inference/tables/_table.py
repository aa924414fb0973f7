"""Inference on protected tables: ``session.table("visits").infer(epsilon=0.5).mean("cost")``.

Each method makes one question of exact sums. It passes the same plan, engine, noise, ledger and
certificate as every query, in one charge; what it releases enters the models of this package with
the law of its noise. Errors, intervals at any confidence and p-values then cost nothing.

Where a column says whose a row is, each person counts once, with the average of their rows: in one
group, by a keyed hash, where there are groups. So what is sampled is people, who are independent,
and not rows, which are not; and one person moves the sums by no more than one row would.

How the budget is divided. A person at a bound moves Σ t, Σ (t² - 1/2) and n at once, by all that
each of them can move, so that under neighbours that are added or removed dividing epsilon among the
three loses nothing against releasing them jointly. Cells of a table are released jointly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dither import _checks as check
from dither.errors import ArgumentError, QueryError, nearest
from dither.inference.engine._errors import DRAWS
from dither.inference.estimates._mean import SHAPES, Shape
from dither.inference.estimates._quantiles import BINS, shares_of
from dither.inference.tables._compare import QuestionComparison, compared
from dither.inference.tables._described import DescriptionQuestion, asked_description
from dither.inference.tables._designs import (
    difference_design,
    known_share_design,
    mean_design,
    measured_share_design,
    quantile_design,
    table_design,
)
from dither.inference.tables._logistic import LogisticInference
from dither.inference.tables._question import EstimatorDesign, InferenceQuestion
from dither.inference.tables._rates import RateQuestions
from dither.inference.tables._regression import asked_formula, moment_terms, regression_design
from dither.inference.tables._several import (
    anova_design,
    groups_of,
    most_of,
    weighted_design,
    weighted_terms,
)
from dither.inference.tables._survival import SurvivalQuestions
from dither.query.tables import _statistics as st
from dither.session._factories import INFERENCE

if TYPE_CHECKING:
    from dither.query._builder import TableQuery
    from dither.query._question import Question

__all__ = ["Inference"]

# What of the budget each sum gets. A mean far from the middle of its bounds rests on n as well.
_OF_MEAN = {"total": Fraction(11, 20), "n": Fraction(6, 20), "square": Fraction(3, 20)}
_OF_SIDES = Fraction(2, 20)

_GROUPED = "in one of its groups"


class Inference(SurvivalQuestions, RateQuestions):
    """Questions about the people that a table's rows were sampled from.

    Made by ``session.table("visits").infer(epsilon=0.5)``, after filters and joins. Each method
    gives an `InferenceQuestion`: nothing is charged until its ``release``.

    Examples
    --------
    >>> import dither as dt, numpy as np, polars as pl, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> cost = np.random.default_rng(1).normal(40, 12, 5000)
    >>> session = dt.open(
    ...     {"budget": {"epsilon": 2, "ledger": folder.name + "/demo.ledger"},
    ...      "tables": {"visits": {"columns": {"cost": {"bounds": [0, 100]}}}}},
    ...     sources={"visits": pl.DataFrame({"cost": cost})},
    ... )
    >>> question = session.table("visits").infer(epsilon=1).mean("cost")
    >>> found = question.release()
    >>> lower, upper = found.interval(0.999999)
    >>> lower < 40 < upper
    True
    >>> session.close(); folder.cleanup()
    """

    _asks: ClassVar[frozenset[str]] = frozenset(INFERENCE)
    """The methods that others may name (`dither.session._recipe`)."""

    def __init__(self, rows: TableQuery, epsilon: Fraction, delta: Any) -> None:
        self._rows, self._epsilon, self._delta = rows, epsilon, delta
        self._unit = st.unit_of(rows)

    def __repr__(self) -> str:
        kinds = (Inference, SurvivalQuestions, RateQuestions)
        names = [name for kind in kinds for name in vars(kind) if not name.startswith("_")]
        asked = ", ".join(f".{name}" for name in names)
        return f"<inference about people: {asked}>"

    def mean(self, x: str, *, shape: Shape = "any", null: float = 0.0) -> InferenceQuestion:
        """The mean of a number with declared bounds.

        Parameters
        ----------
        x : str
            A column or an expression. Rows in which it is missing are left out.
        shape : {"any", "normal"}
            "any": nothing is assumed of the values, and their mean is that of the clamped ones; of
            a person with several rows, the average of theirs counts. "normal", where a row is a
            person: values are normal before they are clamped, and what clamping takes from the
            mean is given back unless the released numbers beyond the bounds contradict.
        null : float
            What ``pvalue`` tests.

        Raises
        ------
        QueryError, BoundsError
            It is not a number, or has no bounds.
        """
        return self._mean_of(x, shape, check.number("null", null), f"mean of {x}")

    def proportion(self, condition: str, *, null: float = 0.5) -> InferenceQuestion:
        """The share of people of whom something is true.

        Parameters
        ----------
        condition : str
            A boolean column, a number declared to be 0 or 1, or a condition such as
            ``"age >= 65"``. Rows in which it is unknown are left out. Of a person with several
            rows, the share of them counts.
        null : float
            In [0, 1]: what ``pvalue`` tests.
        """
        against = check.number("null", null, least=0, most=1)
        title = f"proportion with {condition}"
        x = st.Variable.of(self._rows, condition)
        truth = x.truth
        if self._unit is not None:
            return self._share_of_people(x, against, title)

        def counted(xs: Sequence[st.Variable]) -> dict[str, st.Request]:
            return {
                "n": (st.SumTerm.count(), Fraction(1)),
                "yes": (st.SumTerm.yes(xs[0]), Fraction(1)),
            }

        question, scales = st.ask(self._rows, [x], counted)
        if st.public_size(question):
            return self._made(title, question, scales, known_share_design(title, against))
        text = condition if truth is x.expression else f"({x.part}) <> 0"
        question, scales = st.ask(self._rows, [x], _counts, [text])
        return self._made(title, question, scales, measured_share_design(title, against))

    def median(self, x: str, *, bins: int = BINS, null: float = 0.0) -> InferenceQuestion:
        """The median of a number with declared bounds: `quantile` at 1/2.

        Parameters
        ----------
        x : str
            A column or an expression.
        bins : int
            As of `quantiles`.
        null : float
            What ``pvalue`` tests.
        """
        against = check.number("null", null)
        return self._ranks_of(x, (0.5,), None, bins, against, f"median of {x}")

    def quantile(
        self, x: str, probability: float, *, bins: int = BINS, null: float = 0.0
    ) -> InferenceQuestion:
        """The value below which a share of the people lies, with an interval of order statistics.

        Parameters
        ----------
        x : str
            A number with declared bounds. Rows in which it is missing are left out. Of a person
            with several rows, each row counts as much as any other of theirs, and all together as
            much as one person's only row.
        probability : float
            In (0, 1): 0.9 is the value that nine in ten lie below.
        bins : int
            As of `quantiles`.
        null : float
            What ``pvalue`` tests.

        Raises
        ------
        QueryError, BoundsError
            It is not a number, or has no bounds.
        """
        shares, against = shares_of([probability]), check.number("null", null)
        return self._ranks_of(x, shares, None, bins, against, f"{shares[0]:g}-quantile of {x}")

    def quantiles(
        self, x: str, probabilities: Sequence[float] = (0.25, 0.5, 0.75), *, bins: int = BINS
    ) -> InferenceQuestion:
        """Several quantiles of one release, which costs no more than one.

        Parameters
        ----------
        x : str
            As of `quantile`.
        probabilities : sequence of float
            In (0, 1).
        bins : int
            Into how many equal parts the bounds are divided at most: no answer is finer. From 2 to
            4,096.
        """
        shares = shares_of(probabilities)
        names = tuple(f"{q:g}" for q in shares)
        return self._ranks_of(x, shares, names, bins, 0.0, f"quantiles of {x}")

    def difference(
        self,
        x: str,
        by: str,
        *,
        levels: Sequence[Any] | None = None,
        shape: Shape = "any",
        null: float = 0.0,
    ) -> InferenceQuestion:
        """How much the mean of a number differs between two groups: the second less the first.

        Parameters
        ----------
        x : str
            A number with declared bounds.
        by : str
            What tells the groups apart: a column with declared values, bins, or a condition. Who
            is in which group is as private as the number.
        levels : (first, second), optional
            The two groups, where there are more; by default they are in declared order, and false
            comes before true.
        shape : {"any", "normal"}
            As of `mean`.
        null : float
            The difference that ``pvalue`` tests.
        """
        rows, pair = self._two(by, levels)
        against, kind = check.number("null", null), self._shape(shape)
        number = st.Variable.of(rows, x)
        ends = number.ends
        title = f"difference of means of {x} by {by}, {_said(pair[1])} minus {_said(pair[0])}"
        question, scales = st.ask(
            rows,
            [number, st.Variable.of(rows, by)],
            lambda v: _mean_terms(v[:1], kind),
            [by],
            pair if levels is not None else None,
        )
        design = difference_design(title, ends, kind, against, self._assumed(_GROUPED))
        return self._made(title, question, scales, design)

    def test_independence(self, x: str, y: str, *, draws: int = DRAWS) -> InferenceQuestion:
        """Pearson's χ² test that two columns have nothing to do with each other.

        Parameters
        ----------
        x, y : str
            Columns with declared values or bins, or conditions. What is undeclared or missing is
            left out.
        draws : int
            Simulated tables under the null, 100 to 10**6.
        """
        draws = check.draws(draws)
        pair = [st.Variable.of(self._rows, text) for text in (x, y)]
        shape = tuple(len(v.levels) for v in pair)
        question, scales = st.ask(self._rows, pair, _counts, [x, y])
        title = f"test that {x} and {y} are independent"
        design = table_design(
            title,
            f"{x} and {y} are independent",
            shape,
            None,
            draws,
            self._assumed(_GROUPED),
        )
        return self._made(title, question, scales, design)

    def goodness_of_fit(
        self, x: str, probabilities: Mapping[Any, float] | None = None, *, draws: int = DRAWS
    ) -> InferenceQuestion:
        """Pearson's χ² test that the levels of a column have the probabilities that are said.

        Parameters
        ----------
        x : str
            A column with declared values or bins, or a condition.
        probabilities : mapping of level to number, optional
            Above 0, for every level; scaled to add up to 1. By default all are equal.
        draws : int
            Simulated tables under the null, 100 to 10**6.
        """
        draws = check.draws(draws)
        variable = st.Variable.of(self._rows, x)
        levels = variable.levels
        chances = np.full(len(levels), 1.0)
        if probabilities is not None:
            if not isinstance(probabilities, Mapping) or set(probabilities) != set(levels):
                raise ArgumentError(
                    f"probabilities must be one number for each level of {x}: "
                    + ", ".join(map(repr, levels))
                )
            chances = np.array(
                [check.number("probabilities", probabilities[v], above=0) for v in levels]
            )
        question, scales = st.ask(self._rows, [variable], _counts, [x])
        title = f"goodness of fit of {x}"
        null = f"the levels of {x} have these probabilities"
        assumed = self._assumed(_GROUPED)
        design = table_design(title, null, (len(levels),), chances / chances.sum(), draws, assumed)
        return self._made(title, question, scales, design)

    def regression(self, formula: str, *, method: str = "moments") -> InferenceQuestion:
        """Linear regression by formula: coefficients, intervals, R² and predictions of one release.

        Parameters
        ----------
        formula : str
            Such as ``"cost ~ age + C(region)"``: sums, ``*`` and ``:`` of columns with declared
            bounds and of factors with declared values, the first as reference; ``I``, ``abs`` and
            ``+ - * **`` of numbers. Rows in which one is missing, or has a level that was not
            declared, are left out. Of a person with several rows, the average of each column and
            of the response counts.
        method : {"moments", "functional"}
            "functional" is the functional mechanism, for comparison: Laplace noise of one scale on
            the coefficients of the sum of squared residuals, and a ridge. It spends no delta.

        Raises
        ------
        ArgumentError, QueryError, BoundsError
            The formula cannot be read or names what the table does not have, or a column has
            neither bounds nor declared values.
        """
        functional = check.choice("method", method, ("moments", "functional")) == "functional"
        rows, read, variables = asked_formula(self._rows, formula)
        assumed = self._assumed()
        if self._unit is not None:
            assumed += ("averages of few rows scatter no more than those of many",)
        title = f"linear regression {read.formula}" + ", functional mechanism" * functional
        question, scales = st.ask(rows, variables, lambda v: moment_terms(v, functional))
        design = regression_design(title, read, assumed, functional)
        delta = 0 if functional else self._delta
        return InferenceQuestion(title, question, scales, self._epsilon, delta, design)

    def logistic_regression(self, formula: str) -> LogisticInference:
        """Logistic regression by formula: coefficients of the log odds, intervals and predictions.

        Parameters
        ----------
        formula : str
            Such as ``"readmitted ~ age + C(region)"``: the response is a boolean, or a number that
            is declared to be 0 or 1; columns are as of `regression`. Rows in which one is missing
            or not declared are left out. Of a person with several rows one counts, chosen by a
            keyed hash.

        Returns
        -------
        LogisticInference
            Its release is a `LogisticEstimate`, as `inference.logistic_regression` gives it. It
            takes a delta: a few noisy scores leave, and the information at the end.

        Raises
        ------
        ArgumentError, QueryError, BoundsError
            The formula cannot be read or names what the table does not have, a column has neither
            bounds nor declared values, or there is no delta.
        """
        return LogisticInference(self._rows, self._epsilon, self._delta, formula, self._unit)

    def describe(
        self, by: str | None = None, columns: Sequence[str] = (), *, bins: int = 256
    ) -> DescriptionQuestion:
        """ "Table 1" of a paper in one charge: who is in the table, by group and in all.

        Of each number with declared bounds the mean, standard deviation, median and quartiles; of
        each column with declared values counts and shares; with groups, standardised differences
        from the first one.

        Parameters
        ----------
        by : str, optional
            The column of the groups, with declared values or bins. Who is in which is private.
        columns : sequence of str, optional
            Which columns; by default all that have declared bounds or values.
        bins : int
            Into how many parts bounds are divided at most for quartiles. From 2 to 4,096.

        Raises
        ------
        QueryError, BoundsError
            A column is not there, or neither bounds nor values of it are declared.

        Notes
        -----
        The charge is split evenly among the moments of each number, the ranks of each number and
        the counts of each category. Of a person with several rows one counts, the same in every
        column, chosen by a keyed hash. What is missing in a column is left out of that column.
        """
        return asked_description(self._rows, by, columns, bins, self._epsilon, self._delta)

    def f_oneway(
        self,
        x: str,
        by: str,
        *,
        levels: Sequence[Any] = (),
        equal_var: bool = True,
        draws: int = DRAWS,
    ) -> InferenceQuestion:
        """Analysis of variance: whether a number has one mean in several groups.

        Parameters
        ----------
        x : str
            A number with declared bounds, whose values are clamped to them.
        by : str
            What tells the groups apart: a column with declared values, bins, or a condition. Who
            is in which group is as private as the number.
        levels : sequence, optional
            Some of the groups, at least two, where not all; they must be values and not bins.
        equal_var : bool
            Whether the groups have one variance. If not, it is Welch's analysis of variance.
        draws : int
            Simulated releases under the null, 100 to 10**6.
        """
        number, rows, chosen = groups_of(self._rows, x, by, levels)
        pooled, size = check.flag("equal_var", equal_var), check.draws(draws)
        variables = [number, st.Variable.of(rows, by)]
        question, scales = st.ask(
            rows, variables, lambda v: _mean_terms(v[:1], "any"), [by], chosen
        )
        count = len(chosen or variables[1].levels)
        title = f"mean of {x} by {by}, " + (
            "analysis of variance" if pooled else "Welch's analysis of variance"
        )
        design = anova_design(title, number.ends, count, pooled, size, self._assumed(_GROUPED))
        return self._made(title, question, scales, design)

    def weighted_mean(self, x: str, weights: str, *, null: float = 0.0) -> InferenceQuestion:
        """The weighted mean of a number, with survey weights whose bound is declared.

        Parameters
        ----------
        x : str
            A number with declared bounds. Rows in which it or the weight is missing are left out.
        weights : str
            A number with declared bounds from 0 on: its upper bound is what weights are clamped
            to. Of a person with several rows, the averages of weight and of weight times value
            count.
        null : float
            What ``pvalue`` tests.

        Raises
        ------
        QueryError, BoundsError
            Either is not a number, or has no bounds; or a weight may be below 0.
        """
        against = check.number("null", null)
        return self._weighted(x, weights, f"weighted mean of {x}", against, total=False)

    def weighted_proportion(
        self, condition: str, weights: str, *, null: float = 0.5
    ) -> InferenceQuestion:
        """The weighted share of people of whom something is true.

        Parameters
        ----------
        condition : str
            As of `proportion`.
        weights : str
            As of `weighted_mean`.
        null : float
            In [0, 1]: what ``pvalue`` tests.
        """
        against = check.number("null", null, least=0, most=1)
        truth = st.Variable.of(self._rows, condition)
        text = f"CASE WHEN {truth.part} THEN 1 ELSE 0 END"
        if truth.truth is not truth.expression:
            text = condition
        # What is unknown would count as no.
        rows = st.complete(self._rows, truth)
        inner = Inference(replace(rows, once=False), self._epsilon, self._delta)
        title = f"weighted proportion with {condition}"
        return inner._weighted(text, weights, title, against, total=False)

    def weighted_total(self, x: str, weights: str, *, null: float = 0.0) -> InferenceQuestion:
        """The weighted total of a number: of a population, where weights say whom rows stand for.

        Parameters
        ----------
        x : str
            As of `weighted_mean`; ``"1"`` is no column: ask for a share or a mean, or declare a
            column of ones.
        weights : str
            As of `weighted_mean`.
        null : float
            What ``pvalue`` tests.
        """
        against = check.number("null", null)
        return self._weighted(x, weights, f"weighted total of {x}", against, total=True)

    def compare(
        self,
        ways: Mapping[str, InferenceQuestion],
        *,
        people: int = 10_000,
        confidence: float = 0.95,
    ) -> QuestionComparison:
        """Compare questions before anything is spent or read: what each reaches, and its cost.

        Parameters
        ----------
        ways : mapping from names to questions
            Made by the methods of this object, or of another with another budget.
        people : int
            How many there are taken to be, in all groups together.
        confidence : float
            Of the intervals.

        Returns
        -------
        AskedComparison
            A table as text, or as ``frame``.

        Raises
        ------
        ArgumentError
            ``ways`` is not such a mapping, or an argument is out of range.

        Notes
        -----
        It is `InferenceQuestion.preview` of each: values are taken to be spread evenly over their
        bounds. `dither.inference.compare` compares ways on rows of a shape of your own.
        """
        return compared(ways, people, confidence)

    # --- what the methods share ---------------------------------------------------------------

    def _made(
        self,
        title: str,
        question: Question,
        scales: Mapping[str, Fraction],
        design: EstimatorDesign,
    ) -> InferenceQuestion:
        return InferenceQuestion(title, question, scales, self._epsilon, self._delta, design)

    def _mean_of(self, x: str, shape: Shape, null: float, title: str) -> InferenceQuestion:
        kind = self._shape(shape)
        variable = st.Variable.of(self._rows, x)
        ends = variable.ends
        question, scales = st.ask(self._rows, [variable], lambda v: _mean_terms(v, kind))
        return self._made(
            title,
            question,
            scales,
            mean_design(title, ends, kind, null, self._assumed()),
        )

    def _weighted(
        self, x: str, weights: str, title: str, null: float, *, total: bool
    ) -> InferenceQuestion:
        number, weight = (st.Variable.of(self._rows, text) for text in (x, weights))
        ends, most = number.ends, most_of(weight)
        question, scales = st.ask(self._rows, [number, weight], weighted_terms)
        design = weighted_design(title, ends, most, null, self._assumed(), total=total)
        return self._made(title, question, scales, design)

    def _ranks_of(
        self,
        x: str,
        shares: tuple[float, ...],
        names: tuple[str, ...] | None,
        bins: int,
        null: float,
        title: str,
    ) -> InferenceQuestion:
        most = check.whole("bins", bins, 2, 4096)
        variable = st.Variable.of(self._rows, x)
        _ = variable.ends

        def ranks(variables: Sequence[st.Variable]) -> dict[str, st.Request]:
            return {"below": (st.SumTerm.ranks(variables[0], most), Fraction(1))}

        question, scales = st.ask(self._rows, [variable], ranks)
        grid = st.grid(question, self._epsilon, self._delta)
        assumed = self._assumed("its rows with equal weight")
        design = quantile_design(title, grid, shares, names, null, assumed)
        return self._made(title, question, scales, design)

    def _share_of_people(self, x: st.Variable, null: float, title: str) -> InferenceQuestion:
        """The mean over people of the share of their rows in which something is true."""
        text = f"CASE WHEN {x.part} THEN 1 ELSE 0 END"
        if x.truth is not x.expression:
            text = x.text
        rows = st.complete(self._rows, x)
        inner = Inference(replace(rows, once=False), self._epsilon, self._delta)
        return inner._mean_of(text, "any", null, title)

    def _shape(self, shape: Shape) -> Shape:
        check.choice("shape", shape, SHAPES)
        if shape == "normal" and self._unit is not None:
            raise ArgumentError(
                "shape must be 'any' where a person may have several rows: averages of clamped "
                "values are not clamped normal values"
            )
        return shape

    def _two(self, by: str, levels: Sequence[Any] | None) -> tuple[TableQuery, tuple[Any, ...]]:
        """The rows of two groups, and their levels."""
        variable = st.Variable.of(self._rows, by)
        declared = variable.levels
        if levels is None:
            if len(declared) != 2:
                raise QueryError(
                    f"{by} has {len(declared)} levels: name two of them, levels=(first, second)"
                )
            return self._rows, declared
        pair = tuple(levels) if isinstance(levels, Iterable) and not isinstance(levels, str) else ()
        if len(pair) != 2 or pair[0] == pair[1]:
            raise ArgumentError("levels must be two different levels, (first, second)")
        for value in pair:
            if value not in declared:
                raise ArgumentError(
                    f"levels: {value!r} is not a declared level of {by}"
                    + nearest(str(value), [str(v) for v in declared])
                )
        return st.among(self._rows, variable, pair), pair

    def _assumed(self, how: str = "with the average of its rows") -> tuple[str, ...]:
        if self._unit is None:
            return ("rows are an independent sample",)
        once = f"each {self._unit} counts once, {how}"
        return f"people, identified by {self._unit}, are an independent sample", once


def _said(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _counts(_: Sequence[st.Variable]) -> dict[str, st.Request]:
    return {"n": (st.SumTerm.count(), Fraction(1))}


def _mean_terms(variables: Sequence[st.Variable], shape: Shape) -> dict[str, st.Request]:
    (x,) = variables
    found = {
        "total": (st.SumTerm.total(x), _OF_MEAN["total"]),
        "square": (st.SumTerm.square(x), _OF_MEAN["square"]),
        "n": (st.SumTerm.count(), _OF_MEAN["n"]),
    }
    if shape == "normal":
        found |= {side: (st.SumTerm.beyond(x, side), _OF_SIDES) for side in ("below", "above")}
    return found

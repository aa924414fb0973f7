"""Asking in Python: rows of a table, until ``agg`` or another method makes them a question.

What is asked for are the small values of ``dither.query._aggregates``. What other packages make of
rows (models, synthetic tables) they say there, and are loaded where they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from dither import _checks as check
from dither._extras import check_library
from dither.errors import ArgumentError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.schema import Kind
from dither.query._aggregates import AggregateRequest, bins, count
from dither.query._question import Question
from dither.query._table_rows import TableRows
from dither.session._factories import factory
from dither.sql import Names, parse_released
from dither.sql.names import suffix

if TYPE_CHECKING:
    from dither.inference.tables._table import Inference
    from dither.learn.tables._table import Learning
    from dither.synth.linked._model import LinkedModel
    from dither.synth.model._result import SyntheticModel
    from dither.synth.tables._comparison import ComparisonQuestion
    from dither.synth.tables._hierarchy import HierarchyQuestion
    from dither.synth.tables._linked import LinkedSynthesis
    from dither.synth.tables._marginals import MarginalsQuestion
    from dither.synth.tables._ranges import RangesQuestion
    from dither.synth.tables._synthesis import Synthesis

__all__ = ["TableQuery"]


@dataclass(frozen=True, slots=True, repr=False)
class TableQuery(TableRows):
    """Rows of a table, on the way to a question. Every method gives a new one.

    Examples
    --------
    >>> import dither as dt, polars as pl, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> session = dt.open(
    ...     {"budget": {"epsilon": 1, "ledger": folder.name + "/demo.ledger"},
    ...      "tables": {"people": {"columns": {"age": {"bounds": [0, 110]}}}}},
    ...     sources={"people": pl.DataFrame({"age": [31, 44, 58]})},
    ... )
    >>> question = session.table("people").filter("age >= 40").agg(n=dt.count())
    >>> print(question.sql)
    SELECT COUNT(*) AS n FROM people WHERE age >= 40
    >>> session.close(); folder.cleanup()
    """

    _asks: ClassVar[frozenset[str]] = frozenset(
        {
            "filter",
            "select",
            "per_unit",
            "union_all",
            "join",
            "unnest",
            "group_by",
            "agg",
            "unreadable",
            "histogram",
            "compare",
            "infer",
            "learn",
            "marginals",
            "hierarchy",
            "ranges",
            "synthesis",
            "linked_synthesis",
        }
    )
    """The methods that others may name (`dither.session._recipe`)."""

    def agg(
        self,
        *,
        max_groups: int | AggregateRequest | None = None,
        max_rows: int | AggregateRequest | None = None,
        **outputs: AggregateRequest | Sequence[AggregateRequest] | str,
    ) -> Question:
        """Ask for aggregates, each under its keyword's name.

        Parameters
        ----------
        max_groups, max_rows : int, optional
            How many groups one unit may count in, and with how many rows in each, in place of the
            policy's limits; never above its caps. Larger ones cut less, and take more noise.
        **outputs : ``dt.count()``, ``100 * dt.mean("cost")``, ``"ROUND(AVG(cost), 1)"``, ...
            Aggregates, what is calculated from them, or either as text in SQL's words, which may
            also name the outputs before it.

        Raises
        ------
        QueryError
            Where the question cannot be answered as asked.
        """
        limits: dict[str, int] = {}
        for name, limit in (("max_groups", max_groups), ("max_rows", max_rows)):
            if isinstance(limit, AggregateRequest):
                outputs[name] = limit  # an output of that name
            elif limit is not None:
                limits[name] = check.whole(name, limit, 1)
        made: list[ag.Output] = []
        for name, asked in outputs.items():
            if isinstance(asked, str):
                made.append(ag.Output(name, self._released(asked, made)))
                continue
            if isinstance(asked, list | tuple) and asked:
                for one in asked:
                    found = one.make(self._read)
                    made.append(ag.Output(f"{name}_{suffix(found)}", found, one.weight))
                continue
            if not isinstance(asked, AggregateRequest):
                raise ArgumentError(
                    f"{name} must be an aggregate such as dt.count(), or SQL such as 'AVG(cost)'"
                )
            made.append(ag.Output(name, asked.make(self._read), asked.weight))
        return self.measure(made, **limits)

    def unreadable(self, *columns: str) -> Question:
        """Ask which share of what is there cannot be read: of text that is no number, say.

        Parameters
        ----------
        *columns : str
            Columns of the table. Of each: of the rows in which it says anything, the share whose
            value is NULL once it is read as the policy declares it, since it cannot be read, or is
            none of the declared values.

        Returns
        -------
        Question
            With one output a column, ``unreadable_NAME``; it is explained, previewed and charged as
            any other. Each is the mean of ``UNREADABLE(NAME)``, which is 0 or 1.

        Raises
        ------
        QueryError
            Where a column is not one of a table of the policy, or says who is protected.

        Notes
        -----
        One row changes the sum by 1 at most and the count by 1; with a unit, its rows count within
        ``max_groups`` and ``max_rows``.

        Examples
        --------
        >>> import dither as dt, polars as pl, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> columns = {"cost": {"type": "real", "bounds": [0, 100]}}
        >>> session = dt.open(
        ...     {"budget": {"epsilon": 1e9, "ledger": folder.name + "/demo.ledger"},
        ...      "tables": {"bills": {"columns": columns}}},
        ...     sources={"bills": pl.DataFrame({"cost": ["1", "1,234.50", "7", None, "9"]})},
        ... )
        >>> session.table("bills").unreadable("cost").release(1e6).frame["unreadable_cost"][0]
        0.25
        >>> session.close(); folder.cleanup()
        """
        if not columns:
            raise ArgumentError("columns: name at least one, as in unreadable('cost')")
        made: list[ag.Output] = []
        for name in columns:
            column = Names(self.relation, self.schema).column(name, exact=True)
            share = ex.Call("cast", (ex.Unreadable(column),), (Kind.INTEGER.value,))
            made.append(ag.Output(f"unreadable_{name}", ag.Mean(share)))
        return self.measure(made)

    def measure(
        self,
        outputs: Sequence[ag.Output],
        max_groups: int | None = None,
        max_rows: int | None = None,
    ) -> Question:
        """The question of outputs that are planned already."""
        kind = ag.QueryOfUnits if self.once else ag.Query
        return self.ask(
            kind(
                self.relation,
                self.keys,
                tuple(outputs),
                discover=self.discover,
                sets=self.sets,
                flags=self.flags,
                consistent=self.consistent,
                words=self._written,
                max_groups=max_groups,
                max_rows=max_rows,
            )
        )

    def compare(
        self,
        synthetic: object,
        tables: int | Sequence[Sequence[str]],
        epsilon: Any,
        delta: Any = None,
        *,
        columns: Sequence[str] | None = None,
        cells: int | Mapping[str, int] = 32,
        max_rows: int | None = None,
    ) -> ComparisonQuestion:
        """Measure how far a synthetic table is from these rows: total variation of some tables.

        ``dt.synth.compare`` reads the real table without noise, for its owner; what this releases
        may be handed out. A distance is one number, however many cells its table has.

        Parameters
        ----------
        synthetic : DataFrame
            It is taken to be public.
        tables : int or sequence of sequence of str
            All tables of so many columns, up to 3, or those named.
        epsilon, delta : number
            What the release may cost; delta is the policy's ``release_delta`` where left out, and
            noise is Laplace where it is 0.
        columns : sequence of str, optional
            Of the tables, where they are not named.
        cells : int or mapping of str to int
            Into how many cells bounds are cut at most.
        max_rows : int, optional
            How many rows of one unit count.

        Returns
        -------
        ComparisonQuestion
            Its ``release`` charges, and gives distances with intervals.
        """
        self._before_keys("compare")
        asked: ComparisonQuestion = factory("compare")(
            self, synthetic, tables, epsilon, delta, columns=columns, cells=cells, max_rows=max_rows
        )
        return asked

    def infer(self, epsilon: Any, delta: Any = None) -> Inference:
        """Ask about the people that the rows were sampled from: estimates, intervals and tests.

        Parameters
        ----------
        epsilon, delta : number
            What each release may cost; delta is the policy's ``release_delta`` where left out.

        Returns
        -------
        Inference
            Its methods (``.mean("cost")``, ``.difference("cost", by="group")``, ...) give
            questions that are explained and previewed free of charge, and released at this price.

        Raises
        ------
        MissingLibraryError
            Where SciPy is not installed, which the extra ``inference`` brings.
        """
        check_library("scipy", "inference", "estimates and tests need")
        self._before_keys("infer")
        asked: Inference = factory("infer")(self, check.positive("epsilon", epsilon), delta)
        return asked

    def learn(self, epsilon: Any, delta: Any = None, *, max_rows: int | None = None) -> Learning:
        """Ask for a model of these rows: explained, previewed, charged once, and handed out.

        Parameters
        ----------
        epsilon, delta : number
            What each release may cost; delta is the policy's ``release_delta`` where left out, and
            must be above 0.
        max_rows : int, optional
            How many rows of one unit count, in place of the policy's limit; never above its cap.

        Returns
        -------
        Learning
            Its methods (``.additive("readmitted ~ age + cost")``, ...) give questions that are
            explained and previewed free of charge, and released at this price.
        """
        self._before_keys("learn")
        asked: Learning = factory("learn")(self, epsilon, delta, max_rows)
        return asked

    def marginals(
        self,
        tables: int | Sequence[Sequence[str]],
        epsilon: Any,
        delta: Any = None,
        *,
        columns: Sequence[str] | None = None,
        objective: str = "mean",
        weights: Sequence[Any] | None = None,
        cells: int | Mapping[str, int] = 32,
        max_rows: int | None = None,
    ) -> MarginalsQuestion:
        """Ask for tables of counts, at once: consistent, unbiased, of least error.

        Parameters
        ----------
        tables : list of lists of str, or int
            The columns of each table; or how many columns each has, of all such tables.
        epsilon, delta : number
            What all of them together may cost; delta is the policy's ``release_delta`` where left
            out, and must be above 0.
        columns : list of str, optional
            With a number of columns in place of ``tables``: those to choose from, else all but the
            one that says whose a row is.
        objective : {"mean", "largest"}
            What is made least: the mean variance of a cell, over the tables, or the largest.
        weights : list of number, optional
            Above 0: how much the variance of each table counts. Alike where left out.
        cells : int or mapping of str to int
            Into how many bins or periods a column that has bounds alone is cut at most.
        max_rows : int, optional
            How many rows of one unit count, in place of the policy's limit; never above its cap.

        Returns
        -------
        MarginalsQuestion
            With ``explain`` and ``preview``, which are free, and ``release``.

        Raises
        ------
        ArgumentError, BoundsError
            A table cannot be asked for, or a column has no public domain.
        """
        self._before_keys("marginals")
        asked: MarginalsQuestion = factory("marginals")(
            self,
            tables,
            epsilon,
            delta,
            columns=columns,
            objective=objective,
            weights=weights,
            cells=cells,
            max_rows=max_rows,
        )
        return asked

    def hierarchy(
        self,
        levels: Sequence[str],
        by: Sequence[str] = (),
        *,
        epsilon: Any,
        delta: Any = None,
        places: str | None = None,
        invariants: Mapping[str, str] | None = None,
        division: Any = "cells",
        totals: Any = Fraction(1, 10),
        cells: Any = 32,
        max_rows: int | None = None,
    ) -> HierarchyQuestion:
        """Count every place of several levels by cells, such that all levels add up.

        Parameters
        ----------
        levels : sequence of str
            The widest first, such as ``["country", "state", "county"]``: columns of a public table
            with one row for each place of the last level. Only that one is a column of these rows;
            what it lies in, the public table says.
        by : sequence of str
            Columns that each place is counted by, of declared values, bins, bounds or dates.
        epsilon, delta : number
            What a release may cost; delta is the policy's ``release_delta`` where left out. With 0
            the noise is discrete Laplace.
        places : str, optional
            The public table, where several have these columns.
        invariants : mapping of str to str, optional
            By level: the column of a public table (``"population"``, or ``"table.column"``) that
            says how many each place has. It is taken as exact and is not protected.
        division : {"cells", "levels"} or mapping of str to number
            How the budget is divided: such that the sum of the variances of all noisy counts is
            least, evenly over levels, or by the shares that are given.
        totals : number
            In [0, 1): which part of each level's share measures how many each place has in all.
        cells : int or mapping of str to int
            Into how many bins or periods bounds of ``by`` are cut at most.
        max_rows : int, optional
            How many rows of one unit count, in place of the policy's; never above its cap.

        Returns
        -------
        HierarchyQuestion
            Its ``explain`` and ``preview`` are free; its ``release`` is charged.

        Raises
        ------
        ArgumentError, BoundsError
            Levels are not nested or not public, a column has no public cells, or invariants
            contradict one another. Nothing is spent.
        """
        self._before_keys("hierarchy")
        asked: HierarchyQuestion = factory("hierarchy")(
            self,
            levels,
            by,
            epsilon=epsilon,
            delta=delta,
            places=places,
            invariants=invariants,
            division=division,
            totals=totals,
            cells=cells,
            max_rows=max_rows,
        )
        return asked

    def ranges(
        self,
        x: str,
        *,
        epsilon: Any,
        delta: Any = None,
        bins: int = 1024,
        max_rows: int | None = None,
    ) -> RangesQuestion:
        """Count every range of an ordered column by one release: consistent, with exact variances.

        Parameters
        ----------
        x : str
            A number or date with declared bounds or bins, or with values in rising order.
        epsilon, delta : number
            What a release may cost; delta is the policy's ``release_delta`` where left out. With 0
            the noise is discrete Laplace.
        bins : int
            Into how many bins or periods bounds are cut at most.
        max_rows : int, optional
            How many rows of one unit count, in place of the policy's; never above its cap.

        Returns
        -------
        RangesQuestion
            Its ``explain`` and ``preview`` are free; its ``release`` is charged, and gives
            ``count(lower, upper)``.

        Raises
        ------
        ArgumentError, BoundsError
            The column has no public cells, or no order. Nothing is spent.
        """
        self._before_keys("ranges")
        asked: RangesQuestion = factory("ranges")(
            self, x, epsilon=epsilon, delta=delta, bins=bins, max_rows=max_rows
        )
        return asked

    def synthesis(self, epsilon: Any, delta: Any = None, **asked: Any) -> Synthesis:
        """A synthetic table of these rows: explained and previewed before it is paid for.

        Parameters
        ----------
        epsilon, delta, **asked
            As of `synthesize`.

        Returns
        -------
        Synthesis
            With ``explain()``, ``preview()``, ``loss`` and ``release()``.
        """
        self._before_keys("synthesis")
        made: Synthesis = factory("synthesis")(self, epsilon, delta, **asked)
        return made

    def synthesize(
        self,
        epsilon: Any,
        delta: Any = None,
        *,
        method: str = "auto",
        workload: Any = None,
        columns: Sequence[str] | None = None,
        cells: Any = 32,
        max_rows: int | None = None,
        max_bytes: int = 2**20,
        zeros: Sequence[Mapping[str, Any]] = (),
        known: Mapping[Any, Mapping[Any, Any]] | None = None,
        total: Any = None,
        inside: str = "uniform",
        rules: Sequence[str | Mapping[str, Any]] = (),
        token: str | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> SyntheticModel:
        """Charge the ledger, and make a model of these rows that may be handed out.

        Parameters
        ----------
        epsilon, delta : number
            What it may cost; delta is the policy's ``release_delta`` where left out.
        method : {"auto", "aim", "mst", "independent", "workload"}
            How the tables to measure are chosen. AIM suits a workload and gives the best tables;
            MST is a tree of pairs, and quick; "independent" measures each column by itself. "auto"
            is AIM, or each column by itself where these say that rows are too few for pairs.
            "workload" measures the tables of the workload and chooses nothing, for analyses that
            rest on them. AIM and MST count values that are rare beside the noise of their column
            together in tables of several columns, and tell them apart by that column alone.
        workload : int, list of lists of str, or mapping of tuple of str to int, optional
            The tables to be right: all of so many columns, or those that are named, with weights.
            All triples where left out, of many columns all pairs.
        columns : sequence of str, optional
            All but the one that says whose a row is, where left out.
        cells : int or mapping of str to int
            Into how many bins or periods the bounds of a number or a date are cut at most.
        max_rows : int, optional
            How many rows of one unit count, in place of the policy's; never above its cap.
        max_bytes : int
            What the model's tables may take, at most the memory that there is; larger ones know
            more and take longer.
        zeros : list of mapping, optional
            Combinations that no row has: by column a value or a list of them, or of a column with
            bins the pair of a lower and an upper edge, as in ``{"age": (0, 15), "married": True}``.
        known : mapping, optional
            Tables of counts that are public, taken as given: by column, or tuple of columns, the
            count of each value, or tuple of values. They must not come from the data.
        total : number, optional
            The number of rows, where it is public.
        inside : {"uniform", "tree"}
            Where numbers lie inside their bins: anywhere, or as a private tree of finer bins says,
            which takes a tenth of the budget.
        rules : list of str or mapping, optional
            What every row keeps, taken as public: comparisons of sums, as ``"end >= start"``,
            ``"total = food + rent"`` or ``"0 <= left - came <= 30"``; a column that fixes another,
            as ``{"if": "zip", "then": "state", "map": {"02139": "MA"}}``; and the combinations
            that there are, as ``{"columns": ["sex", "ward"], "allowed": [["f", 1], ["m", 2]]}``.
            A comparison with NULL is kept. Rules that contradict the public domain or one another
            are refused by name.
        token : str, optional
            Names the request. Asked again with it, the stored model comes back, and nothing is
            charged.
        progress : callable, optional
            Told how far it is, after every table.

        Returns
        -------
        SyntheticModel

        Raises
        ------
        BoundsError
            Where a column has no public domain: says what to declare.
        BudgetError
            Where an account cannot bear it; nothing is spent.

        Notes
        -----
        *Guarantee.* (epsilon, delta)-differential privacy for the policy's unit and neighbours,
        whatever is asked of the model afterwards (`dither.synth._spending` has the proof).
        """
        asked = self.synthesis(
            epsilon,
            delta,
            method=method,
            workload=workload,
            columns=columns,
            cells=cells,
            max_rows=max_rows,
            max_bytes=max_bytes,
            zeros=zeros,
            known=known,
            total=total,
            inside=inside,
            rules=rules,
        )
        return asked.release(token=token, progress=progress)

    def linked_synthesis(
        self, children: Mapping[str, Any], epsilon: Any, delta: Any = None, **asked: Any
    ) -> LinkedSynthesis:
        """Linked tables: explained and previewed before they are paid for.

        Parameters
        ----------
        children, epsilon, delta, **asked
            As of `synthesize_linked`.

        Returns
        -------
        LinkedSynthesis
            With ``explain()``, ``preview()``, ``loss`` and ``release()``.
        """
        self._before_keys("linked_synthesis")
        made: LinkedSynthesis = factory("linked")(self, children, epsilon, delta, **asked)
        return made

    def synthesize_linked(
        self,
        children: Mapping[str, Any],
        epsilon: Any,
        delta: Any = None,
        *,
        columns: Sequence[str] | None = None,
        cells: Any = 32,
        rules: Sequence[str | Mapping[str, Any]] = (),
        max_bytes: int = 2**20,
        token: str | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> LinkedModel:
        """Charge the ledger once, and make a model of this table and of those below it.

        Parameters
        ----------
        children : mapping of str to mapping
            By table whose rows belong to rows of this one: ``most`` (how many one row has at most,
            required), ``order`` (the date or whole number that orders them, so that gaps and what
            the row before had are kept), ``key`` (the column that rows further below refer to),
            ``on`` (the column that refers to the row above, of tables below the second),
            ``columns``, ``gaps`` (where their cells begin), ``max_rows`` (rows of a unit that
            count), ``rules``, and ``children``, alike. This table has one row for each unit, and
            all tables name the unit and ``max_join_rows`` in the policy.
        epsilon, delta : number
            What all of it may cost; delta is the policy's ``release_delta`` where left out.
        columns : sequence of str, optional
            Of this table.
        cells : int or mapping of str to int
            Into how many bins or periods bounds are cut at most, in all tables.
        rules : list of str or mapping, optional
            What every row of this table keeps, as of `synthesize`.
        max_bytes : int
            What the model of each table may take.
        token, progress
            As of `synthesize`.

        Returns
        -------
        LinkedModel
            Its ``sample()`` gives a frame for each table, with keys that join.

        Raises
        ------
        ArgumentError, BoundsError
            Where tables do not fit together, or a column has no public cells; nothing is spent.
        BudgetError
            Where an account cannot bear it; nothing is spent.

        Notes
        -----
        *Guarantee.* (epsilon, delta)-differential privacy for whole units: one that is added or
        removed with all of its rows in all tables (`dither.synth.tables._linked` has the proof).
        """
        asked = self.linked_synthesis(
            children, epsilon, delta, columns=columns, cells=cells, rules=rules, max_bytes=max_bytes
        )
        return asked.release(token=token, progress=progress)

    def histogram(self, x: str, edges: Sequence[float | int | str | Fraction]) -> Question:
        """Count rows per range of a number: ``group_by(dt.bins(x, edges)).agg(count=...)``."""
        return self.group_by(bins(x, edges)).agg(count=count())

    def _released(self, text: str, before: Sequence[ag.Output]) -> ag.AggregateFunction:
        """A released value in SQL's words."""
        columns: dict[str, Any] = {key.name: key.expression for key in self.keys}
        columns |= {output.name: output.aggregate for output in before}
        names, grouped = Names(self.relation, self.schema), [k.expression for k in self.keys]
        found, words = parse_released(text, names, columns, grouped)
        self.words.append(words)
        return found

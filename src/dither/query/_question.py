"""A question: explained and previewed free of charge, released at its price.

It is long because all that can be done with a question is documented at its methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from dither import _checks as check
from dither._depth import deep
from dither._format import remaining
from dither.errors import (
    ArgumentError,
    DitherError,
    nearest,
)
from dither.plan.aggregates import Query
from dither.plan.expressions import Expression
from dither.plan.job import Job
from dither.plan.lowering.lower import Plan, lower
from dither.plan.relations import scans
from dither.plan.released import apply
from dither.plan.text import Words
from dither.policy._canonical import form
from dither.policy._facts import Fact, used_by
from dither.policy._fields import LARGEST_EPSILON
from dither.privacy import Charge, Loss
from dither.query._certificate import measurement_record
from dither.query._explain import Explanation, explain
from dither.query._noise import NoisePlan, Noisy, add_noise, plan_noise, without_groups
from dither.query._preview import Preview, budget_for, check_sizes, has_width, preview
from dither.query._release import Release, release_data
from dither.session._opened import UNSTORED, OpenedPolicy
from dither.session._pricing import Affordable
from dither.session._recipe import QuestionRecipe
from dither.session._request import (
    AnsweredRequest,
    Request,
    UnreleasedQuestion,
    largest_that_fits,
)
from dither.session.dummies._marked import marked
from dither.sql import Names, parse_order, parse_released, part_of, to_sql

if TYPE_CHECKING:
    from dither.query._top_up import TopUpQuestion

__all__ = ["Question"]

Number = int | float | str | Fraction


class Question(UnreleasedQuestion):
    """One query of a session, made by ``session.sql`` or ``session.table(...).agg``.

    ``explain``, ``preview`` and ``budget_for`` use public facts only, and are free. ``release``
    charges the ledger, then reads the data.
    """

    _gives = (Release,)

    _asks: ClassVar[frozenset[str]] = frozenset(
        {"within", "having", "order_by", "limit", "topping_up"}
    )
    """The methods that others may name (`dither.session._recipe`)."""

    def __init__(self, plan: Plan, opened: OpenedPolicy) -> None:
        self._plan = plan
        self._opened = opened
        # Those that the plan was made with: what is learned later is for later questions.
        self._facts: tuple[Fact, ...] = ()
        if opened.facts:
            self._facts = used_by(plan.query, opened.policy, opened.facts)

    @cached_property
    def sql(self) -> str:
        """The question as SQL."""
        return to_sql(self._plan.query, self._plan.schema)

    def within(
        self,
        *,
        max_groups: int | None = None,
        max_rows: int | None = None,
        by_block: bool | None = None,
    ) -> Question:
        """The same question with limits of its own on what one unit contributes.

        Parameters
        ----------
        max_groups, max_rows : int, optional
            How many groups one unit may count in, and with how many rows in each; those that it has
            where left out.
        by_block : bool, optional
            Where a key of the question says in which block a row lies, such as the month under a
            budget for each month: whether each block is asked by itself, which is the default. Then
            both limits are of one unit in one block, epsilon is what each block bears, and the
            lifetime and quotas bear it once for each. With False one unit is limited, and protected
            for one epsilon, over all blocks together.

        Raises
        ------
        QueryError
            Where one is above the policy's cap, or has no meaning, since a row is the unit.

        Notes
        -----
        Every limit protects a unit equally: the noise is computed from the limits that are
        enforced.
        """
        limits = {"max_groups": max_groups, "max_rows": max_rows}
        given = {name: check.whole(name, n, 1) for name, n in limits.items() if n is not None}
        query = self._plan.query
        if by_block is not None and not isinstance(by_block, bool):
            raise ArgumentError("by_block must be True or False")
        if not given and by_block in (None, query.by_block):
            return self
        return self._asking(
            replace(
                query,
                max_groups=given.get("max_groups", query.max_groups),
                max_rows=given.get("max_rows", query.max_rows),
                by_block=query.by_block if by_block is None else by_block,
            )
        )

    def having(self, condition: str) -> Question:
        """The same question, of which only groups with such released values are shown.

        Parameters
        ----------
        condition : str
            Of columns of the release, keys and aggregates, as in ``"n > 100 AND AVG(cost) < 50"``.
            With those that it has already, both must hold.

        Returns
        -------
        Question

        Notes
        -----
        It reads noisy values and changes nothing of what is charged. Near its limit a group is
        shown or left out by chance, which the intervals of the groups that are shown do not allow
        for.
        """
        query = self._plan.query
        found, words = parse_released(condition, *self._released)
        both = found if query.having is None else apply("AND", query.having, found)
        return self._asking(replace(query, having=both, words=_either(words, query.words)))

    def order_by(self, *columns: str) -> Question:
        """The same question, its groups sorted by released values.

        Parameters
        ----------
        *columns : str
            Columns of the release, keys and aggregates, as in ``"n DESC", "region"``.
        """
        query = self._plan.query
        if not columns:
            raise ArgumentError("order_by needs at least one column of the release")
        order = parse_order(", ".join(map(part_of, columns)), *self._released)
        return self._asking(replace(query, order=order))

    def limit(self, rows: int, offset: int = 0) -> Question:
        """The same question, of which only some groups are shown, in the order it has.

        Parameters
        ----------
        rows, offset : int
            How many are shown, after how many that are not.
        """
        shown, left = check.whole("rows", rows, 0), check.whole("offset", offset, 0)
        return self._asking(replace(self._plan.query, limit=shown, offset=left))

    @property
    def _released(self) -> tuple[Names, dict[str, Any], list[Expression]]:
        """What a text about released values may name."""
        query = self._plan.query
        columns = {key.name: key.expression for key in query.keys}
        outputs = {output.name: output.aggregate for output in query.outputs}
        names = Names(query.relation, self._plan.schema)
        return names, columns | outputs, list(columns.values())

    def _asking(self, query: Query) -> Question:
        """Another question of the same keys."""
        made = Question(lower(query, self._plan.schema), self._opened)
        made._facts = self._facts
        return made

    def _beside(self, plan: Plan) -> Question:
        """A question with a plan of its own, under the same policy."""
        return Question(plan, self._opened)

    @deep()
    def explain(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        max_groups: int | None = None,
        max_rows: int | None = None,
    ) -> Explanation:
        """Explain the plan: unit, stability, bounds and sensitivity; with epsilon, also the noise.

        Parameters
        ----------
        epsilon : number, optional
            Above 0; floats are read as they print, so 0.1 is one tenth.
        delta : number, optional
            In [0, 1); the policy's ``release_delta`` where left out.
        max_groups, max_rows : int, optional
            How many groups one unit may count in, and with how many rows in each, in place of the
            policy's limits; never above its caps. Larger ones cut less, and take more noise.

        Returns
        -------
        Explanation
            ``str()`` is a tree for a terminal; in a notebook it shows as HTML.
        """
        asked = self.within(max_groups=max_groups, max_rows=max_rows)
        noise_plan = None if epsilon is None else asked._noise_plan(epsilon, delta)
        learned = [fact.text for fact in asked._facts]
        return explain(asked._plan, noise_plan, [*learned, *asked._known_cuts()])

    @deep()
    def preview(
        self,
        epsilon: Number,
        delta: Number | None = None,
        *,
        sizes: Sequence[int] = (100, 1_000, 10_000),
        confidence: float = 0.95,
        max_groups: int | None = None,
        max_rows: int | None = None,
    ) -> Preview:
        """How wide the intervals will be, before anything is spent or read.

        Parameters
        ----------
        epsilon, delta : number
            As for ``release``.
        sizes : sequence of int
            Public sizes of a group, in rows.
        confidence : float
            Of the intervals.
        max_groups, max_rows : int, optional
            As for ``release``.

        Returns
        -------
        Preview
            Half-widths for each output and size; for discovered keys, the odds of being missed.
        """
        asked = self.within(max_groups=max_groups, max_rows=max_rows)
        return preview(asked._noise_plan(epsilon, delta), sizes, confidence)

    @deep()
    def budget_for(
        self,
        half_width: Number | Mapping[str, Number],
        *,
        size: int = 1_000,
        delta: Number | None = None,
        confidence: float = 0.95,
        max_groups: int | None = None,
        max_rows: int | None = None,
    ) -> Fraction:
        """The smallest epsilon whose intervals are at most ``half_width`` to either side.

        Parameters
        ----------
        half_width : number, or mapping of output name to number
            What is wanted, in the output's own unit.
        size : int
            The public size of a group, in rows.
        delta, confidence, max_groups, max_rows
            As for ``release``.

        Returns
        -------
        Fraction
            Of three significant digits, so that asking for it keeps the promise.

        Raises
        ------
        ArgumentError
            Where no epsilon up to 1000 reaches it.
        """
        outputs = zip(self._plan.query.outputs, self._plan.recipes, self._plan.kinds, strict=True)
        names = [o.name for o, recipe, kind in outputs if has_width(recipe, kind)]
        if not isinstance(half_width, Mapping):
            half_width = dict.fromkeys(names, half_width)
        for name in half_width:
            if name not in names:
                raise ArgumentError(
                    f"half_width: no output {name!r} with a half-width" + nearest(name, names)
                )
        wanted = {name: float(_wide(w)) for name, w in half_width.items()}
        check_sizes([size], "size")
        confidence = check.confidence(confidence)
        asked = self.within(max_groups=max_groups, max_rows=max_rows)
        return budget_for(
            lambda epsilon: asked._noise_plan(epsilon, delta), wanted, size, confidence
        )

    @deep()
    def loss(self, epsilon: Number, delta: Number | None = None) -> Loss:
        """What a release would lose, before anything is spent or read.

        Parameters
        ----------
        epsilon, delta : number
            As for ``release``.

        Returns
        -------
        Loss
            With its promise. It composes with the losses of other releases about the same unit;
            its ``charge`` is what the ledger would be charged.
        """
        return self._noise_plan(epsilon, delta).loss

    @deep()
    def affordable(self, epsilon: Number, delta: Number | None = None) -> Affordable:
        """How many more like this can be paid, in numbers; nothing is charged.

        Parameters
        ----------
        epsilon, delta : number
            As for ``release``.

        Returns
        -------
        Affordable
            ``times``, by the tightest of all accounts, blocks and quotas; and by each of them. It
            is exact, by both rules of their filters, as long as nobody else asks.
        """
        self._opened.check_open()
        return self._asked_at(epsilon, delta).affordable()

    def _asked_at(self, epsilon: Number, delta: Number | None, confidence: float = 0.95) -> Request:
        """What a release at this price asks for."""
        return self._request(epsilon, delta, check.confidence(confidence))

    @property
    def _as_asked(self) -> QuestionRecipe:
        """How it is asked: in SQL, where nothing else is known."""
        if self._recipe is not None:
            return self._recipe
        query = self._plan.query
        weights = {o.name: o.weight for o in query.outputs if o.weight != 1}
        named = {"weights": weights or None, "discover": query.discover}
        return QuestionRecipe(()).then("sql", (self.sql,), named)

    @deep()
    def release(
        self,
        epsilon: Number,
        delta: Number | None = None,
        *,
        confidence: float = 0.95,
        token: str | None = None,
        reuse: bool | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
    ) -> Release:
        """Charge the ledger, run the query, add noise.

        Parameters
        ----------
        epsilon : number
            What the release may cost; above 0. Floats are read as they print.
        delta : number, optional
            In [0, 1); the policy's ``release_delta`` where left out. Not used where the noise is
            pure and keys are public.
        confidence : float
            Of the intervals, in (0, 1).
        token : str, optional
            Names the request. Asked again with the same token, the stored answer comes back and
            nothing is charged.
        reuse : bool, optional
            Whether the newest of `published` will do, free of charge; what the policy says in
            ``[releases]`` where left out. Where it is True and there is none, sums of a finer table
            that was released at the same price will do as well (`from_finer`), which are noisier.
        max_groups, max_rows : int, optional
            How many groups one unit may count in, and with how many rows in each, in place of the
            policy's limits; never above its caps. Larger ones cut less, and take more noise.

        Returns
        -------
        Release

        Raises
        ------
        QueryError
            Where a limit is above the policy's cap, or has no meaning, since a row is the unit.
        BudgetError
            Where an account cannot bear it: says what remains, and what would fit. Nothing is
            spent.
        EngineError
            Where the engine fails after the charge. The charge stays.

        Notes
        -----
        The release is (epsilon, delta)-differentially private for the neighbours that ``explain``
        names. The charge is on the disk before the engine starts, because from then on the time it
        takes, or a crash, may reveal something.
        """
        if max_groups is not None or max_rows is not None:
            asked = self.within(max_groups=max_groups, max_rows=max_rows)
            return asked.release(epsilon, delta, confidence=confidence, token=token, reuse=reuse)
        self._opened.check_open()
        request = self._request(epsilon, delta, check.confidence(confidence))
        if reuse is True and token is None and not request.published():
            from dither.query._finer import finer_published

            found = finer_published(self, request)
            if found is not None:
                return found
        return self._read(request.release(token, reuse, lambda: self._as_asked))

    @deep()
    def published(
        self,
        epsilon: Number,
        delta: Number | None = None,
        *,
        confidence: float = 0.95,
        max_groups: int | None = None,
        max_rows: int | None = None,
    ) -> list[Release]:
        """Earlier answers to this very question at this price, of this policy; free of charge.

        Parameters
        ----------
        epsilon, delta, confidence, max_groups, max_rows
            As for ``release``.

        Returns
        -------
        list of Release
            Oldest first; ``notes`` say when each was charged. An analyst sees those that were
            released to them, or to everybody, as the policy says in ``[releases]``.
        """
        asked = self.within(max_groups=max_groups, max_rows=max_rows)
        request = asked._request(epsilon, delta, check.confidence(confidence))
        return [asked._read(one) for one in request.published()]

    @deep()
    def from_finer(self, release: Release, *, confidence: float | None = None) -> Release:
        """Answer this question by sums of a finer table that was released; free of charge.

        Nothing is read but that answer, as the ledger has it.

        Parameters
        ----------
        release : Release
            An answer of this ledger that you may see, to a question with the same FROM, WHERE and
            limits, grouped by all keys of this one and more, all of them public.
        confidence : float, optional
            Of the intervals, in (0, 1); that of ``release`` where left out.

        Returns
        -------
        Release
            Sums of its cells, each with the interval of the sum of their noises; its certificate is
            that of ``release``, and ``notes`` say of which entry.

        Raises
        ------
        ArgumentError
            Where it is no answer of this ledger and policy that you may see.
        QueryError
            Where this question does not follow by sums, and why: of distinct people or values, of
            medians, of means whose sums and counts were not both released, of keys that were
            discovered, of other rows or limits.

        Notes
        -----
        *Guarantee.* Post-processing of what was released. Limits hold in the cells of the finer
        table: somebody with rows in many is left out of some, where this question asked directly
        would leave out others. The noise of k cells is wider by the root of k.

        Examples
        --------
        >>> import polars as pl
        >>> from tempfile import mkdtemp
        >>> import dither as dt
        >>> columns = {name: {"values": ["a", "b"], "nullable": False} for name in ("x", "y")}
        >>> policy = {
        ...     "budget": {"epsilon": 1, "ledger": mkdtemp() + "/rows.ledger"},
        ...     "tables": {"rows": {"columns": columns}},
        ... }
        >>> rows = pl.DataFrame({"x": ["a", "a", "b"], "y": ["a", "b", "b"]})
        >>> with dt.open(policy, sources={"rows": rows}) as session:
        ...     finer = session.sql("SELECT x, y, COUNT(*) AS n FROM rows GROUP BY x, y").release(1)
        ...     sums = session.sql("SELECT COUNT(*) AS n FROM rows").from_finer(finer)
        >>> sums.frame["n"].item() == finer.frame["n"].sum()
        True
        """
        from dither.query._finer import from_finer

        self._opened.check_open()
        return from_finer(self, release, confidence)

    @deep()
    def top_up(
        self,
        release: Release,
        to_rho: Number | None = None,
        *,
        epsilon: Number | None = None,
        same_data: bool = False,
        token: str | None = None,
    ) -> Release:
        """Make an answer of this question more exact, for what that costs more.

        An independent answer is charged, measured and averaged with the earlier one, by inverse
        variances. The mean is as exact as one answer at ``to_rho``.

        Parameters
        ----------
        release : Release
            An earlier answer of this ledger to this question, with Gaussian noise: counts and sums
            by declared keys.
        to_rho : number, optional
            The rho, as of zCDP, that both answers cost together; above that of ``release``.
        epsilon : number, optional
            In its place: the rho that this epsilon allows at the release's delta.
        same_data : bool
            Says that the data are as they were. Needed where certificates do not have the version
            of the data, as without the owner's key.
        token : str, optional
            As for ``release``.

        Returns
        -------
        Release
            Its certificate is that of the second answer, and names the first.

        Raises
        ------
        ArgumentError
            Where it is an answer to something else, the target is no higher, or the data changed.
        QueryError
            Where the noise is not Gaussian, or an output is not a count or a sum.
        BudgetError
            Where an account cannot bear the difference. Nothing is spent.

        Notes
        -----
        *Guarantee.* The second answer is (to_rho - rho)-zCDP for the unit and the neighbours of
        ``explain``, and that is charged; the mean of two releases is post-processing.
        """
        self._opened.check_open()
        asked = self.topping_up(release, to_rho, epsilon=epsilon, same_data=same_data)
        return asked.release(token=token, reuse=False)

    @deep()
    def topping_up(
        self,
        release: Release,
        to_rho: Number | None = None,
        *,
        epsilon: Number | None = None,
        same_data: bool = False,
    ) -> TopUpQuestion:
        """The question that `top_up` releases: explained, previewed and priced free of charge.

        Parameters
        ----------
        release, to_rho, epsilon, same_data
            As of `top_up`.

        Returns
        -------
        TopUpQuestion

        Raises
        ------
        ArgumentError, QueryError
            As `top_up`.
        """
        from dither.query._top_up import TopUpQuestion

        return TopUpQuestion(self, release, to_rho, epsilon, same_data)

    def _request(self, epsilon: Number, delta: Number | None, confidence: float) -> Request:
        """What a release asks for."""
        noise_plan = self._noise_plan(epsilon, delta)
        requested = {
            "epsilon": str(noise_plan.epsilon),
            "delta": str(noise_plan.delta),
            "confidence": str(check.exact("confidence", confidence)),
        }
        return Request(
            self._opened,
            form(self._plan.query),
            requested,
            noise_plan.loss,
            noise_plan.promise,
            note=self._note,
            tables=self._tables,
            record=lambda: measurement_record(noise_plan, self.sql, self._facts),
            run=lambda secret: self._data(
                noise_plan, self._measured(noise_plan, confidence, secret), confidence
            ),
            fits=lambda: self._what_fits(noise_plan),
            facts=self._facts,
            jobs=lambda: self._jobs,
            schema=self._plan.schema,
            blocks=self._plan.blocks,
            rehearsal=partial(self._without_groups, noise_plan, confidence),
            unwritable=(
                "the answer to this question could not be written down; nothing was charged. Give "
                "its keys and outputs plain names"
            ),
        )

    def _read(self, answered: AnsweredRequest) -> Release:
        data = dict(answered.content)
        if not answered.stored:
            data["notes"] = [*data["notes"], UNSTORED]
        return marked(Release(data, replayed=answered.replayed), data["certificate"])

    def _without_groups(
        self, noise_plan: NoisePlan, confidence: float, certificate: Mapping[str, Any]
    ) -> dict[str, Any]:
        """An answer without groups, as the ledger and the frame will hold the real one."""
        self.sql.encode("utf-8")
        nobody = without_groups(noise_plan, confidence)
        data = self._data(noise_plan, nobody, confidence) | {"certificate": certificate}
        Release(data).summary()
        return data

    def _measured(self, noise_plan: NoisePlan, confidence: float, secret: bytes) -> Noisy:
        """Run what was charged for: exact integers come in, and leave with noise."""
        answer = self._opened.engine.run(self._plan.job, self._plan.schema, secret)
        return add_noise(noise_plan, answer, confidence)

    @property
    def _jobs(self) -> Sequence[Job]:
        """What the engine will run."""
        return (self._plan.job,)

    def _data(self, noise_plan: NoisePlan, noisy: Noisy, confidence: float) -> dict[str, Any]:
        """All that is released, as the ledger keeps it."""
        data = release_data(noise_plan, noisy, confidence)
        data["notes"] += self._known_cuts()
        return data

    def _known_cuts(self) -> list[str]:
        """What the ledger knows to be cut by limits that were learned."""
        job = self._plan.job
        limits = {"rows": job.max_rows, "groups": job.max_groups}
        return [line for fact in self._facts for line in fact.cut(**limits)]

    def _note(self) -> dict[str, Any]:
        """What the ledger notes beside the charge."""
        return {"query": self.sql}

    @cached_property
    def _tables(self) -> dict[str, str]:
        """The private tables that the plan reads, each with what says whose a row is."""
        units = self._opened.policy.units
        read = (scan.table for scan in scans(self._plan.query.relation))
        return {name: units[name].by for name in read if name in units}

    def _noise_plan(self, epsilon: Number, delta: Number | None) -> NoisePlan:
        """The plan with its noise, once epsilon and delta are seen to be what a budget can have."""
        asked, share = self._budget(epsilon, delta)
        if share == self._opened.policy.budget.delta == 0 and self._plan.discovered:
            raise ArgumentError(
                "keys cannot be discovered under a pure budget: declare them public in the policy "
                "(values or bins of the columns), or give [budget] a delta"
            )
        held = self._noised
        if held is None or held[0] != (asked, share):
            held = self._noised = (asked, share), plan_noise(self._plan, asked, share)
        return held[1]

    _noised: tuple[tuple[Fraction, Fraction], NoisePlan] | None = None
    """The last of these plans, with its price: what previews a question often asks for it, too."""

    def _budget(self, epsilon: Number, delta: Number | None) -> tuple[Fraction, Fraction]:
        """Epsilon and delta as asked for, the policy's ``release_delta`` where it is left out."""
        asked = check.positive("epsilon", epsilon)
        if asked > LARGEST_EPSILON:
            raise ArgumentError(
                f"epsilon must be at most {LARGEST_EPSILON:,}: "
                "far below it, a release hides nothing"
            )
        whole = self._opened.policy.budget.delta
        share = self._opened.policy.release_delta if delta is None else check.exact("delta", delta)
        if not 0 <= share < 1:
            raise ArgumentError("delta must lie in [0, 1)")
        if share > 0 and whole == 0:
            raise ArgumentError("delta must be 0: the policy's budget is pure (its delta is 0)")
        return asked, share

    def _what_fits(self, noise_plan: NoisePlan) -> str:
        """The cheapest change: the largest epsilon that every account would still bear."""

        def charge(epsilon: Fraction, delta: Fraction) -> Charge | None:
            try:
                return plan_noise(self._plan, epsilon, delta).charge
            except DitherError:
                return None  # so small an epsilon wants noise too wide to draw

        # Where no epsilon fits, it may be the delta that is too much.
        deltas = [noise_plan.delta]
        deltas += [d for d in (self._opened.policy.release_delta,) if d < noise_plan.delta]
        deltas += [Fraction(0)] if noise_plan.delta and not self._plan.discovered else []
        ways = (
            (
                partial(charge, delta=delta),
                "" if delta == noise_plan.delta else f" and delta = {remaining(delta)}",
            )
            for delta in dict.fromkeys(deltas)
        )
        return largest_that_fits(
            self._opened,
            noise_plan.promise,
            noise_plan.epsilon,
            ways,
            "query",
            self._plan.blocks,
        )

    @property
    def _about(self) -> str:
        return self.sql

    def __repr__(self) -> str:
        return f"<question{self._over}: {self.sql}>"


def _either(first: Words | None, second: Words | None) -> Words:
    """How an expression was written in either of two texts."""

    def words(node: Expression) -> str | None:
        found = (one(node) for one in (first, second) if one is not None)
        return next((text for text in found if text is not None), None)

    return words


def _wide(half_width: Number) -> Fraction:
    found = check.positive("half_width", half_width)
    if not Fraction(1, 10**300) <= found <= 10**300:
        raise ArgumentError("half_width must lie between 1e-300 and 1e300")
    return found

"""A session: one policy, its sources, its ledger, and questions asked of them.

It is long because all that can be asked of a session is documented at its methods.
"""

from __future__ import annotations

import datetime as dt
import html
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from dither import _checks as check
from dither._format import loss_text
from dither.errors import ArgumentError, BoundsError, KeyFileError, LedgerError, nearest
from dither.ledger import Checkpoint, Ledger, OwnerKey
from dither.ledger._accounts import Balances
from dither.ledger._block_budget import Budget
from dither.plan import aggregates as ag
from dither.plan.lowering.lower import lower
from dither.plan.relations import base, scans
from dither.plan.schema import Schema, Table
from dither.policy._facts import (
    Fact,
    facts_in,
    learned_of,
    with_facts,
    with_unused,
    without_facts,
)
from dither.policy._fields import LARGEST_EPSILON
from dither.policy._places import check_places, check_sources
from dither.policy._policy import Policy, PolicyText, read_policy, schema_of
from dither.policy._publishing import DeclaredOwner
from dither.policy._sources import PublicKeys, connect
from dither.policy.dummies import NOTICE
from dither.privacy import Charge
from dither.session._connecting import LedgerAhead
from dither.session._factories import factory
from dither.session._opened import DATASET, OpenedPolicy, check_accounts
from dither.session._pricing import PriceList, moment, price_list, reserved_of
from dither.session._request import PricedQuestion, listener, price_of
from dither.session._signer import Signer, read_key
from dither.sql.rows.sources import start

if TYPE_CHECKING:
    from dither.engines import Engine
    from dither.ledger.quotas._reserved import Reservation
    from dither.query._builder import TableQuery
    from dither.query._question import Question
    from dither.query.learning._learned import LearnedBounds, LearnedKeys, LearnedLimits
    from dither.query.learning._learning import FactQuestion
    from dither.session.dummies._rehearsal import DummyRows, Rehearsal

__all__ = ["DATASET", "Session", "open", "open_for_all"]

Made = TypeVar("Made")


def open(  # noqa: A001 - as users write it: dt.open
    policy: str | Path | Mapping[str, Any],
    *,
    analyst: str | None = None,
    purpose: str | None = None,
    sources: Mapping[str, Any] | None = None,
    engines: Mapping[str, Any] | None = None,
    progress: Callable[[float], None] | None = None,
    key: OwnerKey | str | Path | None = None,
) -> Session:
    """Open a policy: connect its sources, read their schemas, open its ledger.

    Parameters
    ----------
    policy : path or mapping
        The policy file, or a dictionary of the same shape.
    analyst : str, optional
        Who asks. Needed where the policy has quotas of analysts or of groups: these and the
        account of the data set must then bear each charge.
    purpose : str, optional
        What it is asked for. Needed where the policy has quotas of purposes.
    sources : mapping of str to frame, path or mapping, optional
        Tables given here instead of by the policy's ``source``: Polars, pandas, Arrow or Spark
        frames, paths, or what a policy could say, such as
        ``{"postgres": "env:DSN", "table": "visits"}``.
    engines : mapping of str to connection, optional
        Connections to use for engines that the policy names: ``{"spark": session}``. What is given
        stays open, and its settings stay as they are.
    progress : callable, optional
        Called about twice a second with the share done, from 0 to 1, while an engine runs a
        question: on DuckDB the rows that are read, on Spark the tasks of the stages that are known.
        PostgreSQL tells nothing of it. For whoever may see the time that a question takes.
    key : OwnerKey, path, or ``"env:NAME"``, optional
        The owner's secret key, in place of the policy's ``[owner] key``: certificates are signed
        with it. For the owner's own process alone.

    Returns
    -------
    Session

    Raises
    ------
    PolicyError
        Where the policy is missing, contradictory or incomplete, or does not fit its sources.
    LedgerError
        Where the ledger cannot be used.
    KeyFileError
        Where the owner's key cannot be read, or is another than the policy's ``[owner] public``.
    """
    read = read_policy(policy)
    caps: dict[str, Budget] = {DATASET: read.budget, **read.quotas.asked_by(analyst, purpose)}
    return _opened(read, caps, analyst, purpose, sources, engines, progress, key)


def open_for_all(
    policy: str | Path | PolicyText | Mapping[str, Any],
    *,
    progress: Callable[[float], None] | None = None,
) -> Session:
    """Open a policy for whoever will ask: `Session.asked_by` gives each a session.

    This one is its owner's, whom quotas of analysts and of purposes do not limit.

    Parameters
    ----------
    policy, progress
        As of `open`; or what was read of the policy's file before.

    Raises
    ------
    PolicyError, LedgerError, KeyFileError
        As of `open`.
    """
    read = read_policy(policy)
    return _opened(read, _of_owner(read), None, None, None, None, progress, None)


def _of_owner(read: Policy) -> dict[str, Budget]:
    quotas = read.quotas
    return {DATASET: read.budget, **{name: quotas.caps[name] for name in quotas.everybody}}


def _opened(
    read: Policy,
    caps: dict[str, Budget],
    analyst: str | None,
    purpose: str | None,
    sources: Mapping[str, Any] | None,
    engines: Mapping[str, Any] | None,
    progress: Callable[[float], None] | None,
    key: OwnerKey | str | Path | None,
) -> Session:
    signer = _signer(read.owner, key)
    checkpoint = None
    if read.owner.checkpoint is not None and read.owner.public is not None:
        checkpoint = Checkpoint.read(read.owner.checkpoint, read.owner.public)
    for text in read.loose:
        warnings.warn(text, stacklevel=3)
    check_sources(read.tables, read.units, read.folder, sources)
    told = None if progress is None else listener(progress)
    ledger_ahead = LedgerAhead(read.ledger, partial(check_accounts, read, caps), checkpoint)
    engine = connect(read, dict(sources or {}), dict(engines or {}), told)
    try:
        check_places(read.tables, read.units, engine)
        found = {name: engine.describe(name) for name in read.tables}
        incomplete = [name for name in read.tables if not engine.complete(name)]
        unread = {name: engine.unread(name) for name in read.tables}
        lists = {name: engine.lists(name) for name in read.tables}
        zoned = {name: engine.zoned(name) for name in read.tables}
        schema = schema_of(read, found, incomplete, unread, lists, zoned)
        engine.check(schema)
        for name, declared in read.tables.items():
            if declared.private and engine.nobody(name):
                warnings.warn(f"tables.{name}.unit: {engine.nobody(name)}", stacklevel=3)
        ledger = ledger_ahead.opened()
        try:
            session = Session(read, schema, engine, ledger, caps, analyst, signer, purpose)
            session._opened.check_sources()
            session._learn_from_the_ledger()
        except BaseException:
            ledger.close()
            raise
    except BaseException:
        engine.close()
        raise
    return session


def _signer(owner: DeclaredOwner, key: OwnerKey | str | Path | None) -> Signer | None:
    """What signs certificates; None where nobody's key is given."""
    given = owner.key if key is None else key
    if given is None:
        return None
    password = owner.password if key is None else None
    found = read_key(given, password, "owner.key" if key is None else "key")
    if owner.public is not None and found.public != owner.public:
        raise KeyFileError(
            f"the owner's key is {found.public.fingerprint}, and the policy's [owner] public is "
            f"{owner.public.fingerprint}: name the two files of one key"
        )
    return Signer(found, owner.data_version)


class Session:
    """Questions asked of one policy's tables; made by ``dither.open``.

    Nothing is charged and no private value is read until ``Question.release``.
    """

    _asks: ClassVar[frozenset[str]] = frozenset({"sql", "table", "fact"})
    """The methods that others may name (`dither.session._recipe`)."""

    def __init__(
        self,
        policy: Policy,
        schema: Schema,
        engine: Engine,
        ledger: Ledger,
        caps: Mapping[str, Budget],
        analyst: str | None,
        signer: Signer | None = None,
        purpose: str | None = None,
    ) -> None:
        self.policy = policy
        self.schema = schema
        self.analyst = analyst
        self.purpose = purpose
        self.ledger = ledger
        self._engine = engine
        self._opened = OpenedPolicy(policy, engine, ledger, caps, signer, analyst)
        self.promises = self._opened.promises
        self._keys = PublicKeys(engine)
        self._declared = schema
        self._learns = policy.learns

    @property
    def tables(self) -> Mapping[str, Table]:
        """What is public about each table."""
        return self.schema.tables

    def sql(
        self,
        text: str,
        *,
        weights: Mapping[str, float | str | Fraction] | None = None,
        discover: bool = False,
    ) -> Question:
        """Ask in SQL: one ``SELECT`` of keys and aggregates. ``docs/sql.md`` says what is read.

        Parameters
        ----------
        text : str
        weights : mapping of str to number, optional
            By output: its share of the budget relative to the others, which have 1.
        discover : bool
            Discover the keys that occur, at a cost in delta, even where public facts list them.

        Raises
        ------
        QueryError
            Naming the part that is not understood or not offered, and the fix.
        """
        from dither.sql.select import parse_query

        query = self._made_from(partial(parse_query, text))
        names = [output.name for output in query.outputs]
        given = {
            name: check.positive(f"weights[{name!r}]", w) for name, w in (weights or {}).items()
        }
        for name in given:
            if name not in names:
                raise ArgumentError(f"weights: no output {name!r}" + nearest(name, names))
        outputs = tuple(replace(o, weight=given.get(o.name, o.weight)) for o in query.outputs)
        return self._question(replace(query, outputs=outputs, discover=discover))

    def table(self, name: str) -> TableQuery:
        """Ask in Python: start from a private table."""
        rows: TableQuery = factory("rows")(
            start(name, None, self.schema), self.schema, self._question
        )
        return rows

    def learn(
        self,
        table: str,
        column: str | None = None,
        *,
        epsilon: float | str | Fraction,
        delta: float | str | Fraction | None = None,
        kind: str | None = None,
        by: Sequence[str] = (),
        origin: dt.date | None = None,
        confidence: float = 0.95,
        token: str | None = None,
    ) -> LearnedBounds | LearnedLimits | LearnedKeys:
        """Learn from the data what the policy would have to declare, and pay for it.

        Parameters
        ----------
        table, column : str
            A private table; a column of it, unless limits are learned. Of a column that holds lists
            it is their elements of which something is learned.
        epsilon : number
            What it may cost; above 0.
        delta : number, optional
            For keys: the policy's ``release_delta`` where left out. Bounds and limits need none,
            and use 0 where it is left out.
        kind : str, optional
            ``"bounds"`` of a column of numbers, dates or times, ``"keys"``, the values that enough
            units have, or ``"limits"``, ``max_rows`` and ``max_groups``. Left out, bounds where a
            column is named and limits where none is.
        by : sequence of str
            Of limits: the columns or expressions that will be grouped by. Without them only the
            rows of a unit in the whole table are learned, and no ``max_groups``.
        origin : date, optional
            Of bounds of dates and times: the day about which their grid is finest, 2000-01-01 where
            left out. It must be public, and not a day that was seen in the data.
        confidence : float
            Of what is said about the error, in (0, 1).
        token : str, optional
            Names the request: asked again with it, the same is learned, and nothing is charged.

        Returns
        -------
        LearnedBounds, LearnedLimits or LearnedKeys
            What was learned, with its error. Where the epsilon is too small for anything to be
            told from noise it says so; it is charged all the same.

        Raises
        ------
        ArgumentError, QueryError
            Where there is nothing of that kind to learn; nothing is spent.
        BudgetError
            Where an account cannot bear it; nothing is spent.
        EngineError
            Where the engine fails after the charge. The charge stays.

        Notes
        -----
        *Guarantee.* (epsilon, delta)-differential privacy for the policy's unit and neighbours, as
        of any release. Each unit counts once: in a histogram of values its rows share one, in one
        of sizes it is in one cell, and of keys it names one, chosen by a keyed hash. A date counts
        by the number of whole days since the origin, a function of its row alone, in cells that
        follow from the origin alone; so its histogram has the sensitivity of one of numbers. So has
        one of the elements of lists: those of one unit share its one vote, however many they are.
        Where a row is a person, its first ``max_items`` elements count as so many rows, and the
        price is that of a group of so many.

        What is learned is public from then on. A policy that says ``bounds = "learned"`` uses the
        newest that its ledger holds, in this session and in later ones.

        Examples
        --------
        >>> import polars as pl
        >>> from tempfile import mkdtemp
        >>> from dither import open
        >>> policy = {
        ...     "budget": {"epsilon": 10**6, "ledger": mkdtemp() + "/visits.ledger"},
        ...     "tables": {"visits": {"columns": {"cost": {"bounds": "learned"}}}},
        ... }
        >>> visits = pl.DataFrame({"cost": [12.5, 80.0, 450.0] * 100})
        >>> with open(policy, sources={"visits": visits}) as session:
        ...     found = session.learn("visits", "cost", epsilon=10**5)
        ...     print(found.lower, found.upper)
        10 500
        """
        self._opened.check_open()
        asked = self.fact(table, column, kind=kind, by=by, origin=origin)
        found: LearnedBounds | LearnedLimits | LearnedKeys = factory("learned")(
            asked, epsilon, delta, confidence, token
        )
        self._learn_from_the_ledger()
        return found

    def fact(
        self,
        table: str,
        column: str | None = None,
        *,
        kind: str | None = None,
        by: Sequence[str] = (),
        origin: dt.date | None = None,
    ) -> FactQuestion:
        """The question that `learn` releases: explained free of charge, and priced.

        Parameters
        ----------
        table, column, kind, by, origin
            As of `learn`.

        Raises
        ------
        ArgumentError, QueryError
            Where there is nothing of that kind to learn.
        """
        self._declared.table(table)
        asked: FactQuestion = factory("fact")(
            partial(self.table, table),
            _today(self._declared),
            self._opened,
            table,
            column,
            kind=kind,
            by=by,
            origin=origin,
        )
        return asked

    def _learn_from_the_ledger(self) -> None:
        """Put what the ledger knows where the policy says that it is learned."""
        if self._learns:
            facts = learned_of(self.policy, self._known_facts(), self._declared)
            self._opened.facts = facts
            self.schema = with_facts(self._declared, self.policy, facts)

    def _known_facts(self) -> list[Fact]:
        return facts_in(self.ledger)

    def _check_together(self, tables: Sequence[str]) -> None:
        self._engine.check_together(tables)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What the policy has learned: public facts of the ledger that questions rest on."""
        return tuple({f.entry.number: f for f in self._opened.facts.values()}.values())

    def balance(self) -> Balances:
        """What each account may spend, has spent and has left: for each unit, the data set's and
        the quotas that bear what is asked here.

        Returns
        -------
        list of Balance

        Raises
        ------
        ArgumentError
            Where the session is closed.
        """
        self._opened.check_open()
        return self._opened.balances(self.promises)

    def price(
        self,
        questions: Iterable[Question | PricedQuestion[Any]],
        *,
        epsilon: float | str | Fraction | None = None,
        delta: float | str | Fraction | None = None,
        order: str = "given",
    ) -> PriceList:
        """What questions cost together, and which of them fit; nothing is charged, nothing is read.

        Parameters
        ----------
        questions : sequence of Question
            Of this session, in the order in which they would be asked. One whose price is set,
            such as a synthesis, has it.
        epsilon, delta : number, optional
            What each question may cost that has no price yet, as for `Question.release`.
        order : str
            ``"given"``: one after the other, leaving out what does not fit beside those before it.
            ``"most"``: the largest number that fits.

        Returns
        -------
        PriceList
            The price of each and of all together, what fits, and in which order to ask.

        Raises
        ------
        ArgumentError
            There are no questions, one is of another session, or epsilon is missing.

        Notes
        -----
        Prices follow from public facts, and what fits from what the ledger has written down.

        Examples
        --------
        >>> import polars as pl
        >>> from tempfile import mkdtemp
        >>> from dither import open
        >>> policy = {
        ...     "budget": {"epsilon": 1, "ledger": mkdtemp() + "/visits.ledger"},
        ...     "tables": {"visits": {}},
        ... }
        >>> visits = pl.DataFrame({"cost": [12, 80, 450]})
        >>> with open(policy, sources={"visits": visits}) as session:
        ...     count = session.sql("SELECT COUNT(*) AS n FROM visits")
        ...     print(session.price([count, count, count], epsilon="0.4"))
        3 questions, together epsilon 1.2 of row of visits; 2 fit (in the given order): 1, 2
        """
        self._opened.check_open()
        if not isinstance(questions, Iterable):
            raise ArgumentError("questions must be a list of questions")
        prices = [price_of(question, self._opened, epsilon, delta) for question in questions]
        return price_list(prices, lambda promise: self._opened.balances([promise]), order)

    def reserve(
        self,
        epsilon: float | str | Fraction,
        *,
        until: dt.datetime | dt.date | str,
        delta: float | str | Fraction = 0,
        unit: str | None = None,
        question: Question | None = None,
    ) -> Reservation:
        """Keep budget for whoever holds what this returns, until an hour that is fixed for good.

        Parameters
        ----------
        epsilon, delta : number
            What is kept of each account that bears what is asked here: epsilon above 0, delta in
            [0, 1). It is used up by epsilon and delta, or by the rho that such a release has.
        until : datetime, date or text
            When it lapses, in UTC where no zone is said: at the beginning of that hour, at least
            one ahead by the ledger's clock, and at most 366 days.
        unit : str, optional
            Of whose accounts; needed where the policy has several units and no question is given.
        question : Question, optional
            Where each block has a budget: it is kept of the blocks that this reads; of all that
            have begun where left out.

        Returns
        -------
        Reservation
            Give its ``id`` to whoever may use it: ``session.using(reservation)``.

        Raises
        ------
        ArgumentError
            A parameter is out of range.
        BudgetError
            An account cannot bear it beside what was spent and what others have reserved; nothing
            is reserved.

        Notes
        -----
        What was spent and all open reservations together are never above a cap. A reservation is an
        entry of the ledger; its lapse follows from the clock, so that nobody learns from it what
        was answered. Whoever holds it must ask as the same analyst and for the same purpose.
        """
        opened = self._opened
        opened.check_open()
        amount = check.positive("epsilon", epsilon)
        if amount > LARGEST_EPSILON:
            raise ArgumentError(f"epsilon must be at most {LARGEST_EPSILON:,}")
        small = check.exact("delta", delta, least=0, below=1)
        charge = Charge.approximate(amount, small) if small else Charge.pure(amount)
        promise, blocks = reserved_of(opened, unit, question)
        return opened.reserve(charge, promise, moment("until", until), blocks)

    @contextmanager
    def using(self, reservation: Reservation | str) -> Iterator[Self]:
        """Charge what is released within to a reservation, which counts down by as much.

        Parameters
        ----------
        reservation : Reservation or str
            One, or its id.

        Raises
        ------
        BudgetError
            In a release: it does not fit in what is left of the reservation; nothing is spent.
        LedgerError
            In a release: it has lapsed, or there never was one.
        """
        known = getattr(reservation, "id", reservation)
        if not isinstance(known, str):
            raise ArgumentError("reservation must be a Reservation, or its id")
        before, self._opened.reservation = self._opened.reservation, known
        try:
            yield self
        finally:
            self._opened.reservation = before

    def asked_by(self, asker: str, purpose: str | None = None, *, owner: bool = False) -> Session:
        """A session of somebody else, over the same engine and the same ledger.

        Parameters
        ----------
        asker : str
            Who asks: an analyst of the policy, where it has quotas of these. Tokens are theirs in
            any case.
        purpose : str, optional
            As of `dither.open`.
        owner : bool
            The owner of the data asks: an analyst's quota is not needed.

        Returns
        -------
        Session
            It ends with this one: closing it closes both.

        Raises
        ------
        ArgumentError, PolicyError
            The policy has quotas, and none for such an asker.
        """
        quotas = self.policy.quotas
        analyst = asker if quotas.known else None
        if owner and asker not in quotas.known:
            analyst, caps = None, _of_owner(self.policy)
        else:
            caps = {DATASET: self.policy.budget, **quotas.asked_by(analyst, purpose)}
        session = Session(
            self.policy,
            self._declared,
            self._engine,
            self.ledger,
            caps,
            analyst,
            self._opened.signer,
            purpose,
        )
        session._keys, session._opened.asker = self._keys, asker
        # Whoever asks beside others must not learn by a token that it was used.
        session._opened.apart = True
        session._learn_from_the_ledger()
        return session

    def dummy(self, table: str, rows: int = 1000, *, seed: int | None = None) -> DummyRows:
        """Dummy rows of a table, made from public facts: to write a program on before it is paid.

        Nothing is charged, and no row of any table is read.

        Parameters
        ----------
        table : str
        rows : int
            How many, from 1 to 1,000,000. Of a public table there are fewer where what it declares
            unique has fewer values.
        seed : int, optional
            At least 0: one seed gives the same rows again. Left out, it is another each time.

        Returns
        -------
        DummyRows
            ``frame``, and ``save``; both it and what it saves say that no row is real.

        Raises
        ------
        ArgumentError
            A parameter is out of range, or the session is closed.
        UnknownNameError
            There is no such table.

        Notes
        -----
        Values are spread evenly over what the policy declares: ``values``, ``bounds``, ``bins`` and
        blocks; where it says nothing, over a few, of which texts are ``dummy 1`` and so on. So no
        figure of them says anything about the real rows. They are drawn by a seeded generator, and
        protect nobody: there is nobody in them.

        Tables of one unit share its identifiers, and columns of one name have the same values, so
        that tables can be joined.

        Examples
        --------
        >>> import polars as pl
        >>> from tempfile import mkdtemp
        >>> from dither import open
        >>> policy = {
        ...     "budget": {"epsilon": 1, "ledger": mkdtemp() + "/visits.ledger"},
        ...     "tables": {"visits": {"columns": {"age": {"bounds": [0, 110]}}}},
        ... }
        >>> with open(policy, sources={"visits": pl.DataFrame({"age": [41, 27]})}) as session:
        ...     dummy = session.dummy("visits", rows=100, seed=1)
        >>> print(dummy.notice)
        dummy rows: made from the policy's public facts; no row is real
        >>> dummy.frame.height, dummy.frame["age"].is_between(0, 110).all()
        (100, True)
        """
        made: DummyRows = factory("dummy")(self, table, rows, seed)
        return made

    def dummies(self, rows: int = 1000, *, seed: int | None = None) -> dict[str, DummyRows]:
        """Dummy rows of every table, as `dummy` makes them: their keys match."""
        made: dict[str, DummyRows] = factory("dummies")(self, rows, seed)
        return made

    def rehearsal(self, rows: int = 1000, *, seed: int | None = None) -> Rehearsal:
        """A session of this policy over dummy rows: whatever is asked in it costs nothing real.

        Parameters
        ----------
        rows, seed : int
            Of each table, as for `dummy`.

        Returns
        -------
        Session
            With the same policy, analyst, purpose, quotas and learned facts, and a ledger of its
            own in a temporary folder, which goes when it is closed. Everything that it answers says
            that it is of dummy rows, and so does every certificate.

        Notes
        -----
        Questions are explained, priced and previewed as in this session, since that follows from
        the same public facts. Its answers say nothing about the real rows, its accounts begin
        with nothing spent, and the owner's key signs nothing in it.

        Examples
        --------
        >>> import polars as pl
        >>> from tempfile import mkdtemp
        >>> from dither import open
        >>> policy = {
        ...     "budget": {"epsilon": 1, "ledger": mkdtemp() + "/visits.ledger"},
        ...     "tables": {"visits": {"columns": {"age": {"bounds": [0, 110]}}}},
        ... }
        >>> with open(policy, sources={"visits": pl.DataFrame({"age": [41, 27]})}) as session:
        ...     with session.rehearsal() as tried:
        ...         found = tried.sql("SELECT AVG(age) AS age FROM visits").release(1)
        ...     print(session.balance()[0].spent.epsilon, found.certificate.content["dummy"])
        0 dummy rows: made from the policy's public facts; no row is real
        """
        made: Rehearsal = factory("rehearsal")(self, rows, seed)
        return made

    def close(self) -> None:
        """Give back the engine and the ledger. Questions can still be explained and previewed."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        title, tables, accounts = self._listing()
        return "\n".join([title, *(f"  {line}" for line in (*tables, *accounts))])

    def _repr_html_(self) -> str:
        title, tables, accounts = self._listing()
        items = "".join(f"<li>{html.escape(line)}</li>" for line in (*tables, *accounts))
        return f"<div><b>{html.escape(title)}</b><ul>{items}</ul></div>"

    def _listing(self) -> tuple[str, list[str], list[str]]:
        """The session in a line; a line for each table; one for each account."""
        tables = []
        for name, table in self.tables.items():
            who = "public" if not table.private else f"protects {table.unit or 'each row'}"
            tables.append(f"table {name} ({who}): {', '.join(table.columns)}")
        if self._opened.closed:
            return "closed session", tables, []
        cap = self.policy.budget
        over = f"rehearsal over {NOTICE}; " if self._opened.dummy else ""
        title = (
            f"{over}session under epsilon {loss_text(cap.epsilon)}, delta {loss_text(cap.delta)}"
        )
        told = {f"of {n}: {b.describe()}" for n, b in self.policy.block_budgets.items()}
        tables += sorted(told)
        try:
            accounts = [f"account {balance}" for balance in self.balance()]
        except LedgerError:
            accounts = ["the ledger cannot be read"]
        return title, [*tables, *(f"learned: {fact.text}" for fact in self.facts)], accounts

    def _question(self, query: ag.Query) -> Question:
        read = tuple(dict.fromkeys(scan.table for scan in scans(query.relation)))
        if len(read) > 1:
            self._check_together(read)
        missing: list[str] = []
        if self._learns:
            missing = without_facts(query, self.policy, self._opened.facts)
        if missing:
            name = base(query.relation).table
            by = ', by=["..."]' if "max_groups" in missing else ""
            raise BoundsError(
                f"{' and '.join(missing)} of {name}: the policy has them learned, and nobody has "
                f'yet; session.learn("{name}"{by}, epsilon=0.1) does so at that price'
            )
        plan = self._made_from(lambda schema: lower(query, self._keys.listed(query, schema)))
        question: Question = factory("query")(plan, self._opened)
        return question

    def _made_from(self, made: Callable[[Schema], Made]) -> Made:
        """What follows from the schema; where that lacks bounds, the refusal names those that the
        ledger has, which nobody looks for before."""
        try:
            return made(_today(self.schema))
        except BoundsError as error:
            refused = error
        try:
            found = self._known_facts()
        except LedgerError:
            found = []
        if not found:
            raise refused
        return made(_today(with_unused(self.schema, self.policy, found)))


def _today(schema: Schema) -> Schema:
    """The schema on the day of a question, which says what blocks of time have begun."""
    return replace(schema, today=dt.datetime.now(dt.UTC).date())

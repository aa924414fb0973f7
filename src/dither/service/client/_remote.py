"""A session of a policy that is opened elsewhere.

What follows from public facts is worked out here, by the same code as of a local policy: questions,
explanations, previews and prices. What needs the ledger or the data is asked of the service, which
makes the same question once more by the calls that made it, and compares what it would hash.
"""

from __future__ import annotations

import functools
import json
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from dither.blocks._sets import BlockSet
from dither.engines import Engine
from dither.errors import ArgumentError, EngineError, QueryError, UnsupportedError
from dither.lab._frames import released
from dither.ledger import Entry
from dither.ledger._accounts import Balances
from dither.ledger._block_budget import Budget
from dither.plan.answers import ExactAnswer
from dither.plan.job import Job
from dither.plan.schema import ColumnFacts, Kind, Schema, Value
from dither.policy._facts import Fact, with_facts
from dither.policy._policy import Policy
from dither.privacy import Charge, Promise
from dither.query._builder import TableQuery
from dither.service._balances import balance_from_dict
from dither.service._shared import fact_from, policy_from, schema_from
from dither.service.client._http import Calls, refusal
from dither.service.client._ledger import RemoteLedger
from dither.session._opened import DATASET, OpenedPolicy
from dither.session._recipe import QuestionRecipe
from dither.session._request import (
    AnsweredRequest,
    Request,
    UnreleasedQuestion,
    listener,
    warn_caller,
)
from dither.session._session import Session
from dither.sql.dates import read_date

__all__ = ["RemoteSession", "RemoteTable", "connected"]

ENDED = ("done", "failed", "ended", "given up", "declined", "cancelled")

WAIT = 30
"""Seconds that one call waits for an answer."""


def connected(
    address: str,
    key: str,
    purpose: str | None,
    verify: bool | str,
    progress: Callable[[float], None] | None,
    wait: float | None,
    transport: Any,
) -> RemoteSession:
    """See `dither.connect`."""
    calls = Calls(address, key, verify=verify, transport=transport)
    try:
        return RemoteSession(calls, calls.get("/policy"), purpose, progress, wait)
    except BaseException:
        calls.close()
        raise


class RemoteEngine(Engine):
    """The engine of a service, as far as it is public."""

    def __init__(self, calls: Calls, told: Mapping[str, Any]) -> None:
        self._calls, self._told = calls, told

    def describe(self, table: str) -> Mapping[str, Kind | None]:
        """The columns and their kinds, as the service said them."""
        found = self._told["found"][table]
        return {name: None if kind is None else Kind(kind) for name, kind in found.items()}

    def lists(self, table: str) -> Mapping[str, Kind]:
        """Those that hold lists."""
        return {name: Kind(kind) for name, kind in self._told["lists"][table].items()}

    def zoned(self, table: str) -> frozenset[str]:
        """Those that hold moments with a time zone."""
        return frozenset(self._told["zoned"][table])

    def labels(self, table: str) -> Mapping[str, tuple[str, ...]]:
        """Those whose type lists its values."""
        return {name: tuple(held) for name, held in self._told["labels"][table].items()}

    def complete(self, table: str) -> bool:
        """Whether every row is read."""
        return table not in self._told["incomplete"]

    def unread(self, table: str) -> Mapping[str, str]:
        """Why columns are not read."""
        found: Mapping[str, str] = self._told["unread"][table]
        return found

    def check_together(self, tables: Collection[str]) -> None:
        """The service says it."""

    def public_rows(
        self, table: str, columns: Sequence[ColumnFacts]
    ) -> list[tuple[Value | None, ...]]:
        """Rows of a public table, of some of its columns; of one column each value once."""
        named = {"table": table, "columns": [one.name for one in columns]}
        reads: list[Callable[[Any], Any]] = [
            read_date if one.kind is Kind.DATE else _same for one in columns
        ]
        return [
            tuple(None if v is None else read(v) for read, v in zip(reads, row, strict=True))
            for row in self._calls.post("/public-values", named)["rows"]
        ]

    def check(self, schema: Schema) -> None:
        """The service has."""

    def prepare(self, job: Job, schema: Schema) -> None:
        """The service does."""

    def run(self, job: Job, schema: Schema, key: bytes) -> ExactAnswer:
        """Never."""
        raise EngineError("the engine is at the service")

    def close(self) -> None:
        """Nothing is held."""


def _same(value: Any) -> Any:
    return value


class RemotePolicy(OpenedPolicy):
    """A policy that is opened at a service: what its ledger says and does is asked there."""

    def __init__(
        self,
        policy: Policy,
        calls: Calls,
        asker: str,
        schema: Mapping[str, Any],
        told: Callable[[float], None] | None,
    ) -> None:
        caps: dict[str, Budget] = {DATASET: policy.budget}
        nothing: Any = None  # its ledger is at the service
        super().__init__(policy, RemoteEngine(calls, schema), nothing, caps, None, asker)
        self._calls, self._told = calls, told
        self.purpose: str | None = None
        self.wait: float | None = None
        self.reserves: QuestionRecipe | None = None
        """The question whose blocks are being reserved."""
        self.elsewhere = self.released

    def close(self) -> None:
        """Give back the connections."""
        if not self.closed:
            self.closed = True
            self._calls.close()

    def balances(self, promises: Iterable[Promise]) -> Balances:
        """The accounts of every promise."""
        wanted = set(promises)
        found = self._calls.get("/balance", purpose=self.purpose)["balances"]
        read = [balance_from_dict(one) for one in found]
        return Balances(one for one in read if one.promise in wanted)

    def reserve(
        self, amount: Charge, promise: Promise, until: datetime, blocks: BlockSet | None
    ) -> Any:
        """Keep an amount; the service's answer has the id that uses it.

        What blocks it is kept of follows from the question, there as here.
        """
        found = self._calls.post(
            "/reservations",
            {
                "ask": None if self.reserves is None else self.reserves.to_list(),
                "epsilon": str(amount.epsilon),
                "delta": str(amount.delta),
                "until": until.isoformat(),
                "unit": promise.unit,
                "purpose": self.purpose,
            },
            again=False,
        )
        return RemoteReservation(found["id"], found["text"])

    def published(self, promise: Promise, request: str) -> list[tuple[Entry, str]]:
        """Earlier answers to one request that this asker may see, oldest first."""
        found = self._calls.post("/published", {"digest": request})["answers"]
        return [(_entry_of(one), json.dumps(one["content"])) for one in found]

    def seen(self, promise: Promise) -> list[tuple[Entry, str]]:
        """Answers to other requests stay at the service."""
        return []

    def released(
        self, request: Request, recipe: QuestionRecipe | None, token: str | None, reuse: bool
    ) -> AnsweredRequest:
        """Have a request released, and wait for its answer.

        It has a token in any case, so that a call that was cut off can be made again.
        """
        if recipe is None:
            raise UnsupportedError("this is asked where the policy is: a service does not offer it")
        body = {
            "ask": recipe.to_list(),
            "epsilon": request.requested.get("epsilon"),
            "delta": request.requested.get("delta"),
            "confidence": request.requested.get("confidence"),
            "purpose": self.purpose,
            "reservation": self.reservation,
            "digest": request.data.digest,
        }
        if reuse:
            found = request.published()
            if found:
                return found[-1]
        body["token"] = token or secrets.token_hex(16)
        job = self._calls.post("/releases", body)
        # It was asked before under this token.
        before = job["state"] == "done"
        said, tell = False, listener(self._told)
        until = None if self.wait is None else time.monotonic() + self.wait
        while "answer" not in job:
            if job["state"] in ENDED and job["state"] != "done":
                break
            if until is not None and time.monotonic() >= until:
                raise EngineError(
                    f"no answer yet: the question is {job['state']}, and goes on; ask again with "
                    f"token={body['token']!r}, which is charged once"
                )
            if job["state"] == "waiting" and not said:
                said = True
                warn_caller(
                    "the question waits for the data owner, since it costs more than it may "
                    "without asking them; nothing is spent yet"
                )
            wait = WAIT if self._told is None else 1
            job = self._calls.get(f"/jobs/{job['id']}", wait=wait)
            if job.get("progress"):
                tell(job["progress"])
        if job["state"] == "done":
            tell(1.0)
            return _answered(job["answer"], before or job["replayed"])
        if job["failure"] is not None:
            raise refusal(job["failure"]["kind"], job["failure"]["message"])
        raise QueryError(f"the question was {job['state']}; nothing was spent")


def _entry_of(found: Mapping[str, Any]) -> Entry:
    when, number = datetime.fromisoformat(found["time"]), int(found["entry"])
    nothing = (None, None, None, None, None)
    return Entry(number, when, "charge", (), None, None, {}, *nothing, str(found["hash"]))


def _answered(found: Mapping[str, Any], replayed: bool) -> AnsweredRequest:
    when = datetime.fromisoformat(found["time"]) if replayed else None
    return AnsweredRequest(found["content"], when)


class RemoteReservation:
    """Budget that a service keeps for whoever knows its ``id``."""

    def __init__(self, holder: str, text: str) -> None:
        self.id, self._text = holder, text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<reservation: {self._text}>"


class RemoteSession(Session):
    """A session of a policy that a service serves; made by `dither.connect`."""

    def __init__(
        self,
        calls: Calls,
        told: Mapping[str, Any],
        purpose: str | None,
        progress: Callable[[float], None] | None,
        wait: float | None,
    ) -> None:
        policy = policy_from(told["policy"], told["digest"])
        schema = schema_from(policy, told["schema"])
        opened = RemotePolicy(policy, calls, told["analyst"] or "", told["schema"], progress)
        opened.purpose, opened.wait = purpose, wait
        super().__init__(
            policy,
            schema,
            opened.engine,
            RemoteLedger(calls, policy.digest),  # type: ignore[arg-type]
            {},
            told["analyst"],
            None,
            purpose,
        )
        self._opened: RemotePolicy = opened
        self._calls = calls
        self._take(told["facts"])

    def _take(self, facts: Sequence[Mapping[str, Any]]) -> None:
        held: dict[tuple[str, str], Fact] = {}
        for one in map(fact_from, facts):
            fields = ("max_groups", "max_rows") if one.column is None else (one.column,)
            held |= {(one.table, field): one for field in fields}
        self._opened.facts = held
        self.schema = with_facts(self._declared, self.policy, held)

    def _learn_from_the_ledger(self) -> None:
        if self._learns:
            self._take(self._calls.get("/policy")["facts"])

    def _known_facts(self) -> list[Fact]:
        return []  # what the policy does not use stays at the service

    def _question(self, query: Any) -> Any:
        self._learn_from_the_ledger()
        return super()._question(query)

    def table(self, name: str) -> Any:
        """Ask in Python: start from a private table.

        Returns
        -------
        RemoteTable
            With the methods of what a local session gives.
        """
        return RemoteTable(super().table(name), QuestionRecipe(()).then("table", (name,), {}))

    def reserve(self, *args: Any, question: Any = None, **named: Any) -> Any:
        """As of a local session: of the blocks that a question reads, where one is given."""
        if question is not None:
            self._opened.reserves = getattr(question, "_as_asked", None)
        try:
            return super().reserve(*args, question=question, **named)
        finally:
            self._opened.reserves = None

    def jobs(self, last: int = 20) -> list[dict[str, Any]]:
        """The questions that you asked, newest first, as the service says them."""
        found: list[dict[str, Any]] = self._calls.get("/jobs", last=last)["jobs"]
        return found

    def __enter__(self) -> Self:
        return self


class RemoteTable:
    """Rows of a table, or what is made of them, which keep how they were made.

    Every method is that of what a local session gives, and is documented there.
    """

    def __init__(self, made: Any, recipe: QuestionRecipe) -> None:
        self._made, self._recipe = made, recipe

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._made, name)
        if name not in type(self._made)._asks:
            if callable(found):
                return functools.partial(_refused, name)
            return found

        @functools.wraps(found)
        def called(*args: Any, **named: Any) -> Any:
            made = found(*map(_inner, args), **{n: _inner(v) for n, v in named.items()})
            sent = [_sent(arg) for arg in args]
            recipe = self._recipe.then(name, sent, {n: _sent(v) for n, v in named.items()})
            if isinstance(made, UnreleasedQuestion):
                if not hasattr(made, "_asked_at"):
                    made._recipe = recipe
                return made
            return RemoteTable(made, recipe)

        return called

    def compare(self, first: Any, *args: Any, **named: Any) -> Any:
        """As of a local session: how far a synthetic table is, or what questions would reach."""
        if not isinstance(self._made, TableQuery):
            return self._made.compare(first, *args, **named)  # it follows from public facts
        frame = released(first, "synthetic")
        made = self._made.compare(frame, *args, **named)
        sent = (frame.select(made.domain.names), *args)
        made._recipe = self._recipe.then("compare", sent, named)
        return made

    def synthesize(self, *args: Any, **named: Any) -> Any:
        """As of a local session: a synthesis that is released at once."""
        token, told = named.pop("token", None), named.pop("progress", None)
        return self.synthesis(*args, **named).release(token=token, progress=told)

    def synthesize_linked(self, *args: Any, **named: Any) -> Any:
        """As of a local session: linked tables that are released at once."""
        token, told = named.pop("token", None), named.pop("progress", None)
        return self.linked_synthesis(*args, **named).release(token=token, progress=told)

    def __dir__(self) -> Iterable[str]:
        return sorted(type(self._made)._asks)

    def __repr__(self) -> str:
        return repr(self._made)


def _refused(name: str, *_: Any, **__: Any) -> Any:
    raise UnsupportedError(f"{name} is asked where the policy is: a service does not offer it")


def _inner(value: Any) -> Any:
    return value._made if isinstance(value, RemoteTable) else value


def _sent(value: Any) -> Any:
    if isinstance(value, RemoteTable):
        return value._recipe
    if isinstance(value, TableQuery):
        raise ArgumentError("rows must be of this session")
    return value

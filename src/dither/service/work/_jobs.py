"""Jobs: what somebody asked to have released, from the request to its answer.

::

    waiting -> queued -> running -> done
       |         |          |-----> failed     after the charge, or before it
       |         |          |-----> ended      by its asker, or by the time that it may take
       |         |          `-----> given up   its process died, again and again
       |-> declined
       `-> cancelled <- queued

What was charged stays charged. A job that was, and whose answer is not in the ledger, is run again
when the process that ran it is gone (`Request.resume`). Only what the ledger holds is given out.
"""

from __future__ import annotations

import itertools
import json
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa

from dither.errors import ArgumentError, TokenError
from dither.service._database import Database
from dither.service._tables import jobs, pauses

__all__ = ["MOST_ATTEMPTS", "Draft", "Jobs", "ReleaseJob", "State"]

MOST_ATTEMPTS = 3
"""How often a process may die over one job."""

MOST_OPEN = 50
"""Jobs of one person that have not ended."""

STALE = 30.0
"""Seconds after which a server that says nothing is taken to be gone."""


class State(Enum):
    """Where a job is."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    ENDED = "ended"
    GIVEN_UP = "given up"
    DECLINED = "declined"
    CANCELLED = "cancelled"


OPEN = (State.WAITING.value, State.QUEUED.value, State.RUNNING.value)


@dataclass(frozen=True, slots=True)
class Draft:
    """What is asked for, seen to be askable.

    Parameters
    ----------
    ask : list
        `QuestionRecipe.to_list`.
    title : str
        The question in words.
    requested : mapping
        ``epsilon``, ``delta`` and ``confidence``.
    digest : str
        Of the request: what is approved is what runs.
    tables : sequence of str
        Which private tables it reads.
    price : mapping
    """

    ask: list[Any]
    title: str
    requested: Mapping[str, Any]
    digest: str
    tables: tuple[str, ...]
    price: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReleaseJob:
    """A row."""

    id: str
    person: str
    token: str
    purpose: str | None
    reservation: str | None
    draft: Draft
    state: State
    attempts: int
    entry: int | None
    replayed: bool
    failure: Mapping[str, Any] | None
    decided: str | None
    created: float

    def to_dict(self) -> dict[str, Any]:
        """What its asker and the owner see."""
        return {
            "id": self.id,
            "person": self.person,
            "purpose": self.purpose,
            "question": self.draft.title,
            "ask": _without_tables(self.draft.ask),
            "requested": dict(self.draft.requested),
            "digest": self.draft.digest,
            "tables": list(self.draft.tables),
            "price": dict(self.draft.price),
            "state": self.state.value,
            "entry": self.entry,
            "replayed": self.replayed,
            "failure": None if self.failure is None else dict(self.failure),
            "decided": self.decided,
        }


class Jobs:
    """The jobs of one policy.

    Parameters
    ----------
    database : Database
    server : str, optional
        A name of this process among those that use the database.
    """

    def __init__(self, database: Database, server: str | None = None) -> None:
        self._database = database
        self.server = server or secrets.token_hex(8)
        self._turn = itertools.count()
        self._turns: dict[str, int] = {}
        """By person: when this server took one of their jobs last."""

    def add(
        self,
        person: str,
        token: str | None,
        draft: Draft,
        *,
        purpose: str | None = None,
        reservation: str | None = None,
        waits: bool = False,
        answered: int | None = None,
    ) -> ReleaseJob:
        """Take a request; the same one under the same token is the one that is there.

        Parameters
        ----------
        person : str
        token : str or None
        draft : Draft
        purpose, reservation : str, optional
        waits : bool
            For an owner.
        answered : int, optional
            The entry of an earlier answer that will do.

        Raises
        ------
        TokenError
            The token was used for something else.
        ArgumentError
            The person has too many open jobs.
        """
        token = token or secrets.token_hex(16)
        with self._database.writing() as connection:
            # Whoever writes waits for the others, so a token is taken once.
            mine = jobs.c.person == person
            found = connection.execute(
                sa.select(jobs).where(mine, jobs.c.token == token)
            ).one_or_none()
            if found is not None:
                if found.digest != draft.digest:
                    raise TokenError(
                        "token: it was used for another request; choose a new one for this"
                    )
                return _job(found)
            number = connection.execute(
                sa.select(sa.func.count()).where(mine, jobs.c.state.in_(OPEN))
            ).scalar_one()
            if number >= MOST_OPEN:
                raise ArgumentError(
                    f"you have {number} questions that have not been answered yet: wait for some "
                    "of them, or cancel them"
                )
            state = State.WAITING if waits else State.QUEUED
            state = state if answered is None else State.DONE
            job_id = secrets.token_hex(12)
            connection.execute(
                jobs.insert().values(
                    id=job_id,
                    person=person,
                    token=token,
                    purpose=purpose,
                    reservation=reservation,
                    ask=json.dumps(draft.ask),
                    title=draft.title,
                    requested=json.dumps(dict(draft.requested)),
                    digest=draft.digest,
                    tables=json.dumps(list(draft.tables)),
                    price=json.dumps(dict(draft.price)),
                    state=state.value,
                    entry=answered,
                    replayed=answered is not None,
                    created=time.time(),
                )
            )
            return _job(connection.execute(sa.select(jobs).where(jobs.c.id == job_id)).one())

    def get(self, job_id: str) -> ReleaseJob | None:
        """The job of this id."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(jobs).where(jobs.c.id == job_id)).one_or_none()
        return None if row is None else _job(row)

    def listed(
        self, person: str | None = None, state: State | None = None, last: int = 100
    ) -> list[ReleaseJob]:
        """The newest jobs, newest first; of one person, in one state."""
        query = sa.select(jobs).order_by(jobs.c.created.desc(), jobs.c.id).limit(last)
        if person is not None:
            query = query.where(jobs.c.person == person)
        if state is not None:
            query = query.where(jobs.c.state == state.value)
        with self._database.reading() as connection:
            return [_job(row) for row in connection.execute(query)]

    def answered_to(self, digest: str, person: str | None = None) -> list[int]:
        """The entries of the ledger that answer a request, of one person where one is named."""
        query = sa.select(jobs.c.entry).where(
            jobs.c.digest == digest, jobs.c.state == State.DONE.value, jobs.c.entry.is_not(None)
        )
        if person is not None:
            query = query.where(jobs.c.person == person)
        with self._database.reading() as connection:
            return sorted(set(connection.execute(query).scalars()))

    def counted(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        query = sa.select(jobs.c.state, sa.func.count().label("number")).group_by(jobs.c.state)
        with self._database.reading() as connection:
            return {row.state: row.number for row in connection.execute(query)}

    # --- a job's way ------------------------------------------------------------------------------

    def decide(self, job_id: str, approved: bool, by: str) -> ReleaseJob:
        """Approve what waits, or decline it.

        Raises
        ------
        ArgumentError
            It does not wait.
        """
        state = State.QUEUED if approved else State.DECLINED
        return self._moved(
            job_id, (State.WAITING,), state, "does not wait for approval", decided=by
        )

    def cancel(self, job_id: str) -> ReleaseJob:
        """Take back what was not begun; nothing was spent.

        Raises
        ------
        ArgumentError
            It was begun.
        """
        return self._moved(
            job_id,
            (State.WAITING, State.QUEUED),
            State.CANCELLED,
            "has begun, or has ended already",
        )

    def claim(self) -> ReleaseJob | None:
        """Take a job that is queued: the oldest of whoever was not served for the longest time.

        So somebody with fifty questions holds nobody up by more than one of them for each process.
        With several servers each job is taken once: whoever writes waits for the others.
        """
        with self._database.writing() as connection:
            paused = set(connection.execute(sa.select(pauses.c.table)).scalars())
            for person in self._by_turn(connection):
                job_id = self._oldest(connection, person, paused)
                if job_id is None:
                    continue
                self._turns[person] = next(self._turn)
                connection.execute(
                    jobs.update()
                    .where(jobs.c.id == job_id)
                    .values(
                        state=State.RUNNING.value,
                        attempts=jobs.c.attempts + 1,
                        server=self.server,
                        beat=time.time(),
                    )
                )
                return _job(connection.execute(sa.select(jobs).where(jobs.c.id == job_id)).one())
        return None

    def _by_turn(self, connection: sa.Connection) -> list[str]:
        """Who has something queued: whom this server has never served first, by age."""
        oldest = sa.func.min(jobs.c.created)
        query = (
            sa.select(jobs.c.person)
            .where(jobs.c.state == State.QUEUED.value)
            .group_by(jobs.c.person)
            .order_by(oldest)
        )
        found = list(connection.execute(query).scalars())
        return sorted(found, key=lambda one: self._turns.get(one, -1))

    def _oldest(
        self, connection: sa.Connection, person: str, paused: Collection[str]
    ) -> str | None:
        """The oldest job of a person that may begin."""
        query = (
            sa.select(jobs.c.id, jobs.c.tables)
            .where(jobs.c.state == State.QUEUED.value, jobs.c.person == person)
            .order_by(jobs.c.created, jobs.c.id)
        )
        if not paused:
            query = query.limit(1)
        found = connection.execute(query)
        # What reads a table that is paused waits until it goes on.
        ready = (row.id for row in found if set(paused).isdisjoint(json.loads(row.tables)))
        return next(ready, None)

    def finish(
        self,
        job_id: str,
        state: State,
        *,
        entry: int | None = None,
        replayed: bool = False,
        failure: Mapping[str, Any] | None = None,
    ) -> None:
        """Write down how a job of this server ended."""
        values: dict[str, Any] = {"state": state.value, "replayed": replayed}
        values["failure"] = None if failure is None else json.dumps(dict(failure))
        if entry is not None:
            values["entry"] = entry
        self._of_mine(job_id, **values)

    def charged(self, job_id: str, entry: int) -> None:
        """Write down that a job of this server was charged."""
        self._of_mine(job_id, entry=entry)

    def died(self, job_id: str, server: str | None = None) -> State:
        """The process of a job is gone: queue it again, or give it up on the record.

        Nothing happens where another server than the one that ran it has taken it up since.
        """
        with self._database.writing() as connection:
            row = connection.execute(sa.select(jobs).where(jobs.c.id == job_id)).one()
            if row.state != State.RUNNING.value or row.server != (server or self.server):
                return State(row.state)
            state = State.QUEUED if row.attempts < MOST_ATTEMPTS else State.GIVEN_UP
            failure = None if state is State.QUEUED else json.dumps(LOST)
            connection.execute(
                jobs.update().where(jobs.c.id == job_id).values(state=state.value, failure=failure)
            )
            return state

    def put_back(self, job_id: str) -> State:
        """This server ends, and leaves a job to whoever comes next: nobody's process died of it."""
        self._of_mine(job_id, state=State.QUEUED.value, attempts=jobs.c.attempts - 1)
        return State.QUEUED

    def beat(self, at_work: Collection[str] = ()) -> None:
        """Say that this server lives, and take over what others left.

        Parameters
        ----------
        at_work : collection of str
            The jobs that it does run. It may have failed to write down how another one ended.
        """
        now = time.time()
        with self._database.writing() as connection:
            running = jobs.c.state == State.RUNNING.value
            mine = jobs.c.server == self.server
            connection.execute(
                jobs.update().where(running, mine, jobs.c.id.in_(at_work)).values(beat=now)
            )
            left = sa.or_(jobs.c.beat.is_(None), jobs.c.beat < now - STALE)
            if not self._database.shared:
                # Nobody else uses the file, so whoever ran it is gone.
                left = sa.true()
            gone = sa.or_(
                sa.and_(jobs.c.server != self.server, left),
                sa.and_(mine, jobs.c.id.not_in(at_work)),
            )
            found = sa.select(jobs.c.id, jobs.c.server).where(running, gone)
            orphans = list(connection.execute(found))
        for row in orphans:
            self.died(row.id, row.server)

    def _of_mine(self, job_id: str, **values: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(
                jobs.update()
                .where(
                    jobs.c.id == job_id,
                    jobs.c.server == self.server,
                    jobs.c.state == State.RUNNING.value,
                )
                .values(**values)
            )

    def _moved(
        self, job_id: str, of: tuple[State, ...], to: State, refused: str, **values: Any
    ) -> ReleaseJob:
        with self._database.writing() as connection:
            found = connection.execute(
                jobs.update()
                .where(jobs.c.id == job_id, jobs.c.state.in_([one.value for one in of]))
                .values(state=to.value, **values)
            )
            if not found.rowcount:
                raise ArgumentError(f"the question {refused}")
            return _job(connection.execute(sa.select(jobs).where(jobs.c.id == job_id)).one())

    # --- pauses -----------------------------------------------------------------------------------

    def pause(self, table: str, by: str, reason: str) -> None:
        """Let no question of a table begin."""
        with self._database.writing() as connection:
            connection.execute(pauses.delete().where(pauses.c.table == table))
            connection.execute(
                pauses.insert().values(table=table, by=by, reason=reason, created=time.time())
            )

    def go_on(self, table: str) -> None:
        """Let questions of a table begin again."""
        with self._database.writing() as connection:
            connection.execute(pauses.delete().where(pauses.c.table == table))

    def paused(self) -> dict[str, str]:
        """By table that is paused: why."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(pauses)).all()
        return {row.table: row.reason for row in rows}


LOST = {
    "kind": "EngineError",
    "message": "the process that ran the question ended without an answer, several times; what was "
    "charged stays charged",
}


def _without_tables(asked: Any) -> Any:
    """How it was asked, without the public tables that were sent with it: they may be large."""
    if isinstance(asked, list):
        return [_without_tables(one) for one in asked]
    if isinstance(asked, dict):
        if asked.keys() == {"frame"}:
            return {"frame": f"{len(str(asked['frame'])):,} characters"}
        return {name: _without_tables(one) for name, one in asked.items()}
    return asked


def _job(row: Any) -> ReleaseJob:
    draft = Draft(
        json.loads(row.ask),
        row.title,
        json.loads(row.requested),
        row.digest,
        tuple(json.loads(row.tables)),
        json.loads(row.price),
    )
    return ReleaseJob(
        row.id,
        row.person,
        row.token,
        row.purpose,
        row.reservation,
        draft,
        State(row.state),
        row.attempts,
        row.entry,
        bool(row.replayed),
        None if row.failure is None else json.loads(row.failure),
        row.decided,
        row.created,
    )

"""A job's way from the request to its end, on each store; several servers on the shared one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dither.errors import ArgumentError, TokenError
from dither.ledger._place import LedgerSchema
from dither.service._database import Database
from dither.service._tables import SERVICE
from dither.service.work import _jobs
from dither.service.work._jobs import MOST_ATTEMPTS, MOST_OPEN, Jobs, State
from service.drafts import draft

_schemas = itertools.count()


@pytest.fixture(params=["file", "postgres"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """The tables of a service, on each kind of store."""
    place: Path | LedgerSchema = tmp_path / "jobs"
    if request.param == "postgres":
        monkeypatch.setenv("LEDGER_DSN", request.getfixturevalue("postgres").owner)
        place = LedgerSchema("env:LEDGER_DSN", f"jobs {next(_schemas)}")
    found = Database(place, SERVICE)
    yield found
    found.close()


@pytest.fixture
def jobs(database: Database) -> Jobs:
    """The jobs of one server."""
    return Jobs(database, "one")


def state(jobs: Jobs, job_id: str) -> State:
    """Where a job is."""
    found = jobs.get(job_id)
    assert found is not None
    return found.state


def test_every_way_through_the_states(jobs: Jobs) -> None:
    """Each arrow of the picture, and no other one."""
    waits = jobs.add("ann", "a", draft(), waits=True)
    assert waits.state is State.WAITING
    assert jobs.claim() is None, "what waits for an owner runs without one"
    assert jobs.decide(waits.id, True, "olga").state is State.QUEUED
    with pytest.raises(ArgumentError, match="does not wait"):
        jobs.decide(waits.id, True, "olga")
    taken = jobs.claim()
    assert taken is not None
    assert (taken.id, taken.state, taken.attempts) == (waits.id, State.RUNNING, 1)
    with pytest.raises(ArgumentError, match="has begun"):
        jobs.cancel(waits.id)
    jobs.charged(waits.id, 7)
    jobs.finish(waits.id, State.DONE, entry=7)
    found = jobs.get(waits.id)
    assert found is not None
    assert (found.state, found.entry, found.decided) == (State.DONE, 7, "olga")
    # What has ended stays so.
    jobs.finish(waits.id, State.FAILED, failure={"kind": "EngineError", "message": "late"})
    assert jobs.died(waits.id) is State.DONE

    declined = jobs.add("ann", "b", draft(), waits=True)
    assert jobs.decide(declined.id, False, "olga").state is State.DECLINED
    for waiting in (True, False):
        cancelled = jobs.add("ann", f"c{waiting}", draft(), waits=waiting)
        assert jobs.cancel(cancelled.id).state is State.CANCELLED
    with pytest.raises(ArgumentError, match="has begun, or has ended"):
        jobs.cancel(declined.id)

    for end in (State.FAILED, State.ENDED):
        job = jobs.add("ann", end.value, draft())
        jobs.claim()
        jobs.finish(job.id, end, failure={"kind": "EngineError", "message": "m"})
        assert state(jobs, job.id) is end
    assert jobs.claim() is None
    assert jobs.counted() == {"done": 1, "declined": 1, "cancelled": 2, "failed": 1, "ended": 1}


def test_a_job_whose_process_dies_is_run_again_and_then_given_up(jobs: Jobs) -> None:
    """On the record, with what was charged."""
    job = jobs.add("ann", "a", draft())
    for attempt in range(1, MOST_ATTEMPTS + 1):
        taken = jobs.claim()
        assert taken is not None
        assert taken.attempts == attempt
        jobs.charged(job.id, 3)
        left = jobs.died(job.id)
        assert left is (State.QUEUED if attempt < MOST_ATTEMPTS else State.GIVEN_UP)
    found = jobs.get(job.id)
    assert found is not None
    assert found.entry == 3
    assert found.failure is not None
    assert "stays charged" in found.failure["message"]
    assert jobs.claim() is None


def test_a_token_names_one_request_of_one_person(jobs: Jobs) -> None:
    """Again it is the same job; another request under it is refused; another's is another's."""
    first = jobs.add("ann", "weekly", draft())
    assert jobs.add("ann", "weekly", draft()) == first
    with pytest.raises(TokenError, match="another request"):
        jobs.add("ann", "weekly", draft("cd" * 32))
    assert jobs.add("bob", "weekly", draft("cd" * 32)).id != first.id


def test_one_token_at_the_same_time_is_one_job(jobs: Jobs) -> None:
    """Eight at once: nobody fails, and there is one job."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: jobs.add("ann", "weekly", draft()).id, range(16)))
    assert len(set(found)) == 1


def test_nobody_fills_the_queue(jobs: Jobs) -> None:
    """So many open jobs of a person; others still ask."""
    for i in range(MOST_OPEN):
        jobs.add("ann", str(i), draft(), waits=bool(i % 2))
    with pytest.raises(ArgumentError, match="have not been answered yet"):
        jobs.add("ann", "one more", draft())
    jobs.add("bob", "0", draft())


def test_what_reads_a_paused_table_waits_until_it_goes_on(jobs: Jobs) -> None:
    """Also what was asked before the pause; others pass."""
    held = jobs.add("ann", "a", draft())
    other = jobs.add("ann", "b", draft(tables=("stays",)))
    jobs.pause("visits", "olga", "a fault in the source")
    jobs.pause("visits", "olga", "still")
    assert jobs.paused() == {"visits": "still"}
    taken = jobs.claim()
    assert taken is not None
    assert taken.id == other.id
    assert jobs.claim() is None
    jobs.go_on("visits")
    taken = jobs.claim()
    assert taken is not None
    assert taken.id == held.id


def test_each_job_is_taken_once_by_several_servers(database: Database) -> None:
    """Two servers, each with connections of its own, eight threads: forty jobs, forty claims."""
    other = Database(database.place, SERVICE)
    servers = [Jobs(database, "one"), Jobs(other, "two")]
    made = {servers[0].add("ann", str(i), draft()).id for i in range(40)}

    def taken(server: Jobs) -> list[str]:
        found = []
        while (job := server.claim()) is not None:
            found.append(job.id)
        return found

    with ThreadPoolExecutor(8) as pool:
        found = [one for some in pool.map(taken, servers * 4) for one in some]
    assert len(found) == 40
    assert set(found) == made
    other.close()


def test_a_server_takes_over_from_one_that_is_gone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a shared store once it has been silent; what it says afterwards counts no more."""
    one, two = Jobs(database, "one"), Jobs(database, "two")
    job = one.add("ann", "a", draft())
    one.claim()
    one.beat([job.id])
    if database.shared:
        two.beat()
        assert state(two, job.id) is State.RUNNING, "taken from a server that lives"
        now = time.time()
        monkeypatch.setattr(_jobs.time, "time", lambda: now + _jobs.STALE + 1)
    two.beat()
    assert state(two, job.id) is State.QUEUED
    assert two.claim() is not None
    one.charged(job.id, 9)
    one.finish(job.id, State.DONE, entry=9)
    assert one.died(job.id) is State.RUNNING
    found = two.get(job.id)
    assert found is not None
    assert (found.state, found.entry) == (State.RUNNING, None)


def test_a_job_whose_end_could_not_be_written_is_taken_up_by_the_next_beat(jobs: Jobs) -> None:
    """A server that runs it no more says so by not naming it."""
    job = jobs.add("ann", "a", draft())
    jobs.claim()
    jobs.beat([job.id])
    assert state(jobs, job.id) is State.RUNNING
    jobs.beat([])
    assert state(jobs, job.id) is State.QUEUED


def test_what_is_listed(jobs: Jobs) -> None:
    """By person and by state, newest first; and which entries answer a request."""
    first, second = jobs.add("ann", "a", draft()), jobs.add("bob", "a", draft(), waits=True)
    assert [one.id for one in jobs.listed()] == [second.id, first.id]
    assert [one.id for one in jobs.listed("ann")] == [first.id]
    assert [one.id for one in jobs.listed(state=State.WAITING)] == [second.id]
    jobs.claim()
    jobs.finish(first.id, State.DONE, entry=5)
    assert jobs.answered_to(draft().digest) == [5]
    assert jobs.answered_to(draft().digest, "bob") == []
    assert jobs.get("nothing") is None


def test_names_are_no_sql(jobs: Jobs) -> None:
    """Texts of anybody are values of statements, whatever is in them."""
    hostile: list[Any] = ["'; DROP TABLE service_jobs; --", "%s %(x)s :x {y} \\", "‮<script>"]
    for text in hostile:
        job = jobs.add(text, text, draft(), purpose=text, reservation=text)
        found = jobs.get(job.id)
        assert found is not None
        assert (found.person, found.token, found.purpose) == (text, text, text)
        assert [one.id for one in jobs.listed(text)] == [job.id]
        jobs.pause(text, text, text)
        assert jobs.paused()[text] == text
        jobs.go_on(text)


def test_nobody_waits_for_all_that_another_asked(jobs: Jobs) -> None:
    """By turns: somebody with many questions holds others up by one, and each keeps its order."""
    mine = [jobs.add("ann", f"{i}", draft()).id for i in range(4)]
    theirs = [jobs.add("bob", f"{i}", draft()).id for i in range(2)]
    late = jobs.add("eve", "x", draft()).id
    order = []
    while (taken := jobs.claim()) is not None:
        order.append(taken.id)
        # Whoever asks one question after the other does not go before who waits.
        if taken.id == late:
            late = jobs.add("eve", "y", draft()).id
    assert order[:3] == [mine[0], theirs[0], order[2]]
    assert order[3:] == [mine[1], theirs[1], late, mine[2], mine[3]]


def test_a_table_that_is_paused_holds_up_nobody_else(jobs: Jobs) -> None:
    """Whoever asked about it only is passed over, and loses no turn by it."""
    waits = jobs.add("ann", "a", draft(tables=("visits",))).id
    other = jobs.add("bob", "b", draft(tables=("stays",))).id
    jobs.pause("visits", "olga", "x")
    taken = jobs.claim()
    assert taken is not None
    assert taken.id == other
    assert jobs.claim() is None
    jobs.go_on("visits")
    taken = jobs.claim()
    assert taken is not None
    assert taken.id == waits

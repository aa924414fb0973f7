"""For whoever asked: how it goes, and the answer."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.responses import Response, StreamingResponse

from dither.errors import ArgumentError
from dither.service._endpoints import (
    ANALYST,
    OWNER,
    PUBLIC,
    Asked,
    Endpoint,
    Field,
    NotFoundError,
    TooManyError,
    roles,
)
from dither.service.access._roles import Role
from dither.service.work._jobs import ReleaseJob, State

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ENDPOINTS"]

ASKERS = roles(ANALYST, OWNER)

LONGEST_WAIT = 60


def one(asked: Asked) -> ReleaseJob:
    """The job that is named, of whoever asks.

    Raises
    ------
    NotFoundError
        There is none of theirs; another's gives no sign that it exists.
    """
    found = asked.desk.jobs.get(asked.path["id"])
    mine = found is not None and asked.who.name == found.person
    if found is None or not (mine or asked.who.role is Role.OWNER):
        raise NotFoundError("you have no question of this id")
    return found


def with_answer(asked: Asked, job: ReleaseJob) -> dict[str, Any]:
    """A job, and its answer once it is done."""
    found = job.to_dict() | {"progress": asked.hall.progress.get(job.id, 0.0)}
    if job.state is State.DONE:
        found["answer"] = asked.desk.answer(job)
    return found


async def waited(asked: Asked, job_id: str, seconds: float) -> None:
    """Return once a job has ended, or after so many seconds."""

    async def heard() -> None:
        async for _ in asked.hall.listen(asked.desk, job_id):
            pass

    with asked.hall.heard(asked.desk, asked.who.name), suppress(TimeoutError):
        await asyncio.wait_for(heard(), seconds)


async def job(asked: Asked) -> dict[str, Any]:
    """How a question goes; its answer, once there is one.

    Whoever waits holds no thread meanwhile: there are few, and others ask.
    """
    found = await to_thread.run_sync(one, asked)
    seconds = asked.body.get("wait", 0)
    if seconds and found.state in (State.WAITING, State.QUEUED, State.RUNNING):
        await waited(asked, found.id, seconds)
        found = await to_thread.run_sync(one, asked)
    return await to_thread.run_sync(with_answer, asked, found)


def listed(asked: Asked) -> dict[str, Any]:
    """Questions, newest first."""
    person = None if asked.who.role is Role.OWNER and asked.body.get("all") else asked.who.name
    found = asked.desk.jobs.listed(person, last=asked.body.get("last", 100))
    return {"jobs": [one.to_dict() for one in found]}


def events(asked: Asked) -> Response:
    """How a question goes, as it happens: server-sent events."""
    found = one(asked)
    asked.hall.check_heard(asked.desk, asked.who.name)

    async def lines() -> AsyncIterator[str]:
        with suppress(TooManyError), asked.hall.heard(asked.desk, asked.who.name):
            async for what, value in asked.hall.listen(asked.desk, found.id):
                yield f"event: {what}\ndata: {json.dumps(value)}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


def stop(asked: Asked) -> dict[str, Any]:
    """Cancel a question that has not begun; end one that runs, which stays charged."""
    import anyio.from_thread

    found = one(asked)
    if found.state is State.RUNNING and anyio.from_thread.run(asked.hall.pool.end, found.id):
        now = asked.desk.jobs.get(found.id)
        if now is not None and now.state is State.ENDED:
            return {"state": State.ENDED.value}
        # Else it was answered just before.
    return asked.desk.jobs.cancel(found.id).to_dict()


def frame(asked: Asked) -> Response:
    """An answer's table, as an Arrow stream or as Parquet or CSV."""
    found = one(asked)
    answer = asked.desk.answer(found) if found.state is State.DONE else None
    if answer is None:
        raise NotFoundError("this question has no answer")
    return table(answer["content"], asked.body.get("form", "arrow"))


def table(content: Any, form: str) -> Response:
    """A table of an answer in one of three forms."""
    from dither.query._release import Release

    if not (isinstance(content.get("columns"), list) and "outputs" in content):
        raise NotFoundError("this answer is no table: read it as a whole")
    return as_table(Release(dict(content)).frame, form)


def as_table(made: pl.DataFrame, form: str) -> Response:
    """A frame in one of three forms."""
    if form not in ("arrow", "parquet", "csv"):
        raise ArgumentError("form must be arrow, parquet or csv")
    out = io.BytesIO()
    if form == "csv":
        made.write_csv(out)
        return Response(out.getvalue(), media_type="text/csv")
    if form == "parquet":
        made.write_parquet(out)
        return Response(out.getvalue(), media_type="application/vnd.apache.parquet")
    made.write_ipc_stream(out)
    return Response(out.getvalue(), media_type="application/vnd.apache.arrow.stream")


def answers(asked: Asked) -> dict[str, Any]:
    """Released answers that whoever asks may see: all where the owner shows them to anybody."""
    done = asked.desk.jobs.listed(state=State.DONE, last=1000)
    shown = list(filter(asked.desk.shown(asked.who), done))[: asked.body.get("last", 100)]
    return {
        "answers": [
            {"id": one.id, "question": one.draft.title, "entry": one.entry} for one in shown
        ]
    }


def public_answer(asked: Asked) -> dict[str, Any]:
    """One released answer, with its certificate."""
    found = asked.desk.jobs.get(asked.path["id"])
    done = found is not None and found.state is State.DONE
    if found is None or not (done and asked.desk.shown(asked.who)(found)):
        raise NotFoundError("there is no answer of this id")
    return {"question": found.draft.title, "answer": asked.desk.answer(found)}


LAST = Field("whole", "how many, 100 where left out", most=1000)

ENDPOINTS = [
    Endpoint(
        "GET",
        "/jobs",
        ASKERS,
        listed,
        "Questions that were asked, newest first.",
        {"last": LAST, "all": Field("flag", "those of everybody, for an owner")},
    ),
    Endpoint(
        "GET",
        "/jobs/{id}",
        ASKERS,
        job,
        "How a question goes, and its answer.",
        {"wait": Field("whole", "seconds to wait for it to end", most=LONGEST_WAIT)},
    ),
    Endpoint("GET", "/jobs/{id}/events", ASKERS, events, "How it goes, as it happens."),
    Endpoint(
        "GET",
        "/jobs/{id}/table",
        ASKERS,
        frame,
        "The answer's table.",
        {"form": Field("text", "arrow, parquet or csv", most=10)},
    ),
    Endpoint("DELETE", "/jobs/{id}", ASKERS, stop, "Cancel it, or end it while it runs."),
    Endpoint(
        "GET",
        "/answers",
        roles(PUBLIC, ANALYST, OWNER),
        answers,
        "Released answers that whoever asks may see.",
        {"last": LAST},
    ),
    Endpoint("GET", "/answers/{id}", roles(PUBLIC, ANALYST, OWNER), public_answer, "One of them."),
]

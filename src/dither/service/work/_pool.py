"""Processes that run questions: started when they are needed, ended when they are not.

A process runs one question at a time, so that one that takes too long is ended without another.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from dither.policy._policy import PolicyText
from dither.service.work._jobs import Jobs, ReleaseJob, State
from dither.service.work._processes import IdleProcesses, WorkProcess, start_process

__all__ = ["Order", "Pool"]

IDLE = 120.0
"""Seconds after which a process that has nothing to run ends."""

TOO_LONG = {
    "kind": "EngineError",
    "message": "the question took longer than it may, and was ended; what was charged stays "
    "charged. Ask for less at once, or ask the data owner for more time",
}
ENDED = {
    "kind": "EngineError",
    "message": "the question was ended while it ran; what was charged stays charged",
}

Said = Callable[[str, str, Any], None]


@dataclass(frozen=True, slots=True)
class Order:
    """A job with what a process must know to run it.

    Parameters
    ----------
    job : ReleaseJob
    policy : PolicyText
        As the service has taken it up, whatever its file holds by now.
    policy_digest : str
        Of it: another is refused.
    timeout : float
        Seconds.
    owner : bool
        Whether an owner asks.
    """

    job: ReleaseJob
    policy: PolicyText
    policy_digest: str
    timeout: float
    owner: bool = False

    def line(self) -> bytes:
        """What the process reads."""
        job = self.job
        body = {
            "policy": str(self.policy.path),
            "policy_text": self.policy.text,
            "policy_digest": self.policy_digest,
            "person": job.person,
            "owner": self.owner,
            "purpose": job.purpose,
            "reservation": job.reservation,
            "token": job.token,
            "ask": job.draft.ask,
            "requested": dict(job.draft.requested),
            "digest": job.draft.digest,
        }
        return json.dumps(body).encode() + b"\n"


class Pool:
    """The processes of one service, which run the jobs of all its policies.

    Parameters
    ----------
    workers : int
        How many at a time.
    memory : int, optional
        Bytes that each may take.
    """

    def __init__(self, workers: int, memory: int | None = None) -> None:
        self._memory = memory
        self._room = asyncio.Semaphore(workers)
        self._idle = IdleProcesses()
        self._running: dict[str, tuple[WorkProcess, asyncio.Event]] = {}
        """By job: what runs it, and what is set once it is written down how it ended."""
        self._cut: set[str] = set()
        self._closed = False

    async def run(self, jobs: Jobs, order: Order, said: Said) -> State:
        """Run a job to its end, and write down how it ended.

        Parameters
        ----------
        jobs : Jobs
        order : Order
        said : callable
            Is told of the job's job_id, what happened, and what goes with it.
        """
        job_id = order.job.id
        async with self._room:
            if self._closed:
                return await _put_back(jobs, job_id)
            process, written = await self._process(), asyncio.Event()
            self._running[job_id] = process, written
            try:
                state = await self._told(jobs, order, process, said)
            finally:
                self._running.pop(job_id, None)
                written.set()
                if not (process.has_ended or self._closed or job_id in self._cut):
                    self._idle.keep(process)
                else:
                    await process.end()
                    self._cut.discard(job_id)
            said(job_id, "state", state.value)
            return state

    async def _told(self, jobs: Jobs, order: Order, process: WorkProcess, said: Said) -> State:
        job_id, ended = order.job.id, time.monotonic() + order.timeout
        finish = _in_thread(jobs.finish)
        try:
            await process.tell(order.line())
            while True:
                left = ended - time.monotonic()
                line = await asyncio.wait_for(process.said.readline(), max(left, 0.001))
                if not line:
                    break
                what, value = json.loads(line)
                match what:
                    case "progress":
                        said(job_id, "progress", value)
                    case "charged":
                        await _in_thread(jobs.charged)(job_id, value)
                        said(job_id, "charged", value)
                    case "failed":
                        await finish(job_id, State.FAILED, failure=value)
                        return State.FAILED
                    case "done":
                        await finish(
                            job_id, State.DONE, entry=value["entry"], replayed=value["replayed"]
                        )
                        return State.DONE
        except TimeoutError:
            self._cut.add(job_id)
            await process.end()
            await finish(job_id, State.ENDED, failure=TOO_LONG)
            return State.ENDED
        except (BrokenPipeError, ConnectionResetError):
            pass
        if job_id in self._cut:
            await finish(job_id, State.ENDED, failure=ENDED)
            return State.ENDED
        if self._closed:
            return await _put_back(jobs, job_id)
        state: State = await _in_thread(jobs.died)(job_id)
        return state

    async def end(self, job_id: str) -> bool:
        """End a job that runs here, and wait until that is written down; whether there was one.

        One that has just been answered may stay so.
        """
        running = self._running.get(job_id)
        if running is None:
            return False
        process, written = running
        self._cut.add(job_id)
        await process.end()
        await written.wait()
        return True

    async def _process(self) -> WorkProcess:
        return await self._idle.take() or await start_process(self._memory)

    async def tidy(self, idle: float = IDLE) -> None:
        """End processes that have had nothing to run for so many seconds."""
        await self._idle.end(idle)

    async def close(self, patience: float = 30.0) -> None:
        """Let what runs come to an end, for so many seconds, and end all processes.

        A job that is cut off here goes back to where it was queued, and whoever comes next runs it.
        """
        self._closed = True
        until = time.monotonic() + patience
        while self._running and time.monotonic() < until:
            await asyncio.sleep(0.05)
        for process, _ in list(self._running.values()):
            await process.end()
        await self._idle.end()


async def _put_back(jobs: Jobs, job_id: str) -> State:
    state: State = await _in_thread(jobs.put_back)(job_id)
    return state


def _in_thread(call: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A call that waits for the disk, off the loop."""

    async def called(*args: Any, **named: Any) -> Any:
        return await asyncio.to_thread(call, *args, **named)

    return called

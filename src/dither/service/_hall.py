"""The whole service while it runs: its desks, its processes, and what is told of jobs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from dither.errors import ArgumentError
from dither.service._desk import Desk
from dither.service._endpoints import TooManyError
from dither.service._rounds import Rounds
from dither.service.work._jobs import State
from dither.service.work._loading import load_what_most_ask_for
from dither.service.work._pool import IDLE, Pool
from dither.service.work._processes import load_libraries, sweep
from dither.service.work._thinking import Thinkers

if TYPE_CHECKING:
    from dither.service.collect import Collector

__all__ = ["Hall"]

LOOK = 1.0
"""Seconds between two looks for work that nobody announced."""

BEAT = 5.0

MOST_HEARD = 64
"""Connections of one person on which they wait for a question, each of which takes a place of the
thousand that a service has: more than the questions that they may have open."""

WRITTEN = 5.0
"""Seconds to write down how jobs were left, as it ends."""

log = logging.getLogger("dither.service")


class Renewed(Protocol):
    """What is taken up anew where its files have changed."""

    def take_up(self, changed_only: bool = False) -> bool:
        """Read them again; whether anything is new. What cannot be used changes nothing."""
        ...


class Hall:
    """What the endpoints share.

    Parameters
    ----------
    desks : sequence of Desk
        Each of another name.
    workers : int, optional
        How many questions run at a time; the largest that a policy says, where left out.
    rounds : Rounds, optional
        What is done from time to time.
    """

    def __init__(
        self, desks: Sequence[Desk], workers: int | None = None, rounds: Rounds | None = None
    ) -> None:
        self._rounds = Rounds([]) if rounds is None else rounds
        self.desks = {desk.name: desk for desk in desks}
        if len(self.desks) < len(desks):
            raise ArgumentError("two policies have one name: say [service] name in one of them")
        if len({desk.database.place for desk in desks}) < len(desks):
            raise ArgumentError(
                "two policies keep their people in one place: give each its own ledger, or say "
                "[service] database in one of them"
            )
        settings = [desk.settings for desk in desks]
        limits = [one.memory for one in settings if one.memory is not None]
        number = workers or max((one.workers for one in settings), default=1)
        self.pool = Pool(number, min(limits) if len(limits) == len(settings) and limits else None)
        self.thinkers = Thinkers()
        self.ready = False
        self._new = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._runs: set[asyncio.Task[Any]] = set()
        self._leaving = False
        self._listening: dict[str, list[asyncio.Queue[tuple[str, Any]]]] = {}
        self._heard: dict[tuple[str, str], int] = {}
        self.progress: dict[str, float] = {}
        """By job that runs here: the share that is done."""
        self.unwritten: set[str] = set()
        """Policies whose service's database could not be written when that was last tried."""
        self.renewed: dict[str, Renewed] = {f"policy {desk.name}": desk for desk in desks}
        """What is read from files that change, by what the log calls it."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = number
        self._at_work: dict[str, set[str]] = {name: set() for name in self.desks}
        self._turn = asyncio.Lock()
        """Held while jobs are taken, and while it is said which of them run."""

    async def start(self, ready: Callable[[], None] | None = None) -> None:
        """Take up work that was left, and look for more until `stop`.

        Parameters
        ----------
        ready : callable, optional
            Does, a little later and in a thread, what the first visitor would else wait for.
        """
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(sweep)
        for desk in self.desks.values():
            await asyncio.to_thread(desk.jobs.beat)
        self._keep(self._look())
        self._keep(self._tick())
        self._keep(self._go_round())
        self.ready = True
        self._keep(self._load_later(ready))

    def collector_of(self, desk: Desk) -> Collector | None:
        """What takes in the reports of a policy's surveys; None where it has none."""
        return self._rounds.collector_of(desk)

    def leave(self) -> None:
        """Begin nothing any more: what runs goes on, and what is queued waits for the next server.

        It may be called from a signal's handler.
        """
        self.ready, self._leaving = False, True

    async def stop(self, patience: float = 30.0) -> None:
        """Let what runs end, for so many seconds, and close everything."""
        self.leave()
        await self.thinkers.close()
        await self.pool.close(patience)
        if self._runs:
            await asyncio.wait(self._runs, timeout=WRITTEN)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._rounds.stop()
        await asyncio.to_thread(self._rounds.close)
        for desk in self.desks.values():
            desk.close()

    def announce(self) -> None:
        """Say, from any thread, that there may be a job to run."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._new.set)

    def look_again(self) -> None:
        """Read policies and certificates again, whether they changed or not.

        It may be called from a signal's handler.
        """
        if self._loop is None or self._leaving:
            return
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(lambda: self._keep(self._take_up(changed_only=False)))

    # --- work -------------------------------------------------------------------------------------

    def _keep(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @staticmethod
    async def _load_later(ready: Callable[[], None] | None) -> None:
        # Whether it answers is looked at first; then somebody may open the page.
        if ready is not None:
            await asyncio.sleep(LOOK / 10)
            await asyncio.to_thread(ready)
        await asyncio.sleep(LOOK)
        await asyncio.to_thread(_load)

    async def _look(self) -> None:
        running = 0

        async def run(desk: Desk, job: Any) -> None:
            nonlocal running
            try:
                order = await asyncio.to_thread(desk.order, job)
                await self.pool.run(desk.jobs, order, self.say)
            except Exception as error:
                # Nothing may end the search for work. The next beat sees that nobody runs it.
                log.warning("job %s: %s", job.id, type(error).__name__)
                with suppress(Exception):
                    await asyncio.to_thread(desk.jobs.died, job.id)
            finally:
                self._at_work[desk.name].discard(job.id)
                running -= 1
                self._new.set()

        while not self._leaving:
            found = False
            for desk in self.desks.values():
                if running >= self._room or self._leaving:
                    break
                try:
                    async with self._turn:
                        job = await asyncio.to_thread(desk.jobs.claim)
                        if job is not None:
                            self._at_work[desk.name].add(job.id)
                except Exception as error:
                    log.warning("jobs of %s: %s", desk.name, type(error).__name__)
                    continue
                if job is not None:
                    found, running = True, running + 1
                    self.say(job.id, "state", State.RUNNING.value)
                    task = self._keep(run(desk, job))
                    self._runs.add(task)
                    task.add_done_callback(self._runs.discard)
            if not found:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._new.wait(), LOOK)
                self._new.clear()

    async def _go_round(self) -> None:
        while not self._leaving:
            await self._rounds.look()
            await asyncio.sleep(BEAT)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            await self.pool.tidy()
            await self.thinkers.tidy(IDLE)
            for desk in self.desks.values():
                try:
                    await self._beat(desk)
                    await asyncio.to_thread(desk.tidy)
                except Exception as error:
                    log.warning("policy %s: %s", desk.name, type(error).__name__)
            await self._take_up(changed_only=True)

    async def _take_up(self, *, changed_only: bool) -> None:
        for name, one in self.renewed.items():
            try:
                if await asyncio.to_thread(one.take_up, changed_only):
                    log.info("%s: taken up", name)
            except Exception as error:
                what = type(error).__name__
                log.warning("%s: %s; what was there before is served on", name, what)

    async def _beat(self, desk: Desk) -> None:
        try:
            async with self._turn:
                await asyncio.to_thread(desk.jobs.beat, list(self._at_work[desk.name]))
        except BaseException:
            self.unwritten.add(desk.name)
            raise
        self.unwritten.discard(desk.name)

    # --- what is told of jobs ---------------------------------------------------------------------

    def say(self, job: str, what: str, value: Any) -> None:
        """Tell whoever listens; in the loop."""
        if what == "progress":
            self.progress[job] = value
        elif what == "state":
            self.progress.pop(job, None)
        for queue in self._listening.get(job, ()):
            queue.put_nowait((what, value))

    def check_heard(self, desk: Desk, person: str) -> None:
        """Refuse whoever waits on as many connections as one person may.

        Raises
        ------
        TooManyError
            Their others go on.
        """
        if self._heard.get((desk.name, person), 0) >= MOST_HEARD:
            raise TooManyError(
                f"you wait on {MOST_HEARD} connections already: end one, or ask without waiting"
            )

    @contextmanager
    def heard(self, desk: Desk, person: str) -> Iterator[None]:
        """Count a connection on which somebody waits; in the loop.

        Raises
        ------
        TooManyError
            As `check_heard`.
        """
        self.check_heard(desk, person)
        who = desk.name, person
        self._heard[who] = self._heard.get(who, 0) + 1
        try:
            yield
        finally:
            self._heard[who] -= 1
            if not self._heard[who]:
                del self._heard[who]

    async def listen(self, desk: Desk, job: str) -> AsyncIterator[tuple[str, Any]]:
        """What happens to a job, until it has ended."""
        queue: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self._listening.setdefault(job, []).append(queue)
        try:
            last = None
            while True:
                found = await asyncio.to_thread(desk.jobs.get, job)
                if found is None:
                    return
                if found.state.value != last:
                    last = found.state.value
                    yield "state", last
                if found.state not in (State.WAITING, State.QUEUED, State.RUNNING):
                    return
                # What goes on is told here; only where the job is stands in the database.
                what, until = "", time.monotonic() + 2 * LOOK
                while what != "state" and (left := until - time.monotonic()) > 0:
                    with suppress(TimeoutError):
                        what, value = await asyncio.wait_for(queue.get(), left)
                        if what == "progress":
                            yield what, value
        finally:
            self._listening[job].remove(queue)
            if not self._listening[job]:
                del self._listening[job]


def _load() -> None:
    """Load what most questions need, so that who asks the first one does not wait for it."""
    load_libraries()
    load_what_most_ask_for("polars")

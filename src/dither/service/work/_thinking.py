"""Drafts that may take long are worked out in processes of their own, which are ended in time.

A number that an analyst writes decides how many columns, levels, bins or values a question has, and
so how long its price takes to find. Nothing of it reads data, and nothing is charged; but a server
that found it itself would stand still for everybody. So each person has one such draft at a time,
for so many seconds and so much memory, and short questions in SQL wait for none of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dither import errors
from dither.errors import ArgumentError, DitherError, QueryError
from dither.service.work._processes import IdleProcesses, WorkProcess, start_process

if TYPE_CHECKING:
    from dither.policy._policy import PolicyText

__all__ = ["Thinkers"]

SECONDS = 15
"""Of a processor's time, for one draft. What others use of the machine does not count."""

PATIENCE = 4
"""So many times as long by the clock, then a draft is ended in any case."""

MEMORY = 4 * 2**30
"""Bytes of address space of a process: libraries alone reserve more than one in four of it."""

PROCESSES = 2

MOST_WAITING = 4
"""Drafts of one person that wait for the one before."""

LONGEST_LINE = 2**26
"""Bytes of what is worked out."""

TOO_MUCH = (
    "to work this question out takes more time or memory than a service gives to a draft: ask for "
    "less at once, such as fewer columns, levels, bins or values. Nothing was charged"
)


class Thinkers:
    """The processes that work out drafts.

    Parameters
    ----------
    processes : int
    seconds : int
        Of a processor's time, for one draft.
    memory : int
        Bytes of address space for each process.
    """

    def __init__(
        self, processes: int = PROCESSES, seconds: int = SECONDS, memory: int = MEMORY
    ) -> None:
        self.seconds, self._memory = seconds, memory
        self._room = asyncio.Semaphore(processes)
        self._idle = IdleProcesses()
        self._busy: set[WorkProcess] = set()
        self._turns: dict[tuple[str, str], _Turn] = {}
        self._closed = False

    async def think(
        self,
        what: str,
        text: PolicyText,
        digest: str,
        person: tuple[str, str],
        owner: bool,
        body: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Work a draft out.

        Parameters
        ----------
        what : str
            One of `dither.service.work._drafts.DRAFTS`.
        text, digest
            The policy that is served.
        person : (str, str)
            The policy's name, and who asks.
        owner : bool
        body : mapping

        Raises
        ------
        QueryError
            It takes too much.
        ArgumentError
            The person has too many drafts that wait.
        DitherError
            As the draft itself.
        """
        job = {
            "think": what,
            "policy": str(text.path),
            "policy_text": text.text,
            "policy_digest": digest,
            "person": person[1],
            "owner": owner,
            "body": dict(body),
        }
        line = json.dumps(job).encode() + b"\n"
        turn = self._turns.setdefault(person, _Turn())
        if turn.waiting > MOST_WAITING:
            raise ArgumentError(
                f"{turn.waiting} of your drafts are being worked out: wait for them"
            )
        turn.waiting += 1
        try:
            async with turn.lock, self._room:
                return await self._thought(line)
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                self._turns.pop(person, None)

    async def _thought(self, line: bytes) -> dict[str, Any]:
        if self._closed:
            raise QueryError("the service ends; nothing was charged")
        process = await self._idle.take() or await start_process(
            self._memory, limit=LONGEST_LINE, seconds=self.seconds
        )
        self._busy.add(process)
        whole = False
        try:
            async with asyncio.timeout(PATIENCE * self.seconds):
                await process.tell(line)
                while True:
                    said = await process.said.readline()
                    if not said:
                        raise QueryError(TOO_MUCH)
                    what, value = json.loads(said)
                    if what == "thought":
                        whole = True
                        found: dict[str, Any] = value
                        return found
                    if what == "failed":
                        whole = value["kind"] != MemoryError.__name__
                        raise _refused(value)
        except (TimeoutError, BrokenPipeError, ConnectionResetError, ValueError) as error:
            if isinstance(error, DitherError):
                raise
            raise QueryError(TOO_MUCH) from None
        finally:
            self._busy.discard(process)
            if whole and not self._closed:
                self._idle.keep(process)
            else:
                await process.end()

    async def tidy(self, idle: float) -> None:
        """End processes that have had nothing to do for so many seconds."""
        await self._idle.end(idle)

    async def close(self) -> None:
        """End all of them."""
        self._closed = True
        for one in list(self._busy):
            await one.end()
        await self._idle.end()


class _Turn:
    """The drafts of one person."""

    def __init__(self) -> None:
        self.lock, self.waiting = asyncio.Lock(), 0


def _refused(said: Mapping[str, str]) -> DitherError:
    """The error of a draft, as it was raised in its process."""
    if said["kind"] == MemoryError.__name__:
        return QueryError(TOO_MUCH)
    known = getattr(errors, said["kind"], None)
    if isinstance(known, type) and issubclass(known, DitherError):
        found: DitherError = known(said["message"])
        return found
    return ArgumentError(said["message"])

"""What a service does by itself, from time to time: scheduled releases, and estimates of surveys.

Scheduled questions run in a process of their own for each policy, as every question does; it ends
when there is nothing more to do, and meanwhile keeps neither other policies nor surveys waiting.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dither.errors import DitherError, PolicyError
from dither.service._desk import Desk

if TYPE_CHECKING:
    from starlette.routing import Route

    from dither.service.collect import Collector

__all__ = ["Rounds"]

SCHEDULES = 300.0
"""Seconds between two looks for scheduled questions. Ledgers keep hours."""

ESTIMATES = 60.0
"""Seconds between two looks for estimates that are to be published."""

log = logging.getLogger("dither.service")


class Rounds:
    """The regular work of some policies.

    Parameters
    ----------
    desks : sequence of Desk

    Raises
    ------
    PolicyError
        A section ``[collect]`` or ``[schedule]`` is wrong, or two policies have a survey of one
        name.
    """

    def __init__(self, desks: Sequence[Desk]) -> None:
        self._desks = list(desks)
        self.collectors: list[Collector] = []
        self.routes: list[Route] = []
        self._of: dict[str, Collector] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        """By policy: its process for scheduled questions, while there is one."""
        self._last = {"schedules": -SCHEDULES, "estimates": time.monotonic()}
        try:
            self._check_schedules()
            self._collect()
        except BaseException:
            self.close()
            raise

    def _check_schedules(self) -> None:
        for desk in self._desks:
            section = desk.session.policy.around.get("schedule", {})
            if section:
                from dither.service.schedule import read_schedules

                read_schedules(section)

    def _collect(self) -> None:
        taken: set[str] = set()
        for desk in self._desks:
            policy = desk.session.policy
            section = policy.around.get("collect", {})
            if not section:
                continue
            if policy.owner.public is None:
                raise PolicyError(
                    "[collect] needs the owner's public key, which says whether a survey is "
                    "theirs: [owner] public = 'owner.pub'"
                )
            from dither.service.collect import Collector, read_collect, routes

            collector = Collector(read_collect(section, policy.folder, policy.owner.public))
            self.collectors.append(collector)
            self._of[desk.name] = collector
            twice = taken & set(collector.settings.surveys)
            if twice:
                raise PolicyError("two policies have a survey of one name: rename one of them")
            taken |= set(collector.settings.surveys)
            self.routes += routes(collector)
        if len(self.collectors) > 1:
            raise PolicyError("one policy of a service may have [collect]: put all surveys into it")

    def collector_of(self, desk: Desk) -> Collector | None:
        """The collector of a policy's surveys; None where it has none."""
        return self._of.get(desk.name)

    async def look(self) -> None:
        """Do what is due; whatever fails is written down by its class, and tried again."""
        if self.collectors and self._due("estimates", ESTIMATES):
            from dither.service.collect import publish_due

            for collector in self.collectors:
                try:
                    await asyncio.to_thread(publish_due, collector)
                except Exception as error:
                    log.warning("estimates: %s", type(error).__name__)
        if self._due("schedules", SCHEDULES):
            for desk in self._desks:
                before = self._asking.get(desk.name)
                if before is None or before.done():
                    self._asking[desk.name] = asyncio.create_task(self._ask(desk))

    async def stop(self) -> None:
        """End what is asked by itself; what was charged is asked again, under its charge."""
        # Tasks belong to a loop, and a service may be started again in another.
        asked, self._asking = list(self._asking.values()), {}
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    async def _ask(self, desk: Desk) -> None:
        try:
            await self._scheduled(desk)
        except Exception as error:
            # There may be no room for a process now: the next look tries again.
            log.warning("schedules of %s: %s", desk.name, type(error).__name__)

    def _due(self, what: str, every: float) -> bool:
        now = time.monotonic()
        if now - self._last[what] < every:
            return False
        self._last[what] = now
        return True

    async def _scheduled(self, desk: Desk) -> None:
        if not desk.session.policy.around.get("schedule"):
            return
        try:
            paused = await asyncio.to_thread(desk.jobs.paused)
        except DitherError as error:
            log.warning("schedules of %s: %s", desk.name, type(error).__name__)
            return
        if paused:
            # What is due is asked once the table goes on, in order.
            return
        run = (sys.executable, "-m", "dither.cli", "schedule", "run", str(desk.path), "--once")
        process = await asyncio.create_subprocess_exec(
            *run,
            "--served",
            # The policy that is served: its file may hold one that was refused.
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(os.environ),
        )
        try:
            await process.communicate(desk.text.text.encode())
            ended = process.returncode
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if ended:
            log.warning(
                "schedules of %s: something was not released; see dither schedule", desk.name
            )

    def close(self) -> None:
        """Write down what was counted, and give back what is held."""
        for collector in self.collectors:
            collector.close()
        self.collectors.clear()

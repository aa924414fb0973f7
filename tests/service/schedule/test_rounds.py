"""What a service does by itself: one policy's scheduled questions hold up nothing else."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dither.service import _rounds
from dither.service._desk import Desk
from dither.service._rounds import Rounds
from service.hospital import written

DAILY = '[schedule.daily]\nevery = "day"\nepsilon = 0.1\nbegin = 2026-03-01\nsql = "x"\n'


class Alone:
    """A process that runs until it is killed."""

    def __init__(self) -> None:
        self.killed, self.returncode = asyncio.Event(), 0

    async def communicate(self, _: bytes) -> None:
        await self.killed.wait()

    def kill(self) -> None:
        self.killed.set()

    async def wait(self) -> None:
        await self.killed.wait()


def test_a_long_one_holds_up_neither_others_nor_surveys_and_ends_with_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does one that cannot be begun: it is tried again at the next look."""
    files = [written(tmp_path, name=name, ledger=f'"{name}.ledger"', more=DAILY) for name in "ab"]
    monkeypatch.setattr(_rounds, "SCHEDULES", 0.0)
    monkeypatch.setattr(_rounds, "ESTIMATES", 0.0)
    begun: list[str] = []
    made: list[Alone] = []
    estimates: list[Any] = []

    async def begin(*command: str, **_: Any) -> Alone:
        begun.append(Path(command[5]).stem)
        if begun[-1] == "b":
            raise BlockingIOError("no room for a process")
        made.append(Alone())
        return made[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", begin)
    monkeypatch.setattr("dither.service.collect.publish_due", estimates.append)

    async def looks(rounds: Rounds) -> None:
        for _ in range(3):
            await asyncio.wait_for(rounds.look(), 30)
            while not all(task.done() or made for task in rounds._asking.values()):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
        await asyncio.wait_for(rounds.stop(), 30)

    desks = [Desk(file) for file in files]
    caplog.set_level(logging.WARNING)
    rounds = Rounds(desks)
    rounds.collectors = [SimpleNamespace(close=lambda: None)]  # type: ignore[list-item]
    asyncio.run(looks(rounds))
    rounds.close()
    for desk in desks:
        desk.close()
    assert begun.count("a") == 1
    assert begun.count("b") == 3
    assert len(estimates) == 3
    assert made[0].killed.is_set()
    assert "schedules of b: BlockingIOError" in caplog.text

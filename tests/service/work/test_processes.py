"""Processes of a service: forked from one that holds libraries alone, told apart, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dither.service.work import _processes
from dither.service.work._processes import WorkProcess, load_libraries, start_process
from service.hospital import COUNT, served, written

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

UNKNOWN = {
    "think": "nothing",
    "policy": "none.toml",
    "policy_text": "",
    "policy_digest": "",
    "person": "ann",
    "owner": False,
    "body": {},
}
"""A draft of a policy that is none, which every process refuses in the same words."""


@pytest.fixture(params=["forked", "started"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of starting processes; Linux uses the first."""
    monkeypatch.setattr(_processes, "FORKS", request.param == "forked")
    return str(request.param)


async def refused(process: WorkProcess) -> Any:
    """What it says to a draft that it cannot work out."""
    await process.tell(json.dumps(UNKNOWN).encode() + b"\n")
    return json.loads(await process.said.readline())


def is_there(process: WorkProcess) -> bool:
    """Whether anybody has its number."""
    return Path(f"/proc/{process.pid}").exists()


def fork_server() -> int:
    """The number of the process that forks."""
    load_libraries()
    assert _processes._forks._process is not None
    return _processes._forks._process.pid


def test_a_process_answers_and_is_ended(how: str) -> None:
    """More than once by several at once; nothing of it is left, not even a zombie."""

    async def tried() -> None:
        process = await start_process(None)
        what, value = await refused(process)
        assert (what, value["kind"]) == ("failed", "PolicyError")
        assert is_there(process)
        assert os.getpgid(process.pid) == process.pid == os.getsid(process.pid)
        assert Path(process.folder).is_dir()
        await asyncio.gather(process.end(), process.end())
        assert not is_there(process)
        assert not Path(process.folder).exists()
        await process.end()

    asyncio.run(tried())


def test_one_that_ends_by_itself_is_seen(how: str) -> None:
    """Its lines end, and telling it more fails or is in vain."""

    async def tried() -> None:
        process = await start_process(None)
        await refused(process)
        os.kill(process.pid, signal.SIGTERM)
        assert await process.said.readline() == b""
        assert process.has_ended
        await process.end()
        assert not is_there(process)

    asyncio.run(tried())


def test_one_that_ends_without_having_read_is_seen(how: str) -> None:
    """What it was told and did not read is an error to whoever reads, and no end."""

    async def tried() -> None:
        process = await start_process(None)
        await refused(process)
        os.kill(process.pid, signal.SIGSTOP)
        await process.tell(json.dumps(UNKNOWN).encode() + b"\n")
        os.kill(process.pid, signal.SIGKILL)
        with contextlib.suppress(ConnectionResetError):
            assert await process.said.readline() == b""
        assert process.has_ended
        await process.end()
        assert not is_there(process)

    asyncio.run(tried())


def children(*parents: int) -> set[str]:
    """Numbers of the processes that these have started, whichever of their threads did."""
    tasks = (task for one in parents for task in Path(f"/proc/{one}/task").iterdir())
    return {child for task in tasks for child in (task / "children").read_text().split()}


def test_whoever_leaves_as_one_starts_leaves_nothing(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its folder, nor a process that waits for ever."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    parents = os.getpid(), fork_server()

    async def tried() -> set[str]:
        before = children(*parents)
        starting = asyncio.ensure_future(start_process(None))
        await asyncio.sleep(0)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await starting).end()
        return children(*parents) - before

    asyncio.run(gone(sorted(asyncio.run(tried()))))
    assert list(tmp_path.iterdir()) == []


def test_whoever_leaves_before_a_thread_begins_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All threads are busy, and the one that would start it never does: no file stays open."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(_processes._Forks, "start", lambda *_: pytest.fail("it was begun"))

    async def tried() -> tuple[set[Path], set[Path]]:
        busy, goes_on = threading.Event(), threading.Event()
        with ThreadPoolExecutor(1) as threads:
            asyncio.get_running_loop().set_default_executor(threads)
            threads.submit(lambda: (busy.set(), goes_on.wait()))
            busy.wait()
            before = set(Path("/proc/self/fd").iterdir())
            starting = asyncio.ensure_future(start_process(None))
            await asyncio.sleep(0.01)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
            after = set(Path("/proc/self/fd").iterdir())
            goes_on.set()
        return before, after

    before, after = asyncio.run(tried())
    assert after == before
    assert list(tmp_path.iterdir()) == []


def test_a_process_is_what_its_server_says(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its limits and its folder."""
    load_libraries()  # where this process was
    monkeypatch.chdir(tmp_path)

    async def tried() -> dict[str, Any]:
        process = await start_process(2**40, seconds=9)
        await refused(process)
        found = {
            "folder": Path(f"/proc/{process.pid}/cwd").readlink(),
            "limits": Path(f"/proc/{process.pid}/limits").read_text(),
            "nice": os.getpriority(os.PRIO_PROCESS, process.pid),
        }
        await process.end()
        return found

    found = asyncio.run(tried())
    assert found["folder"] == tmp_path
    assert str(2**40) in found["limits"]
    assert found["nice"] == os.getpriority(os.PRIO_PROCESS, 0) + 5


def test_its_environment_is_that_of_its_server_by_now(tmp_path: Path) -> None:
    """What came since the libraries were loaded is there, and what has gone is not."""
    code = """
import json, os, sys, tempfile
from dither.service.work import _run
tempfile.gettempdir()
seconds = _run._begin(json.loads(sys.argv[1]))
print(json.dumps([dict(os.environ), tempfile.gettempdir(), os.getcwd(), seconds]))
"""
    now = {"DITHER_LATER": "yes", "TMPDIR": str(tmp_path)}
    said = {"environment": now, "folder": str(tmp_path), "memory": 0, "seconds": 9}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(said)],
        env=os.environ | {"DITHER_GONE": "no"}, capture_output=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [now, str(tmp_path), str(tmp_path), 9]


def test_what_forks_holds_nothing_of_anybody(tmp_path: Path) -> None:
    """No file of a policy, a ledger or a table; no socket but its own, whoever was served."""
    with served(written(tmp_path)) as found:
        assert found.released("ann")["state"] == "done"
        held = [str(one.readlink()) for one in Path(f"/proc/{fork_server()}/fd").iterdir()]
    sockets = [one for one in held if one.startswith("socket:")]
    assert len(sockets) == 1
    assert set(held) - set(sockets) <= {os.devnull}


def test_processes_draw_noise_of_their_own(tmp_path: Path) -> None:
    """Each is forked from the same memory, and none repeats another's noise."""
    values = []
    with served(written(tmp_path, service="workers = 1")) as found:
        hall = found.http.app.app.state.hall  # type: ignore[attr-defined]
        numbers = set()
        for token in range(6):
            job = found.released("ann", epsilon="1e-9", token=str(token), sql=COUNT)
            values += job["answer"]["content"]["columns"][0]["values"]
            (process,) = hall.pool._idle
            numbers.add(process.pid)
            found.http.portal.call(hall.pool.tidy, 0)  # type: ignore[union-attr]
            assert not is_there(process)
    assert len(numbers) == 6
    # Noise of scale 1e9: two alike have a chance of about 1e-9.
    assert len(set(values)) == 6


def test_what_forks_may_be_killed() -> None:
    """What it forked goes on, and the next process is forked from another."""

    async def tried() -> None:
        first = await start_process(None)
        before = fork_server()
        os.kill(before, signal.SIGKILL)
        assert (await refused(first))[0] == "failed"
        second = await start_process(None)
        assert fork_server() != before
        assert (await refused(second))[0] == "failed"
        await first.end()
        await second.end()
        await gone([str(first.pid)])  # the system buries it
        assert not is_there(second)

    asyncio.run(tried())


def test_nothing_outlives_whoever_started_it() -> None:
    """Neither what forks nor what it forked, whether its server ends or is killed."""
    code = """
import asyncio, os, sys
from dither.service.work import _processes
async def started():
    process = await _processes.start_process(None)
    print(process.pid, _processes._forks._process.pid, process.folder, flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), 9)
asyncio.run(started())
"""
    for how in ("ends", "killed"):
        done = subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True)
        *numbers, folder = done.stdout.split()
        asyncio.run(gone(numbers))
        assert not Path(folder).exists(), "what it left on the disk is removed by itself"


async def gone(numbers: list[str]) -> None:
    """Wait until processes have ended."""
    for _ in range(1000):
        if not any(Path(f"/proc/{one}").exists() for one in numbers):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("processes outlive their server")


def test_where_none_can_be_started_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(_processes._Forks, "start", lambda *_: os.open("/none/such", os.O_RDONLY))
    with pytest.raises(FileNotFoundError):
        asyncio.run(start_process(None))
    assert list(tmp_path.iterdir()) == []

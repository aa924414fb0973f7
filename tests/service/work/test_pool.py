"""Processes that run questions: ended when they take too long, and nothing is left of them."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dither.engines import FAILED
from dither.policy._policy import PolicyText
from dither.service.work import _pool, _run
from dither.service.work._jobs import LOST, Jobs
from dither.service.work._processes import PREFIX, sweep
from service.hospital import COUNT, Served, served, written


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    found = tmp_path / "tmp"
    found.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


@pytest.fixture
def lists(tmp_path: Path, temporary: Path, ledger: str) -> Iterator[Served]:
    """A table with lists, which multiply its rows, and a second for a question of an analyst."""
    more = """
[tables.codes]
source = "codes.parquet"
unit = "person"
max_rows = 3
max_groups = 1
[tables.codes.columns]
codes = { bounds = [0, 100], type = "integer", max_items = 1000 }
"""
    rows = 40_000
    one = list(range(100)) * 10
    pl.DataFrame({"person": range(rows), "codes": [one] * rows}).write_parquet(
        tmp_path / "codes.parquet"
    )
    service = "timeout = { analyst = 1, owner = 1 }\nworkers = 1"
    with served(written(tmp_path, ledger=ledger, service=service, more=more)) as found:
        yield found


SECRET_CODE = 73

LONG = """
SELECT COUNT(*) AS n, SUM(c) AS s
FROM codes, UNNEST(codes.codes) AS u(c)
"""


def test_a_question_that_takes_too_long_is_ended_and_nothing_is_left(
    lists: Served, temporary: Path
) -> None:
    """Rows multiplied by lists: its process and its folder go; what was charged stays charged."""
    sql = LONG
    job = lists.released("ann", sql=sql, epsilon=1, token="long")
    assert (job["state"], job["failure"]["kind"]) == ("ended", "EngineError")
    assert "longer than it may" in job["failure"]["message"]
    assert not list(temporary.glob(f"{PREFIX}*"))
    again = lists.post("ann", "/releases", {"sql": sql, "epsilon": 1, "token": "long"}).json()
    assert again["id"] == job["id"]
    spent = lists.get("ann", "/balance").json()["balances"][0]["spent"]["epsilon"]
    assert spent in ("0", "1")


def test_temporary_files_are_for_the_service_alone(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that nobody else enters, which goes with its process."""
    with served(written(tmp_path)) as found:
        assert found.released("ann")["state"] == "done"
        (folder,) = temporary.glob(f"{PREFIX}*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.stat().st_uid == os.getuid()
        for path in (folder, *folder.rglob("*")):
            sql = f"SELECT COUNT(*) AS n FROM read_text('{path}')"
            refused = found.post("ann", "/explain", {"sql": sql, "epsilon": 1})
            assert refused.status_code == 400
        # The folder is held for as long as its process lives.
        os.utime(folder, (0, 0))
        sweep()
        assert folder.exists()
    assert not list(temporary.glob(f"{PREFIX}*"))


def test_what_a_killed_service_left_is_removed(temporary: Path) -> None:
    """Where nobody holds it any more; never what is held, new, or somebody's link."""
    left, held, new = (Path(tempfile.mkdtemp(prefix=PREFIX)) for _ in range(3))
    (left / "spilled").write_text("rows")
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    link = temporary / f"{PREFIX}link"
    link.symlink_to(elsewhere)
    for one in (left, held):
        os.utime(one, (0, 0))
    holds = os.open(held, os.O_RDONLY)
    fcntl.flock(holds, fcntl.LOCK_EX)
    sweep()
    os.close(holds)
    assert [one.exists() for one in (left, held, new, elsewhere)] == [False, True, True, True]


def test_a_stopped_question_is_ended_and_stays_so(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its asker may stop it, and an owner; nobody else."""
    with served(written(tmp_path, service="workers = 1")) as found:
        job = found.post("ann", "/releases", {"sql": COUNT, "epsilon": 1}).json()
        assert found.call("bob", "DELETE", f"/jobs/{job['id']}").status_code == 404
        stopped = found.call("ann", "DELETE", f"/jobs/{job['id']}")
        if stopped.status_code == 200:
            ended = found.get("ann", f"/jobs/{job['id']}", wait=30).json()
            assert ended["state"] in ("ended", "cancelled")


def test_what_was_answered_just_before_is_not_said_to_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops it while its end is being written down is told that it comes too late."""
    finish, told = Jobs.finish, threading.Event()

    def slowly(*given: Any, **named: Any) -> None:
        told.set()
        time.sleep(0.5)
        finish(*given, **named)

    with served(written(tmp_path)) as found:
        monkeypatch.setattr(Jobs, "finish", slowly)
        job = found.post("ann", "/releases", {"sql": COUNT, "epsilon": 1}).json()
        assert told.wait(60)
        stopped = found.call("ann", "DELETE", f"/jobs/{job['id']}")
        assert (stopped.status_code, "has ended already" in stopped.text) == (400, True)
        assert found.get("ann", f"/jobs/{job['id']}", wait=30).json()["state"] == "done"


def test_an_order_says_nothing_of_the_data() -> None:
    """What a process reads is what was asked, and where the policy is."""
    from dither.service.work._jobs import ReleaseJob, State
    from service.drafts import draft

    none: Any = None
    job = ReleaseJob(
        *("id", "ann", "token", None, None, draft(), State.RUNNING, 1, None, False, none, none),
        time.time(),
    )
    line = _pool.Order(job, PolicyText(Path("/x.toml"), "a\nb"), "digest", 1.0).line()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1


@pytest.mark.parametrize("wrong", ["nonsense = [", "max_rows = 3 -> max_rows = -3", "gone"])
def test_a_file_that_was_refused_stops_nobody(tmp_path: Path, ledger: str, wrong: str) -> None:
    """Processes that start after it run the policy that is served, until a good one is there."""
    file = written(tmp_path, ledger=ledger)
    with served(file) as found:
        text, digest = file.read_text(), found.desk.session.policy.digest
        if wrong == "gone":
            file.unlink()
        else:
            file.write_text(text.replace(*wrong.split(" -> ")) if "->" in wrong else wrong)
        assert found.post("olga", "/policy/reload").status_code == 400
        # The first question of this service: its process starts now.
        job = found.released("ann")
        assert job["state"] == "done", job
        assert job["answer"]["content"]["certificate"]["policy"] == digest
        file.write_text(text.replace("[0, 100]", "[0, 50]"))
        assert found.post("olga", "/policy/reload").json()["changed"]
        later = found.released("ann", epsilon="0.25")
        assert later["state"] == "done", later
        now = found.desk.session.policy.digest
        assert later["answer"]["content"]["certificate"]["policy"] == now != digest


def test_scheduled_questions_are_those_of_the_policy_that_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that asks them is handed the text; it reads no file that was refused."""
    from click.testing import CliRunner

    from dither.cli import main

    file = written(tmp_path, more='[schedule.daily]\nevery = "day"\nsql = "x"\n')
    text = file.read_text()
    file.write_text("nonsense = [")
    asked = ["schedule", "run", str(file), "--once"]
    refused = CliRunner().invoke(main, asked)
    assert "not valid TOML" in refused.output
    found = CliRunner().invoke(main, [*asked, "--served"], input=text)
    assert "not valid TOML" not in found.output
    assert "schedule.daily" in found.output


FILLS = """
SELECT QUANTILE_CONT(c, 0.5) AS q
FROM codes, UNNEST(codes.codes) AS u(c)
"""


@pytest.mark.slow
def test_a_question_that_needs_more_memory_than_it_may_is_ended(
    tmp_path: Path, temporary: Path, ledger: str
) -> None:
    """After the charge, which stays; only the class of the failure is told, and others run."""
    more = """
[tables.codes]
source = "codes.parquet"
unit = "person"
max_rows = 3
max_groups = 1
[tables.codes.columns]
codes = { bounds = [0, 100], type = "integer", max_items = 1000 }
"""
    one = [SECRET_CODE] * 1000
    pl.DataFrame({"person": range(12_000), "codes": [one] * 12_000}).write_parquet(
        tmp_path / "codes.parquet"
    )
    file = written(tmp_path, ledger=ledger, more=more, service="workers = 1")
    with served(file) as found:
        # What a process reserves before it is asked anything differs from machine to machine.
        assert found.released("ann", epsilon="0.25")["state"] == "done"
        pool = found.http.app.app.state.hall.pool  # type: ignore[attr-defined]
        told = Path(f"/proc/{next(iter(pool._idle)).pid}/status").read_text()
        reserved = 1024 * int(told.partition("VmPeak:")[2].split()[0])
        assert found.released("ann", sql=FILLS, epsilon=1, token="free")["state"] == "done"
    text = file.read_text()
    file.write_text(text.replace("workers = 1", f"workers = 1\nmemory = {reserved + 2**26}"))
    with served(file) as found:
        before = found.desk.session.balance()[0].spent.epsilon
        job = found.released("ann", sql=FILLS, epsilon=1, token="fills")
        assert job["state"] in ("failed", "given up"), job
        assert job["failure"]["kind"] == "EngineError"
        known = (_run._FAILED["message"], FAILED, LOST["message"])
        assert job["failure"]["message"] in known, job["failure"]
        assert job["entry"] is not None
        assert str(SECRET_CODE) not in str(job["failure"])
        after = found.desk.session.balance()[0].spent.epsilon
        assert after - before == 1
        again = found.post("ann", "/releases", {"sql": FILLS, "epsilon": 1, "token": "fills"})
        assert again.json()["id"] == job["id"]
        assert found.released("ann", epsilon="0.125")["state"] == "done"
        assert found.desk.session.ledger.verify().ok

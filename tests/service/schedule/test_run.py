"""Each closed block is released once, in order, whatever was cut off; totals are sums of parts."""

from __future__ import annotations

import datetime as dt
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from dither.cli import main
from dither.errors import (
    ArgumentError,
    CertificateError,
    EngineError,
    PolicyError,
    TokenError,
)
from dither.ledger import Ledger
from dither.service.publish import verify_published
from dither.service.schedule import run_due
from dither.service.schedule._asking import restricted
from dither.service.schedule._limit import time_limit
from dither.service.schedule._run import Timetable
from dither.service.schedule._state import ScheduleState
from dither.service.schedule._totals import total_of
from dither.session._opened import OpenedPolicy
from dither.session._request import Request
from ledger.clocks import ledgers_clock
from service.schedule.visits import COUNT, PER_DAY, VISITS, day, opened, policy

RUNNING = {"running": True, "horizon": 8, "epsilon": "4", "publish": True}


def charges(ledger: Ledger) -> list[Any]:
    """The charges of schedules, oldest first."""
    return [entry for entry in ledger.entries() if entry.kind == "charge"]


def published(folder: Path, name: str) -> pl.DataFrame:
    """A published table."""
    return pl.read_parquet(folder / "released" / f"{name}.parquet")


def test_a_question_that_takes_too_long_is_ended_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it does, and whatever it takes errors for; its charge stays, and answers the next
    time. What was at work says nothing of the data."""
    answer = Request.answer
    stuck = ["wait", "catch"]

    def slow(self: Request, *given: Any) -> Any:
        if not stuck:
            return answer(self, *given)
        what = stuck.pop()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                time.sleep(0.01)
            except Exception:
                assert what == "catch"
        raise AssertionError("the secret")

    monkeypatch.setattr(Request, "answer", slow)
    with opened(policy(tmp_path, first={}, second={}, third={})) as session:
        found = run_due(session, now=day(1), timeout=1.5)
        done = [(one.schedule, one.status) for one in found if one.block == "2024-01-01"]
        assert done == [("first", "failed"), ("second", "failed"), ("third", "released")]
        assert all("it took longer than" in one.why for one in found if one.status == "failed")
        assert len(charges(session.ledger)) == 3
        again = run_due(session, now=day(1), timeout=60)
        assert {one.status for one in again} <= {"released", "reserved"}
        assert len(charges(session.ledger)) == 3
        for wrong in (0, -1):
            with pytest.raises(ArgumentError, match="timeout"):
                run_due(session, timeout=wrong)


def test_a_limit_is_for_the_main_thread_and_ends_with_its_question(tmp_path: Path) -> None:
    """Nothing is left that would end what comes next."""
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(0.02):
        pass
    time.sleep(0.05)
    with pytest.raises(EngineError, match="it took longer"), time_limit(0.02):
        time.sleep(20)
    with pytest.raises(ZeroDivisionError), time_limit(20):
        _ = 1 / 0
    with time_limit(None):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before
    with (
        opened(policy(tmp_path, daily={})) as session,
        ThreadPoolExecutor(1) as pool,
        pytest.raises(ArgumentError, match="main thread"),
    ):
        pool.submit(run_due, session, timeout=1).result()


def test_what_takes_no_notice_of_its_limit_ends_with_its_process() -> None:
    """As a library does that is in its own code; what it printed would tell of the data."""
    code = (
        "import signal\nfrom dither.service.schedule import _limit\n_limit.GRACE = 0.2\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "with _limit.time_limit(0.1):\n    sum(range(10**12))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (1, b"", b"")


@pytest.mark.parametrize(
    ("service", "given"),
    [
        ("", None),
        ('[service]\nname = "a"\n', 3600),
        ("[service.timeout]\nowner = 7\n", 7),
    ],
)
def test_schedules_have_the_services_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str, given: int | None
) -> None:
    """Of an owner's questions, whose they are; a policy that nobody serves has none, unless the
    service runs it."""
    (tmp_path / "dither.toml").write_text(
        f'[budget]\nepsilon = 1\nledger = "a.ledger"\n{service}'
        '[tables.visits]\nsource = "visits.parquet"\n'
    )
    VISITS.write_parquet(tmp_path / "visits.parquet")
    found: list[float | None] = []
    monkeypatch.setattr(
        "dither.service.schedule.run_due", lambda _, *, timeout: found.append(timeout) or []
    )
    place = str(tmp_path / "dither.toml")
    for more in ((), ("--served",)):
        text = Path(place).read_text()
        assert (
            not CliRunner()
            .invoke(main, ["schedule", "run", place, "--once", *more], text)
            .exit_code
        )
    assert found == [given, given or 3600]


def test_days_stand_where_a_question_names_them_alone() -> None:
    """A text, a name in quotes and a comment are left as they are."""
    asked = "SELECT COUNT(*) FROM t WHERE d >= :first AND d < :next"
    kept = """ AND a <> ':first''s :next' AND ":next" = 1 /* it's :first */ -- :next"""
    plan = SimpleNamespace(name="a", sql=asked + kept)
    session = SimpleNamespace(sql=lambda text: text)
    found: Any = restricted(session, plan, dt.date(2024, 1, 1), dt.date(2024, 1, 2))  # type: ignore[arg-type]
    whole = "SELECT COUNT(*) FROM t WHERE d >= '2024-01-01' AND d < '2024-01-02'"
    assert found == whole + kept


def test_closed_blocks_are_released_in_order_and_never_twice(tmp_path: Path) -> None:
    """What was missed comes first; the open block is reserved, at its price."""
    made = policy(tmp_path, daily={"publish": True})
    with opened(made) as session:
        found = run_due(session, now=day(3))
        assert [(one.block, one.status) for one in found] == [
            *((f"2024-01-0{i}", "released") for i in (1, 2, 3)),
            ("2024-01-04", "reserved"),
        ]
        assert [one.status for one in run_due(session, now=day(3))] == ["reserved"]
        (balance,) = session.balance()
        assert balance.reserved.epsilon == 1
    with opened(made) as session:
        found = run_due(session, now=day(5))
        assert [one.block for one in found] == ["2024-01-04", "2024-01-05", "2024-01-06"]
        assert len(charges(session.ledger)) == 5
        read = [entry.blocks.ranges for entry in charges(session.ledger) if entry.blocks]
        assert read == [((738886 + i, 738886 + i),) for i in range(5)]
        assert session.ledger.verify().ok
        assert len(verify_published(tmp_path / "released", "daily", ledger=session.ledger)) == 5
    table = published(tmp_path, "daily")
    assert table["block"].to_list() == [dt.date(2024, 1, i) for i in range(1, 6)]
    assert (table["n_low"] <= PER_DAY).sum() >= 3


def test_the_ledgers_clock_says_what_has_closed(tmp_path: Path, monkeypatch: Any) -> None:
    """A clock that is set back runs nothing, nor does a moment that has not come; a delay waits."""
    clock = ledgers_clock(monkeypatch, day(2) + dt.timedelta(hours=5))
    with opened(policy(tmp_path, daily={"delay": 6})) as session:
        assert [one.status for one in run_due(session)] == ["released", "reserved"]
        clock.append(day(2) + dt.timedelta(hours=6))
        assert [one.status for one in run_due(session)] == ["released", "reserved"]
        clock.append(day(1))
        assert [one.status for one in run_due(session)] == ["reserved"]
        assert [one.status for one in run_due(session, now=day(6))] == ["reserved"]
        assert len(charges(session.ledger)) == 2
        with pytest.raises(ArgumentError, match="now must be"):
            run_due(session, now=dt.datetime(2024, 1, 3))


class Cut(BaseException):
    """The end of a process, as the rest of it sees that."""


def cut_after(patch: Any, holder: Any, name: str) -> None:
    """The process ends when this has been done."""
    real = getattr(holder, name)

    def done(*given: Any, **named: Any) -> Any:
        real(*given, **named)
        raise Cut

    patch.setattr(holder, name, done)


def cut_before(patch: Any, holder: Any, name: str) -> None:
    """The process ends when this is about to be done."""

    def never(*_: Any, **__: Any) -> Any:
        raise Cut

    patch.setattr(holder, name, never)


STEPS = {
    "written down": lambda p: cut_after(p, ScheduleState, "keep"),
    "reserved": lambda p: cut_after(p, Ledger, "reserve"),
    "charged": lambda p: cut_before(p, Request, "answer"),
    "answered": lambda p: cut_before(p, OpenedPolicy, "stored"),
    "stored": lambda p: cut_after(p, OpenedPolicy, "stored"),
    "published": lambda p: cut_after(p, Timetable, "_publish"),
    "marked": lambda p: cut_after(p, ScheduleState, "set_mark"),
}


QUICK = ("charged", "stored")
"""On a server these two, and the rest among the slow tests."""

CUTS = [
    *(("file", step) for step in STEPS),
    *(
        pytest.param("postgres", step, marks=[] if step in QUICK else pytest.mark.slow)
        for step in STEPS
    ),
]


@pytest.fixture
def ledger(where: str, request: Any, monkeypatch: Any) -> Any:
    """Where the ledger is: None for a file."""
    if where == "file":
        return None
    monkeypatch.setenv("SCHEDULE_DSN", request.getfixturevalue("postgres").owner)
    return {"postgres": "env:SCHEDULE_DSN", "schema": "visits"}


@pytest.mark.parametrize(("where", "step"), CUTS)
def test_whatever_step_is_the_last(
    tmp_path: Path, monkeypatch: Any, ledger: Any, where: str, step: str
) -> None:
    """Run again: one charge for each number, one answer, one row published, one reservation."""
    made = policy(tmp_path, ledger=ledger, daily={"publish": True}, total=RUNNING)
    with opened(made) as session:
        run_due(session, now=day(1))
    with monkeypatch.context() as patch, opened(made) as session:
        STEPS[step](patch)
        with pytest.raises(Cut):
            run_due(session, now=day(2))
    with opened(made) as session:
        run_due(session, now=day(2))
        assert not any(one.why for one in run_due(session, now=day(2)))
        notes = [entry.token for entry in charges(session.ledger)]
        assert len(notes) == len(set(notes)) == 5
        answers = [entry for entry in session.ledger.entries() if entry.answers is not None]
        assert len(answers) == 5
        (balance,) = session.balance()
        # One for the day, and one of each level of the running count that ends with it.
        assert balance.reserved.epsilon == 2
        assert balance.spent.epsilon == 2 * 1 + 2 * 1 + 2 * 1
        assert session.ledger.verify().ok
        for name in ("daily", "total"):
            assert published(tmp_path, name).height == 2
            assert verify_published(tmp_path / "released", name, ledger=session.ledger)


def test_a_failure_stops_nothing_else_and_is_charged_once(tmp_path: Path, monkeypatch: Any) -> None:
    """One block that fails after its charge, and a schedule that asks for what is not there."""
    made = policy(tmp_path, daily={}, wrong={"sql": "SELECT COUNT(*) AS n FROM nothing"})
    real, calls = Request.answer, []

    def once(self: Any, *given: Any) -> str:
        calls.append(1)
        if len(calls) == 1:
            raise EngineError("it failed")
        return real(self, *given)

    with opened(made) as session:
        with monkeypatch.context() as patch:
            patch.setattr(Request, "answer", once)
            found = run_due(session, now=day(2))
        said = [(one.schedule, one.status) for one in found]
        assert said[:2] == [("daily", "failed"), ("daily", "released")]
        assert {one for one in said if one[0] == "wrong"} == {
            ("wrong", "failed"),
            ("wrong", "waiting"),
        }
        assert len(charges(session.ledger)) == 2
        run_due(session, now=day(2))
        assert len(charges(session.ledger)) == 2
        first = charges(session.ledger)[0]
        assert session.ledger.answers_to(first.request)


def test_what_was_charged_and_is_another_question_now_is_given_up(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """On the record; nothing more is charged for that block."""
    with opened(policy(tmp_path, daily={})) as session, monkeypatch.context() as patch:
        cut_before(patch, Request, "answer")
        with pytest.raises(Cut):
            run_due(session, now=day(1))
    changed = policy(tmp_path, daily={"sql": COUNT + " WHERE cost > 2"})
    with opened(changed) as session:
        lost, ahead = run_due(session, now=day(1))
        assert (lost.status, ahead.status) == ("lost", "reserved")
        assert "given up" in lost.why
        assert [one.status for one in run_due(session, now=day(1))] == ["reserved"]
        assert len(charges(session.ledger)) == 1


def test_two_that_run_at_once_charge_and_answer_once(tmp_path: Path, monkeypatch: Any) -> None:
    """What another one is at work on is not given up: the next look finds its answer."""
    made = policy(tmp_path, daily={"publish": True})
    with opened(made) as one, opened(made) as other:
        real, said = Request.charge, []

        def late(self: Any, token: Any) -> Any:
            if not said:
                said.append(1)
                real(self, token)
                raise TokenError("charged before, and never answered")
            return real(self, token)

        with monkeypatch.context() as patch:
            patch.setattr(Request, "charge", late)
            first, _ = run_due(one, now=day(1))
        assert (first.status, first.published) == ("failed", False)
        again, _ = run_due(other, now=day(1))
        assert again.published
        assert run_due(one, now=day(1))[0].status == "reserved"
        assert len(charges(one.ledger)) == 1
        assert published(tmp_path, "daily").height == 1


def test_what_is_reserved_cannot_be_spent_by_others(tmp_path: Path, monkeypatch: Any) -> None:
    """Until the block closes; then its release uses it."""
    made = policy(tmp_path, daily={"epsilon": "6"})
    clock = ledgers_clock(monkeypatch, day(0))
    with opened(made) as session:
        (ahead,) = run_due(session)
        assert ahead.status == "reserved"
        other = session.sql(COUNT + " WHERE day = '2024-01-01'")
        with pytest.raises(Exception, match="reserved"):
            other.release(5)
        other.release(4)
        clock.append(day(1))
        assert run_due(session)[0].status == "released"
        (balance,) = session.balance()
        assert balance.blocks is not None
        assert balance.blocks.of(738886).epsilon == 10


def test_a_running_count_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    """With an interval of all of them; each day bears epsilon in all."""
    with opened(policy(tmp_path, total=RUNNING)) as session:
        run_due(session, now=day(9))
        assert len(charges(session.ledger)) == 15
        table = published(tmp_path, "total").sort("block")
        assert table.height == 8
        widths = (table["n_high"] - table["n_low"]).to_list()
        assert widths[0] == widths[1] == widths[3] == widths[7]
        assert widths[0] < widths[2] < widths[6]
        inside = [
            row["n_low"] <= PER_DAY * (i + 1) <= row["n_high"]
            for i, row in enumerate(table.iter_rows(named=True))
        ]
        assert sum(inside) >= 6
        (balance,) = session.balance()
        assert balance.blocks is not None
        assert {balance.blocks.of(738886 + i).epsilon for i in range(8)} == {Fraction(4)}
        assert balance.spent.epsilon == 8 * 4
        assert run_due(session, now=day(9)) == []
        said = verify_published(tmp_path / "released", "total", ledger=session.ledger)
        assert "the sum of 3 releases" in said[6]


@pytest.mark.parametrize(
    ("column", "old", "new", "says"),
    [
        ("certificate", "{", "[", "was changed"),
        ("answer", '{"rows": [{"n"', '{"rows": [{"m"', "is not the one"),
        ("form", '"parts": ["', '"parts": ["0", "', "no certificate"),
        ("form", '"parts": ', '"part": ', "was changed"),
        ("form", '"value": "n"', '"value": "line"', "changed|not the sum"),
    ],
)
def test_a_total_whose_parts_were_changed_is_found(
    tmp_path: Path, column: str, old: str, new: str, says: str
) -> None:
    """In words of its own, whatever stands beside it."""
    with opened(policy(tmp_path, total=RUNNING)) as session:
        run_due(session, now=day(4))
        place = tmp_path / "released"
        file = place / "certificates.parquet"
        whole = pl.read_parquet(file)
        whole.with_columns(pl.col(column).str.replace(old, new, literal=True)).write_parquet(file)
        with pytest.raises(CertificateError, match=says):
            verify_published(place, "total", ledger=session.ledger)
        twice = whole.with_columns(
            pl.col("form").str.replace(r'"parts": \["([^"]+)"', '"parts": ["$1", "$1"')
        )
        twice.write_parquet(file)
        with pytest.raises(CertificateError, match="counted twice"):
            verify_published(place, "total", ledger=session.ledger)


def test_where_a_row_is_the_unit_the_lifetime_bears_each_number_once(tmp_path: Path) -> None:
    """It lies in one number of each length."""
    with opened(policy(tmp_path, unit=False, total=RUNNING)) as session:
        run_due(session, now=day(8))
        (balance,) = session.balance()
        assert balance.spent.epsilon == 15
        assert balance.spent.rho is not None


def test_a_number_that_is_missing_is_made_of_its_halves(tmp_path: Path, monkeypatch: Any) -> None:
    """Totals go on without it; without a day they wait for the next number that has it."""
    real = Request.charge

    def refuses(self: Any, token: Any) -> Any:
        if token.endswith("2024-01-01 to 2024-01-04") or token.endswith("day 2024-01-06"):
            raise EngineError("not now")
        return real(self, token)

    with opened(policy(tmp_path, total=RUNNING)) as session:
        monkeypatch.setattr(Request, "charge", refuses)
        found = run_due(session, now=day(7))
        (schedule,) = Timetable(session).schedules
        assert [one.block for one in found if one.status == "failed"] == [
            "2024-01-04",
            "2024-01-06",
        ]
        _, parts = total_of(session, schedule, 5)
        assert len(parts) == 3
        monkeypatch.setattr(Request, "charge", real)
        assert not any(one.why for one in run_due(session, now=day(7)))
        assert published(tmp_path, "total").height == 7


def test_a_running_count_that_was_changed_is_not_added_up(tmp_path: Path) -> None:
    """Other questions, prices and limits are another running count, of another name."""
    with opened(policy(tmp_path, total=RUNNING)) as session:
        run_due(session, now=day(2))
    for change in ({"horizon": 100}, {"sql": COUNT + " WHERE cost > 1"}):
        with opened(policy(tmp_path, total=RUNNING | change)) as session:
            found = run_due(session, now=day(3))
            assert "was changed since it began" in found[0].why
            assert not found[0].published
    assert published(tmp_path, "total").height == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sql": COUNT + " WHERE day >= '2024-01-01' OR day >= :first"}, "reads"),
        ({"sql": COUNT + " WHERE day >= :first"}, "reads"),
        ({"sql": "SELECT COUNT(*) AS n FROM visits AS a, visits AS b"}, ""),
        ({"running": True, "horizon": 4, "sql": "SELECT AVG(cost) AS n FROM visits"}, "whole"),
    ],
)
def test_a_question_that_reads_more_than_its_block_is_refused(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    """By its text alone; nothing is charged."""
    with opened(policy(tmp_path, daily=change)) as session:
        found = run_due(session, now=day(2))
        assert {one.status for one in found[:2]} == {"failed"}
        assert says in found[0].why
        assert not charges(session.ledger)


def test_weeks_are_not_made_of_months_and_months_are_of_days(tmp_path: Path) -> None:
    """Each block of the stretch is charged; placeholders say which."""
    asked = COUNT + " WHERE day >= :first AND day < :next"
    monthly = {"every": "week", "sql": asked, "epsilon": "1"}
    with opened(policy(tmp_path, weekly=monthly)) as session:
        (one, _) = run_due(session, now=day(7))
        assert (one.block, one.status) == ("2024-W01", "released")
        (entry,) = charges(session.ledger)
        assert entry.blocks is not None
        assert entry.blocks.ranges == ((738886, 738892),)
    made = policy(tmp_path, ledger=str(tmp_path / "months"), weekly=monthly)
    made["tables"]["visits"]["block"]["every"] = "month"
    with opened(made) as session:
        found = run_due(session, now=day(7))
        assert "not made of whole blocks" in found[0].why


def test_nothing_is_published_that_is_for_whoever_asked(tmp_path: Path) -> None:
    """And nothing without a place; before anything is charged."""
    made = policy(tmp_path, daily={"publish": True})
    made["publish"] = {"to": str(tmp_path / "released")}
    with opened(made) as session:
        with pytest.raises(PolicyError, match="for whoever asked"):
            run_due(session, now=day(1))
        assert not charges(session.ledger)
    made = policy(tmp_path, daily={"publish": True}) | {"releases": {"audience": "everybody"}}
    del made["publish"]
    with opened(made) as session, pytest.raises(PolicyError, match="say to where"):
        run_due(session, now=day(1))


def test_a_budget_that_is_spent_fails_and_goes_on(tmp_path: Path) -> None:
    """The block's own; the next one is released."""
    with opened(policy(tmp_path, daily={"epsilon": "6"})) as session:
        session.sql(COUNT + " WHERE day = '2024-01-01'").release(5)
        first, second, _ = run_due(session, now=day(2))
        assert (first.status, second.status) == ("failed", "released")
        assert "cannot bear" in first.why


def test_the_ids_of_reservations_are_the_owners(tmp_path: Path) -> None:
    """Nobody else reads the file; without it nothing is released twice."""
    made = policy(tmp_path, daily={})
    with opened(made) as session:
        run_due(session, now=day(2))
        file = tmp_path / "visits.ledger_schedule"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with sqlite3.connect(file) as raw:
            ((known,),) = raw.execute("SELECT known FROM schedule_reservations").fetchall()
        assert session.ledger.reserved(known).remaining.epsilon == 1
        for one in tmp_path.glob("visits.ledger_schedule*"):
            one.unlink()
        assert [one.status for one in run_due(session, now=day(2))] == ["reserved"]
        assert len(charges(session.ledger)) == 2


def test_the_command_runs_and_shows(tmp_path: Path, monkeypatch: Any) -> None:
    """From the file, and publishes an entry beside."""
    monkeypatch.chdir(tmp_path)
    VISITS.write_parquet("visits.parquet")
    Path("dither.toml").write_text(TOML)
    runner = CliRunner()
    shown = runner.invoke(main, ["schedule", "show", "dither.toml"])
    assert "epsilon 1/3 each" in shown.output or "epsilon 0.333" in shown.output
    ran = runner.invoke(main, ["schedule", "run", "dither.toml", "--once"])
    assert ran.exit_code == 0, ran.output
    assert "total 2024-01-04: released" in ran.output
    made = runner.invoke(main, ["publish", "dither.toml", "--entry", "2", "--as", "first"])
    assert made.exit_code == 0, made.output
    checked = runner.invoke(main, ["publish", "dither.toml", "--check", "total"])
    assert checked.output.count("the sum of") == 4
    assert runner.invoke(main, ["publish", "dither.toml"]).exit_code == 2


TOML = f"""
[budget]
epsilon = 10
per = "block"
lifetime = {{ epsilon = 1000 }}
ledger = "visits.ledger"

[tables.visits]
source = "visits.parquet"
unit = "patient"
max_groups = 1
max_rows = 2
block = {{ column = "day", every = "day" }}

[tables.visits.columns]
day = {{ bounds = ["2024-01-01", "2024-12-31"] }}

[publish]
to = "released.duckdb"
audience = "everybody"

[schedule.total]
every = "day"
sql = "{COUNT}"
epsilon = 1
begin = 2024-01-01
running = true
horizon = 4
publish = true
"""


@pytest.mark.heavy("test_whatever_step_is_the_last")
def test_killed_at_any_instant_nothing_is_charged_or_published_twice(tmp_path: Path) -> None:
    """SIGKILL after ever other times, until all is done."""
    VISITS.write_parquet(tmp_path / "visits.parquet")
    (tmp_path / "dither.toml").write_text(TOML.replace("horizon = 4", "horizon = 8"))
    command = [sys.executable, "-m", "dither.cli", "schedule", "run", "dither.toml", "--once"]
    # As long as it takes to start, and then ever a little more.
    for turn in range(24):
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            time.sleep(0.8 + 0.1 * turn)
            if running.poll() is not None:
                break
            os.kill(running.pid, signal.SIGKILL)
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with Ledger.open(tmp_path / "visits.ledger") as book:
        assert book.verify().ok
        tokens = [entry.token for entry in charges(book)]
        assert len(tokens) == len(set(tokens)) == 15
        assert sum(entry.answers is not None for entry in book.entries()) == 15
        said = verify_published(tmp_path / "released.duckdb", "total", ledger=book)
    assert len(said) == 8

"""A back-up never knows an answer without its charge, and one that forgot a charge is refused."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

pytest.importorskip("starlette")

import dither
from dither.cli import main
from dither.errors import ArgumentError, CheckpointError, LedgerError
from dither.ledger import Checkpoint, Ledger, OwnerKey
from dither.policy._policy import Policy, read_policy
from dither.service import _backup
from dither.service._backup import back_up, put_back
from dither.service._database import Database
from dither.service._desk import Desk
from dither.service._tables import SERVICE
from dither.service.access._people import People
from dither.service.access._roles import Role
from dither.service.schedule._state import BESIDE, ScheduleState
from dither.service.work._drafts import request_made
from dither.service.work._jobs import Jobs, State
from dither.service.work._run import released

POLICY = """
[budget]
epsilon = 10
ledger = "visits.ledger"
{more}
[tables.visits]
source = "visits.parquet"
{owner}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A policy with an entry in its ledger, and a service that knows somebody."""
    pl.DataFrame({"p": [1, 2, 3]}).write_parquet(tmp_path / "visits.parquet")
    path = tmp_path / "dither.toml"
    path.write_text(POLICY.format(more="", owner=""))
    charge(path)
    database = Database(tmp_path / "visits.ledger.service", SERVICE)
    People(database).add("ann", Role.ANALYST)
    database.close()
    ScheduleState(tmp_path / "visits.ledger").close()
    return path


def charge(path: Path) -> None:
    with dither.open(path) as session:
        session.sql("SELECT COUNT(*) FROM visits").release(1)


def test_what_surveys_counted_is_copied(place: Path, tmp_path: Path) -> None:
    """Wherever the policy says that it is; its name is no other file's."""
    text = place.read_text()
    place.write_text(text + '\n[collect]\nstate = "counts.db"\n')
    with sqlite3.connect(tmp_path / "counts.db") as counted:
        counted.execute("CREATE TABLE reports (n INTEGER)")
    counted.close()
    back_up(read_policy(place), tmp_path / "kept")
    assert (tmp_path / "kept" / "counts.db").is_file()
    place.write_text(text + '\n[collect]\nstate = "visits.ledger"\n')
    with pytest.raises(ArgumentError, match=r"collect\.state"):
        back_up(read_policy(place), tmp_path / "more")


def entries(path: Path) -> int:
    with Ledger.open(path, create=False) as ledger:
        assert ledger.verify().ok
        return ledger.entries(limit=1)[0].number


def test_all_is_copied_and_put_back(place: Path, tmp_path: Path) -> None:
    """Ledger and people are as they were, in files that nobody else may read, without a log."""
    last = back_up(read_policy(place), tmp_path / "kept")
    files = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert files == ["visits.ledger", "visits.ledger.service", f"visits.ledger{BESIDE}"]
    for name in files:
        assert stat.S_IMODE((tmp_path / "kept" / name).stat().st_mode) == 0o600
        for path in tmp_path.glob(f"{name}*"):
            if path.is_file():
                path.unlink()
    assert put_back(read_policy(place), tmp_path / "kept") == last
    assert entries(tmp_path / "visits.ledger") == last
    desk = Desk(place)
    assert [row["name"] for row in desk.people.listed()] == ["ann"]
    desk.close()
    charge(place)
    assert entries(tmp_path / "visits.ledger") > last


def test_an_answer_comes_with_its_charge(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever happens between the two copies, what the database knows is in the ledger's copy."""
    desk = Desk(place)
    desk.people.add("olga", Role.OWNER)
    who, _ = desk.people.by_key(desk.people.new_key("olga").key) or (None, "")
    assert who is not None
    copied = _backup._copy

    def answered() -> None:
        body = {"sql": "SELECT COUNT(*) FROM visits", "epsilon": "1", "reuse": False}
        job = desk.ask(who, body)
        assert desk.jobs.claim() is not None
        request = request_made(desk.session_of(who), body)
        number, _ = released(request, job.token, lambda *_: None)
        desk.jobs.finish(job.id, State.DONE, entry=number)

    def interrupted(path: Path, to: Path) -> None:
        answered()
        copied(path, to)
        answered()

    monkeypatch.setattr(_backup, "_copy", interrupted)
    back_up(read_policy(place), tmp_path / "kept")
    desk.close()
    kept = Database(tmp_path / "kept" / "visits.ledger.service", SERVICE)
    known = [job.entry for job in Jobs(kept).listed()]
    kept.close()
    with Ledger.open(tmp_path / "kept" / "visits.ledger", create=False) as ledger:
        charged = {entry.number for entry in ledger.entries() if entry.charge is not None}
        assert len(known) == 1
        assert set(known) < charged


def test_a_copy_older_than_the_checkpoint(place: Path, tmp_path: Path) -> None:
    """It has forgotten a charge: it is not put back, and not served where somebody copied it."""
    owner = OwnerKey.make()
    (tmp_path / "owner.pub").write_text(owner.public.text)
    back_up(read_policy(place), tmp_path / "old")
    charge(place)
    with Ledger.open(tmp_path / "visits.ledger") as ledger:
        Checkpoint.of(ledger, owner).save(tmp_path / "seen.json")
    back_up(read_policy(place), tmp_path / "new")
    place.write_text(
        POLICY.format(
            more='checkpoint = "seen.json"', owner=f'[owner]\npublic = "{owner.public.text}"'
        )
    )
    for path in tmp_path.glob("visits.ledger*"):
        path.unlink()
    with pytest.raises(CheckpointError, match="older than the checkpoint"):
        put_back(read_policy(place), tmp_path / "old")
    assert not list(tmp_path.glob("visits.ledger*"))
    shutil.copy(tmp_path / "old" / "visits.ledger", tmp_path)
    with pytest.raises(LedgerError):
        Desk(place).session.ledger.accounts()
    (tmp_path / "visits.ledger").unlink()
    put_back(read_policy(place), tmp_path / "new")
    Desk(place).close()


def test_nothing_is_written_over(place: Path, tmp_path: Path) -> None:
    """Neither another back-up nor a ledger that is there."""
    policy = read_policy(place)
    back_up(policy, tmp_path / "kept")
    with pytest.raises(ArgumentError, match="there already"):
        back_up(policy, tmp_path / "kept")
    with pytest.raises(ArgumentError, match=r"visits\.ledger is there"):
        put_back(policy, tmp_path / "kept")


@pytest.mark.parametrize(
    "left", ["visits.ledger-journal", "visits.ledger.service-wal", "visits.ledger.service-shm"]
)
def test_a_log_of_what_was_killed_is_not_played_into_a_copy(
    place: Path, tmp_path: Path, left: str
) -> None:
    """SQLite would take it for the copy's own: people and charges of two times would be mixed."""
    policy = read_policy(place)
    back_up(policy, tmp_path / "kept")
    for path in tmp_path.glob("visits.ledger*"):
        path.unlink()
    (tmp_path / left).write_bytes(b"log")
    with pytest.raises(ArgumentError, match=f"{left} is there: stop the service"):
        put_back(policy, tmp_path / "kept")
    assert [path.name for path in tmp_path.glob("visits.ledger*")] == [left]
    (tmp_path / left).unlink()
    put_back(policy, tmp_path / "kept")


def test_half_a_backup_is_none(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a copy fails, or the ledger's is not whole, no folder is left."""
    policy: Policy = read_policy(place)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(_backup, "_copy", full)
        with pytest.raises(LedgerError, match="cannot be copied"):
            back_up(policy, tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir() if "kept" in path.name] == []
    (tmp_path / "visits.ledger").unlink()
    with pytest.raises(LedgerError):
        back_up(policy, tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir() if "kept" in path.name] == []


def test_a_ledger_on_a_server(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server copies both schemas in one snapshot, and the message says how."""
    text = place.read_text().replace(
        '"visits.ledger"', '{ postgres = "env:SOME_DSN", schema = "visits" }'
    )
    place.write_text(text)
    monkeypatch.setenv("SOME_DSN", "postgresql://localhost/nowhere")
    with pytest.raises(ArgumentError, match="pg_dump of its database, whose schema visits"):
        back_up(read_policy(place), tmp_path / "kept")


def test_commands(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands do the same."""
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(main, ["service", "backup", "--to", "kept"])
    assert (run.exit_code, run.stdout) == (0, "kept: up to entry 3 of the ledger\n")
    for path in tmp_path.glob("visits.ledger*"):
        path.unlink()
    run = CliRunner().invoke(main, ["service", "restore", "--from", "kept"])
    assert run.exit_code == 0
    assert run.stdout == "put back up to entry 3 of the ledger\n"
    assert "revoke" in run.stderr

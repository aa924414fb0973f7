"""A ledger is read while the engine connects, and what is said and written stays as it was."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading

import polars as pl
import pytest

from dither import open as open_policy
from dither.errors import LedgerCorruptError, LedgerError, PolicyError
from dither.session import _connecting as _ahead

VISITS = pl.DataFrame({"age": [30, 41, 57]})


def opened(folder, *, epsilon=1, column="age"):
    policy = {
        "budget": {"epsilon": epsilon, "ledger": str(folder / "visits.ledger")},
        "tables": {"visits": {"columns": {column: {"bounds": [0, 120]}}}},
    }
    return open_policy(policy, sources={"visits": VISITS})


@pytest.fixture
def charged(tmp_path):
    with opened(tmp_path) as session:
        session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=0.5)
    return tmp_path


def test_a_ledger_that_is_there_is_read_by_another_thread(charged, monkeypatch):
    """It says where it was read; without a thread to be had it is read all the same."""
    seen = []
    real = _ahead.LedgerAhead._open

    def spied(self, **options):
        seen.append((threading.current_thread() is threading.main_thread(), options))
        return real(self, **options)

    monkeypatch.setattr(_ahead.LedgerAhead, "_open", spied)
    with opened(charged) as session:
        (balance,) = session.balance()
        assert balance.spent.epsilon == 0.5
    assert seen == [(False, {"create": False})]

    class Tired(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_ahead.threading, "Thread", Tired)
    with opened(charged) as session:
        assert session.balance() == [balance]
    assert seen[1:] == [(True, {"create": True})]


def test_sources_that_do_not_fit_are_named_before_the_ledger_and_begin_none(tmp_path):
    with pytest.raises(PolicyError, match="agee: the source has no such column"):
        opened(tmp_path, column="agee")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "visits.ledger").write_bytes(b"no ledger")
    with pytest.raises(PolicyError, match="agee: the source has no such column"):
        opened(tmp_path, column="agee")


def test_what_is_wrong_with_the_ledger_is_raised_by_open(charged):
    with pytest.raises(LedgerError, match="caps"):
        opened(charged, epsilon=2)
    (charged / "visits.ledger").write_bytes(b"no ledger")
    with pytest.raises(LedgerCorruptError, match="restore it from a copy"):
        opened(charged)


def test_a_ledger_that_another_process_holds_keeps_nobody_from_interrupting(charged, monkeypatch):
    """Polars has a handler of its own, under which a signal ends no wait."""
    real = _ahead.LedgerAhead.opened

    def interrupted(self):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        return real(self)

    monkeypatch.setattr(_ahead.LedgerAhead, "opened", interrupted)
    other = sqlite3.connect(charged / "visits.ledger")
    other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(KeyboardInterrupt):
            opened(charged)
        waiting = [t for t in threading.enumerate() if t.name == "dither-ledger"]
    finally:
        other.close()
    assert len(waiting) == 1
    waiting[0].join()

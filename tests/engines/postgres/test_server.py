"""The servers that tests start: who may what on them, and that none outlives its process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from postgres_server import Database, Server, missing


def test_the_reader_may_select_and_nothing_else(postgres: Database) -> None:
    """Tables of the owner can be read; nothing can be written or made, not even for the moment."""
    psycopg = pytest.importorskip("psycopg")
    postgres.execute("CREATE TABLE visits (cost int)", "INSERT INTO visits VALUES (3)")
    with postgres.server.connect(postgres.name, "reader") as reader:
        assert reader.execute("SELECT cost FROM visits").fetchall() == [(3,)]
        for statement in ("DELETE FROM visits", "CREATE TABLE t ()", "CREATE TEMP TABLE t ()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(statement)


def test_each_test_has_an_empty_database(postgres: Database) -> None:
    """Whatever other tests made on the same server is elsewhere."""
    assert postgres.execute("SELECT relname FROM pg_class WHERE relname = 'visits'") == []


def test_a_killed_server_starts_again_with_what_was_committed() -> None:
    """Nothing that was synced is lost when every process of the server dies at once."""
    with Server(synchronous_commit="on") as server:
        database = server.database()
        database.execute("CREATE TABLE kept AS SELECT 7 AS seven")
        server.kill()
        server.start()
        assert database.execute("SELECT seven FROM kept") == [(7,)]


def test_no_server_outlives_a_killed_process() -> None:
    """The process that started it is killed, and its folder goes."""
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from postgres_server import Server; "
        "server = Server(); print(server.folder, flush=True); os.kill(os.getpid(), 9)"
    )
    if reason := missing():
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parents[2])],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    folder = Path(done.stdout.strip())
    assert folder.name.startswith("dither-pg-")
    for _ in range(600):
        if not folder.exists():
            break
        time.sleep(0.1)
    assert not folder.exists()

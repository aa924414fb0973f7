"""What a service keeps is in one kind of database, which is brought up to date whole or not at all.

A newer one is refused, and what was made before opens as it was.
"""

from __future__ import annotations

import itertools
import sqlite3
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

import sqlalchemy as sa

from dither._postgres import quoted
from dither.errors import LedgerError
from dither.ledger._place import LedgerSchema
from dither.policy._policy import read_policy
from dither.service._database import Database, KeptTables
from dither.service._settings import read_settings
from dither.service._tables import SERVICE, people
from dither.service.access._people import People
from dither.service.access._roles import Role
from dither.service.collect import _store
from dither.service.collect._store import CollectorStore
from dither.service.schedule import _state
from dither.service.schedule._state import ScheduleState

_schemas = itertools.count()


@pytest.fixture(params=["file", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path | LedgerSchema:
    if request.param == "file":
        return tmp_path / "visits.service"
    monkeypatch.setenv("SERVICE_DSN", request.getfixturevalue("postgres").owner)
    return LedgerSchema("env:SERVICE_DSN", f"kept {next(_schemas)}")


def made(place: Path | LedgerSchema, kept: KeptTables = SERVICE) -> None:
    """One that knows somebody."""
    database = Database(place, kept)
    People(database).add("ann", Role.ANALYST)
    database.close()


def version(database: Database) -> int:
    with database.reading() as connection:
        query = sa.select(database.kept.version_table.c.version)
        return int(connection.execute(query).scalar_one())


def renamed(connection: sa.Connection) -> None:
    """A step that changes rows."""
    connection.execute(people.update().values(name=people.c.name + "a"))


def added(connection: sa.Connection) -> None:
    """A step that changes a table."""
    name = connection.schema_for_object(people)
    table = "service_people" if name is None else f'"{name}".service_people'
    connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN team TEXT")


def later(*does: Callable[[sa.Connection], None]) -> KeptTables:
    """Versions that come after today's."""
    now = SERVICE.version
    steps = dict(enumerate(does, start=now))
    return replace(SERVICE, version=now + len(does), migrations={**SERVICE.migrations, **steps})


@pytest.mark.parametrize("schema", ["visits", "v" * 56, "é" * 31])
def test_its_schema_is_never_the_ledgers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str
) -> None:
    """A server cuts names to 63 bytes, and one that was cut may be the name of another."""
    monkeypatch.setenv("SERVICE_DSN", "postgresql://localhost/nowhere")
    budget = {"epsilon": 1, "ledger": {"postgres": "env:SERVICE_DSN", "schema": schema}}
    policy = read_policy({"budget": budget, "tables": {"visits": {"source": "visits.parquet"}}})
    found = read_settings(policy).database
    assert isinstance(found, LedgerSchema)
    assert found.schema.endswith("_service")
    assert len(found.schema.encode()) <= 63


def test_an_earlier_one_is_brought_up_to_date(place: Path | LedgerSchema) -> None:
    """Each step once, in order, and what is in it stays."""
    made(place)
    kept = later(added, renamed)
    for _ in range(2):
        database = Database(place, kept)
        assert version(database) == kept.version
        assert [row["name"] for row in People(database).listed()] == ["anna"]
        database.close()


def test_a_step_that_fails_changes_nothing(place: Path | LedgerSchema) -> None:
    """Neither its own half nor the steps before it; the version of before opens it as before."""
    made(place)

    def failing(connection: sa.Connection) -> None:
        renamed(connection)
        raise RuntimeError("power is gone")

    with pytest.raises(RuntimeError):
        Database(place, later(added, failing))
    database = Database(place, SERVICE)
    assert version(database) == SERVICE.version
    assert [row["name"] for row in People(database).listed()] == ["ann"]
    database.close()
    Database(place, later(added, renamed)).close()


def test_a_newer_one_is_refused(place: Path | LedgerSchema) -> None:
    """It is left as it is, and so is one that is too old."""
    made(place, later(added))
    with pytest.raises(LedgerError, match="install a newer one"):
        Database(place, SERVICE)
    with pytest.raises(LedgerError, match="cannot bring up to date"):
        Database(place, replace(SERVICE, version=SERVICE.version + 7))


@pytest.mark.parametrize("kept", [SERVICE, _state._KEPT, _store._KEPT], ids=lambda k: k.program)
def test_all_three_are_opened_in_one_way(place: Path | LedgerSchema, kept: KeptTables) -> None:
    """Nobody else may read it; it says its version; and what is no database is named."""
    assert kept.migrations.keys() == set(range(1, kept.version))
    database = Database(place, kept)
    assert version(database) == kept.version
    database.close()
    if isinstance(place, Path):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        place.write_bytes(b"something else altogether, of some length" * 100)
        with pytest.raises(LedgerError, match=rf"{kept.name} cannot be used"):
            Database(place, kept)
        with pytest.raises(LedgerError, match=f"no folder .* for {kept.name}"):
            Database(place / "no" / "where", kept)


def test_a_schema_may_have_any_name_and_need_not_be_made(
    postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role that may use one, and make tables there, need not be one that may make schemas."""
    monkeypatch.setenv("SERVICE_DSN", postgres.reader)
    odd = LedgerSchema("env:SERVICE_DSN", f'a "b" %s:c {next(_schemas)}')
    with pytest.raises(LedgerError, match="does not let this role"):
        Database(odd, SERVICE)
    postgres.execute(
        f"CREATE SCHEMA {quoted(odd.schema)}", f"GRANT ALL ON SCHEMA {quoted(odd.schema)} TO reader"
    )
    for _ in range(2):
        made_there = Database(odd, SERVICE)
        assert version(made_there) == SERVICE.version
        made_there.close()
    monkeypatch.setenv("SERVICE_DSN", postgres.owner)
    made_there = Database(replace(odd, schema=odd.schema + "d"), SERVICE)
    assert version(made_there) == SERVICE.version
    made_there.close()


BEFORE = {
    "schedule": """
CREATE TABLE schedule_marks (
    schedule VARCHAR(100) NOT NULL, what VARCHAR(20) NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (schedule, what)
);
CREATE TABLE schedule_reservations (
    schedule VARCHAR(100) NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
    known VARCHAR(64) NOT NULL, PRIMARY KEY (schedule, low, high)
);
INSERT INTO schedule_marks VALUES ('daily', 'done', 7);
INSERT INTO schedule_reservations VALUES ('daily', 1, 2, 'abab');
""",
    "collect": """
CREATE TABLE collect_counts (survey BLOB NOT NULL, numbers BLOB NOT NULL, PRIMARY KEY (survey))
WITHOUT ROWID;
CREATE TABLE collect_meta (name VARCHAR(40) NOT NULL, value BLOB NOT NULL, PRIMARY KEY (name))
WITHOUT ROWID;
CREATE TABLE collect_spent (survey BLOB NOT NULL, token BLOB NOT NULL, PRIMARY KEY (survey, token))
WITHOUT ROWID;
INSERT INTO collect_meta VALUES ('format', x'31'), ('secret', x'1335');
INSERT INTO collect_counts VALUES (x'73', x'010000000000000002000000000000000300000000000000');
INSERT INTO collect_spent VALUES (x'73', x'61'), (x'73', x'62');
""",
}
"""What was made before these had a version; a collector's tables that are missing were empty."""


def write(path: Path, statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(statements)
    connection.close()


def test_what_schedules_kept_before_opens_as_it_is(tmp_path: Path) -> None:
    """Without a version it is of the first."""
    write(tmp_path / "visits.ledger_schedule", BEFORE["schedule"])
    state = ScheduleState(tmp_path / "visits.ledger")
    assert state.known("daily", 1, 2) == "abab"
    assert state.mark("daily", "done") == 7
    assert version(state._database) == 1
    state.close()


def test_what_surveys_counted_before_opens_as_it_is(tmp_path: Path) -> None:
    """Counts, the secret and the tokens that were spent."""
    write(tmp_path / "collect.db", BEFORE["collect"])
    store = CollectorStore(tmp_path / "collect.db")
    assert store.secret == b"\x13\x35"
    with store.writing() as connection:
        assert store.numbers(connection, b"s").tolist() == [1, 2, 3]
        assert store.unspent(connection, b"s", [b"a", b"b", b"c"]) == {b"c"}
    assert version(store._database) == 2
    store.close()


def test_tokens_that_were_spent_stay_so_in_a_later_version(
    place: Path | LedgerSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each survey its own, however many are moved at a time, and where they lay is gone."""
    monkeypatch.setattr(_store, "MOVED", 2)
    spent = [(survey, token) for survey in (b"one", b"two") for token in (b"a", b"b", b"\x80\xff")]
    store = CollectorStore(place)
    with store.writing() as connection:
        _store.EARLIER_SPENT.create(connection)
        rows = [{"survey": survey, "token": token} for survey, token in [*spent, (b"two", b"z")]]
        connection.execute(_store.EARLIER_SPENT.insert(), rows)
        connection.execute(_store._KEPT.version_table.update().values(version=1))
    store.close()
    for _ in range(2):
        store = CollectorStore(place)
        with store.writing() as connection:
            tokens = [b"a", b"b", b"\x80\xff", b"z", b"new"]
            assert store.unspent(connection, b"one", tokens) <= {b"z", b"new"}
            assert store.unspent(connection, b"two", tokens) <= {b"new"}
            names = sa.inspect(connection).get_table_names(schema=store._database.schema)
            assert "collect_spent" not in names
        store.close()


def test_a_token_is_spent_once_however_many_come(place: Path | LedgerSchema) -> None:
    """In one statement or in several, twice in one commit or in two, and of each survey its own."""
    store = CollectorStore(place)
    tokens = [bytes([i // 256, i % 256]) for i in range(3 * _store.AT_ONCE // 2)]
    with store.writing() as connection:
        assert store.unspent(connection, b"one", tokens[:100] * 2) == set(tokens[:100])
        assert store.unspent(connection, b"one", tokens) == set(tokens[100:])
        assert store.unspent(connection, b"two", tokens) == set(tokens)
        assert store.unspent(connection, b"two", []) == set()
    store.close()


def test_one_without_a_version_is_of_the_first(place: Path | LedgerSchema) -> None:
    """However many versions there have been since: each step is made."""
    made(place)
    database = Database(place, SERVICE)
    with database.writing() as connection:
        connection.execute(SERVICE.version_table.delete())
    database.close()
    database = Database(place, later(added, renamed))
    assert [row["name"] for row in People(database).listed()] == ["anna"]
    database.close()


def test_an_id_that_another_wrote_down_stays(place: Path | LedgerSchema) -> None:
    """Two processes that are about to reserve use one id; what has lapsed is replaced."""
    state = ScheduleState(place)
    assert state.keep("daily", 1, 2, "first") == "first"
    assert state.keep("daily", 1, 2, "second") == "first"
    assert state.keep("daily", 1, 2, "third", instead_of="first") == "third"
    assert state.keep("daily", 1, 2, "fourth", instead_of="first") == "third"
    assert state.known("daily", 1, 2) == "third"
    state.close()


def test_writers_wait_for_one_another(place: Path | LedgerSchema) -> None:
    """What one reads before it writes is what it writes upon, with several servers, too."""
    databases = [Database(place, SERVICE), Database(place, SERVICE)]

    def count(database: Database) -> None:
        for _ in range(10):
            with database.writing() as connection:
                found = connection.execute(sa.select(people.c.created)).scalar_one_or_none()
                if found is None:
                    connection.execute(
                        people.insert().values(name="n", role="r", disabled=False, created=1)
                    )
                else:
                    connection.execute(people.update().values(created=found + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, databases * 2))
    with databases[0].reading() as connection:
        assert connection.execute(sa.select(people.c.created)).scalar_one() == 40
    for database in databases:
        database.close()


def test_several_may_open_a_new_one_at_once(tmp_path: Path) -> None:
    """As the processes of one collector do when they start."""

    def opens(path: Path) -> None:
        CollectorStore(path).close()

    with ThreadPoolExecutor(6) as pool:
        for number in range(6):
            list(pool.map(opens, [tmp_path / f"{number}.db"] * 6))


def test_a_reader_sees_one_moment(place: Path | LedgerSchema) -> None:
    """What others write meanwhile is not half of what it reads."""
    made(place)
    database = Database(place, SERVICE)
    names = sa.select(people.c.name)
    with database.reading() as connection:
        before = connection.execute(names).all()
        People(database).add("bob", Role.ANALYST)
        assert connection.execute(names).all() == before
    with database.reading() as connection:
        assert len(connection.execute(names).all()) == 2
    database.close()


def test_what_fails_is_undone(place: Path | LedgerSchema) -> None:
    """A transaction that does not come to its end leaves nothing."""
    made(place)
    database = Database(place, SERVICE)

    def failing() -> None:
        with database.writing() as connection:
            connection.execute(people.delete())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert [row["name"] for row in People(database).listed()] == ["ann"]
    database.close()

"""The service's database is brought up to date whole or not at all, and a newer one is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("starlette")

import sqlalchemy as sa

from dither.errors import LedgerError
from dither.ledger._place import LedgerSchema
from dither.policy._policy import read_policy
from dither.service import _database
from dither.service._database import Database, meta, people
from dither.service._settings import read_settings
from dither.service.access._people import People
from dither.service.access._roles import Role

_schemas = itertools.count()


@pytest.fixture(params=["file", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path | LedgerSchema:
    if request.param == "file":
        return tmp_path / "visits.service"
    monkeypatch.setenv("SERVICE_DSN", request.getfixturevalue("postgres").owner)
    return LedgerSchema("env:SERVICE_DSN", f"kept {next(_schemas)}")


def made(place: Path | LedgerSchema) -> None:
    """One of today, that knows somebody."""
    database = Database(place)
    People(database).add("ann", Role.ANALYST)
    database.close()


def version(database: Database) -> int:
    with database.reading() as connection:
        return int(connection.execute(sa.select(meta.c.version)).scalar_one())


def renamed(connection: sa.Connection) -> None:
    """A step that changes rows."""
    connection.execute(people.update().values(name=people.c.name + "a"))


def added(connection: sa.Connection) -> None:
    """A step that changes a table."""
    name = connection.schema_for_object(people)
    table = "service_people" if name is None else f'"{name}".service_people'
    connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN team TEXT")


def steps(monkeypatch: pytest.MonkeyPatch, *does: Callable[[sa.Connection], None]) -> None:
    """Versions that come after today's."""
    now = _database.VERSION
    monkeypatch.setattr(_database, "VERSION", now + len(does))
    for number, step in enumerate(does, start=now):
        monkeypatch.setitem(_database.MIGRATIONS, number, step)


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


def test_an_earlier_one_is_brought_up_to_date(
    place: Path | LedgerSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step once, in order, and what is in it stays."""
    made(place)
    steps(monkeypatch, added, renamed)
    for _ in range(2):
        database = Database(place)
        assert version(database) == _database.VERSION
        assert [row["name"] for row in People(database).listed()] == ["anna"]
        database.close()


def test_a_step_that_fails_changes_nothing(
    place: Path | LedgerSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its own half nor the steps before it; the version of before opens it as before."""
    made(place)
    before = _database.VERSION

    def failing(connection: sa.Connection) -> None:
        renamed(connection)
        raise RuntimeError("power is gone")

    with monkeypatch.context() as later:
        steps(later, added, failing)
        with pytest.raises(RuntimeError):
            Database(place)
    database = Database(place)
    assert version(database) == before
    assert [row["name"] for row in People(database).listed()] == ["ann"]
    database.close()
    steps(monkeypatch, added, renamed)
    Database(place).close()


def test_a_newer_one_is_refused(
    place: Path | LedgerSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left as it is, and so is one that is too old."""
    with monkeypatch.context() as later:
        steps(later, added)
        made(place)
    with pytest.raises(LedgerError, match="install a newer one"):
        Database(place)
    monkeypatch.setattr(_database, "VERSION", _database.VERSION + 7)
    with pytest.raises(LedgerError, match="cannot bring up to date"):
        Database(place)
    assert _database.MIGRATIONS.keys() <= set(range(_database.VERSION))


def test_writers_wait_for_one_another(place: Path | LedgerSchema) -> None:
    """What one reads before it writes is what it writes upon, with several servers, too."""
    databases = [Database(place), Database(place)]

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


def test_a_reader_sees_one_moment(place: Path | LedgerSchema) -> None:
    """What others write meanwhile is not half of what it reads."""
    made(place)
    database = Database(place)
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
    database = Database(place)

    def failing() -> None:
        with database.writing() as connection:
            connection.execute(people.delete())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert [row["name"] for row in People(database).listed()] == ["ann"]
    database.close()

"""PostgreSQL: wide tables, and rights, tables and passwords that change while a session is open."""

from __future__ import annotations

import pytest

import dither
from dither.errors import EngineError, PolicyError
from engines.postgres.test_reads import QUESTION, TABLE, policy, spent, told
from postgres_server import PASSWORD, Database, literal

MOST = 1600
"""Columns of a table, which the server's own limit is."""


@pytest.fixture
def database(postgres: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A table of visits; the variable of the environment leads its reader there."""
    postgres.execute(TABLE)
    monkeypatch.setenv("TEST_DSN", postgres.reader)
    return postgres


def wide(folder, columns: int):
    """A policy that names so many columns of ``wide``."""
    return {
        "budget": {"epsilon": 10**9, "delta": "1e-6", "ledger": str(folder / "wide.ledger")},
        "tables": {
            "wide": {
                "source": {"postgres": "env:TEST_DSN", "table": "wide"},
                "unit": "c0",
                "max_groups": 1,
                "max_rows": 1,
                "columns": {f"c{i}": {"bounds": [0, 2000]} for i in range(1, columns)},
            }
        },
    }


def test_the_widest_table_there_is(database, tmp_path):
    """Every column is described and declared, and each can be asked for."""
    fields = ", ".join(f"c{i} int" for i in range(MOST))
    values = ", ".join(["i", *(str(i) for i in range(1, MOST))])
    database.execute(
        f"CREATE TABLE wide ({fields})",
        f"INSERT INTO wide SELECT {values} FROM generate_series(1, 50) i",
    )
    with dither.open(wide(tmp_path, MOST)) as session:
        assert len(session.tables["wide"].columns) == MOST
        asked = "SELECT AVG(c1599) AS a, AVG(c800) AS b, COUNT(*) AS n FROM wide WHERE c1598 = 1598"
        row = session.sql(asked).release(10**6).frame.row(0, named=True)
    assert row["n"] == 50
    assert row["a"] == pytest.approx(1599, abs=0.1)
    assert row["b"] == pytest.approx(800, abs=0.1)
    # A policy of more columns than any table has names one that is not there.
    with pytest.raises(PolicyError, match=r"the source has no such column|has no column") as found:
        dither.open(wide(tmp_path / "..", 10_000))
    assert len(str(found.value)) < 400


CHANGES = {
    "a right revoked": ("REVOKE SELECT ON visits FROM reader", "GRANT SELECT ON visits TO reader"),
    "a table renamed": ("ALTER TABLE visits RENAME TO gone", "ALTER TABLE gone RENAME TO visits"),
    "a column renamed": (
        "ALTER TABLE visits RENAME COLUMN cost TO price",
        "ALTER TABLE visits RENAME COLUMN price TO cost",
    ),
    "another type": (
        "ALTER TABLE visits ALTER COLUMN region TYPE varchar(9)",
        "ALTER TABLE visits ALTER COLUMN region TYPE text",
    ),
    "rows hidden": (
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE visits DISABLE ROW LEVEL SECURITY",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_the_charge_and_the_answer(database, tmp_path, monkeypatch, change):
    """Paid for, and the one message; then refused for nothing; and once undone it is answered."""
    there, back = CHANGES[change]
    with dither.open(policy(tmp_path)) as session:
        engine = type(session._engine)
        prepare = engine.prepare

        def prepared_and_changed(self, job, schema):
            prepare(self, job, schema)
            database.execute(there)

        with monkeypatch.context() as patch:
            patch.setattr(engine, "prepare", prepared_and_changed)
            with pytest.raises(EngineError, match="could not compute the answer") as failed:
                session.sql(QUESTION).release(epsilon=1)
        assert PASSWORD not in told(failed.value)
        before = spent(session)
        assert any(before)
        with pytest.raises(PolicyError, match="table 'visits'") as refused:
            session.sql(QUESTION).release(epsilon=1)
        assert PASSWORD not in told(refused.value)
        assert spent(session) == before
        database.execute(back)
        assert session.sql(QUESTION).release(epsilon=1)


def test_a_password_that_was_changed_while_a_session_was_open(database, tmp_path, monkeypatch):
    """Seen when the connection is made anew: told before the charge, without the password."""
    name = f"guest_of_{database.name}"
    with database.server.connect(database.name) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
        admin.execute(f"ALTER ROLE {name} PASSWORD {literal(PASSWORD)}")
        admin.execute(f"GRANT CONNECT ON DATABASE {database.name} TO {name}")
        admin.execute(f"GRANT USAGE ON SCHEMA public TO {name}")
        admin.execute(f"GRANT SELECT ON visits TO {name}")
        monkeypatch.setenv("TEST_DSN", database.server.dsn(database.name, name))
        with dither.open(policy(tmp_path)) as session:
            admin.execute(f"ALTER ROLE {name} PASSWORD 'an0ther w0rd'")
            admin.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = %s",
                [name],
            )
            with pytest.raises(PolicyError, match="refuses the role or its password") as refused:
                session.sql(QUESTION).release(epsilon=1)
            assert PASSWORD not in told(refused.value)
            assert not any(spent(session))
            admin.execute(f"ALTER ROLE {name} PASSWORD {literal(PASSWORD)}")
            assert session.sql(QUESTION).release(epsilon=1)

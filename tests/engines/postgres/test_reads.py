"""PostgreSQL: what is read and refused, whose rights suffice, and what its failures show."""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
import threading
import time
import traceback

import numpy as np
import polars as pl
import pytest

import dither
from dither._environment import Secret
from dither.engines.identity import same_rows
from dither.engines.postgres import PostgresEngine
from dither.engines.postgres.connection import SETTINGS, Failure
from dither.errors import (
    DitherError,
    EngineError,
    MissingLibraryError,
    PolicyError,
    UnsupportedError,
)
from dither.plan.schema import ColumnFacts, Kind
from postgres_server import PASSWORD, Database, Server

TABLE = """
CREATE TABLE visits (pid bigint, region text, age smallint, cost numeric(10,2), day date);
INSERT INTO visits SELECT i / 4, (ARRAY['north','south'])[1 + i % 2], i % 90, i % 500,
    DATE '2024-01-01' + i % 300 FROM generate_series(0, 3999) i
"""


@pytest.fixture
def database(postgres: Database, monkeypatch) -> Database:
    """A table of visits; the variable of the environment leads its reader there."""
    postgres.execute(TABLE)
    monkeypatch.setenv("TEST_DSN", postgres.reader)
    return postgres


def policy(folder, table="public.visits", unit="pid", **engine):
    """A policy of the visits."""
    return {
        "budget": {"epsilon": 100, "delta": "1e-6", "ledger": str(folder / "visits.ledger")},
        "engine": engine,
        "tables": {
            "visits": {
                "source": {"postgres": "env:TEST_DSN", "table": table},
                **({"unit": unit, "max_groups": 2, "max_rows": 4} if unit else {}),
                "columns": {
                    "region": {"values": ["north", "south"]},
                    "age": {"bounds": [0, 110]},
                    "cost": {"bounds": [0, 500], "step": "0.01"},
                },
            }
        },
    }


def opened(database: Database, table: str, role: str = "reader", **options):
    """An engine over one table."""
    return PostgresEngine(Secret(getattr(database, role), "env:TEST_DSN"), {"t": table}, **options)


def spent(session) -> list:
    """What every account has spent."""
    return [balance.spent.epsilon for balance in session.balance()]


def told(error: BaseException) -> str:
    """All that an error could be made to show: its chain, and the variables of every frame."""
    texts, seen, todo = [], set(), [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        todo += [one.__cause__, one.__context__]
        shown = traceback.TracebackException.from_exception(one, capture_locals=True)
        texts += [repr(one), str(one), *shown.format()]
    return "\n".join(texts)


QUESTION = "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY region"


def test_a_role_that_may_only_select_is_enough(database, tmp_path):
    """From the policy to the release, in transactions that cannot write."""
    with dither.open(policy(tmp_path)) as session:
        frame = session.sql(QUESTION).release(epsilon=50).frame.sort("region")
    assert frame["n"].to_list() == pytest.approx([2000, 2000], abs=30)
    assert frame["cost"].to_list() == pytest.approx([249, 250], abs=5)


def test_the_connection_cannot_write(database):
    """Not even as a role that may."""
    with opened(database, "visits", "owner") as engine, engine._connection.transaction():
        assert engine._connection.rows("SHOW transaction_isolation") == [("repeatable read",)]
        assert engine._connection.rows("SHOW timezone") == [("UTC",)]
        assert engine._connection.rows("SHOW statement_timeout") == [("1h",)]
        with pytest.raises(Failure, match="the server refused the statement"):
            engine._connection.rows("DELETE FROM public.visits")


@pytest.mark.parametrize(
    "table", ["visits", "public.visits", 'public."visits"', "PUBLIC.VISITS", ' "public" . "visits"']
)
def test_a_table_is_named_as_it_is_or_as_in_sql(database, table):
    """With its schema or found on the role's path."""
    with opened(database, table) as engine:
        assert engine.describe("t")["age"] is Kind.INTEGER


def test_odd_names_are_names(postgres):
    """Blanks, quotes, dots, emoji and SQL in the names of a table and of its columns."""
    odd = 'Bob\'s "1.5"; DROP TABLE x -- 🏥'
    quoted = '"' + odd.replace('"', '""') + '"'
    postgres.execute(f'CREATE TABLE {quoted} ({quoted} text, "$1" int, "%s" int)')
    with opened(postgres, odd) as engine:
        assert list(engine.describe("t")) == [odd, "$1", "%s"]
        assert engine.public_values("t", ColumnFacts(odd, Kind.TEXT)) == ()
    with pytest.raises(PolicyError, match="no table 'visit' is seen by its role"):
        opened(postgres, "visit")


TYPES = [
    ("smallint", "7", Kind.INTEGER, 7), ("oid", "4294967295", Kind.INTEGER, 4294967295),
    ("numeric", "'NaN'", Kind.REAL, None), ("numeric", "'Infinity'", Kind.REAL, float("inf")),
    ("numeric", "1e-400", Kind.REAL, 0.0), ("numeric", "-1e400", Kind.REAL, float("-inf")),
    ("numeric", "0.1", Kind.REAL, 0.1), ("numeric(5,2)", "'NaN'", Kind.REAL, None),
    ("numeric", "7.00", Kind.TEXT, "7"), ("numeric(5,2)", "7", Kind.TEXT, "7.00"),
    ("numeric", "1e30", Kind.INTEGER, None), ("numeric", "2.5", Kind.INTEGER, 3),
    ("real", "0.1", Kind.REAL, float(np.float32(0.1))), ("real", "'NaN'", Kind.BOOLEAN, None),
    ("double precision", "2.5", Kind.INTEGER, 2), ("double precision", "1e300", Kind.INTEGER, None),
    ("double precision", "'NaN'", Kind.INTEGER, None), ("boolean", "true", Kind.INTEGER, 1),
    ("integer", "0", Kind.BOOLEAN, False), ("bigint", "9223372036854775807", Kind.TEXT,
     "9223372036854775807"),
    ("character(5)", "'ab'", Kind.TEXT, "ab"), ("varchar(9)", "'é '", Kind.TEXT, "é "),
    ("name", "'n'", Kind.TEXT, "n"), ('"char"', "'c'", Kind.TEXT, "c"),
    ("uuid", "'00000000-0000-0000-0000-00000000000A'", Kind.TEXT,
     "00000000-0000-0000-0000-00000000000a"),
    ("text", "' 7 '", Kind.INTEGER, 7), ("text", "'7.4'", Kind.INTEGER, None),
    ("text", "'9223372036854775808'", Kind.INTEGER, None), ("text", "'7'", Kind.REAL, 7.0),
    ("text", "'1e9999'", Kind.REAL, float("inf")), ("text", "'1e-9999'", Kind.REAL, 0.0),
    ("text", "'1e99999'", Kind.REAL, None), ("text", "'x'", Kind.REAL, None),
    ("text", "'YES'", Kind.BOOLEAN, True), ("text", "'maybe'", Kind.BOOLEAN, None),
    ("text", "'2024-02-29'", Kind.DATE, dt.date(2024, 2, 29)),
    ("text", "'2023-02-29'", Kind.DATE, None), ("text", "'1900-02-29'", Kind.DATE, None),
    ("text", "'2000-02-29'", Kind.DATE, dt.date(2000, 2, 29)),
    ("text", "'0000-01-01'", Kind.DATE, None), ("text", "'2024-04-31'", Kind.DATE, None),
    ("text", "'2024-01-01 10:00:00.5+02:30'", Kind.TIMESTAMP,
     dt.datetime(2024, 1, 1, 7, 30, 0, 500000)),
    ("text", "'2024-01-01T24:00'", Kind.TIMESTAMP, None),
    ("text", "'9999-12-31 23:00-14'", Kind.TIMESTAMP, None),
    ("date", "'infinity'", Kind.DATE, None), ("date", "'infinity'", Kind.TIMESTAMP, None),
    ("date", "'5874897-01-01'", Kind.TIMESTAMP, None), ("date", "'0044-03-15 BC'", Kind.DATE, None),
    ("date", "'0044-03-15 BC'", Kind.TEXT, None), ("date", "'0999-03-15'", Kind.TEXT, "0999-03-15"),
    ("timestamp(3)", "'2024-01-01 00:00:01.5'", Kind.TIMESTAMP,
     dt.datetime(2024, 1, 1, 0, 0, 1, 500000)),
    ("timestamp", "'-infinity'", Kind.TIMESTAMP, None),
    ("timestamp", "'294276-12-31 23:59:59'", Kind.DATE, None),
    ("timestamptz", "'2024-01-01 00:30+01'", Kind.DATE, dt.date(2023, 12, 31)),
    ("timestamptz", "'infinity'", Kind.TEXT, None),
]  # fmt: skip


def test_every_type_is_read_without_fail(postgres):
    """As the kind that is declared, or NULL; whatever the server's own settings are."""
    fields = ", ".join(f"c{i} {kind}" for i, (kind, *_) in enumerate(TYPES))
    values = ", ".join(value for _, value, *_ in TYPES)
    postgres.execute(f"CREATE TABLE t ({fields})", f"INSERT INTO t VALUES ({values})")
    with opened(postgres, "t") as engine:
        found = [
            engine.public_values("t", ColumnFacts(f"c{i}", kind))[0]
            for i, (_, _, kind, _) in enumerate(TYPES)
        ]
    assert found == [value for *_, value in TYPES]


def test_own_types_are_read_as_what_they_are_made_of(postgres):
    """Domains, enumerations and texts that compare otherwise; other types are not read."""
    postgres.execute(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2',"
        " deterministic = false)",
        "CREATE DOMAIN code AS numeric(6,0) CHECK (value > 0)",
        "CREATE DOMAIN inner_code AS code",
        "CREATE TYPE grade AS ENUM ('low', 'high')",
        "CREATE TABLE t (a inner_code, b grade, c text COLLATE loose, d json, e int[], f bytea,"
        " g interval, h money, i inet, j text GENERATED ALWAYS AS ('x' || 'y') STORED)",
        "INSERT INTO t VALUES (7, 'high', 'Ann'), (8, 'low', 'ann')",
    )
    with opened(postgres, "t") as engine:
        kinds = engine.describe("t")
        assert [kinds[n] for n in "abcj"] == [Kind.REAL, Kind.TEXT, Kind.TEXT, Kind.TEXT]
        assert all(kinds[n] is None for n in "defghi")
        assert engine.labels("t") == {"b": ("low", "high")}
        assert "store it as text" in engine.unread("t")["d"]
        assert sorted(engine.public_values("t", ColumnFacts("b", Kind.TEXT))) == ["high", "low"]
        # Told apart by their bytes, whatever the column's collation says.
        values = engine.public_values("t", ColumnFacts("c", Kind.TEXT, values=("Ann",)))
        assert set(values) == {"Ann", None}
        with pytest.raises(PolicyError, match="stored as text that is compared without case"):
            engine._check_unit("t", ColumnFacts("c", Kind.TEXT))
        engine._check_unit("t", ColumnFacts("b", Kind.TEXT))


def test_columns_that_the_role_may_not_read_are_left_out(postgres, tmp_path, monkeypatch):
    """The others are read; the policy that names it says why it cannot be."""
    postgres.execute(
        TABLE.replace("visits", "secret_visits"),
        "REVOKE ALL ON secret_visits FROM reader",
        "GRANT SELECT (pid, region, age) ON secret_visits TO reader",
    )
    with opened(postgres, "secret_visits") as engine:
        assert engine.describe("t")["cost"] is None
        assert "its role may not SELECT it" in engine.unread("t")["cost"]
        assert len(engine.public_values("t", ColumnFacts("age", Kind.INTEGER))) == 4000
    postgres.execute("REVOKE ALL ON secret_visits FROM reader")
    with pytest.raises(PolicyError, match=r"is seen by its role|may not SELECT"):
        opened(postgres, "secret_visits")


def test_rights_on_columns_are_rights(postgres, tmp_path, monkeypatch):
    """A table is offered that has one column for the role; none is that it may not read."""
    monkeypatch.setenv("TEST_DSN", postgres.reader)
    postgres.execute(
        TABLE,
        "CREATE TYPE secret AS ENUM ('mine', 'yours')",
        'ALTER TABLE visits ADD COLUMN ages secret, ADD COLUMN "e\u200b\u202e" int',
        "CREATE TABLE visitors (pid bigint)",
        "REVOKE ALL ON visits, visitors FROM reader",
        "GRANT SELECT (pid, region, age, cost) ON visits TO reader",
    )
    for wrong, offered in (
        ("public.visit", "did you mean 'public.visits'"),
        ("x", "'public.visits'"),
    ):
        with pytest.raises(PolicyError, match=f"is seen by its role.*{offered}") as found:
            opened(postgres, wrong)
        assert "visitors" not in str(found.value)
    made = policy(tmp_path, "visits")
    made["tables"]["visits"]["columns"]["agess"] = {"bounds": [0, 1]}
    with pytest.raises(PolicyError, match="no such column; did you mean 'age'"):
        dither.open(made)
    with pytest.raises(PolicyError, match="has no column 'agess'; did you mean 'age'"):
        dither.open(policy(tmp_path, "visits", unit="agess"))
    with opened(postgres, "visits") as engine:
        assert engine.labels("t") == {}


def test_what_becomes_of_other_columns_is_not_looked_at(postgres, tmp_path, monkeypatch):
    """A column that the role may not read can come, change its type and go while a policy is open;
    one that it reads cannot."""
    monkeypatch.setenv("TEST_DSN", postgres.reader)
    postgres.execute(
        TABLE,
        "ALTER TABLE visits ADD COLUMN secret int",
        "REVOKE ALL ON visits FROM reader",
        "GRANT SELECT (pid, region, age, cost) ON visits TO reader",
    )
    with dither.open(policy(tmp_path, "visits")) as session:
        for change in (
            "ALTER COLUMN secret TYPE text",
            "ADD COLUMN more int",
            "DROP COLUMN secret",
        ):
            postgres.execute(f"ALTER TABLE visits {change}")
            session.sql(QUESTION).release(epsilon=1)
        before = spent(session)
        postgres.execute("ALTER TABLE visits ALTER COLUMN cost TYPE double precision")
        with pytest.raises(PolicyError, match="is not what it was when it was opened"):
            session.sql(QUESTION).release(epsilon=1)
        assert spent(session) == before


def test_rows_under_another_name_have_no_fresh_budget(postgres, tmp_path, monkeypatch):
    """By another name in the policy, by a view, by a part, renamed, and made anew as before."""
    monkeypatch.setenv("TEST_DSN", postgres.reader)
    postgres.execute(
        TABLE.replace("day date)", "day date) PARTITION BY RANGE (age)", 1).replace(
            ";\nINSERT",
            ";\nCREATE TABLE young PARTITION OF visits FOR VALUES FROM (0) TO (40);"
            "\nCREATE TABLE old PARTITION OF visits FOR VALUES FROM (40) TO (99);\nINSERT",
            1,
        ),
        "CREATE VIEW above AS SELECT pid, region, age, cost FROM visits",
        "CREATE TABLE labs AS SELECT pid, region, age, cost FROM visits",
    )

    def named(name, table):
        made = policy(tmp_path, table)
        made["tables"] = {name: made["tables"]["visits"]}
        return made

    def ask(name):
        with dither.open(named(name, name)) as session:
            session.sql(f"SELECT COUNT(*) AS n FROM {name}").release(epsilon=1)

    ask("visits")
    ask("labs")
    for name, table in (("folk", "visits"), ("above", "above"), ("old", "old")):
        with pytest.raises(dither.errors.PromiseError, match="rows that this ledger has as table"):
            dither.open(named(name, table))
    postgres.execute("ALTER TABLE labs RENAME TO results")
    with pytest.raises(dither.errors.PromiseError, match="has as table 'labs'"):
        dither.open(named("results", "results"))
    postgres.execute("CREATE TABLE labs AS SELECT * FROM results")
    with pytest.raises(dither.errors.PromiseError, match="has as table 'labs'"):
        dither.open(named("folk", "labs"))
    ask("labs")


def test_parts_of_a_table_are_apart(postgres, tmp_path, monkeypatch):
    """Two parts share no row; the whole shares those of each."""
    monkeypatch.setenv("TEST_DSN", postgres.reader)
    postgres.execute(
        "CREATE TABLE y (pid bigint, day date) PARTITION BY RANGE (day)",
        "CREATE TABLE y_old PARTITION OF y FOR VALUES FROM (MINVALUE) TO ('2024-01-01')",
        "CREATE TABLE y_new PARTITION OF y FOR VALUES FROM ('2024-01-01') TO (MAXVALUE)",
    )
    with PostgresEngine(
        Secret(postgres.reader, "env:TEST_DSN"), {"y": "y", "old": "y_old", "new": "y_new"}
    ) as engine:
        whole, old, new = (next(iter(engine.sources(t).items())) for t in ("y", "old", "new"))
    assert same_rows(whole, old) is same_rows(new, whole) is True
    assert same_rows(old, new) is False


def test_partitions_and_children_belong_to_their_table(postgres):
    """And two names of the same rows are known to be that."""
    postgres.execute(
        "CREATE TABLE y (pid bigint, day date) PARTITION BY RANGE (day)",
        "CREATE TABLE y_old PARTITION OF y FOR VALUES FROM (MINVALUE) TO ('2024-01-01')",
        "CREATE TABLE y_new PARTITION OF y FOR VALUES FROM ('2024-01-01') TO (MAXVALUE)",
        "INSERT INTO y VALUES (1, '2023-01-01'), (2, '2024-01-01')",
        "CREATE VIEW names AS SELECT pid FROM y",
    )
    dsn = Secret(postgres.reader, "env:TEST_DSN")
    tables = {"y": "y", "old": "y_old", "names": "names"}
    with PostgresEngine(dsn, tables) as engine, PostgresEngine(dsn, {"other": "y_new"}) as other:
        assert len(engine.public_values("y", ColumnFacts("pid", Kind.INTEGER))) == 2
        assert engine.places("y") & engine.places("old")
        assert engine.places("names") & engine.places("old")
        assert engine.places("y") & other.places("other")
        assert not engine.places("old") & other.places("other")


def test_rows_that_are_hidden_are_told(postgres):
    """Row-level security hides rows from the role: refused. From others alone: read."""
    postgres.execute(
        "CREATE TABLE t (pid bigint)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON t USING (pid = 1)",
        "CREATE VIEW above AS SELECT pid FROM t",
    )
    with pytest.raises(PolicyError, match="row-level security hides rows of it from its role"):
        opened(postgres, "t")
    opened(postgres, "t", "owner").close()
    # Read with the rights of its owner, from whom nothing is hidden.
    opened(postgres, "above").close()
    postgres.execute("ALTER TABLE t FORCE ROW LEVEL SECURITY")
    with pytest.raises(PolicyError, match="row-level security hides rows of the table below it"):
        opened(postgres, "above")


VIEWS = {
    "plain": ("SELECT pid AS who, region, cost FROM visits", None),
    "conditions": (
        "SELECT pid, region FROM visits WHERE age >= 18 AND region IN ('north', 'east') AND NOT "
        "cost IS NULL AND day BETWEEN '2024-01-01' AND '2024-06-30' OR cost > -5.5",
        None,
    ),
    "choices": (
        "SELECT pid, CASE WHEN age < 18 THEN 'child' ELSE region END AS a, COALESCE(region, '?') "
        "AS b, age::text AS c FROM visits",
        None,
    ),
    "of a view": ("SELECT who AS pid FROM good WHERE region <> 'x'", None),
    "join": (
        "SELECT a.pid FROM visits a JOIN visits b ON a.pid = b.pid",
        "does not read one table",
    ),
    "limit": ("SELECT pid FROM visits LIMIT 5", "has LIMIT"),
    "distinct": ("SELECT DISTINCT pid FROM visits", "has DISTINCT"),
    "group": ("SELECT pid FROM visits GROUP BY pid", "has GROUP"),
    "aggregate": ("SELECT count(*) AS n FROM visits", "has COUNT"),
    "window": ("SELECT pid, row_number() OVER () AS n FROM visits", "has WINDOW"),
    "union": ("SELECT pid FROM visits UNION ALL SELECT pid FROM visits", "not one plain SELECT"),
    "subquery": ("SELECT pid FROM (SELECT pid FROM visits) s", "does not read one table"),
    "in a query": (
        "SELECT pid FROM visits WHERE age IN (SELECT age FROM visits)",
        "it has|it comp",
    ),
    "division": ("SELECT pid, 1 / age AS x FROM visits", "has DIV"),
    "function": ("SELECT pid, ln(cost) AS x FROM visits", "has LN"),
    "cast": ("SELECT pid, region::int AS x FROM visits", "has a cast to integer"),
    "narrow cast": ("SELECT pid, cost::int AS x FROM visits", "has a cast to integer"),
    "now": ("SELECT pid FROM visits WHERE day < now()", "it has"),
    "role": ("SELECT pid FROM visits WHERE region = current_user", "it has|type"),
    "random": ("SELECT pid FROM visits WHERE random() < 0.5", "has RAND"),
    "doubles": ("SELECT pid FROM visits WHERE cost < 5::double precision", "cast|two types"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_read_row_by_row_or_not_at_all(database, view):
    """Plain columns and conditions that cannot fail; the message says what is in the way."""
    text, why = VIEWS[view]
    database.execute(
        f"CREATE VIEW good AS {VIEWS['plain'][0]}",
        f"CREATE VIEW v WITH (security_barrier) AS {text}",
    )
    if why is not None:
        with pytest.raises(PolicyError, match=why) as refused:
            opened(database, "v")
        assert "the view cannot be protected" in str(refused.value)
        return
    with opened(database, "v") as engine:
        assert engine.complete("t") is ("WHERE" not in text)
        computed = engine._table("t").computed
        assert computed == ({"a", "b", "c"} if view == "choices" else set())


def test_foreign_tables_are_refused_alone_and_as_parts(postgres):
    """What a file holds can fail on a value."""
    with postgres.server.connect(postgres.name) as admin:
        admin.execute("CREATE EXTENSION file_fdw")
        admin.execute("CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
        admin.execute(
            "CREATE FOREIGN TABLE f (pid bigint) SERVER files OPTIONS (filename '/dev/null')"
        )
        admin.execute("CREATE TABLE parent (pid bigint)")
        admin.execute("ALTER FOREIGN TABLE f INHERIT parent")
        admin.execute("GRANT SELECT ON f, parent TO reader")
    for table in ("f", "parent"):
        with pytest.raises(PolicyError, match="it is a foreign table, or has one as a part"):
            opened(postgres, table)


CHANGES = {
    "dropped": "DROP TABLE visits",
    "renamed": "ALTER TABLE visits RENAME TO gone",
    "a column less": "ALTER TABLE visits DROP COLUMN age",
    "a column more": "ALTER TABLE visits ADD COLUMN more int",
    "another type": "ALTER TABLE visits ALTER COLUMN age TYPE bigint",
    "columns exchanged": "ALTER TABLE visits RENAME COLUMN age TO x; "
    "ALTER TABLE visits RENAME COLUMN pid TO age; ALTER TABLE visits RENAME COLUMN x TO pid",
    "rights lost": "REVOKE SELECT ON visits FROM reader",
    "rows hidden": "ALTER TABLE visits ENABLE ROW LEVEL SECURITY",
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_refused_before_the_charge(database, tmp_path, change):
    """Between the opening and the release."""
    with dither.open(policy(tmp_path)) as session:
        question = session.sql(QUESTION)
        database.execute(CHANGES[change])
        with pytest.raises(PolicyError, match="table 'visits'"):
            question.release(epsilon=1)
        assert not any(spent(session))


def test_a_table_that_was_made_anew_is_the_same_table(database, tmp_path):
    """Rows may come and go, as by a nightly exchange of tables."""
    with dither.open(policy(tmp_path)) as session:
        database.execute(
            "CREATE TABLE fresh (LIKE visits)", "ALTER TABLE visits RENAME TO old",
            "ALTER TABLE fresh RENAME TO visits", "GRANT SELECT ON visits TO reader",
        )  # fmt: skip
        frame = session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=50).frame
    assert frame["n"][0] == pytest.approx(0, abs=5)


def test_a_view_that_was_changed_is_refused(database, tmp_path):
    """Its columns are the same, its rows are others."""
    database.execute("CREATE VIEW v AS SELECT * FROM visits")
    with dither.open(policy(tmp_path, "v")) as session:
        database.execute("CREATE OR REPLACE VIEW v AS SELECT * FROM visits WHERE age > 5")
        with pytest.raises(PolicyError, match="is not what it was when it was opened"):
            session.sql(QUESTION).release(epsilon=1)
        assert not any(spent(session))


def test_a_change_after_the_charge_gives_the_one_message(database, tmp_path, monkeypatch):
    """The charge stays, and nothing says what happened."""
    with dither.open(policy(tmp_path)) as session:
        engine = session._engine
        prepare = type(engine).prepare

        def prepared_and_dropped(self, job, schema):
            prepare(self, job, schema)
            database.execute("DROP TABLE visits")

        monkeypatch.setattr(type(engine), "prepare", prepared_and_dropped)
        with pytest.raises(EngineError, match="could not compute the answer") as failed:
            session.sql(QUESTION).release(epsilon=1)
        assert PASSWORD not in told(failed.value)
        assert any(spent(session))


def test_a_server_that_was_away_is_found_again(monkeypatch, tmp_path):
    """Down before the charge is told; down after it is the one message; up again it works."""
    # Stopped at once, a server forgets what it has not written.
    with Server(synchronous_commit="on") as server:
        database = server.database()
        database.execute(TABLE)
        monkeypatch.setenv("TEST_DSN", database.reader)
        with dither.open(policy(tmp_path)) as session:
            server.stop("immediate")
            with pytest.raises(PolicyError, match=r"env:TEST_DSN: nothing answers there") as e:
                session.sql(QUESTION).release(epsilon=1)
            assert PASSWORD not in told(e.value)
            assert not any(spent(session))
            server.start()
            assert session.sql(QUESTION).release(epsilon=1)
            engine = session._engine
            prepare = type(engine).prepare

            def prepared_and_gone(self, job, schema):
                prepare(self, job, schema)
                server.stop("immediate")

            monkeypatch.setattr(type(engine), "prepare", prepared_and_gone)
            with pytest.raises(EngineError, match="could not compute the answer") as e:
                session.sql(QUESTION).release(epsilon=1)
            assert PASSWORD not in told(e.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda dsn: dsn.replace("%20%", "%20x%"), "refuses the role or its password"),
        (lambda dsn: dsn + "_none", "the server has no such database"),
        (lambda dsn: dsn.replace("127.0.0.1", "127.0.0.1:1") and "host=127.0.0.1 port=1 "
         f"password='{PASSWORD.split()[0]}'", "nothing answers there"),
        (lambda dsn: f"garbage {PASSWORD}", "env:TEST_DSN: this is not a connection string"),
        (lambda dsn: "postgresql://a:b@[::1/x", "env:TEST_DSN: this is not a connection string"),
    ],
)  # fmt: skip
def test_who_cannot_connect_is_told_why_and_shown_no_secret(
    database, tmp_path, monkeypatch, changed, message
):
    """Not in the message, its causes, its context, nor in a variable of any frame of them."""
    monkeypatch.setenv("TEST_DSN", changed(database.reader))
    with pytest.raises(PolicyError, match=message) as refused:
        dither.open(policy(tmp_path))
    assert "env:TEST_DSN" in str(refused.value)
    shown = told(refused.value)
    assert PASSWORD.split()[0] not in shown
    assert not (tmp_path / "visits.ledger").exists()


def test_nothing_that_is_shown_or_kept_holds_the_password(database, tmp_path, capsys):
    """Explanations, releases, certificates, the session and the ledger."""
    with dither.open(policy(tmp_path)) as session:
        question = session.sql(QUESTION)
        release = question.release(epsilon=1)
        shown = [session, session.policy, question, question.explain(1), release, session._engine]
        shown += [release.certificate, release.summary(), session._repr_html_(), vars(session)]
        text = "".join(f"{one!r}{one}" for one in shown)
    kept = (tmp_path / "visits.ledger").read_bytes().decode("latin1")
    printed = "".join(capsys.readouterr())
    for word in (PASSWORD, PASSWORD.split()[0], database.reader):
        assert word not in text + kept + printed


def test_without_psycopg_the_message_says_what_to_install(tmp_path, monkeypatch):
    """And nothing but naming the engine needs it; nor is it enough without its own library."""
    monkeypatch.setenv("TEST_DSN", "host=nowhere")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingLibraryError, match=r"psycopg.*pip install 'dither\[postgres\]'"):
        dither.open(policy(tmp_path))
    monkeypatch.setattr("dither._postgres.check_library", lambda *_: None)
    with pytest.raises(PolicyError, match=r"libpq.*pip install 'dither\[postgres\]'"):
        dither.open(policy(tmp_path))


@pytest.mark.parametrize(
    "text", ["host=db password=x", "postgresql://ann:x@db/h", "host=db PassWord = x"]
)
def test_a_password_in_a_policy_is_refused_without_a_word_of_it(tmp_path, text):
    """Before anything is connected to."""
    made = policy(tmp_path)
    made["tables"]["visits"]["source"]["postgres"] = text
    with pytest.raises(PolicyError, match=r"source.postgres holds a password.*env:NAME") as refused:
        dither.open(made)
    assert text not in str(refused.value)


def test_a_statement_that_takes_too_long_is_ended(database, tmp_path):
    """By the server, after ``engine.timeout``; after the charge that is the one message."""
    for timeout, message in ((0, "from 1 to"), ("1h", "whole seconds"), (True, "whole seconds")):
        with pytest.raises(PolicyError, match=f"engine.timeout must be {message}|{message}"):
            dither.open(policy(tmp_path, timeout=timeout))
    with dither.open(policy(tmp_path, timeout=1)) as session:
        with (
            pytest.raises(Failure, match=r"longer than engine.timeout allows"),
            session._engine._connection.transaction(),
        ):
            session._engine._connection.rows("SELECT pg_sleep(5)")
        with pytest.raises(EngineError, match="could not compute"):
            session._engine._execute("SELECT pg_sleep(5)")
        assert session.sql(QUESTION).release(epsilon=1)


def test_a_locked_table_is_told_before_the_charge(database, tmp_path, monkeypatch):
    """Somebody changes it and has not finished."""
    monkeypatch.setitem(SETTINGS, "lock_timeout", "100ms")
    with dither.open(policy(tmp_path)) as session:
        with database.server.connect(database.name, "owner") as owner, owner.transaction():
            owner.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(PolicyError, match="a table is locked by somebody who changes it"):
                session.sql(QUESTION).release(epsilon=1)
        assert not any(spent(session))


@contextlib.contextmanager
def locked(database: Database):
    """The table is held by somebody, so that whoever reads it waits."""
    with database.server.connect(database.name, "owner") as owner, owner.transaction():
        owner.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")
        yield


def test_a_question_that_takes_too_long_is_ended(database, tmp_path, monkeypatch):
    """Told before the charge while it is rehearsed; after it the one message. Then it works."""
    with dither.open(policy(tmp_path, timeout=1)) as session:
        with (
            locked(database),
            pytest.raises(PolicyError, match=r"longer than engine\.timeout allows"),
        ):
            session.sql(QUESTION).release(epsilon=1)
        assert not any(spent(session))
        engine, held = type(session._engine), contextlib.ExitStack()
        prepare = engine.prepare

        def prepared_and_locked(self, job, schema):
            prepare(self, job, schema)
            held.enter_context(locked(database))

        with held, monkeypatch.context() as patch:
            patch.setattr(engine, "prepare", prepared_and_locked)
            with pytest.raises(EngineError, match="could not compute the answer") as failed:
                session.sql(QUESTION).release(epsilon=1)
        assert PASSWORD not in told(failed.value)
        assert any(spent(session))
        assert session.sql(QUESTION).release(epsilon=2)


def test_a_server_process_that_ends_during_a_release(database, tmp_path, monkeypatch):
    """An administrator ends it, or it crashes: the one message, and the next question works."""
    waiting = (
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'reader'"
    )

    def ended() -> None:
        with database.server.connect("postgres") as admin:
            for _ in range(600):
                if found := admin.execute(waiting).fetchone():
                    admin.execute("SELECT pg_terminate_backend(%s)", found)
                    return
                time.sleep(0.05)

    with dither.open(policy(tmp_path)) as session:
        engine, held = type(session._engine), contextlib.ExitStack()
        prepare, ending = engine.prepare, threading.Thread(target=ended)

        def prepared_and_locked(self, job, schema):
            prepare(self, job, schema)
            held.enter_context(locked(database))
            ending.start()

        with held, monkeypatch.context() as patch:
            patch.setattr(engine, "prepare", prepared_and_locked)
            with pytest.raises(EngineError, match="could not compute the answer") as failed:
                session.sql(QUESTION).release(epsilon=1)
            ending.join()
        assert PASSWORD not in told(failed.value)
        assert any(spent(session))
        assert session.sql(QUESTION).release(epsilon=2)


def test_a_question_sees_one_state_of_the_data(database):
    """Rows that are added while it runs are not in it."""
    with opened(database, "visits") as engine, engine._connection.transaction():
        before = engine._execute('SELECT count(*) FROM "source_0"')
        database.execute("INSERT INTO visits SELECT * FROM visits")
        assert engine._execute('SELECT count(*) FROM "source_0"') == before
    with opened(database, "visits") as engine:
        assert engine._execute('SELECT count(*) FROM "source_0"') == [(8000,)]


def test_what_the_server_logs_holds_no_seed(database):
    """The text of a query names the seeds of its hash as parameters."""
    with opened(database, "visits") as engine:
        sql = engine.dialect.sql(engine.dialect.keyed_hash(None, []))
    assert sql == (
        "HASHINT8EXTENDED(HASH_RECORD_EXTENDED(ROW(), CAST($1 AS BIGINT)), CAST($2 AS BIGINT))"
    )


def test_ctrl_c_ends_the_statement_in_the_server(database):
    """And the engine can be asked again."""
    import _thread

    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%'"
    sleeping += " AND state = 'active' AND pid <> pg_backend_pid()"

    def interrupt() -> None:
        with database.server.connect("postgres") as admin:
            for _ in range(600):
                if admin.execute(sleeping).fetchone() == (1,):
                    break
                time.sleep(0.05)
            time.sleep(0.3)  # whoever asked is waiting for the answer by now
        _thread.interrupt_main()

    with opened(database, "visits") as engine:
        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            engine._execute("SELECT pg_sleep(60)")
        interrupting.join()
        assert engine._execute("SELECT 1") == [(1,)]
        with database.server.connect("postgres") as admin:
            for _ in range(100):
                if admin.execute(sleeping).fetchone() == (0,):
                    break
                time.sleep(0.1)
            assert admin.execute(sleeping).fetchone() == (0,)


def test_the_cli_and_the_draft_take_a_server(database, tmp_path, monkeypatch):
    """``dither init --engine postgres`` reads names and types."""
    from click.testing import CliRunner

    from dither.cli import main

    monkeypatch.chdir(tmp_path)
    asked = ["init", "env:TEST_DSN", "--engine", "postgres", "--table", "public.visits"]
    found = CliRunner().invoke(main, [*asked, "--unit", "pid"])
    assert found.exit_code == 0, found.output
    drafted = (tmp_path / "dither.toml").read_text()
    assert 'source = { postgres = "env:TEST_DSN", table = "public.visits" }' in drafted
    assert "age = {}   # integer" in drafted
    assert PASSWORD not in drafted + found.output


def test_two_servers_are_two_engines(database, postgres_server, tmp_path, monkeypatch):
    """A join of tables of two databases is refused; each is asked by itself."""
    other = postgres_server.database()
    other.execute(TABLE)
    monkeypatch.setenv("OTHER_DSN", other.reader)
    made = policy(tmp_path)
    made["tables"]["more"] = {
        **made["tables"]["visits"],
        "source": {"postgres": "env:OTHER_DSN", "table": "visits"},
        "max_join_rows": 1,
    }
    made["tables"]["visits"]["max_join_rows"] = 1
    made["units"] = {"person": {"columns": {"visits": "pid", "more": "pid"}}}
    with dither.open(made) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM more").release(epsilon=1)
        with pytest.raises(UnsupportedError, match=r"postgres .env:TEST_DSN. and table 'more'"):
            session.sql("SELECT COUNT(*) AS n FROM visits JOIN more ON visits.pid = more.pid")


def test_a_frame_has_no_place_in_a_server(database, tmp_path):
    """With this engine as the default, a frame is refused by name."""
    with pytest.raises(DitherError, match="a frame is not read by postgres"):
        dither.open(policy(tmp_path, name="postgres"), sources={"visits": pl.DataFrame()})


@pytest.mark.parametrize(
    "name",
    [
        'public."t a""b.😀"',
        'public.t a"b.😀',
        't a"b.😀',
        '"t a""b.😀"',
        '"s. x"."a.b"',
        "s. x.a.b",
    ],
)
def test_tables_of_any_name_are_found(postgres, name):
    """As the catalogue lists them or as SQL writes them, dots and quotes in them included."""
    postgres.execute(
        'CREATE TABLE "t a""b.😀" (u int)',
        'CREATE SCHEMA "s. x"',
        'CREATE TABLE "s. x"."a.b" (u int)',
        'GRANT SELECT ON "t a""b.😀" TO PUBLIC',
        'GRANT USAGE ON SCHEMA "s. x" TO PUBLIC',
        'GRANT SELECT ON "s. x"."a.b" TO PUBLIC',
    )
    with opened(postgres, name) as engine:
        assert list(engine.describe("t")) == ["u"]

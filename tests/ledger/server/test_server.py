"""A ledger on PostgreSQL: rights, guards, broken connections, and nothing secret in any message."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import dither as dt
from dither.accounting import BudgetFilter
from dither.errors import (
    ArgumentError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerVersionError,
    PolicyError,
)
from dither.ledger import Ledger
from dither.ledger._place import LedgerSchema, read_place
from dither.ledger.stores._store import FORMAT
from dither.privacy import Charge, Promise
from ledger.stores import administrator, new_schema, tamper
from postgres_server import PASSWORD, Database, Server

PATIENT = Promise("patient")
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
CAPS = BudgetFilter(Fraction(1), Fraction(0))


@pytest.fixture
def place(ledgers: Database, monkeypatch: pytest.MonkeyPatch) -> LedgerSchema:
    """Where there is no ledger yet."""
    monkeypatch.setenv("LEDGER_DSN", ledgers.owner)
    return new_schema()


def spend(ledger: Ledger, token: str = "z") -> int:
    """Charge a tenth to "visits"."""
    return ledger.charge(["visits"], TENTH, token=token, request="ab" * 32, note={}).entry


def quoted(book: Ledger) -> str:
    """The schema of a ledger, as SQL writes it."""
    assert isinstance(book.place, LedgerSchema)
    return '"' + book.place.schema.replace('"', '""') + '"'


def test_a_new_ledger_holds_its_version_and_identity(book: Ledger) -> None:
    """The first entry says format and id; every object of it finds the same."""
    assert book.entry(0).note == {"format": FORMAT, "ledger": book.id}
    with Ledger.open(book.place, create=False) as again:
        assert (again.id, again.entries()) == (book.id, book.entries())
    assert str(book.place).startswith("env:LEDGER_DSN#ledger ")
    with pytest.raises(LedgerError, match="on a server, and not in a file"):
        _ = book.path


def test_owners_are_found_in_an_index_of_their_entries_alone(book: Ledger) -> None:
    """A server is told so by its own store: files know nothing of servers."""
    with administrator(book) as server:
        found = server.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND indexname = 'owners'",
            [book.place.schema],  # type: ignore[union-attr]
        ).fetchall()
    assert [line.partition(" WHERE ")[2] for (line,) in found] == ["(kind = 'owner'::text)"]


def test_a_ledger_of_before_is_given_the_index_of_its_requests(book: Ledger) -> None:
    """With its next charge; where its owner may make nothing there any more, it charges without."""
    schema = book.place.schema  # type: ignore[union-attr]
    look = "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND indexname = 'requests'"
    book.ensure_account("visits", CAPS, PATIENT)
    for number, may in enumerate((True, False, True)):
        with administrator(book) as server:
            server.execute(f"DROP INDEX {quoted(book)}.requests")
            owner = server.execute(
                "SELECT quote_ident(nspowner::regrole::text) FROM pg_namespace WHERE nspname = %s",
                [schema],
            ).fetchone()[0]  # type: ignore[index]
            change = (
                "GRANT CREATE ON SCHEMA {} TO {}" if may else "REVOKE CREATE ON SCHEMA {} FROM {}"
            )
            server.execute(change.format(quoted(book), owner))
        with Ledger.open(book.place, create=False) as again:
            spend(again, str(number))
            assert again.verify().ok
            assert len(again.answers_to("ab" * 32)) == 0
        with administrator(book) as server:
            found = server.execute(look, [schema]).fetchall()
            if not may:
                server.execute(f"CREATE INDEX requests ON {quoted(book)}.entries (number)")
        ends = [line.partition(" WHERE ")[2] for (line,) in found]
        assert ends == (["(request IS NOT NULL)"] if may else [])


def test_a_database_holds_many_ledgers(ledgers: Database, book: Ledger) -> None:
    """Each in its schema, whatever it is called, with entries of its own."""
    names = ['a "b" c', "Ü-ß", "x%s%%(y)s", "drop table;--", "dither", "select"]
    opened = [Ledger.open({"postgres": "env:LEDGER_DSN", "schema": name}) for name in names]
    ids = [ledger.id for ledger in opened]
    assert len({book.id, *ids}) == len(names) + 1
    for ledger in opened:
        ledger.ensure_account("visits", CAPS, PATIENT)
        spend(ledger)
        assert ledger.verify().ok
        assert len(ledger.entries()) == 3
        ledger.close()
    with Ledger.open("env:LEDGER_DSN", create=False) as ledger:
        assert ledger.id == ids[names.index("dither")]


def test_looking_never_creates(ledgers: Database, place: LedgerSchema) -> None:
    """No ledger, and none is made."""
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"there is no ledger env:LEDGER_DSN#ledger"):
            Ledger.open(place, create=False)


def test_creators_at_once_share_one_ledger(place: LedgerSchema) -> None:
    """Eight threads with objects of their own: one identity, one first entry."""
    found: list[str] = []

    def make() -> None:
        with Ledger.open(place) as ledger:
            found.append(ledger.id)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    with Ledger.open(place) as ledger:
        assert [entry.kind for entry in ledger.entries()] == ["genesis"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET note = 'x'",
        "UPDATE entries SET note = 'x' WHERE false",
        "DELETE FROM entries WHERE number = 8",
        "TRUNCATE entries CASCADE",
        "TRUNCATE touches",
        "TRUNCATE head",
        "INSERT INTO entries SELECT * FROM entries WHERE number = 3",
        "INSERT INTO entries SELECT * FROM entries WHERE number = 3 "
        "ON CONFLICT (number) DO UPDATE SET note = 'x'",
        "INSERT INTO entries (number, time, kind, totals, tables, note, previous, hash) "
        "VALUES (9, '', '', '', '', '', repeat('0', 64), '')",
        "UPDATE touches SET account = 'x'",
        "DELETE FROM touches",
        "INSERT INTO touches VALUES ('x', 3, true)",
        "UPDATE head SET hash = 'x'",
        "UPDATE head SET count = 0",
        "UPDATE head SET count = count + 1",
        "DELETE FROM head",
        "INSERT INTO head VALUES (2, 0, 'x')",
        "UPDATE ledger SET format = 1",
        "INSERT INTO ledger VALUES (3)",
    ],
)
def test_the_server_itself_refuses_what_is_no_append(full: Ledger, statement: str) -> None:
    """Even to the administrator, as long as nobody takes the triggers down."""
    import psycopg

    with administrator(full) as raw, pytest.raises(psycopg.Error, match="append-only"):
        raw.execute(statement)
    assert full.verify().ok


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("ALTER TABLE entries DISABLE TRIGGER ALL", "triggers"),
        ("DROP TRIGGER guard_0 ON entries", "triggers"),
        (
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql "
            "SET search_path = pg_catalog AS 'BEGIN RETURN OLD; END'",
            "triggers",
        ),
        ("ALTER FUNCTION next_entry() RESET search_path", "triggers"),
        ("ALTER TABLE entries DROP CONSTRAINT entries_token_key", "keys"),
        ("ALTER TABLE entries ENABLE ROW LEVEL SECURITY", "put over"),
        ("CREATE RULE hide AS ON INSERT TO entries DO INSTEAD NOTHING", "put over"),
        ("CREATE TABLE more () INHERITS (entries)", "put over"),
        ("ALTER TABLE touches SET UNLOGGED", "put over"),
    ],
)
def test_what_was_done_to_the_guards_is_found(full: Ledger, statement: str, problem: str) -> None:
    """The chain is whole, and still `verify` says that somebody took down what guards it."""
    assert full.verify().ok
    with administrator(full) as raw:
        raw.execute(statement)
    found = full.verify()
    assert (found.ok, found.bad) == (False, None)
    assert problem in str(found.problem)


@pytest.mark.parametrize(
    ("statement", "error", "said"),
    [
        ("DROP TABLE touches", LedgerCorruptError, "some tables"),
        ("ALTER TABLE entries DROP COLUMN note", LedgerCorruptError, "damaged or no ledger"),
        ("DROP SCHEMA {} CASCADE", LedgerError, "there is no ledger"),
        ("ALTER TABLE ledger DISABLE TRIGGER ALL; DELETE FROM ledger", LedgerError, "no ledger"),
    ],
)
def test_what_is_no_ledger_is_refused(
    full: Ledger, statement: str, error: type[LedgerError], said: str
) -> None:
    """Tables and columns gone: every call says so, and a new object does not open."""
    with administrator(full) as raw:
        raw.execute(statement.replace("{}", quoted(full)))
    for call in (lambda: spend(full), lambda: full.balance("visits"), lambda: full.entries("ann")):
        with pytest.raises(LedgerCorruptError):
            call()
    with pytest.raises(error, match=said):
        Ledger.open(full.place, create=False)


def test_another_format_is_refused(full: Ledger) -> None:
    """A newer one says to upgrade, an older one why nothing can be added."""
    tamper(full, ("UPDATE ledger SET format = ?", (FORMAT + 1,)))
    with pytest.raises(LedgerVersionError, match=f"format {FORMAT + 1}.*upgrade dither"):
        Ledger.open(full.place)
    tamper(full, "UPDATE ledger SET format = 1")
    with pytest.raises(LedgerVersionError, match="begin a new ledger"):
        spend(full)


def test_a_held_ledger_is_reported_as_locked(book: Ledger) -> None:
    """Another session holds the head: readers go on, a writer waits for the timeout and says so."""
    with Ledger.open(book.place, timeout=0.2) as quick, administrator(book) as raw:
        raw.execute("BEGIN")
        raw.execute("SELECT FROM head FOR UPDATE")
        with pytest.raises(LedgerLockedError, match="nothing was written"):
            spend(quick)
        assert quick.balance("visits").spent == Charge(promise=PATIENT)
        raw.execute("ROLLBACK")
        spend(quick)


def test_a_commit_is_synchronous_whatever_is_set(book: Ledger, ledgers: Database) -> None:
    """The server, the database and the role say off; the transaction of a charge says on."""
    ledgers.execute(f"ALTER DATABASE {ledgers.name} SET synchronous_commit = off")
    try:
        with Ledger.open(book.place) as again, again._store.write() as connection:
            level = connection.exec_driver_sql("SHOW synchronous_commit").scalar_one()
            assert level == "on"
        ledgers.execute(f"ALTER DATABASE {ledgers.name} SET synchronous_commit = remote_apply")
        with Ledger.open(book.place) as again, again._store.write() as connection:
            level = connection.exec_driver_sql("SHOW synchronous_commit").scalar_one()
            assert level == "remote_apply"
    finally:
        ledgers.execute(f"ALTER DATABASE {ledgers.name} RESET synchronous_commit")


def test_a_role_whose_transactions_only_read_can_charge(book: Ledger, ledgers: Database) -> None:
    """Defaults of isolation and of writing do not reach the ledger's transactions."""
    for setting, value in (("read_only", "on"), ("isolation", "serializable")):
        name = f"default_transaction_{setting}"
        with ledgers.server.connect("postgres") as raw:
            raw.execute(f"ALTER DATABASE {ledgers.name} SET {name} = {value}")
        try:
            with Ledger.open(book.place) as again:
                spend(again, name)
                with again._store.write() as connection:
                    shown = connection.exec_driver_sql("SHOW transaction_isolation").scalar_one()
                    assert shown == "read committed"
        finally:
            with ledgers.server.connect("postgres") as raw:
                raw.execute(f"ALTER DATABASE {ledgers.name} RESET {name}")


def test_text_that_the_server_cannot_hold_is_refused(book: Ledger) -> None:
    """A NUL in an answer: an error of ours, and the charge stays without an answer."""
    entry = spend(book)
    with pytest.raises(LedgerError, match="cannot hold this text"):
        book.store_answer(entry, "a\x00b")
    book.store_answer(entry, "naïve ☃ \U0001f600 '\"\\ %s")
    assert book.verify().ok


def test_a_connection_that_was_cut_in_between_is_made_anew(book: Ledger) -> None:
    """The server ends every session; the next call does not notice."""
    spend(book, "a")
    with administrator(book) as raw:
        raw.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE usename = 'owner' AND pid <> pg_backend_pid()"
        )
    spend(book, "b")
    assert book.balance("visits").spent.epsilon == Fraction(1, 5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_process_uses_a_connection_of_its_own(book: Ledger) -> None:
    """Parent and child charge through one object after a fork, and neither harms the other."""
    spend(book, "before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            spend(book, "child")
            code = 0
        finally:
            os._exit(code)
    spend(book, "parent")
    assert os.waitpid(child, 0)[1] == 0
    spend(book, "after")
    assert {entry.token for entry in book.entries()} >= {"before", "child", "parent", "after"}
    assert book.verify().ok


def _dsn(change: Callable[[str], str]) -> Callable[[Database], str]:
    return lambda database: change(database.owner)


UNREACHABLE = {
    "no server": (_dsn(lambda d: d.partition("@")[0] + "@127.0.0.1:1/x"), "nothing answers there"),
    "no host": (_dsn(lambda d: d.replace("127.0.0.1", "no.invalid")), "nothing answers there"),
    "wrong password": (_dsn(lambda d: d.replace("owner:", "owner:x")), "role or its password"),
    "no password": (lambda b: f"host=127.0.0.1 port={b.server.port} user=owner", "its password"),
    "no role": (_dsn(lambda d: d.replace("owner:", "nobody:")), "role or its password"),
    "no database": (_dsn(lambda d: d + "x"), "no such database"),
    "no TLS": (_dsn(lambda d: d + "?sslmode=require"), "no secure connection"),
    "no service": (lambda _: "service=nowhere", "names a service"),
    "not a string": (lambda _: f"{PASSWORD} x", "is not a connection string"),
    "an unfinished quote": (
        lambda _: f"host=h password='{PASSWORD[:6]}",
        "not a connection string",
    ),
    "an odd option": (lambda _: "host=h swordfish=3", "is not a connection string"),
    "an odd escape": (lambda _: "postgresql://a:swordfish%zz@h/d", "is not a connection string"),
}


@pytest.mark.parametrize(("make", "said"), UNREACHABLE.values(), ids=UNREACHABLE)
def test_why_there_is_no_connection_and_nothing_of_the_secret(
    ledgers: Database,
    place: LedgerSchema,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Database], str],
    said: str,
) -> None:
    """One sentence with the fix; neither it nor its traceback quotes the connection string."""
    dsn = make(ledgers)
    monkeypatch.setenv("LEDGER_DSN", dsn)
    with pytest.raises(LedgerError, match=said) as told:
        Ledger.open(place, timeout=3)
    text = "".join(traceback.format_exception(told.value))
    for secret in (PASSWORD, PASSWORD[:6], "swordfish", "nowhere", dsn, f":{ledgers.server.port}"):
        assert secret not in text


def test_a_variable_that_is_not_set_is_named(
    place: LedgerSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name."""
    for value in (None, "", "  "):
        if value is None:
            monkeypatch.delenv("LEDGER_DSN")
        else:
            monkeypatch.setenv("LEDGER_DSN", value)
        with pytest.raises(PolicyError, match="no variable 'LEDGER_DSN'"):
            Ledger.open(place)


@pytest.mark.parametrize(
    "given",
    [
        "postgresql://ann:swordfish@host/db",
        Path("postgres://ann:swordfish@host/db"),
        "host=db password=swordfish",
        {"postgres": "postgresql://ann:swordfish@host/db"},
        {"postgres": "dbname=x password=swordfish"},
        {"postgres": None},
        {"postgres": "env:"},
        {"postgres": "env:A B swordfish"},
        {"postgres": "env:A", "schema": "pg_catalog"},
        {"postgres": "env:A", "schema": "x" * 64},
        {"postgres": "env:A", "schema": "ü" * 32},
        {"postgres": "env:A", "schema": "a\nb"},
        {"postgres": "env:A", "schema": 3},
        {"postgres": "env:A", "table": "x"},
        {},
        "",
        3,
    ],
    ids=repr,
)
def test_a_connection_string_has_no_place_in_a_policy(given: object) -> None:
    """It is refused, and what says so quotes none of it."""
    with pytest.raises(ArgumentError) as told:
        read_place(given)
    assert "swordfish" not in "".join(traceback.format_exception(told.value))


def test_a_server_that_does_not_sync_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """fsync = off: nothing is begun there; switched off later, nothing is charged any more."""
    with Server() as server:
        database = server.database()
        monkeypatch.setenv("LEDGER_DSN", database.owner)
        with Ledger.open("env:LEDGER_DSN") as book, server.connect("postgres") as raw:
            book.ensure_account("visits", CAPS, PATIENT)
            spend(book, "a")
            raw.execute("ALTER SYSTEM SET fsync = off")
            raw.execute("SELECT pg_reload_conf()")
            for _ in range(1000):
                if raw.execute("SHOW fsync").fetchone() == ("off",):
                    break
            with pytest.raises(LedgerError, match=r"fsync = off.*nothing was charged"):
                spend(book, "b")
            assert book.balance("visits").spent.epsilon == Fraction(1, 10)
            with pytest.raises(LedgerError, match="fsync = off"):
                Ledger.open("env:LEDGER_DSN#other")


def test_a_standby_can_be_read_and_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names it by mistake reads the ledger there, and is told to name the primary."""
    with Server() as server:
        database = server.database()
        monkeypatch.setenv("LEDGER_DSN", database.owner)
        with Ledger.open("env:LEDGER_DSN") as book:
            book.ensure_account("visits", CAPS, PATIENT)
            spend(book)
        with server.standby() as port:
            dsn = database.owner.replace(f":{server.port}/", f":{port}/")
            monkeypatch.setenv("STANDBY_DSN", dsn)
            with Ledger.open("env:STANDBY_DSN") as copy:
                assert copy.balance("visits").spent.epsilon == Fraction(1, 10)
                assert copy.verify().ok
                with pytest.raises(LedgerError, match=r"only reads.*name the primary"):
                    spend(copy, "other")
            with pytest.raises(LedgerError, match="only reads"):
                Ledger.open("env:STANDBY_DSN#new")


def test_a_database_in_another_encoding_is_refused(
    ledgers: Database, place: LedgerSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not hold every answer."""
    with ledgers.server.connect("postgres") as raw:
        raw.execute(
            "CREATE DATABASE latin OWNER owner ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0 "
            + ("LOCALE_PROVIDER libc" if raw.info.server_version >= 150000 else "")
        )
    monkeypatch.setenv("LEDGER_DSN", ledgers.server.dsn("latin"))
    with pytest.raises(LedgerError, match="not in UTF8"):
        Ledger.open(place)


def test_a_session_charges_a_ledger_on_a_server(
    place: LedgerSchema, tmp_path: Path, ledgers: Database
) -> None:
    """From the policy to a certificate that verifies, and does not say where the ledger is."""
    import polars as pl

    pl.DataFrame({"age": [30, 40, 50]}).write_parquet(tmp_path / "people.parquet")
    (tmp_path / "dither.toml").write_text(
        "[budget]\nepsilon = 1\n"
        f'ledger = {{ postgres = "{place.dsn}", schema = "{place.schema}" }}\n'
        '[tables.people]\nsource = "people.parquet"\n'
        "[tables.people.columns]\nage = { bounds = [0, 110] }\n"
    )
    with dt.open(tmp_path / "dither.toml") as session:
        release = session.sql("SELECT AVG(age) AS age FROM people").release(0.5, token="t")
        assert session.ledger.place == place
        assert dt.verify(release.certificate, session.ledger).ok
    with dt.open(tmp_path / "dither.toml") as session:
        again = session.sql("SELECT AVG(age) AS age FROM people").release(0.5, token="t")
        assert again.frame.equals(release.frame)
        assert [balance.spent.epsilon for balance in session.balance()] == [Fraction(1, 2)]
        assert PASSWORD not in repr(session) + repr(session.policy)
    release.certificate.save(tmp_path / "cert.json")
    assert dt.verify(tmp_path / "cert.json", {"postgres": place.dsn, "schema": place.schema}).ok
    text = (tmp_path / "cert.json").read_text()
    assert "LEDGER_DSN" not in text
    assert PASSWORD not in text

"""Roles that ask: they charge through functions that the owner of the tables gave them, as others
do, and cannot do anything else."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import dither
from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, OTHERS, BlockSet
from dither.cli import main
from dither.errors import (
    BudgetError,
    LedgerError,
    LedgerLockedError,
    PromiseError,
    TokenError,
)
from dither.ledger import Ledger, _witness
from dither.ledger._block_budget import BlockBudget
from dither.ledger._entries import UNIT, canonical
from dither.ledger._place import LedgerSchema
from dither.ledger._states import grain
from dither.ledger.quotas._caps import QuestionQuota, WindowQuota
from dither.privacy import Charge, Promise
from ledger.earlier import earlier
from ledger.server.asking import (
    ANN,
    BEN,
    CHARGE,
    DATASET,
    LOOSE,
    ONE,
    PATIENT,
    REQUEST,
    ROW,
    TENTH,
    arguments,
    charged,
    let,
    opened_by,
    quoted,
    raw,
)
from ledger.stores import administrator, new_schema, rows
from postgres_server import PASSWORD, Database, literal


def spend(book: Ledger, token: str = "t", charge: Charge = TENTH, **more: Any) -> int:
    """Charge the data set and ann."""
    return book.charge(
        [DATASET, ANN], charge, token=token, request=REQUEST, note={"query": "q"}, **more
    ).entry


def test_a_role_that_asks_does_what_a_question_needs(asked: Ledger, owned: Ledger) -> None:
    """Charge, answer, replay, balance, entries and verify; its name stands in the note."""
    read = {"visits": "column patient"}
    before = spend(asked, tables=read, sources={"visits": {"file:///v": "1"}})
    asked.store_answer(before, "naïve ☃ \U0001f600 '\"\\\n")
    again = asked.charge([DATASET, ANN], TENTH, token="t", request=REQUEST, note={})
    assert (again.replayed, again.answer) == (True, "naïve ☃ \U0001f600 '\"\\\n")
    assert asked.balance(ANN).spent.epsilon == Fraction(1, 10)
    assert asked.charged("t") == owned.charged("t")
    assert asked.entry(before).note == {"query": "q", "role": "ann"}
    for book in (asked, owned):
        assert book.verify().describe().endswith(asked.entries()[-1].hash[:16])
        assert book.verify().ok


def bound(**more: Any) -> dict[str, Any]:
    """A bound table of patients."""
    return {"by": "column patient", "promise": PATIENT.to_dict(), **more}


HUGE = 10**400
WRONG: Mapping[str, tuple[dict[str, Any], str]] = {
    # Charges of nothing.
    "zero": ({"epsilon": "0", "rho": "0"}, "DTH07"),
    "no epsilon": ({"epsilon": "0"}, "DTH07"),
    "no rho": ({"rho": "0"}, "DTH07"),
    "a negative epsilon": ({"epsilon": "-1"}, "DTH07"),
    "a negative delta": ({"delta": "-1"}, "DTH07"),
    "a fraction": ({"epsilon": "0.5"}, "DTH07"),
    "an exponent": ({"epsilon": "1e1"}, "DTH07"),
    "NaN": ({"epsilon": "NaN"}, "DTH07"),
    "infinity": ({"rho": "Infinity"}, "DTH07"),
    "minus infinity": ({"delta": "-Infinity"}, "DTH07"),
    "an infinite delta": ({"delta": "infinite"}, "DTH07"),
    "leading zeros": ({"epsilon": "007"}, "DTH07"),
    "a blank": ({"epsilon": "1 "}, "DTH07"),
    "a line's end": ({"epsilon": "1\n"}, "DTH07"),
    "other digits": ({"epsilon": "\u0661"}, "DTH07"),
    "no number": ({"epsilon": None}, "DTH07"),
    "no rho at all": ({"rho": None}, "DTH07"),
    "too many digits": ({"epsilon": "1" * 2000}, "DTH07"),
    # More than there is.
    "too much": ({"epsilon": str(2 * 10**18), "rho": str(2 * 10**36)}, "DTH02"),
    "far too much": ({"epsilon": str(HUGE), "rho": str(HUGE)}, "DTH02"),
    "a delta too much": ({"delta": str(10**18), "rho_delta": str(10**18)}, "DTH02"),
    "all infinite": ({"epsilon": "infinite", "rho": "infinite"}, "DTH02"),
    # Accounts.
    "no account": ({"accounts": []}, "DTH07"),
    "accounts of nothing": ({"accounts": None}, "DTH07"),
    "a null account": ({"accounts": [DATASET, ANN, None]}, "DTH07"),
    "an account twice": ({"accounts": [DATASET, ANN, ANN]}, "DTH07"),
    "accounts in a square": ({"accounts": [[DATASET, ANN], [ANN, DATASET]]}, "DTH07"),
    "a quota alone": ({"accounts": [ANN]}, "DTH06"),
    "another unit's account": ({"accounts": ["dataset:row of visits", ANN]}, "DTH06"),
    "two units": ({"accounts": [DATASET, "dataset:row of visits", ANN]}, "DTH06"),
    "a colleague's quota": ({"accounts": [DATASET, BEN]}, "DTH06"),
    "a colleague's as well": ({"accounts": [DATASET, ANN, BEN]}, "DTH06"),
    "no quota": ({"accounts": [DATASET]}, "DTH06"),
    "an account of one's own": ({"accounts": [DATASET, ANN, "mine"]}, "DTH06"),
    "a new quota": ({"accounts": [DATASET, ANN, "purpose:x:patient"]}, "DTH05"),
    # Promises.
    "another unit": (
        {"promise": canonical(ROW.to_dict()), "accounts": ["dataset:row of visits", "analyst:ann"]},
        "DTH06",
    ),
    "a unit that there is not": (
        {"promise": canonical(Promise("x").to_dict()), "accounts": ["dataset:x"]},
        "DTH05",
    ),
    "other neighbours": ({"promise": '{"neighbours":"replace","unit":"patient"}'}, "DTH03"),
    "a promise in other words": (
        {"promise": '{"unit":"patient","neighbours":"add-remove"}'},
        "DTH07",
    ),
    "half a promise": ({"promise": '{"unit":"patient"}'}, "DTH03"),
    "a promise without unit": ({"promise": '{"neighbours":"add-remove"}'}, "DTH06"),
    "no promise": ({"promise": None}, "DTH07"),
    "two units in one promise": (
        {"promise": '{"neighbours":"add-remove","unit":"row of visits","unit":"patient"}'},
        "DTH07",
    ),
    # Notes.
    "another's name": ({"note": '{"query":"q","role":"ben"}'}, "DTH06"),
    "no name": ({"note": '{"query":"q"}'}, "DTH06"),
    "two names": ({"note": '{"role":"ben","role":"ann"}'}, "DTH07"),
    "an escaped name": ({"note": '{"role":"\\u0061nn"}'}, "DTH07"),
    "a float": ({"note": '{"role":"ann","x":1.5}'}, "DTH07"),
    "a number that is no number": ({"note": '{"role":"ann","x":NaN}'}, "22P02"),
    "a number too long": ({"note": '{"role":"ann","x":' + "9" * 5000 + "}"}, "DTH07"),
    "an exponent in a note": ({"note": '{"role":"ann","x":1e5}'}, "DTH07"),
    "minus zero": ({"note": '{"role":"ann","x":-0}'}, "DTH07"),
    "letters that are not ASCII": ({"note": '{"role":"ann","x":"\u00fc"}'}, "DTH07"),
    "half a letter": ({"note": '{"role":"ann","x":"\\ud800"}'}, "22P02"),
    "an end of text": ({"note": '{"role":"ann","x":"\\u0000"}'}, "22P05"),
    "too deep": ({"note": '{"role":"ann","x":' + "[" * 150 + "]" * 150 + "}"}, "DTH07"),
    "deeper than the server's stack": (
        {"note": '{"role":"ann","x":' + "[" * 10**6 + "]" * 10**6 + "}"},
        "54001",
    ),
    "blanks": ({"note": '{"query": "q", "role": "ann"}'}, "DTH07"),
    "a list": ({"note": '["role"]'}, "DTH07"),
    "no JSON": ({"note": "role"}, "22P02"),
    # Tokens and requests.
    "no token": ({"token": None}, "DTH07"),
    "an empty token": ({"token": ""}, "DTH07"),
    "a token of blanks": ({"token": "  "}, "DTH07"),
    "a long token": ({"token": "x" * 201}, "DTH07"),
    "a token that is no line": ({"token": "a\nb"}, "DTH07"),
    "a used token": ({"token": "used"}, "DTH04"),
    "no request": ({"request": None}, "DTH07"),
    "a request that is no digest": ({"request": "AB" * 32}, "DTH07"),
    # Tables.
    "a table forgotten": ({"tables": "{}"}, "DTH03"),
    "a table of another rule": ({"tables": canonical({"visits": bound(by="each row")})}, "DTH03"),
    "a table of another promise": (
        {"tables": canonical({"visits": {"by": "column patient", "promise": ROW.to_dict()}})},
        "DTH03",
    ),
    "a source forgotten": ({"tables": canonical({"visits": bound()})}, "DTH03"),
    "a source forgotten as one of many": (
        {"tables": canonical({"visits": bound(sources={"others": "", "file:///w": "2"})})},
        "DTH03",
    ),
    "another's rows": (
        {
            "tables": canonical(
                {
                    "folk": bound(by="column other", sources={"file:///v": "1"}),
                    "visits": bound(sources={"file:///v": "1"}),
                }
            )
        },
        "DTH03",
    ),
    "a table with more": (
        {"tables": canonical({"x": bound(more="1"), "visits": bound(sources={"file:///v": "1"})})},
        "DTH07",
    ),
    "a source that is no text": (
        {
            "tables": canonical(
                {"x": bound(sources={"a": 1}), "visits": bound(sources={"file:///v": "1"})}
            )
        },
        "DTH07",
    ),
    "a new table of another promise": (
        {
            "tables": canonical(
                {
                    "visits": bound(sources={"file:///v": "1"}),
                    "x": {"by": "each row", "promise": ROW.to_dict()},
                }
            )
        },
        "DTH03",
    ),
    # Blocks.
    "blocks where there are none": ({"blocks": '{"named":[],"ranges":[[1,2]]}'}, "DTH07"),
}
TABLES = canonical({"visits": bound(sources={"file:///v": "1"})})


@pytest.fixture
def hostile(owned: Ledger) -> Iterator[Any]:
    """A session of ann's, after an honest charge."""
    with opened_by(owned, "ann") as book:
        read = {"visits": "column patient"}
        spend(book, "used", tables=read, sources={"visits": {"file:///v": "1"}})
    session = raw(owned, "ann")
    yield session
    session.close()


def test_what_is_said_wrongly_to_the_server_is_refused(hostile: Any, owned: Ledger) -> None:
    """Each with the code of its kind; nothing is written, and the chain holds. Then one passes."""
    import psycopg

    before = rows(owned)
    given = {"tables": TABLES}
    told = {}
    for name, (changes, _) in WRONG.items():
        with pytest.raises(psycopg.Error) as refused:
            charged(hostile, owned, **(given | changes))
        told[name] = refused.value.sqlstate
    assert told == {name: state for name, (_, state) in WRONG.items()}
    assert rows(owned) == before
    assert owned.verify().ok
    assert charged(hostile, owned, tables=TABLES) == owned.entries()[-1].number
    assert owned.verify().ok


DENIED = (
    "INSERT INTO {s}.entries SELECT * FROM {s}.entries WHERE number = 1",
    "INSERT INTO {s}.entries (number, time, kind, totals, tables, note, previous, hash) "
    "SELECT count, '', 'amend', '{{}}', '{{}}', '{{}}', hash, '' FROM {s}.head",
    "UPDATE {s}.entries SET note = ''",
    "DELETE FROM {s}.entries",
    "TRUNCATE {s}.entries CASCADE",
    "COPY {s}.entries FROM STDIN",
    "INSERT INTO {s}.touches VALUES ('x', 1, true)",
    "UPDATE {s}.head SET count = 1",
    "UPDATE {s}.states SET text = ''",
    "INSERT INTO {s}.states VALUES ('x', 1, '')",
    "INSERT INTO {s}.caps VALUES ('1', '0', 9, 9, 9, 9)",
    "UPDATE {s}.caps SET most_epsilon = most_epsilon * 100",
    "INSERT INTO {s}.askers VALUES ('ann', '*')",
    "UPDATE {s}.askers SET quota = 'analyst:ben' WHERE role = 'ann'",
    "SELECT FROM {s}.head FOR UPDATE",
    "SELECT FROM {s}.head FOR KEY SHARE",
    "DO $$ BEGIN LOCK TABLE {s}.head IN ROW EXCLUSIVE MODE; END $$",
    "SELECT {s}.append(e) FROM {s}.entries AS e WHERE number = 1",
    "SELECT {s}.check_caller(ARRAY['x'], 'x')",
    "SELECT {s}.blocks_of('x')",
    "SELECT {s}.spread('{{}}', '{{}}', 1, 1, 1, 1)",
    "CREATE OR REPLACE FUNCTION {s}.said(value text) RETURNS text LANGUAGE sql AS 'SELECT value'",
    "CREATE FUNCTION {s}.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "ALTER FUNCTION {s}.locked() RESET search_path",
    "ALTER FUNCTION {s}.locked() SECURITY INVOKER",
    "DROP FUNCTION {s}.locked()",
    "GRANT EXECUTE ON FUNCTION {s}.append TO ann",
    "CREATE TRIGGER mine BEFORE INSERT ON {s}.entries EXECUTE FUNCTION {s}.refuse()",
    "CREATE RULE mine AS ON INSERT TO {s}.entries DO INSTEAD NOTHING",
    "CREATE POLICY mine ON {s}.entries USING (true)",
    "CREATE EVENT TRIGGER mine ON ddl_command_start EXECUTE FUNCTION {s}.refuse()",
    "CREATE TABLE pg_temp.mine () INHERITS ({s}.entries)",
    "CREATE TABLE pg_temp.mine (n bigint REFERENCES {s}.entries (number))",
    "CREATE INDEX ON {s}.entries ((lower(note)))",
    "ALTER TABLE {s}.entries DISABLE TRIGGER ALL",
    "ALTER TABLE {s}.entries OWNER TO ann",
    "DROP SCHEMA {s} CASCADE",
    "SET ROLE owner",
    "SET ROLE ben",
    "SET SESSION AUTHORIZATION ben",
    "SET SESSION AUTHORIZATION owner",
    "SET session_replication_role = replica",
    "ALTER ROLE ann SUPERUSER",
    "CREATE CAST (text AS integer) WITH INOUT AS IMPLICIT",
)


def test_a_role_that_asks_may_do_nothing_else(hostile: Any, owned: Ledger) -> None:
    """The server refuses it each by itself, whatever a session of its own says."""
    import psycopg

    before, s = rows(owned), quoted(owned)
    told = {}
    for statement in DENIED:
        with pytest.raises(psycopg.Error) as refused:
            hostile.execute(statement.format(s=s))
        told[statement] = refused.value.sqlstate
    # Insufficient privilege; and a temporary table refers to no other.
    assert {name for name, state in told.items() if state not in ("42501", "42P16")} == set(), told
    assert rows(owned) == before
    assert owned.verify().ok


def test_rights_that_were_granted_before_write_nothing_any_more(owned: Ledger) -> None:
    """A role that kept what earlier versions granted: a trigger refuses its entries; and what is
    printed for it takes the rights away."""
    import psycopg

    s = quoted(owned)
    with administrator(owned) as admin, raw(owned, "ann") as session:
        admin.execute(f"GRANT INSERT ON {s}.entries, {s}.touches TO ann")
        admin.execute(f"GRANT UPDATE ON {s}.head TO ann")
        with pytest.raises(psycopg.Error, match="append-only"):
            session.execute(
                f"INSERT INTO {s}.entries (number, time, kind, totals, tables, note, previous, "
                f"hash) SELECT count, '', 'amend', '{{}}', '{{}}', '{{}}', hash, '' FROM {s}.head"
            )
        with pytest.raises(psycopg.Error, match="append-only"):
            session.execute(f"UPDATE {s}.head SET count = count + 1")
        with pytest.raises(psycopg.Error):
            session.execute(f"INSERT INTO {s}.touches SELECT 'x', count, true FROM {s}.head")
    let(owned, "ann", "analyst:ann")
    with raw(owned, "ann") as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute(f"UPDATE {s}.head SET count = count + 1")
    assert owned.verify().ok


SHADOWS = (
    "SET search_path = pg_temp, evil, pg_catalog",
    "CREATE SCHEMA evil",
    *(
        f"CREATE FUNCTION {where}.{name} RETURNS {kind} LANGUAGE sql AS $$ SELECT {body} $$"
        for where in ("evil", "pg_temp")
        for name, kind, body in [
            ("sha256(bytea)", "bytea", "'x'::bytea"),
            ("clock_timestamp()", "timestamptz", "'2001-01-01'::timestamptz"),
            ("encode(bytea, text)", "text", "'x'::text"),
            ("jsonb_typeof(jsonb)", "text", "'object'::text"),
            ("length(text)", "int", "1"),
            ("more(numeric, numeric)", "boolean", "true"),
            ("same(text, text)", "boolean", "true"),
            ("plus(numeric, numeric)", "numeric", "0::numeric"),
        ]
    ),
    *(
        f"CREATE OPERATOR {where}.{sign} (FUNCTION = {where}.{name}, LEFTARG = {kind}, "
        f"RIGHTARG = {kind})"
        for where in ("evil", "pg_temp")
        for sign, name, kind in [("<=", "more", "numeric"), ("=", "same", "text")]
    ),
    "CREATE OPERATOR evil.+ (FUNCTION = evil.plus, LEFTARG = numeric, RIGHTARG = numeric)",
    *(f"CREATE TEMP TABLE {name} (x int)" for name in ("jsonb", "text", "bytea", "numeric_")),
    "CREATE TEMP TABLE timestamptz (x int)",
    "CREATE TEMP TABLE entries (LIKE {s}.entries)",
    "CREATE TEMP TABLE head AS SELECT * FROM {s}.head",
    "CREATE TEMP TABLE caps AS SELECT '1' AS epsilon, '0' AS delta, 9e99 AS most_epsilon",
    "CREATE TEMP TABLE pg_class (oid oid, relowner oid)",
)
SETTINGS = (
    "standard_conforming_strings = off",
    "array_nulls = off",
    "transform_null_equals = on",
    "DateStyle = 'German, DMY'",
    "TimeZone = 'Pacific/Apia'",
    "IntervalStyle = 'sql_standard'",
    "bytea_output = 'escape'",
    "extra_float_digits = -15",
    "client_encoding = 'LATIN1'",
    "default_transaction_isolation = 'serializable'",
    "quote_all_identifiers = on",
    "plan_cache_mode = force_generic_plan",
    "enable_hashjoin = off",
    "enable_indexscan = off",
    "synchronous_commit = off",
    "check_function_bodies = off",
    "lock_timeout = 1000",
)


def test_what_a_session_sets_and_shadows_changes_nothing(hostile: Any, owned: Ledger) -> None:
    """Functions, operators, types and tables of its own that are called as those of the server, and
    odd settings: what is forged is refused as ever, and an honest charge is what it always is."""
    import psycopg

    s = quoted(owned)
    with administrator(owned) as admin:
        admin.execute(f"GRANT CREATE ON DATABASE {admin.info.dbname} TO ann")
    hostile.execute("CREATE SCHEMA IF NOT EXISTS evil")
    for statement in SHADOWS:
        if statement != "CREATE SCHEMA evil":
            hostile.execute(statement.replace("{s}", s))
    for setting in SETTINGS:
        hostile.execute(f"SET {setting}")
    before = rows(owned)
    for name in ("too much", "a colleague's quota", "another's name", "a used token", "a float"):
        changes, state = WRONG[name]
        with pytest.raises(psycopg.Error) as refused:
            charged(hostile, owned, **({"tables": TABLES} | changes))
        assert refused.value.sqlstate == state
    assert rows(owned) == before
    number = charged(hostile, owned, tables=TABLES)
    assert owned.entry(number).charge == TENTH
    assert owned.entry(number).time == owned.entry(0).time
    hostile.execute("DISCARD ALL")
    charged(hostile, owned, tables=TABLES, token="again")
    assert owned.verify().ok


def test_prepared_and_undone_charges(hostile: Any, owned: Ledger) -> None:
    """A statement that was prepared does no more than another; what is rolled back leaves nothing,
    and a snapshot from before another's charge is too old to charge by."""
    import psycopg

    s = quoted(owned)
    text = CHARGE.replace("{s}", s)
    for name, value in arguments(tables=TABLES).items():
        said = "ARRAY['" + "','".join(value) + "']" if isinstance(value, list) else f"'{value}'"
        text = text.replace(f"%({name})s", "NULL" if value is None else said)
    hostile.execute(f"PREPARE mine AS {text}")
    hostile.execute("BEGIN")
    hostile.execute("SAVEPOINT a")
    hostile.execute("EXECUTE mine")
    hostile.execute("ROLLBACK TO a")
    hostile.execute("EXECUTE mine")
    hostile.execute("COMMIT")
    with pytest.raises(psycopg.Error) as refused:
        hostile.execute("EXECUTE mine")
    assert refused.value.sqlstate == "DTH04"
    hostile.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    hostile.execute(f"SELECT * FROM {s}.head")
    owned.amend(ANN, ONE, "the same")
    with pytest.raises(psycopg.errors.SerializationFailure):
        charged(hostile, owned, tables=TABLES, token="late")
    hostile.execute("ROLLBACK")
    assert owned.balance(ANN).spent.epsilon == Fraction(2, 10)
    assert owned.verify().ok


def test_answers_are_the_askers_own(hostile: Any, owned: Ledger) -> None:
    """To a charge of a colleague's, to none, to one that has its answer: none is written."""
    import psycopg

    s = quoted(owned)
    with opened_by(owned, "ben") as book:
        theirs = book.charge([DATASET, BEN], TENTH, token="b", request=REQUEST, note={}).entry
        with pytest.raises(LedgerError, match="may not write this"):
            book.store_answer(owned.charged("used").number, "forged")  # type: ignore[union-attr]
    mine = charged(hostile, owned, tables=TABLES)
    answered = f"SELECT number FROM {s}.append_answer(%s, %s)"
    hostile.execute(answered, [mine, "mine"])
    before = rows(owned)
    told = {}
    for charge, answer in ((theirs, "x"), (mine, "x"), (0, "x"), (99, "x"), (None, "x"), (5, None)):
        with pytest.raises(psycopg.Error) as refused:
            hostile.execute(answered, [charge, answer])
        told[charge] = refused.value.sqlstate
    assert told == {theirs: "DTH06"} | dict.fromkeys((mine, 0, 99, None, 5), "DTH07")
    assert rows(owned) == before
    with opened_by(owned, "ben") as book:
        book.store_answer(theirs, "theirs")
    assert owned.verify().ok


def test_an_asker_opens_and_changes_no_account(owned: Ledger) -> None:
    """Whatever Python is told: only the owner of the tables opens accounts and changes caps."""
    new = {"dataset:nurse": ONE}
    with opened_by(owned, "ann") as book:
        with pytest.raises(LedgerError, match="may ask and charge, and nothing else"):
            book.amend(DATASET, BudgetFilter(Fraction(100), Fraction(0)), "more")
        with pytest.raises(LedgerError, match="may ask and charge, and nothing else"):
            book.open_accounts(new, Promise("nurse"))
        nurse = Charge.pure(Fraction(1, 10), Promise("nurse"))
        with pytest.raises(LedgerError, match=r"may charge accounts and open none.*ledger open"):
            book.charge(new, nurse, token="n", request=REQUEST, note={})
        with pytest.raises(LedgerError, match="may not write this"):
            book.charge([DATASET, BEN], TENTH, token="n", request=REQUEST, note={})
        with pytest.raises(BudgetError, match=r"cannot bear this charge.*What remains: epsilon"):
            spend(book, charge=Charge.pure(Fraction(2), PATIENT))
        with pytest.raises(PromiseError):
            spend(book, charge=TENTH.to_replace())
        spend(book)
        with pytest.raises(TokenError):
            book.charge([DATASET, ANN], TENTH, token="t", request="cd" * 32, note={})
    assert owned.balance(DATASET).spent.epsilon == Fraction(1, 10)
    assert owned.verify().ok


def test_whose_quotas_a_role_is_charged_to(owned: Ledger) -> None:
    """Its own; of a role that asks for many, those that it names; of a role that is no asker's, or
    whose quota the owner did not open, none."""
    s = quoted(owned)
    let(owned, "service", "*")
    let(owned, "carl", "analyst:carl")
    let(owned, "dora", "analyst:ann", "group:nurses")
    owned.open_accounts({"group:nurses:patient": ONE, "purpose:care:patient": ONE}, PATIENT)
    group, purpose = "group:nurses:patient", "purpose:care:patient"
    tried = [
        ("service", [DATASET, BEN], None),
        ("service", [DATASET, ANN, group], None),
        ("service", [DATASET], "DTH06"),
        ("carl", [DATASET], "DTH06"),
        ("carl", [DATASET, "analyst:carl:patient"], "DTH05"),
        ("dora", [DATASET, ANN, group], None),
        ("dora", [DATASET, ANN, group, purpose], None),
        ("dora", [DATASET, ANN], "DTH06"),
        ("dora", [DATASET, group], "DTH06"),
    ]
    import psycopg

    for place, (role, accounts, state) in enumerate(tried):
        with raw(owned, role) as session:
            said = {"note": canonical({"role": role}), "token": str(place), "accounts": accounts}
            try:
                charged(session, owned, **said)
                found = None
            except psycopg.Error as error:
                found = error.sqlstate
        assert found == state, (role, accounts)
    with administrator(owned) as admin:
        admin.execute(f"DELETE FROM {s}.askers WHERE role = 'ann'")
    with raw(owned, "ann") as session, pytest.raises(psycopg.Error) as refused:
        charged(session, owned)
    assert refused.value.sqlstate == "DTH06"
    assert owned.verify().ok


def test_quotas_by_question_and_by_window(owned: Ledger) -> None:
    """Charged as Python charges them, held by the server, and never left out."""
    import psycopg

    calendars = ("day", "week", "month", "quarter", "year")
    rates = {f"{ANN[:-8]}@{every}:patient": every for every in calendars}
    fifth, half = BudgetFilter(Fraction(1, 5)), BudgetFilter(Fraction(1, 2))
    most = {"everybody@question:patient": QuestionQuota(fifth)}
    windows = {name: WindowQuota(Calendar(every=every), half) for name, every in rates.items()}
    owned.open_accounts(most | windows, PATIENT)
    everything = [DATASET, ANN, *most, *windows]
    with opened_by(owned, "ann") as book, raw(owned, "ann") as session:
        for place in range(3):
            book.charge(everything, TENTH, token=str(place), request=REQUEST, note={})
        for left_out in (*most, *windows):
            with pytest.raises(psycopg.Error) as refused:
                charged(session, owned, accounts=[n for n in everything if n != left_out])
            assert refused.value.sqlstate == "DTH06"
        for tenths in (3, 1, 1):
            amounts = {"epsilon": str(tenths * 10**17), "rho": str(45 * 10**15)}
            said = {"accounts": everything, "token": f"raw {book.entries()[-1].number}"}
            if tenths == 1:
                charged(session, owned, **said, **amounts)
                continue
            with pytest.raises(psycopg.Error) as refused:
                charged(session, owned, **said, **amounts)
            assert refused.value.sqlstate == "DTH02"
        with pytest.raises(psycopg.Error) as refused:
            charged(session, owned, accounts=everything, token="one more")
        assert refused.value.sqlstate == "DTH02"
    assert owned.verify().ok


def test_a_role_that_reads_reads(owned: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """It verifies and shows; its charges are refused, with what to run. One of the owner's
    amends."""
    database = owned.place
    assert isinstance(database, LedgerSchema)
    let(owned, "looker", kind="reader")
    let(owned, "boss", kind="owner")
    with administrator(owned) as admin:
        host = f"127.0.0.1:{admin.info.port}/{admin.info.dbname}"
    from urllib.parse import quote

    for role in ("looker", "boss"):
        dsn = f"postgresql://{role}:{quote(PASSWORD, safe='')}@{host}"
        monkeypatch.setenv(f"{role.upper()}_DSN", dsn)
    with opened_by(owned, "looker") as book:
        assert book.verify().ok
        assert book.balance(DATASET).spent.epsilon == 0
        with pytest.raises(LedgerError, match="dither ledger grants LEDGER ROLE"):
            spend(book)
    with opened_by(owned, "boss") as book:
        book.amend(ANN, BudgetFilter(Fraction(2), Fraction(0)), "agreed")
        spend(book)
        assert book.verify().ok


def test_locks_of_an_asker(hostile: Any, owned: Ledger) -> None:
    """Advisory locks stop nobody. Whoever leaves a charge open makes others wait, who say so; once
    the server ends that session, nothing of it is there, and others go on."""
    s = quoted(owned)
    hostile.execute(f"SELECT pg_advisory_lock(hashtextextended('dither ' || {literal(s)}, 0))")
    hostile.execute("SELECT pg_advisory_lock(k) FROM generate_series(0, 1000) AS k")
    with opened_by(owned, "ben", timeout=1) as book:
        book.charge([DATASET, BEN], TENTH, token="b", request=REQUEST, note={})
        hostile.execute("BEGIN")
        charged(hostile, owned, tables=TABLES)
        with pytest.raises(LedgerLockedError, match="nothing was written"):
            book.charge([DATASET, BEN], TENTH, token="c", request=REQUEST, note={})
        with administrator(owned) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [hostile.info.backend_pid])
        book.charge([DATASET, BEN], TENTH, token="d", request=REQUEST, note={})
        assert book.charged("raw") is None
    assert owned.verify().ok


@pytest.mark.parametrize("ended", ["cancel", "terminate", "timeout"])
def test_a_charge_that_is_ended_in_the_middle(hostile: Any, owned: Ledger, ended: str) -> None:
    """Cancelled, cut off, or out of time after the function ran, before the commit: nothing is
    written, and the next charge is."""
    import psycopg

    before = rows(owned)
    statement = CHARGE.replace("{s}", quoted(owned)) + ", pg_sleep(60)"
    told: list[BaseException] = []

    def ask() -> None:
        try:
            hostile.execute(statement, arguments(tables=TABLES))
        except psycopg.Error as error:
            told.append(error)

    if ended == "timeout":
        hostile.execute("SET statement_timeout = 300")
    thread = threading.Thread(target=ask)
    thread.start()
    with administrator(owned) as admin:
        # Asleep: the function is through.
        waits = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
        while ended != "timeout" and not admin.execute(waits, [hostile.info.backend_pid]).rowcount:
            pass
        if ended != "timeout":
            admin.execute(f"SELECT pg_{ended}_backend(%s)", [hostile.info.backend_pid])
    thread.join()
    assert len(told) == 1
    assert rows(owned) == before
    with raw(owned, "ann") as session:
        charged(session, owned, tables=TABLES)
    assert owned.verify().ok


@pytest.mark.parametrize("many", [14, pytest.param(50, marks=pytest.mark.slow)])
def test_sessions_race_for_the_last_epsilon(owned: Ledger, many: int) -> None:
    """Ten tenths fit: ten of fifty are charged, forty refused, none over and none lost."""
    import psycopg

    sessions = [raw(owned, ("ann", "ben")[place % 2]) for place in range(many)]
    start = threading.Barrier(many)
    told: list[str] = []

    def ask(place: int) -> None:
        role = ("ann", "ben")[place % 2]
        said = {
            "accounts": [DATASET, f"analyst:{role}:patient"],
            "note": canonical({"role": role}),
            "token": f"t{place}",
            "rho": "infinite",
        }
        start.wait()
        try:
            charged(sessions[place], owned, **said)
            told.append("charged")
        except psycopg.Error as error:
            told.append(str(error.sqlstate))

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in sessions:
        session.close()
    assert sorted(told) == ["DTH02"] * (many - 10) + ["charged"] * 10
    assert owned.balance(DATASET).spent.epsilon == 1
    assert sum(entry.kind == "charge" for entry in owned.entries()) == 10
    assert owned.verify().ok


TEXTS = [
    "",
    "plain",
    'a "b" \\ c / d',
    "\b\f\n\r\t\x01\x1f\x7f",
    "naïve Ünï ☃ \u2028\ufffd\uffff",
    "\U0001f600\U0010ffff\U00010000",
    "% %s $1 {x} 'q'",
    "x" * 5000 + "é",
]


def test_the_server_writes_json_as_python_does(owned: Ledger) -> None:
    """Text of every kind, keys in order, nested lists, large numbers: letter by letter."""
    held = {
        "texts": list(TEXTS),
        "nested": {"b": [1, -2, 0, 10**300, None, True, False, [], {}], "a": {"Z": 1, "é": 2}},
        **dict.fromkeys(TEXTS, 1),
        "\U0001f600": 1,
        "\ufffd": 2,
    }
    s = quoted(owned)
    with administrator(owned) as admin:
        text = canonical(held)
        found = admin.execute(f"SELECT {s}.parsed(%s, 1000000)::text", [text]).fetchone()
        assert json.loads(found[0]) == held
        for one in TEXTS:
            found = admin.execute(f"SELECT {s}.said(%s)", [one]).fetchone()
            assert found == (json.dumps(one),)


@pytest.mark.parametrize(
    "caps", [{"delta": "0", "epsilon": "1", "window": "7"}, {"delta": "0", "epsilon": "9"}, {}]
)
def test_caps_that_the_server_does_not_know_admit_nothing(
    owned: Ledger, caps: Mapping[str, str]
) -> None:
    """Of another form, or whose numbers the owner never kept there."""
    import psycopg

    with administrator(owned) as admin, pytest.raises(psycopg.Error) as refused:
        admin.execute(f"SELECT {quoted(owned)}.admits(%s, 0, 0, 0, 0)", [json.dumps(caps)])
    assert refused.value.sqlstate == "DTH05"


CHANGED = {
    "GRANT EXECUTE ON FUNCTION {s}.append TO PUBLIC": "functions",
    "GRANT EXECUTE ON FUNCTION {s}.append TO ann": "functions",
    "GRANT EXECUTE ON FUNCTION {s}.append_charge TO PUBLIC": "functions",
    "ALTER FUNCTION {s}.append_charge SET search_path = pg_temp, pg_catalog": "functions",
    "ALTER FUNCTION {s}.append_charge SECURITY INVOKER": "functions",
    "ALTER FUNCTION {s}.said SECURITY DEFINER": "functions",
    "ALTER FUNCTION {s}.locked OWNER TO ann": "functions",
    "DROP FUNCTION {s}.append_answer": "functions",
    "CREATE OR REPLACE FUNCTION {s}.check_caller(accounts text[], unit text) RETURNS void "
    "LANGUAGE plpgsql AS 'BEGIN RETURN; END'": "functions",
    "CREATE FUNCTION {s}.append_charge(x int) RETURNS int LANGUAGE sql AS 'SELECT 1'": "functions",
    "INSERT INTO {s}.caps VALUES ('7', '0', 9e18, 0, -1, 0)": "the caps",
    "ALTER TABLE {s}.caps DISABLE TRIGGER ALL": "triggers",
    "ALTER TABLE {s}.askers DROP CONSTRAINT askers_pkey": "keys",
    "ALTER FUNCTION {s}.next_entry() SET search_path = pg_catalog": "triggers",
}


class Undone(Exception):
    """Ends a transaction without a trace."""


def test_what_was_done_to_the_functions_is_found(
    owned: Ledger, ledgers: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `verify` holds against the schema says so, though the chain is whole."""
    place = owned.place
    assert isinstance(place, LedgerSchema)
    monkeypatch.setenv("ADMIN_DSN", ledgers.server.dsn(ledgers.name, "admin"))
    s, found = quoted(owned), {}
    with Ledger.open(LedgerSchema("env:ADMIN_DSN", place.schema)) as book:
        assert book.verify().ok
        for statement in CHANGED:
            with suppress(Undone), book._store.write() as connection:
                connection.exec_driver_sql(statement.replace("{s}", s))
                found[statement] = str(book._store.fault(connection))
                raise Undone
        assert book.verify().ok
    assert {said for said, problem in CHANGED.items() if problem not in found[said]} == set()


VISITOR = Promise("visitor")
IN_BLOCKS = "dataset:visitor"


def some_blocks(words: Random) -> BlockSet:
    """A set of months: few or many, with and without ends and names."""
    ends = sorted(words.sample(range(24260, 24340), 2 * words.choice([0, 1, 1, 2, 20])))
    ranges: list[tuple[int | None, int | None]] = list(zip(ends[::2], ends[1::2], strict=True))
    if ranges and words.random() < 0.3:
        ranges[0] = (None, ranges[0][1])
    if ranges and words.random() < 0.3:
        ranges[-1] = (ranges[-1][0], None)
    named = [n for n in (NULL, OTHERS, 'table naïve ☃ \\ "') if words.random() < 0.3]
    found = BlockSet(tuple(ranges), frozenset(named)) or BlockSet.of_range(3, 3)
    return found if found.endless else replace(found, parallel=words.random() < 0.4)


def some_charge(words: Random) -> Charge:
    """Of every kind, from the grain of the ledger to more than a block has."""
    amount = words.choice([1, 7, 10**12, 10**17, 3 * 10**17]) * words.randint(1, 3) * UNIT
    match words.randrange(5):
        case 0:
            return Charge.concentrated(amount / 20).promising(VISITOR)
        case 1:
            return Charge.approximate(amount, Fraction(1, 10**8)).promising(VISITOR)
        case 2:
            return Charge(amount, 0, None, 0, VISITOR)
        case 3:
            return Charge(None, 0, amount / 7, Fraction(1, 10**8), VISITOR)
    return Charge.pure(amount, VISITOR)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_blocks_are_charged_as_python_charges_them(owned: Ledger, seed: int) -> None:
    """Sequences of charges to blocks: the server admits what Python admits, and writes the same
    state letter by letter, or a charge through Python would be refused."""
    import psycopg

    words = Random(seed)
    each, whole = LOOSE, BudgetFilter(Fraction(3), Fraction(1, 10**6))
    budget = BlockBudget(Calendar(every="month"), each, whole)
    owned.open_accounts({IN_BLOCKS: budget}, VISITOR)
    found = []
    with opened_by(owned, "ann") as book, raw(owned, "ann") as session:
        for place in range(40 if seed == 0 else 400):
            blocks, charge = some_blocks(words), some_charge(words)
            fits = book.balance(IN_BLOCKS).admits(charge, blocks)
            found.append(fits)
            if fits and words.random() < 0.5:
                said = {"token": str(place), "request": REQUEST, "note": {}, "blocks": blocks}
                book.charge([IN_BLOCKS], charge, **said)
                continue
            rounded = charge.rounded_up(grain(blocks))
            amounts = {
                name: "infinite" if held is None else str(held // UNIT)
                for name in ("epsilon", "delta", "rho", "rho_delta")
                for held in [getattr(rounded, name)]
            }
            said = {"token": str(place), "accounts": [IN_BLOCKS], "note": '{"role":"ann"}'}
            said |= {"promise": canonical(VISITOR.to_dict()), "blocks": canonical(blocks.to_dict())}
            if fits:
                charged(session, owned, **said, **amounts)
            else:
                with pytest.raises(psycopg.Error) as refused:
                    charged(session, owned, **said, **amounts)
                assert refused.value.sqlstate == "DTH02"
    assert True in found
    assert False in found
    assert owned.verify().ok


NO_SETS = (
    '{"named":[],"ranges":[]}',
    '{"named":[],"ranges":[[2,1]]}',
    '{"named":[],"ranges":[[1,2],[3,4]]}',
    '{"named":[],"ranges":[[5,6],[1,2]]}',
    '{"named":[],"ranges":[[1,2],[2,3]]}',
    '{"named":[],"ranges":[[1,null],[7,8]]}',
    '{"named":[],"ranges":[[1,2],[null,8]]}',
    '{"named":[],"ranges":[[1]]}',
    '{"named":[],"ranges":[[1,2,3]]}',
    '{"named":[],"ranges":[["1",2]]}',
    '{"named":[],"ranges":[null]}',
    '{"named":[],"ranges":[1]}',
    '{"named":[],"ranges":[[1.5,2.5]]}',
    '{"named":[],"ranges":[[1,1e3]]}',
    '{"named":[],"ranges":[[-0,1]]}',
    '{"named":[],"ranges":[[1,9999999999999999]]}',
    '{"named":[],"ranges":[[1, 2]]}',
    '{"ranges":[[1,2]],"named":[]}',
    '{"named":[],"ranges":{}}',
    '{"named":[],"ranges":null}',
    '{"named":["null","null"],"ranges":[]}',
    '{"named":["others","null"],"ranges":[]}',
    '{"named":[1],"ranges":[]}',
    '{"named":[null],"ranges":[]}',
    '{"named":null,"ranges":[]}',
    '{"ranges":[]}',
    '{"named":[]}',
    '{"more":1,"named":[],"ranges":[]}',
    '{"named":[],"parallel":false,"ranges":[[1,2]]}',
    '{"named":[],"parallel":1,"ranges":[[1,2]]}',
    '{"named":[],"parallel":true,"ranges":[[1,null]]}',
    '{"named":[],"ranges":[[1,2]],"parallel":true}',
    '{"named":[],"ranges":[],"ranges":[[1,2]]}',
    "null",
    "[]",
)


def test_sets_of_blocks_that_are_none(owned: Ledger) -> None:
    """Ranges out of order, that touch or are empty, names twice, or something else: refused, and so
    is a charge that names none where the account has blocks."""
    import psycopg

    budget = BlockBudget(Calendar(every="month"), ONE)
    owned.open_accounts({IN_BLOCKS: budget}, VISITOR)
    before = rows(owned)
    said = {"accounts": [IN_BLOCKS], "note": '{"role":"ann"}'}
    said |= {"promise": canonical(VISITOR.to_dict())}
    with raw(owned, "ann") as session:
        for blocks in (*NO_SETS, None):
            with pytest.raises(psycopg.Error) as refused:
                charged(session, owned, **said, blocks=blocks)
            assert refused.value.sqlstate == "DTH07", blocks
        assert rows(owned) == before
        charged(session, owned, **said, blocks='{"named":["null"],"ranges":[[null,1],[3,null]]}')
    assert owned.verify().ok


def test_a_ledger_of_the_format_before_is_asked_once_it_is_upgraded(
    ledgers: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade brings the functions, and what the caps of each account admit."""
    monkeypatch.setenv("LEDGER_DSN", ledgers.owner)
    monkeypatch.setenv("ANN_DSN", ledgers.server.dsn(ledgers.name, "ann"))
    monkeypatch.setattr(_witness, "_process", {})
    place = new_schema()
    earlier(place)
    with Ledger.open(place, create=False) as book:
        assert book.upgrade()
        let(book, "ann", "analyst:ann")
        before = book.balance(DATASET).spent
        small = Charge(0, 0, Fraction(1, 1000), 0, PATIENT)
        tiny = Charge(Fraction(1, 10**6), 0, Fraction(1, 10**12), 0, PATIENT)
        with opened_by(book, "ann") as asked:
            number = spend(asked, "new", tiny)
            asked.store_answer(number, "x")
            with pytest.raises(LedgerError):
                spend(asked, "free", small)
        assert book.balance(DATASET).spent == before + tiny
        assert book.verify().ok


def test_the_command_prints_what_to_run(owned: Ledger, tmp_path: Path) -> None:
    """Word by word for one that asks; other kinds; and what cannot be granted is said."""
    place, s = str(owned.place), quoted(owned)

    def run(*words: str) -> Any:
        return CliRunner().invoke(main, ["ledger", "grants", *words])

    assert run(place, "o'hara").output.splitlines() == [
        f'REVOKE ALL ON ALL TABLES IN SCHEMA {s} FROM "o\'hara";',
        f'REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {s} FROM "o\'hara";',
        f'REVOKE ALL ON SCHEMA {s} FROM "o\'hara";',
        'REVOKE "owner" FROM "o\'hara";',
        f"DELETE FROM {s}.askers WHERE role = 'o''hara';",
        f'GRANT USAGE ON SCHEMA {s} TO "o\'hara";',
        f'GRANT SELECT ON ALL TABLES IN SCHEMA {s} TO "o\'hara";',
        f"GRANT EXECUTE ON FUNCTION {s}.locked, {s}.append_charge, {s}.append_reserve, "
        f'{s}.append_answer TO "o\'hara";',
        f"INSERT INTO {s}.askers VALUES ('o''hara', 'analyst:o''hara');",
    ]
    more = run(place, "x", "--analyst", "ann", "--group", "a", "--group", "b").output
    assert more.endswith("('x', 'analyst:ann'), ('x', 'group:a'), ('x', 'group:b');\n")
    assert run(place, "x", "--any-analyst").output.endswith("VALUES ('x', '*');\n")
    assert run(place, "x", "--as", "owner").output.endswith('GRANT "owner" TO "x";\n')
    assert "EXECUTE" not in run(place, "x", "--as", "reader").output
    for words, said in (
        ((place, "owner"), "owns the ledger's tables"),
        ((place, "x" * 64), "1 to 63 bytes"),
        ((place, "x", "--as", "reader", "--analyst", "y"), "are for --as asker"),
        ((place, "x", "--any-analyst", "--group", "y"), "names all quotas"),
        ((place, "x", "--group", " "), "quotas must be"),
    ):
        found = run(*words)
        assert found.exit_code in (2, 4)
        assert said in " ".join(found.output.split())
    Ledger.open(tmp_path / "x.ledger").close()
    found = run(str(tmp_path / "x.ledger"), "x")
    assert "is a file, which has no roles" in " ".join(found.output.split())


POLICY = """
[budget]
epsilon = 1
per = "block"
lifetime = {{ epsilon = 2 }}
ledger = {{ postgres = "{dsn}", schema = "{schema}" }}
[analysts.ann]
epsilon = 0.75
[analysts.ben]
epsilon = 0.25
[tables.visits]
source = "visits.parquet"
block = {{ column = "day", every = "month" }}
[tables.visits.columns]
age = {{ bounds = "learned" }}
day = {{ type = "date", nullable = false }}
cost = {{ bounds = [0, 100] }}
"""


def test_a_session_asks_as_a_role(
    ledgers: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, owned: Ledger
) -> None:
    """The owner opens the accounts of a policy; then questions, replays, learned bounds, balances,
    refusals and certificates are what they are elsewhere, and so is what the command shows."""
    place = new_schema()
    days = [dt.date(2024, 1 + i % 6, 1 + i % 28) for i in range(600)]
    table = {"age": [i % 90 for i in range(600)], "day": days, "cost": [i % 50 for i in range(600)]}
    pl.DataFrame(table).write_parquet(tmp_path / "visits.parquet")
    policy = tmp_path / "dither.toml"
    policy.write_text(POLICY.format(dsn=place.dsn, schema=place.schema))
    done = CliRunner().invoke(main, ["ledger", "open", str(policy)])
    assert done.exit_code == 0, done.output
    with Ledger.open(place, create=False) as book:
        let(book, "ann", "analyst:ann")
    monkeypatch.setenv("LEDGER_DSN", ledgers.server.dsn(ledgers.name, "ann"))
    text = "SELECT SUM(cost) AS cost FROM visits WHERE day < DATE '2024-03-01'"
    with dither.open(policy, analyst="ann") as session:
        session.learn("visits", "age", epsilon=0.25)
        question = session.sql(text)
        release = question.release(0.25, token="t")
        assert question.release(0.25, token="t").frame.equals(release.frame)
        with pytest.raises(BudgetError, match="cannot bear this charge"):
            question.release(0.75)
        session.sql(text.replace("<", ">=")).release(0.25)
        assert [held.spent.epsilon for held in session.balance()] == [Fraction(3, 4)] * 2
        assert dither.verify(release.certificate, session.ledger).ok
        assert session.ledger.verify().ok
        assert {e.note.get("role") for e in session.ledger.entries() if e.charge} == {"ann"}
    with dither.open(policy, analyst="ann") as session:
        session.sql("SELECT AVG(age) AS age FROM visits").preview(0.1)
    with (
        dither.open(policy, analyst="ben") as session,
        pytest.raises(LedgerError, match="may not write this"),
    ):
        session.sql(text).release(0.1)
    shown = CliRunner().invoke(main, ["ledger", "show", str(place)])
    assert shown.exit_code == 0, shown.output
    assert "role ann" in shown.output

"""People, keys and sessions: what holds, for how long, and what ends it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from dither.errors import ArgumentError
from dither.ledger._place import LedgerSchema
from dither.service._database import Database
from dither.service._tables import SERVICE
from dither.service._tables import keys as keys_table
from dither.service.access._people import Identity, People
from dither.service.access._roles import Role
from dither.service.work._jobs import Jobs, State
from service.drafts import draft

_schemas = itertools.count()


@pytest.fixture(params=["file", "postgres"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """The tables of a service, on each kind of store."""
    place: Path | LedgerSchema = tmp_path / "visits.ledger.service"
    if request.param == "postgres":
        monkeypatch.setenv("LEDGER_DSN", request.getfixturevalue("postgres").owner)
        place = LedgerSchema("env:LEDGER_DSN", f"people {next(_schemas)}")
    found = Database(place, SERVICE)
    yield found
    found.close()


@pytest.fixture
def people(database: Database) -> People:
    """Ann, who is an analyst."""
    found = People(database)
    found.add("ann", Role.ANALYST)
    return found


def test_a_key_holds_until_it_expires_or_is_revoked(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the clock goes back after it expired."""
    made, other = people.new_key("ann", 1), people.new_key("ann", None)
    assert people.by_key(made.key) == (Identity("ann", Role.ANALYST), made.id)
    assert made.expires is not None
    assert other.expires is None
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 2 * 86_400)
    assert people.by_key(made.key) is None
    assert people.by_key(other.key) is not None
    monkeypatch.setattr(time, "time", lambda: now - 86_400)
    assert people.by_key(made.key) is None
    people.revoke(other.id)
    assert people.by_key(other.key) is None


def test_the_database_has_no_key_and_no_cookie(people: People, database: Database) -> None:
    """What would let somebody in stands nowhere, only its hash."""
    made = people.new_key("ann", 1)
    signed = people.sign_in(Identity("ann", Role.ANALYST), made.id)
    with database.reading() as connection:
        rows = connection.execute(sa.select(keys_table)).all()
    assert made.key.removeprefix("dither_") not in repr(rows)
    if isinstance(database.place, Path):
        for file in database.place.parent.glob("visits.ledger.service*"):
            found = file.read_bytes()
            for secret in (made.key, signed.cookie, signed.csrf):
                assert secret.encode() not in found
            assert file.stat().st_mode & 0o077 == 0


def test_a_session_ends_with_its_key(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lasts no longer than the key that it began with, revoked or expired."""
    first, second = people.new_key("ann", 1), people.new_key("ann", 0.1)
    signed = [people.sign_in(Identity("ann", Role.ANALYST), k.id) for k in (first, second)]
    assert all(people.by_cookie(one.cookie) for one in signed)
    people.revoke(first.id)
    assert people.by_cookie(signed[0].cookie) is None
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 0.2 * 86_400)
    assert people.by_cookie(signed[1].cookie) is None


def test_disabling_takes_everything_and_drops_what_was_not_begun(
    people: People, database: Database
) -> None:
    """Keys, sessions and what waits in the queue; a new key holds once they are back."""
    jobs = Jobs(database)
    made = people.new_key("ann", 1)
    signed = people.sign_in(Identity("ann", Role.ANALYST), made.id)
    begun = jobs.add("ann", "begun", draft())
    jobs.claim()
    queued = jobs.add("ann", "queued", draft())
    people.disable("ann")
    assert people.by_key(made.key) is None
    assert people.by_cookie(signed.cookie) is None
    states = {one.id: one.state for one in jobs.listed()}
    assert states == {begun.id: State.RUNNING, queued.id: State.CANCELLED}
    people.add("ann", Role.ANALYST)
    assert people.by_key(made.key) is None
    assert people.by_key(people.new_key("ann").key) is not None


def test_another_role_holds_at_once(people: People) -> None:
    """Keys are the person's, and have the role that the person has now; sessions begin anew."""
    made = people.new_key("ann", 1)
    signed = people.sign_in(Identity("ann", Role.ANALYST), made.id)
    people.add("ann", Role.AUDITOR)
    assert people.by_key(made.key) == (Identity("ann", Role.AUDITOR), made.id)
    assert people.by_cookie(signed.cookie) is None


@pytest.mark.parametrize(
    "name", ["", "-ann", "a b", "a\nb", "a\x00b", "<script>", "a/b", "x" * 101, "\ud800", "a;b"]
)
def test_names_are_plain(people: People, name: str) -> None:
    """What would have to be escaped somewhere is no name."""
    with pytest.raises(ArgumentError, match="name must begin") as raised:
        people.add(name, Role.ANALYST)
    assert not name or name not in str(raised.value)


def test_what_is_not_there_is_refused(people: People) -> None:
    """Keys of nobody, and revoking none."""
    with pytest.raises(ArgumentError, match="nobody of that name"):
        people.new_key("zoe")
    with pytest.raises(ArgumentError, match="no such key"):
        people.revoke("00")
    with pytest.raises(ArgumentError, match="days must be"):
        people.new_key("ann", 0)
    with pytest.raises(ArgumentError, match="owner, analyst or auditor"):
        people.add("zoe", Role.PUBLIC)


def test_what_was_decided_is_written_down(people: People) -> None:
    """Who did what, newest first, and no secret among it."""
    made = people.new_key("ann", 1, by="olga")
    people.disable("ann", by="olga")
    found = people.log()
    assert [(one["by"], one["what"]) for one in found] == [
        ("olga", "person disabled"),
        ("olga", "key made"),
        ("the owner", "person added"),
    ]
    assert made.key not in repr(found)

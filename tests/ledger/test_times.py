"""An entry is dated by the hour, so that nobody reads from it how long a question ran."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

import dither as dt
from dither.ledger import Ledger
from dither.ledger._entries import dated
from dither.privacy import Charge, Promise
from ledger.stores import record, resealed
from query.query_data import policy, regions, visits

SOURCES = {"visits": visits(), "regions": regions()}
TENTH = Charge.pure(Fraction(1, 10), Promise("patient"))
NOW = datetime(2026, 11, 22, 9, 59, 58, 123456, UTC)


def test_times_are_hours(full: Ledger) -> None:
    """Of every kind of entry, as it is stored."""
    for entry in full.entries():
        assert (entry.time.minute, entry.time.second, entry.time.microsecond) == (0, 0, 0)
        assert entry.time.utcoffset() == timedelta(0)
        assert len(record(full, entry.number).time) == len("2026-11-22T09:00:00+00:00")


def test_an_answer_has_the_time_of_its_charge(clock: list[datetime], book: Ledger) -> None:
    """However long it took, and whatever was charged in between."""
    charged = book.charge(["visits"], TENTH, token="a", request="ab" * 32, note={})
    clock.append(clock[0] + timedelta(hours=7))
    other = book.charge(["visits"], TENTH, token="b", request="ab" * 32, note={})
    book.store_answer(charged.entry, "late")
    book.store_answer(other.entry, "soon")
    hours = {e.answers: e.time.hour for e in book.entries() if e.kind == "answer"}
    assert hours == {charged.entry: 9, other.entry: 16}
    assert book.verify().ok


def test_times_do_not_go_back(clock: list[datetime]) -> None:
    """A clock that is behind the newest date is not followed, by however much it is."""
    now = "2026-11-22T09:00:00+00:00"
    for before, found in (
        ("", now),
        ("2026-11-22T08:00:00+00:00", now),
        ("2026-11-22T11:00:00+00:00", "2026-11-22T11:00:00+00:00"),
        ("2026-11-23T09:00:00+00:00", "2026-11-23T09:00:00+00:00"),
        ("2026-11-24T09:00:00+00:00", "2026-11-24T09:00:00+00:00"),
        ("9999-01-01T00:00:00+00:00", "9999-01-01T00:00:00+00:00"),
        # As earlier versions wrote it, and as nobody does.
        ("2026-11-22T09:30:01.000001+00:00", now),
        ("2026-11-22T10:30:01.000001+00:00", "2026-11-22T10:00:00+00:00"),
        ("soon", now),
        ("2026-11-22", now),
    ):
        assert dated(before) == found


def test_the_newest_date_is_the_floor(clock: list[datetime], book: Ledger) -> None:
    """And not that of the last entry, which may answer a charge of long ago."""
    charged = book.charge(["visits"], TENTH, token="a", request="ab" * 32, note={})
    clock.append(clock[0] + timedelta(days=30))
    book.charge(["visits"], TENTH, token="b", request="ab" * 32, note={})
    book.store_answer(charged.entry, "late")
    clock.append(clock[0] + timedelta(hours=3))
    later = book.charge(["visits"], TENTH, token="c", request="ab" * 32, note={})
    assert book.entry(later.entry).time == (clock[0] + timedelta(days=30)).replace(
        minute=0, second=0, microsecond=0
    )
    assert book.verify().ok


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ("2026-11-22T08:00:00+00:00", "before an entry that stands before it"),
        ("2026-11-22T09:30:00+00:00", "not dated by the hour"),
        ("2026-11-22T10:00:00+01:00", "not dated by the hour"),
        ("soon", "cannot be read"),
    ],
)
def test_a_date_that_goes_back_is_found(
    clock: list[datetime], book: Ledger, time: str, said: str
) -> None:
    """Whoever writes one into the newest entry, and its hash anew."""
    charged = book.charge(["visits"], TENTH, token="a", request="ab" * 32, note={})
    assert book.verify().ok
    resealed(book, charged.entry, {"time": time})
    found = book.verify()
    assert (found.ok, found.bad) == (False, charged.entry)
    assert said in str(found.problem)


def test_no_release_holds_a_finer_time(tmp_path: object, clock: list[datetime]) -> None:
    """Neither the certificate nor what is stored nor a replay."""
    with dt.open(policy(tmp_path), sources=SOURCES) as session:
        question = session.sql("SELECT COUNT(*) AS n FROM visits")
        release = question.release("0.5", token="t")
        clock.append(clock[0] + timedelta(minutes=11))
        again = question.release("0.5", token="t")
        stored = "".join(map(str, session.ledger.entries()))
    for text in (release.certificate.to_json(), release.summary(), str(again.replayed), stored):
        for part in ("59:58", "123456", "10:10", "9, 59"):
            assert part not in text

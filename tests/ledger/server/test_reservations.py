"""Reservations and parts that time unlocks, as the server's functions hold them: exactly as Python
does, whatever a role that asks says to the server itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, BlockSet
from dither.errors import ArgumentError, BudgetError, LedgerError
from dither.ledger import Ledger
from dither.ledger._block_budget import BlockBudget
from dither.ledger._entries import UNIT, canonical, dated
from dither.ledger._place import LedgerSchema
from dither.ledger._states import grain
from dither.ledger.quotas._caps import QuestionQuota, UnlockedQuota, WindowQuota
from dither.ledger.quotas._reserved import Reservation, holder_of
from dither.ledger.quotas._reserving import holder_account
from dither.privacy import Charge, Promise
from ledger.server.asking import (
    ANN,
    BEN,
    DATASET,
    LOOSE,
    PATIENT,
    REQUEST,
    arguments,
    charged,
    let,
    opened_by,
    quoted,
    raw,
)
from ledger.stores import administrator, rows
from postgres_server import Database

# Ahead of the server's own clock, which dates nothing before the newest entry.
NOW = datetime.now(UTC).replace(minute=30) + timedelta(days=40)
HOUR = timedelta(hours=1)
RESERVE = (
    "SELECT number FROM {s}.append_reserve(%(accounts)s::pg_catalog.text[], %(epsilon)s, "
    "%(delta)s, %(rho)s, %(rho_delta)s, %(promise)s, %(note)s, %(blocks)s, %(until)s, %(holder)s)"
)


def tenths(number: int, promise: Promise = PATIENT) -> Charge:
    """So many tenths."""
    return Charge.pure(Fraction(number, 10), promise)


def amounts(charge: Charge) -> dict[str, str]:
    """A charge as the server is told it."""
    return {
        name: "infinite" if held is None else str(-(-held // UNIT))
        for name in ("epsilon", "delta", "rho", "rho_delta")
        for held in [getattr(charge, name)]
    }


def hour(moment: datetime) -> str:
    """The hour of a moment as the ledger writes it."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0).isoformat()


def reserved(session: Any, book: Ledger, **changes: Any) -> int:
    """The entry of a reservation that was said to the server itself."""
    said = arguments(until=hour(datetime.now(UTC) + 5 * HOUR), holder=holder_of("known"))
    statement = RESERVE.replace("{s}", quoted(book).replace("%", "%%"))
    found: int = session.execute(statement, said | changes).fetchone()[0]
    return found


def refused(state: str) -> Any:
    """A refusal of this kind."""
    import psycopg

    class Refused:
        def __enter__(self) -> None:
            self.raises = pytest.raises(psycopg.Error)
            self.told = self.raises.__enter__()

        def __exit__(self, *what: Any) -> bool:
            ended = bool(self.raises.__exit__(*what))
            assert self.told.value.sqlstate == state, self.told.value
            return ended

    return Refused()


def test_what_an_asker_reserves_is_kept_from_others(owned: Ledger) -> None:
    """Of a colleague who says to the server what they like, and of Python; then its holder uses it,
    counted down, and no more."""
    with opened_by(owned, "ann") as ann, opened_by(owned, "ben") as ben:
        made = ann.reserve([DATASET, ANN], tenths(5), until=datetime.now(UTC) + 5 * HOUR)
        assert owned.entry(made.entry).note == {"role": "ann"}
        assert owned.balance(DATASET).reserved == tenths(5)
        said = {"accounts": [DATASET, BEN], "note": '{"role":"ben"}'}
        with raw(owned, "ben") as session:
            with refused("DTH02"):
                charged(session, owned, **said, **amounts(tenths(6)))
            # Not even by the other rule.
            with refused("DTH02"):
                charged(session, owned, **said, **amounts(Charge(None, 0, Fraction(1, 2), 0)))
            charged(session, owned, **said, **amounts(tenths(4)))
        with pytest.raises(BudgetError, match="Others have reserved"):
            ben.charge([DATASET, BEN], tenths(2), token="b", request=REQUEST, note={})
        with raw(owned, "ann") as session:
            known = {"reservation": made.id}
            with refused("DTH02"):
                charged(session, owned, **known, token="much", **amounts(tenths(6)))
            charged(session, owned, **known, token="used", **amounts(tenths(2)))
        use = {"request": REQUEST, "note": {}, "reservation": made.id}
        ann.charge([DATASET, ANN], tenths(3), token="c", **use)
        with pytest.raises(BudgetError, match="a reservation"):
            ann.charge([DATASET, ANN], tenths(1), token="d", **use)
    assert owned.balance(DATASET).spent.epsilon == Fraction(9, 10)
    assert owned.verify().ok


LATER = datetime.now(UTC) + 5 * HOUR
NO_RESERVATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "zero": ({"epsilon": "0", "rho": "0"}, "DTH07"),
    "infinite": ({"epsilon": "infinite"}, "DTH07"),
    "infinite by rho": ({"rho": "infinite"}, "DTH07"),
    "negative": ({"epsilon": "-1"}, "DTH07"),
    "more than there is": ({"epsilon": str(2 * 10**18), "rho": str(10**18)}, "DTH02"),
    "no hour": ({"until": None}, "DTH07"),
    "this hour": ({"until": hour(datetime.now(UTC))}, "DTH07"),
    "the past": ({"until": "2024-02-04T12:00:00+00:00"}, "DTH07"),
    "for ever": ({"until": "9999-02-04T12:00:00+00:00"}, "DTH07"),
    "for more than a year": ({"until": hour(LATER + timedelta(days=368))}, "DTH07"),
    "half an hour": ({"until": hour(LATER).replace(":00:00+", ":30:00+")}, "DTH07"),
    "elsewhere": ({"until": hour(LATER).replace("+00:00", "+01:00")}, "DTH07"),
    "no day": ({"until": "2030-02-30T12:00:00+00:00"}, "22008"),
    "a name to break out of": ({"until": hour(LATER) + '","x":"'}, "DTH07"),
    "no holder": ({"holder": None}, "DTH07"),
    "a holder that is no hash": ({"holder": "AB" * 32}, "DTH07"),
    "another's holder": ({"holder": holder_of("taken")}, "DTH07"),
    "another's quota": ({"accounts": [DATASET, BEN]}, "DTH06"),
    "no data set": ({"accounts": [ANN]}, "DTH06"),
    "a reservation": ({"accounts": [DATASET, ANN, "TAKEN"]}, "DTH06"),
    "another's name": ({"note": '{"role":"ben"}'}, "DTH06"),
    "another unit": ({"promise": canonical(Promise("x").to_dict())}, "DTH06"),
    "other neighbours": ({"promise": '{"neighbours":"replace","unit":"patient"}'}, "DTH03"),
    "blocks where there are none": ({"blocks": '{"named":[],"ranges":[[1,2]]}'}, "DTH07"),
}
NO_USES: dict[str, tuple[dict[str, Any], str]] = {
    "a guess": ({"reservation": "0" * 32}, "DTH08"),
    "the hash": ({"reservation": holder_of("taken")}, "DTH08"),
    "nothing": ({"reservation": ""}, "DTH08"),
    "its account": ({"accounts": [DATASET, ANN, "TAKEN"]}, "DTH06"),
    "its account twice": ({"accounts": [DATASET, ANN, "TAKEN"], "reservation": "taken"}, "DTH06"),
    "too much": (
        {"reservation": "taken", "epsilon": str(7 * 10**17), "rho": str(10**17)},
        "DTH02",
    ),
}


def test_reservations_that_are_none(owned: Ledger) -> None:
    """Each attempt is refused with the code of its kind, and writes nothing; then honest ones pass,
    and one of other accounts than ann's is of no use to ann, who knows its id."""
    import psycopg

    with raw(owned, "ann") as ann, raw(owned, "ben") as ben:
        number = reserved(ann, owned, holder=holder_of("taken"), **amounts(tenths(6)))
        taken = owned.entry(number).accounts[0]
        of_ben = {"accounts": [DATASET, BEN], "note": '{"role":"ben"}'}
        reserved(ben, owned, **of_ben, holder=holder_of("ben's"))
        before = rows(owned)
        told = {}
        attempts = [(reserved, NO_RESERVATIONS), (charged, NO_USES)]
        for said, wrong in attempts:
            for name, (changes, _) in wrong.items():
                given = dict(changes)
                if "TAKEN" in given.get("accounts", ()):
                    given["accounts"] = [taken if a == "TAKEN" else a for a in given["accounts"]]
                with pytest.raises(psycopg.Error) as found:
                    said(ann, owned, **given)
                told[name] = found.value.sqlstate
        assert told == {name: held for _, some in attempts for name, (_, held) in some.items()}
        with refused("DTH08"):
            charged(ann, owned, reservation="ben's")
        assert rows(owned) == before
        charged(ann, owned, reservation="taken")
        charged(ben, owned, **of_ben, reservation="ben's", token="b")
        reserved(ann, owned)
    assert owned.verify().ok


def test_a_reservation_lapses_and_a_clock_set_back_brings_none_again(
    clock: list[datetime], owned: Ledger
) -> None:
    """By the ledger's newest date, of whoever wrote it, and not by that of an answer."""
    with raw(owned, "ann") as ann, raw(owned, "ben") as ben:
        first = charged(ann, owned, token="early")
        until = NOW + 3 * HOUR
        reserved(ann, owned, until=hour(until), **amounts(tenths(8)))
        said = {"accounts": [DATASET, BEN], "note": '{"role":"ben"}', **amounts(tenths(3))}
        with refused("DTH02"):
            charged(ben, owned, **said)
        clock.append(until)
        owned.charge([DATASET], tenths(1), token="o", request=REQUEST, note={})
        clock.append(NOW - timedelta(days=20))
        with opened_by(owned, "ann") as book:
            book.store_answer(first, "late")
        number = charged(ben, owned, **said, token="late")
        assert hour(owned.entry(number).time) == hour(until)
        with refused("DTH08"):
            charged(ann, owned, reservation="known", token="x")
    found = owned.verify()
    assert found.ok, found.problem


@pytest.mark.parametrize("every", ["day", "week", "month", "quarter", "year"])
def test_parts_are_unlocked_as_python_unlocks_them(
    clock: list[datetime], owned: Ledger, every: str
) -> None:
    """By both rules, of odd fractions; never left out; one more with each window."""
    whole = BudgetFilter(Fraction(7, 3), Fraction(1, 10**5))
    caps = UnlockedQuota(whole, every, 11)
    name = "everybody@unlock:patient"
    owned.open_accounts({name: caps}, PATIENT)
    s = quoted(owned)
    with raw(owned, "ann") as session, administrator(owned) as admin:
        for begun in range(1, 12):
            found = admin.execute(
                f"SELECT {s}.part('7/3', {begun}, 11), {s}.part('5', {begun}, 11)"
            ).fetchone()
            assert found == (str(Fraction(7, 3) * begun / 11), str(Fraction(5) * begun / 11))
        with refused("DTH06"):
            charged(session, owned)
        said: dict[str, Any] = {"accounts": [DATASET, ANN, name]}
        # A part is ε 7/33 = .2121…
        charged(session, owned, **said, **amounts(tenths(2)), token="a")
        with refused("DTH02"):
            charged(session, owned, **said, epsilon=str(10**18 // 60), rho=str(10**20))
        clock.append(NOW + timedelta(days=366))
        with opened_by(owned, "ann") as book, pytest.raises((BudgetError, LedgerError)):
            # A client's clock unlocks nothing on the server.
            book.charge([DATASET, ANN, name], tenths(2), token="b", request=REQUEST, note={})
        owned.charge([DATASET], tenths(1), token="o", request=REQUEST, note={})
        charged(session, owned, **said, **amounts(tenths(1)), token="c")
    found = owned.verify()
    assert found.ok, found.problem


VISITOR = Promise("visitor")
FOLK, FOLK_ANN = "dataset:visitor", "analyst:ann:visitor"
QUESTION, WEEK, PARTS = (f"everybody@{rule}:visitor" for rule in ("question", "week", "unlock"))


def fits(
    book: Ledger,
    names: Sequence[str],
    charge: Charge,
    blocks: BlockSet | None,
    known: str | None,
) -> bool:
    """Whether Python would let a charge pass, or a reservation."""
    with book._reading() as (connection, at):
        now = dated(at.time)
        used = [] if known is None else [holder_account(connection, known, now)]
        try:
            book._bear(connection, [*used, *names], charge.rounded_up(grain(blocks)), blocks, now)
        except BudgetError:
            return False
    return True


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_server_keeps_what_python_keeps(owned: Ledger, seed: int) -> None:
    """Sequences of charges and reservations beside quotas of every kind, some of blocks: what
    passes on the server is what would pass in Python, and the chain holds."""
    import psycopg

    words = Random(seed)
    months, each = Calendar(every="month"), BudgetFilter(Fraction(4), Fraction(1, 10**6))
    caps = {
        FOLK: BlockBudget(months, each, BudgetFilter(Fraction(9), Fraction(1, 10**5))),
        FOLK_ANN: BlockBudget(months, BudgetFilter(Fraction(3))),
        QUESTION: QuestionQuota(BudgetFilter(Fraction(1))),
        WEEK: WindowQuota(Calendar(every="week"), BudgetFilter(Fraction(8), Fraction(1, 10**6))),
        PARTS: UnlockedQuota(BudgetFilter(Fraction(20), Fraction(1, 10**5)), "year", 2),
    }
    owned.open_accounts(caps, VISITOR)
    names = list(caps)
    said = {
        "accounts": names,
        "note": '{"role":"ann"}',
        "promise": canonical(VISITOR.to_dict()),
    }
    kept: list[Reservation] = []
    found = []
    with opened_by(owned, "ann") as book, raw(owned, "ann") as session:
        for place in range(40 if seed == 0 else 300):
            low = words.randrange(24_290, 24_296)
            blocks = BlockSet.of_range(low, low + words.choice([0, 0, 1, 3]))
            if words.random() < 0.2:
                blocks = blocks | BlockSet.of_names(NULL)
            elif words.random() < 0.3:
                blocks = replace(blocks, parallel=True)
            tenth = words.randint(1, 8)
            charge = tenths(tenth, VISITOR)
            if words.random() < 0.3:
                charge = Charge.concentrated(Fraction(tenth, 300)).promising(VISITOR)
            reserves = words.random() < 0.3 and charge.epsilon is not None
            used = words.choice(kept) if kept and not reserves and words.random() < 0.4 else None
            known = None if used is None else used.id
            charge = charge.rounded_up(grain(blocks))
            given = said | amounts(charge) | {"blocks": canonical(blocks.to_dict())}
            if reserves and words.random() < 0.5 and fits(owned, names, charge, blocks, None):
                until = datetime.now(UTC) + 5 * HOUR
                kept.append(book.reserve(names, charge, until=until, blocks=blocks))
                continue
            try:
                passes = fits(owned, names, charge, blocks, known)
            except ArgumentError:
                # It is for other blocks.
                with refused("DTH08"):
                    charged(session, owned, **given, token=f"{place}", reservation=known)
                continue
            found.append((reserves, used is not None, passes))
            state = None
            try:
                if reserves:
                    reserved(session, owned, **given, holder=holder_of(str(place)))
                else:
                    charged(session, owned, **given, token=f"{place}", reservation=known)
            except psycopg.Error as error:
                state = error.sqlstate
            assert state == (None if passes else "DTH02"), (place, given)
    assert {(False, False, True), (False, False, False), (True, False, True)} <= set(found)
    told = owned.verify()
    assert told.ok, told.problem


@pytest.mark.parametrize("schema", ["a$dither$b", "$dither_$ $dither$", "o'hara\" {schema} %s $$"])
def test_a_schema_of_any_name(
    ledgers: Database, monkeypatch: pytest.MonkeyPatch, schema: str
) -> None:
    """Nothing in it ends a function's body, nor anything else."""
    monkeypatch.setenv("LEDGER_DSN", ledgers.owner)
    monkeypatch.setenv("ANN_DSN", ledgers.server.dsn(ledgers.name, "ann"))
    with Ledger.open(LedgerSchema("env:LEDGER_DSN", schema)) as book:
        book.open_accounts({DATASET: LOOSE, ANN: LOOSE}, PATIENT)
        let(book, "ann", "analyst:ann")
        with opened_by(book, "ann") as asked:
            number = asked.charge([DATASET, ANN], tenths(1), token="t", request=REQUEST, note={})
            asked.store_answer(number.entry, "x")
        assert book.verify().ok

"""The ledger: what a charge costs, how long a check of a million entries takes, and kills.

    python -m benchmarks.ledger [--charges N] [--entries N] [--rows N]
        [--kills N] [--pause S] [--postgres]

Charges are timed one by one on a file, and on a server that is started for it where ``--postgres``
is given: to an account with a cap, to one with a budget for each block, of which 100 in a row are
read, and to every second of 20,000 blocks. `verify` is timed on ledgers that are written in bulk,
each of charges of another kind. ``--rows`` asks over one month of 60 in a Hive folder of so many,
beside the same query by hand over that month's file. ``--kills`` lets eight processes
charge one ledger with blocks while each is killed at random, and looks for what was acknowledged.
Beside the clock's time stands the processor's, since other programs slow the first.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

import dither as dt
from benchmarks.engines import BY_HAND, MAX_GROUPS, MAX_ROWS, MOST_INCOME, ONE_TERM, REGIONS
from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.errors import LedgerError
from dither.ledger import UNIT, BlockBudget, Ledger
from dither.ledger._chain import read_record
from dither.ledger._entries import Amounts, Record, amounts_json, blocks_json, digest
from dither.ledger._states import NO_SPENDING, units_of
from dither.ledger.quotas._caps import (
    QuestionQuota,
    UnlockedQuota,
    WindowQuota,
    by_clock,
    current,
)
from dither.ledger.stores._sqlite import TRIGGERS
from dither.privacy import Charge, Promise

PATIENT = Promise("patient")
CAPS = BudgetFilter(Fraction(10**6), Fraction(1, 10**6))
MONTHS = BlockBudget(Calendar(every="month"), CAPS, CAPS)
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
FLAT, BLOCKS, QUOTA = "dataset:patient", "dataset:months", "analyst:ann:patient"
REQUEST = "ab" * 32
READ = {
    "plain": None,
    "100 blocks": BlockSet.of_range(24_000, 24_099),
    "10,000 blocks apart": BlockSet(tuple((2 * i, 2 * i) for i in range(10_000))),
}
TARGETS = {"plain": 3, "100 blocks": 5, "10,000 blocks apart": 50}
"""Milliseconds, on a file."""


def opened(place: Any) -> Ledger:
    """A new ledger with one account of each kind."""
    ledger = Ledger.open(place)
    ledger.ensure_account(FLAT, CAPS, PATIENT)
    ledger.ensure_account(QUOTA, CAPS, PATIENT)
    ledger.ensure_account(BLOCKS, MONTHS, PATIENT)
    return ledger


def charge(ledger: Ledger, token: str, blocks: BlockSet | None) -> int:
    """Charge a tenth to the data set and to an analyst's quota."""
    accounts = [FLAT if blocks is None else BLOCKS, QUOTA]
    note = {"query": "SELECT COUNT(*) AS n FROM visits"}
    tables = {"visits": "column patient_id"}
    return ledger.charge(
        accounts, TENTH, token=token, request=REQUEST, note=note, blocks=blocks, tables=tables
    ).entry


def charges(place: Any, number: int, targets: bool) -> None:
    """Print the median of single charges of each kind."""
    with opened(place) as ledger:
        for name, blocks in READ.items():
            times, busy = [], []
            for i in range(number if name != "10,000 blocks apart" else max(number // 10, 3)):
                start, used = time.perf_counter(), time.process_time()
                charge(ledger, f"{name} {i}", blocks)
                times.append(time.perf_counter() - start)
                busy.append(time.process_time() - used)
            wanted = f"  target {TARGETS[name]} ms" if targets else ""
            print(
                f"  {name:20} {1000 * statistics.median(times):7.2f} ms"
                f"  processor {1000 * statistics.median(busy):6.2f} ms{wanted}"
            )


KINDS: dict[str, Mapping[str, Any]] = {
    "plain": {FLAT: CAPS, QUOTA: CAPS},
    "60 blocks": {BLOCKS: MONTHS, QUOTA: CAPS},
    "half plain, half of 60 blocks": {FLAT: CAPS, BLOCKS: MONTHS, QUOTA: CAPS},
    "after a reservation has lapsed": {FLAT: CAPS, QUOTA: CAPS},
    "beside an open reservation": {FLAT: CAPS, QUOTA: CAPS},
    "quotas of four kinds": {
        FLAT: CAPS,
        QUOTA: CAPS,
        "everybody@question:patient": QuestionQuota(CAPS),
        "everybody@week:patient": WindowQuota(Calendar(every="week"), CAPS),
        "everybody@unlock:patient": UnlockedQuota(CAPS, "week", 52),
    },
}
"""By kind of ledger that is verified: its accounts."""


def written(path: Path, number: int, kind: str) -> None:
    """Add charges to a new ledger in bulk; those of blocks read one of 60, at random."""
    caps = KINDS[kind]
    names = [f.name for f in fields(Record)]
    amounts = asdict(Amounts.of(TENTH.rounded_up(UNIT)))
    months = [BlockSet.of_range(24_000 + i, 24_000 + i) for i in range(60)]
    note = {"query": "SELECT COUNT(*) AS n FROM visits"}
    states = {name: NO_SPENDING for name, held in caps.items() if isinstance(held, BlockBudget)}
    newest = {}
    with Ledger.open(path) as ledger:
        for name, held in caps.items():
            ledger.ensure_account(name, held, PATIENT)
        later = datetime.now(UTC) + timedelta(days=7)
        if "reservation" in kind:
            ledger.reserve([FLAT], TENTH, until=later)
        start = ledger.charge(
            [name for name in caps if name != BLOCKS],
            TENTH,
            token="first",
            request=REQUEST,
            note=note,
            tables={"visits": "column patient_id"},
        ).entry
        with ledger._store.read() as connection:
            last = read_record(connection, start)
        spent = {name: ledger.balance(name).spent for name in caps}
        for name in states:
            found = ledger.balance(name).blocks
            assert found is not None
            states[name], newest[name] = found.state, start
    draws = random.Random(60)
    at_time = last.time
    if "lapsed" in kind:
        at_time = (later + timedelta(days=7)).replace(minute=0, second=0, microsecond=0).isoformat()
    raw = sqlite3.connect(path, isolation_level=None)
    for name in TRIGGERS:
        raw.execute(f"DROP TRIGGER {name}")
    raw.execute("BEGIN")
    insert = f"INSERT INTO entries ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    values: dict[str, Any] = asdict(last) | {"time": at_time}
    first = last.number + 1
    units = units_of(TENTH)
    for at in range(first, first + number):
        accounts = sorted(caps)
        if kind.startswith("half"):
            accounts = [QUOTA, FLAT if at % 2 else BLOCKS]
        blocks = draws.choice(months) if BLOCKS in accounts else None
        digests = {}
        for name in accounts:
            spent[name] += TENTH
            held = caps[name]
            if isinstance(held, BlockBudget):
                read = current(held, at_time) if by_clock(held) else blocks
                assert read is not None
                states[name] = states[name].plus(read, units)[0]
                digests[name] = digest(states[name].text())
                newest[name] = at
        totals = amounts_json({name: Amounts.of(spent[name]) for name in accounts})
        values |= amounts | {"number": at, "token": f"t{at}", "totals": totals}
        values |= {"blocks": blocks_json(blocks, digests)}
        values |= {"previous": values["hash"], "hash": ""}
        values["hash"] = Record(**values).sealed().hash
        raw.execute(insert, [values[name] for name in names])
        raw.executemany("INSERT INTO touches VALUES (?, ?, 0)", [(name, at) for name in accounts])
    raw.execute("UPDATE head SET count = ?, hash = ?", (first + number, values["hash"]))
    for name, state in states.items():
        row = (name, newest.get(name, 0), state.text())
        raw.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", row)
    raw.execute("COMMIT")
    for text in TRIGGERS.values():
        raw.execute(text)
    raw.close()


def verified(path: Path, kind: str) -> None:
    """Print how long a check of the whole takes."""
    with Ledger.open(path) as ledger:
        start, used, others = time.perf_counter(), time.process_time(), _processor_of_others()
        found = ledger.verify()
        took, busy = time.perf_counter() - start, time.process_time() - used
        helped = _processor_of_others() - others
    each, mine, theirs = (10**6 * taken / found.entries for taken in (took, busy, helped))
    print(
        f"  {kind:31} {found.entries:,} entries in {took:.1f} s: {each:.1f} s for 10^6 by the clock"
        f"  target 30 s  (processor {mine:.1f} s, other processes {theirs:.1f} s;"
        f" {'whole' if found.ok else found})"
    )


def _processor_of_others() -> float:
    """Seconds that processes which this one began, and which have ended, were at work."""
    used = os.times()
    return used.children_user + used.children_system


MONTH = """
SELECT region, COUNT(*) AS n, SUM(income) AS income FROM visits
WHERE month = DATE '{day}' GROUP BY region"""


def by_month(folder: Path, rows: int) -> list[date]:
    """Visits of 60 months in a Hive folder, written month by month; its months."""
    months = [date(2020 + i // 12, 1 + i % 12, 1) for i in range(60)]
    generator, each = np.random.default_rng(29), rows // 60
    for month in months:
        part = folder / f"month={month}"
        part.mkdir(parents=True)
        users = generator.integers(0, max(rows // 20, 1), each)
        regions = np.array(REGIONS)[(users + generator.integers(0, 4, each)) % len(REGIONS)]
        incomes = np.round(generator.lognormal(10.3, 0.7, each), 2)
        table = {"user_id": users, "region": regions, "income": incomes}
        pl.DataFrame(table).write_parquet(part / "0.parquet")
    return months


def one_month(folder: Path, rows: int, rounds: int) -> None:
    """Print what a question over one month of 60 takes, beside the same by hand over its files."""
    months = by_month(folder / "visits", rows)
    table = {
        "source": str(folder / "visits"),
        "unit": "user_id",
        "max_groups": MAX_GROUPS,
        "max_rows": MAX_ROWS,
        "block": {"column": "month", "every": "month"},
        "columns": {
            "month": {"type": "date", "nullable": False},
            "region": {"values": list(REGIONS), "nullable": False},
            "income": {"bounds": [0, MOST_INCOME], "step": 0.01, "nullable": False},
        },
    }
    budget = {"epsilon": 1000, "delta": 1e-6, "per": "block", "ledger": str(folder / "m.ledger")}
    times: dict[str, list[float]] = {"by hand": [], "a release": []}
    text = BY_HAND.replace("{order}", ONE_TERM)
    with (
        dt.open({"budget": budget, "tables": {"visits": table}}) as session,
        duckdb.connect() as raw,
    ):

        def by_hand(month: date) -> object:
            path = folder / "visits" / f"month={month}" / "0.parquet"
            return raw.execute(text.format(path=path)).fetchall()

        def release(month: date) -> object:
            return session.sql(MONTH.format(day=month)).release(epsilon=1)

        sides = {"by hand": by_hand, "a release": release}
        for i in range(rounds + 1):
            for name, ask in sides.items():
                start = time.perf_counter()
                ask(months[7 * i % 60])
                if i:
                    # The first is not timed.
                    times[name].append(time.perf_counter() - start)
    pairs = zip(times["a release"], times["by hand"], strict=True)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    said = ", ".join(
        f"{name} {1000 * statistics.median(held):.1f} ms" for name, held in times.items()
    )
    print(f"  {rows // 60:,} of {rows:,} rows: {said}; ratio {ratio:.2f}  target 1.2")


def charge_until_killed(place: Any, pipe: int) -> None:
    """Charge blocks for ever; say each charge once it returned."""
    draws = random.Random(os.getpid())
    with Ledger.open(place) as ledger:
        for i in range(10**9):
            first = draws.randrange(24_000, 24_100)
            token = f"{os.getpid()}-{time.monotonic_ns()}"
            try:
                charge(ledger, token, BlockSet.of_range(first, first + draws.randrange(6)))
            except LedgerError:
                continue
            os.write(pipe, f"{token}\n".encode())
            if i % 50 == 0:
                charge(ledger, f"{token}-plain", None)


def killed(place: Any, kills: int, pause: float) -> None:
    """Keep eight writers going and kill one after the other; nothing acknowledged may be lost.

    ``pause`` is the longest time in seconds between two kills.
    """
    opened(place).close()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    draws, heard = random.Random(29), b""

    def begun() -> int:
        child = os.fork()
        if child == 0:
            try:
                charge_until_killed(place, writing)
            finally:
                os._exit(1)
        return child

    writers = [begun() for _ in range(8)]
    for _ in range(kills):
        time.sleep(draws.uniform(0.0, pause))
        at = draws.randrange(8)
        os.kill(writers[at], signal.SIGKILL)
        os.waitpid(writers[at], 0)
        writers[at] = begun()
        with suppress(BlockingIOError):
            heard += os.read(reading, 1 << 20)
    for writer in writers:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    os.close(writing)
    os.set_blocking(reading, True)
    while more := os.read(reading, 1 << 20):
        heard += more
    os.close(reading)
    acknowledged = set(heard.decode().split())
    with Ledger.open(place) as ledger:
        found = ledger.verify()
        tokens = {entry.token for entry in ledger.entries() if entry.kind == "charge"}
    print(
        f"  {kills:,} kills of 8 processes: {len(acknowledged):,} charges acknowledged, "
        f"{len(acknowledged - tokens)} lost, over the caps 0"
        if found.ok
        else f"  the ledger does not hold: {found.describe()}"
    )


@contextmanager
def on_server() -> Iterator[Callable[[str], Any]]:
    """Schemas of a server that is started for this, from their names."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres_server import Server

    with Server() as server:
        os.environ["LEDGER_DSN"] = server.database().owner
        yield lambda name: {"postgres": "env:LEDGER_DSN", "schema": name}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--charges", type=int, default=300)
    parser.add_argument("--entries", type=int, default=10**6)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.02)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        if given.charges:
            print("charges on a file, the median:")
            charges(here / "charges.ledger", given.charges, targets=True)
        if given.entries:
            print("verify, by what was charged:")
            for i, kind in enumerate(KINDS):
                written(here / f"long {i}.ledger", given.entries, kind)
                verified(here / f"long {i}.ledger", kind)
                (here / f"long {i}.ledger").unlink()
        if given.rows:
            print("one month of 60 in a Hive folder, the median:")
            one_month(here, given.rows, given.rounds)
        if given.kills:
            print("kills on a file:")
            killed(here / "killed.ledger", given.kills, given.pause)
        if given.postgres:
            with on_server() as schema:
                if given.charges:
                    print("charges on a server, the median:")
                    charges(schema("charges"), given.charges, targets=False)
                if given.kills:
                    print("kills on a server:")
                    killed(schema("killed"), given.kills, given.pause)


if __name__ == "__main__":
    main()

"""The processes that the crash tests start: run as a script, never imported by dither.

``spend``: charge one account until it is empty, and print every entry acknowledged.
``split``: the same through a ledger with a planted bug: it checks, then writes.
``kill``: fork writers one after the other and kill each at a random instant.
``early``: the same with a planted bug: writers acknowledge before they charge.
``fork``: fork while another thread charges through the same object.
``upgrade``: fork processes that bring ledgers of the format before to the newest, and kill each.
Every mode stops by itself, at the latest when the alarm rings.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.errors import BudgetError, LedgerVersionError
from dither.ledger import BlockBudget, Charged, Ledger
from dither.ledger import _chain as ledger_chain
from dither.ledger._place import LedgerSchema, read_place
from dither.privacy import Charge, Promise

PATIENT = Promise("patient")

ACCOUNT, MONTHS = "visits", "months"
REQUEST = "ab" * 32
BUDGET = BudgetFilter(Fraction(10**6), Fraction(0))
BLOCKS = BlockBudget(Calendar(every="month"), BUDGET, BUDGET)
CHARGE = Charge.pure(Fraction(1, 300), PATIENT)
"""No whole number of units, so that every charge is rounded up."""


class SplitLedger(Ledger):
    """The bug that the hammer must see: the check and the write are two transactions."""

    def charge(
        self,
        accounts: Sequence[str],
        charge: Charge,
        *,
        token: str,
        request: str,
        note: Mapping[str, Any],
        tables: Mapping[str, str] | None = None,
    ) -> Charged:
        with self._store.read() as connection:
            self._bear(connection, accounts, charge, None, ledger_chain.read_head(connection).time)
        time.sleep(0.03)
        with self._store.write() as connection:
            at = ledger_chain.read_head(connection)
            spent = {name: self._account(connection, name).spent + charge for name in accounts}
            record = ledger_chain.append(
                connection,
                at,
                "charge",
                totals=spent,
                promise=charge.promise,
                note=note,
                charge=charge,
                token=token,
                request=request,
            )
        return Charged(record.number, record.hash, False, None, "")


def spend(place: Path | LedgerSchema, kind: type[Ledger], in_blocks: bool = False) -> None:
    """Charge until refused; print the number of each acknowledged entry."""
    ledger = kind.open(place)
    account = MONTHS if in_blocks else ACCOUNT
    # Two sets with one block in common.
    more = {"blocks": BlockSet.of_range(*((0, 2) if os.getpid() % 2 else (2, 4)))}
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        token = f"{os.getpid()}-{time.monotonic_ns()}"
        try:
            receipt = ledger.charge(
                [account],
                CHARGE,
                token=token,
                request=REQUEST,
                note={},
                **(more if in_blocks else {}),
            )
        except BudgetError:
            return
        print(receipt.entry, flush=True)
        time.sleep(0.001)  # let the others have their turn


def write_until_killed(place: Path | LedgerSchema, pipe: int, early: bool) -> None:
    """Open, charge and answer for ever; acknowledge each step only once it returned."""
    ledger = Ledger.open(place)
    ledger.ensure_account(ACCOUNT, BUDGET, PATIENT)
    ledger.ensure_account(MONTHS, BLOCKS, PATIENT)
    for number in itertools.count():
        token = f"{os.getpid()}-{time.monotonic_ns()}"
        if early:
            os.write(pipe, f"charge {token}\n".encode())
        # One account, and both, each block of which has spent something else than the last.
        blocks = BlockSet.of_range(number, number + number % 5) if number % 3 else None
        accounts = [ACCOUNT] if blocks is None else [ACCOUNT, MONTHS]
        receipt = ledger.charge(
            accounts, CHARGE, token=token, request=REQUEST, note={}, blocks=blocks
        )
        if not early:
            os.write(pipe, f"charge {token}\n".encode())
        if receipt.entry % 2:
            ledger.store_answer(receipt.entry, token)
            os.write(pipe, f"answer {token}\n".encode())


def kill_one(place: Path | LedgerSchema, after: float, early: bool, making: bool) -> list[str]:
    """Start a writer, kill it, and give back what it had acknowledged.

    The time to its death counts from its start while it makes a ledger, else from its first
    acknowledgement, so that a slow machine sees as many of them.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os.close(reading)
        write_until_killed(place, writing, early)
        os._exit(1)
    os.close(writing)
    text = b"" if making else os.read(reading, 65536)
    end = time.monotonic() + after
    while (left := end - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            text += os.read(reading, 65536)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 65536):
        text += more
    os.close(reading)
    # A line without its end was never acknowledged.
    return text.decode().split("\n")[:-1]


def another(place: Path | LedgerSchema, number: int) -> Path | LedgerSchema:
    """Where there is no ledger yet, beside one."""
    if isinstance(place, Path):
        return place.with_name(f"made-{number}.ledger")
    return LedgerSchema(place.dsn, f"{place.schema} made {number}")


def journal(place: Path | LedgerSchema) -> bool:
    """Whether a dead writer left the half of a commit in a file."""
    return isinstance(place, Path) and place.with_name(place.name + "-journal").exists()


def kill(place: Path | LedgerSchema, rounds: int, early: bool) -> None:
    """Kill writers at random instants; after each, open the ledger and look for what was said."""
    instants = random.Random(20260512)
    lost, unfinished, acknowledged, charges = 0, 0, 0, 0
    for number in range(rounds):
        # Every fourth writer is killed while it makes a new ledger.
        making = number % 4 == 3
        target = another(place, number) if making else place
        said = kill_one(target, instants.uniform(0.0, 0.03), early, making)
        unfinished += journal(target)
        ledger = Ledger.open(target)
        entries = ledger.entries()
        tokens = {entry.token: entry.number for entry in entries if entry.kind == "charge"}
        answers = {entry.answer for entry in entries if entry.kind == "answer"}
        for line in said:
            what, token = line.split()
            lost += token not in (tokens if what == "charge" else answers)
        found = ledger.verify()
        assert found.ok, found.describe()
        # The next writer finishes what the dead one left behind.
        ledger.ensure_account(ACCOUNT, BUDGET, PATIENT)
        ledger.charge([ACCOUNT], CHARGE, token=f"after-{number}", request=REQUEST, note={})
        if not making:
            acknowledged += sum(line.startswith("charge") for line in said)
            charges = sum(not str(token).startswith("after-") for token in tokens)
        ledger.close()
    print(
        json.dumps(
            {
                "lost": lost,
                "unfinished": unfinished,
                "acknowledged": acknowledged,
                "charges": charges,
            }
        )
    )


def fork(place: Path | LedgerSchema) -> None:
    """Threads charge through one object while children are forked that charge through it too."""
    ledger = Ledger.open(place, timeout=10.0)
    ledger.ensure_account(ACCOUNT, BUDGET, PATIENT)
    done = threading.Event()
    mine = [0, 0]

    def charge(who: str) -> None:
        token = f"{who}-{os.getpid()}-{time.monotonic_ns()}"
        ledger.charge([ACCOUNT], CHARGE, token=token, request=REQUEST, note={})

    def work(slot: int) -> None:
        while not done.is_set():
            charge(f"thread-{slot}")
            mine[slot] += 1

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(2)]
    for thread in threads:
        thread.start()
    children = 20
    failed = 0
    for _ in range(children):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            code = 1
            try:
                charge("child")
                code = 0
            finally:
                os._exit(code)
        failed += os.waitpid(child, 0)[1] != 0
    done.set()
    for thread in threads:
        thread.join()
    found = ledger.verify()
    charges = sum(entry.kind == "charge" for entry in ledger.entries())
    print(json.dumps({"failed": failed, "ok": found.ok, "missing": sum(mine) + children - charges}))


def upgrade(place: Path | LedgerSchema, rounds: int) -> None:
    """Kill processes amid an upgrade: the ledger is in one format or in the other, and whole."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from dither.ledger import _witness
    from ledger.earlier import earlier

    instants = random.Random(29)
    counts = {"old": 0, "new": 0}
    took = 0.0
    for number in range(rounds):
        # One ledger under many names, which a process would take for copies.
        _witness._process.clear()
        target = another(place, number)
        earlier(target)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            with Ledger.open(target) as ledger:
                os.write(writing, b".")
                ledger.upgrade()
            os._exit(0)
        os.read(reading, 1)
        begun = time.monotonic()
        if number:
            # Somewhere in the time that the first took, or soon after it.
            time.sleep(instants.uniform(0.0, 1.5 * took))
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        took = took or time.monotonic() - begun
        os.close(reading)
        os.close(writing)
        charge = Charge(0, 0, Fraction(1, 1000), 0, PATIENT)
        with Ledger.open(target, create=False) as ledger:
            found = ledger.verify()
            assert found.ok, found.describe()
            try:
                ledger.charge(["dataset:patient"], charge, token="z", request=REQUEST, note={})
                counts["new"] += 1
                assert found.entries == 11
            except LedgerVersionError:
                counts["old"] += 1
                assert found.entries == 10
                assert ledger.upgrade()
                ledger.charge(["dataset:patient"], charge, token="z", request=REQUEST, note={})
            answer = ledger.replay(
                ["dataset:patient", "analyst:ann:patient"], token="a", request="aa" * 32
            )
            assert answer is not None
            assert answer.answer == "answer of three"
            found = ledger.verify()
            assert (found.ok, found.entries) == (True, 12), found.describe()
    print(json.dumps(counts))


def main() -> None:
    """Run the mode that the first argument names on the ledger that the second names."""
    signal.alarm(300)
    mode, place = sys.argv[1], read_place(sys.argv[2])
    if mode in ("spend", "split", "blocks"):
        spend(place, SplitLedger if mode == "split" else Ledger, mode == "blocks")
    elif mode == "upgrade":
        upgrade(place, int(sys.argv[3]))
    elif mode in ("kill", "early"):
        kill(place, int(sys.argv[3]), mode == "early")
    else:
        fork(place)


if __name__ == "__main__":
    main()

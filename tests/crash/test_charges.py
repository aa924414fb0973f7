"""Real processes against one ledger: no overspending, no lost charge, whatever dies when."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.ledger import UNIT, BlockBudget, Ledger
from dither.ledger._place import LedgerSchema
from dither.privacy import Charge, Promise
from ledger.racing import raced

PATIENT = Promise("patient")

WORKER = Path(__file__).with_name("ledger_worker.py")
PROCESSES = 8
CHARGE = Charge.pure(Fraction(1, 300), PATIENT).rounded_up(UNIT)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")


def hammer(
    place: Path | LedgerSchema, mode: str, epsilon: Fraction
) -> tuple[Ledger, Counter[int], list[int]]:
    """Let processes charge one account until each is refused.

    Returns
    -------
    Ledger, Counter, list
        The ledger; how often each entry was acknowledged; how many charges each process made.
    """
    ledger = Ledger.open(place)
    ledger.ensure_account("visits", BudgetFilter(epsilon, Fraction(0)), PATIENT)
    said = [list(map(int, n)) for n in raced([[str(WORKER), mode, str(place)]] * PROCESSES)]
    return ledger, Counter(n for lines in said for n in lines), [len(lines) for lines in said]


def test_eight_processes_never_overspend_by_one_unit(place: Path | LedgerSchema) -> None:
    """What is spent is what was acknowledged, within the cap, and one more would not fit."""
    # Room for many charges and for all but one unit of another.
    assert CHARGE.epsilon is not None
    cap = (251 if isinstance(place, Path) else 81) * CHARGE.epsilon - UNIT
    ledger, acknowledged, shares = hammer(place, "spend", cap)
    spent = ledger.balance("visits").spent.epsilon
    assert spent is not None
    assert set(acknowledged.values()) == {1}
    assert spent == len(acknowledged) * CHARGE.epsilon
    assert spent <= cap < spent + CHARGE.epsilon
    assert {e.number for e in ledger.entries() if e.kind == "charge"} == set(acknowledged)
    assert sum(share > 0 for share in shares) >= 2
    found = ledger.verify()
    assert found.ok, found.describe()


def test_eight_processes_never_overspend_a_block(place: Path | LedgerSchema) -> None:
    """Two halves charge months 0 to 2 and 2 to 4: the month that both read is what ends it."""
    assert CHARGE.epsilon is not None
    cap = (120 if isinstance(place, Path) else 40) * CHARGE.epsilon - UNIT
    ledger = Ledger.open(place)
    each = BudgetFilter(cap, Fraction(0))
    ledger.ensure_account("months", BlockBudget(Calendar(every="month"), each), PATIENT)
    said = raced([[str(WORKER), "blocks", str(place)]] * PROCESSES)
    acknowledged = [n for lines in said for n in lines]
    blocks = ledger.balance("months").blocks
    assert blocks is not None
    first, both, last = (blocks.of(month).epsilon for month in (0, 2, 4))
    assert None not in (first, both, last)
    assert first + last == both == len(set(acknowledged)) * CHARGE.epsilon  # type: ignore[operator]
    assert len(set(acknowledged)) == len(acknowledged)
    assert both <= cap < both + CHARGE.epsilon  # type: ignore[operator]
    found = ledger.verify()
    assert found.ok, found.describe()


@pytest.mark.parametrize("rounds", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_an_upgrade_that_is_killed_is_made_or_is_not(
    place: Path | LedgerSchema, rounds: int
) -> None:
    """Killed at a random instant: the old ledger or the new one, whole, and it goes on."""
    counts = run("upgrade", place, rounds)
    assert counts["old"] + counts["new"] == rounds
    # The first is let through; of many others some are killed before they are done.
    assert counts["new"] > 0
    assert counts["old"] > 0 or rounds == 10


def test_the_hammer_sees_a_check_outside_the_transaction(place: Path | LedgerSchema) -> None:
    """A ledger that checks first and writes later overspends here, and `verify` says so."""
    # Eight processes with 30 ms between check and write: those that look while the last charge
    # that fits is on its way are many, every time.
    assert CHARGE.epsilon is not None
    cap = 20 * CHARGE.epsilon
    ledger, acknowledged, _ = hammer(place, "split", cap)
    spent = ledger.balance("visits").spent.epsilon
    assert spent is not None
    assert spent == len(acknowledged) * CHARGE.epsilon > cap
    found = ledger.verify()
    assert not found.ok
    assert "more to account 'visits' than its caps bear" in str(found.problem)


def run(mode: str, place: Path | LedgerSchema, *arguments: object) -> dict[str, Any]:
    """Run a worker that starts, kills and counts by itself."""
    done = subprocess.run(
        [sys.executable, str(WORKER), mode, str(place), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=400,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_no_acknowledged_charge_is_lost_to_a_kill(place: Path | LedgerSchema) -> None:
    """Writers killed at random instants, every fourth while it makes the ledger.

    After each, the ledger opens, its chain is whole, and every charge and answer that was
    acknowledged is in it.
    """
    rounds = 120 if isinstance(place, Path) else 40
    counts = run("kill", place, rounds)
    assert counts["lost"] == 0
    # At most one charge a kill was written and not acknowledged.
    assert counts["acknowledged"] <= counts["charges"] <= counts["acknowledged"] + rounds
    assert counts["acknowledged"] >= rounds * 3 // 4
    if isinstance(place, Path):
        # Kills fell into the middle of a commit and left a journal to roll back: about every third
        # does, so that none of 120 would has a chance far below 1e-6.
        assert counts["unfinished"] > 0
        folder = place.parent.iterdir()
        leftovers = {file.suffix for file in folder if not file.name.startswith(".")}
        assert leftovers == {".ledger"}


def test_the_kills_see_an_acknowledgement_before_the_commit(place: Path | LedgerSchema) -> None:
    """A writer that says "charged" too early is caught; each kill does so about every third time.

    That none of 40 does has a chance below 1e-7.
    """
    assert run("early", place, 40)["lost"] > 0


def test_a_fork_amid_charges_harms_nobody(place: Path | LedgerSchema) -> None:
    """Two threads charge through one object while 20 children are forked that charge too."""
    assert run("fork", place) == {"failed": 0, "ok": True, "missing": 0}

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
from dither.ledger import UNIT, Ledger
from dither.privacy import Charge, Promise
from ledger.racing import raced

PATIENT = Promise("patient")

WORKER = Path(__file__).with_name("ledger_worker.py")
PROCESSES = 8
CHARGE = Charge.pure(Fraction(1, 300), PATIENT).rounded_up(UNIT)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")


def hammer(path: Path, mode: str, epsilon: Fraction) -> tuple[Ledger, Counter[int], list[int]]:
    """Let processes charge one account until each is refused.

    Returns
    -------
    Ledger, Counter, list
        The ledger; how often each entry was acknowledged; how many charges each process made.
    """
    ledger = Ledger.open(path)
    ledger.ensure_account("visits", BudgetFilter(epsilon, Fraction(0)), PATIENT)
    said = [list(map(int, n)) for n in raced([[str(WORKER), mode, str(path)]] * PROCESSES)]
    return ledger, Counter(n for lines in said for n in lines), [len(lines) for lines in said]


def test_eight_processes_never_overspend_by_one_unit(tmp_path: Path) -> None:
    """What is spent is what was acknowledged, within the cap, and one more would not fit."""
    # Room for 250 charges and for all but one unit of another.
    assert CHARGE.epsilon is not None
    cap = 251 * CHARGE.epsilon - UNIT
    ledger, acknowledged, shares = hammer(tmp_path / "x.ledger", "spend", cap)
    spent = ledger.balance("visits").spent.epsilon
    assert spent is not None
    assert set(acknowledged.values()) == {1}
    assert spent == len(acknowledged) * CHARGE.epsilon
    assert spent <= cap < spent + CHARGE.epsilon
    assert {e.number for e in ledger.entries() if e.kind == "charge"} == set(acknowledged)
    assert sum(share > 0 for share in shares) >= 2
    found = ledger.verify()
    assert found.ok, found.describe()


def test_the_hammer_sees_a_check_outside_the_transaction(tmp_path: Path) -> None:
    """A ledger that checks first and writes later overspends here, and `verify` says so."""
    # Eight processes with 30 ms between check and write: those that look while the last charge
    # that fits is on its way are many, every time.
    assert CHARGE.epsilon is not None
    cap = 20 * CHARGE.epsilon
    ledger, acknowledged, _ = hammer(tmp_path / "x.ledger", "split", cap)
    spent = ledger.balance("visits").spent.epsilon
    assert spent is not None
    assert spent == len(acknowledged) * CHARGE.epsilon > cap
    found = ledger.verify()
    assert not found.ok
    assert "more to account 'visits' than its caps bear" in str(found.problem)


def run(mode: str, path: Path, *arguments: object) -> dict[str, Any]:
    """Run a worker that starts, kills and counts by itself."""
    done = subprocess.run(
        [sys.executable, str(WORKER), mode, str(path), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=400,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_no_acknowledged_charge_is_lost_to_a_kill(tmp_path: Path) -> None:
    """120 writers killed at random instants, every fourth while it makes the ledger.

    After each, the ledger opens, its chain is whole, and every charge and answer that was
    acknowledged is in it.
    """
    rounds = 120
    counts = run("kill", tmp_path / "x.ledger", rounds)
    assert counts["lost"] == 0
    # At most one charge a kill was written and not acknowledged.
    assert counts["acknowledged"] <= counts["charges"] <= counts["acknowledged"] + rounds
    assert counts["acknowledged"] >= rounds * 3 // 4
    # Kills fell into the middle of a commit and left a journal to roll back: about every third
    # does, so that none of 120 would has a chance far below 1e-6.
    assert counts["unfinished"] > 0
    leftovers = {file.suffix for file in tmp_path.iterdir() if not file.name.startswith(".")}
    assert leftovers == {".ledger"}


def test_the_kills_see_an_acknowledgement_before_the_commit(tmp_path: Path) -> None:
    """A writer that says "charged" too early is caught; each kill does so about every third time.

    That none of 60 does has a chance below 1e-9.
    """
    assert run("early", tmp_path / "x.ledger", 60)["lost"] > 0


def test_a_fork_amid_charges_harms_nobody(tmp_path: Path) -> None:
    """Two threads charge through one object while 20 children are forked that charge too."""
    assert run("fork", tmp_path / "x.ledger") == {"failed": 0, "ok": True, "missing": 0}

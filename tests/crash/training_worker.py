"""The process that the crash test of training starts: run as a script, never imported by dither.

Forks trainings of one checkpoint on one account, kills each at a random instant until one ends, and
prints what the model is and what was charged, beside the model of a run under the same key that
nobody killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch

from dither.accounting import BudgetFilter
from dither.errors import ArgumentError
from dither.learn.deep import FixedOrder, _checkpoint, train, trained
from dither.ledger import Ledger
from dither.privacy import Promise

torch.set_num_threads(1)
ROWS = torch.rand(60, 4, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(60) % 2
HOW: dict[str, dict[str, Any]] = {
    "sampled": {"steps": 24, "rate": 0.3, "clip": "adaptive", "optimizer": "adam"},
    "ordered": {"order": FixedOrder(10, 4)},
}


def one_run(place: Path, how: str, told: int | None = None) -> list[float]:
    """A run that is kept after every step; its parameters. It tells when it is under way.

    Whatever is heard of was charged by then, in full.
    """
    account: dict[str, Any] = {}
    if told is not None:
        book = Ledger.open(place.with_name("a.ledger"))
        account = {"ledger": book, "accounts": "all", "unit": "patient", "token": "model"}

    def tell(now: Any) -> None:
        if told is not None:
            os.write(told, b"." if book.balance("all").spent.epsilon == 2 else b"!")
        time.sleep(0.02)  # a run takes ten times as long as one waits for its end

    torch.manual_seed(7)
    model = torch.nn.Linear(4, 2)
    train(
        model, (ROWS, LABELS), epsilon=2, delta=1e-5, checkpoint=place, every=1, progress=tell,
        **HOW[how], **account,
    )  # fmt: skip
    return [float(x) for p in model.parameters() for x in p.detach().flatten()]


def killed(place: Path, how: str) -> dict[str, Any]:
    """Kill runs at random instants until one has ended: every third before its first step."""
    kills = 0
    with Ledger.open(place.with_name("a.ledger")) as book:
        book.ensure_account(
            "all", BudgetFilter(Fraction(3), Fraction(3, 10**5)), Promise("patient")
        )
    for attempt in range(120):
        heard, told = os.pipe()
        child = os.fork()
        if not child:
            try:
                one_run(place, how, told)
                os._exit(0)
            except ArgumentError as error:
                os._exit(2 if "has ended" in str(error) else 3)
            except BaseException:
                os._exit(4)
        os.close(told)
        if attempt % 3 and os.read(heard, 1) == b"!":
            return {"failed": "a step before the charge", "kills": kills}
        time.sleep(random.random() * 0.05)
        os.kill(child, signal.SIGKILL)
        os.close(heard)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            kills += 1
        elif (code := os.WEXITSTATUS(status)) in (0, 2):
            break
        else:
            return {"failed": code, "kills": kills}
    model = trained(torch.nn.Linear(4, 2), place)
    with Ledger.open(place.with_name("a.ledger")) as book:
        charges = [entry for entry in book.entries("all") if entry.kind == "charge"]
    return {
        "kills": kills,
        "charges": [str(entry.charge.epsilon) for entry in charges if entry.charge],
        "model": [float(x) for p in model.parameters() for x in p.detach().flatten()],
    }


def main(folder: Path, how: str) -> None:
    """Both runs, under one key and from one first model."""
    _checkpoint.fresh_key = lambda: bytes(range(32))
    whole = one_run(folder / "first", how)
    print(json.dumps({"whole": whole, **killed(folder / "killed", how)}))


if __name__ == "__main__":
    signal.alarm(300)
    main(Path(sys.argv[1]), sys.argv[2])

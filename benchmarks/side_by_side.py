"""Sides of a comparison, each in a process of its own, all of them in turn in every round.

A benchmark names its sides as functions that take the table's path, prepare, and give the work that
is timed. ``main`` runs them, prints seconds and peak memory, then the ratios.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Side = Callable[[Path], Callable[[], object]]


def measure(side: Side, path: Path) -> dict[str, float]:
    """One side in this process: seconds of its second run, and the process's peak memory."""
    work = side(path)
    work()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "megabytes": peak / (2**20 if sys.platform == "darwin" else 2**10)}


def compare(
    module: str, path: Path, rounds: int, sides: Sequence[str]
) -> dict[str, dict[str, float]]:
    """All sides in turn, each in a fresh process: medians of the rounds. One that fails is left
    out, with a line that says so."""
    found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side in list(found):
            command = [sys.executable, "-m", module, "--side", side, str(path)]
            run = subprocess.run(command, check=False, capture_output=True, text=True)
            if run.returncode:
                last = run.stderr.strip().splitlines()[-1:] or ["no message"]
                print(f"{side}: not measured: {last[0][:200]}")
                del found[side]
                continue
            found[side].append(json.loads(run.stdout.splitlines()[-1]))
    return {
        side: {name: statistics.median(r[name] for r in runs) for name in runs[0]}
        for side, runs in found.items()
    }


def main(
    module: str,
    about: str | None,
    sides: Mapping[str, Side],
    ratios: Sequence[tuple[str, str, str]],
    table: Callable[[int, Path], Path],
) -> None:
    """Measure and print.

    Parameters
    ----------
    module : str
        The benchmark's own name, to start its sides by.
    about : str
        For ``--help``.
    sides : mapping of str to Side
    ratios : sequence of (ours, peer, what is to be reached)
    table : callable
        From a number of rows and a folder to the path of the table.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--only", nargs="+", choices=list(sides), help="these sides alone")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("path", nargs="?", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure(sides[options.side], options.path)))
        return
    path = table(options.rows, options.folder)
    found = compare(module, path, options.rounds, options.only or list(sides))
    print(f"{options.rows:,} rows, median of {options.rounds} rounds")
    for side, figures in found.items():
        print(f"{side:24} {figures['seconds']:8.3f} s {figures['megabytes']:8.0f} MB")
    for ours, peer, reach in ratios:
        if ours in found and peer in found:
            ratio = found[ours]["seconds"] / found[peer]["seconds"]
            print(f"{ours} / {peer}: {ratio:.2f}" + (f"  (reach: {reach})" if reach else ""))

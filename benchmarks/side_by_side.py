"""Sides of a comparison, each in a process of its own, all of them in turn in every round.

A benchmark names its sides as functions that take the table's path, prepare, and give the work that
is timed. ``main`` runs them, prints seconds, the processors' time and peak memory, then the ratios,
each the median of those of single rounds: what else the machine does then slows both sides of a
pair, and their processors' time less than what the clock says.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Work = Callable[[], object]
Side = Callable[[Path], Work]

PAGE = resource.getpagesize()
TICK = 0.02
"""Seconds between two looks at the memory of other processes."""
SETTLED = 0.2
"""Seconds between two runs."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sides by name, and which are held against which.

    Parameters
    ----------
    sides : mapping of str to Side
        Given the table, each gives the work that is timed. A work whose attribute ``processes`` is
        a function gives by it the ids of processes that work for it, such as a server's: their
        memory and their processors' time, and those of all that they start, are its own.
    ratios : sequence of (ours, peer, what is to be reached)
    rows, rounds : int
        How many, where the command line does not say.
    once : frozenset of str
        Sides that take so long that they run in the first round alone, and there once.
    """

    sides: Mapping[str, Side]
    ratios: Sequence[tuple[str, str, str]]
    rows: int = 5_000_000
    rounds: int = 5
    once: frozenset[str] = frozenset()


def _tree(roots: Collection[int]) -> set[int]:
    """Processes and all that they started, where the system lists them."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, left = set[int](), list(roots)
    while left:
        process = left.pop()
        if process not in found:
            found.add(process)
            left += children.get(process, [])
    return found


def _resident(process: int) -> int:
    """Bytes that a process alone has in memory: what several share is counted once, by none."""
    try:
        _, size, shared, *_ = Path(f"/proc/{process}/statm").read_text().split()
    except OSError:
        return 0
    return (int(size) - int(shared)) * PAGE


def _processors(others: Collection[int]) -> float:
    """Seconds that processors have spent on this process, on others, and on all that they started.

    Of one that has ended the process that started it says what it took.
    """
    ticks = 0
    if Path("/proc/self").exists():
        here = os.getpid()
        for process in _tree([here, *others]):
            try:
                stat = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            ticks += sum(map(int, stat[13:15] if process == here else stat[11:15]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


class _Memory:
    """The largest memory of this process's children, and of other processes that are named."""

    def __init__(self, others: Callable[[], Collection[int]]) -> None:
        self.peak = 0
        self._others = others
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        own = int(Path("/proc/self").readlink().name) if Path("/proc/self").exists() else 0
        while own and not self._done.wait(TICK):
            found = _tree([own, *self._others()]) - {own}
            self.peak = max(self.peak, sum(map(_resident, found)))

    def stop(self) -> int:
        self._done.set()
        self._thread.join()
        return self.peak


def measure(side: Side, path: Path, *, once: bool = False) -> dict[str, float]:
    """One side in this process: seconds of its second run, or with ``once`` of its only one, by the
    clock and of processors, and the peak memory of its own and of the processes that it started or
    names.

    Those are watched in the first run: a thread that looks at them would hold up the second. What
    the first left to threads of its own, such as closing an engine, is no part of the second.
    """
    work = side(path)
    processes: Callable[[], Collection[int]] = getattr(work, "processes", lambda: ())
    memory = _Memory(processes)
    if once:
        took = _seconds(work, processes)
        others = memory.stop()
    else:
        work()
        others = memory.stop()
        time.sleep(SETTLED)
        took = _seconds(work, processes)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    own *= 1 if sys.platform == "darwin" else 2**10
    return took | {"megabytes": (own + others) / 2**20}


def _seconds(work: Work, processes: Callable[[], Collection[int]]) -> dict[str, float]:
    spent, start = _processors(processes()), time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "processors": _processors(processes()) - spent}


def compare(
    command: Sequence[str],
    path: Path,
    rounds: int,
    sides: Sequence[str],
    once: frozenset[str] = frozenset(),
) -> dict[str, list[dict[str, float]]]:
    """All sides in turn, each in a fresh process, every other round backwards.

    One that fails is left out, with a line that says so.
    """
    found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in list(found)[:: -1 if number % 2 else 1]:
            if number and side in once:
                continue
            asked = [sys.executable, "-m", *command, "--side", side, str(path)]
            run = subprocess.run(asked, check=False, capture_output=True, text=True)
            if run.returncode:
                last = run.stderr.strip().splitlines()[-1:] or ["no message"]
                print(f"{side}: not measured: {last[0][:200]}")
                del found[side]
                continue
            found[side].append(json.loads(run.stdout.splitlines()[-1]))
            seconds = found[side][-1]["seconds"]
            print(f"round {number + 1}: {side}: {seconds:.3f} s", file=sys.stderr, flush=True)
    return found


def _ratio(rounds: Sequence[tuple[dict[str, float], dict[str, float]]], what: str) -> str:
    """The median of what two sides took in one round each, one by the other, and the extremes."""
    found = [own[what] / other[what] for own, other in rounds if other[what] > 0]
    if not found:
        return "unknown"
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def main(
    command: str,
    about: str | None,
    comparison: Comparison,
    table: Callable[[int, Path], Path],
    arguments: Sequence[str] | None = None,
) -> None:
    """Measure and print.

    Parameters
    ----------
    command : str
        The benchmark's own module and words, to start its sides by.
    about : str
        For ``--help``.
    comparison : Comparison
    table : callable
        From a number of rows and a folder to the path of the table.
    arguments : sequence of str, optional
        Those of the command line where left out.
    """
    sides = comparison.sides
    parser = argparse.ArgumentParser(prog=f"python -m {command}", description=about)
    parser.add_argument("--rows", type=int, default=comparison.rows)
    parser.add_argument("--rounds", type=int, default=comparison.rounds)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--only", nargs="+", choices=list(sides), help="these sides alone")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("path", nargs="?", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.side:
        once = options.side in comparison.once
        print(json.dumps(measure(sides[options.side], options.path, once=once)))
        return
    path = table(options.rows, options.folder)
    found = compare(
        command.split(), path, options.rounds, options.only or list(sides), comparison.once
    )
    print(f"{options.rows:,} rows; of {options.rounds} rounds the median, and the least")
    for side, runs in found.items():
        seconds, spent = ([run[what] for run in runs] for what in ("seconds", "processors"))
        peak = max(run["megabytes"] for run in runs)
        print(
            f"{side:28} {statistics.median(seconds):8.3f} s {min(seconds):8.3f} s "
            f"{peak:7.0f} MB  (processors {statistics.median(spent):.2f} s)"
        )
    for ours, peer, reach in comparison.ratios:
        if ours in found and peer in found:
            # Rounds in which both were measured come first.
            rounds = list(zip(found[ours], found[peer], strict=False))
            shown = _ratio(rounds, "seconds")
            further = statistics.median(own["seconds"] - other["seconds"] for own, other in rounds)
            shown += f", {further * 1000:+.0f} ms; of processors {_ratio(rounds, 'processors')}"
            print(f"{ours} / {peer}: {shown}" + (f"  (reach: {reach})" if reach else ""))

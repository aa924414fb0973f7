"""How Spark divides a release among its executors: its stages, and what each read and handed on.

Run with ``python -m benchmarks.spark_stages [--rows N] [--master local[2]] [--memory 2GB]
[--medians]``. It asks the user-level question of ``benchmarks.engines`` once, and prints what Spark
has recorded of each stage that ran: what it is, tasks, rows read, rows and megabytes through
shuffles, megabytes spilled to disk, and the memory of a task; and the peak memory of its process.
A first run holds what Spark compiles, and a local Spark reads the list of keys in stages of its
own, of which no row is one of the table: these are left out. Warnings that Spark prints before the
table are its own.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.engines import MEANS, MEDIANS, policy, visits

MEGA = 2**20

HEADS = ("tasks", "rows read", "rows in", "rows out", "MB out", "MB spilled", "MB a task")
"""Read from the table; shuffled in and out; memory is the mean of the tasks' peaks."""


def stages(context: Any) -> list[Any]:
    """Spark's record of the stages that ran, the first one first."""
    store = context._jsc.sc().statusStore()
    none = context._jvm.java.util.ArrayList()
    empty = context._gateway.new_array(context._jvm.double, 0)
    found = store.stageList(none, False, False, empty, none)
    listed = [found.apply(i) for i in range(found.size())]
    ran = (s for s in listed if s.numCompleteTasks())
    held = (s for s in ran if s.inputRecords() or s.shuffleReadRecords())
    return sorted(held, key=lambda s: s.stageId())


def called(stage: Any) -> str:
    """What a stage begins with and ends in."""
    begins = "scan" if stage.inputRecords() else "by shuffle"
    return f"{begins}, {'sums' if stage.shuffleWriteRecords() else 'result'}"


def peak(context: Any) -> str:
    """The most memory that Spark's process has had, where the system says."""
    process = context._jvm.java.lang.ProcessHandle.current().pid()
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return "unknown"
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return f"{kilobytes / 2**10:,.0f} MB"


def main() -> None:
    """Ask once, and print the stages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_stages", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--medians", action="store_true")
    options = parser.parse_args()
    import dither as dt

    path = visits(options.rows, options.folder)
    engine = {"spark": options.master, "memory": options.memory}
    with tempfile.TemporaryDirectory() as folder:
        source = {"spark": str(path.resolve())}
        with dt.open(policy(folder, source, user_level=True, engine=engine)) as session:
            job = session.sql(MEDIANS if options.medians else MEANS)._plan.job
            opened: Any = session._opened.engine
            start = time.perf_counter()
            opened.run(job, session.schema, secrets.token_bytes(32))
            context = opened._sessions.own.sparkContext
            seconds = time.perf_counter() - start
            print(
                f"{options.rows:,} rows on {options.master}: {seconds:.1f} s, the first run; its "
                f"process had at most {peak(context)}, of which {options.memory} are its heap"
            )
            print(" ".join([f"{'stage':<14}", *(f"{head:>12}" for head in HEADS)]))
            for stage in stages(context):
                cells = (
                    f"{stage.numCompleteTasks():,}",
                    f"{stage.inputRecords():,}",
                    f"{stage.shuffleReadRecords():,}",
                    f"{stage.shuffleWriteRecords():,}",
                    f"{stage.shuffleWriteBytes() / MEGA:,.1f}",
                    f"{stage.diskBytesSpilled() / MEGA:,.1f}",
                    f"{stage.peakExecutionMemory() / MEGA / stage.numCompleteTasks():,.1f}",
                )
                print(" ".join([f"{called(stage):<14}", *(f"{cell:>12}" for cell in cells)]))


if __name__ == "__main__":
    main()

"""The auditor's own errors: false alarms on true claims, and the planted bugs that it catches.

Run with ``python -m benchmarks.audit [--runs 300]``; some minutes. A false alarm is a "violated" of
a claim that holds; the auditor promises at most 1 % of them at 99 % confidence. The mechanisms are
those whose claim is met with equality by an event, or nearly, where false alarms are likeliest.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from dither import mechanisms
from dither._subjects import declared
from dither.examples.planted import planted_bugs
from dither.lab.audit import Outcome, audit
from dither.numeric import SimulatedWords

QUICK = (
    "discrete Laplace",
    "discrete Gaussian",
    "staircase",
    "Tulap",
    "randomised response",
    "quantile tree",
)
SAMPLES = 10_000
SIZES = (3_000, 10_000, 100_000)


def false_alarms(runs: int) -> int:
    """Print how often true claims are accused; return how many mechanisms were, too often."""
    print(
        "| true claim | runs | accused | highest certified ε | of |\n"
        "| --- | --- | --- | --- | --- |"
    )
    bad = 0
    for subject in declared(mechanisms):
        if subject.name not in QUICK:
            continue
        found = [
            audit(
                subject.mechanism,
                subject.d0,
                subject.d1,
                subject.epsilon,
                subject.delta,
                samples=SAMPLES,
                words=SimulatedWords(run),
            )
            for run in range(runs)
        ]
        accused = sum(f.verdict is Outcome.VIOLATED for f in found)
        bad += accused > 0.01 * runs
        highest = max(f.lower for f in found)
        print(
            f"| {subject.name} | {runs} | {accused} | {highest:.3f} | {float(subject.epsilon):g} |"
        )
    return bad


def detection(runs: int) -> int:
    """Print how often planted bugs are caught, and how long it takes; return how many are not."""
    heads = "".join(f" of {size:,} |" for size in SIZES)
    print(f"\n| planted bug |{heads} certified ε | seconds, {SIZES[-1]:,} |")
    print("| --- |" + " --- |" * (len(SIZES) + 2))
    missed = 0
    for bug in planted_bugs():
        caught, last = [], []
        for size in SIZES:
            last = [
                audit(
                    bug.mechanism,
                    bug.d0,
                    bug.d1,
                    bug.epsilon,
                    samples=size,
                    words=SimulatedWords(run),
                )
                for run in range(runs)
            ]
            caught.append(sum(f.verdict is Outcome.VIOLATED for f in last))
        missed += caught[-1] < runs
        row = "".join(f" {c}/{runs} |" for c in caught)
        lower = statistics.median(f.lower for f in last)
        slowest = max(f.seconds for f in last)
        print(f"| {bug.name} |{row} {lower:.2f} | {slowest:.1f} |")
    return missed


def main() -> int:
    """Print both tables; 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="of each true claim")
    parser.add_argument("--caught", type=int, default=10, help="runs of each bug and size")
    options = parser.parse_args()
    print(f"{SAMPLES:,} outputs of each dataset, 99 % confidence\n")
    return 1 if false_alarms(options.runs) + detection(options.caught) else 0


if __name__ == "__main__":
    sys.exit(main())

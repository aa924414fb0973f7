"""Attacks beside their peer: least deviations by ADMM against HiGHS, and the census table.

Run with ``python -m benchmarks.attack [--people 1000] [--no-peer] [--large]``; about a minute, most
of it HiGHS's. Both decoders get the same queries and answers; what counts is the ratio.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np

from dither import attack
from dither.lab.attack.reconstruction._decoders import DECODERS, l1_oracle

SIGMA = 5.0


def decoders(people: int, queries: int, peer: bool) -> None:
    """Print seconds, bits read and the sum of deviations of every decoder."""
    rng = np.random.default_rng(1)
    secret = rng.integers(0, 2, people, dtype=np.int8)
    q = rng.integers(0, 2, (queries, people), dtype=np.int8)
    a = q.astype(np.float32) @ secret + rng.normal(0.0, SIGMA, queries)
    print(f"\n{people:,} people, {queries:,} queries, Gaussian noise of {SIGMA:g}")
    print("| decoder | seconds | bits read | sum of deviations |\n| --- | --- | --- | --- |")
    sides = dict(DECODERS) | ({"HiGHS": l1_oracle} if peer else {})
    took = {}
    for name, decode in sides.items():
        rounds = 1 if name == "HiGHS" or people > 2000 else 3
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            x = decode(q, a)
            times.append(time.perf_counter() - start)
        took[name] = statistics.median(times)
        right = float(np.mean((x > 0.5) == secret))
        off = float(np.abs(q.astype(np.float32) @ x - a).sum())
        print(f"| {name} | {took[name]:.2f} | {100 * right:.1f} % | {off:,.0f} |")
    if peer:
        print(f"HiGHS / ADMM: {took['HiGHS'] / took['l1']:.0f}  (reach: 50, and below 1 s)")


def tables() -> bool:
    """Print how long the census table takes; whether its counts are right."""
    print("\n| census table | databases | milliseconds |\n| --- | --- | --- |")
    right = True
    for name, table, wanted in (
        ("as printed", attack.census(), 2),
        ("with its note", attack.census(note=True), 1),
    ):
        found = [attack.reconstruct_table(table) for _ in range(11)]
        middle = statistics.median(f.seconds for f in found)
        print(f"| {name} | {found[0].count} | {1000 * middle:.0f} |")
        right &= all(f.count == wanted for f in found)
    return right


def main() -> int:
    """Print all; 1 where a count is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=1000, help="with four queries each")
    parser.add_argument("--no-peer", action="store_true", help="leave HiGHS out")
    parser.add_argument("--large", action="store_true", help="4,000 people and 16,000 queries too")
    options = parser.parse_args()
    right = tables()
    decoders(options.people, 4 * options.people, not options.no_peer)
    if options.large:
        decoders(4000, 16_000, peer=False)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

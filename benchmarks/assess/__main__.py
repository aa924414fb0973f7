"""Who sees that a release leaks, at equal false alarms: ours, anonymeter, pycanon, anjana.

Run with ``python -m benchmarks.assess [--peers PYTHON] [--worlds N] [--harmless N] [--people N]``,
where PYTHON is an interpreter that has the peers (they ask for other versions of NumPy); without
it, those of this one. Each kind of release is made N times of other people. Every method gives a
number; it accuses where that is above all but one in twenty of its numbers for harmless releases,
rows of other people of the same distribution. So all have the same false alarms, and the share of
leaking releases that are accused is their power. Beside it, what `assess` says by itself at 95 %
confidence.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from dither.lab.anonymize import mondrian
from dither.lab.assess import assess
from dither.lab.attack import pairs_kept

HARMLESS = "other people"
QUASI = ["age", "region", "sex"]


def people(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Texts, numbers, and a rare answer."""
    age = rng.integers(18, 90, n)
    pay = np.round(np.exp(rng.normal(8, 0.5, n)) * (1 + age / 200), 2)
    ill = np.where(rng.random(n) < 0.1 + age / 300, "yes", "no")
    return pl.DataFrame(
        {
            "age": age.astype(float),
            "region": rng.choice(list("abcdefgh"), n),
            "sex": rng.choice(["f", "m"], n),
            "pay": pay,
            "ill": ill,
        }
    )


def noisy(table: pl.DataFrame, rng: np.random.Generator, share: float) -> pl.DataFrame:
    """Numbers with noise of a share of their spread."""
    return table.with_columns(
        (pl.col(n) + pl.Series(rng.normal(0, share, table.height)) * pl.col(n).std())
        for n in ("age", "pay")
    )


def part(table: pl.DataFrame, others: pl.DataFrame, share: float) -> pl.DataFrame:
    """Some rows of the table, and other people."""
    kept = round(share * table.height)
    return pl.concat([table[:kept], others[kept:]])


def swapped(table: pl.DataFrame, rng: np.random.Generator, share: float) -> pl.DataFrame:
    """Each cell is somebody else's with some probability."""
    found = []
    for c in table:
        mixed = rng.permutation(table.height)
        mine = rng.random(table.height) >= share
        found.append(c[np.where(mine, np.arange(table.height), mixed)])
    return pl.DataFrame(found)


Release = Callable[[pl.DataFrame, pl.DataFrame, np.random.Generator], pl.DataFrame]
KINDS: dict[str, Release] = {
    HARMLESS: lambda t, o, rng: o,
    "a copy": lambda t, o, rng: t,
    "a copy, shuffled": lambda t, o, rng: t[rng.permutation(t.height)],
    "a copy, 1 % noise": lambda t, o, rng: noisy(t, rng, 0.01),
    "a copy, 20 % noise": lambda t, o, rng: noisy(t, rng, 0.2),
    "3 % of rows copied": lambda t, o, rng: part(t, o, 0.03),
    "10 % copied, 1 % noise": lambda t, o, rng: part(noisy(t, rng, 0.01), o, 0.1),
    "half of the cells swapped": lambda t, o, rng: swapped(t, rng, 0.5),
    "10-anonymous": lambda t, o, rng: mondrian(t, QUASI, k=10, sensitive=["ill"]).frame,
    "exact pairs of a tree": lambda t, o, rng: pairs_kept(seed=rng)(t),
}


def main() -> None:
    """Make the worlds, ask everybody, print power."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--harmless", type=int, help="releases of other people; as --worlds")
    parser.add_argument("--people", type=int, default=400)
    given = parser.parse_args()
    said: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    seconds: dict[str, float] = defaultdict(float)
    times = dict.fromkeys(KINDS, given.worlds) | {HARMLESS: given.harmless or given.worlds}
    verdicts: dict[str, int] = defaultdict(int)
    errors: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        kinds = {}
        for i, (kind, release) in enumerate(KINDS.items()):
            for k in range(times[kind]):
                rng = np.random.default_rng(1_000 * i + k)
                table, other, control = (people(rng, given.people) for _ in range(3))
                made = release(table, other, rng)
                home = Path(folder) / f"{i:02}-{k:03}"
                home.mkdir()
                kinds[home.name] = kind
                for name, one in (("table", table), ("release", made), ("control", control)):
                    one.write_parquet(home / f"{name}.parquet")
                start = time.process_time()
                found = assess(table, made, control=control, seed=k)
                seconds["dither"] += time.process_time() - start
                least = min(t.chance for t in found.tried if t.chance is not None)
                said["dither"][kind].append(-math.log(least + 1e-300))
                verdicts[kind] += found.found
        script = Path(__file__).parent / "peers.py"
        done = subprocess.run(
            [given.peers, str(script), folder], capture_output=True, text=True, check=False
        )
        for line in done.stdout.splitlines():
            body = json.loads(line)
            for peer, score in body["said"].items():
                if isinstance(score, str):
                    errors[f"{peer}, {kinds[body['world']]}"] = score
                # What raises accuses nobody.
                number = -math.inf if isinstance(score, str) else float(score)
                said[peer][kinds[body["world"]]].append(number)
                seconds[peer] += body["seconds"][peer]
    heads = [*said, "assess at 95 %"]
    print(
        f"{given.worlds} releases of each kind, {times[HARMLESS]} harmless ones, of {given.people} "
        "people; accused at 5 % false:"
    )
    print(" " * 28 + "".join(f"{h:>15}" for h in heads))
    for kind in KINDS:
        cells = []
        for scores in said.values():
            harmless = sorted(scores[HARMLESS])
            line = harmless[-1 - len(harmless) // 20]
            cells.append(f"{np.mean(np.array(scores[kind]) > line):.0%}")
        cells.append(f"{verdicts[kind] / times[kind]:.0%}")
        print(f"{kind:28}" + "".join(f"{c:>15}" for c in cells))
    total = sum(times.values())
    print(
        "processor, s a release".ljust(28) + "".join(f"{seconds[n] / total:>15.2f}" for n in said)
    )
    for where, text in errors.items():
        print(f"{where}: {text}")
    for name in ("anonymeter", "pycanon", "anjana"):
        if name not in said:
            print(f"{name} is not installed: give --peers an interpreter that has it")


if __name__ == "__main__":
    main()

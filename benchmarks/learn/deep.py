"""Private training beside Opacus: accuracy and seconds on digits, and rows a second.

Run with ``python -m benchmarks.learn.deep [digits|throughput]``; the peer runs where
``OPACUS_PYTHON`` names an interpreter that has opacus (`benchmarks.learn.opacus`), in turns with
ours, each run in a process of its own, on one thread. Seconds are of one processor, of training
after noise was calibrated; ours with calibration are printed too. Of the peer the better of two
learning rates is shown. Read accuracies as medians over seeds, and seconds as ratios.

Of digits, ours takes the rows' noisy mean off them by a first layer (`dither.learn.deep.Centre`)
where a layer sees all pixels at once; finding it is in the seconds and in ε. Opacus has no such
layer. Both get pixels that are centred by what is public, and the same model behind.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.learn.opacus import DELTA, EPSILON, LEARNING_RATES, MODELS, digits, large, peak

Figures = dict[str, float]

OURS: dict[str, dict[str, Any]] = {
    "linear": {"steps": 60, "rate": 1, "learning_rate": 8.0},
    "mlp": {"steps": 60, "rate": 0.7, "clip": 0.5, "learning_rate": 8.0},
    "cnn": {"steps": 60, "rate": 0.5, "clip": 0.3, "learning_rate": 12.0},
}
CENTRED = ("linear", "mlp")
REACH = {"linear": (0.940, 0.3), "mlp": (0.945, 0.6), "cnn": (0.945, 3.0)}


def ours(what: str, kind: str, number: int, other: float) -> Figures:
    """One run in this process."""
    import torch

    from dither import learn

    torch.set_num_threads(1)
    # What torch loads at its first step is no part of training.
    rows = torch.zeros(4, 1), torch.zeros(4, dtype=torch.int64)
    learn.train(torch.nn.Linear(1, 2), rows, noise_multiplier=9, steps=1)
    before = peak()
    if what == "digits":
        X, held, y, labels = digits()
        model = begun(kind, number)
        start = time.process_time()
        fit = learn.train(
            model, (X, y), epsilon=EPSILON, delta=DELTA, population=len(X), **OURS[kind]
        )
        whole = time.process_time() - start
        model = begun(kind, number)
        start = time.process_time()
        # Without an epsilon the mean has more noise: the two together cost less than it.
        learn.train(
            model,
            (X, y),
            noise_multiplier=fit.noise_multiplier,
            population=len(X),
            **OURS[kind],
        )
        seconds = time.process_time() - start
        right = float((model(held).argmax(1) == labels).float().mean())
        return {"seconds": seconds, "whole": whole, "right": right, "megabytes": peak() - before}
    model, X, y = large(kind, number)
    start = time.process_time()
    learn.train(
        model,
        (X, y),
        noise_multiplier=1,
        steps=number // int(other),
        rate=int(other) / number,
        learning_rate=0.1,
        population=number,
        average=False,
        exact=what == "exact",
    )
    return {"seconds": time.process_time() - start, "megabytes": peak() - before}


def begun(kind: str, seed: int) -> Any:
    """The peer's model, with the rows' mean taken off where that helps."""
    import torch

    from dither.learn.deep import Centre

    torch.manual_seed(seed)
    model = MODELS[kind]()
    return torch.nn.Sequential(Centre(64), model) if kind in CENTRED else model


def run(command: list[str]) -> Figures:
    """What a process prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run_ours(*words: str) -> Figures:
    """Ours, in a process of its own."""
    return run([sys.executable, "-m", "benchmarks.learn.deep", "one", *words])


def run_peer(*words: str) -> Figures | None:
    """The peer's, or None without one."""
    python = os.environ.get("OPACUS_PYTHON")
    if python is None:
        return None
    return run([python, str(Path(__file__).with_name("opacus.py")), *words])


def middle(found: list[Figures], name: str) -> float:
    """The median of a figure."""
    return statistics.median(one[name] for one in found)


def average(found: list[Figures]) -> str:
    """The mean accuracy over seeds, with its standard error."""
    rights = [one["right"] for one in found]
    error = statistics.stdev(rights) / len(rights) ** 0.5 if len(rights) > 1 else float("nan")
    return f"mean {statistics.mean(rights):.4f} ± {error:.4f}"


def compare_digits(seeds: int) -> None:
    """Accuracies and seconds at one loss."""
    print(f"digits, ε = {EPSILON:g}, δ = {DELTA:g}, medians of {seeds} seeds")
    for kind in MODELS:
        mine, theirs = [], {rate: [] for rate in LEARNING_RATES[kind]}
        for seed in range(seeds):
            mine.append(run_ours("digits", kind, str(seed), "0"))
            for rate, found in theirs.items():
                other = run_peer("digits", kind, str(seed), str(rate))
                if other is not None:
                    found.append(other)
        right, seconds = middle(mine, "right"), middle(mine, "seconds")
        least, most = REACH[kind]
        met = "reached" if right >= least and seconds <= most else "MISSED"
        print(
            f"  {kind:<7} dither {right:.3f} ({average(mine)})  {seconds:.2f} s, with calibration "
            f"{middle(mine, 'whole'):.2f} s  (reach ≥ {least:.3f}, ≤ {most:g} s: {met})"
        )
        known = [found for found in theirs.values() if found]
        if known:
            best = max(known, key=lambda found: middle(found, "right"))
            theirs_seconds = middle(best, "seconds")
            print(
                f"  {'':<7} Opacus {middle(best, 'right'):.3f} ({average(best)})  "
                f"{theirs_seconds:.2f} s; ours over theirs: {seconds / theirs_seconds:.2f}"
            )


def compare_throughput(rounds: int) -> None:
    """Rows a second, and memory, at equal sizes of samples."""
    rows, batch = 2048, 256
    print(f"rows a second, samples of {batch} on average, one thread, medians of {rounds} rounds")
    for kind in ("cnn", "transformer"):
        found: dict[str, list[Figures]] = {"integers": [], "floats": [], "Opacus": []}
        for _ in range(rounds):
            found["integers"].append(run_ours("exact", kind, str(rows), str(batch)))
            found["floats"].append(run_ours("floats", kind, str(rows), str(batch)))
            other = run_peer("throughput", kind, str(rows), str(batch))
            if other is not None:
                found["Opacus"].append(other)
        for name, runs in found.items():
            if not runs:
                continue
            speed = rows / middle(runs, "seconds")
            ratio = ""
            if found["Opacus"] and name != "Opacus":
                pairs = zip(runs, found["Opacus"], strict=True)
                share = statistics.median(b["seconds"] / a["seconds"] for a, b in pairs)
                ratio = f"  {share:.2f} times Opacus (reach: 1.5)"
            print(f"  {kind:<12} {name:<9} {speed:7.0f}  {middle(runs, 'megabytes'):.0f} MB{ratio}")


def main() -> None:
    """Print the tables, or one run for a process that asked for it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=["digits", "throughput", "one"])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.what == "one":
        what, kind, number, other = given.words
        print(json.dumps(ours(what, kind, int(number), float(other))))
        return
    if given.what in (None, "digits"):
        compare_digits(given.seeds)
    if given.what in (None, "throughput"):
        compare_throughput(given.rounds)
    if "OPACUS_PYTHON" not in os.environ:
        print("Opacus was not measured: let OPACUS_PYTHON name an interpreter that has it")


if __name__ == "__main__":
    main()

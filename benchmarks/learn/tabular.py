"""Tabular models beside diffprivlib's: one row a model and data set, at several losses.

Run with ``python -m benchmarks.learn.tabular [ADULT] [--rounds N] [--only KIND]``, ADULT the path
of the UCI table, without which its rows are left out, and ``DIFFPRIVLIB_PYTHON`` in the environment
the interpreter of the peer (`benchmarks.learn.peers`). Each round splits the rows anew, four fifths
to train and the rest to test; figures are means of rounds. All data are scaled to [-1, 1] by their
ends and both sides are given those bounds, for the comparison's sake. diffprivlib spends no delta;
here it is 1e-6, but for decision trees, which spend none either.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learn.peers import measured, split
from dither import learn

DELTA = 1e-6
HERE = Path(__file__).parent


def scaled(x: Any) -> Any:
    """Columns from -1 to 1; those that do not vary are left out."""
    low, high = x.min(axis=0), x.max(axis=0)
    return 2 * (x[:, high > low] - low[high > low]) / (high - low)[high > low] - 1


def tasks(adult: str | None, rounds: int) -> list[Any]:
    """Name, kind, how many clusters or components, rounds, epsilons, rows, labels, table."""
    from sklearn import datasets
    from statsmodels.datasets import fair

    few = (0.1, 1.0, 10.0)
    x, y = datasets.load_breast_cancer(return_X_y=True)
    x = scaled(x)
    found: list[Any] = [
        # With the least epsilon one run's accuracy has a deviation of .13: a mean needs many.
        ("breast cancer", kind, 2, 10 * rounds if kind == "logistic" else rounds, few, x, y, None)
        for kind in ("logistic", "bayes", "forest", "tree")
    ]
    found.append(("breast cancer", "pca", 2, rounds, few, x, y, None))
    digits = scaled(datasets.load_digits(return_X_y=True)[0])
    found.append(("digits", "kmeans", 10, rounds, few, digits, digits[:, 0], None))
    rng = np.random.default_rng(0)
    centres = rng.uniform(-0.7, 0.7, (10, 5))
    blobs = np.clip(centres[rng.integers(0, 10, 5000)] + rng.normal(0, 0.1, (5000, 5)), -1, 1)
    found.append(("blobs", "kmeans", 10, rounds, few, blobs, blobs[:, 0], None))
    found.append(("blobs", "pca", 2, rounds, few, blobs, blobs[:, 0], None))
    survey = fair.load_pandas().data
    married = scaled(survey[["yrs_married"]].to_numpy())[:, 0]
    others = scaled(survey.drop(columns=["yrs_married", "affairs"]).to_numpy())
    found.append(("affairs", "linear", 0, rounds, few, others, married, None))
    if adult is not None:
        found += of_adult(adult, max(1, rounds // 4))
    return found


def of_adult(path: str, rounds: int) -> list[Any]:
    """Adult: lists of categories as they are for us, as numbers for the peer."""
    from benchmarks.learn.additive import NUMBERS, complete

    table, labels = complete(path)
    numbers = scaled(table.select(NUMBERS).to_numpy())
    lists = [table[n].to_physical() if n in NUMBERS else table[n] for n in table.columns]
    lists = [c for c in lists if c.name not in NUMBERS]
    places = [np.unique(c.to_numpy(), return_inverse=True)[1] for c in lists]
    one = [2.0 * (p[:, None] == np.arange(p.max() + 1)) - 1 for p in places]
    wide = np.column_stack([numbers, *one])
    codes = np.column_stack([numbers, *[2 * p / p.max() - 1 for p in places]])
    ours = np.column_stack([numbers, *places])
    listed = {numbers.shape[1] + i: list(range(p.max() + 1)) for i, p in enumerate(places)}
    return [
        (
            "Adult",
            kind,
            0,
            rounds,
            (1.0,),
            codes if kind == "forest" else wide,
            labels,
            (ours, listed),
        )
        for kind in ("logistic", "bayes", "forest")
    ]


def ours(kind: str, epsilon: float, clusters: int, listed: Any) -> Any:
    """The model here that does this."""
    common: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "bounds": (-1, 1)}
    told = {"categories": listed, "classes": [0, 1]}
    if kind == "kmeans":
        return learn.KMeans(clusters, **common)
    if kind == "pca":
        return learn.PCA(clusters, **common)
    if kind == "linear":
        return learn.LinearRegression(**common, target_bounds=(-1, 1), method="boosted")
    if kind == "tree":
        common["delta"] = 0
        return learn.RandomForestClassifier(**common, **told, n_estimators=1)
    return {
        "logistic": learn.LogisticRegression,
        "bayes": learn.GaussianNB,
        "forest": learn.RandomForestClassifier,
    }[kind](**common, **told)


def of_peer(found: list[Any]) -> dict[tuple[str, str, float], tuple[list[float], float]]:
    """What diffprivlib makes of the same tasks, in its environment."""
    python = os.environ.get("DIFFPRIVLIB_PYTHON")
    if python is None:
        print("DIFFPRIVLIB_PYTHON is not set: see benchmarks/learn/peers.py")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.npz"
        arrays = {f"{t[0]} {t[1]} {key}": t[i] for t in found for i, key in ((5, "x"), (6, "y"))}
        np.savez(path, tasks=json.dumps([t[:5] for t in found]), **arrays)
        done = subprocess.run(
            [python, HERE / "peers.py", str(path)], capture_output=True, text=True
        )
    made = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        print("the peer stopped:", done.stderr.strip().splitlines()[-1:])
    return {(name, kind, epsilon): (rows, took) for name, kind, epsilon, rows, took in made}


MEASURE = {"kmeans": "inertia, of the best", "pca": "variance, of the most", "linear": "R²"}


def main() -> None:
    """Print each figure beside the peer's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("adult", nargs="?")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", action="append", help="a kind, such as forest")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = [t for t in tasks(given.adult, given.rounds) if not given.only or t[1] in given.only]
    peers = of_peer(found)
    for name, kind, clusters, rounds, epsilons, x, y, more in found:
        table, listed = (x, None) if more is None else more
        what = MEASURE.get(kind, "AUC" if name == "Adult" else "accuracy")
        for epsilon in epsilons:
            values, start = [], time.perf_counter()
            for seed in range(rounds):
                train, test = split(seed, len(x))
                model = ours(kind, epsilon, clusters, listed).fit(table[train], y[train])
                values.append(measured(kind, model, table[test], y[test]))
            took = (time.perf_counter() - start) / rounds
            line = f"{name:<13} {kind:<8} epsilon {epsilon:<4} {what:<21} {np.mean(values):7.3f}"
            line += f" {took:6.2f} s"
            if (name, kind, epsilon) in peers:
                theirs, seconds = peers[name, kind, epsilon]
                line += f"   diffprivlib {np.mean(theirs):7.3f} {seconds:6.2f} s"
            print(line, flush=True)


if __name__ == "__main__":
    main()

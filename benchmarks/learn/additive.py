"""Additive models beside DP-EBM of interpret, on the complete rows of Adult.

Run with ``python -m benchmarks.learn.additive PATH [--rounds N]``, PATH that of the UCI table
(30,162 complete rows of 14 columns). Each round splits the rows anew, four fifths to train and the
rest to test, and trains both in turn; read the differences of areas under the curve and the ratios
of times. Bounds and categories are given to both, taken from the table for the comparison's sake.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

import numpy as np
import polars as pl

from dither import learn

NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
DELTA = 1e-6


def complete(path: str) -> tuple[pl.DataFrame, Any]:
    """The rows without missing values, and whether each earns more than 50,000."""
    table = pl.read_csv(path)
    table = table.rename({name: name.strip() for name in table.columns})
    table = table.with_columns(pl.col(pl.String).str.strip_chars())
    table = table.filter(~pl.any_horizontal(pl.col(pl.String) == "?")).drop_nulls()
    table = table.with_columns(pl.col(*NUMBERS).cast(pl.Float64))
    return table.drop("Salary"), (table["Salary"] == ">50K").to_numpy().astype(int)


def ours(table: pl.DataFrame, epsilon: float) -> Any:
    """An additive classifier with what is public of the columns."""
    numeric = [name in NUMBERS for name in table.columns]
    ends = [
        [
            getattr(table[name], end)() if is_number else np.nan
            for name, is_number in zip(table.columns, numeric, strict=True)
        ]
        for end in ("min", "max")
    ]
    return learn.AdditiveClassifier(
        epsilon=epsilon,
        delta=DELTA,
        bounds=tuple(ends),
        categories={
            n: table[n].unique().sort().to_list() for n in table.columns if n not in NUMBERS
        },
        classes=[0, 1],
    )


def peer(table: pl.DataFrame, epsilon: float, seed: int) -> Any:
    """DP-EBM with the same."""
    from interpret.privacy import DPExplainableBoostingClassifier

    return DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=DELTA,
        feature_names=table.columns,
        feature_types=["continuous" if n in NUMBERS else "nominal" for n in table.columns],
        privacy_bounds={n: (table[n].min(), table[n].max()) for n in NUMBERS},
        random_state=seed,
    )


def main() -> None:
    """Print areas, seconds and how they differ, for three losses."""
    from sklearn.metrics import roc_auc_score

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table, labels = complete(given.path)
    array = table.to_numpy()
    print(f"{len(labels):,} rows; medians of {given.rounds} rounds; delta {DELTA}")
    for epsilon in (0.1, 1.0, 4.0):
        found: dict[str, list[tuple[float, float]]] = {"additive": [], "DP-EBM": []}
        for seed in range(given.rounds):
            order = np.random.default_rng(seed).permutation(len(labels))
            train, test = np.split(order, [len(order) * 4 // 5])
            start = time.perf_counter()
            model = ours(table, epsilon).fit(table[train], labels[train])
            took = time.perf_counter() - start
            area = roc_auc_score(labels[test], model.decision_function(table[test]))
            found["additive"].append((area, took))
            try:
                other = peer(table, epsilon, seed)
            except ImportError:
                continue
            start = time.perf_counter()
            other.fit(array[train], labels[train])
            took = time.perf_counter() - start
            area = roc_auc_score(labels[test], other.predict_proba(array[test])[:, 1])
            found["DP-EBM"].append((area, took))
        for name, rounds in found.items():
            if rounds:
                area, seconds = (statistics.median(part) for part in zip(*rounds, strict=True))
                print(f"epsilon {epsilon:<4} {name:<9} AUC {area:.4f}  {seconds:.2f} s")
        if found["DP-EBM"]:
            pairs = list(zip(*found.values(), strict=True))
            gain = statistics.median(a[0] - b[0] for a, b in pairs)
            ratio = statistics.median(a[1] / b[1] for a, b in pairs)
            print(f"epsilon {epsilon:<4} additive - DP-EBM: {gain:+.4f}  (reach: +.003 at 1)")
            print(f"epsilon {epsilon:<4} additive / DP-EBM: {ratio:.2f}  (reach: 1)")
        else:
            print("DP-EBM is not installed: pip install 'dither[bench]'")


if __name__ == "__main__":
    main()

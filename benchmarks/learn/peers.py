"""diffprivlib's models on the tasks of `benchmarks.learn.tabular`, in an environment of their own.

diffprivlib 0.6 does not import under scikit-learn 1.9, so `benchmarks.learn.tabular` runs this file
by the interpreter that ``DIFFPRIVLIB_PYTHON`` names:

    python -m venv dpl && dpl/bin/pip install diffprivlib "scikit-learn<1.6"

It needs numpy and scikit-learn alone beside it: ``peers.py TASKS.npz`` prints a line of JSON
for each task and epsilon. Data come scaled to [-1, 1], the bounds that every model is given.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np


def split(seed: int, rows: int) -> tuple[Any, Any]:
    """The rows to train on, four fifths, and those held out."""
    order = np.random.default_rng(seed).permutation(rows)
    return order[: rows * 4 // 5], order[rows * 4 // 5 :]


def measured(kind: str, model: Any, x: Any, y: Any) -> float:
    """How good a fitted model is on rows that were held out."""
    if kind in ("kmeans", "pca"):
        return of_geometry(kind, model, x)
    if kind == "linear":
        wrong = ((y - np.clip(model.predict(x), -1, 1)) ** 2).mean()
        return float(1 - wrong / y.var())
    shares = model.predict_proba(x)[:, 1]
    if len(y) > 1000:
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(y, np.nan_to_num(shares, nan=0.5)))
    return float(((shares > 0.5) == y).mean())


def of_geometry(kind: str, model: Any, x: Any) -> float:
    """Inertia by that of the best centres found, or the share of variance that is kept."""
    if kind == "kmeans":
        from sklearn.cluster import KMeans

        centres = model.cluster_centers_
        best = KMeans(len(centres), n_init=5, random_state=0).fit(x).inertia_
        return float(((x[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum() / best)
    ways = model.components_
    covariance = np.cov(x.T)
    most = np.linalg.eigvalsh(covariance)[::-1][: len(ways)].sum()
    return float(np.trace(ways @ covariance @ ways.T) / most)


def peer(kind: str, epsilon: float, size: int, clusters: int, seed: int) -> Any:
    """The model of diffprivlib that does this."""
    from diffprivlib import models

    bounds = (-np.ones(size), np.ones(size))
    common: dict[str, Any] = {"epsilon": epsilon, "random_state": seed}
    if kind == "logistic":
        return models.LogisticRegression(data_norm=size**0.5, max_iter=500, **common)
    if kind == "bayes":
        return models.GaussianNB(bounds=bounds, **common)
    if kind == "forest":
        return models.RandomForestClassifier(bounds=bounds, classes=[0, 1], **common)
    if kind == "tree":
        return models.DecisionTreeClassifier(bounds=bounds, classes=[0, 1], **common)
    if kind == "linear":
        return models.LinearRegression(bounds_X=bounds, bounds_y=(-1, 1), **common)
    if kind == "kmeans":
        return models.KMeans(clusters, bounds=bounds, **common)
    return models.PCA(clusters, bounds=bounds, data_norm=size**0.5, **common)


def main() -> None:
    """Fit every task of a file, and print what came of it."""
    warnings.simplefilter("ignore")
    found = np.load(sys.argv[1])
    for name, kind, clusters, rounds, epsilons in json.loads(str(found["tasks"])):
        x, y = found[f"{name} {kind} x"], found[f"{name} {kind} y"]
        for epsilon in epsilons:
            rows, start = [], time.perf_counter()
            for seed in range(rounds):
                train, test = split(seed, len(x))
                model = peer(kind, epsilon, x.shape[1], clusters, seed).fit(x[train], y[train])
                rows.append(measured(kind, model, x[test], y[test]))
            took = (time.perf_counter() - start) / rounds
            print(json.dumps([name, kind, epsilon, rows, took]), flush=True)


if __name__ == "__main__":
    main()

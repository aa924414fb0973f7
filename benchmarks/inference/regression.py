"""Regressions, two groups and quantiles: what they reach, beside diffprivlib and OpenDP.

Run with ``python -m benchmarks.inference.regression [ROW ...] [--runs N]``: each target with what
is to be reached, what was seen, and a verdict. Bounds of public data sets are the ends of their
columns, for every method alike. A peer runs in the same run where it is installed and imports; else
a line says so, and the functional mechanism here stands for diffprivlib's linear regression, whose
algorithm it is. Defaults follow from the number of terms alone; but how many deviations above the
mean length rows are weighed down to, and the power in the weight of the response, were settled with
these sets in sight, so that their figures may flatter a little. Rows on sets that no target names
stand beside them.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.inference.estimates import ROWS, main, row
from dither import inference

ROWS.clear()  # the rows of this file alone

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 10.0)
GOALS = {
    "diabetes": (-0.14, 0.25, 0.43),
    "affairs": (0.75, 0.855, 0.863),
    "randhie": (0.05, 0.08, 0.085),
}


def data(name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Regressors and response of a public data set."""
    import statsmodels.api as sm
    from sklearn.datasets import load_diabetes

    if name == "diabetes":
        x, y = load_diabetes(return_X_y=True, scaled=False)
        return np.asarray(x, float), np.asarray(y, float)
    if name == "friedman":
        from sklearn.datasets import make_friedman1

        found = make_friedman1(2000, 10, noise=2.0, random_state=1)
        return found[0], found[1]
    if name == "three terms":
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, (1500, 3))
        return x, x @ [0.5, -0.3, 0.1] + rng.normal(0, 0.4, 1500)
    if name == "affairs":
        frame = sm.datasets.fair.load_pandas().data.drop(columns="affairs")
        y = frame.pop("yrs_married")
        return frame.to_numpy(float), y.to_numpy(float)
    frame = sm.datasets.randhie.load_pandas().data.dropna()
    y = frame.pop("mdvis").clip(upper=15)
    return frame.to_numpy(float), y.to_numpy(float)


def _explained(predicted: Any, truth: Any, base: float) -> float:
    return 1 - float(np.mean((truth - predicted) ** 2)) / base


@row(100)
def linear(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Test R² of linear regression at eps .1, 1 and 10, over random splits into 80 and 20 %."""
    try:
        from diffprivlib.models import LinearRegression as Peer
    except ImportError:
        Peer = None
        yield "diffprivlib is not installed, or does not import here", None
    for name, goals in {**GOALS, "friedman": None, "three terms": None}.items():
        x, y = data(name)
        low, high = x.min(0), x.max(0)
        ends = (float(y.min()), float(y.max()))
        names = [f"x{j}" for j in range(x.shape[1])]
        bounds: dict[str, Any] = {n: (a, b) for n, a, b in zip(names, low, high, strict=True)}
        bounds["y"] = ends
        found: dict[tuple[str, float], list[float]] = {}
        for seed in range(runs):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = np.split(order, [int(0.8 * len(y))])
            base = float(np.mean((y[test] - y[train].mean()) ** 2))
            frame = {**dict(zip(names, x[train].T, strict=True)), "y": y[train]}
            ones = np.ones((len(x), 1))
            flat = np.linalg.lstsq(np.hstack([ones, x])[train], y[train], rcond=None)[0]
            plain = _explained(np.hstack([ones, x])[test] @ flat, y[test], base)
            for epsilon in EPSILONS:
                found.setdefault(("least squares", epsilon), []).append(plain)
                for who, neighbours, method in (
                    ("add-remove", "add-remove", "moments"),
                    ("replace", "replace", "moments"),
                    ("boosted", "add-remove", "boosted"),
                    ("boosted, replace", "replace", "boosted"),
                    ("functional", "replace", "functional"),
                ):
                    made = inference.linear_regression(
                        "y ~ " + " + ".join(names),
                        frame,
                        bounds=bounds,
                        epsilon=epsilon,
                        delta=DELTA,
                        neighbours=neighbours,
                        method=method,
                    )
                    new = dict(zip(names, x[test].T, strict=True))
                    predicted = np.clip(made.predict(new).estimate, *ends)
                    value = _explained(predicted, y[test], base)
                    found.setdefault((who, epsilon), []).append(value)
                if Peer is not None:
                    peer = Peer(epsilon=epsilon, bounds_X=(low, high), bounds_y=ends)
                    predicted = np.clip(peer.fit(x[train], y[train]).predict(x[test]), *ends)
                    value = _explained(predicted, y[test], base)
                    found.setdefault(("diffprivlib", epsilon), []).append(value)
        for who in dict.fromkeys(key for key, _ in found):
            means = [float(np.mean(found[who, e])) for e in EPSILONS]
            error = max(np.std(found[who, e]) / math.sqrt(runs) for e in EPSILONS)
            told = "  ".join(f"{m:7.3f}" for m in means)
            if goals is None:
                yield f"{name:<11} {who:<16} {told}   standard error at most {error:.3f}", None
                continue
            good = all(m >= g for m, g in zip(means, goals, strict=True))
            wanted = f"reach {goals}, standard error at most {error:.3f}"
            mark = good if who == "add-remove" else None
            verdict = f"   {'reached' if good else 'missed'}" if who == "replace" else ""
            yield f"{name:<11} {who:<16} {told}   {wanted}{verdict}", mark


def _yes_or_no(name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Regressors and a yes or no."""
    import statsmodels.api as sm
    from sklearn import datasets

    if name == "breast cancer":
        found = datasets.load_breast_cancer(return_X_y=True)
        return np.asarray(found[0]), np.asarray(found[1])
    if name == "digits, odd":
        x, y = datasets.load_digits(return_X_y=True)
        kept = np.ptp(x, axis=0) > 0
        return np.asarray(x[:, kept]), np.asarray(y % 2)
    if name == "wine, second":
        x, y = datasets.load_wine(return_X_y=True)
        return np.asarray(x), np.asarray(y == 1, dtype=int)
    frame = sm.datasets.fair.load_pandas().data
    y = (frame.pop("affairs") > 0).to_numpy(int)
    return frame.to_numpy(float), y


@row(100)
def logistic(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Test accuracy of logistic regression at eps 1 by default, splits of 80 and 20 %."""
    from sklearn.linear_model import LogisticRegression as Exact

    try:
        from diffprivlib.models import LogisticRegression as Peer
    except ImportError:
        Peer = None
        yield "diffprivlib is not installed, or does not import here", None
    for name in ("breast cancer", "digits, odd", "wine, second", "fair, any"):
        x, y = _yes_or_no(name)
        low, high = x.min(0), x.max(0)
        names = [f"x{j}" for j in range(x.shape[1])]
        scaled = 2 * (x - low) / (high - low) - 1
        found: dict[str, list[float]] = {}
        for seed in range(runs):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = np.split(order, [int(0.8 * len(y))])
            most = max(float(np.mean(y[test])), 1 - float(np.mean(y[test])))
            found.setdefault("the larger class", []).append(most)
            exact = Exact(C=100, max_iter=2000).fit(scaled[train], y[train])
            found.setdefault("not private", []).append(exact.score(scaled[test], y[test]))
            for neighbours in ("add-remove", "replace"):
                for method in ("descent", "objective"):
                    made = inference.logistic_regression(
                        "y ~ " + " + ".join(names),
                        {**dict(zip(names, x[train].T, strict=True)), "y": y[train]},
                        bounds=dict(zip(names, zip(low, high, strict=True), strict=True)),
                        epsilon=1,
                        delta=DELTA,
                        neighbours=neighbours,
                        method=method,
                    )
                    new = dict(zip(names, x[test].T, strict=True))
                    right = (made.predict(new) > 0.5) == y[test]
                    found.setdefault(f"{method}, {neighbours}", []).append(float(right.mean()))
            if Peer is not None:
                peer = Peer(epsilon=1, data_norm=math.sqrt(x.shape[1]), max_iter=500)
                right = peer.fit(scaled[train], y[train]).predict(scaled[test]) == y[test]
                found.setdefault("diffprivlib", []).append(float(right.mean()))
        for who, each in found.items():
            asked = name == "breast cancer" and who.startswith("descent")
            good = float(np.mean(each)) >= 0.9
            error = float(np.std(each)) / math.sqrt(runs)
            mark = good if asked and "add-remove" in who else None
            verdict = "   reach .90" if asked else ""
            if asked and mark is None:
                verdict += f": {'reached' if good else 'missed'}"
            yield f"{name:<13} {who:<22} {np.mean(each):.3f} ± {error:.3f}{verdict}", mark


STEEPNESS = {
    "flat": (0.5, 0.0, 0.0),
    "moderate": (0.5, 1.0, -1.0),
    "steep": (0.5, 5.0, -4.0),
}


@row(400)
def odds(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Coverage of nominal 95 % intervals of three coefficients of log odds, where valid."""
    yield "goal: .93-.97, or more often; of intervals that do not say that they are not valid", None
    names = ["Intercept", "x", "z"]
    sizes, epsilons = (200, 2000, 20_000), (0.5, 1, 5)
    for method, (steep, given), n, epsilon in itertools.product(
        ("descent", "objective"), STEEPNESS.items(), sizes, epsilons
    ):
        truth = np.array(given)
        held, said, widths = np.zeros(3), np.zeros(3), []
        for _ in range(runs):
            x, z = rng.uniform(-1, 1, n), np.clip(rng.normal(0, 0.4, n), -1, 1)
            chance = 1 / (1 + np.exp(-truth[0] - truth[1] * x - truth[2] * z))
            made = inference.logistic_regression(
                "y ~ x + z",
                {"x": x, "z": z, "y": rng.random(n) < chance},
                bounds={"x": (-1, 1), "z": (-1, 1)},
                epsilon=epsilon,
                delta=DELTA,
                method=method,
            )
            ends = made.simulated(draws=200).interval()
            valid = np.array([made.valid[name] for name in names])
            held += valid & (ends[:, 0] <= truth) & (truth <= ends[:, 1])
            said += ~valid
            widths.append(ends[1, 1] - ends[1, 0])
        # Marked ones promise nothing: the others may miss as often as 5 % of all, and chance.
        shares = (held + said) / runs
        told = "  ".join(f"{s:.3f}" for s in shares)
        yield (
            f"{method:<9} {steep:<8} n {n:6,} eps {epsilon:3}: {told}, not valid "
            f"{np.mean(said) / runs:.0%}, median width {np.median(widths):.3f}, infinite "
            f"{np.mean(np.isinf(widths)):.0%}",
            bool((shares >= 0.93 - 3 * math.sqrt(0.05 * 0.95 / runs)).all()),
        )


@row(1000)
def slopes(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Coverage of nominal 95 % intervals of three coefficients, regressors correlated."""
    yield "goal: .93-.97, or more often", None
    truth = np.array([0.1, 0.5, -0.2])
    for neighbours in ("replace", "add-remove"):
        for n, epsilon in ((500, 1.0), (2000, 1.0), (5000, 1.0), (20_000, 1.0), (100_000, 4.0)):
            held, width, seconds = np.zeros(3), [], 0.0
            for _ in range(runs):
                x, z = rng.normal(0, 0.5, (2, n))
                frame = {"x": x, "z": 0.5 * x + z}
                frame["y"] = 0.1 + 0.4 * x - 0.2 * z + rng.normal(0, 0.2, n)
                made = inference.linear_regression(
                    "y ~ x + z",
                    frame,
                    bounds={"y": (-2, 2), "x": (-2, 2), "z": (-2, 2)},
                    epsilon=epsilon,
                    delta=DELTA,
                    neighbours=neighbours,
                )
                start = time.perf_counter()
                ends = made.simulated(draws=2000).interval()
                seconds += time.perf_counter() - start
                held += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
                width.append(ends[1, 1] - ends[1, 0])
            shares = held / runs
            told = "  ".join(f"{s:.3f}" for s in shares)
            speed = f"bootstrap of 2,000 in {seconds / runs * 1e3:.0f} ms"
            yield (
                f"{neighbours:<10} n {n:7,} eps {epsilon:3}: {told}, median width "
                f"{np.median(width):.3f}, infinite {np.mean(np.isinf(width)):.0%}, {speed}",
                bool((shares >= 0.93).all()) and seconds / runs < 1,
            )


@row(300)
def quantiles(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Three quantiles of an exponential law at once, n 5,000, eps 1: errors and coverage."""
    shares = np.array([0.1, 0.5, 0.9])
    truth = -2 * np.log1p(-shares)
    off, held, peer = [], np.zeros(3), []
    measure = _opendp()
    yield ("OpenDP is not installed" if measure is None else "OpenDP: one third of eps each"), None
    for _ in range(runs):
        x = rng.exponential(2, 5000)
        made = inference.quantiles(x, shares, bounds=(0, 20), epsilon=1, neighbours="add-remove")
        ends = made.simulated(draws=1000).interval()
        held += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        off.append((made.estimate - truth) ** 2)
        if measure is not None:
            peer.append((measure(x, shares) - truth) ** 2)
    ours = np.sqrt(np.mean(off, axis=0))
    told = "  ".join(f"{s:.3f}" for s in held / runs)
    yield f"coverage {told}", bool((held / runs >= 0.93).all())
    yield "root mean square error " + "  ".join(f"{v:.3f}" for v in ours), None
    if peer:
        theirs = np.sqrt(np.mean(peer, axis=0))
        ratio = "  ".join(f"{v:.2f}" for v in theirs / ours)
        yield f"OpenDP {'  '.join(f'{v:.3f}' for v in theirs)}, ratio {ratio}", None


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    candidates = np.linspace(0, 20, 513).tolist()

    def measure(x: Any, shares: Any) -> Any:
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
        return np.array(
            [
                dp.binary_search_chain(
                    lambda s, q=q: (
                        space >> dp.m.then_private_quantile(dp.max_divergence(), candidates, q, s)
                    ),
                    d_in=1,
                    d_out=1 / 3,
                )(x.tolist())
                for q in shares
            ]
        )

    return measure


if __name__ == "__main__":
    raise SystemExit(main())

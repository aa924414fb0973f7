"""What 1 in 1,000 has: prevalence, small cells and a score, at several epsilons and sizes.

Run with ``python -m benchmarks.fields.rare_disease [--rounds N]``. People are
simulated, so that the truth is known; figures are errors and coverage. Beside each: the same
without privacy, and, of a table of counts, counts below ten left out, as is done today.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import inference, learn
from dither.mechanisms import DiscreteLaplace

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
BOUNDS = ([0, -4, 0], [90, 4, 1])
DELTA = 1e-6


def people(n: int, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """Age, a marker and whether there is a case in the family; and who is ill, 1 in 1,000."""
    age, marker = rng.integers(0, 90, n), rng.normal(0, 1, n)
    family = rng.random(n) < 0.05
    odds = np.exp(-9.0 + 0.02 * age + 1.0 * marker + 1.5 * family)
    return np.column_stack([age, marker, family]), rng.random(n) < odds / (1 + odds)


def area(score: Floats, ill: Bools) -> float:
    """The chance that somebody ill scores above somebody who is not."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(ill, score))


def prevalence(rounds: int, rng: np.random.Generator) -> None:
    """Widths and coverage of intervals for the share of people."""
    print("\nprevalence of 1 in 1,000: half-width of 95 % intervals, per 1,000; coverage")
    print(f"{'people':>10}" + "".join(f"{f'ε = {e}':>16}" for e in (0.1, 0.3, 1, 3)))
    for n in (3_000, 10_000, 30_000, 100_000, 1_000_000):
        cells = []
        for epsilon in (0.1, 0.3, 1, 3):
            found = []
            for _ in range(rounds if n < 1_000_000 else 1):
                ill = np.zeros(n, dtype=bool)
                ill[: rng.binomial(n, 0.001)] = True
                low, high = inference.proportion(ill, epsilon=epsilon).interval()
                found.append(((high - low) / 2, low <= 0.001 <= high))
            width, held = np.mean(found, axis=0)
            shown = f"± {1000 * width:.2f}" + (f"  {held:.0%}" if n < 1_000_000 else "")
            cells.append(f"{shown:>16}")
        print(f"{n:>10,}" + "".join(cells))


def small_cells(rng: np.random.Generator) -> None:
    """A table of 100 districts, 1,000 to 20,000 people in each."""
    size = rng.integers(1_000, 20_000, 100)
    exact = rng.binomial(size, 0.001)
    print("\ncases in 100 districts: mean |error|; what is said of a district, from to")
    shown = exact >= 10
    # Of what is left out nothing is known but that it is below ten: 4.5 is the middle.
    guessed = np.where(shown, exact, 4.5)
    print(
        f"below 10 left out ({100 - shown.sum()} of 100): "
        f"{np.abs(guessed - exact).mean():.2f}; 0 to 9 where left out"
    )
    for epsilon in (0.3, 1, 3):
        noise = DiscreteLaplace.for_loss(str(epsilon), l1=1)
        error = np.mean([np.abs(noise.draw(100)).mean() for _ in range(100)])
        print(f"ε = {epsilon}: {error:.2f}; ± {noise.half_width(0.95)}")


def models(epsilon: float) -> dict[str, Any]:
    """The models that are tried."""
    asked: dict[str, Any] = {"epsilon": epsilon, "bounds": BOUNDS, "classes": [0, 1]}
    return {
        "logistic": learn.LogisticRegression(delta=DELTA, **asked),
        "additive": learn.AdditiveClassifier(delta=DELTA, **asked),
        "naive Bayes": learn.GaussianNB(delta=0, **asked),
    }


def scores(rounds: int, rng: np.random.Generator) -> None:
    """Areas under the curve on fresh people, with all controls and with some."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    fresh, sick = people(200_000, rng)
    print("\nscore: area under the curve on 200,000 fresh people, mean (deviation of a run)")
    epsilons = (0.3, 1, 3)
    print(f"{'':44}" + "".join(f"{f'ε = {e}':>15}" for e in epsilons) + f"{'no privacy':>15}")
    for n in (10_000, 100_000):
        for share in (1.0, 0.02):
            found: dict[str, list[list[float]]] = {}
            for _ in range(rounds):
                rows, ill = people(n, rng)
                kept = ill | (rng.random(n) < share)
                rows, labels = rows[kept], ill[kept].astype(int)
                scale = StandardScaler().fit(rows)
                plain = LogisticRegression().fit(scale.transform(rows), labels)
                bare = area(plain.decision_function(scale.transform(fresh)), sick)
                for name in ("logistic", "additive", "naive Bayes"):
                    line = []
                    for epsilon in epsilons:
                        model = models(epsilon)[name].fit(rows, labels)
                        line.append(area(model.predict_proba(fresh)[:, 1], sick))
                    found.setdefault(name, []).append([*line, bare])
            for name, runs in found.items():
                controls = "all controls" if share == 1 else f"{share:.0%} of controls"
                mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0)
                cells = [f"{m:.2f} ({s:.2f})" for m, s in zip(mean, spread, strict=True)]
                if name != "logistic":
                    cells[-1] = ""
                print(
                    f"{f'{n:,} people, {controls}, {name}':<44}"
                    + "".join(f"{c:>15}" for c in cells)
                )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)
    prevalence(5 * rounds, rng)
    small_cells(rng)
    scores(rounds, rng)


if __name__ == "__main__":
    main()

"""Simulated card payments: whom receipts give away, and a score of cards at several epsilons.

Run with ``python -m benchmarks.fields.fraud [--rounds N]``. A row is a card with all its payments
of a month; one in two hundred is used by somebody else. Figures are shares of those that are among
the one per cent of 50,000 other cards with the highest score: mean (deviation of a run).
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import numpy.typing as npt
import polars as pl

from dither import learn

Floats = npt.NDArray[np.float64]
CATEGORIES = ("food", "fuel", "clothes", "travel", "electronics", "games", "restaurants", "health")
BOUNDS = ([0.0] * 5, [1.0] * 5)
DELTA = 1e-6


def payments(cards: int, rng: np.random.Generator) -> pl.DataFrame:
    """A month of payments: card, day, hour, category, amount, abroad, fraud; about 18 a card."""
    often = rng.gamma(1.5, 12, cards)
    own = pl.DataFrame({"card": np.repeat(np.arange(cards), 1 + rng.poisson(often))})
    n = own.height
    usual = rng.normal(3.2, 0.5, cards)[own["card"].to_numpy()]
    own = own.with_columns(
        day=rng.integers(1, 31, n),
        hour=np.clip(rng.normal(15, 4, n), 0, 23).astype(int),
        category=rng.choice(CATEGORIES, n, p=(0.35, 0.12, 0.1, 0.05, 0.05, 0.03, 0.22, 0.08)),
        amount=np.round(np.exp(usual + rng.normal(0, 0.8, n)), 2),
        abroad=rng.random(n) < rng.beta(0.1, 2, cards)[own["card"].to_numpy()],
        fraud=np.zeros(n, dtype=int),
    )
    hit = np.repeat(np.flatnonzero(rng.random(cards) < 0.005), 4)
    hit = hit[rng.random(len(hit)) < 0.75]
    n = len(hit)
    other = pl.DataFrame({"card": hit}).with_columns(
        day=rng.integers(1, 31, n),
        hour=rng.integers(0, 24, n),
        category=rng.choice(CATEGORIES, n, p=(0.05, 0.05, 0.1, 0.15, 0.35, 0.2, 0.05, 0.05)),
        amount=np.round(np.exp(rng.normal(5, 1, n)), 2),
        abroad=rng.random(n) < 0.6,
        fraud=np.ones(n, dtype=int),
    )
    return pl.concat([own, other])


def features(table: pl.DataFrame) -> tuple[Floats, npt.NDArray[np.int64]]:
    """What is said of each card by itself, in 0 to 1, and whether somebody else used it."""
    amount, at = pl.col("amount"), pl.col("category").is_in(["travel", "electronics", "games"])
    cards = table.group_by("card", maintain_order=True).agg(
        (amount.max().log1p() / 9).clip(0, 1),
        ((amount.max() / amount.median()).log1p() / 6).clip(0, 1).alias("odd"),
        ((amount * pl.col("abroad")).max().log1p() / 9).clip(0, 1).alias("abroad"),
        ((amount * at).max().log1p() / 9).clip(0, 1).alias("dear"),
        ((pl.col("hour") < 6) & (amount > 50)).any().cast(float).alias("night"),
        pl.col("fraud").max(),
    )
    kept = cards.select("amount", "odd", "abroad", "dear", "night").to_numpy()
    return kept, cards["fraud"].to_numpy()


def found(score: Floats, hit: npt.NDArray[np.int64]) -> float:
    """The share of the cards that were hit among the one per cent with the highest score."""
    worst = np.argsort(-score)[: len(score) // 100]
    return float(hit[worst].sum() / hit.sum())


def unicity(
    table: pl.DataFrame, receipts: int, rng: np.random.Generator, tried: int = 300
) -> float:
    """How often so many receipts (day, shop's category, euros) fit one card alone."""
    facts = table.with_columns(pl.col("amount").round(0).cast(pl.Int64))
    facts = facts.select("card", "day", "category", "amount").unique().sort(pl.all())
    of = facts.group_by("card").len().filter(pl.col("len") >= receipts)["card"].sort().to_numpy()
    alone = 0
    for card in rng.choice(of, tried, replace=False):
        known = facts.filter(pl.col("card") == card).sample(receipts, seed=int(rng.integers(2**31)))
        fits = facts.join(known, on=["day", "category", "amount"], suffix="_known")
        alone += fits.group_by("card").len().filter(pl.col("len") == receipts).height == 1
    return alone / tried


def scores(rounds: int, rng: np.random.Generator) -> None:
    """What scores find, by cards, epsilon and model; beside a rule, and no privacy."""
    from sklearn.linear_model import LogisticRegression

    epsilons = ("0.3", "1", "3")
    print(f"{'cards, model':<28}" + "".join(f"{f'ε = {e}':>13}" for e in epsilons))
    runs: dict[str, list[list[float]]] = {}
    for _ in range(rounds):
        fresh, hit = features(payments(50_000, rng))
        for n in (10_000, 50_000):
            rows, fraud = features(payments(n, rng))
            bare = LogisticRegression(max_iter=500).fit(rows, fraud)
            line = []
            for epsilon in epsilons:
                model = learn.LogisticRegression(
                    epsilon=epsilon, delta=DELTA, bounds=BOUNDS, classes=[0, 1]
                )
                line.append(found(model.fit(rows, fraud).predict_proba(fresh)[:, 1], hit))
            runs.setdefault(f"{n:,}, logistic", []).append(line)
            plain = found(bare.predict_proba(fresh)[:, 1], hit)
            runs.setdefault(f"{n:,}, no privacy", []).append([plain])
        runs.setdefault("the largest amount", []).append([found(fresh[:, 0], hit)])
        runs.setdefault("the largest abroad", []).append([found(fresh[:, 2], hit)])
    for name, lines in runs.items():
        cells = zip(np.mean(lines, axis=0), np.std(lines, axis=0), strict=True)
        print(f"{name:<28}" + "".join(f"{f'{a:.2f} ({b:.2f})':>13}" for a, b in cells))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)
    month = payments(20_000, rng)
    for receipts in (1, 2, 3, 4):
        alone = unicity(month, receipts, rng)
        print(f"{receipts} receipts: {alone:.0%} of cards are alone with them")
    scores(rounds, rng)


if __name__ == "__main__":
    main()

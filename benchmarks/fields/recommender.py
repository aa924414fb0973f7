"""Nearest items from private co-counts, by epsilon, items a person and people; attacks on both.

Run with ``python -m benchmarks.fields.recommender``; a minute. People are simulated: a taste for
some of ten kinds, items of unequal fame. Quality is the share of an item's ten nearest (cosine)
that are among its ten nearest without noise or bound, and the share that are of its kind.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

import dither as dt
from dither import mechanisms

ITEMS, KINDS, NEAR, DELTA = 100, 10, 10, 1e-6
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
KIND = np.arange(ITEMS) % KINDS


def people(n: int, rng: np.random.Generator) -> Bools:
    """Who has rated what, shape (n, ITEMS): 5 to 40 items each, 17 on average."""
    taste = rng.dirichlet(np.full(KINDS, 0.3), n)[:, KIND] + 0.01
    key = np.log(taste / np.arange(1, ITEMS + 1) ** 0.7) + rng.gumbel(size=(n, ITEMS))
    sizes = np.minimum(rng.geometric(1 / 15, n) + 4, 40)
    return key.argsort(axis=1)[:, ::-1].argsort(axis=1) < sizes[:, None]


def at_most(seen: Bools, most: int, rng: np.random.Generator) -> Bools:
    """Of each person, that many of their items, at random."""
    key = np.where(seen, rng.random(seen.shape), 2.0)
    return seen & (key.argsort(axis=1).argsort(axis=1) < most)


def together(seen: Bools) -> Floats:
    """How many people have rated both, shape (ITEMS, ITEMS); on the diagonal, that one."""
    one = seen.astype(np.float32)
    return (one.T @ one).astype(float)


def noisy(exact: Floats, most: int, epsilon: float) -> tuple[Floats, float]:
    """The co-counts with noise for a person's pairs, and its standard deviation."""
    pairs = most * (most + 1) // 2
    upper = np.triu_indices(ITEMS)
    law = mechanisms.choose(
        l1=pairs, l2_squared=pairs, dimension=upper[0].size, epsilon=str(epsilon), delta=DELTA
    ).mechanism
    counts = np.zeros_like(exact)
    counts[upper] = exact[upper] + law.draw(upper[0].size)
    return np.triu(counts) + np.triu(counts, 1).T, float(law.variance) ** 0.5


def nearest(counts: Floats, deviation: float = 0.0) -> npt.NDArray[np.intp]:
    """Ten items of largest cosine, each counted down by a deviation of its noise."""
    size = np.maximum(np.diag(counts), max(deviation, 1.0))
    cosine = (counts - deviation) / np.sqrt(np.outer(size, size))
    np.fill_diagonal(cosine, -np.inf)
    return np.argsort(-cosine, axis=1)[:, :NEAR]


def shared(found: npt.NDArray[np.intp], best: npt.NDArray[np.intp]) -> float:
    """The share of the ten that are the same."""
    return float(np.mean([len(set(a) & set(b)) / NEAR for a, b in zip(found, best, strict=True)]))


def quality(rng: np.random.Generator) -> None:
    """Nearest items by people, items a person and epsilon."""
    print("nearest ten: the same as without noise, of the same kind")
    epsilons = (0.3, 1, 3, 10)
    print(f"{'people':>8} {'items':>6}" + "".join(f"{f'ε = {e}':>15}" for e in epsilons))
    for n in (5_000, 20_000, 100_000):
        seen = people(n, rng)
        exact = together(seen)
        best = nearest(exact)
        cut = np.where(exact < 10, 0, exact)
        kind = (KIND[best] == KIND[:, None]).mean()
        left = f"counts below 10 left out: {shared(nearest(cut), best):.0%}"
        print(f"{n:>8,} exact: 100 % {kind:.0%}; {left}")
        for most in (5, 10, 20):
            counts = together(at_most(seen, most, rng))
            cells = []
            for epsilon in epsilons:
                runs = []
                for _ in range(5):
                    found = nearest(*noisy(counts, most, epsilon))
                    runs.append((shared(found, best), (KIND[found] == KIND[:, None]).mean()))
                a, b = np.mean(runs, axis=0)
                cells.append(f"{f'{a:.0%} {b:.0%}':>15}")
            print(f"{n:>8,} {most:>6}" + "".join(cells))


def frame(seen: Bools, ratings: Floats | None = None) -> pl.DataFrame:
    """Rows with a rating (or 1) for what was rated, NULL for the rest."""
    values = np.ones(seen.shape) if ratings is None else ratings
    cells = np.where(seen, values, np.nan)
    return pl.DataFrame(cells, schema=[f"i{j}" for j in range(ITEMS)]).fill_nan(None)


def drawn(counts: Floats, n: int, size: int, rng: np.random.Generator) -> Bools:
    """Rows that an attacker draws from co-counts: one item, then others that go with it."""
    first = np.clip(np.diag(counts), 0, None)
    start = rng.choice(ITEMS, n, p=first / first.sum())
    weights = np.clip(counts, 0.1, None)[start]
    key = np.log(weights) + rng.gumbel(size=(n, ITEMS))
    key[np.arange(n), start] = np.inf
    return key.argsort(axis=1)[:, ::-1].argsort(axis=1) < size


def matching(rng: np.random.Generator, n: int = 5_000, targets: int = 300, known: int = 8) -> None:
    """Somebody knows eight items of a person: the row is looked up, and the others are read."""
    both = people(2 * n, rng)
    both = both[both.sum(axis=1) >= known + 2]
    inside, outside = both[: n // 2], both[n // 2 : n // 2 + targets]
    print(f"\nmatching {targets} people of {len(inside):,} by {known} items")
    print(f"{'':34}{'right row':>10}{'claimed':>9}{'other items read right, in / not in':>38}")
    stars = rng.integers(1, 6, both.shape).astype(float)
    near = np.clip(stars + rng.integers(-1, 2, stars.shape), 1, 5)
    stars_in, near_in, near_out = stars[: n // 2], near[:targets], near[n // 2 : n // 2 + targets]
    releases = {"the table without names": (inside, stars_in)}
    for epsilon in (1, 10):
        counts, _ = noisy(together(at_most(inside, 10, rng)), 10, epsilon)
        rows = drawn(counts, len(inside), 17, rng)
        releases[f"rows drawn from co-counts, ε = {epsilon}"] = (rows, None)
    for name, (rows, rated) in releases.items():
        released, read, right, claimed = frame(rows, rated), [], 0, 0
        for group, rough in ((outside, near_out), (inside[:targets], near_in)):
            hint = at_most(group, known, rng)
            asked = frame(hint, None if rated is None else rough)
            found = dt.attack.inexact_linkage(
                released, asked, released.columns, truth=range(targets)
            )
            rest = rows[found.guesses] & ~hint
            read.append((rest & group).sum() / rest.sum())
            right = int((found.guesses == np.arange(targets)).sum())
            claimed = found.claimed
        shown = f"{read[1]:.0%} / {read[0]:.0%}"
        print(f"{name:34}{right / targets:>10.1%}{claimed:>9}{shown:>38}")


def newest(rng: np.random.Generator, n: int = 5_000, plays: int = 300) -> None:
    """Co-counts before and after: which item did she rate last? Eight of hers are known."""
    seen = people(n, rng)
    who = rng.choice(np.flatnonzero(seen.sum(axis=1) >= 10), plays)
    print(
        "\nher newest item, guessed from co-counts before and after it (one in about 90 by chance)"
    )
    for epsilon in (None, 0.3, 1, 3, 10):
        hits = 0
        for person in who:
            own = rng.permutation(np.flatnonzero(seen[person]))[:9]
            new, old = own[0], own[1:]
            change = np.zeros((ITEMS, ITEMS))
            change[new, old] = change[old, new] = 1
            change[new, new] = 1
            if epsilon is not None:
                # Both releases have noise; an item counts in at most ten of a person.
                zero = np.zeros_like(change)
                change += noisy(zero, 10, epsilon)[0] - noisy(zero, 10, epsilon)[0]
            score = change[:, old].sum(axis=1)
            score[old] = -np.inf
            hits += int(np.argmax(score) == new)
        print(f"{'exact' if epsilon is None else f'ε = {epsilon} each'}: {hits / plays:.0%}")


def main() -> None:
    """Print the tables."""
    rng = np.random.default_rng(1)
    quality(rng)
    matching(rng)
    newest(rng)


if __name__ == "__main__":
    main()

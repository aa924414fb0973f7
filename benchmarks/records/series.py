"""Simulated meters: errors of what `dither.series` releases, beside published baselines.

Run with ``python -m benchmarks.records.series``; a minute. Peers: noise on every time by itself
for all of a unit's readings (LPA of Rastogi and Nath), without and with a bound on a unit's
vector; even budgets for streams (as Kellaris et al. compare).
"""

from __future__ import annotations

import numpy as np

from dither import series

HOMES, DAYS = 5000, 14


def meters(homes: int, days: int, seed: int = 1) -> np.ndarray:
    """Half-hourly kWh: a base, a morning and an evening, weekends, and homes of all sizes."""
    rng = np.random.default_rng(seed)
    at = np.arange(48 * days)
    hour, day = at % 48 / 2, at // 48
    shape = 0.15 + 0.25 * np.exp(-((hour - 7.5) ** 2) / 3) + 0.5 * np.exp(-((hour - 19) ** 2) / 6)
    shape = shape * np.where(day % 7 >= 5, 1.2, 1.0)
    size = rng.lognormal(-0.2, 0.5, (homes, 1))
    return np.minimum(size * shape * rng.gamma(4, 0.25, (homes, at.size)), 4.0)


def rms(found: np.ndarray, exact: np.ndarray) -> float:
    """Root mean square error, in per cent of the mean."""
    return float(100 * np.sqrt(((found - exact) ** 2).mean()) / exact.mean())


def sums(use: np.ndarray) -> None:
    """All readings of a home, by every transform: times, days and any stretch."""
    exact, length = use.sum(axis=0), use.shape[1]
    rng = np.random.default_rng(2)
    stretches = np.sort(rng.integers(0, length + 1, (100, 2)), axis=1)
    stretches = stretches[stretches[:, 1] > stretches[:, 0]]
    whole = np.concatenate([[0], np.cumsum(exact)])
    bound = float(np.quantile(np.sqrt((use**2).sum(axis=1)), 0.95))
    total = float(np.quantile(use.sum(axis=1), 0.95))
    print(f"\nall {length} readings of one of {len(use):,} homes, error in per cent of the mean")
    print(f"{'':52}{'a time':>8} {'a stretch':>10}")
    for epsilon, delta in ((1, 0), (1, 1e-6)):
        asked = {"bounds": (0, 4), "epsilon": epsilon, "delta": delta}
        pure = delta == 0
        limit = {"max_total": total} if pure else {"max_norm": bound}
        rows = {
            "every time by itself, no bound (LPA)": series.window_sums(use, **asked),
            "every time by itself, bounded": series.window_sums(use, **asked, **limit),
            "Haar wavelets, bounded": series.haar(use, **asked, **limit),
        }
        for kept in (15, 61, 121):
            rows[f"{kept} Fourier coefficients, bounded"] = series.fourier(
                use, coefficients=kept, **asked, max_norm=bound
            )
        for name, found in rows.items():
            got = np.concatenate([[0], np.cumsum(found.values)])
            far = [
                abs((got[b] - got[a]) - (whole[b] - whole[a])) / (whole[b] - whole[a])
                for a, b in stretches
            ]
            name = f"epsilon = 1, delta = {delta:g}: {name}"
            print(f"{name:64}{rms(found.values, exact):8.2f} {100 * np.mean(far):8.3f}")


def promises(use: np.ndarray) -> None:
    """What the same noise on daily sums costs under each promise."""
    found = series.window_sums(
        use, bounds=(0, 4), window=48, level="event", epsilon="0.1", unit="home"
    )
    print("\none noise on days' sums, priced:")
    for level, loss in found.prices(w=48).items():
        print(f"{level:>8}: epsilon = {float(loss.charge.epsilon):g}, {loss.promise.describe()}")


def streams() -> None:
    """Counts of 5,000 units in four cells that change at times; mean absolute error of a count."""
    rng = np.random.default_rng(3)
    print("\nstreams, w = 24, mean |error| of a count of 5,000: epsilon = 0.1       1")
    for name, quiet in (("changes every 40 times", 40), ("changes each time", 1)):
        shares = np.repeat(rng.dirichlet(np.ones(4), 400 // quiet), quiet, axis=0)
        counts = np.rint(5000 * shares).astype(np.int64)
        for method in ("absorption", "distribution", "uniform"):
            row = []
            for epsilon in (0.1, 1):
                stream = series.WEventStream(4, w=24, epsilon=epsilon, method=method, per_time=2)
                told = np.array([stream.publish(c) for c in counts])
                row.append(np.abs(told - counts).mean())
            print(f"{f'{name}: {method}':50}{row[0]:>18.1f} {row[1]:7.1f}")


def main() -> None:
    """All tables."""
    use = meters(HOMES, DAYS)
    sums(use)
    promises(use)
    streams()


if __name__ == "__main__":
    main()

"""Learned bounds: how far from true quantiles, and what they cost a mean, beside declared ones.

    python benchmarks/inference/bounds.py [ROWS ...]

Values are lognormal (median 148, half of the logarithms within 0.67), or normal around 40. For each
size: the learned bounds at ε = 0.1, which share of the values lies outside and how much is said at
most, and the root mean square error of AVG at ε = 0.5 with learned and with declared bounds. Where
OpenDP is installed, its private quantiles over the same public range stand beside them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import dither as dt

REPEATS = 5
DECLARED = {"lognormal": [0, 5000], "normal": [0, 120]}


def drawn(shape: str, n: int) -> np.ndarray:
    """Simulated values, seeded."""
    rng = np.random.default_rng(n)
    return rng.lognormal(5, 1, n) if shape == "lognormal" else rng.normal(40, 15, n)


def opened(folder: str, values: np.ndarray, bounds: object) -> dt.Session:
    """A session over one column, each row a person."""
    policy = {
        "budget": {"epsilon": 10**6, "ledger": str(Path(tempfile.mkdtemp(dir=folder)) / "l")},
        "tables": {"t": {"columns": {"x": {"bounds": bounds}}}},
    }
    return dt.open(policy, sources={"t": pl.DataFrame({"x": values})})


def peer(values: np.ndarray) -> str:
    """OpenDP's quantiles 0.001 and 0.999 over a public list of candidates, ε = 0.1 in all."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return ""
    dp.enable_features("contrib")
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    edges = [s * 10.0**k for k in range(-9, 15) for s in steps]
    candidates = sorted({-e for e in edges} | {0.0} | set(edges))
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    ends = []
    for alpha in (0.001, 0.999):
        made = space >> dp.m.then_private_quantile(
            dp.max_divergence(), candidates=candidates, alpha=alpha, scale=4 / 0.1
        )
        ends.append(made(values.tolist()))
    return f"  OpenDP [{ends[0]:g}, {ends[1]:g}]"


def main(sizes: list[int]) -> None:
    """Print one line for each shape and size."""
    with tempfile.TemporaryDirectory() as folder:
        for shape in DECLARED:
            for n in sizes:
                values = drawn(shape, n)
                low, high = np.quantile(values, [0.001, 0.999])
                print(f"{shape}, n = {n:,}: 0.1 % and 99.9 % quantiles [{low:.4g}, {high:.4g}]")
                outside, most, errors = [], [], {"learned": [], "declared": []}
                for _ in range(REPEATS):
                    with opened(folder, values, "learned") as session:
                        found = session.learn("t", "x", epsilon=0.1)
                        if found.lower is None:
                            continue
                        ends = float(found.lower), float(found.upper)
                        outside.append(np.mean((values < ends[0]) | (values > ends[1])))
                        most.append(found.outside_at_most)
                        mean = session.sql("SELECT AVG(x) AS m FROM t").release(0.5).frame["m"][0]
                        errors["learned"].append(mean - values.mean())
                    with opened(folder, values, DECLARED[shape]) as session:
                        mean = session.sql("SELECT AVG(x) AS m FROM t").release(0.5).frame["m"][0]
                        errors["declared"].append(mean - values.mean())
                if not outside:
                    print("  nothing could be learned")
                    continue
                rms = {k: float(np.sqrt(np.mean(np.square(v)))) for k, v in errors.items()}
                print(
                    f"  last of {len(outside)}/{REPEATS}: [{ends[0]:g}, {ends[1]:g}]; outside "
                    f"{np.mean(outside):.2%}, said at most {np.mean(most):.2%}; error of the mean "
                    f"{rms['learned']:.3g} learned, {rms['declared']:.3g} declared{peer(values)}"
                )


if __name__ == "__main__":
    main([int(float(n)) for n in sys.argv[1:]] or [1_000, 10_000, 100_000, 1_000_000])

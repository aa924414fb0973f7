"""Draws a second of exact noise: ours, OpenDP's in the same run, and numpy's unsafe floats.

Run with ``python -m benchmarks.noise``. Every figure is the best of several timings in one
process on one core; read the ratios, which carry from machine to machine better.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dither.noise import (
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_one,
)
from dither.noise._gaussian import gaussian_sampler
from dither.noise._laplace import laplace_sampler

OURS = 1 << 20
PEER = 1 << 14
SCALES = (10, 1000, 2**20, 2**30, 2**40, 2**50)
REACH = {10: 30e6, 1000: 30e6, 2**20: 5e6, 2**30: 5e6}


def best(work: Callable[[], Any], times: int) -> float:
    """Return the shortest of several timings, in seconds, after one untimed call."""
    work()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def opendp() -> dict[str, Callable[[int], Callable[[list[int]], Any]]] | None:
    """Return OpenDP's exact integer mechanisms on vectors by name, or None where it is missing."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    return {
        "Laplace": lambda s: dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(s)),
        "Gaussian": lambda s: dp.m.make_gaussian(domain, dp.l2_distance(T=int), scale=float(s)),
    }


def name(scale: int) -> str:
    """Return a scale as people write it."""
    power = math.log2(scale)
    return f"2^{power:.0f}" if scale > 1000 else str(scale)


def millions(rate: float | None) -> str:
    """Return a rate in millions a second."""
    return "–" if rate is None else f"{rate / 1e6:.3g} M"


def vectors() -> None:
    """Print draws a second of vectors."""
    peer = opendp()
    if peer is None:
        print("OpenDP is not installed (pip install 'dither[bench]'): its column stays empty.\n")
    unsafe = np.random.default_rng(1)
    print("| law | scale | dither | OpenDP | numpy floats (unsafe) | ÷ OpenDP | ÷ numpy | reach |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for law in ("Laplace", "Gaussian"):
        for s in SCALES:
            if law == "Laplace":
                mine = best(lambda s=s: discrete_laplace(Fraction(s), OURS), 7)
                floats = best(lambda s=s: unsafe.laplace(0.0, s, OURS), 3)
            else:
                mine = best(lambda s=s: discrete_gaussian(Fraction(s * s), OURS), 7)
                floats = best(lambda s=s: unsafe.normal(0.0, s, OURS), 3)
            rate, other, unsafe_rate = OURS / mine, None, OURS / floats
            if peer is not None:
                mechanism, zeros = peer[law](s), [0] * PEER
                other = PEER / best(lambda m=mechanism, z=zeros: m(z), 2)
            reach = "–" if s not in REACH else millions(REACH[s])
            against = "–" if other is None else f"{rate / other:.0f}×"
            print(
                f"| {law} | {name(s)} | {millions(rate)} | {millions(other)} "
                f"| {millions(unsafe_rate)} | {against} | {rate / unsafe_rate:.1f}× | {reach} |"
            )


def singles() -> None:
    """Print the time of single draws, and of the first draw with a parameter never seen."""
    print("\n| | µs |\n| --- | --- |")
    for label, one in (
        ("one discrete Laplace draw, scale 1000", lambda: discrete_laplace_one(Fraction(1000))),
    ):

        def many(one: Callable[[], int] = one) -> None:
            for _ in range(20_000):
                one()

        print(f"| {label} | {best(many, 5) / 20_000 * 1e6:.2f} |")

    def first_laplace() -> None:
        laplace_sampler.cache_clear()
        discrete_laplace(Fraction(1000), 10)

    def first_gaussian() -> None:
        gaussian_sampler.cache_clear()
        discrete_gaussian(Fraction(1_000_000), 10)

    print(f"| first ten Laplace draws of a new scale, 1000 | {best(first_laplace, 5) * 1e6:.0f} |")
    print(f"| first ten Gaussian draws of a new σ, 1000 | {best(first_gaussian, 5) * 1e6:.0f} |")


def main() -> None:
    """Print both tables."""
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {OURS:,} draws a call\n")
    vectors()
    singles()


if __name__ == "__main__":
    main()

"""The auditor's own errors: false alarms on true claims, and the planted bugs that it catches.

Run with ``python -m benchmarks.audit [--runs 300]``; some minutes. A false alarm is a "violated" of
a claim that holds; the auditor promises at most 1 % of them at 99 % confidence. The mechanisms are
those whose claim is met with equality by an event, or nearly, where false alarms are likeliest.

``--channels RUNS`` audits local channels over all of their inputs, right and wrong ones, and fails
where a right one is accused (``--only right`` for these alone).
``--rare RUNS`` prints how often rare and small faults are caught instead, and ``--true RUNS``
audits each of nine true and tight claims that often, from seed ``--first`` on, and fails where any
is accused: it prints how often, how often more is certified than is claimed, and the most.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dither import mechanisms, privacy
from dither._subjects import declared
from dither.examples.planted import planted_bugs
from dither.lab.audit import Outcome, audit, audit_channel, grid_score
from dither.numeric import SimulatedWords

QUICK = (
    "discrete Laplace",
    "discrete Gaussian",
    "staircase",
    "Tulap",
    "randomised response",
    "quantile tree",
)
SAMPLES = 10_000
SIZES = (3_000, 10_000, 100_000)


def false_alarms(runs: int) -> int:
    """Print how often true claims are accused; return how many mechanisms were, too often."""
    print(
        "| true claim | runs | accused | highest certified ε | of |\n"
        "| --- | --- | --- | --- | --- |"
    )
    bad = 0
    for subject in declared(mechanisms):
        if subject.name not in QUICK:
            continue
        found = [
            audit(
                subject.mechanism,
                subject.d0,
                subject.d1,
                subject.epsilon,
                subject.delta,
                samples=SAMPLES,
                words=SimulatedWords(run),
            )
            for run in range(runs)
        ]
        accused = sum(f.verdict is Outcome.VIOLATED for f in found)
        bad += accused > 0.01 * runs
        highest = max(f.lower for f in found)
        print(
            f"| {subject.name} | {runs} | {accused} | {highest:.3f} | {float(subject.epsilon):g} |"
        )
    return bad


def detection(runs: int) -> int:
    """Print how often planted bugs are caught, and how long it takes; return how many are not."""
    heads = "".join(f" of {size:,} |" for size in SIZES)
    print(f"\n| planted bug |{heads} certified ε | seconds, {SIZES[-1]:,} |")
    print("| --- |" + " --- |" * (len(SIZES) + 2))
    missed = 0
    for bug in planted_bugs():
        caught, last = [], []
        for size in SIZES:
            last = [
                audit(
                    bug.mechanism,
                    bug.d0,
                    bug.d1,
                    bug.epsilon,
                    samples=size,
                    words=SimulatedWords(run),
                )
                for run in range(runs)
            ]
            caught.append(sum(f.verdict is Outcome.VIOLATED for f in last))
        missed += caught[-1] < runs
        row = "".join(f" {c}/{runs} |" for c in caught)
        lower = statistics.median(f.lower for f in last)
        slowest = max(f.seconds for f in last)
        print(f"| {bug.name} |{row} {lower:.2f} | {slowest:.1f} |")
    return missed


@dataclass(frozen=True)
class Case:
    """A mechanism of (data, size), simulated anew for each seed, with its claim and its truth."""

    name: str
    make: Callable[[np.random.Generator], Callable[[Any, int], Any]]
    truth: float
    """The epsilon of 0 and of 1."""
    samples: int = 100_000
    epsilon: float = 1.0
    d1: Any = 1
    options: dict[str, Any] = field(default_factory=dict)


def on_grid(values: Any) -> Any:
    """Values of a grid: their low-order bits say nothing."""
    return np.round(values * 2.0**20) / 2.0**20


def sometimes(rate: float, fault: Callable[..., Any]) -> Callable[..., Any]:
    """Laplace noise of scale 1, and once in a while a fault."""

    def make(rng: np.random.Generator) -> Callable[[Any, int], Any]:
        def release(data: float, size: int) -> Any:
            right = data + on_grid(rng.laplace(0, 1, size))
            return np.where(rng.random(size) < rate, fault(rng, data, size), right)

        return release

    return make


def raw(_: np.random.Generator, data: float, size: int) -> Any:
    """What was to be protected."""
    return np.full(size, float(data))


def quiet(rng: np.random.Generator, data: float, size: int) -> Any:
    """It, with far too little noise."""
    return data + on_grid(rng.normal(0, 1e-4, size))


def missing(rng: np.random.Generator, data: float, size: int) -> Any:
    """A failure that only one dataset has."""
    right = data + on_grid(rng.laplace(0, 1, size))
    return np.full(size, np.nan) if data else right


def of_integers(scale: float) -> Callable[..., Any]:
    """Two-sided geometric noise, of a sensitivity of 100."""
    ratio = 1.0 - np.exp(-1.0 / scale)
    return lambda rng: (
        lambda data, size: 100 * data + rng.geometric(ratio, size) - rng.geometric(ratio, size)
    )


def coordinates(scale: float, law: str = "laplace") -> Callable[..., Any]:
    """64 coordinates, which all change by one."""
    return lambda rng: lambda data, size: data + on_grid(getattr(rng, law)(0, scale, (size, 64)))


def cast(bits: int) -> Callable[..., Any]:
    """Laplace noise of a uniform of so many bits, cast to 32 bits with its answer."""

    def make(rng: np.random.Generator) -> Callable[[Any, int], Any]:
        def release(data: float, size: int) -> Any:
            uniform = (rng.integers(0, 2**bits, size) + 0.5) / 2.0**bits - 0.5
            noise = -np.sign(uniform) * np.log1p(-2.0 * np.abs(uniform))
            return (data + noise).astype(np.float32)

        return release

    return make


def in_cents(rng: np.random.Generator) -> Callable[[Any, int], Any]:
    """Laplace noise in doubles, given in another unit."""
    return lambda data, size: (data + rng.laplace(0, 1, size)) * 0.01


def near_zero(bits: int, below: float) -> Callable[[Any], Any]:
    """Where single precision is finer than the uniform's grid, how near an output is to it."""
    score = grid_score(0.0, 1.0, bits)
    return lambda y: np.where((y > 0) & (y < below), score(y), np.nan)


def between(distance: int) -> Callable[[Any], Any]:
    """What Laplace noise lets see of a sensitivity of 100."""
    return lambda y: np.clip(y, 0, 100 * distance)


def best(distance: int) -> Callable[[Any], Any]:
    """The likelihood ratio of 64 coordinates with Laplace noise."""
    half = distance / 2
    return lambda y: np.clip(y - half, -half, half).sum(axis=1)


def product(noise: Fraction) -> privacy.Loss:
    """64 coordinates with Laplace noise of scale 32."""
    return privacy.laplace(32 * noise) * 64


def normal(noise: Fraction) -> privacy.Loss:
    """64 coordinates with Gaussian noise of sigma = 16, all changed by one: mu = 1/2."""
    return privacy.gaussian(2 * noise)


INF = float("inf")
RARE = (
    Case("the raw value, 1 call in 1,000", sometimes(1e-3, raw), INF),
    Case("hardly any noise, 1 call in 1,000", sometimes(1e-3, quiet), 6.9, 200_000),
    Case("the raw value, 1 call in 2,000", sometimes(1 / 2000, raw), INF),
    Case("the same", sometimes(1 / 2000, raw), INF, 200_000),
    Case("NaN on one dataset, 1 call in 2,000", sometimes(1 / 2000, missing), INF, 200_000),
    Case("the same, NaN", sometimes(1 / 2000, missing), INF, 400_000),
    Case("sensitivity 99 for 100", of_integers(99), 100 / 99),
    Case("the same, score", of_integers(99), 100 / 99, 1_500_000,
         options={"score": between(1)}),
    Case("the same, score, distance 2", of_integers(99), 100 / 99, 800_000, d1=2,
         options={"score": between(2), "distance": 2}),
    Case("the same, a million", of_integers(99), 100 / 99, 1_000_000, d1=2,
         options={"score": between(2), "distance": 2}),
    Case("64 coordinates, Laplace, ε = 8 of 2", coordinates(8), 8, epsilon=2),
    Case("64 coordinates, Laplace, ε = 2", coordinates(32), 2, epsilon=2,
         options={"family": product}),
    Case("the same, best score", coordinates(32), 2, epsilon=2, options={"score": best(1)}),
    Case("the same, distance 4", coordinates(32), 2, epsilon=2, d1=4, options={"distance": 4}),
    Case("64 coordinates, Gaussian, ε = 2 at δ = 1e-5", coordinates(16, "normal"), 1.99,
         epsilon=2, options={"delta": 1e-5, "family": normal}),
    Case("floats in another unit", in_cents, INF),
    Case("24 bits, cast to 32, grid", cast(24), INF, options={"score": near_zero(24, 1.0)}),
    Case("32 bits, cast to 32, grid", cast(32), INF, 1_000_000,
         options={"score": near_zero(32, 2.0**-9)}),
    Case("52 bits, cast to 32, grid", cast(52), INF, 1_000_000,
         options={"score": near_zero(52, 2.0**-9)}),
)  # fmt: skip
TRUE = (
    Case("Laplace on a grid", sometimes(0.0, raw), 1, 4_000),
    Case("integers", of_integers(100), 1, 4_000),
    Case("integers, score", of_integers(100), 1, 4_000, options={"score": between(1)}),
    Case("integers, score, distance 2", of_integers(100), 1, 4_000, d1=2,
         options={"score": between(2), "distance": 2}),
    Case("six coordinates", lambda rng: lambda data, size: (
        data + on_grid(rng.laplace(0, 6, (size, 6)))), 1, 2_000),
    Case("randomised response, ε = 3", lambda rng: lambda data, size: (
        data ^ (rng.random(size) < 1 / (1 + np.exp(3)))), 3, 1_000, epsilon=3.0),
    Case("an event of one side, ε = 3", lambda rng: lambda data, size: (
        rng.random(size) < 0.5 * np.exp(-3.0 * data)).astype(int), 3, 2_000, epsilon=3.0),
    Case("Gaussian, δ = 0.127", lambda rng: lambda data, size: (
        data + on_grid(rng.normal(0, 1, size))), 1, 2_000, options={"delta": 0.12694}),
    Case("Gaussian, μ = 1", lambda rng: lambda data, size: (
        data + on_grid(rng.normal(0, 1, size))), 1, 2_000, options={"mu": 1.0}),
)  # fmt: skip


def response(
    k: int, more: float = 0.0, loose: int = -1, epsilon: float = 1.0
) -> Callable[..., Any]:
    """Randomised response of k values; at some rate the truth besides."""
    right = np.exp(epsilon) / (np.exp(epsilon) + k - 1)

    def make(rng: np.random.Generator) -> Callable[[Any, int], Any]:
        def report(value: int, size: int) -> Any:
            told = rng.random(size) < right
            told |= rng.random(size) < (0.1 if value == loose else more)
            return np.where(told, value, (value + rng.integers(1, k, size)) % k)

        return report

    return make


def unary(
    k: int = 64, own: float = 0.5, others: float = 1 / (1 + np.e), more: float = 0.0, bit: int = -1
) -> Callable[..., Any]:
    """Unary encoding; ``bit`` is one that others set with a chance of a fifth."""
    chances = np.full(k, others)
    if bit >= 0:
        chances[bit] = 0.2

    def make(rng: np.random.Generator) -> Callable[[Any, int], Any]:
        def report(value: int, size: int) -> Any:
            out = rng.random((size, k)) < chances
            out[:, value] = rng.random(size) < own
            bare = rng.random(size) < more
            out[bare] = False
            out[bare, value] = True
            return out.astype(np.int8)

        return report

    return make


CHANNELS = (
    Case("right: 4 values", response(4), 1, 20_000, d1=4),
    Case("right: 64 values", response(64), 1, 20_000, d1=64),
    Case("right: 8 bits", unary(8), 1, 20_000, d1=8),
    Case("right: 4 values, ε = 3", response(4, epsilon=3.0), 3, 20_000, epsilon=3.0, d1=4),
    Case("64 values, the truth 1 time in 2,000", response(64, 1 / 2000), 1.0126, 1_000_000, d1=64),
    Case("the same", response(64, 1 / 2000), 1.0126, 10_000_000, d1=64),
    Case("1,024 values, the truth 1 time in 2,000", response(1024, 1 / 2000), 1.173, 400_000,
         d1=1024),
    Case("the same", response(1024, 1 / 2000), 1.173, 1_000_000, d1=1024),
    Case("64 values, one of them told 1 time in 10", response(64, 0.0, 17), 2.22, d1=64),
    Case("64 bits, the bare value 1 time in 2,000", unary(more=1 / 2000), INF, d1=64),
    Case("64 bits, one of them set with 0.20 for 0.27", unary(bit=17), 1.39, d1=64),
    Case("64 bits, set with 0.25 for 0.27", unary(others=0.25), 1.099, d1=64),
    Case("64 bits, own set with 0.52 for 0.50", unary(own=0.52), 1.08, d1=64),
)  # fmt: skip


def channels(runs: int, first: int, only: str) -> int:
    """Print how often channels are accused; return how many true ones are."""
    print("| channel | claims | has | outputs | accused | above | certified ε |")
    print("| --- |" + " --- |" * 6)
    bad = 0
    for case in CHANNELS:
        if only not in case.name:
            continue
        found = [
            audit_channel(
                case.make(np.random.default_rng([first + run, 2])), range(case.d1),
                case.epsilon, samples=case.samples, words=SimulatedWords(first + run),
            )
            for run in range(runs)
        ]  # fmt: skip
        accused = sum(f.verdict is Outcome.VIOLATED for f in found)
        bad += accused if case.truth <= case.epsilon else 0
        lower = statistics.median(f.lower for f in found)
        above = sum(f.lower > case.epsilon for f in found)
        print(
            f"| {case.name} | {case.epsilon:g} | {case.truth:.4g} | {case.samples:,} | "
            f"{accused} of {runs:,} | {above} | {lower:.4g} |",
            flush=True,
        )
    return bad


def once(case: Case, seed: int) -> Any:
    """One audit of a case."""
    mechanism = case.make(np.random.default_rng([seed, 1]))
    return audit(
        mechanism, 0, case.d1, case.epsilon, samples=case.samples,
        words=SimulatedWords(seed), **case.options,
    )  # fmt: skip


def rare(runs: int, only: str) -> int:
    """Print how often rare and small faults are caught."""
    print("| fault | claims ε | has | samples | caught | certified ε | within a family |")
    print("| --- |" + " --- |" * 6)
    for case in RARE:
        if only not in case.name:
            continue
        found = [once(case, run) for run in range(runs)]
        caught = sum(f.verdict is Outcome.VIOLATED for f in found)
        lower = statistics.median(f.lower for f in found)
        within = [f.within for f in found if f.within is not None]
        print(
            f"| {case.name} | {case.epsilon:g} | {case.truth:.3g} | {case.samples:,} | "
            f"{caught} of {runs} | {lower:.4g} | "
            f"{f'{statistics.median(within):.3g}' if within else ''} |",
            flush=True,
        )
    return 0


def true(runs: int, first: int) -> int:
    """Print how often true and tight claims are accused; return how many are."""
    print("| true claim | samples | accused | above | highest |\n| --- | --- | --- | --- | --- |")
    bad = 0
    for case in TRUE:
        found = [once(case, first + run) for run in range(runs)]
        accused = sum(f.verdict is Outcome.VIOLATED for f in found)
        bad += accused
        by_mu = "mu" in case.options
        certified = [f.mu if by_mu else f.lower for f in found]
        above = sum(c > (case.options["mu"] if by_mu else case.epsilon) for c in certified)
        print(
            f"| {case.name} | {case.samples:,} | {accused} of {runs:,} | {above} | "
            f"{max(certified):.3f} |",
            flush=True,
        )
    return bad


def main() -> int:
    """Print both tables; 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="of each true claim")
    parser.add_argument("--caught", type=int, default=10, help="runs of each bug and size")
    parser.add_argument("--rare", type=int, metavar="RUNS", help="of each rare or small fault")
    parser.add_argument("--only", default="", help="of those, whose name has this in it")
    parser.add_argument("--channels", type=int, metavar="RUNS", help="of each local channel")
    parser.add_argument("--true", type=int, metavar="RUNS", help="of true and tight claims")
    parser.add_argument("--first", type=int, default=0, help="of their seeds")
    options = parser.parse_args()
    if options.channels:
        return min(1, channels(options.channels, options.first, options.only))
    if options.rare or options.true:
        accused = true(options.true, options.first) if options.true else 0
        return min(1, accused + (rare(options.rare, options.only) if options.rare else 0))
    print(f"{SAMPLES:,} outputs of each dataset, 99 % confidence\n")
    return 1 if false_alarms(options.runs) + detection(options.caught) else 0


if __name__ == "__main__":
    sys.exit(main())

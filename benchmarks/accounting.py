"""Composed privacy losses: ours beside dp-accounting, prv-accountant and Opacus, in one run.

Run with ``python -m benchmarks.accounting``. Ours prints a certified interval; its caches are
emptied before every timing, and the median of several is taken. A peer that is not installed is
left out with a line that says so. Read the ratios, which carry from machine to machine better.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import math
import platform
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dither import accounting, privacy
from dither.privacy._side import side

Work = Callable[[], Any]


@dataclass(frozen=True)
class Setting:
    """One row: our work, the peers', and what the target asks."""

    name: str
    ours: Work
    peers: dict[str, Work]
    truth: str
    reach: float | None
    """Seconds."""


def installed(module: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(module) is not None


def timed(work: Work, times: int) -> tuple[Any, float]:
    """The last result, and the median time in seconds."""
    taken, result = [], None
    for _ in range(times):
        side.cache_clear()
        start = time.perf_counter()
        result = work()
        taken.append(time.perf_counter() - start)
    return result, statistics.median(taken)


def pld(sigma: float, rate: float, steps: int, delta: float) -> Work:
    """dp-accounting's privacy-loss distribution."""

    def work() -> float:
        from dp_accounting.pld import privacy_loss_distribution as d

        one = d.from_gaussian_mechanism(sigma, sampling_prob=rate)
        return float(one.self_compose(steps).get_epsilon_for_delta(delta))

    return work


def rdp(sigma: float, rate: float, steps: int, delta: float) -> Work:
    """dp-accounting's Rényi accountant."""

    def work() -> float:
        import dp_accounting as d
        from dp_accounting.rdp import RdpAccountant

        event = d.PoissonSampledDpEvent(rate, d.GaussianDpEvent(sigma))
        return float(RdpAccountant().compose(event, steps).get_epsilon(delta))

    return work


def prv(sigma: float, rate: float, steps: int, delta: float) -> Work:
    """prv-accountant, to its usual error of 0.01."""

    def work() -> Any:
        from prv_accountant import PRVAccountant
        from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

        law = PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=rate)
        accountant = PRVAccountant(
            prvs=[law], max_self_compositions=[steps], eps_error=0.01, delta_error=delta * 1e-5
        )
        return accountant.compute_epsilon(delta, [steps])

    return work


def opacus_accountants() -> Any:
    """Opacus' package of accountants, without the torch that the rest of Opacus needs.

    They are numpy and scipy alone. Where torch is missing, stand-ins for the packages above them
    keep those from being run, and one for the optimizer's type, which is only named there.
    """
    if "opacus.accountants.prv" not in sys.modules and importlib.util.find_spec("torch") is None:
        spec = importlib.util.find_spec("opacus")
        if spec is None or not spec.submodule_search_locations:
            raise ImportError("opacus is not installed")
        root = Path(next(iter(spec.submodule_search_locations)))
        for name, folder in (("opacus", root), ("opacus.accountants", root / "accountants")):
            package = types.ModuleType(name)
            package.__path__ = [str(folder)]
            package.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
            sys.modules[name] = package
        optimizers: Any = types.ModuleType("opacus.optimizers")
        optimizers.DPOptimizer = object
        sys.modules["opacus.optimizers"] = optimizers
    importlib.import_module("opacus.accountants.prv")
    return sys.modules["opacus.accountants.prv"], importlib.import_module("opacus.accountants.rdp")


def opacus_prv(sigma: float, rate: float, steps: int, delta: float) -> Work:
    """Opacus' PRV accountant, at its defaults: an error of 0.01."""

    def work() -> float:
        accountant = opacus_accountants()[0].PRVAccountant()
        accountant.history = [(sigma, rate, steps)]
        return float(accountant.get_epsilon(delta))

    return work


def opacus_rdp(sigma: float, rate: float, steps: int, delta: float) -> Work:
    """Opacus' Rényi accountant."""

    def work() -> float:
        accountant = opacus_accountants()[1].RDPAccountant()
        accountant.history = [(sigma, rate, steps)]
        return float(accountant.get_epsilon(delta))

    return work


def opacus_calibrated() -> float:
    """Opacus' noise for epsilon 3 in the first setting: doubling and halving around its PRV."""
    low, high = 0.5, 1.5

    def epsilon(sigma: float) -> float:
        return float(opacus_prv(sigma, 0.01, 10_000, 1e-5)())

    while epsilon(high) > 3.0:
        low, high = high, 2 * high
    while 3.0 - epsilon(high) > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if epsilon(middle) < 3.0 else (middle, high)
    return high


def pld_calibrated(
    rate: float = 0.01, steps: int = 10_000, epsilon: float = 3.0, delta: float = 1e-5
) -> float:
    """dp-accounting's noise for an epsilon, in the first setting unless told otherwise."""
    import dp_accounting as d
    from dp_accounting.pld import PLDAccountant

    def event(sigma: float) -> Any:
        return d.SelfComposedDpEvent(d.PoissonSampledDpEvent(rate, d.GaussianDpEvent(sigma)), steps)

    return float(
        d.calibrate_dp_mechanism(
            PLDAccountant, event, epsilon, delta, d.LowerEndpointAndGuess(0.5, 1.5), tol=1e-6
        )
    )


def pld_mixed() -> float:
    """dp-accounting on a thousand different mechanisms."""
    from dp_accounting.pld import privacy_loss_distribution as d

    total = d.identity()
    for i in range(500):
        total = total.compose(d.from_laplace_mechanism(10 + 50 * i / 499))
        total = total.compose(d.from_gaussian_mechanism(20 + 80 * i / 499))
    return float(total.get_epsilon_for_delta(1e-6))


def pld_pure() -> float:
    """dp-accounting on ten thousand pure mechanisms."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as d

    one = d.from_privacy_parameters(common.DifferentialPrivacyParameters(0.01, 0.0))
    return float(one.self_compose(10_000).get_epsilon_for_delta(1e-6))


def schedule(kinds: int) -> list[tuple[float, float]]:
    """Noise multipliers and rates of a schedule: none is met twice."""
    return [(1 + 3 * i / kinds, 0.01 + 0.03 * i / kinds) for i in range(kinds)]


def pld_schedule(kinds: int) -> Work:
    """dp-accounting on a schedule, one distribution a kind."""

    def work() -> float:
        from dp_accounting.pld import privacy_loss_distribution as d

        total = None
        for sigma, rate in schedule(kinds):
            one = d.from_gaussian_mechanism(sigma, sampling_prob=rate)
            total = one if total is None else total.compose(one)
        assert total is not None
        return float(total.get_epsilon_for_delta(1e-6))

    return work


def _scheduled(kinds: int, peers: dict[str, Work]) -> Setting:
    loss = privacy.compose(*(privacy.gaussian(s).poisson(g) for s, g in schedule(kinds)))
    return Setting(
        f"{kinds} kinds of sampled Gaussians δ=1e-6", lambda: loss.epsilon(1e-6), peers, "–", 1.0
    )


def _few_calibrated(few: int, truth: str) -> Setting:
    return Setting(
        f"σ for ε=1, {few} Gaussians on samples of .01",
        lambda: accounting.calibrate(
            lambda s: few * privacy.gaussian(s).poisson(0.01), epsilon=1.0, delta=1e-6
        ),
        {"dp-accounting PLD": lambda: pld_calibrated(0.01, few, 1.0, 1e-6)},
        truth,
        1.0,
    )


def settings() -> list[Setting]:
    """Every row."""
    rows = []
    for label, sigma, rate, steps, delta, truth in (
        ("DP-SGD q=.01 σ=1 T=10⁴ δ=1e-5", 1.0, 0.01, 10_000, 1e-5, "6.18771238997154"),
        ("DP-SGD q=256/60000 σ=1.1 T=14062", 1.1, 256 / 60000, 14_062, 1e-5, "2.38159692142440"),
        ("DP-SGD q=.01 σ=1 T=10⁴ δ=1e-15", 1.0, 0.01, 10_000, 1e-15, "–"),
        ("DP-SGD q=.01 σ=1 T=10⁴ δ=1e-60", 1.0, 0.01, 10_000, 1e-60, "–"),
        ("DP-SGD q=.05 σ=2 T=2000 δ=1e-6", 2.0, 0.05, 2_000, 1e-6, "–"),
    ):
        loss = steps * privacy.gaussian(sigma).poisson(rate)
        arguments = (sigma, rate, steps, delta)
        peers = {"dp-accounting PLD": pld(*arguments), "dp-accounting RDP": rdp(*arguments)}
        peers["Opacus RDP"] = opacus_rdp(*arguments)
        if delta >= 1e-9:
            peers |= {"prv-accountant": prv(*arguments), "Opacus PRV": opacus_prv(*arguments)}
        rows.append(
            Setting(label, lambda loss=loss, d=delta: loss.epsilon(d), peers, truth, 0.02)  # type: ignore[misc]
        )
    mixed = privacy.compose(
        *(privacy.laplace(10 + 50 * i / 499) for i in range(500)),
        *(privacy.gaussian(20 + 80 * i / 499) for i in range(500)),
    )
    rows.append(
        Setting(
            "σ for ε=3, first setting",
            lambda: accounting.calibrate(
                lambda s: 10_000 * privacy.gaussian(s).poisson(0.01), epsilon=3.0, delta=1e-5
            ),
            {"dp-accounting PLD": pld_calibrated, "Opacus PRV": opacus_calibrated},
            "1.56496553546",
            0.05,
        )
    )
    rows += [_few_calibrated(10, ".872024718"), _few_calibrated(30, ".919583347")]
    rows.append(
        Setting(
            "500 Laplace + 500 Gaussian δ=1e-6",
            lambda: mixed.epsilon(1e-6),
            {"dp-accounting PLD": pld_mixed},
            "5.05262729534415",
            0.02,
        )
    )
    rows.append(
        Setting(
            "10⁴ pure .01 δ=1e-6",
            lambda: (10_000 * privacy.pure(0.01)).epsilon(1e-6),
            {"dp-accounting PLD": pld_pure},
            "4.885515601007316",
            0.02,
        )
    )
    rows.append(_scheduled(20, {"dp-accounting PLD": pld_schedule(20)}))
    # The peer takes minutes.
    rows.append(_scheduled(300, {}))
    rows.append(
        Setting(
            "σ for ε=1, 10⁹ Gaussians on samples of 10⁻⁴",
            lambda: accounting.calibrate(
                lambda s: 10**9 * privacy.gaussian(s).poisson(1e-4), epsilon=1.0, delta=1e-6
            ),
            {},
            "13.3783515148",
            5.0,
        )
    )
    rows.append(
        Setting(
            "random allocation to 100 steps, σ=1 δ=1e-6",
            lambda: privacy.gaussian(1.0).random_allocation(100).epsilon(1e-6),
            {},
            "–",
            5.0,
        )
    )
    for name, options in (("any", {}), ("GRR k=18", {"randomiser": "grr", "k": 18})):
        rows.append(
            Setting(
                f"shuffle n=10⁶ ε₀=4 δ=1e-6, {name}",
                lambda options=options: accounting.shuffle(1_000_000, 4.0, **options).epsilon(1e-6),  # type: ignore[misc]
                {},
                ".0343" if name == "any" else ".0299",
                0.1,
            )
        )
    return rows


HARD = (
    # rate, noise multiplier, steps, delta: few or sparse samples, small deltas, large losses
    (0.002545, 2.1662, 249, 1e-19),
    (0.000767, 2.1496, 11_034, 1e-19),
    (0.003357, 2.7726, 263, 1e-16),
    (0.011325, 2.0406, 62, 1e-16),
    (0.000399, 1.8132, 4_196, 1e-10),
    (0.01, 1.0, 10_000, 1e-60),
    (0.01, 1.0, 2, 1e-6),
    (0.01, 3.0, 2, 1e-6),
    (0.001, 0.7, 5, 1e-6),
    (0.01, 1.0, 5, 1e-6),
    (0.01, 0.7, 20, 1e-6),
    (0.1, 0.1, 10, 1e-5),
    (0.1, 0.02, 10, 1e-5),
)


def drawn(count: int) -> list[tuple[float, float, int, float]]:
    """Random settings, always the same: rates 1e-4 to .5, deltas 1e-3 to 1e-20."""
    random = np.random.default_rng(17)
    found = []
    while len(found) < count:
        rate, noise = 10 ** random.uniform(-4, math.log10(0.5)), 2 ** random.uniform(-1, 3)
        steps, delta = int(10 ** random.uniform(1.5, 5)), 10.0 ** -random.integers(3, 21)
        if 0.02 < rate * math.sqrt(steps) / noise < 5:
            found.append((round(rate, 6), round(noise, 4), steps, float(delta)))
    return found


def sampled() -> None:
    """Widths and processor times of sampled Gaussians: hard settings, and random ones in sum."""
    print("\nSampled Gaussians   (reach: relative width 1e-9, median 20 ms, worst 1 s)")
    widths, times = [], []
    hard = len(HARD)
    for i, (rate, noise, steps, delta) in enumerate([*HARD, *drawn(87)]):
        loss = steps * privacy.gaussian(noise).poisson(rate)
        taken = []
        for _ in range(2):
            side.cache_clear()
            start = time.process_time()
            bound = loss.epsilon(delta)
            taken.append(time.process_time() - start)
        seconds = min(taken)
        width = (bound.upper - bound.lower) / bound.upper
        if i < hard:
            print(
                f"  q={rate:<8g} σ={noise:<7g} T={steps:<6} δ={delta:<6g}"
                f" ε={bound.upper:<14.9g} width {width:7.1e} {1e3 * seconds:8.1f} ms"
                f"  {bound.method}"
            )
        elif bound.upper > 0.01:
            widths.append(width)
            times.append(seconds)
    print(
        f"  {len(widths)} random settings with ε > .01:"
        f" width median {statistics.median(widths):.1e}, worst {max(widths):.1e},"
        f" {sum(w > 1e-9 for w in widths)} above 1e-9;"
        f" time median {1e3 * statistics.median(times):.1f} ms, worst {1e3 * max(times):.0f} ms"
    )


def few() -> None:
    """2 to 20 sampled Gaussians, most of them sparse: the processor's time and the widths."""
    random = np.random.default_rng(9)
    widths, times = [], []
    for _ in range(40):
        rate, noise = 10 ** random.uniform(-6, -0.3), random.uniform(0.5, 8)
        steps, delta = int(random.integers(2, 21)), 10 ** random.uniform(-20, -3)
        loss = steps * privacy.gaussian(noise).poisson(rate)
        side.cache_clear()
        start = time.process_time()
        bound = loss.epsilon(delta)
        times.append(time.process_time() - start)
        widths.append((bound.upper - bound.lower) / bound.upper if bound.upper else 0.0)
    print(
        "\n40 random settings of 2-20 sampled Gaussians   (reach: 1e-6 and 1 s each)\n"
        f"  time median {1e3 * statistics.median(times):.0f} ms, worst {1e3 * max(times):.0f} ms;"
        f" widest {max(widths):.1e}"
    )


def pld_many(make: str, parameters: list[tuple[float, ...]]) -> Work:
    """dp-accounting, one distribution a kind."""

    def work() -> float:
        from dp_accounting.pld import privacy_loss_distribution as d

        total = None
        for one in parameters:
            if make == "discrete Laplace":
                # It takes the inverse of the scale.
                found = d.from_discrete_laplace_mechanism(1 / one[0])
            else:
                found = d.from_gaussian_mechanism(one[0], sampling_prob=one[1])
            total = found if total is None else total.compose(found)
        assert total is not None
        return float(total.get_epsilon_for_delta(1e-6))

    return work


def many() -> None:
    """Kinds that are all different and run once each: the processor's time, the peer's beside.

    ``python -c "from benchmarks.accounting import many; many()"`` prints these alone.
    """
    rows: list[tuple[str, str, list[tuple[float, ...]], bool]] = []
    for n in (30, 300, 3000):
        scales: list[tuple[float, ...]] = [(10 + 50 * i / n,) for i in range(n)]
        rows.append(
            (f"{n} discrete Laplaces, scales 10 to 60", "discrete Laplace", scales, n < 1000)
        )
    for name, least, most, low, high in (
        ("σ 1 to 4, q .01 to .04", 1.0, 4.0, 0.01, 0.04),
        ("σ .5 to 5, q .01", 0.5, 5.0, 0.01, 0.01),
        ("σ .7 to .9, q 10⁻⁴ to 1.1·10⁻³", 0.7, 0.9, 1e-4, 1.1e-3),
        ("σ 1 to 2, q 10⁻⁴", 1.0, 2.0, 1e-4, 1e-4),
        ("σ .5 to 5, q 10⁻³", 0.5, 5.0, 1e-3, 1e-3),
        ("σ .5 to 5, q 10⁻⁴", 0.5, 5.0, 1e-4, 1e-4),
    ):
        x = [i / 300 for i in range(300)]
        both = [(least + (most - least) * p, low + (high - low) * p) for p in x]
        rows.append((f"300 Gaussians, {name}", "sampled Gaussian", list(both), False))
    for name, make, pairs in (
        ("sampled Laplaces, scales 1 to 4, q .01", "sampled Laplace", ((1.0, 4.0), (0.01, 0.01))),
        (
            "sampled Laplaces, scales 5 to 20, q .01 to .1",
            "sampled Laplace",
            ((5, 20), (0.01, 0.1)),
        ),
        ("Laplaces, scales 10 to 60", "Laplace", ((10.0, 60.0),)),
        ("discrete Gaussians, σ 1 to 10", "discrete Gaussian", ((1.0, 10.0),)),
        ("discrete Gaussians, σ 5 to 50", "discrete Gaussian", ((5.0, 50.0),)),
        ("discrete Gaussians, σ 20 to 60", "discrete Gaussian", ((20.0, 60.0),)),
        (
            "sampled discrete Gaussians, σ 1 to 10, q .01 to .04",
            "sampled discrete Gaussian",
            ((1.0, 10.0), (0.01, 0.04)),
        ),
        (
            "sampled discrete Gaussians, σ 5 to 50, q .01 to .1",
            "sampled discrete Gaussian",
            ((5.0, 50.0), (0.01, 0.1)),
        ),
        (
            "sampled discrete Laplaces, scales 1 to 4, q .01",
            "sampled discrete Laplace",
            ((1.0, 4.0), (0.01, 0.01)),
        ),
        (
            "the same moved by 100, scales 500 to 2,000, q .01 to .1",
            "sampled moved Laplace",
            ((500.0, 2000.0), (0.01, 0.1)),
        ),
        (
            "discrete Laplaces moved by 100, scales 1,000 to 6,000",
            "moved Laplace",
            ((1000.0, 6000.0),),
        ),
    ):
        x = [i / 300 for i in range(300)]
        columns = [[low + (high - low) * p for p in x] for low, high in pairs]
        rows.append((f"300 {name}", make, list(zip(*columns, strict=True)), False))
    makers: dict[str, Callable[..., privacy.Loss]] = {
        "discrete Laplace": privacy.discrete_laplace,
        "Laplace": privacy.laplace,
        "discrete Gaussian": privacy.discrete_gaussian,
        "sampled Gaussian": lambda s, g: privacy.gaussian(s).poisson(g),
        "sampled Laplace": lambda s, g: privacy.laplace(s).poisson(g),
        "sampled discrete Gaussian": lambda s, g: privacy.discrete_gaussian(s).poisson(g),
        "sampled discrete Laplace": lambda s, g: privacy.discrete_laplace(s).poisson(g),
        "moved Laplace": lambda s: privacy.discrete_laplace(s, sensitivity=100),
        "sampled moved Laplace": lambda s, g: privacy.discrete_laplace(s, sensitivity=100).poisson(
            g
        ),
    }
    x = [i / 100 for i in range(100)]
    mixed = [
        *(privacy.discrete_gaussian(1 + 9 * p).poisson(0.01 + 0.03 * p) for p in x),
        *(privacy.laplace(1 + 3 * p).poisson(0.01) for p in x),
        *(privacy.discrete_laplace(5 + 15 * p).poisson(0.01 + 0.09 * p) for p in x),
    ]
    losses = [
        (
            title,
            privacy.compose(*(makers[make](*one) for one in parameters)),
            make,
            parameters,
            peer,
        )
        for title, make, parameters, peer in rows
    ]
    losses.append(("100 of each of three sampled kinds", privacy.compose(*mixed), "", [], False))
    print("\nkinds that are all different, ε at δ=1e-6 (reach: 1 s for 300)")
    for title, loss, make, parameters, peer in losses:
        times = []
        for _ in range(3):
            side.cache_clear()
            start = time.process_time()
            bound = loss.epsilon(1e-6)
            times.append(time.process_time() - start)
        taken = min(times)
        width = (bound.upper - bound.lower) / bound.upper
        print(f"  {title:<59} ε={bound.upper:<14.9g} width {width:7.1e} {taken:7.2f} s", end="")
        if peer and installed("dp_accounting"):
            start = time.process_time()
            found = pld_many(make, parameters)()
            print(f"   dp-accounting {found:.9g} {time.process_time() - start:7.2f} s", end="")
        print(flush=True)


def attackers() -> None:
    """Attackers' rates, single samples, huge counts, least rhos: widths, seconds at first."""
    asked: list[tuple[str, Callable[[], Any]]] = [
        ("laplace(10).poisson(.01) ε at 1e-6", lambda: _laplace().epsilon(1e-6)),
        ("laplace(10).poisson(.01) tpr at .01", lambda: _laplace().tpr(0.01)),
        (
            "b of one sampled Laplace, ε=.001 δ=1e-6",
            lambda: accounting.calibrate(
                lambda b: privacy.laplace(b).poisson(0.01), epsilon=0.001, delta=1e-6
            ),
        ),
        (
            "100 gaussian(.6).poisson(.01) tpr at .001",
            lambda: (100 * privacy.gaussian(0.6).poisson(0.01)).tpr(0.001),
        ),
        ("randomized_response(3) rho", lambda: privacy.randomized_response(3.0).zcdp()),
        ("laplace(.1) rho", lambda: privacy.laplace(0.1).zcdp()),
        ("10¹² pure(1e-6), δ=1e-6", lambda: (10**12 * privacy.pure(1e-6)).epsilon(1e-6)),
        ("10¹² pure(1e-6), delta(4)", lambda: (10**12 * privacy.pure(1e-6)).delta(4.0)),
        (
            "10¹² randomized_response(1e-6, k=5), δ=1e-6",
            lambda: (10**12 * privacy.randomized_response(1e-6, k=5)).epsilon(1e-6),
        ),
        (
            "10¹² (pure(1e-6) + pure(2e-6)), δ=1e-6",
            lambda: (10**12 * (privacy.pure(1e-6) + privacy.pure(2e-6))).epsilon(1e-6),
        ),
        (
            "10¹² (pure(1e-6) + gaussian(10⁶)), δ=1e-6",
            lambda: (10**12 * (privacy.pure(1e-6) + privacy.gaussian(1e6))).epsilon(1e-6),
        ),
        (
            "10¹² pure(1e-3).poisson(1e-3), δ=1e-6",
            lambda: (10**12 * privacy.pure(1e-3).poisson(1e-3)).epsilon(1e-6),
        ),
        (
            "2 gaussian(1).poisson(.01), δ=1e-6",
            lambda: (2 * privacy.gaussian(1.0).poisson(0.01)).epsilon(1e-6),
        ),
        (
            "20 gaussian(.5).poisson(.01), δ=1e-6",
            lambda: (20 * privacy.gaussian(0.5).poisson(0.01)).epsilon(1e-6),
        ),
        (
            "5 gaussian(2).poisson(1e-4), delta(.001)",
            lambda: (5 * privacy.gaussian(2.0).poisson(1e-4)).delta(1e-3),
        ),
        ("10 laplace(2) tpr at .1", lambda: (10 * privacy.laplace(2.0)).tpr(0.1)),
        ("laplace(1).poisson(.1) rho", lambda: privacy.laplace(1.0).poisson(0.1).zcdp()),
        (
            "1,000 shuffled binary responses, ε₀=1, δ=1e-6",
            lambda: accounting.shuffle(1000, 1.0, randomiser="grr", k=2).epsilon(1e-6),
        ),
        (
            "20,000 shuffled binary responses, ε₀=1, δ=1e-6",
            lambda: accounting.shuffle(20_000, 1.0, randomiser="grr", k=2).epsilon(1e-6),
        ),
        (
            "10 laplace(10).poisson(.01), δ=1e-6",
            lambda: (10 * _laplace()).epsilon(1e-6),
        ),
        (
            "σ of 100 gaussian(σ).poisson(.01), advantage .05",
            lambda: accounting.calibrate(_hundred, advantage=0.05),
        ),
        (
            "σ of 100 gaussian(σ).poisson(.01), tpr .05 at .01",
            lambda: accounting.calibrate(_hundred, fpr=0.01, tpr=0.05),
        ),
        (
            "σ of 100 gaussian(σ).poisson(.01), Bayes risk .45",
            lambda: accounting.calibrate(_hundred, prior=0.5, bayes_risk=0.45),
        ),
        ("pure(70) tpr at 0", lambda: privacy.pure(70.0).tpr(0.0)),
        (
            "4 shuffled rounds of 10⁴, ε₀=1, δ=1e-6",
            lambda: (4 * accounting.shuffle(10_000, 1.0).loss()).epsilon(1e-6),
        ),
        (
            "Gaussian and Laplace on one sample, δ=1e-6",
            lambda: (privacy.gaussian(1.0) + privacy.laplace(1.0)).poisson(0.1).epsilon(1e-6),
        ),
    ]
    print("\nattackers, single samples, huge counts, concentration (first call)")
    for name, ask in asked:
        # The processor's time: what else the machine does is not ours.
        started = time.process_time()
        bound = ask()
        seconds = time.process_time() - started
        print(f"  {name:<46} [{bound.lower:.12g}, {bound.upper:.12g}]  {1e3 * seconds:8.1f} ms")


def _laplace() -> privacy.Loss:
    return privacy.laplace(10.0).poisson(0.01)


def _hundred(sigma: float) -> privacy.Loss:
    return 100 * privacy.gaussian(sigma).poisson(0.01)


_NEEDS = {
    "dp-accounting PLD": "dp_accounting",
    "dp-accounting RDP": "dp_accounting",
    "prv-accountant": "prv_accountant",
    "Opacus PRV": "opacus",
    "Opacus RDP": "opacus",
}


_HOW = {"opacus": " (pip install --no-deps opacus: its accountants need no torch)"}


def shown(result: Any) -> str:
    """A peer's answer: one number, or an interval."""
    if isinstance(result, tuple):
        return f"[{result[0]:.9g}, {result[2]:.9g}]"
    return f"{result:.12g}"


def main() -> None:
    """Print every row."""
    warnings.filterwarnings("ignore")
    print(f"Python {platform.python_version()}, {platform.machine()}; medians of wall times")
    missing = sorted({m for m in _NEEDS.values() if not installed(m)})
    for module in missing:
        print(
            f"{module.replace('_', '-')} is not installed: its rows are left out"
            + _HOW.get(module, "")
        )
    for row in settings():
        print(f"\n{row.name}   (exact {row.truth})")
        row.ours()
        bound, seconds = timed(row.ours, 7)
        reach = f", reach {1e3 * row.reach:.0f} ms" if row.reach else ""
        print(
            f"  {'dither':<20} [{bound.lower:.14g}, {bound.upper:.14g}]"
            f"  {1e3 * seconds:9.2f} ms{reach}  {bound.method}"
        )
        for name, work in row.peers.items():
            if not installed(_NEEDS[name]):
                continue
            try:
                result, taken = timed(work, 1)
            except Exception as error:  # a peer that fails is a finding, not our failure
                print(f"  {name:<20} failed: {type(error).__name__}")
                continue
            below = not isinstance(result, tuple) and result < bound.lower
            unsound = "  below the exact value" if below and math.isfinite(result) else ""
            print(
                f"  {name:<20} {shown(result):<36}  {1e3 * taken:9.2f} ms"
                f"  {taken / seconds:8.0f} × ours{unsound}"
            )
    sampled()
    few()
    many()


if __name__ == "__main__":
    main()
    attackers()

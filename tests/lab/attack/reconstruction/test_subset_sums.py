"""Subset sums: both theorems, decoders against HiGHS, controls, and private releases."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from dither import attack, privacy
from dither.errors import ArgumentError, DitherError
from dither.lab.attack import agreeing, all_queries, releases
from dither.lab.attack.reconstruction._decoders import (
    DECODERS,
    box,
    l1,
    l1_oracle,
    least_squares,
    predicted_success,
)
from dither.lab.attack.releases import sums
from dither.noise import discrete_gaussian, discrete_laplace
from dither.numeric import SimulatedWords


def instance(n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A secret, random queries, exact answers."""
    rng = np.random.default_rng(seed)
    secret, queries = rng.integers(0, 2, n), rng.integers(0, 2, (m, n))
    return secret, queries, (queries @ secret).astype(float)


def private(epsilon: float, queries: int, seed: int) -> attack.BlackBox:
    """All answers with discrete Laplace noise, each at an equal share of epsilon."""
    scale, words = Fraction(queries) / Fraction(str(epsilon)), SimulatedWords(seed)
    return releases.private(
        lambda answers: answers + discrete_laplace(scale, len(answers), words=words),
        queries * privacy.discrete_laplace(float(scale)),
        sigma=math.sqrt(2) * float(scale),
    )


@pytest.mark.parametrize(("n", "error"), [(4, 1.0), (6, 0.5), (8, 1.5), (10, 1.0), (12, 2.0)])
def test_theorem_1_is_tight_against_midpoints(n: int, error: float) -> None:
    """Every agreeing database is within 4E bits of the truth, and one is exactly so far."""
    secret = np.array([0, 1] * (n // 2))
    queries = all_queries(n)
    answers = releases.midpoint(error).publish(secret, queries, np.random.default_rng(0))
    assert np.abs(answers - sums(secret, queries)).max() == error
    found = agreeing(answers, error, most=10**6)
    distances = np.abs(found - secret).sum(axis=1)
    assert distances.min() == 0
    assert distances.max() == min(n, 4 * error)


@pytest.mark.parametrize("seed", range(8))
def test_exhaustive_search_finds_exactly_what_agrees(seed: int) -> None:
    """The weeding finds the databases that agree with all answers, one by one compared."""
    n, error = 6, 1.25
    rng = np.random.default_rng(seed)
    queries = all_queries(n)
    answers = sums(rng.integers(0, 2, n), queries) + rng.uniform(-error, error, 2**n)
    plain = [c for c in queries if np.abs(sums(c, queries) - answers).max() <= error]
    found = agreeing(answers, error, most=10**6)
    assert sorted(map(tuple, found)) == sorted(map(tuple, plain))
    assert len(agreeing(answers, error)) == 1


@pytest.mark.parametrize(
    "release",
    [releases.bounded(1.0), releases.rounded(2), releases.midpoint(0.5)],
)
def test_theorem_1_holds_for_any_bounded_noise(release: attack.BlackBox) -> None:
    """At most 4E bits of any run are wrong."""
    verdict = attack.subset_sums(12, None, release).run(20, seed=4)
    assert release.error is not None
    assert min(verdict.score.hits) >= 12 - 4 * release.error
    assert verdict.promised == pytest.approx(1 - 4 * release.error / 12)


def test_twenty_people_are_searched() -> None:
    """The largest exhaustive search finds all but 4E bits; 21 people are refused."""
    verdict = attack.subset_sums(20, None, releases.bounded(1.0)).run(seed=2, controls=False)
    assert verdict.score.hits[0] >= 16
    with pytest.raises(ArgumentError, match="at most 20"):
        attack.subset_sums(21, None, releases.bounded(1.0))


@pytest.mark.parametrize("noise", ["normal", "laplace", "uniform", "wild", "none"])
def test_least_deviations_agree_with_highs(noise: str) -> None:
    """ADMM's sum of deviations is within 1 % of the optimum of HiGHS."""
    secret, queries, exact = instance(60, 300, 7)
    rng = np.random.default_rng(8)
    answers = (
        exact
        + {
            "normal": rng.normal(0, 3, 300),
            "laplace": rng.laplace(0, 3, 300),
            "uniform": rng.uniform(-5, 5, 300),
            "wild": np.where(rng.random(300) < 0.2, rng.uniform(-60, 60, 300), 0),
            "none": np.zeros(300),
        }[noise]
    )
    ours, best = l1(queries, answers), l1_oracle(queries, answers)
    deviations = [float(np.abs(queries @ x - answers).sum()) for x in (ours, best)]
    assert deviations[0] <= 1.01 * deviations[1] + 0.3
    assert ((ours >= 0) & (ours <= 1)).all()
    if noise in ("wild", "none"):
        assert ((ours > 0.5) == secret).all()


def test_box_meets_its_conditions() -> None:
    """At the fit the gradient is 0 inside the box and points outwards at its walls."""
    _, queries, exact = instance(50, 150, 1)
    answers = exact + np.random.default_rng(2).normal(0, 4, 150)
    x = box(queries, answers, tolerance=1e-6, rounds=2000)
    gradient = queries.T @ (queries @ x - answers) / 150
    inside = (x > 1e-4) & (x < 1 - 1e-4)
    assert np.abs(gradient[inside]).max() < 0.05
    assert (gradient[x <= 1e-4] > -0.05).all()
    assert (gradient[x >= 1 - 1e-4] < 0.05).all()
    assert 0 < inside.sum() < 50


def test_least_squares_is_numpys() -> None:
    """One Cholesky factor gives what the singular values give."""
    _, queries, exact = instance(40, 90, 5)
    answers = exact + np.random.default_rng(6).normal(0, 2, 90)
    plain = np.linalg.lstsq(queries.astype(float), answers, rcond=None)[0]
    assert np.allclose(least_squares(queries, answers), plain, atol=1e-3)


@pytest.mark.parametrize("method", sorted(DECODERS))
def test_fewer_queries_than_people_leave_no_trace_of_error(method: str) -> None:
    """With too few queries no decoder fails: it guesses what it can."""
    secret, queries, exact = instance(40, 12, 5)
    guess = DECODERS[method](queries, exact)
    assert np.isfinite(guess).all()
    assert ((guess > 0.5) == secret).mean() > 0.5


@pytest.mark.parametrize("sigma", [4.0, 16.0])
def test_success_of_least_squares_is_predicted(sigma: float) -> None:
    """Measured success is within five deviations of 4,000 bits of Φ(1/(2σ_x))."""
    verdict = attack.subset_sums(80, 400, releases.gaussian(sigma), method="least squares").run(
        50, seed=1, controls=False
    )
    assert verdict.predicted == pytest.approx(predicted_success(80, 400, sigma))
    spread = math.sqrt(0.25 / 4000)
    assert abs(verdict.success - (verdict.predicted or 0)) < 5.2 * spread
    assert verdict.predicted == pytest.approx(
        NormalDist().cdf(0.5 / (2 * sigma / math.sqrt(400 - 80 - 1)))
    )


RELEASES = {
    "bounded": releases.bounded(3),
    "gaussian": releases.gaussian(2),
    "laplace": releases.laplace(2),
    "rounded": releases.rounded(5),
    "adversarial": releases.corrupted(0.12),
    "random": releases.corrupted(0.3, adversarial=False),
}


@pytest.mark.parametrize("name", sorted(RELEASES))
def test_small_noise_gives_everything_away(name: str) -> None:
    """Least deviations reads nearly all bits; the two controls do what controls must."""
    verdict = attack.subset_sums(100, 1200, RELEASES[name]).run(3, seed=5)
    assert verdict.success > 0.95
    assert verdict.control is not None
    assert verdict.null is not None
    assert verdict.control.share == 1.0
    assert 0.5 - 0.16 < verdict.null.share < 0.5 + 0.16
    assert verdict.outcome is attack.Outcome.CONSISTENT


def test_corruption_breaks_least_deviations_between_20_and_24_percent() -> None:
    """The threshold of 0.239 shows at n = 500, m = 16n: all bits at .20, nearly none at .24."""
    below, above = (
        attack.subset_sums(500, 8000, releases.corrupted(share)).run(seed=1, controls=False).success
        for share in (0.20, 0.24)
    )
    assert below == 1.0
    assert above < 0.5
    threshold = 2 * (1 - NormalDist().cdf(math.sqrt(2 * math.log(2))))
    assert 0.20 < threshold < 0.24
    assert threshold == pytest.approx(0.239, abs=5e-4)


@pytest.mark.parametrize("queries", [200, 800, 3200])
def test_more_private_queries_do_not_help(queries: int) -> None:
    """At ε = 1 for all answers together, success stays below e/(1 + e), however many there are."""
    verdict = attack.subset_sums(100, queries, private(1, queries, 3), method="least squares").run(
        10, seed=6
    )
    assert verdict.outcome is attack.Outcome.CONSISTENT
    assert verdict.epsilon == pytest.approx(1.0)
    assert verdict.bound < math.e / (1 + math.e) + 1e-9
    # A blind guess of 1,000 bits is off by 8 % once in two million.
    assert abs(verdict.success - 0.5) < 0.08 + verdict.bound - 0.5
    assert verdict.control is not None
    assert verdict.control.share > 0.95


@pytest.mark.parametrize("rho", [Fraction(1, 2), Fraction(8)])
def test_gaussian_releases_meet_their_prediction_half_way_to_the_bound(rho: Fraction) -> None:
    """Under ρ for all answers success tends to Φ(μ/4), μ = √(2ρ), however many there are; the loss
    allows Φ(μ/2)."""
    mu, words = math.sqrt(2 * rho), SimulatedWords(4)
    for queries in (400, 1600):
        variance = Fraction(queries) / (2 * rho)
        release = releases.private(
            lambda a, v=variance: a + discrete_gaussian(v, len(a), words=words),
            queries * privacy.discrete_gaussian(math.sqrt(variance)),
            sigma=math.sqrt(variance),
        )
        played = attack.subset_sums(100, queries, release, method="least squares").run(20, seed=2)
        limit = NormalDist().cdf(mu / 4 * math.sqrt(1 - 101 / queries))
        assert played.predicted == pytest.approx(limit)
        assert abs(played.success - limit) < 5.2 * math.sqrt(0.25 / 2000)
        assert played.bound == pytest.approx(NormalDist().cdf(mu / 2), abs=1e-4)
        assert played.outcome is attack.Outcome.CONSISTENT


def test_the_same_noise_for_more_queries_helps() -> None:
    """Without an account, the same noise on four times as many answers gives everything away."""
    few, many = (
        attack.subset_sums(100, m, releases.gaussian(8)).run(5, seed=2, controls=False).success
        for m in (200, 6400)
    )
    assert few < 0.85
    assert many > 0.97


def test_a_false_claim_is_violated() -> None:
    """Noise for one answer, claimed for 400 of them, is caught; the honest claim is not."""
    words = SimulatedWords(9)

    def publish(answers: np.ndarray) -> np.ndarray:
        return answers + discrete_laplace(Fraction(1), len(answers), words=words)

    false = releases.private(publish, privacy.pure(1.0))
    honest = releases.private(publish, 400 * privacy.pure(1.0))
    game = [attack.subset_sums(100, 400, release) for release in (false, honest)]
    assert game[0].run(1).outcome is attack.Outcome.VIOLATED
    assert game[1].run(1).outcome is attack.Outcome.CONSISTENT


def test_arguments_are_checked() -> None:
    """What cannot be played is refused, with what would be."""
    with pytest.raises(ArgumentError, match="ask at most 100,000 queries"):
        attack.subset_sums(4000, 200_000)
    with pytest.raises(ArgumentError, match="did you mean 'box'"):
        attack.subset_sums(10, 20, method="bix")
    with pytest.raises(ArgumentError, match="known largest error"):
        attack.subset_sums(10, None, releases.gaussian(1))
    with pytest.raises(ArgumentError, match="must be a BlackBox"):
        attack.subset_sums(10, 20, 3.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="multiple of 1/2"):
        releases.midpoint(0.3)
    with pytest.raises(ArgumentError, match=r"share must be .*at most 1"):
        releases.corrupted(1.5)
    with pytest.raises(ArgumentError, match="loss must be a Loss"):
        releases.private(lambda a: a, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="one for each row"):
        least_squares([[1, 0]], [1, 2])


def test_missing_scipy_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SciPy the error is one line that says what to install."""
    from dither import _extras

    def absent(name: str) -> None:
        raise ImportError(name, name=name)

    monkeypatch.setattr(_extras, "import_module", absent)
    with pytest.raises(DitherError, match=r"SciPy.*pip install 'dither\[attack\]'"):
        least_squares([[1]], [1])

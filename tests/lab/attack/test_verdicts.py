"""Verdicts: intervals, tails, and what may be said of controls that do not do their part."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dither import attack, privacy
from dither._stats import binomial_tail, clopper_pearson, hoeffding_tail
from dither.errors import ArgumentError
from dither.lab.attack import releases
from dither.lab.attack._verdict import Score, judge


@pytest.mark.parametrize(
    ("n", "k", "p"), [(10, 3, 0.2), (1000, 700, 0.5), (50, 50, 0.9), (9, 0, 0.1)]
)
def test_binomial_tails_are_scipys(n: int, k: int, p: float) -> None:
    """Tails agree with scipy's to eight digits."""
    assert binomial_tail(n, k, p) == pytest.approx(stats.binom.sf(k - 1, n, p), rel=1e-8)


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (7, 20), (20, 20), (531, 1000)])
def test_clopper_pearson_is_scipys(hits: int, n: int) -> None:
    """The interval is the exact one."""
    exact = stats.binomtest(hits, n).proportion_ci(0.99, "exact")
    assert clopper_pearson(hits, n, 0.99) == pytest.approx((exact.low, exact.high), abs=1e-6)


@pytest.mark.parametrize("runs", [2, 3, 4, 5, 8, 21])
def test_runs_that_differ_widen_the_interval_as_student(runs: int) -> None:
    """Where runs differ more than targets can, the interval is Student's over the runs."""
    targets = [10_000] * runs
    hits = [6_000 + 300 * (i % 2) for i in range(runs)]
    shares = np.array(hits) / 10_000
    half = stats.t.ppf(0.995, runs - 1) * shares.std(ddof=1) / math.sqrt(runs)
    low, high = Score(tuple(hits), tuple(targets)).interval(0.99)
    assert low == pytest.approx(max(0.0, shares.mean() - half), abs=1e-6)
    assert high == pytest.approx(min(1.0, shares.mean() + half), abs=1e-6)


def test_hoeffding_bounds_the_binomial() -> None:
    """For one target a run the bound is above the exact tail."""
    for hits in range(5, 11):
        assert hoeffding_tail(hits / 10, 0.4, 10) >= binomial_tail(10, hits, 0.4) * (1 - 1e-9)


def verdict(score: Score, control: Score, null: Score, bound: float = 0.8) -> attack.Outcome:
    """The outcome of some scores."""
    return judge(
        game="g",
        release="r",
        attack="a",
        score=score,
        control=control,
        null=null,
        prior=0.5,
        bound=bound,
        pure=bound if bound < 1 else None,
        epsilon=None,
    ).outcome


GOOD, BLIND = Score((990,), (1000,)), Score((505,), (1000,))


def test_controls_decide_what_a_failure_means() -> None:
    """A failure counts only if the attack works on the truth and fails on a stranger's release."""
    assert verdict(BLIND, GOOD, BLIND) is attack.Outcome.CONSISTENT
    assert verdict(BLIND, BLIND, BLIND) is attack.Outcome.INCONCLUSIVE
    assert verdict(BLIND, GOOD, GOOD) is attack.Outcome.INCONCLUSIVE
    assert verdict(GOOD, GOOD, BLIND) is attack.Outcome.VIOLATED
    assert verdict(GOOD, GOOD, BLIND, bound=1.0) is attack.Outcome.CONSISTENT


def test_what_lies_above_is_never_within() -> None:
    """An interval above the bound, and no proof: neither consistent nor violated."""
    runs = Score((80,) * 6, (100,) * 6)
    found = judge(
        game="g", release="r", attack="a", score=runs, control=GOOD, null=BLIND, prior=0.5,
        bound=0.6, pure=None, epsilon=None,
    )  # fmt: skip
    assert found.low > found.bound
    assert found.outcome is attack.Outcome.UNPROVEN
    assert "lies above" in found.summary()


def test_what_is_said_of_controls_holds() -> None:
    """Five of five are no failure of the control; where all agree there is nothing to learn; an
    attack that works needs no control to show that it can."""

    def said(score: Score, control: Score | None, prior: float) -> attack.Verdict:
        return judge(
            game="g", release="r", attack="a", score=score, control=control, null=Score((2,), (9,)),
            prior=prior, bound=1.0, pure=None, epsilon=None,
        )  # fmt: skip

    few = said(Score((3,), (5,)), Score((5,), (5,)), 0.5)
    assert few.outcome is attack.Outcome.INCONCLUSIVE
    assert "5 of 5 may be luck" in few.summary().replace("\n", " ")
    same = said(Score((9,), (9,)), Score((9,), (9,)), 1.0)
    assert same.outcome is attack.Outcome.INCONCLUSIVE
    assert "always right" in same.reason
    assert said(GOOD, Score((500,), (1000,)), 0.5).outcome is attack.Outcome.CONSISTENT
    assert said(GOOD, None, 0.5).outcome is attack.Outcome.CONSISTENT
    assert said(BLIND, None, 0.5).outcome is attack.Outcome.INCONCLUSIVE


def test_true_claims_are_not_accused() -> None:
    """At the bound itself, "violated" is said in at most 1 % of 200 games (false alarm < 1e-6)."""
    rng = np.random.default_rng(0)
    said = [verdict(Score((int(h),), (500,)), GOOD, BLIND) for h in rng.binomial(500, 0.8, 200)]
    assert said.count(attack.Outcome.VIOLATED) <= 12


def test_an_attack_that_is_blind_is_inconclusive() -> None:
    """An attack that ignores what was released says nothing of the release."""
    game = attack.subset_sums(50, 100, releases.bounded(1)).game
    blind = attack.Adversary("guess zeros", lambda public, released: np.zeros(public.shape[1]))
    played = attack.Experiment(game, releases.gaussian(3), blind, releases.exact()).run(4)
    assert played.outcome is attack.Outcome.INCONCLUSIVE
    assert "fails even on the bare truth" in played.summary()


def test_bounds_come_from_the_loss() -> None:
    """A fair bit under pure ε is guessed with probability e^ε/(1 + e^ε); δ and priors count."""
    loose = attack.subset_sums(20, 40, releases.private(lambda a: a, privacy.approximate(1.0, 0.1)))
    pure = attack.subset_sums(20, 40, releases.private(lambda a: a, privacy.pure(1.0)))
    grown = math.e / (1 + math.e)
    assert pure.run(controls=False).bound == pytest.approx(grown)
    assert loose.run(controls=False).bound == pytest.approx((math.e + 0.1) / (1 + math.e))
    assert loose.run(controls=False).epsilon is None
    none = attack.subset_sums(20, 40, releases.bounded(1)).run(controls=False)
    assert none.bound == 1.0
    assert none.outcome is attack.Outcome.INCONCLUSIVE


def test_without_pure_epsilon_only_runs_convict() -> None:
    """Under a δ one run may be lost altogether, so a conviction takes several."""
    release = releases.private(lambda a: a, privacy.approximate(0.5, 1e-3))
    game = attack.subset_sums(20, 80, release)
    assert game.run(1).outcome is not attack.Outcome.VIOLATED
    assert game.run(20).outcome is attack.Outcome.VIOLATED


def test_runs_are_reproducible() -> None:
    """The same seed plays the same game; another seed another one."""
    game = attack.subset_sums(40, 80, releases.gaussian(4))
    assert game.run(3, seed=1) == game.run(3, seed=1)
    assert game.run(3, seed=1) != game.run(3, seed=2)
    with pytest.raises(ArgumentError, match="confidence"):
        game.run(confidence=1.0)
    with pytest.raises(ArgumentError, match="seed"):
        game.run(seed=-1)


@pytest.mark.parametrize("with_loss", [True, False])
def test_pictures_show_prior_and_controls(tmp_path: Path, with_loss: bool) -> None:
    """Every picture of a success has the prior and both controls on it."""
    release = (
        releases.private(lambda a: a + 5, privacy.pure(1.0)) if with_loss else releases.gaussian(3)
    )
    played = attack.subset_sums(30, 60, release).run(2)
    figure = played.plot(tmp_path / "success.png")
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert {"prior: guessing blindly", "control: the bare truth"} <= set(labels)
    assert "control: a stranger's release" in labels
    assert (tmp_path / "success.png").stat().st_size > 10_000


def test_pictures_of_tables(tmp_path: Path) -> None:
    """The people of each solution are drawn, and no picture is made of none."""
    found = attack.reconstruct_table(attack.census())
    figure = found.plot(tmp_path / "table.png")
    assert "2 databases agree" in figure.get_suptitle()
    none = attack.reconstruct_table(
        {
            "people": 1,
            "attributes": {"age": [0, 1]},
            "statistics": [{"name": "a", "sum": {"age": 5}}],
        }
    )
    with pytest.raises(ArgumentError, match="no solution to draw"):
        none.plot()


@pytest.mark.parametrize(("claimed", "violated"), [(1.0, False), (0.9, True)])
def test_randomised_response_meets_the_bound(claimed: float, violated: bool) -> None:
    """Bits kept with probability e/(1 + e) are guessed right just as often: allowed by ε = 1, and
    by no smaller ε (a false alarm or a miss once in 200 and in 10^10; the seed is fixed)."""
    bits, kept = 40_000, math.e / (1 + math.e)

    def publish(secret: np.ndarray, _: None, rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random(bits) < kept, secret, 1 - secret)

    played = attack.Experiment(
        attack.Game(
            name="bits",
            secret="a bit of each person",
            prior=0.5,
            neighbours="one bit is flipped",
            knows="nothing",
            draw=lambda rng: (rng.integers(0, 2, bits), None),
            score=lambda secret, guess: (int((secret == guess).sum()), bits),
        ),
        attack.BlackBox("randomised response", publish, privacy.pure(claimed)),
        attack.Adversary("believe it", lambda _, released: released),
        attack.BlackBox("bits", lambda secret, _, __: secret),
    ).run(1)
    assert (played.outcome is attack.Outcome.VIOLATED) == violated

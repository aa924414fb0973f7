"""Membership inference: the strong adversary meets the curve, shadows find what models remember."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither import privacy
from dither.errors import ArgumentError
from dither.lab.attack import Outcome, membership
from dither.lab.attack._roc import Allowed, Roc
from dither.lab.attack.members._shadows import attacked, folds, trained_on

SURE = 1 - 1e-6
NORMAL = NormalDist()
WIDE = 12


def sample(seed: int = 0) -> np.ndarray:
    """Eighty rows in the unit ball; the first lies on its surface."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-0.2, 0.2, (80, WIDE))
    rows[0] = 1 / np.sqrt(WIDE)
    return rows


def noisy_mean(sigma: float, seed: int) -> Any:
    """A sum of vectors in the unit ball with Gaussian noise, over a public number of rows."""
    rng = np.random.default_rng(seed)

    def release(rows: np.ndarray, size: int) -> np.ndarray:
        return (rows.sum(axis=0) + rng.normal(0, sigma, (size, WIDE))) / 80

    return release


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=15),
    st.lists(st.integers(0, 4), min_size=2, max_size=15),
    st.floats(0, 1),
)
def test_curves_by_counting(members: list[int], others: list[int], fpr: float) -> None:
    """Area and true alarms equal their definitions, ties included."""
    roc = Roc(np.array(members, dtype=float), np.array(others, dtype=float))
    pairs = [(a > b) + (a == b) / 2 for a in members for b in others]
    assert roc.auc().value == pytest.approx(sum(pairs) / len(pairs))
    thresholds = [-1, *range(5)]
    best = max(
        sum(a > t for a in members) / len(members)
        for t in thresholds
        if sum(b > t for b in others) <= fpr * len(others) + 1e-9
    )
    assert roc.tpr(fpr).value == pytest.approx(best)


def test_intervals_hold_what_is_true() -> None:
    """Of 400 samples from known laws, 99 % intervals miss area or alarms in at most 20 (1e-7)."""
    rng = np.random.default_rng(8)
    area, caught = NORMAL.cdf(1 / 2**0.5), NORMAL.cdf(NORMAL.inv_cdf(0.05) + 1)
    missed = 0
    for _ in range(400):
        roc = Roc(rng.normal(1, 1, 1_500), rng.normal(0, 1, 1_500))
        a, t = roc.auc(), roc.tpr(0.05)
        missed += not (a.low <= area <= a.high)
        missed += not (t.low <= caught <= t.high)
    assert missed <= 30


@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
def test_the_strong_adversary_meets_the_curve(mu: float) -> None:
    """Area and true alarms at 1 % are those of the Gaussian trade-off; 1e-6 a false alarm."""
    found = membership(
        noisy_mean(1 / mu, 3),
        sample(),
        target=0,
        loss=privacy.gaussian(1 / mu),
        confidence=SURE,
    )
    assert found.auc.low < NORMAL.cdf(mu / 2**0.5) < found.auc.high
    caught = NORMAL.cdf(NORMAL.inv_cdf(0.01) + mu)
    assert found.tpr().low < caught < found.tpr().high
    assert caught == pytest.approx(float(privacy.gaussian(1 / mu).tpr(0.01)), rel=1e-6)
    assert found.auc.high - found.auc.low < 0.06
    verdict = found.verdict
    assert verdict.outcome is Outcome.CONSISTENT
    assert verdict.low < verdict.bound < verdict.high
    assert verdict.null is not None
    assert abs(verdict.null.share - 0.5) < 0.02


def test_half_the_noise_is_caught() -> None:
    """A mean that claims μ = 1 with noise for 2 is violated."""
    found = membership(
        noisy_mean(0.5, 3),
        sample(),
        target=0,
        loss=privacy.gaussian(1.0),
        plays=4_000,
        confidence=SURE,
    )
    assert found.verdict.outcome is Outcome.VIOLATED


def test_other_targets_are_less_exposed() -> None:
    """A row of half the norm is found as if mu were half; the default is the most exposed row."""
    rows = sample()
    rows[5] = 0.5 / np.sqrt(WIDE)
    half = membership(noisy_mean(0.5, 4), rows, target=5, confidence=SURE)
    assert half.auc.low < NORMAL.cdf(1 / 2**0.5) < half.auc.high
    most = membership(noisy_mean(0.5, 4), rows, confidence=SURE)
    assert most.auc.low > half.auc.high


def test_less_knowledge_finds_less() -> None:
    """How near a noisy sum lies to the target says little, as noise moves it in all directions."""
    rng = np.random.default_rng(6)

    def noisy_sum(rows: np.ndarray, size: int) -> np.ndarray:
        return rows.sum(axis=0) + rng.normal(0, 0.5, (size, WIDE))

    strong, weak = (
        membership(noisy_sum, sample(), method, target=0, confidence=SURE)
        for method in ("lira", "loss")
    )
    assert weak.auc.high < strong.auc.low - 0.2
    assert weak.verdict.outcome is not Outcome.VIOLATED


def test_an_exact_mean_is_certainty() -> None:
    """Without noise every play is won."""
    found = membership(lambda rows: rows.mean(axis=0), sample(), plays=200)
    assert found.verdict.success == 1.0
    assert found.auc.value == 1.0


def test_the_bound_on_the_area() -> None:
    """For Gaussian losses it is Φ(μ/√2), for pure ones e^ε/(1 + e^ε); never below."""
    for mu in (0.5, 2.0):
        area, exact = area_of(privacy.gdp(mu)), NORMAL.cdf(mu / 2**0.5)
        assert exact <= area < exact + 1e-3
    for epsilon in (0.3, 2.0):
        area, exact = area_of(privacy.pure(epsilon)), 1 / (1 + np.exp(-epsilon))
        assert exact - 1e-9 <= area < exact + 1e-3


@pytest.mark.parametrize(
    "loss", [privacy.gaussian(0.7), privacy.pure(2.0), privacy.approximate(0.5, 1e-4)]
)
def test_the_curve_from_above(loss: privacy.Loss) -> None:
    """It is never below the loss's own curve, and above it by less than a thousandth."""
    for rate in (0.0, 1e-4, 0.01, 0.2, 0.7, 1.0):
        above = float(Allowed.of(loss).tpr(rate))
        assert float(loss.tpr(rate).lower) <= above < float(loss.tpr(rate).upper) + 1e-3


def leak(share: float, seed: int) -> Any:
    """A number that is noise, but tells the count of rows with a probability."""
    rng = np.random.default_rng(seed)

    def release(rows: np.ndarray, size: int) -> np.ndarray:
        return np.where(rng.random(size) < share, 100.0 * (len(rows) - 49), rng.normal(size=size))

    return release


def test_the_curve_is_tested_where_guesses_and_area_say_nothing() -> None:
    """A leak of 3 % is caught by the curve's lower end, which alone is beyond ε = 1."""
    rows = np.ones((50, 1))
    rng = np.random.default_rng(3)

    def tells(data: np.ndarray, size: int) -> np.ndarray:
        noise = rng.normal(size=size)
        return np.where((rng.random(size) < 0.03) & (len(data) == 50), 9.0, noise)

    found = membership(tells, rows, loss=privacy.pure(1.0), undefended=len, confidence=SURE)
    assert found.verdict.success < found.verdict.bound
    assert found.verdict.outcome is Outcome.VIOLATED
    assert "The curve is above" in found.verdict.reason


def test_what_never_happens_without_the_target_refutes() -> None:
    """The bare count in 3 % of releases: a threshold lies above all that was seen without her."""
    rows = np.ones((50, 1))
    rng = np.random.default_rng(4)

    def tells(data: np.ndarray, size: int) -> np.ndarray:
        return np.where(rng.random(size) < 0.03, 1e3 * len(data) - 49_000, 0.0)

    found = membership(tells, rows, loss=privacy.pure(1.0), undefended=len, confidence=SURE)
    assert found.verdict.outcome is Outcome.VIOLATED
    assert "The curve is above" in found.verdict.reason


def test_true_losses_are_not_refuted_by_curves() -> None:
    """Of 40 attacks on a loss that is met with equality everywhere, at 90 %, at most 12 refute it
    (each with probability at most 0.1, in truth far less: a false alarm once in 100 at worst)."""
    rows = np.ones((40, 1))
    refuted = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)

        def noisy(data: np.ndarray, size: int, rng: Any = rng) -> np.ndarray:
            return len(data) + rng.normal(0, 1, size)

        found = membership(
            noisy, rows, loss=privacy.gaussian(1.0), plays=600, confidence=0.9, seed=seed
        )
        refuted += found.verdict.outcome is Outcome.VIOLATED
    assert refuted <= 12


def test_a_small_leak_is_not_called_inconclusive() -> None:
    """Data of which any mean is the same with and without her: the control is of the statistic."""
    rows = np.ones((50, 1))
    for more in ({}, {"undefended": lambda data: 100.0 * (len(data) - 49)}):
        found = membership(leak(0.03, 5), rows, seed=2, **more)
        assert found.verdict.success > 0.51
        assert found.verdict.outcome is Outcome.CONSISTENT
        assert found.verdict.control is not None
        assert found.verdict.control.share > 0.8


def test_a_statistic_that_tells_nothing_is_inconclusive() -> None:
    """Neither it nor its means tell members from others, and nothing else is said of it."""
    rng = np.random.default_rng(6)
    found = membership(
        lambda rows, size: rng.normal(size=size), sample(), loss=privacy.pure(1.0), confidence=SURE
    )
    assert found.verdict.outcome is Outcome.INCONCLUSIVE
    assert "means of 100 releases" in found.summary().replace("\n", " ")


def area_of(loss: privacy.Loss) -> float:
    """The most area that a loss allows."""
    return Allowed.of(loss).area


class Remembers:
    """A classifier that is sure of what it was trained on, and knows nothing else."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def get_params(self) -> dict[str, Any]:
        return {}

    def set_params(self, **_: Any) -> None:
        pass

    def fit(self, features: np.ndarray, labels: np.ndarray) -> None:
        self.seen = {tuple(row): label for row, label in zip(features, labels, strict=True)}

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        right = np.array([self.seen.get(tuple(row), 0.5) for row in features], dtype=float)
        return np.stack([1 - right, right], axis=1)


class Centroids(Remembers):
    """Noisy sums of rows in the unit ball, with label; mu-GDP, as one row changes one sum by 1."""

    def __init__(self, mu: float, seed: int) -> None:
        super().__init__()
        self.sigma, self.rng = 1 / mu, np.random.default_rng(seed)

    def __deepcopy__(self, _: Any) -> Centroids:
        return Centroids(1 / self.sigma, int(self.rng.integers(2**31)))

    def fit(self, features: np.ndarray, labels: np.ndarray) -> None:
        signed = features * np.where(labels == 1, 1.0, -1.0)[:, None]
        self.weights = signed.sum(axis=0) + self.rng.normal(0, self.sigma, features.shape[1])

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        odds = np.clip(features @ self.weights, -30, 30)
        right = 1 / (1 + np.exp(-odds))
        return np.stack([1 - right, right], axis=1)


def records(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the unit ball with labels that depend on them a little."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(n, 5))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    return rows, (rows[:, 0] + rng.normal(0, 0.5, n) > 0).astype(int)


@pytest.mark.parametrize("method", ["lira", "loss"])
def test_a_model_that_remembers_gives_away(method: str) -> None:
    """All members are found; strangers are a coin."""
    found = membership(Remembers(), records(), method, models=12, confidence=SURE)
    assert found.auc.value > 0.999
    assert found.verdict.success > 0.99
    assert found.verdict.null is not None
    assert abs(found.verdict.null.share - 0.5) < 0.07


class Murmurs(Remembers):
    """Is surer of a record that it was trained on than of another, with a probability."""

    def __init__(self, kept: float, seed: int) -> None:
        super().__init__()
        self.kept, self.rng = kept, np.random.default_rng(seed)

    labels: ClassVar[dict[Any, int]] = {}

    def __deepcopy__(self, _: Any) -> Murmurs:
        return Murmurs(self.kept, int(self.rng.integers(2**31)))

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        there = np.array([tuple(row) in self.seen for row in features])
        told = np.where(self.rng.random(len(features)) < self.kept, there, ~there)
        labels = np.array([self.labels.get(tuple(row), 0) for row in features])
        right = np.where(told, 0.9, 0.6)
        return np.where(labels[:, None] == [0, 1], right[:, None], 1 - right[:, None])


@pytest.mark.parametrize(
    ("epsilon", "outcome"), [(0.3, Outcome.VIOLATED), (1.0, Outcome.CONSISTENT)]
)
def test_models_are_held_against_the_theorem_of_one_run(epsilon: float, outcome: Outcome) -> None:
    """Guesses of 67 % are beyond ε = 0.3 and within ε = 1, though the models are only eight."""
    features, labels = records(300)
    Murmurs.labels = {tuple(row): label for row, label in zip(features, labels, strict=True)}
    model = Murmurs(np.exp(0.7) / (1 + np.exp(0.7)), 1)
    found = membership(
        model, (features, labels), "loss", models=8, loss=privacy.pure(epsilon), confidence=0.999
    )
    assert found.verdict.outcome is outcome
    assert ("Within" in found.verdict.reason) is (found.verdict.high <= found.verdict.bound)


def test_a_true_loss_of_models_is_not_refuted() -> None:
    """Of 40 attacks on models whose loss is met with equality, at 90 %, at most 12 refute it: more
    have probability below 1e-4 at the stated level."""
    features, labels = records(80)
    Murmurs.labels = {tuple(row): label for row, label in zip(features, labels, strict=True)}
    model = Murmurs(np.exp(0.5) / (1 + np.exp(0.5)), 2)
    refuted = sum(
        membership(
            model,
            (features, labels),
            "loss",
            models=8,
            loss=privacy.pure(0.5),
            confidence=0.9,
            seed=seed,
        ).verdict.outcome
        is Outcome.VIOLATED
        for seed in range(40)
    )
    assert refuted <= 12


def test_a_fold_is_attacked_without_its_own_coins() -> None:
    """Other coins of a model, or of its fold, change no score or guess of it."""
    rng = np.random.default_rng(9)
    confidence, member = rng.normal(size=(12, 30)), rng.random((12, 30)) < 0.5
    for method in ("lira", "loss"):
        for fold in folds(12):
            others = member.copy()
            others[fold] = rng.random((len(fold), 30)) < 0.5
            before, after = (attacked(confidence, m, method) for m in (member, others))
            for one, two in zip(before, after, strict=True):
                assert np.array_equal(one[fold], two[fold])


def test_an_interval_above_the_bound_is_never_within() -> None:
    """Too few models to prove anything of a δ: it is said that the curve lies above, not within."""
    found = membership(
        Remembers(), records(60), models=4, loss=privacy.approximate(0.3, 1e-3), confidence=SURE
    )
    assert found.auc.low > area_of(privacy.approximate(0.3, 1e-3))
    assert found.verdict.outcome in (Outcome.UNPROVEN, Outcome.VIOLATED)
    assert "ithin" not in found.verdict.reason


def test_without_its_noise_a_model_must_give_members_away() -> None:
    """A private model says nothing of an attack; the same without noise shows that it works."""
    claim, data = privacy.gaussian(10.0), records(60)
    alone = membership(Centroids(0.1, 1), data, models=20, loss=claim, confidence=SURE)
    assert alone.verdict.outcome is Outcome.INCONCLUSIVE
    assert alone.control is None
    assert "undefended=" in alone.verdict.reason
    both = membership(
        Centroids(0.1, 1), data, models=20, loss=claim, undefended=Remembers(), confidence=SURE
    )
    assert both.verdict.outcome is Outcome.CONSISTENT
    assert both.verdict.control is not None
    assert both.verdict.control.share > 0.9


def test_shadows_find_what_the_loss_alone_does_not() -> None:
    """Without noise, LiRA knows what is usual of each record; the loss threshold does not."""
    lira, loss = (
        membership(Centroids(1e6, 1), records(60), method, models=60) for method in ("lira", "loss")
    )
    assert lira.auc.low > loss.auc.high


def test_private_training_keeps_to_its_bound() -> None:
    """At mu = 0.5 both attacks stay below the trade-off curve, and far below no noise."""
    claim = privacy.gaussian(2.0)
    bare = membership(Centroids(1e6, 1), records(), models=40, confidence=SURE)
    for method in ("lira", "loss"):
        found = membership(
            Centroids(0.5, 1), records(), method, models=40, loss=claim, confidence=SURE
        )
        assert found.verdict.outcome is not Outcome.VIOLATED
        assert found.auc.low < NORMAL.cdf(0.5 / 2**0.5)
        assert found.auc.value < bare.auc.value


def test_the_null_control_is_even() -> None:
    """Pure noise is a coin, though a threshold fitted to its own 40 members would win 60 %."""
    rng = np.random.default_rng(4)
    member = trained_on(40, 200, rng)
    noise = rng.normal(size=member.shape)
    for method in ("lira", "loss"):
        _, guesses = attacked(noise, member, method)
        assert abs((guesses == member).mean() - 0.5) < 6 * 0.5 / np.sqrt(member.size)


@pytest.mark.parametrize("kind", ["forest", "regression"])
def test_models_of_a_library(survey: pl.DataFrame, kind: str) -> None:
    """A forest remembers its women; a regression of nine numbers hardly does."""
    pytest.importorskip("sklearn")
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    some = survey.sample(600, seed=1)
    data = (some.drop("affairs", "affair").to_numpy(), some["affair"].to_numpy())
    if kind == "forest":
        model: Any = RandomForestClassifier(10)
        found = membership(model, data, models=16, seed=2)
        assert found.auc.low > 0.65
        assert not hasattr(model, "estimators_")
    else:
        model = make_pipeline(StandardScaler(), LogisticRegression())
        found = membership(model, data, models=16, seed=2)
        assert found.auc.high < 0.6
    again = membership(model, data, models=16, seed=2)
    assert again.auc == found.auc


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"method": "shadow"}, "method"),
        ({"loss": 1.0}, "loss"),
        ({"target": 80}, "target"),
        ({"plays": 3}, "plays"),
        ({"data": [["a"]]}, "data"),
        ({"data": np.full((3, 1), np.nan)}, "data"),
        ({"model_or_statistic": 3}, "model_or_statistic"),
        ({"model_or_statistic": lambda rows: "text"}, "number"),
        ({"model_or_statistic": lambda rows: np.inf}, "finite"),
        ({"model_or_statistic": Remembers()}, "labels"),
        ({"model_or_statistic": Remembers(), "data": (np.ones((4, 1)), [1, 2])}, "label"),
        ({"method": "loss", "model_or_statistic": lambda rows: rows.sum()}, "lira"),
    ],
)
def test_what_does_not_fit_is_refused(asked: dict[str, Any], match: str) -> None:
    """Arguments are named."""
    given: dict[str, Any] = {"model_or_statistic": noisy_mean(1, 1), "data": sample(), **asked}
    with pytest.raises(ArgumentError, match=match):
        membership(given.pop("model_or_statistic"), given.pop("data"), **given)


def test_a_picture_and_a_summary(tmp_path: Path) -> None:
    """The curve with its bound, and the figures beside what is allowed."""
    found = membership(noisy_mean(1, 1), sample(), loss=privacy.gaussian(1.0), plays=500)
    found.plot(tmp_path / "roc.png")
    assert (tmp_path / "roc.png").stat().st_size > 5_000
    assert "allowed 0.09" in found.summary()

"""Choosing hyper-parameters: whole searches by enumeration, the law of runs, and the charge."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dither import learn, privacy
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError, DitherError, TokenError
from dither.lab.audit import Outcome, audit
from dither.learn.tuning._estimators import UNIT, Estimators
from dither.learn.tuning._plan import Search
from dither.learn.tuning._runs import Runs
from dither.ledger import Ledger
from dither.privacy import Loss, Neighbours, Promise

Law = np.ndarray
SHAPES: list[tuple[Any, Any]] = [
    (5, "geometric"),
    (5, "logarithmic"),
    (4, Fraction(-1, 2)),
    (4, "2.5"),
    (5, "poisson"),
    (1, "geometric"),
    (1, "logarithmic"),
]


def chances(runs: Runs) -> Law:
    """Of each number from 0 on, until next to nothing is left."""
    found, total = {}, 0.0
    for k, chance in runs.chances():
        found[k], total = chance, total + chance
        if total > 1 - 1e-13:
            break
    law = np.zeros(max(found) + 1)
    law[list(found)] = list(found.values())
    return law


@pytest.mark.parametrize(("mean", "shape"), SHAPES)
def test_the_law_of_the_runs(mean: int, shape: Any) -> None:
    """It is the one that is named, with a mean of no more than is charged, and nearly that."""
    runs = Runs.of(mean, shape)
    law = chances(runs)
    ks = np.arange(len(law))
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert mean - 1e-6 <= (ks * law).sum() <= mean + 1e-12
    if mean == 1 and shape != "poisson":
        assert law.tolist() == [0, 1]
        return
    g, eta = float(runs.parameter), None if runs.shape is None else float(runs.shape)
    if eta is None:
        expected = np.array([math.exp(k * math.log(g) - g - math.lgamma(k + 1)) for k in ks])
    else:
        expected = np.zeros(len(law))
        first = (1 - g) / -math.log(g) if eta == 0 else eta * (1 - g) / (g**-eta - 1)
        expected[1] = first
        for k in range(1, len(law) - 1):
            expected[k + 1] = expected[k] * (1 - g) * (k + eta) / (k + 1)
    assert law == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("mean", "shape"), SHAPES[:5])
def test_numbers_are_drawn_from_it(mean: int, shape: Any) -> None:
    """Chi-square on eight classes: a false alarm in a million runs."""
    runs, n = Runs.of(mean, shape), 1500
    law = np.append(chances(runs), np.zeros(10))
    drawn = np.minimum([runs.draw() for _ in range(n)], 8)
    expected = n * np.append(law[:8], law[8:].sum())
    seen = np.bincount(drawn, minlength=9)
    kept = expected > 0
    assert (seen[~kept] == 0).all()
    assert ((seen - expected)[kept] ** 2 / expected[kept]).sum() < 43.3


def test_a_draw_is_decided_by_bounds_alone() -> None:
    """A first word gives the number whose bounds hold it; on an edge more bits are asked for."""
    runs = Runs.of(2, "geometric")
    quarter = 1 << 60
    for prefix, expected in ((0, 1), (quarter, 1), (2 * quarter + 1, 2), (3 * quarter + 1, 3)):
        assert runs._decided(prefix, 62) == expected
    odd = Runs.of(3, 0)
    first, last = odd._first(200)
    assert 0 < last - first < Fraction(1, 2**190)
    edge = math.floor(first * (1 << 62))
    assert odd._decided(edge, 62) is None
    assert odd._decided(edge - 1, 62) == 1
    assert odd._decided(edge + 1, 62) == 2
    assert odd._decided((1 << 62) - 1, 62) is None


EPSILON = 0.7


def _runs_of(law: tuple[Law, Law], runs: Runs) -> tuple[Law, Law]:
    """The law of the best of the runs, on both tables; the first entry is for no run at all."""
    number = chances(runs)
    found = []
    for one in law:
        below = np.concatenate([[0.0], np.cumsum(one)])
        below[-1] = 1.0
        best = np.diff([(number * b ** np.arange(len(number))).sum() for b in below])
        found.append(np.append(number[0], best))
    return found[0], found[1]


def _small_mechanisms() -> list[tuple[str, tuple[Law, Law], Loss]]:
    low = math.exp(-EPSILON)
    three = np.array([1, low, low]) / (1 + 2 * low)
    wide = privacy.randomized_response(str(EPSILON), k=3)
    rare = np.array([0.01, 0.99])
    moved = np.array([0.01 * low, 1 - 0.01 * low])
    eight = np.arange(8)
    noisy = [np.exp(-((eight - at) ** 2) / 8.0) for at in (3, 4)]
    gauss = tuple(law / law.sum() for law in noisy)
    p, q = np.array([0.2, 0.8 - 1e-3, 1e-3]), np.array([0.2, 0.8, 0.0])
    return [
        ("response", (three, three[::-1].copy()), wide),
        ("rare", (rare, moved), privacy.pure(str(EPSILON))),
        ("table", (gauss[0], gauss[1]), privacy.pair(gauss[0].tolist(), gauss[1].tolist())),
        ("leak", (p, q), privacy.approximate("1/100", 1e-3)),
    ]


@pytest.mark.parametrize(("mean", "shape"), SHAPES)
@pytest.mark.parametrize("base", _small_mechanisms(), ids=lambda base: base[0])
def test_whole_searches_by_enumeration(base: Any, mean: int, shape: Any) -> None:
    """The exact law of what is released keeps the claim at all orders, and each kind of charge."""
    name, law, each = base
    runs = Runs.of(mean, shape)
    if name == "leak" and runs.shape is None:
        return
    loss = privacy.repeat_and_select(each, mean=runs.mean, shape=runs.shape)
    charge = loss.charge
    for a, b in (_runs_of(law, runs), _runs_of(law[::-1], runs)):
        kept = a > 0
        p, q = a[kept], b[kept]
        if name != "leak":
            for order in (1.02, 1.1, 1.5, 2.0, 3.0, 6.0, 20.0, 100.0, 1000.0):
                logs = order * np.log(p) + (1 - order) * np.log(q)
                truth = float(np.logaddexp.reduce(logs)) / (order - 1)
                assert truth <= loss.renyi(order).upper + 1e-9
                if charge.rho is not None:
                    assert truth <= order * float(charge.rho) + 1e-9
        for epsilon in (0.0, 0.02, 0.2, 0.7, 1.4):
            truth = np.maximum(a - math.exp(epsilon) * b, 0).sum()
            assert truth <= loss.delta(epsilon).upper + 1e-12
        if charge.epsilon is not None:
            most = math.exp(float(charge.epsilon))
            assert np.maximum(a - most * b, 0).sum() <= float(charge.delta) + 1e-12


def test_the_pure_charge_is_no_excess() -> None:
    """A search passes twice the epsilon of one run, and is charged three times."""
    first, second = _runs_of(_three_ways(EPSILON), Runs.of(200, "geometric"))
    assert np.abs(np.log(first[1:] / second[1:])).max() > 2 * EPSILON


def _three_ways(epsilon: float) -> tuple[Law, Law]:
    """Worse, named, better: the named one gains epsilon where better ones lose it."""
    low = math.exp(-epsilon)
    better, named = 0.1, 1e-6
    p = np.array([0.0, named, better * low])
    q = np.array([0.0, named * low, better])
    p[0], q[0] = 1 - p.sum(), 1 - q.sum()
    return p, q


def test_planted_bugs_are_refuted() -> None:
    """One run's epsilon for the search; a fixed number of runs; and an exact private score."""
    p, q = _three_ways(EPSILON)
    first, second = _runs_of((p, q), Runs.of(200, "geometric"))
    ratio = np.abs(np.log(first[1:] / second[1:])).max()
    assert ratio > EPSILON
    # Always sixty runs, charged as a random number with that mean.
    low = math.exp(-EPSILON)
    bad = [(1 - share) ** 60 for share in (0.3, 0.3 * low)]
    claim = privacy.repeat_and_select(privacy.pure(str(EPSILON)), mean=60)
    assert math.log(bad[1] / bad[0]) > float(claim.charge.epsilon or 0)

    def free(bit: int) -> int:
        # Nothing noisy is released, but what is best is looked up in the rows.
        def run(candidate: int) -> tuple[int, float]:
            return candidate, float(candidate == bit)

        found = learn.search(run, [0, 1], loss=privacy.pure("1/10"), mean=20)
        return int(found.model)

    assert audit(free, 0, 1, epsilon="3/10", samples=200).verdict is Outcome.VIOLATED


def test_it_stands_the_audit() -> None:
    """Searches as they are drawn, at the pure charge."""
    for subject in Search.audit_subjects():
        found = audit(subject.mechanism, 0, 1, epsilon=subject.epsilon, samples=400)
        assert found.verdict is not Outcome.VIOLATED


def test_what_a_run_does_raises_nothing() -> None:
    """Failing runs and scores that are not numbers are the worst; no run at all has no model."""
    pure = privacy.pure(1)

    def run(candidate: Any) -> Any:
        if candidate == "raise":
            raise RuntimeError("secret")
        return candidate, {"nan": math.nan, "none": None, "text": "x", "good": -1e300}[candidate]

    bad = ["raise", "nan", "none", "text"]
    found = learn.search(run, bad, loss=pure, mean=3)
    assert (found.model, found.score) == (None, -math.inf)
    assert "no run gave a model" in found.summary()
    assert learn.search(run, [*bad, "good"], loss=pure, mean=200, shape=5).model == "good"
    assert learn.search(lambda _: 7, [1], loss=pure, mean=2).model is None
    seen = {
        learn.search(run, ["good"], loss=pure, mean=1, shape="poisson").model for _ in range(60)
    }
    assert seen == {None, "good"}
    told = learn.search(run, ["good"], loss=pure, mean=2)
    assert "one run alone, ε = 1" in told.summary()
    assert "ε = 3" in told.summary()
    assert told.plot() is not None
    assert learn.search(run, ["good"], loss=pure, mean=2, delta=1e-6).plot() is not None


def test_the_largest_of_the_candidates_is_charged() -> None:
    """A function from a candidate to its loss."""
    found = learn.search(lambda c: (c, 0), ["1/2", "1"], loss=privacy.pure, mean=4)
    assert found.loss.charge.epsilon == 3
    assert found.each.charge.epsilon == 1
    mixed = privacy.repeat_and_select([privacy.gaussian(4), privacy.pure("1/10")], mean=4)
    alone = privacy.repeat_and_select(privacy.gaussian(4), mean=4)
    assert mixed.renyi(8.0).upper >= alone.renyi(8.0).upper
    assert mixed.charge.epsilon is None
    with pytest.raises(ArgumentError, match="same neighbours"):
        privacy.repeat_and_select([privacy.pure(1), privacy.pure(1, neighbours="replace")], mean=4)
    assert privacy.repeat_and_select(Loss(), mean=4).free


def test_a_delta_states_the_charge() -> None:
    """Of Gaussian runs: the epsilon at that delta, beside the rho that is true of the search."""
    one = privacy.gaussian(5)
    found = learn.search(lambda c: (c, 0), [1], loss=one, mean=10, delta=1e-6)
    charge = found.loss.charge
    assert charge.epsilon == Fraction(found.loss.epsilon(1e-6).upper)
    assert charge.delta == Fraction(1, 10**6)
    assert charge.rho_delta == 0
    true, naive = found.costs()
    assert naive < true < 3 * naive
    assert found.costs(1e-9)[0] > true
    without = learn.search(lambda c: (c, 0), [1], loss=one, mean=10)
    assert without.loss.charge.epsilon is None
    assert without.costs() == (math.inf, math.inf)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"mean": 0.5}, "mean"),
    ({"mean": 20_000}, "mean must be at most 10,000"),
    ({"mean": 5000, "shape": "-0.9"}, "mean must be lower"),
    ({"shape": -1}, "shape"),
    ({"shape": "1/10000"}, "shape must be 0"),
    ({"shape": "binomial"}, "shape"),
    ({"loss": None}, "loss must say"),
    ({"loss": 1.0}, "loss must say"),
    ({"delta": 2}, "delta"),
    ({"candidates": []}, "candidates"),
    ({"candidates": 5}, "candidates"),
    ({"X": [1]}, "X, y"),
    ({"epsilon": 1}, "X, y"),
    ({"run": 5}, "run must be"),
    ({"loss": privacy.approximate(1, 1e-3), "shape": "poisson"}, "infinite"),
    ({"loss": privacy.approximate(1, 1e-3), "mean": 1000}, "mean must be below"),
]


@pytest.mark.parametrize(("change", "named"), BAD)
def test_refusals_name_the_argument(change: dict[str, Any], named: str) -> None:
    """Before anything is run."""

    def never(_: Any) -> Any:
        raise KeyboardInterrupt

    given = {"run": never, "candidates": [1], "loss": privacy.pure(1)} | change
    with pytest.raises(DitherError, match=named):
        learn.search(given.pop("run"), given.pop("candidates"), **given)


def _table(n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.random((n, 2))
    return X, (X[:, 0] > 0.5).astype(int)


def _model(**change: Any) -> learn.AdditiveClassifier:
    good = {"epsilon": 2, "delta": 1e-6, "bounds": (0, 1), "classes": [0, 1], "rounds": 1}
    return learn.AdditiveClassifier(**good | change)


@pytest.mark.parametrize("kind", [np.asarray, pl.DataFrame, pd.DataFrame])
def test_estimators_are_searched(kind: Any) -> None:
    """A grid of parameters, scored with noise on rows held out, at the larger of the two costs."""
    X, y = _table()
    found = learn.search(_model(), {"bins": [4, 16], "rounds": [1, 2]}, kind(X), y, mean=3)
    assert found.model.score(X, y) > 0.9
    assert set(found.candidate) == {"bins", "rounds"}
    assert found.candidate["bins"] == found.model.bins
    assert 200 < found.score < 400
    assert found.delta == Fraction(1, 10**6)
    true, naive = found.costs()
    assert 1.9 < naive <= 2 < true < 6
    assert found.loss.charge.epsilon == Fraction(true)


def _tabular() -> list[Any]:
    two = {"epsilon": 2, "delta": 1e-6, "bounds": (0, 1), "classes": [0, 1]}
    number = {"epsilon": 2, "delta": 1e-6, "bounds": (0, 1), "target_bounds": (0, 1)}
    small = {"n_estimators": 2, "max_depth": 2}
    return [
        (learn.LogisticRegression(**two), {"epsilon": [1, 2]}),
        (learn.LogisticRegression(**two | {"classes": [0, 1, 2]}), {"epsilon": [2]}),
        (learn.GaussianNB(**two), {"epsilon": [1, 2]}),
        (learn.GaussianNB(**two | {"delta": 0}), {"epsilon": [1, 2]}),
        (learn.GaussianNB(**two, neighbours="replace"), [{}]),
        (
            learn.RandomForestClassifier(**two, **small),
            {"max_depth": [1, 3], "splits": ["auto", "drawn"]},
        ),
        (learn.RandomForestRegressor(**number, **small), {"max_depth": [1, 3]}),
        (learn.LinearRegression(**number), {"epsilon": [1, 2]}),
    ]


@pytest.mark.parametrize(("model", "grid"), _tabular(), ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("lists", [False, True])
def test_every_tabular_estimator_is_searched(model: Any, grid: Any, lists: bool) -> None:
    """One that predicts comes out, for no more than three times a run; of lists of rows too."""
    X, y = _table(900)
    given = (X.tolist(), y.tolist()) if lists else (X, y)
    found = learn.search(model, grid, *given, mean=2)
    assert type(found.model) is type(model)
    assert np.isfinite(found.model.predict(X).astype(float)).all()
    whole, each = found.costs()
    assert each <= 2 < whole <= 6
    assert (found.loss.neighbours is Neighbours.REPLACE) == (model.neighbours == "replace")


def test_groups_are_searched_by_a_metric() -> None:
    """Of estimators without classes or bounds of a target; one is needed, and must be one."""
    X, y = _table(300)
    groups = learn.KMeans(2, epsilon=1, delta=1e-6, bounds=(0, 1))
    sizes = {"n_clusters": [2, 3]}
    found = learn.search(groups, sizes, X, y, mean=2, metric=lambda t, p: t == p)
    assert found.candidate["n_clusters"] == found.model.n_clusters


def test_candidates_of_different_costs_keep_one_epsilon() -> None:
    """Each run gets what the dearest of them allows."""
    X, y = _table(90)
    found = learn.search(_model(), {"rounds": [1, 4]}, X, y, mean=2, epsilon=3)
    assert 2.9 < found.costs()[0] <= 3
    assert 1 < found.candidate["epsilon"] < 2


def test_what_cannot_be_scored_is_seen_before_the_charge(tmp_path: Path) -> None:
    """Nothing is spent on a search that no run of could end well."""
    X, y = _table(60)
    groups = learn.KMeans(2, epsilon=1, delta=1e-6, bounds=(0, 1))
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (learn.PCA(1, epsilon=1, delta=1e-6, bounds=(0, 1)), {}, "PCA does not"),
        (groups, {}, "metric must say"),
        (_model(), {"metric": 3}, "metric must be a function"),
        (_model(), {"validation": (X, y), "metric": lambda t, p: [1]}, "one score a row"),
        (_model(), {"validation": (X[:, :1], y)}, "validation: X must have 2 columns"),
        (_model(), {"validation": (X[:, 0], y)}, "validation: X must be a table"),
    ]
    with Ledger.open(tmp_path / "a.ledger") as book:
        book.ensure_account("all", BudgetFilter(Fraction(9), Fraction(1, 100)), Promise("row"))
        for model, given, says in cases:
            where = {"ledger": book, "accounts": "all", "unit": "row"}
            with pytest.raises(ArgumentError, match=says):
                learn.search(model, [{}], X, y, mean=2, **given, **where)
            assert book.balance("all").spent.free


def test_public_rows_cost_nothing_to_score() -> None:
    """And the whole may be given its epsilon, of which each run gets a part."""
    X, y = _table()
    public = learn.search(_model(), [{"bins": 4}], X, y, mean=3, validation=(X[:99], list(y[:99])))
    private = learn.search(_model(), [{"bins": 4}], X, y, mean=3)
    assert 0.8 < public.score <= 1
    assert public.costs()[0] <= private.costs()[0] < 1.02 * public.costs()[0]
    given = {"mean": 3, "epsilon": 2, "validation": (X[:9], y[:9])}
    whole = learn.search(_model(), [{"bins": 4}], X, y, **given)
    assert 1.9 < whole.costs()[0] <= 2
    assert whole.model.epsilon == whole.candidate["epsilon"] < 2
    assert "epsilon=1." in whole.summary()


def test_numbers_are_scored_by_their_errors() -> None:
    """In [0, 1] a row, or by a metric; NaN is the worst, and what fails is told of an estimator."""
    X, _ = _table(600)
    model = learn.AdditiveRegressor(
        epsilon=3, delta=1e-6, bounds=(0, 1), target_bounds=(0, 10), rounds=2
    )
    y = 10 * X[:, 0]
    y[:5] = math.nan
    found = learn.search(model, [{"bins": 8}], X, y, mean=2, validation=(X, y))
    assert 0.8 < found.score < 0.99
    half = learn.search(
        model, [{"bins": 8}], X, y, mean=2, validation=(X, y), metric=lambda t, p: np.full(600, 0.5)
    )
    assert half.score == 0.5
    with pytest.raises(ArgumentError, match="one score a row"):
        learn.search(model, [{"bins": 8}], X, y, validation=(X, y), metric=lambda t, p: [1])


def test_one_row_moves_one_row_of_a_score() -> None:
    """A score's sensitivity, by hostile truths, predictions and metrics."""
    X, y = _table(50)
    plan = Estimators(_model(), [{}], X, y, None, "1/5", "1/2", None)
    plan._losses([{}])
    model = _model().fit(X, y)
    truths = np.array([0, 1, None, math.nan, "x", 7], dtype=object)
    found = plan._scored(model, np.resize(X, (6, 2)), truths)
    assert ((found >= 0) & (found <= UNIT)).all()
    assert (found[2:] == 0).all()
    plan.metric = lambda t, p: np.array([math.inf, -math.inf, math.nan, 1e9, 0.5, -3])
    assert plan._scored(model, np.resize(X, (6, 2)), truths).tolist() == [
        UNIT, 0, 0, UNIT, UNIT // 2, 0,
    ]  # fmt: skip
    assert plan._noise.loss(l1=UNIT).charge.epsilon == Fraction(1, 2)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"candidates": {"bin": [1]}}, "no parameter 'bin'"),
        ({"candidates": {"bins": [1]}}, "bins"),
        ({"candidates": {"bins": 4}}, "candidates"),
        ({"candidates": {"bins": "48"}}, "candidates"),
        ({"candidates": [4]}, "candidates must be mappings"),
        ({"candidates": {"neighbours": ["add-remove", "replace"]}}, "neighbours"),
        ({"candidates": {"epsilon": [1, 2]}, "epsilon": 1}, "epsilon must not be a candidate"),
        ({"X": None}, "X and y"),
        ({"y": [1]}, "one value for each row"),
        ({"loss": privacy.pure(1)}, "loss is an estimator's own"),
        ({"held": 1}, "held"),
        ({"validation": 3}, "validation"),
        ({"validation": ([[1, 2]], [])}, "validation"),
        ({"validation": ([[1, 2]], [0]), "score_epsilon": 1}, "score_epsilon"),
        ({"epsilon": 1e-9, "delta": 0}, "epsilon is too small"),
    ],
)
def test_estimators_refuse_before_they_are_fitted(change: dict[str, Any], named: str) -> None:
    """What is wrong is named, and no row is read."""
    X, y = _table(20)
    given = {"candidates": {"bins": [4]}, "X": X, "y": y} | change
    with pytest.raises(DitherError, match=named):
        learn.search(_model(), given.pop("candidates"), given.pop("X"), given.pop("y"), **given)


def test_others_than_ours_need_a_loss() -> None:
    """Of an estimator of somebody else it is not known what it loses."""
    from sklearn.linear_model import LogisticRegression

    X, y = _table(20)
    with pytest.raises(ArgumentError, match=r"estimator of dither\.learn"):
        learn.search(LogisticRegression(), {"C": [1]}, X, y)


def test_the_search_is_charged_before_it_runs(tmp_path: Path) -> None:
    """Once, in full; what does not fit, or is charged already, runs nothing."""
    ran = []

    def run(candidate: int) -> tuple[int, float]:
        ran.append(candidate)
        assert book.balance("all").spent.epsilon == 3
        return candidate, 0.0

    with Ledger.open(tmp_path / "a.ledger") as book:
        book.ensure_account("all", BudgetFilter(Fraction(4), Fraction(0)), Promise("row"))
        where = {"ledger": book, "accounts": "all", "unit": "row", "token": "a"}
        assert learn.search(run, [1], loss=privacy.pure(1), mean=2, **where).model == 1
        ran.clear()
        with pytest.raises(TokenError):
            learn.search(run, [1], loss=privacy.pure(1), mean=2, **where)
        with pytest.raises(BudgetError):
            learn.search(run, [1], loss=privacy.pure(1), mean=2, **where | {"token": "b"})
        with pytest.raises(ArgumentError, match="unit"):
            learn.search(run, [1], loss=privacy.pure(1), mean=2, **where | {"unit": None})
        replaced = privacy.pure(1, neighbours=Neighbours.REPLACE)
        with pytest.raises(DitherError):
            learn.search(run, [1], loss=replaced, mean=2, **where | {"token": "c"})
    assert ran == []

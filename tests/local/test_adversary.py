"""The adversary against brute force, the paper's closed forms, and play; shuffling's bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.local import GRR, SDGRR, URR, simulate_attack
from privacy.amplification.test_shuffling import histograms


def brute_force(matrix: Any, prior: Any) -> float:
    """The success of the best guess: the largest joint probability of each report, summed."""
    return float((matrix * np.asarray(prior)[:, None]).max(axis=0).sum())


@given(st.integers(3, 12), st.floats(0.05, 5), st.data())
def test_with_prior(k: int, epsilon: float, data: st.DataObject) -> None:
    """With a prior, success is the sum of the largest joint probabilities."""
    h = data.draw(st.integers(1, k - 1))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=k, max_size=k))
    prior = np.array(weights) / sum(weights)
    for channel in (GRR(k, epsilon), SDGRR(k, range(h), epsilon), URR(k, range(h), epsilon)):
        found = channel.attack(prior)
        assert found.success == pytest.approx(brute_force(channel.matrix, prior), abs=1e-12)
        assert found.success >= found.baseline - 1e-12


@given(st.integers(3, 30), st.floats(0.05, 5), st.data())
def test_without_prior(k: int, epsilon: float, data: st.DataObject) -> None:
    """Equations (17) and (18): on high values SDGRR gives what GRR does, URR more."""
    h = data.draw(st.integers(1, k - 1))
    e = math.exp(epsilon)
    graded, plain = SDGRR(k, range(h), epsilon).attack(), GRR(k, epsilon).attack()
    assert graded.per_class["high"] == pytest.approx(e / (k + e - 1))
    assert plain.success == pytest.approx(e / (k + e - 1))
    assert URR(k, range(h), epsilon).attack().per_class["high"] == pytest.approx(e / (h + e - 1))


EA = np.array([44, 32, 17, 17, 70, 114, 39, 42, 40, 29, 225, 145, 26, 22, 92, 31, 10, 5]) / 1000


def test_who_is_high() -> None:
    """Who knows the shares learns more of the class from a graded report: left out in the paper."""
    graded = SDGRR(18, range(4), 1).attack(EA).who_is_high
    plain = GRR(18, 1).attack(EA, high=range(4)).who_is_high
    utility = URR(18, range(4), 1).attack(EA).who_is_high
    assert graded is not None
    assert plain is not None
    assert utility is not None
    assert graded.auc > plain.auc + 0.01 > 0.51
    assert graded.total_variation > plain.total_variation
    assert plain.auc < utility.auc < graded.auc


def test_who_is_high_of_even_shares() -> None:
    """Where all values of a class are equally frequent, grading adds nothing to the class game."""
    graded, plain = SDGRR(18, range(4), 1).attack(), GRR(18, 1).attack(high=range(4))
    assert graded.who_is_high is not None
    assert plain.who_is_high is not None
    assert graded.who_is_high.auc == pytest.approx(plain.who_is_high.auc, abs=1e-12)


@given(st.integers(3, 12), st.floats(0.05, 5), st.data())
def test_plain_is_postprocessing_of_graded(k: int, epsilon: float, data: st.DataObject) -> None:
    """A GRR report is an SDGRR report whose low values are mixed: it never tells more."""
    h = data.draw(st.integers(1, k - 1))
    graded, plain = SDGRR(k, range(h), epsilon).matrix, GRR(k, epsilon).matrix
    c1, c2, c3 = plain[0, 0], plain[0, 1], graded[h, h]
    mix = np.eye(k)
    mix[h:, h:] = c2 / c3
    mix[range(h, k), range(h, k)] = c1 / c3
    np.testing.assert_allclose(mix.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(graded @ mix, plain, atol=1e-12)


def test_class_game_by_enumeration() -> None:
    """Accuracy and area under the curve agree with pairs compared one by one."""
    channel, prior = SDGRR(5, [0, 1], 1), np.array([0.1, 0.3, 0.2, 0.2, 0.2])
    game = channel.attack(prior).who_is_high
    assert game is not None
    high = prior[:2] @ channel.matrix[:2] / 0.4
    low = prior[2:] @ channel.matrix[2:] / 0.6
    ratio = high / low
    wins = (ratio[:, None] > ratio[None, :]) + 0.5 * np.isclose(ratio[:, None], ratio[None, :])
    assert game.auc == pytest.approx(float(high @ wins @ low))
    assert game.accuracy == pytest.approx(np.maximum(0.4 * high, 0.6 * low).sum())
    assert game.total_variation == pytest.approx(np.maximum(high - low, 0).sum())


@pytest.mark.parametrize("with_prior", [False, True])
def test_played(with_prior: bool) -> None:
    """The game, played a hundred thousand times, gives the closed form (false alarm 1e-8)."""
    channel = SDGRR(6, [0, 5], 1)
    prior = np.array([0.3, 0.1, 0.1, 0.2, 0.2, 0.1]) if with_prior else None
    exact = channel.attack(prior)
    played = simulate_attack(channel, np.random.default_rng(4), prior, people=100_000)
    assert played.success == pytest.approx(exact.success, abs=6 * 0.5 / math.sqrt(100_000))
    for name, value in exact.per_class.items():
        assert played.per_class[name] == pytest.approx(value, abs=6 * 0.5 / math.sqrt(20_000))


def test_shuffled() -> None:
    """Shuffling amplifies GRR between all values, SDGRR between two high ones only."""
    plain, graded = GRR(18, 4).shuffled(10**6), SDGRR(18, range(4), 4).shuffled(10**6)
    assert float(plain.epsilon(1e-6)) == pytest.approx(0.0299, abs=1e-4)
    assert float(graded.epsilon(1e-6)) == pytest.approx(0.0372, abs=1e-4)
    assert graded.between == "two high values"
    assert "two high values" in str(graded)
    with pytest.raises(ArgumentError, match="two high values only"):
        SDGRR(18, [3], 4).shuffled(100)
    with pytest.raises(ArgumentError, match="n must be"):
        GRR(18, 4).shuffled(0)


def test_shuffled_holds_for_all_databases() -> None:
    """Three people: anyone who the others are, shuffled reports keep the claimed delta."""
    channel = SDGRR(4, [0, 1], 1)
    central = channel.shuffled(3)
    rows = channel.matrix
    for others in [(a, b) for a in range(4) for b in range(a, 4)]:
        p, q = (histograms(rows[[x, *others]]) for x in (0, 1))
        for epsilon in (0.0, 0.3, 0.6, 0.9):
            exact = sum(max(0.0, m - math.exp(epsilon) * q.get(key, 0)) for key, m in p.items())
            assert exact <= float(central.delta(epsilon)) + 1e-12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GRR(3, 1).attack([0.5, 0.5]), "one share for each"),
        (lambda: GRR(3, 1).attack([0.5, 0.6, -0.1]), "sum to 1"),
        (lambda: GRR(3, 1).attack(high=[7]), "values of the domain"),
        (lambda: GRR(3, 1).attack(high=[0, 1, 2]), "not all"),
        (lambda: simulate_attack(GRR(3, 1), np.random.default_rng(), people=0), "people"),
    ],
)
def test_attack_refusals(make: Any, message: str) -> None:
    """Each bad argument is named, with what was wanted."""
    with pytest.raises(ArgumentError, match=message):
        make()

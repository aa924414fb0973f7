"""The best guess from bits, hashes and subsets: closed forms against enumeration and play."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import local
from dither.errors import ArgumentError
from dither.local._guessing import bit_guesses
from dither.local._numbers.numeric import NumericChannel

PRIOR = np.array([0.35, 0.25, 0.2, 0.1, 0.05, 0.05])


def enumerated(rows: Any, prior: Any) -> tuple[Any, Any]:
    """Success on holders of each value, from the full law of the reports, and the weights."""
    weights = rows if prior is None else rows * prior[:, None]
    top = weights.max(axis=0)
    best = (weights >= top * (1 - 1e-12)) & (top > 0)
    return (rows * best / np.maximum(best.sum(axis=0), 1)).sum(axis=1), weights


def subset_rows(channel: local.SubsetSelection) -> Any:
    """The full law of subset selection: a column a set."""
    k = len(channel.domain)
    sets = [frozenset(s) for s in itertools.combinations(range(k), channel.size)]
    return np.array([[float(channel.exact(x, s)) for s in sets] for x in range(k)])


def bit_rows(channel: Any) -> Any:
    """The full law of independent bits: a column a report."""
    k = len(channel.domain)
    return np.array([[float(channel.exact(x, b)) for b in channel.reports()] for x in range(k)])


def enumerable() -> list[tuple[Any, Any]]:
    """Channels with the full law of their reports."""
    bits = [
        local.SUE(6, 1),
        local.OUE(6, 2),
        local.THE(6, 2),
        local.RAPPOR(6, 3, once=1),
        local.RAPPOR(6, noise=("0.5", 0, 1)),
        local.MinIDLDP(6, [1, 1, 2, 2, 3, 3]),
    ]
    sets = [local.SubsetSelection(6, e, size=w) for e, w in ((1, 2), ("0.1", 3), (3, 1), (2, 5))]
    return [(c, bit_rows(c)) for c in bits] + [(c, subset_rows(c)) for c in sets]


@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("prior", [None, PRIOR, np.full(6, 1 / 6), [0.5, 0.5, 0, 0, 0, 0]])
def test_closed_forms_by_enumeration(place: int, prior: Any) -> None:
    """Success on each value, and the class game, are what the full law of reports gives."""
    channel, rows = enumerable()[place]
    prior = None if prior is None else np.asarray(prior, dtype=float)
    found = channel.attack(prior, high=[0, 1])
    expected, _ = enumerated(rows, prior)
    np.testing.assert_allclose(found.per_value, expected, atol=1e-12)
    pi = np.full(6, 1 / 6) if prior is None else prior
    assert found.success == pytest.approx(float(pi @ expected), abs=1e-12)
    if found.who_is_high is None:
        # Values of a class with unlike shares or unlike bits: the game is played instead.
        assert channel.kind == "min-id-ldp" or np.ptp(prior[:2]) > 0 or np.ptp(prior[2:]) > 0
        return
    share = pi[:2].sum()
    high, low = pi[:2] @ rows[:2] / share, rows[2:].mean(axis=0)
    game = found.who_is_high
    assert game.total_variation == pytest.approx(np.abs(high - low).sum() / 2, abs=1e-12)
    assert game.accuracy == pytest.approx(np.maximum(share * high, (1 - share) * low).sum())
    with np.errstate(divide="ignore"):
        ratio = np.where(high > 0, low / np.maximum(high, 1e-300), np.inf)
    wins = (ratio[:, None] < ratio * (1 - 1e-9)) + 0.5 * np.isclose(ratio[:, None], ratio)
    assert game.auc == pytest.approx(float(high @ wins @ low), abs=1e-9)


def test_even_bits_in_one_line() -> None:
    """Without a prior the guess is one of the ones: p(1-(1-q)^k)/(kq) + (1-p)(1-q)^(k-1)/k."""
    for k in (3, 100, 5_000, 10**6):
        channel = local.OUE(k, 2)
        p, q = 0.5, 1 / (math.exp(2) + 1)
        expected = p * -math.expm1(k * math.log1p(-q)) / (k * q) + (1 - p) * (1 - q) ** (k - 1) / k
        assert channel.attack().success == pytest.approx(expected, rel=1e-9)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 4), min_size=3, max_size=5), st.integers(1, 6))
def test_any_prior_of_bits(shares: list[int], tenths: int) -> None:
    """Priors with and without ties, against enumeration."""
    prior = np.array(shares) / sum(shares)
    channel = local.SUE(len(shares), tenths / 2)
    expected, weights = enumerated(bit_rows(channel), prior)
    found = channel.attack(prior)
    np.testing.assert_allclose(found.per_value, expected, atol=1e-12)
    assert found.success == pytest.approx(weights.max(axis=0).sum(), abs=1e-12)


def everything() -> list[tuple[local.Channel, list[Any]]]:
    """A channel of each kind over six values, with its high ones."""
    line = local.Interval(0, 1, steps=5)
    listed: list[local.Channel] = [
        local.GRR(6, 1),
        local.SDGRR(6, [0, 1], 1),
        local.URR(6, [0, 1], 1),
        local.SUE(6, 1),
        local.OUE(6, 1),
        local.THE(6, 2),
        local.SHE(6, 2),
        local.RAPPOR(6, 3, once=1),
        local.BloomRAPPOR(6, 3, bits=16, cohorts=4),
        local.MinIDLDP(6, [1, 1, 2, 2, 3, 3]),
        local.SubsetSelection(6, 1),
        local.Hadamard(6, 2),
        local.BLH(6, 1),
        local.OLH(6, 2),
        local.FLH(6, 2, seeds=16),
        local.LOLOHA(6, 1, 2),
        local.CMS(6, 2, hashes=4, buckets=16),
        local.HCMS(6, 2, hashes=4, buckets=8),
        local.TruncatedGeometric(6, 1),
        local.GridPrivacy(2, 3, 1, 1),
        local.Duchi(line, 1),
        local.PM(line, 2),
        local.Hybrid(line, 2),
        local.LatticeLaplace(line, 2),
        local.SW(line, 2),
        local.SDPM(line, (0, "0.6"), 2),
    ]
    return [(c, [0, 1]) for c in listed]


@pytest.mark.parametrize("place", range(26))
def test_every_channel_is_played(place: int) -> None:
    """Play and closed form agree within six standard errors, for values and classes."""
    channel, high = everything()[place]
    n, rng = 40_000, np.random.default_rng(place)
    played = local.simulate_attack(channel, rng, PRIOR, people=n, high=high)
    assert played.who_is_high is not None
    slack = 6 * 0.5 / math.sqrt(n)
    assert played.success >= played.baseline - slack
    assert played.who_is_high.accuracy >= played.who_is_high.baseline - slack
    assert 0.5 - slack <= played.who_is_high.auc <= 1
    if channel.kind in {"she", "bloom-rappor", "cms"}:
        with pytest.raises(ArgumentError, match="use simulate_attack"):
            channel.attack(PRIOR, high=high)
        return
    exact = channel.attack(PRIOR, high=high)
    assert played.success == pytest.approx(exact.success, abs=slack)
    for name, found in exact.per_class.items():
        assert played.per_class[name] == pytest.approx(found, abs=2 * slack)
    if exact.who_is_high is not None:
        for name in ("accuracy", "auc", "total_variation"):
            found, expected = (getattr(a.who_is_high, name) for a in (played, exact))
            assert found == pytest.approx(expected, abs=3 * slack)
    even = local.simulate_attack(channel, rng, people=n, high=high)
    exact = channel.attack(high=high)
    assert even.success == pytest.approx(exact.success, abs=slack)
    if exact.who_is_high is not None:
        assert even.who_is_high is not None
        assert even.who_is_high.auc == pytest.approx(exact.who_is_high.auc, abs=3 * slack)


def test_bins_of_numbers() -> None:
    """A guess of one half of the interval; the game of bins is that of a merged matrix."""
    channel = local.PM(local.Interval(0, 1, steps=7), 2)
    prior = np.arange(1, 9) / 36
    found = channel.attack(prior, bins=2)
    halves = prior.reshape(2, 4)
    rows = np.stack([h @ channel.matrix[4 * i : 4 * i + 4] for i, h in enumerate(halves)])
    assert found.success == pytest.approx(rows.max(axis=0).sum())
    assert found.per_value.shape == (2,)
    played = local.simulate_attack(channel, np.random.default_rng(3), prior, bins=2)
    assert played.success == pytest.approx(found.success, abs=6 * 0.5 / math.sqrt(100_000))
    graded = local.SDPM(local.Interval(-1, 1), (-0.5, 0.5), epsilon=1)
    both = graded.attack(bins=2)
    assert both.per_class == {}
    assert both.who_is_high is not None
    assert graded.attack().who_is_high is not None
    assert set(graded.attack(bins=1025).per_class) == {"high", "low"}
    wide = local.LatticeLaplace(local.Interval(0, 1), "0.5")
    assert wide.attack(bins=4).success > 0.25
    assert isinstance(wide, NumericChannel)
    with pytest.raises(ArgumentError, match="bins are for channels for numbers"):
        local.GRR(4, 1).attack(bins=2)


def test_too_many_kinds() -> None:
    """Where the closed form would take long it says what to do instead."""
    n = 20_000
    own = np.column_stack([np.linspace(0.4, 0.5, n), np.linspace(0.6, 0.5, n)])
    with pytest.raises(ArgumentError, match="simulate_attack"):
        bit_guesses(own, np.full(n, 0.3), None)

"""Large domains: closed forms in place of matrices, equal to these where both can be had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.local._oracles import FiniteChannel, worst_pair
from local.laws import chi_square_passes

SMALL: list[FiniteChannel] = [
    make(epsilon)
    for epsilon in ("0.01", 1, 4)
    for make in (
        lambda e: local.GRR(2, e),
        lambda e: local.GRR(7, e),
        lambda e: local.URR(7, {0, 3}, e),
        lambda e: local.URR(7, {2}, e),
        lambda e: local.URR(3, {0, 1}, e),
        lambda e: local.SDGRR(7, {0, 3}, e),
        lambda e: local.SDGRR(7, {2}, e),
        lambda e: local.SDGRR(7, set(range(6)), e),
    )
]


def priors(k: int) -> list[Any]:
    """Without, even, with ties, with values that nobody holds, and any."""
    rng = np.random.default_rng(5)
    tied = np.array([4, 4, 1, 1, 1, 2, 2.0])[:k]
    few = np.array([0, 1, 0, 2, 0, 0, 1.0])[:k] + (k < 3)
    found = [None, np.ones(k), tied, few, *rng.dirichlet(np.ones(k), 4)]
    return [None if p is None else p / p.sum() for p in found]


@pytest.mark.parametrize("channel", SMALL)
def test_closed_forms_are_those_of_the_matrix(channel: FiniteChannel) -> None:
    """Success of the best guess, shares of reports, variances and covariances."""
    k = len(channel.domain)
    assert channel.matrix.sum(axis=1) == pytest.approx(np.ones(k))
    for x in range(k):
        exact = [float(channel.exact(x, y)) for y in range(k)]
        assert channel.matrix[x] == pytest.approx(exact, abs=1e-15)
    for prior in priors(k):
        dense = FiniteChannel.guessed(channel, prior)
        assert channel.guessed(prior) == pytest.approx(dense, abs=1e-12)
        shares = np.full(k, 1 / k) if prior is None else prior
        assert channel.forward(shares) == pytest.approx(shares @ channel.matrix, abs=1e-15)
        # The unbiased decoder that these channels have, applied to unit counts, is a matrix.
        decoder = np.array([channel.decode(row, 1) for row in np.eye(k)]).T
        assert decoder @ channel.matrix.T == pytest.approx(np.eye(k), abs=1e-9)
        reports = shares @ channel.matrix
        covariance = (decoder * reports) @ decoder.T
        each = decoder @ channel.matrix.T
        covariance -= (each * shares) @ each.T
        scale = np.abs(covariance).max() + 1e-300
        assert channel.noise_variance(shares) == pytest.approx(
            np.diag(covariance), abs=1e-9 * scale
        )
        if isinstance(channel, local.URR):
            found = channel.noise_covariance(shares)
            assert found == pytest.approx(covariance, abs=1e-9 * scale)


@pytest.mark.parametrize(
    "channel",
    [
        local.GRR(20_000, 2),
        local.URR(20_000, range(5_000), 2),
        local.SDGRR(20_000, range(5_000), 2),
    ],
)
def test_twenty_thousand_values(channel: FiniteChannel) -> None:
    """Estimated, attacked and simulated without a matrix of four hundred million cells."""
    people = np.zeros(20_000, dtype=np.int64)
    people[[0, 7_000, 19_999]] = 20_000, 30_000, 50_000
    counted = local.simulate(channel, people, np.random.default_rng(1))
    found = counted.estimate()
    truth = people / people.sum()
    assert np.all(np.abs(found.shares - truth) < 8 * found.standard_errors + 1e-3)
    told = channel.attack(truth, high=range(5_000))
    assert told.per_value[19_999] > 0.4
    assert channel.attack(high=range(5_000)).who_is_high is not None


@pytest.mark.parametrize("channel", [local.Hadamard(10_000, 1), local.HCMS(10_000, 1)])
def test_channels_of_many_reports_are_simulated(channel: FiniteChannel) -> None:
    """Ten thousand values, millions of cells: people are drawn one by one where they are fewer."""
    people = np.zeros(10_000, dtype=np.int64)
    people[:10] = 20_000
    counted = local.simulate(channel, people, np.random.default_rng(2))
    found = counted.estimate()
    assert np.all(np.abs(found.shares[:10] - 0.1) < 8 * found.standard_errors[:10] + 0.02)


def test_single_and_multinomial_draws_have_one_law() -> None:
    """Few people by their reports, many by multinomials: the same shares (false alarm 1e-7)."""
    channel, rng = local.SDGRR(6, {0, 1}, 1), np.random.default_rng(3)
    for n, runs in ((1, 3_000), (40_000, 1)):
        people = np.array([n, 0, n, 0, 0, 2 * n])
        drawn = sum(channel.simulate(people, rng) for _ in range(runs))
        assert chi_square_passes(drawn, channel.forward(people.astype(float)) * runs)


def test_a_domain_is_read_once() -> None:
    """A list's dictionary is made with it, and a size needs none."""
    names = [f"value {i}" for i in range(1000)]
    domain = local.Domain(names)
    assert domain.encode(["value 7"]) is not None
    held = domain._places
    domain.encode(["value 9"])
    assert domain._places is held
    assert local.GRR(domain, 1).domain._places is held
    counting = local.Domain(1 << 24)
    for given in ([5], np.array([5.0]), ["5", None], [2.5], [1 << 70], [[1]]):
        try:
            counting.encode(given)
        except ArgumentError:
            continue
    assert (counting._values, counting._places) == (None, None)


@pytest.mark.parametrize("channel", [c for c in SMALL if not isinstance(c, local.GRR)])
def test_a_class_matrix_counts_every_report(channel: local.SDGRR | local.URR) -> None:
    """The closed form, of one report for all that are alike, is the worst over all reports."""
    mask = np.array(channel.high)
    codes = {"high": np.flatnonzero(mask), "low": np.flatnonzero(~mask)}
    for (a, b), pair in channel.guarantee.pairs.items():
        assert pair == worst_pair(channel, codes[a], codes[b], channel.epsilon)


def test_promises_of_large_domains_are_read_at_once() -> None:
    """A graded part of 2**18 values is refused by its classes, of which there are four pairs."""

    def graded(domain: local.Domain, epsilon: Any) -> local.SDGRR:
        return local.SDGRR(domain, [domain.values[0]], epsilon)

    asked: list[int] = []
    one = local.SDGRR(2**18, [0], 1)
    exact = type(one).exact

    class Counted(local.SDGRR):
        def exact(self, x: int, y: int) -> Any:
            asked.append(y)
            return exact(self, x, y)

    assert Counted(2**18, [0], 1).guarantee == one.guarantee
    assert len(asked) < 100
    with pytest.raises(ArgumentError, match="no epsilon at all"):
        local.HeavyHitters("ab", 4, 1, channel=graded)

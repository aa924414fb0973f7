"""Sums whose noise the clients make together: what is opened carries it, whoever drops out."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product
from typing import Any

import numpy as np
import pytest

from dither import learn
from dither.errors import ArgumentError, RoundError
from dither.learn.secure._private_sum import _moved
from dither.learn.secure._secure_sum import SumKey
from dither.numeric import SimulatedWords

LAWS = ["skellam", "discrete gaussian"]


def planned(**changes: Any) -> Any:
    """Eight of ten answer one question of three."""
    usual = {"squares": 1, "survivors": 8, "most": 10, "epsilon": 1, "delta": "1e-6"}
    return learn.private_sum(3, **(usual | changes))


def key_of(plan: Any) -> SumKey:
    """A key that no cryptography stands behind: contributions need its numbers alone."""
    return SumKey(b"", plan.size, 4096, 2 * plan.largest + 1, plan.survivors)


@pytest.mark.parametrize("law", LAWS)
def test_the_promise_is_kept_with_the_fewest_shares(law: str) -> None:
    """Of those who are honest among the fewest; more lose less, and fewer are refused."""
    plan = planned(law=law, honest="3/4")
    assert plan.counted(8) == 6
    assert plan.loss().delta(1.0).upper <= 1e-6
    assert plan.loss().neighbours.value == "replace"
    assert plan.loss(10).epsilon(1e-6).upper < plan.loss(8).epsilon(1e-6).upper
    with pytest.raises(ArgumentError, match="received"):
        plan.loss(7)
    # Half of the noise would not do: the plan is no more careful than it must be.
    if law == "skellam":
        assert plan.loss().epsilon(1e-6).upper > 0.95
    assert planned(law=law).share.variance < plan.share.variance


def test_two_vectors_differ_by_no_more_than_is_charged() -> None:
    """All counts of at least 0 with bounded squares: by enumeration."""
    for each, squares in ((1, 1), (1, 2), (1, 3), (3, 9), (2, 5), (2, 12)):
        every = product(range(each + 1), repeat=3)
        vectors = [np.array(v) for v in every if sum(x * x for x in v) <= squares]
        worst = max(int(((a - b) ** 2).sum()) for a in vectors for b in vectors)
        moved = max(int((a != b).sum()) for a in vectors for b in vectors)
        assert worst <= _moved(3, each, squares)
        assert moved <= min(3, _moved(3, each, squares))
        # Where one answers one question, and where everybody may count everywhere, it is reached.
        if squares in (1, 3 * each**2):
            assert worst == _moved(3, each, squares)


def test_whoever_counts_everywhere_needs_no_more_noise_than_one_change() -> None:
    """A counter of 0 or 1 is moved by 1: half of what two vectors of any numbers would be."""
    asked: dict[str, Any] = {"survivors": 8, "most": 10, "epsilon": 1, "delta": "1e-6"}
    plan = learn.private_sum(1, **asked)
    gaussian = learn.private_sum(1, law="discrete gaussian", **asked)
    assert plan.loss().epsilon(1e-6).upper > 0.95
    for one in (plan, gaussian):
        # The analytic Gaussian's σ² for a change of 1 is 17.85.
        assert 17 < float(one.share.variance) * 8 < 24


@pytest.mark.parametrize("law", LAWS)
def test_a_sum_is_the_counts_and_the_shares(law: str) -> None:
    """Unbiased, with the variance of all shares together, below 0 too; 400 sums of ten clients."""
    plan = planned(law=law, epsilon=8)
    key, words = key_of(plan), SimulatedWords(5)
    counts = np.eye(3, dtype=np.int64)[[0, 0, 0, 0, 1, 1, 1, 1, 1, 1]]
    found = np.array(
        [
            plan.read(
                sum(plan.contribution(c, key, words=words) for c in counts) % key.modulus, key
            )
            for _ in range(400)
        ]
    )
    spread = plan.deviation(10)
    assert np.abs(found.mean(axis=0) - counts.sum(axis=0)).max() < 4 * spread / 20
    assert found.std(axis=0) == pytest.approx([spread] * 3, rel=0.2)
    assert found.min() < 0
    assert np.abs(found).max() <= plan.largest


def test_who_has_the_key_reads_noise_and_no_fewer_are_opened() -> None:
    """By one key."""
    pytest.importorskip("tenseal", reason="tenseal is not installed")
    plan = planned(survivors=3, most=4)
    holder = plan.secure_sum()
    server = holder.public.server()
    for client in "ab":
        sent = plan.contribution([1, 0, 0], holder.public)
        assert server.add(holder.public.encrypt(sent), client)
    with pytest.raises(RoundError, match="fewer than 3"):
        server.total()
    assert server.add(holder.public.encrypt(plan.contribution([0, 1, 0], holder.public)), "c")
    found = plan.read(holder.open(server.total()), holder.public)
    assert np.abs(found - [2, 1, 0]).max() < 12 * plan.deviation(3)


def test_servers_open_the_same_in_shares() -> None:
    """Two of three of them, without anybody's key."""
    pytest.importorskip("shamirs", reason="shamirs is not installed")
    plan = planned(survivors=3, most=4)
    shared = plan.shared_sum(servers=3, needed=2)
    servers = [shared.server(i) for i in (1, 2, 3)]
    for client in "abc":
        parts = shared.split(plan.contribution([0, 0, 1], shared))
        for server, part in zip(servers, parts, strict=True):
            assert server.add(part, client)
    found = plan.read(shared.open([servers[0].total(), servers[2].total()]), shared)
    assert np.abs(found - [0, 0, 3]).max() < 12 * plan.deviation(3)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"squares": 0}, "squares"),
        ({"each": 0}, "each"),
        ({"survivors": 0}, "survivors"),
        ({"most": 7}, "most"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"honest": 0}, "honest"),
        ({"honest": "1/10"}, "honest"),
        ({"law": "gaussian"}, "law"),
        ({"epsilon": 1e-12}, "epsilon"),
    ],
)
def test_plans_that_cannot_be_are_refused(change: dict[str, Any], name: str) -> None:
    """By name."""
    with pytest.raises(ArgumentError, match=name):
        planned(**change)


@pytest.mark.parametrize(
    "counts",
    [
        [1, 1, 0],
        [2, 0, 0],
        [-1, 0, 0],
        [0.5, 0, 0],
        [1, 0],
        "abc",
        None,
        [True] * 3,
        [[1], [0, 1], 0],
        np.ma.masked_array([1, 0, 0], mask=[True, False, False]),
    ],
)
def test_counts_outside_the_bounds_are_not_sent(counts: Any) -> None:
    """Nothing is drawn for them, and no value is shown."""
    plan = planned()
    with pytest.raises(ArgumentError, match="counts must"):
        plan.contribution(counts, key_of(plan))


def test_a_key_of_another_sum_is_refused() -> None:
    """One that opens too early, is too small, or counts something else."""
    plan, key = planned(), key_of(planned())
    for other in (
        SumKey(b"", 4, 4096, key.modulus, 8),
        SumKey(b"", 3, 4096, plan.largest, 8),
        "key",
    ):
        with pytest.raises(ArgumentError, match="key"):
            plan.contribution([1, 0, 0], other)
    with pytest.raises(RoundError, match="7 clients"):
        plan.contribution([1, 0, 0], SumKey(b"", 3, 4096, key.modulus, 7))
    for sums in ([0, 0], [0, 0, key.modulus], [-1, 0, 0], [0.5, 0, 0]):
        with pytest.raises(ArgumentError, match="sums"):
            plan.read(sums, key)
    assert plan.read(np.array([0, 1, key.modulus - 1]), key).tolist() == [0, 1, -1]
    assert plan.honest == F(1)

"""Means by key: an interval that holds however few reports decide it, and normal ones that are so.

Coverage is computed over all counts where the support allows, and simulated elsewhere.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dither import local
from dither.local._channel import Channel
from dither.numeric import SimulatedWords

LEVEL = 0.95


def ways(counts: tuple[int, ...]) -> float:
    """How many orders of so many reports of each kind there are."""
    return math.factorial(sum(counts)) / math.prod(math.factorial(c) for c in counts)


@pytest.mark.parametrize("epsilon", [1, 8])
@pytest.mark.parametrize("high", [0.0, 0.25, 1.0])
def test_coverage_of_few_people_is_exact(epsilon: float, high: float) -> None:
    """One key, everybody with the value of that place: all counts of nine reports by GRR."""
    survey, n = local.KeyValue(2, (0, 1), epsilon, padding=1), 9
    channel = survey.channel
    assert isinstance(channel, local.GRR)
    law = (1 - high) * channel.matrix[0] + high * channel.matrix[1]
    # The dummy and the other key's two symbols are one kind of report to this key.
    kinds = np.array([law[0], law[1], law[2:].sum()])
    covered = 0.0
    for counts in itertools.product(range(n + 1), repeat=2):
        rest = n - sum(counts)
        if rest < 0:
            continue
        chance = ways((*counts, rest)) * math.prod(kinds ** np.array([*counts, rest]))
        whole = np.array([*counts, rest, 0, 0])
        found = local.PartCounts(survey, {"pair": local.Aggregate(channel, whole, n)}).estimate()
        lower, upper = found.intervals[0]
        assert 0 <= lower <= upper <= 1
        covered += chance * (lower - 1e-9 <= high <= upper + 1e-9)
    assert covered >= LEVEL


def drawn(survey: local.KeyValue, holders: int, others: int, value: float, seed: int) -> object:
    """The estimate of a survey: holders of key 0 with one value, others without a pair."""
    people = [{0: value}] * holders + [{}] * others
    return survey.aggregate(survey.draw(people, SimulatedWords(seed))).estimate()


@pytest.mark.parametrize("channel", [local.GRR, local.OUE, local.Hadamard])
@pytest.mark.parametrize(("holders", "others"), [(30, 10), (300, 100)])
def test_coverage_by_any_channel(channel: type[Channel], holders: int, others: int) -> None:
    """Normal or not, 95 % holds: over 60 surveys more than 14 misses have a chance below 1e-6."""
    survey, missed = local.KeyValue(3, (0, 10), 6, padding=1, channel=channel), 0
    for seed in range(60):
        found = drawn(survey, holders, others, 10.0, seed)
        lower, upper = found.intervals[0]  # type: ignore[attr-defined]
        missed += not lower - 1e-9 <= 10 <= upper + 1e-9
    assert missed <= 14


def test_normal_intervals_where_many_decide() -> None:
    """A frequent key has the interval of the delta method, and it covers as often as it says.

    150 surveys at 95 %: 18 misses or more, or none, have a chance below 1e-3 each.
    """
    survey, missed = local.KeyValue(2, (0, 1), 4, padding=1), 0
    rng = np.random.default_rng(2)
    for seed in range(150):
        people = [{0: v} for v in rng.choice([0.2, 0.9], 900).tolist()] + [{1: 0.5}] * 300
        found = survey.aggregate(survey.draw(people, SimulatedWords(seed))).estimate()
        assert found.trusted[0]
        lower, upper = found.intervals[0]
        assert upper - lower < 0.2
        missed += not lower <= 0.55 <= upper
    assert 1 <= missed <= 17


def test_a_key_that_hardly_anybody_has_is_not_known() -> None:
    """No errors of nothing: the interval is wide, the summary says why, and the frame has it."""
    survey = local.KeyValue(["film", "book"], (0, 5), 3, padding=1)
    found = survey.aggregate(survey.draw([{"film": 4}] * 300, SimulatedWords(1))).estimate()
    assert not found.trusted[1]
    assert found.intervals[1].tolist() == [0, 5]
    told = found.summary()
    assert "Too few reports decide the mean of 1 key for" in told
    assert "more than 1 pairs" in told
    assert found.frame.columns == [
        "key",
        "share",
        "share_error",
        "mean",
        "mean_error",
        "lower",
        "upper",
    ]
    assert found.frame["lower"].to_list()[1] == 0


def test_a_biased_channel_proves_nothing() -> None:
    """Collisions of fixed hash functions have no limit: the interval is all of the bounds."""
    survey = local.KeyValue(2, (0, 1), 4, padding=1, channel=local.FLH)
    found = survey.aggregate(survey.draw([{0: 1}] * 2000, SimulatedWords(1))).estimate()
    assert not found.trusted.any()
    assert found.intervals.tolist() == [[0, 1], [0, 1]]

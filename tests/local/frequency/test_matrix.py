"""Any matrix, any metric: what is drawn, what it promises, and what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.local import GRR, MatrixChannel, MetricChannel, simulate
from dither.local._coins import ONE, exp_bounds
from dither.local._frequency.matrix import _halved, _tight
from local.frequency.test_metric import check_metric
from local.laws import check_estimator, check_rows, check_sampler, check_wire


def line(a: int, b: int) -> int:
    """How far apart two numbers are."""
    return abs(a - b)


def star(a: int, b: int) -> int:
    """Far from each other, and all near to 0."""
    return 0 if a == b else 1 if 0 in (a, b) else 2


METRICS = [
    MetricChannel(5, line, 1),
    MetricChannel(["a", "b", "c"], lambda a, b: int(a != b), "0.3", unit="value"),
    MetricChannel(7, lambda a, b: min(abs(a - b), 7 - abs(a - b)), "1.5"),
    MetricChannel(6, star, "0.2"),
    MetricChannel(4, [[0, 1, 3, 4], [1, 0, 2, 3], [3, 2, 0, "1.5"], [4, 3, "1.5", 0]], "0.5"),
]


@pytest.mark.parametrize("channel", METRICS)
def test_every_pair_keeps_its_distance(channel: MetricChannel) -> None:
    """All values and reports, exactly; and what is drawn agrees with the law."""
    check_rows(channel)
    check_metric(channel, lambda x, y: channel.epsilon_per_unit * channel.distances[x][y])
    check_wire(channel, channel.privatize(list(channel.domain.values) * 20))
    assert check_sampler(channel)


def test_a_tight_law_is_used_where_there_is_one() -> None:
    """Rows that sum to one by factors of the reports keep the whole of epsilon; a star does not.

    On a line and on a circle the log-ratio of neighbours is epsilon itself, and of a discrete
    metric the law is randomised response.
    """
    for channel in METRICS[:3]:
        law = channel.matrix
        least = min(d for row in channel.distances for d in row if d)
        assert math.log(law[0, 0] / law[1, 0]) == pytest.approx(
            float(channel.epsilon_per_unit * least), rel=2.0**-14
        )
    np.testing.assert_allclose(METRICS[1].matrix, GRR(3, "0.3").matrix, rtol=1e-4)
    assert _tight(METRICS[3].distances, Fraction(1, 5)) is None
    kept = METRICS[3].matrix
    halved = np.array(
        [[float(p) for p in row] for row in _halved(METRICS[3].distances, Fraction(1, 5))]
    )
    np.testing.assert_allclose(kept, halved / halved.sum(axis=1, keepdims=True), rtol=1e-4)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=9, unique=True
    ),
    st.fractions(Fraction(1, 50), Fraction(1, 2), max_denominator=50),
)
def test_places_anywhere_keep_their_distances(
    places: list[tuple[int, int]], epsilon: Fraction
) -> None:
    """Points of a plane by the sum of their distances along both axes."""

    def along(a: int, b: int) -> int:
        return sum(abs(x - y) for x, y in zip(places[a], places[b], strict=True))

    channel = MetricChannel(len(places), along, epsilon)
    check_rows(channel)
    check_metric(channel, lambda x, y: epsilon * along(x, y))


def test_distances_that_are_no_metric_are_refused_and_it_is_said_where() -> None:
    """Which pair, or which three values, show it."""
    far = [[0, 1, 5], [1, 0, 1], [5, 1, 0]]
    with pytest.raises(ArgumentError, match=r"from 'a' to 'c' it is 5, and by way of 'b' 2"):
        MetricChannel(["a", "b", "c"], far, 1)
    with pytest.raises(ArgumentError, match=r"from 0 to 1 it is 1, and back 2"):
        MetricChannel(2, [[0, 1], [2, 0]], 1)
    with pytest.raises(ArgumentError, match=r"from 0 to 1 it is 0"):
        MetricChannel(2, [[0, 0], [0, 0]], 1)
    with pytest.raises(ArgumentError, match=r"from 1 to 1 it is 3"):
        MetricChannel(2, [[0, 1], [1, 3]], 1)
    with pytest.raises(ArgumentError, match=r"from 0 to 1 it is -1"):
        MetricChannel(2, [[0, -1], [-1, 0]], 1)
    with pytest.raises(ArgumentError, match=r"2 rows of 2 numbers"):
        MetricChannel(2, [[0, 1]], 1)
    with pytest.raises(ArgumentError, match="function of two values"):
        MetricChannel(2, 7, 1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"from 2\*\*-10 to 30"):
        MetricChannel(40, line, 1)
    with pytest.raises(ArgumentError, match="at most 128 values"):
        MetricChannel(129, line, "0.01")
    # A float's rounding is no way round.
    MetricChannel(4, lambda a, b: abs(a * 0.1 - b * 0.1), 1)


def test_two_directions_that_differ_by_a_rounding_are_one() -> None:
    """As formulas in floats give them: the shorter one counts, and its promise is kept."""
    longer = math.nextafter(0.1, 1)
    channel = MetricChannel(3, [[0, 0.1, 0.2], [longer, 0, 0.1], [0.2, longer, 0]], 1)
    assert channel.distances[0][1] == channel.distances[1][0] == Fraction("0.1")
    check_metric(channel, lambda x, y: channel.distances[x][y])


MATRICES = [
    MatrixChannel([["0.7", "0.2", "0.1"], ["0.1", "0.2", "0.7"]]),
    MatrixChannel([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]], ["a", "b", "c"]),
    MatrixChannel([[1, 0], ["1/2", "1/2"]], epsilon=1),
    MatrixChannel([[1, 0, 0], [0, 1, 0], [0, 0, 1]], epsilon="0.5"),
    MatrixChannel([[1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]]),
]


@pytest.mark.parametrize("channel", MATRICES)
def test_a_matrix_is_drawn_as_it_stands(channel: MatrixChannel) -> None:
    """Ones and zeros, thirds and floats: the law is the matrix, in whole numbers of 2**-64."""
    check_rows(channel)
    check_wire(channel, channel.privatize(list(channel.domain.values) * 20))
    assert check_sampler(channel)
    assert all(sum(row) == ONE for row in channel.weights)


@pytest.mark.parametrize("channel", MATRICES)
def test_a_matrix_promises_what_its_law_keeps(channel: MatrixChannel) -> None:
    """The hockey-stick divergence of every two values, at the stated epsilon, is at most delta.

    Where delta is above 0 some pair comes to it, and where it is 0 some report to epsilon.
    """
    k, m = len(channel.domain), channel.outputs
    low, high = exp_bounds(channel.epsilon)
    worst = largest = Fraction(0)
    for x, other in itertools.permutations(range(k), 2):
        rows = [(channel.exact(x, y), channel.exact(other, y)) for y in range(m)]
        worst = max(worst, sum((max(Fraction(0), p - low * q) for p, q in rows), Fraction(0)))
        largest = max(largest, max((p / q for p, q in rows if q), default=Fraction(0)))
    assert worst <= Fraction(channel.guarantee.delta) <= worst * (1 + Fraction(1, 2**50))
    if not worst:
        assert high * (1 - Fraction(1, 2**40)) <= largest * (1 + Fraction(1, 2**40))


def test_shares_attacks_and_losses_follow_from_the_matrix() -> None:
    """As for any channel: unbiased with the stated variance, closed attacks, composable losses."""
    # Two shares that sum to about 1 are one: more runs, for the same margin.
    check_estimator(MATRICES[0], [0.3, 0.7], runs=30_000)
    check_estimator(MATRICES[1], [0.2, 0.5, 0.3])
    assert MATRICES[0].attack().success == pytest.approx(0.8)
    assert float(MATRICES[1].loss().epsilon(0)) == pytest.approx(math.log(2))
    with pytest.raises(ArgumentError, match="accept_delta"):
        MATRICES[2].loss()
    assert MATRICES[3].attack().success == 1
    drawn = simulate(METRICS[0], [100, 200, 400, 200, 100], np.random.default_rng(2))
    assert drawn.estimate(method="likelihood").shares.sum() == pytest.approx(1)


def test_what_cannot_be_estimated_says_so() -> None:
    """Rows that mix to another row's law: privacy and attacks have answers, shares have none."""
    channel = MatrixChannel([[1, 0], [0, 1], ["0.5", "0.5"]], epsilon=1)
    assert channel.attack().success > 0
    reports = channel.aggregate(channel.privatize([0, 1, 2] * 10))
    with pytest.raises(ArgumentError, match="depend on one another"):
        reports.estimate()


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], r"matrix\[0\] must sum to 1 within 1e-9: it is off by -0.1"),
        ([[0.5, 0.5 + 2e-9], [0.5, 0.5]], r"off by 2e-09; divide each row"),
        ([[1, "1e-18"], ["1e-18", 1]], "only an epsilon above 40 holds"),
        ([[0.5, 0.5], [1.5, -0.5]], r"matrix\[1\] must not have numbers below 0"),
        ([[0.5, 0.5], [1]], "all of one length"),
        ([[0.5, 0.5]], "at least two rows"),
        ([], "at least two rows"),
        ([[], []], "at least two rows"),
        (7, "list of rows"),
        ([[float("nan"), 1], [1, 0]], r"matrix\[0\]"),
        ([["x", 1], [1, 0]], r"matrix\[0\]"),
        ([[0.5, 0.5], [0.5, 0.5]], "one law for all values"),
        ([[1, 0], [0, 1]], "no pure epsilon holds"),
        (np.full((2048, 1024), 1 / 1024), "at most"),
    ],
)
def test_what_is_no_matrix_of_chances_is_refused(matrix: Any, words: str) -> None:
    """By the row, and with what to do."""
    with pytest.raises(ArgumentError, match=words):
        MatrixChannel(matrix)


def test_a_matrix_has_as_many_rows_as_values() -> None:
    """And an epsilon below its own states a delta that can be computed."""
    with pytest.raises(ArgumentError, match="one row for each of the 3 values"):
        MatrixChannel([[1, 0], [0, 1]], 3, 1)
    wide = np.full((300, 300), 0.5 / 300) + np.eye(300) / 2
    assert MatrixChannel(wide).guarantee.delta == 0
    with pytest.raises(ArgumentError, match="too large for a delta"):
        MatrixChannel(wide, epsilon=1)


def test_weights_are_the_same_everywhere() -> None:
    """The integers that devices share: pinned, as another client would compute them."""
    assert MATRICES[4].weights[0] == (
        6148914691236517206,
        6148914691236517205,
        6148914691236517205,
    )
    assert METRICS[0].weights[0][4] == 247012367153159489

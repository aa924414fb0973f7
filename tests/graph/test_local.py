"""Local edge privacy: laws, expectations and variances by enumeration of all bits."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from dither.graph import Graph, LocalTies, local_count
from dither.graph._local import _ONE, _common_squares, _triangle_variance, _triples

KITE = Graph([(0, 1), (0, 2), (1, 2), (1, 3)], nodes=4)


def _all_bits(n: int, survey: LocalTies, ties: np.ndarray):
    """Every outcome of the reports, with its probability."""
    p = float(survey.flip)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    for bits in product((0, 1), repeat=len(pairs)):
        chance = math.prod(
            1 - p if b == ties[i, j] else p for b, (i, j) in zip(bits, pairs, strict=True)
        )
        rows = [
            np.array([b for b, (i, _) in zip(bits, pairs, strict=True) if i == r]) for r in range(n)
        ]
        yield chance, rows


def _matrix(graph: Graph) -> np.ndarray:
    ties = np.zeros((graph.size, graph.size))
    for i, j in graph.edges.tolist():
        ties[i, j] = ties[j, i] = 1
    return ties


@pytest.mark.parametrize("edges", [[(0, 1), (0, 2), (1, 2), (1, 3)], [], [(0, 3), (1, 3), (2, 3)]])
def test_estimates_are_unbiased_and_their_variances_exact(edges) -> None:
    """Edges and triangles from bits, over all 64 outcomes; estimated variances, too."""
    ties = Graph(edges, nodes=4)
    survey = LocalTies(4, 1)
    seen = [
        (chance, survey.edges(rows), survey.triangles(rows), survey._unbiased(rows))
        for chance, rows in _all_bits(4, survey, _matrix(ties))
    ]
    weights = np.array([chance for chance, *_ in seen])
    assert weights.sum() == pytest.approx(1)
    for place, truth, variance in (
        (1, len(ties.edges), 6 * survey.spread),
        (2, _triples(_matrix(ties)), survey.triangle_variance(ties)),
    ):
        values = np.array([row[place].value for row in seen])
        assert weights @ values == pytest.approx(truth, abs=1e-9)
        assert weights @ (values - truth) ** 2 == pytest.approx(variance)
    estimates = [_triangle_variance(b, b * b, survey.spread) for *_, b in seen]
    assert weights @ estimates == pytest.approx(survey.triangle_variance(ties))
    assert seen[0][1].deviation == pytest.approx(math.sqrt(6 * survey.spread))
    common = [_common_squares(b) for *_, b in seen]
    lower = np.tril(_matrix(ties), -1)
    assert weights @ common == pytest.approx(np.tril((lower.T @ lower) ** 2, -1).sum())


def test_two_rounds_are_unbiased_and_their_variance_exact() -> None:
    """Over all outcomes of the first round, with the noise of the second by its variance."""
    survey = LocalTies(4, 1, degree=3)
    full = Graph([(i, j) for i in range(4) for j in range(i)], nodes=4)
    for ties in (KITE, full):
        lists = [row.tolist() for row in ties.adjacency]
        first = second = 0.0
        for chance, rows in _all_bits(4, survey, _matrix(ties)):
            published = survey.matrix(rows)
            exact = [
                survey._pairs_seen(survey._kept(i, own), published) for i, own in enumerate(lists)
            ]
            value = survey.two_round_triangles(exact, rows).value
            first += chance * value
            second += chance * value**2
        assert first == pytest.approx(_triples(_matrix(ties)), abs=1e-9)
        unit = _ONE * (1 - 2 * float(survey.flip))
        drawn = 4 * survey._laplace(survey._pair_moved).variance / unit**2
        assert second - first**2 + drawn == pytest.approx(survey.two_round_variance(ties))


def test_an_answer_moves_no_farther_than_its_noise_allows() -> None:
    """One tie more of a list, cut or not, for all lists and all published bits of five persons."""
    for bound in (1, 2, 3):
        survey, moved = LocalTies(5, 1, degree=bound), 0
        for published in product((0, 1), repeat=6):
            rows = [np.array(published[i * (i - 1) // 2 : i * (i + 1) // 2]) for i in range(4)]
            matrix = survey.matrix([*rows, np.zeros(4)])
            for mask in range(16):
                own = [j for j in range(4) if mask >> j & 1]
                exact = survey._pairs_seen(survey._kept(4, own), matrix)
                for more in range(4):
                    if more not in own:
                        kept = survey._kept(4, [*own, more])
                        moved = max(moved, abs(survey._pairs_seen(kept, matrix) - exact))
        assert moved <= survey._pair_moved
        assert moved > (bound - 1) * _ONE / 2 or bound == 1
        stars = [math.comb(min(bound, d), 2) for d in range(5)]
        assert max(np.diff(stars)) == bound - 1


def test_bits_are_flipped_as_the_claim_says() -> None:
    """The probability, exactly, is at least that of the claimed epsilon, and nearly it."""
    for epsilon in (0.1, 1, 3, 8):
        p = LocalTies(2, epsilon).flip
        realised = math.log((1 - p) / p)
        assert realised <= epsilon
        assert realised > epsilon - 2 / (p * (1 - p) * _ONE)
    assert LocalTies(5, 1).report(0, [1, 2]).size == 0


def test_a_tie_costs_what_tells_of_it() -> None:
    """Once for bits and degrees, in two answers for stars, in two rounds for triangles."""
    survey = LocalTies(10, 2, degree=4)
    assert survey.cost("edges").charge.epsilon == 2
    assert survey.cost("stars", 3).charge.epsilon == 2
    assert survey.cost("triangles").charge.epsilon == 2
    assert survey.cost("two-round triangles").charge.epsilon == 4
    whole = [
        local_count(KITE, what, epsilon=2, degree=3) for what in ("stars", "two-round triangles")
    ]
    assert [one.loss.charge.epsilon for one in whole] == [2, 2]


def test_what_is_listed_beside_persons_is_nobody() -> None:
    """Friends that are no persons, the person themself, and repetitions count for nothing."""
    survey = LocalTies(5, 50, degree=4)
    odd = [0, 0, np.int64(1), 3, 4, 5, -1, True, None, "2", 1.0, math.nan, [2], object()]
    assert survey.report(3, odd).tolist() == [True, True, False]
    assert survey.degree_answer(3, odd) == 2
    assert survey.star_answer(3, odd, 2) == 3


@pytest.mark.parametrize(
    ("what", "truth"),
    [("edges", 28), ("triangles", 56), ("two-round triangles", 56), ("stars", 168)],
)
def test_simulated_surveys_are_near_the_truth(what, truth) -> None:
    """All eight know each other: within six deviations; false alarm below 1e-6, about."""
    full = Graph([(i, j) for i in range(8) for j in range(i)], nodes=8)
    found = local_count(full, what, epsilon=6, degree=7)
    assert abs(found.value - truth) <= 6 * found.deviation + 1
    low, high = found.interval(0.9)
    assert 0 <= low <= high
    assert "locally" in str(found)

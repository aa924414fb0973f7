"""The efficient identity test: its law computed in full on small tables, against what it claims."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither import inference
from dither.inference.engine._inputs import target
from dither.inference.hypothesis._efficient import EfficientRelease
from dither.lab.audit import Outcome, audit
from dither.mechanisms import DiscreteLaplace

TYPES = [np.array(row) for row in ((1, 1), (-1, -1), (1, -1), (-1, 1))]
"""Rows of two signs; the first two lean alike, and so do the last two."""

Table = tuple[int, ...]


def _design(
    n: int, epsilon: Any, delta: Any, *, leaning: float, scale: int | None = None
) -> EfficientRelease:
    """A design whose threshold lets few rows lean, so that on small tables some are far."""
    made = EfficientRelease(n, 2, target(epsilon, delta, "replace"))
    object.__setattr__(made, "leaning", leaning)
    each = math.ceil(made.furthest / float(made.part.epsilon)) if scale is None else scale
    object.__setattr__(made, "scale", each)
    return made


def _coin_sums(rows: int) -> dict[tuple[int, int], float]:
    one = {2 * k - rows: math.comb(rows, k) / 2**rows for k in range(rows + 1)}
    return {(a, b): p * q for (a, p), (b, q) in itertools.product(one.items(), one.items())}


def _law(design: EfficientRelease, table: Table) -> np.ndarray[Any, Any]:
    """The law of what it releases of a table: of stopping first, and of each T with its noise."""
    part, n = design.part, design.rows
    total = sum(c * t for c, t in zip(table, TYPES, strict=True))
    rows = np.array([t for c, t in zip(table, TYPES, strict=True) for _ in range(c)])
    first = DiscreteLaplace.for_loss(part.epsilon, l1=2)
    passed = 1 - first.survival(math.floor(design.steepest - np.abs(total).max()) + 1)
    counted = DiscreteLaplace.for_loss(part.epsilon, l1=1)
    reach = math.ceil(9 * math.sqrt(design.blur.sigma2))
    grid = np.arange(-reach, reach + 1)
    one = np.exp(-(grid**2) / (2 * float(design.blur.sigma2)))
    one /= one.sum()
    weights: Counter[tuple[bool, bool]] = Counter()
    first_axis, second_axis = np.meshgrid(grid + total[0], grid + total[1], indexing="ij")
    far = [np.abs(first_axis + second_axis) > design.leaning]
    far.append(np.abs(first_axis - second_axis) > design.leaning)
    for case in itertools.product((False, True), repeat=2):
        held = (far[0] == case[0]) & (far[1] == case[1])
        weights[case] = float((np.outer(one, one) * held).sum())
    exact: Counter[int] = Counter()
    stopped = 1.0 - passed
    for case, weight in weights.items():
        gone = np.array([case[0], case[0], case[1], case[1]])
        removed = sum(c for c, g in zip(table, gone, strict=True) if g)
        kept = sum(c * t for c, t, g in zip(table, TYPES, gone, strict=True) if not g)
        kept = np.zeros(2, dtype=int) + kept
        over = counted.survival(math.floor(design.many - removed) + 1)
        stopped += passed * weight * over
        for coins, chance in _coin_sums(removed).items():
            square = int(((kept + np.array(coins)) ** 2).sum()) - 2 * n
            exact[square] += passed * weight * (1 - over) * chance
    width = 25 * design.scale
    noise = np.exp(-np.abs(np.arange(-width, width + 1)) / design.scale)
    noise /= noise.sum()
    found = np.zeros(2 * width + 1 + 8 * n * n)
    for square, chance in exact.items():
        found[square + 4 * n : square + 4 * n + noise.size] += chance * noise
    assert len(rows) == n
    return np.concatenate([[stopped], found])


def _neighbours(n: int) -> list[tuple[Table, Table]]:
    tables = [t for t in itertools.product(range(n + 1), repeat=4) if sum(t) == n]
    return [
        (a, b)
        for a in tables
        for b in tables
        if sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 2
    ]


def _lost(design: EfficientRelease, pairs: list[tuple[Table, Table]], epsilon: float) -> float:
    """The largest δ at an epsilon over pairs of tables."""
    laws = {table: _law(design, table) for table in {t for pair in pairs for t in pair}}
    return max(float(np.maximum(laws[a] - math.exp(epsilon) * laws[b], 0).sum()) for a, b in pairs)


@pytest.mark.parametrize("leaning", [2.0, 60.0])
def test_the_loss_is_within_the_proof_on_every_small_table(leaning: float) -> None:
    """Three rows, every table and every neighbour: (4 epsilon, 6 delta) of the parts, computed."""
    design = _design(3, "0.4", Fraction(14, 50), leaning=leaning)
    part = design.part
    assert (part.epsilon, part.delta) == (Fraction(1, 10), Fraction(1, 50))
    assert _lost(design, _neighbours(3), 0.4) <= 6 * float(part.delta)


def test_noise_for_one_row_alone_is_beyond_the_claim() -> None:
    """The classic mistake, noise of T as if the other rows did not multiply what one row moves."""
    few, many = (1, 11, 0, 0), (0, 12, 0, 0)
    for scale, broken in ((None, False), (8, True)):
        design = _design(12, 4, Fraction(14, 100), leaning=60.0, scale=scale)
        lost = _lost(design, [(few, many), (many, few)], 4.0)
        assert (lost > float(design.asked.delta)) is broken


def test_the_auditor_catches_noise_for_one_row_alone() -> None:
    """The same mistake in the code that runs."""
    design = _design(12, 4, Fraction(14, 100), leaning=1e9, scale=2)
    rows = np.ones((12, 2), dtype=np.int8)
    turned = rows.copy()
    turned[0] = -1
    found = audit(design.release, rows, turned, 4, delta=design.asked.delta, samples=3000)
    assert found.verdict is Outcome.VIOLATED


def test_no_row_moves_the_square_further_than_the_proof_says() -> None:
    """Every table of three rows, every neighbour, noisy sum and coins: the proof's inequality."""
    design = _design(3, 4, Fraction(14, 100), leaning=5.0)
    kinds = [*TYPES, np.array([0, 1]), np.array([0, 0])]
    coins = [np.array(c, dtype=np.int8) for c in ((1, 1), (-1, 1))]
    worst = 0.0
    for others in itertools.combinations_with_replacement(kinds, 2):
        for x, y in itertools.permutations(kinds, 2):
            first = np.array([x, *others], dtype=np.int8)
            second = np.array([y, *others], dtype=np.int8)
            for blurred in itertools.product((-7, 0, 4), repeat=2):
                noisy = np.array(blurred)
                far = design.far(first, noisy), design.far(second, noisy)
                noise = noisy - first.sum(axis=0, dtype=int)
                lean = max(abs(int(v @ noise)) for v in (x, y))
                m = int(far[0].sum())
                kept = design.leaning + lean + 2 + 4 * m
                for drawn in itertools.product(coins, repeat=3):
                    u = np.array(drawn)
                    a, b = design.statistic(first, far[0], u), design.statistic(second, far[1], u)
                    rest = np.where(far[0][1:, None], u[1:], first[1:]).sum(axis=0, dtype=int)
                    on_coins = abs(int(rest @ u[0]))
                    allowed = 2 * kept + 2 * max(kept, on_coins) + 2
                    worst = max(worst, abs(a - b) / allowed)
    assert 0.2 < worst <= 1


def test_what_is_released_has_the_law_that_was_computed() -> None:
    """Stops and values of 4,000 releases (chance of failing: 1 in 10,000)."""
    design = _design(6, 8, Fraction(14, 50), leaning=8.0)
    table = (4, 1, 1, 0)
    rows = np.array([t for c, t in zip(table, TYPES, strict=True) for _ in range(c)], dtype=np.int8)
    law = _law(design, table)
    drawn = np.array([design.release(rows) for _ in range(4000)])
    stopped = np.mean(np.isinf(drawn))
    assert abs(stopped - law[0]) < 4 * math.sqrt(law[0] * (1 - law[0]) / 4000) + 1e-9
    values = np.arange(law.size - 1) - 25 * design.scale - 24
    inside = law[1:] / law[1:].sum()
    kept = drawn[np.isfinite(drawn)]
    for at in np.quantile(kept, [0.25, 0.5, 0.75]):
        share = float(inside[values <= at].sum())
        assert abs(np.mean(kept <= at) - share) < 4 * 0.5 / math.sqrt(kept.size)


def test_the_constants_of_the_source_suffice() -> None:
    """At the settings that are compared, the printed noise is the proof's or a little more."""
    for n, d in ((3901, 20), (7024, 100), (5983, 500)):
        design = EfficientRelease(n, d, target(1, 1e-6, "replace"))
        needed = design.furthest / float(design.part.epsilon)
        assert 0.9 < needed / design.scale <= 1


@pytest.mark.parametrize("method", ["lipschitz", "efficient"])
def test_true_nulls_are_rejected_at_their_level(method: str) -> None:
    """Of 400 true nulls about 5 % (chance of failing: 1 in 1,000)."""
    rng = np.random.default_rng(11)
    delta = 1e-6 if method == "efficient" else 0
    found = [
        inference.identity_test(
            rng.choice([-1, 1], (40, 3)), epsilon=1, delta=delta, method=method, draws=300
        ).pvalue
        for _ in range(400)
    ]
    assert 7 <= np.sum(np.array(found) <= 0.05) <= 37

"""The noise of a run: the least of five digits that is proved, soon found, or soon refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dither import privacy
from dither.errors import ArgumentError
from dither.learn.deep._charge import Cost, cost_of
from dither.privacy import Loss, Neighbours

DELTA = Fraction(1, 10**5)


def asked(
    epsilon: float, steps: int, rate: str, relation: str = "add-remove", delta: Fraction = DELTA
) -> tuple[Cost, list[Fraction]]:
    """The cost that is found, and all noise that was tried for it."""
    share, neighbours = Fraction(rate), Neighbours(relation)
    tried: list[Fraction] = []

    def each(z: Fraction) -> Loss:
        tried.append(z)
        return privacy.gaussian(z).poisson(share, neighbours=neighbours)

    found = cost_of(
        each, Loss((), neighbours), epsilon=epsilon, delta=delta, noise_multiplier=None,
        steps=steps, rate=share,
    )  # fmt: skip
    return found, tried


@pytest.mark.parametrize(
    ("epsilon", "steps", "rate", "relation"),
    [
        (3, 100, "2/5", "add-remove"),
        (3, 80, "1/2", "replace"),
        (1, 1000, "1/100", "add-remove"),
        (0.01, 40, "1", "replace"),
        (40, 10, "1/4", "add-remove"),
        (2, 1, "1/1000", "add-remove"),
    ],
)
def test_it_is_the_least(epsilon: float, steps: int, rate: str, relation: str) -> None:
    """Proved to keep the promise; one in the fifth digit less is proved to break it."""
    found, tried = asked(epsilon, steps, rate, relation)
    z = found.noise_multiplier
    assert found.of(steps).delta(epsilon).upper <= DELTA
    less = z - Fraction(10) ** (int(f"{float(z):.4e}".partition("e")[2]) - 4)
    share, neighbours = Fraction(rate), Neighbours(relation)
    before = steps * privacy.gaussian(less).poisson(share, neighbours=neighbours)
    assert before.delta(epsilon).upper > DELTA
    assert len(tried) <= 16


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", [1e-8, 1e-15, 1e-200])
def test_what_no_noise_reaches_is_refused_without_a_search(epsilon: float, relation: str) -> None:
    """The message names an epsilon that could be reached, and the number of steps."""
    with pytest.raises(ArgumentError, match=r"reached in 100 steps.*more than epsilon="):
        asked(epsilon, 100, "1/10", relation, Fraction(1, 10**12))


def test_what_any_noise_reaches_takes_the_least_there_is() -> None:
    """A promise that is none."""
    found, _ = asked(1e9, 1, "1/10")
    assert found.noise_multiplier == Fraction(1, 1000)

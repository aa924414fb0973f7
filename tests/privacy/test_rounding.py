"""What is claimed is rounded up, and its other end down: against the same at many digits."""

from fractions import Fraction

import mpmath
import pytest

from dither.accounting import by_every_theorem
from dither.privacy import approximate, pure


@pytest.mark.parametrize(
    ("epsilon", "delta", "size"),
    [(0.3, 1e-7, 2), (0.3, 1e-7, 40), (0.7, 1e-30, 60), (0.1, 1e-9, 150), (1.3, 1e-60, 80)],
)
def test_the_chance_that_a_group_is_given_away(epsilon, delta, size):
    """The chain's own mass at infinity, of the parameters as they print, is between the ends."""
    exact = mpmath.MPContext()
    exact.dps = 120
    e, d = (Fraction(repr(x)) for x in (epsilon, delta))
    grow = exact.exp(exact.mpf(e.numerator) / e.denominator)
    fails, level = exact.mpf(d.numerator) / d.denominator, exact.mpf(0)
    for _ in range(size):
        level = min(fails + grow * level, 1 - (1 - fails - level) / grow)
    found = approximate(epsilon, delta).group(size).delta(1000.0)
    assert exact.mpf(found.lower) <= level <= exact.mpf(found.upper)
    assert found.upper <= found.lower * (1 + 1e-15)


def test_basic_composition_adds_numbers_as_they_print():
    """Doubles below their decimals may not add up to less."""
    for losses in (((7, 0.3), (3, 0.1)), ((10, 0.7),), ((1, 0.1), (1, 0.7))):
        total = sum((k * Fraction(repr(e)) for k, e in losses), Fraction(0))
        loss = sum(k * pure(e) for k, e in losses)
        told = by_every_theorem(loss, 1e-6).rows[-1].value
        assert total <= Fraction(repr(told)) <= total * (1 + Fraction(1, 10**15))

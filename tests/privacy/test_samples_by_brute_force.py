"""Samples of small tables, listed in full: no pair of neighbours exceeds the claimed loss."""

import itertools
import math

import pytest

from dither import privacy

SCALE = 1.0
SUPPORT = range(-60, 70)


def noisy(total):
    """Discrete Laplace noise around a count, as masses on the support."""
    r = math.exp(-1 / SCALE)
    return [(1 - r) / (1 + r) * r ** abs(x - total) for x in SUPPORT]


def mixed(laws):
    """The law of a mechanism that draws one of weighted laws."""
    return [math.fsum(w * law[i] for w, law in laws) for i in range(len(SUPPORT))]


def on_fixed_sample(table, m):
    """The count of ones in m rows drawn without replacement, with noise."""
    draws = list(itertools.combinations(table, m))
    return mixed([(1 / len(draws), noisy(sum(draw))) for draw in draws])


def on_poisson_sample(table, rate):
    """The count of ones among rows kept independently, with noise."""
    laws = []
    for kept in itertools.product((0, 1), repeat=len(table)):
        chance = math.prod(rate if k else 1 - rate for k in kept)
        laws.append((chance, noisy(sum(x for x, k in zip(table, kept, strict=True) if k))))
    return mixed(laws)


def divergence(p, q, epsilon):
    """The hockey-stick divergence."""
    e = math.exp(epsilon)
    return math.fsum(max(0.0, a - e * b) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 1), (4, 2), (5, 3), (4, 4)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.7])
def test_fixed_size_samples(n, m, epsilon):
    """Every table and every replaced row; the claim is reached by some pair, to within 1e-9."""
    loss = privacy.discrete_laplace(SCALE, neighbours="replace").without_replacement(m, n)
    claimed = loss.delta(epsilon)
    worst = 0.0
    for table in itertools.product((0, 1), repeat=n):
        other = (1 - table[0], *table[1:])
        worst = max(
            worst, divergence(on_fixed_sample(table, m), on_fixed_sample(other, m), epsilon)
        )
    assert worst <= claimed.upper + 1e-15
    assert worst >= claimed.lower - 1e-9


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_poisson_samples(rate, epsilon):
    """Every table of three rows and every row left out, both directions."""
    claimed = privacy.discrete_laplace(SCALE).poisson(rate).delta(epsilon)
    worst = 0.0
    for table in itertools.product((0, 1), repeat=3):
        p, q = on_poisson_sample(table, rate), on_poisson_sample(table[1:], rate)
        worst = max(worst, divergence(p, q, epsilon), divergence(q, p, epsilon))
    assert worst <= claimed.upper + 1e-15
    assert worst >= claimed.lower - 1e-9


@pytest.mark.parametrize("truncate", [1, 2])
def test_truncated_poisson_samples(truncate):
    """A sample above its size is cut to a uniform subset; the charge for it covers the truth."""
    rate, n, epsilon = 0.2, 4, 0.2

    def law(table):
        laws = []
        for kept in itertools.product((0, 1), repeat=len(table)):
            chance = math.prod(rate if k else 1 - rate for k in kept)
            rows = [x for x, k in zip(table, kept, strict=True) if k]
            draws = list(itertools.combinations(rows, min(truncate, len(rows))))
            laws += [(chance / len(draws), noisy(sum(draw))) for draw in draws]
        return mixed(laws)

    loss = privacy.discrete_laplace(SCALE).poisson(rate, truncate=truncate, population=n)
    claimed = loss.delta(epsilon)
    for table in itertools.product((0, 1), repeat=n):
        p, q = law(table), law(table[1:])
        assert max(divergence(p, q, epsilon), divergence(q, p, epsilon)) <= claimed.upper

"""Many losses of few values, taken together: as one by one, and as every sum listed."""

import itertools
import math

import numpy as np
import pytest

from dither import privacy
from dither.privacy.engines import contour
from dither.privacy.engines.contour import Contour
from dither.privacy.laws.atoms import shifted_noise
from dither.privacy.laws.many_atoms import ManyAtomsTerm, joined
from dither.privacy.laws.response import ResponseTerm


def kinds(n, least=10.0, most=60.0):
    """Discrete Laplaces of shifts 1 to 3 and responses, of scales that are all different."""
    found = []
    for i, scale in enumerate(np.geomspace(least, most, n).tolist()):
        if i % 5 == 4:
            found.append(ResponseTerm(1 / scale, 1 + i % 2, answers=2 + i % 3))
        else:
            found.append(shifted_noise(scale, 1 + (i % 7) // 3, 1 + i % 3))
    return found


def one_by_one(terms, c, u):
    """The same sums, of each kind by itself."""
    found = [term.along(c, u) for term in terms]
    return tuple(sum(column) for column in zip(*found, strict=True))


@pytest.mark.parametrize("n", [10, 240])
def test_sums_are_those_one_by_one(n):
    """On the real line and on vertical ones; or a bound of the modulus, where that is tiny."""
    terms = kinds(n)
    together = ManyAtomsTerm(terms)
    for c in (0.01, 1.0, 12.0):
        low, high = together.moment_ends(c)
        ends = [term.moment_ends(c) for term in terms]
        assert low <= sum(b for _, b in ends)
        assert high >= sum(a for a, _ in ends)
        assert high - low < 1e-9 * max(1.0, abs(high))
    u = np.arange(3000) * 0.37
    base, value, slack = together.along(3.0, u)
    other_base, other, off = one_by_one(terms, 3.0, u)
    known = slack < 1
    gap = (base + value - other_base - other)[known]
    turns = np.round(gap.imag / (2 * math.pi)) * 2 * math.pi
    assert (np.abs(gap.real) <= (slack + off)[known]).all()
    assert (np.abs(gap.imag - turns) <= (slack + off)[known]).all()
    assert slack[known].max() < 1e-6
    # Of the rest no more is said than that it is small, and it is smaller.
    assert known.all() == (n == 10)
    assert (other.real <= value.real + 1e-6)[~known].all()
    assert known[0]
    assert (slack[~known] > math.log(3)).all()


def test_both_ends_by_all_sums():
    """Twelve kinds, every total listed: in the contour's bounds at any epsilon."""
    terms = [shifted_noise(scale, 1, 1) for scale in np.geomspace(3.0, 11.0, 12).tolist()]
    ways = np.array(list(itertools.product((0, 1), repeat=12)))
    rows = np.arange(12)
    losses = np.array([t.losses for t in terms])[rows, ways].sum(axis=1)
    masses = np.array([t.probabilities for t in terms])[rows, ways].prod(axis=1)
    line = Contour(terms, log_delta=math.log(1e-2), epsilon=None, smoothed=True)
    assert line.certified
    assert isinstance(joined(terms)[0], ManyAtomsTerm)
    for epsilon in (0.2, 0.5, 0.8, 1.0, 1.3):
        low, high = line.bounds(epsilon)
        over = losses > epsilon
        truth = math.fsum((masses * -np.expm1(np.minimum(epsilon - losses, 0)))[over])
        assert low <= math.log(truth) <= high
        assert high - low < 1e-2


def test_the_same_interval_as_kind_by_kind(monkeypatch):
    """Together, and each by itself: they meet."""
    terms = [shifted_noise(10 + 2 * i, 1, 1) for i in range(24)]
    target = {"log_delta": None, "epsilon": 0.7, "smoothed": True}
    together = Contour(terms, **target)
    monkeypatch.setattr(contour, "joined", list)
    apart = Contour(terms, **target)
    assert together.certified
    assert apart.certified
    (low, high), (other_low, other_high) = (x.bounds(0.7) for x in (together, apart))
    assert low <= other_high
    assert other_low <= high
    assert max(high - low, other_high - other_low) < 1e-3


def test_kinds_that_are_alike_are_as_their_repetition():
    """Two hundred scales within 1e-9 of one another, and as many runs of that one."""
    near = [privacy.discrete_laplace(30 * (1 + 5e-12 * i)) for i in range(200)]
    found = privacy.compose(*near).epsilon(1e-6)
    one = (200 * privacy.discrete_laplace(30)).epsilon(1e-6)
    # The first has the largest losses, by less than the widths.
    assert found.lower <= one.upper
    assert one.lower * (1 - 2e-9) <= found.upper
    assert found.upper - found.lower < 1e-5 * found
    assert float(found) == pytest.approx(float(one), rel=1e-5)


def test_beside_other_noise():
    """With a Gaussian, which fades by itself: a sharp contour, above either alone."""
    many = privacy.compose(*(privacy.discrete_laplace(20 + i) for i in range(200)))
    found = (many + privacy.gaussian(2.0)).epsilon(1e-6)
    assert found.upper - found.lower < 1e-6 * found
    assert found.lower > max(many.epsilon(1e-6).upper, privacy.gaussian(2.0).epsilon(1e-6).upper)

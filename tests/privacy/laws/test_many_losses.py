"""Many losses of many values, taken together: as one by one, as every sum listed, and in time."""

import itertools
import math

import numpy as np
import pytest

from dither import privacy
from dither.privacy._side import Side
from dither.privacy.engines import contour
from dither.privacy.engines.choice import Chernoff
from dither.privacy.engines.contour import Contour
from dither.privacy.engines.grid import Grid
from dither.privacy.laws.atoms import AtomTerm, shifted_noise
from dither.privacy.laws.many_atoms import joined
from dither.privacy.laws.sampled.many_losses import ManyLossesTerm


def sampled(n, removal, least=0.6, most=5.0):
    """Discrete Gaussians on Poisson samples, of noise and rates that are all different."""
    losses = [
        privacy.discrete_gaussian(sigma).poisson(0.01 + 0.2 * i / n)
        for i, sigma in enumerate(np.geomspace(least, most, n).tolist())
    ]
    return [part.term(removal, 1 + i % 2) for i, x in enumerate(losses) for part, _ in x.parts]


def moved(n):
    """Discrete Laplaces that are moved by a hundred and more."""
    return [shifted_noise(900.0 + 100 * i, 100 + i, 1) for i in range(n)]


@pytest.mark.parametrize("terms", [sampled(9, True), sampled(40, False), moved(10)], ids=len)
def test_sums_are_those_one_by_one(terms):
    """On the real line and on vertical ones; or a bound of the modulus, where that is tiny."""
    together = ManyLossesTerm(terms)
    for c in (0.01, 1.0, 12.0, 70.0):
        low, high = together.moment_ends(c)
        at = np.array([c])
        ends = [(float(t.log_moment(at)[0]), t.blur(c)) for t in terms]
        assert low <= sum(value + off for value, off in ends)
        assert high >= sum(value - off for value, off in ends)
        assert high - low < 1e-8 * max(1.0, abs(high))
    u = np.arange(1500) * 0.37
    base, value, slack = together.along(3.0, u)
    found = [term.along(3.0, u) for term in terms]
    other_base, other, off = (sum(column) for column in zip(*found, strict=True))
    known = slack < 1
    gap = (base + value - other_base - other)[known]
    turns = np.round(gap.imag / (2 * math.pi)) * 2 * math.pi
    assert (np.abs(gap.real) <= (slack + off)[known]).all()
    assert (np.abs(gap.imag - turns) <= (slack + off)[known]).all()
    assert slack[0] < 1e-9
    assert np.median(slack[known]) < 1e-6
    # Of the rest no more is said than that it is small, and it is smaller.
    assert (other.real <= value.real + 1e-6)[~known].all()
    assert known.all() == (len(terms) < 20)


def test_both_ends_by_all_sums():
    """Seven kinds of three and four losses, every total listed: in the bounds at any epsilon."""
    generator = np.random.default_rng(4)
    terms = []
    for i in range(7):
        p = generator.dirichlet(np.ones(3 + i % 2))
        losses = np.sort(generator.normal(0.2, 0.5, len(p)))
        terms.append(AtomTerm(losses, p, 1))
    totals = [sum(some) for some in itertools.product(*(t.losses.tolist() for t in terms))]
    chances = itertools.product(*(t.probabilities.tolist() for t in terms))
    masses = np.array([math.prod(some) for some in chances])
    losses = np.array(totals)
    for smoothed_for in (1e-1, 1e-3):
        line = Contour(
            [ManyLossesTerm(terms)], log_delta=math.log(smoothed_for), epsilon=None, smoothed=True
        )
        assert line.certified
        for epsilon in (0.5, 1.5, 2.5, 3.5):
            truth = math.fsum(masses * -np.expm1(np.minimum(epsilon - losses, 0)))
            low, high = line.bounds(epsilon)
            assert low <= math.log(truth) <= high
        low, high = line.bounds(line.start)
        assert high - low < 1e-2


@pytest.mark.parametrize("removal", [True, False])
def test_the_same_interval_as_by_other_engines(monkeypatch, removal):
    """Together, each by itself, and on grids: they meet."""
    terms = sampled(10, removal, 2.0, 6.0)
    target = {"log_delta": None, "epsilon": 0.5}
    grid = Grid(terms, points=1 << 13, **target)
    together = Contour(terms, smoothed=True, **target)
    assert isinstance(joined(terms)[0], ManyLossesTerm)
    monkeypatch.setattr(contour, "joined", list)
    apart = Contour(terms, smoothed=True, dearest=math.inf, **target)
    found = [x.bounds(0.5) for x in (grid, together, apart)]
    assert max(low for low, _ in found) <= min(high for _, high in found)
    assert found[1][1] - found[1][0] < 1e-3


def test_a_wrong_chance_would_be_seen():
    """Of a law whose one chance is a thousandth larger the sums are told apart."""
    terms = sampled(9, True)
    right = ManyLossesTerm(terms).along(3.0, np.arange(50) * 0.5)
    terms[4].probabilities = terms[4].probabilities.copy()
    terms[4].probabilities[np.argmax(terms[4].probabilities)] *= 1.001
    wrong = ManyLossesTerm(terms).along(3.0, np.arange(50) * 0.5)
    assert (np.abs(wrong[0] + wrong[1] - right[0] - right[1]) > 2 * (right[2] + wrong[2])).any()


def many(n):
    """n kinds once each, all different."""
    return privacy.compose(
        *(privacy.discrete_gaussian(1 + 3 * i / n).poisson(0.01 + 0.03 * i / n) for i in range(n))
    )


def test_kinds_that_are_alike_are_as_their_repetition():
    """Sixty-four scales within 1e-10 of one another, and as many runs of that one: they meet."""
    near = [privacy.discrete_gaussian(2 * (1 + 1e-12 * i)).poisson(0.1) for i in range(64)]
    found = privacy.compose(*near).epsilon(1e-6)
    one = (64 * privacy.discrete_gaussian(2).poisson(0.1)).epsilon(1e-6)
    assert found.lower <= one.upper * (1 + 1e-9)
    assert one.lower <= found.upper * (1 + 1e-9)
    assert found.upper - found.lower < 0.02 * found


def test_three_hundred_kinds_by_a_line():
    """Of as many no grid is asked, and the interval is narrow; more of them lose more."""
    found = many(300).epsilon(1e-6)
    assert found.method.startswith("contour quadrature")
    assert found.upper - found.lower < 0.01 * found
    # What moments alone say is above.
    moments = Side(many(300).parts, True).moments
    assert found.upper < 0.95 * Chernoff(moments, log_delta=math.log(1e-6), epsilon=None).start
    assert many(150).epsilon(1e-6).upper < found.lower


def test_beside_other_noise():
    """With sampled Laplaces, and with a Gaussian, which fades by itself."""
    few = many(60)
    both = few + privacy.compose(*(privacy.laplace(2 + i / 9).poisson(0.01) for i in range(20)))
    for more in (both, few + privacy.gaussian(3.0)):
        found = more.epsilon(1e-6)
        assert found.lower > few.epsilon(1e-6).upper
        assert found.upper - found.lower < 0.02 * found

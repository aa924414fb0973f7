"""What each routine in doubles says of its own rounding, against many digits and against balls."""

import math
import random
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from dither.numeric._balls import library, precision
from dither.privacy._binomials import half_tails, masses
from dither.privacy.engines.ball_laws import SampledGaussianLaw
from dither.privacy.engines.choice import Chernoff
from dither.privacy.engines.grid import Grid, moment_ends
from dither.privacy.engines.lattice import LatticeLaw
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.classes import Concentrated
from dither.privacy.laws.discrete_gaussian import DiscreteGaussianLaw
from dither.privacy.laws.gaussian import GaussianTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.response import ResponseTerm
from dither.privacy.laws.sampled_gaussian import SampledGaussianTerm
from dither.privacy.laws.term import normal_mass

many = mpmath.MPContext()
many.dps = 60
number = many.mpf

_DRAWS = 150


def power(draw, low, high):
    """A number whose logarithm is uniform."""
    return 10 ** draw.uniform(low, high)


def laplace(draw):
    e, k, c = power(draw, -9, 2.5), 10 ** draw.randint(0, 12), power(draw, -9, 4)
    x, y = number(e), number(c)
    inner = many.log1p(y * many.expm1(-x * (2 * y + 1)) / (2 * y + 1))
    return LaplaceTerm(np.array([e]), np.array([float(k)])), c, k * (x * y + inner)


def atoms(draw):
    n, scale = draw.choice([1, 2, 3, 10, 300]), power(draw, -9, 2.8)
    losses = scale * np.sort([draw.uniform(-1, 1) for _ in range(n)])
    thin = draw.choice([1, 300])
    p = np.array([power(draw, -thin, 0) for _ in range(n)])
    p /= p.sum()
    k, c = 10 ** draw.randint(0, 9), power(draw, -9, 5)
    pairs = zip(p.tolist(), losses.tolist(), strict=True)
    exact = k * many.log(many.fsum(number(a) * many.exp(number(c) * number(b)) for a, b in pairs))
    return AtomTerm(losses, p, k, relative=0.0, position=0.0), c, exact


def response(draw):
    e, k, answers = power(draw, -9, 2.8), 10 ** draw.randint(0, 12), draw.choice([2, 3, 50])
    c, x = power(draw, -9, 6), number(e)
    p = 1 / (many.exp(x) + answers - 1)
    rest = many.exp(x) * many.exp(c * x) + many.exp(-c * x) + answers - 2
    return ResponseTerm(e, k, answers=answers), c, k * many.log(p * rest)


def gaussian(draw):
    mu_squared, c = power(draw, -30, 6), power(draw, -9, 6)
    exact = number(c) * (number(c) + 1) * number(mu_squared) / 2
    return GaussianTerm(mu_squared), c, exact


def sampled_gaussian(draw):
    noise, rate, removal = power(draw, -0.5, 2), power(draw, -6, -0.01), draw.random() < 0.5
    term = SampledGaussianTerm(noise, rate, removal, 10 ** draw.randint(0, 9))
    c = min(power(draw, -6, 1.5), term.reach)
    with precision(160):
        ball = SampledGaussianLaw(term).moment(c, 130).log()
        ends = [number(x.str(40, radius=False)) for x in (ball.lower(), ball.upper())]
    assert ends[1] - ends[0] <= number(10) ** -25 * (1 + abs(ends[1]))
    return term, c, sum(ends) / 2


_KINDS = [laplace, atoms, response, gaussian, sampled_gaussian]


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.__name__)
def test_the_ends_of_a_log_moment(kind):
    """Of one law, however often: the true value lies between, and neither end is idle."""
    draw, widths = random.Random(7), []
    for _ in range(_DRAWS // 5 if kind is sampled_gaussian else _DRAWS):
        term, c, exact = kind(draw)
        low, high = moment_ends(term, np.array([c]))
        assert number(low) <= exact <= number(high), (kind.__name__, c, float(exact))
        widths.append((high - low) / (abs(float(exact)) + term.count))
    assert sorted(widths)[len(widths) // 2] < 1e-11


def test_the_ends_of_a_discrete_gaussian_moment():
    """Theta functions at many digits."""
    draw = random.Random(8)
    for _ in range(_DRAWS):
        sigma, shift, c = power(draw, -0.5, 2.5), draw.choice([1, 2, 7]), power(draw, -6, 4)
        v, x = number(sigma) ** 2, number(c)
        nome = many.exp(-2 * many.pi**2 * v)
        ratio = many.jtheta(3, many.pi * x * shift, nome) / many.jtheta(3, 0, nome)
        exact = x * (x + 1) * shift**2 / (2 * v) + many.log(ratio)
        low, high = DiscreteGaussianLaw(sigma, shift).moment(c)
        assert number(low) <= exact <= number(high)


def test_the_bound_of_a_class_is_rounded_up():
    """c(c+1)·rho as it is, at many digits."""
    draw = random.Random(9)
    for _ in range(_DRAWS):
        rho, count, c = power(draw, -12, 3), draw.randint(1, 10**9), power(draw, -9, 6)
        term = Concentrated(rho).moment(True, count)
        exact = number(c) * (number(c) + 1) * number(rho) * count
        low, high = moment_ends(term, np.array([c]))
        assert low == -math.inf
        assert exact <= number(high) <= exact * (1 + number(10) ** -14)


def binomial(n, x, rate):
    """Pr[Bin(n, rate) = x] as a double, from balls."""
    arb = library().arb
    rate = arb(rate)
    chosen = (arb(n) + 1).lgamma() - (arb(x) + 1).lgamma() - (arb(n - x) + 1).lgamma()
    return float((chosen + x * rate.log() + (n - x) * (1 - rate).log()).exp())


def test_binomial_masses():
    """To 1e-11 of themselves, up to 10^11 counts, where one rounding of the mean would be seen."""
    draw = random.Random(10)
    with precision(256):
        for _ in range(4 * _DRAWS):
            n = int(power(draw, 0, 11))
            rate = draw.choice([power(draw, -6, -1e-6), 1 - power(draw, -6, -1)])
            spread = math.sqrt(n * rate * (1 - rate))
            x = min(max(0, round(n * rate + draw.uniform(-8, 8) * spread)), n)
            exact = binomial(n, x, rate)
            if exact > math.exp(-40):
                assert abs(masses(np.array([float(x)]), n, rate)[0] - exact) <= 1e-11 * exact


def test_running_tails_of_fair_coins():
    """The last of a long path is what a direct sum gives, and its masses are right."""
    draw = random.Random(11)
    with precision(256):
        for _ in range(12):
            m = int(power(draw, 3, 10))
            steps = min(20_000, m)
            k = round(m / 2 + draw.uniform(-6, 6) * math.sqrt(m) / 2)
            moves = np.floor(np.arange(steps) * draw.uniform(0.3, 0.7)).astype(np.int64)
            path, at = m + np.arange(steps), k + moves
            tails, here = half_tails(path, at)
            direct, _ = half_tails(path[-1:], at[-1:])
            assert abs(tails[-1] - direct[0]) <= 1e-11 * direct[0] + 1e-15 * tails.max()
            exact = binomial(int(path[-1]), int(at[-1]), 0.5)
            assert abs(here[-1] - exact) <= 1e-12 * exact


def test_normal_masses_between_edges():
    """Narrow cells and wide ones, from the middle to 38 deviations away, against Arb's erfc."""
    draw = random.Random(12)
    with precision(256) as flint:
        arb = flint.arb
        for _ in range(3 * _DRAWS):
            sd, mean = power(draw, -9, 4), draw.uniform(-1, 1) * power(draw, -9, 8)
            start, width = mean + sd * draw.uniform(-38, 38), sd * power(draw, -6, 1)
            edges = start + width * np.arange(3)
            if not (np.diff(edges) > 0).all():
                continue
            mass, error, below, above = normal_mass(edges, mean, sd)
            a, b, c = ((arb(e) - arb(mean)) / arb(sd) / arb(2).sqrt() for e in edges.tolist())
            for i, (left, right) in enumerate(((a, b), (b, c))):
                pair = (left, right) if left > 0 else (-right, -left)
                exact = (pair[0].erfc() - pair[1].erfc()) / 2
                assert abs(exact - arb(float(mass[i]))) <= arb(float(error[i]))
            assert (-a).erfc() / 2 <= arb(below + 1e-307)
            assert c.erfc() / 2 <= arb(above + 1e-307)


@pytest.mark.filterwarnings("error")
def test_losses_whose_square_is_beyond_doubles():
    """Their spread is measured in parts of their range, so that nothing overflows."""
    law = LatticeLaw(0.0, np.array([0.25, 0.5, 0.25]), 4, 0.0)
    width = Grid._width(SimpleNamespace(spacing=1e190, c=0.0), [(law, 0.0)])
    assert width == pytest.approx(8e190, rel=1e-12)
    law = LatticeLaw(0.0, np.array([1.0, *np.zeros(98), 1e-6]), 1, 0.0)
    width = Grid._width(SimpleNamespace(spacing=1e190, c=0.0), [(law, 0.0)])
    assert width == pytest.approx(20 * 99e190 * 1e-3, rel=1e-5)


@pytest.mark.parametrize("n", [64, 256, 2048])
def test_entries_of_a_transform_of_masses(n):
    """Half of the unit that the lattice charges is enough, of even masses and heavy ones."""
    units = [many.expjpi(number(-2 * k) / n) for k in range(n)]
    for weight in (np.ones(n), np.random.default_rng(n).random(n) ** 8, 0.5 ** np.arange(n)):
        masses_ = weight / weight.sum()
        spectrum = np.fft.rfft(masses_)
        for j in (1, n // 4 - 1, n // 2 - 1, n // 2):
            parts = enumerate(masses_.tolist())
            exact = many.fsum(number(m) * units[i * j % n] for i, m in parts)
            assert abs(exact - complex(spectrum[j])) <= 8 * math.log2(n) * 2.0**-53


def test_chernoff_bounds_are_rounded_up():
    """At the tilt that was chosen, kappa(c)·M(c)·e^(-c·epsilon) at many digits."""
    draw = random.Random(13)
    for _ in range(_DRAWS // 3):
        rho, count, epsilon = power(draw, -6, 1), draw.randint(1, 10**6), power(draw, -3, 2)
        found = Chernoff([Concentrated(rho).moment(True, count)], log_delta=None, epsilon=epsilon)
        c = number(found.c)
        kappa = c * many.log(c / (1 + c)) - many.log1p(c)
        exact = c * (c + 1) * number(rho) * count - c * number(epsilon) + kappa
        high = number(found.bounds(epsilon)[1])
        size = c * number(epsilon) + c * (c + 1) * number(rho) * count + 20
        assert min(exact, 0) <= high <= min(exact, 0) + size / 10**13

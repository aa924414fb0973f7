"""What each routine in doubles says of its own rounding, against many digits and against balls."""

import math
import random
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from dither.accounting import shuffle, shuffle_clones_2021, shuffle_clones_2023
from dither.numeric._balls import library, precision
from dither.privacy import gdp
from dither.privacy._tradeoff import dual
from dither.privacy.amplification._binomials import half_tails, masses
from dither.privacy.amplification._clones import _uniform_blanket, clones
from dither.privacy.amplification._repetition import _log_inverse_gamma
from dither.privacy.engines.balls.laws import SampledGaussianLaw
from dither.privacy.engines.choice import Chernoff
from dither.privacy.engines.grid import Grid, moment_ends
from dither.privacy.engines.lattice import LatticeLaw
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.classes import Concentrated, RenyiProfile
from dither.privacy.laws.discrete_gaussian import DiscreteGaussianLaw
from dither.privacy.laws.gaussian import GaussianTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.part import gdp_of_variation
from dither.privacy.laws.response import ResponseTerm
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.term import EPS, normal_mass

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


def test_the_variations_of_laplaces():
    """Their sum is rounded up, by little, whether losses are tiny or large."""
    draw = random.Random(5)
    for _ in range(_DRAWS):
        e = np.array([power(draw, -300, 2.8) for _ in range(draw.choice([1, 2, 40]))])
        k = np.array([float(draw.randint(1, 10**9)) for _ in e])
        exact = many.fsum(
            number(b) * -many.expm1(-number(a) / 2) for a, b in zip(e, k, strict=True)
        )
        found = number(LaplaceTerm(e, k).variation())
        assert exact <= found <= exact * (1 + 12 * number(EPS))


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
            tails, here, off = half_tails(path, at)
            direct, _, other = half_tails(path[-1:], at[-1:])
            assert abs(tails[-1] - direct[0]) <= off[-1] + other[0]
            exact = binomial(int(path[-1]), int(at[-1]), 0.5)
            assert abs(here[-1] - exact) <= 1e-12 * exact


@pytest.mark.parametrize("slope", [0.45, 0.55, 0.7, 0.95])
def test_running_tails_of_few_fair_coins(slope):
    """On the whole path, tails that fall to 1e-30 keep their digits; against exact counts."""
    draw, worst = random.Random(16), 0.0
    for _ in range(6):
        first, steps, ahead = draw.randint(0, 60), draw.randint(1, 150), draw.uniform(0, 12)
        m = first + np.arange(steps)
        k = np.floor(slope * m + ahead).astype(np.int64)
        tails, here, off = half_tails(m, k)
        for n, i, tail, mass, wrong in zip(m, k, tails, here, off, strict=True):
            counts = [math.comb(int(n), j) for j in range(int(n) + 1)]
            more = Fraction(sum(counts[int(i) + 1 :]), 2 ** int(n))
            with_it = Fraction(sum(counts[int(i) :]), 2 ** int(n))
            assert abs(Fraction(tail) - more) <= wrong
            assert abs(Fraction(tail) + Fraction(mass) - with_it) <= wrong
            worst = max(worst, wrong / float(with_it) if with_it else 0.0)
    assert worst < 1e-10


def of_clones(n, p, epsilon):
    """The clones' divergence as a ball, from all counts."""
    arb = library().arb
    p, e = arb(p), arb(epsilon).exp()
    rate, total = 2 / (p + 1), arb(0)
    logs = [arb(i + 1).lgamma() for i in range(n + 1)]
    for c in range(n):
        chance = (logs[n - 1] - logs[c] - logs[n - 1 - c]).exp()
        chance *= rate**c * (1 - rate) ** (n - 1 - c) / (p + 1)
        k = math.floor(float((c + 1) * (e * p - 1) / ((p - 1) * (1 + e))))
        more = Fraction(sum(math.comb(c, j) for j in range(k + 1, c + 1)), 2**c)
        more = arb(library().fmpq(more.numerator, more.denominator))
        here = arb(math.comb(c, k) if k <= c else 0) / 2**c
        found = (p - e) * (more + here) + (1 - e * p) * more
        total += chance * found if found > 0 else 0
    return total


def test_clones_of_few_reports():
    """Where tails fall by many orders of magnitude over the counts, both ends hold."""
    draw = random.Random(17)
    with precision(256):
        for _ in range(25):
            n, e0 = draw.choice([20, 60, 100]), power(draw, -9, 0.8)
            p, epsilon = math.exp(e0), e0 * draw.uniform(0.1, 0.99)
            low, high = clones(n, p, epsilon, power(draw, -30, -8))
            exact = of_clones(n, p, epsilon)
            assert low <= exact <= high
            if e0 > 1e-3 and high > 1e-25:
                assert high - low <= 1e-6 * high


def test_the_blanket_of_few_uniform_answers():
    """E (h/n)·(more·(a - e·b) - other·n·(e - 1))+ over all counts a and b of two of h answers."""
    draw = random.Random(18)
    with precision(256) as flint:
        arb = flint.arb
        for _ in range(25):
            n, h, e0 = draw.randint(1, 40), draw.choice([2, 3, 10]), power(draw, -8, 0.8)
            p, e = math.exp(e0), math.exp(e0 * draw.uniform(0.01, 0.99))
            more, other = (p - 1) / (h + p - 1), 1 / (h + p - 1)
            total = arb(0)
            for a in range(n + 1):
                for b in range(n - a + 1):
                    worth = arb(more) * (a - arb(e) * b) - arb(other) * n * (arb(e) - 1)
                    ways = math.comb(n, a) * math.comb(n - a, b) * (h - 2) ** (n - a - b)
                    total += ways * worth * h / n if worth > 0 else 0
            exact = total / arb(h) ** n
            low, high = _uniform_blanket(n, h, more, other, e, 1e-20)
            assert low <= exact <= high
            if e0 > 1e-3:
                assert high - low <= 1e-6 * high + 1e-20


@pytest.mark.parametrize("epsilon_0", [1e-9, 1e-6, 0.01, 2.0])
def test_a_shuffled_loss_that_composes(epsilon_0):
    """Once, at the points of its profile, where nothing is left to convexity."""
    law = shuffle(40, epsilon_0)
    loss = law.loss()
    step = loss.parts[0][0].bound.spacing
    with precision(256):
        for k in (0, 10, 50, 200, 300):
            exact, found = of_clones(40, law.p, k * step), loss.delta(k * step)
            assert exact <= found.upper
            if epsilon_0 >= 0.01:
                assert found.upper <= exact * (1 + 1e-6) + 2e-14


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


def test_gaussians_of_a_variation():
    """mu with erf(mu/sqrt(8)) just below a distance, from 1e-300 to those next to 1."""
    draw = random.Random(19)
    with precision(256) as flint:
        for i in range(_DRAWS):
            x = power(draw, -300, 0) if i % 2 else 1 - power(draw, -15.9, -0.1)
            mu = flint.arb(gdp_of_variation(x))
            assert (mu / flint.arb(8).sqrt()).erf() <= flint.arb(x)
            assert (mu * (1 + 1e-13) / flint.arb(8).sqrt()).erf() >= flint.arb(x)


def test_trade_offs_of_gaussians():
    """Phi(mu + z) at false alarms of Phi(z), down to 1e-30, where a fixed margin leaves nothing."""
    draw = random.Random(20)
    for _ in range(12):
        mu, z = draw.uniform(0.5, 4), draw.uniform(-11, 2)
        fpr = float(many.ncdf(z))
        at = many.mpf(z) - (many.ncdf(z) - fpr) / many.npdf(z)
        exact, found = many.ncdf(at + mu), gdp(mu).tpr(fpr)
        assert found.lower <= exact <= found.upper
        assert found.upper - found.lower <= 1e-9 * found.upper


def test_the_dual_of_lines():
    """The least value of the greatest of some lines, exactly, from values at rounded places."""
    draw = random.Random(21)
    for _ in range(_DRAWS):
        fpr = power(draw, -14, -0.3)
        corners = sorted({power(draw, -8, 8) for _ in range(draw.randint(1, 5))})
        weights = [power(draw, -6, 0) for _ in corners]
        weights = [w / math.fsum(weights) for w in weights]
        pairs = [(Fraction(w), Fraction(c)) for w, c in zip(weights, corners, strict=True)]
        extra = 1 - sum(w for w, _ in pairs)

        def f(y, pairs=pairs, fpr=fpr, extra=extra):
            return sum(w * max(0, 1 - y / c) for w, c in pairs) + extra + y * Fraction(fpr)

        exact = min(f(y) for y in [Fraction(0), *(c for _, c in pairs)])
        seen = [(0.0, 1.0, 1.0)]
        for c in corners:
            for e in (draw.uniform(-3, 3) * power(draw, -7, 0) for _ in range(12)):
                e += math.log(c)
                value = float(f(Fraction(str(many.exp(e)))))
                seen.append((math.exp(e), value * (1 - 4 * EPS), value * (1 + 4 * EPS)))
        low, high = dual(seen, fpr)
        assert low <= exact <= high


def test_the_number_of_runs():
    """gamma's mean is at least what was asked, and hardly more, at all shapes."""
    draw = random.Random(22)
    for _ in range(_DRAWS):
        mean = 1 + power(draw, -12, 12)
        eta = draw.choice(
            [0.0, 1.0, power(draw, -9, 5), -power(draw, -9, -1e-3), power(draw, -9, -5) - 1]
        )

        def runs(x, eta=eta):
            rest = number(eta) / -many.expm1(-eta * x) if eta else 1 / x
            return many.expm1(x) * rest

        found = number(_log_inverse_gamma(mean, eta))
        assert runs(found) >= mean
        near = 1e-9 + 1e-13 / (mean - 1) + 1e-13 / (1 + min(eta, 0.0))
        assert runs(found * (1 - min(near, 0.5))) <= mean


def test_closed_forms_of_shuffling():
    """Rounded up, and by little, where one report's epsilon is small too."""
    draw = random.Random(23)
    for _ in range(_DRAWS):
        n, e0, d = draw.randint(10**4, 10**9), power(draw, -12, 0.3), power(draw, -12, -1)
        e, log_d = many.exp(e0), many.log(4 / number(d))
        old = 8 * many.sqrt(e * log_d / n) + 8 * e / n
        new = 4 * many.sqrt(2 * log_d / ((e + 1) * n)) + number(4) / n
        pairs = [
            (shuffle_clones_2021, many.log1p((e - 1) / (e + 1) * old)),
            (shuffle_clones_2023, many.log1p((e - 1) * new)),
        ]
        for form, exact in pairs:
            assert exact <= form(n, e0, d) <= exact * (1 + number(10) ** -14)


def test_masses_of_a_discrete_gaussian():
    """Every mass errs by less than its law says, also of losses that are hardly ever met."""
    draw = random.Random(24)
    for _ in range(_DRAWS // 5):
        law = DiscreteGaussianLaw(power(draw, -0.7, 3), draw.choice([1, 3, 20]))
        term = law.term(1)
        x, _ = law.places()
        v = number(law.v)
        whole = many.jtheta(3, 0, many.exp(-2 * many.pi**2 * v)) * many.sqrt(2 * many.pi * v)
        for i in sorted(draw.sample(range(len(x)), min(len(x), 40))):
            exact, mass = many.exp(-(number(x[i]) ** 2) / (2 * v)) / whole, term.probabilities[i]
            assert mass == 0 or abs(mass - exact) <= term.relative * exact


def test_chords_of_a_renyi_profile():
    """At least the exact chords of the numbers as they print, also where a later one is smaller."""
    draw = random.Random(25)
    for _ in range(_DRAWS):
        orders = sorted({1 + power(draw, -7, 2) for _ in range(draw.randint(1, 4))})
        values = [power(draw, -12, 1) for _ in orders]
        points = [
            (Fraction(repr(a)) - 1, Fraction(repr(v))) for a, v in zip(orders, values, strict=True)
        ]
        points = [(x, x * v) for x, v in points]
        least = [min(y for _, y in points[i:]) for i in range(len(points))]
        points = [
            (Fraction(0), Fraction(0)),
            *((x, y) for (x, _), y in zip(points, least, strict=True)),
        ]
        law = RenyiProfile(tuple(orders), tuple(values))
        c = draw.uniform(0, 1) * (orders[-1] - 1)
        for (x, y), (x1, y1) in pairwise(points):
            if x <= Fraction(c) <= x1:
                exact = y + (y1 - y) * (Fraction(c) - x) / (x1 - x)
                found = float(law.log_moment(np.array([c]))[0])
                assert Fraction(found) >= exact
                assert found <= exact * (1 + Fraction(1, 10**6)) + Fraction(1, 10**300)


@pytest.mark.parametrize("g", [0.2, 0.3, 0.7])
def test_addition_within_a_rounding_of_its_largest_loss(g: float) -> None:
    """About -log(1 - g) a quotient of doubles may lie past it, where delta is not 0 yet."""
    from dither.privacy.engines.closed import LaplaceProfile, OnceSampled

    profile = OnceSampled(LaplaceProfile(50.0), g, False, 1.0)
    end = -math.log1p(-g)
    for epsilon in (math.nextafter(end, 0), end, math.nextafter(end, 9)):
        with mpmath.workdps(60):
            e, rate = mpmath.mpf(epsilon), mpmath.mpf(g)
            part = 1 - (1 - rate) * mpmath.exp(e)
            if part <= 0:
                continue
            y = -mpmath.log(1 + (mpmath.exp(-e) - 1) / rate)
            # Of a Laplace loss within ±50: 1 - e^((y - 50)/2) between its atoms.
            base = 1 - mpmath.exp((y - 50) / 2) if y < 50 else mpmath.mpf(0)
            truth = part * base
            low, high = profile.bounds(epsilon)
            assert low <= (mpmath.log(truth) if truth > 0 else -mpmath.inf) <= high


def test_a_ball_that_knows_nothing_says_nothing() -> None:
    """At the last precision, too: not that a delta is 0."""
    from dither.privacy.engines.balls.closed import _settled

    flint = pytest.importorskip("flint")
    assert _settled(lambda: flint.arb("nan")) == (-math.inf, 0.0)

"""Ten million draws of each sampler against its law, and planted bugs that the same test catches.

The words are simulated with a fixed seed, so a sound sampler gives the same statistic in every
run; over the choice of the seed, each test's false-alarm rate is 1e-7. Each sample is binned twice:
finely (single values, or sixteenths of a step of a wide law), so that a fault within a step shows,
and into some hundred bins, so that a slight error of the scale does.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from dither.errors import ArgumentError
from dither.noise import _staircase as staircase
from dither.noise import discrete_gaussian, discrete_laplace
from dither.noise._gaussian import _Gaussian, gaussian_sampler
from dither.noise._laplace import _Laplace, laplace_sampler
from dither.noise._staircase import StaircaseSampler
from dither.numeric import SimulatedWords

DRAWS = 10_000_000
FALSE_ALARM = 1e-7
LAPLACE = [Fraction(1, 2), Fraction(10), Fraction(100, 3), Fraction(1000), Fraction(2**30 + 1)]
GAUSSIAN = [Fraction(1, 2), Fraction(100), Fraction(10**6), Fraction(2**60 + 1)]


def laplace_below(edges: np.ndarray, law: _Laplace) -> np.ndarray:
    """Pr[X < edge], in closed form."""
    q, decay = np.exp(-1 / float(law.scale)), np.exp(-np.abs(edges) / float(law.scale))
    return np.where(edges > 0, 1 - decay / (1 + q), decay * q / (1 + q))


def gaussian_below(edges: np.ndarray, law: _Gaussian) -> np.ndarray:
    """Pr[X < edge]: a sum where sigma is small, else the continuous law's, apart by 1/sigma²."""
    sigma = float(law.sigma2) ** 0.5
    if sigma > 2**20:
        return special.ndtr((edges - 0.5) / sigma)
    points = np.arange(-int(12 * sigma) - 2, int(12 * sigma) + 3)
    mass = np.exp(-(points**2) / (2 * float(law.sigma2)))
    cumulative = np.concatenate([[0.0], np.cumsum(mass / mass.sum())])
    return cumulative[np.clip(edges - points[0], 0, points.size)]


def p_value(sampler: StaircaseSampler, law: _Laplace | _Gaussian, seed: int) -> float:
    """The p-value of ten million draws under a law: the smaller of two chi-squares, doubled."""
    laplace = isinstance(law, _Laplace)
    spread = float(law.scale) if laplace else float(law.sigma2) ** 0.5
    grain = max(0, sampler.shift - 4)
    reach = int(spread * (12 if laplace else 5)) >> grain
    counts = np.zeros(2 * reach + 2, dtype=np.int64)
    words = SimulatedWords(seed)
    for start in range(0, DRAWS, 1 << 20):
        places = (sampler.draw(min(1 << 20, DRAWS - start), words) >> grain) + reach
        counts += np.bincount(np.clip(places, 0, counts.size - 1), minlength=counts.size)
    edges = np.arange(1 - reach, reach + 2, dtype=np.int64) << grain
    below = laplace_below(edges, law) if laplace else gaussian_below(edges, law)
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * DRAWS
    coarse = np.arange(0, counts.size, max(1, counts.size // 128))
    return 2 * min(
        chi_square(counts, expected),
        chi_square(np.add.reduceat(counts, coarse), np.add.reduceat(expected, coarse)),
    )


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """The p-value of counts, those that are expected below 50 put together."""
    few = expected < 50
    if few.any():
        counts = np.append(counts[~few], counts[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
    return float(stats.chisquare(counts, expected).pvalue)


@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_discrete_laplace_fits(scale):
    """Ten million draws fit the discrete Laplace law (false alarm 1e-7)."""
    assert p_value(laplace_sampler(scale), _Laplace(scale), 1) > FALSE_ALARM


@pytest.mark.parametrize("sigma2", GAUSSIAN, ids=str)
def test_discrete_gaussian_fits(sigma2):
    """Ten million draws fit the discrete Gaussian law (false alarm 1e-7)."""
    assert p_value(gaussian_sampler(sigma2), _Gaussian(sigma2), 2) > FALSE_ALARM


NARROW, WIDE = _Laplace(Fraction(10)), _Gaussian(Fraction(10**6))


@pytest.mark.parametrize(
    ("drawn", "claimed"),
    [
        (_Laplace(Fraction(5)), NARROW),
        (_Laplace(Fraction(99, 10)), NARROW),
        (_Gaussian(Fraction(990 * 990)), WIDE),
    ],
    ids=["half the scale", "scale 1 % off", "sigma 1 % off"],
)
def test_another_scale_is_caught(drawn, claimed):
    """The chi-square rejects half the scale, and a scale one per cent off."""
    shift = 0 if isinstance(drawn, _Laplace) else 4
    assert p_value(StaircaseSampler(drawn, shift), claimed, 3) < 1e-12


@pytest.mark.parametrize(("law", "shift"), [(NARROW, 0), (WIDE, 4)], ids=["points", "staircase"])
def test_a_wrong_threshold_is_caught(law, shift):
    """The chi-square rejects one threshold that moved by 2**-10."""
    sampler = StaircaseSampler(law, shift)
    middle = sampler.cells.count // 2 if shift == 0 else sampler.steps
    sampler.cells.thresholds[middle] += np.uint64(1 << 54)
    assert p_value(sampler, law, 4) < 1e-12


def test_a_wedge_that_never_rejects_is_caught(monkeypatch):
    """The chi-square rejects a staircase whose wedges are taken whole."""
    monkeypatch.setattr(StaircaseSampler, "_rejected", lambda self, out, places, words: places[:0])
    assert p_value(StaircaseSampler(WIDE, 4), WIDE, 5) < 1e-12


def test_a_mirror_that_is_off_by_one_is_caught(monkeypatch):
    """The chi-square rejects a staircase whose negative side takes the positive side's part."""
    honest = StaircaseSampler.acceptance

    def crooked(self, x):
        return honest(self, np.where(x < 0, x ^ ((1 << self.shift) - 1), x))

    monkeypatch.setattr(StaircaseSampler, "acceptance", crooked)
    assert p_value(StaircaseSampler(WIDE, 6), WIDE, 6) < 1e-12


def test_low_bits_that_stick_are_caught(monkeypatch):
    """The chi-square rejects low digits of which one never changes."""
    honest = staircase._low_bits
    monkeypatch.setattr(
        staircase, "_low_bits", lambda count, size, words: honest(count, size, words) | 1
    )
    assert p_value(StaircaseSampler(WIDE, 4), WIDE, 7) < 1e-12


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 2047, 2048, 40_001])
@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_shapes(draw, size):
    """Any size gives that many 64-bit integers, from secure words by default."""
    for parameter in (Fraction(1, 1000), Fraction(7), 10**9):
        drawn = draw(parameter, size)
        assert (drawn.shape, drawn.dtype) == ((size,), np.int64)


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_sources(draw):
    """A simulated source repeats itself; the secure one does not."""
    one, two = (draw(10**12, 9, words=SimulatedWords(1)) for _ in range(2))
    assert np.array_equal(one, two)
    assert not np.array_equal(draw(10**12, 9), draw(10**12, 9))


def test_tiny_parameters_draw_zeros():
    """exp(−1000) is below 2**-1400: the draws are zeros, within the stated distance."""
    assert not discrete_laplace(Fraction(1, 1000), 10_000).any()
    assert not discrete_gaussian(Fraction(1, 2000), 10_000).any()


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("parameter", [0, -1, -0.5, "a", True, None, Fraction(-1, 2), 2**105])
def test_parameters_out_of_range(draw, parameter):
    """Zero, negative or enormous parameters and what is not a number are refused by name."""
    with pytest.raises(ArgumentError, match=r"^(scale|sigma2) must be"):
        draw(parameter, 3)


def test_a_parameter_is_read_as_it_prints():
    """Floats and texts name the same sampler as the fraction that they stand for."""
    for written in (0.1, "0.1", "1/10", Fraction(1, 10)):
        for draw in (discrete_laplace, discrete_gaussian):
            seen = draw(written, 20, words=SimulatedWords(3))
            assert (seen == draw(Fraction(1, 10), 20, words=SimulatedWords(3))).all()


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("size", [-1, 2.0, True, None])
def test_sizes_out_of_range(draw, size):
    """A size is an integer of at least 0."""
    with pytest.raises(ArgumentError, match="size must be an integer"):
        draw(Fraction(1), size)

"""The law that is really drawn, computed from the sampler's own tables, against the ideal one.

The truth is interval arithmetic at 500 bits, from the closed forms and not from the recurrences
that fill the tables.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import iv

from dither.noise import _staircase as staircase
from dither.noise import discrete_gaussian, discrete_laplace
from dither.noise._gaussian import MAX_SIGMA2, _Gaussian, gaussian_sampler
from dither.noise._laplace import MAX_SCALE, _Laplace, laplace_sampler
from dither.noise._staircase import StaircaseSampler
from dither.numeric import SimulatedWords

POINT = 256
BOUND = mpmath.mpf(2) ** -128

LAPLACE = [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(10), Fraction(63, 2)]
GAUSSIAN = [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(100), Fraction(3969, 2)]
WIDE = [
    *(laplace_sampler(s) for s in (Fraction(100, 3), Fraction(1000), 2**30 + Fraction(1, 7))),
    *(gaussian_sampler(Fraction(s)) for s in (5000, 10**6, 2**60 + 1)),
    *(laplace_sampler(MAX_SCALE), gaussian_sampler(MAX_SIGMA2)),
]
WIDE_IDS = [f"{type(s.law).__name__[1:]}-{s.shift}" for s in WIDE]


@pytest.fixture(autouse=True)
def precision():
    """500 bits for mpmath, put back afterwards."""
    before, iv.prec = iv.prec, 500
    with mpmath.workprec(500):
        yield
    iv.prec = before


def mass(law, magnitude: int):
    """exp(−γ(magnitude)) as an interval, from the law's definition."""
    if isinstance(law, _Laplace):
        return iv.exp(-iv.mpf(magnitude * law.scale.denominator) / law.scale.numerator)
    return iv.exp(-iv.mpf(magnitude**2 * law.sigma2.denominator) / (2 * law.sigma2.numerator))


def total(law):
    """The sum of exp(−γ(|x|)) over all integers as an interval."""
    if isinstance(law, _Laplace):
        q = mass(law, 1)
        return (1 + q) / (1 - q)
    part, x = iv.mpf(1), 1
    while mass(law, x).b > mpmath.mpf(2) ** -450:
        part += 2 * mass(law, x)
        x += 1
    # exp(−γ) shrinks at least geometrically, so the rest is below twice the next times the sum.
    return part + iv.mpf([0, (2 * mass(law, x) * part).b])


def realised(sampler: StaircaseSampler) -> dict[int, object]:
    """The probability of each value, from the tables that the sampler draws with."""
    cells = sampler.cells
    outcomes = np.arange(cells.count)
    places, wedges = sampler._point(outcomes), sampler._wedge(outcomes)
    weights = np.diff(np.array([0, *cells.cumulative], dtype=object))
    law, width = {}, 1 << sampler.shift
    for place, wedge, weight in zip(places.tolist(), wedges.tolist(), weights, strict=True):
        for x in range(place * width, place * width + width):
            share = accepted_share(sampler, x) if wedge else 1
            law[x] = law.get(x, 0) + share * iv.mpf(weight)
    whole = sum(law.values())
    return {x: value / whole for x, value in law.items()}


def accepted_share(sampler: StaircaseSampler, x: int):
    """The probability that the wedge of x accepts it, as `StaircaseSampler.accept` defines it."""
    step = ~(x >> sampler.shift) if x < 0 else x >> sampler.shift
    base, top = sampler.lower[step + 1], sampler.upper[step]
    share = (mass(sampler.law, abs(x)) * iv.mpf(2) ** POINT - base) / (top - base)
    assert share.a >= 0
    assert share.b <= 1
    return share


def distance(sampler: StaircaseSampler, law):
    """An upper bound of the total variation between what is drawn and a law."""
    ideal, drawn = total(law), realised(sampler)
    apart = sum(abs(p - mass(law, abs(x)) / ideal) for x, p in drawn.items())
    outside = 1 - sum(mass(law, abs(x)) for x in drawn) / ideal
    return ((apart + abs(outside)) / 2).b


@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_discrete_laplace_is_within_its_bound(scale):
    """Point by point, the realised law is within 2**-128 (and 2**-142) of the ideal."""
    assert distance(laplace_sampler(scale), _Laplace(scale)) < mpmath.mpf(2) ** -142 < BOUND


@pytest.mark.parametrize("sigma2", GAUSSIAN, ids=str)
def test_discrete_gaussian_is_within_its_bound(sigma2):
    """Point by point, the realised law is within 2**-128 (and 2**-142) of the ideal."""
    assert distance(gaussian_sampler(sigma2), _Gaussian(sigma2)) < mpmath.mpf(2) ** -142 < BOUND


@pytest.mark.parametrize(
    "law", [_Laplace(Fraction(5, 2)), _Gaussian(Fraction(50)), _Gaussian(Fraction(17, 2))], ids=str
)
@pytest.mark.parametrize("shift", [1, 2])
def test_the_staircase_is_within_its_bound(law, shift):
    """Boxes, wedges and their acceptance give the ideal law to 2**-142, for wide steps too."""
    assert distance(StaircaseSampler(law, shift), law) < mpmath.mpf(2) ** -142 < BOUND


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize(
    ("drawn", "claimed"),
    [
        (_Laplace(Fraction(2)), _Laplace(Fraction(4))),
        (_Laplace(Fraction(2)), _Laplace(2 + Fraction(1, 2**120))),
        (_Gaussian(Fraction(9)), _Gaussian(9 + Fraction(1, 2**110))),
    ],
    ids=["half the scale", "scale off by 2**-120", "sigma2 off by 2**-110"],
)
def test_another_parameter_is_caught(drawn, claimed, shift):
    """The distance sees a parameter that differs, even in its last digits."""
    assert distance(StaircaseSampler(drawn, shift), claimed) > BOUND


def test_a_wrong_weight_is_caught():
    """One unit of 2**-120 moved between two cells shows in the distance."""
    sampler = StaircaseSampler(_Gaussian(Fraction(9)), 0)
    sampler.cells.cumulative[30] += 1 << (POINT - 120)
    assert distance(sampler, sampler.law) > BOUND


@pytest.mark.parametrize("sampler", WIDE, ids=WIDE_IDS)
def test_wide_staircases_hold_their_law(sampler):
    """On every step, the tables are the integers of the proof, and enclose the law on it."""
    steps, width = sampler.steps, 1 << sampler.shift
    cells = sampler.cells
    weights = np.diff(np.array([0, *cells.cumulative], dtype=object))
    outcomes = np.arange(cells.count)
    places, wedges = sampler._point(outcomes), sampler._wedge(outcomes)
    assert sorted(zip(wedges.tolist(), places.tolist(), strict=True)) == [
        (wedge, place) for wedge in (False, True) for place in range(-steps, steps)
    ]
    lower, upper = sampler.lower, sampler.upper
    unit = iv.mpf(2) ** POINT
    edges = [mass(sampler.law, h * width) * unit for h in range(steps + 1)]
    for h, edge in enumerate(edges):
        # |x| runs from h·w to (h+1)·w over a step and its mirror, so its edges enclose it.
        assert lower[h] <= edge.a
        assert edge.b <= upper[h]
    for outcome, weight in enumerate(weights):
        place = int(places[outcome])
        step = ~place if place < 0 else place
        box = lower[step + 1]
        assert weight == (upper[step] - box if wedges[outcome] else box)
    assert edges[-1].b < mpmath.mpf(2) ** (POINT - 144)


@pytest.mark.parametrize("sampler", WIDE, ids=WIDE_IDS)
def test_the_prefix_table_takes_only_what_is_decided(sampler):
    """A prefix gives a value only if its whole interval lies in that value's box."""
    total_weight, cumulative = sampler.cells.total, [0, *sampler.cells.cumulative]
    guide, _ = sampler.guide()
    settled = 0
    for place in np.unique(guide[guide != staircase._UNDECIDED]).tolist():
        prefixes = np.flatnonzero(guide == place)
        k = place + sampler.steps  # boxes come first, in order
        assert cumulative[k] << 16 <= int(prefixes[0]) * total_weight
        assert (int(prefixes[-1]) + 1) * total_weight <= cumulative[k + 1] << 16
        settled += prefixes.size
    assert 0.9 * 2**16 < settled < 2**16


def values_of(sampler: StaircaseSampler, count: int) -> np.ndarray:
    """Values of all steps, near ones and far ones, with both ends of their steps."""
    rng = np.random.default_rng(7)
    place = rng.integers(-sampler.steps, sampler.steps, count)
    part = rng.integers(0, 1 << sampler.shift, count)
    part[: count // 4] = 0
    part[count // 4 : count // 2] = (1 << sampler.shift) - 1
    return (place << sampler.shift) | part


@pytest.mark.parametrize("sampler", WIDE, ids=WIDE_IDS)
def test_the_filter_errs_far_less_than_its_margin(sampler):
    """Its doubles are within 2**-45 of the exact share; the margin is 2**-32."""
    x = values_of(sampler, 400)
    for value, share in zip(x.tolist(), sampler.acceptance(x).tolist(), strict=True):
        assert abs(accepted_share(sampler, value) - share).b < mpmath.mpf(2) ** -45
    assert staircase._MARGIN == 2.0**-32


def test_a_careless_filter_is_caught():
    """A filter that took the law a millionth too wide would fail the test above."""
    sampler = WIDE[4]
    off = StaircaseSampler(_Gaussian(sampler.law.sigma2 * (1 + Fraction(1, 10**6))), sampler.shift)
    x = values_of(sampler, 400)
    worst = max(
        abs(accepted_share(sampler, value) - share).a
        for value, share in zip(x.tolist(), off.acceptance(x).tolist(), strict=True)
    )
    assert worst > mpmath.mpf(2) ** -45


@pytest.mark.parametrize("sampler", WIDE, ids=WIDE_IDS)
def test_acceptance_is_decided_by_bits_until_they_decide(sampler, scripted):
    """At the exact threshold further bits decide: zeros accept, ones reject, a clear case none."""
    for x in values_of(sampler, 12).tolist():
        share = accepted_share(sampler, x)
        edge = int(mpmath.floor(share.a * 2**64))
        assert edge == int(mpmath.floor(share.b * 2**64))
        if not 0 < edge < 2**64 - 1:
            continue
        assert sampler.accept(x, edge, 64, scripted(0))
        assert not sampler.accept(x, edge, 64, scripted(2**64 - 1))
        assert sampler.accept(x, edge - 1, 64, scripted())
        assert not sampler.accept(x, edge + 1, 64, scripted())
        # From no bits at all, the same bits give the same decision.
        assert sampler.accept(x, 0, 0, scripted(edge, 0))
        assert not sampler.accept(x, 0, 0, scripted(edge, 2**64 - 1))


@pytest.mark.parametrize("sampler", WIDE, ids=WIDE_IDS)
@pytest.mark.parametrize("away", [2**10, 2**30, 2**33, 2**40], ids=str)
def test_a_wedge_decides_as_the_exact_share_does(sampler, away, scripted):
    """Words just below the exact threshold accept, just above reject, in and out of the margin."""
    x = values_of(sampler, 40)
    edges = [int(mpmath.floor(accepted_share(sampler, value).a * 2**64)) for value in x.tolist()]
    inside = np.array([2**41 < edge < 2**64 - 2**41 for edge in edges])
    x, edges = x[inside], [edge for edge, kept in zip(edges, inside, strict=True) if kept]
    assert len(edges) > 10
    places = np.arange(x.size)
    below = scripted(*(edge - away for edge in edges))
    above = scripted(*(edge + away for edge in edges))
    assert sampler._rejected(x, places, below).size == 0
    assert np.array_equal(sampler._rejected(x, places, above), places)


@pytest.mark.parametrize("sampler", WIDE, ids=WIDE_IDS)
def test_deciding_everything_exactly_changes_nothing(sampler, monkeypatch):
    """With a margin that sends every wedge to exact arithmetic, the same words draw the same."""
    filtered = sampler.draw(6000, SimulatedWords(11))
    decided = []
    exactly = StaircaseSampler.accept
    monkeypatch.setattr(staircase, "_MARGIN", 2.0)
    monkeypatch.setattr(
        StaircaseSampler, "accept", lambda *given: decided.append(exactly(*given)) or decided[-1]
    )
    assert np.array_equal(sampler.draw(6000, SimulatedWords(11)), filtered)
    assert len(decided) > 50
    assert 0.3 < np.mean(decided) < 0.7


@pytest.mark.parametrize("sampler", WIDE, ids=WIDE_IDS)
def test_the_prefix_table_changes_nothing(sampler):
    """Few draws skip the table and many use it: on the same prefixes, the same values."""
    without = StaircaseSampler(sampler.law, sampler.shift)
    prefixes = np.arange(1 << 16, dtype=np.uint16)
    guide, outcomes = sampler.guide()
    assert np.array_equal(outcomes, sampler.cells.prefixes())
    settled = guide != staircase._UNDECIDED
    outcome = without.cells.decide(prefixes[settled], SimulatedWords(0))
    assert not without._wedge(outcome).any()
    assert np.array_equal(without._point(outcome), guide[settled])
    assert without._guide is None


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_the_largest_parameters_fit_their_integers(draw):
    """At the limit, values stay within the stated range, far inside 64 bits."""
    limit = MAX_SCALE if draw is discrete_laplace else MAX_SIGMA2
    reach = 100 * 2**52 if draw is discrete_laplace else 15 * 2**52
    sampler = laplace_sampler(limit) if draw is discrete_laplace else gaussian_sampler(limit)
    assert sampler.steps << sampler.shift < reach < 2**62
    drawn = draw(limit, 20_000)
    assert np.abs(drawn).max() < reach
    assert np.abs(drawn).max() > 2**52

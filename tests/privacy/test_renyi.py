"""Rényi divergences, means and zCDP against sums and integrals at many digits, at orders to 512."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest

from dither import privacy
from dither.errors import ArgumentError
from dither.privacy import Loss

ORDERS = (2, 32, 512)

Pair = Callable[[int], tuple[Any, Any]]


def integers(sigma: float, shift: int) -> Pair:
    """log-masses of discrete Gaussian noise and of the same moved, as a function of the place."""
    v = mpmath.mpf(sigma) ** 2
    far = 30 + int(20 * sigma)
    norm = mpmath.log(mpmath.fsum(mpmath.e ** (-x * x / (2 * v)) for x in range(-far, far + 1)))

    def logs(x: int) -> tuple[Any, Any]:
        return -(mpmath.mpf(x) ** 2) / (2 * v) - norm, -(mpmath.mpf(x - shift) ** 2) / (
            2 * v
        ) - norm

    return logs


def moment(
    log_p: Callable[[int], Any], log_q: Callable[[int], Any], order: float, places: range
) -> Any:
    """D_order of two mass functions on a range that holds all that matters."""
    a = mpmath.mpf(order)
    total = mpmath.fsum(mpmath.e ** (a * log_p(x) + (1 - a) * log_q(x)) for x in places)
    return mpmath.log(total) / (a - 1)


def held(found: Any, truth: Any) -> None:
    """The interval holds the truth, and is as narrow as a billionth of it."""
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1e-9 * float(truth) + 4e-12


@pytest.mark.parametrize(("sigma", "shift"), [(1.0, 1), (0.3, 1), (10.0, 5), (2.5, 3), (0.01, 1)])
@pytest.mark.parametrize("order", ORDERS)
def test_discrete_gaussians_lose_at_high_orders_what_their_tails_say(
    sigma: float, shift: int, order: float
) -> None:
    """Noise beyond what doubles hold decides high orders: nothing of it is cut."""
    with mpmath.workdps(60):
        pair = integers(sigma, shift)
        centre = -round((order - 1) * shift)
        places = range(centre - 60 - int(40 * sigma), centre + 61 + int(40 * sigma))
        truth = moment(lambda x: pair(x)[0], lambda x: pair(x)[1], order, places)
        found = privacy.discrete_gaussian(sigma, sensitivity=shift).renyi(order)
    held(found, truth)
    assert found.upper <= order * shift**2 / (2 * sigma**2) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("sigma", "shift", "rate"), [(1.0, 1, 0.5), (2.0, 3, 0.01), (0.3, 1, 1e-6)]
)
@pytest.mark.parametrize("order", [1.5, 128])
def test_sampled_discrete_gaussians_too(
    sigma: float, shift: int, rate: float, order: float
) -> None:
    """Both directions of a Poisson sample, and a sample of fixed size, by the mixed masses."""
    with mpmath.workdps(40):
        pair = integers(sigma, shift)
        g = mpmath.mpf(rate)
        centre = -round((order - 1) * shift)
        spare = 30 + int(40 * sigma)
        places = range(centre - spare, shift + spare + 1)

        def mixed(x: int) -> Any:
            p, q = pair(x)
            return mpmath.log((1 - g) * mpmath.e**q + g * mpmath.e**p)

        def swapped(x: int) -> Any:
            p, q = pair(x)
            return mpmath.log((1 - g) * mpmath.e**p + g * mpmath.e**q)

        removal = moment(mixed, lambda x: pair(x)[1], order, places)
        addition = moment(lambda x: pair(x)[0], swapped, order, places)
        base = privacy.discrete_gaussian(sigma, sensitivity=shift)
        held(base.poisson(rate).renyi(order), max(removal, addition))
        # Of fixed size: the first pair where the loss is above 0, the second where below.
        total = at_zero = mpmath.mpf(0)
        for x in places:
            p, q = pair(x)
            if p > q:
                total += mpmath.e ** (order * mixed(x) + (1 - order) * q)
                at_zero += (1 - g) * (mpmath.e**p - mpmath.e**q)
            elif p < q:
                total += mpmath.e ** (order * p + (1 - order) * swapped(x))
            else:
                at_zero += mpmath.e**p
        truth = mpmath.log(total + at_zero) / (mpmath.mpf(order) - 1)
        whole = privacy.discrete_gaussian(sigma, sensitivity=shift, neighbours="replace")
        if rate >= 1e-3:
            sample = whole.without_replacement(round(1000 * rate), 1000)
            held(sample.renyi(order), truth)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.1), (3.0, 0.01), (0.5, 0.5)])
def test_gaussians_on_a_sample(sigma: float, rate: float, order: int) -> None:
    """At whole orders a binomial sum, and removal is the worse direction (Mironov and others)."""
    with mpmath.workdps(60):
        g, v = mpmath.mpf(rate), mpmath.mpf(sigma) ** 2
        total = mpmath.fsum(
            math.comb(order, j)
            * (1 - g) ** (order - j)
            * g**j
            * mpmath.e ** (j * (j - 1) / (2 * v))
            for j in range(order + 1)
        )
        truth = mpmath.log(total) / (order - 1)
        found = privacy.gaussian(sigma).poisson(rate).renyi(order)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1e-6 * float(truth)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("b", "rate"), [(1.0, 0.1), (10.0, 0.01), (0.2, 0.5)])
def test_laplaces_on_a_sample(b: float, rate: float, order: float) -> None:
    """Atoms at both ends and the density between."""
    with mpmath.workdps(25):
        a, e, g = mpmath.mpf(order), 1 / mpmath.mpf(b), mpmath.mpf(rate)

        def both(power: Any) -> Any:
            def summand(x: Any) -> Any:
                return power(x) * mpmath.e ** (-(x + e) / 2) / 4

            inner = mpmath.quad(summand, mpmath.linspace(-e, e, 5))
            return inner + power(-e) / 2 + power(e) * mpmath.e**-e / 2

        removal = both(lambda x: (1 - g + g * mpmath.e**x) ** a)
        addition = both(lambda x: (1 - g + g * mpmath.e**x) ** (1 - a))
        truth = max(mpmath.log(removal), mpmath.log(addition)) / (a - 1)
        found = privacy.laplace(b).poisson(rate).renyi(order)
    held(found, truth)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("loss", "masses"),
    [
        (privacy.pure(1.0), None),
        (privacy.discrete_laplace(0.7, sensitivity=3), None),
        (privacy.randomized_response(2.0, k=5), None),
        (privacy.pair([0.5, 0.3, 0.2], [0.2, 0.2, 0.6]), ([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])),
    ],
)
def test_finite_pairs(loss: Loss, masses: Any, order: float) -> None:
    """Few outcomes, summed."""
    with mpmath.workdps(40):
        if masses is None:
            masses = _named(loss.describe())
        p, q = ([mpmath.mpf(x) for x in row] for row in masses)
        sums = [
            mpmath.log(
                mpmath.fsum(
                    x**order * y ** (1 - mpmath.mpf(order)) for x, y in zip(a, b, strict=True)
                )
            )
            for a, b in ((p, q), (q, p))
        ]
        held(loss.renyi(order), max(sums) / (mpmath.mpf(order) - 1))


def _named(text: str) -> Any:
    e = mpmath.e
    if text.startswith("pure"):
        return [e / (1 + e), 1 / (1 + e)], [1 / (1 + e), e / (1 + e)]
    if text.startswith("randomized"):
        whole = e**2 + 4
        return [e**2 / whole, 1 / whole, 3 / whole], [1 / whole, e**2 / whole, 3 / whole]
    r = mpmath.e ** (-1 / mpmath.mpf(0.7))
    places = range(-400, 404)
    norm = (1 - r) / (1 + r)
    return [norm * r ** abs(x) for x in places], [norm * r ** abs(x - 3) for x in places]


def test_the_mean_of_a_discrete_gaussian_is_half_its_square() -> None:
    """KL = s²/(2·sigma²), exactly: the noise's mean is 0."""
    assert privacy.discrete_gaussian(2.0, sensitivity=3).mean() == pytest.approx(9 / 8, rel=1e-14)
    assert (5 * privacy.discrete_gaussian(0.2)).mean() == pytest.approx(5 * 12.5, rel=1e-14)


def test_no_mass_is_said_to_be_lost_for_certain() -> None:
    """Below what doubles hold, a lower end is 0 or true, never a charge for rounding."""
    loss = privacy.discrete_gaussian(1.0)
    with mpmath.workdps(60):
        pair = integers(1.0, 1)
        for e in (20.0, 37.4, 37.6, 45.0):
            truth = mpmath.fsum(
                mpmath.e**p - mpmath.e ** (e + q)
                for p, q in (pair(x) for x in range(-90, 0))
                if p > e + q
            )
            found = loss.delta(e)
            assert found.lower <= truth <= found.upper
        least = loss.epsilon(1e-300)
        for end, above in ((least.lower, True), (least.upper, False)):
            truth = mpmath.fsum(
                mpmath.e**p - mpmath.e ** (end + q)
                for p, q in (pair(x) for x in range(-90, 0))
                if p > end + q
            )
            assert (truth >= mpmath.mpf("1e-300")) == above


def test_a_failure_of_any_size_leaves_no_renyi_divergence() -> None:
    """Infinite with a probability of 1e-250 is infinite."""
    for ask in ("mean", "zcdp", "gdp"):
        with pytest.raises(ArgumentError, match="infinite"):
            getattr(privacy.approximate(1.0, 1e-250), ask)()
    with pytest.raises(ArgumentError, match="infinite"):
        privacy.approximate(1.0, 1e-250).renyi(2)


def test_a_sample_of_noise_too_small_for_doubles_keeps_all_its_mass() -> None:
    """Where P and Q do not meet, a sample tells with its rate, each time."""
    one = privacy.discrete_gaussian(0.01).poisson(0.1)
    assert one.delta(1.0).lower <= 0.1 <= one.delta(1.0).upper <= 0.1 + 1e-9
    many = (10 * one).delta(1.0)
    assert many.lower <= 1 - 0.9**10 <= many.upper
    assert math.isclose(many.upper, 1 - 0.9**10, rel_tol=1e-6)


def test_a_group_of_what_is_sampled_from_unbounded_noise_is_not_called_pure() -> None:
    """The largest atom that is listed is not the largest loss."""
    sample = privacy.discrete_gaussian(1.0, neighbours="replace").without_replacement(1, 10)
    with pytest.raises(ArgumentError, match="pure"):
        sample.group(2)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 20.0])
def test_any_pure_mechanism_is_concentrated_as_its_worst(epsilon: float) -> None:
    """epsilon·tanh(epsilon/2), the mean loss of randomised response, and not epsilon²/2."""
    with mpmath.workdps(40):
        x = mpmath.mpf(repr(epsilon))
        truth = x * mpmath.tanh(x / 2)
        for loss in (privacy.pure(epsilon), privacy.randomized_response(epsilon)):
            found = loss.zcdp()
            assert found.lower <= truth
            assert truth <= mpmath.mpf(repr(float(found.upper))) <= truth * (1 + 1e-15)


@pytest.mark.parametrize(
    "loss",
    [
        privacy.laplace(1.0),
        privacy.laplace(0.1),
        privacy.discrete_laplace(0.3, sensitivity=4),
        privacy.randomized_response(3.0, k=9),
        5 * privacy.pure(1.0) + privacy.gaussian(2.0),
        privacy.pair([0.9, 0.1], [0.5, 0.5]),
        privacy.pure(3.0).poisson(0.1),
        privacy.laplace(1.0) + privacy.discrete_gaussian(2.0),
    ],
)
def test_rho_is_reached_and_never_passed(loss: Loss) -> None:
    """D_a <= rho·a at every order, and some order all but reaches it."""
    found = loss.zcdp()
    assert found.upper <= found.lower * (1 + 2e-3)
    ratios = [loss.renyi(1 + c).upper / (1 + c) for c in (1e-6, 1e-3, 0.1, 0.7, 2.0, 9.0, 90.0)]
    assert max(ratios[1:]) <= found.upper * (1 + 1e-9)
    assert ratios[0] <= found.upper * (1 + 1e-6) + 1e-7

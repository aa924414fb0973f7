"""What each mechanism charges: a table of exact amounts, which a ledger that exists has stored."""

from fractions import Fraction as F

import pytest

from dither.mechanisms import (
    BinaryTree,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    KeyDiscovery,
    KeyThreshold,
    Laplace,
    MaxNorm,
    NoiseRequest,
    NoisyMax,
    Peeling,
    PermuteAndFlip,
    ProposeTestRelease,
    RandomizedResponse,
    SmoothMedian,
    SparseVector,
    Staircase,
    SubsampleAggregate,
    TopK,
    Tulap,
    allocate,
    choose,
)
from dither.privacy import Charge, Neighbours, Promise

DELTA = F(1, 10**6)
MEDIAN = SmoothMedian.for_loss(F(1), DELTA, lower=0, upper=100)
MEDIAN_DELTA = F(19342813109811421699, 19342813113834066795298816)
NEEDS = [NoiseRequest("n", F(3), F(3)), NoiseRequest("cost", F(1500), F(750_000))]
WIDE = [*NEEDS, NoiseRequest("histogram", F(40), F(40), F(2))]
PICK = Exponential(F(1, 4))


def pure(epsilon, rho=None):
    return Charge(F(epsilon), F(0), F(epsilon) ** 2 / 2 if rho is None else F(rho))


def either(epsilon, delta):
    return Charge(F(epsilon), F(delta), F(epsilon) ** 2 / 2, F(delta))


def zcdp(rho):
    return Charge(None, F(0), F(rho))


AMOUNTS = [
    (DiscreteLaplace(F(7, 3)).loss(l1=5), pure(F(15, 7))),
    (DiscreteLaplace(F(2)).loss(l1=F(7, 2)), pure(F(7, 4))),
    (DiscreteLaplace(F(2)).loss(l1=F(1, 2)), pure(F(1, 4))),
    (DiscreteLaplace(F(2)).loss(l1=0), Charge()),
    # A shift too long to list, which the pair rounds up, is charged as it is.
    (DiscreteLaplace(F(10**7, 3)).loss(l1=10**6 + 1), pure(F(3000003, 10**7))),
    (DiscreteLaplace(F(1, 1000)).loss(l1=1), pure(1000)),
    (DiscreteGaussian(F(50)).loss(l2_squared=F(9, 2)), zcdp(F(9, 200))),
    (DiscreteGaussian(F(50)).loss(l2_squared=0), Charge()),
    (DiscreteGaussian(F(10**5)).loss(l2_squared=12), zcdp(F(3, 50_000))),
    (DiscreteGaussian(F(1, 3)).loss(l2_squared=12, coordinates=1), zcdp(18)),
    (Laplace(F(3), F(1, 100)).loss(l1=F(13, 10), dimension=2), pure(F(131, 300))),
    (Gaussian(F(2), F(1, 2)).loss(l2=F(13, 10), dimension=3), zcdp(F(9, 8))),
    (
        Gaussian(F(2), F(1, 2)).loss(l2=1, epsilon=F(1)),
        Charge(
            F(1),
            F(
                413450640678450177766617959052972470279,
                10889035741470030830827987437816582766592,
            ),
            F(1, 4),
        ),
    ),
    (Staircase(F(1, 3), 3, 2).loss(sensitivity=4), pure(F(2, 3))),
    # Five pure mechanisms: the epsilons add up, and so do their rhos.
    (
        Staircase(F(1, 3), 3, 2).loss(sensitivity=4, coordinates=5),
        pure(F(10, 3), 5 * F(2, 3) ** 2 / 2),
    ),
    (Tulap(F(1, 3), F(1, 50)).loss(), either(F(1, 3), F(1, 50))),
    (MaxNorm(F(7, 3), 4).loss(linf=2), pure(F(6, 7))),
    (MaxNorm(F(1, 1000), 2).loss(linf=1), pure(1000)),
    (MaxNorm(F(1, 500), 2).loss(linf=1), pure(500)),
    (
        BinaryTree(7, DiscreteLaplace(F(5))).loss(sensitivity=2),
        pure(F(6, 5), 3 * F(2, 5) ** 2 / 2),
    ),
    (BinaryTree(7, DiscreteGaussian(F(50))).loss(sensitivity=2), zcdp(F(3, 25))),
    (BinaryTree(7, DiscreteGaussian(F(50))).loss(sensitivity=1), zcdp(F(3, 100))),
    (SparseVector(F(6), F(8), 2).loss(sensitivity=1), pure(F(2, 3))),
    (SparseVector(F(6), F(8), 2).loss(sensitivity=1, monotone=True), pure(F(5, 12))),
    (
        SparseVector(F(6), F(8), 2, F(10)).loss(sensitivity=1),
        pure(F(13, 15), F(2, 3) ** 2 / 2 + 2 * F(1, 10) ** 2 / 2),
    ),
    (ProposeTestRelease(F(4), F(6), DELTA).loss(bound=3), either(F(3, 4), DELTA)),
    (MEDIAN.loss(), either(1, MEDIAN_DELTA)),
    (SubsampleAggregate(8, 0, 100, MEDIAN).loss(), either(1, MEDIAN_DELTA)),
    (SubsampleAggregate(8, 0, 100, DiscreteLaplace(F(300))).loss(), pure(F(1, 3))),
    (Exponential(F(1, 5)).loss(sensitivity=3), pure(F(6, 5), F(9, 50))),
    (Exponential(F(1, 5)).loss(sensitivity=3, monotone=True), pure(F(3, 5), F(9, 200))),
    (Exponential(F(300)).loss(sensitivity=1), pure(600, 45_000)),
    (PermuteAndFlip(F(1, 5)).loss(sensitivity=3), pure(F(6, 5))),
    (NoisyMax(F(1, 5), "gumbel").loss(sensitivity=3), pure(F(6, 5), F(9, 50))),
    (NoisyMax(F(1, 5), "laplace").loss(sensitivity=3), pure(F(6, 5))),
    (TopK(F(1, 4), 3).loss(sensitivity=2), pure(3, F(3, 8))),
    (
        Peeling(PICK, 3, DiscreteLaplace(F(9))).loss(sensitivity=2),
        pure(F(11, 3), 3 * F(1) / 8 + 3 * F(2, 9) ** 2 / 2),
    ),
    (Peeling(PICK, 3, DiscreteGaussian(F(90))).loss(sensitivity=2), zcdp(F(53, 120))),
    (RandomizedResponse(F(3, 2), 4).loss(), pure(F(3, 2), F(17574645260059533783, 2**64))),
    (RandomizedResponse(F(1, 1000)).loss(), pure(F(1, 1000), F(9223371268241, 2**64))),
    (RandomizedResponse(F(600)).loss(), pure(600, 600)),
    (KeyThreshold(DiscreteLaplace(F(2)), 1, DELTA).loss(), either(0, DELTA)),
    (choose(epsilon=F(1), l1=10, linf=1).loss(), pure(1)),
    (choose(epsilon=F(1), delta=DELTA, l1=10, linf=1, dimension=1).loss(), either(1, DELTA)),
    (
        choose(epsilon=F(1), delta=DELTA, l1=10, linf=1).loss(),
        Charge(F(1), DELTA, F(21474836480, 766597567363)),
    ),
    (
        choose(epsilon=F(1), delta=DELTA, linf=1, dimension=200).loss(),
        Charge(F(1), DELTA, F(3355443200, 119775336127)),
    ),
    (choose(epsilon=F(1), linf=1, dimension=200).loss(), pure(1)),
    (choose(epsilon=F(6), l1=500, dimension=1).loss(), pure(6)),
    (choose(epsilon=F(1), delta=F(1, 10), l1=1, dimension=1).loss(), either(1, F(1, 10))),
    (allocate(NEEDS, F(1), F(0)).loss(), pure(1, F(1, 4))),
    (
        allocate(WIDE, F(1), DELTA, keys=KeyDiscovery("n", 3)).loss(),
        Charge(F(1), DELTA, F(413204305440639, 18014398509481984), DELTA / 2),
    ),
]


@pytest.mark.parametrize(("loss", "amounts"), AMOUNTS)
def test_amounts(loss, amounts):
    """To the last digit, and without a promise until the caller makes one."""
    assert loss.charge.amounts == amounts
    assert loss.promise is None
    stated = loss.promising("patient")
    assert stated.charge == amounts.promising(Promise("patient", loss.neighbours))


@pytest.mark.parametrize(("loss", "amounts"), AMOUNTS)
def test_amounts_are_true_of_the_loss(loss, amounts):
    """What composes numerically never exceeds what is charged, but where a long shift is cut."""
    if amounts.epsilon is not None and amounts.epsilon < 499:
        delta = float(amounts.delta)
        assert loss.delta(float(amounts.epsilon) * (1 + 1e-5)).lower <= delta * (1 + 1e-9) + 1e-15
    if amounts.rho is not None and not amounts.rho_delta and (amounts.epsilon or 0) < 499:
        assert loss.free or loss.zcdp().lower <= float(amounts.rho) * (1 + 1e-9)


def test_a_choice_says_what_it_costs():
    """The amounts of a choice, and of its loss, are the same, under either relation."""
    for asked in ({"l1": 10, "linf": 1}, {"linf": 1, "dimension": 200, "delta": DELTA}):
        choice = choose(epsilon=F(1), **asked)
        for neighbours in Neighbours:
            assert choice.loss(neighbours=neighbours).charge.amounts == choice.charge
            assert choice.loss(neighbours=neighbours.value).neighbours is neighbours


def test_shares_say_what_they_cost():
    """Each share's amounts are those of its own mechanism."""
    for share in allocate(WIDE, F(1), DELTA, keys=KeyDiscovery("n", 3)).shares:
        assert share.loss().charge.amounts == share.charge

"""Black-box audits: sampled outputs on neighbours never refute a claim, and do refute mutants.

For events fixed in advance, Clopper-Pearson bounds of Pr[M(D) in S] and Pr[M(D') in S] are taken at
a joint level of 1e-7 an audit (shared evenly by all events, both bounds and both directions). The
claim is refuted if the lower bound of the one exceeds e^epsilon times the upper bound of the other
plus delta. So a true claim is refuted with probability at most 1e-7.
"""

import math
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import beta

from dither import noise as samplers
from dither.accounting import delta_of_rho
from dither.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    KeyDiscovery,
    KeyThreshold,
    NoiseRequest,
    QuantileTree,
    allocate,
)
from dither.mechanisms.quantiles.refined_quantiles import RefinedQuantiles
from dither.numeric import SimulatedWords

DRAWS = 200_000


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    """Draw from simulated words, so that each audit is the same in every run."""
    words = SimulatedWords(424242)
    for name in ("discrete_laplace", "discrete_gaussian"):
        sampler = getattr(samplers, name)
        monkeypatch.setattr(samplers, name, lambda p, n, s=sampler: s(p, n, words=words))


def refuted(here, there, epsilon, delta):
    """Whether samples of a statistic on two neighbours refute (epsilon, delta)."""
    cuts = range(-12, 13)
    level = 1e-7 / (8 * len(cuts))
    for one, two in ((here, there), (there, here)):
        for cut in cuts:
            for p, q in ((one >= cut, two >= cut), (one < cut, two < cut)):
                low = beta.ppf(level, p.sum(), p.size - p.sum() + 1) if p.any() else 0.0
                high = beta.ppf(1 - level, q.sum() + 1, q.size - q.sum()) if not q.all() else 1.0
                if low > math.exp(epsilon) * high + delta:
                    return True
    return False


@pytest.mark.parametrize("epsilon", [F(1, 4), F(1), F(2)])
def test_laplace_count(epsilon):
    """A count with Laplace noise keeps its epsilon; half the scale does not."""

    def outputs(mechanism):
        return mechanism.draw(DRAWS), 1 + mechanism.draw(DRAWS)

    honest = DiscreteLaplace.for_loss(epsilon, l1=1)
    assert not refuted(*outputs(honest), float(epsilon), 0)
    assert refuted(*outputs(DiscreteLaplace(honest.scale / 2)), float(epsilon), 0)


@pytest.mark.parametrize("rho", [F(1, 8), F(1, 2)])
def test_gaussian_count(rho):
    """A count with Gaussian noise keeps its (epsilon, delta); a quarter of σ² does not."""

    def outputs(mechanism):
        return mechanism.draw(DRAWS), 1 + mechanism.draw(DRAWS)

    honest = DiscreteGaussian.for_loss(rho, l2_squared=1)
    for epsilon in (F(0), F(1, 2), F(1)):
        delta = float(delta_of_rho(rho, epsilon))
        assert not refuted(*outputs(honest), float(epsilon), delta)
    mutant = DiscreteGaussian(honest.sigma2 / 4)
    assert refuted(*outputs(mutant), 0.5, float(delta_of_rho(rho, F(1, 2))))


def test_key_threshold():
    """A key of one unit shows at most with delta; a threshold that ignores delta gives it away.

    The statistic is the noisy count of the key where it is shown, and -12 where it is not.
    """
    noise, delta = DiscreteLaplace(F(1)), F(1, 200)

    def outputs(tau):
        seen = 1 + noise.draw(DRAWS)
        return np.full(DRAWS, -12), np.where(seen >= tau, seen, -12)

    rule = KeyThreshold(noise, 1, delta)
    assert not refuted(*outputs(rule.tau), 1.0, float(delta))
    assert refuted(*outputs(rule.tau - 2), 1.0, float(delta))
    assert refuted(*outputs(1), 1.0, float(delta))


def test_quantile_tree():
    """All levels together keep epsilon; noise calibrated for one level does not.

    The statistic is the loss-optimal one: the sum, over the levels, of the changed node's sign-like
    score |y| - |y - 1|, which is 1 if the noisy count is at least 1 and -1 otherwise.
    """
    tree, epsilon = QuantileTree(8, 2, 3), F(3, 2)
    l1, _ = tree.sensitivity(max_rows=1, max_groups=1)
    row = np.eye(8, dtype=np.int64)[5:6]

    def outputs(mechanism, repeat=DRAWS // 4):
        found = []
        for present in (0, 1):
            noisy = tree.measure(np.repeat(row * present, repeat, axis=0), mechanism)
            path = [noisy[0][:, 1], noisy[1][:, 2], noisy[2][:, 5]]
            found.append(sum(np.where(level >= 1, 1, -1) for level in path))
        return found

    honest = DiscreteLaplace.for_loss(epsilon, l1=l1)
    assert not refuted(*outputs(honest), float(epsilon), 0)
    mutant = DiscreteLaplace.for_loss(epsilon, l1=1)
    assert refuted(*outputs(mutant), float(epsilon), 0)


@pytest.mark.heavy("test_quantile_tree")
def test_refined_quantiles():
    """The tree of stretches and the trees below keep the sum of their losses.

    The statistic is the sum of the scores of both paths to the changed leaf. Trees below that are
    not charged are refuted, and so is noise in them of a third of its scale.
    """
    layout = RefinedQuantiles(QuantileTree(4, 2, 2), QuantileTree(4, 2, 2), 16)
    first, second, repeat = F(1, 2), F(1), DRAWS // 4
    top = DiscreteLaplace.for_loss(first, l1=2)
    row = np.eye(16, dtype=np.int64)[9]

    def outputs(below):
        found = []
        for present in (0, 1):
            stretches = (row * present).reshape(4, 4)
            counts = np.repeat(stretches.sum(axis=1)[None], repeat, axis=0)
            noisy = layout.top.measure(counts, top)
            opened = layout.measure(
                noisy, lambda _, j, size, s=stretches: s[j], [0.5], (top, below), 0.5
            )
            score = sum(np.where(noisy[i][:, k] >= 1, 1, -1) for i, k in ((0, 1), (1, 2)))
            at = opened.stretch == 2
            inside = sum(np.where(opened.noisy[i][at, k] >= 1, 1, -1) for i, k in ((0, 0), (1, 1)))
            score[opened.group[at]] += inside
            found.append(score)
        return found

    honest = outputs(DiscreteLaplace.for_loss(second, l1=2))
    assert not refuted(*honest, float(first + second), 0)
    assert refuted(*honest, float(first), 0)
    mutant = DiscreteLaplace.for_loss(3 * second, l1=2)
    assert refuted(*outputs(mutant), float(first + second), 0)


def test_whole_allocation():
    """Two counts and a discovered key, released together, keep the whole charge.

    One unit more: both counts rise by 1, and the key is new. The statistic is the
    second count's score, plus 9 if the key shows. A threshold of 1 (a mutant) is caught.
    """
    epsilon, delta = F(1), F(1, 100)
    needs = [NoiseRequest("n", F(1), F(1)), NoiseRequest("m", F(1), F(1))]
    plan = allocate(needs, epsilon, delta, keys=KeyDiscovery("n", 1))
    assert plan.keys is not None
    assert (plan.charge.epsilon, plan.charge.delta) == (epsilon, delta)
    rule = plan.keys

    def outputs(tau):
        first, second = (plan[name].mechanism.draw((2, DRAWS)) for name in ("n", "m"))
        absent = np.where(second[0] >= 1, 1, -1)
        fresh = 1 + first[1]
        present = np.where(1 + second[1] >= 1, 1, -1) + np.where(fresh >= tau, 9, 0)
        return absent, present

    assert not refuted(*outputs(rule.tau), float(epsilon), float(delta))
    assert refuted(*outputs(1), float(epsilon), float(delta))

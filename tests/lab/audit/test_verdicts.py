"""How rarely true claims are accused: which outcomes certify, and at which level a verdict stands.

``benchmarks/audit.py --true`` has the long runs.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dither._stats import lower_bound, upper_bound
from dither.lab.audit import Outcome, audit
from dither.lab.audit._claims import EVENTS, Claim, SharedLevels
from dither.lab.audit._outcomes import describe_outcomes
from dither.numeric import SimulatedWords


def accused(n, epsilon, level):
    """How often two bounds refute a claim that p = 1/2 meets with equality: over both counts."""
    p, q = 0.5, 0.5 * math.exp(-epsilon)
    found = 0.0
    for b in range(int(binom.ppf(1e-9, n, q)), n):
        high = upper_bound(b, n, level)
        least = int(binom.ppf(1e-12, n, p))
        while least <= n and lower_bound(least, n, level) <= math.exp(epsilon) * high:
            least += 1
        if least > n:
            break
        found += binom.pmf(b, n, q) * binom.sf(least - 1, n, p)
    return found


def test_two_bounds_refute_at_the_level_of_verdicts():
    """Where one probability is rare its bound errs alone, as often as it may: that must be rare."""
    levels = SharedLevels(0.01, Claim(3.0))
    assert accused(1_000, 3.0, levels.each) > 1e-4
    assert accused(1_000, 3.0, levels.refuting) < 1e-6 < levels.refuting


def one_sided(seed, epsilon):
    """An event of probability 1/2 on one dataset, and e^-epsilon as likely on the other."""
    rng = np.random.default_rng(seed)
    return lambda data, size: (rng.random(size) < 0.5 * np.exp(-epsilon * data)).astype(int)


def test_more_is_certified_than_claimed():
    """Between both levels there is no verdict, and the audit says so; far beyond there is one."""
    found = audit(one_sided(9, 3.75), 0, 1, 3, samples=2_000, words=SimulatedWords(5))
    assert found.lower > 3
    assert found.verdict is Outcome.NOT_REFUTED
    assert not any(event.refutes for event in found.events)
    summary = found.summary().replace("\n", " ")
    assert "above the claim; a verdict is given at 99.98 % confidence" in summary
    clear = audit(one_sided(9, 4.75), 0, 1, 3, samples=2_000, words=SimulatedWords(5))
    assert clear.verdict is Outcome.VIOLATED
    assert clear.event.refutes
    assert "above the claim" not in clear.summary()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_words_of_the_mechanism_may_split(seed):
    """A mechanism that draws from the audit's own words is split by others: a true claim stands.

    Randomised response: outcomes ordered by the words that made them would all be answered truly
    in the half that certifies.
    """
    drawn = SimulatedWords(seed)
    below = int(0.2 * 2**64)

    def response(bit):
        return bit ^ (int(drawn.words(1)[0]) < below)

    found = audit(
        response,
        False,
        True,
        math.log(4),
        samples=400,
        words=SimulatedWords(seed) if seed else None,
    )
    assert found.verdict is Outcome.NOT_REFUTED
    assert found.lower < math.log(4)


def test_what_certifies_decides_on_no_column():
    """Orders of keys and warnings that only certifying outcomes have add nothing to choose from."""
    outputs = [{"a": 1, "b": 2}] * 9 + [{"b": 2, "a": 1}]
    warned = [()] * 9 + [(("UserWarning", "late"),)]
    for seen, more in ((np.arange(10) < 5, 0), (np.arange(10) > 4, 2)):
        names = [atoms.name for atoms in describe_outcomes(outputs, seen, warned).atoms]
        found = ["the order of the output's keys", "the warnings of the call"]
        assert sum(name in names for name in found) == more


def on_grid(values):
    """Values whose low-order bits say nothing."""
    return np.round(values * 2.0**20) / 2.0**20


PINNED = {
    "laplace": ({"epsilon": 1, "samples": 1_000}, (0.58112764, 0.0, 0.595037616, 4.744526087)),
    "normal": (
        {"epsilon": 1, "delta": 0.127, "samples": 4_000},
        (0.720000519, 0.042474314, 0.856108791, 3.574207329),
    ),
    "vectors": ({"mu": 1, "samples": 2_000}, (4.575307516, 0.772062527, 3.054390023, 5.106265875)),
    "texts": (
        {"epsilon": 0.5, "samples": 600},
        (0.594708648, 0.029088908, 0.462168816, 6.0),
    ),
}


def test_what_is_certified_stays():
    """Of fixed outputs and words, all bounds are those that were found before, to 9 digits."""
    rng = np.random.default_rng(21)
    made = {
        "laplace": lambda d, size: d + on_grid(rng.laplace(0, 1, size)),
        "normal": lambda d, size: d + on_grid(rng.normal(0, 1, size)),
        "vectors": lambda d, size: d + on_grid(rng.normal(0, 0.5, (size, 3))),
        "texts": lambda d: "no" if rng.random() < 0.1 + 0.3 * d else int(rng.integers(3)),
    }
    for name, (options, numbers) in PINNED.items():
        found = audit(made[name], 0, 1, words=SimulatedWords(5), **options)
        both = sum(event.p_lower + event.q_upper for event in found.events)
        assert len(found.events) == EVENTS
        # Bounds are found to a part in 10⁹, and the last number is a sum of twelve.
        assert (found.lower, found.delta, found.mu, both) == pytest.approx(
            numbers, rel=1e-8, abs=1e-8
        )

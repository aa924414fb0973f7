"""Plays of canaries: leaks of few of them, and claims that are met."""

from fractions import Fraction

import numpy as np

from dither import privacy
from dither.lab.audit import audit_canaries


def plays(seed, leak=0.0, shift=1.0):
    """Scores of a Gaussian mechanism, of which some members' give them away."""
    rng = np.random.default_rng(seed)
    inside = rng.normal(shift, 1, 40_000) + np.where(rng.random(40_000) < leak, 12, 0)
    return inside, rng.normal(0, 1, 40_000)


def test_a_leak_of_one_canary_in_four_hundred_is_seen():
    """Alarms of members, and none of others: no threshold between percentiles shows it."""
    claim = privacy.gaussian(1)  # 4.38 at 1e-5: of 1,300 alarms none may be false
    clean, leaky = (audit_canaries(*plays(1, leak), claim) for leak in (0.0, 1 / 15))
    assert clean.verdict == "not refuted"
    assert leaky.verdict == "violated"
    assert leaky.lower > leaky.claimed
    # An epsilon of 1 is refuted by fifty.
    small = privacy.gaussian(Fraction(40, 10))
    assert audit_canaries(*plays(2, 1 / 400, 0.25), small).verdict == "violated"
    assert audit_canaries(*plays(2, 0.0, 0.25), small).verdict == "not refuted"


def test_more_may_be_certified_than_a_verdict_is_given_for():
    """A claim a little below the truth: the summary says why there is no verdict yet."""
    found = audit_canaries(
        *plays(3, 0.0, 1.04), privacy.gaussian(1), family=lambda noise: privacy.gaussian(noise)
    )
    if found.verdict == "not refuted" and found.within > found.claimed:
        assert "play more" in found.summary()


def test_true_claims_are_not_accused():
    """The family's lower bound errs as rarely as stated, and no verdict does."""
    above = 0
    for seed in range(6):
        inside, outside = plays(100 + seed)
        found = audit_canaries(
            inside[:2000], outside[:1500], privacy.gaussian(1), confidence=0.9, delta=0.1
        )
        assert found.verdict == "not refuted"
        above += found.lower > found.claimed
    assert above <= 3

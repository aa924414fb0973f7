"""What composes channels checks what they promise, and never states less than they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.local.channel import Channel
from dither.local.domain import Domain
from dither.local.finite import worst_pair
from dither.local.guarantee import Guarantee
from dither.local.structures.parts import Maker

STRUCTURES: dict[str, Callable[[Maker], local.Structure]] = {
    "attributes, sampled": lambda make: local.Attributes({"age": 10}, epsilon=1, channel=make),
    "attributes, split": lambda make: local.Attributes(
        {"age": 10, "sex": 2}, epsilon=1, method="split", channel=make
    ),
    "item sets": lambda make: local.ItemSets(9, epsilon=1, padding=2, channel=make),
    "key-value": lambda make: local.KeyValue(4, (0, 1), epsilon=1, padding=2, channel=make),
    "marginals": lambda make: local.Marginals({"a": 2, "b": 5}, 2, epsilon=1, channel=make),
    "heavy hitters": lambda make: local.HeavyHitters("ab", 3, epsilon=1, bits=8, channel=make),
}


class Boastful(local.GRR):
    """A channel of somebody's own, which spends three times what it is given, and says so."""

    kind = "test-boastful"

    def __init__(self, domain: Any, epsilon: Any) -> None:
        local.GRR.__init__(self, domain, 3 * Fraction(epsilon))


class Forgetful(local.GRR):
    """States the epsilon that it was given, beside a matrix that says more."""

    kind = "test-forgetful"

    @property
    def guarantee(self) -> Guarantee:
        true = Guarantee.uniform(Fraction(3))
        return replace(true, epsilon=self.epsilon)


def uneven(domain: Domain, epsilon: Fraction) -> Channel:
    """Two budgets, of which the larger is twice what was given."""
    return local.MinIDLDP(domain, [epsilon] + [2 * epsilon] * (len(domain) - 1))


BAD: dict[str, Maker] = {
    "an epsilon for each step": local.TruncatedGeometric,
    "graded, infinite": lambda domain, epsilon: local.SDGRR(domain, {0}, epsilon),
    "graded, URR": lambda domain, epsilon: local.URR(domain, {0}, epsilon),
    "two budgets": uneven,
    "twice the epsilon": lambda domain, epsilon: local.OUE(domain, 2 * epsilon),
    "a hair more": lambda domain, epsilon: local.GRR(domain, epsilon + Fraction(1, 10**30)),
    "somebody's own": Boastful,
    "a matrix that says more": Forgetful,
    "another domain": lambda domain, epsilon: local.GRR(len(domain) + 1, epsilon),
    "no channel": lambda domain, epsilon: None,  # type: ignore[arg-type,return-value]
    "one argument": lambda domain: local.GRR(domain, 1),  # type: ignore[misc]
    "no maker": 1,  # type: ignore[dict-item]
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_a_part_that_promises_less_than_it_was_handed_is_refused(
    structure: Callable[[Maker], local.Structure], make: Maker
) -> None:
    """No structure is made on a part whose worst pair of values costs more than its share."""
    with pytest.raises(ArgumentError, match="channel must"):
        structure(make)


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
@pytest.mark.parametrize(
    "make",
    [
        local.GRR,
        local.OUE,
        local.SUE,
        local.OLH,
        local.BLH,
        local.Hadamard,
        local.SubsetSelection,
        local.SHE,
        local.THE,
        lambda d, e: local.TruncatedGeometric(d, e / (len(d) - 1)),
        lambda d, e: local.MinIDLDP(d, [e] * len(d)),
        lambda d, e: local.RAPPOR(d, 2 * e, once=e),
    ],
)
def test_parts_that_keep_their_share_are_taken(
    structure: Callable[[Maker], local.Structure], make: Maker
) -> None:
    """What is plain local DP at its share carries a structure, whatever its own parameters are."""
    made = structure(make)
    assert made.guarantee.epsilon == 1
    parts = len(made.parts) if getattr(made, "method", "") == "split" else 1
    assert all(part.guarantee.epsilon * parts <= 1 for part in made.parts.values())


def test_the_stated_epsilon_is_that_of_the_reports() -> None:
    """By the exact laws: no two rows are told apart by more than the structure states."""
    made = local.Attributes({"a": 4, "b": 3}, epsilon=1, method="split")
    worst = 0.0
    for part in made.parts.values():
        assert isinstance(part, local.FiniteChannel)
        codes = np.arange(len(part.domain))
        worst += worst_pair(part, codes, codes, part.epsilon).ratio
    assert worst <= float(made.guarantee.epsilon) * (1 + 1e-15)


def test_classes_state_the_largest_epsilon_of_any_pair_of_values() -> None:
    """A class whose epsilon is for a step is not counted by the step."""
    metric = local.TruncatedGeometric(10, 1)
    both = local.Personalised({"metric": metric, "plain": local.GRR(10, 2)})
    assert both.guarantee.epsilon == 9
    pair = both.guarantee.pairs["metric: all values", "metric: all values"]
    exact = worst_pair(metric, np.array([0]), np.array([9]), both.guarantee.epsilon)
    assert exact.delta <= pair.delta
    assert exact.ratio <= pair.ratio

"""What composes channels checks what they promise, and never states less than they cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.local._channel import Channel
from dither.local._domain import Domain
from dither.local._guarantee import Guarantee
from dither.local._oracles import worst_pair
from dither.local._structures.parts import Maker

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


def test_the_refusal_of_a_part_shows_by_what_it_is_refused() -> None:
    """A loss that is only just too large is not printed as the one that was asked for."""
    over = 1 + Fraction(1, 10**12)
    with pytest.raises(ArgumentError, match=r"epsilon = 1 or less.* has 1\.00001;"):
        local.Attributes({"a": 2, "b": 3}, epsilon=1, channel=lambda d, e: local.GRR(d, e * over))


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


WRITTEN: list[local.Structure] = [
    *(make(local.OUE) for make in STRUCTURES.values()),
    local.Attributes({"b": ["x", "y"], "a": 3}, epsilon="0.7"),
    local.FakeData({"a": 3, "b": 2}, epsilon=1, protects="attribute"),
    local.Marginals({"z": 2, "a": ["x", "y", "w"]}, [("z", "a"), ("a",)], epsilon=1),
    local.HeavyHitters("abc", 7, epsilon=1, first=2, step=4, bits=8),
    local.HeavyHitters("abc", 2, epsilon=1, bits=8),
]


@pytest.mark.parametrize("structure", WRITTEN, ids=lambda s: s.kind)
def test_structures_are_written_and_read(structure: local.Structure) -> None:
    """Through JSON, a structure and its counts come back with the same hash, parts and promise."""
    text = json.dumps(structure.to_dict(), sort_keys=True)
    again = local.structure_from_dict(json.loads(text))
    assert (again.hash, type(again)) == (structure.hash, type(structure))
    assert again.to_dict() == structure.to_dict()
    assert again.guarantee == structure.guarantee
    assert list(again.parts) == list(structure.parts)
    counts = structure.aggregate({name: [] for name in structure.parts})
    told = local.PartCounts.from_dict(json.loads(json.dumps(counts.to_dict(), sort_keys=True)))
    assert (told.hash, told.n) == (counts.hash, 0)
    assert list(told.parts) == list(structure.parts)


@pytest.mark.parametrize("structure", WRITTEN, ids=lambda s: s.kind)
def test_counts_with_a_part_missing_are_refused(structure: local.Structure) -> None:
    """No part is dropped in silence, exchanged, doubled or made up."""
    found = structure.aggregate({}).to_dict()
    first = next(iter(found["parts"]))
    fewer = {name: part for name, part in found["parts"].items() if name != first}
    more = {**found["parts"], "another": found["parts"][first]}
    other = local.GRR(77, 1).aggregate([0]).to_dict()
    for parts in (fewer, more, {}, {**found["parts"], first: other}, None, [1]):
        with pytest.raises(ArgumentError):
            local.PartCounts.from_dict({**found, "parts": parts})
    for key in found:
        with pytest.raises(ArgumentError):
            local.PartCounts.from_dict({name: v for name, v in found.items() if name != key})
    described = structure.to_dict()
    for wrong in (
        {**described, "parts": described["parts"][1:]},
        {**described, "parts": [*described["parts"], ["more", local.GRR(3, 1).to_dict()]]},
        {**described, "settings": {**described["settings"], "epsilon": "1/3"}},
        {**described, "version": 2},
        {**described, "structure": "unheard"},
    ):
        with pytest.raises(ArgumentError):
            local.structure_from_dict(wrong)


def test_a_description_cannot_promise_more_than_its_parts() -> None:
    """A file that puts a metric or a graded channel into a structure is refused as a maker is."""
    described = local.Attributes({"age": 10}, epsilon=1).to_dict()
    for part in (
        local.TruncatedGeometric(10, 1),
        local.SDGRR(10, {0}, 1),
        local.GRR(10, 2),
    ):
        with pytest.raises(ArgumentError):
            local.structure_from_dict({**described, "parts": [["age", part.to_dict()]]})


def test_an_offer_with_a_class_missing_is_refused() -> None:
    """What people could choose from is written with the counts, and held against them."""
    offer = local.Personal.of(local.GRR, 3, epsilons=[1, 2])
    found = json.loads(json.dumps(offer.aggregate({0: [0], 1: [1, 2]}).to_dict()))
    assert local.PartCounts.from_dict(found).n == 3
    for wrong in (
        {**found, "parts": found["parts"][:1]},
        {**found, "parts": found["parts"][::-1]},
        {**found, "lost": -1},
        {**found, "hash": "0" * 64},
        {**found, "personal": {"version": 1, "channels": []}},
        *({name: v for name, v in found.items() if name != key} for key in found),
    ):
        with pytest.raises(ArgumentError):
            local.PartCounts.from_dict(wrong)


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
    both = local.Personal({"metric": metric, "plain": local.GRR(10, 2)})
    assert both.guarantee.epsilon == 9
    pair = both.guarantee.pairs["metric: all values", "metric: all values"]
    exact = worst_pair(metric, np.array([0]), np.array([9]), both.guarantee.epsilon)
    assert exact.delta <= pair.delta
    assert exact.ratio <= pair.ratio

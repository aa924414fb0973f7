"""A state that charges change in place is what `BlockState` makes of them, and has its text."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from dither.blocks._sets import BlockSet
from dither.ledger._states import NO_SPENDING, BlockState, Units
from dither.ledger.verification._rolling import RollingState

TENTH: Units = (10**17, 0, 5 * 10**15, 0)
AMOUNTS: tuple[Units, ...] = (TENTH, TENTH, (3, 1, 2, 0), (0, 0, 0, 0), (0, 0, 1, 1))


def month(number: int) -> BlockSet:
    return BlockSet.of_range(number, number)


def drawn(draws: random.Random, width: int) -> BlockSet:
    """A set of blocks: mostly one, some ranges, some without end, some by name."""
    kind, first = draws.random(), draws.randrange(width)
    if kind < 0.8:
        longer = draws.randrange(4) if draws.random() < 0.2 else 0
        return BlockSet(((first, first + longer),), parallel=draws.random() < 0.2)
    if kind < 0.85:
        return BlockSet(((None, first) if draws.random() < 0.5 else (first, None),))
    if kind < 0.93:
        count = draws.randrange(1, 25)
        return BlockSet(tuple((3 * i, 3 * i + draws.randrange(2)) for i in range(count)))
    names = draws.sample(["null", "others", "table ä"], draws.randrange(1, 3))
    return BlockSet(((1, 2),) if draws.random() < 0.5 else (), frozenset(names))


@pytest.mark.parametrize(("seed", "width"), [(1, 1), (2, 3), (3, 20), (4, 60), (5, 700)])
def test_it_is_what_the_same_charges_make_of_a_state(seed: int, width: int) -> None:
    """Whatever is charged; with more amounts than a byte counts, and with infinite ones."""
    draws = random.Random(seed)
    state, rolling = NO_SPENDING, RollingState(NO_SPENDING)
    most = 0
    for step in range(1200 if width > 256 else 400):
        # Of a wide one single blocks alone at first, so that their amounts become many.
        blocks = month(draws.randrange(width)) if step < width else drawn(draws, width)
        charge = draws.choice(AMOUNTS)
        if step < width and width > 256:
            charge = (draws.randrange(10**6), 0, draws.randrange(10**6), 0)
        elif draws.random() < 0.01:
            charge = (None, 0, 5, 1)
        state, _ = state.plus(blocks, charge)
        rolling.charge(blocks, charge)
        if draws.random() < 0.5:
            assert rolling.text() == state.text(), step
        if draws.random() < 0.1:
            assert rolling.state() == state
            assert rolling.state().text() == state.text()
        most = max(most, len(set(state.spent)))
    assert rolling.text() == state.text()
    assert (most > 256) == (width > 256)


def months(amounts: list[int]) -> BlockState:
    """What months have spent, from the first on, each so many tenths."""
    state = NO_SPENDING
    for number, times in enumerate(amounts):
        charge = tuple(times * (amount or 0) for amount in TENTH)
        state, _ = state.plus(month(number), charge)  # type: ignore[arg-type]
    return state


@pytest.mark.parametrize(
    ("amounts", "charged"),
    [
        ([5, 9, 2], 1),
        ([5, 9, 5], 2),
        ([5, 9, 5], 0),
        ([6, 9, 5], 2),
        ([5, 9, 6], 0),
        ([4, 5, 9, 5, 6], 1),
        ([4, 6, 9, 5, 6], 3),
        ([1, 5, 1, 6, 1, 5], 5),
        ([1, 5, 6, 1, 5], 1),
    ],
)
def test_amounts_that_come_and_go_are_numbered_anew(amounts: list[int], charged: int) -> None:
    """An amount is new or not, comes before or after, and was another's or not."""
    state = months(amounts)
    rolling = RollingState(state)
    assert rolling.text() == state.text()
    for _ in range(3):
        state, _ = state.plus(month(charged), TENTH)
        rolling.charge(month(charged), TENTH)
        assert rolling.text() == state.text()
        assert rolling.state() == state


def test_one_unit_of_one_field_of_one_block_is_another_text() -> None:
    """The text of a rolling state forgets nothing that it kept as text."""
    state = months([5, 9, 5, 6, 2])
    rolling = RollingState(state)
    texts = [rolling.text()]
    for number in range(5):
        for field in range(4):
            unit = tuple(int(place == field) for place in range(4))
            state, _ = state.plus(month(number), unit)  # type: ignore[arg-type]
            rolling.charge(month(number), unit)  # type: ignore[arg-type]
            texts.append(rolling.text())
            assert texts[-1] == state.text()
    assert all(one != two for one, two in pairwise(texts))
    assert len(set(texts)) == len(texts)

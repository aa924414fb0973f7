"""Sets of two and more items: the promise over all sets of a person, shares, and the rounds."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.local import CandidateCount, CandidateSets, FrequentItemSets, FrequentSets
from dither.local._coins import exp_bounds
from dither.local._oracles import FiniteChannel
from dither.numeric import SimulatedWords

SETS = [[0], [1], [2], [0, 1], [0, 1, 2]]


def law(made: CandidateSets, record: set[int]) -> list[Fraction]:
    """The exact chances of every report of a person who has these items."""
    channel = made.channel
    assert isinstance(channel, FiniteChannel)
    held = [place for place, one in enumerate(made.sets) if set(one) <= record]
    dummies = range(len(made.sets), len(made.sets) + max(0, made.padding - len(held)))
    picks = [*held, *dummies]
    return [
        sum((channel.exact(x, y) for x in picks), Fraction(0)) / len(picks)
        for y in range(channel.outputs)
    ]


@pytest.mark.parametrize("padding", [1, 2, 3, 6])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_any_two_sets_of_a_person_are_hidden(padding: int, epsilon: str) -> None:
    """All pairs of all sets of items, exactly; and with slots the channel has more than epsilon."""
    made = CandidateSets(3, SETS, epsilon, padding=padding)
    records = [set(some) for n in range(4) for some in itertools.combinations(range(3), n)]
    low, _ = exp_bounds(made.epsilon)
    laws = [law(made, record) for record in records]
    worst = max(
        p / q
        for one, other in itertools.permutations(laws, 2)
        for p, q in zip(one, other, strict=True)
    )
    assert worst <= low
    assert worst >= low * Fraction(4, 5)
    assert (made.channel.epsilon > made.epsilon) is (padding > 1)


def test_reports_have_the_law_that_is_proved() -> None:
    """Drawn reports of three sets, against the exact chances (false alarm 1e-9)."""
    made = CandidateSets(3, SETS, 1, padding=2)
    for record in ({0}, {0, 1, 2}, set()):
        n = 200_000
        drawn = made.draw([record] * n, SimulatedWords(5))["set"]
        counts = np.bincount(drawn, minlength=len(SETS) + 2)
        expected = np.array([float(p) for p in law(made, record)]) * n
        # Of chi-squared with six degrees of freedom.
        assert ((counts - expected) ** 2 / expected).sum() < 60


def people(n: int, seed: int = 1) -> list[list[str]]:
    """Sets in which three items come together."""
    rng = np.random.default_rng(seed)
    base = rng.random((n, 12)) < np.linspace(0.3, 0.02, 12)
    base[rng.random(n) < 0.3, 3:6] = True
    return [[f"item {i}" for i in np.flatnonzero(row)] for row in base]


def share(records: list[list[str]], *items: str) -> float:
    """Of the people who have all of these."""
    return float(np.mean([set(items) <= set(record) for record in records]))


ITEMS = [f"item {i}" for i in range(12)]


def test_shares_of_sets() -> None:
    """Within six standard errors of the truth, where nobody holds more than the padding."""
    records = people(60_000)
    asked = [["item 3", "item 4"], ["item 0", "item 5"], ["item 5", "item 4", "item 3"]]
    made = CandidateSets(ITEMS, asked, 3, padding=3)
    found = made.aggregate(made.draw(records, SimulatedWords(3))).estimate()
    truth = [share(records, *one) for one in asked]
    assert np.all(np.abs(found.shares - truth) < 6 * found.standard_errors)
    assert found.values[2] == "item 3 + item 4 + item 5"
    assert "more than 3" in found.notes[0]


def test_padding_is_what_nine_in_ten_do_not_exceed() -> None:
    """Of those who hold any candidate; one where nobody does."""
    held = CandidateCount(4, [[0], [1], [2], [3]], 8, most=4)
    records = [[0]] * 4000 + [[0, 1]] * 4000 + [[0, 1, 2]] * 1500 + [[0, 1, 2, 3]] * 500
    counts = held.aggregate(held.draw(records, SimulatedWords(1)))
    assert [held.padding(counts, share) for share in (0.3, 0.6, 0.9, 1)] == [1, 2, 3, 4]
    nobody = held.aggregate(held.draw([[]] * 10, SimulatedWords(2)))
    assert held.padding(nobody) >= 1


def test_rounds_find_what_comes_together() -> None:
    """Three items that come together are found, with shares near the truth."""
    records = people(80_000)
    found = FrequentItemSets(ITEMS, 4, k=8).run(records, SimulatedWords(4))
    names = [name for name, _ in found.top(8)]
    assert "item 3 + item 4" in names
    assert "item 3 + item 4 + item 5" in names
    frame = found.frame
    rows = {name: (at, error) for name, at, error in frame.select(frame.columns[:3]).iter_rows()}
    for name in names:
        at, error = rows[name]
        # Nine in ten do not exceed the padding: the tenth takes a little of every share.
        assert abs(at - share(records, *name.split(" + "))) < 6 * error + 0.05
    assert "item 3" in repr(found)
    assert "± one s.e." in found.summary()


def test_rounds_ask_everybody_once() -> None:
    """Shares of the rounds add up to all people, and each round knows its own counts alone."""
    plan = FrequentItemSets(6, 2, k=2)
    step: Any = plan.first
    total, names = Fraction(0), []
    for _ in range(9):
        total += step.share
        names.append(step.name)
        assert step.structure.epsilon == plan.epsilon
        with pytest.raises(ArgumentError, match=f"structure of round '{step.name}'"):
            step.after(CandidateSets(2, [[0]], 1, padding=1).aggregate({"set": [0]}))
        reports = step.structure.draw([{0, 1}, {0, 1, 2}, {3}] * 900, SimulatedWords(7))
        step = step.after(step.structure.aggregate(reports))
        if isinstance(step, FrequentSets):
            break
    assert names == ["items", "item counts", "items again", "set counts", "sets"]
    assert total == 1
    assert plan.guarantee.epsilon == plan.epsilon
    assert "25%" in repr(plan.first)


def test_rounds_need_somebody_to_ask() -> None:
    """Of ten people a round of one in twenty has none; eleven play all of them."""
    plan = FrequentItemSets(4, 4, k=2)
    for records in ([], [{0}] * 10):
        with pytest.raises(ArgumentError, match="records must be of more people"):
            plan.run(records)
    assert plan.run([{0}] * 11).top(1)


def test_one_item_alone_has_no_sets() -> None:
    """Where only one item is looked for no set can be made of it."""
    found = FrequentItemSets(4, 4, k=1).run([{0}, {0, 1}] * 3000, SimulatedWords(1))
    assert found.sets is None
    assert found.top(1)[0][0] == "0"


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([[0, 0]], "none twice"),
        ([[]], "at least one item"),
        ([[0], [0]], "all be different"),
        ([[0, 1], [1, 0]], "all be different"),
        ([], "from 1 to"),
        ("ab", "list of sets"),
        ([0], "each a list"),
        ([[7]], "domain"),
    ],
)
def test_candidates_are_sets_of_items(sets: Any, words: str) -> None:
    """Each of known items, and none twice."""
    with pytest.raises(ArgumentError, match=words):
        CandidateSets(3, sets, 1, padding=1)


def test_candidates_whose_names_are_alike_are_refused() -> None:
    """A number and its text, which estimates would show alike."""
    with pytest.raises(ArgumentError, match="told apart"):
        CandidateSets([1, "1"], [[1], ["1"]], 1, padding=1)

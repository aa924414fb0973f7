"""Structured values: unbiased within their errors, private as a whole, mergeable."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither.errors import ArgumentError
from dither.local import GRR
from dither.local._structures.attributes import Attributes
from dither.local._structures.fake_data import FakeData
from dither.local._structures.item_sets import ItemSets, KeyValue, sampled_slots
from dither.local._structures.marginals import Marginals
from dither.local._structures.parts import PartCounts, Structure
from dither.numeric import SimulatedWords

DOMAINS = {"smokes": ["no", "yes"], "region": 4, "sex": ["f", "m"]}


def people(n: int) -> dict[str, Any]:
    """A table in which region depends on smoking, and sex on neither."""
    rng = np.random.default_rng(8)
    smokes = rng.random(n) < 0.3
    region = np.where(smokes, rng.integers(0, 2, n), rng.integers(0, 4, n))
    return {
        "smokes": np.where(smokes, "yes", "no"),
        "region": region,
        "sex": np.where(rng.random(n) < 0.5, "f", "m"),
    }


def shares_of(column: Any, values: Any) -> Any:
    return np.array([(np.asarray(column) == v).mean() for v in values])


@pytest.mark.parametrize("method", ["sample", "split"])
def test_attributes(method: str) -> None:
    """Each attribute's shares lie within six standard errors of the truth."""
    survey, table = Attributes(DOMAINS, epsilon=2, method=method), people(60_000)
    counts = survey.aggregate(survey.draw(table, SimulatedWords(3)))
    found = counts.estimate()
    for name, estimate in found.items():
        truth = shares_of(table[name], estimate.values)
        assert np.all(np.abs(estimate.shares - truth) < 6 * estimate.standard_errors)
    assert counts.n == (60_000 if method == "sample" else 180_000)


def test_sampling_beats_splitting() -> None:
    """At small epsilon a sampled attribute is known better than a split one."""
    errors = []
    for method in ("sample", "split"):
        survey = Attributes({str(i): 4 for i in range(6)}, epsilon=1, method=method)
        table = {str(i): np.zeros(6_000, dtype=int) for i in range(6)}
        counts = survey.aggregate(survey.draw(table, SimulatedWords(3)))
        errors.append(counts.estimate()["0"].standard_errors.mean())
    assert errors[0] < 0.7 * errors[1]


def test_sampled_errors_are_real() -> None:
    """Over many surveys the estimate varies as its standard error says, within 5 %."""
    survey = Attributes({"a": 3, "b": 2}, epsilon=1)
    table = {"a": np.repeat([0, 1, 2], [500, 300, 200]), "b": np.zeros(1_000, dtype=int)}
    runs = [
        survey.aggregate(survey.draw(table, SimulatedWords(i))).estimate()["a"]
        for i in range(1_500)
    ]
    seen = np.array([run.shares for run in runs]).std(axis=0)
    stated = np.mean([run.standard_errors for run in runs], axis=0)
    np.testing.assert_allclose(seen, stated, rtol=0.08)


def row_law(structure: FakeData) -> dict[tuple[int, ...], dict[tuple[int, ...], Fraction]]:
    """Pr[all reports | row], exactly, for every row."""
    parts = list(structure.channels.values())
    sizes = [len(part.domain) for part in parts]
    rows = list(itertools.product(*(range(k) for k in sizes)))
    law: dict[tuple[int, ...], dict[tuple[int, ...], Fraction]] = {}
    for x in rows:
        law[x] = {}
        for y in rows:
            total = Fraction(0)
            for j, part in enumerate(parts):
                others = math.prod(k for i, k in enumerate(sizes) if i != j)
                total += part.exact(x[j], y[j]) / others  # type: ignore[attr-defined]
            law[x][y] = total / len(parts)
    return law


@pytest.mark.parametrize("sizes", [(2, 2), (2, 5), (3, 3, 2)])
@pytest.mark.parametrize("protects", ["row", "attribute"])
def test_fake_data_promise(sizes: tuple[int, ...], protects: str) -> None:
    """RS+FD keeps epsilon for what it names, for all pairs of rows, and nearly reaches it."""
    made = FakeData({str(i): k for i, k in enumerate(sizes)}, epsilon=1, protects=protects)
    worst = 0.0
    law = row_law(made)
    for x, z in itertools.permutations(law, 2):
        if protects == "attribute" and sum(a != b for a, b in zip(x, z, strict=True)) > 1:
            continue
        worst = max(worst, *(math.log(law[x][y] / law[z][y]) for y in law))
    assert worst <= 1 + 1e-12
    assert worst >= 1 - 1e-6


def test_fake_data_of_the_literature_breaks() -> None:
    """With the literature's epsilon' whole rows are told apart beyond epsilon."""
    made = FakeData({"a": 3, "b": 3}, epsilon=1, protects="attribute")
    law = row_law(made)
    x, z = (0, 0), (1, 1)
    assert math.log(law[x][x] / law[z][x]) > 1.4
    assert "for each attribute" in str(made.guarantee)
    # An account of whole people is charged what whole rows cost.
    worst = max(law[a][y] / law[b][y] for a in law for b in law for y in law)
    assert made.guarantee.loss().epsilon(delta=0).upper >= math.log(worst) - 1e-12
    assert made.guarantee.per_unit == 1


def test_fake_data_estimates() -> None:
    """Shares from RS+FD lie within six standard errors of the truth."""
    table = people(60_000)
    for protects in ("row", "attribute"):
        survey = FakeData(DOMAINS, epsilon=2, protects=protects)
        found = survey.aggregate(survey.draw(table, SimulatedWords(4))).estimate()
        for name, one in found.items():
            truth = shares_of(table[name], one.values)
            assert np.all(np.abs(one.shares - truth) < 6 * one.standard_errors)


def test_marginals() -> None:
    """Joint shares are near the truth, and agree on what they share once made consistent."""
    table, survey = people(90_000), Marginals(DOMAINS, of=2, epsilon=2)
    counts = survey.aggregate(survey.draw(pl.DataFrame(table), SimulatedWords(5)))
    raw, agreed = counts.estimate(consistent=False), counts.estimate()
    for name, m in raw.items():
        a, b = m.attributes
        truth = np.array(
            [
                [((table[a] == x) & (table[b] == y)).mean() for y in survey.domains[b].values]
                for x in survey.domains[a].values
            ]
        )
        assert np.all(np.abs(m.table - truth) < 6 * m.standard_errors.reshape(m.shape))
        assert np.abs(agreed[name].table - truth).max() < 6 * m.standard_errors.max()
    one, two = agreed["smokes × region"], agreed["smokes × sex"]
    np.testing.assert_allclose(one.of("smokes"), two.of("smokes"), atol=1e-3)
    np.testing.assert_allclose(one.of("region", "smokes"), one.table.T)
    gap = np.abs(raw["smokes × region"].of("smokes") - raw["smokes × sex"].of("smokes")).max()
    assert gap > np.abs(one.of("smokes") - two.of("smokes")).max()


def test_slots_are_fair() -> None:
    """Each item of a small set is picked with chance 1/padding, of a large one 1/length."""
    lengths = np.array([0, 2, 5])
    drawn = np.zeros((3, 6))
    for seed in range(60):
        place, real = sampled_slots(np.tile(lengths, 500), 3, SimulatedWords(seed))
        starts = np.concatenate([[0], np.cumsum(np.tile(lengths, 500))[:-1]])
        for i in range(3):
            mine = np.arange(1_500) % 3 == i
            inside = (place - starts)[mine & real]
            drawn[i] += np.append(np.bincount(inside, minlength=5), (mine & ~real).sum())
    expected = np.array([[0] * 5 + [1], [1 / 3] * 2 + [0] * 3 + [1 / 3], [0.2] * 5 + [0]]) * 30_000
    from local.laws import chi_square_passes

    assert all(chi_square_passes(a, b) for a, b in zip(drawn, expected, strict=True))


def test_item_sets() -> None:
    """Shares of people with an item, from sets within the padding; repeats count once."""
    rng = np.random.default_rng(2)
    sets = [
        [item for item, share in zip("abcd", (0.6, 0.3, 0.1, 0.5), strict=True) if u < share]
        for u in rng.random(40_000)
    ]
    survey = ItemSets(list("abcde"), epsilon=3, padding=4)
    doubled = [s + s for s in sets]
    found = survey.aggregate(survey.draw(doubled, SimulatedWords(6))).estimate()
    truth = np.array([np.mean([i in s for s in sets]) for i in "abcde"])
    assert np.all(np.abs(found.shares - truth) < 6 * found.standard_errors)
    assert [item for item, _ in found.top(2)] == ["a", "d"]
    assert "more than 4" in found.notes[0]


def test_key_values() -> None:
    """Shares of keys and means of values, within six standard errors."""
    rng = np.random.default_rng(3)
    pairs = []
    for _ in range(40_000):
        pair = {}
        if rng.random() < 0.7:
            pair["film"] = rng.uniform(3, 5)
        if rng.random() < 0.4:
            pair["book"] = rng.uniform(0, 2)
        pairs.append(pair)
    survey = KeyValue(["film", "book", "song"], (0, 5), epsilon=3, padding=2)
    found = survey.aggregate(survey.draw(pairs, SimulatedWords(7))).estimate()
    assert np.all(np.abs(found.shares - [0.7, 0.4, 0.0]) < 6 * found.share_errors)
    assert np.all(np.abs(found.means[:2] - [4.0, 1.0]) < 6 * found.mean_errors[:2])
    assert found.mean_errors[0] < 0.2


STRUCTURES: list[tuple[Structure, Any]] = [
    (Attributes(DOMAINS, epsilon=1), people(90)),
    (FakeData(DOMAINS, epsilon=1), people(90)),
    (Marginals(DOMAINS, of=[("smokes", "sex")], epsilon=1), people(90)),
    (ItemSets(3, epsilon=1, padding=2), [{0}, {1, 2}, []] * 30),
    (KeyValue(3, (0, 1), epsilon=1, padding=2), [{0: 0.5}, {}] * 45),
]


@pytest.mark.parametrize(("made", "records"), STRUCTURES, ids=[s.kind for s, _ in STRUCTURES])
def test_counts_merge(made: Structure, records: Any) -> None:
    """Counts of a structure add, survive JSON, and refuse those of another."""
    reports = made.privatize(records)
    whole = made.aggregate(reports)
    halves = [
        made.aggregate({k: r[: len(r) // 2] for k, r in reports.items()}),
        made.aggregate({k: r[len(r) // 2 :] for k, r in reports.items()}),
    ]
    assert sum(halves) == sum(reversed(halves)) == whole
    assert PartCounts.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
    other = Attributes({"x": 2}, epsilon=1)
    with pytest.raises(ArgumentError, match="same structure"):
        whole + other.aggregate({})
    with pytest.raises(ArgumentError, match="not parts"):
        made.aggregate({"nonsense": [0]})
    assert made.guarantee.epsilon == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attributes({}, 1), "at least one attribute"),
        (lambda: Attributes({"a": 2}, 1, method="sampling"), "unknown method"),
        (lambda: Attributes({"a": 2}, 1).privatize({"b": [0]}), "a column for each of: 'a'"),
        (lambda: Attributes({"a": 2, "b": 2}, 1).privatize({"a": [0], "b": [0, 1]}), "one length"),
        (lambda: Attributes({"a": 2}, 1).privatize({"a": [5]}), "in the domain"),
        (lambda: FakeData({"a": 2}, 1), "at least two attributes"),
        (lambda: FakeData({"a": 2, "b": 2}, 1, protects="rows"), "unknown protects"),
        (lambda: Marginals({"a": 2}, 2, 1), "between 1 and"),
        (lambda: Marginals({"a": 2, "b": 2}, [("a", "c")], 1), "names of the domains"),
        (lambda: Marginals({"a": 2, "b": 2}, [("a", "b"), ("b", "a")], 1), "twice"),
        (lambda: Marginals({"a": 5000, "b": 5000}, 2, 1), "at most 1,048,576 cells"),
        (lambda: ItemSets(3, 1, padding=0), "padding must be"),
        (lambda: ItemSets(["a", "b"], 1, padding=1).privatize("ab"), "sequence of sets"),
        (lambda: ItemSets(["a", "b"], 1, padding=1).privatize(["ab"]), "one per person"),
        (lambda: KeyValue(3, (1, 0), 1, padding=1), "first below the second"),
        (lambda: KeyValue(3, (0, 1), 1, padding=1).privatize([{0: "x"}]), "must be numbers"),
        (lambda: KeyValue(3, (0, 1), 1, padding=1).privatize([{0: math.nan}]), "missing"),
        (lambda: Attributes({"a": 2}, 1).aggregate({}).estimate(), "no reports"),
        (lambda: ItemSets(3, 1, padding=1).aggregate({}).estimate("clip"), "item sets"),
        (lambda: KeyValue(3, (0, 1), 1, padding=1).aggregate({}).estimate(k=1), "cannot be asked"),
    ],
)
def test_structure_refusals(make: Any, message: str) -> None:
    """Each bad argument is named, with what was wanted."""
    with pytest.raises(ArgumentError, match=message):
        make()


def test_part_channels_are_free() -> None:
    """Any frequency channel can carry a structure."""
    survey = Attributes({"a": 3}, epsilon=1, channel=lambda domain, epsilon: GRR(domain, epsilon))
    assert survey.parts["a"] == GRR(3, 1)

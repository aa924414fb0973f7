"""Every measure against its definition, in fractions and linear programmes."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.lab.anonymize import generalize, intervals, measure
from lab.anonymize import by_definition as law

TREE = {
    "a": ["ab", "abc", "*"],
    "b": ["ab", "abc", "*"],
    "c": ["c", "abc", "*"],
    "d": ["d", "d", "*"],
    "e": ["e", "ef", "*"],
    "f": ["f", "ef", "*"],
}

ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from("abcdef")),
    min_size=1,
    max_size=30,
)
SCHEMA = {"x": pl.Int64, "y": pl.Int64, "s": pl.String}


@given(ROWS)
@settings(max_examples=100, deadline=None)
def test_diversity_and_likeness(rows) -> None:
    """The worst class by every definition."""
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    found = measure(frame, ["x", "y"], "s")
    got = found.sensitive["s"]
    all_rows = frame.to_dicts()
    inside = list(law.classes(all_rows, ["x", "y"]).values())
    p = law.shares(all_rows, "s")
    qs = [law.shares(c, "s") for c in inside]
    assert (found.k, found.classes) == (min(map(len, inside)), len(inside))
    assert got.distinct_l == min(map(len, qs))
    assert got.entropy_l == pytest.approx(min(law.entropy_l(c, "s") for c in inside), abs=1e-12)
    assert got.alpha == pytest.approx(float(max(max(q.values()) for q in qs)))
    assert set(got.recursive_c) == set(range(2, got.distinct_l + 1))
    for values, c in got.recursive_c.items():
        assert c == pytest.approx(max(law.recursive_c(x, "s", values) for x in inside))
    assert got.delta == pytest.approx(max(law.delta(q, p) for q in qs), abs=1e-12)
    assert got.beta == pytest.approx(max(law.beta(q, p) for q in qs), abs=1e-12)
    assert got.disclosed == sum(len(c) for c, q in zip(inside, qs, strict=True) if len(q) == 1)
    assert (got.t, got.distance) == (None, None)
    # Enhanced likeness: the least beta of the definition, or none.
    if math.isinf(got.enhanced_beta):
        assert not all(law.enhanced(q, p, 1e9) for q in qs)
    else:
        assert all(law.enhanced(q, p, got.enhanced_beta + 1e-9) for q in qs)
        if got.enhanced_beta > 1e-6:
            assert not all(law.enhanced(q, p, got.enhanced_beta - 1e-7) for q in qs)


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_closeness_is_optimal_transport(distance) -> None:
    """Closed forms against the linear programme that defines the earth mover's distance."""

    @given(ROWS)
    @settings(max_examples=30, deadline=None)
    def run(rows):
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        got = measure(
            frame, ["x", "y"], "s", distance=distance, order={"s": "abcdef"},
            hierarchies={"s": TREE},
        ).sensitive["s"]  # fmt: skip
        all_rows = frame.to_dicts()
        p = law.shares(all_rows, "s")
        costs = {
            "equal": lambda a, b: float(a != b),
            "ordered": law.ordered_cost(sorted(p)),
            "hierarchical": law.tree_cost(TREE),
        }
        worst = max(
            law.transport(law.shares(c, "s"), p, costs[distance])
            for c in law.classes(all_rows, ["x", "y"]).values()
        )
        assert got.t == pytest.approx(worst, abs=1e-9)
        assert got.distance == distance

    run()


def test_the_distance_changes_the_answer() -> None:
    """The published example: incomes of 3, 4, 5 thousand are near by name, far by order."""
    incomes = list(range(3, 12))
    frame = pl.DataFrame({"x": [i // 3 for i in range(9)], "income": incomes})
    low = measure(frame, ["x"], "income", distance="ordered").sensitive["income"].t
    assert low == pytest.approx(0.375, abs=1e-12)
    mixed = pl.DataFrame({"x": [0, 1, 1, 0, 1, 0, 1, 0, 0], "income": incomes})
    assert measure(mixed, ["x"], "income", distance="ordered").sensitive["income"].t < low
    equal = measure(frame, ["x"], "income", distance="equal").sensitive["income"].t
    assert equal == pytest.approx(2 / 3)


def test_natural_orders() -> None:
    """Numbers, dates and enumerations have an order of their own; texts must be given one."""
    kinds = [
        pl.Series("s", [3, 1, 2, 2]),
        pl.Series("s", [3.5, 1.0, 2.0, 2.0]),
        pl.Series("s", ["c", "a", "b", "b"], dtype=pl.Enum(["a", "b", "c"])),
        pl.Series("s", [3, 1, 2, 2]).cast(pl.Date),
    ]
    found = [
        measure(pl.DataFrame([pl.Series("x", [0, 0, 1, 1]), s]), ["x"], "s", distance="ordered")
        .sensitive["s"]
        .t
        for s in kinds
    ]
    assert found == pytest.approx([0.25] * 4)


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_utility_and_risk(rows) -> None:
    """Discernibility, average class and the attackers, summed row by row."""
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    found = measure(frame, ["x", "y"], threshold=0.3)
    inside = law.classes(frame.to_dicts(), ["x", "y"])
    size = [len(inside[(x, y)]) for x, y, _ in rows]
    n = len(rows)
    assert found.discernibility == sum(size)
    assert found.average_class == pytest.approx(n / len(inside) / min(size))
    one = found.risk.prosecutor
    assert one.highest == max(1 / s for s in size)
    assert one.average == pytest.approx(sum(1 / s for s in size) / n)
    assert one.exposed == pytest.approx(sum(1 / s > 0.3 for s in size) / n)
    assert found.risk.marketer == pytest.approx(one.average)
    assert found.risk.unique == size.count(1)
    assert found.risk.journalist is None


@given(ROWS, ROWS)
@settings(max_examples=60, deadline=None)
def test_risk_against_a_population(rows, others) -> None:
    """The journalist and the marketer, person by person."""
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    people = pl.DataFrame(rows + others, schema=SCHEMA, orient="row").drop("s")
    risk = measure(frame, ["x", "y"], population=people, threshold=0.25).risk
    count = {key: len(c) for key, c in law.classes(people.to_dicts(), ["x", "y"]).items()}
    per_row = [1 / count[x, y] for x, y, _ in rows]
    assert risk.marketer == pytest.approx(sum(per_row) / len(rows))
    assert risk.journalist is not None
    assert risk.journalist.highest == max(per_row)
    touched = {(x, y) for x, y, _ in rows}
    assert risk.journalist.average == pytest.approx(
        max(sum(per_row) / len(rows), len(touched) / sum(count[c] for c in touched))
    )
    assert risk.journalist.exposed == pytest.approx(sum(r > 0.25 for r in per_row) / len(rows))


def test_class_numbers_are_those_of_the_rows() -> None:
    """What the attack lab takes: who shares a class with whom."""
    frame = pl.DataFrame({"x": [1, 1, 2, 1], "y": ["a", "b", "a", "a"]})
    of = measure(frame, ["x", "y"]).class_of
    for i, j in itertools.combinations(range(4), 2):
        assert (of[i] == of[j]) == (frame.row(i) == frame.row(j))


def test_measures_and_what_was_measured_can_be_copied_and_pickled() -> None:
    """Their mappings still cannot be written to."""
    frame = pl.DataFrame({"x": [1, 1, 2, 2], "s": list("abab")})
    made = generalize(frame, ["x"], {"x": intervals([5, 10])}, k=2, sensitive="s")
    for found in (measure(frame, ["x"], "s"), made):
        for twin in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
            assert str(twin) == str(found)
            held = twin.sensitive if hasattr(found, "sizes") else twin.levels
            with pytest.raises(TypeError):
                held["x"] = 1
    assert copy.deepcopy(measure(frame, ["x"], "s").sensitive["s"]).recursive_c

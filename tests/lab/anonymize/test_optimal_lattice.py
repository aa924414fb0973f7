"""The lattice search against exhaustive search, and its release against the definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.errors import ArgumentError
from dither.lab.anonymize import (
    _demands,
    _generalize,
    _lattice,
    alpha_k,
    beta_likeness,
    delta_disclosure,
    generalize,
    l_diversity,
    measure,
    t_closeness,
)
from lab.anonymize import by_definition as law

ABOVE = {
    "a": {0: ["0-1", "0-3", "*"], 1: ["0-1", "0-3", "*"], 2: ["2-3", "0-3", "*"],
          3: ["2-3", "0-3", "*"], 4: ["4-5", "4-5", "*"], 5: ["4-5", "4-5", "*"]},
    "b": {"x": ["xy", "*"], "y": ["xy", "*"], "z": ["z", "*"]},
    "c": {True: ["*"], False: ["*"]},
}  # fmt: skip
VALUES = ("flu", "cold", "gout")

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.integers(0, 5),
            "b": st.sampled_from("xyz"),
            "c": st.booleans(),
            "s": st.sampled_from(VALUES),
        }
    ),
    min_size=1,
    max_size=24,
)


def q_and_p(inside, released):
    """Shares of s in a class and in the release."""
    return law.shares(inside, "s"), law.shares(released, "s")


REQUIREMENTS = {
    "none": ((), ()),
    "distinct": (l_diversity(2), [lambda c, _: len(law.shares(c, "s")) >= 2]),
    "entropy": (l_diversity(1.8, "entropy"), [lambda c, _: law.entropy_l(c, "s") >= 1.8]),
    "recursive": (
        l_diversity(2, "recursive", c=2),
        [lambda c, _: law.recursive_c(c, "s", 2) < 2],
    ),
    "equal": (
        t_closeness(0.3, distance="equal"),
        [lambda c, r: law.transport(*q_and_p(c, r), lambda a, b: float(a != b)) <= 0.3 + 1e-9],
    ),
    "ordered": (
        t_closeness(0.2, distance="ordered"),
        [
            lambda c, r: (
                law.transport(
                    *q_and_p(c, r),
                    law.ordered_cost([v for v in VALUES if v in law.shares(r, "s")]),
                )
                <= 0.2 + 1e-9
            )
        ],
    ),
    "alpha": (alpha_k(0.7), [lambda c, _: max(law.shares(c, "s").values()) <= Fraction("0.7")]),
    "delta": (delta_disclosure(1.0), [lambda c, r: law.delta(*q_and_p(c, r)) < 1.0]),
    "beta": (beta_likeness(0.8), [lambda c, r: law.beta(*q_and_p(c, r)) <= 0.8 + 1e-12]),
    "enhanced": (
        beta_likeness(0.8, enhanced=True),
        [lambda c, r: law.enhanced(*q_and_p(c, r), 0.8)],
    ),
    "several": (
        [l_diversity(2), alpha_k(0.75)],
        [
            lambda c, _: len(law.shares(c, "s")) >= 2,
            lambda c, _: max(law.shares(c, "s").values()) <= 0.75,
        ],
    ),
}


def check(rows, k, suppress, name):
    """The search finds what trying every node finds, and its release keeps its word."""
    require, meets = REQUIREMENTS[name]
    frame = pl.DataFrame(
        rows, schema={"a": pl.Int64, "b": pl.String, "c": pl.Boolean, "s": pl.String}
    )
    allowed = math.floor(suppress * len(rows) + 1e-9)
    least, nodes = law.best(rows, ABOVE, k, allowed, meets)

    def run():
        return generalize(
            frame, list(ABOVE), ABOVE, k, suppress, sensitive="s", require=require,
            order={"s": VALUES},
        )  # fmt: skip

    if least == math.inf:
        with pytest.raises(ArgumentError, match="no generalisation gives"):
            run()
        return
    found = run()
    assert found.loss == pytest.approx(least, abs=1e-12)
    assert tuple(found.levels.values()) in nodes
    assert found.complete
    again = measure(found.frame, list(ABOVE), "s")
    assert again.k >= k
    assert again.sizes.sum() + found.suppressed == len(rows)
    assert found.suppressed <= allowed
    assert again.sensitive == measure(found.frame, list(ABOVE), "s").sensitive
    assert (again.k, again.classes, again.risk) == (
        found.measures.k,
        found.measures.classes,
        found.measures.risk,
    )
    released = found.frame.to_dicts()
    for inside in law.classes(released, list(ABOVE)).values():
        assert all(meet(inside, released) for meet in meets)
    assert found.frame["s"].to_list() == frame["s"].gather(found.rows).to_list()


@given(ROWS, st.integers(1, 6), st.sampled_from([0, 0.1, 0.25, 0.5]))
@settings(max_examples=60, deadline=None)
def test_k_anonymity_is_optimal(rows, k, suppress) -> None:
    """No node of the lattice has less loss."""
    check(rows, min(k, len(rows)), suppress, "none")


@pytest.mark.parametrize("name", [n for n in REQUIREMENTS if n != "none"])
def test_requirements_are_met_at_the_optimum(name) -> None:
    """With every requirement too: the least loss of all nodes, and all classes meet it."""

    @given(ROWS, st.integers(1, 3), st.sampled_from([0, 0.25, 0.5]))
    @settings(max_examples=14, deadline=None)
    def run(rows, k, suppress):
        check(rows, min(k, len(rows)), suppress, name)

    run()


def test_weights_and_limits_move_the_optimum() -> None:
    """A column that counts is spared; a limit is kept."""
    rows = [(a, b) for a in range(6) for b in "xyz"]
    frame = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    trees = {name: ABOVE[name] for name in "ab"}
    spared = generalize(frame, ["a", "b"], trees, 3, 0, weights={"a": 100})
    assert spared.levels == {"a": 0, "b": 2}
    limited = generalize(frame, ["a", "b"], trees, 3, 0, weights={"a": 100}, limits={"b": 1})
    assert limited.levels["b"] <= 1
    assert limited.levels["a"] > 0


def test_the_level_of_nothing_generalised_is_the_data() -> None:
    """k = 1 changes nothing: same values, same types."""
    frame = pl.DataFrame({"a": [0, 5, 3], "b": ["x", "y", "z"]})
    found = dt.anonymize.generalize(frame, ["a", "b"], {n: ABOVE[n] for n in "ab"}, 1, 0)
    assert found.frame.equals(frame[found.rows])
    assert (found.loss, found.precision, found.suppressed) == (0, 1, 0)


def test_what_cannot_be_met_says_how_near_it_came() -> None:
    """One value has no two; the message counts rows and names none."""
    frame = pl.DataFrame({"a": [0, 1, 2, 3], "s": ["secretive"] * 4})
    with pytest.raises(
        ArgumentError, match="leaves out at least 4 of 4 rows, and suppress allows 1"
    ) as told:
        generalize(frame, ["a"], {"a": ABOVE["a"]}, 1, 0.25, sensitive="s", require=l_diversity(2))
    assert "secretive" not in str(told.value)


def _patched(target, name, new):
    return lambda patch: patch.setattr(target, name, new)


def _pruning_too_much(search, node):
    """A failing node taken to condemn what stands above it too."""
    verdict = search.table.trial(node, float(search.loss[node]))
    search.done[node] = True
    if not verdict.safe:
        search.bad[tuple(slice(0, level + 2) for level in node)] = True
    if verdict.fits and (search.best is None or verdict.loss < search.best[1].loss):
        search.best = node, verdict
    return verdict.safe


MUTANTS = {
    "k - 1": _patched(
        _demands.Demand, "met", lambda self, sizes, *_: ((ok := sizes >= self.k - 1), ok)
    ),
    "losses of the last column forgotten": _patched(
        _lattice.SearchTable,
        "losses",
        lambda self, true=_lattice.SearchTable.losses: (*true(self)[:-1], 0 * true(self)[-1]),
    ),
    "pruned upwards": _patched(_lattice._Search, "check", _pruning_too_much),
    "a class more is left out": _patched(
        _generalize, "allowance", lambda share, rows: math.floor(share * rows) + 1
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_faults_are_caught(name, monkeypatch) -> None:
    """The check above fails for each of these, on tables drawn from a fixed seed."""
    draws = np.random.default_rng(7)
    tables = [
        [
            {
                "a": int(draws.integers(6)),
                "b": "xyz"[draws.integers(3)],
                "c": bool(draws.integers(2)),
                "s": VALUES[draws.integers(3)],
            }
            for _ in range(20)
        ]
        for _ in range(12)
    ]

    def check_all():
        for rows in tables:
            check(rows, 3, 0.1, "none")

    check_all()
    MUTANTS[name](monkeypatch)
    with pytest.raises((AssertionError, ArgumentError)):
        check_all()


def test_of_equal_losses_the_finer_is_kept() -> None:
    """A column of one value, and one that counts nothing, are not generalised in vain."""
    frame = pl.DataFrame({"a": ["x"] * 4, "b": [1, 1, 2, 2], "c": [1, 2, 1, 2]})
    hierarchies = {
        "a": dt.anonymize.suppression(),
        "b": dt.anonymize.suppression(),
        "c": dt.anonymize.intervals([2, 4]),
    }
    found = dt.anonymize.generalize(frame, list("abc"), hierarchies, k=2, suppress=0)
    assert found.levels["a"] == 0
    assert found.loss == pytest.approx(1 / 3)
    free = dt.anonymize.generalize(
        frame, ["b", "c"], hierarchies, k=2, suppress=0, weights={"b": 0, "c": 1}
    )
    assert dict(free.levels) == {"b": 1, "c": 0}
    assert free.loss == 0


def test_precision_counts_the_whole_hierarchy() -> None:
    """A limit does not make a hierarchy lower: one step of five is a fifth."""
    frame = pl.DataFrame({"x": [1, 2, 11, 12]})
    rule = {"x": dt.anonymize.intervals([5, 10, 20, 40])}
    found = dt.anonymize.generalize(frame, ["x"], rule, k=2, suppress=0, limits={"x": 1})
    assert (found.levels["x"], found.heights["x"], found.precision) == (1, 5, 0.8)

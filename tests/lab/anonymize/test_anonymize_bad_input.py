"""What is refused, in which words; what is borne; how long work is stopped; kinds of frames."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.lab.anonymize import (
    alpha_k,
    beta_likeness,
    delta_disclosure,
    generalize,
    intervals,
    l_diversity,
    measure,
    mondrian,
    suppression,
    t_closeness,
)
from dither.lab.anonymize._generalize import MOST_NODES

FRAME = pl.DataFrame({"age": [31, 34, 38, 52, 55, 57], "ill": ["secretive"] * 3 + ["b", "c", "d"]})
AGE = {"age": intervals([5, 10, 20])}


def ask(**changes):
    """A good question, changed."""
    given = {"frame": FRAME, "quasi": ["age"], "hierarchies": AGE, "k": 2, "sensitive": "ill"}
    return generalize(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 7}, "k is 7 and the frame has only 6 rows"),
        ({"k": 0}, "k must be an integer of at least 1"),
        ({"k": True}, "k must be"),
        ({"suppress": 5}, "suppress must be at least 0 and at most 1"),
        ({"suppress": float("nan")}, "suppress must be finite"),
        ({"quasi": ["aeg"]}, "quasi has an unknown column 'aeg'; did you mean 'age'"),
        ({"quasi": ["age", "age"]}, "twice"),
        ({"quasi": []}, "at least one column"),
        ({"quasi": 3}, "must be a list"),
        ({"sensitive": ["age"]}, "'age' is in both"),
        ({"sensitive": "il"}, "did you mean 'ill'"),
        ({"frame": FRAME.clear()}, "frame is empty"),
        ({"frame": FRAME.lazy()}, r"pass frame.collect\(\)"),
        ({"frame": [1]}, "not list"),
        ({"hierarchies": {}}, "must have one for 'age'"),
        ({"hierarchies": []}, "must be a mapping"),
        ({"hierarchies": {**AGE, "agee": AGE["age"]}}, "did you mean 'age'"),
        ({"hierarchies": {"age": {31: ["x"]}}}, r"does not cover 5 of 6 values \(5 of 6 rows\)"),
        ({"weights": {"ill": 1}}, "not in quasi"),
        ({"weights": {"age": -1}}, "at least 0"),
        ({"weights": {"age": 0}}, "above 0"),
        ({"limits": {"age": 9}}, "must be at most 4"),
        ({"limits": {"ill": 1}}, "not in quasi"),
        ({"seconds": -1}, "at least 0"),
        ({"require": 3}, "must hold requirements"),
        ({"require": {"il": l_diversity(2)}}, "did you mean 'ill'"),
        ({"require": l_diversity(2), "sensitive": ()}, "sensitive must name"),
        ({"require": t_closeness(0.1, distance="ordered")}, "alphabet is not an order"),
        ({"require": t_closeness(0.1, distance="hierarchical")}, "must have one for 'ill'"),
        ({"distance": "eqal"}, "did you mean 'equal'"),
        ({"distance": {"age": "equal"}}, "not sensitive"),
        ({"distance": "ordered", "order": {"ill": ["b", "c"]}}, "lacks 2 of the column's 4 values"),
        ({"require": l_diversity(9)}, "no generalisation gives 2-anonymity, distinct 9-diversity"),
    ],
)
def test_refusals_name_the_argument_and_no_value(changes, message) -> None:
    """Every mistake is told by the argument's name, with what would work."""
    with pytest.raises(ArgumentError, match=message) as told:
        ask(**changes)
    assert "secretive" not in str(told.value)
    assert "57" not in str(told.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: l_diversity(2, "recursiv"), "did you mean 'recursive'"),
        (lambda: l_diversity(2.5), "an integer"),
        (lambda: l_diversity(0), "at least 1"),
        (lambda: l_diversity(2, "recursive"), "c must be given"),
        (lambda: l_diversity(2, c=1), "c must be given for kind='recursive'"),
        (lambda: t_closeness(2, distance="equal"), "at most 1"),
        (lambda: t_closeness(0.1, distance="emd"), "unknown distance"),
        (lambda: t_closeness(0.1), "distance"),
        (lambda: alpha_k(0), "above 0"),
        (lambda: delta_disclosure(float("inf")), "delta must be"),
        (lambda: beta_likeness(-1), "above 0"),
        (lambda: measure(FRAME, ["age"], threshold=0), "threshold"),
        (lambda: measure(FRAME, ["age"], population=FRAME[:3]), "fewer people in 3 of 6 classes"),
        (lambda: measure(FRAME, ["age"], population=FRAME[["ill"]]), "lacks the column 'age'"),
        (
            lambda: measure(
                FRAME, ["age"], population=FRAME.select(pl.concat_list("age").alias("age"))
            ),
            "same types",
        ),
    ],
)
def test_other_refusals(make, message) -> None:
    """So are the requirements' and the measures'."""
    with pytest.raises((ArgumentError, TypeError), match=message):
        make()


def test_a_search_too_large_says_its_size() -> None:
    """The number of nodes, the limit, and what to relax, before any work."""
    names = [f"q{i}" for i in range(24)]
    frame = pl.DataFrame({name: ["a", "b"] for name in names})
    with pytest.raises(ArgumentError, match=r"16,777,216 combinations.*fewer columns.*mondrian"):
        generalize(frame, names, dict.fromkeys(names, suppression()), 2)
    assert MOST_NODES < 2**24


def test_progress_is_told_and_a_deadline_kept() -> None:
    """A stopped search still gives a release that holds, and says that it was stopped."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({f"q{i}": rng.integers(0, 30, 400) for i in range(5)})
    trees = {name: intervals([2, 4, 8, 16]) for name in frame.columns}
    told: list[object] = []
    whole = generalize(frame, frame.columns, trees, 5, progress=told.append)
    assert whole.complete
    assert told
    early = generalize(frame, frame.columns, trees, 5, seconds=0)
    assert not early.complete
    assert early.loss >= whole.loss
    assert measure(early.frame, frame.columns).k >= 5
    assert "stopped early" in early.summary()


def test_an_interrupt_keeps_the_best() -> None:
    """Ctrl-C in the middle loses nothing that was found; so in Mondrian."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({f"q{i}": rng.integers(0, 30, 400) for i in range(5)})
    trees = {name: intervals([2, 4, 8, 16]) for name in frame.columns}

    def interrupt(*_):
        raise KeyboardInterrupt

    stopped = generalize(frame, frame.columns, trees, 5, progress=interrupt)
    assert not stopped.complete
    assert measure(stopped.frame, frame.columns).k >= 5
    parts = mondrian(frame, frame.columns, 5, progress=interrupt)
    assert not parts.complete
    assert measure(parts.frame, frame.columns).k >= 5
    assert parts.measures.classes == 2
    assert not mondrian(frame, frame.columns, 5, seconds=0).complete


def test_kinds_of_frames_come_back() -> None:
    """Polars, pandas and Arrow in, the same out, with the same release."""
    kinds = {pl.DataFrame: FRAME, pd.DataFrame: FRAME.to_pandas(), pa.Table: FRAME.to_arrow()}
    for kind, frame in kinds.items():
        for found in (ask(frame=frame), mondrian(frame, ["age"], 2)):
            assert isinstance(found.frame, kind)
        assert ask(frame=frame).measures.k == ask().measures.k
        assert measure(frame, ["age"], "ill").sensitive == measure(FRAME, ["age"], "ill").sensitive
    odd = FRAME.to_pandas().set_index(pd.Index([5, 5, 3, 2, 1, 0]))
    assert measure(odd, ["age"]).k == 1


CELL = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
    st.dates(), st.sampled_from(["*", "NULL", "nan", "\x00", "\u202e", "🙂", "a\nb", " a"]),
)  # fmt: skip


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=12), st.integers(1, 3))
@settings(max_examples=120, deadline=None)
def test_hostile_cells_are_borne(rows, k) -> None:
    """Anything in any column, mixed as pandas allows: measured and partitioned without a fault."""
    frame = pd.DataFrame(rows, columns=["a", "b", "s"], dtype=object)
    k = min(k, len(rows))
    measure(frame, ["a", "b"], "s", distance="equal").summary()
    whole = mondrian(frame, ["a", "b"], k, sensitive="s")
    trees = {"a": suppression(), "b": suppression()}
    found = generalize(frame, ["a", "b"], trees, k, sensitive="s")
    assert min(whole.measures.k, found.measures.k) >= k
    assert measure(found.frame, ["a", "b"]).k >= k


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("a", [float("nan"), None, float("nan"), None, 0.0, -0.0]),
        pl.Series("a", [2**64 - 1, 0, 1, 2, 3, 4], dtype=pl.UInt64),
        pl.Series("a", [1e308, -1e308, float("inf"), float("-inf"), 5e-324, 0.0]),
        pl.Series("a", [Decimal("1.10"), None, Decimal("2.00")] * 2),
        pl.Series("a", [[1], [1, 2], None] * 2),
        pl.Series("a", [{"x": 1}, {"x": 2}, None] * 2),
        pl.Series("a", [b"\xff", b"", None] * 2),
        pl.Series("a", [None] * 6),
        pl.Series("a", ["x", "y", None] * 2, dtype=pl.Categorical),
        pl.Series("a", [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31), None] * 2),
        pl.Series("a", [2**31 - 1, 0, None] * 2, dtype=pl.Int32).cast(pl.Date),
        pl.Series("a", [2**62, 0, None] * 2).cast(pl.Datetime("ms")),
        pl.Series("a", [dt.time(1), None, dt.time(2)] * 2),
        pl.Series("a", [dt.timedelta(1), None, dt.timedelta(2)] * 2),
        pl.Series("a", [object(), 1, "1", None, 1.0, "x"], dtype=pl.Object),
    ],
    ids=lambda s: str(s.dtype),
)
def test_hostile_types_are_borne(column) -> None:
    """Every type that a frame can hold is coded, generalised and partitioned."""
    frame = pl.DataFrame([column, pl.Series("s", [1, 2, 3, 4, 5, 6])])
    assert mondrian(frame, ["a"], 2, sensitive="s").measures.k >= 2
    assert generalize(frame, ["a"], {"a": suppression()}, 2).measures.k >= 2
    if column.dtype.is_numeric():
        assert generalize(frame, ["a"], {"a": intervals([1, 10])}, 2).measures.k >= 2


def test_missing_is_a_value_of_its_own() -> None:
    """NULL equals NULL, NaN equals NaN, neither equals the other; 0.0 equals -0.0."""
    column = pl.Series("a", [float("nan"), None, float("nan"), None, 0.0, -0.0])
    assert measure(column.to_frame(), ["a"]).sizes.tolist() == [2, 2, 2]


def test_values_that_only_look_alike_stay_apart() -> None:
    """The number 1 and the text "1" are two classes, since a release would show both."""
    frame = pd.DataFrame({"a": [1, "1", 1.5, None, True, dt.date(1970, 1, 2)]}, dtype=object)
    assert measure(frame, ["a"]).classes == 6


def test_many_wide_columns_do_not_overflow() -> None:
    """Keys beyond 64 bits are ranked on the way, and classes stay right."""
    rng = np.random.default_rng(5)
    base = rng.integers(0, 1 << 40, (50, 8))
    frame = pl.DataFrame(base[rng.integers(0, 50, 400)], schema=[f"q{i}" for i in range(8)])
    found = measure(frame, frame.columns)
    assert sorted(found.sizes) == sorted(frame.group_by(frame.columns).len()["len"])


def test_every_result_says_what_it_does_not_protect() -> None:
    """One line, in the object and in its summary."""
    asked = [(), l_diversity(2), t_closeness(0.9, distance="equal"), alpha_k(0.9),
             delta_disclosure(9.0), beta_likeness(9)]  # fmt: skip
    frame = pl.DataFrame({"age": [1, 1, 1, 1], "ill": ["a", "b", "a", "b"]})
    for require in asked:
        for found in (
            generalize(frame, ["age"], AGE, 2, sensitive="ill", require=require),
            mondrian(frame, ["age"], 2, sensitive="ill", require=require),
        ):
            assert found.unprotected.startswith("Not protected: ")
            assert "\n" not in found.unprotected
            assert found.unprotected in " ".join(str(found).split())


def test_columns_that_nobody_named_are_told() -> None:
    """A name left in the frame is released, and the summary says so."""
    for frame in (FRAME, FRAME.to_pandas(), FRAME.to_arrow()):
        found = ask(frame=frame, sensitive=())
        assert found.untouched == ("ill",)
        assert "released as they are: ill" in found.summary()
    assert ask().untouched == ()


def test_results_are_drawn(tmp_path) -> None:
    """A release of either kind, and measures alone, with what they do not protect at the foot."""
    frame = pl.DataFrame({"age": [1, 1, 1, 1], "ill": ["a", "b", "a", "b"]})
    drawn = {
        "lattice.png": generalize(frame, ["age"], AGE, 2, sensitive="ill"),
        "mondrian.svg": mondrian(frame, ["age"], 2),
        "measures.pdf": measure(frame, ["age"], "ill", population=frame),
    }
    for name, found in drawn.items():
        figure = found.plot(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000
        foot = " ".join(figure._supxlabel.get_text().split())
        assert foot == found.unprotected


@pytest.mark.parametrize("values", [[0.0, -0.0], [[0.0], [-0.0]]])
def test_equal_values_are_written_alike(values) -> None:
    """Two zeros are one value of a class, so no sign of theirs is released."""
    frame = pl.DataFrame({"x": values * 2})
    rule = {"x": suppression()}
    for found in (
        generalize(frame, ["x"], rule, k=4, suppress=0),
        mondrian(frame, ["x"], k=4),
    ):
        assert len({str(value) for value in found.frame["x"].to_list()}) == 1

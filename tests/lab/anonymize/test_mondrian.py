"""Mondrian by its own definition: boxes, disjoint, large enough, and none that could be cut."""

from __future__ import annotations

import importlib

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.lab.anonymize import generalize, intervals, l_diversity, measure, mondrian, t_closeness
from lab.anonymize import by_definition as law

ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("pqrst"), st.sampled_from("uv")),
    min_size=1,
    max_size=60,
)


def frame_of(rows):
    """Two quasi-identifiers and one sensitive column."""
    return pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.String, "s": pl.String}, orient="row")


def halves(inside, column):
    """Every strict cut of a class along a column."""
    for end in sorted({row[column] for row in inside})[:-1]:
        yield (
            [row for row in inside if row[column] <= end],
            [row for row in inside if row[column] > end],
        )


@given(ROWS, st.integers(1, 8))
@settings(max_examples=80, deadline=None)
def test_boxes_are_strict_large_and_final(rows, k) -> None:
    """Equal tuples stay together, boxes do not overlap, and no cut would leave two of k."""
    k = min(k, len(rows))
    frame = frame_of(rows)
    found = mondrian(frame, ["a", "b"], k)
    of = found.classes.tolist()
    rows = [rows[i] for i in found.rows]
    where = {}
    for row, number in zip(rows, of, strict=True):
        assert where.setdefault(row[:2], number) == number
    boxes = []
    for number in set(of):
        inside = [r for r, n in zip(rows, of, strict=True) if n == number]
        assert len(inside) >= k
        for column in (0, 1):
            assert not any(min(len(x), len(y)) >= k for x, y in halves(inside, column))
        boxes.append([(min(r[i] for r in inside), max(r[i] for r in inside)) for i in (0, 1)])
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            assert any(a[1] < b[0] or b[1] < a[0] for a, b in zip(one, other, strict=True))
    # What is released tells the classes apart, no more.
    again = measure(found.frame, ["a", "b"])
    assert again.k == found.measures.k >= k
    assert again.classes == len(boxes)


@given(ROWS, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_the_loss_is_that_of_the_boxes(rows, k) -> None:
    """Mean width of a row's box, over the width of the data."""
    k = min(k, len(rows))
    found = mondrian(frame_of(rows), ["a", "b"], k)
    place = {v: i for i, v in enumerate(sorted({r[1] for r in rows}))}
    points = [(rows[i][0], place[rows[i][1]]) for i in found.rows]
    spans = [max(p[i] for p in points) - min(p[i] for p in points) for i in (0, 1)]
    total = 0.0
    for number in found.classes.tolist():
        inside = [p for p, n in zip(points, found.classes.tolist(), strict=True) if n == number]
        for i in (0, 1):
            if spans[i]:
                total += (max(p[i] for p in inside) - min(p[i] for p in inside)) / spans[i] / 2
    assert found.loss == pytest.approx(total / len(rows), abs=1e-12)


@pytest.mark.parametrize("diverse", [True, False])
def test_requirements_hold_in_every_box(diverse) -> None:
    """Cuts that would break a requirement are not made; where the whole fails, it is refused."""
    if diverse:
        require, meet = l_diversity(2), lambda c, r: len(law.shares(c, "s")) >= 2
    else:
        require = t_closeness(0.25, distance="equal")

        def meet(c, r):
            q, p = law.shares(c, "s"), law.shares(r, "s")
            return sum(abs(q.get(v, 0) - p[v]) for v in p) / 2 <= 0.25

    @given(ROWS, st.integers(1, 4))
    @settings(max_examples=40, deadline=None)
    def run(rows, k):
        frame = frame_of(rows)
        k = min(k, len(rows))
        if not meet(frame.to_dicts(), frame.to_dicts()):
            with pytest.raises(ArgumentError, match="not even the whole"):
                mondrian(frame, ["a", "b"], k, sensitive="s", require=require)
            return
        found = mondrian(frame, ["a", "b"], k, sensitive="s", require=require)
        released = found.frame.to_dicts()
        inside = law.classes(released, ["a", "b"]).values()
        assert all(meet(c, released) and len(c) >= k for c in inside)
        assert found.suppressed == 0

    run()


def test_a_hierarchy_keeps_kin_together() -> None:
    """Categories are cut in the hierarchy's order, not the alphabet's."""
    tree = {"ape": ["animal"], "zebra": ["animal"], "beech": ["plant"], "yew": ["plant"]}
    frame = pl.DataFrame({"b": list(tree)})
    assert set(mondrian(frame, ["b"], 2, hierarchies={"b": tree}).frame["b"]) == {
        "{ape, zebra}",
        "{beech, yew}",
    }
    assert set(mondrian(frame, ["b"], 2).frame["b"]) == {"{ape, beech}", "{yew, zebra}"}


def test_ranges_read_as_what_they_hold() -> None:
    """Numbers as closed ranges, sets by name or by their ends, everything as a star."""
    letters = [chr(97 + i) for i in range(20)]
    found = mondrian(pl.DataFrame({"n": [1, 2, 2, 9, 9, 9]}), ["n"], 3)
    assert found.frame["n"].sort().to_list() == ["9"] * 3 + ["[1, 2]"] * 3
    assert set(mondrian(pl.DataFrame({"b": letters}), ["b"], 20).frame["b"]) == {"*"}
    assert set(mondrian(pl.DataFrame({"b": letters}), ["b"], 10).frame["b"]) == {
        "{a … j: 10}",
        "{k … t: 10}",
    }
    missing = mondrian(pl.DataFrame({"n": [1, 2, None, None]}), ["n"], 2).frame["n"]
    assert missing.sort().to_list() == ["NULL"] * 2 + ["{1, 2}"] * 2


def test_sets_are_written_so_that_they_can_be_read() -> None:
    """Members that could be misread are in quotes, alike ones stand once, and an order that no
    reader can know is not abbreviated."""
    names = ["Lee, Ann", "NULL", None, "a … b: 2", ' x"']
    halves = mondrian(pl.DataFrame({"b": [*names, "z"]}), ["b"], 3).frame["b"]
    assert set(halves) == {'{" x""", "Lee, Ann", "NULL"}', '{"a … b: 2", z, NULL}'}
    alike = pl.DataFrame({"b": pl.Series([[1], [1], [2], [3], [3], [4]], dtype=pl.Object)})
    for found in mondrian(alike, ["b"], 2).frame["b"]:
        members = found.strip("{}").split(", ")
        assert len(set(members)) == len(members)
    tree = {chr(97 + i): [str(i % 2)] for i in range(20)}
    found = mondrian(pl.DataFrame({"b": list(tree)}), ["b"], 10, hierarchies={"b": tree}).frame["b"]
    assert all(label.count(",") == 9 for label in found)


@pytest.mark.parametrize("step", ["_choose", "_finish", "_divide"])
@pytest.mark.parametrize("late", [1, 3])
def test_an_interrupt_leaves_whole_boxes(step, late, monkeypatch) -> None:
    """Wherever it comes, in the midst of a depth too, what is released has classes of k."""
    module = importlib.import_module("dither.lab.anonymize._mondrian")
    inner, calls = getattr(module, step), iter(range(99))

    def interrupted(state, *rest):
        found = inner(state, *rest)
        if next(calls) == late:
            raise KeyboardInterrupt  # what it changed stays changed
        return found

    monkeypatch.setattr(module, step, interrupted)
    frame = pl.DataFrame({"x": [i * i % 61 for i in range(200)], "y": [i % 7 for i in range(200)]})
    found = mondrian(frame, ["x", "y"], k=5)
    monkeypatch.undo()
    assert not found.complete
    assert found.frame.group_by("x", "y").len()["len"].min() >= 5
    assert found.measures.sizes.sum() == 200
    assert found.measures.k >= 5


@pytest.mark.parametrize("kind", ["polars", "pandas", "arrow"])
@pytest.mark.parametrize("way", ["boxes", "columns"])
def test_rows_come_in_a_secret_order(way, kind) -> None:
    """Not that of the data (by luck once in 60!), and another each time; ``rows`` undoes it, and
    classes go with the rows."""
    table = pl.DataFrame({"a": [i % 6 for i in range(60)], "id": range(60)})
    given = {"polars": table, "pandas": table.to_pandas(), "arrow": table.to_arrow()}[kind]
    if way == "boxes":
        made = [mondrian(given, ["a"], 20) for _ in range(2)]
    else:
        made = [generalize(given, ["a"], {"a": intervals([3])}, 20, 0) for _ in range(2)]
    orders = []
    for found in made:
        frame = pl.DataFrame(found.frame)
        assert frame["id"].to_list() == found.rows.tolist()
        by_class = frame.with_columns(of=found.classes).group_by("of").agg(pl.col("a").n_unique())
        assert by_class["a"].to_list() == [1] * by_class.height
        orders.append(found.rows.tolist())
    assert sorted(orders[0]) == list(range(60))
    assert orders[0] != list(range(60)) != orders[1] != orders[0]

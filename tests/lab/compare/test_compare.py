"""A synthetic table held against the real one: distances, classifiers, nearest rows, the attack."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError
from dither.lab._cells import coded
from dither.lab.compare import TableComparison, compare
from dither.lab.compare._distances import ComparedTables, distances
from dither.lab.compare._trees import boosted
from dither.plots.tables._synth import draw_orders

RNG = np.random.default_rng


def people(rows: int, seed: int = 1) -> pl.DataFrame:
    """Rows in which columns depend on each other, in pairs and by three."""
    rng = RNG(seed)
    age = rng.integers(18, 90, rows)
    married = rng.random(rows) < np.where(age < 30, 0.1, 0.7)
    town = rng.integers(0, 3, rows)
    # Which of the other two goes with it is seen by three columns alone.
    votes = (married.astype(int) + town) % 2 == 0
    return pl.DataFrame(
        {
            "age": age,
            "married": married,
            "town": pl.Series(town).cast(pl.String).replace({"0": "A", "1": "B", "2": None}),
            "votes": np.where(rng.random(rows) < 0.9, votes, ~votes),
            "income": np.round(age * 900.0 + rng.normal(0, 9000, rows), 2),
        }
    )


def shuffled(table: pl.DataFrame, seed: int = 2) -> pl.DataFrame:
    """Every column right, and nothing between them."""
    rng = RNG(seed)
    return table.select(table[name].gather(rng.permutation(table.height)) for name in table.columns)


# --- tables of counts -----------------------------------------------------------------------------


def by_hand(real: pl.DataFrame, synthetic: pl.DataFrame, names: tuple[str, ...]) -> Fraction:
    """Total variation, from the definition, in exact fractions."""
    one, two = (Counter(t.select(names).rows()) for t in (real, synthetic))
    n, m = real.height, synthetic.height
    apart = sum(abs(Fraction(one[c], n) - Fraction(two[c], m)) for c in one.keys() | two.keys())
    return apart / 2


@pytest.mark.parametrize("many", [400, 133])
def test_distances_are_those_of_the_definition(many: int) -> None:
    """Of every table of one, two and three columns, to the last digit that a double has."""
    real, made = people(400), shuffled(people(400, 5))[:many]
    found = compare(real, made, bins=None, ways=3)
    assert found.tables.height == 5 + 10 + 10
    for names, value in found.tables.select("columns", "distance").iter_rows():
        assert value == pytest.approx(float(by_hand(real, made, tuple(names))), abs=1e-15)


def test_a_table_is_as_near_to_itself_as_can_be() -> None:
    """Exactly 0, whatever the rows' order, where the numbers of rows differ too."""
    real = people(300)
    assert compare(real, shuffled(real)[:0].vstack(real[::-1])).tables["distance"].max() == 0.0
    assert compare(real, pl.concat([real, real, real])).tables["distance"].max() == 0.0


def test_a_small_table_is_compared_with_a_large_one() -> None:
    """Fewer rows than numbers are cut into: the cuts are those rows, and nothing fails."""
    rng = np.random.default_rng(3)
    small, large = (pl.DataFrame({"x": rng.normal(size=n)}) for n in (6, 300))
    assert (compare(small, large).rows, compare(small, large).synthetic_rows) == (6, 300)


def test_means_and_worst_are_of_the_tables() -> None:
    """By order: how many, the mean, and which is worst."""
    real = people(500)
    found = compare(real, shuffled(real))
    for order, tables, possible, mean, _, worst, which in found.by_order.iter_rows():
        some = found.tables.filter(order=order)
        assert tables == possible == some.height
        assert mean == pytest.approx(some["distance"].mean())
        assert worst == some["distance"].max()
        assert which in some.filter(distance=worst)["columns"].to_list()
    # Columns that go together by three, and not by two.
    assert found.by_order.filter(order=1)["worst"].item() == 0.0
    three = found.tables.filter(pl.col("columns") == ["married", "town", "votes"])
    assert three["distance"].item() > 0.25
    assert found.frame["order"].is_sorted()


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (5, 5), (3, 7), (7, 2)])
def test_chance_is_the_mean_of_all_samples(n: int, m: int) -> None:
    """Against every sample of m rows of n, one by one."""
    cells = [0, 0, 1, 2, 2, 2, 1][:n]
    real = pl.DataFrame({"a": cells})
    made = pl.DataFrame({"a": [0] * m})
    tables = ComparedTables(coded([real, made], None), n, m)
    (found,) = distances(tables, 1, 10, RNG(0))
    total = Fraction(0)
    for sample in itertools.product(cells, repeat=m):
        one, two = Counter(cells), Counter(sample)
        total += sum(abs(Fraction(one[c], n) - Fraction(two[c], m)) for c in set(cells)) / 2
    assert found.chance == pytest.approx(float(total / n**m), rel=1e-9, abs=1e-15)


def test_rare_cells_of_wide_tables_are_sorted() -> None:
    """Where all cells would not fit, rows are sorted; the figures are the same."""
    real = pl.DataFrame({c: RNG(i).integers(0, 9_000, 300) for i, c in enumerate("abc")})
    made = pl.DataFrame({c: RNG(i).integers(0, 9_000, 300) for i, c in enumerate("bca")})
    found = compare(real, made, bins=None)
    assert found.tables["cells"].max() > 1e6
    for names, value in found.tables.select("columns", "distance").iter_rows():
        assert value == pytest.approx(float(by_hand(real, made, tuple(names))), abs=1e-15)


def test_too_many_tables_are_drawn() -> None:
    """As many as were asked for, the same ones for the same seed, and it says so."""
    real = pl.DataFrame({f"c{i}": RNG(i).integers(0, 2, 50) for i in range(12)})
    one, two, other = (compare(real, real[:40], most=20, seed=s) for s in (1, 1, 2))
    assert one.by_order["tables"].to_list() == [12, 20, 20]
    assert one.by_order["possible"].to_list() == [12, 66, 220]
    assert one.tables["columns"].to_list() == two.tables["columns"].to_list()
    assert one.tables["columns"].to_list() != other.tables["columns"].to_list()
    assert "of 220, drawn by the seed" in one.summary()


# --- columns --------------------------------------------------------------------------------------


def test_numbers_and_times_are_cut_and_missing_ones_are_not() -> None:
    """Into parts of as many real rows; NULL and NaN are cells of their own."""
    values = [*map(float, range(1000)), None, float("nan")]
    (column,) = coded([pl.DataFrame({"x": values}), pl.DataFrame({"x": [5.0, -3.0]})], 4)
    counts = np.bincount(column.codes[:1002])
    assert counts.tolist() == [250, 250, 250, 250, 1, 1]
    assert column.labels[-2:] == ("NaN", "NULL")
    assert column.codes[-2:].tolist() == [0, 0]
    (column,) = coded([pl.DataFrame({"x": [1, 2, 3, 4]}), pl.DataFrame({"x": [2, 3]})], 2)
    assert column.labels == ("below 3", "from 3")  # as bins of a policy: the lower end is inside
    assert column.codes.tolist() == [0, 0, 1, 1, 0, 1]
    day = [date(2020, 1, 1) + timedelta(i) for i in range(100)]
    (column,) = coded([pl.DataFrame({"x": day}), pl.DataFrame({"x": day[:3]})], 10)
    assert np.bincount(column.codes[:100], minlength=10).tolist() == [10] * 10


def test_given_edges_cut() -> None:
    """One column by given edges, another left as it is, others by default."""
    real = people(300)
    found = compare(real, shuffled(real), bins={"age": [30, 60], "income": None})
    cells = {names[0]: cells for names, cells in found.tables.filter(order=1)
             .select("columns", "cells").iter_rows()}  # fmt: skip
    assert cells["age"] == 3
    assert cells["income"] == pl.concat([real["income"], shuffled(real)["income"]]).n_unique()


def test_kinds_of_one_sort_may_meet() -> None:
    """Whole numbers of two widths, whole numbers and floats, categories and texts, time zones."""
    real = pl.DataFrame({"a": [1, 2, 3, 4], "b": ["x", "y"] * 2, "c": [1.0, 2.0, 2.0, 2.5]})
    made = real.with_columns(pl.col("a").cast(pl.UInt8), pl.col("b").cast(pl.Categorical))
    assert compare(real, made).tables["distance"].max() == 0.0
    assert compare(real.with_columns(pl.col("a").cast(pl.Float64)), made).tables[
        "distance"
    ].max() == 0.0  # fmt: skip
    noon = pl.DataFrame({"t": [datetime(2020, 1, 1, 12), datetime(2020, 1, 2, 12)]})
    zoned = noon.with_columns(pl.col("t").dt.replace_time_zone("UTC").dt.cast_time_unit("ms"))
    assert compare(noon, zoned).tables["distance"].max() == 0.0
    empty = pl.DataFrame({"a": [None, None]})
    assert compare(empty, pl.DataFrame({"a": [1, 1]})).tables["distance"].to_list() == [1.0]


def test_pandas_and_arrow_and_columns_in_another_order() -> None:
    """Frames of three libraries; columns are matched by their names."""
    real = people(200)
    for made in (real.to_pandas(), real.to_arrow(), real.select(reversed(real.columns))):
        assert compare(real, made).tables["distance"].max() == 0.0


def test_what_has_a_frame_is_read() -> None:
    """A release, or whatever holds its rows as ``frame``."""

    class Made:
        frame = people(100)

    assert compare(people(100), Made()).synthetic_rows == 100


# --- classifiers ----------------------------------------------------------------------------------


def test_trees_learn_what_columns_do_together() -> None:
    """Neither column says anything alone; both together say all."""
    rng = RNG(3)
    a, b, idle = rng.integers(0, 2, 4000), rng.integers(0, 4, 4000), rng.integers(0, 9, 4000)
    label = (a + b) % 2
    model = boosted([a, b, idle], [2, 4, 9], label, 2)
    assert (model.scores([a, b, idle]).argmax(axis=1) == label).all()
    # Three classes, by a column of ten cells in no order.
    of = rng.permutation(10) % 3
    cells = rng.integers(0, 10, 3000)
    model = boosted([cells], [10], of[cells], 3)
    assert (model.scores([cells]).argmax(axis=1) == of[cells]).all()


def test_what_is_alike_is_not_told_apart_and_what_is_not_is() -> None:
    """Fresh rows of one distribution; and rows without what columns have together.

    The first interval misses 0.5 once in a thousand times; the seed makes it the same each time.
    """
    real = people(3000)
    alike = compare(real, people(3000, 9), confidence=0.999)
    assert alike.area.low <= 0.5 <= alike.area.high
    assert compare(real, shuffled(real)).area.low > 0.75


def test_what_is_learned_of_synthetic_rows_is_tested_on_real_ones() -> None:
    """As good as real rows where they are alike, and blind where nothing is between columns."""
    real, unseen = people(3000), people(1500, 11)
    good = compare(real, people(3000, 12), target="votes", holdout=unseen).accuracy
    bad = compare(real, shuffled(real), target="votes", holdout=unseen).accuracy
    assert good is not None
    assert bad is not None
    assert good.tested == bad.tested == 1500
    assert good.synthetic.low > 0.8
    assert abs(good.synthetic.value - good.real.value) < 0.03
    assert bad.synthetic.high < 0.65 < bad.real.low
    assert bad.blind < 0.6


# --- nearest rows and the attack ------------------------------------------------------------------


def test_copies_are_seen() -> None:
    """A generator that copies its rows: at distance 0, nearer to them, and members are known."""
    ours, unseen = people(800), people(800, 21)
    copied = compare(ours, ours.sample(800, with_replacement=True, seed=1), holdout=unseen)
    fresh = compare(ours, people(800, 22), holdout=unseen)
    assert copied.nearness.copies == 1.0
    assert copied.nearness.nearer is not None
    assert fresh.nearness.nearer is not None
    assert copied.nearness.nearer.low > 0.9
    assert fresh.nearness.nearer.low < 0.5 < fresh.nearness.nearer.high
    assert copied.membership is not None
    assert fresh.membership is not None
    assert copied.membership.auc.low > 0.7
    assert fresh.membership.auc.low < 0.5 < fresh.membership.auc.high
    # The control must succeed, else a failure of the attack would say nothing.
    control = fresh.membership.verdict.control
    assert control is not None
    assert control.share > 0.9


def test_without_held_out_rows_real_ones_are_the_control() -> None:
    """Distances of real rows among themselves; no attack, and the summary asks for a holdout."""
    found = compare(people(500), people(500, 31))
    assert not found.nearness.held_out
    assert found.nearness.nearer is None
    assert found.membership is None
    assert found.nearness.control[1] == pytest.approx(found.nearness.synthetic[1], rel=0.5)
    assert "holdout=" in found.summary()


# --- what it says ---------------------------------------------------------------------------------


def test_every_output_says_that_it_protects_nobody(tmp_path: Path) -> None:
    """The summary, the pictures and the result itself; and what to do instead."""
    found = compare(people(300), shuffled(people(300)), target="votes", holdout=people(200, 3))
    said = " ".join(found.summary().split())
    assert said.startswith("This reads the real table without noise and protects nobody")
    assert "at a charge: session.table(...).compare(" in said
    assert "protects nobody" in found.unprotected
    for draw in (found.plot, found.plot_pair):
        figure = draw(tmp_path / "one.png")
        words = [t.get_text() for t in figure.findobj() if hasattr(t, "get_text")]
        assert any("protects nobody" in " ".join(w.split()) for w in words)
        assert (tmp_path / "one.png").stat().st_size > 10_000
    draw_orders({"one": found, "two": compare(people(300), people(300, 4))}, tmp_path / "o.svg")
    assert repr(found) == found.summary()


def test_it_is_found_by_its_room() -> None:
    """``dt.synth.compare``."""
    assert dt.synth.compare is compare


# --- bad input ------------------------------------------------------------------------------------

REAL = pl.DataFrame({"age": [30, 40, 50, 60], "sex": ["f", "m", "f", "m"]})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"synthetic": REAL.drop("sex")}, "synthetic has no column 'sex', which real has"),
        ({"synthetic": REAL.rename({"sex": "Sex"})}, "did you mean 'Sex'"),
        ({"synthetic": REAL.with_columns(x=1)}, "synthetic has a column 'x' that real has not"),
        ({"synthetic": REAL.with_columns(pl.col("age").cast(pl.String))}, "holds numbers in real"),
        ({"synthetic": REAL.with_columns(sex=True)}, "holds texts in real and booleans in synth"),
        ({"synthetic": REAL[:0]}, "synthetic is empty"),
        ({"real": REAL[:0]}, "real is empty"),
        ({"real": REAL.lazy()}, "real is lazy"),
        ({"synthetic": [1, 2]}, "synthetic must be a Polars or pandas DataFrame"),
        ({"synthetic": None}, "synthetic must be a Polars or pandas DataFrame"),
        ({"holdout": REAL.drop("age")}, "holdout has no column 'age'"),
        ({"holdout": REAL[:0]}, "holdout is empty"),
        ({"columns": ["age", "aeg"]}, "columns has an unknown column 'aeg'"),
        ({"columns": "age"}, "columns must be a list"),
        ({"columns": []}, "at least one column"),
        ({"columns": ["age", "age"]}, "each once"),
        ({"target": "ages"}, "target is an unknown column 'ages'; did you mean 'age'"),
        ({"target": 3}, "target is an unknown column"),
        ({"columns": ["age"], "target": "age"}, "target needs another column"),
        ({"ways": 4}, "ways must be"),
        ({"ways": 0}, "ways must be"),
        ({"bins": 1}, "bins must be"),
        ({"bins": {"agee": 3}}, "bins has an unknown column"),
        ({"bins": {"age": [3, 3]}}, "a list of rising edges"),
        ({"bins": {"age": "five"}}, "a list of rising edges"),
        ({"bins": {"age": []}}, "a list of rising edges"),
        ({"bins": {"sex": [1, 2]}}, "no order to cut along"),
        ({"most": 0}, "most must be"),
        ({"seed": -1}, "seed"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, object], message: str) -> None:
    """The argument is named, and no value of a table is shown."""
    given = {"real": REAL, "synthetic": REAL} | arguments
    with pytest.raises(ArgumentError, match=message):
        compare(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("real", "made"),
    [
        (pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [2]})),
        (pl.DataFrame({"a": [None]}), pl.DataFrame({"a": [None, None]})),
        (pl.DataFrame({"a": [float("inf"), float("-inf"), float("nan"), 1e308, -1e308]}),) * 2,
        (pl.DataFrame({"a": [[1, 2], [3]], "b": [{"x": 1}, {"x": None}]}),) * 2,
        (pl.DataFrame({"a": [2**63 - 1, -(2**63)]}), pl.DataFrame({"a": [0, 0]})),
        (pl.DataFrame({"a": [b"x", b"y"], "b": [timedelta(1), None]}),) * 2,
        (pl.DataFrame({"a": range(100), "b": [str(i) for i in range(100)]}),) * 2,
    ],
)
def test_odd_tables_are_judged(real: pl.DataFrame, made: pl.DataFrame) -> None:
    """One row, one column, NULLs, what is not finite, nested values, texts that all differ."""
    for bins in (32, 2, None):
        found = compare(real, made, holdout=real, bins=bins)
        assert isinstance(found, TableComparison)
        assert found.summary()
        assert 0.0 <= found.tables["distance"].min() <= found.tables["distance"].max() <= 1.0


def test_a_target_of_too_many_values_is_refused() -> None:
    """Texts that are all distinct cannot be guessed; numbers are cut."""
    real = pl.DataFrame({"a": range(200), "b": [str(i) for i in range(200)]})
    with pytest.raises(ArgumentError, match="at most 64 values"):
        compare(real, real, target="b")
    assert compare(real, real, target="a").accuracy is not None

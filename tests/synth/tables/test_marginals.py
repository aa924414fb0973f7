"""Marginals of a session's table: planned from public facts, charged once, unbiased, replayed."""

from __future__ import annotations

import datetime as day
import itertools
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BoundsError, BudgetError, UnknownNameError

DRAW = np.random.default_rng(8)
N = 4000
ROWS = pl.DataFrame(
    {
        "pid": DRAW.integers(0, 900, N),
        "region": DRAW.choice(["north", "south", "east"], N),
        "age": DRAW.integers(0, 90, N),
        "smoker": DRAW.random(N) < 0.3,
        "seen": [
            day.date(2024, 1, 1) + day.timedelta(days=int(d)) for d in DRAW.integers(0, 360, N)
        ],
        "note": DRAW.choice(["a", "b"], N),
        "one": ["same"] * N,
    }
)
COLUMNS = {
    "region": {"values": ["north", "south", "east"]},
    "age": {"bins": [0, 18, 65, 90]},
    "seen": {"bounds": ["2024-01-01", "2024-12-31"]},
    "smoker": {"nullable": False},
    "one": {"values": ["same"], "nullable": False},
}


def opened(folder, rows=ROWS, unit=False, columns=COLUMNS, **budget):
    """A session on these rows."""
    table = {"columns": columns} | ({"unit": "pid", "max_groups": 2, "max_rows": 3} if unit else {})
    made = {
        "budget": {"epsilon": 20, "delta": "1e-5", "ledger": str(folder / "m.ledger")} | budget,
        "tables": {"visits": table},
    }
    return dt.open(made, sources={"visits": rows})


@pytest.fixture
def session(tmp_path):
    """Each row is a person."""
    with opened(tmp_path) as made:
        yield made


def exact(columns):
    """Rows by the cells of the region, the age's bins and whether they smoke."""
    cells = {
        "region": ROWS["region"].replace_strict({"north": 0, "south": 1, "east": 2}).to_numpy(),
        "age": np.digitize(ROWS["age"].to_numpy(), [18, 65]),
        "smoker": ROWS["smoker"].to_numpy().astype(int),
    }
    shape = {"region": 4, "age": 4, "smoker": 2}
    found = np.zeros([shape[c] for c in columns])
    np.add.at(found, tuple(cells[c] for c in columns), 1)
    return found


def test_tables_come_near_the_truth_and_agree(session):
    """Within seven deviations each: one false alarm in 10^10 cells."""
    question = session.table("visits").marginals(
        [["region", "age"], ["age", "smoker"]], epsilon=5, delta="1e-6"
    )
    found = question.release()
    for columns in (["region", "age"], ["age", "smoker"], ["region"], ["smoker"]):
        wide = 7 * found.variance(columns) ** 0.5
        assert np.abs(found.estimate(columns) - exact(columns)).max() < wide
    both = (
        found.estimate(["region", "age"]).sum(axis=0),
        found.estimate(["age", "smoker"]).sum(axis=1),
    )
    assert both[0] == pytest.approx(both[1])
    assert found.estimate([]) == pytest.approx(found.estimate(["smoker"]).sum())


def test_a_frame_has_the_policys_types(session):
    """One row a cell; a missing value for the rest; intervals of the half-width that is said."""
    found = (
        session.table("visits")
        .marginals([["region", "age"], ["smoker", "seen"]], epsilon=5, delta="1e-6")
        .release()
    )
    frame = found.frame(["age", "region"])
    assert frame.columns == ["region", "age", "count", "count_lower", "count_upper"]
    assert frame.schema["age"] == pl.String
    assert frame["age"].unique().to_list().count(None) == 1
    assert frame.height == 16
    assert frame["count"].to_numpy() == pytest.approx(found.estimate(["age", "region"]).ravel())
    reach = (frame["count_upper"] - frame["count"]).to_numpy()
    assert reach == pytest.approx(np.full(16, found.half_width(["region", "age"])))
    dated = found.frames["smoker", "seen"]
    assert (dated.schema["smoker"], dated.schema["seen"]) == (pl.Boolean, pl.Date)


def test_a_sum_of_cells_has_its_own_exact_variance(session):
    """Of all cells of a column it is that of the total; by the planner's matrices otherwise."""
    found = (
        session.table("visits").marginals([["region", "age"]], epsilon=5, delta="1e-6").release()
    )
    every = found.total()
    same = found.total({"region": ["north", "south", "east", None]})
    assert same == pytest.approx(every)
    value, low, high = found.total({"region": ["north"], "age": [20, 80]})
    table = found.estimate(["region", "age"])
    assert value == pytest.approx(table[0, 1] + table[0, 2])
    assert low < value < high
    assert high - value < 2 * found.half_width(["region", "age"])
    with pytest.raises(ArgumentError, match="list of values"):
        found.total({"region": "north"})
    with pytest.raises(ArgumentError, match="in none of its cells"):
        found.total({"region": ["nowhere"]})


def test_the_error_is_known_before_anything_is_spent(session):
    """The preview's variances are those of the release; nothing was charged for them."""
    before = session.balance()
    question = session.table("visits").marginals([["region", "age"], ["smoker"]], 1, "1e-6")
    preview = question.preview()
    text = str(question.explain())
    assert session.balance() == before
    assert "residuals" in text
    assert "protects one row of visits" in text
    found = question.release()
    for columns, variance, width in zip(
        found.tables, preview.variances, preview.widths, strict=True
    ):
        assert found.variance(columns) == pytest.approx(variance)
        assert found.half_width(columns) == pytest.approx(width)
    assert preview.frame["cells"].to_list() == [16, 2]
    assert preview.rmse(1) == pytest.approx(preview.variances[1] ** 0.5)
    assert "region × age" in str(preview)
    assert "region × age" in found.summary()


def test_what_is_charged_is_what_was_asked_for(session):
    """Epsilon and delta, and a rho; the certificate agrees with the ledger."""
    question = session.table("visits").marginals([["region", "age"]], 1, "1e-6")
    found = question.release()
    charge = question.loss.charge
    assert (charge.epsilon, charge.delta) == (1, F(1, 10**6))
    spent = session.balance()[0].spent.rho
    assert charge.rho <= spent < charge.rho + F(1, 10**17)  # ledgers round up
    assert dt.verify(found.certificate, session.ledger).ok
    named = [m["measures"]["columns"] for m in found.certificate.content["measurements"]]
    assert sorted(named) == [[], ["age"], ["region"], ["region", "age"]]


def test_a_token_is_answered_again_for_nothing(session):
    """The same tables, from the ledger."""
    asked = session.table("visits").marginals([["region", "age"]], 1, "1e-6")
    first = asked.release(token="t")
    spent = session.balance()[0].spent
    again = asked.release(token="t")
    assert np.array_equal(first.estimate(["age"]), again.estimate(["age"]))
    assert session.balance()[0].spent == spent
    assert "replayed" in again.notes[-1]


def test_what_the_budget_cannot_bear_is_refused(tmp_path):
    """Before a row is read."""
    with opened(tmp_path, epsilon=1) as session, pytest.raises(BudgetError):
        session.table("visits").marginals([["region"]], 2, "1e-6").release()


def test_units_of_several_rows_scale_the_noise(tmp_path):
    """By max_rows, at most; the notes say what is left out."""
    (tmp_path / "rows").mkdir()
    with opened(tmp_path / "rows") as session:
        narrow = session.table("visits").marginals([["region"]], 1, "1e-6").preview()
    with opened(tmp_path, unit=True) as session:
        question = session.table("visits").marginals([["region"]], 1, "1e-6")
        wide = question.preview().variances[0] / narrow.variances[0]
        assert 8 < wide <= 9
        assert "at most 3 rows count" in str(question.explain()).replace("\n│             ", " ")
        assert question.release().estimate(["region"]).shape == (4,)


def test_a_public_number_of_rows_is_exact(tmp_path):
    """Where rows are replaced, and each is a person."""
    with opened(tmp_path, neighbours="replace_one") as session:
        found = session.table("visits").marginals([["region", "age"]], 1, "1e-6").release()
        assert found.total() == (N, N, N)
        assert found.estimate(["region"]).sum() == pytest.approx(N)


def test_all_tables_of_so_many_columns(session):
    """A number in place of the tables."""
    asked = session.table("visits").marginals(
        2, 1, "1e-6", columns=["region", "age", "smoker"], objective="largest"
    )
    assert asked.preview().names == tuple(itertools.combinations(["region", "age", "smoker"], 2))
    variances = asked.preview().variances
    assert max(variances) < 1.01 * min(variances)


@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_hardly_any_rows(tmp_path, rows):
    """Noise about nothing; no error tells how many there were."""
    with opened(tmp_path, ROWS.head(rows)) as session:
        found = session.table("visits").marginals([["region", "one"]], 1, "1e-6").release()
        assert np.abs(found.estimate(["region"])).max() < 200
        assert found.frame(["one", "region"]).height == 4


@pytest.mark.heavy("test_tables_come_near_the_truth_and_agree")
def test_a_column_of_very_many_values(tmp_path):
    """10^4 cells; two of them would be too many, and are refused before the charge."""
    wide = {c: {"bounds": [0, 99_999], "nullable": False} for c in ("a", "b")}
    rows = pl.DataFrame({"a": [5, 9_999], "b": [0, 1]})
    with opened(tmp_path, rows, columns=wide) as session:
        table = session.table("visits")
        found = table.marginals([["a"]], 1, "1e-6", cells=10_000).release()
        assert found.estimate(["a"]).shape == (10_000,)
        with pytest.raises(ArgumentError, match="more than 67,108,864 cells"):
            table.marginals([["a", "b"]], 1, "1e-6", cells=10_000)


@pytest.mark.parametrize(
    ("tables", "given", "error", "says"),
    [
        ([["region", "nope"]], {}, UnknownNameError, "nope"),
        ([["region", "region"]], {}, ArgumentError, "twice"),
        ([["region"], ["region"]], {}, ArgumentError, "names a table twice"),
        ([], {}, ArgumentError, "at least one"),
        ([[]], {}, ArgumentError, "lists of columns"),
        (["region"], {}, ArgumentError, "lists of columns"),
        ("region", {}, ArgumentError, "lists of columns"),
        ([["note"]], {}, BoundsError, "note: its values are not public"),
        (7, {"columns": ["region"]}, ArgumentError, "tables must be at most 1"),
        ([["region"]], {"columns": ["region"]}, ArgumentError, "columns goes with"),
        ([["region"]], {"weights": [1, 2]}, ArgumentError, "as many as the tables"),
        ([["region"]], {"weights": [0]}, ArgumentError, "weights must be"),
        ([["region"]], {"objective": "least"}, ArgumentError, "objective"),
        ([["region"]], {"epsilon": 0}, ArgumentError, "epsilon"),
        ([["region"]], {"delta": 0}, ArgumentError, "delta must be above 0"),
        ([["region"]], {"epsilon": "1e-30", "delta": "1e-40"}, ArgumentError, "too small"),
        ([["region"]], {"max_rows": 2}, dt.errors.DitherError, "max_rows|row"),
    ],
)
def test_bad_questions_are_refused_before_the_charge(session, tables, given, error, says):
    """Each by the argument that is wrong."""
    before = session.balance()
    with pytest.raises(error, match=says):
        session.table("visits").marginals(tables, **{"epsilon": 1, "delta": "1e-6"} | given)
    assert session.balance() == before


def test_tables_that_were_not_asked_for_are_refused(session):
    """And a result that was not released yet says so."""
    asked = session.table("visits").marginals([["region"], ["age"]], 1, "1e-6")
    with pytest.raises(AttributeError, match="nothing has been released yet"):
        asked.frame(["region"])
    with pytest.raises(ArgumentError, match="not asked for together"):
        asked.release().frame(["region", "age"])


def test_tables_without_negative_counts_and_rows(session):
    """Read from the release at no cost; they agree, and rows come with how near they are."""
    found = (
        session.table("visits")
        .marginals(2, 1, "1e-6", columns=["region", "age", "smoker"])
        .release()
    )
    spent = session.balance()
    local = found.nonnegative()
    frame = local.frame(["region", "smoker"])
    assert frame.columns == ["region", "smoker", "count"]
    assert frame["count"].min() >= 0
    assert frame["count"].sum() == pytest.approx(local.rows)
    rows = local.sample(500, seed=4)
    assert rows.frame.equals(local.sample(500, seed=4).frame)
    assert rows.frame.schema == {"region": pl.String, "age": pl.Int64, "smoker": pl.Boolean}
    assert rows.cell_frame.schema == {"region": pl.String, "age": pl.String, "smoker": pl.Boolean}
    assert rows.distances.height <= 3
    assert (rows.distances["distance"] < 0.1).all()
    assert "not unbiased" in local.summary()
    assert "pairs say more than noise" in rows.summary()
    assert local.sample().frame.height == round(local.rows)
    assert local.sample(0).frame.height == 0
    assert session.balance() == spent
    with pytest.raises(ArgumentError, match="not asked for together"):
        local.frame(["region", "age", "smoker"])


def test_pictures_show_tables_and_the_errors_of_all(session, tmp_path):
    """Of the table that was named, or the first pair; what was not asked for is refused."""
    asked = [["region", "age", "smoker"], ["one"], ["seen", "age"]]
    found = session.table("visits").marginals(asked, epsilon=1, delta="1e-6").release()
    for columns, title in (
        (None, "age × seen"),
        (["smoker", "region"], "region × smoker"),
        (["one"], "one"),
        (["seen"], "seen"),
    ):
        path = tmp_path / f"{title}.png"
        drawn = found.plot(path, columns=columns)
        assert drawn.axes[0].get_title(loc="left").startswith(f"{title}, each cell ± ")
        assert path.stat().st_size > 10_000
        assert [t.get_text() for t in drawn.axes[1].get_xticklabels()] == [
            "1-way (1)",
            "2-way (1)",
            "3-way (1)",
        ]
    for columns in (["region", "age", "smoker"], ["seen", "smoker"], ["nope"], []):
        with pytest.raises(ArgumentError, match="column"):
            found.plot(columns=columns)

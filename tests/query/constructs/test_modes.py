"""MODE: the most frequent of public values, chosen by chance."""

from __future__ import annotations

import datetime as dates

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BoundsError, QueryError
from query.query_data import rows_policy

LARGE = 10**5


@pytest.fixture
def plain(tmp_path, frames):
    """Rows are people, and chance is hardly there."""
    with dt.open(rows_policy(tmp_path, epsilon=10**6), sources=frames) as opened:
        yield opened


def test_the_most_frequent_value_is_chosen(plain, frames):
    """Of texts, whole numbers, truth values and bins, by group."""
    found = plain.sql(
        "SELECT region, MODE(age + 1) AS a, MODE(smoker) AS s, MODE(age // 10) AS d, "
        "MODE(BIN(cost, 0, 10, 200, 5000)) AS c, MODE(region) FILTER (WHERE smoker) AS r "
        "FROM visits GROUP BY region"
    ).release(LARGE).frame  # fmt: skip
    visits = frames["visits"]
    for row in found.iter_rows(named=True):
        own = visits.filter(pl.col("region") == row["region"])
        for name, values in (("a", own["age"] + 1), ("s", own["smoker"]), ("d", own["age"] // 10)):
            counts = dict(values.value_counts().iter_rows())
            assert counts[row[name]] == max(counts.values())
        assert row["c"] in ("[0, 10)", "[10, 200)", "[200, 5000]")
        assert row["r"] == row["region"]
        assert (row["a_lower"], row["a_upper"]) == (1, 111)
        assert (row["s_lower"], row["s_upper"]) == (False, True)
        assert row["r_lower"] is row["r_upper"] is None


def test_values_vote_as_they_are(tmp_path):
    """What is beyond the bounds votes for no value, where a median would be moved."""
    rows = pl.DataFrame({"x": [500] * 60 + [7] * 40, "y": ["odd"] * 60 + ["known"] * 40})
    declared = {
        "budget": {"epsilon": 10**6, "ledger": str(tmp_path / "modes.ledger")},
        "tables": {"t": {"columns": {"x": {"bounds": [5, 9]}, "y": {"values": ["new", "known"]}}}},
    }
    with dt.open(declared, sources={"t": rows}) as session:
        (row,) = (
            session.sql("SELECT MODE(x) AS x, MODE(y) AS y FROM t")
            .release(LARGE)
            .frame.rows(named=True)
        )
    assert (row["x"], row["y"]) == (7, "known")


def test_days_and_bins_that_are_declared(tmp_path):
    """A day is a date in the frame; a column is cut into its own bins, as a key is."""
    day = dates.date(2024, 3, 2)
    rows = pl.DataFrame({"day": [day] * 50 + [dates.date(2024, 3, 4)] * 9, "x": [2.5] * 59})
    columns = {
        "day": {"bounds": [dates.date(2024, 3, 1), dates.date(2024, 3, 31)]},
        "x": {"bounds": [0, 4], "bins": [0, 1, 4]},
    }
    declared = {
        "budget": {"epsilon": 10**6, "ledger": str(tmp_path / "days.ledger")},
        "tables": {"t": {"columns": columns}},
    }
    with dt.open(declared, sources={"t": rows}) as session:
        asked = session.sql("SELECT MODE(day) AS d, MODE(x) AS x FROM t")
        (row,) = asked.release(LARGE, token="once").frame.rows(named=True)
        assert (row["d"], row["x"]) == (day, "[1, 4]")
        assert asked.release(LARGE, token="once").frame.rows(named=True) == [row]


def test_both_doors_make_one_question(session):
    """As text in Python, in both spellings of SQL, and written back."""
    asked = session.sql("SELECT region, MODE(age) AS m FROM visits GROUP BY region")
    other = "MODE() WITHIN GROUP (ORDER BY age)"
    assert session.sql(asked.sql.replace("MODE(age)", other)).sql == asked.sql
    built = session.table("visits").group_by("region").agg(m="MODE(age)")
    assert built._plan.query == asked._plan.query
    assert session.sql("SELECT MODE(age) FROM visits")._plan.query.outputs[0].name == "mode_age"


def test_calculations_read_it(plain):
    """In CASE, HAVING and ORDER BY; what is calculated may be all that its values allow."""
    asked = plain.sql(
        "SELECT region, CASE WHEN MODE(smoker) THEN 1 ELSE 0 END AS s, 2 * MODE(age + 0) AS t, "
        "COUNT(*) AS n FROM visits GROUP BY region HAVING MODE(region) <> 'nowhere' "
        "ORDER BY MODE(region) DESC"
    )
    found = asked.release(LARGE).frame
    assert found["region"].to_list() == sorted(found["region"], reverse=True)
    assert set(found["s_lower"]) == {0}
    assert set(found["s_upper"]) == {1}
    assert found["t_upper"].to_list() == pytest.approx([220] * 4)
    assert len(plain.sql("SELECT MODE(age) AS a, MODE(age) AS b FROM visits")._plan.weights) == 1


def test_it_is_explained_previewed_and_certified(session):
    """Candidates, sensitivity, rate and cost; how many rows the choice may fall short."""
    asked = session.sql(
        "SELECT region, MODE(age + 0) AS m, COUNT(*) AS n FROM visits GROUP BY region"
    )
    text = str(asked.explain(1, 0))
    assert "votes of rows for values of age + 0" in text
    assert "111 public values: 0, 1, 2, 3, 4, 5, ... 110" in text
    assert "exponential mechanism: chooses among" in text
    preview = asked.preview(1, 0)
    assert list(preview.widths) == ["n"]
    assert "the mode in m has at most" in str(preview)
    alone = session.sql("SELECT MODE(age) AS m FROM visits").preview(1, 0)
    assert alone.widths == {}
    assert str(alone).startswith("the mode in m has at most")
    with pytest.raises(ArgumentError, match="no output has an interval"):
        alone.plot()
    with pytest.raises(ArgumentError, match="no output 'm'"):
        asked.budget_for({"m": 3})
    release = asked.release(1, 0)
    assert any(note.startswith("the mode in m is chosen by chance") for note in release.notes)
    votes, counts = release.certificate.to_dict()["measurements"]
    assert votes["mechanism"] == "exponential mechanism"
    assert votes["loss"]["epsilon"] == "1/2"
    assert counts["mechanism"] == "discrete Laplace"
    assert "[0, 110]" in release.summary()


def test_a_shortfall_holds(tmp_path):
    """In 500 groups, at 80 % confidence, more than 72 % choose a value that near to the best.

    Were each as likely as that to be no nearer, so few would be with a probability of 1e-5.
    """
    groups = range(500)
    rows = [{"g": g, "v": v} for g in groups for v in [0] * 6 + [1] * 4 + [2] * 1]
    declared = {
        "budget": {"epsilon": 100, "ledger": str(tmp_path / "short.ledger")},
        "tables": {"t": {"columns": {"g": {"bounds": [0, 499]}, "v": {"bounds": [0, 3]}}}},
    }
    with dt.open(declared, sources={"t": pl.DataFrame(rows)}) as session:
        asked = session.sql("SELECT g, MODE(v) AS m FROM t GROUP BY g")
        short = asked.preview(1, 0, confidence=0.8).short["m"]
        chosen = asked.release(1, 0).frame["m"].to_list()
    votes = {0: 6, 1: 4, 2: 1, 3: 0}
    assert sum(6 - votes[v] <= short for v in chosen) > 0.72 * 500


@pytest.mark.parametrize(
    ("item", "kind", "said"),
    [
        (
            "MODE(city)",
            BoundsError,
            "values in the policy, or learn them for epsilon 0.1 with session.learn",
        ),
        ("MODE(cost)", BoundsError, r"MODE\(BIN\(cost, e0, e1"),
        ("MODE(pid)", BoundsError, r"who is protected, .* count people with COUNT\(DISTINCT pid\)"),
        ("MODE(pid + 1)", BoundsError, r"write MODE\(CLAMP\(pid \+ 1, low, high\)\)"),
        ("MODE(age * 1000)", QueryError, "."),
        ("MODE(NULL)", QueryError, "NULL is the only value"),
        ("MODE(0.5) WITHIN GROUP (ORDER BY age)", QueryError, "MODE() WITHIN GROUP"),
        ("MODE(DISTINCT age)", QueryError, "DISTINCT"),
        ("RANK() OVER (ORDER BY MODE(region))", QueryError, "numbers"),
    ],
)
def test_what_cannot_be_chosen_is_named(session, item, kind, said):
    """Before anything is charged."""
    if said == ".":
        assert session.sql(f"SELECT {item} AS x FROM visits").preview(1).short["x"] > 0
        return
    with pytest.raises(kind, match=said.replace("MODE()", r"MODE\(\)")):
        session.sql(f"SELECT {item} AS x FROM visits")

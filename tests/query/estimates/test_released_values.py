"""What is calculated from released values: HAVING, ranks, arithmetic, order; SQL and Python."""

from __future__ import annotations

import math

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, QueryError
from query.query_data import policy

BY = "FROM visits GROUP BY region"


def measured(question):
    """What is measured, with which share."""
    return question._plan.job.measurements, question._plan.weights


def test_values_are_those_of_the_released_frame(session):
    """Every calculation gives what anybody would calculate from the frame."""
    found = session.sql(
        "SELECT region, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS m, 100 * AVG(age) AS c, "
        "ROUND(AVG(age), 1) AS r, n - 10 AS d, AVG(age) / n AS q, SQRT(n) AS w, "
        "CASE WHEN region = 'north' THEN 'up' WHEN n > 990 THEN 'many' ELSE 'few' END AS word, "
        f"n > 990 AS many, RANK() OVER (ORDER BY n DESC) AS place {BY}"
    )
    frame = found.release(4).frame
    assert frame.schema["d"] == frame.schema["place"] == pl.Int64
    assert frame.schema["word"] == pl.String
    assert frame.schema["many"] == pl.Boolean
    ranks = sorted(frame["n"], reverse=True)
    for row in frame.iter_rows(named=True):
        n, m = row["n"], row["m"]
        assert row["c"] == pytest.approx(100 * m)
        assert row["r"] == pytest.approx(round(m, 1), abs=1e-9)
        assert row["d"] == n - 10
        assert row["q"] == pytest.approx(m / n)
        assert row["w"] == pytest.approx(math.sqrt(n))
        word = "up" if row["region"] == "north" else "many" if n > 990 else "few"
        assert row["word"] == word
        assert row["many"] is (n > 990)
        assert row["place"] == ranks.index(n) + 1
        assert row["c_lower"] == pytest.approx(100 * row["m_lower"], rel=1e-9)
        assert row["r_lower"] <= row["r"] <= row["r_upper"]


def test_the_same_aggregate_is_measured_once(session):
    """However often it stands, and it takes the share of one."""
    once = session.sql(f"SELECT region, AVG(cost) AS a, COUNT(*) AS n {BY}")
    often = session.sql(
        "SELECT region, AVG(cost) AS a, COUNT(*) AS n, 2 * AVG(cost) AS b, AVG(cost) + n AS c "
        f"{BY} "
        "HAVING AVG(cost) > 3 ORDER BY AVG(cost) / n"
    )
    assert measured(once) == measured(often)
    assert once.loss(1).charge == often.loss(1).charge


def test_having_may_ask_for_what_is_not_released(session):
    """It takes a share then, and no more epsilon; nothing is ever measured without a share."""
    plain = session.sql(f"SELECT region, SUM(cost) AS s {BY}")
    chosen = session.sql(f"SELECT region, SUM(cost) AS s {BY} HAVING COUNT(DISTINCT pid) > 10")
    assert len(chosen._plan.job.measurements) == 2
    assert all(chosen._plan.weights)
    assert all(noise is not None for noise in chosen._noise_plan(1, None).noises.values())
    assert plain.loss(1).charge.epsilon == chosen.loss(1).charge.epsilon
    found = chosen.release(4)
    assert found.outputs == ["s"]
    assert any("HAVING chooses groups by their noisy values" in note for note in found.notes)


def test_groups_are_chosen_sorted_and_cut_in_that_order(session):
    """HAVING, then ranks, ORDER BY, OFFSET and LIMIT; all on the noisy values."""
    text = f"SELECT region, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS i {BY}"
    whole = session.sql(text).release(1, token="a")
    assert sorted(whole.frame["i"]) == [1, 2, 3, 4]
    some = session.sql(text + " HAVING n > 100 ORDER BY -1 * n LIMIT 2 OFFSET 1").release(1)
    assert some.frame["i"].to_list() == [3, 2]
    assert some.frame["n"].is_sorted(descending=True)
    none = session.sql(text + " HAVING n < -1000000").release(1)
    assert none.frame.height == 0
    assert none.frame.columns == whole.frame.columns
    assert session.sql(text + " LIMIT 3 OFFSET 9").release(1).frame.height == 0


def test_what_is_unknown_is_null(tmp_path):
    """Divisors of 0, roots of what is below 0 and empty groups: NULL, and everything possible."""
    nobody = pl.DataFrame(schema={"pid": pl.Int64, "region": pl.String, "cost": pl.Float64})
    declared = policy(tmp_path, budget={"epsilon": 10**6, "delta": 0})
    del declared["tables"]["regions"], declared["tables"]["visits"]["columns"]["age"]
    with dt.open(declared, sources={"visits": nobody}) as session:
        found = session.sql(
            "SELECT COUNT(*) / (COUNT(*) - COUNT(DISTINCT pid)) AS a, SQRT(COUNT(*) - 5) AS b, "
            "LN(COUNT(*) - 5) AS c, COALESCE(SQRT(COUNT(*) - 5), -1) AS d, 1 / COUNT(*) AS e, "
            "SQRT(COUNT(*) - 5) IS NULL AS f, SQRT(COUNT(*) - 5) > 1 AS g FROM visits"
        ).release(10**5)
    (row,) = found.frame.iter_rows(named=True)
    assert [row[c] for c in "abceg"] == [None] * 5
    assert (row["a_lower"], row["a_upper"]) == (-math.inf, math.inf)
    assert (row["b_lower"], row["b_upper"]) == (None, None)
    assert row["d"] == row["d_lower"] == row["d_upper"] == -1
    assert (row["f"], row["f_lower"], row["f_upper"]) == (True, True, True)
    assert "unknown" in found.summary()


def test_a_divisor_of_either_sign_is_told(session):
    """A ratio of sums that are surely below 0 has a value and a bounded interval."""
    asked = session.sql("SELECT SUM(cost) / SUM(-1 * age - 1) AS r FROM visits")
    (row,) = asked.release(7.9).frame.iter_rows(named=True)
    assert -math.inf < row["r_lower"] < row["r"] < row["r_upper"] < 0


def test_the_builder_asks_the_same(session):
    """Operators, text, and methods of the question."""
    rows = session.table("visits").group_by("region")
    built = (
        rows.agg(
            n=dt.count(),
            c=100 * dt.mean("cost"),
            q=dt.sum("cost") / dt.count(),
            d=dt.mean("age") - dt.median("age") / 2,
            r=round(dt.mean("age"), 1),
            a=abs(-dt.sum("age") + 1.5),
            place="RANK() OVER (ORDER BY n DESC)",
            word="CASE WHEN region = 'north' THEN 'up' ELSE 'down' END",
        )
        .having("n > 10")
        .having("AVG(age) < 90")
        .order_by("n DESC", "2 * AVG(age)")
        .limit(3, offset=1)
    )
    asked = session.sql(
        "SELECT region, COUNT(*) AS n, 100 * AVG(cost) AS c, SUM(cost) / COUNT(*) AS q, "
        "AVG(age) - MEDIAN(age) / 2 AS d, ROUND(AVG(age), 1) AS r, "
        "ABS((-1) * SUM(age) + 1.5) AS a, RANK() OVER (ORDER BY COUNT(*) DESC) AS place, "
        f"CASE WHEN region = 'north' THEN 'up' ELSE 'down' END AS word {BY} "
        "HAVING n > 10 AND AVG(age) < 90 ORDER BY n DESC, 2 * AVG(age) LIMIT 3 OFFSET 1"
    )
    assert built._plan.query == asked._plan.query
    assert built.sql == asked.sql
    assert session.sql(built.sql)._plan.query == asked._plan.query
    assert built.release(1).frame.height == 3


def test_it_is_previewed_and_explained(session):
    """Half-widths of numbers; ranks, texts and truth values have none."""
    asked = session.sql(
        "SELECT COUNT(*) AS n, 100 * AVG(cost) AS c, AVG(cost) - AVG(age) AS d, n > 3 AS t, "
        "AVG(cost) AS m, RANK() OVER (ORDER BY COUNT(*)) AS k, MEDIAN(age) * 2 AS e, "
        "STDDEV(cost) / 3 AS v FROM visits HAVING n > 3"
    )
    widths = asked.preview(1).widths
    assert list(widths) == ["n", "c", "d", "m", "e", "v"]
    assert widths["c"] == pytest.approx([100 * w for w in widths["m"]])
    assert all(0 < w < math.inf for ws in widths.values() for w in ws[1:])
    assert asked.budget_for({"c": 5000}, size=10_000) > 0
    with pytest.raises(ArgumentError, match="no output 'k' with a half-width"):
        asked.budget_for({"k": 1})
    text = " ".join(str(asked.explain(1)).replace("│", " ").split())
    assert "its interval from 2 that hold at once (Bonferroni)" in text
    assert "shown where COUNT(*) > 3, from measurement" in text


def test_a_release_of_them_is_kept_and_drawn(session, tmp_path):
    """Certificate, replay and picture; texts and truth values are not drawn."""
    text = f"SELECT region, COUNT(*) AS n, n > 990 AS t, 2 * AVG(age) AS m {BY} HAVING n > 1"
    first = session.sql(text).release(1, token="t")
    again = session.sql(text).release(1, token="t")
    assert again.frame.equals(first.frame)
    assert dt.verify(first.certificate, session.ledger).ok
    assert "True" in first.summary() or "False" in first.summary()
    first.plot(str(tmp_path / "n.png"))
    assert (tmp_path / "n.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("COUNT(*) + 'a'", "is of numbers"),
        ("COUNT(*) = 'a'", "do not go together"),
        ("CASE WHEN COUNT(*) THEN 1 END", "not a condition"),
        ("CASE WHEN COUNT(*) > 1 THEN 1 ELSE 'a' END", "do not go together"),
        ("COUNT(*) > 1 AND SUM(age)", "AND is of conditions"),
        ("RANK() OVER (ORDER BY COUNT(*) > 3)", "is of numbers"),
        ("age + COUNT(*)", "raw columns"),
    ],
)
def test_what_makes_no_sense_is_refused(session, item, said):
    """By kind, before anything is charged."""
    with pytest.raises(QueryError, match=said):
        session.sql(f"SELECT {item} AS x FROM visits")


@pytest.mark.parametrize(
    ("having", "said"),
    [
        ("COUNT(*)", "HAVING: what stands there is not a condition"),
        ("RANK() OVER (ORDER BY COUNT(*)) < 3", "ranks are counted among the groups"),
        ("region > 3", "do not go together"),
        ("city = 'alpha'", "raw columns"),
    ],
)
def test_having_is_about_released_values(session, having, said):
    """Conditions on them, and on nothing else."""
    with pytest.raises(QueryError, match=said):
        session.sql(f"SELECT region, COUNT(*) AS n {BY} HAVING {having}")
    with pytest.raises(QueryError, match=said):
        session.table("visits").group_by("region").agg(n=dt.count()).having(having)


def test_order_is_checked_too(session):
    """Nothing but columns of the release may follow."""
    asked = session.table("visits").group_by("region").agg(n=dt.count())
    for wrong in ("n LIMIT 3", "n OPTIONS (max_rows_contributed = 1)", "age", "'a'", "n; SELECT 1"):
        with pytest.raises(QueryError):
            asked.order_by(wrong)
    with pytest.raises(ArgumentError, match="at least one column"):
        asked.order_by()
    with pytest.raises(ArgumentError, match="offset"):
        asked.limit(3, offset=-1)


def test_quantiles_of_a_wide_range_are_calculated_with(tmp_path):
    """Found in two steps, also where a calculation, HAVING or ORDER BY alone reads them."""
    rows = pl.DataFrame({"c": [1_000_003] * 500})
    declared = {
        "budget": {"epsilon": 10**6, "ledger": str(tmp_path / "wide.ledger")},
        "tables": {"t": {"columns": {"c": {"bounds": [0, 2**23]}}}},
    }
    with dt.open(declared, sources={"t": rows}) as session:
        (row,) = session.sql(
            "SELECT 2 * MEDIAN(c) AS x, COUNT(*) AS n FROM t HAVING QUANTILE_CONT(c, 0.4) > 10 "
            "ORDER BY QUANTILE_CONT(c, 0.6)"
        ).release(10**4).frame.rows(named=True)  # fmt: skip
        assert row["x"] == pytest.approx(2_000_006, abs=20)
        session.sql("SELECT COUNT(*) AS n FROM t ORDER BY MEDIAN(c)").preview(1)

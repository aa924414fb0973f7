"""Distinct values, filters, truth values, lists of quantiles and statistics of pairs.

At an epsilon of thousands noise is hardly there, so that answers are those of Polars.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BoundsError, QueryError
from query.query_data import policy, rows_policy

BY = "FROM visits GROUP BY region"
LARGE = 10**5


@pytest.fixture
def plain(tmp_path, frames):
    """Rows are people, and noise is hardly there."""
    with dt.open(rows_policy(tmp_path, epsilon=10**6), sources=frames) as opened:
        yield opened


def exact(name, values):
    """A statistic of two columns, by its definition."""
    y, x = (v.astype(float) for v in values)
    covariance = float(np.mean((y - y.mean()) * (x - x.mean())))
    slope = covariance / x.var()
    return {
        "COVAR_POP": covariance,
        "COVAR_SAMP": covariance * len(y) / (len(y) - 1),
        "CORR": covariance / math.sqrt(x.var() * y.var()),
        "REGR_SLOPE": slope,
        "REGR_INTERCEPT": y.mean() - slope * x.mean(),
        "REGR_R2": covariance**2 / (x.var() * y.var()),
        "REGR_COUNT": len(y),
        "REGR_AVGX": x.mean(),
        "REGR_AVGY": y.mean(),
    }[name]


WORDS = ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")


def test_statistics_of_pairs_are_those_of_their_definition(plain, frames):
    """Of values moved to their bounds, as sums and variances are; the interval is near them."""
    every = (*WORDS, "REGR_COUNT", "REGR_AVGX", "REGR_AVGY")
    chosen = ", ".join(f"{word}(cost, age) AS o{i}" for i, word in enumerate(every))
    found = plain.sql(f"SELECT region, {chosen} {BY}").release(LARGE).frame
    for row in found.iter_rows(named=True):
        own = frames["visits"].filter(pl.col("region") == row["region"])
        pair = own["cost"].clip(0, 5000).to_numpy(), own["age"].clip(0, 110).to_numpy()
        for i, word in enumerate(every):
            true = exact(word, pair)
            spread = row[f"o{i}_upper"] - row[f"o{i}_lower"]
            slack = 1e-3 * (1 + abs(true))
            assert row[f"o{i}_lower"] - slack <= true <= row[f"o{i}_upper"] + slack, word
            assert row[f"o{i}"] == pytest.approx(true, rel=0.02, abs=spread + slack), word


def test_pairs_are_of_rows_in_which_both_are_known(tmp_path):
    """A NULL on either side leaves the row out of every part of it."""
    rows = pl.DataFrame(
        {"a": [1.0, 2.0, 3.0, None, 5.0, 9.0] * 50, "b": [2.0, 4.0, 6.0, 8.0, None, 18.0] * 50}
    )
    columns = {"a": {"bounds": [0, 10]}, "b": {"bounds": [0, 20]}}
    declared = {
        "budget": {"epsilon": 10**6, "ledger": str(tmp_path / "pairs.ledger")},
        "tables": {"t": {"columns": columns}},
    }
    with dt.open(declared, sources={"t": rows}) as session:
        (row,) = session.sql(
            "SELECT CORR(b, a) AS r, REGR_SLOPE(b, a) AS s, REGR_INTERCEPT(b, a) AS i, "
            "REGR_COUNT(b, a) AS n, REGR_AVGX(b, a) AS x FROM t"
        ).release(LARGE).frame.iter_rows(named=True)  # fmt: skip
    assert row["n"] == 200
    assert row["x"] == pytest.approx(3.75, abs=0.01)
    assert (row["r"], row["s"]) == (pytest.approx(1, abs=1e-3), pytest.approx(2, abs=1e-2))
    assert row["i"] == pytest.approx(0, abs=0.05)
    assert row["r_upper"] == 1


def test_counts_of_distinct_values(plain, frames):
    """Of text, numbers and truth values, with a condition and without."""
    found = plain.sql(
        "SELECT region, COUNT(DISTINCT city) AS c, COUNT(DISTINCT cost) AS m, "
        "COUNT(DISTINCT age) FILTER (WHERE smoker) AS a, COUNT(DISTINCT smoker) AS s, "
        f"COUNT(DISTINCT pid) AS p {BY}"
    ).release(LARGE).frame  # fmt: skip
    for row in found.iter_rows(named=True):
        own = frames["visits"].filter(pl.col("region") == row["region"])
        assert row["c"] == own["city"].n_unique()
        assert row["m"] == own["cost"].n_unique()
        assert row["a"] == own.filter(pl.col("smoker"))["age"].n_unique()
        assert row["s"] == 2
        assert row["p"] == own["pid"].n_unique()


def test_a_unit_has_so_many_distinct_values(tmp_path):
    """Of one person with 50 values as many as ``max_rows`` count, in one group."""
    rows = pl.DataFrame({"pid": [1] * 50, "region": ["north"] * 50, "cost": np.arange(50.0)})
    declared = policy(tmp_path, budget={"epsilon": 10**6, "delta": 0})
    del declared["tables"]["regions"], declared["tables"]["visits"]["columns"]["age"]
    with dt.open(declared, sources={"visits": rows}) as session:
        asked = session.sql("SELECT COUNT(DISTINCT cost) AS n FROM visits")
        assert asked.release(LARGE).frame["n"].to_list() == [5]
        assert asked.release(LARGE, max_rows=20).frame["n"].to_list() == [20]
        text = str(asked.explain(1))
        assert "count of distinct values of cost" in text
        assert "sensitivity  5 in a group" in text


def test_conditions_inside(plain, frames):
    """FILTER, COUNT_IF and sums of truth values, and ``where`` in Python."""
    (row,) = plain.sql(
        "SELECT COUNT(*) FILTER (WHERE age > 50) AS a, COUNT_IF(smoker) AS b, SUM(smoker) AS c, "
        "AVG(age > 50) AS d, SUM(cost) FILTER (WHERE smoker AND age > 50) AS e, "
        "MEDIAN(age) FILTER (WHERE smoker) AS f FROM visits"
    ).release(LARGE).frame.iter_rows(named=True)  # fmt: skip
    whole = frames["visits"]
    old, smokes = pl.col("age") > 50, pl.col("smoker")
    assert row["a"] == whole.filter(old).height
    assert row["b"] == round(row["c"]) == whole.filter(smokes).height
    assert row["d"] == pytest.approx(whole.filter(old).height / whole.height, abs=1e-4)
    clipped = whole.filter(old & smokes)["cost"].clip(0, 5000).sum()
    assert row["e"] == pytest.approx(clipped, rel=1e-3)
    assert row["f"] == pytest.approx(whole.filter(smokes)["age"].median(), abs=1)
    built = plain.table("visits").agg(
        a=dt.count().where("age > 50"), e=dt.sum("cost").where("smoker").where("age > 50")
    )
    assert built.sql == (
        "SELECT COUNT(CASE WHEN age > 50 THEN 1 END) AS a, "
        "SUM(CASE WHEN age > 50 THEN CASE WHEN smoker THEN cost END END) AS e FROM visits"
    )


def test_units_with_a_condition(session, frames):
    """Each counts once, however many such rows it has, and moves the count by 1."""
    asked = session.sql("SELECT COUNT(DISTINCT pid) FILTER (WHERE smoker) AS n FROM visits")
    assert [s.per_group for s in asked._plan.sensitivities] == [1]
    built = session.table("visits").agg(n=dt.count_units().where("smoker"))
    assert built._plan.query == asked._plan.query
    (row,) = asked.release(7).frame.iter_rows(named=True)
    true = frames["visits"].filter(pl.col("smoker"))["pid"].n_unique()
    assert abs(row["n"] - true) < 30


def test_a_list_of_quantiles_is_one_tree(plain):
    """One output each, the weight of one, and no second histogram."""
    asked = plain.sql(f"SELECT region, QUANTILE_CONT(age, [0.25, 0.5, 0.975]) AS q, COUNT(*) {BY}")
    assert [o.name for o in asked._plan.query.outputs] == ["q_25", "q_50", "q_97_5", "count"]
    assert len(asked._plan.job.measurements) == 2
    assert asked._plan.weights[0] == asked._plan.weights[1]
    within = "PERCENTILE_CONT([0.25, 0.5, 0.975]) WITHIN GROUP (ORDER BY age)"
    assert plain.sql(f"SELECT region, {within} AS q, COUNT(*) {BY}").sql == asked.sql
    built = (
        plain.table("visits")
        .group_by("region")
        .agg(q=dt.quantile("age", [0.25, 0.5, 0.975]), count=dt.count())
    )
    assert built._plan.query == asked._plan.query
    unnamed = plain.sql("SELECT QUANTILE_DISC(age, [0.1, 0.9]) FROM visits")
    assert [o.name for o in unnamed._plan.query.outputs] == ["disc_age_10", "disc_age_90"]
    with pytest.raises(QueryError, match="one share at least"):
        plain.sql("SELECT QUANTILE_CONT(age, []) FROM visits")
    with pytest.raises(ArgumentError, match="one share at least"):
        dt.quantile("age", [])


def test_a_discrete_quantile_is_a_value_that_can_occur(tmp_path):
    """Where the interpolated one lies between two, and in the interval of the true one."""
    rows = pl.DataFrame({"x": [0.0] * 500 + [10.0] * 500})
    declared = {
        "budget": {"epsilon": 10**6, "ledger": str(tmp_path / "disc.ledger")},
        "tables": {"t": {"columns": {"x": {"bounds": [0, 10], "step": "0.5"}}}},
    }
    with dt.open(declared, sources={"t": rows}) as session:
        asked = session.sql("SELECT QUANTILE_DISC(x, 0.4) AS a, QUANTILE_DISC(x, 0.6) AS b FROM t")
        (row,) = asked.release(LARGE).frame.iter_rows(named=True)
        assert (row["a"], row["b"]) == (0, 10)
        assert asked.sql.startswith("SELECT QUANTILE_DISC(x, 0.4)")
        built = session.table("t").agg(
            a=dt.quantile("x", "0.4", discrete=True), b=dt.quantile("x", "0.6", discrete=True)
        )
        assert built._plan.query == asked._plan.query


@pytest.mark.parametrize(
    ("item", "kind", "said"),
    [
        ("CORR(cost, city)", QueryError, "CORR of city: not a number"),
        ("CORR(pid, cost)", BoundsError, "CORR of pid needs bounds"),
        ("COUNT(DISTINCT 1)", QueryError, "a constant has one value"),
        ("SUM(cost) FILTER (WHERE cost)", QueryError, "condition"),
        ("ROUND(QUANTILE_CONT(age, [0.1, 0.2]), 1)", QueryError, "list"),
    ],
)
def test_what_cannot_be_asked_is_named(session, item, kind, said):
    """Before anything is charged."""
    with pytest.raises(kind, match=said):
        session.sql(f"SELECT {item} AS x FROM visits")


def test_no_interval_holds_more_distinct_values_than_there_can_be(tmp_path, frames):
    """Nor fewer than none; what is released stays the noisy number, which is right on average."""
    counted = {
        "COUNT(DISTINCT region)": 4,
        "COUNT(DISTINCT smoker)": 2,
        "COUNT(DISTINCT cost > 100)": 2,
        "COUNT(DISTINCT BIN(cost, 0, 10, 20, 30))": 3,
        "COUNT(DISTINCT CLAMP(age, 18, 20))": 3,
        "2 * COUNT(DISTINCT region) + 1": 9,
        "10 - COUNT(DISTINCT region)": 10,
    }
    shown = ", ".join(f"{asked} AS o{i}" for i, asked in enumerate(counted))
    with dt.open(policy(tmp_path), sources=frames) as opened:
        asked = opened.sql(f"SELECT {shown}, COUNT(DISTINCT city) AS free FROM visits")
        release = asked.release(0.01)
    (row,) = release.frame.iter_rows(named=True)
    for i, most in enumerate(counted.values()):
        assert row[f"o{i}_upper"] <= most
        assert row[f"o{i}_lower"] >= (6 if most == 10 else 0)
    # Noise of so small an epsilon reaches far, and where nothing is declared it is told so.
    assert row["free_upper"] - row["free_lower"] > 100


def test_an_interval_of_distinct_values_holds_the_truth(tmp_path, frames):
    """Also at the limit: all values that are declared are there."""
    with dt.open(policy(tmp_path, budget={"epsilon": 10**6}), sources=frames) as opened:
        (row,) = (
            opened.sql("SELECT COUNT(DISTINCT region) AS n FROM visits")
            .release(LARGE)
            .frame.iter_rows(named=True)
        )
    assert row == {"n": row["n"], "n_lower": row["n"], "n_upper": row["n"]}
    assert row["n"] == frames["visits"]["region"].drop_nulls().n_unique()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("SELECT AVG(cost / 0) AS x FROM visits", "cost / 0 divides by 0, .* something else"),
        ("SELECT SUM(age % 0) AS x FROM visits", "age % 0 divides by 0"),
        ("SELECT COUNT(age // (1 - 1)) AS x FROM visits", "divides by 0"),
        ("SELECT AVG(LN(0)) AS x FROM visits", r"LN\(0\) is NULL in every row; leave it out"),
        ("SELECT AVG(SQRT(-1) * cost) AS x FROM visits", r"SQRT\(-1\) is NULL in every row"),
        ("SELECT SUM(CAST('x' AS INTEGER)) AS x FROM visits", "is NULL in every row"),
        ("SELECT COUNT(*) FILTER (WHERE cost / 0 > 1) AS x FROM visits", "divides by 0"),
        ("SELECT CORR(cost, age / 0) AS x FROM visits", "divides by 0"),
        ("SELECT COUNT(*) AS n FROM visits WHERE cost / 0 > 1", "WHERE keeps no row: cost / 0"),
        ("SELECT COUNT(*) AS n FROM visits WHERE NULL", "WHERE keeps no row: it is NULL"),
        ("SELECT age % 0 AS k, COUNT(*) AS n FROM visits GROUP BY age % 0", "GROUP BY: age % 0"),
        (
            "SELECT AVG(z) AS x FROM (SELECT cost / 0 AS z FROM visits)",
            "z: cost / 0 divides by 0",
        ),
        ("SELECT AVG(cost) / 0 AS x FROM visits", "a released value over 0 has no value"),
        ("SELECT COUNT(*) AS n FROM visits HAVING COUNT(*) / 0 > 1", "over 0 has no value"),
    ],
)
def test_what_has_no_value_in_any_row_is_refused(session, asked, told):
    """An answer about it would cost, and say nothing of anybody."""
    with pytest.raises(QueryError, match=told):
        session.sql(asked)


def test_what_has_a_value_in_some_rows_is_not(session):
    """A divisor that may be 0 is NULL there, and a test for NULL is a test."""
    for asked in ("COUNT(cost / age)", "AVG(CASE WHEN age / 0 IS NULL THEN 1 ELSE 0 END)"):
        assert session.sql(f"SELECT {asked} AS x FROM visits").explain(1)


def test_a_share_of_the_rows_is_at_most_all_of_them(tmp_path, frames):
    """However it is written, and however far the noise of so small an epsilon reaches."""
    shares = {
        "COUNT_IF(smoker) / COUNT(*)": 1,
        "1.0 * COUNT_IF(smoker) / COUNT(*)": 1,
        "100 * COUNT(cost) / COUNT(*)": 100,
        "100 * (COUNT(*) FILTER (WHERE age > 40) / COUNT(*))": 100,
        "AVG(smoker)": 1,
    }
    shown = ", ".join(f"{share} AS o{i}" for i, share in enumerate(shares))
    with dt.open(policy(tmp_path), sources=frames) as opened:
        (row,) = opened.sql(f"SELECT {shown} FROM visits").release(0.01).frame.to_dicts()
    for i, most in enumerate(shares.values()):
        # Ends that are calculated are rounded outwards.
        assert -1e-9 <= row[f"o{i}_lower"] <= row[f"o{i}_upper"] <= most * (1 + 1e-9)

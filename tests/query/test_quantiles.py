"""Quantiles end to end: wide ranges, several rows of a unit, and what SQL means by them."""

import numpy as np
import polars as pl
import pytest

import dither as dt


def opened(folder, frame, columns, **table):
    """A session on one table ``t`` with next to no limit on what may be spent."""
    policy = {
        "budget": {"epsilon": 10**9, "ledger": str(folder / "quantiles.ledger")},
        "tables": {"t": {"source": "t.parquet", "columns": columns, **table}},
    }
    return dt.open(policy, sources={"t": frame})


def test_one_value_in_a_wide_range_is_told_to_its_resolution(tmp_path):
    """1,000 among a million: within 1 of it, and the notes say that no more can be told."""
    frame = pl.DataFrame({"x": [1000.0] * 500, "y": [1000] * 500})
    columns = {"x": {"bounds": [0, 10**6]}, "y": {"bounds": [0, 10**6], "type": "integer"}}
    with opened(tmp_path, frame, columns) as session:
        release = session.sql("SELECT MEDIAN(x) AS x, MEDIAN(y) AS y FROM t").release(10**4)
    row = release.frame.row(0, named=True)
    assert (row["y"], row["y_lower"], row["y_upper"]) == (1000, 1000, 1000)
    assert row["x_lower"] <= 1000 <= row["x_upper"]
    assert 0 < row["x_upper"] - row["x_lower"] <= 2
    assert "quantiles of x are told apart by 1, and no finer" in release.notes


def test_rows_of_a_unit_that_do_not_all_count_leave_no_gap_in_the_interval(tmp_path):
    """With 2 of 40 rows counted, the interval holds the median of all rows at any epsilon.

    30 releases at ε = 100, of intervals of at least 95 %: fewer than 20 hold it with probability
    below 1e-8. Were rows chosen by chance, about 9 of 30 would.
    """
    rng = np.random.default_rng(7)
    values = rng.normal(rng.normal(50, 10, 150)[:, None], 15, (150, 40)).round().clip(0, 100)
    frame = pl.DataFrame({"user": np.repeat(np.arange(150), 40), "x": values.ravel().astype(int)})
    columns = {"x": {"type": "integer", "bounds": [0, 100]}}
    with opened(tmp_path, frame, columns, unit="user", max_groups=1, max_rows=2) as session:
        question = session.sql("SELECT MEDIAN(x) AS m FROM t")
        frames = [question.release(100).frame for _ in range(30)]
    truth = frame["x"].median()
    found = pl.concat(frames)
    assert (found["m_lower"].le(truth) & found["m_upper"].ge(truth)).sum() >= 20


@pytest.mark.parametrize("values", [[0, 10], [3, 3, 9], list(range(0, 60, 6)), [1, 50, 50, 90]])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_quantile_cont_is_that_of_duckdb(tmp_path, values, q):
    """With next to no noise the interval holds what DuckDB says, between two rows too."""
    import duckdb

    frame = pl.DataFrame({"x": values})
    with duckdb.connect() as engine:
        listed = ", ".join(f"({v})" for v in values)
        asked = f"SELECT QUANTILE_CONT(x, {q}) FROM (VALUES {listed}) AS t(x)"
        ((truth,),) = engine.execute(asked).fetchall()
    with opened(tmp_path, frame, {"x": {"type": "integer", "bounds": [0, 100]}}) as session:
        sql = f"SELECT QUANTILE_CONT(x, {q}) AS v FROM t"
        row = session.sql(sql).release(10**4).frame.row(0, named=True)
    assert row["v_lower"] <= truth <= row["v_upper"]


def test_values_that_are_rounded_widen_the_interval_by_half_a_step(tmp_path):
    """A real column is read on a lattice: a multiple of its step stands for what is near it."""
    frame = pl.DataFrame({"x": [22.6] * 500})
    with opened(tmp_path, frame, {"x": {"bounds": [0, 30], "step": 0.5}}) as session:
        row = session.sql("SELECT MEDIAN(x) AS v FROM t").release(100).frame.row(0)
    assert row == (22.5, 22.25, 22.75)

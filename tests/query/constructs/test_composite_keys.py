"""Public tables whose rows are told apart by several columns together."""

from __future__ import annotations

import polars as pl
import pytest

import dither as dt
from dither.errors import PolicyError, QueryError
from query.query_data import REGIONS, policy, visits

RATES = pl.DataFrame(
    {
        "region": [region for region in REGIONS for _ in range(2)],
        "smoker": [True, False] * len(REGIONS),
        "rate": [float(i) for i in range(2 * len(REGIONS))],
    }
)


def opened(tmp_path, rates, unique):
    """Visits beside a table of rates."""
    made = policy(tmp_path, budget={"epsilon": 10**6})
    made["tables"]["visits"] |= {"max_groups": 1, "max_rows": 20}
    made["tables"].pop("regions", None)
    made["tables"]["rates"] = {
        "public": True,
        "unique": unique,
        "columns": {"region": {"values": list(REGIONS)}, "rate": {"bounds": [0, 9]}},
    }
    return dt.open(made, sources={"visits": visits(), "rates": rates})


def test_a_table_is_joined_on_all_columns_of_its_key(tmp_path):
    """Each visit meets the one rate of its region and habit, through both doors."""
    with opened(tmp_path, RATES, [["region", "smoker"]]) as session:
        text = (
            "SELECT SUM(rate) AS s, COUNT(*) AS n FROM visits JOIN rates ON visits.region = "
            "rates.region AND visits.smoker = rates.smoker"
        )
        question = session.sql(text)
        built = session.table("visits").join("rates", on=["region", "smoker"])
        assert built.agg(s=dt.sum("rate"), n=dt.count())._plan.job == question._plan.job
        row = question.release(1000).frame.row(0, named=True)
        true = visits().join(RATES, on=["region", "smoker"])
        assert row["n"] == pytest.approx(true.height, abs=5)
        assert row["s"] == pytest.approx(true["rate"].sum(), abs=50)


def test_part_of_a_key_is_not_enough(tmp_path):
    """It could meet several rows; the refusal says what to declare."""
    parts, other = opened(tmp_path, RATES, [["region", "smoker"]]), tmp_path / "other"
    with parts as session, pytest.raises(QueryError, match="could fan out"):
        session.sql("SELECT SUM(rate) AS s FROM visits JOIN rates USING (region)")
    other.mkdir()
    coded = opened(other, RATES.with_columns(code=pl.int_range(8)), ["code"])
    declare = r"unique = \[\['region', 'smoker'\]\]"
    with coded as session, pytest.raises(QueryError, match=declare):
        session.sql("SELECT SUM(rate) AS s FROM visits JOIN rates USING (region, smoker)")


def test_a_key_that_rows_share_is_refused_as_it_is_opened(tmp_path):
    """NULL aside, which no row meets."""
    twice = pl.concat([RATES, RATES.head(1)])
    with pytest.raises(PolicyError, match="'region' and 'smoker' are declared unique together"):
        opened(tmp_path, twice, [["region", "smoker"]])
    nulls = RATES.with_columns(smoker=pl.when(pl.col("smoker")).then(True))
    with opened(tmp_path, nulls, [["region", "smoker"]]):
        pass

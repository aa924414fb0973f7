"""Questions whose answers everybody knows are refused, and nothing is charged for them."""

from __future__ import annotations

import polars as pl
import pytest

import dither as dt
from dither.errors import QueryError

ROWS = pl.DataFrame(
    {
        "p": [1, 1, 2, 3],
        "x": [1, 2, 3, 4],
        "day": ["2020-01-01", "2020-02-01", "2020-03-01", None],
    }
).with_columns(pl.col("day").str.to_date())
COLUMNS = {"x": {"bounds": [0, 10]}, "day": {"bounds": ["2020-01-01", "2020-12-31"]}}


@pytest.fixture
def asked(tmp_path):
    """A session over a table of four rows."""
    with dt.open(
        {
            "budget": {"epsilon": 10, "delta": 1e-6, "ledger": str(tmp_path / "l")},
            "tables": {
                "t": {
                    "unit": "p",
                    "max_groups": 2,
                    "max_rows": 3,
                    "columns": COLUMNS,
                }
            },
        },
        sources={"t": ROWS},
    ) as session:
        yield session


REFUSED = {
    "SELECT COUNT(*) AS n FROM t WHERE 1 = 0": "1 = 0 is never true",
    "SELECT COUNT(*) AS n FROM t WHERE FALSE": "FALSE is never true",
    "SELECT COUNT(*) AS n FROM t WHERE x < 2 AND x > 3": "x < 2 and x > 3 are never true together",
    "SELECT COUNT(*) AS n FROM (SELECT x, p FROM t WHERE x IS NULL) WHERE x = 2 AND x <> 2": (
        "never true together"
    ),
    "SELECT COUNT(*) FILTER (WHERE 1 = 0) AS n FROM t": "1 = 0 is never true",
    "SELECT SUM(x) FILTER (WHERE x < 1 AND x > 2) AS n FROM t": "never true",
    "SELECT SUM(x) - SUM(x) AS n FROM t": "is 0 whatever the rows hold",
    "SELECT 2 * SUM(x) - SUM(x) - SUM(x) AS n FROM t": "cancel to 0",
    "SELECT AVG(x) - AVG(x) AS n FROM t": "is 0 whatever the rows hold",
    "SELECT MEDIAN(x) / MEDIAN(x) AS n FROM t": "is 1 whatever the rows hold",
    "SELECT day - INTERVAL 5000 YEAR AS k, COUNT(*) AS n FROM t GROUP BY k": "would be no groups",
    "SELECT x, day + INTERVAL 9000 YEAR AS k, COUNT(*) AS n FROM t "
    "GROUP BY GROUPING SETS ((x), (k))": "there would be no groups",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_known_is_refused_free(asked, text):
    """By name, and the account is as it was."""
    with pytest.raises(QueryError, match=REFUSED[text]):
        asked.sql(text).release(1)
    assert asked.balance()[0].spent.epsilon == 0


def test_filters_that_rule_one_another_out_are_refused(asked):
    """In Python one condition is often put upon another."""
    found = asked.table("t").filter("x < 2").filter("x > 3")
    with pytest.raises(QueryError, match="never true together"):
        found.agg(n=dt.count())


KEPT = (
    "SELECT COUNT(*) AS n FROM t WHERE x > 50",
    "SELECT COUNT(*) AS n FROM t WHERE 1 = 1",
    "SELECT COUNT(*) AS n FROM t WHERE 1 = 0 OR x > 2",
    "SELECT COUNT(*) AS n FROM t WHERE x >= 2 AND x <= 2",
    "SELECT COUNT(*) AS n FROM t WHERE x IS NULL OR x > 3",
    "SELECT AVG(x) - COUNT(*) AS n FROM t",
    "SELECT SUM(x) + COUNT(*) - SUM(x) AS n FROM t",
)


@pytest.mark.parametrize("text", KEPT)
def test_what_rows_decide_is_answered(asked, text):
    """A condition beyond declared bounds, too: conditions see values as they are."""
    assert asked.sql(text).release("0.5").frame.height == 1

"""Means of units with more rows than may count: scaled down, they stay where they are."""

from __future__ import annotations

import polars as pl
import pytest

import dither as dt

UNITS, ROWS = 500, 6


@pytest.mark.parametrize("max_rows", [1, 4])
def test_a_share_is_not_rounded_away(tmp_path, max_rows):
    """One yes in six rows is a sixth, however few of the rows count.

    At ε = 10⁶ the noise is below 10⁻⁶ with certainty for all that matters; what is left is what
    scaling down cuts off, and that is below 10⁻³.
    """
    frame = pl.DataFrame(
        {
            "who": [u for u in range(UNITS) for _ in range(ROWS)],
            "yes": [i == 0 for _ in range(UNITS) for i in range(ROWS)],
        }
    )
    policy = {
        "budget": {"epsilon": 10**7, "ledger": str(tmp_path / "a.ledger")},
        "tables": {"t": {"unit": "who", "max_groups": 1, "max_rows": max_rows}},
    }
    yes = "CASE WHEN yes THEN 1 ELSE 0 END"
    with dt.open(policy, sources={"t": frame}) as session:
        question = session.sql(
            f"SELECT AVG({yes}) AS share, SUM({yes}) AS n, VAR_POP({yes}) AS v FROM t"
        )
        found = question.release(epsilon=10**6).frame
    assert found["n"].dtype == pl.Int64
    assert found["share"][0] == pytest.approx(1 / 6, abs=1e-3)
    assert found["n"][0] == pytest.approx(UNITS * max_rows / 6, abs=1)
    assert found["v"][0] == pytest.approx(5 / 36, abs=1e-3)

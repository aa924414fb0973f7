"""Units that have no more groups than may count are not ranked, and it changes no answer."""

import secrets

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.engines.duckdb.dialect import DuckDBDialect
from dither.plan.answers import Histogram

QUESTIONS = (
    "SELECT g, COUNT(*) AS n, SUM(x) AS x FROM t GROUP BY g",
    "SELECT h, COUNT(*) AS n, AVG(x) AS x FROM t GROUP BY h",
    "SELECT g, h, COUNT(*) AS n, COUNT(DISTINCT u) AS units FROM t GROUP BY g, h",
    "SELECT g, COUNT(DISTINCT x) AS different FROM t GROUP BY g",
    "SELECT g, h, MEDIAN(x) AS x FROM t GROUP BY g, h",
)


def table() -> pl.DataFrame:
    """Of unit i rows in i % 7 groups: few of them in more than 5, and more in more than 1."""
    rows = [(i, g, f"h{(i + g) % 7}", (i * g) % 100) for i in range(200) for g in range(i % 7)]
    return pl.DataFrame(rows, schema=["u", "g", "h", "x"], orient="row")


def answers(folder, most, keys):
    """By question and key the exact answer: its groups, and a column for each measurement."""
    columns = {
        "g": {"type": "integer", "values": list(range(7))},
        "h": {"type": "text"},
        "x": {"type": "integer", "bounds": [0, 99]},
    }
    declared = {"source": "t.parquet", "unit": "u", "max_groups": most, "max_rows": 2}
    policy = {
        "budget": {"epsilon": 10, "delta": 1e-6, "ledger": str(folder / f"{most}.ledger")},
        "tables": {"t": declared | {"columns": columns}},
    }
    found = []
    with dt.open(policy, sources={"t": table()}) as session:
        engine = session._engine
        for question in QUESTIONS:
            job = session.sql(question)._plan.job
            for key in keys:
                answer = engine.run(job, session.schema, key)
                order = sorted(range(len(answer.keys)), key=lambda i: str(answer.keys[i]))
                values = [integers(column, order) for _, column in sorted(answer.values.items())]
                found.append([[str(answer.keys[i]) for i in order], *values])
    return found


def integers(column, order):
    """A column's integers, its groups in an order."""
    if isinstance(column, Histogram):
        rising = column[np.array(order)]
        return list(rising.places), list(rising.counts)
    return [int(column[i]) for i in order]


@pytest.mark.parametrize("most", [1, 3, 5])
def test_the_groups_that_are_kept_are_those_of_ranking_everybody(most, tmp_path, monkeypatch):
    """Integer for integer, where a few are chosen from, half of them and almost all."""
    keys = [secrets.token_bytes(32) for _ in range(3)]
    counted = answers(tmp_path, most, keys)
    monkeypatch.setattr(DuckDBDialect, "counts_before_ranking", False)
    assert counted == answers(tmp_path, most, keys)
    assert counted[0] != counted[1]

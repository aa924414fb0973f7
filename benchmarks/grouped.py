"""A grouped count and mean over five million visits: ours beside DuckDB by hand.

Run with ``python -m benchmarks.grouped [--rows N] [--rounds N]``. Each side runs in a process of
its own, all of them in turn in every round; a figure is the median of the rounds, measured inside
the process after one untimed run, and the peak memory is the process's own. Read the ratios: they
carry from machine to machine.

Sides:

- ``plain``: what one would ask without privacy: ``COUNT(*)`` and ``AVG`` by region, in DuckDB;
- ``by hand``: the same bounding as ours in one DuckDB query, at most 5 rows in each of 3 regions of
  a user, chosen by a hash with a seed, exact integer sums, no noise;
- ``row-level`` and ``user-level``: our engine's exact part of the same job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks import side_by_side

REGIONS = tuple(f"R{i:02d}" for i in range(20))
MOST_INCOME = 100_000
MAX_GROUPS, MAX_ROWS = 3, 5

PLAIN = "SELECT region, count(*), avg(income) FROM '{path}' GROUP BY region"

BY_HAND = f"""
WITH parts AS (
  SELECT user_id, region, count(*) AS n,
         sum(CAST(round(least(greatest(income, 0), {MOST_INCOME}) * 100) AS BIGINT)) AS s
  FROM '{{path}}' GROUP BY user_id, region
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY {{order}}) AS place FROM parts
)
SELECT region, sum(least(n, {MAX_ROWS})),
       sum(CASE WHEN n <= {MAX_ROWS} THEN s ELSE s * {MAX_ROWS} // n END)
FROM ranked WHERE place <= {MAX_GROUPS} GROUP BY region
"""

ONE_TERM = "hash(user_id, region, 8191)"
TWO_TERMS = "hash(hash(8191, user_id, region)), region"


def visits(rows: int, folder: Path) -> Path:
    """The table, made once: users with uneven numbers of visits, most of them in one region."""
    path = folder / f"visits-{rows}.parquet"
    if path.exists():
        return path
    import pyarrow as pa
    import pyarrow.parquet as pq

    users = max(1, rows // 10)
    generator = np.random.default_rng(20)
    activity = generator.lognormal(0.0, 1.0, users).cumsum()
    home = generator.integers(0, len(REGIONS), users)
    part = path.with_suffix(".part")
    writer = None
    for start in range(0, rows, 1_000_000):
        size = min(1_000_000, rows - start)
        user = np.searchsorted(activity, generator.random(size) * activity[-1])
        away = generator.integers(0, len(REGIONS), size)
        region = np.where(generator.random(size) < 0.7, home[user], away)
        table = pa.table(
            {
                "user_id": user.astype(np.int64),
                "region": pa.array(np.array(REGIONS)[region]),
                "age": np.clip(generator.normal(42, 15, size), 0, 110).astype(np.int64),
                "income": np.round(generator.lognormal(10.3, 0.7, size), 2),
            }
        )
        writer = writer or pq.ParquetWriter(part, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    part.rename(path)
    return path


def query(text: str) -> Callable[[Path], Callable[[], object]]:
    """A side that runs one DuckDB query."""

    def prepared(path: Path) -> Callable[[], object]:
        import duckdb

        connection = duckdb.connect()
        return lambda: connection.execute(text.format(path=path)).fetchall()

    return prepared


def engine(user_level: bool) -> Callable[[Path], Callable[[], object]]:
    """A side that runs our engine."""

    def prepared(path: Path) -> Callable[[], object]:
        import secrets

        from dither.engines.duckdb import DuckDBEngine
        from dither.plan.expressions import Column
        from dither.plan.job import GroupKey, Job, Rows, Total
        from dither.plan.relations import Scan
        from dither.plan.schema import ColumnFacts, Kind, Schema, Table

        cent, most = Fraction(1, 100), Fraction(MOST_INCOME)
        columns = {
            "user_id": ColumnFacts("user_id", Kind.INTEGER),
            "region": ColumnFacts("region", Kind.TEXT, values=REGIONS, nullable=False),
            "income": ColumnFacts("income", Kind.REAL, Fraction(0), most, cent, nullable=False),
        }
        schema = Schema({"visits": Table("visits", columns, unit="user_id")})
        income = Column("visits", "income")
        middle = MOST_INCOME * 50
        total = Total(income, cent, 0, MOST_INCOME * 100, middle, null_as_centre=True)
        key = GroupKey("region", Column("visits", "region"), Kind.TEXT, REGIONS)
        unit = Column("visits", "user_id") if user_level else None
        bounds = (MAX_GROUPS, MAX_ROWS) if user_level else (1, 1)
        job = Job(Scan("visits", "visits"), unit, (key,), (Rows(), total), *bounds)
        opened = DuckDBEngine({"visits": path})
        return lambda: opened.run(job, schema, secrets.token_bytes(32))

    return prepared


SIDES: Mapping[str, Callable[[Path], Callable[[], object]]] = {
    "plain": query(PLAIN),
    "row-level": engine(user_level=False),
    "by hand": query(BY_HAND.replace("{order}", ONE_TERM)),
    "by hand, two terms": query(BY_HAND.replace("{order}", TWO_TERMS)),
    "user-level": engine(user_level=True),
}
"""What can be measured, by name: given the table, each gives what is timed."""

RATIOS = (
    ("row-level", "plain", "within 2 times and 50 ms"),
    ("user-level", "by hand", "within 1.25"),
    ("user-level", "by hand, two terms", ""),
)


if __name__ == "__main__":
    side_by_side.main("benchmarks.grouped", __doc__, SIDES, RATIOS, visits)

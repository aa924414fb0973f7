"""Tumult Analytics on the same visits, in an interpreter of its own: it needs an older pyspark.

``benchmarks.engines spark`` runs this file by the interpreter that ``TUMULT_PYTHON`` names, one
into which ``tmlt.analytics==0.21.*`` is installed. For each line that it reads it asks the same
counts and sums by region, of at most 3 regions of a user and 5 rows in each, and prints a line.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def prepared(path: str, regions: list[str], most_income: float) -> Any:
    """The work that is timed."""
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        PureDPBudget,
        QueryBuilder,
    )
    from tmlt.analytics import Session as Tumult

    # Its workers run Python.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    spark = builder.config("spark.sql.shuffle.partitions", "32").getOrCreate()
    visits = spark.read.parquet(path).select("user_id", "region", "income")
    limited = (
        QueryBuilder("visits")
        .enforce(MaxGroupsPerID("region", 3))
        .enforce(MaxRowsPerGroupPerID("region", 5))
    )
    keys = KeySet.from_dict({"region": regions})
    counted = limited.groupby(keys).count()
    summed = limited.groupby(keys).average("income", 0, most_income)

    def work() -> None:
        session = Tumult.from_dataframe(
            PureDPBudget(2), "visits", visits, protected_change=AddRowsWithID("user_id")
        )
        for query in (counted, summed):
            session.evaluate(query, PureDPBudget(1)).collect()

    return work


if __name__ == "__main__":
    work = prepared(sys.argv[1], sys.argv[3].split(","), float(sys.argv[2]))
    for _ in sys.stdin:
        work()
        print("done", flush=True)

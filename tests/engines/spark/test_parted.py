"""Files on Spark in folders that are named by the column of blocks."""

from __future__ import annotations

import polars as pl
import pytest

import dither
from dither.errors import PolicyError
from spark_session import needs_spark, spark_session

pytestmark = [*needs_spark]

JANUARY = "day >= '2024-01-01' AND day < '2024-02-01'"


def write(folder, day: str, people) -> None:
    place = folder / f"day={day}"
    place.mkdir(parents=True)
    pl.DataFrame({"who": people}).write_parquet(place / "0.parquet")


def test_what_is_wrong_in_another_block_does_not_show(tmp_path) -> None:
    """Before a policy is opened and after: damaged files, other columns, files that come and go."""
    data = tmp_path / "data"
    write(data, "2024-01-01", [1, 2])
    write(data, "2024-01-31", [3])
    write(data, "2024-02-01", [4])
    write(data, "2023-12-01", [5])
    (data / "day=2023-12-01" / "0.parquet").write_bytes(b"no file of Parquet")
    (data / "day=2024-03-01").mkdir()
    pl.DataFrame({"other": ["x"]}).write_parquet(data / "day=2024-03-01" / "0.parquet")
    write(data, "nonsense", [6])
    policy = {
        "budget": {"epsilon": 10**6, "per": "block", "ledger": str(tmp_path / "l.ledger")},
        "engine": {"name": "spark"},
        "tables": {
            "visits": {
                "source": str(data),
                "unit": "who",
                "max_groups": 1,
                "max_rows": 5,
                "block": {"column": "day", "every": "month"},
                "columns": {"day": {"type": "date"}},
            }
        },
    }

    def counted(where: str) -> int:
        found = session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {where}").release(10**5)
        return found.frame["n"][0]

    with dither.open(policy, engines={"spark": spark_session()}) as session:
        assert counted(JANUARY) == 3
        assert counted("day IS NULL") == 1
        write(data, "2024-04-01", [7])
        (data / "day=2024-02-01" / "0.parquet").unlink()
        assert counted(JANUARY) == 3
        write(data, "2024-01-09", [8])
        with pytest.raises(PolicyError):
            counted(JANUARY)
        with pytest.raises(PolicyError):
            counted("day >= '2023-12-01'")

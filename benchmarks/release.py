"""The main job end to end: policy, charge on disk, query, noise, stored answer; beside its peers.

Run with ``python -m benchmarks.release [--rows N] [--rounds N]``: a grouped count and mean over
generated visits, at most 5 rows in each of 3 regions of a user, ε = 1. Each side runs in a process
of its own, all in turn in every round; the figure is the median over rounds of the second run in
the process. Ours keeps its session open, as the DuckDB sides keep their connection, and its ledger
on disk: each run reads the question, charges, computes, adds noise and stores the answer.

OpenDP truncates rows by user and region, then regions by user, and releases a count and a sum, as
integers of cents and as floats.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import side_by_side
from benchmarks.engines import (
    BY_HAND,
    MAX_GROUPS,
    MAX_ROWS,
    MOST_INCOME,
    ONE_TERM,
    PLAIN,
    REGIONS,
    query,
    release,
    visits,
)


def opendp(cents: bool) -> side_by_side.Side:
    """A side that asks OpenDP's Polars interface."""

    def prepared(path: Path) -> Callable[[], object]:
        import opendp.prelude as dp
        import polars as pl

        dp.enable_features("contrib")
        frame = pl.scan_parquet(path)
        column = pl.col("income")
        if cents:
            frame = frame.with_columns(income=(column * 100).round().cast(pl.Int64))
            total = column.fill_null(0).dp.sum((0, MOST_INCOME * 100))
        else:
            total = column.fill_null(0.0).fill_nan(0.0).dp.sum((0.0, float(MOST_INCOME)))
        keys = pl.LazyFrame({"region": list(REGIONS)})

        def work() -> object:
            context = dp.Context.compositor(
                data=frame,
                privacy_unit=dp.unit_of(contributions=1, identifier="user_id"),
                privacy_loss=dp.loss_of(epsilon=1.0),
                split_evenly_over=1,
                margins=[dp.polars.Margin(by=[], max_length=1_000_000_000)],
            )
            asked = (
                context.query()
                .truncate_per_group(MAX_ROWS, by=["region"])
                .truncate_num_groups(MAX_GROUPS, by=["region"], keep="first")
                .group_by("region")
                .agg(dp.len(signed=True), total)
                .with_keys(keys)
            )
            return asked.release().collect()

        return work

    return prepared


SIDES: dict[str, side_by_side.Side] = {
    "plain": query(PLAIN),
    "by hand": query(BY_HAND.replace("{order}", ONE_TERM)),
    "row-level release": release(user_level=False, opened=True),
    "user-level release": release(user_level=True, opened=True),
    "OpenDP, integers": opendp(cents=True),
    "OpenDP, floats": opendp(cents=False),
}
RATIOS = (
    ("row-level release", "plain", "within 2 times and 50 ms"),
    ("user-level release", "by hand", "within 1.25"),
    ("OpenDP, integers", "user-level release", ""),
    ("OpenDP, floats", "user-level release", ""),
)


if __name__ == "__main__":
    comparison = side_by_side.Comparison(SIDES, RATIOS)
    side_by_side.main("benchmarks.release", __doc__, comparison, visits)

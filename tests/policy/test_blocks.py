"""Blocks in a policy: what is read, and what is refused with its field and its fix."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import polars as pl
import pytest

from dither.blocks._calendar import Calendar
from dither.errors import PolicyError
from dither.policy._checking import check
from dither.policy._policy import read_policy

FRAME = pl.DataFrame(
    {
        "day": [dt.date(2024, 1, 1)],
        "patient": [1],
        "cost": [1],
        "rate": [1.5],
        "cohort": ["a"],
        "written": ["2024-01-01"],
        "zoned": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
        "items": [[1, 2]],
    }
)
MONTHS = {"column": "day", "every": "month"}
PER = {"per": "block"}


def policy(
    block: Any = None, budget: Any = PER, columns: Any = None, labs: Any = None, **fields: Any
) -> dict[str, Any]:
    limits = {"unit": "patient", "max_groups": 1, "max_rows": 1}
    visits = {**limits, "columns": columns or {}, **fields}
    tables = {"visits": visits if block is None else visits | {"block": block}}
    found: dict[str, Any] = {"budget": {"epsilon": 1, "ledger": "l.ledger", **budget}}
    if labs is not None:
        tables["labs"] = {**limits, "block": labs} if labs else limits
        found["units"] = {"patient": {"columns": dict.fromkeys(tables, "patient")}}
    return found | {"tables": tables}


def test_a_budget_for_each_block_is_read() -> None:
    """With the lifetime, and the account's calendar; tables of one unit share it."""
    read = read_policy(
        policy(MONTHS, {**PER, "lifetime": {"epsilon": 4, "delta": "1e-6"}}, labs=MONTHS)
    )
    assert read.calendars == {"patient": Calendar(every="month")}
    budget = read.block_budgets["patient"]
    assert (budget.each.epsilon, budget.lifetime.epsilon) == (1, 4)
    assert read_policy(policy(MONTHS, PER)).lifetime is None
    # A table of the unit without blocks is one block; of another unit it has one budget for good.
    assert read_policy(policy(MONTHS, labs=False)).calendars == read.calendars


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (policy(MONTHS, {}), r"tables.visits.block has no meaning .* add per = \"block\""),
        (policy(), r"budget.per = \"block\": no table has blocks"),
        (policy(MONTHS, {"per": "month"}), "budget.per has no option 'month'"),
        (policy({"column": "day"}), "by one of every"),
        (policy({"every": "month"}), "tables.visits.block.column is missing"),
        (policy({**MONTHS, "edges": [1]}), "it has every and edges"),
        (policy({**MONTHS, "each": 1}), "unknown field 'each'"),
        (policy({"column": "day", "every": "moth"}), "did you mean 'month'"),
        (policy({"column": "cost", "edges": [1, 5, 3]}), "edges must rise: its element 3"),
        (policy({"column": "cost", "edges": [1, 1]}), "names a value twice"),
        (policy({"column": "cost", "edges": [1, dt.date(2024, 1, 1)]}), "mixes dates and numbers"),
        (policy({"column": "day", "edges": [dt.datetime(2024, 1, 1, 5)]}), "begins with a day"),
        (policy({"column": "cost", "edges": [2**70]}), "lie too far out"),
        (policy({"column": "cohort", "values": ["a", "a"]}), "names a value twice"),
        (policy({"column": "cohort", "values": ["a", 1]}), "all be texts, or all whole numbers"),
        (policy({"column": "patient", "every": "month"}), "says whose a row is"),
        (policy(MONTHS, labs={"column": "day", "every": "week"}), "are cut otherwise"),
        (policy(MONTHS, {"lifetime": {"epsilon": 4}}), "lifetime is for budgets of each block"),
        (policy(MONTHS, {**PER, "lifetime": {"epsilon": 0.5}}), "lifetime.epsilon is below"),
        (
            policy(MONTHS, {**PER, "delta": 1e-6, "lifetime": {"epsilon": 2, "delta": 1e-9}}),
            "lifetime.delta is below",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(asked, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        read_policy(asked)


def test_a_public_table_has_no_blocks() -> None:
    asked = policy(MONTHS)
    asked["tables"]["regions"] = {"public": True, "block": MONTHS}
    with pytest.raises(PolicyError, match=r"tables.regions.block contradicts public"):
        read_policy(asked)


@pytest.mark.parametrize(
    ("block", "columns", "said"),
    [
        ({"column": "dey", "every": "month"}, {}, "no column 'dey' .* did you mean 'day'"),
        (
            {"column": "cost", "every": "month"},
            {},
            "every is for dates and timestamps; cost is int",
        ),
        ({"column": "written", "every": "month"}, {}, 'written = { type = "date" }'),
        ({"column": "zoned", "every": "month"}, {}, "a timestamp with a time zone"),
        ({"column": "items", "values": [1]}, {}, "no column 'items' that is read"),
        ({"column": "day", "edges": [1, 2]}, {}, "edges are numbers; day is date"),
        ({"column": "cost", "edges": [0.5]}, {}, "edges must be whole numbers"),
        ({"column": "cohort", "values": [1, 2]}, {}, "of kind integer; cohort is text"),
        (MONTHS, {"day": {"bounds": "learned"}}, "what day holds is learned"),
        (
            {"column": "cohort", "values": ["a", "b"]},
            {"cohort": {"values": ["a"]}},
            "a row would change its block with the list",
        ),
    ],
)
def test_a_column_that_cannot_be_cut_is_refused(block, columns, said: str) -> None:
    """Held against the source's names and types alone."""
    found = check(policy(block, columns=columns), sources={"visits": FRAME})
    errors = [f.text for f in found.findings if f.level == "error"]
    (text,) = errors

    assert re.search(said, text)


def test_a_check_says_which_rows_are_a_block_of_their_own() -> None:
    """Those without a value, and those whose value cannot be read."""
    columns = {"written": {"type": "date"}}
    asked = policy({"column": "written", "every": "month"}, columns=columns)
    told = [f.text for f in check(asked, sources={"visits": FRAME}).findings]
    assert any("NULL are a block of their own" in text for text in told)
    assert any("cannot be read so are NULL" in text for text in told)
    known = policy(MONTHS, columns={"day": {"nullable": False}})
    told = [f.where for f in check(known, sources={"visits": FRAME}).findings]
    assert "tables.visits.block" not in told

"""Sections ``[schedule.NAME]``, and stretches of time."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from dither.errors import PolicyError
from dither.service.schedule import read_schedules
from dither.service.schedule._periods import Periods, TreeNode, ending_at, halves, parts_of

WHOLE: dict[str, Any] = {
    "every": "day",
    "sql": "SELECT COUNT(*) AS n FROM visits",
    "epsilon": "0.1",
    "begin": dt.date(2024, 1, 1),
}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"every": "hour"}, "every must be one of"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"begin": "soon"}, "begin must be a day"),
        ({"begin": None}, "begin must be a day"),
        ({"running": True}, "horizon is missing"),
        ({"horizon": 3}, "for running counts"),
        ({"running": True, "horizon": 3, "delta": "1e-6"}, "delta must be 0"),
        ({"delay": -1}, "delay must be whole hours"),
        ({"delay": True}, "delay must be whole hours"),
        ({"confidence": 1}, "confidence"),
        ({"evry": "day"}, "evry"),
    ],
)
def test_a_section_that_is_wrong_is_named(given: dict[str, Any], says: str) -> None:
    """By its field."""
    made = {name: v for name, v in (WHOLE | given).items() if v is not None}
    with pytest.raises(PolicyError, match=f"schedule.visits.*{says}"):
        read_schedules({"visits": made})
    with pytest.raises(PolicyError, match="must begin with a letter"):
        read_schedules({'x"y': WHOLE})


def test_what_a_section_says() -> None:
    """A day in words or as TOML has it; a running count's price is divided among its levels."""
    (found,) = read_schedules({"v": WHOLE | {"running": True, "horizon": 8, "begin": "2024-01-01"}})
    assert (found.levels, found.each * 4) == (4, found.epsilon)


@pytest.mark.parametrize("number", range(1, 70))
def test_dyadic_stretches_make_up_every_total_once(number: int) -> None:
    """As many as the binary form has ones; each had ended, and is two of half its length."""
    parts = parts_of(number)
    assert [n for one in parts for n in range(one.low, one.high + 1)] == list(range(1, number + 1))
    assert len(parts) == number.bit_count()
    ended = {one for i in range(1, number + 1) for one in ending_at(i)}
    assert set(parts) <= ended
    for one in ended:
        assert set(halves(one)) <= ended
    lies = [sum(one.low <= i <= one.high for one in ended) for i in range(1, number + 1)]
    assert max(lies) <= number.bit_length()
    assert halves(TreeNode(3, 3)) == []


def test_a_block_has_ended_once_its_delay_has_passed() -> None:
    """To the hour, in UTC."""
    days = Periods("day", dt.date(2024, 2, 28))
    for hour, delay, ended in ((0, 0, 1), (23, 0, 1), (5, 6, 0), (6, 6, 1)):
        moment = dt.datetime(2024, 2, 29, hour, tzinfo=dt.UTC)
        assert days.ended(moment, delay) == ended
    assert days.ended(dt.datetime(2020, 1, 1, tzinfo=dt.UTC), 0) == 0
    assert days.label(2) == "2024-02-29"

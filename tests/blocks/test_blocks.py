"""Sets of blocks hold against sets of whole numbers, calendars against the days in them."""

import datetime as dt
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.blocks._calendar import EVERY, Calendar
from dither.blocks._sets import NO_BLOCKS, NULL, OTHERS, BlockSet
from dither.errors import ArgumentError

ENDS = st.one_of(st.none(), st.integers(-8, 8))
SETS = st.builds(
    BlockSet,
    st.lists(st.tuples(ENDS, ENDS), max_size=5).map(tuple),
    st.frozensets(st.sampled_from([NULL, OTHERS, "table wards"]), max_size=2),
)
PLACES = range(-12, 13)
NAMES = (NULL, OTHERS, "table wards")


def members(blocks: BlockSet) -> set[int | str]:
    return {b for b in (*PLACES, *NAMES) if b in blocks}


@given(SETS, SETS)
def test_sets_of_blocks_do_what_sets_do(one: BlockSet, other: BlockSet) -> None:
    assert members(one | other) == members(one) | members(other)
    assert members(one & other) == members(one) & members(other)
    assert (one <= other) == (members(one) <= members(other))
    assert bool(one) == bool(members(one))
    assert BlockSet.from_dict((one | other).to_dict()) == one | other


@given(SETS)
def test_a_set_has_one_form(one: BlockSet) -> None:
    listed = [BlockSet.of_range(b, b) for b in PLACES if b in one]
    again = BlockSet((), one.named)
    for block in reversed(listed):
        again |= block
    assert again == one & (BlockSet.of_range(-12, 12) | BlockSet.of_names(*NAMES))
    if not one.endless:
        assert len(one) == len(members(one))


@pytest.mark.parametrize("every", EVERY)
@given(day=st.dates())
def test_a_day_lies_in_its_block_and_in_no_other(every: str, day: dt.date) -> None:
    calendar = Calendar(every=every)
    block = calendar.block_of(day)
    assert isinstance(block, int)
    first, end = calendar.first(block), calendar.first(block + 1)
    assert first is not None
    assert first <= day
    assert end is None or day < end
    assert calendar.block_of(first) == block
    moment = dt.datetime.combine(day, dt.time(23, 59, 59, 999999))
    assert calendar.block_of(moment) == block


@pytest.mark.parametrize(
    ("every", "day", "label"),
    [
        ("day", dt.date(2024, 2, 29), "2024-02-29"),
        ("week", dt.date(2024, 12, 30), "2025-W01"),
        ("month", dt.date(999, 12, 31), "0999-12"),
        ("quarter", dt.date(2024, 10, 1), "2024-Q4"),
        ("year", dt.date(1, 1, 1), "0001"),
    ],
)
def test_blocks_of_time_are_called_as_people_call_them(
    every: str, day: dt.date, label: str
) -> None:
    calendar = Calendar(every=every)
    block = calendar.block_of(day)
    assert isinstance(block, int)
    assert calendar.label(block) == label


def test_edges_cut_where_they_say() -> None:
    ages = Calendar(edges=(Fraction(10), Fraction(20)))
    assert [ages.block_of(v) for v in (9, 10, 19.5, 20, None)] == [0, 1, 1, 2, NULL]
    assert [ages.label(b) for b in range(3)] == ["below 10", "[10, 20)", "from 20"]
    days = Calendar(edges=(dt.date(2024, 1, 1),))
    assert days.block_of(dt.datetime(2023, 12, 31, 23, 59)) == 0
    assert ages.all == BlockSet(((0, 2),), frozenset({NULL}))


def test_values_that_are_not_declared_are_one_block() -> None:
    cohorts = Calendar(values=("A", "B"))
    assert [cohorts.block_of(v) for v in ("B", "C", None)] == [1, OTHERS, NULL]
    assert cohorts.describe(cohorts.all) == "A to B, NULL, other values"


def test_no_block_begins_after_today() -> None:
    months = Calendar(every="month")
    begun = months.begun(dt.date(2024, 2, 29))
    assert months.block_of(dt.date(2024, 2, 1)) in begun
    assert months.block_of(dt.date(2024, 3, 1)) not in begun
    assert NULL in begun
    assert months.describe(begun) == "all up to 2024-02, NULL"
    assert months.describe(NO_BLOCKS) == "nothing"


@pytest.mark.parametrize(
    "stored", [{}, {"ranges": [[1]], "named": []}, {"ranges": [["1", 2]], "named": []}]
)
def test_what_is_no_set_of_blocks_is_refused(stored: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match="set of blocks"):
        BlockSet.from_dict(stored)


@pytest.mark.parametrize(
    "calendar",
    [
        *(Calendar(every=every) for every in ("day", "week", "month", "quarter", "year")),
        Calendar(edges=(dt.date(2024, 1, 1), dt.date(2025, 2, 3))),
        Calendar(edges=(dt.datetime(2024, 1, 1, 3),)),
        Calendar(edges=(Fraction(-3), Fraction(1, 2), Fraction(20240101))),
        Calendar(values=("a", "b")),
    ],
)
def test_a_calendar_is_read_back(calendar: Calendar) -> None:
    """From what `to_dict` writes; anything else is refused."""
    assert Calendar.from_dict(calendar.to_dict()) == calendar
    for broken in (
        {},
        {"every": "hour"},
        {"edges": []},
        {"edges": ["x"]},
        {"every": "day", "x": 1},
    ):
        with pytest.raises(ArgumentError):
            Calendar.from_dict(broken)

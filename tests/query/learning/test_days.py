"""Bounds of dates, of times and of the elements of lists: what is found, what it costs, its use."""

from __future__ import annotations

import datetime as days
from fractions import Fraction as F
from itertools import pairwise

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BoundsError, PolicyError, QueryError
from dither.plan import expressions as ex
from dither.plan.lowering.magnitudes import ORIGIN, DayGrid, gridded

SURE = 10**6
"""An epsilon at which noise is nothing."""

DAY, MOMENT = days.date, days.datetime


def opened(folder, frame, columns=None, **table):
    """A session on one table ``t``."""
    budget = {"epsilon": 10**9, "delta": "1e-3", "ledger": str(folder / "learned.ledger")}
    policy = {"budget": budget, "tables": {"t": {"columns": columns or {}, **table}}}
    return dt.open(policy, sources={"t": frame})


UNITS = {"unit": "u", "max_groups": 1, "max_rows": 1}

# --- the grid -------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", [ORIGIN, DAY(2024, 2, 29), DAY(1999, 12, 31), DAY(8999, 12, 31)])
def test_every_day_lies_in_one_cell_and_none_is_longer_than_its_way_to_the_origin(origin):
    """Cells follow one another without a gap; only the outermost have no end."""
    grid = DayGrid(origin)
    ends = [grid.ends(cell) for cell in range(grid.cells)]
    assert all(last + 1 == following for (_, last), (following, _) in pairwise(ends))
    assert all(first <= last for first, last in ends)
    assert grid.day(ends[0][0]) == DAY.min
    assert grid.day(ends[-1][1]) == DAY.max
    for first, last in ends[1:-1]:
        nearest = min(abs(first), abs(last))
        assert last - first <= nearest + 1
    assert len(ends) < 80


def test_cells_end_with_the_years_and_months_of_a_calendar():
    """About a first of January, bounds are firsts of January and last days of December."""
    grid = DayGrid(DAY(2000, 1, 1))
    named = {grid.texts(*grid.ends(cell)) for cell in range(grid.cells)}
    assert ("2001-07-01", "2001-12-31") in named
    assert ("2010-01-01", "2014-12-31") in named
    assert ("1980-01-01", "1984-12-31") in named
    assert ("2000-01-01", "2000-01-01") in named


@pytest.mark.parametrize("origin", ["2000-01-01", MOMENT(2000, 1, 1), DAY(999, 1, 1), DAY.max])
def test_an_origin_is_a_date_with_room_about_it(origin):
    """A text, a moment and the ends of the calendar are none."""
    with pytest.raises(ArgumentError, match="origin must be a date"):
        DayGrid(origin)


def test_a_grid_is_known_again_by_its_edges_alone():
    """Other bins of the same days are no grid."""
    day = ex.Column("t", "d")
    cells = DayGrid(DAY(2024, 1, 1)).cell_of(day)
    assert gridded(cells) == (day, DAY(2024, 1, 1))
    assert gridded(ex.Bin(cells.operand, cells.edges[1:])) is None
    assert gridded(day) is None


# --- what is found --------------------------------------------------------------------------------

EDGES = {
    "everybody on one day": ([DAY(2000, 1, 1)] * 20, None, (DAY(2000, 1, 1), DAY(2000, 1, 2))),
    "a leap day": ([DAY(2024, 2, 29)] * 9, DAY(2024, 2, 29), (DAY(2024, 2, 29), DAY(2024, 3, 1))),
    "two days": (
        [DAY(1985, 6, 1), DAY(2021, 3, 4)] * 9,
        None,
        (DAY(1985, 1, 1), DAY(2024, 12, 31)),
    ),
    "a year, about its first day": (
        [DAY(2024, 1, 1), DAY(2024, 12, 31)] * 9,
        DAY(2024, 1, 1),
        (DAY(2024, 1, 1), DAY(2024, 12, 31)),
    ),
    "a day of no use": (
        [DAY(9999, 12, 31), DAY(2011, 5, 5), DAY(2012, 5, 5)] * 9,
        None,
        (DAY(2010, 1, 1), DAY(2014, 12, 31)),
    ),
    "with NULL": ([None, DAY(2000, 1, 4)] * 9, None, (DAY(2000, 1, 4), DAY(2000, 1, 5))),
}


@pytest.mark.parametrize("case", EDGES)
@pytest.mark.parametrize("moments", [False, True])
def test_bounds_are_the_ends_of_the_cells_that_hold_the_days(tmp_path, case, moments):
    """Of times they are midnights: the first day's, and the one after the last."""
    values, origin, (lower, upper) = EDGES[case]
    column = pl.Series("d", values, dtype=pl.Date)
    if moments:
        column = column.cast(pl.Datetime("us")) + days.timedelta(hours=23, minutes=59)
        lower, upper = (MOMENT.combine(d, days.time()) for d in (lower, upper))
        upper += days.timedelta(days=1)
    with opened(tmp_path, pl.DataFrame({"d": column})) as session:
        found = session.learn("t", "d", epsilon=SURE, origin=origin)
    if case in ("everybody on one day", "a leap day", "with NULL") and moments:
        # One midnight and the next are two bounds.
        assert lower <= found.lower < found.upper <= upper
    else:
        assert (found.lower, found.upper) == (lower, upper)
    share = 1 / 3 if case == "a day of no use" else 0
    assert found.outside == pytest.approx(share, abs=0.01)
    assert found.outside_at_most >= share
    assert (
        found.policy == f"d = {{ bounds = [{found.lower.isoformat()}, {found.upper.isoformat()}] }}"
    )


NOTHING = {"no rows": [], "all NULL": [None] * 30}


@pytest.mark.parametrize("case", NOTHING)
def test_where_no_day_can_be_told_it_is_said_and_charged(tmp_path, case):
    """No bounds, no fact; the account has paid."""
    frame = pl.DataFrame({"d": NOTHING[case]}, schema={"d": pl.Date})
    with opened(tmp_path, frame, {"d": {"bounds": "learned"}}) as session:
        found = session.learn("t", "d", epsilon=SURE)
        assert (found.lower, found.upper, found.policy) == (None, None, None)
        assert "nothing could be told from noise" in found.summary()
        assert session.balance()[0].spent.epsilon == SURE
        assert session.facts == ()
        with pytest.raises(BoundsError, match=r"session.learn\('t', 'd', epsilon=0.1\)"):
            session.sql("SELECT AVG(YEAR(d)) AS y FROM t")


PEOPLE = pl.DataFrame(
    {
        "u": [i // 2 for i in range(400)],
        "d": [DAY(1960 + i % 40, 5, 1 + i % 28) for i in range(400)],
        "at": [MOMENT(2024, 1 + i % 6, 3, i % 24) for i in range(400)],
        "marks": [[1 + i % 9, None, 30] for i in range(400)],
        "on": [[DAY(2023, 1 + i % 12, 1)] for i in range(400)],
        "tags": [["x"], ["y", "x"]] * 200,
    }
)
LEARNED = {
    "d": {"bounds": "learned"},
    "at": {"bounds": "learned"},
    "marks": {"bounds": "learned", "max_items": 3},
    "on": {"bounds": "learned", "max_items": 1},
    "tags": {"values": "learned", "max_items": 2},
}


@pytest.mark.parametrize("unit", [True, False])
def test_days_and_elements_are_learned_kept_and_used(tmp_path, unit):
    """In this session and in a later one, free; each question names the fact that it rests on."""
    table = UNITS if unit else {}
    asked = {
        "d": "SELECT AVG(YEAR(d)) AS m FROM t",
        "at": "SELECT AVG(DATE_DIFF('day', DATE '2024-01-01', at)) AS m FROM t",
        "marks": "SELECT AVG(m) AS m FROM t, UNNEST(marks) AS x(m)",
        "on": 'SELECT AVG(YEAR(o)) AS m FROM t, UNNEST("on") AS x(o)',
        "tags": "SELECT g, COUNT(*) AS n FROM t, UNNEST(tags) AS x(g) GROUP BY g",
    }
    with opened(tmp_path, PEOPLE, LEARNED, **table) as session:
        for column in ("d", "at", "marks", "on"):
            with pytest.raises(BoundsError, match=rf"learn\('t', '{column}', epsilon=0.1\)"):
                session.sql(asked[column])
        learned = {
            "d": session.learn("t", "d", epsilon=SURE),
            "at": session.learn("t", "at", epsilon=SURE, origin=DAY(2024, 1, 1)),
            "marks": session.learn("t", "marks", epsilon=SURE),
            "on": session.learn("t", "on", epsilon=SURE, origin=DAY(2023, 1, 1)),
            "tags": session.learn("t", "tags", kind="keys", epsilon=40),
        }
        assert (learned["d"].lower, learned["d"].upper) == (DAY(1960, 1, 1), DAY(1999, 6, 30))
        assert (learned["marks"].lower, learned["marks"].upper) == (1, 30)
        assert learned["tags"].values == ["x", "y"]
        assert "bounds of the elements of marks" in learned["marks"].summary()
        spent = session.balance()[0].spent.epsilon
    with opened(tmp_path, PEOPLE, LEARNED, **table) as session:
        assert session.balance()[0].spent.epsilon == spent == 4 * SURE + 40
        known = session.tables["t"]
        assert known.columns["at"].upper == learned["at"].upper
        assert known.lists["on"].lower == learned["on"].lower
        for column, sql in asked.items():
            body = session.sql(sql).release(40, "1e-9").certificate.to_dict()
            (fact,) = body["learned"]
            entry = learned[column].certificate.content["ledger"]["entry"]
            assert (fact["column"], fact["entry"]) == (column, entry)


def test_sums_within_units_name_the_facts_that_they_rest_on(tmp_path):
    """What a query in the FROM adds up was clamped to learned bounds."""
    frame = PEOPLE.with_columns(cost=pl.lit(5.0))
    with opened(tmp_path, frame, {"cost": {"bounds": "learned"}}, **UNITS) as session:
        found = session.learn("t", "cost", epsilon=SURE)
        sql = "SELECT AVG(s) AS m FROM (SELECT u, SUM(cost) AS s FROM t GROUP BY u) AS q"
        (fact,) = session.sql(sql).release(SURE).certificate.to_dict()["learned"]
        assert fact["entry"] == found.certificate.content["ledger"]["entry"]


def test_a_token_replays_the_days_that_were_learned(tmp_path):
    """Free, in a later session; with another origin it is another request."""
    with opened(tmp_path, PEOPLE, **UNITS) as session:
        first = session.learn("t", "d", epsilon=2, token="days", origin=DAY(1980, 1, 1))
    with opened(tmp_path, PEOPLE, **UNITS) as session:
        again = session.learn("t", "d", epsilon=2, token="days", origin=DAY(1980, 1, 1))
        assert again.replayed
        assert again.frame.equals(first.frame)
        assert (again.lower, again.upper) == (first.lower, first.upper)
        assert session.balance()[0].spent.epsilon == 2
        with pytest.raises(dt.errors.TokenError):
            session.learn("t", "d", epsilon=2, token="days")
    assert dt.verify(first.certificate, tmp_path / "learned.ledger").ok


@pytest.mark.parametrize(("column", "rows"), [("d", 1), ("marks", 3)])
def test_a_row_that_is_a_person_pays_for_as_many_elements_as_count(tmp_path, column, rows):
    """The noise of both steps, times the elements that one person has at most, is the price."""
    with opened(tmp_path, PEOPLE, {"marks": {"max_items": 3}}) as session:
        body = session.learn("t", column, epsilon="0.6").certificate.to_dict()
        assert session.balance()[0].spent.epsilon == F("0.6")
    shares = [F(m["l1"]) / F(m["scale"]) for m in body["measurements"]]
    assert rows * sum(shares) == F("0.6")


def test_days_are_drawn_and_explained(tmp_path):
    """As a picture of dates; and the explanation names the grid and its day."""
    with opened(tmp_path, PEOPLE, **UNITS) as session:
        found = session.learn("t", "d", epsilon=SURE)
        assert found.frame["from"].dtype == pl.Date
        assert found.frame["to"].max() == DAY.max
        found.plot(str(tmp_path / "days.png"))
        text = str(found.certificate.to_dict()["text"])
    assert (tmp_path / "days.png").stat().st_size > 0
    assert "cells of a public grid of days about 2000-01-01" in text


REFUSED = {
    "an origin of numbers": (("marks",), {"origin": DAY(2024, 1, 1)}, ArgumentError, "numbers"),
    "an origin of keys": (("d",), {"origin": ORIGIN, "kind": "keys"}, ArgumentError, "origin"),
    "a text for an origin": (("d",), {"origin": "2024-01-01"}, ArgumentError, "must be a date"),
    "bounds of elements that are text": (("tags",), {}, QueryError, "dates and times"),
    "keys of times": (("at",), {"kind": "keys"}, QueryError, "too many"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_and_costs_nothing(tmp_path, case):
    """The argument is named, and the fix."""
    arguments, options, error, words = REFUSED[case]
    with opened(tmp_path, PEOPLE, **UNITS) as session:
        with pytest.raises(error, match=words):
            session.learn("t", *arguments, epsilon=1, **options)
        assert session.balance()[0].spent.epsilon == 0


def test_elements_of_a_row_that_is_a_person_need_their_limit(tmp_path):
    """As in any question of them; nothing is charged."""
    with opened(tmp_path, PEOPLE) as session:
        with pytest.raises(QueryError, match="max_items"):
            session.learn("t", "marks", epsilon=1)
        assert session.balance()[0].spent.epsilon == 0


def test_bounds_of_truth_values_cannot_be_learned(tmp_path):
    """A policy that says so is refused when it is opened."""
    frame = PEOPLE.with_columns(b=True)
    with pytest.raises(PolicyError, match="of numbers, dates and times"):
        opened(tmp_path, frame, {"b": {"bounds": "learned"}}, **UNITS)

"""Limits of one question on what a unit contributes: enforced, paid for in noise, written down."""

from __future__ import annotations

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, PolicyError, QueryError, UnsupportedError
from query.query_data import policy

TEXT = "SELECT region, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY region"


def sensitivities(question):
    """What one unit can change, by measurement."""
    return [(s.groups, s.per_group) for s in question._plan.sensitivities]


def test_every_way_of_saying_it_is_the_same_question(session):
    """Keywords of the builder and of the question, and both spellings of SQL."""
    rows = session.table("visits").group_by("region")
    asked = {"n": dt.count(), "cost": dt.sum("cost")}
    select = TEXT.removeprefix("SELECT ")
    options = "OPTIONS (max_groups_contributed = 2, max_rows_contributed = 9)"
    found = [
        session.sql(f"{TEXT} {options}"),
        session.sql(f"{TEXT} {options};"),
        session.sql(f"SELECT WITH DIFFERENTIAL_PRIVACY {options} {select}"),
        session.sql(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column=pid, "
            f"max_groups_contributed=2) {select} options(MAX_ROWS_CONTRIBUTED=9)"
        ),
        rows.agg(max_groups=2, max_rows=9, **asked),
        rows.agg(**asked).within(max_groups=2).within(max_rows=9),
    ]
    assert {q.sql for q in found} == {f"{TEXT} {options}"}
    assert len({q._plan.query for q in found}) == 1
    plain = session.sql(f"SELECT WITH DIFFERENTIAL_PRIVACY {select}")
    assert plain._plan.query == session.sql(TEXT)._plan.query
    released = session.sql(TEXT).release(1, max_groups=2, max_rows=9).certificate.to_dict()
    assert (released["max_groups"], released["max_rows"]) == (2, 9)
    assert released["text"]["sql"] == found[0].sql


def test_an_output_may_have_the_name_of_a_limit(session):
    """``max_rows=dt.max(...)`` is an aggregate."""
    found = session.table("visits").agg(max_rows=dt.max("age"), max_groups=3)
    assert [o.name for o in found._plan.query.outputs] == ["max_rows"]
    assert found._plan.query.max_groups == 3


def test_noise_follows_the_limits_and_the_price_does_not(session):
    """Sensitivities are of the limits that the engine is told; the charge is what was asked."""
    plain = session.sql(TEXT)
    wide = plain.within(max_groups=4, max_rows=20)
    assert sensitivities(plain) == [(3, 5), (3, 5 * 500_000)]
    assert sensitivities(wide) == [(4, 20), (4, 20 * 500_000)]
    assert (wide._plan.job.max_groups, wide._plan.job.max_rows) == (4, 20)
    assert wide.loss(1).charge == plain.loss(1).charge
    narrow, broad = (plain.preview(1, max_rows=n).widths["n"][0] for n in (1, 20))
    assert narrow < plain.preview(1).widths["n"][0] < broad
    counted = {"n": 50}
    assert plain.budget_for(counted, max_rows=20) > plain.budget_for(counted, max_rows=1)
    assert "counts in at most 2 groups, with 20 rows in each" in str(
        plain.explain(max_groups=2, max_rows=20)
    )


def test_what_is_counted_follows_the_limits(tmp_path):
    """One patient with 50 rows counts with as many as the question lets it."""
    visits = pl.DataFrame({"pid": [1] * 50, "region": ["north"] * 50, "cost": [1.0] * 50})
    declared = policy(tmp_path, budget={"epsilon": 10**5, "delta": 0})
    del declared["tables"]["regions"], declared["tables"]["visits"]["columns"]["age"]
    with dt.open(declared, sources={"visits": visits}) as session:
        asked = session.sql("SELECT COUNT(*) AS n FROM visits")
        found = [asked.release(1000, max_rows=n).frame["n"][0] for n in (1, 7, 60)]
        assert found == [1, 7, 50]
        text = asked.release(1000, max_rows=7).summary()
        assert "one pid counts in at most 1 group, with 7 rows" in " ".join(text.split())


def test_a_token_stands_for_its_limits(session):
    """The same request under other limits is another request."""
    asked = session.sql(TEXT)
    first = asked.release("0.5", token="t", max_rows=2)
    assert asked.release("0.5", token="t", max_rows=2).frame.equals(first.frame)
    for limits in ({}, {"max_rows": 3}, {"max_rows": 2, "max_groups": 1}):
        with pytest.raises(dt.errors.TokenError, match="another request"):
            asked.release("0.5", token="t", **limits)


def test_a_policy_may_cap_them(tmp_path, frames):
    """Above the cap nothing is asked; without one every size is allowed, at its noise."""
    capped = policy(tmp_path, visits={"max_groups_cap": 3, "max_rows_cap": 10})
    with dt.open(capped, sources=frames) as session:
        asked = session.sql(TEXT)
        assert asked.within(max_groups=3, max_rows=10)._plan.job.max_rows == 10
        before = session.balance()
        for limits in ({"max_groups": 4}, {"max_rows": 11}):
            with pytest.raises(QueryError, match="the most that the policy lets one question"):
                asked.release(1, **limits)
        with pytest.raises(QueryError, match="max_rows = 11 is above 10"):
            session.sql(TEXT + " OPTIONS (max_rows_contributed = 11)")
        assert session.balance() == before
    for field in ("max_groups_cap", "max_rows_cap"):
        with pytest.raises(PolicyError, match=f"{field} is below {field[:-4]}"):
            dt.open(policy(tmp_path, visits={field: 2}), sources=frames)


def test_caps_of_a_union_are_those_of_its_tables_together(tmp_path, frames):
    """Rows of all parts count: what they declare together may be asked for, and no more."""
    declared = policy(tmp_path, visits={"max_groups_cap": 3, "max_rows_cap": 10})
    visits = declared["tables"]["visits"]
    limits = {"max_groups": 4, "max_rows": 9, "max_groups_cap": 6, "max_rows_cap": 20}
    declared["tables"]["others"] = {**visits, **limits}
    unit = visits["unit"]
    declared["units"] = {unit: {"columns": {"visits": unit, "others": unit}}}
    others = frames["visits"].head(100)
    text = (
        f"SELECT COUNT(*) AS n FROM (SELECT {unit} FROM visits UNION ALL SELECT {unit} FROM others)"
    )
    with dt.open(declared, sources={**frames, "others": others}) as session:
        asked = session.sql(text)
        own = asked._plan.job.max_rows
        assert asked.within(max_rows=own)._plan.job.max_rows == own
        assert asked.within(max_rows=30)._plan.job.max_rows == 30
        with pytest.raises(QueryError, match="max_rows = 31 is above 30"):
            asked.within(max_rows=31)
        alone = session.sql("SELECT COUNT(*) AS n FROM visits")
        with pytest.raises(QueryError, match="max_rows = 11 is above 10"):
            alone.within(max_rows=11)


def test_limits_that_mean_nothing_are_refused(session, people):
    """Before anything is spent, and by name."""
    for asked in (people.sql(TEXT), people.table("visits").agg(n=dt.count())):
        with pytest.raises(QueryError, match="max_rows has no meaning where a row of visits"):
            asked.release(1, max_rows=2)
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ArgumentError, match="max_rows"):
            session.sql(TEXT).release(1, max_rows=wrong)
    with pytest.raises(QueryError, match=r"max_groups must be a whole number from 1 to 2\^31"):
        session.sql(TEXT).release(1, max_groups=2**31 + 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("OPTIONS (epsilon = 1)", "epsilon is not written into a question"),
        ("OPTIONS (delta = 1e-6)", "delta is not written into a question"),
        ("OPTIONS (max_groups = 5)", "unknown option 'max_groups'; did you mean"),
        ("OPTIONS (max_rows_contributed = 0)", "must be a whole number of at least 1"),
        ("OPTIONS (max_rows_contributed = '5')", "must be a whole number of at least 1"),
        ("OPTIONS (max_rows_contributed = 1.5)", "must be a whole number of at least 1"),
        ("OPTIONS (max_rows_contributed = 1, max_rows_contributed = 2)", "is given twice"),
        ("OPTIONS (max_rows_contributed = )", "write OPTIONS"),
        ("OPTIONS (privacy_unit_column = region)", "the policy says who is protected: pid"),
    ],
)
def test_other_options_are_refused(session, options, said):
    """What is not a limit, or not a number, is named."""
    with pytest.raises((QueryError, UnsupportedError), match=said):
        session.sql(f"{TEXT} {options}")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1 COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits OPTIONS ()",
        "SELECT COUNT(*) FROM visits WHERE OPTIONS (age = 1)",
        "SELECT COUNT(*) FROM visits OPTIONS (max_rows_contributed = 1) LIMIT 1",
    ],
)
def test_options_elsewhere_are_not_understood(session, text):
    """They stand at the end, or where BigQuery has them."""
    with pytest.raises(QueryError):
        session.sql(text)

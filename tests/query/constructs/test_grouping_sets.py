"""GROUPING SETS, ROLLUP and CUBE from the question to the release."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import QueryError
from dither.query._noise import plan_noise
from dither.query.estimates._values import estimate
from query.query_data import REGIONS, policy, visits

LARGE = 1000


@pytest.fixture
def session(tmp_path):
    """Visits, with limits that cut next to nothing."""
    made = policy(tmp_path, budget={"epsilon": 10**6})
    made["tables"]["visits"] |= {"max_groups": 8, "max_rows": 20}
    made["tables"].pop("regions", None)
    with dt.open(made, sources={"visits": visits()}) as opened:
        yield opened


ROLLUP = (
    "SELECT region, smoker, GROUPING(region, smoker) AS level, COUNT(*) AS n FROM visits GROUP BY "
    "ROLLUP (region, smoker) ORDER BY level, region, smoker"
)


def test_sets_of_keys_are_released_together(session):
    """Every set's groups, NULL where a key is not in the set; GROUPING says which."""
    question = session.sql(ROLLUP)
    assert session.sql(question.sql)._plan == question._plan
    release = question.release(LARGE)
    frame = release.frame
    assert frame["level"].to_list() == [0] * 8 + [1] * 4 + [3]
    assert frame["smoker"].to_list() == [False, True] * 4 + [None] * 5
    assert frame["region"].to_list()[8:] == [*sorted(REGIONS), None]
    truth = visits().group_by("region", "smoker").len().sort("region", "smoker")["len"].to_list()
    regional = visits().group_by("region").len().sort("region")["len"].to_list()
    assert frame["n"].to_list()[:12] == pytest.approx([*truth, *regional], abs=5)
    shown = release.shown()[1]
    assert [row[1] for row in shown[8:]] == ["(all)"] * 5
    assert shown[12][:3] == ["(all)", "(all)", "3"]


def test_what_a_unit_counts_in_is_said(session):
    """In every set, by explain, certificate and summary; the noise allows for all of them."""
    question = session.sql(ROLLUP)
    job = question._plan.job
    assert job.max_groups == sum(min(job.each, size) for size in (8, 4, 1))
    text = re.sub(r"\W+", " ", str(question.explain()))
    assert "groups by region smoker region 13 public keys" in text
    assert f"in {job.max_groups} in all which the noise of every group allows for" in text
    assert "3 sets of keys share one budget" in text
    release = question.release(1)
    body = release.certificate.to_dict()
    assert body["max_groups"] == job.max_groups
    assert body["max_groups_of_each_set"] == job.each
    assert f"{job.each} groups of each set" in release.summary()


def test_the_levels_share_one_charge(session):
    """The charge is that of one question, and noise is as wide as a unit's entries in all need."""
    alone = session.sql("SELECT region, smoker, COUNT(*) AS n FROM visits GROUP BY ALL")
    together = session.sql(ROLLUP)
    widths = [q.preview(1).frame["n"][0] for q in (alone, together)]
    assert widths[1] > widths[0]
    loss = together.release(1).certificate.to_dict()["loss"]
    assert loss["epsilon"] == "1"


def test_discovered_keys_of_sets(session):
    """A level is shown as any key is; its NULL is not the key NULL."""
    question = session.sql(
        "SELECT city, GROUPING(city) AS total, COUNT(*) AS n FROM visits GROUP BY ROLLUP (city)"
    )
    assert question._plan.discovered
    assert "discovered" in str(question.explain())
    frame = question.release(LARGE).frame
    truth = dict(visits().group_by("city").len().iter_rows())
    found = {c: n for c, total, n in frame.select("city", "total", "n").iter_rows() if not total}
    assert set(found) <= set(truth)
    assert len(found) >= 2
    (total,) = frame.filter(pl.col("total") == 1)["n"].to_list()
    assert total == pytest.approx(4000, abs=5)


def test_the_builder_tells_levels_apart(session):
    """``grouping`` names the column that ``GROUPING`` of all keys gives in SQL."""
    built = session.table("visits").group_by("region", "smoker", sets="rollup", grouping="level")
    asked = session.sql(ROLLUP.split(" ORDER")[0])
    assert built.agg(n=dt.count())._plan == asked._plan


def test_the_set_with_most_keys_is_drawn(session):
    """Totals beside their parts would be one bar among them."""
    release = session.sql(ROLLUP).release(LARGE)
    frame, keys = release._drawn()
    assert (keys, frame.height) == (["region", "smoker"], 8)
    assert release.plot() is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "SELECT region, GROUPING(region) AS g, COUNT(*) FROM visits GROUP BY region",
            "one set",
        ),
        (
            "SELECT region, GROUPING(age) AS g, COUNT(*) FROM visits GROUP BY ROLLUP (region)",
            "keys",
        ),
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region WITH ROLLUP", r"ROLLUP\(a, b\)"),
        (
            "SELECT region, COUNT(*) AS n FROM visits GROUP BY CUBE (region), CUBE (region), CUBE "
            "(region), CUBE (region), CUBE (region), CUBE (region), CUBE (region)",
            "64 sets",
        ),
        (
            "SELECT region, COUNT(*) AS n FROM visits GROUP BY region HAVING GROUPING(region) = 0",
            "one set",
        ),
        (
            "SELECT region, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region) HAVING "
            "GROUPING(region, age) = 0",
            "HAVING: GROUPING takes keys",
        ),
        (
            "SELECT region, GROUPING(region) + 1 AS g FROM visits GROUP BY ROLLUP (region)",
            "add an aggregate",
        ),
    ],
)
def test_refusals(session, text, words):
    """What cannot be asked, by name."""
    with pytest.raises(dt.errors.DitherError, match=words):
        session.sql(text)


@pytest.mark.parametrize("condition", ["GROUPING(region, smoker) = 1", "level = 1"])
def test_having_tells_sets_apart(session, condition):
    """By GROUPING or its name in SELECT; the groups of other sets are left out."""
    question = session.sql(ROLLUP.replace(" ORDER", f" HAVING {condition} AND n > 10 ORDER"))
    assert session.sql(question.sql)._plan == question._plan
    frame = question.release(LARGE).frame
    assert frame["region"].to_list() == sorted(REGIONS)
    assert set(frame["level"]) == {1}


def test_grouping_is_a_released_value_like_others(session):
    """Calculated with, ranked by, sorted by; it is public, so that its interval has no width."""
    question = session.sql(
        "SELECT region, 10 * GROUPING(region) + 1 AS g, CASE WHEN GROUPING(region) = 1 THEN 0 ELSE "
        "COUNT(*) END AS n, RANK() OVER (ORDER BY GROUPING(region)) AS r FROM visits GROUP BY "
        "ROLLUP (region) ORDER BY GROUPING(region) DESC, n"
    )
    assert session.sql(question.sql)._plan == question._plan
    frame = question.release(LARGE).frame
    for name in ("g", "g_lower", "g_upper"):
        assert frame[name].to_list() == pytest.approx([11, 1, 1, 1, 1])
    assert frame["n"][0] == 0
    assert frame["r"].to_list() == [5, 1, 1, 1, 1]
    shown = question.preview(1)
    assert list(shown.by_set) == ["region", "(all)"]
    assert shown.by_set["(all)"]["n"] == (0.0, 0.0, 0.0)
    assert shown.frame["g"].to_list() == pytest.approx([0] * 6, abs=1e-12)


def test_each_set_counts_once_and_ranks_are_alone(session):
    """A set named twice is one; a single set is a plain GROUP BY."""
    twice = session.sql(
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((region), region, ())"
    )
    assert twice._plan.query.sets == ((0,), ())
    whole = session.sql("SELECT COUNT(*) AS n FROM visits GROUP BY GROUPING SETS (())")
    assert whole._plan == session.sql("SELECT COUNT(*) AS n FROM visits")._plan
    with pytest.raises(QueryError, match="one of the sets"):
        session.table("visits").group_by("region", "smoker", sets=[["region"]]).agg(n=dt.count())


# --- levels that add up -----------------------------------------------------------------------

AGREED = (
    "SELECT region, smoker, GROUPING(region, smoker) AS level, COUNT(*) AS n, SUM(cost) AS s, "
    "AVG(cost) AS a FROM visits GROUP BY CUBE (region, smoker) OPTIONS (consistent = TRUE)"
)


def test_levels_add_up_on_request(session):
    """Counts and sums of every level are those of its parts, though each had noise of its own."""
    question = session.sql(AGREED)
    assert session.sql(question.sql)._plan == question._plan
    frame = question.release(1).frame
    fine = frame.filter(pl.col("level") == 0)
    assert fine.height == 8
    for output in ("n", "s"):
        (total,) = frame.filter(pl.col("level") == 3)[output].to_list()
        assert fine[output].sum() == pytest.approx(total)
        for level, key in ((1, "region"), (2, "smoker")):
            part = dict(frame.filter(pl.col("level") == level).select(key, output).iter_rows())
            summed = dict(fine.group_by(key).agg(pl.col(output).sum()).iter_rows())
            assert part == pytest.approx(summed)


def test_consistent_levels_are_right_and_said(session):
    """Near the true sums where noise is small; explain, certificate and preview say how."""
    question = session.sql(AGREED)
    assert question._plan.job.sets == ()
    text = " ".join(str(question.explain()).split())
    assert "add up" in text
    assert "groups by (region, smoker), (region), (smoker), (): 15 public keys" in text
    frame = question.release(LARGE).frame
    (total,) = frame.filter(pl.col("level") == 3)["n"].to_list()
    assert total == pytest.approx(4000, abs=5)
    truth = dict(visits().group_by("region").len().iter_rows())
    regional = dict(frame.filter(pl.col("level") == 1).select("region", "n").iter_rows())
    assert regional == pytest.approx(truth, abs=5)
    (mean,) = frame.filter(pl.col("level") == 3)["a"].to_list()
    assert mean == pytest.approx(visits()["cost"].clip(0, 5000).mean(), rel=0.02)
    release = question.release(1).frame
    preview = question.preview(1)
    assert list(preview.by_set) == ["region, smoker", "region", "smoker", "(all)"]
    (place,) = [i for i, _ in question._plan.recipes[0].terms]
    noise_plan = question._noise_plan(1, None)
    for name, noises in zip(preview.by_set, noise_plan.levels, strict=True):
        shown = preview.frame.filter(pl.col("keys") == name)["n"][0]
        assert shown == pytest.approx(noises[place].half_width(0.95))
    assert "region, smoker" in str(preview)
    assert preview.plot() is not None
    halves = ((release["n_upper"] - release["n_lower"]) / 2).to_list()
    alone = noise_plan.noises[place].half_width(0.95)
    assert max(halves) == pytest.approx(preview.widths["n"][0])
    assert max(halves) < alone


def test_intervals_of_consistent_levels_cover(session):
    """At 90 %, in the mean of each level's cells over 200 draws.

    Fewer than 82 % of 200 independent draws has a probability below 1e-4 for each level.
    """
    plan = session.sql(AGREED)._plan
    noise_plan = plan_noise(plan, Fraction(1), Fraction(0))
    whole = np.arange(8) * 100
    exact = {i: plan.levels.sums(whole) for i in range(len(plan.job.measurements))}
    recipe = plan.recipes[0]
    (place,) = [i for i, _ in recipe.terms]
    inside = np.zeros(len(exact[place]))
    for _ in range(200):
        noisy = {
            i: plan.levels.fitted(values + noise_plan.noises[i].draw(values.shape))
            for i, values in exact.items()
        }
        found = estimate(recipe, noise_plan.measured(noisy), 0.9, clip=False)
        inside += (found.lower <= exact[place]) & (exact[place] <= found.upper)
    for part in plan.levels.slices:
        assert inside[part].mean() / 200 > 0.82


def test_consistent_noise_is_less_than_without(session):
    """Where each patient counts in one group, least squares makes every level better."""
    text = AGREED.replace("SUM(cost) AS s, AVG(cost) AS a", "SUM(cost) AS s")
    limit = "OPTIONS (max_groups_contributed = 1"
    agreed = session.sql(text.replace("OPTIONS (", f"{limit}, "))
    apart = session.sql(text.replace("OPTIONS (consistent = TRUE)", f"{limit})"))
    widths = [q.preview(1).frame["n"][0] for q in (agreed, apart)]
    assert widths[0] < widths[1]
    sensitivities = [[b.l1 for b in q._plan.sensitivities] for q in (agreed, apart)]
    assert sensitivities[0] == sensitivities[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region OPTIONS (consistent = TRUE)",
         "there is one"),
        ("SELECT city, COUNT(*) AS n FROM visits GROUP BY ROLLUP (city) OPTIONS (consistent = "
         "TRUE)", "'city' would be discovered; declare its values or bins in the policy, learn"),
        ("SELECT region, MEDIAN(cost) AS m FROM visits GROUP BY ROLLUP (region) OPTIONS "
         "(consistent = TRUE)", "quantiles"),
        ("SELECT region, COUNT(DISTINCT pid) AS m FROM visits GROUP BY ROLLUP (region) OPTIONS "
         "(consistent = TRUE)", "max_groups = 1"),
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region) OPTIONS "
         "(consistent = 3)", "TRUE or FALSE"),
    ],
)  # fmt: skip
def test_what_does_not_add_up_is_refused(session, text, words):
    """Before anything is charged, with what to write."""
    with pytest.raises(QueryError, match=words):
        session.sql(text)


def test_the_builder_asks_for_consistent_levels(session):
    """The same plan."""
    rows = session.table("visits").group_by("region", "smoker", sets="cube", consistent=True)
    asked = session.sql(
        "SELECT region, smoker, COUNT(*) AS n FROM visits GROUP BY CUBE (region, smoker) OPTIONS "
        "(consistent = TRUE)"
    )
    assert rows.agg(n=dt.count())._plan == asked._plan
    units = session.sql(
        "SELECT region, COUNT(DISTINCT pid) AS m FROM visits GROUP BY ROLLUP (region) OPTIONS "
        "(max_groups_contributed = 1, consistent = TRUE)"
    )
    frame = units.release(LARGE).frame
    assert frame["m"][:4].sum() == pytest.approx(frame["m"][4])

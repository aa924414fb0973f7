"""Queries in the FROM through both doors: what is released, what it says, and what is refused."""

from __future__ import annotations

import re

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BoundsError, QueryError
from query.query_data import REGIONS, policy, regions, visits

LARGE = 1000


@pytest.fixture
def session(tmp_path):
    """Visits and labs of the same patients, with limits that cut next to nothing."""
    made = policy(tmp_path, budget={"epsilon": 10**6})
    made["units"] = {"patient": {"columns": {"visits": "pid", "labs": "pid"}}}
    made["tables"]["visits"] |= {"max_groups": 4, "max_rows": 20, "max_join_rows": 20}
    made["tables"]["labs"] = {"max_groups": 4, "max_rows": 2, "max_join_rows": 2}
    made["tables"]["labs"]["columns"] = {"level": {"bounds": [0, 9]}}
    labs = pl.DataFrame({"pid": range(0, 800, 2), "level": [i % 10 for i in range(400)]})
    sources = {"visits": visits(), "regions": regions(), "labs": labs}
    with dt.open(made, sources=sources) as opened:
        yield opened


def test_a_mean_of_sums_within_patients(session):
    """One row for each patient and region, of all of the patient's visits there."""
    release = session.sql(
        "SELECT region, AVG(CLAMP(total, 0, 50000)) AS m, COUNT(*) AS n FROM (SELECT pid, region, "
        "SUM(cost) AS total FROM visits GROUP BY pid, region) GROUP BY region ORDER BY region"
    ).release(LARGE)
    inner = visits().group_by("pid", "region").agg(total=pl.col("cost").clip(0, 5000).sum())
    truth = inner.group_by("region").agg(m=pl.col("total").mean(), n=pl.len()).sort("region")
    assert release.frame["n"].to_list() == pytest.approx(truth["n"].to_list(), abs=2)
    assert release.frame["m"].to_list() == pytest.approx(truth["m"].to_list(), rel=0.01)


def test_a_distribution_of_visits(session):
    """Keys that are counts within patients; one patient counts in one of them."""
    question = session.sql(
        "SELECT CLAMP(n, 1, 20) AS n, COUNT(*) AS c FROM (SELECT pid, COUNT(*) AS n FROM visits "
        "GROUP BY pid) GROUP BY 1"
    )
    assert (question._plan.job.max_groups, question._plan.job.max_rows) == (1, 1)
    truth = visits().group_by("pid").len().group_by("len").len(name="c")
    found = dict(question.release(LARGE).frame.select("n", "c").iter_rows())
    assert all(abs(found[n] - c) <= 2 for n, c in truth.iter_rows())


@pytest.mark.parametrize("key", ["n", "n + 1", "t"])
def test_keys_do_not_end_where_a_patient_is_only_taken_to_end(session, key):
    """Whoever has more rows than ``max_rows`` would be in no group, and nobody would see it."""
    inner = "(SELECT pid, COUNT(*) AS n, SUM(CLAMP(age, 0, 9)) AS t FROM visits GROUP BY pid)"
    with pytest.raises(BoundsError, match=r"write GROUP BY CLAMP\("):
        session.sql(f"SELECT {key} AS k, COUNT(*) AS c FROM {inner} GROUP BY 1")
    cut = session.sql(f"SELECT BIN({key}, 0, 5, 10) AS k, COUNT(*) AS c FROM {inner} GROUP BY 1")
    assert cut._plan.public_keys == 2
    found = session.sql(f"SELECT {key} AS k, COUNT(*) AS c FROM {inner} GROUP BY 1", discover=True)
    assert found._plan.discovered


def test_rows_without_a_match_stay(session):
    """A LEFT JOIN on the unit keeps them, with NULL."""
    text = "SELECT COUNT(*) AS n, COUNT(level) AS k FROM visits LEFT JOIN labs USING (pid)"
    row = session.sql(text).release(LARGE).frame.row(0, named=True)
    assert row["n"] == pytest.approx(4000, abs=5)
    assert row["k"] == pytest.approx(visits().filter(pl.col("pid") % 2 == 0).height, abs=5)


def test_tables_below_one_another(session):
    """UNION ALL counts the rows of all parts, and the certificate names their tables."""
    visited, tested = session.table("visits"), session.table("labs")
    question = (
        visited.select("pid", kind="'visit'", x="cost")
        .union_all(tested.select("pid", kind="'lab'", x="level"))
        .group_by("kind")
        .agg(n=dt.count())
    )
    text = (
        "SELECT kind, COUNT(*) AS n FROM (SELECT pid, 'visit' AS kind, cost AS x FROM visits UNION "
        "ALL SELECT pid, 'lab' AS kind, level AS x FROM labs) AS visits GROUP BY kind"
    )
    assert question.sql == text
    assert session.sql(text)._plan == question._plan
    release = question.release(LARGE)
    found = dict(release.frame.select("kind", "n").iter_rows())
    assert found == pytest.approx({"visit": 4000, "lab": 400}, abs=5)
    assert set(release.certificate.to_dict()["tables"]) == {"visits", "labs"}


def test_a_public_column_keeps_its_keys(session):
    """The labels of a public table are keys also when a query passes them on."""
    text = (
        "SELECT c, COUNT(*) AS n FROM (SELECT pid, coast AS c, region FROM visits LEFT JOIN "
        "regions USING (region)) AS q JOIN (SELECT pid, MAX(level) AS top FROM labs GROUP BY pid) "
        "AS t USING (pid) WHERE top > 3 GROUP BY c"
    )
    question = session.sql(text)
    assert question._plan.public_keys == 2
    assert session.sql(question.sql)._plan == question._plan
    assert "left join public regions" in str(question.explain())


def test_keys_that_are_found(session):
    """Discovered keys are shown by the number of units that have them, as over a table."""
    question = session.sql(
        "SELECT region, COUNT(*) AS n FROM (SELECT DISTINCT pid, region FROM visits) "
        "GROUP BY region",
        discover=True,
    )
    assert set(question.release(LARGE).frame["region"]) == set(REGIONS)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda s, t: t.select("cost * 2"), ArgumentError, "needs a name"),
        (lambda s, t: t.select("cost", cost="age"), QueryError, "two columns.*'cost'"),
        (lambda s, t: t.group_by("region").select("cost"), QueryError, "select comes before"),
        (lambda s, t: t.per_unit(n=3), ArgumentError, "n must be a key or an aggregate"),
        (lambda s, t: t.per_unit(n=dt.median("cost")), QueryError, "MIN and MAX"),
        (lambda s, t: t.union_all("labs"), ArgumentError, "session.table"),
        (lambda s, t: t.union_all(s.table("labs")), QueryError, "columns"),
        (lambda s, t: t.join(s.table("labs").filter("level > 1"), on="pid"), QueryError, "select"),
        (lambda s, t: t.join(s.table("labs").select("level"), on="pid"), QueryError, "'pid'"),
    ],
)
def test_what_makes_no_rows_is_refused(session, ask, error, words):
    """By the builder, as SQL does."""
    with pytest.raises(error, match=words):
        ask(session, session.table("visits"))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("STDDEV(cost)", "write SQRT(GREATEST(0, AVG(cost * cost) - AVG(cost) * AVG(cost)))"),
        ("VAR_POP(cost)", "write GREATEST(0, AVG(cost * cost) - AVG(cost) * AVG(cost))"),
        ("MEDIAN(cost)", "write AVG(cost)"),
    ],
)
def test_what_a_unit_s_own_rows_have_not_is_refused_with_what_to_write(session, asked, words):
    """And what is to be written is read, with bounds that follow from those of the column."""
    ask = "SELECT AVG(v) AS m FROM (SELECT pid, {} AS v FROM visits GROUP BY pid) AS q"
    with pytest.raises(QueryError, match=re.escape(words)):
        session.sql(ask.format(asked))
    assert "[0, " in str(session.sql(ask.format(words.removeprefix("write "))).explain())

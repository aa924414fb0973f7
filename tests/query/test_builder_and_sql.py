"""SQL and Python build the same plan, and a plan written as SQL reads back as itself."""

from __future__ import annotations

import pytest

import dither as dt
from dither.errors import (
    ArgumentError,
    BoundsError,
    QueryError,
    UnknownNameError,
    UnsupportedError,
)

PAIRS = {
    "count": ("SELECT COUNT(*) AS n FROM visits", lambda t: t.agg(n=dt.count())),
    "values": ("SELECT COUNT(age) AS n FROM visits", lambda t: t.agg(n=dt.count("age"))),
    "units": ("SELECT COUNT(DISTINCT pid) AS n FROM visits", lambda t: t.agg(n=dt.count_units())),
    "sum": ("SELECT SUM(cost) AS s FROM visits", lambda t: t.agg(s=dt.sum("cost"))),
    "mean": ("SELECT AVG(cost * 2) AS m FROM visits", lambda t: t.agg(m=dt.mean("cost * 2"))),
    "var": ("SELECT VAR_SAMP(age) AS v FROM visits", lambda t: t.agg(v=dt.var("age"))),
    "var_pop": (
        "SELECT VAR_POP(age) AS v FROM visits",
        lambda t: t.agg(v=dt.var("age", sample=False)),
    ),
    "std": ("SELECT STDDEV(age) AS v FROM visits", lambda t: t.agg(v=dt.std("age"))),
    "median": ("SELECT MEDIAN(age) AS m FROM visits", lambda t: t.agg(m=dt.median("age"))),
    "quantile": (
        "SELECT QUANTILE_CONT(age, 0.9) AS q FROM visits",
        lambda t: t.agg(q=dt.quantile("age", 0.9)),
    ),
    "extremes": (
        "SELECT MIN(age) AS a, MAX(age) AS b FROM visits",
        lambda t: t.agg(a=dt.min("age"), b=dt.max("age")),
    ),
    "ratio": (
        "SELECT SUM(cost) / COUNT(DISTINCT pid) AS r FROM visits",
        lambda t: t.agg(r=dt.ratio(dt.sum("cost"), dt.count_units())),
    ),
    "filter": (
        "SELECT COUNT(*) AS n FROM visits WHERE age >= 18 AND region IN ('north', 'south')",
        lambda t: t.filter("age >= 18 AND region IN ('north', 'south')").agg(n=dt.count()),
    ),
    "keys": (
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region",
        lambda t: t.group_by("region").agg(n=dt.count()),
    ),
    "expression": (
        "SELECT FLOOR(age / 10) AS band, COUNT(*) AS n FROM visits GROUP BY band",
        lambda t: t.group_by(band="FLOOR(age / 10)").agg(n=dt.count()),
    ),
    "declared bins": (
        "SELECT age, COUNT(*) AS n FROM visits GROUP BY age",
        lambda t: t.group_by(dt.bins("age", [0, 18, 65, 110])).agg(n=dt.count()),
    ),
    "join": (
        "SELECT coast, COUNT(*) AS n FROM visits JOIN regions ON visits.region = regions.region "
        "GROUP BY coast",
        lambda t: t.join("regions", on="region").group_by("coast").agg(n=dt.count()),
    ),
    "left join": (
        "SELECT coast, COUNT(*) AS n FROM visits LEFT JOIN regions USING (region) GROUP BY coast",
        lambda t: t.join("regions", on="region", how="left").group_by("coast").agg(n=dt.count()),
    ),
    "text": (
        "SELECT UPPER(city) AS c, COUNT(*) AS n FROM visits WHERE city <> 'alpha' GROUP BY c",
        lambda t: t.filter("city <> 'alpha'").group_by(c="UPPER(city)").agg(n=dt.count()),
    ),
    "sets": (
        "SELECT region, age, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((age, region), "
        "region, ())",
        lambda t: t.group_by("region", "age", sets=[["region", "age"], ["region"], []]).agg(
            n=dt.count()
        ),
    ),
    "keys of a public table": (
        "SELECT COUNT(*) AS n FROM visits WHERE age > 3 AND region IN (SELECT region FROM regions)",
        lambda t: t.filter("region IN (SELECT region FROM regions) AND age > 3").agg(n=dt.count()),
    ),
    "rollup": (
        "SELECT region, age, COUNT(*) AS n FROM visits GROUP BY ROLLUP (1, age)",
        lambda t: t.group_by("region", "age", sets="rollup").agg(n=dt.count()),
    ),
    "cube": (
        "SELECT region, age, COUNT(*) AS n FROM visits GROUP BY CUBE (region, age)",
        lambda t: t.group_by("region", "age", sets="cube").agg(n=dt.count()),
    ),
    "query": (
        "SELECT band, AVG(c) AS m FROM (SELECT FLOOR(age / 10) AS band, cost * 2 AS c FROM "
        "visits WHERE smoker) AS visits GROUP BY band",
        lambda t: (
            t.filter("smoker")
            .select(band="FLOOR(age / 10)", c="cost * 2")
            .group_by("band")
            .agg(m=dt.mean("c"))
        ),
    ),
    "within": (
        "SELECT region, AVG(total) AS m FROM (SELECT pid, region, SUM(cost) AS total FROM visits "
        "GROUP BY pid, region) AS visits GROUP BY region",
        lambda t: (
            t.per_unit("region", total=dt.sum("cost")).group_by("region").agg(m=dt.mean("total"))
        ),
    ),
    "within and more": (
        "SELECT CLAMP(n, 1, 9) AS n, COUNT(*) AS c, SUM(d) AS s FROM (SELECT pid, FLOOR(age / 10) "
        "AS y, COUNT(*) AS n, MAX(age) AS oldest, COUNT(age) AS d FROM visits WHERE cost > 1 GROUP "
        "BY pid, y) AS visits WHERE oldest > 18 AND y > 2 GROUP BY CLAMP(n, 1, 9)",
        lambda t: (
            t.filter("cost > 1")
            .per_unit(y="FLOOR(age / 10)", n=dt.count(), oldest=dt.max("age"), d=dt.count("age"))
            .filter("oldest > 18 AND y > 2")
            .group_by(n="CLAMP(n, 1, 9)")
            .agg(c=dt.count(), s=dt.sum("d"))
        ),
    ),
    "case": (
        "SELECT AVG(CASE WHEN smoker THEN cost ELSE 0 END) AS m FROM visits",
        lambda t: t.agg(m=dt.mean("CASE WHEN smoker THEN cost ELSE 0 END")),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_both_doors_lead_to_one_plan(session, name):
    """The plan is equal in every part, so its price and its answers are."""
    text, build = PAIRS[name]
    asked, built = session.sql(text), build(session.table("visits"))
    assert built._plan == asked._plan
    assert built.sql == asked.sql


@pytest.mark.parametrize("name", PAIRS)
def test_a_plan_written_as_sql_reads_back(session, name):
    """``question.sql`` asks for the same thing."""
    asked = session.sql(PAIRS[name][0])
    assert session.sql(asked.sql)._plan == asked._plan


def test_a_histogram_is_a_count_by_bins(session):
    """``histogram`` is a short hand."""
    table = session.table("visits")
    short = table.histogram("cost", [0, 100, 5000])
    assert (
        short._plan == table.group_by(dt.bins("cost", [0, 100, 5000])).agg(count=dt.count())._plan
    )


def test_weights_split_the_budget(session):
    """An output of thrice the weight gets thrice the share."""
    question = session.table("visits").agg(n=dt.count(weight=3), s=dt.sum("cost"))
    assert [str(w) for w in question._plan.weights] == ["3/4", "1/4"]


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda s, t: s.table("visit"), UnknownNameError, "'visit'.*did you mean 'visits'"),
        (lambda s, t: s.table("regions"), QueryError, "public"),
        (lambda s, t: t.filter("ages > 3"), UnknownNameError, "did you mean 'age'"),
        (lambda s, t: t.filter("age"), QueryError, "not a condition|condition"),
        (lambda s, t: t.filter("age > "), QueryError, "."),
        (lambda s, t: t.agg(), QueryError, "add an aggregate"),
        (lambda s, t: t.agg(n=3), ArgumentError, "n must be an aggregate"),
        (lambda s, t: t.agg(n=dt.sum("city")), QueryError, "city.*not a number"),
        (lambda s, t: t.group_by(), ArgumentError, "at least one key"),
        (lambda s, t: t.group_by(3), ArgumentError, "a key must be"),
        (lambda s, t: t.filter("pid IN (SELECT pid FROM visits)"), QueryError, "is private"),
        (lambda s, t: t.filter("age IN (SELECT region FROM regions)"), QueryError, "CAST one"),
        (
            lambda s, t: t.filter("NOT smoker OR region IN (SELECT region FROM regions)"),
            UnsupportedError,
            "joined by AND",
        ),
        (
            lambda s, t: t.filter("region IN (SELECT region FROM regions LIMIT 2)"),
            UnsupportedError,
            "LIMIT",
        ),
        (lambda s, t: t.group_by("region", sets="all"), ArgumentError, "'rollup', 'cube'"),
        (lambda s, t: t.group_by("region", sets=["region"]), ArgumentError, "lists of keys"),
        (lambda s, t: t.group_by("region", grouping="g").agg(n="COUNT(*)"), QueryError, "GROUPING"),
        (lambda s, t: t.group_by("region", sets=[["age"]]), ArgumentError, "no key 'age'"),
        (lambda s, t: t.group_by("pid"), QueryError, "every group would be one person"),
        (lambda s, t: t.group_by("cost"), QueryError, "too many values"),
        (lambda s, t: t.group_by("region").filter("age > 3"), QueryError, "before group_by"),
        (lambda s, t: t.join("regions", on="region", how="outer"), ArgumentError, "how must be"),
        (lambda s, t: t.join("region", on="region"), UnknownNameError, "'regions'"),
        (lambda s, t: t.agg(n=dt.count(), n_lower=dt.count()), QueryError, "n_lower"),
        (lambda s, t: t.agg(v=dt.mean("age / (cost - 1)")), BoundsError, "CLAMP"),
    ],
)
def test_what_cannot_be_asked_is_refused(session, ask, error, words):
    """By name, with the fix; a chain that stops early is finished first."""
    with pytest.raises(error, match=words):
        ask(session, session.table("visits")).agg(n=dt.count())
    assert session.balance()[0].spent.epsilon == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dt.count(weight=0), "weight must be above 0"),
        (lambda: dt.count(weight=float("nan")), "weight must be finite"),
        (lambda: dt.quantile("age", 1.5), r"q must lie in \[0, 1\]"),
        (lambda: dt.quantile("age", "x"), "q must be"),
        (lambda: dt.bins("age", [1]), "at least two"),
        (lambda: dt.bins("age", [1, float("inf")]), "edges must be finite"),
    ],
)
def test_aggregates_check_their_arguments(make, words):
    """Before they meet a table."""
    with pytest.raises(ArgumentError, match=words):
        make()


def test_names_that_need_quotes(tmp_path):
    """Tables and columns with dashes, spaces and upper case are asked for by either door."""
    import polars as pl

    frame = pl.DataFrame({"My Age": [1, 2], "select": [3, 4]})
    made = {
        "budget": {"epsilon": 9, "ledger": str(tmp_path / "l")},
        "tables": {"my-table": {"columns": {"My Age": {"bounds": [0, 9]}}}},
    }
    with dt.open(made, sources={"my-table": frame}) as opened:
        built = opened.table("my-table").filter('"select" > 1').agg(m=dt.mean('"My Age"'))
        asked = opened.sql('SELECT AVG("My Age") AS m FROM "my-table" WHERE "select" > 1')
        assert asked._plan == built._plan
        assert opened.sql(built.sql)._plan == built._plan
        assert built.release(1).frame.columns == ["m", "m_lower", "m_upper"]


def test_weights_and_discovery_stand_beside_sql(session):
    """What SQL has no word for makes the same plan as in Python; a wrong name is refused."""
    text = "SELECT region, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY region"
    asked = session.sql(text, weights={"m": "1/2"}, discover=True)
    built = (
        session.table("visits")
        .group_by("region", discover=True)
        .agg(n=dt.count(), m=dt.mean("cost", weight="1/2"))
    )
    assert asked._plan == built._plan
    assert asked._plan.discovered
    with pytest.raises(ArgumentError, match=r"weights: no output 'nn'; did you mean 'n'"):
        session.sql(text, weights={"nn": 1})
    with pytest.raises(ArgumentError, match=r"weights\['n'\] must be"):
        session.sql(text, weights={"n": 0})


def test_a_column_that_sql_would_quote_needs_no_quotes_in_python(tmp_path):
    """The name of a column is enough where it is not a word of SQL's own."""
    import polars as pl

    made = {
        "budget": {"epsilon": 1, "ledger": str(tmp_path / "l")},
        "tables": {"t": {"columns": {"Visit cost": {"bounds": [0, 9]}, "a-b": {"values": [1]}}}},
    }
    frame = pl.DataFrame({"Visit cost": [1], "a-b": [1]})
    with dt.open(made, sources={"t": frame}) as opened:
        question = opened.table("t").group_by("a-b").agg(m=dt.mean("Visit cost"))
        assert question.sql == 'SELECT "a-b", AVG("Visit cost") AS m FROM t GROUP BY "a-b"'

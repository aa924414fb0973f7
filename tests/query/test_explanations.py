"""Explanations: every node says what a reader needs, in the column's unit and in eighty columns."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser

import pytest

import dither as dt
from query.query_data import policy, rows_policy

ALL = (
    "SELECT region, COUNT(*) AS n, AVG(cost) AS m, MEDIAN(age) AS q, STDDEV(cost) AS d "
    "FROM visits WHERE age >= 18 GROUP BY region"
)


def nodes(explanation):
    """Every node as plain data, by title."""
    found = []

    def walk(node):
        found.append(node)
        for child in node["children"]:
            walk(child)

    walk(explanation.to_dict())
    return {node["title"]: node["facts"] for node in found}


def test_a_query_in_the_from_is_explained(session):
    """Whose its rows are, how sums within a unit are taken, and how far they are taken to reach."""
    explanation = session.sql(
        "SELECT region, AVG(total) AS m FROM (SELECT pid, region, SUM(cost) AS total, COUNT(*) AS "
        "n FROM visits GROUP BY pid, region) WHERE n > 1 GROUP BY region"
    ).explain(0.5)
    found = nodes(explanation)
    within = found["one row for each pid and region"]
    assert (
        within["stability"] == "1: each row is of one pid, and follows from all of its rows alone"
    )
    assert within["total"] == "SUM(cost), each value moved into 0 to 5000 and rounded to 0.01"
    assert within["n"] == "COUNT(*)"
    groups = found["groups: 4 public keys; all appear, empty ones too"]
    assert groups["one pid"] == "counts in at most 3 groups, with 1 row in each"
    total = next(facts for title, facts in found.items() if title.startswith("measurement 1"))
    assert total["bounds"] == "[0, 25000] on multiples of 0.01 EUR"
    assert "total is taken to lie in 0 to 25000, that of max_rows = 5 rows" in str(explanation)
    assert "CLAMP(total, lower, upper)" in str(explanation)


def test_every_part_of_the_plan_is_there(session):
    """Unit, neighbours, stability, groups, bounds, sensitivity, mechanism, scale, cost, limits."""
    found = nodes(session.sql(ALL).explain(0.5))
    assert found["protects one pid, with all its rows of visits"] == {
        "neighbours": "add or remove all rows of one pid",
        "account": "pid of visits",
    }
    assert found["where age >= 18"]["stability"].startswith("1:")
    assert found["private table visits"]["stability"].startswith("1: one pid")
    groups = found["groups: 4 public keys; all appear, empty ones too"]
    assert groups["one pid"] == "counts in at most 3 groups, with 5 rows in each"
    assert groups["region"] == "'north', 'south', 'east', 'west'"
    total = found["measurement 2: sum of (cost - 2500)"]
    assert total["bounds"] == "[0, 5000] on multiples of 0.08 EUR"
    assert total["sensitivity"].startswith("12,500 EUR in a group; over all groups 37,500 (‖Δ‖₁)")
    assert total["mechanism"].startswith("discrete Gaussian: ")
    assert re.fullmatch(r"standard deviation [\d,]+ EUR in every group", total["scale"])
    assert total["cost"].endswith("(zCDP)")
    square = found["measurement 4: sum of (cost - 2500)²"]
    assert "EUR² in a group" in square["sensitivity"]
    assert "levels" in found["measurement 3: histogram of age in 111 bins, as a tree"]["tree"]
    assert found["outputs"] == {
        "n": "COUNT(*), from measurement 1",
        "m": "AVG(cost), from measurements 1 and 2",
        "q": "MEDIAN(age), from measurement 3",
        "d": "STDDEV_SAMP(cost), from measurements 1, 2 and 4",
    }
    assert found["cost"]["guarantee"].startswith("(ε, δ) = (0.5, ")
    assert "about the noise" in found["not accounted for"]["intervals"]


def test_the_scale_is_the_noise_that_will_be_drawn(session):
    """The deviation shown is that of the mechanism, turned into the column's unit."""
    question = session.sql("SELECT SUM(cost) AS s FROM visits")
    noise = question._noise_plan(0.5, None).noises[0]
    shown = nodes(question.explain(0.5))["measurement 1: sum of cost"]["scale"]
    number = float(shown.split()[2].replace(",", ""))
    assert math.isclose(number, math.sqrt(noise.variance) * 0.01, rel_tol=1e-3)


def test_a_plan_without_a_price_has_no_noise(session):
    """No mechanism and no cost before an epsilon is named."""
    text = str(session.sql(ALL).explain())
    assert "sensitivity" in text
    assert "share" in text
    assert "mechanism" not in text
    assert "ε" not in text


def test_mechanisms_are_reasoned(tmp_path, frames, session):
    """Why this noise: pure budget, the only measurement, or all together."""
    with dt.open(
        policy(tmp_path / "..", budget={"delta": 0, "ledger": str(tmp_path / "p")}), sources=frames
    ) as pure:
        found = str(pure.sql("SELECT COUNT(*) AS n FROM visits").explain(1))
        assert "discrete Laplace: δ is 0, so only pure noise will do" in found
        assert "(ε, δ) = (1, 0)" in found
    one = nodes(session.sql("SELECT COUNT(*) AS n FROM visits").explain(1))
    assert one["measurement 1: count of rows"]["mechanism"] == (
        "discrete Laplace: discrete Gaussian noise of the same cost would be wider"
    )


def test_joins_are_drawn(tmp_path, frames):
    """A public join is stable since its key is unique; a private one by max_join_rows."""
    import polars as pl

    made = policy(
        tmp_path,
        visits={"max_join_rows": 2},
        tables={"drugs": {"max_groups": 1, "max_rows": 1, "max_join_rows": 3}},
        units={"patient": {"columns": {"visits": "pid", "drugs": "pid"}}},
    )
    drugs = pl.DataFrame({"pid": [1, 1, 2], "dose": [1, 2, 3]})
    with dt.open(made, sources={**frames, "drugs": drugs}) as opened:
        public = opened.table("visits").join("regions", on="region").agg(n=dt.count()).explain()
        assert "its key is unique" in str(public)
        private = opened.table("visits").join("drugs", on="pid").agg(n=dt.count()).explain()
        assert "at most 2 of visits and 3 of drugs" in " ".join(
            re.sub("[│├└─]", "", str(private)).split()
        )
        assert "with all its rows of visits and drugs" in str(private)


def test_replace_one_and_rows_are_said(tmp_path, frames):
    """Which tables count as neighbours, and that a row is a person."""
    with dt.open(rows_policy(tmp_path, neighbours="replace_one"), sources=frames) as opened:
        text = str(opened.sql("SELECT AVG(age) AS m FROM visits").explain(1))
    assert "protects one row of visits" in text
    assert "replace one row by any other" in text
    assert "1: every row is a person" in text


def test_discovered_keys_say_what_is_missed(session):
    """The threshold, the odds of being missed, and the delta it costs."""
    found = nodes(session.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city").explain(1))
    assert (
        found["groups: discovered, each shown where enough units have it"]["city"]
        == "any value that occurs"
    )
    rule = next(facts for title, facts in found.items() if title.startswith("keys shown"))
    assert re.fullmatch(r"\d+ units", rule["threshold"])
    assert "half the time" in rule["missed"]
    assert "5 % of releases" in rule["missed"]
    assert rule["cost"].startswith("δ = ")


@pytest.mark.parametrize("epsilon", [None, 0.5])
def test_lines_fit_eighty_columns(session, epsilon):
    """Wrapped under their own column, with the tree's lines drawn through."""
    text = str(session.sql(ALL).explain(epsilon))
    assert max(map(len, text.splitlines())) < 80
    preview = str(session.sql(ALL).preview(1))
    assert max(map(len, preview.splitlines())) < 80


class Balance(HTMLParser):
    """Checks that tags open and close in order, and keeps the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_html_holds_what_the_text_holds(session):
    """Well-formed, without scripts, names escaped."""
    explanation = session.sql(ALL.replace("AS m", 'AS "<b>m</b>"')).explain(0.5)
    page = Balance()
    page.feed(explanation._repr_html_())
    assert page.open == []
    assert page.tags <= {"div", "details", "summary", "table", "tr", "td"}
    shown = "".join(page.text)
    for title, facts in nodes(explanation).items():
        assert title in shown
        assert all(name in shown and fact in shown for name, fact in facts.items())
    assert session.sql(ALL)._repr_html_().startswith("<div")

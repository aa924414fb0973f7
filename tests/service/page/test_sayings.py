"""The library's sentences in another language: complete for what is asked, and each still said."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytest.importorskip("jinja2")

import dither as dt
from dither import _checks as check
from dither.errors import DitherError
from dither.plan.lowering.lower import lower
from dither.plan.relations import Scan
from dither.policy._policy import read_policy
from dither.service.page._sayings import CUT, HOLE, OWNED, PageSayings, SayingTemplate, _is_prose
from dither.service.page._texts import FOLDER, words
from dither.service.page.forms import kind_of
from dither.service.work._costs import costs_of
from dither.service.work._drafts import request_for
from dither.session._recipe import QuestionRecipe
from dither.sql import Names, parse_expression, parse_query
from service.hospital import COUNT, Served
from service.page.test_forms import FILLED
from sql import test_refusals as refused
from sql.sql_tables import SCHEMA

ROOM = Path(dt.__file__).parent

READ = tomllib.loads((FOLDER / "zh.toml").read_text(encoding="utf-8"))

SENTENCES: dict[str, str] = READ["library"]

LABELS: dict[str, str] = READ["library_labels"]


@cache
def spoken() -> list[str]:
    """The texts of each module that can be on a page, its strings that stand in a row made one."""
    found = []
    for file in ROOM.rglob("*.py"):
        if "cli" in file.parts:
            continue
        text = re.sub(r'"\s*\n?\s*[fr]?"', "", file.read_text(encoding="utf-8"))
        strings = re.findall(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'', text)
        whole = "\0".join(one or other for one, other in strings)
        found.append(whole.replace('\\"', '"').replace("\\'", "'").replace("{{", "{"))
    return found


ENDS = re.compile(
    r"[,;:.(]? ?\b(in each|in every (group|cell|node)|rows?|columns?|levels?|trees?|cells?|blocks?"
    r"|public values?|of days about|so|left|private|one|or)$"
)

BEGINS = re.compile(
    r"^(is|are|and|rows?|columns?|levels?|level|trees?|cells?|blocks?|public values?)\b,? ?"
)


def missing(sentence: str, texts: list[str]) -> str | None:
    """The part of a sentence that nobody says; None where one module says all of it.

    A sentence that is put together falls apart at its commas, and at words that are counted.
    """
    parts = [part.strip() for part in HOLE.split(sentence)[::2]]
    if _said(parts, texts):
        return None
    smaller = [one.strip() for part in parts for one in re.split(r"[,;:.()?]+(?= |$)| \(", part)]
    smaller = [BEGINS.sub("", ENDS.sub("", one)).strip() for one in smaller]
    if _said(smaller, texts):
        return None
    return next((one for one in smaller if not _said([one], texts)), sentence)


def _said(parts: list[str], texts: list[str]) -> bool:
    kept = [part for part in parts if part.strip(" ,.;:()=[]")]
    return not kept or any(all(part in text for part in kept) for text in texts)


# --- what is asked ------------------------------------------------------------------------------


class Heard(PageSayings):
    """The sentences of Chinese, and which of them were said."""

    def __init__(self) -> None:
        super().__init__(SENTENCES, LABELS)
        self.used: set[str] = set()
        self.left: dict[str, str] = {}

    def best(self, text: str) -> tuple[SayingTemplate, dict[str, str]] | None:
        found = super().best(text)
        if found is not None:
            self.used.add(found[0].english)
        return found

    def hear(self, text: object) -> None:
        """Keep what of a text stays English; names of accounts may."""
        for one, _ in self.parts(str(text)):
            if _is_prose(re.sub(NAMES, "", one)):
                self.left.setdefault(one, str(text))

    def hear_tree(self, node: Mapping[str, Any]) -> None:
        """The same of all parts of an explanation."""
        self.hear(node["title"])
        owned = node["title"].startswith(OWNED) or CUT in node["title"]
        for name, text in node["facts"].items():
            if name != "account":
                self.hear(text)
            if not owned and self.label(name) == name:
                assert name in SAME, name
        for text in node.get("notes", ()):
            self.hear(text)
        for child in node["children"]:
            self.hear_tree(child)


NAMES = r"\w+:[\w:]+ of \w+|integer and text"
"""Accounts and kinds of columns, by their names in the policy."""

SAME = ("epsilon, delta", "epsilon", "delta", "rho")
"""Names of facts that are the same in every language."""

TABLES = """
[tables.visits]
source = "visits.parquet"
unit = "person"
max_rows = 3
max_groups = 2
max_join_rows = 2
{blocks}
[tables.visits.columns]
cost = {{ bounds = [0, 100], unit = "EUR" }}
region = {{ values = ["north", "south"] }}
beds = {{ type = "integer", values = [1, 2] }}
ill = {{ type = "integer", values = [0, 1] }}
day = {{ bounds = ["2026-01-01", "2026-12-31"] }}
tags = {{ values = ["a", "b"], max_items = 2 }}
[tables.drugs]
source = "drugs.parquet"
unit = "person"
max_rows = 2
max_groups = 2
max_join_rows = 2
[tables.drugs.columns]
dose = {{ bounds = [0, 9] }}
[tables.rows]
source = "rows.parquet"
[tables.rows.columns]
cost = {{ bounds = [0, 100] }}
region = {{ values = ["north", "south"] }}
[tables.places]
source = "places.parquet"
public = true
unique = ["region"]
"""

UNITS = '[units.patient]\ncolumns = { visits = "person", drugs = "person" }\n'

BUDGETS = {
    "plain": ("epsilon = 10\ndelta = 1e-6", "", UNITS),
    "pure": ("epsilon = 3", "", "[quotas.analysts.ann]\nepsilon = 1\n"),
    "months": (
        'epsilon = 2\ndelta = 1e-6\nper = "block"\nlifetime = { epsilon = 6, delta = 6e-6 }',
        'block = { column = "day", every = "month" }',
        "[quotas.analysts.ann]\nepsilon = 1\n",
    ),
    "replace": ('epsilon = 3\ndelta = 1e-6\nneighbours = "replace_one"', "", ""),
}

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT region, COUNT(*) AS n, AVG(cost) AS m, SUM(cost) AS s FROM visits GROUP BY region",
    "SELECT MEDIAN(cost) AS m, MIN(cost) AS l, QUANTILE_DISC(cost, 0.9) AS q FROM visits",
    "SELECT STDDEV(cost) AS s, CORR(cost, beds) AS c FROM visits",
    "SELECT COUNT(DISTINCT person) AS p, COUNT(cost) AS c FROM visits",
    "SELECT MODE(region) AS m FROM visits",
    "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
    "SELECT region, beds, COUNT(*) AS n FROM visits GROUP BY ROLLUP(region, beds)",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region HAVING COUNT(*) > 5",
    "SELECT region, AVG(cost) AS m FROM visits WHERE day >= '2026-03-01' GROUP BY region",
    "SELECT COUNT(*) AS n FROM visits JOIN places ON visits.region = places.region",
    "SELECT COUNT(*) AS n FROM visits LEFT JOIN places ON visits.region = places.region",
    "SELECT AVG(dose) AS d FROM visits JOIN drugs ON visits.person = drugs.person",
    "SELECT AVG(dose) AS d FROM visits LEFT JOIN drugs ON visits.person = drugs.person",
    "SELECT AVG(t) AS t FROM (SELECT person, SUM(cost) AS t FROM visits GROUP BY person) q",
    "SELECT COUNT(*) AS n FROM visits WHERE region NOT IN (SELECT region FROM places)",
    "SELECT COUNT(*) AS n FROM (SELECT person, cost FROM visits UNION ALL "
    "SELECT person, cost FROM visits) q",
    "SELECT BIN(cost, 0, 50, 100) AS b, COUNT(*) AS n FROM visits GROUP BY BIN(cost, 0, 50, 100)",
    "SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY n DESC) AS r FROM visits GROUP BY region",
    "SELECT x, COUNT(*) AS n FROM visits, UNNEST(tags) AS t(x) GROUP BY x",
    "SELECT COUNT(*) AS n, AVG(cost) AS c FROM rows",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > 5 AND cost < 3",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > 500",
    "SELECT AVG(costs) FROM visits",
    'SELECT AVG("cost ") FROM visits',
    "SELECT * FROM visits",
    "SELECT AVG(note) FROM visits",
    "SELECT person, COUNT(*) FROM visits GROUP BY person",
    "SELECT COUNT(*) FROM places",
    "DELETE FROM visits",
]

BAD_POLICIES = [
    TABLES.format(blocks="").replace("max_groups = 2\nmax_join", "max_join"),
    TABLES.format(blocks="").replace("max_rows = 3\n", ""),
]


def written(folder: Path) -> None:
    """The sources, and a policy for each budget."""
    rows = pl.DataFrame(
        {
            "person": [i // 2 for i in range(40)],
            "cost": [float(i) for i in range(40)],
            "region": ["north", "south"] * 20,
            "beds": [1, 2] * 20,
            "ill": [0, 1] * 20,
            "note": ["x"] * 40,
            "tags": [["a", "b"]] * 40,
        }
    ).with_columns(day=pl.date(2026, 1, 1 + pl.int_range(pl.len()) % 28))
    rows.write_parquet(folder / "visits.parquet")
    rows.drop("person", "tags").write_parquet(folder / "rows.parquet")
    pl.DataFrame({"person": [1, 2], "dose": [1.0, 2.0]}).write_parquet(folder / "drugs.parquet")
    places = pl.DataFrame({"region": ["north", "south"], "beds": [1, 2]})
    places.write_parquet(folder / "places.parquet")
    for name, (budget, blocks, more) in BUDGETS.items():
        head = f'[budget]\n{budget}\nledger = "{name}.ledger"\n'
        text = f"{head}{more}{TABLES.format(blocks=blocks)}"
        (folder / f"{name}.toml").write_text(text)


def hear_sql(heard: Heard) -> None:
    """What is said of every question that the tests of SQL have refused."""
    texts = [f"SELECT COUNT(*) FROM visits {one[0]}" for one in refused.TAILS]
    texts += [f"SELECT {one[0]} FROM visits" for one in refused.ITEMS]
    texts += [f"SELECT COUNT(*) FROM ({one[0]}) AS q" for one in refused.WITHIN]
    texts += [one[0] for one in refused.TEXTS]
    texts += [f"SELECT COUNT(*) FROM visits WHERE {one} = 1" for one in refused.WRITTEN]
    for text in texts:
        try:
            lower(parse_query(text, SCHEMA), SCHEMA)
        except DitherError as error:
            heard.hear(error)
    for one in refused.PARTS:
        with pytest.raises(DitherError) as caught:
            parse_expression(one[0], Names(Scan("visits", "visits"), SCHEMA))
        heard.hear(caught.value)


def hear_questions(
    heard: Heard,
    folder: Path,
    names: Iterable[str] = BUDGETS,
    questions: Sequence[str] = QUESTIONS,
) -> None:
    """What is said of questions, prices and balances before and after they are asked."""
    for name in names:
        who: dict[str, Any] = {"analyst": "ann"} if "ann" in BUDGETS[name][2] else {}
        with dt.open(folder / f"{name}.toml", **who) as session:
            for text in questions:
                try:
                    question = session.sql(text)
                    heard.hear_tree(question.explain(0.5).to_dict())
                    heard.hear(question.preview(0.5))
                    found = costs_of(request_for(question, session, {"epsilon": "0.5"}))
                    for said in (found["protects"], found["blocks"], found["instead"]):
                        heard.hear(said or "")
                    for one in found["accounts"]:
                        heard.hear(one["left"])
                        heard.hear(one["after"] or "")
                except DitherError as error:
                    heard.hear(error)
            for text, *price in ((QUESTIONS[6], 50), (QUESTIONS[1], 50), (QUESTIONS[1], 0.1, 0.5)):
                try:
                    session.sql(text).release(*price)
                except DitherError as error:
                    heard.hear(error)
            question = session.sql(QUESTIONS[1])
            for said in question.release(0.25)._remarks():
                heard.hear(said)
            for bad in (100_000, 0, -1, "x", "1e9"):
                with pytest.raises(DitherError) as caught:
                    question.release(bad)
                heard.hear(caught.value)
            for one in session.balance():
                for said in (one.describe(), one._left, one.promise.describe(), one.forecast()):
                    heard.hear(said)
            heard.hear(question.affordable(0.25))


RANGES: list[dict[str, Any]] = [
    {},
    {"above": 2},
    {"least": 2},
    {"most": 0},
    {"below": 0},
    {"above": 2, "most": 5},
    {"above": 2, "below": 5},
    {"least": 2, "below": 5},
    {"least": 2, "most": 5},
]


def hear_numbers(heard: Heard) -> None:
    """What is said of arguments that are no numbers, or others than were wanted."""
    for given in (1, "x"):
        for limits in RANGES:
            try:
                check.number("epsilon", given, **limits)
            except DitherError as error:
                heard.hear(error)
            try:
                kept: dict[str, Any] = {
                    name: end for name, end in limits.items() if name in ("least", "most")
                }
                check.whole("bins", given, **kept)
            except DitherError as error:
                heard.hear(error)


def hear_forms(heard: Heard, folder: Path) -> None:
    """What is said of questions that forms ask."""
    with dt.open(folder / "plain.toml") as session:
        for kind in FILLED:
            ask = kind_of(kind).calls("visits", None, {"epsilon": "0.5"}, FILLED[kind])
            question = QuestionRecipe.from_list(ask).made(session)
            heard.hear_tree(question.explain().to_dict())
            heard.hear(question.preview())


def test_a_hole_ends_before_the_table_below_it() -> None:
    """A title is one sentence, and a preview has its lines left."""
    preview = (
        "mean of cost, at ε = 0.5\npeople  half-width  noise's share\n──────  ──────────  ─────\n"
        "   100        8.06           47 %\nintervals at 95 %, of noise alone"
    )
    told = PageSayings(SENTENCES, LABELS).plain(preview)
    assert told.splitlines()[0] == "cost 的均值，ε = 0.5"
    assert told.splitlines()[3] == preview.splitlines()[3]
    assert len(told.splitlines()) == 5


def test_no_english_is_left_of_a_question_and_its_price(tmp_path: Path) -> None:
    """Explanations, previews, prices, balances and refusals of a few questions."""
    heard = Heard()
    written(tmp_path)
    hear_questions(heard, tmp_path, ["months"], QUESTIONS[:7])
    assert not heard.left
    assert len(heard.used) > 60


@pytest.mark.slow
def test_no_english_is_left_of_what_is_asked_and_no_sentence_is_said_no_more(
    tmp_path: Path,
) -> None:
    """Explanations, previews, prices, balances, forecasts and refusals, of many questions.

    A sentence whose English was changed is named: nobody says it any more.
    """
    heard = Heard()
    written(tmp_path)
    hear_sql(heard)
    hear_questions(heard, tmp_path)
    hear_forms(heard, tmp_path)
    hear_numbers(heard)
    for text in BAD_POLICIES:
        with pytest.raises(DitherError) as caught:
            read_policy({"budget": {"epsilon": 1}, **tomllib.loads(text)})
        heard.hear(caught.value)
    assert not heard.left
    texts = spoken()
    gone = {one: missing(one, texts) for one in [*SENTENCES, *LABELS] if one not in heard.used}
    gone = {one: part for one, part in gone.items() if part is not None}
    assert not gone


def test_what_is_shown_is_filled_in_as_it_stands() -> None:
    """Names are text, whatever stands in them; numbers are numbers; English is marked."""
    say = words("zh").library
    name = '<img src="x">'
    told = say.told(f"private table {name}")
    assert told == "私有表 &lt;img src=&#34;x&#34;&gt;"
    assert say.told("nobody has said this before") == (
        '<span lang="en">nobody has said this before</span>'
    )
    assert say.told("nobody has said this; private table visits") == (
        '<span lang="en">nobody has said this</span>; 私有表 visits'
    )
    assert say.plain("33.3 % of the budget") == "预算的 33.3%"
    assert say.plain("many of the budget") == "many of the budget"
    months = "one patient, added or removed: ε 1 and δ 1e-6 a month, at most m times that for "
    assert say.plain(f"{months}someone in m months, ε 4 and δ 4e-6 in all") == (
        "一个 patient，增加或删除：每月 ε 1、δ 1e-6，在 m 个月中有行的人最多 m 倍，合计 ε 4、δ 4e-6"
    )
    assert words("en").told(f"a {name}; b") == "a &lt;img src=&#34;x&#34;&gt;; b"


@pytest.mark.parametrize("text", ["; " * 50_000, ": " * 3_000, "one " * 20_000, "(" * 9_000])
def test_long_and_hostile_texts_come_back(text: str) -> None:
    """Whatever is said, its parts are all there, and each is looked at a few times at most."""
    say = PageSayings(SENTENCES, LABELS)
    assert "".join(one for one, _ in say.parts(text)) == text


def test_a_page_of_chinese_has_chinese_alone(hospital: Served) -> None:
    """What a question costs, and the budget: nothing is marked as English but SQL and names."""
    for method, place, data in (
        ("POST", "ask/price", {"sql": COUNT, "epsilon": "0.5"}),
        ("POST", "ask/price", {"sql": "SELECT AVG(costs) FROM visits", "epsilon": "0.5"}),
        ("POST", "ask/stop", {"sql": COUNT, "epsilon": "0.5"}),
        ("POST", "ask/price", {"sql": COUNT, "epsilon": "5000"}),
        ("GET", "budget", None),
        ("GET", "ledger/verify", None),
    ):
        who = "olga" if place.startswith("ledger") else "ann"
        found = hospital.http.request(
            method,
            f"/p/visits/{place}",
            data=data,
            headers={
                "authorization": f"Bearer {hospital.keys[who]}",
                "accept-language": "zh",
                "hx-request": "true",
            },
        )
        assert found.status_code == 200
        shown = re.sub(r'<option [^>]*lang="en"', "", found.text)
        assert 'lang="en"' not in shown, shown

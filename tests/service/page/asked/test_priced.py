"""What is told of a question before it is asked: from public facts, as text, and at its place."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import pytest

from dither.errors import QueryError
from dither.service.page.asked._curve import EPSILONS, ErrorCurves, drawn
from dither.service.page.asked._faults import places_of
from dither.service.page.asked._python import code, text
from dither.service.work._thinking import Thinkers
from service.hospital import COUNT, Served

MEAN = "SELECT region, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY region"


def part(hospital: Served, who: str, path: str = "/ask/price", **given: Any) -> str:
    """A part of the page, as somebody is shown it."""
    form = {"epsilon": "0.5", "draft": "d"} | given
    headers = {"authorization": f"Bearer {hospital.keys[who]}"}
    answer = hospital.http.post(f"/p/visits{path}", data=form, headers=headers)
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def entries(hospital: Served) -> int:
    """Charges of the ledger."""
    return len(list(hospital.desk.session.ledger.entries()))


def test_the_curve_is_what_a_preview_says(hospital: Served) -> None:
    """Each point is the preview's half-width, and the chosen price is among them."""
    session = hospital.desk.session
    question = session.sql(MEAN)
    request = question._asked_at("0.3", None)
    points: dict[Fraction, Any] = {}
    curves = ErrorCurves()
    for _ in range(20):
        points, whole = curves.points("ann", question, request, "0.95", 1000)
        assert Fraction("0.3") in points
        if whole:
            break
    assert set(EPSILONS) <= set(points)
    for epsilon in (Fraction("0.3"), EPSILONS[0], EPSILONS[-1]):
        widths = question.preview(epsilon, sizes=(1000,)).widths
        assert points[epsilon] == {name: at[0] for name, at in widths.items()}
    picture = drawn(points, Fraction("0.3"))
    assert picture is not None
    assert [line["name"] for line in picture.lines] == ["n", "m"]
    assert all(line["dot"] for line in picture.lines)
    # What was worked out for one is not there sooner for another.
    assert {key[0] for key in curves._kept} == {"ann"}


def test_nothing_is_spent_or_read_before_the_stop(hospital: Served) -> None:
    """Prices and the stop leave the ledger as it is; the dialog says what would be left."""
    before = entries(hospital)
    told = part(hospital, "ann", sql=MEAN)
    assert "one person, with all its rows of visits" in told
    assert 'data-ready="yes"' in told
    assert "999.5" in told
    stop = part(hospital, "ann", "/ask/stop", sql=MEAN)
    assert "does not come back" in stop
    assert "999.5" in stop
    assert entries(hospital) == before


@pytest.mark.parametrize(
    "given", [{"epsilon": "0."}, {"epsilon": "x"}, {"epsilon": "0"}, {"size": "7"}, {"delta": "2"}]
)
def test_half_a_number_is_told_and_is_no_failure(hospital: Served, given: dict[str, str]) -> None:
    """While somebody types, the part says what is missing, and nothing can be released."""
    told = part(hospital, "ann", sql=MEAN, **given)
    assert "refusal" in told
    assert 'data-ready=""' in told


def test_scripts_in_a_question_stay_text(hospital: Served) -> None:
    """In names, refusals, marks and answers."""
    bad = '<script>alert(1)</script>"'
    named = 'SELECT COUNT(*) AS "<script>alert(1)</script>" FROM visits'
    for sql in (named, f"SELECT '{bad} FROM visits", f'SELECT AVG("{bad}") FROM visits'):
        assert "<script" not in part(hospital, "ann", sql=sql)
        assert "<script" not in part(hospital, "ann", "/ask/stop", sql=sql)
    job = hospital.released("ann", sql=named)
    headers = {"authorization": f"Bearer {hospital.keys['ann']}"}
    for path in (f"/answers/{job['id']}", "/answers", f"/ask?from={job['id']}"):
        shown = hospital.http.get(f"/p/visits{path}", headers=headers).text
        assert "alert(1)" in shown
        assert "<script>" not in shown


def test_a_question_of_another_kind_is_priced_and_asked(hospital: Served) -> None:
    """By the calls that make it, which any form may send."""
    ask = [["table", ["visits"], {}], ["infer", [], {"epsilon": "0.5"}], ["mean", ["cost"], {}]]
    sent = {"calls": json.dumps(ask)}
    told = part(hospital, "ann", **sent)
    assert "half-width" in told
    stop = part(hospital, "ann", "/ask/stop", **sent)
    fields = dict(re.findall(r'name="(token|digest)" value="([^"]+)"', stop))
    headers = {"authorization": f"Bearer {hospital.keys['ann']}"}
    form = sent | fields
    gone = hospital.http.post("/p/visits/ask/release", data=form, headers=headers)
    place = gone.headers["hx-redirect"]
    job = hospital.get("ann", f"/jobs/{place.rpartition('/')[2]}", wait=60).json()
    assert job["state"] == "done", job
    shown = hospital.http.get(place, headers=headers).text
    assert "Mean of cost, in visits" in shown
    assert "form=csv" in shown
    assert "form=json" in shown
    changed = hospital.http.get(f"/p/visits/ask?from={job['id']}", headers=headers).text
    assert "session.table(&#34;visits&#34;).infer" in changed


def test_a_draft_is_charged_once(hospital: Served) -> None:
    """Two clicks are one release; another question of the draft is another one."""
    headers = {"authorization": f"Bearer {hospital.keys['ann']}"}

    def confirmed(sql: str) -> str:
        stop = part(hospital, "ann", "/ask/stop", sql=sql)
        fields = dict(re.findall(r'name="([a-z]+)" value="([^"]*)"', stop)) | {"sql": sql}
        found = hospital.http.post("/p/visits/ask/release", data=fields, headers=headers)
        assert found.status_code == 200, found.text
        return str(found.headers["hx-redirect"])

    first, second, other = confirmed(COUNT), confirmed(COUNT), confirmed(MEAN)
    assert first == second != other
    for place in (first, other):
        assert hospital.get("ann", f"/jobs/{place.rpartition('/')[2]}", wait=60).json()["entry"]
    charges = [e for e in hospital.desk.session.ledger.entries() if e.charge is not None]
    assert len(charges) == 2


@pytest.mark.parametrize(
    ("message", "sql", "marked"),
    [
        ("unknown column 'costs'; did you mean 'cost'?", "SELECT AVG(costs)", "costs"),
        ("expected ) at 'FROM' (line 2, column 1)", "SELECT COUNT(*\nFROM v", "FROM"),
        ("AVG of region: not a number", "SELECT AVG(region) FROM v", "region"),
        ("unknown column 'b'; known: 'a'", "SELECT a FROM v WHERE 'é😀' = b", "b"),
        ("the query is empty; write it out", "", None),
        ("it holds several statements (line 9, column 4)", "SELECT 1", None),
    ],
)
def test_a_refusal_has_its_place(message: str, sql: str, marked: str | None) -> None:
    """Counted as browsers count."""
    found = places_of(message, sql)
    if marked is None:
        assert found == []
        return
    raw = sql.encode("utf-16-le")
    assert raw[2 * found[0]["from"] : 2 * found[0]["to"]].decode("utf-16-le") == marked


@pytest.mark.parametrize(
    "value",
    ["plain", "it's", 'say "so"', "a 'b' \"c\"", "two\nlines", 'end"\nquote"', "back\\slash\n"],
)
def test_texts_are_python_literals(value: str) -> None:
    """What is copied reads back as it was."""
    assert eval(text(value)) == value


def test_every_argument_is_written_as_a_program_writes_it() -> None:
    """Numbers, dates, tuples, mappings, rows in rows, aggregates and bins compile."""
    ask = [
        ["table", ["visits"], {}],
        ["join", [{"rows": [["table", ["more"], {}]]}], {"on": {"tuple": ["a"]}}],
        ["filter", ["age > 3"], {}],
        ["group_by", ["g", {"bins": ["age", ["0", "50"]]}], {}],
        ["agg", [], {"n": {"aggregate": ["count", ""]}, "s": {"aggregate": ["sum", "x", "y > 1"]}}],
        ["more", [{"number": "1/3"}, {"date": "2026-01-02"}, {"mapping": [["a", 1]]}], {}],
    ]
    made = code("https://h/v", ask, {"epsilon": "0.5", "confidence": "0.9"}, purpose="p")
    compile(made, "copied", "exec")
    assert 'dt.sum("x").where("y > 1")' in made
    assert 'dt.bins("age", ["0", "50"])' in made
    assert 'confidence="0.9"' in made


def test_what_may_take_long_is_worked_out_where_it_holds_up_nobody(
    hospital: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls and long texts, at the price, at the stop and at the release: refused in time."""
    asked = []

    async def think(self: Thinkers, what: str, *_: Any) -> Any:
        asked.append(what)
        raise QueryError("it takes too much")

    monkeypatch.setattr(Thinkers, "think", think)
    calls = json.dumps(
        [["table", ["visits"], {}], ["ranges", ["cost"], {"epsilon": 1, "bins": 2**20}]]
    )
    long = COUNT + " WHERE " + " OR ".join(["cost > 1"] * 300)
    for given in ({"calls": calls}, {"sql": long}):
        assert "it takes too much" in part(hospital, "ann", **given)
        assert "it takes too much" in part(hospital, "ann", "/ask/stop", **given)
        form = given | {"epsilon": "0.5", "token": "t", "digest": "d"}
        headers = {"authorization": f"Bearer {hospital.keys['ann']}"}
        found = hospital.http.post("/p/visits/ask/release", data=form, headers=headers)
        assert found.status_code == 400
    assert asked == ["whole", "costs", "draft"] * 2
    assert not hospital.desk.jobs.listed("ann")

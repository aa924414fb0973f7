"""Answers: whoever may see them does, in every form, and nobody else learns that they are there."""

from __future__ import annotations

import html
import io
import json
import re
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

import dither
from dither.service.page.forms import KINDS
from service.hospital import Served, served, written
from service.loopback import OnLoopback

MEAN = "SELECT region, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY region"


def page(hospital: Served, who: str | None, path: str, method: str = "GET", **more: Any) -> Any:
    """What somebody is shown."""
    headers = {} if who is None else {"authorization": f"Bearer {hospital.keys[who]}"}
    return hospital.http.request(method, f"/p/visits{path}", headers=headers, **more)


def test_anothers_question_is_nowhere(hospital: Served) -> None:
    """Its view, its state, its files and its draft are as if it were not there."""
    job = hospital.released("ann", sql=MEAN)
    for path in ("", "/state", "/file?form=csv", "/file?form=certificate"):
        there, nothing = (
            page(hospital, "bob", f"/answers/{one}{path}") for one in (job["id"], "0" * 24)
        )
        assert there.status_code == nothing.status_code == 404
        assert there.text.replace(job["id"], "0" * 24) == nothing.text
        assert page(hospital, "olga", f"/answers/{job['id']}{path}").status_code == 200
    assert page(hospital, "bob", f"/ask?from={job['id']}").status_code == 404
    assert page(hospital, "bob", f"/answers/{job['id']}/cancel", "POST").status_code == 404
    assert job["id"] not in page(hospital, "bob", "/answers").text
    assert job["id"] in page(hospital, "olga", "/answers").text
    form = {"sql": MEAN, "epsilon": "0.5", "draft": "d"}
    assert "answered before" in page(hospital, "ann", "/ask/stop", "POST", data=form).text
    assert "answered before" not in page(hospital, "bob", "/ask/stop", "POST", data=form).text
    assert page(hospital, "aude", "/answers").status_code == 403


def test_colleagues_see_what_the_owner_shares(tmp_path: Path) -> None:
    """By the policy's audience every analyst opens the link, for nothing and without its token."""
    policy = written(tmp_path, more='[releases]\naudience = "everybody"')
    with served(policy) as hospital:
        job = hospital.released("ann", sql=MEAN)
        shown = page(hospital, "bob", f"/answers/{job['id']}")
        assert shown.status_code == 200
        assert "Every analyst of this policy" in shown.text
        assert "token=" not in shown.text
        assert "token=" in page(hospital, "ann", f"/answers/{job['id']}").text
        assert job["id"] in page(hospital, "bob", "/answers").text
        changed = page(hospital, "bob", f"/ask?from={job['id']}").text
        assert "AVG(cost)" in changed
        assert page(hospital, "bob", f"/answers/{job['id']}/cancel", "POST").status_code == 404
        assert page(hospital, None, f"/answers/{job['id']}").status_code == 303  # to the way in


def test_the_public_sees_answers_where_the_policy_is_public(tmp_path: Path) -> None:
    """Without a key: the list, an answer and its files; no question that has none, no form."""
    with served(written(tmp_path, service="public = true")) as hospital:
        job = hospital.released("ann", sql=MEAN)
        hospital.post("ann", "/releases", {"sql": "SELECT AVG(cost) FROM visits", "epsilon": "2"})
        listed = page(hospital, None, "/answers").text
        assert job["id"] in listed
        assert "cancel" not in listed
        shown = page(hospital, None, f"/answers/{job['id']}")
        assert "<table" in shown.text
        assert "token=" not in shown.text
        assert page(hospital, None, f"/answers/{job['id']}/file?form=csv").status_code == 200
        assert page(hospital, None, "/ask").status_code == 303
        assert page(hospital, None, "/ask/price", "POST", data={"sql": MEAN}).status_code != 200


def test_files_are_the_answer(hospital: Served) -> None:
    """CSV and Parquet hold what the service's own table holds; each is saved under a name."""
    job = hospital.released("ann", sql=MEAN)
    own = pl.read_parquet(
        io.BytesIO(hospital.get("ann", f"/jobs/{job['id']}/table", form="parquet").content)
    )
    found = {
        form: page(hospital, "ann", f"/answers/{job['id']}/file?form={form}")
        for form in ("csv", "parquet", "certificate")
    }
    assert pl.read_parquet(io.BytesIO(found["parquet"].content)).equals(own)
    assert pl.read_csv(io.BytesIO(found["csv"].content)).columns == own.columns
    assert found["certificate"].json() == job["answer"]["content"]["certificate"]
    for form, answer in found.items():
        assert answer.headers["content-disposition"].startswith("attachment; filename="), form
        assert answer.headers["x-content-type-options"] == "nosniff"
    for form in ("svg", "png"):
        pytest.importorskip("matplotlib")
        drawn = page(hospital, "ann", f"/answers/{job['id']}/file?form={form}").content
        assert drawn[:4] in (b"<?xm", b"\x89PNG")
    assert page(hospital, "ann", f"/answers/{job['id']}/file?form=exe").status_code == 404


def test_values_stand_beside_their_intervals(hospital: Served) -> None:
    """Each interval holds its value, and both are in the digits of the table that is released."""
    job = hospital.released("ann", sql=MEAN)
    text = page(hospital, "ann", f"/answers/{job['id']}").text
    cells = re.findall(r'class="number value">([^<]*)</td><td class="ends">([^<]*)<', text)
    assert len(cells) == 4
    for value, ends in cells:
        low, high = (float(end.replace(",", "")) for end in ends.split(" – "))
        assert low <= float(value.replace(",", "")) <= high
    assert text.count("<figure>") == 2
    assert text.count('class="whisker"') == 4


def asked_by_form(hospital: Served, kind: str, **fields: str) -> dict[str, Any]:
    """A release of what a form asks, waited for."""
    price = {"epsilon": "2"} | ({"delta": fields.pop("delta")} if "delta" in fields else {})
    ask = KINDS[kind].calls("visits", fields.pop("where", None), price, fields)
    job = hospital.post("ann", "/releases", {"ask": ask}).json()
    found: dict[str, Any] = hospital.get("ann", f"/jobs/{job['id']}", wait=60).json()
    assert found["state"] == "done", found
    return found


def test_questions_of_forms_are_listed_as_what_was_asked(tmp_path: Path) -> None:
    """In words, with their rows; and asked again by their form, as it was filled in."""
    asked = {"x": "cost", "by": "region"}
    ask = KINDS["difference"].calls("visits", "cost < 90", {"epsilon": "2"}, asked)
    with served(written(tmp_path, service="approve_above = { epsilon = 1 }")) as hospital:
        job = hospital.post("ann", "/releases", {"ask": ask}).json()
        words = "Difference of means of cost by region, south minus north, in visits"
        for path in ("/answers", f"/answers/{job['id']}"):
            text = page(hospital, "ann", path).text
            assert f"{words} where cost &lt; 90" in text
            assert "SUM(" not in text
        form = page(hospital, "ann", f"/ask/forms/difference?from={job['id']}").text
        assert "<option selected>region</option>" in form
        assert 'value="cost &lt; 90"' in form
        other = page(hospital, "bob", f"/ask/forms/difference?from={job['id']}")
        assert other.status_code == 404


@pytest.mark.slow
def test_answers_of_forms_are_shown_as_people_read_them(hospital: Served) -> None:
    """Each value by its interval, with the picture; and asked again by their form."""
    pytest.importorskip("matplotlib")
    where = "cost < 90"
    job = asked_by_form(hospital, "difference", x="cost", by="region", where=where)
    words = "Difference of means of cost by region, south minus north, in visits where cost &lt; 90"
    assert words in page(hospital, "ann", "/answers").text
    place = f"/answers/{job['id']}"
    text = page(hospital, "ann", place).text
    assert words in text
    assert "SUM(" not in text
    assert "Standard error" in text
    assert re.search(r'class="number value">[^<]+</td><td class="ends">[^<]+ – ', text)
    drawing = re.search(r"<svg[^>]*plotted.*?</svg>", text, re.S)
    assert drawing is not None
    assert "style" not in drawing[0]
    assert "#0072b2" not in drawing[0].lower()
    assert job["answer"]["content"]["certificate"]["digest"] in text
    for form in ("csv", "png", "svg", "certificate"):
        assert page(hospital, "ann", f"{place}/file?form={form}").status_code == 200
    again = re.search(r'href="/p/visits(/ask/forms/difference\?from=[^"]*)"', text)
    assert again is not None
    counts = asked_by_form(hospital, "marginals", tables="region, ill; beds", delta="1e-9")
    place = f"/answers/{counts['id']}"
    text = page(hospital, "ann", place).text
    assert "region × ill" in text
    assert text.count('class="ends"') == 12
    second = page(hospital, "ann", f"{place}/file?form=csv&table=2").text
    assert second.startswith("beds,count,count_low,count_high")
    assert page(hospital, "ann", f"{place}/file?form=csv&table=3").status_code == 404
    assert page(hospital, "ann", f"{place}/file?form=csv&table=0").status_code == 404


@pytest.mark.slow
def test_models_and_synthetic_rows_are_shown_and_saved(hospital: Served, tmp_path: Path) -> None:
    """A model with what it says of itself; of synthetic rows the first; the files are theirs."""
    model = asked_by_form(hospital, "naive_bayes", formula="ill ~ cost")
    place = f"/answers/{model['id']}"
    text = page(hospital, "ann", place).text
    assert "naive Bayes of visits: ill ~ cost" in text
    saved = page(hospital, "ann", f"{place}/file?form=model")
    assert saved.headers["content-disposition"].endswith('.json"')
    (tmp_path / "model.json").write_bytes(saved.content)
    assert "ill ~ cost" in str(dither.learn.load(tmp_path / "model.json"))
    rows = asked_by_form(hospital, "synthesis", columns="region, ill", workload="2")
    place = f"/answers/{rows['id']}"
    text = page(hospital, "ann", place).text
    assert "Synthetic rows" in text
    assert text.count("<tr>") == 21
    saved = page(hospital, "ann", f"{place}/file?form=model")
    (tmp_path / "model.json.gz").write_bytes(saved.content)
    assert "region" in str(dither.synth.load(tmp_path / "model.json.gz"))


def test_what_is_under_way_follows_itself(tmp_path: Path) -> None:
    """A question that waits asks again how it goes; one that has ended does not."""
    with served(written(tmp_path, service="approve_above = { epsilon = 1 }")) as hospital:
        job = hospital.post("ann", "/releases", {"sql": MEAN, "epsilon": "2"}).json()
        place = f"/answers/{job['id']}"
        waiting = page(hospital, "ann", place).text
        assert 'hx-trigger="every 1s"' in waiting
        assert "Nothing is spent yet" in waiting
        assert "Waiting for approval" in page(hospital, "ann", "/answers").text
        other = hospital.post("ann", "/releases", {"sql": MEAN, "epsilon": "3"}).json()["id"]
        form = {"listed": "true"}
        gone = page(hospital, "ann", f"/answers/{other}/cancel", "POST", data=form)
        assert gone.headers["hx-redirect"] == "/p/visits/answers"
        assert "taken back" in page(hospital, "ann", "/answers").text
        part = page(hospital, "ann", f"{place}/cancel", "POST").text
        assert "Nothing was spent" in part
        assert "hx-trigger" not in part
        assert "<html" not in part


def test_the_same_in_python_replays_the_answer(
    loopback: OnLoopback, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is copied runs as it stands; the answer comes back, and nothing more is spent."""
    sql = 'SELECT "group", COUNT(*) AS n\nFROM visits\nGROUP BY "group"'
    with loopback.connect("bob") as session:
        first = session.sql(sql).release(0.5)
        spent = [one.spent for one in session.balance()]
        job = session.jobs(1)[0]["id"]
        key = {"authorization": f"Bearer {loopback.keys['bob']}"}
        address = f"http://127.0.0.1:{loopback.port}/p/visits/answers/{job}"
        text = httpx.get(address, headers=key).text
        program = html.unescape(re.findall(r'<pre id="python"[^>]*>(.*?)</pre>', text, re.S)[0])
        monkeypatch.setenv("DITHER_KEY", loopback.keys["bob"])
        found: dict[str, Any] = {}
        exec(program, found)
        found["session"].close()
        assert found["release"].frame.equals(first.frame)
        assert found["release"].replayed
        assert [one.spent for one in session.balance()] == spent
    assert "group" in capsys.readouterr().out


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s.table("visits").infer(1, "1e-9").rate("age", "cost", "group"),
        lambda s: s.table("visits").synthesis(1, columns=["group"], method="independent"),
    ],
    ids=["inference", "synthesis"],
)
def test_the_same_in_python_names_no_price_twice(
    loopback: OnLoopback, monkeypatch: pytest.MonkeyPatch, ask: Any
) -> None:
    """A question with a price of its own is released without one, though a program sends it."""
    with loopback.connect("bob") as session:
        first = ask(session).release()
        job = session.jobs(1)[0]["id"]
        key = {"authorization": f"Bearer {loopback.keys['bob']}"}
        address = f"http://127.0.0.1:{loopback.port}/p/visits/answers/{job}"
        text = httpx.get(address, headers=key).text
        program = html.unescape(re.findall(r'<pre id="python"[^>]*>(.*?)</pre>', text, re.S)[0])
        monkeypatch.setenv("DITHER_KEY", loopback.keys["bob"])
        found: dict[str, Any] = {}
        exec(program, found)
        found["session"].close()
        assert found["release"].certificate.to_json() == first.certificate.to_json()


def test_an_answer_that_cannot_be_read_any_more_is_still_there(tmp_path: Path) -> None:
    """The policy has changed since: what was released is shown as the ledger has it."""
    ask = [["table", ["visits"], {}], ["infer", [], {"epsilon": "0.5"}], ["mean", ["cost"], {}]]
    policy = written(tmp_path)
    with served(policy) as hospital:
        job = hospital.post("ann", "/releases", {"ask": ask}).json()
        job = hospital.get("ann", f"/jobs/{job['id']}", wait=60).json()
        assert "Mean of cost" in page(hospital, "ann", f"/answers/{job['id']}").text
        policy.write_text(policy.read_text().replace("cost = { bounds = [0, 100] }\n", ""))
        assert hospital.desk.take_up()
        shown = page(hospital, "ann", f"/answers/{job['id']}")
        assert shown.status_code == 200
        plain = page(hospital, "ann", f"/answers/{job['id']}/file?form=json").json()
        assert plain == json.loads(json.dumps(job["answer"]["content"]))

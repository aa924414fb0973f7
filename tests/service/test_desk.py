"""One policy at a service: taken up whole or refused, paused, approved, shared and kept apart."""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dither.errors import ArgumentError, DitherError, PolicyError
from dither.policy._policy import read_policy
from dither.service._desk import Desk
from dither.service._hall import Hall
from dither.service._settings import read_settings
from dither.service.access._people import Identity
from dither.service.access._roles import Role
from dither.service.web._app import application
from ledger.clocks import ledgers_clock
from service.hospital import COUNT, SECRET, Served, served, written

ANN = Identity("ann", Role.ANALYST)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A policy's file."""
    return written(tmp_path)


def test_a_changed_policy_is_taken_up_whole(hospital: Served) -> None:
    """Its document, its digest and its limits together; a session of before asks no more."""
    before = hospital.get("ann", "/policy").json()
    text = hospital.desk.path.read_text()
    hospital.desk.path.write_text(text.replace("[0, 100]", "[0, 50]"))
    # Nothing of the new file is told before it is taken up.
    assert hospital.get("ann", "/policy").json() == before
    assert hospital.post("olga", "/policy/reload").json()["changed"] is True
    after = hospital.get("ann", "/policy").json()
    assert after["digest"] != before["digest"]
    assert after["policy"] != before["policy"]
    assert hospital.post("olga", "/policy/reload").json()["changed"] is False


def test_a_policy_that_comes_by_another_link_is_taken_up(tmp_path: Path) -> None:
    """Tools that hand out files lay a new folder beside, and turn a link to it."""
    whole = written(tmp_path, ledger=f'"{tmp_path / "visits.ledger"}"').read_text()
    whole = re.sub(r'source = "(.*)"', lambda m: f'source = "{tmp_path / m[1]}"', whole)
    for name, bound in (("1", "[0, 100]"), ("2", "[0, 500]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "visits.toml").write_text(whole.replace("[0, 100]", bound))
        os.utime(tmp_path / name / "visits.toml", (1, 1))
    current = tmp_path / "current"
    current.symlink_to("1")
    desk = Desk(current / "visits.toml")
    before = desk.session.policy.digest
    assert not desk.take_up(changed_only=True)
    current.unlink()
    with pytest.raises(PolicyError, match="no policy at"):
        desk.take_up(changed_only=True)
    assert desk.session.policy.digest == before
    current.symlink_to("2")
    assert desk.take_up(changed_only=True)
    assert desk.session.policy.digest != before
    assert desk.path == tmp_path / "2" / "visits.toml"
    desk.close()


@pytest.mark.parametrize(
    "wrong",
    ["nonsense = [", "[budget]\nepsilon = 1\n", "max_rows = 3 -> max_rows = -3", "name", "workers"],
)
def test_a_policy_that_cannot_be_opened_is_refused_whole(hospital: Served, wrong: str) -> None:
    """The one before is served on, with its document; what it was is not shown to analysts."""
    before = hospital.get("ann", "/policy").json()
    text = hospital.desk.path.read_text()
    if "->" in wrong:
        text = text.replace(*wrong.split(" -> "))
    elif wrong == "name":
        text = text.replace('name = "visits"', 'name = "stays"')
    elif wrong == "workers":
        text = text.replace('name = "visits"', 'name = "visits"\nworkers = 5')
    else:
        text = wrong
    hospital.desk.path.write_text(text)
    assert hospital.post("olga", "/policy/reload").status_code == 400
    assert hospital.get("ann", "/policy").json() == before
    assert hospital.post("ann", "/preview", {"sql": COUNT, "epsilon": 1}).status_code == 200


def test_what_is_approved_is_what_runs(tmp_path: Path) -> None:
    """By its digest; an analyst cannot approve, and another digest approves nothing."""
    file = written(tmp_path, service="approve_above = { epsilon = 0.4 }")
    with served(file) as hospital:
        job = hospital.post("ann", "/releases", {"sql": COUNT, "epsilon": "0.5"}).json()
        assert job["state"] == "waiting"
        (waits,) = hospital.get("olga", "/approvals").json()["jobs"]
        assert (waits["price"]["epsilon"], waits["digest"]) == ("1/2", job["digest"])
        other = {"approve": True, "digest": "0" * 64}
        assert hospital.post("olga", f"/approvals/{job['id']}", other).status_code == 400
        yes = {"approve": True, "digest": job["digest"]}
        assert hospital.post("ann", f"/approvals/{job['id']}", yes).status_code == 403
        assert hospital.get("ann", f"/jobs/{job['id']}").json()["state"] == "waiting"
        assert hospital.post("olga", f"/approvals/{job['id']}", yes).status_code == 200
        found = hospital.get("ann", f"/jobs/{job['id']}", wait=60).json()
        assert (found["state"], found["decided"]) == ("done", "olga")
        small = hospital.post("ann", "/price", {"sql": COUNT, "epsilon": "0.4"}).json()
        assert small["waits"] is False
        declined = hospital.post("ann", "/releases", {"sql": COUNT, "epsilon": 2}).json()
        no = {"approve": False, "digest": declined["digest"]}
        hospital.post("olga", f"/approvals/{declined['id']}", no)
        assert hospital.get("ann", f"/jobs/{declined['id']}").json()["state"] == "declined"


def test_a_paused_table_is_asked_nothing(hospital: Served) -> None:
    """With the owner's reason; what is free goes on."""
    pause = {"table": "visits", "paused": True, "reason": "a fault in the source"}
    assert hospital.post("ann", "/pauses", pause).status_code == 403
    assert hospital.post("olga", "/pauses", pause).status_code == 200
    refused = hospital.post("ann", "/releases", {"sql": COUNT, "epsilon": 1})
    assert "a fault in the source" in refused.json()["error"]["message"]
    assert hospital.post("ann", "/preview", {"sql": COUNT, "epsilon": 1}).status_code == 200
    assert hospital.post("olga", "/pauses", pause | {"table": "x"}).status_code == 400
    hospital.post("olga", "/pauses", {"table": "visits", "paused": False})
    assert hospital.post("ann", "/releases", {"sql": COUNT, "epsilon": 1}).status_code == 202


@pytest.mark.parametrize("audience", ["asker", "everybody"])
def test_answers_are_shown_to_whom_they_are_for(tmp_path: Path, audience: str) -> None:
    """To whoever asked, to all who ask where the policy says so, and to owners; not to auditors."""
    file = written(tmp_path, more=f'[releases]\naudience = "{audience}"\n')
    with served(file) as hospital:
        job = hospital.released("ann")
        seen = {
            who: [one["id"] for one in hospital.get(who, "/answers").json().get("answers", [])]
            for who in ("ann", "bob", "olga", "aude")
        }
        told = [job["id"]]
        others = told if audience == "everybody" else []
        assert seen == {"ann": told, "bob": others, "olga": told, "aude": []}
        status = hospital.get("bob", f"/answers/{job['id']}").status_code
        assert status == (200 if audience == "everybody" else 404)
        assert hospital.get(None, "/answers").status_code == 401
        published = hospital.post("bob", "/published", {"digest": job["digest"]}).json()["answers"]
        assert len(published) == len(others)
        if audience == "everybody":
            again = hospital.released("bob", reuse=True)
            assert (again["entry"], again["replayed"]) == (job["entry"], True)


def test_answers_are_public_where_the_owner_says_so(tmp_path: Path) -> None:
    """Answers alone, without a key; and nothing else is."""
    with served(written(tmp_path, service="public = true")) as hospital:
        job = hospital.released("ann")
        assert [one["id"] for one in hospital.get(None, "/answers").json()["answers"]] == [
            job["id"]
        ]
        assert (
            "certificate" in hospital.get(None, f"/answers/{job['id']}").json()["answer"]["content"]
        )
        assert hospital.get(None, f"/jobs/{job['id']}").status_code == 401
        assert hospital.get(None, "/policy").status_code == 401


def test_policies_share_nothing(tmp_path: Path) -> None:
    """Two at one service: people, keys, jobs, pauses and ledgers are each one's own."""
    (tmp_path / "two").mkdir()
    first = written(tmp_path)
    second = written(tmp_path / "two", name="stays", ledger='"stays.ledger"')
    with served([first, second]) as hospital:
        job = hospital.released("ann")
        assert hospital.call("ann", "GET", "/v1/stays/jobs").status_code == 401
        other = hospital.http.app.app.state.hall.desks["stays"]  # type: ignore[attr-defined]
        other.people.add("ann", Role.ANALYST)
        hospital.keys["ann2"] = other.people.new_key("ann").key
        assert hospital.call("ann2", "GET", "/v1/stays/jobs").json() == {"jobs": []}
        assert hospital.call("ann2", "GET", f"/v1/stays/jobs/{job['id']}").status_code == 404
        hospital.desk.jobs.pause("visits", "olga", "x")
        assert other.jobs.paused() == {}
        assert not any(b.spent.epsilon for b in other.session.balance())


def test_policies_that_would_share_are_refused(file: Path, tmp_path: Path) -> None:
    """One name twice, or one place of people and jobs for two."""
    text = file.read_text()
    twin = tmp_path / "twin.toml"
    twin.write_text(text.replace("visits.ledger", "twin.ledger"))
    shared = tmp_path / "shared.toml"
    shared.write_text(text.replace('name = "visits"', 'name = "shared"'))
    for other, words in ((twin, "one name"), (shared, "in one place")):
        desks = [Desk(file), Desk(other)]
        with pytest.raises(ArgumentError, match=words):
            application(desks)
        for one in desks:
            one.close()


@pytest.mark.parametrize("audience", ["asker", "everybody"])
def test_an_earlier_answer_will_do_for_whom_it_was_for(tmp_path: Path, audience: str) -> None:
    """Under ``reuse`` nobody gets another's answer for nothing, unless it is for everybody."""
    file = written(tmp_path, more=f'[releases]\naudience = "{audience}"\n')
    with served(file) as hospital:
        first = hospital.released("ann")
        own = hospital.released("ann", reuse=True)
        assert (own["entry"], own["replayed"]) == (first["entry"], True)
        other = hospital.released("bob", reuse=True)
        assert (other["entry"] == first["entry"]) is (audience == "everybody")
        assert hospital.released("bob", reuse=True)["entry"] == other["entry"]


def test_two_who_collude_get_what_the_data_set_gives_and_no_more(
    tmp_path: Path, ledger: str
) -> None:
    """Each within a quota; together they reach the data set's cap, exactly, and no further."""
    quotas = "[quotas]\nfirst_come = true\n" + "".join(
        f"[quotas.analysts.{name}]\nepsilon = 1\n" for name in ("ann", "bob")
    )
    with served(written(tmp_path, epsilon="1.5", ledger=ledger, more=quotas)) as hospital:
        states = []
        for who in ("ann", "bob") * 2:
            job = hospital.released(who, token=f"{who}-{len(states)}")
            states.append((who, job["state"], (job["failure"] or {}).get("kind")))
        assert states == [
            ("ann", "done", None),
            ("bob", "done", None),
            ("ann", "done", None),
            ("bob", "failed", "BudgetError"),
        ]
        # Bob has a half of his quota left, and it buys nothing any more.
        for epsilon in ("0.5", "0.001"):
            job = hospital.released("bob", epsilon=epsilon)
            assert job["failure"]["kind"] == "BudgetError"
            assert SECRET not in str(job)
        told = hospital.get("bob", "/balance").json()["balances"]
        whole = next(one for one in told if one["name"].startswith("dataset"))
        assert whole["spent"]["epsilon"] == "3/2"
        assert whole["remaining"]["epsilon"] == "0"
        # What they can put together is what the ledger charged: three answers.
        ids = [
            one["id"] for who in ("ann", "bob") for one in hospital.get(who, "/jobs").json()["jobs"]
        ]
        answers = [
            hospital.get(w, f"/jobs/{i}").json().get("answer") for w in ("ann", "bob") for i in ids
        ]
        assert sum(one is not None for one in answers) == 3


def test_a_clock_that_is_set_back_gives_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what was spent, nor what is reserved for somebody else."""
    now = datetime.now().astimezone()
    clock = ledgers_clock(monkeypatch, now)
    with served(written(tmp_path, epsilon="1")) as hospital:
        until = (now + timedelta(days=30)).date().isoformat()
        kept = hospital.post("ann", "/reservations", {"epsilon": "0.75", "until": until})
        assert kept.status_code == 201, kept.text
        clock.append(now - timedelta(days=400))
        balances = hospital.get("bob", "/balance").json()["balances"]
        assert balances[0]["remaining"]["epsilon"] == "1/4"
        found = hospital.post("bob", "/price", {"sql": COUNT, "epsilon": "0.5"}).json()
        assert found["affordable"].startswith("0"), found


def test_settings_say_what_is_wrong(tmp_path: Path) -> None:
    """The field, and never what it held; what is left out has a careful value."""
    found = read_settings(read_policy(written(tmp_path)))
    assert (found.public, found.workers, found.rate, found.approve_above) == (False, 2, 600, None)
    assert found.database == tmp_path / "visits.ledger.service"
    for line, words in {
        'name = "A B"': "service.name",
        'nmae = "x"': "nmae",
        "rate = 0": "rate",
        "body = 99999999999": "body",
        "workers = 65": "workers",
        'public = "yes"': "public",
        "timeout = { analyst = -1 }": "timeout",
        "timeout = { auditor = 1 }": "auditor",
        "approve_above = { epsilon = -1 }": "approve_above",
        'oidc = { issuer = "x", client_id = "y", client_secret = "z" }': "client_secret|issuer",
    }.items():
        file = written(tmp_path)
        text = file.read_text()
        if line.startswith("name"):
            text = text.replace('name = "visits"', line)
        else:
            text = text.replace('name = "visits"', f'name = "visits"\n{line}')
        file.write_text(text)
        with pytest.raises(PolicyError, match=words):
            read_settings(read_policy(file))


def test_schemas_with_long_names_are_not_cut_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server cuts long names off, and two ledgers would share people."""
    monkeypatch.setenv("LEDGER_DSN", "postgresql://x/y")
    found = set()
    for name in ("s" * 60, "s" * 61):
        place = f'{{ postgres = "env:LEDGER_DSN", schema = "{name}" }}'
        schema = read_settings(read_policy(written(tmp_path, ledger=place))).database.schema
        assert len(schema) <= 63
        found.add(schema)
    assert len(found) == 2


def test_a_desk_that_cannot_be_made_leaves_nothing_open(tmp_path: Path) -> None:
    """A missing source, and a database's folder that is not there."""
    with pytest.raises(DitherError):
        Desk(written(tmp_path, service='database = "no/where"'))
    (tmp_path / "visits.parquet").unlink()
    with pytest.raises(DitherError):
        Desk(tmp_path / "visits.toml")


def test_a_hall_without_policies_has_nothing(tmp_path: Path) -> None:
    """And says so as JSON."""
    from starlette.testclient import TestClient

    assert Hall([]).desks == {}
    with TestClient(application([])) as http:
        found: Any = http.get("/v1/visits/me")
        assert found.status_code == 401

"""What is not there answers as what is another's: people, policies, tables, jobs, tokens, keys.

The time it takes is no test's matter. By structure: a policy that is unknown looks a key up as
others do (`Service._served`), keys and cookies are looked up by their hash, and what is another's
is fetched in the same statement as what is not there.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from starlette.testclient import TestClient

from dither.service.access import _entry
from dither.service.access._people import People
from dither.service.collect._rates import AddressRates
from dither.service.web import _guard, _service
from dither.service.web._guard import RateLimit
from service.hospital import COUNT, Served


def same(*answers: Any) -> None:
    """Status, body and every header but the date are alike."""
    first, *others = [
        (one.status_code, one.content, {k: v for k, v in one.headers.items() if k != "date"})
        for one in answers
    ]
    assert all(one == first for one in others), answers


def test_policies_and_keys(on_each: Served) -> None:
    """An unknown policy, a wrong key, somebody else's, and none: one answer, on any route."""
    wrong = {"authorization": "Bearer dither_" + "A" * 43}
    for method, path in (("GET", "/me"), ("GET", "/jobs/1"), ("POST", "/releases")):
        same(
            *(
                on_each.call(None, method, f"/v1/{policy}{path}", headers=headers)
                for policy in ("visits", "nothing", "visits2")
                for headers in ({}, wrong)
            )
        )
        right = {"authorization": f"Bearer {on_each.keys['olga']}"}
        same(
            on_each.call(None, method, f"/v1/nothing{path}", headers=right),
            on_each.call(None, method, f"/v1/visits{path}", headers=wrong),
        )
    for body in ({"key": "dither_" + "A" * 43}, {"key": "x"}, {}, {"key": 1}, {"other": 1}):
        same(
            on_each.call(None, "POST", "/v1/visits/sign-in", body),
            on_each.call(None, "POST", "/v1/nothing/sign-in", body),
        )


def test_questions_of_others(on_each: Served) -> None:
    """A question that another asked is as one that nobody did, for every way to it."""
    job = on_each.post("ann", "/releases", {"sql": COUNT, "epsilon": 1}).json()["id"]
    for method, path in (
        ("GET", "/jobs/{}"),
        ("GET", "/jobs/{}/events"),
        ("GET", "/jobs/{}/table"),
        ("DELETE", "/jobs/{}"),
        ("GET", "/answers/{}"),
    ):
        answers = [
            on_each.call("bob", method, path.format(one)) for one in (job, "0" * 24, "x", job[:-1])
        ]
        same(*answers)
        assert answers[0].status_code == 404
    assert on_each.get("bob", "/jobs", all="true").json() == {"jobs": []}
    assert on_each.get("bob", "/answers").json() == {"answers": []}
    digest = on_each.get("ann", f"/jobs/{job}").json()["digest"]
    assert on_each.post("bob", "/published", {"digest": digest}).json() == {"answers": []}


def test_tokens_of_others(on_each: Served) -> None:
    """A token that another used is free for everybody else: their own question, and a charge."""
    first = on_each.released("ann", token="weekly")
    again = on_each.released("ann", token="weekly")
    others = on_each.released("bob", token="weekly")
    assert again["id"] == first["id"]
    assert others["state"] == "done"
    assert others["entry"] not in (None, first["entry"])
    assert others["replayed"] is False


def test_tokens_that_were_used_where_the_policy_is(on_each: Served) -> None:
    """Neither those that the owner used in a program of their own, nor the ledger's own names.

    Where all are charged to the same accounts, a token that stands in the ledger as it is was once
    taken for that of whoever asked; so whoever guessed it had the answer free of charge.
    """
    session = on_each.desk.session
    mine = (
        session.sql(COUNT).release("0.5", token="weekly").certificate.to_dict()["ledger"]["entry"]
    )
    inside = session.asked_by("ann")._opened
    inner = inside._own(inside.promises[0], "secret")
    anns = on_each.released("ann", token="secret")
    for token, entry in (("weekly", mine), (inner, anns["entry"])):
        found = on_each.released("bob", token=token)
        assert (found["state"], found["replayed"]) == ("done", False)
        assert found["entry"] != entry


def test_tables_and_people(on_each: Served) -> None:
    """What a policy keeps private stands in no answer to an analyst: who else asks, and places."""
    told = on_each.get("ann", "/policy").text
    for hidden in ("olga", "aude", "visits.parquet", "visits.ledger", "LEDGER_DSN", "person disab"):
        assert hidden not in told
    found = on_each.post("ann", "/explain", {"sql": "SELECT COUNT(*) AS n FROM x", "epsilon": 1})
    assert "olga" not in found.text
    assert "/tmp" not in on_each.http.get("/openapi.json").text


def test_what_is_unknown_takes_the_same_steps(on_each: Served, monkeypatch: Any) -> None:
    """A key is looked up where the policy is unknown, too, and by its hash alone."""
    seen: list[str] = []
    found = People.by_key

    def counted(self: People, key: str) -> Any:
        seen.append(key)
        return found(self, key)

    monkeypatch.setattr(People, "by_key", counted)
    key = "dither_" + "B" * 43
    for policy in ("visits", "nothing"):
        seen.clear()
        on_each.call(None, "GET", f"/v1/{policy}/me", headers={"authorization": f"Bearer {key}"})
        on_each.call(None, "POST", f"/v1/{policy}/sign-in", {"key": key})
        assert seen == [key, key], policy
    # No key is compared with another one byte by byte, and no page's secret either.
    assert "keys.c.hash == hashed_key(key)" in inspect.getsource(People)
    assert "compare_digest" in inspect.getsource(_entry.proves_its_page)


def test_nobody_tries_keys_for_long(hospital: Served) -> None:
    """After so many wrong ones an address waits; whoever has a key does not wait for it."""
    tries = _service.ANONYMOUS_RATE + 3
    answers = [hospital.get("dither_" + "C" * 43, "/me") for _ in range(tries)]
    assert answers[0].status_code == 401
    assert answers[-1].status_code == 429
    assert answers[-1].json()["error"]["kind"] == "TooMany"
    assert hospital.get("ann", "/me").status_code == 200


def test_addresses_of_one_connection_are_one_caller(
    hospital: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of IPv6 somebody has 2**64 addresses, each of which would have its own tries."""
    seen: list[str] = []
    monkeypatch.setattr(RateLimit, "admits", lambda _, who: bool(seen.append(who)) or True)
    app = hospital.http.app
    for host in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "::ffff:192.0.2.7", "192.0.2.7"):
        TestClient(app, client=(host, 1)).get("/v1/visits/me")
    assert seen == ["2001:db8::/64", "2001:db8::/64", "2001:db8:0:1::/64", "192.0.2.7", "192.0.2.7"]
    rates = AddressRates(2, lambda: 0.0)
    assert [rates.admits(f"2001:db8::{i}") for i in range(3)] == [True, True, False]


def test_a_crowd_is_forgotten_and_not_looked_through_at_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is kept of callers grows with those of a minute alone, and a call costs the same."""
    now = [0.0]
    monkeypatch.setattr(_guard, "ROOM", 10)
    monkeypatch.setattr(_guard.time, "monotonic", lambda: now[0])
    rates, kept = RateLimit(1), []
    for i in range(100):
        before = rates._left
        assert rates.admits(str(i))
        kept.append(rates._left is before)
    assert kept.count(False) < 6
    assert not rates.admits("99")
    now[0] = 61.0
    for i in range(100, 300):
        rates.admits(str(i))
    assert "0" not in rates._left


def test_a_person_asks_so_often_and_no_more() -> None:
    """By person, whichever key or session they come with; others are not held up."""
    rates = RateLimit(3)
    assert [rates.admits("ann") for _ in range(5)] == [True, True, True, False, False]
    assert rates.admits("bob")

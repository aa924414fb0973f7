"""Who may call what, held for every route: the routes are those of the service's own table."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dither.service._endpoints import Endpoint, every
from dither.service.access._entry import cookie_name
from dither.service.access._people import Identity
from dither.service.access._roles import Role
from dither.service.web import _service
from dither.service.web._app import ENDPOINTS
from service.hospital import PEOPLE, Served, served, written

REFUSED = {
    "error": {"kind": "Unauthorized", "message": "no such policy, or no key to it that holds"}
}


@pytest.fixture
def house(tmp_path: Path, ledger: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A service that lets anybody try as often as they like, beside one of another policy."""
    monkeypatch.setattr(_service, "ANONYMOUS_RATE", 10**6)
    (tmp_path / "other").mkdir()
    other = ledger.replace("visits.ledger", "other.ledger").replace('"ledger', '"other')
    policies = [
        written(tmp_path, ledger=ledger, service="rate = 1000000"),
        written(tmp_path / "other", name="other", ledger=other),
    ]
    with served(policies) as found:
        yield found


def address(endpoint: Endpoint) -> str:
    """An endpoint's path, for things that are not there."""
    return re.sub(r"{\w+(:\w+)?}", "nobody", endpoint.path)


def called(house: Served, endpoint: Endpoint, key: str | None = None, **more: Any) -> Any:
    """The answer of an endpoint to a body that asks for nothing."""
    if endpoint.method == "POST":
        more.setdefault("body", {})
    return house.call(key, endpoint.method, address(endpoint), **more)


def test_a_role_gets_what_is_for_it_and_is_refused_all_else(house: Served) -> None:
    """Every role on every route: 403 exactly where the route does not name the role."""
    for name, role in PEOPLE.items():
        for endpoint in ENDPOINTS:
            found = called(house, endpoint, name)
            allowed = role in endpoint.roles
            assert (found.status_code == 403) is not allowed, (name, endpoint)
            assert found.status_code != 401, (name, endpoint)


def test_nobody_gets_nothing_but_the_way_in(house: Served) -> None:
    """Without a key every route but those to sign in says what it says of an unknown policy."""
    for endpoint in ENDPOINTS:
        found = called(house, endpoint)
        if endpoint.open:
            assert found.status_code != 403, endpoint
        else:
            assert (found.status_code, found.json()) == (401, REFUSED), endpoint


def test_keys_that_do_not_hold_open_nothing(house: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong, expired, revoked, disabled, and another policy's keys: one answer, on every route."""
    people = house.desk.people
    people.add("eve", Role.OWNER)
    revoked = people.new_key("eve", 1)
    people.revoke(revoked.id)
    before = time.time() - 10 * 86_400
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: before)
        expired = people.new_key("eve", 1)
    people.add("dora", Role.OWNER)
    disabled = people.new_key("dora", 1)
    people.disable("dora")
    other = house.http.app.app.state.hall.desks["other"].people  # type: ignore[attr-defined]
    other.add("olga", Role.OWNER)
    keys = {
        "of another policy": other.new_key("olga", 1).key,
        "revoked": revoked.key,
        "expired": expired.key,
        "disabled": disabled.key,
        "wrong": "dither_" + "A" * 43,
        "malformed": "dither_" + "A" * 44,
        "empty": "",
        "spaced": f"x {house.keys['olga']}",
    }
    for what, key in keys.items():
        for endpoint in ENDPOINTS:
            found = called(house, endpoint, headers={"authorization": f"Bearer {key}"})
            assert (found.status_code, found.json()) == (401, REFUSED), (what, endpoint)
    basic = {"authorization": f"Basic {house.keys['olga']}"}
    assert all(called(house, one, headers=basic).status_code == 401 for one in ENDPOINTS)


def test_a_cookie_alone_changes_nothing(house: Served) -> None:
    """A stolen or borrowed cookie: no change without the text that only the page has."""
    signed = house.desk.people.sign_in(Identity("olga", Role.OWNER))
    cookie = {cookie_name("visits", False): signed.cookie}
    for endpoint in ENDPOINTS:
        for headers in (
            {},
            {"x-csrf-token": "A" * 43},
            {"x-csrf-token": signed.csrf, "sec-fetch-site": "cross-site"},
            {"x-csrf-token": signed.csrf, "sec-fetch-site": "same-site"},
        ):
            cookies = "; ".join(f"{k}={v}" for k, v in cookie.items())
            found = called(house, endpoint, headers=headers | {"cookie": cookies})
            assert (found.status_code == 403) is (endpoint.method != "GET"), (endpoint, headers)
    whole = {"x-csrf-token": signed.csrf, "cookie": f"dither_visits={signed.cookie}"}
    assert house.call(None, "POST", "/policy/reload", {}, headers=whole).status_code == 200
    # Another session's text does not go with it.
    other = house.desk.people.sign_in(Identity("olga", Role.OWNER))
    mixed = whole | {"x-csrf-token": other.csrf}
    assert house.call(None, "POST", "/policy/reload", {}, headers=mixed).status_code == 403


def test_a_session_of_another_policy_or_that_ended_opens_nothing(house: Served) -> None:
    """Cookies are looked up where they are of; signing out, and a new role, end them."""
    other = house.http.app.app.state.hall.desks["other"].people  # type: ignore[attr-defined]
    other.add("olga", Role.OWNER)
    theirs = other.sign_in(Identity("olga", Role.OWNER))
    left = house.desk.people.sign_in(Identity("olga", Role.OWNER))
    house.desk.people.sign_out(left.cookie)
    moved = house.desk.people.sign_in(Identity("bob", Role.ANALYST))
    house.desk.people.add("bob", Role.AUDITOR)
    for one in (theirs, left, moved):
        for endpoint in ENDPOINTS:
            if not endpoint.open:
                headers = {"cookie": f"dither_visits={one.cookie}", "x-csrf-token": one.csrf}
                found = called(house, endpoint, headers=headers)
                assert (found.status_code, found.json()) == (401, REFUSED), endpoint


def test_a_session_is_of_a_role_as_it_is_now(house: Served) -> None:
    """No session of an earlier role or purpose is given to somebody: each call has its own."""
    desk = house.desk
    asked = [desk.session_of(Identity("olga", role)) for role in (Role.OWNER, Role.ANALYST) * 2]
    assert len(set(map(id, asked))) == 4
    assert {one._opened.asker for one in asked} == {"olga"}


def test_a_route_without_a_rule_cannot_be_made() -> None:
    """Deny by default: what nobody may call is a mistake, and what is called alike, too."""
    with pytest.raises(ValueError, match="say who may call it"):
        Endpoint("GET", "/loot", frozenset(), lambda _: {}, "Everything.")
    with pytest.raises(ValueError, match="called alike"):
        every([ENDPOINTS, ENDPOINTS[:1]])

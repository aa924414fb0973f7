"""Who may see and do what on the page, held for every view of the page's own table."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("jinja2")

from dither.service._endpoints import Endpoint
from dither.service.access._entry import cookie_name
from dither.service.access._people import Identity
from dither.service.access._roles import Role
from dither.service.page import _shown
from dither.service.page._pages import VIEWS
from dither.service.web import _service
from service.hospital import PEOPLE, SECRET, Served


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that lets anybody try as often as they like."""
    monkeypatch.setattr(_service.RateLimit, "admits", lambda self, who: True)


def called(house: Served, view: Endpoint, policy: str = "visits", **headers: str) -> Any:
    """The answer of a view to nothing in particular."""
    address = f"/p/{policy}" + re.sub(r"{\w+(:\w+)?}", "nobody", view.path)
    return house.http.request(view.method, address, headers=headers, follow_redirects=False)


def test_each_role_sees_what_is_for_it_and_is_refused_all_else(hospital: Served) -> None:
    """Every role at every view: 403 exactly where the view does not name the role."""
    for name, role in PEOPLE.items():
        for view in VIEWS:
            found = called(hospital, view, authorization=f"Bearer {hospital.keys[name]}")
            assert (found.status_code == 403) is (role not in view.roles), (name, view)
            assert found.status_code < 500, (name, view)
            assert SECRET not in found.text


def test_nobody_sees_anything_but_the_way_in_and_whether_a_policy_is_there(
    hospital: Served,
) -> None:
    """Without a session, or with one that ended, all views lead to the way in.

    They do so in the same words where there is no such policy.
    """
    ended = hospital.desk.people.sign_in(Identity("olga", Role.OWNER))
    hospital.desk.people.sign_out(ended.cookie)
    for cookie in ("", f"dither_visits={ended.cookie}"):
        for view in VIEWS:
            found = called(hospital, view, cookie=cookie)
            there, not_there = found, called(hospital, view, "nowhere", cookie=cookie)
            assert there.status_code == not_there.status_code, view
            assert there.text.replace("visits", "nowhere") == not_there.text, view
            place = there.headers.get("location", "").replace("visits", "nowhere")
            assert place == not_there.headers.get("location", ""), view
            if not view.open:
                assert found.status_code == (303 if view.method == "GET" else 401), view


def test_a_cookie_alone_changes_nothing_on_the_page(hospital: Served) -> None:
    """A form of another page, with the browser's cookie, is refused."""
    signed = hospital.desk.people.sign_in(Identity("olga", Role.OWNER))
    cookie = f"{cookie_name('visits', False)}={signed.cookie}"
    for view in VIEWS:
        if view.method == "GET" or view.open or Role.OWNER not in view.roles:
            continue
        for more in (
            {},
            {"x-csrf-token": "A" * 43},
            {"x-csrf-token": signed.csrf, "sec-fetch-site": "cross-site"},
        ):
            assert called(hospital, view, cookie=cookie, **more).status_code == 403, view


def test_another_site_cannot_sign_somebody_in(hospital: Served) -> None:
    """A form elsewhere that signs a visitor in as the attacker is refused, and sets no cookie."""
    found = hospital.http.post(
        "/p/visits/sign-in",
        data={"key": hospital.keys["ann"]},
        headers={"sec-fetch-site": "cross-site"},
        follow_redirects=False,
    )
    assert found.status_code == 400
    assert "set-cookie" not in found.headers


@pytest.mark.parametrize(
    "then",
    [
        "https://elsewhere.example/",
        "//elsewhere.example/p/visits/",
        "/p/visits/../../elsewhere",
        "/p/visits/%2e%2e/%2e%2e/elsewhere",
        "/p/visits\\elsewhere",
        "/p/other/ask",
        "javascript:alert(1)",
        "/p/visits/\r\nset-cookie: a=b",
    ],
)
def test_signing_in_leads_nowhere_else(hospital: Served, then: str) -> None:
    """Whatever an address says, whoever signs in arrives at this policy's page."""
    found = hospital.http.post(
        "/p/visits/sign-in",
        data={"key": hospital.keys["ann"], "then": then},
        follow_redirects=False,
    )
    assert (found.status_code, found.headers["location"]) == (303, "/p/visits/")


def test_what_others_write_stays_text(hospital: Served) -> None:
    """A policy's name in an address, and a query, are shown as what they are."""
    script = "<script>alert(1)</script>"
    found = hospital.http.get(f"/p/{script}/sign-in", params={"then": f'"{script}'})
    assert script not in found.text


def test_bodies_that_are_no_form_are_refused(hospital: Served) -> None:
    """Broken encodings, other types, many fields: 400 and calm words."""
    for content, kind in (
        (b"\xff\xfe=%ff", "application/x-www-form-urlencoded"),
        (b"key=a", "multipart/form-data; boundary=x"),
        (b"a=1&" * 2000, "application/x-www-form-urlencoded"),
        (b"key=%00", "application/x-www-form-urlencoded"),
        (b"nothing=known", "application/x-www-form-urlencoded"),
    ):
        found = hospital.http.post(
            "/p/visits/sign-in", content=content, headers={"content-type": kind}
        )
        assert found.status_code == 400, content
        assert "This was refused" in found.text


def test_what_views_load_is_kept_for_ever_and_nothing_else_is(hospital: Served) -> None:
    """Files have their hash in the address; views are not kept anywhere."""
    text = hospital.http.get("/p/visits/sign-in").text
    address = re.search(r"/static/style\.css\?v=\w+", text)
    assert address is not None
    found = hospital.http.get(address[0])
    assert "immutable" in found.headers["cache-control"]
    assert found.headers["content-encoding"] == "gzip"
    for wrong in (
        "/static/style.css",
        "/static/../_pages.py",
        "/static/nothing.css",
        "/static/%2e%2e",
    ):
        assert "immutable" not in hospital.http.get(wrong).headers.get("cache-control", "")
    assert hospital.http.get("/p/visits/sign-in").headers["cache-control"] == "no-store"


def test_what_the_first_visitor_needs_is_compiled_before_they_come() -> None:
    """Each template that is named is there, and what each is made of with it."""
    _shown._environment.cache_clear()
    _shown.made_ready()
    held = {name for _, name in _shown._environment().cache}
    assert held == set(_shown.FIRST)
    texts = [(_shown.TEMPLATES / name).read_text() for name in held]
    wanted = {n for text in texts for n in re.findall(r'{% (?:extends|include) "([^"]+)"', text)}
    assert wanted <= held

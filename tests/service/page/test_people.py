"""People, keys, pauses and the log of decisions, in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from service.loopback import OnLoopback, serving, write
from service.page.visitor import Visitor

Picture = Callable[[Page, str], Path]


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[OnLoopback]:
    """A service of its own: its people come and go."""
    with serving(write(tmp_path)) as found:
        yield found


def test_somebody_is_added_shown_a_key_once_disabled_and_added_again(
    visit: Callable[..., Visitor], clinic: OnLoopback, picture: Picture
) -> None:
    """The key opens the policy until it is taken; what was decided is in the log."""
    page = visit("olive", service=clinic).go("people")
    page.fill("#name", "zoe")
    page.select_option("#role", "auditor")
    page.fill("#days", "7")
    page.click("#add-person button.main")
    key = page.locator("#new-key").inner_text()
    assert clinic.desk.people.by_key(key)[0].name == "zoe"  # type: ignore[index]
    expect(page.locator("#people-told")).to_contain_text("shown this once")
    picture(page, "people-key")
    row = page.locator("tr", has=page.locator("b", has_text="zoe"))
    expect(row).to_contain_text("auditor")
    page.reload()
    assert key not in page.content()

    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Disable").click()
    expect(page.locator("#people-told")).to_contain_text("zoe is disabled")
    assert clinic.desk.people.by_key(key) is None
    page.get_by_role("button", name="Undo: add again").click()
    again = page.locator("#new-key").inner_text()
    assert again != key
    assert clinic.desk.people.by_key(again)[0].role.value == "auditor"  # type: ignore[index]

    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Revoke").first.click()
    expect(page.locator("#people-told")).to_contain_text("is revoked")
    assert clinic.desk.people.by_key(again) is None
    expect(row).to_contain_text("no key that holds")
    row.get_by_role("button", name="New key").click()
    expect(page.locator("#new-key")).to_be_visible()
    decided = page.locator(".log-list tbody tr").all_inner_texts()
    assert [line.split("\t")[2] for line in decided[:3]] == ["key made", "key revoked", "key made"]
    assert all("olive" in line for line in decided[:3])


def test_what_cannot_be_is_refused_and_says_why(
    visit: Callable[..., Visitor], clinic: OnLoopback
) -> None:
    """A name that is none, one's own role, and a question that is declined; nothing is changed."""
    visitor = visit("olive", service=clinic)
    visitor.expected.add("400")
    page = visitor.go("people")
    before = clinic.desk.people.listed()
    for name, why in (("<b>x</b>", "must begin with a letter"), ("olive", "your own role")):
        page.fill("#name", name)
        page.click("#add-person button.main")
        expect(page.locator("#people-told .refusal")).to_contain_text(why)
        assert page.input_value("#name") == name
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.locator("tr", has=page.locator("b", has_text="ann")).get_by_role(
        "button", name="Disable"
    ).click()
    assert clinic.desk.people.listed() == before


def test_a_table_is_paused_and_goes_on(visit: Callable[..., Visitor], clinic: OnLoopback) -> None:
    """With a reason, which whoever asks is told."""
    page = visit("olive", service=clinic).go("people")
    form = page.locator(".pauses form", has_text="visits")
    form.locator("input.reason").fill("a fault in <b>March</b>")
    form.get_by_role("button", name="Pause").click()
    expect(form).to_contain_text("a fault in <b>March</b>")
    assert clinic.desk.jobs.paused() == {"visits": "a fault in <b>March</b>"}
    form.get_by_role("button", name="Go on").click()
    expect(page.locator("#people-told")).to_contain_text("can be asked again")
    assert clinic.desk.jobs.paused() == {}


def test_an_owner_alone_is_told_what_to_do(
    visit: Callable[..., Visitor], clinic: OnLoopback, picture: Picture
) -> None:
    """Until somebody else has a key; in Chinese, at a telephone, axe finds nothing serious."""
    for name in ("ann", "bob", "eve", "audrey"):
        clinic.desk.people.disable(name)
    page = visit("olive", service=clinic).go("people")
    expect(page.locator("#nobody")).to_contain_text("Add an analyst below")
    picture(page, "people")
    visitor = visit("olive", width=390, theme="dark", language="zh", service=clinic)
    visitor.expected.add("inline style")  # which axe applies
    page = visitor.go("people")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    picture(page, "people-dark-zh")
    found = Axe().run(page)
    grave = [v for v in found.response["violations"] if v["impact"] in ("serious", "critical")]
    assert not grave, [(v["id"], v["nodes"][0]["html"]) for v in grave]
    page.fill("#name", "mei")
    page.click("#add-person button.main")
    expect(page.locator("#new-key")).to_be_visible()
    expect(page.locator("#nobody")).to_have_count(0)

"""What holds for every view: each role's places, both themes and languages, phones and desks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")
pytest.importorskip("axe_playwright_python", reason="the browser extra is not installed")

from axe_playwright_python.sync_playwright import Axe

from dither.service.access._people import Identity
from dither.service.page._places import places
from service.loopback import PEOPLE
from service.page.visitor import Visitor

LOOKS = [("light", 1280, "en"), ("dark", 1280, "zh"), ("light", 390, "zh"), ("dark", 390, "en")]


def serious(page: Any) -> list[str]:
    """What keeps people out, as axe finds it."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes']][:3]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(("theme", "width", "language"), LOOKS)
@pytest.mark.parametrize("who", ["olive", "ann", "audrey"])
def test_views_can_be_used_by_everybody(
    visit: Callable[..., Visitor],
    who: str,
    theme: str,
    width: int,
    language: str,
) -> None:
    """No place keeps anybody out, scrolls sideways, or shows what is not the reader's language."""
    visitor = visit(who, theme=theme, width=width, language=language)
    for place in places(Identity(who, PEOPLE[who]), "visits"):
        page = visitor.go(place["key"])
        page.wait_for_load_state("networkidle")
        where = (place["key"], who, theme, width, language)
        assert page.locator("h1").count() == 1, where
        assert page.locator("html").get_attribute("lang") == language, where
        # Half a pixel of a fraction is rounded up.
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, where
        assert not serious(page), where
        current = page.locator(".places a[aria-current=page]")
        assert current.count() == 1, where


@pytest.mark.parametrize(("theme", "width", "language"), LOOKS)
def test_forms_can_be_used_by_everybody(
    visit: Callable[..., Visitor],
    picture: Callable[..., Any],
    theme: str,
    width: int,
    language: str,
) -> None:
    """The list of them, one that is filled in, and one of many fields."""
    visitor = visit("ann", theme=theme, width=width, language=language)
    for view in ("", "/mean", "/hierarchy"):
        page = visitor.go(f"ask/forms{view}")
        if view == "/mean":
            page.select_option("#f-x", "cost")
            page.wait_for_selector("#draft pre")
        page.wait_for_load_state("networkidle")
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, view
        assert not serious(page), view
        picture(page, f"forms{view.replace('/', '-')}-{theme}-{width}-{language}")


def test_the_way_in_can_be_used_by_everybody(
    visit: Callable[..., Visitor], picture: Callable[..., Any]
) -> None:
    """It is the first thing that anybody sees."""
    for theme, width, language in LOOKS:
        page = visit(theme=theme, width=width, language=language).go("sign-in")
        assert not serious(page)
        picture(page, f"sign-in-{theme}-{width}-{language}")


def test_an_address_for_programs_leads_people_to_the_page(visit: Callable[..., Visitor]) -> None:
    """What stands in `dither.connect` may be typed into a browser."""
    visitor = visit()
    visitor.page.goto(visitor.service.address)
    assert "/p/visits/sign-in" in visitor.page.url


def test_what_is_not_there_is_said_in_the_page(visit: Callable[..., Visitor]) -> None:
    """With a way back."""
    visitor = visit("ann")
    visitor.expected.add("404")
    page = visitor.go("nowhere")
    assert page.locator("h1").inner_text() == "Nothing is here"

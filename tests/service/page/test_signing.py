"""Coming in and going out, in a browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from service.page.visitor import Visitor


@pytest.mark.parametrize("who", ["olive", "ann", "audrey"])
def test_each_role_comes_in_and_goes_out(visit: Callable[..., Visitor], who: str) -> None:
    """A key opens the places of its role; after signing out they are closed again."""
    visitor = visit(who)
    page = visitor.page
    assert page.locator(".who b").inner_text() == who
    shown = page.locator(".places a").all_inner_texts()
    assert ("People" in shown) is (who == "olive")
    assert ("Ask" in shown) is (who != "audrey")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    visitor.go("learn")
    assert "/sign-in?then=" in page.url


def test_a_wrong_key_is_refused_where_it_was_given(visit: Callable[..., Visitor]) -> None:
    """The form says so, keeps nothing of it, and leads on once the key is right."""
    visitor = visit()
    visitor.expected.add("401")
    page = visitor.go("learn")
    page.fill("#key", "dither_wrong")
    page.click("button.main")
    assert "does not open" in page.locator("#failed").inner_text()
    assert page.input_value("#key") == ""
    page.fill("#key", visitor.service.keys["ann"])
    page.click("button.main")
    page.wait_for_url("**/learn")


def test_the_palette_goes_anywhere_by_keys_alone(visit: Callable[..., Visitor]) -> None:
    """Ctrl K, some letters, Enter."""
    page = visit("ann").go("learn")
    page.keyboard.press("Control+k")
    page.keyboard.type("budg")
    page.keyboard.press("Enter")
    page.wait_for_url("**/budget")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_url("**/learn")

"""Asking in a browser: the error follows the question, a stop comes before anything is spent."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from playwright.sync_api import Page, expect

from service.loopback import OnLoopback
from service.page.visitor import Visitor

GROUPS = 'SELECT "group", COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY "group"'


def write(page: Page, sql: str) -> None:
    """Put a question into the editor, as somebody who types does."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(sql)


def priced(page: Page) -> None:
    """Wait until the part beside the question is about what stands in it."""
    expect(page.locator("#price")).to_have_attribute("aria-busy", "false")


def released(page: Page) -> None:
    """Pass the stop, and wait for the answer."""
    page.click("#release-open")
    page.click("#release-go")
    page.wait_for_url("**/answers/*")
    expect(page.locator("table.result")).to_be_visible(timeout=60_000)


def spent(loopback: OnLoopback, who: str) -> float:
    """What an analyst's quota has spent."""
    with loopback.connect(who) as session:
        found = next(one for one in session.balance() if one.name.startswith("analyst"))
        return float(found.spent.epsilon or 0)


def test_a_question_is_asked_and_answered(
    visit: Callable[..., Visitor], loopback: OnLoopback
) -> None:
    """From the box to the table: the curve follows, a click twice on the stop is charged once."""
    visitor = visit("bob")
    page = visitor.go("ask")
    priced(page)
    write(page, GROUPS)
    expect(page.locator(".widths tr")).to_have_count(2)
    first = page.locator(".widths td").first.inner_text()
    page.fill("#epsilon", "2")
    expect(page.locator(".costs dd").first).to_contain_text("ε = 2")
    assert page.locator(".widths td").first.inner_text() != first
    before = spent(loopback, "bob")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#stop")).to_contain_text("does not come back")
    expect(page.locator("#stop pre")).to_have_text(GROUPS)
    assert page.locator("#stop tbody tr").count() == 2
    assert page.evaluate("document.activeElement.textContent") == "Back"
    page.dblclick("#release-go")
    # The second click may begin the way there anew, of which only waiting for the place knows.
    expect(page).to_have_url(re.compile("/answers/"))
    expect(page.locator("table.result")).to_be_visible(timeout=60_000)
    assert spent(loopback, "bob") == pytest.approx(before + 2)
    assert page.locator("table.result tbody tr").count() == 2
    assert page.locator(".panels figure").count() == 2
    for form in ("csv", "parquet", "svg", "certificate"):
        with page.expect_download() as download:
            page.click(f"a[href$='form={form}']")
        assert download.value.suggested_filename.startswith("visits-")
        assert Path(download.value.path()).stat().st_size > 50
    page.get_by_role("link", name="Ask again with a change").click()
    priced(page)
    assert page.input_value("#epsilon") == "2"
    assert page.locator(".cm-content").inner_text().replace("\n", " ").strip() == GROUPS


def test_errors_are_marked_at_their_place(visit: Callable[..., Visitor]) -> None:
    """A name that is not known is underlined, and nothing can be released until it is mended."""
    page = visit("ann").go("ask")
    priced(page)
    write(page, "SELECT AVG(costs) FROM visits")
    expect(page.locator(".cm-lintRange-error")).to_have_text("costs")
    expect(page.locator("#price .refusal")).to_contain_text("did you mean 'cost'?")
    expect(page.locator("#release-open")).to_be_disabled()
    write(page, "SELECT AVG(cost) AS m FROM visits")
    expect(page.locator("#release-open")).to_be_enabled()
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)


def test_a_column_is_put_in_as_a_word_of_its_own(visit: Callable[..., Visitor]) -> None:
    """A click sets it apart from what stands before and after, and from no bracket or space."""
    page = visit("ann").go("ask")
    priced(page)
    cost = page.locator("[data-inserts=cost]")
    for before, after, whole in (
        ("SELECT", "", "SELECT cost"),
        ("SELECT region,", "", "SELECT region, cost"),
        ("SELECT AVG(", ")", "SELECT AVG(cost)"),
        ("WHERE ", "> 5", "WHERE cost> 5"),
        ("SELECT", "FROM visits", "SELECT cost FROM visits"),
    ):
        write(page, before + after)
        for _ in after:
            page.keyboard.press("ArrowLeft")
        cost.click()
        assert page.locator(".cm-content").inner_text().strip() == whole


def test_the_builder_writes_the_same_sql(visit: Callable[..., Visitor]) -> None:
    """Clicking fills the box with a question that can be asked; names complete as one types."""
    page = visit("ann").go("ask")
    priced(page)
    page.click("#builder summary")
    page.select_option("#b-measure", "avg")
    page.select_option("#b-column", "cost")
    page.select_option("#b-group", "group")
    page.select_option("#b-where", "age")
    page.select_option("#b-sign", ">=")
    page.fill("#b-value", "40")
    page.locator("#b-value").blur()
    text = page.locator(".cm-content").inner_text().split("\n")
    assert [one for one in text if one] == [
        "SELECT group, AVG(cost) AS avg_cost",
        "FROM visits",
        "WHERE age >= 40",
        "GROUP BY group",
    ]
    expect(page.locator(".widths th")).to_contain_text("avg_cost")
    write(page, "SELECT AVG(co")
    page.keyboard.type("s")
    offered = page.locator(".cm-tooltip-autocomplete")
    expect(offered.locator("li").first).to_contain_text("cost")
    expect(offered).not_to_contain_text("COLUMNS")


@pytest.mark.slow
def test_two_browsers_share_one_quota(visit: Callable[..., Visitor]) -> None:
    """What one has spent is gone for the other, who is told what would fit, and is refused."""
    one, other = visit("eve"), visit("eve")
    first, second = one.go("ask"), other.go("ask")
    for page in (first, second):
        priced(page)
        page.fill("#epsilon", "3")
        expect(page.locator(".costs dd").first).to_contain_text("ε = 3")
    second.click("#release-open")
    expect(second.locator("#release-go")).to_be_visible()
    released(first)
    second.click("#release-go")
    second.wait_for_url("**/answers/*")
    expect(second.locator("#answer .refusal")).to_contain_text(
        "The same query fits", timeout=60_000
    )
    again = other.go("ask")
    priced(again)
    again.fill("#epsilon", "3")
    expect(again.locator("#price .warning")).to_contain_text("does not bear")


@pytest.mark.slow
def test_a_release_whose_client_is_closed_comes_back(
    visit: Callable[..., Visitor], loopback: OnLoopback
) -> None:
    """The browser closes as soon as it has asked; another one finds the answer, charged once."""
    visitor = visit("ann")
    page = visitor.go("ask")
    priced(page)
    page.fill("#epsilon", "0.25")
    expect(page.locator(".costs dd").first).to_contain_text("ε = 0.25")
    before = spent(loopback, "ann")
    page.click("#release-open")
    with page.expect_response("**/ask/release"):
        page.click("#release-go")
    page.context.close()
    later = visit("ann").go("answers")
    later.locator(".jobs .asked a").first.click()
    expect(later.locator("table.result")).to_be_visible(timeout=60_000)
    assert spent(loopback, "ann") == pytest.approx(before + 0.25)


def test_what_waits_is_said_before_and_can_be_taken_back(
    visit: Callable[..., Visitor], loopback: OnLoopback
) -> None:
    """Above the owner's limit it waits; taken back, nothing is spent."""
    page = visit("ann").go("ask")
    priced(page)
    before = spent(loopback, "ann")
    page.fill("#epsilon", "2000")
    expect(page.locator("#price .note")).to_contain_text("approves it")
    page.click("#release-open")
    expect(page.locator("#stop h2")).to_have_text("Ask the owner to approve this?")
    page.click("#release-go")
    page.wait_for_url("**/answers/*")
    expect(page.locator(".under-way")).to_contain_text("Nothing is spent yet")
    page.get_by_role("button", name="Take it back").click()
    expect(page.locator("#answer")).to_contain_text("Nothing was spent")
    # The button that was pressed is gone: whoever pressed it is at the answer's head.
    expect(page.locator("#answer-title")).to_be_focused()
    assert spent(loopback, "ann") == before


def accessible(page: Page) -> None:
    """Axe finds nothing that is serious."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    assert not [one for one in found if one["impact"] in ("serious", "critical")], found


SIZES = [(1280, "light", "en"), (390, "dark", "zh"), (390, "light", "en"), (1280, "dark", "zh")]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "theme", "language"), SIZES)
def test_it_fits_a_phone_and_both_languages(
    visit: Callable[..., Visitor],
    picture: Callable[[Page, str], Path],
    width: int,
    theme: str,
    language: str,
) -> None:
    """Nothing makes the page scroll sideways, and whoever hears or types it misses nothing."""
    visitor = visit("ann", width=width, theme=theme, language=language)
    page = visitor.go("ask")
    priced(page)
    write(page, GROUPS)
    expect(page.locator(".widths tr")).to_have_count(2)
    looks = (width, theme, language)
    name = "" if looks == SIZES[0] else f"_{theme}_{width}_{language}"
    shown = looks in SIZES[:2]
    priced(page)
    accessible(page)
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(wide)
    rows = "[...document.querySelectorAll('.top > *')].map((one) => one.getBoundingClientRect())"
    middles = page.evaluate(
        f"{rows}.filter((one) => one.height > 1).map((one) => one.y + one.height / 2)"
    )
    assert max(middles) - min(middles) < 8, middles
    if shown:
        picture(page, f"ask{name}")
    page.click("#release-open")
    expect(page.locator("#release-go")).to_be_visible()
    accessible(page)
    if looks == SIZES[0]:  # in a picture of a whole page, a phone's dialog lies over all of it
        picture(page, "ask_stop")
    page.click("#release-go")
    page.wait_for_url("**/answers/*")
    expect(page.locator("table.result")).to_be_visible(timeout=60_000)
    assert page.evaluate(wide)
    accessible(page)
    if shown:
        picture(page, f"answer{name}")
    page = visitor.go("answers")
    assert page.evaluate(wide)
    accessible(page)
    if shown:
        picture(page, f"answers{name}")


@pytest.mark.slow
def test_a_form_passes_the_same_stop(
    visit: Callable[..., Visitor], picture: Callable[[Page, str], Path]
) -> None:
    """A question of another kind is priced, stopped at, and shown as what it is."""
    visitor = visit("bob")
    page = visitor.go("ask/forms/mean?table=visits")
    page.select_option("#f-x", "cost")
    page.click("#draft #release-open")
    expect(page.locator("#stop")).to_contain_text("does not come back")
    page.keyboard.press("Escape")
    expect(page.locator("#stop")).to_be_hidden()
    page.click("#draft #release-open")
    page.click("#release-go")
    page.wait_for_url("**/answers/*")
    expect(page.locator(".asked-words")).to_have_text("Mean of cost, in visits")
    expect(page.locator("table.result .ends")).to_be_visible(timeout=60_000)
    expect(page.locator("svg.plotted")).to_be_visible()
    accessible(page)
    picture(page, "answer_form")
    page.get_by_role("link", name="Ask again with a change").click()
    expect(page.locator("#f-x")).to_have_value("cost")
    expect(page.locator("#draft .accounts")).to_be_visible()
    small = visit("bob", width=390, theme="dark", language="zh").go("answers")
    newest = small.locator(".jobs .words").first
    expect(newest).to_contain_text("Mean of cost, in visits")
    newest.locator("a").click()
    expect(small.locator("svg.plotted")).to_be_visible()
    accessible(small)
    assert small.evaluate("document.documentElement.scrollWidth") <= 390
    picture(small, "answer_form_dark_390_zh")

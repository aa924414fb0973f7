"""The budget in a browser: what is spent by whom, what is kept, how long it lasts, what waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from dither.ledger.verification._walk import KINDS
from service.loopback import OnLoopback, serving
from service.page.accounts.spent import HOSTILE, spent
from service.page.visitor import Visitor

ASKED = f"SELECT COUNT(*) AS n FROM visits WHERE \"group\" = '{HOSTILE}' AND day < '2026-02-01'"


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnLoopback]:
    """Months with budgets of their own, of which some are spent."""
    with pytest.MonkeyPatch.context() as patch:
        policy = spent(tmp_path_factory.mktemp("months"), patch)
    with serving(policy) as found:
        yield found


def waiting(service: OnLoopback, who: str = "ann", epsilon: float = 0.3) -> str:
    """A question that waits for the owner."""
    body = {"sql": ASKED, "epsilon": str(epsilon)}
    return str(service.desk.ask(_identity(service, who), body).id)


def _identity(service: OnLoopback, who: str) -> Any:
    found = service.desk.people.by_key(service.keys[who])
    assert found is not None
    return found[0]


def test_each_role_sees_what_the_api_shows_it(
    visit: Callable[..., Visitor], months: OnLoopback
) -> None:
    """Owner and auditor see everybody's charges, an analyst their own questions alone."""
    for who in ("olive", "audrey"):
        text = visit(who, service=months).go("budget").locator("main").inner_text()
        assert "ann" in text
        assert "bob" in text
        assert HOSTILE in text
    page = visit("ann", service=months).go("budget")
    text = page.locator("main").inner_text()
    assert "bob" not in text
    assert "Nothing has been spent yet" in text
    # What the data set's account had spent week by week is not for analysts.
    assert (
        page.locator(".heat svg g").count() == page.locator(".heat svg g[aria-label*=now]").count()
    )


def test_blocks_and_time_are_a_picture_and_a_table(
    visit: Callable[..., Visitor], picture: Callable[..., Any], months: OnLoopback
) -> None:
    """Each cell says its block, its time and its share; the table says the same."""
    visitor = visit("olive", service=months)
    page = visitor.go("budget")
    cells = page.locator(".heat svg g[role=img]")
    table = page.locator(".heat details table")
    page.locator(".heat summary").first.click()
    assert cells.count() == table.locator("tbody td").count() > 20
    labels = cells.evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    assert all(re.fullmatch(r".+, .+: (< )?[\d.]+ % used", one) for one in labels), labels[:3]
    # Whatever was spent stays spent: no row of shares ever falls.
    for row in table.locator("tbody tr").all():
        shares = [float(one.strip(" %<>")) for one in row.locator("td").all_inner_texts()]
        assert shares == sorted(shares)
    last = table.locator("tbody tr", has_text="all together").locator("td").last.inner_text()
    balance = next(b for b in months.desk.session.balance() if not b.quota)
    gone, caps = balance.spent + balance.reserved, balance.caps.lifetime
    share = min(gone.epsilon / caps.epsilon, gone.rho / caps.rho)
    assert float(last.strip(" %")) == pytest.approx(float(share) * 100, abs=0.1)
    assert "Reservations" in page.locator("main").inner_text()
    assert page.get_by_role("cell", name="ε 0.1").count() >= 1
    page.locator(".heat summary").first.click()
    page.evaluate("scrollTo(0, 0)")
    picture(page, "budget-months-light-1280-en")
    picture(page, "budget", whole=False)
    phone = visit("olive", width=390, theme="dark", language="zh", service=months).go("budget")
    assert phone.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    picture(phone, "budget-months-dark-390-zh")


def test_every_kind_of_entry_has_its_word(
    visit: Callable[..., Visitor], months: OnLoopback
) -> None:
    """Those that there are here, reservations among them, and all others in the filter."""
    page = visit("audrey", service=months).go("ledger")
    kinds = {one.kind for one in months.desk.session.ledger.entries()}
    assert len(set(page.locator(".line .kind").all_inner_texts())) == len(kinds)
    assert "reservation" in page.locator(".line .kind").all_inner_texts()
    values = page.locator("#kind option").evaluate_all("all => all.map((one) => one.value)")
    assert set(values) == {"", *KINDS}


def test_a_forecast_says_a_day_and_that_it_is_one(
    visit: Callable[..., Visitor], months: OnLoopback
) -> None:
    """At the rate of the days that are chosen; and that it promises nothing."""
    page = visit("olive", service=months).go("budget")
    ahead = page.locator("#ahead")
    assert re.search(
        r"The whole data set.* would be spent on \d+ \w+ \d{4} at this pace",
        ahead.inner_text(),
        re.S,
    )
    assert "promises nothing" in ahead.inner_text()
    with page.expect_response("**/budget/ahead?days=90*"):
        page.select_option("#days", "90")
    page.locator("#ahead", has_text="over 64 days").wait_for()


def test_the_owner_approves_what_was_shown_and_nothing_else(
    visit: Callable[..., Visitor], picture: Callable[..., Any], months: OnLoopback
) -> None:
    """A dialog stands before the charge; what is approved runs; another digest is refused."""
    job = waiting(months)
    other = waiting(months, "bob", 0.26)
    visitor = visit("olive", service=months)
    page = visitor.go("budget")
    assert page.locator(".waits").count() == 2
    badge = page.locator(".places .badge")
    assert badge.inner_text() == "2"
    mine = page.locator(".waits", has_text="ann")
    assert "ε 0.3" in mine.inner_text()
    assert HOSTILE in mine.inner_text()
    assert page.locator("img").count() == 0
    mine.get_by_role("button", name="Approve…").click()
    dialog = page.locator("dialog[open]")
    assert "ε 0.3 is spent" in dialog.inner_text()
    picture(page, "budget-approve-light-1280-en")
    page.keyboard.press("Escape")
    assert months.desk.jobs.get(job).state.value == "waiting"
    mine.get_by_role("button", name="Approve…").click()
    dialog.get_by_role("button", name=re.compile("Approve, and spend")).click()
    page.locator(".fine", has_text="ann").wait_for()
    assert badge.inner_text() == "1"
    assert months.desk.jobs.get(job).state.value in ("queued", "running", "done")
    # Another digest than the one that waits is refused, and the question waits on.
    visitor.expected.add("400")
    bobs = page.locator(".waits", has_text="bob")
    bobs.locator("form input[name=digest]").first.evaluate(
        "(one) => { one.value = 'ab'.repeat(32); }"
    )
    bobs.get_by_role("button", name="Decline").click()
    page.locator(".refusal", has_text="another question").wait_for()
    assert months.desk.jobs.get(other).state.value == "waiting"
    page = visitor.go("budget")
    page.locator(".waits", has_text="bob").get_by_role("button", name="Decline").click()
    page.locator(".note", has_text="bob").wait_for()
    assert months.desk.jobs.get(other).state.value == "declined"
    assert page.locator(".waits").count() == 0
    assert badge.count() == 0


def test_an_analyst_sees_their_own_that_waits_and_cannot_decide(
    visit: Callable[..., Visitor], months: OnLoopback
) -> None:
    """The buttons are the owner's, and so is the address behind them."""
    job = waiting(months)
    page = visit("ann", service=months).go("budget")
    assert page.locator(".waits").count() == 1
    assert page.locator(".waits button").count() == 0
    assert visit("bob", service=months).go("budget").locator(".waits").count() == 0
    months.desk.jobs.cancel(job)

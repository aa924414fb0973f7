"""The ledger in a browser: entries in parts, one in full, verification, a hash to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from dither.ledger import Ledger
from dither.privacy import Promise, pure
from dither.privacy.accounts._budget import BudgetFilter
from service.hospital import COUNT, Served
from service.loopback import OnLoopback, serving, write
from service.page.accounts.spent import HOSTILE, long_ledger
from service.page.visitor import Visitor

ENTRIES = 230


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnLoopback]:
    """A service whose ledger has some parts."""
    folder = tmp_path_factory.mktemp("long")
    policy = write(folder)
    long_ledger(folder / "visits.ledger", ENTRIES)
    with serving(policy) as found:
        yield found


def test_entries_come_in_parts_as_they_scroll_into_sight(
    visit: Callable[..., Visitor], picture: Callable[..., Any], long: OnLoopback
) -> None:
    """Newest first, a hundred at a time, each once and in order, down to the first."""
    page = visit("audrey", service=long).go("ledger")
    numbers = page.locator(".line .open")
    last = long.desk.session.ledger.entries(limit=1)[0].number
    assert numbers.first.inner_text() == str(last)
    for _ in range(40):
        if page.locator(".more").count() == 0:
            break
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(50)
    found = [int(one) for one in numbers.all_text_contents()]
    assert found == list(range(last, -1, -1))


def test_entries_are_found_by_account_and_kind(
    visit: Callable[..., Visitor], long: OnLoopback
) -> None:
    """Choosing is enough; what is not there says what to do."""
    page = visit("olive", service=long).go("ledger")
    with page.expect_response("**/ledger/part?*kind=account*"):
        page.select_option("#kind", "account")
    page.locator(".line", has_text="dataset:patient").first.wait_for()
    assert page.locator(".line").count() == 2
    with page.expect_response("**/ledger/part?*"):
        page.select_option("#kind", "upgrade")
    page.locator(".entries .empty").wait_for()
    with page.expect_response("**/ledger/part?*kind=charge*"):
        page.select_option("#kind", "charge")
    with page.expect_response("**/ledger/part?*analyst%3Aann*"):
        page.select_option("#account", "analyst:ann:patient")
    page.locator(".line .charge").first.wait_for()
    assert set(page.locator(".line .kind").all_inner_texts()) == {"charge"}
    # The next part keeps to what was chosen.
    address = page.locator(".more").get_attribute("hx-get")
    assert "kind=charge" in address
    assert "account=analyst" in address


def test_an_entry_opens_in_full_by_keys_and_what_others_wrote_stays_text(
    visit: Callable[..., Visitor], picture: Callable[..., Any], tmp_path: Path
) -> None:
    """With its question, its accounts and its hash; never its answer."""
    policy = write(tmp_path)
    with Ledger.open(tmp_path / "visits.ledger") as book:
        promise = Promise(f"patient {HOSTILE}")
        charged = book.charge(
            {f"dataset:{HOSTILE}": BudgetFilter(Fraction(2))},
            pure(Fraction(1, 3)).promising(promise),
            token="a",
            request="ab" * 16,
            note={"query": f"SELECT '{HOSTILE}' {{{{ 7 * 7 }}}}", HOSTILE: [HOSTILE, "‮"]},
        )
        book.store_answer(charged.entry, '{"secret": "Quixotic"}')
    with serving(policy) as service:
        visitor = visit("audrey", service=service)
        page = visitor.go("ledger")
        assert HOSTILE in page.locator(".line .about").nth(1).inner_text()
        picture(page, "ledger-light-1280-en")
        page.locator(".line .open").nth(1).focus()
        page.keyboard.press("Enter")
        page.locator("#entry h2").wait_for()
        text = page.locator("#entry").inner_text()
        assert HOSTILE in text
        assert "{{ 7 * 7 }}" in text
        assert service.desk.session.ledger.entry(charged.entry).hash in text
        assert page.locator("img").count() == 0
        picture(page, "ledger-entry-light-1280-en")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.textContent") == str(charged.entry)
        page.locator(".line .open").first.click()
        page.locator("#entry h2", has_text="answer").wait_for()
        assert "Quixotic" not in page.content()


def test_the_chain_is_verified_and_a_hash_compared(
    visit: Callable[..., Visitor], picture: Callable[..., Any], long: OnLoopback
) -> None:
    """In words, where it was asked."""
    page = visit("audrey", theme="dark", language="zh", width=390, service=long).go("ledger")
    page.click("#verify")
    page.locator("#verified .fine", has_text="链完整").wait_for()
    assert "验证通过" in page.locator("#verified").inner_text()
    entry = long.desk.session.ledger.entry(7)
    page.locator("details summary").click()
    page.fill("#number", "7")
    page.fill("#hash", entry.hash[:16].upper())
    page.keyboard.press("Enter")
    page.locator("#compared .fine").wait_for()
    page.fill("#number", "8")
    page.keyboard.press("Enter")
    page.locator("#compared .refusal").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    with page.expect_response("**/ledger/part?*kind=account*"):
        page.select_option("#kind", "account")
    page.locator(".line", has_text="dataset:patient").first.wait_for()
    picture(page, "ledger-dark-390-zh")


def test_parts_are_refused_calmly(hospital: Served) -> None:
    """Other kinds, numbers that are none, entries that are not there; nothing for analysts."""
    hospital.released("ann", sql=COUNT)

    def got(who: str, path: str) -> Any:
        headers = {"authorization": f"Bearer {hospital.keys[who]}", "hx-request": "true"}
        return hospital.http.get(f"/p/visits/ledger{path}", headers=headers)

    assert got("aude", "/part?kind=charge&before=&account=").text.count('class="line"') == 1
    for path, status in (
        ("/part?kind=nonsense", 400),
        ("/part?before=-1", 400),
        ("/part?account=nobody", 400),
        ("/entry/99999", 404),
        ("/entry/-1", 404),
        ("/entry/²", 404),
        ("/compare?number=1&hash=xyz", 400),
    ):
        assert got("aude", path).status_code == status, path
    assert "no entry 400" in got("aude", "/compare?number=400&hash=abcdef12").text
    assert got("ann", "/part").status_code == 403

"""What epsilon means, an attack to try, and the text for participants."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from dither.blocks._calendar import Calendar
from dither.ledger._block_budget import BlockBudget
from dither.privacy import Charge, Neighbours, Promise
from dither.privacy.accounts._budget import BudgetFilter
from dither.service.page._odds import EPSILONS, PRIORS, most_of_a_hundred, promised, steps
from service.hospital import Served, served, written
from service.page.visitor import Visitor


def test_odds_are_the_posterior_of_the_worst_release() -> None:
    """Every cell is e^epsilon times the odds, rounded up: against exact fractions of a series."""
    for step, epsilon in zip(steps(), EPSILONS, strict=True):
        exact = Fraction(epsilon).limit_denominator(1000)
        grown = sum(exact**k / math.factorial(k) for k in range(80))
        for prior, reached in zip(PRIORS, step["reached"], strict=True):
            odds = grown * prior / (1 - prior)
            share = 100 * odds / (1 + odds)
            shown = Fraction(reached["text"].removesuffix(" %"))
            assert share <= shown <= share + Fraction(1, 9), (epsilon, prior)


@pytest.mark.parametrize(
    ("epsilon", "delta", "most"),
    [("0", "0", 50), ("1", "0", 74), ("1", "1/1000000", 74), ("1/10", "1/10", 58), ("5", "0", 100)],
)
def test_guesses_of_a_hundred_are_bounded(epsilon: str, delta: str, most: int) -> None:
    """(e^epsilon + delta) / (e^epsilon + 1), rounded up to whole guesses."""
    e, d = Fraction(epsilon), Fraction(delta)
    exact = (math.exp(e) + float(d)) / (math.exp(e) + 1)
    assert math.ceil(100 * exact) == most
    assert most_of_a_hundred(Charge.approximate(e, d)) == most


def test_a_promise_is_told_for_its_blocks_and_its_neighbours() -> None:
    """Months add up until the lifetime; a replaced unit's presence is public."""
    each, whole = BudgetFilter(Fraction(1, 2)), BudgetFilter(Fraction(2))
    months = BlockBudget(Calendar(every="month"), each, whole)
    found = promised(Promise("patient"), months)
    assert [row["blocks"] for row in found["rows"]] == [1, 3, None]
    assert [row["there"] for row in found["rows"]] == [63, 82, 89]
    # Of two answers: twice the epsilon, since a value is replaced by a removal and an addition.
    assert [row["answer"] for row in found["rows"]] == [74, 96, 99]
    assert not found["endless"]
    endless = promised(Promise("patient"), BlockBudget(Calendar(every="month"), each))
    assert endless["endless"]
    assert [row["blocks"] for row in endless["rows"]] == [1, 3, 12]
    replaced = promised(Promise("row", Neighbours.REPLACE), BudgetFilter(Fraction(1)))
    assert replaced["rows"] == [{"blocks": None, "there": None, "answer": 74}]


def test_the_slider_looks_up_what_the_server_computed(
    visit: Callable[..., Visitor], picture: Callable[..., Any]
) -> None:
    """By keys alone; the dot follows."""
    page = visit("audrey").go("learn")
    assert page.locator("#says-after").inner_text() == "73.2 %"
    page.focus("#epsilon")
    before = page.locator("#dot").get_attribute("cx")
    page.keyboard.press("End")
    assert page.locator("#says-epsilon").inner_text() == "10"
    assert page.locator("#says-after").inner_text() == steps()[-1]["reached"][3]["text"]
    assert page.locator("#dot").get_attribute("cx") != before
    phone = visit("ann", theme="dark", language="zh", width=390).go("learn")
    picture(phone, "learn-dark-390-zh")
    page.get_by_label("1.0 %").check()
    assert page.locator("#says-after").inner_text() == steps()[-1]["reached"][1]["text"]


@pytest.mark.parametrize("who", ["ann", "audrey"])
def test_the_attack_succeeds_on_exact_answers_and_not_on_private_ones(
    visit: Callable[..., Visitor], picture: Callable[..., Any], who: str
) -> None:
    """The exact difference is the person; the private success stays below its bound."""
    visitor = visit(who)
    ledger = visitor.service.desk.session.ledger
    before = ledger.entries(limit=1)[0].number
    page = visitor.go("learn")
    page.locator("input[name=target]").nth(2).check()
    page.select_option("#level", "0.1")
    page.get_by_role("button", name="Attack").click()
    page.locator(".tries").wait_for()
    exact = page.locator("#tried tbody tr").first.locator("td").all_inner_texts()
    assert int(exact[0]) - int(exact[1]) == int(exact[2]) in (0, 1)
    assert ("they have it" in exact[3]) is (exact[2] == "1")
    said = page.locator("#tried p", has_text="Blind guessing").inner_text()
    success, low, high, bound = map(
        float,
        re.findall(
            r"in ([\d.]+) % of all tries .* ([\d.]+) % to ([\d.]+) %.* than ([\d.]+) %", said
        )[0],
    )
    assert low <= success <= high
    assert low <= bound == 52.5
    assert ledger.entries(limit=1)[0].number == before
    if who == "ann":
        page.evaluate("scrollTo(0, 0)")
        picture(page, "learn-attack-light-1280-en")


def test_the_attack_takes_what_is_listed_alone(hospital: Served) -> None:
    """Other tables, people, conditions and epsilons are refused in the library's words."""
    headers = {"authorization": f"Bearer {hospital.keys['ann']}", "hx-request": "true"}
    good = {"table": "visits", "target": "1", "secret": "0", "epsilon": "1/2"}
    fine = hospital.http.post("/p/visits/learn/attack", data=good, headers=headers)
    assert fine.status_code == 200
    for name, value in (
        ("table", "places"),
        ("table", "<script>"),
        ("target", "999"),
        ("secret", "999"),
        ("epsilon", "0"),
        ("epsilon", "1e300"),
        ("epsilon", "1/0"),
    ):
        found = hospital.http.post(
            "/p/visits/learn/attack", data=good | {name: value}, headers=headers
        )
        assert found.status_code == 400, (name, value)
        assert "<script>" not in found.text


def test_participants_read_it_in_both_languages_and_on_paper(
    visit: Callable[..., Visitor], picture: Callable[..., Any], tmp_path: Path
) -> None:
    """Made from the policy's unit, budget and period; printing leaves the frame away."""
    visitor = visit("ann")
    page = visitor.go("learn/participants")
    assert page.locator(".sheet").get_attribute("lang") == "en"
    assert "almost surely" in page.locator(".sheet").inner_text()
    picture(page, "participants-light-1280-en")
    page.get_by_role("link", name="中文").click()
    page.locator(".sheet[lang=zh]").wait_for()
    assert "您的回答会怎样" in page.locator(".sheet").inner_text()
    page.emulate_media(media="print")
    assert not page.locator(".top").is_visible()
    assert not page.locator(".no-print").is_visible()
    assert page.locator(".sheet").is_visible()


def test_participants_are_told_the_policys_own_numbers(tmp_path: Path) -> None:
    """74 of 100 for epsilon 1, and twice that epsilon for an answer."""
    with served(written(tmp_path, epsilon=1)) as house:
        headers = {"authorization": f"Bearer {house.keys['olga']}"}
        text = house.http.get("/p/visits/learn/participants?in=en", headers=headers).text
        assert "person of visits" in text
        assert "whether you are in the data at all at most 74 times" in text
        assert "which of two answers you gave at most 89 times" in text
        assert "This is a weak protection" not in text

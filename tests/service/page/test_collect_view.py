"""A survey's page: reports by period, estimates with intervals, and what one report gives away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from dither import local
from dither.ledger import OwnerKey
from dither.policy._policy import read_policy
from dither.service.collect import Collector, new_survey, publish_due, read_collect
from dither.service.collect._survey import read_token_key
from service.collect.conftest import Surveyed
from service.loopback import POLICY, OnLoopback, serving, write
from service.page.accounts.spent import HOSTILE
from service.page.visitor import Visitor

CHANNEL = local.GRR([HOSTILE, "cold", "none"], epsilon=1)


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnLoopback]:
    """Two surveys of one policy, of which one is public; it has reports of two days."""
    folder = tmp_path_factory.mktemp("surveyed")
    owner = OwnerKey.make()
    (folder / "owner.pub").write_text(owner.public.text)
    made = {name: new_survey(name, CHANNEL, owner, folder, reports=2) for name in ("flu", "quiet")}
    more = '[owner]\npublic = "owner.pub"\n' + "\n".join(
        f'[collect.{name}]\nconfiguration = "{name}.config.json"\ntokens = "{name}.token.pem"\n'
        f'every = "day"\nestimates = "estimates"\npublic = {public}\ndaily = 3\n'
        for name, public in (("flu", "true"), ("quiet", "false"))
    )
    policy = write(folder, policy=f"{more}\n{POLICY}")
    key = read_token_key(folder / "flu.token.pem", made["flu"])
    devices = Surveyed(folder, owner, made["flu"], key)
    section = read_policy(policy).around["collect"]
    collector = Collector(read_collect(section, folder, owner.public))
    try:
        collector.take("flu", devices.posts(*[0] * 30, *[1] * 12, *[2] * 9)).result()
        publish_due(collector)
        collector.take("flu", devices.posts(*[0] * 4, 2, 2, 250)).result()
    finally:
        collector.close()
    with serving(policy) as found:
        yield found


def test_the_owner_sees_a_survey_as_it_stands(
    visit: Callable[..., Visitor], picture: Callable[..., Any], surveyed: OnLoopback
) -> None:
    """Reports by period, shares with intervals, and odds of one report; labels stay text."""
    page = visit("olive", service=surveyed).go("collect")
    flu = page.locator("section.card", has_text="flu")
    text = flu.inner_text()
    assert HOSTILE in text
    assert page.locator("img").count() == 0
    assert page.locator("section.card").count() == 2
    bars = flu.locator("svg g[role=img]").evaluate_all(
        "all => all.map((one) => one.getAttribute('aria-label').split(': ')[1])"
    )
    assert bars == ["51", "6"]
    rows = flu.locator("table").first.locator("tbody tr").all_inner_texts()
    assert len(rows) == 3
    assert HOSTILE in rows[0]
    assert all("%" in one for one in rows)
    # One report of epsilon 1, from even odds; two of a token; six of a day.
    odds = flu.locator("table").nth(1).locator("tbody tr").last.inner_text().split("\t")
    assert odds == ["50.0 %", "73.2 %", "88.1 %", "99.8 %"]
    assert "No report has been counted yet" in page.locator("main").inner_text()
    picture(page, "collect-survey-light-1280-en")
    phone = visit("olive", width=390, theme="dark", language="zh", service=surveyed).go("collect")
    assert phone.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    picture(phone, "collect-survey-dark-390-zh")


def test_others_see_what_was_published_alone(
    visit: Callable[..., Visitor], surveyed: OnLoopback
) -> None:
    """The newest published estimates of a public survey; nothing of another."""
    page = visit("ann", service=surveyed).go("collect")
    text = page.locator("main").inner_text()
    assert page.locator("section.card").count() == 1
    assert "quiet" not in text
    assert page.locator(".facts dd").first.inner_text() == "51"
    assert "Reports by period" not in text


def test_without_a_survey_it_says_how_to_start_one(visit: Callable[..., Visitor]) -> None:
    """To the owner; to others that there is none."""
    assert "new_survey" in visit("olive").go("collect").locator("main").inner_text()
    text = visit("ann").go("collect").locator("main").inner_text()
    assert "No survey shows its estimates" in text
    assert "new_survey" not in text

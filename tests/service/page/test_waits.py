"""What waits for an owner is seen from everywhere, and what was not spent is not shown as spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from dither.ledger import Ledger
from dither.privacy import Promise
from dither.privacy._charge import Charge
from dither.privacy.accounts._budget import BudgetFilter
from dither.service.page._spending import outlook
from dither.service.page.views.answers import _row
from dither.service.work._jobs import State
from service.hospital import COUNT, Served, served, written


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service in which a question waits."""
    folder = tmp_path_factory.mktemp("waits")
    with served(written(folder, service="approve_above = { epsilon = 1 }")) as found:
        found.post("ann", "/releases", {"sql": COUNT, "epsilon": "5"})
        yield found


def seen(house: Served, who: str, place: str, **more: Any) -> str:
    """A view, as somebody sees it."""
    headers = {"authorization": f"Bearer {house.keys[who]}"} | more.pop("headers", {})
    method = "POST" if more else "GET"
    found = house.http.request(method, f"/p/visits/{place}", headers=headers, **more)
    assert found.status_code == 200, found.text
    return str(found.text)


def test_an_owner_sees_from_everywhere_how_many_wait(house: Served) -> None:
    """In the navigation, in words as well; nobody else does; and a decision takes it away."""
    badge = '<span class="badge" aria-hidden="true">1</span>'
    for place in ("ask", "people", "learn", "budget"):
        assert badge in seen(house, "olga", place)
        assert "waiting for approval: 1" in seen(house, "olga", place)
        assert "待审批：1" in seen(house, "olga", place, headers={"accept-language": "zh"})
    assert badge not in seen(house, "ann", "ask")
    assert badge not in seen(house, "aude", "learn")
    (job,) = house.desk.jobs.listed(state=State.WAITING)
    said = {"digest": job.draft.digest, "approve": "false"}
    after = seen(house, "olga", f"budget/waiting/{job.id}", data=said)
    assert '<span id="waits" hx-swap-oob="true"></span>' in after
    assert badge not in seen(house, "olga", "ask")


def test_a_row_shows_what_was_charged(house: Served) -> None:
    """Before it runs its price; then what the ledger has, and nothing where it has nothing."""
    job = house.desk.jobs.listed()[0]
    for state, entry, replayed, cost in (
        (State.WAITING, None, False, "ε = 5"),
        (State.RUNNING, None, False, "ε = 5"),
        (State.FAILED, None, False, None),
        (State.GIVEN_UP, None, False, None),
        (State.DECLINED, None, False, None),
        (State.FAILED, 7, False, "ε = 5"),
        (State.ENDED, 7, False, "ε = 5"),
        (State.DONE, 7, False, "ε = 5"),
        (State.DONE, 7, True, None),
    ):
        row = _row(replace(job, state=state, entry=entry, replayed=replayed))
        assert row["cost"] == cost, (state, entry)


def test_a_forecast_is_true_at_its_edges(house: Served, tmp_path: Path) -> None:
    """Nothing was spent, a little, much, or all of it."""
    today = date(2026, 3, 1)
    promise = Promise("patient")
    with Ledger.open(tmp_path / "a.ledger") as book:
        book.open_accounts({"dataset:patient": BudgetFilter(Fraction(1))}, promise)
        balance = book.balance("dataset:patient")
    for spent, days, kind, day in (
        (Charge(), 30, "idle", None),
        (Charge.pure(Fraction(1, 10)), 1, "on", date(2026, 3, 11)),
        (Charge.pure(Fraction(1, 10**9)), 30, "far", None),
    ):
        look = outlook(balance, spent, days, today)
        assert (look.kind, look.day) == (kind, day)
    assert "nothing was charged yet, so there is no pace" in seen(house, "olga", "budget")

"""Drafts that would take long hold up nobody: ended in time, each person with one at once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dither.service.work._drafts import answers_named, is_short
from dither.service.work._thinking import TOO_MUCH
from service.hospital import COUNT, Served, served, written

WIDE = "\n".join(
    [f"x{i} = {{ bounds = [0, 100000] }}" for i in range(24)]
    + ["big = { type = 'integer', bounds = [0, 1000000] }"]
)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Served]:
    """A service over a wide table, which gives each draft a second of a processor."""
    import polars as pl

    pl.DataFrame({"person": [1], "big": [1], **{f"x{i}": [1.0] for i in range(24)}}).write_parquet(
        tmp_path / "wide.parquet"
    )
    more = (
        "[tables.wide]\nsource = 'wide.parquet'\nunit = 'person'\nmax_rows = 3\nmax_groups = 1\n"
        f"[tables.wide.columns]\n{WIDE}"
    )
    with served(written(tmp_path, more=more)) as found:
        hall(found).thinkers.seconds = 1
        yield found


def hall(house: Served) -> Any:
    """What its endpoints share."""
    return house.http.app.app.state.hall  # type: ignore[attr-defined]


def asked(*calls: Any) -> dict[str, Any]:
    """A draft by calls of the wide table."""
    return {"ask": [["table", ["wide"], {}], *([*one, {}][:3] for one in calls)]}


FORMULA = asked(
    ["infer", ["1"]], ["regression", ["x0 ~ " + " * ".join(f"x{i}" for i in range(1, 20))]]
)
RANGES = asked(["ranges", ["big"], {"epsilon": 1, "bins": 2**20}])
QUANTILES = asked(["infer", [1]], ["quantiles", ["x0", [i / 5000 for i in range(1, 5000)]]])
SMALL = asked(["infer", ["1"]], ["mean", ["x0"]])


@pytest.mark.parametrize(
    ("path", "draft"),
    [
        pytest.param("/price", FORMULA, id="columns of a formula"),
        pytest.param("/releases", FORMULA, id="a release", marks=pytest.mark.slow),
        pytest.param("/published", FORMULA, id="earlier answers", marks=pytest.mark.slow),
        pytest.param("/explain", RANGES, id="levels of ranges", marks=pytest.mark.slow),
        pytest.param("/preview", QUANTILES, id="quantiles", marks=pytest.mark.slow),
    ],
)
def test_a_draft_that_takes_too_long_is_ended(house: Served, path: str, draft: Any) -> None:
    """Whatever it is for; nothing is charged, no job is made, and the next one is worked out."""
    found = house.post("ann", path, draft)
    assert (found.status_code, found.json()["error"]["message"]) == (400, TOO_MUCH)
    assert house.get("ann", "/jobs").json()["jobs"] == []
    hall(house).thinkers.seconds = 60
    assert house.post("ann", "/explain", SMALL).status_code == 200
    assert not any(one.spent.epsilon for one in house.desk.session.balance())


@pytest.mark.slow
def test_a_draft_that_fills_the_memory_is_ended(house: Served) -> None:
    """By the bound of its process, and said in the same words."""
    thinkers = hall(house).thinkers
    thinkers.seconds, thinkers._memory = 60, 1300 * 2**20
    found = house.post("ann", "/preview", QUANTILES)
    assert (found.status_code, found.json()["error"]["message"]) == (400, TOO_MUCH)
    thinkers._memory = 4 * 2**30
    assert house.post("ann", "/explain", SMALL).status_code == 200


@pytest.mark.slow
def test_others_go_on_meanwhile(house: Served) -> None:
    """While one works on a long draft: short SQL of theirs, drafts of others, and health."""
    hall(house).thinkers.seconds = 4
    answers: list[Any] = []
    long = threading.Thread(target=lambda: answers.append(house.post("ann", "/price", FORMULA)))
    long.start()
    time.sleep(0.5)
    assert house.post("ann", "/preview", {"sql": COUNT, "epsilon": "1"}).status_code == 200
    assert house.post("bob", "/explain", SMALL).status_code == 200
    assert house.http.get("/health").status_code == 200
    assert not answers
    # Of one person so many wait, and no more.
    more = [
        threading.Thread(target=lambda: answers.append(house.post("ann", "/price", SMALL)))
        for _ in range(6)
    ]
    for one in more:
        one.start()
    for one in (long, *more):
        one.join()
    told = [one.json().get("error", {}).get("message", "") for one in answers]
    assert sum("wait for them" in one for one in told) == 2, told
    assert sum(one == TOO_MUCH for one in told) == 1, told
    assert sum(one.status_code == 200 for one in answers) == 4, told
    assert hall(house).thinkers._turns == {}


def test_what_is_short_is_sql(house: Served) -> None:
    """Nothing else is worked out where everybody waits for it."""
    assert is_short({"sql": COUNT})
    assert is_short({"ask": [["sql", [COUNT], {}], ["limit", [3], {}]]})
    assert not is_short({"sql": COUNT + " " * 5000})
    assert not is_short({"sql": COUNT, "sizes": list(range(1, 50))})
    for calls in ([["table", ["visits"], {}]], [["sql", [COUNT], {}], ["learn", [], {}]]):
        assert not is_short({"ask": calls})
    # What is no list of calls is refused at once, and takes no process.
    for wrong in ([7], [], [[{"a": 1}, [], {}]], [["close", [], {}]], [["table", "visits", {}]]):
        assert is_short({"ask": wrong})
    named = [["a", [{"answer": ["r", "e"]}], {"x": {"rows": [[{"answer": ["s", "f"]}]]}}]]
    assert sorted(answers_named(named)) == [("r", "e"), ("s", "f")]


def test_an_answer_of_somebody_else_is_not_named_there_either(house: Served) -> None:
    """A draft that is worked out elsewhere rests on one's own answers alone."""
    job = house.released("ann")
    content = job["answer"]["content"]["certificate"]
    named = {"answer": [content["request"], content["ledger"]["hash"]]}
    call: list[Any] = ["topping_up", [named], {}]
    body = {"ask": [["table", ["visits"], {}], ["agg", [], {"n": {"aggregate": ["count"]}}], call]}
    found = house.post("bob", "/explain", body)
    assert (found.status_code, "you may see" in found.text) == (400, True)
    # One's own as often as one likes does not hide another's behind it.
    call[1] = [[named] * 9]
    many = house.post("bob", "/explain", body)
    assert (many.status_code, "at most 8 earlier answers" in many.text) == (400, True)


def test_nothing_is_left_when_the_service_ends(house: Served) -> None:
    """Its processes end with it."""
    hall(house).thinkers.seconds = 60
    assert house.post("ann", "/explain", SMALL).status_code == 200
    (process,) = hall(house).thinkers._idle
    house.http.__exit__(None, None, None)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    house.http.__enter__()

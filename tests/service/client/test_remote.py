"""A session at a service is the session of a local policy: same questions, same hashes, answers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

import dither
from dither.errors import ArgumentError, BudgetError, QueryError, UnsupportedError
from dither.service.client._http import UnreachableServiceError
from dither.session._recipe import QuestionRecipe
from dither.session._request import request_of
from service.loopback import OnLoopback

COUNTS = 'SELECT "group", COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY "group"'

ASKED: dict[str, Callable[[Any], Any]] = {
    "sql": lambda s: s.sql(COUNTS, weights={"n": 3}),
    "public keys": lambda s: s.sql(
        "SELECT r.region, COUNT(*) AS n FROM visits v JOIN regions r ON v.region = r.region "
        "GROUP BY r.region"
    ),
    "builder": lambda s: s.table("visits").filter("age >= 40").agg(n=dither.count(weight=2)),
    "bins": lambda s: (
        s.table("visits").group_by(dither.bins("age", [0, 40, 110])).agg(n=dither.count())
    ),
    "within": lambda s: s.sql(COUNTS).within(max_groups=1).having("n > 10").order_by("n DESC"),
    "per unit": lambda s: (
        s.table("visits")
        .per_unit(total=dither.sum("cost").where("age > 20"))
        .infer("0.5")
        .mean("total")
    ),
    "proportion": lambda s: s.table("visits").infer(1).proportion("age >= 65"),
    "difference": lambda s: s.table("visits").infer(1).difference("cost", by="group"),
    "union": lambda s: (
        s.table("visits")
        .select("patient", "cost")
        .union_all(s.table("visits").select("patient", "cost"))
        .infer(1)
        .mean("cost")
    ),
    "marginals": lambda s: s.table("visits").marginals([["group"]], epsilon=1),
    "ranges": lambda s: s.table("visits").ranges("age", epsilon=1, bins=16),
    "synthesis": lambda s: s.table("visits").synthesis(
        1, method="independent", columns=["age", "group"], cells={"age": 8}
    ),
    "model": lambda s: s.table("visits").learn(1).naive_bayes("group ~ cost"),
    "fact": lambda s: s.fact("visits", "cost"),
}


@pytest.fixture(scope="module")
def ann(loopback: OnLoopback) -> Any:
    with loopback.connect() as session:
        yield session


@pytest.mark.parametrize("kind", ASKED)
def test_it_is_the_question_that_a_local_session_asks(
    loopback: OnLoopback, ann: Any, kind: str
) -> None:
    """The explanation, the price and the hash of the request are those of a local session."""
    local = loopback.desk.session.asked_by("ann")
    here, there = ASKED[kind](local), ASKED[kind](ann)
    epsilon = 1 if hasattr(here, "_asked_at") else None
    ours = request_of(here, local._opened, epsilon)
    theirs = request_of(there, ann._opened, epsilon)
    assert ours.data.digest == theirs.data.digest
    assert ours.price == theirs.price
    assert str(here.explain()) == str(there.explain())


@pytest.mark.parametrize("kind", ASKED)
def test_it_is_released_and_replayed(loopback: OnLoopback, ann: Any, kind: str) -> None:
    """The answer is read as from a local policy; asked again under its token, it is the same."""
    priced = () if not hasattr(ASKED[kind](ann), "_asked_at") else (1,)
    first = ASKED[kind](ann).release(*priced, token=f"released {kind}")
    before = loopback.desk.session.ledger.balance("dataset:patient of visits").spent
    again = ASKED[kind](ann).release(*priced, token=f"released {kind}")
    assert loopback.desk.session.ledger.balance("dataset:patient of visits").spent == before
    assert type(first) is type(again)
    assert first.certificate.to_json() == again.certificate.to_json()
    assert dither.verify(first.certificate, loopback.desk.session.ledger).ok


def test_what_is_learned_is_used(loopback: OnLoopback, ann: Any) -> None:
    found = ann.learn("visits", "age", epsilon=100, token="ages")
    assert found.lower >= 0


def test_balances_prices_and_reservations(loopback: OnLoopback, ann: Any) -> None:
    local = loopback.desk.session.asked_by("ann")
    assert [str(b) for b in ann.balance()] == [str(b) for b in local.balance()]
    question = ann.sql(COUNTS)
    assert question.affordable(10).times == local.sql(COUNTS).affordable(10).times
    assert ann.price([question, question], epsilon=2).all_fit
    until = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    kept = ann.reserve(3, until=until)
    with ann.using(kept):
        question.release(2)
        with pytest.raises(BudgetError, match="reservation"):
            question.release(2)


def test_earlier_answers_are_the_askers_own(loopback: OnLoopback, ann: Any) -> None:
    """Another's answer is not given out under reuse, and their token is not one's own."""
    question = "SELECT COUNT(*) AS n FROM visits WHERE age < 33"
    first = ann.sql(question).release(1, token="mine")
    assert ann.sql(question).release(1, reuse=True).frame.equals(first.frame)
    with loopback.connect("bob") as bob:
        other = bob.sql(question).release(1, token="mine")
        assert other.certificate.to_dict()["ledger"] != first.certificate.to_dict()["ledger"]


def test_refusals_are_those_of_the_library(loopback: OnLoopback, ann: Any) -> None:
    with pytest.raises(QueryError, match="unknown column"):
        ann.sql("SELECT AVG(nothing) AS m FROM visits")
    with loopback.connect("eve") as eve, pytest.raises(BudgetError, match="fits with epsilon"):
        eve.sql(COUNTS).release(6)
    with pytest.raises(UnsupportedError, match="does not offer"):
        ann.table("visits").measure()
    with pytest.raises(ArgumentError, match="cannot be sent"):
        QuestionRecipe(()).then("table", (object(),), {}).to_list()


def test_dummy_rows_come_of_what_is_public(loopback: OnLoopback, ann: Any) -> None:
    """The same rows as of the policy itself, made here; a rehearsal asks nothing of the service."""
    local = loopback.desk.session.asked_by("ann")
    here, there = local.dummy("visits", 50, seed=1), ann.dummy("visits", 50, seed=1)
    assert here.frame.equals(there.frame)
    found = ann._calls._client.get("/dummy", params={"table": "visits", "rows": 5, "form": "csv"})
    assert found.headers["x-dither-dummy"] == "no row is real"
    assert len(found.text.splitlines()) == 6
    before = len(ann.jobs())
    with ann.rehearsal(100, seed=1) as rehearsal:
        rehearsal.sql(COUNTS).release(1)
    assert len(ann.jobs()) == before


def test_progress_is_told(loopback: OnLoopback) -> None:
    """A program is told that its question is done, whatever it was told before."""
    told: list[float] = []
    with loopback.connect(progress=told.append) as session:
        session.sql("SELECT COUNT(*) AS n FROM visits WHERE age < 41").release(1)
    assert told[-1] == 1
    assert told == sorted(told)


def test_a_key_that_does_not_hold(loopback: OnLoopback) -> None:
    for key in ("dither_" + "A" * 43, "nonsense"):
        with pytest.raises(UnreachableServiceError, match="no key"):
            dither.connect(loopback.address, key=key)
    with pytest.raises(ArgumentError, match="https"):
        dither.connect("http://data.example.org/visits", key="dither_")
    with pytest.raises(ArgumentError, match="address"):
        dither.connect("visits", key="dither_")
    with pytest.raises(UnreachableServiceError, match="cannot be reached"):
        dither.connect("http://127.0.0.1:9/visits", key="dither_")


def test_nothing_of_places_or_people_is_told(loopback: OnLoopback, ann: Any) -> None:
    """What the service says of its policy has no path, no other analyst and no secret."""
    told = str(ann._calls.get("/policy"))
    for hidden in ("parquet", "bob", str(loopback.desk.path.parent), 'ledger":'):
        assert hidden not in told

"""A question asked over HTTP is the one that is asked of a local session: they hash alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, DitherError, UnsupportedError
from dither.service._shared import reply
from dither.service.client._http import UnreachableServiceError
from dither.session._recipe import QuestionRecipe, RecipeCall, from_plain, to_plain
from dither.session._request import request_of
from service.hospital import COUNT, Served, served, written

STEPS = """
[units.person]
columns = { steps = "person", people = "person" }
[tables.steps]
source = "steps.parquet"
max_rows = 3
max_groups = 2
max_join_rows = 3
[tables.steps.columns]
region = { values = ["north", "south"] }
codes = { values = ["a", "b"], max_items = 3 }
[tables.people]
source = "people.parquet"
max_rows = 1
max_groups = 1
max_join_rows = 1
[tables.people.columns]
sex = { values = ["f", "m"] }
"""

LINKED = {
    "steps": {
        "most": 3,
        "columns": ["region"],
        "rules": [{"columns": ["region"], "allowed": [["north"], ["south"]]}],
    }
}

SYNTHETIC = pl.DataFrame(
    {
        "cost": [1.5, None, 99.0, float("inf")] * 3,
        "region": pl.Series(["north", "south"] * 6, dtype=pl.Enum(["north", "south"])),
        "beds": [1, 2, 2] * 4,
        "unasked": [object()] * 12,
    }
)

ASKED: dict[str, Callable[[Any], Any]] = {
    "sql": lambda s: s.sql(
        "SELECT region, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY region"
    ),
    "sql within": lambda s: s.sql(COUNT),
    "rows": lambda s: s.table("visits").filter("cost > 10").group_by("region").agg(n=dt.count()),
    "parts": lambda s: (
        s.table("visits")
        .group_by("region")
        .agg(n=dt.count(), m=dt.mean("cost"), q=dt.quantile("cost", 0.75), r="ROUND(SUM(cost), 1)")
        .having("n > 3")
        .order_by("region")
        .limit(1)
    ),
    "bins": lambda s: s.table("visits").group_by(dt.bins("cost", [0, 10, 50])).agg(n=dt.count()),
    "per unit": lambda s: (
        s.table("visits").per_unit(t=dt.sum("cost")).filter("t > 3").agg(n=dt.count())
    ),
    "join": lambda s: s.table("visits").join("places", on="region").agg(n=dt.count()),
    "union": lambda s: (
        s.table("visits").union_all(s.table("visits").filter("cost > 1")).agg(n=dt.count())
    ),
    "unnest": lambda s: s.table("steps").unnest("codes", "code").group_by("code").agg(n=dt.count()),
    "histogram": lambda s: s.table("visits").histogram("cost", [0, 10, 50]),
    "mean": lambda s: s.table("visits").infer(epsilon="0.5").mean("cost"),
    "median": lambda s: s.table("visits").infer(epsilon=0.5).median("cost"),
    "quantiles": lambda s: s.table("visits").infer(epsilon=1).quantiles("cost", (0.25, 0.75)),
    "quantile": lambda s: s.table("visits").infer(epsilon=1).quantile("cost", 0.9),
    "proportion": lambda s: s.table("visits").infer(epsilon=1).proportion("cost > 10"),
    "difference": lambda s: s.table("visits").infer(epsilon=1).difference("cost", "region"),
    "independence": lambda s: (
        s.table("visits").infer(epsilon=1).test_independence("region", "beds")
    ),
    "goodness": lambda s: (
        s.table("visits").infer(epsilon=1).goodness_of_fit("region", {"north": 0.5, "south": 0.5})
    ),
    "regression": lambda s: s.table("visits").infer(epsilon=1).regression("cost ~ region"),
    "survival": lambda s: s.table("visits").infer(1).kaplan_meier("cost", "ill", "region"),
    "standardised": lambda s: (
        s.table("visits")
        .infer(1)
        .standardised_rate("ill", "cost", "region", {"north": 1, "south": 2})
    ),
    "log-rank": lambda s: s.table("visits").infer(1).logrank_test("cost", "ill", "region"),
    "ratio": lambda s: (
        s.table("visits")
        .infer(1)
        .rate_ratio("ill = 1", "cost", "region", levels=("south", "north"))
    ),
    "strata": lambda s: s.table("visits").infer(1).mantel_haenszel("ill = 1", "cost > 9", "region"),
    "described": lambda s: s.table("visits").infer(1).describe(by="region", columns=["cost"]),
    "variances": lambda s: s.table("visits").infer(1).f_oneway("cost", "region"),
    "weighted": lambda s: s.table("visits").infer(1).weighted_mean("cost", "beds"),
    "log odds": lambda s: s.table("visits").infer(1).logistic_regression("ill ~ region"),
    "ruled": lambda s: s.table("visits").synthesis(
        1,
        columns=["ill", "beds"],
        rules=["ill <= beds", {"if": "ill", "then": "beds", "map": {0: [1, 2]}}],
    ),
    "linked": lambda s: s.table("people").linked_synthesis(LINKED, 1, "1e-9"),
    "additive": lambda s: s.table("visits").learn(1).additive("region ~ cost", rounds=3),
    "forest": lambda s: s.table("visits").learn(1).forest("region ~ cost"),
    "bayes": lambda s: s.table("visits").learn(1).naive_bayes("region ~ cost"),
    "linear": lambda s: s.table("visits").learn(1).linear("cost ~ region"),
    "logistic": lambda s: s.table("visits").learn(1).logistic("ill ~ cost"),
    "marginals": lambda s: s.table("visits").marginals([["region"]], epsilon=1),
    "hierarchy": lambda s: s.table("visits").hierarchy(["region", "beds"], epsilon=1),
    "ranges": lambda s: s.table("visits").ranges("cost", epsilon=1),
    "synthesis": lambda s: (
        s.table("visits").select("cost", "region").synthesis(1, method="independent")
    ),
    "compare": lambda s: s.table("visits").compare(SYNTHETIC, 2, 1, columns=["cost", "region"]),
    "compare named": lambda s: s.table("visits").compare(
        SYNTHETIC, [["region", "beds"]], 1, max_rows=2
    ),
}
"""Every kind of question. What a policy does not offer is refused alike, on both sides."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Any]]:
    """A service, and a client's session of it."""
    folder = tmp_path_factory.mktemp("both")
    pl.DataFrame(
        {"person": [0, 1], "region": ["north", "south"], "codes": [["a"], ["a", "b"]]}
    ).write_parquet(folder / "steps.parquet")
    pl.DataFrame({"person": [0, 1], "sex": ["f", "m"]}).write_parquet(folder / "people.parquet")
    with (
        served(written(folder, more=STEPS, service="rate = 100000")) as found,
        dt.connect(
            "http://here/visits", key=found.keys["ann"], transport=through(found)
        ) as session,
    ):
        yield found, session


def through(found: Served) -> httpx.MockTransport:
    """A client's calls as calls of the service in this process."""

    def called(request: httpx.Request) -> httpx.Response:
        answer = found.http.request(
            request.method,
            request.url.raw_path.decode(),
            content=request.content,
            headers={k: v for k, v in request.headers.items() if k != "host"},
        )
        return httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)

    return httpx.MockTransport(called)


def made(ask: Callable[[Any], Any], session: Any) -> Any:
    """The digest of a question's request; or its refusal."""
    try:
        question = ask(session)
        wants = hasattr(question, "_asked_at")
        return request_of(question, session._opened, "0.5" if wants else None).data.digest, question
    except DitherError as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", ASKED)
def test_a_question_is_the_same_on_both_sides(both: tuple[Served, Any], kind: str) -> None:
    """The client's digest, a local session's, and that of the service are one."""
    hospital, session = both
    ask = ASKED[kind]
    mine, question = made(ask, session)
    local, _ = made(ask, hospital.desk.session.asked_by("ann"))
    assert mine == local, question
    if isinstance(mine, type):
        pytest.fail(f"no question: {question}")
    at = hasattr(question, "_asked_at")
    body = {"ask": (question._as_asked if at else question._recipe).to_list()}
    if at:
        body["epsilon"] = "0.5"
    assert QuestionRecipe.from_list(body["ask"]).to_list() == body["ask"]
    found = hospital.post("ann", "/price", body)
    assert found.status_code == 200, found.text
    assert found.json()["digest"] == mine
    assert hospital.post("ann", "/preview", body).status_code == 200
    assert hospital.post("ann", "/explain", body).status_code == 200


def test_a_release_has_the_same_face(both: tuple[Served, Any]) -> None:
    """Its frame, its certificate and its token; asked again it is the same answer."""
    _, session = both
    question = session.sql(COUNT)
    first = question.release("0.5", token="twice")
    again = question.release("0.5", token="twice")
    assert first.frame.equals(again.frame)
    assert reply(first) == first.frame.to_dicts()
    assert max(one.spent.epsilon for one in session.balance()) > 0
    assert session.jobs()[0]["state"] == "done"


def test_questions_are_compared_where_they_are_asked(both: tuple[Served, Any]) -> None:
    """What several would reach follows from public facts: nothing is sent."""
    hospital, session = both

    def found(one: Any) -> str:
        asked = one.table("visits").infer(1)
        return str(asked.compare({"mean": asked.mean("cost"), "median": asked.median("cost")}))

    assert found(session) == found(hospital.desk.session.asked_by("ann"))


def test_a_synthetic_table_that_was_sent_is_measured(both: tuple[Served, Any]) -> None:
    """Only the columns that are asked about travel, and no list of jobs is full of them."""
    hospital, session = both
    asked = session.table("visits").compare(SYNTHETIC, [["region", "beds"]], 1)
    assert "unasked" not in str(asked._recipe.calls)
    made = asked.release(token="distances")
    assert made.frame.height == 1
    (job,) = [one for one in session.jobs() if "compare" in str(one["ask"])]
    assert len(str(job["ask"])) < 500
    assert dt.verify(made.certificate, hospital.desk.session.ledger).ok


def test_linked_tables_are_made_at_once(both: tuple[Served, Any]) -> None:
    """By the method that a local session has; the answer is read there again, for nothing."""
    hospital, session = both
    asked = {"epsilon": 1, "delta": "1e-9", "token": "linked at once"}
    found = session.table("people").synthesize_linked(LINKED, **asked)
    local = hospital.desk.session.asked_by("ann")
    again = local.table("people").synthesize_linked(LINKED, **asked)
    assert again.replayed
    for name, frame in found.sample(5, seed=1).items():
        assert frame.equals(again.sample(5, seed=1)[name])


def test_what_a_service_does_not_offer_is_refused_where_it_is_asked(
    both: tuple[Served, Any],
) -> None:
    """Private names, methods that are not to be named, rows of other sessions, wrong keys."""
    hospital, session = both
    rows = session.table("visits")
    with pytest.raises(UnsupportedError):
        rows.measure()
    with pytest.raises(AttributeError):
        rows.nothing_like_this()
    with pytest.raises(ArgumentError, match="of this session"):
        rows.union_all(hospital.desk.session.table("visits"))
    with pytest.raises(UnreachableServiceError, match="no key"):
        dt.connect("http://here/visits", key="dither_" + "x" * 43, transport=through(hospital))
    with pytest.raises(ArgumentError, match="https"):
        dt.connect("http://data.example.org/visits", key="dither_" + "x" * 43)


def test_arguments_travel_as_they_are() -> None:
    """Every kind that can be sent, and none that cannot."""
    from datetime import UTC, date, datetime
    from decimal import Decimal
    from fractions import Fraction

    sent = [
        *(None, True, 3, 2.5, "a", Fraction(1, 3), Decimal("1.10"), date(2026, 1, 2)),
        *(datetime(2026, 1, 2, 3, tzinfo=UTC), (1, (2,)), [1, [2]], {"a": 1, 2: [3]}),
    ]
    assert from_plain(to_plain(sent)) == sent
    for value in (float("nan"), float("inf"), object(), print, b"x", {1, 2}):
        with pytest.raises(ArgumentError, match="cannot be sent"):
            to_plain(value)
    with pytest.raises(ArgumentError, match="1 to 64 calls"):
        QuestionRecipe.from_list([["table", [], {}]] * 65)
    # As many linked tables as there may be, one below another, with rules of their own.
    linked: Any = {"rules": [{"columns": ["a"], "allowed": [[1]]}]}
    for _ in range(8):
        linked = {"most": 3, "children": {"table": linked}}
    assert from_plain(to_plain([linked])) == [linked]
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(ArgumentError, match="too deep"):
        QuestionRecipe.from_list([["table", [deep], {}]])
    assert QuestionRecipe((RecipeCall("table", ("visits",)),)).to_list() == [
        ["table", ["visits"], {}]
    ]


def test_the_policy_that_is_told_is_the_policy(tmp_path: Path) -> None:
    """Read back it has the tables, the columns and the digest, and no place of anything."""
    with served(written(tmp_path)) as found:
        told = found.get("ann", "/policy")
        assert str(tmp_path) not in told.text
        assert told.json()["digest"] == found.desk.session.policy.digest

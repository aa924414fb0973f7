"""Budgets of blocks from the policy to the engine: what is charged, read, refused and said."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import dither
from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, BlockSet
from dither.errors import (
    ArgumentError,
    BudgetError,
    CertificateError,
    EngineError,
    LedgerError,
    QueryError,
)
from dither.plan.relations import scans
from dither.plan.schema import Schema
from dither.query._builder import TableQuery
from dither.session import _session as sessions
from dither.session._certificate import digest_of as _digest
from dither.session._session import Session

MONTHS = Calendar(every="month")
MARCH = BlockSet.of_range(2024 * 12 + 2, 2024 * 12 + 2)
IN_MARCH = "day >= '2024-03-01' AND day < '2024-04-01'"

VISITS = pl.DataFrame(
    [
        {
            "patient": i % 40,
            "day": dt.date(2024, 1, 1) + dt.timedelta(days=i % 150),
            "cost": i % 10,
            "region": "north" if i % 2 else "south",
            "well": bool(i % 3),
        }
        for i in range(600)
    ]
)


def policy(folder: Any, **budget: Any) -> dict[str, Any]:
    """Visits by month, with a budget for each."""
    return {
        "budget": {
            "epsilon": 1000,
            "delta": 0.25,
            "release_delta": 1e-6,
            "per": "block",
            "ledger": str(folder / "visits.ledger"),
            **budget,
        },
        "tables": {
            "visits": {
                "unit": "patient",
                "max_groups": 2,
                "max_rows": 3,
                "max_rows_cap": 50,
                "block": {"column": "day", "every": "month"},
                "columns": {
                    "cost": {"type": "integer", "bounds": [0, 9], "nullable": False},
                    "region": {"values": ["north", "south"], "nullable": False},
                    "well": {"type": "boolean", "values": [False, True], "nullable": False},
                },
            }
        },
    }


REGIONS = pl.DataFrame({"region": ["north", "south"], "country": ["x", "y"]})


@pytest.fixture
def opened(tmp_path):
    asked = policy(tmp_path)
    asked["tables"]["regions"] = {"public": True, "unique": ["region"]}
    with dither.open(asked, sources={"visits": VISITS, "regions": REGIONS}) as session:
        yield session


def rows(session: Session) -> TableQuery:
    return session.table("visits").filter(IN_MARCH)


SYNTHETIC = VISITS.head(30).select("cost", "region")

KINDS: dict[str, Callable[[Session], Any]] = {
    "sql": lambda s: s.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {IN_MARCH}").release(1),
    "builder": lambda s: rows(s).histogram("cost", [0, 5, 9]).release(1),
    "quantile": lambda s: s.sql(f"SELECT MEDIAN(cost) AS m FROM visits WHERE {IN_MARCH}").release(
        1
    ),
    "discovered": lambda s: (
        rows(s).group_by("region").agg(n=dither.count()).release(1)
        if False
        else s.sql(
            f"SELECT region, COUNT(*) AS n FROM visits WHERE {IN_MARCH} GROUP BY region",
            discover=True,
        ).release(1)
    ),
    "infer": lambda s: rows(s).infer(1).mean("cost").release(),
    "marginals": lambda s: rows(s).marginals(1, 1, columns=["cost", "region"]).release(),
    "hierarchy": lambda s: rows(s).hierarchy(["country", "region"], epsilon=1).release(),
    "ranges": lambda s: rows(s).ranges("cost", epsilon=1).release(),
    "synthesis": lambda s: rows(s).synthesize(1, columns=["cost", "region"]),
    "compare": lambda s: rows(s).compare(SYNTHETIC, 1, 1, columns=["cost", "region"]).release(),
    "linear": lambda s: rows(s).learn(1).linear("cost ~ region").release(),
    "additive": lambda s: rows(s).learn(1).additive("well ~ cost + region").release(),
}
"""A question of every kind, about March alone."""

LEARNED: dict[str, Callable[[Session], Any]] = {
    "bounds": lambda s: s.learn("visits", "cost", epsilon=1),
    "keys": lambda s: s.learn("visits", "region", epsilon=1, kind="keys"),
    "limits": lambda s: s.learn("visits", epsilon=1, by=["region"]),
}
"""What is learned is learned of all rows."""


def charged(session: Session) -> list[BlockSet | None]:
    return [e.blocks for e in session.ledger.entries() if e.kind == "charge"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_question_is_charged_to_what_it_reads(opened: Session, kind: str) -> None:
    """March bears it, and no other month; the certificate says so and agrees with the ledger."""
    found = KINDS[kind](opened)
    assert charged(opened) == [MARCH]
    (balance,) = opened.balance()
    assert balance.blocks is not None
    first = MARCH.ranges[0][0]
    assert balance.blocks.of(first).epsilon > 0
    assert not any(balance.blocks.of(other).epsilon for other in (first - 1, first + 1, NULL))
    certificate = found.certificate
    body = certificate.to_dict()
    assert body["blocks"] == {"calendar": {"every": "month"}, **MARCH.to_dict()}
    assert "reads 2024-03; 1 block charged" in body["text"]["protects"]
    assert "a month, at most" in body["text"]["protects"]
    # Whoever reads the answer reads the promise.
    assert "a month, at most" in " ".join(found.summary().split())
    assert dither.verify(certificate, opened.ledger).ok


@pytest.mark.parametrize("kind", LEARNED)
def test_what_is_learned_is_charged_to_all_that_has_begun(opened: Session, kind: str) -> None:
    """Bounds, keys and limits are of all rows, and of those without a day."""
    LEARNED[kind](opened)
    (read,) = charged(opened)
    assert read == MONTHS.begun(dt.datetime.now(dt.UTC).date())


def test_the_list_of_kinds_is_whole() -> None:
    """A kind of question that is added is added here."""
    from dither.session._factories import FACTORIES

    through = {"query", "rows", "fact", "infer", "learn", "compare", "hierarchy", "marginals"}
    # Linked tables are refused where a table lies in blocks (tests/synth/linked).
    assert set(FACTORIES) == through | {"ranges", "synthesis", "linked"}


def test_blocks_have_budgets_of_their_own(tmp_path) -> None:
    """January's being spent leaves February's whole; a question about both is refused, by name."""
    asked = policy(tmp_path, epsilon=1, delta=0, release_delta=0, lifetime={"epsilon": 3})
    january, february = "day < '2024-02-01'", "day >= '2024-02-01' AND day < '2024-03-01'"
    with dither.open(asked, sources={"visits": VISITS}) as session:
        assert "ε 1 a month, at most 1·m for someone in m months, 3 in all" in repr(session)

        def count(where: str) -> Any:
            return session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {where}")

        count(january).release(1)
        with pytest.raises(BudgetError) as refused:
            count("day < '2024-03-01'").release(1)
        said = str(refused.value)
        assert "all up to 2024-01 have nothing left" in said or "2024-01 have epsilon 0" in said
        assert "reads all up to 2024-02" in said
        assert "Not even epsilon = 0.001 would fit" in said
        count(february).release(1)
        count(IN_MARCH).release(0.5)
        # The lifetime is nearly gone, whatever month is asked about.
        with pytest.raises(BudgetError, match=r"epsilon = 0\.5"):
            count("day >= '2024-04-01' AND day < '2024-05-01'").release(1)
        assert "reads 2024-03; 1 block charged" in str(count(IN_MARCH).preview(1))
        assert "reads 2024-03; 1 block charged" in str(count(IN_MARCH).explain(1))


def test_a_run_reads_no_block_that_was_not_charged(opened: Session) -> None:
    """Whoever makes a job: it is held against the charge before the engine is asked."""
    question = opened.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {IN_MARCH}")
    wider = opened.sql("SELECT COUNT(*) AS n FROM visits WHERE day >= '2024-03-01'")
    job, schema = wider._plan.job, wider._plan.schema
    with pytest.raises(EngineError, match="not charged for"):
        opened._opened.engine.run(job, schema, b"k" * 32)
    made = question._request(Fraction(1), None, 0.95)
    object.__setattr__(made, "jobs", lambda: (job,))
    with pytest.raises(EngineError, match="not charged for"):
        made.release()
    assert charged(opened) == []
    object.__setattr__(made, "jobs", tuple)
    object.__setattr__(made, "run", lambda key: opened._opened.engine.run(job, schema, key))
    with pytest.raises(EngineError, match="not charged for"):
        made.release()
    assert charged(opened) == [MARCH]


def test_a_question_keeps_the_blocks_of_the_day_it_was_made(opened: Session) -> None:
    """What had begun then is read, also by questions that are made of it."""
    question = opened.sql("SELECT COUNT(*) AS n FROM visits")
    (scan,) = scans(question.within(max_rows=2)._plan.job.relation)
    assert scan.blocks == MONTHS.begun(dt.datetime.now(dt.UTC).date())
    assert NULL in scan.blocks


def test_a_table_without_blocks_is_one_block(tmp_path) -> None:
    """Beside tables that have them it is charged by all who read it, and only by these."""
    asked = policy(tmp_path)
    asked["units"] = {"patient": {"columns": {"visits": "patient", "people": "patient"}}}
    asked["tables"]["people"] = {"unit": "patient", "max_groups": 1, "max_rows": 1}
    for table in asked["tables"].values():
        table["max_join_rows"] = 5
    people = pl.DataFrame({"patient": range(40), "born": ["x"] * 40})
    with dither.open(asked, sources={"visits": VISITS, "people": people}) as session:
        session.sql("SELECT COUNT(*) AS n FROM people").release(1)
        session.sql(
            "SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.patient = p.patient "
            f"WHERE {IN_MARCH}"
        ).release(1)
        whole = BlockSet.of_table("people")
        assert charged(session) == [whole, whole | MARCH]


def test_a_policy_that_cuts_otherwise_is_refused(tmp_path) -> None:
    """Once something was spent, by another length, another column, or another reading of it."""
    asked = policy(tmp_path)
    with dither.open(asked, sources={"visits": VISITS}) as session:
        session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
    asked["tables"]["visits"]["block"]["every"] = "week"
    with pytest.raises(LedgerError):
        dither.open(asked, sources={"visits": VISITS})
    asked["tables"]["visits"]["block"]["every"] = "month"
    both = VISITS.with_columns(pl.col("day").alias("seen"))
    asked["tables"]["visits"]["block"]["column"] = "seen"
    with pytest.raises(LedgerError):
        dither.open(asked, sources={"visits": both})
    asked["tables"]["visits"]["block"]["column"] = "day"
    text = VISITS.with_columns(pl.col("day").cast(pl.String))
    asked["tables"]["visits"]["columns"]["day"] = {"type": "date", "null_values": ["2024-01-01"]}
    with pytest.raises(LedgerError):
        dither.open(asked, sources={"visits": text})


def test_a_replay_costs_nothing_in_any_month(opened: Session) -> None:
    """Under its token an answer comes back, whatever its blocks have left."""
    assert not KINDS["sql"](opened).replayed
    question = opened.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {IN_MARCH}")
    told = question.release(1, token="march")
    again = opened.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {IN_MARCH}").release(
        1, token="march"
    )
    assert again.replayed
    assert again.frame.equals(told.frame)
    assert len(charged(opened)) == 2


def test_another_month_makes_another_question_of_the_same_text(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reads all that has begun reads more by then: an earlier answer is not its answer."""
    text = "SELECT COUNT(*) AS n FROM visits"
    before = opened.sql(text)._request(Fraction(1), None, 0.95).data.digest
    assert opened.sql(text)._request(Fraction(1), None, 0.95).data.digest == before
    march = opened.sql(f"{text} WHERE {IN_MARCH}")._request(Fraction(1), None, 0.95).data.digest

    def later(schema: Schema) -> Schema:
        return replace(schema, today=dt.date(2999, 1, 1))

    monkeypatch.setattr(sessions, "_today", later)
    assert opened.sql(text)._request(Fraction(1), None, 0.95).data.digest != before
    again = opened.sql(f"{text} WHERE {IN_MARCH}")._request(Fraction(1), None, 0.95).data.digest
    assert again == march


def test_a_certificate_of_other_blocks_does_not_agree(opened: Session) -> None:
    """The ledger says which were charged."""
    body = KINDS["sql"](opened).certificate.to_dict()
    body["blocks"]["ranges"] = [[24291, 24291]]
    body["digest"] = _digest(body)
    with pytest.raises(CertificateError, match="other blocks"):
        dither.verify(body, opened.ledger)


def test_a_question_about_nothing_is_not_charged(opened: Session) -> None:
    with pytest.raises(QueryError, match="block that has begun"):
        opened.sql("SELECT COUNT(*) AS n FROM visits WHERE day > '2999-01-01'")
    assert charged(opened) == []


def test_the_ledger_takes_no_charge_without_blocks(opened: Session) -> None:
    """A kind of question that forgot them is refused, and nothing is charged."""
    made = opened.sql("SELECT COUNT(*) AS n FROM visits")._request(Fraction(1), None, 0.95)
    object.__setattr__(made, "blocks", None)
    with pytest.raises((ArgumentError, EngineError)):
        made.release()
    with pytest.raises(ArgumentError):
        made.charge(None)
    assert charged(opened) == []

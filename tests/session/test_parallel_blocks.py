"""A question by month under a budget for each: what it costs, says and gives."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import dither
from dither.errors import ArgumentError, BudgetError, CertificateError, TokenError
from dither.session._certificate import digest_of
from dither.session._session import Session

REGIONS = ("north", "south", "east")
VISITS = pl.DataFrame(
    [
        {
            "patient": p,
            "day": dt.date(2024, month, 1 + p % 28),
            "region": r,
            "cost": (p + month) % 10,
        }
        for p in range(30)
        for month in range(1, 7)
        for r in REGIONS
    ]
)
BY_MONTH = "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1"
BOTH = BY_MONTH.replace("COUNT", "region, COUNT").replace("BY 1", "BY 1, 2")
HALF_A_YEAR = range(2024 * 12, 2024 * 12 + 6)


def policy(folder: Any, **more: Any) -> dict[str, Any]:
    """Visits of six months; each has a budget of 1, and all have 4."""
    return {
        "budget": {
            "epsilon": 1,
            "per": "block",
            "lifetime": {"epsilon": 4},
            "ledger": str(folder / "visits.ledger"),
        },
        "tables": {
            "visits": {
                "unit": "patient",
                "max_groups": 2,
                "max_rows": 3,
                "block": {"column": "day", "every": "month"},
                "columns": {
                    "day": {"bounds": [dt.date(2024, 1, 1), dt.date(2024, 6, 30)]},
                    "region": {"values": list(REGIONS), "nullable": False},
                    "cost": {"type": "integer", "bounds": [0, 9], "nullable": False},
                },
            }
        },
        **more,
    }


def spent(session: Session) -> tuple[Fraction, set[Fraction]]:
    """Epsilon in all, and of each month."""
    balance = session.balance()[0]
    assert balance.blocks is not None
    return balance.spent.epsilon, {balance.blocks.of(month).epsilon for month in HALF_A_YEAR}


@pytest.fixture
def opened(tmp_path):
    with dither.open(policy(tmp_path), sources={"visits": VISITS}) as session:
        yield session


def test_each_month_bears_epsilon_and_the_lifetime_all_of_them(opened: Session) -> None:
    """And every text that says what it costs says both."""
    question = opened.sql(BY_MONTH)
    assert question.loss(0.2).charge.epsilon == Fraction(6, 5)
    assert question.affordable(0.2).times == 3
    explained = str(question.explain(0.2))
    assert "each by itself; 6 blocks charged" in explained
    assert "at most ε = 0.2; below, of all 6" in explained
    assert "in at most 1 group of each block" in explained
    release = question.release(0.2)
    assert spent(opened) == (Fraction(6, 5), {Fraction(1, 5)})
    assert "ε = 0.2 in each of 6 blocks, ε = 1.2 in all" in release.summary()
    assert release.certificate.content["steps"] == 6
    assert opened.ledger.verify().ok
    with pytest.raises(BudgetError, match=r"fits with epsilon = 0\.466\.") as refused:
        question.release(0.5)
    assert "all blocks together have epsilon 2.8 left" in str(refused.value)
    question.release(Fraction(46, 100))
    assert spent(opened)[0] == Fraction(6, 5) + 6 * Fraction(46, 100)


def test_every_patient_counts_in_every_month(opened: Session) -> None:
    """All rows of the months, with the noise of one month; together one month a patient is kept."""
    question = opened.sql(BOTH)
    plan = question._plan
    exact = opened._engine.run(plan.job, plan.schema, b"sixteen bytes...")
    by_month: dict[Any, int] = {}
    for (month, _), (rows,) in by_group(exact).items():
        by_month[month] = by_month.get(month, 0) + rows
    # Of three regions two are kept of each patient, in each month anew.
    assert by_month == dict.fromkeys(by_month, 60)
    assert len(by_month) == 6
    together = question.within(by_block=False)
    whole = opened._engine.run(together._plan.job, plan.schema, b"sixteen bytes...")
    assert sum(rows for (rows,) in by_group(whole).values()) == 60
    assert question.preview(0.1).widths["n"][0] == pytest.approx(
        together.preview(0.1).widths["n"][0], rel=0.01
    )


def by_group(answer: Any) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """The integers of each group."""
    from conformance.engines import by_group as found

    return found(answer)


def test_it_can_be_asked_of_all_months_together(opened: Session) -> None:
    """For one epsilon in all, within limits over all of them."""
    question = opened.sql(BY_MONTH).within(by_block=False)
    assert "by_block = FALSE" in question.sql
    question.release(0.2)
    assert spent(opened) == (Fraction(1, 5), {Fraction(1, 5)})
    again = opened.sql(question.sql)
    assert again._plan == question._plan
    assert question.within(by_block=True)._plan.blocks == opened.sql(BY_MONTH)._plan.blocks
    with pytest.raises(ArgumentError, match="by_block must be"):
        question.within(by_block="no")  # type: ignore[arg-type]


def test_a_token_names_one_of_the_two(opened: Session) -> None:
    """They are two requests: neither replays the other, and each replays itself."""
    question = opened.sql(BY_MONTH)
    first = question.release(0.1, token="monday")
    assert question.release(0.1, token="monday").frame.equals(first.frame)
    with pytest.raises(TokenError):
        question.within(by_block=False).release(0.1, token="monday")
    assert question.release(0.1, reuse=True).replayed
    assert spent(opened) == (Fraction(6, 10), {Fraction(1, 10)})


def test_a_certificate_says_how_blocks_were_read(opened: Session) -> None:
    """One that says they were read together does not agree with its ledger."""
    certificate = opened.sql(BY_MONTH).release(0.1).certificate
    dither.verify(certificate, opened.ledger)
    body = certificate.to_dict()
    del body["blocks"]["parallel"]
    body["digest"] = digest_of(body)
    with pytest.raises(CertificateError, match="other blocks"):
        dither.verify(body, opened.ledger)


def test_quotas_bear_what_they_limit(tmp_path) -> None:
    """What one question may cost is that of all steps; what an analyst may ask of a month, one."""
    ann = {"epsilon": 0.5, "most": {"epsilon": 0.5}}
    asked = policy(tmp_path, quotas={"analysts": {"ann": ann}})
    with dither.open(asked, sources={"visits": VISITS}, analyst="ann") as session:
        question = session.sql(BY_MONTH)
        with pytest.raises(BudgetError, match="question"):
            question.release(0.1)
        question.release(Fraction(1, 20))
        quota = next(b for b in session.balance() if b.name.startswith("analyst:ann:"))
        assert quota.blocks is not None
        assert quota.blocks.of(HALF_A_YEAR[0]).epsilon == Fraction(1, 20)
        found = question.affordable(Fraction(1, 20))
        assert (found.times, found.tightest) == (9, quota.name)


def test_a_reservation_is_used_by_the_question_it_is_for(opened: Session) -> None:
    """It keeps of each month its part."""
    question = opened.sql(BY_MONTH)
    until = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    kept = opened.reserve(3, until=until, question=question)
    balance = opened.ledger.balance(opened.balance()[0].name)
    assert balance.blocks is not None
    assert balance.blocks.of(HALF_A_YEAR[0]).epsilon == Fraction(1, 2)
    with pytest.raises(BudgetError, match="reserved"):
        question.release(0.6)
    assert kept.amount.epsilon == 3


def test_an_answer_is_topped_up(tmp_path) -> None:
    """The difference is charged to each month, and to the lifetime once for each."""
    asked = policy(tmp_path)
    asked["budget"] |= {
        "delta": 1e-5,
        "release_delta": 1e-7,
        "lifetime": {"epsilon": 4, "delta": 1e-4},
    }
    asked["tables"]["visits"] |= {"max_groups": 40, "max_rows": 1}
    asked["tables"]["visits"]["columns"]["region"]["values"] += [f"region {i}" for i in range(40)]
    with dither.open(asked, sources={"visits": VISITS}) as session:
        question = session.sql(BOTH)
        first = question.release(0.1)
        rho = session.balance()[0].spent.rho
        better = question.top_up(first, to_rho=2 * rho, same_data=True)
        balance = session.balance()[0]
        assert balance.blocks is not None
        assert balance.spent.rho == pytest.approx(2 * rho)
        assert balance.blocks.of(HALF_A_YEAR[0]).rho == pytest.approx(2 * rho / 6)
        width = [(f["n_upper"] - f["n_lower"]).max() for f in (first.frame, better.frame)]
        assert width[1] < 0.75 * width[0]
        assert session.ledger.verify().ok

"""One number over several blocks, each limited by itself: its price, its noise, its refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import dither
from dither.errors import QueryError
from dither.query._noise import plan_noise
from dither.query._running import SummedQuestion, summed, total_width
from dither.session._charged import charged_blocks
from dither.session._session import Session
from service.schedule.visits import COUNT, PER_DAY, VISITS, opened, policy

FOUR = COUNT + " WHERE day >= '2024-01-01' AND day < '2024-01-05'"


@pytest.fixture
def session(tmp_path: Any) -> Any:
    """Visits by day, at most two of a patient on each."""
    made = policy(tmp_path)
    made["budget"] |= {"epsilon": 10**4, "lifetime": {"epsilon": 10**5}}
    with opened(made) as found:
        yield found


def spent(session: Session) -> tuple[Any, list[Any]]:
    """Of all, and of each of six days."""
    balance = session.balance()[0]
    assert balance.blocks is not None
    first = 738886  # 2024-01-01
    return balance.spent, [balance.blocks.of(first + i) for i in range(6)]


def test_each_block_bears_epsilon_once_and_the_lifetime_for_each(session: Session) -> None:
    """By epsilon alone: m changes of one draw cost m squared of rho, and not m."""
    question = summed(session.sql(FOUR))
    assert isinstance(question, SummedQuestion)
    question.release(Fraction(1, 2), 0)
    whole, days = spent(session)
    assert (whole.epsilon, whole.delta, whole.rho) == (2, 0, None)
    assert [one.epsilon for one in days] == [Fraction(1, 2)] * 4 + [0, 0]
    assert [one.rho for one in days[:4]] == [None] * 4
    loss = question._request(Fraction(1, 2), 0, 0.95).loss
    # Somebody on all four days: what four changes of one draw of pure noise lose.
    assert loss.delta(2.0) == 0
    assert loss.delta(1.9) > 0
    assert question.loss(Fraction(1, 2), 0).charge == loss.charge
    assert "each by itself" in str(question.explain(Fraction(1, 2), 0))


def test_each_block_is_limited_by_itself(tmp_path: Any) -> None:
    """The exact number is that of all days, each with two rows of a patient."""
    made = policy(tmp_path)
    made["budget"] |= {"epsilon": 10**6, "lifetime": {"epsilon": 10**8}}
    with opened(made) as session:
        found = summed(session.sql(FOUR)).release(10**5, 0)
        assert found.frame["n"].item() == 4 * PER_DAY
        costs = COUNT.replace("COUNT(*)", "SUM(cost)") + FOUR.removeprefix(COUNT)
        rows = VISITS.filter(pl.col("day") < pl.date(2024, 1, 5))
        kept = rows.group_by("day", "patient").agg(pl.col("cost").head(2).sum())["cost"].sum()
        assert summed(session.sql(costs)).release(10**5, 0).frame["n"].item() == kept


def test_its_noise_is_that_of_one_block(session: Session) -> None:
    """Laplace's law of scale max_rows / epsilon, whatever the number of blocks; 6 sigma."""
    question, epsilon = summed(session.sql(FOUR)), Fraction(1)
    noise = np.array(
        [question.release(epsilon, 0).frame["n"].item() - 4 * PER_DAY for _ in range(16)]
    )
    q = math.exp(-0.5)
    sigma = math.sqrt(2 * q) / (1 - q)
    assert abs(noise.mean()) < 6 * sigma / math.sqrt(16)
    assert sigma / 3 < noise.std() < sigma * 3
    certificate = question.release(epsilon, 0).certificate.to_dict()
    (measured,) = certificate["measurements"]
    assert (measured["l1"], measured["scale"]) == ("2", "2")
    assert certificate["steps"] == 4
    assert dither.verify(certificate, session.ledger).ok


def test_where_a_row_is_the_unit_nothing_changes(tmp_path: Any) -> None:
    """It lies in one block: the lifetime bears epsilon once, and rho as ever."""
    with opened(policy(tmp_path, unit=False)) as session:
        question = session.sql(FOUR)
        assert summed(question) is question
    with opened(policy(tmp_path / "..", ledger=str(tmp_path / "other"))) as session:
        one = session.sql(COUNT + " WHERE day = '2024-01-01'")
        assert summed(one) is one


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT COUNT(DISTINCT patient) AS n FROM visits", "distinct people"),
        ("SELECT AVG(cost) AS n FROM visits", "whole numbers"),
        ("SELECT COUNT(*) AS n, COUNT(*) AS m FROM visits", "one number"),
        ("SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost", "one number"),
        ("SELECT COUNT(*) AS n FROM (SELECT patient, day FROM visits GROUP BY 1, 2)", "one table"),
    ],
)
def test_what_does_not_add_up_is_refused(session: Session, text: str, says: str) -> None:
    """Before anything is charged."""
    where = FOUR.removeprefix(COUNT)
    parts = text.partition(" GROUP BY cost")
    with pytest.raises(QueryError, match=says):
        summed(session.sql(parts[0] + where + parts[1]))
    assert spent(session)[0].epsilon == 0


def test_the_width_of_a_sum_is_that_of_its_noises(session: Session) -> None:
    """Of one it is that of a preview; of several it holds the sum of as many draws."""
    question = summed(session.sql(FOUR))
    one = total_width(question, Fraction(1), 1, 0.95)
    assert one == pytest.approx(question.preview(1, 0).widths["n"][0], rel=1e-9)
    four = total_width(question, Fraction(1), 4, 0.95)
    assert one * 1.5 < four < one * 4
    rng = np.random.default_rng(7)
    q = math.exp(-0.5)
    draws = rng.geometric(1 - q, (20_000, 4)) - rng.geometric(1 - q, (20_000, 4))
    missed = float((np.abs(draws.sum(axis=1)) > four).mean())
    assert missed < 0.05 + 6 * math.sqrt(0.05 * 0.95 / 20_000)


def test_an_audit_does_not_refute_it(tmp_path: Any) -> None:
    """Somebody on all four days, as a black box: 4 epsilon holds, and one epsilon is refuted."""
    without = VISITS.filter(pl.col("patient") != 29)
    asked = {}
    for name, visits in (("with", VISITS), ("without", without)):
        with opened(policy(tmp_path, ledger=str(tmp_path / name)), visits) as session:
            question = summed(session.sql(FOUR))
            assert isinstance(question, SummedQuestion)
            job, schema = question._apart.job, question._apart.schema
            # Which two rows of a day are kept changes no count: read once, it is always the same.
            with charged_blocks(question._apart.blocks):
                answer = session._opened.engine.run(job, schema, bytes(32))
            engine = SimpleNamespace(run=lambda *_, a=answer: a)
            question._opened = SimpleNamespace(engine=engine)  # type: ignore[assignment]
            of_all = plan_noise(question._plan, Fraction(1, 4), Fraction(0))
            asked[name] = partial(question._sum, of_all, bytes(32))

    def mechanism(name: str) -> int:
        return int(asked[name]().values[0][0])

    given: dict[str, Any] = {"samples": 1_500, "vectorised": False, "delta": 0.0}
    assert dither.audit(mechanism, "with", "without", epsilon=1.0, **given).verdict != "violated"
    assert dither.audit(mechanism, "with", "without", epsilon=0.25, **given).verdict == "violated"

"""Quotas, prices and forecasts as somebody meets them who asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction as F

import polars as pl
import pytest

import dither as dt
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError
from dither.ledger import Balance
from dither.privacy import Charge, Promise
from dither.session._pricing import MOST, Price, affordable, price_list
from ledger.clocks import ledgers_clock
from query.query_data import policy

COUNT = "SELECT COUNT(*) AS n FROM visits"
PURE = {"epsilon": 8, "delta": 0}


@pytest.fixture
def clock(monkeypatch):
    """What the machine's clock says: the last of these."""
    return ledgers_clock(monkeypatch, datetime(2024, 2, 4, 23, 30, tzinfo=UTC))


REFUSALS = [
    ({"analysts": {"ana": {"epsilon": 1}}}, "1.1", r"'analyst:ana:pid of visits' \(an analyst's"),
    (
        {"groups": {"g": {"members": ["ana"], "epsilon": 1}}},
        "1.1",
        r"'group:g:pid of visits' \(a group's quota\)",
    ),
    ({"purposes": {"audit": {"epsilon": 1}}}, "1.1", r"'purpose:audit:pid of visits' \(a purpose"),
    ({"most": {"epsilon": 1}}, "1.1", "'everybody@question:pid of visits'.*ε 1 a question"),
    (
        {"rate": {"every": "week", "epsilon": 1}},
        "1.1",
        "'everybody@week:pid of visits'.*What remains in 2024-W05: epsilon 1",
    ),
    ({"unlock": {"every": "week", "parts": 8}}, "1.1", "'everybody@unlock:pid of visits'.*8 parts"),
]


@pytest.mark.parametrize(("quotas", "epsilon", "words"), REFUSALS)
def test_a_refusal_names_the_quota_and_what_fits(tmp_path, frames, clock, quotas, epsilon, words):
    """Of each kind; nothing is charged to any account, and what it names is released."""
    made = policy(tmp_path, budget=PURE, quotas=quotas)
    who = {"analyst": "ana"} if {"analysts", "groups"} & set(quotas) else {}
    who |= {"purpose": "audit"} if "purposes" in quotas else {}
    with dt.open(made, sources=frames, **who) as session:
        question = session.sql(COUNT)
        with pytest.raises(BudgetError, match=rf"(?s){words}.*fits with epsilon = 1\."):
            question.release(epsilon)
        assert all(balance.spent.free for balance in session.balance())
        assert question.affordable("0.25").times == (8 * 4 if "most" in quotas else 4)
        assert question.release(1).certificate.to_dict()["ledger"]["accounts"] == [
            balance.name for balance in session.balance()
        ]
        assert session.ledger.verify().ok


def test_a_quota_is_of_each_block_where_the_budget_is(tmp_path):
    """So that quotas add up to what a block has; a rate is of all blocks together."""
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 4, 30), "1d", eager=True)
    visits = pl.DataFrame({"pid": range(len(days)), "day": days, "cost": [1.0] * len(days)})
    made = {
        "budget": {"epsilon": 1, "per": "block", "ledger": str(tmp_path / "visits.ledger")},
        "quotas": {
            "analysts": {"ana": {"epsilon": "0.5"}, "ben": {"epsilon": "0.5"}},
            "rate": {"every": "year", "epsilon": 2},
        },
        "tables": {
            "visits": {
                "unit": "pid",
                "max_groups": 1,
                "max_rows": 1,
                "block": {"column": "day", "every": "month"},
                "columns": {"day": {"bounds": ["2024-01-01", "2024-12-31"], "nullable": False}},
            }
        },
    }
    january = f"{COUNT} WHERE day < DATE '2024-02-01' AND day >= DATE '2024-01-01'"
    february = f"{COUNT} WHERE day >= DATE '2024-02-01' AND day < DATE '2024-03-01'"
    with dt.open(made, sources={"visits": visits}, analyst="ana") as ana:
        ana.sql(january).release("0.5")
        with pytest.raises(
            BudgetError, match=r"an analyst's quota.*2024-01 has nothing left|0 left"
        ):
            ana.sql(january).release("0.1")
        assert ana.sql(january).affordable("0.1").times == 0
        assert ana.sql(february).affordable("0.1").times == 5
        ana.sql(february).release("0.5")
    with dt.open(made, sources={"visits": visits}, analyst="ben") as ben:
        ben.sql(january).release("0.5")
        assert ben.sql(january).affordable("0.1").tightest == "dataset:pid of visits"
        assert ben.ledger.verify().ok


def test_prices_together_in_either_order(tmp_path, frames):
    """In the given order what does not fit is left out; otherwise the largest number fits."""
    made = policy(tmp_path, budget={"epsilon": 1, "delta": 0})
    with dt.open(made, sources=frames) as session:
        count = session.sql(COUNT)
        given = session.price([count, count, count], epsilon="0.4")
        assert (given.fitting, given.all_fit) == ((0, 1), False)
        assert given.totals["pid of visits"].epsilon == F(6, 5)
        assert "2 fit (in the given order): 1, 2" in str(given)
        assert session.price([count], epsilon=1).all_fit
        assert all(balance.spent.free for balance in session.balance())
        with pytest.raises(ArgumentError, match="at least one question"):
            session.price([], epsilon=1)
        with pytest.raises(ArgumentError, match="epsilon must be given"):
            session.price([count])
        with pytest.raises(ArgumentError, match='order must be "given" or "most"'):
            session.price([count], epsilon=1, order="least")
        for bad in (0, -1, "nan", 10**30):
            with pytest.raises(ArgumentError, match="epsilon"):
                session.price([count], epsilon=bad)
            with pytest.raises(ArgumentError, match="epsilon"):
                count.affordable(bad)
        with (
            dt.open(made, sources=frames) as other,
            pytest.raises(ArgumentError, match="of this session"),
        ):
            other.price([count], epsilon=1)
        with pytest.raises(ArgumentError, match="not released yet"):
            session.price(["SELECT"], epsilon=1)


def balances(session, spent):
    """One account of epsilon 1 and delta 1e-6 that has spent this."""
    caps = BudgetFilter(1, F(1, 10**6))
    return [session.Balance.of("dataset:p", spent.promise, caps, spent, None)]


def test_the_largest_number_is_found():
    """Where the cheapest first would leave room for fewer, by two rules that prices load unlike."""
    from dither import ledger
    from dither.privacy import Promise

    promise = Promise("p")
    prices = [Price(Charge.pure(F(e), promise), promise) for e in ("0.7", "0.5", "0.5", "0.2")]
    most = price_list(prices, lambda p: balances(ledger, Charge(promise=p)), "most")
    assert (len(most.fitting), most.exact) == (2, True)
    assert most.fitting == (3, 1)
    given = price_list(prices, lambda p: balances(ledger, Charge(promise=p)), "given")
    assert given.fitting == (0, 3)
    many = price_list(prices * 4, lambda p: balances(ledger, Charge(promise=p)), "most")
    assert not many.exact
    assert "the cheapest first" in str(many)


@pytest.mark.parametrize("spent", [Charge.pure(F(1, 3)), Charge.concentrated(F(1, 1000))])
@pytest.mark.parametrize(
    "charge", [Charge.pure(F(1, 7)), Charge.concentrated(F(1, 900)), Charge.pure(F(3, 1000))]
)
def test_how_many_more_is_exact_by_both_rules(spent, charge):
    """The number itself is admitted after as many charges, one more is not."""
    from dither import ledger
    from dither.privacy import Promise

    promise = Promise("p")
    held = balances(ledger, spent.promising(promise))
    price = Price(charge.promising(promise), promise)
    times = affordable(price, held).times
    total = spent.promising(promise).rounded_up(ledger.UNIT)
    for _ in range(times):
        total = total + price.charge.rounded_up(ledger.UNIT)
    caps = held[0].caps
    assert times == 0 or caps.admits(total)
    assert not caps.admits(total + price.charge.rounded_up(ledger.UNIT))
    tiny = Price(Charge.pure(F(1, 10**18), promise), promise)
    if spent.epsilon is not None:
        assert affordable(tiny, held).times == MOST


@pytest.mark.parametrize("times", [1, 7, 2**29 - 1, 2**29 + 1, MOST - 1, MOST, MOST + 1])
def test_how_many_fit_is_exact_up_to_where_nobody_counts(times):
    """Between powers of two as at them, and not one more than there are."""
    promise = Promise("patient")
    one = Charge.pure(F(1), promise)
    held = [Balance.of("visits", promise, BudgetFilter(F(times)), Charge(promise=promise), None)]
    assert affordable(Price(one, promise), held).times == min(times, MOST)


def test_forecasts_follow_charges_and_hours(tmp_path, frames, clock):
    """A quarter in ten days lasts for thirty more; without a charge there is no pace."""
    made = policy(tmp_path, budget=PURE, quotas={"rate": {"every": "year", "epsilon": 8}})
    with dt.open(made, sources=frames) as session:
        assert session.balance()[0].forecast().reason == "nothing was charged yet"
        session.sql(COUNT).release(1)
        assert "less than a day" in str(session.balance()[0].forecast())
        clock.append(clock[0] + timedelta(days=10) - timedelta(hours=1))
        session.sql(COUNT).release(1)
        whole, rate = session.balance()
        assert whole.forecast().describe() == "at this pace until 2024-03-15"
        assert rate.forecast().until is None
        session.sql(COUNT).release(6)
        assert session.balance()[0].forecast().describe() == "spent"


def test_a_reservation_is_used_by_its_holder(tmp_path, frames):
    """In a session: others are refused, the holder asks, certificate and token hold as ever."""
    made = policy(tmp_path, budget={"epsilon": 1, "delta": "1e-6"})
    until = datetime.now(UTC) + timedelta(days=2)
    with dt.open(made, sources=frames) as session:
        kept = session.reserve("0.6", until=until)
        question = session.sql(COUNT)
        with pytest.raises(BudgetError, match=r"Others have reserved.*fits with epsilon = 0\.4\."):
            question.release("0.5")
        assert question.affordable("0.2").times == 2
        with session.using(kept.id):
            assert question.affordable("0.2").times == 3
            release = question.release("0.5", token="t")
            with pytest.raises(BudgetError, match=r"a reservation.*fits with epsilon = 0\.1\."):
                question.release("0.2")
        assert question.release("0.5", token="t").replayed
        release.certificate.save(tmp_path / "cert.json")
        assert dt.verify(tmp_path / "cert.json", session.ledger.place).ok
        assert session.ledger.verify().ok
        for bad in (0, -1, "nan", 10**30):
            with pytest.raises(ArgumentError, match="epsilon"):
                session.reserve(bad, until=until)
        for bad in ("soon", 3, "2001-01-01"):
            with pytest.raises(ArgumentError, match="until"):
                session.reserve("0.1", until=bad)
        with pytest.raises(ArgumentError, match="unit: no 'cat'"):
            session.reserve("0.1", until=until, unit="cat")

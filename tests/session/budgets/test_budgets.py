"""Refusals that say what fits, and accounts of analysts."""

from __future__ import annotations

import re
import shutil
from fractions import Fraction

import pytest

import dither as dt
from dither.errors import BudgetError, LedgerCorruptError, LedgerError
from dither.query._noise import plan_noise
from query.query_data import policy

COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
MANY = "SELECT region, COUNT(*) AS n, AVG(cost) AS m, MEDIAN(age) AS q FROM visits GROUP BY region"


def suggested(error):
    """The (epsilon, delta or None) that a refusal says would fit."""
    found = re.search(
        r"fits with epsilon = ([\d.e+-]+?)(?: and delta = ([\d.e+-]+))?\.$", str(error)
    )
    assert found, str(error)
    return found[1], found[2]


@pytest.mark.parametrize(
    "budget", [{"epsilon": 1, "delta": 0}, {"epsilon": 1}, {"epsilon": "0.777"}]
)
@pytest.mark.parametrize("text", [COUNT, MANY])
@pytest.mark.parametrize("before", [None, "0.123"])
def test_the_suggestion_fits_and_nothing_larger_does(tmp_path, frames, budget, text, before):
    """In three digits: one step more is refused, the suggestion itself is released."""
    with dt.open(policy(tmp_path, budget=budget), sources=frames) as opened:
        question = opened.sql(text)
        if before:
            question.release(before)
        with pytest.raises(
            BudgetError, match=r"nothing was spent. What remains: epsilon"
        ) as caught:
            question.release(50)
        epsilon, delta = suggested(caught.value)
        assert delta is None
        best = Fraction(epsilon)
        step = Fraction(10) ** (len(str(int(best * 1000))) - 6)
        balance = opened.balance()[0]
        more = plan_noise(question._plan, best + step, opened.policy.release_delta).charge
        assert not balance.caps.admits(balance.spent + more)
        assert question.release(epsilon).frame.height == 4
        with pytest.raises(BudgetError):
            question.release(epsilon)


def test_a_smaller_delta_is_suggested_where_that_is_what_is_missing(session):
    """Asking for all of the policy's delta never fits; a share of it does."""
    question = session.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
    with pytest.raises(BudgetError) as caught:
        question.release(1, delta="9e-7")
    epsilon, delta = suggested(caught.value)
    assert (epsilon, delta) == ("1", "6.25e-8")
    assert question.release(epsilon, delta=delta).frame.width == 4


def test_nothing_fits_an_empty_account(tmp_path, frames):
    """Then the owner is named."""
    with dt.open(policy(tmp_path, budget={"epsilon": 1, "delta": 0}), sources=frames) as opened:
        question = opened.sql(COUNT)
        question.release(1)
        with pytest.raises(
            BudgetError, match=r"Not even epsilon = 0.001 would fit; ask the data owner"
        ):
            question.release("0.1")


def test_a_budget_is_spent_by_the_better_rule(tmp_path, frames):
    """Many small Gaussian releases fit by zCDP that would not fit by adding up."""
    made = policy(tmp_path, budget={"epsilon": 1, "delta": "1e-6"}, visits={"max_groups": 50})
    with dt.open(made, sources=frames) as opened:
        question = opened.sql("SELECT FLOOR(age / 2) AS a, COUNT(*) AS n FROM visits GROUP BY a")
        for _ in range(15):
            question.release("0.1")
        balance = opened.balance()[0]
    assert balance.spent.epsilon > 1
    assert balance.caps.admits(balance.spent)


def test_analysts_have_caps_of_their_own(tmp_path, frames):
    """Both accounts bear a charge; either can refuse it; one analyst's does not touch another's."""
    made = policy(
        tmp_path,
        budget={"epsilon": 2, "delta": 0},
        quotas={"first_come": True},
        analysts={"ana": {"epsilon": 1}, "ben": {"epsilon": 2}},
    )
    with dt.open(made, sources=frames, analyst="ana") as ana:
        with pytest.raises(
            BudgetError, match=r"account 'analyst:ana:pid of visits' .* cannot bear"
        ) as caught:
            ana.sql(COUNT).release("1.5")
        assert suggested(caught.value)[0] == "1"
        ana.sql(COUNT).release("0.7", token="t")
        assert {b.name: b.spent.epsilon for b in ana.balance()} == {
            "dataset:pid of visits": Fraction(7, 10),
            "analyst:ana:pid of visits": Fraction(7, 10),
        }
    with dt.open(made, sources=frames, analyst="ben") as ben:
        assert [b.spent.epsilon for b in ben.balance()] == [Fraction(7, 10), 0]
        with pytest.raises(
            BudgetError, match=r"account 'dataset:pid of visits' .* cannot bear"
        ) as caught:
            ben.sql(COUNT).release("1.4")
        assert suggested(caught.value)[0] == "1.3"
        # A token of ana's says nothing to ben: his own of that name is charged.
        assert not ben.sql(COUNT).release("0.7", token="t").replayed
        entry = ben.sql(COUNT).release("0.6").certificate.to_dict()["ledger"]
        assert entry["accounts"] == ["dataset:pid of visits", "analyst:ben:pid of visits"]


def test_caps_cannot_be_edited_away(tmp_path, frames):
    """A policy whose caps differ from the ledger's is refused, and says how to amend them."""
    with dt.open(policy(tmp_path), sources=frames) as opened:
        opened.sql(COUNT).release("0.1")
    with pytest.raises(LedgerError, match="dither ledger amend"):
        dt.open(policy(tmp_path, budget={"epsilon": 80}), sources=frames)


def test_a_release_costs_what_was_asked(session):
    """The charge is epsilon exactly and at most delta; the summary and certificate agree."""
    release = session.sql(MANY).release("0.3", "1e-7")
    loss = release.certificate.to_dict()["loss"]
    spent = session.balance()[0].spent
    assert Fraction(loss["epsilon"]) == Fraction(3, 10) == spent.epsilon
    assert Fraction(loss["delta"]) <= Fraction(1, 10**7)
    assert spent.delta >= Fraction(loss["delta"])
    asked = session.sql(MANY).loss("0.3", "1e-7")
    assert asked.charge.rounded_up(Fraction(1, 10**18)) == spent
    assert {k: str(getattr(asked.charge, k)) for k in loss} == loss
    assert asked.epsilon(1e-6) < 0.3
    assert "ε = 0.3" in release.summary()


def test_caps_are_written_down_by_the_first_charge(tmp_path, frames):
    """Explaining and previewing leave the owner free to change the budget; a charge does not."""
    for epsilon in (1, 2):
        with dt.open(policy(tmp_path, budget={"epsilon": epsilon}), sources=frames) as opened:
            question = opened.sql(COUNT)
            question.explain("0.1")
            question.preview("0.1")
            assert opened.ledger.accounts() == []
    with dt.open(policy(tmp_path, budget={"epsilon": 2}), sources=frames) as opened:
        opened.sql(COUNT).release("0.1")
    with pytest.raises(LedgerError, match="caps"):
        dt.open(policy(tmp_path, budget={"epsilon": 3}), sources=frames)


def test_a_notebook_shows_the_cost_with_the_answers(session):
    """The frame as HTML, and below it what the summary says."""
    release = session.sql(COUNT).release("0.1")
    page = release._repr_html_()
    assert "<table" in page
    assert "cost: ε = 0.1" in page
    assert "protects one pid" in page


def test_a_session_refuses_an_older_copy_of_its_ledger(tmp_path, frames):
    """As it lives, and in the sessions that are opened after it: 1.5 of 1 was spent before."""
    made = policy(tmp_path, budget={"epsilon": 1})
    ledger, old = tmp_path / "visits.ledger", tmp_path / "old.ledger"
    with dt.open(made, sources=frames) as session:
        question = session.sql(COUNT)
        question.release("0.5")
        shutil.copyfile(ledger, old)
        question.release("0.5")
        shutil.copyfile(ledger, new := tmp_path / "new.ledger")
        shutil.copyfile(old, ledger)
        for call in (lambda: question.release("0.5"), session.balance):
            with pytest.raises(LedgerCorruptError, match="is not the ledger that it was"):
                call()
        assert "the ledger cannot be read" in repr(session)
        assert not session.ledger.verify().ok
        with pytest.raises(LedgerCorruptError, match="is not the ledger that it was"):
            dt.open(made, sources=frames)
        shutil.copyfile(new, ledger)
        with pytest.raises(BudgetError):
            question.release("0.5")

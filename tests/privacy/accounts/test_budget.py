"""The budget filter: what it admits, what it says is left, and its promise on a full game."""

import math
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.accounting import BudgetFilter, epsilon_of_rho, rho_of_epsilon
from dither.errors import ArgumentError
from dither.privacy import Charge

AMOUNTS = st.fractions(0, 3, max_denominator=1000)
RHOS = AMOUNTS.map(lambda x: x / 50)
DELTAS = AMOUNTS.map(lambda x: x / 10**7)
CHARGES = st.builds(Charge, st.none() | AMOUNTS, DELTAS, st.none() | RHOS, DELTAS)
FILTERS = st.builds(BudgetFilter, AMOUNTS.filter(bool), DELTAS.map(lambda x: 10 * x))


@given(FILTERS, CHARGES, CHARGES)
def test_admission_only_ever_closes(budget, a, b):
    """A total that is admitted had every smaller total admitted."""
    if budget.admits(a + b):
        assert budget.admits(a)
        assert budget.admits(b)


@given(FILTERS, CHARGES, CHARGES)
def test_what_is_left_is_what_fits(budget, spent, following):
    """A next charge is admitted exactly when one of the two remaining pairs bears it."""
    left = budget.remaining(spent)
    fits_basic = (
        left.epsilon is not None
        and left.delta is not None
        and following.epsilon is not None
        and following.epsilon <= left.epsilon
        and following.delta <= left.delta
    )
    fits_zcdp = (
        left.rho is not None
        and left.rho_delta is not None
        and following.rho is not None
        and following.rho <= left.rho
        and following.rho_delta <= left.rho_delta
    )
    assert budget.admits(spent + following) == (fits_basic or fits_zcdp)


@given(FILTERS)
def test_both_rules_keep_the_promise_together(budget):
    """The deltas of the two rules add up to at most delta; the zCDP cap converts to epsilon."""
    if budget.delta:
        cap = budget.rho
        assert cap is not None
        slack = 1 + F(1, 2**40)
        assert epsilon_of_rho(cap, budget.delta / 4) <= budget.epsilon * slack
        assert budget.basic_delta + budget.rho_delta + budget.delta / 4 <= budget.delta
    else:
        assert budget.rho is None


@given(FILTERS)
def test_written_and_read_back(budget):
    """A stored budget is the same budget."""
    assert BudgetFilter.from_dict(budget.to_dict()) == budget


def test_pure_budget():
    """With delta 0 epsilons add up to epsilon, and any delta is refused."""
    budget = BudgetFilter(F(1), F(0))
    assert budget.admits(Charge.pure(F(1, 2)) + Charge.pure(F(1, 2)))
    assert not budget.admits(Charge.pure(F(1)) + Charge.pure(F(1, 10**30)))
    assert not budget.admits(Charge(epsilon=F(1, 2), delta=F(1, 10**9)))
    assert budget.remaining(Charge.pure(F(2))).describe() == "nothing"


def test_zcdp_outlasts_basic():
    """Many small releases fit by the zCDP rule long after the basic rule is spent."""
    budget = BudgetFilter(F(1), F(1, 10**6))
    small = Charge.pure(F(1, 100))
    total, count = Charge(), 0
    while budget.admits(total + small):
        total, count = total + small, count + 1
    assert count == rho_of_epsilon(F(1), F(1, 4 * 10**6)) // (small.rho or 1)
    assert count > 300
    assert "zCDP" in budget.remaining(total).describe()
    assert "basic" not in budget.remaining(total).describe()


@pytest.mark.parametrize(
    ("epsilon", "delta", "name"),
    [(F(0), F(0), "epsilon"), (F(1), F(1), "delta"), (F(1), F(-1), "delta"), (True, F(0), "eps")],
)
def test_out_of_range(epsilon, delta, name):
    """A budget out of range is refused by name."""
    with pytest.raises(ArgumentError, match=name):
        BudgetFilter(epsilon, delta)


@pytest.mark.parametrize("stored", [{}, {"epsilon": "1/0", "delta": "0"}, {"epsilon": "x"}])
def test_damaged_store(stored):
    """A stored budget that is not one is refused."""
    with pytest.raises(ArgumentError, match="stored budget"):
        BudgetFilter.from_dict(stored)


def test_adaptive_game_stays_within_the_promise():
    """An adversary that picks each question from the answers keeps every view within the promise.

    It asks randomised response, boldly after a 1 and cautiously after a 0, until the filter refuses
    whatever it would ask. Views of equal charge, last answer and loss are pooled, so the two laws'
    hockey-stick divergence is computed over all views without listing them.
    """
    budget = BudgetFilter(F(1, 2), F(1, 4))
    menu = {0: (F(1, 20), F(1, 40)), 1: (F(1, 10), F(1, 20), F(1, 40))}
    views = {(Charge(), 0, F(0)): 1.0}
    divergence, longest, steps = 0.0, F(0), 0
    while views:
        following: dict[tuple[Charge, int, F], float] = {}
        for (total, last, loss), mass in views.items():
            fits = (e for e in menu[last] if budget.admits(total + Charge.pure(e)))
            epsilon = next(fits, None)
            if epsilon is None:
                divergence += mass * max(0.0, 1 - math.exp(float(budget.epsilon - loss)))
                longest = max(longest, total.epsilon or F(0))
                continue
            hit = 1 / (1 + math.exp(-float(epsilon)))
            after = total + Charge.pure(epsilon)
            for answer, step, chance in ((1, epsilon, hit), (0, -epsilon, 1 - hit)):
                key = (after, answer, loss + step)
                following[key] = following.get(key, 0.0) + mass * chance
        views, steps = following, steps + 1
    assert longest > 2 * budget.epsilon
    assert steps > 20
    assert 0 < divergence <= budget.delta


def test_caps_are_read_exactly():
    """Floats as they print, and a delta of 0 where there is none."""
    assert BudgetFilter(0.1, 1e-6) == BudgetFilter(F(1, 10), F(1, 10**6))
    assert BudgetFilter(epsilon=1.0) == BudgetFilter(F(1), F(0))
    assert BudgetFilter(0.1).to_dict() == {"epsilon": "1/10", "delta": "0"}


def test_each_rule_keeps_its_own_share_of_delta():
    """Charges with a delta of their own fit up to half of the cap, and up to a quarter in zCDP."""
    each = F(1, 10**6)
    two = 2 * Charge(epsilon=F(1, 10), delta=each, rho=None)
    assert not BudgetFilter(F(1), 3 * each).admits(two)
    assert BudgetFilter(F(1), 4 * each).admits(two)
    rare = Charge(epsilon=None, rho=F(1, 1000), rho_delta=2 * each)
    assert not BudgetFilter(F(1), 7 * each).admits(rare)
    assert BudgetFilter(F(1), 8 * each).admits(rare)

"""One loss: its exact charge, its promise, and the accounts that take it."""

from fractions import Fraction as F

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import accounting, local, privacy
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError, PromiseError
from dither.ledger import Ledger
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.privacy import Charge, Loss, Neighbours, Promise

PATIENT = Promise("patient")
REPLACED = Promise("patient", Neighbours.REPLACE)

EXACT = {
    "gaussian(1.1)": (privacy.gaussian(1.1), Charge(None, F(0), F(50, 121))),
    "gaussian(1/3)": (privacy.gaussian(F(1, 3)), Charge(None, F(0), F(9, 2))),
    "laplace(0.3)": (privacy.laplace(0.3), Charge.pure(F(10, 3))),
    "discrete_gaussian(0.7, 3)": (
        privacy.discrete_gaussian(0.7, sensitivity=3),
        Charge(None, F(0), F(450, 49)),
    ),
    "discrete_laplace(0.7, 3)": (
        privacy.discrete_laplace(0.7, sensitivity=3),
        Charge.pure(F(30, 7)),
    ),
    "pure(0.1)": (privacy.pure(0.1), Charge(F(1, 10), F(0), F(1, 200))),
    "pure(1/3)": (privacy.pure(F(1, 3)), Charge(F(1, 3), F(0), F(1, 18))),
    "approximate(0.1, 1e-6)": (
        privacy.approximate(0.1, 1e-6),
        Charge(F(1, 10), F(1, 10**6), F(1, 200), F(1, 10**6)),
    ),
    "exponential(0.1)": (privacy.exponential(0.1), Charge(F(1, 10), F(0), F(1, 800))),
    "zcdp(0.1)": (privacy.zcdp(0.1), Charge(None, F(0), F(1, 10))),
    "gdp(0.3)": (privacy.gdp(0.3), Charge(None, F(0), F(9, 200))),
    "tree": (privacy.tree_aggregation(4.0, 1000), Charge(None, F(0), F(10, 32))),
    "votes": (privacy.noisy_votes(40.0), Charge(None, F(0), F(1, 1600))),
    "votes told": (privacy.noisy_votes(40.0, votes=[9, 1]), Charge(None, F(0), None)),
    "renyi": (privacy.renyi({2.0: 0.1}), Charge(None, F(0), None)),
    "nothing": (Loss(), Charge()),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_amounts(name):
    """Floats are read as they print, fractions as they are; None is what nothing bounds."""
    loss, amounts = EXACT[name]
    assert loss.charge.amounts == amounts
    assert (3 * loss + loss).charge.amounts == 4 * amounts
    both = privacy.compose(loss, privacy.pure(0.5)).charge
    assert both.amounts == amounts + Charge.pure(F(1, 2))
    assert loss.free is (name == "nothing")


@pytest.mark.parametrize("name", [n for n in EXACT if n not in ("renyi", "votes told")])
@pytest.mark.parametrize("size", [2, 5])
def test_groups(name, size):
    """The charge of a group is the group's charge, and stays true of its loss."""
    loss, amounts = EXACT[name]
    group = loss.group(size)
    assert group.charge.amounts == amounts.grouped(size)
    if amounts.rho and not amounts.rho_delta:
        assert group.zcdp().lower <= float(group.charge.rho) * (1 + 1e-9)


def test_randomised_response_rounds_up():
    """rho = e·tanh(e/2) is irrational, and told as no less by no more than 2**-64."""
    charge = privacy.randomized_response(1.5, k=4).charge
    with mpmath.workdps(40):
        true = mpmath.mpf(1.5) * mpmath.tanh(mpmath.mpf(0.75))
        over = mpmath.mpf(charge.rho.numerator) / charge.rho.denominator - true
        assert 0 <= over <= mpmath.mpf(2) ** -64
    assert charge.epsilon == F(3, 2)


def test_a_pair_is_charged_its_largest_ratio():
    """log 2, rounded up in its last digits; mass that one law lacks is the delta."""
    charge = privacy.pair([0.5, 0.5], [0.25, 0.75]).charge
    with mpmath.workdps(60):
        over = mpmath.mpf(charge.epsilon.numerator) / charge.epsilon.denominator - mpmath.log(2)
        assert 0 <= over < 1e-30
    apart = privacy.pair([0.5, 0.3, 0.2], [0.5, 0.5, 0.0]).charge
    assert (apart.delta, apart.rho_delta) == (F(1, 5), F(1, 5))
    assert privacy.pair([0.5, 0.5], [0.5, 0.5]).charge.amounts == Charge()


@settings(deadline=None, max_examples=30)
@given(st.floats(0.01, 6), st.floats(0.001, 1), st.sampled_from(["add-remove", "replace", "fixed"]))
def test_samples_cost_what_amplification_says(epsilon, rate, how):
    """log(1 + g(e^ε - 1)), rounded up: at least the numeric loss of the sample, and near it."""
    if how == "fixed":
        n = round(1 / rate)
        loss = privacy.pure(epsilon, neighbours="replace").without_replacement(1, n)
        share, e = F(1, n), mpmath.mpf(epsilon)
    else:
        loss = privacy.pure(epsilon).poisson(rate, neighbours=how)
        share = F(repr(rate))
        e = mpmath.mpf(epsilon) * (2 if how == "replace" else 1)
    with mpmath.workdps(40):
        true = mpmath.log1p(mpmath.mpf(share.numerator) / share.denominator * mpmath.expm1(e))
        found = mpmath.mpf(loss.charge.epsilon.numerator) / loss.charge.epsilon.denominator
        assert true * (1 - mpmath.mpf(10) ** -15) <= found <= true * (1 + mpmath.mpf(10) ** -15)
    assert loss.epsilon(0.0).lower <= float(loss.charge.epsilon) * (1 + 1e-12)
    assert loss.charge.rho == loss.charge.epsilon**2 / 2
    assert (4 * loss).charge.epsilon == 4 * loss.charge.epsilon


def test_samples_of_other_kinds():
    """A Gaussian keeps its rho; a failure is sampled too; a truncated sample adds to delta."""
    assert privacy.gaussian(2.0).poisson(0.1).charge.amounts == Charge(None, F(0), F(1, 8))
    assert privacy.gaussian(2.0).poisson(0.1, neighbours="replace").charge.rho == F(1, 2)
    assert privacy.gaussian(2.0).without_replacement(1, 10).charge.rho == F(1, 2)
    narrow = privacy.exponential(0.1).poisson(0.9).charge
    assert narrow.rho == F(1, 800)
    failing = privacy.approximate(1.0, 1e-3).poisson(0.1)
    assert failing.charge.delta == failing.charge.rho_delta == F(1, 10**4)
    cut = privacy.pure(1.0).poisson(0.1, truncate=200, population=1000)
    assert cut.slack > 0
    epsilon = float(cut.charge.epsilon)
    assert cut.delta(epsilon).lower <= float(cut.charge.delta)
    assert float(cut.charge.delta) == pytest.approx(cut.slack * (1 + 2.718281828**epsilon))
    lost = privacy.gaussian(1.0).poisson(0.1, truncate=200, population=1000)
    assert (lost.charge.epsilon, lost.charge.rho) == (None, None)
    both = (privacy.gaussian(2.0) + privacy.laplace(2.0)).poisson(0.5).charge
    assert (both.epsilon, both.rho) == (None, F(1, 4))


def test_shuffled_reports_cost_one():
    """Exactly known is that of one report: the one that changes."""
    law = accounting.shuffle(1000, 1.0)
    assert float(law.loss().charge.epsilon) == pytest.approx(1)
    assert law.loss().charge.epsilon >= 1
    assert law.loss().neighbours is Neighbours.REPLACE


def test_promises():
    """A unit's name or a promise; another unit or other neighbours take a conversion."""
    loss = privacy.pure(1.0)
    assert (loss.promise, loss.charge.promise) == (None, None)
    assert loss.promising("patient").promise == loss.promising(PATIENT).charge.promise == PATIENT
    with pytest.raises(ArgumentError, match=r"neighbours='replace'.*to_replace"):
        loss.promising(REPLACED)
    with pytest.raises(ArgumentError, match=r"one patient, added or removed.*to_group"):
        loss.promising(PATIENT).promising("row")
    with pytest.raises(ArgumentError, match="promise must be a Promise"):
        loss.promising(3)
    assert loss.to_replace().promising(REPLACED).charge.epsilon == 2
    row = loss.promising("row")
    assert row.to_group("patient", 3).charge == row.charge.to_group("patient", 3)
    assert row.to_replace().charge == row.charge.to_replace()
    for convert in (lambda x: x.to_replace(), lambda x: x.to_group("patient", 2)):
        with pytest.raises(ArgumentError, match="added or removed"):
            convert(privacy.pure(1.0, neighbours="replace"))


@pytest.mark.parametrize("loss", [Loss(), privacy.pure(0.0), privacy.pure(0.0).promising("row")])
def test_a_free_loss_is_true_of_every_promise(loss):
    """It may be promised to anybody, and added to anything."""
    assert loss.free
    assert loss.promising(REPLACED).promise == REPLACED
    some = privacy.pure(1.0, neighbours="replace").promising(REPLACED)
    for total in (loss + some, some + loss, privacy.compose(loss, some, loss)):
        assert total.promise == REPLACED
        assert total.charge == some.charge


def test_different_promises_are_not_composed():
    """Approximately or exactly: nobody can say whom the sum protects."""
    one = privacy.approximate(1.0, 1e-6).promising("patient")
    for other in (privacy.gaussian(1.0).promising("row"), privacy.gaussian(1.0)):
        with pytest.raises(ArgumentError, match="cannot be added"):
            one + other
        with pytest.raises(ArgumentError, match="cannot be added"):
            privacy.compose(one, Loss(), other)
    with pytest.raises(ArgumentError, match="cannot be added"):
        one + privacy.approximate(1.0, 1e-6, neighbours="replace").promising("patient")


def test_a_charge_may_be_stated():
    """Amounts that were proved of a loss as a whole take the place of its parts'."""
    loss = (privacy.gaussian(3.0) + privacy.pure(0.5)).with_charge(Charge.pure(F(2), PATIENT))
    assert loss.charge.promise is None
    assert loss.charge.amounts == Charge.pure(F(2))
    both = loss + privacy.pure(0.5)
    assert both.charge.amounts == Charge.pure(F(2)) + Charge.pure(F(1, 2))
    assert (2 * loss).group(2).charge.amounts == 2 * Charge.pure(F(2)).grouped(2)
    with pytest.raises(ArgumentError, match="charge must be a Charge"):
        loss.with_charge(1.0)


def test_everything_goes_into_one_account(tmp_path):
    """A mechanism's loss, a step of training, a report and a promise: charged by the same call."""
    losses = [
        DiscreteLaplace(F(10)).loss(l1=1),
        DiscreteGaussian(F(1000)).loss(l2_squared=4),
        privacy.gaussian(50.0).poisson(0.01),
        privacy.noisy_votes(100.0),
    ]
    with Ledger.open(tmp_path / "one.ledger") as book:
        book.ensure_account("all", BudgetFilter(F(1), F(1, 10**6)), PATIENT)
        for i, loss in enumerate(losses):
            with pytest.raises(PromiseError, match="does not say whom it protects"):
                book.charge(["all"], loss, token=f"t{i}", request="ab" * 32, note={})
            book.charge(
                ["all"], loss.promising("patient"), token=f"t{i}", request="ab" * 32, note={}
            )
        spent = book.balance("all").spent
        report = local.GRR(4, epsilon=1).guarantee.loss().promising(REPLACED)
        with pytest.raises(PromiseError):
            book.charge(["all"], report, token="r", request="ab" * 32, note={})
        book.ensure_account("reports", BudgetFilter(F(1), F(0)), REPLACED)
        book.charge(["reports"], report, token="r", request="ab" * 32, note={})
    total = privacy.compose(*losses).promising(PATIENT).charge.rounded_up(F(1, 10**18))
    assert spent.epsilon is None
    assert total.rho <= spent.rho <= total.rho + F(4, 10**18)


def test_filters_take_losses():
    """Each in its own currency, for one promise."""
    step = privacy.gaussian(10.0).promising("patient")
    account = accounting.ZcdpFilter(F(1, 100)).charge(step)
    assert (account.spent, account.neighbours, account.unit) == (
        F(1, 200),
        Neighbours.ADD_REMOVE,
        "patient",
    )
    assert account.admits(step)
    assert not account.admits(3 * step)
    assert not account.admits(privacy.renyi({2.0: 0.1}).promising("patient"))
    with pytest.raises(BudgetError):
        account.charge(3 * step)
    with pytest.raises(ArgumentError, match="'replace'"):
        account.admits(privacy.gaussian(10.0, neighbours="replace"))
    with pytest.raises(ArgumentError, match="'row'"):
        account.admits(privacy.gaussian(10.0).promising("row"))
    with pytest.raises(ArgumentError, match="own"):
        account.admits(step, F(1, 2))
    assert not accounting.PureFilter(F(1)).admits(step)
    assert accounting.PureFilter(F(1)).charge(privacy.pure(0.25)).spent == F(1, 4)
    assert not accounting.PureFilter(F(1)).admits(privacy.approximate(0.25, 1e-6))
    assert accounting.GdpFilter(F(1, 50)).charge(step).spent == pytest.approx(F(1, 100))
    assert not accounting.GdpFilter(F(1, 200)).admits(step)
    with pytest.raises(ArgumentError, match="no mu"):
        accounting.GdpFilter(F(1)).admits(step.charge)
    renyi = accounting.RenyiFilter(F(1, 10), order=F(8))
    assert renyi.charge(step).spent == pytest.approx(F(4, 100))
    assert renyi.charge(step.charge).spent == F(4, 100)
    root = accounting.SqrtFilter(F(1), F(1, 10**6), F(1, 10**5))
    assert root.charge(privacy.approximate(0.01, 1e-6)).deltas == F(1, 10**6)
    meter = accounting.Odometer(F(1, 10**6), F(1, 100)).charge(privacy.pure(0.01))
    assert meter.total == F(1, 100)
    with pytest.raises(ArgumentError, match="pure"):
        meter.charge(privacy.gaussian(10.0))
    assert BudgetFilter(F(1), F(0)).remaining(privacy.pure(0.25)).epsilon == F(3, 4)


def test_texts_and_floats_are_one_number():
    """A text is exact, a float is what it prints, and both make the loss that a Fraction makes."""
    for tenth in (0.1, "0.1", "1/10", F(1, 10)):
        assert privacy.pure(tenth).charge.epsilon == F(1, 10)
        assert privacy.gaussian(tenth) == privacy.gaussian(F(1, 10))
        assert privacy.discrete_laplace(tenth) == privacy.discrete_laplace(F(1, 10))
        assert privacy.gaussian(1).poisson(tenth) == privacy.gaussian(1).poisson(0.1)
    assert privacy.pure("1/3").charge.epsilon == F(1, 3)

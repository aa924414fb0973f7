"""What a loss promises survives whatever is done with it: its unit, its slack, its last digit."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dither import privacy
from dither.accounting import GdpFilter, PureFilter, shuffle
from dither.errors import ArgumentError
from dither.privacy import Charge, Loss, Neighbours, Promise


def test_repeated_runs_keep_their_unit() -> None:
    """A loss per row does not become one per patient by being repeated."""
    rows = privacy.gaussian(4.0).promising("row")
    assert privacy.repeat_and_select(rows, mean=5.0).unit == "row"


def test_slack_stays_in_the_charge_of_a_sum() -> None:
    """A distance from the true pairs is charged alone, and added to anything."""
    cut = Loss(privacy.pure(1.0).parts, slack=1e-3)
    both = cut + privacy.pure("1/3")
    assert cut.charge.delta > Fraction(1, 1000)
    assert both.charge.delta >= cut.charge.delta
    assert both.charge.epsilon == Fraction(4, 3)


def test_a_charged_loss_is_never_free() -> None:
    """Amounts count, whether or not a law stands behind them."""
    stated = Loss((), unit="row").with_charge(Charge.pure(Fraction(1)))
    assert not stated.free
    assert not Loss((), slack=0.1).free
    assert Loss().free
    with pytest.raises(ArgumentError, match="cannot be added"):
        _ = stated + privacy.pure(1.0).promising("patient")
    with pytest.raises(ArgumentError, match="stated for"):
        stated.promising("patient")


def test_gdp_filters_charge_what_is_printed() -> None:
    """Ten mus of 0.3 fill a cap of 9/10 to the last digit."""
    full = GdpFilter(Fraction(9, 10))
    for _ in range(10):
        full = full.charge(privacy.gdp(0.3))
    assert full.spent == full.cap


def test_filters_refuse_a_loss_of_nobody_in_an_account_of_somebody() -> None:
    """In either order, as sums of losses do; bare amounts are the caller's own."""
    patients = PureFilter(10).charge(privacy.pure(1).promising("patient"))
    with pytest.raises(ArgumentError, match="names no unit"):
        patients.charge(privacy.pure(1))
    assert patients.charge(1).spent == 2
    assert patients.charge(privacy.pure(0)).spent == 1


def test_a_charge_keeps_the_neighbours_of_its_loss() -> None:
    """Amounts taken from losses of two relations are no more added than the losses are."""
    replaced = privacy.pure("0.1", neighbours="replace").charge
    added = privacy.pure("0.1").charge
    doubled = (2 * replaced).rounded_up(Fraction(1, 8))
    assert doubled.neighbours is Neighbours.REPLACE
    for other in (added, Charge.pure(Fraction(1))):
        with pytest.raises(ArgumentError, match="cannot be added"):
            _ = other + replaced
    with pytest.raises(ArgumentError, match="stated for 'replace' neighbours"):
        replaced.promising(Promise("patient"))
    stated = replaced.promising(Promise("patient", Neighbours.REPLACE))
    assert (stated + privacy.pure(0).charge).neighbours is Neighbours.REPLACE
    with pytest.raises(ArgumentError, match="neighbours"):
        Charge(promise=Promise("patient"), neighbours=Neighbours.REPLACE)
    with pytest.raises(ArgumentError, match="neighbours of the loss"):
        privacy.pure(1).with_charge(replaced)


@pytest.mark.parametrize("bound", [True, False])
def test_filters_read_the_neighbours_of_a_charge(bound: bool) -> None:
    """As of the loss that it came from, whether the account or an earlier charge names others."""
    account = PureFilter(1, neighbours=Neighbours.ADD_REMOVE) if bound else PureFilter(1)
    account = account.charge(privacy.pure("0.1").charge)
    with pytest.raises(ArgumentError, match="'replace' neighbours"):
        account.charge(privacy.pure("0.1", neighbours="replace").charge)


@pytest.mark.parametrize("epsilon", [33.3, "193/12", "50/3", 99.9, 0.1])
def test_shuffles_charge_at_least_one_report(epsilon: float | str) -> None:
    """The amount of a shuffle is never below that of what was shuffled."""
    stated = privacy.pure(epsilon).charge.epsilon
    assert stated is not None
    charged = shuffle(10, epsilon).loss().charge.epsilon
    assert charged is not None
    assert stated <= charged <= stated * (1 + Fraction(1, 10**13))

"""Filters and odometers: sums, refusals, and the adaptive experiment played out in full."""

import math
from fractions import Fraction as F
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.accounting import (
    GdpFilter,
    Move,
    Odometer,
    PureFilter,
    RenyiFilter,
    SqrtFilter,
    ZcdpFilter,
    game,
)
from dither.errors import ArgumentError, BudgetError
from dither.privacy import Neighbours

AMOUNTS = st.fractions(0, 2, max_denominator=100)


@given(
    st.sampled_from([PureFilter(F(2)), ZcdpFilter(F(1)), GdpFilter(F(3)), RenyiFilter(F(1))]),
    st.lists(AMOUNTS, max_size=8),
)
def test_what_is_admitted_stays_within_the_cap(account, amounts):
    """A filter takes a charge exactly when its sum stays within the cap."""
    for amount in amounts:
        cost = amount**2 if isinstance(account, GdpFilter) else amount
        fits = account.spent + cost <= account.cap
        assert account.admits(amount) == fits
        if fits:
            account = account.charge(amount)
        else:
            with pytest.raises(BudgetError, match="fit"):
                account.charge(amount)
    assert account.spent <= account.cap
    assert not account.admits(F(0), F(1, 10**9))


@given(st.lists(st.fractions(0, F(1, 5), max_denominator=50), max_size=40))
def test_square_root_filter(amounts):
    """Never beyond the theorem's inequality, checked in floating point with room."""
    account = SqrtFilter(F(1), F(1, 10**5))
    kept = []
    for amount in amounts:
        if account.admits(amount):
            account = account.charge(amount)
            kept.append(float(amount))
    squares = math.fsum(x * x for x in kept)
    value = math.sqrt(2 * math.log(1e5) * squares) + squares / 2
    assert value <= 1 + 1e-12
    assert float(account.spent()) == pytest.approx(value, abs=1e-9)


def test_square_root_rate():
    """Charges ten times smaller last a hundred times longer, where basic composition gives ten."""
    lengths = []
    for amount in (F(1, 20), F(1, 200)):
        account, count = SqrtFilter(F(1), F(1, 10**3), F(1, 10**6)), 0
        while account.admits(amount, F(1, 10**12)):
            account, count = account.charge(amount, F(1, 10**12)), count + 1
        lengths.append(count)
    assert 90 < lengths[1] / lengths[0] < 110
    assert not SqrtFilter(F(1), F(1, 10)).admits(F(0), F(1, 10))


@settings(max_examples=50)
@given(st.lists(st.fractions(0, 1, max_denominator=20), min_size=1, max_size=60))
def test_odometer_only_grows(amounts):
    """Readings rise with every charge and never exceed the plain sum."""
    meter, before = Odometer(F(1, 10**6), F(1, 100)), F(0)
    for amount in amounts:
        meter = meter.charge(amount)
        assert before <= meter.reading() <= meter.total
        before = meter.reading()


BOLD, SHY = Move.response(F(1, 4)), Move.response(F(1, 10))


def bold_after_success(view):
    """Bold while the last answer was 0, shy after; falls back to shy when bold is refused."""
    return (BOLD, SHY) if not view or view[-1] == 0 else (SHY,)


def test_game_within_a_pure_filter():
    """The view's largest loss is at most the cap, and close to it."""
    played = game(PureFilter(F(1)), bold_after_success, rounds=12)
    assert sum(p for _, p, _ in played.views) == 1
    assert sum(q for _, _, q in played.views) == 1
    assert 0.8 < played.largest_loss() <= 1
    assert played.delta(1.0) <= 1e-12
    assert played.refused > 0
    assert played.longest() > 4


def test_game_within_a_square_root_filter():
    """Longer than basic composition allows, and the view stays within (epsilon, slack)."""
    account = SqrtFilter(F(1), F(1, 4))
    played = game(account, bold_after_success, rounds=16)
    assert played.longest() > 10
    assert 0 < played.delta(1.0) <= 0.25
    assert played.largest_loss() > 1


def test_game_catches_an_uncharged_mechanism():
    """A move that charges less than it leaks is not played, or breaks the promise visibly."""
    cheat = Move(BOLD.p, BOLD.q, F(1, 100))
    with pytest.raises(ArgumentError, match="more than it is charged"):
        game(PureFilter(F(1, 10)), lambda view: cheat, rounds=10)
    played = game(PureFilter(F(1, 10)), lambda view: cheat, rounds=10, trust=True)
    assert played.largest_loss() > 1
    assert played.delta(0.1) > 0.1


def pair_of(chance, other):
    """Laws of a yes with two chances."""
    return (F(chance), 1 - F(chance)), (F(other), 1 - F(other))


@pytest.mark.parametrize(
    ("account", "laws", "enough"),
    [
        # The larger log-ratio, which is that of "no".
        (PureFilter(F(9)), pair_of("3/4", "1/2"), math.log(2)),
        (SqrtFilter(F(9), F(1, 4)), pair_of("1/2", "3/4"), math.log(2)),
        # Rényi divergences over their orders, of which the largest is tried.
        (ZcdpFilter(F(9)), pair_of("3/4", "1/4"), 0.55),
        (RenyiFilter(F(9), order=F(2)), pair_of("3/4", "1/4"), math.log(7 / 3)),
        # Guessing right in 75 of 100: mu is twice the quantile of that.
        (GdpFilter(F(9)), pair_of("3/4", "1/4"), 2 * 0.6744898),
    ],
)
def test_what_a_move_is_charged_is_held_against_its_laws(account, laws, enough):
    """In what each filter counts, and both ways round; a charge that just suffices is played."""
    for p, q in (laws, laws[::-1]):
        for share, fits in ((F(102, 100), True), (F(97, 100), False)):
            move = Move(p, q, F(enough) * share)
            if fits:
                assert game(account, lambda view, move=move: move, rounds=1).longest() == 1
                continue
            with pytest.raises(ArgumentError, match="more than it is charged"):
                game(account, lambda view, move=move: move, rounds=1)


def test_a_failure_is_held_against_delta():
    """A law that tells everything with chance 1/8, by an account of epsilon and delta."""
    p, q = (F(1, 8), F(7, 8)), (F(0), F(1))
    account = SqrtFilter(F(9), F(1, 4), F(1, 2))
    fits = Move(p, q, F(1, 2), F(1, 8))
    assert game(account, lambda view: fits, rounds=1).longest() == 1
    short = Move(p, q, F(1, 2), F(1, 9))
    with pytest.raises(ArgumentError, match="more than it is charged"):
        game(account, lambda view: short, rounds=1)


def test_moves():
    """A response's ratio is at most e^epsilon; stopping and endless games are told."""
    assert math.log(BOLD.p[0] / BOLD.q[0]) <= 0.25
    assert math.log(BOLD.p[0] / BOLD.q[0]) > 0.2499
    assert game(PureFilter(F(1)), lambda view: None, rounds=3).longest() == 0
    certain = Move((F(1), F(0)), (F(1, 2), F(1, 2)), F(0))
    assert game(PureFilter(F(1)), lambda view: certain, 1, trust=True).largest_loss() == math.inf
    with pytest.raises(ArgumentError, match="mass functions"):
        Move((F(1),), (F(1, 2),), F(0))
    with pytest.raises(ArgumentError, match="rounds"):
        game(PureFilter(F(1)), lambda view: None, rounds=0)
    free = Move((F(1, 400),) * 400, (F(1, 400),) * 400, F(0))
    with pytest.raises(ArgumentError, match="too many"):
        game(PureFilter(F(1)), lambda view: free, rounds=3)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: PureFilter(F(0)), "cap"),
        (lambda: PureFilter(-0.5), "cap"),
        (lambda: RenyiFilter(F(1), order=F(1)), "order"),
        (lambda: SqrtFilter(F(1), F(1)), "slack"),
        (lambda: SqrtFilter(F(0), F(1, 2)), "epsilon"),
        (lambda: Odometer(F(1), F(1)), "delta"),
        (lambda: PureFilter(F(1)).admits(F(-1)), "amount"),
    ],
)
def test_refusals(make, name):
    """Out-of-range amounts are refused by name."""
    with pytest.raises(ArgumentError, match=name):
        make()


def test_promises_in_epsilon():
    """Caps convert to epsilon at a delta, from above."""
    assert 5.2215 < ZcdpFilter(F(1, 2)).epsilon(F(1, 10**6)) < 5.2216
    value = RenyiFilter(F(1), order=F(8)).epsilon(F(1, 10**6))
    assert float(value) == pytest.approx(1 + math.log(1e6 / 8) / 7 + math.log(7 / 8))


def test_square_root_filter_never_exceeds_its_theorem_in_the_worst_game():
    """Exact views of an adaptive adversary: the divergence is within the slack, amounts varied."""
    moves = [Move.response(F(i, 10)) for i in (1, 3, 6)]

    def adversary(view):
        """The largest question after a run of equal answers, the smallest otherwise."""
        loud = len(view) >= 2 and view[-1] == view[-2]
        return moves[::-1] if loud else moves

    for slack in (F(1, 5), F(1, 50)):
        played = game(SqrtFilter(F(3, 2), slack), adversary, rounds=11)
        assert played.delta(1.5) <= slack
        assert played.longest() > 2


def test_gdp_filter_sums_squares_over_an_adaptive_path():
    """Two Gaussian answers, the second's mu chosen from the first: not above one of mu = cap.

    The view is (X, Y) with X ~ N(mu1, 1) and Y ~ N(mu2(X), 1) against zero means; its divergence
    is an integral over X of the second answer's, taken on a fine grid.
    """
    normal, cap, first = NormalDist(), 1.0, 0.6

    def second(x):
        """All that is left after a large answer, half of it after a small one."""
        left = math.sqrt(cap - first**2)
        return left if x > 0.3 else left / 2

    def gaussian_delta(mu, epsilon):
        """The hockey-stick divergence of N(mu, 1) from N(0, 1), at any real epsilon."""
        a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return normal.cdf(a) - math.exp(epsilon) * normal.cdf(b)

    step = 1e-3
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        total = 0.0
        for i in range(-8000, 8601):
            x = (i + 0.5) * step
            loss = first * x - first**2 / 2
            density = normal.pdf(x - first)
            total += density * step * gaussian_delta(second(x), epsilon - loss)
        assert total <= gaussian_delta(math.sqrt(cap), epsilon) + 1e-9


ACCOUNTS = [
    PureFilter(F(2)),
    ZcdpFilter(F(2)),
    GdpFilter(F(2)),
    RenyiFilter(F(2), order=F(8)),
    SqrtFilter(F(4), F(1, 100)),
    Odometer(F(1, 100), F(1, 100)),
]


@pytest.mark.parametrize("account", ACCOUNTS, ids=lambda a: type(a).__name__)
def test_losses_of_different_neighbours_are_not_added(account):
    """The first charge that names its neighbours fixes them; others are refused, unspent."""
    added, replaced = Neighbours.ADD_REMOVE, Neighbours.REPLACE
    bound = account.charge(F(1, 10), neighbours=added)
    assert bound.neighbours is added
    assert bound.charge(F(1, 10), neighbours=added).charge(F(1, 10)).neighbours is added
    for refused in (bound, bound.charge(F(1, 10))):
        with pytest.raises(ArgumentError, match=r"'replace' neighbours cannot be added to .*'add"):
            refused.charge(F(1, 10), neighbours=replaced)
        if hasattr(refused, "admits"):
            with pytest.raises(ArgumentError, match="cannot be added"):
                refused.admits(F(1, 10), neighbours=replaced)
    with pytest.raises(ArgumentError, match="unstated"):
        account.charge(F(1, 10)).charge(F(1, 10), neighbours=added)
    with pytest.raises(ArgumentError, match="neighbours must be"):
        account.charge(F(1, 10), neighbours="replace")
    assert account.neighbours is None


def test_amounts_are_read_as_they_print():
    """Ten tenths fill a cap of 1 exactly, whether typed as floats or as texts."""
    for tenth in (0.1, "0.1", F(1, 10)):
        account = PureFilter("1")
        for _ in range(10):
            account = account.charge(tenth)
        assert account.spent == account.cap == 1
        assert not account.admits(F(1, 10**9))

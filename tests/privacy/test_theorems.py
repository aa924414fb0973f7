"""Named theorems against independently computed values, and against each other."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import accounting, privacy
from dither.accounting import theorems
from dither.errors import ArgumentError

TINY = math.exp(-32)

TABLE = [
    (1e-5, 5.803542620604887, 5.298521745563081, 4.728386984943314, 4.376384509260290),
    (1e-6, 6.261538478173738, 5.756517603131932, 5.221534444530169, 4.885515601007316),
    (1e-9, 7.442914787284848, 6.937893912243041, 6.474070020726486, 6.171915016480078),
]


@pytest.mark.parametrize(("delta", "exponential", "tanh", "zcdp", "exact"), TABLE)
def test_ten_thousand_pure_mechanisms(delta, exponential, tanh, zcdp, exact):
    """Every form for k = 10,000 of 0.01, never below its true value."""
    found = (
        theorems.advanced(0.01, 10_000, delta, form="exponential"),
        theorems.advanced(0.01, 10_000, delta),
        theorems.zcdp_composition(0.01, 10_000, delta),
        theorems.optimal(0.01, 10_000, delta),
    )
    for value, truth in zip(found, (exponential, tanh, zcdp, exact), strict=True):
        assert value >= truth * (1 - 1e-15)
        assert value == pytest.approx(truth, rel=1e-9)
    assert theorems.basic(0.01, 10_000)[0] == pytest.approx(100.0)


def test_lifetime_budget():
    """Example 3.7: the printed 1/801 breaks its promise by the theorem, and keeps it in truth."""
    assert theorems.advanced(1 / 801, 10_000, TINY, form="exponential") == pytest.approx(
        1.014347, abs=1e-6
    )
    assert theorems.advanced(1 / 801, 10_000, TINY) == pytest.approx(1.006545, abs=1e-6)
    share = theorems.share(1.0, 10_000, TINY, form="exponential")
    assert share == pytest.approx(0.0012310449395871809, rel=1e-12)
    assert theorems.advanced(share, 10_000, TINY, form="exponential") <= 1
    assert theorems.corollary_share(1.0, 10_000, TINY) == pytest.approx(0.000625, rel=1e-12)
    assert theorems.optimal(1 / 801, 10_000, TINY) == pytest.approx(0.890468, abs=1e-6)
    assert theorems.optimal(0.000625, 10_000, TINY) == pytest.approx(0.4380, abs=1e-4)
    best = accounting.calibrate(
        lambda e: 10_000 * privacy.pure(e), epsilon=1.0, delta=TINY, start=1e-3
    )
    assert best.lower <= 0.001397603416323412 <= best.upper
    assert float(best) == best.lower


@settings(deadline=None, max_examples=60)
@given(st.floats(0.01, 1.0), st.integers(1, 300), st.sampled_from([1e-3, 1e-6, 1e-12]))
def test_no_theorem_is_below_the_optimum(epsilon, k, delta):
    """Each closed form bounds the exact optimum, and heterogeneous ones agree on equal parts."""
    exact = theorems.optimal(epsilon, k, delta).lower
    forms = [
        theorems.basic(epsilon, k)[0],
        theorems.advanced(epsilon, k, delta, form="exponential"),
        theorems.advanced(epsilon, k, delta),
        theorems.zcdp_composition(epsilon, k, delta),
        theorems.advanced_heterogeneous([(epsilon, 0.0)] * k, delta).upper,
    ]
    assert all(exact <= value * (1 + 1e-12) for value in forms)
    assert forms[4] <= min(forms[0], forms[2]) * (1 + 1e-12)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0.01, 0.8), min_size=2, max_size=6))
def test_heterogeneous_bound_is_sound(epsilons):
    """Different pure mechanisms: the theorem bounds the exact composition."""
    delta = 1e-4
    truth = privacy.compose(*(privacy.pure(e) for e in epsilons)).epsilon(delta)
    bound = theorems.advanced_heterogeneous([(e, 0.0) for e in epsilons], delta)
    assert truth.lower <= bound.upper
    assert truth.upper <= theorems.heterogeneous([(e, 0.0) for e in epsilons])[0] * (1 + 1e-11)


def test_parallel_is_the_worst_part():
    """Disjoint parts cost as much as the worst, and replacing a unit is refused."""
    parts = theorems.parallel(privacy.pure(0.5), privacy.gaussian(1.0))
    assert parts.epsilon(1e-6) == privacy.gaussian(1.0).epsilon(1e-6)
    assert parts.delta(0.6).upper == privacy.gaussian(1.0).delta(0.6).upper
    assert parts.bound().epsilon(1e-6) > parts.epsilon(1e-6)
    with pytest.raises(ArgumentError, match="replaced unit"):
        theorems.parallel(privacy.pure(1.0, neighbours="replace"))


def test_groups():
    """The chain of neighbours."""
    epsilon, delta = theorems.group(1.0, 1e-6, 3)
    assert epsilon == 3.0
    assert delta >= 1e-6 * (1 + math.e + math.e**2)
    assert delta == pytest.approx(1e-6 * (1 + math.e + math.e**2))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: theorems.advanced(0.1, 10, 1e-6, form="tan"), "tanh"),
        (lambda: theorems.advanced(-0.1, 10, 1e-6), "epsilon"),
        (lambda: theorems.advanced(0.1, 0, 1e-6), "k must"),
        (lambda: theorems.advanced(0.1, 10, 0.0), "delta_prime"),
        (lambda: theorems.heterogeneous([]), "at least one"),
        (lambda: theorems.corollary_share(1.0, 1, 0.99), "too large"),
        (lambda: theorems.parallel(), "at least one"),
    ],
)
def test_refusals(make, name):
    """Out-of-range arguments are refused by name."""
    with pytest.raises(ArgumentError, match=name):
        make()


def test_side_by_side(tmp_path):
    """The table names every theorem, gives the numeric value as the best, and draws itself."""
    table = accounting.by_every_theorem(10_000 * privacy.pure(0.01), 1e-6)
    assert table.best().theorem == "numeric"
    assert "advanced, tanh form" in str(table)
    assert len(table.plot(tmp_path / "table.png").axes) == 1
    mixed = accounting.by_every_theorem(privacy.pure(0.1) + privacy.zcdp(0.1), 1e-6)
    values = {row.theorem: row.value for row in mixed.rows}
    assert values["basic"] is None
    assert values["zCDP"] is not None
    several = accounting.by_every_theorem(privacy.pure(0.1) + privacy.pure(0.2), 1e-6)
    assert {row.theorem: row.value for row in several.rows}["basic"] == pytest.approx(0.3)
    shares = accounting.shares_by_every_theorem(1.0, 100, 1e-6)
    values = [row.value for row in shares.rows]
    assert values[0] == max(values)
    assert all(100 * privacy.pure(v).epsilon(0.0) > 0 for v in values)

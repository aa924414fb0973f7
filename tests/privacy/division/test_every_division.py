"""A mix under one promise: every row keeps it, and the searches find the known optima."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.accounting import Component, divide_by_every_theorem, mix_from_expression, split
from dither.errors import ArgumentError
from dither.privacy.division._every_division import analytic_scale


def composed(table, row):
    """The loss of a row's noise."""
    return privacy.compose(
        *(
            part.count * part.make(share.scale / part.sensitivity)
            for part, share in zip(table.parts, row.shares, strict=True)
        )
    )


@settings(deadline=None, max_examples=12)
@given(
    st.lists(
        st.builds(
            Component,
            st.sampled_from(["laplace", "gaussian", "randomized_response"]),
            st.integers(1, 4),
            st.floats(0.5, 4.0),
            st.floats(0.2, 5.0),
        ),
        min_size=1,
        max_size=3,
    ),
    st.floats(0.2, 3.0),
    st.sampled_from([1e-9, 1e-6, 1e-3]),
)
def test_every_row_keeps_the_promise(parts, epsilon, delta):
    """The noise of each theorem, composed exactly, is within the promise; numeric errs least."""
    table = divide_by_every_theorem(parts, epsilon=epsilon, delta=delta)
    for row in table.rows:
        if row.error is not None:
            assert composed(table, row).delta(epsilon).lower <= delta
            said = math.fsum(
                p.count * p.error(s.scale / p.sensitivity)
                for p, s in zip(parts, row.shares, strict=True)
            )
            assert row.error == pytest.approx(said, rel=1e-9)
            assert table.rows[0].error <= row.error * 1.001


def test_gaussians_alone_have_a_closed_form():
    """Scales in proportion to weight^(-1/4), and the total is one Gaussian."""
    table = divide_by_every_theorem(
        [Component("gaussian", weight=1.0), Component("gaussian", weight=81.0)],
        epsilon=1.0,
        delta=1e-6,
    )
    first, second = table.rows[0].shares
    assert first.scale / second.scale == pytest.approx(3.0, rel=1e-4)
    together = 1 / math.sqrt(1 / first.scale**2 + 1 / second.scale**2)
    assert together == pytest.approx(analytic_scale(1.0, 1e-6), rel=1e-7)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [
        (0.1, 1e-6, 36.304690426195785),
        (1.0, 1e-5, 3.7306316348159418),
        (1.0, 1e-6, 4.2246788893268353),
        (10.0, 1e-5, 0.49988861970900851),
    ],
)
def test_analytic_scales(epsilon, delta, sigma):
    """The reference values of the analytic calibration."""
    assert analytic_scale(epsilon, delta) == pytest.approx(sigma, rel=1e-12)


def test_mixed_noise_beats_every_ratio():
    """One Laplace beside one Gaussian: no ratio of scales on a grid does better."""
    best = split([privacy.laplace, privacy.gaussian], epsilon=1.0, delta=1e-6, weights=[2.0, 1.0])
    from dither.accounting import calibrate

    for ratio in (0.25, 0.4, 0.5, 0.6, 0.9, 1.5):
        t = calibrate(
            lambda t, r=ratio: privacy.laplace(t * r) + privacy.gaussian(t),
            epsilon=1.0,
            delta=1e-6,
        )
        assert best.error <= (2 * (t * ratio) ** 2 + t**2) * 1.0005


def test_twenty_scales():
    """Twenty weights: certified, and better than equal noise."""
    makes = [privacy.gaussian if i % 2 else privacy.laplace for i in range(20)]
    weights = [1.0 + i for i in range(20)]
    found = split(makes, epsilon=1.0, delta=1e-6, weights=weights)
    assert found.loss.delta(1.0).upper <= 1e-6
    level = split(makes, epsilon=1.0, delta=1e-6).scales
    equal = math.fsum(w * s * s for w, s in zip(weights, level, strict=True))
    assert found.error < 0.97 * equal


def test_delta_0_and_its_refusals():
    """Pure kinds divide at delta 0 by the sum; Gaussian noise is refused by name."""
    table = divide_by_every_theorem([Component("laplace", count=4)], epsilon=2.0, delta=0.0)
    assert table.best().shares[0].scale == pytest.approx(2.0)
    assert {row.theorem for row in table.rows if row.error is None} == {
        "zCDP",
        "optimal",
        "advanced",
    }
    with pytest.raises(ArgumentError, match="above 0 for Gaussian"):
        divide_by_every_theorem([Component("gaussian")], epsilon=1.0, delta=0.0)


def test_a_table_reads_and_draws(tmp_path):
    """Every part has a line in every row; the picture is saved."""
    parts = mix_from_expression("2 * laplace(sensitivity=2) + gaussian(weight=3) * 4")
    assert [part.describe() for part in parts] == [
        "2 * laplace(sensitivity=2)",
        "4 * gaussian(weight=3)",
    ]
    table = divide_by_every_theorem(parts, epsilon=1.0, delta=1e-6)
    assert str(table).count("4 * gaussian(weight=3)") == len(table.rows)
    table.plot(tmp_path / "parts.png")
    assert (tmp_path / "parts.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lapace", "did you mean 'laplace'"),
        ("laplace(2)", "noise is what is sought"),
        ("laplace(scale=2)", "noise is what is sought"),
        ("laplace(weight=0)", "weight must be"),
        ("laplace(sensitivity=-1)", "sensitivity must be"),
        ("0 * laplace", "repetitions must be"),
        ("1.5 * laplace", "repetitions must be"),
        ("laplace - gaussian", "nothing else"),
        ("laplace +", "cannot be read"),
        ("__import__('os').system('x')", "nothing else"),
        ("", "cannot be read"),
        ("laplace\x00", "cannot be read"),
    ],
)
def test_broken_mixes(text, message):
    """Each mistake is named, and nothing is run."""
    with pytest.raises(ArgumentError, match=message):
        mix_from_expression(text)

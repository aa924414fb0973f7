"""p-values that are adjusted for how many there were, against what others compute."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from dither import inference
from dither.errors import ArgumentError


def test_adjusted_as_scipy_and_by_hand() -> None:
    """Benjamini's two as SciPy has them, Holm's as the definition says, of ties too."""
    rng = np.random.default_rng(1)
    for m in (1, 2, 7, 40):
        p = np.round(rng.beta(0.5, 2, m), 2)
        for ours, theirs in (("benjamini-hochberg", "bh"), ("benjamini-yekutieli", "by")):
            found = inference.adjust_pvalues(p, method=ours).adjusted
            np.testing.assert_allclose(found, stats.false_discovery_control(p, method=theirs))
        order = np.sort(p)
        holm = [
            max(min(1.0, (m - j) * order[j]) for j in range(m) if order[j] <= value) for value in p
        ]
        np.testing.assert_allclose(inference.adjust_pvalues(p).adjusted, holm)
        even = inference.adjust_pvalues(p, method="bonferroni").adjusted
        np.testing.assert_allclose(even, np.minimum(1, m * p))
        assert (inference.adjust_pvalues(p).adjusted <= even + 1e-12).all()


def test_holm_is_closed_testing_with_bonferroni() -> None:
    """A null falls where every set of nulls that holds it falls: the definition of closure."""
    p = np.array([0.001, 0.012, 0.03, 0.6])
    sets = [s for k in range(1, 5) for s in itertools.combinations(range(4), k)]
    closed = [max(min(1.0, len(s) * min(p[list(s)])) for s in sets if j in s) for j in range(4)]
    np.testing.assert_allclose(inference.adjust_pvalues(p).adjusted, closed)


def test_results_give_their_names_and_p_values() -> None:
    """Of tests, of estimates, of one result with several numbers, and of plain numbers."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (300, 2))
    several = inference.means(x, radius=4, epsilon=1, names=("a", "b"))
    one = inference.sign_test(x[:, 0], epsilon=1)
    found = inference.adjust_pvalues({"m": several, "s": one, "p": 0.5})
    assert found.names == ("m: a", "m: b", "s", "p")
    np.testing.assert_allclose(found.pvalues[2:], [one.pvalue, 0.5])
    assert inference.adjust_pvalues([one, one]).names == (one.title, one.title)
    assert list(inference.adjust_pvalues([0.2, 0.01]).rejects(0.05).values()) == [False, True]
    assert found.to_frame().columns == ["test", "pvalue", "adjusted"]
    assert "holm" in found.summary()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "at least one"),
        ({}, "at least one"),
        ("0.5", "tests must be results"),
        ([1.5], "tests must be"),
        ([float("nan")], "tests must be"),
        ({"a": "low"}, "tests must be"),
        (0.5, "tests must be results"),
    ],
)
def test_what_is_no_p_value_is_refused(given: object, why: str) -> None:
    """By name, and before anything is computed."""
    with pytest.raises(ArgumentError, match=why):
        inference.adjust_pvalues(given)
    with pytest.raises(ArgumentError, match="method"):
        inference.adjust_pvalues([0.5], method="fdr")

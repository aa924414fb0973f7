"""What every mechanism offers: its loss, its error, a way back from either, and its name."""

import inspect

import pytest

from dither import mechanisms
from dither.mechanisms._selection import Selection

CALIBRATED = {
    mechanisms.BinaryTree,
    mechanisms.DiscreteGaussian,
    mechanisms.DiscreteLaplace,
    mechanisms.Exponential,
    mechanisms.Gaussian,
    mechanisms.Laplace,
    mechanisms.MaxNorm,
    mechanisms.NoisyMax,
    mechanisms.Peeling,
    mechanisms.PermuteAndFlip,
    mechanisms.ProposeTestRelease,
    mechanisms.RandomizedResponse,
    mechanisms.SmoothMedian,
    mechanisms.SparseVector,
    mechanisms.Staircase,
    mechanisms.SubsampleAggregate,
    mechanisms.TopK,
    mechanisms.Tulap,
}
OTHERS = {
    mechanisms.AboveThreshold,
    mechanisms.AdditiveNoise,
    mechanisms.Allocation,
    mechanisms.Choice,
    mechanisms.KeyDiscovery,
    mechanisms.KeyThreshold,
    mechanisms.Need,
    mechanisms.QuantileTree,
    mechanisms.Quantiles,
    mechanisms.RunningCount,
    mechanisms.Sensitivity,
    mechanisms.Share,
    mechanisms.SparseAnswer,
}
ERRORS = {"half_width", "shortfall", "margin", "deviation"}


def test_all_are_told_apart():
    """Whatever class the room offers is a mechanism of this list, or one of the others by name."""
    offered = {getattr(mechanisms, name) for name in mechanisms.__all__}
    assert {x for x in offered if inspect.isclass(x)} == CALIBRATED | OTHERS


@pytest.mark.parametrize("kind", sorted(CALIBRATED, key=lambda k: k.__name__))
def test_each_has_the_same_doors(kind):
    """One loss, for either relation, of arguments that are named; an error; inverses of both."""
    for name in ("loss", "parameters"):
        assert callable(getattr(kind, name))
    asked = inspect.signature(kind.loss)
    assert asked.return_annotation == "Loss"
    assert "neighbours" in asked.parameters
    assert all(p.kind is p.KEYWORD_ONLY for n, p in asked.parameters.items() if n != "self")
    assert any(hasattr(kind, door) for door in ("for_loss", "mean"))
    errors = {e for e in ERRORS if hasattr(kind, e)}
    assert errors
    assert any(hasattr(kind, f"for_{e}") for e in errors)


def test_selections_are_selections():
    """Those that pick one candidate share a base, so that `Peeling` takes any of them."""
    for kind in (mechanisms.Exponential, mechanisms.NoisyMax, mechanisms.PermuteAndFlip):
        assert issubclass(kind, Selection)

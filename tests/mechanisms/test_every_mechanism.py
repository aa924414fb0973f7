"""What every mechanism offers: its loss, its error, a way back from either, and its name."""

import dataclasses
import inspect
from decimal import Decimal
from fractions import Fraction as F

import numpy as np
import pytest

from dither import mechanisms
from dither.errors import ArgumentError
from dither.mechanisms._base import Mechanism
from dither.mechanisms.selection._selection import Selection

OFFERED = {x for name in mechanisms.__all__ if inspect.isclass(x := getattr(mechanisms, name))}
CALIBRATED = {
    kind
    for kind in OFFERED
    if issubclass(kind, Mechanism) and not inspect.isabstract(kind)
    if kind is not mechanisms.KeyThreshold  # a rule, which goes with the noise of counts
}
OTHERS = {mechanisms.KeyThreshold, mechanisms.QuantileTree}
ERRORS = {"half_width", "shortfall", "margin", "deviation"}


def test_all_are_told_apart():
    """Whatever class the package offers is a mechanism, or one of the others by name."""
    assert OFFERED == CALIBRATED | OTHERS
    assert len(CALIBRATED) >= 18


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


HALF = (F(1, 2), 0.5, "0.5", "1/2", Decimal("0.5"), np.float64(0.5))
MADE = {
    "BinaryTree": lambda x: mechanisms.BinaryTree.for_loss(x, horizon=9, sensitivity=1),
    "DiscreteGaussian": mechanisms.DiscreteGaussian,
    "DiscreteLaplace": mechanisms.DiscreteLaplace,
    "Exponential": mechanisms.Exponential,
    "Gaussian": lambda x: mechanisms.Gaussian(x, x),
    "Laplace": lambda x: mechanisms.Laplace.for_loss(x, l1=x, step=x),
    "MaxNorm": lambda x: mechanisms.MaxNorm(x, 3),
    "NoisyMax": lambda x: mechanisms.NoisyMax.for_loss(x, sensitivity=1),
    "Peeling": lambda x: mechanisms.Peeling.for_loss(x, k=2, sensitivity=1, value_share=x),
    "PermuteAndFlip": mechanisms.PermuteAndFlip,
    "ProposeTestRelease": lambda x: mechanisms.ProposeTestRelease(x, x, x),
    "RandomizedResponse": mechanisms.RandomizedResponse,
    "SmoothMedian": lambda x: mechanisms.SmoothMedian.for_loss(x, x, lower=0, upper=9, share=x),
    "SparseVector": lambda x: mechanisms.SparseVector(x, x, value_scale=x),
    "Staircase": lambda x: mechanisms.Staircase(x, 3, 1),
    "SubsampleAggregate": lambda x: mechanisms.SubsampleAggregate.mean(
        x, blocks=3, lower=0, upper=9
    ),
    "TopK": lambda x: mechanisms.TopK.for_rho(x, k=2, sensitivity=1),
    "Tulap": lambda x: mechanisms.Tulap(x, x),
}


def test_every_mechanism_is_made_below():
    """The numbers of each are tried."""
    assert set(MADE) == {kind.__name__ for kind in CALIBRATED}


@pytest.mark.parametrize("name", sorted(MADE))
def test_numbers_are_read_alike(name):
    """Ints, Fractions, texts and floats as they print make one mechanism, of one exact charge."""
    made = [MADE[name](x) for x in HALF]
    assert made == [made[0]] * len(HALF)
    assert {str(one.parameters()) for one in made} == {str(made[0].parameters())}
    held = [getattr(made[0], f.name) for f in dataclasses.fields(made[0])]
    assert not any(isinstance(value, float | str) for value in held if value != "exponential")
    for bad in (True, float("nan"), float("inf"), "many", b"1", None, np.array([0.5])):
        with pytest.raises(ArgumentError):
            MADE[name](bad)


def test_the_exact_parameter_is_charged():
    """A third is charged as a third, however it is written."""
    for third in (F(1, 3), "1/3"):
        laplace = mechanisms.DiscreteLaplace.for_loss(third, l1="1/2")
        assert laplace.loss(l1=F(1, 2)).charge.epsilon == F(1, 3)
    assert mechanisms.DiscreteLaplace.for_loss(0.1, l1=1).loss(l1=1.0).charge.epsilon == F(1, 10)
    assert mechanisms.RandomizedResponse(0.1).loss().charge.epsilon == F(1, 10)
    assert mechanisms.choose(l1=1, dimension=1, epsilon="0.1").charge.epsilon == F(1, 10)

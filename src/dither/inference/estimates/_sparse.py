"""Sparse means: of many numbers per row, which few have the largest means, and what they are.

One-shot. The s coordinates with the largest |Σ t| + Gumbel noise are named (`TopK`), and their two
moments leave with Gaussian noise, as in a box of s coordinates (`BoxRelease`). Two thirds of
rho go to the choice; rho is what (epsilon, delta) is worth in zCDP, and the two add up exactly.

Utilities are |Σ t| in whole units, a unit being so coarse a part of the sensitivity that it is
below a 32nd of the Gumbel noise's scale: sums round to units, which their sensitivity is a whole
number of, so that nothing is lost, and few utilities differ, so that drawing is quick.

Peeling, as printed. s times, the coordinate with the largest |Σ t| plus fresh Laplace noise of
scale b = 2R·2·√(3s·log(1/delta))/epsilon, of those that are left; then the s sums with Laplace
noise of scale b. That is (epsilon, delta)-DP with room to spare: its true price is in the loss.

Intervals are of the means of the coordinates that were named, as if they had been named beforehand:
of many means that are alike, the named ones are those that chance made large.

Source. Cai, Wang and Zhang, "The cost of privacy", Annals of Statistics 2021; Dwork, Su and Zhang,
2018, for peeling; Durfee and Rogers, NeurIPS 2019, for one shot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import loss_text
from dither._subjects import Subject
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError
from dither.inference.engine._errors import SimulatedErrors
from dither.inference.engine._inputs import Bounds, Floats, Target, around, matrix, target
from dither.inference.engine._release import seen_at_best
from dither.inference.engine._result import PrivateEstimate
from dither.inference.estimates._mean import of_clamped
from dither.inference.estimates._means import BoxRelease, coordinate_models, errors_of, estimates_of
from dither.mechanisms import DiscreteLaplace, NoisyMax, Peeling, TopK
from dither.privacy import Charge, Loss, Neighbours

__all__ = ["SparseEstimate", "SparseRelease", "sparse_mean"]

_COARSE = 32
_AT_ONCE = 1 << 22

_FOR_CHOICE = Fraction(2, 3)
"""Of rho: a coordinate that is missed costs more than noise in one that is found."""


@dataclass(frozen=True, eq=False)
class SparseEstimate(PrivateEstimate):
    """The means of the coordinates that were named; all others are estimated as 0.

    Parameters
    ----------
    chosen : array of int, shape (s,)
        Their places, in the order of `values`.
    dimension : int
        How many numbers a row has.
    """

    chosen: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    dimension: int = 0

    @property
    def vector(self) -> Floats:
        """All d means, 0 where a coordinate was not named."""
        found = np.zeros(self.dimension)
        found[self.chosen] = self.values
        return found


@dataclass(frozen=True)
class SparseRelease:
    """Layer 1 in one shot: which coordinates, then their moments.

    Parameters
    ----------
    bounds : Bounds
        Of every number, the middle at 0.
    s : int
        How many coordinates are named.
    asked : Target
    """

    bounds: Bounds
    s: int
    asked: Target
    unit: int = field(init=False)
    pick: TopK = field(init=False)
    box: BoxRelease = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        asked = self.asked
        if asked.delta <= 0:
            raise ArgumentError("delta must be above 0: a sparse mean is counted in zCDP")
        whole = rho_of_epsilon(asked.epsilon, asked.delta)
        rho = whole * _FOR_CHOICE
        change = (2 if asked.replace else 1) * Bounds.steps
        # In sensitivities, the scale of the Gumbel noise is 2/e with rho = s·e²/8.
        scale = 2.0 / math.sqrt(8.0 * float(rho) / self.s)
        unit = change
        while unit > 1 and scale * change < _COARSE * unit:
            unit //= 2
        pick = TopK.for_rho(rho, k=self.s, sensitivity=change // unit)
        box = BoxRelease((self.bounds,) * self.s, asked, whole - rho)
        picked = pick.loss(sensitivity=change // unit, neighbours=asked.neighbours)
        spent = (picked.charge.rho or Fraction(0)) + (box.loss.charge.rho or Fraction(0))
        loss = (picked + box.loss).with_charge(Charge(asked.epsilon, asked.delta, spent))
        for name, value in (("unit", unit), ("pick", pick), ("box", box), ("loss", loss)):
            object.__setattr__(self, name, value)

    def utilities(self, sums: list[int]) -> list[int]:
        """|Σ t| in whole units."""
        return [(2 * abs(total) + self.unit) // (2 * self.unit) for total in sums]

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: of the choice and of the values, neighbours that use the claim."""
        asked = Target(Fraction(4), Fraction(1, 100), Neighbours.REPLACE)
        design, steps = cls(Bounds(Fraction(-1), Fraction(1)), 1, asked), Bounds.steps

        def named(sums: list[int]) -> tuple[int, ...]:
            return design.pick.draw(design.utilities(sums))

        change = 2 * steps // design.unit
        claim = design.pick.loss(sensitivity=change).charge.epsilon
        assert claim is not None
        far = 2 * steps
        first, second = [0] + [far] * 20, [far] + [0] * 20
        yield Subject("sparse mean, choice", named, first, second, claim)
        low, high = np.array([[-9.0]]), np.array([[9.0]])
        seen, delta = seen_at_best(design.box, low, high), Fraction(1, 100)
        priced = Fraction(design.box.loss.epsilon(float(delta)))
        yield Subject("sparse mean, values", seen, low, high, priced, delta)


def sparse_mean(
    rows: Any,
    *,
    radius: Number,
    s: int,
    epsilon: Number,
    delta: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    method: Literal["one-shot", "peeling"] = "one-shot",
) -> SparseEstimate:
    """The s largest of many means, in absolute value, with noise.

    Parameters
    ----------
    rows : array of shape (n, d), or frame
        A row is who is protected.
    radius : number
        R: each number is clamped to [-R, R].
    s : int
        How many coordinates are named, from 1 to d.
    epsilon, delta : number
        What it may cost; delta above 0.
    neighbours : {"replace", "add-remove"}
    method : {"one-shot", "peeling"}
        "one-shot" finds more and errs less at the same price. "peeling" is the algorithm as
        printed, for comparison; it needs rows that are replaced.

    Returns
    -------
    SparseEstimate
        ``chosen`` names the coordinates, ``vector`` is the whole mean.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. A missing number
    counts as 0. How long the choice takes depends on the data; see `dither.mechanisms.TopK`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> x = np.random.default_rng(1).normal(0, 1, (3000, 50))
    >>> x[:, [3, 7]] += 2
    >>> found = inference.sparse_mean(x, radius=5, s=2, epsilon=1, delta=1e-6)
    >>> sorted(found.chosen.tolist())
    [3, 7]
    """
    asked = target(epsilon, delta, neighbours)
    half = check.positive("radius", radius)
    values = matrix("rows", rows)
    n, d = values.shape
    wanted = check.whole("s", s, 1, d)
    kind = check.choice("method", method, ("one-shot", "peeling"))
    bounds = around("radius", half)
    if not asked.replace:
        values = values[~np.isnan(values).all(axis=1)]
    sums = _sums(values, bounds)
    if kind == "peeling":
        return _peeled(sums, n, bounds, wanted, asked)
    design = SparseRelease(bounds, wanted, asked)
    chosen = np.array(design.pick.draw(design.utilities(sums)), dtype=np.int64)
    released = design.box.release(values[:, chosen])
    models = coordinate_models(design.box, released, n if asked.replace else None)
    rows_shown = n if asked.replace else round(float(models[0].n[0]))
    return SparseEstimate(
        f"sparse mean, {wanted} of {d:,} coordinates",
        design.loss,
        (
            "rows are an independent sample",
            of_clamped(bounds, "means are those"),
            "intervals are as if the coordinates had been named beforehand",
        ),
        (),
        tuple(f"x{j + 1}" for j in chosen.tolist()),
        estimates_of(models, design.box.bounds),
        rows_shown,
        partial(errors_of, models, design.box.bounds),
        chosen=chosen,
        dimension=d,
    )


def _sums(values: Floats, bounds: Bounds) -> list[int]:
    """Σ t of each column, a few columns at a time: there may be very many."""
    found: list[int] = []
    at_once = max(1, _AT_ONCE // max(1, len(values)))
    for i in range(0, values.shape[1], at_once):
        part = values[:, i : i + at_once]
        found += bounds.lattice(np.where(np.isnan(part), 0.0, part)).sum(axis=0).tolist()
    return found


def _peeled(sums: list[int], n: int, bounds: Bounds, s: int, asked: Target) -> SparseEstimate:
    if asked.delta <= 0:
        raise ArgumentError("delta must be above 0: the noise is made for it")
    if not asked.replace:
        raise ArgumentError("neighbours must be 'replace' for peeling as printed: n is public")
    change = 2 * Bounds.steps
    root = math.sqrt(3.0 * s * -math.log(float(asked.delta)))
    scale = change * 2 * Fraction(repr(root)) / asked.epsilon
    peel = Peeling(NoisyMax(1 / scale, "laplace"), s, DiscreteLaplace(scale))
    loss = peel.loss(sensitivity=change, neighbours=asked.neighbours)
    true = Fraction(loss.epsilon(float(asked.delta)))
    loss = loss.with_charge(Charge(true, asked.delta, loss.charge.rho))
    where, noisy = peel.release(sums)
    rows = max(1, n)
    unit = float(bounds.half) / Bounds.steps / rows
    estimates = unit * np.array(noisy, dtype=float)
    spread = float(bounds.half) / math.sqrt(rows)
    width = float(scale)

    return SparseEstimate(
        f"sparse mean by peeling as printed, {s} of {len(sums):,} coordinates",
        loss,
        (
            "rows are an independent sample",
            "means are of clamped numbers, whose deviation is at most the radius",
            "intervals are as if the coordinates had been named beforehand",
        ),
        (
            f"the noise is as printed for ε = {loss_text(asked.epsilon)}; it truly costs "
            f"ε = {loss_text(true)} at this δ, and that is what an account is charged.",
        ),
        tuple(f"x{j + 1}" for j in where),
        estimates,
        n,
        partial(_errors_of_peeled, estimates, spread, unit, width),
        chosen=np.array(where, dtype=np.int64),
        dimension=len(sums),
    )


def _errors_of_peeled(
    estimates: Floats, spread: float, unit: float, width: float, rng: np.random.Generator, size: int
) -> SimulatedErrors:
    sampling = rng.standard_normal((size, len(estimates))) * spread
    noise = unit * rng.laplace(0.0, width, (size, len(estimates)))
    return SimulatedErrors(estimates, sampling + noise, sampling)

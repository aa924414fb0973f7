"""The difference of the means of two groups, where the group may be private too.

Release. Each group leaves the vector of `MeanRelease`, with one noise. Where groups are public, a
row stays in its group: it moves one of the two vectors, as far as it moves that of a mean, and both
together cost what one costs. Under ADD_REMOVE a row is in one group or in none: the same holds, and
the group is protected with it. Under REPLACE with private groups one person may move: then it
leaves one vector and enters the other,

    l1 = 2·(1 + k/2 + c + c),     l2² = max(2·(1 + k²/4 + 2·c²), 4 + 2·c²),

where the second of the maximum is that of a row that stays in its group, as in `MeanRelease` (whose
k <= 1/2 for l1, and k <= 33/20 for l2, hold here); for l1 the first is larger than its 2 + 2c. The
number of rows of each group is measured, with the weight c.

Model and infer. Two `MeanModel`, simulated independently; errors are those of the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import number_text
from dither._subjects import Subject
from dither.inference._errors import SimulatedErrors
from dither.inference._inputs import Bounds, Floats, Target, bounds_of, column, target
from dither.inference._mean import MeanModel, MeanRelease, Shape
from dither.inference._release import (
    Noise,
    NoisyStatistic,
    fixed_noise,
    gaussian_is_better,
    seen_at_best,
)
from dither.inference._result import PrivateEstimate, too_few_rows
from dither.privacy import Loss, Neighbours

__all__ = ["DifferenceRelease", "difference", "groups_of"]

Pair = tuple[Floats, Floats]


@dataclass(frozen=True)
class DifferenceRelease:
    """Layer 1: the statistics of two means, of which one row moves one, or, if it may move, both.

    Parameters
    ----------
    bounds : Bounds
    asked : Target
    moves : bool
        Whether a row may change its group: under REPLACE, where groups are private.
    sides : bool
        Whether the numbers of values beyond the bounds are released too.
    gaussian : bool, optional
        Which noise; by default the better one.

    Attributes
    ----------
    square, count : Fraction
        The weights k and c.
    noise : Laplace or Gaussian
    loss : Loss
    """

    bounds: Bounds
    asked: Target
    moves: bool
    sides: bool = True
    gaussian: bool | None = None
    square: Fraction = field(init=False)
    count: Fraction = field(init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        one = self.one
        found: dict[str, Any] = {"square": one.square, "count": one.count}
        found |= {"noise": one.noise, "loss": one.loss}
        if self.moves:
            gaussian = self.gaussian
            if gaussian is None:
                gaussian = gaussian_is_better(self.asked, l1=3.0, l2=2.1)
            k, c = (Fraction(1), Fraction(1, 2)) if gaussian else (Fraction(1, 2), Fraction(1, 8))
            counts = 1 + int(self.sides)
            l1 = 2 * (1 + k / 2 + counts * c)
            l2_squared = max(2 * (1 + k**2 / 4 + counts * c**2), 4 + 2 * int(self.sides) * c**2)
            noise, loss = fixed_noise(
                asked=self.asked,
                dimension=2 * (3 + 2 * int(self.sides)),
                l1=None if gaussian else l1,
                l2_squared=l2_squared if gaussian else None,
            )
            found = {"square": k, "count": c, "noise": noise, "loss": loss}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def one(self) -> MeanRelease:
        """The release of one group alone."""
        return MeanRelease(self.bounds, self.asked, self.sides, self.gaussian)

    def statistic(self, groups: Pair) -> tuple[Fraction, ...]:
        """The exact vectors of both groups, one after the other."""
        found: list[Fraction] = []
        for values in groups:
            if not self.moves:
                found += self.one.statistic(values)
                continue
            # Rows that miss a value are left out of their group: its size is measured anyway.
            shape = MeanRelease(
                self.bounds,
                Target(self.asked.epsilon, self.asked.delta, Neighbours.ADD_REMOVE),
                self.sides,
                gaussian=self.count == Fraction(1, 2),
            )
            found += shape.statistic(values)
        return tuple(found)

    def release(self, groups: Pair) -> NoisyStatistic:
        """The statistics with noise: the one step that touches data."""
        return NoisyStatistic(self.noise.release(self.statistic(groups)), self.noise, self.loss)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        bounds, delta = bounds_of("bounds", (-1, 1)), Fraction(1, 100)
        here, there = np.array([9.0, 0.0]), np.array([9.0])
        first, second = (here, there[:0]), (here[1:], there)
        design = cls(bounds, Target(Fraction(1), delta, Neighbours.REPLACE), True, gaussian=True)
        seen = seen_at_best(design, first, second)
        yield Subject("difference where a row moves", seen, first, second, delta=delta)
        design = cls(bounds, target(1, 0, "replace"), False)
        low, high = (-here, there), (here, there)
        yield Subject("difference of public groups", seen_at_best(design, low, high), low, high)


def groups_of(x: Any, y: Any) -> Pair:
    """Two samples as doubles."""
    return column("x", x), column("y", y)


def difference(
    x: Any,
    y: Any,
    *,
    bounds: Any = None,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    private_groups: bool = False,
    shape: Shape = "normal",
    null: float = 0.0,
) -> PrivateEstimate:
    """The mean of one group less that of another, with an interval that counts sampling and noise.

    Parameters
    ----------
    x, y : sequence of float
        The values of either group; a row is who is protected, and is in one of them.
    bounds : (number, number)
        Public ends of both; values beyond are clamped. They must not come from the data.
    epsilon, delta : number
        What the release of both groups may cost, together.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected and bought with noise.
    private_groups : bool
        Whether the group that a row is in is protected too: then one person who moves changes both
        groups. Under "add-remove" it always is.
    shape : {"normal", "any"}
        As of `mean`.
    null : float
        What ``pvalue`` tests.

    Returns
    -------
    PrivateEstimate

    Raises
    ------
    ArgumentError
        Bounds are missing or the wrong way round, or an argument is out of range. No value of the
        data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. Missing values count
    as the middle of the bounds where groups are public and rows are replaced, else they are left
    out.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> treated, others = rng.normal(5, 1, 3000), rng.normal(4, 1, 3000)
    >>> found = inference.difference(treated, others, bounds=(0, 9), epsilon=1)
    >>> lower, upper = found.interval(0.999999)
    >>> lower < 1 < upper, found.pvalue < 0.01, found.loss.charge.epsilon
    (True, True, Fraction(1, 1))
    """
    ends, asked = bounds_of("bounds", bounds), target(epsilon, delta, neighbours)
    check.choice("shape", shape, ("normal", "any"))
    against = check.number("null", null)
    groups = groups_of(x, y)
    moves = bool(private_groups) and asked.replace
    design = DifferenceRelease(ends, asked, moves, sides=shape == "normal")
    released = design.release(groups)
    parts = np.split(released.values, 2)
    public = asked.replace and not moves
    models = [
        MeanModel(design, part, len(values) if public else None, shape)
        for part, values in zip(parts, groups, strict=True)
    ]
    at = models[0].at - models[1].at

    def simulate(rng: np.random.Generator, size: int) -> SimulatedErrors:
        first, second = (model.errors(rng, size) for model in models)
        assert first.limits is not None
        assert second.limits is not None
        reach = first.limits - second.limits[:, ::-1]
        draws, sampling = first.draws - second.draws, first.sampling - second.sampling
        return SimulatedErrors(np.array([at]), draws, sampling, reach)

    assumptions = [
        "rows are an independent sample",
        "values are normal before they are clamped"
        if any(any(model.law.cut) for model in models)
        else f"means are those of values clamped to [{number_text(ends.lower)}, "
        f"{number_text(ends.upper)}]",
        "no value is missing" if public else "numbers of rows are as measured",
    ]
    notes = []
    worst = max(models, key=lambda model: model.noise_of_mean)
    if worst.noise_of_mean > 0.25:
        needed = worst.n * worst.noise_of_mean / 0.05
        reason = "in a group the noise spans much of the bounds"
        notes.append(too_few_rows(reason, needed, needed / worst.n))
    return PrivateEstimate(
        "difference of means",
        released.loss,
        tuple(assumptions),
        tuple(notes),
        None,
        np.array([at]),
        sum(len(values) for values in groups) if asked.replace else round(sum(m.n for m in models)),
        simulate,
        against,
    )

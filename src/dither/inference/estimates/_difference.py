"""The difference of the means of two groups, where the group may be private too.

Of values of whatever law: `_group_sums` and `_free_means`. What follows is the reading in which
values are normal before they are clamped.

Release. Each group leaves the vector of `MeanRelease`, with one noise. Where groups are public, a
row stays in its group: it moves one of the two vectors, as far as it moves that of a mean, and both
together cost what one costs. Under ADD_REMOVE a row is in one group or in none: the same holds, and
the group is protected with it. Under REPLACE with private groups one person may move: then it
leaves one vector and enters the other,

    l1 = 2·(1 + k/2 + c + c),     l2² = max(2·(1 + k²/4 + 2·c²), 4 + 2·c²),

where the second of the maximum is that of a row that stays in its group, as in `MeanRelease` (whose
k <= 1/2 for l1, and k <= 33/20 for l2, hold here); for l1 the first is larger than its 2 + 2c. The
number of rows of each group is measured, with the weight c.

Model and infer. A `MeanModel` of each, simulated independently; errors are those of the difference.
Of more groups the same holds: a row leaves one of them, and enters another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import SimulatedErrors
from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._inputs import Bounds, Floats, Target, bounds_of, column, target
from dither.inference.engine._release import (
    Noise,
    NoisyStatistic,
    gaussian_is_better,
    noise_of_either,
    seen_at_best,
)
from dither.inference.engine._result import PrivateEstimate
from dither.inference.estimates._free_means import FreeMeans
from dither.inference.estimates._mean import (
    SHAPES,
    Shape,
    noisy_means,
    normal_notes,
    of_clamped,
    of_normal,
)
from dither.inference.estimates._normal_mean import MeanModel, MeanRelease
from dither.privacy import Loss, Neighbours

__all__ = ["DifferenceRelease", "difference", "groups_of"]

Pair = tuple[Floats, Floats]


@dataclass(frozen=True)
class DifferenceRelease:
    """Layer 1: the statistics of means, of which one row moves one, or, if it may move, two.

    Parameters
    ----------
    bounds : Bounds
    asked : Target
    moves : bool
        Whether a row may change its group: under REPLACE, where groups are private.
    groups : int
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
    groups: int = 2
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
                # The norms of what follows, 7/2 and √(9/2): they choose the noise and promise
                # nothing.
                gaussian = gaussian_is_better(self.asked, l1=3.5, l2=2.1)
            k, c = (Fraction(1), Fraction(1, 2)) if gaussian else (Fraction(1, 2), Fraction(1, 4))
            l1 = 2 * (1 + k / 2 + 2 * c)
            l2_squared = max(2 * (1 + k**2 / 4 + 2 * c**2), 4 + 2 * c**2)
            noise, loss = noise_of_either(
                gaussian,
                asked=self.asked,
                dimension=5 * self.groups,
                l1=l1,
                l2_squared=l2_squared,
            )
            found = {"square": k, "count": c, "noise": noise, "loss": loss}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def one(self) -> MeanRelease:
        """The release of one group alone."""
        return MeanRelease(self.bounds, self.asked, self.gaussian)

    def statistic(self, groups: Sequence[Floats]) -> tuple[Fraction, ...]:
        """The exact vectors of the groups, one after the other."""
        found: list[Fraction] = []
        for values in groups:
            if not self.moves:
                found += self.one.statistic(values)
                continue
            # Rows that miss a value are left out of their group: its size is measured anyway.
            shape = MeanRelease(
                self.bounds,
                Target(self.asked.epsilon, self.asked.delta, Neighbours.ADD_REMOVE),
                gaussian=self.count == Fraction(1, 2),
            )
            found += shape.statistic(values)
        return tuple(found)

    def models(self, groups: Sequence[Floats]) -> tuple[list[MeanModel], Loss]:
        """Release them, and the model of each group from what was released."""
        released = self.release(groups)
        public = self.asked.replace and not self.moves
        parts = np.split(released.values, len(groups))
        models = [
            MeanModel(self, part, len(values) if public else None)
            for part, values in zip(parts, groups, strict=True)
        ]
        return models, released.loss

    def release(self, groups: Sequence[Floats]) -> NoisyStatistic:
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


Simulate = Callable[[np.random.Generator, int], SimulatedErrors]


class HasErrors(Protocol):
    """What simulates its errors."""

    def errors(self, rng: np.random.Generator, size: int) -> SimulatedErrors:
        """Of so many releases."""
        ...


def errors_of_two(
    models: Sequence[HasErrors], rng: np.random.Generator, size: int
) -> SimulatedErrors:
    """Errors of the first of two less the second, which are independent."""
    first, second = (model.errors(rng, size) for model in models)
    assert first.limits is not None
    assert second.limits is not None
    reach = first.limits - second.limits[:, ::-1]
    draws, sampling = first.draws - second.draws, first.sampling - second.sampling
    return SimulatedErrors(first.estimate - second.estimate, draws, sampling, reach)


def _of_free(free: FreeMeans, ends: Bounds, rng: np.random.Generator, size: int) -> SimulatedErrors:
    both = free.errors(rng, size, ends).against([1.0, -1.0])
    return replace(both, limits=np.array([[-2.0, 2.0]]) * float(ends.half))


@documented
def difference(
    x: Any,
    y: Any,
    *,
    bounds: Any = None,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    private_groups: bool = False,
    shape: Shape = "any",
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
    {shape}
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
    check.choice("shape", shape, SHAPES)
    against = check.number("null", null)
    groups = groups_of(x, y)
    moves = bool(private_groups) and asked.replace
    public = asked.replace and not moves
    sizes = "no value is missing" if public else "numbers of rows are as measured"
    rows = sum(len(values) for values in groups)
    half = float(ends.half)
    if shape == "normal":
        models, loss = DifferenceRelease(ends, asked, moves).models(groups)
        read, notes = dict.fromkeys(of_normal(model) for model in models), normal_notes(models)
        at = models[0].at - models[1].at
        measured = sum(model.n for model in models)
        simulate: Simulate = partial(errors_of_two, models)
    else:
        design = GroupSumsRelease(ends, asked, 2, moves)
        released = design.release(groups)
        free = FreeMeans(design.moments(released.values, [len(v) for v in groups]), design.drawn)
        read, loss = {of_clamped(ends, "means are those"): None}, released.loss
        notes = noisy_means(free.noise_of_means, free.n, "in a group ")
        at, measured = float(free.clipped @ [half, -half]), float(free.n.sum())
        simulate = partial(_of_free, free, ends)
    return PrivateEstimate(
        "difference of means",
        loss,
        ("rows are an independent sample", *read, sizes),
        notes,
        None,
        np.array([at]),
        rows if asked.replace else round(measured),
        simulate,
        against,
    )

"""Means of several numbers per row: clamped to a box, to a ball, or to a ball that shrinks.

Box. Of each coordinate, clamped to its own bounds, Σ t and k·Σ (t² - 1/2) as in `_normal_mean`.
Over d coordinates their norms add: under REPLACE l1 = 2d for k <= 1/2 and l2² = 4d for k <= 33/20;
under ADD_REMOVE, with c·n beside, l1 = d·(1 + k/2) + c and l2² = d·(1 + k²/4) + c² for k <= 1.

Ball. See `_ball`.

Shrinking ball. Several balls, each around the mean that the one before found, and each only as
large as the rows need around it: what is known of the mean (its noise and its sampling error) and
√d + 2 standard deviations of a row. A radius never grows, so that small n·epsilon cannot make it
diverge. The rounds are Gaussian mechanisms whose noise multipliers are fixed beforehand, from
public facts alone; so their losses add up as one Gaussian's whatever was found.

Model. Box: each coordinate by itself, whatever its law: `FreeMeans`. Ball: `BallModel`.

Source. Biswas, Dong, Kamath and Ullman, "CoinPress", NeurIPS 2020, for the shrinking ball.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import number_text
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._ball import BallModel, BallRelease
from dither.inference.engine._errors import SimulatedErrors
from dither.inference.engine._inputs import Bounds, Floats, Target, bounds_of, matrix, target
from dither.inference.engine._release import (
    Noise,
    NoisyStatistic,
    first_moments,
    gaussian_is_better,
    noise_of_either,
    noise_of_rho,
    rows_of,
    seen_at_best,
    spread_of,
)
from dither.inference.engine._result import PrivateEstimate, too_few_rows
from dither.inference.estimates._free_means import FreeMeans
from dither.inference.estimates._mean import noisy_means, of_clamped
from dither.privacy import Charge, Loss, Neighbours

__all__ = [
    "BoxRelease",
    "centre_of",
    "coordinate_models",
    "errors_of",
    "estimates_of",
    "means",
    "names_of",
]

_ROUNDS: tuple[tuple[Fraction, ...], ...] = tuple(
    tuple(Fraction(part, 40) for part in parts)
    for parts in (
        (40,),
        (1, 39),
        (2, 38),
        (4, 36),
        (8, 32),
        (1, 2, 37),
        (2, 4, 34),
        (1, 1, 2, 36),
        (2, 2, 4, 32),
    )
)
"""Shares of the rounds of a shrinking ball; the best is chosen by public facts."""


@dataclass(frozen=True)
class BoxRelease:
    """Layer 1 of a box: two moments of each coordinate.

    Parameters
    ----------
    bounds : tuple of Bounds
        One for each coordinate.
    asked : Target
    rho : Fraction, optional
        What the release may cost in zCDP, in the place of what was asked for.
    """

    bounds: tuple[Bounds, ...]
    asked: Target
    rho: Fraction | None = None
    square: Fraction = field(init=False)
    count: Fraction = field(default=Fraction(1), init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        d, asked = len(self.bounds), self.asked

        def lengths(k: Fraction) -> tuple[Fraction, Fraction]:
            """How far one row moves the statistic, whose squares have the weight k."""
            if asked.replace:
                return Fraction(2 * d), Fraction(4 * d)
            return d * (1 + k / 2) + 1, d * (1 + k**2 / 4) + 1

        # Each noise with the weight that suits it.
        of_laplace = Fraction(1, 2)
        of_gaussian = Fraction(33, 20) if asked.replace else Fraction(1)
        gaussian = self.rho is not None or gaussian_is_better(
            asked, l1=float(lengths(of_laplace)[0]), l2=math.sqrt(lengths(of_gaussian)[1])
        )
        k = of_gaussian if gaussian else of_laplace
        l1, l2_squared = lengths(k)
        dimension = 2 * d + int(not asked.replace)
        noise: Noise
        if self.rho is not None:
            noise, loss = noise_of_rho(
                self.rho, l2_squared, dimension=dimension, neighbours=asked.neighbours
            )
        else:
            noise, loss = noise_of_either(
                gaussian,
                asked=asked,
                dimension=dimension,
                l1=l1,
                l2_squared=l2_squared,
            )
        for name, value in (("square", k), ("noise", noise), ("loss", loss)):
            object.__setattr__(self, name, value)

    def statistic(self, rows: Floats) -> tuple[Fraction, ...]:
        """The exact vector; a missing number counts as the middle of its bounds."""
        n = len(rows)
        found: list[Fraction] = []
        if not self.asked.replace:
            rows = rows[~np.isnan(rows).all(axis=1)]
            n = len(rows)
        for j, bounds in enumerate(self.bounds):
            column = rows[:, j]
            points = bounds.lattice(np.where(np.isnan(column), float(bounds.middle), column))
            found += first_moments(points, Bounds.steps, n, self.square)
        if not self.asked.replace:
            found.append(self.count * n)
        return tuple(found)

    def release(self, rows: Floats) -> NoisyStatistic:
        """The statistic with noise: the one step that touches data."""
        return NoisyStatistic(self.noise.release(self.statistic(rows)), self.noise, self.loss)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        asked = target(1, 0, "replace")
        design = cls((bounds_of("bounds", (-1, 1)),) * 2, asked)
        rows = np.array([[-9.0, -9.0]]), np.array([[9.0, 9.0]])
        yield Subject("means in a box", seen_at_best(design, *rows), *rows)


def means(
    rows: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    bounds: Any = None,
    radius: Number | None = None,
    centre: Any = 0,
    spread: Number | None = None,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    names: Sequence[str] | None = None,
) -> PrivateEstimate:
    """The mean of several numbers per row, with intervals that count sampling, noise and clamping.

    Parameters
    ----------
    rows : array of shape (n, d), or frame
        A row is who is protected.
    epsilon, delta : number
        What the release may cost. Above a few numbers per row a delta buys much.
    bounds : (number, number), or one pair for each number, optional
        A box: each number is clamped to its own ends, and means are those of clamped numbers.
    radius : number, optional
        A ball, in the place of ``bounds``: rows that are further from the centre are moved to its
        sphere. With ``spread``, how far the mean may lie from the centre.
    centre : number or sequence of d numbers
        Of the ball.
    spread : number, optional
        A public bound of the standard deviation of each number; then the ball shrinks in rounds.
    neighbours : {"replace", "add-remove"}
    names : sequence of str, optional
        Of the numbers, for summaries; those of a frame are its columns.

    Returns
    -------
    PrivateEstimate
        Of d numbers; intervals are of each by itself.

    Raises
    ------
    ArgumentError
        Neither bounds nor a radius is given, or both; or an argument is out of range.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. A missing number
    counts as the middle of its bounds; in a ball a row with one counts as the centre, or not at all
    where rows are added or removed.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> x = np.random.default_rng(1).normal(0.5, 1, (4000, 10))
    >>> found = inference.means(x, radius=4, spread=1, epsilon=1, delta=1e-6)
    >>> found.estimate.shape, bool(np.abs(found.estimate - 0.5).max() < 0.2)
    ((10,), True)
    """
    asked = target(epsilon, delta, neighbours)
    if (bounds is None) == (radius is None):
        raise ArgumentError(
            "give bounds=(lower, upper) for a box, or radius= (with centre=) for a ball"
        )
    values = matrix("rows", rows)
    d = values.shape[1]
    labels = names_of(rows, names, d)
    if bounds is not None:
        if spread is not None:
            raise ArgumentError("spread belongs to a ball: give radius= in the place of bounds=")
        return _in_box(values, _each_bounds(bounds, d), asked, labels)
    reach = check.number("radius", radius, above=0)
    middle = centre_of(centre, d)
    if spread is None:
        return _in_ball(values, middle, reach, asked, labels)
    width = check.number("spread", spread, above=0)
    return _shrinking(values, middle, reach, width, asked, labels)


def _each_bounds(bounds: Any, d: int) -> tuple[Bounds, ...]:
    try:
        each = list(bounds)
    except TypeError:
        each = []
    flat = not any(hasattr(end, "__len__") and not isinstance(end, str) for end in each)
    if len(each) == 2 and flat:
        return (bounds_of("bounds", bounds),) * d
    if len(each) != d:
        raise ArgumentError("bounds must be one pair, or as many pairs as each row has numbers")
    return tuple(bounds_of(f"bounds[{j}]", pair) for j, pair in enumerate(each))


def names_of(rows: Any, names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    """The names of the numbers of a row: as given, those of a frame, or x1, x2, ..."""
    names_given = list(getattr(rows, "columns", [])) if names is None else list(names)
    if names is not None and len(names_given) != d:
        raise ArgumentError("names must be as many as each row has numbers")
    return (
        tuple(map(str, names_given))
        if len(names_given) == d
        else tuple(f"x{j + 1}" for j in range(d))
    )


def centre_of(centre: Any, d: int) -> Floats:
    """The centre of a ball: one number for all coordinates, or one for each."""
    if isinstance(centre, int | float | Fraction | str):
        return np.full(d, check.number("centre", centre))
    found = [check.number(f"centre[{j}]", value) for j, value in enumerate(centre)]
    if len(found) != d:
        raise ArgumentError("centre must be a number, or as many as each row has")
    return np.array(found)


def _noise_of_one(
    design: BoxRelease, measured: bool, rng: np.random.Generator, size: int
) -> Floats:
    """Of the sums of one coordinate of a box, as `FreeMeans` asks for it."""
    drawn = spread_of(design.noise).draw(rng, (size, 3))
    counted = drawn[:, 2] / float(design.count) if measured else np.zeros(size)
    squares = drawn[:, 1] / float(design.square)
    return np.stack([counted, drawn[:, 0], squares + counted / 2], axis=1)[:, None]


def coordinate_models(
    design: BoxRelease, released: NoisyStatistic, rows: int | None
) -> tuple[FreeMeans, ...]:
    """Of each coordinate of a box, its model."""
    values, d, k = released.values, len(design.bounds), float(design.square)
    n = rows_of(values, design.count, rows)

    noise = partial(_noise_of_one, design, rows is None)
    moments = values[: 2 * d].reshape(d, 2)
    return tuple(
        FreeMeans(np.array([[n, first, second / k + n / 2]]), noise) for first, second in moments
    )


def errors_of(
    models: Sequence[FreeMeans],
    bounds: Sequence[Bounds],
    rng: np.random.Generator,
    size: int,
) -> SimulatedErrors:
    """The errors of several coordinates side by side."""
    pairs = zip(models, bounds, strict=True)
    parts = [model.errors(rng, size, ends) for model, ends in pairs]
    return SimulatedErrors(
        np.concatenate([p.estimate for p in parts]),
        np.concatenate([p.draws for p in parts], axis=1),
        np.concatenate([p.sampling for p in parts], axis=1),
        np.concatenate([p.limits for p in parts if p.limits is not None]),
    )


def estimates_of(models: Sequence[FreeMeans], bounds: Sequence[Bounds]) -> Floats:
    """The estimates of several coordinates, each within its bounds."""
    pairs = zip(models, bounds, strict=True)
    return np.array([float(m.clipped[0] * float(b.half)) + float(b.middle) for m, b in pairs])


def _in_box(
    values: Floats, bounds: tuple[Bounds, ...], asked: Target, names: tuple[str, ...]
) -> PrivateEstimate:
    design = BoxRelease(bounds, asked)
    released = design.release(values)
    rows = len(values) if asked.replace else None
    models = coordinate_models(design, released, rows)
    clamped = "means are those of numbers clamped to their bounds"
    if len(set(bounds)) == 1:
        clamped = of_clamped(bounds[0], "means are those")
    notes = noisy_means(models[0].noise_of_means, models[0].n)
    shown = round(float(models[0].n[0])) if rows is None else rows
    return PrivateEstimate(
        "means in a box",
        released.loss,
        ("rows are an independent sample", clamped),
        notes,
        names,
        estimates_of(models, bounds),
        shown,
        partial(errors_of, models, bounds),
    )


def _in_ball(
    values: Floats, centre: Floats, radius: float, asked: Target, names: tuple[str, ...]
) -> PrivateEstimate:
    design = BallRelease(values.shape[1], asked)
    released = design.release(values, centre, radius)
    model = BallModel(design, released.values, len(values) if asked.replace else None)
    return _of_ball(model, released.loss, centre, radius, names, "means in a ball")


def _of_simulated(
    model: BallModel, estimates: Floats, scale: float, rng: np.random.Generator, size: int
) -> SimulatedErrors:
    noisy, sampling = model.simulate(rng, size)
    return SimulatedErrors(estimates, scale * noisy, scale * sampling)


def _of_ball(
    model: BallModel, loss: Loss, centre: Floats, radius: float, names: tuple[str, ...], title: str
) -> PrivateEstimate:
    scale = radius * model.design.stretch
    estimates = centre + scale * model.mean

    assumptions = (
        "rows are an independent sample",
        "rows are normal around their mean, alike in every direction",
    )
    notes = _small(spread_of(model.design.noise).deviation / model.n, model.n)
    shown = round(model.n) if model.rows is None else model.rows
    simulate = partial(_of_simulated, model, estimates, scale)
    return PrivateEstimate(title, loss, assumptions, notes, names, estimates, shown, simulate)


def _small(noise: float, n: float) -> tuple[str, ...]:
    if noise <= 0.25:
        return ()
    spans, times = "the noise spans much of what rows are clamped to", noise / 0.05
    return (too_few_rows(spans, n * times, times),)


def _radii(
    d: int, n: float, radius: float, spread: float, shares: Sequence[Fraction], sigma: float
) -> list[float]:
    """The radii of the rounds: public facts alone, but for a measured n."""
    need, known = spread * (math.sqrt(d) + 2.0), radius
    found: list[float] = []
    for share in shares:
        found.append(min(known + need, found[-1] if found else math.inf))
        noise = sigma / math.sqrt(share) * found[-1] / n
        known = math.sqrt(spread**2 / n + noise**2) * (math.sqrt(d) + 3.0)
    return found


def _shrinking(
    values: Floats,
    centre: Floats,
    radius: float,
    spread: float,
    asked: Target,
    names: tuple[str, ...],
) -> PrivateEstimate:
    if asked.delta <= 0:
        raise ArgumentError("delta must be above 0 where a ball shrinks: its rounds are Gaussian")
    d = values.shape[1]
    sigma = spread_of(BallRelease(d, asked, gaussian=True).noise).deviation
    # Where n is measured the rounds are chosen for 1,000 rows: any choice is private.
    guess = float(max(1, len(values))) if asked.replace else 1000.0
    shares = min(
        _ROUNDS,
        key=lambda s: _radii(d, guess, radius, spread, s, sigma)[-1] / math.sqrt(s[-1]),
    )
    designs, loss = _rounds(d, asked, shares)
    n, middle, reach = guess, centre, math.inf
    model: BallModel | None = None
    for i, design in enumerate(designs):
        if model is not None:
            middle, n = middle + reach * design.stretch * model.mean, model.n
        reach = min(_radii(d, n, radius, spread, shares[: i + 1], sigma)[-1], reach)
        released = design.release(values, middle, reach)
        model = BallModel(design, released.values, len(values) if asked.replace else None)
    assert model is not None
    rounds = f" that shrank over {len(shares)} rounds" if len(shares) > 1 else ""
    title = f"means in a ball{rounds}"
    found = _of_ball(model, loss, middle, reach, names, title)
    bound = f"no number's standard deviation is above {number_text(spread)}"
    return replace(found, assumptions=(*found.assumptions, bound))


def _rounds(d: int, asked: Target, shares: Sequence[Fraction]) -> tuple[list[BallRelease], Loss]:
    """The rounds, and what they cost together: no more than was asked for."""
    whole = BallRelease(d, asked, gaussian=True)
    if len(shares) == 1:
        return [whole], whole.loss
    for spare in (0, 20, 14, 8, 4):
        # Rounding each round to the lattice may cost a trifle beyond one Gaussian's delta.
        kept = 1 - Fraction(1, 1 << spare) if spare else Fraction(1)
        designs = [BallRelease(d, asked, share * kept, gaussian=True) for share in shares]
        total = designs[0].loss
        for design in designs[1:]:
            total = total + design.loss
        lost = Fraction(total.delta(float(asked.epsilon)))
        if lost <= asked.delta:
            break
    else:
        raise ArgumentError("epsilon and delta cannot be divided over rounds: leave spread out")
    rho = sum((design.loss.charge.rho or Fraction(0) for design in designs), Fraction(0))
    return designs, total.with_charge(Charge(asked.epsilon, lost, rho))

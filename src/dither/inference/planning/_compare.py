"""Ways of asking one thing, side by side: what each errs by, on rows that are simulated.

Which way is best depends on the shape of the rows: how many, how wide their bounds, how skewed. To
try ways on the rows themselves would cost epsilon each time, and to choose the best of them would
cost more. Rows that are simulated from a stated shape cost nothing. In each run all ways are given
the same rows, drawn again for each of them from one seed, so that none can change what the next
one sees; noise is fresh each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._format import Printable, count_text, display_text, level, number_text
from dither.errors import ArgumentError, DitherError
from dither.inference.engine._inputs import Floats, column
from dither.inference.engine._result import PrivateEstimate, PrivateResult
from dither.inference.engine._simulation import Seed, SimulatedDraws, batches
from dither.inference.engine._tabulated import Tabulated
from dither.numeric import float_up

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Comparison", "compare"]

_DRAWS = 400
"""Of an interval: its ends vary by a few per cent, its coverage hardly."""


@dataclass(frozen=True, slots=True)
class MethodResult:
    """What one way reached.

    Parameters
    ----------
    name : str
    error : float
        The root of the mean squared error, over runs and numbers.
    width : float or None
        The median length of intervals; None where there are none.
    coverage : float or None
        The share of intervals that hold the truth.
    cost : str
        What one run costs, with the neighbours.
    epsilon, delta : float or None
        The same as numbers, rounded up.
    neighbours : str or None
    """

    name: str
    error: float
    width: float | None
    coverage: float | None
    cost: str
    epsilon: float | None
    delta: float | None
    neighbours: str | None


@dataclass(frozen=True, eq=False)
class Comparison(Tabulated, Printable):
    """Ways of asking one thing, with what each errs by and costs.

    Parameters
    ----------
    ways : tuple of MethodResult
        In the order in which they were given.
    runs : int
    confidence : float
        Of the intervals.
    """

    ways: tuple[MethodResult, ...]
    runs: int
    confidence: float

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: way, error, width, coverage, epsilon, delta, neighbours."""
        import polars as pl

        return pl.DataFrame(
            [
                (w.name, w.error, w.width, w.coverage, w.epsilon, w.delta, w.neighbours)
                for w in self.ways
            ],
            schema={
                "way": pl.String,
                "error": pl.Float64,
                "width": pl.Float64,
                "coverage": pl.Float64,
                "epsilon": pl.Float64,
                "delta": pl.Float64,
                "neighbours": pl.String,
            },
            orient="row",
        )

    def summary(self) -> str:
        """A line for each way, and how far coverage may be off by chance."""
        rows = [("", "error", "width", "coverage", "cost")]
        for w in self.ways:
            width, coverage = _text(w.width, 3), _text(w.coverage, 2)
            rows.append((display_text(w.name), _text(w.error, 3), width, coverage, w.cost))
        wide = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = [
            f"{row[0]:<{wide[0]}}  "
            + "  ".join(f"{row[k]:>{wide[k]}}" for k in (1, 2, 3))
            + f"  {row[4]}"
            for row in rows
        ]
        from scipy.stats import binom

        low, high = (binom.ppf(q, self.runs, self.confidence) / self.runs for q in (0.025, 0.975))
        lines.append(
            f"{count_text(self.runs, 'run')} of simulated rows; intervals at "
            f"{level(self.confidence)}. By chance alone their coverage may show as anything from "
            f"{number_text(low, 2)} to {number_text(high, 2)}."
        )
        return "\n".join(lines)


def compare(
    ways: Mapping[str, Callable[[Any], Any]],
    sample: Callable[[np.random.Generator], Any],
    truth: Any,
    *,
    runs: int = 100,
    confidence: float = 0.95,
    seed: Seed = None,
) -> Comparison:
    """Compare ways of asking one thing on simulated rows: error, intervals and cost of each.

    Parameters
    ----------
    ways : mapping from names to functions
        Each takes rows and returns an estimate of ``truth``: a result of `dither.inference`; or,
        of a way of your own, the bare estimate or a tuple (estimate, lower, upper).
    sample : function
        Takes a `numpy.random.Generator` and returns rows of the shape that you expect. It must not
        use the data: neither their rows nor anything that was computed from them.
    truth : number or sequence of numbers
        What the ways estimate, as the shape has it.
    runs : int
        How often each way is tried, at least 2.
    confidence : float
        Of the intervals, in (0, 1).
    seed : int, numpy.random.Generator or None
        Of the simulated rows. Noise is fresh each time, so that errors differ a little from one
        call to the next.

    Returns
    -------
    Comparison
        A table as text, or as ``frame``. ``error`` is the root of the mean squared error of one
        number, ``width`` the median length of its intervals, ``coverage`` the share of them that
        hold the truth.

    Raises
    ------
    ArgumentError
        An argument is out of range, ``sample`` does not use the generator, or a way returns what
        is not an estimate of as many numbers as ``truth``.

    Notes
    -----
    Nothing is charged and no data is read. A way that looks good here may fail where the rows have
    another shape: try more than one. The neighbours stand beside each cost, since an epsilon for
    neighbours that replace a row allows about twice as much change as one that adds or removes it.

    Examples
    --------
    Means of ten numbers, each clamped to its own bounds or all of them together to a ball:

    >>> from dither import inference
    >>> asked = {"epsilon": 1, "delta": 1e-6}
    >>> found = inference.compare(
    ...     {
    ...         "box": lambda rows: inference.means(rows, bounds=(-5, 5), **asked),
    ...         "ball": lambda rows: inference.means(rows, radius=7, **asked),
    ...     },
    ...     sample=lambda rng: rng.normal(0, 1, (1000, 10)),
    ...     truth=[0] * 10,
    ...     runs=10,
    ... )
    >>> box, ball = found.frame["error"]
    >>> ball < box, found.frame["epsilon"].to_list()
    (True, [1.0, 1.0])
    """
    if not isinstance(ways, Mapping) or not ways:
        raise ArgumentError("ways must be a mapping from names to functions, with at least one")
    for name, way in ways.items():
        if not isinstance(name, str) or not callable(way):
            raise ArgumentError("ways must be a mapping from names (texts) to functions of rows")
    if not callable(sample):
        raise ArgumentError("sample must be a function that takes a generator and returns rows")
    right = _truth(truth)
    runs, confidence = check.whole("runs", runs, 2), check.confidence(confidence)
    seeds = SimulatedDraws.of(seed).integers(0, 2**63 - 1, runs)
    found: dict[str, list[_Run]] = {name: [] for name in ways}
    done = 0
    for size in batches(runs, 1, "comparison"):
        for at in seeds[done : done + size].tolist():
            for name, way in ways.items():
                rows = _drawn(sample, at)
                found[name].append(_asked(name, way, rows, right.shape, confidence))
        done += size
    return Comparison(
        tuple(_reached(name, tried, right) for name, tried in found.items()), runs, confidence
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """What a way returned once: the estimate, its interval, and the result where there is one."""

    estimate: Floats
    ends: Floats | None
    result: PrivateResult | None


def _truth(given: Any) -> Floats:
    if isinstance(given, int | float | Fraction | str | np.generic):
        return np.array(check.number("truth", given))
    found = column("truth", given)
    if not found.size or not np.isfinite(found).all():
        raise ArgumentError("truth must be a finite number, or a sequence of such")
    return found


def _drawn(sample: Callable[[np.random.Generator], Any], seed: int) -> Any:
    rng = SimulatedDraws.of(seed)
    before = rng.bit_generator.state
    rows = sample(rng)
    if rng.bit_generator.state == before:
        raise ArgumentError(
            "sample must draw its rows from the generator that it is given: ways are compared on "
            "simulated rows, never on the data"
        )
    return rows


def _asked(
    name: str, way: Callable[[Any], Any], rows: Any, shape: tuple[int, ...], confidence: float
) -> _Run:
    """One run of one way, as arrays of the truth's shape."""
    where = f"ways[{name!r}]"
    try:
        made = way(rows)
    except DitherError as error:
        raise ArgumentError(f"{where} was refused: {error}") from error
    result = made if isinstance(made, PrivateResult) else None
    ends = None
    if isinstance(made, PrivateEstimate):
        made = made.simulated(draws=_DRAWS)
        estimate, ends = made.estimate, made.interval(confidence)
    elif result is not None:
        estimate = getattr(made, "estimate", None)
    elif isinstance(made, tuple) and len(made) == 3:
        estimate, ends = made[0], made[1:]
    else:
        estimate = made
    wanted = "one number" if not shape else count_text(shape[0], "number")
    refused = ArgumentError(
        f"{where} must return an estimate of {wanted}, as truth has: a result of inference, the "
        "bare estimate, or a tuple (estimate, lower, upper)"
    )
    if estimate is None:
        raise refused
    try:
        point = np.asarray(estimate, dtype=float)
        bare = ends is not None and not isinstance(result, PrivateEstimate)
        both = None if ends is None else np.asarray(ends, dtype=float)
    except (TypeError, ValueError):
        raise refused from None
    if both is not None and bare and both.ndim > 1:
        both = both.T
    if point.shape != shape or (both is not None and both.shape != (*shape, 2)):
        raise refused
    return _Run(point, both, result)


def _reached(name: str, tried: list[_Run], truth: Floats) -> MethodResult:
    off = np.stack([run.estimate for run in tried]) - truth
    error = float(np.sqrt(np.mean(off**2)))
    width = coverage = None
    intervals = [run.ends for run in tried if run.ends is not None]
    if intervals:
        ends = np.stack(intervals)
        width = float(np.median(ends[..., 1] - ends[..., 0]))
        coverage = float(np.mean((ends[..., 0] <= truth) & (truth <= ends[..., 1])))
    result = tried[0].result
    if result is None:
        return MethodResult(name, error, width, coverage, "not known", None, None, None)
    charge = result.loss.charge
    return MethodResult(
        name,
        error,
        width,
        coverage,
        result.cost,
        None if charge.epsilon is None else float_up(charge.epsilon),
        None if charge.delta is None else float_up(charge.delta),
        result.loss.neighbours.value,
    )


def _text(value: float | None, digits: int) -> str:
    if value is None:
        return "none"
    return number_text(value, digits) if math.isfinite(value) else str(value)

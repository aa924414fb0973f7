"""The cost of privacy: what an estimate errs by without it, must err by with it, and does here.

Rows are independent with variance 1 in each of d coordinates, n of them, n being public; the error
is the expected squared Euclidean distance of the estimate. The error of a method here is that of
sampling, and the variance of the noise of its own release: those constants are exact, but for what
clamping takes. Lower bounds are of the minimax theory: their rates are proved, constants are not
known, and they are shown with constant 1. That of a mean has a factor log(1/δ) under conditions on
ε, δ, d and n; where they do not hold, it is shown without, and says so by its formula.

Source. Cai, Wang and Zhang, "The cost of privacy: optimal rates of convergence for parameter
estimation with differential privacy", Annals of Statistics 2021, theorems 3.1, 3.2 and 4.1;
Steinke and Ullman, "Between pure and approximate differential privacy", 2017, for log(1/δ);
of tests Narayanan, "Private high-dimensional hypothesis testing", COLT 2022, whose lower bound is
√d/α² + d^(1/3)/(α^(4/3)·ε^(2/3)) + 1/(α·ε), solved term by term for α²;
Johnstone, "Gaussian estimation", for 2·s·log(d/s)/n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, cost_text, number_text
from dither.errors import ArgumentError
from dither.inference.engine._ball import BallRelease
from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._inputs import Bounds, Floats, Target, target
from dither.inference.engine._pairs import BLOCKS
from dither.inference.engine._release import spread_of
from dither.inference.engine._tabulated import Tabulated
from dither.inference.estimates._means import BoxRelease
from dither.inference.estimates._sparse import SparseRelease

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["CostOfPrivacy", "ErrorDecay", "cost_of_privacy"]

PROBLEMS = ("mean", "sparse mean", "regression", "identity")
TEST = "identity"
_UNKNOWN = "not known, shown as 1"
_OVERSPENT = "exact, but this noise loses more than ε"


@dataclass(frozen=True)
class ErrorDecay:
    """How an error falls with n: ``per_n``/n + ``per_root``/n^1.5 + ``per_square``/n².

    Parameters
    ----------
    name : str
    formula : str
        In n, d, s and ε.
    per_n, per_square : float
    constant : str
        "exact", or what is not known of it.
    per_root : float
    """

    name: str
    formula: str
    per_n: float
    per_square: float
    constant: str
    per_root: float = 0.0

    def at(self, n: Any) -> Any:
        """The error with n rows."""
        rows = np.asarray(n, dtype=float)
        return self.per_n / rows + self.per_root / rows**1.5 + self.per_square / np.square(rows)


@dataclass(frozen=True, eq=False)
class CostOfPrivacy(Tabulated, Printable):
    """Three errors of one problem: without privacy, at least with it, and of each method here.

    Parameters
    ----------
    problem : str
    n, d : int
    s : int or None
    epsilon, delta : Fraction
    sampling : ErrorDecay
        Without privacy.
    lower : ErrorDecay
        What no private method can be below, but for its constant.
    methods : tuple of ErrorDecay
    """

    problem: str
    n: int
    d: int
    s: int | None
    epsilon: Fraction
    delta: Fraction
    sampling: ErrorDecay
    lower: ErrorDecay
    methods: tuple[ErrorDecay, ...]

    @property
    def best(self) -> ErrorDecay:
        """The method of least error with n rows, of those that cost no more than epsilon."""
        kept = [m for m in self.methods if m.constant != _OVERSPENT]
        return min(kept, key=lambda m: float(m.at(self.n)))

    @property
    def starts(self) -> float:
        """The n below which privacy more than doubles the best method's error.

        Infinite where it does so at every n.
        """
        if self.problem != TEST:
            return self.best.per_square / self.best.per_n
        over = 2 * self.sampling.per_n - self.best.per_n
        return (self.best.per_root / over) ** 2 if over > 0 else math.inf

    @property
    def rates(self) -> tuple[ErrorDecay, ...]:
        """All of them, as they are shown."""
        return self.sampling, self.lower, *self.methods

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: name, error with n rows, formula, and what is known of the constant."""
        import polars as pl

        return pl.DataFrame(
            [(r.name, float(r.at(self.n)), r.formula, r.constant) for r in self.rates],
            schema={
                "name": pl.String,
                "error": pl.Float64,
                "formula": pl.String,
                "constant": pl.String,
            },
            orient="row",
        )

    def summary(self) -> str:
        """A line for each rate, and where privacy starts to cost."""
        wide = max(len(r.name) for r in self.rates)
        of = f"d = {self.d:,}" + (f", s = {self.s:,}" if self.s is not None else "")
        asked = cost_text(self.epsilon, self.delta)
        lines = [f"{self.problem}, n = {self.n:,}, {of}, {asked}: {self.measure}"]
        for r in self.rates:
            error = number_text(float(r.at(self.n)), 3)
            lines.append(f"{r.name:<{wide}}  {error:>10}  {r.formula}; constant {r.constant}")
        if math.isinf(self.starts):
            lines.append(f"With {self.best.name}, privacy more than doubles it whatever n is.")
            return "\n".join(lines)
        lines.append(
            f"With {self.best.name}, privacy more than doubles the error below n = "
            f"{number_text(math.ceil(self.starts), 2)}."
        )
        return "\n".join(lines)

    @property
    def measure(self) -> str:
        """What is compared."""
        if self.problem == TEST:
            return "least squared distance seen (size 1/3, power 2/3)"
        return "mean squared error"

    @property
    def grid(self) -> Floats:
        """The n of the picture: two decades to either side of where privacy starts to cost."""
        middle = max(10.0, self.starts) if math.isfinite(self.starts) else float(self.n)
        return np.geomspace(
            max(1.0, min(middle / 30, self.n / 3)), max(middle * 100, self.n * 3), 200
        )

    def plot(self, path: str | None = None) -> Figure:
        """Draw the errors against n, and where privacy starts to cost.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from dither.plots._inference import draw_cost

        return draw_cost(self, path)


def cost_of_privacy(
    problem: str,
    n: int,
    d: int = 1,
    s: int | None = None,
    epsilon: Number = 1,
    delta: Number = 1e-6,
    *,
    reach: Number = 4,
) -> CostOfPrivacy:
    """What privacy costs: the error without it, the least with it, and that of each method here.

    Parameters
    ----------
    problem : {"mean", "sparse mean", "regression", "identity"}
        "identity": of the test of rows of ±1, `identity_test`, how near to fair coins is told from
        them: the square of the length of the expected row.
    n : int
        Rows, at least 1.
    d : int
        Coordinates, or regressors, at least 1.
    s : int, optional
        Of a sparse mean: how many coordinates are not 0, from 1 to d - 1.
    epsilon, delta : number
        For neighbours that replace a row.
    reach : number
        Bounds of each coordinate, in deviations to either side of the middle, above 0. Norms of
        rows are taken to be within √d + reach.

    Returns
    -------
    CostOfPrivacy

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Notes
    -----
    Nothing is spent and no data is read. Errors are for variance 1 in each coordinate; values that
    clamping moves are not counted.

    Examples
    --------
    >>> from dither import inference
    >>> found = inference.cost_of_privacy("mean", 10_000, d=10)
    >>> [round(float(r.at(10_000)), 5) for r in (found.sampling, found.best)]
    [0.001, 0.00137]
    >>> 3000 < found.starts < 5000
    True
    """
    check.choice("problem", problem, PROBLEMS)
    n, d = check.whole("n", n, 1), check.whole("d", d, 1)
    asked = target(epsilon, delta, "replace")
    half = check.positive("reach", reach)
    if problem == "sparse mean":
        if s is None:
            raise ArgumentError("s must be given: how many coordinates are not 0")
        if check.whole("s", s, 1) >= d:
            raise ArgumentError("s must be below d: else nothing is sparse; ask for 'mean'")
    elif s is not None:
        raise ArgumentError("s goes with 'sparse mean' alone")
    made: dict[str, Callable[[], tuple[ErrorDecay, ErrorDecay, tuple[ErrorDecay, ...]]]] = {
        "mean": lambda: _of_mean(d, asked, half),
        "sparse mean": lambda: _of_sparse(d, s or 1, asked, half),
        "regression": lambda: _of_regression(d, asked),
        TEST: lambda: _of_identity(d, asked),
    }
    sampling, lower, methods = made[problem]()
    if problem == "mean":
        lower = _with_delta(lower, n, d, asked)
    return CostOfPrivacy(problem, n, d, s, asked.epsilon, asked.delta, sampling, lower, methods)


def _of_mean(
    d: int, asked: Target, half: Fraction
) -> tuple[ErrorDecay, ErrorDecay, tuple[ErrorDecay, ...]]:
    eps, bounds = float(asked.epsilon), Bounds(-half, half)
    sampling = ErrorDecay("without privacy", "d/n", d, 0.0, "exact")
    lower = ErrorDecay("lower bound", "d/n + d²/(nε)²", d, (d / eps) ** 2, _UNKNOWN)
    noise = (
        GroupSumsRelease(bounds, asked).noise if d == 1 else BoxRelease((bounds,) * d, asked).noise
    )
    box = (spread_of(noise).deviation * float(half)) ** 2 * d
    methods = [ErrorDecay("mean, in a box", "d/n + d·σ²/n²", d, box, "exact")]
    if d > 1:
        radius = math.sqrt(d) + float(half)
        ball = (spread_of(BallRelease(d, asked).noise).deviation * radius) ** 2 * d
        methods.append(ErrorDecay("mean, in a ball", "d/n + d·σ²/n²", d, ball, "exact"))
    if asked.delta > 0:
        printed = 4 * float(half) ** 2 * d**2 * -math.log(float(asked.delta)) / eps**2
        formula = "d/n + 4·R²·d²·log(1/δ)/(nε)²"
        methods.append(ErrorDecay("truncated mean as printed", formula, d, printed, _OVERSPENT))
    return sampling, lower, tuple(methods)


def _with_delta(lower: ErrorDecay, n: int, d: int, asked: Target) -> ErrorDecay:
    """The lower bound of a mean with the factor log(1/δ), where its conditions hold for these n.

    They are those of its proof: ε < 1, exp(-nε)/n < δ < 1/n, d ≥ log(1/δ) and n ≥ √(d log(1/δ))/ε,
    whose constants are not known and taken as 1. Where one fails the factor is not proved: a method
    that gives a row away with chance δ may then do better.
    """
    eps, delta = float(asked.epsilon), float(asked.delta)
    if not 0 < delta < 1 / n or eps >= 1:
        return lower
    log = -math.log(delta)
    # exp(-nε)/n < δ, in logarithms: exp(-nε) may be too small for a float.
    if not (log < n * eps + math.log(n) and d >= log and n >= math.sqrt(d * log) / eps):
        return lower
    known = f"{_UNKNOWN}; for n from {math.ceil(math.sqrt(d * log) / eps):,} to 1/δ"
    return ErrorDecay(
        lower.name, "d/n + d²·log(1/δ)/(nε)²", lower.per_n, lower.per_square * log, known
    )


def _of_sparse(
    d: int, s: int, asked: Target, half: Fraction
) -> tuple[ErrorDecay, ErrorDecay, tuple[ErrorDecay, ...]]:
    eps = float(asked.epsilon)
    sampling = ErrorDecay(
        "without privacy", "2·s·log(d/s)/n", 2 * s * math.log(d / s), 0.0, "exact as s/d falls to 0"
    )
    lower = ErrorDecay(
        "lower bound",
        "s·log(d/s)/n + (s·log d)²/(nε)²",
        s * math.log(d / s),
        (s * math.log(d) / eps) ** 2,
        _UNKNOWN,
    )
    design = SparseRelease(Bounds(-half, half), s, asked)
    one = (spread_of(design.box.noise).deviation * float(half)) ** 2 * s
    scale = 4 * float(half) * math.sqrt(-3 * s * math.log(float(asked.delta))) / eps
    known = "exact for the noise of values; what the noise of the choice misses comes on top"
    per_n, sampled = sampling.per_n, "2·s·log(d/s)/n"
    methods = (
        ErrorDecay("sparse mean, one-shot", f"{sampled} + s·σ²/n²", per_n, one, known),
        ErrorDecay(
            "sparse mean, peeling as printed",
            f"{sampled} + 2·s·b²/n²",
            per_n,
            2 * s * scale**2,
            known,
        ),
    )
    return sampling, lower, methods


def _of_regression(d: int, asked: Target) -> tuple[ErrorDecay, ErrorDecay, tuple[ErrorDecay, ...]]:
    eps = float(asked.epsilon)
    sampling = ErrorDecay("without privacy", "d/n", d, 0.0, "exact for regressors of covariance I")
    square = (d / eps) ** 2
    lower = ErrorDecay("lower bound", "d/n + d²/(nε)²", d, square, _UNKNOWN)
    logs = max(1.0, -math.log(float(asked.delta))) if asked.delta > 0 else 1.0
    method = ErrorDecay(
        "noisy moments",
        "d/n + d²·log(1/δ)/(nε)²",
        d,
        square * logs,
        "not known: it depends on the least eigenvalue of the regressors; shown as 1",
    )
    return sampling, lower, (method,)


def _of_identity(d: int, asked: Target) -> tuple[ErrorDecay, ErrorDecay, tuple[ErrorDecay, ...]]:
    """Squared lengths of expected rows of ±1 that tests of size 1/3 see two times in three.

    With z = 2·Φ⁻¹(2/3) and l = 2·ln(3/2), twice the quantiles of a normal law and of Laplace's of
    scale 1: ‖S‖² has mean n²·α² and deviation n·√(2·d); its length (noise of scale 2·√d/ε) moves by
    n^1.5·α²/(2·√d) beside √(n/2); pairs as `_pairs` says. Adding up the two parts bounds from above
    what both do together.
    """
    eps, root = float(asked.epsilon), math.sqrt(d)
    z, tail = 2 * 0.4307273, 2 * math.log(1.5)
    k = BLOCKS
    plain = z * math.sqrt(2) * root
    sampling = ErrorDecay("without privacy", "1.22·√d/n", plain, 0.0, "to leading order")
    lower = ErrorDecay(
        "lower bound", "√d/n + √d/(ε·n^1.5) + 1/(nε)²", root, 1 / eps**2, _UNKNOWN, root / eps
    )
    norm = ErrorDecay(
        "identity test, norm",
        "1.22·√d/n + 3.24·d/(ε·n^1.5)",
        plain,
        0.0,
        "at most this, to leading order",
        4 * tail * d / eps,
    )
    signs = math.sqrt(2 * math.pi) * (z * math.sqrt(k / (2 * (k - 1))) + 2 * tail / eps) * root
    pairs = ErrorDecay(
        "identity test, pairs",
        "(1.58 + 4.07/ε)·√d/n",
        signs,
        0.0,
        "at most this, to leading order",
    )
    return sampling, lower, (norm, pairs)

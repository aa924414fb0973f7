"""Noise that is correlated over steps: DP-FTRL by matrix factorisation.

Training adds up gradients. With one row a step, the iterates are ``A·G`` for a lower-triangular
``A``, the *workload* (of plain descent: ones on and below the diagonal). Write ``A = B·C`` with
``C`` lower-triangular and ``C[i, i] > 0``. Released is ``C·G + s·Z``, of independent standard
normal ``Z``, and all else is computed from it: ``B·(C·G + s·Z) = A·(G + s·C⁻¹·Z)``. So a step adds
its row of ``s·C⁻¹·Z`` to the sum of its clipped gradients; what one step adds, later ones take back
in part. No batch is sampled, and none needs to be.

*Guarantee.* Let a unit take part in at most k steps, any two of them at least b apart, that are
fixed without the data; whenever it does, its gradient has an L2 norm of at most 1. Two data sets
differ by ``U = G - G'``, whose rows are 0 but in those steps. With ``sensitivity >= ‖C·U‖`` (the
Frobenius norm) for all such ``U``, and ``s = z·sensitivity``, the whole run is what one Gaussian of
sensitivity 1 over z is: ``privacy.gaussian(z)``, also where each gradient is chosen in view of all
that was released before.

*Proof.* Row i of ``C·G`` depends on rows up to i alone, so step i is a Gaussian mechanism whose
mean moves by ``(C·U)[i]``, given the past. Whatever was chosen, ``Σ‖(C·U)[i]‖²`` is at most
sensitivity² on every path. A sequence of adaptive Gaussian mechanisms with ``Σ mu_i² <= mu²`` on
every path is mu-GDP (Smith and Thakurta, 2022, theorem 3.1), as one Gaussian is.

*Neighbours.* The order of rows is fixed, so one that is taken out leaves its place empty: its
gradient is 0 wherever it took part, everybody else is where they were ("add or remove", *zeroed
out*), and ``‖U[i]‖ <= clip``. A row that is replaced by another has ``‖U[i]‖ <= 2·clip``: noise is
then twice as large for the same z. How many rows and steps there are is public.

*Sensitivity, C Toeplitz with c_0 >= c_1 >= ... >= 0.* It is the norm of the sum of the columns
``0, b, 2b, ...``, of which there are ``m = min(k, ceil(n/b))``. *Proof.* With steps
``i_1 < i_2 < ...`` and ``X = Cᵀ·C``, ::

    ‖C·U‖² = Σ_pq X[i_p, i_q]·⟨u_p, u_q⟩ <= Σ_pq X[i_p, i_q]

as X >= 0, with equality where all u are one unit vector. For i <= j, ``X[i, j]`` is the sum over
``0 <= l < n - j`` of ``c_l·c_(l+j-i)``: it falls in j (fewer terms) and in j - i (smaller ones).
``i_q >= (q-1)·b`` and ``i_q - i_p >= (q-p)·b``, so no pattern has more than ``0, b, 2b, ...``; more
steps add terms of at least 0. ∎

*Sensitivity, any C.* ``‖C·U‖² <= Σ_pq |X[i_p, i_q]|``. With ``w_i`` the largest sum of row i of
``|X|`` over the patterns that hold i, it is at most the largest sum of ``w`` over a pattern; both
by dynamic programming. With k = 1 it is the largest norm of a column, exactly.

*Which C.* The square root of A, whose generating function is ``((1 - x)·(1 - beta·x))^(-1/2)`` with
momentum beta, is near the best for one epoch. Cut off after ``bands`` coefficients it needs
bands - 1 vectors of memory; so does one of ``buffers`` geometric sequences, ``c_i = Σ_j
alpha_j·lambda_j^(i-1)``, which are fitted to the run. The best C of all, for one epoch, is the
fixed point of ``v = diag((D·AᵀA·D)^(1/2))`` with ``D = diag(v)^(1/2)``, and costs n³ a round.

Source. Denisov, McMahan, Rush, Smith and Thakurta, "Improved differential privacy for SGD via
optimal private linear operators on adaptive streams", 2022 (the fixed point, adaptive streams);
Fichtenberger, Henzinger and Upadhyay, 2023 (the square root); Kalinin and Lampert, "Banded square
root matrix factorization", 2024; Choquette-Choo et al., "(Amplified) banded matrix factorization",
2023 (theorem 2); Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and near-optimal
noise generation for streaming differential privacy", 2024 (geometric sequences).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._extras import extra_library
from dither._format import Printable, count_text, number_text
from dither._stats import EPS
from dither.errors import ArgumentError
from dither.privacy import Loss, Neighbours, gaussian

__all__ = [
    "Factorization",
    "Participation",
    "StreamedNoise",
    "Workload",
    "factorization",
    "greatest_of_patterns",
    "of_matrix",
]

Floats = npt.NDArray[np.float64]
Vector = TypeVar("Vector", bound=Any)

METHODS = ("buffers", "bands", "square root", "optimal", "independent")
# A dense C of 2^11 steps takes 32 MiB, and each round of its fixed point n³ operations.
MOST_STEPS, MOST_DENSE = 1 << 17, 1 << 11
MOST_BUFFERS = 8


@dataclass(frozen=True, slots=True)
class Participation:
    """How often one unit takes part, and how far apart.

    Parameters
    ----------
    steps : int
        Of the run, n.
    times : int
        In how many of them a unit takes part, at most: k.
    apart : int
        By how many steps any two of those differ, at least: b.

    Examples
    --------
    >>> Participation.of_epochs(each=50, epochs=3)
    Participation(steps=150, times=3, apart=50)
    """

    steps: int
    times: int = 1
    apart: int = 1

    def __post_init__(self) -> None:
        check.whole("steps", self.steps, 1, most=MOST_STEPS)
        check.whole("times", self.times, 1)
        check.whole("apart", self.apart, 1)

    @staticmethod
    def of_epochs(each: int, epochs: int = 1) -> Participation:
        """Every unit once an epoch, in the same one of its ``each`` steps."""
        n = check.whole("each", each, 1) * check.whole("epochs", epochs, 1)
        return Participation(n, epochs, each)

    @property
    def most(self) -> int:
        """In how many steps a unit can take part at all: min(k, ceil(n/b))."""
        return min(self.times, -(-self.steps // self.apart))


@dataclass(frozen=True, slots=True)
class Workload:
    """What is added up: gradients, by descent with momentum and a rate a step.

    ``v_t = momentum·v_(t-1) + g_t`` and ``theta_t = theta_(t-1) - rates_t·v_t``; the errors of a
    factorisation are those of ``theta``, of a rate of 1.

    Parameters
    ----------
    steps : int
    momentum : float
        In [0, 1).
    rates : tuple of float, optional
        The learning rate of each step beside the first one, at least 0; all 1 by default.

    Examples
    --------
    >>> Workload(3).matrix().tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    >>> Workload.cooling(4, share=0.5).rates
    (1.0, 1.0, 0.5, 0.0)
    """

    steps: int
    momentum: float = 0.0
    rates: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check.whole("steps", self.steps, 1, most=MOST_STEPS)
        check.number("momentum", self.momentum, least=0, below=1)
        if self.rates is not None:
            if len(self.rates) != self.steps:
                raise ArgumentError("rates must have one learning rate for each step")
            for rate in self.rates:
                check.number("rates", rate, least=0)

    @staticmethod
    def cooling(
        steps: int, share: float = 0.2, last: float = 0.0, momentum: float = 0.0
    ) -> Workload:
        """Rates of 1 that fall to ``last``, straight, over the last ``share`` of the steps."""
        n = check.whole("steps", steps, 1, most=MOST_STEPS)
        check.number("share", share, least=0, most=1)
        check.number("last", last, least=0, most=1)
        falling = round(share * n)
        fall = 1.0 - (1.0 - last) * np.arange(1, falling + 1) / max(falling, 1)
        return Workload(n, momentum, tuple([1.0] * (n - falling) + fall.tolist()))

    def matrix(self) -> Floats:
        """The lower-triangular A, shape (steps, steps)."""
        return self.applied(np.eye(self.steps))

    def applied(self, rows: Floats) -> Floats:
        """A times some rows."""
        total, speed = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
        found = np.empty_like(rows)
        for t, row in enumerate(rows):
            speed = self.momentum * speed + row
            total = total + (1.0 if self.rates is None else self.rates[t]) * speed
            found[t] = total
        return found

    def column(self) -> Floats:
        """The first column of A where all rates are 1: A is then Toeplitz."""
        powers = self.momentum ** np.arange(self.steps, dtype=np.float64)
        return np.cumsum(powers)


@dataclass(frozen=True, eq=False)
class Factorization(Printable):
    """A choice of C, with what it costs and what it errs; see `factorization`.

    Attributes
    ----------
    method : str
    participation : Participation
    workload : Workload
    sensitivity : float
        Of ``C·G``, for gradients of norm 1: an upper bound, roundings included.
    column : array of float64 or None
        The first column of a Toeplitz C, which ends with its last coefficient that is not 0.
    buffers : (array, array) or None
        alpha and lambda, where the column is made of geometric sequences.
    matrix : array of float64 or None
        C, where it is not Toeplitz.
    """

    method: str
    participation: Participation
    workload: Workload
    sensitivity: float
    column: Floats | None = field(default=None, repr=False)
    buffers: tuple[Floats, Floats] | None = field(default=None, repr=False)
    matrix: Floats | None = field(default=None, repr=False)

    @property
    def memory(self) -> int:
        """How many vectors as long as a gradient are kept between steps."""
        if self.buffers is not None:
            return len(self.buffers[0])
        n = self.participation.steps if self.column is None else len(self.column)
        return n - 1

    def deviations(self, workload: Workload | None = None) -> Floats:
        """The deviation of the noise in each iterate, for clip 1 and a noise multiplier of 1.

        Shape (steps,). It is ``sensitivity·‖row t of A·C⁻¹‖``: known before anything is spent.
        """
        of = self.workload if workload is None else workload
        n = self.participation.steps
        if of.steps != n:
            raise ArgumentError("workload must have as many steps as the factorisation")
        if self.matrix is None and of.rates is None:
            squares = np.cumsum(_multiplied(of.column(), _inverse(self._whole_column(n))) ** 2)
            return self.sensitivity * np.sqrt(squares)
        rows = self._inverse_rows(n)
        total, speed, found = np.zeros(n), np.zeros(n), np.empty(n)
        for t in range(n):
            speed = of.momentum * speed + rows(t)
            total = total + (1.0 if of.rates is None else of.rates[t]) * speed
            found[t] = total @ total
        return self.sensitivity * np.sqrt(found)

    @cached_property
    def variances(self) -> Floats:
        """The variance of the noise that each step adds, for independent noise of variance 1."""
        n = self.participation.steps
        if self.matrix is not None:
            return np.asarray((np.linalg.inv(self.matrix) ** 2).sum(axis=1))
        return np.cumsum(_inverse(self._whole_column(n)) ** 2)

    def mean_error(self, workload: Workload | None = None) -> float:
        """The root of the mean squared deviation over iterates."""
        return float(np.sqrt((self.deviations(workload) ** 2).mean()))

    def max_error(self, workload: Workload | None = None) -> float:
        """The largest deviation of an iterate."""
        return float(self.deviations(workload).max())

    def loss(
        self, noise_multiplier: Number, neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    ) -> Loss:
        """What the whole run loses: one Gaussian, whatever the number of steps.

        Examples
        --------
        >>> from dither import privacy
        >>> run = factorization(Participation.of_epochs(10, 3))
        >>> run.loss(2).epsilon(1e-6) == privacy.gaussian(2).epsilon(1e-6)
        True
        """
        return gaussian(noise_multiplier, neighbours=neighbours)

    def summary(self) -> str:
        """What is charged, kept in memory and erred, in words."""
        run = self.participation
        times = f"at most {count_text(run.most, 'time')}"
        gaps = f", {run.apart:,} steps apart or more" if run.most > 1 else ""
        alone = factorization(run, workload=self.workload, method="independent")
        ratio = self.mean_error() / alone.mean_error()
        return "\n".join(
            [
                f"{self.method}: {count_text(run.steps, 'step')}; a unit takes part {times}{gaps}",
                f"sensitivity {number_text(self.sensitivity, 4)}; "
                f"{count_text(self.memory, 'vector')} of memory",
                f"deviation of an iterate's noise, for clip 1 and a noise multiplier of 1: "
                f"{number_text(self.mean_error(), 4)} (mean square), "
                f"{number_text(self.max_error(), 4)} (largest); "
                f"{number_text(ratio, 3)} times that of independent noise",
            ]
        )

    def _whole_column(self, n: int) -> Floats:
        assert self.column is not None
        return np.concatenate([self.column, np.zeros(n - len(self.column))])

    def _inverse_rows(self, n: int) -> Any:
        """Of a step, the row of C⁻¹."""
        if self.matrix is not None:
            inverse = np.linalg.inv(self.matrix)
            return lambda t: inverse[t]
        first = _inverse(self._whole_column(n))
        return lambda t: np.concatenate([first[t::-1], np.zeros(n - t - 1)])


class StreamedNoise:
    """The rows of C⁻¹·Z, one a step, from those of Z.

    It takes numpy arrays or torch tensors of any one shape, and keeps `Factorization.memory` of
    them. What it keeps is as secret as the noise.

    Examples
    --------
    >>> made = factorization(Participation(3), method="square root")
    >>> noise = StreamedNoise(made)
    >>> [noise.next(z) for z in (1.0, 0.0, 0.0)]
    [1.0, -0.5, -0.125]
    """

    def __init__(self, of: Factorization) -> None:
        self.of = of
        self.step = 0
        self._held: list[Any] = []

    def next(self, z: Vector) -> Vector:
        """The correlated noise of the next step.

        Raises
        ------
        ArgumentError
            After the last step that was charged; nothing changes.
        """
        if self.step >= self.of.participation.steps:
            raise ArgumentError(
                f"all {self.of.participation.steps:,} steps that were charged are done"
            )
        out = z
        if self.of.buffers is not None:
            weights, decays = (x.tolist() for x in self.of.buffers)
            for weight, held in zip(weights, self._held, strict=False):
                out = out - weight * held
            past = self._held or [0.0 * z for _ in weights]
            self._held = [decay * held + out for decay, held in zip(decays, past, strict=True)]
        elif self.of.matrix is not None:
            row = self.of.matrix[self.step]
            for s, held in enumerate(self._held):
                out = out - float(row[s]) * held
            out = out / float(row[self.step])
            self._held.append(out)
        else:
            assert self.of.column is not None
            for c, held in zip(self.of.column[1:].tolist(), self._held, strict=False):
                out = out - c * held
            self._held = [out, *self._held][: self.of.memory]
        self.step += 1
        return out

    def state(self) -> dict[str, Any]:
        """What goes on from here: the step, and vectors. As secret as the noise."""
        return {"step": self.step, "held": list(self._held)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.step, self._held = int(state["step"]), list(state["held"])


def factorization(
    participation: Participation,
    *,
    workload: Workload | None = None,
    method: str = "buffers",
    bands: int | None = None,
    buffers: int = 4,
) -> Factorization:
    """Choose C for a run.

    Parameters
    ----------
    participation : Participation
        How often a unit takes part: what the loop must keep to.
    workload : Workload, optional
        What is added up; by default plain descent. Coefficients are fitted to its momentum, errors
        are stated for its rates too.
    method : str
        - ``"buffers"``: geometric sequences, fitted; little memory, and near the best.
        - ``"bands"``: the square root of A, cut off after ``bands``.
        - ``"square root"``: all of it; as many vectors of memory as steps.
        - ``"optimal"``: the least mean squared error of any C, for one epoch and few steps.
        - ``"independent"``: no correlation.
    bands : int, optional
        By default ``apart``, so that no two rows of one unit meet, and at most 64.
    buffers : int
        1 to 8.

    Returns
    -------
    Factorization

    Raises
    ------
    ArgumentError
        For arguments out of range.

    Examples
    --------
    >>> found = factorization(Participation.of_epochs(100, epochs=4))
    >>> found.memory, found.mean_error() < 0.6 * factorization(
    ...     found.participation, method="independent").mean_error()
    (4, True)
    """
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(map(repr, METHODS))}")
    n = participation.steps
    work = Workload(n) if workload is None else workload
    if work.steps != n:
        raise ArgumentError("workload must have as many steps as participation")
    if method == "optimal":
        return _optimal(participation, work)
    if method == "buffers":
        return _fitted(participation, work, check.whole("buffers", buffers, 1, MOST_BUFFERS))
    if method == "independent":
        length = 1
    elif method == "bands":
        default = min(participation.apart, 64) if participation.most > 1 else 64
        length = min(n, default if bands is None else check.whole("bands", bands, 1))
    else:
        length = n
    column = _square_root(length, work.momentum)
    return Factorization(method, participation, work, _sensitivity(column, participation), column)


def _square_root(n: int, momentum: float) -> Floats:
    """Coefficients of ((1 - x)·(1 - momentum·x))^(-1/2), made to fall where roundings do not."""
    i = np.arange(1, n, dtype=np.float64)
    roots = np.concatenate([[1.0], np.cumprod((2.0 * i - 1.0) / (2.0 * i))])
    if momentum:
        roots = _multiplied(roots, roots * momentum ** np.arange(n, dtype=np.float64))
    # Any such column is a choice of C: its own doubles are what the sensitivity is computed of.
    return np.minimum.accumulate(np.maximum(roots, 0.0))


def _sensitivity(column: Floats, run: Participation, roundings: int = 0) -> float:
    """Of a column that falls and is at least 0: the norm of columns 0, b, 2b, ..., rounded up.

    Numbers of at least 0 are added and squared: a sum of m = ``most`` doubles errs by m·EPS/2 of
    itself at most, its square by twice that and EPS/2, a sum of n squares by n·EPS/2 more, and the
    root halves it all and adds EPS/2. ``roundings`` are EPS/2 that each coefficient errs by.
    """
    n = run.steps
    total = np.zeros(n)
    for start in range(0, run.most * run.apart, run.apart):
        part = column[: n - start]
        total[start : start + len(part)] += part
    found = math.sqrt(float((total**2).sum()))
    # Sums of numbers of at least 0, which err by EPS/2 a term and a step: twice as much, or more.
    return found * (1.0 + EPS * (n + run.most + roundings + 4))


def _inverse(series: Floats) -> Floats:
    """The power series 1/series, by Newton's doubling; for errors, never for a sensitivity."""
    n = len(series)
    found = np.array([1.0 / series[0]])
    while len(found) < n:
        before, size = found, min(2 * len(found), n)
        found = np.zeros(size)
        found[: len(before)] = before
        rest = -_multiplied(series[:size], found)
        rest[0] += 2.0
        found = _multiplied(found, rest)
    return found


def _multiplied(one: Floats, other: Floats) -> Floats:
    """The product of two power series, to the length of the first."""
    n = len(one)
    if n <= 64:
        return np.convolve(one, other)[:n]
    size = 1 << (n + len(other) - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(other, size), size)
    return np.asarray(product[:n])


def _fitted(run: Participation, work: Workload, many: int) -> Factorization:
    """Geometric sequences with the least mean squared error of iterates, of a rate of 1."""
    weights, decays = _sequences(np.array(_shape(run, work, many)))
    column = _geometric(weights, decays, run.steps)
    # A coefficient is a sum of ``many`` products, of i + 1 factors: each errs by that many EPS/2.
    sensitivity = _sensitivity(column, run, roundings=run.steps + many + 2)
    return Factorization("buffers", run, work, sensitivity, column, (weights, decays))


@lru_cache(maxsize=64)
def _shape(run: Participation, work: Workload, many: int) -> tuple[float, ...]:
    """What those sequences are made of; a run that goes on asks for it again.

    They start from the square root's, ``c_i = ∫ lambda^i dP`` of the arcsine law P, by intervals of
    ``log(1 - lambda)`` from 1/n on; momentum moves that start a little, and the search does the
    rest. The search is of shape alone: whatever it ends with, the sensitivity is computed of that.
    """
    minimize = extra_library("scipy.optimize", "learn", "sequences that fit need").minimize
    n = run.steps
    aims = work.column()
    left = np.arange(n, 0, -1, dtype=np.float64)

    def error(shape: Floats) -> float:
        weights, decays = _sequences(shape)
        if weights.sum() > 1.0:
            return 50.0 + float(weights.sum())
        column = _geometric(weights, decays, n)
        rows = _multiplied(aims, _inverse(column))
        return math.log(_sensitivity(column, run)) + 0.5 * math.log(float(left @ rows**2))

    edges = np.geomspace(min(1.0, 1.0 / n), 1.0, many + 1)
    gaps = np.sqrt(edges[1:] * edges[:-1])
    # The mass of the arcsine law on 1 - lambda in [e, f] is (2/pi)·(asin √f - asin √e).
    mass = np.diff(2.0 / math.pi * np.arcsin(np.sqrt(edges)))
    start = np.concatenate([np.log(np.minimum(mass, 0.9) * (1.0 - gaps) + 1e-3), np.log(gaps)])
    while np.exp(start[:many]).sum() > 0.98:
        start[:many] -= 0.05
    best = minimize(
        error, start, method="Nelder-Mead",
        options={"maxfev": 150 * many, "xatol": 1e-4, "fatol": 1e-6, "adaptive": True},
    ).x  # fmt: skip
    return tuple(map(float, best if error(best) <= error(start) else start))


def _sequences(shape: Floats) -> tuple[Floats, Floats]:
    """Weights above 0 and decays in [0, 1), of logarithms of weights and of gaps to 1."""
    half = len(shape) // 2
    weights = np.exp(np.minimum(shape[:half], 1.0))
    # A gap below 2**-40 would not differ from none over as many steps as there may be.
    gaps = np.exp(np.clip(shape[half:], -40 * math.log(2.0), 0.0))
    return weights, 1.0 - gaps


def _geometric(weights: Floats, decays: Floats, n: int) -> Floats:
    """1, then the sums of the sequences; the column falls where the weights are at most 1 in all.

    Powers by repeated products, so that i of them have i roundings.
    """
    if math.fsum(weights.tolist()) > 1.0:
        raise ArgumentError("the weights of geometric sequences must be at most 1 in all")
    powers = np.cumprod(np.broadcast_to(decays[:, None], (len(decays), max(n - 2, 0))), axis=1)
    rest = np.concatenate([np.ones((len(decays), 1)), powers], axis=1)[:, : n - 1]
    return np.concatenate([[1.0], weights @ rest]) if n > 1 else np.ones(1)


def _optimal(run: Participation, work: Workload) -> Factorization:
    """The fixed point of Denisov et al. (theorem 3.2), and its lower-triangular root."""
    n = run.steps
    if run.most > 1:
        raise ArgumentError(
            'method "optimal" is of one epoch, in which a unit takes part once: use "buffers"'
        )
    if n > MOST_DENSE:
        raise ArgumentError(f'method "optimal" takes at most {MOST_DENSE:,} steps: use "buffers"')
    workload = work.matrix()
    gram = workload.T @ workload
    # A step of rate 0 adds nothing to any iterate; it is given a little weight, so that C exists.
    gram = gram + 1e-6 * float(np.trace(gram)) / n * np.eye(n)
    v = np.sqrt(np.diag(gram))
    for _ in range(200):
        d = np.sqrt(v)
        values, vectors = np.linalg.eigh(d[:, None] * gram * d)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        moved, v = v, np.diag(root)
        if np.abs(v - moved).max() <= 1e-6 * v.max():  # a tolerance of the error alone
            break
    d = np.sqrt(v)
    squared = root / d[:, None] / d
    # X = CᵀC with C lower-triangular: the root of Cholesky, from the last row and column on.
    flipped = np.linalg.cholesky(squared[::-1, ::-1])
    matrix = np.tril(flipped.T[::-1, ::-1])
    # Columns of length 1: then every step costs the same, and none less than it might.
    matrix = np.ascontiguousarray(matrix / np.linalg.norm(matrix, axis=0))
    return of_matrix(matrix, run, work, "optimal")


def of_matrix(
    matrix: Floats, run: Participation, work: Workload, method: str = "given"
) -> Factorization:
    """A factorisation of any lower-triangular C with a diagonal above 0.

    Raises
    ------
    ArgumentError
        It is not such a matrix, or not of so many steps.
    """
    n = run.steps
    given = np.asarray(matrix, dtype=np.float64)
    if given.shape != (n, n) or not np.isfinite(given).all() or np.triu(given, 1).any():
        raise ArgumentError("matrix must be lower-triangular, with one row and column a step")
    if not (np.diag(given) > 0).all():
        raise ArgumentError("matrix must have a diagonal above 0")
    if run.most == 1:
        largest = math.sqrt(float((given**2).sum(axis=0).max()))
        sensitivity = largest * (1.0 + EPS * (n + 4))
    else:
        # An inner product of n terms errs by n·EPS/2 of that of the absolute values.
        sizes = np.abs(given)
        gram = np.abs(given.T @ given) + EPS * (n + 2) * (sizes.T @ sizes)
        bound = greatest_of_patterns(gram, run)
        sensitivity = math.sqrt(bound) * (1.0 + EPS * (2 * run.most + 4))
    return Factorization(method, run, work, sensitivity, matrix=given)


def greatest_of_patterns(sizes: Floats, run: Participation) -> float:
    """A bound of the sum of entries [p, q] over all p and q of a pattern; entries at least 0.

    Exact where entries off the diagonal, at least ``apart`` from it, are 0.

    Examples
    --------
    >>> greatest_of_patterns(np.eye(6), Participation(6, times=4, apart=2))
    3.0
    """
    return float(_heaviest(_weights(sizes, run)[None], run.most, run.apart)[-1, 0, -1])


def _weights(sizes: Floats, run: Participation) -> Floats:
    """Of each i, the largest sum of its row over a pattern that holds i."""
    n, b, most = len(sizes), run.apart, run.most
    place = np.arange(n)
    before = np.where(place[None, :] <= place[:, None] - b, sizes, 0.0)
    after = np.where(place[None, :] >= place[:, None] + b, sizes, 0.0)
    left = _heaviest(before, most - 1, b)[:, :, -1]
    right = _heaviest(after, most - 1, b)[:, :, -1]
    others = np.max([left[p] + right[most - 1 - p] for p in range(most)], axis=0)
    return np.asarray(np.diag(sizes) + others)


def _heaviest(rows: Floats, most: int, apart: int) -> Floats:
    """Of each row, the largest sum of at most p of its first j entries that are so far apart.

    Shape (most + 1, rows, n + 1).
    """
    count, n = rows.shape
    found = np.zeros((most + 1, count, n + 1))
    for p in range(1, most + 1):
        for j in range(1, n + 1):
            taken = rows[:, j - 1] + found[p - 1, :, max(j - apart, 0)]
            found[p, :, j] = np.maximum(found[p, :, j - 1], taken)
    return found

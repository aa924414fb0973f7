"""The test of tests: any function that returns a p-value, made private by asking it on blocks.

Release. Rows are dealt into m blocks without looking at them: by a random order into equal parts
where n is public, each row on its own where it is not. The function is asked of each block, and X
is the number of blocks with p <= a. A row that is replaced, added or removed is in one block, so
that X moves by at most 1, and leaves with canonical noise.

Proof. The deal has one law on both tables (of the other rows, where one is added); given it all
blocks but one are the same. That needs the function to answer from its block alone.

Model and infer. Where the function's p-values are valid, X under the null is at most Binomial(m, a)
in the stochastic order: the p-value is Pr[Binomial(m, a) + N >= X + N], computed, and exact where
the function's p-values are uniform.

Source. Kazan, Shi, Groce and Bray, "The test of tests: a framework for differentially private
hypothesis testing", ICML 2023.
"""

# ruff: noqa: PT028 - `test_of_tests` is not a test of ours, whatever its name begins with.
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._silence import silence
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Floats, Target, target
from dither.inference.engine._result import PrivateTest, share_of_noise
from dither.inference.estimates._proportion import CanonicalNoise, binomial
from dither.noise import below
from dither.privacy import Loss, Neighbours

__all__ = ["RejectionsRelease", "best_level", "test_of_tests"]

Places = Any


@dataclass(frozen=True)
class RejectionsRelease:
    """Layer 1: the number of blocks of which a function's p-value is at most a level.

    Parameters
    ----------
    blocks : int
    level : float
    asked : Target
    """

    blocks: int
    level: float
    asked: Target
    noise: CanonicalNoise = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", CanonicalNoise(self.asked))

    @property
    def loss(self) -> Loss:
        """That of the noise of a count."""
        return self.noise.loss

    def statistic(self, rows: Any, function: Callable[[Any], Any]) -> int:
        """How many blocks reject."""
        n = len(rows)
        if self.asked.replace:
            # Of 124 bits, so that no two rows tie and keep the order that they came in.
            keys = [below(1 << 62, n) for _ in range(2)]
            places = np.empty(n, dtype=np.int64)
            places[np.lexsort(keys)] = np.arange(n) % self.blocks
        else:
            places = np.asarray(below(self.blocks, n), dtype=np.int64)
        held = [np.flatnonzero(places == b) for b in range(self.blocks)]
        return sum(self._rejects(function, rows, indices) for indices in held)

    def _rejects(self, function: Callable[[Any], Any], rows: Any, indices: Any) -> bool:
        try:
            with silence():
                found = function(_taken(rows, indices))
                value = getattr(found, "pvalue", found)
                return not isinstance(value, str) and bool(0.0 <= float(value) <= self.level)
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever it is, an exit too, it must not show
            return False

    def release(self, rows: Any, function: Callable[[Any], Any], size: int = 1) -> Floats:
        """That number with noise, dealt anew each time: the one step that touches data."""
        with silence():
            counts = np.array([self.statistic(rows, function) for _ in range(size)])
        return counts + self.noise.release((0,) * size)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that makes its block reject."""
        for kind in Neighbours.of_tables():
            design = cls(3, 0.1, target(1, 0, kind))
            first = [1.0] * 6
            second = [0.0, *first[1:]] if design.asked.replace else [0.0, *first]
            yield Subject(f"test of tests, {kind.value}", design._least, first, second)

    def _least(self, rows: list[float], size: int) -> Floats:
        """Releases of a test that rejects where a block holds a 0, for audits."""
        return self.release(rows, lambda block: min(block, default=1.0), size)


def _taken(rows: Any, indices: Any) -> Any:
    """Some rows of an array, a frame or a sequence, as a copy."""
    if hasattr(rows, "iloc"):
        return rows.iloc[indices].copy()
    if isinstance(rows, np.ndarray):
        return rows[indices]
    if hasattr(rows, "take"):  # pyarrow
        return rows.take(indices)
    if hasattr(rows, "clone"):  # Polars
        return rows[indices.tolist()]
    return [rows[i] for i in indices.tolist()]


def best_level(blocks: int, noise: CanonicalNoise) -> float:
    """The level of blocks with which an effect that is half seen in a block is seen best.

    Examples
    --------
    >>> from dither.inference.engine._inputs import target
    >>> 0.05 <= best_level(20, CanonicalNoise(target(1, 0, "replace"))) <= 0.3
    True
    """
    from scipy.stats import norm

    levels = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
    # A two-sided test of a block whose statistic is normal, 1.5 deviations off.
    seen = norm.sf(norm.isf(levels / 2) - 1.5) + norm.cdf(-norm.isf(levels / 2) - 1.5)
    null = np.sqrt(blocks * levels * (1 - levels) + noise.variance)
    spread = np.sqrt(blocks * seen * (1 - seen) + noise.variance)
    return float(levels[np.argmax((blocks * (seen - levels) - 1.645 * null) / spread)])


def test_of_tests(
    test: Callable[[Any], Any],
    rows: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    blocks: int | None = None,
    level: Number | None = None,
    neighbours: Neighbours | str = Neighbours.REPLACE,
) -> PrivateTest:
    """Any test made private: it is asked on disjoint blocks, and the rejections are counted.

    Parameters
    ----------
    test : callable
        Of a block of rows, of the kind of ``rows``: a p-value, or a result with ``pvalue``. It must
        answer from its block alone and keep nothing between calls. Where it raises, exits or gives
        no number in [0, 1], its block does not reject; nothing that it prints, warns or logs is
        shown.
    rows : array, frame or sequence
        One row a person; for two groups let each row hold its group and its value.
    epsilon, delta : number
        What the release may cost; all of it is spent.
    blocks : int, optional
        m, public. By default one for each 10 rows where n is public, between 4 and 30.
    level : number, optional
        In (0, 1): the p-value at which a block rejects, public. By default chosen from m and
        epsilon.
    neighbours : {"replace", "add-remove"}
        Whether n is public. Where it is not, ``blocks`` must be given.

    Returns
    -------
    PrivateTest
        Its statistic is the number of blocks that reject, with noise.

    Raises
    ------
    ArgumentError
        An argument is out of range. Nothing that the test does with a row raises anything, but an
        interrupt from the keyboard.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. The time that the
    test takes is not covered, nor a test that writes elsewhere.

    *Level.* Exact where the test's own p-values are uniform under the null; conservative where it
    is, or where it fails on blocks.

    References
    ----------
    Kazan, Shi, Groce and Bray, ICML 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from dither import inference
    >>> x = np.random.default_rng(1).normal(0.5, 1, 600)
    >>> found = inference.test_of_tests(lambda block: stats.ttest_1samp(block, 0), x, epsilon=1)
    >>> found.pvalue < 0.01
    True
    """
    asked = target(epsilon, delta, neighbours)
    if not callable(test):
        raise ArgumentError("test must be a function of a block of rows that gives a p-value")
    if isinstance(rows, str | bytes | dict) or not hasattr(rows, "__len__"):
        raise ArgumentError("rows must be an array, a frame or a sequence of rows")
    if blocks is None:
        if not asked.replace:
            raise ArgumentError("blocks must be given where the number of rows is private")
        blocks = min(30, max(4, len(rows) // 10))
    m = check.whole("blocks", blocks, 1)
    if level is None:
        at = best_level(m, CanonicalNoise(asked))
    else:
        at = check.number("level", level, above=0, below=1)
    design = RejectionsRelease(m, at, asked)
    released = float(design.release(rows, test)[0])
    x, law = binomial(m, at)
    pvalue = float(np.sum(law * design.noise.survival(released - x)))
    notes: tuple[str, ...] = ()
    reached = float(np.sum(law * design.noise.survival(m - x)))
    if reached > 0.05:
        more = math.ceil(math.log(0.05) / math.log(at)) + round(
            4 * math.sqrt(design.noise.variance)
        )
        notes = (
            "blocks are too few for this epsilon: if all reject, p is still above 0.05. About "
            f"{more} would do.",
        )
    return PrivateTest(
        "test of tests",
        design.loss,
        ("the test's own p-values are valid on a block", "rows are an independent sample"),
        notes,
        "the null of the test",
        released,
        # No p-value of 0 is told: a smaller one is said to be this, which is the safe side.
        min(1.0, max(pvalue, 1e-15)),
        noise_share=share_of_noise(
            math.sqrt(design.noise.variance), math.sqrt(m * at * (1.0 - at))
        ),
    )


test_of_tests.__test__ = False  # type: ignore[attr-defined]

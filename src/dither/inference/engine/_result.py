"""What people get: one family of results, each with its errors, its cost and what it assumes.

A result holds released numbers and nothing of the data. Errors are simulated when they are first
asked for, once, and then serve every interval and p-value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._format import (
    Printable,
    cost_text,
    count_text,
    level,
    loss_text,
    number_text,
    percent,
    remaining,
)
from dither._format import interval as interval_text
from dither.errors import ArgumentError
from dither.inference.engine._errors import DRAWS, Errors, as_alternative, monte_carlo
from dither.inference.engine._inputs import Floats
from dither.inference.engine._simulation import Seed, SimulatedDraws
from dither.inference.engine._tabulated import PrintedTable, Tabulated, cell_text
from dither.privacy import Loss

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from dither.session._certificate import Certificate

__all__ = [
    "MEASURED",
    "PrivateEstimate",
    "PrivateResult",
    "PrivateTest",
    "interval_shown",
    "p_text",
    "share_of_noise",
    "simulated_test",
    "too_few_rows",
]

_WIDTH = 96
_SHOWN = 20

MEASURED = "n is as measured"
"""What is assumed where the number of rows is protected as well."""


@dataclass(frozen=True, eq=False)
class PrivateResult(Tabulated, Printable, ABC):
    """What every result has.

    Parameters
    ----------
    title : str
        What it is, for people.
    loss : Loss
        What it cost: ``result.loss.promising("patient")`` can be charged to a ledger account.
    assumptions : tuple of str
        What its numbers rest on.
    notes : tuple of str
        What was seen that speaks against them, or limits them.
    certificate : Certificate or None
        What a release of a table promises, and where the ledger has it.
    people : bool
        Whether what is counted are people who may have several rows each.
    released : polars.DataFrame, mapping or None
        The noisy sums of a table that it was read from, of a logistic regression its noisy scores
        as plain data; its certificate has their hash.
    """

    title: str
    loss: Loss
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    certificate: Certificate | None = field(default=None, kw_only=True)
    people: bool = field(default=False, kw_only=True)
    released: pl.DataFrame | Mapping[str, Any] | None = field(
        default=None, kw_only=True, repr=False
    )

    @abstractmethod
    def _lines(self) -> list[str]:
        """The summary without cost, assumptions and notes."""

    @abstractmethod
    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw it.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.

        Returns
        -------
        matplotlib.figure.Figure
        """

    @property
    def cost(self) -> str:
        """What it cost, in a few words, with the neighbours."""
        charge = self.loss.charge
        if charge.epsilon is None and charge.rho is not None:
            paid = f"ρ = {loss_text(charge.rho)}"
        else:
            paid = cost_text(charge.epsilon, charge.delta)
        return f"{paid}, neighbours {self.loss.neighbours.value!r}"

    def _caption(self) -> str:
        return f"{self.title}; {self.cost}"

    def _counted(self, rows: int) -> str:
        """How many there are, and whether that is public."""
        who = count_text(rows, "row")
        if self.people:
            who = "1 person" if rows == 1 else f"{rows:,} people"
        public = self.loss.neighbours.value == "replace" and MEASURED not in self.assumptions
        return who if public else f"{who} (measured with noise)"

    def summary(self) -> str:
        """A few lines for people: the numbers, what share of their error is noise, the cost."""
        lines = [*self._lines(), f"Cost: {self.cost}."]
        if self.certificate is not None:
            lines[-1] += f" Ledger entry {self.certificate.content['ledger']['entry']}."
            if told := self.certificate.content["text"].get("blocks"):
                lines.append(f"Blocks: {told}.")
        if self.assumptions:
            lines.append(f"Assumes: {'; '.join(self.assumptions)}.")
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(fill(line, _WIDTH, subsequent_indent="  ") for line in lines)


@dataclass(frozen=True, eq=False)
class PrivateEstimate(PrivateResult):
    """An estimate of one number, or of several, that counts sampling and noise.

    Parameters
    ----------
    names : tuple of str or None
        Of the numbers; None where there is one, and then everything below is a float.
    values : array of float, shape (k,)
        The estimates.
    rows : int
        How many rows it is of: public under 'replace', else as measured with noise.
    null : float
        What `pvalue` tests.
    simulate : callable
        Of a generator and a number of draws, the errors; `dither.inference.engine._errors`.
    draws : int
    seed : int, generator or None
        Of the simulation.
    """

    names: tuple[str, ...] | None
    values: Floats
    rows: int
    simulate: Callable[[np.random.Generator, int], Errors] = field(repr=False)
    null: float = 0.0
    draws: int = DRAWS
    seed: Seed = None

    @cached_property
    def errors(self) -> Errors:
        """The simulated errors, drawn once."""
        return self.simulate(SimulatedDraws.of(self.seed), self.draws)

    def simulated(self, *, draws: int = DRAWS, seed: Seed = None) -> PrivateEstimate:
        """The same released numbers with another simulation; costs nothing.

        Parameters
        ----------
        draws : int
            Simulated releases, 100 to 10**6.
        seed : int, numpy.random.Generator or None
        """
        return replace(self, draws=check.draws(draws), seed=seed)

    @property
    def estimate(self) -> Any:
        """The estimate: a float, or an array of shape (k,)."""
        return self._shaped(self.values)

    @property
    def se(self) -> Any:
        """Standard error, of sampling and noise together."""
        return self._shaped(self.errors.se)

    @property
    def se_sampling(self) -> Any:
        """Standard error that the same sample would have without privacy."""
        return self._shaped(self.errors.se_sampling)

    @property
    def se_privacy(self) -> Any:
        """What privacy adds: se² = se_sampling² + se_privacy²."""
        return self._shaped(self.errors.se_privacy)

    @property
    def pvalue(self) -> Any:
        """Two-sided p-value of the null value that was named when it was asked, by default 0."""
        return self.test(self.null)

    def interval(self, confidence: float = 0.95) -> Any:
        """The interval that holds the truth with this probability, over samples and noise.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        (float, float), or array of shape (k, 2)
            Lower and upper ends.
        """
        ends = self.errors.interval(check.confidence(confidence))
        if self.names is None:
            return float(ends[0, 0]), float(ends[0, 1])
        return ends

    def test(self, null: float = 0.0, alternative: str = "two-sided") -> Any:
        """The p-value of a value: how often chance alone would put the estimate so far from it.

        Parameters
        ----------
        null : float
            The value that is tested.
        alternative : {"two-sided", "less", "greater"}
            On which side of it the truth might be.
        """
        value = check.number("null", null)
        found = self.errors.pvalue(np.full(self.values.shape, value), as_alternative(alternative))
        return self._shaped(found)

    def power(self, truth: float | Sequence[float] | Floats, *, level: float = 0.05) -> Any:
        """How often a release like this one would reject the null, were this the truth.

        Like every interval it follows from what was released, and costs nothing.

        Parameters
        ----------
        truth : float, or a sequence of k
            Beside the null value that was named when it was asked, by default 0. Of several
            numbers, such as the coefficients of a regression, one for each, or one for all.
        level : float
            In (0, 1), of the two-sided test.

        Examples
        --------
        >>> import numpy as np
        >>> from dither import inference
        >>> found = inference.proportion([True, False] * 200, null=0.5, epsilon=1)
        >>> found.power(0.51) < 0.2, found.power(0.7) > 0.99
        (True, True)
        """
        inside = check.number("level", level, above=0, below=1)
        size = self.values.size
        given: Any = truth.tolist() if isinstance(truth, np.ndarray) else truth
        each = list(given) if isinstance(given, list | tuple) else [given] * size
        if len(each) != size:
            each_one = "" if size == 1 else f", or {size:,}: one for each"
            raise ArgumentError(f"truth must be one number{each_one}")
        values = np.array([check.number("truth", value) for value in each])
        null = np.full(values.shape, self.null)
        return self._shaped(self.errors.power(values, null, inside))

    def _framed(self, confidence: float) -> pl.DataFrame:
        import polars as pl

        ends = self.errors.interval(check.confidence(confidence))
        columns = {
            "quantity": [self.title] if self.names is None else list(self.names),
            "estimate": np.asarray(self.values, dtype=float),
            "lower": ends[:, 0],
            "upper": ends[:, 1],
            "se": self.errors.se,
            "se_sampling": self.errors.se_sampling,
            "se_privacy": self.errors.se_privacy,
            "pvalue": np.reshape(self.pvalue, -1),
        }
        return pl.DataFrame(columns)

    def _printed(self, confidence: float) -> PrintedTable:
        frame = self._framed(confidence)
        draws = None if self.errors.exact else self.draws
        against = f"p against {number_text(self.null)}"
        heads = ["", "estimate", f"{level(confidence)} interval", "standard error", against]
        rows = []
        for name, at, low, high, se, *_, p in frame.iter_rows():
            # Outwards, so that what is printed holds all that was found.
            ends = f"{remaining(low)} to {loss_text(high)}"
            told = p_text(p, draws).removeprefix("= ")
            rows.append([name, cell_text(at), ends, cell_text(se), told])
        return heads, rows, 1

    def _shaped(self, values: Floats) -> Any:
        return float(values[0]) if self.names is None else values

    @property
    def _share(self) -> float:
        """The share of the variance of the error that the noise makes, in all coordinates."""
        whole = self.errors.se
        size = float(whole.max())
        if not 0 < size < np.inf:
            return 1.0 if size else 0.0
        total = float(np.sum((whole / size) ** 2))
        return float(np.sum((self.errors.se_privacy / size) ** 2)) / total

    def _lines(self) -> list[str]:
        ends = self.errors.interval(0.95)
        rows = self._counted(self.rows)
        draws = None if self.errors.exact else self.draws
        known = np.isfinite(self.errors.se_sampling)
        if self.names is None:
            shown = interval_shown(self.values[0], *ends[0])
            lines = [f"{self.title}, {rows}: {shown} at {level(0.95)}"]
            error = f"Standard error {number_text(self.se)}"
            if known.all():
                noise = number_text(self.se_privacy)
                error += f": sampling {number_text(self.se_sampling)}, noise {noise}"
            lines.append(
                f"{error}. p {p_text(self.pvalue, draws)} against {number_text(self.null)}."
            )
        else:
            lines = [f"{self.title}, {rows}; intervals at {level(0.95)}"]
            wide = max(len(name) for name in self.names[:_SHOWN])
            for j, name in enumerate(self.names[:_SHOWN]):
                shown = f"{name:<{wide}}  {interval_shown(self.values[j], *ends[j])}"
                part = f" (sampling {number_text(self.errors.se_sampling[j])})" if known[j] else ""
                lines.append(f"{shown}, standard error {number_text(self.errors.se[j])}{part}")
            if len(self.names) > _SHOWN:
                lines.append(f"... and {len(self.names) - _SHOWN:,} more")
        if known.all():
            share = percent(self._share, 0)
            lines.append(f"The noise makes {share} of the variance of the error.")
        else:
            lines.append("How much of the error the noise makes, what was released does not tell.")
        return lines

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the estimate with two intervals: that of sampling alone, and the honest one."""
        from dither.plots._inference import draw_estimate

        return draw_estimate(self, path)


@dataclass(frozen=True, eq=False)
class PrivateTest(PrivateResult):
    """A test of a hypothesis that counts sampling and noise.

    Parameters
    ----------
    null : str
        The hypothesis, for people.
    statistic : float
        As it was released, or computed from what was.
    pvalue : float
    simulated : array of float, optional
        The statistic under the null, where it was simulated: what `plot` shows.
    noise_share : float
        The share of variance that the noise makes under the null: of the statistic that was
        released, or of the sums or counts that were, where it is computed from those.
    """

    null: str
    statistic: float
    pvalue: float
    simulated: Floats | None = field(default=None, repr=False)
    noise_share: float = field(kw_only=True)

    def rejects(self, level: float = 0.05) -> bool:
        """Whether the null is rejected at a level: the chance of rejecting a true one."""
        return self.pvalue <= check.number("level", level, above=0, below=1)

    def __getattr__(self, name: str) -> Any:
        if name in ("estimate", "se", "se_sampling", "se_privacy", "interval", "power"):
            raise AttributeError(
                f"a test has no {name!r}: it says whether there is an effect; how large it is, and "
                "how sure that is, is what mean, proportion, difference or regression estimate"
            )
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def _lines(self) -> list[str]:
        draws = None if self.simulated is None else self.simulated.size
        return [
            f"{self.title}: p {p_text(self.pvalue, draws)}, "
            f"statistic {number_text(self.statistic)}",
            f"Null: {self.null}.",
            f"The noise makes {percent(self.noise_share, 0)} of the variance, under the null, of "
            "what was released.",
        ]

    def _framed(self, confidence: float) -> pl.DataFrame:
        import polars as pl

        columns = {
            "hypothesis": [self.null],
            "statistic": [float(self.statistic)],
            "pvalue": [float(self.pvalue)],
            "noise_share": [float(self.noise_share)],
        }
        return pl.DataFrame(columns)

    def _printed(self, confidence: float) -> PrintedTable:
        draws = None if self.simulated is None else self.simulated.size
        told = p_text(self.pvalue, draws).removeprefix("= ")
        cells = [self.title, self.null, cell_text(float(self.statistic)), told]
        return ["test", "null", "statistic", "p"], [cells], 2

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the statistic among those that the null would give."""
        from dither.plots._inference import draw_test

        return draw_test(self, path)


def simulated_test(
    title: str,
    loss: Loss,
    assumptions: tuple[str, ...],
    notes: tuple[str, ...],
    null: str,
    statistic: float,
    simulated: Floats,
    noise_share: float,
) -> PrivateTest:
    """A test whose p-value is the share of simulated statistics as large as the released one."""
    return PrivateTest(
        title,
        loss,
        assumptions,
        notes,
        null,
        statistic,
        monte_carlo(statistic, simulated),
        simulated,
        noise_share=noise_share,
    )


def share_of_noise(noise: float, sampling: float) -> float:
    """The share of the variance that one of two independent deviations makes.

    Examples
    --------
    >>> round(share_of_noise(3.0, 4.0), 6), share_of_noise(math.inf, 1.0), share_of_noise(0.0, 0.0)
    (0.36, 1.0, 0.0)
    """
    whole = math.hypot(noise, sampling)
    if not 0 < whole < math.inf:
        return 1.0 if whole else 0.0
    return (noise / whole) ** 2


def too_few_rows(reason: str, least_rows: float, times: float | None = None) -> str:
    """The note that n is too small for the epsilon, how many rows would do, and what epsilon.

    Examples
    --------
    >>> too_few_rows("it is cut", 1234)
    'n is too small for this epsilon: it is cut. About 1,200 rows would do.'
    """
    epsilon = "" if times is None else f", or {number_text(times, 2)} times the epsilon,"
    rows = f"About {number_text(least_rows, 2)} rows{epsilon} would do."
    return f"n is too small for this epsilon: {reason}. {rows}"


def p_text(pvalue: float, draws: int | None = None) -> str:
    """A p-value as text; below what so many draws can tell, as a bound.

    Examples
    --------
    >>> p_text(0.03217), p_text(1 / 4001, 4000), p_text(1e-9)
    ('= 0.0322', '≤ 0.00025', '< 0.0001')
    """
    if draws is not None and pvalue <= 2.0 / (draws + 1):
        return f"≤ {number_text(pvalue, 2)}"
    return "< 0.0001" if pvalue < 1e-4 else f"= {number_text(pvalue, 3)}"


def interval_shown(value: float, lower: float, upper: float) -> str:
    """A value with its interval; whole numbers, as of a quantile of them, without decimals.

    Examples
    --------
    >>> interval_shown(83.0, 82.0, 84.0), interval_shown(83.5, 82.0, 84.0)
    ('83 ± 1', '83.5 [82.0, 84.0]')
    """
    at, low, high = float(value), float(lower), float(upper)
    if all(v.is_integer() and abs(v) < 2**53 for v in (at, low, high)):
        return interval_text(int(at), int(low), int(high))
    return interval_text(at, low, high)

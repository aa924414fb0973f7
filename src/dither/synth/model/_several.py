"""Several data sets of one release, and what follows of an analysis of them, the noise counted.

One synthetic table says nothing of how far off it is: rows are taken for people, and the noise of
what was measured, often many times what sampling people does, is in no standard error. So the
release is repeated as far as may be without its data: to every measured table its noise is added
once more, the model is fitted again, and as many rows as there are people are drawn independently.
An analysis of these tables then differs from one to the next as the release itself would, were
other people asked and other noise drawn.

*Combining.* With Q_1 ... Q_m the analyses and B their variance, the estimate is their mean, its
variance (1 + 1/m) B, and intervals are those of Student's law with m - 1 degrees of freedom: the
centre differs from the truth as each Q differs from what it was made of, which is B, and by what a
mean of m is off, which is B/m. (A variance within a data set, as Rubin's rules add, is in B
already: it comes from the draw of rows.)

*Where counts are near 0.* A model has none below it, so what noise adds to empty cells stays while
what it takes away is cut off, and columns go less together than they do; noise added once more
does it again. Variance knows nothing of that. So `SyntheticModel.analyse` looks into a mirror:
with M the measured tables and P those of the model, a second model is fitted to 2 P - M, and an
analysis Q(P) becomes 2 Q(P) - Q(mirror), which to the first order is that of M itself, whose noise
has mean 0. Where P is M, nothing changes. Data sets are corrected likewise, and with the release's
own estimate as the centre the variance is B.

*What it does not cover.* That columns which were not measured together are taken to have nothing
more to do with each other: the mean, share or slope that rests on this is named
(`dither.synth.model._together`), since nothing that was released says how far it is off. Nor that
numbers lie evenly inside their cells; nor what of a curved analysis is of the second order in the
noise.

Sources. Räisä, Jälkö, Kaski and Honkela, "Noise-aware statistical inference with differentially
private synthetic data", AISTATS 2023, whose posterior is replaced by a parametric bootstrap here;
Raghunathan, Reiter and Rubin, "Multiple imputation for statistical disclosure limitation", JOS
2003; for a smoothing applied twice to take its bias away, Newey, Hsieh and Robins, "Twicing kernels
and a small bias property of semiparametric estimators", Econometrica 2004.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._display import table
from dither._format import Printable, count_text, interval, level, wrapped
from dither._stats import student_reach
from dither.errors import ArgumentError
from dither.synth.model._model import FittedModel
from dither.synth.model._plans import Measurements
from dither.synth.model._together import apart, in_pairs

__all__ = ["CombinedEstimates", "combined", "corrected", "mirrored", "named", "noisier", "told"]

Floats = npt.NDArray[np.float64]

SHOWN = 4
"""Pairs of columns that a note names, at most."""

POOL = 2
"""So many times the rows are laid out that independent ones are drawn from."""


@dataclass(frozen=True, repr=False)
class CombinedEstimates(Printable):
    """An analysis of several data sets, as one.

    Parameters
    ----------
    names : tuple of str
    estimates, deviations, lower, upper : tuple of float
        By name: the mean, its standard error, and the ends of the interval.
    sets : int
        How many data sets.
    confidence : float
    measured : tuple of bool or None
        By name: whether the columns that it takes together were measured together, so that its
        interval covers. None where they were measured two by two, which is enough for some
        analyses, or with rare values counted together, which matters little to most; and of what
        `combined` gives, as it sees numbers and no columns.
    notes : tuple of str
        Which columns were not.
    """

    names: tuple[str, ...]
    estimates: tuple[float, ...]
    deviations: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    sets: int
    confidence: float
    measured: tuple[bool | None, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> Any:
        """A Polars frame: ``name``, ``estimate``, ``deviation``, both ends, and ``measured``.

        The ends are ``lower`` and ``upper``. Where ``measured`` is false, they count too little:
        `notes` says why.
        """
        import polars as pl

        return pl.DataFrame(
            {
                "name": list(self.names),
                "estimate": list(self.estimates),
                "deviation": list(self.deviations),
                "lower": list(self.lower),
                "upper": list(self.upper),
                "measured": pl.Series(self.measured or [None] * len(self.names), dtype=pl.Boolean),
            }
        )

    def summary(self) -> str:
        """Each estimate with its interval."""
        ends = zip(self.names, self.estimates, self.lower, self.upper, strict=True)
        rows = [[name, interval(value, low, high)] for name, value, low, high in ends]
        told = [line for note in self.notes for line in wrapped(note)]
        return "\n".join(
            [
                *table(
                    ["", f"of {self.sets} data sets, at {level(self.confidence)}"], rows, left=1
                ),
                "intervals count the noise and who was asked; not what was never measured together",
                *told,
            ]
        )


def combined(estimates: Sequence[Any], *, confidence: float = 0.95) -> CombinedEstimates:
    """Combine the same analysis of several data sets of one release.

    It corrects nothing: beside many empty cells `SyntheticModel.analyse` covers and this does not.

    Parameters
    ----------
    estimates : sequence of number, sequence or mapping
        One for each data set: a number, several, or several by name.
    confidence : float
        Of the intervals.

    Raises
    ------
    ArgumentError
        There are fewer than two, they have other names or lengths, or one is not finite.

    Examples
    --------
    >>> found = combined([{"mean": 1.0}, {"mean": 2.0}, {"mean": 3.0}])
    >>> found.estimates[0], round(found.deviations[0], 4)
    (2.0, 1.1547)
    """
    inside = check.confidence(confidence)
    if isinstance(estimates, str | Mapping) or len(estimates) < 2:
        raise ArgumentError("estimates must hold those of at least two data sets")
    names, values = _as_rows(estimates)
    m = len(values)
    spread = values.var(axis=0, ddof=1)
    return _about(names, values.mean(axis=0), np.sqrt((1 + 1 / m) * spread), m, inside)


def corrected(
    released: tuple[Any, Any], sets: Sequence[tuple[Any, Any, Any]], confidence: float
) -> CombinedEstimates:
    """Combine analyses of data sets, corrected by those of models and of their mirrors.

    Parameters
    ----------
    released : tuple
        The analysis of the model's rows, and of its mirror's.
    sets : sequence of tuple
        For each data set: its analysis, that of its model's rows, and of its model's mirror.
    confidence : float
    """
    names, values = _as_rows([*released, *(one for each in sets for one in each)])
    rows, model, mirror = np.moveaxis(values[2:].reshape(len(sets), 3, -1), 1, 0)
    deviation = (rows + model - mirror).std(axis=0, ddof=1)
    return _about(names, 2 * values[0] - values[1], deviation, len(sets), confidence)


def _as_rows(estimates: Sequence[Any]) -> tuple[tuple[str, ...], Floats]:
    """Names, and a row of numbers for each data set."""
    read = [named(one) for one in estimates]
    names = tuple(read[0])
    if any(tuple(one) != names for one in read):
        raise ArgumentError("estimates: every data set must give the same names")
    values = np.array([[one[name] for name in names] for one in read])
    if not np.isfinite(values).all():
        raise ArgumentError("estimates must be finite; one data set gave none")
    return names, values


def _about(
    names: tuple[str, ...], middle: Floats, deviation: Floats, m: int, confidence: float
) -> CombinedEstimates:
    reach = student_reach(m - 1, confidence) * deviation
    return CombinedEstimates(
        names,
        tuple(middle.tolist()),
        tuple(deviation.tolist()),
        tuple((middle - reach).tolist()),
        tuple((middle + reach).tolist()),
        m,
        confidence,
    )


def named(found: Any) -> dict[str, float]:
    """The numbers that an analysis gave, by name.

    Raises
    ------
    ArgumentError
        It gave something else.
    """
    if isinstance(found, Mapping):
        given = {str(name): value for name, value in found.items()}
    else:
        listed = np.atleast_1d(np.asarray(found))
        many = listed.size > 1
        given = {
            f"estimate {i + 1}" if many else "estimate": x for i, x in enumerate(listed.ravel())
        }
    try:
        if not given:
            raise ValueError
        return {name: float(value) for name, value in given.items()}
    except (OverflowError, TypeError, ValueError):
        raise ArgumentError("estimates must be numbers, lists of them, or mappings") from None


def told(
    found: CombinedEstimates,
    together: Mapping[str, Collection[str]],
    tables: Sequence[Collection[str]],
    coarse: Collection[str] = (),
) -> CombinedEstimates:
    """The same, with what of it rests on columns that were not measured together.

    Parameters
    ----------
    found : CombinedEstimates
    together : mapping of str to collection of str
        By name the columns that the estimate takes together.
    tables : sequence of collection of str
        The columns of each measured table.
    coarse : collection of str
        Columns whose rare values were counted together in tables of several.
    """
    lacking = {name: apart(together[name], tables) for name in found.names}
    by_lack: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for name, lack in lacking.items():
        if lack:
            by_lack.setdefault(lack, []).append(name)
    notes = []
    for lack, names in by_lack.items():
        said = ", ".join(names)
        if in_pairs(lack):
            notes.append(
                f"{said}: covered where it follows from tables of two columns, as slopes of a "
                f"linear regression do; {', '.join(lack[0])} were measured two by two, and never "
                "all together; name them in workload"
            )
            continue
        shown = ", ".join(" with ".join(pair) for pair in lack[:SHOWN])
        if len(lack) > SHOWN:
            shown += f" and {count_text(len(lack) - SHOWN, 'pair')} more"
        notes.append(
            f"{said}: not covered, since the model takes for granted how columns go together that "
            f"were never measured together: {shown}; name them in workload"
        )
    # Of what was measured two by two nobody knows whether the analysis needs more.
    states = {name: (None if in_pairs(lack) else not lack) for name, lack in lacking.items()}
    rare: dict[tuple[str, ...], list[str]] = {}
    for name in found.names:
        if states[name] is not False and len(together[name]) > 1:
            rare.setdefault(tuple(sorted(set(coarse) & set(together[name]))), []).append(name)
    for columns, names in rare.items():
        if columns:
            states |= dict.fromkeys(names)
            notes.append(
                f"{', '.join(names)}: covered but for rare values of {', '.join(columns)}, which "
                "were counted together in tables of several columns, so that the model takes them "
                'to be alike there; method="workload" counts them apart'
            )
    return replace(found, measured=tuple(states.values()), notes=tuple(notes))


def noisier(fitted: FittedModel, rng: np.random.Generator) -> FittedModel:
    """The model of the same measurements with their noise in them once more.

    Random numbers that protect nobody: what was measured is protected already.
    """
    again = [
        replace(
            m, values=m.values + np.rint(rng.normal(0, m.deviation, m.values.shape)).astype(int)
        )
        for m in fitted.found.measured
    ]
    found = Measurements(again, fitted.found.merged, fitted.found.shares, fitted.found.method)
    return fitted.refitted(found)


def mirrored(fitted: FittedModel) -> FittedModel:
    """The model of tables as far beyond the fit as the measured ones are on this side of it."""
    again = []
    for m in fitted.found.measured:
        near = fitted.graph.marginal(m.clique)
        if near.shape != m.values.shape:
            # A column whose values are counted together by the model, and were measured one by one.
            near = fitted.marginal(m.clique)
        again.append(replace(m, values=np.rint(2 * near - m.values).astype(int)))
    found = Measurements(again, fitted.found.merged, fitted.found.shares, fitted.found.method)
    return fitted.refitted(found)

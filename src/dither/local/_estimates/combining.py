"""Classes of people who chose different channels, combined: by weights, or in one likelihood.

Weights other than n_c/n (see `Personal`) make much of some classes, whose people are not quite like
all who reported even where choices do not depend on values. f̂ then differs by chance from the
share of all of them, with variance f(1-f)·sum of (w_c - n_c/n)²/n_c (people dealt out to classes at
random, without replacement), which is part of the standard error.

Of numbers, weights combine the classes' means: those of the reports, with an interval that holds
where each class's does; or those that EM finds, where a class's reports are biased. The reports'
spread, from which the errors of means are computed, holds that variance already. Limits that do not
rest on it are widened by |w_c - n_c/n| times the most by which a class's mean is off that of all,
which exceeds t with chance at most 2·exp(-2·n_c·t²/((1 - (n_c - 1)/n)·range²)).

Source. Serfling, "Probability inequalities for the sum in sampling without replacement", Annals of
Statistics 1974.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._format import count_text
from dither.errors import ArgumentError
from dither.local._estimates.postprocess import nonnegative, project
from dither.local._estimates.results import Estimate, checked_options, estimated, shares_of
from dither.local._numbers.em import em
from dither.local._numbers.mean import mean
from dither.local._numbers.numeric import NumericChannel
from dither.local._numbers.results import MeanEstimate
from dither.local._reports.aggregate import Aggregate
from dither.local._structures.parts import PartCounts

Array = npt.NDArray[np.float64]
Parts = dict[Any, Aggregate]

METHODS = ("weights", "plugin", "population", "likelihood")
EM = ("bins", "outputs", "tolerance", "max_iterations", "smooth")
"""Options of a likelihood."""

INDEPENDENT = (
    "classes are combined as if what people chose did not depend on their values; if it does, "
    "the choice itself reveals something about the value, and the estimate is biased"
)
UNRELATED = "if what they chose does not depend on them"
_ALARM = 1e-3
_MAX_VALUES = 1 << 10


def combined_shares(
    title: str, counts: PartCounts, full: Parts, method: str, rule: str, confidence: float
) -> Estimate:
    """The shares of the values from all classes that reported."""
    by_class = {choice: shares_of(part, "none", confidence) for choice, part in full.items()}
    parts, channels = list(full.values()), [part.channel for part in full.values()]
    raw = np.array([e.raw for e in by_class.values()])
    n, k = np.array([[part.n] for part in parts], dtype=np.float64), raw.shape[1]
    if method == "population":
        precise = n + 0 * raw
    else:
        at = project((n * raw).sum(axis=0) / n.sum()) if method == "plugin" else np.full(k, 1 / k)
        # A value that nobody seems to hold may have no variance in any class; all are then alike.
        precise = n / np.maximum([channel.noise_variance(at) for channel in channels], 1e-12)
    weights = precise / precise.sum(axis=0)
    found = (weights * raw).sum(axis=0)
    plausible = project(found)
    own = np.array([channel.noise_variance(plausible) for channel in channels]) / n
    apart = ((weights - n / n.sum()) ** 2 / n).sum(axis=0)
    errors = np.sqrt((weights**2 * own).sum(axis=0) + plausible * (1 - plausible) * apart)
    steps = np.max(weights * [e.steps for e in by_class.values()], axis=0)
    likely = method == "likelihood"
    if likely:
        found, errors = _likely(parts, raw, plausible), np.full(k, np.nan)
    return estimated(
        counts,
        title,
        channels[0].domain.values,
        found,
        errors,
        confidence,
        rule,
        plausible=plausible,
        # The report that weighs most, of any class, is what the error is compared with.
        steps=steps,
        unbiased=method in ("weights", "population") and all(c.unbiased for c in channels),
        notes=(INDEPENDENT, *_differing(by_class, own, plausible, n)),
        parts={str(choice): one for choice, one in by_class.items()},
        weights=weights,
    )


def combined_mean(
    title: str,
    counts: PartCounts,
    full: Parts,
    method: str,
    confidence: float,
    options: dict[str, Any],
) -> MeanEstimate:
    """The classes' means combined; each may miss its own by its part of what is allowed."""
    biased = not all(part.channel.unbiased for part in full.values())
    checked_options(options, EM if biased else (), "a mean by weights")
    # Half of what may be missed goes to the choice of people, where weights are not their shares.
    chance = (1 - confidence) / len(full) / (1 if method == "population" else 2)
    each, variances = [], []
    for part in full.values():
        channel = part.channel
        assert isinstance(channel, NumericChannel)
        own = mean(part, channel, 1 - chance)
        variance = part.n * own.standard_error**2
        if biased:
            found = em([part], **options)
            of_points, starts = channel.moments()[1], found.starts
            assert starts is not None
            sizes = np.diff(np.append(starts, of_points.size))
            variance = float(found.shares @ (np.add.reduceat(of_points, starts) / sizes))
            own = replace(own, mean=found.mean)
        each.append(own)
        variances.append(variance)
    n = np.array([one.n for one in each], dtype=np.float64)
    # A variance of 0 would leave nothing to divide by; weights of estimates are not bounds.
    precise = n if method == "population" else n / np.maximum(variances, 1e-12)
    weights = precise / precise.sum()
    error = float(np.sqrt(weights**2 @ (np.array(variances) / n)))
    limits: tuple[float, float, str] | None = None
    if not biased and any(one.method != "normal" for one in each):
        values = each[0].interval_of_values
        low, high = float(values.low), float(values.high)
        apart = np.sqrt((1 - (n - 1) / n.sum()) * np.log(2 / chance) / (2 * n))
        wider = float(np.abs(weights - n / n.sum()) @ apart) * (high - low)
        lower, upper = (weights @ np.array([one.interval for one in each])).tolist()
        lower, upper = max(low, lower - wider), min(high, upper + wider)
        limits = (lower, upper, "bounded") if lower <= upper else (low, high, "bounded")
    warnings = tuple(
        f"choice {choice}: {count_text(one.n, 'report')}, weight {weight:.3f}"
        for choice, one, weight in zip(full, each, weights.tolist(), strict=True)
    )
    return replace(
        each[0],
        kind=title,
        mean=float(weights @ [one.mean for one in each]),
        standard_error=error,
        n=counts.n,
        rejected=counts.rejected,
        biased=biased,
        confidence=confidence,
        limits=limits,
        assuming="" if method == "population" else UNRELATED,
        notes=(*warnings, INDEPENDENT),
    )


def _likely(parts: Sequence[Aggregate], raw: Array, plausible: Array) -> Array:
    k = plausible.size
    if k > _MAX_VALUES:
        raise ArgumentError(f"likelihood needs at most {_MAX_VALUES} values; use weights")
    gram, moments = np.zeros((k, k)), np.zeros(k)
    for part, shares in zip(parts, raw, strict=True):
        inverse = part.n * np.linalg.pinv(part.channel.noise_covariance(plausible), hermitian=True)
        gram += inverse
        moments += inverse @ shares
    # A row far heavier than the others holds the sum at 1.
    heavy = 1e4 * float(np.diag(gram).max())
    found = nonnegative((gram + heavy) / heavy, (moments + heavy) / heavy)
    return np.asarray(found / found.sum())


def _differing(
    by_class: Mapping[Any, Estimate], own: Array, plausible: Array, n: Array
) -> tuple[str, ...]:
    """A note for each class whose shares differ from the others' by more than chance allows.

    Each value of each class is tested at an equal part of the chance that any note is false. The
    difference is a sum of independent terms, one a report, of variance v in all and each at most b.
    By Bernstein's inequality it exceeds t with chance at most 2·exp(-t²/(2(v + bt/3))), however
    few reports decide; a normal tail would ring for almost any small survey of many values.
    """
    if len(by_class) < 2:
        return ()
    raw = np.array([one.raw for one in by_class.values()])
    steps = np.array([one.steps for one in by_class.values()])
    spread = own + plausible * (1 - plausible) / n
    allowed = np.log(2 * raw.size / _ALARM)
    notes = []
    for i, choice in enumerate(by_class):
        rest = np.delete(1 / spread, i, axis=0)
        weights = rest / rest.sum(axis=0)
        gap = np.abs(raw[i] - (weights * np.delete(raw, i, axis=0)).sum(axis=0))
        most = np.maximum(steps[i], (weights * np.delete(steps, i, axis=0)).max(axis=0))
        variance = spread[i] + 1 / rest.sum(axis=0)
        if (gap**2 > 2 * allowed * (variance + most * gap / 3)).any():
            notes.append(
                f"the shares of choice {choice} differ from those of the others (chance below "
                f"{_ALARM:g}): what people chose may depend on their values; only method "
                "population estimates the shares of all of them"
            )
    return tuple(notes)

"""Expectation maximisation: the distribution that makes the reports likely, stopped early.

With R the channel's matrix and t the shares of the reports, each round replaces f by
f·(R @ (t/(f @ R))), which never lowers the log-likelihood per report, sum of t·log(f @ R). That is
concave, so without a stop the rounds go to its maximum, a distribution of spikes that follows the
noise: stopping early, or smoothing after every round (EMS), is what regularises. The stop rule, the
rounds and the bins are therefore part of the result. It is always biased, towards the uniform
distribution from which it starts.

Source. Dempster, Laird and Rubin, JRSS B 1977; Li et al., SIGMOD 2020 (EM and EMS for local
privacy), whose rule, a gain in total below e^epsilon/1000, is the default; it is given per report,
as `log_likelihood` is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dither import _checks
from dither.errors import ArgumentError
from dither.local._estimates.results import reported
from dither.local._numbers.linear import BinnedLaw, DenseMatrix, point_bins
from dither.local._numbers.results import Distribution
from dither.local._numbers.solvers import LARGEST, Factor, Solved, maximum, solve
from dither.local._registry import about_numbers, has_matrix

if TYPE_CHECKING:
    from dither.local._oracles import FiniteChannel
    from dither.local._reports.aggregate import Aggregate


_TO_THE_TOP = 1e-6
"""A gap of log-likelihood, over all reports, that counts as none; `_ROUNDING` is the least for each
report, which doubles still tell from 0. No guarantee rests on either."""
_ROUNDING = 1e-13
_STEPS = 500
_MOST_CELLS = 1 << 21
_NOTHING = 1e-2
"""A gap of log-likelihood, over all reports, that is nothing beside what chance moves it by."""


def em(
    aggregates: Sequence[Aggregate],
    *,
    bins: int | None = None,
    outputs: int | str | None = None,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    smooth: bool | None = None,
    notes: tuple[str, ...] = (),
) -> Distribution:
    """Estimate the distribution of values from the reports of one channel, or of several together.

    Of several channels, with a matrix and over the same interval or list of values, one pooled
    likelihood is made; it takes the people of every channel to have the same shares. For the
    options see `Aggregate.estimate`; `notes` are added to the result's own.
    """
    full = [aggregate for aggregate in aggregates if aggregate.n > 0]
    reported(len(full))
    channels = [_with_matrix(aggregate) for aggregate in full]
    numeric = [c for c in channels if about_numbers(c)]
    first = channels[0]
    if numeric and any(not about_numbers(c) or c.interval != numeric[0].interval for c in channels):
        raise ArgumentError("pooled channels must have the same interval")
    if any(c.domain != first.domain for c in channels):
        raise ArgumentError("pooled channels must have the same domain")
    if not numeric and not (bins is None and outputs is None):
        raise ArgumentError("bins and outputs are for channels for numbers; leave them out")
    smooth = (
        all(c.kind == "sw" for c in channels) if smooth is None else _checks.flag("smooth", smooth)
    )
    n = sum(aggregate.n for aggregate in full)
    epsilon = max(float(c.epsilon) for c in channels)
    to_the_top = not numeric and not smooth and tolerance is None and max_iterations is None
    if tolerance is None:
        tolerance = default_tolerance(epsilon, n) if numeric else max(_TO_THE_TOP / n, _ROUNDING)
    else:
        tolerance = _checks.number("tolerance", tolerance, above=0)
    rounds = (
        10_000 if max_iterations is None else _checks.whole("max_iterations", max_iterations, 1)
    )
    parts = []
    for aggregate, channel in zip(full, channels, strict=True):
        linear = _linear(channel, bins, outputs)
        parts.append(Factor(linear, linear.group(aggregate.counts)))
    solved = _maximised(parts, tolerance) if to_the_top else None
    if solved is None:
        fast = not numeric and not smooth
        solved = solve(parts, tolerance, rounds, smooth, fast=fast)
    starts = point_bins(numeric[0], bins) if numeric else None
    return Distribution(
        kinds=tuple(dict.fromkeys(c.kind for c in channels)),
        interval=numeric[0].interval if numeric else None,
        starts=starts,
        values=() if numeric else first.domain.values,
        shares=solved.shares,
        n=n,
        rejected=sum(aggregate.rejected for aggregate in aggregates),
        outputs=tuple(int(part.counts.size) for part in parts),
        tolerance=tolerance,
        iterations=solved.iterations,
        converged=solved.converged,
        smooth=smooth,
        log_likelihood=solved.log_likelihood,
        gap=solved.gap,
        notes=notes,
    )


def _maximised(parts: Sequence[Factor], tolerance: float) -> Solved | None:
    """The certified maximum of a list's likelihood; None where the list is too long for it."""
    matrices = [part.linear.matrix for part in parts if isinstance(part.linear, DenseMatrix)]
    cells = sum(matrix.size for matrix in matrices)
    if len(matrices) < len(parts) or matrices[0].shape[0] > LARGEST or cells > _MOST_CELLS:
        return None
    n = sum(int(part.counts.sum()) for part in parts)
    weights = [int(part.counts.sum()) / n for part in parts]
    joined = np.concatenate([m * w for m, w in zip(matrices, weights, strict=True)], axis=1)
    targets = np.concatenate([part.counts / n for part in parts])
    shares, steps, gap = maximum(joined, targets, tolerance, _STEPS)
    if gap * n > _NOTHING:
        return None
    # Of the reports given their channels: a channel's share is not part of its likelihood.
    likelihood = sum(
        float(part.counts[seen] / n @ np.log((shares @ matrix)[seen]))
        for part, matrix in zip(parts, matrices, strict=True)
        for seen in [part.counts > 0]
    )
    return Solved(shares, steps, likelihood, gap <= tolerance, gap)


def default_tolerance(epsilon: float, n: int) -> float:
    """The stop rule for numbers, per report: e^epsilon/1000 in total over the n reports."""
    return 1e-3 * math.exp(min(epsilon, 40.0)) / n


def _with_matrix(aggregate: Aggregate) -> FiniteChannel:
    channel = aggregate.channel
    if not has_matrix(channel):
        raise ArgumentError(
            f"a likelihood needs a channel with a matrix, which {channel.kind} has not; "
            "leave method out"
        )
    return channel


def _linear(
    channel: FiniteChannel, bins: int | None, outputs: int | str | None
) -> BinnedLaw | DenseMatrix:
    if about_numbers(channel):
        return channel.linear(bins, outputs)
    return DenseMatrix(channel.matrix)

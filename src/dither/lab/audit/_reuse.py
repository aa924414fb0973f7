"""Noise that is used twice: fixed seeds, one noise for both datasets, outcomes that come again.

An audit counts independent draws. A mechanism whose draws are not independent is named here, and
is not the mechanism of the claim: of two releases, an observer subtracts one from the other. Each
test asks for evidence that independent draws give with probability at most ``RARE``.

Draws may depend on each other without a noise that is reused: an output may tell which call it is
of, by a clock, a serial number or a turn of few kinds. That is no fault, and no probability can be
certified either. So reuse is named where outputs come again that seldom do, or where numbers are
alike that do not only rise or fall.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dither._stats import lower_bound, upper_bound
from dither.lab.audit._outcomes import Codes, Floats

__all__ = [
    "CLOCK",
    "KEEPS",
    "RARE",
    "alike_in_time",
    "fixed_output",
    "is_clock",
    "repeats_in_time",
    "same_again",
    "same_difference",
    "tells_the_last",
]

RARE = 1e-9
"""Of each test, the probability to name a mechanism whose draws are independent."""

_LEAST_PAIRS = 50
_LOOKED_AT, _TRIED = 8, 8
_SHARES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
"""Coordinates and kinds of outputs that may tell of the call before, and where they are cut."""

_SELDOM = 0.02
"""How often two outputs may be equal where one of them comes again by reuse, and not by turns."""

KEEPS = "outputs tell of which dataset the call before was: the mechanism keeps what it saw"
CLOCK = "its numbers only rise or fall from call to call, as of a clock or a serial number"


def fixed_output(here: Codes, there: Codes) -> str | None:
    """Whether each dataset always gives one outcome, another for each."""
    if len(here) < 20 or np.any(here != here[0]) or np.any(there != there[0]):
        return None
    if here[0] == there[0]:
        return None
    return "equal calls always give the same output: its noise is fixed, by a seed, or absent"


def same_again(first: Codes, second: Codes) -> str | None:
    """Whether two equal calls of a vectorised sampler gave the same outcomes in the same order."""
    if np.array_equal(first, second) and _log_orders(first) > -math.log(RARE):
        return "two equal calls gave the same outputs in the same order: its noise has a fixed seed"
    return None


def same_difference(here: Floats, there: Floats) -> str | None:
    """Whether the i-th outcomes of the two datasets always differ by the same vector.

    For independent draws each order of one side's n coordinates is as likely. Of whole numbers, at
    most one order that differs visibly from others gives constant differences. Of floats, whose
    differences are constant up to rounding, at most Π wᵢ of the n! orders do, where wᵢ coordinates
    lie where the i-th may be matched; and the constant may be any of n.
    """
    known = np.isfinite(here)
    if not known.any() or not np.array_equal(known, np.isfinite(there)):
        return None
    chance = 0.0
    for i in range(here.shape[1]):
        x, y = here[known[:, i], i], there[known[:, i], i]
        if not x.size:
            continue
        most = max(np.abs(x).max(), np.abs(y).max())
        whole = most < 2.0**52 and not np.any(x % 1.0) and not np.any(y % 1.0)
        slack, constant = (0.0 if whole else 2.0**-49 * most), y[0] - x[0]
        if np.abs(y - x - constant).max() > slack:
            return None
        if whole:
            found = -_log_orders(np.unique(x, return_inverse=True)[1].reshape(-1))
        else:
            ordered, middle = np.sort(y), x + constant
            ends = [
                np.searchsorted(ordered, middle + 2 * slack, side="right"),
                np.searchsorted(ordered, middle - 2 * slack, side="left"),
            ]
            near = np.log(np.maximum(ends[0] - ends[1], 1.0)).sum()
            found = float(near) + math.log(x.size) - math.lgamma(x.size + 1)
        chance = min(chance, found)
    if chance > math.log(RARE):
        return None
    return "outputs on d0 and d1 differ by a constant, call by call: both have the same noise"


def is_clock(values: Floats) -> bool:
    """Whether numbers only rise, or only fall, in the order of their calls."""
    steps = np.diff(values[~np.isnan(values)])
    return bool(steps.size and (np.all(steps >= 0) or np.all(steps <= 0)))


def tells_the_last(codes: Codes, raw: Floats, times: npt.NDArray[np.int64]) -> bool:
    """Whether outputs of shuffled calls tell of which dataset the call before was.

    Those of one dataset are looked at, so that they do not differ by their own. Half of them choose
    an outcome or a threshold, and the other half bounds its rates after either dataset.
    """
    n = len(codes) // 2
    # Where time ran out some of the last calls were left out.
    of_second = np.zeros(int(times.max(initial=0)) + 1, dtype=np.bool_)
    of_second[times[n:]] = True
    before = of_second[times - 1] & (times > 0)
    for own in (np.arange(n), np.arange(n, 2 * n)):
        last = before[own]
        looks = [codes[own].astype(np.float64), *raw[own, :_LOOKED_AT].T]
        for i, values in enumerate(looks):
            if _apart(values, last, i == 0, RARE / (4 * len(looks))):
                return True
    return False


def _apart(values: Floats, last: npt.NDArray[np.bool_], kinds: bool, level: float) -> bool:
    """Whether values differ by a mark: one kind of them, or those above a threshold."""
    half = len(values) // 2
    early, late = values[:half], values[half:]
    if min(last[:half].sum(), (~last[:half]).sum(), last[half:].sum(), (~last[half:]).sum()) < 20:
        return False
    known = early[~np.isnan(early)]
    if not known.size:
        return False
    found, counts = np.unique(known, return_counts=True)
    cuts = (
        found[np.argsort(-counts)][:_TRIED]
        if kinds
        else np.quantile(known, _SHARES, method="inverted_cdf")
    )
    off = [
        np.mean(_inside(early[last[:half]], cut, kinds))
        - np.mean(_inside(early[~last[:half]], cut, kinds))
        for cut in cuts
    ]
    best = int(np.argmax(np.abs(off)))
    sides = (late[last[half:] == side] for side in (off[best] > 0, off[best] < 0))
    hits = [_inside(side, cuts[best], kinds) for side in sides]
    least, most = (
        lower_bound(int(hits[0].sum()), hits[0].size, level),
        upper_bound(int(hits[1].sum()), hits[1].size, level),
    )
    return least > most


def _inside(values: Floats, cut: float, kinds: bool) -> npt.NDArray[np.bool_]:
    return values == cut if kinds else values > cut


def repeats_in_time(codes: Codes) -> tuple[str, bool] | None:
    """Whether outcomes come again after a fixed number of calls more often than by chance.

    And whether that is noise that is reused, and not a turn of few kinds.

    The first half of the calls names the lag. In the second half, pairs at that lag are counted,
    and pairs of outcomes far apart in time; if draws are independent, both have the same chance.
    """
    half = len(codes) // 2
    lags = {1, *_gaps(codes[:half])}
    late = codes[half:]
    for lag in sorted(lags):
        if _nearer(late, lag, RARE / (2 * len(lags))):
            after = "at the next call" if lag == 1 else f"after {lag:,} calls"
            said = f"outputs come again {after} more often than by chance"
            share = np.bincount(codes) / len(codes)
            seldom = float((share**2).sum()) <= _SELDOM
            return said + (": its noise is reused" if seldom else ""), seldom
    return None


def alike_in_time(values: Floats) -> str | None:
    """Whether numbers at consecutive calls are alike more often than by chance, as in a walk.

    The first half of the calls names the quarters; in the second half, pairs in one quarter are
    counted as in `repeats_in_time`.
    """
    known = values[~np.isnan(values)]
    half = len(known) // 2
    if half < _LEAST_PAIRS:
        return None
    edges = np.sort(known[:half])[[half // 4, half // 2, 3 * half // 4]]
    if _nearer(np.searchsorted(edges, known[half:], side="right"), 1, RARE / 2):
        return (
            "outputs of consecutive calls are alike more often than by chance: noise is carried on"
        )
    return None


def _nearer(codes: npt.NDArray[np.int64], lag: int, level: float) -> bool:
    """Whether codes at a lag are equal more often than codes far apart, each bound at a level."""
    blocks = len(codes) // (4 * lag)
    # Pairs without a call in common, so that they are independent.
    quarter = codes[: 2 * lag * blocks].reshape(blocks, 2, lag)
    near = quarter[:, 0] == quarter[:, 1]
    rest = codes[2 * lag * blocks :]
    middle = len(rest) // 2
    # At distances of all lengths: a single one may be a period too.
    far = rest[:middle] == rest[middle : 2 * middle][::-1]
    if min(near.size, far.size) < _LEAST_PAIRS:
        return False
    least = lower_bound(int(near.sum()), near.size, level)
    return least > upper_bound(int(far.sum()), far.size, level)


def _gaps(codes: Codes) -> list[int]:
    """The most common distance between an outcome and its next return, where it stands out."""
    order = np.argsort(codes, kind="stable")
    same = codes[order[1:]] == codes[order[:-1]]
    gaps = (order[1:] - order[:-1])[same]
    if gaps.size < 20:
        return []
    return [int(np.bincount(gaps).argmax())]


def _log_orders(codes: npt.NDArray[np.int64]) -> float:
    """log(n!/Π m!): how many orders of the outcomes are distinct."""
    counts = np.bincount(codes)
    return math.lgamma(len(codes) + 1) - sum(
        math.lgamma(c + 1) for c in counts[counts > 1].tolist()
    )

"""Quantiles over units of what each has in a window of time.

In every window a unit is one number: the mean of its readings there that are not missing, clamped
to public bounds. How these numbers lie leaves as noisy counts on a tree of public bins
(`QuantileTree`), one tree a window, with noise of one law.

*Guarantee.* A unit is in at most one bin of each window. Where all its readings are protected it is
added to, or removed from, a tree in each of them (`QuantileTree.sensitivity` with one row and so
many groups; twice that where it is replaced). Where one reading is, or w in a row, the unit's
number moves in the windows that they touch, at most g = (w - 2)//window + 2 of them for w of 2 or
more, and 1 for one: it leaves one bin and enters another, which is that of a replacement in g
groups, whether readings are missing or others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, cost_text, count_text, wrapped
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, QuantileTree, Sensitivity
from dither.mechanisms.chooser import ChosenNoise, additive_noise
from dither.privacy import Loss, Neighbours
from dither.privacy._promise import as_table_neighbours
from dither.series._promises import promise
from dither.series._readings import (
    Floats,
    Integers,
    Readings,
    charge_for,
    read_matrix,
    readings_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["QuantileDesign", "WindowQuantiles", "window_quantiles"]


@dataclass(frozen=True)
class QuantileDesign:
    """Trees and noise, fixed before any reading is read.

    Parameters
    ----------
    bins, window : int
    readings : Readings
    epsilon, delta : Fraction
    """

    bins: int
    window: int
    readings: Readings
    epsilon: Fraction
    delta: Fraction

    @property
    def windows(self) -> int:
        """How many there are."""
        return -(-self.readings.length // self.window)

    @property
    def touched(self) -> int:
        """Windows in which a unit's number may move, at most."""
        if self.readings.level == "user":
            return self.windows
        w = self.readings.wide
        return min(self.windows, 1 if w == 1 else (w - 2) // self.window + 2)

    def plan(self) -> tuple[QuantileTree, ChosenNoise]:
        """The layout and the noise of less error."""
        whole = self.readings.level == "user"
        moved = self.readings.neighbours if whole else Neighbours.REPLACE
        plans = []
        families: tuple[Any, ...] = ("laplace", "gaussian") if self.delta else ("laplace",)
        for family in families:
            tree = QuantileTree.choose(self.bins, family)
            l1, square = tree.sensitivity(max_rows=1, max_groups=self.touched, neighbours=moved)
            known = Sensitivity.of(l1=l1, l2_squared=square)
            delta = self.delta if family == "gaussian" else Fraction(0)
            chosen = additive_noise(known, self.epsilon, delta)
            noise = chosen.mechanism
            assert isinstance(noise, DiscreteLaplace | DiscreteGaussian)
            plans.append((float(tree.rank_widths(noise, 0.95).max()), tree, chosen))
        _, tree, chosen = min(plans, key=lambda plan: plan[0])
        return tree, chosen

    def leaves(self, values: Floats) -> Integers:
        """Exact counts of bins, shape (windows, bins)."""
        low, high = self.readings.ends
        # A unit's number is a quotient of whole ones: its bin hangs on its own readings alone.
        steps, there = self.readings.lattice(values), ~np.isnan(values)
        found = np.zeros((self.windows, self.bins), dtype=np.int64)
        for at in range(self.windows):
            part = slice(at * self.window, (at + 1) * self.window)
            many = there[:, part].sum(axis=1)
            summed = steps[:, part].sum(axis=1)[many > 0]
            many = many[many > 0]
            # At most 2^17 steps of each of 2^20 readings, times 2^16 bins: within 64 bits.
            code = (summed - low * many) * self.bins // ((high - low) * many)
            code = np.minimum(code, self.bins - 1)
            found[at] = np.bincount(code, minlength=self.bins)
        return found

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        public = Readings(
            2, Fraction(0), Fraction(1), "event", None, Neighbours.ADD_REMOVE, None, None
        )
        design = cls(2, 1, public, Fraction(1), Fraction(0))
        tree, chosen = design.plan()
        noise = chosen.mechanism
        assert isinstance(noise, DiscreteLaplace)

        def run(values: Floats, size: int) -> Integers:
            # Of the window that the reading is in.
            noisy = tree.measure(np.repeat(design.leaves(values)[:1], size, axis=0), noise)
            return np.concatenate(noisy, axis=1)

        yield Subject("window quantiles", run, np.array([[0.1, 0.5]]), np.array([[0.9, 0.5]]))


class WindowQuantiles(Printable):
    """Quantiles of each window, with intervals over the noise and the width of a bin.

    Made by `window_quantiles`.

    Attributes
    ----------
    qs : tuple of float
    values, lower, upper : array of float, shape (windows, quantiles)
    loss : Loss
    """

    def __init__(
        self, qs: tuple[float, ...], ends: tuple[Floats, Floats, Floats], loss: Loss
    ) -> None:
        self.qs, self.loss = qs, loss
        self.values, self.lower, self.upper = ends

    def frame(self) -> pl.DataFrame:
        """A row for each window and quantile: ``estimate``, ``lower`` and ``upper``."""
        import polars as pl

        windows, size = self.values.shape
        return pl.DataFrame(
            {
                "window": np.repeat(np.arange(windows), size),
                "q": np.tile(np.array(self.qs), windows),
                "estimate": self.values.ravel(),
                "lower": self.lower.ravel(),
                "upper": self.upper.ravel(),
            }
        )

    def summary(self) -> str:
        """A few lines for people."""
        charge, whom = self.loss.charge, self.loss.promise
        lines = wrapped(
            f"quantiles {', '.join(f'{q:g}' for q in self.qs)} of "
            f"{count_text(len(self.values), 'window')}; intervals are "
            f"{(self.upper - self.lower).mean():.4g} wide in the mean"
        )
        about = "" if whom is None else f", {whom.describe()}"
        lines += wrapped(f"Cost: {cost_text(charge.epsilon, charge.delta)}{about}.")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw each quantile over the windows, with its intervals.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.tables._records import draw_quantiles

        return draw_quantiles(self, path)


def window_quantiles(
    readings: Any,
    qs: Sequence[float],
    *,
    bounds: tuple[Number, Number],
    window: int = 1,
    bins: int = 256,
    epsilon: Number,
    delta: Number = 0,
    level: str = "user",
    w: int | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: str = "person",
    confidence: float = 0.95,
) -> WindowQuantiles:
    """Quantiles, over units, of their means in windows of so many readings.

    Parameters
    ----------
    readings : array of float, shape (units, times)
        A unit without a reading in a window is not in that window's quantiles.
    qs : sequence of float
        From 0 to 1, such as 0.5 for medians.
    bounds : (number, number)
        Public ends of a reading; values beyond are clamped.
    window : int
    bins : int
        Of the grid between the bounds, from 2 to 2**16.
    epsilon, delta : number
        What all windows together may cost.
    level, w, neighbours, unit
        As for `window_sums`.
    confidence : float
        Of each interval by itself.

    Returns
    -------
    WindowQuantiles

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.
    BudgetError, PromiseError
        The account of the readings cannot bear it; nothing was charged or read.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import series
    >>> use = np.random.default_rng(1).gamma(2, 0.5, (4000, 24))
    >>> found = series.window_quantiles(use, [0.5], bounds=(0, 5), window=12, epsilon=1)
    >>> found.values.shape, bool(np.abs(found.values - 0.97).max() < 0.2)
    ((2, 1), True)
    """
    values = read_matrix(readings)
    public = readings_of(values.shape[1], bounds, level, w, as_table_neighbours(neighbours))
    try:
        shares = tuple(check.number("qs", q) for q in qs)
    except TypeError:
        raise ArgumentError("qs must be a list of numbers from 0 to 1") from None
    if not shares or not all(0 <= q <= 1 for q in shares):
        raise ArgumentError("qs must hold at least one number from 0 to 1")
    design = QuantileDesign(
        check.whole("bins", bins, 2, 1 << 16),
        check.whole("window", window, 1, public.length),
        public,
        check.positive("epsilon", epsilon),
        check.exact("delta", delta, least=0, below=1),
    )
    if design.windows * design.bins > 1 << 22:
        raise ArgumentError("bins must be fewer for so many windows: at most 2**22 counts in all")
    inside = check.confidence(confidence)
    tree, chosen = design.plan()
    whom = promise(public.level, w=public.w, unit=unit, neighbours=public.neighbours)
    loss = chosen.loss(neighbours=public.neighbours).promising(whom)
    said = (design.bins, design.window, design.epsilon, design.delta, *public.said)
    charge_for(readings, loss, "window quantiles", *said)
    noise = chosen.mechanism
    assert isinstance(noise, DiscreteLaplace | DiscreteGaussian)
    found = tree.quantiles(tree.measure(design.leaves(values), noise), shares, noise, inside)
    low, wide = float(public.lower), float((public.upper - public.lower) / design.bins)
    ends = tuple(low + wide * part for part in (found.value, found.lower, found.upper))
    return WindowQuantiles(shares, (ends[0], ends[1], ends[2]), loss)

"""Estimates from several channels side by side: by name, of cells, and of keys with their means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._format import count_text, display_text, loss_text, remaining
from dither._format import level as level_text
from dither.errors import ArgumentError
from dither.local._estimates.results import (
    SHOWN,
    Array,
    Estimate,
    Result,
    as_text,
    heading,
    label,
    rounded,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Estimates(Result, Mapping[str, Estimate]):
    """Estimates of several attributes, or of several groups of them, by name.

    Parameters
    ----------
    by_name : dict from str to Estimate
    """

    by_name: dict[str, Estimate]

    def __getitem__(self, name: str) -> Estimate:
        """The estimate of that name."""
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    @property
    def frame(self) -> Any:
        """The frames one below the other, with a column `attribute`."""
        import polars as pl

        return pl.concat(
            pl.DataFrame({"attribute": [name] * len(one.values)}).hstack(one.frame)
            for name, one in self.items()
        )

    def summary(self) -> str:
        """The summaries one below the other."""
        return "\n\n".join(one.summary() for one in self.values())

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the shares of each, one below the other; see `Result.plot`."""
        from dither.plots._local import draw_shares

        return draw_shares(list(self.values()), path)


@dataclass(frozen=True, eq=False)
class Marginal(Estimate):
    """Joint shares of some attributes: an estimate whose values are cells, tuples of values.

    Parameters
    ----------
    attributes : tuple of str
    shape : tuple of int
        How many values each attribute has.
    """

    attributes: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()

    @property
    def table(self) -> Array:
        """The shares, one axis per attribute, in the order of its domain."""
        return np.asarray(self.shares.reshape(self.shape))

    def of(self, *names: str) -> Array:
        """The shares of fewer attributes, summed over the others, axes in the given order."""
        known = all(isinstance(name, str) and name in self.attributes for name in names)
        if not names or not known or len(set(names)) < len(names):
            raise ArgumentError(f"names must be different ones of {', '.join(self.attributes)}")
        gone = tuple(i for i, a in enumerate(self.attributes) if a not in names)
        kept = [a for a in self.attributes if a in names]
        return np.transpose(self.table.sum(axis=gone), [kept.index(name) for name in names])


@dataclass(frozen=True, eq=False)
class KeyEstimate(Result):
    """How many people have each key, and the mean of its values in the values' own unit.

    Parameters
    ----------
    keys : Estimate
        The keys, with the share of people who have each.
    bounds : (float, float)
        Of the values.
    means, mean_errors : array of float, shape (k,)
        Of the key's values, and their standard errors by the delta method; NaN where the estimated
        share is not positive.
    intervals : array of float, shape (k, 2)
        Of the means. Where not `trusted`, one that holds however few reports decide, whatever the
        people's values are; at worst the whole bounds.
    trusted : array of bool, shape (k,)
        Whether the interval is the normal one: both signs of the key are decided by many reports,
        and its share is ten standard errors above 0 or more, so that the ratio is all but linear.
    """

    keys: Estimate
    bounds: tuple[float, float]
    means: Array
    mean_errors: Array
    intervals: Array
    trusted: npt.NDArray[np.bool_]

    @property
    def values(self) -> tuple[Any, ...]:
        """The keys."""
        return self.keys.values

    @property
    def shares(self) -> Array:
        """Of people who have each key, shape (k,)."""
        return self.keys.shares

    @property
    def share_errors(self) -> Array:
        """Standard errors of `shares`, shape (k,)."""
        return self.keys.standard_errors

    @property
    def n(self) -> int:
        """Reports counted."""
        return self.keys.n

    @property
    def notes(self) -> tuple[str, ...]:
        """What the shares assume."""
        return self.keys.notes

    @property
    def frame(self) -> Any:
        """A Polars frame: key, share, share_error, mean, mean_error, lower and upper."""
        import polars as pl

        columns = {
            "key": [label(v) for v in self.values],
            "share": self.shares,
            "share_error": self.share_errors,
            "mean": self.means,
            "mean_error": self.mean_errors,
            "lower": self.intervals[:, 0],
            "upper": self.intervals[:, 1],
        }
        return pl.DataFrame(columns, nan_to_null=True)

    def summary(self) -> str:
        """A few lines for people: the shares of the keys, and the means with their intervals."""
        keys = self.keys
        percent = level_text(keys.confidence)
        lines = [
            heading(keys.title, keys.n, keys.rejected),
            f"{'key':<20}{'share':>9}{'mean':>12}{percent:>24}",
        ]
        for i in np.argsort(-self.shares, kind="stable")[:SHOWN].tolist():
            lower, upper = self.intervals[i]
            possible = float(np.clip(self.means[i], lower, upper))
            mean = f"{possible:>12.4g}" if np.isfinite(possible) else f"{'unknown':>12}"
            ends = f"{remaining(lower)} to {loss_text(upper)}"
            share = rounded(self.shares[i], 4)
            lines.append(f"{display_text(self.values[i], 19):<20}{share:>9}{mean}{ends:>24}")
        remarks = []
        if not self.trusted.all():
            few = count_text(int((~self.trusted).sum()), "key")
            remarks.append(
                f"Too few reports decide the mean of {few} for a normal interval; the one given "
                "holds whatever the values are."
            )
        return as_text(lines, [*remarks, *self.notes])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the means within the bounds, the most frequent key first; see `Result.plot`."""
        from dither.plots._local import draw_keys

        return draw_keys(self, path)

"""Estimates of several classes of people, combined by the least variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local._domain import Value
from dither.local._numbers.em import em
from dither.local._numbers.numeric import NumericChannel
from dither.local._postprocess import project

if TYPE_CHECKING:
    from dither.local._aggregate import Aggregate
    from dither.local._numbers.personalised import Personalised


Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """A combined estimate: of shares, for lists of values, or of one mean.

    Parameters
    ----------
    names : tuple of str
        The classes that reported.
    sizes : tuple of int
        Their reports.
    values : tuple
        The list of values; empty where the estimate is a mean.
    estimates : array of float, shape (classes, k); k = 1 for a mean
        Each class's own.
    weights : array of float, shape (classes, k)
        n_i/σ_i², scaled to sum 1 for each value.
    combined : array of float, shape (k,)
    standard_errors : array of float, shape (k,), or None
        Given the users' values; None for means, whose estimates are biased.
    notes : tuple of str
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    values: tuple[Value, ...]
    estimates: Array
    weights: Array
    combined: Array
    standard_errors: Array | None
    notes: tuple[str, ...]

    @property
    def mean(self) -> float:
        """The combined mean, of classes of numbers."""
        if self.values:
            raise ArgumentError("these classes are over a list of values; read combined")
        return float(self.combined[0])

    @property
    def frame(self) -> Any:
        """A Polars frame, a row a value: value, share and standard_error, or mean alone."""
        import polars as pl

        if not self.values:
            return pl.DataFrame({"mean": self.combined})
        return pl.DataFrame(
            {
                "value": [str(v) for v in self.values],
                "share": self.combined,
                "standard_error": self.standard_errors,
            }
        )

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """A few lines for people."""
        lines = [f"{'class':<24}{'reports':>10}{'weight':>9}"]
        for name, size, row in zip(self.names, self.sizes, self.weights, strict=True):
            lines.append(f"{name[:23]:<24}{size:>10,}{row.mean():>9.3f}")
        if self.values:
            pairs = zip(self.values, self.combined, strict=True)
            lines += [f"{str(value)[:19]:<20}{share:>9.4f}" for value, share in list(pairs)[:12]]
        else:
            lines.append(f"mean  {self.mean:.6g}  (biased; no interval is valid)")
        return "\n".join([*lines, *self.notes])


def weighted(channel: Personalised, aggregate: Aggregate, **options: Any) -> Weighted:
    """Combine the classes of a personalised channel; see `Personalised.weighted`."""
    from dither.local._numbers.personalised import ASSUMES

    parts = {name: part for name, part in channel.split(aggregate).items() if part.n > 0}
    if not parts:
        raise ArgumentError("there are no reports to estimate from")
    numeric = isinstance(channel.channels[0], NumericChannel)
    if options and not numeric:
        raise ArgumentError("options are for classes of numbers; leave them out")
    sizes = np.array([part.n for part in parts.values()], dtype=np.float64)
    estimates, variances = (_means if numeric else _shares)(list(parts.values()), sizes, options)
    # A value that nobody seems to hold may have no variance in any class; all are then alike.
    precision = sizes[:, None] / np.maximum(variances, 1e-12)
    weights = precision / precision.sum(axis=0)
    return Weighted(
        names=tuple(parts),
        sizes=tuple(part.n for part in parts.values()),
        values=() if numeric else channel.channels[0].domain.values,
        estimates=estimates,
        weights=weights,
        combined=(weights * estimates).sum(axis=0),
        standard_errors=None if numeric else 1 / np.sqrt(precision.sum(axis=0)),
        notes=(f"Assumes: {ASSUMES}.",),
    )


def _shares(parts: list[Aggregate], sizes: Array, options: dict[str, Any]) -> tuple[Array, Array]:
    """Raw estimates, and one report's variance at one plausible distribution for all classes."""
    raw = np.array([part.channel.decode(part.counts, part.n) for part in parts])
    plausible = project(sizes @ raw / sizes.sum())
    return raw, np.array([part.channel.noise_variance(plausible) for part in parts])


def _means(parts: list[Aggregate], sizes: Array, options: dict[str, Any]) -> tuple[Array, Array]:
    """EM means, and the reports' variance at the distribution that EM found."""
    means, variances = [], []
    for part in parts:
        assert isinstance(part.channel, NumericChannel)
        found = em(part, **options)
        assert found.starts is not None
        of_points = part.channel.moments()[1]
        ends = np.append(found.starts[1:], of_points.size)
        of_bins = np.add.reduceat(of_points, found.starts) / (ends - found.starts)
        means.append([found.mean])
        variances.append([float(found.shares @ of_bins)])
    return np.array(means), np.array(variances)

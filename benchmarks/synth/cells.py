"""How often intervals of `SyntheticModel.analyse` cover, of thousands of releases.

Run with ``python -m benchmarks.synth.cells [--runs N] [--sets M] [--table NAME]``. The tables, the
analyses and what is measured are those of `benchmarks.synth.coverage`, which goes through a session
and takes half a second a release. Here a release is its tables of counts: people are drawn as a
table, its noise is added, and all fits of a thousand releases are made at once, by bisection, as
the two measured tables share one column. What is combined and how is as in the package. Rows are
counted and not laid out, which moves an estimate by less than a hundredth of its standard error.
``--against N`` fits N releases by the package, too, and prints by how much the two differ.

A cell is beyond chance where so far outside .93 to .97 a count lies once in a thousand times.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.synth.coverage import TABLES
from dither.synth._spending import MeasuredTable
from dither.synth.model._model import FittedModel
from dither.synth.model._plans import Measurements
from dither.synth.model._several import mirrored

Floats = npt.NDArray[np.float64]
Pair = tuple[Floats, Floats]
"""Tables of y by a and b (runs, y, a·b), and of y by g (runs, y, 2)."""

NAMES = ("mean", "share", "difference", "slope a", "slope b")
PEOPLE = 4_000_000
"""People of whom the true table is taken."""
AT_ONCE = 500
HALVINGS = 24
SPAN = 1_000.0
"""Far more than is taken from a cell of both tables together, where noise has deviations of 6."""
LOW, HIGH = 0.93, 0.97


@dataclass(frozen=True)
class Release:
    """What is asked of a table, and the noise of what is measured.

    Parameters
    ----------
    law : array of float
        The chance of each combination of y, a, b and g.
    people : int
    deviation : float
    """

    law: Floats
    people: int
    deviation: float

    @classmethod
    def of(cls, name: str, people: int, deviation: float) -> Release:
        """One of the simulated tables."""
        drawn, sizes = TABLES[name]
        frame = drawn(np.random.default_rng(0), PEOPLE)
        shape = (*sizes.values(), 2)
        columns = tuple(frame[c].to_numpy().astype(int) for c in (*sizes, "g"))
        counts = np.bincount(np.ravel_multi_index(columns, shape), minlength=int(np.prod(shape)))
        return cls(counts.reshape(shape) / PEOPLE, people, deviation)

    def measured(self, rng: np.random.Generator, runs: int) -> Pair:
        """The tables of people who are drawn anew, with noise."""
        counts = rng.multinomial(self.people, self.law.ravel(), size=runs)
        whole = counts.reshape(runs, *self.law.shape).astype(float)
        return self.noisy(rng, (whole.sum(4).reshape(runs, len(self.law), -1), whole.sum((2, 3))))

    def noisy(self, rng: np.random.Generator, tables: Pair) -> Pair:
        """With noise once more."""
        first, second = (t + np.rint(rng.normal(0, self.deviation, t.shape)) for t in tables)
        return first, second

    def estimates(self, tables: Floats) -> Floats:
        """The analyses of tables of all columns, a row each."""
        y, a, b, g = np.indices(self.law.shape).reshape(4, -1).astype(float)
        x = np.column_stack([np.ones(len(y)), a, b])
        w = tables.reshape(len(tables), -1)
        n, many = w.sum(1), w @ g
        squares = np.stack([x[:, i] * x[:, j] for i in range(3) for j in range(3)], 1)
        left, right = (w @ squares).reshape(-1, 3, 3), w @ (x * y[:, None])
        slopes = np.linalg.solve(left, right[:, :, None])[:, 1:, 0]
        apart = w @ (g * y) / many - w @ ((1 - g) * y) / (n - many)
        return np.column_stack([w @ y / n, many / n, apart, slopes])


def rows_of(tables: Pair) -> Floats:
    """How many rows there are, by both tables."""
    cells = [t.shape[1] * t.shape[2] for t in tables]
    sums = [t.sum((1, 2)) / k for t, k in zip(tables, cells, strict=True)]
    found: Floats = (sums[0] + sums[1]) / (1 / cells[0] + 1 / cells[1])
    return found


class Simplices:
    """The rows of a table, to be projected on rows of no count below 0 and of some sum."""

    def __init__(self, values: Floats) -> None:
        self.values = values
        self._falling = -np.sort(-values, axis=-1)
        self._sums = np.cumsum(self._falling, axis=-1)
        self._order = np.arange(1, values.shape[-1] + 1)

    def taken(self, sums: Floats) -> Floats:
        """What is taken from each cell of a row before it is cut off at 0."""
        level = (self._sums - sums[..., None]) / self._order
        kept = np.maximum((self._falling > level).sum(-1), 1)
        found: Floats = np.take_along_axis(level, kept[..., None] - 1, -1)[..., 0]
        return found

    def projected(self, sums: Floats) -> Floats:
        """The nearest rows."""
        return np.maximum(self.values - self.taken(sums)[..., None], 0.0)


def fitted(tables: Pair) -> Pair:
    """The nearest tables of no count below 0 that agree on y and have as many rows as measured.

    By Lagrange: what is taken from the cells of a value of y in both tables is the same sum for all
    of its values that have any row.
    """
    sides = [Simplices(t) for t in tables]
    rows = rows_of(tables)

    def counts(price: Floats) -> Floats:
        low, high = np.zeros(tables[0].shape[:2]), np.tile(rows[:, None], tables[0].shape[1])
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            more = sides[0].taken(middle) + sides[1].taken(middle) > price[:, None]
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return (low + high) / 2

    low, high = np.full(len(rows), -SPAN), np.full(len(rows), SPAN)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        many = counts(middle).sum(1) > rows
        low, high = np.where(many, middle, low), np.where(many, high, middle)
    found = counts((low + high) / 2)
    found *= (rows / found.sum(1))[:, None]
    return sides[0].projected(found), sides[1].projected(found)


def joined(tables: Pair, shape: tuple[int, ...]) -> Floats:
    """The table of all columns, where g has nothing to do with a and b beside y."""
    first, second = tables
    sums = second.sum(-1, keepdims=True)
    share = second / np.where(sums > 0, sums, 1.0)
    return (first[:, :, :, None] * share[:, :, None, :]).reshape(len(first), *shape)


def mirror(tables: Pair, near: Pair) -> Pair:
    """As far beyond the fit as the measured ones are on this side of it."""
    first, second = (np.rint(2 * n - t) for n, t in zip(near, tables, strict=True))
    return first, second


def intervals(
    release: Release, rng: np.random.Generator, runs: int, sets: int
) -> Iterator[tuple[Floats, Floats]]:
    """Estimates and their standard errors, of some releases at a time."""
    shape = release.law.shape
    for start in range(0, runs, AT_ONCE):
        tables = release.measured(rng, min(AT_ONCE, runs - start))
        near = fitted(tables)
        ours = release.estimates(joined(near, shape))
        theirs = release.estimates(joined(fitted(mirror(tables, near)), shape))
        found = []
        for _ in range(sets):
            again = release.noisy(rng, tables)
            near = fitted(again)
            model = joined(near, shape)
            flat = np.maximum(model.reshape(len(model), -1), 0.0)
            drawn = rng.multinomial(
                np.rint(rows_of(again)).astype(int), flat / flat.sum(1, keepdims=True)
            )
            of_model = release.estimates(model)
            of_mirror = release.estimates(joined(fitted(mirror(again, near)), shape))
            found.append(release.estimates(drawn.astype(float)) + of_model - of_mirror)
        yield 2 * ours - theirs, np.std(found, axis=0, ddof=1)


def against(release: Release, rng: np.random.Generator, runs: int) -> Floats:
    """By how much the corrected estimates differ from those of the package's own fits, at most."""
    shape = release.law.shape
    worst = np.zeros(len(NAMES))
    for _ in range(runs):
        tables = release.measured(rng, 1)
        near = fitted(tables)
        of_mirror = release.estimates(joined(fitted(mirror(tables, near)), shape))
        ours = 2 * release.estimates(joined(near, shape)) - of_mirror
        variance = Fraction(release.deviation) ** 2
        parts = []
        for clique, table in zip(((0, 1, 2), (0, 3)), tables, strict=True):
            counts = table.astype(int).reshape([shape[v] for v in clique])
            parts.append(MeasuredTable(clique, counts, variance))
        model = FittedModel.of(shape, Measurements(parts))
        both = (model.marginal((0, 1, 2, 3)), mirrored(model).marginal((0, 1, 2, 3)))
        theirs = [release.estimates(one[None]) for one in both]
        worst = np.maximum(worst, np.abs(ours - (2 * theirs[0] - theirs[1]))[0])
    return worst


def verdict(hits: int, runs: int) -> str:
    """Whether a count is outside of what was to be reached, beyond chance."""
    below = stats.binom.cdf(hits, runs, LOW) < 0.001
    above = stats.binom.sf(hits - 1, runs, HIGH) < 0.001
    return "BELOW" if below else "ABOVE" if above else ""


def report(name: str, release: Release, asked: argparse.Namespace) -> Mapping[str, float]:
    """Print the cells of a table; by name, how often they covered."""
    start, rng = time.process_time(), np.random.default_rng(asked.seed)
    truth = release.estimates(release.law[None])
    parts = list(intervals(release, rng, asked.runs, asked.sets))
    values, errors = (np.concatenate(side) for side in zip(*parts, strict=True))
    reach = stats.t.ppf(0.975, asked.sets - 1) * errors
    hits = (np.abs(values - truth) <= reach).sum(0)
    took = time.process_time() - start
    print(f"{name}: {asked.runs} releases, {asked.sets} sets each, {took:.0f} s of processor")
    for i, (key, count) in enumerate(zip(NAMES, hits.tolist(), strict=True)):
        off, said = values[:, i].std(), float(np.sqrt(np.mean(errors[:, i] ** 2)))
        bias = values[:, i].mean() - truth[0, i]
        print(
            f"{name:8} {key:11} {count / asked.runs:.3f}  bias {bias / off:+.2f} of its error, "
            f"standard errors {said / off:.2f} of it  {verdict(count, asked.runs)}".rstrip(),
            flush=True,
        )
    return dict(zip(NAMES, (hits / asked.runs).tolist(), strict=True))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument(
        "--deviation", type=float, default=6.4076, help="Of the noise: as at epsilon 1."
    )
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--against", type=int, default=0, help="Releases fitted twice.")
    parser.add_argument("--table", choices=TABLES, action="append")
    asked = parser.parse_args()
    for name in asked.table or TABLES:
        release = Release.of(name, asked.rows, asked.deviation)
        if asked.against:
            worst = against(release, np.random.default_rng(asked.seed), asked.against)
            said = ", ".join(f"{k} {v:.4f}" for k, v in zip(NAMES, worst, strict=True))
            print(f"{name}: of {asked.against} releases the package's fits differ by {said}")
        report(name, release, asked)


if __name__ == "__main__":
    main()

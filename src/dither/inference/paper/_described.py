"""A description as people get it: a table of columns by groups, with intervals for each number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._display import table as lines_of
from dither._format import display_text, interval, level, number_text, percent
from dither._notebook import html_lines
from dither.errors import ArgumentError
from dither.inference.engine._errors import DRAWS
from dither.inference.engine._inputs import Floats
from dither.inference.engine._release import spread_of
from dither.inference.engine._result import PrivateResult, too_few_rows
from dither.inference.engine._simulation import SimulatedNoise
from dither.inference.paper._readings import (
    QUARTILES,
    CategoryReading,
    NumberReading,
    Uncertain,
)
from dither.inference.paper._release import DescriptionRelease

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["CategoryFacts", "DescribedRows", "NumberFacts", "PrivateDescription", "described"]

ALL = "overall"

HOW_SPLIT = (
    "the charge was split evenly among the moments of each number, the ranks of each number and "
    "the counts of each category, with half a part for the sizes of groups"
)


@dataclass(frozen=True)
class NumberFacts:
    """What is public of a number.

    Parameters
    ----------
    name : str
    middle, half : float
        Of its bounds.
    edges : tuple of float
        Of the bins of its ranks.
    trim : float
        How far inside an edge the nearest number lies that can occur.
    """

    name: str
    middle: float
    half: float
    edges: tuple[float, ...]
    trim: float = 0.0


@dataclass(frozen=True)
class CategoryFacts:
    """What is public of a category: its name, and its levels as they are shown."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class DescribedRows:
    """What is public of a description.

    Parameters
    ----------
    by : str or None
        The column of the groups.
    groups : tuple of str
        Their names; one, "overall", where there are none.
    columns : tuple of NumberFacts or CategoryFacts
        In the order in which they are shown.
    """

    by: str | None
    groups: tuple[str, ...]
    columns: tuple[NumberFacts | CategoryFacts, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """The groups, and all of them together."""
        return self.groups if self.by is None else (*self.groups, ALL)


@dataclass(frozen=True, eq=False)
class DescribedNumber:
    """One number of a description.

    Parameters
    ----------
    column : str
    level : str
        Of a category; empty of a number.
    measure : str
        "n", "mean", "sd", "q25", "median", "q75", "count", "share" or "difference".
    group : str
    held : TruthDraws or RankDraws
    """

    column: str
    level: str
    measure: str
    group: str
    held: Uncertain


_MEASURES = ("q25", "median", "q75")


@dataclass(frozen=True, eq=False)
class PrivateDescription(PrivateResult):
    """ "Table 1": who was studied, by group and in all, of one release.

    Made by `describe`, and by ``infer(...).describe(...)`` on a table.

    Parameters
    ----------
    rows : DescribedRows
        What is public of it.
    design : DescriptionRelease
        How it was released.
    values : array of float
        The vector that was released.
    known : int or None
        The number of rows, where it is public.
    """

    rows: DescribedRows
    design: DescriptionRelease = field(repr=False)
    values: Floats = field(repr=False)
    known: int | None = None

    @cached_property
    def numbers(self) -> tuple[DescribedNumber, ...]:
        """Every number of it, in order."""
        return tuple(self._numbers())

    def _numbers(self) -> Iterator[DescribedNumber]:
        sizes, powers, levels, counts = self.design.parts(self.values)
        law, rows = spread_of(self.design.noise), self.rows
        if sizes is not None:
            # As a category with one level: its interval is about the noise.
            noise = _scaled(law, 1.0 / self.design.deviation_of_sizes * law.deviation)
            read = CategoryReading(sizes[:, None], _shaped(noise, len(sizes), 1), DRAWS)
            for g, group in enumerate(rows.shown):
                yield DescribedNumber("n", "", "n", group, read.count(g, 0))
        number, category = iter(zip(powers, levels, strict=True)), iter(counts)
        place = 0
        for facts in rows.columns:
            if isinstance(facts, NumberFacts):
                moments, ranks = next(number)
                yield from self._of_number(facts, moments, ranks, place)
                place += 1
            else:
                yield from self._of_category(facts, next(category))

    def _of_number(
        self, facts: NumberFacts, moments: Floats, ranks: list[Floats], place: int
    ) -> Iterator[DescribedNumber]:
        law, groups = spread_of(self.design.noise), len(self.rows.groups)
        v = float(self.design.weight[place])

        read = NumberReading(
            moments,
            partial(_of_powers, law, groups),
            facts.middle,
            facts.half,
            self.design.trees[place],
            ranks,
            partial(_divided, law, v),
            law.deviation / v,
            np.array(facts.edges),
            facts.trim,
            DRAWS,
        )
        for g, group in enumerate(self.rows.shown):
            yield DescribedNumber(facts.name, "", "mean", group, read.mean(g))
            yield DescribedNumber(facts.name, "", "sd", group, read.deviation_of(g))
            for i, _ in enumerate(QUARTILES):
                yield DescribedNumber(facts.name, "", _MEASURES[i], group, read.quantile(g, i))
        for g, group in enumerate(self.rows.groups[1:], 1):
            yield DescribedNumber(facts.name, "", "difference", group, read.difference(g))

    def _of_category(self, facts: CategoryFacts, table: Floats) -> Iterator[DescribedNumber]:
        law = spread_of(self.design.noise)
        shaped = _shaped(_scaled(law, 1.0), *table.shape)
        read = CategoryReading(table, shaped, DRAWS)
        for place, shown in enumerate(facts.levels):
            for g, group in enumerate(self.rows.shown):
                yield DescribedNumber(facts.name, shown, "count", group, read.count(g, place))
                yield DescribedNumber(facts.name, shown, "share", group, read.share(g, place))
            for g, group in enumerate(self.rows.groups[1:], 1):
                held = read.difference(g, place)
                yield DescribedNumber(facts.name, shown, "difference", group, held)

    # --- what people ask it for -------------------------------------------------------------------

    def number(
        self, column: str, measure: str, *, level: str = "", group: str | None = None
    ) -> tuple[float, float, float]:
        """One number with its 95 % interval: (estimate, lower, upper).

        Parameters
        ----------
        column : str
        measure : str
            As in the frame: "mean", "sd", "q25", "median", "q75", "count", "share", "difference";
            of the column "n" it is "n".
        level : str
            Of a category.
        group : str, optional
            All together where left out; of a difference the last group.

        Raises
        ------
        ArgumentError
            There is no such number.
        """
        wanted = group
        if wanted is None:
            wanted = self.rows.groups[-1] if measure == "difference" else self.rows.shown[-1]
        for one in self.numbers:
            if (one.column, one.measure, one.level, one.group) == (column, measure, level, wanted):
                low, high = one.held.interval(0.05)
                return one.held.at, low, high
        known = sorted({f"{one.column} {one.measure}" for one in self.numbers})
        raise ArgumentError(f"there is no such number; there are {', '.join(known[:12])}, ...")

    def intervals(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pl.DataFrame:
        """Every number with its interval.

        Parameters
        ----------
        confidence : float
            In (0, 1).
        simultaneous : bool
            Whether all intervals hold their truths together with this probability; else each does
            by itself. By Bonferroni: what is left of the confidence is divided among them.

        Returns
        -------
        polars.DataFrame
            ``column``, ``level``, ``measure``, ``group``, ``estimate``, ``lower``, ``upper``.
        """
        import polars as pl

        outside = 1.0 - check.confidence(confidence)
        if check.flag("simultaneous", simultaneous):
            outside /= max(1, len(self.numbers))
        rows = [
            (o.column, o.level, o.measure, o.group, o.held.at, *o.held.interval(outside))
            for o in self.numbers
        ]
        texts = [(name, pl.String) for name in ("column", "level", "measure", "group")]
        ends = [(name, pl.Float64) for name in ("estimate", "lower", "upper")]
        return pl.DataFrame(rows, schema=[*texts, *ends], orient="row")

    def to_frame(self, confidence: float = 0.95) -> pl.DataFrame:
        """As `intervals`, of each number by itself."""
        return self.intervals(confidence)

    def _printed(self, confidence: float) -> tuple[list[str], list[list[str]], int]:
        """Heads, rows of texts, and how many columns stand to the left."""
        frame = self.intervals(confidence)
        found: dict[tuple[str, str], dict[str, tuple[float, float, float]]] = {}
        for column, of, measure, group, *numbers in frame.iter_rows():
            found.setdefault((column, of), {})[f"{measure} {group}"] = tuple(numbers)
        groups, others = self.rows.shown, self.rows.groups[1:]
        heads = ["", *map(display_text, groups)]
        heads += [
            f"difference, {display_text(g)}" if len(others) > 1 else "difference" for g in others
        ]

        def cell(held: Mapping[str, Any], measure: str, group: str) -> str:
            at = held.get(f"{measure} {group}")
            return "" if at is None else interval(*at, ends=True)

        rows = []
        if self.known is not None:
            rows.append(["n", f"{self.known:,}", *[""] * (len(heads) - 2)])
        for (column, of), held in found.items():
            name = display_text(column)
            if column == "n" and "n " + groups[0] in held:
                rows.append(["n", *(_counted(held, "n", g) for g in groups), *[""] * len(others)])
            elif "mean " + groups[0] in held:
                apart = [cell(held, "difference", g) for g in others]
                rows.append([f"{name}, mean", *(cell(held, "mean", g) for g in groups), *apart])
                for measure in ("sd", "median"):
                    cells = [cell(held, measure, g) for g in groups]
                    rows.append([f"{name}, {measure}", *cells, *[""] * len(others)])
                cells = [
                    f"{number_text(held[f'q25 {g}'][0])} to {number_text(held[f'q75 {g}'][0])}"
                    for g in groups
                ]
                rows.append([f"{name}, quartiles", *cells, *[""] * len(others)])
            else:
                cells = []
                for g in groups:
                    at, low, high = held[f"share {g}"]
                    count = round(held[f"count {g}"][0])
                    ends = f"{percent(low, turn=math.floor)} to {percent(high, turn=math.ceil)}"
                    cells.append(f"{count:,} ({percent(at)}, {ends})")
                apart = [cell(held, "difference", g) for g in others]
                rows.append([f"{name} = {display_text(of)}", *cells, *apart])
        return heads, rows, 1

    def _lines(self) -> list[str]:
        return []

    def summary(self) -> str:
        """The table, and below it the cost, and what its numbers rest on."""
        heads, rows, left = self._printed(0.95)
        first = f"{self.title}; intervals at {level(0.95)}, each by itself"
        return "\n".join([first, *lines_of(heads, rows, left=left), super().summary()])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the standardised differences from the first group; without groups, the means.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots._forest import draw_forest

        wanted = "difference" if len(self.rows.groups) > 1 else "mean"
        shown = [one for one in self.numbers if one.measure == wanted]
        if not shown:
            shown = [one for one in self.numbers if one.measure == "share"]
        several = len(self.rows.groups) > 2
        names = [
            display_text(one.column)
            + (f" = {display_text(one.level)}" if one.level else "")
            + (f", {display_text(one.group)}" if several else "")
            for one in shown
        ]
        ends = [(one.held.at, *one.held.interval(0.05)) for one in shown]
        title = self.title if wanted == "mean" else "standardised differences"
        return draw_forest(names, ends, title=title, foot=self.cost, null=0.0, path=path)

    def _repr_html_(self) -> str:
        return self.to_html() + html_lines("", super().summary().splitlines())

    @property
    def _content(self) -> Mapping[str, Any] | None:
        """What the ledger keeps, where it was asked of a session."""
        return None if self.certificate is None else {"values": [float(v) for v in self.values]}


def _counted(held: Mapping[str, tuple[float, float, float]], measure: str, group: str) -> str:
    at, low, high = held[f"{measure} {group}"]
    return interval(round(at), math.floor(low), math.ceil(high), ends=True)


def _scaled(law: Any, times: float) -> Any:
    def drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return np.asarray(law.draw(rng, shape) / times)

    return drawn


def _shaped(noise: Any, groups: int, width: int) -> Any:
    def drawn(rng: np.random.Generator, size: int) -> Floats:
        return np.asarray(noise(rng, (size, groups, width)))

    return drawn


def described(
    rows: DescribedRows,
    design: DescriptionRelease,
    values: Floats,
    assumptions: tuple[str, ...],
    known: int | None = None,
    **beside: Any,
) -> PrivateDescription:
    """A description of what was released.

    Examples
    --------
    >>> from dither.inference.engine._inputs import target
    >>> rows = DescribedRows(None, ("overall",), (CategoryFacts("ill", ("no", "yes")),))
    >>> design = DescriptionRelease(1, (), (2,), target(1, 0, "replace"), sized=False)
    >>> found = described(rows, design, np.array([30.0, 70.0]), (), 100)
    >>> found.number("ill", "share", level="yes")[0]
    0.7
    """
    title = "description" if rows.by is None else f"description by {display_text(rows.by)}"
    notes = []
    _, powers, _, counts = design.parts(values)
    deviation = spread_of(design.noise).deviation
    seen = [p[:, 0].min() for p in powers] + [c.sum(axis=1).min() for c in counts]
    if seen and min(seen) < 20 * deviation:
        notes.append(
            too_few_rows("the noise is much of what a group has", 20 * deviation * len(rows.groups))
        )
    return PrivateDescription(
        title,
        beside.pop("loss", design.loss),
        (*assumptions, "numbers are clamped to their bounds"),
        (HOW_SPLIT + ".", *notes),
        rows,
        design,
        values,
        known,
        **beside,
    )


def _of_powers(law: SimulatedNoise, groups: int, rng: np.random.Generator, size: int) -> Floats:
    from dither.inference.paper._release import OF_POWERS

    return np.asarray(law.draw(rng, (size, groups, OF_POWERS.shape[0])) @ OF_POWERS.T)


def _divided(
    law: SimulatedNoise, by: float, rng: np.random.Generator, shape: tuple[int, ...]
) -> Floats:
    return np.asarray(law.draw(rng, shape) / by)

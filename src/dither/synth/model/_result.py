"""What a synthesis gives: a model that may be handed out, rows of it, and tables with intervals.

Long because all that a model is asked for stands at one value, each answer beside the next.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._files import written
from dither._format import cost_text, count_text, number_text, wrapped
from dither._notebook import html_lines
from dither._stats import two_sided
from dither.errors import ArgumentError, DitherError
from dither.query.tables._domain import CellDomain
from dither.session._certificate import Certificate
from dither.synth._rules import Rules
from dither.synth._values import values_of
from dither.synth.constraints._row_rules import RowRules
from dither.synth.model._inside import FinerBins
from dither.synth.model._model import FittedModel
from dither.synth.model._plans import Measurements
from dither.synth.model._several import (
    POOL,
    CombinedEstimates,
    corrected,
    mirrored,
    named,
    noisier,
    told,
)
from dither.synth.model._together import taken_together
from dither.synth.tables._stored import measured_from

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["SimulatedRows", "SyntheticModel"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FORMAT = 1
LARGEST = 2**31
"""Rows of one sample, at most."""

MOST_SETS = 1_000
"""Data sets of one release, at most."""

GIVEN_TRIES = 20
"""How often a row beside given columns is drawn again, where it broke a rule."""

MOST_CELLS = 2**24
"""Cells of a marginal, at most."""


class SimulatedRows:
    """Random numbers for rows of a model. They protect nobody: the model is protected already."""

    @staticmethod
    def of(seed: int | np.random.Generator | None) -> np.random.Generator:
        """The generator that is given, that of a seed, or one that nobody else has."""
        if isinstance(seed, np.random.Generator):
            return seed
        if seed is None:
            return np.random.Generator(np.random.PCG64DXSM())
        return np.random.Generator(np.random.PCG64DXSM(check.whole("seed", seed)))


class SyntheticModel:
    """A distribution of rows that was made under differential privacy; it may be handed out.

    Made by ``session.table("adult").synthesize(...)``, or read by `load`. Whatever is asked of it
    costs nothing more.

    Parameters
    ----------
    content : mapping
        What was released, as the ledger and files keep it.
    replayed : datetime, optional
        When it was charged, where it is an earlier answer.

    Notes
    -----
    *Guarantee.* That of its release: `certificate` says what it is and whom it protects.

    *What is right.* Tables that were measured are right up to noise, whose size is known. The
    others follow from them by the assumption that columns that were not measured together have
    nothing more to do with each other than those that were. Nobody can say from the model alone how
    far that is true.
    """

    def __init__(self, content: Mapping[str, Any], *, replayed: dt.datetime | None = None) -> None:
        self._content, self._charged = content, replayed
        self.domain = CellDomain.from_list(content["domain"])

    # --- what it is -------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return self.domain.names

    @property
    def method(self) -> str:
        """How the tables to measure were chosen."""
        return str(self._content["method"])

    @property
    def uniform(self) -> bool:
        """Whether the budget was too small to tell anything, so that all values are as likely."""
        return bool(self._content["uniform"])

    @property
    def total(self) -> float:
        """How many rows the table has, by what was released; public where the policy says so."""
        return self._fitted.total

    @property
    def public_size(self) -> bool:
        """Whether the number of rows is public, and exact."""
        return self._content["total"] is not None

    @property
    def measured(self) -> list[tuple[str, ...]]:
        """The tables that were measured, in their order."""
        return [self._names(m.clique) for m in self._found.measured]

    @property
    def replayed(self) -> bool:
        """Whether it is an earlier answer, replayed free of charge."""
        return self._charged is not None

    @property
    def certificate(self) -> Certificate:
        """What was promised, and where the ledger has it."""
        return Certificate(self._content["certificate"])

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        return list(self._content["notes"])

    def _names(self, clique: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.domain.names[v] for v in clique)

    @cached_property
    def _found(self) -> Measurements:
        return measured_from(self._content)

    @cached_property
    def _finer(self) -> dict[int, FinerBins]:
        columns = self.domain.attributes
        stored = self._content.get("inside", {})
        return {int(v): FinerBins.from_dict(b, columns[int(v)]) for v, b in stored.items()}

    @cached_property
    def _row_rules(self) -> RowRules:
        return RowRules.from_list(self._content.get("row_rules", []), self.domain)

    @cached_property
    def _fitted(self) -> FittedModel:
        rules = Rules.from_dict(self._content["rules"], self.domain)
        return FittedModel.of(
            self.domain.sizes,
            self._found,
            total=self._content["total"],
            known=rules.known,
            forbidden=rules.forbidden,
            uniform=self.uniform,
        )

    # --- rows -------------------------------------------------------------------------------------

    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | np.random.Generator | None = None,
        given: pl.DataFrame | Mapping[str, Any] | None = None,
    ) -> pl.DataFrame:
        """Rows of the model, in the policy's own types.

        Parameters
        ----------
        n : int, optional
            How many; about as many as the table has where left out.
        seed : int, optional
            The same one gives the same rows.
        given : mapping or polars.DataFrame, optional
            A value a column, as ``{"sex": "f"}``: all rows are of such people, in the model's
            distribution given that; a number in a bin stands for its bin. Or a frame of some of the
            columns, held as they are: each row is filled with the others, as the model says of such
            rows. It must be public, or synthetic itself.

        Returns
        -------
        polars.DataFrame
            Numbers are spread inside their bins, on the policy's step where it has one, and dates
            inside their periods: evenly, since what the model knows is the bin, or as a tree of
            finer bins says (``inside="tree"``). What is missing is null.

        Notes
        -----
        Rows are laid out so that every table has its counts up to rounding, which is closer to the
        model than independent draws would be: `n` rows are not a random sample of so many people.
        """
        import polars as pl

        number = round(self.total) if n is None else check.whole("n", n)
        if number > LARGEST:
            raise ArgumentError(f"n must be at most {LARGEST:,}")
        rng = SimulatedRows.of(seed)
        held: dict[int, Integers] = {}
        if given is None:
            found, numbers = self._drawn(number, {}, rng)
        elif isinstance(given, Mapping):
            held = self._valued(given, number)
            found, numbers = self._drawn(number, held, rng)
        else:
            if n is not None:
                raise ArgumentError("n must be left out where rows are given")
            held = self._held(given)
            found, numbers = self._beside(given, held, rng)
        made = []
        for v, attribute in enumerate(self.domain.attributes):
            if v in held and not isinstance(given, Mapping):
                assert given is not None
                made.append(given[attribute.name])
            elif v in numbers:
                lattice, values, null = numbers[v]
                made.append(lattice.as_values(attribute, values, null))
            else:
                made.append(self._values(v, found[:, v], rng))
        return pl.DataFrame(made)

    def samples(
        self,
        sets: int = 20,
        *,
        about: str = "people",
        seed: int | np.random.Generator | None = None,
    ) -> list[pl.DataFrame]:
        """Several data sets, which differ as the release would, were it made again.

        Parameters
        ----------
        sets : int
            How many; more make intervals narrower, and from 20 on by little.
        about : {"people", "rows"}
            Whether an analysis is to be about all people of whom these are a sample, or about the
            rows of the table alone.
        seed : int, optional
            The same one gives the same data sets.

        Returns
        -------
        list of polars.DataFrame
            Each of about as many rows as the table has, from a model that was fitted to the
            measured tables with their noise added once more. An analysis of each is combined by
            ``dither.synth.combined``; `analyse` also corrects for counts that are cut off at 0.
        """
        return [frame for _, frame in self._again(sets, about, SimulatedRows.of(seed))]

    def _again(
        self, sets: int, about: str, rng: np.random.Generator
    ) -> Iterator[tuple[SyntheticModel, pl.DataFrame]]:
        """Models with their noise in them once more, and a data set of each."""
        many = check.whole("sets", sets, 2, MOST_SETS)
        people = check.choice("about", about, ("people", "rows")) == "people"
        for _ in range(many):
            again = self._with(noisier(self._fitted, rng))
            number = round(again.total)
            frame = again.sample(POOL * number if people else number, seed=rng)
            if people and number:
                frame = frame[rng.integers(0, frame.height, number)]
            yield again, frame

    def _with(self, fitted: FittedModel) -> SyntheticModel:
        """This model with another fit in place of its own."""
        found = SyntheticModel(self._content)
        found.__dict__["_fitted"] = fitted
        return found

    def analyse(
        self,
        analysis: Callable[[pl.DataFrame], Any],
        *,
        sets: int = 20,
        about: str = "people",
        confidence: float = 0.95,
        seed: int | np.random.Generator | None = None,
    ) -> CombinedEstimates:
        """An analysis of synthetic rows, with intervals that count the noise of the release.

        Parameters
        ----------
        analysis : callable
            From a frame to a number, a list of numbers, or a mapping of names to numbers.
        sets, about, seed
            As of `samples`.
        confidence : float
            Of each interval.

        Returns
        -------
        CombinedEstimates

        Notes
        -----
        Intervals cover where what is estimated follows from tables that were measured: name these
        in ``workload``. Which columns an estimate takes together is found out, and where they were
        never measured together, the result says so in ``notes`` and ``measured``: nothing that was
        released tells how far the model's own assumption is off there. Nor do intervals count where
        numbers lie inside their cells. The estimate is corrected for what a model without negative
        counts makes of noise, so it is not quite the analysis of `sample`, and a share may be below
        0. It costs nothing; each data set is analysed three times, and rows of the model some ten
        times more, with one or more of their columns permuted.

        Raises
        ------
        ArgumentError
            The analysis is no function, or gives no finite numbers; or the model is `uniform`.
        """
        inside = check.confidence(confidence)
        if not callable(analysis):
            raise ArgumentError("analysis must be a function of a frame")
        if self._fitted.public[2]:
            raise ArgumentError(
                "the budget told nothing but the number of rows, so no analysis of this model is "
                "about people; release it with more epsilon"
            )
        rng = SimulatedRows.of(seed)

        def both(model: SyntheticModel) -> tuple[Any, Any]:
            number, mirror = round(model.total), self._with(mirrored(model._fitted))
            ours, theirs = (one.sample(number, seed=rng) for one in (model, mirror))
            return analysis(ours), analysis(theirs)

        found = [(analysis(frame), *both(again)) for again, frame in self._again(sets, about, rng)]
        result = corrected(both(self), found, inside)
        return told(result, self._together(analysis, result), self._tables(), self._coarse())

    def _together(
        self, analysis: Callable[[pl.DataFrame], Any], found: CombinedEstimates
    ) -> dict[str, frozenset[str]]:
        """By estimate the columns that an analysis takes together."""

        def estimates(frame: pl.DataFrame) -> dict[str, float] | None:
            try:
                return named(analysis(frame))
            except Exception:
                # Of permuted rows an analysis may be impossible; then these columns matter to it.
                return None

        # Always the same numbers, so that nobody's own are drawn for this.
        rng = SimulatedRows.of(1)
        frame = self.sample(seed=rng)
        deviations = dict(zip(found.names, found.deviations, strict=True))
        return taken_together(estimates, frame, deviations, rng)

    def _coarse(self) -> tuple[str, ...]:
        """Columns of which tables of several have fewer cells than there are values."""
        merged = self._fitted.found.merged
        return self._names([v for v, at in merged.items() if int(at.max()) + 1 < at.size])

    def _tables(self) -> list[tuple[str, ...]]:
        """The columns of tables that were measured, or are public."""
        cliques = [m.clique for m in self._found.measured]
        cliques += [known.clique for known in self._fitted.public[1]]
        return [self._names(clique) for clique in cliques]

    def _drawn(
        self, number: int, held: Mapping[int, Integers], rng: np.random.Generator
    ) -> tuple[Integers, dict[int, Any]]:
        """Rows of cells, and the numbers that rules join."""

        def draw(many: int) -> Integers:
            if not held:
                return self._fitted.rows(many, rng)
            return self._fitted.rows_beside({v: at[:many] for v, at in held.items()}, rng)

        found = draw(number)
        if not self._row_rules.lattices or not number:
            return found, {}
        return self._row_rules.kept_by(draw, found, rng, finer=self._finer)

    def _beside(
        self, given: pl.DataFrame, held: Mapping[int, Integers], rng: np.random.Generator
    ) -> tuple[Integers, dict[int, Any]]:
        """The same beside rows that are given, each of which is drawn again by itself."""
        rules = self._row_rules
        found = self._fitted.rows_beside(held, rng)
        if not rules.lattices or not len(found):
            return found, {}
        units = self._units(given, held)

        def redrawn(rows: Integers) -> tuple[list[Any], npt.NDArray[np.bool_]]:
            inside = {v: at[rows] for v, at in units.items()}
            return rules.numbers(found[rows], rng, self._finer, inside)

        parts, good = redrawn(np.arange(len(found)))
        for _ in range(GIVEN_TRIES):
            waiting = np.flatnonzero(~good)
            if not len(waiting):
                break
            found[waiting] = self._fitted.rows_beside(
                {v: at[waiting] for v, at in held.items()}, rng
            )
            more, good[waiting] = redrawn(waiting)
            for (_, old, null), (_, values, other) in zip(parts, more, strict=True):
                old[waiting], null[waiting] = values, other
        if not good.all():
            raise ArgumentError(
                "given: a row for which nothing was found that keeps the rules "
                + ", ".join(map(repr, rules.names))
            )
        return found, {
            v: (lattice, values[:, i], null[:, i])
            for lattice, values, null in parts
            for i, v in enumerate(lattice.columns)
        }

    def _units(self, given: pl.DataFrame, held: Mapping[int, Integers]) -> dict[int, Integers]:
        """Given columns that rules join, as whole numbers of their lattice."""
        found = {}
        for lattice in self._row_rules.lattices:
            for v in set(held) & set(lattice.columns):
                attribute = self.domain.attributes[v]
                column = given[attribute.name]
                known = {
                    value: 0 if value is None else lattice.units(v, value)
                    for value in column.unique().to_list()
                }
                if None in known.values():
                    raise ArgumentError(
                        f"given: {attribute.name} stands in a rule, which is kept exactly, and so "
                        f"must hold multiples of {lattice.step_text(v)}"
                    )
                found[v] = np.array([known[x] for x in column.to_list()], dtype=np.int64)
        return found

    def _valued(self, given: Mapping[str, Any], number: int) -> dict[int, Integers]:
        """The cells that values or lists of values name, each row one of them."""
        if not given:
            raise ArgumentError('given must name at least one column, as in {"sex": "f"}')
        return {
            v: np.full(number, self.domain.attributes[v].place(given[self.domain.names[v]]))
            for v in self.domain.clique(list(given), "given")
        }

    def _values(self, v: int, cells: Integers, rng: np.random.Generator) -> Any:
        """The values of a column's cells: inside bins as a tree says, where there is one."""
        finer = self._finer.get(v)
        if finer is None:
            return values_of(self.domain.attributes[v], cells, rng)
        return values_of(finer.attribute, finer.placed(cells, rng), rng)

    def _held(self, given: pl.DataFrame) -> dict[int, Integers]:
        """The cells of columns that are given."""
        import polars as pl

        if not isinstance(given, pl.DataFrame) or not given.width:
            raise ArgumentError("given must be a Polars frame of some of the columns")
        found = {}
        for v in self.domain.clique(given.columns, "given"):
            attribute = self.domain.attributes[v]
            column = given[attribute.name]
            values = column.to_list()
            try:
                known = {value: attribute.place(value) for value in dict.fromkeys(values)}
            except (DitherError, TypeError):
                # Whoever hands rows over by mistake does not read one of them in a message.
                shown = ", ".join(attribute.labels[: attribute.size][:6])
                raise ArgumentError(
                    f"given: {attribute.name} has a value in none of its cells, {shown}"
                    + (", ..." if attribute.size > 6 else "")
                ) from None
            found[v] = np.array([known[value] for value in values], dtype=np.int64)
        return found

    # --- tables -----------------------------------------------------------------------------------

    def marginal(self, columns: Sequence[str], *, confidence: float = 0.95) -> pl.DataFrame:
        """The table of some columns by the model, and what was measured of it, with its error.

        Parameters
        ----------
        columns : sequence of str
        confidence : float
            Of each interval.

        Returns
        -------
        polars.DataFrame
            A row for each cell: the columns' cells as text, ``count`` by the model, and
            ``measured`` with ``lower`` and ``upper``. A measured count is the sum of noisy ones,
            without bias, and its interval covers the noise; both are null where no table that was
            measured has all of these columns. Then there is the model alone, whose error is
            unknown.
        """
        import polars as pl

        names = [columns] if isinstance(columns, str) else list(columns)
        places = [self.domain.clique([name], "columns")[0] for name in names]
        clique = self.domain.clique(names, "columns")
        if not clique:
            raise ArgumentError("columns must name at least one column")
        if self.domain.cells_in(clique) > MOST_CELLS:
            raise ArgumentError(
                f"columns: their table has {self.domain.cells_in(clique):,} cells, more than "
                f"{MOST_CELLS:,}; name fewer"
            )
        inside = check.confidence(confidence)
        order = [clique.index(v) for v in places]
        counts = np.transpose(self._fitted.marginal(clique), order).ravel()
        labels = list(product(*(self.domain.attributes[v].labels for v in places)))
        frame = {name: [row[i] for row in labels] for i, name in enumerate(names)}
        best = self._direct(clique)
        if best is None:
            values: list[Any] = [None] * len(counts)
            low, high = list(values), list(values)
        else:
            noisy, deviation = (np.transpose(a, order).ravel() for a in best)
            half = two_sided(inside) * deviation
            values, low, high = noisy.tolist(), (noisy - half).tolist(), (noisy + half).tolist()
        kinds = {"count": pl.Float64, "measured": pl.Float64, "lower": pl.Float64}
        schema = dict.fromkeys(names, pl.String) | kinds | {"upper": pl.Float64}
        columns_of = frame | {"count": counts, "measured": values, "lower": low, "upper": high}
        return pl.DataFrame(columns_of, schema=schema)

    def _direct(self, clique: tuple[int, ...]) -> tuple[Floats, Floats] | None:
        """The best sum of measured tables, and its deviation by cell."""
        best: tuple[Floats, Floats] | None = None
        for m in self._found.measured:
            if not set(clique) <= set(m.clique):
                continue
            if any(
                v in self._found.merged and m.values.shape[i] != self.domain.sizes[v]
                for i, v in enumerate(m.clique)
            ):
                continue
            others = tuple(i for i, v in enumerate(m.clique) if v not in clique)
            values = m.values.sum(axis=others).astype(np.float64)
            cells = math.prod(m.values.shape[i] for i in others)
            deviation = np.full(values.shape, m.deviation * math.sqrt(cells))
            if best is None:
                best = values, deviation
            else:
                ours, theirs = best[1] ** -2, deviation**-2
                mean = (ours * best[0] + theirs * values) / (ours + theirs)
                best = mean, (ours + theirs) ** -0.5
        return best

    # --- for people -------------------------------------------------------------------------------

    def summary(self) -> str:
        """What it is, what it rests on, and what it cost, as text."""
        body = self._content["certificate"]
        loss = body["loss"]
        cost = [None if loss[k] is None else Fraction(loss[k]) for k in ("epsilon", "delta")]
        again = " (replayed: nothing charged now)" if self.replayed else ""
        tables = count_text(len(self._found.measured), "table")
        lines = [
            f"rows: about {number_text(round(self.total), 6)}"
            + (" (public)" if self.public_size else ", by noisy counts"),
            f"method: {self.method}; {tables} measured, of {self._orders()}",
        ]
        if self.uniform:
            lines.append(
                "the budget is so small beside the table that all values are as likely: nothing "
                "but the number of rows was told"
            )
        lines += [
            f"cost: {cost_text(*cost)}; ledger entry {body['ledger']['entry']}{again}",
            f"protects {body['text']['protects']}",
            *self.notes,
        ]
        title = f"synthetic model of {self._content['table']}: {', '.join(self.columns)}"
        told = [line for text in lines for line in wrapped(text, "  ")]
        return "\n".join([*wrapped(title), *told])

    def _orders(self) -> str:
        orders = sorted({len(m.clique) for m in self._found.measured})
        return " and ".join(count_text(k, "column") for k in orders) or "nothing"

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        title, *lines = self.summary().splitlines()
        return html_lines(title, lines)

    @property
    def edges(self) -> dict[str, list[Any]]:
        """By column that is cut into bins or periods, where one ends and the next begins.

        ``dt.synth.compare(real, rows, bins=model.edges)`` compares the cells that the model knows.
        """
        found: dict[str, list[Any]] = {}
        for a in self.domain.attributes:
            if a.edges is not None:
                found[a.name] = [float(e) for e in a.edges[1:-1]]
            elif a.period is not None:
                found[a.name] = list(a.values or ())[1:]
        return {name: inner for name, inner in found.items() if inner}

    @property
    def spending(self) -> pl.DataFrame:
        """What of the budget each measured table got, in the order of measuring.

        Returns
        -------
        polars.DataFrame
            ``columns``, ``cells``, ``deviation`` of the noise of a cell, and ``share`` of rho. What
            is missing to 1 went into choosing tables, or was not spent.
        """
        import polars as pl

        rho, moved = Fraction(self._content["rho"]), Fraction(self._content["l2_squared"])
        found = self._found.measured
        return pl.DataFrame(
            {
                "columns": [list(self._names(m.clique)) for m in found],
                "cells": [m.values.size for m in found],
                "deviation": [m.deviation for m in found],
                "share": [float(moved / (2 * m.sigma2 * rho)) for m in found],
            }
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw where the budget went, table by table.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.tables._synth import draw_spending

        return draw_spending(self, path)

    def save(self, path: str | Path) -> Path:
        """Write it to a file, for `load`; all of it or nothing.

        The file holds noisy tables and the certificate, and nothing private.
        """
        text = json.dumps({"format": FORMAT, "model": self._content})
        target = Path(path)
        written(target, gzip.compress(text.encode("utf-8"), mtime=0))
        return target

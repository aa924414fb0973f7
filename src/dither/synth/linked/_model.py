"""What a linked synthesis gives: a model of a unit, its rows and theirs, and tables of them."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._files import written
from dither._format import cost_text, count_text, number_text, wrapped
from dither._notebook import html_lines
from dither.errors import ArgumentError
from dither.session._certificate import Certificate
from dither.synth.linked._levels import ReleasedLevel, SampledLevel
from dither.synth.model._result import FORMAT, LARGEST, SimulatedRows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LinkedModel"]


class LinkedModel:
    """Linked tables that were made under differential privacy; they may be handed out.

    Made by ``session.table("persons").synthesize_linked(...)``, or read by `load`. Whatever is
    asked of it costs nothing more.

    Parameters
    ----------
    content : mapping
        What was released, as the ledger and files keep it.
    replayed : datetime, optional
        When it was charged, where it is an earlier answer.

    Notes
    -----
    *Guarantee.* That of its release, for a whole unit with all of its rows in all tables:
    `certificate` says what it is.

    *What is right.* At each level the tables that were measured, up to noise: those of a row's
    columns with its parent's and with those of the row before. A row is taken to have nothing to do
    with rows further back, nor with its parent's parent, but through these.
    """

    def __init__(self, content: Mapping[str, Any], *, replayed: dt.datetime | None = None) -> None:
        self._content, self._charged = content, replayed

    @cached_property
    def _levels(self) -> list[ReleasedLevel]:
        return [ReleasedLevel(body) for body in self._content["levels"]]

    @property
    def tables(self) -> tuple[str, ...]:
        """Its tables, parents before their children."""
        return tuple(level["table"] for level in self._content["levels"])

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """By table the columns of its rows, keys aside."""
        return {
            level.name: tuple(level.domain.names[v] for v in level.own) for level in self._levels
        }

    @property
    def units(self) -> float:
        """How many units there are, by what was released."""
        return self._levels[0].fitted.total

    @property
    def measured(self) -> dict[str, list[tuple[str, ...]]]:
        """By table the tables of counts that were measured, in their order."""
        return {
            level.name: [
                tuple(level.domain.names[v] for v in m.clique) for m in level.measurements.measured
            ]
            for level in self._levels
        }

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

    def sample(
        self, units: int | None = None, *, seed: int | np.random.Generator | None = None
    ) -> dict[str, pl.DataFrame]:
        """Tables of the model, in the policy's own types, with keys that join.

        Parameters
        ----------
        units : int, optional
            How many; about as many as there are where left out.
        seed : int, optional
            The same one gives the same tables.

        Returns
        -------
        dict of str to polars.DataFrame
            By table. Units and keys are numbered from 1 on, as whole numbers or as texts of them;
            every key that refers to a row has one. Rows of a history are in the order of their
            time.
        """
        number = round(self.units) if units is None else check.whole("units", units)
        if number > LARGEST:
            raise ArgumentError(f"units must be at most {LARGEST:,}")
        rng = SimulatedRows.of(seed)
        drawn: list[SampledLevel] = []
        for place, level in enumerate(self._levels):
            if level.parent < 0:
                drawn.append(level.first(number, rng))
            else:
                above = self._levels[level.parent]
                drawn.append(level.below(drawn[level.parent], above.counts[place], rng))
        return {
            level.name: level.frame(rows, drawn[level.parent] if level.parent >= 0 else None, rng)
            for level, rows in zip(self._levels, drawn, strict=True)
        }

    def summary(self) -> str:
        """What it is, what it rests on, and what it cost, as text."""
        body = self._content["certificate"]
        loss = body["loss"]
        cost = [None if loss[k] is None else Fraction(loss[k]) for k in ("epsilon", "delta")]
        again = " (replayed: nothing charged now)" if self.replayed else ""
        lines = [f"units: about {number_text(round(self.units), 6)}, by noisy counts"]
        for level in self._levels:
            tables = count_text(len(level.measurements.measured), "table")
            most = f", at most {level.body['max_rows']} rows of a unit counted"
            nothing = ": noise alone" if level.body["uniform"] else ""
            lines.append(
                f"{level.name}: {tables} measured{most if level.parent >= 0 else ''}{nothing}"
            )
        lines += [
            f"cost: {cost_text(*cost)}; ledger entry {body['ledger']['entry']}{again}",
            f"protects {body['text']['protects']}",
            *self.notes,
        ]
        title = f"linked synthetic model of {', '.join(self.tables)}"
        told = [line for text in lines for line in wrapped(text, "  ")]
        return "\n".join([*wrapped(title), *told])

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        title, *lines = self.summary().splitlines()
        return html_lines(title, lines)

    def save(self, path: str | Path) -> Path:
        """Write it to a file, for `load`; all of it or nothing.

        The file holds noisy tables and the certificate, and nothing private.
        """
        text = json.dumps({"format": FORMAT, "model": self._content})
        target = Path(path)
        written(target, gzip.compress(text.encode("utf-8"), mtime=0))
        return target

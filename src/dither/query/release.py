"""What comes out: values with intervals, a summary, a certificate, a picture."""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither._format import cost_text, interval, level
from dither.query.answers import decode
from dither.query.certificate import Certificate
from dither.query.tables import html_table, key_text, paragraph, table
from dither.query.wording import UNACCOUNTED, limits_text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Release"]

LONGEST = 40
"""Rows that a summary shows."""


class Release:
    """A release: what may be published, and nothing else.

    Parameters
    ----------
    content : mapping
        As stored in the ledger.
    replayed : datetime, optional
        When the answer was charged, where it is an earlier one told again for nothing.
    """

    def __init__(self, content: Mapping[str, Any], *, replayed: dt.datetime | None = None) -> None:
        self._content = content
        self._charged = replayed

    @property
    def replayed(self) -> bool:
        """Whether it is an earlier answer, told again for nothing."""
        return self._charged is not None

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: the keys, then ``name``, ``name_lower``, ``name_upper`` per output.

        A count or a sum is the noisy one, without bias, so that sums over groups are right on
        average; noise can take it below 0, where its interval is not. Summaries and pictures show
        the nearest number that is possible.
        """
        import polars as pl

        kinds = {
            "text": pl.String,
            "integer": pl.Int64,
            "boolean": pl.Boolean,
            "date": pl.Date,
            "real": pl.Float64,
        }
        return pl.DataFrame(
            [
                pl.Series(c["name"], [decode(v, c["kind"]) for v in c["values"]], kinds[c["kind"]])
                for c in self._content["columns"]
            ]
        )

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""
        return list(self._content["keys"])

    @property
    def outputs(self) -> list[str]:
        """The names of the released aggregates."""
        return list(self._content["outputs"])

    @property
    def units(self) -> dict[str, str | None]:
        """The unit of measurement of each key and output, where the policy gives one."""
        return dict(self._content["units"])

    @property
    def notes(self) -> list[str]:
        """What a reader should know: of the plan, such as a rounding, and of a replay."""
        notes = list(self._content["notes"])
        if self._charged is not None:
            notes.append(
                f"replayed: the answer of {self._charged:%Y-%m-%d %H:%M} UTC, from the sources as "
                "they were then"
            )
        return notes

    @property
    def confidence(self) -> float:
        """The confidence of the intervals."""
        return float(self._content["confidence"])

    @property
    def certificate(self) -> Certificate:
        """What the release promises, and where the ledger has it."""
        return Certificate(self._content["certificate"])

    def summary(self) -> str:
        """The release as text: the answers, what they cost, and what the intervals leave out."""
        heads, rows = self._table()
        lines = table(heads, rows[:LONGEST], left=len(self.keys))
        if len(rows) > LONGEST:
            lines.append(f"... and {len(rows) - LONGEST:,} more rows")
        lines += paragraph(self._covers())
        for text in self._said():
            lines += paragraph(text)
        return "\n".join(lines)

    def _said(self) -> list[str]:
        """What stands below the answers: cost, who is protected, what intervals leave out."""
        body = self._content["certificate"]
        replayed = " (replayed: nothing charged now)" if self.replayed else ""
        return [
            f"cost: {cost_text(*self._loss)}; ledger entry {body['ledger']['entry']}{replayed}",
            f"protects {body['text']['protects']}",
            *([limits] if (limits := limits_text(body)) else []),
            UNACCOUNTED,
            *self.notes,
        ]

    def plot(
        self, path: str | None = None, output: str | None = None, *, title: str | None = None
    ) -> Any:
        """Draw the release; see ``dither.plots``.

        Parameters
        ----------
        path : str, optional
            Where to write a PNG, SVG or PDF.
        output : str, optional
            One output alone.
        title : str, optional
            What stands above the picture.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from dither.plots.release import plot_release

        body = self._content["certificate"]
        return plot_release(
            self.frame,
            keys=self.keys,
            outputs=[output] if output is not None else self.outputs,
            units=self.units,
            bars=list(self._content["counts"]),
            epsilon=self._loss[0],
            delta=self._loss[1],
            neighbours=body["text"]["protects"],
            confidence=self.confidence,
            title=title,
            path=path,
        )

    @property
    def _loss(self) -> tuple[Fraction | None, Fraction | None]:
        """What was charged, exact."""
        loss = self._content["certificate"]["loss"]
        epsilon, delta = (
            loss[k] if loss[k] is None else Fraction(loss[k]) for k in ("epsilon", "delta")
        )
        return epsilon, delta

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        heads, rows = self._table()
        left = len(self.keys)
        shown = html_table(heads, rows[:LONGEST], left=left)
        more = [f"... and {len(rows) - LONGEST:,} more rows"] if len(rows) > LONGEST else []
        said = "".join(f"<p>{html.escape(t)}</p>" for t in (*more, self._covers(), *self._said()))
        return f"<div>{shown}{said}</div>"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows: each key, and each answer with its interval."""
        frame = self.frame
        columns = [[key_text(v) for v in frame[key]] for key in self.keys]
        columns += [self._intervals(frame, name) for name in self.outputs]
        heads = [*self.keys, *(self._headed(name) for name in self.outputs)]
        return heads, [list(row) for row in zip(*columns, strict=True)]

    def _covers(self) -> str:
        return f"value ± half-width, or value [lower, upper], at {level(self.confidence)}"

    def _headed(self, name: str) -> str:
        unit = self.units.get(name)
        return f"{name} ({unit})" if unit else name

    def _intervals(self, frame: pl.DataFrame, name: str) -> list[str]:
        rows = zip(*(frame[c] for c in (name, f"{name}_lower", f"{name}_upper")), strict=True)
        return [interval(*row) for row in rows]

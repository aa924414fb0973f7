"""What stands in published tables, and in the table of certificates beside them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither._format import loss_text
from dither.errors import ArgumentError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["OWN", "Given", "certificate_row", "records", "rows_of", "whole_table"]

OWN = ("line", "certificate")
"""Columns that each table has beside those of its release."""

Given = str | int | float | bool | dt.date | dt.datetime
"""What one column may hold in every row."""


def rows_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """A released table of one row, as `dither.verify` reads it."""
    return {"rows": [{c["name"]: c["values"][0] for c in content["columns"]}]}


def certificate_row(
    certificate: Mapping[str, Any], name: str, form: Mapping[str, Any], answer: Any
) -> dict[str, Any]:
    """What stands in the table of certificates."""
    text = certificate.get("text") or {}
    return {
        "id": str(certificate["digest"]),
        "name": name,
        "published": dt.datetime.now(dt.UTC).date(),
        "question": str(text.get("sql", "")),
        "promise": _promised(certificate),
        "ledger": str(certificate["ledger"]["id"]),
        "entry": int(certificate["ledger"]["entry"]),
        "certificate": json.dumps(certificate, ensure_ascii=False),
        "form": json.dumps(dict(form)),
        "answer": None if answer is None else json.dumps(answer),
    }


def records(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of the table of certificates, in its types."""
    import polars as pl

    kinds = {"published": pl.Date, "entry": pl.Int64}
    schema = {name: kinds.get(name, pl.String) for name in rows[0]}
    return pl.DataFrame(list(rows), schema=schema)


def _promised(certificate: Mapping[str, Any]) -> str:
    """The promise in words."""
    text, loss = certificate.get("text") or {}, certificate["loss"]
    said = ("rho",) if loss.get("epsilon") is None else ("epsilon", "delta")
    known = {name: Fraction(loss[name]) for name in said if loss.get(name) is not None}
    parts = [f"{name} {loss_text(amount)}" for name, amount in known.items() if amount]
    whom = text.get("protects") or f"one {certificate['promise'].get('unit')}"
    blocks = f"; {text['blocks']}" if text.get("blocks") else ""
    return f"{', '.join(parts) or 'public'}; protects {whom}{blocks}"


def whole_table(frame: pl.DataFrame, identity: str, beside: Mapping[str, Given]) -> pl.DataFrame:
    """With its lines' numbers and its certificate's id, in types that each place has."""
    import polars as pl

    names = ["line", *beside, *frame.columns, "certificate"]
    folded = [one.casefold() for one in names]
    if len(set(folded)) < len(folded):
        twice = next(one for one in names if folded.count(one.casefold()) > 1)
        own = f"; {', '.join(OWN)} are the table's own" if twice.casefold() in OWN else ""
        raise ArgumentError(
            f"two columns would be called {twice[:40]!r}, where capitals make no difference{own}: "
            "give the question's output or key another name (AS)"
        )
    if any(not one or "\x00" in one for one in names):
        raise ArgumentError("a column without a name, or with NUL in it, cannot be published")
    for one in beside.values():
        if not isinstance(one, Given):
            raise ArgumentError("beside must hold texts, numbers, days and moments")
    return pl.DataFrame(
        [
            pl.Series("line", range(1, frame.height + 1), pl.Int64),
            *(_typed(pl.Series(n, [v] * frame.height)) for n, v in beside.items()),
            *map(_typed, frame.get_columns()),
            pl.Series("certificate", [identity] * frame.height, pl.String),
        ]
    )


def _typed(column: pl.Series) -> pl.Series:
    import polars as pl

    kind = column.dtype
    if kind in (pl.String, pl.Int64, pl.Float64, pl.Boolean, pl.Date):
        return column
    if isinstance(kind, pl.Datetime):
        utc = column if kind.time_zone is None else column.dt.convert_time_zone("UTC")
        return utc.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    if kind.is_integer() and kind not in (pl.UInt64, pl.Int128):
        return column.cast(pl.Int64)
    if kind.is_numeric():
        return column.cast(pl.Float64)
    if kind == pl.Object:
        return pl.Series(column.name, [None if v is None else str(v) for v in column], pl.String)
    return column.cast(pl.String)

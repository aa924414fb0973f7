"""What a question was answered, whoever sees it: its table, its picture, its files."""

from __future__ import annotations

import importlib.util
import io
import json
import tempfile
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._depth import deep
from dither._format import display_text, interval
from dither.errors import ArgumentError, DitherError
from dither.service._desk import Desk
from dither.service._endpoints import NotFoundError
from dither.service.work._jobs import ReleaseJob
from dither.session._recipe import QuestionRecipe
from dither.session._request import AnsweredRequest

if TYPE_CHECKING:
    import polars as pl

    from dither.query._release import Release

__all__ = ["FORMS", "JobAnswer", "file_of"]

MOST_ROWS = 500
"""Rows that a page shows; files have all."""

LONGEST = 60_000
"""Characters of an answer that is a text."""

TABLES = ("sql", "agg", "within", "having", "order_by", "limit")
"""The last calls of questions whose answers need nothing else to be read."""

FORMS = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "png": "image/png",
    "svg": "image/svg+xml",
    "certificate": "application/json",
    "json": "application/json",
}


class JobAnswer:
    """The answer of a job that is done.

    Parameters
    ----------
    desk : Desk
    job : ReleaseJob

    Raises
    ------
    NotFoundError
        The ledger has none.
    """

    def __init__(self, desk: Desk, job: ReleaseJob) -> None:
        from dither.query._release import Release

        found = desk.answer(job)
        if found is None:
            raise NotFoundError("this question has no answer")
        self.job = job
        self.content: Mapping[str, Any] = found["content"]
        self.time = datetime.fromisoformat(found["time"])
        self.result = self._read(desk)
        self.is_table = isinstance(self.result, Release)

    def __repr__(self) -> str:
        return f"<answer of {self.job.id}>"

    def _read(self, desk: Desk) -> Any:
        """What the release gave; None where it cannot be read any more."""
        from dither.query._release import Release

        try:
            with deep():
                question = QuestionRecipe.from_list(self.job.draft.ask).made(desk.session)
                read = getattr(question, "_handed_over", None) or question._read
                return read(AnsweredRequest(self.content))
        except (DitherError, AttributeError, ArithmeticError, LookupError, TypeError, ValueError):
            # The policy has changed since. What was released is still there.
            asked = self.job.draft.ask[-1][0]
            return Release(self.content) if asked in TABLES else None

    @property
    def certificate(self) -> Mapping[str, Any]:
        """What the release promises."""
        found: Mapping[str, Any] = self.content["certificate"]
        return found

    # --- as a table -------------------------------------------------------------------------------

    def table(self) -> dict[str, Any] | None:
        """Heads and rows of a table of keys, values and intervals; None where it is none."""

        if not self.is_table:
            return None
        release: Release = self.result
        frame, keys = release.frame, len(release.keys)
        heads = [{"name": n, "unit": release.units.get(n), "key": True} for n in release.keys]
        heads += [{"name": n, "unit": release.units.get(n), "key": False} for n in release.outputs]
        _, shown = release.shown()
        rows = []
        for at, cells in enumerate(shown[:MOST_ROWS]):
            row: list[dict[str, str]] = [{"text": text} for text in cells[:keys]]
            row += [self._cell(frame, name, at) for name in release.outputs]
            rows.append(row)
        return {"heads": heads, "rows": rows, "more": max(len(shown) - MOST_ROWS, 0)}

    def _cell(self, frame: pl.DataFrame, name: str, at: int) -> dict[str, str]:
        """A value, and the ends of its interval beside it."""
        value, low, high = (frame[f"{name}{end}"][at] for end in ("", "_lower", "_upper"))
        if not frame[name].dtype.is_numeric():
            return {"text": display_text(value), "ends": "" if low == high == value else "?"}
        possible = (self.content.get("ranges") or {}).get(name)
        text = interval(value, low, high, possible)
        if " ± " in text:
            shown, half = text.split(" ± ")
            return {"text": shown, "ends": f"{_moved(shown, half, -1)} – {_moved(shown, half, 1)}"}
        shown, _, ends = text.partition(" [")
        return {"text": shown, "ends": ends.rstrip("]").replace(", ", " – ")}

    def tables(self) -> list[dict[str, Any]]:
        """Of another kind of answer: its tables, as those that are published have them."""
        from dither.service.publish._forms import made_of

        if self.is_table or self.result is None:
            return []
        try:
            made = made_of(self.result).tables
        except (ArgumentError, ImportError):
            return []
        return [
            {
                "name": name,
                "heads": [
                    {"name": c, "number": frame[c].dtype.is_numeric()} for c in frame.columns
                ],
                "rows": [[_shown(v) for v in row] for row in frame.head(MOST_ROWS).iter_rows()],
                "more": max(frame.height - MOST_ROWS, 0),
            }
            for name, frame in made.items()
        ]

    def text(self) -> str | None:
        """Of another kind of answer: what it says of itself."""
        if self.is_table:
            return None
        if self.result is None:
            plain = {k: v for k, v in self.content.items() if k != "certificate"}
            return json.dumps(plain, ensure_ascii=False, indent=1)[:LONGEST]
        return str(self.result)[:LONGEST]

    def remarks(self) -> list[str]:
        """What stands below a table: whom it protects, and what intervals leave out.

        Its price, which comes first in a summary, stands above it here.
        """
        return self.result._remarks()[1:] if self.is_table else []

    # --- as files ---------------------------------------------------------------------------------

    @property
    def frame(self) -> pl.DataFrame | None:
        """The one table that a file holds."""
        from dither.service.publish._forms import made_of

        if self.is_table:
            found: pl.DataFrame = self.result.frame
            return found
        try:
            made = {} if self.result is None else made_of(self.result).tables
        except (ArgumentError, ImportError):
            return None
        return next(iter(made.values()), None)

    def forms(self) -> list[str]:
        """The files that there are of it."""
        found = ["csv", "parquet"] if self.frame is not None else []
        drawn = (
            self.is_table and bool(self.result._numbers) and self.content["columns"][0]["values"]
        )
        if drawn and importlib.util.find_spec("matplotlib") is not None:
            found += ["png", "svg"]
        return [*found, "certificate", *([] if self.is_table else ["json"])]


def file_of(answer: JobAnswer, form: str) -> bytes:
    """An answer as a file.

    Raises
    ------
    NotFoundError
        There is none of this form.
    """
    if form not in answer.forms():
        raise NotFoundError("this answer has no such file")
    out = io.BytesIO()
    if form == "certificate":
        return json.dumps(answer.certificate, ensure_ascii=False, indent=1).encode()
    if form == "json":
        return json.dumps(answer.content, ensure_ascii=False, indent=1).encode()
    if form in ("png", "svg"):
        with tempfile.TemporaryDirectory(prefix="dither-picture-") as folder:
            path = Path(folder) / f"answer.{form}"
            answer.result.plot(str(path))
            return path.read_bytes()
    frame = answer.frame
    assert frame is not None
    if form == "csv":
        frame.write_csv(out)
    else:
        frame.write_parquet(out)
    return out.getvalue()


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return (
        f"{value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else display_text(value)
    )


def _moved(value: str, half: str, sign: int) -> str:
    """An end of an interval whose middle and half-width are texts of as many decimals."""
    found = Decimal(value.replace(",", "")) + sign * Decimal(half.replace(",", ""))
    return f"{found:,f}"

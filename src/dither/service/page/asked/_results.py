"""What a question was answered, whoever sees it: its table, its picture, its files."""

from __future__ import annotations

import importlib.util
import io
import json
import tempfile
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._depth import deep
from dither._format import display_text, interval
from dither.errors import ArgumentError, DitherError
from dither.service._desk import Desk
from dither.service._endpoints import NotFoundError
from dither.service.page.asked._tables import MOST_ROWS, ends_of, read_tables, remarks_of
from dither.service.work._jobs import ReleaseJob
from dither.session._recipe import QuestionRecipe
from dither.session._request import AnsweredRequest

if TYPE_CHECKING:
    import polars as pl

    from dither.query._release import Release
    from dither.service.page.asked._figures import PlottedPicture

__all__ = ["FORMS", "JobAnswer", "file_of"]

LONGEST = 60_000
"""Characters of an answer that is a text."""

TABLES = ("sql", "agg", "within", "having", "order_by", "limit")
"""The last calls of questions whose answers need nothing else to be read."""

FORMS = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "png": "image/png",
    "svg": "image/svg+xml",
    "model": "application/octet-stream",
    "certificate": "application/json",
    "json": "application/json",
}

TABULAR = ("csv", "parquet")


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
        return {
            "heads": heads,
            "rows": rows,
            "more": max(len(shown) - MOST_ROWS, 0),
            "valued": bool(release._numbers),
        }

    def _cell(self, frame: pl.DataFrame, name: str, at: int) -> dict[str, str]:
        """A value, and the ends of its interval beside it."""
        value, low, high = (frame[f"{name}{end}"][at] for end in ("", "_lower", "_upper"))
        if not frame[name].dtype.is_numeric():
            return {"text": display_text(value), "ends": "" if low == high == value else "?"}
        possible = (self.content.get("ranges") or {}).get(name)
        return ends_of(interval(value, low, high, possible))

    def tables(self) -> list[dict[str, Any]]:
        """Of another kind of answer: its tables, with each value beside its interval."""
        if self.is_table or self.result is None:
            return []
        try:
            return read_tables(self.result)
        except (ArgumentError, ImportError):
            return []

    def text(self) -> str | None:
        """Of another kind of answer: what it says of itself, where no table and remark does."""
        if self.is_table or remarks_of(self.result):
            return None
        if self.result is None:
            plain = {k: v for k, v in self.content.items() if k != "certificate"}
            return json.dumps(plain, ensure_ascii=False, indent=1)[:LONGEST]
        return str(self.result)[:LONGEST]

    def remarks(self) -> list[str]:
        """What stands below a table: whom it protects, and what intervals leave out.

        Its price, which comes first in a summary, stands above it here.
        """
        return self.result._remarks()[1:] if self.is_table else remarks_of(self.result)

    def picture(self, told: str) -> PlottedPicture | None:
        """Of another kind of answer: the picture that it draws of itself."""
        if self.is_table or not self.drawn:
            return None
        from dither.service.page.asked._figures import plotted

        return plotted(self.result, told)

    # --- as files ---------------------------------------------------------------------------------

    @cached_property
    def frames(self) -> list[pl.DataFrame]:
        """The tables that files hold, one each."""
        from dither.service.publish._forms import made_of

        if self.is_table:
            return [self.result.frame]
        try:
            made = {} if self.result is None else made_of(self.result).tables
        except (ArgumentError, ImportError):
            return []
        return list(made.values())

    @property
    def drawn(self) -> bool:
        """Whether there is a picture of it."""
        if importlib.util.find_spec("matplotlib") is None or self.result is None:
            return False
        if self.is_table:
            return bool(self.result._numbers) and bool(self.content["columns"][0]["values"])
        simulated = getattr(self.result, "simulated", True)
        return hasattr(self.result, "plot") and simulated is not None

    @property
    def sampled(self) -> bool:
        """Whether its intervals cover who was sampled, too."""
        kinds = {one.__name__ for one in type(self.result).__mro__}
        return bool(kinds & {"PrivateEstimate", "LearnedModel"})

    @property
    def model(self) -> str | None:
        """How a model's file ends; None of what is no model."""
        kinds = {one.__name__ for one in type(self.result).__mro__}
        endings = {"LearnedModel": "json", "SyntheticModel": "json.gz"}
        return next((end for kind, end in endings.items() if kind in kinds), None)

    def forms(self) -> list[str]:
        """The files that there are of it."""
        found = ["csv", "parquet"] if self.frames else []
        found += ["png", "svg"] if self.drawn else []
        found += ["model"] if self.model else []
        return [*found, "certificate", *([] if self.is_table else ["json"])]


def file_of(answer: JobAnswer, form: str, table: int = 1) -> bytes:
    """An answer as a file.

    Parameters
    ----------
    answer : JobAnswer
    form : str
        One of `FORMS`.
    table : int
        Which of its tables, where it has several.

    Raises
    ------
    NotFoundError
        There is none of this form.
    """
    known = range(1, len(answer.frames) + 1)
    if form not in answer.forms() or (form in TABULAR and table not in known):
        raise NotFoundError("this answer has no such file")
    out = io.BytesIO()
    if form == "certificate":
        return json.dumps(answer.certificate, ensure_ascii=False, indent=1).encode()
    if form == "json":
        return json.dumps(answer.content, ensure_ascii=False, indent=1).encode()
    if form in ("png", "svg", "model"):
        with tempfile.TemporaryDirectory(prefix="dither-answer-") as folder:
            path = Path(folder) / f"answer.{form}"
            (answer.result.save if form == "model" else answer.result.plot)(str(path))
            return path.read_bytes()
    frame = answer.frames[table - 1]
    if form == "csv":
        frame.write_csv(out)
    else:
        frame.write_parquet(out)
    return out.getvalue()

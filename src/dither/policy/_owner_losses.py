"""What is lost before anything is cut: values that cannot be read, or match no key; lines; files.

For the data's owner alone, as all of ``dither.policy._owner_report``: exact, by column and by file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dither.engines import Engine, Lost
from dither.errors import DitherError
from dither.plan.schema import ColumnFacts, Kind, Table
from dither.policy._policy import DeclaredTable

__all__ = ["losses"]

UNREADABLE, NO_KEY, LINES = "unreadable", "no key", "lines"
"""What a row of the owner's table says of a column: what it means stands in ``Bias``."""


def losses(declared: DeclaredTable, table: Table, engine: Engine) -> Iterator[dict[str, Any]]:
    """Of each declared column the share that cannot be read, and that matches no key; of files of
    lines the share that is left out."""
    wanted = [facts for name in declared.columns if (facts := table.columns.get(name)) is not None]
    wanted = [facts for facts in wanted if facts.name != table.unit]
    stored = engine.describe(declared.name)
    try:
        found = engine.lost(declared.name, wanted) if wanted else []
    except DitherError:
        found = []
    by_column: dict[str, list[Lost]] = {facts.name: [] for facts in wanted}
    for one in found:
        by_column[one.column].append(one)
    for facts in wanted:
        yield from _of_column(declared.name, facts, stored[facts.name], by_column[facts.name])
    yield from _of_lines(declared.name, engine)


def _of_column(
    table: str, facts: ColumnFacts, stored: Kind | None, found: list[Lost]
) -> Iterator[dict[str, Any]]:
    keyed = facts.values is not None or facts.edges is not None
    for cut in (UNREADABLE, NO_KEY):
        numbers = [(one.file, _number(one, cut), one.said) for one in found]
        lost, said = sum(n for _, n, _ in numbers), sum(n for *_, n in numbers)
        # Of what is stored as its own kind there is hardly ever anything to tell.
        expected = keyed if cut == NO_KEY else stored is Kind.TEXT and facts.kind is not Kind.TEXT
        if said and (lost or expected):
            yield _row(table, cut, facts.name, lost / said, lost)
            for file, number, of in numbers:
                if number and file is not None:
                    yield _row(table, cut, facts.name, number / of, number, file)


def _number(one: Lost, cut: str) -> int:
    return one.unread if cut == UNREADABLE else one.unlisted


def _of_lines(table: str, engine: Engine) -> Iterator[dict[str, Any]]:
    """Lines that are not UTF-8 or too long: no column says that they are missing."""
    found = engine.left_out(table)
    lost, lines = (sum(pair[i] for pair in found.values()) for i in (0, 1))
    if lost:
        yield _row(table, LINES, "not UTF-8, or too long", lost / max(lines, lost), lost)
        for file, (number, of) in found.items():
            if number and len(found) > 1:
                yield _row(
                    table, LINES, "not UTF-8, or too long", number / max(of, number), number, file
                )


def _row(
    table: str, cut: str, of: str, share: float, number: int, file: str | None = None
) -> dict[str, Any]:
    return {
        "table": table,
        "cut": cut,
        "of": of,
        "file": file,
        "number": number,
        "share": share,
        "below": None,
        "above": None,
        "moved": None,
    }

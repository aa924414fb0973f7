"""How a policy says that texts are written, as SQL: what ``plan.readings.TextReading.plain`` means.

Every form here is total: a text that is not written so is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from dither.engines.writer.forms import binary, call, case, is_not_null
from dither.plan import expressions as ex
from dither.plan.readings import MINUS, TextReading, month_numbers, padded
from dither.plan.schema import Kind

if TYPE_CHECKING:
    from dither.engines.writer.dialect import Dialect

__all__ = ["MARK", "held", "marked", "plain"]

MARK = "\x02"
"""Before the name of a column, its test for what cannot be read. No source has a name with it."""


def marked(node: ex.Unreadable) -> ex.Column:
    """The column under which rows hold whether another one cannot be read."""
    return ex.Column(node.column.table, MARK + node.column.name)


def plain(
    dialect: Dialect, text: exp.Expression, reading: TextReading, kind: Kind
) -> exp.Expression:
    """A text in the form of its kind that every engine reads alike, or NULL."""
    bare = _bare(dialect, text, reading, kind)
    shapes = reading.shapes(kind)
    if not shapes:
        found = text if kind is not Kind.TEXT and reading.trim is None else bare
    elif kind.numeric:
        found = _first([dialect.shaped(bare.copy(), shape) for shape in shapes])
        changes = [(c, "") for c in reading.separators]
        changes += [(reading.point, ".")] if reading.point != "." else []
        found = _replaced(dialect, found, [*changes, (MINUS, "-")])
    else:
        spelled = dialect.lower(bare) if reading.names_months else bare
        found = _first([dialect.shaped(spelled.copy(), shape) for shape in shapes])
        if reading.names_months:
            found = _replaced(dialect, found, month_numbers())
        found = dialect.shaped(found, padded(timed=kind is Kind.TIMESTAMP))
    if not reading.null_values:
        return found
    return case((_is_said(dialect, bare, reading), found))


def held(
    dialect: Dialect, text: exp.Expression, reading: TextReading | None, kind: Kind
) -> exp.Expression:
    """Whether a text says anything, as ``TextReading.holds`` has it; false of NULL."""
    reading = reading or TextReading()
    bare = _bare(dialect, text, reading, kind)
    tests = [is_not_null(text.copy())]
    if kind is not Kind.TEXT:
        tests.append(binary("<>", bare.copy(), dialect.text("")))
    if reading.null_values:
        tests.append(_is_said(dialect, bare, reading))
    return case(
        (reduce(lambda a, b: binary("AND", a, b), tests), exp.true()), otherwise=exp.false()
    )


def _bare(
    dialect: Dialect, text: exp.Expression, reading: TextReading, kind: Kind
) -> exp.Expression:
    ends = reading.ends(kind)
    return text.copy() if ends is None else dialect.trimmed(text.copy(), "both", ends)


def _is_said(dialect: Dialect, bare: exp.Expression, reading: TextReading) -> exp.Expression:
    listed = [dialect.text(value) for value in reading.null_values]
    return exp.Paren(this=exp.Not(this=exp.In(this=bare.copy(), expressions=listed)))


def _first(found: Sequence[exp.Expression]) -> exp.Expression:
    return found[0] if len(found) == 1 else call("COALESCE", *found)


def _replaced(
    dialect: Dialect, text: exp.Expression, changes: Sequence[tuple[str, str]]
) -> exp.Expression:
    return reduce(lambda made, change: dialect.replaced(made, *change), changes, text)

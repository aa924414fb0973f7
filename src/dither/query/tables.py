"""Small tables and wrapped lines, as text for a terminal."""

from __future__ import annotations

import html
from collections.abc import Sequence
from textwrap import wrap

__all__ = ["WIDTH", "html_table", "key_text", "paragraph", "table"]

WIDTH = 79
LONGEST_KEY = 60


def key_text(value: object) -> str:
    """A key of a release for a terminal: in one line, not long, and nothing that steers it.

    Discovered keys are what somebody typed; the frame holds them as they are.

    Examples
    --------
    >>> key_text(None), key_text("two\\nlines"), len(key_text("x" * 300))
    ('NULL', 'two\\\\nlines', 60)
    """
    if value is None:
        return "NULL"
    text = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value)
    )
    return text if len(text) <= LONGEST_KEY else text[: LONGEST_KEY - 1] + "…"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 0) -> list[str]:
    """A table as lines: the first ``left`` columns flush left, the others flush right.

    Examples
    --------
    >>> print("\\n".join(table(["region", "n"], [["north", "41 ± 3"]], left=1)))
    region       n
    ──────  ──────
    north   41 ± 3
    """
    spans = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        placed = (
            f"{c:<{w}}" if i < left else f"{c:>{w}}"
            for i, (c, w) in enumerate(zip(cells, spans, strict=True))
        )
        return "  ".join(placed).rstrip()

    return [line(heads), "  ".join("─" * w for w in spans), *map(line, rows)]


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 0) -> str:
    """A table for a notebook; its first ``left`` columns flush left, the others flush right.

    Examples
    --------
    >>> html_table(["n"], [])
    '<table><tr><th style="text-align:right">n</th></tr></table>'
    """

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ("left" if i < left else "right" for i in range(len(cells)))
        placed = (
            f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(placed)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table>{line(heads, 'th')}{body}</table>"


def paragraph(text: str, indent: str = "", *, first: str | None = None) -> list[str]:
    """A text wrapped to ``WIDTH``, every line but the first behind ``indent``.

    Examples
    --------
    >>> paragraph("short")
    ['short']
    """
    head = indent if first is None else first
    return wrap(text, WIDTH, initial_indent=head, subsequent_indent=indent) or [head]

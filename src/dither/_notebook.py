"""How results show themselves in a notebook: as their text, as tables, as pictures."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["Shown", "html_lines", "html_table"]


class Shown:
    """What is a text for people, in a notebook as well: there it is that text, line by line."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def html_lines(title: str, lines: Iterable[str]) -> str:
    """A title, and lines below it.

    Examples
    --------
    >>> html_lines("a < b", ["so"])
    '<div><b>a &lt; b</b><p>so</p></div>'
    """
    below = "<br>".join(html.escape(line.strip()) for line in lines)
    return f"<div><b>{html.escape(title)}</b><p>{below}</p></div>"


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

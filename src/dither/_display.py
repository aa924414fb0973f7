"""How results are drawn: small tables, wrapped lines, and the tree of an explanation."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dither._format import wrapped

__all__ = [
    "ALL",
    "Explanation",
    "Node",
    "table",
]


ALL = "(all)"
"""What is shown for a key that is not in the set of a group, to tell it from the key NULL."""


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


@dataclass(frozen=True, slots=True)
class Node:
    """One line of an explanation: what it is, its facts by name, and what it rests on."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    children: tuple[Node, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """The node as plain data."""
        body: dict[str, Any] = {
            "title": self.title,
            "facts": {name: text for name, text in self.facts if name},
            "children": [child.to_dict() for child in self.children],
        }
        notes = [text for name, text in self.facts if not name]
        return body | {"notes": notes} if notes else body


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan explained. ``str()`` draws the tree for a terminal; notebooks show HTML."""

    root: Node

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain data."""
        return self.root.to_dict()

    def __str__(self) -> str:
        lines = [self.root.title, *_facts_text(self.root, "│  " if self.root.children else "   ")]
        _draw(self.root, "", lines)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        style = (
            "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;line-height:1.45;"
            "max-width:60em"
        )
        return f'<div class="dither-plan" style="{style}">{_html(self.root, top=True)}</div>'


def _facts_text(node: Node, indent: str) -> list[str]:
    width = max((len(name) for name, _ in node.facts), default=0)
    lines = []
    for name, text in node.facts:
        blank = indent + " " * (width + 2 if width else 0)
        lines += wrapped(text, blank, first=f"{indent}{name:<{width}}  " if width else blank)
    return lines


def _draw(node: Node, indent: str, lines: list[str]) -> None:
    for i, child in enumerate(node.children):
        last = i == len(node.children) - 1
        lines.append(f"{indent}{'└─ ' if last else '├─ '}{child.title}")
        below = indent + ("   " if last else "│  ")
        bar = "│  " if child.children else "   "
        lines.extend(_facts_text(child, below + bar))
        _draw(child, below, lines)


def _html(node: Node, *, top: bool = False) -> str:
    rows = "".join(_html_row(name, text) for name, text in node.facts)
    # Notebooks style tables of their own accord; these are set in the tree's own type.
    style = "border:0;border-collapse:collapse;margin:0 0 .4em 1.2em;font:inherit"
    table = f'<table style="{style}">{rows}</table>' if rows else ""
    inner = "".join(_html(child) for child in node.children)
    block = f'<div style="margin-left:1.2em">{inner}</div>' if inner else ""
    title = html.escape(node.title)
    if not (table or block):
        return f'<div style="margin-left:1.05em">{title}</div>'
    weight = 700 if top else 600
    return (
        f'<details open><summary style="font-weight:{weight}">{title}</summary>'
        f"{table}{block}</details>"
    )


def _html_row(name: str, text: str) -> str:
    cell = "border:0;background:none;text-align:left;vertical-align:top"
    if not name:
        return f'<tr><td colspan="2" style="{cell};padding:0">{html.escape(text)}</td></tr>'
    return (
        f'<tr><td style="{cell};padding:0 1em 0 0;opacity:.65;white-space:nowrap">'
        f'{html.escape(name)}</td><td style="{cell};padding:0">{html.escape(text)}</td></tr>'
    )

"""An explanation as a tree of titles and facts, drawn for a terminal or a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from dither.query.tables import paragraph

__all__ = ["Explanation", "Node"]


@dataclass(frozen=True, slots=True)
class Node:
    """One line of an explanation: what it is, its facts by name, and what it rests on."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    children: tuple[Node, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """The node as plain data."""
        return {
            "title": self.title,
            "facts": dict(self.facts),
            "children": [child.to_dict() for child in self.children],
        }


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
        lines += paragraph(text, blank, first=f"{indent}{name:<{width}}  " if width else blank)
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
    facts = "".join(
        f'<tr><td style="color:#666;padding:0 1em 0 0;vertical-align:top;text-align:left">'
        f"{html.escape(name)}</td>"
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for name, text in node.facts
    )
    table = f'<table style="border:0;margin:0 0 .3em 1.2em">{facts}</table>' if facts else ""
    inner = "".join(_html(child) for child in node.children)
    block = f'<div style="margin-left:1.2em">{inner}</div>' if inner else ""
    title = html.escape(node.title)
    if not (table or block):
        return f'<div style="margin-left:1.05em">{title}</div>'
    weight = "font-weight:600" if top else ""
    return f'<details open><summary style="{weight}">{title}</summary>{table}{block}</details>'

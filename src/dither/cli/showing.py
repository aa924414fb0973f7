"""What commands print: tables with intervals, plans as trees, notes that fit the window.

On a terminal there is colour and the window's width; in a pipe plain text, whose tables are as
wide as they need.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dither.query.explain import Explanation, Node
    from dither.query.release import Release

__all__ = ["console", "interval", "new_table", "print_notes", "print_plan", "print_release"]

PIPE = 200
"""Width of tables in a pipe, where no window limits them."""

READABLE = 80


def console() -> Console:
    """Standard output, as a terminal or as a pipe."""
    from rich.console import Console

    out = Console(highlight=False, markup=False, emoji=False)
    if not out.is_terminal:
        out = Console(highlight=False, markup=False, emoji=False, width=PIPE, no_color=True)
    return out


def new_table() -> Table:
    """An empty table in the house's look."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        header_style="bold",
    )


def print_release(release: Release) -> None:
    """The answers, each with its interval, then what they cost and what the intervals leave out."""
    out = console()
    table, frame = new_table(), release.frame
    for name in release.keys:
        table.add_column(name, style="cyan", overflow="fold")
    for name in release.outputs:
        unit = release.units.get(name)
        table.add_column(f"{name} ({unit})" if unit else name, justify="right", overflow="fold")
    for row in frame.iter_rows(named=True):
        keys = ["NULL" if row[name] is None else str(row[name]) for name in release.keys]
        answers = [
            interval(row[name], row[f"{name}_lower"], row[f"{name}_upper"])
            for name in release.outputs
        ]
        table.add_row(*keys, *answers)
    out.print(table)
    if frame.height == 0:
        out.print("No group was large enough to be shown.")
    out.print()
    print_notes(release.summary().partition("\neach as ")[2], first="each as ")


def print_notes(text: str, *, first: str = "") -> None:
    """Lines of text, wrapped to the window; tables within are left as they are."""
    out = console()
    width = min(out.width, READABLE)
    for line in (first + text).splitlines():
        tabular = "  " in line.strip() or "─" in line
        pieces = [line] if tabular else textwrap.wrap(line, width, subsequent_indent="  ") or [""]
        for piece in pieces:
            out.print(piece, soft_wrap=True)


def print_plan(explanation: Explanation) -> None:
    """A plan as a tree; on a terminal its facts are wrapped to the window."""
    from rich.tree import Tree

    out = console()
    if not out.is_terminal:
        out.print(str(explanation), soft_wrap=True)
        return
    tree = Tree(_label(explanation.root, top=True), guide_style="dim")
    _grow(tree, explanation.root)
    out.print(tree)


def interval(value: Any, lower: Any, upper: Any) -> str:
    """An answer with its interval, to the digits that the interval leaves meaningful.

    Examples
    --------
    >>> interval(1234, 1225, 1243), interval(2.6, 0.0, 5.8), interval(None, None, None)
    ('1,234 ± 9', '2.6 [0.0, 5.8]', 'unknown')
    """
    if value is None:
        return "unknown"
    below, above = value - lower, upper - value
    if not (math.isfinite(below) and math.isfinite(above)):
        return f"{_say(value, 2)} [{_say(lower, 2)}, {_say(upper, 2)}]"
    digits = _digits((below + above) / 2)
    if abs(below - above) <= 0.02 * (below + above):
        return f"{_say(value, digits)} ± {_say(above, digits)}"
    return f"{_say(value, digits)} [{_say(lower, digits)}, {_say(upper, digits)}]"


def _digits(half: float) -> int:
    """Decimals that show two digits of a half-width."""
    return min(12, max(0, 1 - math.floor(math.log10(half)))) if half > 0 else 0


def _say(value: float, digits: int) -> str:
    if isinstance(value, int) or not math.isfinite(value):
        return f"{value:,}"
    return f"{value:,.{digits}f}"


def _label(node: Node, *, top: bool = False) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    title = Text(node.title, style="bold" if top else "")
    if not node.facts:
        return title
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    for name, text in node.facts:
        facts.add_row(name, text)
    return Group(title, facts)


def _grow(tree: Any, node: Node) -> None:
    for child in node.children:
        _grow(tree.add(_label(child)), child)

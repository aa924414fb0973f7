"""What commands print: tables with intervals, plans as trees, paragraphs that fit the window.

On a terminal there is colour and the window's width; in a pipe plain text, whose tables are as
wide as they need.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dither.query.preview import Preview
    from dither.query.release import Release
    from dither.query.tree import Explanation, Node

__all__ = [
    "console",
    "interval",
    "new_table",
    "print_paragraphs",
    "print_plan",
    "print_preview",
    "print_release",
]

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
    from dither.query.tables import key_text

    out = console()
    table, frame = new_table(), release.frame
    for name in release.keys:
        table.add_column(name, style="cyan", overflow="fold")
    for name in release.outputs:
        unit = release.units.get(name)
        table.add_column(f"{name} ({unit})" if unit else name, justify="right", overflow="fold")
    for row in frame.iter_rows(named=True):
        keys = [key_text(row[name]) for name in release.keys]
        answers = [
            interval(row[name], row[f"{name}_lower"], row[f"{name}_upper"])
            for name in release.outputs
        ]
        table.add_row(*keys, *answers)
    out.print(table)
    if frame.height == 0:
        out.print("No group was large enough to be shown.")
    out.print()
    body = release.certificate.to_dict()
    entry = f"ledger entry {body['ledger']['entry']}"
    if release.replayed:
        entry += ", replayed: nothing is charged now"
    print_paragraphs(
        f"± and [lower, upper] are {100 * release.confidence:g} % intervals.",
        f"Cost: {cost(body['loss'])}; {entry}.",
        f"Protects {body['text']['protects']}.",
        *map(sentence, (body["text"]["unaccounted"], *release.notes)),
    )


def print_preview(preview: Preview) -> None:
    """Half-widths by group size, and what they leave out."""
    from dither.query.wording import UNACCOUNTED

    out = console()
    table = new_table()
    for name in ("rows in a group", *(f"{name} ±" for name in preview.widths)):
        table.add_column(name, justify="right", overflow="fold")
    if preview.missed is not None:
        table.add_column("key missed", justify="right")
    for i, size in enumerate(preview.sizes):
        cells = [_brief(widths[i]) for widths in preview.widths.values()]
        if preview.missed is not None:
            cells.append(_odds(preview.missed[i]))
        table.add_row(f"{size:,}", *cells)
    out.print(table)
    out.print()
    delta = f", δ = {float(preview.delta):.3g}" if preview.delta else ""
    print_paragraphs(
        f"Half-widths of {100 * preview.confidence:g} % intervals at "
        f"ε = {float(preview.epsilon):g}{delta}. Nothing is spent.",
        sentence(UNACCOUNTED),
    )


def print_paragraphs(*texts: str) -> None:
    """Text wrapped to the window, never wider than reads well."""
    out = console()
    for text in texts:
        indent = "  " if text.startswith("- ") else ""
        for line in textwrap.wrap(text, min(out.width, READABLE), subsequent_indent=indent) or [""]:
            out.print(line, soft_wrap=True)


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


def sentence(text: str) -> str:
    """A remark with its capital and its full stop.

    Examples
    --------
    >>> sentence("intervals are about noise")
    'Intervals are about noise.'
    """
    return text[:1].upper() + text[1:].rstrip(".") + "."


def cost(loss: Mapping[str, str | None]) -> str:
    """What a certificate says was lost, rounded up to four digits.

    Examples
    --------
    >>> cost({"epsilon": "1/3", "delta": "0"}), cost({"epsilon": "1/2", "delta": "1/1000000"})
    ('ε = 0.3334', 'ε = 0.5, δ = 0.000001')
    """
    up = Context(prec=4, rounding=ROUND_CEILING)
    parts = []
    for letter, text in (("ε", loss["epsilon"]), ("δ", loss["delta"])):
        exact = None if text is None else Fraction(text)
        if exact is None:
            parts.append(f"{letter} = ∞")
        elif exact or letter == "ε":
            rounded = up.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize()
            shown = f"{rounded:f}" if rounded > Decimal("1e-7") else f"{rounded:e}"
            parts.append(f"{letter} = {shown}")
    return ", ".join(parts)


def _brief(width: float) -> str:
    return f"{width:,.0f}" if width >= 1000 else f"{width:.3g}"


def _odds(value: float) -> str:
    return "never" if value < 1e-9 else f"{value:.2g}" if value < 0.995 else "always"


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

"""What commands print, how they show that they work, and how they leave.

On a terminal there is colour and the window's width, and a spinner for what takes longer than two
seconds; in a pipe plain text, whose tables are as wide as they need.
"""

from __future__ import annotations

import math
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._format import cost_text, level, percent, sentence

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dither._display import Explanation, Node
    from dither.lab.attack import Verdict
    from dither.query._preview import Preview
    from dither.query._release import Release

__all__ = [
    "INCONCLUSIVE",
    "PATIENCE",
    "READABLE",
    "VIOLATED",
    "console",
    "leave_by",
    "new_table",
    "print_paragraphs",
    "print_plan",
    "print_preview",
    "print_release",
    "print_verdicts",
    "say_saved",
    "waiting",
]

VIOLATED, INCONCLUSIVE = 1, 3
"""Exit codes of audits and attacks (`dither.cli._endings` has all)."""

PATIENCE = 2.0
"""Seconds of silence before a spinner."""

REDRAWN = 0.25
"""Seconds between two looks at how much is done."""

PIPE = 200
"""Width of tables in a pipe, where no window limits them."""

READABLE = 80
"""Width of a paragraph at the most."""


def console(pipe: int = PIPE) -> Console:
    """Standard output, as a terminal or as a pipe of so many columns."""
    from rich.console import Console

    out = Console(highlight=False, markup=False, emoji=False)
    if not out.is_terminal:
        out = Console(highlight=False, markup=False, emoji=False, width=pipe, no_color=True)
    return out


def new_table() -> Table:
    """An empty table in the look that all have."""
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
    from dither.query._explain import charged_text, limits_text

    out = console()
    table = new_table()
    heads, rows = release.shown()
    for i, name in enumerate(heads):
        if i < len(release.keys):
            table.add_column(name, style="cyan", overflow="fold")
        else:
            table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    out.print(table)
    if not rows:
        out.print("No group was large enough to be shown.")
    out.print()
    body = release.certificate.to_dict()
    entry = f"ledger entry {body['ledger']['entry']}"
    if release.replayed:
        entry += ", replayed: nothing is charged now"
    print_paragraphs(
        f"± and [lower, upper] are {level(release.confidence)} intervals.",
        f"Cost: {charged_text(body)}; {entry}.",
        f"Protects {body['text']['protects']}.",
        *([sentence(limits)] if (limits := limits_text(body)) else []),
        *map(sentence, (body["text"]["unaccounted"], *release.notes)),
    )


def print_preview(preview: Preview) -> None:
    """Half-widths by group size, and what they leave out."""
    from dither.query._explain import UNACCOUNTED

    out = console()
    table = new_table()
    heads, rows = preview.shown()
    for name in heads:
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    out.print(table)
    out.print()
    print_paragraphs(
        f"Half-widths of {level(preview.confidence)} intervals at "
        f"{cost_text(preview.epsilon, preview.delta)}. Nothing is spent.",
        sentence(UNACCOUNTED),
        *([sentence("; ".join(preview.blocks))] if preview.blocks else []),
    )


def print_paragraphs(*texts: str) -> None:
    """Text wrapped to the window, never wider than reads well."""
    out = console()
    for text in texts:
        indent = "  " if text.startswith("- ") else ""
        for line in textwrap.wrap(text, min(out.width, READABLE), subsequent_indent=indent) or [""]:
            out.print(line, soft_wrap=True)


def say_saved(path: Path) -> None:
    """Name a file that was written, on standard error, so that a pipe holds answers alone."""
    click.echo(f"wrote {path}", err=True)


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


@contextmanager
def waiting(what: str) -> Iterator[Callable[[float], None] | None]:
    """Show a spinner and the time elapsed on standard error, where that is a terminal.

    There it gives a function, which may be called with the share that is done; elsewhere ``None``.
    """
    if not sys.stderr.isatty():
        yield None
        return
    over, shares = threading.Event(), [0.0]
    thread = threading.Thread(target=_spin, args=(what, over, shares), daemon=True)
    thread.start()
    try:
        yield shares.append
    finally:
        over.set()
        thread.join()


def _spin(what: str, over: threading.Event, shares: Sequence[float]) -> None:
    if over.wait(PATIENCE):
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        (task,) = progress.tasks
        # The clock has run since before the spinner showed.
        task.start_time = (task.start_time or 0.0) - PATIENCE
        while not over.wait(REDRAWN):
            if shares[-1]:
                progress.update(task.id, description=f"{what}, {shares[-1]:.0%}")


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Attacks as a table: how much was guessed right, and how much may be."""
    shown = new_table()
    theory = any(v.predicted is not None or v.promised is not None for v in verdicts)
    shown.add_column("release", overflow="fold")
    for name in ("guessed right", "interval", *(("theory",) if theory else ()), "allowed"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict", overflow="fold")
    for v in verdicts:
        ends = f"{percent(v.low, turn=math.floor)} to {percent(v.high, turn=math.ceil)}"
        cells = [v.release, percent(v.success), ends]
        if v.predicted is not None:
            cells.append(percent(v.predicted))
        elif theory:
            promised = v.promised
            cells.append("" if promised is None else f"≥ {percent(promised, turn=math.floor)}")
        bound = percent(v.bound, turn=math.ceil) if v.bounded else "all"
        shown.add_row(*cells, bound, str(v.outcome))
    console().print(shown)


def leave_by(verdicts: Iterable[Verdict]) -> None:
    """Leave with 1 where a promise is broken, with 3 where one could not be judged."""
    from dither.lab.attack import Outcome

    found = list(verdicts)
    if any(v.outcome is Outcome.VIOLATED for v in found):
        sys.exit(VIOLATED)
    if any(v.bounded and v.outcome is not Outcome.CONSISTENT for v in found):
        sys.exit(INCONCLUSIVE)

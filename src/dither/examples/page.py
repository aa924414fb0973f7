"""One HTML page that needs nothing else: text, tables, bars, and pictures inside it."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dither._format import percent

__all__ = ["Attempt", "Chapter", "Page"]

STYLE = """
:root { --ink: #222; --muted: #6b6b6b; --hair: #e3e3e3; --bad: #d55e00; --good: #009e73;
  --blue: #0072b2; --ground: #fff; --soft: #f6f7f8; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.55;
  font: 17px/1.55 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 860px; margin: 0 auto; padding: 48px 24px 72px; }
h1 { font-size: 34px; line-height: 1.2; margin: 0 0 12px; letter-spacing: -0.01em; }
h2 { font-size: 24px; line-height: 1.25; margin: 0 0 4px; }
h3 { font-size: 17px; margin: 30px 0 6px; }
p { margin: 10px 0; max-width: 68ch; }
.lead { font-size: 19px; color: #3a3a3a; }
section { border-top: 1px solid var(--hair); margin-top: 44px; padding-top: 34px; }
.number { color: var(--blue); font-weight: 700; font-size: 14px; letter-spacing: .06em;
  text-transform: uppercase; }
figure { margin: 20px 0; }
figure img { width: 100%; height: auto; display: block; border: 1px solid var(--hair);
  border-radius: 6px; }
.attempts { list-style: none; margin: 18px 0; padding: 0; }
.attempts li { display: grid; grid-template-columns: minmax(0, 15.5em) 1fr 5.6em; gap: 4px 14px;
  align-items: center; padding: 9px 0; border-bottom: 1px solid var(--hair); font-size: 15px; }
.track { position: relative; height: 16px; background: var(--soft); border-radius: 3px; }
.fill { position: absolute; inset: 0 auto 0 0; border-radius: 3px; }
.mark { position: absolute; top: -3px; bottom: -3px; width: 2px; background: var(--ink); }
.most { position: absolute; top: -4px; bottom: -4px; border-left: 2px dashed var(--blue); }
.figure { text-align: right; font-variant-numeric: tabular-nums; font-weight: 600; }
.note { grid-column: 1 / -1; color: var(--muted); font-size: 14px; }
.bad { background: var(--bad); } .good { background: var(--good); }
.tag { display: inline-block; font-size: 14px; font-weight: 600; padding: 2px 10px;
  border-radius: 99px; color: #fff; }
table { border-collapse: collapse; font-size: 15px; margin: 16px 0; width: 100%; }
th, td { text-align: left; padding: 7px 12px 7px 0; border-bottom: 1px solid var(--hair);
  font-variant-numeric: tabular-nums; vertical-align: top; }
th { color: var(--muted); font-weight: 600; }
td.n, th.n { text-align: right; }
.scroll { overflow-x: auto; }
code { font: 14px/1.5 ui-monospace, Menlo, Consolas, monospace; background: var(--soft);
  padding: 1px 5px; border-radius: 3px; }
pre { background: var(--soft); padding: 12px 14px; border-radius: 6px; overflow-x: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; }
pre code { padding: 0; background: none; }
footer { color: var(--muted); font-size: 14px; border-top: 1px solid var(--hair);
  margin-top: 48px; padding-top: 16px; }
@media (max-width: 620px) { .attempts li { grid-template-columns: 1fr 5em; }
  .track { grid-column: 1 / -1; grid-row: 2; } body { font-size: 16px; } }
@media print { section { break-inside: avoid-page; } }
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attack on one release, for a bar.

    Parameters
    ----------
    name : str
    success : float
        In [0, 1].
    blindly : float
        In [0, 1]: a mark on the bar.
    works : bool
        Whether it gave people away.
    note : str
    allowed : float, optional
        In [0, 1]: what no attack exceeds; another mark on the bar.
    """

    name: str
    success: float
    blindly: float
    works: bool
    note: str = ""
    allowed: float | None = None


@dataclass(slots=True)
class Chapter:
    """A step of the tour: a title, what was done, what came of it.

    Parameters
    ----------
    title : str
    verdict : str
        In a word or two.
    broken : bool
    """

    title: str
    verdict: str
    broken: bool
    attempts: list[Attempt] = field(default_factory=list)
    body: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """A paragraph; what stands in backticks is code."""
        parts = [
            f"<code>{html.escape(part)}</code>" if i % 2 else html.escape(part)
            for i, part in enumerate(text.split("`"))
        ]
        self.body.append(f"<p>{''.join(parts)}</p>")

    def head(self, text: str) -> None:
        """A heading inside the step."""
        self.body.append(f"<h3>{html.escape(text)}</h3>")

    def code(self, text: str) -> None:
        """A question or a line of Python."""
        self.body.append(f"<pre><code>{html.escape(text)}</code></pre>")

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> None:
        """A table whose first columns are texts and the others numbers."""

        def cells(tag: str, row: Sequence[Any]) -> str:
            return "".join(
                f"<{tag}{'' if i < left else ' class=n'}>{html.escape(str(c))}</{tag}>"
                for i, c in enumerate(row)
            )

        lines = [f"<tr>{cells('td', row)}</tr>" for row in rows]
        self.body.append(
            f"<div class=scroll><table><thead><tr>{cells('th', heads)}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table></div>"
        )

    def draw(self, result: Any, about: str) -> None:
        """The picture of a result, kept in the page."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "picture.png"
            draw = result if callable(result) else result.plot
            draw(path)
            data = base64.b64encode(path.read_bytes()).decode("ascii")
        self.body.append(
            f'<figure><img alt="{html.escape(about, quote=True)}" '
            f'src="data:image/png;base64,{data}"></figure>'
        )

    def try_out(self, *attempts: Attempt) -> None:
        """Attacks, as bars, here and in the list at the top."""
        self.attempts += attempts
        self.body.append(_bars(attempts))


@dataclass(slots=True)
class Page:
    """The whole page.

    Parameters
    ----------
    title, lead : str
    chapters : list of Chapter
    foot : str
    """

    title: str
    lead: str
    chapters: list[Chapter]
    foot: str

    def html(self) -> str:
        """The page as text."""
        sections = "".join(_section(i, c) for i, c in enumerate(self.chapters, start=1))
        rows = "".join(
            f"<tr><td><a href='#step{i}'>{html.escape(c.title)}</a></td><td>{_tag(c)}</td>"
            f"<td>{html.escape(_summary(c))}</td></tr>"
            for i, c in enumerate(self.chapters, start=1)
        )
        return (
            "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
            '<meta name=viewport content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{STYLE}</style></head><body><main>"
            f"<h1>{html.escape(self.title)}</h1><p class=lead>{html.escape(self.lead)}</p>"
            "<div class=scroll><table><thead><tr><th>Step</th><th>Outcome</th><th>The best attack"
            f"</th></tr></thead><tbody>{rows}</tbody></table></div>{sections}"
            f"<footer>{html.escape(self.foot)}</footer></main></body></html>\n"
        )


def _section(number: int, chapter: Chapter) -> str:
    return (
        f"<section id=step{number}><div class=number>Step {number}</div>"
        f"<h2>{html.escape(chapter.title)}</h2><p>{_tag(chapter)}</p>"
        f"{''.join(chapter.body)}</section>"
    )


def _tag(chapter: Chapter) -> str:
    kind = "bad" if chapter.broken else "good"
    return f"<span class='tag {kind}'>{html.escape(chapter.verdict)}</span>"


def _summary(chapter: Chapter) -> str:
    working = [a for a in chapter.attempts if a.works] or chapter.attempts
    best = max(working, key=lambda a: a.success - a.blindly)
    blindly = f"blindly {percent(best.blindly)}"
    if best.allowed is None:
        return f"{best.name}: {percent(best.success)}, {blindly}"
    # What is seen scatters around its mean, and may lie above the bound of that mean.
    most = percent(best.allowed, turn=math.ceil)
    return f"{best.name}: no attack exceeds {most} on average, {blindly}"


def _bars(attempts: Sequence[Attempt]) -> str:
    items = []
    for a in attempts:
        kind = "bad" if a.works else "good"
        note = f"<span class=note>{html.escape(a.note)}</span>" if a.note else ""
        items.append(
            f"<li><span>{html.escape(a.name)}</span><span class=track>"
            f"<span class='fill {kind}' style='width:{100 * a.success:.1f}%'></span>"
            f"<span class=mark style='left:{100 * a.blindly:.1f}%' title='guessing blindly'></span>"
            f"{_most(a)}</span><span class=figure>{percent(a.success)}</span>{note}</li>"
        )
    return f"<ul class=attempts>{''.join(items)}</ul>"


def _most(attempt: Attempt) -> str:
    if attempt.allowed is None:
        return ""
    at = f"{100 * attempt.allowed:.1f}"
    return f"<span class=most style='left:{at}%' title='no attack exceeds this on average'></span>"

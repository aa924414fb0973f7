"""What happens to an answer, for whoever gave it: the sheet that a policy's owner hands out."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dither.policy._policy import Policy
from dither.service.page._odds import promised
from dither.service.page._texts import PageWords, words
from dither.session._opened import DATASET, accounts_of

__all__ = ["SheetPart", "promises", "sheet", "sheet_html", "sheet_markdown"]

WEAK = 96
"""Of a hundred guesses: from here on the sheet says that the protection is weak."""


@dataclass(frozen=True, slots=True)
class SheetPart:
    """A paragraph: ``kind`` is an element of HTML, or one with a class of it."""

    kind: str
    text: str


def promises(policy: Policy) -> list[dict[str, Any]]:
    """What a policy promises each of its units, as `dither.service.page._odds.promised` says."""
    found = []
    for promise, accounts in accounts_of(policy).items():
        budget = next(caps for name, caps in accounts.items() if name.startswith(f"{DATASET}:"))
        found.append(promised(promise, budget))  # type: ignore[arg-type]
    return found


def sheet(policy: Policy, language: str, name: str) -> list[SheetPart]:
    """The sheet's parts, from what a policy declares and from nothing else.

    Parameters
    ----------
    policy : Policy
    language : str
        One of `LANGUAGES`.
    name : str
        What the policy is called.
    """
    return [SheetPart(kind, text) for kind, text in _parts(words(language), policy, name)]


def _parts(say: PageWords, policy: Policy, name: str) -> Iterator[tuple[str, str]]:
    yield "h1", say("participants.title")
    yield "p.lead", say("participants.lead")
    yield "h2", say("participants.seen")
    yield "p", say("participants.seen_about")
    yield "h2", say("participants.blurred")
    yield "p", say("participants.blurred_about")
    yield "h2", say("participants.much")
    for promise in promises(policy):
        yield "p", say("participants.unit", unit=promise["unit"])
        for row in promise["rows"]:
            yield "li", _row(say, row, promise["every"])
        if promise["endless"]:
            yield "p", say("participants.endless")
        if promise["rows"][-1]["answer"] >= WEAK:
            yield "p.warning", say("participants.weak")
    yield "p", say("participants.blind")
    yield "h2", say("participants.not")
    for key in ("participants.not_many", "participants.not_told", "participants.not_theft"):
        yield "li", say(key)
    yield "h2", say("participants.ask")
    yield "p.blank", say("participants.who")
    yield "p.small", say("participants.made", name=name)


def _row(say: PageWords, row: dict[str, Any], every: str | None) -> str:
    """How often a guess is right, for so many blocks or for all time."""
    if row["blocks"]:
        span = say(f"participants.every_{every}", number=row["blocks"])
    else:
        span = say("participants.for_ever")
    if row["there"] is None:
        there = say("participants.there_public")
    elif row["there"] >= 100:
        there = say("participants.there_all")
    else:
        there = say("participants.there", number=row["there"])
    if row["answer"] >= 100:
        answer = say("participants.answer_all")
    else:
        answer = say("participants.answer", number=row["answer"])
    between = "" if say.code == "zh" else " "
    return f"{span}{say('participants.colon')}{there}{between}{answer}"


def sheet_markdown(parts: list[SheetPart]) -> str:
    """The sheet as Markdown; what a policy says stands in it as text.

    >>> print(sheet_markdown([SheetPart("h1", "A *title*"), SheetPart("p", "Text.")]))
    # A \\*title\\*
    <BLANKLINE>
    Text.
    <BLANKLINE>
    """
    marks = {"h1": "# ", "h2": "## ", "li": "- "}
    found, before = "", ""
    for part in parts:
        kind = part.kind.partition(".")[0]
        between = "" if not found or kind == before == "li" else "\n"
        line = marks.get(kind, "") + _plain(part.text)
        line += " " + "_" * 40 if part.kind == "p.blank" else ""
        found, before = f"{found}{between}{line}\n", kind
    return found


def _plain(text: str) -> str:
    """Text of which nothing is read as Markdown or as HTML."""
    shown = "".join(f"\\{c}" if c in "\\`*_[]<>#|" else c for c in text)
    return " ".join(shown.split())


STYLE = (
    "body{max-width:46rem;margin:1.5rem auto;padding:0 1rem;font:1.1rem/1.65 system-ui,sans-serif}"
    "h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:1.6rem}li{margin-bottom:.4rem}"
    ".lead{font-size:1.2rem}.small{font-size:.9rem}.warning{border-left:.3rem solid;padding-left:"
    ".7rem}.blank::after{content:'';display:block;border-bottom:1px solid;height:2rem}"
    "@media print{body{margin:0;max-width:none;font-size:12pt}}"
)


def sheet_html(parts: list[SheetPart], language: str) -> str:
    """The sheet as one page of HTML, with its style and without scripts, to print."""
    body, listed = [], False
    for part in parts:
        kind, _, class_ = part.kind.partition(".")
        if (kind == "li") != listed:
            listed = not listed
            body.append("<ul>" if listed else "</ul>")
        marked = f'<{kind} class="{class_}">' if class_ else f"<{kind}>"
        body.append(f"{marked}{html.escape(part.text)}</{kind}>")
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(parts[0].text)}</title><style>{STYLE}</style>"
    )
    text = "\n".join(body)
    begins = f'<!doctype html>\n<html lang="{language}">\n<head>{head}</head>\n'
    return f"{begins}<body>\n{text}\n</body>\n</html>\n"

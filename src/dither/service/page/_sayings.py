"""Sentences of the library in a language of the page: whole sentences by templates with holes.

The library speaks English. What a page shows of it is looked up here, at the page's edge, in the
table ``library`` of a language's file: an English sentence with named holes, and the same in that
language. A hole is filled with what stands in the sentence:

- ``{n}``, ``{n2}`` hold a number, and nothing else;
- ``{who}``, a name in small letters, holds a name, a value or SQL, and is shown as it is;
- ``{said}`` and others of `FREE` hold any words, which are shown as they are as well;
- ``{WHY}``, a name in capitals, holds a sentence or a part of one, which is put into words in turn.

English prose is no name: a template in whose holes some would be left does not match.

What no template matches stays in English, and is marked as English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from unicodedata import east_asian_width

from markupsafe import Markup, escape

__all__ = ["HOLE", "PageSayings", "SayingTemplate"]

HOLE = re.compile(r"\{([A-Za-z]+\d*)\}")

NUMBER = re.compile(r"[<>≥−-]? ?(?:\d(?:[\d,.]*\d)?(?:e[+-]?\d+)?(?:/\d+)?|∞)(?: ?%)?")

SPLIT = re.compile(r"(; |(?<![.\d])\. (?=\S)|\n[ \t]*)")
"""Where a sentence or a part of one ends."""

HEAD = re.compile(r"[^\n:]{1,60}")
"""What stands before a colon: the name of an argument, or the place in a question."""

FREE = ("said", "account", "tables")
"""Holes of what somebody wrote or what is listed, of accounts, and of several tables."""

PROSE = re.compile(r"\b[a-z]{2,} [a-z]+ [a-z]{2,}\b")

CELLS = re.compile(r"( {2,})")
"""What stands between the columns of a table that is drawn as text."""

WORD = re.compile(r"[a-z]{2,}")

QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")

DEEPEST = 6

LONGEST = 4_000
"""Characters; what is longer is no sentence."""

MOST_PARTS = 400

RUN = 6
"""Parts that one template matches at most."""

CUT = "cut into cells by what is declared of"

OWNED = ("outputs", "groups", "one group of all rows", "one row for each", "predicts", "measures")
"""Parts of an explanation whose facts go by names that people chose."""

ENDED = re.compile(r"[,;:]$|(?<!\.)\.$")
"""Where a hole would take the end of its sentence; what is left out ends in three dots."""

TABLE = re.compile(r" {2}|[─\n]|, at ε = ")
"""Where a hole would run on into the table below it."""

ENGLISH = Markup('<span lang="en">{}</span>')

KNOWN = 4096
"""Sentences that are remembered."""


class SayingTemplate:
    """A sentence with holes, and its words in another language.

    Parameters
    ----------
    english : str
    other : str

    Examples
    --------
    >>> template = SayingTemplate("{n} rows of {who}", "{who} 的 {n} 行")
    >>> template.holes("1,200 rows of visits")
    {'n': '1,200', 'who': 'visits'}
    >>> template.holes("many rows of visits") is None
    True
    """

    def __init__(self, english: str, other: str) -> None:
        self.english, self.other = english, other
        parts = HOLE.split(english)
        self.literals, self.names = parts[::2], parts[1::2]
        self.weight = sum(map(len, self.literals))

    def __repr__(self) -> str:
        return f"<template {self.english!r}>"

    def holes(self, text: str) -> dict[str, str] | None:
        """What stands in each hole; None where the text is another sentence.

        Each literal is looked for once, from left to right, so that no text takes long.
        """
        first, *middle, last = self.literals
        at, end = len(first), len(text) - len(last)
        if not (text.startswith(first) and text.endswith(last)) or end < at:
            return None
        found: dict[str, str] = {}
        for name, literal in zip(self.names, [*middle, None], strict=True):
            if literal is None:
                after, at_next = end, end
            else:
                after = text.find(literal, at + 1, end)
                at_next = after + len(literal)
            held = text[at:after] if after > at else ""
            if not held or not _fits(name, held):
                return None
            if found.setdefault(name, held) != held:
                return None
            at = at_next
        return found


def _width(text: str) -> int:
    """Columns that a text takes: characters of Chinese take two."""
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def _fits(name: str, held: str) -> bool:
    if _of_number(name):
        return NUMBER.fullmatch(held) is not None
    if name.isupper():
        return True
    if name not in FREE and (_opened(held) or ENDED.search(held)):
        return False
    # What people wrote is no table, and ends before the price of what they asked.
    return TABLE.search(held) is None and (name in FREE or not _is_prose(held))


def _opened(text: str) -> int:
    """How many brackets of a text are not closed in it: then a sentence was cut in two."""
    shown = QUOTED.sub("''", text)
    return sum(shown.count(a) - shown.count(b) for a, b in ("()", "[]"))


def _is_prose(text: str) -> bool:
    """Whether words of English stand in it outside of what is quoted."""
    return PROSE.search(QUOTED.sub("''", text)) is not None


def _of_number(name: str) -> bool:
    return name[0] == "n" and (len(name) == 1 or name[1:].isdigit())


class PageSayings:
    """What the library says, in the words of a language.

    Parameters
    ----------
    templates : mapping of str to str
        The same sentence in both languages, by that in English; empty for English itself.
    labels : mapping of str to str
        Short names of facts and heads of tables, which stand alone.

    Examples
    --------
    >>> say = PageSayings({"one {who}": "一名 {who}", "{WHO}; neighbours {RULE}": "{WHO}；{RULE}"})
    >>> say.plain("one patient; neighbours <b>")
    '一名 patient；<b>'
    >>> say.told("one patient; neighbours <b>")
    Markup('一名 patient；&lt;b&gt;')
    >>> say.told("what nobody wrote")
    Markup('<span lang="en">what nobody wrote</span>')
    """

    def __init__(
        self, templates: Mapping[str, str], labels: Mapping[str, str] | None = None
    ) -> None:
        self.labels = dict(labels or {})
        known = [SayingTemplate(*one) for one in templates.items()]
        self.templates = [one for one in known if one.names]
        self._whole = {one.english: one for one in known if not one.names}
        self._begun: dict[str, list[SayingTemplate]] = {}
        self._ended: dict[str, list[SayingTemplate]] = {}
        self._open: list[SayingTemplate] = []
        for one in self.templates:
            first, _, more = one.literals[0].partition(" ")
            _, space, last = one.literals[-1].rpartition(" ")
            if first and (more or one.literals[0].endswith(" ")):
                self._begun.setdefault(first, []).append(one)
            elif space:
                self._ended.setdefault(last, []).append(one)
            else:
                self._open.append(one)
        self._remembered = lru_cache(KNOWN)(self._found)

    def __repr__(self) -> str:
        return f"<{len(self.templates) + len(self._whole)} sentences>"

    def of(self, text: str, depth: int = 0) -> str | None:
        """A whole sentence or part of one in this language; None where nobody wrote it."""
        if depth > DEEPEST or not text or len(text) > LONGEST:
            return None
        return self._remembered(text, depth)

    def _found(self, text: str, depth: int) -> str | None:
        found = self._matched(text, depth)
        if found is None and text[0].isupper():
            found = self._matched(text[0].lower() + text[1:], depth)
        if found is None and len(text) > 1 and text.endswith("."):
            found = self.of(text[:-1], depth + 1)
            return None if found is None else f"{found}。"
        if found is None and ": " in text:
            head, _, said = text.partition(": ")
            rest = self.of(said, depth + 1) if HEAD.fullmatch(head) else None
            name = self.of(head, depth + 1) or (None if _is_prose(head) else head)
            found = None if rest is None or name is None else f"{name}：{rest}"
        return found

    def best(self, text: str) -> tuple[SayingTemplate, dict[str, str]] | None:
        """The template of a text that says most itself, and what stands in its holes."""
        if text in self._whole:
            return self._whole[text], {}
        candidates = [
            *self._begun.get(text.partition(" ")[0], ()),
            *self._ended.get(text.rpartition(" ")[2], ()),
            *self._open,
        ]
        best: tuple[SayingTemplate, dict[str, str]] | None = None
        for one in candidates:
            if best is None or one.weight > best[0].weight:
                holes = one.holes(text)
                best = best if holes is None else (one, holes)
        return best

    def _matched(self, text: str, depth: int) -> str | None:
        found = self.best(text)
        if found is None:
            return None
        template, held = found
        filled = {}
        for name, text in held.items():
            # Chinese writes a percentage without a space.
            filled[name] = text.replace(" %", "%") if _of_number(name) else text
            if name.isupper():
                parts = self.parts(text, depth + 1)
                if any(not known and _is_prose(one) for one, known in parts):
                    return None
                filled[name] = "".join(one for one, _ in parts)
        return HOLE.sub(lambda hole: filled[hole[1]], template.other)

    def parts(self, text: str, depth: int = 0) -> list[tuple[str, bool]]:
        """The text in parts, each with whether it is in this language.

        Of parts that follow one another as many as one sentence has are taken together.
        """
        whole = self.of(text, depth)
        if whole is not None:
            return [(whole, True)]
        if depth > DEEPEST:
            return [(text, False)]
        pieces = SPLIT.split(text)
        if not 1 < len(pieces) <= 2 * MOST_PARTS:
            return [(text, False)]
        return list(self._runs(pieces, depth))

    def _runs(self, pieces: list[str], depth: int) -> Iterator[tuple[str, bool]]:
        at = 0
        while at < len(pieces):
            for to in range(min(at + 2 * RUN - 1, len(pieces)), at, -2):
                run = "".join(" " if one.startswith("\n") else one for one in pieces[at:to])
                found = self.of(run.strip(), depth + 1)
                if found is not None or to == at + 1:
                    break
            if found is None:
                found = self._cells(pieces[at], depth)
            known = found is not None
            yield found if found is not None else pieces[at], known
            if to < len(pieces):
                between = pieces[to]
                ends = {"; ": "；", ". ": "。"}.get(between, between)
                yield (ends if known else between), known
            at = to + 1

    def _cells(self, line: str, depth: int) -> str | None:
        """The heads of a table that is drawn as text, each ending where it ended."""
        cells = CELLS.split(line.strip())
        if len(cells) == 1 or any(_is_prose(one) and self.label(one) == one for one in cells):
            return None
        made, end = "", 0
        for at, cell in enumerate(cells[::2]):
            end += len(cell) + (len(cells[2 * at - 1]) if at else 0)
            said = self.label(cell)
            gap = max(end - _width(made) - _width(said), 2) if at else 0
            made += " " * gap + said
        return made

    def plain(self, text: str) -> str:
        """The text as it is shown where nothing can be marked, as in a label."""
        return "".join(one for one, _ in self.parts(text)) if self.templates else text

    def told(self, text: str) -> Markup:
        """The text as HTML: what stays in English is marked as English."""
        if not self.templates:
            return escape(text)
        made = [
            escape(one) if known or not WORD.search(one) else ENGLISH.format(one)
            for one, known in self.parts(str(text))
        ]
        return Markup("").join(made)

    def tree(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """An explanation, as `Explanation.to_dict` gives it, in this language.

        Names of columns and outputs, by which some of its facts go, stay as they are.
        """
        title = str(node["title"])
        owned = title.startswith(OWNED) or CUT in title
        facts = [
            (
                name if owned and " " not in name else self.label(name),
                escape(text) if name == "account" else self.told(text),
            )
            for name, text in node["facts"].items()
        ]
        facts += [("", self.told(text)) for text in node.get("notes", ())]
        children = [self.tree(child) for child in node["children"]]
        return {"title": self.told(title), "facts": facts, "children": children}

    def label(self, name: str) -> str:
        """The name of a fact, or the head of a column that the library names."""
        return self.labels.get(name) or self.of(name) or name

"""The glossary: terms that are used, each once, in alphabetical order, with links that hold."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PIECES = re.split(r"^## (.*)\n", (DOCS / "glossary.md").read_text(), flags=re.MULTILINE)[1:]
TERMS = dict(zip(PIECES[::2], PIECES[1::2], strict=True))
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def _names(term: str) -> list[str]:
    """A term, and what stands in brackets after it."""
    return [name for name in re.split(r" \(|, |\)", term) if name]


def _letters(text: str) -> str:
    """Small letters, without accents and with hyphens as spaces."""
    plain = unicodedata.normalize("NFKD", text.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", " ", plain)


@cache
def _anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, code blocks left out."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def _unused(terms: list[str], text: str) -> list[str]:
    """The terms none of whose names is in the text."""
    words = _letters(text)
    return [
        term
        for term in terms
        if not any(
            name and re.search(rf"\b{re.escape(name)}s?\b", words)
            for name in map(_letters, _names(term))
        )
    ]


def test_terms_are_unique_and_in_order() -> None:
    """Nobody reads an entry that stands where it is not looked for."""
    listed = PIECES[::2]
    assert len(listed) == len(set(map(_letters, listed))) >= 80
    assert listed == sorted(listed, key=lambda term: _letters(term.replace("-", " ")))


def test_terms_are_used() -> None:
    """A term that no page and no docstring uses explains nothing."""
    pages = [path for path in DOCS.rglob("*.md") if path.name != "glossary.md"]
    left = _unused(list(TERMS), "\n".join(page.read_text() for page in pages))
    code = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert _unused(left, code) == []
    assert _unused(["A term that nobody uses (AIM)"], "a claim") != []


def test_an_entry_is_one_sentence_with_a_link() -> None:
    """It ends as a sentence does, is one, and leads to pages and headings that are there."""
    wrong = []
    for term, said in TERMS.items():
        text = " ".join(said.split())
        links = LINK.findall(text)
        if not text.endswith(".") or re.search(r"[.!?] [A-Z]", text) or not links:
            wrong.append(term)
        for page, anchor in links:
            there = (DOCS / page).is_file()
            if not there or (anchor and anchor not in _anchors(DOCS / page)):
                wrong.append(f"{term}: {page}#{anchor}")
    assert wrong == []

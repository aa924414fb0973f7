"""The index in which the site's pages are searched: a file, so that no server is needed.

Words are kept as people may write them: in small letters, with their hyphens and without, Greek
letters by name. `static/search.js` does the same with what is asked, and adds up the weights.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from names import plain
from packages import PUBLIC
from sections import section_of

GREEK = {"ε": "epsilon", "δ": "delta", "ρ": "rho", "σ": "sigma", "μ": "mu", "α": "alpha"}
COMPOUND = re.compile(r"[^\W_]+(?:[-_.'’][^\W_]+)*")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
HEADING = re.compile(r"^(#+) (.*)$", re.M)
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"!?\[([^\]]*)\]\(([^)]*)\)")

TITLE, TREATED, HEAD, BODY = 24.0, 60.0, 5.0, 0.6
"""What a word weighs in a title (divided among its words), as a term of the glossary that is
treated on a page (divided, too), in a heading, and each time in the text."""


@dataclass
class Entry:
    """One thing that can be found: a page, a public name, a term."""

    address: str
    title: str
    section: str
    summary: str
    weights: Counter[str] = field(default_factory=Counter)

    def add(self, text: str, weight: float) -> None:
        """Let each word of the text weigh this much more."""
        for word, share in words(text):
            self.weights[word] += weight * share


def joined(word: str) -> str:
    """A word in small letters, without accents, hyphens and the s of many, in one spelling."""
    letters = "".join(GREEK.get(c, c) for c in word.lower())
    letters = unicodedata.normalize("NFKD", letters)
    letters = "".join(c for c in letters if c.isalnum())
    letters = letters.replace("iz", "is").replace("our", "or")  # as the British and Americans write
    return letters[:-1] if len(letters) > 3 and re.search("[^s]s$", letters) else letters


def words(text: str) -> Iterator[tuple[str, float]]:
    """Each word, and of one with a hyphen or capitals inside also its parts, at half the weight."""
    for whole in COMPOUND.findall(text):
        yield joined(whole), 1.0
        parts = [p for piece in re.split(r"[-_.'’]", whole) for p in CAMEL.split(piece)]
        if len(parts) > 1:
            yield from ((joined(part), 0.5) for part in parts)


def said(markdown: str) -> str:
    """Words of Markdown, without code blocks and addresses."""
    return re.sub(r"[*`>|]", "", LINK.sub(r"\1", FENCE.sub("", markdown)))


def first_words(text: str, most: int = 170) -> str:
    """The first paragraph, cut where it is long."""
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    first = next((p for p in paragraphs if p and not p.startswith(("#", "<", "!"))), "")
    return first if len(first) <= most else first[:most].rpartition(" ")[0] + " …"


def anchor(heading: str) -> str:
    """The anchor that Markdown gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def terms(glossary: str) -> dict[str, str]:
    """The terms of the glossary, each with what is said of it."""
    pieces = re.split(r"^## (.*)\n", glossary, flags=re.M)[1:]
    return {name: text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def page_entry(name: str, text: str) -> Entry:
    """A page in Markdown."""
    body = said(text)
    title = said(HEADING.search(text)[2]) if HEADING.search(text) else name
    after = body.partition("\n")[2] if body.lstrip().startswith("#") else body
    entry = Entry(f"{name}.html", title, section_of(name), first_words(after))
    # Tasks come before what is for contributors, and before pages that name everything.
    scale = 0.5 if entry.section == "Project" else 1.0
    scale = 0.2 if name in ("changelog", "index", "glossary") else scale
    entry.add(title, scale * (TITLE / 2 + TITLE / 2 / len(title.split())))
    for _, heading in HEADING.findall(body)[1:]:
        entry.add(heading, scale * HEAD)
    for (word, share), times in Counter(words(body)).items():
        entry.weights[word] += scale * BODY * share * min(times, 8)
    return entry


def name_entries() -> Iterator[Entry]:
    """Every name of the reference."""
    for public in PUBLIC:
        summary = re.sub(r"[`*\\]|:\w+:| \[\d+\]_", "", plain(public.summary))
        entry = Entry(f"{public.page}.html", public.name, public.package, summary)
        entry.add(public.name, TITLE / 2)
        entry.add(f"{public.package} {summary}", BODY * 2)
        yield entry


def entries(pages: Mapping[str, str]) -> list[Entry]:
    """Pages, terms and names; a page weighs more for the terms that the glossary sends to it."""
    found = {name: page_entry(name, text) for name, text in pages.items()}
    defined = []
    for term, text in terms(pages.get("glossary", "")).items():
        entry = Entry(f"glossary.html#{anchor(term)}", term, "Glossary", first_words(said(text)))
        entry.add(term, TITLE)
        defined.append(entry)
        for _, link in LINK.findall(text)[:1]:
            treated = found.get(link.partition(".md")[0])
            if treated is not None:
                for name in filter(None, re.split(r" \(|, |\)", term)):
                    treated.add(name, TREATED / len(name.split()))
    return [*found.values(), *defined, *name_entries()]


def index(everything: Iterable[Entry]) -> dict[str, list[object]]:
    """What is searched: the entries, and for each word the places and weights of those it is in."""
    listed = list(everything)
    places: dict[str, list[object]] = {}
    spread = Counter(word for entry in listed for word in entry.weights)
    for place, entry in enumerate(listed):
        for word, weight in entry.weights.items():
            rare = math.log(1 + len(listed) / spread[word])
            places.setdefault(word, []).extend((place, max(1, round(weight * rare))))
    return {
        "entries": [[e.address, e.title, e.section, e.summary] for e in listed],
        "words": list(places.items()),
    }


def write(path: Path, pages: Mapping[str, str]) -> None:
    """The index as a script, which a page can load from a disk."""
    made = json.dumps(index(entries(pages)), ensure_ascii=False, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"const INDEX = {made};\n", encoding="utf-8")

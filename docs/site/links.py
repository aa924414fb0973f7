"""Every link of the built site to the site itself leads somewhere."""

from __future__ import annotations

import json
import os
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page refers to, and the places on it that can be referred to."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the links and the places of one element."""
        for name, value in attrs:
            if name in ("href", "src", "srcset") and value:
                self.targets.add(value.split(" ")[0])
            elif value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Each link to a file or a place of the site that is not there, as 'page: link'."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        pages[str(path)] = _Page()
        pages[str(path)].feed(path.read_text(encoding="utf-8"))
    index = site / "_static" / "search-index.js"
    if index.exists():  # what is found in it counts as links of the page that searches
        text = index.read_text(encoding="utf-8").removeprefix("const INDEX =").rstrip(";\n")
        addresses = {entry[0] for entry in json.loads(text)["entries"]}
        pages.setdefault(str(site / "search.html"), _Page()).targets |= addresses
    is_file = cache(os.path.isfile)
    dead = []
    for path, page in pages.items():
        folder = str(Path(path).parent)
        for target in sorted(page.targets):
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue
            # Without asking the disk for each link: there are tens of thousands, to few files.
            goal = os.path.normpath(f"{folder}/{unquote(url.path)}") if url.path else path
            there = goal in pages or is_file(goal)
            if not there or (goal in pages and unquote(url.fragment) not in pages[goal].anchors):
                dead.append(f"{os.path.relpath(path, site)}: {target}")
    return dead

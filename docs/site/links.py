"""Every link of the built site to the site itself leads somewhere."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Sphinx writes what it writes regularly, so that no parser is needed, which would take ten times as
# long: there are half a million elements.
_PROGRAM = re.compile(r"(<(script|style)\b[^>]*>).*?</\2>", re.DOTALL)
_VALUE = r"""\s*=\s*(?:"([^"]*)"|'([^']*)')"""
_ELEMENT = re.compile(
    r"<([a-z]\w*)((?:\s+[^\s=<>\"'/]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?)+)"
)
_ATTRIBUTE = re.compile(rf"\s(href|src|srcset|id|name){_VALUE}")


class _Page:
    """What a page refers to, and the places on it that can be referred to."""

    def __init__(self, text: str = "") -> None:
        self.targets: set[str] = set()
        self.anchors: set[str] = {""}
        for tag, attributes in _ELEMENT.findall(_PROGRAM.sub(r"\1", text)):
            for name, double, single in _ATTRIBUTE.findall(attributes):
                value = unescape(double or single)
                if name in ("href", "src", "srcset") and value:
                    self.targets.add(value.split(" ")[0])
                elif value and (name == "id" or (tag == "a" and name == "name")):
                    self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Each link to a file or a place of the site that is not there, as 'page: link'."""
    pages = {str(one): _Page(one.read_text("utf-8")) for one in sorted(site.rglob("*.html"))}
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

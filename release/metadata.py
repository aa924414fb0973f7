"""What an index shows of the package: its front page, whose links hold there, and its addresses.

The README's links lead to files beside it, which an index does not have. Where pyproject.toml names
the address of the repository, under ``tool.hatch.metadata.hooks.custom``, they lead there, as does
the picture, and the package's own links are made of it. While it names none, no address is made up:
a link is its words and, in brackets, the path, which the source distribution has.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[([^\]]*)\]\((?!https?://)([^)]+)\)\n\n?", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|#|mailto:)([^)]+)\)")
WHERE = "Paths in brackets are of the source distribution, in which all of the documentation is.\n"


def front_page(text: str, repository: str) -> str:
    """The README as an index shows it.

    Parameters
    ----------
    text : str
    repository : str
        The address whose ``/blob/HEAD`` and ``/raw/HEAD`` hold the files; empty without one.
    """
    text = COMMENT.sub("", text)
    if repository:
        text = PICTURE.sub(rf"![\1]({repository}/raw/HEAD/\2)\n\n", text)
        return LINK.sub(rf"[\1]({repository}/blob/HEAD/\2)", text)
    title, _, rest = PICTURE.sub("", text).partition("\n")
    return f"{title}\n\n{WHERE}{LINK.sub(_in_words, rest)}"


def _in_words(link: re.Match[str]) -> str:
    words, path = link[1], link[2].partition("#")[0]
    return f"{words} ({path})"


def addresses(repository: str) -> dict[str, str]:
    """The links that an index shows beside the page."""
    if not repository:
        return {}
    return {
        "Repository": repository,
        "Documentation": f"{repository}/blob/HEAD/docs/index.md",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


class FrontPage(MetadataHookInterface):
    """Called by hatchling whenever the metadata are made."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what pyproject.toml calls dynamic."""
        repository = str(self.config.get("repository", "")).rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        page = front_page(text, repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
        metadata["urls"] = addresses(repository)

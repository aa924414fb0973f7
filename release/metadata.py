"""What an index shows of the package: its front page, whose links hold there, and its addresses.

The README's links lead to files beside it, which an index does not have. They lead to the
repository, as does the picture, and the package's own links are made of its address: the one that
pyproject.toml names, under ``tool.hatch.metadata.hooks.custom``, or else the one that the checkout
was cloned from, where that is on the web. Where there is neither, no address is made up: a link is
its words and, in brackets, the path, which the source distribution has.
"""

from __future__ import annotations

import re
import subprocess
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


def web_address(remote: str) -> str:
    """The address on the web of what a checkout was cloned from; empty where there is none.

    Names and passwords are left out, and places that only some can reach are no addresses.

    Examples
    --------
    >>> web_address("git@example.org:team/dither.git")
    'https://example.org/team/dither'
    >>> web_address("https://me:secret@example.org/team/dither.git/")
    'https://example.org/team/dither'
    >>> web_address("/srv/git/dither"), web_address("http://localhost:3000/dither")
    ('', '')
    """
    found = _REMOTE.fullmatch(remote.strip())
    if not found:
        return ""
    return f"https://{found['host']}/{found['path'].removesuffix('.git')}"


_REMOTE = re.compile(
    r"(?:https://(?:[^@/]*@)?|ssh://(?:[^@/]*@)?|[\w.-]+@)"
    r"(?P<host>[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,})(?::\d+)?[:/]+"
    r"(?P<path>[\w.~-]+(?:/[\w.~-]+)+)/*",
    re.IGNORECASE,
)
"""A remote on the web, with two parts of a path at least: whose it is, and its name."""


def cloned_from(root: Path) -> str:
    """The web address of a checkout's origin, or the one that a source distribution names."""
    packed = root / "PKG-INFO"
    if packed.is_file():
        named = re.search(
            r"^Project-URL: Repository, (\S+)$", packed.read_text(encoding="utf-8"), re.MULTILINE
        )
        return named[1] if named else ""
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "remote", "get-url", "origin"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return web_address(done.stdout)


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
        root = Path(self.root)
        repository = str(self.config.get("repository", "")).rstrip("/") or cloned_from(root)
        text = (root / "README.md").read_text(encoding="utf-8")
        page = front_page(text, repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
        metadata["urls"] = addresses(repository)

"""Which code runs: its commit, and a hash of its files as they are."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

__all__ = ["UNKNOWN", "code_version"]

UNKNOWN = "unknown"

COMMIT = "_commit.txt"
"""In the package where it was built from a checkout (``release/commit.py``)."""

_HASH = re.compile(r"[0-9a-f]{40,64}")


def code_version(*, sources: bool) -> dict[str, str]:
    """What runs in this process, as it was when this was first asked.

    Parameters
    ----------
    sources : bool
        Whether to hash the package's files, which takes some hundredths of a second.

    Returns
    -------
    dict
        ``commit``, that of the checkout that the package lies in or was built from, or
        ``"unknown"``; and ``sources``, SHA-256 over the names and contents of its files: a commit
        does not tell whether somebody changed them.

    Examples
    --------
    >>> sorted(code_version(sources=True))
    ['commit', 'sources']
    """
    package = Path(__file__).parent.parent
    found = {"commit": commit_of(package)}
    return {**found, "sources": _sources(package)} if sources else found


@cache
def commit_of(package: Path) -> str:
    """The commit that a package was built from, or that is checked out around it."""
    try:
        built = (package / COMMIT).read_text(encoding="ascii").strip()
        return built if _HASH.fullmatch(built) else UNKNOWN
    except (OSError, ValueError):
        pass
    root = package.parent.parent
    if package.parent.name != "src" or not (root / "pyproject.toml").is_file():
        # What lies around an installed package is somebody else's checkout.
        return UNKNOWN
    try:
        return _head(root / ".git")
    except (OSError, ValueError):
        return UNKNOWN


def _head(git: Path) -> str:
    """What HEAD names, read from git's own files: no program is run."""
    if git.is_file():
        # Of a second working tree.
        git = git.parent / git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
    common = git
    if (git / "commondir").is_file():
        common = git / (git / "commondir").read_text(encoding="utf-8").strip()
    text = (git / "HEAD").read_text(encoding="utf-8").strip()
    name = text.removeprefix("ref:").strip()
    if name == text:
        return text if _HASH.fullmatch(text) else UNKNOWN
    for folder in (git, common):
        if (folder / name).is_file():
            found = (folder / name).read_text(encoding="ascii").strip()
            return found if _HASH.fullmatch(found) else UNKNOWN
    packed = (common / "packed-refs").read_text(encoding="utf-8")
    listed = re.search(rf"^([0-9a-f]{{40,64}}) {re.escape(name)}$", packed, re.MULTILINE)
    return listed[1] if listed else UNKNOWN


@cache
def _sources(package: Path) -> str:
    try:
        hashed = hashlib.sha256(b"dither sources 1\n")
        for path in sorted(package.rglob("*.py*"), key=lambda p: p.relative_to(package).as_posix()):
            if path.suffix in (".py", ".pyi"):
                body = path.read_bytes()
                hashed.update(f"{path.relative_to(package).as_posix()} {len(body)}\n".encode())
                hashed.update(body)
        return hashed.hexdigest()
    except OSError:
        return UNKNOWN

"""Writes the commit that an archive is built from into the package, where certificates read it.

Where the program git is not there, as in an image that builds the package, git's files are read as
certificates read them. Without them, and without an earlier archive that says it, nothing is
written, and certificates say that it is unknown. Editable installations read it from the checkout
itself.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "dither/_commit.txt"


def commit_of(root: Path) -> str | None:
    """The commit of a checkout, or the one that a source distribution was built from."""
    written = root / "src" / INSIDE
    if written.is_file():
        return written.read_text(encoding="ascii").strip()
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        )
        found = done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        found = _of_files(root)
    return found if re.fullmatch(r"[0-9a-f]{40,64}", found) else None


def _of_files(root: Path) -> str:
    """As certificates find it, by a module that needs nothing of the package."""
    spec = spec_from_file_location("code_version", root / "src" / "dither" / "session" / "_code.py")
    assert spec is not None
    assert spec.loader is not None
    reader = module_from_spec(spec)
    spec.loader.exec_module(reader)
    return str(reader.commit_of(root / "src" / "dither"))


class Commit(BuildHookInterface[Any]):
    """Called by hatchling before an archive is made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to what is packed."""
        found = None if version == "editable" else commit_of(Path(self.root))
        if found is None:
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "commit.txt"
        file.write_text(found + "\n", encoding="ascii")
        inside = INSIDE if self.target_name == "wheel" else f"src/{INSIDE}"
        build_data["force_include"][str(file)] = inside

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()

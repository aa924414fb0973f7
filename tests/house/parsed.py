"""Files as trees, parsed once for all tests of the house."""

import ast
from functools import cache
from pathlib import Path

__all__ = ["parsed"]


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file; nobody may change it."""
    return ast.parse(path.read_text(encoding="utf-8"))

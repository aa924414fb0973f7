"""Write what the code blocks of pages print now into those pages; read the difference afterwards.

Usage: ``python tests/docs/refresh.py docs/tutorial.md ...``
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def refreshed(text: str, page: str) -> str:
    """The page with every output as it is printed now."""
    from test_code_blocks import run_page

    parts: list[str] = []
    rest = text

    def replace(printed: str, expected: str, block: Any) -> None:
        nonlocal rest
        before, found, rest = rest.partition(f"\n{expected}" if expected else f"{block.body}")
        assert found, f"cannot place the output of the block at {page}:{block.line}"
        lines = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
        parts.extend((before, f"\n{lines}" if expected else f"{found}{lines}"))

    run_page(text, page, replace)
    return "".join(parts) + rest


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        home = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            text = refreshed(path.read_text(), name)
            os.chdir(home)
        path.write_text(text)

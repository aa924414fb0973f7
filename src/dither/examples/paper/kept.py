"""Simulated surveys that are kept as they are drawn, so that a run that was stopped goes on.

A file of lines, one a survey: what it is of, and the errors it gave. Each survey has a generator of
its own, seeded by what it is of, so that surveys may be drawn in any order and more of them later.
A line that was cut short, or is of other data, is not read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dither._format import count_text
from dither.numeric import SimulatedWords

__all__ = ["KeptSurveys", "generator_of"]


def generator_of(key: Sequence[str | int]) -> np.random.Generator:
    """The generator of one survey: the same key draws the same reports."""
    digest = hashlib.sha256(json.dumps(list(key)).encode()).digest()
    return SimulatedWords(int.from_bytes(digest[:16], "big")).generator()


class KeptSurveys:
    """Errors by survey, in memory and, where a path is given, in a file that grows.

    Parameters
    ----------
    path : Path, optional
        Of lines of JSON; made where it is not there.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._found: dict[str, dict[str, float]] = {}
        self._ended = True
        if path is not None and path.exists():
            text = path.read_text(encoding="utf-8", errors="replace")
            self._ended = not text or text.endswith("\n")
            for line in text.splitlines():
                self._take(line)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<{count_text(len(self), 'survey')} kept in {self._path or 'memory'}>"

    def get(self, key: Sequence[str | int], names: Sequence[str]) -> dict[str, float] | None:
        """The errors of a survey, where all those names are there."""
        found = self._found.get(json.dumps(list(key)))
        return found if found is not None and set(names) <= set(found) else None

    def add(self, key: Sequence[str | int], errors: dict[str, float]) -> None:
        """Keep the errors of one survey; it is in the file when this returns."""
        self._found[json.dumps(list(key))] = errors
        if self._path is None:
            return
        line = json.dumps({"survey": list(key), "errors": errors}) + "\n"
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line if self._ended else "\n" + line)
        self._ended = True

    def _take(self, line: str) -> None:
        try:
            stored: Any = json.loads(line)
            errors = {str(name): float(value) for name, value in stored["errors"].items()}
            key = json.dumps(list(stored["survey"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            return
        if all(math.isfinite(value) for value in errors.values()):
            self._found[key] = errors

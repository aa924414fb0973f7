"""Small numbers beside certified ones say what they are for."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import dither

PACKAGES = (
    *("engines", "inference", "ledger", "local", "mechanisms", "noise"),
    *("numeric", "plan", "privacy", "query", "sql", "synth"),
)
LEAST, MOST = 1e-250, 1e-5
"""Smaller numbers keep logarithms and quotients finite; larger ones are seldom margins."""
ABOVE = 4
"""Lines above a statement within which a comment, or a docstring's end, is taken to be about it."""
SAID = {"tiny", "tolerance", "absolute", "relative"}
"""Arguments that say it themselves: how close a search is to come. Defaults say it where they are
documented."""


_DECIMAL = re.compile(r"\d\.|\.\d|\d[eE]")
"""In every file with a number that is not whole."""


def _is_small(value: object) -> bool:
    return isinstance(value, float) and LEAST < value < MOST


def unexplained(text: str) -> Iterator[int]:
    """Lines of small decimals with no words at or above their statement, nor below their name."""
    if not _DECIMAL.search(text):
        return
    tree, words = list(ast.walk(ast.parse(text))), set()
    small = [n for n in tree if isinstance(n, ast.Constant) and _is_small(n.value)]
    if not small:
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or token.string.startswith('"""'):
            words |= set(range(token.start[0], token.end[0] + 1))
    statements = [node for node in tree if isinstance(node, ast.stmt)]
    asked = [k.value for k in tree if isinstance(k, ast.keyword) and k.arg in SAID]
    asked += [d for f in tree if isinstance(f, ast.arguments) for d in f.kw_defaults]
    for node in small:
        if node in asked:
            continue
        around = [s for s in statements if s.lineno <= node.lineno <= (s.end_lineno or s.lineno)]
        own = max(around, key=lambda s: s.lineno)
        last = (own.end_lineno or own.lineno) + 1 if own.col_offset == 0 else node.lineno
        if not words & set(range(own.lineno - ABOVE, last + 1)):
            yield node.lineno


def test_small_numbers_say_what_they_are_for() -> None:
    """A margin is derived beside its line, and a tolerance that promises nothing says so."""
    root = Path(dither.__file__).parent
    found = [
        f"{path.relative_to(root)}:{line}"
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        for line in unexplained(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"say in a comment what these numbers hold, and why that is enough: {found}"


def test_a_bare_margin_is_seen() -> None:
    """In a function and as a name; and not where it is explained."""
    bare = (
        "def f(x):\n    y = x\n    z = y\n    w = z\n    return w * (1 + 1e-9)\n\n_SLACK = 1e-12\n"
    )
    assert sorted(unexplained(bare)) == [5, 7]
    told = bare.replace("    w = z\n", "    w = z  # a rounding\n") + '"""A few roundings."""\n'
    assert not list(unexplained(told))

"""What most questions need is loaded before anybody asks the first one."""

from __future__ import annotations

from importlib import import_module

from dither.session._factories import factory

__all__ = ["load_what_most_ask_for"]

KINDS = ("query", "rows")
"""Of questions."""


def load_what_most_ask_for(*more: str) -> None:
    """Load it, and further modules by their names."""
    for kind in KINDS:
        factory(kind)
    for name in ("mpmath", *more):
        import_module(name)

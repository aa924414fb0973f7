"""A table whose columns hold lists, and hostile rows of it."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dither.plan.schema import ColumnFacts, Kind, Schema, Table

BASKETS = Table(
    "baskets",
    {
        f.name: f
        for f in (
            ColumnFacts("u", Kind.INTEGER),
            ColumnFacts("g", Kind.TEXT, values=("a", "b", "o'b")),
            ColumnFacts("x", Kind.REAL, Fraction(-10), Fraction(1000), Fraction(1, 100)),
        )
    },
    unit="u",
    max_groups=1000,
    max_rows=1000,
    lists={
        f.name: f
        for f in (
            ColumnFacts("words", Kind.TEXT),
            ColumnFacts("kinds", Kind.TEXT, values=("a", "b", "o'b")),
            ColumnFacts("whole", Kind.INTEGER, Fraction(0), Fraction(110)),
            ColumnFacts("reals", Kind.REAL, Fraction(-1), Fraction(1), Fraction(1, 10)),
            ColumnFacts("flags", Kind.BOOLEAN),
            ColumnFacts("days", Kind.DATE, dt.date(2000, 1, 1), dt.date(2000, 2, 29)),
        )
    },
)
LABELS = Table(
    "labels",
    {"code": ColumnFacts("code", Kind.TEXT), "label": ColumnFacts("label", Kind.TEXT)},
    private=False,
    unique=frozenset({"code"}),
)
CRATES = Table(
    "crates",
    {n: f for n, f in BASKETS.columns.items() if n != "u"},
    lists={n: replace(f, max_items=2) for n, f in BASKETS.lists.items()},
)
"""In which a row is a person, of whose lists two elements count."""
SCHEMA = Schema({"baskets": BASKETS, "crates": CRATES, "labels": LABELS})

ELEMENTS = {
    "words": ("", "a", "A", "é", "o'b", "\\", None, "😀z"),
    "kinds": ("a", "b", "o'b", "B", "", None),
    "whole": (0, 110, 55, -1, 2**63 - 1, -(2**63), 7, None),
    "reals": (0.0, -0.0, 0.05, 1e308, float("nan"), float("inf"), float("-inf"), None),
    "flags": (True, False, None),
    "days": (dt.date(2000, 1, 1), dt.date(2000, 2, 29), dt.date(1, 1, 1), None),
}


def basket(source: random.Random, unit: int | None) -> dict[str, Any]:
    """A row with lists of all lengths, none and NULL among them."""

    def listed(name: str) -> list[Any] | None:
        size = source.choice((None, 0, 1, 2, 5))
        return None if size is None else [source.choice(ELEMENTS[name]) for _ in range(size)]

    own = {
        "u": unit,
        "g": source.choice(("a", "b", "c", None)),
        "x": source.choice((0.5, 999.995, -1e9, float("nan"), None)),
    }
    return own | {name: listed(name) for name in ELEMENTS}


def rows(seed: int = 3) -> dict[str, list[dict[str, Any]]]:
    """The same hostile rows of both tables."""
    source = random.Random(seed)
    made = [basket(source, source.choice((0, 1, 2, 2**63 - 1, None))) for _ in range(40)]
    labels = [
        {"code": "a", "label": "x"},
        {"code": "b", "label": None},
        {"code": None, "label": "y"},
    ]
    crates = [{n: v for n, v in row.items() if n != "u"} for row in made]
    return {"baskets": made, "crates": crates, "labels": labels}

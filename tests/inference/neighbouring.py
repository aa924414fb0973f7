"""Neighbouring tables of values in groups: relations, and how far a statistic moves."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

BOTH = ("replace", "add-remove")


def furthest(statistic: Any, k: int, values: list[float], rows: int) -> tuple[float, float]:
    """How far a row replaced, value and group at once, and a row added, moves a statistic."""
    kinds = list(itertools.product(values, range(k)))
    replaced = added = Fraction(0)
    for others in itertools.combinations_with_replacement(kinds, rows - 1):
        x, g = (np.array(part) for part in zip(*others, strict=True))
        before = statistic(x, g)
        after = [statistic(np.append(x, v), np.append(g, h)) for v, h in kinds]
        replaced = max(replaced, max(after) - min(after))
        added = max(added, *(abs(value - before) for value in after))
    return float(replaced), float(added)

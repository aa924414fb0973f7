"""Forests that tell what would leave, exactly, and go on as a script says: so that the whole of two
runs compares, at the same released numbers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.learn.tabular.trees._trees import UNIT, Trees

__all__ = ["Gaps", "WatchedTrees", "gaps", "watched"]


class WatchedTrees(Trees):
    """Keeps tables and utilities. Its numbers and choices are the same in every run of a script."""

    def _said(self, size: int) -> np.ndarray:
        made = random.Random(str((self.__dict__["script"], len(self.__dict__["tables"]), size)))
        return np.array([made.uniform(-20, 100) for _ in range(size)])

    def _leave(self, noise: Any, exact: Any) -> Any:
        first = not self.__dict__["tables"] and not self.drawn
        found = self._said(exact.size).reshape(exact.shape) * max(1.0, noise.variance**0.5)
        self.__dict__["tables"].append(np.asarray(exact))
        if first:
            found = np.full(exact.shape, self.__dict__["rows"])
            if not self.classes:
                # As many rows, whose targets are 0 in the mean.
                found = np.array([[self.__dict__["rows"] * UNIT, 0.0]])
        return found

    def choose(self, level: Any, span: int, utilities: Any) -> int:
        assert level > 0
        choices = self.__dict__["choices"]
        choices.append((span, np.asarray(utilities)))
        made = random.Random(str((self.__dict__["script"], len(choices))))
        return made.randrange(len(utilities))


def watched(run: Any, script: int, rows: float) -> Any:
    """A run that is watched, and is told that there are so many rows, of each class."""
    object.__setattr__(run, "__class__", WatchedTrees)
    run.__dict__.update(script=script, rows=rows, tables=[], choices=[])
    return run


@dataclass(frozen=True)
class Gaps:
    """By how much what leaves of neighbours differs.

    Parameters
    ----------
    tables : int
    l1, l2_squared : int
        Of all tables.
    shares : list of float
        Of each choice how far utilities differ, as a part of what is charged for its level.
    """

    tables: int
    l1: int
    l2_squared: int
    shares: list[float]

    def pairs(self, run: Trees, levels: int) -> list[tuple[float, float]]:
        """What differs, and what is charged for so many levels of all trees."""
        claim = run.moved(self.tables)
        found = [(self.l1, claim.l1), (self.l2_squared, claim.l2_squared)]
        return [*found, *((share, 1) for share in self.shares), (sum(self.shares), levels)]


def gaps(one: Any, two: Any) -> Gaps:
    """Of two watched runs, which must have asked the same."""
    left, right = one.__dict__, two.__dict__
    assert [t.shape for t in left["tables"]] == [t.shape for t in right["tables"]]
    assert [c[0] for c in left["choices"]] == [c[0] for c in right["choices"]]
    off = [a - b for a, b in zip(left["tables"], right["tables"], strict=True)]
    shares = []
    for (span, first), (_, second) in zip(left["choices"], right["choices"], strict=True):
        change = first - second
        shares.append(float(change.max() - change.min()) / (span * one.planner.units))
    return Gaps(
        len(off),
        sum(int(np.abs(gap).sum()) for gap in off),
        sum(int((gap**2).sum()) for gap in off),
        shares,
    )

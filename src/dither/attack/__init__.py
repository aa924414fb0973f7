"""Attacks, run for real: see them succeed on exact answers, then fail on private ones.

An `Experiment` is a game, a release and an attack that never sees the secret; its `Verdict` gives
the success, what the release's loss allows at most, and what may be said. Every attack comes with a
control that must succeed and one that must fail. Releases are black boxes.

- `reconstruct_table` finds all databases that agree with published statistics.
- `subset_sums` guesses one bit of each person from counts over many groups.
"""

from dither.attack.exhaustive import agreeing, all_queries
from dither.attack.game import Attack, Experiment, Game, Release
from dither.attack.reading import census, read_statistics
from dither.attack.reconstruct import Reconstruction, conflict, reconstruct_table, without_each
from dither.attack.releases import (
    bounded,
    corrupted,
    exact,
    gaussian,
    laplace,
    midpoint,
    private,
    rounded,
)
from dither.attack.remaining import Remaining, blurred, remaining, true_answers
from dither.attack.statistics import Statistics
from dither.attack.subset_sums import subset_sums
from dither.attack.verdict import Outcome, Score, Verdict, plot_verdicts

__all__ = [
    "Attack",
    "Experiment",
    "Game",
    "Outcome",
    "Reconstruction",
    "Release",
    "Remaining",
    "Score",
    "Statistics",
    "Verdict",
    "agreeing",
    "all_queries",
    "blurred",
    "bounded",
    "census",
    "conflict",
    "corrupted",
    "exact",
    "gaussian",
    "laplace",
    "midpoint",
    "plot_verdicts",
    "private",
    "read_statistics",
    "reconstruct_table",
    "remaining",
    "rounded",
    "subset_sums",
    "true_answers",
    "without_each",
]

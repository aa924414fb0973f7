"""Attacks, run for real: see them succeed on exact answers, then fail on private ones.

An `Experiment` is a game, a release and an attack that never sees the secret; its `Verdict` gives
the success, what the release's loss allows at most, and what may be said. Every attack comes with a
control that must succeed and one that must fail. Releases are black boxes.

- `reconstruct_table` finds all databases that agree with published statistics.
- `subset_sums` guesses one bit of each person from counts over many groups.
- `uniqueness` and `linkage` find people in rows by what is known of them; `homogeneity`, `skewness`
  and `background` read their answers from classes in which they hide.
- `differencing` subtracts two counts that differ in one person.
- `membership` tells who was in the data of a statistic or of a model.
"""

from dither.lab.attack.background import Background, background
from dither.lab.attack.differencing import Differencing, differencing
from dither.lab.attack.exhaustive import agreeing, all_queries
from dither.lab.attack.game import Attack, Experiment, Game, Release
from dither.lab.attack.homogeneity import Homogeneity, homogeneity
from dither.lab.attack.linkage import Linkage, linkage
from dither.lab.attack.membership import Membership, membership
from dither.lab.attack.reading import census, read_statistics
from dither.lab.attack.reconstruct import Reconstruction, conflict, reconstruct_table, without_each
from dither.lab.attack.releases import (
    bounded,
    corrupted,
    exact,
    gaussian,
    laplace,
    midpoint,
    private,
    rounded,
)
from dither.lab.attack.remaining import Remaining, blurred, remaining, true_answers
from dither.lab.attack.skewness import Skewness, skewness
from dither.lab.attack.statistics import Statistics
from dither.lab.attack.subset_sums import subset_sums
from dither.lab.attack.uniqueness import Uniqueness, uniqueness
from dither.lab.attack.verdict import Outcome, Score, Verdict, plot_verdicts

__all__ = [
    "Attack",
    "Background",
    "Differencing",
    "Experiment",
    "Game",
    "Homogeneity",
    "Linkage",
    "Membership",
    "Outcome",
    "Reconstruction",
    "Release",
    "Remaining",
    "Score",
    "Skewness",
    "Statistics",
    "Uniqueness",
    "Verdict",
    "agreeing",
    "all_queries",
    "background",
    "blurred",
    "bounded",
    "census",
    "conflict",
    "corrupted",
    "differencing",
    "exact",
    "gaussian",
    "homogeneity",
    "laplace",
    "linkage",
    "membership",
    "midpoint",
    "plot_verdicts",
    "private",
    "read_statistics",
    "reconstruct_table",
    "remaining",
    "rounded",
    "skewness",
    "subset_sums",
    "true_answers",
    "uniqueness",
    "without_each",
]

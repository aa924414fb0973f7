"""Attacks, run for real: see them succeed on exact answers, then fail on private ones.

An `Experiment` is a game, a release and an adversary who never sees the secret; its `Verdict` gives
the success, what the release's loss allows at most, and what may be said. Every attack comes with a
control that must succeed and one that must fail. Releases are black boxes.

- `reconstruct_table` finds all databases that agree with published statistics.
- `subset_sums` guesses one bit of each person from counts over many groups.
- `uniqueness` and `linkage` find people in rows by what is known of them; `homogeneity`, `skewness`
  and `background` read their answers from classes in which they hide.
- `differencing` subtracts two counts that differ in one person.
- `membership` tells who was in the data of a statistic or of a model.
"""

from dither.lab._verdicts import Outcome
from dither.lab.attack._classes import (
    Background,
    ClassCounts,
    Homogeneity,
    Skewness,
    background,
    homogeneity,
    skewness,
)
from dither.lab.attack._counting import RemainingDatabases, blurred, remaining, true_answers
from dither.lab.attack._differencing import Differencing, differencing, predicted_difference
from dither.lab.attack._documents import census, read_statistics
from dither.lab.attack._game import Adversary, BlackBox, Experiment, Game
from dither.lab.attack._linkage import Linkage, linkage
from dither.lab.attack._membership import Membership, membership
from dither.lab.attack._reconstruct import Reconstruction, conflict, reconstruct_table, without_each
from dither.lab.attack._releases import (
    bounded,
    corrupted,
    exact,
    gaussian,
    laplace,
    midpoint,
    private,
    rounded,
)
from dither.lab.attack._statistics import Statistics
from dither.lab.attack._subset_sums import agreeing, all_queries, subset_sums
from dither.lab.attack._uniqueness import Uniqueness, uniqueness
from dither.lab.attack._verdict import Score, Verdict, plot_verdicts

__all__ = [
    "Adversary",
    "Background",
    "BlackBox",
    "ClassCounts",
    "Differencing",
    "Experiment",
    "Game",
    "Homogeneity",
    "Linkage",
    "Membership",
    "Outcome",
    "Reconstruction",
    "RemainingDatabases",
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
    "predicted_difference",
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

"""Attacks, run for real: see them succeed on exact answers, then fail on private ones.

An `Experiment` is a game, a release and an adversary who never sees the secret; its `Verdict` gives
the success, what the release's loss allows at most, and what may be said. Every attack comes with a
control that must succeed and one that must fail. Releases are black boxes.

- `reconstruct_table` finds all databases that agree with published statistics.
- `subset_sums` guesses one bit of each person from counts over many groups.
- `uniqueness`, `linkage` and `inexact_linkage` find people in rows by what is known of them, the
  last by what is known roughly; `homogeneity`, `similarity`, `skewness` and `background` read their
  answers from classes in which they hide, and `snapshots` from two releases of a table.
- `differencing` subtracts two counts that differ in one person.
- `tracing` tells who was in the data of many published means, and `fingerprints` says in numbers
  what no release of means escapes.
- `membership` tells who was in the data of a statistic or of a model.
- `gradient_inversion` and `label_leak` read a client's records and label from its update.
- `synthetic` tells who was in the table that synthetic rows were made of.

They stand in four packages by what is attacked: ``reconstruction`` (statistics), ``disclosure``
(rows that were released), ``members`` (models and means), ``updates`` (clients of federated
learning).
"""

from dither.lab._verdicts import Outcome as Outcome
from dither.lab.attack import releases
from dither.lab.attack._game import Adversary as Adversary
from dither.lab.attack._game import BlackBox as BlackBox
from dither.lab.attack._game import Experiment as Experiment
from dither.lab.attack._game import Game as Game
from dither.lab.attack._verdict import Score as Score
from dither.lab.attack._verdict import Verdict as Verdict
from dither.lab.attack._verdict import plot_verdicts as plot_verdicts
from dither.lab.attack.disclosure._background import Background as Background
from dither.lab.attack.disclosure._background import background
from dither.lab.attack.disclosure._classes import ClassCounts as ClassCounts
from dither.lab.attack.disclosure._homogeneity import Homogeneity as Homogeneity
from dither.lab.attack.disclosure._homogeneity import homogeneity
from dither.lab.attack.disclosure._inexact import InexactLinkage as InexactLinkage
from dither.lab.attack.disclosure._inexact import inexact_linkage
from dither.lab.attack.disclosure._linkage import Linkage as Linkage
from dither.lab.attack.disclosure._linkage import linkage
from dither.lab.attack.disclosure._similarity import Similarity as Similarity
from dither.lab.attack.disclosure._similarity import similarity
from dither.lab.attack.disclosure._skewness import Skewness as Skewness
from dither.lab.attack.disclosure._skewness import skewness
from dither.lab.attack.disclosure._snapshots import Snapshots as Snapshots
from dither.lab.attack.disclosure._snapshots import snapshots
from dither.lab.attack.disclosure._uniqueness import Uniqueness as Uniqueness
from dither.lab.attack.disclosure._uniqueness import uniqueness
from dither.lab.attack.members._fingerprints import Fingerprints as Fingerprints
from dither.lab.attack.members._fingerprints import fingerprints
from dither.lab.attack.members._generators import drawn_again as drawn_again
from dither.lab.attack.members._generators import pairs_kept as pairs_kept
from dither.lab.attack.members._membership import Membership as Membership
from dither.lab.attack.members._membership import membership
from dither.lab.attack.members._synthetic import closest_record as closest_record
from dither.lab.attack.members._synthetic import rarest as rarest
from dither.lab.attack.members._synthetic import synthetic
from dither.lab.attack.members._tracing import tracing
from dither.lab.attack.reconstruction._counting import RemainingDatabases as RemainingDatabases
from dither.lab.attack.reconstruction._counting import blurred as blurred
from dither.lab.attack.reconstruction._counting import remaining
from dither.lab.attack.reconstruction._counting import true_answers as true_answers
from dither.lab.attack.reconstruction._differencing import Differencing as Differencing
from dither.lab.attack.reconstruction._differencing import differencing
from dither.lab.attack.reconstruction._differencing import (
    predicted_difference as predicted_difference,
)
from dither.lab.attack.reconstruction._documents import census
from dither.lab.attack.reconstruction._documents import read_statistics as read_statistics
from dither.lab.attack.reconstruction._reconstruct import Reconstruction as Reconstruction
from dither.lab.attack.reconstruction._reconstruct import reconstruct_table
from dither.lab.attack.reconstruction._reconstruct import without_each as without_each
from dither.lab.attack.reconstruction._statistics import Statistics as Statistics
from dither.lab.attack.reconstruction._subset_sums import agreeing as agreeing
from dither.lab.attack.reconstruction._subset_sums import all_queries as all_queries
from dither.lab.attack.reconstruction._subset_sums import subset_sums
from dither.lab.attack.updates._inversion import Inversion as Inversion
from dither.lab.attack.updates._inversion import gradient_inversion
from dither.lab.attack.updates._label_leak import LabelLeak as LabelLeak
from dither.lab.attack.updates._label_leak import label_leak
from dither.lab.attack.updates._simulated_client import SimulatedClient as SimulatedClient

__all__ = [
    "background",
    "census",
    "differencing",
    "fingerprints",
    "gradient_inversion",
    "homogeneity",
    "inexact_linkage",
    "label_leak",
    "linkage",
    "membership",
    "reconstruct_table",
    "releases",
    "remaining",
    "similarity",
    "skewness",
    "snapshots",
    "subset_sums",
    "synthetic",
    "tracing",
    "uniqueness",
]

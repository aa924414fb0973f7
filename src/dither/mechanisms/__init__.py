"""Mechanisms: one file each, with sampler, loss, error and inverse bound to one exact parameter.

``allocate`` chooses among them for one release, ``choose`` for one vector. Guarantees cover what is
released, not how long it took: each mechanism whose time depends on the data states so.

``counts`` adds noise to numbers, ``selection`` picks candidates, ``quantiles`` reads trees of
counts, and ``adaptive`` looks at the data before it chooses its noise.
"""

from dither.mechanisms._base import AdditiveNoise as AdditiveNoise
from dither.mechanisms._combination import half_width as half_width
from dither.mechanisms._combination import linear_interval as linear_interval
from dither.mechanisms._pairs import Combination as Combination
from dither.mechanisms._pairs import PairSums as PairSums
from dither.mechanisms._pairs import pair_interval as pair_interval
from dither.mechanisms._ratio import ratio_interval as ratio_interval
from dither.mechanisms._ratio import shared_ratio_interval as shared_ratio_interval
from dither.mechanisms._ratio import variance_interval as variance_interval
from dither.mechanisms.adaptive.propose_test_release import ProposeTestRelease
from dither.mechanisms.adaptive.smooth_median import SmoothMedian
from dither.mechanisms.adaptive.sparse_vector import AboveThreshold as AboveThreshold
from dither.mechanisms.adaptive.sparse_vector import SparseAnswer as SparseAnswer
from dither.mechanisms.adaptive.sparse_vector import SparseVector
from dither.mechanisms.adaptive.subsample_aggregate import SubsampleAggregate
from dither.mechanisms.allocation import Allocation as Allocation
from dither.mechanisms.allocation import Allotment as Allotment
from dither.mechanisms.allocation import KeyDiscovery as KeyDiscovery
from dither.mechanisms.allocation import NoiseRequest as NoiseRequest
from dither.mechanisms.allocation import allocate as allocate
from dither.mechanisms.chooser import ChosenNoise as ChosenNoise
from dither.mechanisms.chooser import choose
from dither.mechanisms.counts.binary_tree import BinaryTree
from dither.mechanisms.counts.binary_tree import RunningCount as RunningCount
from dither.mechanisms.counts.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.mechanisms.counts.discrete_laplace import Geometric as Geometric
from dither.mechanisms.counts.gaussian import Gaussian
from dither.mechanisms.counts.laplace import Laplace
from dither.mechanisms.counts.max_norm import MaxNorm
from dither.mechanisms.counts.randomized_response import RandomizedResponse
from dither.mechanisms.counts.staircase import Staircase
from dither.mechanisms.counts.tulap import Tulap
from dither.mechanisms.quantiles.quantile_tree import Quantiles as Quantiles
from dither.mechanisms.quantiles.quantile_tree import QuantileTree
from dither.mechanisms.selection.exponential import Exponential
from dither.mechanisms.selection.key_threshold import KeyThreshold
from dither.mechanisms.selection.noisy_max import NoisyMax
from dither.mechanisms.selection.peeling import Peeling
from dither.mechanisms.selection.permute_and_flip import PermuteAndFlip
from dither.mechanisms.selection.top_k import TopK
from dither.mechanisms.sensitivity import Sensitivity as Sensitivity

__all__ = [
    "BinaryTree",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "KeyThreshold",
    "Laplace",
    "MaxNorm",
    "NoisyMax",
    "Peeling",
    "PermuteAndFlip",
    "ProposeTestRelease",
    "QuantileTree",
    "RandomizedResponse",
    "SmoothMedian",
    "SparseVector",
    "Staircase",
    "SubsampleAggregate",
    "TopK",
    "Tulap",
    "choose",
]

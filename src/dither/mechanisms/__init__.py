"""Mechanisms: one file each, with sampler, loss, error and inverse bound to one exact parameter.

``allocate`` chooses among them for one release, ``choose`` for one vector. Guarantees cover what is
released, not how long it took: each mechanism whose time depends on the data states so.
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
from dither.mechanisms.allocate import Allocation as Allocation
from dither.mechanisms.allocate import Allotment as Allotment
from dither.mechanisms.allocate import KeyDiscovery as KeyDiscovery
from dither.mechanisms.allocate import Need as Need
from dither.mechanisms.allocate import allocate as allocate
from dither.mechanisms.binary_tree import BinaryTree
from dither.mechanisms.binary_tree import RunningCount as RunningCount
from dither.mechanisms.chooser import ChosenNoise as ChosenNoise
from dither.mechanisms.chooser import choose
from dither.mechanisms.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.discrete_laplace import DiscreteLaplace
from dither.mechanisms.discrete_laplace import Geometric as Geometric
from dither.mechanisms.exponential import Exponential
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.key_threshold import KeyThreshold
from dither.mechanisms.laplace import Laplace
from dither.mechanisms.max_norm import MaxNorm
from dither.mechanisms.noisy_max import NoisyMax
from dither.mechanisms.peeling import Peeling
from dither.mechanisms.permute_and_flip import PermuteAndFlip
from dither.mechanisms.propose_test_release import ProposeTestRelease
from dither.mechanisms.quantile_tree import Quantiles as Quantiles
from dither.mechanisms.quantile_tree import QuantileTree
from dither.mechanisms.randomized_response import RandomizedResponse
from dither.mechanisms.sensitivity import Sensitivity as Sensitivity
from dither.mechanisms.smooth_median import SmoothMedian
from dither.mechanisms.sparse_vector import AboveThreshold as AboveThreshold
from dither.mechanisms.sparse_vector import SparseAnswer as SparseAnswer
from dither.mechanisms.sparse_vector import SparseVector
from dither.mechanisms.staircase import Staircase
from dither.mechanisms.subsample_aggregate import SubsampleAggregate
from dither.mechanisms.top_k import TopK
from dither.mechanisms.tulap import Tulap

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

"""Mechanisms: one file each, with sampler, loss, error and inverse bound to one exact parameter.

``allocate`` chooses among them for one release, ``choose`` for one vector. Guarantees are of what
is said, not of how long it took to say: each file that draws in a time that depends on the data
says so.
"""

from dither.mechanisms._base import AdditiveNoise
from dither.mechanisms._combination import half_width, linear_interval
from dither.mechanisms._ratio import ratio_interval, shared_ratio_interval, variance_interval
from dither.mechanisms.allocate import (
    Allocation,
    KeyDiscovery,
    Need,
    Share,
    allocate,
)
from dither.mechanisms.binary_tree import BinaryTree, RunningCount
from dither.mechanisms.chooser import Choice, choose
from dither.mechanisms.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.discrete_laplace import DiscreteLaplace, Geometric
from dither.mechanisms.exponential import Exponential
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.key_threshold import KeyThreshold
from dither.mechanisms.laplace import Laplace
from dither.mechanisms.max_norm import MaxNorm
from dither.mechanisms.noisy_max import NoisyMax
from dither.mechanisms.peeling import Peeling
from dither.mechanisms.permute_and_flip import PermuteAndFlip
from dither.mechanisms.propose_test_release import ProposeTestRelease
from dither.mechanisms.quantile_tree import Quantiles, QuantileTree
from dither.mechanisms.randomized_response import RandomizedResponse
from dither.mechanisms.sensitivity import Sensitivity
from dither.mechanisms.smooth_median import SmoothMedian
from dither.mechanisms.sparse_vector import AboveThreshold, SparseAnswer, SparseVector
from dither.mechanisms.staircase import Staircase
from dither.mechanisms.subsample_aggregate import SubsampleAggregate
from dither.mechanisms.top_k import TopK
from dither.mechanisms.tulap import Tulap

__all__ = [
    "AboveThreshold",
    "AdditiveNoise",
    "Allocation",
    "BinaryTree",
    "Choice",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "Geometric",
    "KeyDiscovery",
    "KeyThreshold",
    "Laplace",
    "MaxNorm",
    "Need",
    "NoisyMax",
    "Peeling",
    "PermuteAndFlip",
    "ProposeTestRelease",
    "QuantileTree",
    "Quantiles",
    "RandomizedResponse",
    "RunningCount",
    "Sensitivity",
    "Share",
    "SmoothMedian",
    "SparseAnswer",
    "SparseVector",
    "Staircase",
    "SubsampleAggregate",
    "TopK",
    "Tulap",
    "allocate",
    "choose",
    "half_width",
    "linear_interval",
    "ratio_interval",
    "shared_ratio_interval",
    "variance_interval",
]

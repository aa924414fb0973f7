"""Mechanisms: one file each, with sampler, loss, error and inverse bound to one exact parameter.

``allocate`` chooses among them for one release.
"""

from dither.mechanisms.additive import AdditiveNoise
from dither.mechanisms.allocate import (
    Allocation,
    KeyDiscovery,
    Need,
    Share,
    allocate,
)
from dither.mechanisms.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.discrete_laplace import DiscreteLaplace
from dither.mechanisms.key_threshold import KeyThreshold
from dither.mechanisms.search import largest_epsilon, smallest_epsilon

__all__ = [
    "AdditiveNoise",
    "Allocation",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "KeyDiscovery",
    "KeyThreshold",
    "Need",
    "Share",
    "allocate",
    "largest_epsilon",
    "smallest_epsilon",
]

"""The parts that a loss is a sum of: one frozen value a mechanism, in the field's names."""

from dither.privacy.parts.approximate import Approximate
from dither.privacy.parts.at_most import AtMost
from dither.privacy.parts.classes import BoundedRange, Concentrated, MomentTerm, RenyiProfile
from dither.privacy.parts.gaussian import DiscreteGaussianNoise, GaussianNoise
from dither.privacy.parts.laplace import DiscreteLaplaceNoise, LaplaceNoise
from dither.privacy.parts.listed import ListedLaw
from dither.privacy.parts.pair import PmfPair
from dither.privacy.parts.part import Part
from dither.privacy.parts.response import RandomResponse
from dither.privacy.parts.sampled import FixedSize, Poisson
from dither.privacy.parts.vector import DiscreteGaussianVector

__all__ = [
    "Approximate",
    "AtMost",
    "BoundedRange",
    "Concentrated",
    "DiscreteGaussianNoise",
    "DiscreteGaussianVector",
    "DiscreteLaplaceNoise",
    "FixedSize",
    "GaussianNoise",
    "LaplaceNoise",
    "ListedLaw",
    "MomentTerm",
    "Part",
    "PmfPair",
    "Poisson",
    "RandomResponse",
    "RenyiProfile",
]

"""The laws that a loss is a sum of: what each mechanism loses, one file a law.

A *part* is one mechanism's loss, a frozen value in the field's names. A *term* is the law of the
privacy loss L under P, for one ordered pair (P, Q) and a number of independent repetitions: what
engines ask for its generating function, for a certificate of how fast that decays, or for its
masses on a grid. Both stand in one file. Laws of a random sample are in ``sampled``.
"""

from dither.privacy.laws.classes import Concentrated
from dither.privacy.laws.discrete_gaussian import DiscreteGaussianNoise
from dither.privacy.laws.gaussian_vector import DiscreteGaussianVector
from dither.privacy.laws.pair import PmfPair
from dither.privacy.laws.part import Dominated, Part

__all__ = [
    "Concentrated",
    "DiscreteGaussianNoise",
    "DiscreteGaussianVector",
    "Dominated",
    "Part",
    "PmfPair",
]

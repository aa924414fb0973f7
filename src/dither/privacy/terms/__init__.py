"""Privacy-loss laws as the engines see them: one direction, one law, a count.

A *term* is the law of the privacy loss L under P, for one ordered pair (P, Q) and a number of
independent repetitions. Engines ask it for its generating function, for a certificate of how fast
that function decays, or for its masses on a grid.
"""

from dither.privacy.terms.atoms import AtomTerm
from dither.privacy.terms.base import Cells, Term
from dither.privacy.terms.discrete_gaussian import DiscreteGaussianLaw
from dither.privacy.terms.gaussian import GaussianTerm, WidenedGaussianTerm
from dither.privacy.terms.laplace import LaplaceTerm
from dither.privacy.terms.response import ResponseTerm
from dither.privacy.terms.sampled import FixedSizeTerm, SampledTerm, mixed_loss
from dither.privacy.terms.sampled_gaussian import SampledGaussianTerm
from dither.privacy.terms.sampled_line import SampledLineTerm

__all__ = [
    "AtomTerm",
    "Cells",
    "DiscreteGaussianLaw",
    "FixedSizeTerm",
    "GaussianTerm",
    "LaplaceTerm",
    "ResponseTerm",
    "SampledGaussianTerm",
    "SampledLineTerm",
    "SampledTerm",
    "Term",
    "WidenedGaussianTerm",
    "mixed_loss",
]

"""Exact samplers on the integers: discrete Laplace and Gaussian, coins, uniform, weighted choice.

Each draws from its law as written, to within 2**-142 in total variation or exactly, from the
keystream of a cipher. Doubles filter; they never decide what they could decide wrongly. The room
knows no privacy: what a draw is worth is said in `dither.mechanisms`.
"""

from dither.noise.bernoulli import bernoulli, bernoulli_exp
from dither.noise.choice import below, choose, permutation
from dither.noise.gaussian import MAX_SIGMA2, discrete_gaussian, discrete_gaussian_one
from dither.noise.laplace import MAX_SCALE, discrete_laplace, discrete_laplace_one

__all__ = [
    "MAX_SCALE",
    "MAX_SIGMA2",
    "below",
    "bernoulli",
    "bernoulli_exp",
    "choose",
    "discrete_gaussian",
    "discrete_gaussian_one",
    "discrete_laplace",
    "discrete_laplace_one",
    "permutation",
]

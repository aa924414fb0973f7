"""Exact samplers on the integers: discrete Laplace and Gaussian, Skellam, coins, weighted choice.

Each draws from its law as written, to within 2**-142 in total variation or exactly, from the
keystream of a cipher. Doubles filter; they never decide what they could decide wrongly. Nothing
here knows of privacy: what a draw is worth stands in `dither.mechanisms`.
"""

from dither.noise._bernoulli import bernoulli as bernoulli
from dither.noise._bernoulli import bernoulli_exp as bernoulli_exp
from dither.noise._choice import below as below
from dither.noise._choice import choose as choose
from dither.noise._choice import permutation as permutation
from dither.noise._gaussian import MAX_SIGMA2 as MAX_SIGMA2
from dither.noise._gaussian import discrete_gaussian
from dither.noise._laplace import MAX_SCALE as MAX_SCALE
from dither.noise._laplace import discrete_laplace
from dither.noise._laplace import discrete_laplace_one as discrete_laplace_one
from dither.noise._skellam import skellam as skellam
from dither.noise._skellam import skellam_tail as skellam_tail

__all__ = ["discrete_gaussian", "discrete_laplace"]

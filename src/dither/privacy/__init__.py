"""What a guarantee is: who is a neighbour of whom, and what a release loses.

One object, `Loss`, holds what a sequence of mechanisms reveals and says it in every dialect:
epsilon and delta, the trade-off of an attacker's errors, Rényi divergence, zCDP, Gaussian DP.
:mod:`dither.accounting` holds the named theorems that bound losses, and how they are calibrated,
shuffled and spent adaptively.

``laws`` has what each mechanism loses, ``engines`` what turns that into numbers, ``amplification``
what chance adds, ``accounts`` filters and odometers, ``division`` one promise among many.
"""

from dither.privacy._bound import Bound as Bound
from dither.privacy._charge import Charge
from dither.privacy._compound import noisy_votes, tree_aggregation
from dither.privacy._loss import Loss, compose
from dither.privacy._makers import (
    approximate,
    discrete_gaussian,
    discrete_laplace,
    exponential,
    gaussian,
    gdp,
    laplace,
    pair,
    pure,
    randomized_response,
    renyi,
    zcdp,
)
from dither.privacy._promise import Neighbours, Promise
from dither.privacy.amplification._repetition import repeat_and_select

__all__ = [
    "Charge",
    "Loss",
    "Neighbours",
    "Promise",
    "approximate",
    "compose",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential",
    "gaussian",
    "gdp",
    "laplace",
    "noisy_votes",
    "pair",
    "pure",
    "randomized_response",
    "renyi",
    "repeat_and_select",
    "tree_aggregation",
    "zcdp",
]

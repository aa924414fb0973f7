"""Exact arithmetic: rationals, directed rounding, lattices, and secure random words.

The ground that everything else stands on. No number that carries privacy is a float here; a float
is read once, as the decimal its writer meant, and doubles leave only through a stated rounding.
"""

from dither.numeric.arguments import check_confidence
from dither.numeric.directed import (
    exp_lower,
    exp_upper,
    float_down,
    float_up,
    log_lower,
    log_upper,
    sqrt_lower,
    sqrt_upper,
)
from dither.numeric.keystream import SecureWords, SimulatedWords, Words, secure_words
from dither.numeric.lattice import Lattice, common
from dither.numeric.rational import exact, positive

__all__ = [
    "Lattice",
    "SecureWords",
    "SimulatedWords",
    "Words",
    "check_confidence",
    "common",
    "exact",
    "exp_lower",
    "exp_upper",
    "float_down",
    "float_up",
    "log_lower",
    "log_upper",
    "positive",
    "secure_words",
    "sqrt_lower",
    "sqrt_upper",
]

"""Exact arithmetic: directed rounding, lattices, and secure random words.

The ground that everything else stands on. No number that carries privacy is a float here; a float
is read once, as it prints (`dither._checks`), and doubles leave only through a stated rounding.
"""

from dither.numeric._directed import binary_size as binary_size
from dither.numeric._directed import exp_lower as exp_lower
from dither.numeric._directed import exp_upper as exp_upper
from dither.numeric._directed import float_down as float_down
from dither.numeric._directed import float_up as float_up
from dither.numeric._directed import log_lower as log_lower
from dither.numeric._directed import log_upper as log_upper
from dither.numeric._directed import shortened as shortened
from dither.numeric._directed import sqrt_lower as sqrt_lower
from dither.numeric._directed import sqrt_upper as sqrt_upper
from dither.numeric._keystream import KeyedWords as KeyedWords
from dither.numeric._keystream import SecureWords as SecureWords
from dither.numeric._keystream import SimulatedWords, Words, secure_words
from dither.numeric._lattice import Lattice as Lattice
from dither.numeric._lattice import common as common

__all__ = [
    "SimulatedWords",
    "Words",
    "secure_words",
]

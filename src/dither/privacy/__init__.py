"""What a guarantee is: who is a neighbour of whom, and what a release loses.

The room holds values only. How losses combine is told in :mod:`dither.accounting`.
"""

from dither.privacy.charge import Charge
from dither.privacy.neighbours import Neighbours

__all__ = ["Charge", "Neighbours"]

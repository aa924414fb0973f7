"""How mixed the sensitive values of a class are: the family of l-diversity, and alpha.

For a class with counts ``r_1 >= r_2 >= ... >= r_m`` of its values and ``n`` rows:

- distinct: ``m``;
- entropy: ``exp(H)`` with ``H = -sum (r_i/n) log (r_i/n)``;
- recursive: ``r_1 / (r_l + ... + r_m)``, which a class of (c,l)-diversity keeps below ``c``;
- alpha: ``r_1 / n``.

Source: Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam, *l-diversity* (2007); Wong, Li, Fu,
Wang, *(α,k)-anonymity* (2006).
"""

from __future__ import annotations

import numpy as np

from dither.lab.anonymize.pairs import Floats, Pairs

__all__ = ["alpha", "distinct", "effective", "recursive"]


def distinct(pairs: Pairs) -> Floats:
    """How many values each class has."""
    return np.bincount(pairs.owner, minlength=len(pairs.sizes)).astype(np.float64)


def effective(pairs: Pairs) -> Floats:
    """``exp(H)``: how many equally common values would be as mixed."""
    share = pairs.share
    return np.exp(-pairs.per_class(share * np.log(share)))


def recursive(pairs: Pairs, values: int) -> Floats:
    """``r_1 / (r_l + ... + r_m)``; infinite where a class has fewer than l values."""
    order = np.lexsort((-pairs.count, pairs.owner))
    counts = pairs.count[order].astype(np.float64)
    place = np.arange(len(counts)) - pairs.starts[pairs.owner]
    tail = np.bincount(
        pairs.owner, weights=np.where(place >= values - 1, counts, 0.0), minlength=len(pairs.sizes)
    )
    with np.errstate(divide="ignore"):
        found: Floats = counts[pairs.starts] / tail
    return found


def alpha(pairs: Pairs) -> Floats:
    """The share of the commonest value."""
    return pairs.largest(pairs.share)

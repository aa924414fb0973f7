"""How far a class's odds are from the table's: δ-disclosure and β-likeness.

With a value's share ``q`` in a class and ``p`` in the table:

- δ-disclosure bounds ``|log(q/p)|`` for *every* value of the table. A value that the class lacks
  has ``q = 0``, and so no finite δ.
- basic β-likeness bounds ``(q - p)/p`` where ``q > p``.
- enhanced β-likeness bounds it by ``min(β, -log p)``. No β mends a class where ``(q - p)/p``
  exceeds ``-log p``; it counts as infinite.

Source: Brickell, Shmatikov, *The cost of privacy* (2008); Cao, Karras, *Publishing microdata with a
robust privacy guarantee* (2012).
"""

from __future__ import annotations

import numpy as np

from dither.lab.anonymize.pairs import Floats, Pairs

__all__ = ["beta", "delta", "delta_of_present", "enhanced_beta"]


def delta_of_present(pairs: Pairs) -> Floats:
    """The largest ``|log(q/p)|`` over the values that a class has."""
    ratio = pairs.share / pairs.reference[pairs.value]
    return pairs.largest(np.abs(np.log(ratio)))


def delta(pairs: Pairs) -> Floats:
    """The largest ``|log(q/p)|`` over the values of the table; infinite where one is absent."""
    has = np.bincount(pairs.owner, minlength=len(pairs.sizes))
    needed = int((pairs.whole > 0).sum())
    return np.where(has < needed, np.inf, delta_of_present(pairs))


def beta(pairs: Pairs) -> Floats:
    """The largest gain ``(q - p)/p`` of a value in each class, at least 0."""
    return np.maximum(pairs.largest(_gain(pairs)), 0.0)


def enhanced_beta(pairs: Pairs) -> Floats:
    """The least β for which the class is enhanced β-like; infinite where none is."""
    gain = _gain(pairs)
    limit = -np.log(pairs.reference[pairs.value])
    # A gain of exactly zero meets the limit of a value that everybody has.
    broken = pairs.largest(np.where(gain > np.maximum(limit, 0.0) + 1e-12, 1.0, 0.0)) > 0
    return np.where(broken, np.inf, beta(pairs))


def _gain(pairs: Pairs) -> Floats:
    p = pairs.reference[pairs.value]
    found: Floats = (pairs.share - p) / p
    return found

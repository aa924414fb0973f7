"""Of the laws of a total: the largest loss, and the mass that is infinite or left out."""

from __future__ import annotations

import math

import numpy as np

from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.term import EPS, Term

__all__ = ["infinite", "largest", "missed", "plus"]


def largest(terms: list[Term]) -> tuple[float, float]:
    """Ends of the largest finite loss, as far as the terms' doubles know it."""
    top = sum(t.top() for t in terms)
    # A product and a sum a term, and what the losses themselves may be off by.
    off = sum(t.count * t.position for t in terms if isinstance(t, AtomTerm))
    off += abs(top) * EPS * (4 + len(terms))
    return top - off, top + off


def missed(terms: list[Term]) -> float:
    """What these laws leave out, raised as they are."""
    found, lift = infinite(terms, lost=True), sum(t.lift for t in terms)
    # Nothing is raised, and the mass stays as it is.
    if lift <= 0:
        return found
    # A sum's rounding, a unit in the exponential's last place, and two products.
    off = EPS * (4 + len(terms) * lift)
    return min(1.0, found * math.exp(lift) * (1 + off))


def plus(log_value: float, extra: float) -> float:
    """log(e^log_value + extra)."""
    if extra <= 0:
        return log_value
    return float(np.logaddexp(log_value, math.log(extra)))


def infinite(terms: list[Term], *, lost: bool = False, up: bool = True) -> float:
    """1 - Π(1 - infinite)^count: as it is where there is one, else an upper or a lower end.

    With ``lost``, what the laws leave out counts too.
    """
    some = [(t.infinite + (t.lost if lost else 0.0), t.count) for t in terms]
    some = [(mass, count) for mass, count in some if mass > 0]
    if not some:
        return 0.0
    # One mass as it is stated: no logarithm rounds it.
    if len(some) == 1 and some[0][1] == 1:
        return min(1.0, some[0][0])
    # log(1 - mass) would be minus infinity: the whole is lost.
    if any(mass >= 1 for mass, _ in some):
        return 1.0
    kept = sum(count * math.log1p(-mass) for mass, count in some)
    # A logarithm, a product and a sum a term; 1 - e^-x errs by no more of itself than x does.
    off = EPS * (4 + len(some))
    return min(1.0, -math.expm1(kept) * (1 + (off if up else -off)))

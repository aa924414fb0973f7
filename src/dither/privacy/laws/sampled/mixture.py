"""Any dominating pair on a random sample: what sampling does to a loss, cell by cell.

*Poisson sampling* at rate g turns a pair (P, Q) for removal into ((1-g)Q + gP, Q), and one for
addition into (P, (1-g)P + gQ) [1]_, theorem 11. The losses are monotone functions of the old one::

    removal:   L' = log(1 - g + g·e^L)            addition:   L' = -log(1 - g + g·e^{-L})

*Sampling without replacement* of m out of n, neighbours that replace one unit, g = m/n: the
profile is that of the first pair at e^epsilon >= 1 and of the second below 1. The law of the loss
at any value is fixed by the profile next to it, so L' has the first pair's law above 0, the second
pair's below 0, and what is left of the mass at 0.

References
----------
.. [1] Zhu, Dong and Wang, "Optimal accounting of differential privacy via characteristic
   function", AISTATS 2022.
"""

from __future__ import annotations

import math

import numpy as np

from dither.privacy.laws.term import EPS, Array, LawCells, Term

__all__ = ["FixedSizeTerm", "SampledTerm", "mixed_loss"]


def _removal(x: float, g: float) -> float:
    # Above 700 the rest, log(1 + (1 - g)/(g·e^x)), is replaced by more than it is.
    return math.log1p(g * math.expm1(x)) if x < 700 else x + math.log(g) + math.exp(-690) / g


def mixed_loss(losses: Array, g: float) -> Array:
    """log(1 - g + g·e^L), to a few roundings of itself or of L where it is near 0."""
    # So that the branch that is not taken stays in the doubles.
    small = np.minimum(losses, 600.0)
    far = losses + math.log(g) + np.log1p((1 - g) / g * np.exp(-np.maximum(losses, 600.0)))
    result: Array = np.where(losses > 600.0, far, np.log1p(g * np.expm1(small)))
    return result


def _before(edges: Array, g: float) -> Array:
    """The old loss at which log(1 - g + g·e^L) reaches the edges; -inf below its floor."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inner = np.expm1(np.minimum(edges, 100.0)) / g
        # Below log(1 - g) no loss lies: its edge goes to minus infinity.
        near = np.where(inner > -1, np.log1p(inner), -np.inf)
        # Beyond 100, 1 - g is below e^{-100} of the rest.
        return np.where(edges > 100.0, edges - math.log(g), near)


def _mixed(old: LawCells, g: float, removal: bool, position: float) -> LawCells:
    position = position + old.position
    if removal:
        # `below` and `above` are P's. Losses without a lower end, of which Q would leave out more,
        # are mixed so for a sample of fixed size alone, which takes no more than the upper half.
        return LawCells(
            (1 - g) * old.q + g * old.p,
            old.q,
            (1 - g) * old.q_error + g * old.p_error + 2 * EPS * (old.p + old.q),
            old.q_error,
            old.below,
            old.above,
            position,
        )
    return LawCells(
        old.p,
        (1 - g) * old.p + g * old.q,
        old.p_error,
        (1 - g) * old.p_error + g * old.q_error + 2 * EPS * (old.p + old.q),
        old.below,
        old.above,
        position,
    )


def _position(edges: Array, g: float) -> float:
    """How far mapped edges are off, in the new loss: a few roundings of a map of slope <= 1."""
    return 16 * EPS * (2 + float(np.abs(edges).max()) + 1 / (1 - g) + 40)


class SampledTerm(Term):
    """A pair on a Poisson sample.

    Parameters
    ----------
    base : Term
        One repetition of the law before sampling, in the same direction.
    rate : float
        g in (0, 1).
    removal : bool
        The direction.
    count : int
        Repetitions.
    """

    smooth = False

    def __init__(self, base: Term, rate: float, removal: bool, count: int) -> None:
        self.base, self.rate, self.removal, self.count = base, rate, removal, count
        # Under addition the mixture holds (1 - g)·P: nothing is infinite.
        self.infinite = rate * base.infinite if removal else 0.0

    def singles(self) -> list[tuple[Term, int]]:
        """Itself."""
        return [(self, self.count)]

    def ends(self, tail: float) -> tuple[float, float]:
        """The base's ends, mapped."""
        # The map rises with the loss, so that ends go to ends.
        low, high = self.base.ends(tail)
        if self.removal:
            # Under Q the base's loss is lower: minus the end of the other side bounds it.
            return _removal(min(low, -high), self.rate), _removal(high, self.rate)
        # -log(1 - g + g·e^-L) rises with L too.
        return -_removal(-low, self.rate), -_removal(-high, self.rate)

    def top(self) -> float:
        """The base's top, mapped; -log(1 - g) bounds addition."""
        if self.removal:
            return self.count * _removal(self.base.top(), self.rate)
        return self.count * -math.log1p(-self.rate)

    def least(self) -> float:
        """log(1 - g) for removal."""
        return math.log1p(-self.rate) * (1 + 4 * EPS) if self.removal else -math.inf

    def anchors(self) -> tuple[float, float]:
        """The base's atoms, mapped."""
        low, gap = self.base.anchors()
        if gap <= 0:
            return 0.0, 0.0
        sign = 1.0 if self.removal else -1.0
        a, b = (sign * _removal(sign * x, self.rate) for x in (low, low + gap))
        return a, b - a

    def cells(self, edges: Array) -> LawCells:
        """The base's masses between mapped edges."""
        g = self.rate
        mapped = _before(edges, g) if self.removal else -_before(-edges, g)
        return _mixed(self.base.cells(mapped), g, self.removal, _position(edges, g))


class FixedSizeTerm(Term):
    """A pair on a sample of fixed size, drawn without replacement; neighbours replace one unit."""

    smooth = False

    def __init__(self, base: Term, rate: float, count: int) -> None:
        self.first = SampledTerm(base, rate, True, 1)
        self.second = SampledTerm(base, rate, False, 1)
        self.count = count
        self.infinite = self.first.infinite

    def singles(self) -> list[tuple[Term, int]]:
        """Itself."""
        return [(self, self.count)]

    def top(self) -> float:
        """The first pair's."""
        return self.count * self.first.top()

    def ends(self, tail: float) -> tuple[float, float]:
        """The first pair's upper end and the second pair's lower one."""
        return min(self.second.ends(tail)[0], 0.0), max(self.first.ends(tail)[1], 0.0)

    def cells(self, edges: Array) -> LawCells:
        """Second pair below 0, first pair above, the rest as an atom at 0; edges straddle 0."""
        # The cell that holds 0 is split there: the pairs meet at 0.
        at = int(np.searchsorted(edges, 0.0, side="left")) - 1
        high = self.first.cells(np.concatenate([[0.0], edges[at + 1 :]]))
        low = self.second.cells(np.concatenate([edges[: at + 1], [0.0]]))
        atom = 1.0 - self.infinite
        atom -= float(high.p.sum()) + high.above + float(low.p.sum()) + low.below
        lost = float(high.p_error.sum() + low.p_error.sum()) + EPS * (8 + len(edges))
        # What is left of the mass 1 is at 0; all that is not known of the rest is its error.
        atom, doubt = max(atom, 0.0), lost + high.above + low.below

        def joined(left: Array, right: Array, middle: float) -> Array:
            return np.concatenate([left[:-1], [left[-1] + middle + right[0]], right[1:]])

        return LawCells(
            joined(low.p, high.p, atom),
            joined(low.q, high.q, atom),
            joined(low.p_error, high.p_error, doubt),
            joined(low.q_error, high.q_error, doubt),
            low.below,
            high.above,
            max(low.position, high.position),
        )

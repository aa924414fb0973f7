"""The k-fold adaptive experiment, played out in full.

An adversary picks, round after round and from all earlier answers, a pair of neighbouring databases
and a mechanism; the same secret bit decides throughout which database is used. Its *view* is the
sequence of answers. Privacy against it means that the two laws of the view, one for each bit, are
close. Here every view is enumerated, so the divergence is a computed number and not an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither import _checks as check
from dither.errors import ArgumentError
from dither.numeric import exp_lower
from dither.privacy.accounts._account import PrivacyFilter

__all__ = ["GameResult", "Move", "game"]


View = tuple[int, ...]

_VIEWS = 100_000


@dataclass(frozen=True, slots=True)
class Move:
    """One round: the laws of the answer on the two databases, and what the filter is charged.

    Parameters
    ----------
    p, q : sequence of Fraction
        Masses of the answers 0, 1, ...; each sums to 1.
    amount, delta : Fraction
        The charge. That it covers (p, q) is for whoever makes the move to see to.

    Raises
    ------
    ArgumentError
        The masses are not laws of the same answers.

    Examples
    --------
    >>> from fractions import Fraction
    >>> quiet = Move.response(Fraction(1, 10))
    >>> sum(quiet.p) == sum(quiet.q) == 1, quiet.amount
    (True, Fraction(1, 10))
    """

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]
    amount: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        masses = [*self.p, *self.q]
        if not all(isinstance(x, int | Fraction) and 0 <= x <= 1 for x in masses):
            raise ArgumentError("p and q must hold Fractions in [0, 1], so that chances are exact")
        if len(self.p) != len(self.q) or sum(self.p) != 1 or sum(self.q) != 1:
            raise ArgumentError("p and q must be mass functions on the same answers")

    @classmethod
    def response(cls, epsilon: Fraction) -> Move:
        """Randomised response with a rational ratio just below e^epsilon; epsilon in (0, 30]."""
        e = check.exact("epsilon", epsilon, above=0, most=30)
        bound = exp_lower(e)
        # Rounded down, so that the mechanism loses no more than the epsilon that it is charged.
        ratio = max(Fraction(math.floor(bound * 10**6), 10**6), Fraction(1))
        hit = ratio / (1 + ratio)
        return cls((hit, 1 - hit), (1 - hit, hit), e)


@dataclass(frozen=True, slots=True)
class GameResult:
    """Every view of the experiment with its two chances.

    Attributes
    ----------
    views : tuple of (view, p, q)
        Answers, and their chances under the two bits, exact.
    refused : int
        Views that ended because the filter refused.
    """

    views: tuple[tuple[View, Fraction, Fraction], ...]
    refused: int

    def delta(self, epsilon: float) -> float:
        """The larger of both hockey-stick divergences of the view at an epsilon."""
        e = math.exp(epsilon)
        forward = math.fsum(max(0.0, float(p) - e * float(q)) for _, p, q in self.views)
        backward = math.fsum(max(0.0, float(q) - e * float(p)) for _, p, q in self.views)
        return max(forward, backward)

    def largest_loss(self) -> float:
        """The largest log-ratio of any view, infinite where one bit cannot produce it."""
        worst = 0.0
        for _, p, q in self.views:
            if (p == 0) != (q == 0):
                return math.inf
            if p:
                worst = max(worst, abs(math.log(p) - math.log(q)))
        return worst

    def longest(self) -> int:
        """Rounds of the longest view."""
        return max(len(view) for view, _, _ in self.views)


def game(
    account: PrivacyFilter, adversary: Callable[[View], Move | Sequence[Move] | None], rounds: int
) -> GameResult:
    """Play the experiment to the end of every view.

    Parameters
    ----------
    account : PrivacyFilter
        What admits or refuses each charge; refusing ends the view.
    adversary : callable
        From the answers so far to the next move; None stops. A sequence of moves is tried in
        order, and the first that the filter admits is played.
    rounds : int
        The most rounds, at least 1.

    Returns
    -------
    GameResult

    Raises
    ------
    ArgumentError
        There are too many views to enumerate.

    Examples
    --------
    >>> from dither.accounting import PureFilter
    >>> bold = Move.response(Fraction(1, 2))
    >>> played = game(PureFilter(Fraction(1)), lambda view: bold, rounds=5)
    >>> played.longest(), played.largest_loss() <= 1
    (2, True)
    """
    check.whole("rounds", rounds, 1)
    if not callable(adversary):
        raise ArgumentError("adversary must be a function from the answers so far to a move")
    if not (hasattr(account, "admits") and hasattr(account, "charge")):
        raise ArgumentError("account must be a filter, such as PureFilter(Fraction(1))")
    done: list[tuple[View, Fraction, Fraction]] = []
    open_views: list[tuple[View, Fraction, Fraction, PrivacyFilter]] = [
        ((), Fraction(1), Fraction(1), account)
    ]
    refused = 0
    for _ in range(min(rounds, _VIEWS)):
        if not open_views:
            break
        following: list[tuple[View, Fraction, Fraction, PrivacyFilter]] = []
        for view, p, q, spent in open_views:
            wanted = adversary(view)
            moves = [wanted] if isinstance(wanted, Move) else list(wanted or ())
            # The adversary may see refusals: they depend on charges alone, which are the same for
            # both bits.
            move = next((m for m in moves if spent.admits(m.amount, m.delta)), None)
            if move is None:
                refused += bool(moves)
                done.append((view, p, q))
                continue
            after = spent.charge(move.amount, move.delta)
            following += [
                ((*view, answer), p * a, q * b, after)
                for answer, (a, b) in enumerate(zip(move.p, move.q, strict=True))
                # An answer of chance 0 under both laws is no view.
                if a or b
            ]
            if len(following) + len(done) > _VIEWS:
                raise ArgumentError("rounds is too large: the views are too many to enumerate")
        open_views = following
    done += [(view, p, q) for view, p, q, _ in open_views]
    return GameResult(tuple(done), refused)

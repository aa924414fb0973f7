"""The k-fold adaptive experiment, played out in full.

An adversary picks, round after round and from all earlier answers, a pair of neighbouring databases
and a mechanism; the same secret bit decides throughout which database is used. Its *view* is the
sequence of answers. Privacy against it means that the two laws of the view, one for each bit, are
close. Here every view is enumerated, so the divergence is a computed number and not an estimate.

A filter adds up the charges that it is given, and its promise is worth what they are. So the laws
of each move are held against its charge, in what the filter counts, and a charge that they refute
ends the game.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither import _checks as check
from dither.errors import ArgumentError
from dither.numeric import exp_lower, exp_upper
from dither.privacy._makers import gdp
from dither.privacy.accounts._account import PrivacyFilter
from dither.privacy.accounts._filters import GdpFilter, RenyiFilter, ZcdpFilter

__all__ = ["GameResult", "Move", "game"]


View = tuple[int, ...]

_VIEWS = 100_000

_ORDERS = (1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 64.0, 256.0, 1024.0)
"""At which a charge of zCDP is tried."""

_ROUNDING = 1e-9
"""What floats may miss of a divergence: a charge is refuted by more than this."""


@dataclass(frozen=True, slots=True)
class Move:
    """One round: the laws of the answer on the two databases, and what the filter is charged.

    Parameters
    ----------
    p, q : sequence of Fraction
        Masses of the answers 0, 1, ...; each sums to 1.
    amount, delta : Fraction
        The charge, in what the account counts: epsilon, rho, a Rényi divergence or mu. `game` holds
        (p, q) against it.

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


def _refuted(account: PrivacyFilter, move: Move) -> bool:
    """Whether the exact laws of a move show that it loses more than it is charged."""
    return any(
        _loses_more(account, one, other, move.amount, move.delta)
        for one, other in ((move.p, move.q), (move.q, move.p))
    )


def _loses_more(
    account: PrivacyFilter,
    p: Sequence[Fraction],
    q: Sequence[Fraction],
    amount: Fraction,
    delta: Fraction,
) -> bool:
    match account:
        case ZcdpFilter():
            return any(_renyi(p, q, a) > a * float(amount) + _ROUNDING for a in _ORDERS)
        case RenyiFilter():
            return _renyi(p, q, float(account.order)) > float(amount) + _ROUNDING
        case GdpFilter():
            # Gaussian noise of this mu gives every epsilon a delta.
            noise = gdp(amount) if amount else None
            tried = [Fraction(i, 20) for i in range(201)]
            return any(
                float(_beyond(p, q, one)) > (noise.delta(float(one)) if noise else 0) + _ROUNDING
                for one in tried
            )
        case _:
            return _beyond(p, q, amount) > delta


def _beyond(p: Sequence[Fraction], q: Sequence[Fraction], epsilon: Fraction) -> Fraction:
    """The hockey-stick divergence at an epsilon, from below."""
    times = exp_upper(epsilon)
    return sum((max(Fraction(0), a - times * b) for a, b in zip(p, q, strict=True)), Fraction(0))


def _renyi(p: Sequence[Fraction], q: Sequence[Fraction], order: float) -> float:
    """The Rényi divergence of an order."""
    if any(a and not b for a, b in zip(p, q, strict=True)):
        return math.inf
    terms = [
        order * math.log(a) + (1 - order) * math.log(b) for a, b in zip(p, q, strict=True) if a
    ]
    largest = max(terms)
    total = math.fsum(math.exp(term - largest) for term in terms)
    return (largest + math.log(total)) / (order - 1)


def game(
    account: PrivacyFilter,
    adversary: Callable[[View], Move | Sequence[Move] | None],
    rounds: int,
    *,
    trust: bool = False,
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
    trust : bool
        Play moves whose laws show that they lose more than they are charged, to see what becomes of
        the promise.

    Returns
    -------
    GameResult

    Raises
    ------
    ArgumentError
        A move loses more than it is charged, or there are too many views to enumerate.

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
    refused, held = 0, set[Move]()
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
            if not (trust or move in held):
                if _refuted(spent, move):
                    raise ArgumentError(
                        "adversary plays a move whose laws differ by more than it is charged: "
                        "charge what it loses, or pass trust=True to see what that does"
                    )
                held.add(move)
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

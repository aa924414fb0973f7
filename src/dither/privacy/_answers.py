"""What a loss says: epsilon, delta, the trade-off of an attacker's errors, Rényi and the rest.

Everything is taken from certified bounds of delta(epsilon) in each direction; see `_side`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dither import _checks as check
from dither.errors import ArgumentError
from dither.numeric import float_down, float_up, sqrt_lower
from dither.privacy._bound import Bound
from dither.privacy._side import Counted, Side, one_delta, one_epsilon, side, sides
from dither.privacy._tradeoff import one_tpr
from dither.privacy.engines.concentration import concentration
from dither.privacy.engines.grid import Grid, moment_ends
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.either import EitherWay
from dither.privacy.laws.gaussian import GaussianNoise
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.part import Part, gdp_of_variation
from dither.privacy.laws.rationals import Amount, printing_at_least, printing_at_most, root
from dither.privacy.laws.term import EPS

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Answers"]


_APART = 0.25
"""How far apart the epsilons are that engines of a profile are made for."""

_CLOSE = 1e-6
"""A relative width beyond which a point of a profile is given an engine of its own, and within
which the largest of all orders is known. No bound rests on it."""

_SAME = 1e-11
"""A relative width within which an answer is called exact. Both ends are given as they are."""


class Answers:
    """The questions that a `Loss` answers, each with certified bounds."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def parts(self) -> Counted:
            """Parts, and how often each runs."""

        @property
        def slack(self) -> float:
            """A distance in total variation."""

    @property
    def one_sided(self) -> bool:
        """Whether only an upper end of the loss is known to be near the truth."""
        return any(part.one_sided for part, _ in self.parts)

    def epsilon(self, delta: float) -> Bound:
        """The least epsilon such that the whole is (epsilon, delta)-DP.

        Parameters
        ----------
        delta : float
            In [0, 1); 0 where every part is pure.

        Returns
        -------
        Bound
            The upper end as a float.

        Raises
        ------
        ArgumentError
            delta is out of range, or no finite epsilon exists at it.
        """
        target = check.number("delta", delta, least=0, below=1)
        answers: list[tuple[float, float, str]] = []
        for this in sides(self):
            asked = bool(answers) and self.slack == 0 and target > 0
            # What the other direction has already exceeded need not be known any closer.
            if not asked or not this.below(answers[0][0], math.log(target) - 4 * EPS):
                answers.append(one_epsilon(self, this, target))
        return self._worst(answers)

    def delta(self, epsilon: float) -> Bound:
        """The least delta such that the whole is (epsilon, delta)-DP, epsilon >= 0."""
        at = check.number("epsilon", epsilon, least=0)
        answers: list[tuple[float, float, str]] = []
        for this in sides(self):
            # Removal is first, and most often the worse: then a bound of the other is enough.
            least = answers[0][0] if answers and self.slack == 0 else 0.0
            if least == 0 or not this.below(at, math.log(least) - 4 * EPS):
                answers.append(one_delta(self, this, at))
        return self._worst(answers)

    def profile(self, epsilons: Sequence[float]) -> tuple[Bound, ...]:
        """The least delta at each of many epsilons, at less cost than one by one.

        Parameters
        ----------
        epsilons : sequence of float
            Of at least 0, in any order.

        Returns
        -------
        tuple of Bound
            One for each, in their order, and as sound as `delta` gives it. Where the pairs of laws
            are known, as tight too, to six digits.

        Examples
        --------
        >>> from dither import privacy
        >>> [round(d, 6) for d in privacy.gaussian(1.0).profile([0.0, 1.0, 2.0])]
        [0.382925, 0.126937, 0.020924]
        """
        try:
            given = [check.number("epsilons", e, least=0) for e in epsilons]
        except TypeError:
            raise ArgumentError("epsilons must be a sequence of numbers") from None
        ends: dict[float, tuple[float, float, str]] = {}
        for at in sorted(set(given)):
            answers = []
            for this in sides(self):
                # A bound of moments is only good where it was made, and takes little to make.
                near = _APART * round(min(at, 1e15) / _APART) if this.exact else None
                low, high, method = one_delta(self, this, at, near=near)
                if near is not None and high - low > _CLOSE * high:
                    low, high, method = one_delta(self, this, at)
                answers.append((low, high, method))
            found = self._worst(answers)
            ends[at] = (found.lower, found.upper, found.method)
        # A profile falls: no upper end exceeds one to its left, and no lower end one to its right.
        order = sorted(ends)
        tops = np.minimum.accumulate([ends[e][1] for e in order])
        bottoms = np.maximum.accumulate([ends[e][0] for e in reversed(order)])[::-1]
        found_at = {
            e: Bound(min(low, high), high, ends[e][2], one_sided=self.one_sided)
            for e, low, high in zip(order, bottoms.tolist(), tops.tolist(), strict=True)
        }
        return tuple(found_at[e] for e in given)

    def tradeoff(self, fpr: float) -> Bound:
        """The least rate of misses of any attacker whose rate of false alarms is ``fpr``.

        The value is the lower end: what the attacker cannot go below.

        Examples
        --------
        >>> from dither import privacy
        >>> round(privacy.gdp(1.0).tradeoff(0.05), 4)
        0.7405
        """
        caught = self.tpr(fpr)
        return Bound(
            float_down(1 - Fraction(caught.upper)),
            float_up(1 - Fraction(caught.lower)),
            caught.method,
            safe="lower",
            one_sided=caught.one_sided,
        )

    def tpr(self, fpr: float) -> Bound:
        """The largest rate of true alarms of any attacker with false alarms at most ``fpr``."""
        return self._tpr(check.number("fpr", fpr, least=0, most=1), {})

    def advantage(self) -> Bound:
        """max(true alarms - false alarms), the total variation: delta at epsilon = 0."""
        return self.delta(0.0)

    def bayes_risk(self, prior: float) -> Bound:
        """The least chance to err of an attacker with this prior that the unit is in.

        The lower end as a float; at most min(prior, 1 - prior). For either direction,
        prior·(1 - delta(log((1 - prior)/prior))).
        """
        pi = check.number("prior", prior, above=0, below=1)
        # log((1 - prior)/prior): the threshold of the best test of an attacker with that prior.
        at = math.log1p(-pi) - math.log(pi)
        ends = [one_delta(self, s, at) for s in sides(self)]
        high = max(e[1] for e in ends)
        low = max(e[0] for e in ends)
        most, least = (Fraction(pi) * (1 - Fraction(x)) for x in (low, high))
        return Bound(
            float_down(least),
            float_up(most),
            ends[0][2],
            safe="lower",
            one_sided=self.one_sided,
        )

    def reconstruction(self, prior: float) -> Bound:
        """The largest chance to reconstruct, for an attacker whose best blind guess has ``prior``.

        Hayes, Mahloujifar and Balle, "Bounding training data reconstruction in DP-SGD", 2023: the
        blow-up function, the true-alarm rate at a false-alarm rate of ``prior``.
        """
        return self.tpr(check.number("prior", prior, least=0, most=1))

    def renyi(self, order: float) -> Bound:
        """The Rényi divergence of an order above 1, in the worse direction."""
        at = check.number("order", order, above=1, below=1e6)
        self._no_failure("a Rényi divergence")
        c = at - 1
        ends = [_moment_bounds(s, c) for s in sides(self)]
        if not math.isfinite(max(e[1] for e in ends)):
            raise ArgumentError(
                f"no Rényi divergence of order {at:g} is known for this loss; "
                "ask for a lower order, or for epsilon(delta)"
            )
        return Bound(
            max(0.0, max(e[0] for e in ends) / c),
            max(e[1] for e in ends) / c,
            "generating function",
            one_sided=self.one_sided,
        )

    def zcdp(self) -> Bound:
        """A rho such that the whole is rho-zCDP: D_a <= rho·a at every order a.

        The upper end is the sum over parts, or the supremum over all orders where losses are
        bounded. Sampling does not lower it: with rate g, e^L >= g·e^x, x the base's loss, so D_a of
        a sampled Gaussian is at least a·mu²/2 + a·log(g)/(a - 1), and its ratio to a tends to
        mu²/2 as a grows.
        """
        self._no_failure("a zCDP bound")
        # Of a part that is met in either direction the larger rho counts, run by run.
        ways = [(part, count) for part, count in self.parts if isinstance(part, EitherWay)]
        parts = tuple(pair for pair in self.parts if pair not in ways)
        high = _up(sum(count * part.rho() for part, count in parts))
        # Gaussians have the same ratio at every order, so what is left adds to it.
        bounded = tuple((part, count) for part, count in parts if part.tail() < part.rho())
        removals = {s.removal for s in sides(self)}
        found = [concentration(side(bounded, way)) for way in removals] if bounded else []
        known = [ends for ends in found if ends is not None]
        low = printing_at_most(_tail(self.parts) / 2)
        if known and len(known) == len(found):
            others = sum(k * part.rho() for part, k in parts if part.tail() >= part.rho())
            high = min(high, _up(Fraction(max(ends[1] for ends in known)) + others))
            # Gaussians have the same ratio at every order.
            flat = [k * part.rho() for part, k in parts if isinstance(part, GaussianNoise)]
            low = max(low, printing_at_most(Fraction(max(ends[0] for ends in known)) + sum(flat)))
        for part, count in ways:
            least, most = _rho_ends(part)
            low = max(low, printing_at_most(count * least))
            high = _up(Fraction(high) + count * most) if math.isfinite(high + most) else math.inf
        if not math.isfinite(high):
            raise ArgumentError(
                "no finite rho is known for this loss; ask for epsilon(delta) instead"
            )
        if low >= high * (1 - _SAME):
            return Bound(min(low, high), high, "exact: the sum over parts, reached at large orders")
        if known and len(known) == len(found) and low >= high * (1 - _CLOSE):
            return Bound(
                min(low, high), high, "the largest of all orders", one_sided=self.one_sided
            )
        for s in sides(self):
            # At the first the ratio is E[L], but for 1e-6 of it: K is convex, so K(c) >= c·E[L].
            orders = [1e-6, 1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 30.0]
            if all(isinstance(t, AtomTerm | LaplaceTerm) for t in s.lower_terms):
                orders = [1e-6, *np.geomspace(1e-3, 1e2, 120).tolist()]
            for c in orders:
                low = max(low, _moment_bounds(s, c)[0] / (c * (c + 1)))
        return Bound(
            min(low, high),
            high,
            "upper bound: sum over parts; lower: the tail and some orders",
            one_sided=self.one_sided,
        )

    def gdp(self) -> Bound:
        """A mu such that the whole is mu-GDP: above by the parts, below by tail and variation.

        Sampling does not lower it. A total of Gaussians on samples of rates g_i has
        Pr[L > s] >= Π g_i·Pr[N(mu²/2, mu²) > s - Σ log g_i] with mu² the unsampled total, and so
        exceeds the tail of every Gaussian of a smaller mu from some s on; no smaller mu holds at
        all errors. What sampling buys shows in epsilon(delta) and in tradeoff(fpr).
        """
        self._no_failure("a Gaussian bound")
        square = sum(count * part.gdp() ** 2 for part, count in self.parts)
        if not math.isfinite(square):
            raise ArgumentError(
                "no finite mu is known for this loss; ask for tradeoff(fpr) instead"
            )
        high, low = _up(root(square)), printing_at_most(sqrt_lower(_tail(self.parts)))
        if all(isinstance(part, GaussianNoise) for part, _ in self.parts):
            return Bound(min(low, high), high, "closed form (Gaussian)")
        if low >= high * (1 - _SAME):
            return Bound(
                min(low, high), high, "exact: the unsampled total, whose tail a sample keeps"
            )
        # A smaller mu would not reach the total variation that was found.
        low = max(low, gdp_of_variation(self.delta(0.0).lower))
        method = "upper bound: sum over parts; lower: the tail and the total variation"
        return Bound(max(0.0, min(low, high)), high, method, one_sided=self.one_sided)

    def mean(self) -> float:
        """E[L], the KL divergence, in the worse direction; a plain float, not an interval."""
        if not all(_known(part) for part, _ in self.parts):
            raise ArgumentError("the mean loss is known only where every part's pair is")
        self._no_failure("a mean loss")
        rest = tuple(pair for pair in self.parts if not isinstance(pair[0], EitherWay))
        ways = [(part.part, k) for part, k in self.parts if isinstance(part, EitherWay)]
        whole = max(sum(t.mean() for t in side(rest, s.removal).lower_terms) for s in sides(self))
        return whole + sum(k * max(p.term(way, 1).mean() for way in (True, False)) for p, k in ways)

    def loss_distribution(
        self, *, removal: bool = True
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Points and masses of a discretised loss under P, for pictures and not for guarantees."""
        if not all(_known(part) for part, _ in self.parts):
            raise ArgumentError("the law of the loss is known only where every part's pair is")
        this = side(self.parts, removal)
        if not self.parts:
            return np.zeros(1), np.ones(1)
        if this.infinite >= 1:
            return np.zeros(0), np.zeros(0)
        # Next to no tilt: the law itself, of which a picture shows nothing below 1e-14.
        grid = Grid(
            this.lower_terms,
            log_delta=None,
            epsilon=0.0,
            points=1 << 13,
            tilt=1e-9,
        )
        losses, masses = grid.upper.law()
        kept = masses > 1e-14  # as a picture shows them
        return losses[kept], masses[kept]

    def _tpr(self, fpr: float, starts: dict[bool, float]) -> Bound:
        """As `tpr`; ``starts`` keeps where the search ended, for the next loss like it."""
        return self._worst(one_tpr(self, s, fpr, starts) for s in sides(self))

    def _worst(self, answers: Iterable[tuple[float, float, str]]) -> Bound:
        found = list(answers)
        return Bound(
            max(a[0] for a in found),
            max(a[1] for a in found),
            max(found, key=lambda a: a[1])[2],
            one_sided=self.one_sided,
        )

    def _no_failure(self, what: str) -> None:
        if self.slack > 0 or any(s.fails for s in sides(self)):
            raise ArgumentError(
                f"{what} does not exist: the loss is infinite with positive probability; "
                "ask for epsilon(delta)"
            )


def _moment_bounds(this: Side, c: float) -> tuple[float, float]:
    at = np.array([c])
    low = high = 0.0
    exact = this.exact
    for term in this.lower_terms:
        a, b = moment_ends(term, at)
        low += a
        high += b
    # The instance's moments are a lower end of a class; from above only a bound of all serves.
    if not exact:
        if this.moments is None:
            return low, math.inf
        high = sum(moment_ends(term, at)[1] for term in this.moments)
    return low, high


def _known(part: Part) -> bool:
    """Whether its pair is known, in either direction."""
    return part.part.exact if isinstance(part, EitherWay) else part.exact


def _rho_ends(part: EitherWay) -> tuple[Fraction, Amount]:
    """Ends of the least rho of a part that is met in either direction."""
    one: Counted = ((part.part, 1),)
    found = [concentration(side(one, way)) for way in (True, False)]
    known = [ends for ends in found if ends is not None]
    if len(known) < len(found):
        return Fraction(0), part.rho()
    low, high = (max(ends[i] for ends in known) for i in (0, 1))
    return Fraction(low), min(Fraction(high), part.rho())


def _tail(parts: Counted) -> Fraction:
    return sum((count * part.tail() for part, count in parts), Fraction(0))


def _up(amount: Amount) -> float:
    return printing_at_least(Fraction(amount)) if math.isfinite(amount) else math.inf

"""One direction of a loss: its terms, and certified bounds of delta at any epsilon, and back.

Removal compares a table with its neighbour that lacks one unit; addition compares the other way
round. They are kept apart here, and only `Answers` takes the worse. For negative epsilon the
identity delta_PQ(-e) = 1 - e^{-e} + e^{-e}·delta_QP(e) leads to the swapped pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from dither._format import loss_text
from dither.errors import ArgumentError
from dither.privacy._masses import infinite, largest, missed, plus
from dither.privacy._terms import Counted, merged, sampled_gaussian, terms_of
from dither.privacy.engines.choice import (
    NOTHING,
    Chernoff,
    ProfileEngine,
    distance,
    engine,
    settles,
)
from dither.privacy.engines.grid import Grid
from dither.privacy.engines.search import invert
from dither.privacy.engines.vectors import VectorProfile
from dither.privacy.laws.classes import BoundedRange, Concentrated, MomentTerm
from dither.privacy.laws.gaussian import GaussianTerm
from dither.privacy.laws.rationals import Amount, Ends, printing_at_least, printing_at_most, total
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled.gaussians import SampledGaussiansTerm
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.term import EPS, Term

__all__ = [
    "PARAMETERS",
    "Composed",
    "Counted",
    "Side",
    "one_delta",
    "one_epsilon",
    "side",
    "sides",
]


_MANY = 10**9
"""Repetitions whose rounding may outweigh what they add: zCDP, which adds up, is held beside."""

_UNKNOWN = math.log(0.01)
"""A log(delta) whose lower end is below this and whose upper one is above is asked otherwise."""

_RANGES = "bounded ranges as if chosen adaptively (the optimum of fixed ones is not computed)"

_WIDE = 1.0
"""A width of log(delta) from which a bound of the moments may be closer than an engine's."""

_DENSE = 2.0**-1022
"""Below it doubles do not round to a part of themselves."""

_CLOSE = 2e-14
"""A width at which the search for an epsilon ends; both of its ends are proved by themselves."""

PARAMETERS = 2e-12
"""Relative slack on delta for the rounding of parameters that were read into doubles.

It is what losses of ordinary size need. With mu the deviation of the loss and a = mu/2 -
epsilon/mu, d log(delta)/d log(mu) = mu·phi(a)/delta, which is at most about |a|·(mu + |a|); and
d log(delta)/d log(epsilon) is no larger. See `Side.rounding`, which grows with mu. With mu and |a|
of up to 10 that is 200·EPS, 5e-14; logarithms of up to 745, and their sums, add 4e-13.
"""


class Composed(Protocol):
    """What is asked of a loss: its parts, and how far their pairs may be from the true ones."""

    @property
    def parts(self) -> Counted:
        """Parts, and how often each runs."""
        ...

    @property
    def slack(self) -> float:
        """A distance in total variation."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """Certified bounds near one target, as functions of epsilon, and how they were found."""

    lower: Callable[[float], float]
    upper: Callable[[float], float]
    start: float
    method: str


class Side:
    """One direction of a total.

    Of a class there may be pairs that dominate, and bounds of the moments. Each is a true statement
    of its own: all that is asked is answered by both, and the better one holds.

    Attributes
    ----------
    upper_terms : list of Term, or None
        The laws of the dominating pairs; None where one is not known.
    moments : list of Term, or None
        What bounds the moments.
    infinite, infinite_of_moments : float
        What either leaves out, such as infinite losses: it is added to what that one says of the
        rest. Of (epsilon, delta)-DP mechanisms the pairs have some, and moments none where they are
        known.
    least : float
        The less of both: no smaller delta is certified. 0 where ``whole``: the total is zCDP.
    """

    def __init__(self, parts: Counted, removal: bool) -> None:
        self.parts, self.removal = merged(parts), removal
        self.exact = all(part.exact for part, _ in self.parts)
        if self.exact:
            self.upper_terms: list[Term] | None = terms_of(self.parts, removal)
            self.lower_terms: list[Term] = self.upper_terms
            smooth = all(term.smooth for term in self.lower_terms)
            self.moments = self.lower_terms if smooth else None
        else:
            self.lower_terms = terms_of(merged(_instances(self.parts, removal)), removal)
            stronger = [(part.dominating(), count) for part, count in self.parts]
            known = tuple((part, count) for part, count in stronger if part is not None)
            # One part without a dominating pair leaves the total without one.
            complete = len(known) == len(stronger)
            self.upper_terms = terms_of(merged(known), removal) if complete else None
            self.moments = self._moments()
        # A Gaussian loss of mean m has the variance 2m.
        self.deviation = math.sqrt(2 * sum(t.most_mean for t in self.lower_terms))
        # Where there are no pairs, what moments leave out is all that is known.
        pairs = self.upper_terms if self.upper_terms is not None else self.moments or []
        bounded = self.moments if self.moments is not None else pairs
        self.fails = any(t.infinite > 0 for t in bounded)
        self.infinite, self.infinite_of_moments = missed(pairs), missed(bounded)
        self.least = min(self.infinite, self.infinite_of_moments)
        # What a list of outcomes leaves out zCDP knows, where it is finite: nothing fails then.
        self.whole = self.least > 0 and math.isfinite(self.rho)
        if self.whole:
            self.least = 0.0
        # A lower end counts what is infinite for certain, and nothing that was left out.
        self.infinite_lower = infinite(self.lower_terms, up=False)
        # A Gaussian's losses have no end.
        ends = not (self.exact and any(isinstance(t, GaussianTerm) for t in self.lower_terms))
        self.tops = self._tops(removal) if ends else None
        least, most = largest(self.lower_terms)[0], math.inf
        if self.tops is not None:
            least, most = printing_at_most(self.tops[0]), printing_at_least(self.tops[1])
        elif self.upper_terms is not None:
            most = largest(self.upper_terms)[1]
        self.top_lower, self.top = least, most

    def _tops(self, removal: bool) -> Ends | None:
        """Ends of the largest finite loss, of kinds that are taken together in doubles."""
        together = [t for t in self.lower_terms if isinstance(t, SampledGaussiansTerm)]
        parts = [p for p in self.parts if not (together and self.exact and sampled_gaussian(p[0]))]
        tops: list[tuple[Ends | None, int]] = []
        for term in together if self.exact else []:
            known = term.top_ends()
            tops.append((known and (Fraction(known[0]), Fraction(known[1])), 1))
        return total([*tops, *((part.top(removal), count) for part, count in parts)])

    def _moments(self) -> list[Term] | None:
        found = []
        for part, count in self.parts:
            term = part.moment(self.removal, count)
            if term is None or (part.exact and not term.smooth):
                return None
            found.append(term)
        return found

    @lru_cache(maxsize=64)  # noqa: B019 - sides live in a cache of their own
    def answer(self, log_delta: float | None, epsilon: float | None) -> Answer:
        """Engines for a target."""
        bound = None if epsilon is None else self._bound(epsilon)
        # Below every double already: no engine could say more.
        if bound is not None and bound.bounds(bound.start)[1] <= NOTHING:
            low: ProfileEngine = bound
        else:
            tilt = None if bound is None else bound.tilt
            low = engine(self.lower_terms, log_delta=log_delta, epsilon=epsilon, tilt=tilt)
        # Each with what it leaves out.
        uppers: list[tuple[ProfileEngine, float]] = []
        unsaid = self.infinite_of_moments
        if self.exact:
            uppers.append((low, self.infinite))
        elif self.upper_terms is not None:
            pairs = engine(self.upper_terms, log_delta=log_delta, epsilon=epsilon)
            uppers.append((pairs, self.infinite))
        # A grid's interval is wide in far tails, where a bound of the moments may be closer.
        wide = not self.exact or isinstance(low, Grid)
        if wide and self.moments:
            profile = Chernoff(self.moments, log_delta=log_delta, epsilon=epsilon)
            uppers.append((profile, unsaid))
        elif bound is not None and bound is not low:
            ends = low.bounds(bound.start)
            # Far in the tail of tiny losses a contour may not be settled by any precision.
            if not ends[1] - ends[0] <= _WIDE:
                uppers.append((bound, unsaid))
        many = sum(count for _, count in self.parts) > _MANY
        if (many or self.whole) and math.isfinite(rho := self.rho):
            whole: list[Term] = [MomentTerm(Concentrated(printing_at_least(Fraction(rho))), 1)]
            rest = 0.0 if self.whole else unsaid
            uppers.append((Chernoff(whole, log_delta=log_delta, epsilon=epsilon), rest))
        starts = [u.start for u, _ in uppers if math.isfinite(u.start)]
        names = list(dict.fromkeys(u.name for u, _ in uppers))
        if low.name not in names:
            names.append(low.name + " from below")
        if any(isinstance(part, BoundedRange) for part, _ in self.parts):
            names.append(_RANGES)

        # Both ends of a place are asked for, one after the other, most often of one engine.
        kept: dict[tuple[int, float], tuple[float, float]] = {}

        def bounds(of: ProfileEngine, e: float) -> tuple[float, float]:
            found = kept.get((id(of), e))
            if found is None:
                if len(kept) > 64:
                    kept.clear()
                found = kept[id(of), e] = of.bounds(e)
            return found

        def upper(e: float) -> float:
            found = [(bounds(u, e)[1], rest) for u, rest in uppers]
            # A nan has proved nothing; without any bound delta is at most 1.
            known = [(plus(x, rest), x) for x, rest in found if not math.isnan(x)]
            best, finite = min(known, default=(0.0, 0.0))
            # Each statement with what it leaves out; the least of true ones is true.
            return best + self.rounding(finite)

        def lower(e: float) -> float:
            found = bounds(low, e)[0]
            found = -math.inf if math.isnan(found) else found
            if uppers and isinstance(uppers[0][0], VectorProfile):
                # Of all vectors, as the class is: both of its ends are about the worst of them.
                found = max(found, bounds(uppers[0][0], e)[0])
            return plus(found, self.infinite_lower) - self.rounding(found)

        return Answer(lower, upper, min(starts, default=0.0), ", ".join(names))

    def _bound(self, epsilon: float) -> Chernoff | None:
        """A quick bound of the moments of samples: of their tails no engine has a closed form."""
        kinds = SampledGaussianTerm | SampledGaussiansTerm | SampledLineTerm
        sampled = [isinstance(term, kinds) for term in self.lower_terms]
        if not (self.exact and self.moments and any(sampled)):
            return None
        if self._once:
            return None
        return Chernoff(self.moments, log_delta=None, epsilon=epsilon)

    @property
    def _once(self) -> bool:
        """Whether it is one run, of which closed forms take far less time than moments."""
        return len(self.lower_terms) == 1 and self.lower_terms[0].count == 1

    def rounding(self, log_delta: float) -> float:
        """Slack on log(delta) for an epsilon and parameters that err in their last places.

        The deviation is that of a Gaussian whose mean loss is at least that of the real-valued
        noises; |a| is at most sqrt(2·log(1/delta)), up to what a factor of delta is worth.
        """
        a = 2 + math.sqrt(2 * abs(log_delta)) if math.isfinite(log_delta) else 0.0
        return max(PARAMETERS, 4 * EPS * a * (self.deviation + a))

    @cached_property
    def rho(self) -> Amount:
        """What concentration says of the total; exact, so that of many parts it takes a while."""
        return sum(count * part.rho() for part, count in self.parts)

    @cached_property
    def distance(self) -> float:
        """A quick upper bound of delta(0); infinity where there is none."""
        if self.upper_terms is None:
            return math.inf
        finite = distance(self.upper_terms)
        if not 0 < finite < math.inf:
            return self.infinite if finite == 0 else math.inf
        off = self.rounding(math.log(finite))
        if off > 1:
            # Losses so large that the last places of their parameters decide.
            return math.inf
        return (self.infinite + finite * math.exp(off)) * (1 + 4 * EPS)

    def sketch(self, epsilon: float) -> float | None:
        """A quick upper bound of log(delta) by moments; None where there are none."""
        if self.moments is None:
            return None
        found = Chernoff(self.moments, log_delta=None, epsilon=epsilon).bounds(epsilon)[1]
        return plus(found, self.infinite_of_moments) + self.rounding(found)

    def apart(self, epsilon: float) -> float:
        """A lower bound of log(delta): to leave out all terms but one is post-processing."""
        found = -math.inf
        for term in self.lower_terms if len(self.lower_terms) > 1 else []:
            log_one = engine([term], epsilon=epsilon).bounds(epsilon)[0]
            if not math.isnan(log_one):
                found = max(found, min(log_one, 0.0) - self.rounding(log_one))
        return found

    def below(self, epsilon: float, log_delta: float) -> bool:
        """Whether this direction's delta is easily shown to be below a target."""
        if not self.exact or self.infinite > 0 or self.upper_terms is None:
            return False
        # No finite loss is above: and nothing is infinite here.
        if epsilon >= self.top:
            return True
        if self._once:
            return False
        kinds = SampledGaussianTerm | SampledGaussiansTerm | SampledLineTerm
        if not any(isinstance(term, kinds) for term in self.upper_terms):
            return False
        if not all(term.smooth for term in self.upper_terms):
            return False
        if self.distance <= math.exp(log_delta) * (1 - EPS * (4 + abs(log_delta))):
            return True
        # Which is more than the target, a logarithm of up to 745, was rounded by.
        log_delta -= self.rounding(log_delta)
        return settles(self.upper_terms, epsilon=epsilon, log_delta=log_delta)


def _instances(parts: Counted, removal: bool) -> Counted:
    found = [(part.instance_for(removal), count) for part, count in parts]
    return tuple((part, count) for part, count in found if part is not None)


@lru_cache(maxsize=256)
def side(parts: Counted, removal: bool) -> Side:
    """The direction's laws, kept for the next question."""
    return Side(parts, removal)


def sides(loss: Composed) -> list[Side]:
    """Removal and addition, or one of them where both are the same."""
    both = (True,) if all(part.symmetric for part, _ in loss.parts) else (True, False)
    return [side(loss.parts, removal) for removal in both]


def other(loss: Composed, this: Side) -> Side:
    """The swapped direction."""
    if all(part.symmetric for part, _ in loss.parts):
        return this
    return side(loss.parts, not this.removal)


def _slacked(loss: Composed, epsilon: float) -> float:
    """slack·(1 + e^epsilon), rounded up: a unit in the exponential's last place, 3 operations."""
    if loss.slack == 0:
        return 0.0
    return loss.slack * (1 + math.exp(epsilon)) * (1 + 4 * EPS) if epsilon < 709 else math.inf


def one_delta(
    loss: Composed, this: Side, at: float, *, near: float | None = None
) -> tuple[float, float, str]:
    """Bounds of one direction's delta at any real epsilon.

    They may come from an engine made for an epsilon near by: as sound, and less tight.
    """
    if at < 0:
        swapped = None if near is None else -near
        low, high, method = one_delta(loss, other(loss, this), -at, near=swapped)
        if any(part.unlike for part, _ in loss.parts):
            # The other direction's lower end is that of another pair.
            low = 0.0
        # The module's identity, with at < 0.
        rest, scale = -math.expm1(at), math.exp(at)
        low, high = rest + scale * low, rest + scale * high
        # Both summands are positive, each with a unit in its last place; 3 operations.
        return max(0.0, low * (1 - 4 * EPS)), min(1.0, high * (1 + 4 * EPS)), method
    extra = _slacked(loss, at)
    # Above the largest finite loss only what is infinite is left.
    most = this.infinite if at >= this.top else 1.0
    if at >= this.top and this.infinite <= this.infinite_of_moments:
        # Only what is infinite is left; it is as stated, not a logarithm's exponential.
        lower, upper, method = this.infinite_lower - extra, this.infinite, "largest loss"
    else:
        found = this.answer(None, at if near is None else max(near, 0.0))
        low, high, method = min(found.lower(at), 0.0), min(found.upper(at), 0.0), found.method
        if low <= _UNKNOWN < high:
            low = max(low, this.apart(at))
        lower = math.exp(low) * (1 - EPS * (4 + abs(low))) - extra if low > -745 else -extra
        # e^-745 is below the least double.
        upper = 5e-324 if high > -math.inf else 0.0
        if high > -745:
            upper = math.exp(high) * (1 + EPS * (4 + abs(high)))
        # Doubles this small are whole multiples of the least one: two roundings, by half of it or
        # a whole one.
        if lower < _DENSE:
            lower -= 1e-323
        if 0 < upper < _DENSE:
            upper += 1e-323
        # Where moments say less than that chance of failure: they may.
        upper = min(upper, most)
    if extra > 0:
        upper = (upper + extra) * (1 + 2 * EPS)
    # Rounding must not put the lower end above the upper one.
    return min(max(0.0, lower), upper, 1.0), min(upper, 1.0), method


def one_epsilon(loss: Composed, this: Side, target: float) -> tuple[float, float, str]:
    """Bounds of one direction's least epsilon at a delta."""
    ceiling = this.top
    if target == 0 and math.isfinite(ceiling) and not this.infinite and not loss.slack:
        return max(0.0, this.top_lower), max(0.0, ceiling), "largest loss"
    # slack·(1 + e^epsilon) is at least twice the slack, whatever epsilon is.
    if target == 0 or target < this.least + 2 * loss.slack:
        raise ArgumentError(_too_small(loss, this))
    if this.distance + _slacked(loss, 0.0) * (1 + 2 * EPS) <= target:
        return 0.0, 0.0, "sum of total variations"
    log_target = math.log(target)
    # Logarithms of numbers of up to 2^±1074, and of sums, are off by 3 halves of EPS of theirs.
    off = 3 * EPS * (1 + 745)
    found = this.answer(log_target, None)

    def upper(e: float) -> float:
        value, extra = found.upper(e), _slacked(loss, e)
        return float(np.logaddexp(value, math.log(extra))) + off if extra > 0 else value

    def lower(e: float) -> float:
        value, extra = found.lower(e), _slacked(loss, e)
        if extra == 0 or value < -745:
            return value if extra == 0 else -math.inf
        rest = math.exp(value) * (1 - EPS * (4 + abs(value))) - extra
        return math.log(rest) - off if rest > 0 else -math.inf

    # At the largest finite loss, delta is what is infinite.
    reached = math.isfinite(ceiling) and this.infinite + _slacked(loss, ceiling) <= target
    start = min(found.start, ceiling)
    # Moved to the safe side by what logarithms round: the end that is found needs no more.
    high = invert(upper, log_target - off, start, above=True, tiny=_CLOSE)
    if reached:
        high = min(high, ceiling)
    # No finite epsilon was proved: none is named.
    if not math.isfinite(high):
        raise ArgumentError(
            "delta is too small for any finite epsilon that could be certified; ask for a larger "
            "delta" + (" or truncate less" if loss.slack > 0 else "")
        )
    # From the upper end downwards: the lower bound may be tight only near the target.
    low = invert(lower, log_target + off, high, above=False, tiny=_CLOSE)
    if low <= 0 < high and loss.slack == 0:
        # An engine that is made for a target which is nowhere reached may be wide at 0.
        _, whole, method = one_delta(loss, this, 0.0)
        if whole <= target:
            return 0.0, 0.0, method
    return min(low, high), high, found.method


def _too_small(loss: Composed, this: Side) -> str:
    """Which delta would do, and why no smaller one."""
    least = this.least + 2 * loss.slack
    said = "delta is too small for any finite epsilon: "
    if loss.slack > 0:
        said += f"a sample is cut with a chance of up to {loss_text(loss.slack, 3)}, and "
        if least >= 1:
            return said + "no delta below 1 covers that: truncate less"
        return said + f"that takes a delta above {_above(least)}: truncate less, or allow more"
    if this.least >= 1:
        return said + "the loss is infinite whatever comes out"
    if this.least > 0:
        return said + f"it must be at least {_above(least)}, the chance of an infinite loss"
    return said + "it must be above 0"


def _above(value: float) -> str:
    """The shortest decimal that is at least the value and close to it."""
    for digits in range(6, 17):
        text = f"{value:.{digits}g}"
        # What is said may be a little above; any decimal that is not below would do.
        if value <= float(text) <= value * (1 + 1e-9):
            return text
    return repr(value)

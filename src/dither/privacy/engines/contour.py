"""The privacy profile by quadrature of the loss's generating function on a vertical line.

For c > 0 with M(c) = E[e^{cL}; L < infinity] finite ::

    delta(epsilon) = 1/(2·pi·i)·∫ M(t)·e^{-t·epsilon}/(t(1+t)) dt   over Re t = c

Errors, all charged:

* *Aliasing.* The trapezoid sum of step D equals Σ_j delta(epsilon + jP)·e^{cjP} over all integers
  j, with P = 2·pi/D (Poisson summation). Every term is at least 0, so the sum is at least delta.
  The terms j != 0 are bounded from above by Chernoff's bound at other tilts.
* *Truncation.* Beyond u the sum is at most M(c)e^{-c·epsilon}/(pi·u)·sup_{w >= u}|M(c+iw)/M(c)|,
  and each law proves its own bound of that supremum (`Term.fade`, `Term.curvature`). Where their
  product does not become small, there is no contour.
* *Rounding and inner quadrature.* Each law states how far its value may be off; the engine
  charges the sum of |terms|·(exp(slack) - 1).

*Smoothing.* Atoms, and few repetitions of a density, do not fade. Then a Gaussian loss G of a small
mu = s is composed with L, whose factor fades as e^{-s²u²/2}. Leaving G out is post-processing, so
delta can only grow: the upper end is sound as it is. It grows by E v(L - epsilon), where, with
d = y/s, by 1 - e^{-x} <= x on either side of 0 ::

    0 <= v(y) <= s·psi(|d| - s/2),   psi(t) = phi(t) - t·Phi(-t) <= phi(t)/(1 + t²) for t >= 0

For s <= 0.05 and |d| <= 400 that is at most (1 + s)·s·phi(d), and beyond it is below e^{-70000}.
E phi((L - epsilon)/s) is found on the same line, from the same nodes: phi(y/s) has the transform
s·e^{s²t²/2}, its trapezoid sum too has aliases of one sign only, and what is cut off beyond u is
at most M(c)·e^{-c·epsilon}·e^{-s²u²/2}/(pi·s²·u)·s, so that s times it is what delta itself lost.
The lower end is what is left. The interval's width is of second order in s.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from dither.privacy.engines.search import LOOSE, best_tilt, log_kappa
from dither.privacy.laws.gaussian import GaussianTerm
from dither.privacy.laws.many_atoms import joined
from dither.privacy.laws.term import EPS, Array, Complex, Term

__all__ = ["Contour"]


_TOLERANCE = 1e-13
"""What truncation and aliasing may each add, relative to delta; what they add is charged."""

# The saddle's line cancels least, a lower one has aliases that are easier to bound.
_LINES = (1.0, 0.6, 0.4)
"""Where the line may lie, as parts of the saddle."""

_MOST = 60_000
"""Nodes beyond which another engine is quicker."""

_EASY = 4e3
"""Complex exponentials that take no longer than a closer bound of what is cut beyond them."""

_DEAREST = 6e6
"""Complex exponentials beyond which another engine is quicker, by default."""

_ALLOWANCE = 8
"""How many times more nodes a smoothed contour may take."""

_WIDEST = 0.05
"""The largest smoothing for which its price is proved."""

_FACTORS, _WIDER = (1.0, 2.5, 6.0), (15.0, 40.0, 100.0, 250.0)
"""How many times wider than one likes the smoothing may be; and where a grid is wider still."""

_MANY = 30
"""Kinds from which it is: it errs by as much for each."""

_FADED = 9.5
"""Deviations after which a Gaussian factor is below the tolerance, with room to spare."""


_NOTHING = -50.0
"""Logarithms of parts of the largest node's modulus from which nodes are left out, and charged."""

_ASKED = 2
"""Tilts on either side of which aliases are bounded: two, so that one holds nearer and further."""

_ROW = 64
"""Summands of one plain sum; sums of rows are then added without error."""


def _added(values: Array) -> float:
    """Σ values, off by at most _ROW roundings of Σ |values|."""
    whole = len(values) // _ROW * _ROW
    rows = values[:whole].reshape(-1, _ROW).sum(axis=1)
    return math.fsum([*rows.tolist(), *values[whole:].tolist()])


def _fades(term: Term) -> bool:
    """Whether it has a bound of its own of what is cut."""
    kind = type(term)
    return kind.fade is not Term.fade or kind.curvature is not Term.curvature


class Contour:
    """A certified two-sided profile of the finite part of the loss.

    Parameters
    ----------
    terms : sequence of Term
        All smooth.
    log_delta, epsilon : float or None
        Where the profile will be asked: near this delta, or near this epsilon.
    log_size : float, optional
        log(delta) there, where it is known better than by Chernoff's bound; what is cut is small
        relative to it.
    smoothed : bool
        Compose with a small Gaussian, so that the quadrature ends.
    dearest : float
        Complex exponentials beyond which it is not worth it.
    tilt : (float, float), optional
        What `best_tilt` says of the target, where that is known.

    Attributes
    ----------
    certified : bool
        False where truncation could not be bounded; nothing else may then be used.
    """

    name = "contour quadrature"

    def __init__(
        self,
        terms: Sequence[Term],
        *,
        log_delta: float | None,
        epsilon: float | None,
        log_size: float | None = None,
        smoothed: bool = False,
        dearest: float = _DEAREST,
        tilt: tuple[float, float] | None = None,
    ) -> None:
        self._dearest = dearest
        self.terms = joined(terms)
        self.certified = False
        self.smoothing = 0.0
        reach = min(t.reach for t in self.terms)
        # Any tilt will do, so that one of what the moments are about is enough.
        c, value = tilt or best_tilt(
            self._sketch, log_delta=log_delta, epsilon=epsilon, reach=reach
        )
        if log_delta is not None:
            self.start, size = value, log_delta
        else:
            self.start, size = float(epsilon or 0.0), value
        size = size if log_size is None else log_size
        # Without a place or a size there is nothing to be small against.
        if not math.isfinite(self.start) or not math.isfinite(size):
            return
        last = None
        # A heavy tail (sparse samples) has no moments far beyond the saddle, so aliases there are
        # only proved small by a long period; a lower line does as well with a shorter one.
        widths: list[tuple[float, ...]] = [_FACTORS]
        if smoothed and len(terms) >= _MANY:
            # A lower line before a wider Gaussian.
            widths += [(factor,) for factor in _WIDER]
        for factors, part in itertools.product(widths, _LINES):
            self.c = c * part
            last = self._prepare(size, factors if smoothed else ())
            # The first line that has a proof is taken; which it is matters for time alone.
            if last is not None:
                break
        if last is None:
            return
        c = self.c
        u = self.step * np.arange(last + 1)
        base = 0.0
        value_at: Array = np.zeros(last + 1, dtype=complex)
        slack: Array = np.zeros(last + 1)
        for term in self.terms:
            b, v, wrong = term.along(c, u)
            # Logarithms add up, and so do their slacks: a product's relative errors multiply.
            base, value_at, slack = base + b, value_at + v, slack + wrong
        t = c + 1j * u
        self.t = t
        self.base, self.rough = base, self._blur(c)
        self.exponent = value_at - np.log(t) - np.log1p(c + 1j * u)
        # The node on the real line counts once, every other one for its conjugate too.
        self.exponent[0] -= math.log(2)
        bulk = np.abs(value_at) + abs(base) + 8.0
        self.slack = slack + 6 * EPS * bulk
        # Beyond 1e15 a base's own rounding is of the size of 1.
        self.certified = bool(np.isfinite(self.exponent.real).all() and base < 1e15)
        if self.certified:
            self._leave_out()

    def _leave_out(self) -> None:
        """What nodes of no weight may add, at most, in parts of the largest one's modulus.

        How an epsilon turns them adds to their slack, but moduli change alike at all nodes.
        """
        level = self.exponent.real
        size = level + self.slack - float(level.max())
        kept = size > _NOTHING
        rest = np.exp(size[~kept])
        self._rest, self._rest_priced, self._farthest = float(rest.sum()), 0.0, 0.0
        if rest.size:
            away = self.t[~kept]
            self._rest_priced = float((rest * np.abs(self._unkernelled(away))).sum())
            self._farthest = float(np.abs(away).max())
        self.t, self.exponent, self.slack = self.t[kept], self.exponent[kept], self.slack[kept]

    def _prepare(self, log_size: float, factors: Sequence[float]) -> int | None:
        """The period and the last node on the line Re t = self.c; None where there are too many.

        By a Gaussian of the first of these widths that has few enough, if any are given.
        """
        c = self.c
        if not (factors or any(map(_fades, self.terms))):
            return None
        # A saddle's spread from the second difference of the exponent.
        step = 1e-2 * c
        k = self._moment(np.array([c - step, c, c + step]))
        spread = math.sqrt(
            max((k[0] + k[2] - 2 * k[1]) / step**2, 0.0) + 1 / c**2 + 1 / (1 + c) ** 2
        )
        if not self._choose_period(spread, log_size):
            return None
        if not factors:
            last = self._choose_end(float(k[1]), log_size, _MOST)
            return last if last is not None and self._price_of(last) <= self._dearest else None
        # Off by about s²·(1 + c) in epsilon: some billionths of it, where nodes allow.
        wanted = math.sqrt(3e-8 * max(self.start, 1e-3 * spread) / (1 + c))
        most = _MOST * _ALLOWANCE
        sharp = self.terms
        # A wider Gaussian fades sooner and costs width, which is charged in either case.
        for factor in factors:
            self.smoothing = max(factor * wanted, _FADED * 1.05 / (self.step * most))
            # Wider is not covered by the bound of v.
            if self.smoothing > _WIDEST:
                break
            self.terms = [*sharp, GaussianTerm(self.smoothing**2)]
            last = self._choose_end(float(k[1]), log_size, most)
            if last is not None and self._price_of(last) <= self._dearest:
                return last
        self.terms = sharp
        return None

    def _blur(self, c: float) -> float:
        return sum(t.blur(c) for t in self.terms)

    def _price_of(self, last: int) -> float:
        return (last + 1) * sum(t.cost(self.c, self.step * last) for t in self.terms)

    def _moment(self, c: Array) -> Array:
        total = np.zeros_like(c)
        for term in self.terms:
            total = total + term.log_moment(c)
        return total

    def _sketch(self, c: Array) -> Array:
        total = np.zeros_like(c)
        for term in self.terms:
            total = total + term.sketch(c)
        return total

    def _choose_period(self, spread: float, log_size: float) -> bool:
        """The smallest period P whose aliases are below the tolerance, if there is one."""
        c = self.c
        reach = min(t.reach for t in self.terms)
        # Any tilt on either side bounds an alias: a few are enough to have one that is near the
        # best.
        factors = np.array([0.02, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85])
        lower = c * factors
        upper = np.minimum(c + np.array([0.15, 0.3, 0.5, 0.8, 1.2, 2.0, 4.0]) * c, reach)
        # Any tilts beyond c bound an alias.
        upper = np.maximum(upper, c * (1 + 1e-9))
        self._lower = np.concatenate([[0.0], lower])
        self._upper = upper
        low = np.concatenate([[0.0], self._moment(lower) + log_kappa(lower)])
        high = self._moment(upper) + log_kappa(upper)
        # Here and below `LOOSE` takes 1e-12 at least. That also holds what exponents of up to 745
        # lose in a product and two sums; beyond, nothing is left of an alias or of what is cut.
        self._low = low + LOOSE * (1e-3 + np.abs(low))
        self._high = high + LOOSE * (1e-3 + np.abs(high))
        wanted = log_size + math.log(_TOLERANCE)
        period = self._long_enough(4.0 * spread, spread, wanted)
        # Each tilt by itself proves something: what its moment errs by is asked of the best alone.
        # That errors grow with the tilt is proved of no law.
        left, right = self._alias_ends(self.start, period)
        for ends, tilts, values in (
            (left, self._lower, self._low),
            (right, self._upper, self._high),
        ):
            best = np.argsort(ends)[:_ASKED]
            others = np.ones(len(tilts), dtype=bool)
            others[best] = False
            values[others] = np.inf
            for i in best.tolist():
                values[i] += self._blur(float(tilts[i])) if tilts[i] > 0 else 0.0
        period = self._long_enough(period, spread, wanted)
        self.period, self.step = period, 2 * math.pi / period
        return self._log_alias(self.start, period) <= wanted

    def _long_enough(self, period: float, spread: float, wanted: float) -> float:
        """The first period that is, in steps; past some length another line is tried."""
        while self._log_alias(self.start, period) > wanted and period < 1e4 * spread + 1e3 / self.c:
            # Longer periods push aliases away and cost nodes.
            period *= 1.08
        return period

    def _log_alias(self, epsilon: float, period: float) -> float:
        """log of a bound of Σ_{j != 0} delta(epsilon + jP)·e^{cjP}.

        delta(x) <= exp(low - c'·x) for every tilt c' on either side (c' = 0 says delta <= 1);
        the geometric sums over j are at most twice their first terms once these are below half.
        """
        left, right = self._alias_ends(epsilon, period)
        return float(np.logaddexp(right.min(), left.min())) + math.log(2.0)

    def _alias_ends(self, epsilon: float, period: float) -> tuple[Array, Array]:
        """What each tilt on either side says of the first alias there."""
        c = self.c
        right = self._high - self._upper * epsilon - (self._upper - c) * period
        # e^-0.7 is below a half, which twice the first term asks for.
        right = np.where((self._upper - c) * period > 0.7, right, np.inf)
        left = self._low - self._lower * epsilon - (c - self._lower) * period
        return np.where((c - self._lower) * period > 0.7, left, np.inf), right

    def _choose_end(self, moment: float, log_size: float, most: int) -> int | None:
        """The first node count whose truncation is proved to be below the tolerance."""
        wanted = log_size + math.log(_TOLERANCE)
        lead = moment + LOOSE * (1e-3 + abs(moment)) + self._blur(self.c)
        lead -= self.c * self.start + math.log(math.pi)
        u = self.step * np.unique(np.geomspace(4, most, 90).astype(int))
        plain = -sum(t.curvature() for t in self.terms) * u * u / 2 - np.log(u)

        def end(fade: Array) -> int | None:
            good = np.flatnonzero(lead + fade < wanted)
            return int(good[0]) if good.size else None

        fade, found = plain, end(plain)
        if found is None or found > len(u) // 2:
            fade = plain + sum(t.quick_fade(self.c, u) for t in self.terms)
            found = end(fade)
            # A closer bound would take longer than the nodes that it saves.
            if found is None or self._price_of(round(float(u[found]) / self.step)) > _EASY:
                fade = plain + sum(t.fade(self.c, u) for t in self.terms)
                found = end(fade)
        if found is None:
            return None
        # The bound at the chosen end, free of the epsilon it is asked for.
        self._fade = float(fade[found])
        return round(float(u[found]) / self.step)

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon); the lower one may be -inf."""
        # One exponent a node: its parts may leave the doubles where their sum does not.
        z = self.exponent - self.t * epsilon + self.base
        top = float(z.real.max())
        # Less the largest, which the scale holds: what underflows is below e^-700 of it.
        value = np.exp(z - top)
        turned = 6 * EPS * (np.abs(self.t) * abs(epsilon) + abs(self.base))
        wrong = np.abs(value) * np.expm1(np.minimum(self.slack + turned, 600.0))
        scale = top + math.log(self.step / math.pi)
        total = _added(value.real)
        # The first is itself a sum of products of positive numbers, by far less than 10^6 of EPS.
        error = float(wrong.sum()) * (1 + 1e-9) + 2 * _ROW * EPS * float(np.abs(value).sum())
        turned_most = 6 * EPS * (self._farthest * abs(epsilon) + abs(self.base))
        spun = math.exp(min(turned_most, 700.0)) * (1 + 1e-9)
        error += self._rest * spun
        lead = self.base + LOOSE * (1e-3 + abs(self.base)) - self.c * epsilon + self.rough
        # At e^700 of the largest node both ends say nothing in any case.
        cut = math.exp(min(lead - math.log(math.pi) + self._fade - scale, 700.0))
        alias = math.exp(min(self._log_alias(epsilon, self.period) - scale, 700.0))
        high = total + error + cut
        # Aliases are sums of chances, at least 0: only the lower end gives them up.
        low = total - error - cut - alias
        if self.smoothing > 0:
            # Smoothing only raises delta, so that only the lower end pays for it.
            low -= self._price(value, wrong, self._rest_priced * spun) + 2 * cut
        # 1e-300 where all that is left has underflowed.
        lower, upper = (math.log(max(x, 1e-300)) for x in (low, max(high, error)))
        # Two logarithms, with two halves of EPS each and their arguments' few, and two sums.
        rough, size = 2 * EPS, 2 + abs(top) + abs(scale)
        return (
            scale + lower - rough * (size + abs(lower)) if low > 1e-300 else -math.inf,
            scale + upper + rough * (size + abs(upper)),
        )

    def _unkernelled(self, t: Complex) -> Complex:
        """Back from delta's kernel 1/(t(1+t)) and the Gaussian loss's e^{t(t+1)s²/2}."""
        result: Complex = t * (1 + t) * np.exp(-t * (self.smoothing**2 / 2))
        return result

    def _price(self, value: Array, wrong: Array, rest: float) -> float:
        """At least what smoothing has added, in the units of ``value``."""
        s, t = self.smoothing, self.t
        factor = self._unkernelled(t)
        kernel = value * factor
        size = np.abs(factor)
        error = float((wrong * size).sum()) + rest
        error += (len(value) + 40) * EPS * float((np.abs(kernel) * (1 + np.abs(t) * s * s)).sum())
        total = float(kernel.real.sum())
        # Seven roundings here, and the error's own sums in pairs: 50 halves of EPS.
        return s * s * (1 + s) * (max(total, 0.0) + error) * (1 + 32 * EPS)

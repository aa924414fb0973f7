"""Composition by name: the theorems of the books, each with its own epsilon.

All of them bound what `dither.privacy.Loss` computes numerically; they are here to be compared,
taught and inverted. Values are computed in 40 digits and rounded towards caution. An argument out
of range is an `ArgumentError`.

*Guarantee.* Of all answers together, for the neighbours of the mechanisms themselves. Questions may
depend on earlier answers; parameters of noise may not: for those use a filter.

For k mechanisms, each (epsilon, delta)-DP, and a slack delta' in (0, 1):

* *basic*: (k·epsilon, k·delta), adaptive or not [1]_.
* *advanced, exponential form*: epsilon·sqrt(2k·ln(1/delta')) + k·epsilon·(e^epsilon - 1), with
  total delta k·delta + delta' [1]_.
* *advanced, tanh form*: k·epsilon·tanh(epsilon/2) in place of the second summand [2]_, theorem 3.4.
  (e^epsilon - 1)/(e^epsilon + 1) is tanh(epsilon/2).
* *advanced, different mechanisms*: the least of the three bounds of [2]_, theorem 3.5.
* *optimal*: the exact least epsilon over all such mechanisms [2]_, theorem 3.3.
* *corollary 3.21* of [1]_: epsilon = epsilon'/(2·sqrt(2k·ln(1/delta'))) each, which bounds each of
  the two summands by epsilon'/2 and needs epsilon' <= 1 and a small delta'.
* *zCDP*: a pure mechanism is (epsilon²/2)-zCDP, and rhos add up [3]_.

References
----------
.. [1] Dwork, Rothblum and Vadhan, "Boosting and differential privacy", FOCS 2010; Dwork and Roth,
   "The algorithmic foundations of differential privacy", 2014.
.. [2] Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", ICML 2015.
.. [3] Bun and Steinke, "Concentrated differential privacy", TCC 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither import _checks as check
from dither._search import bisect
from dither.errors import ArgumentError, nearest
from dither.numeric import float_up
from dither.privacy import Bound, Loss, Neighbours, approximate, compose
from dither.privacy._conversion import epsilon_of_rho
from dither.privacy.engines.closed import context
from dither.privacy.laws.rationals import printing_at_least

__all__ = [
    "Parallel",
    "advanced",
    "advanced_heterogeneous",
    "basic",
    "corollary_share",
    "group",
    "heterogeneous",
    "optimal",
    "parallel",
    "share",
    "zcdp_composition",
]


_FORMS = ("exponential", "tanh")

_Group = tuple[float | Fraction, float | Fraction, int]
"""(epsilon, delta), and how often."""


def _up(value: Any) -> float:
    """A double above the 40-digit value by more than its last digits may err, 1e-30 of itself."""
    # float() rounds to nearest, perhaps downwards: the double above is above the value.
    return math.nextafter(float(value), math.inf)


def _at_digits(m: Any, x: float | Fraction) -> Any:
    """x to the context's digits; a rational is not rounded to a double first."""
    return m.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else m.mpf(x)


def _pairs(losses: Sequence[tuple[float, float]]) -> list[tuple[Fraction, Fraction]]:
    found = [
        (
            check.exact("epsilon", e, least=0),
            check.exact("delta", d, least=0, below=1),
        )
        for e, d in losses
    ]
    if not found:
        raise ArgumentError("losses must hold at least one (epsilon, delta)")
    return found


def _form(form: str) -> str:
    if form not in _FORMS:
        raise ArgumentError("form must be 'exponential' or 'tanh'" + nearest(str(form), _FORMS))
    return form


def basic(epsilon: float, k: int, *, delta: float = 0.0) -> tuple[float, float]:
    """k times (epsilon, delta): both add up.

    Parameters
    ----------
    epsilon : float
        Of each; at least 0.
    k : int
        Mechanisms, at least 1.
    delta : float
        Of each; in [0, 1).

    Returns
    -------
    tuple of float
        (epsilon, delta) of all together, rounded up.

    Examples
    --------
    >>> basic(0.5, 4)
    (2.0, 0.0)
    """
    ((e, d),), n = _pairs([(epsilon, delta)]), check.count("k", k)
    total_e, total_d = basic_of_groups([(e, d, n)])
    return printing_at_least(total_e), printing_at_least(min(total_d, Fraction(1)))


def heterogeneous(losses: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Different (epsilon, delta): both add up, rounded up from the exact sum.

    Parameters
    ----------
    losses : sequence of (float, float)
        Each mechanism's (epsilon, delta); at least one.

    Returns
    -------
    tuple of float
        (epsilon, delta) of all together.

    Examples
    --------
    >>> heterogeneous([(0.5, 0.0), (0.25, 1e-6)])
    (0.75, 1e-06)
    """
    total_e, total_d = basic_of_groups([(e, d, 1) for e, d in _pairs(losses)])
    return printing_at_least(total_e), printing_at_least(min(total_d, Fraction(1)))


def basic_of_groups(groups: Sequence[_Group]) -> tuple[Fraction, Fraction]:
    """The exact sums of n times (epsilon, delta); a double is the number that it is."""
    total_e = sum((n * Fraction(e) for e, _, n in groups), Fraction(0))
    return total_e, sum((n * Fraction(d) for _, d, n in groups), Fraction(0))


def advanced(epsilon: float, k: int, delta_prime: float, *, form: str = "tanh") -> float:
    """The epsilon of k pure mechanisms at slack ``delta_prime``, by either form.

    Where each is (epsilon, delta)-DP the total delta is k·delta + delta_prime.

    Parameters
    ----------
    epsilon : float
        Of each; from 0 to below 500.
    k : int
        Mechanisms, at least 1.
    delta_prime : float
        The theorem's slack, in (0, 1).
    form : {"tanh", "exponential"}
        Which mean loss of a step is used; "tanh" is never larger.

    Returns
    -------
    float
        Epsilon of all together, rounded up.

    Examples
    --------
    >>> advanced(0.01, 10_000, 1e-5, form="exponential")
    5.803542620604...
    >>> advanced(0.01, 10_000, 1e-5)
    5.298521745563...
    """
    e = check.exact("epsilon", epsilon, least=0, below=500)
    d = check.number("delta_prime", delta_prime, above=0, below=1, rounding="down")
    k, form = check.count("k", k), _form(form)
    m = context()
    x, root = _at_digits(m, e), m.sqrt(2 * k * m.log(1 / m.mpf(d)))
    drift = m.expm1(x) if form == "exponential" else m.tanh(x / 2)
    return _up(x * root + k * x * drift)


def advanced_heterogeneous(losses: Sequence[tuple[float, float]], delta_prime: float) -> Bound:
    """A sound epsilon for different mechanisms: the least of three bounds, at a slack.

    The total delta is 1 - (1 - delta')·Π(1 - delta_i).

    Parameters
    ----------
    losses : sequence of (float, float)
        Each mechanism's (epsilon, delta); at least one.
    delta_prime : float
        The theorem's slack, in (0, 1).

    Returns
    -------
    Bound
        ``lower`` is 0: the theorem bounds from above only. ``method`` says which bound won.

    Examples
    --------
    >>> advanced_heterogeneous([(0.01, 0.0)] * 10_000, 1e-5)
    at most 5.298521745563...
    """
    return advanced_of_groups([(e, d, 1) for e, d in _pairs(losses)], delta_prime)


def advanced_of_groups(groups: Sequence[_Group], delta_prime: float) -> Bound:
    """`advanced_heterogeneous` of n times (epsilon, delta)."""
    d = check.number("delta_prime", delta_prime, above=0, below=1, rounding="down")
    m = context()
    epsilons = [(_at_digits(m, e), n) for e, _, n in groups]
    drift = m.fsum(n * e * m.tanh(e / 2) for e, n in epsilons)
    square = m.fsum(n * e * e for e, n in epsilons)
    options = {
        "sum of epsilons": m.fsum(n * e for e, n in epsilons),
        "advanced, logarithmic slack": drift
        + m.sqrt(2 * square * m.log(m.e + m.sqrt(square) / m.mpf(d))),
        "advanced, tanh form": drift + m.sqrt(2 * square * m.log(1 / m.mpf(d))),
    }
    method = min(options, key=lambda name: options[name])
    return Bound(0.0, _up(options[method]), method, one_sided=True)


def optimal(epsilon: float, k: int, delta: float, *, each_delta: float = 0.0) -> Bound:
    """The exact least epsilon of k mechanisms, each (epsilon, each_delta)-DP, at a total delta.

    It is the least that is true of all such mechanisms; of given ones less may be true.

    Parameters
    ----------
    epsilon : float
        Of each; at least 0.
    k : int
        Mechanisms, at least 1.
    delta : float
        Of all together.
    each_delta : float
        Of each; in [0, 1).

    Returns
    -------
    Bound
        An interval that holds the exact value; it counts as its upper end.

    Raises
    ------
    ArgumentError
        An argument is out of range, or no finite epsilon exists at this delta.

    Examples
    --------
    >>> round(optimal(0.01, 10_000, 1e-5), 9)
    4.376384509
    """
    return (check.count("k", k) * approximate(epsilon, each_delta)).epsilon(delta)


def zcdp_composition(epsilon: float, k: int, delta: float) -> float:
    """k pure mechanisms as (k·epsilon²/2)-zCDP, by the optimal conversion of `epsilon_of_rho`.

    Parameters
    ----------
    epsilon : float
        Of each; above 0, below 500.
    k : int
        Mechanisms, at least 1.
    delta : float
        Of all together; in (0, 1).

    Returns
    -------
    float
        Epsilon of all together, rounded up.

    Examples
    --------
    >>> zcdp_composition(0.01, 10_000, 1e-6)
    5.2215344445...
    """
    e = check.exact("epsilon", epsilon, above=0, below=500)
    d = check.exact("delta", delta, above=0, below=1)
    return float_up(epsilon_of_rho(check.count("k", k) * e * e / 2, d))


def share(epsilon: float, k: int, delta_prime: float, *, form: str = "tanh") -> float:
    """The largest epsilon that each of k pure mechanisms may have, by inverting `advanced`.

    The inverse is rounded down and checked.

    Parameters
    ----------
    epsilon : float
        Of all together; above 0.
    k : int
        Mechanisms, at least 1.
    delta_prime : float
        The theorem's slack, in (0, 1).
    form : {"tanh", "exponential"}
        Which mean loss of a step is used; "tanh" is never larger.

    Returns
    -------
    float
        Epsilon of each, rounded down.

    Examples
    --------
    >>> share(1.0, 10_000, 1.2664165549094176e-14, form="exponential")
    0.0012310449395...
    """
    total = check.number("epsilon", epsilon, above=0, rounding="down")

    def over(each: float) -> bool:
        return advanced(each, k, delta_prime, form=form) > total

    # The end at which `advanced` itself, rounded up, is still within the total.
    return bisect(over, 0.0, min(total, 500.0), steps=200)[0]


def corollary_share(epsilon: float, k: int, delta_prime: float) -> float:
    """epsilon/(2·sqrt(2k·ln(1/delta'))): simple, and about half of what the theorem allows.

    Parameters
    ----------
    epsilon : float
        Of all together; above 0, at most 1.
    k : int
        Mechanisms, at least 1.
    delta_prime : float
        The theorem's slack, in (0, 1).

    Returns
    -------
    float
        Epsilon of each, rounded down.

    Raises
    ------
    ArgumentError
        epsilon is above 1, or delta_prime too large for the second summand to be at most
        epsilon/2 (about 0.78).

    Examples
    --------
    >>> corollary_share(1.0, 10_000, 1.2664165549094176e-14)
    0.00062...
    """
    total = check.number("epsilon", epsilon, above=0, most=1, rounding="down")
    d = check.number("delta_prime", delta_prime, above=0, below=1, rounding="down")
    m = context()
    each = m.mpf(total) / (2 * m.sqrt(2 * check.count("k", k) * m.log(1 / m.mpf(d))))
    # Downwards, and then held against the theorem.
    value = math.nextafter(float(each), 0.0)
    if value > 500 or advanced(value, k, d, form="exponential") > total:
        raise ArgumentError("delta_prime is too large for this rule; it needs about 0.78 or less")
    return value


def group(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """(epsilon, delta) against groups of ``size``: size·epsilon, delta·Σ_{i<size} e^{i·epsilon}.

    Parameters
    ----------
    epsilon, delta : float
        Of one unit; epsilon at least 0, delta in [0, 1).
    size : int
        Units that change together, at least 1.

    Returns
    -------
    tuple of float
        (epsilon, delta) of the group, rounded up; delta at most 1.

    Notes
    -----
    Guarantee: two tables that differ in `size` steps of the neighbour relation, in place of one.

    Examples
    --------
    >>> group(0.5, 0.0, 3)
    (1.5, 0.0)
    """
    e = check.exact("epsilon", epsilon, least=0, below=500)
    d = check.exact("delta", delta, least=0, below=1)
    n = check.count("size", size)
    m = context()
    x = _at_digits(m, e)
    # A geometric series, whose quotient is n at epsilon 0.
    grown = _at_digits(m, d) * (m.mpf(n) if e == 0 else m.expm1(n * x) / m.expm1(x))
    return printing_at_least(n * e), 0.0 if d == 0 else min(1.0, _up(grown))


@dataclass(frozen=True, slots=True)
class Parallel:
    """The loss of mechanisms that run on disjoint parts of one table: the worst of them.

    Neighbours add or remove one unit, which lies in one part alone.

    Parameters
    ----------
    losses : tuple of Loss
        One a part; `parallel` checks that their neighbours add or remove one unit.
    """

    losses: tuple[Loss, ...]

    def _worst(self, bounds: list[Bound]) -> Bound:
        top = max(bounds)
        # A unit is in one part alone: the whole loses what that part loses, at the worst.
        low = max(b.lower for b in bounds)
        return Bound(low, top.upper, f"worst part: {top.method}", one_sided=top.one_sided)

    def epsilon(self, delta: float) -> Bound:
        """The largest of the parts' epsilons."""
        return self._worst([loss.epsilon(delta) for loss in self.losses])

    def delta(self, epsilon: float) -> Bound:
        """The largest of the parts' deltas."""
        return self._worst([loss.delta(epsilon) for loss in self.losses])

    def bound(self) -> Loss:
        """One loss for composing further: the parts' sum, which is sound and rarely tight."""
        return compose(*self.losses)


def parallel(*losses: Loss) -> Parallel:
    """Disjoint parts, each with its own mechanism.

    Parameters
    ----------
    *losses : Loss
        One for each part of the table.

    Returns
    -------
    Parallel
        With `epsilon(delta)`, `delta(epsilon)` and `bound()` for composing further.

    Raises
    ------
    ArgumentError
        No loss is given, or neighbours replace a unit: the one that leaves and the one that comes
        may lie in different parts, so that two losses add up.

    Notes
    -----
    Guarantee: neighbours add or remove one unit. Which part a unit is in must depend on that unit
    alone.

    References
    ----------
    McSherry, "Privacy integrated queries", SIGMOD 2009.

    Examples
    --------
    >>> from dither import privacy
    >>> parallel(privacy.pure(0.5), privacy.pure(1.0)).epsilon(0.0)
    1.0...
    """
    if not losses:
        raise ArgumentError("parallel needs at least one loss")
    if not all(isinstance(loss, Loss) for loss in losses):
        raise ArgumentError("parallel takes losses, such as privacy.laplace(1.0)")
    if any(loss.neighbours is not Neighbours.ADD_REMOVE for loss in losses):
        raise ArgumentError(
            "parallel composition needs neighbours that add or remove one unit: a replaced unit "
            "may leave one part and enter another, so add the two largest losses instead"
        )
    return Parallel(tuple(losses))

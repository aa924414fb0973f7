"""What may be required of every class beyond its size, as values to pass to ``require=``.

Shares and distances are floating point here; a requirement counts as met within 1e-12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, nearest
from dither.lab.anonymize import distance, diversity, likeness
from dither.lab.anonymize.pairs import Floats, Pairs, Truths

__all__ = [
    "DISTANCES",
    "Context",
    "Requirement",
    "alpha_k",
    "beta_likeness",
    "closeness",
    "delta_disclosure",
    "l_diversity",
    "t_closeness",
]

DISTANCES = ("equal", "ordered", "hierarchical")
_SLACK = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What a sensitive column has besides counts.

    Attributes
    ----------
    rank : array of int or None
        The place of each value in the column's order, where it has one.
    maps : tuple of array of int or None
        The node of each value at each level of the column's hierarchy, where there is one.
    """

    rank: NDArray[np.int64] | None = None
    maps: tuple[NDArray[np.int32], ...] | None = None


class Requirement(Protocol):
    """A bound that every class must meet for a sensitive column."""

    @property
    def monotone(self) -> bool:
        """Whether a class that meets it meets it still when merged with any other class."""
        ...

    @property
    def relative(self) -> bool:
        """Whether classes are held against the distribution in the whole release."""
        ...

    @property
    def blind(self) -> str:
        """What it does not protect."""
        ...

    @property
    def distance(self) -> str | None:
        """The ground distance that it measures by."""
        ...

    def met(self, pairs: Pairs, context: Context) -> Truths:
        """Which classes meet it."""
        ...

    def __str__(self) -> str:
        """As the field writes it."""
        ...


@dataclass(frozen=True, slots=True)
class _Diversity:
    l: int | float  # noqa: E741 - the field's name
    kind: str
    c: float | None
    relative = False
    distance = None
    blind = (
        "values that mean the same, values far more common in a class than outside, and whoever "
        "knows enough to rule values out"
    )

    @property
    def monotone(self) -> bool:
        return self.kind == "distinct"

    def met(self, pairs: Pairs, context: Context) -> Truths:
        if self.kind == "distinct":
            return diversity.distinct(pairs) >= self.l
        if self.kind == "entropy":
            return diversity.effective(pairs) >= self.l * (1 - _SLACK)
        assert self.c is not None
        return diversity.recursive(pairs, int(self.l)) < self.c

    def __str__(self) -> str:
        if self.kind == "recursive":
            return f"recursive ({self.c:g},{self.l})-diversity"
        return f"{self.kind} {self.l:g}-diversity"


@dataclass(frozen=True, slots=True)
class _Closeness:
    t: float
    distance: str
    monotone = False
    relative = True
    blind = "an attacker who knows more than the quasi-identifiers, and what t itself lets through"

    def met(self, pairs: Pairs, context: Context) -> Truths:
        return closeness(pairs, self.distance, context) <= self.t + _SLACK

    def __str__(self) -> str:
        return f"{self.t:g}-closeness ({self.distance} distance)"


@dataclass(frozen=True, slots=True)
class _Alpha:
    alpha: float
    monotone = False
    relative = False
    distance = None
    blind = "values rarer outside than alpha: sharing one with alpha of a class can tell a lot"

    def met(self, pairs: Pairs, context: Context) -> Truths:
        return diversity.alpha(pairs) <= self.alpha + _SLACK

    def __str__(self) -> str:
        return f"({self.alpha:g},k)-anonymity"


@dataclass(frozen=True, slots=True)
class _Delta:
    delta: float
    monotone = False
    relative = True
    distance = None
    blind = "an attacker who knows more than the quasi-identifiers"

    def met(self, pairs: Pairs, context: Context) -> Truths:
        return likeness.delta(pairs) < self.delta

    def __str__(self) -> str:
        return f"{self.delta:g}-disclosure privacy"


@dataclass(frozen=True, slots=True)
class _Beta:
    beta: float
    enhanced: bool
    monotone = False
    relative = True
    distance = None
    blind = "values that become rarer in a class, and an attacker who knows more"

    def met(self, pairs: Pairs, context: Context) -> Truths:
        gain = likeness.enhanced_beta(pairs) if self.enhanced else likeness.beta(pairs)
        return gain <= self.beta + _SLACK

    def __str__(self) -> str:
        return f"{'enhanced' if self.enhanced else 'basic'} {self.beta:g}-likeness"


def l_diversity(
    l: int | float,  # noqa: E741 - the field's name
    kind: str = "distinct",
    *,
    c: float | None = None,
) -> Requirement:
    """Every class has l well-represented sensitive values.

    Parameters
    ----------
    l : int
        At least 1; for ``"entropy"`` any number of at least 1.
    kind : str
        ``"distinct"``: l values. ``"entropy"``: entropy of at least log l. ``"recursive"``: the
        commonest value has fewer than c times the rows of the values from the l-th on.
    c : float
        Above 0, for ``"recursive"`` alone.

    Returns
    -------
    Requirement
        For `require` of `generalize` and `mondrian`.

    Raises
    ------
    ArgumentError
        For an unknown kind or a number out of range.

    References
    ----------
    Machanavajjhala, Gehrke, Kifer and Venkitasubramaniam, "l-diversity", ICDE 2006.

    Examples
    --------
    >>> print(l_diversity(3), "and", l_diversity(2, "recursive", c=4))
    distinct 3-diversity and recursive (4,2)-diversity
    """
    kinds = ("distinct", "entropy", "recursive")
    if kind not in kinds:
        raise ArgumentError(f"kind is unknown{nearest(str(kind), kinds)}")
    _number("l", l, least=1)
    if kind != "entropy" and not isinstance(l, int):
        raise ArgumentError(f"l must be a whole number for kind={kind!r}")
    if (kind == "recursive") != (c is not None):
        raise ArgumentError("c must be given for kind='recursive', and for no other")
    if c is not None:
        _number("c", c, above=0)
    return _Diversity(l, kind, c)


def t_closeness(t: float, *, distance: str) -> Requirement:
    """Every class's distribution is within t of the release's.

    Parameters
    ----------
    t : float
        In [0, 1].
    distance : str
        ``"equal"``, ``"ordered"`` or ``"hierarchical"``. There is no default: the same data can be
        close by one and far by another. For incomes choose ``"ordered"``, else an attacker may
        learn that an income is low though its class holds many incomes.

    Returns
    -------
    Requirement
        For `require` of `generalize` and `mondrian`.

    Raises
    ------
    ArgumentError
        For an unknown distance or t out of range.

    References
    ----------
    Li, Li and Venkatasubramanian, "t-closeness", ICDE 2007.

    Examples
    --------
    >>> print(t_closeness(0.2, distance="equal"))
    0.2-closeness (equal distance)
    """
    _number("t", t, least=0, most=1)
    if distance not in DISTANCES:
        raise ArgumentError(f"distance is unknown{nearest(str(distance), DISTANCES)}")
    return _Closeness(float(t), distance)


def alpha_k(alpha: float) -> Requirement:
    """No sensitive value has more than a share alpha of a class.

    Parameters
    ----------
    alpha : float
        The largest share, in (0, 1].

    Returns
    -------
    Requirement
        For `require` of `generalize` and `mondrian`.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    References
    ----------
    Wong, Li, Fu and Wang, "(α, k)-anonymity", KDD 2006.

    Examples
    --------
    >>> print(alpha_k(0.8))
    (0.8,k)-anonymity
    """
    _number("alpha", alpha, above=0, most=1)
    return _Alpha(float(alpha))


def delta_disclosure(delta: float) -> Requirement:
    """``|log(q/p)| < delta`` for every value's share q in a class and p in the release.

    Parameters
    ----------
    delta : float
        Above 0.

    Returns
    -------
    Requirement
        For `require` of `generalize` and `mondrian`.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    References
    ----------
    Brickell and Shmatikov, "The cost of privacy", KDD 2008.

    Examples
    --------
    >>> print(delta_disclosure(1.5))
    1.5-disclosure privacy
    """
    _number("delta", delta, above=0)
    return _Delta(float(delta))


def beta_likeness(beta: float, *, enhanced: bool = False) -> Requirement:
    """No value's share q in a class exceeds its share p in the release by more than beta times p.

    Parameters
    ----------
    beta : float
        Above 0.
    enhanced : bool
        Bound ``(q - p)/p`` by ``min(beta, -log p)`` instead of beta.

    Returns
    -------
    Requirement
        For `require` of `generalize` and `mondrian`.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    References
    ----------
    Cao and Karras, "Publishing microdata with a robust privacy guarantee", VLDB 2012.

    Examples
    --------
    >>> print(beta_likeness(2, enhanced=True))
    enhanced 2-likeness
    """
    _number("beta", beta, above=0)
    return _Beta(float(beta), bool(enhanced))


def closeness(pairs: Pairs, ground: str, context: Context) -> Floats:
    """The earth mover's distance of every class, by the distance chosen."""
    if ground == "ordered" and context.rank is not None:
        return distance.ordered(pairs, context.rank)
    if ground == "hierarchical" and context.maps is not None:
        return distance.hierarchical(pairs, context.maps)
    assert ground == "equal", "a context is made for the distance chosen"
    return distance.equal(pairs)


def _number(
    name: str,
    value: object,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float = math.inf,
) -> None:
    low = f"at least {least:g}" if least is not None else f"above {above:g}"
    high = f" and at most {most:g}" if most < math.inf else ""
    right = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value <= most
        and (least is None or value >= least)
        and (above is None or value > above)
    )
    if not right:
        raise ArgumentError(f"{name} must be a number {low}{high}")

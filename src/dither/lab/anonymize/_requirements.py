"""What may be required of every class beyond its size, as values to pass to ``require=``.

Shares and distances are floating point here; a requirement counts as met within 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from dither._checks import choice, number, whole
from dither.errors import ArgumentError
from dither.lab.anonymize import _definitions as of
from dither.lab.anonymize._definitions import Context, Pairs, Truths

__all__ = [
    "DISTANCES",
    "Requirement",
    "alpha_k",
    "beta_likeness",
    "check_distance",
    "delta_disclosure",
    "l_diversity",
    "t_closeness",
]

DISTANCES = ("equal", "ordered", "hierarchical")
_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound that every class must meet for a sensitive column.

    Attributes
    ----------
    name : str
        As the field writes it.
    blind : str
        What it does not protect.
    met : callable
        From pairs and a context to which classes meet it.
    monotone : bool
        Whether a class that meets it meets it still when merged with any other class.
    relative : bool
        Whether classes are held against the distribution in the whole release.
    distance : str or None
        The ground distance that it measures by.
    """

    name: str
    blind: str
    met: Callable[[Pairs, Context], Truths] = field(repr=False, compare=False)
    monotone: bool = False
    relative: bool = False
    distance: str | None = None

    def __str__(self) -> str:
        return self.name


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
        For ``require=`` of `generalize` and `mondrian`, as all of this module.

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
    kind = choice("kind", kind, kinds)
    least = number("l", l, least=1) if kind == "entropy" else whole("l", l, 1)
    if (kind == "recursive") != (c is not None):
        raise ArgumentError("c must be given for kind='recursive', and for no other")
    most = math.inf if c is None else number("c", c, above=0)
    name, met = {
        "distinct": (f"distinct {least:g}-diversity", lambda pairs, _: of.distinct(pairs) >= least),
        "entropy": (
            f"entropy {least:g}-diversity",
            lambda pairs, _: of.effective(pairs) >= least * (1 - _SLACK),
        ),
        "recursive": (
            f"recursive ({most:g},{least})-diversity",
            lambda pairs, _: of.recursive(pairs, int(least)) < most,
        ),
    }[kind]
    blind = (
        "values that mean the same, values far more common in a class than outside, and anyone who "
        "knows enough to rule values out"
    )
    return Requirement(name, blind, met, monotone=kind == "distinct")


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
    most = number("t", t, least=0, most=1)
    return Requirement(
        f"{most:g}-closeness ({check_distance(distance)} distance)",
        "an attacker who knows more than the quasi-identifiers, and what t itself lets through",
        lambda pairs, context: of.closeness(pairs, distance, context) <= most + _SLACK,
        relative=True,
        distance=distance,
    )


def alpha_k(alpha: float) -> Requirement:
    """No sensitive value has more than a share alpha of a class.

    Parameters
    ----------
    alpha : float
        The largest share, in (0, 1].

    Raises
    ------
    ArgumentError
        Where alpha is out of range.

    References
    ----------
    Wong, Li, Fu and Wang, "(α, k)-anonymity", KDD 2006.

    Examples
    --------
    >>> print(alpha_k(0.8))
    (0.8,k)-anonymity
    """
    most = number("alpha", alpha, above=0, most=1)
    return Requirement(
        f"({most:g},k)-anonymity",
        "values rarer outside than alpha: sharing one with alpha of a class can tell a lot",
        lambda pairs, _: of.alpha(pairs) <= most + _SLACK,
    )


def delta_disclosure(delta: float) -> Requirement:
    """``|log(q/p)| < delta`` for every value's share q in a class and p in the release.

    Parameters
    ----------
    delta : float
        Above 0.

    Raises
    ------
    ArgumentError
        Where delta is out of range.

    References
    ----------
    Brickell and Shmatikov, "The cost of privacy", KDD 2008.

    Examples
    --------
    >>> print(delta_disclosure(1.5))
    1.5-disclosure privacy
    """
    most = number("delta", delta, above=0)
    return Requirement(
        f"{most:g}-disclosure privacy",
        "an attacker who knows more than the quasi-identifiers",
        lambda pairs, _: of.delta(pairs) < most,
        relative=True,
    )


def beta_likeness(beta: float, *, enhanced: bool = False) -> Requirement:
    """No value's share q in a class exceeds its share p in the release by more than beta times p.

    Parameters
    ----------
    beta : float
        Above 0.
    enhanced : bool
        Bound ``(q - p)/p`` by ``min(beta, -log p)`` instead of beta.

    Raises
    ------
    ArgumentError
        Where beta is out of range.

    References
    ----------
    Cao and Karras, "Publishing microdata with a robust privacy guarantee", VLDB 2012.

    Examples
    --------
    >>> print(beta_likeness(2, enhanced=True))
    enhanced 2-likeness
    """
    most, gain = number("beta", beta, above=0), of.enhanced_beta if enhanced else of.beta
    return Requirement(
        f"{'enhanced' if enhanced else 'basic'} {most:g}-likeness",
        "values that become rarer in a class, and an attacker who knows more",
        lambda pairs, _: gain(pairs) <= most + _SLACK,
        relative=True,
    )


def check_distance(distance: object) -> str:
    """The name of a ground distance, checked."""
    return choice("distance", distance, DISTANCES)

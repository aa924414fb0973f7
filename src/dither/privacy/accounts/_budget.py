"""The filter of an account: two rules side by side, each with its share of delta.

It looks at the sum of the charges so far, the next one included, and says whether the
(epsilon, delta) promise still holds. Charges may depend on earlier answers, which is what an
interactive account needs and what fixed-length composition theorems do not give.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither import _checks as check
from dither._format import remaining
from dither.errors import ArgumentError
from dither.privacy import Charge, Loss
from dither.privacy._conversion import rho_of_epsilon
from dither.privacy._loss import as_charge

__all__ = ["BudgetFilter", "Remaining"]


@dataclass(frozen=True, slots=True)
class Remaining:
    """What each rule of a filter still allows; a next charge must fit one of the two pairs.

    Parameters
    ----------
    epsilon, delta : Fraction or None
        Left under the basic rule; both None when that rule is closed for good.
    rho, rho_delta : Fraction or None
        Left under the zCDP rule; both None when that rule is closed or not offered.
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    rho_delta: Fraction | None

    def describe(self) -> str:
        """One line for people.

        Examples
        --------
        >>> Remaining(Fraction(1, 2), Fraction(0), None, None).describe()
        'epsilon 0.5 (delta 0) by basic composition'
        """
        parts = []
        if self.epsilon is not None and self.delta is not None:
            parts.append(
                f"epsilon {remaining(self.epsilon, 6)} (delta {remaining(self.delta, 3)}) "
                "by basic composition"
            )
        if self.rho is not None and self.rho_delta is not None:
            parts.append(
                f"rho {remaining(self.rho, 6)} (delta {remaining(self.rho_delta, 3)}) by zCDP "
                "composition"
            )
        return ", or ".join(parts) if parts else "nothing"


@dataclass(frozen=True, slots=True)
class BudgetFilter:
    """The promise (epsilon, delta) for everything that an account ever releases.

    With delta = 0 the filter admits a total iff its epsilon is at most ``epsilon`` and its delta
    is 0. With delta > 0 it admits a total that meets either rule:

    * rule A, "basic": total epsilon <= epsilon and total delta <= delta/2;
    * rule B, "zcdp": total rho <= R and total rho_delta <= delta/4, where
      R = ``rho_of_epsilon(epsilon, delta/4)``.

    Parameters
    ----------
    epsilon : number
        Above 0; kept as an exact Fraction, a float as it prints.
    delta : number
        In [0, 1), likewise; 0 where left out.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Claim.* Everything released under the filter is (epsilon, delta)-DP, for the neighbour
    relation that all charges state, with mechanisms and parameters chosen adaptively.

    *Proof.* Let P and Q be the laws of the whole view v (all questions, refusals and answers) on
    two neighbouring tables. Charges are functions of the view, and their sums only grow; so a view
    whose final total meets a rule met that rule at every step. Let V_A be the views whose final
    total meets rule A and V_B the remaining ones, which meet rule B.

    Consider the interaction that applies rule A alone and stops when it refuses. On V_A it never
    stops, so there it has the same laws P and Q, and it is (epsilon, delta/2)-DP by the filter for
    basic composition [1]_. Hence the sum over v in V_A of (P(v) - e^epsilon·Q(v))_+ is at most
    delta/2.

    Likewise the interaction that applies rule B alone is (delta/4)-approximate R-zCDP by the filter
    for approximate zCDP [2]_ [3]_, and R-zCDP gives (epsilon, delta/4). So it is
    (epsilon, delta/4 + delta/4)-DP and the sum over V_B is at most delta/2.

    The two sums together are at most delta, which is what was to be shown: for every set S of
    views, P(S) <= e^epsilon·Q(S) + delta. Exchanging P and Q gives the other direction.

    *Why neither rule has all of delta.* By which rule an account will end is known only at its end,
    and may be steered by the answers; so the proof adds up what both may lose, and a rule that is
    not used in the end has kept its share from the other. An account under a cap of 3·delta so
    admits one charge of (epsilon, delta) and refuses the second, since 2·delta is more than half of
    the cap: where charges have a delta of their own, as those of discovered keys have, the cap must
    be twice their sum, and four times that of charges in zCDP.

    References
    ----------
    .. [1] Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters", NeurIPS 2016.
    .. [2] Feldman and Zrnic, "Individual privacy accounting via a Rényi filter", NeurIPS 2021.
    .. [3] Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy",
       ICML 2023, theorem 1.

    Examples
    --------
    >>> from dither import privacy
    >>> account = BudgetFilter(Fraction(1), Fraction(0))
    >>> account.admits(2 * privacy.pure(0.5)), account.admits(privacy.pure(1.1))
    (True, False)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check.positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check.exact("delta", self.delta, least=0, below=1))

    @property
    def rho(self) -> Fraction | None:
        """R, the zCDP rule's cap; None for a pure budget."""
        return rho_of_epsilon(self.epsilon, self.delta / 4) if self.delta else None

    @property
    def basic_delta(self) -> Fraction:
        """The delta that rule A may spend."""
        return self.delta / 2

    @property
    def rho_delta(self) -> Fraction:
        """The approximation delta that rule B may spend."""
        return self.delta / 4

    def admits(self, total: Loss | Charge) -> bool:
        """Whether an account may reach ``total``, the next charge included."""
        total = as_charge(total)
        return self._basic(total) or self._zcdp(total)

    def remaining(self, total: Loss | Charge) -> Remaining:
        """What may still be charged on top of ``total``."""
        total = as_charge(total)
        epsilon = delta = rho = rho_delta = None
        if self._basic(total) and total.epsilon is not None:
            epsilon, delta = self.epsilon - total.epsilon, self.basic_delta - total.delta
        cap = self.rho
        if self._zcdp(total) and total.rho is not None and cap is not None:
            rho, rho_delta = cap - total.rho, self.rho_delta - total.rho_delta
        return Remaining(epsilon, delta, rho, rho_delta)

    def to_dict(self) -> dict[str, str]:
        """The budget as exact text, for a ledger or a certificate.

        Examples
        --------
        >>> BudgetFilter(Fraction(1, 2), Fraction(0)).to_dict()
        {'epsilon': '1/2', 'delta': '0'}
        """
        return {"epsilon": str(self.epsilon), "delta": str(self.delta)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> BudgetFilter:
        """Read back what :meth:`to_dict` wrote."""
        try:
            return cls(Fraction(str(stored["epsilon"])), Fraction(str(stored["delta"])))
        except (KeyError, ZeroDivisionError, ValueError) as error:
            raise ArgumentError(
                "a stored budget must hold 'epsilon' and 'delta' as fractions, such as '1/2'"
            ) from error

    def _basic(self, total: Charge) -> bool:
        return (
            total.epsilon is not None
            and total.epsilon <= self.epsilon
            and total.delta <= self.basic_delta
        )

    def _zcdp(self, total: Charge) -> bool:
        cap = self.rho
        return (
            cap is not None
            and total.rho is not None
            and total.rho <= cap
            and total.rho_delta <= self.rho_delta
        )

"""What no release of means escapes, in numbers: the fingerprinting lemma beside the tracing attack.

Setting. Each of d columns has a mean p_j of its own, drawn uniformly from [-1, 1]; n people have
entries of ±1 with these means, independently; M publishes d numbers in [-1, 1], and errs by α: the
mean of (M_j - p_j)² is at most α². An attacker who knows p gives a person x the score ::

    score(x) = Σ over columns  M_j · (x_j - p_j)

*Lemma.* The scores of the n members sum to at least d·(1/3 - α²) in expectation.

*Proof.* For one column let f be M_j and g(p) = E[f | p]. As E[f·Σ_i (x_i - p) | p] is (1 - p²)·
g'(p), its mean over p is, by parts, E[2·p·g(p)]. And E[(f - p)²] ≥ E[(g - p)²] = E[g²] - E[2·p·g] +
E[p²]. So the two sum to at least E[g²] + 1/3.

A stranger's score has the mean 0 and, as E[1 - p²] = 2/3, a standard deviation of at most √(2d/3).

*Privacy.* Let S be a member's score, and S' the one where a stranger of the same law stood in their
place when M was run: E[S'] = 0. With T = Σ |x_j - p_j|, which bounds both and has the mean 2d/3, an
(ε, δ)-private M has, by the tails of S and S' on either side,

    E[S] ≤ e^ε·E[S'+] - e^-ε·E[S'-] + (1 + e^-ε)·δ·E[T] ≤ sinh(ε)·√(2d/3) + (1 + e^-ε)·δ·2d/3.

So d·(1/3 - α²)/n is at most that: n people bear an accuracy of α in d columns only from some n on,
about √d/ε.

Source. Bun, Ullman and Vadhan, "Fingerprinting codes and the price of approximate differential
privacy", STOC 2014; Steinke and Ullman, "Interactive fingerprinting codes and the hardness of
preventing false discovery", COLT 2015; Dwork et al., "Robust traceability from trace amounts", FOCS
2015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, cost_text, number_text
from dither.errors import ArgumentError

__all__ = ["Fingerprints", "fingerprints"]


@dataclass(frozen=True)
class Fingerprints(Printable):
    """What means of d columns, accurate to ``error``, give away of each of n people.

    Parameters
    ----------
    n, d : int
    error : float
        The root of the mean squared error of a published mean, for entries of ±1.
    epsilon, delta : float or None
        Of the release, where it is private.
    """

    n: int
    d: int
    error: float
    epsilon: float | None
    delta: float

    @property
    def member(self) -> float:
        """The mean score of a member, at least, by the lemma."""
        return max(0.0, self.d * (1 / 3 - self.error**2) / self.n)

    @property
    def spread(self) -> float:
        """The standard deviation of a stranger's score, at most."""
        return math.sqrt(2 * self.d / 3)

    @property
    def signal(self) -> float:
        """``member`` in standard deviations of a stranger: from about 3 on, most are told apart."""
        return self.member / self.spread

    @property
    def allowed(self) -> float | None:
        """The mean score of a member, at most, by (ε, δ); None where none is claimed."""
        if self.epsilon is None:
            return None
        most = 2 * self.d / 3
        if self.epsilon > 700:  # beyond a float, and beyond all use
            return most
        failing = (1 + math.exp(-self.epsilon)) * self.delta * most
        return min(most, math.sinh(self.epsilon) * self.spread + failing)

    @property
    def possible(self) -> bool | None:
        """Whether (ε, δ) and the error go together for so few people, as far as the lemma says."""
        return None if self.allowed is None else self.member <= self.allowed

    @property
    def least_error(self) -> float | None:
        """The least error that (ε, δ) leaves, by the lemma; 0 where it says nothing."""
        if self.allowed is None:
            return None
        return math.sqrt(max(0.0, 1 / 3 - self.allowed * self.n / self.d))

    @property
    def least_people(self) -> int | None:
        """How many people (ε, δ) takes for the error, at least."""
        if self.allowed is None:
            return None
        wanted = self.d * max(0.0, 1 / 3 - self.error**2)
        return math.ceil(wanted / self.allowed) if self.allowed else None

    def summary(self) -> str:
        """The numbers in words."""
        lines = [
            f"{self.d:,} means of {self.n:,} people, entries of ±1, error {self.error:.3g}:",
            f"a member scores at least {number_text(self.member, 3)} on average; a stranger 0, "
            f"give or take {number_text(self.spread, 3)} ({self.signal:.2g} standard deviations)",
        ]
        if self.epsilon is not None and self.allowed is not None:
            cost = cost_text(self.epsilon, self.delta)
            lines.append(f"{cost} lets a member score {number_text(self.allowed, 3)} at most:")
            if self.possible:
                lines.append("the lemma does not rule this out")
            else:
                people = self.least_people
                lines.append(
                    "so no such release exists: it takes an error of "
                    f"{number_text(self.least_error or 0, 3)}"
                    + ("" if people is None else f", or {people:,} people")
                )
        return "\n".join(lines)


def fingerprints(
    n: int, d: int, *, error: Number = 0, epsilon: Number | None = None, delta: Number = 0
) -> Fingerprints:
    """What published means must give away of those whose means they are: the fingerprinting lemma.

    Parameters
    ----------
    n : int
        People, from 1 to 10**18.
    d : int
        Columns, from 1 to 10**18.
    error : number
        The root of the mean squared error of a published mean about that of the population, for
        entries of ±1, from 0 to 10**6: √(2/3n) of exact means, by sampling alone.
    epsilon, delta : number, optional
        Of the release, for neighbours that replace a row: epsilon above 0, delta in [0, 1).

    Returns
    -------
    Fingerprints

    Raises
    ------
    ArgumentError
        An argument is out of range.

    See Also
    --------
    tracing : The attack, on a release of your own.

    Examples
    --------
    >>> exact = fingerprints(100, 10_000)
    >>> round(exact.member, 1), round(exact.signal, 2)
    (33.3, 0.41)
    >>> private = fingerprints(100, 1_000_000, error=0.1, epsilon=1)
    >>> private.possible, private.least_people
    (False, 337)
    """
    people, columns = check.count("n", n), check.count("d", d)
    # Entries of ±1 have means within 1 of 0: no useful answer errs by more than a few.
    missed = float(check.number("error", error, least=0, most=1e6))
    if epsilon is None and delta != 0:
        raise ArgumentError("delta goes with an epsilon: give both")
    claimed = None if epsilon is None else float(check.positive("epsilon", epsilon))
    failing = float(check.exact("delta", delta, least=0, below=1))
    return Fingerprints(people, columns, missed, claimed, failing)

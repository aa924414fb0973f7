"""Local edge privacy: each person perturbs their own list of ties, and nobody holds the graph.

Persons are numbered 0 to n - 1. A tie {i, j} with i > j is told by i alone wherever each person
tells something of single ties, so that it is told once; where both tell their degree, each answer
has half of epsilon. What is protected is an edge, in everything that all persons send together.

With flip probability p, a bit y of a tie x gives B = (y - p)/(1 - 2p), whose expectation is x and
whose variance s = p·(1 - p)/(1 - 2p)² does not depend on x. Bits are independent, so that products
of different B are unbiased for products of the ties. p is a fraction of 2^20, rounded up: counts of
bits, and their noise, are whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import comb
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._format import Printable, interval, level
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.graph._cost import cost_of
from dither.graph._counted import MOST_DEGREE, check_graph
from dither.graph._graph import Graph
from dither.graph._labels import pair_order
from dither.mechanisms import DiscreteLaplace
from dither.mechanisms._base import Integers
from dither.mechanisms._composable import response_class
from dither.numeric import _directed as directed
from dither.privacy import Loss, Neighbours

__all__ = ["LocalCount", "LocalTies", "local_count"]

Bits = npt.NDArray[np.bool_]
Matrix = npt.NDArray[np.float64]

_ONE = 1 << 20
EDGE = Neighbours.EDGE
KINDS = ("edges", "triangles", "two-round triangles", "stars")


@dataclass(frozen=True, eq=False)
class LocalCount(Printable):
    """A count that was estimated from what persons sent.

    Parameters
    ----------
    what : str
    value : float
        The estimate: unbiased, where nobody has more ties than the bound.
    deviation : float
        Its standard deviation; where that depends on the graph, estimated from the same reports.
    loss : Loss
        What all that was sent loses of one edge.
    notes : tuple of str
    """

    what: str
    value: float
    deviation: float
    loss: Loss
    notes: tuple[str, ...] = field(default=())

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """An interval for the count, by a normal law of the estimate: about right for large n."""
        width = NormalDist().inv_cdf((1 + check.confidence(confidence)) / 2) * self.deviation
        return max(0.0, self.value - width), max(0.0, self.value + width)

    def summary(self) -> str:
        """A few lines for people."""
        low, high = self.interval()
        shown = f"{self.what}: {interval(self.value, low, high)} ({level(0.95)} interval)"
        return "\n".join([shown, f"cost: {cost_of(self.loss)}, locally", *self.notes])


@dataclass(frozen=True)
class LocalTies:
    """What persons send of their ties, and what is estimated from it.

    Parameters
    ----------
    people : int
        n, at least 1: persons are 0 to n - 1.
    epsilon : number
        Above 0 and at most 100: of each kind of answer, for one edge in all that is sent.
    degree : int, optional
        The most ties of a person that count for stars, and in the second round for triangles:
        public. Ties beyond it are left out, a bias that no interval covers.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Notes
    -----
    *Guarantee*, for neighbours that differ in one edge, whatever the server does:

    - `report`: randomised response of each tie, told once: epsilon.
    - `degree_answer`: how many ties to smaller numbers, with discrete Laplace noise of scale
      1/epsilon: a tie moves one person's by 1.
    - `star_answer`: C(d, k) of a degree d of at most ``degree`` D, with noise of scale C(D - 1, k -
      1)·2/epsilon: a tie moves those of two persons, each at epsilon/2.
    - `triangle_answer`, a second round: w = Σ (y_jk - p) over pairs j < k < i of ties of i, at most
      D of them, where y are the published bits of the first round. One tie more, or another in its
      place, moves at most D - 1 summands by at most 1 each: noise of scale (D - 1)/epsilon, and the
      two rounds together cost 2·epsilon.

    *Estimates.* One round: Σ B_e for edges and Σ B_ij·B_jk·B_ik for triangles. Two rounds: Σ w/(1 -
    2p). Their variances, given the graph, are in `triangle_variance` and `two_round_variance`.

    References
    ----------
    Imola, Murakami and Chaudhuri, "Locally differentially private analysis of graph statistics",
    USENIX Security 2021.

    Examples
    --------
    >>> survey = LocalTies(4, epsilon=20)
    >>> reports = [survey.report(i, [j for j in range(4) if j != i]) for i in range(4)]
    >>> round(survey.triangles(reports).value)
    4
    """

    title: ClassVar[str] = "local ties"

    people: int
    epsilon: Fraction
    degree: int | None = None

    def __init__(self, people: int, epsilon: Number, degree: int | None = None) -> None:
        exact = check.exact("epsilon", epsilon, above=0, most=100)
        bound = None if degree is None else check.count("degree", degree, most=MOST_DEGREE)
        object.__setattr__(self, "people", check.count("people", people, 1, 10**6))
        object.__setattr__(self, "epsilon", exact)
        object.__setattr__(self, "degree", bound)
        if 2 * self.flip >= 1:
            raise ArgumentError("epsilon is too small: bits would tell nothing")

    @property
    def flip(self) -> Fraction:
        """p: 1/(1 + e^epsilon), rounded up to a multiple of 2^-20."""
        least = 1 / (1 + directed.exp_lower(self.epsilon))
        return Fraction(math.ceil(least * _ONE), _ONE)

    @property
    def spread(self) -> float:
        """s, the variance of B."""
        p = float(self.flip)
        return p * (1 - p) / (1 - 2 * p) ** 2

    # What persons send

    def report(self, person: int, friends: Iterable[Any]) -> Bits:
        """One bit for each smaller number: whether it is a tie, or by chance the opposite."""
        bits = np.zeros(self._person(person), dtype=np.bool_)
        bits[self._smaller(person, friends)] = True
        flipped: Bits = bits ^ noise.bernoulli(self.flip, bits.size)
        return flipped

    def degree_answer(self, person: int, friends: Iterable[Any]) -> int:
        """How many ties to smaller numbers, with noise."""
        self._person(person)
        return len(self._smaller(person, friends)) + int(self._laplace(1).draw(1)[0])

    def star_answer(self, person: int, friends: Iterable[Any], k: int) -> int:
        """C(d, k) of the number d of ties, at most ``degree``, with noise."""
        self._person(person)
        d = min(self._bound("stars"), len(self._friends(person, friends)))
        return comb(d, check.count("k", k, 2, 100)) + int(self._star_noise(k).draw(1)[0])

    def triangle_answer(
        self, person: int, friends: Iterable[Any], reports: Sequence[npt.ArrayLike]
    ) -> int:
        """2^20·w, with noise: of the pairs of ties, which are tied by the published bits."""
        self._person(person)
        tied = self._kept(person, friends)
        return self._pairs_seen(tied, self.matrix(reports)) + self._pair_noise(1)[0]

    # What the server estimates

    def edges(self, reports: Sequence[npt.ArrayLike]) -> LocalCount:
        """Edges from `report`: Σ B; its variance is known."""
        seen = self._unbiased(reports)
        pairs = comb(self.people, 2)
        value = float(np.tril(seen, -1).sum())
        return LocalCount("edges", value, math.sqrt(pairs * self.spread), self.cost())

    def degree_sum(self, answers: Sequence[int]) -> LocalCount:
        """Edges from `degree_answer`: their sum, since each tie is in one."""
        loss = self.cost("edges")
        return self._summed("edges", answers, 1.0, self._laplace(1).variance, loss, ())

    def stars(self, answers: Sequence[int], k: int) -> LocalCount:
        """Stars of k points from `star_answer`."""
        variance, loss = self._star_noise(k).variance, self.cost("stars", k)
        return self._summed(f"{k}-stars", answers, 1.0, variance, loss, self._cut)

    def triangles(self, reports: Sequence[npt.ArrayLike]) -> LocalCount:
        """Triangles from `report` alone; its variance is estimated, without bias."""
        seen = self._unbiased(reports)
        value = _triples(seen)
        variance = _triangle_variance(seen, seen * seen, self.spread)
        return LocalCount("triangles", value, math.sqrt(max(0.0, variance)), self.cost())

    def two_round_triangles(
        self, answers: Sequence[int], reports: Sequence[npt.ArrayLike]
    ) -> LocalCount:
        """Triangles from `triangle_answer`, of which the reports were published before."""
        seen = self._unbiased(reports)
        unit = _ONE * (1 - 2 * float(self.flip))
        variance, loss = self._laplace(self._pair_moved).variance, self.cost("two-round triangles")
        plain = self._summed("triangles", answers, unit, variance, loss, self._cut)
        # Squares of the numbers of ties that pairs have in common, without bias.
        both = self.spread * max(0.0, _common_squares(seen))
        return LocalCount(
            plain.what, plain.value, math.sqrt(plain.deviation**2 + both), loss, self._cut
        )

    def cost(self, what: str = "triangles", k: int = 2) -> Loss:
        """What all that persons send for a count loses of one edge.

        Parameters
        ----------
        what : {"edges", "triangles", "two-round triangles", "stars"}
            Edges by degrees; triangles by bits, of which edges may be estimated, too.
        k : int
            Points of a star.
        """
        check.choice("what", what, KINDS)
        if what == "edges":
            return self._laplace(1).loss(l1=1, neighbours=EDGE)
        if what == "stars":
            moved = comb(self._bound("stars") - 1, k - 1)
            return 2 * self._star_noise(k).loss(l1=max(1, moved), neighbours=EDGE)
        told = response_class(self.epsilon, 2, EDGE)
        if what == "triangles":
            return told
        moved = self._pair_moved
        return told + self._laplace(moved).loss(l1=moved, neighbours=EDGE)

    def triangle_variance(self, graph: Graph) -> float:
        """The variance of `triangles` at a graph, exactly: for planning on public ones."""
        ties = self._ties(graph)
        return _triangle_variance(ties, ties + self.spread, self.spread)

    def two_round_variance(self, graph: Graph) -> float:
        """The variance of `two_round_triangles` at a graph whose degrees are within the bound."""
        ties = np.tril(self._ties(graph), -1)
        common = np.tril(ties.T @ ties, -1)
        unit = _ONE * (1 - 2 * float(self.flip))
        drawn = self.people * self._laplace(self._pair_moved).variance / unit**2
        return drawn + self.spread * float((common**2).sum())

    def matrix(self, reports: Sequence[npt.ArrayLike]) -> Bits:
        """The published bits, one a pair: row i has those of i, of smaller numbers."""
        if not isinstance(reports, Sized) or len(reports) != self.people:
            raise ArgumentError("reports must be one for each person, in their order")
        bits = np.zeros((self.people, self.people), dtype=np.bool_)
        for i, row in enumerate(reports):
            try:
                sent = np.asarray(row)
            except (TypeError, ValueError):
                sent = np.asarray(None)
            # NumPy has an empty list for one of doubles.
            if sent.shape != (i,) or (i and sent.dtype.kind not in "biuf"):
                raise ArgumentError("reports must hold a bit for each smaller number")
            bits[i, :i] = sent
        return bits

    def _ties(self, graph: Graph) -> Matrix:
        check_graph(graph)
        if graph.size != self.people:
            raise ArgumentError(f"graph must have as many nodes as there are people: {self.people}")
        ties = np.zeros((graph.size, graph.size))
        ties[graph.edges[:, 0], graph.edges[:, 1]] = 1
        return ties + ties.T

    def _unbiased(self, reports: Sequence[npt.ArrayLike]) -> Matrix:
        p = float(self.flip)
        lower = np.tril((self.matrix(reports) - p) / (1 - 2 * p), -1)
        found: Matrix = lower + lower.T
        return found

    def _summed(
        self,
        what: str,
        answers: Sequence[int],
        unit: float,
        variance: float,
        loss: Loss,
        notes: tuple[str, ...],
    ) -> LocalCount:
        sent = check.integers("answers", answers)
        if len(sent) != self.people:
            raise ArgumentError("answers must be one for each person")
        return LocalCount(
            what, sum(sent) / unit, math.sqrt(self.people * variance) / unit, loss, notes
        )

    def _laplace(self, moved: int) -> DiscreteLaplace:
        return DiscreteLaplace(moved / self.epsilon)

    def _star_noise(self, k: int) -> DiscreteLaplace:
        # Half of epsilon for each of the two persons whose answers a tie moves.
        moved = comb(self._bound("stars") - 1, check.count("k", k, 2, 100) - 1)
        return DiscreteLaplace(2 * max(1, moved) / self.epsilon)

    @property
    def _pair_moved(self) -> int:
        return max(1, self._bound("triangles") - 1) * _ONE

    def _pair_noise(self, size: int) -> list[int]:
        drawn: list[int] = self._laplace(self._pair_moved).draw(size).tolist()
        return drawn

    def _pairs_seen(self, tied: Sequence[int], published: Bits) -> int:
        """2^20·w, exactly."""
        at = np.array(tied, dtype=np.int64)
        ones = int(np.tril(published[np.ix_(at, at)], -1).sum()) if at.size else 0
        return ones * _ONE - comb(len(tied), 2) * int(self.flip * _ONE)

    def _kept(self, person: int, friends: Iterable[Any]) -> list[int]:
        """Ties to smaller numbers: of more than the bound the first in a public order."""
        tied, most = self._smaller(person, friends), self._bound("triangles")
        if len(tied) > most:
            tied = sorted(tied, key=lambda j: pair_order(b"%d" % person, b"%d" % j))[:most]
        return sorted(tied)

    def _friends(self, person: int, friends: Iterable[Any]) -> set[int]:
        """The ties that are persons, each once; whatever else is listed is none."""
        found = set()
        if not isinstance(friends, Iterable):
            raise ArgumentError("friends must be a list of persons")
        for friend in friends:
            plain = type(friend) is int or issubclass(type(friend), np.integer)
            if plain and 0 <= friend < self.people and friend != person:
                found.add(int(friend))
        return found

    def _smaller(self, person: int, friends: Iterable[Any]) -> list[int]:
        return [j for j in self._friends(person, friends) if j < person]

    def _person(self, person: int) -> int:
        return check.whole("person", person, 0, self.people - 1)

    def _bound(self, what: str) -> int:
        if self.degree is None:
            raise ArgumentError(f"degree must be given for {what}: the most ties that count")
        return self.degree

    @property
    def _cut(self) -> tuple[str, ...]:
        return (f"ties beyond {self.degree:,} of a person are left out: no interval covers that",)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: one person's list with a tie more."""
        survey = cls(4, 1, degree=3)
        bits = survey.matrix([np.ones(i, dtype=np.bool_) for i in range(4)])

        def answers(friends: list[int], size: int) -> Integers:
            exact = survey._pairs_seen(survey._kept(3, friends), bits)
            return (exact + survey._laplace(survey._pair_moved).draw(size)) // _ONE

        yield Subject("a tie's bit", lambda d: int(survey.report(3, d)[0]), [1, 2], [0, 1, 2])
        yield Subject("triangles of a person", answers, [1, 2], [0, 1, 2])


def local_count(
    graph: Graph,
    what: str,
    *,
    epsilon: Number,
    degree: int | None = None,
    k: int = 2,
) -> LocalCount:
    """Run what persons and the server do on one machine: what local privacy makes of a graph.

    Parameters
    ----------
    graph : Graph
        With a public list of nodes.
    what : {"edges", "triangles", "two-round triangles", "stars"}
        Edges by noisy degrees, triangles by randomised response, or by a second round, stars by
        noisy degrees: `LocalTies`.
    epsilon : number
        What all that is sent costs for one edge; two rounds have half each.
    degree : int, optional
        The bound for stars and for two rounds.
    k : int
        Points of a star.

    Returns
    -------
    LocalCount

    Raises
    ------
    ArgumentError
        An argument is out of range; the nodes are not public.

    Examples
    --------
    >>> ring = Graph([(i, (i + 1) % 50) for i in range(50)], nodes=50)
    >>> local_count(ring, "edges", epsilon=2).loss.charge.epsilon
    Fraction(2, 1)
    """
    check_graph(graph)
    check.choice("what", what, KINDS)
    n = graph.needs_public("a local count")
    eps = check.positive("epsilon", epsilon)
    rounds = 2 if what == "two-round triangles" else 1
    survey = LocalTies(n, eps / rounds, degree)
    loss = graph.charge(survey.cost(what, check.count("k", k, 2, 100)), f"local {what}", eps, k)
    lists = [row.tolist() for row in graph.adjacency]
    if what == "edges":
        found = survey.degree_sum([survey.degree_answer(i, own) for i, own in enumerate(lists)])
    elif what == "stars":
        found = survey.stars([survey.star_answer(i, own, k) for i, own in enumerate(lists)], k)
    else:
        bits = [survey.report(i, own) for i, own in enumerate(lists)]
        if rounds == 1:
            found = survey.triangles(bits)
        else:
            published = survey.matrix(bits)
            kept = [survey._kept(i, own) for i, own in enumerate(lists)]
            drawn = survey._pair_noise(n)
            sent = [survey._pairs_seen(a, published) + z for a, z in zip(kept, drawn, strict=True)]
            found = survey.two_round_triangles(sent, bits)
    return replace(found, loss=loss)


def _triples(seen: Matrix) -> float:
    """Σ over triples of the product of their three numbers."""
    return float(np.einsum("ij,ji->", seen @ seen, seen)) / 6


def _triangle_variance(seen: Matrix, squares: Matrix, spread: float) -> float:
    """The variance of Σ B_ij·B_jk·B_ik, with ``seen`` and ``squares`` for x and for x + s.

    A triple by itself adds Π(x + s) - Πx. Two triples that share a pair e add s times the product
    of the other four. All are of different pairs, so that estimates in place of x are unbiased.
    """
    off = squares.copy()
    np.fill_diagonal(off, 0.0)
    alone = _triples(off) - _triples(seen)
    paths, own = seen @ seen, (seen * seen) @ (seen * seen)
    return alone + spread * float(np.tril(paths**2 - own, -1).sum())


def _common_squares(seen: Matrix) -> float:
    """Σ over j < k of the squared number of i > k tied to both, without bias."""
    lower = np.tril(seen, -1)
    paths, own = lower.T @ lower, (lower**2).T @ (lower**2)
    return float(np.tril(paths**2 - own + paths, -1).sum())

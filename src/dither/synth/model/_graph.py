"""The distribution that noisy marginals say most of, and nothing else.

Among all tables of ``total`` rows, of any weights of at least 0, the model is one whose marginals
come nearest to what was measured::

    f(mu) = 1/2 · sum over measurements of |mu_c - y_c|²/sigma_c²

and of those the one of largest entropy: a product of functions of the measured cliques. Attributes
that were not measured together are independent given those that join them.

Descent. f is convex in the marginals. With theta the logarithms of the functions, a step
theta - alpha·gradient(f) is mirror descent: marginals are multiplied, and stay those of a table.
Where f falls by less than half of what its slope promised, the step was too long, and is halved;
else the next is longer. So the step follows the curvature that is met, which differs by orders of
magnitude between a clique of ten cells and one of ten thousand. Each step starts from beyond the
last two places, ever further, and begins afresh where f would rise (Nesterov; O'Donoghue and
Candes): badly conditioned measurements then take hundreds of steps where they took thousands.

Stopping. No table has a value of f that lies further below than the gap: by convexity, for any
table nu, f(nu) >= f(mu) + <g, nu - mu>, and the least of <g, nu> is ``total`` times the least
sum of gradients that one row can pick up, which a sweep of minima over the tree finds exactly
(Frank and Wolfe). Beside noise alone, which gives f a mean of half the measured cells, a small
part of that is nothing.

Source. McKenna, Sheldon and Miklau, "Graphical-model based estimation and inference for
differential privacy", ICML 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np
import numpy.typing as npt

from dither.synth.model._junction import Clique, JunctionTree, maximal

__all__ = ["GraphModel", "NoisyMarginal", "pooled"]

Floats = npt.NDArray[np.float64]

_NOTHING = 0.01
"""The part of what noise gives f that a gap may be: far less than noise moves f by itself."""
_LOOK = 8
"""Steps between two looks at the gap."""
_GROWTH = 1.1
_WALL = -1e9
"""The logarithm of a chance that no row has; of a gradient it is so many times as far."""
_FAR = 1e6
_EXACT = 1e-6
"""Rows by which a known marginal may be off."""
_LEAST = 1e-300
"""What a count of 0 is taken to be where its logarithm is needed."""
_SHORTEST = 1e-18
"""Beside the first step: f is as low as doubles tell."""


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """A table of counts of some attributes, with noise.

    Parameters
    ----------
    clique : Clique
    values : array of float
        One axis an attribute, in the order of the clique.
    deviation : float or array of float
        Of the noise of each cell: of all alike, or one a cell.
    """

    clique: Clique
    values: Floats
    deviation: float | Floats

    @property
    def weight(self) -> float | Floats:
        """One over the variance."""
        return 1.0 / np.square(self.deviation)


@dataclass(frozen=True, eq=False, slots=True)
class _Place:
    """Potentials, and what follows from them."""

    potentials: dict[Clique, Floats]
    beliefs: list[Floats]
    marginals: dict[Clique, Floats]
    loss: float
    slope: dict[Clique, Floats]


class GraphModel:
    """A distribution over all attributes; see the module's text.

    Parameters
    ----------
    sizes : sequence of int
        How many values each attribute has.
    cliques : iterable of Clique
        What is kept together.
    total : float
        Rows, above 0.
    forbidden : mapping of Clique to array of bool, optional
        Combinations that no row has.

    Attributes
    ----------
    beliefs : list of array
        The marginals of the tree's cliques, each summing to ``total``.
    loss, gap : float
        f, and how far no table is below it at most; of the last fit.
    rounds : int
        Steps of the last fit.

    Examples
    --------
    >>> model = GraphModel([2, 2], [(0,), (1,)], 10)
    >>> half = NoisyMarginal((0,), np.array([8.0, 2.0]), 1.0)
    >>> model.fit([half]).marginal((0, 1)).round(3).tolist()
    [[4.0, 4.0], [1.0, 1.0]]
    """

    def __init__(
        self,
        sizes: Sequence[int],
        cliques: Iterable[Clique],
        total: float,
        forbidden: Mapping[Clique, npt.NDArray[np.bool_]] | None = None,
    ) -> None:
        self.total = float(total)
        self.forbidden = dict(forbidden or {})
        self.cliques = maximal([*cliques, *self.forbidden])
        self.tree = JunctionTree.of(sizes, self.cliques)
        self._potentials = {c: np.zeros(self.tree.shape(c)) for c in self.cliques}
        self._home = {c: self._holder(c) for c in (*self.cliques, *self.forbidden)}
        self._walls = {c: np.where(mask, _WALL, 0.0) for c, mask in self.forbidden.items()}
        self._separators = [self.tree.separator(i) for i in range(len(self.tree.cliques))]
        self._step: float | None = None
        self.beliefs = self._inferred(self._potentials)
        self.loss = self.gap = 0.0
        self.rounds = 0

    def _holder(self, clique: Clique) -> int:
        found = self.tree.holding(clique)
        assert found is not None, "the tree is made of these cliques"
        return found

    # --- messages ---------------------------------------------------------------------------------

    def _gathered(self, functions: Mapping[Clique, Floats]) -> list[Floats]:
        """In each clique of the tree the sum of the functions that it holds."""
        found = [np.zeros(self.tree.shape(c)) for c in self.tree.cliques]
        for clique, values in functions.items():
            home = self._home[clique]
            found[home] += self._spread(values, clique, self.tree.cliques[home])
        return found

    def _inferred(self, potentials: Mapping[Clique, Floats]) -> list[Floats]:
        """Marginals of exp(sum of potentials), by two sweeps in logarithms."""
        tree, logs = self.tree, self._gathered(potentials)
        for clique, wall in self._walls.items():
            home = self._home[clique]
            logs[home] += self._spread(wall, clique, tree.cliques[home])
        sent: dict[int, Floats] = {}
        for i in reversed(tree.order[1:]):
            above, shared = tree.parents[i], self._separators[i]
            sent[i] = _log_sum(logs[i], _others(tree.cliques[i], shared))
            logs[above] += self._spread(sent[i], shared, tree.cliques[above])
        for i in tree.order:
            if i != tree.order[0]:
                above, shared = tree.parents[i], self._separators[i]
                # What is above is a marginal already, whose sums need no exponential.
                under = _summed(logs[above], tree.cliques[above], shared)
                back = np.log(np.maximum(under, _LEAST)) - sent[i]
                logs[i] += self._spread(back, shared, tree.cliques[i])
            found = logs[i]
            # The largest logarithm is then 0, and no exponential overflows.
            found -= found.max()
            np.exp(found, out=found)
            found *= self.total / found.sum()
        return logs

    def _least(self, functions: Mapping[Clique, Floats]) -> float:
        """The least sum of functions that one row can have: a sweep of minima."""
        tree, found = self.tree, self._gathered(functions)
        for clique, wall in self._walls.items():
            home = self._home[clique]
            found[home] -= _FAR * self._spread(wall, clique, tree.cliques[home])
        for i in reversed(tree.order[1:]):
            above, shared = tree.parents[i], self._separators[i]
            least = found[i].min(axis=_others(tree.cliques[i], shared))
            found[above] += self._spread(least, shared, tree.cliques[above])
        return float(found[tree.order[0]].min())

    def _spread(self, values: Floats, clique: Clique, over: Clique) -> Floats:
        """A function of some attributes as one of more, to be broadcast."""
        return values.reshape([self.tree.sizes[v] if v in clique else 1 for v in over])

    # --- fitting ----------------------------------------------------------------------------------

    def fit(
        self, measured: Iterable[NoisyMarginal], *, most: int = 1000, tolerance: float = _NOTHING
    ) -> GraphModel:
        """Come nearest to what was measured; going on from where an earlier fit ended.

        Parameters
        ----------
        measured : iterable of NoisyMarginal
            Each held by one of the model's cliques.
        most : int
            Steps, at most.
        tolerance : float
            The gap at which to stop, in halves of the measured cells.

        Returns
        -------
        GraphModel
            This one.
        """
        parts = pooled(measured)
        held = [next(c for c in self.cliques if set(p.clique) <= set(c)) for p in parts]
        enough = tolerance * sum(p.values.size for p in parts) / 2
        shortest = self._first_step(parts, held)
        step = self._step or shortest

        def at(potentials: dict[Clique, Floats]) -> _Place:
            beliefs = self._inferred(potentials)
            marginals = self._marginals(beliefs)
            return _Place(potentials, beliefs, marginals, *self._loss(marginals, parts, held))

        here = last = at(self._potentials)
        pace, self.rounds = 1.0, 0
        for self.rounds in range(1, most + 1):
            if self.rounds % _LOOK == 1:
                self.gap = self._gap_at(here)
                if self.gap <= enough:
                    break
            faster = (1 + math.sqrt(1 + 4 * pace * pace)) / 2
            ahead = here
            if pace > 1:
                past = (pace - 1) / faster
                ways = ((c, v, v - last.potentials[c]) for c, v in here.potentials.items())
                ahead = at({c: v + past * way for c, v, way in ways})
            while True:
                new = at({c: v - step * ahead.slope[c] for c, v in ahead.potentials.items()})
                promised = _inner(ahead.slope, ahead.marginals) - _inner(ahead.slope, new.marginals)
                if ahead.loss - new.loss >= promised / 2 or step < _SHORTEST * shortest:
                    break
                step /= 2
            if new.loss >= here.loss:
                if pace == 1:
                    break
                pace, last = 1.0, here
                continue
            last, here, pace = here, new, faster
            step *= _GROWTH
        self._potentials, self.beliefs, self._step = here.potentials, here.beliefs, step
        self.loss, self.gap = here.loss, self._gap_at(here)
        return self

    def _gap_at(self, here: _Place) -> float:
        """How far f could be lower than here, at most."""
        return _inner(here.slope, here.marginals) - self.total * self._least(here.slope)

    def _first_step(self, parts: Sequence[NoisyMarginal], held: Sequence[Clique]) -> float:
        """One over the largest curvature that f could have along any step."""
        heaviest: dict[Clique, float] = {}
        for part, clique in zip(parts, held, strict=True):
            heaviest[clique] = heaviest.get(clique, 0.0) + float(np.max(part.weight))
        return 1.0 / (self.total * max(heaviest.values(), default=1.0))

    def _marginals(self, beliefs: Sequence[Floats]) -> dict[Clique, Floats]:
        homes = ((c, self._home[c]) for c in self.cliques)
        return {c: _summed(beliefs[home], self.tree.cliques[home], c) for c, home in homes}

    def _loss(
        self,
        marginals: Mapping[Clique, Floats],
        parts: Sequence[NoisyMarginal],
        held: Sequence[Clique],
    ) -> tuple[float, dict[Clique, Floats]]:
        """f, and its gradient by the cells of each clique."""
        loss, slope = 0.0, {c: np.zeros_like(values) for c, values in marginals.items()}
        for part, clique in zip(parts, held, strict=True):
            off = _summed(marginals[clique], clique, part.clique) - part.values
            pull = part.weight * off
            loss += float(np.vdot(pull, off)) / 2
            slope[clique] += self._spread(pull, part.clique, clique)
        return loss, slope

    def widened(self, clique: Clique) -> GraphModel:
        """A model that also keeps these attributes together, and is the same until it is fitted."""
        found = GraphModel(self.tree.sizes, [*self.cliques, clique], self.total, self.forbidden)
        for old, values in self._potentials.items():
            new = next(c for c in found.cliques if set(old) <= set(c))
            found._potentials[new] = found._potentials[new] + found._spread(values, old, new)
        found.beliefs = found._inferred(found._potentials)
        found._step = self._step
        return found

    @property
    def possible(self) -> bool:
        """Whether any row at all is not forbidden."""
        # A row that meets a wall has at least -_FAR·_WALL; any other has nothing.
        return self._least({}) < -_FAR * _WALL / 2

    def raked(self, known: Sequence[NoisyMarginal], sweeps: int = 100) -> GraphModel:
        """Have the marginals that are known exactly, as near as may be to what was fitted.

        Iterative proportional fitting (Deming and Stephan, 1940): each in turn is made right, which
        moves the others a little, and ever less.
        """
        for _ in range(sweeps):
            worst = 0.0
            for part in known:
                clique = next(c for c in self.cliques if set(part.clique) <= set(c))
                found = self.marginal(part.clique)
                worst = max(worst, float(np.abs(found - part.values).max()))
                turn = np.log(np.maximum(part.values, _LEAST)) - np.log(np.maximum(found, _LEAST))
                self._potentials[clique] = self._potentials[clique] + self._spread(
                    turn, part.clique, clique
                )
                self.beliefs = self._inferred(self._potentials)
            if worst < _EXACT:
                break
        return self

    # --- answers ----------------------------------------------------------------------------------

    def marginal(self, clique: Clique) -> Floats:
        """The marginal of any attributes, in rising order, summing to ``total``.

        Attributes of several cliques are joined along the tree: each clique given its separator.
        """
        home = self.tree.holding(clique)
        if home is not None:
            return _summed(self.beliefs[home], self.tree.cliques[home], clique)
        kept = self._joining(clique)
        root = next(i for i in self.tree.order if i in kept)
        found, over = self._joined(root, frozenset(clique), kept)
        return _summed(found, over, clique) * self.total

    def _joining(self, clique: Clique) -> set[int]:
        """The smallest part of the tree that holds these attributes."""
        wanted, kept = set(clique), set(range(len(self.tree.cliques)))
        near = {i: self._neighbours(i) for i in kept}
        bare = [i for i in kept if len(near[i]) == 1]
        while bare:
            i = bare.pop()
            if i not in kept or len(near[i]) != 1:
                continue
            (other,) = near[i]
            shared = set(self.tree.cliques[i]) & set(self.tree.cliques[other])
            if not wanted & (set(self.tree.cliques[i]) - shared):
                kept.discard(i)
                near[other].discard(i)
                bare.append(other)
        return kept

    def _neighbours(self, i: int) -> set[int]:
        below = {j for j, parent in enumerate(self.tree.parents) if parent == i}
        return below | ({self.tree.parents[i]} if self.tree.parents[i] >= 0 else set())

    def _joined(self, i: int, wanted: frozenset[int], kept: set[int]) -> tuple[Floats, Clique]:
        """Chances of the wanted attributes at and below a clique, given its separator."""
        clique, shared = self.tree.cliques[i], self._separators[i]
        below = [j for j in kept if self.tree.parents[j] == i]
        top = self.tree.parents[i] not in kept
        given = () if top else shared
        keep = wanted | set(given)
        mine = set(keep).union(*(self._separators[j] for j in below)) & set(clique)
        over = tuple(sorted(mine))
        found = _summed(self.beliefs[i], clique, over) / self.total
        if not top:
            under = _summed(self.beliefs[i], clique, shared) / self.total
            found = found / np.maximum(self._spread(under, shared, over), 1e-300)
        for n, j in enumerate(below):
            other, of = self._joined(j, wanted, kept)
            needed = set(keep).union(*(self._separators[k] for k in below[n + 1 :]))
            out = tuple(sorted((set(over) | set(of)) & needed))
            found, over = _product(found, over, other, of, out), out
        out = tuple(v for v in over if v in keep)
        return _summed(found, over, out), out


def pooled(measured: Iterable[NoisyMarginal]) -> list[NoisyMarginal]:
    """Repeated measurements of a clique as one, weighted by their precision."""
    found: dict[Clique, NoisyMarginal] = {}
    for new in measured:
        old = found.get(new.clique)
        if old is not None:
            ours, theirs = old.weight, new.weight
            mean = (ours * old.values + theirs * new.values) / (ours + theirs)
            new = NoisyMarginal(new.clique, mean, (ours + theirs) ** -0.5)
        found[new.clique] = new
    return list(found.values())


def _others(clique: Clique, kept: Clique) -> tuple[int, ...]:
    """The axes of a clique's table that do not belong to the attributes to keep."""
    return tuple(i for i, v in enumerate(clique) if v not in kept)


def _summed(values: Floats, clique: Clique, kept: Clique) -> Floats:
    found: Floats = values.sum(axis=_others(clique, kept))
    return found


def _product(left: Floats, of: Clique, right: Floats, over: Clique, kept: Clique) -> Floats:
    """The product of two functions, summed over all attributes but those to keep."""
    letter = dict(zip(dict.fromkeys((*of, *over)), ascii_letters, strict=False))
    ours, theirs, out = ("".join(letter[v] for v in part) for part in (of, over, kept))
    found: Floats = np.einsum(f"{ours},{theirs}->{out}", left, right)
    return found


def _log_sum(values: Floats, axes: tuple[int, ...]) -> Floats:
    """The logarithm of the sum of exponentials over some axes."""
    if not axes:
        return values
    top = values.max(axis=axes, keepdims=True)
    found: Floats = np.log(np.exp(values - top).sum(axis=axes)) + np.squeeze(top, axis=axes)
    return found


def _inner(left: Mapping[Clique, Floats], right: Mapping[Clique, Floats]) -> float:
    return sum(float(np.vdot(values, right[c])) for c, values in left.items())

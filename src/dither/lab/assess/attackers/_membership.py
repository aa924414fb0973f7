"""Was this person in the table at all? Two attackers who never saw anybody's row beside the truth.

*Shadow-trained.* The attacker knows people like those of the table, of whom some may be in it, and
makes imitations of the release: of a random half of these people, by the tree of their pairs (Chow
and Liu), and by rows that are drawn again with some cells changed. There it knows who was in, and
learns by how much nearest records, crowds, shared pairs and single shares give them away. What it
learned it uses on the release. Who was in the real table it never sees, so half of its people being
in it tells nothing.

*Tracing on published means.* Whoever was in a table has pulled each of its shares a little to
themselves. The pulls on all shares of cells, and of pairs of cells, are added up; see `tracing`.

Source. Stadler, Oprisanu and Troncoso, "Synthetic data: anonymisation groundhog day", 2022; Homer
et al., "Resolving individuals contributing trace amounts of DNA", 2008.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from dither.lab._grouping import Ints, grouped
from dither.lab._nearest import nearest_rows
from dither.lab.assess._world import Floats, Mask, World
from dither.lab.assess.attackers._found import Found
from dither.lab.assess.attackers._singling import nearness
from dither.lab.attack.members._generators import pairs_kept
from dither.lab.attack.members._tracing import trace_score

__all__ = ["membership_scores"]

_SHADOWS = 3
"""Imitations of either kind."""
_CHANGED = 0.1
"""Cells that are changed in rows that are drawn again."""
_MEANS = 3_000
"""Shares that are traced, at most."""
_TINY = 1e-3
_CALM = 1.0
"""Ridge of the logistic regression: it decides nothing but that there is an answer."""
_STEPS = 25


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    """Which shares are traced: cells of one column or two; and who counts in each of them."""

    sets: list[tuple[int, ...]]
    sizes: list[int]
    cells: list[Ints]
    people: Floats

    def of(self, table: Sequence[Ints]) -> Floats:
        """The shares of a table."""
        found = []
        for one, values in zip(self.sets, self.cells, strict=True):
            key = np.sort(_key([table[i] for i in one], [self.sizes[i] for i in one]))
            ends = [np.searchsorted(key, values, side=side) for side in ("left", "right")]
            found.append((ends[1] - ends[0]) / len(key))
        return np.concatenate(found)


def membership_scores(world: World, rng: np.random.Generator) -> list[Found]:
    """What both attackers say."""
    people, columns = world.persons, world.columns
    shares = _shares([c.cells[people] for c in columns], [c.size for c in columns], rng)
    traced = trace_score(shares.people, shares.of([c.cells[world.rows] for c in columns]))
    found = [Found("tracing", scores=traced)]
    if len(people) < _LEAST:
        return found
    near, others = nearness(world)
    cells = [c.cells for c in columns]
    real = _features(near, others, traced, _agreeing(cells, people, world.rows))
    features, inside = _shadows(world, others, shares, rng)
    return [Found("shadow", scores=real @ _logistic(features, inside)), *found]


def _shares(cells: list[Ints], sizes: list[int], rng: np.random.Generator) -> _Shares:
    sets: list[tuple[int, ...]] = [(i,) for i in range(len(cells))]
    pairs = list(itertools.combinations(range(len(cells)), 2))
    held = [len(np.unique(c)) for c in cells]
    many = sum(held)
    for i, j in (pairs[k] for k in rng.permutation(len(pairs))):
        many += held[i] * held[j]
        if many > _MEANS:
            break
        sets.append((i, j))
    values, columns = [], []
    for one in sets:
        key = _key([cells[i] for i in one], [sizes[i] for i in one])
        seen = np.unique(key)[:_MEANS]
        values.append(seen)
        columns.append(key[:, None] == seen)
    return _Shares(sets, sizes, values, np.concatenate(columns, axis=1).astype(np.float64))


def _key(cells: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    key = np.zeros(len(cells[0]), dtype=np.int64)
    for codes, size in zip(cells, sizes, strict=True):
        key = key * size + codes
    return key


def _agreeing(cells: Sequence[Ints], people: Ints, rows: Ints) -> Floats:
    """How many rows of a table agree with each person in all cells."""
    of = grouped(c[np.concatenate([people, rows])] for c in cells)
    counts = np.bincount(of[len(people) :], minlength=int(of.max()) + 1)
    return counts[of[: len(people)]].astype(np.float64)


def _features(near: Floats, others: Floats, traced: Floats, agree: Floats) -> Floats:
    """What gives people away, each on the scale of its spread; and a column of ones."""
    found = np.column_stack(
        [
            -np.log(near + _TINY),
            np.log(others + _TINY) - np.log(near + _TINY),
            traced,
            np.log1p(agree),
        ]
    )
    spread = found.std(axis=0)
    found = (found - found.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.column_stack([found, np.ones(len(found))])


def _shadows(
    world: World, others: Floats, shares: _Shares, rng: np.random.Generator
) -> tuple[Floats, Mask]:
    """The features of people beside imitations, and who was in each."""
    people = world.persons
    cells = [c.cells[people] for c in world.columns]
    distances = [(c[people], p) for c, p in world.distances(world.columns, people=True)]
    features, inside = [], []
    for i in range(2 * _SHADOWS):
        mixed = rng.permutation(people)
        chosen = mixed[: len(people) // 2]
        made = _paired(cells, chosen, rng) if i % 2 else _drawn(len(cells), chosen, rng)
        table = [c[m] for c, m in zip(cells, made, strict=True)]
        columns = [
            (np.concatenate([c, c[m]]), None if p is None else _with(p, people, m))
            for (c, p), m in zip(distances, made, strict=True)
        ]
        rows = np.arange(len(people), len(people) + len(chosen))
        near = nearest_rows(columns, people, rows)
        traced = trace_score(shares.people, shares.of(table))
        both = [np.concatenate([c, t]) for c, t in zip(cells, table, strict=True)]
        features.append(_features(near, others, traced, _agreeing(both, people, rows)))
        inside.append(np.isin(people, chosen))
    return np.concatenate(features), np.concatenate(inside)


def _with(places: Floats, people: Ints, made: Ints) -> Floats:
    """The places of people, and of the imitation below them."""
    return np.concatenate([places[people], places[people][made]])


def _drawn(columns: int, chosen: Ints, rng: np.random.Generator) -> list[Ints]:
    """Rows of some people drawn again, with some cells of others: whose value each cell has."""
    rows = rng.permutation(chosen)
    return [
        np.where(rng.random(len(rows)) < _CHANGED, rng.choice(chosen, len(rows)), rows)
        for _ in range(columns)
    ]


def _paired(cells: Sequence[Ints], chosen: Ints, rng: np.random.Generator) -> list[Ints]:
    """The same of the tree of pairs: a value of somebody whose cell was drawn."""
    frame = pl.DataFrame({str(i): c[chosen] for i, c in enumerate(cells)})
    drawn = pairs_kept(seed=rng)(frame)
    found = []
    for i, c in enumerate(cells):
        wanted = drawn[str(i)].to_numpy()
        order = np.argsort(c[chosen], kind="stable")
        sorted_cells = c[chosen][order]
        low, high = (np.searchsorted(sorted_cells, wanted, side=s) for s in ("left", "right"))
        at = low + (rng.random(len(wanted)) * (high - low)).astype(np.int64)
        found.append(chosen[order[at]])
    return found


def _logistic(features: Floats, inside: Mask) -> Floats:
    """Weights by Newton's steps on the penalised log-likelihood."""
    weight = np.zeros(features.shape[1])
    calm = _CALM * np.eye(len(weight))
    for _ in range(_STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(features @ weight, -30.0, 30.0)))
        slope = features.T @ (inside - chance) - _CALM * weight
        bend = (features * (chance * (1.0 - chance))[:, None]).T @ features + calm
        step = np.linalg.solve(bend, slope)
        weight += step
        if np.abs(step).max() < _STILL:
            break
    return weight


_STILL = 1e-6
"""A step after which nothing changes any more."""
_LEAST = 20
"""People of whom imitations can be made."""

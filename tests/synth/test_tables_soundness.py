"""Marginals, hierarchies and ranges: what neighbours lose, and that nothing goes round the noise.

The cost of a tree of ranges by brute force; then all that is released of neighbouring tables where
the noisy steps say the same. Planted mistakes are seen by one or the other.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.privacy import Neighbours
from dither.query.tables._counts import TablesQuestion
from dither.synth.hierarchy._hierarchy import HierarchyPlan, MeasuredLevels
from dither.synth.marginals import _residuals
from dither.synth.ranges import _plan as _range_plan
from dither.synth.ranges._plan import RangePlan
from dither.synth.ranges._tree import RangeTree
from dither.synth.tables import _marginals as _asked_marginals
from dither.synth.tables import _ranges as _asked_ranges

BINS = 6
CODE = 10**6


# --- what a tree of ranges loses ----------------------------------------------------------------


def changes(rows: int, replaced: bool) -> list[np.ndarray]:
    """What a unit of at most so many rows adds to bins, less what another one did."""
    units = [
        np.bincount(places, minlength=BINS)
        for n in range(rows + 1)
        for places in itertools.combinations_with_replacement(range(BINS), n)
    ]
    others = units if replaced else [np.zeros(BINS, dtype=np.int64)]
    return [one - two for one in units for two in others]


def coded(monkeypatch) -> dict[int, object]:
    """Draws that say which they are: the n-th is CODE times n everywhere."""
    drawn: dict[int, object] = {}

    def draw(self, n):
        drawn[len(drawn) + 1] = self
        return np.full(n, CODE * len(drawn))

    for law in (DiscreteLaplace, DiscreteGaussian):
        monkeypatch.setattr(law, "_draw", draw)
    return drawn


def lost(made: RangePlan, rows: int, replaced: bool, monkeypatch) -> F | float:
    """The largest loss over all neighbours: epsilon of Laplace noise, rho of Gaussian.

    The noise of a level is found by looking, and not by asking the plan.
    """
    drawn = coded(monkeypatch)

    def released(leaves):
        drawn.clear()
        found = []
        for level in made.measure(leaves):
            code = round(int(level[0]) / CODE)
            found.append((code, drawn.get(code), level - CODE * code))
        return found

    nothing = released(np.zeros(BINS, dtype=np.int64))
    draws = [code for code, _, _ in nothing if code]
    if len(set(draws)) < len(draws):
        # Of two levels with one noise the difference is exact.
        return float("inf")
    most: F | float = F(0)
    for change in changes(rows, replaced):
        total: F | float = F(0)
        for (_, noise, base), (_, _, moved) in zip(nothing, released(change), strict=True):
            by = np.abs(moved - base)
            if by.any() and noise is None:
                return float("inf")
            if isinstance(noise, DiscreteLaplace):
                total += int(by.sum()) / noise.scale
            elif noise is not None:
                total += int((by**2).sum()) / (2 * noise.sigma2)
        most = max(most, total)
    return most


def tree(rows: int, replaced: bool, delta: F) -> RangePlan:
    """Three nodes over two bins each, for units of so many rows, as `planned` makes larger ones."""
    factor = 2 if replaced else 1
    which = Neighbours.REPLACE if replaced else Neighbours.ADD_REMOVE
    family = "gaussian" if delta else "laplace"
    made = RangeTree(BINS, (3, 2), (F(1, 3), F(2, 3)), family)
    bounds = factor * rows, factor * rows**2
    noises, loss = _range_plan.noises_of(made.shares, family, F(1), delta, bounds, which)
    return RangePlan(made, noises, loss)


@pytest.mark.parametrize("delta", [F(0), F(1, 10**6)])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("replaced", [False, True])
def test_no_pair_of_neighbours_loses_more_than_is_charged(rows, replaced, delta, monkeypatch):
    """All units of at most so many rows; one meets the charge."""
    made = tree(rows, replaced, delta)
    charge = made.loss.charge
    assert charge.epsilon == 1
    found = lost(made, rows, replaced, monkeypatch)
    assert found == (charge.rho if delta else charge.epsilon)


def _level_without_noise(monkeypatch):
    """The leaves are given away as they are."""
    true = RangePlan.measure

    def measure(self, leaves):
        return [*true(self, leaves)[:-1], self.tree.counts(leaves)[-1]]

    monkeypatch.setattr(RangePlan, "measure", measure)


def _noise_again(monkeypatch):
    """The noise of one level serves the others."""

    def measure(self, leaves):
        exact = self.tree.counts(leaves)
        noise = self.noises[0].draw((BINS,))
        return [level + np.resize(noise, level.shape) for level in exact]

    monkeypatch.setattr(RangePlan, "measure", measure)


def _budget_for_each(monkeypatch):
    """Every level gets noise as if the whole budget were its own."""
    true = _range_plan.noises_of

    def noises_of(shares, family, *given):
        noises, loss = true(shares, family, *given)
        whole = [
            n.scale * s if family == "laplace" else n.sigma2 * s
            for n, s in zip(noises, shares, strict=True)
        ]
        return tuple(type(n)(x) for n, x in zip(noises, whole, strict=True)), loss

    monkeypatch.setattr(_range_plan, "noises_of", noises_of)


def _half_the_sensitivity(monkeypatch):
    """A unit is taken to move the leaves by half of what it may."""
    true = _range_plan.noises_of

    def noises_of(shares, family, epsilon, delta, bounds, which):
        return true(shares, family, epsilon, delta, (bounds[0] // 2, bounds[1] // 4), which)

    monkeypatch.setattr(_range_plan, "noises_of", noises_of)


@pytest.mark.parametrize(
    "mutant", [_level_without_noise, _noise_again, _budget_for_each, _half_the_sensitivity]
)
def test_mistakes_in_a_tree_lose_more_than_is_charged(mutant, monkeypatch):
    """Each is seen."""
    mutant(monkeypatch)
    made = tree(2, False, F(0))
    assert lost(made, 2, False, monkeypatch) > made.loss.charge.epsilon


# --- nothing goes round the noise -----------------------------------------------------------------

COLUMNS = {
    "place": {"values": ["a", "b", "c"], "nullable": False},
    "age": {"bins": [0, 20, 40, 60], "nullable": False},
    "ill": {"nullable": False},
}
PEOPLE = pl.DataFrame(
    {
        "place": ["a", "b", "a", "b", "a"],
        "age": [3, 25, 33, 8, 21],
        "ill": [True, False] * 2 + [True],
    }
)
ONE_MORE = PEOPLE.vstack(pl.DataFrame({"place": ["c"], "age": [59], "ill": [False]}))
PLACES = pl.DataFrame({"state": ["n", "n", "s"], "place": ["a", "b", "c"]})
ASKED = {
    "marginals": lambda people: people.marginals([["place", "age"], ["ill"]], 1, "1e-6"),
    "hierarchy": lambda people: people.hierarchy(["state", "place"], ["ill"], epsilon=1),
    "ranges": lambda people: people.ranges("age", epsilon=1, delta=0),
}


def scripted(monkeypatch, asked):
    """Noisy steps whose answers do not depend on the data; what they were asked is noted."""

    def script(shape):
        return np.random.default_rng(len(asked)).integers(-9, 60, shape)

    def noisy(cells, sigma2):
        asked.append((cells.shape, sigma2))
        return script(cells.shape) if sigma2 else cells

    def levels(self, leaves):
        asked.append((leaves.shape, self.levels))
        zero = np.zeros_like(leaves)
        cells = [script(level.shape) for level in self.spine.sums(zero)]
        noises = [level.total for level in self.levels]
        return MeasuredLevels(
            cells, [n and script(len(c)) for n, c in zip(noises, cells, strict=True)]
        )

    def nodes(self, leaves):
        asked.append((leaves.shape, self.tree, self.noises))
        return [script(level.shape) for level in self.tree.counts(np.zeros_like(leaves))]

    monkeypatch.setattr(_residuals, "_noisy", noisy)
    monkeypatch.setattr(HierarchyPlan, "measure", levels)
    monkeypatch.setattr(RangePlan, "measure", nodes)


def runs(folder, monkeypatch, name):
    """By table: what the steps were asked, and all that was released but the ledger's own."""
    found = []
    for i, frame in enumerate((PEOPLE, ONE_MORE)):
        asked: list = []
        scripted(monkeypatch, asked)
        public = {"public": True, "unique": ["place"]}
        policy = {
            "budget": {"epsilon": 9, "delta": "1e-5", "ledger": str(folder / f"{name}{i}.db")},
            "tables": {"people": {"columns": COLUMNS}, "places": public},
        }
        with dt.open(policy, sources={"people": frame, "places": PLACES}) as session:
            question = ASKED[name](session.table("people"))
            said = str(question.explain())
            released = question.release()
            content = dict(released._content)
        content.pop("certificate")
        found.append((asked, json.dumps(content), said))
    return found


@pytest.mark.parametrize("name", ASKED)
def test_nothing_but_noisy_steps_tells_neighbours_apart(tmp_path, monkeypatch, name):
    """Questions, noise, answers and explanations are the same."""
    ours, theirs = runs(tmp_path, monkeypatch, name)
    assert ours == theirs
    assert ours[0]


def _counted_rows(monkeypatch):
    """The number of rows is taken as known."""
    monkeypatch.setattr(TablesQuestion, "public_size", property(lambda self: True))


def _domain_of_the_data(module):
    """A mutant: bins above all that occur are left out."""

    def mutant(monkeypatch):
        real, frames = module.domain_of, iter((PEOPLE, ONE_MORE))

        def seen(rows, *given):
            found, most = real(rows, *given), next(frames)["age"].max()
            cut = tuple(
                a
                if a.edges is None
                else replace(a, edges=tuple(e for e in a.edges if e <= most + 20))
                for a in found.attributes
            )
            return replace(found, attributes=cut)

        monkeypatch.setattr(module, "domain_of", seen)
        monkeypatch.setattr(
            TablesQuestion,
            "_count",
            lambda self, cliques, secret: {
                c: np.ones(self.domain.shape(c), dtype=np.int64) for c in cliques
            },
        )

    return mutant


MUTANTS = [
    ("marginals", _counted_rows),
    ("marginals", _domain_of_the_data(_asked_marginals)),
    ("ranges", _domain_of_the_data(_asked_ranges)),
]


@pytest.mark.parametrize(("name", "mutant"), MUTANTS, ids=["rows", "domain", "bins"])
def test_what_is_taken_from_the_data_is_seen(tmp_path, monkeypatch, name, mutant):
    """The number of rows, or the values that occur."""
    mutant(monkeypatch)
    ours, theirs = runs(tmp_path, monkeypatch, name)
    assert ours != theirs
